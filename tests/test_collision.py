"""Self-collision and the floor: distances, capsules of descriptions, motions that keep away."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.cli import main
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.excitation.excite import Excitation, excite
from dynid.excitation.files import excitation_document, report_page, summary
from dynid.excitation.inputs import plan_inputs
from dynid.excitation.optimal.paths import RobotStates
from dynid.excitation.optimal.soft_bodies import Collisions, nearest_points, neighbours
from dynid.excitation.plan import assumed_floor, make_plan
from dynid.experiment.file import load_experiment
from dynid.experiment.tasks import ExciteSettings
from dynid.mechanism.collision_shapes import along_axis, around_box
from dynid.mechanism.frame import Frame, rpy_matrix
from dynid.mechanism.load import load_robot
from dynid.mechanism.variant import variant
from dynid.report.robot_view import drawn_on

QUICK = {"starts": 1, "hops": 0, "period": 4.0}
# Two links that swing in the vertical plane x z above a floor; the shoulder is at a height of 0.6 m.
PENDULUM = """
name: pendulum
joints:
  - {name: shoulder, kind: revolute, parent: base, child: upper, xyz: [0, 0, 0.6], axis: [0, 1, 0]}
  - {name: elbow, kind: revolute, parent: upper, child: lower, xyz: [0.5, 0, 0], axis: [0, 1, 0]}
  - {name: tool, kind: fixed, parent: lower, child: tip, xyz: [0.4, 0, 0]}
drive: {"*": [Fv, Fs]}
bodies:
  upper: {prior: {M: 4, com: [0.25, 0, 0], YY: 0.4}}
  lower: {prior: {M: 2, com: [0.2, 0, 0], YY: 0.15}}
limits:
  shoulder: {q: [-2, 2], dq: 3, ddq: 15}
  elbow: {q: [-2.9, 2.9], dq: 4, ddq: 20}
"""
SHAPES = """<robot name="shapes">
<link name="world"/>
<link name="arm"><collision><origin xyz="0.2 0 0" rpy="0 1.5707963267948966 0"/><geometry>
  <cylinder radius="0.05" length="0.4"/></geometry></collision></link>
<link name="hand"><collision><geometry><box size="0.1 0.6 0.2"/></geometry></collision>
  <collision><origin xyz="0 0 1"/><geometry><sphere radius="0.3"/></geometry></collision>
  <collision><geometry><mesh filename="hand.stl"/></geometry></collision></link>
<joint name="a" type="revolute"><parent link="world"/><child link="arm"/><axis xyz="0 0 1"/>
  <limit lower="-1" upper="1" velocity="2" effort="10"/></joint>
<joint name="b" type="revolute"><parent link="arm"/><child link="hand"/><origin xyz="0.4 0 0"/>
  <axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="2" effort="10"/></joint>
