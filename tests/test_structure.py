"""Mobility and counts of base parameters: change points, over-constraint, and rounded dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from dynid.base.structural import rounding_of
from dynid.info import describe
from dynid.kinematics.assembly import assembly_of
from dynid.motion.logs import log_from_arrays
from dynid.motion.motion import Motion
from dynid.motion.plan import plan_motions
from dynid.motion.settings import FilterSettings, MaskSettings
from dynid.projection.kinematics import kinematics_along
from tests.built_in import codes, written_robot

pytestmark = pytest.mark.usefixtures("no_symbols")

PARALLELOGRAM = """
name: parallelogram
gravity: [0, -9.81, 0]
joints:
  - {name: left, kind: revolute, parent: base, child: left_arm}
  - {name: knee, kind: revolute, parent: left_arm, child: coupler, xyz: [0.3, 0, 0]}
  - {name: right, kind: revolute, parent: base, child: right_arm, xyz: [0.5, 0, 0]}
loops:
  - {name: pin, kind: revolute, a: {body: coupler, xyz: [0.5, 0, 0]}, b: {body: right_arm, xyz: [0.3, 0, 0]}}
measured: [left]
actuators: [left]
drive: {left: [Fv, Fs]}
"""


CRANE = """
name: crane
gravity: [0, 0, -9.81]
joints:
  - {{name: slew, kind: revolute, parent: base, child: tower}}
  - {{name: luff, kind: revolute, parent: tower, child: boom, xyz: [{x}, 0, {z}], axis: [0, 1, 0]}}
  - {{name: fold, kind: revolute, parent: boom, child: jib, xyz: [{boom}, 0, 0], axis: [0, 1, 0]}}
drive: {{"*": [Fv, Fs]}}
"""


def vector(x, digits: int | None) -> str:
    return "[" + ", ".join(repr(float(c)) if digits is None else f"{c:.{digits}f}" for c in x) + "]"


def sarrus(digits: int | None = None, yaw: float = 0.0, start: float | None = 0.9) -> str:
    """Two legs of three parallel hinges, at right angles: the platform moves up and down."""
    R = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])

    def v(*x: float) -> str:
        return vector(R @ np.array(x), digits)

    at = (
        ""
        if start is None
        else f"start: {{a1: {-start}, a2: {2 * start}, a3: {-start}, b1: {start}, b2: {-2 * start}}}"
    )
    return f"""
name: sarrus
gravity: [0, 0, -9.81]
joints:
  - {{name: a1, kind: revolute, parent: base, child: a_lower, axis: {v(1, 0, 0)}, xyz: {v(0, -0.2, 0)}}}
  - {{name: a2, kind: revolute, parent: a_lower, child: a_upper, axis: {v(1, 0, 0)}, xyz: {v(0, -0.3, 0)}}}
  - {{name: a3, kind: revolute, parent: a_upper, child: platform, axis: {v(1, 0, 0)}, xyz: {v(0, 0.3, 0)}}}
  - {{name: b1, kind: revolute, parent: base, child: b_lower, axis: {v(0, 1, 0)}, xyz: {v(-0.2, 0, 0)}}}
  - {{name: b2, kind: revolute, parent: b_lower, child: b_upper, axis: {v(0, 1, 0)}, xyz: {v(-0.3, 0, 0)}}}
loops:
  - name: b3
    kind: revolute
    axis: {v(0, 1, 0)}
    a: {{body: b_upper, xyz: {v(0.3, 0, 0)}}}
    b: {{body: platform, xyz: {v(-0.2, 0.2, 0)}}}
