"""Experiment: what to identify, from which logs, and how; from a file or made in Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from dynid.common.entry import Entry, plain_entry
from dynid.common.errors import InputError
from dynid.common.settings import FORMS, Count, Form, LeftOpen, Positive, Settings, read
from dynid.estimator.estimator import MAKERS, estimator_named
from dynid.estimator.settings import Consistency, GainSettings
from dynid.experiment.sections import (
    EnergySettings,
    InternalSettings,
    RefineSettings,
    TieChoice,
    UnknownDescription,
    UnloadedModel,
)
from dynid.experiment.tasks import CompareSettings, ExciteSettings, ExportSettings
from dynid.mechanism.force_sensor import ForceSensor, read_force_sensor, sensor_document
from dynid.mechanism.load import reference
from dynid.mechanism.mechanism import Mechanism, Payload
from dynid.mechanism.robot_file.bodies import payload_document, read_payload
from dynid.mechanism.variant import drive_names
from dynid.motion.servo import PdSettings
from dynid.motion.settings import (
    ColumnMap,
    DriveSettings,
    FilterSettings,
    LogEntry,
    MaskSettings,
    WrenchSettings,
    entry_of,
    named_columns,
)
from dynid.projection.model import MOUNTED, model_names
from dynid.statistics.uncertainty import EssentialRule, UncertaintySettings

__all__ = [
    "ColumnMap",
    "Experiment",
    "FilterSettings",
    "LeftOpen",
    "LogEntry",
    "MaskSettings",
    "TieChoice",
    "UncertaintySettings",
    "UnknownDescription",
    "UnloadedModel",
    "experiment_from",
    "read_experiment",
]

DEFAULT_ESTIMATOR = LeftOpen("wls")
TASKS = ("excite", "compare", "export")  # done besides an identification
FORMS[Payload] = Form(read_payload, payload_document)
FORMS[ForceSensor] = Form(read_force_sensor, sensor_document)
# Without a name where the robot is given in another way.
FORMS[Mechanism] = Form(lambda entry: "" if entry.value == "" else entry.text(), reference)


class Experiment(Settings, frozen=True):
    """Everything that an identification needs in addition to the data, and what else is asked for.

    Sections may be given as mappings, as in a file: `internal={"free": ["x"]}`, `refine=True`.

    Attributes:
        robot: Built-in name, path of a description, or a mechanism. Without logs: instead of the robot of
            the results that are compared or exported; empty: theirs.
        columns: Signal -> column of the logs; patterns as `tau_{i}` -> `effort_{name}`.
        drives: Joint or motor (or glob) -> gear, encoder and torque constant, which scale its columns.
        logs, validate: Logs to fit and logs to predict; bare paths become entries.
        model: Identification model; None is the robot's own.
        efforts: Effort rows used, 1-based numbers or names; None is all that are present.
        estimator: Name; a mapping of name and options is accepted and split.
        estimator_options: Options of this estimator.
        uncertainty: How sigma and intervals are found.
        essential: Rule for removing parameters; None keeps every base parameter.
        keep: Base parameters (or globs) to fit and no others; None fits all.
        payloads: Bodies mounted in some logs, in addition to those of the robot.
        known: Parameter by full name, e.g. M_payload -> value taken as exact, in addition to the robot's; or
            a joint that is not logged -> where it stands still, in [rad] or [m].
        drive: Drive terms of every joint or motor that has any, or of single ones by name, instead of the
            robot's own; None keeps those.
        stribeck: Owner of a term Fk -> its Stribeck speed in [rad/s] or [m/s]; others are searched.
        cross_validate: Folds of a cross-validation in addition to the fit; None: none.
        gate: `prior`: no result is published that predicts held-out efforts worse than the description's
            own values do. Held out are the logs to validate on, else folds.
        hold_out: Share of every log, its end, that is validated on instead; None: none.
        date: When the logs were recorded (ISO 8601), for drift over time; empty: see `provenance`.
        purpose: Use of the result, which defines what is enough; None: none in particular.
        standard: Ask for a full, physically consistent set of standard parameters too; the estimator
            `consistent` gives it unasked.
        gains: Drive gains to be found together with the dynamics; None takes efforts as logged.
        pd: PD law of the servos, from which the efforts follow; None: they are logged.
        refine: Refine the linear estimate by output error.
        energy, internal, wrench: Options of these models.
        unknown: Dimensions, joint zeros or direction of gravity that are found together with the parameters.
        unloaded: The robot itself is known from this result, and only payloads are found.
        force_sensor: The load on this sensor is identified (model `wrench`); None: the robot is.
        auto: `on`: settings that are left open are chosen by held-out error; `off`: by rules for each.
        angles: Order of roll, pitch, yaw in logs: xyz is Rx Ry Rz, zyx is Rz Ry Rx.
        drop_bad_rows: Leave out rows of text logs with cells that are no numbers, and count them.
        force: Go on where logs are refused because they contradict the description or each other.
        excite: A motion that `dynid excite` designs for the robot.
        compare: A comparison, of the result with others or of other fits.
        export: Formats in which the result is written too.
        out: Folder for the results; None is results/<name>.
        places: Where names are in the file, e.g. `tie legs` -> `line 12, ties[0]`.
    """

    _hidden: ClassVar[tuple[str, ...]] = ("file", "places")
    _paths: ClassVar[tuple[str, ...]] = ("out",)

    robot: Mechanism | str
    logs: tuple[LogEntry, ...] = ()
    validate: tuple[LogEntry, ...] = ()
    model: str | None = None
    columns: Mapping[str, ColumnMap] = {}
    drives: Mapping[str, DriveSettings] = {}
    efforts: tuple[Count | str, ...] | None = None
    filter: FilterSettings = FilterSettings()
    mask: MaskSettings = MaskSettings()
    estimator: str = DEFAULT_ESTIMATOR
    estimator_options: Mapping[str, Any] = {}
    uncertainty: UncertaintySettings = UncertaintySettings()
    ties: tuple[TieChoice, ...] = ()
    essential: EssentialRule | None = None
    keep: tuple[str, ...] | None = None
    payloads: Mapping[str, Payload] = {}
    known: Mapping[str, float] = {}
    drive: tuple[str, ...] | Mapping[str, tuple[str, ...]] | None = None
    stribeck: Mapping[str, Positive] = {}
    cross_validate: Annotated[int, msgspec.Meta(ge=2)] | None = None
    gate: Literal["prior"] | None = None
    purpose: Literal["feedforward", "simulation", "payload", "collision"] | None = None
    hold_out: Positive | None = None
    date: str = ""
    standard: Consistency | None = None
    gains: GainSettings | None = None
    pd: PdSettings | None = None
    refine: RefineSettings | None = None
    energy: EnergySettings = EnergySettings()
    internal: InternalSettings = InternalSettings()
    wrench: WrenchSettings = WrenchSettings()
    unknown: UnknownDescription | None = None
    unloaded: UnloadedModel | None = None
    force_sensor: ForceSensor | None = None
    auto: Literal["on", "off"] = "on"
    angles: Literal["xyz", "zyx"] = "xyz"
    drop_bad_rows: bool = False
    force: bool = False
    excite: ExciteSettings | None = None
    compare: CompareSettings | None = None
    export: ExportSettings | None = None
    out: str | None = None
    name: str = "experiment"
    file: str | None = None
    places: Mapping[str, str] = {}

    @property
    def mounting(self) -> dict[str, Any]:
        """Settings by name that mount something on the robot, which is then identified instead of it."""
        settings = {key: getattr(self, key) for key in self.__struct_fields__}
        return {key: setting for key, setting in settings.items() if hasattr(setting, "identified_by")}

    def tie_names(self, apply: str = "standard") -> tuple[str, ...]:
        """Ties in use, on standard parameters or after regrouping."""
        return tuple(tie.name for tie in self.ties if tie.apply == apply)

    def where(self, kind: str, name: str) -> dict[str, str | None]:
        """File and place of a name in the experiment file, for errors: `where("tie", "legs")`."""
        return {"file": self.file, "place": self.places.get(f"{kind} {name}")}

    @classmethod
    def spelled(cls, entries: dict[str, Entry]) -> dict[str, Entry]:
        """An estimator with its options, logs that are no files, and names that only dynid knows."""
        chosen = entries.get("estimator")
        if chosen is not None and chosen.is_mapping:
            given = chosen.mapping()
            if "name" not in given:
                raise chosen.error(
                    "an estimator with options needs its name", "e.g. {name: wls, weights: joint}"
                )
            options = {name: option.plain() for name, option in given.items() if name != "name"}
            more = entries["estimator_options"].plain() if "estimator_options" in entries else {}
            entries["estimator"] = given["name"]
            entries["estimator_options"] = plain_entry({**options, **more}, like=chosen)
        if "date" in entries:
            entries["date"] = plain_entry(iso_date(entries["date"]), like=entries["date"])
        if "estimator" in entries:
            entries["estimator"].choice(tuple(MAKERS))
        if "model" in entries and entries["model"].value is not None:
            entries["model"].choice(model_names())
        if "drive" in entries and entries["drive"].value == "none":
            entries["drive"] = plain_entry((), like=entries["drive"])
        for term in _listed_terms(entries["drive"]) if "drive" in entries else ():
            term.choice(drive_names())
        for log_entry in (
            log_entry for key in ("logs", "validate") if key in entries for log_entry in entries[key].items()
        ):
            if not log_entry.is_mapping:
                entry_of(log_entry.value)
        return entries

    def check(self) -> None:
        """Options that exclude each other, and those of the estimator."""
        change = msgspec.structs.force_setattr
        change(self, "columns", named_columns(self.columns))
        if isinstance(self.estimator, LeftOpen) and (self.mounting or self.unloaded):
            # What is mounted, or a payload from a loaded log, is one body: it must be consistent.
            change(self, "estimator", "consistent")
        if self.hold_out is not None and self.hold_out >= 1.0:
            raise InputError(
                f"a share of {self.hold_out:g} cannot be held out", place="hold_out", remedy="e.g. 0.3"
            )
        if self.efforts == ():
            raise InputError("no effort is listed", place="efforts", remedy="leave the line out to use all")
        if self.estimator == "consistent" and self.standard == Consistency():
            change(self, "standard", None)
        if not isinstance(self.estimator, LeftOpen):
            _placed_options(self)
        mounted = [
            (key, setting.excludes, f"'{{}}' has no meaning beside '{key}'")
            for key, setting in self.mounting.items()
        ]
        for name, others, why in (*_EXCLUDED, *mounted):
            for other in others:
                if getattr(self, name) is not None and _asked(self, other):
                    raise InputError(why.format(other), place=other, remedy="leave one of them out")
        for key, setting in self.mounting.items():
            if self.model not in (None, MOUNTED[setting.identified_by]):
                raise InputError(
                    f"'{key}' needs model '{MOUNTED[setting.identified_by]}', not '{self.model}'",
                    place="model",
                    remedy="leave out `model:`",
                )
        if self.standard is not None and self.estimator == "consistent":
            raise InputError(
                "the estimator 'consistent' already gives the standard set, with its own options",
                place="standard",
                remedy="set them there: estimator: {name: consistent, ...}",
            )
        if self.refine is not None and self.estimator == "consistent":
            raise InputError(
                "refine cannot be combined with estimator 'consistent'",
                place="refine",
                remedy="leave one of them out",
            )
        if self.logs and self.export is not None and self.export.result is not None:
            raise InputError(
                "an experiment with logs exports its own result",
                place="export.result",
                remedy="leave out `result`, or the logs",
            )


# Options that exclude others: if the first is given, none of the others may be.
_EXCLUDED = (
    (
        "unloaded",
        ("force_sensor", "drive", "gains", "pd", "ties", "refine"),
        "'{}' cannot be combined with 'unloaded', which gives the parameters of the robot",
    ),
    ("refine", ("essential", "keep", "gains", "pd", "standard"), "refine cannot be combined with '{}'"),
    ("pd", ("gains",), "'{}' cannot be combined with 'pd', whose kp is the gain"),
)


def _listed_terms(drive: Entry) -> list[Entry]:
    """Entries of all drive terms in `drive`: of all joints and motors, or by name."""
    lists = drive.mapping().values() if drive.is_mapping else [drive]
    return [term for entry in lists if entry.is_list for term in entry.items()]


def iso_date(entry: Entry) -> str:
    """A date as text; other text is refused."""
    text = str(entry.plain())
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise entry.error(f"'{text}' is not a date", "e.g. 2026-03-01 or 2026-03-01T14:30") from None
    return text


def _asked(experiment: Experiment, name: str) -> bool:
    """Whether an option is given."""
    value = getattr(experiment, name)
    return bool(value) and value != WrenchSettings()


def _placed_options(experiment: Experiment) -> None:
    try:
        estimator_named(experiment.estimator, experiment.estimator_options)
    except InputError as error:
        raise InputError(error.text, place="estimator", remedy=error.remedy) from None


def experiment_from(options: Mapping[str, Any]) -> Experiment:
    """The experiment of plain options, as in a file; unknown names are refused with the nearest valid one.

    What a file asks for besides an identification is refused: whoever calls this only identifies.
    """
    for key in TASKS:
        if key in options:
            raise InputError(
                f"'{key}' belongs to an experiment file, not to the options of an identification",
                place=key,
                remedy="leave it out, and do it with the result",
            )
    return read(Experiment, plain_entry(options))


def read_experiment(file: str | os.PathLike[str]) -> Experiment:
    """The experiment of a file (`dynid.experiment/1`)."""
    from dynid.experiment.file import load_experiment

    return load_experiment(file)
