"""From an estimate of the load on a force sensor to the files of its compensation."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.cases.force_sensor import compensation
from dynid.cases.force_sensor.mounting import settled_sensor
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.force_sensor import COMPONENTS, ForceSensor, run_bias
from dynid.mechanism.frame import Frame
from dynid.mechanism.inertia import SYMBOLS, in_parent_frame, unpack
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import BASE, Mechanism
from dynid.problem import Problem

FILES = ("compensation.py", "compensation.json")
_ODD = re.compile(r"[^A-Za-z0-9_.+-]")
_KINDS = (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.FIXED)


def compensation_files(
    problem: Problem, chi: Float[Array, "p"], unseen: Sequence[str] = ()
) -> dict[str, str]:
    """Name -> text of the compensation's program and parameters; none for other problems.

    Args:
        problem: Of the sensor model.
        chi: Standard parameters of the estimate, shape (p,), SI.
        unseen: Parameters that the data do not determine: named in the file.
    """
    if problem.mechanism.force_sensor is None:
        return {}
    document = {**compensation_document(problem, chi), "not_identified": [_safe(name) for name in unseen]}
    try:
        text = json.dumps(document, indent=2, allow_nan=False)
    except ValueError:
        raise InputError(
            "the compensation cannot be written: a parameter is not finite",
            remedy="excite the sensor more, or give `known` values of the tool",
        ) from None
    return dict(zip(FILES, (inspect.getsource(compensation), text + "\n"), strict=True))


def compensation_document(problem: Problem, chi: Float[Array, "p"]) -> dict[str, Any]:
    """Parameters of the compensation as plain values (schema `dynid.compensation/1`)."""
    robot, sensor = problem.mechanism, problem.mechanism.force_sensor
    if sensor is None:
        raise TypeError("the robot has no force sensor, so there is nothing to compensate")
    names = (parameter.name for parameter in problem.parameters)
    values = dict(zip(names, chi.tolist(), strict=True))
    settled = settled_sensor(problem, chi)
    x = sensor.start() if settled is None else settled.place()
    as_mounted = Frame(np.asarray(sensor.frame.R @ sensor.mounting_rotation(x), float), sensor.frame.p)
    gravity = np.asarray(sensor.tilted(x, np.asarray(robot.gravity, float)), float)
    return {
        "schema": compensation.SCHEMA,
        "robot": _safe(robot.name),
        "sign": sensor.sign,
        "bias": _bias(sensor, values),
        "gravity": gravity.tolist(),
        "tool": {"name": _safe(sensor.tool), **_ten(values, sensor.tool)},
        "payloads": {
            _safe(name): _ten(values, name, payload.frame) for name, payload in robot.payloads.items()
        },
        "body": _safe(sensor.body),
        "sensor": _place(as_mounted),
        "imu": None if sensor.imu is None else _place(sensor.imu),
        "measured": [_safe(name) for name in robot.measured_positions],
        "chain": _chain(robot, sensor),
    }


def _safe(name: str) -> str:
    """Names go to programs of others: letters, digits and _ . + - only, the rest becomes _."""
    return _ODD.sub("_", name)


def _bias(sensor: ForceSensor, values: Mapping[str, float]) -> list[float]:
    """Bias of each component; of several runs their mean."""
    if sensor.bias == "none":
        return [0.0] * 6
    if sensor.bias == "constant":
        return [values.get(f"Off_{name}", 0.0) for name in COMPONENTS]
    return [float(np.mean([values[run_bias(name, run)] for run in sensor.runs])) for name in COMPONENTS]


def _ten(values: Mapping[str, float], body: str, frame: Frame | None = None) -> dict[str, Any]:
    """Mass, first moment and inertia about the sensor's origin, in its axes."""
    chi = np.array([values[f"{symbol}_{body}"] for symbol in SYMBOLS])
    if frame is not None:
        chi = in_parent_frame(chi, frame.R, frame.p)
    mass, moment, inertia = unpack(chi)
    return {"mass": mass, "first_moment": moment.tolist(), "inertia": inertia.tolist()}


def _place(frame: Frame) -> dict[str, Any]:
    return {"R": frame.R.tolist(), "p": frame.p.tolist()}


def _chain(robot: Mechanism, sensor: ForceSensor) -> list[dict[str, Any]] | None:
    """Joints between base and sensor, each by the measured positions; None where that is no plain chain."""
    if sensor.imu is not None or robot.is_closed:
        return None
    path: list[Joint] = []
    body = sensor.body
    while body != BASE:
        path.insert(0, robot.joint_of_body[body])
        body = path[0].parent
    if any(joint.kind not in _KINDS for joint in path):
        return None
    coordinates = coordinate_map(robot)
    return [_link(joint, robot, coordinates.positions, coordinates.offset) for joint in path]


def _link(
    joint: Joint, robot: Mechanism, positions: Float[Array, "q m"], offset: Float[Array, "q"]
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": _safe(joint.name),
        "kind": str(joint.kind),
        "placement": _place(joint.placement),
        "body": _place(joint.body),
    }
    if joint.kind is not JointKind.FIXED:
        row = robot.positions.index(joint.name)
        made |= {"axis": joint.axes[0].tolist(), "of": positions[row].tolist(), "offset": float(offset[row])}
    return made
