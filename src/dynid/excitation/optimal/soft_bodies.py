"""Limits of bodies in space: allowed region of a body's origin, and capsules that must not collide."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.excitation.optimal.paths import Path, RobotStates
from dynid.excitation.optimal.soft import Ranged, Side, both_sides, shares
from dynid.excitation.series import symmetric_range
from dynid.kinematics.tree import BodyMotion, body_motion, tree_of
from dynid.mechanism.mechanism import BASE, Capsule

AXES = ("x", "y", "z")


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
            found = body_motion(
                self.tree, states.q, np.ascontiguousarray(N[:, :, i]), np.zeros_like(states.dq)
            )
            parts = [np.einsum("nbij,nbj->nbi", found.R, found.V[..., k : k + 3]) for k in (0, 3)]
            rows.append(np.concatenate(parts, axis=-1))
        return np.array(rows)


class Workspace(Ranged):
    """Origins of bodies within `limits: {BODY: {x: [low, high], ...}}`, base frame, in [m]."""

    def __init__(self, path: Path) -> None:
        self._bodies = _Bodies(path)
        self._rows: list[tuple[int, int, float, float]] = []  # body, axis, low, high
        sides: list[Side] = []
        for name, own in path.mechanism.limits.items():
            for axis, key in enumerate(AXES):
                if name in path.mechanism.bodies and key in own:
                    low, high = symmetric_range(own[key])
                    self._rows.append((self._bodies.index[name], axis, low, high))
                    sides += both_sides(key, name, low, high)
        self.sides = tuple(sides)

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """Two rows per limit."""
        p = self._bodies.poses(states).p
        return np.array(
            [row for body, axis, low, high in self._rows for row in shares(p[:, body, axis], low, high)]
        )

    def slopes(self, states: RobotStates) -> Float[Array, "3 s n d"]:
        """Speeds of the origins."""
        V = self._bodies.twists(states)
        out = np.zeros((3, 2 * len(self._rows), len(states.q), len(V)))
        for k, (body, axis, low, high) in enumerate(self._rows):
            out[0, 2 * k] = V[:, :, body, axis].T / (0.5 * (high - low))
            out[0, 2 * k + 1] = -out[0, 2 * k]
        return out


class Collisions:
    """Capsules of bodies that no joint connects stay apart: 1 - distance / clearance <= 0.

    The distance is between the axes, the clearance the sum of the radii.
    """

    jumps = False

    def __init__(self, path: Path) -> None:
        robot = path.mechanism
        self._bodies = _Bodies(path)
        neighbours = {frozenset((joint.parent, joint.child)) for joint in robot.joints}
        neighbours |= {frozenset((loop.body_a, loop.body_b)) for loop in robot.loops}
        capsules = [(body, one) for body, own in robot.capsules.items() for one in own]
        self._pairs = [
            (a, b)
            for i, a in enumerate(capsules)
            for b in capsules[i + 1 :]
            if a[0] != b[0] and frozenset((a[0], b[0])) not in neighbours
        ]
        self.sides = tuple(
            Side("distance", f"{a[0]} and {b[0]}", a[1].radius + b[1].radius, None, False)
            for a, b in self._pairs
        )

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def reached(self, side: Side, h: float) -> float:
        """The distance of the axes, in [m]."""
        return (side.low or 0.0) * (1.0 - h)

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """One row per pair."""
        motion = self._bodies.poses(states)
        rows = []
        for a, b in self._pairs:
            on_a, on_b = self._nearest(motion, a, b)
            distance = np.linalg.norm(on_b - on_a, axis=1)
            rows.append(1.0 - distance / (a[1].radius + b[1].radius))
        return np.array(rows)

    def slopes(self, states: RobotStates) -> Float[Array, "3 s n d"]:
        """Approach speed of the nearest points."""
        motion, V = self._bodies.poses(states), self._bodies.twists(states)
        out = np.zeros((3, len(self._pairs), len(states.q), len(V)))
        for k, (a, b) in enumerate(self._pairs):
            on_a, on_b = self._nearest(motion, a, b)
            gap = on_b - on_a
            distance = np.maximum(np.linalg.norm(gap, axis=1, keepdims=True), 1e-9)
            speed = self._speed(motion, V, b[0], on_b) - self._speed(motion, V, a[0], on_a)
            out[0, k] = -np.einsum("ni,dni->nd", gap / distance, speed) / (a[1].radius + b[1].radius)
        return out

    def _ends(self, motion: BodyMotion, body: str, capsule: Capsule) -> tuple[Array, Array]:
        if body == BASE:
            n = len(motion.p)
            return np.tile(capsule.start, (n, 1)), np.tile(capsule.end, (n, 1))
        i = self._bodies.index[body]
        ends = [motion.p[:, i] + motion.R[:, i] @ point for point in (capsule.start, capsule.end)]
        return ends[0], ends[1]

    def _nearest(
        self, motion: BodyMotion, a: tuple[str, Capsule], b: tuple[str, Capsule]
    ) -> tuple[Float[Array, "n 3"], Float[Array, "n 3"]]:
        return nearest_points(*self._ends(motion, *a), *self._ends(motion, *b))

    def _speed(
        self, motion: BodyMotion, V: Float[Array, "d n b 6"], body: str, point: Float[Array, "n 3"]
    ) -> Float[Array, "d n 3"]:
        if body == BASE:
            return np.zeros((len(V), len(point), 3))
        i = self._bodies.index[body]
        return np.asarray(V[:, :, i, :3] + np.cross(V[:, :, i, 3:], point - motion.p[:, i]))


def nearest_points(
    p1: Float[Array, "n 3"], p2: Float[Array, "n 3"], q1: Float[Array, "n 3"], q2: Float[Array, "n 3"]
) -> tuple[Float[Array, "n 3"], Float[Array, "n 3"]]:
    """Nearest points of segments p1 p2 and q1 q2, pair by pair.

    The unbounded solution if it is inside both, else the best end point with its projection on the other.
    """
    d1, d2, r = p2 - p1, q2 - q1, p1 - q1
    a, e, b = (np.einsum("ni,ni->n", x, y) for x, y in ((d1, d1), (d2, d2), (d1, d2)))
    c, f = np.einsum("ni,ni->n", d1, r), np.einsum("ni,ni->n", d2, r)
    a, e = np.maximum(a, 1e-12), np.maximum(e, 1e-12)
    bottom = a * e - b * b
    s = np.where(bottom > 1e-12 * a * e, (b * f - c * e) / np.maximum(bottom, 1e-300), 0.0)
    inner = np.clip(s, 0.0, 1.0), np.clip((b * np.clip(s, 0.0, 1.0) + f) / e, 0.0, 1.0)
    choices = [
        inner,
        (np.clip((b * inner[1] - c) / a, 0.0, 1.0), inner[1]),
        *((np.full_like(a, end), np.clip((b * end + f) / e, 0.0, 1.0)) for end in (0.0, 1.0)),
        *((np.clip((b * end - c) / a, 0.0, 1.0), np.full_like(a, end)) for end in (0.0, 1.0)),
    ]
    points = [(p1 + u[:, None] * d1, q1 + v[:, None] * d2) for u, v in choices]
    distances = np.array([np.linalg.norm(x - y, axis=1) for x, y in points])
    best = np.argmin(distances, axis=0)
    rows = np.arange(len(a))
    return np.array([x for x, _ in points])[best, rows], np.array([y for _, y in points])[best, rows]
