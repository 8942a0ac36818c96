"""SDF, OpenSYMORO and classical DH against Pinocchio, hand-written kinematics and other descriptions."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from dynid.common.errors import InputError
from dynid.info import describe
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.inertia import SYMBOLS, in_parent_frame
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.regressor.regressor import tree_matrix
from tests.random_mechanisms import random_states
from tests.test_readers import damaged

UR5 = Path(str(files("dynid.robots"))) / "ur5.urdf"

# A tilted model in a world: poses relative to frames, an axis in another frame, a slide, friction.
SDF = """<?xml version="1.0"?>
<sdf version="1.9"><world name="w"><gravity>0 0 -9.81</gravity>
<model name="arm"><pose>0.3 0 0 0.4 0 0</pose>
  <frame name="mount"><pose>0 0 0.1 0 0 0.3</pose></frame>
  <link name="pedestal"><pose relative_to="mount">0 0 0 0 0 0</pose></link>
  <link name="upper"><pose relative_to="shoulder">0.05 0 0 0 0.2 0</pose>
    <inertial><pose>0.1 0.02 0 0.1 0 0</pose><mass>2</mass>
      <inertia><ixx>0.02</ixx><iyy>0.03</iyy><izz>0.025</izz><ixy>0.001</ixy></inertia></inertial></link>
  <frame name="elbow_frame" attached_to="upper"><pose>0.4 0 0 0 0 0.5</pose></frame>
  <link name="fore"><pose relative_to="elbow_frame">0 0 0.1 0.7 0 0</pose>
    <inertial><pose>0 0 0.2 0 0 0</pose><mass>1.5</mass>
      <inertia><ixx>0.02</ixx><iyy>0.02</iyy><izz>0.01</izz></inertia></inertial></link>
  <joint name="anchor" type="fixed"><parent>world</parent><child>pedestal</child></joint>
  <joint name="shoulder" type="revolute"><pose relative_to="pedestal">0 0 0.5 0 0 0</pose>
    <parent>pedestal</parent><child>upper</child>
    <axis><xyz>0 1 0</xyz><limit><lower>-2</lower><upper>2</upper><effort>50</effort></limit>
      <dynamics><damping>0.3</damping><friction>0.2</friction></dynamics></axis></joint>
  <joint name="slide" type="prismatic"><parent>elbow_frame</parent><child>fore</child>
    <axis><xyz expressed_in="elbow_frame">1 0 0</xyz></axis></joint>
</model></world></sdf>
"""
# puma560 of the built-in robots.
PAR = """(* File arm.par *)
(* Robotname = 'puma' *)
NL = 6
NJ = 6
NF = 6
Type = 0

(* Geometric parameters *)
Ant = {0, 1, 2, 3, 4, 5}
Sigma = {0, 0, 0, 0, 0, 0}
B = {0, 0, 0, 0, 0, 0}
d = {0, 0, 0.4318, -0.0203, 0, 0}
R = {0, 0.2435, -0.0934, 0.4331, 0, 0}
gamma = {0, 0, 0, 0, 0, 0}
Alpha = {0, -pi/2, 0, Pi/2, -pi/2, pi/2}
Mu = {1, 1, 1, 1, 1, 1}
Theta = {th1, th2, th3, th4, th5, th6}
G = {0, 0, -9.81}
"""
# A parallelogram: joints 1 to 3 in the tree, joint 4 cut, frame 5 of the ground coincides with frame 4.
FOUR_BAR = """(* Robotname = 'bars' *)
NL = 3
NJ = 4
NF = 5
Type = 2
Ant = {0, 1, 2, 3, 0}
Sigma = {0, 0, 0, 0, 2}
B = {0, 0, 0, 0, 0}
d = {0, L1, L2, L1, L2}
R = {0, 0, 0, 0, 0}
gamma = {0, 0, 0, 0, 0}
Alpha = {0, 0, 0, 0, 0}
Mu = {1, 0, 0, 0, 0}
Theta = {t1, t2, t3, t4, 0}
XX = {0, 0, 0, 0, 0}
XY = {0, 0, 0, 0, 0}
XZ = {0, 0, 0, 0, 0}
YY = {0, 0, 0, 0, 0}
YZ = {0, 0, 0, 0, 0}
ZZ = {ZZ1, 0.2, ZZ3, 0, 0}
MX = {MX1, 0.3, MX3, 0, 0}
MY = {MY1, 0, MY3, 0, 0}
MZ = {0, 0, 0, 0, 0}
M = {M1, 1.5, M3, 0, 0}
G = {0, -9.81, 0}
"""
DH = """joints:
  - {name: j1, kind: revolute, parent: base, child: l1, dh: {alpha: -pi/2}}
  - {name: j2, kind: revolute, parent: l1, child: l2, dh: {d: 0.2435, a: 0.4318}}
  - {name: j3, kind: revolute, parent: l2, child: l3, dh: {d: -0.0934, a: -0.0203, alpha: pi/2}}
  - {name: j4, kind: prismatic, parent: l3, child: l4, dh: {theta: 0.3, d: 0.4331, alpha: -pi/2}}
  - {name: j5, kind: revolute, parent: l4, child: l5, dh: {theta: -0.2, alpha: pi/2}}
  - {name: j6, kind: revolute, parent: l5, child: l6, dh: {}}
