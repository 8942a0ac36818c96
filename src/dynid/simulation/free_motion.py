"""Virtual robots on locked cables: free motions from random releases, measured as their experiment says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.common.threads import single_threaded_blas
from dynid.dynamics.free_motion import FreeMotions, free_motions
from dynid.dynamics.locked import LockedCables
from dynid.excitation.free_motion import measured_log
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.report.json_file import plain
from dynid.robots.truth import SCHEMA, built_in_free, true_values
from dynid.simulation.files import write_both
from dynid.simulation.free_demo import FreeDemo, random_releases
from dynid.simulation.simulation import Seed, Simulation
from dynid.simulation.write import write_log

_MOTIONS = 12
_LENGTH = 10.0  # s of each motion


@dataclass(frozen=True, eq=False)
class FreeSimulated:
    """Free motions of a robot whose parameters are known, before they are measured.

    Attributes:
        mechanism: The robot.
        settings: As asked.
        demo: Truth, motions, rate and noise.
        robot: On its locked cables.
        motions: What it did.
        lengths: Locked in each motion, shape (k, c), in [m].
        notices: What to know of it.
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
        """One measurement, a segment a motion; another seed gives other noise of the same motions."""
        own = np.random.SeedSequence(self.settings.seed).spawn(1)[0] if seed is None else seed
        sigma = (self.demo.position_sigma, self.demo.angle_sigma)
        rng = np.random.default_rng(own)
        robot, payloads = mechanism or self.mechanism, self.settings.payloads
        return measured_log(robot, self.robot, self.motions, self.lengths, rng, sigma, payloads, name)

    def described(self) -> dict[str, str]:
        """What was simulated, in words."""
        demo = self.demo
        samples = self.motions.q.shape[0] * self.motions.q.shape[1]
        return {
            "engine": "dynid, free motion on locked cables",
            "motion": f"{demo.motions} random releases within the limits",
            "log": f"{samples} samples, {demo.duration:g} s each at {demo.rate:g} Hz",
            "noise": f"{demo.position_sigma:.3g} m, {demo.angle_sigma:.3g} rad",
        }

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


def simulate_free(mechanism: Mechanism, settings: Simulation) -> FreeSimulated:
    """Free motions with the rate, length, truth, payloads and seed of the settings.

    Noise of the pose is that of a built-in experiment, else `position_sigma` of the sensing, for metres and
    radians alike.
    """
    if settings.motion.file is not None:
        raise InputError(
            "a robot on locked cables is let go: it follows no trajectory",
            file=settings.motion.file,
            remedy="leave --motion out; `dynid excite` chooses good releases",
        )
    values, told = true_values(mechanism, settings.truth)
    own = built_in_free(mechanism)
    sigma = float(np.max(settings.sensing.position_sigma))
    demo = FreeDemo(
        truth=values,
        motions=own.motions if own else _MOTIONS,
        validation=0,
        rate=settings.rate,
        duration=settings.duration or _LENGTH,
        position_sigma=sigma or (own.position_sigma if own else 0.0),
        angle_sigma=sigma or (own.angle_sigma if own else 0.0),
        seed=settings.seed,
    )
    with single_threaded_blas():
        releases = random_releases(mechanism, demo, settings.seed, settings.payloads)
        robot = LockedCables(mechanism, values, settings.payloads)
        motions = free_motions(robot, values, releases.lengths, releases.starts, demo.duration, demo.rate)
        motions.refuse_slack()
    return FreeSimulated(mechanism, settings, demo, robot, motions, releases.lengths, told)


def write_free(found: FreeSimulated, path: Path) -> tuple[Path, Path]:
    """Write the log and `NAME.truth.json` beside it."""
    log = found.log()
    return write_both(path, lambda part: write_log(log, part), found.document(path.name))
