"""Exports of a result: full sets with the same efforts, files read back by other programs, edits in place."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.base.structural import structural_base
from dynid.cli import main
from dynid.common.errors import InputError
from dynid.experiment.provenance import IDENTIFIED, experiment_of
from dynid.exporters import EXPORTERS, Written, _judged, export
from dynid.exporters.certificate import Certificate, LogFigure, _percent, certify
from dynid.exporters.parameter_files import yaml_text
from dynid.exporters.replay import friction_speeds
from dynid.exporters.states import drawn_states, model_efforts, row_matrices, tree_states
from dynid.exporters.xml_text import XmlText, attribute, comment
from dynid.mechanism.frame import Frame, rpy_matrix
from dynid.mechanism.inertia import SYMBOLS, from_centre_of_mass, is_physical
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism, Payload
from dynid.mechanism.parameters import parameter_table, prior_values
from dynid.mechanism.xml_elements import read_elements
from dynid.prediction.effort_space import faults, nearest_by_efforts, nearest_set
from dynid.prediction.full_set import full_set, space_of
from dynid.projection.model import MODELS
from dynid.report.output import write_results
from dynid.statistics.estimate import Agreement, Estimate, ParameterEstimate
from tests.built_in import robot_of, truth_of
from tests.test_predict import exact

# The larger robots take seconds: see the long test below.
TREES = ("serial6", "ur5", "scara", "puma560", "panda")
CLOSED = ("delta", "fivebar", "cable8")
EXACT = 1e-9  # of the largest effort; measured 1e-14


def estimate_of(robot: Mechanism, values: dict[str, float], loads=((),)) -> Estimate:
    """A result that knows the base values of a full set exactly."""
    table = parameter_table(robot)
    model = MODELS["inverse"]
    rows = None if robot.is_closed else model.directions(robot)
    base = structural_base(robot, model, table, rows, loads=loads)
    x = base.G @ np.array([values[p.name] for p in table])
    found = tuple(
        ParameterEstimate(name, unit, float(value), 0.01 * abs(float(value)) + 1e-9, None, None)
        for name, unit, value in zip(base.names, base.units, x, strict=True)
    )
    sigma = np.array([one.sigma for one in found])
    fit = Agreement(100, len(x), len(x), 1e9, 1.0, 1.0, 1.0, 1.0)
    robot_file = str(robot.file) if robot.file else robot.name
    return Estimate(
        robot.name,
        "inverse",
        "ols",
        found,
        {},
        fit,
        np.diag(sigma**2),
        provenance={"options": {"robot": robot_file}},
    )


def random_values(robot: Mechanism, seed: int = 0) -> dict[str, float]:
    """Real bodies and dissipative drives."""
    rng = np.random.default_rng(seed)
    values = {}
    for p in parameter_table(robot):
        if p.kind == "inertial":
            values.setdefault(
                p.owner, from_centre_of_mass(1.0 + rng.random(), rng.normal(size=3) * 0.05, _tensor(rng))
            )
    found = {}
    for p in parameter_table(robot):
        body = values.get(p.owner) if p.kind == "inertial" else None
        found[p.name] = float(rng.random()) if body is None else float(body[SYMBOLS.index(p.symbol)])
    return found


def _tensor(rng: np.random.Generator) -> np.ndarray:
    A = rng.normal(size=(3, 3)) * 0.05
    S = A @ A.T + 1e-3 * np.eye(3)
    return np.trace(S) * np.eye(3) - S


@cache
def full_of(name: str):
    robot = robot_of(name)
    return full_set(exact(name), experiment_of({"robot": name}), robot)


@pytest.mark.parametrize("name", [*TREES, *CLOSED])
def test_a_full_set_is_physical_and_has_the_same_efforts(name: str) -> None:
    full = full_of(name)
    states = tree_states(full.mechanism, *drawn_states(full.mechanism, 30, 3))
    found, wanted = (
        model_efforts(full.mechanism, full.parameters, chi, states) for chi in (full.chi, full.reference)
    )
    assert np.abs(found - wanted).max() < EXACT * np.abs(wanted).max()
    assert full.physical
    for body in full.mechanism.bodies.values():
        if len(body.parameters) == 10:
            assert is_physical(np.array([body.prior[s] for s in SYMBOLS]), 1e-9)


ARM = """<robot name="arm">
  <link name="base"/>
{links}
</robot>"""
_LINK = """  <link name="{name}"><inertial><origin xyz="{c} 0 0"/><mass value="{m}"/>
    <inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j_{name}" type="{kind}"><parent link="{parent}"/><child link="{name}"/>
    <origin xyz="{d} 0 {h}" rpy="{r} 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="1" velocity="1"/></joint>"""


def scaled_arm(size: float, mass: float) -> str:
    """A URDF of six links of a length [m] and a mass [kg], each with four screws fixed to it."""

    def link(name: str, parent: str, kind: str, d: float, r: float, size: float, mass: float) -> str:
        about = {"c": size / 2, "m": mass, "i": mass * size**2 / 20, "h": size / 3}
        return _LINK.format(name=name, parent=parent, kind=kind, d=d, r=r, **about)

    links = []
    for k in range(6):
        parent = f"l{k - 1}" if k else "base"
        links.append(link(f"l{k}", parent, "revolute", size * bool(k), (-1) ** k * 1.3, size, mass))
        for n in range(4):
            links.append(
                link(f"l{k}_{n}", f"l{k}", "fixed", 0.1 * n * size, 0.1 * n, 3e-3 * size, 1e-3 * mass)
            )
    return ARM.format(links="\n".join(links))


