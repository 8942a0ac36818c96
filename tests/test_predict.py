"""Efforts for desired trajectories: those of the truth, with honest sigma, and refused where none exist."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner

import dynid
from dynid import identify
from dynid.base.structural import structural_base
from dynid.base.system import base_system
from dynid.cli import main
from dynid.common.entry import plain_entry
from dynid.common.errors import InputError
from dynid.common.settings import read
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment, FilterSettings, MaskSettings, TieChoice
from dynid.kinematics.tension import motor_jacobian, tension_directions
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.load import load_robot
from dynid.mechanism.measured_pose import POSE
from dynid.mechanism.mechanism import Actuator
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.variant import variant
from dynid.motion.csv_file import read_csv
from dynid.motion.logs import log_from_arrays
from dynid.prediction.posed_robot import pose_angles, posed_robot
from dynid.prediction.predict import PoseTrajectory, predict_efforts
from dynid.prediction.trajectory import desired_motion
from dynid.problem import build_system, prepare
from dynid.projection.model import MODELS
from dynid.report.output import write_results
from dynid.report.prediction import prediction_csv
from dynid.simulation.demo import built_in_experiment
from dynid.simulation.prescribed import inverse_efforts, simulate_log
from dynid.statistics.effort_prediction import covariance_root
from dynid.statistics.estimate import Agreement, Estimate, ParameterEstimate
from tests.built_in import robot_of, truth_of
from tests.test_simulate import pinocchio_efforts

ROBOTS = ("serial6", "orthoglide", "dualv")


@cache
def exact(name: str, payloads: tuple[str, ...] = (), ties: tuple[str, ...] = ()) -> Estimate:
    """An estimate that knows the base parameters exactly, and nothing else."""
    robot, truth = robot_of(name), truth_of(name)
    mounted, model = variant(robot, payloads=payloads), MODELS["inverse"]
    parameters = parameter_table(mounted)
    rows = None if robot.loops else model.directions(mounted)
    loads = ((), payloads) if payloads else ((),)
    base = structural_base(mounted, model, parameters, rows, loads=loads, ties=ties)
    chi = np.array([truth[p.name] for p in parameters])
    return estimate(name, base.names, base.units, base.G @ chi)


def estimate(name: str, names, units, x, covariance=None) -> Estimate:
    covariance = np.zeros((len(x), len(x))) if covariance is None else covariance
    sigma = np.sqrt(np.diag(covariance))
    found = tuple(
        ParameterEstimate(*one, None, None)
        for one in zip(names, units, map(float, x), map(float, sigma), strict=True)
    )
    fit = Agreement(100, len(x), len(x), 1e9, 1.0, 1.0, 1.0, 1.0)
    return Estimate(name, "inverse", "ols", found, {}, fit, covariance)


@cache
def motion_of(name: str, seed: int = 7):
    """Times and exact states of the measured joints, without the ends, where all stand still."""
    motion = random_motion(robot_of(name), seed, harmonics=5, frequency=0.3, draws=1)
    t = np.arange(0.05, 1.05, 0.002)
    return motion, t, motion.q(t), motion.dq(t), motion.ddq(t)


def trajectory(name: str, seed: int = 7):
    _, t, q, dq, ddq = motion_of(name, seed)
    return log_from_arrays(robot_of(name), t, q, None, dq=dq, ddq=ddq)


def true_efforts(name: str, payloads: tuple[str, ...] = (), seed: int = 7):
    robot, truth = robot_of(name), truth_of(name)
    mounted = variant(robot, payloads=payloads)
    chi = {p.name: truth[p.name] for p in parameter_table(mounted)}
    return inverse_efforts(mounted, chi, *motion_of(name, seed)[2:], mounted=payloads)


@pytest.mark.parametrize("name", ROBOTS)
def test_base_parameters_alone_give_the_efforts_of_the_truth(name: str) -> None:
    robot = robot_of(name)
    known = exact(name)
    # Some standard parameters act only through others: the base values are not the true standard ones.
    assert any(one.name.endswith("_R") for one in known.parameters)
    found, expected = predict_efforts(known, trajectory(name), robot=robot), true_efforts(name)
    assert found.tau.shape == expected.shape
    # Rounding of the grouping relations, scaled by the efforts.
    assert np.abs(found.tau - expected).max() < 1e-9 * np.abs(expected).max()
    assert found.sigma.max() == 0.0
    assert found.notices == ()


def test_efforts_of_an_arm_are_those_of_pinocchio() -> None:
    robot, truth = robot_of("serial6"), truth_of("serial6")
    found = predict_efforts(exact("serial6"), trajectory("serial6"), robot=robot)
    expected = pinocchio_efforts(robot, truth, *motion_of("serial6")[2:])
    assert np.abs(found.tau - expected).max() < 1e-9 * np.abs(expected).max()  # rounding of grouping


@pytest.mark.parametrize("name", ROBOTS)
def test_power_is_effort_times_velocity(name: str) -> None:
    robot = robot_of(name)
    motion, t, *_ = motion_of(name)
    found = predict_efforts(exact(name), trajectory(name), robot=robot)
    dq = motion.states(t).dq if robot.loops else motion.dq(t)
    power = np.sum(found.tau * (dq @ robot.actuator_map.T), axis=1)
    # A row of its own, dq^T W: rounding alone.
    np.testing.assert_allclose(found.power, power, rtol=0, atol=1e-10 * np.abs(power).max())


def test_a_mounted_payload_counts() -> None:
    robot = robot_of("dualv")
    known = exact("dualv", ("payload",))
    loaded = predict_efforts(known, trajectory("dualv"), robot=robot, payloads=("payload",))
    empty = predict_efforts(known, trajectory("dualv"), robot=robot)
    for found, expected in ((loaded, true_efforts("dualv", ("payload",))), (empty, true_efforts("dualv"))):
        assert np.abs(found.tau - expected).max() < 1e-9 * np.abs(expected).max()  # rounding of grouping
    with pytest.raises(InputError, match="is not in the result"):
        predict_efforts(exact("dualv"), trajectory("dualv"), robot=robot, payloads=("payload",))


def test_tension_strains_and_moves_nothing() -> None:
    robot = robot_of("dualv")
    least = predict_efforts(exact("dualv"), trajectory("dualv"), robot=robot)
    strained = predict_efforts(exact("dualv"), trajectory("dualv"), robot=robot, tension=5.0)
    extra = strained.tau - least.tau
    # Rounding of efforts of some 50 N m.
    np.testing.assert_allclose(np.linalg.norm(extra, axis=1), 5.0, rtol=0, atol=1e-10)
    np.testing.assert_allclose(np.sum(extra * least.tau, axis=1), 0.0, atol=1e-8)
    np.testing.assert_allclose(strained.power, least.power, rtol=0, atol=1e-9)
    motion, t, *_ = motion_of("dualv")
    Z = tension_directions(robot, motion.states(t).N)[:, :, 0]
    np.testing.assert_allclose(extra, 5.0 * Z, rtol=0, atol=1e-8)  # the same sign, fixed by the first pose
    with pytest.raises(InputError, match="no internal tension is possible"):
        predict_efforts(exact("orthoglide"), trajectory("orthoglide"), robot="orthoglide", tension=1.0)
    with pytest.raises(InputError, match="does not fit"):
        predict_efforts(exact("dualv"), trajectory("dualv"), robot=robot, tension=[1.0, 2.0])


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("dualv", ("x", "y", "yaw")),
        ("dualv", POSE),
        ("orthoglide", ("x", "y", "z")),
        ("stewart", POSE),
    ],
)
def test_a_pose_needs_the_efforts_of_its_joints(name: str, given) -> None:
    """Bodies with and without coordinates of their own, planar, translating and free ones."""
    robot = robot_of(name)
    pose = pose_of(name)
    found = predict_efforts(
        exact(name), PoseTrajectory(motion_of(name)[1], {k: pose[k] for k in given}), robot=robot
    )
    expected = true_efforts(name)
    error = np.abs(found.tau - expected) / np.abs(expected).max()
    # Rates come from a quintic spline through samples 2 ms apart: best away from the ends.
    assert error[20:-20].max() < 1e-6
    assert error.max() < 1e-4


def pose_of(name: str) -> dict[str, np.ndarray]:
    """Of the platform along the motion, by the tree's own kinematics."""
    robot = robot_of(name)
    motion, t, *_ = motion_of(name)
    states = motion.states(t)
    bodies = body_motion(tree_of(robot), states.q, states.dq, states.ddq)
    i = [joint.child for joint in robot.joints].index("platform")
    quaternion = quaternions(bodies.R[:, i])
    values = dict(
        zip(("x", "y", "z", "qw", "qx", "qy", "qz"), [*bodies.p[:, i].T, *quaternion.T], strict=True)
    )
    return pose_angles(values)


