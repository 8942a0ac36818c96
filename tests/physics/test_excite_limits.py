"""Slopes of limits that are not linear, and of the information of closed robots, by finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.base.structural import structural_base
from dynid.excitation.closed import ClosedStates
from dynid.excitation.efforts import closed_efforts
from dynid.excitation.optimal.criteria import Criterion
from dynid.excitation.optimal.paths import ClosedPath, TreePath
from dynid.excitation.optimal.problem import Information
from dynid.excitation.optimal.soft_bodies import Collisions, Workspace
from dynid.excitation.optimal.soft_joints import EffortLimits, FollowingJoints, Singularity
from dynid.excitation.platform_series import guided
from dynid.excitation.random_motion import random_motion
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Capsule
from dynid.mechanism.parameters import parameter_table
from dynid.projection.model import MODELS
from dynid.robots.truth import Truth, true_values
from dynid.simulation.prescribed import inverse_efforts

STEP = 1e-6


def closed_case(name: str, samples: int = 40):
    """A robot moving some independent joints, and a motion of theirs that it can do."""
    robot = load_robot(name)
    motion = random_motion(robot, 3, draws=1)
    path = ClosedPath(robot, np.linspace(1.0, 2.0, len(robot.actuators)), motion.joints)
    t = np.arange(samples) / samples * motion.period
    series = motion.series
    return path, (series.q(t), series.dq(t), series.ddq(t)), motion.states(t)


def tree_case(name: str, samples: int = 40):
    robot = load_robot(name)
    rng = np.random.default_rng(4)
    path = TreePath(robot)
    return path, tuple(rng.normal(size=(3, samples, len(path.names))))


def changed(moved, order: int, step):
    return tuple(x + step if k == order else x for k, x in enumerate(moved))


def check_slopes(path, moved, limit, rtol: float = 1e-6) -> None:
    slopes = limit.slopes(path.states(moved))
    size = np.abs(slopes).max()
    assert size > 0.0
    assert len(limit.sides) == slopes.shape[1]
    for order in range(3):
        for i in range(len(path.names)):
            step = np.zeros_like(moved[0])
            step[:, i] = STEP
            ahead = limit.excess(path.states(changed(moved, order, step)))
            behind = limit.excess(path.states(changed(moved, order, -step)))
            # Rounding of poses (1e-13) over the step, relative to the largest slope.
            np.testing.assert_allclose(
                (ahead - behind) / (2 * STEP), slopes[order, :, :, i], atol=rtol * size
            )


@pytest.mark.parametrize("name", ["dualv", "palletiser", "rrr3"])
def test_joints_that_follow(name: str) -> None:
    path, moved, _ = closed_case(name)
    joints = [one for one in path.mechanism.coordinates if one not in path.names]
    limits = {one: {"q": (-2.0, 3.0), "dq": 5.0, "ddq": 50.0} for one in joints}
    path.mechanism = replace(path.mechanism, limits=limits)
    check_slopes(path, moved, FollowingJoints(path))


def test_jerk_of_joints_that_follow() -> None:
    """The jerk is the slope of the acceleration in time, and its slopes by the rates are exact."""
    path, _, _ = closed_case("dualv")
    joints = [one for one in path.mechanism.coordinates if one not in path.names]
    path.mechanism = replace(path.mechanism, limits={one: {"jerk": 100.0} for one in joints})
    limit = FollowingJoints(path)
    series = random_motion(path.mechanism, 3, draws=1).series
    t, h = np.linspace(0.1, 3.0, 30), 1e-4

    def third(t):  # five points of the acceleration
        a = [series.ddq(t + k * h) for k in (-2, -1, 1, 2)]
        return (a[0] - 8.0 * a[1] + 8.0 * a[2] - a[3]) / (12.0 * h)

    def states(t, changes=(0.0, 0.0, 0.0)):
        dy, ddy, dddy = (
            x + dx for x, dx in zip((series.dq(t), series.ddq(t), third(t)), changes, strict=True)
        )
        return replace(path.states((series.q(t), dy, ddy)), third=dddy)

    at = [path.mechanism.coordinates.index(one) for one in joints]
    found = 100.0 * (limit.excess(states(t))[::2].T + 1.0)
    slope = (states(t + h).ddq - states(t - h).ddq)[:, at] / (2.0 * h)
    # Second-order differences over h, of signals that change within tenths of a second.
    np.testing.assert_allclose(found, slope, atol=1e-5 * np.abs(slope).max())
    slopes, step = limit.slopes(states(t)), 1e-5
    for order in range(3):
        for i in range(len(path.names)):
            push = [0.0, 0.0, 0.0]
            push[order] = step * np.eye(len(path.names))[i]
            ahead, behind = (limit.excess(states(t, [sign * x for x in push])) for sign in (1.0, -1.0))
            # The jerk is cubic in the rates: rounding of poses over the step remains.
            np.testing.assert_allclose(
                (ahead - behind) / (2.0 * step), slopes[order + 1, :, :, i], atol=1e-6 * np.abs(slopes).max()
            )


@pytest.mark.parametrize("name", ["dualv", "orthoglide"])
def test_distance_to_singular_poses(name: str) -> None:
    path, moved, _ = closed_case(name)
    check_slopes(path, moved, Singularity(path, 30.0), rtol=1e-5)


@pytest.mark.parametrize("name", ["dualv", "orthoglide"])
def test_efforts_of_closed_robots(name: str) -> None:
    path, moved, states = closed_case(name)
    if name == "dualv":  # redundant: efforts of least norm are those of equal noise
        path.sigma = np.full(len(path.rows), 3.0)
    robot = replace(
        path.mechanism, limits={one.name: {"tau": 30.0} for one in path.mechanism.actuators}, payloads={}
    )
    path.mechanism = robot
    chi = np.random.default_rng(0).uniform(0.1, 1.0, len(parameter_table(robot)))
    widths = np.full(sum(robot.actuator_map.shape), 0.1)
    check_slopes(path, moved, EffortLimits(path, chi, softness=widths))
    exact = EffortLimits(path, chi).efforts(path.states(moved))
    # Two solvers of the same linear equations.
    np.testing.assert_allclose(exact, closed_efforts(robot, chi, states), atol=1e-9 * np.abs(exact).max())


def test_efforts_of_a_tree() -> None:
    path, moved = tree_case("ur5")
    robot = replace(
        path.mechanism, limits={one.name: {"tau": (-20.0, 30.0)} for one in path.mechanism.actuators}
    )
    path.mechanism = robot
    chi = np.random.default_rng(0).uniform(0.1, 1.0, len(parameter_table(robot)))
    widths = np.full(sum(robot.actuator_map.shape), 0.1)
    check_slopes(path, moved, EffortLimits(path, chi, softness=widths))
    exact = EffortLimits(path, chi).efforts(path.states(moved))
    expected = inverse_efforts(robot, chi, *moved)
    np.testing.assert_allclose(exact, expected, atol=1e-10 * np.abs(expected).max())  # rounding


def test_workspace_and_collisions() -> None:
    path, moved = tree_case("ur5")
    bodies = list(path.mechanism.bodies)
    capsule = Capsule(np.array([0.0, 0.0, -0.1]), np.array([0.05, 0.2, 0.3]), 0.08)
    path.mechanism = replace(
        path.mechanism,
        limits={bodies[-1]: {"x": (-0.5, 0.4), "z": 0.9}},
        capsules={"base": (capsule,), bodies[-2]: (capsule,), bodies[2]: (capsule, capsule)},
    )
    check_slopes(path, moved, Workspace(path))
    check_slopes(path, moved, Collisions(path))


@pytest.mark.parametrize("name", ["dualv", "rrr3"])
def test_information_of_closed_robots(name: str) -> None:
    path, moved, _ = closed_case(name, 80)
    robot = replace(path.mechanism, payloads={})
    path.mechanism = robot
    base = structural_base(robot, MODELS["inverse"], parameter_table(robot), None)
    widths = np.full(sum(robot.actuator_map.shape), 0.5)
    plain = Information(path, base, path.sigma, softness=widths)
    scale = np.linalg.norm(plain.rows_of(path.states(moved)), axis=0)
    information = Information(path, base, path.sigma, scale=scale, softness=widths)
    criterion = Criterion("logdet")

    def value(moved) -> float:
        return criterion.smooth(information.gram(moved)[0])[0]

    G, tape = information.gram(moved)
    slopes = information.back(tape, criterion.smooth(G)[1])
    rng = np.random.default_rng(0)
    for order in range(3):
        step = rng.normal(size=moved[0].shape)
        found = (value(changed(moved, order, STEP * step)) - value(changed(moved, order, -STEP * step))) / (
            2 * STEP
        )
        # The information of a random motion is badly conditioned: rounding of the value is magnified.
        assert found == pytest.approx(float((slopes[order] * step).sum()), rel=1e-3)


def cable_case(samples: int = 30):
    """Eight cables led by the pose of their platform."""
    robot, names = guided(load_robot("cable8"), "platform")
    path = ClosedPath(robot, np.ones(8), names)
    t = np.linspace(0.0, 2.0, samples)[:, None]
    w = np.linspace(1.0, 3.0, 6)
    size = np.array([0.2, 0.15, 0.1, 0.1, 0.12, 0.15])
    return path, (size * np.sin(w * t), size * w * np.cos(w * t), -size * w**2 * np.sin(w * t))


def test_tensions_of_a_redundant_cable_robot() -> None:
    """They move the platform as asked, stay as near to the middle as they can, and have exact slopes."""
    path, moved = cable_case()
    robot = load_robot("cable8")
    values, _ = true_values(robot, Truth("demo"))
    chi = np.array([values[one.name] for one in parameter_table(robot)])
    limit = EffortLimits(path, chi)
    check_slopes(path, moved, limit)
    states = path.states(moved)
    tau = limit.efforts(states)
    # What the robot itself, without anything that leads it, needs at least.
    n_q, n_v = len(robot.positions), len(robot.coordinates)
    own = ClosedStates(states.q[:, :n_q], states.dq[:, :n_v], states.ddq[:, :n_v], states.tangent[:, :n_v])
    least = closed_efforts(robot, chi, own)
    J = np.einsum("av,nvd->nad", robot.actuator_map, own.N)
    np.testing.assert_allclose(
        np.einsum("nad,na->nd", J, tau), np.einsum("nad,na->nd", J, least), atol=1e-9 * np.abs(tau).max()
    )  # rounding
    apart = tau - 210.0  # least squares: no change that moves nothing brings it nearer to the middle
    still = np.linalg.svd(np.swapaxes(J, 1, 2))[2][:, 6:]
    np.testing.assert_allclose(np.einsum("nka,na->nk", still, apart), 0.0, atol=1e-9 * np.abs(tau).max())
