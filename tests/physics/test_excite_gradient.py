"""Slopes of the regressor and of every criterion against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.base.structural import structural_base
from dynid.excitation.optimal.box import Blocks, box_of
from dynid.excitation.optimal.criteria import CRITERIA, Criterion
from dynid.excitation.optimal.families import family_of
from dynid.excitation.optimal.paths import TreePath
from dynid.excitation.optimal.problem import Information, Problem
from dynid.kinematics.closure import moved
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.projection.model import MODELS
from dynid.regressor.adjoint import AdjointRegressor
from tests.random_mechanisms import random_tree

STEP = 1e-6
# Central differences of step 1e-6 lose 1e-12 by curvature and 1e-10 of the sum's size by rounding.
RTOL = 1e-7


def random_state(robot, n: int, rng: np.random.Generator):
    q = rng.normal(size=(n, len(robot.positions)))
    at = 0
    for joint in robot.joints:
        stop = at + len(joint.positions)
        if joint.has_quaternion:
            q[:, stop - 4 : stop] /= np.linalg.norm(q[:, stop - 4 : stop], axis=1, keepdims=True)
        at = stop
    dq, ddq = rng.normal(size=(2, n, len(robot.coordinates)))
    return q, dq + 0.3 * np.sign(dq), ddq  # away from standstill, where friction has no slope


def check_slopes(robot, seed: int) -> None:
    rng = np.random.default_rng(seed)
    widths = np.full(sum(robot.actuator_map.shape), 0.3)
    regressor = AdjointRegressor(robot, parameter_table(robot), widths=widths)
    n = 70  # more than one tile, the second one short
    q, dq, ddq = random_state(robot, n, rng)
    weights = rng.normal(size=(regressor.layout.n_entries, n))

    def total(*state):
        return (weights * regressor.packed(*state)).sum(axis=0)

    slopes = regressor.slopes(q, dq, ddq, weights)
    size = max(1.0, *(float(np.abs(x).max()) for x in (slopes.q, slopes.dq, slopes.ddq)))
    for c in range(dq.shape[1]):
        step = np.zeros_like(dq)
        step[:, c] = STEP
        ahead = total(moved(robot, q, step), dq, ddq), total(q, dq + step, ddq), total(q, dq, ddq + step)
        back = total(moved(robot, q, -step), dq, ddq), total(q, dq - step, ddq), total(q, dq, ddq - step)
        for one, other, found in zip(ahead, back, (slopes.q, slopes.dq, slopes.ddq), strict=True):
            np.testing.assert_allclose((one - other) / (2 * STEP), found[:, c], atol=RTOL * size)


@pytest.mark.parametrize("name", ["ur5", "scara", "stewart", "palletiser"])
def test_slopes_of_the_tree_of_built_in_robots(name: str) -> None:
    check_slopes(load_robot(name), 1)


@pytest.mark.parametrize("seed", range(6))
def test_slopes_of_random_trees_with_all_kinds_of_joints(seed: int) -> None:
    drive = tuple(symbol for symbol in DRIVE_SYMBOLS if symbol != "Fl")  # its load is not of the motion
    check_slopes(random_tree(np.random.default_rng(seed), 8, drive=drive), seed)


def small_problem(criterion: Criterion, family: str = "fourier") -> Problem:
    robot = load_robot("scara")
    parameters = parameter_table(robot)
    model = MODELS["inverse"]
    base = structural_base(robot, model, parameters, model.directions(robot))
    path = TreePath(robot)
    blocks = Blocks(family_of(family, 6, 4.0), box_of(robot, path.names))
    widths = np.full(sum(robot.actuator_map.shape), 0.05)
    rng = np.random.default_rng(2)
    moved = tuple(rng.normal(size=(3, 60, 4)))
    plain = Information(path, base, np.ones(4))
    scale = np.linalg.norm(plain.rows_of(path.states(moved)), axis=0)
    information = Information(path, base, np.array([1.0, 2.0, 3.0, 0.5]), scale=scale, softness=widths)
    return Problem(blocks, information, criterion, 150)


@pytest.mark.parametrize("name", CRITERIA)
def test_slopes_of_criteria(name: str) -> None:
    check_problem(small_problem(Criterion(name, picked=(0, 3), power=4.0)))


@pytest.mark.parametrize("family", ["spline", "points"])
def test_slopes_of_other_families(family: str) -> None:
    check_problem(small_problem(Criterion("logdet"), family))


def check_problem(problem: Problem) -> None:
    rng = np.random.default_rng(3)
    z = problem.blocks.random(rng, 0.5)
    slope = problem.gradient(problem.evaluate(z))
    for _ in range(3):
        direction = rng.normal(size=len(z))
        ahead = problem.evaluate(z + STEP * direction).value
        back = problem.evaluate(z - STEP * direction).value
        # Values of order 100 rounded at 1e-14, divided by 2e-6: absolute errors near 1e-7.
        assert (ahead - back) / (2 * STEP) == pytest.approx(slope @ direction, rel=1e-5, abs=1e-5)