def quaternions(R):
    """By SciPy: w, x, y, z."""
    from scipy.spatial.transform import Rotation

    return np.roll(Rotation.from_matrix(R).as_quat(), 1, axis=1)


@pytest.mark.parametrize("angles", ["xyz", "zyx"])
def test_angles_of_quaternions_are_those_of_scipy(angles: str) -> None:
    from scipy.spatial.transform import Rotation

    turns = Rotation.random(40, rng=np.random.default_rng(2))
    wanted = turns.as_euler("XYZ" if angles == "xyz" else "ZYX")
    wanted = wanted if angles == "xyz" else wanted[:, ::-1]
    for one, expected in zip(turns.as_quat(), wanted, strict=True):
        values = dict(zip(("qx", "qy", "qz", "qw"), one[:, None], strict=True))
        found = pose_angles(values, angles)
        # Half the digits are lost near a pitch of a quarter turn.
        np.testing.assert_allclose([found[k][0] for k in POSE[3:]], expected, atol=1e-6)


def test_half_a_pose_is_refused() -> None:
    robot = robot_of("dualv")
    t = np.linspace(0.0, 1.0, 100)
    with pytest.raises(InputError, match="do not determine the motion"):
        predict_efforts(exact("dualv"), PoseTrajectory(t, {"x": 0 * t, "y": 0 * t}), robot=robot)
    with pytest.raises(InputError, match="did you mean 'platform'"):
        posed_robot(robot, "plattform", ("x", "y", "yaw"))
    with pytest.raises(InputError, match="all four"):
        pose_angles({"qw": t, "qx": t})


