"""Share of 95 % intervals that hold the truth, for every parameter, with fresh noise in every draw.

    tensions  cable4, model `inverse`: force cells 0.5 N, platform 0.2 mm and 0.4 mrad; four motions of 5 s
    tensions3 the same with cable3
    cells     as tensions, gains and biases of the force cells unknown, the mass of the platform known
    whole     cable4, free motion, whole pose seen by markers of 0.2 mm; eight motions of 5 s
    partial   the same with `pose: free`: x and y alone, lengths of the cables estimated
    gains     gains of a two-joint arm whose friction the model lacks, nine runs of three motions
    gains_ur5, gains_panda
              gains of an arm with a weighed load of 4 kg: Stribeck friction and friction under load that the
              model lacks; three motions, each recorded once without and twice with the load
    ur5, dualv, orthoglide
              the robot's own experiment with new motions and noise; every setting is chosen by held-out error
    ur5_friction
              the same with friction that grows with the root of the speed, which the description lacks: more
              terms are chosen

With 40 draws a share of 95 % has a deviation of 3.4 %.

Run:  python -m benchmarks.held_intervals STUDY [--draws 40] [--seed 70000]
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from tests.free_oscillations import TRUTH, as_log, oscillations
from tests.test_gains import gains_of_an_arm
from tests.test_repeats import JOINTS, NINE, arm_with_other_friction, held
from tests.test_rows_without_effort import CHI, fitted

from dynid import Experiment
from dynid.choice.choose import choose
from dynid.common.errors import InputError
from dynid.estimator.settings import GainSettings, TotalMass
from dynid.excitation.random_motion import random_motion
from dynid.fit import fit_task
from dynid.mechanism.load import load_robot
from dynid.problem import as_asked
from dynid.problem import as_log as prepared
from dynid.robots.demo_file import demo_file, read_demo
from dynid.robots.truth import built_in_free
from dynid.simulation.demo import built_in_experiment
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.estimate import ParameterEstimate
from dynid.unknown import Task

Held = dict[str, tuple[bool, float]]
MARKER_NOISE = 2e-4
LOAD = 4.0  # kg
ROOT = 0.5  # of the dry friction, at 1 rad/s
CELL_GAINS, CELL_BIAS = np.array([0.8, 1.1, 1.25, 0.9]), np.array([3.0, -2.0, 1.0, 4.0])


def _held(parameters: Sequence[ParameterEstimate], truth: Mapping[str, float]) -> Held:
    """Whether each interval holds the truth, and the error in sigma."""
    return {
        p.name: (p.ci95[0] <= truth[p.name] <= p.ci95[1], (p.value - truth[p.name]) / p.sigma)
        for p in parameters
    }


def tensions(seed: int) -> Held:
    """Measured tensions on fewer cables than freedoms."""
    return _held(fitted(seed).parts.parameters, CHI)


def tensions3(seed: int) -> Held:
    """The same with three cables."""
    truth = built_in_free(load_robot("cable3")).truth
    return _held(fitted(seed, robot="cable3").parts.parameters, truth)


def cells(seed: int) -> Held:
    """Tensions of force cells with unknown gain and bias; the platform was weighed."""
    settings = GainSettings(total_mass=TotalMass(CHI["M_platform"]))
    fit = fitted(seed, bias=CELL_BIAS / CELL_GAINS, gain=CELL_GAINS, gains=settings, drive=("Off",))
    truth = dict(CHI)
    for k, (gain, bias) in enumerate(zip(CELL_GAINS, CELL_BIAS, strict=True)):
        truth |= {f"gain_cable{k + 1}": gain, f"Off_cable{k + 1}": -bias}
    return _held([p for p in fit.parts.parameters if p.sigma], truth)


def _free(seed: int, **options: object) -> Held:
    robot = load_robot("cable4")
    experiment = Experiment(robot=robot, **options)
    log = prepared(as_log(robot, oscillations(8, 5.0), MARKER_NOISE, seed), robot, experiment)
    fit = fit_task(Task(as_asked(robot, experiment), (log,), experiment))
    truth = fit.true_values(TRUTH)
    return _held([p for p in fit.parts.parameters if p.name in truth], truth)


def whole(seed: int) -> Held:
    """Free motion, whole pose."""
    return _free(seed)


def partial(seed: int) -> Held:
    """Free motion, x and y alone."""
    return _free(seed, internal={"pose": "free", "free": ("x", "y")})


def gains(seed: int) -> Held:
    """Gains of an arm with friction that the model lacks."""
    hits = held(*arm_with_other_friction(seed, NINE))
    return {f"gain{k + 1}": (bool(hits[k]), float("nan")) for k in range(JOINTS)}


def arm_gains(name: str, seed: int) -> Held:
    """Gains of an arm with friction that the model lacks, through the whole fit."""
    return _held(*gains_of_an_arm(name, seed))


def chosen_settings(robot: str, seed: int) -> Held:
    """The robot's experiment, its settings chosen as for a user who gives none."""
    demo = built_in_experiment(robot, seed)
    experiment = Experiment(robot=demo.mechanism, model=demo.model)
    task = choose(Task(demo.mechanism, tuple(demo.logs), experiment)).task
    fit = fit_task(task)
    truth = fit.true_values(demo.truth)
    print(robot, seed, task.experiment.estimator, task.experiment.drive, flush=True)
    return _held([p for p in fit.parts.parameters if p.name in truth], truth)


