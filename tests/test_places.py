"""Refusals and figures say what they are about: file and line, column, unit, row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.experiment.experiment import Experiment, read_experiment
from dynid.experiment.provenance import check_robot, provenance
from dynid.fit import fit_task
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import position_unit
from dynid.motion.settings import FilterSettings
from dynid.pipeline import identify_logs
from dynid.problem import prepare
from dynid.simulation.demo import built_in_experiment
from dynid.unknown import Task
from tests.test_pose_columns import clean

URDF = """<robot name="one">
  <link name="base"/>
  <link name="arm"><inertial><mass value="{mass}"/><origin xyz="0.1 0 0"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="5"/></joint>
</robot>
"""


@pytest.fixture(scope="module")
def scara():
    demo = built_in_experiment("scara", seed=0)
    return replace(load_robot("scara"), rebuild=None), demo.logs[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ties: [legz]", "line 3, ties[0]: no tie 'legz'"),
        ("ties: [{name: legz, apply: regrouped}]", "line 3, ties[0].name: no tie 'legz'"),
        (
            "keep: [Fv_shoulder, ZZ_nothing]",
            "line 3, keep[1]: keep: no base parameter of these data is called",
        ),
    ],
)
def test_names_that_the_robot_lacks_are_refused_at_their_line(scara, tmp_path, text, message) -> None:
    robot, log = scara
    file = tmp_path / "e.yaml"
    file.write_text(f"robot: scara\nlogs: [a.csv]\n{text}\n")
    with pytest.raises(InputError) as caught:
        fit_task(Task(robot, (log,), read_experiment(file)))
    assert str(caught.value).startswith(f"{file}, {message}")


def test_a_payload_that_nobody_describes_is_refused_at_its_line(scara, tmp_path) -> None:
    robot, log = scara
    file = tmp_path / "e.yaml"
    file.write_text("robot: scara\nlogs:\n  - a.csv\n  - {file: b.csv, payload: brick}\n")
    with pytest.raises(InputError) as caught:
        prepare(robot, [log, replace(log, payloads=("brick",))], read_experiment(file))
    assert str(caught.value).startswith(f"{file}, line 4, logs[1].payload: no payload 'brick'")


def test_the_column_of_a_missing_effort_is_named(scara) -> None:
    robot, log = scara
    present = log.effort_present.copy()
    present[1] = False
    tau = log.tau.copy()
    tau[:, 1] = np.nan
    lacking = replace(log, effort_present=present, tau=tau)
    told = identify_logs(robot, [lacking], (), Experiment(robot=robot)).warnings
    (one,) = [notice for notice in told if notice.code == "effort-missing"]
    assert "tau_2 ('elbow')" in one.text
    assert "columns:" in one.remedy
    asked = Experiment(robot=robot, efforts=("shoulder", "quill"))
    assert not [one for one in prepare(robot, [lacking], asked).notices if one.code == "effort-missing"]


def test_the_urdf_below_a_robot_file_is_part_of_the_provenance(tmp_path) -> None:
    urdf, file = tmp_path / "one.urdf", tmp_path / "one.yaml"
    urdf.write_text(URDF.format(mass=1.0))
    file.write_text("source: one.urdf\nname: one\n")
    robot = load_robot(file)
    assert [str(urdf)] == list(robot.sources)
    demo = built_in_experiment("scara", seed=0)
    plan = prepare(load_robot("scara"), demo.logs[:1], Experiment(robot="scara")).plans[0]
    recorded = provenance(robot, (), (), Experiment(robot=robot), plan)
    assert [one["file"] for one in recorded["inputs"]] == [str(file), str(urdf)]
    check_robot(recorded, load_robot(file))
    urdf.write_text(URDF.format(mass=2.0))
    with pytest.raises(InputError, match="its URDF or MJCF"):
        check_robot(recorded, load_robot(file))


def test_units_are_named_where_the_joints_tell_them(scara) -> None:
    robot, _ = scara
    assert position_unit(robot, ("shoulder", "elbow")) == "rad"
    assert position_unit(robot, ("quill",)) == "m"
    assert position_unit(robot, ("shoulder", "quill")) == position_unit(robot, ("nobody",)) == "rad or m"
    ur5 = built_in_experiment("ur5", seed=0)
    choices = prepare(load_robot("ur5"), ur5.logs[:1], Experiment(robot="ur5")).plans[0].choices
    assert " rad (median)" in choices["low-pass on coordinates"]
    assert " rad/s, chosen" in choices["reversals"]
    dualv, five, _ = clean("dualv", seconds=2.0)
    wrong = replace(five, q=five.q + np.array([0.0, 0.3, 0.0, 0.0]))
    with pytest.raises(InputError, match=r"do not close the loops: .* is off by 0\.\d+ rad\b"):
        prepare(dualv, [wrong], Experiment(robot=dualv))


def test_rows_of_several_motors_are_named_as_what_they_are() -> None:
    robot, log, _ = clean("dualv", seconds=4.0)
    options = {"model": "power", "filter": FilterSettings(cutoff=60.0)}
    estimate = identify_logs(robot, [log], [log], Experiment(robot=robot, **options))
    names = [group.name for group in estimate.validation[0].groups]
    assert names
    assert all(name.startswith("J_a^T tau along ") for name in names)
