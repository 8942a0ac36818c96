"""Cables of the robot file: what is read, what is refused, and what a robot on cables is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dynid.cases.free_motion.measured_motion import free_limits
from dynid.common.errors import InputError
from dynid.info import describe
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.cable import driven_cables, locked, without_cables
from dynid.mechanism.load import load_robot
from dynid.motion.columns import match
from dynid.motion.slots import slots

SHARED = Path(__file__).parents[2] / "shared" / "robots" / "cable4.json"
BUILT_IN = Path(load_robot("cable4").file)

ROBOT = """\
name: hanging
joints:
  - {name: pose, kind: free, parent: base, child: platform}
cables:
  - {name: c1, from: {body: base, xyz: [1, 0, 1]}, to: {body: platform, xyz: [0.1, 0, 0]}}
  - name: c2
    from: {body: base, xyz: [-1, 0.5, 1]}
    pulley: {radius: 0.03, axis: [0, 0, 1], x: [1, 0, 0]}
    to: {body: platform, xyz: [-0.1, 0, 0]}
start: {pose_qw: 1}
measured: [pose]
"""


def test_cables_have_coordinates_and_winches(load) -> None:
    robot = load(ROBOT)
    assert [cable.name for cable in driven_cables(robot)] == ["c1", "c2"]
    assert robot.coordinates[-2:] == ("c1", "c2")
    # The effort of a winch is its tension, and a tension shortens its cable.
    np.testing.assert_array_equal(robot.actuator_map[:, -2:], -np.eye(2))
    assert robot.cables[0].axis is None
    assert robot.cables[0].radius == 0.0
    assert robot.cables[1].radius == 0.03
    # Lengths stand where the start pose has them: the first pose is the description's own.
    np.testing.assert_allclose(assembly_of(robot).start[:7], [0, 0, 0, 1, 0, 0, 0], atol=1e-12)
    assert robot.start["c1"] == pytest.approx(np.hypot(0.9, 1.0), abs=1e-15)


def test_motors_may_be_listed_and_geared(load) -> None:
    robot = load(ROBOT + "actuators: [c2, {name: winch, on: {c1: -20}}]\n")
    np.testing.assert_array_equal(robot.actuator_map[:, -2:], [[0, -1], [-20, 0]])


def test_lengths_as_measured_coordinates_tell_the_pose() -> None:
    # Eight lengths of a fully constrained robot: forward kinematics, as any closure.
    robot = load_robot("cable8")
    assembly = assembly_of(robot)
    q = assembly.walk(np.random.default_rng(0), 10, reach=0.1)
    names = [robot.coordinates.index(cable.name) for cable in robot.cables]
    found = assembly.follow(q[:, -8:], np.array(names))
    # Newton in least squares: squares of steps of 3e-8.
    np.testing.assert_allclose(found, q, atol=1e-11)


def test_a_cable_may_have_tensions_of_its_own(load) -> None:
    limits = "limits: {cables: {tension: [20, 200]}, c1: {tension: [30, 150]}, pose: {x: 0.1}}\n"
    robot = load(ROBOT + limits)
    np.testing.assert_array_equal(free_limits(robot, ("c1", "c2")).tension, [[30, 150], [20, 200]])


def test_a_length_in_the_file_locks_a_cable(load) -> None:
    robot = load(ROBOT.replace("name: c1,", "name: c1, length: 1.4,"))
    assert [cable.name for cable in driven_cables(robot)] == ["c2"]
    assert [actuator.name for actuator in robot.actuators] == ["c2"]
    assert assembly_of(robot).dof == 5


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("body: platform, xyz: [0.1, 0, 0]", "body: plattform, xyz: [0.1, 0, 0]", "unknown body 'plattform'"),
        ("name: c2", "name: c1", "'c1' occurs twice"),
        ("name: c2", "name: pose", "'pose' occurs twice"),
        ("radius: 0.03", "radius: -0.03", "radius -0.03"),
        ("radius: 0.03", "diameter: 0.03", "diameter"),
        ("axis: [0, 0, 1], x: [1, 0, 0]", "axis: [0, 0, 0], x: [1, 0, 0]", "axis is zero"),
        ("x: [1, 0, 0]}", "x: [0, 0, 2]}", "along the swivel axis"),
        ("name: c1,", "name: c1, length: -2,", "length -2"),
        ("from: {body: base, xyz: [1, 0, 1]}", "from: {body: platform, xyz: [1, 0, 1]}", "to itself"),
        ("xyz: [-1, 0.5, 1]", "xyz: [-0.1, 0, 1]", "on its swivel axis"),
        ("xyz: [-1, 0.5, 1]", "xyz: [-0.14, 0, 0]", "inside its pulley"),
        ("xyz: [1, 0, 1]", "xyz: [0.1, 0, 0]", "no length"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_value(load, old: str, new: str, said: str) -> None:
    assert old in ROBOT
    with pytest.raises(InputError, match=said):
        load(ROBOT.replace(old, new))


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        ("[{swivel: c9}]", "unknown cable 'c9'"),
        ("[{swivel: c1}]", "no swivelling pulley"),
        ("[{swivel: c2, name: pose}]", "is taken"),
        ("[{swivel: c2, pose: platform}]", "or the swivel angle of a cable's pulley"),
    ],
)
def test_swivel_encoders_that_cannot_be_are_refused(load, measured: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(ROBOT.replace("measured: [pose]", f"measured: {measured}"))
    with pytest.raises(InputError, match="zero of the swivel angle"):
        load(
            ROBOT.replace(", x: [1, 0, 0]", "").replace("measured: [pose]", "measured: [pose, {swivel: c2}]")
        )


def test_a_swivel_encoder_reads_the_angle_about_the_axis(load) -> None:
    robot = load(
        ROBOT.replace("measured: [pose]", "measured: [pose, {swivel: c2, name: turn, sigma: 1e-3}]").replace(
            "measured: [pose,", "measured: [{joint: pose, sigma: [1e-3, 1e-3]},"
        )
    )
    assert robot.measured == ("pose", "turn")
    # From D = (-1, 0.5) to A = (-0.1, 0) about z.
    assert robot.start["turn"] == pytest.approx(np.arctan2(-0.5, 0.9), abs=1e-14)
    assert assembly_of(robot).dof == 6
    assert describe(robot).n_joints == 1


def test_locking_wants_one_length_for_every_cable() -> None:
    robot = load_robot("cable4")
    with pytest.raises(InputError, match="3 lengths for 4 cables"):
        locked(robot, [1.6, 1.6, 1.6])
    with pytest.raises(InputError, match="'cable9' is not a cable"):
        locked(robot, {"cable9": 1.6})
    with pytest.raises(InputError, match="cannot have length -1"):
        locked(robot, [1.6, 1.6, 1.6, -1.0])
    with pytest.raises(InputError, match="cannot be assembled"):
        assembly_of(locked(robot, [0.1, 0.1, 0.1, 0.1]))


def test_a_robot_can_lose_its_cables() -> None:
    bare = without_cables(load_robot("cable4"))
    assert bare.coordinates == ("pose_x", "pose_y", "pose_z", "pose_wx", "pose_wy", "pose_wz")
    assert not bare.actuators
    assert describe(load_robot("cable4"), open_loops=True).n_base == 10


def test_free_motion_is_described_per_unit_mass() -> None:
    found = describe(load_robot("cable4"))
    assert (found.dof, found.n_bodies, found.n_closures, found.n_standard, found.n_base) == (2, 1, 4, 10, 9)
    assert {(one.name, one.unit) for one in found.base} == {
        *((f"{axes}/M_platform", "m^2") for axes in ("XX", "XY", "XZ", "YY", "YZ", "ZZ")),
        *((f"M{axis}/M_platform", "m") for axis in "XYZ"),
    }
    assert [notice.code for notice in found.notices] == ["scale-unknown"]
    driven = describe(load_robot("cable8"))
    assert (driven.dof, driven.n_actuators, driven.n_base) == (6, 8, 10)
    assert describe(load_robot("cable3")).dof == 3


@pytest.mark.skipif(not SHARED.is_file(), reason="the papers' geometry is not beside this checkout")
def test_the_built_in_robot_is_that_of_the_paper() -> None:
    paper, robot = json.loads(SHARED.read_text()), load_robot("cable4")
    for i, cable in enumerate(robot.cables):
        np.testing.assert_array_equal(cable.D, paper["d"][i])
        np.testing.assert_array_equal(cable.A, paper["a"][i])
        np.testing.assert_array_equal(cable.axis, paper["swivel_axis"][i])
        assert cable.radius == paper["r"][i]
    believed, prior = paper["excitation"], robot.bodies["platform"].prior
    assert prior["M"] == believed["mass"]
    assert [prior[f"M{axis}"] / prior["M"] for axis in "XYZ"] == pytest.approx(believed["com"])
    specific = [prior[axes] / prior["M"] for axes in ("XX", "YY", "ZZ")]
    assert specific == pytest.approx(believed["specific_inertia_xx_yy_zz"])
    assert list(robot.limits["cables"]["tension"]) == believed["tension_N"]


def test_lengths_have_columns_of_their_own(load) -> None:
    robot = load(ROBOT.replace("measured: [pose]", "measured: [pose, c1, c2]"))
    found = match(("t", "x", "y", "z", "qw", "qx", "qy", "qz", "l0_1", "l0_c2"), slots(robot), {}, "log")
    assert found["q_8"].name == "l0_1"
    assert found["q_9"].name == "l0_c2"


def test_mujoco_plants_have_no_cables() -> None:
    pytest.importorskip("mujoco")
    from dynid.simulation.plant.mujoco_model import mujoco_model

    robot = load_robot("cable8")
    with pytest.raises(InputError, match="has cables, which the MuJoCo plant does not support"):
        mujoco_model(robot, {"M_platform": 8.0})