</robot>"""
GEOMS = """<mujoco><worldbody><body name="arm"><joint name="a" axis="0 0 1" pos="0.1 0 0"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<frame pos="0 0 1"><geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.05"/></frame>
<geom type="box" size="0.1 0.3 0.1" pos="0 0 2" contype="0" conaffinity="0"/>
<geom type="cylinder" size="0.1 0.2" pos="0.3 0 0"/></body></worldbody></mujoco>"""


def pendulum(tmp_path: Path, **settings: object) -> Excitation:
    file = tmp_path / "pendulum.yaml"
    file.write_text(PENDULUM)
    found = excite(str(file), ExciteSettings(**{**QUICK, **settings}))  # type: ignore[arg-type]
    assert isinstance(found, Excitation)
    return found


def lowest(found: Excitation) -> float:
    """Height of the lowest joint, elbow or tip along the run, by plane trigonometry."""
    q = found.run.sampled(500.0).q
    elbow = 0.6 - 0.5 * np.sin(q[:, 0])
    return float(min(elbow.min(), (elbow - 0.4 * np.sin(q.sum(axis=1))).min()))


def distances(ends: Float[Array, "4 n 3"]) -> Float[Array, "n"]:
    """Of segments with ends 0 and 1 from segments with ends 2 and 3."""
    (a,), (b,) = nearest_points(ends.reshape(2, 2, -1, 3), np.array([0]), np.array([1]))
    return np.linalg.norm(a - b, axis=1)


def test_nearest_points_of_random_segments_agree_with_a_dense_search() -> None:
    rng = np.random.default_rng(0)
    ends = rng.normal(size=(4, 300, 3))
    ends[1, :40] = ends[0, :40]  # spheres
    ends[3, 40:80] = ends[2, 40:80] + (ends[1, 40:80] - ends[0, 40:80])  # parallel
    found = distances(ends)
    u = np.linspace(0.0, 1.0, 201)
    on_a = ends[0][:, None] + u[:, None] * (ends[1] - ends[0])[:, None]
    on_b = ends[2][:, None] + u[:, None] * (ends[3] - ends[2])[:, None]
    brute = np.array(
        [np.linalg.norm(x[:, None] - y[None], axis=2).min() for x, y in zip(on_a, on_b, strict=True)]
    )
    assert np.all(found <= brute + 1e-12)  # rounding
    # The grid misses the nearest points by at most half a step on either segment.
    steps = (np.linalg.norm(ends[1] - ends[0], axis=1) + np.linalg.norm(ends[3] - ends[2], axis=1)) / 400
    assert np.all(brute <= found + steps + 1e-12)


def test_poses_that_are_not_finite_have_no_distance() -> None:
    ends = np.zeros((2, 2, 1, 3))
    ends[0, 0, 0, 0] = np.nan
    a, b = nearest_points(ends, np.array([0]), np.array([1]))
    assert not np.isfinite(a - b).all()


def test_capsules_contain_their_shapes() -> None:
    """Corners of random boxes and rims of random cylinders."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        place = Frame(rpy_matrix(tuple(rng.uniform(-3, 3, 3))), rng.normal(size=3))
        halves = rng.uniform(0.01, 1.0, 3)
        corners = np.stack(np.meshgrid(*([-1.0, 1.0],) * 3), axis=-1).reshape(-1, 3) * halves
        turn = rng.uniform(0, 6.28, 8)
        rim = np.column_stack([halves[0] * np.cos(turn), halves[0] * np.sin(turn), np.full(8, halves[1])])
        cases = ((around_box(place, halves), corners), (along_axis(place, 2, halves[1], halves[0]), rim))
        for capsule, points in cases:
            points = place.p + points @ place.R.T
            start, end = (np.tile(x, (len(points), 1)) for x in (capsule.start, capsule.end))
            distance = distances(np.array([start, end, points, points]))
            assert np.all(distance <= capsule.radius + 1e-6)  # segments of no length are regularised


def test_collision_shapes_of_a_urdf_and_an_mjcf(tmp_path: Path) -> None:
    (tmp_path / "shapes.urdf").write_text(SHAPES)
    robot = load_robot(str(tmp_path / "shapes.urdf"))
    (arm,) = robot.capsules["arm"]
    np.testing.assert_allclose(sorted([arm.start[0], arm.end[0]]), [0.0, 0.4], atol=1e-12)  # rounding
    assert arm.radius == 0.05
    box, sphere = robot.capsules["hand"]  # the mesh gives none
    np.testing.assert_allclose(np.abs([box.start, box.end])[:, 1], 0.3, atol=1e-12)
    assert box.radius == pytest.approx(np.hypot(0.05, 0.1))
    np.testing.assert_allclose([sphere.start, sphere.end], [[0, 0, 1]] * 2)
    (tmp_path / "geoms.xml").write_text(GEOMS)
    shapes = load_robot(str(tmp_path / "geoms.xml")).capsules["arm"]
    assert [one.radius for one in shapes] == [0.05, 0.1]  # the box takes no part in contacts
    np.testing.assert_allclose(
        [shapes[0].start, shapes[0].end], np.array([[0.0, 0.0, 1.0], [0.4, 0.0, 1.0]]), atol=1e-12
    )
    np.testing.assert_allclose(np.abs([shapes[1].start, shapes[1].end]), [[0.3, 0, 0.2]] * 2, atol=1e-12)


def test_unreadable_shapes_do_not_stop_an_identification(tmp_path: Path) -> None:
    bad = SHAPES.replace('radius="0.05"', 'radius="thick"').replace('"0.1 0.6 0.2"', '"0.1 -0.6 0.2"')
    (tmp_path / "bad.urdf").write_text(bad)
    robot = load_robot(str(tmp_path / "bad.urdf"))
    assert "arm" not in robot.capsules
    assert len(robot.capsules["hand"]) == 1


