"""Logs in the layouts of robots, simulators and recorders: read without help, or refused with the way out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.motion.logs import read_log
from tests.arms import arm, recording
from tests.log_files import JOINTS, START, joint_states, stamp, store, write_rosbag2

REVERSED = JOINTS[::-1]


@pytest.fixture(scope="module")
def columns():
    return recording(seconds=1.0, velocities=True)


def text(path, columns, delimiter=",", before=""):
    """A table with a header; cells that are text stay as they are."""
    rows = zip(*columns.values(), strict=True)
    lines = [delimiter.join(cell if isinstance(cell, str) else repr(cell) for cell in row) for row in rows]
    path.write_text(before + "\n".join([delimiter.join(columns), *lines]) + "\n")
    return path


def family(pattern, columns, symbol, order=(1, 2), first=0):
    """Columns of all joints, numbered."""
    return {pattern.format(k): columns[f"{symbol}_{j}"].tolist() for k, j in enumerate(order, start=first)}


def same(log, columns, rates=True):
    for j in range(2):
        np.testing.assert_array_equal(log.q[:, j], columns[f"q_{j + 1}"])
        np.testing.assert_array_equal(log.tau[:, j], columns[f"tau_{j + 1}"])
        if rates:
            np.testing.assert_array_equal(log.dq[:, j], columns[f"dq_{j + 1}"])
    np.testing.assert_allclose(log.t, columns["t"], rtol=0, atol=1e-9)


def nanoseconds(columns):
    return [START + round(t * 1e9) for t in columns["t"]]


def rostopic_echo(columns, order=(2, 1)):
    n = len(columns["t"])
    names = {f"field.name{k}": [JOINTS[j - 1]] * n for k, j in enumerate(order)}
    kinds = (("position", "q"), ("velocity", "dq"), ("effort", "tau"))
    states = [family(f"field.{kind}{{}}", columns, symbol, order) for kind, symbol in kinds]
    return {"%time": nanoseconds(columns), "field.header.stamp": nanoseconds(columns), **names} | {
        name: values for state in states for name, values in state.items()
    }


def test_the_joints_of_rostopic_echo_are_named_in_its_cells(tmp_path, columns) -> None:
    """joint_states has the joints in the order of the alphabet, not in that of the robot."""
    log = read_log(text(tmp_path / "a.csv", rostopic_echo(columns)), arm())
    same(log, columns)
    assert log.mapping["q_1"] == "field.position1"


def test_joints_that_change_their_columns_are_refused(tmp_path, columns) -> None:
    written = rostopic_echo(columns)
    for k in range(2):
        written[f"field.name{k}"][7] = REVERSED[1 - k]
    with pytest.raises(InputError, match="change from row to row") as caught:
        read_log(text(tmp_path / "a.csv", written), arm())
    assert caught.value.place == "column 'field.name0'"


@pytest.mark.parametrize("names", ["\"['motor2', 'motor1']\"", '"motor2, motor1"'])
def test_a_list_of_names_in_one_quoted_cell_orders_the_joints(tmp_path, columns, names) -> None:
    n = len(columns["t"])
    stamps = nanoseconds(columns)
    written = {
        "Time": [t + 1.7e9 + 0.003 for t in columns["t"].tolist()],  # of the recorder
        "header.stamp.secs": [ns // 10**9 for ns in stamps],
        "header.stamp.nsecs": [ns % 10**9 for ns in stamps],
        "name": [names] * n,
    }
    for kind, symbol in (("position", "q"), ("velocity", "dq"), ("effort", "tau")):
        written |= family(f"{kind}_{{}}", columns, symbol, (2, 1))
    log = read_log(text(tmp_path / "a.csv", written), arm())
    same(log, columns)
    assert log.mapping["t"] == "header.stamp"


@pytest.mark.parametrize("names", [("sec", "nanosec"), ("secs", "nsecs")])
def test_seconds_and_nanoseconds_alone_are_a_stamp(tmp_path, columns, names) -> None:
    stamps = nanoseconds(columns)
    parts = [ns // 10**9 for ns in stamps], [ns % 10**9 for ns in stamps]
    written = dict(zip(names, parts, strict=True)) | {k: v.tolist() for k, v in columns.items() if k != "t"}
    log = read_log(text(tmp_path / "a.csv", written), arm())
    same(log, columns)
    assert log.mapping["t"] == "stamp"


def test_a_franka_log_has_references_beside_what_is_measured(tmp_path, columns) -> None:
    written = {"duration": [123456 + round(1e3 * t) for t in columns["t"]]}
    for name, symbol in (("q", "q"), ("q_d", "q"), ("dq", "dq"), ("dq_d", "dq"), ("tau_J", "tau")):
        written |= family(f"state.{name}[{{}}]", columns, symbol)
    written["state.q_d[0]"] = [q + 1e-4 for q in written["state.q[0]"]]
    written |= family("state.theta[{}]", {"q_1": columns["q_1"] + 1e-3, "q_2": columns["q_2"]}, "q")
    written |= family("cmd.tau_J_d[{}]", {k: v + 0.1 for k, v in columns.items()}, "tau")
    log = read_log(text(tmp_path / "a.csv", written), arm())
    same(log, {**columns, "t": log.t})
    assert log.mapping["q_ref_1"] == "state.q_d[0]"
    assert log.dt == pytest.approx(columns["t"][1], rel=1e-9)


def test_a_torque_computed_from_the_current_is_a_torque(tmp_path, columns) -> None:
    written = {"timestamp": columns["t"].tolist()} | family("actual_q_{}", columns, "q")
    written |= family("actual_current_{}", {k: v / 10 for k, v in columns.items()}, "tau")
    written |= family("actual_current_as_torque_{}", columns, "tau")
    log = read_log(text(tmp_path / "a.csv", written), arm())
    same(log, columns, rates=False)
    assert log.notices == ()


def test_commanded_efforts_are_used_with_a_note(tmp_path, columns) -> None:
    np.savez(
        tmp_path / "a.npz",
        time=columns["t"],
        qpos=np.column_stack([columns["q_1"], columns["q_2"]]),
        ctrl=np.column_stack([columns["tau_1"], columns["tau_2"]]),
    )
    log = read_log(tmp_path / "a.npz", arm())
    same(log, columns, rates=False)
    assert [notice.code for notice in log.notices] == ["effort-commanded"]


def test_columns_with_equal_values_are_one_signal(tmp_path, columns) -> None:
    """MuJoCo has the same efforts by joint and by actuator; other values are a choice of the user."""
    efforts = np.column_stack([columns["tau_1"], columns["tau_2"]])
    arrays = {"time": columns["t"], "qpos": np.column_stack([columns["q_1"], columns["q_2"]])}
    np.savez(tmp_path / "a.npz", **arrays, qfrc_actuator=efforts, actuator_force=efforts)
    same(read_log(tmp_path / "a.npz", arm()), columns, rates=False)
    np.savez(tmp_path / "b.npz", **arrays, qfrc_actuator=efforts, actuator_force=2.0 * efforts)
    with pytest.raises(InputError, match="each of these may be the effort"):
        read_log(tmp_path / "b.npz", arm())


def test_target_positions_are_never_efforts(tmp_path, columns) -> None:
    """`tq` is a torque in some files and the target of q in others."""
    written = {"pc_ts": columns["t"].tolist()} | family("q_{}", columns, "q")
    written |= family("tq_{}", {k: v + 1e-4 * np.sin(v) for k, v in columns.items()}, "q")
    with pytest.raises(InputError, match="the efforts equal the positions") as caught:
        read_log(text(tmp_path / "a.csv", written), arm())
    assert caught.value.place == "column 'tq_0'"


_POINT = "trajectory_msgs/JointTrajectoryPoint"
CONTROLLER = f"std_msgs/Header header\nstring[] joint_names\n{_POINT} reference\n{_POINT} feedback\n"


def controller_states(columns, types, every):
    """`JointTrajectoryControllerState`, less often than the states of the joints."""
    made = types.types
    kind = made["control_msgs/msg/JointTrajectoryControllerState"]
    zero = made["builtin_interfaces/msg/Duration"](sec=0, nanosec=0)
    for i in range(0, len(columns["t"]), every):
        q, dq = ([columns[f"{s}_{j}"][i] for j in (1, 2)] for s in ("q", "dq"))
        point = made["trajectory_msgs/msg/JointTrajectoryPoint"](
            np.array(q), np.array(dq), np.zeros(0), np.zeros(0), zero
        )
        ns = stamp(columns["t"][i])
        time = made["builtin_interfaces/msg/Time"](sec=ns // 10**9, nanosec=ns % 10**9)
        yield ns, kind(made["std_msgs/msg/Header"](time, ""), list(JOINTS), point, point)


def test_a_bag_of_all_topics_is_read_from_the_states_of_the_joints(tmp_path, columns) -> None:
    """`ros2 bag record -a` has the same positions in several topics, at other rates."""
    from rosbags.typesys import get_types_from_msg

    types = store()
    state = "control_msgs/msg/JointTrajectoryControllerState"
    types.register(get_types_from_msg(CONTROLLER, state))
    topics = {
        "/arm_controller/controller_state": (state, controller_states(columns, types, 10)),
        "/joint_states": ("sensor_msgs/msg/JointState", joint_states(columns, types)),
    }
    log = read_log(write_rosbag2(tmp_path, topics, "MCAP", types), arm())
    assert len(log.t) == 241  # of 250: the references end there
    same(log, {name: values[:241] for name, values in columns.items()})
    assert log.choices["topics searched only for what JointState lacks"] == "/arm_controller/controller_state"


@pytest.mark.parametrize("names", [{"motors": list(JOINTS)}, None])
def test_states_of_a_lerobot_data_set_are_positions_and_actions_references(tmp_path, columns, names) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    fps = 1.0 / columns["t"][1]
    n = len(columns["t"])
    signals = {"observation.state": "q", "observation.effort": "tau", "action": "q"}
    info = {"fps": fps, "features": {name: {"names": names} for name in signals}}
    for folder in ("meta", "data/chunk-000"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "meta/info.json").write_text(json.dumps(info))
    table = {
        name: pa.FixedSizeListArray.from_arrays(
            np.column_stack([columns[f"{symbol}_{j}"] for j in (1, 2)]).ravel(), 2
        )
        for name, symbol in signals.items()
    }
    table |= {"frame_index": pa.array(np.arange(n)), "episode_index": pa.array(np.zeros(n, int))}
    pq.write_table(pa.table(table), tmp_path / "data/chunk-000/file-000.parquet")
    log = read_log(tmp_path, arm())
    same(log, columns, rates=False)
    np.testing.assert_array_equal(log.q_ref, log.q)


def test_numbered_groups_of_a_file_are_runs(tmp_path, columns) -> None:
    import h5py

    half = len(columns["t"]) // 2
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        for number in (10, 2):  # in natural order
            part = slice(half) if number == 2 else slice(half, 2 * half)
            run = file.create_group(f"data/demo_{number}")
            run["time"] = columns["t"][part] - columns["t"][part][0]
            run["obs/joint_pos"] = np.column_stack([columns["q_1"], columns["q_2"]])[part]
            run["joint_torque"] = np.column_stack([columns["tau_1"], columns["tau_2"]])[part]
    log = read_log(tmp_path / "a.hdf5", arm())
    assert [tuple(segment) for segment in log.segments] == [(0, half), (half, 2 * half)]
    np.testing.assert_array_equal(log.q[:, 0], columns["q_1"][: 2 * half])
    assert log.choices["runs"] == "demo_2, demo_10: each is a segment"


def test_a_header_as_numpy_writes_it(tmp_path, columns) -> None:
    names = [name for name in columns if not name.startswith("dq")]
    table = np.column_stack([columns[name] for name in names])
    np.savetxt(tmp_path / "a.txt", table, fmt="%.17g", header=" ".join(names))
    same(read_log(tmp_path / "a.txt", arm()), columns, rates=False)


def test_lines_before_the_header_are_left_out_and_counted(tmp_path, columns) -> None:
    before = "Name\tScope\nFile\tC:\\run.svdx\n\n"
    plain = {name: values.tolist() for name, values in columns.items()}
    log = read_log(text(tmp_path / "a.csv", plain, "\t", before), arm())
    same(log, columns)
    assert "3 lines before the header not used" in log.choices["format"]


def test_rows_without_a_header_are_refused_even_with_text_among_them(tmp_path, columns) -> None:
    rows = [
        f"{t!r},base,{q!r},{tau!r}"
        for t, q, tau in zip(*(columns[k].tolist() for k in ("t", "q_1", "tau_1")), strict=True)
    ]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    with pytest.raises(InputError, match="holds numbers, not column names"):
        read_log(tmp_path / "a.csv", arm())


def test_ambiguous_joint_names_are_answered_by_one_pattern(tmp_path, columns) -> None:
    written = {"t": columns["t"].tolist()}
    for topic, add in (("a", 0.0), ("b", 0.1)):
        written |= {
            f"/{topic}/{JOINTS[j]}/position": (columns[f"q_{j + 1}"] + add).tolist() for j in range(2)
        }
    with pytest.raises(InputError) as caught:
        read_log(text(tmp_path / "a.csv", written), arm())
    assert "columns={'q_{i}': '/a/{name}/position'}" in str(caught.value)
