"""Do simulated free motions follow the runs of a log? Per run, for the estimate and for the prior.

The residual of free-motion rows hardly depends on the quality of the parameters (it is dominated by noise of
the accelerations). The phase of an oscillation simulated for some seconds does.

Prediction of whole free motions: simulated from a fitted starting state, for many runs at once.

Only starting states and a common damping are fitted: few unknowns of long motions. Their derivatives are
finite differences of motions that the fast integrator computes in parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.cases.free_motion.output_error import (
    FreeOutputError,
    measured_names,
    run_lengths,
    samples_a_step,
    start_state,
    stretch,
)
from dynid.cases.free_motion.reference_mass import referred_values
from dynid.cases.free_motion.refinement import DampedRobot, damped_robot
from dynid.cases.free_motion.unit_mass import reference_of
from dynid.common.arrays import Array, Float
from dynid.common.errors import DynidError, NoResultError
from dynid.dynamics.free_motion import LockedCables, integrated
from dynid.experiment.sections import TURNING
from dynid.kinematics.sensors import Sensors, sensors_of
from dynid.mechanism.parameters import prior_values
from dynid.problem import Problem
from dynid.refinement.output_error import Windows, settled, started
from dynid.statistics.estimate import RunFit

_HORIZON = 5.0  # s of every run that are simulated
_STILL = 1e-9  # m or rad: a run that moves less has no motion to be compared with


@dataclass(frozen=True)
class Missed:
    """What the simulation of a run misses, and how far the run moves about its mean; None: not simulated.

    Attributes:
        position, angle: Missed, rms over samples, all coordinates together, in [m] and [rad].
        moved, turned: Measured motion, rms in the same way, in [m] and [rad].
    """

    position: float | None = None
    angle: float | None = None
    moved: float | None = None
    turned: float | None = None


def with_simulations(
    problem: Problem, i: int, chi: Float[Array, "p"], runs: Sequence[RunFit]
) -> tuple[RunFit, ...]:
    """Runs of a log with how far simulated motions stay from the measured ones.

    The starting state of each run and one damping coefficient for all are fitted, for the estimate and
    for the prior alike.

    Args:
        problem: A free-motion problem.
        i: Which of its logs.
        chi: Its standard parameters, shape (p,), SI, per unit mass.
        runs: Of that log, as far as known.
    """
    believed = referred_values(prior_values(problem.mechanism), reference_of(problem), problem.parameters)
    prior = (
        np.array([believed.get(parameter.name, 0.0) for parameter in problem.parameters])
        if believed
        else None
    )
    estimated, other = _missed(problem, i, chi), {} if prior is None else _missed(problem, i, prior)
    pieces, completed = problem.sources[i].pieces(), []
    for run in runs:
        first = pieces[run.run - 1][0]
        a = next((a for a, b in problem.logs[i].segments if a <= first < b), -1)
        missed, before = estimated.get(a, Missed()), other.get(a, Missed())
        completed.append(
            replace(
                run,
                position_rms=missed.position,
                angle_rms=missed.angle,
                prior_position_rms=before.position,
                prior_angle_rms=before.angle,
                motion_position_rms=missed.moved,
                motion_angle_rms=missed.turned,
            )
        )
    return tuple(completed)


def simulated_squares(
    problem: Problem, chi: Float[Array, "p"]
) -> tuple[tuple[str, ...], Float[Array, "k"], Float[Array, "k"]]:
    """Positions and attitudes: what simulations of all runs miss and how far the runs move, mean squares.

    Rows of free motion cannot rank estimates: the noise of their columns is in the score too, and least
    squares is made to leave little of it. A simulated motion is compared with positions as measured.
    A run whose simulation runs away counts as missed by all of its motion.

    Args:
        problem: A free-motion problem along the logs to be predicted.
        chi: Standard parameters, shape (p,), SI, per unit mass.

    Returns:
        Names, missed and moved, shapes (k,), in [m^2] and [rad^2], summed over runs.
    """
    missed, moved = np.zeros(2), np.zeros(2)
    for i, log in enumerate(problem.logs):
        by_run = _missed(problem, i, chi)
        for errors in by_run.values():
            sizes = np.array([errors.moved or 0.0, errors.turned or 0.0])
            left = np.array([errors.position, errors.angle], dtype=float)
            moved += sizes**2
            missed += np.where(np.isfinite(left), left, sizes) ** 2
        if not by_run:
            raise NoResultError(f"the free motions of log '{log.name}' cannot be simulated with these values")
    used = moved > _STILL**2
    names = tuple(name for name, kept in zip(("position", "attitude"), used.tolist(), strict=True) if kept)
    return names, missed[used], moved[used]


def _missed(problem: Problem, i: int, chi: Float[Array, "p"]) -> dict[int, Missed]:
    """First sample of each run -> what its simulation misses."""
    none = np.zeros((len(chi), 0))
    try:
        damped = damped_robot(problem, none, chi, np.zeros(0), TURNING)
        groups = _whole_runs(problem, i, damped.robot)
        by_run: dict[int, Missed] = {}
        for starts, windows in groups:
            by_run |= dict(zip(starts, _of_group(problem, damped, i, windows), strict=True))
    except (DynidError, np.linalg.LinAlgError, FloatingPointError):
        return {}  # these parameters cannot be simulated; the residuals of the rows show it
    return by_run


def _of_group(problem: Problem, damped: DampedRobot, i: int, windows: Windows) -> list[Missed]:
    robot = damped.robot
    sensors = sensors_of(robot.robot, measured_names(robot, problem.logs[i]))
    unknown = np.zeros(len(damped.kinds))
    ones = np.ones(sensors.count)
    simulated = FreeOutputError(robot, sensors, damped.S, damped.c, ones, unknown, unknown)
    with np.errstate(all="ignore"):
        missed = predicted(simulated, windows)
    names = [robot.robot.coordinates[v] for v in sensors.velocity]
    turning = np.array([robot.robot.joint_of_coordinate[name].is_angle(name) for name in names])
    moved = [_about_mean(windows, k, sensors) for k in range(len(windows.q))]
    return [
        Missed(
            _rms(error[:, ~turning]),
            _rms(error[:, turning]),
            _rms(motion[:, ~turning]),
            _rms(motion[:, turning]),
        )
        for error, motion in zip(missed, moved, strict=True)
    ]


def _about_mean(windows: Windows, k: int, sensors: Sensors) -> Float[Array, "s m"]:
    """The measured motion of one window about its mean, in velocity coordinates, [m] or [rad]."""
    measured = windows.measured[:, k]
    off = sensors.miss(np.broadcast_to(windows.q[k], (len(measured), windows.q.shape[1])), measured)
    return np.asarray(off - off.mean(axis=0))


def _rms(missed: Float[Array, "k m"]) -> float | None:
    """Over samples, all coordinates of a sample together; None without any, or where it ran away."""
    value = float(np.sqrt(np.mean(np.sum(missed**2, axis=1)))) if missed.shape[1] else float("nan")
    return value if np.isfinite(value) else None


def _whole_runs(problem: Problem, i: int, robot: LockedCables) -> list[tuple[list[int], Windows]]:
    """Runs of one log from their beginning, those of equal length together, with their first samples."""
    log, motion = problem.logs[i], problem.sources[i].motion
    per_step = samples_a_step(robot, log.dt)
    names = measured_names(robot, log)
    groups: dict[int, list[tuple[int, Windows]]] = {}
    for a, b in log.segments:
        first = next((low for low, high in motion.usable() if a <= low < high <= b), None)
        if first is None:
            continue
        steps = min(b - 1 - first, round(_HORIZON / log.dt)) // per_step
        lengths = run_lengths(robot, log, a, b)
        state = start_state(problem.mechanism, motion, robot, first, lengths)
        if state is not None and steps > 1:
            samples = first, first + steps * per_step + 1, per_step
            groups.setdefault(steps, []).append((a, stretch(robot, log, state, lengths, samples, names)))
    sorted_out = [zip(*members, strict=True) for members in groups.values()]
    return [(list(starts), first.joined(others)) for starts, (first, *others) in sorted_out]


_PHASE = 0.2
_SHIFT = 1e-6  # m, rad, per s: of a difference
_PASSES = 2
_DAMP = 1e-5  # of a damping coefficient, per unit mass


@dataclass(frozen=True, eq=False)
class FastFreeMotion:
    """`FreeOutputError` of known lengths by differences of fast motions (a `Simulated` problem)."""

    simulated: FreeOutputError

    @property
    def linear(self) -> Float[Array, "b"]:
        """Where the unknowns begin."""
        return self.simulated.linear

    @property
    def hold(self) -> Float[Array, "b"]:
        """How they are held to it."""
        return self.simulated.hold

    def residual(self, chi: Float[Array, "b"], windows: Windows) -> Float[Array, "n r"]:
        """Measured less simulated positions in deviations."""
        return self.simulated.missed(self.poses(chi, windows), windows)

    def slopes(
        self, chi: Float[Array, "b"], windows: Windows
    ) -> tuple[Float[Array, "n r"], Float[Array, "n r s"], Float[Array, "n r b"]]:
        """The residual, and derivatives of the simulation by starting states and by the unknowns."""
        n, d = len(windows.q), self.simulated.robot.freedoms.dof
        steps = np.concatenate([np.zeros((1, 2 * d)), _SHIFT * np.eye(2 * d)])
        many = windows.picked(np.tile(np.arange(n), 2 * d + 1))
        rows = self.residual(chi, self.moved(many, np.repeat(steps, n, axis=0))).reshape(2 * d + 1, n, -1)
        by_start = np.moveaxis(rows[:1] - rows[1:], 0, 2) / _SHIFT
        changed = [self.residual(chi + _DAMP * unit, windows) for unit in np.eye(len(chi))]
        columns = [(rows[0] - shifted) / _DAMP for shifted in changed]
        none = np.zeros((*rows[0].shape, 0))
        return rows[0], by_start, np.stack(columns, axis=2) if columns else none

    def moved(self, windows: Windows, change: Float[Array, "n s"]) -> Windows:
        """Windows whose starting states are changed."""
        return self.simulated.moved(windows, change)

    def poses(self, chi: Float[Array, "b"], windows: Windows) -> Float[Array, "k n q"]:
        """Simulated poses after every step."""
        robot, n = self.simulated.robot, len(windows.measured)
        dynamics = robot.changed(self.simulated.S @ chi + self.simulated.c)
        start, rate = (windows.q, windows.dq), 1.0 / windows.step
        return integrated(robot, dynamics, start, windows.lengths, n, rate, _PHASE)[
            :, :, : windows.q.shape[1]
        ]


def predicted(simulated: FreeOutputError, windows: Windows) -> Float[Array, "n k m"]:
    """What best simulations of whole runs miss of each measured coordinate, shape (n, k, m), SI.

    Args:
        problem: Its unknowns are damping coefficients only, and begin at zero.
        windows: The runs, with rough starting states.
    """
    zero, count = np.zeros(len(simulated.linear)), simulated.sensors.count
    windows = started(FastFreeMotion(simulated), zero, windows, passes=1)
    missed = FastFreeMotion(simulated).residual(zero, windows).reshape(-1, count)
    sigma = simulated.sigma * np.maximum(np.sqrt(np.mean(missed**2, axis=0)), 1e-12)
    fast = FastFreeMotion(replace(simulated, sigma=sigma))
    chi, windows = settled(fast, zero, windows, _PASSES)
    rows = fast.residual(chi, windows).reshape(len(windows.q), -1, count)
    return np.asarray(rows * sigma)
