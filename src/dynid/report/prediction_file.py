"""Predicted efforts as CSV, with the units in a comment above the header."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.errors import InputError
from dynid.report.csv_file import RowWriter, harmless
from dynid.report.output import write_file

if TYPE_CHECKING:
    from dynid.prediction.predict import EffortPrediction


def prediction_csv(prediction: EffortPrediction) -> str:
    """`t, tau_NAME.., sigma_tau_NAME.., power, sigma_power` and `c_1..` of redundant robots, SI units.

    The first line is a comment (`#`) with the unit of each column; log readers ignore it.
    """
    motors = list(zip(prediction.names, prediction.units, strict=True))
    z = prediction.c.shape[1]
    columns = [
        ("t", "s"),
        *((f"tau_{name}", unit) for name, unit in motors),
        *((f"sigma_tau_{name}", unit) for name, unit in motors),
        ("power", "W"),
        ("sigma_power", "W"),
        *((f"c_{i + 1}", prediction.units[0]) for i in range(z)),
    ]
    values = np.column_stack(
        [
            prediction.t,
            prediction.tau,
            prediction.sigma,
            prediction.power,
            prediction.sigma_power,
            prediction.c,
        ]
    )
    text = io.StringIO()
    units = " ".join("; ".join(f"{name} [{unit}]" for name, unit in columns).split())
    text.write(f"# predicted efforts of {' '.join(prediction.robot.split())}, units: {units}\n")
    writer = RowWriter(text)
    writer.writerow([harmless(name) for name, _ in columns])
    writer.writerows([[f"{x:.12g}" for x in row] for row in values.tolist()])
    return text.getvalue()


def write_prediction(prediction: EffortPrediction, file: Path) -> None:
    """Write the efforts to `file` atomically."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, prediction_csv(prediction))
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}", file=file, remedy="choose another --out"
        ) from error
