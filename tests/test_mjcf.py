"""MJCF files: names, priors, motors, limits, equalities, includes, notices, and what is refused."""

import json
import math
import os

import numpy as np
import pytest
from click.testing import CliRunner

from dynid import identify
from dynid.cli import main
from dynid.common.errors import InputError
from dynid.experiment.experiment import Experiment
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.inertia import SYMBOLS, from_centre_of_mass
from dynid.mechanism.joint import JointKind
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.problem import as_asked
from dynid.regressor.regressor import tree_matrix
from tests.built_in import codes

ROBOT_FILE = "model.xml"
INERTIAL = '<inertial pos="0 0 0.1" mass="1" diaginertia="0.1 0.1 0.1"/>'
FOUR_BAR = f"""\
<mujoco model="four_bar">
  <option gravity="0 0 -1.62"/>
  <worldbody>
    <body name="crank"><joint name="motor" axis="0 1 0" damping="0.1" range="-90 90"/>{INERTIAL}
      <body name="coupler" pos="0 0 0.2"><joint name="knee" axis="0 1 0"/>{INERTIAL}</body>
    </body>
    <body name="rocker" pos="0.4 0 0"><joint name="rocker" axis="0 1 0"/>{INERTIAL}</body>
  </worldbody>
  <equality>
    <connect name="pin" body1="coupler" body2="rocker" anchor="0.4 0 0.1"/>
  </equality>
  <actuator><motor name="drive" joint="motor" gear="20" forcerange="-3 4"/></actuator>
</mujoco>
"""


def model(*bodies, rest=""):
    return "<mujoco>\n<worldbody>\n" + "\n".join(bodies) + f"\n</worldbody>\n{rest}\n</mujoco>\n"


def body(name="arm", joint="<joint name='j'/>", inside=INERTIAL, extra=""):
    return f'<body name="{name}" {extra}>{joint}{inside}</body>'


def refused(load, text, said, place="line"):
    with pytest.raises(InputError, match=said) as caught:
        load(text)
    assert caught.value.exit_code == 2
    assert caught.value.file.endswith(".xml")
    assert place in (caught.value.place or "")
    assert caught.value.remedy
    return caught.value


def test_names_of_what_has_none(load):
    joints = "<joint/><joint type='slide'/><joint name='last' axis='1 0 0'/>"
    robot = load(
        model(
            f"<body>{joints}{INERTIAL}<body><joint/>{INERTIAL}<body name='plate'/></body></body>",
            f"<body name='base'><freejoint/>{INERTIAL}</body>",
        )
    )
    assert [(joint.name, joint.parent, joint.child) for joint in robot.joints] == [
        ("body1_joint1", "base", "body1_joint1_link"),
        ("body1_joint2", "body1_joint1_link", "body1_joint2_link"),
        ("last", "body1_joint2_link", "body1"),
        ("body2_joint", "body1", "body2"),
        ("plate_fixed", "body2", "plate"),
        ("base__joint", "base", "base_"),
    ]
    assert [joint.kind for joint in robot.joints][1::3] == [JointKind.PRISMATIC, JointKind.FIXED]
    assert robot.bodies["body1_joint1_link"].parameters == ()
    assert robot.bodies["body1"].parameters == SYMBOLS
    assert codes(robot) == ["renamed-body", "massless-frame"]


def test_defaults_without_actuators_are_those_of_a_urdf(load):
    robot = load(model(body(), f"<body name='b'><freejoint name='f'/>{INERTIAL}</body>"))
    assert [actuator.name for actuator in robot.actuators] == ["j"]
    assert robot.drive == {"j": ("Ia", "Fv", "Fs", "Off")}
    assert robot.measured == ("j", "f")
    np.testing.assert_array_equal(robot.gravity, [0, 0, -9.81])
    assert robot.name == "robot"


