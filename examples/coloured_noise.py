"""Effect of coloured noise on 95 % intervals, for a built-in robot.

The same motion of the SCARA is recorded many times, each time with new torque noise: white, or
AR(1), e_k = c e_(k-1) + sqrt(1 - c^2) w_k: same standard deviation, but correlated in time. For each
record the base parameters and their intervals are computed, and the intervals that contain the
true value are counted. The nominal level is 95 %: the classical intervals assume white noise, the default
ones (`cluster`) compare blocks of time.

Run:  python examples/coloured_noise.py
"""

from __future__ import annotations

import numpy as np

from dynid import (
    Experiment,
    FilterSettings,
    UncertaintySettings,
    base_system,
    build_system,
    built_in_experiment,
    covariance_of,
    estimator_named,
    interval95,
    prepare,
    random_motion,
    simulate_log,
    structural_base,
)

RATE = 500.0  # Hz
DURATION = 8.0  # s
TORQUE_SIGMA = np.array([0.5, 0.3, 1.0, 0.02])  # N m, N m, N, N m
METHODS = ("classical", "cluster", "hac", "bootstrap")
CUTOFF = 15.0  # Hz: far above the motion (3 Hz), so that filtering adds no error of its own


def coverage(
    correlation: float | None, draws: int = 40, robot: str = "scara"
) -> tuple[dict[str, float], int]:
    """Fraction of the 95 % intervals that contain the true value by each method, and their number.

    Args:
        correlation: Of the torque noise from one sample to the next; None: white.
        draws: Number of records, each with its own noise.
    """
    known = built_in_experiment(robot)
    motion = random_motion(known.mechanism, seed=5, frequency=0.25)
    experiment = Experiment(robot=known.mechanism, filter=FilterSettings(cutoff=CUTOFF))
    estimator = estimator_named("wls")
    base = None
    held, total = dict.fromkeys(METHODS, 0), 0
    for seed in range(draws):
        log = simulate_log(
            known.mechanism,
            known.truth,
            motion,
            rate=RATE,
            duration=DURATION,
            torque_sigma=TORQUE_SIGMA,
            tau_coloured=correlation,
            velocity=True,
            seed=seed,
        )
        problem = prepare(known.mechanism, [log], experiment)
        base = base or structural_base(
            problem.mechanism, problem.model, problem.parameters, problem.directions
        )
        data = base_system(build_system(problem), base)
        solution = estimator(data.system)
        truth = data.values_of(known.truth)
        true_values = np.array([truth[name] for name in data.names], dtype=float)
        for method in METHODS:
            spread = covariance_of(data.blocked(), solution, UncertaintySettings(method))
            low, high = interval95(solution.chi, spread.covariance, spread.dof).T
            held[method] += int(np.sum((low <= true_values) & (true_values <= high)))
        total += len(true_values)
    return {method: count / total for method, count in held.items()}, total


def main() -> None:
    """Print the coverage for noise of increasing correlation time."""
    print(f"{'noise':<20}{'time constant':>14}" + "".join(f"{method:>12}" for method in METHODS))
    for correlation in (None, 0.9, 0.98, 0.995):
        parts, total = coverage(correlation)
        name = "white" if correlation is None else f"AR(1), c = {correlation:g}"
        memory = "-" if correlation is None else f"{-1e3 / (RATE * np.log(correlation)):.0f} ms"
        print(f"{name:<20}{memory:>14}" + "".join(f"{100 * part:>10.1f} %" for part in parts.values()))
    print(f"95 % intervals that contain the true value, {total} in each row")


if __name__ == "__main__":
    main()
