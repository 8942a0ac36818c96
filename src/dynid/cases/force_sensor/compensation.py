"""Contact wrench from a force/torque sensor: its reading less bias, weight and inertia of the tool.

    contact = what the environment exerts on the tool, at the origin and in the axes of the sensor

This file needs nothing but Python: `dynid identify` writes a copy of it beside `compensation.json`.

    from compensation import compensate_joints, read
    parameters = read("compensation.json")
    contact = compensate_joints(parameters, measured, q, dq, ddq)

Vectors are lists of three numbers, wrenches of six (force [N], then moment [N m]), rotations three rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SCHEMA = "dynid.compensation/1"
Vector = Sequence[float]
Matrix = Sequence[Sequence[float]]


def read(file: str | Path = "compensation.json") -> dict[str, Any]:
    """The parameters that were written beside this file."""
    document = json.loads(Path(file).read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"{file} does not have the schema {SCHEMA}")
    return document


def compensate(
    parameters: Mapping[str, Any],
    measured: Vector,
    R: Matrix,
    omega: Vector,
    domega: Vector,
    acceleration: Vector,
    bias: Vector | None = None,
    payloads: Sequence[str] = (),
) -> list[float]:
    """Contact wrench for a known motion of the sensor.

    Args:
        parameters: As `read` gives them.
        measured: Reading of the sensor.
        R: Its axes in the base frame (columns are the axes).
        omega, domega: Angular velocity [rad/s] and acceleration [rad/s^2], in axes of the sensor.
        acceleration: Of its origin, in the base frame, without gravity, in [m/s^2].
        bias: A fresher bias than the identified one.
        payloads: Identified payloads that are on the tool.
    """
    felt = [a - g for a, g in zip(acceleration, parameters["gravity"], strict=True)]
    specific = [_dot(column, felt) for column in zip(*R, strict=True)]
    return compensate_specific(parameters, measured, omega, domega, specific, bias, payloads)


def compensate_joints(
    parameters: Mapping[str, Any],
    measured: Vector,
    q: Vector,
    dq: Vector,
    ddq: Vector,
    bias: Vector | None = None,
    payloads: Sequence[str] = (),
) -> list[float]:
    """Contact wrench from measured joints, in the order of the log: q [rad, m] and its two rates."""
    R, omega, domega, acceleration = sensor_motion(parameters, q, dq, ddq)
    return compensate(parameters, measured, R, omega, domega, acceleration, bias, payloads)


def compensate_imu(
    parameters: Mapping[str, Any],
    measured: Vector,
    omega: Vector,
    domega: Vector,
    specific: Vector,
    bias: Vector | None = None,
    payloads: Sequence[str] = (),
) -> list[float]:
    """Contact wrench from an inertial unit: angular velocity, its rate, and specific force in its axes."""
    imu = parameters["imu"]
    if imu is None:
        raise ValueError("these parameters were identified without an IMU: its pose is not known")
    omega, domega, specific = (_apply(imu["R"], v) for v in (omega, domega, specific))
    arm = [-x for x in imu["p"]]
    at_origin = _add(specific, _cross(domega, arm), _cross(omega, _cross(omega, arm)))
    return compensate_specific(parameters, measured, omega, domega, at_origin, bias, payloads)


def compensate_specific(
    parameters: Mapping[str, Any],
    measured: Vector,
    omega: Vector,
    domega: Vector,
    specific: Vector,
    bias: Vector | None = None,
    payloads: Sequence[str] = (),
) -> list[float]:
    """Contact wrench from the acceleration of the sensor's origin minus gravity, all in its own axes."""
    needed = needed_wrench(parameters, omega, domega, specific, payloads)
    known = parameters["bias"] if bias is None else bias
    sign = -1.0 if parameters["sign"] == "load" else 1.0
    # measured = sign (needed - contact) + bias
    return [n - sign * (m - b) for n, m, b in zip(needed, measured, known, strict=True)]


