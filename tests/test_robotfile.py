"""The native robot file: what it describes, what it refuses, and how it is built again."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.mechanism.frame import mdh_frame
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.joint import JointKind
from dynid.mechanism.parameters import effort_unit, parameter_table

DUALV = """\
name: dualv
gravity: [0, 0, -9.81]                       # in the base frame
symbols: {d1: 0.41, d2: 0.28, d3: 0.28, g1: 0.270875, bx: 0.105, by: 0.055}
joints:                                      # the tree, parents first; `base` is the world
  - {name: motor1, kind: revolute, parent: base, child: proximal1, mdh: {gamma: g1, d: d1, theta: -g1}}
  - {name: elbow1, kind: revolute, parent: proximal1, child: distal1, mdh: {d: d2}}
  - {name: wrist1, kind: revolute, parent: distal1, child: platform, mdh: {d: d3}, body: {xyz: [-bx, -by, 0]}}
  - {name: motor2, kind: revolute, parent: base, child: proximal2, mdh: {gamma: pi-g1, d: d1, theta: g1-pi}}
  - {name: elbow2, kind: revolute, parent: proximal2, child: distal2, mdh: {d: d2}}
  - {name: motor3, kind: revolute, parent: base, child: proximal3, mdh: {gamma: g1-pi, d: d1, theta: pi-g1}}
  - {name: elbow3, kind: revolute, parent: proximal3, child: distal3, mdh: {d: d2}}
  - {name: motor4, kind: revolute, parent: base, child: proximal4, mdh: {gamma: -g1, d: d1, theta: g1}}
  - {name: elbow4, kind: revolute, parent: proximal4, child: distal4, mdh: {d: d2}}
loops:
  - name: wrist2
    kind: revolute
    axis: [0, 0, 1]
    a: {body: distal2, xyz: [d3, 0, 0]}
    b: {body: platform, xyz: [-bx, by, 0]}
  - name: wrist3
    kind: revolute
    axis: [0, 0, 1]
    a: {body: distal3, xyz: [d3, 0, 0]}
    b: {body: platform, xyz: [-bx, -by, 0]}
  - name: wrist4
    kind: revolute
    axis: [0, 0, 1]
    a: {body: distal4, xyz: [d3, 0, 0]}
    b: {body: platform, xyz: [bx, -by, 0]}
measured: [motor1, motor2, motor3, motor4]
actuators: [motor1, motor2, motor3, motor4]
drive: {"motor*": [Fv, Fs, Off]}
start: {elbow1: 1, elbow2: -1, elbow3: 1, elbow4: -1}
ties: {proximals: [[proximal1, proximal2, proximal3, proximal4]]}
payloads: {payload: {body: platform}}
order: [platform]
model: power
"""
ARM = """\
name: arm
symbols: {d2: 0.5, half: d2/2}
joints:
  - {name: j1, kind: revolute, parent: base, child: b1, mdh: {r: 0.3}}
  - {name: j2, kind: revolute, parent: b1, child: b2, mdh: {alpha: -1.5708, d: d2}}
  - {name: j3, kind: prismatic, parent: b2, child: b3, xyz: [half, 0, .1], rpy: [0, pi/2, 0], axis: [0, 1, 0]}
