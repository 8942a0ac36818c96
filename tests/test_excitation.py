"""Fourier motions: exact derivatives, rest at both ends, limits, and the choice among draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.common.errors import InputError
from dynid.excitation.closed import closed_condition, independent_joints
from dynid.excitation.random_motion import (
    random_motion,
    regressor_condition,
    robot_limits,
)
from dynid.excitation.series import FourierMotion, Limits, at_rest, scaled_condition, scaled_into
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.joint import JointKind
from dynid.mechanism.load import load_robot
from tests.random_mechanisms import random_tree


def random_series(rng: np.random.Generator, harmonics: int = 5, n: int = 4) -> FourierMotion:
    return at_rest(0.2, rng.normal(size=(harmonics, n)), rng.normal(size=(harmonics, n)))


def random_limits(rng: np.random.Generator, n: int) -> Limits:
    low = rng.uniform(-3, 1, n)
    return Limits(low, low + rng.uniform(0.1, 4, n), rng.uniform(0.1, 5, n), rng.uniform(0.1, 50, n))


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), harmonics=st.integers(3, 9))
def test_motions_begin_and_end_at_rest(seed: int, harmonics: int) -> None:
    rng = np.random.default_rng(seed)
    motion = scaled_into(random_series(rng, harmonics), random_limits(rng, 4))
    ends = np.array([0.0, motion.period, 2 * motion.period])
    t = np.linspace(0, motion.period, 999)
    # Rounding of sums of a few sines at multiples of 2 pi.
    assert np.abs(motion.dq(ends)).max() < 1e-12 * np.abs(motion.dq(t)).max()
    assert np.abs(motion.ddq(ends)).max() < 1e-12 * np.abs(motion.ddq(t)).max()
    assert np.ptp(motion.q(ends), axis=0).max() < 1e-12


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_scaled_motions_stay_within_limits_and_reach_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    limits = random_limits(rng, 4)
    motion = scaled_into(random_series(rng), limits, margin=0.0)
    t = np.linspace(0, motion.period, 20011)
    q, dq, ddq = motion.q(t), np.abs(motion.dq(t)), np.abs(motion.ddq(t))
    assert np.all(q > limits.low)
    assert np.all(q < limits.high)
    assert np.all(dq < limits.dq)
    assert np.all(ddq < limits.ddq)
    used = [np.ptp(q, 0) / (limits.high - limits.low), dq.max(0) / limits.dq, ddq.max(0) / limits.ddq]
    # All but the allowance for peaks between two points of the grid.
    assert np.all(np.max(used, axis=0) > 0.999)


def test_rates_are_exact_by_the_complex_step() -> None:
    motion = random_series(np.random.default_rng(1))
    t, step = np.linspace(0, 7, 50), 1e-30
    # The complex step has no truncation error: rounding only.
    np.testing.assert_allclose(motion.q(t + 1j * step).imag / step, motion.dq(t), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(motion.dq(t + 1j * step).imag / step, motion.ddq(t), rtol=1e-12, atol=1e-12)


def test_one_limit_at_a_time_binds() -> None:
    motion = random_series(np.random.default_rng(2), n=1)
    wide = np.array([1e9])
    slow = scaled_into(motion, Limits(-wide, wide, np.array([0.5]), wide), margin=0.0)
    t = np.linspace(0, motion.period, 5001)
    assert 0.499 < np.abs(slow.dq(t)).max() < 0.5
    lower, upper = np.array([1.0]), np.array([2.0])
    narrow = scaled_into(motion, Limits(lower, upper, wide, wide), margin=0.1)
    # A tenth of the range stays free, half of it on each side.
    assert narrow.q(t).min() == pytest.approx(1.05, abs=2e-3)
    assert narrow.q(t).max() == pytest.approx(1.95, abs=2e-3)


def test_the_same_seed_gives_the_same_motion() -> None:
    robot = load_robot("scara")
    first, again = (random_motion(robot, seed=4, draws=5) for _ in range(2))
    np.testing.assert_array_equal(first.sine, again.sine)
    assert not np.array_equal(first.sine, random_motion(robot, seed=5, draws=5).sine)


def test_more_draws_are_never_worse_conditioned() -> None:
    robot = load_robot("puma560")
    condition = regressor_condition(robot)
    values = [condition(random_motion(robot, seed=2, draws=draws)) for draws in (1, 5, 25)]
    assert values[0] >= values[1] >= values[2]
    assert values[2] < 50  # a useful motion: a tenth of a digit lost per parameter at most


def test_scaled_condition_equals_singular_values() -> None:
    rng = np.random.default_rng(3)
    W = rng.normal(size=(80, 9)) * 10.0 ** rng.integers(-6, 6, 9)
    singular = np.linalg.svd(W / np.linalg.norm(W, axis=0), compute_uv=False)
    # Eigenvalues of the inner products are good to cond^2 eps, here below 1e-12.
    assert scaled_condition(W) == pytest.approx(singular[0] / singular[-1], rel=1e-10)
    assert scaled_condition(np.column_stack([W, W[:, 0]])) == np.inf
    assert scaled_condition(np.column_stack([W, np.zeros(80)])) == np.inf


def test_motions_ask_for_what_they_need() -> None:
    robot = load_robot("scara")
    with pytest.raises(InputError, match=r"'elbow', .* have no position limits"):
        robot_limits(replace(robot, limits={"shoulder": {"q": (-1.0, 1.0)}}))
    with pytest.raises(InputError, match="2 harmonics"):
        random_motion(robot, harmonics=2)
    floating = random_tree(np.random.default_rng(0), 1, kinds=(JointKind.FREE,))
    with pytest.raises(InputError, match="quaternion"):
        random_motion(floating)


def test_limits_may_be_single_bounds_or_ranges() -> None:
    robot = load_robot("scara")
    one = {"q": 1.5, "dq": (-1.0, 2.0)}
    limits = robot_limits(replace(robot, limits=dict.fromkeys(robot.coordinates, one)))
    np.testing.assert_array_equal(limits.low, -1.5)
    np.testing.assert_array_equal(limits.high, 1.5)
    np.testing.assert_array_equal(limits.dq, 1.0)
    np.testing.assert_array_equal(limits.ddq, np.inf)


@pytest.mark.parametrize("name", ["dualv", "orthoglide", "evra"])
def test_closed_motions_keep_loops_closed_and_limits(name: str) -> None:
    robot = load_robot(name)
    motion = random_motion(robot, seed=2, frequency=0.4, draws=1)
    t = np.linspace(0, motion.period, 401)
    states = motion.states(t)
    q, dq, ddq = motion.measured(states)
    assert assembly_of(robot).gaps(states.q).max() < 1e-10
    s = np.linalg.svd(
        states.N[:, [robot.coordinates.index(joint) for joint in motion.joints]], compute_uv=False
    )
    assert np.max(s[:, 0] / s[:, -1]) < 60  # 50 on a coarser grid
    for i, joint in enumerate(robot.measured):
        low, high = robot.limits[joint]["q"]
        assert low < q[:, i].min() < q[:, i].max() < high
        assert np.abs(dq[:, i]).max() < robot.limits[joint]["dq"]
        assert np.abs(ddq[:, i]).max() < robot.limits[joint]["ddq"]
    # At rest at both ends, to rounding of a few sines and of the loops' solution.
    assert np.abs(dq[[0, -1]]).max() < 1e-9
    assert np.abs(ddq[[0, -1]]).max() < 1e-9
    # Rates against central differences of the poses: h^2 / 6 times third derivatives of some 1e3.
    h = t[1] - t[0]
    np.testing.assert_allclose((q[2:] - q[:-2]) / (2 * h), dq[1:-1], atol=0.02 * np.abs(dq).max())
    np.testing.assert_allclose((dq[2:] - dq[:-2]) / (2 * h), ddq[1:-1], atol=0.02 * np.abs(ddq).max())


def test_independent_joints_are_the_measured_ones_where_they_fit() -> None:
    assert independent_joints(load_robot("orthoglide")) == ("slide1", "slide2", "slide3")
    robot = load_robot("dualv")
    joints = independent_joints(robot)
    assert len(joints) == 3  # four motors are one too many
    assembly = assembly_of(robot)
    N = assembly.tangent(assembly.closure.values(assembly.start[None]).A)
    assert np.linalg.cond(N[0, [robot.coordinates.index(joint) for joint in joints]]) < 10


def test_closed_draws_are_ranked_and_seeded() -> None:
    robot = load_robot("dualv")
    condition = closed_condition(robot)
    one, more, again = (random_motion(robot, 3, frequency=0.5, draws=draws) for draws in (1, 3, 3))
    assert condition(more) <= condition(one)
    np.testing.assert_array_equal(more.series.sine, again.series.sine)


def test_closed_motions_ask_for_what_they_need() -> None:
    robot = load_robot("orthoglide")
    with pytest.raises(InputError, match="2 harmonics"):
        random_motion(robot, harmonics=2)
    with pytest.raises(InputError, match=r"'slide2' at -0\.31.*outside its limits"):
        random_motion(replace(robot, limits={"slide2": {"q": (0.0, 1.0)}}))
    narrow = {"swing1": {"q": (-np.pi / 2 - 1e-6, -np.pi / 2 + 1e-6)}}
    with pytest.raises(InputError, match="no motion of robot 'orthoglide'"):
        random_motion(replace(robot, limits=narrow), draws=1)


def test_limits_that_a_urdf_lacks_go_into_a_robot_file_over_it(tmp_path):
    link = '<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
    joint = '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/></joint>'
    parts = ['<link name="base"/>', link.format("a"), link.format("b")]
    parts += [joint.format("pan", "base", "a"), joint.format("tilt", "a", "b")]
    (tmp_path / "arm.urdf").write_text(f'<robot name="arm">{"".join(parts)}</robot>')
    with pytest.raises(InputError) as refused:
        robot_limits(load_robot(tmp_path / "arm.urdf"))
    assert "joints 'pan', 'tilt' have no position limits" in refused.value.text
    assert "source: arm.urdf  and  limits: {pan: {q: [-1, 1]" in refused.value.remedy
