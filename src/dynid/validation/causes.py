"""Is the description right? The same logs fitted with one thing corrected, and the corrections ranked.

Each hypothesis corrects the description or the logs (gravity, branch of the loops, joint zeros, dimensions,
friction, units, signs and order of positions, known values, payload labels) and is fitted again on a part of
each log. `ranking.py` compares all of them by their likelihood. Faults that only shift the residual a little
(delay, gain, joint zero, dimension, tilted gravity) are found by linear tests (`checks/fault_selection.py`);
the search for the best fit begins at their sizes. The hypothesis with the most evidence is named first,
others with about as much beside it. With rms_h(j) and rms_0(j) the residuals of effort j with and without the
correction,

    left_h = sqrt( sum_j ( rms_h(j) / |Y_j| )^2 / sum_j ( rms_0(j) / |Y_j| )^2 )

Logs that are fitted to the noise contradict nothing: then only other branches of closed robots and other
directions of gravity are tried, because their parameters may absorb these nearly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from dynid.common.catalogue import Severity, codes_with
from dynid.common.notices import Notice, eased, gathered, notice
from dynid.common.registry import loaded
from dynid.fit import Fit
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.realise import realise
from dynid.statistics.estimate import Estimate, ResidualTest
from dynid.validation import CORRECTIONS
from dynid.validation.branches import branch_hypotheses
from dynid.validation.closure_causes import closure_cause
from dynid.validation.contradiction import (
    Contradiction,
    contradiction_beside_bursts,
    contradiction_notice,
    corrected_trials,
    is_poor,
)
from dynid.validation.dimensions import best_size, doubted, large_dimensions, position_scales, quarter_turns
from dynid.validation.hypotheses import Hypothesis, known_values, other_gravity, payload_labels
from dynid.validation.likelihood import residual_percent
from dynid.validation.misfit import misfit_notices, stuck_notices, usual_errors
from dynid.validation.ranking import (
    CODES,
    NOISE,
    OF_DESCRIPTION,
    SIGNIFICANT,
    clearly_worse,
    explaining_trials,
    fitted_with,
    is_noise,
    part_of,
    ranked,
    trial_of,
    unconfirmed,
    with_evidence,
    with_size,
    without,
)

_AS_GOOD = 5.0  # of the evidence (likelihood ratio 150): with less than that much less it is as good
_SURELY, _CERTAINLY = 0.25, 0.1
# Hypotheses are tried where an effort is off by so many times its noise floor and percent of its peak, or by
# so many times its noise floor.
_BEYOND, _PERCENT, _FAR_BEYOND = 1.5, 1.0, 3.0
# Corrections that negative masses can absorb, and what may be left with them if they are right.
_ABSORBED, _NO_WORSE = codes_with("absorbed"), 1.05
_DOUBTFUL = ("delay", "gain", "zero", "dimension")  # linear tests that any misfit resembles
_SLIGHT = 0.05  # of the squared residual beyond the noise
_LARGE_GAIN = 0.1  # relative: parameters absorb most of a wrong gain, and a misfit resembles small ones only
_MOST_LABELS = 24  # payloads that are tried before columns
_CLEAR = 3.0  # sigma of white noise: a value further below zero is negative
_SEARCHED = codes_with("searched")  # by `best_size`, where a linear test doubts them
_LINEAR = codes_with("linear")
_FIRST_THE_MODEL = (
    "do not correct this yet: the model misses an effect, and this value may come from it. Find the effect"
    " first (reason model-misfit), then look again"
)


def with_causes(fit: Fit, estimate: Estimate) -> Estimate:
    """The estimate with ranked hypotheses, and with the cause of its residuals instead of vaguer warnings."""
    if any(note.code == "forced" and note.change for note in estimate.warnings):
        return estimate  # wrong columns are found: nothing else that the fit shows means anything
    labels = tuple(_negative_loads(fit))
    if labels:
        estimate = replace(estimate, warnings=(*estimate.warnings, *labels))
    if not _testable(fit):
        flagged = {note.code for note in estimate.warnings}
        listed = ranked([], estimate.fit.residual_percent, estimate.residual_tests, [], flagged)
        listed = listed if len(listed) > 1 else ()
        return replace(estimate, warnings=tuple(gathered(estimate.warnings)), hypotheses=listed)
    notices, percent = estimate.warnings, estimate.fit.residual_percent
    doubts = {note.code for note in notices} & OF_DESCRIPTION
    trials: list[Hypothesis] = []
    refuted: list[ResidualTest] = []
    odd: Contradiction | None = None
    suspicious = not labels and (_suspicious(estimate, notices) or _odd(fit.task.mechanism, notices))
    if suspicious or fit.task.mechanism.is_closed:
        trials, percent, refuted, odd = _trials(fit, estimate, suspicious)
        if not suspicious and any(trial.p < SIGNIFICANT and trial.left < 1.0 for trial in trials):
            # Branch and gravity of a closed robot resemble faults that were not tried yet.
            suspicious = True
            trials, percent, refuted, odd = _trials(fit, estimate, suspicious)
    tests = [test for test in estimate.residual_tests if not any(test is other for other in refuted)]
    estimate = without(estimate, refuted, "refuted: the loops do not close with it")
    estimate = without(estimate, unconfirmed(estimate, trials), "not confirmed: a fit with it is no better")
    slight = _slight(estimate, trials)
    estimate = without(estimate, slight, "not confirmed: it explains hardly any of the residual")
    notices = estimate.warnings
    floors = {row.name: row.noise for row in estimate.verdict.joints}
    explaining = explaining_trials(trials, floors, doubts)
    undirected = _undirected(fit, explaining)
    explaining = [trial for trial in explaining if trial not in undirected]
    named = _named(explaining, percent)
    impossible = _impossible(notices)
    stuck = stuck_notices(fit) if is_poor(estimate) else []
    if stuck and named and named[0].left > _CERTAINLY:  # other poses resemble the missing one a little
        named = None
    physical = None
    if not stuck and named is None and suspicious and any(note.code == "not-physical" for note in notices):
        # Some exchange of columns makes the parameters of any poor fit possible, and explains nothing.
        absorbed = [trial for trial in trials if trial.code != "position-order" or not is_poor(estimate)]
        named = physical = _physical(fit, absorbed, impossible)
    if named is not None:
        best, cause = named
        # The list begins with what the verdict names.
        explaining = [best, *(trial for trial in explaining if trial is not best)]
        estimate = with_size(estimate, best.searched)
        # Most of the residual has another cause: this one alone does not stop the use.
        partial = not is_noise(best, floors) and not impossible and physical is None
        notices = _with_cause(best, eased(cause) if partial else cause, notices)
    if suspicious and (named is None or not is_noise(named[0], floors)):
        # The misfit first: what a model lacks is larger here and there.
        misfit = (
            misfit_notices(estimate, notices, usual_errors(fit, notices))
            if odd is None
            else [contradiction_notice(estimate, odd)]
        )
        notices = (*stuck, *misfit, *notices)
        # Linear tests see a zero or a dimension in any misfit; their fits did not confirm it.
        if named is None and (odd is not None or any(note.code == "model-misfit" for note in notices)):
            notices = tuple(_doubtful(note) for note in notices if note.code not in _SEARCHED)
    flagged = {note.code for note in notices if named is None or note.code != named[0].code}
    listed = ranked(trials, percent, tests, explaining, flagged)
    contradiction = closure_cause(fit, notices)
    if contradiction is not None:
        listed, notices = (contradiction.test, *listed), (*notices, *contradiction.notices)
    return replace(estimate, warnings=tuple(gathered(notices)), hypotheses=listed)


def _slight(estimate: Estimate, trials: Sequence[Hypothesis]) -> list[ResidualTest]:
    """Flagged suspects that explain hardly any of what exceeds the noise in the rows concerned.

    What a model lacks resembles many faults a little, and does so significantly in a long log. Rows that are
    fitted to the noise lack nothing. Where the model lacks little, a zero or dimension with which the logs
    fit significantly better stays: parameters absorb most of a wrong length, and are wrong themselves. So
    does a gain whose whole interval is large.
    """
    rows = {row.name: row for row in estimate.verdict.joints if row.error_rms > 0.0}
    better = {(t.searched.test, t.searched.about) for t in trials if t.searched and t.p < SIGNIFICANT}
    sure = better if all(row.error_percent < _PERCENT for row in rows.values()) else set()

    def beyond_noise(about: str) -> float:
        own = [rows[about]] if about in rows else list(rows.values())
        left = [row.noise / row.error_rms if row.error_rms > NOISE * row.noise else 1.0 for row in own]
        return float(np.mean([1.0 - part**2 for part in left]))

    return [
        test
        for test in estimate.residual_tests
        if test.warned
        and test.test in _DOUBTFUL
        and rows
        and (test.test, test.about) not in sure
        and not (test.test == "gain" and test.ci95 is not None and min(map(abs, test.ci95)) > _LARGE_GAIN)
        and test.explains < _SLIGHT * beyond_noise(test.about)
    ]


def _with_cause(best: Hypothesis, cause: Notice, notices: Sequence[Notice]) -> tuple[Notice, ...]:
    """The warnings with the cause, without those of linear tests that see its effects as other faults."""
    vague = {"model-misfit"}
    if best.left < _SURELY or cause.code not in _LINEAR:
        vague = set(_LINEAR)
    elif cause.code in OF_DESCRIPTION:
        vague |= OF_DESCRIPTION
    return (*(note for note in notices if note.code != cause.code and note.code not in vague), cause)


def _doubtful(note: Notice) -> Notice:
    """The same without a value to paste, if it only resembles residuals that nothing explains."""
    values = {CODES.get(test, test) for test in _DOUBTFUL}
    return replace(note, remedy=_FIRST_THE_MODEL, change={}) if note.code in values else note


def _negative_loads(fit: Fit) -> Iterator[Notice]:
    """Payloads of negative mass: logs with and without them are exchanged, and fit as well."""
    for body in fit.problem.mechanism.loaded_bodies:
        mass = next((entry for entry in fit.parts.parameters if entry.name == f"M_{body}"), None)
        if mass is not None and mass.ci95 is not None and mass.ci95[1] < 0.0:
            yield notice("payload-label", "negative", body=body, mass=mass.value)


class _Trials(NamedTuple):
    """What was fitted.

    Attributes:
        trials: Corrections, fitted.
        percent: Residual as described, in percent.
        refuted: Tests of impossible ones.
        odd: Logs that contradict the others.
    """

    trials: list[Hypothesis]
    percent: float
    refuted: list[ResidualTest]
    odd: Contradiction | None = None


def _trials(fit: Fit, estimate: Estimate, suspicious: bool) -> _Trials:
    """Fit corrections, those of single logs that contradict the others first."""
    plan, mechanism, tests = fit.problem.plans[0], fit.task.mechanism, estimate.residual_tests
    logs = tuple(part_of(log, plan) for log in (*fit.task.logs, *fit.task.held_out))
    others = [*branch_hypotheses(mechanism, logs), *other_gravity(mechanism, logs, tests)]
    trials, left, percent = ([], others, 0.0) if suspicious else clearly_worse(fit, logs, others)
    if others and not left:
        return _Trials(with_evidence(trials, tests), percent, [])
    before = fitted_with(fit, mechanism, logs, keep=True)
    if before is None:
        return _Trials([], estimate.fit.residual_percent, [])
    tried, percent = trial_of(fit, before), residual_percent(before)
    refitted = partial(fitted_with, fit, mechanism)
    odd = contradiction_beside_bursts(before, logs, estimate.warnings, refitted) if suspicious else None
    # Another payload is what logs differ by most often, and its trials are few.
    loads = () if odd is None else (*known_values(mechanism, logs), *payload_labels(mechanism, logs))
    labels = [load for load in loads if load.code == "payload-label"][:_MOST_LABELS]
    trials += [trial for label in labels for trial in tried(label)]
    if odd is not None and _least(trials) > _CERTAINLY:
        trials += corrected_trials(odd, before, logs)
    poor, impossible = is_poor(estimate), _impossible(estimate.warnings)
    for candidate in _candidates(fit, logs, tests, poor, impossible) if suspicious else left:
        # Nothing but the cause explains so much; others of its kind are compared with it.
        if _least(trials) < _CERTAINLY and candidate.code != trials[-1].code:
            return _Trials(with_evidence(trials, tests), percent, [], odd)
        trials += tried(candidate) if candidate.name not in {label.name for label in labels} else ()
    refuted: list[ResidualTest] = []
    if suspicious and _least(trials) > _SURELY:
        for test in doubted(mechanism, logs[0].position_names, tests, poor):
            trials += (sizes := best_size(mechanism, logs, test, tried))
            refuted += [] if sizes else [test]
        if _least(trials) > _CERTAINLY:
            trials += [t for turn in quarter_turns(mechanism, logs, tests, poor) for t in tried(turn)]
        if _least(trials) > _SURELY:
            trials += position_scales(mechanism, logs, tried)
    return _Trials(with_evidence(trials, tests), percent, refuted, odd)


def _candidates(
    fit: Fit, logs: tuple[Log, ...], tests: Sequence[ResidualTest], poor: bool, impossible: bool
) -> Iterator[Hypothesis]:
    """All corrections to try.

    Args:
        fit: Of the description.
        logs: Of the fit and for validation.
        tests: Linear tests of the residuals, whose sizes are confirmed by fitting again.
        poor: Whether predictions are so poor that columns may be wrong.
        impossible: Whether the parameters are not physical: axes of a gantry fit with any sign of an effort.
    """
    exact = fit.experiment.unloaded is None  # else known values are estimates
    for correction in CORRECTIONS.values():
        wanted = not correction.poor or poor or (correction.impossible and impossible)
        if wanted and (exact or not correction.exact):
            yield from loaded(correction.hypotheses)(fit.task.mechanism, logs, tests)


def _physical(fit: Fit, trials: Sequence[Hypothesis], impossible: bool) -> tuple[Hypothesis, Notice] | None:
    """A correction that fits as well, with physical parameters where the description needs impossible ones.

    On slow motion gravity upside down is absorbed by negative masses. Others without further values that do
    the same are named beside it: the sign of a position, where an axis is independent of all others.

    Args:
        fit: As described.
        trials: Corrections that were fitted.
        impossible: Whether no noise explains the parameters. Else only a correction without values of its own
            counts that also fits significantly better: real arms miss physical parameters by a few sigma.
    """

    def possible(trial: Hypothesis) -> bool:
        better = trial.added == 0 and trial.left < 1.0 and trial.p < SIGNIFICANT
        if trial.fit is None or trial.left >= _NO_WORSE or not (impossible or better):
            return False
        return not any(remark.code == "not-physical" for remark in _physics(fit, trial))

    best = next((trial for trial in trials if trial.code in _ABSORBED and possible(trial)), None)
    if best is None:
        return None
    others = (trial for trial in trials if trial is not best and trial.added == 0)
    beside = [trial for trial in others if abs(trial.likely - best.likely) < _AS_GOOD and possible(trial)]
    text = f"{best.notice.text}: if this is corrected, the parameters are physically consistent"
    return best, replace(best.notice, text=text + _as_well(beside))


def _physics(fit: Fit, trial: Hypothesis) -> tuple[Notice, ...]:
    """What is noticed about the parameters of a correction, as bodies."""
    if trial.fit is None:
        return ()
    plain = fit.experiment.changed(standard=None)
    return realise(trial.fit.problem, plain, trial.fit.data, trial.fit.solution, None)[2]


def _undirected(fit: Fit, explaining: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Gravities that explain no more than their opposites do, where noise excludes the parameters of neither.

    Gravity makes parameters of a level robot visible. They follow friction that the model lacks, whatever
    the direction; gravity itself distinguishes up from down.
    """
    pulls = [trial for trial in explaining if trial.code == "gravity-off"]
    pairs = [
        (one, other)
        for one in pulls
        for other in pulls
        if np.allclose(one.mechanism.gravity, -np.asarray(other.mechanism.gravity))
        and one.added
        and abs(one.evidence - other.evidence) < _AS_GOOD
    ]
    return [one for one, other in pairs if not any(_impossible(_physics(fit, t)) for t in (one, other))]


