"""What is said about free motion: one norm for all residuals, fair ranking, no alarm by chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.cases.free_motion.checks import check_free_motion
from dynid.cases.free_motion.reference_mass import referred_values
from dynid.cases.free_motion.unit_mass import reference_of
from dynid.common.errors import InputError
from dynid.experiment.experiment import Experiment
from dynid.fit import fit_task
from dynid.kinematics.locked_motion import cable_shapes
from dynid.mechanism.load import load_robot
from dynid.motion.logs import log_from_arrays
from dynid.pipeline import identify_logs
from dynid.prediction.predict import PoseTrajectory, predict_efforts
from dynid.problem import as_log as prepared
from dynid.problem import prepare
from dynid.statistics.comparison import Line, recommend
from dynid.statistics.estimate import NOT_TESTED
from dynid.unknown import Task
from dynid.validation.compare import compare_logs
from dynid.validation.crossvalidation import held_out_error
from dynid.validation.held_out import validate_result
from tests.free_oscillations import RATE, TRUTH, as_log, oscillations

ROBOT = load_robot("cable4")
# Twice the noise of good markers: least squares is then off by percents, and it shows after seconds.
NOISE = 4e-4


@pytest.fixture(scope="module")
def noisy():
    return as_log(ROBOT, oscillations(4, 4.0), NOISE, 3)


@pytest.fixture(scope="module")
def identified(noisy):
    experiment = Experiment(robot=ROBOT)
    log = prepared(noisy, ROBOT, experiment)
    return identify_logs(ROBOT, [log], (), experiment, truth=TRUTH)


def test_the_figure_of_the_fit_is_that_of_its_runs(identified, noisy) -> None:
    """The line of the validation chart and its bars are one norm: the fitted log has the fitted figure."""
    [checked], _ = validate_result(identified, [replace(noisy, name="again")], ROBOT)
    squares = sum(run.sigma_perp**2 * run.n_samples for run in checked.runs)
    again = np.sqrt(squares / sum(run.n_samples for run in checked.runs))
    # Parameters go through the result's names: rounding only.
    assert identified.fit.sigma_perp == pytest.approx(again, rel=1e-6)
    assert all(run.motion_position_rms > 1e-3 for run in checked.runs)


def test_what_free_motion_does_not_test_is_said(identified) -> None:
    assert "gravity" in identified.choices[NOT_TESTED]
    assert "errors of 1 mm or 1 mrad of" in identified.choices[NOT_TESTED]


def test_compare_fits_as_identify_does_and_judges_by_motion(identified, noisy) -> None:
    experiment = Experiment(robot=ROBOT)
    log = prepared(noisy, ROBOT, experiment)
    found = compare_logs(ROBOT, [log], experiment, estimators=["ols", "gtls"], folds=2)
    least, total = found.lines
    assert total.fit_percent == pytest.approx(identified.fit.residual_percent, rel=1e-6)
    assert least.effort_percent is None
    assert set(total.by_effort) == {"position", "attitude"}
    assert 0.0 < total.held_out_percent < 10.0


@pytest.mark.parametrize("seed", [3, 4, 5, 6])
def test_simulated_motion_ranks_the_truth_above_least_squares(seed: int) -> None:
    """Rows hold the noise of their columns, which least squares is made to fit; simulated motion does not.

    Both errors contain the noise of the measured poses, 15 % of the motion: it is most of the truth's.
    """
    experiment = Experiment(robot=ROBOT, estimator="ols")
    log = prepared(as_log(ROBOT, oscillations(4, 4.0), 3e-3, seed), ROBOT, experiment)
    solved = fit_task(Task(ROBOT, (log,), experiment))
    values = referred_values(TRUTH, reference_of(solved.problem), solved.problem.parameters)
    truth = np.array([values.get(one.name, 0.0) for one in solved.problem.parameters])
    right, least = (
        held_out_error(solved.problem, chi, [log], experiment, solved.problem.plans).percent
        for chi in (truth, solved.chi)
    )
    assert right < least


def test_efforts_from_parameters_per_unit_mass_are_refused_for_that_reason(identified) -> None:
    t = np.arange(50) / 50.0
    trajectory = PoseTrajectory(t, {"x": 1.15 + 0.0 * t, "y": -0.15 + 0.0 * t, "z": -0.7 + 0.0 * t})
    with pytest.raises(InputError, match="per unit mass of 'platform'") as error:
        predict_efforts(identified, trajectory, robot=ROBOT)
    assert "known: {M:" in (error.value.remedy or "")


def test_noise_makes_no_energy() -> None:
    """Runs that hardly move beside the noise of their markers: energy goes up and down by chance."""
    alarms = 0
    for seed in range(3):
        log = as_log(ROBOT, oscillations(3, 5.0), 5e-3, seed)
        experiment = Experiment(robot=ROBOT)
        problem = prepare(ROBOT, [prepared(log, ROBOT, experiment)], experiment)
        values = referred_values(TRUTH, reference_of(problem), problem.parameters)
        chi = np.array([values.get(one.name, 0.0) for one in problem.parameters])
        alarms += len(check_free_motion(problem, chi))
    assert alarms == 0


def partial_log(q, sigma: float, seed: int):
    """x and y with noise of deviation `sigma` [m], and the locked lengths."""
    robot = replace(ROBOT, measured=("pose_x", "pose_y", *(cable.name for cable in ROBOT.cables)))
    runs, n, _ = q.shape
    held = []
    for one in q:
        lengths = np.stack([shape.length for _, shape, _, _ in cable_shapes(ROBOT, one)], axis=1)
        held.append(np.tile(lengths.mean(axis=0), (n, 1)))
    seen = q[:, :, :2] + sigma * np.random.default_rng(seed).standard_normal((runs, n, 2))
    t = np.concatenate([np.arange(n) / RATE + 100.0 * i for i in range(runs)])
    columns = np.column_stack([seen.reshape(-1, 2), np.concatenate(held)])
    segments = [(i * n, (i + 1) * n) for i in range(runs)]
    return log_from_arrays(robot, t, columns, None, name="partial", segments=segments)


def test_runs_that_x_and_y_do_not_describe_are_excluded_and_named() -> None:
    """Noise moves x and y of run 3 beyond a dead point; such a log was refused: its loops do not close."""
    experiment = Experiment(robot=ROBOT)
    q = oscillations(8, 4.0)[[1, 3, 5, 4]]
    log = prepared(partial_log(q, 2e-4, 0), ROBOT, experiment)
    fit = fit_task(Task(ROBOT, (log,), experiment))
    [source] = fit.problem.sources
    [text] = [one.text for one in source.notices if "Excluded" in one.text]
    assert "in run 3 of" in text
    assert "1 of 4 runs" in text
    # Its dead points are the reason, and matter no more.
    assert not {"dead-points", "singular-poses", "assembly-jump"} & {one.code for one in source.notices}
    assert not any(2 in group.runs for group in fit.system.groups)
    truth = fit.true_values(TRUTH)
    z = [(one.value - truth[one.name]) / one.sigma for one in fit.parts.parameters]
    # Nine errors over deviations from few blocks, Student's t with about seven degrees of freedom.
    assert np.abs(z).max() < 4.5


def test_free_auto_chooses_columns_of_the_pose() -> None:
    """It kept the whole pose without a word."""
    experiment = Experiment(robot=ROBOT, internal={"pose": "free", "free": "auto"})
    log = prepared(as_log(ROBOT, oscillations(4, 3.0)), ROBOT, experiment)
    own = [name for name in log.position_names if not name.startswith("cable")]
    assert len(own) == 2
    assert set(own) < {"pose_x", "pose_y", "pose_z"}


def test_a_tie_is_called_a_tie() -> None:
    """Folds of free motion: 2.48 and 2.38 % of two estimators are no reason to prefer one."""
    ols = Line("ols", n_parameters=9, held_out_percent=2.48, folds=(2.2, 2.7, 2.5))
    gtls = Line("gtls", n_parameters=9, held_out_percent=2.38, folds=(2.4, 2.3, 2.45))
    chosen, words = recommend([ols, gtls])
    assert chosen == "ols"  # of equals the first one
    assert "folds: gtls. These data do not decide" in words
    clear = replace(gtls, held_out_percent=1.2, folds=(1.0, 1.3, 1.25))
    assert "do not decide" not in recommend([ols, clear])[1]
    # The usual estimator stays where the folds do not decide, and gives way where they do.
    named = [replace(ols, estimator="ols"), replace(gtls, estimator="gtls")]
    chosen, words = recommend(named, "gtls")
    assert chosen == "gtls"
    assert words.endswith("These data do not decide, and gtls is the usual estimator here")
    better = replace(named[0], held_out_percent=2.3, folds=(2.32, 2.21, 2.37))  # by 3 % in every fold
    assert recommend([named[1], better], "gtls")[0] == "ols"


def test_whole_and_partial_poses_are_identified_together() -> None:
    robot = replace(ROBOT, measured=("pose_x", "pose_y", *(cable.name for cable in ROBOT.cables)))
    q = oscillations(4, 3.0)
    whole = as_log(ROBOT, q[:3], name="whole")
    poses = q[3]
    lengths = np.stack([shape.length for _, shape, _, _ in cable_shapes(ROBOT, poses)], axis=1)
    held = np.tile(lengths.mean(axis=0), (len(poses), 1))
    t = np.arange(len(poses)) / RATE
    partial = log_from_arrays(robot, t, np.column_stack([poses[:, :2], held]), None, name="partial")
    experiment = Experiment(robot=ROBOT)
    logs = [prepared(one, ROBOT, experiment) for one in (whole, partial)]
    assert logs[0].position_names != logs[1].position_names
    estimate = identify_logs(ROBOT, logs, (), experiment, truth=TRUTH)
    assert {group.name for group in estimate.fit.groups} == {"free1", "free2"}
    for one in estimate.parameters:
        # Rounding of the seven-point formula, as in the tests of whole poses; lengths from a mean of poses.
        assert abs(one.value - estimate.truth[one.name]) < 1e-5, one.name
