"""Choose the settings that an experiment leaves open, by held-out error; the simplest of equals wins.

One setting after the other, each with the best of those before: estimator, velocities, cutoff,
friction, mask, and the estimator again. A pass over the logs serves all
friction terms and estimators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynid.base.base import BaseSet
from dynid.base.system import BaseSystem, base_system
from dynid.case import case_of
from dynid.choice.candidate import Candidate, Open, open_settings, with_all_terms, with_terms
from dynid.choice.fold_rows import fold_rows, selected, squares, without
from dynid.choice.reference import bandwidth, reference, spectra_of
from dynid.common.arrays import Array
from dynid.common.errors import InputError, NoResultError
from dynid.common.notices import Notice, notice
from dynid.estimator.consistent import nearest_consistent
from dynid.estimator.estimator import estimator_named, solve_weighted
from dynid.estimator.physical import data_term
from dynid.estimator.semidefinite import SOLVED
from dynid.estimator.standard_space import StandardSpace
from dynid.estimator.wls import Weights
from dynid.experiment.estimator_choice import rows_without_effort
from dynid.experiment.experiment import Experiment
from dynid.linear import base_of, speed_bounds, vector
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, parameter_table
from dynid.motion.choose import noise_and_peak
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.motion.spectrum import Spectrum
from dynid.problem import Problem, prepare
from dynid.projection.model import model_for
from dynid.projection.projection import System
from dynid.realise import consistent_values, standard_space
from dynid.statistics.estimate import Tried
from dynid.statistics.physical import physical_test
from dynid.unknown import Task
from dynid.validation.folds import Fold, folds

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
_SINGULAR = 1e10  # condition (scaled columns) above which a column is lost without a fold
_NEGLIGIBLE = 5e-3  # of an effort: smaller errors are no reason to prefer a candidate
_LOWER = 0.5  # a cutoff to try next, relative to the last
_LEAST_BAND = 1.5  # times the frequency below which 99 % of the motion is: every cutoff passes it
_NOISIER = 3.0  # times the noise of derived velocities: measured ones must pay for it
_WEAK = 1e4  # condition (scaled columns) above which loads of friction are not predicted


class _Search:
    """What candidates are fitted to and judged by; passes and fits are kept.

    Attributes:
        sets: Drive terms that the next passes have columns for.
        loads: Standard parameters by name that predict loads of friction; empty: not yet.
        error: Logarithm of the relative error of every candidate tried, of each effort in each fold, shape
            (c,); infinite where a fit failed.
        size: Squares of the measured side per fold and effort, shape (k, j).
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
        self.error: dict[Candidate, Float[Array, "c"]] = {}
        self.size = np.zeros((len(parts), 0))
        self._passes: dict[tuple[float | None, bool, str], tuple[System, Problem]] = {}
        self._data: dict[tuple[object, ...], tuple[Problem, BaseSystem]] = {}
        self._spaces: dict[tuple[object, ...], StandardSpace] = {}
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

    def extended(self, sets: tuple[tuple[str, ...], ...], loads: dict[str, float]) -> None:
        """Loads of friction are known from here on: passes are streamed again."""
        self.sets, self.loads, self._passes, self._data = sets, loads, {}, {}
        assert self._reference is not None  # noqa: S101 (set at the start)
        self._judge = self._pass(self._reference)[0]

    def narrowed(self, friction: tuple[str, ...]) -> None:
        """Only these columns are needed in further passes."""
        self.sets = (friction,)
        self.loads = self.loads if "Fl" in friction else {}

    def rows(self, candidate: Candidate) -> tuple[System, Problem]:
        """The rows that a candidate is fitted to, by folds, with the columns of all sets."""
        if candidate.rows not in self._passes:
            self._passes[candidate.rows] = self._pass(candidate.of(self.task.experiment))
        return self._passes[candidate.rows]

    def _pass(self, experiment: Experiment) -> tuple[System, Problem]:
        every = with_all_terms(self.robot, self.sets, _speeds(self.robot, self.sets, self._problem))
        problem = prepare(every, self.task.logs, experiment.changed(drive=None))
        if self.loads:
            problem = problem.with_load_parameters(vector(problem.parameters, self.loads))
        self._problem = self._problem or problem
        return fold_rows(problem, self.parts), problem

    def fitted(self, candidate: Candidate, fold: int | None) -> Float[Array, "p"] | None:
        """Standard parameters of a candidate, fitted without a fold, shape (p,), SI; None if that failed."""
        problem, data = self._seen(candidate)
        experiment = candidate.of(self.task.experiment)
        system = without(data.blocked(), fold)
        constraint = estimator_named(candidate.estimator).constraint
        linear = solve_weighted(system, Weights(self._weights_of(candidate, data, system)))
        if not linear.condition_scaled < _SINGULAR:
            return None  # some parameter is not determined without this fold
        if constraint is None:
            return np.asarray(data.S @ linear.chi + data.base.c)
        key = (candidate.rows, candidate.friction)
        if key not in self._spaces:
            term = data_term(system, linear, data.G)
            self._spaces[key] = standard_space(problem, experiment, term, constraint)
        own = replace(data, system=system)
        return consistent_values(problem, experiment, own, linear, constraint, self._spaces[key])

    def bodies(self, candidate: Candidate) -> tuple[bool, bool]:
        """Of the estimate from all folds: is there a consistent one, and does noise explain the difference?

        Bodies may grow without effect on the efforts: then there is no consistent estimate.
        """
        options = estimator_named("consistent").constraint
        assert options is not None  # noqa: S101 (this estimator is its constraint)
        problem, data = self._seen(candidate)
        system = without(data.blocked(), None)
        linear = solve_weighted(system, Weights(self._weights_of(candidate, data, system)))
        term = data_term(system, linear, data.G)
        space = standard_space(problem, candidate.of(self.task.experiment), term, options)
        if nearest_consistent(space, term, options).status != SOLVED:
            return False, True
        return True, not physical_test(space, term)

    def _seen(self, candidate: Candidate) -> tuple[Problem, BaseSystem]:
        """Equations of a candidate, and its rows by folds over the base parameters that they determine."""
        key = (candidate.rows, candidate.friction)
        if key not in self._data:
            system, every = self.rows(candidate)
            robot = with_terms(every.mechanism, candidate)
            problem = replace(every, mechanism=robot, parameters=parameter_table(robot))
            if candidate.friction not in self._bases:
                self._bases[candidate.friction] = base_of(problem, candidate.of(self.task.experiment))
            data = base_system(selected(system, problem), self._bases[candidate.friction])
            self._data[key] = problem, replace(data, equations=data.blocked())
        return self._data[key]

    def _weights_of(self, candidate: Candidate, data: BaseSystem, system: System) -> Float[Array, "g"]:
        """Weights of groups of rows: those of the first fit to all folds of the same rows."""
        if candidate.rows not in self._weights:
            found = estimator_named("wls")(data.system).weights
            names = ((group.log, group.name) for group in data.system.groups)
            self._weights[candidate.rows] = dict(zip(names, found.tolist(), strict=True))
        known = self._weights[candidate.rows]
        return np.array([known[group.log, group.name] for group in system.groups])

    def condition(self, candidate: Candidate) -> float:
        """Of the weighted rows of all folds, with unit columns."""
        _, data = self._seen(candidate)
        weights = self._weights_of(candidate, data, data.system)
        return solve_weighted(data.system, Weights(weights)).condition_scaled

    def parameters(self, candidate: Candidate) -> tuple[Parameter, ...]:
        """Standard parameters of a candidate."""
        return self._seen(candidate)[0].parameters

    def tried(self, candidate: Candidate) -> Float[Array, "c"]:
        """Logarithm of the relative error of each effort in each fold, not seen by its fit, shape (c,).

        Relative: efforts of all sizes and units count alike, and so do folds with slow and fast motion.
        """
        if candidate not in self.error:
            try:
                self.error[candidate] = self._missed(candidate)
            except (InputError, NoResultError):  # no samples left, or a column is lost without a fold
                self.error[candidate] = np.full(np.count_nonzero(self.size), np.inf)
        return self.error[candidate]

    def _missed(self, candidate: Candidate) -> Float[Array, "c"]:
        assert self._judge is not None  # noqa: S101 (set at the start)
        errors = []
        parameters = self.parameters(candidate)
        for k, size in enumerate(self.size):
            chi = self.fitted(candidate, k)
            if chi is None:
                return np.full(np.count_nonzero(self.size), np.inf)
            left = squares(self._judge, parameters, chi, k)[0]
            moved = size > 0.0
            errors.append(0.5 * np.log(left[moved] / size[moved] + _NEGLIGIBLE**2))
        return np.concatenate(errors)

    def percent(self, candidate: Candidate) -> float:
        """Held-out error of a candidate, geometric mean over efforts and folds."""
        return 100.0 * float(np.exp(self.tried(candidate).mean()))