@pytest.mark.parametrize(("size", "mass"), [(0.01, 1e-3), (20.0, 5e3), (0.3, 2.0)])
def test_real_bodies_of_any_size_are_found(size: float, mass: float, tmp_path: Path) -> None:
    """Even where the description is far from the truth: here its masses are ten thousand times too small."""
    file = tmp_path / "arm.urdf"
    file.write_text(scaled_arm(size, 1e-4 * mass))
    robot = load_robot(file)
    values = random_values(robot)  # about 1.5 kg and 0.05 m
    power = {"kg": (0, 1), "kg m": (1, 1), "kg m^2": (2, 1)}
    for p in parameter_table(robot):
        lengths, masses = power.get(p.unit, (2, 1))
        values[p.name] *= (size / 0.1) ** lengths * mass**masses
    full = full_set(estimate_of(robot, values), experiment_of({"robot": str(file)}), robot)
    assert full.physical
    found = certify(EXPORTERS["urdf"](full.estimate, full.mechanism, tmp_path), full, [])
    assert found.random_states < EXACT


@pytest.mark.parametrize("name", [*TREES, *CLOSED])
@pytest.mark.parametrize("form", ["urdf", "mjcf", "sdf", "yaml"])
def test_efforts_of_what_another_program_reads_are_those_of_the_estimate(
    name: str, form: str, tmp_path: Path
) -> None:
    full = full_of(name)
    written = EXPORTERS[form](full.estimate, full.mechanism, tmp_path)
    found = certify(written, full, [])
    assert found.failure == ""
    assert found.random_states < EXACT
    expected = {"urdf": "Pinocchio", "mjcf": "MuJoCo", "sdf": "Pinocchio", "yaml": "dynid"}[form]
    assert expected in found.program


