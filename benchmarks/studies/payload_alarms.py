"""Payloads from joint efforts and an unloaded result: false alarms and coverage on clean simulated logs.

Each case draws an unloaded and a loaded log of a built-in robot anew, along different motions, with noise and
encoders of its demo, identifies both, and looks at the payload: warnings, and whether the 95 % intervals of
its parameters contain the truth. Masses and seeds differ; every other case has no friction. Parts:

    clean   no fault: every warning of a residual test is false
    zero    the zero of the second joint of the loaded log is off by a degree: it must be named

Run:  python benchmarks/studies/payload_alarms.py [clean] [zero] [--seeds 10] [--robots ur5 panda]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dynid import load_robot, payload_from_torques
from dynid.excitation.random_motion import random_motion
from dynid.mechanism.frame import Frame
from dynid.mechanism.inertia import SYMBOLS, from_centre_of_mass
from dynid.mechanism.mechanism import Mechanism, Payload
from dynid.motion.log import Log
from dynid.pipeline import identify_logs
from dynid.report.json_file import json_text, result_document
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.estimate import Estimate

CARRIERS = {
    "ur5": "wrist_3_link",
    "panda": "link_7",
    "scara": "tool",
    "puma560": "link_6",
    "delta": "platform",
    "serial6": "B6",
}
MASSES = (0.5, 2.0, 5.0)  # kg
CENTRE = np.array([0.012, -0.008, 0.063])  # m, in the frame of the body
RADII = np.array([0.05, 0.04, 0.03])  # m, of gyration about the centre
RATE, SECONDS, EMPTY_SECONDS = 200.0, 20.0, 10.0
OFF = np.deg2rad(1.0)


@dataclass(frozen=True)
class Case:
    """A robot with a payload, and the seed of everything drawn."""

    robot: str
    mass: float
    friction: bool
    seed: int


def cases(robots: Sequence[str], seeds: Iterable[int]) -> list[Case]:
    """Masses and friction change from seed to seed."""
    return [Case(name, MASSES[k % len(MASSES)], k % 2 == 0, k) for k in seeds for name in robots]


def identified(case: Case, fault: bool, folder: Path) -> tuple[Estimate, Mapping[str, float]]:
    """The payload found, and its true values."""
    arm = replace(load_robot(case.robot), payloads={})
    demo = read_demo(demo_file(case.robot), load_robot(case.robot))
    truth = {
        n: x for n, x in demo.truth.items() if n.partition("_")[2] not in load_robot(case.robot).payloads
    }
    if not case.friction:
        truth |= {name: 0.0 for name in truth if name.partition("_")[0] in ("Fv", "Fs")}
    body = CARRIERS[case.robot]
    box = from_centre_of_mass(case.mass, CENTRE, case.mass * np.diag(RADII**2))
    true_box = dict(zip((f"{symbol}_box" for symbol in SYMBOLS), box.tolist(), strict=True))
    loaded = replace(arm, payloads={"box": Payload("box", body, Frame(np.eye(3), np.zeros(3)))})
    states = np.random.SeedSequence((case.seed, len(case.robot), 7)).generate_state(4).tolist()

    def log(robot: Mechanism, values: Mapping[str, float], k: int, mounted: tuple[str, ...]) -> Log:
        motion = random_motion(arm, states[2 * k], frequency=0.1, draws=8)
        return simulate_log(
            robot,
            values,
            motion,
            rate=RATE,
            duration=SECONDS if mounted else EMPTY_SECONDS,
            encoder_resolution=demo.encoder,
            torque_sigma=demo.torque_sigma,
            seed=states[2 * k + 1],
            payloads=mounted,
            name="loaded" if mounted else "unloaded",
        )

    unloaded = identify_logs(arm, [log(arm, truth, 0, ())])
    (folder / "result.json").write_text(json_text(result_document(unloaded)), encoding="utf-8")
    recorded = log(loaded, truth | true_box, 1, ("box",))
    if fault:
        shift = np.zeros(recorded.q.shape[1])
        shift[1] = OFF
        recorded = replace(recorded, q=recorded.q + shift)
    return payload_from_torques(folder, recorded, body, name="box"), true_box


def coverage(found: Estimate, truth: Mapping[str, float]) -> dict[str, tuple[float, bool]]:
    """Error over sigma, and whether the 95 % interval contains the truth, of every parameter."""
    return {
        one.name: ((one.value - truth[one.name]) / one.sigma, one.ci95[0] <= truth[one.name] <= one.ci95[1])
        for one in found.parameters
        if one.sigma and one.ci95 and one.name in truth
    }


def main() -> None:
    """Print a line per case, and the rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["clean"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--robots", nargs="+", default=["ur5", "panda", "scara", "puma560"])
    given = parser.parse_args()
    for part in given.parts:
        alarms, held, errors, tests = 0, [], [], []
        drawn = cases(given.robots, range(given.first, given.first + given.seeds))
        for case in drawn:
            with TemporaryDirectory() as place:
                found, truth = identified(case, part == "zero", Path(place))
            warned = [test for test in found.residual_tests if test.warned]
            inside = coverage(found, truth)
            alarms += bool(warned)
            held += [good for _, good in inside.values()]
            errors += [x for x, _ in inside.values()]
            tests += [test.p_value for test in found.residual_tests if test.test == "zero"]
            shown = "; ".join(
                f"{one.test} of {one.about} {one.value:.3g} (p {one.p_value:.1g})" for one in warned
            )
            codes = ", ".join(item.code for item in found.warnings)
            count = sum(good for _, good in inside.values())
            print(
                f"{part:6s}{case.robot:8s}{case.mass:4g} kg, seed {case.seed}, friction {case.friction:d}:"
                f" {count} of {len(inside)} held; {shown or '-'} [{codes}]",
                flush=True,
            )
        p = np.array(tests)
        below = ", ".join(f"{100 * np.mean(p < x):.1f} %" for x in (0.1, 0.01, 0.001))
        print(
            f"{part}: {alarms} of {len(drawn)} logs flagged; {100 * np.mean(held):.1f} % of {len(held)}"
            f" intervals hold the truth, rms error {np.sqrt(np.mean(np.square(errors))):.2f} sigma;"
            f" p of {len(p)} zeros below 0.1, 0.01, 0.001: {below}"
        )


if __name__ == "__main__":
    main()
