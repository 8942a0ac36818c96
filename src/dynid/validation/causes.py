"""Likely causes of residuals beyond noise: would the same logs fit if one thing were corrected?

Each hypothesis corrects the description or the logs (gravity, branch of the loops, units, signs and order
of positions, payload labels) and is fitted again on a part of each log. With rms_h(j) and rms_0(j) the
residuals of effort j with and without the correction,

    left_h = sqrt( sum_j ( rms_h(j) / |Y_j| )^2 / sum_j ( rms_0(j) / |Y_j| )^2 )

The hypothesis with the least left over is named; others that leave about as little are named beside it.
Faults that only shift the residual a little (delay, gain, joint zero, friction) have tests of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.checks.turned_gravity import fit_under
from dynid.common.catalogue import Severity
from dynid.common.errors import DynidError
from dynid.common.notices import Notice, notice
from dynid.fit import Fit
from dynid.linear import LinearFit, linear_fit
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.problem import prepare
from dynid.realise import realise
from dynid.statistics.estimate import Estimate, GroupFit, ResidualTest
from dynid.validation.hypotheses import Hypothesis, hypotheses, shifted_zero
from dynid.validation.unseen import Unseen

# A correction that leaves more of the residual than this is not the cause: one more payload, 10 parameters,
# leaves 0.9 of the residual of a clean log, and a wrong branch of one loop of several about 0.7.
_EXPLAINS = 0.5
# Left over, relative to the best: named beside it.
_AS_GOOD = 1.25
_SURELY = 0.25
# Hypotheses are tried where an effort is off by so many times its noise floor and percent of its peak.
_TIMES, _PERCENT = 3.0, 1.0
_SHARE, _SECONDS = 0.4, 3.0  # part of each log, and the least of it
# Corrections that negative masses can absorb, and what may be left with them if they are right.
_ABSORBED, _NO_WORSE = ("gravity-off", "position-unit"), 1.05
_POOR = 10.0  # percent of the peak: wrong columns leave more
_MISFIT = 2.0  # percent of the peak: a model that leaves more lacks something that matters
_MOST_ZEROS = 3
_ZERO_STEP, _ZERO_ROUNDS = 0.03, 2  # [rad] or [m]
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


@dataclass(frozen=True, eq=False)
class _Trial:
    hypothesis: Hypothesis
    fit: LinearFit
    left: float


def with_causes(fit: Fit, unseen: Unseen, estimate: Estimate) -> tuple[Notice, ...]:
    """All warnings, with the cause that explains the residuals instead of vaguer ones.

    Args:
        fit: To all logs.
        unseen: Its errors on unseen data.
        estimate: With its warnings so far.
    """
    notices = estimate.warnings
    labels = tuple(_negative_loads(fit))
    if labels or not _suspicious(fit, unseen, notices):
        return (*notices, *labels)
    impossible = any(one.code == "not-physical" and one.severity is Severity.STOP for one in notices)
    doubted = any(one.code in ("zero-offset", "gravity-off", "model-misfit") for one in notices)
    cause, left = likely_cause(fit, unseen, estimate.residual_tests, impossible, doubted)
    if cause is None:
        return (*notices, *_misfit(estimate.fit.groups, unseen, notices, estimate.residual_tests))
    # Linear tests see the effects of the cause as faults of their own.
    vague = _LINEAR if left < _SURELY or cause.code not in _LINEAR else ()
    return (*(one for one in notices if one.code != cause.code and one.code not in vague), cause)


def _misfit(
    groups: Sequence[GroupFit], unseen: Unseen, notices: Sequence[Notice], tests: Sequence[ResidualTest]
) -> Iterator[Notice]:
    """Residuals beyond noise without a single cause: what may be missing, with the flagged suspects.

    Logs that are fitted to the noise contradict no model: then they are too few for the unseen motion.
    """
    rubbing = {one.about for one in tests if one.test == "speed" and one.warned and one.value > _EXPLAINS}
    rows = [row for row in unseen.rows if row.error > _TIMES * row.floor and row.percent > _MISFIT]
    rows = [row for row in rows if row.name not in rubbing]
    if not rows or any(one.code == "model-misfit" for one in notices):
        return
    worst = max(rows, key=lambda row: row.percent)
    times = worst.error / max(worst.floor, 1e-6 * worst.error, 1e-300)
    fitted = [group.rms for group in groups if group.name == worst.name]
    if fitted and max(fitted) < _TIMES * worst.floor:
        yield notice(
            "not-general",
            row=worst.name,
            error=worst.error,
            unit=worst.unit,
            times=times,
            percent=worst.percent,
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
        error=worst.error,
        unit=worst.unit,
        times=times,
        percent=worst.percent,
        also=also,
    )


def _negative_loads(fit: Fit) -> Iterator[Notice]:
    """Payloads of negative mass: logs with and without them are exchanged, and fit as well."""
    for body in fit.problem.loaded_bodies:
        mass = next((one for one in fit.parts.parameters if one.name == f"M_{body}"), None)
        if mass is not None and mass.ci95 is not None and mass.ci95[1] < 0.0:
            yield notice("payload-label", "negative", body=body, mass=mass.value)


def likely_cause(
    fit: Fit, unseen: Unseen, tests: Sequence[ResidualTest], impossible: bool, doubted: bool
) -> tuple[Notice | None, float]:
    """The correction that explains the residuals, as a warning, and what it leaves; None if none does.

    Args:
        fit: To all logs.
        unseen: Its errors on unseen data.
        tests: Linear tests of its residuals.
        impossible: Whether no rigid bodies have its parameters.
        doubted: Whether joint zeros, or something that resembles gravity, are flagged.
    """
    plan, mechanism = fit.problem.plans[0], fit.task.mechanism
    logs = tuple(_part(log, plan) for log in (*fit.task.logs, *fit.task.held_out))
    before = _fitted(fit, mechanism, logs)
    if before is None:
        return None, 1.0
    trials: list[_Trial] = []
    for one in hypotheses(mechanism, logs, tests, any(row.percent > _POOR for row in unseen.rows)):
        # Nothing but the cause explains so much; others of its kind are compared with it.
        if _least(trials) < _SURELY and one.code != trials[-1].hypothesis.code:
            return _named(trials)
        trials += _tried(fit, one, before)
    for joint in _doubtful_zeros(logs, tests) if doubted else []:
        trials += _best_zero(fit, mechanism, logs, joint, before)
    named = _named(trials)
    return named if named[0] is not None or not impossible else _physical(fit, trials)


def _physical(fit: Fit, trials: Sequence[_Trial]) -> tuple[Notice | None, float]:
    """A correction that fits as well, with physical parameters where the description needs impossible ones.

    On slow motion gravity upside down is absorbed by negative masses.
    """
    plain = fit.experiment.changed(standard=None)
    for one in trials:
        if one.hypothesis.code in _ABSORBED and one.left < _NO_WORSE:
            realised = realise(one.fit.problem, plain, one.fit.data, one.fit.solution, None)
            if not any(found.code == "not-physical" for found in realised.notices):
                text = f"{one.hypothesis.notice.text}: so corrected, the parameters are physically consistent"
                return replace(one.hypothesis.notice, text=text), one.left
    return None, 1.0


def _tried(fit: Fit, hypothesis: Hypothesis, before: LinearFit) -> list[_Trial]:
    turned = np.asarray(hypothesis.mechanism.gravity, float) if hypothesis.code == "gravity-off" else None
    if turned is not None:
        fitted: LinearFit | None = fit_under(before.problem, turned, fit.experiment)
    else:
        fitted = _fitted(fit, hypothesis.mechanism, hypothesis.logs)
    return [] if fitted is None else [_Trial(hypothesis, fitted, _left(fitted, before))]


def _least(trials: Sequence[_Trial]) -> float:
    return min((one.left for one in trials), default=1.0)


def _doubtful_zeros(logs: Sequence[Log], tests: Sequence[ResidualTest]) -> list[int]:
    """Joints whose zeros the residuals doubt most."""
    zeros = sorted((one for one in tests if one.test == "zero"), key=lambda one: one.p_value)
    return [logs[0].position_names.index(one.about) for one in zeros[:_MOST_ZEROS]]


def _best_zero(
    fit: Fit, mechanism: Mechanism, logs: tuple[Log, ...], joint: int, before: LinearFit
) -> list[_Trial]:
    """The zero of one joint with the least residual: two steps of a parabola through three values."""
    trials: dict[float, _Trial] = {}
    step, middle = _ZERO_STEP, 0.0
    for _ in range(_ZERO_ROUNDS):
        sizes = [middle - step, middle, middle + step]
        for size in sizes:
            if size not in trials:
                found = _tried(fit, shifted_zero(mechanism, logs, joint, size), before)
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
    last = _tried(fit, shifted_zero(mechanism, logs, joint, middle), before)
    return [min([*trials.values(), *last], key=lambda one: one.left)]


def _suspicious(fit: Fit, unseen: Unseen, notices: Sequence[Notice]) -> bool:
    if not fit.problem.case.has_motors or not fit.problem.case.is_series or fit.experiment.gains is not None:
        return False
    if any(one.code == "not-physical" for one in notices):
        return True
    return any(row.error > _TIMES * row.floor and row.percent > _PERCENT for row in unseen.rows)


def _part(log: Log, plan: MotionPlan) -> Log:
    """The beginning of each run: enough to compare hypotheses."""
    least = round(_SECONDS / log.dt) + 4 * plan.edge
    parts = []
    for start, stop in log.segments:
        parts.append((start, min(stop, start + max(least, round(_SHARE * (stop - start))))))
    return replace(log, segments=tuple(parts))


def _fitted(fit: Fit, mechanism: Mechanism, logs: tuple[Log, ...]) -> LinearFit | None:
    """The linear fit of other logs or another description; None where there is no such."""
    experiment = fit.experiment.changed(model=fit.problem.model.key)
    try:
        problem = prepare(mechanism, logs, experiment, [fit.problem.plans[0]] * len(logs))
        return linear_fit(problem, experiment)
    except (DynidError, np.linalg.LinAlgError):
        return None


def _rms(fit: LinearFit) -> dict[str, float]:
    """Residual of each effort over the logs, in parts of its measured norm."""
    sums: dict[str, tuple[float, float]] = {}
    for group in fit.data.source.groups:
        own = fit.chi[group.columns]
        left = sum(float(np.sum((block.Y - block.W @ own) ** 2)) for block in group.blocks)
        whole = sum(float(np.sum(block.Y**2)) for block in group.blocks)
        before = sums.get(group.name, (0.0, 0.0))
        sums[group.name] = (before[0] + left, before[1] + whole)
    return {name: float(np.sqrt(left / whole)) for name, (left, whole) in sums.items() if whole > 0.0}


def _left(now: LinearFit, before: LinearFit) -> float:
    a, b = _rms(now), _rms(before)
    shared = [name for name in b if name in a]
    whole = sum(b[name] ** 2 for name in shared)
    return float(np.sqrt(sum(a[name] ** 2 for name in shared) / whole)) if whole > 0.0 else 1.0


def _named(trials: Sequence[_Trial]) -> tuple[Notice | None, float]:
    explaining = sorted((one for one in trials if one.left < _EXPLAINS), key=lambda one: one.left)
    if not explaining:
        return None, 1.0
    best = explaining[0]
    beside = [one for one in explaining[1:] if one.left < _AS_GOOD * best.left]
    others = (
        f"; as well explained by: {', or '.join(one.hypothesis.notice.text for one in beside[:2])}"
        if beside
        else ""
    )
    one = best.hypothesis
    text = f"{one.notice.text}: so corrected, {100 * best.left:.2g} % of the residual remains{others}"
    return replace(one.notice, text=text), best.left
