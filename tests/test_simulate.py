"""Simulated logs: efforts equal independent dynamics, and the imperfections are those asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.excitation.random_motion import random_motion
from dynid.info import describe
from dynid.kinematics.tension import tension_directions
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.inertia import SYMBOLS, in_parent_frame, unpack
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Actuator
from dynid.motion.logs import read_log
from dynid.robots.truth import Truth, true_values
from dynid.simulation.files import write_log
from dynid.simulation.motion import MotionChoice, narrowed_motion
from dynid.simulation.prescribed import inverse_efforts, parameter_vector, simulate_log
from dynid.simulation.sensors import effort_noise, quantised
from dynid.simulation.simulation import Simulation, simulate
from tests.built_in import robot_of, truth_of
from tests.oracle import pin, pinocchio_model


def pinocchio_efforts(robot, truth, q, dq, ddq) -> np.ndarray:
    """Newton-Euler by Pinocchio, drives added by hand in the signs of the formats."""
    model, where = pinocchio_model(robot)
    for body, (joint, frame) in where.items():
        if body == "base":
            continue
        chi = np.array([truth[f"{symbol}_{body}"] for symbol in SYMBOLS])
        mass, moment, inertia = unpack(in_parent_frame(chi, frame.rotation, frame.translation))
        com = moment / mass
        central = inertia + mass * pin.skew(com) @ pin.skew(com)
        model.inertias[joint] = pin.Inertia(mass, com, central)
    data = model.createData()
    tau = np.array([pin.rnea(model, data, *state) for state in zip(q, dq, ddq, strict=True)])
    for i, name in enumerate(robot.coordinates):
        ia, fv, fs, off = (truth.get(f"{symbol}_{name}", 0.0) for symbol in ("Ia", "Fv", "Fs", "Off"))
        tau[:, i] += ia * ddq[:, i] + fv * dq[:, i] + fs * np.sign(dq[:, i]) + off
    return tau


@pytest.mark.parametrize("name", ["ur5", "puma560", "serial6", "scara", "panda"])
def test_simulated_efforts_equal_pinocchio(name: str) -> None:
    robot, truth = robot_of(name), truth_of(name)
    motion = random_motion(robot, seed=3, draws=1)
    log = simulate_log(robot, truth, motion, rate=20.0, duration=motion.period)
    t = log.t
    expected = pinocchio_efforts(robot, truth, motion.q(t), motion.dq(t), motion.ddq(t))
    # At rest (both ends) sign(dq) is that of rounding: those two samples say nothing.
    error = np.abs(log.tau - expected)[1:-1]
    # Rounding of a chain of seven bodies.
    assert error.max() < 1e-10 * np.abs(expected).max()
    np.testing.assert_array_equal(log.q, motion.q(t))


def test_quantisation_has_the_right_step() -> None:
    robot, truth = robot_of("scara"), truth_of("scara")
    motion = random_motion(robot, seed=1, draws=1)
    step = np.array([1e-3, 2e-3, 1e-4, 0.0])
    log = simulate_log(robot, truth, motion, rate=100.0, duration=motion.period, encoder_resolution=step)
    exact = motion.q(log.t)
    counts = log.q[:, :3] / step[:3]
    # Whole steps up to rounding of the product, and never further off than half a step.
    np.testing.assert_allclose(counts, np.rint(counts), rtol=0, atol=1e-9)
    assert np.all(np.abs(log.q - exact)[:, :3] <= step[:3] * (0.5 + 1e-9))
    # 1000 samples of a slow motion visit neighbouring counts: the step is no multiple of the one asked for.
    assert np.diff(np.unique(np.rint(counts[:, 0]))).min() == 1
    np.testing.assert_array_equal(log.q[:, 3], exact[:, 3])
    with pytest.raises(InputError, match="negative"):
        quantised(exact, -1.0)


def test_noise_has_the_asked_deviation_and_colour() -> None:
    n = 200_000
    white = effort_noise(np.random.default_rng(0), n, 2)
    coloured = effort_noise(np.random.default_rng(0), n, 2, 0.9)
    for noise, correlation in ((white, 0.0), (coloured, 0.9)):
        neighbours = np.mean(noise[1:] * noise[:-1], axis=0) / np.mean(noise**2, axis=0)
        # Deviations of these averages: 1/sqrt(n) = 0.002, for the coloured variance about 0.007.
        np.testing.assert_allclose(neighbours, correlation, atol=0.01)
        np.testing.assert_allclose(noise.std(axis=0), 1.0, atol=0.03)
    first = [effort_noise(np.random.default_rng(s), 2, 1, 0.99)[0, 0] for s in range(400)]
    assert np.std(first) == pytest.approx(1.0, abs=0.15)  # stationary from the first sample
    with pytest.raises(InputError, match="between 0 and 1"):
        effort_noise(np.random.default_rng(0), 3, 1, 1.0)


def test_logged_noise_is_per_actuator_and_seeded() -> None:
    robot, truth = robot_of("scara"), truth_of("scara")
    motion = random_motion(robot, seed=1, draws=1)
    sigma = np.array([0.5, 0.0, 2.0, 0.1])

    def log(seed: int, torque_sigma):
        return simulate_log(
            robot, truth, motion, rate=500.0, duration=motion.period, torque_sigma=torque_sigma, seed=seed
        )

    noise = log(7, sigma).tau - log(7, 0.0).tau
    np.testing.assert_allclose(noise.std(axis=0), sigma, rtol=0.05)  # 5000 samples: 1 % each
    np.testing.assert_array_equal(log(7, sigma).tau, log(7, sigma).tau)
    assert not np.array_equal(log(8, sigma).tau, log(7, sigma).tau)


def test_velocities_are_logged_on_request() -> None:
    robot, truth = robot_of("scara"), truth_of("scara")
    motion = random_motion(robot, seed=1, draws=1)
    plain, with_rates = (
        simulate_log(robot, truth, motion, rate=50.0, duration=2.0, velocity=flag) for flag in (False, True)
    )
    assert plain.dq is None
    np.testing.assert_array_equal(with_rates.dq, motion.dq(with_rates.t))


def test_coupled_actuators_do_the_same_work() -> None:
    robot, truth = robot_of("scara"), truth_of("scara")
    geared = replace(
        robot,
        actuators=(
            Actuator("m1", {"shoulder": 80.0}),
            Actuator("m2", {"shoulder": 1.0, "elbow": 50.0}),
            Actuator("quill", {"quill": 1.0}),
            Actuator("m4", {"quill": -3.0, "wrist": 10.0}),
        ),
    )
    rng = np.random.default_rng(0)
    q, dq, ddq = (rng.normal(size=(30, 4)) for _ in range(3))
    tau, tau_geared = (inverse_efforts(one, truth, q, dq, ddq) for one in (robot, geared))
    power = np.sum(tau * dq, axis=1)
    power_geared = np.sum(tau_geared * (dq @ geared.actuator_map.T), axis=1)
    np.testing.assert_allclose(power, power_geared, rtol=1e-12)  # rounding


def test_an_undriven_joint_is_refused() -> None:
    robot, truth = robot_of("scara"), truth_of("scara")
    passive = replace(robot, actuators=robot.actuators[:3])
    with pytest.raises(InputError, match="'wrist' has no actuator"):
        inverse_efforts(passive, truth, *(np.ones((4, 4)) for _ in range(3)))


def test_true_parameters_are_checked_by_name() -> None:
    robot, truth = robot_of("scara"), truth_of("scara")
    chi = parameter_vector(robot, truth)
    np.testing.assert_array_equal(parameter_vector(robot, chi), chi)
    with pytest.raises(InputError, match="did you mean 'M_tool'"):
        parameter_vector(robot, {**truth, "M_tol": 1.0})
    del truth["M_tool"]
    with pytest.raises(InputError, match="no value: M_tool"):
        parameter_vector(robot, truth)
    with pytest.raises(InputError, match="do not match"):
        parameter_vector(robot, chi[1:])


_CART = """
joints:
  - {name: rail, kind: prismatic, parent: base, child: cart, axis: [1, 0, 0]}
  - {name: free, kind: KIND, parent: cart, child: mass, axis: AXIS}
