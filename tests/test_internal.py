"""Model `internal`: rows of free motion on locked cables, from poses, free coordinates or any sensor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.cases.free_motion.locked_lengths import estimated
from dynid.cases.free_motion.log import free_motion_log, measuring_robot, with_lengths
from dynid.common.entry import plain_entry
from dynid.common.errors import InputError
from dynid.common.settings import read
from dynid.dynamics.free_motion import free_motions
from dynid.dynamics.freedoms import position_rates
from dynid.experiment.experiment import Experiment
from dynid.experiment.sections import InternalSettings
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.locked_motion import locked_motion_of
from dynid.kinematics.sensors import sensors_of
from dynid.mechanism.cable import without_cables
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.robot_file.robot_file import load_robotfile
from dynid.motion.log import Log
from dynid.motion.logs import log_from_arrays, read_log
from dynid.motion.motion import Motion
from dynid.motion.plan import plan_motions
from dynid.motion.settings import ColumnMap, FilterSettings, MaskSettings
from dynid.problem import as_log
from dynid.projection.internal import InternalRows, internal_directions, internal_structure
from tests.parameter_orders import named_values

DATA = Path(__file__).parents[2] / "shared" / "data" / "cdpr_grab4"
COLUMNS = {"segment": "exp", "x": "p_1", "y": "p_2", "z": "p_3"}
COLUMNS |= {"roll": "eps_1", "pitch": "eps_2", "yaw": "eps_3"}
TRUTH = {"M_platform": 10.0, "MX_platform": 0.04, "MY_platform": -0.06, "MZ_platform": 1.9}
TRUTH |= {"XX_platform": 0.51, "YY_platform": 0.69, "ZZ_platform": 0.37, "XY_platform": 0.004}
POSE = tuple(f"pose_{name}" for name in ("x", "y", "z", "qw", "qx", "qy", "qz"))
CABLES = ("cable1", "cable2", "cable3", "cable4")
SENSORS = {
    "swivels": "[{swivel: cable1, name: s1}, {swivel: cable3, name: s3}]",
    "imu": "[{pose: platform, name: imu, of: [roll, pitch]}]",
    "marker": "[{pose: platform, name: marker, xyz: [0.1, 0.2, -0.1], of: [x, y]}]",
}


def poses(x: float, y: float, roll: float) -> dict[str, float]:
    half = 0.5 * roll
    return {"pose_x": x, "pose_y": y, "pose_z": -0.5, "pose_qw": np.cos(half), "pose_qx": np.sin(half)}


@pytest.fixture(scope="module")
def free_motion():
    """Two free motions about different equilibria: positions, rates and accelerations, and lengths.

    Accelerations are those of the equations of motion at the states, which lie on the cables to rounding: so
    the rows vanish whatever the integration leaves.
    """
    robot = load_robot("cable4")
    starts = [{**dict.fromkeys(POSE, 0.0), **poses(*one)} for one in ((1.3, -0.3, 0.05), (0.8, 0.0, 0.1))]
    q = np.array([[start[name] for name in POSE] for start in starts])
    lengths = assembly_of(robot).closure.values(np.column_stack([q, np.zeros((2, 4))])).f
    found = free_motions(robot, TRUTH, lengths, q, duration=1.2, rate=100.0, phase=0.2)
    n = len(found.t)
    parts = (np.moveaxis(x, 0, 1).reshape(2 * n, -1) for x in (found.q, found.dq, found.ddq))
    return (*parts, np.repeat(lengths, n, axis=0))


def recorded(robot, free_motion, positions: tuple[str, ...]) -> Log:
    """A log of any positions of the robot, with exact rates; lengths stand still."""
    q, dq, ddq, lengths = free_motion
    assembly = assembly_of(robot)
    held = np.column_stack([q, lengths])
    given = assembly.follow(held[:, :7], sensors_of(robot, POSE))
    twist = assembly.rates(given, dq, ddq, sensors_of(robot, POSE))
    first = position_rates(robot, given, twist.dq)
    # 2 dq/dt = q w for a quaternion, a product: its derivative is dq w + q dw, each over two.
    second = position_rates(robot, given, twist.ddq)
    turning = [i for i, name in enumerate(robot.positions) if name[-3:] in ("_qw", "_qx", "_qy", "_qz")]
    second[:, turning] += position_rates(robot, first, twist.dq)[:, turning]
    at = [robot.positions.index(name) for name in positions]
    t = np.arange(len(q)) * 0.01
    n = len(q) // 2
    return log_from_arrays(
        replace(robot, measured=_measured(robot, positions)),
        t,
        given[:, at],
        None,
        dq=first[:, at],
        ddq=second[:, at],
        segments=[(0, n), (n, 2 * n)],
    )


def _measured(robot, positions: tuple[str, ...]) -> tuple[str, ...]:
    """The pose as a whole where its attitude is there, else coordinates one by one."""
    if "pose_qw" not in positions:
        return positions
    return ("pose", *(name for name in positions if not name.startswith("pose_")))


def rows_of(robot, log: Log, options: dict | None = None):
    """Rows of a log as measured, without any filter: matrix (n, k, p), and their source."""
    settings = InternalSettings(**(options or {}))
    log = free_motion_log(log, robot, settings)
    robot = measuring_robot(robot, [log], settings)
    filters = FilterSettings(kind="none", velocity="measured")
    plan = plan_motions([log], robot, filters, MaskSettings(speed=0.0, rest=0.0))[0]
    source = InternalRows(robot, parameter_table(robot), internal_directions(robot), Motion(log, plan))
    return _dense(source, 64), source, robot


def _dense(source: InternalRows, tile: int) -> np.ndarray:
    return np.concatenate(
        [
            source.layout.dense(packed, 10) * weights.T[:, :, None]
            for start, stop in source.pieces()
            for _, packed, weights in source.rows(start, stop, tile)
        ]
    )


@pytest.mark.parametrize("nullspace", ["orthonormal", "free"])
@pytest.mark.parametrize("pose", ["measured", "free", "projected"])
def test_rows_vanish_along_a_free_motion(free_motion, nullspace: str, pose: str) -> None:
    robot = load_robot("cable4")
    log = recorded(robot, free_motion, (*POSE, *CABLES))
    W, source, _ = rows_of(robot, log, {"nullspace": nullspace, "pose": pose, "free": ("x", "y")})
    chi = named_values(robot, TRUTH)
    size = np.abs(W * chi).max()
    # Rounding of the loops, 1e-15, and of rates by closures of condition 10 to 100.
    assert np.abs(W @ chi).max() < 1e-9 * size
    # Nothing else does: the next singular value stands far above.
    s = np.linalg.svd(W.reshape(-1, 10), compute_uv=False)
    assert s[8] > 1e3 * s[9]
    assert W.shape[1] == len(source.directions.names) == 2


@pytest.mark.parametrize("sensor", SENSORS)
def test_any_sensor_tells_the_free_motion(free_motion, tmp_path: Path, sensor: str) -> None:
    text = Path(load_robot("cable4").file).read_text()
    file = tmp_path / "robot.yaml"
    file.write_text(text.replace("measured: [pose]", f"measured: {SENSORS[sensor]}"))
    robot = load_robotfile(file)
    log = recorded(robot, free_motion, (*robot.measured_positions, *CABLES))
    W, _, _ = rows_of(robot, log)
    chi = named_values(robot, TRUTH)
    # As above; swivel angles and tilts of this robot see its motion about as well as x and y do.
    assert np.abs(W @ chi).max() < 3e-9 * np.abs(W * chi).max()


def test_both_null_spaces_are_one_space(free_motion) -> None:
    robot = load_robot("cable4")
    log = recorded(robot, free_motion, POSE)
    on, _, held = rows_of(robot, log)
    by, _, _ = rows_of(robot, log, {"nullspace": "free", "free": ("x", "y")})
    for sample in range(0, len(on), 17):
        mix = np.linalg.lstsq(on[sample].T, by[sample].T, rcond=None)[0]
        # Rows of size 100 combined by matrices of condition 10.
        np.testing.assert_allclose(on[sample].T @ mix, by[sample].T, atol=1e-11 * np.abs(by[sample]).max())
    motion, assembly = locked_motion_of(held), assembly_of(held)
    q = assembly.walk(np.random.default_rng(2), 20, reach=0.2)
    B = motion.basis(assembly.tangent(assembly.closure.values(q).A))
    np.testing.assert_allclose(
        np.swapaxes(B[:, :6], 1, 2) @ B[:, :6], np.tile(np.eye(2), (20, 1, 1)), atol=1e-13
    )
    assert np.abs(B[:, 6:]).max() < 1e-13  # no cable moves
    free = motion.along(B, motion.free_indices(("x", "y"), B))
    np.testing.assert_allclose(free[:, :2], np.tile(np.eye(2), (20, 1, 1)), atol=1e-12)


def test_rows_are_smooth_and_do_not_depend_on_the_tiles(free_motion) -> None:
    robot = load_robot("cable4")
    W, source, _ = rows_of(robot, recorded(robot, free_motion, POSE))
    np.testing.assert_allclose(_dense(source, 7), W, atol=1e-12)
    n = len(W) // 2
    for run in (W[:n], W[n:]):
        # A sign that flips would show as a step of twice the size of the row.
        assert np.abs(np.diff(run, axis=0)).max() < 0.2 * np.abs(run).max()


def test_any_motion_tells_all_columns_but_no_scale() -> None:
    robot = load_robot("cable4")
    factor = internal_structure(robot, parameter_table(robot), None)
    s = np.linalg.svd(factor.R[:, :-1], compute_uv=False)
    assert s[-1] > 1e-3 * s[0]
    assert not np.any(internal_directions(robot).effort_map)


def test_free_coordinates_alone_find_the_hanging_pose(free_motion) -> None:
    robot = load_robot("cable4")
    whole = free_motion_log(recorded(robot, free_motion, POSE), robot, InternalSettings())
    some = recorded(robot, free_motion, ("pose_x", "pose_y", *CABLES))
    found = free_motion_log(some, robot, InternalSettings())
    assert found.position_names == ("pose_x", "pose_y", *CABLES)
    for at, pose in whole.origins.items():
        # Lengths and coordinates are met to 1e-13, free coordinates multiply that by ten.
        np.testing.assert_allclose(found.origins[at], pose, atol=1e-9)


def test_lengths_can_be_changed_run_by_run(free_motion) -> None:
    robot = load_robot("cable4")
    log = free_motion_log(recorded(robot, free_motion, POSE), robot, InternalSettings(pose="free"))
    lengths = np.array([log.q[a, 2:] for a, _ in log.segments])
    moved = with_lengths(log, robot, lengths + np.array([[1e-4, 0, 0, 0], [0, 0, 2e-4, 0]]))
    (a, _), (b, _) = log.segments
    np.testing.assert_allclose(moved.q[a, 2:] - log.q[a, 2:], [1e-4, 0, 0, 0], atol=1e-15)
    np.testing.assert_allclose(moved.q[b, 2:] - log.q[b, 2:], [0, 0, 2e-4, 0], atol=1e-15)
    np.testing.assert_array_equal(moved.q[:, :2], log.q[:, :2])


def test_nearly_singular_free_coordinates_are_reported(free_motion) -> None:
    # Level and in the middle, x and y hardly move while the platform turns.
    robot = load_robot("cable4")
    q = np.tile(np.append(poses(1.15, -0.15, 0.0)["pose_x"], [-0.15, -0.7, 1, 0, 0, 0]), (200, 1))
    log = log_from_arrays(robot, np.arange(200) * 0.01, q, None)
    settings = InternalSettings(nullspace="free", free=("x", "y"))
    robot = measuring_robot(robot, [log], settings)
    filters = FilterSettings(kind="none", cutoff=10.0)
    plan = plan_motions([log], robot, filters, MaskSettings(speed=0.0, rest=0.0))[0]
    source = InternalRows(robot, parameter_table(robot), internal_directions(robot), Motion(log, plan))
    told = {notice.code: notice for notice in source.notices}
    assert "orthonormal" in told["free-singular"].remedy
    chosen = measuring_robot(robot, [log], InternalSettings(nullspace="free", free="auto"))
    source = InternalRows(chosen, parameter_table(chosen), internal_directions(chosen), Motion(log, plan))
    assert not source.notices
    assert len(chosen.free) == 2


def test_a_pose_solved_from_poor_coordinates_is_told_whatever_the_null_space() -> None:
    robot = load_robot("cable4")
    level = np.array([1.15, -0.15, -0.7, 1.0, 0.0, 0.0, 0.0])
    still = np.zeros((200, 7))
    whole = log_from_arrays(robot, np.arange(200) * 0.01, still + level, None, dq=still, ddq=still)
    _, source, _ = rows_of(robot, whole, {"pose": "free", "free": ("x", "y"), "lengths": "estimate"})
    [told] = [notice for notice in source.notices if notice.code == "free-singular"]
    assert "the pose is solved from pose_x, pose_y" in told.text
    assert "the complete pose" in told.remedy
    for way in ("measured", "projected"):
        _, source, _ = rows_of(robot, whole, {"pose": way, "lengths": "estimate"})
        assert not source.notices


def test_two_cables_leave_four_freedoms() -> None:
    motion = locked_motion_of(without_cables(load_robot("cable4"), ["cable3", "cable4"]))
    assert motion.count == 4
    with pytest.raises(InputError, match="2 free coordinates"):
        motion.free_indices(("x", "y"), motion.samples)


def changed(log: Log, column: str, value) -> Log:
    q = np.array(log.q)
    q[:, log.position_names.index(column)] = value(q[:, log.position_names.index(column)])
    return replace(log, q=q)


def test_lengths_that_do_not_fit_are_refused(free_motion) -> None:
    robot = load_robot("cable4")
    log = recorded(robot, free_motion, ("pose_x", "pose_y", *CABLES))
    with pytest.raises(InputError, match="no pose has the coordinates and lengths"):
        free_motion_log(changed(log, "cable2", lambda length: 0.3 * length), robot, InternalSettings())
    ramp = np.linspace(0.0, 0.01, len(log.t))
    with pytest.raises(InputError, match=r"locked length of 'cable1' changes by .* mm in run 1"):
        free_motion_log(changed(log, "cable1", lambda length: length + ramp), robot, InternalSettings())
    with pytest.raises(InputError, match="locked length of 'cable3' is -"):
        free_motion_log(changed(log, "cable3", lambda length: -length), robot, InternalSettings())
    bare = recorded(robot, free_motion, POSE)
    with pytest.raises(InputError, match="has no locked lengths"):
        free_motion_log(bare, robot, InternalSettings(lengths="given", pose="free"))
    some = replace(log, q=log.q[:, :2], dq=None, ddq=None, position_names=("pose_x", "pose_y"))
    with pytest.raises(InputError, match="has no locked lengths"):
        free_motion_log(some, robot, InternalSettings())
    with pytest.raises(InputError, match="needs the full pose"):
        free_motion_log(log, robot, InternalSettings(pose="projected"))
    both = recorded(robot, free_motion, (*POSE, *CABLES))
    found = free_motion_log(changed(both, "cable4", lambda length: length + 0.005), robot, InternalSettings())
    assert "length-differs" in {notice.code for notice in found.notices}


def test_slack_and_moving_cables_are_reported(free_motion) -> None:
    robot = load_robot("cable4")
    log = recorded(robot, free_motion, POSE)
    n = len(log.t) // 2
    bump = np.zeros(len(log.t))
    bump[20:35] = np.hanning(15)
    # The platform rises for a moment: cables become shorter than their lengths, never longer.
    with pytest.raises(InputError, match=r"'cable\d' was slack in log 'log', run 1"):
        free_motion_log(changed(log, "pose_z", lambda z: z + 0.4 * bump), robot, InternalSettings())
    found = free_motion_log(changed(log, "pose_z", lambda z: z + 0.02 * bump), robot, InternalSettings())
    assert "cable-slack" in {notice.code for notice in found.notices}
    # A winch that turns: both ways.
    swing = 0.1 * np.sin(np.arange(len(log.t)) / n * 6.0)
    with pytest.raises(InputError, match="was not locked"):
        free_motion_log(changed(log, "pose_z", lambda z: z + swing), robot, InternalSettings())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"free": ("x", "q")}, "free coordinate 'q' is unknown"),
        ({"nullspace": "orthogonal"}, "'orthogonal' is not known"),
        ({"lenghts": "given"}, "internal has no 'lenghts'; did you mean 'lengths'"),
        ({"lengths": "refine", "pose": "measured"}, "has no effect"),
    ],
)
def test_settings_that_do_not_exist_are_refused(options: dict, said: str) -> None:
    robot = load_robot("cable4")
    q = np.tile([1.15, -0.15, -0.7, 1, 0, 0, 0], (50, 1))
    log = log_from_arrays(robot, np.arange(50) * 0.01, q, None)
    with pytest.raises(InputError, match=said):
        measuring_robot(robot, [log], read(InternalSettings, plain_entry(options, "internal")))


def test_a_file_may_hold_free_coordinates_and_lengths(free_motion, tmp_path: Path) -> None:
    robot = load_robot("cable4")
    q, _, _, lengths = free_motion
    n = len(q) // 2
    run = np.repeat([1, 2], n)
    table = np.column_stack([np.tile(np.arange(n) * 0.01, 2), run, q[:, :2], lengths])
    file = tmp_path / "free.csv"
    np.savetxt(
        file, table, delimiter=",", header="t,segment,x,y,l0_1,l0_2,l0_3,l0_4", comments="", fmt="%.17g"
    )
    log = as_log(file, robot, Experiment(robot=robot))
    assert log.position_names == ("pose_x", "pose_y", *CABLES)
    assert len(log.segments) == 2
    np.savetxt(file, table[:, :-1], delimiter=",", header="t,segment,x,y,l0_1,l0_2,l0_3", comments="")
    with pytest.raises(InputError, match="3 locked lengths for 4 cables: cable4 missing"):
        as_log(file, robot, Experiment(robot=robot))


def test_eight_locked_cables_leave_no_free_motion() -> None:
    with pytest.raises(InputError, match="no free motion"):
        internal_directions(load_robot("cable8"))


@pytest.mark.skipif(not DATA.is_dir(), reason="the real logs are not beside this checkout")
@pytest.mark.parametrize(("name", "runs"), [("ident12", 12), ("crossval14", 14), ("extra2", 2)])
def test_lengths_stay_constant_on_the_real_logs(name: str, runs: int) -> None:
    robot = load_robot("cable4")
    columns = {key: ColumnMap(column) for key, column in COLUMNS.items()}
    log = read_log(DATA / f"{name}.parquet", robot, columns=columns, need_effort=False)
    found = estimated(log, robot, log.position_names)
    # The folder's README: deviations 0.01 to 0.58 mm, medians 0.05 to 0.09 mm, rounded.
    assert found.sigma.shape == (runs, 4)
    assert found.sigma.min() > 0.01e-3
    assert found.sigma.max() < 0.585e-3
    assert 0.04e-3 < np.median(found.sigma) < 0.095e-3
    judged = free_motion_log(log, robot, InternalSettings())
    assert not {"cable-slack", "cable-not-locked", "cable-on-axis"} & {one.code for one in judged.notices}
