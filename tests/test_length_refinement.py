"""Locked lengths as unknowns: their columns, and what refining them is good for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.cases.free_motion import cable_lengths as length_refinement
from dynid.cases.free_motion.cable_lengths import STEP, refined_lengths, settle_lengths
from dynid.cases.free_motion.log import free_motion_log, given_lengths, with_lengths
from dynid.cases.free_motion.measured_motion import simulate_free_motions
from dynid.conditioning.rewritten import slope_rows
from dynid.experiment.estimator_choice import free_motion_defaults
from dynid.experiment.experiment import Experiment
from dynid.experiment.sections import InternalSettings
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.load import load_robot
from dynid.motion.log import Log
from dynid.motion.motion import Motion
from dynid.problem import prepare
from dynid.unknown import Task
from tests.parameter_orders import named_values

TRUTH = {"M_platform": 10.0, "MX_platform": 0.04, "MY_platform": -0.06, "MZ_platform": 1.9}
TRUTH |= {"XX_platform": 0.51, "YY_platform": 0.69, "ZZ_platform": 0.37}
CABLES = ("cable1", "cable2", "cable3", "cable4")
WRONG = np.array([[3e-4, 0.0, -2e-4, 0.0]])


@pytest.fixture(scope="module")
def swing() -> tuple[Log, np.ndarray]:
    """One free motion in x and y with its true lengths."""
    robot = replace(load_robot("cable4"), measured=("pose_x", "pose_y", *CABLES))
    q = np.array([[1.3, -0.3, -0.5, np.cos(0.025), np.sin(0.025), 0.0, 0.0]])
    lengths = assembly_of(robot).closure.values(np.column_stack([q, np.zeros((1, 4))])).f
    log = simulate_free_motions(robot, TRUTH, lengths, q, rate=100.0, duration=2.0)
    return log, lengths


def experiment() -> Experiment:
    asked = Experiment(robot="cable4", internal={"lengths": "refine"})
    return free_motion_defaults(asked)


def test_columns_are_the_slopes_of_the_rows(swing) -> None:
    robot, (log, lengths) = load_robot("cable4"), swing
    log = free_motion_log(log, robot, InternalSettings())
    problem = prepare(robot, [log], experiment())
    source = problem.sources[0]
    chi = named_values(robot, TRUTH) / TRUTH["M_platform"]

    def along(step: np.ndarray):
        moved = with_lengths(log, robot, lengths + step)
        return problem.rows_along(Motion(moved, problem.plans[0]), aligned_to=source)

    changed = [along(STEP * step) for step in np.eye(4)]
    rows = slope_rows(source, [(one, None) for one in changed], [STEP] * 4, chi)
    start, stop = source.pieces()[0]
    _, packed, _ = next(rows.rows(start, stop, 64))
    W = rows.layout.dense(packed, 14)
    for j, step in enumerate(np.eye(4)):
        errors = []
        for sign in (1.0, -1.0):
            _, other, _ = next(along(sign * 1e-5 * step).rows(start, stop, 64))
            own = source.layout
            weights = own.coefficients(chi)
            weights[own.start[1:] - 1] = -1.0
            errors.append(own.sums(other, weights).T)
        central = (errors[0] - errors[1]) / 2e-5
        # One-sided differences of step 1e-5 m against central ones: second derivatives times 1e-5.
        np.testing.assert_allclose(W[:, :, 10 + j], central, atol=2e-2 * np.abs(central).max())


def test_refined_lengths_explain_the_motion(swing, monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(length_refinement._SCHEDULE, steps=3)
    monkeypatch.setattr(length_refinement, "_SCHEDULE", few)
    robot, (log, lengths) = load_robot("cable4"), swing
    wrong = with_lengths(log, robot, lengths + WRONG)
    asked = experiment()
    log = free_motion_log(wrong, robot, asked.internal)
    search = length_refinement._Search(robot, [log], asked, [lengths + WRONG])
    before = search.point([lengths + WRONG], None)
    found = refined_lengths(robot, [log], asked).logs[0]
    after = search.point([given_lengths(found, CABLES)], before.problem.plans)
    sizes = before.sizes()
    assert after.cost(sizes, search.first) < 0.1 * before.cost(sizes, search.first)
    # One run does not tell lengths and parameters apart: the belief keeps lengths within a few millimetres.
    assert np.abs(given_lengths(found, CABLES) - lengths).max() < 3e-3
    assert "refined with the parameters" in found.choices["locked lengths"]


def test_nothing_is_refined_unasked(swing) -> None:
    robot, (log, _) = load_robot("cable4"), swing
    log = free_motion_log(log, robot, InternalSettings())
    task = Task(robot, (log,), Experiment(robot=robot))
    assert settle_lengths(task).task is task
