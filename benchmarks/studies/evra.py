"""evr@ by the inverse, power and energy models: torque error and friction, over rates and kinds of logs.

Forces carry 1 N of noise and logged velocities 1 mm/s; positions are in steps of 1 um. The error is
that of the torques on another motion: || tau - tau_true || / || tau_true ||, both from exact states, so
that only the parameters count. Parts:

    shows   51 000 samples at 51 Hz and at 1 kHz; friction of both directions in its 95 % intervals
    rates   one length of motion at 20, 51, 100 and 1000 Hz
    hard    the same length without any filter, and with coarse encoders

Run:  python benchmarks/studies/evra.py [shows] [rates] [hard] [--seeds 1]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from dynid import Experiment, Mechanism, load_robot
from dynid.base.base import BaseSet
from dynid.base.structural import structural_base
from dynid.base.system import base_system
from dynid.estimator.estimator import estimator_named
from dynid.excitation.random_motion import random_motion
from dynid.motion.log import Log
from dynid.pipeline import build_system, prepare
from dynid.problem import Problem
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.prescribed import inverse_efforts, simulate_log
from dynid.statistics.covariance import covariance_of
from dynid.statistics.uncertainty import UncertaintySettings, interval95

MODELS = ("inverse", "power", "energy")
RATES = (20.0, 51.0, 100.0, 1000.0)  # Hz
FORCE_SIGMA = 1.0  # N
VELOCITY_SIGMA = 1e-3  # m/s
ENCODER = 1e-6  # m
SECONDS = 100.0  # of motion, where the rate is what differs
MEASURED = {"filter": {"velocity": "measured"}}
_BASES: dict[tuple[str, ...], BaseSet] = {}


@dataclass(frozen=True)
class Fit:
    """Result of one model.

    Attributes:
        error: Of the torques on fresh motion, in percent.
        held: How many of the friction parameters' 95 % intervals hold the truth.
        friction: How many friction parameters there are.
    """

    error: float
    held: int
    friction: int


@cache
def robot() -> Mechanism:
    """The built-in robot."""
    return load_robot("evra")


@cache
def truth() -> Mapping[str, float]:
    """True standard parameters by name."""
    return read_demo(demo_file("evra"), robot()).truth


@cache
def fresh() -> tuple[np.ndarray, ...]:
    """Measured coordinates, rates and true torques of a motion that no log has."""
    motion = random_motion(robot(), 20190, harmonics=5, frequency=0.1, draws=1)
    t = np.arange(0.0, motion.period, 0.02)
    states = motion.q(t), motion.dq(t), motion.ddq(t)
    return *states, inverse_efforts(robot(), truth(), *states)


def recorded(
    rate: float,
    samples: int,
    seed: int = 1,
    *,
    encoder: float = ENCODER,
    motions: int = 10,
) -> list[Log]:
    """Runs of different motions, `samples` in all, with noise on forces and velocities.

    Args:
        rate: In [Hz].
        samples: Of all runs together.
        seed: Of motions and noise.
        encoder: Step of the positions, in [m].
        motions: Runs, each with its own motion.
    """
    logs = []
    for i, state in enumerate(np.random.SeedSequence(seed).generate_state(motions)):
        motion = random_motion(robot(), int(state), harmonics=5, frequency=0.1, draws=1)
        log = simulate_log(
            robot(),
            truth(),
            motion,
            rate=rate,
            duration=samples / rate / motions,
            encoder_resolution=encoder,
            torque_sigma=FORCE_SIGMA,
            seed=int(state),
            velocity=True,
            name=f"run {i + 1}",
        )
        noise = np.random.default_rng([seed, i]).normal(size=log.q.shape)
        logs.append(replace(log, dq=log.dq + VELOCITY_SIGMA * noise))
    return logs


def fit(logs: Sequence[Log], model: str, options: Mapping[str, Any] = MEASURED) -> Fit:
    """Identify by a model; `options` as in an experiment file."""
    problem = prepare(robot(), logs, Experiment(robot=robot(), model=model, **options))
    data = base_system(build_system(problem), _base(problem))
    solution = estimator_named("wls")(data.system)
    q, dq, ddq, tau = fresh()
    found = inverse_efforts(robot(), data.S @ solution.chi + data.base.c, q, dq, ddq)
    error = 100.0 * np.linalg.norm(found - tau) / np.linalg.norm(tau)
    spread = covariance_of(data.blocked(), solution, UncertaintySettings())
    low, high = interval95(solution.chi, spread.covariance, spread.dof).T
    at = [i for i, name in enumerate(data.names) if name[:2] in ("Fv", "Fs")]
    true = np.array([truth()[data.names[i]] for i in at])
    held = int(np.sum((low[at] <= true) & (true <= high[at])))
    return Fit(float(error), held, len(at))


def _base(problem: Problem) -> BaseSet:
    """Structural base parameters: the same for all logs."""
    key = (problem.model.name, *problem.directions.names)
    if key not in _BASES:
        _BASES[key] = structural_base(
            problem.mechanism, problem.model, problem.parameters, problem.directions
        )
    return _BASES[key]


def shows(seed: int) -> None:
    """Print the torque errors of 51 000 samples, and friction."""
    print(f"\n51 000 samples, seed {seed}: torque error, friction parameters in their 95 % intervals")
    for rate, models in ((51.0, MODELS), (1000.0, ("inverse",))):
        logs = recorded(rate, 51000, seed)
        for model in models:
            found = fit(logs, model)
            print(f"{model:<10}{rate:>6.0f} Hz{found.error:>9.4f} %{found.held:>6} of {found.friction}")


def rates(seed: int) -> None:
    """Print the torque errors over the rate of logs of one length."""
    print(f"\n{SECONDS:.0f} s of motion, seed {seed}: torque error in percent")
    print(f"{'rate':<10}" + "".join(f"{model:>10}" for model in MODELS))
    for rate in RATES:
        logs = recorded(rate, round(rate * SECONDS), seed)
        line = "".join(f"{fit(logs, model).error:>10.3f}" for model in MODELS)
        print(f"{rate:>5.0f} Hz  {line}")


DERIVED = {"filter": {"velocity": "derived"}}
HARD: Mapping[str, tuple[float, Mapping[str, Any]]] = {  # encoder step in [m], options
    "velocities derived from positions": (ENCODER, DERIVED),
    "no filter": (ENCODER, {"filter": {"kind": "none", "velocity": "measured"}}),
    "no filter, velocities derived": (ENCODER, {"filter": {"kind": "none", "velocity": "derived"}}),
    "encoder steps of 0.1 mm": (1e-4, MEASURED),
    "the same, velocities derived": (1e-4, DERIVED),
}


def hard(seed: int) -> None:
    """Print the torque errors for logs with poor accelerations, at 51 Hz and 1 kHz."""
    for rate in (51.0, 1000.0):
        print(f"\n{SECONDS:.0f} s at {rate:.0f} Hz, seed {seed}: torque error in percent")
        print(f"{'log':<36}" + "".join(f"{model:>10}" for model in MODELS))
        for name, (encoder, options) in HARD.items():
            logs = recorded(rate, round(rate * SECONDS), seed, encoder=encoder)
            line = "".join(f"{fit(logs, model, options).error:>10.3f}" for model in MODELS)
            print(f"{name:<36}{line}")


PARTS = {"shows": shows, "rates": rates, "hard": hard}


def main() -> None:
    """Print the requested parts; the first two by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="shows, rates, hard; default the first two")
    parser.add_argument("--seeds", type=int, default=1)
    chosen = parser.parse_args()
    for part in chosen.parts or ("shows", "rates"):
        for seed in range(1, chosen.seeds + 1):
            PARTS[part](seed)


if __name__ == "__main__":
    main()
