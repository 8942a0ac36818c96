"""Which description explains the logs best: corrected descriptions, fitted and compared on one scale.

With rms_h(j) and rms_0(j) the residuals of effort j (n_j rows) with and without a correction, noise of
unknown size in each effort has the logarithm of the likelihood ratio

    l = 1/f sum_j n_j log( rms_0(j) / rms_h(j) )

A correction that multiplies n_j' of these rows by g changes the density of what was logged by g^n_j', so
rms_h(j) is divided by g^(n_j' / n_j).

c counts the values that a correction adds: parameters, and sizes that were searched. If the description is
right,

    p = P( chi2_c > 2 l )  for c > 0          p = P( chi2_1 > 2 l ) / 2  for c = 0

(c = 0: a shift of the rows by d sigma is given, l is normal with mean -d^2/2 and variance d^2, and the bound
is that of the d with the largest p, d^2 = 2 l). Corrections are ranked by their evidence -log p. Of k
corrections of one kind (k joints whose zero may be off) the best one must be k times as improbable: k p.

f counts rows that are not independent; it is a property of the noise, so all corrections have that of the one
with the largest likelihood. With U_c its orthonormalised rows and rho_c the residuals of part c of the log
(all efforts), r_c^2 their mean square,

    f = sum_c |U_c^T rho_c|^2 / sum_c r_c^2 ( |U_c|^2 - |U_c^T U_c|^2 ),     at least 1

the expectation below being that of independent rows, whose noise may differ from part to part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import lgamma

import numpy as np

from dynid.checks.family_level import NOTICEABLE
from dynid.checks.turned_gravity import fits_under
from dynid.common.catalogue import CATALOGUE, codes_with
from dynid.common.distributions import chi2_tail
from dynid.common.errors import DynidError
from dynid.fit import Fit
from dynid.kinematics.assembly import assembly_of
from dynid.linear_fit import LinearFit, linear_fit
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.problem import prepare
from dynid.statistics.estimate import Estimate, ResidualTest
from dynid.statistics.estimate_parts import DescriptionTest
from dynid.validation.hypotheses import Hypothesis
from dynid.validation.likelihood import EXPLAINS, comparison_with, residual_percent, scaled_plan

AS_DESCRIBED = "as described"
SIGNIFICANT = 1e-3
# Wrong quantities of the description by linear tests; refits decide between them and friction left out.
OF_DESCRIPTION = codes_with("description")
_DECIDED = OF_DESCRIPTION | codes_with("resembles")
NOISE = 1.3  # rms in parts of the noise floor: less is noise only
_MOST_LISTED = 12
# Linear tests that are about the description: their warnings, and the names of the corrections.
CODES = {test: code for code, entry in CATALOGUE.items() for test in entry.corrections}
_NAMES = {test: words for entry in CATALOGUE.values() for test, words in entry.corrections.items()}
# Those of positions: what they leave is a part of what the positions contradict, not of the efforts.
_OF_POSITIONS = codes_with("positions")
_GIVEN = float(np.sqrt(0.5))
_COLUMNS = "position-order"
_NOTHING_FOUND = 0.05  # p of a fit with a flagged suspect: above this it does not confirm the linear test
# Part of each run, and its least length: on less the parameters follow any error; and most samples.
_SHARE, _SECONDS, _MOST_SAMPLES = 0.4, 10.0, 100_000
# Most of that part on which clearly worse ones are found, and the largest on which this saves time; what they
# leave of the squares at least, with a margin for other noise in the rest.
_BRIEF, _BRIEFLY, _CLEARLY = 0.25, 0.5, 2.0
# For each parameter, on that part: on fewer they follow any error; and a margin for samples that are masked.
_ROWS, _MARGIN = 10, 1.3


def fitted_with(
    fit: Fit, mechanism: Mechanism, logs: tuple[Log, ...], scale: tuple[float, ...] = (), keep: bool = False
) -> LinearFit | None:
    """The linear fit of other logs or another description; None where there is no such.

    Args:
        fit: As described.
        mechanism, logs: Corrected.
        scale: Factors of the positions, as of `Hypothesis`.
        keep: The rows are needed again, for other gravities.
    """
    plan = scaled_plan(fit.problem.plans[0], scale)
    experiment = fit.experiment.changed(model=fit.problem.model.key)
    try:
        if mechanism.is_closed:
            assembly_of(mechanism, near=fit.task.mechanism)
        problem = prepare(mechanism, logs, experiment, [plan] * len(logs))
        return linear_fit(problem, experiment, keep=keep, comparing=True)
    except (DynidError, np.linalg.LinAlgError):
        return None


def trial_of(fit: Fit, before: LinearFit) -> Callable[[Hypothesis], list[Hypothesis]]:
    """The function that fits a correction and compares it with the description, whose fit is `before`."""
    compared, fit_under = comparison_with(before), fits_under(before.problem, fit.experiment)

    def tried(hypothesis: Hypothesis) -> list[Hypothesis]:
        if hypothesis.code == "gravity-off":
            turned = np.asarray(hypothesis.mechanism.gravity, float)
            fitted: LinearFit | None = fit_under(turned)
        else:
            fitted = fitted_with(fit, hypothesis.mechanism, hypothesis.logs, hypothesis.scale)
        return [] if fitted is None else [compared(hypothesis, fitted)]

    return tried


def clearly_worse(
    fit: Fit, logs: tuple[Log, ...], candidates: Sequence[Hypothesis]
) -> tuple[list[Hypothesis], list[Hypothesis], float]:
    """Corrections that a part of these logs refutes, those left, and the residual there as described [%].

    The squares that a correction leaves on all samples are at least those of its best fit to a part s of
    them. If these are 1/s times those of the description, it is no better on all. None without a fit is left.
    """
    plan = fit.problem.plans[0]
    rows = sum(group.n_rows for group in fit.data.source.groups) * _samples(logs) / _samples(fit.task.logs)
    needed = _ROWS * fit.data.S.shape[1] / rows
    of = min(_BRIEF, _MARGIN * needed)

    def brief(logs: tuple[Log, ...]) -> tuple[Log, ...]:
        return tuple(part_of(log, plan, of) for log in logs)

    few, share = brief(logs), _samples(brief(logs)) / _samples(logs)
    telling = needed < share < _BRIEFLY
    before = fitted_with(fit, fit.task.mechanism, few, keep=True) if telling else None
    if before is None:
        return [], list(candidates), 0.0
    tried, most = trial_of(fit, before), _CLEARLY / share
    briefly = [(other, replace(other, logs=brief(other.logs))) for other in candidates]
    trials = [(other, trial) for other, part in briefly for trial in tried(part)]
    refuted = [trial for _, trial in trials if trial.left**2 > most]
    return refuted, [other for other, trial in trials if trial.left**2 <= most], residual_percent(before)


def part_of(log: Log, plan: MotionPlan, of: float = _SHARE) -> Log:
    """The beginning of each run, a share of it: enough to compare hypotheses; if brief, of any length."""
    least = (round(_SECONDS / log.dt) if of >= _SHARE else 0) + 4 * plan.edge
    parts = []
    for start, stop in log.segments:
        share = min(round(of * (stop - start)), _MOST_SAMPLES)
        parts.append((start, min(stop, start + max(least, share))))
    return replace(log, segments=tuple(parts))


def _samples(logs: Sequence[Log]) -> int:
    return sum(stop - start for log in logs for start, stop in log.segments)


def with_evidence(trials: Sequence[Hypothesis], tests: Sequence[ResidualTest]) -> list[Hypothesis]:
    """Fitted corrections with their evidence: less of it the more there are of their kind.

    Args:
        trials: All that were fitted; their noise is that of the most likely one.
        tests: Linear tests, which are of the same kinds.
    """
    if not trials:
        return []
    f = max(trials, key=lambda trial: trial.likely).dependence
    counts = {code: sum(trial.code == code for trial in trials) for code in {trial.code for trial in trials}}
    for test, code in CODES.items():
        counts[code] = max(counts.get(code, 0), sum(result.test == test for result in tests))

    def evidence(trial: Hypothesis) -> float:
        alone = _evidence(trial.likely / f, trial.added)
        return max(alone - float(np.log(max(counts[trial.code], 1))), 0.0)

    return [replace(trial, evidence=evidence(trial)) for trial in trials]


def _evidence(likely: float, c: int) -> float:
    """-log of the probability of such a likelihood ratio if the description is right."""
    if likely <= 0.0:
        return 0.0
    given = float(np.log(2.0)) if c == 0 else 0.0
    c = max(c, 1)
    p = chi2_tail(c, 2.0 * likely)
    # Where it underflows: the first term of its expansion.
    tail = likely - (0.5 * c - 1.0) * np.log(likely) + lgamma(0.5 * c)
    return given + (-float(np.log(p)) if p > 0.0 else tail)


def ranked(
    trials: Sequence[Hypothesis],
    described: float,
    tests: Sequence[ResidualTest],
    explaining: Sequence[Hypothesis],
    flagged: Collection[str],
) -> tuple[DescriptionTest, ...]:
    """Corrections that the logs need, then the description, then the others by their probability.

    Args:
        trials: Corrections that were fitted.
        described: Residual of the description, in percent.
        tests: Linear tests of the residuals; those of the description that were not fitted are listed too.
        explaining: Those of the trials that explain the residuals, in this order.
        flagged: Warnings of linear tests that refits have not replaced: their trials are needed too.
    """
    warned = [f" {test.about} ".replace(",", "") for test in tests if test.warned]
    words = {id(trial): f" {trial.name} ".replace("'", "").replace(",", "") for trial in trials}
    needed = [
        t for t in trials if t.code in flagged and t.left < 1 and any(a in words[id(t)] for a in warned)
    ]
    first = {id(trial): trial for trial in (*explaining, *needed)}
    best = [DescriptionTest(trial.name, trial.percent, trial.p) for trial in first.values()]
    other = [DescriptionTest(t.name, t.percent, t.p) for t in trials if id(t) not in first]
    tried = {trial.code for trial in trials}
    for test in tests:
        if test.test not in _NAMES or (test.test == "gravity" and CODES[test.test] in tried):
            continue
        left, name = float(np.sqrt(max(1.0 - test.explains, 0.0))), _NAMES[test.test].format(test.about)
        if not any(name == listed.subject for listed in (*best, *other)):
            positions = CODES[test.test] in _OF_POSITIONS
            percent = left * (100.0 if positions else described)
            entry = DescriptionTest(name, percent, test.p_value, positions)
            (best if test.warned and CODES[test.test] in flagged else other).append(entry)
    plain = DescriptionTest(AS_DESCRIBED, described, 1.0)
    return (*best, plain, *sorted(other, key=lambda row: row.p))[:_MOST_LISTED]


def is_noise(trial: Hypothesis, floors: Mapping[str, float]) -> bool:
    """Whether a correction explains the residuals: little of them is left, or noise only.

    Half of the squares are enough for a correction without values of its own: the rest is what friction terms
    lack that were chosen with the fault. Not for columns of positions: there are many of them, and some other
    position resembles whatever the model of a real robot lacks.
    """
    enough = EXPLAINS if trial.added or trial.code == _COLUMNS else _GIVEN
    return trial.left < enough or all(rms < NOISE * floors.get(name, 0.0) for name, rms in trial.rms.items())


def _matters(trial: Hypothesis, floors: Mapping[str, float]) -> bool:
    """Whether a correction explains most of what exceeds the noise in some effort, if anything is.

    Where a model misses something else (elasticity, friction), many corrections help a little, significantly.
    """
    beyond = {
        name: before**2 - floors.get(name, 0.0) ** 2
        for name, before in trial.rms_described.items()
        if before > NOISE * floors.get(name, 0.0)
    }
    return not beyond or any(
        trial.rms_described[name] ** 2 - trial.rms.get(name, np.inf) ** 2 > EXPLAINS * excess
        for name, excess in beyond.items()
    )


def _noticeable(trial: Hypothesis) -> bool:
    """Whether what a correction explains is a noticeable part of the efforts.

    Parameters that a correction frees (a payload of some grams) absorb a little of whatever a model lacks.
    """
    before, after = (sum(x**2 for x in rms.values()) for rms in (trial.rms_described, trial.rms))
    return trial.percent**2 * (before - after) > (100.0 * NOTICEABLE) ** 2 * after


def explaining_trials(
    trials: Sequence[Hypothesis], floors: Mapping[str, float], doubts: Collection[str]
) -> list[Hypothesis]:
    """Corrections that the logs need, those with the most evidence first.

    Args:
        trials: What was fitted.
        floors: Noise floor of each effort, in its unit.
        doubts: Warnings of linear tests about the description: one quantity of it is wrong, and the refits
            decide which.
    """

    def explains(trial: Hypothesis) -> bool:
        doubted = bool(doubts) and trial.code in _DECIDED and (trial.code != _COLUMNS or trial.left < _GIVEN)
        better = trial.p < SIGNIFICANT and trial.left < 1.0  # one effort may gain more than the others lose
        needed = trial.added <= trial.fitted or _noticeable(trial)
        return better and needed and ((doubted and _matters(trial, floors)) or is_noise(trial, floors))

    # Corrections that free the same parameters differ by rounding: the one tried first comes first.
    return sorted((trial for trial in trials if explains(trial)), key=lambda trial: -round(trial.evidence, 3))


def with_size(estimate: Estimate, searched: ResidualTest | None) -> Estimate:
    """The estimate whose test of the cause has the size of the warning: no second value of one quantity."""
    if searched is None:
        return estimate
    about = (searched.test, searched.about)
    tests = [
        replace(test, value=searched.value, ci95=searched.ci95) if (test.test, test.about) == about else test
        for test in estimate.residual_tests
    ]
    return replace(estimate, residual_tests=tuple(tests))


def unconfirmed(estimate: Estimate, trials: Sequence[Hypothesis]) -> list[ResidualTest]:
    """Flagged suspects whose own fit, at their most likely size, is not significantly better."""
    fitted = {(t.searched.test, t.searched.about): t.p for t in trials if t.searched is not None}
    return [
        test
        for test in estimate.residual_tests
        if test.warned and fitted.get((test.test, test.about), 0.0) > _NOTHING_FOUND
    ]


def without(estimate: Estimate, refuted: Sequence[ResidualTest], why: str) -> Estimate:
    """The estimate without some flagged suspects, and why: the positions refute them, or a fit does."""
    out = {id(test) for test in refuted}
    tests = tuple(
        replace(test, warned=False, note=why) if id(test) in out else test for test in estimate.residual_tests
    )
    left = {CODES.get(test.test, test.test) for test in tests if test.warned}
    gone = [(CODES.get(test.test, test.test), f"'{test.about}'") for test in refuted]
    warnings = tuple(
        note
        for note in estimate.warnings
        if not any(note.code == code and (code not in left or name in note.text) for code, name in gone)
    )
    return replace(estimate, residual_tests=tests, warnings=warnings)
