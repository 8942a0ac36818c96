"""Errors on samples that a fit has not seen: by held-out parts, by folds, or by other logs.

    held_out_percent = 100 |tau - tau_pred| / |tau|    both sides low-passed as the rows of the fit
    effort_percent   = the same as logged, every sample

Efforts are predicted with the inverse model for every model, so that fits by different models,
estimators and drive terms are compared by the same error. Free motion has no efforts: its held-out runs
are simulated, and the error is that of the simulated motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.case import row_filters
from dynid.common.arrays import Array, Float
from dynid.common.batched import single_threaded_blas
from dynid.common.errors import DynidError, InputError, NoResultError
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit, fit_task
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import known_columns, prior_values
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.problem import Problem, Progress
from dynid.statistics.assemble import percent
from dynid.statistics.prediction import Prediction, predict_rows, unfiltered
from dynid.unknown import Task
from dynid.validation.folds import FOLDS, Fold, folds
from dynid.validation.held_out import filters_rows, held_out_plans

# Cross-validation of an experiment, and its gate: the estimate must predict better than the prior model.
#
# The gate tests whether the estimate predicts held-out efforts better than the values of the robot
# description (CAD, URDF; drive terms without a prior count as zero).


def cross_validate_and_gate(fit: Fit) -> tuple[dict[str, str], str]:
    """Cross-validate as the experiment asks, and hold the estimate against the prior if it has a gate.

    Other logs are the better judges: where there are some, the gate looks at those.

    Args:
        fit: To all logs.

    Returns:
        What was found in words, and why the estimate must not be published; empty if it may.
    """
    experiment, problem, validate = fit.experiment, fit.problem, fit.task.held_out
    choices: dict[str, str] = {}
    folded: CrossValidation | None = None
    count = experiment.cross_validate or (FOLDS if experiment.gate and not validate else None)
    parts = folds(fit.task.logs, count) if count else ()
    if parts:
        plain = experiment.changed(gains=None)
        try:
            folded = cross_validate(fit.task.mechanism, parts, plain, problem.plans, fit.task.progress)
        except NoResultError as error:
            choices["cross-validation"] = f"failed; {error}"
            return choices, f"the gate cannot be evaluated; {error}" if experiment.gate else ""
        choices["cross-validation"] = folded.words
    if experiment.gate is None:
        return choices, ""
    prior = prior_model(problem)
    if validate:
        after = held_out_error(problem, fit.chi, validate, experiment)
        before = held_out_error(problem, prior, validate, experiment)
        where = ", ".join(log.name for log in validate)
    else:
        assert folded is not None  # noqa: S101 (parts exist where there is no log to validate on)
        after, before, where = folded.total, _over(problem, prior, parts, experiment), "held-out parts"
    text = f"efforts of {where}: estimate {after.percent:.3g} %, prior model {before.percent:.3g} %"
    choices["gate"] = f"{'passed' if after.percent < before.percent else 'failed'}; {text}"
    if after.percent < before.percent:
        return choices, ""
    return choices, f"the estimate predicts no better than the prior model; {text}"


def prior_model(problem: Problem) -> Float[Array, "p"]:
    """Standard parameters of the description, shape (p,), SI; refused where bodies have no prior."""
    values = problem.case.values(prior_values(problem.mechanism), problem.parameters)
    known = known_columns(problem.mechanism, problem.parameters)
    missing = [
        p.name
        for i, p in enumerate(problem.parameters)
        if p.kind == "inertial" and p.name not in values and i not in known
    ]
    if missing:
        more = f" and {len(missing) - 6} more" if len(missing) > 6 else ""
        raise InputError(
            f"the gate needs a prior of every body; {', '.join(missing[:6])}{more} have none",
            file=problem.mechanism.file,
            place="gate",
            remedy="give them under `bodies: {NAME: {prior: ...}}` or in the URDF, or leave the gate out",
        )
    chi = [known.get(i, values.get(p.name, 0.0)) for i, p in enumerate(problem.parameters)]
    return np.array(chi, float)


def _over(problem: Problem, chi: Float[Array, "p"], parts: Sequence[Fold], experiment: Experiment) -> HeldOut:
    """Error of given parameters over all that the folds hold out."""
    errors = [
        held_out_error(problem, chi, fold.held_out, experiment, [problem.plans[i] for i in fold.held_out_of])
        for fold in parts
    ]
    return CrossValidation(tuple(fold.name for fold in parts), tuple(errors)).total


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Sums of squares over efforts that were not fitted, per effort.

    Attributes:
        names, units: Of the efforts.
        residual, measured: Low-passed, shape (k,), unit squared.
        residual_logged, measured_logged: As logged, shape (k,), unit squared; empty where free motions are
            simulated.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    residual: Float[Array, "k"]
    measured: Float[Array, "k"]
    residual_logged: Float[Array, "logged"]
    measured_logged: Float[Array, "logged"]

    def __add__(self, other: HeldOut) -> HeldOut:
        """Both together."""
        if self.names != other.names:
            raise InputError(f"efforts {', '.join(self.names)} and {', '.join(other.names)} cannot be joined")
        return HeldOut(
            self.names,
            self.units,
            self.residual + other.residual,
            self.measured + other.measured,
            self.residual_logged + other.residual_logged,
            self.measured_logged + other.measured_logged,
        )

    @property
    def simulated(self) -> bool:
        """Whether these are motions, not efforts."""
        return len(self.residual_logged) == 0

    @property
    def percent(self) -> float:
        """Over all efforts, low-passed; over positions and attitudes each in its own size."""
        if self.simulated:
            return 100.0 * float(np.sqrt(np.mean(self.residual / self.measured)))
        return _percent(self.residual.sum(), self.measured.sum())

    @property
    def effort_percent(self) -> float:
        """Over all efforts, as logged; NaN where motions are simulated."""
        if self.simulated:
            return float("nan")
        return _percent(self.residual_logged.sum(), self.measured_logged.sum())

    @property
    def by_effort(self) -> dict[str, float]:
        """Low-passed, each effort in percent of its own size; rows without effort have none."""
        sums = zip(self.names, self.residual, self.measured, strict=True)
        return {name: _percent(left, size) for name, left, size in sums if size > 0.0}


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What a way of fitting is worth on data it has not seen.

    Attributes:
        folds: Names of the folds.
        errors: Of each fold.
        note: What the folds did not repeat.
    """

    folds: tuple[str, ...]
    errors: tuple[HeldOut, ...]
    note: str = ""

    @property
    def total(self) -> HeldOut:
        """All folds together."""
        whole = self.errors[0]
        for fold in self.errors[1:]:
            whole = whole + fold
        return whole

    @property
    def words(self) -> str:
        """In one line."""
        each = [fold.percent for fold in self.errors]
        spread = f" ({min(each):.3g} to {max(each):.3g})" if len(each) > 1 else ""
        how = self.folds[0] if len(each) == 1 else f"{len(each)} folds"
        total = self.total
        note = f"; {self.note}" if self.note else ""
        if total.simulated:
            return f"{how}: simulation error {total.percent:.3g} %{spread} of the motion{note}"
        logged = f"{total.effort_percent:.3g} % as logged"
        return f"{how}: {total.percent:.3g} %{spread} low-passed, {logged}{note}"