def test_bodies_fixed_to_a_neighbour_are_neighbours(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PENDULUM + "capsules:\n" + "".join(
        f"  {body}: {{from: [0, 0, 0], to: [0.1, 0, 0], radius: 0.05}}\n"
        for body in ("base", "upper", "lower", "tip")
    ))  # fmt: skip
    near = neighbours(load_robot(str(tmp_path / "p.yaml")))
    assert frozenset(("upper", "tip")) in near
    assert frozenset(("lower", "tip")) in near
    assert frozenset(("base", "lower")) not in near


@pytest.mark.parametrize("known", [True, False])
def test_the_last_link_is_checked_to_twice_its_centre_of_mass_or_named(tmp_path: Path, known: bool) -> None:
    """A link without shape and next joint was not checked, and nothing said so."""
    text = "\n".join(line for line in PENDULUM.splitlines() if "tool" not in line)
    file = tmp_path / "pendulum.yaml"
    file.write_text(
        text if known else text.replace("  lower: {prior: {M: 2, com: [0.2, 0, 0], YY: 0.15}}", "")
    )
    found = excite(str(file), ExciteSettings(floor=0.3, **QUICK))  # type: ignore[arg-type]
    codes = [one.code for one in found.notices]
    assert ("bodies-unchecked" in codes) == (not known)
    if known:
        assert isinstance(found, Excitation)
        assert lowest(found) > 0.3


def test_a_motion_keeps_above_the_floor_that_it_would_hit(tmp_path: Path) -> None:
    """Heights by plane trigonometry, not by capsules; the approach and the way back count too."""
    free = pendulum(tmp_path, floor="none")
    assert "floor-unchecked" in [one.code for one in free.notices]
    assert lowest(free) < 0.3
    kept = pendulum(tmp_path, floor=0.3)
    assert "floor-unchecked" not in [one.code for one in kept.notices]
    assert "capsules-assumed" in [one.code for one in kept.notices]
    assert lowest(kept) > 0.3
    document = excitation_document(kept)["collision"]
    radius = 0.02 * 0.9  # of the length of both links
    assert document["smallest"]["floor"]["distance"] == pytest.approx(lowest(kept) - radius - 0.3, abs=1e-3)
    off = pendulum(tmp_path, floor=0.3, collisions=False)
    assert [one.code for one in off.notices if "collisions" in one.code] == ["collisions-off"]
    assert not excitation_document(off)["collision"]["checked"]


@pytest.mark.parametrize("name", ["ur5", "panda", "scara"])
def test_built_in_arms_have_capsules_of_their_own(name: str) -> None:
    """Nothing is assumed, nothing always touches, and every capsule is near a joint of its body."""
    inputs, _ = plan_inputs(name, ExciteSettings(**QUICK))  # type: ignore[arg-type]
    check = make_plan(inputs).check
    assert {note.code for note in check.notices()} == {"floor-assumed"}
    robot = check.shaped.robot
    assert set(robot.capsules) == {"base", *robot.bodies}
    for body, capsules in robot.capsules.items():
        joints = [joint.placement.p for joint in robot.joints if joint.parent == body and body != "base"]
        points = np.array([np.zeros(3), *joints])
        for end in (end for capsule in capsules for end in (capsule.start, capsule.end)):
            # 0.31 m: the joints of link 5 of panda are at the wrist, and it begins at the elbow.
            assert np.linalg.norm(points - end, axis=1).min() < 0.32


def planned_floor(robot: str, **settings: object) -> tuple[float | None, str]:
    inputs, _ = plan_inputs(robot, ExciteSettings(**{**QUICK, **settings}))  # type: ignore[arg-type]
    floor = make_plan(inputs).check.floor
    return floor.height, floor.why


RULE = {  # changed text of the pendulum: height of the floor, or a part of why there is none
    "": 0.0,
    # The tip is 0.3 m below the base plane; radius 18 mm, clearance 10 mm, margin 2 mm; down to the next cm.
    "start: {shoulder: pi/2}\n": -0.33,
    "gravity: [-9.81, 0, 0]\n": "gravity does not act along -z",
    "gravity: [0, 0, 9.81]\n": "gravity does not act along -z",
    "capsules: {base: {from: [0, 0, 0], to: [0, 0, 1], radius: 0.1}}\n": 0.0,
    "xyz: [0, 0, 0]": "height of the first joint that lifts bodies",
    "xyz: [0, 0, 0.03]": "height of the first joint that lifts bodies",
    "xyz: [0, 0, 0]\nstart: {shoulder: 1.5}\n": "farther below its base frame than above",
}


