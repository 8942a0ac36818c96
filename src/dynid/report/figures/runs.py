"""sigma_perp of every validation run, with that of the fit [CableRobot, fig. 3]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynid.report.figures.figure import BLUE, ORANGE, axis, figure
from dynid.statistics.estimate import Fit, Validation

if TYPE_CHECKING:
    from markupsafe import Markup

_HEIGHT = 260  # pixels


def run_figure(validation: Validation, fit: Fit, anchor: str) -> Markup | None:
    """One bar per run; None for robots with motor efforts."""
    if not validation.runs:
        return None
    labels = [str(run.run) for run in validation.runs]
    bars = {
        "type": "bar",
        "name": "sigma_perp",
        "x": labels,
        "y": [run.sigma_perp for run in validation.runs],
        "marker": {"color": BLUE},
    }
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "sigma_perp of the fit",
        "x": labels,
        "y": [fit.sigma_perp] * len(labels),
        "line": {"color": ORANGE},
    }
    layout = {
        "height": _HEIGHT,
        "xaxis": axis("run", type="category"),
        "yaxis": axis("sigma_perp, per unit mass", rangemode="tozero"),
    }
    return figure(
        anchor,
        [bars, line],
        layout,
        f"sigma_perp of the {len(labels)} runs of {validation.log}",
        "Residual of the equations of free motion in each run that was not used for the fit, "
        "sqrt(rho^T rho / n) over its samples; filtered as for the fit. The line is the value of the fit.",
    )
