"""URDF files: joints, bodies, priors against Pinocchio, names, notices."""

import math
from pathlib import Path

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.joint import JointKind
from dynid.mechanism.load import load_robot
from dynid.mechanism.robot_file.robot_file import load_robotfile
from tests.built_in import codes
from tests.parameter_orders import from_pinocchio

ROBOT_FILE = "arm.urdf"
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
ARM = """\
<?xml version="1.0"?>
<robot name="arm">
  <link name="world"/>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 -0.2 0.3" rpy="0.4 0.5 0.6"/>
      <mass value="2.5"/>
      <inertia ixx="0.03" ixy="0.001" ixz="-0.002" iyy="0.04" iyz="0.003" izz="0.05"/>
    </inertial>
    <visual><geometry><mesh filename="package://arm/meshes/upper.stl"/></geometry></visual>
  </link>
  <link name="lower"/>
  <link name="finger"/>
  <link name="tool"/>
  <joint name="elbow" type="revolute">
    <origin xyz="0 0 0.4" rpy="0 1.5708 0"/>
    <parent link="upper"/><child link="lower"/>
    <axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="80" velocity="3"/>
    <dynamics damping="0.1"/>
  </joint>
  <joint name="shoulder" type="continuous">
    <parent link="world"/><child link="upper"/>
    <axis xyz="0 0 1"/>
    <limit effort="100" velocity="0"/>
  </joint>
  <joint name="grip" type="prismatic">
    <parent link="lower"/><child link="finger"/>
    <limit lower="0" upper="0.1" effort="5" velocity="1"/>
    <mimic joint="elbow" multiplier="0.5" offset="0.01"/>
  </joint>
  <joint name="flange" type="fixed"><origin xyz="0.2 0 0"/><parent link="lower"/><child link="tool"/></joint>
  <transmission name="t"/><gazebo/><material name="grey"><color rgba="1 1 1 1"/></material>
</robot>
"""


def test_tree_names_and_defaults(load):
    robot = load(ARM)
    assert robot.name == "arm"
    assert [joint.name for joint in robot.joints] == ["shoulder", "elbow", "grip", "flange"]  # parents first
    assert [joint.parent for joint in robot.joints] == ["base", "upper", "lower", "lower"]
    assert [joint.kind for joint in robot.joints] == [
        JointKind.REVOLUTE, JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.FIXED,
    ]  # fmt: skip
    np.testing.assert_array_equal(robot.joints[2].axes[0], [1, 0, 0])  # URDF's default axis
    assert robot.measured == ("shoulder", "elbow")
    assert [actuator.name for actuator in robot.actuators] == ["shoulder", "elbow"]
    assert robot.drive == dict.fromkeys(("shoulder", "elbow"), ("Ia", "Fv", "Fs", "Off"))
    np.testing.assert_array_equal(robot.gravity, [0, 0, -9.81])
    assert robot.limits == {
        "shoulder": {"tau": 100},
        "elbow": {"q": (-2, 2), "dq": 3, "tau": 80},
        "grip": {"q": (0, 0.1), "dq": 1, "tau": 5},
    }
    (coupling,) = robot.couplings
    assert (coupling.joint, coupling.of, coupling.offset) == ("grip", {"elbow": 0.5}, 0.01)


def test_notices_say_what_was_done(load):
    robot = load(ARM)
    assert codes(robot) == ["massless-frame", "missing-inertial", "snapped-angle"]
    assert robot.bodies["tool"].parameters == ()
    assert robot.bodies["lower"].parameters == SYMBOLS
    assert robot.bodies["lower"].prior == {}
    np.testing.assert_array_equal(robot.joints[1].placement.R, [[0, 0, 1], [0, 1, 0], [-1, 0, 0]])


def test_prior_equals_pinocchio(load, tmp_path):
    pin = pytest.importorskip("pinocchio")
    robot = load(ARM)
    model = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    theirs = from_pinocchio(model.inertias[model.getJointId("shoulder")].toDynamicParameters())
    ours = np.array([robot.bodies["upper"].prior[symbol] for symbol in SYMBOLS])
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)  # one frame change of numbers near 1


def test_damping_and_friction_are_priors(load):
    """Positive values only: generators of URDFs write zeros where nothing is known."""
    text = ARM.replace('<dynamics damping="0.1"/>', '<dynamics damping="0.1" friction="0.3"/>').replace(
        '<limit effort="100" velocity="0"/>',
        '<limit effort="100" velocity="0"/><dynamics damping="0" friction="0.0"/>',
    )
    robot = load(text)
    assert robot.prior == {"Fv_elbow": 0.1, "Fs_elbow": 0.3}
    assert robot.rebuild is not None
    assert robot.rebuild(robot.geometry).prior == robot.prior


