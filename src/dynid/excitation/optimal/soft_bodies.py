"""Limits of bodies in space: region of a body's origin, capsules that must not collide, and the floor."""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.display.scene import upwards
from dynid.excitation.optimal.paths import Path, RobotStates
from dynid.excitation.optimal.soft import Ranged, Side, both_sides, shares
from dynid.excitation.series import symmetric_range
from dynid.kinematics.tree import BodyMotion, body_motion, tree_of
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import BASE, Mechanism

AXES = ("x", "y", "z")
FLOOR_SIZE = 0.1  # m: an excess of 1 % is 1 mm


class _Bodies:
    """Poses of bodies along a motion, and the sensitivity of their points to the moved coordinates."""

    def __init__(self, path: Path) -> None:
        self.path, self.tree = path, tree_of(path.mechanism)
        self.index = {name: i for i, name in enumerate(self.tree.body_names)}
        self._known: tuple[RobotStates, BodyMotion] | None = None

    def poses(self, states: RobotStates) -> BodyMotion:
        if self._known is None or self._known[0] is not states:
            self._known = states, body_motion(self.tree, states.q, states.dq, states.ddq)
        return self._known[1]

    def twists(self, states: RobotStates) -> Float[Array, "d n b 6"]:
        """Twists in base axes for a unit rate of each moved coordinate."""
        N = states.tangent
        rows = []
        for i in range(N.shape[2]):
            motion = body_motion(
                self.tree, states.q, np.ascontiguousarray(N[:, :, i]), np.zeros_like(states.dq)
            )
            parts = [np.einsum("nbij,nbj->nbi", motion.R, motion.V[..., k : k + 3]) for k in (0, 3)]
            rows.append(np.concatenate(parts, axis=-1))
        return np.array(rows)


class Workspace(Ranged):
    """Origins of bodies within `limits: {BODY: {x: [low, high], ...}}`, base frame, in [m]."""

    def __init__(self, path: Path) -> None:
        self._bodies = _Bodies(path)
        self._rows: list[tuple[int, int, float, float]] = []  # body, axis, low, high
        sides: list[Side] = []
        for name, body_limits in path.mechanism.limits.items():
            for axis, key in enumerate(AXES):
                if name in path.mechanism.bodies and key in body_limits:
                    low, high = symmetric_range(body_limits[key])
                    self._rows.append((self._bodies.index[name], axis, low, high))
                    sides += both_sides(key, name, low, high)
        self.sides = tuple(sides)

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """Two rows per limit."""
        p = self._bodies.poses(states).p
        return np.array(
            [row for body, axis, low, high in self._rows for row in shares(p[:, body, axis], low, high)]
        )

    def slopes(self, states: RobotStates, needed: Bool[Array, "s"] | None = None) -> Float[Array, "3 s n d"]:
        """Speeds of the origins."""
        V = self._bodies.twists(states)
        out = np.zeros((3, 2 * len(self._rows), len(states.q), len(V)))
        for k, (body, axis, low, high) in enumerate(self._rows):
            out[0, 2 * k] = V[:, :, body, axis].T / (0.5 * (high - low))
            out[0, 2 * k + 1] = -out[0, 2 * k]
        return out


