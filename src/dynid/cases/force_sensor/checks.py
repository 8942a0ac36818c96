"""Whether the log of a force sensor agrees with its description: axes, sign, drift, gravity, rotation.

Each hypothesis is a small dense fit of the same equations with one change. A hypothesis with a much smaller
residual is probably true.

Whether a force sensor was rotated enough to identify mass, centre of mass and inertia of its load.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dynid.cases.force_sensor.samples import (
    DenseFit,
    SensorSamples,
    bias_columns,
    dense_fit,
    nearest_rotation,
    per_load,
    sensor_samples,
    turned_forces,
)
from dynid.checks.check import Finished
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.mechanism.force_sensor import COMPONENTS, UNITS, ForceSensor
from dynid.mechanism.frame import angles_of
from dynid.mechanism.inertia import SYMBOLS
from dynid.problem import Problem
from dynid.projection.sensor import SensorColumns
from dynid.statistics.estimate import ParameterEstimate
from dynid.statistics.uncertainty import student_t

_BETTER = 0.25  # product of the residual forces and moments left over, relative to the description's
_BETTER_TURNED, _OFF = 0.7, 2.0  # the same for an attitude that was fitted, and degrees that matter
_ALL_ROUND = 0.3  # of the largest singular value: gravity was in all three directions
_FAR = 3.0  # m from the sensor to a centre of mass
_SURE = 5.0  # deviations
_DRIFT, _DRIFT_PART = 6.0, 0.3  # deviations, and parts of the noise of one sample
_GRAVITY = 0.02
_QUIET = 20.0  # percentile of the turning below which a sample is quiet
_WEAK_MASS, _WEAK_COM, _WEAK_INERTIA = 5.0, 5e-3, 30.0  # %, m, %
_TURNED = 30.0  # degrees
_FAST = 2.0, 5.0  # rad/s, rad/s^2
HEAVY = 2.0  # times what is left over: weights below may be anything
_TOOL_MASS = 9  # among the ten


def check_wrench_log(problem: Problem, samples: SensorSamples, x: Float[Array, "a"]) -> tuple[Notice, ...]:
    """Test the samples of a problem for other axes, opposite sign, drift and wrong gravity.

    Args:
        problem: Of the sensor model.
        samples: Its samples.
        x: Angles of the sensor as far as they are found, in [rad].

    Raises:
        InputError: The tool would have a negative mass: the sign is the other one.
    """
    sensor = problem.mechanism.force_sensor
    if sensor is None:
        return ()
    columns = SensorColumns(problem.mechanism, problem.parameters, range(6))
    W = per_load(columns.wrench(samples.motion, x), samples.load, samples.n_loads)
    fit = _fitted(sensor, samples, W)
    notices = [*_axes(sensor, samples, W, fit)]
    notices = notices or [*_mounting(sensor, samples, W, fit)]
    if not notices:
        _check_sign(problem, samples, fit)
    notices += [*_moment_unit(sensor, samples, W), *_drift(sensor, samples, W)]
    return (*notices, *_imu_gravity(problem, sensor, samples), *_range(problem, sensor))


def _fitted(
    sensor: ForceSensor,
    samples: SensorSamples,
    W: Float[Array, "n 6 c"],
    turned: Float[Array, "n 3 3"] | None = None,
) -> DenseFit:
    """Fit of the ten of each load and the biases, the log first turned to the sensor by `turned`.

    The bias arises in the sensor, before anybody turns its readings.
    """
    n = len(samples.measured)
    bias = bias_columns(n, samples.run if sensor.bias == "segment" else None)
    measured = samples.measured
    if turned is not None:
        measured = (turned[:, None] @ measured.reshape(n, 2, 3, 1)).reshape(n, 6)
    return dense_fit(W if sensor.bias == "none" else np.concatenate([W, bias], axis=2), measured)


def _axes(
    sensor: ForceSensor, samples: SensorSamples, W: Float[Array, "n 6 c"], fit: DenseFit
) -> Iterable[Notice]:
    """Whether the wrench is expressed in axes of the base or of the carrying body instead."""
    whole = np.isfinite(samples.measured).all(axis=0)
    # Axes can be changed only of a vector that is there with all its components.
    if sensor.imu is not None or any(0 < part.sum() < 3 for part in np.split(whole, 2)):
        return
    n = len(samples.measured)
    others = {"the base frame": np.swapaxes(samples.motion.R, 1, 2)}
    if sensor.mounting == "known" and not np.allclose(sensor.frame.R, np.eye(3), atol=1e-3):
        others[f"body '{sensor.body}'"] = np.broadcast_to(sensor.frame.R.T, (n, 3, 3))
    fits = {name: _fitted(sensor, samples, W, turned) for name, turned in others.items()}
    name, best = min(fits.items(), key=lambda item: _left(item[1])[0] * _left(item[1])[1])
    force, moment = _left(best)
    own_force, own_moment = _left(fit)
    if force * moment < _BETTER * own_force * own_moment:
        yield notice(
            "wrench-frame",
            frame=name,
            force=force,
            moment=moment,
            own_force=own_force,
            own_moment=own_moment,
        )


def _mounting(
    sensor: ForceSensor, samples: SensorSamples, W: Float[Array, "n 6 c"], fit: DenseFit
) -> Iterable[Notice]:
    """Whether the sensor is rotated relative to the description: forces determine the full orientation."""
    if sensor.mounting != "known" or not np.isfinite(samples.measured).all():
        return
    M = sensor.factor * turned_forces(samples)[0].T
    sizes = np.linalg.svd(M, compute_uv=False)
    if np.linalg.det(M) <= 0.0 or sizes[-1] < _ALL_ROUND * sizes[0]:
        return  # gravity was not in all directions, or the sign is the other one
    Q = nearest_rotation(M)
    degrees = float(np.rad2deg(np.arccos(np.clip((np.trace(Q) - 1.0) / 2.0, -1.0, 1.0))))
    turned = _fitted(sensor, samples, W, np.broadcast_to(Q, (len(samples.measured), 3, 3)))
    (force, moment), (own_force, own_moment) = _left(turned), _left(fit)
    if degrees < _OFF or force * moment > _BETTER_TURNED * own_force * own_moment:
        return
    source, R = ("its IMU", Q.T @ sensor.imu.R) if sensor.imu is not None else ("`rpy`", sensor.frame.R @ Q)
    rpy = ", ".join(f"{angle:.3f}" for angle in angles_of(R, "zyx"))
    where = "imu: {rpy: [...]}" if sensor.imu is not None else "rpy, or estimate it: mounting: rpy"
    yield notice(
        "mounting-off",
        degrees=degrees,
        reference=source,
        force=force,
        moment=moment,
        own_force=own_force,
        own_moment=own_moment,
        rpy=rpy,
        where=where,
    )


def _moment_unit(sensor: ForceSensor, samples: SensorSamples, W: Float[Array, "n 6 c"]) -> Iterable[Notice]:
    """A centre of mass so far away that forces and moments cannot be in the same units."""
    parts = []
    for other in (slice(3, 6), slice(0, 3)):
        measured = samples.measured.copy()
        measured[:, other] = np.nan
        if np.isfinite(measured).all(axis=0).sum() < 3:
            return
        parts.append(_fitted(sensor, replace(samples, measured=measured), W))
    by_force, by_moment = parts
    for k in range(samples.n_loads):
        place = 10 * k + _TOOL_MASS
        mass, away = by_force.x[place], float(np.linalg.norm(by_moment.x[place - 3 : place]))
        if mass > _SURE * by_force.sigma[place] and away > _FAR * mass:
            yield notice("moment-unit", mass=mass, away=away / mass)
            return


def _left(fit: DenseFit) -> tuple[float, float]:
    """Residual force and moment, rms of a component."""
    squares = [part[np.isfinite(part)] ** 2 for part in (fit.rms[:3], fit.rms[3:])]
    # A sensor of three components leaves nothing open in the others.
    force, moment = (float(np.sqrt(np.mean(part))) if len(part) else 1.0 for part in squares)
    return force, moment


def _check_sign(problem: Problem, samples: SensorSamples, fit: DenseFit) -> None:
    """Refuse a tool that gravity pulls upwards."""
    sensor = problem.mechanism.force_sensor
    if sensor is None:
        return
    masses = fit.x[_TOOL_MASS : 10 * samples.n_loads : 10]
    sigmas = fit.sigma[_TOOL_MASS : 10 * samples.n_loads : 10]
    worst = int(np.argmin(masses / np.where(sigmas > 0, sigmas, 1.0)))
    weight = -masses[worst] * float(np.linalg.norm(samples.motion.dV[:, :3], axis=1).mean())
    # A sensor that carries next to nothing may well show a few grams less than that.
    if masses[worst] < -_SURE * sigmas[worst] and weight > HEAVY * _left(fit)[0]:
        half = float(student_t(np.inf, 0.95)) * sigmas[worst]  # of some thousand samples
        raise wrong_sign(problem, sensor, f"{masses[worst]:.4g} +- {half:.1g} kg")


def wrong_sign(problem: Problem, sensor: ForceSensor, mass: str) -> InputError:
    """The refusal of a log whose tool would have this negative mass."""
    other = "reaction" if sensor.sign == "load" else "load"
    action = "tool exerts on the sensor" if sensor.sign == "load" else "sensor exerts on the tool"
    return InputError(
        f"the wrench seems to have the opposite sign: the estimated mass of the tool is {mass}."
        f" `sign: {sensor.sign}` means the wrench that the {action}",
        file=problem.logs[0].file,
        place="force_sensor.sign",
        remedy=f"set `sign: {other}`; else check the direction of gravity and the axes of the sensor",
    )


def _drift(sensor: ForceSensor, samples: SensorSamples, W: Float[Array, "n 6 c"]) -> Iterable[Notice]:
    """Biases that differ between segments although one is meant for all."""
    runs = np.unique(samples.run)
    if sensor.bias != "constant" or len(runs) < 2:
        return
    fit = dense_fit(
        np.concatenate([W, bias_columns(len(samples.run), samples.run)], axis=2), samples.measured
    )
    bias, sigma = (part[W.shape[2] :].reshape(len(runs), 6) for part in (fit.x, fit.sigma))
    away = np.abs(bias - np.median(bias, axis=0))
    spread = np.sqrt(sigma**2 + np.median(sigma, axis=0) ** 2)
    count = (away > _DRIFT * spread) & (away > _DRIFT_PART * np.nan_to_num(fit.rms, nan=np.inf))
    if not count.any():
        return
    row, k = np.unravel_index(int(np.argmax(np.where(count, away / fit.rms, 0.0))), away.shape)
    yield notice(
        "bias-drift",
        component=COMPONENTS[k],
        off=away[row, k],
        unit=UNITS[k],
        segment=samples.labels[int(runs[row])],
        ratio=away[row, k] / spread[row, k],
    )


def _imu_gravity(problem: Problem, sensor: ForceSensor, samples: SensorSamples) -> Iterable[Notice]:
    """An accelerometer whose readings at quiet moments are not gravity."""
    if sensor.imu is None or not np.any(problem.mechanism.gravity):
        return
    turning = np.linalg.norm(samples.motion.omega, axis=1) + np.linalg.norm(samples.motion.dV[:, 3:], axis=1)
    quiet = turning <= np.percentile(turning, _QUIET)
    felt = float(np.median(np.linalg.norm(samples.motion.dV[quiet, :3], axis=1)))
    g = float(np.linalg.norm(problem.mechanism.gravity))
    if abs(felt / g - 1.0) > _GRAVITY:
        yield notice("imu-gravity", felt=felt, g=g, scale=g / felt)


def _range(problem: Problem, sensor: ForceSensor) -> Iterable[Notice]:
    """Samples at the end of the sensor's range; their rows do not count."""
    if sensor.limits is None:
        return
    limit = np.repeat(sensor.limits, 3)
    clipped = [
        f"{name} in {int(count)} samples of {log.name}"
        for log in problem.logs
        for name, count in zip(COMPONENTS, np.sum(np.abs(log.tau) >= limit, axis=0), strict=True)
        if count
    ]
    if clipped:
        yield notice("sensor-saturated", shown=", ".join(clipped[:6]))


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
        for body in problem.mechanism.loaded_bodies
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
