"""What the collision check of an exciting motion uses: capsules, the floor, and pairs that always touch.

Capsules come from the robot file or from the collision shapes of the description, meshes included. Bodies of
a tree without any get slender capsules along their links, the last one to twice its centre of mass. The links
of a closed robot often pass each other in planes that the description does not have: without capsules it is
not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.display.scene import links_length, robot_shapes
from dynid.excitation.optimal.paths import Path, RobotStates
from dynid.excitation.optimal.soft_bodies import Collisions, Floor, neighbours, pair_name
from dynid.experiment.tasks import ExciteSettings
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.mechanism import BASE, Capsule, Mechanism
from dynid.mechanism.mesh_capsules import mesh_capsules

if TYPE_CHECKING:
    from dynid.excitation.floor import FloorHeight

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
class Shaped:
    """A robot with the capsules that are checked.

    Attributes:
        robot: With capsules around its collision meshes, and assumed ones.
        assumed: Bodies with capsules along their links.
        unread: Bodies with collision meshes that are not readable, with why.
    """

    robot: Mechanism
    assumed: tuple[str, ...] = ()
    unread: Mapping[str, InputError] = field(default_factory=dict)

    def notices(self) -> tuple[Notice, ...]:
        """Meshes that were not read, and what was assumed."""
        messages = []
        if self.unread:
            first = next(iter(self.unread.values()))
            why = f"{first.file}: {first.text}" if first.file else first.text
            messages.append(
                notice("meshes-unread", names=", ".join(self.unread), why=why, remedy=first.remedy)
            )
        if self.assumed:
            messages.append(notice("capsules-assumed", names=", ".join(self.assumed)))
        return tuple(messages)


@dataclass(frozen=True, eq=False)
class CollisionCheck:
    """What is checked along a motion.

    Attributes:
        on: Whether the check was asked for.
        shaped: The capsules.
        floor: Where it is.
        bare: Bodies without any capsule: not checked.
        touching: Pairs of bodies that always touch, and bodies mounted on the base that always touch the
            floor: not checked.
        pairs, ground: The limits; None if there is nothing to check.
    """

    on: bool
    shaped: Shaped
    floor: FloorHeight
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
        messages = [*self.shaped.notices(), *self.floor.notices()]
        if not self.pairs:
            messages.append(notice("collisions-unchecked"))
        if self.bare:
            messages.append(notice("bodies-unchecked", names=", ".join(self.bare)))
        if self.touching:
            pairs = [name if " and " in name else pair_name(name, "the floor") for name in self.touching]
            messages.append(notice("always-touching", names="; ".join(sorted(pairs))))
        return tuple(messages)


def with_capsules(robot: Mechanism, settings: ExciteSettings) -> Shaped:
    """The robot with capsules of all bodies: of meshes, where there are any, and assumed ones."""
    if not settings.collisions:
        return Shaped(replace(robot, capsules={}))
    found, unread = mesh_capsules(robot)
    by_body = {
        body: (*robot.capsules.get(body, ()), *found.get(body, ())) for body in (*robot.capsules, *found)
    }
    if robot.is_closed:
        return Shaped(replace(robot, capsules=by_body), unread=unread)
    shapes = robot_shapes(robot)
    segments = [(link["body"], np.array(link["a"]), np.array(link["b"])) for link in shapes["links"]]
    radius = max(_SLENDER * links_length(shapes), _LEAST_RADIUS)
    assumed = []
    for i, body in enumerate(shapes["bodies"]):
        guess = tuple(Capsule(a, b, radius) for k, a, b in segments if k == i) or _last_link(
            robot, body, radius
        )
        if body not in by_body and guess:
            by_body[body] = guess
            assumed.append(body)
    return Shaped(replace(robot, capsules=by_body), tuple(assumed), unread)


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
    shaped: Shaped,
    low: Float[Array, "j"],
    high: Float[Array, "j"],
    floor: FloorHeight,
) -> CollisionCheck:
    """The check of a robot with capsules (`with_capsules`).

    Args:
        low, high: Range of the moved coordinates, shape (j,). Bodies of a tree that touch in all of some
            random poses of it always touch; those of a closed robot if they touch at its start pose.
        floor: Its height.
    """
    robot = path.mechanism
    if not settings.collisions:
        return CollisionCheck(False, shaped, floor)
    near = neighbours(robot)
    whole: list[Collisions | Floor] = [Collisions(path)]
    whole += [] if floor.height is None else [Floor(path, floor.height)]
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
    ground = None if floor.height is None else Floor(path, floor.height, touching, settings.clearance)
    moved = [joint.child for joint in robot.joints if joint.coordinates] if robot.capsules else []
    bare = tuple(body for body in moved if body not in robot.capsules)
    return CollisionCheck(True, shaped, floor, bare, touching, pairs or None, ground or None)


def _poses(path: Path, low: Float[Array, "j"], high: Float[Array, "j"]) -> RobotStates | None:
    """States of rest at poses of the moved coordinates."""
    robot = path.mechanism
    if robot.is_closed:
        start = assembly_of(robot).start
        poses = start[[robot.positions.index(name) for name in path.names]][None]
    else:
        poses = np.random.default_rng(_SEED).uniform(low, high, (_POSES, len(low)))
    return at_rest(path, poses)


def at_rest(path: Path, poses: Float[Array, "n j"]) -> RobotStates | None:
    """The robot standing still at poses of the moved coordinates."""
    still = np.zeros_like(poses)
    return path.states((poses, still, still))