def test_inertial_is_the_prior(load):
    full = '<inertial pos="0.1 0.2 0.3" mass="2" fullinertia="0.03 0.04 0.05 0.001 0.002 0.003"/>'
    robot = load(model(body(inside=full)))
    tensor = np.array([[0.03, 0.001, 0.002], [0.001, 0.04, 0.003], [0.002, 0.003, 0.05]])
    expected = from_centre_of_mass(2.0, np.array([0.1, 0.2, 0.3]), tensor)
    ours = [robot.bodies["arm"].prior[symbol] for symbol in SYMBOLS]
    np.testing.assert_allclose(ours, expected, rtol=1e-13)  # a few sums of products
    both = full.replace("/>", ' diaginertia="1 1 1"/>')
    refused(load, model(body(inside=both)), "both diaginertia", "line 3")
    refused(load, model(body(inside=full * 2)), "a second <inertial>", "line 3")


@pytest.mark.parametrize(
    ("setting", "inside", "code"),
    [
        ("", '<geom size="0.1"/>', "inertia-from-geom"),
        ('inertiafromgeom="true"', INERTIAL + '<geom size="0.1"/>', "inertia-from-geom"),
        ('inertiafromgeom="false"', '<geom size="0.1"/>', "missing-inertial"),
        ("", "", "missing-inertial"),
        ("", '<inertial pos="0 0 0" mass="1"/>', "missing-inertial"),
        ("", INERTIAL.replace('mass="1"', 'mass="-1"'), "impossible-prior"),
        ("", INERTIAL.replace("0.1 0.1 0.1", "0.1 0.1 0.9"), "impossible-prior"),
        ('settotalmass="3"', INERTIAL, "unscaled-prior"),
    ],
)
def test_inertia_that_is_not_stated_is_not_invented(load, setting, inside, code):
    robot = load(model(body(inside=inside), rest=f"<compiler {setting}/>"))
    assert codes(robot) == [code]
    assert robot.bodies["arm"].parameters == SYMBOLS
    assert bool(robot.bodies["arm"].prior) == (code == "unscaled-prior")


def test_static_bodies_with_shapes_have_mass_and_markers_have_none(load):
    inner = (
        '<body name="cover"><geom size="0.1"/></body><body name="marker"><geom size="0.1" mass="0"/></body>'
        '<body name="ghost"><geom class="light" size="0.1"/></body>'
    )
    light = '<default><default class="light"><geom density="0"/></default></default>'
    robot = load(model(body(inside=INERTIAL + inner), rest=light))
    assert robot.bodies["cover"].parameters == SYMBOLS
    assert robot.bodies["marker"].parameters == robot.bodies["ghost"].parameters == ()


def test_values_of_joints_are_priors_of_their_drive_terms(load):
    values = "armature='0.01' damping='0.2' frictionloss='0' stiffness='0.3'"
    ball = body("c", "<joint name='ball' type='ball' damping='0.4'/>")
    robot = load(
        model(
            body(joint=f"<joint name='j' {values}/>", extra="gravcomp='1'"),
            ball,
            rest="<tendon><fixed name='t'><joint joint='j' coef='1'/></fixed></tendon>",
        )
    )
    turning = dict.fromkeys(("Fv_ball_wx", "Fv_ball_wy", "Fv_ball_wz"), 0.4)
    assert robot.prior == {"Ia_j": 0.01, "Fv_j": 0.2, "Fs_j": 0.0, **turning}
    assert codes(robot) == ["unused-values", "unused-gravcomp", "ignored-tendon"]
    assert "stiffness 0.3 of j" in robot.notices[0].text


def test_limits(load):
    text = model(
        body(joint="<joint name='j' range='-90 45' actuatorfrcrange='-5 7'/>"),
        body("b", "<joint name='s' type='slide' range='-0.1 0.2'/>"),
        body("c", "<joint name='off' range='-1 1' limited='false'/>"),
        body("d", "<joint name='none'/>"),
    )
    robot = load(text)
    assert robot.limits == {"j": {"q": (-math.pi / 2, math.pi / 4), "tau": 5}, "s": {"q": (-0.1, 0.2)}}
    assert "q" not in load(text.replace("<mujoco>", "<mujoco><compiler autolimits='false'/>")).limits.get(
        "s", {}
    )
    in_radians = load(text.replace("<mujoco>", "<mujoco><compiler angle='radian'/>"))
    assert in_radians.limits["j"]["q"] == (-90, 45)
    refused(load, text.replace("-0.1 0.2", "0.2 -0.1"), "range 0.2 -0.1 is swapped", "line 4")


