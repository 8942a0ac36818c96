"""Poses and rates along a motion by compiled Newton steps, for one set of sensors.

The plan of the elimination is fixed. A sample at which it fails (the chosen pivots vanish there) is
marked, and solved by the slower methods of `Assembly`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.paged import LARGE, in_parts
from dynid.kinematics.closure import Closure
from dynid.kinematics.coordinates import States
from dynid.kinematics.elimination import Elimination
from dynid.kinematics.sensors import Sensors, turning_positions
from dynid.kinematics.tile import LANES

_HOMOTOPY = 24
_PATIENCE = 10  # maximum number of Newton steps per sample; more than one or two only after a jump
_LEAST_STRETCH = 8
_PART = 2048  # samples of one task of a thread, a multiple of LANES; fewer are not shared out
_SAME = 1e-6
_TURN = 2.0 * np.pi
_NONE = np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class Rates:
    """Motion at closed poses.

    Attributes:
        dq, ddq: Of all tree coordinates, shape (n, v), per s and per s^2.
        N: A basis of the tangent space, A N = 0, shape (n, v, d).
        condition: Approximate condition number of the map from the motion to the measured coordinates,
            shape (n,): large near a singular pose.
    """

    dq: Float[Array, "n v"]
    ddq: Float[Array, "n v"]
    N: Float[Array, "n v d"]
    condition: Float[Array, "n"]


class Tracker:
    """Compiled Newton on the closure of one mechanism for one set of measured coordinates."""

    def __init__(self, closure: Closure, plan: Elimination, sensors: Sensors) -> None:
        self.closure = closure
        self.sensors = sensors
        self._plan = plan.tables
        self._sensors = sensors.tables(len(plan.independent))
        self._freedoms = len(plan.independent)
        measured = set(sensors.position.tolist())
        turning = turning_positions(closure.mechanism)
        self._hinges = np.array([i for i in turning if i not in measured], dtype=np.int64)

    def resized(self, closure: Closure) -> Tracker:
        """The same for the closure of a robot with other dimensions: the same pivots are eliminated."""
        other = copy(self)
        other.closure = closure
        return other

    def follow(
        self, origin: Float[Array, "q"], wanted: Float[Array, "n w"]
    ) -> tuple[Float[Array, "n q"], Bool[Array, "n"]]:
        """Poses at unrelated samples: each on its own straight line from a known pose.

        Returns:
            Poses (n, n_q), and whether each converged.
        """
        start = self.sensors.read(origin[None])[0]
        begin = np.repeat(origin[None], LANES, axis=0)
        q, done = np.empty((len(wanted), len(origin))), np.zeros(len(wanted), dtype=bool)
        count = np.full(LANES, _HOMOTOPY)

        def compute(part: slice) -> None:
            ends = wanted[np.minimum(np.arange(part.start, part.start + LANES), len(wanted) - 1)]
            ways = [self.sensors.between(start, ends, (k + 1) / _HOMOTOPY) for k in range(_HOMOTOPY)]
            path = np.stack(ways, axis=1).reshape(LANES * _HOMOTOPY, -1)
            last, fine = np.empty((LANES, len(origin))), np.zeros(LANES, dtype=bool)
            self._march(path, _HOMOTOPY * np.arange(LANES), count, begin, last, fine, keep_last=True)
            width = part.stop - part.start
            q[part], done[part] = last[:width], fine[:width]

        in_parts(compute, len(wanted), LANES)
        return self.sensors.wound(q, start, wanted), done

    def track(
        self, origin: Float[Array, "q"], wanted: Float[Array, "n w"], threads: int = 1
    ) -> tuple[Float[Array, "n q"], Bool[Array, "n"]]:
        """Poses along a continuous motion, in parallel parts, each started by `follow`.

        Where the end of a part does not lead to the beginning of the next, the homotopy has
        lost the branch, and the next part is repeated from there.
        """
        n = len(wanted)
        wanted = np.ascontiguousarray(wanted, dtype=float)
        length = max(_LEAST_STRETCH, -(-n // (LANES * threads)))
        first = np.arange(0, n, length)
        begin, _ = self.follow(origin, wanted[first])
        q, done = np.empty((n, len(origin))), np.zeros(n, dtype=bool)
        groups = [first[k : k + LANES] for k in range(0, len(first), LANES)]

        def run(group: Int[Array, "g"]) -> None:
            self._stretches(wanted, group, np.minimum(length, n - group), begin[group // length], q, done)

        if len(groups) > 1:
            with ThreadPoolExecutor(len(groups)) as pool:
                list(pool.map(run, groups))
        else:
            run(groups[0])
        self._join(wanted, first, length, q, done)
        self._unwind(first, q, done)
        return q, done

    def _unwind(self, first: Int[Array, "s"], q: Float[Array, "n q"], done: Bool[Array, "n"]) -> None:
        """Remove full turns by which joints that are not measured differ between parts."""
        at = first[1:]
        hinges = self._hinges
        apart = np.round((q[at][:, hinges] - q[at - 1][:, hinges]) / _TURN)
        apart[~(done[at] & done[at - 1])] = 0.0
        if not apart.any():
            return
        for a, b, turns in zip(at, [*at[1:], len(q)], np.cumsum(apart, axis=0), strict=True):
            q[a:b, hinges] -= _TURN * turns

    def march(
        self, begin: Float[Array, "b q"], first: Int[Array, "b"], wanted: Float[Array, "n w"]
    ) -> tuple[Float[Array, "n q"], Bool[Array, "n"]]:
        """Poses of a motion whose poses at the samples `first` are known; first[0] is 0."""
        n = len(wanted)
        wanted = np.ascontiguousarray(wanted, dtype=float)
        q, done = np.empty((n, begin.shape[1])), np.zeros(n, dtype=bool)
        counts = np.diff(np.append(first, n))
        for k in range(0, len(first), LANES):
            part = slice(k, k + LANES)
            self._stretches(wanted, first[part], counts[part], begin[part], q, done)
        return q, done

    def rates(
        self, q: Float[Array, "n q"], first: Float[Array, "n m"], second: Float[Array, "n m"]
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Velocities and accelerations from those measured; see `newton_kernels.motion_rates`.

        Returns:
            dq, ddq, N, condition, and the error of the fixed pivots.
        """
        dq, ddq = (np.empty((len(q), self.closure.tree.n_v)) for _ in range(2))
        return dq, ddq, *self._rates(q, _NONE, first, second, False, dq, ddq)

    def tangents(self, q: Float[Array, "n q"], dq: Float[Array, "n v"]) -> tuple[Array, Array]:
        """N at poses whose velocities are known, and the error of the fixed pivots."""
        N, _, left = self._rates(q, _NONE, _NONE, _NONE, True, np.ascontiguousarray(dq), _NONE)
        return N, left

    def nearest_rates(
        self, q: Float[Array, "n q"], given: Float[Array, "n m"], gamma: Float[Array, "n c"]
    ) -> tuple[Array, Array, Array]:
        """Rates x with A x = -gamma nearest to those given; N and condition."""
        x = np.empty((len(q), self.closure.tree.n_v))
        N, condition, _ = self._rates(q, gamma, given, _NONE, False, x, _NONE)
        return x, N, condition

    def _rates(
        self, q: Array, gamma: Array, first: Array, second: Array, known: bool, dq: Array, ddq: Array
    ) -> tuple[Array, Array, Array]:
        """Fills dq and ddq; N, condition, and the error of the pivots."""
        from dynid.kinematics.newton_kernels import motion_rates

        n = len(q)
        out = np.empty((n, self.closure.tree.n_v, self._freedoms)), np.empty(n), np.empty(n)
        batch = [np.ascontiguousarray(x, dtype=float) for x in (q, gamma, first, second)]

        def compute(part: slice) -> None:
            given, made = [x[part] for x in batch], [x[part] for x in (dq, ddq, *out)]
            none = np.zeros_like(made[0]), np.zeros(3)
            motion_rates(self.closure.tables, self._plan, self._sensors, *given, known, *made, *none)

        in_parts(compute, n, _PART)
        return out

    def _join(
        self, wanted: Array, first: Int[Array, "s"], length: int, q: Array, done: Bool[Array, "n"]
    ) -> None:
        """Make every part continue where the previous one ends."""
        joints = first[1:]
        if len(joints) == 0:
            return
        ahead, fine = self.march_one(q[joints - 1], wanted[joints])
        fine &= done[joints - 1] & done[joints]
        broken = np.flatnonzero(fine & ~same_pose(self.closure, ahead, q[joints]))
        for k in broken.tolist():
            at = int(joints[k])
            ahead, fine = self.march_one(q[at - 1 : at], wanted[at : at + 1])
            if not fine[0] or same_pose(self.closure, ahead, q[at : at + 1])[0]:
                continue
            stop = at
            while stop < len(wanted):  # until a part on the same branch is found
                group = np.array([stop])
                count = np.minimum(length, len(wanted) - group)
                self._stretches(wanted, group, count, q[stop - 1 : stop], q, done)
                stop += int(count[0])
                if stop >= len(wanted) or not done[stop - 1]:
                    break
                ahead, fine = self.march_one(q[stop - 1 : stop], wanted[stop : stop + 1])
                if not fine[0] or same_pose(self.closure, ahead, q[stop : stop + 1])[0]:
                    break

    def march_one(
        self, q: Float[Array, "n q"], wanted: Float[Array, "n w"]
    ) -> tuple[Float[Array, "n q"], Bool[Array, "n"]]:
        """The pose near a known one at which the measured coordinates have their values."""
        out, done = np.empty_like(q), np.zeros(len(q), dtype=bool)
        wanted = np.ascontiguousarray(wanted, dtype=float)
        for at in range(0, len(q), LANES):
            first = np.arange(at, min(at + LANES, len(q)))
            self._stretches(wanted, first, np.ones(len(first), dtype=np.int64), q[first], out, done)
        return out, done

    def _stretches(
        self,
        wanted: Array,
        first: Int[Array, "g"],
        count: Int[Array, "g"],
        begin: Array,
        q: Array,
        done: Array,
    ) -> None:
        """March up to LANES parts; idle lanes repeat the last one and write nothing."""
        spare = LANES - len(first)
        lanes = [np.concatenate([x, np.repeat(x[-1:], spare, axis=0)]) for x in (first, count, begin)]
        lanes[1][len(first) :] = 0
        self._march(wanted, lanes[0], lanes[1], lanes[2], q, done, keep_last=False)

    def _march(
        self,
        wanted: Array,
        first: Array,
        count: Array,
        begin: Array,
        out: Array,
        done: Array,
        *,
        keep_last: bool,
    ) -> None:
        from dynid.kinematics.newton_kernels import march

        march(
            self.closure.tables,
            self._plan,
            self._sensors,
            np.ascontiguousarray(wanted, dtype=float),
            np.ascontiguousarray(first, dtype=np.int64),
            np.ascontiguousarray(count, dtype=np.int64),
            keep_last,
            np.ascontiguousarray(begin, dtype=float),
            _PATIENCE,
            out,
            done,
        )


