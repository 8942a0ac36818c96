"""Settings of the motion stage: columns, logs, filters and masks of an experiment.

Settings of the model `wrench`: which bodies, which parameters, and how its tables are to be read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

import msgspec

from dynid.common.entry import Entry, plain_entry
from dynid.common.errors import InputError, nearest
from dynid.common.settings import Count, NotNegative, Positive, Settings, Whole, read
from dynid.motion.differentiate import Derivative
from dynid.motion.filters import FilterKind


class ColumnMap(Settings, frozen=True):
    """Where a signal is found: SI value at t = scale * (column `name` in `unit` at t + delay) + offset.

    An empty name is that of the signal. `delay` in [s] is positive if the column is late.
    """

    _alone: ClassVar[str] = "name"

    name: str = ""
    unit: str | None = None
    scale: float = 1.0
    offset: float = 0.0
    delay: float = 0.0

    def check(self) -> None:
        """A scale of zero."""
        if self.scale == 0.0:
            raise InputError(
                "a scale of zero makes the column zero", place="scale", remedy="give another scale"
            )


class DriveSettings(Settings, frozen=True):
    """What a drive's signals mean, where they are not those of its joint in SI units.

    Attributes:
        ratio: Motor speed over joint speed, negative if they turn in opposite directions; of a linear joint
            in [rad/m].
        counts_per_turn: Encoder counts per turn of its shaft; None: positions have a unit of their own.
        torque_constant: Of the motor, in [N m/A] or [N/A]; None: efforts are not currents.
        side: Shaft to which the signals refer.
        encoder: The same for positions and rates only; None: as `side`.
    """

    _title: ClassVar[str] = "drives"

    ratio: float = 1.0
    counts_per_turn: Positive | None = None
    torque_constant: float | None = None
    side: Literal["motor", "joint"] = "motor"
    encoder: Literal["motor", "joint"] | None = None

    def check(self) -> None:
        """Factors of zero."""
        for name, value in (("ratio", self.ratio), ("torque_constant", self.torque_constant)):
            if value == 0.0:
                raise InputError(f"a {name} of zero makes the signal zero", place=name, remedy="correct it")

    def is_geared(self, quantity: str) -> bool:
        """Whether a signal is that of a motor whose gear may turn what slides."""
        side = self.side if quantity == "tau" else self.encoder or self.side
        return side == "motor" and self.ratio != 1.0

    def scale(self, quantity: str, unit: str | None) -> float:
        """Factor of a column, after its own unit; a column with a unit is neither in counts nor a current.

        q_joint = q_motor / ratio and tau_joint = ratio tau_motor, so that the power is the same.
        """
        if quantity == "tau":
            gain = self.ratio if self.side == "motor" else 1.0
            as_current = self.torque_constant is not None and unit in (None, "A", "mA")
            return gain * (self.torque_constant or 1.0) if as_current else gain
        if quantity not in ("q", "dq", "ddq", "q_ref"):
            return 1.0
        gain = 1.0 / self.ratio if (self.encoder or self.side) == "motor" else 1.0
        return gain * math.tau / self.counts_per_turn if self.counts_per_turn and unit is None else gain


def named_columns(columns: Mapping[str, ColumnMap]) -> dict[str, ColumnMap]:
    """Columns with the names of their signals where they have none; no column may be used twice."""
    made: dict[str, ColumnMap] = {}
    for signal, column in columns.items():
        named = column if column.name else column.changed(name=signal)
        other = next((earlier for earlier, used in made.items() if used.name == named.name), None)
        if other is not None:
            raise InputError(
                f"column '{named.name}' is used for {other} and {signal}",
                place=f"columns.{signal}",
                remedy="use it once",
            )
        made[signal] = named
    return made


class LogEntry(Settings, frozen=True):
    """One log: its file, the payloads mounted in it, and column names that only it has.

    Attributes:
        start, stop: Window of time that is used, in [s] of the log (keys `from` and `to`); None: to its end.
        exclude: Intervals that are left out, in [s] of the log.
        runs: Runs that are used, numbered from 1; None: all.
    """

    _alone: ClassVar[str] = "file"
    _paths: ClassVar[tuple[str, ...]] = ("file",)

    file: str
    payloads: tuple[str, ...] = msgspec.field(default=(), name="payload")
    columns: Mapping[str, ColumnMap] | None = None
    start: float | None = msgspec.field(default=None, name="from")
    stop: float | None = msgspec.field(default=None, name="to")
    exclude: tuple[tuple[float, float], ...] = ()
    runs: tuple[Count, ...] | None = None

    @classmethod
    def spelled(cls, entries: dict[str, Entry]) -> dict[str, Entry]:
        """One payload may be given without a list."""
        entry = entries.get("payloads")
        if entry is not None and isinstance(entry.value, str):
            entries["payloads"] = plain_entry([entry.text()], like=entry)
        return entries

    def check(self) -> None:
        """Columns without a name, and empty intervals."""
        ends = [(self.start, self.stop)] if self.start is not None and self.stop is not None else []
        for start, stop in (*ends, *self.exclude):
            if not start < stop:
                raise InputError(
                    f"the interval from {start:g} to {stop:g} s is empty",
                    remedy="give the earlier time first",
                )
        if self.columns is not None:
            msgspec.structs.force_setattr(self, "columns", named_columns(self.columns))


def entry_of(source: object) -> LogEntry:
    """A log entry from a file path alone; other entries unchanged, anything else refused."""
    if not isinstance(source, LogEntry | str | os.PathLike):
        raise no_log(source)
    return read(LogEntry, plain_entry(source))


def no_log(source: object) -> InputError:
    """That no log can be made from something."""
    return InputError(
        f"a log cannot be made from {type(source).__name__}",
        remedy="give a file, a Log (see log_from_arrays), a data frame, or a dict of arrays by name:"
        " {'t': t, 'q': q, 'tau': tau}",
    )


def column_maps(columns: Mapping[str, Any] | None) -> dict[str, ColumnMap]:
    """Columns by signal as in a file: a name, a mapping of name, unit, .., or a ColumnMap."""
    entries = plain_entry(dict(columns or {}), "columns").mapping()
    made = {key: read(ColumnMap, entry) for key, entry in entries.items()}
    return {key: column if column.name else column.changed(name=key) for key, column in made.items()}


class FilterSettings(Settings, frozen=True):
    """How coordinates are filtered and rows decimated; None: chosen from the data.

    Attributes:
        cutoff: Of the zero-phase low-pass on coordinates, in [Hz].
        decimate: Keep one row in this many.
        rows: Low-pass of W and Y, in [Hz]; default 0.8 fs / (2 decimate).
        kind: butterworth, fir or none.
        order: Of the Butterworth filter, in one direction.
        derivative: central3, central5, central7 or spline.
        velocity: auto, measured (dq of the log) or derived (from q).
    """

    _title: ClassVar[str] = "filter"

    cutoff: Positive | None = None
    decimate: Count | None = None
    rows: Positive | None = None
    kind: FilterKind = "butterworth"
    order: Count = 4
    derivative: Derivative | None = None
    velocity: Literal["auto", "measured", "derived"] = "auto"


class MaskSettings(Settings, frozen=True):
    """Which rows are dropped; None: chosen from the data.

    Attributes:
        speed: A joint slower than this is near a reversal, in [rad/s] or [m/s].
        around: Samples dropped on either side of a reversal.
        ramp: Samples over which the weight of rows rises from 0 to 1 beside what is dropped.
        rest: Samples where every joint is slower than this are at rest, in [rad/s] or [m/s].
    """

    _title: ClassVar[str] = "mask"

    speed: NotNegative | None = None
    around: Whole | None = None
    ramp: Whole | None = None
    rest: NotNegative | None = None


WORLD: Final = "world"
BODY: Final = "body"
# Quantities that can be given in world or in body axes, and their default axes.
DEFAULT_AXES = {"wrench": WORLD, "rates": BODY, "acceleration": WORLD}
KINEMATIC: Final = "kinematic"
PROPER: Final = "proper"
PARENT: Final = "parent"
JOINT: Final = "joint"
COM: Final = "com"
# Reference points of the moments of a table, in words.
POINTS = {
    JOINT: "the origins of the joints",
    BODY: "the origins of the bodies",
    COM: "the centres of mass",
    WORLD: "the world's origin",
}


class WrenchSettings(Settings, frozen=True):
    """How a table of bodies is read and what is identified from it.

    Attributes:
        parameters: `full`: the ten of each body; `principal`: M, XX, YY, ZZ with the centre of mass at the
            body's origin.
        bodies: Bodies to identify; None: all that the table determines.
        names: Name of a body in the table -> its name in the robot's description.
        axes: `wrench`, `rates` (angular velocity and acceleration) and `acceleration`: `world` or `body`.
        acceleration: `kinematic`, or `proper`: gravity is subtracted, as an accelerometer shows it.
        exerted_by: Who exerts the wrench of a row: the `parent` on the body, or the `body` on its parent.
        at: Point that the moments are about: origin of the inner `joint`, of the `body`, its centre of mass
            (`com`), or origin of the `world`.
    """

    of_model: ClassVar[str] = "wrench"

    _title: ClassVar[str] = "wrench"

    parameters: Literal["full", "principal"] = "full"
    bodies: tuple[str, ...] | None = None
    names: Mapping[str, str] = {}
    axes: Mapping[str, Literal["world", "body"]] = {}
    acceleration: Literal["kinematic", "proper"] = KINEMATIC
    exerted_by: Literal["parent", "body"] = PARENT
    at: Literal["joint", "body", "com", "world"] = JOINT

    def check(self) -> None:
        """Names of axes, and an empty list of bodies."""
        for quantity in self.axes:
            if quantity not in DEFAULT_AXES:
                raise InputError(
                    f"axes has no '{quantity}'" + nearest(quantity, DEFAULT_AXES),
                    place=f"axes.{quantity}",
                    remedy="use " + ", ".join(DEFAULT_AXES),
                )
        if self.bodies is not None and not self.bodies:
            raise InputError(
                "the list of bodies is empty", place="bodies", remedy="remove `bodies:` to use all bodies"
            )

    def axes_of(self, what: str) -> str:
        """`world` or `body`, of `wrench`, `rates` or `acceleration`."""
        return self.axes.get(what, DEFAULT_AXES[what])

    @property
    def words(self) -> str:
        """How the table was read, in one line."""
        axes = ", ".join(f"{quantity} in {self.axes_of(quantity)} axes" for quantity in DEFAULT_AXES)
        gravity = "gravity not subtracted" if self.acceleration == KINEMATIC else "gravity subtracted"
        by = "by the parent on the body" if self.exerted_by == PARENT else "by the body on its parent"
        return f"{axes}; {gravity} from accelerations; wrenches exerted {by}, moments about {POINTS[self.at]}"