def test_leaving_the_reachable_set_is_refused_with_sample_and_loop() -> None:
    robot = robot_of("dualv")
    t = np.linspace(0.0, 1.0, 201)
    out = PoseTrajectory(t, {"x": 0.9 * t, "y": 0 * t, "yaw": 0 * t})
    with pytest.raises(InputError, match=r"sample \d+.*t = .* s.*'(wrist|platform)"):
        predict_efforts(exact("dualv"), out, robot=robot)
    # A few samples that do not fit are enough: a controller needs them all.
    _, t, q, *_ = motion_of("dualv")
    q = q.copy()
    q[:, 0] += 0.6 * np.exp(-(((np.arange(len(t)) - 200.0) / 3.0) ** 2))
    with pytest.raises(InputError, match=r"sample (19\d|200).*'motor"):
        predict_efforts(exact("dualv"), log_from_arrays(robot, t, q, None), robot=robot)


ELBOW = """
name: elbow
gravity: [0, -9.81, 0]
joints:
  - {name: shoulder, kind: revolute, parent: base, child: upper}
  - {name: elbow, kind: revolute, parent: upper, child: fore, xyz: [1, 0, 0]}
  - {name: slide, kind: prismatic, parent: base, child: cart, xyz: [0.5, 0, 0], axis: [1, 0, 0]}
loops:
  - {name: tip, kind: revolute, a: {body: fore, xyz: [1, 0, 0]}, b: {body: cart, xyz: [0, 0, 0]}}
measured: [shoulder]
actuators: [slide]
start: {shoulder: 0.4, elbow: -0.8, slide: 1.3}
"""


def test_crossing_a_singular_pose_is_refused_even_between_samples(tmp_path) -> None:
    """A crank whose slider drives: stretched, no force of the slider turns the shoulder."""
    file = tmp_path / "elbow.yaml"
    file.write_text(ELBOW)
    robot = load_robot(file)
    known = estimate("elbow", ["M_fore"], ["kg"], [1.0])
    t = np.linspace(0.0, 1.0, 100)  # an even number: no sample at the stretched pose itself
    stays = log_from_arrays(robot, t, (0.4 - 0.2 * t)[:, None], None)
    assert np.isfinite(predict_efforts(known, stays, robot=robot).tau).all()
    crosses = log_from_arrays(robot, t, (0.4 - 0.8 * t)[:, None], None)
    with pytest.raises(InputError, match=r"sample 49 .*crosses a singular pose"):
        predict_efforts(known, crosses, robot=robot)


def test_a_basis_that_turns_over_is_no_singular_pose() -> None:
    from dynid.statistics.effort_prediction import _crossings

    angle = np.linspace(-0.5, 0.5, 20)  # never zero itself
    J = np.zeros((20, 2, 2))
    J[:, 0, 0], J[:, 1, 1] = 1.0, np.sin(angle)
    N = np.repeat(np.eye(4)[None, :, :2], 20, axis=0)
    flip = np.where(np.arange(20) % 2, -1.0, 1.0)[:, None]
    J[:, :, 0] *= flip
    N[:, :, 0] *= flip
    assert _crossings(J, N).tolist() == [9]


def test_an_underactuated_robot_is_refused() -> None:
    robot = robot_of("serial6")
    passive = replace(robot, actuators=robot.actuators[:-1])
    with pytest.raises(InputError, match="drive 5 of its 6 degrees of freedom"):
        predict_efforts(
            exact("serial6"), log_from_arrays(passive, *motion_of("serial6")[1:3], None), robot=passive
        )


