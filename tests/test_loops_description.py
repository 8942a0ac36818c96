"""Loops in descriptions: how they are read, when they are joints, and the closed robots."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import dynid.robots
from dynid.common.errors import InputError
from dynid.kinematics.assembly import Assembly
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.frame import Frame, align_z
from dynid.mechanism.joint import DIRECTIONS, FIXED_BY, JointKind
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import BASE
from dynid.mechanism.parameters import parameter_table

ROBOTS = Path(dynid.robots.__file__).parent
FOURBAR = """\
symbols: {l: 0.4, g: 0.5, h: 0.3}
joints:
  - {name: crank, kind: revolute, parent: base, child: one}
  - {name: knee, kind: revolute, parent: one, child: two, xyz: [l, 0, 0]}
  - {name: rocker, kind: revolute, parent: base, child: three, xyz: [g, 0, 0]}
actuators: [crank]
"""
PIN = "{name: pin, kind: revolute, a: {body: two, xyz: [l, 0, 0]}, b: {body: three, xyz: [h, 0, 0]}}"
ENDS = "a: {body: two, xyz: [l, 0, 0]}, b: {body: three, xyz: [0.3, 0, 0]}"


def one_loop(load, text):
    (loop,) = load(FOURBAR + f"loops: [{text}]\n").loops
    return loop


@pytest.mark.parametrize("kind", FIXED_BY)
def test_kinds_fix_their_directions(load, kind):
    loop = one_loop(load, f"{{name: pin, kind: {kind}, {ENDS}}}")
    assert loop.fix == FIXED_BY[kind]
    assert (loop.body_a, loop.body_b, loop.length) == ("two", "three", None)
    np.testing.assert_array_equal(loop.a.p, [0.4, 0, 0])
    np.testing.assert_array_equal(loop.a.R, np.eye(3))


def test_any_subset_of_directions(load):
    assert one_loop(load, f"{{name: pin, fix: [rx, z, x], {ENDS}}}").fix == ("x", "z", "rx")


def test_rod_and_base(load):
    loop = one_loop(
        load, "{name: strut, kind: rod, length: l/2, a: {body: base, xyz: [0, g, 0]}, b: {body: two}}"
    )
    assert (loop.fix, loop.body_a, loop.length) == ((), BASE, 0.2)


def test_axis_becomes_z_of_both_frames(load):
    loop = one_loop(
        load,
        "{name: pin, kind: revolute, axis: [1, 0, 0], a: {body: two, rpy: [0, 0, pi/2]}, b: {body: three}}",
    )
    np.testing.assert_array_equal(loop.a.R[:, 2], [0, 1, 0])
    np.testing.assert_array_equal(loop.b.R[:, 2], [1, 0, 0])
    np.testing.assert_array_equal(loop.b.R, align_z(np.array([1.0, 0.0, 0.0])))


@pytest.mark.parametrize("axis", [(0, 0, 1), (0, -1, 0), (-1, 0, 0), (0.6, 0, 0.8), (-0.48, 0.6, 0.64)])
def test_align_z_is_a_rotation(axis):
    R = align_z(np.array(axis, float))
    np.testing.assert_array_equal(R[:, 2], axis)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-15)  # a few roundings
    assert np.linalg.det(R) == pytest.approx(1.0, abs=1e-14)


def test_loops_follow_the_geometry(load):
    robot = load(FOURBAR + f"loops: [{PIN}, {{name: strut, kind: rod, length: 0.2, {ENDS}}}]\n")
    assert robot.geometry == {"l": 0.4, "g": 0.5, "h": 0.3, "length_strut": 0.2, "bx_strut": 0.3}
    other = robot.rebuild({"h": 0.35, "length_strut": 0.25})
    assert other.loops[0].b.p[0] == 0.35
    assert other.loops[1].length == 0.25


def test_defaults_of_a_closed_robot(load):
    robot = load(FOURBAR + f"loops: [{PIN}]\nstart: {{knee: pi/2, rocker: g}}\n")
    assert robot.measured == ("crank",)  # the closure tells where the others are
    assert robot.drive == {}
    assert robot.start == {"knee": math.pi / 2, "rocker": 0.5}
    assert robot.coordinates == ("crank", "knee", "rocker")
    assert load(FOURBAR + "loops: []\n").measured == ("crank", "knee", "rocker")


def test_motors_of_a_closed_robot_are_listed(load):
    with pytest.raises(InputError, match="'actuators' is missing") as caught:
        load(FOURBAR.replace("actuators: [crank]\n", "") + f"loops: [{PIN}]\n")
    assert "actuators:" in caught.value.remedy


@pytest.mark.parametrize(
    "use",
    [
        'drive: {"p*": [Fv]}',
        "drive: {pin: [Fs, Fv]}",
        "measured: [crank, pin]",
        "start: {pin: 0.2}",
        "limits: {pin: {q: [-1, 1]}}",
        "terms: [{name: K, joint: pin, expression: q(pin)}]",
        "terms: [{name: K, joint: knee, expression: q(pin) - q(knee)}]",
        "couplings: [{joint: knee, of: {pin: 2}}]",
    ],
)
def test_a_loop_that_is_used_is_a_joint(load, use):
    robot = load(FOURBAR + f"loops: [{PIN}]\n{use}\n")
    joint, (loop,) = robot.joints[-1], robot.loops
    assert (joint.name, joint.kind, joint.parent) == ("pin", JointKind.REVOLUTE, "two")
    np.testing.assert_array_equal(joint.placement.p, [0.4, 0, 0])
    np.testing.assert_array_equal(joint.axes[0], [0, 0, 1])
    assert robot.bodies[joint.child].parameters == ()
    assert (loop.name, loop.fix, loop.body_a, loop.body_b) == ("pin", DIRECTIONS, "pin_link", "three")
    np.testing.assert_array_equal(loop.a.p, 0)
    np.testing.assert_array_equal(loop.b.p, [0.3, 0, 0])
    assert robot.coordinates[-1] == "pin"


@pytest.mark.parametrize("use", ['drive: {"*": [Fv], pin: none}', "drive: {crank: [Fv]}", "drive: none"])
def test_a_loop_without_terms_stays_a_cut(load, use):
    robot = load(FOURBAR + f"loops: [{PIN}]\n{use}\n")
    assert robot.loops[0].fix == FIXED_BY["revolute"]
    assert len(robot.joints) == 3


def test_a_motor_can_sit_on_a_loop(load):
    slide = PIN.replace("revolute", "prismatic, axis: [0, 1, 0]")
    text = FOURBAR.replace("[crank]", "[{name: m, on: {pin: 100}}]") + f"loops: [{slide}]\n"
    robot = load(text)
    assert robot.joints[-1].kind is JointKind.PRISMATIC
    np.testing.assert_array_equal(robot.joints[-1].placement.R[:, 2], [0, 1, 0])
    assert robot.measured == ("pin",)
    assert [p.name for p in parameter_table(robot)] == [p.name for p in parameter_table(load(FOURBAR))]


def test_link_of_a_loop_takes_no_other_name(load):
    text = FOURBAR.replace("child: two", "child: pin_link").replace("actuators: [crank]", "actuators: [pin]")
    robot = load(text + f"loops: [{PIN.replace('body: two', 'body: pin_link')}]\n")
    assert robot.joints[-1].child == "pin_link_"


@pytest.mark.parametrize(
    ("loop", "said"),
    [
        (PIN.replace("body: two", "body: tow"), "unknown body 'tow'.*did you mean 'two'"),
        (PIN.replace("body: three", "body: two"), "joins 'two' to itself"),
        (PIN.replace("kind: revolute", "kind: revolut"), "did you mean 'revolute'"),
        (PIN.replace("kind: revolute", "kind: revolute, fix: [x]"), "either 'kind' or 'fix'"),
        (PIN.replace("kind: revolute, ", ""), "either 'kind' or 'fix'"),
        (PIN.replace("kind: revolute", "fix: [x, rw]"), "'rw' is not known"),
        (PIN.replace("kind: revolute", "fix: [x, x]"), "listed twice"),
        (PIN.replace("kind: revolute", "fix: []"), "must fix at least one direction"),
        (PIN.replace("kind: revolute", "kind: rod"), "is required for kind rod"),
        (PIN.replace("kind: revolute", "kind: rod, length: 0"), "has length 0"),
        (PIN.replace("kind: revolute", "kind: revolute, length: 1"), "not allowed otherwise"),
        (PIN.replace("kind: revolute", "kind: revolute, axis: [0, 0, 0]"), "axis is zero"),
        (PIN.replace("kind: revolute", "kind: point, axis: [1, 0, 0]"), "not for 'point'"),
        (PIN.replace("kind: revolute", "fix: [x], axis: [1, 0, 0]"), "not for 'fix'"),
        (PIN.replace("name: pin", "name: knee"), "'knee' occurs twice"),
        (f"{PIN}, {PIN}", "'pin' occurs twice"),
        (PIN.replace("b: {body: three, xyz: [h, 0, 0]}", "b: {xyz: [h, 0, 0]}"), "'body' is missing"),
        (PIN.replace("a: {body: two", "a: {bdy: two"), "unknown key 'bdy'"),
    ],
)
def test_broken_loops_are_refused(load, loop, said):
    with pytest.raises(InputError, match=said) as caught:
        load(FOURBAR + f"loops: [{loop}]\n")
    assert "line 7, loops[" in caught.value.place


@pytest.mark.parametrize(
    "use", ["measured: [crank, pin]", "drive: {pin: [Fv]}", "limits: {pin: {q: 1}}", "start: {pin: 1}"]
)
def test_a_point_has_no_coordinate(load, use):
    with pytest.raises(InputError, match="loop 'pin' has no joint coordinate") as caught:
        load(FOURBAR + f"loops: [{PIN.replace('revolute', 'point')}]\n{use}\n")
    assert "line 8" in caught.value.place


def test_start_is_checked(load):
    with pytest.raises(InputError, match=r"unknown coordinate 'kne'.*did you mean 'knee'"):
        load(FOURBAR + f"loops: [{PIN}]\nstart: {{kne: 1}}\n")


URDF = """\
<robot name="fourbar">
  <link name="world"/><link name="one"/><link name="two"/><link name="three"/>
  <joint name="crank" type="continuous"><parent link="world"/><child link="one"/><axis xyz="0 0 1"/></joint>
  <joint name="knee" type="continuous"><origin xyz="0.4 0 0"/><parent link="one"/><child link="two"/>
    <axis xyz="0 0 1"/></joint>
  <joint name="rocker" type="continuous"><origin xyz="0.5 0 0"/><parent link="world"/><child link="three"/>
    <axis xyz="0 0 1"/></joint>
