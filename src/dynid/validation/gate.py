"""Cross-validation of an experiment, and its gate: the estimate must predict better than the prior model.

The gate tests whether the estimate predicts held-out efforts better than the values of the robot
description (CAD, URDF; drive terms without a prior count as zero).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.errors import InputError, NoResultError
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit
from dynid.info import known_columns
from dynid.linear import prior_values
from dynid.problem import Problem
from dynid.validation.crossvalidation import CrossValidation, HeldOut, cross_validate, held_out_error
from dynid.validation.folds import FOLDS, Fold, folds


def judge(fit: Fit) -> tuple[dict[str, str], str]:
    """Cross-validate as the experiment asks, and hold the estimate against the prior if it has a gate.

    Other logs are the better judges: where there are some, the gate looks at those.

    Args:
        fit: To all logs.

    Returns:
        What was found in words, and why the estimate must not be published; empty if it may.
    """
    experiment, problem, validate = fit.experiment, fit.problem, fit.task.held_out
    choices: dict[str, str] = {}
    found: CrossValidation | None = None
    count = experiment.cross_validate or (FOLDS if experiment.gate and not validate else None)
    parts = folds(fit.task.logs, count) if count else ()
    if parts:
        plain = experiment.changed(gains=None)
        try:
            found = cross_validate(fit.task.mechanism, parts, plain, problem.plans, fit.task.progress)
        except NoResultError as error:
            choices["cross-validation"] = f"failed; {error}"
            return choices, f"the gate cannot be evaluated; {error}" if experiment.gate else ""
        choices["cross-validation"] = found.words
    if experiment.gate is None:
        return choices, ""
    prior = prior_model(problem)
    if validate:
        own = held_out_error(problem, fit.chi, validate, experiment)
        before = held_out_error(problem, prior, validate, experiment)
        where = ", ".join(log.name for log in validate)
    else:
        assert found is not None  # noqa: S101 (parts exist where there is no log to validate on)
        own, before, where = found.total, _over(problem, prior, parts, experiment), "held-out parts"
    text = f"efforts of {where}: estimate {own.percent:.3g} %, prior model {before.percent:.3g} %"
    choices["gate"] = f"{'passed' if own.percent < before.percent else 'failed'}; {text}"
    if own.percent < before.percent:
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
