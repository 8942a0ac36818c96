"""Measured poses and deviations: descriptions, logs, and identification from a platform's pose."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.fit import fit_task
from dynid.info import describe
from dynid.kinematics.assembly import CLOSED, assembly_of
from dynid.kinematics.closure import moved
from dynid.kinematics.sensors import measured_motion, sensors_of
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.frame import angles_of, quaternion_of
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.robot_file.measured import body_frame
from dynid.motion.logs import log_from_arrays, read_log
from dynid.motion.motion import Motion
from dynid.motion.plan import plan_motions
from dynid.motion.settings import FilterSettings, MaskSettings
from dynid.pipeline import identify, identify_logs
from dynid.projection.kinematics import _weights, kinematics_along
from dynid.projection.pose_rows import rebuilt_noise
from dynid.simulation.files import write_log
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.estimate import ParameterEstimate
from dynid.unknown import Task
from tests.built_in import truth_of

PLANAR = "[{pose: platform, of: [x, y, yaw]}]"
WHOLE = "[{pose: platform, name: camera}]"


@cache
def robot_with(measured: str, name: str = "dualv") -> Mechanism:
    """A built-in robot that measures something else."""
    import tempfile

    text = (files("dynid") / "robots" / f"{name}.yaml").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.yaml"
        path.write_text(re.sub(r"(?m)^measured:.*$", f"measured: {measured}", text), encoding="utf-8")
        # Without names for dimensions no symbols are recovered, which takes most of the time.
        return replace(load_robot(path), rebuild=None)


def walked(robot: Mechanism, n: int = 20, seed: int = 0) -> np.ndarray:
    return assembly_of(robot).walk(np.random.default_rng(seed), n, reach=0.3)


def pose_of(robot: Mechanism, body: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    still = np.zeros((len(q), len(robot.coordinates)))
    found = body_motion(tree_of(robot), q, still, still)
    i = [joint.child for joint in robot.joints].index(body)
    return found.R[:, i], found.p[:, i]


def turned(angles: np.ndarray, order: str) -> np.ndarray:
    """Rotation matrices of roll, pitch, yaw, by SciPy."""
    from scipy.spatial.transform import Rotation

    listed = angles if order == "xyz" else angles[:, ::-1]
    return Rotation.from_euler(order.upper(), listed).as_matrix()


# --- descriptions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("measured", [PLANAR, WHOLE, "[{pose: platform, of: [x, y, z]}, motor1]"])
@pytest.mark.parametrize("open_loops", [False, True])
def test_a_measured_pose_changes_nothing_that_info_counts(measured: str, open_loops: bool) -> None:
    own = describe(replace(load_robot("dualv"), rebuild=None), open_loops=open_loops)
    seen = describe(robot_with(measured), open_loops=open_loops)
    for field in ("dof", "n_bodies", "n_joints", "n_actuators", "n_closures", "n_standard", "n_base"):
        assert getattr(seen, field) == getattr(own, field), field
    assert (seen.eliminated, seen.grouped) == (own.eliminated, own.grouped)
    for one, other in zip(seen.base, own.base, strict=True):
        assert (one.name, one.unit) == (other.name, other.unit)
        assert (one.grouping is None) == (other.grouping is None)
        if one.grouping and other.grouping:
            coefficients = [[float(x) for x in re.findall(r"\d+\.\d+", p.grouping)] for p in (one, other)]
            np.testing.assert_allclose(*coefficients, rtol=1e-9)  # rounding of the rank decision
    told = [[one.text for one in info.notices if one.code == "over-constrained"] for info in (own, seen)]
    assert told[0] == told[1]


def test_a_sub_chain_leaves_the_sensors_out() -> None:
    robots = replace(load_robot("dualv"), rebuild=None), robot_with(WHOLE)
    own, seen = (describe(robot, bodies=["proximal1", "distal1"]) for robot in robots)
    assert replace(own, notices=()) == replace(seen, notices=(), rank_gap=own.rank_gap)


@pytest.mark.parametrize("order", ["xyz", "zyx"])
def test_angles_and_quaternions_of_rotations_are_those_of_scipy(order: str) -> None:
    from scipy.spatial.transform import Rotation

    angles = np.random.default_rng(1).uniform(-1.5, 1.5, (30, 3))
    for R, expected in zip(turned(angles, order), angles, strict=True):
        np.testing.assert_allclose(angles_of(R, order), expected, atol=1e-13)  # rounding
        quaternion = np.roll(Rotation.from_matrix(R).as_quat(canonical=True), 1)
        np.testing.assert_allclose(quaternion_of(R), quaternion, atol=1e-14)  # rounding
    half = np.diag([-1.0, 1.0, -1.0])
    np.testing.assert_allclose(np.abs(quaternion_of(half)), [0.0, 0.0, 1.0, 0.0], atol=1e-15)  # rounding


@pytest.mark.parametrize("name", ["stewart", "dualv", "evra"])
def test_start_frames_are_those_of_the_kinematics(name: str) -> None:
    robot = load_robot(name)
    q = walked(robot, 3)
    for body in robot.bodies:
        R, p = pose_of(robot, body, q)
        for i in range(len(q)):
            frame = body_frame(robot, body, dict(zip(robot.positions, q[i].tolist(), strict=True)))
            np.testing.assert_allclose(frame.R, R[i], atol=1e-13)  # rounding along the chain
            np.testing.assert_allclose(frame.p, p[i], atol=1e-13)


@pytest.mark.parametrize("order", ["xyz", "zyx"])
def test_single_angles_mean_what_the_order_says(order: str) -> None:
    frame = "xyz: [0.1, 0.02, 0.03], rpy: [0.3, -0.2, 0.9]"
    item = f"{{pose: platform, name: camera, {frame}, of: [x, y, pitch, yaw], angles: {order}}}"
    robot = robot_with(f"[{item}, leg1, leg2]", "stewart")
    assert robot.measured == ("camera_x", "camera_y", "camera_pitch", "camera_yaw", "leg1", "leg2")
    q = walked(robot)
    assert assembly_of(robot).gaps(q).max() < CLOSED
    R, p = pose_of(robot, "platform", q)
    (pose,) = robot.poses
    at = [robot.positions.index(f"camera_{name}") for name in ("roll", "pitch", "yaw", "x", "y", "z")]
    # Loops are closed to 1e-12, and the pose follows the loops.
    np.testing.assert_allclose(turned(q[:, at[:3]], order), R @ pose.frame.R, atol=1e-11)
    np.testing.assert_allclose(q[:, at[3:]], p + R @ pose.frame.p, atol=1e-11)


def test_attitudes_alone_and_points_alone_have_a_ball_in_their_chain() -> None:
    attitude = robot_with("[{pose: platform, of: [roll, pitch, yaw]}]").poses[0]
    assert attitude.measured == ("pose",)
    point = robot_with("[{pose: platform, of: [z, y, x]}, motor1]")
    assert point.measured == ("pose_x", "pose_y", "pose_z", "motor1")
    assert point.measured_positions == point.measured
    assert assembly_of(point).dof == 3


def test_deviations_fill_the_weights() -> None:
    robot = robot_with("[{joint: motor1, sigma: 1e-4}, {pose: platform, name: camera, sigma: [1e-3, 0.02]}]")
    sigma = dict.fromkeys((f"camera_{n}" for n in "xyz"), 1e-3)
    sigma |= dict.fromkeys((f"camera_q{n}" for n in "wxyz"), 0.02)
    assert robot.measured_sigma == {"motor1": 1e-4, **sigma}
    weights = _weights(robot, robot.measured_positions)
    assert weights is not None
    np.testing.assert_allclose(
        np.array(weights[1:]) / weights[0], [0.1] * 3 + [0.005] * 4, rtol=1e-12
    )  # rounding
    each = robot_with("[{pose: platform, of: [x, y, yaw], sigma: [1e-3, 2e-3, 3e-2]}]")
    assert list(each.measured_sigma.values()) == [1e-3, 2e-3, 3e-2]
    alike = robot_with("[{pose: platform, of: [x, y], sigma: 1e-3}, {joint: motor1, sigma: 1e-4}]")
    assert alike.measured_sigma == {"pose_x": 1e-3, "pose_y": 1e-3, "motor1": 1e-4}


@pytest.mark.parametrize(
    ("measured", "told"),
    [
        ("[{pose: platfrom}]", "unknown body 'platfrom'; did you mean 'platform'"),
        ("[platform]", "unknown joint 'platform'"),
        ("[{joint: motor1, pose: platform}]", "a joint, the pose of a body"),
        ("[{joint: motor1, sigma: 0}]", "standard deviation 0 is not positive"),
        ("[{joint: motor1, sigma: -1e-4}]", "not positive"),
        ("[{joint: motor1, sigma: 1e-4}, motor2]", "'motor2' has no standard deviation, but others do"),
        ("[{joint: motor1, sigma: 1e-4}, {pose: platform}]", "'pose' has no standard deviation"),
        (
            "[{pose: platform, sigma: 1e-3}]",
            r"1 standard deviations for 4 quantities \(pose_x, pose_y, pose_z, pose\)",
        ),
        ("[{pose: platform, sigma: [1, 2, 3]}]", "3 standard deviations for 4"),
        ("[{pose: platform, of: [x, yow]}]", "'yow' is not known; did you mean 'yaw'"),
        ("[{pose: platform, of: []}]", "no quantity of the pose is measured"),
        ("[{pose: platform, angles: zyx}]", "only used where one or two angles are measured"),
        ("[{pose: platform, name: motor1}]", "needs the name 'motor1', which is taken"),
        ("[{pose: platform}, {pose: proximal1}]", "needs the name 'pose', which is taken"),
        ("[{pose: platform, names: camera}]", "unknown key 'names'; did you mean 'name'"),
        ("[motor1, {joint: motor1}]", "'motor1' is listed twice"),
    ],
)
def test_descriptions_that_are_refused(measured: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        robot_with(measured)


def test_a_body_with_a_free_joint_is_told_to_use_it() -> None:
    with pytest.raises(InputError, match="which is taken") as refused:
        robot_with("[{pose: platform}]", "stewart")
    assert "list pose" in str(refused.value)


def test_a_measured_loop_joint_may_have_a_deviation() -> None:
    robot = robot_with(
        "[{joint: wrist2, sigma: 1e-3}, {joint: motor1, sigma: 1e-3}, {joint: motor2, sigma: 1e-3}]"
    )
    assert robot.measured == ("wrist2", "motor1", "motor2")


# --- logs --------------------------------------------------------------------------------------------


def columns_of(robot: Mechanism, n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(n) / 100.0
    return t, 0.1 * np.sin(t[:, None] * np.arange(1, 1 + len(robot.measured_positions)))


def written(path: Path, columns: dict[str, np.ndarray]) -> Path:
    header = ",".join(columns)
    np.savetxt(
        path, np.column_stack(list(columns.values())), delimiter=",", header=header, comments="", fmt="%.17g"
    )
    return path


def efforts(t: np.ndarray) -> dict[str, np.ndarray]:
    return {f"tau_{i + 1}": np.cos(t + i) for i in range(4)}


def test_columns_of_a_pose_go_by_their_own_names(tmp_path: Path) -> None:
    robot = robot_with("[{pose: platform, of: [x, y, yaw]}, motor1]")
    t, q = columns_of(robot)
    for names in (
        ("x", "y", "yaw", "q_4"),
        ("pose_x", "pose_y", "pose_yaw", "q_motor1"),
        ("q1", "q_2", "q_3", "q4"),
    ):
        columns = {"t": t, **dict(zip(names, q.T, strict=True)), **efforts(t)}
        log = read_log(written(tmp_path / "a.csv", columns), robot)
        np.testing.assert_array_equal(log.q, q)
    with pytest.raises(InputError, match="order 'xyz', the experiment in the order 'zyx'"):
        read_log(tmp_path / "a.csv", robot, angles="zyx")


def test_several_poses_are_told_apart_by_their_names(tmp_path: Path) -> None:
    left, right = "name: left, of: [x, y]", "name: right, xyz: [0.1, 0, 0], of: [x, y]"
    two = f"[{{pose: platform, {left}}}, {{pose: platform, {right}}}]"
    robot = robot_with(two)
    t, q = columns_of(robot)
    prefixed = dict(zip(("left_x", "left_y", "right_x", "right_y"), q.T, strict=True))
    log = read_log(written(tmp_path / "a.csv", {"t": t, **prefixed, **efforts(t)}), robot)
    np.testing.assert_array_equal(log.q, q)
    bare = {"x": q[:, 0], "y": q[:, 1], **dict(list(prefixed.items())[2:])}
    with pytest.raises(InputError, match="no column for the position of 'left_x'"):
        read_log(written(tmp_path / "b.csv", {"t": t, **bare, **efforts(t)}), robot)


def attitude_columns(n: int = 200) -> dict[str, np.ndarray]:
    t = np.arange(n) / 100.0
    half = 0.2 * np.sin(t)
    pose = {"t": t, "x": 0.1 * t, "y": t, "z": 0.0 * t}
    return pose | {"qw": np.cos(half), "qx": 0.0 * t, "qy": 0.0 * t, "qz": np.sin(half)} | efforts(t)


def test_an_attitude_given_twice_is_refused(tmp_path: Path) -> None:
    columns = attitude_columns() | {"yaw": 0.4 * np.sin(attitude_columns()["t"])}
    with pytest.raises(InputError, match=r"twice: as angles \(yaw\) and as a quaternion \(qw qx qy qz\)"):
        read_log(written(tmp_path / "a.csv", columns), robot_with(WHOLE))


def test_signs_and_lengths_of_quaternions(tmp_path: Path) -> None:
    robot, columns = robot_with(WHOLE), attitude_columns()
    clean = read_log(written(tmp_path / "a.csv", columns), robot)
    names = ("qw", "qx", "qy", "qz")
    flipped = columns | {name: columns[name] * np.where(columns["t"] > 1.0, -1.0, 1.0) for name in names}
    np.testing.assert_array_equal(read_log(written(tmp_path / "b.csv", flipped), robot).q, clean.q)
    long = columns | {name: 2.0 * columns[name] for name in names}
    with pytest.raises(InputError, match="the quaternion of 'camera' has the length 2 instead of 1"):
        read_log(written(tmp_path / "c.csv", long), robot)
    lost = columns | {name: np.where(np.arange(200) == 100, 0.0, columns[name]) for name in names}
    log = read_log(written(tmp_path / "d.csv", lost), robot)
    assert [notice.code for notice in log.notices][:2] == ["attitude-lost", "not-finite"]
    assert np.array_equal(np.flatnonzero(~log.valid), [100])
    np.testing.assert_allclose(log.q, clean.q, atol=1e-6)  # a smooth motion


def test_the_length_of_a_quaternion_does_not_matter() -> None:
    robot = load_robot("stewart")
    seeing = replace(robot, measured=("pose",))
    sensors = sensors_of(seeing, seeing.measured_positions)
    q = walked(seeing, 10)
    dq, ddq, _ = assembly_of(seeing).random_rates(q, np.random.default_rng(0))
    wanted, first, second = measured_motion(seeing, q, dq, ddq)
    drift = np.linspace(0.95, 1.05, 10)[:, None]
    scaled = [np.concatenate([x[:, :3], drift * x[:, 3:]], axis=1) for x in (wanted, first, second)]
    poses = assembly_of(seeing).track(scaled[0], sensors)
    np.testing.assert_allclose(sensors.miss(poses, wanted), 0.0, atol=1e-12)  # rounding
    for one, other in zip(sensors.rates(*scaled), sensors.rates(wanted, first, second), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12 * np.abs(other).max())  # rounding


# --- simulation --------------------------------------------------------------------------------------


def test_measured_rates_are_derivatives_of_measured_positions() -> None:
    robot = robot_with("[{pose: platform, name: camera}, leg2, pose]", "stewart")
    q = walked(robot, 5)
    dq, _, _ = assembly_of(robot).random_rates(q, np.random.default_rng(2))
    h = 1e-5
    ahead, behind = (moved(robot, q, s * h * dq) for s in (1.0, -1.0))
    seen = [measured_motion(robot, x, dq, 0.0 * dq)[0] for x in (ahead, behind)]
    _, first, second = measured_motion(robot, q, dq, 0.0 * dq)
    # Central differences: h^2 times third derivatives of order |dq|^3, and rounding over h or h^2.
    np.testing.assert_allclose((seen[0] - seen[1]) / (2 * h), first, atol=1e-8)
    middle = measured_motion(robot, q, dq, dq)[0]
    np.testing.assert_allclose((seen[0] - 2 * middle + seen[1]) / h**2, second, atol=1e-4)


def test_a_motion_of_the_pose_moves_the_robot() -> None:
    robot = robot_with(PLANAR)
    motion = random_motion(robot, seed=1, harmonics=3, frequency=1.0, draws=1)
    by_joints = simulate_log(robot, truth_of("dualv"), motion, rate=200.0, duration=0.5)

    class Seen:
        """The same motion as one of the measured pose."""

        period = motion.period
        q, dq, ddq = motion.q, motion.dq, motion.ddq

    by_pose = simulate_log(robot, truth_of("dualv"), Seen(), rate=200.0, duration=0.5)  # type: ignore[arg-type]
    np.testing.assert_allclose(
        by_pose.tau, by_joints.tau, atol=1e-8 * np.abs(by_joints.tau).max()
    )  # closure to rounding


# --- identification ----------------------------------------------------------------------------------


def relative_error(parameters: Sequence[ParameterEstimate], truth: Mapping[str, float] | None) -> float:
    """Distance of the base values from the true ones, in parts of their norm."""
    assert truth is not None
    value = np.array([one.value for one in parameters])
    true = np.array([truth[one.name] for one in parameters])
    return float(np.linalg.norm(value - true) / np.linalg.norm(true))


@cache
def exact_log(measured: str, name: str = "dualv", rate: float = 1000.0, draws: int = 8):
    robot = robot_with(measured, name)
    # Of several draws the best conditioned: the condition multiplies what the low-pass takes away.
    motion = random_motion(robot, seed=3, harmonics=4, frequency=1.0 if name == "dualv" else 0.3, draws=draws)
    return robot, simulate_log(robot, truth_of(name), motion, rate=rate, duration=motion.period)


# What the low-pass takes from the highest harmonics, times the condition of the model: 1e3 for inverse,
# 2e4 for power and energy, and energy needs an integral too. The four motors, measured on such a
# motion, give 2e-7, 6e-7 and 2e-6; poses measured 1e-7 to 3e-7, 7e-7 to 1.4e-6, and 1e-6 to 6e-6.
@pytest.mark.parametrize(("model", "most"), [("inverse", 1e-6), ("power", 4e-6), ("energy", 2e-5)])
@pytest.mark.parametrize("measured", [PLANAR, WHOLE])
def test_a_planar_robot_is_identified_from_its_platform(measured: str, model: str, most: float) -> None:
    robot, log = exact_log(measured)
    estimate = identify_logs(
        robot, (log,), (log,), Experiment(robot=robot, model=model), truth=truth_of("dualv")
    )
    assert relative_error(estimate.parameters, estimate.truth) < most
    assert estimate.validation[0].effort_percent < 1e-4


def test_a_stewart_platform_is_identified_from_its_pose_through_a_file(tmp_path: Path) -> None:
    robot, log = exact_log("[pose]", "stewart", 500.0)
    path = write_log(log, tmp_path / "pose.csv")
    read = read_log(path, robot)
    np.testing.assert_array_equal(read.q, log.q)
    fit = fit_task(Task(robot, (read,), Experiment(robot=robot, model="inverse")))
    true = fit.true_values(truth_of("stewart"))
    assert (
        relative_error(fit.parts.parameters, true) < 1e-5
    )  # conditioning 1e2 over the low-pass error of 1e-7


def test_noise_is_covered() -> None:
    robot, exact = exact_log(PLANAR)
    rng = np.random.default_rng(11)
    scores = []
    for _ in range(4):
        noisy = replace(exact, tau=exact.tau + 0.8 * rng.normal(size=exact.tau.shape))
        estimate = identify_logs(
            robot, (noisy,), (), Experiment(robot=robot, model="power"), truth=truth_of("dualv")
        )
        scores += [(one.value - estimate.truth[one.name]) / one.sigma for one in estimate.parameters]
    inside = np.mean(np.abs(scores) < 2.2)  # t of some twenty degrees of freedom
    assert 0.86 < inside <= 1.0  # 112 correlated scores: 0.95 with a deviation of about 0.03


def test_python_entrance_and_logs_with_both_pose_and_joints(tmp_path: Path) -> None:
    robot, log = exact_log("[{pose: platform, of: [x, y, yaw]}, motor1, motor3]", draws=1)
    write_log(log, tmp_path / "both.csv")
    estimate = identify(robot, tmp_path / "both.csv", model="inverse", filter={"cutoff": 180.0})
    assert "more measured joints than degrees of freedom" in str(estimate.provenance) + str(estimate.choices)
    # What the low-pass takes: 6e-7 % at this cutoff. The cutoff chosen from a log without noise follows its
    # rounding, and took 1.2e-4 %; without a low-pass 1e-8 % is left.
    assert estimate.fit.residual_percent < 1e-4


# --- weights -----------------------------------------------------------------------------------------


def test_pose_beside_joints_is_better_than_either_as_theory_says() -> None:
    both = robot_with(
        "[{joint: motor1, sigma: 2e-4}, {joint: motor2, sigma: 2e-4}, {joint: motor3, sigma: 2e-4},"
        " {pose: platform, of: [x, y, yaw], sigma: [1e-4, 3e-4, 1e-3]}]"
    )
    assembly = assembly_of(both)
    q = walked(both, 1, seed=4)
    sigma = np.array([both.measured_sigma[name] for name in both.measured_positions])
    rng = np.random.default_rng(5)
    at = [both.coordinates.index(name) for name in ("pose_x", "pose_y", "pose_yaw")]
    N = assembly.tangent(assembly.closure.values(q).A)[0]
    found = {}
    for label, used in (("joints", slice(0, 3)), ("pose", slice(3, 6)), ("both", slice(0, 6))):
        names = both.measured_positions[used]
        sensors = sensors_of(both, names, _weights(both, names))
        wanted = sensors.read(q) + sigma[used] * rng.normal(size=(1500, len(names)))
        rebuilt = assembly.follow(wanted, sensors)
        M = N[sensors.velocity] / sigma[used][:, None]
        theory = N[at] @ np.linalg.inv(M.T @ M) @ N[at].T
        sample = np.cov(rebuilt[:, at].T)
        # 1500 draws know a variance to 4 %; five of these deviations over nine entries.
        scale = np.sqrt(np.outer(np.diag(theory), np.diag(theory)))
        np.testing.assert_allclose(sample / scale, theory / scale, atol=0.2)
        found[label] = np.diag(theory), np.diag(sample)
    for alone in ("joints", "pose"):
        assert np.all(found["both"][0] < found[alone][0])
        assert np.all(found["both"][1] < 1.1 * found[alone][1])


# --- masks, refusals ---------------------------------------------------------------------------------


def test_reversals_of_unmeasured_motors_are_masked() -> None:
    robot, log = exact_log(PLANAR, draws=1)
    settings = MaskSettings(speed=0.5, around=5, rest=0.0)
    motion = Motion(log, plan_motions([log], robot, FilterSettings(cutoff=100.0), settings)[0])
    from dynid.mechanism.parameters import parameter_table
    from dynid.projection.inverse import inverse_directions
    from dynid.projection.pose_rows import MovingRows

    rows = MovingRows(robot, parameter_table(robot), inverse_directions(robot), motion)
    (a, b), *_ = motion.usable()
    weights = np.concatenate([w for _, _, w in rows.rows(a + 50, b - 50, 300)], axis=1)
    measured = motion.states(a, b)
    dq = kinematics_along(robot, motion).states(a, measured).dq
    motors = [robot.coordinates.index(f"motor{i}") for i in (1, 2, 3, 4)]
    slow = (np.abs(dq[:, motors]) < 0.5).any(axis=1)
    turns = (np.signbit(dq[1:, motors]) != np.signbit(dq[:-1, motors])).any(axis=1)
    slow[1:] |= turns
    slow[:-1] |= turns
    wide = np.convolve(slow, np.ones(11), mode="same") > 0
    assert 0.1 < wide.mean() < 0.9
    np.testing.assert_array_equal(weights, np.repeat(~wide[None, 50:-50], len(weights), axis=0).astype(float))


def test_noise_of_rebuilt_velocities_is_that_of_drawn_ones() -> None:
    robot = robot_with("[pose, leg1]", "stewart")
    assembly = assembly_of(robot)
    q = walked(robot, 1, seed=2)
    N = assembly.tangent(assembly.closure.values(q).A)
    sensors = sensors_of(robot, robot.measured_positions)
    noise = np.array([0.01, 0.02, 0.015, 0.03, 0.03, 0.03, 0.03, 0.005])
    rng = np.random.default_rng(0)
    wanted = np.repeat(sensors.read(q), 4000, axis=0)
    drawn = noise * rng.normal(size=wanted.shape)
    first, _ = sensors.rates(wanted, drawn, 0.0 * drawn)
    dq = assembly.rates(np.repeat(q, 4000, axis=0), first, 0.0 * first, sensors).dq
    # 4000 draws know a deviation to 1.1 %; four of them.
    np.testing.assert_allclose(rebuilt_noise(N, sensors, noise.tolist()), dq.std(axis=0), rtol=0.05)


def test_a_noisy_coordinate_that_never_moves_does_not_hide_rest() -> None:
    robot = robot_with("[{pose: platform, of: [x, y, z, yaw]}]")
    t = np.arange(4000) / 500.0
    moving = np.where((t > 2.0) & (t < 6.0), np.sin(np.pi * (t - 2.0)) ** 2, 0.0)
    rng = np.random.default_rng(3)
    q = np.column_stack([0.1 * moving, 0.05 * moving, 0.0 * t, 0.2 * moving]) + 1e-6 * rng.normal(
        size=(4000, 4)
    )
    log = log_from_arrays(robot, t, q, np.ones((4000, 4)))
    motion = Motion(log, plan_motions([log], robot, FilterSettings(cutoff=20.0), MaskSettings())[0])
    (a, b), *_ = motion.usable()
    used = motion.weighted(a, b)[1].max(axis=1)
    still = (t[a:b] < 1.8) | (t[a:b] > 6.2)
    assert used[still].mean() < 0.05  # all coordinates at once above six sigma: hardly ever
    assert used[~still].mean() > 0.9


def test_too_little_of_a_pose_is_refused_with_what_can_still_move() -> None:
    _, log = exact_log(PLANAR, draws=1)
    few = robot_with("[{pose: platform, of: [x, y]}]")
    partial = log_from_arrays(few, log.t, log.q[:, :2], log.tau)
    with pytest.raises(
        InputError, match=r"2 measured coordinates do not determine the pose .* can still move"
    ):
        identify_logs(few, (partial,), (), Experiment(robot=few, model="inverse"))


def test_a_pose_that_the_loops_do_not_admit_is_refused() -> None:
    robot, log = exact_log(WHOLE, rate=200.0, draws=1)
    tilted = log.q.copy()
    tilted[:, 2] += 0.1  # a planar robot does not rise
    with pytest.raises(InputError, match="do not close the loops"):
        identify_logs(robot, (replace(log, q=tilted),), (), Experiment(robot=robot, model="inverse"))
