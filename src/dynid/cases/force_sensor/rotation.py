"""Whether a force sensor was rotated enough to identify mass, centre of mass and inertia of its load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.cases.force_sensor.samples import SensorSamples, sensor_samples
from dynid.checks.check import Finished
from dynid.common.notices import Notice, notice
from dynid.mechanism.inertia import SYMBOLS
from dynid.problem import Problem
from dynid.statistics.estimate import ParameterEstimate

_WEAK_MASS, _WEAK_COM, _WEAK_INERTIA = 5.0, 5e-3, 30.0  # %, m, %
_TURNED = 30.0  # degrees
_FAST = 2.0, 5.0  # rad/s, rad/s^2


def rotation(finished: Finished) -> tuple[Notice, ...]:
    """Which of mass, centre of mass and inertia the motion did not excite enough, and why."""
    parts = finished.fit.parts
    unseen = list(parts.not_identifiable)
    return check_rotation(finished.fit.problem, parts.parameters, unseen)


def check_rotation(
    problem: Problem, parameters: Sequence[ParameterEstimate], unseen: Sequence[str]
) -> tuple[Notice, ...]:
    """Which of mass, centre of mass and inertia the motion did not excite enough, and why.

    Args:
        problem: Of the sensor model.
        parameters: Of the estimate.
        unseen: Names of parameters that the data do not determine.
    """
    sensor = problem.mechanism.force_sensor
    if sensor is None:
        return ()
    by_name = {parameter.name: parameter for parameter in parameters}
    lost = {name.removesuffix("_R") for name in unseen}
    weak = [
        (kind, names)
        for body in problem.loaded_bodies
        for kind, names in _weak(body, by_name, lost).items()
        if names
    ]
    if not weak:
        return ()
    samples = sensor_samples(problem)
    shown = [f"{', '.join(names)}: {why}" for kind, names in weak if (why := _why(kind, samples))]
    if not shown:
        return ()
    return (notice("rotation-little", shown="; ".join(shown)),)


def _weak(body: str, by_name: dict[str, ParameterEstimate], lost: set[str]) -> dict[str, list[str]]:
    """Parameters that are lost or known badly: mass, centre of mass, inertia."""
    mass = by_name.get(f"M_{body}")
    kg = abs(mass.value) if mass is not None and mass.value else 1.0
    weak: dict[str, list[str]] = {"mass": [], "com": [], "inertia": []}
    for symbol in SYMBOLS:
        name = f"{symbol}_{body}"
        kind = "mass" if symbol == "M" else "com" if symbol[0] == "M" else "inertia"
        estimate = by_name.get(name)
        if estimate is None or estimate.sigma is None:
            if name in lost or f"{name}_R" in by_name:
                weak[kind].append(name)
        elif kind == "com":
            if estimate.sigma / kg > _WEAK_COM:
                weak[kind].append(name)
        elif symbol in ("M", "XX", "YY", "ZZ"):
            most = _WEAK_MASS if kind == "mass" else _WEAK_INERTIA
            if estimate.sigma_rel_percent is None or estimate.sigma_rel_percent > most:
                weak[kind].append(name)
    return weak


def _why(kind: str, samples: SensorSamples) -> str:
    """How small the rotation was; empty where it was large enough, so that the cause is another one."""
    a = samples.motion.dV[:, :3]
    middle = np.mean(a, axis=0)
    cosine = a @ middle / np.maximum(np.linalg.norm(a, axis=1) * np.linalg.norm(middle), 1e-12)
    away = float(np.rad2deg(np.percentile(np.arccos(np.clip(cosine, -1, 1)), 95)))
    if kind != "inertia" and away > _TURNED:
        return ""
    turned = f"the direction of gravity in the sensor changes by at most {away:.1f} degrees from its mean"
    if kind == "mass":
        return f"weight and bias are separated by rotation only, and {turned}"
    if kind == "com":
        return f"it acts through the gravity moment, which changes with rotation only, and {turned}"
    speed = float(np.percentile(np.linalg.norm(samples.motion.omega, axis=1), 95))
    alpha = float(np.percentile(np.linalg.norm(samples.motion.dV[:, 3:], axis=1), 95))
    if speed > _FAST[0] or alpha > _FAST[1]:
        return ""
    return f"it acts in rotation only, which stays below {speed:.2g} rad/s and {alpha:.2g} rad/s^2"
