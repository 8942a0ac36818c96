"""Output error of free motion: parameters per unit mass whose simulated oscillation fits the measured one.

Only gravity acts and, if requested, viscous damping. The starting state of each window is unknown. If
requested, the locked lengths are unknown too, with the given values as priors. Both are eliminated by QR as
in `output_error`.

Runs of free motion as a simulation needs them: locked lengths, starting states, measured positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.dynamics.forward import ForwardDynamics
from dynid.dynamics.free_motion import LockedCables, frequencies
from dynid.dynamics.integrate import Runs
from dynid.experiment.sections import RefineSettings
from dynid.kinematics.closure import moved
from dynid.kinematics.sensors import Sensors, sensors_of
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.motion import Motion
from dynid.problem import Problem
from dynid.projection.kinematics import kinematics_along
from dynid.refinement.joints import places_of
from dynid.refinement.output_error import Windows, by_window, integrated_windows, missed, seen_rows


@dataclass(frozen=True, eq=False)
class FreeOutputError:
    """The free motion of a robot as a function of its parameters (a `Simulated` problem).

    Attributes:
        robot: On locked cables, with the drive terms that are among the unknowns.
        sensors: What is measured of it.
        S, c: Standard parameters of `robot.robot` are S chi + c.
        sigma: Deviation of each measured coordinate, shape (m,), in [rad] or [m].
        linear, hold: As in `OutputError`.
        length_sigma: Deviation of the given lengths, in [m]; None: lengths are known.
    """

    robot: LockedCables
    sensors: Sensors
    S: Float[Array, "p b"]
    c: Float[Array, "p"]
    sigma: Float[Array, "m"]
    linear: Float[Array, "b"]
    hold: Float[Array, "b"]
    length_sigma: float | None = None

    def residual(self, chi: Float[Array, "b"], windows: Windows) -> Float[Array, "n r"]:
        """Measured less simulated positions in deviations, then given lengths less those assumed."""
        return self.missed(self._run(chi, windows, None).q, windows)

    def slopes(
        self, chi: Float[Array, "b"], windows: Windows
    ) -> tuple[Float[Array, "n r"], Float[Array, "n r s"], Float[Array, "n r b"]]:
        """The residual, and its derivatives by starting states (and lengths) and by parameters."""
        runs = self._run(chi, windows, self.S)
        n, flat = runs.q.shape[1], runs.q.reshape(-1, runs.q.shape[2])
        N = seen_rows(self.robot.freedoms.tangent(flat), self.sensors, self.sigma, n)
        by_start, by_parameter = (by_window(N @ slope) for slope in runs.slopes)
        if runs.by_closure is not None and self.length_sigma is not None:
            P = self.robot.dynamics.responses(flat, self.robot.rows)
            by_length = by_window(N @ runs.by_closure + seen_rows(P, self.sensors, self.sigma, n))
            held = np.broadcast_to(
                np.eye(by_length.shape[2]) / self.length_sigma, (n, *by_length.shape[2:] * 2)
            )
            s = by_start.shape[2]
            by_start = np.concatenate([by_start, np.zeros((n, held.shape[1], s))], axis=1)
            by_start = np.concatenate([by_start, np.concatenate([by_length, held], axis=1)], axis=2)
            none = np.zeros((n, held.shape[1], by_parameter.shape[2]))
            by_parameter = np.concatenate([by_parameter, none], axis=1)
        return self.missed(runs.q, windows), by_start, by_parameter

    def moved(self, windows: Windows, change: Float[Array, "n s"]) -> Windows:
        """Starting states changed by independent positions and velocities, then lengths."""
        free, d = self.robot.freedoms, self.robot.freedoms.dof
        lengths = windows.lengths + change[:, 2 * d :] if self.length_sigma is not None else windows.lengths
        q = moved(
            self.robot.robot, windows.q, np.einsum("nvd,nd->nv", free.tangent(windows.q), change[:, :d])
        )
        still = np.zeros((len(q), d))
        for _ in range(4):
            q = moved(self.robot.robot, q, free.lifted(q, still, self.robot.gaps(q, lengths)))
        dy = windows.dq[:, free.independent] + change[:, d : 2 * d]
        return replace(windows, q=q, dq=free.lifted(q, dy), lengths=lengths)

    def _run(self, chi: Float[Array, "b"], windows: Windows, directions: Array | None) -> Runs:
        robot = self.robot
        dynamics = ForwardDynamics(robot.robot, self.S @ chi + self.c, windows.mounted, robot.freedoms)
        closures = None if self.length_sigma is None else robot.rows

        def projected(q: Float[Array, "n q"], dq: Float[Array, "n v"]) -> tuple[Array, Array]:
            return robot.repaired(q, dq, windows.lengths)

        return integrated_windows(dynamics, windows, directions, closures, projected)

    def missed(self, poses: Float[Array, "k n q"], windows: Windows) -> Float[Array, "n r"]:
        """The residual of simulated poses."""
        rows = missed(poses, windows.measured, self.sensors, self.sigma)
        if self.length_sigma is None:
            return rows
        return np.concatenate([rows, (windows.given - windows.lengths) / self.length_sigma], axis=1)


_PHASE = 0.25  # rad of the fastest oscillation a step of the integration: micrometres over some seconds
_MOST = 200  # poses of a run from which its lengths are taken


def measured_names(robot: LockedCables, log: Log) -> list[str]:
    """Positions of the locked robot that a log holds, in its order."""
    return [name for name in log.position_names if name in robot.robot.positions]


def run_lengths(robot: LockedCables, log: Log, a: int, b: int) -> Float[Array, "c"]:
    """Locked lengths of one run: as the log gives them, else those of its poses, in [m]."""
    names = list(log.position_names)
    if all(cable in names for cable in robot.cables):
        return np.asarray(np.median(log.q[a:b][:, [names.index(cable) for cable in robot.cables]], axis=0))
    columns = [names.index(name) for name in robot.robot.positions]
    thinned = log.q[a : b : max(1, (b - a) // _MOST)][:, columns]
    return np.asarray(np.median(robot.lengths(np.asarray(thinned, dtype=float)), axis=0))


def start_state(
    mechanism: Mechanism, motion: Motion, robot: LockedCables, sample: int, lengths: Float[Array, "c"]
) -> tuple[Float[Array, "1 q"], Float[Array, "1 v"]] | None:
    """State of the locked robot at a sample, put onto its lengths; None where the pose is singular."""
    states = kinematics_along(mechanism, motion).states(sample, motion.states(sample, sample + 1))
    if not states.fine.all():
        return None
    q, reached = robot.closed(
        states.q[:, [mechanism.positions.index(name) for name in robot.robot.positions]], lengths
    )
    rates = states.dq[:, [mechanism.coordinates.index(name) for name in robot.robot.coordinates]]
    return (q, robot.freedoms.lifted(q, rates[:, robot.freedoms.independent])) if reached.all() else None


def free_windows(
    problem: Problem, robot: LockedCables, settings: RefineSettings
) -> tuple[Sensors, list[Windows]]:
    """What is measured of the locked robot, and windows of all runs, those with equal payloads together."""
    dt, seconds = problem.logs[0].dt, settings.seconds(free_motion=True)
    per_step = samples_a_step(robot, dt)
    steps = max(4, round(seconds / (dt * per_step)))
    names = _in_all(robot, problem.logs)
    by_load: dict[tuple[str, ...], list[Windows]] = {}
    known: dict[tuple[int, int], Array] = {}
    for i, first in places_of(problem, steps * per_step + 1, settings.windows, seconds):
        log, motion = problem.logs[i], problem.sources[i].motion
        a, b = next((a, b) for a, b in log.segments if a <= first < b)
        if (i, a) not in known:
            known[i, a] = run_lengths(robot, log, a, b)
        state = start_state(problem.mechanism, motion, robot, first, known[i, a])
        stop = first + steps * per_step + 1
        if state is None or not log.valid[first:stop].all():
            continue
        window = stretch(robot, log, state, known[i, a], (first, stop, per_step), names)
        by_load.setdefault(log.payloads, []).append(window)
    return sensors_of(robot.robot, names), [one.joined(others) for one, *others in by_load.values()]


def _in_all(robot: LockedCables, logs: Sequence[Log]) -> list[str]:
    """Positions of the locked robot that every log holds: windows of one simulation share them."""
    names = [
        name for name in measured_names(robot, logs[0]) if all(name in log.position_names for log in logs)
    ]
    if not names:
        raise InputError(
            "the logs share no measured coordinate of the platform, so they cannot be refined together",
            place="refine",
            remedy="leave `refine:` out, or refine from logs with the same coordinates",
        )
    return names


def stretch(
    robot: LockedCables,
    log: Log,
    state: tuple[Float[Array, "1 q"], Float[Array, "1 v"]],
    lengths: Float[Array, "c"],
    samples: tuple[int, int, int],
    names: Sequence[str],
) -> Windows:
    """One window: samples first to stop, one step in so many of them; no motor moves it."""
    first, stop, per_step = samples
    columns = [log.position_names.index(name) for name in names]
    measured = np.asarray(log.q[first:stop:per_step][:, columns], dtype=float)[:, None]
    tau = np.zeros((2 * len(measured) - 1, 1, len(robot.robot.actuators)))
    known = lengths[None], lengths[None]
    return Windows(*state, tau, measured, per_step * log.dt, log.payloads, *known)


def samples_a_step(robot: LockedCables, dt: float) -> int:
    """How many samples a step of the integration may take."""
    return max(1, int(_PHASE / (float(frequencies(robot, robot.assembly.start[None])[0]) * dt)))
