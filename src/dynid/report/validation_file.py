"""`validation.json` (`dynid.validation/1`): how well a result predicts other logs; and its curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dynid.common.errors import InputError
from dynid.report.csv_file import signals_csv
from dynid.report.json_file import json_text, plain
from dynid.report.output import write_file
from dynid.statistics.estimate import Signals, Validation

SCHEMA = "dynid.validation/1"


def validation_document(result: str | Path, validations: Sequence[Validation]) -> dict[str, Any]:
    """The content of `validation.json`; undefined values are null."""
    entries = [plain(asdict(item)) for item in validations]
    return {"schema": SCHEMA, "result": str(result), "validation": entries}


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
