"""Uncertainty of a fit to tables: if rounding is the only noise, its covariance is known in advance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dynid.cases.wrench_table.rounding import Rounding, rounding
from dynid.common.arrays import Array, Float
from dynid.estimator.ols import least_squares
from dynid.fit import Fit
from dynid.problem import Problem
from dynid.projection.projection import System
from dynid.projection.wrench import WrenchRows
from dynid.statistics.assemble import EstimateParts
from dynid.statistics.essential import restrict
from dynid.statistics.sandwich import Spread
from dynid.statistics.widen import with_spread

_METHOD = "rounding"
_EXPLAINED = 2.0  # times: residuals below this many of what rounding leaves are rounding
_FEW = ("few-blocks", "from-one-block")  # warnings of a jackknife that do not apply to rounding


def with_rounding(parts: EstimateParts, fit: Fit) -> EstimateParts:
    """The estimate with deviations that rounding explains, or no smaller than rounding makes them.

    Where the residuals are what printing leaves, so are the errors of the parameters, and their covariance
    is known without the residuals. Else residuals are used, but sigma is never below that of rounding.

    Args:
        parts: With the uncertainty from the residuals.
        fit: Its fit; an uncertainty other than `cluster` is not changed.
    """
    problem = fit.problem
    if fit.experiment.uncertainty.method != "cluster":
        return parts
    sources = [source for source in problem.sources if isinstance(source, WrenchRows)]
    data, used = fit.data, parts.solution
    kept = [k for k, parameter in enumerate(parts.parameters) if parameter.essential]
    system = data.system if len(kept) == len(parts.parameters) else restrict(data.system, kept)
    _, root, _ = least_squares(system.factor(used.weights))
    rounded = rounding(sources, _places(problem, system), data.S[:, kept], fit.linear_chi, root, used.weights)
    spread = _spread(parts, rounded, system, used.residual_norms)
    dropped = set(parts.spread.notices) - set(spread.notices)
    warnings = tuple(warning for warning in parts.warnings if warning not in dropped)
    return replace(with_spread(parts, spread), warnings=warnings)


def _places(problem: Problem, system: System) -> list[Mapping[int, int]]:
    """Group of each row of each table."""
    number = {(group.name, group.log): i for i, group in enumerate(system.groups)}
    names = problem.directions.group_names
    return [{k: number[name, log.name] for k, name in enumerate(names)} for log in problem.logs]


def _spread(parts: EstimateParts, rounded: Rounding, system: System, residuals: Float[Array, "g"]) -> Spread:
    ratio = _ratio(rounded, system, residuals)
    before, draws = parts.spread, len(rounded.moves)
    if ratio < _EXPLAINED:
        grown = max(1.0, ratio)
        words = f"{_METHOD}: effect of rounding every number of the table to its last digit"
        words += f" ({draws} draws); the residuals are {ratio:.2g} times the effect of rounding"
        dof = np.full(len(before.dof), float(draws))
        notices = tuple(notice for notice in before.notices if notice.code not in _FEW)
        facts = {"method": _METHOD, "draws": draws, "ratio": ratio}
        methods = (_METHOD,) * len(dof)
        return Spread(grown**2 * rounded.covariance, dof, methods, words, facts, notices)
    variances, least = np.diag(before.covariance), np.diag(rounded.covariance)
    larger = least > variances
    factor = np.sqrt(
        np.divide(np.maximum(variances, least), variances, out=np.ones_like(variances), where=variances > 0)
    )
    covariance = before.covariance * np.outer(factor, factor)
    np.fill_diagonal(covariance, np.maximum(variances, least))
    methods = tuple(_METHOD if is_larger else m for is_larger, m in zip(larger, before.methods, strict=True))
    words = f"{before.words}; the residuals are {ratio:.2g} times the effect of rounding in the table;"
    words += f" no sigma is below that of rounding ({int(larger.sum())} of {len(variances)} raised)"
    dof = np.where(larger, float(draws), before.dof)
    return replace(before, covariance=covariance, dof=dof, methods=methods, words=words)


def _ratio(rounded: Rounding, system: System, residuals: Float[Array, "g"]) -> float:
    """Residuals over what rounding leaves, the median over groups."""
    rows = np.array([group.n_rows for group in system.groups], float)
    spare = 1.0 - len(system.parameters) / rows.sum()
    rms = residuals / np.sqrt(rows * max(spare, 1.0 / rows.sum()))
    known = rounded.residual > 0
    return float(np.median(rms[known] / rounded.residual[known])) if known.any() else np.inf
