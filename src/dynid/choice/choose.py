"""Choose the settings that an experiment leaves open, by held-out error; the simplest of equals wins.

One setting after the other, each with the best of those before: estimator, velocities, cutoff, friction and
mask together, friction of each drive by its own effort, and the estimator again. A pass over the logs
serves all friction terms and estimators. What cannot be better by the margin is not tried: no settings
predict the reference rows better than a fit to these rows themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dynid.case import case_of
from dynid.choice.candidate import applied, drive_of, friction_choices, open_settings, with_single, with_terms
from dynid.choice.excerpt import excerpts
from dynid.choice.search import Search
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.experiment.estimator_choice import rows_without_effort
from dynid.experiment.experiment import Experiment
from dynid.mechanism.drive_terms import LOADED, SEARCHED
from dynid.motion.choose import noise_and_peak, spectra_of
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.motion.spectrum import Spectrum, core_band, motion_band
from dynid.projection.model import model_for
from dynid.statistics.estimate_parts import Candidate
from dynid.statistics.uncertainty import student_t
from dynid.unknown import Task, asks_for_unknowns, unknowns_of
from dynid.validation.folds import Fold, folds, joined_folds

_FOLDS = 5
_FEWEST = 3
# Periods of the motion's bandwidth in a fold: shorter parts are not new motion.
_PERIODS = 1.0
# A more complex candidate must be better by this part of the error: less is no gain, and the choice would
# depend on the last digits.
_MARGIN = 0.03
# Standard errors by which another filter must be better: the rules follow from noise and motion, while
# the efforts of one fold are not independent.
_DOUBTS = 2.0
_ONE_SIGMA = 0.6827  # probability within one standard error of many values
_LOWER = 0.5  # a cutoff to try next, relative to the last
_LEAST_BAND = 1.5  # times the frequency below which 99 % of the motion is: every cutoff passes it
_NOISIER = 3.0  # times the noise of derived velocities: measured ones must pay for it
_BOTH_WAYS = 0.3  # of the faster direction (rms): else friction of the slower one is extrapolated far
_WEAK = 1e4  # condition (scaled columns) above which loads of friction are not predicted
# Of the motion's bandwidth: the zero-phase Butterworth of order 4 leaves the motion unchanged to 1e-6.
_COORDINATES = 8.0
_VIBRATION = 3.0  # times the frequency below which 99 % of the motion is: 99.9 % are found here by vibration
_ROWS = 4.0


class Chosen(NamedTuple):
    """The task with its open settings chosen, what was tried, and notices about the choice."""

    task: Task
    tried: tuple[Candidate, ...] = ()
    notices: tuple[Notice, ...] = ()


def choose(task: Task) -> Chosen:
    """Choose every open setting; the task is unchanged where nothing is open or logs are too short."""
    robot, asked = task.mechanism, task.experiment
    model = model_for(robot, asked.model, asked.file)
    case = case_of(model)
    if asked.auto == "off" or not case.measures_efforts or case.moves_freely or asks_for_unknowns(asked):
        return Chosen(task)  # without efforts nothing can be held out
    given = case.defaults(asked, model, robot)
    open_ = open_settings(robot, given)
    sets = friction_choices(robot) if "friction" in open_ else ()
    # Rows without effort have settings of their own: a low-pass on coordinates would bias them.
    if not open_ or rows_without_effort(given, model, robot):
        return Chosen(task)
    # Slow motion may be lost to the mask: without it more is determined.
    plain = Candidate(friction=" ".join(sets[0]) if sets else "", estimator=str(given.estimator))
    starts = [plain, replace(plain, mask="none")] if "mask" in open_ else [plain]
    try:
        search = _started(replace(task, logs=excerpts(task.logs), experiment=given), sets)
        if search is None:
            raise InputError(_too_short(task.logs))
        start = search.started(starts)
        if len(search.folds) < _FEWEST:
            raise InputError("some parameters are determined by a single part of the logs")
        late = search.late_velocities(start) if "velocity" in open_ else ()
        search.judged_by(reference(given, search.spectra, search.plans), *_terms(search, start, sets))
    except InputError as error:  # logs that are too short, or refused later with the reason
        return Chosen(task, notices=(notice("nothing-chosen", why=str(error)),))
    if late:
        derived = asked.changed(filter=asked.filter.changed(velocity="derived"))
        again = choose(replace(task, experiment=derived))
        return again._replace(notices=(*late, *again.notices))
    wider, best = _searched(search, start, open_, sets)
    chosen = applied(best, given, robot.drive)
    task = replace(task, mechanism=with_terms(robot, best), experiment=chosen)
    if search.task.logs == task.logs and not unknowns_of(task):
        task = replace(task, prepared=search.problem_of(best) or wider.problem_of(best))
    return Chosen(task, _table(search, best))


def _too_short(logs: Sequence[Log]) -> str:
    """Why there are no folds, in words."""
    band = motion_band(spectra_of(logs))
    if not np.isfinite(band):
        return "nothing moves"
    total = sum((stop - start) * log.dt for log in logs for start, stop in log.segments)
    return (
        f"{total:.3g} s are {total * band:.2g} periods of the fastest motion ({band:.2g} Hz);"
        f" {_FEWEST} are needed, or {_FEWEST} logs"
    )


def _started(task: Task, sets: tuple[tuple[str, ...], ...]) -> Search | None:
    """Folds and the rows of the first candidate; None where the logs are too short for folds."""
    spectra = spectra_of(task.logs)
    parts = _parts(task, motion_band(spectra))
    if not parts:
        return None
    search = Search(task, task.mechanism, parts, spectra, sets[:1])
    search.plans = search.rows(Candidate())[1].plans
    return search


def _parts(task: Task, band: float) -> tuple[Fold, ...]:
    """Whole runs, or contiguous parts that are long compared with the motion; none if too short."""
    if not np.isfinite(band):
        return ()
    lengths = [(stop - start) * log.dt for log in task.logs for start, stop in log.segments]
    if len(lengths) >= _FEWEST:
        return folds(task.logs, min(_FOLDS, len(lengths)))
    count = min(_FOLDS, int(sum(lengths) * band / _PERIODS))
    return joined_folds(task.logs, count) if count >= _FEWEST else ()


def _searched(
    search: Search, best: Candidate, open_: frozenset[str], sets: tuple[tuple[str, ...], ...]
) -> tuple[Search, Candidate]:
    """One setting after the other, each with the best of those before; the search that ended with it."""
    if "estimator" in open_:
        best = _estimator(search, best)
    if "velocity" in open_:
        best = _velocity(search, best)
    if "cutoff" in open_ and _may_gain(search, best):
        best = _cutoff(search, best)
    masks = dict.fromkeys((best.mask, "none") if "mask" in open_ else (best.mask,))
    if "friction" in open_:
        search, best = _friction(search, best, sets, masks)
    elif len(masks) > 1 and _may_gain(search, best):
        best = _simplest(search, [replace(best, mask=mask) for mask in masks])
    if "estimator" in open_:
        best = _estimator(search, best)
    return search, best


def _may_gain(search: Search, best: Candidate) -> bool:
    """Whether other settings may predict better by the margin, over all efforts in all folds."""
    return not np.mean(search.tried(best) - search.least()) <= _MARGIN


def _estimator(search: Search, best: Candidate) -> Candidate:
    """`wls` or `consistent`; the linear estimate is the simpler of equals."""
    linear, consistent = (replace(best, estimator=name) for name in ("wls", "consistent"))
    search.tried(linear)
    if not _may_gain(search, linear) or not search.has_bodies(linear):
        return linear
    return _simplest(search, [linear, consistent])


def _friction(
    search: Search, best: Candidate, sets: tuple[tuple[str, ...], ...], masks: Iterable[str]
) -> tuple[Search, Candidate]:
    """Friction terms together with the mask: rows at reversals are worth most with the terms that act there.

    Loads are predicted by the best fit so far.
    """
    tried, loads = _terms(search, best, sets)
    if not tried:
        return search, best
    plain, search = search, search.extended(tried, loads)
    if not _may_gain(search, best):
        return plain, best
    candidates = [replace(best, mask=mask, friction=" ".join(symbols)) for mask in masks for symbols in tried]
    candidates = [candidate for candidate in candidates if search.both_ways(candidate) > _BOTH_WAYS]
    best = _sliding_too(search, candidates, _simplest(search, candidates))
    alike = [candidate for candidate in candidates if candidate.mask == best.mask]
    best = _simplest(search, [best, *_single_drives(search, best, alike)])
    search.narrowed(tuple(dict.fromkeys(drive_of(best, search.robot.drive).values())))
    return search, best


def _sliding_too(search: Search, candidates: Sequence[Candidate], best: Candidate) -> Candidate:
    """The best candidate, or the best with the mask at reversals, if the former is worse on its rows.

    Where a joint sticks, terms can follow the rows at its reversals at the cost of all others.
    """
    masked = [candidate for candidate in candidates if candidate.mask == "reversals"]
    if best.mask != "none" or not masked:
        return best
    sliding = _simplest(search, masked)
    return sliding if search.gain_on_rows_of(sliding, best) < -_MARGIN else best


def _terms(
    search: Search, best: Candidate, sets: tuple[tuple[str, ...], ...]
) -> tuple[tuple[tuple[str, ...], ...], dict[str, float]]:
    """Sets of friction terms to try with a candidate, and the parameters that predict loads, by name."""
    chi = search.fitted(best, None) if sets else None
    if chi is None:
        return (), {}
    # Each fold of a consistent estimate is a semidefinite program: sets that seldom win are not tried.
    tried = [symbols for symbols in sets if not set(symbols) & set(SEARCHED) or best.estimator == "wls"]
    if not search.condition(best) < _WEAK:
        tried = [symbols for symbols in tried if not set(symbols) & set(LOADED)]
    names = (parameter.name for parameter in search.parameters(best))
    return tuple(tried), dict(zip(names, chi.tolist(), strict=True))


def _single_drives(search: Search, best: Candidate, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """The candidate in which each drive has the set that predicts its own effort best, if they differ.

    Terms of a drive hardly change the other efforts, so that no further fit is needed to select them.
    """
    names = search.efforts
    if not set(names) <= set(search.robot.drive) or not search.size.all():
        return
    fitted = [(choice, search.tried(choice).reshape(search.size.shape)) for choice in candidates]
    fitted = [(choice, error) for choice, error in fitted if np.isfinite(error).all()]
    if not fitted:
        return
    by_effort = {
        name: fitted[_first_as_good([error[:, j] for _, error in fitted])][0].friction
        for j, name in enumerate(names)
    }
    single = {name: tuple(terms.split()) for name, terms in by_effort.items() if terms != best.friction}
    if single:
        yield with_single(best, single)


def _velocity(search: Search, best: Candidate) -> Candidate:
    """Measured or derived, if all logs have both and they agree.

    Measured ones stay if they are not worse by two standard errors. If they are much noisier than those
    derived from the positions, they must be better by the margin.
    """
    plan, logs = search.plans[0], search.task.logs
    if any(log.dq is None for log in logs) or plan.velocity == "derived":
        return best
    derived = replace(best, velocity="derived")
    if plan.cutoff is not None:
        settings = search.task.experiment.filter
        of_measured, of_derived = (
            noise_and_peak(settings, logs, search.spectra, plan.cutoff, plan.derivative, source)[0]
            for source in ("measured", "derived")
        )
        if np.median(of_measured) > _NOISIER * np.median(of_derived):
            return _simplest(search, [derived, best], 0.0)
    return _filter(search, [best, derived]) if _may_gain(search, best) else best


def _cutoff(search: Search, best: Candidate) -> Candidate:
    """Lower cutoffs as long as they help, and as long as they are far above the motion.

    A vibration that the efforts do not show spoils all cutoffs above it alike: only one below it helps.
    """
    core = core_band(search.spectra)
    cutoff = search.plans[0].cutoff
    while cutoff is not None and cutoff * _LOWER > _LEAST_BAND * core:
        far = cutoff * _LOWER > _COORDINATES * core
        cutoff = float(f"{cutoff * _LOWER:.2g}")
        lower = replace(best, cutoff=cutoff)
        if _filter(search, [best, lower]) is lower:
            best = lower
        elif not far:
            break
    return best


def _filter(search: Search, candidates: Sequence[Candidate]) -> Candidate:
    """`_simplest` of two filters, which act on all samples alike, while terms act where motion shows them.

    So what only one fold shows is no reason, and does not hide what all of them show.
    """
    errors = [search.by_fold(choice) for choice in candidates]
    return candidates[_first_as_good(errors, _DOUBTS * _wider(len(errors[0])), capped=True)]


def _simplest(search: Search, candidates: Sequence[Candidate], doubts: float = 1.0) -> Candidate:
    """The first candidate that is not worse than the best by a margin and `doubts` standard errors.

    The standard error is that of the difference to the best over the folds: efforts of one fold share its
    motion, and are not independent. It is as wide as Student's t has it for so few folds.
    """
    errors = [search.by_fold(choice) for choice in candidates]
    return candidates[_first_as_good(errors, doubts * _wider(len(errors[0])))]


def _first_as_good(errors: Sequence[Float[Array, "k"]], doubts: float = 1.0, capped: bool = False) -> int:
    """Number of the first candidate that is as good as the best; 0 where none could be fitted.

    One that is worse than a simpler one is no choice, however uncertain its difference to the best is.

    Args:
        errors: Of each candidate, one per fold.
        doubts: Standard errors of the difference to the best that a simpler one may be worse by.
        capped: Whether the largest gain of the best counts like the second largest.
    """
    best = errors[int(np.argmin([values.mean() for values in errors]))]
    if not np.isfinite(best).all():
        return 0
    least = np.inf
    for i, error in enumerate(errors):
        worse = error - best
        if np.isfinite(worse).all() and error.mean() < least:
            least = error.mean()
            worse = np.minimum(worse, np.sort(worse)[-2]) if capped else worse
            spread = float(np.std(worse, ddof=1) / np.sqrt(len(worse)))
            if worse.mean() <= max(doubts * spread, _MARGIN):
                return i
    return 0


def _wider(count: int) -> float:
    """One standard error from so few values, in those of many: the interval of the same probability."""
    return float(student_t(count - 1, _ONE_SIGMA))


def _table(search: Search, best: Candidate) -> tuple[Candidate, ...]:
    """What was tried, in the order in which it was."""
    return tuple(
        replace(
            candidate,
            cutoff=search.plans[0].cutoff if candidate.cutoff is None else candidate.cutoff,
            velocity=search.plans[0].velocity if candidate.velocity == "auto" else candidate.velocity,
            friction=candidate.friction or " ".join(next(iter(search.robot.drive.values()), ())),
            held_out_percent=None if not np.isfinite(error).all() else search.percent(candidate),
            chosen=candidate == best,
        )
        for candidate, error in search.error.items()
    )


# Reference rows that judge all candidates: a fixed filter, no mask at reversals.
#
# Noise of the reference must be small: a fit that is biased by noise predicts noisy rows best. So rows are
# low-passed at a few bandwidths of the motion, or where positions fall below their noise. Velocities are
# those of the rule: the other source must be better even on these.


def reference(experiment: Experiment, spectra: Sequence[Spectrum], plans: Sequence[MotionPlan]) -> Experiment:
    """The experiment whose rows judge: its filter and mask are the same for all candidates.

    Args:
        experiment: As the user gave it; a cutoff and velocities that are given stay.
        spectra: Of the positions.
        plans: Chosen by the rules for single settings.
    """
    core, band, cutoff = core_band(spectra), motion_band(spectra), plans[0].cutoff
    band = core if band > _VIBRATION * core else band  # without a vibration far above the motion
    filtering = experiment.filter
    if cutoff is not None and filtering.cutoff is None and np.isfinite(band):
        filtering = filtering.changed(cutoff=min(cutoff, _COORDINATES * band))
    if filtering.rows is None and filtering.cutoff is not None and np.isfinite(band):
        sink = max(
            float(np.median(spectrum.sink[spectrum.moving])) for spectrum in spectra if spectrum.moving.any()
        )
        # The kept rate is four cutoffs by default: rows below 1.5 cutoffs do not alias.
        filtering = filtering.changed(rows=min(_ROWS * band, max(sink, band), 1.5 * filtering.cutoff))
    filtering = filtering.changed(velocity=plans[0].velocity)
    return experiment.changed(filter=filtering, mask=experiment.mask.changed(speed=0.0))