def test_gravity(load):
    assert load(FOUR_BAR).gravity[2] == -1.62
    off = "<option gravity='0 0 -5'><flag gravity='disable'/></option>"
    np.testing.assert_array_equal(load(model(body(), rest=off)).gravity, 0.0)


MOTORS = """
<default><motor gear="7"/><default class="big"><general gear="100"/></default></default>
<tendon><fixed name="split"><joint joint="j" coef="0.5"/><joint joint="k" coef="-2"/></fixed></tendon>
<actuator>
  <motor name="m" joint="j"/> <position class="big" joint="j"/> <general name="t" tendon="split" gear="3"/>
  <motor joint="ball" gear="1 0 2"/> <velocity name="k" joint="k"/> <motor joint="j" gear="1"/>
</actuator>"""


def test_motors(load):
    ball = body("c", "<joint name='ball' type='ball'/>")
    robot = load(model(body(), body("b", "<joint name='k'/>"), ball, rest=MOTORS))
    assert {actuator.name: dict(actuator.on) for actuator in robot.actuators} == {
        "m": {"j": 7},
        "motor_j": {"j": 100},
        "t": {"j": 1.5, "k": -6},
        "motor_ball_wx": {"ball_wx": 1, "ball_wz": 2},
        "motor_k": {"k": 7},
        "j": {"j": 1},
    }
    assert codes(robot) == ["renamed-actuator"]
    # Drive terms belong to the joints, once, however many motors a joint has.
    assert list(robot.drive) == ["j", "k", "ball_wx", "ball_wz"]


def test_two_servos_of_one_joint_are_reported(load):
    servos = "<actuator><position name='p' joint='j'/><velocity name='v' joint='j'/></actuator>"
    robot = load(model(body(), rest=servos))
    assert codes(robot) == ["shared-joint"]
    assert "p+v" in robot.notices[0].text


@pytest.mark.parametrize(
    ("motor", "said"),
    [
        ("<motor joint='jj'/>", "did you mean 'j'"),
        ("<motor site='s'/>", "unsupported transmission"),
        ("<adhesion body='arm'/>", "unsupported transmission"),
        ("<motor tendon='t'/>", "not a fixed tendon"),
        ("<motor joint='j' gear='0'/>", "gear ratio of zero"),
        ("<motor name='m' joint='j'/><motor name='m' joint='j'/>", "occurs twice"),
        ("<motor joint='j' gear='x'/>", "'x' in <motor> is not a finite number"),
        ("<motor joint='j' class='none'/>", "unknown default class 'none'"),
    ],
)
def test_motors_that_are_refused(load, motor, said):
    refused(load, model(body(), rest=f"<actuator>{motor}</actuator>"), said, "line 5")


def test_four_bar_is_closed_where_it_is_written(load):
    robot = load(FOUR_BAR)
    (loop,) = robot.loops
    assert (loop.name, loop.fix, loop.body_a, loop.body_b) == ("pin", ("x", "y", "z"), "coupler", "rocker")
    np.testing.assert_allclose(loop.b.p, [0, 0, 0.3], atol=1e-15)  # zero but for one subtraction
    assert robot.start == {"motor": 0, "knee": 0, "rocker": 0}
    assert robot.measured == ("motor",)
    assert robot.drive == {"motor": ("Ia", "Fv", "Fs", "Off")}
    assert robot.limits["drive"] == {"tau": 3}
    assert robot.prior == {"Fv_motor": 0.1}
    assert codes(robot) == []
    assert assembly_of(robot).dof == 1


def test_friction_that_is_given_to_passive_joints_is_identified(load):
    """Without it the motors' viscous friction was wrong by 8 sigma, on a log that fits to its noise."""
    given = 'name="knee" axis="0 1 0" damping="0.02" frictionloss="0.1"'
    robot = load(
        FOUR_BAR.replace('name="knee" axis="0 1 0"', given).replace(
            '<joint name="rocker"', '<joint damping="0" name="rocker"'
        )
    )
    assert robot.drive == {"motor": ("Ia", "Fv", "Fs", "Off"), "knee": ("Fv", "Fs")}
    assert (robot.prior["Fv_knee"], robot.prior["Fs_knee"]) == (0.02, 0.1)


