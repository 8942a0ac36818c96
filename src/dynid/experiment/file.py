"""Reader of the experiment file (`dynid.experiment/1`).

An experiment as a file: what was asked, with the columns that were matched, repeatable by `identify`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

from dynid.common.entry import Entry, plain_entry, root_entry
from dynid.common.errors import InputError
from dynid.common.settings import keys_of, read
from dynid.common.strict_yaml import PathLike, read_yaml
from dynid.experiment.experiment import TASKS, Experiment
from dynid.mechanism.load import DESCRIPTIONS, builtin_robots
from dynid.motion.log import Log
from dynid.motion.logs import READERS, ending
from dynid.motion.sources import each_log

SCHEMA = "dynid.experiment/1"
_KEYS = ("schema", "description", *keys_of(Experiment))
_SUFFIXES = (".yaml", ".yml")
_OF_RESULTS = ("compare", "export")  # need no robot: results have one


def is_experiment(file: PathLike) -> bool:
    """Whether a YAML file is an experiment; robot files name no robot."""
    path = Path(file)
    if path.suffix.lower() not in _SUFFIXES or not path.is_file():
        return False
    root = read_yaml(path)
    return root.is_mapping and bool({"robot", "logs", *TASKS} & set(root.mapping()))


def is_result(file: Path) -> bool:
    """Whether a path is that of a result (its folder, or result.json), not of a log or an experiment file."""
    return file.is_dir() or file.suffix.lower() == ".json"


def load_experiment(file: PathLike, *, need_logs: bool = True) -> Experiment:
    """Read an experiment file; paths in it are relative to it, unknown keys are refused.

    Args:
        file: `dynid.experiment/1`.
        need_logs: Refuse a file without logs, from which nothing can be identified.
    """
    _refuse_others(Path(file))
    root = root_entry(read_yaml(file), "experiment")
    given = set(root.mapping())
    of_results = bool(given & set(_OF_RESULTS)) and not given & {"logs", "excite"}
    fields = root.fields(_KEYS, ("robot", "logs") if need_logs else () if of_results else ("robot",))
    if "robot" in fields:
        fields["robot"].text()
    if "schema" in fields:
        fields["schema"].choice((SCHEMA,))
    if "drive" in fields and fields["drive"].value is None:
        fields["drive"] = plain_entry("none", like=fields["drive"])
    known = {key: fields[key] for key in keys_of(Experiment) if key in fields}
    lines = root.key_lines
    if "robot" not in known:  # that of the results
        known, lines = {**known, "robot": plain_entry("")}, {**lines, "robot": root.line}
    experiment = read(Experiment, replace(root, value=known, key_lines=lines))
    if need_logs and not experiment.logs:
        raise fields["logs"].error("no log is given", "e.g. logs: [{file: run.csv}]")
    return beside(experiment, Path(file).resolve().parent).changed(
        name=experiment.name if "name" in fields else Path(file).stem,
        file=str(file),
        places=_places(fields),
    )


def _refuse_others(file: Path) -> None:
    """Refuse robots and logs, by their names, with the options that they belong to."""
    named = file.suffix.lower() in DESCRIPTIONS or (not file.exists() and str(file) in builtin_robots())
    if file.suffix.lower() in _SUFFIXES or not (named or ending(file) in READERS):
        return
    what, robot, log = ("a robot", file, "LOG") if named else ("a log", "ROBOT", file)
    raise InputError(
        f"this is {what}, not an experiment file",
        file=file,
        remedy=f"dynid identify --robot {robot} --log {log}; an experiment file has lines as `robot: {robot}`"
        f" and `logs: [{log}]`",
    )


def beside(experiment: Experiment, folder: Path) -> Experiment:
    """The experiment with paths from its folder; a robot is a path when it looks like one."""
    robot = str(experiment.robot)
    is_path = "/" in robot or "\\" in robot or Path(robot).suffix != ""
    moved = experiment.moved(lambda path: str(folder / path))
    return moved.changed(robot=str(folder / robot) if is_path else robot)


def _places(fields: Mapping[str, Entry]) -> dict[str, str]:
    """Where names are that only robot or data can show to be wrong: `tie legs` -> `line 12, ties[0]`."""
    places: dict[str, str] = {}
    for item in fields["ties"].items() if "ties" in fields else ():
        name = item.mapping()["name"] if item.is_mapping else item
        places[f"tie {name.text()}"] = name.place
    for item in fields["keep"].items() if "keep" in fields else ():
        places[f"keep {item.text()}"] = item.place
    for key in ("logs", "validate"):
        for item in fields[key].items() if key in fields else ():
            payload = item.mapping().get("payload") if item.is_mapping else None
            several = [] if payload is None else payload.items() if payload.is_list else [payload]
            for mounted in several:
                places.setdefault(f"payload {mounted.text()}", mounted.place)
    return places


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
    folder = file.resolve().parent
    stream = StringIO()
    writer = YAML()
    writer.width = 110
    writer.dump(_document(experiment.moved(lambda path: _relative(path, folder)), logs, folder), stream)
    try:
        file.write_text("# dynid.experiment/1\n" + stream.getvalue(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=file, remedy="check the path") from None
    load_experiment(file, need_logs=bool(experiment.logs))


def _document(experiment: Experiment, logs: Sequence[Log], folder: Path) -> dict[str, Any]:
    matched = [{guess.key: _column(guess.column, guess.unit) for guess in log.guesses} for log in logs]
    matched = matched or [{}] * len((*experiment.logs, *experiment.validate))
    shared = matched[0] if matched and all(mapping == matched[0] for mapping in matched) else {}
    tree = dict(experiment.tree())
    robot = str(tree.pop("robot"))
    entries = [dict(item) for key in ("logs", "validate") for item in tree.pop(key, [])]
    for entry, mapping in zip(entries, matched, strict=True):
        if mapping and not shared:
            entry["columns"] = {**mapping, **entry.get("columns", {})}
    count = len(experiment.logs)
    made = {
        "schema": "dynid.experiment/1",
        **({"robot": _relative(robot, folder) if Path(robot).is_file() else robot} if robot else {}),
        **({"logs": entries[:count]} if count else {}),
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


def _relative(path: str, folder: Path) -> str:
    return os.path.relpath(Path(path).resolve(), folder)