actuators: [rail]
measured: [rail, free]
drive: {rail: [Fv], free: [Fv]}
bodies: {cart: {prior: {M: 2}}, mass: {prior: {M: 1, com: [0, 0, -0.3], YY: 0.1}}}
limits: {"*": {q: 0.2, dq: 1, ddq: 5}}
"""
_PENDULUM = _CART.replace("KIND", "revolute").replace("AXIS", "[0, 1, 0]")
_SPRUNG = (
    _CART.replace("KIND", "prismatic").replace("AXIS", "[1, 0, 0]")
    + 'terms: [{name: Kspring, joint: free, expression: "q(free)"}]\n'
)


def moved_freely(file: Path, text: str, **values: float) -> tuple[np.ndarray, ...]:
    """Positions of rail and free joint, and their rates; engines that need a motor refuse the robot."""
    file.write_text(text)
    robot = load_robot(file)
    truth = Truth(values={"Fv_rail": 3.0, "Fv_free": 0.4, **values})
    settings = Simulation(engine="dynid", rate=500.0, duration=2.0, truth=truth)
    with pytest.raises(InputError, match=r"'free' has no actuator.*\n.*use engine dynid"):
        simulate(robot, replace(settings, engine="inverse"))
    run = simulate(robot, settings).run
    assert run is not None
    assert np.abs(run.q[:, 1]).max() > 0.05
    return run.q, run.dq, run.ddq


def test_a_joint_without_motor_moves_by_its_forces(tmp_path: Path) -> None:
    """A pendulum on a cart: 1 kg, centre of mass 0.3 m from the hinge, 0.1 kg m^2 about the hinge."""
    q, dq, ddq = moved_freely(tmp_path / "pendulum.yaml", _PENDULUM)
    inertia = 0.1 * ddq[:, 1] - 0.3 * np.cos(q[:, 1]) * ddq[:, 0]
    moment = inertia + 9.81 * 0.3 * np.sin(q[:, 1]) + 0.4 * dq[:, 1]
    assert np.abs(moment).max() < 1e-9 * 9.81 * 0.3  # N m: rounding of the accelerations


def test_a_joint_without_motor_moves_by_declared_forces(tmp_path: Path) -> None:
    q, dq, ddq = moved_freely(tmp_path / "slider.yaml", _SPRUNG, Kspring=200.0)
    force = 1.0 * ddq.sum(axis=1) + 0.4 * dq[:, 1] + 200.0 * q[:, 1]
    assert np.abs(force).max() < 1e-9 * 200.0  # N: rounding of the accelerations


_PLANAR = """
joints:
  - {name: shoulder, kind: revolute, parent: base, child: upper_arm, mdh: {alpha: pi/2}}
  - {name: elbow, kind: revolute, parent: upper_arm, child: forearm, mdh: {d: 0.4}}
