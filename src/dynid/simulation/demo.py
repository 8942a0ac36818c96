"""Built-in experiments: simulated logs of a built-in robot whose true parameters are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.brief import one_line
from dynid.excitation.case_motions import CaseMotions, case_motions
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.regressor.kernels_ahead import prepare_kernels
from dynid.robots.demo_file import FreeDemo, demo_file, read_demo, read_free_demo
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.estimate import Estimate

Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class BuiltInExperiment:
    """A simulated experiment for identification.

    Attributes:
        logs: For identification.
        validation: Another motion, with other noise.
        truth: Standard parameter -> true value, SI.
        seed: Of motions and noise.
        model: Identification model; None: that of the robot.
    """

    mechanism: Mechanism
    logs: tuple[Log, ...]
    validation: Log
    truth: Mapping[str, float]
    seed: int
    model: str | None = None

    __repr__ = one_line


def built_in_experiment(
    name: str, seed: int | None = None, progress: Progress | None = None
) -> BuiltInExperiment:
    """Simulate the experiment of a built-in robot: every run has its own motion and noise.

    Args:
        name: As listed by `dynid robots`.
        seed: Of motions and noise; default that of the robot's experiment file.
        progress: Called with the stage and the fraction completed, 0 to 1.
    """
    path = demo_file(name)
    mechanism = load_robot(name)
    free, motions = read_free_demo(path, mechanism), case_motions(mechanism)
    if free is not None and motions is not None:
        return _case_experiment(mechanism, motions, free, free.seed if seed is None else seed, progress)
    demo = read_demo(path, mechanism)
    chosen = demo.seed if seed is None else seed
    # Spawned seeds: neighbouring seeds of the caller give independent streams, and so do the runs.
    states = np.random.SeedSequence(chosen).generate_state(2 * (len(demo.runs) + 1))
    names = [f"{name} run {i + 1}" for i in range(len(demo.runs))] + [f"{name} validation"]
    logs = []
    for i, (log_name, mounted) in enumerate(zip(names, (*demo.runs, demo.validation), strict=True)):
        if progress is not None:
            progress("simulating", i / len(names))
        motion = random_motion(
            mechanism,
            seed=int(states[2 * i]),
            harmonics=demo.harmonics,
            frequency=demo.frequency,
            draws=demo.draws,
        )
        log = simulate_log(
            mechanism,
            demo.truth,
            motion,
            rate=demo.rate,
            duration=demo.periods * motion.period,
            encoder_resolution=demo.encoder,
            torque_sigma=demo.torque_sigma,
            seed=int(states[2 * i + 1]),
            payloads=mounted,
            tension=demo.tension,
            name=log_name,
        )
        logs.append(log)
    if progress is not None:
        progress("simulating", 1.0)
    return BuiltInExperiment(mechanism, tuple(logs[:-1]), logs[-1], demo.truth, chosen, demo.model)


def _case_experiment(
    mechanism: Mechanism, motions: CaseMotions, demo: FreeDemo, seed: int, progress: Progress | None
) -> BuiltInExperiment:
    """The experiment of a robot that no motor leads."""
    if progress is not None:
        progress("simulating", 0.0)
    log, validation = motions.demo(mechanism, demo, seed)
    if progress is not None:
        progress("simulating", 1.0)
    return BuiltInExperiment(mechanism, (log,), validation, demo.truth, seed)


def run_demo(name: str, progress: Progress | None = None, seed: int | None = None) -> Estimate:
    """Simulate a built-in robot, identify it, and add the true base values to the estimate."""
    from dynid.pipeline import identify_logs

    prepare_kernels(load_robot(name), logs=True)
    demo = built_in_experiment(name, seed, progress)
    experiment = Experiment(robot=name, model=demo.model, name=f"demo {name}")
    estimate = identify_logs(
        demo.mechanism, demo.logs, (demo.validation,), experiment, progress, truth=demo.truth
    )
    return replace(estimate, provenance={**estimate.provenance, "seed": demo.seed})
