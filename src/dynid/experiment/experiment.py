"""Experiment: what to identify, from which logs, and how; from a file or made in Python."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dynid.common.errors import InputError, nearest
from dynid.estimator.consistency import Consistency, consistency_from
from dynid.estimator.estimator import MAKERS
from dynid.estimator.gain_settings import GainSettings
from dynid.experiment.internal_settings import internal_settings
from dynid.experiment.refine_settings import RefineSettings
from dynid.mechanism.force_sensor import ForceSensor
from dynid.mechanism.mechanism import DRIVE_SYMBOLS, MODEL_NAMES, Mechanism, Payload
from dynid.mechanism.robot_file.force_sensor import sensor_from
from dynid.motion.settings import (
    ColumnMap,
    FilterSettings,
    LogEntry,
    MaskSettings,
    check_choice,
    columns_from,
    entry_of,
)
from dynid.motion.wrench_settings import wrench_settings
from dynid.projection.quadrature import DEFAULT, quadrature_named
from dynid.statistics.method import UncertaintySettings

__all__ = [
    "ColumnMap",
    "Experiment",
    "FilterSettings",
    "LogEntry",
    "MaskSettings",
    "TieChoice",
    "UncertaintySettings",
    "from_plain",
    "read_experiment",
]

ANGLES = ("xyz", "zyx")


class LeftOpen(str):
    """A name that nobody has chosen: the model may prefer another."""


DEFAULT_ESTIMATOR = LeftOpen("wls")
GATES = ("prior",)
AUTO = ("on", "off")
ENERGY_OPTIONS = ("window", "overlap", "integration")


@dataclass(frozen=True)
class TieChoice:
    """A tie of the robot that is used, on standard parameters or after regrouping."""

    name: str
    apply: str = "standard"

    def __post_init__(self) -> None:
        check_choice("tie apply", self.apply, ("standard", "regrouped"))


@dataclass(frozen=True)
class UnloadedModel:
    """A saved result of the robot without load: the payload is what is left over.

    Attributes:
        result: Its file or folder.
        free: Names or globs of parameters that are identified again with the payload.
    """

    result: str
    free: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """Everything that an identification needs in addition to the data.

    Attributes:
        robot: Built-in name, path of a description, or a mechanism.
        columns: Signal -> column of the logs (in a file or `identify` also a name or a mapping).
        logs, validate: Logs to fit and logs to predict; bare paths become entries.
        model: Identification model; None is the robot's own.
        efforts: Effort rows used, 1-based numbers or names; None is all that are present.
        estimator: Name (in a file or `identify` also a mapping of name and options).
        estimator_options: Options of this estimator.
        uncertainty: How sigma and intervals are found.
        essential: {"ratio": x} or {"sigma_percent": x}; None keeps every base parameter.
        keep: Base parameters (or globs) to fit and no others; None fits all.
        payloads: Bodies mounted in some logs, in addition to those of the robot.
        drive: Drive terms of every joint or motor that has any, instead of the robot's own; None keeps those.
        stribeck: Owner of a term Fk -> its Stribeck speed in [rad/s] or [m/s]; others are searched.
        cross_validate: Folds of a cross-validation in addition to the fit; None: none.
        gate: `prior`: no result is published that predicts held-out efforts worse than the description's
            own values do. Held out are the logs to validate on, else folds.
        hold_out: Share of every log, its end, that is validated on instead; None: none.
        standard: Ask for a full, physically consistent set of standard parameters too; the estimator
            `consistent` gives it unasked. May be True or a mapping of options.
        gains: Drive gains to be found together with the dynamics; None takes efforts as logged.
        refine: Refine the linear estimate by output error; may be True or a mapping of options.
        energy, internal, wrench: Options of these models.
        unloaded: The robot itself is known from this result, and only payloads are found.
        force_sensor: The load on this sensor is identified (model `wrench`); None: the robot is.
        auto: `on`: settings that are left open are chosen by held-out error; `off`: by rules for each.
        angles: Order of roll, pitch, yaw in logs: xyz is Rx Ry Rz, zyx is Rz Ry Rx.
        drop_bad_rows: Leave out rows of text logs with cells that are no numbers, and count them.
        out: Folder for the results; None is results/<name>.
        places: Where names are in the file, e.g. `tie legs` -> `line 12, ties[0]`.
    """

    robot: str | Mechanism
    logs: tuple[LogEntry | str | os.PathLike[str], ...] = ()
    validate: tuple[LogEntry | str | os.PathLike[str], ...] = ()
    model: str | None = None
    columns: Mapping[str, ColumnMap] = field(default_factory=dict)
    efforts: tuple[int | str, ...] | None = None
    filter: FilterSettings = field(default_factory=FilterSettings)
    mask: MaskSettings = field(default_factory=MaskSettings)
    estimator: str = DEFAULT_ESTIMATOR
    estimator_options: Mapping[str, Any] = field(default_factory=dict)
    uncertainty: UncertaintySettings = field(default_factory=lambda: UncertaintySettings(left_open=True))
    ties: tuple[TieChoice, ...] = ()
    essential: Mapping[str, float] | None = None
    keep: tuple[str, ...] | None = None
    payloads: Mapping[str, Payload] = field(default_factory=dict)
    drive: tuple[str, ...] | None = None
    stribeck: Mapping[str, float] = field(default_factory=dict)
    cross_validate: int | None = None
    gate: str | None = None
    hold_out: float | None = None
    standard: Consistency | Mapping[str, Any] | bool | None = None
    gains: GainSettings | None = None
    refine: RefineSettings | Mapping[str, Any] | bool | None = None
    energy: Mapping[str, Any] = field(default_factory=dict)
    internal: Mapping[str, Any] = field(default_factory=dict)
    wrench: Mapping[str, Any] = field(default_factory=dict)
    unloaded: UnloadedModel | None = None
    force_sensor: ForceSensor | None = None
    auto: str = "on"
    angles: str = "xyz"
    drop_bad_rows: bool = False
    out: str | None = None
    name: str = "experiment"
    file: str | None = None
    places: Mapping[str, str] = field(default_factory=dict)

    def where(self, kind: str, name: str) -> dict[str, str | None]:
        """File and place of a name in the experiment file, for errors: `where("tie", "legs")`."""
        return {"file": self.file, "place": self.places.get(f"{kind} {name}")}

    def __post_init__(self) -> None:
        if isinstance(self.estimator, LeftOpen) and (self.force_sensor or self.unloaded):
            # A load on a sensor, or a payload from a loaded log, is one body: it must be consistent.
            object.__setattr__(self, "estimator", "consistent")
        object.__setattr__(self, "standard", _standard(self.standard, self.estimator))
        object.__setattr__(self, "refine", _refine(self))
        # Plain paths are accepted from scripts and the command line.
        object.__setattr__(self, "columns", columns_from(self.columns))
        object.__setattr__(self, "logs", _entries(self.logs))
        object.__setattr__(self, "validate", _entries(self.validate))
        _check_names("essential", self.essential or {}, ("ratio", "sigma_percent"))
        _check_names("energy", self.energy, ENERGY_OPTIONS)
        wrench_settings(self.wrench)
        internal_settings(self.internal)
        quadrature_named(str(self.energy.get("integration", DEFAULT)))
        if self.model is not None:
            check_choice("model", self.model, MODEL_NAMES)
        _check_sensor(self)
        check_choice("estimator", self.estimator, tuple(MAKERS))
        check_choice("angles", self.angles, ANGLES)
        check_choice("auto", self.auto, AUTO)
        if self.hold_out is not None and not 0.0 < self.hold_out < 1.0:
            raise InputError(
                f"a share of {self.hold_out:g} cannot be held out",
                file=self.file,
                place="hold_out",
                remedy="e.g. 0.3",
            )
        if self.gate is not None:
            check_choice("gate", self.gate, GATES)
        if self.cross_validate is not None and self.cross_validate < 2:
            raise InputError(
                f"cross_validate {self.cross_validate} leaves nothing to fit",
                file=self.file,
                remedy="use 2 folds or more",
            )
        for symbol in self.drive or ():
            check_choice("drive term", symbol, DRIVE_SYMBOLS)
        for effort in self.efforts or ():
            if isinstance(effort, int) and effort < 1:
                raise InputError(
                    f"effort {effort} does not exist", file=self.file, remedy="efforts are numbered from 1"
                )


def _check_sensor(experiment: Experiment) -> None:
    """A force sensor has equations of its own; a known robot has no parameters of its own left."""
    if experiment.unloaded is not None:
        for name in ("force_sensor", "drive", "gains", "ties", "refine"):
            if getattr(experiment, name):
                raise InputError(
                    f"'{name}' cannot be combined with 'unloaded', which gives the parameters of the robot",
                    file=experiment.file,
                    place=name,
                    remedy="leave one of them out",
                )
    if experiment.force_sensor is None:
        return
    if experiment.model not in (None, "wrench"):
        raise InputError(
            f"a force sensor needs model 'wrench', not '{experiment.model}'",
            file=experiment.file,
            place="model",
            remedy="leave out `model:`",
        )
    others = ("wrench", "drive", "gains", "ties", "stribeck", "refine")
    for name in others:
        if getattr(experiment, name):
            raise InputError(
                f"'{name}' has no meaning for a load on a force sensor",
                file=experiment.file,
                place=name,
                remedy="leave it out",
            )


def _standard(given: Consistency | Mapping[str, Any] | bool | None, estimator: str) -> Consistency | None:
    """Options of the standard set; None if it is not requested."""
    if given is None or given is False or (given is True and estimator == "consistent"):
        return None
    if estimator == "consistent":
        raise InputError(
            "the estimator 'consistent' already gives the standard set, with its own options",
            remedy="set them there: estimator: {name: consistent, ...}",
        )
    if given is True:
        return Consistency()
    return given if isinstance(given, Consistency) else consistency_from(given)


def _refine(experiment: Experiment) -> RefineSettings | None:
    """Options of the refinement; None if it is not requested."""
    given = experiment.refine
    if given is None or given is False:
        return None
    others: dict[str, Any] = {
        "essential": experiment.essential,
        "keep": experiment.keep,
        "gains": experiment.gains,
        "standard": experiment.standard or None,
    }
    found = [f"'{name}'" for name, other in others.items() if other is not None]
    found += ["estimator 'consistent'"] if experiment.estimator == "consistent" else []
    if found:
        raise InputError(f"refine cannot be combined with {found[0]}", remedy="leave one of them out")
    if given is True:
        return RefineSettings()
    if isinstance(given, RefineSettings):
        return given
    _check_names("refine", given, tuple(one.name for one in fields(RefineSettings)))
    return RefineSettings(**given)


def named_options(estimator: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and options of an estimator from `{name: ..., option: value, ...}`."""
    if "name" not in estimator:
        raise InputError(
            "an estimator with options needs its name", remedy="e.g. {name: wls, weights: joint}"
        )
    return str(estimator["name"]), {key: value for key, value in estimator.items() if key != "name"}