class Chosen(NamedTuple):
    """The task with its open settings chosen, what was tried, and notices about the choice."""

    task: Task
    tried: tuple[Tried, ...] = ()
    notices: tuple[Notice, ...] = ()


def choose(task: Task) -> Chosen:
    """Choose every open setting; the task is unchanged where nothing is open or logs are too short."""
    robot, asked = task.mechanism, task.experiment
    model = model_for(robot, asked.model, asked.file)
    case = case_of(model)
    if asked.auto == "off" or not case.chooses(asked):
        return Chosen(task)
    given = case.defaults(asked, model, robot)
    open_ = open_settings(robot, given)
    # Rows without effort have settings of their own: a low-pass on coordinates would bias them.
    if not open_ or rows_without_effort(given, model, robot):
        return Chosen(task)
    try:
        search = _started(replace(task, experiment=given), open_)
    except InputError as error:  # logs that are too short, or refused later with the reason
        return Chosen(task, notices=(notice("nothing-chosen", why=str(error)),))
    if search is None:
        return Chosen(task, notices=(notice("nothing-chosen", why=_too_short(task.logs)),))
    best = _searched(search, open_)
    chosen = best.of(given)
    return Chosen(replace(task, mechanism=with_terms(robot, best), experiment=chosen), _table(search, best))


