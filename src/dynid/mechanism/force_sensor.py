"""A force/torque sensor on a robot: its load, and the robot model for its equations.

    s W_tool(motion) chi_tool + bias = measured        six rows per sample, axes and origin of the sensor

s is -1 where the sensor reports the wrench that the tool exerts on it (`load`), +1 where it reports the
wrench that it exerts on the tool (`reaction`). See `sensor_mechanism` for the robot of these equations.

`force_sensor:` of an experiment: read from a file, a script or a result, and written to a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dynid.common.arrays import Array, Float, Inexact
from dynid.common.entry import Entry, placed
from dynid.common.errors import InputError, nearest
from dynid.mechanism.frame import Frame, identity_frame
from dynid.mechanism.mechanism import BASE
from dynid.mechanism.robot_file.bodies import FRAME_KEYS, read_frame, read_known, read_prior
from dynid.mechanism.robot_file.scope import Scope

COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")
UNITS = ("N", "N", "N", "N m", "N m", "N m")
IMU = ("wx", "wy", "wz", "ax", "ay", "az")
BIASES = ("constant", "segment", "none")
MOUNTINGS = ("known", "angle", "rpy")
GRAVITIES = ("known", "estimate")
SIGNS = ("load", "reaction")
ANGLES = {"known": (), "angle": ("angle_sensor",), "rpy": ("roll_sensor", "pitch_sensor", "yaw_sensor")}
TILTS = {"known": (), "estimate": ("tilt1_gravity", "tilt2_gravity")}
_EYE = np.eye(3)


@dataclass(frozen=True)
class Run:
    """A segment of a log, which may have a bias of its own.

    Attributes:
        log: Its name.
        number: Of the segment in the log, from 1.
        start: Time of its first sample, in [s]: distinguishes it from segments of other divisions of the log.
    """

    log: str
    number: int
    start: float

    def is_of(self, log: str, start: float, step: float) -> bool:
        """Whether a segment of that log that begins at that time is this one, within a step [s]."""
        return self.log == log and abs(self.start - start) < step


@dataclass(frozen=True, eq=False)
class ForceSensor:
    """A six-axis sensor and its unknowns.

    Attributes:
        identified_by: The model of what this setting of an experiment mounts on the robot.
        excludes: Options of an experiment that have no meaning beside this one.
        body: That carries it; not used where an IMU measures the motion.
        frame: Sensor axes and origin in that body, as far as they are known.
        tool: Name of the load on the sensor.
        bias: `constant`, one per `segment` of each log, or `none`.
        mounting: `known`; `angle`: turned about its z by an unknown angle; `rpy`: all three angles unknown.
        gravity: Its direction in the base frame is `known`, or two angles to `estimate`.
        sign: `load`: the wrench that the tool exerts on the sensor; `reaction`: the reverse.
        imu: The inertial unit in sensor axes, if it measures the motion; None: the robot's joints do.
        known, prior: Of the tool, as of any body.
        limits: Largest force [N] and moment [N m] that the sensor can report; None: not given.
        runs: Segments with a bias of their own.
        at: Values of `angles` about which the equations are linearised, in [rad]; None: the description's.
    """

    identified_by: ClassVar[str] = "force_sensor"
    excludes: ClassVar = ("wrench", "drive", "gains", "pd", "ties", "stribeck", "refine", "unknown")

    body: str = BASE
    frame: Frame = field(default_factory=identity_frame)
    tool: str = "tool"
    bias: str = "constant"
    mounting: str = "known"
    gravity: str = "known"
    sign: str = "load"
    imu: Frame | None = None
    known: Mapping[str, float] = field(default_factory=dict)
    prior: Mapping[str, float] = field(default_factory=dict)
    limits: tuple[float, float] | None = None
    runs: tuple[Run, ...] = ()
    at: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for setting, value, valid in (
            ("bias", self.bias, BIASES),
            ("mounting", self.mounting, MOUNTINGS),
            ("gravity", self.gravity, GRAVITIES),
            ("sign", self.sign, SIGNS),
        ):
            if value not in valid:
                raise InputError(
                    f"{setting} '{value}' of the force sensor is not known" + nearest(value, valid),
                    place=f"force_sensor.{setting}",
                    remedy="use one of " + ", ".join(valid),
                )
        if self.imu is not None and (self.gravity != "known" or self.mounting != "known"):
            raise InputError(
                "an IMU at the sensor measures gravity in axes fixed to the sensor: neither the direction of"
                " gravity nor the mounting on the arm appears in the equations",
                place="force_sensor",
                remedy="remove `gravity` and `mounting`, or remove `imu`",
            )

    @property
    def factor(self) -> float:
        """s: measured = s W chi + bias."""
        return -1.0 if self.sign == "load" else 1.0

    @property
    def angles(self) -> tuple[str, ...]:
        """Names of the unknown angles, in [rad]: of the mounting, then of gravity."""
        return (*ANGLES[self.mounting], *TILTS[self.gravity])

    def mounting_rotation(self, angles: Inexact[Array, "a"]) -> Inexact[Array, "3 3"]:
        """Axes of the sensor as mounted in its nominal axes, for values of `angles` (may be complex)."""
        if self.mounting == "known":
            return _EYE
        if self.mounting == "angle":
            return turn(2, angles[0])
        return np.asarray(self.frame.R.T @ turn(2, angles[2]) @ turn(1, angles[1]) @ turn(0, angles[0]))

    def tilted(self, angles: Inexact[Array, "a"], gravity: Float[Array, "3"]) -> Inexact[Array, "3"]:
        """Gravity in the base frame for values of `angles` (may be complex), in [m/s^2].

        Turned by the vector tilt1 e1 + tilt2 e2, e1 and e2 normal to the gravity of the description.
        """
        if self.gravity == "known":
            return gravity
        first, second = level_axes(gravity)
        v = angles[-2] * first + angles[-1] * second
        square = v @ v
        # sin(x)/x and (1 - cos(x))/x^2 by series below 1e-3 rad: exact there, and smooth at zero.
        if abs(square) < 1e-6:
            a, b = 1 - square / 6, 0.5 - square / 24
        else:
            x = np.sqrt(square)
            a, b = np.sin(x) / x, (1 - np.cos(x)) / square
        turned = gravity + a * np.cross(v, gravity) + b * np.cross(v, np.cross(v, gravity))
        return np.asarray(turned)

    def place(self) -> Float[Array, "a"]:
        """Values of `angles` about which the equations are linearised, in [rad]."""
        return self.start() if self.at is None else np.array(self.at)

    def start(self) -> Float[Array, "a"]:
        """Values of `angles` as the description has them, in [rad]."""
        if self.mounting != "rpy":
            return np.zeros(len(self.angles))
        R = self.frame.R
        pitch = np.arcsin(np.clip(-R[2, 0], -1.0, 1.0))
        rpy = [np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])]
        return np.array([*rpy, *np.zeros(len(self.angles) - 3)])


def turn(axis: int, angle: complex) -> Inexact[Array, "3 3"]:
    """Rotation about a coordinate axis; the angle may be complex."""
    c, s = np.cos(angle), np.sin(angle)
    R = np.eye(3, dtype=np.result_type(angle, float))
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def level_axes(gravity: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """Two unit vectors normal to gravity: the base axes themselves where gravity is along an axis."""
    down = gravity / np.linalg.norm(gravity)
    k = (int(np.argmax(np.abs(down))) + 1) % 3
    first = _EYE[k] - down[k] * down
    first /= np.linalg.norm(first)
    second = np.cross(-down, first)
    return first, second


def run_bias(component: str, run: Run) -> str:
    """Name of the bias of one component in one segment of a log."""
    return f"Off_{component}_{run.log}_{run.number}"


_CHOICES = {"bias": BIASES, "mounting": MOUNTINGS, "gravity": GRAVITIES, "sign": SIGNS}
# `R`, `at` and `runs` are as results record them.
_KEYS = ("body", *FRAME_KEYS, "tool", *_CHOICES, "imu", "range", "R", "at", "runs")
_RANGE = ("force", "moment")


def read_force_sensor(entry: Entry) -> ForceSensor:
    """The mapping `force_sensor:` of an experiment."""
    scope = Scope()
    fields = {name: field for name, field in entry.fields(_KEYS).items() if field.value is not None}
    options: dict[str, Any] = {
        name: fields[name].choice(valid) for name, valid in _CHOICES.items() if name in fields
    }
    if "tool" in fields:
        options |= _tool(fields["tool"], scope)
    if "imu" in fields:
        options["imu"] = _imu(fields["imu"], scope)
    if "range" in fields:
        options["limits"] = _range(fields["range"], scope)
    if "body" in fields:
        options["body"] = fields["body"].text()
    elif options.get("imu") is None:
        raise entry.error(
            "'body' is missing",
            "name the body that carries the sensor, or set `imu: true` if an IMU measures its motion",
        )
    if "at" in fields:
        options["at"] = tuple(scope.number(component) for component in fields["at"].items())
    if "runs" in fields:
        options["runs"] = tuple(_run(run, scope) for run in fields["runs"].items())
    frame = {name: field for name, field in fields.items() if name in (*FRAME_KEYS, "R")}
    return placed(entry, ForceSensor, {"frame": read_frame(frame, scope), **options})


def _run(entry: Entry, scope: Scope) -> Run:
    log, number, start = entry.vector(lambda item: item)
    return Run(log.text(), number.count(), scope.number(start))


def _tool(entry: Entry, scope: Scope) -> dict[str, Any]:
    if not entry.is_mapping:
        return {"tool": entry.text()}
    fields = entry.fields(("name", "known", "prior"))
    options: dict[str, Any] = {"tool": fields["name"].text()} if "name" in fields else {}
    if "known" in fields:
        options["known"] = read_known(fields["known"], scope)
    if "prior" in fields:
        options["prior"] = read_prior(fields["prior"], scope, options.get("tool", "tool"))
    return options


def _imu(entry: Entry, scope: Scope) -> Frame | None:
    if not entry.is_mapping:
        return identity_frame() if entry.flag() else None
    return read_frame(entry.fields((*FRAME_KEYS, "R")), scope)


def _range(entry: Entry, scope: Scope) -> tuple[float, float]:
    fields = entry.fields(_RANGE, required=_RANGE)
    force, moment = (scope.positive(fields[name], "a range of", "give N and N m") for name in _RANGE)
    return force, moment


def sensor_document(sensor: ForceSensor) -> dict[str, Any]:
    """A plain tree that `read_force_sensor` reads back."""

    def pose(frame: Frame) -> dict[str, Any]:
        return {"R": frame.R.tolist(), "xyz": frame.p.tolist()}

    return {
        "body": sensor.body,
        **pose(sensor.frame),
        "tool": {"name": sensor.tool, "known": dict(sensor.known), "prior": dict(sensor.prior)},
        **{name: getattr(sensor, name) for name in _CHOICES},
        "imu": None if sensor.imu is None else pose(sensor.imu),
        "at": None if sensor.at is None else list(sensor.at),
        "runs": [[run.log, run.number, run.start] for run in sensor.runs],
        "range": None if sensor.limits is None else dict(zip(_RANGE, sensor.limits, strict=True)),
    }
