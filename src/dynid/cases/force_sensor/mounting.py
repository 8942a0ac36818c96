"""Unknown angles of a force sensor: Gauss-Newton around the linear fit.

    x <- the angles of the linear fit of  s W(x) chi + bias + J(chi, x) (x_new - x) = measured

The reported fit includes the columns J, so masses, biases and angles have a joint covariance.

Angles of a force sensor as reported: the point of linearisation plus the estimated change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.cases.force_sensor.checks import HEAVY, check_wrench_log, wrong_sign
from dynid.cases.force_sensor.samples import SensorSamples, nearest_rotation, sensor_samples, turned_forces
from dynid.common.arrays import Array, Float
from dynid.common.notices import Notice, notice
from dynid.experiment.experiment import Experiment
from dynid.linear_fit import LinearFit, base_of, linear_fit
from dynid.mechanism.force_sensor import ForceSensor, level_axes
from dynid.mechanism.frame import angles_of
from dynid.problem import Problem
from dynid.statistics.assemble import EstimateParts
from dynid.unknown import Settled, Task

_ROUNDS = 25
_STEP = 1e-7  # [rad]: far below the accuracy of any sensor
_LONGEST = 0.7  # [rad]: the linearisation is not valid for longer steps
_STEEP = np.deg2rad(80.0)
_MIRRORED = 0.3  # of the largest singular value: gravity was in all three directions


def settle_sensor(task: Task) -> Settled:
    """Find the unknown angles of a force sensor."""
    problem, experiment = task.problem, task.experiment
    sensor = problem.mechanism.force_sensor
    if sensor is None:
        raise TypeError("a robot without force sensor has no such angles")
    samples = sensor_samples(problem)
    if not sensor.angles:
        return Settled(task, notices=check_wrench_log(problem, samples, sensor.start()))
    start = first_angles(problem, sensor, samples)
    fit, x, rounds, step = _iterated(problem, experiment, sensor, start)
    shown = ", ".join(f"{name} {value:.5g} rad" for name, value in zip(sensor.angles, x, strict=True))
    words = f"{shown}; estimated in {rounds} linear fits, last step {step:.1g} rad"
    if sensor.gravity == "estimate":
        g = sensor.tilted(x, np.asarray(problem.mechanism.gravity, float))
        words += f"; gravity ({g[0]:.4g}, {g[1]:.4g}, {g[2]:.4g}) m/s^2 in the base frame"
    notices = [*_angle_notices(sensor, x, step), *check_wrench_log(problem, samples, x)]
    done = replace(task, prepared=_linearised(problem, x, fit.chi))
    return Settled(done, {"angles of the sensor": words}, tuple(notices))


def _angle_notices(sensor: ForceSensor, x: Float[Array, "a"], step: float) -> list[Notice]:
    notices = []
    if step > _STEP:
        notices.append(notice("angles-open", step=step))
    if sensor.mounting == "rpy" and abs(x[1]) > _STEEP:
        notices.append(notice("angles-singular", degrees=np.rad2deg(x[1])))
    return notices


def _iterated(
    problem: Problem, experiment: Experiment, sensor: ForceSensor, x: Float[Array, "a"]
) -> tuple[LinearFit, Float[Array, "a"], int, float]:
    base = base_of(problem, experiment)  # angles do not change what can be seen
    names = [parameter.name for parameter in problem.parameters]
    places = [names.index(name) for name in sensor.angles]
    # The first fit knows no tool, so that the angles have no column: it finds the tool at the start.
    fit = linear_fit(_linearised(problem, x, None), experiment, base)
    rounds, step = 1, np.inf
    while rounds < _ROUNDS and step > _STEP:
        fit = linear_fit(_linearised(problem, x, fit.chi), experiment, base)
        move = np.where(np.isin(places, fit.data.indices), fit.chi[places], 0.0)
        step = float(np.max(np.abs(move)))
        x = x + move * min(1.0, _LONGEST / max(step, _LONGEST))
        rounds += 1
    return fit, x, rounds, step


def _linearised(problem: Problem, x: Float[Array, "a"], chi: Float[Array, "p"] | None) -> Problem:
    """The problem linearised at other angles, for bodies with these parameters."""
    sensor = problem.mechanism.force_sensor
    if sensor is None:
        raise TypeError("a robot without force sensor has no such angles")
    turned = replace(problem.mechanism, force_sensor=replace(sensor, at=tuple(x.tolist())))
    placed = replace(problem, mechanism=turned, load_parameters=chi)
    return replace(placed, sources=tuple(placed.rows_along(source.motion) for source in problem.sources))


def first_angles(problem: Problem, sensor: ForceSensor, samples: SensorSamples) -> Float[Array, "a"]:
    """Angles near the true ones: the rotation between measured force and specific force is the mounting.

    f = A a + bias per load, A = s m R^T: R is the rotation nearest to the sum of all A.
    """
    x = sensor.start()
    if sensor.mounting == "known":
        return _first_tilt(problem, sensor, samples, x)
    A, left = turned_forces(samples)
    M = sensor.factor * A.T
    if np.linalg.norm(A, 2) * np.linalg.norm(samples.motion.dV[:, :3], axis=1).mean() > HEAVY * left:
        _check_turned_sign(problem, sensor, M)
    if sensor.mounting == "angle":
        x[0] = np.arctan2(M[1, 0] - M[0, 1], M[0, 0] + M[1, 1])
        return x
    x[:3] = angles_of(sensor.frame.R @ nearest_rotation(M), "zyx")
    return x


def _check_turned_sign(problem: Problem, sensor: ForceSensor, M: Float[Array, "3 3"]) -> None:
    """Refuse forces that mirror the specific force instead of turning it: the sign is the other one.

    m R has a positive determinant; turned about z alone, also a positive last entry.
    """
    sizes = np.linalg.svd(M, compute_uv=False)
    determined = sizes[-1] > _MIRRORED * sizes[0]
    along = M[2, 2] / max(float(sizes[0]), 1e-12) if sensor.mounting == "angle" else 0.0
    if (determined and np.linalg.det(M) < 0) or along < -_MIRRORED:
        raise wrong_sign(problem, sensor, f"{-sizes[0]:.4g} kg")


def _first_tilt(
    problem: Problem, sensor: ForceSensor, samples: SensorSamples, x: Float[Array, "a"]
) -> Float[Array, "a"]:
    """Angles of gravity from f = s (m a - R^T h) + bias: gravity points along h."""
    gravity = np.asarray(problem.mechanism.gravity, float)
    h = np.zeros(3)
    for k in range(samples.n_loads):
        of_load = samples.load == k
        turned = np.swapaxes(samples.motion.R[of_load], 1, 2)
        a = samples.motion.dV[of_load, :3] + turned @ gravity
        columns = np.concatenate(
            [a[:, :, None], -turned, np.broadcast_to(np.eye(3), turned.shape)], axis=2
        ).reshape(-1, 7)
        solved = np.linalg.lstsq(
            columns, sensor.factor * samples.measured[of_load, :3].reshape(-1), rcond=1e-9
        )[0]
        h += solved[1:4]
    size = float(np.linalg.norm(h))
    down = gravity / np.linalg.norm(gravity)
    if size == 0.0:
        return x
    axis = np.cross(down, h / size)
    sine, cosine = float(np.linalg.norm(axis)), float(down @ h / size)
    turned_by = axis * (np.arctan2(sine, cosine) / sine if sine > 0 else 0.0)
    x[-2:] = [turned_by @ e for e in level_axes(gravity)]
    return x


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
