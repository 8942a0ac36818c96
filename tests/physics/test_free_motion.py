"""Free motion on locked cables: against an independent model, energy and tensions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.cases.free_motion.measured_motion import simulate_free_motions
from dynid.common.errors import InputError
from dynid.dynamics.forward import ForwardDynamics
from dynid.dynamics.free_motion import LockedCables, free_motions
from dynid.dynamics.statics import rest
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.load import load_robot
from tests import cable_oracle as oracle
from tests.built_in import truth_of
from tests.cable_robots import paper_robot, parameters
from tests.parameter_orders import named_values


def displaced(robot: LockedCables, lengths: np.ndarray, n: int, seed: int = 0, reach: float = 0.05):
    """Poses some centimetres and hundredths of a radian from rest."""
    q = np.repeat(rest(robot, lengths).q[None], n, axis=0)
    rng = np.random.default_rng(seed)
    q[:, :2] += reach * rng.uniform(-1.0, 1.0, (n, 2))
    q[:, 3:] += 0.5 * reach * rng.uniform(-1.0, 1.0, (n, 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    return q


def test_motion_and_tensions_follow_an_independent_model() -> None:
    cables, platform, robot, lengths = paper_robot()
    start = displaced(robot, lengths, 1)
    speed = np.array([[0.2, -0.1, 0.0, 0.3, 0.2, -0.4]])
    found = free_motions(robot, robot.values, lengths[None], start, 1.0, 100.0, speed)
    R = oracle.rotation(found.q[0, 0, 3:])
    v = np.concatenate([found.dq[0, 0, :3], R @ found.dq[0, 0, 3:]])
    poses, _, pulls = oracle.free_motion(cables, platform, found.q[0, 0], v, found.t[::10])
    # DOP853 at 1e-12 a step, and finite differences of Xi in the oracle.
    np.testing.assert_allclose(found.q[::10, 0], poses, atol=1e-9)
    np.testing.assert_allclose(found.tensions[::10, 0], pulls, atol=1e-6 * pulls.max())


def test_energy_and_lengths_stay_over_ten_seconds() -> None:
    _, _, robot, lengths = paper_robot()
    start = displaced(robot, lengths, 4, reach=0.1)
    found = free_motions(robot, robot.values, np.repeat(lengths[None], 4, axis=0), start, 10.0, 100.0)
    assert found.taut.all()
    assert found.drift.max() < 1e-8  # what is promised; about 1e-9 is measured
    kept = robot.lengths(found.q.reshape(-1, 7))
    np.testing.assert_allclose(
        kept, np.broadcast_to(lengths, kept.shape), atol=1e-10
    )  # one Newton step a sample
    A = robot.assembly.closure.values(found.q[-1]).A
    np.testing.assert_allclose(np.einsum("ncv,nv->nc", A, found.dq[-1]), 0.0, atol=1e-12)  # rounding


def test_motions_with_lengths_of_their_own_go_side_by_side() -> None:
    _, _, robot, lengths = paper_robot()
    rng = np.random.default_rng(3)
    many = lengths + 0.03 * rng.uniform(-1.0, 1.0, (3, 4))
    starts = np.concatenate([displaced(robot, one, 1, seed=k) for k, one in enumerate(many)])
    together = free_motions(robot, robot.values, many, starts, 1.0, 50.0)
    for k in range(3):
        alone = free_motions(robot, robot.values, many[k : k + 1], starts[k : k + 1], 1.0, 50.0)
        # The number of substeps may differ with the company: two integrations of 1e-9.
        np.testing.assert_allclose(alone.q[:, 0], together.q[:, k], atol=1e-8)


def test_tensions_scale_with_the_mass_and_motion_does_not() -> None:
    _, platform, robot, lengths = paper_robot()
    start = displaced(robot, lengths, 1)
    specific = {name: value / platform.m for name, value in parameters(platform).items()}
    heavy = free_motions(robot, robot.values, lengths[None], start, 1.0, 50.0)
    light = free_motions(robot.robot, specific, lengths[None], start, 1.0, 50.0)
    np.testing.assert_allclose(light.q, heavy.q, atol=1e-10)  # rounding, grown over a second
    np.testing.assert_allclose(platform.m * light.tensions, heavy.tensions, rtol=1e-7)


def test_slack_is_found_and_refused() -> None:
    cables, platform, robot, lengths = paper_robot()
    start = rest(robot, lengths).q[None]
    thrown = np.array([[0.0, 0.0, 0.0, 9.0, 4.0, 0.0]])
    found = free_motions(robot, robot.values, lengths[None], start, 1.0, 100.0, thrown)
    when, cable = float(found.taut_until[0]), int(found.slack[0])
    assert 0.0 < when < 1.0
    assert not found.taut[0]
    # By the oracle's balance this cable pulls before and would have to push after.
    signs = []
    for k in (int(np.floor(when * 100.0)), int(np.ceil(when * 100.0))):
        R = oracle.rotation(found.q[k, 0, 3:])
        v = np.concatenate([found.dq[k, 0, :3], R @ found.dq[k, 0, 3:]])
        signs.append(oracle.accelerations(cables, platform, found.q[k, 0, :3], R, v)[1])
    assert signs[0].min() > 0.0 > signs[1][cable]
    with pytest.raises(InputError, match=f"'cable{cable + 1}' goes slack {when:.3g} s"):
        found.refuse_slack()


def test_starts_that_no_pose_meets_are_refused() -> None:
    _, _, robot, lengths = paper_robot()
    start = rest(robot, lengths).q[None]
    with pytest.raises(InputError, match="no pose near the start of free motion 1"):
        free_motions(robot, robot.values, lengths[None] - 1.2, start, 1.0, 100.0)
    with pytest.raises(InputError, match=r"\(1, 3\) lengths do not fit"):
        free_motions(robot, robot.values, lengths[None, :3], start, 1.0, 100.0)


def test_viscous_terms_take_the_energy_they_should() -> None:
    _, platform, robot, lengths = paper_robot()
    coefficients = {
        "pose_x": 0.4,
        "pose_y": 0.4,
        "pose_z": 0.4,
        "pose_wx": 0.02,
        "pose_wy": 0.02,
        "pose_wz": 0.02,
    }
    damped = replace(robot.robot, drive=dict.fromkeys(coefficients, ("Fv",)))
    chi = parameters(platform) | {f"Fv_{name}": value for name, value in coefficients.items()}
    on = LockedCables(damped, chi)
    found = free_motions(on, chi, lengths[None], displaced(robot, lengths, 1, reach=0.1), 3.0, 200.0)
    energy = on.energy(found.q[:, 0], found.dq[:, 0])
    power = found.dq[:, 0] ** 2 @ np.array(list(coefficients.values()))
    lost = np.trapezoid(power, found.t)
    assert energy[0] - energy[-1] > 0.01 * abs(energy).max() * 0.01
    np.testing.assert_allclose(energy[0] - energy[-1], lost, rtol=2e-3)  # the trapezoid rule at 200 Hz


@pytest.mark.parametrize("name", ["fivebar", "dualv", "orthoglide", "delta", "stewart"])
def test_the_compiled_pass_equals_inverse_dynamics(name: str) -> None:
    robot = load_robot(name)
    truth = truth_of(name)
    inertial = {k: v for k, v in truth.items() if k.split("_")[0] not in ("Fs", "Fs+", "Fs-", "Off", "Ia")}
    dynamics = ForwardDynamics(robot, named_values(robot, inertial))
    assert dynamics._compiled is not None
    rng = np.random.default_rng(1)
    q = assembly_of(robot).walk(rng, 5, reach=0.2)
    dq = assembly_of(robot).random_rates(q, rng)[0]
    tau = rng.normal(size=(5, len(robot.actuators)))
    fast, slow = dynamics.accelerations(q, dq, tau), dynamics._by_inverse(q, dq, tau)
    np.testing.assert_allclose(
        fast.ddq, slow.ddq, rtol=1e-9, atol=1e-9 * np.abs(slow.ddq).max()
    )  # a small solve
    np.testing.assert_allclose(fast.mass, slow.mass, rtol=1e-9, atol=1e-10 * np.abs(slow.mass).max())


def test_simulated_logs_hold_what_is_measured() -> None:
    robot = load_robot("cable4")
    _, platform, on, lengths = paper_robot()
    many, starts = np.repeat(lengths[None], 2, axis=0), displaced(on, lengths, 2)
    settings = {"rate": 100.0, "duration": 1.0}
    exact = simulate_free_motions(robot, parameters(platform), many, starts, **settings)
    noisy = simulate_free_motions(
        robot, parameters(platform), many, starts, position_sigma=2e-4, angle_sigma=1e-3, seed=5, **settings
    )
    again = simulate_free_motions(
        robot, parameters(platform), many, starts, position_sigma=2e-4, angle_sigma=1e-3, seed=5, **settings
    )
    assert exact.segments == ((0, 101), (101, 202))
    assert exact.position_names == robot.measured_positions
    np.testing.assert_array_equal(noisy.q, again.q)
    error = noisy.q - exact.q
    # Deviations of 606 draws: 3 % each, three of them.
    np.testing.assert_allclose(np.std(error[:, :3]), 2e-4, rtol=0.09)
    np.testing.assert_allclose(2.0 * np.std(error[:, 4:]), 1e-3, rtol=0.09)
    few = replace(robot, measured=("pose_x", "pose_y", *on.cables))
    log = simulate_free_motions(few, parameters(platform), many, starts, length_sigma=1e-4, **settings)
    np.testing.assert_array_equal(log.q[:, :2], exact.q[:, :2])
    assert np.ptp(log.q[:101, 2:], axis=0).max() == 0.0
    assert 0.0 < np.abs(log.q[:, 2:] - lengths).max() < 5e-4  # five deviations of eight draws