def test_an_experiment_gives_friction_to_passive_joints(load):
    robot = load(FOUR_BAR)
    asked = Experiment(robot="four_bar", drive={"kn*": ("Fv",), "rocker": ("Fv", "Fs")})
    drive = as_asked(robot, asked).drive
    assert drive == {"motor": ("Ia", "Fv", "Fs", "Off"), "knee": ("Fv",), "rocker": ("Fv", "Fs")}
    # A glob that matches drives is about those: passive joints get friction only by their names.
    every = as_asked(robot, Experiment(robot="four_bar", drive={"*": ("Fv",)})).drive
    assert every == {"motor": ("Fv",)}


def test_key_frames_are_the_start(load):
    key = '<keyframe><key qpos="1 1 1"/><key name="home" qpos="0.1 -0.2 0.1"/></keyframe></mujoco>'
    robot = load(FOUR_BAR.replace("</mujoco>", key))
    assert robot.start == {"motor": 0.1, "knee": -0.2, "rocker": 0.1}
    assert "start-from-key" in codes(robot)
    assert load(model(body(), rest=key.replace("</mujoco>", "").replace("1 1 1", "1"))).start == {}
    short = key.replace("0.1 -0.2 0.1", "1 2")
    refused(load, FOUR_BAR.replace("</mujoco>", short), "2 numbers, not 3", "line 13")


def test_inactive_and_disabled_equalities_are_reported(load):
    inactive = FOUR_BAR.replace("<connect ", '<connect active="false" ')
    robot = load(inactive)
    assert robot.loops == ()
    assert "line 10: equality 'pin' is inactive" in robot.notices[0].text
    by_class = "<default><equality active='false'/></default></mujoco>"
    assert load(FOUR_BAR.replace("</mujoco>", by_class)).loops == ()
    disabled = FOUR_BAR.replace("</mujoco>", "<option><flag equality='disable'/></option></mujoco>")
    assert "1 equalities are ignored" in load(disabled).notices[0].text


def three(*equalities, motors=""):
    refs = ("ref='90'", "", "")
    bodies = [body(name, f"<joint name='{name}' {ref}/>") for name, ref in zip("abc", refs, strict=True)]
    return model(*bodies, rest=f"{motors}<equality>{''.join(equalities)}</equality>")


def test_joint_equalities_are_couplings(load):
    (coupling,) = load(three("<joint joint1='a' joint2='b' polycoef='0.1 -2'/>")).couplings
    assert (coupling.joint, coupling.of) == ("a", {"b": -2})
    assert coupling.offset == pytest.approx(0.1 + math.pi / 2, rel=1e-15)
    (still,) = load(three("<joint joint1='a' polycoef='0.1'/>")).couplings
    assert (still.joint, still.of) == ("a", {})
    (plain,) = load(three("<joint joint1='b' joint2='c'/>")).couplings
    assert (plain.joint, plain.of, plain.offset) == ("b", {"c": 1}, 0)


def test_the_joint_with_the_motor_leads(load):
    motors = "<actuator><motor joint='a'/></actuator>"
    robot = load(three("<joint joint1='a' joint2='b' polycoef='0.1 -2'/>", motors=motors))
    (coupling,) = robot.couplings
    assert (coupling.joint, coupling.of) == ("b", {"a": -0.5})
    assert coupling.offset == pytest.approx((0.1 + math.pi / 2) / 2, rel=1e-15)
    assert robot.measured == ("a", "c")


def test_a_joint_that_follows_already_leads_the_next(load):
    chain = "<joint joint1='b' joint2='a' polycoef='0 2'/><joint joint1='b' joint2='c' polycoef='0 4'/>"
    couplings = {one.joint: one for one in load(three(chain)).couplings}
    assert couplings["c"].of == {"a": 0.5}
    refused(load, three(chain, "<joint joint1='c' joint2='b'/>"), "follows", "line 7")


