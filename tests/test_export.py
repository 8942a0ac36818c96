"""Trajectory files: what is written comes back, as a log, as YAML, and as a ROS 2 message."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.excitation.export import read_trajectory
from dynid.mechanism.load import load_robot
from dynid.motion.logs import read_log
from tests.trajectories import write_trajectory

NAMES = ("shoulder", "elbow", "lift", "turn")


def samples(n: int = 20, j: int = 4):
    rng = np.random.default_rng(1)
    return np.arange(n) / 100.0, *rng.normal(size=(3, n, j))


@pytest.mark.parametrize("name", ["move.yaml", "move.ros2.yaml"])
def test_yaml_formats_come_back(tmp_path, name: str) -> None:
    t, q, dq, ddq = samples()
    back = read_trajectory(write_trajectory(tmp_path / name, NAMES, t, q, dq, ddq))
    assert back.names == NAMES
    np.testing.assert_allclose(back.t, t, rtol=0, atol=1e-9)  # whole nanoseconds
    for one, other in ((back.q, q), (back.dq, dq), (back.ddq, ddq)):
        np.testing.assert_array_equal(one, other)
    only = read_trajectory(write_trajectory(tmp_path / name, NAMES, t, q))
    assert only.dq is None
    assert only.ddq is None
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_ros2_message_has_the_fields_of_the_type(tmp_path) -> None:
    from ruamel.yaml import YAML

    t, q, dq, ddq = samples(3)
    file = write_trajectory(tmp_path / "m.ros2.yaml", ["it's", "b", "c", "d"], 5.0 + t, q, dq, ddq)
    message = YAML(typ="safe").load(file)
    assert set(message) == {"header", "joint_names", "points"}
    assert message["joint_names"][0] == "it's"
    assert set(message["points"][0]) == {
        "positions",
        "velocities",
        "accelerations",
        "effort",
        "time_from_start",
    }
    assert message["points"][2]["time_from_start"] == {"sec": 0, "nanosec": 20_000_000}


def test_csv_is_a_log_of_the_robot(tmp_path) -> None:
    robot = load_robot("scara")
    t, _, _, _ = samples(200)
    q = 0.1 * np.sin(t[:, None] * [1.0, 2.0, 3.0, 4.0])
    dq, ddq = np.gradient(q, t, axis=0), np.zeros_like(q)
    file = write_trajectory(tmp_path / "m.csv", robot.measured_positions, t, q, dq, ddq)
    log = read_log(file, robot, need_effort=False)
    np.testing.assert_array_equal(log.q, q)
    np.testing.assert_array_equal(log.dq, dq)
    np.testing.assert_array_equal(log.ddq, ddq)


def test_refusals(tmp_path) -> None:
    t, q, _, _ = samples()
    with pytest.raises(InputError, match="must increase"):
        read_trajectory(write_trajectory(tmp_path / "a.yaml", NAMES, t[::-1], q))
    file = tmp_path / "b.yaml"
    file.write_text("joints: [a]\npoints: [{t: 0, q: [0], dp: [1]}]\n")
    with pytest.raises(InputError, match="unknown key 'dp'"):
        read_trajectory(file)
    file.write_text("joints: [a]\npoints: [{t: 0, q: [0], dq: [1]}, {t: 1, q: [0]}]\n")
    with pytest.raises(InputError, match="only 1 of 2 points have 'dq'"):
        read_trajectory(file)
    file.write_text("joints: [a, b]\npoints: [{t: 0, q: [0, 1]}, {t: 1, q: [0]}]\n")
    with pytest.raises(InputError, match="expected 2 entries"):
        read_trajectory(file)
