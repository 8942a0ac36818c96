"""Full turns of the encoders of a closed robot.

An encoder may count from another turn than the description: q + 2 pi k is the same pose. But the loops
are tracked from the start pose, and would pass through k turns or lose the branch. So a constant
number of turns per coordinate and segment is removed, such that the segment begins at the turn nearest
to the closed pose. Turns made during a segment stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from dynid.common.arrays import Array, Float, Int, spread
from dynid.common.notices import Notice, notice
from dynid.kinematics.assembly import Assembly, assembly_of
from dynid.kinematics.sensors import Sensors, sensors_of, turning_positions
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.projection.kinematics import MISFIT, OPEN

_TURN = 2.0 * np.pi
# rad: closer to the reference than this, no other turn is tried.
_CERTAIN = 0.5 * np.pi
_PROBES = 8
_MOST_TRIED = 64
_SLACK = 0.05  # of the range: a log may exceed its limits slightly


def nearest_turns(mechanism: Mechanism, log: Log) -> Log:
    """The log with every angle at the turn of the closed pose, and a notice of what was removed."""
    angles = _angles(mechanism, log)
    if not mechanism.is_closed or not len(angles) or not log.segments:
        return log
    assembly, sensors = assembly_of(mechanism), sensors_of(mechanism, log.position_names)
    if sensors.count < assembly.dof or assembly.tracker(sensors) is None:
        return log
    search = _Search(mechanism, assembly, sensors, log.position_names, angles)
    turns = np.zeros((len(log.segments), len(angles)), dtype=np.int64)
    last: Float[Array, "w"] | None = None
    for s, (a, b) in enumerate(log.segments):
        known = [at for at in log.origins if at <= a]
        origin = np.asarray(log.origins[max(known)]) if known else assembly.start
        turns[s] = search.turns(np.asarray(log.q[a:b], dtype=float), origin, None if known else last)
        last = np.array(log.q[b - 1], dtype=float)
        last[angles] -= _TURN * turns[s]
    return _corrected(log, angles, turns)


def _angles(mechanism: Mechanism, log: Log) -> Int[Array, "k"]:
    """Columns of q that are plain angles."""
    joints = [mechanism.joint_of_position[name] for name in log.position_names]
    plain = [
        i
        for i, (name, joint) in enumerate(zip(log.position_names, joints, strict=True))
        if name in joint.coordinates and joint.is_angle(name)
    ]
    return np.array(plain, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Search:
    """Turns of one robot's angles: `names` of the columns of q, `angles` those that turn."""

    mechanism: Mechanism
    assembly: Assembly
    sensors: Sensors
    names: tuple[str, ...]
    angles: Int[Array, "k"]

    def turns(
        self, q: Float[Array, "n w"], origin: Float[Array, "p"], last: Float[Array, "w"] | None
    ) -> Int[Array, "k"]:
        """Turns to remove from a segment.

        Args:
            q: Its positions, shape (n, w).
            origin: The closed pose from which the loops are tracked to it.
            last: Where the segment before it ended, its turns removed; None for the first one.
        """
        near = self.sensors.read(origin[None])[0] if last is None else last
        options = [self._options(q[:, c], float(near[c]), c) for c in self.angles.tolist()]
        ordered = sorted(product(*options), key=lambda choice: (sum(cost for cost, _ in choice), choice))
        tries = [np.array([k for _, k in combo], dtype=np.int64) for combo in ordered[:_MOST_TRIED]]
        if len(tries) == 1:
            return tries[0]
        probes = q[spread(len(q), _PROBES)]
        return next((turns for turns in tries if self._fits(probes, turns, origin)), tries[0])

    def _options(self, q: Float[Array, "n"], near: float, column: int) -> list[tuple[float, int]]:
        """Turns of one coordinate to try, each with its cost: limits have priority over distance."""
        name = self.names[column]
        away = float(q[0]) - near
        nearest = round(away / _TURN)
        left = away - _TURN * nearest
        wanted = {nearest} if abs(left) < _CERTAIN else {nearest, nearest + int(np.sign(left))}
        low, high = self._range(name)
        inside = low <= q.min() and q.max() <= high
        # A turn of a coupled joint may be another pose: as logged first.
        coupled = self.mechanism.positions.index(name) not in turning_positions(self.mechanism)
        if coupled or (inside and np.isfinite(high - low)):
            wanted.add(0)

        def cost(k: int) -> float:
            outside = q.min() - _TURN * k < low or q.max() - _TURN * k > high
            return float(1e6 * outside + 1e3 * (coupled and k != 0) + abs(away - _TURN * k))

        return sorted((cost(k), k) for k in wanted)

    def _range(self, name: str) -> tuple[float, float]:
        """Limits of a coordinate with some slack, in [rad]; infinite where there are none."""
        bound = self.mechanism.limits.get(name, {}).get("q")
        if bound is None:
            return -np.inf, np.inf
        low, high = bound if isinstance(bound, tuple) else (-bound, bound)
        return low - _SLACK * (high - low), high + _SLACK * (high - low)

    def _fits(self, q: Float[Array, "n w"], turns: Int[Array, "k"], origin: Float[Array, "p"]) -> bool:
        """Whether most probes close, in agreement with all sensors."""
        wanted = np.array(q)
        wanted[:, self.angles] -= _TURN * turns
        pose = self.assembly.follow(wanted, self.sensors, origin=origin)
        missed = np.abs(self.sensors.miss(pose, wanted)).max(axis=1, initial=0.0)
        return bool(np.mean((self.assembly.gaps(pose) < OPEN) & (missed < MISFIT)) > 0.5)


def _corrected(log: Log, angles: Int[Array, "k"], turns: Int[Array, "s k"]) -> Log:
    """The log without these turns; reference positions are changed like the measured ones."""
    if turns.any():
        log = replace(
            log,
            q=_without(log, log.q, angles, turns),
            notices=(*log.notices, _notice(log, angles, turns)),
        )
    if log.q_ref is None:
        return log
    begins = [a for a, _ in log.segments]
    apart = np.round((log.q_ref[begins][:, angles] - log.q[begins][:, angles]) / _TURN).astype(np.int64)
    return replace(log, q_ref=_without(log, log.q_ref, angles, apart)) if apart.any() else log


def _without(
    log: Log, q: Float[Array, "n m"], angles: Int[Array, "k"], turns: Int[Array, "s k"]
) -> Float[Array, "n m"]:
    q = np.array(q, dtype=float)
    for (a, b), removed in zip(log.segments, turns, strict=True):
        q[a:b, angles] -= _TURN * removed
    return q


def _notice(log: Log, angles: Int[Array, "k"], turns: Int[Array, "s k"]) -> Notice:
    shown = []
    for i, column in enumerate(angles.tolist()):
        name, counts = log.position_names[column], turns[:, i]
        if len(set(counts.tolist())) == 1:
            shown += [f"{name} by {counts[0]:+d}"] if counts[0] else []
        else:
            begins = [float(log.t[a]) for a, _ in log.segments]
            shown += [
                f"{name} by {k:+d} from t = {t:.4g} s" for k, t in zip(counts, begins, strict=True) if k
            ]
    return notice("whole-turns", shown=", ".join(shown))
