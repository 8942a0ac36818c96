"""Angles of a force sensor as reported: the point of linearisation plus the estimated change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.force_sensor import ForceSensor
from dynid.problem import Problem
from dynid.statistics.assemble import EstimateParts


def settled_sensor(problem: Problem, chi: Float[Array, "p"]) -> ForceSensor | None:
    """The sensor with the angles of an estimate; None where there is none.

    Args:
        chi: Standard parameters as the equations have them, shape (p,), SI: angles as corrections.
    """
    sensor = problem.mechanism.force_sensor
    if sensor is None or not sensor.angles:
        return sensor
    names = [parameter.name for parameter in problem.parameters]
    more = np.array([chi[names.index(name)] for name in sensor.angles])
    return replace(sensor, at=tuple((sensor.place() + more).tolist()))


def shown_parts(problem: Problem, parts: EstimateParts) -> EstimateParts:
    """The parameters with whole angles instead of corrections."""
    places = _places(problem)
    if not places:
        return parts
    shown = []
    for parameter in parts.parameters:
        at = places.get(parameter.name)
        if at is not None:
            value = parameter.value + at
            percent = (
                None if parameter.sigma is None or value == 0.0 else 100.0 * parameter.sigma / abs(value)
            )
            interval = None if parameter.ci95 is None else (parameter.ci95[0] + at, parameter.ci95[1] + at)
            parameter = replace(parameter, value=value, sigma_rel_percent=percent, ci95=interval)
        shown.append(parameter)
    return replace(parts, parameters=tuple(shown))


def shown_entries(problem: Problem, entries: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """The table of a standard set with whole angles."""
    places = _places(problem)
    return tuple(
        {**entry, "value": entry["value"] + places.get(str(entry["name"]), 0.0)} for entry in entries
    )


def _places(problem: Problem) -> dict[str, float]:
    sensor = problem.mechanism.force_sensor
    if sensor is None or not sensor.angles:
        return {}
    return dict(zip(sensor.angles, sensor.place().tolist(), strict=True))