def _as_well(beside: Sequence[Hypothesis]) -> str:
    """Corrections that the logs do not separate from the one that is named, as the end of a text."""
    names = ", or ".join(trial.name for trial in beside[:2])
    return f"; as well explained by: {names}" if beside else ""


def _least(trials: Sequence[Hypothesis]) -> float:
    return min((trial.left for trial in trials), default=1.0)


def _testable(fit: Fit) -> bool:
    """Whether logs of efforts along a motion are there to compare descriptions with."""
    return fit.problem.case.measures_signals and fit.problem.case.is_series and fit.experiment.gains is None


def _odd(mechanism: Mechanism, notices: Sequence[Notice]) -> bool:
    """Whether dimensions are too large for SI units, or a linear test doubts the description or a gain.

    A large error of a dimension is not linear: the gain of an effort may resemble it more.
    """
    doubts = OF_DESCRIPTION | codes_with("doubt")
    return bool(large_dimensions(mechanism)) or any(note.code in doubts for note in notices)


def _impossible(notices: Sequence[Notice]) -> bool:
    """Whether noise does not explain that the parameters are not physical."""
    return any(item.code == "not-physical" and item.severity is Severity.STOP for item in notices)


def _suspicious(estimate: Estimate, notices: Sequence[Notice]) -> bool:
    if any(note.code == "not-physical" for note in notices):
        return True
    return any(
        row.error_rms > (_BEYOND if row.error_percent > _PERCENT else _FAR_BEYOND) * row.noise_floor
        for row in estimate.verdict.joints
    )


