"""What a force sensor feels, against Pinocchio and MuJoCo: equations, angles, compensation, Shows."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dynid.cases.force_sensor import compensation
from dynid.cases.force_sensor.case import with_force_sensor
from dynid.experiment.experiment import Experiment
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.force_sensor import COMPONENTS, ForceSensor, turn
from dynid.mechanism.frame import Frame, rpy_matrix
from dynid.mechanism.inertia import SYMBOLS, unpack
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.motion.log import Log
from dynid.motion.logs import log_from_arrays
from dynid.pipeline import identify_logs
from dynid.projection.sensor import ImuFrames, SensorColumns, SensorMotion, frame_motion, sensor_directions
from dynid.regressor.regressor import tree_matrix
from dynid.simulation.prescribed import simulate_sensor_log
from dynid.statistics.estimate import Estimate
from tests.wrist import BIAS, NOISE, SENSOR, TOOL, Setup, tool_values, wrist_log, wrist_motion, wrist_samples

EVERY = tuple(range(6))
TRUE = tool_values() | {f"Off_{name}": b for name, b in zip(COMPONENTS, BIAS.tolist(), strict=True)}


def identified(robot, *logs: Log, **options) -> Estimate:
    return identify_logs(
        robot, list(logs), experiment=Experiment(robot=robot, estimator="consistent", **options)
    )


def motion_of(truth) -> SensorMotion:
    dV = np.hstack([truth.specific, truth.alpha])
    return SensorMotion(truth.R, truth.omega, dV, np.ones(len(dV), dtype=bool))


@pytest.fixture(scope="module")
def samples():
    return wrist_samples(Setup(), rate=20.0)


def test_columns_times_the_tool_are_the_wrench_of_pinocchio(samples) -> None:
    robot = with_force_sensor(load_robot("panda"), SENSOR)
    columns = SensorColumns(robot, parameter_table(robot), EVERY)
    felt = columns.wrench(motion_of(samples[1]), np.zeros(0)) @ TOOL
    # Rounding of two different recursions through seven joints, on 25 N.
    np.testing.assert_allclose(felt, samples[1].wrench, atol=1e-12)


def test_rows_are_those_of_six_rigid_joints(samples) -> None:
    """The tree's own rows at joints that never move: forces along, moments about their axes."""
    robot = with_force_sensor(load_robot("panda"), replace(SENSOR, sign="reaction"))
    parameters = parameter_table(robot)
    states = coordinate_map(robot).tree_states(
        *(np.random.default_rng(k).normal(size=(9, 7)) for k in range(3))
    )
    rows = tree_matrix(robot, *states, N=sensor_directions(robot).N)
    own = [i for i, parameter in enumerate(parameters) if parameter.owner == "tool"]
    felt = SensorColumns(robot, parameters, EVERY).wrench(frame_motion(robot)(*states), np.zeros(0))
    # Rounding of accelerations of some 50 m/s^2.
    np.testing.assert_allclose(rows[:, :, own], felt, atol=1e-11)


@pytest.mark.parametrize("mounting", ["known", "angle", "rpy"])
@pytest.mark.parametrize("gravity", ["known", "estimate"])
def test_slopes_of_angles_are_finite_differences(samples, mounting: str, gravity: str) -> None:
    sensor = replace(SENSOR, mounting=mounting, gravity=gravity)
    robot = with_force_sensor(load_robot("panda"), sensor)
    parameters = parameter_table(robot)
    x = np.random.default_rng(3).uniform(-0.7, 0.7, len(sensor.angles))
    chi = np.array([tool_values().get(p.name, 0.0) for p in parameters])
    turned = replace(robot, force_sensor=replace(sensor, at=tuple(x.tolist())))
    columns = SensorColumns(turned, parameters, EVERY, load_parameters=chi)
    motion, h = motion_of(samples[1]), 1e-6
    for k, slope in enumerate(np.moveaxis(columns.slopes(motion), 2, 0)):
        step = h * np.eye(len(x))[k]
        two = [columns.wrench(motion, x + sign * step) @ TOOL for sign in (1, -1)]
        # Central differences leave h^2 times a third derivative of the size of the wrench.
        np.testing.assert_allclose(slope, (two[0] - two[1]) / (2 * h), atol=1e-7)