class _Capsules(_Bodies):
    """Ends of all capsules of a robot along a motion, base frame."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        listed = [(body, capsule) for body, several in path.mechanism.capsules.items() for capsule in several]
        self.bodies = tuple(body for body, _ in listed)
        self.capsules = tuple(capsule for _, capsule in listed)
        self.radii = np.array([capsule.radius for capsule in self.capsules])

    def ends(self, states: RobotStates) -> Float[Array, "c 2 n 3"]:
        """Both ends of the segment of every capsule, in [m]."""
        motion, n = self.poses(states), len(states.q)
        out = np.empty((len(self.capsules), 2, n, 3))
        for c, (body, capsule) in enumerate(zip(self.bodies, self.capsules, strict=True)):
            for e, point in enumerate((capsule.start, capsule.end)):
                i = self.index.get(body)
                out[c, e] = point if i is None else motion.p[:, i] + motion.R[:, i] @ point
        return out

    def speed(
        self, motion: BodyMotion, V: Float[Array, "d n b 6"], body: str, point: Float[Array, "n 3"]
    ) -> Float[Array, "d n 3"]:
        """Velocity of a point of a body for a unit rate of each moved coordinate."""
        if body == BASE:
            return np.zeros((len(V), len(point), 3))
        i = self.index[body]
        return np.asarray(V[:, :, i, :3] + np.cross(V[:, :, i, 3:], point - motion.p[:, i]))


class Collisions:
    """Capsules of bodies that no joint connects stay apart: 1 - distance / least <= 0.

    The distance is between the axes, the least one the sum of the radii and the clearance.

    Args:
        ignored: Pairs of bodies (`pair_name`) that are not checked.
        clearance: Between the surfaces, in [m].
    """

    jumps = False

    def __init__(self, path: Path, ignored: frozenset[str] = frozenset(), clearance: float = 0.0) -> None:
        self._own = capsules = _Capsules(path)
        near = neighbours(path.mechanism)
        pairs = [
            (i, j)
            for i, a in enumerate(capsules.bodies)
            for j, b in enumerate(capsules.bodies[:i])
            if frozenset((a, b)) not in near and a != b and pair_name(b, a) not in ignored
        ]
        self._a = np.array([j for _, j in pairs], dtype=np.int64)
        self._b = np.array([i for i, _ in pairs], dtype=np.int64)
        self._clearance, radii = clearance, capsules.radii[self._a] + capsules.radii[self._b]
        self._least = radii + clearance
        self.bodies = tuple((capsules.bodies[j], capsules.bodies[i]) for i, j in pairs)
        self.sides = tuple(
            Side("distance", pair_name(*pair), float(least), None, False)
            for pair, least in zip(self.bodies, self._least, strict=True)
        )

    def __bool__(self) -> bool:
        return bool(self.sides)

    def reached(self, side: Side, h: float) -> float:
        """The distance of the axes, in [m]."""
        return (side.low or 0.0) * (1.0 - h)

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """One row per pair."""
        on_a, on_b = self._nearest(states)
        return np.asarray(1.0 - np.linalg.norm(on_b - on_a, axis=2) / self._least[:, None])

    def gaps(self, states: RobotStates) -> Float[Array, "s n"]:
        """Distance between the surfaces of every pair, in [m]; negative: they overlap."""
        return np.asarray(self._clearance - self._least[:, None] * self.excess(states))

    def slopes(self, states: RobotStates, needed: Bool[Array, "s"] | None = None) -> Float[Array, "3 s n d"]:
        """Approach speed of the nearest points."""
        capsules, motion, V = self._own, self._own.poses(states), self._own.twists(states)
        out = np.zeros((3, len(self.sides), len(states.q), len(V)))
        nearest_a, nearest_b = self._nearest(states)
        for k in range(len(self.sides)) if needed is None else np.flatnonzero(needed).tolist():
            on_a, on_b = nearest_a[k], nearest_b[k]
            gap = on_b - on_a
            distance = np.maximum(np.linalg.norm(gap, axis=1, keepdims=True), 1e-9)
            a, b = capsules.bodies[self._a[k]], capsules.bodies[self._b[k]]
            speed = capsules.speed(motion, V, b, on_b) - capsules.speed(motion, V, a, on_a)
            out[0, k] = -np.einsum("ni,dni->nd", gap / distance, speed) / self._least[k]
        return out

    def _nearest(self, states: RobotStates) -> tuple[Float[Array, "s n 3"], Float[Array, "s n 3"]]:
        """Nearest points of every pair, for all samples at once."""
        return nearest_points(self._own.ends(states), self._a, self._b)


class Floor:
    """Capsules of moving bodies stay above a plane normal to gravity.

    Both ends of every capsule: (floor + clearance - (h - radius)) / 0.1 m <= 0, with h opposite to gravity.

    Args:
        floor: Its height above the origin of the base frame, in [m].
        ignored: Bodies that are not checked.
        clearance: Above the floor, in [m].
    """

    jumps = False

    def __init__(
        self, path: Path, floor: float, ignored: frozenset[str] = frozenset(), clearance: float = 0.0
    ) -> None:
        self._own, self._floor, self._clearance = _Capsules(path), floor, clearance
        self._up = upwards(path.mechanism)
        moving = [c for c, body in enumerate(self._own.bodies) if body != BASE and body not in ignored]
        self._rows = [(c, e) for c in moving for e in (0, 1)]
        self.bodies = tuple((self._own.bodies[c],) for c, _ in self._rows)
        self.sides = tuple(Side("height", name, floor + clearance, None, False) for (name,) in self.bodies)

    def __bool__(self) -> bool:
        return bool(self.sides)

    @property
    def widths(self) -> Float[Array, "s"]:
        """Diameter of the capsule of every end, in [m]."""
        return np.array([2.0 * self._own.radii[c] for c, _ in self._rows])

    def reached(self, side: Side, h: float) -> float:
        """The lowest height, in [m]."""
        return self._floor + self._clearance - h * FLOOR_SIZE

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """One row per end of a capsule."""
        return np.asarray((self._clearance - self.gaps(states)) / FLOOR_SIZE)

    def gaps(self, states: RobotStates) -> Float[Array, "s n"]:
        """Height of every end above the floor, in [m]."""
        ends, radii = self._own.ends(states), self._own.radii
        return np.array([ends[c, e] @ self._up - radii[c] - self._floor for c, e in self._rows])

    def slopes(self, states: RobotStates, needed: Bool[Array, "s"] | None = None) -> Float[Array, "3 s n d"]:
        """Falling speed of the ends."""
        capsules, ends = self._own, self._own.ends(states)
        motion, V = capsules.poses(states), capsules.twists(states)
        out = np.zeros((3, len(self._rows), len(states.q), len(V)))
        for k in range(len(self.sides)) if needed is None else np.flatnonzero(needed).tolist():
            c, e = self._rows[k]
            speed = capsules.speed(motion, V, capsules.bodies[c], ends[c, e]) @ self._up
            out[0, k] = -speed.T / FLOOR_SIZE
        return out


def pair_name(a: str, b: str) -> str:
    """Two bodies as one name."""
    return f"{a} and {b}"


def neighbours(robot: Mechanism) -> set[frozenset[str]]:
    """Pairs of bodies that a joint or loop connects, also through bodies fixed to them."""
    group = {BASE: BASE}
    for joint in robot.joints:
        fixed = joint.kind is JointKind.FIXED
        group[joint.child] = group[joint.parent] if fixed else joint.child
    met = {frozenset((group[joint.parent], group[joint.child])) for joint in robot.joints}
    met |= {frozenset((group[loop.body_a], group[loop.body_b])) for loop in robot.loops}
    met |= {frozenset((root,)) for root in group.values()}
    listed = [body for body in group if body in robot.capsules or body == BASE]
    return {frozenset((a, b)) for a in listed for b in listed if frozenset((group[a], group[b])) in met}


def nearest_points(
    ends: Float[Array, "c 2 n 3"], first: Int[Array, "s"], second: Int[Array, "s"]
) -> tuple[Float[Array, "s n 3"], Float[Array, "s n 3"]]:
    """Nearest points of pairs of segments along a motion.

    Args:
        ends: Both ends of every segment, base frame, in [m].
        first, second: The segments of each pair.
    """
    from dynid.excitation.optimal.capsule_kernels import nearest

    on_a, on_b = (np.empty((len(first), *ends.shape[2:])) for _ in range(2))
    nearest(np.ascontiguousarray(ends), first, second, on_a, on_b)
    return on_a, on_b
