"""Experiment: what to identify, from which logs, and how; from a file or made in Python."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dynid.errors import InputError, nearest
from dynid.mechanism.mechanism import Mechanism, Payload

MODELS = ("inverse", "power", "energy", "internal", "wrench")
ESTIMATORS = ("ols", "wls", "robust", "tls", "gtls", "iv", "consistent", "recursive")
FILTERS = ("butterworth", "fir", "none")
DERIVATIVES = ("central3", "central5", "central7", "spline")
VELOCITIES = ("auto", "measured", "derived")
ANGLES = ("xyz", "zyx")


@dataclass(frozen=True)
class ColumnMap:
    """Where a signal is found: SI value = scale * (column `name` in `unit`) + offset."""

    name: str
    unit: str | None = None
    scale: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class LogEntry:
    """One log: its file, the payloads mounted in it, and column names that only it has."""

    file: str
    payloads: tuple[str, ...] = ()
    columns: Mapping[str, ColumnMap] | None = None


@dataclass(frozen=True)
class FilterSettings:
    """How coordinates are smoothed and rows thinned; None is chosen from the data.

    Attributes:
        cutoff: Of the zero-phase low-pass on coordinates, in [Hz].
        decimate: Keep one row in this many.
        rows: Low-pass of W and Y, in [Hz]; default 0.8 fs / (2 decimate).
        kind: butterworth, fir or none.
        order: Of the Butterworth filter, in one direction.
        derivative: central3, central5, central7 or spline.
        velocity: auto, measured (dq of the log) or derived (from q).
    """

    cutoff: float | None = None
    decimate: int | None = None
    rows: float | None = None
    kind: str = "butterworth"
    order: int = 4
    derivative: str | None = None
    velocity: str = "auto"

    def __post_init__(self) -> None:
        _check_positive(
            "filter", cutoff=self.cutoff, decimate=self.decimate, rows=self.rows, order=self.order
        )
        _check_choice("filter kind", self.kind, FILTERS)
        _check_choice("filter velocity", self.velocity, VELOCITIES)
        if self.derivative is not None:
            _check_choice("filter derivative", self.derivative, DERIVATIVES)


@dataclass(frozen=True)
class MaskSettings:
    """Which rows are dropped; None is chosen from the data.

    Attributes:
        speed: A joint slower than this is near a reversal, in [rad/s] or [m/s].
        around: Samples dropped on either side of a reversal.
        rest: Samples where every joint is slower than this are at rest, in [rad/s] or [m/s].
    """

    speed: float | None = None
    around: int | None = None
    rest: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("speed", self.speed), ("around", self.around), ("rest", self.rest)):
            if value is not None and not value >= 0:
                raise InputError(f"mask {name} {value} is negative", remedy="give a number of at least 0")


@dataclass(frozen=True)
class TieChoice:
    """A tie of the robot that is used, on standard parameters or after regrouping."""

    name: str
    apply: str = "standard"

    def __post_init__(self) -> None:
        _check_choice("tie apply", self.apply, ("standard", "regrouped"))


@dataclass(frozen=True)
class Experiment:
    """Everything an identification needs beside the data themselves.

    Attributes:
        robot: Built-in name, path of a description, or a mechanism.
        logs, validate: Logs to fit and logs to predict; bare paths become entries.
        model: Identification model; None is the robot's own.
        efforts: Effort rows used, 1-based numbers or names; None is all that are present.
        essential: {"ratio": x} or {"sigma_percent": x}; None keeps every base parameter.
        keep: Base parameters (or globs) to fit and no others; None fits all.
        payloads: Bodies mounted in some logs, beside those of the robot.
        energy, internal, wrench: Options of these models.
        angles: Order of roll, pitch, yaw in logs: xyz is Rx Ry Rz, zyx is Rz Ry Rx.
        drop_bad_rows: Leave out rows of text logs with cells that are no numbers, and count them.
        out: Folder for the results; None is results/<name>.
    """

    robot: str | Mechanism
    logs: tuple[LogEntry | str | os.PathLike[str], ...] = ()
    validate: tuple[LogEntry | str | os.PathLike[str], ...] = ()
    model: str | None = None
    columns: Mapping[str, ColumnMap] = field(default_factory=dict)
    efforts: tuple[int | str, ...] | None = None
    filter: FilterSettings = field(default_factory=FilterSettings)
    mask: MaskSettings = field(default_factory=MaskSettings)
    estimator: str = "wls"
    ties: tuple[TieChoice, ...] = ()
    essential: Mapping[str, float] | None = None
    keep: tuple[str, ...] | None = None
    payloads: Mapping[str, Payload] = field(default_factory=dict)
    energy: Mapping[str, Any] = field(default_factory=dict)
    internal: Mapping[str, Any] = field(default_factory=dict)
    wrench: Mapping[str, Any] = field(default_factory=dict)
    angles: str = "xyz"
    drop_bad_rows: bool = False
    out: str | None = None
    name: str = "experiment"
    file: str | None = None

    def __post_init__(self) -> None:
        # Bare paths are welcome where a script or a command line has nothing more to say.
        object.__setattr__(self, "logs", _entries(self.logs))
        object.__setattr__(self, "validate", _entries(self.validate))
        if self.model is not None:
            _check_choice("model", self.model, MODELS)
        _check_choice("estimator", self.estimator, ESTIMATORS)
        _check_choice("angles", self.angles, ANGLES)
        for effort in self.efforts or ():
            if isinstance(effort, int) and effort < 1:
                raise InputError(
                    f"effort {effort} does not exist", file=self.file, remedy="efforts count from 1"
                )


def _entries(logs: Iterable[LogEntry | str | os.PathLike[str]]) -> tuple[LogEntry, ...]:
    return tuple(log if isinstance(log, LogEntry) else LogEntry(os.fspath(log)) for log in logs)


def _check_choice(what: str, value: str, valid: tuple[str, ...]) -> None:
    if value not in valid:
        raise InputError(
            f"{what} '{value}' is not known" + nearest(value, valid), remedy="use one of " + ", ".join(valid)
        )


def _check_positive(what: str, **values: float | int | None) -> None:
    for name, value in values.items():
        if value is not None and not 0 < value < float("inf"):
            raise InputError(f"{what} {name} {value} is not positive", remedy="give a positive number")


def read_experiment(file: str | os.PathLike[str]) -> Experiment:
    """The experiment of a file (`dynid.experiment/1`)."""
    from dynid.experimentfile import load_experiment

    return load_experiment(file)
