"""What candidates are fitted to and judged by: passes over the logs and fits, each made once."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from dynid.base.base import BaseSet
from dynid.base.system import BaseSystem, base_system
from dynid.choice.candidate import applied, rows_of, with_all_terms, with_terms
from dynid.choice.fold_rows import fold_rows, selected, squares, without
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, NoResultError
from dynid.common.notices import Notice
from dynid.estimator.consistent import consistent_exists
from dynid.estimator.estimator import estimator_named, solve_weighted, solved_within
from dynid.estimator.standard_space import StandardSpace
from dynid.experiment.experiment import Experiment
from dynid.linear_fit import base_of, speed_bounds, vector
from dynid.mechanism.drive_terms import LOADED, SEARCHED
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, parameter_table
from dynid.motion.choose import late_velocities
from dynid.motion.plan import MotionPlan
from dynid.motion.spectrum import Spectrum
from dynid.problem import Problem, prepare
from dynid.projection.projection import System
from dynid.realise import consistent_values, standard_space
from dynid.statistics.estimate_parts import Candidate
from dynid.unknown import Task
from dynid.validation.folds import Fold

_SINGULAR = 1e10  # condition (scaled columns) above which a column is lost without a fold
_DEPENDENT = 1e-12  # of the largest eigenvalue (unit columns): this combination of columns is zero
_PASSES = 3  # of weights
_NEGLIGIBLE = 5e-3  # of an effort: smaller errors are no reason to prefer a candidate


class Search:
    """What candidates are fitted to and judged by; passes and fits are kept.

    Attributes:
        sets: Drive terms that the next passes have columns for.
        loads: Standard parameters by name that predict loads of friction; empty: not yet.
        error: Logarithm of the relative error of every candidate tried, of each effort in each fold, shape
            (c,); infinite where a fit failed.
        folds: Numbers of the folds that judge: without each of them the first candidate is determined.
        size: Squares of the measured side per judging fold and effort, shape (k, j).
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
        self.folds = tuple(range(len(parts)))
        self.size = np.zeros((len(parts), 0))
        self._passes: dict[tuple[float | None, str, str], tuple[System, Problem]] = {}
        self._data: dict[tuple[object, ...], tuple[Problem, BaseSystem]] = {}
        self._fits: dict[tuple[Candidate, int | None], Float[Array, "p"] | None] = {}
        self._spaces: dict[tuple[object, ...], StandardSpace] = {}
        self._bases: dict[str, BaseSet] = {}
        self._weights: dict[tuple[float | None, str, str], dict[tuple[str, str], float]] = {}
        self._bodies: dict[Candidate, bool] = {}
        self._judge: System | None = None
        self._wider: Search | None = None
        self._least: Float[Array, "c"] | None = None
        self._problem: Problem | None = None
        self._reference: Experiment | None = None

    def started(self, candidates: Sequence[Candidate]) -> Candidate:
        """The first candidate that is determined without each fold, else the one that is without most.

        Folds without which it is not determined judge no candidate.
        """
        judging: dict[Candidate, tuple[int, ...]] = {}
        for candidate in candidates:
            folds = (k for k in range(len(self.parts)) if self.fitted(candidate, k) is not None)
            judging[candidate] = tuple(folds)
            if len(judging[candidate]) == len(self.parts):
                break
        start = max(judging, key=lambda candidate: len(judging[candidate]))
        self.folds = judging[start]
        return start

    def judged_by(
        self, experiment: Experiment, sets: tuple[tuple[str, ...], ...], loads: dict[str, float]
    ) -> None:
        """Stream the reference rows, at once with the columns that a search with more sets needs.

        Args:
            experiment: Of the reference rows.
            sets, loads: Those that `extended` will probably be asked for; none: there is no such search.
        """
        self._reference = experiment
        if sets:
            assert self._problem is not None  # noqa: S101 (candidates have been fitted)
            self._wider = self._with_columns(sets, loads)
            assert self._wider._judge is not None  # noqa: S101 (streamed)
            self._judge = selected(self._wider._judge, self._problem)
        else:
            self._judge = self._pass(experiment, near=self._problem)[0]
        none = np.zeros(len(self._judge.parameters))
        self.size = np.array([squares(self._judge, self._judge.parameters, none, k)[1] for k in self.folds])

    def extended(self, sets: tuple[tuple[str, ...], ...], loads: dict[str, float]) -> Search:
        """The same search with columns of more sets; loads of friction are predicted by these parameters."""
        wider = self._wider
        if wider is None or (wider.sets, wider.loads) != (sets, loads):
            wider = self._with_columns(sets, loads)
        wider.size = self.size
        return wider

    def _with_columns(self, sets: tuple[tuple[str, ...], ...], loads: dict[str, float]) -> Search:
        assert self._reference is not None  # noqa: S101 (set at the start)
        other = copy(self)
        other.sets, other.loads, other._passes, other._data = sets, loads, {}, {}
        other._fits, other._least, other._wider = {}, None, None
        other._judge = other._pass(self._reference, near=self._problem)[0]
        return other

    def least(self) -> Float[Array, "c"]:
        """Smallest error that settings can reach, as in `tried`: of a fit to the reference rows themselves.

        A fit to other rows, or within limits, is no better on these rows, except by chance.
        """
        assert self._judge is not None  # noqa: S101 (set at the start)
        if self._least is not None:
            return self._least
        number = {name: j for j, name in enumerate(self.efforts)}
        G = np.zeros((*self.size.shape, *2 * (len(self._judge.parameters) + 1,)))
        for group in self._judge.groups:
            assert group.times is not None  # noqa: S101 (made by `fold_rows`)
            at = np.append(group.columns, -1)
            for block, k in zip(group.blocks, group.times.tolist(), strict=True):
                if k in self.folds:
                    G[self.folds.index(k), number[group.name]][np.ix_(at, at)] += block.R.T @ block.R
        moved = self.size > 0.0
        share = np.ones_like(self.size)
        for _ in range(_PASSES):  # each square divided by itself: the mean of logarithms is least
            weights = np.where(moved, 1.0 / np.where(moved, self.size * share, 1.0), 0.0)
            chi = _nearest(np.tensordot(weights, G, 2))
            left = G @ chi @ chi
            share = np.where(moved, np.maximum(left, 0.0) / np.where(moved, self.size, 1.0), 1.0)
            share = share + _NEGLIGIBLE**2
        self._least = np.asarray(0.5 * np.log(share[moved]))
        return self._least

    def narrowed(self, sets: tuple[tuple[str, ...], ...]) -> None:
        """Only the columns of these sets are needed in further passes."""
        self.sets = sets
        self.loads = self.loads if any(set(terms) & set(LOADED) for terms in sets) else {}

    def rows(self, candidate: Candidate) -> tuple[System, Problem]:
        """The rows that a candidate is fitted to, by folds, with the columns of all sets."""
        if rows_of(candidate) not in self._passes:
            first = not self._passes  # usually chosen: its rows are needed again
            self._passes[rows_of(candidate)] = self._pass(applied(candidate, self.task.experiment), first)
        return self._passes[rows_of(candidate)]

    def problem_of(self, candidate: Candidate) -> Problem | None:
        """The problem of a candidate, if a pass was made for it that has its columns and no others."""
        _, problem = self._passes.get(rows_of(candidate), (None, None))
        if problem is None or problem.load_parameters is not None:
            return None
        terms = with_terms(self.robot, candidate)
        same = (terms.drive, terms.stribeck) == (problem.mechanism.drive, problem.mechanism.stribeck)
        return problem if same else None

    def _pass(
        self, experiment: Experiment, keep: bool = False, near: Problem | None = None
    ) -> tuple[System, Problem]:
        """Rows by folds; those near a problem judge: they have its directions, and poses of closed robots."""
        every = with_all_terms(self.robot, self.sets, _speeds(self.robot, self.sets, self._problem))
        problem = prepare(every, self.task.logs, experiment.changed(drive=None), aligned_to=near)
        if self.loads:
            problem = problem.with_load_parameters(vector(problem.parameters, self.loads))
        self._problem = self._problem or problem
        return fold_rows(problem, self.parts, keep, judging=near is not None), problem

    def fitted(self, candidate: Candidate, fold: int | None) -> Float[Array, "p"] | None:
        """Standard parameters of a candidate, fitted without a fold, shape (p,), SI.

        None if some parameter is not determined without this fold.
        """
        if (candidate, fold) not in self._fits:
            try:
                self._fits[candidate, fold] = self._new_fit(candidate, fold)
            except NoResultError:
                self._fits[candidate, fold] = None
        return self._fits[candidate, fold]

    def _new_fit(self, candidate: Candidate, fold: int | None) -> Float[Array, "p"] | None:
        problem, data = self._seen(candidate)
        system = without(data.blocked(), fold)
        if not system.groups:  # all rows are in this fold
            return None
        constraint = estimator_named(candidate.estimator).constraint
        weights = self._weights_of(candidate, data, system)
        if constraint is None:
            chi = solved_within(system, weights, _SINGULAR)
            return None if chi is None else np.asarray(data.S @ chi + data.base.c)
        linear = solve_weighted(system, weights)
        if not linear.condition_scaled < _SINGULAR:
            return None
        training, experiment = replace(data, system=system), applied(candidate, self.task.experiment)
        key = (rows_of(candidate), candidate.friction)
        if key not in self._spaces:
            self._spaces[key] = standard_space(problem, experiment, training, linear, constraint)
        return consistent_values(problem, experiment, training, linear, constraint, self._spaces[key])

    def has_bodies(self, candidate: Candidate) -> bool:
        """Whether there is a consistent estimate: bodies may grow without effect on the efforts."""
        if candidate not in self._bodies:
            self._bodies[candidate] = self._new_bodies(candidate)
        return self._bodies[candidate]

    def _new_bodies(self, candidate: Candidate) -> bool:
        options = estimator_named("consistent").constraint
        assert options is not None  # noqa: S101 (this estimator is its constraint)
        problem, data = self._seen(candidate)
        system = without(data.blocked(), None)
        linear = solve_weighted(system, self._weights_of(candidate, data, system))
        reduced = replace(data, system=system)
        space = standard_space(problem, applied(candidate, self.task.experiment), reduced, linear, options)
        return consistent_exists(space, options)

    def _seen(self, candidate: Candidate) -> tuple[Problem, BaseSystem]:
        """Equations of a candidate, and its rows by folds over the base parameters that they determine."""
        key = (rows_of(candidate), candidate.friction)
        if key not in self._data:
            system, every = self.rows(candidate)
            robot = with_terms(every.mechanism, candidate)
            same = robot is every.mechanism
            problem = every if same else replace(every, mechanism=robot, parameters=parameter_table(robot))
            if candidate.friction not in self._bases:
                asked = applied(candidate, self.task.experiment, robot.drive)
                self._bases[candidate.friction] = base_of(problem, asked)
            data = base_system(selected(system, problem), self._bases[candidate.friction])
            self._data[key] = problem, replace(data, equations=data.blocked())
        return self._data[key]

    def _weights_of(self, candidate: Candidate, data: BaseSystem, system: System) -> Float[Array, "g"]:
        """Weights of groups of rows: those of the first fit to all folds of the same rows."""
        if rows_of(candidate) not in self._weights:
            values = estimator_named("wls")(data.system).weights
            names = ((group.log, group.name) for group in data.system.groups)
            self._weights[rows_of(candidate)] = dict(zip(names, values.tolist(), strict=True))
        known = self._weights[rows_of(candidate)]
        return np.array([known[group.log, group.name] for group in system.groups])

    def condition(self, candidate: Candidate) -> float:
        """Of the weighted rows of all folds, with unit columns."""
        _, data = self._seen(candidate)
        weights = self._weights_of(candidate, data, data.system)
        return solve_weighted(data.system, weights).condition_scaled

    def both_ways(self, candidate: Candidate) -> float:
        """Speed in the slower direction over that in the faster one (rms), the least of all drives.

        Only of drives with viscous friction per direction; 1 without them.
        """
        square = dict.fromkeys((parameter.name for parameter in self.parameters(candidate)), 0.0)
        if not any(name.startswith("Fv+") for name in square):
            return 1.0
        system = selected(self.rows(candidate)[0], self._seen(candidate)[0])
        for group in system.groups:
            for block in group.blocks:
                sums = np.sum(block.W**2, axis=0).tolist()
                for i, x in zip(group.columns.tolist(), sums, strict=True):
                    square[system.parameters[i].name] += x
        pairs = [
            sorted((x, square[name.replace("Fv+", "Fv-", 1)]))
            for name, x in square.items()
            if name.startswith("Fv+")
        ]
        return min((float(np.sqrt(low / high)) if high else 0.0 for low, high in pairs), default=1.0)

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
        return self._missed_on(self._judge, candidate, self.size)

    def _missed_on(
        self, judge: System, candidate: Candidate, sizes: Float[Array, "k j"]
    ) -> Float[Array, "c"]:
        errors = []
        parameters = self.parameters(candidate)
        for k, size in zip(self.folds, sizes, strict=True):
            chi = self.fitted(candidate, k)
            if chi is None:
                return np.full(np.count_nonzero(sizes), np.inf)
            left = squares(judge, parameters, chi, k)[0]
            moved = size > 0.0
            errors.append(0.5 * np.log(left[moved] / size[moved] + _NEGLIGIBLE**2))
        return np.concatenate(errors)

    def gain_on_rows_of(self, other: Candidate, candidate: Candidate) -> float:
        """How much smaller the error of a candidate is on the rows of another, as a logarithm."""
        return self.error_on(other, other) - self.error_on(other, candidate)

    def error_on(self, rows: Candidate, candidate: Candidate) -> float:
        """Held-out error of a candidate on the rows that another is fitted to, mean of logarithms."""
        judge = self.rows(rows)[0]
        none = np.zeros(len(judge.parameters))
        sizes = np.array([squares(judge, judge.parameters, none, k)[1] for k in self.folds])
        return float(self._missed_on(judge, candidate, sizes).mean())

    def late_velocities(self, candidate: Candidate) -> tuple[Notice, ...]:
        """Why measured velocities are not used: they are late, and derived ones halve the error; else none.

        Rows with late velocities would judge derived ones unfairly, so each is judged by its own rows.
        """
        plan, logs = self.plans[0], self.task.logs
        if plan.velocity != "measured" or plan.cutoff is None:
            return ()
        late = late_velocities(self.task.experiment.filter, logs, plan.cutoff, plan.derivative)
        derived = replace(candidate, velocity="derived")
        try:
            gain = self.error_on(candidate, candidate) - self.error_on(derived, derived) if late else 0.0
        except (InputError, NoResultError):  # no samples left, or a column is lost
            return ()
        return late if gain > np.log(2.0) else ()

    def by_fold(self, candidate: Candidate) -> Float[Array, "k"]:
        """The mean of `tried` over the efforts of each fold, shape (k,)."""
        error, fold = self.tried(candidate), np.nonzero(self.size)[0]
        return np.array([error[fold == k].mean() for k in np.unique(fold)])

    @property
    def efforts(self) -> tuple[str, ...]:
        """Names of the efforts, in the order of `size`."""
        assert self._judge is not None  # noqa: S101 (set at the start)
        return tuple(dict.fromkeys(group.name for group in self._judge.groups))

    def percent(self, candidate: Candidate) -> float:
        """Held-out error of a candidate, geometric mean over efforts and folds."""
        return 100.0 * float(np.exp(self.tried(candidate).mean()))


def _nearest(G: Float[Array, "p1 p1"]) -> Float[Array, "p1"]:
    """Parameters and -1 for the measured side, of the least squares G = [W Y]^T [W Y]; W may lack rank."""
    scale = np.sqrt(np.maximum(np.diag(G), np.finfo(float).tiny))
    unit = G / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(unit[:-1, :-1])
    kept = values > _DEPENDENT * values[-1]
    chi = vectors[:, kept] @ ((vectors[:, kept].T @ unit[:-1, -1]) / values[kept])
    return np.append(chi * scale[-1] / scale[:-1], -1.0)


def _speeds(robot: Mechanism, sets: tuple[tuple[str, ...], ...], problem: Problem | None) -> dict[str, float]:
    """A Stribeck speed of each owner for the comparison: the middle of those that the logs show."""
    if problem is None or not any(set(terms) & set(SEARCHED) for terms in sets):
        return {}
    owners = tuple(owner for owner in robot.drive if owner not in robot.stribeck)
    return {
        owner: float(np.sqrt(low * high))
        for owner, (low, high) in zip(owners, speed_bounds(problem, owners), strict=True)
    }
