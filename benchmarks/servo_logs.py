"""Coverage of the intervals of servo laws: PD logs without efforts, simulated in MuJoCo, seed by seed.

python -m benchmarks.servo_logs [--seeds 20] [--first 0] [--robot leg|arm] [--limit 2.5 5 9] [--no-load 12]

Each seed has its own commands and encoder noise; delay (3 ms) and encoder bias are those of
`tests/servo_robot.py`. `--limit` gives the largest effort of each motor, `--no-load` the speed at which it
has fallen to zero.
Printed are the share of intervals (95 %) that contain the true value, and the rms of error / sigma.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.servo_robot import Truth, arm_truth, described, servo_run

from dynid.experiment.experiment import experiment_from
from dynid.mechanism.load import load_robot
from dynid.problem import as_asked, as_logs
from dynid.statistics.uncertainty import interval95
from dynid.unknown import Task
from dynid.unknowns.servo import find_law
from dynid.unknowns.servo_rows import with_filters


def _truth(asked: argparse.Namespace) -> Truth:
    truth = Truth() if asked.robot == "leg" else arm_truth()
    if asked.limit:
        limit = asked.limit if len(asked.limit) > 1 else asked.limit * len(truth.joints)
        truth = replace(truth, limit=tuple(limit))
    if asked.no_load:
        truth = replace(truth, no_load=(asked.no_load,) * len(truth.joints))
    return truth


def main() -> None:
    """Simulate, identify, count."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--robot", choices=("leg", "arm"), default="leg")
    parser.add_argument("--limit", type=float, nargs="+")
    parser.add_argument("--no-load", type=float)
    asked = parser.parse_args()
    truth = _truth(asked)
    pd = {"kp": "unknown", "kd": list(truth.kd), "delay": "unknown", "bias": "unknown", "bodies": "known"}
    inside: dict[str, list[bool]] = {}
    scores: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "robot.xml"
        file.write_text(described(truth))
        experiment = experiment_from(
            {"robot": str(file), "pd": pd, "drive": ["Ia", "Fv", "Fs"], "auto": "off"}
        )
        robot = as_asked(load_robot(file), experiment)
        for seed in range(asked.first, asked.first + asked.seeds):
            runs = [servo_run(truth, 100 * seed + k, asked.seconds) for k in range(asked.runs)]
            task = Task(robot, tuple(as_logs(runs, robot, experiment)), experiment)
            task = Task(robot, task.logs, with_filters(task))
            found = find_law(task, experiment.pd)  # type: ignore[arg-type]
            low, high = interval95(found.chi, found.spread.covariance, found.spread.dof).T
            sigma = np.sqrt(np.diag(found.spread.covariance))
            for k, one in enumerate(found.parameters):
                true = truth.parameters()[one.name]
                inside.setdefault(one.name, []).append(bool(low[k] <= true <= high[k]))
                scores.setdefault(one.name, []).append((found.chi[k] - true) / sigma[k])
            every = np.concatenate(list(inside.values()))
            print(f"seed {seed}: {np.mean(every):.3f} of all intervals so far", flush=True)
    for name, values in inside.items():
        rms = np.sqrt(np.mean(np.square(scores[name])))
        print(
            f"{name:12s} {sum(values):3d} of {len(values)}   rms error / sigma {rms:.2f}"
            f"   mean {np.mean(scores[name]):+.2f}"
        )


if __name__ == "__main__":
    main()
