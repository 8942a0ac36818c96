"""Simulated robots on locked cables: free motions from random releases, measured as in their experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import single_threaded_blas
from dynid.common.notices import Notice
from dynid.dynamics.free_motion import FreeMotions, free_motions
from dynid.dynamics.locked import LockedCables
from dynid.excitation.free_motion import measured_log
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.report.json_file import plain
from dynid.robots.demo_file import FreeDemo
from dynid.robots.truth import SCHEMA, built_in_free, true_values
from dynid.simulation.files import write_both
from dynid.simulation.free_demo import random_releases
from dynid.simulation.release_file import Released, released_file
from dynid.simulation.simulation import Seed, Simulation
from dynid.simulation.write import write_log

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

    def log(self, seed: Seed = None, name: str = "simulated", mechanism: Mechanism | None = None) -> Log:
        """One recording, one segment per motion; another seed gives other noise on the same motions."""
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
    values, notices = true_values(mechanism, settings.truth)
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


def write_free(found: FreeSimulated, path: Path) -> tuple[Path, Path]:
    """Write the log and `NAME.truth.json` next to it."""
    log = found.log()
    return write_both(path, lambda part: write_log(log, part), found.document(path.name))