def needed_wrench(
    parameters: Mapping[str, Any],
    omega: Vector,
    domega: Vector,
    specific: Vector,
    payloads: Sequence[str] = (),
) -> list[float]:
    """What moves the tool so (Newton-Euler about the sensor's origin), in axes of the sensor."""
    total = [0.0] * 6
    for body in (parameters["tool"], *(parameters["payloads"][name] for name in payloads)):
        mass, moment, inertia = body["mass"], body["first_moment"], body["inertia"]
        swing = _add(_cross(domega, moment), _cross(omega, _cross(omega, moment)))
        force = [mass * a + s for a, s in zip(specific, swing, strict=True)]
        spin = _add(_apply(inertia, domega), _cross(omega, _apply(inertia, omega)))
        turn = _add(spin, _cross(moment, specific))
        total = [t + x for t, x in zip(total, [*force, *turn], strict=True)]
    return total


def sensor_motion(
    parameters: Mapping[str, Any], q: Vector, dq: Vector, ddq: Vector
) -> tuple[list[list[float]], list[float], list[float], list[float]]:
    """Axes of the sensor in the base frame; omega and domega in its axes; acceleration of its origin
    in the base frame, from measured joints along the chain that carries it."""
    if parameters["chain"] is None:
        raise ValueError("the joints that carry the sensor are not a serial chain: give its motion instead")
    R = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    omega, domega, acceleration = [0.0] * 3, [0.0] * 3, [0.0] * 3  # base frame
    for joint in parameters["chain"]:
        place, kind = joint["placement"], joint["kind"]
        acceleration = _moved(R, omega, domega, acceleration, place["p"])
        R = _product(R, place["R"])
        if kind != "fixed":
            at, rate, second = (
                sum(k * x for k, x in zip(joint["of"], signal, strict=True)) for signal in (q, dq, ddq)
            )
            at += joint["offset"]
            axis = _apply(R, joint["axis"])
            if kind == "revolute":
                domega = _add(domega, [second * x for x in axis], _cross(omega, [rate * x for x in axis]))
                omega = _add(omega, [rate * x for x in axis])
                R = _product(R, _turned(joint["axis"], at))
            else:
                acceleration = _moved(R, omega, domega, acceleration, [at * x for x in joint["axis"]])
                coriolis = _cross(omega, [2.0 * rate * x for x in axis])
                acceleration = _add(acceleration, [second * x for x in axis], coriolis)
        body = joint["body"]
        acceleration = _moved(R, omega, domega, acceleration, body["p"])
        R = _product(R, body["R"])
    place = parameters["sensor"]
    acceleration = _moved(R, omega, domega, acceleration, place["p"])
    R = _product(R, place["R"])
    back = [list(column) for column in zip(*R, strict=True)]
    return R, _apply(back, omega), _apply(back, domega), acceleration


def _moved(R: Matrix, omega: Vector, domega: Vector, acceleration: Vector, p: Vector) -> list[float]:
    """Acceleration of a point p (in axes R) of the same body."""
    arm = _apply(R, p)
    return _add(acceleration, _cross(domega, arm), _cross(omega, _cross(omega, arm)))


def _turned(axis: Vector, angle: float) -> list[list[float]]:
    """Rotation about a unit axis."""
    c, s = math.cos(angle), math.sin(angle)
    x, y, z = axis
    k = 1.0 - c
    return [
        [c + k * x * x, k * x * y - s * z, k * x * z + s * y],
        [k * x * y + s * z, c + k * y * y, k * y * z - s * x],
        [k * x * z - s * y, k * y * z + s * x, c + k * z * z],
    ]


def _dot(a: Vector, b: Vector) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def _apply(M: Matrix, v: Vector) -> list[float]:
    return [_dot(row, v) for row in M]


def _product(A: Matrix, B: Matrix) -> list[list[float]]:
    columns = list(zip(*B, strict=True))
    return [[_dot(row, column) for column in columns] for row in A]


def _cross(a: Vector, b: Vector) -> list[float]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _add(*vectors: Vector) -> list[float]:
    return [math.fsum(parts) for parts in zip(*vectors, strict=True)]