@pytest.mark.parametrize("change", RULE)
def test_the_floor_is_assumed_only_where_the_base_frame_is_at_the_foot(tmp_path: Path, change: str) -> None:
    place, _, more = change.partition("\n") if change.startswith("xyz") else ("xyz: [0, 0, 0.6]", "", change)
    file = tmp_path / "pendulum.yaml"
    file.write_text(PENDULUM.replace("xyz: [0, 0, 0.6]", place) + more)
    height, why = planned_floor(str(file))
    wanted = RULE[change]
    if isinstance(wanted, str):
        assert height is None
        assert wanted in why
    else:
        assert height == pytest.approx(wanted)


def test_the_floor_of_built_in_robots() -> None:
    def assumed(name: str, **settings: object) -> float | None:
        return assumed_floor(plan_inputs(name, ExciteSettings(**settings))[0])  # type: ignore[arg-type]

    assert assumed("ur5") == 0.0
    assert assumed("puma560") is None  # its base frame is at the shoulder
    assert assumed("dualv") is None  # no capsules
    # The forearm points below the table: then the robot stands on something, or the pose is wrong.
    assert assumed("ur5", home=(0.0, 0.6, 1.2, 0.0, 0.0, 0.0)) is None


def test_files_and_options_write_the_floor_alike(tmp_path: Path) -> None:
    (tmp_path / "pendulum.yaml").write_text(PENDULUM)
    file = tmp_path / "swing.yaml"
    file.write_text("robot: pendulum.yaml\nexcite: {floor: none, period: 4, starts: 1, hops: 0}\n")
    asked = load_experiment(file, need_logs=False).excite
    assert asked is not None
    assert asked.floor == "none"
    options = ("--floor", "none", "--period", "4", "--starts", "1", "--hops", "0")
    documents = []
    for given in ((str(file),), (str(tmp_path / "pendulum.yaml"), *options)):
        out = tmp_path / str(len(documents))
        assert CliRunner().invoke(main, ["excite", *given, "--out", str(out)]).exit_code == 0
        documents.append(json.loads((out / "excitation.json").read_text()))
    assert documents[0] == documents[1]
    assert documents[0]["collision"]["floor"] is None
    refused = CliRunner().invoke(main, ["excite", "ur5", "--floor", "low"])
    assert refused.exit_code == 2
    assert "'low' is not a number" in refused.output


def test_no_motion_is_refused_for_a_floor_that_is_only_assumed(tmp_path: Path) -> None:
    """The tip has to work below the plane of the base, so the robot stands on a pedestal."""
    below = "  tip: {z: [-0.25, -0.05]}\n"
    file = tmp_path / "pendulum.yaml"
    file.write_text(PENDULUM + below)
    found = excite(str(file), ExciteSettings(**QUICK))  # type: ignore[arg-type]
    assert isinstance(found, Excitation)
    (said,) = [one for one in found.notices if "floor" in one.code]
    assert said.level == "care"
    assert "no motion above an assumed floor at 0 m" in said.text
    assert found.plan.check.floor.height is None
    assert found.settings.floor is None  # as asked
    with pytest.raises(InputError, match="cannot be met"):
        excite(str(file), ExciteSettings(**QUICK, floor=0.0))  # type: ignore[arg-type]
    file.write_text(
        PENDULUM + "  tip: {z: [5, 6]}\n"
    )  # out of reach: refused for this, with or without a floor
    with pytest.raises(InputError, match="z of 'tip'"):
        excite(str(file), ExciteSettings(**QUICK))  # type: ignore[arg-type]


def test_a_journal_of_a_run_without_floor_is_no_reason_to_drop_the_floor(tmp_path: Path) -> None:
    file, journal = tmp_path / "pendulum.yaml", tmp_path / "starts.jsonl"
    file.write_text(PENDULUM)
    excite(str(file), ExciteSettings(**QUICK, floor="none"), journal=journal)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="another run"):
        excite(str(file), ExciteSettings(**QUICK), journal=journal)  # type: ignore[arg-type]


