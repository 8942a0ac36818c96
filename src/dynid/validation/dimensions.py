"""Corrections of a description by one number: mm for m, degrees for radians, a length, zero or scale off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from dynid.common.change import rounded
from dynid.common.notices import notice
from dynid.mechanism.description import ZERO, current, unit_of, unknown_change, unknown_entry
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.variant import resized
from dynid.motion.log import Log
from dynid.statistics.estimate import ResidualTest
from dynid.validation.hypotheses import Hypothesis, efforts_about, shifted_zero
from dynid.validation.likelihood import EXPLAINS

_LARGE = 5.0  # m or rad: no usual dimension in SI units
_UNITS = (("mm", 1e-3), ("degrees", np.pi / 180.0))
MOST_SIZES = 10
# Zeros and dimensions that the linear tests doubt at this level are fitted at their best value.
_DOUBTED, _MOST_DOUBTED = 1e-2, 5
_MOST_UNTESTED = 4
_MOST_TURNED = 2
_FIRST_ANGLE, _FIRST_LENGTH = 0.05, 0.01  # rad, m: first step where nothing is known
_FIRST_SCALE, _MOST_SCALE = 0.05, 0.6  # of a position: first step, and what is off by more is a unit
_TOPS = 4  # parabolas, each through the best three sizes
_SAME = 0.02  # of the first step: sizes that are closer need not both be tried
_LEAST_STEP, _LONGEST = 1e-3, 8.0  # rad or m: first step of a search; times the first step: the last
_HALVINGS = 4  # of a first step with which the loops do not close
_FLAT = 0.01  # of the logarithm of the likelihood: no noise is that small
_MOST_ZERO, _MOST_SIZE = 0.6, 0.5  # rad or m; of a dimension: what is off by more is another mistake

# Gives a correction its fit; empty where it cannot be fitted.
Tried = Callable[[Hypothesis], list[Hypothesis]]


def large_dimensions(mechanism: Mechanism) -> list[str]:
    """Named dimensions that are too large for metres and radians."""
    return [name for name, value in mechanism.geometry.items() if abs(value) > _LARGE]


def dimension_units(
    mechanism: Mechanism, logs: tuple[Log, ...], _: Sequence[ResidualTest] = ()
) -> Iterator[Hypothesis]:
    """Dimensions that are too large for metres and radians, in other units: all of them, then one by one."""
    large = large_dimensions(mechanism)
    if not large:
        return
    groups = [large] if len(large) == 1 else [large, *([name] for name in large[:MOST_SIZES])]
    if len(large) < len(mechanism.geometry):
        groups.append(list(mechanism.geometry))
    for names in groups:
        for unit, factor in _UNITS if set(names) <= set(large) else _UNITS[:1]:
            robot = resized(mechanism, {name: factor * mechanism.geometry[name] for name in names})
            if robot is not None:
                shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
                yield Hypothesis(
                    notice("dimension-unit", names=shown, unit=unit),
                    robot,
                    logs,
                    f"dimension {shown} in {unit}",
                )


def other_size(mechanism: Mechanism, logs: tuple[Log, ...], name: str, value: float) -> Hypothesis | None:
    """One dimension with another value, in [m] or [rad]; None where the robot cannot be built."""
    robot = resized(mechanism, {name: value})
    if robot is None:
        return None
    described, unit = current(mechanism, name), unit_of(mechanism, name)
    remark = notice(
        "dimension-off",
        name=name,
        value=value,
        described=described,
        unit=unit,
        entry=unknown_entry(name),
        change=unknown_change(name),
    )
    return Hypothesis(remark, robot, logs, f"dimension {name} = {value:.4g} {unit}", fitted=1)


def doubted(
    mechanism: Mechanism, positions: Sequence[str], tests: Sequence[ResidualTest], poor: bool
) -> list[ResidualTest]:
    """Zeros and dimensions that the residuals doubt, those that explain most first; then untested ones.

    Dimensions that are too large for SI units have another unit, not another size.

    Args:
        mechanism: The description.
        positions: Names of the measured positions.
        tests: Linear tests of the residuals.
        poor: Whether predictions are poor: then an error is too large for linear tests, and all are doubted.
            They are also all doubted if one of them is flagged.
    """
    large = large_dimensions(mechanism)
    suspects = [
        result
        for result in tests
        if result.test == "zero" or (result.test == "dimension" and result.about not in large)
    ]
    # One that is flagged may be imitating another one, whose error is too large to be linear.
    every = poor or any(result.warned for result in suspects)
    doubts = [result for result in suspects if every or result.p_value < _DOUBTED]
    doubts = sorted(doubts, key=lambda result: -result.explains)[:_MOST_DOUBTED]
    tested = {(result.test, result.about) for result in tests}
    names = [("zero", name) for name in positions]
    names += [("dimension", name) for name in mechanism.geometry if name not in large]
    untested = [key for key in names if key not in tested] if doubts else []
    return [*doubts, *(_untested(mechanism, *key) for key in untested[:_MOST_UNTESTED])]


def _untested(mechanism: Mechanism, test: str, name: str) -> ResidualTest:
    """A zero or dimension whose first order the parameters absorb: a search over its size may find it."""
    unit = unit_of(mechanism, f"{ZERO}{name}" if test == "zero" else name)
    step = _FIRST_ANGLE if unit == "rad" else _FIRST_LENGTH
    return ResidualTest(test, name, step, unit, None, 1.0, False)


def quarter_turns(
    mechanism: Mechanism, logs: tuple[Log, ...], tests: Sequence[ResidualTest], poor: bool
) -> Iterator[Hypothesis]:
    """Zeros that are off by quarters of a turn, as between conventions of frames: far from linear.

    Args:
        mechanism, logs: As described.
        tests: Linear tests of the residuals: of the joints that explain most.
        poor: Whether predictions are poor; else only of joints that explain most of the residual.
    """
    zeros = [t for t in tests if t.test == "zero" and t.unit == "rad" and (poor or t.explains > EXPLAINS)]
    for test in sorted(zeros, key=lambda test: -test.explains)[:_MOST_TURNED]:
        joint = logs[0].position_names.index(test.about)
        for quarters in (1, -1, 2):
            yield replace(shifted_zero(mechanism, logs, joint, 0.5 * np.pi * quarters), fitted=0)


def position_scales(mechanism: Mechanism, logs: tuple[Log, ...], tried: Tried) -> list[Hypothesis]:
    """The joint whose scale, or gear ratio, leaves least, at its most likely size.

    The parameters absorb the scale of an effort, but not that of a position. So each position is tried with
    one step, and only the best of them is searched, with and without its effort.
    """

    def stepped(joint: int) -> float:
        ways = (step for size in (_FIRST_SCALE, -_FIRST_SCALE) for step in tried(at(joint, size, False)))
        return max((trial.likely for trial in ways), default=-np.inf)

    def at(joint: int, size: float, geared: bool) -> Hypothesis:
        return scaled_position(mechanism, logs, joint, size, geared)

    names = logs[0].position_names
    joints = [mechanism.joint_of_coordinate.get(name) for name in names]
    plain = [k for k, joint in enumerate(joints) if joint is not None and not joint.has_quaternion]
    likely = {joint: stepped(joint) for joint in plain}
    if not likely or max(likely.values()) <= 0.0:
        return []
    joint = max(plain, key=lambda k: likely[k])
    kinds = ("scale", "gear") if names[joint] in logs[0].effort_names else ("scale",)
    tests = [ResidualTest(kind, names[joint], _FIRST_SCALE, "", None, 1.0, False) for kind in kinds]
    return [trial for test in tests for trial in best_size(mechanism, logs, test, tried)]


def scaled_position(
    mechanism: Mechanism, logs: tuple[Log, ...], joint: int, size: float, geared: bool
) -> Hypothesis:
    """A joint whose position is too small by the factor 1 + size: counts of its encoder, or its gear ratio.

    Args:
        mechanism, logs: As described.
        joint: Number of the measured position.
        size: Of the correction, dimensionless.
        geared: Whether its effort was computed with the same gear ratio: it is too large by this factor.
    """
    name, factor = logs[0].position_names[joint], 1.0 + size
    scale = np.ones(len(logs[0].position_names))
    scale[joint] = factor
    columns: dict[str, dict[str, float]] = {f"q_{joint + 1}": {"scale": rounded(factor, 4)}}
    corrected = tuple(log.with_positions(scale) for log in logs)
    efforts = efforts_about(mechanism, name) if geared else []
    if efforts:
        columns[f"tau_{efforts[0] + 1}"] = {"scale": rounded(1.0 / factor, 4)}
        tau = np.ones(len(mechanism.actuators))
        tau[efforts] = 1.0 / factor
        corrected = tuple(replace(log, tau=log.tau * tau) for log in corrected)
    change, percent = {"columns": columns}, 100.0 * abs(1.0 / factor - 1.0)
    large = "large" if factor < 1.0 else "small"
    remark = notice("position-scale", joint=name, percent=percent, large=large, change=change)
    if efforts:
        remark = notice("position-scale", "geared", joint=name, percent=percent, large=large, change=change)
    return Hypothesis(
        remark,
        mechanism,
        corrected,
        f"{'gear ratio' if efforts else 'scale'} of '{name}' corrected by {factor:.4g}",
        fitted=1,
        scale=tuple(scale.tolist()),
        gains={name: 1.0 / factor} if efforts else {},
    )


_AtSize = Callable[[float], Hypothesis | None]


def _at_size(mechanism: Mechanism, logs: tuple[Log, ...], test: ResidualTest) -> _AtSize:
    """The correction of a zero or dimension by so much; None: too large, or no robot can be built."""
    if test.test == "zero":
        joint = logs[0].position_names.index(test.about)
        return lambda size: shifted_zero(mechanism, logs, joint, size) if abs(size) < _MOST_ZERO else None
    if test.test in ("scale", "gear"):
        joint, geared = logs[0].position_names.index(test.about), test.test == "gear"
        return lambda size: (
            scaled_position(mechanism, logs, joint, size, geared) if abs(size) < _MOST_SCALE else None
        )
    described = current(mechanism, test.about)
    most = _MOST_SIZE * abs(described)
    return lambda size: (
        other_size(mechanism, logs, test.about, described + size) if abs(size) < most else None
    )


def best_size(
    mechanism: Mechanism, logs: tuple[Log, ...], test: ResidualTest, tried: Tried
) -> list[Hypothesis]:
    """The most likely size of a correction: the linear one, its doubles, and tops of parabolas.

    If the first step makes the logs less likely, it was the wrong way. If it changes nothing, the parameters
    absorb this correction, and no other size needs to be tried.
    """
    at_size = _at_size(mechanism, logs, test)
    step = float(np.copysign(max(abs(test.value), _LEAST_STEP), test.value))
    trials: list[Hypothesis] = []
    points = [(0.0, 0.0, 1.0)]  # likelihood, size, and squares that are left

    def likely(at: float) -> float:
        candidate = at_size(at)
        fitted = [] if candidate is None else tried(candidate)
        trials.extend(fitted)
        points.extend((trial.likely, at, trial.left**2) for trial in fitted)
        return fitted[0].likely if fitted else -np.inf

    a = likely(step)
    # The linear size may be far too large for the loops to close.
    for _ in range(_HALVINGS):
        if np.isfinite(a):
            break
        step *= 0.5
        a = likely(step)
    if abs(a) < _FLAT:
        return trials
    if np.isfinite(a) and a < 0.0 < (back := likely(-step)):
        a, step = back, -step
    b = likely(2.0 * step)
    if not np.isfinite(b):
        a, b, step = likely(0.5 * step), a, 0.5 * step
    if not np.isfinite(a + b):
        return trials
    sizes, values = [0.0, 1.0, 2.0], [0.0, a, b]
    while (
        values[-1] > values[-2] and sizes[-1] < _LONGEST and np.isfinite(more := likely(2 * sizes[-1] * step))
    ):
        sizes, values = [*sizes, 2.0 * sizes[-1]], [*values, more]
    for _ in range(_TOPS):
        best = sorted(points, reverse=True)[:3]
        sizes = [at / step for _, at, _ in best]
        top = _top(sizes, [squares for *_, squares in best])
        if min(abs(top - at) for at in sizes) < _SAME or not np.isfinite(likely(top * step)):
            break
    most = max(range(len(trials)), key=lambda k: trials[k].likely)
    return [replace(trials[most], searched=_resized(test, points[most + 1][1]))]


def _resized(test: ResidualTest, size: float) -> ResidualTest:
    """A linear test with the size of a fit, and with its interval about that."""
    ends = test.ci95 and (size + test.ci95[0] - test.value, size + test.ci95[1] - test.value)
    return replace(test, value=size, ci95=ends)


def _top(sizes: Sequence[float], squares: Sequence[float]) -> float:
    """Where squares of residuals at three sizes, the least first, are least: they are about a parabola.

    Where the three bend the other way, the parabola is still far, and the root of squares is about a line.
    """
    curve = np.polyfit(sizes, squares, 2)
    if curve[0] > 0.0:
        top = -0.5 * curve[1] / curve[0]
    else:
        least, next_least = np.sqrt(squares[:2])
        top = sizes[0] + least * (sizes[0] - sizes[1]) / max(next_least - least, _FLAT)
    return float(np.clip(top, -_LONGEST, _LONGEST))
