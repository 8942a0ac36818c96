"""Compiled Newton steps against factorisations at every pose, and against SciPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares

from dynid.kinematics.assembly import CLOSED, Assembly, assembly_of
from dynid.kinematics.sensors import Sensors, sensors_of
from dynid.kinematics.tracking import Tracker, same_pose
from dynid.mechanism.load import load_robot
from dynid.mechanism.variant import resized

CLOSED_ROBOTS = ("dualv", "orthoglide", "evra", "fivebar", "rrr3", "delta", "stewart", "palletiser")


def motion_of(assembly: Assembly, sensors: Sensors, n: int, seed: int = 0) -> np.ndarray:
    """Measured positions along a smooth motion about the start pose that the loops allow."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 1.0, n)[:, None]
    sway = [rng.normal(size=assembly.dof) * np.sin(2 * np.pi * k * t + rng.uniform(0, 6)) for k in (1, 2)]
    step = 0.04 * sum(sway)
    # Along tangent directions at the start pose, then closed: every pose is feasible.
    N = assembly.tangent(assembly.closure.values(assembly.start[None]).A)[0]
    from dynid.kinematics.closure import moved

    guess = moved(assembly.mechanism, np.repeat(assembly.start[None], n, axis=0), step @ N.T)
    return sensors.read(assembly.close(guess))


def tracker_of(name: str) -> tuple[Assembly, Sensors, Tracker]:
    robot = load_robot(name)
    assembly = assembly_of(robot)
    sensors = sensors_of(robot, robot.measured_positions)
    tracker = assembly.tracker(sensors)
    assert tracker is not None
    return assembly, sensors, tracker


@pytest.mark.parametrize("name", CLOSED_ROBOTS)
def test_tracked_poses_and_rates_equal_those_factorised_at_every_pose(name: str) -> None:
    assembly, sensors, tracker = tracker_of(name)
    wanted = motion_of(assembly, sensors, 150)
    q, done = tracker.track(assembly.start, wanted)
    assert done.all()
    assert assembly.gaps(q).max() < CLOSED
    # Two solvers of one problem, each closed to rounding; conditions stay below 100.
    np.testing.assert_allclose(q, assembly._follow(wanted, sensors), atol=1e-11)
    rng = np.random.default_rng(1)
    exact = assembly.random_rates(q, rng)
    first, second = exact[0][:, sensors.velocity], exact[1][:, sensors.velocity]
    dq, ddq, N, condition, left = tracker.rates(q, first, second)
    scale = np.abs(exact[1]).max()
    np.testing.assert_allclose(dq, exact[0], atol=1e-11 * scale)
    np.testing.assert_allclose(ddq, exact[1], atol=1e-10 * scale)
    # N spans the tangent space, whatever basis it is in.
    onto = exact[2] @ np.swapaxes(exact[2], 1, 2)
    np.testing.assert_allclose(onto @ N, N, atol=1e-11 * np.abs(N).max())
    assert left.max() < 1e-12  # fixed pivots lose a few digits of sixteen at most
    # The same elimination: equal to the last bit.
    np.testing.assert_array_equal(tracker.tangents(q, dq)[0], N)
    s = np.linalg.svd(exact[2][:, sensors.velocity], compute_uv=False)
    np.testing.assert_allclose(condition, np.sqrt(np.sum(s**-2.0, axis=1)), rtol=1e-9)  # rounding


@pytest.mark.parametrize("name", CLOSED_ROBOTS)
def test_closed_poses_equal_those_of_a_general_solver(name: str) -> None:
    """`close` against SciPy on the same equations, with a Jacobian by differences and unit quaternions."""
    assembly, sensors, _ = tracker_of(name)
    assembly = Assembly(assembly.mechanism)
    wanted = motion_of(assembly, sensors, 4)
    pose = assembly.close(np.repeat(assembly.start[None], 4, axis=0), wanted, sensors, iterations=40)
    assert assembly.gaps(pose).max() < CLOSED
    tree = assembly.closure.tree
    quaternions = tree.q_start[tree.kind == 3].tolist()

    def missed(q: np.ndarray, x: np.ndarray) -> np.ndarray:
        units = [q[i : i + 4] @ q[i : i + 4] - 1.0 for i in quaternions]
        f = assembly.closure.values(q[None]).f[0]
        return np.concatenate([f, sensors.miss(q[None], x[None])[0], units])

    for x, q in zip(wanted, pose, strict=True):
        solved = least_squares(missed, assembly.start, args=(x,), xtol=1e-15, ftol=1e-15, gtol=1e-15)
        # The solver ends at 1e-9 of its equations; conditions of these poses are below 100.
        assert np.abs(solved.fun).max() < 1e-9
        np.testing.assert_allclose(q, solved.x, atol=1e-7)


