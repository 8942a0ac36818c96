"""How time grows: samples, bodies, loops, parameters, threads, processes.

`python -m benchmarks.scaling [--json FILE] [--svg docs/images/scaling.svg]`. One thread, CPU time; wall
time for threads and processes. Each point is the best of three; compare the slopes, not the times.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from tests.random_mechanisms import random_states, random_tree

from dynid import Experiment, load_robot
from dynid.campaign.campaign import run_campaign
from dynid.common.batched import single_threaded_blas
from dynid.mechanism.joint import JointKind
from dynid.motion.logs import log_from_arrays
from dynid.motion.motion import Motion
from dynid.motion.plan import plan_motions
from dynid.motion.settings import FilterSettings, MaskSettings
from dynid.pipeline import build_system, identify_logs, prepare
from dynid.projection.factor import factor_rows
from dynid.projection.kinematics import kinematics_along
from dynid.regressor.regressor import tree_matrix
from dynid.report.plots import Figure, figure, line, panel
from dynid.simulation.demo import built_in_experiment
from dynid.simulation.simulation import Simulation, simulate

Curve = list[tuple[float, float]]
_ROUNDS = 3
_CURVES = {
    "samples": "samples of a UR5 -> whole identification [s]",
    "bodies": "bodies of a chain -> regressor of a sample [us]",
    "loops": "four-bar loops -> closed states of a sample [us]",
    "parameters": "columns -> factor of 4096 rows [ms]",
    "threads": "threads -> factors of 200 000 samples [s, wall]",
    "processes": "processes -> campaign of 8 logs [s, wall]",
}


def best(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Shortest of three runs after one that compiles, in [s]."""
    work()
    times = []
    for _ in range(_ROUNDS):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def samples() -> Curve:
    """Whole identification of one log in memory, settings given."""
    robot, found = load_robot("ur5"), []
    for n in (10_000, 30_000, 100_000, 300_000):
        work = partial(identify_logs, robot, [_ur5(n)], (), Experiment(robot=robot, auto="off"))
        found.append((n, best(work)))
    return found


def _ur5(n: int):
    return simulate(load_robot("ur5"), Simulation(rate=1000.0, duration=1e-3 * n, seed=1)).log()


def bodies() -> Curve:
    """Standard regressor of serial chains with revolute joints."""
    found = []
    for n in (6, 12, 25, 50, 100):
        rng = np.random.default_rng(n)
        robot = random_tree(rng, n, (JointKind.REVOLUTE,), chain=True)
        states = random_states(rng, robot, 512)
        found.append((n, 1e6 / 512 * best(lambda robot=robot, states=states: tree_matrix(robot, *states))))
    return found


def loops() -> Curve:
    """Poses, velocities and accelerations of four-bar linkages side by side."""
    found = []
    n = 4096
    t = 1e-3 * np.arange(n)
    for count in (1, 2, 4, 8):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "robot.yaml"
            file.write_text(_fourbars(count), encoding="utf-8")
            robot = load_robot(file)
        q = 0.7 + 0.5 * np.sin(3.0 * t)[:, None] * np.ones(count)
        log = log_from_arrays(robot, t, q, np.zeros_like(q))
        motion = Motion(log, plan_motions([log], robot, FilterSettings(), MaskSettings())[0])
        low, high = motion.usable()[0]

        def closed(robot=robot, motion=motion, low=low, high=high) -> object:
            return kinematics_along(robot, motion).states(low, motion.states(low, high))

        found.append((count, 1e6 / n * best(closed)))
    return found


def _fourbars(count: int) -> str:
    joints, pins = [], []
    for i in range(count):
        joints += [
            f"  - {{name: m{i}, kind: revolute, parent: base, child: crank{i}, xyz: [0, 0, {i}]}}",
            f"  - {{name: k{i}, kind: revolute, parent: crank{i}, child: coupler{i}, xyz: [0.12, 0, 0]}}",
            f"  - {{name: p{i}, kind: revolute, parent: base, child: rocker{i}, xyz: [0.33, 0.12, {i}]}}",
        ]
        ends = (f"{{body: coupler{i}, xyz: [0.4, 0, 0]}}", f"{{body: rocker{i}, xyz: [0.3, 0, 0]}}")
        pins.append(f"  - {{name: c{i}, kind: revolute, a: {ends[0]}, b: {ends[1]}}}")
    motors = ", ".join(f"m{i}" for i in range(count))
    start = ", ".join(f"m{i}: 0.7, k{i}: 0.1, p{i}: 1.2" for i in range(count))
    head = ["name: fourbars", "gravity: [0, -9.81, 0]", "joints:", *joints, "loops:", *pins]
    return "\n".join([*head, f"measured: [{motors}]", f"actuators: [{motors}]", f"start: {{{start}}}", ""])


def parameters() -> Curve:
    """One triangular factor."""
    rows = np.random.default_rng(1).normal(size=(4096, 400))
    y = rows[:, 0]
    return [(p, 1e3 * best(lambda p=p: factor_rows(rows[:, :p], y))) for p in (25, 50, 100, 200, 400)]


def threads() -> Curve:
    """Filter, regressor, row filter and factors of one log."""
    robot = load_robot("ur5")
    problem = prepare(robot, [_ur5(200_000)], Experiment(robot=robot, auto="off"))
    return [
        (k, best(lambda k=k: build_system(problem, threads=k), clock=time.perf_counter)) for k in (1, 2, 4)
    ]


def processes() -> Curve:
    """Eight logs of a SCARA, each read from a file and written with its report."""
    from dynid.simulation.files import write_log

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        log = built_in_experiment("scara").logs[0]
        for i in range(8):
            write_log(log, folder / f"{i}.csv")
        file = folder / "campaign.yaml"
        file.write_text("schema: dynid.campaign/1\nruns:\n  - {robot: scara, logs: '{unit}.csv'}\n")
        found = []
        for jobs in (1, 2):
            start = time.perf_counter()
            run_campaign(file, folder / f"out{jobs}", jobs=jobs)
            found.append((jobs, time.perf_counter() - start))
    return found


def drawn(curves: dict[str, Curve]) -> Figure:
    """One panel per curve, both axes logarithmic: straight lines are powers."""
    panels = []
    for name, curve in curves.items():
        x_title, y_title = _CURVES[name].split(" -> ")
        x, y = zip(*curve, strict=True)
        series = [line("measured", x, y, dots=True)]
        proportional = [y[-1] * value / x[-1] for value in x]
        falls = name in ("threads", "processes")
        guide = [y[0] * x[0] / value for value in x] if falls else proportional
        series.append(
            line("inversely proportional" if falls else "proportional", x, guide, "grey", dash=True)
        )
        panels.append(panel(series, y_title, {"title": x_title, "log": True}, {"title": "", "log": True}))
    return figure("scaling", panels, "time over the size of the problem", "", columns=3)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args(arguments)
    curves = {}
    with single_threaded_blas():
        for work in (samples, bodies, loops, parameters, threads, processes):
            curves[work.__name__] = work()
            print(
                f"{_CURVES[work.__name__]}:", ", ".join(f"{x:g}: {y:.3g}" for x, y in curves[work.__name__])
            )
    if options.json is not None:
        options.json.write_text(json.dumps(curves, indent=1), encoding="utf-8")
    if options.svg is not None:
        drawn(curves).save(options.svg)


if __name__ == "__main__":
    main()
