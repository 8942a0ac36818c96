"""Exciting trajectories of closed-loop robots compared with the best of many random ones.

`python benchmarks/studies/excitation_closed.py [--random 1000] [--starts 4] [ROBOT ...]`. Every random motion
is as large as the limits of all joints, loops closed, poses regular, allow. Value: log det of the
information; condition: of the rows with unit columns; sigma: median over parameters, random over optimal.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from dynid.common.batched import single_threaded_blas
from dynid.excitation.excite import ExciteSettings, excite
from dynid.excitation.inputs import plan_inputs
from dynid.excitation.plan import Plan, make_plan

ROBOTS = ("dualv", "orthoglide", "evra", "stewart")
SMALLER, TRIES = 0.9, 40


def random_values(plan: Plan, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Criterion of random motions, and the variables of the best."""
    rng = np.random.default_rng(2024)
    problem, values, best = plan.problem, [], None
    while len(values) < count:
        z = problem.blocks.random(rng, 0.999)
        for _ in range(TRIES):
            point = problem.evaluate(z)
            if point.tape is not None and point.violation == 0.0:
                values.append(plan.starter.value(point))
                best = z if values[-1] == max(values) else best
                break
            z = problem.blocks.towards_rest(z, SMALLER)
    return np.array(values), best


def promised(plan: Plan, z: np.ndarray, noise: tuple[float, ...], weight: float):
    from dynid.excitation.optimal.checked import promise

    t = np.arange(400) / 400 * plan.family.period
    return promise(
        plan.path, plan.states(z, t), plan.base, np.array(noise), weight / 400, model=plan.mechanism.model
    )


def study(name: str, draws: int, settings: ExciteSettings) -> None:
    with single_threaded_blas():
        inputs, _ = plan_inputs(name, settings)
        plan = make_plan(inputs)
        began = time.process_time()
        values, best = random_values(plan, draws)
        drawn = time.process_time() - began
        began = time.process_time()
        found = excite(name, settings)
        spent = time.process_time() - began
    weight = found.rate * settings.period
    random = promised(plan, best, inputs.noise, weight)
    reached = [start.value for start in found.starts]
    print(
        f"{name}: {len(plan.base.indices)} base parameters, {plan.problem.blocks.count} variables\n"
        f"  log det: best of {len(values)} random {values.max():.1f} (median {np.median(values):.1f},"
        f" {drawn:.0f} s); optimal {found.criterion:.1f} (starts {min(reached):.1f} to {max(reached):.1f},"
        f" {spent:.0f} s CPU)\n"
        f"  condition, unit columns: {random.condition_scaled:.4g} -> {found.after.condition_scaled:.4g};"
        f" median sigma {np.median(random.sigma / found.after.sigma):.3g} times smaller,"
        f" least margin {min(one.margin_percent for one in found.limits):.2f} %",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("robots", nargs="*", default=ROBOTS)
    parser.add_argument("--random", type=int, default=1000)
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--hops", type=int, default=2)
    options = parser.parse_args()
    for name in options.robots or ROBOTS:
        study(name, options.random, ExciteSettings(starts=options.starts, hops=options.hops))


if __name__ == "__main__":
    main()
