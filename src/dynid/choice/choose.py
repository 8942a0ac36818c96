"""Choose the settings that an experiment leaves open, by held-out error; the simplest of equals wins.

One setting after the other, each with the best of those before: estimator, friction, mask, velocities,
cutoff, and the estimator again if the others have changed. A pass over the logs serves all
friction terms and estimators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from dynid.base.base import BaseSet
from dynid.base.system import BaseSystem, base_system
from dynid.case import case_of
from dynid.choice.candidate import Candidate, Open, open_settings, with_all_terms, with_terms
from dynid.choice.fold_rows import fold_rows, selected, squares, without
from dynid.choice.reference import bandwidth, reference, spectra_of
from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.estimator.estimator import estimator_named, solve_weighted
from dynid.estimator.solution import CONVERGED, Solution
from dynid.estimator.wls import Weights
from dynid.experiment.experiment import Experiment
from dynid.linear import base_of, vector
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.motion.plan import MotionPlan
from dynid.motion.spectrum import Spectrum
from dynid.problem import Problem, prepare
from dynid.projection.model import model_for
from dynid.projection.projection import System
from dynid.realise import consistent_values
from dynid.statistics.estimate import Tried
from dynid.unknown import Task
from dynid.unknowns.stribeck import speed_bounds
from dynid.validation.folds import Fold, folds

_FOLDS = 5
_FEWEST = 3
# Periods of the motion's bandwidth in a fold: shorter parts are not new motion.
_PERIODS = 2.0
# A more complex candidate must be better by this part of the error: less is no gain, and the choice
# would depend on the last digits.
_MARGIN = 0.02
_LOWER = 0.5  # a cutoff to try next, relative to the last
_LEAST_BAND = 1.5  # bandwidths of the motion that every cutoff passes
_WEAK = 1e4  # condition (scaled columns) above which loads of friction are not predicted


class _Search:
    """What candidates are fitted to and judged by; passes and fits are kept.

    Attributes:
        sets: Drive terms that the next passes have columns for.
        loads: Standard parameters by name that predict loads of friction; empty: not yet.
        error: Squares per fold of every candidate tried, shape (k,); infinite where a fit failed.
        size: Squares of the measured side per fold, shape (k,).
    """

    def __init__(
        self,
        task: Task,
        robot: Mechanism,
        parts: tuple[Fold, ...],
        spectra: list[Spectrum],
        sets: tuple[tuple[str, ...], ...],
    ) -> None:
        self.task, self.robot, self.parts, self.spectra, self.sets = task, robot, parts, spectra, sets
        self.plans: Sequence[MotionPlan] = ()
        self.loads: dict[str, float] = {}
        self.error: dict[Candidate, Float[Array, "k"]] = {}
        self.size = np.zeros(len(parts))
        self._passes: dict[tuple[float | None, bool, str], tuple[System, Problem]] = {}
        self._bases: dict[tuple[str, ...] | None, BaseSet] = {}
        self._weights: dict[tuple[float | None, bool, str], dict[tuple[str, str], float]] = {}
        self._judge: System | None = None
        self._problem: Problem | None = None
        self._reference: Experiment | None = None

    def judged_by(self, experiment: Experiment) -> None:
        """Stream the reference rows."""
        self._reference = experiment
        self._judge = self._pass(experiment)[0]
        none = np.zeros(len(self._judge.parameters))
        pairs = [squares(self._judge, self._judge.parameters, none, k) for k in range(len(self.parts))]
        self.size = np.array([size for _, size in pairs])

    def narrowed(self, sets: tuple[tuple[str, ...], ...], loads: dict[str, float]) -> None:
        """Other columns from here on: passes are streamed again."""
        self.sets, self.loads, self._passes = sets, loads, {}
        assert self._reference is not None  # noqa: S101 (set at the start)
        self._judge = self._pass(self._reference)[0]

    def rows(self, candidate: Candidate) -> tuple[System, Problem]:
        """The rows that a candidate is fitted to, by folds, with the columns of all sets."""
        if candidate.rows not in self._passes:
            self._passes[candidate.rows] = self._pass(candidate.of(self.task.experiment))
        return self._passes[candidate.rows]

    def _pass(self, experiment: Experiment) -> tuple[System, Problem]:
        every = with_all_terms(self.robot, self.sets, _speeds(self.robot, self.sets, self._problem))
        problem = prepare(every, self.task.logs, replace(experiment, drive=None))
        if self.loads:
            problem = problem.with_load_parameters(vector(problem.parameters, self.loads))
        self._problem = self._problem or problem
        return fold_rows(problem, self.parts), problem

    def fitted(self, candidate: Candidate, fold: int | None) -> tuple[Problem, Float[Array, "p"] | None]:
        """Equations of a candidate, and standard parameters fitted without a fold; None: that failed."""
        system, every = self.rows(candidate)
        robot = with_terms(every.mechanism, candidate)
        problem = replace(every, mechanism=robot, parameters=parameter_table(robot))
        experiment = candidate.of(self.task.experiment)
        if candidate.friction not in self._bases:
            self._bases[candidate.friction] = base_of(problem, experiment)
        own = selected(without(system, fold), problem)
        data = base_system(own, self._bases[candidate.friction])
        estimator = estimator_named(candidate.estimator)
        linear = self._linear(candidate, data, fold)
        if linear.status != CONVERGED:
            return problem, None
        if estimator.constraint is None:
            return problem, np.asarray(data.S @ linear.chi + data.base.c)
        return problem, consistent_values(problem, experiment, data, linear, estimator.constraint)

    def _linear(self, candidate: Candidate, data: BaseSystem, fold: int | None) -> Solution:
        """Weighted least squares; weights are those of the first fit to all folds."""
        names = [(group.log, group.name) for group in data.system.groups]
        if candidate.rows not in self._weights:
            found = estimator_named("wls")(data.system)
            self._weights[candidate.rows] = dict(zip(names, found.weights.tolist(), strict=True))
            return found
        known = self._weights[candidate.rows]
        return solve_weighted(data.system, Weights(np.array([known[name] for name in names])))

    def tried(self, candidate: Candidate) -> Float[Array, "k"]:
        """Squares that a candidate misses in each fold it has not seen, shape (k,)."""
        if candidate not in self.error:
            try:
                self.error[candidate] = self._missed(candidate)
            except InputError:  # a cutoff that leaves no samples, too few rows without a fold
                self.error[candidate] = np.full(len(self.parts), np.inf)
        return self.error[candidate]

    def _missed(self, candidate: Candidate) -> Float[Array, "k"]:
        assert self._judge is not None  # noqa: S101 (set at the start)
        self.fitted(replace(candidate, estimator="wls"), None)  # weights
        missed = []
        for k in range(len(self.parts)):
            problem, chi = self.fitted(candidate, k)
            missed.append(np.inf if chi is None else squares(self._judge, problem.parameters, chi, k)[0])
        return np.array(missed)

    def percent(self, candidate: Candidate) -> float:
        """Held-out error of a candidate."""
        return 100.0 * float(np.sqrt(self.tried(candidate).sum() / self.size.sum()))


def choose(task: Task) -> tuple[Task, tuple[Tried, ...]]:
    """The task with every open setting chosen, and what was tried; unchanged where nothing is open."""
    robot, asked = task.mechanism, task.experiment
    model = model_for(robot, asked.model, asked.file)
    case = case_of(model)
    if asked.auto == "off" or not case.chooses(asked):
        return task, ()
    given = case.defaults(asked, model, robot)
    open_ = open_settings(robot, given)
    if not open_:
        return task, ()
    try:
        search = _started(replace(task, experiment=given), open_)
    except InputError:
        return task, ()  # logs that are too short, or refused later with the reason
    if search is None:
        return task, ()
    best = _searched(search, open_)
    chosen = best.of(given)
    return replace(task, mechanism=with_terms(robot, best), experiment=chosen), _table(search, best)


def _started(task: Task, open_: Open) -> _Search | None:
    """Folds and reference rows; None where the logs are too short for folds."""
    robot, experiment = task.mechanism, task.experiment
    spectra = spectra_of(task.logs)
    parts = _parts(task, bandwidth(spectra))
    if not parts:
        return None
    search = _Search(task, robot, parts, spectra, open_.friction)
    _, problem = search.rows(Candidate())
    search.plans = problem.plans
    search.judged_by(reference(experiment, task.logs, spectra, problem.plans))
    return search


def _parts(task: Task, band: float) -> tuple[Fold, ...]:
    """Whole runs, or contiguous parts that are long compared with the motion; none if too short."""
    seconds = sum((stop - start) * log.dt for log in task.logs for start, stop in log.segments)
    runs = sum(len(log.segments) for log in task.logs)
    if not np.isfinite(band):
        return ()
    count = min(_FOLDS, int(seconds * band / _PERIODS / max(1, runs if runs < _FOLDS else 1)))
    return folds(task.logs, count) if count >= _FEWEST else ()


def _searched(search: _Search, open_: Open) -> Candidate:
    """One setting after the other, each with the best of those before."""
    best = Candidate(friction=open_.friction[0] if open_.friction else None)
    if open_.estimator:
        best = _simplest(search, [best, replace(best, estimator="consistent")])
    if len(open_.friction) > 1:
        best = _friction(search, best, open_.friction)
    if open_.mask:
        best = _simplest(search, [best, replace(best, mask=False)])
    if open_.velocity:
        best = _simplest(search, [best, *_velocities(search, best)])
    if open_.cutoff:
        best = _cutoff(search, best)
    if open_.estimator:
        pair = [replace(best, estimator=name) for name in ("wls", "consistent")]
        best = _simplest(search, pair)
    return best


def _friction(search: _Search, best: Candidate, sets: tuple[tuple[str, ...], ...]) -> Candidate:
    """Friction terms; loads are predicted by the best fit so far."""
    problem, chi = search.fitted(best, None)
    if chi is None:
        return best
    names = (parameter.name for parameter in problem.parameters)
    search.narrowed(sets, dict(zip(names, chi.tolist(), strict=True)))
    best = _simplest(search, [replace(best, friction=one) for one in sets])
    search.narrowed((best.friction,), search.loads)
    return best


def _velocities(search: _Search, best: Candidate) -> list[Candidate]:
    """The other source of velocity, if all logs have both and they agree."""
    if any(log.dq is None for log in search.task.logs) or search.plans[0].velocity == "derived":
        return []
    return [replace(best, velocity="derived")]


def _cutoff(search: _Search, best: Candidate) -> Candidate:
    """Lower cutoffs as long as they help; then one that is higher than the rule's."""
    start = search.plans[0].cutoff
    least = _LEAST_BAND * bandwidth(search.spectra)
    cutoff = start
    while cutoff is not None and cutoff * _LOWER > least:
        cutoff = float(f"{cutoff * _LOWER:.2g}")
        lower = replace(best, cutoff=cutoff)
        if _simplest(search, [best, lower]) is best:
            break
        best = lower
    return best