def test_rates_may_be_left_out(tmp_path) -> None:
    robot = robot_of("scara")
    _, t, q, dq, _ = motion_of("scara")
    known, whole = exact("scara"), trajectory("scara")
    expected = predict_efforts(known, whole, robot=robot).tau
    size = np.abs(expected).max(axis=0)
    for log in (log_from_arrays(robot, t, q, None), log_from_arrays(robot, t, q, None, dq=dq)):
        found = predict_efforts(known, log, robot=robot).tau
        # Quintic spline at 2 ms; the ends are not cut, and are worst.
        assert (np.abs(found - expected) / size)[20:-20].max() < 1e-6
        assert (np.abs(found - expected) / size).max() < 1e-3
    with pytest.raises(InputError, match="from the derivative"):
        predict_efforts(known, replace(whole, dq=57.3 * dq), robot=robot)


@pytest.mark.parametrize(("name", "tension"), [("scara", 0.0), ("dualv", 0.0), ("dualv", 4.0)])
def test_friction_that_grows_with_the_load_is_that_of_the_predicted_load(name: str, tension: float) -> None:
    """J^T (tau - Fl sign(s) |load|) is what the motion needs without that friction.

    The load is the effort without friction and offsets, the tension included.
    """
    robot, truth = robot_of(name), truth_of(name)
    motors = [actuator.name for actuator in robot.actuators]
    loaded = replace(robot, drive={name: (*robot.drive[name], "Fl") for name in motors})
    parameters = parameter_table(variant(loaded))

    def efforts(value):
        x = [value(p) for p in parameters]
        known = estimate(name, [p.name for p in parameters], [p.unit for p in parameters], x)
        return predict_efforts(known, trajectory(name), robot=loaded, tension=tension).tau

    found = efforts(lambda p: 0.06 if p.symbol == "Fl" else truth[p.name])
    load = efforts(lambda p: truth[p.name] if p.kind == "inertial" or p.symbol == "Ia" else 0.0)
    motion, t, _, dq, _ = motion_of(name)
    N = motion.states(t).N if robot.loops else np.eye(len(motors))[None].repeat(len(t), 0)
    J = motor_jacobian(robot, N)
    left = found - 0.06 * np.sign(dq) * np.abs(load)
    need = np.einsum("nad,na->nd", J, true_efforts(name))
    # Rounding of efforts of some tens of N m.
    np.testing.assert_allclose(np.einsum("nad,na->nd", J, left), need, rtol=0, atol=1e-8)


def test_columns_of_a_trajectory_are_those_of_the_logs_where_it_has_them() -> None:
    robot = robot_of("scara")
    _, t, q, *_ = motion_of("scara")
    asked = {
        "t": "stamp",
        "q_{i}": {"name": "meas_{name}", "unit": "deg"},
        "q_2": {"scale": -1},
        "q_3": {"name": "meas_quill", "unit": "mm"},  # it slides
        "dq_1": {"scale": -1},
        "tau_{i}": {"name": "motor_{name}", "delay": 0.01},
    }
    logs = read(Experiment, plain_entry({"robot": "scara", "logs": ["a.csv"], "columns": asked}))
    meas = dict(zip([f"meas_{name}" for name in robot.measured], q.T, strict=True))
    factor = np.array([1.0, -1.0, 1e-3 / np.radians(1.0), 1.0])
    log = desired_motion({"stamp": t, **meas}, robot, recorded=logs)[1].log
    np.testing.assert_allclose(log.q, np.radians(q) * factor, rtol=1e-12)
    assert [item.code for item in log.notices] == ["trajectory-as-logs"]
    plain = {"t": t, **{f"q_{i + 1}": x for i, x in enumerate(q.T)}}
    log = desired_motion(plain, robot, recorded=logs)[1].log  # q_1.. are joint positions in rad and m
    np.testing.assert_array_equal(log.q, q)
    assert "are not used" in log.notices[0].text
    found = predict_efforts(
        exact("scara"), {"time": t, **meas}, robot=robot, columns={"q_{i}": "meas_{name}", "t": "time"}
    )
    expected = predict_efforts(exact("scara"), plain, robot=robot)
    np.testing.assert_array_equal(found.tau, expected.tau)
    assert not found.notices


def test_positions_with_noise_are_reported() -> None:
    robot = robot_of("scara")
    _, t, q, *_ = motion_of("scara")
    noisy = q + 1e-5 * np.random.default_rng(1).normal(size=q.shape)  # 5 rad/s^2 at 2 ms
    found = predict_efforts(exact("scara"), log_from_arrays(robot, t, noisy, None), robot=robot)
    assert [notice.code for notice in found.notices] == ["rough-trajectory"]