def test_negative_damping_is_excluded(load):
    robot = load(ARM.replace('damping="0.1"', 'damping="-0.1" friction="0.3"'))
    assert robot.prior == {"Fs_elbow": 0.3}
    (warned,) = [one for one in robot.notices if one.code == "impossible-prior"]
    assert "damping -0.1" in warned.text
    assert "elbow" in warned.text


def test_named_dimensions_rebuild(load):
    robot = load(ARM)
    assert robot.geometry == {"z_elbow": 0.4, "x_flange": 0.2}
    other = robot.rebuild({"z_elbow": 0.9})
    assert other.joints[1].placement.p[2] == 0.9
    assert other.geometry == {"z_elbow": 0.9, "x_flange": 0.2}


def test_link_called_base_that_is_not_the_root(load):
    robot = load(ARM.replace('"tool"', '"base"'))
    assert robot.joints[3].child == "base_"
    assert "renamed-link" in codes(robot)


def test_floating_base_has_no_motor(load):
    robot = load(ARM.replace('name="shoulder" type="continuous"', 'name="shoulder" type="floating"'))
    assert [actuator.name for actuator in robot.actuators] == ["elbow"]
    assert robot.measured == ("elbow", "shoulder")
    assert "shoulder_x" not in robot.drive


def test_coarse_angle_is_kept_and_said(load):
    robot = load(ARM.replace("1.5708", "1.57"))
    assert "coarse-angle" in codes(robot)
    assert robot.joints[1].placement.R[0, 0] == math.cos(1.57)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('type="prismatic"', 'type="planar"', "planar"),
        ('type="prismatic"', 'type="prismatik"', "did you mean 'prismatic'"),
        (' type="prismatic"', "", "no attribute 'type'"),
        ('<child link="finger"/>', "", "no <child>"),
        ('rpy="0 1.5708 0"', 'rpy="0 1.5708"', "2 numbers, not 3"),
        ('xyz="0 0 0.4"', 'xyz="0 0 ${l}"', "xacro"),
        ('effort="80"', 'effort="-80"', "negative"),
        ('xyz="0 0 0.4"', 'quat_xyzw="0 0 0 1"', "quat_xyzw"),
        ("<robot name", "<sdf><robot/></sdf><x name", "not valid XML"),
    ],
)
def test_refusals(load, old, new, said):
    assert old in ARM
    with pytest.raises(InputError, match=said) as caught:
        load(ARM.replace(old, new))
    assert "line" in caught.value.place


def test_robot_file_over_a_urdf(tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM)
    file = tmp_path / "robot.yaml"
    file.write_text("""
source: arm.urdf
name: my_arm
gravity: [0, 0, 0]
symbols: {reach: 0.15}
joints:
  - {name: spin, kind: revolute, parent: tool, child: drill, xyz: [reach, 0, 0], axis: [1, 0, 0]}
drive: {"*": [Fv, Fs], grip: none}
bodies: {lower: {prior: {M: 1.5}}, tool: {parameters: [M]}}
limits: {elbow: {dq: 2}}
""")
    robot = load_robotfile(file)
    assert robot.name == "my_arm"
    assert [joint.name for joint in robot.joints] == ["shoulder", "elbow", "grip", "flange", "spin"]
    assert robot.drive == dict.fromkeys(("shoulder", "elbow", "spin"), ("Fv", "Fs"))
    assert robot.bodies["lower"].prior == {"M": 1.5}
    assert robot.bodies["tool"].parameters == ("M",)
    assert set(robot.bodies["upper"].prior) == set(SYMBOLS)
    assert robot.limits["elbow"] == {"q": (-2, 2), "dq": 2, "tau": 80}
    assert set(robot.geometry) == {"reach", "z_elbow", "x_flange"}
    assert robot.rebuild({"reach": 0.5}).joints[4].placement.p[0] == 0.5
    file.write_text("source: arm.urdf\n")
    assert load_robotfile(file).drive["elbow"] == ("Ia", "Fv", "Fs", "Off")
    file.write_text("source: no.urdf\n")
    with pytest.raises(InputError, match="does not exist"):
        load_robotfile(file)


@pytest.mark.parametrize(
    "name", ["kuka_kr300", "panda_gaz", "staubli_tx40", "tiago", "unitree_go2", "ur10_unisa"]
)
def test_real_models_agree_with_pinocchio(name):
    file = DATA / name / "model.urdf"
    if not file.exists():
        pytest.skip("the shared logs are not beside the project")
    pin = pytest.importorskip("pinocchio")
    robot, model = load_robot(file), pin.buildModelFromUrdf(str(file))
    assert len(robot.measured) == model.nv
    for joint in robot.joints:
        if joint.kind is JointKind.FIXED:
            continue
        placement = model.jointPlacements[model.getJointId(joint.name)]
        # Snapping moves right angles by 5e-12 rad at most in these files.
        np.testing.assert_allclose(joint.placement.R, placement.rotation, atol=1e-11)
        np.testing.assert_allclose(joint.placement.p, placement.translation, atol=1e-11)
