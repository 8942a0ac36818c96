"""Runs of free motion as a simulation needs them: locked lengths, starting states, measured positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.cases.free_motion.output_error import FreeWindows
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.dynamics.free_motion import LockedCables, frequencies
from dynid.experiment.sections import RefineSettings
from dynid.kinematics.sensors import Sensors, sensors_of
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.motion import Motion
from dynid.problem import Problem
from dynid.projection.kinematics import kinematics_along
from dynid.refinement.joints import places_of

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
) -> tuple[Sensors, list[FreeWindows]]:
    """What is measured of the locked robot, and windows of all runs, those with equal payloads together."""
    dt, seconds = problem.logs[0].dt, settings.seconds(free_motion=True)
    per_step = samples_a_step(robot, dt)
    steps = max(4, round(seconds / (dt * per_step)))
    names = _in_all(robot, problem.logs)
    by_load: dict[tuple[str, ...], list[FreeWindows]] = {}
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
        window = stretch(log, state, known[i, a], (first, stop, per_step), names)
        by_load.setdefault(log.payloads, []).append(window)
    return sensors_of(robot.robot, names), [joined(ones) for ones in by_load.values()]


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
    log: Log,
    state: tuple[Float[Array, "1 q"], Float[Array, "1 v"]],
    lengths: Float[Array, "c"],
    samples: tuple[int, int, int],
    names: Sequence[str],
) -> FreeWindows:
    """One window: samples first to stop, one step in so many of them."""
    first, stop, per_step = samples
    columns = [log.position_names.index(name) for name in names]
    measured = np.asarray(log.q[first:stop:per_step][:, columns], dtype=float)[:, None]
    return FreeWindows(*state, measured, per_step * log.dt, lengths[None], lengths[None], log.payloads)


def samples_a_step(robot: LockedCables, dt: float) -> int:
    """How many samples a step of the integration may take."""
    return max(1, int(_PHASE / (float(frequencies(robot, robot.assembly.start[None])[0]) * dt)))


def joined(windows: Sequence[FreeWindows]) -> FreeWindows:
    """Windows side by side."""
    first = windows[0]

    def along(name: str, axis: int = 0) -> Array:
        return np.concatenate([getattr(window, name) for window in windows], axis=axis)

    lengths, given = along("lengths"), along("given")
    return FreeWindows(
        along("q"), along("dq"), along("measured", 1), first.step, lengths, given, first.mounted
    )
