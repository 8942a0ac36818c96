"""Compile the kernels of all commands ahead of their first use, several processes at a time.

Each task runs a small job whose kernels the others hardly need; what is compiled already is read from Numba's
cache. The longest tasks come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from multiprocessing import get_context


def _closed() -> None:
    """Closure equations, their rates, and tracking."""
    from dynid.excitation.random_motion import random_motion
    from dynid.mechanism.load import load_robot

    random_motion(load_robot("fivebar"), seed=1)


def _identify() -> None:
    """Numbers of text, tree, regressor, filter."""
    from dynid.motion.csv_cells import read_numbers

    read_numbers(b"0,1\n", 0, ",", ".", [0, 0])
    _identified("scara")


def _trajectory(name: str) -> None:
    """Gradients of a tree or, by complex steps, of a closed robot; quadratic program."""
    from dynid.excitation.excite import excite

    excite(name, {"starts": 1, "hops": 0, "period": 2.0})


def _plant() -> None:
    """Forward simulation with a controller that needs no model; others are compiled when they are used."""
    from dynid.mechanism.load import load_robot
    from dynid.simulation.simulation import Simulation, simulate_led

    for robot in ("scara", "fivebar"):
        simulate_led(load_robot(robot), Simulation(engine="dynid", duration=0.05))


def _free_motion() -> None:
    """Motion of platforms on locked cables."""
    from dynid.excitation.case_motions import case_motions
    from dynid.mechanism.load import load_robot
    from dynid.robots.demo_file import demo_file, read_free_demo

    robot = load_robot("cable4")
    demo, motions = read_free_demo(demo_file("cable4"), robot), case_motions(robot)
    if demo is not None and motions is not None:
        motions.demo(robot, replace(demo, motions=2, validation=1, duration=1.0), demo.seed)


def _identified(name: str) -> None:
    from dynid.experiment.experiment import Experiment
    from dynid.pipeline import identify_logs
    from dynid.simulation.demo import built_in_experiment

    demo = built_in_experiment(name)
    identify_logs(demo.mechanism, demo.logs, (), Experiment(robot=name, model=demo.model, auto="off"))


TASKS: dict[str, Callable[[], None]] = {
    "simulation": _plant,
    "closed loops": _closed,
    "identification": _identify,
    "trajectories": partial(_trajectory, "scara"),
    "trajectories of closed robots": partial(_trajectory, "fivebar"),
    "free motion on cables": _free_motion,
    "identification of closed robots": partial(_identified, "fivebar"),
}


def warm(jobs: int) -> Iterator[str]:
    """Compile what is not in the cache yet; gives the name of each finished task.

    Args:
        jobs: Number of processes.
    """
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(run): name for name, run in TASKS.items()}
        for done in as_completed(running):
            done.result()
            yield running[done]
