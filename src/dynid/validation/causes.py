"""Likely causes of residuals beyond noise: would the same logs fit if one thing were corrected?

Each hypothesis corrects the description or the logs (gravity, branch of the loops, units, signs and order of
positions, payload labels) and is fitted again on a part of each log. With rms_h(j) and rms_0(j) the residuals of
effort j with and without the correction,

    left_h = sqrt( sum_j ( rms_h(j) / |Y_j| )^2 / sum_j ( rms_0(j) / |Y_j| )^2 )

The hypothesis with the least left over is named; others that leave about as little are named beside it.
Faults that only shift the residual a little (delay, gain, joint zero, friction) have tests of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.errors import DynidError
from dynid.common.notices import Notice
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit
from dynid.linear import LinearFit, linear_fit
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.problem import prepare
from dynid.validation.hypotheses import REMEDY_LABEL, Hypothesis, hypotheses
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


@dataclass(frozen=True, eq=False)
class _Trial:
    hypothesis: Hypothesis
    left: float


def with_causes(fit: Fit, unseen: Unseen, notices: Sequence[Notice]) -> tuple[Notice, ...]:
    """All warnings, with the cause that explains the residuals instead of a vaguer warning of the same code.

    Args:
        fit: To all logs.
        unseen: Its errors on unseen data.
        notices: Warnings so far.
    """
    causes = tuple(_negative_loads(fit)) or (likely_causes(fit) if _suspicious(fit, unseen, notices) else ())
    codes = {one.code for one in causes}
    return (*(one for one in notices if one.code not in codes), *causes)


def _negative_loads(fit: Fit) -> Iterator[Notice]:
    """Payloads of negative mass: logs with and without them are exchanged, and fit as well."""
    for body in fit.problem.loaded_bodies:
        mass = next((one for one in fit.parts.parameters if one.name == f"M_{body}"), None)
        if mass is not None and mass.ci95 is not None and mass.ci95[1] < 0.0:
            yield Notice(
                "payload-label",
                f"payload '{body}' has a negative mass, {mass.value:.3g} kg: the logs that carry it and those that"
                " do not seem to be exchanged",
                REMEDY_LABEL,
            )


def likely_causes(fit: Fit) -> tuple[Notice, ...]:
    """The correction that explains the residuals, as a warning; none if no correction does."""
    plan = fit.problem.plans[0]
    logs = tuple(_part(log, plan) for log in (*fit.task.logs, *fit.task.held_out))
    before = _fitted(fit, Hypothesis("", "", "", fit.task.mechanism, logs))
    if before is None:
        return ()
    trials: list[_Trial] = []
    for one in hypotheses(fit.task.mechanism, logs):
        # Nothing but the cause explains so much; others of its kind are compared with it.
        if trials and min(trial.left for trial in trials) < _SURELY and one.code != trials[-1].hypothesis.code:
            break
        tried = _fitted(fit, one)
        if tried is not None:
            trials.append(_Trial(one, _left(tried, before)))
    return _named(trials)


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


def _fitted(fit: Fit, hypothesis: Hypothesis) -> LinearFit | None:
    """The linear fit under a hypothesis; None where there is no such."""
    experiment: Experiment = replace(fit.experiment, model=fit.problem.model.name)
    try:
        plans = [fit.problem.plans[0]] * len(hypothesis.logs)
        return linear_fit(prepare(hypothesis.mechanism, hypothesis.logs, experiment, plans), experiment)
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


def _named(trials: Sequence[_Trial]) -> tuple[Notice, ...]:
    explaining = sorted((one for one in trials if one.left < _EXPLAINS), key=lambda one: one.left)
    if not explaining:
        return ()
    best = explaining[0]
    beside = [one for one in explaining[1:] if one.left < _AS_GOOD * best.left]
    others = f"; as well explained by: {', or '.join(one.hypothesis.text for one in beside[:2])}" if beside else ""
    one = best.hypothesis
    text = f"{one.text}: so corrected, {100 * best.left:.2g} % of the residual remains{others}"
    return (Notice(one.code, text, one.remedy),)