def test_the_noise_of_a_recorded_motion_is_not_predicted() -> None:
    robot = robot_of("scara")
    motion = random_motion(robot, 7, harmonics=5, frequency=0.3, draws=1)
    t = np.arange(0.0, 3.0, 0.002)
    noisy = motion.q(t) + 1e-4 * np.random.default_rng(1).normal(size=(len(t), len(robot.measured)))
    found, clean = (
        predict_efforts(exact("scara"), log_from_arrays(robot, t, q, None), robot=robot).tau
        for q in (noisy, motion.q(t))
    )
    # 50 rad/s^2 of noise would be tens of times the efforts; friction jumps at reversals a little beside.
    error = np.sqrt(np.mean((found - clean)[50:-50] ** 2, axis=0))
    assert np.all(error < 0.1 * np.abs(clean).max(axis=0))


def test_rounded_positions_are_no_worse_at_the_ends() -> None:
    """The end of a spline multiplied the rounding by nine times as much as its middle."""
    robot = robot_of("scara")
    motion, *_ = motion_of("scara")
    t = np.arange(0.4, 2.4, 0.004)
    wrong = []
    for shift in np.linspace(0.0, 0.003, 8):
        q = np.round(motion.q(t + shift), 6)
        log = desired_motion(log_from_arrays(robot, t, q, None), robot)[1].log
        assert not log.notices
        wrong.append(np.asarray(log.ddq) - motion.ddq(t + shift))
    error = np.sqrt(np.mean(np.square(wrong), axis=(0, 2)))  # over motions and joints
    assert max(error[0], error[-1]) < 1.5 * np.median(error)


def test_the_ends_of_a_recorded_motion_keep_their_accelerations() -> None:
    """Continued oddly, without acceleration, they were wrong by all of it."""
    robot = robot_of("scara")
    motion = random_motion(robot, 7, harmonics=5, frequency=0.3, draws=1)
    t = np.arange(0.4, 3.4, 0.002)
    noisy = motion.q(t) + 2e-5 * np.random.default_rng(1).normal(size=(len(t), len(robot.measured)))
    log = desired_motion(log_from_arrays(robot, t, noisy, None), robot)[1].log
    assert "first and last" in log.notices[0].text
    wrong, size = np.abs(np.asarray(log.ddq) - motion.ddq(t)), np.abs(motion.ddq(t)).max(axis=0)
    assert np.all(wrong < 0.2 * size)


def test_runs_of_a_file_are_taken_one_by_one() -> None:
    robot = robot_of("dualv")
    whole = trajectory("dualv")
    cut = replace(whole, segments=((0, 200), (250, len(whole.t))), dq=None, ddq=None)
    found, expected = predict_efforts(exact("dualv"), cut, robot=robot), true_efforts("dualv")
    kept = np.r_[0:200, 250 : len(whole.t)]
    np.testing.assert_array_equal(found.t, whole.t[kept])
    inner = np.r_[20:180, 220 : len(kept) - 20]
    # Spline through samples 2 ms apart, on each side of the cut its own.
    assert np.abs(found.tau - expected[kept])[inner].max() < 1e-6 * np.abs(expected).max()


def test_an_arm_is_led_by_the_pose_of_its_hand() -> None:
    robot = robot_of("scara")
    bent = replace(robot, start=dict(zip(robot.positions, [0.3, 0.8, 0.05, 0.2], strict=True)))
    t = np.arange(0.0, 1.0, 0.002)
    q = np.array([0.3, 0.8, 0.05, 0.2]) + np.outer(np.sin(4.0 * t), [0.2, 0.3, 0.02, 0.4])
    still = np.zeros((len(t), 4))
    bodies = body_motion(tree_of(bent), q, still, still)
    hand = robot.joints[-1].child
    i = [joint.child for joint in robot.joints].index(hand)
    names = ("x", "y", "z", "qw", "qx", "qy", "qz")
    pose = dict(zip(names, [*bodies.p[:, i].T, *quaternions(bodies.R[:, i]).T], strict=True))
    led = predict_efforts(exact("scara"), PoseTrajectory(t, pose, hand), robot=bent)
    expected = predict_efforts(exact("scara"), log_from_arrays(bent, t, q, None), robot=bent)
    error = np.abs(led.tau - expected.tau) / np.abs(expected.tau).max(axis=0)
    # Both rates come from splines, of different signals; dry friction jumps where a joint turns round.
    assert np.median(error) < 1e-7
    assert np.quantile(error[20:-20], 0.99) < 1e-5