@pytest.mark.parametrize(
    ("equality", "said"),
    [
        ("<joint joint1='a' joint2='b' polycoef='0 1 0.5'/>", "not linear: polycoef has 0.5 0 0"),
        ("<joint joint1='a' joint2='bb'/>", "not a hinge or slide"),
        ("<joint joint1='a' joint2='a'/>", "to itself"),
        ("<joint joint2='a'/>", "no attribute 'joint1'"),
        ("<joint joint1='b' joint2='c'/><joint joint1='c' joint2='b'/>", "depends on itself|two couplings"),
        ("<tendon tendon1='t'/>", "is a <tendon>, which is not supported"),
        ("<flex flex='f'/>", "is a <flex>"),
        ("<distance geom1='f'/>", "is a <distance>"),
        ("<connect name='x' body1='a' body2='bb' anchor='0 0 0'/>", "'x' names body 'bb', which is missing"),
        ("<connect body1='a' body2='b'/>", "no attribute 'anchor'"),
        ("<connect body1='a' body2='a' anchor='0 0 0'/>", "joins 'a' to itself"),
        ("<connect site1='s' site2='t'/>", "names site 's', which is missing"),
        ("<connect site1='s' body2='a'/>", "names bodies and sites"),
        ("<weld body1='a' relpose='0 0 0 1'/>", "4 numbers, not 7"),
        ("<weld body1='a' anchor='nan 0 0'/>", "anchor 'nan'"),
        ("<weld name='w' body1='a'/><weld name='w' body1='b'/>", "'w' occurs twice"),
        ("<connect active='maybe' body1='a' anchor='0 0 0'/>", "active 'maybe'"),
    ],
)
def test_equalities_that_are_refused(load, equality, said):
    refused(load, three(equality), said, "line 7")


def test_weld_without_torque_is_a_point_and_names_are_kept_apart(load):
    motors = "<actuator><motor joint='a'/></actuator>"
    robot = load(
        three("<weld name='a' body1='a' body2='b' torquescale='0'/>", "<weld body1='c'/>", motors=motors)
    )
    assert [(loop.name, len(loop.fix)) for loop in robot.loops] == [("a_", 3), ("weld1", 6)]
    assert robot.loops[1].body_b == "base"


def test_loops_without_motors_are_refused(load):
    text = FOUR_BAR.split("<actuator>")[0] + "</mujoco>"
    refused(load, text, "'actuators' is missing", place="robot 'four_bar'")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (model(body("a"), body("a", "<joint name='k'/>")), "body name 'a' occurs twice \\(first in line 3"),
        (model(body("a"), body("b")), "joint name 'j' occurs twice"),
        (model(body(joint="<joint axis='0 0 0'/>")), "zero axis"),
        (model(body(joint="<joint axis='1 0'/>")), "2 numbers, not 3"),
        (model(body(joint="<joint pos='nan 0 0'/>")), "pos 'nan'"),
        (model(body(joint="<joint type='hing'/>")), "did you mean 'hinge'"),
        (model(body(inside=INERTIAL.replace('mass="1"', 'mass="1,5"'))), "body 'arm': mass '1,5'"),
        (model(body(inside=INERTIAL.replace('mass="1"', ""))), "no attribute 'mass'"),
        (model(body(extra="mocap='true'")), "mocap"),
        (model(body(extra="quat='0 0 0 0'")), "gives no direction"),
        (model(body(extra="quat='1 0 0 0' euler='0 0 0'")), "two orientations: quat, euler"),
        (model(body(extra="childclass='x'")), "unknown default class 'x'"),
        (model(body(inside=INERTIAL + body("b", "<freejoint/>"))), "the free joint of body 'b'"),
        (model(body(joint="<freejoint align='true'/>")), "principal axes"),
        (model("<composite type='rope'/>"), "<composite> is not supported"),
        (model("<replicate count='3'/>"), "<replicate> is not supported"),
        (model("<joint/>"), "in the world"),
        (model(body(), rest="<compiler coordinate='global'/>"), "global"),
        (model(body(), rest="<compiler eulerseq='xyw'/>"), "eulerseq 'xyw'"),
        (model(body(), rest="<compiler angle='grad'/>"), "angle 'grad'"),
        (model(body(), rest="<default><default/></default>"), "no attribute 'class'"),
        ("<mujoco><worldbody/></mujoco>", "no <body>"),
        (model(body())[:-20], "not valid XML"),
        ('<!DOCTYPE m [<!ENTITY x "y">]>' + model(body()), "entities are not allowed"),
        ("<mujoco><worldbody>" + "<body>" * 2000, "nested deeper"),
        (model(*(body(f"b{i}", f"<joint name='j{i}'/>") for i in range(1001))), "more than 1000 <body>"),
    ],
)
def test_bad_models_are_refused(load, text, said):
    refused(load, text, said)