"""
MDH = """joints:
  - {name: j1, kind: revolute, parent: base, child: l1, mdh: {}}
  - {name: j2, kind: revolute, parent: l1, child: l2, mdh: {alpha: -pi/2, r: 0.2435}}
  - {name: j3, kind: revolute, parent: l2, child: l3, mdh: {d: 0.4318, r: -0.0934}}
  - {name: j4, kind: prismatic, parent: l3, child: l4, mdh: {alpha: pi/2, d: -0.0203, theta: 0.3, r: 0.4331}}
  - {name: j5, kind: revolute, parent: l4, child: l5, mdh: {alpha: -pi/2, theta: -0.2}}
  - {name: j6, kind: revolute, parent: l5, child: l6, mdh: {alpha: pi/2}}
"""


def prior_vector(robot):
    return np.array(
        [
            robot.bodies[one.owner].prior.get(one.symbol, 0.0) if one.symbol in SYMBOLS else 0.0
            for one in parameter_table(robot)
        ]
    )


def efforts(robot, states):
    return tree_matrix(robot, *states) @ prior_vector(robot)


def sdf_of_urdf(file):
    """A URDF as SDF, with the pose of every link in the model frame, as Pinocchio computes it at zero."""
    from xml.etree import ElementTree

    model = pin.buildModelFromUrdf(str(file))
    data = model.createData()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    root = ElementTree.parse(file).getroot()  # noqa: S314
    lines = ['<sdf version="1.11"><model name="ur5">']
    for link in root.findall("link"):
        pose = data.oMf[model.getFrameId(link.get("name"))]
        xyzw = pin.Quaternion(pose.rotation).coeffs()
        numbers = " ".join(repr(float(x)) for x in (*pose.translation, *xyzw))
        lines.append(f'<link name="{link.get("name")}"><pose rotation_format="quat_xyzw">{numbers}</pose>')
        inertial = link.find("inertial")
        if inertial is not None:
            origin = inertial.find("origin")
            given = {} if origin is None else dict(origin.items())
            six = " ".join(given.get(key, "0 0 0") for key in ("xyz", "rpy"))
            moments = "".join(f"<{k}>{v}</{k}>" for k, v in inertial.find("inertia").items())
            mass = inertial.find("mass").get("value")
            lines.append(
                f"<inertial><pose>{six}</pose><mass>{mass}</mass><inertia>{moments}</inertia></inertial>"
            )
        lines.append("</link>")
    for joint in root.findall("joint"):
        ends = "".join(f"<{tag}>{joint.find(tag).get('link')}</{tag}>" for tag in ("parent", "child"))
        axis = joint.find("axis")
        xyz = f"<axis><xyz>{axis.get('xyz')}</xyz></axis>" if axis is not None else ""
        lines.append(f'<joint name="{joint.get("name")}" type="{joint.get("type")}">{ends}{xyz}</joint>')
    return model, "\n".join([*lines, "</model></sdf>"])


def test_an_sdf_has_the_efforts_of_pinocchio(load):
    model, text = sdf_of_urdf(UR5)
    robot = load(text, "ur5.sdf")
    states = random_states(np.random.default_rng(0), robot, 5)
    data = model.createData()
    expected = np.array([pin.rnea(model, data, *state) for state in zip(*states, strict=True)])
    # Rotations pass through quaternions of 16 digits.
    np.testing.assert_allclose(efforts(robot, states), expected, atol=1e-10 * np.abs(expected).max())
    assert [one.code for one in robot.notices if one.code == "root-not-fixed"]


def test_frames_axes_and_gravity_of_an_sdf(load):
    """The same arm assembled in Pinocchio from the numbers of the file."""
    robot = load(SDF, "arm.sdf")

    def pose(x, y, z, roll, pitch, yaw):
        return pin.SE3(pin.rpy.rpyToMatrix(roll, pitch, yaw), np.array([x, y, z]))

    model = pin.Model()
    model.gravity.linear = pin.rpy.rpyToMatrix(0.4, 0.0, 0.0).T @ np.array([0, 0, -9.81])
    shoulder = pose(0, 0, 0.1, 0, 0, 0.3) * pose(0, 0, 0.5, 0, 0, 0)
    upper = pose(0.05, 0, 0, 0, 0.2, 0)  # in the joint
    first = model.addJoint(0, pin.JointModelRY(), shoulder, "shoulder")
    inertia = np.array([[0.02, 0.001, 0], [0.001, 0.03, 0], [0, 0, 0.025]])
    body = upper * pose(0.1, 0.02, 0, 0.1, 0, 0)
    model.appendBodyToJoint(first, pin.Inertia(2.0, np.zeros(3), inertia), body)
    elbow = upper * pose(0.4, 0, 0, 0, 0, 0.5)
    second = model.addJoint(first, pin.JointModelPX(), elbow, "slide")
    fore = pose(0, 0, 0.1, 0.7, 0, 0) * pose(0, 0, 0.2, 0, 0, 0)
    model.appendBodyToJoint(second, pin.Inertia(1.5, np.zeros(3), np.diag([0.02, 0.02, 0.01])), fore)
    states = random_states(np.random.default_rng(1), robot, 5)
    data = model.createData()
    expected = np.array([pin.rnea(model, data, *state) for state in zip(*states, strict=True)])
    np.testing.assert_allclose(efforts(robot, states), expected, atol=1e-12 * np.abs(expected).max())
    assert robot.measured == ("shoulder", "slide")
    assert robot.prior == {"Fv_shoulder": 0.3, "Fs_shoulder": 0.2}
    assert robot.limits == {"shoulder": {"q": (-2.0, 2.0), "tau": 50.0}}


def test_a_second_joint_of_a_link_of_an_sdf_closes_a_loop(load, tmp_path):
    bar = "<link name='{0}'><pose>{1} 0 0 0 0</pose><inertial><mass>1</mass><inertia/></inertial></link>"
    ends = "<parent>{1}</parent><child>{2}</child></joint>"
    joint = "<joint name='{0}' type='revolute'><pose>0 {3} 0 0 0 0</pose>" + ends
    text = "<sdf version='1.7'><model name='bars'>" + "".join(
        [
            *(bar.format(name, at) for name, at in (("a", "0 0"), ("b", "0 0.3"), ("c", "0.5 0"))),
            joint.format("j1", "world", "a", 0),
            joint.format("j2", "a", "b", 0),
            joint.format("j3", "world", "c", 0),
            joint.format("j4", "b", "c", 0.3),
            "</model></sdf>",
        ]
    )
    with pytest.raises(InputError, match="list the joints with motors"):
        load(text, "bars.sdf")
    robot = load("source: bars.sdf\nactuators: [j1]\n", "bars.yaml")
    (loop,) = robot.loops
    assert (loop.name, loop.body_a, loop.body_b) == ("j4", "b", "c")
    np.testing.assert_allclose(loop.a.p, [0.5, 0.0, 0.0])
    np.testing.assert_allclose(loop.b.p, [0.0, 0.3, 0.0])
    assert describe(robot).dof == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('version="1.9"', 'version="1.5"', "not supported"),
        ("<link name", "<include><uri>model://x</uri></include><link name", "opens other files"),
        ("<link name", '<model name="inner"/><link name', "model inside a model"),
        ('type="prismatic"', 'type="screw"', "has type 'screw'"),
        ("<damping>0.3</damping>", "<spring_stiffness>3</spring_stiffness>", "spring of joint 'shoulder'"),
        ('<link name="fore">', '<link name="fore"><gravity>false</gravity>', "without gravity"),
        (
            '<link name="fore">',
            '<link name="fore"><velocity_decay><linear>1</linear></velocity_decay>',
            "decay",
        ),
        ("<mass>2</mass>", "<mass>2,5</mass>", "not a finite number"),
        ('relative_to="shoulder"', 'relative_to="sholder"', "did you mean 'shoulder'"),
        ('relative_to="mount">0', 'relative_to="upper">0', "relative to each other"),
        ("<parent>elbow_frame</parent>", "<parent>nothing</parent>", "unknown link or frame"),
        ('name="fore"', 'name="upper"', "occurs twice"),
        ("<xyz>0 1 0</xyz>", "<xyz>0 0 0</xyz>", "zero axis"),
        ("<lower>-2</lower>", "<lower>3</lower>", "above"),
        ("</world>", '<model name="two"><link name="x"/></model></world>', "2 models"),
        ("<parent>world</parent><child>pedestal", "<parent>fore</parent><child>pedestal", "cycle"),
    ],
)
def test_an_sdf_that_cannot_be_read_is_refused(load, old, new, said):
    assert old in SDF
    with pytest.raises(InputError, match=said):
        load(SDF.replace(old, new, 1), "arm.sdf")


def test_classical_dh_against_forward_kinematics_by_hand_and_modified_dh(load):
    classical, modified = load(DH, "dh.yaml"), load(MDH, "mdh.yaml")
    q, dq, ddq = states = random_states(np.random.default_rng(2), classical, 4)
    table = [  # theta, d, a, alpha; joint 4 slides
        (0, 0, 0, -np.pi / 2),
        (0, 0.2435, 0.4318, 0),
        (0, -0.0934, -0.0203, np.pi / 2),
        (0.3, 0.4331, 0, -np.pi / 2),
        (-0.2, 0, 0, np.pi / 2),
        (0, 0, 0, 0),
    ]
    motion = body_motion(tree_of(classical), q, dq, ddq)
    for i in range(len(q)):
        T = np.eye(4)
        for k, (theta, d, a, alpha) in enumerate(table):
            turn, shift = (theta, d + q[i, k]) if k == 3 else (theta + q[i, k], d)
            c, s, ca, sa = np.cos(turn), np.sin(turn), np.cos(alpha), np.sin(alpha)
            T = T @ np.array(  # the matrix of Denavit and Hartenberg, as textbooks print it
                [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, shift], [0, 0, 0, 1]]
            )
            np.testing.assert_allclose(motion.R[i, k], T[:3, :3], atol=1e-14)
            np.testing.assert_allclose(motion.p[i, k], T[:3, 3], atol=1e-14)
    # The same bodies have the same efforts: only their frames differ, by Tx(a) Rx(alpha).
    rng = np.random.default_rng(3)
    chi_modified = rng.normal(size=60)
    chi = np.empty(60)
    for k, (_, _, a, alpha) in enumerate(table):
        R = pin.rpy.rpyToMatrix(alpha, 0.0, 0.0).T
        chi[10 * k : 10 * k + 10] = in_parent_frame(chi_modified[10 * k : 10 * k + 10], R, R @ [-a, 0.0, 0.0])
    expected = tree_matrix(modified, *states) @ chi_modified
    np.testing.assert_allclose(
        tree_matrix(classical, *states) @ chi, expected, atol=1e-11 * np.abs(expected).max()
    )


def test_dh_is_not_combined_with_other_frames(load):
    with pytest.raises(InputError, match="'xyz' cannot be combined with 'dh'"):
        load(DH.replace("dh: {}", "dh: {}, xyz: [0, 0, 1]"), "dh.yaml")
    with pytest.raises(InputError, match="unknown key 'r'"):
        load(DH.replace("dh: {}", "dh: {r: 1}"), "dh.yaml")


def test_a_par_file_is_the_same_robot_as_its_robot_file(load):
    robot, expected = load(PAR, "arm.par"), load_robot("puma560")
    assert robot.name == "puma"
    states = random_states(np.random.default_rng(4), expected, 4)
    W = tree_matrix(robot, *states)
    np.testing.assert_allclose(W, tree_matrix(expected, *states), atol=1e-13 * np.abs(W).max())
    assert describe(robot).n_base == describe(expected).n_base


def test_a_closed_loop_of_a_par_file(load):
    with pytest.raises(InputError, match=r"(?s)L1 in 'L1' has no value.*symbols: \{L1: 0.4\}"):
        load(FOUR_BAR, "bars.par")
    over = "source: bars.par\nsymbols: {L1: 0.3, L2: 0.5}\nstart: {joint1: 1, joint2: -1, joint3: -2.14}\n"
    robot = load(over, "bars.yaml")
    assert [one.name for one in robot.actuators] == ["joint1"]
    assert robot.bodies["body2"].prior == {"ZZ": 0.2, "MX": 0.3, "M": 1.5}
    assert robot.bodies["body1"].parameters == ("ZZ", "MX", "MY", "M")
    link = "{{name: joint{0}, kind: revolute, parent: {1}, child: body{0}, mdh: {{d: {2}}}}}"
    rows = [link.format(1, "base", 0), link.format(2, "body1", "L1"), link.format(3, "body2", "L2")]
    loop = (
        "{name: joint4, kind: revolute, a: {body: body3, xyz: [L1, 0, 0]}, b: {body: base, xyz: [L2, 0, 0]}}"
    )
    own = f"joints: [{', '.join(rows)}]\nloops: [{loop}]\nactuators: [joint1]\ngravity: [0, -9.81, 0]\n"
    few = "bodies: {{body1: {0}, body2: {1}, body3: {0}}}\n".format(
        "{parameters: [ZZ, MX, MY, M]}", "{parameters: [ZZ, MX, M]}"
    )
    drive = "drive: {joint1: [Ia, Fv, Fs, Off]}\n"
    by_hand = load(own + few + drive + over.partition("\n")[2], "hand.yaml")
    found, expected = describe(robot), describe(by_hand)
    assert (found.dof, found.n_base) == (expected.dof, expected.n_base) == (1, found.n_base)
    assert [one.name for one in found.base] == [one.name for one in expected.base]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("NF = 6", "NF = 7", "do not fit"),
        ("NL = 6", "NL = six", "whole number"),
        ("Ant = {0, 1,", "Ant = {0, 3,", "not possible"),
        ("Sigma = {0,", "Sigma = {5,", "not possible"),
        ("d = {0, 0,", "d = {0,", "5 entries"),
        ("Alpha = {0, -pi/2", "Alpha = {0, __import__('os')", "not understood|unknown function"),
        ("Theta = {th1", "Theta = {2*th1", "joint variable plus a constant"),
        ("Type = 0", "Type = 0\nis_floating = 1", "moving base"),
        ("Type = 0", "Type = 0\nFX = {0,0,0,0,0,F}", "not zero"),
        ("Type = 0", "Tpe = 0", "did you mean 'Type'"),
        ("Mu = ", "Mu ", "not KEY = value"),
        ("G = {0, 0,", "G = {0, G3,", "G3 in 'G3' has no value"),
    ],
)
def test_a_par_file_that_cannot_be_read_is_refused(load, old, new, said):
    assert old in PAR
    with pytest.raises(InputError, match=said):
        load(PAR.replace(old, new, 1), "arm.par")


@pytest.mark.parametrize(
    ("name", "text"), [("a.sdf", SDF), ("a.par", FOUR_BAR.replace("L", "0.")), ("b.par", PAR)]
)
def test_damaged_descriptions_are_read_or_refused(tmp_path, name, text):
    """Seeded damage of the bytes, as of logs: nothing but InputError."""
    rng, refused = np.random.default_rng(5), 0
    for _ in range(300):
        (tmp_path / name).write_bytes(damaged(text.encode(), rng))
        try:
            load_robot(tmp_path / name)
        except InputError:
            refused += 1
    assert refused > 50