</robot>
"""


def test_loops_over_a_urdf(load, tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    loops = "loops: [{name: pin, kind: revolute, a: {body: two, xyz: [0.4, 0, 0]}, b: {body: three}}"
    robot = load(f"source: arm.urdf\nactuators: [crank]\n{loops}]\n")
    assert robot.loops[0].a.p[0] == 0.4
    assert robot.measured == ("crank",)
    assert robot.drive == {"crank": ("Ia", "Fv", "Fs", "Off")}  # passive joints have none unless asked
    assert robot.rebuild({"ax_pin": 0.45}).loops[0].a.p[0] == 0.45
    strut = "{name: strut, kind: rod, length: 0.2, a: {body: world}, b: {body: two}}"
    assert load(f"source: arm.urdf\nactuators: [crank]\n{loops}, {strut}]\n").loops[1].body_a == BASE
    with pytest.raises(InputError, match="'actuators' is missing"):
        load(f"source: arm.urdf\n{loops}]\n")


@pytest.mark.parametrize(
    ("name", "bodies", "coordinates", "loops", "standard", "undriven", "geometry"),
    [
        ("dualv", 9, 9, 3, 9 * 10 + 12, 90, "d1 d2 d3 g1 bx by"),
        ("orthoglide", 16, 16, 2, 163, 151, "D4 b7"),
        ("evra", 21, 26, 6, 210 + 32, 210, "bx1 by1 bx3 by3 bx4 by4 bz px1 py1 px3 py3 px4 py4"),
    ],
)
def test_closed_robots(name, bodies, coordinates, loops, standard, undriven, geometry):
    robot = load_robot(name)
    assert robot.notices == ()
    assert len(robot.bodies) == bodies
    assert len(robot.coordinates) == coordinates
    assert len(robot.loops) == loops
    own = [p for p in parameter_table(robot) if p.owner not in robot.payloads]
    assert len(own) == standard
    assert len([p for p in own if p.kind == "inertial"]) == undriven
    assert robot.measured == tuple(actuator.name for actuator in robot.actuators)
    assert set(robot.geometry) == set(geometry.split())


def test_orthoglide_without_offsets():
    names = [p.name for p in parameter_table(load_robot("orthoglide"))]
    names = [name for name in names if not name.endswith("_payload")]
    assert len([name for name in names if not name.startswith("Off_")]) == 160


def poses(robot, **changes):
    """Frame of every body at the start pose with some coordinates changed."""
    values = {**robot.start, **changes}
    q = np.array([[values.get(name, 0.0) for name in robot.positions]])
    zero = np.zeros((1, len(robot.coordinates)))
    tree = tree_of(robot)
    motion = body_motion(tree, q, zero, zero)
    frames = {name: Frame(motion.R[0, i], motion.p[0, i]) for i, name in enumerate(tree.body_names)}
    return {BASE: Frame(np.eye(3), np.zeros(3)), **frames}


def assert_closed(robot, frames, atol):
    for loop in robot.loops:
        gap = (frames[loop.body_a] @ loop.a).inverse() @ (frames[loop.body_b] @ loop.b)
        np.testing.assert_allclose(gap.p, 0, atol=atol, err_msg=loop.name)
        if "rx" in loop.fix:  # z of both frames coincide
            np.testing.assert_allclose(gap.R[:, 2], [0, 0, 1], atol=atol, err_msg=loop.name)


@pytest.mark.parametrize("name", ["dualv", "orthoglide", "evra"])
def test_start_pose_is_closed(name):
    robot = load_robot(name)
    assert_closed(robot, poses(robot), 2e-6)  # coordinates are written with six decimals


@pytest.mark.parametrize(("name", "dof", "rank"), [("dualv", 3, 6), ("orthoglide", 3, 13), ("evra", 8, 18)])
def test_mobility(name, dof, rank):
    mobility = Assembly(load_robot(name)).mobility
    assert (mobility.dof, mobility.rank) == (dof, rank)


def test_friction_at_cut_joints_keeps_the_mobility(load):
    text = (ROBOTS / "dualv.yaml").read_text().replace('"motor*": [Fv', '"wrist*": [Fv], "motor*": [Fv')
    robot = load(text)
    assert robot.coordinates[-3:] == ("wrist2", "wrist3", "wrist4")
    assert Assembly(robot).mobility.dof == 3
    assert [p.name for p in parameter_table(robot) if p.owner == "wrist3"] == ["Fv_wrist3"]


def test_dualv_start_and_elbows():
    robot = load_robot("dualv")
    platform = poses(robot)["platform"]
    np.testing.assert_allclose(platform.p, 0, atol=2e-6)  # six decimals of the angles
    np.testing.assert_allclose(platform.R, np.eye(3), atol=2e-6)
    assert [np.sign(robot.start[f"elbow{i}"]) for i in (1, 2, 3, 4)] == [1, -1, 1, -1]


def test_orthoglide_legs_are_those_of_its_table():
    robot = load_robot("orthoglide")
    swing, fold = 0.2 - math.pi / 2, 0.1
    changes = {}
    for i in (1, 2, 3):
        changes |= {f"swing{i}": swing, f"fold{i}": fold, f"tip{i}": -fold, f"follow{i}": fold}
    frames = poses(robot, **changes)
    # Slider direction z_A and swing axis y_A of each leg, in the base frame.
    axes = {1: ([1, 0, 0], [0, 0, 1]), 2: ([0, 0, 1], [0, 1, 0]), 3: ([0, 1, 0], [1, 0, 0])}
    for i, (z, y) in axes.items():
        np.testing.assert_allclose(frames[f"slider{i}"].p, -0.31025 * np.array(z), atol=1e-15)  # rounding
        np.testing.assert_allclose(frames[f"fork{i}"].R[:, 2], y, atol=1e-15)
        bar, twin, end = (frames[f"{part}{i}"] for part in ("bar", "twin", "end"))
        np.testing.assert_allclose(end.p, bar.p + 0.31025 * bar.R[:, 0], atol=1e-15)
        np.testing.assert_allclose(twin.p, bar.p + 0.08 * frames[f"fork{i}"].R[:, 2], atol=1e-15)
        far = twin.p + 0.31025 * twin.R[:, 0]
        np.testing.assert_allclose(
            far, end.p - 0.08 * end.R[:, 1], atol=1e-15
        )  # fourth joint of the parallelogram
    home = poses(robot)
    np.testing.assert_allclose(home["platform"].p, 0, atol=1e-15)
    np.testing.assert_allclose(home["platform"].R, np.eye(3), atol=1e-15)


# Joints of evr@ in metres: base joints, platform joints in the platform frame, first universal axes.
EVRA = json.loads("""{
"b": [[0.5868885604402834, -0.1247470144906556, 0.1], [0.5868885604402834, 0.1247470144906556, 0.1],
      [-0.1854101966249684, 0.5706339097770922, 0.1], [-0.40147836381531493, 0.44588689528643655, 0.1],
      [-0.4014783638153149, -0.4458868952864366, 0.1], [-0.18541019662496852, -0.570633909777092, 0.1]],
"r": [[0.2676522425435433, -0.2972579301909577, 0], [0.2676522425435433, 0.2972579301909577, 0],
      [0.12360679774997899, 0.3804226065180614, 0], [-0.3912590402935223, 0.08316467632710373, 0],
      [-0.39125904029352226, -0.08316467632710381, 0], [0.1236067977499789, -0.3804226065180615, 0]],
"a1": [[0.20791169081775934, 0.9781476007338057, 0], [-0.20791169081775934, 0.9781476007338057, 0],
       [-0.9510565162951536, -0.30901699437494734, 0], [-0.7431448254773942, -0.6691306063588582, 0],
       [0.7431448254773944, -0.6691306063588581, 0], [0.9510565162951535, -0.30901699437494756, 0]]
}""")


def test_evra_has_the_frames_of_its_legs():
    robot = load_robot("evra")
    # Any coordinates will do: the frames of a leg are defined whether or not the loops close.
    frames = poses(robot, sx=0.3, sy=-0.2, **{f"turn{i}": 0.1 * i - 0.4 for i in range(1, 7)})
    shift = np.array([0.3, -0.2, 0.0])
    tight = {"atol": 1e-14}  # a few roundings of numbers below 1
    for i in range(1, 7):
        B, a1 = np.array(EVRA["b"][i - 1]) + shift, np.array(EVRA["a1"][i - 1])
        cross, cylinder, rod = (frames[f"{part}{i}"] for part in ("cross", "cylinder", "rod"))
        u = (rod.p - B) / np.linalg.norm(rod.p - B)
        a2 = np.cross(a1, u) / np.linalg.norm(np.cross(a1, u))
        assert np.linalg.norm(rod.p - B) == pytest.approx(robot.start[f"leg{i}"], rel=1e-14)  # rounding
        np.testing.assert_allclose(cross.p, B, **tight)
        np.testing.assert_allclose(cylinder.p, B, **tight)
        np.testing.assert_allclose(cross.R[:, [2, 0]], np.column_stack([a1, np.cross(a1, a2)]), **tight)
        np.testing.assert_allclose(cylinder.R[:, [2, 1]], np.column_stack([a2, -u]), **tight)
        np.testing.assert_allclose(rod.R[:, [2, 1]], np.column_stack([u, a2]), **tight)
        np.testing.assert_allclose(robot.loops[i - 1].b.p, EVRA["r"][i - 1], **tight)