@pytest.mark.parametrize("path", ["../out.stl", "/etc/passwd", "linked/x.stl"])
def test_mesh_paths_that_leave_the_folder_are_refused(load, tmp_path, path):
    os.symlink("/usr", tmp_path / "linked")
    text = model(body(), rest=f"<asset><mesh file='{path}'/></asset>")
    refused(load, text, "leaves its root", "line 5")
    refused(
        load, model(body(), rest="<compiler meshdir='../x'/><asset><mesh file='a.stl'/></asset>"), "leaves"
    )
    load(model(body(), rest="<compiler meshdir='x'/><asset><mesh file='a.stl'/></asset>"))


def test_typing_errors_are_reported(load):
    robot = load(model(body(joint="<joint name='j' dampng='1'/><jont/>"), rest="<sensors/>"))
    said = [notice.text for notice in robot.notices]
    assert codes(robot) == ["unknown-element"] * 3
    assert "line 3: unknown attribute 'dampng' of <joint>; did you mean 'damping'?" in said
    assert "line 3: unknown element <jont> in <body>; did you mean 'joint'?" in said
    assert "line 5: unknown element <sensors> in <mujoco>; did you mean 'sensor'?" in said


def test_rounded_angles_become_exact(load):
    robot = load(model(body(extra='quat="0.7071 0.7070 0 0"'), rest="<compiler angle='radian'/>"))
    np.testing.assert_array_equal(robot.joints[0].placement.R, [[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    assert codes(robot) == ["snapped-angle"]
    exact = load(model(body(extra='euler="90 0 0"')))
    np.testing.assert_array_equal(exact.joints[0].placement.R, robot.joints[0].placement.R)
    assert codes(exact) == []
    meant = load(model(body(extra='quat="0.71 0.70 0 0"')))  # 0.8 degrees: no rounding
    assert abs(meant.joints[0].placement.R[1, 1]) > 0.01


def test_named_dimensions_rebuild(load):
    robot = load(FOUR_BAR)
    assert robot.geometry == {"z_coupler": 0.2, "x_rocker": 0.4, "ax_pin": 0.4, "az_pin": 0.1}
    other = robot.rebuild({"x_rocker": 0.5})
    assert other.joints[2].placement.p[0] == 0.5
    np.testing.assert_allclose(other.loops[0].b.p, [-0.1, 0, 0.3], atol=1e-15)  # closed where it is written


def test_includes(load, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "arm.xml").write_text(
        f"<mujocoinclude>\n<body name='arm'><include file='joint.xml'/>{INERTIAL}<oops/></body>"
        "</mujocoinclude>"
    )
    (tmp_path / "parts" / "joint.xml").write_text("<mujocoinclude><joint name='inner'/></mujocoinclude>")
    robot = load(model("<include file='parts/arm.xml'/>"))
    assert [joint.name for joint in robot.joints] == ["inner"]
    assert robot.notices[0].text.startswith("arm.xml, line 2: unknown element <oops>")
    twice = "<include file='parts/arm.xml'/>" * 2
    refused(load, model(twice), "'arm.xml' is included twice", "line 3")
    (tmp_path / "parts" / "joint.xml").write_text("<mujocoinclude><include file='arm.xml'/></mujocoinclude>")
    refused(load, model("<include file='parts/arm.xml'/>"), "included twice", "line 1")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes and paths of Unix")
@pytest.mark.parametrize("path", ["../x.xml", "/etc/hostname", "out/x.xml", "a" * 300, "", "pipe"])
def test_includes_stay_in_the_folder(load, tmp_path, path):
    outside = tmp_path.parent / f"{tmp_path.name}_outside"
    outside.mkdir()
    for place in (outside / "x.xml", tmp_path.parent / "x.xml"):
        place.write_text("<mujocoinclude/>")
    os.symlink(outside, tmp_path / "out")
    os.mkfifo(tmp_path / "pipe")
    said = {"a" * 300: "does not exist", "": "no attribute 'file'", "pipe": "does not exist"}
    refused(load, model(f"<include file='{path}'/>"), said.get(path, "leaves the model's folder"), "line 3")


def test_included_files_obey_the_same_limits(load, tmp_path, monkeypatch):
    part = tmp_path / "part.xml"
    main_text = model(body(), "<include file='part.xml'/>")
    part.write_text('<!DOCTYPE m [<!ENTITY x "y">]><mujocoinclude/>')
    refused(load, main_text, "entities are not allowed")
    part.write_text("<robot/>")
    refused(load, main_text, "root element is <robot>")
    part.write_text("<mujocoinclude>" + "<body><joint/></body>" * 3 + "</mujocoinclude>")
    assert len(load(main_text).joints) == 4
    with monkeypatch.context() as patch:
        patch.setattr("dynid.mechanism.mjcf.file.LINK_LIMIT", 3)
        refused(load, main_text, "more than 3 <body>")
    monkeypatch.setattr("dynid.mechanism.mjcf.file.BYTE_LIMIT", len(main_text) + 10)
    refused(load, main_text, "limit of", place="")


@pytest.mark.parametrize("name", ["arm.xml", "arm.urdf", "arm.mjcf"])
def test_the_root_element_tells_the_format(tmp_path, name):
    (tmp_path / name).write_text(FOUR_BAR)
    assert load_robot(tmp_path / name).name == "four_bar"
    urdf = (
        '<robot name="u"><link name="w"/><link name="b"/><joint name="j" type="continuous">'
        '<parent link="w"/><child link="b"/></joint></robot>'
    )
    (tmp_path / name).write_text(urdf)
    assert load_robot(tmp_path / name).name == "u"


def test_info_command_reads_an_mjcf(tmp_path):
    file = tmp_path / "four_bar.xml"
    file.write_text(FOUR_BAR)
    run = CliRunner().invoke(main, ["info", str(file), "--json"])
    assert run.exit_code == 0, run.output
    info = json.loads(run.stdout)
    counts = {key: info[key] for key in ("name", "dof", "n_bodies", "n_joints", "n_closures", "n_actuators")}
    assert counts == {
        "name": "four_bar", "dof": 1, "n_bodies": 3, "n_joints": 3, "n_closures": 1, "n_actuators": 1,
    }  # fmt: skip
    assert info["n_standard"] == 34


def test_robot_file_over_an_mjcf(tmp_path):
    (tmp_path / "four_bar.xml").write_text(FOUR_BAR)
    file = tmp_path / "robot.yaml"
    file.write_text("source: four_bar.xml\n")
    plain = load_robot(file)
    assert (plain.name, plain.gravity[2], len(plain.loops)) == ("four_bar", -1.62, 1)
    assert plain.drive == {"motor": ("Ia", "Fv", "Fs", "Off")}
    file.write_text(
        "name: mine\nsource: four_bar.xml\ngravity: [0, 0, -9.81]\n"
        "joints: [{name: lever, kind: revolute, parent: world, child: lever,"
        " xyz: [0.4, 0, 0], axis: [0, 1, 0]}]\n"
        "loops: [{name: second, kind: revolute, axis: [0, 1, 0],"
        " a: {body: lever, xyz: [0, 0, 0.3]}, b: {body: rocker, xyz: [0, 0, 0.3]}}]\n"
        "drive: {motor: [Fv], rocker: [Fv, Fs]}\nstart: {knee: 0.05}\n"
    )
    robot = load_robot(file)
    assert (robot.name, robot.gravity[2]) == ("mine", -9.81)
    assert [loop.name for loop in robot.loops] == ["pin", "second"]
    assert robot.drive == {"motor": ("Fv",), "rocker": ("Fv", "Fs")}
    assert robot.start == {"motor": 0, "knee": 0.05, "rocker": 0}
    assert robot.joints[-1].parent == "base"
    assert [actuator.name for actuator in robot.actuators] == ["drive"]
    assert assembly_of(robot).dof == 1
    file.write_text("source: four_bar.xml\nactuators: [rocker]\n")
    other = load_robot(file)
    # The joint has lost its motor, not the damping that the file gives it.
    assert (other.measured, other.drive["motor"], list(other.drive)) == (
        ("rocker",),
        ("Fv",),
        ["rocker", "motor"],
    )
    assert list(other.limits) == ["motor"]  # the motor that was replaced has taken its own away
    assert CliRunner().invoke(main, ["info", str(file)]).exit_code == 0
    file.write_text(
        "source: four_bar.xml\nloops: [{name: pin, kind: point, a: {body: crank}, b: {body: base}}]\n"
    )
    with pytest.raises(InputError, match="'pin' occurs twice"):
        load_robot(file)


def test_identified_values_stand_beside_those_of_the_model(tmp_path):
    """A log made with the model's own values gives them back, gear and loop included."""
    (tmp_path / "four_bar.xml").write_text(FOUR_BAR.replace('damping="0.1"', 'damping="0.1" armature="0.3"'))
    file = tmp_path / "robot.yaml"
    file.write_text("source: four_bar.xml\ndrive: {motor: [Ia, Fv]}\n")
    robot = load_robot(file)
    assembly = assembly_of(robot)
    t = np.arange(0.0, 8.0, 0.004)
    a, w = np.array([0.3, 0.2, 0.1]), 2.0 * np.pi * np.array([0.25, 0.75, 1.5])
    sine, cosine = np.sin(t[:, None] * w), np.cos(t[:, None] * w)
    crank = [sine @ a, cosine @ (a * w), -sine @ (a * w**2)]
    motor = np.array([robot.coordinates.index("motor")])
    q = assembly.track(crank[0][:, None], motor)
    rates = assembly.rates(q, crank[1][:, None], crank[2][:, None], motor)
    chi = [
        robot.bodies[one.owner].prior[one.symbol] if one.kind == "inertial" else robot.prior[one.name]
        for one in parameter_table(robot)
    ]
    efforts = tree_matrix(robot, q, rates.dq, rates.ddq) @ np.array(chi)
    tau = np.einsum("nvd,nv->n", rates.N, efforts) / np.einsum("nvd,v->n", rates.N, robot.actuator_map[0])
    columns = np.column_stack([t, crank[0], tau])
    np.savetxt(tmp_path / "run.csv", columns, delimiter=",", header="t,q_1,tau_1", comments="")
    estimate = identify(file, [tmp_path / "run.csv"])
    # The log is clean, and sigma counts what filters and differences leave: 1.3 of them at most when written.
    for one in estimate.parameters:
        assert one.prior is not None
        assert abs(one.value - one.prior) < 4.0 * one.sigma, one.name
    assert estimate.fit.residual_percent < 0.2


def test_a_tendon_of_fixed_length_is_a_rod(load):
    """Its length is that of MuJoCo at the reference pose, and the constant of the equality."""
    mujoco = pytest.importorskip("mujoco")
    text = """
<mujoco>
  <worldbody>
    <body name="a"><joint name="j" axis="0 1 0"/><geom size="0.1"/><site name="s" pos="0.3 0 0.1"/></body>
    <body name="b" pos="0.2 0 1">
      <joint name="k" axis="0 1 0"/><geom size="0.1"/><site name="t" pos="0 0.1 0"/>
    </body>
  </worldbody>
  <actuator><motor name="m" joint="j"/></actuator>
  <tendon><spatial name="rod"><site site="s"/><site site="t"/></spatial></tendon>
  <equality><tendon name="link" tendon1="rod" polycoef="0.02 0 0 0 0"/></equality>
</mujoco>"""
    robot = load(text)
    simulated = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(simulated)
    mujoco.mj_forward(simulated, data)
    (loop,) = robot.loops
    assert (loop.name, loop.fix, loop.body_a, loop.body_b) == ("link", (), "a", "b")
    assert loop.length == pytest.approx(float(data.ten_length[0]) + 0.02, rel=1e-12)
    assert "ignored-tendon" not in codes(robot)
    wrapped = text.replace('<site site="t"/>', '<site site="t"/><site site="s"/>')
    with pytest.raises(InputError, match="is a <tendon>, which is not supported"):
        load(wrapped)