def test_dry_friction_does_not_flicker_at_rest() -> None:
    robot, truth = robot_of("orthoglide"), truth_of("orthoglide")
    t = np.arange(0.0, 2.0, 0.002)
    # The first slider rests while the others move: its speed is rounding.
    q = np.array([-0.31025, -0.31025, -0.31025]) + 0.03 * np.outer(np.sin(3.0 * t), [0.0, 1.0, 0.7])
    found = predict_efforts(exact("orthoglide"), log_from_arrays(robot, t, q, None), robot=robot)
    jumps = np.abs(np.diff(found.tau[:, 0])).max()
    assert jumps < 0.1 * truth["Fs_slide1"]
    assert [notice.code for notice in found.notices] == ["friction-at-rest"]
    assert "slide1" in found.notices[0].text


@pytest.mark.parametrize("creeps", [False, True])
def test_noise_in_the_speed_of_a_joint_at_rest_is_no_friction_and_creeping_is(creeps: bool) -> None:
    """A measured motion has noise where a joint stands still; a slow one keeps its direction."""
    robot, truth = robot_of("orthoglide"), truth_of("orthoglide")
    t = np.arange(0.0, 4.0, 0.002)
    dq = 0.1 * np.outer(np.cos(3.0 * t), [1.0, 0.9, 0.8])
    rests = t > 2.0
    dq[rests, 0] = 3e-4 if creeps else 2e-4 * np.sin(60.0 * t[rests])
    q = np.array([-0.31025, -0.31025, -0.31025]) + 0.002 * np.cumsum(dq, axis=0)
    log = log_from_arrays(robot, t, q, None)
    found = predict_efforts(exact("orthoglide"), log, robot=robot)
    late = t > 2.2
    jumps = np.abs(np.diff(found.tau[late, 0])).max()
    assert jumps < 0.2 * truth["Fs_slide1"]
    share = {note.code for note in found.notices}
    assert ("friction-at-rest" in share) is not creeps


def test_a_reversal_is_no_rest() -> None:
    """A joint that turns round moves in every sample: its dry friction changes sign at once, by 2 Fs."""
    robot, truth = robot_of("orthoglide"), truth_of("orthoglide")
    t = np.arange(0.0, 2.0, 0.0005)
    q = np.array([-0.31025, -0.31025, -0.31025]) + 0.03 * np.sin(3.0 * t[:, None] + [0.0, 0.7, 1.4])
    found = predict_efforts(exact("orthoglide"), log_from_arrays(robot, t, q, None), robot=robot)
    assert not found.notices
    for j, joint in enumerate(found.names):
        (turn, *_) = np.flatnonzero(np.diff(np.sign(np.diff(q[:, j]))))
        step = np.abs(np.diff(found.tau[turn - 20 : turn + 20, j])).max()
        # The other efforts change by less than a tenth of Fs from one sample to the next.
        assert abs(step - 2.0 * truth[f"Fs_{joint}"]) < 0.1 * truth[f"Fs_{joint}"]


def test_terms_of_an_effort_without_a_column_are_unknown() -> None:
    """Not zero with a small sigma: drive terms of a joint act on its own effort only."""
    robot = robot_of("scara")
    log = built_in_experiment("scara").logs[0]
    columns = {"t": log.t} | {f"q_{i + 1}": q for i, q in enumerate(log.q.T)}
    columns |= {f"tau_{i + 1}": tau for i, tau in enumerate(log.tau.T[:3])}
    found = identify(robot, columns, filter={"cutoff": 20.0}, auto="off")
    wrist = {f"{symbol}_wrist" for symbol in ("Ia", "Fv", "Fs", "Off")}
    assert found.not_identifiable.keys() == wrist
    assert all("wrist" in reason for reason in found.not_identifiable.values())
    assert not wrist & found.invisible.keys()
    ahead = found.predict(columns)
    assert np.all(np.isinf(ahead.sigma[:, 3]))
    assert np.all(np.isinf(ahead.sigma_power))
    assert np.all(np.isfinite(ahead.sigma[:, :3]))
    assert "not-identified" in {notice.code for notice in ahead.notices}


def test_unidentified_and_removed_parameters_are_reported() -> None:
    robot = robot_of("scara")
    known = exact("scara")
    first, *others = known.parameters
    lacking = replace(
        known,
        parameters=tuple(others),
        covariance=np.zeros((len(others), len(others))),
        not_identifiable={first.name: "its joint does not move"},
    )
    found = predict_efforts(lacking, trajectory("scara"), robot=robot)
    (notice,) = found.notices
    assert notice.code == "not-identified"
    assert first.name in notice.text
    owner = 0  # the first parameter, of the upper arm, acts on the first motor only
    assert np.isinf(found.sigma[:, owner]).any()
    assert np.all(np.isfinite(np.delete(found.sigma, owner, axis=1)))
    gone = replace(first, value=0.0, sigma=None, essential=False)
    reduced = replace(lacking, parameters=(gone, *others), not_identifiable={})
    assert [one.code for one in predict_efforts(reduced, trajectory("scara"), robot=robot).notices] == [
        "essential-bias"
    ]