measured: [a1]
actuators: [a1]
drive: {{"*": [Fv, Fs, Off]}}
{at}
"""


def six_rus(digits: int | None) -> str:
    """Six legs of motor, universal joint and ball joint; the first carries the platform in the tree."""
    joints, loops, motors = [], [], [f"motor{i}" for i in range(1, 7)]
    legs = zip(
        np.radians([-20, 20, 100, 140, 220, 260]), np.radians([-40, 40, 80, 160, 200, 280]), strict=True
    )
    for i, (a, b) in enumerate(legs, 1):
        e, across = np.array([np.cos(a), np.sin(a), 0]), np.array([-np.sin(a), np.cos(a), 0])
        P, top = 0.15 * np.array([np.cos(b), np.sin(b), 0]), vector([0, 0, 0.5], digits)
        axis, xyz = vector(across, digits), vector(0.35 * e, digits)
        joints.append(
            f"{{name: motor{i}, kind: revolute, parent: base, child: crank{i}, axis: {axis}, xyz: {xyz}}}"
        )
        axes, xyz = f"[{axis}, {vector(e, digits)}]", vector(0.2 * e, digits)
        joints.append(
            f"{{name: u{i}, kind: universal, parent: crank{i}, child: rod{i}, axes: {axes}, xyz: {xyz}}}"
        )
        if i == 1:
            body = f"body: {{xyz: {vector(-P, digits)}}}"
            joints.append(f"{{name: s1, kind: spherical, parent: rod1, child: platform, xyz: {top}, {body}}}")
        else:
            ends = f"a: {{body: rod{i}, xyz: {top}}}, b: {{body: platform, xyz: {vector(P, digits)}}}"
            loops.append(f"{{name: s{i}, kind: point, {ends}}}")
    lines = ["name: rus6", "gravity: [0, 0, -9.81]", "joints:", *(f"  - {one}" for one in joints), "loops:"]
    lines += [*(f"  - {one}" for one in loops), f"measured: [{', '.join(motors)}]"]
    return "\n".join([*lines, f"actuators: [{', '.join(motors)}]", 'drive: {"motor*": [Fv, Fs, Off]}', ""])


def unit(x) -> np.ndarray:
    return x / np.linalg.norm(x)


def hexapod_with_crosses(digits: int | None, seed: int) -> str:
    """Random 6-RUS: a universal joint is two hinges with a body between, the first parallel to the motor.

    All frames are turned at random, so that no axis is parallel to another once it is rounded.
    """
    rng = np.random.default_rng(seed)
    joints, loops, motors = [], [], [f"motor{i}" for i in range(1, 7)]
    around, above = np.sort(rng.uniform(0, 2 * np.pi, (2, 6)), axis=1)
    base, top, height = rng.uniform([0.2, 0.1, 0.3], [0.6, 0.3, 0.7])
    for i, (a, b) in enumerate(zip(around, above, strict=True), 1):
        B, P = base * np.array([np.cos(a), np.sin(a), 0]), top * np.array([np.cos(b), np.sin(b), 0])
        m = unit(rng.normal(size=3))
        r = rng.uniform(0.1, 0.3) * unit(np.cross(m, rng.normal(size=3)))
        rod = P - B - r + np.array([0, 0, height])
        crank, cross = Rotation.from_quat(rng.normal(size=(2, 4)))
        turned = (crank * cross).inv()
        rows = [
            (f"motor{i}", "base", f"crank{i}", crank.inv().apply(m), B, crank),
            (f"u{i}", f"crank{i}", f"cross{i}", turned.apply(m), crank.inv().apply(r), cross),
            (
                f"v{i}",
                f"cross{i}",
                f"rod{i}",
                turned.apply(unit(np.cross(m, rod))),
                np.zeros(3),
                Rotation.identity(),
            ),
        ]
        joints += [
            f"{{name: {name}, kind: revolute, parent: {parent}, child: {child}, axis: {vector(axis, digits)},"
            f" xyz: {vector(xyz, digits)}, rpy: {vector(R.as_euler('xyz'), digits)}}}"
            for name, parent, child, axis, xyz, R in rows
        ]
        end = f"xyz: {vector(turned.apply(rod), digits)}"
        if i == 1:
            frame = (
                f"{end}, rpy: {vector(turned.as_euler('xyz'), digits)}, body: {{xyz: {vector(-P, digits)}}}"
            )
            joints.append(f"{{name: s1, kind: spherical, parent: rod1, child: platform, {frame}}}")
        else:
            other = f"{{body: platform, xyz: {vector(P, digits)}}}"
            loops.append(f"{{name: s{i}, kind: point, a: {{body: rod{i}, {end}}}, b: {other}}}")
    lines = ["name: rus6", "gravity: [0, 0, -9.81]", "joints:", *(f"  - {line}" for line in joints), "loops:"]
    lines += [*(f"  - {line}" for line in loops), f"measured: [{', '.join(motors)}]"]
    return "\n".join([*lines, f"actuators: [{', '.join(motors)}]", 'drive: {"motor*": [Fv, Fs, Off]}', ""])


def turned_arm(digits: int | None, seed: int) -> str:
    """Six hinges, the first vertical, two pairs parallel, all frames turned at random."""
    rng = np.random.default_rng(seed)
    lines, parent, before, axis = [], "base", Rotation.identity(), np.array([0.0, 0.0, 1.0])
    for k in range(6):
        if k in (1, 3, 5):
            axis = unit(np.cross(axis, rng.normal(size=3)))
        step = before.inv().apply(np.zeros(3) if k in (0, 5) else 0.2 * rng.normal(size=3))
        turn = Rotation.from_quat(rng.normal(size=4))
        before = before * turn
        lines.append(
            f"  - {{name: j{k}, kind: revolute, parent: {parent}, child: b{k},"
            f" axis: {vector(before.inv().apply(axis), digits)}, xyz: {vector(step, digits)},"
            f" rpy: {vector(turn.as_euler('xyz'), digits)}}}"
        )
        parent = f"b{k}"
    return "\n".join(["name: arm", "gravity: [0, 0, -9.81]", "joints:", *lines, 'drive: {"*": [Fv, Fs]}', ""])


def test_a_parallelogram_without_a_start_pose_is_a_parallelogram(tmp_path) -> None:
    robot = written_robot(tmp_path, PARALLELOGRAM)
    assembly = assembly_of(robot)
    assert assembly.mobility.dof == 1
    assert assembly.start[0] == pytest.approx(-assembly.start[1], abs=1e-12)  # not the crossed branch
    assert codes(assembly.notices) == ["singular-start"]
    found = describe(robot)
    # Inertia and two moments about the hinge, two terms of friction: all arms turn alike.
    assert found.n_base == 5
    assert "singular-start" in codes(found.notices)
    given = written_robot(tmp_path, PARALLELOGRAM + "start: {left: 1.0, knee: -1.0, right: 1.0}\n")
    assert describe(given).n_base == 5
    assert assembly_of(given).notices == ()


def test_a_log_of_a_parallelogram_without_a_start_pose_is_followed(tmp_path) -> None:
    robot = written_robot(tmp_path, PARALLELOGRAM)
    t = np.arange(0.0, 1.0, 2e-3)
    log = log_from_arrays(robot, t, 0.9 + 0.5 * np.sin(6.0 * t)[:, None], np.zeros((len(t), 1)))
    motion = Motion(log, plan_motions([log], robot, FilterSettings(), MaskSettings())[0])
    kinematics = kinematics_along(robot, motion)
    assert codes(kinematics.notices) == ["singular-start"]
    low, high = motion.usable()[0]
    states = kinematics.states(low, motion.states(low, high))
    np.testing.assert_allclose(states.q[:, 2], states.q[:, 0], atol=1e-12)


@pytest.mark.parametrize("start", [0.9, 0.3, None])
def test_a_sarrus_linkage_has_eight_base_parameters_from_any_start(tmp_path, start: float | None) -> None:
    robot = written_robot(tmp_path, sarrus(start=start))
    found = describe(robot)
    # Five of the bodies that one angle moves, and three terms of friction.
    assert (found.dof, found.n_base) == (1, 8)
    assert ("singular-start" in codes(found.notices)) == (start is None)


def test_six_digits_count_as_many_base_parameters_as_full_precision(tmp_path) -> None:
    exact, rounded = (describe(written_robot(tmp_path, sarrus(digits, yaw=0.4))) for digits in (None, 6))
    assert (exact.n_base, rounded.n_base) == (8, 8)
    assert "rounded-geometry" not in codes(exact.notices)
    text = next(notice.text for notice in rounded.notices if notice.code == "rounded-geometry")
    assert "rounded to 2e-06 of the largest" in text
    assert "8 base parameters, not" in text


@pytest.mark.parametrize("yaw", [0.4, 2.2])
def test_the_count_does_not_depend_on_the_number_of_states(tmp_path, monkeypatch, yaw: float) -> None:
    """Among many random poses some are near singular ones, where rounding is enlarged: 12 and 9 before."""
    monkeypatch.setattr("dynid.projection.structure._FEWEST_STATES", 250)
    assert describe(written_robot(tmp_path, sarrus(6, yaw=yaw))).n_base == 8


@pytest.mark.parametrize("size", [1.0, 0.01])
def test_the_count_does_not_depend_on_the_size_of_the_robot(tmp_path, size: float) -> None:
    """Beside the moments of a long boom friction looked like rounding of 5 mm: 2 parameters were left."""
    x, z, boom = (round(size * length, 9) for length in (1.274, 31.06, 21.37))
    found = describe(written_robot(tmp_path, CRANE.format(x=x, z=z, boom=boom)))
    # Fifteen of a vertical axis and two parallel ones, six of friction.
    assert found.n_base == 21
    assert "rounded-geometry" not in codes(found.notices)


SLIDER = """
name: slider
gravity: [-5.8866, -7.8475, 0]
joints:
  - {{name: motor, kind: revolute, parent: base, child: crank}}
  - {{name: wrist, kind: revolute, parent: crank, child: rod, xyz: [{crank}, 0, 0]}}
  - {{name: slide, kind: prismatic, parent: base, child: piston, xyz: [0, -0.0085, 0], axis: [1, 0, 0]}}
