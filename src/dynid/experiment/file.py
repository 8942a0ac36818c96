"""Strict reader of the experiment file (`dynid.experiment/1`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynid.common.entry import Entry, placed, root_entry
from dynid.common.errors import InputError
from dynid.common.strict_yaml import PathLike, read_yaml
from dynid.estimator.consistency import Consistency, consistency_from
from dynid.estimator.estimator import MAKERS, estimator_named
from dynid.experiment.experiment import (
    ANGLES,
    AUTO,
    GATES,
    ColumnMap,
    Experiment,
    FilterSettings,
    LogEntry,
    MaskSettings,
    TieChoice,
    UncertaintySettings,
    UnloadedModel,
    named_options,
)
from dynid.experiment.places import places
from dynid.experiment.sections import read_energy, read_gains, read_internal, read_refine, read_wrench
from dynid.mechanism.mechanism import DRIVE_SYMBOLS, MODEL_NAMES
from dynid.mechanism.robot_file.bodies import read_payloads
from dynid.mechanism.robot_file.drives import is_none
from dynid.mechanism.robot_file.force_sensor import read_force_sensor
from dynid.mechanism.robot_file.scope import Scope
from dynid.motion.settings import DERIVATIVES, FILTERS, VELOCITIES
from dynid.statistics.method import METHODS

SCHEMA = "dynid.experiment/1"
_KEYS = (
    "schema",
    "name",
    "description",
    "robot",
    "model",
    "logs",
    "validate",
    "columns",
    "efforts",
    "filter",
    "mask",
    "estimator",
    "uncertainty",
    "ties",
    "essential",
    "keep",
    "energy",
    "internal",
    "wrench",
    "force_sensor",
    "unloaded",
    "payloads",
    "drive",
    "stribeck",
    "cross_validate",
    "gate",
    "standard",
    "gains",
    "refine",
    "hold_out",
    "auto",
    "angles",
    "out",
)


def load_experiment(file: PathLike, *, need_logs: bool = True) -> Experiment:
    """Read an experiment file; paths in it are relative to it, unknown keys are refused.

    Args:
        file: `dynid.experiment/1`.
        need_logs: Refuse a file without logs; a rehearsal has none yet.
    """
    document = read_yaml(file)
    root = root_entry(document)
    fields = root.fields(_KEYS, required=("robot", "logs") if need_logs else ("robot",))
    if "schema" in fields:
        fields["schema"].choice((SCHEMA,))
    folder = Path(file).resolve().parent
    reader = _Reader(folder, Scope())
    options: dict[str, Any] = {
        name: read(fields[name]) for name, read in reader.readers().items() if name in fields
    }
    if need_logs and not options["logs"]:
        raise fields["logs"].error("no log is given", "e.g. logs: [{file: run.csv}]")
    options.setdefault("name", Path(file).stem)
    if isinstance(options.get("estimator"), Mapping):
        options["estimator"], options["estimator_options"] = named_options(options["estimator"])
    try:
        return Experiment(**options, file=str(file), places=places(fields))
    except InputError as error:
        raise (
            error if error.file else InputError(error.text, file=file, place=error.place, remedy=error.remedy)
        ) from None


class _Reader:
    """Readers of the sections, which share the folder and the arithmetic."""

    def __init__(self, folder: Path, scope: Scope) -> None:
        self.folder, self.scope = folder, scope

    def readers(self) -> Mapping[str, Any]:
        """Section name -> the function that reads it."""
        return {
            "name": Entry.text,
            "robot": self.robot,
            "model": lambda entry: entry.choice(MODEL_NAMES),
            "logs": self.logs,
            "validate": self.logs,
            "columns": self.columns,
            "efforts": self.efforts,
            "filter": self.filter,
            "mask": self.mask,
            "estimator": self.estimator,
            "uncertainty": self.uncertainty,
            "ties": self.ties,
            "essential": self.essential,
            "keep": Entry.texts,
            "energy": lambda entry: read_energy(entry, self.scope),
            "internal": read_internal,
            "wrench": read_wrench,
            "unloaded": self.unloaded,
            "force_sensor": lambda entry: read_force_sensor(entry, self.scope),
            "payloads": lambda entry: read_payloads(entry, self.scope),
            "drive": self.drive,
            "stribeck": self.stribeck,
            "cross_validate": lambda entry: entry.count(least=2),
            "gate": lambda entry: entry.choice(GATES),
            "standard": self.standard,
            "gains": lambda entry: read_gains(entry, self.scope),
            "refine": lambda entry: read_refine(entry, self.scope),
            "hold_out": self.scope.number,
            "auto": lambda entry: entry.choice(AUTO),
            "angles": lambda entry: entry.choice(ANGLES),
            "out": self.path,
        }

    def path(self, entry: Entry) -> str:
        return str(self.folder / entry.text())

    def unloaded(self, entry: Entry) -> UnloadedModel:
        """A result of the robot without load, and the parameters that are identified again."""
        if not entry.is_mapping:
            return UnloadedModel(self.path(entry))
        fields = entry.fields(("result", "free"), required=("result",))
        return UnloadedModel(self.path(fields["result"]), fields["free"].texts() if "free" in fields else ())

    def robot(self, entry: Entry) -> str:
        """A path when it looks like one, else the name of a built-in robot."""
        text = entry.text()
        return str(self.folder / text) if "/" in text or "\\" in text or Path(text).suffix else text

    def logs(self, entry: Entry) -> tuple[LogEntry, ...]:
        logs = []
        for item in entry.items():
            if not item.is_mapping:
                logs.append(LogEntry(self.path(item)))
                continue
            keys = ("file", "payload", "columns", "from", "to", "exclude", "runs")
            fields = item.fields(keys, required=("file",))
            payloads: tuple[str, ...] = ()
            if "payload" in fields:
                one = fields["payload"]
                payloads = one.texts() if one.is_list else (one.text(),)
            columns = self.columns(fields["columns"]) if "columns" in fields else None
            window = {
                name: self.scope.number(fields[key])
                for key, name in (("from", "start"), ("to", "stop"))
                if key in fields
            }
            options: dict[str, Any] = {
                "file": self.path(fields["file"]),
                "payloads": payloads,
                "columns": columns,
                **window,
            }
            if "exclude" in fields:
                pairs = fields["exclude"].items()
                options["exclude"] = tuple(pair.vector(self.scope.number, 2) for pair in pairs)
            if "runs" in fields:
                options["runs"] = tuple(one.count() for one in fields["runs"].items())
            logs.append(placed(item, LogEntry, options))
        return tuple(logs)

    def columns(self, entry: Entry) -> dict[str, ColumnMap]:
        columns = {}
        sources: dict[str, str] = {}
        for signal, item in entry.mapping().items():
            column = self.column(item)
            if column.name in sources:
                raise item.error(
                    f"column '{column.name}' is used for {sources[column.name]} and {signal}", "use it once"
                )
            sources[column.name] = signal
            columns[signal] = column
        return columns

    def column(self, entry: Entry) -> ColumnMap:
        if not entry.is_mapping:
            return ColumnMap(entry.text())
        fields = entry.fields(("name", "unit", "scale", "offset"))
        own = entry.path.rsplit(".", 1)[-1]
        scale = self.scope.number(fields["scale"]) if "scale" in fields else 1.0
        if scale == 0.0:
            raise fields["scale"].error("a scale of zero makes the column zero", "give another scale")
        return ColumnMap(
            fields["name"].text() if "name" in fields else own,
            fields["unit"].text() if "unit" in fields else None,
            scale,
            self.scope.number(fields["offset"]) if "offset" in fields else 0.0,
        )

    def efforts(self, entry: Entry) -> tuple[int | str, ...]:
        efforts: list[int | str] = []
        for item in entry.items():
            effort = item.text() if isinstance(item.node.value, str) else item.count()
            if effort in efforts:
                raise item.error(f"effort {effort} is listed twice", "list it once")
            efforts.append(effort)
        if not efforts:
            raise entry.error("no effort is listed", "leave the line out to use all")
        return tuple(efforts)

    def filter(self, entry: Entry) -> FilterSettings:
        choices = {"kind": FILTERS, "derivative": DERIVATIVES, "velocity": VELOCITIES}
        numbers, counts = ("cutoff", "rows"), ("decimate", "order")
        fields = entry.fields((*numbers, *counts, *choices))
        options: dict[str, Any] = {
            name: self.scope.number(fields[name]) for name in numbers if name in fields
        }
        options |= {name: fields[name].count() for name in counts if name in fields}
        options |= {name: fields[name].choice(valid) for name, valid in choices.items() if name in fields}
        return placed(entry, FilterSettings, options)

    def mask(self, entry: Entry) -> MaskSettings:
        fields = entry.fields(("speed", "around", "rest"))
        options: dict[str, Any] = {
            name: self.scope.number(fields[name]) for name in ("speed", "rest") if name in fields
        }
        if "around" in fields:
            options["around"] = fields["around"].count(least=0)
        return placed(entry, MaskSettings, options)

    def estimator(self, entry: Entry) -> str | dict[str, Any]:
        """A name, or a name with options; the estimator itself knows which."""
        if not entry.is_mapping:
            return entry.choice(tuple(MAKERS))
        fields = entry.mapping()
        if "name" not in fields:
            raise entry.error("'name' is missing", "e.g. {name: wls, weights: covariance}")
        name = fields.pop("name").choice(tuple(MAKERS))
        options = {option: one.plain() for option, one in fields.items()}
        placed(entry, estimator_named, {"name": name, "options": options})
        return {"name": name, **options}

    def standard(self, entry: Entry) -> Consistency | bool:
        """Whether a full standard set is wanted, or its options."""
        if not entry.is_mapping:
            return entry.flag()
        options = {name: one.plain() for name, one in entry.mapping().items()}
        return placed(entry, consistency_from, {"options": options})

    def drive(self, entry: Entry) -> tuple[str, ...]:
        """Drive terms of every joint or motor that has any."""
        if is_none(entry):
            return ()
        return tuple(item.choice(DRIVE_SYMBOLS) for item in entry.items())

    def stribeck(self, entry: Entry) -> dict[str, float]:
        """Known Stribeck speeds by joint or motor."""
        speeds = {}
        for owner, item in entry.mapping().items():
            speeds[owner] = self.scope.number(item)
            if speeds[owner] <= 0.0:
                raise item.error(f"{speeds[owner]:g} is not positive", "give rad/s or m/s")
        return speeds

    def uncertainty(self, entry: Entry) -> UncertaintySettings:
        """A method by name, or a mapping with its options."""
        if not entry.is_mapping:
            return UncertaintySettings(entry.choice(METHODS))
        numbers, counts = ("block", "bandwidth"), ("draws", "seed")
        fields = entry.fields(("method", *numbers, *counts), required=("method",))
        options: dict[str, Any] = {"method": fields["method"].choice(METHODS)}
        options |= {name: self.scope.number(fields[name]) for name in numbers if name in fields}
        options |= {name: fields[name].count(least=0) for name in counts if name in fields}
        return placed(entry, UncertaintySettings, options)

    def ties(self, entry: Entry) -> tuple[TieChoice, ...]:
        ties = []
        for item in entry.items():
            if not item.is_mapping:
                ties.append(TieChoice(item.text()))
                continue
            fields = item.fields(("name", "apply"), required=("name",))
            apply = fields["apply"].choice(("standard", "regrouped")) if "apply" in fields else "standard"
            ties.append(TieChoice(fields["name"].text(), apply))
        return tuple(ties)

    def essential(self, entry: Entry) -> dict[str, float]:
        fields = entry.fields(("ratio", "sigma_percent"))
        if len(fields) != 1:
            raise entry.error("'essential' takes one rule", "ratio: 10, or sigma_percent: 15")
        (name, value), *_ = fields.items()
        number = self.scope.number(value)
        if number <= 0:
            raise value.error(f"{name} {number:g} is not positive", "give a positive number")
        return {name: number}