def test_simulated_logs_are_those_of_pinocchio() -> None:
    """The library's own simulation, with mounting, tilt and bias, against the independent one."""
    sensor = replace(SENSOR, mounting="angle", gravity="estimate")
    robot = with_force_sensor(load_robot("panda"), sensor)
    x = {"angle_sensor": 0.7, "tilt1_gravity": 0.1, "tilt2_gravity": -0.2}
    log = simulate_sensor_log(robot, TRUE | x, wrist_motion(), rate=10.0, duration=20.0)
    down = sensor.tilted(np.array(list(x.values())), robot.gravity)
    setup = Setup(turned=turn(2, 0.7), gravity=down)
    truth = wrist_samples(setup, rate=10.0)[1]
    # Rounding.
    np.testing.assert_allclose(log.tau[:200], truth.wrench + BIAS, atol=1e-11)


def seen_by_imu(truth, imu: Frame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angular velocity, its rate, and specific force in the axes and at the origin of an IMU."""
    felt = truth.specific + np.cross(truth.alpha, imu.p)
    felt += np.cross(truth.omega, np.cross(truth.omega, imu.p))
    return truth.omega @ imu.R, truth.alpha @ imu.R, felt @ imu.R


def test_imu_anywhere_on_the_sensor_tells_the_motion_of_its_origin(samples) -> None:
    truth = samples[1]
    imu = Frame(rpy_matrix((0.3, -0.8, 2.0)), np.array([0.03, -0.02, 0.05]))
    omega, alpha, felt = seen_by_imu(truth, imu)
    signals, rates = np.hstack([omega, felt]), np.hstack([alpha, np.zeros_like(felt)])
    moved = ImuFrames(ForceSensor(imu=imu)).along(0, (signals, rates, rates))
    # Rounding.
    np.testing.assert_allclose(moved.dV[:, :3], truth.specific, atol=1e-12)
    np.testing.assert_allclose(moved.omega, truth.omega, atol=1e-14)


def states(t: np.ndarray) -> list[list[list[float]]]:
    motion = wrist_motion()
    return np.stack([motion.q(t), motion.dq(t), motion.ddq(t)], axis=1).tolist()


@pytest.mark.parametrize("sign", ["load", "reaction"])
def test_exported_compensation_leaves_the_contact_alone(samples, sign: str) -> None:
    """Twenty newtons pushed against the tool come back, whatever the motion and the sign."""
    t, truth, _ = samples
    contact = np.array([3.0, -20.0, 5.0, 0.4, 0.1, -0.7])
    setup = Setup(sensor=replace(SENSOR, sign=sign), noise=0.0 * NOISE)
    robot, log = wrist_log(setup, encoder=0.0, rate=100.0)
    written = json.loads(identified(robot, log).files["compensation.json"])
    s = 1.0 if sign == "load" else -1.0
    at = np.arange(0, len(t), 37)
    for i, state in zip(at, states(t[at]), strict=True):
        measured = s * (truth.wrench[i] + contact) + setup.bias
        found = compensation.compensate_joints(written, measured.tolist(), *state)
        # Filters and derivatives of the identification leave 1e-4 of 25 N.
        np.testing.assert_allclose(found, contact, atol=3e-3)


def test_compensation_by_an_imu_leaves_the_contact_alone(samples) -> None:
    """The exact tool, so that nothing is left but the motion that the IMU tells."""
    t, truth, _ = samples
    imu = Frame(rpy_matrix((0.3, -0.8, 2.0)), np.array([0.03, -0.02, 0.05]))
    seen = np.stack(seen_by_imu(truth, imu), axis=1).tolist()
    contact, bias = [3.0, -20.0, 5.0, 0.4, 0.1, -0.7], [1.0, 2.0, 3.0, 0.1, 0.2, 0.3]
    XX, XY, XZ, YY, YZ, ZZ, *moment, M = [TRUE[f"{symbol}_tool"] for symbol in SYMBOLS]
    tool = {"mass": M, "first_moment": moment, "inertia": [[XX, XY, XZ], [XY, YY, YZ], [XZ, YZ, ZZ]]}
    parameters = {
        "imu": {"R": imu.R.tolist(), "p": imu.p.tolist()},
        "tool": tool,
        "sign": "load",
        "bias": bias,
    }
    for i in range(0, len(t), 37):
        measured = (truth.wrench[i] + contact + bias).tolist()
        found = compensation.compensate_imu(parameters, measured, *seen[i])
        np.testing.assert_allclose(found, contact, atol=1e-11)  # rounding
    with pytest.raises(ValueError, match="without an IMU"):
        compensation.compensate_imu({**parameters, "imu": None}, contact, bias[:3], bias[:3], bias[:3])


def test_exported_kinematics_are_those_of_pinocchio(samples) -> None:
    t, truth, _ = samples
    robot, log = wrist_log(rate=50.0)
    written = json.loads(identified(robot, log).files["compensation.json"])
    at = np.array([7, 100, 333])
    for i, state in zip(at, states(t[at]), strict=True):
        R, omega, domega, a = (np.array(x) for x in compensation.sensor_motion(written, *state))
        # Rounding.
        np.testing.assert_allclose(R, truth.R[i], atol=1e-13)
        np.testing.assert_allclose(omega, truth.omega[i], atol=1e-13)
        np.testing.assert_allclose(domega, truth.alpha[i], atol=1e-12)
        np.testing.assert_allclose(R.T @ (a - np.array(written["gravity"])), truth.specific[i], atol=1e-12)


def test_twenty_seconds_of_wrist_motion_with_noise_and_bias() -> None:
    """0.5 N and 0.02 N m of noise: mass within 0.5 %, centre of mass within 2 mm."""
    found = identified(*wrist_log())
    mass, moment, _ = unpack(np.array([found[f"{s}_tool"].value for s in SYMBOLS]))
    true_mass, true_moment, _ = unpack(TOOL)
    assert abs(mass / true_mass - 1.0) < 0.005
    assert np.linalg.norm(moment / mass - true_moment / true_mass) < 0.002
    # And what is promised of the inertia holds: none of ten beyond five of its deviations.
    assert all(abs(found[name].value - TRUE[name]) < 5 * found[name].sigma for name in TRUE)


def test_mounting_angle_and_gravity_are_recovered_together() -> None:
    tilted = rpy_matrix((0.2, -0.15, 0.0)) @ np.array([0.0, 0.0, -9.81])
    setup = Setup(turned=turn(2, 2.1), gravity=tilted)
    robot, log = wrist_log(setup, asked=replace(SENSOR, mounting="angle", gravity="estimate"))
    found = identified(robot, log)
    # Six deviations of 1e-3 rad, with the deviations that the result itself gives.
    assert abs(found["angle_sensor"].value - 2.1) < 6 * found["angle_sensor"].sigma < 6e-3
    x = np.array([found[name].value for name in ("angle_sensor", "tilt1_gravity", "tilt2_gravity")])
    down = robot.force_sensor.tilted(x, robot.gravity)
    assert np.linalg.norm(down - tilted) / 9.81 < 3e-3
    written = json.loads(found.files["compensation.json"])
    np.testing.assert_allclose(written["gravity"], down, atol=1e-12)  # the same numbers


@pytest.mark.parametrize("rpy", [(0.4, -0.5, 2.1), (np.pi, 0.0, 0.7), (-2.0, 0.9, -2.8)])
def test_full_mounting_is_recovered_from_any_start(rpy) -> None:
    """Nominal axes that are wrong by half a turn: the reported rpy can be copied to the description."""
    setup = Setup(sensor=replace(SENSOR, frame=Frame(rpy_matrix(rpy), SENSOR.frame.p)))
    robot, log = wrist_log(setup, asked=replace(SENSOR, mounting="rpy"))
    found = identified(robot, log)
    roll, pitch, yaw = (found[f"{name}_sensor"].value for name in ("roll", "pitch", "yaw"))
    off = rpy_matrix((roll, pitch, yaw)).T @ rpy_matrix(rpy)
    # 6 deviations of 8e-4 rad.
    assert np.arccos(np.clip((np.trace(off) - 1) / 2, -1, 1)) < 5e-3
    assert abs(found["M_tool"].value - 1.3) < 5 * found["M_tool"].sigma


def test_an_imu_tells_tool_and_bias_without_any_arm() -> None:
    t, truth, _ = wrist_samples(Setup())
    rng = np.random.default_rng(5)
    gyro = truth.omega + 0.003 * rng.standard_normal(truth.omega.shape)
    felt = truth.specific + 0.03 * rng.standard_normal(truth.omega.shape)
    measured = truth.wrench + BIAS + NOISE * rng.standard_normal((len(t), 6))
    robot = with_force_sensor(load_robot("panda"), ForceSensor(imu=Frame(np.eye(3), np.zeros(3))))
    found = identified(robot, log_from_arrays(robot, t, np.hstack([gyro, felt]), measured))
    assert abs(found["M_tool"].value / 1.3 - 1.0) < 0.005
    # Five deviations; one in 1e5 of sixteen draws would be beyond.
    assert all(abs(found[name].value - TRUE[name]) < 5 * found[name].sigma for name in TRUE)


def test_intervals_cover_the_truth_as_often_as_they_promise() -> None:
    """Ten draws of noise; the full count is in benchmarks/force_torque.py."""
    t, truth, q = wrist_samples(Setup(), rate=50.0)
    robot = with_force_sensor(load_robot("panda"), SENSOR)
    inside = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        measured = truth.wrench + BIAS + NOISE * rng.standard_normal((len(t), 6))
        log = log_from_arrays(robot, t, q + 2e-6 * rng.standard_normal(q.shape), measured)
        found = identified(robot, log)
        inside.append([p.ci95[0] <= TRUE[p.name] <= p.ci95[1] for p in found.parameters])
    # 160 intervals: 95 % promised, 88 % is four binomial deviations below.
    assert np.mean(inside) > 0.88


def test_mujoco_sensor_on_the_arm_feels_what_the_equations_say() -> None:
    """A force and a torque sensor of MuJoCo, in another engine, at a site with other axes."""
    mujoco = pytest.importorskip("mujoco")
    mass, moment, inertia = unpack(TOOL)
    com = moment / mass
    skew = np.array([[0, -com[2], com[1]], [com[2], 0, -com[0]], [-com[1], com[0], 0]])
    about = inertia + mass * skew @ skew
    full = " ".join(f"{x:.12g}" for x in about[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])
    text = f"""<mujoco><option gravity="0 0 -9.81"/><worldbody>
      <body name="upper" pos="0 0 0.4"><joint name="a" axis="0 0 1"/>
        <inertial mass="1" pos="0 0 0" diaginertia=".1 .1 .1"/>
        <body name="fore" pos="0.3 0 0"><joint name="b" axis="0 1 0"/>
          <inertial mass="1" pos="0 0 0" diaginertia=".1 .1 .1"/>
          <body name="hand" pos="0.25 0 0.02"><joint name="c" axis="1 0 0"/>
            <inertial mass="1" pos="0 0 0" diaginertia=".1 .1 .1"/>
            <body name="tool" pos="0.05 0 0" euler="0 90 0">
              <inertial mass="{mass}" pos="{com[0]} {com[1]} {com[2]}" fullinertia="{full}"/>
              <site name="sensor"/>
      </body></body></body></body></worldbody>
      <sensor><force site="sensor"/><torque site="sensor"/></sensor></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(2)
    states = rng.normal(size=(20, 3, 3)) * np.array([1.0, 2.0, 10.0])[:, None]
    arm = _three_joints()
    frame = Frame(rpy_matrix((0.0, np.pi / 2, 0.0)), np.array([0.05, 0.0, 0.0]))
    robot = with_force_sensor(arm, ForceSensor(body="hand", frame=frame, sign="reaction"))
    columns = SensorColumns(robot, parameter_table(robot), EVERY)
    for q, dq, ddq in states:
        data.qpos[:], data.qvel[:], data.qacc[:] = q, dq, ddq
        mujoco.mj_inverse(model, data)
        mujoco.mj_sensorAcc(model, data)
        motion = _placed(robot, q, dq, ddq)
        # MuJoCo reports what the parent exerts on the child. Its rounding on 60 N.
        felt = (columns.wrench(motion, np.zeros(0)) @ TOOL)[0]
        np.testing.assert_allclose(felt, data.sensordata, atol=1e-9)


def _three_joints():
    from dynid.mechanism.joint import Joint, JointKind
    from dynid.mechanism.mechanism import Body, Mechanism

    places = ((0.0, 0.0, 0.4), (0.3, 0.0, 0.0), (0.25, 0.0, 0.02))
    axes = (np.eye(3)[2], np.eye(3)[1], np.eye(3)[0])
    names, bodies = ("a", "b", "c"), ("base", "upper", "fore", "hand")
    joints = tuple(
        Joint(
            names[i],
            JointKind.REVOLUTE,
            bodies[i],
            bodies[i + 1],
            Frame(np.eye(3), np.array(places[i])),
            (axes[i],),
        )
        for i in range(3)
    )
    return Mechanism("arm", np.array([0.0, 0.0, -9.81]), joints, {b: Body(b) for b in bodies[1:]}, (), names)


def _placed(robot, q, dq, ddq) -> SensorMotion:
    padded = [np.concatenate([x, np.zeros(6)])[None] for x in (q, dq, ddq)]
    return frame_motion(robot)(*padded)