def _too_short(logs: Sequence[Log]) -> str:
    """Why there are no folds, in words."""
    band = bandwidth(spectra_of(logs))
    if not np.isfinite(band):
        return "nothing moves"
    shortest = min((stop - start) * log.dt for log in logs for start, stop in log.segments)
    return (
        f"{shortest:.3g} s are {shortest * band:.2g} periods of the fastest motion ({band:.2g} Hz);"
        f" {_FEWEST} are needed, or {_FEWEST} logs"
    )


def _started(task: Task, open_: Open) -> _Search | None:
    """Folds and reference rows; None where the logs are too short for folds."""
    robot, experiment = task.mechanism, task.experiment
    spectra = spectra_of(task.logs)
    parts = _parts(task, bandwidth(spectra))
    if not parts:
        return None
    search = _Search(task, robot, parts, spectra, open_.friction[:1])
    _, problem = search.rows(Candidate())
    search.plans = problem.plans
    search.judged_by(reference(experiment, spectra, problem.plans))
    return search


def _parts(task: Task, band: float) -> tuple[Fold, ...]:
    """Whole runs, or contiguous parts that are long compared with the motion; none if too short."""
    if not np.isfinite(band):
        return ()
    lengths = [(stop - start) * log.dt for log in task.logs for start, stop in log.segments]
    if len(lengths) >= _FEWEST:
        return folds(task.logs, min(_FOLDS, len(lengths)))
    count = min(_FOLDS, int(min(lengths) * band / _PERIODS))
    return folds(task.logs, count) if count >= _FEWEST else ()