def from_plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an `Experiment`, where settings may also be mappings and ties names, as in a file."""
    made = dict(options)
    if isinstance(made.get("estimator"), Mapping):
        made["estimator"], own = named_options(made["estimator"])
        made["estimator_options"] = {**own, **made.get("estimator_options", {})}
    if isinstance(made.get("uncertainty"), str):
        made["uncertainty"] = UncertaintySettings(made["uncertainty"])
    settings = {"filter": FilterSettings, "mask": MaskSettings, "uncertainty": UncertaintySettings}
    settings |= {"gains": GainSettings}
    if made.get("gains") in ("all", True):
        made["gains"] = GainSettings()
    for what, kind in settings.items():
        if isinstance(made.get(what), Mapping):
            _check_names(what, made[what], tuple(one.name for one in fields(kind)))
            made[what] = kind(**made[what])
    if isinstance(made.get("unloaded"), str | os.PathLike):
        made["unloaded"] = UnloadedModel(os.fspath(made["unloaded"]))
    elif isinstance(made.get("unloaded"), Mapping):
        _check_names("unloaded", made["unloaded"], ("result", "free"))
        one = made["unloaded"]
        made["unloaded"] = UnloadedModel(os.fspath(one["result"]), tuple(one.get("free", ())))
    if isinstance(made.get("force_sensor"), Mapping):
        made["force_sensor"] = sensor_from(made["force_sensor"])
    for name, payload in made.get("payloads", {}).items():
        if not isinstance(payload, Payload):
            raise InputError(
                f"payload '{name}' is not a Payload",
                remedy="describe it in an experiment or robot file, or give a Payload",
            )
    if "columns" in made:
        made["columns"] = columns_from(made["columns"])
    if "ties" in made:
        made["ties"] = tuple(TieChoice(tie) if isinstance(tie, str) else tie for tie in made["ties"])
    _check_names("an experiment", made, tuple(one.name for one in fields(Experiment)))
    return made


def _check_names(what: str, given: Mapping[str, Any], valid: tuple[str, ...]) -> None:
    for name in given:
        if name not in valid:
            raise InputError(
                f"{what} has no '{name}'" + nearest(name, valid), remedy=f"use {', '.join(valid)}"
            )


def _entries(logs: Iterable[LogEntry | str | os.PathLike[str]]) -> tuple[LogEntry, ...]:
    return tuple(entry_of(log) for log in logs)


def read_experiment(file: str | os.PathLike[str]) -> Experiment:
    """The experiment of a file (`dynid.experiment/1`)."""
    from dynid.experiment.file import load_experiment

    return load_experiment(file)
