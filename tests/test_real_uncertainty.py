"""Two fits of pieces of one real log must differ as their intervals say."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dynid.base.structural import structural_base
from dynid.base.system import base_system
from dynid.estimator.estimator import estimator_named
from dynid.experiment.experiment import read_experiment
from dynid.mechanism.load import load_robot
from dynid.motion.log import Log
from dynid.pipeline import build_system, prepare
from dynid.problem import as_log
from dynid.statistics.covariance import covariance_of
from dynid.statistics.uncertainty import UncertaintySettings, student_t95

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data" / "panda_gaz"


def part(log: Log, start: float, stop: float) -> Log:
    """The samples of a log without gaps between two times in [s]."""
    i, k = np.searchsorted(log.t - log.t[0], [start, stop]).tolist()
    cut = {name: getattr(log, name) for name in ("t", "q", "dq", "ddq", "tau", "valid")}
    shorter = {name: value if value is None else value[i:k] for name, value in cut.items()}
    return replace(log, **shorter, segments=((0, k - i),))


@cache
def pieces(cut: float):
    """Solution and equations of the log before and after `cut` [s], with the same filters."""
    experiment = read_experiment(ROOT / "examples" / "real" / "panda_gaz.yaml")
    robot = load_robot(experiment.robot)
    log = as_log(experiment.logs[0], robot, experiment)
    problem = prepare(robot, [log], experiment)
    base = structural_base(
        problem.mechanism, problem.model, problem.parameters, problem.directions, loads=problem.loads
    )
    fits = []
    for start, stop in ((0.0, cut), (cut, np.inf)):
        one = problem.on([part(log, start, stop)], problem.plans, experiment)
        data = base_system(build_system(one), base)
        fits.append((estimator_named("wls")(data.system), data.blocked()))
    return fits


def compared(cut: float, method: str) -> tuple[float, float]:
    """Rms of the difference in its deviation, and the part of differences inside 95 %."""
    settings = UncertaintySettings(method)
    (one, first), (two, second) = [
        (solution, covariance_of(system, solution, settings)) for solution, system in pieces(cut)
    ]
    variances = np.array([np.diag(first.covariance), np.diag(second.covariance)])
    variance = variances.sum(axis=0)
    z = (one.chi - two.chi) / np.sqrt(variance)
    # Welch and Satterthwaite: the freedoms of a sum of two variances.
    dof = variance**2 / np.sum(variances**2 / np.array([first.dof, second.dof]), axis=0)
    return float(np.sqrt(np.mean(z**2))), float(np.mean(np.abs(z) <= student_t95(dof)))


@pytest.mark.skipif(not DATA.is_dir(), reason="the real logs are not beside the project")
@pytest.mark.parametrize("cut", [7.5, 10.0])
def test_pieces_of_a_real_log_agree_as_their_intervals_say(cut: float) -> None:
    """The log is 15 s long: halves, and a piece of 10 s with the rest of 5 s; 69 parameters each."""
    rms, inside = compared(cut, "cluster")
    assert 0.7 <= rms <= 1.3
    assert inside >= 0.90
    rms, inside = compared(cut, "classical")
    assert rms > 1.8
    assert inside < 0.70