def test_ties_hold_for_all_members() -> None:
    robot, truth = robot_of("orthoglide"), truth_of("orthoglide")
    parameters = parameter_table(variant(robot))
    similar = {p.name: truth[p.name] for p in parameters}
    for p in parameters:
        body = p.owner.rstrip("123")
        if p.kind == "inertial" and body in ("fork", "bar", "end", "twin"):
            similar[p.name] = truth[f"{p.symbol}_{body}1"]
    base = structural_base(variant(robot), MODELS["inverse"], parameters, None, ties=("legs",))
    x = base.G @ np.array([similar[p.name] for p in parameters])
    known = estimate("orthoglide", base.names, base.units, x)
    known = replace(known, provenance={"options": {"ties": [TieChoice("legs").tree()]}})
    found = predict_efforts(known, trajectory("orthoglide"), robot=robot)
    expected = inverse_efforts(variant(robot), similar, *motion_of("orthoglide")[2:])
    assert len(x) == 23
    assert np.abs(found.tau - expected).max() < 1e-9 * np.abs(expected).max()  # rounding of grouping


def test_sigma_covers_the_scatter_of_the_prediction() -> None:
    """Monte-Carlo on the factor: fresh noise, fresh estimate, the same trajectory predicted each time."""
    robot, truth = robot_of("scara"), truth_of("scara")
    noise, draws = 0.05, 60
    motion = random_motion(robot, 2, harmonics=5, frequency=0.2, draws=1)
    log = simulate_log(robot, truth, motion, rate=100.0, duration=motion.period, velocity=True)
    settings = Experiment(
        robot=robot,
        estimator="ols",
        filter=FilterSettings(kind="none", velocity="measured", decimate=1),
        mask=MaskSettings(speed=0.0, rest=0.0),
    )
    problem = prepare(robot, [replace(log, ddq=motion.ddq(log.t))], settings)
    base = structural_base(problem.mechanism, problem.model, problem.parameters, problem.directions)
    data = base_system(build_system(problem), base)
    R = data.system.factor().W
    expected = true_efforts("scara")
    x_true = base.G @ np.array([truth[p.name] for p in problem.parameters])
    rng, z = np.random.default_rng(9), []
    few = replace(trajectory("scara"), segments=((0, 60),))
    root = np.linalg.inv(np.linalg.qr(R)[1])
    for _ in range(draws):
        x = x_true + noise * root @ rng.normal(size=len(x_true))
        fitted = estimate("scara", data.names, base.units, x, noise**2 * root @ root.T)
        found = predict_efforts(fitted, few, robot=robot)
        z.append((found.tau - expected[:60]) / found.sigma)
    z = np.array(z)
    # 60 independent draws: the deviation of an rms is 9 % for one effort at one sample; 60 neighbouring
    # samples add little, four efforts halve it.
    assert np.sqrt(np.mean(z**2)) == pytest.approx(1.0, abs=0.15)
    np.testing.assert_allclose(np.sqrt(np.mean(z**2, axis=(0, 1))), 1.0, atol=0.3)
    assert np.mean(np.abs(z) < 1.96) == pytest.approx(0.95, abs=0.05)


def test_sigma_is_that_of_brute_force() -> None:
    """Efforts are linear in the values: one column at a time, and the covariance in between."""
    robot = robot_of("scara")
    known = exact("scara")
    rng = np.random.default_rng(3)
    n = len(known.parameters)
    A = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-6, 0, size=(n, 1))
    fitted = replace(
        known,
        covariance=A @ A.T,
        parameters=tuple(
            replace(p, sigma=float(np.linalg.norm(A[k]))) for k, p in enumerate(known.parameters)
        ),
    )
    few = replace(trajectory("scara"), segments=((0, 40),))
    found = predict_efforts(fitted, few, robot=robot)
    columns, powers = [], []
    for k in range(n):
        unit = tuple(replace(p, value=float(i == k)) for i, p in enumerate(known.parameters))
        one = predict_efforts(replace(known, parameters=unit), few, robot=robot)
        columns.append(one.tau)
        powers.append(one.power)
    D = np.array(columns)
    sigma = np.linalg.norm(np.einsum("knm,kr->nmr", D, A), axis=2)
    np.testing.assert_allclose(found.sigma, sigma, rtol=1e-7)  # the root of a covariance has half its digits
    sigma_power = np.linalg.norm(np.array(powers).T @ A, axis=1)
    np.testing.assert_allclose(found.sigma_power, sigma_power, rtol=1e-7)
    L = covariance_root(A @ A.T)
    np.testing.assert_allclose(L @ L.T, A @ A.T, rtol=0, atol=1e-12 * np.abs(A @ A.T).max())


