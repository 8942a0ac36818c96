"""Poses in an MJCF: `pos` with one of quat, axisangle, xyaxes, zaxis or euler."""

from __future__ import annotations

import math

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.notices import notice
from dynid.mechanism.frame import (
    ROUNDING,
    SNAP_RANGE,
    Frame,
    frame_from_axes,
    is_snapping,
    last_digit,
    rotation,
    rotation_of,
    snap_angle,
    unit_vector,
)
from dynid.mechanism.inertia import skew
from dynid.mechanism.mjcf.file import ORIENTATIONS, Settings
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.xml_elements import Element

_SILENT = 1e-9
_COUNTS = {"quat": 4, "axisangle": 4, "xyaxes": 6, "zaxis": 3, "euler": 3}


def read_pose(
    element: Element, owner: str, settings: Settings, scope: Scope, named: str | None = None
) -> Frame:
    """Position and orientation of an element in the frame around it.

    Args:
        owner: The element in messages, e.g. "body 'arm'".
        named: Lengths get the names x_<named> ...; None leaves them nameless.
    """
    p = read_point(element, "pos", owner, scope, named)
    return Frame(read_rotation(element, owner, settings, scope), p)


def read_point(
    element: Element, key: str, owner: str, scope: Scope, named: str | None = None, prefix: str = ""
) -> Float[Array, "3"]:
    """A point [m], zero when it is not given; lengths named <prefix>x_<named> ..."""
    numbers = element.numbers(key, owner) or [(0.0, "0")] * 3
    if named is None:
        return np.array([value for value, _ in numbers])
    return np.array(
        [
            scope.bare_length(value, f"{prefix}{axis}_{named}")
            for axis, (value, _) in zip("xyz", numbers, strict=True)
        ]
    )


def read_rotation(element: Element, owner: str, settings: Settings, scope: Scope) -> Float[Array, "3 3"]:
    """The rotation of an element; two notations at once are refused."""
    given = [key for key in ORIENTATIONS if key in element.attributes]
    if not given:
        return np.eye(3)
    if len(given) > 1:
        raise element.error(f"{owner} has two orientations: {', '.join(given)}", "keep one")
    (key,) = given
    count = _COUNTS[key]
    numbers = element.numbers(key, owner, range(count, count + 1)) or []
    values = np.array([value for value, _ in numbers])
    try:
        if key == "euler":
            return _euler(element, owner, settings, scope, numbers)
        if key == "axisangle":
            turn = read_angle(element, owner, settings, scope, numbers[3])
            return axis_rotation(unit_vector(values[:3]), turn)
        if key == "zaxis":
            return _to_z(unit_vector(values))
        if key == "xyaxes":
            return _from_axes(element, owner, scope, values)
        return quaternion_matrix(values, max(last_digit(word) for _, word in numbers), element, owner, scope)
    except ValueError:
        raise element.error(
            f'{owner}: {key}="{element.attributes[key]}" gives no direction', "give a nonzero value"
        ) from None


def read_angle(
    element: Element, owner: str, settings: Settings, scope: Scope, number: tuple[float, str]
) -> float:
    """An angle [rad]; rounded multiples of pi/12 become exact, as in the other readers."""
    value, text = number
    if settings.degrees:
        return snap_angle(math.radians(value))
    return scope.written_angle(value, text, f"{element.place}, {owner}")


def axis_rotation(axis: Float[Array, "3"], angle: float) -> Float[Array, "3 3"]:
    """Rotation by `angle` [rad] about a unit vector; exact at quarter turns about coordinate axes."""
    k = int(np.argmax(np.abs(axis)))
    if abs(axis[k]) == 1.0:
        return rotation(k, float(np.sign(axis[k])) * angle)
    s = skew(axis)
    return np.asarray(np.eye(3) + math.sin(angle) * s + (1.0 - math.cos(angle)) * (s @ s))