def test_a_given_floor_is_normal_to_gravity(tmp_path: Path) -> None:
    """On a wall, `up` is the x axis of the base here: elbow and tip by plane trigonometry."""
    file = tmp_path / "pendulum.yaml"
    file.write_text(PENDULUM + "gravity: [-9.81, 0, 0]\n")
    found = excite(str(file), ExciteSettings(**QUICK, floor=0.2))  # type: ignore[arg-type]
    assert isinstance(found, Excitation)
    q = found.run.sampled(500.0).q
    tip = 0.5 * np.cos(q[:, 0]) + 0.4 * np.cos(q.sum(axis=1))
    assert tip.min() > 0.2 + 0.018 + 0.01 - 1e-9  # radius and clearance
    page = report_page(found)
    assert '"up":[1.0,0.0,0.0]' in page.replace("-0.0", "0.0")


def test_a_start_pose_in_the_floor_is_replaced_by_the_middle_of_the_ranges(tmp_path: Path) -> None:
    file = tmp_path / "pendulum.yaml"
    file.write_text(PENDULUM + "start: {shoulder: 1.5}\n")  # the elbow is 0.1 m above the base
    found = excite(str(file), ExciteSettings(floor=0.3, **QUICK))  # type: ignore[arg-type]
    assert isinstance(found, Excitation)
    assert "home-moved" in [one.code for one in found.notices]
    assert [part.mark for part in found.run.parts] == ["approach", "motion", "return"]
    np.testing.assert_array_equal(found.run.home, 0.0)  # limits are -2 to 2 and -2.9 to 2.9
    assert lowest(found) > 0.3
    assert "at rest at 0,0 (shoulder, elbow)" in summary(found)


def test_a_floor_above_the_robot_is_refused(tmp_path: Path) -> None:
    """The upper arm is mounted on the base and always below it: then the lower arm cannot stay above."""
    with pytest.raises(InputError, match="limit on height of 'lower' cannot be met"):
        pendulum(tmp_path, floor=1.2)


def test_slopes_of_distances_and_heights_are_derivatives(tmp_path: Path) -> None:
    """Against central differences of the excess."""
    inputs, _ = plan_inputs("ur5", ExciteSettings(**QUICK, floor=-0.2))  # type: ignore[arg-type]
    plan = make_plan(inputs)
    y = np.random.default_rng(3).uniform(-1.0, 1.0, (20, 6))
    still, h = np.zeros_like(y), 1e-6

    def at(pose: np.ndarray) -> RobotStates:
        found = plan.path.states((pose, still, still))
        assert found is not None
        return found

    for limit in plan.check.limits:
        slopes = limit.slopes(at(y))[0]
        for j in range(6):
            step = h * np.eye(6)[j]
            ahead, behind = (limit.excess(at(y + s * step)) for s in (1, -1))
            numeric = (ahead - behind) / (2 * h)
            # Where the nearest point changes from one end to another, the difference has a kink: rare.
            assert np.quantile(np.abs(slopes[..., j] - numeric), 0.98) < 1e-6 * np.abs(numeric).max() + 1e-7
    assert isinstance(plan.check.pairs, Collisions)


def test_bodies_keep_the_clearance_and_the_page_shows_it(tmp_path: Path) -> None:
    found = pendulum(tmp_path, floor=-0.2, clearance=0.05)
    near = found.plan.check.along(found.run.states(found.run.times(200.0)))
    # limits hold between samples; the assumed capsules of the links are those that are drawn
    assert near["floor"].distance.min() > 0.05 - 1e-9
    assert excitation_document(found)["collision"]["smallest"]["floor"]["distance"] > 0.05 - 1e-9
    page = report_page(found)
    scene = drawn_on(page)
    assert scene is not None
    assert (scene["floor"], scene["assumed"], scene["up"]) == (-0.2, False, [0.0, 0.0, 1.0])
    assert "smallest distance to the floor" in page
    with pytest.raises(InputError, match="clearance"):
        ExciteSettings(clearance=-0.01).check()


def test_a_sub_chain_keeps_no_capsules_of_bodies_that_it_lacks() -> None:
    robot = load_robot("ur5")
    part = variant(robot, bodies=["shoulder_link", "upper_arm_link"])
    assert {"shoulder_link", "upper_arm_link"} <= part.capsules.keys() <= {"base", *part.bodies}
    assert len(part.capsules) < len(robot.capsules)