def test_command_writes_a_file_with_units(tmp_path, monkeypatch) -> None:
    robot = robot_of("dualv")
    monkeypatch.chdir(tmp_path)
    write_results(replace(exact("dualv"), provenance={"options": {"robot": "dualv"}}), tmp_path / "result")
    t, pose = motion_of("dualv")[1], pose_of("dualv")
    rows = np.column_stack([t, pose["x"], pose["y"], pose["yaw"]])
    np.savetxt("wish.csv", rows, delimiter=",", header="t,x,y,yaw", comments="", fmt="%.17g")
    done = CliRunner().invoke(
        main, ["predict", "result", "wish.csv", "--tension", "3"], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    assert "wish_efforts.csv" in done.output
    first, header = (tmp_path / "wish_efforts.csv").read_text().splitlines()[:2]
    assert first.startswith("# ")
    assert "tau_1 [N m]" in first
    assert "tau_3: motor3" in first
    assert header.split(",")[:2] == ["t", "tau_1"]
    table = read_csv(tmp_path / "wish_efforts.csv").columns
    direct = predict_efforts(exact("dualv"), "wish.csv", robot=robot, tension=3.0)
    np.testing.assert_allclose(table["tau_3"], direct.tau[:, 2], rtol=0, atol=1e-9)  # 12 digits written
    np.testing.assert_allclose(table["c_1"], 3.0)
    before = (tmp_path / "wish.csv").read_text()
    refused = CliRunner().invoke(main, ["predict", "result", "wish.csv", "--out", "wish.csv"])
    assert refused.exit_code == 2
    assert (tmp_path / "wish.csv").read_text() == before


def test_joint_names_and_holes_of_a_file(tmp_path) -> None:
    robot = robot_of("scara")
    known = exact("scara")
    _, t, q, *_ = motion_of("scara")
    file = tmp_path / "joints.csv"
    names = [f"q_{name}" for name in robot.measured]
    np.savetxt(
        file, np.column_stack([t, q]), delimiter=",", header=",".join(["t", *names]), comments="", fmt="%.17g"
    )
    found = predict_efforts(known, file, robot=robot)
    again = predict_efforts(known, log_from_arrays(robot, t, q, None), robot=robot)
    np.testing.assert_array_equal(found.tau, again.tau)
    q = q.copy()
    q[100, 1] = np.nan
    np.savetxt(file, np.column_stack([t, q]), delimiter=",", header=",".join(["t", *names]), comments="")
    with pytest.raises(InputError, match="has gaps"):
        predict_efforts(known, file, robot=robot)
    np.savetxt(file, np.column_stack([t, t]), delimiter=",", header="t,other", comments="")
    with pytest.raises(InputError, match="no column for the position"):
        predict_efforts(known, file, robot=robot)


def test_redundant_tree_shares_its_load() -> None:
    robot = robot_of("scara")
    first = robot.coordinates[0]
    doubled = replace(robot, actuators=(*robot.actuators, Actuator("twin", {first: 1.0})))
    found = predict_efforts(exact("scara"), trajectory("scara"), robot=doubled)
    expected = true_efforts("scara")
    # Two motors of one joint, least norm: half each.
    np.testing.assert_allclose(
        found.tau[:, 0], 0.5 * expected[:, 0], rtol=0, atol=1e-9 * np.abs(expected).max()
    )
    np.testing.assert_allclose(found.tau[:, -1], found.tau[:, 0], rtol=0, atol=1e-9 * np.abs(expected).max())


def test_it_is_part_of_the_library() -> None:
    assert dynid.predict_efforts is predict_efforts
    prediction = predict_efforts(exact("scara"), trajectory("scara"), robot=robot_of("scara"))
    assert prediction_csv(prediction).count("\n") == len(prediction.t) + 2


def test_an_estimator_feeds_it_directly() -> None:
    """From noise-free data to the true efforts of another motion, nothing written in between."""
    robot, truth = robot_of("scara"), truth_of("scara")
    motion = random_motion(robot, 5, harmonics=5, frequency=0.2, draws=1)
    log = simulate_log(robot, truth, motion, rate=100.0, duration=motion.period, velocity=True)
    settings = {
        "estimator": "ols",
        "filter": FilterSettings(kind="none", velocity="measured", decimate=1, rows=49.0),
        "mask": MaskSettings(speed=0.0, rest=0.0),
    }
    found = dynid.identify(robot, replace(log, ddq=motion.ddq(log.t)), **settings)
    expected = true_efforts("scara")
    predicted = predict_efforts(found, trajectory("scara"), robot=robot).tau
    assert np.abs(predicted - expected).max() < 1e-6 * np.abs(expected).max()  # noise-free; jumps of friction
