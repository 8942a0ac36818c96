"""From a solution to the parameters, fit and warnings of an Estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.base.grouping import Symbols
from dynid.base.system import BaseSystem
from dynid.common.arrays import Array, Float
from dynid.common.notices import Notice
from dynid.estimator.solution import History, Solution
from dynid.statistics.correlation import Correlation, correlated, strongest
from dynid.statistics.covariance import covariance_of
from dynid.statistics.essential import Reduced, restrict
from dynid.statistics.estimate import Fit, ParameterEstimate
from dynid.statistics.fit import fit_of
from dynid.statistics.method import UncertaintySettings
from dynid.statistics.sandwich import Spread
from dynid.statistics.uncertainty import with_uncertainty


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
    fit: Fit
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
) -> EstimateParts:
    """Name, value, uncertainty, grouping and prior of every parameter, and the fit.

    Args:
        base_system: What was solved.
        solution: Over all its parameters.
        essential: A fit of fewer parameters; the others stay listed with value 0, no sigma.
        priors: Standard name -> value; a base prior needs all of its members.
        symbols: (kept, dependent) -> text of a grouping coefficient.
        settings: How the uncertainty is found; default the jackknife over blocks.
    """
    used = solution if essential is None else essential.solution
    fitted = tuple(range(len(solution.chi))) if essential is None else essential.kept
    known = base_system.values_of(priors or {})
    groupings = base_system.groupings(symbols)
    blocked, whole = base_system.blocked(), base_system.system
    if essential is not None:
        blocked, whole = restrict(blocked, fitted), restrict(whole, fitted)
    spread = covariance_of(blocked, used, settings, whole)
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


def recorded(solution: Solution, parameters: Sequence[ParameterEstimate]) -> History | None:
    """The history of a recursive solution, its deviations in line with those reported."""
    history = solution.history
    if history is None:
        return None
    reported = {parameter.name: parameter.sigma for parameter in parameters if parameter.sigma is not None}
    sigmas = dict(zip(history.names, history.sigma[-1].tolist(), strict=True))
    return history.calibrated(np.array([reported.get(name, sigmas[name]) for name in history.names]))