def _searched(search: _Search, open_: Open) -> Candidate:
    """One setting after the other, each with the best of those before."""
    best = Candidate(friction=open_.friction[0] if open_.friction else None)
    if open_.estimator:
        best = _estimator(search, best)
    if open_.velocity:
        best = _velocity(search, best)
    if open_.cutoff:
        best = _cutoff(search, best)
    if len(open_.friction) > 1:
        best = _friction(search, best, open_.friction)
    if open_.mask:
        best = _simplest(search, [best, replace(best, mask=False)])
    if open_.estimator:
        best = _estimator(search, best)
    return best


def _estimator(search: _Search, best: Candidate) -> Candidate:
    """`wls` or `consistent`.

    The linear estimate is the simpler of equals. But if it is not physical, and noise does not explain
    this, then errors of the model do: the constraint is knowledge that it lacks, and comes first.
    """
    linear, consistent = (replace(best, estimator=name) for name in ("wls", "consistent"))
    exist, explained = search.bodies(linear)
    if not exist:
        return _simplest(search, [linear])
    return _simplest(search, [linear, consistent] if explained else [consistent, linear])


def _friction(search: _Search, best: Candidate, sets: tuple[tuple[str, ...], ...]) -> Candidate:
    """Friction terms; loads are predicted by the best fit so far."""
    chi = search.fitted(best, None)
    if chi is None:
        return best
    # Each fold of a consistent estimate is a semidefinite program: sets that seldom win are not tried.
    tried = [one for one in sets if "Fk" not in one or best.estimator == "wls"]
    tried = [one for one in tried if "Fl" not in one or search.condition(best) < _WEAK]
    names = (parameter.name for parameter in search.parameters(best))
    search.extended(tuple(tried), dict(zip(names, chi.tolist(), strict=True)))
    best = _simplest(search, [replace(best, friction=one) for one in tried])
    search.narrowed(best.friction or ())
    return best


def _velocity(search: _Search, best: Candidate) -> Candidate:
    """Measured or derived, if all logs have both and they agree.

    Measured ones stay if they are not worse by two standard errors. If they are much noisier than those
    derived from the positions, they must be better by the margin.
    """
    plan, logs = search.plans[0], search.task.logs
    if any(log.dq is None for log in logs) or plan.velocity == "derived":
        return best
    derived = replace(best, velocity="derived")
    if plan.cutoff is not None:
        own = search.task.experiment.filter
        of_measured, of_derived = (
            noise_and_peak(own, logs, search.spectra, plan.cutoff, plan.derivative, source)[0]
            for source in ("measured", "derived")
        )
        if np.median(of_measured) > _NOISIER * np.median(of_derived):
            return _simplest(search, [derived, best], 0.0)
    return _simplest(search, [best, derived], _DOUBTS)


def _cutoff(search: _Search, best: Candidate) -> Candidate:
    """Lower cutoffs as long as they help; then one that is higher than the rule's."""
    start = search.plans[0].cutoff
    least = _LEAST_BAND * max(float(np.max(one.core[one.moving], initial=0.0)) for one in search.spectra)
    cutoff = start
    while cutoff is not None and cutoff * _LOWER > least:
        cutoff = float(f"{cutoff * _LOWER:.2g}")
        lower = replace(best, cutoff=cutoff)
        if _simplest(search, [best, lower], _DOUBTS) is best:
            break
        best = lower
    return best


def _simplest(search: _Search, candidates: Sequence[Candidate], doubts: float = 1.0) -> Candidate:
    """The first candidate that is not worse than the best by a margin and `doubts` standard errors.

    The standard error is that of the difference to the best, over all efforts in all folds.
    """
    errors = [search.tried(one) for one in candidates]
    best = errors[int(np.argmin([one.mean() for one in errors]))]
    if not np.isfinite(best).all():
        return candidates[0]
    for candidate, error in zip(candidates, errors, strict=True):
        worse = error - best
        if np.isfinite(worse).all():
            spread = float(np.std(worse, ddof=1) / np.sqrt(len(worse)))
            if worse.mean() <= max(doubts * spread, _MARGIN):
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
