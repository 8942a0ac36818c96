"""What the collision check of an exciting motion uses: capsules, the floor, and pairs that always touch.

Capsules come from the robot file or from the collision shapes of the description. Bodies of a tree without
any get slender capsules along their links, the last one to twice its centre of mass. The links of a closed
robot often pass each other in planes that the description does not have: without capsules it is not checked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.notices import Notice, notice
from dynid.display.scene import robot_shapes
from dynid.excitation.optimal.paths import Path, RobotStates
from dynid.excitation.optimal.soft_bodies import Collisions, Floor, neighbours
from dynid.experiment.tasks import ExciteSettings
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.mechanism import BASE, Capsule, Mechanism

_SLENDER = 0.02  # of the length of all links together: radius of assumed capsules
_LEAST_RADIUS = 0.005  # m
_POSES = 64
_SEED = 20240229


@dataclass(frozen=True, eq=False)
class Nearness:
    """What is nearest to what along a motion.

    Attributes:
        bodies: Pairs of bodies, or single bodies above the floor, that are checked.
        which: The nearest of them at every sample, shape (n,).
        distance: Between its surfaces, shape (n,), in [m]; negative: they overlap.
    """

    bodies: tuple[tuple[str, ...], ...]
    which: Int[Array, "n"]
    distance: Float[Array, "n"]


@dataclass(frozen=True, eq=False)
class CollisionCheck:
    """What is checked along a motion.

    Attributes:
        on: Whether the check was asked for.
        floor: Height of the floor, base frame, in [m]; None: unknown.
        assumed: Bodies with capsules along their links.
        bare: Bodies without any capsule: not checked.
        touching: Pairs of bodies that always touch, and bodies mounted on the base that always touch the
            floor: not checked.
        pairs, ground: The limits; None if there is nothing to check.
    """

    on: bool
    floor: float | None
    assumed: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    touching: frozenset[str] = frozenset()
    pairs: Collisions | None = None
    ground: Floor | None = None

    @property
    def limits(self) -> tuple[Collisions | Floor, ...]:
        """Limits of the motion."""
        return tuple(limit for limit in (self.pairs, self.ground) if limit)

    def along(self, states: RobotStates) -> dict[str, Nearness]:
        """Smallest distance of `bodies` and to the `floor` at every sample of a motion."""
        nearness: dict[str, Nearness] = {}
        for key, limit in (("bodies", self.pairs), ("floor", self.ground)):
            if limit:
                gaps = limit.gaps(states)
                closest = np.argmin(gaps, axis=0)
                nearness[key] = Nearness(limit.bodies, closest, gaps[closest, np.arange(gaps.shape[1])])
        return nearness

    def nearest(self, states: RobotStates) -> dict[str, dict[str, float | str]]:
        """Smallest distance of `bodies` and of the `floor` along a motion, in [m], and between what."""
        closest: dict[str, dict[str, float | str]] = {}
        for key, near in self.along(states).items():
            k = int(np.argmin(near.distance))
            between = " and ".join(near.bodies[near.which[k]])
            closest[key] = {"distance": float(near.distance[k]), "between": between}
        return closest

    def notices(self) -> tuple[Notice, ...]:
        """What is not checked, and what was assumed."""
        if not self.on:
            return (notice("collisions-off"),)
        messages = [] if self.pairs else [notice("collisions-unchecked")]
        if self.bare:
            messages.append(notice("bodies-unchecked", names=", ".join(self.bare)))
        if self.assumed:
            messages.append(notice("capsules-assumed", names=", ".join(self.assumed)))
        if self.touching:
            messages.append(notice("always-touching", names="; ".join(sorted(self.touching))))
        if self.floor is None:
            messages.append(notice("floor-unchecked"))
        return tuple(messages)


def with_capsules(robot: Mechanism, settings: ExciteSettings) -> tuple[Mechanism, tuple[str, ...]]:
    """The robot with capsules of all bodies, and the bodies whose capsules are assumed."""
    if not settings.collisions:
        return replace(robot, capsules={}), ()
    if robot.is_closed:
        return robot, ()
    shapes = robot_shapes(robot)
    segments = [(link["body"], np.array(link["a"]), np.array(link["b"])) for link in shapes["links"]]
    length = sum(float(np.linalg.norm(b - a)) for _, a, b in segments)
    radius = max(_SLENDER * length, _LEAST_RADIUS)
    by_body, assumed = dict(robot.capsules), []
    for i, body in enumerate(shapes["bodies"]):
        guess = tuple(Capsule(a, b, radius) for k, a, b in segments if k == i) or _last_link(
            robot, body, radius
        )
        if body not in by_body and guess:
            by_body[body] = guess
            assumed.append(body)
    return replace(robot, capsules=by_body), tuple(assumed)


def _last_link(robot: Mechanism, name: str, radius: float) -> tuple[Capsule, ...]:
    """A body without a next joint ends twice as far as its centre of mass; none if that is not known."""
    body = robot.bodies.get(name)
    values = {} if body is None else {**body.prior, **body.known}
    if values.get("M", 0.0) <= 0.0 or not all(moment in values for moment in ("MX", "MY", "MZ")):
        return ()
    centre = np.array([values[moment] for moment in ("MX", "MY", "MZ")]) / values["M"]
    return (Capsule(np.zeros(3), 2.0 * centre, radius),)


def collision_check(
    path: Path,
    settings: ExciteSettings,
    assumed: tuple[str, ...],
    low: Float[Array, "j"],
    high: Float[Array, "j"],
) -> CollisionCheck:
    """The check of a robot with capsules (`with_capsules`).

    Args:
        low, high: Range of the moved coordinates, shape (j,). Bodies of a tree that touch in all of some
            random poses of it always touch; those of a closed robot if they touch at its start pose.
    """
    floor = settings.floor
    if not settings.collisions:
        return CollisionCheck(False, floor)
    near = neighbours(path.mechanism)
    whole: list[Collisions | Floor] = [Collisions(path), *([] if floor is None else [Floor(path, floor)])]
    states = _poses(path, low, high) if any(whole) else None
    touching = frozenset(
        side.name
        for limit in whole
        if limit and states is not None
        for side, gap in zip(limit.sides, limit.gaps(states).max(axis=1), strict=True)
        # Only what is mounted on the base may stand in the floor.
        if gap < settings.clearance
        and (isinstance(limit, Collisions) or frozenset((BASE, side.name)) in near)
    )
    pairs = Collisions(path, touching, settings.clearance)
    ground = None if floor is None else Floor(path, floor, touching, settings.clearance)
    robot = path.mechanism
    moved = [joint.child for joint in robot.joints if joint.coordinates] if robot.capsules else []
    bare = tuple(body for body in moved if body not in robot.capsules)
    return CollisionCheck(True, floor, assumed, bare, touching, pairs or None, ground or None)


def _poses(path: Path, low: Float[Array, "j"], high: Float[Array, "j"]) -> RobotStates | None:
    """States of rest at poses of the moved coordinates."""
    robot = path.mechanism
    if robot.is_closed:
        start = assembly_of(robot).start
        poses = start[[robot.positions.index(name) for name in path.names]][None]
    else:
        poses = np.random.default_rng(_SEED).uniform(low, high, (_POSES, len(low)))
    still = np.zeros_like(poses)
    return path.states((poses, still, still))
