"""From a solution to the parameters, fit and warnings of an Estimate.

Estimates with other standard deviations, or with the uncertainty of values taken as known added.

Parameters found together with others by an unknown: one list, one covariance.

How well the rows are explained, in total and by group.

residual_percent = 100 |Y - W chi| / |Y| with Y as measured (before known values moved to the
right side). r2 = 1 - |Y - W chi|^2 / |Y - mean(Y)|^2 where the group has a constant column (an
offset), which is how a triangle can know the mean (of each log its own); elsewhere about zero,
so that it agrees with residual_percent. Rows without a measured side (0 = W chi) have neither
value, only their rms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.base.grouping import Symbols
from dynid.base.system import BaseSystem
from dynid.common.arrays import Array, Float
from dynid.common.notices import Notice
from dynid.estimator.solution import History, Solution
from dynid.mechanism.parameters import Parameter
from dynid.projection.projection import Group
from dynid.statistics.correlation import Correlation, correlated, strongest
from dynid.statistics.covariance import CountedErrors, covariance_of
from dynid.statistics.essential import Reduced, restrict
from dynid.statistics.estimate import Agreement, GroupFit, ParameterEstimate
from dynid.statistics.sandwich import Spread
from dynid.statistics.uncertainty import UncertaintySettings, with_uncertainty


@dataclass(frozen=True, eq=False)
class EstimateParts:
    """What an Estimate takes from the triangular factors.

    Attributes:
        not_identifiable: Base parameters that these data do not determine -> why.
        invisible: Standard parameters that act only within sums, by structure -> these sums.
        spread: Covariance of the parameters with a sigma, in the order listed, and its method.
        correlations: The strongest pairs.
        solution: The one behind the parameters.
        shared: Covariance of the parameters with a sigma with those of a result without load, shape (p, u),
            SI; None where nothing was taken from one.
    """

    parameters: tuple[ParameterEstimate, ...]
    not_identifiable: Mapping[str, str]
    invisible: Mapping[str, str]
    fit: Agreement
    spread: Spread
    correlations: tuple[Correlation, ...]
    warnings: tuple[Notice, ...]
    solution: Solution
    shared: Float[Array, "p u"] | None = None

    @property
    def covariance(self) -> Float[Array, "p p"]:
        """Of the parameters with a sigma, in the order listed, SI."""
        return self.spread.covariance


def estimate_parameters(
    base_system: BaseSystem,
    solution: Solution,
    *,
    essential: Reduced | None = None,
    priors: Mapping[str, float] | None = None,
    symbols: Symbols | None = None,
    settings: UncertaintySettings | None = None,
    counted: CountedErrors | None = None,
) -> EstimateParts:
    """Name, value, uncertainty, grouping and prior of every parameter, and the fit.

    Args:
        base_system: What was solved.
        solution: Over all its parameters.
        essential: A fit of fewer parameters; the others stay listed with value 0, no sigma.
        priors: Standard name -> value; a base prior needs all of its members.
        symbols: (kept, dependent) -> text of a grouping coefficient.
        settings: How the uncertainty is found; default the jackknife over blocks.
        counted: Columns whose part of the residuals is counted elsewhere, over all parameters.
    """
    used = solution if essential is None else essential.solution
    fitted = tuple(range(len(solution.chi))) if essential is None else essential.kept
    known = base_system.values_of(priors or {})
    groupings = base_system.groupings(symbols)
    blocked, whole = base_system.blocked(), base_system.system
    if essential is not None:
        blocked, whole = restrict(blocked, fitted), restrict(whole, fitted)
        if counted is not None:
            columns = (*fitted, *range(len(solution.chi), len(counted.system.parameters)))
            counted = replace(counted, system=restrict(counted.system, columns))
    spread = covariance_of(blocked, used, settings, whole, counted)
    parameters = [
        ParameterEstimate(
            parameter.name,
            parameter.unit,
            0.0,
            None,
            None,
            None,
            essential=i in fitted,
            grouping=groupings[i],
            prior=known[parameter.name],
        )
        for i, parameter in enumerate(base_system.system.parameters)
    ]
    for i, estimated in zip(
        fitted, with_uncertainty([parameters[i] for i in fitted], used.chi, spread), strict=True
    ):
        parameters[i] = estimated
    notices = base_system.notices + used.notices + (() if essential is None else essential.notices)
    pairs = strongest(used.names, used.covariance)
    return EstimateParts(
        parameters=tuple(parameters),
        not_identifiable=base_system.unseen,
        invisible=base_system.invisible(),
        fit=fit_of(base_system, used),
        spread=spread,
        correlations=pairs,
        warnings=notices + spread.notices + correlated(pairs),
        solution=used,
    )


def history_of(solution: Solution, parameters: Sequence[ParameterEstimate]) -> History | None:
    """The history of a recursive solution, its deviations in line with those reported."""
    history = solution.history
    if history is None:
        return None
    reported = {parameter.name: parameter.sigma for parameter in parameters if parameter.sigma is not None}
    sigmas = dict(zip(history.names, history.sigma[-1].tolist(), strict=True))
    return history.calibrated(np.array([reported.get(name, sigmas[name]) for name in history.names]))


MANY = 1e9  # degrees of freedom of what is known exactly


def widened(parts: EstimateParts, added: Float[Array, "v v"], dof: float, what: str) -> EstimateParts:
    """The same parameters with a further covariance.

    Args:
        parts: Parameters with the uncertainty of the rows.
        added: Over all parameters listed, shape (v, v), SI.
        dof: Degrees of freedom of what is added.
        what: It is, in words.
    """
    keep = with_sigma(parts)
    added = added[np.ix_(keep, keep)]
    before = parts.covariance
    old, more = np.diag(before), np.diag(added)
    # Welch and Satterthwaite: two deviations that are each known only so well.
    slack = old**2 / parts.spread.dof + more**2 / dof
    total_dof = np.divide((old + more) ** 2, slack, out=np.full(len(old), MANY), where=slack > 0)
    share = float(np.median(np.divide(more, old + more, out=np.zeros(len(old)), where=old + more > 0)))
    words = f"{parts.spread.words}; with {what}, {100 * share:.0f} % of the variance (median)"
    spread = replace(parts.spread, covariance=before + added, dof=np.maximum(total_dof, 1.0), words=words)
    return with_spread(parts, spread)


def with_spread(parts: EstimateParts, spread: Spread) -> EstimateParts:
    """The same parameters with other deviations; those without a sigma stay without."""
    keep, listed = with_sigma(parts), list(parts.parameters)
    before = [listed[k] for k in keep]
    values = np.array([parameter.value for parameter in before])
    for k, parameter in zip(keep, with_uncertainty(before, values, spread), strict=True):
        listed[k] = parameter
    return replace(parts, parameters=tuple(listed), spread=spread)


def with_sigma(parts: EstimateParts) -> list[int]:
    """Places of the parameters that have a sigma: those of the covariance."""
    return [k for k, parameter in enumerate(parts.parameters) if parameter.sigma is not None]


def joined(
    parts: EstimateParts,
    parameters: Sequence[Parameter],
    values: Float[Array, "p"],
    spread: Spread,
    notices: Sequence[Notice] = (),
    priors: Mapping[str, float] | None = None,
) -> EstimateParts:
    """The parameters of a fit and those of an unknown, with their joint uncertainty.

    Args:
        parts: Of the fit with the unknown settled; its values stay.
        parameters: Of the fit, then of the unknown.
        values: Found together, shape (p,), SI.
        spread: Their covariance.
        notices: Of the unknown.
        priors: Of parameters that the fit does not list.
    """
    old = {entry.name: entry for entry in parts.parameters}
    values = np.array(
        [old[row.name].value if row.name in old else x for row, x in zip(parameters, values, strict=True)]
    )
    before = [
        old.get(row.name)
        or ParameterEstimate(row.name, row.unit, 0.0, None, None, None, prior=(priors or {}).get(row.name))
        for row in parameters
    ]
    listed = with_uncertainty(before, values, spread)
    warnings = tuple(dict.fromkeys((*parts.warnings, *notices)))
    return replace(parts, parameters=listed, spread=spread, warnings=warnings)


def fit_of(base_system: BaseSystem, solution: Solution) -> Agreement:
    """Fit of all rows and of each effort (its logs combined)."""
    groups = base_system.system.groups
    residuals, measured = solution.residual_norms, base_system.measured_norms
    together: dict[str, list[int]] = {}
    for i, group in enumerate(groups):
        together.setdefault(group.name, []).append(i)
    return Agreement(
        n_rows=sum(group.n_rows for group in groups),
        n_parameters=len(solution.chi),
        rank=solution.rank,
        rank_gap=base_system.rank.gap,
        condition=solution.condition,
        condition_scaled=solution.condition_scaled,
        sigma_rho=solution.sigma_rho,
        residual_percent=percent(_norm(residuals), _norm(measured[:, 0])),
        groups=tuple(
            group_fit([groups[i] for i in rows], residuals[rows], measured[rows])
            for rows in together.values()
        ),
    )


def group_fit(
    groups: Sequence[Group], residuals: Float[Array, "g"], measured: Float[Array, "g 2"]
) -> GroupFit:
    """Fit of rows of one kind, from the residual and measured norms of their parts (see `BaseSystem`)."""
    n_rows = sum(group.n_rows for group in groups)
    residual, norm, about_mean = _norm(residuals), _norm(measured[:, 0]), _norm(measured[:, 1])
    total = norm if np.isnan(about_mean) else about_mean
    return GroupFit(
        name=groups[0].name,
        rms=residual / float(np.sqrt(n_rows)),
        residual_percent=percent(residual, norm) if norm > 0 else float("nan"),
        r2=1.0 - (percent(residual, total) / 100.0) ** 2 if norm > 0 else float("nan"),
        unit=groups[0].unit,
        n_rows=n_rows,
    )


def percent(part: float, whole: float) -> float:
    """100 part / whole; a whole of zero counts as explained when the part is zero too."""
    if whole > 0:
        return 100.0 * part / whole
    return 0.0 if part == 0 else 100.0


def _norm(norms: Float[Array, "g"]) -> float:
    """Norm of parts joined end to end."""
    return float(np.linalg.norm(norms))