@pytest.mark.parametrize("name", ["ur5", "scara", "fivebar"])
@pytest.mark.parametrize("form", ["urdf", "mjcf"])
def test_without_other_programs_friction_is_read_back_too(
    name: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain installation has neither Pinocchio nor MuJoCo."""
    monkeypatch.setattr(f"dynid.exporters.{form}.available", lambda *programs: None)
    full = full_of(name)
    found = certify(EXPORTERS[form](full.estimate, full.mechanism, tmp_path), full, [])
    assert found.random_states < EXACT
    assert "dynid's own reader" in found.program


def test_states_that_exported_code_does_not_reach_are_counted(tmp_path: Path) -> None:
    """Its closure goes straight from the start pose, where it may meet a dead point: NaN."""
    full = full_of("fivebar")
    written = EXPORTERS["numpy"](full.estimate, full.mechanism, tmp_path)
    efforts = written.read_back()
    limits: list[float] = []

    def unreached(q, dq, ddq):
        limits.append(np.sort(q[:, 0])[-3])  # the three states farthest out; later calls have the others
        return np.where(q[:, :1] >= limits[0], np.nan, efforts(q, dq, ddq))

    found = certify(replace(written, read_back=lambda: unreached), full, [])
    assert (found.lost, found.document()["states_not_reached"]) == (3, 3)
    assert found.random_states < EXACT
    assert f"({found.states - 3} of {found.states} random states" in found.text
    nowhere = certify(replace(written, read_back=lambda: lambda q, dq, ddq: np.nan * q), full, [])
    assert nowhere.random_states is None
    assert "no finite efforts" in nowhere.text


@pytest.mark.parametrize("name", ["rrr3", "palletiser", "dualv", "orthoglide", "stewart", "evra"])
def test_large_robots_are_read_back_too(name: str, tmp_path: Path) -> None:
    full = full_of(name)
    for form in ("urdf", "mjcf", "sdf", "yaml"):
        found = certify(EXPORTERS[form](full.estimate, full.mechanism, tmp_path), full, [])
        assert found.failure == ""
        assert found.random_states < EXACT


@pytest.mark.parametrize("name", CLOSED)
def test_loops_of_a_written_mjcf_close_in_its_home_pose(name: str, tmp_path: Path) -> None:
    import mujoco

    full = full_of(name)
    file = EXPORTERS["mjcf"](full.estimate, full.mechanism, tmp_path).files[0]
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    loops = data.efc_pos[: data.ne]
    assert bool(len(loops)) == bool(full.mechanism.loops)
    assert np.abs(loops).max(initial=0.0) < 1e-9  # m: start poses are closed to 1e-12


def test_friction_of_a_new_mjcf_is_as_hard_as_steps_allow(tmp_path: Path) -> None:
    """MuJoCo's own efforts, with its soft friction, at speeds from 0.15 rad/s on."""
    import mujoco

    full = full_of("puma560")
    file = EXPORTERS["mjcf"](full.estimate, full.mechanism, tmp_path).files[0]
    model = mujoco.MjModel.from_xml_path(str(file))
    data, rng = mujoco.MjData(model), np.random.default_rng(4)
    model.jnt_limited[:] = 0
    for _ in range(20):
        data.qpos[:], data.qacc[:] = rng.uniform(-1.0, 1.0, (2, model.nv))
        data.qvel[:] = rng.choice([-1.0, 1.0], model.nv) * rng.uniform(0.15, 1.0, model.nv)
        mujoco.mj_inverse(model, data)
        full_friction = -model.dof_frictionloss * np.sign(data.qvel)
        np.testing.assert_allclose(data.qfrc_constraint, full_friction, rtol=1e-9)
    assert max(friction_speeds(file).values()) < 0.15


def test_an_sdf_is_the_same_robot_by_an_independent_parser(tmp_path: Path) -> None:
    """SDF -> MuJoCo by twenty lines that share nothing with the writer."""
    import mujoco
    from defusedxml.ElementTree import parse

    full = full_of("puma560")
    model = parse(EXPORTERS["sdf"](full.estimate, full.mechanism, tmp_path).files[0]).getroot().find("model")
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.gravity = full.mechanism.gravity
    bodies = {"world": spec.worldbody}

    def place(element):
        x = [float(w) for w in element.find("pose").text.split()]
        return x[:3], x[3:]

    links = {one.get("name"): one for one in model.findall("link")}
    for joint in model.findall("joint"):
        p, rpy = place(joint)
        quat, total = np.zeros(4), np.array([1.0, 0, 0, 0])
        for axis, angle in ((2, rpy[2]), (1, rpy[1]), (0, rpy[0])):
            mujoco.mju_axisAngle2Quat(quat, np.eye(3)[axis], angle)
            both = np.zeros(4)
            mujoco.mju_mulQuat(both, total, quat)
            total = both
        name = joint.find("child").text
        body = bodies[name] = bodies[joint.find("parent").text].add_body(name=name, pos=p, quat=total)
        inertial = links[name].find("inertial")
        body.explicitinertial = True
        body.mass, body.ipos = float(inertial.find("mass").text), place(inertial)[0]
        body.fullinertia = [
            float(inertial.find(f"inertia/{k}").text) for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        ]
        axis = [float(w) for w in joint.find("axis/xyz").text.split()]
        hinge = body.add_joint(name=joint.get("name"), axis=axis, type=mujoco.mjtJoint.mjJNT_HINGE)
        hinge.damping[0] = float(joint.find("axis/dynamics/damping").text)
    made = spec.compile()
    data = mujoco.MjData(made)
    q, dq, ddq = drawn_states(full.mechanism, 20, 5)
    names = [p.name for p in full.parameters]
    chi = np.array(
        [
            0.0 if p.symbol in ("Ia", "Off", "Fs") else x
            for p, x in zip(full.parameters, full.chi, strict=True)
        ]
    )
    wanted = model_efforts(full.mechanism, full.parameters, chi, tree_states(full.mechanism, q, dq, ddq))
    assert len(names) == len(chi)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(made, data)
        # MuJoCo diagonalises a full tensor to 1e-12 kg m^2.
        assert np.abs(data.qfrc_inverse - wanted[k]).max() < 1e-8 * np.abs(wanted).max()


URDF = """<?xml version='1.0' encoding="utf-8"?>
<!-- an arm of sorts; <link> in a comment - é -->
<robot   name = "odd arm" >
\t<material name="blue"><color rgba="0 0 1 1"/></material>
  <link name="root"/>
  <link name="upper"><!-- keep me -->
    <inertial><mass value="2"/><origin rpy='0.1 0.2 0.3' xyz="0 0 0.1" />
      <inertia  ixx="0.02" ixy="0"  ixz="0"
                iyy="0.02" iyz="0" izz="0.01"/></inertial>
    <visual><geometry><mesh filename="upper.stl" scale="1 1 1"/></geometry></visual>
  </link>
  <joint name="shoulder" type="revolute"><parent link="root"/><child link="upper"/>
    <origin xyz="0 0 0.3" rpy="0 1.5707963267948966 0"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="50"/><dynamics damping="0.7"/></joint>
  <link name="fore" />
  <joint name="elbow" type="continuous">
    <parent link="upper"/> <child link="fore"/> <origin xyz="0.2 0 0.3"/>
    <axis xyz="1 0 0"/>
  </joint>
</robot>
"""


def edited(file: Path, form: str, seed: int = 1) -> tuple[Path, Mechanism, Estimate]:
    robot = load_robot(file)
    estimate = estimate_of(robot, random_values(robot, seed))
    full = full_set(estimate, experiment_of({"robot": str(file)}), robot)
    folder = file.parent / "out"
    folder.mkdir(exist_ok=True)
    written = EXPORTERS[form](full.estimate, full.mechanism, folder)
    found = certify(written, full, [])
    assert found.failure == ""
    assert found.random_states < EXACT
    return written.files[0], full.mechanism, full.estimate


def without_numbers(text: str, *gone: str) -> str:
    """The text without numbers in the elements that may change, without added elements and the header."""
    text = re.sub(r"<!-- Written by dynid.*?-->\s*", "", text, flags=re.DOTALL)
    for tag in gone:
        text = re.sub(rf"<{tag}\b[^>]*/>", f"<{tag}/>", text)
    return text


def test_only_numbers_of_inertials_and_dynamics_change_in_a_urdf(tmp_path: Path) -> None:
    source = tmp_path / "arm.urdf"
    source.write_bytes(URDF.replace("\n", "\r\n").encode())
    file, *_ = edited(source, "urdf")
    before, after = source.read_bytes().decode(), file.read_bytes().decode()
    assert "\n" not in after.replace("\r\n", "")  # line ends stay
    # What the arm lacked is added; all else is the same text.
    after = re.sub(r'\s*<dynamics damping="[^"]*" friction="[^"]*"/>(?=\s*</joint>)', "", after)
    after = re.sub(
        r'<link name="fore">\s*<inertial>.*?</inertial>\s*</link>',
        '<link name="fore" />',
        after,
        flags=re.DOTALL,
    )
    tags = ("mass", "inertia", "dynamics")
    inner = re.sub(r"xyz=\"[^\"]*\" />", 'xyz="" />', without_numbers(after, *tags))
    wanted = re.sub(r"xyz=\"[^\"]*\" />", 'xyz="" />', without_numbers(before, *tags)).replace(
        "<dynamics/>", ""
    )
    assert inner.replace("<dynamics/>", "") == wanted
    diff = file.with_name(f"{file.name}.diff").read_text()
    assert '-    <inertial><mass value="2"/>' in diff


@pytest.mark.parametrize(
    ("form", "text", "exact", "rounded"),
    [
        ("urdf", "URDF", 'rpy="0 1.5707963267948966 0"', 'rpy="0 1.5708 0"'),
        ("mjcf", "MJCF", 'name="b" pos="0.2 0 0"', 'name="b" pos="0.2 0 0" quat="0.9914 0.1305 0 0"'),
    ],
)
def test_rounded_angles_are_compared_as_written_too(
    form: str, text: str, exact: str, rounded: str, tmp_path: Path
) -> None:
    """dynid reads 1.5708 as pi/2, other programs as 1.5708: the file is right, and the rounding is shown."""
    source = tmp_path / ("arm.urdf" if form == "urdf" else "arm.xml")
    before = globals()[text]
    assert exact in before
    source.write_text(before.replace(exact, rounded))
    robot = load_robot(source)
    full = full_set(estimate_of(robot, random_values(robot, 3)), experiment_of({"robot": str(source)}), robot)
    found = certify(EXPORTERS[form](full.estimate, full.mechanism, tmp_path / "."), full, [])
    assert found.random_states > 1e-8
    assert found.as_written < EXACT
    assert "as in the description" in found.text


REAL = Path(__file__).parents[2] / "shared" / "data"


def skeleton(text: str) -> str:
    """A URDF without inertials, dynamics, header and spaces."""
    text = re.sub(r"<!-- Written by dynid.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"<inertial\b.*?</inertial>|<dynamics\b[^>]*/>", "", text, flags=re.DOTALL)
    return re.sub(r"\s+", "", text).replace("></link>", "/>")


@pytest.mark.parametrize("name", ["ur10_unisa", "panda_gaz", "staubli_tx40", "kuka_kr300"])
def test_files_of_real_robots_are_edited_and_read_back(name: str, tmp_path: Path) -> None:
    if not (REAL / name / "model.urdf").is_file():
        pytest.skip("no real data")
    source = tmp_path / "model.urdf"
    source.write_bytes((REAL / name / "model.urdf").read_bytes())
    file, *_ = edited(source, "urdf")
    assert skeleton(file.read_text()) == skeleton(source.read_text())


MJCF = """<mujoco model="odd">
  <compiler angle="degree" inertiafromgeom="true" settotalmass="7" eulerseq="zyx"/>
  <default><joint damping="0.5" armature="0.01"/>
    <default class="dry"><joint frictionloss="0.2"/></default></default>
  <asset><mesh name="m" file="no_such.stl"/></asset> <!-- comment; stays -->
  <worldbody>
    <body name="a" pos="0 0 1" childclass="dry">
      <inertial pos="0 0 .1" mass="1" diaginertia=".02 .02 .01" euler="10 20 30"/>
      <joint name="j1" axis="0 1 0" pos="0 0 .05" ref="20"/>   <geom type="mesh" mesh="m"/>
      <body name="b" pos="0.2 0 0"><joint type="slide" name="slide" axis="1 0 0"/>
        <inertial pos="0 0 0" mass="2" fullinertia=".1 .1 .1 0 0 .001"/>
        <body name="tool" pos="0 0 .1"><geom size=".02" mass="0.3"/></body>
      </body>
    </body>
    <body name="c" pos="0 1 0"><joint name="j3" axis="0 0 1"/><geom size=".1"/></body>
  </worldbody>
  <equality><joint joint1="j3" joint2="j1" polycoef="0.1 2 0 0 0"/></equality>
  <actuator><motor joint="j1" gear="10"/><motor joint="slide"/></actuator>
</mujoco>
"""


def test_only_numbers_of_inertials_and_joints_change_in_an_mjcf(tmp_path: Path) -> None:
    source = tmp_path / "odd.xml"
    source.write_text(MJCF)
    file, *_ = edited(source, "mjcf")
    before, after = source.read_text(), file.read_text()
    # Settings that would change the inertials are switched off; bodies without an inertial get one.
    assert 'inertiafromgeom="auto"' in after
    assert 'settotalmass="-1"' in after
    after = after.replace('inertiafromgeom="auto"', 'inertiafromgeom="true"')
    after = after.replace('settotalmass="-1"', 'settotalmass="7"')
    plain = []
    for text in (before, after):
        bare = re.sub(r"\s*<inertial[^>]*/>", "", without_numbers(text))
        plain.append(re.sub(r' (?:armature|damping|frictionloss)="[^"]*"', "", bare))
    assert plain[0] == plain[1]


def test_files_that_an_mjcf_includes_are_edited_too(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    body = f'<mujocoinclude><body name="arm"><joint name="j"/>{inertial}</body></mujocoinclude>'
    (tmp_path / "parts" / "arm.xml").write_text(body)
    source = tmp_path / "robot.xml"
    source.write_text('<mujoco model="two"><worldbody><include file="parts/arm.xml"/></worldbody></mujoco>')
    file, *_ = edited(source, "mjcf")
    assert (file.parent / "parts" / "arm.xml").read_text() != body
    assert source.read_text() in file.read_text()


def test_values_that_mujoco_adds_or_puts_in_place_of_the_written_ones_are_switched_off(
    tmp_path: Path,
) -> None:
    source = tmp_path / "tail.xml"
    source.write_text(
        """<mujoco model="tail">
  <default><joint damping="3" stiffness="1"/><general armature="0.2"/><tendon armature="0.1"/>
    <default class="tail"><joint springdamper="0.001 50"/></default></default>
  <worldbody><body name="a" childclass="tail"><geom size=".1"/><joint name="j1" axis="0 1 0"/>
    <body name="b" pos="0.3 0 0"><geom size=".1"/><joint name="j2" axis="0 1 0"/></body></body></worldbody>
  <tendon><fixed name="t"><joint joint="j1" coef="1"/><joint joint="j2" coef="0.5"/></fixed></tendon>
  <actuator><motor joint="j1" gear="4" damping="0.3"/><general tendon="t"/></actuator>
</mujoco>
"""
    )
    robot = load_robot(source)
    (unused,) = [one for one in robot.notices if one.code == "unused-values"]
    for text in ("springdamper 0.001 50 of j1", "armature 0.2 of actuator", "armature 0.1 of tendon t"):
        assert text in unused.text
    assert "Fv_j1" not in robot.prior  # MuJoCo does not use the written damping
    file, mechanism, estimate = edited(source, "mjcf")
    assert file.read_text().count('springdamper="0 0"') == 2
    missing = "\n".join(EXPORTERS["mjcf"](estimate, mechanism, tmp_path / "out").not_representable)
    assert "springdamper of j1, j2 is set to 0 0" in missing
    assert "armature of tendon t" in missing


HOSTILE = ('"; rm -rf ~', "*/ //", "a'b\"c", "<script>&amp;", "]]> -- -->", "x\ny", "${jndi}", "-- x --")


# `tests/test_export_code.py` and `tests/test_export_fmu.py` have those of code.
@pytest.mark.parametrize("form", [name for name in EXPORTERS if name not in ("c", "fmu", "numpy")])
def test_hostile_names_break_no_export(form: str, tmp_path: Path) -> None:
    robot, truth = robot_of("serial6"), truth_of("serial6")
    joints, names = [], {"base": "base"}
    for k, joint in enumerate(robot.joints):
        names[joint.child] = f"{HOSTILE[k % len(HOSTILE)]} {k}"
    for k, joint in enumerate(robot.joints):
        name = f"{HOSTILE[(k + 3) % len(HOSTILE)]} j{k}"
        names[joint.name] = name
        joints.append(replace(joint, name=name, parent=names[joint.parent], child=names[joint.child]))
    source = tmp_path / "robot.yaml"
    source.write_text("name: x\njoints: []\n")
    full = full_of("serial6")
    box = dict(
        zip(SYMBOLS, from_centre_of_mass(0.5, np.array([0.0, 1e-6, 0.1]), 1e-3 * np.eye(3)), strict=True)
    )
    boxes = {
        name: Payload(name, names[robot.joints[-1].child], prior=box) for name in (*HOSTILE, "a b", "a-b")
    }
    hostile = replace(
        full.mechanism,
        name=HOSTILE[0] + HOSTILE[4],
        joints=tuple(joints),
        bodies={names[k]: replace(b, name=names[k]) for k, b in full.mechanism.bodies.items()},
        actuators=tuple(
            replace(a, name=names[a.name], on={names[k]: r for k, r in a.on.items()}) for a in robot.actuators
        ),
        measured=tuple(names[m] for m in robot.measured),
        drive={},
        prior={},
        limits={},
        order=(),
        ties={},
        payloads=boxes,
        file=str(source),
        rebuild=None,
    )
    estimate = replace(full.estimate, robot=HOSTILE[4])
    written = EXPORTERS[form](estimate, hostile, tmp_path)
    assert written.files[0].parent == tmp_path
    table = parameter_table(hostile)
    values = prior_values(hostile)
    chi = np.array([values[p.name] for p in table])
    if form == "ur":
        line = r"#.*|def payload_\w+\(\):|  set_target_payload\([-\d., \[\]]+\)|end"
        assert all(re.fullmatch(line, one) for one in written.files[0].read_text().splitlines())
        made = re.findall(r"payload_\w+", written.files[0].read_text())
        assert len(set(made)) == len(boxes)
    elif form == "franka":
        assert list(json.loads(written.files[0].read_text())["setLoad"]) == list(boxes)
    if form != "yaml":
        found = certify(
            written, replace(full, mechanism=hostile, parameters=table, chi=chi, reference=chi), []
        )
        assert found.failure == ""
        assert found.random_states < EXACT
    else:
        from ruamel.yaml import YAML

        assert YAML(typ="safe").load(written.files[0].read_text())
    assert truth


def test_numbers_of_parameter_files_are_numbers_of_yaml_1_1_too() -> None:
    """There 1e-05 is a text, and so it is for most programs that load YAML."""
    for value in (1e-5, 2.0, 1e22, -1.5e-7, 0.1):
        text = yaml_text(value)
        assert re.fullmatch(r"[-+]?\d+\.\d*([eE][-+]\d+)?", text)
        assert float(text) == value


def test_text_for_xml_is_what_a_parser_returns() -> None:
    from defusedxml.ElementTree import fromstring

    for name in HOSTILE:
        assert fromstring(f'<a b="{attribute(name)}"/>').get("b") == name
        fromstring(f"<a>{comment([name, '--', name])}</a>")


def test_edits_touch_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_text("<a x='1'  y = \"2\"><!-- é --><b/>\n  <c q='>'>\n    <d/>\n  </c></a>", encoding="utf-8")
    root = read_elements(file)
    text = XmlText.read(file)
    text.set(root.offset, "y", "3")
    text.set(root.children[0].offset, "new", "1")
    text.insert(root.children[1].offset, ["<e/>"], first=False)
    wanted = "<a x='1'  y = \"3\"><!-- é --><b new=\"1\"/>\n  <c q='>'>\n    <d/>\n    <e/>\n  </c></a>"
    assert text.result().decode() == wanted


def test_what_is_not_physical_is_refused_marked_or_replaced() -> None:
    robot = load_robot("puma560")
    values = random_values(robot)
    estimate = estimate_of(robot, values)
    # The last link has an inertia of 0.01 kg m^2 or so, which is known by itself.
    wrong = tuple(
        replace(one, value=-0.002) if one.name == "ZZ_link_6" else one for one in estimate.parameters
    )
    assert wrong != estimate.parameters
    estimate = replace(estimate, parameters=wrong)
    experiment = experiment_of({"robot": "puma560"})
    with pytest.raises(InputError, match="sigma away"):
        full_set(estimate, experiment, robot)
    marked = full_set(estimate, experiment, robot, "mark")
    assert not marked.physical
    assert "NOT PHYSICAL" in marked.notes[0]
    near = full_set(estimate, experiment, robot, "nearest")
    assert near.physical
    for body in near.mechanism.bodies.values():
        assert is_physical(np.array([body.prior[s] for s in SYMBOLS]), 0.0)


def test_the_nearest_set_is_near_in_the_efforts_of_the_logs() -> None:
    """A covariance of a few blocks may tie friction to a mass: far away it says nothing of the efforts."""
    robot = load_robot("puma560")
    estimate = estimate_of(robot, {**random_values(robot), "Fv_joint_2": -3.0, "Ia_joint_5": -0.2})
    names = [one.name for one in estimate.parameters]
    block = np.zeros(len(names))
    block[names.index("Fv_joint_2")] = 1.0
    block[next(k for k, name in enumerate(names) if name.startswith("MX_link_2"))] = 3.0
    estimate = replace(estimate, covariance=np.outer(block, block) + 1e-6 * np.eye(len(names)))
    experiment = experiment_of({"robot": "puma560"})
    space = space_of(estimate, experiment, robot)
    states = tree_states(robot, *drawn_states(robot, 100, 3))
    tiles = row_matrices(robot, space.parameters, space.values.chi, states)
    W = np.concatenate(list(tiles)).reshape(-1, len(space.parameters))
    plain, _ = nearest_set(space)
    near, change = nearest_by_efforts(space, W, plain)
    moves = [np.linalg.norm(W @ (chi - space.values.chi)) for chi in (near, plain)]
    assert not faults(space, near)
    assert moves[0] < 0.5 * moves[1]
    assert change == pytest.approx(moves[0] / np.sqrt(len(W)), rel=1e-6)
    # In deviations of large errors the change is small: it is written without being asked for.
    large = 10.0 * change
    written = full_set(estimate, experiment, robot, rows=lambda _: W / large)
    assert written.physical
    assert "moves the efforts along the logs by 0.1 of their errors" in " ".join(written.notes)
    with pytest.raises(InputError, match="of their errors"):
        full_set(estimate, experiment, robot, rows=lambda _: W / change)


def test_a_log_without_some_efforts_is_compared_in_the_others() -> None:
    robot = load_robot("puma560")
    states = tree_states(robot, *drawn_states(robot, 50, 3))
    values = random_values(robot)
    table = parameter_table(robot)
    tau = model_efforts(robot, table, np.array([values[p.name] for p in table]), states)
    logged = 1.25 * tau
    logged[:, 4:] = np.nan
    assert _percent(robot, states, logged, tau) == pytest.approx(20.0)


def test_a_model_that_predicts_twice_as_badly_is_said_to_be_far() -> None:
    figures = (LogFigure("a", 5.0, 9.0), LogFigure("b", 5.0, 11.0), LogFigure("c", reason="changed"))
    assert Certificate(0.1, None, "", 0, figures).far == ["b (11 %, estimate 5 %)"]
    assert not Certificate(0.0, None, "", 0, (LogFigure("exact", 1e-9, 1e-7),)).far


def test_masses_that_rest_on_regularisation_are_named() -> None:
    """Only base parameters are measured; without priors the masses of single links are a choice."""
    robot = load_robot("puma560")
    estimate, experiment = estimate_of(robot, random_values(robot)), experiment_of({"robot": "puma560"})
    note = full_set(estimate, experiment, robot).notes[-1]
    assert "masses of link_1, link_2, " in note
    assert "chosen by regularisation, not found" in note
    given = replace(robot, bodies={k: replace(one, prior={"M": 1.0}) for k, one in robot.bodies.items()})
    assert not any("regularisation" in one for one in full_set(estimate, experiment, given).notes)
    # Code with base parameters contains no masses.
    assert not any("regularisation" in one for one in full_set(estimate, experiment, robot, "ignore").notes)


def test_negative_friction_is_named() -> None:
    robot = load_robot("puma560")
    estimate = estimate_of(robot, {**random_values(robot), "Fv_joint_2": -0.1})
    with pytest.raises(InputError, match=r"Fv_joint_2 = -0\.1"):
        full_set(estimate, experiment_of({"robot": "puma560"}), robot)


def test_friction_that_is_negative_by_noise_is_no_reason_to_refuse() -> None:
    """As for bodies: the nearest set within noise is written."""
    robot = load_robot("puma560")
    estimate = estimate_of(robot, {**random_values(robot), "Fv_joint_2": -1e-3})
    noisy = replace(estimate, covariance=estimate.covariance + 1e-4 * np.eye(len(estimate.covariance)))
    full = full_set(noisy, experiment_of({"robot": "puma560"}), robot)
    assert full.chi[[p.name for p in full.parameters].index("Fv_joint_2")] >= 0.0
    assert any("nearest physically consistent set" in note for note in full.notes)


@cache
def loaded():
    payload = Payload("load", "forearm", Frame(rpy_matrix((0.1, 0.2, 0.3)), np.array([0.1, 0.0, 0.05])))
    robot = load_robot("scara")
    payload = replace(payload, body=robot.joints[2].child)
    robot = replace(robot, payloads={"load": payload}, rebuild=None)
    values = random_values(robot)
    return robot, estimate_of(robot, values, loads=((), tuple(robot.payloads))), values


@pytest.mark.parametrize("use", ["link", "merge", "leave-out"])
def test_payloads_are_links_or_merged_or_left_out(use: str, tmp_path: Path) -> None:
    robot, estimate, values = loaded()
    full = full_set(estimate, experiment_of({"robot": "scara"}), robot, payload=use)
    assert bool(full.mechanism.payloads) == (use == "link")
    for form in ("urdf", "mjcf"):
        found = certify(EXPORTERS[form](full.estimate, full.mechanism, tmp_path), full, [])
        assert found.random_states < EXACT
    # The total mass of platform and payload decides about the efforts.
    states = drawn_states(robot, 5, 1)
    bare = replace(robot, payloads={})
    chi = np.array([values[p.name] for p in parameter_table(robot)])
    both = model_efforts(robot, parameter_table(robot), chi, tree_states(robot, *states))
    table = parameter_table(bare)
    alone = model_efforts(bare, table, np.array([values[p.name] for p in table]), tree_states(bare, *states))
    mine = model_efforts(full.mechanism, full.parameters, full.chi, tree_states(full.mechanism, *states))
    wanted = alone if use == "leave-out" else both
    assert np.abs(mine - wanted).max() < EXACT * np.abs(both).max()


def test_controllers_take_the_payload_in_axes_of_its_carrier(tmp_path: Path) -> None:
    robot, estimate, _ = loaded()
    full = full_set(estimate, experiment_of({"robot": "scara"}), robot)
    (payload,) = full.mechanism.payloads.values()
    turned = replace(payload, frame=Frame(rpy_matrix((0.3, -0.2, 0.5)), np.array([0.1, 0.2, 0.3])))
    mechanism = replace(full.mechanism, payloads={payload.name: turned})
    (file,) = EXPORTERS["franka"](full.estimate, mechanism, tmp_path).files
    load = json.loads(file.read_text())["setLoad"][payload.name]
    mass, R = load["load_mass"], turned.frame.R
    first = np.array([payload.prior[s] for s in ("MX", "MY", "MZ")])
    assert mass == pytest.approx(payload.prior["M"])
    assert np.allclose(load["F_x_Cload"], turned.frame.p + R @ first / mass)
    # A turned tensor has the same moments, and that about the centre the smaller ones.
    tensor = np.array(load["load_inertia"]).reshape(3, 3)
    about_origin = [payload.prior[s] for s in ("XX", "YY", "ZZ")]
    offset = first / mass
    assert np.trace(tensor) == pytest.approx(sum(about_origin) - 2.0 * mass * offset @ offset)
    (script,) = EXPORTERS["ur"](full.estimate, mechanism, tmp_path).files
    assert f"set_target_payload({mass!r}, [" in script.read_text()
    with pytest.raises(InputError, match="no payload"):
        EXPORTERS["ur"](full.estimate, replace(mechanism, payloads={}), tmp_path)


def test_a_payload_of_every_log_stays_with_its_carrier() -> None:
    robot, _, values = loaded()
    load = tuple(robot.payloads)
    estimate = estimate_of(robot, values, loads=(load,))
    inputs = [{"file": "a.csv", "use": IDENTIFIED, "payloads": list(load)}]
    estimate = replace(estimate, provenance={**estimate.provenance, "inputs": inputs})
    experiment = experiment_of({"robot": "scara"})
    merged = full_set(estimate, experiment, robot, payload="merge")
    states = drawn_states(robot, 5, 1)
    chi = np.array([values[p.name] for p in parameter_table(robot)])
    wanted = model_efforts(robot, parameter_table(robot), chi, tree_states(robot, *states))
    here = tree_states(merged.mechanism, *states)
    found = model_efforts(merged.mechanism, merged.parameters, merged.chi, here)
    assert np.abs(found - wanted).max() < EXACT * np.abs(wanted).max()
    with pytest.raises(InputError, match="every log"):
        full_set(estimate, experiment, robot, payload="leave-out")


@pytest.mark.parametrize(("use", "kept"), [("merge", ["b.csv"]), ("leave-out", ["a.csv"])])
def test_only_logs_with_the_load_of_an_export_are_compared(use: str, kept: list[str]) -> None:
    robot, estimate, _ = loaded()
    inputs = [
        {"file": "a.csv", "use": IDENTIFIED, "payloads": []},
        {"file": "b.csv", "use": IDENTIFIED, "payloads": ["load"]},
        {"file": "robot.yaml", "use": "robot"},
    ]
    estimate = replace(estimate, provenance={**estimate.provenance, "inputs": inputs})
    full = full_set(estimate, experiment_of({"robot": "scara"}), robot, payload=use)
    assert [entry["file"] for entry in full.estimate.provenance["inputs"]] == [*kept, "robot.yaml"]


def test_the_command_writes_files_figures_and_the_difference(tmp_path: Path) -> None:
    source = tmp_path / "arm.urdf"
    source.write_text(URDF)
    robot = load_robot(source)
    result = tmp_path / "result"
    write_results(estimate_of(robot, random_values(robot)), result)
    arguments = ["export", str(result), "--to", "urdf", "--to", "mjcf,yaml", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "Pinocchio" in done.output
    assert len(done.output.splitlines()) <= 24  # one screen
    assert "export.html" in done.output
    document = json.loads((tmp_path / "out" / "export.json").read_text())
    assert [one["format"] for one in document["files"]] == ["urdf", "mjcf", "yaml"]
    assert [one["file"] for one in document["files"]] == ["odd_arm.urdf", "odd_arm.xml", "odd_arm.yaml"]
    assert all(one["certificate"]["random_states"] < EXACT for one in document["files"])
    assert any("offset" in text for text in document["not_representable"])
    page = (tmp_path / "out" / "export.html").read_text()
    for entry in document["files"]:
        assert f"{100 * entry['certificate']['random_states']:.2g}" in page
        assert entry["file"] in page
    assert "random states" in (tmp_path / "out" / "odd_arm.urdf").read_text()
    again = load_robot(tmp_path / "out" / "odd_arm.yaml")
    side = load_robot(tmp_path / "out" / "odd_arm.urdf.yaml")
    values = prior_values(again)
    assert {p.name for p in parameter_table(again)} <= set(values)
    for name, value in prior_values(side).items():
        assert value == pytest.approx(values[name], rel=1e-9, abs=1e-12)


def test_names_with_blanks_and_accents_are_exported_in_every_format(tmp_path: Path) -> None:
    """Legal in a URDF. Lists of such names are longer than a line."""
    names = {
        "shoulder": "shoulder_épaule_gauche 1st joint of it",
        "elbow": "elbow_of_the_right_arm 3rd joint of it",
        "upper": "bras de robot",
    }
    text = URDF.replace(' type="continuous"', ' type="revolute"').replace(
        '<axis xyz="1 0 0"/>\n', '<axis xyz="1 0 0"/><limit lower="-2" upper="2" velocity="3" effort="50"/>\n'
    )
    for plain, odd in names.items():
        text = text.replace(f'"{plain}"', f'"{odd}"')
    source = tmp_path / "arm.urdf"
    source.write_text(text, encoding="utf-8")
    robot = load_robot(source)
    result = tmp_path / "result"
    write_results(estimate_of(robot, random_values(robot)), result)
    formats = "urdf,mjcf,sdf,yaml,ros2,c,numpy"
    done = CliRunner().invoke(main, ["export", str(result), "--to", formats, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    document = json.loads((tmp_path / "out" / "export.json").read_text())
    assert all(one["certificate"]["random_states"] < EXACT for one in document["files"])
    side = load_robot(tmp_path / "out" / "odd_arm.urdf.yaml")
    assert {"Ia_shoulder_épaule_gauche 1st joint of it", "Off_elbow_of_the_right_arm 3rd joint of it"} <= set(
        prior_values(side)
    )


def test_nothing_is_left_behind_when_an_export_is_refused(tmp_path: Path) -> None:
    robot = load_robot("puma560")
    estimate = estimate_of(robot, {**random_values(robot), "Fs_joint_1": -1.0})
    write_results(estimate, tmp_path / "result")
    with pytest.raises(InputError, match="Fs_joint_1"):
        export(tmp_path / "result", ["urdf"], tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")) == ["result"]


def test_a_page_of_exports_is_as_good_as_the_files_are_near() -> None:
    def judged(difference: float, lost: int = 0) -> str:
        certificate = Certificate(difference, None, "Pinocchio", 200, lost=lost)
        return _judged([Written("urdf", (Path("arm.urdf"),), certificate, ())])[0]

    assert [judged(x) for x in (1e-9, 0.07, 0.4)] == ["good", "care", "bad"]
    assert judged(1e-9, lost=3) == "care"
