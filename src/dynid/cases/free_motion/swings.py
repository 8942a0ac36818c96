"""What a page draws of free motion: equilibrium, modes and cable tensions of each run.

At rest on locked cables N^T ID(q, 0, 0) = 0; small motions about it have the modes of K y = omega^2 M y.
The frequency of a mode in the log is the peak of the spectrum of the measured motion along its shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.cases.free_motion.output_error import measured_names, run_lengths, start_state
from dynid.cases.free_motion.refinement import damped_robot
from dynid.cases.free_motion.unit_mass import reference_of
from dynid.common.arrays import Array, Float, spread
from dynid.common.errors import DynidError
from dynid.display.scene import poses_along, states_at
from dynid.dynamics.free_motion import LockedCables
from dynid.dynamics.statics import Equilibrium, Mode, modes, rest
from dynid.experiment.sections import NONE
from dynid.fit import Fit
from dynid.kinematics.closure import moved
from dynid.kinematics.sensors import sensors_of
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import prior_values
from dynid.problem import Problem

_RUNS = 12  # shown
_SAMPLES = 40  # of a run: tensions
_FRAMES = 48  # of one oscillation
_SWING = 0.25  # rad or m: amplitude of a drawn mode
_PADDED = 8  # times the samples of a run: spacing of its spectrum
_SHOWN = 0.3  # of the largest entry of a shape: smaller entries are not named


def drawn_swings(fit: Fit) -> dict[str, Any]:
    """Runs with frequencies and tensions, and the modes of the first as motions; empty if not computable."""
    problem = fit.problem
    try:
        robot = damped_robot(problem, np.zeros((len(fit.chi), 0)), fit.chi, np.zeros(0), NONE).robot
        runs: list[dict[str, Any]] = []
        drawn: list[dict[str, Any]] = []
        for i, a, b in _chosen(problem):
            result = _run(problem, robot, i, a, b)
            if result is not None:
                entry, equilibrium, shapes = result
                runs.append(entry)
                drawn = drawn or _motions(problem.mechanism, robot, equilibrium, shapes)
    except (DynidError, np.linalg.LinAlgError, FloatingPointError):
        return {}
    if not runs:
        return {}
    mass, unit, origin = _scale(problem)
    for run in runs:
        run["tensions"] = mass * run["tensions"]
    return {"swings": {"cables": robot.cables, "unit": unit, "origin": origin, "runs": runs, "modes": drawn}}


def _chosen(problem: Problem) -> list[tuple[int, int, int]]:
    """Log, first sample and end of some runs, evenly spread."""
    every = [(i, a, b) for i, log in enumerate(problem.logs) for a, b in log.segments]
    places = spread(len(every), _RUNS)
    return [every[k] for k in places]


def _scale(problem: Problem) -> tuple[float, str, str]:
    """Factor, unit and origin of tensions: parameters of free motion are per kilogram of one body."""
    reference = reference_of(problem)
    if reference.given:
        return 1.0, "N", f"with the mass of {reference.body} as given"
    mass = prior_values(problem.mechanism).get(f"M_{reference.body}")
    if mass:
        return float(mass), "N", f"with the mass of {reference.body} of the description, {mass:.4g} kg"
    return 1.0, "N per kg", f"per kilogram of {reference.body}, whose mass is not known"


def _run(
    problem: Problem, robot: LockedCables, i: int, a: int, b: int
) -> tuple[dict[str, Any], Equilibrium, tuple[Mode, ...]] | None:
    log, motion = problem.logs[i], problem.sources[i].motion
    first, last = next(((low, high) for low, high in motion.usable() if a <= low < high <= b), (0, 0))
    lengths = run_lengths(robot, log, a, b)
    state = start_state(problem.mechanism, motion, robot, first, lengths) if last > first else None
    if state is None:
        return None
    equilibrium = rest(robot, lengths, state[0][0])
    shapes = modes(robot, equilibrium)
    tensions = _tensions(problem, robot, i, np.linspace(first, last - 1, _SAMPLES).astype(np.int64))
    entry = {
        "log": log.name,
        "t": float(log.t[a]),
        "frequencies": [mode.frequency for mode in shapes],
        "measured": _peaks(robot, problem, i, (first, last), equilibrium, shapes),
        "words": [shape_words(mode.shape, robot.robot.coordinates) for mode in shapes],
        "tensions": np.stack([equilibrium.tensions, tensions.min(axis=0), tensions.max(axis=0)]),
    }
    return entry, equilibrium, shapes


def _tensions(problem: Problem, robot: LockedCables, i: int, samples: Array) -> Float[Array, "n c"]:
    """Pull of every cable at some samples, in [N] times the scale of the parameters."""
    states = states_at(problem, problem.sources[i].motion, np.unique(samples))
    if states is None:
        return np.full((1, len(robot.cables)), np.nan)
    names = problem.mechanism
    q = states.q[:, [names.positions.index(name) for name in robot.robot.positions]]
    dq = states.dq[:, [names.coordinates.index(name) for name in robot.robot.coordinates]]
    # Accelerations of the model: those of the log are differences of noisy positions.
    ddq = robot.dynamics.accelerations(q, dq, np.zeros((len(q), len(robot.robot.actuators)))).ddq
    return robot.tensions(q, dq, ddq)


def _peaks(
    robot: LockedCables,
    problem: Problem,
    i: int,
    samples: tuple[int, int],
    equilibrium: Equilibrium,
    shapes: tuple[Mode, ...],
) -> list[float]:
    """Frequency of the log nearest to each mode, in [Hz]; NaN where the run is too short."""
    log, (first, last) = problem.logs[i], samples
    names = measured_names(robot, log)
    sensors = sensors_of(robot.robot, names)
    measured = np.asarray(
        log.q[first:last][:, [log.position_names.index(name) for name in names]], dtype=float
    )
    about = np.broadcast_to(equilibrium.q, (len(measured), len(equilibrium.q)))
    off = sensors.miss(about, measured)
    along = np.linalg.pinv(np.stack([oscillation.shape[sensors.velocity] for oscillation in shapes], axis=1))
    peaks = []
    for oscillation, swing in zip(shapes, along @ (off - off.mean(axis=0)).T, strict=True):
        if len(swing) * log.dt * oscillation.frequency < 3.0:
            peaks.append(float("nan"))
            continue
        size = np.abs(np.fft.rfft(swing * np.hanning(len(swing)), _PADDED * len(swing)))
        frequencies = np.fft.rfftfreq(_PADDED * len(swing), log.dt)
        near = (frequencies > 0.7 * oscillation.frequency) & (frequencies < 1.3 * oscillation.frequency)
        peaks.append(float(frequencies[near][np.argmax(size[near])]))
    return peaks


def _motions(
    mechanism: Mechanism, robot: LockedCables, equilibrium: Equilibrium, shapes: tuple[Mode, ...]
) -> list[dict[str, Any]]:
    """One oscillation of each mode as poses of the robot, with its frequency in the name."""
    known = {
        **dict.fromkeys(mechanism.positions, 0.0),
        **dict(zip(robot.cables, equilibrium.lengths, strict=True)),
    }
    columns = [mechanism.positions.index(name) for name in robot.robot.positions]
    whole = np.tile([known[name] for name in mechanism.positions], (_FRAMES, 1))
    motions = []
    for mode in shapes:
        phase = np.linspace(0.0, 2.0 * np.pi, _FRAMES)
        q = np.repeat(equilibrium.q[None], _FRAMES, axis=0)
        step = _SWING * np.sin(phase)[:, None] * mode.shape
        q, fine = robot.closed(moved(robot.robot, q, step), equilibrium.lengths)
        if fine.all():
            t = phase / (2.0 * np.pi * mode.frequency)
            name = f"free oscillation, {mode.frequency:.3g} Hz"
            whole[:, columns] = q
            motions.append({"log": name, "t": t, **poses_along(mechanism, whole)})
    return motions


def shape_words(shape: Float[Array, "v"], names: tuple[str, ...]) -> str:
    """The main parts of a mode in words; turning and sliding parts are compared at 1 m from the axis."""
    order = [k for k in np.argsort(-np.abs(shape), kind="stable") if abs(shape[k]) >= _SHOWN]
    return ", ".join(_coordinate_words(names[k]) for k in order)


def _coordinate_words(name: str) -> str:
    """`pose_wx` as rotation about x."""
    part = name.rsplit("_", 1)[-1]
    if len(part) == 2 and part[0] == "w" and part[1] in "xyz":
        return f"rotation about {part[1]}"
    return f"motion along {part}" if part in ("x", "y", "z") else name
