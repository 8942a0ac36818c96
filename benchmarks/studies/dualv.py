"""The payload of DualV by two models, over seeds.

Every seed draws new motions, torque noise (0.8 N m), encoder steps and internal tension (6 N m) of
the built-in experiment: one run without and one with a payload of 5.37 kg, 10 s each at 2 kHz.
`power` has one equation a sample; `inverse` means the three rows J_a^T tau. Near reversals dynid
drops rows of `inverse`, because the sign of friction is not known there; that costs a third of
them, so the comparison is printed without the mask too.

Run:  python benchmarks/studies/dualv.py [--seeds 8]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache

import numpy as np

from dynid import Experiment
from dynid.base.base import BaseSet
from dynid.base.structural import structural_base
from dynid.base.system import base_system
from dynid.estimator.estimator import estimator_named
from dynid.experiment.experiment import MaskSettings
from dynid.pipeline import build_system, prepare
from dynid.problem import Problem
from dynid.simulation.demo import BuiltInExperiment, built_in_experiment
from dynid.statistics.covariance import covariance_of
from dynid.statistics.uncertainty import UncertaintySettings

CASES = (("power", None), ("inverse", None), ("inverse", 0.0))
_BASES: dict[tuple[str, int], BaseSet] = {}


@dataclass(frozen=True)
class Payload:
    """What was found of the payload's mass.

    Attributes:
        error: Found minus true, in percent.
        sigma: Deviation that the result states, in percent.
    """

    error: float
    sigma: float


@cache
def runs(seed: int) -> BuiltInExperiment:
    """The logs of one seed."""
    return built_in_experiment("dualv", seed)


def payload(seed: int, model: str, mask: float | None = None) -> Payload:
    """The payload's mass by a model.

    Args:
        seed: Of motions, noise and tension.
        model: `power` or `inverse`.
        mask: Speed below which rows are dropped, in [rad/s]; None: as dynid chooses.
    """
    demo = runs(seed)
    settings = MaskSettings(speed=mask, rest=mask)
    problem = prepare(demo.mechanism, demo.logs, Experiment(robot=demo.mechanism, model=model, mask=settings))
    data = base_system(build_system(problem), _base(problem))
    solution = estimator_named("wls")(data.system)
    spread = covariance_of(data.blocked(), solution, UncertaintySettings())
    at = data.names.index("M_payload")
    true = demo.truth["M_payload"]
    sigma = float(np.sqrt(spread.covariance[at, at]))
    return Payload(100.0 * (float(solution.chi[at]) / true - 1.0), 100.0 * sigma / true)


def _base(problem: Problem) -> BaseSet:
    """Structural base parameters: the same for all seeds."""
    key = (problem.model.name, len(problem.directions.names))
    if key not in _BASES:
        _BASES[key] = structural_base(
            problem.mechanism, problem.model, problem.parameters, problem.directions, loads=problem.loads
        )
    return _BASES[key]


def main() -> None:
    """Print error and sigma per seed, and the gain in accuracy of J^T tau."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    seeds = range(1, parser.parse_args().seeds + 1)
    labels = [f"{model}{'' if mask is None else ', no mask'}" for model, mask in CASES]
    print("payload 5.37 kg: error and sigma in percent")
    print(f"{'seed':<6}" + "".join(f"{label:>22}" for label in labels))
    found = []
    for seed in seeds:
        found.append([payload(seed, model, mask) for model, mask in CASES])
        runs.cache_clear()
        print(f"{seed:<6}" + "".join(f"{one.error:>+13.3f}{one.sigma:>9.3f}" for one in found[-1]))
    errors, sigmas = ([[getattr(one, name) for one in row] for row in found] for name in ("error", "sigma"))
    rms = np.sqrt(np.mean(np.square(errors), axis=0))
    middle = np.median(sigmas, axis=0)
    print(f"{'rms':<6}" + "".join(f"{a:>13.3f}{b:>9.3f}" for a, b in zip(rms, middle, strict=True)))
    tighter = np.median(np.array(sigmas)[:, :1] / np.array(sigmas)[:, 1:], axis=0)
    print(f"(last line: rms error, median sigma)  J^T tau is {tighter[0]:.1f} times tighter,", end=" ")
    print(f"without mask {tighter[1]:.1f} times (median over seeds)")


if __name__ == "__main__":
    main()
