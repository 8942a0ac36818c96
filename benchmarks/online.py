"""`dynid.Online` on simulated logs of a robot: a payload of 1 kg is mounted during the motion.

`python -m benchmarks.online [--robot ur5] [--draws 12]`. Each draw has another motion, other noise, and
other errors of the
result: its base parameters are the true ones plus an error of the covariance of an identification of the
demo. Printed are the time until the change is found, the error of the mass 0.3 s after it and at the end, how
many of mass and centre of mass lie within 1.96 sigma at the end, and CPU time per sample at 1 kHz (100 %:
one core). One thread.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
from benchmarks.controller_code import exact

from dynid import Online
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.mechanism.frame import Frame
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Payload
from dynid.motion.log import Log
from dynid.pipeline import identify_logs
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.demo import built_in_experiment
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.effort_prediction import covariance_root
from dynid.statistics.estimate import Estimate

RATE, STEP, END = 1000.0, 1500, 3000
MASS, COM = 1.0, np.array([0.02, 0.03, 0.08])


def identified(name: str) -> Estimate:
    """A result of the demo, with the true base parameters: its covariance is used."""
    demo = built_in_experiment(name)
    found = identify_logs(demo.mechanism, demo.logs, (), Experiment(robot=name, auto="off"))
    true = {one.name: one.value for one in exact(load_robot(name), name).parameters}
    return replace(found, parameters=tuple(replace(one, value=true[one.name]) for one in found.parameters))


def drawn(estimate: Estimate, rng: np.random.Generator) -> Estimate:
    """The same with an error of its own covariance."""
    root = covariance_root(estimate.covariance)
    error = iter(root @ rng.normal(size=root.shape[1]))
    return replace(
        estimate,
        parameters=tuple(
            replace(one, value=one.value + next(error)) if one.sigma is not None else one
            for one in estimate.parameters
        ),
    )


def recorded(name: str, seed: int, loaded: bool) -> Log:
    """Three seconds, with or without the payload on the last body."""
    robot = load_robot(name)
    demo = read_demo(demo_file(name), robot)
    motion = random_motion(robot, seed=seed, harmonics=demo.harmonics, frequency=demo.frequency)
    box = dict.fromkeys(("XY_box", "XZ_box", "YZ_box", "MX_box", "MY_box", "MZ_box"), 0.0)
    box |= {"M_box": MASS, "XX_box": 1e-3, "YY_box": 1e-3, "ZZ_box": 1e-3}
    return simulate_log(
        replace(robot, payloads={"box": Payload("box", robot.joints[-1].child, Frame(np.eye(3), COM))}),
        {**demo.truth, **box},
        motion,
        rate=RATE,
        duration=END / RATE,
        encoder_resolution=demo.encoder,
        torque_sigma=demo.torque_sigma,
        seed=seed,
        payloads=("box",) if loaded else (),
    )


def main() -> None:
    """One line for each draw, then the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--robot", default="ur5")
    asked = parser.parse_args()
    known = identified(asked.robot)
    delays, covered, loads = [], [], []
    for k in range(asked.draws):
        empty, full = (recorded(asked.robot, 100 + k, loaded) for loaded in (False, True))
        online = Online(drawn(known, np.random.default_rng(k)), rate=RATE)
        begin, early = time.process_time(), np.nan
        for i in range(END):
            log = empty if i < STEP else full
            online.update(log.q[i], log.tau[i])
            if i == STEP + 299:
                early = online.payload.mass - MASS
        loads.append((time.process_time() - begin) / (END / RATE))
        after = [t - STEP / RATE for t in online.changes if t > STEP / RATE]
        delays.append(after[0] if after else np.inf)
        now = online.payload
        errors = np.array([now.mass - MASS, *(now.com - COM)]) / [now.mass_sigma, *now.com_sigma]
        covered += list(np.abs(errors) < 1.96)
        false = len(online.changes) - len(after)
        print(
            f"draw {k:2d}: found after {delays[-1]:.3f} s, false alarms {false}, mass"
            f" {early:+.3f} kg at 0.3 s,"
            f" {now.mass - MASS:+.4f} kg at the end (sigma {now.mass_sigma:.4f}),"
            f" in sigmas {' '.join(f'{x:+.1f}' for x in errors)}, load {100.0 * loads[-1]:.1f} %",
            flush=True,
        )
    print(
        f"found within {max(delays):.3f} s, {np.mean(covered):.0%} of {len(covered)} numbers within 1.96"
        f" sigma, load {100.0 * np.median(loads):.1f} % of one core"
    )


if __name__ == "__main__":
    main()
