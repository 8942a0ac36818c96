"""Columns that a fault of the log would add to the rows: one set per suspect.

Y = W chi + z s,     s = 0 without the fault

- delay: efforts delayed by s seconds are W chi(t - s), so z = -d(W chi)/dt; of one effort or of all;
  directions N that depend on the pose are not delayed: z = (dN/dt)^T B tau - d(W chi)/dt;
- gain: efforts that are too large by the factor 1 + s have z = W chi; of one effort (detected through
  the parameters shared with other efforts) or of all (detected with a known mass); in rows with several
  motors z is the contribution of one motor;
- zero: a joint whose zero is off by s has z = d(W chi - Y)/dq_j;
- dimension: a dimension of the description that is off by s, everywhere or at one of the places where it
  is used, has z = d(W chi - Y)/ds;
- gravity: gravity that is off by s along an axis has z = (W(g + e) - W(g)) chi;
- mounting: a force sensor that is rotated by a small vector s reads z = -e x f more;
- speed: friction that the drive terms do not model: sign(v), v, sqrt|v| sign(v), v |v|;
- load: friction that grows with the effort, |W chi| sign(v).

All depend on the estimate, so they come from a second pass over the log. Their projection on the
columns of W is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid.checks.pose_columns import PoseColumns
from dynid.checks.sampled import fill
from dynid.common.arrays import Array, Float
from dynid.common.change import Change, rounded
from dynid.conditioning.rewritten import WiderRows
from dynid.mechanism.description import unit_of
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.projection.model import RowSource
from dynid.statistics.uncertainty import student_t95

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
        test: `delay`, `gain`, `zero`, `dimension`, `gravity`, `mounting`, `speed` or `load`.
        about: The effort or joint.
        columns: Numbers of its columns; no other suspect has the same.
        unit: Of its size.
        measured: Whether its column is a measured effort, whose noise is in the residuals too.
        size: Estimate of its columns' coefficients, shape (c,), in `unit`.
        sigma: Their deviations, shape (c,).
        dof: Degrees of freedom of these.
        wald: Its squared size in units of its covariance.
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
    wald: float = 0.0
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
    def halves(self) -> Float[Array, "c"]:
        """Half the widths of the 95 % intervals of its sizes, shape (c,), in `unit`."""
        return np.asarray(student_t95(np.array([self.dof]))[0] * self.sigma)

    @property
    def half(self) -> float:
        """The same of its first size."""
        return float(self.halves[0])

    @property
    def beyond(self) -> Float[Array, "c"]:
        """Sizes less what noise of the column may make of them: between 0 and `bias`."""
        return np.asarray(self.size - np.clip(self.size, 0.0, self.bias))


def suspect_rows(
    mechanism: Mechanism,
    robots: Mapping[str, Mechanism],
    source: RowSource,
    parameters: tuple[Parameter, ...],
    chi: Float[Array, "p"],
    thin: int,
) -> tuple[WiderRows, tuple[Suspect, ...], tuple[str, ...]]:
    """Rows [W Z Y] with the columns of all suspects; these, numbered from zero; and what cannot be tested.

    Test columns are numbered behind the parameters: delay and gain of each row, its speed columns and
    its load, then the zeros of the measured joints, dimensions, gains of motors that share rows, directions
    of gravity and of a force sensor, and delay and gain of all efforts.

    Args:
        robots: Dimension -> the robot with it changed by a small step, as of `resized_robots`.
        source: Rows of one log.
        parameters: Standard parameters, one per column.
        chi: Standard parameters of the estimate, shape (p,), SI.
        thin: Zeros are computed at one sample in so many and interpolated.
    """
    posed = PoseColumns(mechanism, robots, source, parameters, chi, thin)
    joints, sizes, motors, turns = posed.joints, posed.sizes, posed.motors, posed.turns
    speeds = _motor_speeds(mechanism, source)
    p, k = len(chi), len(source.directions.names)
    n_shared = len(joints) + len(sizes) + len(motors) + 3 * len(turns) + 2
    felt = ~source.directions.homogeneous[:, None]

    def added(start: int, stop: int) -> tuple[Array, Callable[[slice], Array]]:
        predicted, weights = source.predicted(start, stop, chi)
        poses, drift = posed.between(start, stop)
        # A factor on all efforts is one on all parameters, which rows without effort do not contradict.
        late, gained = (drift - _slope(predicted, source.dt)) * felt, predicted * felt
        frictions = _frictions(source.motion.states(start, stop)[1] @ speeds)
        load = np.abs(predicted) * frictions[:, 0]

        def entries(part: slice) -> Float[Array, "a m"]:
            tests = np.empty((k, _PER_ROW + n_shared, part.stop - part.start))
            tests[:, 0], tests[:, -2] = late[:, part], late[:, part]
            tests[:, 1], tests[:, -1] = gained[:, part], predicted[:, part]
            tests[:, 2 : 2 + SPEEDS], tests[:, 2 + SPEEDS] = frictions[:, :, part], load[:, part]
            first = _PER_ROW
            for shared in poses:
                last = first + shared[1].shape[1]
                fill(shared, part, tests[:, first:last])
                first = last
            return tests.reshape(-1, part.stop - part.start)

        return weights, entries

    shared_columns = range(p + k * _PER_ROW, p + k * _PER_ROW + n_shared)
    starts = range(p, p + k * _PER_ROW, _PER_ROW)
    columns = [[*range(first, first + _PER_ROW), *shared_columns] for first in starts]
    rows = WiderRows(source, columns, added=added)
    # A row with several motors, or with none, has no single effort: its delay and gain are not tested.
    single = [bool(np.count_nonzero(efforts) == 1) for efforts in source.directions.effort_map]
    known = mechanism.joint_of_coordinate
    units = {name: "rad" if known[name].is_angle(name) else "m" for name in joints}
    described = {name: unit_of(mechanism, name) for name in sizes}
    suspects = _suspects(source, single, speeds, units, described, motors, turns)
    return rows, suspects, _untested(source, single, speeds, joints)


def _suspects(
    source: RowSource,
    single: Sequence[bool],
    speeds: Float[Array, "m k"],
    zero_units: Mapping[str, str],
    sizes: Mapping[str, str],
    motors: Sequence[str],
    turns: Sequence[str],
) -> tuple[Suspect, ...]:
    """All suspects, with their columns numbered from zero."""
    names = source.directions.names
    suspects_of_log = []
    for row, name in enumerate(names):
        at = row * _PER_ROW
        if not single[row]:
            continue
        suspects_of_log.append(Suspect("delay", name, (at,), "s"))
        if len(names) > 1:
            suspects_of_log.append(Suspect("gain", name, (at + 1,), "1"))
        if speeds[:, row].any():
            suspects_of_log.append(Suspect("speed", name, tuple(range(at + 2, at + 2 + SPEEDS)), ""))
            suspects_of_log.append(Suspect("load", name, (at + 2 + SPEEDS,), "1"))
    last = len(names) * _PER_ROW
    for name, unit in zero_units.items():
        suspects_of_log.append(Suspect("zero", name, (last,), unit))
        last += 1
    for name, unit in sizes.items():
        suspects_of_log.append(Suspect("dimension", name, (last,), unit))
        last += 1
    suspects_of_log += [
        Suspect("gain", name, (last + i,), "1", measured=True) for i, name in enumerate(motors)
    ]
    last += len(motors)
    for test in turns:
        suspects_of_log.append(Suspect(test, TURNED[test], (last, last + 1, last + 2), _TURN_UNITS[test]))
        last += 3
    if len(names) > 1 or not all(single):
        suspects_of_log.append(Suspect("delay", ALL, (last,), "s"))
    suspects_of_log.append(Suspect("gain", ALL, (last + 1,), "1"))
    return tuple(suspects_of_log)


def _untested(
    source: RowSource, single: Sequence[bool], speeds: Float[Array, "m k"], joints: Sequence[str]
) -> tuple[str, ...]:
    """What cannot be tested with these rows, and why."""
    reasons = []
    if np.any(np.count_nonzero(source.directions.effort_map, axis=1) > 1):
        reasons.append("delay and unmodelled friction of motors (several motors act in one equation)")
    names = zip(source.directions.names, speeds.T, single, strict=True)
    blind = [name for name, known, alone in names if alone and not known.any()]
    if blind and source.directions.effort_map.any():
        reasons.append(f"unmodelled friction of {', '.join(blind)} (its speed is not measured)")
    if not joints:
        reasons.append("joint zeros (the equations contain no measured joint)")
    return tuple(reasons)


def spread_windows(pieces: Sequence[tuple[int, int]], most: int = MOST_SAMPLES) -> list[tuple[int, int]]:
    """Ranges of samples as they are; of more than `most` samples some windows all over them."""
    total = sum(stop - start for start, stop in pieces)
    if total <= most:
        return list(pieces)
    size = max(_WINDOW, most // 4)
    windows = [(at, min(at + size, stop)) for start, stop in pieces for at in range(start, stop, size)]
    return windows[:: -(-total // most)]


def _slope(x: Float[Array, "k n"], dt: float) -> Float[Array, "k n"]:
    """Central difference along time; one-sided where the range ends, zero in a range of one sample."""
    x = np.concatenate([x[:, :1], x, x[:, -1:]], 1)
    slope = (x[:, 2:] - x[:, :-2]) / (2.0 * dt)
    slope[:, [0, -1]] *= 2.0
    return np.asarray(slope)


def _frictions(v: Float[Array, "n k"]) -> Float[Array, "k s n"]:
    """Columns of friction over speed: the sign first, then v, its root and its square with that sign."""
    columns = np.empty((v.shape[1], SPEEDS, len(v)))
    columns[:, 1] = v.T
    sign, size = np.sign(columns[:, 1], out=columns[:, 0]), np.abs(columns[:, 1])
    np.multiply(columns[:, 1], size, out=columns[:, 3])
    np.multiply(np.sqrt(size, out=size), sign, out=columns[:, 2])
    return columns


def _motor_speeds(mechanism: Mechanism, source: RowSource) -> Float[Array, "m k"]:
    """Speed of the one motor of each row as a sum of measured rates; zero where there is no such."""
    measured = source.motion.log.position_names
    speeds = np.zeros((len(measured), len(source.directions.names)))
    for row, felt in enumerate(source.directions.effort_map):
        motors = np.flatnonzero(felt)
        on = mechanism.actuators[int(motors[0])].on if len(motors) == 1 else {}
        if all(name in measured for name in on):
            speeds[:, row] = [on.get(name, 0.0) for name in measured]
    return speeds


def zero_words(size: float, unit: str, half: float | None = None) -> str:
    """How far positions are off that `size` corrects, in [rad] or [m], with half of the 95 % interval."""
    amount = f"{abs(size):.3g}{'' if half is None else f' +- {half:.2g}'} {unit}"
    degrees = f" ({abs(np.rad2deg(size)):.2g} degrees)" if unit == "rad" else ""
    return f"{amount}{degrees} too {'small' if size > 0.0 else 'large'}"


def delay_change(delays: Mapping[str, float], efforts: Sequence[str]) -> Change:
    """The columns that remove delays of efforts, in [s]; that of a single one is added to that of all.

    Args:
        delays: By name; `ALL` for all efforts.
        efforts: Names of all efforts, in the order of their columns.
    """
    common = delays.get(ALL, 0.0)
    totals = {"tau_{i}": common} if ALL in delays else {}
    totals |= {
        f"tau_{efforts.index(name) + 1}": common + delay for name, delay in delays.items() if name != ALL
    }
    return {"columns": {key: {"delay": rounded(delay, 3)} for key, delay in totals.items()}}
