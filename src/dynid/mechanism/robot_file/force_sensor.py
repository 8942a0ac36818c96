"""`force_sensor:` of an experiment: read from a file, a script or a result, and written to a result."""

from __future__ import annotations

from typing import Any

from dynid.common.entry import Entry, placed
from dynid.mechanism.force_sensor import BIASES, GRAVITIES, MOUNTINGS, SIGNS, ForceSensor, Run
from dynid.mechanism.frame import Frame, identity_frame
from dynid.mechanism.robot_file.bodies import FRAME_KEYS, read_frame, read_known, read_prior
from dynid.mechanism.robot_file.scope import Scope

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
    return placed(entry, ForceSensor, {"frame": read_frame(entry, frame, scope), **options})


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
    return read_frame(entry, entry.fields((*FRAME_KEYS, "R")), scope)


def _range(entry: Entry, scope: Scope) -> tuple[float, float]:
    fields = entry.fields(_RANGE, required=_RANGE)
    force, moment = (scope.number(fields[name]) for name in _RANGE)
    for name, value in (("force", force), ("moment", moment)):
        if not value > 0:
            raise fields[name].error(f"a range of {value:g} is not positive", "give N and N m")
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
