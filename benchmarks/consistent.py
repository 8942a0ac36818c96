"""Physical consistency on real logs: larger residual of the fit, smaller error on unseen motion.

Prints the tables of docs/explanation/consistency.md. Needs the logs in `shared/data` beside the project.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from dynid.estimator import semidefinite
from dynid.experiment.experiment import Experiment, read_experiment
from dynid.mechanism.inertia import SYMBOLS, is_physical
from dynid.mechanism.load import load_robot
from dynid.motion.log import Log
from dynid.pipeline import identify_logs, run_experiment
from dynid.problem import as_log
from dynid.statistics.estimate import Estimate

EXAMPLES = Path(__file__).parents[1] / "examples" / "real"
ROBOTS = ("panda_gaz", "staubli_tx40", "ur10_unisa", "kuka_kr300", "tiago", "unitree_go2")


def example(name: str) -> Experiment:
    """An experiment of examples/real, with its robot loaded."""
    experiment = read_experiment(EXAMPLES / f"{name}.yaml")
    return experiment.changed(robot=load_robot(experiment.robot))


def piece(log: Log, start: float, stop: float, name: str) -> Log:
    """The samples of a log between two fractions of its duration, as a separate log."""
    a, b = (round(part * len(log.t)) for part in (start, stop))
    cut = slice(a, b)
    rates = {key: None if getattr(log, key) is None else getattr(log, key)[cut] for key in ("dq", "ddq")}
    inside = [(max(x, a) - a, min(y, b) - a) for x, y in log.segments]
    return replace(
        log,
        name=name,
        sha256=None,
        t=log.t[cut],
        q=log.q[cut],
        tau=log.tau[cut],
        valid=log.valid[cut],
        q_ref=None,
        segments=tuple((x, y) for x, y in inside if y > x),
        **rates,
    )


def all_physical(estimate: Estimate) -> str:
    """Number of bodies of the standard set that pass the pseudo-inertia test."""
    values = {entry["name"]: entry["value"] for entry in estimate.standard}
    bodies = [name.removeprefix("M_") for name in values if name.startswith("M_")]
    tens = [np.array([values[f"{symbol}_{body}"] for symbol in SYMBOLS]) for body in bodies]
    return f"{sum(is_physical(ten) for ten in tens)}/{len(tens)}"


def timed_solve() -> list[float]:
    """Seconds of each call of the solver, appended at each call."""
    seconds: list[float] = []
    solve = semidefinite.Program.solve

    def clocked(self):
        start = time.perf_counter()
        found = solve(self)
        seconds.append(time.perf_counter() - start)
        return found

    semidefinite.Program.solve = clocked
    return seconds


def fits(seconds: list[float]) -> None:
    print("| log | wls, % | distance | status | solver, s | residual, % | of wls | bodies |")
    print("|---|---|---|---|---|---|---|---|")
    for name in ROBOTS:
        experiment = example(name)
        wls = run_experiment(experiment).fit.residual_percent
        for prior in ("entropic", "euclidean"):
            asked = experiment.changed(estimator="consistent", estimator_options={"prior": prior})
            estimate = run_experiment(asked)
            residual = estimate.fit.residual_percent
            status = estimate.choices["standard set"].partition(" (")[0]
            print(
                f"| {name} | {wls:.3f} | {prior} | {status} | {seconds[-1]:.3f} | {residual:.3f} |"
                f" {residual / wls:.3f} | {all_physical(estimate)} |",
                flush=True,
            )


def predictions() -> None:
    print("\n| fit on | predicts | wls, effort % | euclidean | entropic | entropic of wls |")
    print("|---|---|---|---|---|---|")
    for name, parts in (("kuka_kr300", None), ("panda_gaz", 4), ("ur10_unisa", 4), ("staubli_tx40", 4)):
        experiment = example(name)
        logs = [as_log(log, experiment.robot, experiment) for log in experiment.logs]
        if parts is None:
            cases = [(logs[:1], logs[1:], "A", "B"), (logs[1:], logs[:1], "B", "A")]
        else:
            first, rest = piece(logs[0], 0, 0.25, "first"), piece(logs[0], 0.25, 1, "rest")
            last, before = piece(logs[0], 0.75, 1, "last"), piece(logs[0], 0, 0.75, "before")
            cases = [
                ([first], [rest], "1st quarter", "the rest"),
                ([last], [before], "4th quarter", "the rest"),
            ]
        for used, unseen, what, rest in cases:
            errors = [held_out(experiment, used, unseen, *choice) for choice in CHOICES]
            shown = " | ".join(f"{one:.2f}" for one in errors)
            print(f"| {name}, {what} | {rest} | {shown} | {errors[-1] / errors[0]:.2f} |", flush=True)


CHOICES = (("wls", {}), ("consistent", {"prior": "euclidean"}), ("consistent", {"prior": "entropic"}))


def held_out(
    experiment: Experiment, used: list[Log], unseen: list[Log], estimator: str, options: dict[str, str]
) -> float:
    """Error on the efforts of unseen logs as they were logged, in percent."""
    asked = experiment.changed(estimator=estimator, estimator_options=options)
    return identify_logs(experiment.robot, used, unseen, asked).validation[0].effort_percent


if __name__ == "__main__":
    if "--predict" not in sys.argv:
        fits(timed_solve())
    predictions()