def cross_validate(
    mechanism: Mechanism,
    parts: Sequence[Fold],
    experiment: Experiment,
    plans: Sequence[MotionPlan],
    progress: Progress | None = None,
) -> CrossValidation:
    """Fit each fold as the experiment asks, and predict what it holds out; refused where a fit fails.

    Args:
        parts: See `folds` and `last_part`.
        experiment: Settings; the same for all folds.
        plans: Filters and masks of the whole logs, for all of their parts alike.
        progress: Called with a stage and the fraction of it done.
    """
    tasks = [FoldTask(mechanism, fold, experiment, plans) for fold in parts]
    return cross_validation(parts, fold_errors(tasks, progress=progress), experiment)


def cross_validation(
    parts: Sequence[Fold], errors: Sequence[HeldOut | Exception], experiment: Experiment
) -> CrossValidation:
    """All folds together; what one of them refused is refused here."""
    held: list[HeldOut] = []
    for error in errors:
        if isinstance(error, Exception):
            raise error
        held.append(error)
    # Simulations of every fold would take as long as all folds together many times over.
    note = "of the linear fit: `refine:` is not repeated in the folds" if experiment.refine else ""
    return CrossValidation(tuple(fold.name for fold in parts), tuple(held), note)


@dataclass(frozen=True, eq=False)
class FoldTask:
    """What the error of one fold needs: arguments as for `cross_validate`."""

    mechanism: Mechanism
    fold: Fold
    experiment: Experiment
    plans: Sequence[MotionPlan]


