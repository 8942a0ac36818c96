"""Parameters found together with others by an unknown: one list, one covariance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.notices import Notice
from dynid.mechanism.parameters import Parameter
from dynid.statistics.assemble import EstimateParts
from dynid.statistics.estimate import ParameterEstimate
from dynid.statistics.sandwich import Spread
from dynid.statistics.uncertainty import with_uncertainty


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