"""


def refused(load, text, said, place=""):
    with pytest.raises(InputError, match=said) as caught:
        load(text)
    assert caught.value.file.endswith("robot.yaml")
    assert place in (caught.value.place or "")


def test_dualv(load):
    robot = load(DUALV)
    assert robot.name == "dualv"
    assert robot.model == "power"
    assert robot.measured == ("motor1", "motor2", "motor3", "motor4")
    assert robot.drive == {f"motor{i}": ("Fv", "Fs", "Off") for i in (1, 2, 3, 4)}
    assert robot.order == ("platform",)
    assert robot.ties["proximals"].groups == (("proximal1", "proximal2", "proximal3", "proximal4"),)
    g1 = 0.270875
    frame = mdh_frame(gamma=math.pi - g1, d=0.41, theta=g1 - math.pi)
    np.testing.assert_allclose(robot.joints[3].placement.p, frame.p, atol=1e-15)  # the same arithmetic
    np.testing.assert_allclose(robot.joints[3].placement.R, np.eye(3), atol=1e-15)
    np.testing.assert_array_equal(robot.joints[2].body.p, [-0.105, -0.055, 0])
    assert set(robot.geometry) == {"d1", "d2", "d3", "g1", "bx", "by"}
    assert [loop.name for loop in robot.loops] == ["wrist2", "wrist3", "wrist4"]
    assert robot.loops[0].fix == ("x", "y", "z", "rx", "ry")
    np.testing.assert_array_equal(robot.loops[0].b.p, [-0.105, 0.055, 0])
    assert robot.start == {"elbow1": 1, "elbow2": -1, "elbow3": 1, "elbow4": -1}


def test_defaults_of_a_native_file(load):
    robot = load(ARM)
    assert [actuator.name for actuator in robot.actuators] == ["j1", "j2", "j3"]
    assert robot.measured == ("j1", "j2", "j3")
    assert robot.drive == {}
    assert robot.model == "inverse"
    np.testing.assert_array_equal(robot.gravity, [0, 0, -9.81])
    assert robot.bodies["b1"].parameters == SYMBOLS
    np.testing.assert_array_equal(robot.joints[2].axes[0], [0, 1, 0])


def test_rounded_angle_is_exact_and_said(load):
    robot = load(ARM)
    assert [notice.code for notice in robot.notices] == ["snapped-angle"]
    assert "joints[1].mdh.alpha -1.5708" in robot.notices[0].text
    np.testing.assert_array_equal(robot.joints[1].placement.R, [[1, 0, 0], [0, 0, 1], [0, -1, 0]])


def test_symbol_that_holds_a_rounded_angle_is_snapped_too(load):
    robot = load(ARM.replace("alpha: -1.5708", "alpha: -a").replace("{d2: 0.5,", "{a: 1.5708, d2: 0.5,"))
    np.testing.assert_array_equal(robot.joints[1].placement.R, [[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    turned = robot.rebuild({"a": 1.5707})  # a value from outside is exact: nothing is snapped
    assert turned.joints[1].placement.R[1, 1] == pytest.approx(math.cos(1.5707), rel=1e-9)


def test_every_length_has_a_name_and_can_be_changed(load):
    robot = load(ARM)
    assert robot.geometry == {"d2": 0.5, "half": 0.25, "r_j1": 0.3, "z_j3": 0.1}
    other = robot.rebuild({**robot.geometry, "r_j1": 0.7})
    assert other.joints[0].placement.p[2] == 0.7
    assert other.geometry["r_j1"] == 0.7
    assert robot.rebuild({"d2": 1.0}).geometry["half"] == 0.5  # derived unless given itself
    assert robot.rebuild({"half": 1.0}).joints[2].placement.p[0] == 1.0
    again = robot.rebuild(robot.geometry)
    for a, b in zip(robot.joints, again.joints, strict=True):
        np.testing.assert_array_equal(a.placement.p, b.placement.p)
        np.testing.assert_array_equal(a.placement.R, b.placement.R)
    with pytest.raises(InputError, match="no dimension 'r_j2'"):
        robot.rebuild({"r_j2": 1.0})


def test_axis_vectors_and_body_frame(load):
    robot = load(
        "joints: [{name: j, kind: revolute, parent: base, child: b, xyz: [0, 0, 1], x: [0, 2, 0],"
        " z: [1, 0, 0], body: {xyz: [0.1, 0, 0], rpy: [0, 0, pi]}}]"
    )
    np.testing.assert_array_equal(robot.joints[0].placement.R, [[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(robot.joints[0].body.R, np.diag([-1, -1, 1]))
    assert robot.geometry == {"z_j": 1.0, "bx_j": 0.1}
    assert robot.name == "robot"  # the file's


def test_every_joint_kind(load):
    robot = load("""
joints:
  - {name: float, kind: free, parent: base, child: trunk}
  - {name: hip, kind: universal, parent: trunk, child: thigh, axes: [[1, 0, 0], [0, 1, 0]]}
  - {name: ball, kind: spherical, parent: thigh, child: foot, xyz: [0, 0, -0.4]}
  - {name: weld, kind: fixed, parent: foot, child: sole}
  - {name: slide, kind: prismatic, parent: trunk, child: head, axis: [0, 0, 2]}
actuators: [hip_1, hip_2, slide]
""")
    assert [joint.kind for joint in robot.joints] == [
        JointKind.FREE, JointKind.UNIVERSAL, JointKind.SPHERICAL, JointKind.FIXED, JointKind.PRISMATIC,
    ]  # fmt: skip
    assert robot.measured == ("hip", "slide", "float", "ball")
    assert [notice.code for notice in robot.notices] == ["normalised-axis"]


@pytest.mark.parametrize(
    ("kind", "units"),
    [
        ("", ["kg", "N s/m", "N", "N"]),
        (", kind: prismatic", ["kg", "N s/m", "N", "N"]),
        (", kind: revolute", ["kg m^2", "N m s/rad", "N m", "N m"]),
    ],
)
def test_a_rotary_motor_on_a_slide_has_units_of_rotation(load, kind, units):
    robot = load(f"""
