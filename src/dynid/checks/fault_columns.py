"""Columns that a fault of the log would add to the rows: one set per suspect.

Y = W chi + z s,     s = 0 without the fault

- delay: efforts delayed by s seconds are W chi(t - s), so z = -d(W chi)/dt; of one effort or of all;
  directions N that depend on the pose are not delayed: z = (dN/dt)^T B tau - d(W chi)/dt;
- gain: efforts that are too large by the factor 1 + s have z = W chi; of one effort (detected through
  the parameters shared with other efforts) or of all (detected with a known mass); in rows with several
  motors z is the contribution of one motor;
- zero: a joint whose zero is off by s has z = d(W chi - Y)/dq_j;
- gravity: gravity that is off by s along an axis has z = (W(g + e) - W(g)) chi;
- mounting: a force sensor that is rotated by a small vector s reads z = -e x f more;
- speed: friction that the drive terms do not model: sign(v), v, sqrt|v| sign(v), v |v|;
- load: friction that grows with the effort, |W chi| sign(v).

All depend on the estimate, so they come from a second pass over the log. Their projection on the
columns of W is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from dynid.checks.pose_columns import Columns, PoseColumns
from dynid.common.arrays import Array
from dynid.conditioning.rewritten import predictor
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.projection.contract import RowSource
from dynid.regressor.layout import Layout

SPEEDS = 4
ALL = "all efforts"
TURNED = {"gravity": "the base", "mounting": "the sensor"}
_TURN_UNITS = {"gravity": "m/s^2", "mounting": "rad"}
_PER_ROW = 3 + SPEEDS
# More samples than this do not improve the tests.
MOST_SAMPLES = 65_536
_WINDOW = 4096


@dataclass(frozen=True, eq=False)
class Suspect:
    """One thing that may be wrong, the test columns that show it, and the result once it is tested.

    Attributes:
        test: `delay`, `gain`, `zero`, `gravity`, `mounting`, `speed` or `load`.
        about: The effort or joint.
        columns: Numbers of its columns; no other suspect has the same.
        unit: Of its size.
        measured: Whether its column is a measured effort, whose noise is in the residuals too.
        size: Estimate of its columns' coefficients, shape (c,), in `unit`.
        sigma: Their deviations, shape (c,).
        dof: Degrees of freedom of these.
        p_value: Of the hypothesis that there is no such fault.
        explains: Part of the residual sum of squares of the rows concerned, 0 to 1.
        gain: The same as a number of weighted squares.
        share: Norm of what it explains, relative to the measured norm of these rows.
        places: Columns to which `size` belongs: those that these data determine, from 0.
        bias: Largest size caused by noise of the column alone, in `unit`.
        alike: Suspects that these data do not separate from this one.
    """

    test: str
    about: str
    columns: tuple[int, ...]
    unit: str
    measured: bool = False
    size: Float[Array, "c"] = field(default_factory=lambda: np.zeros(0))
    sigma: Float[Array, "c"] = field(default_factory=lambda: np.zeros(0))
    dof: float = 0.0
    p_value: float = 1.0
    explains: float = 0.0
    gain: float = 0.0
    share: float = 0.0
    places: tuple[int, ...] = ()
    bias: float = 0.0
    alike: tuple[Suspect, ...] = ()

    @property
    def words(self) -> str:
        """Test and effort or joint."""
        return f"{self.test} of {self.about}"

    @property
    def beyond(self) -> Float[Array, "c"]:
        """Sizes less what noise of the column may make of them: between 0 and `bias`."""
        return np.asarray(self.size - np.clip(self.size, 0.0, self.bias))


class SuspectRows:
    """Rows [W Z Y]: a source with the columns of all suspects (a `PackedRows`).

    Test columns are numbered behind the parameters: delay and gain of each row, its speed columns and
    its load, then the zeros of the measured joints, gains of motors that share rows, directions of gravity
    and of a force sensor, and delay and gain of all efforts.

    Args:
        source: Rows of one log.
        parameters: Standard parameters, one per column.
        chi: Standard parameters of the estimate, shape (p,), SI.
        thin: Zeros are computed at one sample in so many and interpolated.
        most: Samples to look at; of a longer log some windows all over it are taken.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        source: RowSource,
        parameters: tuple[Parameter, ...],
        chi: Float[Array, "p"],
        thin: int,
        most: int = MOST_SAMPLES,
    ) -> None:
        self._most = most
        self.source, self.dt, self.chi = source, source.dt, chi
        self._poses = PoseColumns(mechanism, source, parameters, chi, thin)
        inner, p, k = source.layout, len(chi), len(source.directions.names)
        self._compare = predictor(inner, chi)
        self._speeds = _motor_speeds(mechanism, source)
        known = mechanism.joint_of_coordinate
        self._zero_units = [(n, "rad" if known[n].is_angle(n) else "m") for n in self._poses.joints]
        self._shared = len(self._poses.joints) + len(self._poses.motors) + 3 * len(self._poses.turns)
        # A row with several motors, or with none, has no single effort: its delay and gain are not tested.
        self._own = [bool(np.count_nonzero(felt) == 1) for felt in source.directions.effort_map]
        self._felt = ~source.directions.homogeneous[:, None]
        size = _PER_ROW
        columns, starts, take = [], [0], []
        extra = size + self._shared + 2
        first = p + k * size
        for row in range(k):
            a, b = inner.start[row], inner.start[row + 1]
            take += [*range(a, b - 1), *(inner.n_entries + row * extra + np.arange(extra)), b - 1]
            tests = [*(p + row * size + np.arange(size)), *(first + np.arange(self._shared + 2))]
            columns += [*inner.columns[a : b - 1], *tests, -1]
            starts.append(len(columns))
        self.layout = Layout(np.array(starts), np.array(columns))
        self._take = np.array(take)

    def suspects(self) -> tuple[Suspect, ...]:
        """All suspects, with their columns numbered from zero."""
        names = self.source.directions.names
        found = []
        for row, name in enumerate(names):
            at = row * _PER_ROW
            if not self._own[row]:
                continue
            found.append(Suspect("delay", name, (at,), "s"))
            if len(names) > 1:
                found.append(Suspect("gain", name, (at + 1,), "1"))
            if self._speeds[row] is not None:
                found.append(Suspect("speed", name, tuple(range(at + 2, at + 2 + SPEEDS)), ""))
                found.append(Suspect("load", name, (at + 2 + SPEEDS,), "1"))
        last = len(names) * _PER_ROW
        for name, unit in self._zero_units:
            found.append(Suspect("zero", name, (last,), unit))
            last += 1
        motors = enumerate(self._poses.motors)
        found += [Suspect("gain", name, (last + i,), "1", measured=True) for i, name in motors]
        last += len(self._poses.motors)
        for test in self._poses.turns:
            found.append(Suspect(test, TURNED[test], (last, last + 1, last + 2), _TURN_UNITS[test]))
            last += 3
        if len(names) > 1 or not all(self._own):
            found.append(Suspect("delay", ALL, (last,), "s"))
        found.append(Suspect("gain", ALL, (last + 1,), "1"))
        return tuple(found)

    def untested(self) -> tuple[str, ...]:
        """What cannot be tested with these rows, and why."""
        found = []
        if np.any(np.count_nonzero(self.source.directions.effort_map, axis=1) > 1):
            found.append("delay and unmodelled friction of motors (several motors act in one equation)")
        names = zip(self.source.directions.names, self._speeds, self._own, strict=True)
        blind = [name for name, speed, own in names if own and speed is None]
        if blind and self.source.directions.effort_map.any():
            found.append(f"unmodelled friction of {', '.join(blind)} (its speed is not measured)")
        if not self._poses.joints:
            found.append("joint zeros (the equations contain no measured joint)")
        return tuple(found)

    @property
    def n_tests(self) -> int:
        """Number of test columns."""
        return len(self.source.directions.names) * _PER_ROW + self._shared + 2

    def pieces(self) -> Sequence[tuple[int, int]]:
        """The source's; of a long log some windows all over it."""
        return spread_windows(self.source.pieces(), self._most)

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Entries with the test columns before each measured side."""
        dq = self.source.motion.states(start, stop)[1]
        poses = self._poses.between(start, stop)
        held: tuple[int, Array, Array, Array] | None = None
        before: Array | None = None
        for at, packed, weights in self.source.rows(start, stop, tile):
            predicted = self._compare(packed)[1]
            if held is not None:
                yield self._joined(*held, before, predicted[:, :1], dq, start, poses)
                before = held[3][:, -1:]
            held = (at, packed.copy(), weights, predicted)
        if held is not None:
            yield self._joined(*held, before, None, dq, start, poses)

    def _joined(
        self,
        at: int,
        packed: Array,
        weights: Array,
        predicted: Array,
        before: Array | None,
        after: Array | None,
        dq: Array,
        start: int,
        poses: Columns,
    ) -> tuple[int, Array, Array]:
        n = packed.shape[1]
        part = slice(at - start, at - start + n)
        slope = _slope(predicted, before, after, self.dt) - poses.drift[:, part]
        tests = np.zeros((len(predicted), _PER_ROW + self._shared + 2, n))
        tests[:, 0] = tests[:, -2] = -slope * self._felt
        # A factor on all efforts is one on all parameters, which rows without effort do not contradict.
        tests[:, 1], tests[:, -1] = predicted * self._felt, predicted
        for row, measured in enumerate(self._speeds):
            if measured is not None:
                v = dq[part] @ measured
                tests[row, 2 : 2 + SPEEDS] = _frictions(v)
                tests[row, 2 + SPEEDS] = np.abs(predicted[row]) * np.sign(v)
        shared = [poses.zeros, poses.motors, poses.turns]
        tests[:, _PER_ROW:-2] = np.concatenate([one[:, :, part] for one in shared], axis=1)
        return at, np.concatenate([packed, tests.reshape(-1, n)])[self._take], weights


def spread_windows(pieces: Sequence[tuple[int, int]], most: int = MOST_SAMPLES) -> list[tuple[int, int]]:
    """Ranges of samples as they are; of more than `most` samples some windows all over them."""
    total = sum(stop - start for start, stop in pieces)
    if total <= most:
        return list(pieces)
    size = max(_WINDOW, most // 4)
    windows = [(at, min(at + size, stop)) for start, stop in pieces for at in range(start, stop, size)]
    return windows[:: -(-total // most)]


def _slope(
    x: Float[Array, "k n"], before: Array | None, after: Array | None, dt: float
) -> Float[Array, "k n"]:
    """Central difference along time; one-sided where the range ends."""
    wide = [one for one in (before, x, after) if one is not None]
    padded = np.concatenate(wide, axis=1)
    if padded.shape[1] < 2:
        return np.zeros_like(x)
    first = 0 if before is None else 1
    return np.asarray(np.gradient(padded, dt, axis=1)[:, first : first + x.shape[1]])


def _frictions(v: Float[Array, "n"]) -> Float[Array, "s n"]:
    sign = np.sign(v)
    return np.stack([sign, v, np.sqrt(np.abs(v)) * sign, v * np.abs(v)])


def _motor_speeds(mechanism: Mechanism, source: RowSource) -> list[Float[Array, "m"] | None]:
    """Speed of the one motor of each row as a sum of measured rates; None where there is no such."""
    measured = source.motion.log.position_names
    found: list[Float[Array, "m"] | None] = []
    for felt in source.directions.effort_map:
        motors = np.flatnonzero(felt)
        on = mechanism.actuators[int(motors[0])].on if len(motors) == 1 else {}
        if not on or any(name not in measured for name in on):
            found.append(None)
            continue
        found.append(np.array([float(on.get(name, 0.0)) for name in measured]))
    return found
