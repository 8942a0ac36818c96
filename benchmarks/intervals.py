"""Coverage of the confidence intervals, from simulated logs to the result.

Every seed draws new motions and new noise (torque noise, encoder steps, internal tension) of a
built-in robot's experiment. Printed for each robot and method: how many of the 95 % intervals contain
the true value, the same for the worst seed, the rms of the errors in sigma, and the median width
relative to that of classical intervals. Errors of one seed are correlated, so the pooled coverage
is less certain than its number of intervals suggests.

Run:  python benchmarks/intervals.py [--seeds 8] [serial6 dualv orthoglide ...]
"""

from __future__ import annotations

import argparse

import numpy as np

from dynid import Experiment
from dynid.base.structural import structural_base
from dynid.base.system import base_system
from dynid.estimator.estimator import estimator_named
from dynid.pipeline import build_system, prepare
from dynid.simulation.demo import built_in_experiment
from dynid.statistics.covariance import covariance_of
from dynid.statistics.uncertainty import UncertaintySettings, interval95

ROBOTS = ("serial6", "dualv", "orthoglide")
METHODS = ("classical", "cluster", "hac", "bootstrap")


def errors(robot: str, seed: int, methods: tuple[str, ...]) -> dict[str, np.ndarray]:
    """For each method, shape (3, p): error in half widths, error in sigma, half width in SI."""
    demo = built_in_experiment(robot, seed)
    problem = prepare(demo.mechanism, demo.logs, Experiment(robot=demo.mechanism, model=demo.model))
    base = structural_base(
        problem.mechanism, problem.model, problem.parameters, problem.directions, loads=problem.loads
    )
    data = base_system(build_system(problem), base)
    solution = estimator_named("wls")(data.system)
    values = data.values_of(demo.truth)
    truth = np.array([values[name] for name in data.names], dtype=float)
    blocked = data.blocked()
    found = {}
    for method in methods:
        spread = covariance_of(blocked, solution, UncertaintySettings(method))
        low, high = interval95(solution.chi, spread.covariance, spread.dof).T
        half = 0.5 * (high - low)
        error = solution.chi - truth
        sigma = np.sqrt(np.diag(spread.covariance))
        found[method] = np.array([error / half, error / sigma, half])
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robots", nargs="*", default=ROBOTS)
    parser.add_argument("--seeds", type=int, default=8)
    chosen = parser.parse_args()
    print(f"{'robot':<14}{'method':<12}{'hold the truth':>22}{'lowest seed':>13}{'rms z':>8}{'width':>8}")
    for robot in chosen.robots:
        draws = [errors(robot, seed, METHODS) for seed in range(chosen.seeds)]
        for method in METHODS:
            inside = [np.abs(draw[method][0]) <= 1.0 for draw in draws]
            held, total = sum(map(np.sum, inside)), sum(map(len, inside))
            lowest = min(float(np.mean(one)) for one in inside)
            z = np.sqrt(np.mean(np.concatenate([draw[method][1] for draw in draws]) ** 2))
            width = np.median([draw[method][2] / draw["classical"][2] for draw in draws])
            counts = f"{held} of {total} = {100 * held / total:.1f} %"
            print(f"{robot:<14}{method:<12}{counts:>22}{100 * lowest:>11.1f} %{z:>8.2f}{width:>8.2f}")


if __name__ == "__main__":
    main()
