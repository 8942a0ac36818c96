"""Simulated robots on locked cables: free motions from random releases, measured as in their experiment.

Built-in experiments of robots that swing on locked cables: random releases within their limits.

truth:   as in any demo (see `demo_file`)
free:    motions, validation (how many of each), rate [Hz], duration [s] of each,
         position_sigma [m] and angle_sigma [rad] of the markers' noise, seed

Releases designed by `dynid excite` as input of simulations: `releases.csv`, or `motions.csv` as a log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.cases.free_motion.measured_motion import free_limits, measured_log, simulate_free_motions
from dynid.cases.free_motion.output_error import run_lengths, start_state
from dynid.cases.free_motion.releases import Releases, Releasing
from dynid.common.arrays import Array, Float
from dynid.common.batched import single_threaded_blas
from dynid.common.errors import InputError, NoResultError
from dynid.common.notices import Notice
from dynid.dynamics.free_motion import FreeMotions, LockedCables, free_motions
from dynid.experiment.estimator_choice import free_motion_defaults
from dynid.experiment.experiment import Experiment, LogEntry
from dynid.mechanism.cable import driven_cables
from dynid.mechanism.frame import quaternion_of, rotation
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.logs import ending, read_table
from dynid.problem import as_log, prepare
from dynid.report.json_file import plain
from dynid.robots.demo_file import FreeDemo
from dynid.robots.truth import SCHEMA, built_in_free, true_values
from dynid.simulation.files import write_both, write_log
from dynid.simulation.rehearsal import EXCITE, RANDOM, Rehearser
from dynid.simulation.simulation import Seed, Simulation

_MOTIONS = 12
FREE_LENGTH = 10.0  # s of each motion


@dataclass(frozen=True, eq=False)
class FreeSimulated:
    """Free motions of a robot with known parameters, before they are measured.

    Attributes:
        mechanism: The robot.
        settings: As requested.
        demo: True parameters, motions, rate and noise.
        robot: On its locked cables.
        motions: The simulated motions.
        lengths: Locked in each motion, shape (k, c), in [m].
        notices: Warnings.
    """

    mechanism: Mechanism
    settings: Simulation
    demo: FreeDemo
    robot: LockedCables
    motions: FreeMotions
    lengths: Float[Array, "k c"]
    notices: tuple[Notice, ...] = ()

    @property
    def values(self) -> Mapping[str, float]:
        """True standard parameters by name, SI."""
        return self.demo.truth

    @property
    def length(self) -> float:
        """Of each motion, in [s]."""
        return self.demo.duration

    def log(
        self,
        seed: Seed = None,
        name: str = "simulated",
        mechanism: Mechanism | None = None,
        *,
        anywhere: bool = False,
    ) -> Log:
        """One recording, one segment per motion; another seed gives other noise on the same motions.

        `anywhere`, as of driven robots, changes nothing: a motion begins with its release.
        """
        noise_seed = np.random.SeedSequence(self.settings.seed).spawn(1)[0] if seed is None else seed
        sigma = (self.demo.position_sigma, self.demo.angle_sigma)
        rng = np.random.default_rng(noise_seed)
        robot, payloads = mechanism or self.mechanism, self.settings.payloads
        return measured_log(robot, self.robot, self.motions, self.lengths, rng, sigma, payloads, name)

    def described(self) -> dict[str, str]:
        """Description of the simulation as text."""
        demo = self.demo
        samples = self.motions.q.shape[0] * self.motions.q.shape[1]
        return {
            "engine": "dynid, free motion on locked cables",
            "motion": f"{demo.motions} {self._source}",
            "log": f"{samples} samples, {demo.duration:g} s each at {demo.rate:g} Hz",
            "noise": f"{demo.position_sigma:.3g} m, {demo.angle_sigma:.3g} rad",
        }

    def noise(self) -> dict[str, str]:
        """Noise of its sensors as text."""
        return {"pose noise": f"{self.demo.position_sigma:.3g} m, {self.demo.angle_sigma:.3g} rad"}

    @property
    def _source(self) -> str:
        file = self.settings.motion.file
        return "random releases within the limits" if file is None else f"releases of {Path(file).name}"

    def document(self, log: str) -> dict[str, Any]:
        """The content of `NAME.truth.json`."""
        return {
            "schema": SCHEMA,
            "robot": self.mechanism.name,
            "log": log,
            "engine": "dynid",
            "seed": self.settings.seed,
            "parameters": plain(dict(self.demo.truth)),
            "choices": self.described(),
        }


def simulate_free(
    mechanism: Mechanism, settings: Simulation, released: Released | None = None
) -> FreeSimulated:
    """Free motions with the rate, length, truth, payloads and seed of the settings.

    They start as in a log if `released` is given or the motion is a file (a log, or `releases.csv` of
    `dynid excite`), else from random releases.

    The pose noise is that of a built-in experiment, else `position_sigma` of the sensing, both in metres
    and in radians.
    """
    file = settings.motion.file
    if released is None and file is not None:
        released = released_file(mechanism, file, settings.rate, settings.duration or FREE_LENGTH)
        settings = replace(settings, duration=settings.duration or released.duration)
    values, notices = true_values(mechanism, settings.truth, settings.mounted)
    built_in = built_in_free(mechanism)
    sigma = float(np.max(settings.sensing.position_sigma))
    demo = FreeDemo(
        truth=values,
        motions=len(released.starts) if released else built_in.motions if built_in else _MOTIONS,
        validation=0,
        rate=settings.rate,
        duration=settings.duration or FREE_LENGTH,
        position_sigma=sigma or (built_in.position_sigma if built_in else 0.0),
        angle_sigma=sigma or (built_in.angle_sigma if built_in else 0.0),
        seed=settings.seed,
    )
    with single_threaded_blas():
        releases = released or random_releases(mechanism, demo, settings.seed, settings.payloads)
        robot = LockedCables(mechanism, values, settings.payloads)
        lengths, rates = releases.lengths, released.velocities if released else None
        motions = free_motions(robot, values, lengths, releases.starts, demo.duration, demo.rate, rates)
        motions.refuse_slack()
    return FreeSimulated(mechanism, settings, demo, robot, motions, lengths, notices)


def write_free(simulated: FreeSimulated, path: Path) -> tuple[Path, Path]:
    """Write the log and `NAME.truth.json` next to it."""
    log = simulated.log()
    return write_both(path, lambda part: write_log(log, part), simulated.document(path.name))


def rehearsed(rehearser: Rehearser, k: int, entry: LogEntry, seed: int) -> FreeSimulated:
    """Free motions as recorded in a log, or from random releases."""
    plan = rehearser.plan
    if plan.motion == EXCITE:
        raise InputError(
            f"robot '{rehearser.true_robot.name}' swings freely: --motion excite is not available",
            remedy="run dynid excite first and give its releases.csv with --motion",
        )
    mounted = tuple(entry.payloads) or plan.simulation.payloads
    free = replace(plan.simulation, seed=seed, payloads=mounted)
    source = plan.motion or (entry.file if Path(entry.file).exists() else RANDOM)
    if source == RANDOM:
        rehearser.words[f"log {k + 1}"] = f"random releases (seed {seed})"
        return simulate_free(rehearser.true_robot, free)
    given = entry if plan.motion is None else LogEntry(source)
    experiment = plan.experiment if plan.motion is None else plan.experiment.changed(columns={})
    length = free.duration or FREE_LENGTH
    released = released_file(rehearser.robot, source, free.rate, length, given, experiment)
    rehearser.words[f"log {k + 1}"] = f"{len(released.starts)} free motions of {Path(source).name}"
    free = replace(free, rate=released.rate, duration=released.duration)
    return simulate_free(rehearser.true_robot, free, released)


_ROUNDS = 6  # attempts with smaller swings if the limits are violated


def free_logs(mechanism: Mechanism, demo: FreeDemo, seed: int) -> tuple[Log, Log]:
    """A log for the fit and one for validation: one segment per motion, noise on the measured pose."""
    releases = random_releases(mechanism, demo, seed)
    seeds = np.random.SeedSequence(seed).generate_state(3)
    parts = {
        f"{mechanism.name} swings": (np.arange(demo.motions), int(seeds[1])),
        f"{mechanism.name} validation": (
            np.arange(demo.motions, demo.motions + demo.validation),
            int(seeds[2]),
        ),
    }
    logs = [
        simulate_free_motions(
            mechanism,
            demo.truth,
            releases.lengths[index],
            releases.starts[index],
            rate=demo.rate,
            duration=demo.duration,
            position_sigma=demo.position_sigma,
            angle_sigma=demo.angle_sigma,
            seed=noise,
            name=name,
        )
        for name, (index, noise) in parts.items()
    ]
    return logs[0], logs[1]


def random_releases(
    mechanism: Mechanism, demo: FreeDemo, seed: int, mounted: tuple[str, ...] = ()
) -> Releases:
    """One release per motion of the experiment, each within the limits of the robot.

    Args:
        mechanism: With its cables and limits.
        demo: True parameters, number and duration of the motions.
        seed: Of the draws.
        mounted: Payloads on the robot, included in the tensions.
    """
    count = demo.motions + demo.validation
    cables = tuple(cable.name for cable in driven_cables(mechanism))
    limits = free_limits(mechanism, cables)
    releasing = Releasing(mechanism, dict(demo.truth), limits, demo.duration, demo.rate, mounted)
    rng = np.random.default_rng(int(np.random.SeedSequence(seed).generate_state(1)[0]))
    rest = releasing.rests(rng, 2 * count)
    releases = releasing.drawn(rng, rest[rng.permutation(len(rest))[: 2 * count]])
    for _ in range(_ROUNDS):
        use = releasing.over(releases, demo.duration)[1]
        if np.count_nonzero(use <= 1.0) >= count:
            return releases.picked(np.flatnonzero(use <= 1.0)[:count])
        releases = releasing.smaller(releases, use)
    raise NoResultError(
        f"fewer than {count} free motions satisfy the limits of robot '{mechanism.name}'; widen `limits:`"
    )


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