class Tracked:
    """Poses of all samples of a log, how far each is open, and their rates: passes after the first read them.

    Those of a long log are not kept.
    """

    def __init__(self, n: int = 0, positions: int = 0, velocities: int = 0) -> None:
        kept = n if np.dtype(float).itemsize * n * positions < LARGE else 0
        self._poses, self._gaps = np.empty((kept, positions)), np.full(kept, np.inf)
        self._dq, self._ddq, self._condition = *np.empty((2, kept, velocities)), np.full(kept, np.inf)

    @property
    def count(self) -> int:
        """Samples for which there is room."""
        return len(self._gaps)

    def keep(self, first: int, states: States, gaps: Float[Array, "n"]) -> None:
        """Keep the states of samples first, first + 1, ...; gaps in [m] or [rad]."""
        if len(self._gaps):
            part = slice(first, first + len(gaps))
            self._poses[part], self._gaps[part], self._dq[part], self._ddq[part] = (
                states.q,
                gaps,
                states.dq,
                states.ddq,
            )
            self._condition[part] = np.inf if states.condition is None else states.condition

    def of(self, start: int, stop: int, most: float) -> tuple[Float[Array, "n q"], Float[Array, "n"]] | None:
        """Poses and gaps of the samples [start, stop); None if not all are known with gaps below `most`."""
        gaps = self._gaps[start:stop]
        known = len(gaps) == stop - start and bool(np.all(gaps < most))
        return (self._poses[start:stop], gaps) if known else None

    def rates(
        self, start: int, stop: int
    ) -> tuple[Float[Array, "n v"], Float[Array, "n v"], Float[Array, "n"]]:
        """Velocities, accelerations and condition numbers of samples that `of` knows."""
        return self._dq[start:stop], self._ddq[start:stop], self._condition[start:stop]


def same_pose(closure: Closure, a: Float[Array, "n q"], b: Float[Array, "n q"]) -> Bool[Array, "n"]:
    """Whether poses agree; full turns of hinges and signs of quaternions do not matter."""
    difference = np.abs(a - b)
    hinges = turning_positions(closure.mechanism)
    difference[:, hinges] -= _TURN * np.round(difference[:, hinges] / _TURN)
    difference = np.abs(difference)
    tree = closure.tree
    for start in tree.q_start[tree.kind == 3].tolist():
        part = slice(start, start + 4)
        difference[:, part] = np.minimum(difference[:, part], np.abs(a[:, part] + b[:, part]))
    return np.asarray(difference.max(axis=1, initial=0.0) < _SAME)