joints: [{{name: slide, kind: prismatic, parent: base, child: cart}}]
actuators: [{{name: m1, on: {{slide: 200*pi}}{kind}}}]
drive: {{m1: [Ia, Fv, Fs, Off]}}
""")
    assert [p.unit for p in parameter_table(robot) if p.owner == "m1"] == units
    assert effort_unit(robot, "m1") == units[-1]


def test_motor_on_two_joints_drive_and_terms(load):
    robot = load(
        ARM
        + """\
actuators: [j1, {name: m2, on: {j2: 32, j3: -2*16}}]
drive: {"*": [Fv], j1: [Off, Ia, Fs+, Fs-], j3: none}
terms:
  - {name: k, joint: j2, expression: "d2*q(j3) + sign(dq(j2)+dq(j1))"}
  - {name: k, joint: j3, expression: 1}
known: {Ia_j1: 0.02}
order: [j2, "Fv_*"]
"""
    )
    np.testing.assert_array_equal(robot.actuator_map, [[1, 0, 0], [0, 32, -32]])
    assert robot.drive == {"j1": ("Ia", "Fs+", "Fs-", "Off"), "j2": ("Fv",), "m2": ("Fv",)}
    assert robot.known == {"Ia_j1": 0.02}
    assert robot.measured == ("j1", "j2", "j3")
    values = robot.terms[0].expression.evaluate({}, lambda kind, name: np.array([2.0, 4.0]))
    np.testing.assert_array_equal(values, [2.0, 3.0])
    assert "k" in [parameter.name for parameter in parameter_table(robot)]


def test_bodies_known_prior_and_payloads(load):
    robot = load(
        ARM
        + """\
bodies:
  b2: {parameters: [M, MX, MY, MZ], known: {M: 2, com: [0.1, 0, 0.2]}, prior: {XX: 1}}
