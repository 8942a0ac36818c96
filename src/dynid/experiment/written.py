"""An experiment as a file: what was asked, with the columns that were matched, repeatable by `identify`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from dynid.common.errors import InputError
from dynid.experiment.experiment import Experiment, read_experiment
from dynid.motion.log import Log
from dynid.motion.sources import each_log


def write_experiment(experiment: Experiment, logs: Sequence[Log], file: Path) -> None:
    """Write the experiment with the columns that were matched; it is read back before it is kept.

    Args:
        experiment: As asked.
        logs: Its logs and those to validate on, in this order, as they were read; none of them: only the
            columns that are asked for are written.
        file: A new file; paths in it are relative to its folder.
    """
    from ruamel.yaml import YAML

    if file.exists():
        raise InputError("this file exists already", file=file, remedy="remove it, or give another name")
    experiment = experiment.changed(
        logs=tuple(each_log(experiment.logs)), validate=tuple(each_log(experiment.validate))
    )
    stream = StringIO()
    writer = YAML()
    writer.width = 110
    writer.dump(_document(experiment, logs, file.resolve().parent), stream)
    try:
        file.write_text("# dynid.experiment/1\n" + stream.getvalue(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=file, remedy="check the path") from None
    read_experiment(file)


def _document(experiment: Experiment, logs: Sequence[Log], folder: Path) -> dict[str, Any]:
    matched = [{guess.key: _column(guess.column, guess.unit) for guess in log.guesses} for log in logs]
    matched = matched or [{}] * len((*experiment.logs, *experiment.validate))
    shared = matched[0] if all(mapping == matched[0] for mapping in matched) else {}
    tree = dict(experiment.tree())
    robot = str(tree.pop("robot"))
    entries = [dict(item) for key in ("logs", "validate") for item in tree.pop(key, [])]
    for entry, mapping in zip(entries, matched, strict=True):
        entry["file"] = _beside(entry["file"], folder)
        if mapping and not shared:
            entry["columns"] = {**mapping, **entry.get("columns", {})}
    count = len(experiment.logs)
    made = {
        "schema": "dynid.experiment/1",
        "robot": _beside(robot, folder) if Path(robot).exists() else robot,
        "logs": entries[:count],
        **({"validate": entries[count:]} if entries[count:] else {}),
    }
    if "payloads" in tree:
        tree["payloads"] = {name: _short(payload) for name, payload in tree["payloads"].items()}
    columns = {**shared, **tree.pop("columns", {})}
    return {**made, **({"columns": columns} if columns else {}), **tree}


def _short(payload: dict[str, Any]) -> dict[str, Any]:
    """A payload without what it has by default."""
    usual: tuple[Any, ...] = ({}, [0.0, 0.0, 0.0], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return {key: value for key, value in payload.items() if value not in usual}


def _column(name: str, unit: str | None) -> Any:
    return name if unit is None else {"name": name, "unit": unit}


def _beside(path: str, folder: Path) -> str:
    return os.path.relpath(Path(path).resolve(), folder)
