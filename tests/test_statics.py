"""Robots at rest on locked cables: equilibria, stability, modes, and lengths for a wanted pose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.common.errors import InputError, NoResultError
from dynid.dynamics.free_motion import LockedCables, free_motions
from dynid.dynamics.statics import equilibria, lengths_for, modes, rest
from tests import cable_oracle as oracle
from tests.cable_robots import POSE, paper_robot, parameters, robot_on


def hanging_rod() -> tuple[oracle.CableSet, oracle.Platform, LockedCables, np.ndarray]:
    """Three eyelets above a platform whose centre of mass stands high: it can hang upside down too."""
    D = np.array([[0.6, 0.0, 1.0], [-0.3, 0.5, 1.0], [-0.3, -0.5, 1.0]])
    A = np.array([[0.3, 0.0, 0.05], [-0.15, 0.25, 0.05], [-0.15, -0.25, 0.05]])
    cables = oracle.CableSet(D, A, np.tile([0.0, 0.0, 1.0], (3, 1)), np.zeros(3))
    platform = oracle.Platform(4.0, 4.0 * np.array([0.01, 0.0, -0.1]), 4.0 * np.diag([0.05, 0.06, 0.04]))
    pose = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    robot = LockedCables(robot_on(cables, pose), parameters(platform))
    return cables, platform, robot, oracle.lengths(cables, pose[:3], np.eye(3))


def test_the_equilibrium_and_its_tensions_are_those_of_the_wrench_balance() -> None:
    cables, platform, robot, lengths = paper_robot()
    pose, tensions = oracle.equilibrium(cables, platform, lengths, POSE)
    found = rest(robot, lengths)
    # SciPy's root finder stops at 1e-13 of its unknowns.
    np.testing.assert_allclose(found.q, pose, atol=1e-9)
    np.testing.assert_allclose(found.tensions, tensions, rtol=1e-8)
    np.testing.assert_allclose(found.lengths, lengths)
    assert found.stable
    assert found.taut


def test_stability_is_the_curvature_of_the_potential_energy() -> None:
    _, _, robot, lengths = hanging_rod()
    found = equilibria(robot, lengths, count=24)
    assert len(found) > 1  # hanging, and at least one that would fall over
    assert found[0].stable
    assert not all(one.stable for one in found)
    rng = np.random.default_rng(0)
    for one in found[:3]:
        q = np.repeat(one.q[None], 60, axis=0)
        N = robot.assembly.tangent(robot.assembly.closure.values(q).A)
        along = np.einsum("nvd,nd->nv", N, 2e-3 * rng.normal(size=(60, 3)))
        from dynid.kinematics.closure import moved

        near, _ = robot.closed(moved(robot.robot, q, along), lengths)
        gain = robot.energy(near, np.zeros((60, 6))) - one.energy
        assert np.all(gain > 0.0) == one.stable


def test_modes_are_what_small_motions_do() -> None:
    _, _, robot, lengths = hanging_rod()
    at = rest(robot, lengths)
    found = modes(robot, at)
    assert [one.frequency for one in found] == sorted(one.frequency for one in found)
    for mode in found:
        # Released with the velocity of one mode the platform comes back after one period, as it began.
        speed = 1e-4 * mode.shape[None]
        period = 1.0 / mode.frequency
        motion = free_motions(robot, robot.values, lengths[None], at.q[None], period, 100.0 / period, speed)
        # Small: what bends with the amplitude is 1e-4 of it.
        np.testing.assert_allclose(motion.q[-1, 0], at.q, atol=1e-7)
        np.testing.assert_allclose(motion.dq[-1, 0], motion.dq[0, 0], atol=1e-3 * 1e-4)
    assert "Hz: " in found[0].words
    unstable = next(one for one in equilibria(robot, lengths, count=24) if not one.stable)
    with pytest.raises(NoResultError, match="unstable"):
        modes(robot, unstable)


def test_lengths_lead_to_the_pose_that_is_wanted() -> None:
    _, _, robot, _ = paper_robot()
    wanted = {"pose_x": 1.1, "pose_y": -0.1, "pose_z": -0.5}
    found = lengths_for(robot, wanted)
    np.testing.assert_allclose(found.q[:3], list(wanted.values()), atol=1e-10)  # a Newton search
    again = rest(robot, found.lengths, near=found.q)
    np.testing.assert_allclose(again.q, found.q, atol=1e-9)
    assert found.taut
    with pytest.raises(InputError, match="6 coordinates are prescribed for a robot on 4 cables"):
        lengths_for(robot, dict(zip(robot.robot.positions, POSE.tolist(), strict=True)))


def test_bad_lengths_are_refused_with_the_cable() -> None:
    _, _, robot, lengths = paper_robot()
    with pytest.raises(InputError, match="3 lengths for 4 cables"):
        rest(robot, lengths[:3])
    with pytest.raises(InputError, match="'cable2' cannot have length -1 m"):
        rest(robot, np.array([1.0, -1.0, 1.0, 1.0]))
    with pytest.raises(InputError, match=r"in the best pose cable 'cable\d' is too short by"):
        rest(robot, np.full(4, 0.3))
    slack = lengths + np.array([0.0, 0.15, 0.0, 0.15])
    with pytest.raises(NoResultError, match="pushes"):
        rest(robot, slack)
    light = LockedCables(replace(robot.robot, gravity=np.zeros(3)), robot.values)
    with pytest.raises(InputError, match="has no weight"):
        rest(light, lengths)
    with pytest.raises(InputError, match="has no cables"):
        LockedCables(replace(robot.robot, cables=()), robot.values)
