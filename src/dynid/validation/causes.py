"""Is the description right? The same logs fitted with one thing corrected, and the corrections ranked.

Each hypothesis corrects the description or the logs (gravity, branch of the loops, dimensions, friction,
units, signs and order of positions, payload labels) and is fitted again on a part of each log. With rms_h(j)
and rms_0(j) the residuals of effort j with and without the correction,

    left_h = sqrt( sum_j ( rms_h(j) / |Y_j| )^2 / sum_j ( rms_0(j) / |Y_j| )^2 )

The hypothesis with the least left over is named first, others that leave about as little beside it. Faults
that only shift the residual a little (delay, gain, joint zero, tilted gravity) have linear tests, which are
ranked together with the refits. Logs that are fitted to the noise contradict nothing: then only other
branches of closed robots are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.checks.turned_gravity import fit_under
from dynid.common.catalogue import Severity
from dynid.common.errors import DynidError
from dynid.common.notices import Notice, notice
from dynid.fit import Fit
from dynid.kinematics.assembly import assembly_of
from dynid.linear import LinearFit, linear_fit
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.problem import prepare
from dynid.realise import realise
from dynid.statistics.estimate import Estimate, ResidualTest
from dynid.validation.branches import branch_hypotheses
from dynid.validation.closure_causes import closure_cause
from dynid.validation.dimensions import MOST_SIZES, dimension_units, large_dimensions, other_size
from dynid.validation.hypotheses import (
    Hypothesis,
    delays,
    drive_friction,
    effort_signs,
    gains,
    other_gravity,
    passive_friction,
    payload_labels,
    position_orders,
    position_signs,
    position_units,
    shifted_zero,
)
from dynid.validation.ranking import SIGNIFICANT, comparison_with, ranked, residual_percent

# A correction that leaves more of the residual than this is not the cause: one more payload, 10 parameters,
# leaves 0.9 of the residual of a clean log, and a wrong branch of one loop of several about 0.7.
_EXPLAINS = 0.5
# A correction that leaves noise only (rms in parts of the noise floor) is the cause if it leaves less.
_NOISE, _EXPLAINS_NOISE, _CERTAIN = 1.3, 0.9, 2e-3
# Left over, relative to the best: named beside it.
_AS_GOOD = 1.25
_SURELY, _CERTAINLY = 0.25, 0.1
# Hypotheses are tried where an effort is off by so many times its noise floor and percent of its peak.
_BEYOND, _PERCENT = 1.5, 1.0
_TIMES = 3.0  # times its noise floor: an effort that is off by more without a cause is a warning
# Part of each run, and the least of it: on less the parameters follow any error. More samples than so many
# change nothing.
_SHARE, _SECONDS, _MOST_SAMPLES = 0.4, 10.0, 100_000
# Corrections that negative masses can absorb, and what may be left with them if they are right.
_ABSORBED, _NO_WORSE = ("gravity-off", "position-unit"), 1.05
_POOR = 10.0  # percent of the peak: wrong columns leave more
_MISFIT = 2.0  # percent of the peak: a model that leaves more lacks something that matters
_MOST_ZEROS = 3
_ZERO_STEP, _ZERO_ROUNDS = 0.03, 2  # [rad] or [m]
_SIZE_STEP, _SIZES_REFINED = 0.02, 2  # of a dimension; dimensions that are fitted at their best value
# Warnings of the linear tests, and what they would be in words.
_SUSPECTS = {
    "gravity-off": "a tilted base",
    "zero-offset": "a joint zero",
    "gain": "a drive gain",
    "delay": "a delay",
    "friction-speed": "friction that depends on speed",
    "friction-load": "friction that depends on load",
}
_LINEAR = frozenset({*_SUSPECTS, "outlying-run", "burst", "model-misfit"})


def with_causes(fit: Fit, estimate: Estimate) -> Estimate:
    """The estimate with ranked hypotheses, and with the cause of its residuals instead of vaguer warnings.

    Args:
        fit: To all logs.
        estimate: With its warnings so far, and its errors on unseen data, not yet judged.
    """
    labels = tuple(_negative_loads(fit))
    if labels:
        estimate = replace(estimate, warnings=(*estimate.warnings, *labels))
    if not _testable(fit):
        return estimate
    notices, percent = estimate.warnings, estimate.fit.residual_percent
    trials: list[Hypothesis] = []
    suspicious = not labels and (_suspicious(estimate, notices) or _odd(fit.task.mechanism, notices))
    if suspicious or fit.task.mechanism.is_closed:
        trials, percent = _trials(fit, estimate, suspicious)
    named = _named(trials, percent, {row.name: row.noise_floor for row in estimate.verdict.joints})
    impossible = any(one.code == "not-physical" and one.severity is Severity.STOP for one in notices)
    if named is None and suspicious and impossible:
        named = _physical(fit, trials)
    if named is not None:
        best, cause = named
        # Linear tests see the effects of the cause as faults of their own.
        vague = _LINEAR if best.left < _SURELY or cause.code not in _LINEAR else {"model-misfit"}
        kept = (one for one in notices if one.code != cause.code and one.code not in vague)
        notices = (*kept, cause)
    elif suspicious:
        notices = (*notices, *_misfit(estimate, notices))
    listed = ranked(trials, percent, estimate.residual_tests, None if named is None else named[0])
    contradiction = closure_cause(fit, notices)
    if contradiction is not None:
        listed, notices = (contradiction.test, *listed), (*notices, *contradiction.notices)
    return replace(estimate, warnings=tuple(notices), hypotheses=listed)


def _misfit(estimate: Estimate, notices: Sequence[Notice]) -> Iterator[Notice]:
    """Residuals beyond noise without a single cause: what may be missing, with the flagged suspects.

    Logs that are fitted to the noise contradict no model: then they are too few for the unseen motion.
    """
    tests = estimate.residual_tests
    rubbing = {one.about for one in tests if one.test == "speed" and one.warned and one.value > _EXPLAINS}
    rows = [
        row
        for row in estimate.verdict.joints
        if row.error_rms > _TIMES * row.noise_floor and row.error_percent > _MISFIT
    ]
    rows = [row for row in rows if row.name not in rubbing]
    if not rows or any(one.code == "model-misfit" for one in notices):
        return
    worst = max(rows, key=lambda row: row.error_percent)
    times = worst.error_rms / max(worst.noise_floor, 1e-6 * worst.error_rms, 1e-300)
    fitted = [group.rms for group in estimate.fit.groups if group.name == worst.name]
    if fitted and max(fitted) < _TIMES * worst.noise_floor:
        yield notice(
            "not-general",
            row=worst.name,
            error=worst.error_rms,
            unit=worst.unit,
            times=times,
            percent=worst.error_percent,
        )
        return
    flagged = [_SUSPECTS[one.code] for one in notices if one.code in _SUSPECTS]
    also = (
        f"; the residuals resemble {', or '.join(dict.fromkeys(flagged))}, but none explains them"
        if flagged
        else ""
    )
    yield notice(
        "model-misfit",
        row=worst.name,
        error=worst.error_rms,
        unit=worst.unit,
        times=times,
        percent=worst.error_percent,
        also=also,
    )


def _negative_loads(fit: Fit) -> Iterator[Notice]:
    """Payloads of negative mass: logs with and without them are exchanged, and fit as well."""
    for body in fit.problem.loaded_bodies:
        mass = next((one for one in fit.parts.parameters if one.name == f"M_{body}"), None)
        if mass is not None and mass.ci95 is not None and mass.ci95[1] < 0.0:
            yield notice("payload-label", "negative", body=body, mass=mass.value)


def _trials(fit: Fit, estimate: Estimate, suspicious: bool) -> tuple[list[Hypothesis], float]:
    """Corrections that were fitted, and the residual as described, in percent."""
    plan, mechanism, tests = fit.problem.plans[0], fit.task.mechanism, estimate.residual_tests
    logs = tuple(_part(log, plan) for log in (*fit.task.logs, *fit.task.held_out))
    if not suspicious and not (others := list(branch_hypotheses(mechanism, logs))):
        return [], estimate.fit.residual_percent
    before = _fitted(fit, mechanism, logs)
    if before is None:
        return [], estimate.fit.residual_percent
    tried, percent = _trial(fit, before), residual_percent(before)
    trials: list[Hypothesis] = []
    poor = any(row.error_percent > _POOR for row in estimate.verdict.joints)
    for one in _candidates(mechanism, logs, tests, poor) if suspicious else others:
        # Nothing but the cause explains so much; others of its kind are compared with it.
        if _least(trials) < _CERTAINLY and one.code != trials[-1].code:
            return trials, percent
        trials += tried(one)
    if suspicious and _least(trials) > _SURELY:
        for joint in _doubtful_zeros(logs, tests):
            trials += _best_zero(mechanism, logs, joint, tried)
        trials += _best_sizes(mechanism, logs, tried)
    return trials, percent


def _candidates(
    mechanism: Mechanism, logs: tuple[Log, ...], tests: Sequence[ResidualTest], poor: bool
) -> Iterator[Hypothesis]:
    """All corrections to try, cheap ones first; those of one code follow each other.

    Args:
        mechanism: The description.
        logs: Of the fit and for validation.
        tests: Linear tests of the residuals, whose sizes are confirmed by fitting again.
        poor: Whether predictions are so poor that columns may be wrong.
    """
    yield from delays(mechanism, logs, tests)
    yield from gains(mechanism, logs, tests)
    yield from drive_friction(mechanism, logs)
    yield from passive_friction(mechanism, logs)
    yield from dimension_units(mechanism, logs)
    yield from other_gravity(mechanism, logs)
    yield from payload_labels(mechanism, logs)
    yield from position_units(mechanism, logs)
    yield from branch_hypotheses(mechanism, logs)
    yield from position_signs(mechanism, logs)
    if poor:
        yield from effort_signs(mechanism, logs)
        yield from position_orders(mechanism, logs)


def _physical(fit: Fit, trials: Sequence[Hypothesis]) -> tuple[Hypothesis, Notice] | None:
    """A correction that fits as well, with physical parameters where the description needs impossible ones.

    On slow motion gravity upside down is absorbed by negative masses.
    """
    plain = fit.experiment.changed(standard=None)
    for one in trials:
        if one.fit is not None and one.code in _ABSORBED and one.left < _NO_WORSE:
            *_, physics = realise(one.fit.problem, plain, one.fit.data, one.fit.solution, None)
            if not any(found.code == "not-physical" for found in physics):
                text = f"{one.notice.text}: with this correction the parameters are physically consistent"
                return one, replace(one.notice, text=text)
    return None


# A correction with its fit; empty where it cannot be fitted.
_Tried = Callable[[Hypothesis], list[Hypothesis]]


def _trial(fit: Fit, before: LinearFit) -> _Tried:
    """The function that fits a correction and compares it with the description, whose fit is `before`."""
    compared = comparison_with(before)

    def tried(hypothesis: Hypothesis) -> list[Hypothesis]:
        if hypothesis.code == "gravity-off":
            turned = np.asarray(hypothesis.mechanism.gravity, float)
            fitted: LinearFit | None = fit_under(before.problem, turned, fit.experiment)
        else:
            fitted = _fitted(fit, hypothesis.mechanism, hypothesis.logs)
        return [] if fitted is None else [compared(hypothesis, fitted)]

    return tried


def _least(trials: Sequence[Hypothesis]) -> float:
    return min((one.left for one in trials), default=1.0)


def _doubtful_zeros(logs: Sequence[Log], tests: Sequence[ResidualTest]) -> list[int]:
    """Joints whose zeros the residuals doubt most."""
    zeros = sorted((one for one in tests if one.test == "zero"), key=lambda one: one.p_value)
    return [logs[0].position_names.index(one.about) for one in zeros[:_MOST_ZEROS]]


def _best_zero(mechanism: Mechanism, logs: tuple[Log, ...], joint: int, tried: _Tried) -> list[Hypothesis]:
    """The zero of one joint with the least residual: two steps of a parabola through three values."""
    trials: dict[float, Hypothesis] = {}
    step, middle = _ZERO_STEP, 0.0
    for _ in range(_ZERO_ROUNDS):
        sizes = [middle - step, middle, middle + step]
        for size in sizes:
            if size not in trials:
                found = tried(shifted_zero(mechanism, logs, joint, size))
                if not found:
                    return list(trials.values())
                trials[size] = found[0]
        a, b, c = (trials[size].left ** 2 for size in sizes)
        bend = a - 2.0 * b + c
        if bend <= 0.0:  # no minimum in between: go on downhill
            middle += 2.0 * step * (1.0 if c < a else -1.0)
            continue
        middle += float(np.clip(0.5 * (a - c) / bend, -3.0, 3.0)) * step
        step *= 0.4
    last = tried(shifted_zero(mechanism, logs, joint, middle))
    return [min([*trials.values(), *last], key=lambda one: one.left)]


def _best_sizes(mechanism: Mechanism, logs: tuple[Log, ...], tried: _Tried) -> list[Hypothesis]:
    """Dimensions at their values of least residual, by a parabola through three; the best ones only."""
    promising: list[tuple[float, str, float]] = []
    for name, value in list(mechanism.geometry.items())[:MOST_SIZES]:
        step = _SIZE_STEP * abs(value)
        sides = []
        for size in (value - step, value + step):
            one = other_size(mechanism, logs, name, size)
            sides += [] if one is None else tried(one)
        if len(sides) < 2:
            continue
        a, b, c = sides[0].left ** 2, 1.0, sides[1].left ** 2
        bend = a - 2.0 * b + c
        move = float(np.clip(0.5 * (a - c) / bend, -5.0, 5.0)) if bend > 0.0 else 5.0 * np.sign(a - c)
        promising.append((b + 0.5 * (c - a) * move + 0.5 * bend * move**2, name, value + float(move) * step))
    trials: list[Hypothesis] = []
    for _, name, value in sorted(promising)[:_SIZES_REFINED]:
        best = other_size(mechanism, logs, name, value)
        trials += [] if best is None else tried(best)
    return trials


def _testable(fit: Fit) -> bool:
    """Whether logs of efforts along a motion are there to compare descriptions with."""
    return fit.problem.case.has_motors and fit.problem.case.is_series and fit.experiment.gains is None


def _odd(mechanism: Mechanism, notices: Sequence[Notice]) -> bool:
    """Whether dimensions are too large for SI units, or a linear test doubts the description."""
    doubts = ("zero-offset", "gravity-off", "model-misfit")
    return bool(large_dimensions(mechanism)) or any(one.code in doubts for one in notices)


def _suspicious(estimate: Estimate, notices: Sequence[Notice]) -> bool:
    if any(one.code == "not-physical" for one in notices):
        return True
    return any(
        row.error_rms > _BEYOND * row.noise_floor and row.error_percent > _PERCENT
        for row in estimate.verdict.joints
    )


def _part(log: Log, plan: MotionPlan) -> Log:
    """The beginning of each run: enough to compare hypotheses."""
    least = round(_SECONDS / log.dt) + 4 * plan.edge
    parts = []
    for start, stop in log.segments:
        share = min(round(_SHARE * (stop - start)), _MOST_SAMPLES)
        parts.append((start, min(stop, start + max(least, share))))
    return replace(log, segments=tuple(parts))


def _fitted(fit: Fit, mechanism: Mechanism, logs: tuple[Log, ...]) -> LinearFit | None:
    """The linear fit of other logs or another description; None where there is no such."""
    experiment = fit.experiment.changed(model=fit.problem.model.key)
    try:
        if mechanism.is_closed:
            assembly_of(mechanism, near=fit.task.mechanism)
        problem = prepare(mechanism, logs, experiment, [fit.problem.plans[0]] * len(logs))
        return linear_fit(problem, experiment)
    except (DynidError, np.linalg.LinAlgError):
        return None


def _named(
    trials: Sequence[Hypothesis], percent: float, floors: Mapping[str, float]
) -> tuple[Hypothesis, Notice] | None:
    """The correction that explains the residuals, and its warning; None if none does.

    Args:
        trials: What was fitted.
        percent: Residual as described.
        floors: Noise floor of each effort, in its unit.
    """

    def explains(one: Hypothesis) -> bool:
        if one.p < SIGNIFICANT and one.left < _EXPLAINS:
            return True
        noise = all(rms < _NOISE * floors.get(name, 0.0) for name, rms in one.rms.items())
        return noise and one.p < _CERTAIN and one.left < _EXPLAINS_NOISE

    explaining = sorted((one for one in trials if explains(one)), key=lambda one: one.left)
    if not explaining:
        return None
    best = explaining[0]
    beside = [one for one in explaining[1:] if one.left < _AS_GOOD * best.left]
    others = f"; as well explained by: {', or '.join(one.name for one in beside[:2])}" if beside else ""
    text = (
        f"{best.notice.text}: with this correction the residual is {best.percent:.2g} % instead of"
        f" {percent:.2g} %"
    )
    return best, replace(best.notice, text=text + others)