def fold_errors(
    tasks: Sequence[FoldTask],
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> list[HeldOut | Exception]:
    """Errors of folds, in their order; an exception where a fit fails.

    Args:
        jobs: Processes; 1: this one.
        cluster: Address of a Dask scheduler instead.
        progress: Called with a stage and the fraction of it done.
    """
    if jobs == 1 and cluster is None:
        return [_fold_error((0, task), progress) for task in tasks]
    from dynid.common.engine import TRIES, Died, completed

    done: dict[int, HeldOut | Exception] = {}

    def left() -> list[tuple[int, FoldTask]]:
        return [(number, task) for number, task in enumerate(tasks) if number not in done]

    for (number, task), error in completed(_fold_error, left, jobs, cluster):
        if isinstance(error, Died):
            raise NoResultError(f"{task.fold.name}: its process died {TRIES} times; try --jobs 1")
        if isinstance(error, BaseException) and not isinstance(error, DynidError):
            raise error
        done[number] = error
        if progress is not None:
            progress(f"fold {len(done)} of {len(tasks)}", len(done) / len(tasks))
    return [done[number] for number in range(len(tasks))]


def _fold_error(numbered: tuple[int, FoldTask], progress: Progress | None = None) -> HeldOut | Exception:
    """Fit a fold and predict what it holds out; a refusal instead where the fit fails."""
    _, asked = numbered
    fold, plans, logs = asked.fold, asked.plans, tuple(asked.fold.fitted)
    fit_plans, others = ([plans[i] for i in of] for of in (fold.fitted_of, fold.held_out_of))
    task = Task(asked.mechanism, logs, asked.experiment, plans=fit_plans, progress=progress)
    try:
        with single_threaded_blas():
            fit = fit_task(task, refit=True)
            if fit.failure:
                return NoResultError(f"{fold.name}: {fit.failure}")
            return held_out_error(fit.problem, fit.linear_chi, fold.held_out, asked.experiment, others)
    except DynidError as error:
        return error


def held_out_error(
    problem: Problem,
    chi: Float[Array, "p"],
    logs: Sequence[Log],
    experiment: Experiment,
    plans: Sequence[MotionPlan] | None = None,
) -> HeldOut:
    """Predict logs by standard parameters, with the filters of a problem.

    Args:
        problem: The fit, or another that shares its logs' filters.
        chi: Standard parameters, shape (p,), SI.
        logs: Not fitted.
        experiment: Its settings.
        plans: Filters and masks of these logs; default: those of the problem, masks from the data.
    """
    if plans is None or filters_rows(problem):
        plans = held_out_plans(problem, logs, experiment)
    other = problem.on(logs, plans, experiment)
    if other.case.simulated is not None:
        names, missed, moved = other.case.simulated.squares(other, chi)
        units = tuple("m" if name == "position" else "rad" for name in names)
        return HeldOut(names, units, missed, moved, np.zeros(0), np.zeros(0))
    best: HeldOut | None = None
    for source, rows, log in zip(other.by_efforts(chi), row_filters(plans, experiment), logs, strict=True):
        filtered = predict_rows(source, rows, chi, validation=True)
        logged = predict_rows(source, unfiltered(log.dt), chi, validation=True)
        sums = _sums(filtered, logged)
        best = sums if best is None else best + sums
    if best is None or not best.measured.any():
        raise InputError(
            "no held-out sample can be predicted: all are masked, or have no effort",
            remedy="hold out more, or use fewer folds",
        )
    return best


def _sums(filtered: Prediction, logged: Prediction) -> HeldOut:
    return HeldOut(
        filtered.signals.names,
        filtered.signals.units,
        filtered.residual,
        filtered.measured,
        logged.residual,
        logged.measured,
    )


def _percent(residual: float, measured: float) -> float:
    return percent(float(np.sqrt(residual)), float(np.sqrt(measured)))
