"""Files of `dynid predict` (CSV of efforts), `dynid validate` (`validation.json`, `dynid.validation/1`)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.csv_text import RowWriter
from dynid.common.errors import InputError
from dynid.common.strict_json import read_json
from dynid.report.csv_file import harmless, signals_csv
from dynid.report.json_file import json_text, plain
from dynid.report.output import write_file
from dynid.statistics.estimate import Validation
from dynid.statistics.estimate_parts import Signals

if TYPE_CHECKING:
    from dynid.prediction.predict import EffortPrediction

SCHEMA = "dynid.validation/1"


def prediction_csv(prediction: EffortPrediction) -> str:
    """`t, tau_1.., sigma_tau_1.., power, sigma_power` and `c_1..` of redundant robots, SI units.

    Numbered as `actuators` of the robot. The first line is a comment (`#`) with the name of each motor and
    the unit of each column; log readers ignore it.
    """
    motors = list(enumerate(prediction.units, 1))
    z = prediction.c.shape[1]
    columns = [
        ("t", "s"),
        *((f"tau_{i}", unit) for i, unit in motors),
        *((f"sigma_tau_{i}", unit) for i, unit in motors),
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
    names = "; ".join(f"tau_{i}: {name}" for i, name in enumerate(prediction.names, 1))
    units = "; ".join(f"{name} [{unit}]" for name, unit in columns)
    words = f"predicted efforts of {prediction.robot}, motors: {names}, units: {units}"
    text.write(f"# {' '.join(words.split())}\n")
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


def validation_document(result: str | Path, validations: Sequence[Validation]) -> dict[str, Any]:
    """The content of `validation.json`; undefined values are null."""
    entries = [plain(asdict(item)) for item in validations]
    return {"schema": SCHEMA, "result": str(result), "validation": entries}


def validated_logs(folder: Path) -> tuple[str, ...]:
    """Logs of the `validation.json` in a folder; none if there is no such file."""
    try:
        document = read_json(folder / "validation.json", "validate again")
        return tuple(str(item["log"]) for item in document["validation"])
    except (InputError, KeyError, TypeError):
        return ()


def write_validation(document: dict[str, Any], folder: Path, signals: Sequence[Signals] = ()) -> None:
    """Write `validation.json` and `validation_signals.csv` into `folder`; other files are kept.

    Each is written whole or not at all.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / "validation_signals.csv", signals_csv(signals))
        write_file(folder / "validation.json", json_text(document))
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}", file=folder, remedy="choose another --out"
        ) from error
