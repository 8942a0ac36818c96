"""Parameters and predictions as data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynid.common.frames import pandas

if TYPE_CHECKING:
    from dynid.prediction.predict import EffortPrediction
    from dynid.statistics.estimate import Estimate


def parameter_frame(estimate: Estimate) -> Any:
    """One row per parameter, with its name as index; SI units."""
    rows = [
        {
            "value": entry.value,
            "sigma": entry.sigma,
            "low95": None if entry.ci95 is None else entry.ci95[0],
            "high95": None if entry.ci95 is None else entry.ci95[1],
            "unit": entry.unit,
            "prior": entry.prior,
            "essential": entry.essential,
            "grouping": entry.grouping,
        }
        for entry in estimate.parameters
    ]
    index = pandas().Index([entry.name for entry in estimate.parameters], name="parameter")
    frame = pandas().DataFrame(rows, index=index)
    numbers = ["value", "sigma", "low95", "high95", "prior"]
    return frame.astype(dict.fromkeys(numbers, float)) if rows else frame


def effort_frame(prediction: EffortPrediction) -> Any:
    """One row per sample, with `t` as index: efforts by motor, their sigma, and the power."""
    columns = {"t": prediction.t}
    for k, name in enumerate(prediction.names):
        columns[f"tau_{name}"] = prediction.tau[:, k]
        columns[f"sigma_{name}"] = prediction.sigma[:, k]
    columns["power"] = prediction.power
    return pandas().DataFrame(columns).set_index("t")
