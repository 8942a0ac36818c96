"""Detection rate of faults that a good fit hides, and false-alarm rate on clean logs.

    python benchmarks/silent_errors.py [--runs 40] [--fault NAME ...]

A simulated arm, 10 s at 1 kHz, effort noise 0.2 N m. Every run has its own motion, noise and faulty joint:
an effort delay of 1 ms, a joint zero error of 5 degrees, or a drive gain error of 10 % with a known payload.
Undetectable faults are not tested: the zero of the last joint is absorbed by the parameters of its link.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from dynid.common.errors import NoResultError
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism, Payload
from dynid.mechanism.parameters import parameter_table
from dynid.motion.log import Log
from dynid.pipeline import identify_logs
from dynid.simulation.prescribed import simulate_log
from dynid.simulation.sensors import effort_noise, quantised
from dynid.statistics.estimate import Estimate

FAULTS = ("none", "delay", "zero", "gain")
CODES = {"delay": "delay", "zero": "zero-offset", "gain": "gain"}
ASKED = ("delay", "zero-offset", "gain", "friction-speed", "friction-load", "outlying-run", "burst")
BALLAST = 2.0  # [kg]
_NOISE, _RATE, _SECONDS = 0.2, 1000.0, 10.0
_ENCODER = 2.0 * np.pi / 2**17  # [rad]
_FRICTION = ((0.5, 0.8), (0.6, 0.9), (0.3, 0.5), (0.4, 0.6), (0.2, 0.3), (0.2, 0.3))  # [N m s/rad], [N m]
_DELAY, _ZERO, _GAIN = 1e-3, np.deg2rad(5.0), 1.1


def arm() -> tuple[Mechanism, dict[str, float]]:
    """The arm with a payload of known mass in its hand, and its true parameters."""
    robot = load_robot(Path(__file__).with_name("sample_arm.yaml"))
    known = {"M": BALLAST, "MX": 0.02 * BALLAST, "MY": 0.0, "MZ": 0.3 * BALLAST}
    robot = replace(robot, payloads={"ballast": Payload("ballast", "hand", known=known)})
    truth = {one.name: 0.0 for one in parameter_table(robot)}
    rods = {"upper_arm": (1.0, 1.0), "lower_arm": (1.0, 1.0), "hand": (1.0, 1.0)}
    rods |= {"yoke": (0.1, 0.01), "cross": (0.1, 0.01), "knuckle": (0.1, 0.01)}
    for body, (mass, inertia) in rods.items():
        com = 0.5 if mass == 1.0 else 0.0
        truth |= {f"M_{body}": mass, f"MZ_{body}": mass * com, f"ZZ_{body}": inertia}
        truth |= {f"{s}_{body}": inertia + mass * com**2 for s in ("XX", "YY")}
    for joint, (viscous, dry) in zip(robot.coordinates, _FRICTION, strict=True):
        truth |= {f"Fv_{joint}": viscous, f"Fs_{joint}": dry}
    truth |= {f"{s}_ballast": v for s, v in known.items()}
    truth |= {"XX_ballast": 0.2, "YY_ballast": 0.2, "ZZ_ballast": 0.01}
    return robot, truth


def clean_logs(seed: int, loaded: bool) -> tuple[Mechanism, list[Log]]:
    """Logs without noise: one unloaded, and one with the known payload if requested."""
    robot, truth = arm()
    logs = []
    for i, mounted in enumerate([(), ("ballast",)] if loaded else [()]):
        motion = random_motion(robot, seed=7000 + 10 * seed + i, frequency=1.0 / _SECONDS, draws=6)
        log = simulate_log(
            robot, truth, motion, rate=_RATE, duration=_SECONDS, payloads=mounted, name=f"run {i + 1}"
        )
        logs.append(log)
    return robot, logs


def spoiled(log: Log, fault: str, victim: int, rng: np.random.Generator) -> Log:
    """The log as recorded by a faulty set-up."""
    q, tau = log.q.copy(), log.tau.copy()
    if fault == "delay":
        steps = round(_DELAY / log.dt)
        tau[steps:] = log.tau[:-steps]
    if fault == "zero":
        q[:, victim] -= _ZERO
    if fault == "gain":
        tau[:, victim] *= _GAIN
    tau = tau + _NOISE * effort_noise(rng, *tau.shape)
    return replace(log, q=quantised(q, _ENCODER), tau=tau)


def one_run(fault: str, seed: int) -> tuple[set[str], str]:
    """Codes of the warnings of one run, and the faulty joint."""
    rng = np.random.default_rng([seed, FAULTS.index(fault)])
    loaded = fault in ("gain", "none")
    robot, logs = clean_logs(seed, loaded)
    joints = range(len(robot.actuators) - 1) if fault == "zero" else range(len(robot.actuators))
    victim = int(rng.choice(list(joints)))
    logs = [spoiled(log, fault, victim, rng) for log in logs]
    try:
        estimate = identify_logs(robot, logs, (), Experiment(robot=robot))
    except NoResultError as error:  # weights that do not settle: the warnings are there all the same
        estimate = cast(Estimate, error.estimate)
    blamed = robot.actuators[victim].name
    codes = set()
    for notice in estimate.warnings:
        if notice.code in ASKED:
            codes.add(notice.code)
            if fault in CODES and notice.code == CODES[fault] and f"'{blamed}'" in notice.text:
                codes.add("victim")
    return codes, blamed


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--fault", nargs="*", default=list(FAULTS), choices=FAULTS)
    given = parser.parse_args()
    for fault in given.fault:
        found: Counter[str] = Counter()
        missed = []
        for seed in range(given.runs):
            codes, victim = one_run(fault, seed)
            found.update(codes)
            found["any"] += bool(codes)
            if fault in CODES and CODES[fault] not in codes:
                missed.append(victim)
        shown = ", ".join(f"{code} {n}/{given.runs}" for code, n in sorted(found.items()))
        print(f"{fault}: {shown}" + (f"; missed with {', '.join(missed)}" if missed else ""), flush=True)


if __name__ == "__main__":
    main()
