"""How well the rows are explained, in total and by group.

residual_percent = 100 |Y - W chi| / |Y| with Y as measured (before known values moved to the
right side). r2 = 1 - |Y - W chi|^2 / |Y - mean(Y)|^2 where the group has a constant column (an
offset), which is how a triangle can know the mean (of each log its own); elsewhere about zero,
so that it agrees with residual_percent. Rows without a measured side (0 = W chi) have neither
value, only their rms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.base.system import BaseSystem
from dynid.common.arrays import Array, Float
from dynid.estimator.solution import Solution
from dynid.projection.projection import Group
from dynid.statistics.estimate import Fit, GroupFit


def fit_of(base_system: BaseSystem, solution: Solution) -> Fit:
    """Fit of all rows and of each effort (its logs combined)."""
    groups = base_system.system.groups
    residuals, measured = solution.residual_norms, base_system.measured_norms
    together: dict[str, list[int]] = {}
    for i, group in enumerate(groups):
        together.setdefault(group.name, []).append(i)
    return Fit(
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
