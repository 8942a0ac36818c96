"""Desired motion of a simulated robot: random, from a trajectory file, or from a log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice
from dynid.excitation.closed import ClosedMotion, closed_states, independent_joints, narrowed_limits
from dynid.excitation.export import SampledTrajectory, read_trajectory
from dynid.excitation.platform_series import guided, led_body
from dynid.excitation.random_motion import PointToPoint, random_motion, random_point_to_point
from dynid.excitation.series import FourierMotion, Trajectory, speed_bound, symmetric_range
from dynid.kinematics.sensors import measured_motion, sensors_of
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.differentiate import differentiate
from dynid.motion.log import Log
from dynid.motion.motion import Motion
from dynid.motion.plan import plan_motions
from dynid.motion.settings import FilterSettings, MaskSettings
from dynid.prediction.trajectory import desired_motion

RandomMotion = FourierMotion | PointToPoint | ClosedMotion
KINDS = ("fourier", "points")
_ROUGH = "rough-trajectory"
_ALLOWANCE = 1e-6  # of a limit: rounding of numbers in a file


@dataclass(frozen=True)
class MotionChoice:
    """A motion from a file, or the settings of a random motion.

    Attributes:
        file: Trajectory (CSV, Parquet, YAML, ROS 2) or log; None: random.
        kind: Of a random motion: `fourier`, or moves between `points`.
        harmonics, frequency, draws: As for `random_motion`.
        points, dwell: As for `random_point_to_point`.
        seed: Of the draws; None: that of the simulation.
    """

    file: str | None = None
    kind: str = "fourier"
    harmonics: int = 5
    frequency: float = 0.1
    draws: int = 5
    points: int = 20
    dwell: float = 0.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(
                f"motion '{self.kind}' is not known" + nearest(self.kind, KINDS),
                remedy=f"use {', '.join(KINDS)}, or name a file",
            )


class SampledMotion:
    """A `Trajectory` through samples: quintic splines of the positions, or of given derivatives.

    Args:
        t: Shape (n,), in [s], increasing; time counts from the first.
        q: Positions, shape (n, m), in [rad] or [m].
    """

    repeats = False

    def __init__(self, t: Float[Array, "n"], q: Float[Array, "n m"]) -> None:
        from scipy.interpolate import make_interp_spline

        order = min(5, len(t) - 1 - (len(t) % 2 == 0))
        self.period = float(t[-1] - t[0])
        self._q = make_interp_spline(t - t[0], q, k=max(order, 1))
        self._dq, self._ddq = self._q.derivative(1), self._q.derivative(2)

    def q(self, t: Float[Array, "n"]) -> Float[Array, "n m"]:
        """Positions, shape (n, m), in [rad] or [m]; outside the samples the first or last one."""
        return np.asarray(self._q(np.clip(t, 0.0, self.period)))

    def dq(self, t: Float[Array, "n"]) -> Float[Array, "n m"]:
        """Their rates, per s."""
        return self._inside(t, np.asarray(self._dq(np.clip(t, 0.0, self.period))))

    def ddq(self, t: Float[Array, "n"]) -> Float[Array, "n m"]:
        """Their second rates, per s^2."""
        return self._inside(t, np.asarray(self._ddq(np.clip(t, 0.0, self.period))))

    def _inside(self, t: Float[Array, "n"], values: Float[Array, "n m"]) -> Float[Array, "n m"]:
        return np.where(((t >= 0.0) & (t <= self.period))[:, None], values, 0.0)


def chosen_motion(mechanism: Mechanism, choice: MotionChoice, seed: int) -> Trajectory:
    """The requested motion of the measured coordinates; an error if it violates the limits."""
    if choice.file is not None:
        return file_motion(mechanism, choice.file)
    motion_seed = seed if choice.seed is None else choice.seed
    body = led_body(mechanism)
    if not body:
        return _random(mechanism, choice, motion_seed)
    # The limits are those of the pose; a series of cable lengths or quaternions would not satisfy them.
    robot, names = guided(mechanism, body)
    return _random(robot, choice, motion_seed, names)


def narrowed_motion(mechanism: Mechanism, choice: MotionChoice) -> tuple[Notice, ...]:
    """That a random motion of a closed robot uses a part of its limits only."""
    if choice.file is not None or not mechanism.is_closed or led_body(mechanism):
        return ()
    return tuple(narrowed_limits(mechanism, independent_joints(mechanism)))


def _random(
    mechanism: Mechanism, choice: MotionChoice, seed: int, joints: tuple[str, ...] | None = None
) -> RandomMotion:
    """A random motion of the robot, guided by `joints` if given."""
    if choice.kind == "points":
        return random_point_to_point(mechanism, seed, points=choice.points, dwell=choice.dwell, joints=joints)
    return random_motion(
        mechanism,
        seed,
        harmonics=choice.harmonics,
        frequency=choice.frequency,
        draws=choice.draws,
        joints=joints,
    )


def file_motion(mechanism: Mechanism, file: str) -> SampledMotion:
    """The motion of a trajectory file or of a log (low-pass filtered as for identification)."""
    path = Path(file)
    if path.suffix.lower() in (".yaml", ".yml"):
        _refuse_coefficients(path)
        series = _ordered(mechanism, read_trajectory(path), path)
        motion = SampledMotion(series.t, series.q)
    else:
        guided, desired = desired_motion(file, mechanism)
        log = desired.log
        if len(log.segments) > 1:
            raise InputError(
                f"the motion has {len(log.segments)} segments", file=path, remedy="give one without gaps"
            )
        if any(notice.code == _ROUGH for notice in log.notices):
            motion = log_motion(mechanism, log)
        else:
            start, stop = log.segments[0]
            q = np.asarray(log.q[start:stop], float)
            if guided is not mechanism:
                q = _joints(mechanism, guided, q, log.dt)
            motion = SampledMotion(log.t[start:stop], q)
    check_limits(mechanism, motion, path)
    return motion


def _refuse_coefficients(path: Path) -> None:
    """The other file of a designed motion is meant: its samples."""
    try:
        with path.open(encoding="utf-8") as stream:
            first = stream.readline()
    except (OSError, ValueError):
        return
    if first.startswith("# dynid.coefficients/"):
        raise InputError(
            "holds the coefficients of a designed motion, not its samples",
            file=path,
            remedy="give trajectory.csv (the motion) or run.csv (with approach and return) beside it",
        )


def log_motion(mechanism: Mechanism, log: Log) -> SampledMotion:
    """The measured motion of a log: its longest segment, low-pass filtered."""
    plan = plan_motions([log], mechanism, FilterSettings(), MaskSettings())[0]
    smooth = Motion(log, plan)
    start, stop = max(smooth.usable(), key=lambda span: span[1] - span[0], default=(0, 0))
    if stop - start < 10:
        raise InputError(
            f"log '{log.name}' is too short for a motion", file=log.file, remedy="give a longer one"
        )
    q = smooth.states(start, stop)[0]
    return SampledMotion(log.t[start:stop], q)


def check_limits(mechanism: Mechanism, motion: SampledMotion, file: object = None) -> None:
    """Reject a motion that exceeds the limits of its measured coordinates, and name the worst violation."""
    t = np.linspace(0.0, motion.period, 2001)
    for symbol, values in (("q", motion.q(t)), ("dq", motion.dq(t)), ("ddq", motion.ddq(t))):
        for column, name in zip(values.T, mechanism.measured_positions, strict=True):
            bound = mechanism.limits.get(name, {}).get(symbol)
            if bound is None:
                continue
            low, high = symmetric_range(bound) if symbol == "q" else (-speed_bound(bound), speed_bound(bound))
            spare = _ALLOWANCE * (high - low)
            k = int(np.argmax(np.maximum(column - high, low - column)))
            if not low - spare <= column[k] <= high + spare:
                raise InputError(
                    f"the motion exceeds the limits: {symbol} of '{name}' is {column[k]:.4g} at {t[k]:.4g} s,"
                    f" limits {low:g} to {high:g}",
                    file=file,
                    remedy="give a smaller or slower motion, or correct `limits:`",
                )


def _ordered(mechanism: Mechanism, series: SampledTrajectory, path: Path) -> SampledTrajectory:
    """Columns in the order of the measured coordinates."""
    wanted = mechanism.measured_positions
    missing = [name for name in wanted if name not in series.names]
    if missing:
        raise InputError(
            f"the trajectory has no joint '{missing[0]}'" + nearest(missing[0], series.names),
            file=path,
            remedy=f"give all of {', '.join(wanted)}",
        )
    columns = [series.names.index(name) for name in wanted]
    return SampledTrajectory(wanted, series.t, series.q[:, columns])


def _joints(
    mechanism: Mechanism, guided: Mechanism, q: Float[Array, "n m"], dt: float
) -> Float[Array, "n m"]:
    """Measured positions of the robot from the positions of its guiding chain."""
    sensors = sensors_of(guided, guided.measured_positions)
    rates = [differentiate(q, dt, "spline", order=order) for order in (1, 2)]
    states = closed_states(guided, sensors, q, *rates)
    at = [guided.positions.index(name) for name in mechanism.positions]
    moving = [guided.coordinates.index(name) for name in mechanism.coordinates]
    return measured_motion(mechanism, states.q[:, at], states.dq[:, moving], states.ddq[:, moving])[0]