def test_a_resized_robot_is_tracked_by_the_pivots_of_the_first() -> None:
    robot = load_robot("evra")
    larger = resized(robot, {"bz": robot.geometry["bz"] + 0.01})
    assert larger is not None
    sensors = sensors_of(robot, robot.measured_positions)
    beside, alone = assembly_of(larger, near=robot), Assembly(larger)
    trackers = [one.tracker(sensors) for one in (beside, alone)]
    assert trackers[0] is not None
    assert trackers[1] is not None
    wanted = motion_of(alone, sensors, 60)
    poses = [one.track(alone.start, wanted)[0] for one in trackers]
    np.testing.assert_allclose(poses[0], poses[1], atol=1e-11)  # both closed to rounding


def test_more_sensors_than_freedoms_are_met_in_weighted_least_squares() -> None:
    assembly, sensors, _ = tracker_of("dualv")
    robot = assembly.mechanism
    rng = np.random.default_rng(3)
    weights = (1.0, 0.2, 3.0, 0.5)
    noisy = motion_of(assembly, sensors, 12) + 0.01 * rng.normal(size=(12, 4))
    weighted = sensors_of(robot, robot.measured_positions, weights)
    q = assembly.track(noisy, weighted)
    assert assembly.gaps(q).max() < CLOSED
    leg = sensors_of(robot, ("motor1", "elbow1", "wrist1"))  # one leg tells the platform's pose
    for i in range(len(q)):

        def miss(x: np.ndarray, i: int = i) -> np.ndarray:
            pose = assembly.close(q[i : i + 1], x[None], leg)
            return np.asarray(weights) * sensors.miss(pose, noisy[i : i + 1])[0]

        x = leg.read(q[i : i + 1])[0]
        best = least_squares(miss, x + 0.01, xtol=1e-13, ftol=1e-13, gtol=1e-13)
        # Finite-difference Jacobians of SciPy stop at the square root of rounding.
        np.testing.assert_allclose(best.x, x, atol=2e-7)


def test_a_measured_platform_pose_tells_the_legs() -> None:
    robot = load_robot("stewart")
    pose = next(joint for joint in robot.joints if joint.has_quaternion)
    seeing = replace(robot, measured=(pose.name,))
    assembly = assembly_of(robot)
    legs = sensors_of(robot, robot.measured_positions)
    q = assembly.track(motion_of(assembly, legs, 80), legs)
    sensors = sensors_of(seeing, seeing.measured_positions)
    wanted = sensors.read(q)
    wanted[::2, 3:] *= -1.0  # a quaternion and its negative are one attitude
    found = assembly_of(seeing).track(wanted, sensors)
    assert same_pose(assembly.closure, found, q).all()
    # Rates: derivatives of the quaternion become the angular velocity of the platform.
    dt = 1e-4
    dq, ddq, _ = assembly.random_rates(q, np.random.default_rng(0))
    del ddq
    from dynid.kinematics.closure import moved

    ahead, behind = (sensors.read(moved(robot, q, s * dt * dq)) for s in (1.0, -1.0))
    slope = (ahead - behind) / (2 * dt)
    first, _ = sensors.rates(sensors.read(q), slope, np.zeros_like(slope))
    # Central differences of a unit quaternion: h^2 times third derivatives (|dq|^3 of ten).
    np.testing.assert_allclose(first, dq[:, sensors.velocity], atol=1e-5)


def test_a_stretch_that_begins_on_another_branch_is_done_again() -> None:
    assembly, sensors, tracker = tracker_of("fivebar")
    wanted = motion_of(assembly, sensors, 800)
    q, _ = tracker.track(assembly.start, wanted)
    elbows = np.random.default_rng(5).uniform(-3.0, 3.0, (40, 2))
    guess = np.column_stack([np.full(40, q[400, 0]), elbows[:, 0], np.full(40, q[400, 2]), elbows[:, 1]])
    closed = assembly.close(guess, np.repeat(wanted[400:401], 40, axis=0), sensors, iterations=40)
    turned = np.abs(closed[:, 1] - q[400, 1]) > 0.5
    mirrored = closed[turned & (assembly.gaps(closed) < CLOSED)][:1]  # the tip on the other side
    broken, done = q.copy(), np.ones(len(q), dtype=bool)
    first = np.arange(0, 800, 100)
    other, _ = tracker.march(mirrored, np.array([0]), wanted[400:500])
    assert not same_pose(assembly.closure, other, q[400:500]).any()
    broken[400:500] = other
    tracker._join(wanted, first, 100, broken, done)
    assert same_pose(assembly.closure, broken, q).all()


def test_unreachable_samples_are_told_and_the_others_kept() -> None:
    assembly, sensors, tracker = tracker_of("fivebar")
    wanted = motion_of(assembly, sensors, 300)
    far = wanted.copy()
    far[150] += np.array([3.0, -3.0])
    q, done = tracker.track(assembly.start, far)
    fine = assembly.gaps(q) < CLOSED
    assert not (done & fine)[150] or np.abs(sensors.miss(q, far)[150]).max() > 1e-6
    others = np.arange(300) != 150
    assert done[others].all()
    whole = tracker.track(assembly.start, wanted)[0]
    assert same_pose(assembly.closure, q[others], whole[others]).all()