def _named(explaining: Sequence[Hypothesis], percent: float) -> tuple[Hypothesis, Notice] | None:
    """The correction that explains the residuals best, and its warning; None if none does.

    Args:
        explaining: In the order of their evidence.
        percent: Residual as described.
    """
    if not explaining:
        return None
    least = explaining[0].evidence - _AS_GOOD
    # The mirror image of a robot fits as well, with friction that drives.
    best, *beside = sorted((trial for trial in explaining if trial.evidence > least), key=_negative_count)
    ratio = percent / max(best.percent, 1e-300)
    less = f"{float(f'{ratio:.2g}'):g} times" if ratio >= 1.5 else f"{100.0 * (1.0 - 1.0 / ratio):.2g} %"
    gain = f": if this is corrected, the rms residual (with noise) is {less} smaller" if ratio > 1.0 else ""
    return best, replace(best.notice, text=best.notice.text + gain + _as_well(beside))


def _negative_count(trial: Hypothesis) -> int:
    """How many rotor inertias and friction terms of the fit are negative beyond their noise."""
    if trial.fit is None:
        return 0
    data, solution = trial.fit.data, trial.fit.solution
    sigma = np.sqrt(np.diag(solution.covariance))
    values = zip(data.system.parameters, solution.chi, sigma, strict=True)
    return sum(1 for parameter, value, noise in values if parameter.positive and value < -_CLEAR * noise)