def more_friction(seed: int) -> Held:
    """The ur5 with terms Fr that its description lacks, settings chosen as for a user who gives none."""
    robot = load_robot("ur5")
    demo = read_demo(demo_file("ur5"), robot)
    real = replace(robot, drive={name: (*terms, "Fr") for name, terms in robot.drive.items()})
    dry = {name: value for name, value in demo.truth.items() if name.startswith("Fs_")}
    truth = {**demo.truth, **{f"Fr_{name[3:]}": ROOT * value for name, value in dry.items()}}
    logs = []
    for k in range(2):
        motion = random_motion(robot, seed=2 * seed + k, harmonics=demo.harmonics, frequency=demo.frequency)
        how = {"encoder_resolution": demo.encoder, "torque_sigma": demo.torque_sigma}
        period = motion.period * max(1, round(10.0 / motion.period))
        logs.append(
            simulate_log(
                real, truth, motion, rate=250.0, duration=period, seed=2 * seed + k, name=f"run {k}", **how
            )
        )
    task = choose(Task(robot, tuple(logs), Experiment(robot=robot))).task
    fit = fit_task(task)
    named = {p.name for p in fit.problem.parameters}
    values = fit.true_values({name: value for name, value in truth.items() if name in named})
    print("ur5", seed, task.experiment.estimator, task.experiment.drive, flush=True)
    return _held([p for p in fit.parts.parameters if p.name in values], values)


STUDIES: dict[str, Callable[[int], Held]] = {
    "tensions": tensions,
    "tensions3": tensions3,
    "cells": cells,
    "whole": whole,
    "partial": partial,
    "gains": gains,
    **{f"gains_{name}": functools.partial(arm_gains, name) for name in ("ur5", "panda")},
    **{name: functools.partial(chosen_settings, name) for name in ("ur5", "dualv", "orthoglide")},
    "ur5_friction": more_friction,
}


def show(study: str, found: Sequence[Held]) -> None:
    """Print a line per parameter."""
    for name in found[0] if found else ():
        hits, z = np.array([draw[name] for draw in found if name in draw]).T
        print(
            f"{name:18s} {100 * hits.mean():5.1f} % of {len(hits)};"
            f" error in sigma {z.mean():6.2f} +- {z.std():.2f}"
        )
    pooled = [hit for draw in found for hit, _ in draw.values()]
    print(f"{study}: {100 * np.mean(pooled):.1f} % of {len(pooled)} intervals hold the truth", flush=True)


def main() -> None:
    """Draw, and print the shares after every ten draws."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--seed", type=int, default=70000)
    chosen = parser.parse_args()
    found: list[Held] = []
    begin = time.process_time()
    for seed in range(chosen.seed, chosen.seed + chosen.draws):
        try:
            found.append(STUDIES[chosen.study](seed))
        except InputError as error:
            print(f"seed {seed} refused: {error}", flush=True)
        print(f"{len(found)} draws, {time.process_time() - begin:.0f} s CPU", flush=True)
        if len(found) % 10 == 0 or seed == chosen.seed + chosen.draws - 1:
            show(chosen.study, found)


if __name__ == "__main__":
    main()