drive: {"*": [Fv]}
payloads: {tool: {body: forearm}}
limits: {"*": {q: 2, dq: 3, ddq: 10}, elbow: {dq: 5}}
"""


def test_only_parameters_with_effect_need_true_values(tmp_path: Path) -> None:
    (tmp_path / "arm.yaml").write_text(_PLANAR)
    robot = load_robot(tmp_path / "arm.yaml")
    assert robot.limits["shoulder"]["dq"] == 3.0
    assert robot.limits["elbow"] == {"q": (-2.0, 2.0), "dq": 5.0, "ddq": 10.0}
    needed = dict.fromkeys(describe(robot, drive=[]).grouped, 1.0)
    needed |= {f"{symbol}_{body}": 1.0 for symbol in ("ZZ", "MX", "MY") for body in ("upper_arm", "forearm")}
    (tmp_path / "truth.yaml").write_text("".join(f"{name}: 1\n" for name in needed) + '"Fv_*": 0.3\n')
    truth = Truth(str(tmp_path / "truth.yaml"))
    values, notices = true_values(robot, truth, ())
    assert values["Fv_elbow"] == values["Fv_shoulder"] == 0.3
    assert values["XX_forearm"] == 0.0
    assert "M_tool" in notices[0].text
    with pytest.raises(InputError, match="4 inertial parameters: ZZ_tool, MX_tool, MY_tool, M_tool"):
        true_values(robot, truth, ("tool",))
    with pytest.raises(InputError, match="XX_upper_arm"):  # a table of wrenches shows it
        true_values(robot, truth, (), wrenches=True)
    with pytest.raises(InputError, match="has no parameter 'M_a', 'M_b'"):
        true_values(robot, Truth(truth.source, {"M_a": 1.0, "M_b": 1.0}), ())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_written_logs_read_back_exactly(tmp_path: Path, ending: str) -> None:
    robot, truth = robot_of("scara"), truth_of("scara")
    motion = random_motion(robot, seed=1, draws=1)
    log = simulate_log(robot, truth, motion, rate=100.0, duration=3.0, torque_sigma=0.1, velocity=True)
    again = read_log(write_log(log, tmp_path / f"log.{ending}"), robot)
    for name in ("t", "q", "dq", "tau"):
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name))


def test_other_log_formats_are_refused(tmp_path: Path) -> None:
    robot, truth = robot_of("scara"), truth_of("scara")
    log = simulate_log(robot, truth, random_motion(robot, draws=1), rate=50.0, duration=1.0)
    with pytest.raises(InputError, match="neither"):
        write_log(log, tmp_path / "log.xlsx")
    assert list(tmp_path.iterdir()) == []


def energy_of(robot, truth, q, dq) -> np.ndarray:
    """Kinetic and potential energy of all bodies, from their poses and twists alone."""
    motion = body_motion(tree_of(robot), q, dq, np.zeros_like(dq))
    total = np.zeros(len(q))
    for i, body in enumerate(robot.bodies):
        mass, moment, inertia = unpack(np.array([truth.get(f"{symbol}_{body}", 0.0) for symbol in SYMBOLS]))
        v, omega = motion.V[:, i, :3], motion.V[:, i, 3:]
        total += 0.5 * mass * np.sum(v * v, axis=1)
        total += np.einsum("ni,ni->n", v, np.cross(omega, moment[None]))
        total += 0.5 * np.einsum("ni,ij,nj->n", omega, inertia, omega)
        height = mass * motion.p[:, i] + np.einsum("nij,j->ni", motion.R[:, i], moment)
        total -= height @ robot.gravity
    return total


@pytest.mark.parametrize("name", ["dualv", "orthoglide", "evra"])
def test_efforts_of_closed_robots_do_the_work(name: str) -> None:
    robot, truth = robot_of(name), truth_of(name)
    still = {
        key: 0.0 if key.split("_")[0].rstrip("+-") in ("Ia", "Fv", "Fs", "Off") else value
        for key, value in truth.items()
    }
    motion = random_motion(robot, 4, frequency=0.3, draws=1)
    log = simulate_log(robot, still, motion, rate=400.0, duration=motion.period, velocity=True)
    states = motion.states(log.t)
    energy = energy_of(robot, still, states.q, states.dq)
    power = np.sum(log.tau * (states.dq @ robot.actuator_map.T), axis=1)
    rate = (energy[2:] - energy[:-2]) * 200.0
    # Central differences over 2.5 ms of a motion below 2 Hz: (w h)^2 / 6 with harmonics of the loops.
    np.testing.assert_allclose(rate, power[1:-1], atol=5e-3 * np.abs(power).max())
    np.testing.assert_allclose(log.q, motion.q(log.t), atol=1e-12)


def test_tension_is_added_and_does_no_work() -> None:
    robot, truth = robot_of("dualv"), truth_of("dualv")
    motion = random_motion(robot, 1, frequency=0.5, draws=1)
    logs = [simulate_log(robot, truth, motion, rate=100.0, duration=2.0, tension=c) for c in (0.0, 6.0)]
    extra = logs[1].tau - logs[0].tau
    states = motion.states(logs[0].t)
    J = robot.actuator_map @ states.N
    assert np.abs(np.einsum("nad,na->nd", J, extra)).max() < 1e-12  # rounding of 6 N m
    size = np.linalg.norm(extra, axis=1)
    assert 1.0 < size.min() < size.max() <= 6.0
    assert np.abs(np.diff(extra, axis=0)).max() < 1.0  # no jump of sign
    # Least norm: without tension nothing lies in the null space.
    Z = tension_directions(robot, states.N)
    assert np.abs(np.einsum("naz,na->nz", Z, logs[0].tau)).max() < 1e-10


def test_measured_joints_of_a_closed_robot_give_its_efforts() -> None:
    robot, truth = robot_of("dualv"), truth_of("dualv")
    motion = random_motion(robot, 1, frequency=0.5, draws=1)
    log = simulate_log(robot, truth, motion, rate=100.0, duration=2.0, payloads=("payload",))
    state = motion.measured(motion.states(log.t))
    tau = inverse_efforts(robot, truth, *state, mounted=("payload",))
    # Found again through four measured motors in least squares; sign(dq) at rest is rounding.
    np.testing.assert_allclose(tau[1:-1], log.tau[1:-1], atol=1e-9)


def test_impossible_simulations_of_closed_robots_are_refused() -> None:
    robot, truth = robot_of("orthoglide"), truth_of("orthoglide")
    motion = random_motion(robot, 1, draws=1)
    with pytest.raises(InputError, match="is not redundantly actuated"):
        simulate_log(robot, truth, motion, rate=10.0, duration=1.0, tension=5.0)
    q = np.repeat(motion.q(np.zeros(1)), 2, axis=0)
    with pytest.raises(InputError, match="the gap at sample 1 is"):
        inverse_efforts(robot, truth, q + np.array([[0.0], [1.0]]), 0 * q, 0 * q)
    driven = replace(robot, actuators=robot.actuators[:2])
    with pytest.raises(InputError, match="'orthoglide' is underactuated: 2 actuators cannot"):
        simulate_log(driven, truth, motion, rate=10.0, duration=1.0)


def test_limits_that_a_closed_robot_does_not_use_are_said() -> None:
    """The range of a crank in the robot file, and the part of it that a random motion uses."""
    robot = load_robot(Path(__file__).parents[1] / "benchmarks" / "slidercrank.yaml")
    limits = {"motor": {**robot.limits["motor"], "q": (-20.0, 20.0)}}
    [note] = narrowed_motion(replace(robot, limits=limits), MotionChoice())
    assert note.code == "limits-narrowed"
    assert note.text.startswith("'motor' moves within ")
    assert "its limits are -20 to 20" in note.text
    assert not narrowed_motion(replace(robot, limits=limits), MotionChoice(file="own.csv"))
    assert not narrowed_motion(load_robot("fivebar"), MotionChoice())
    assert not narrowed_motion(load_robot("ur5"), MotionChoice())
