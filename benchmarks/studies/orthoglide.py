"""Orthoglide on point-to-point motion: motors, friction and a payload from 13 parameters, over seeds.

Ten runs between random points at 2.5 ms (about 23 000 samples in all), forces with 4 N of noise,
positions in steps of 1 um, without and with a payload of 2 kg. Equal legs leave 23 parameters; the
leg-symmetry paper keeps 13 of them: the platform's mass M_RP and inertia, friction and offset of
each motor. What the other ten did goes into M_RP, which is wrong by some percent; its change with
the payload is not.

Run:  python benchmarks/studies/orthoglide.py [--seeds 5]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from dynid import Experiment, Mechanism, load_robot
from dynid.base.base import BaseSet
from dynid.base.structural import structural_base
from dynid.base.system import base_system
from dynid.estimator.estimator import estimator_named
from dynid.excitation.random_motion import random_point_to_point
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.variant import variant
from dynid.motion.log import Log
from dynid.pipeline import build_system, prepare
from dynid.projection.model import MODELS
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.essential import keep_parameters

KEEP = ("M_platform", "Ia_*", "Fv_*", "Fs_*", "Off_*")
RATE = 400.0  # Hz
FORCE_SIGMA = 4.0  # N
ENCODER = 1e-6  # m


@dataclass(frozen=True)
class Fit:
    """One estimate.

    Attributes:
        values, truth: Parameter -> found and true value, SI.
        condition, condition_scaled: Of W, and of W with columns of length one.
    """

    values: Mapping[str, float]
    truth: Mapping[str, float]
    condition: float
    condition_scaled: float

    def worst(self, symbol: str) -> float:
        """Largest error of Ia, Fv or Fs over the motors, in percent."""
        names = [name for name in self.values if name.startswith(f"{symbol}_slide")]
        return max(abs(100.0 * (self.values[name] / self.truth[name] - 1.0)) for name in names)


@dataclass(frozen=True)
class Result:
    """All 23 parameters, the paper's 13, and the payload from the change of M_RP, in [kg]."""

    all: Fit
    few: Fit
    payload: float


@cache
def robot() -> Mechanism:
    """The built-in robot."""
    return load_robot("orthoglide")


@cache
def truth() -> Mapping[str, float]:
    """True standard parameters by name."""
    return read_demo(demo_file("orthoglide"), robot()).truth


@cache
def tied_base() -> BaseSet:
    """The 23 base parameters of equal legs."""
    bare = variant(robot())
    return structural_base(bare, MODELS["inverse"], parameter_table(bare), None, ties=("legs",))


def recorded(seed: int, payloads: tuple[str, ...] = (), runs: int = 10, points: int = 25) -> list[Log]:
    """Runs between random points, each with its own motion and noise."""
    states = [int(state) for state in np.random.SeedSequence(seed).generate_state(2 * runs)]
    logs = []
    for i in range(runs):
        motion = random_point_to_point(robot(), states[2 * i], points=points)
        log = simulate_log(
            robot(),
            truth(),
            motion,
            rate=RATE,
            duration=motion.period,
            encoder_resolution=ENCODER,
            torque_sigma=FORCE_SIGMA,
            seed=states[2 * i + 1],
            payloads=payloads,
            name=f"run {i + 1}",
        )
        # The payload is to be found as a change of the platform: the model does not know of it.
        logs.append(replace(log, payloads=()))
    return logs


def fits(logs: list[Log]) -> tuple[Fit, Fit]:
    """The estimates with 23 and with 13 parameters."""
    data = base_system(build_system(prepare(robot(), logs, Experiment(robot=robot()))), tied_base())
    solution = estimator_named("wls")(data.system)
    known = {name: float(value or 0.0) for name, value in data.values_of(truth()).items()}
    found = []
    for one, kept in ((solution, range(len(data.names))), _few(data.system, solution)):
        values = {data.names[i]: float(x) for i, x in zip(kept, one.chi, strict=True)}
        found.append(Fit(values, known, one.condition, one.condition_scaled))
    return found[0], found[1]


def _few(system, solution):
    reduced = keep_parameters(system, solution, KEEP)
    return reduced.solution, reduced.kept


def study(seed: int, runs: int = 10, points: int = 25) -> Result:
    """Everything for one seed."""
    everything, few = fits(recorded(2 * seed, (), runs, points))
    _, loaded = fits(recorded(2 * seed + 1, ("payload",), runs, points))
    return Result(everything, few, loaded.values["M_platform_R"] - few.values["M_platform_R"])


def main() -> None:
    """Print errors, payload and condition numbers per seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    print("largest error over the motors in percent; payload from the change of M_RP; condition of W")
    print(
        f"{'seed':<6}{'parameters':<12}{'Ma':>7}{'Fv':>7}{'Fs':>7}{'payload':>12}{'condition':>12}{'scaled':>9}"
    )
    for seed in range(1, parser.parse_args().seeds + 1):
        result = study(seed)
        mass = f"{result.payload:.4f} kg"
        for fit, payload in ((result.all, ""), (result.few, mass)):
            line = f"{seed:<6}{len(fit.values):<12}"
            line += "".join(f"{fit.worst(symbol):>7.2f}" for symbol in ("Ia", "Fv", "Fs"))
            print(f"{line}{payload:>12}{fit.condition:>12.0f}{fit.condition_scaled:>9.1f}")


if __name__ == "__main__":
    main()
