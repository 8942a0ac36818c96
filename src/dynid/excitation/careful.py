"""Careful limits of a robot whose description has none, or only placeholders.

Converters write the same large numbers for every joint of a URDF, and a URDF has no acceleration limit. A
motion within such limits may be far too fast for the real robot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.excitation.series import speed_bound, symmetric_range, turning_range
from dynid.mechanism.load import how_to_add
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import effort_unit, parameter_table
from dynid.regressor.regressor import tree_matrix
from dynid.report.numbers import number
from dynid.robots.truth import Truth, true_values


@dataclass(frozen=True)
class _Scale:
    """What no real joint of a kind exceeds, and what is taken instead, in [rad] or [m] and [s]."""

    unit: str
    speed: float
    careful_speed: float
    acceleration: float
    careful_acceleration: float
    width: float
    careful_width: float


_TURNING = _Scale("rad", 40.0, 1.0, 2000.0, 10.0, 4.0 * np.pi + 0.1, np.pi)
_SLIDING = _Scale("m", 10.0, 0.25, 500.0, 2.5, 100.0, 1.0)
_RISE = 0.5  # s: from rest to full speed, where no acceleration is given
_EFFORT = 5000.0  # N m: the same large limit for every motor is no data sheet's
_MOST_EFFORT = 1e5  # N m or N
_STATES, _SEED = 256, 20261118
_LEAST = 0.05  # of the median effort
_MANY = 4  # names that are listed


def careful_limits(mechanism: Mechanism) -> Mechanism:
    """The robot with careful limits of speed, acceleration and range where its own are not plausible.

    An acceleration limit is added only to joints of a robot without loops; the joints of others follow.
    """
    limits = {name: dict(given) for name, given in mechanism.limits.items()}
    for name, key, _, careful in _findings(mechanism):
        limits[name][key] = careful
    return replace(mechanism, limits=limits)


def effort_placeholders(mechanism: Mechanism) -> tuple[str, ...]:
    """Motors whose effort limits are not those of real motors: huge, or large and the same for all."""
    given = {
        actuator.name: max(abs(x) for x in symmetric_range(mechanism.limits[actuator.name]["tau"]))
        for actuator in mechanism.actuators
        if "tau" in mechanism.limits.get(actuator.name, {})
    }
    turns = any(effort_unit(mechanism, name) == "N m" for name in given)
    alike = turns and len(given) > 1 and len(set(given.values())) == 1
    return tuple(name for name, value in given.items() if value >= (_EFFORT if alike else _MOST_EFFORT))


def limit_notices(mechanism: Mechanism) -> tuple[Notice, ...]:
    """What `careful_limits` replaces, and effort limits that limit nothing; `mechanism` as described."""
    findings = list(_findings(mechanism))
    wrong = [finding for finding in findings if finding[2] is not None]
    efforts = effort_placeholders(mechanism)
    if not findings and not efforts:
        return ()
    first = (wrong or findings)[0][0] if findings else efforts[0]
    keys = f"limits: {{{first}: {{q: [-2, 2], dq: 2, ddq: 10, tau: 80}}, ...}}"
    remedy = f"{how_to_add(mechanism, keys)}, with the values of the data sheet"
    notices = []
    if wrong or efforts:
        said = [*_sentences(wrong, mechanism), *_effort_sentence(mechanism, efforts)]
        notices.append(notice("limits-implausible", found="; ".join(said), remedy=remedy))
    missing = [finding for finding in findings if finding[2] is None]
    if missing:
        sizes = [careful for *_, careful in missing]
        least, most = number(min(sizes), 3), number(max(sizes), 3)
        shown = least if least == most else f"{least} to {most}"
        units = sorted({f"{_scale(mechanism, name).unit}/s^2" for name, *_ in missing}, reverse=True)
        notices.append(
            notice(
                "acceleration-assumed",
                names=_names(mechanism, [name for name, *_ in missing]),
                shown=f"{shown} {' or '.join(units)}",
                remedy="" if notices else remedy,
            )
        )
    return tuple(notices)


def needed_efforts(mechanism: Mechanism) -> Float[Array, "a"] | None:
    """Largest efforts of the priors over random states within careful limits; None: closed, or no priors.

    No motor gets less than a twentieth of the median.
    """
    robot = careful_limits(mechanism)
    try:
        values, _ = true_values(robot, Truth("prior"))
    except InputError:
        return None
    if robot.is_closed or set(robot.coordinates) != set(robot.positions):
        return None
    bounds = [robot.limits.get(name, {}) for name in robot.coordinates]
    unit = np.random.default_rng(_SEED).uniform(-1.0, 1.0, (3, _STATES, len(bounds)))
    low, high = np.array([symmetric_range(given.get("q", np.pi)) for given in bounds]).T
    dq, ddq = (np.array([speed_bound(given.get(key, 1.0)) for given in bounds]) for key in ("dq", "ddq"))
    q = 0.5 * (low + high) + 0.5 * (high - low) * unit[0]
    chi = np.array([values[parameter.name] for parameter in parameter_table(robot)])
    efforts = tree_matrix(robot, q, dq * unit[1], ddq * unit[2]) @ chi
    largest = np.abs(efforts @ np.linalg.pinv(robot.actuator_map)).max(axis=0)
    floor = _LEAST * float(np.median(largest))
    return np.maximum(largest, floor) if floor > 0.0 else None


def _findings(mechanism: Mechanism) -> Iterator[tuple[str, str, Any, Any]]:
    """Joint, kind of limit, the limit as given (None: missing), and the careful one."""
    scalar = {name for name in mechanism.positions if name in mechanism.coordinates}
    for name, given in mechanism.limits.items():
        if name not in scalar:
            continue
        scale = _scale(mechanism, name)
        speed = speed_bound(given.get("dq", np.inf))
        if np.isfinite(speed) and speed > scale.speed:
            yield name, "dq", given["dq"], scale.careful_speed
            speed = scale.careful_speed
        acceleration = speed_bound(given.get("ddq", np.inf))
        usual = min(speed / _RISE, scale.careful_acceleration)
        if np.isfinite(acceleration) and acceleration > scale.acceleration:
            yield name, "ddq", given["ddq"], usual
        elif "ddq" not in given and np.isfinite(speed) and not mechanism.is_closed:
            yield name, "ddq", None, usual
        if "q" in given:
            low, high = symmetric_range(given["q"])
            if high - low > scale.width:
                half, middle = 0.5 * scale.careful_width, 0.5 * (low + high)
                yield name, "q", given["q"], (middle - half, middle + half)
        elif (half_turn := turning_range(mechanism, name)) is not None:
            yield name, "q", np.inf, half_turn


def _scale(mechanism: Mechanism, name: str) -> _Scale:
    return _TURNING if effort_unit(mechanism, name) == "N m" else _SLIDING


_WORDS: Mapping[str, tuple[str, str]] = {
    "q": ("range", ""),
    "dq": ("speed", "/s"),
    "ddq": ("acceleration", "/s^2"),
}


def _sentences(wrong: list[tuple[str, str, Any, Any]], mechanism: Mechanism) -> Iterator[str]:
    """Each kind of limit: the joints, what is given, and what is used."""
    alike: dict[tuple[str, str, str, str], list[str]] = {}
    for name, key, given, careful in wrong:
        unit = _scale(mechanism, name).unit + _WORDS[key][1]
        alike.setdefault((key, _shown(given), _shown(careful), unit), []).append(name)
    for (key, given, careful, unit), names in alike.items():
        given = f"{given} {unit}" if given[-1].isdigit() else given
        yield f"{_WORDS[key][0]} {given} of {_names(mechanism, names)} ({careful} {unit} is used)"


def _effort_sentence(mechanism: Mechanism, names: tuple[str, ...]) -> Iterator[str]:
    """The largest effort limit that limits nothing."""
    if names:
        most = max(symmetric_range(mechanism.limits[name]["tau"])[1] for name in names)
        unit = effort_unit(mechanism, names[0])
        yield f"effort {number(most, 3)} {unit} of {_names(mechanism, names)} (efforts are not limited)"


def _names(mechanism: Mechanism, names: Sequence[str]) -> str:
    if len(names) > 1 and set(names) >= set(mechanism.limits) - {"cables", "singularity"}:
        return "all joints"
    return ", ".join(names[:_MANY]) + (f" and {len(names) - _MANY} others" if len(names) > _MANY else "")


def _shown(bound: float | tuple[float, float]) -> str:
    if bound == np.inf:
        return "without end"
    if isinstance(bound, tuple):
        return f"{number(bound[0], 3)} to {number(bound[1], 3)}"
    return number(bound, 3)
