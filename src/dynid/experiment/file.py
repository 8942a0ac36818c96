"""Reader of the experiment file (`dynid.experiment/1`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dynid.common.entry import Entry, plain_entry, root_entry
from dynid.common.settings import keys_of, read
from dynid.common.strict_yaml import PathLike, read_yaml
from dynid.experiment.experiment import Experiment, LogEntry

SCHEMA = "dynid.experiment/1"
_KEYS = ("schema", "description", *keys_of(Experiment))


def load_experiment(file: PathLike, *, need_logs: bool = True) -> Experiment:
    """Read an experiment file; paths in it are relative to it, unknown keys are refused.

    Args:
        file: `dynid.experiment/1`.
        need_logs: Refuse a file without logs; a rehearsal has none yet.
    """
    root = root_entry(read_yaml(file))
    fields = root.fields(_KEYS, required=("robot", "logs") if need_logs else ("robot",))
    fields["robot"].text()
    if "schema" in fields:
        fields["schema"].choice((SCHEMA,))
    if "drive" in fields and fields["drive"].value is None:
        fields["drive"] = plain_entry("none", like=fields["drive"])
    known = {key: fields[key] for key in keys_of(Experiment) if key in fields}
    experiment = read(Experiment, replace(root, value=known))
    if need_logs and not experiment.logs:
        raise fields["logs"].error("no log is given", "e.g. logs: [{file: run.csv}]")
    return _beside(experiment, Path(file).resolve().parent).changed(
        name=experiment.name if "name" in fields else Path(file).stem,
        file=str(file),
        places=_places(fields),
    )


def _beside(experiment: Experiment, folder: Path) -> Experiment:
    """The experiment with paths from its folder; a robot is a path when it looks like one."""
    robot, unloaded = str(experiment.robot), experiment.unloaded
    is_path = "/" in robot or "\\" in robot or Path(robot).suffix != ""

    def beside(logs: tuple[LogEntry, ...]) -> tuple[LogEntry, ...]:
        return tuple(log.changed(file=str(folder / log.file)) for log in logs)

    return experiment.changed(
        robot=str(folder / robot) if is_path else robot,
        logs=beside(experiment.logs),
        validate=beside(experiment.validate),
        unloaded=None if unloaded is None else unloaded.changed(result=str(folder / unloaded.result)),
        out=None if experiment.out is None else str(folder / experiment.out),
    )


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
