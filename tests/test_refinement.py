"""Output-error refinement: finds the way back to the truth, says when it adds nothing, and never harms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.base.structural import structural_base
from dynid.base.system import base_system
from dynid.common.errors import InputError
from dynid.estimator.estimator import estimator_named
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import load_robot
from dynid.pipeline import identify_logs
from dynid.problem import build_system, prepare
from dynid.refinement.joints import RefineSettings, refine
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.uncertainty import student_t95


def simulated(name: str, *, periods: float = 1.0, sigma_scale: float = 1.0):
    """A robot, its log and its truth; friction that jumps is left out: reversals are another matter."""
    robot = load_robot(name)
    robot = replace(
        robot, drive={owner: tuple(s for s in own if s[:2] != "Fs") for owner, own in robot.drive.items()}
    )
    demo = read_demo(demo_file(name), load_robot(name))
    truth = {key: value for key, value in demo.truth.items() if key[:2] != "Fs"}
    motion = random_motion(robot, seed=1, harmonics=demo.harmonics, frequency=demo.frequency, draws=1)
    log = simulate_log(
        robot,
        truth,
        motion,
        rate=500.0,
        duration=periods * motion.period,
        encoder_resolution=demo.encoder,
        torque_sigma=sigma_scale * np.asarray(demo.torque_sigma),
        seed=2,
    )
    return robot, log, truth


def linear_fit(robot, log):
    problem = prepare(robot, [log], Experiment(robot=robot))
    base = structural_base(
        problem.mechanism, problem.model, problem.parameters, problem.directions, loads=problem.loads
    )
    data = base_system(build_system(problem), base)
    return problem, data, estimator_named("wls")(data.system)


@pytest.mark.parametrize("name", ["scara", "fivebar"])
def test_a_spoiled_estimate_is_led_back_and_a_good_one_left_alone(name: str) -> None:
    robot, log, truth = simulated(name, periods=2.0)
    problem, data, solution = linear_fit(robot, log)
    known = data.values_of(truth)
    true = np.array([known[one.name] for one in data.system.parameters])
    settings = RefineSettings(window=0.12, windows=24)
    spoiled = solution.chi * (1.0 + 0.05 * np.random.default_rng(3).normal(size=len(true)))
    doubt = (0.05 * np.diag(np.abs(spoiled))) ** 2 + solution.covariance
    found = refine(problem, data.S, data.base.c, spoiled, doubt, settings)
    assert found.covariance is not None
    # Over eight seeds each the intervals held the truth in 95 % (scara) and 100 % (fivebar, few windows).
    z = np.abs(found.chi - true) / np.sqrt(np.diag(found.covariance))
    assert np.mean(z < student_t95(found.windows - 1)) > 0.75
    assert found.after < 0.5 * found.before
    # In the combinations that the motion shows, which the linear fit knows to a few deviations.
    root = np.linalg.cholesky(np.linalg.inv(solution.covariance))
    far, near = (np.linalg.norm(root.T @ (one - true)) for one in (spoiled, found.chi))
    assert near < 0.3 * far
    good = refine(problem, data.S, data.base.c, solution.chi, solution.covariance, settings)
    if good.covariance is None:
        np.testing.assert_array_equal(good.chi, solution.chi)
        assert [notice.code for notice in good.notices] == ["refinement-adds-nothing"]
    # Taken or not, the truth stays as near as noise allows.
    assert np.linalg.norm(root.T @ (good.chi - true)) < 3.0 * np.linalg.norm(root.T @ (solution.chi - true))


def test_the_experiment_asks_for_it_and_the_result_says_what_came_of_it() -> None:
    robot, log, _ = simulated("scara")
    plain = identify_logs(robot, [log])
    asked = Experiment(robot=robot, refine={"window": 0.2, "windows": 16})
    refined = identify_logs(robot, [log], experiment=asked)
    assert "held-out position error" in refined.choices["refinement"]
    if any(notice.code == "refinement-adds-nothing" for notice in refined.warnings):
        assert [one.value for one in refined.parameters] == [one.value for one in plain.parameters]
    else:
        assert {one.sigma_by for one in refined.parameters} == {"windows"}


def test_bad_settings_are_refused() -> None:
    robot, log, _ = simulated("scara")
    with pytest.raises(InputError, match="refine has no 'windw'; did you mean 'window'"):
        Experiment(robot=robot, refine={"windw": 0.2})
    with pytest.raises(InputError, match="refine cannot be combined with 'keep'"):
        Experiment(robot=robot, refine=True, keep=("M_*",))
    with pytest.raises(InputError, match=r"refine\.window: -1 is not positive"):
        RefineSettings(window=-1)
    with pytest.raises(InputError, match=r"the logs have \d windows of 4 s: too few"):
        identify_logs(robot, [log], experiment=Experiment(robot=robot, refine=RefineSettings(window=4.0)))
