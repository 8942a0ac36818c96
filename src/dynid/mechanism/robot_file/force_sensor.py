"""`force_sensor:` of an experiment: from its file, from a script, and to and from a result's record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.common.entry import Entry
from dynid.common.errors import InputError, nearest
from dynid.mechanism.force_sensor import BIASES, GRAVITIES, MOUNTINGS, SIGNS, ForceSensor, Run
from dynid.mechanism.frame import Frame, identity_frame, rpy_matrix
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import BASE
from dynid.mechanism.robot_file.bodies import FRAME_KEYS, read_frame, read_known, read_prior
from dynid.mechanism.robot_file.scope import Scope

_CHOICES = {"bias": BIASES, "mounting": MOUNTINGS, "gravity": GRAVITIES, "sign": SIGNS}
_KEYS = ("body", *FRAME_KEYS, "tool", *_CHOICES, "imu", "range")
_RANGE = ("force", "moment")


def read_force_sensor(entry: Entry, scope: Scope) -> ForceSensor:
    """The mapping `force_sensor:` of an experiment file."""
    fields = entry.fields(_KEYS)
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
    frame = read_frame(entry, {name: one for name, one in fields.items() if name in FRAME_KEYS}, scope)
    try:
        return ForceSensor(frame=frame, **options)
    except InputError as error:
        raise entry.error(error.text, error.remedy or "") from None


def _tool(entry: Entry, scope: Scope) -> dict[str, Any]:
    if not entry.is_mapping:
        return {"tool": entry.text()}
    fields = entry.fields(("name", "known", "prior"))
    found: dict[str, Any] = {"tool": fields["name"].text()} if "name" in fields else {}
    if "known" in fields:
        found["known"] = read_known(fields["known"], scope)
    if "prior" in fields:
        found["prior"] = read_prior(fields["prior"], scope, found.get("tool", "tool"))
    return found


def _imu(entry: Entry, scope: Scope) -> Frame | None:
    if not entry.is_mapping:
        return identity_frame() if entry.flag() else None
    return read_frame(entry, entry.fields(FRAME_KEYS), scope)


def _range(entry: Entry, scope: Scope) -> tuple[float, float]:
    fields = entry.fields(_RANGE, required=_RANGE)
    force, moment = (scope.number(fields[name]) for name in _RANGE)
    for name, value in (("force", force), ("moment", moment)):
        if not value > 0:
            raise fields[name].error(f"a range of {value:g} is not positive", "give N and N m")
    return force, moment


def sensor_from(options: Mapping[str, Any]) -> ForceSensor:
    """A sensor from plain values, as a script gives them or a result recorded them."""
    valid = (*_KEYS, "R", "runs", "at")
    for name in options:
        if name not in valid:
            raise InputError(
                f"force_sensor has no '{name}'" + nearest(name, valid), remedy=f"use {', '.join(_KEYS)}"
            )
    tool = options.get("tool", "tool")
    own: Mapping[str, Any] = tool if isinstance(tool, Mapping) else {"name": tool}
    limits = options.get("range")
    imu = options.get("imu")
    if imu is True:
        imu = identity_frame()
    elif isinstance(imu, Mapping):
        imu = _frame(imu)
    elif imu is not None and not isinstance(imu, Frame):
        imu = None
    chosen: dict[str, Any] = {name: str(options[name]) for name in _CHOICES if name in options}
    return ForceSensor(
        body=str(options.get("body", BASE)),
        frame=_frame(options),
        tool=str(own.get("name", "tool")),
        known=_ten(own.get("known", {})),
        prior=_ten(own.get("prior", {})),
        imu=imu,
        limits=None if limits is None else (float(limits["force"]), float(limits["moment"])),
        runs=tuple(
            Run(str(log), int(number), float(start)) for log, number, start in options.get("runs", ())
        ),
        at=None if options.get("at") is None else tuple(float(x) for x in options["at"]),
        **chosen,
    )


def sensor_document(sensor: ForceSensor) -> dict[str, Any]:
    """Plain values that `sensor_from` reads back."""

    def placed(frame: Frame) -> dict[str, Any]:
        return {"R": frame.R.tolist(), "xyz": frame.p.tolist()}

    return {
        "body": sensor.body,
        **placed(sensor.frame),
        "tool": {"name": sensor.tool, "known": dict(sensor.known), "prior": dict(sensor.prior)},
        **{name: getattr(sensor, name) for name in _CHOICES},
        "imu": None if sensor.imu is None else placed(sensor.imu),
        "at": None if sensor.at is None else list(sensor.at),
        "runs": [[run.log, run.number, run.start] for run in sensor.runs],
        "range": None if sensor.limits is None else dict(zip(_RANGE, sensor.limits, strict=True)),
    }


def _frame(options: Mapping[str, Any]) -> Frame:
    p = np.array(options.get("xyz", (0.0, 0.0, 0.0)), float)
    if "R" in options:
        return Frame(np.array(options["R"], float), p)
    roll, pitch, yaw = (float(angle) for angle in options.get("rpy", (0.0, 0.0, 0.0)))
    return Frame(rpy_matrix((roll, pitch, yaw)), p)


def _ten(given: Mapping[str, float]) -> dict[str, float]:
    """Some of the ten; `com` [m] together with M gives the first moments."""
    made = {name: float(value) for name, value in given.items() if name != "com"}
    for name in made:
        if name not in SYMBOLS:
            raise InputError(f"a body has no '{name}'" + nearest(name, SYMBOLS), place="force_sensor.tool")
    if "com" in given:
        if "M" not in made:
            raise InputError("'com' needs M", place="force_sensor.tool", remedy="give M and com")
        com: Any = given["com"]
        made |= {s: made["M"] * float(x) for s, x in zip(("MX", "MY", "MZ"), com, strict=True)}
    return made