payloads: {tool: {body: b3, xyz: [0, 0, 0.1], rpy: [0, pi, 0], known: {M: 2.5, com: [0, 0, 0.1]}}}
limits: {j1: {q: [-1, 1], dq: 10, tau: 127}, j2: {q: 2}}
"""
    )
    assert robot.bodies["b2"].parameters == ("MX", "MY", "MZ", "M")
    assert robot.bodies["b2"].known == {"MX": 0.2, "MY": 0, "MZ": 0.4, "M": 2}
    assert robot.payloads["tool"].known == {"MX": 0, "MY": 0, "MZ": 0.25, "M": 2.5}
    np.testing.assert_array_equal(robot.payloads["tool"].frame.R, np.diag([-1, 1, -1]))
    assert robot.limits == {"j1": {"q": (-1, 1), "dq": 10, "tau": 127}, "j2": {"q": (-2, 2)}}


def test_couplings_are_put_together(load):
    robot = load(
        ARM
        + "couplings:\n  - {joint: j3, of: {j2: -2}, offset: 1}\n  - {joint: j2, of: {j1: 3}, offset: 0.5}\n"
    )
    by_joint = {coupling.joint: coupling for coupling in robot.couplings}
    assert by_joint["j3"].of == {"j1": -6}
    assert by_joint["j3"].offset == 0.0
    assert [actuator.name for actuator in robot.actuators] == ["j1"]
    assert robot.measured == ("j1",)


@pytest.mark.parametrize(
    ("addition", "said", "place"),
    [
        ("mesured: [j1]", "did you mean 'measured'", "line 7, mesured"),
        ("measured: [j1, j9]", "unknown joint 'j9'", "line 7, measured[1]"),
        ("actuators: [j1, j1]", "occurs twice", "line 7"),
        ("actuators: [{name: j1, on: {j1: 2, j2: 1}}]", "a different velocity", "line 7"),
        ("actuators: [{name: m, on: {j1: 0}}]", "ratio of zero", "line 7"),
        ("drive: {'k*': [Fv]}", "matches no joint", "line 7, drive.k*"),
        ("drive: {j1: [Fvv]}", "did you mean 'Fv'", "line 7, drive.j1[0]"),
        ("bodies: {b9: {}}", "unknown body 'b9'", "line 7"),
        ("bodies: {b1: {parameters: [MM]}}", "'MM' is not known", "line 7"),
        ("bodies: {b1: {parameters: [M], known: {XX: 1}}}", "does not have that parameter", "line 7"),
        ("bodies: {b1: {known: {com: [0, 0, 1]}}}", "'com' needs M", "line 7"),
        ("known: {Ia_j1: 1}", "unknown parameter 'Ia_j1'", "line 7, known.Ia_j1"),
        ("terms: [{name: k, joint: j9, expression: '1'}]", "unknown joint 'j9'", "line 7"),
        ("terms: [{name: k, joint: j1, expression: 'dq(j9)'}]", "unknown joint 'j9'", "line 7"),
        ("terms: [{name: k, joint: j1, expression: 'eval(1)'}]", "unknown function", "line 7"),
        ("terms: [{name: ZZ_b1, joint: j1, expression: '1'}]", "already the name of a parameter", "line 7"),
        ("couplings: [{joint: j2, of: {j3: 1}}, {joint: j3, of: {j2: 1}}]", "depends on itself", "line 7"),
        ("couplings: [{joint: j2, of: {j2: 1}}]", "depends on itself: j2 -> j2", "line 7"),
        ("ties: {legs: [[b1]]}", "two members", "line 7"),
        ("ties: {legs: [b1, b2]}", "expected a list", "line 7"),
        ("ties: {legs: [[b1, j2]]}", "bodies with bodies", "line 7"),
        ("payloads: {p: {body: hand}}", "unknown body 'hand'", "line 7"),
        ("payloads: {b1: {body: b2}}", "name of a body", "line 7"),
        ("order: [platform]", "matches no body", "line 7"),
        ("limits: {j1: {q: [1, -1]}}", "swapped", "line 7"),
        ("limits: {j1: {dq: -1}}", "not positive", "line 7"),
        ("start: {elbow: 1}", "unknown coordinate", "line 7"),
        ("free: [w]", "unknown coordinate", "line 7"),
        ("model: invers", "did you mean 'inverse'", "line 7"),
        ("schema: dynid.robot/2", "not known", "line 7"),
        ("gravity: [0, 0]", "expected 3 entries", "line 7"),
        ("gravity: [0, 0, -g]", "'g' in '-g' is not a symbol", "line 7"),
        (
            "cables: [{name: c, from: {body: base, xyz: [0, 0, 1]}, to: {body: b9, xyz: [0, 0, 0]}}]",
            "body 'b9'",
            "",
        ),
        (
            "cables: [{name: c, from: {body: b3, xyz: [0, 0, 1]}, to: {body: b3, xyz: [0, 0, 0]}}]",
            "joins 'b3' to itself",
            "",
        ),
        (
            "loops: [{name: l, kind: revolut, a: {body: b1}, b: {body: b3}}]",
            "did you mean 'revolute'",
            "line 7",
        ),
        ("loops: [{name: l, kind: rod, a: {body: b1}, b: {body: b3}}]", "required for kind rod", "line 7"),
    ],
)
def test_refusals_name_the_line(load, addition, said, place):
    refused(load, ARM + addition + "\n", said, place)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("name: j2", "name: j1", "joint 'j1' occurs twice"),
        ("child: b3", "child: b1", "the child of two joints"),
        ("child: b3", "child: base", "cannot move"),
        ("parent: b2", "parent: b4", "unknown body 'b4'"),
        ("kind: prismatic", "kind: prismatik", "did you mean 'prismatic'"),
        ("axis: [0, 1, 0]", "axis: [0, 0, 0]", "axis is zero"),
        ("axis: [0, 1, 0]", "axes: [[0, 1, 0], [1, 0, 0]]", "has no 'axes'"),
        ("d: d2}", "d: d3}", "'d3' in 'd3' is not a symbol"),
        ("mdh: {r: 0.3}", "mdh: {R: 0.3}", "unknown key 'R'"),
        ("mdh: {r: 0.3}", "mdh: {r: 0.3}, axis: [1, 0, 0]", "cannot be combined with 'mdh'"),
        ("rpy: [0, pi/2, 0]", "rpy: [0, pi/2, 0], x: [1, 0, 0]", "exactly two"),
        ("rpy: [0, pi/2, 0]", "x: [1, 0, 0], y: [1, 1, 0]", "degrees apart"),
        ("{d2: 0.5,", "{pi: 3,", "cannot be a symbol"),
        ("half: d2/2", "half: later/2, later: 1", "not a symbol"),
        ("joints:", "joint:", "did you mean 'joints'"),
    ],
)
def test_broken_joints_are_refused(load, old, new, said):
    assert old in ARM
    refused(load, ARM.replace(old, new), said, "line")


def test_two_joints_never_share_a_coordinate(load):
    hip = "{name: hip, kind: universal, parent: base, child: a, axes: [[1, 0, 0], [0, 1, 0]]}"
    text = f"joints: [{hip}, {{name: hip_1, kind: revolute, parent: a, child: b}}]"
    refused(load, text, "coordinate 'hip_1' belongs to joints 'hip' and 'hip_1'", "line 1")


def test_frozen_mechanism_can_be_replaced(load):
    robot = load(ARM)
    assert replace(robot, name="other").name == "other"
