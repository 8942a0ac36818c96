"""Releases designed by `dynid excite` as input of simulations: `releases.csv`, or `motions.csv` as a log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.cases.free_motion.defaults import free_motion_defaults
from dynid.cases.free_motion.runs import run_lengths, start_state
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.dynamics.locked import LockedCables
from dynid.experiment.experiment import Experiment, LogEntry
from dynid.mechanism.cable import driven_cables
from dynid.mechanism.frame import quaternion_of, rotation
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.logs import ending, read_table
from dynid.problem import as_log, prepare

_START = "start_"


@dataclass(frozen=True, eq=False)
class Released:
    """Initial conditions of the free motions of a log.

    Attributes:
        lengths: Locked in each motion, shape (k, c), in [m].
        starts, velocities: States of the locked robot at the first samples, shapes (k, n_q) and (k, v), SI.
        rate: In [Hz]; duration: of the shortest motion, in [s].
    """

    lengths: Float[Array, "k c"]
    starts: Float[Array, "k q"]
    velocities: Float[Array, "k v"]
    rate: float
    duration: float


def released_as(mechanism: Mechanism, entry: LogEntry, experiment: Experiment) -> Released:
    """Lengths and starting states of the free motions of a log.

    Args:
        mechanism: The robot with its cables.
        entry: The log.
        experiment: How its columns are read and filtered.
    """
    asked = free_motion_defaults(experiment.changed(logs=(entry,), validate=(), model="internal"))
    problem = prepare(mechanism, [as_log(entry, mechanism, asked)], asked)
    log, motion = problem.logs[0], problem.sources[0].motion
    robot = LockedCables(mechanism, {})
    lengths = [run_lengths(robot, log, a, b) for a, b in log.segments]
    solved = [
        start_state(problem.mechanism, motion, robot, a, length)
        for (a, _), length in zip(log.segments, lengths, strict=True)
    ]
    pairs = [(length, state) for length, state in zip(lengths, solved, strict=True) if state is not None]
    if not pairs:
        raise InputError(
            "no motion starts at a pose that matches its cable lengths",
            file=entry.file,
            remedy="check zero and unit of the lengths, and the cable points",
        )
    shortest = min(b - a for a, b in log.segments)
    return Released(
        np.array([length for length, _ in pairs]),
        np.concatenate([state[0] for _, state in pairs]),
        np.concatenate([state[1] for _, state in pairs]),
        1.0 / log.dt,
        (shortest - 1) * log.dt,
    )


def released_file(
    mechanism: Mechanism,
    file: str,
    rate: float,
    duration: float,
    entry: LogEntry | None = None,
    experiment: Experiment | None = None,
) -> Released:
    """Releases of a table or of a log.

    Args:
        rate, duration: Of a table of releases, which has none: in [Hz], and of each motion in [s].
        entry, experiment: How a log is read; default by its own column names.
    """
    if has_releases(file):
        return read_releases(mechanism, file, rate, duration)
    return released_as(mechanism, entry or LogEntry(file), experiment or Experiment(robot=mechanism))


def has_releases(file: str) -> bool:
    """Whether a file is a table of releases: CSV with poses `start_*` and no time."""
    path = Path(file)
    if ending(path) != ".csv" or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as stream:
        names = stream.readline(1 << 16).strip().split(",")
    return "t" not in names and any(name.startswith(_START) for name in names)


def read_releases(mechanism: Mechanism, file: str, rate: float, duration: float) -> Released:
    """Lengths and poses of a table of releases, at rest.

    Args:
        file: With columns `l0_1` ... and `start_*` as `dynid excite` writes them.
        rate: Of the simulation, in [Hz]; duration: of each motion, in [s].
    """
    table = read_table(Path(file))
    robot = LockedCables(mechanism, {})

    def column(name: str) -> Float[Array, "k"]:
        if name not in table.columns:
            raise InputError(
                f"no column '{name}'", file=file, remedy="give releases.csv of `dynid excite` for this robot"
            )
        return np.asarray(table.columns[name], float)

    cables = driven_cables(mechanism)
    lengths = np.column_stack([column(f"l0_{i + 1}") for i in range(len(cables))])
    starts: list[Float[Array, "k"]] = []
    for name in robot.robot.positions:
        if name.endswith("_qw"):
            stem = _START + name.removesuffix("_qw")
            turns = [column(f"{stem}_{angle}") for angle in ("roll", "pitch", "yaw")]
            R = np.array([_turned(*angles) for angles in zip(*turns, strict=True)])
            starts += list(quaternion_of(R).T)
        elif not name.endswith(("_qx", "_qy", "_qz")):
            starts.append(column(_START + name))
    still = np.zeros((len(lengths), len(robot.robot.coordinates)))
    return Released(lengths, np.column_stack(starts), still, rate, duration)


def _turned(roll: float, pitch: float, yaw: float) -> Float[Array, "3 3"]:
    """R = Rx Ry Rz."""
    return np.asarray(rotation(0, roll) @ rotation(1, pitch) @ rotation(2, yaw))