def _simplest(search: _Search, candidates: Sequence[Candidate]) -> Candidate:
    """The first candidate that is not worse than the best by a margin and one standard error.

    The standard error is that of the difference to the best, fold by fold.
    """
    errors = [search.tried(one) for one in candidates]
    best = errors[int(np.argmin([one.sum() for one in errors]))]
    if not np.isfinite(best).all():
        return candidates[0]
    for candidate, error in zip(candidates, errors, strict=True):
        difference = error - best
        if not np.isfinite(difference).all():
            continue
        spread = float(np.sqrt(len(best)) * np.std(difference, ddof=1))
        # Squares: a margin of the error is twice that of its square.
        if difference.sum() <= max(spread, 2.0 * _MARGIN * best.sum()):
            return candidate
    return candidates[0]


def _table(search: _Search, best: Candidate) -> tuple[Tried, ...]:
    """What was tried, in the order in which it was."""
    return tuple(
        Tried(
            cutoff=search.plans[0].cutoff if one.cutoff is None else one.cutoff,
            mask="reversals" if one.mask else "none",
            velocity=search.plans[0].velocity if one.velocity == "auto" else one.velocity,
            friction=" ".join(one.friction or next(iter(search.robot.drive.values()), ())),
            estimator=one.estimator,
            held_out_percent=None if not np.isfinite(error).all() else search.percent(one),
            chosen=one == best,
        )
        for one, error in search.error.items()
    )


def _speeds(robot: Mechanism, sets: tuple[tuple[str, ...], ...], problem: Problem | None) -> dict[str, float]:
    """A Stribeck speed of each owner for the comparison: the middle of those that the logs show."""
    if problem is None or not any("Fk" in one for one in sets):
        return {}
    owners = tuple(owner for owner in robot.drive if owner not in robot.stribeck)
    return {
        owner: float(np.sqrt(low * high))
        for owner, (low, high) in zip(owners, speed_bounds(problem, owners), strict=True)
    }
