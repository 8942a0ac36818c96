"""From a solution to the parameters, fit and warnings of an Estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.base.grouping import Symbols
from dynid.base.system import BaseSystem, NotIdentifiable
from dynid.estimator.solution import Solution
from dynid.notices import Notice
from dynid.statistics.essential import Reduced
from dynid.statistics.estimate import Fit, ParameterEstimate
from dynid.statistics.fit import fit_of
from dynid.statistics.uncertainty import uncertainty


@dataclass(frozen=True, eq=False)
class EstimateParts:
    """What the triangular factors tell an Estimate.

    Attributes:
        covariance: Of the parameters with a sigma, in the order listed, SI.
        solution: The one behind the parameters.
    """

    parameters: tuple[ParameterEstimate, ...]
    not_identifiable: tuple[NotIdentifiable, ...]
    fit: Fit
    covariance: Float[Array, "p p"]
    warnings: tuple[Notice, ...]
    solution: Solution


def estimate_parameters(
    base_system: BaseSystem,
    solution: Solution,
    *,
    essential: Reduced | None = None,
    priors: Mapping[str, float] | None = None,
    symbols: Symbols | None = None,
) -> EstimateParts:
    """Name, value, uncertainty, grouping and prior of every parameter, and the fit.

    Args:
        base_system: What was solved.
        solution: Over all its parameters.
        essential: A fit of fewer parameters; the others stay listed with value 0, no sigma.
        priors: Standard name -> value; a base prior needs all of its members.
        symbols: (kept, dependent) -> text of a grouping coefficient.
    """
    used = solution if essential is None else essential.solution
    fitted = tuple(range(len(solution.chi))) if essential is None else essential.kept
    known = base_system.values_of(priors or {})
    groupings = base_system.groupings(symbols)
    spread = uncertainty(used.chi, used.covariance, used.dof)
    place = {i: k for k, i in enumerate(fitted)}
    parameters = []
    for i, parameter in enumerate(base_system.system.parameters):
        k = place.get(i)
        relative = None if k is None else float(spread.sigma_rel_percent[k])
        parameters.append(
            ParameterEstimate(
                name=parameter.name,
                unit=parameter.unit,
                value=0.0 if k is None else float(used.chi[k]),
                sigma=None if k is None else float(spread.sigma[k]),
                sigma_rel_percent=relative if relative is not None and np.isfinite(relative) else None,
                ci95=None if k is None else (float(spread.ci95[k, 0]), float(spread.ci95[k, 1])),
                essential=k is not None,
                grouping=groupings[i],
                prior=known[parameter.name],
            )
        )
    notices = base_system.notices + used.notices + (() if essential is None else essential.notices)
    return EstimateParts(
        parameters=tuple(parameters),
        not_identifiable=base_system.unseen,
        fit=fit_of(base_system, used),
        covariance=used.covariance,
        warnings=notices,
        solution=used,
    )