loops:
  - {{name: pin, kind: revolute, a: {{body: rod, xyz: [{rod}, 0, 0]}}, b: {{body: piston, xyz: [0, 0, 0]}}}}
measured: [motor]
actuators: [motor]
drive: {{motor: [Fv, Fs, Off]}}
start: {{motor: 0.9, wrist: -1.1, slide: 0.39}}
"""


@pytest.mark.parametrize(
    ("crank", "rod"), [("0.0826", "0.3448"), ("0.0826", "0.34481234567891"), ("1/12", "0.31")]
)
def test_a_long_rod_on_a_short_crank_is_not_rounding(tmp_path, crank: str, rod: str) -> None:
    """Its columns are 10 to 40 roundings of four digits: they were dropped, with 16 % of the effort."""
    found = describe(written_robot(tmp_path, SLIDER.format(crank=crank, rod=rod)))
    assert found.n_base == 9
    assert "rounded-geometry" not in codes(found.notices)


@pytest.mark.parametrize("digits", [None, 6])
def test_a_hexapod_of_six_rus_legs(tmp_path, digits: int | None) -> None:
    found = describe(written_robot(tmp_path, six_rus(digits)))
    # Ten of the platform, eleven of each leg, three terms of friction of each motor.
    assert (found.dof, found.n_base) == (6, 94)


@pytest.mark.parametrize("digits", [4, 5, 6, 7, 8, 9])
def test_a_vertical_first_axis_stays_vertical_when_it_is_rounded(tmp_path, digits: int) -> None:
    """Two moments of the first body act only through the error of the axis: their columns are small."""
    found = describe(written_robot(tmp_path, turned_arm(digits, 0)))
    assert found.n_base == describe(written_robot(tmp_path, turned_arm(None, 0))).n_base
    assert "rounded-geometry" in codes(found.notices)


@pytest.mark.parametrize("digits", [4, 5, 7])
def test_a_sarrus_linkage_with_any_digits(tmp_path, digits: int) -> None:
    """The yaw at which the count was 13 with seven digits, without a word."""
    assert describe(written_robot(tmp_path, sarrus(digits, yaw=0.440))).n_base == 8


@pytest.mark.parametrize(("seed", "digits"), [(4, None), (4, 5), (4, 6), (3, 5)])
def test_a_hexapod_in_turned_frames_and_rounded(tmp_path, seed: int, digits: int | None) -> None:
    """Dropping one of several columns that depend on each other left another one with enlarged rounding."""
    assert describe(written_robot(tmp_path, hexapod_with_crosses(digits, seed))).n_base == 100


def test_random_hexapods_with_four_to_nine_digits(tmp_path) -> None:
    for seed in range(12):
        for digits in (4, 5, 6, 7, 8, 9):
            found = describe(written_robot(tmp_path, hexapod_with_crosses(digits, seed)))
            # With four digits rounding and geometry overlap in some of them: then it is reported.
            wrong = found.n_base != 100
            assert not wrong or {"rank-undecided", "rounded-geometry"} & set(codes(found.notices))
            assert not wrong or digits == 4


def test_rounding_is_read_from_the_digits_of_dimensions() -> None:
    assert rounding_of([0.3, 0.31, 0.0]) == 0.0  # meant as written
    assert rounding_of([0.3, 0.3102, 0.0]) == pytest.approx(5e-5)
    assert rounding_of([0.3, 0.31025, 0.0]) == pytest.approx(5e-6)
    assert rounding_of([0.1 * np.cos(0.4), np.sqrt(2.0)]) == 0.0  # full precision
    assert rounding_of([0.3, 0.116826, -0.276318]) == pytest.approx(5e-7)
    assert rounding_of([1.23456]) == pytest.approx(5e-6)
    # 0.45612 is one of six digits whose last happens to be zero.
    assert rounding_of([0.123456, 0.234561, 0.345612, 0.45612]) == pytest.approx(5e-7)