def quaternion_matrix(
    quaternion: Float[Array, "4"], digit: float, element: Element, owner: str, scope: Scope
) -> Float[Array, "3 3"]:
    """Rotation of a quaternion (w x y z) of any length; a rounded right angle becomes exact.

    Args:
        digit: One unit of the last digit with which it was written: 0.7071 is sqrt(1/2), 0.708 is not.
    """
    norm = float(np.linalg.norm(quaternion))
    if not norm > 0.0:
        raise ValueError("a zero quaternion is not a rotation")
    q = np.asarray(quaternion, float) / norm
    near = _near(q, digit) if is_snapping() else q
    change = float(np.abs(q - near).max())
    if change > _SILENT:
        scope.notices.append(notice("snapped-angle", "quaternion", place=element.place, owner=owner))
    return tidy(rotation_of(near))


def _near(q: Float[Array, "4"], digit: float) -> Float[Array, "4"]:
    """The unit quaternion that `q` rounds: a multiple of 15 degrees about a coordinate
    axis, or one made of 0, 1/2, sqrt(1/2) and 1; else `q`."""
    allowed = max(_SILENT, min(digit, SNAP_RANGE / 2.0))
    exact = np.array([0.0, 0.5, math.sqrt(0.5), 1.0])
    about = np.flatnonzero(np.abs(q[1:]) > _SILENT)
    if len(about) == 1:
        k = int(about[0]) + 1
        step = math.pi / 24.0  # half of 15 degrees
        half = round(math.atan2(q[k], q[0]) / step) * step
        target = np.zeros(4)
        target[0], target[k] = math.cos(half), math.sin(half)
    else:
        i = np.argmin(np.abs(np.abs(q)[:, None] - exact), axis=1)
        target = np.copysign(exact[i], q)
    # Zero is written exactly, so small values are intended.
    fits = np.abs(q - target) <= np.where(np.abs(target) < _SILENT, _SILENT, allowed)
    return target if bool(np.all(fits)) and abs(float(target @ target) - 1.0) < ROUNDING else q


def tidy(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Without the rounding errors that products leave near 0 and 1."""
    x = np.where(np.abs(x) < ROUNDING, 0.0, x)
    return np.where(np.abs(np.abs(x) - 1.0) < ROUNDING, np.sign(x), x)


def tidy_frame(frame: Frame) -> Frame:
    """A frame that was computed from others, without their rounding."""
    return Frame(tidy(frame.R), np.where(np.abs(frame.p) < ROUNDING, 0.0, frame.p))


def _euler(
    element: Element, owner: str, settings: Settings, scope: Scope, numbers: list[tuple[float, str]]
) -> Float[Array, "3 3"]:
    R = np.eye(3)
    for letter, number in zip(settings.eulerseq, numbers, strict=True):
        turn = rotation("xyz".index(letter.lower()), read_angle(element, owner, settings, scope, number))
        R = R @ turn if letter.islower() else turn @ R
    return tidy(R)


def _from_axes(element: Element, owner: str, scope: Scope, values: Float[Array, "6"]) -> Float[Array, "3 3"]:
    """X as given, y made orthogonal to it, as MuJoCo does, for any angle between them."""
    x, y = unit_vector(values[:3]), unit_vector(values[3:])
    if abs(float(x @ y)) > 1e-3:
        scope.notices.append(notice("orthogonalised-axes", place=element.place, owner=owner))
    return tidy(frame_from_axes(np.zeros(3), {0: x, 1: y}, tolerance=1.0).R)


def _to_z(z: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """The smallest rotation that turns z into a direction; about x where that is half a turn."""
    sine = math.hypot(z[0], z[1])
    if sine < ROUNDING:
        return np.eye(3) if z[2] > 0 else np.diag([1.0, -1.0, -1.0])
    axis = np.array([-z[1], z[0], 0.0]) / sine
    return tidy(axis_rotation(unit_vector(axis), math.atan2(sine, z[2])))
