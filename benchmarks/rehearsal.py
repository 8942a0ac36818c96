"""Predicted sigma against the errors of many rehearsals.

    python benchmarks/rehearsal.py [--runs 200] [--out FILE.json] [ROBOT ...]

For every robot: a quick exciting motion, the sigma predicted before recording, then
`runs` simulated recordings of it with the noise of the built-in experiment, each identified. Printed is the
median over the parameters of rms error / sigma, for three sigmas: predicted with the motion (`plan`), printed
by the identification for white noise (`classical`), and by default (jackknife over blocks, `cluster`).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.trajectories import write_trajectory

from dynid.common.batched import single_threaded_blas
from dynid.common.errors import DynidError
from dynid.excitation.excite import excite
from dynid.excitation.plan import ExciteSettings
from dynid.experiment.experiment import Experiment, LogEntry, UncertaintySettings
from dynid.fit import fit_task
from dynid.mechanism.load import load_robot
from dynid.simulation.rehearsal import RehearsalPlan, Rehearser
from dynid.simulation.simulation_file import default_simulation
from dynid.statistics.assemble import estimate_parameters
from dynid.statistics.rehearsal import summarise
from dynid.unknown import Task

ROBOTS = ("ur5", "dualv", "orthoglide", "stewart", "evra")
# Rate [Hz] and length [s]: enough to identify, and short enough for hundreds of runs.
RECORDED = {"dualv": (1000.0, 4.0), "evra": (500.0, 10.0)}
# A plan predicts sigma of `power` or `inverse`; windows of `energy`, evra's model, carry less information.
MODELS = {"evra": "inverse"}


def planned(name: str, folder: Path) -> tuple[Path, dict[str, float], float, float]:
    """A motion, the predicted sigma of each parameter, and rate and length of its recording."""
    settings = default_simulation(load_robot(name))
    rate, period = RECORDED.get(name, (500.0, 10.0))
    sigma = tuple(np.atleast_1d(np.asarray(settings.sensing.effort_sigma, float)).tolist())
    found = excite(name, ExciteSettings(starts=1, hops=0, period=period, noise=sigma, rate=rate))
    file = write_trajectory(folder / f"{name}.csv", found.names, found.t, found.q, found.dq, found.ddq)
    return file, dict(zip(found.base_names, found.after.sigma.tolist(), strict=True)), rate, period


def rehearsed(name: str, runs: int, folder: Path) -> dict[str, object]:
    began = time.perf_counter()
    file, promised, rate, period = planned(name, folder)
    planning = time.perf_counter() - began
    robot = load_robot(name)
    experiment = Experiment(
        robot=name,
        model=MODELS.get(name),
        logs=(LogEntry(str(file)),),
        uncertainty=UncertaintySettings("classical"),
    )
    settings = replace(default_simulation(robot), rate=rate, duration=period)
    crew = Rehearser(RehearsalPlan(experiment, settings, seed=20261))
    draws: dict[str, list] = {"classical": [], "cluster": []}
    failed = []
    began = time.perf_counter()
    for number in range(runs):
        with single_threaded_blas():
            try:
                fit = fit_task(Task(crew.robot, tuple(crew.logs(number)), experiment))
            except DynidError as error:
                failed.append(str(error))
                continue
            other = estimate_parameters(
                fit.data, fit.solution, symbols={}, settings=UncertaintySettings("cluster")
            )
        draws["classical"].append(crew.draw(number, fit.parts.parameters, fit))
        draws["cluster"].append(crew.draw(number, other.parameters, fit))
    about = {"robot": name, "model": "", "estimator": "wls", "seed": 20261}
    found = {method: summarise(own, **about) for method, own in draws.items()}
    plan = [
        one.rms / promised[one.name]
        for one in found["classical"].parameters
        if np.isfinite(promised.get(one.name, np.nan))
    ]
    return {
        "robot": name,
        "runs": found["classical"].runs,
        "parameters": len(found["classical"].parameters),
        "compared_with_plan": len(plan),
        "plan_ratio": float(np.median(plan)) if plan else None,
        "plan_range": np.quantile(plan, [0.05, 0.95]).tolist() if plan else None,
        **{f"{method}_ratio": one.median_ratio for method, one in found.items()},
        **{f"{method}_coverage": one.coverage for method, one in found.items()},
        "worst": max((one.ratio for one in found["classical"].parameters), default=None),
        "failed": failed[:1],
        "planning_seconds": planning,
        "seconds_per_run": (time.perf_counter() - began) / runs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robots", nargs="*", default=list(ROBOTS))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.robots:
            row = rehearsed(name, asked.runs, Path(folder))
            rows.append(row)
            print(
                f"{name:12} runs {row['runs']:4}  parameters {row['parameters']:4}  rms/sigma:"
                f" plan {row['plan_ratio'] or float('nan'):.3f}  classical {row['classical_ratio']:.3f}"
                f"  cluster {row['cluster_ratio']:.3f}  in 95 %: {100 * row['classical_coverage']:.1f}"
                f"  {100 * row['cluster_coverage']:.1f}  {row['seconds_per_run']:.2f} s a run"
                f" {' '.join(row['failed'])}",
                flush=True,
            )
            if asked.out:
                asked.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
