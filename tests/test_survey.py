"""The first pass over a log of a closed robot: what it counts, tells and refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.coordinates import States
from dynid.kinematics.sensors import sensors_of
from dynid.motion.logs import log_from_arrays
from dynid.motion.motion import Motion
from dynid.motion.plan import plan_motions
from dynid.motion.settings import FilterSettings, MaskSettings
from dynid.projection.dead_points import passages
from dynid.projection.kinematics import ClosedKinematics, kinematics_along
from dynid.projection.survey import Survey, _jumps
from tests.built_in import written_robot

SLIDER_CRANK = """
name: slider-crank
gravity: [0, -9.81, 0]
joints:
  - {name: crank, kind: revolute, parent: base, child: crank_arm}
  - {name: elbow, kind: revolute, parent: crank_arm, child: rod, xyz: [0.1, 0, 0]}
  - {name: slide, kind: prismatic, parent: base, child: piston, axis: [1, 0, 0]}
loops:
  - {name: pin, kind: revolute, axis: [0, 0, 1], a: {body: rod, xyz: [0.25, 0, 0]}, b: {body: piston}}
start: {crank: 1.2, elbow: -1.6, slide: 0.27}
actuators: [slide]
"""


def motion_along(robot, q, dt=1e-3):
    t = dt * np.arange(len(q))
    log = log_from_arrays(robot, t, q, np.zeros((len(q), len(robot.actuators))))
    # Positions are exact: the filter must not blur them.
    plan = plan_motions([log], robot, FilterSettings(cutoff=None, kind="none"), MaskSettings())
    return Motion(log, plan[0])


def test_poses_of_a_log_serve_the_same_log_with_other_efforts_only(tmp_path, monkeypatch) -> None:
    robot = written_robot(tmp_path, SLIDER_CRANK)
    slide = 0.25 + 0.05 * np.sin(2e-3 * np.pi * np.arange(700))[:, None]
    motion = motion_along(robot, slide)
    surveyed = []
    first_pass = ClosedKinematics.__init__
    monkeypatch.setattr(
        ClosedKinematics,
        "__init__",
        lambda self, *given: (surveyed.append(given[1].log), first_pass(self, *given))[1],
    )
    kinematics = kinematics_along(robot, motion)
    reversed_effort = Motion(replace(motion.log, tau=-motion.log.tau), motion.plan)
    shorter = Motion(replace(motion.log, segments=((0, 400),)), motion.plan)
    moved = Motion(replace(motion.log, q=motion.log.q + 0.01), motion.plan)
    same, *others = (kinematics_along(robot, one) for one in (reversed_effort, shorter, moved))
    assert surveyed == [motion.log, shorter.log, moved.log]
    low, high = motion.usable()[0]
    measured = motion.states(low, high)
    np.testing.assert_array_equal(same.states(low, measured).q, kinematics.states(low, measured).q)
    assert not np.array_equal(others[1].states(low, measured).q, kinematics.states(low, measured).q)


def test_kept_rates_and_those_computed_again_are_the_same(tmp_path, monkeypatch) -> None:
    robot = written_robot(tmp_path, SLIDER_CRANK)
    slide = 0.25 + 0.05 * np.sin(2e-3 * np.pi * np.arange(700))[:, None]
    motion = motion_along(robot, slide)
    kinematics = kinematics_along(robot, motion)
    low, high = motion.usable()[0]
    some = np.arange(3, high - low, 7)
    kept = kinematics.kept_states(low, motion.states(low, high), some, with_directions=True)
    assert kept is not None
    monkeypatch.setattr("dynid.projection.kinematics.LOST", 0.0)  # as if pivots failed
    assert kinematics.kept_states(low, motion.states(low, high), some, with_directions=True) is None
    again = kinematics.states(low, motion.states(low, high), some)
    for name in ("q", "dq", "ddq", "N", "fine", "condition", "gaps"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(again, name))  # the same operations


def test_poses_are_the_same_wherever_a_block_begins(tmp_path) -> None:
    robot = written_robot(tmp_path, SLIDER_CRANK)
    t = np.arange(3000) * 1e-3
    slide = 0.25 + 0.05 * np.sin(2 * np.pi * t)[:, None]
    motion = motion_along(robot, slide)
    kinematics = kinematics_along(robot, motion)
    assert isinstance(kinematics, ClosedKinematics)
    low, high = motion.usable()[0]
    whole = kinematics.states(low, motion.states(low, high))
    for start, stop in ((low + 1, low + 2), (low + 255, low + 700), (low + 999, high)):
        part = kinematics.states(start, motion.states(start, stop))
        # Newton ends within rounding of the same pose; rates lose a digit.
        np.testing.assert_allclose(part.q, whole.q[start - low : stop - low], atol=1e-12)
        np.testing.assert_allclose(part.dq, whole.dq[start - low : stop - low], atol=1e-9)
    assert kinematics.notices == ()
    told = kinematics.residuals(motion.log.t[low:high:10])
    # One sensor for one freedom: nothing to disagree.
    assert set(told) == {
        "closure_residual",
        "singularity_distance",
    }  # one sensor for one freedom: nothing to disagree
    assert told["closure_residual"].max() < 1e-12  # rounding
    assert "loops closed to" in kinematics.choices["closure"]


def test_poses_known_from_another_filter_are_corrected_not_surveyed_again(tmp_path, monkeypatch) -> None:
    robot = written_robot(tmp_path, SLIDER_CRANK)
    t = np.arange(3000) * 1e-3
    slide = 0.25 + 0.05 * np.sin(2 * np.pi * t)[:, None]
    slide += 1e-5 * np.random.default_rng(1).normal(size=slide.shape)
    first = motion_along(robot, slide)
    other = Motion(first.log, replace(first.plan, kind="butterworth", cutoff=20.0, edge=60))
    kinematics_along(robot, first)
    expected = ClosedKinematics(robot, other)
    with monkeypatch.context() as without:
        without.setattr("dynid.projection.survey.survey", None)
        found = kinematics_along(robot, other, checked=True)
    low, high = other.usable()[0]
    for start, stop in ((low, low + 700), (low + 999, high)):
        moved = other.states(start, stop)
        new, old = found.states(start, moved), expected.states(start, moved)
        np.testing.assert_array_equal(new.fine, old.fine)
        # Newton ends within rounding of the same pose; rates lose a digit.
        np.testing.assert_allclose(new.q, old.q, atol=1e-12)
        np.testing.assert_allclose(new.dq, old.dq, atol=1e-9)


def test_doubt_about_the_description_excludes_poses_near_a_singular_one(tmp_path) -> None:
    """The slide comes near its end, where 10 mm more would open the loop; a shorter doubt excludes less."""
    robot = written_robot(tmp_path, SLIDER_CRANK)
    t = np.arange(3000) * 1e-3
    motion = motion_along(robot, 0.28 + 0.06 * np.sin(2 * np.pi * t)[:, None])  # stretched at 0.35 m
    low, high = motion.usable()[0]
    used, words = [], []
    for doubt in (0.0, 1e-4, 1e-2):
        doubted = replace(robot, uncertain={"zero_slide": doubt} if doubt else {})
        kinematics = kinematics_along(doubted, motion)
        assert isinstance(kinematics, ClosedKinematics)
        states = kinematics.states(low, motion.states(low, high))
        used.append(int(states.fine.sum()))
        words.append("excluded" in kinematics.choices["distance to singular poses"])
        if doubt == 1e-2:
            assert kinematics.nears_singular(doubt)
            # The farther from the end, the better is the pose known.
            assert states.condition[states.fine].max() < states.condition[~states.fine].min()
    assert used[0] == used[1] == high - low > used[2] > 0.5 * used[0]
    assert words == [False, True, True]


def test_usual_poses_stay_whatever_the_doubt_and_another_filter_excludes_as_many(tmp_path) -> None:
    robot = replace(written_robot(tmp_path, SLIDER_CRANK), uncertain={"zero_slide": 0.1})
    t = np.arange(3000) * 1e-3
    slide = 0.28 + 0.06 * np.sin(2 * np.pi * t)[:, None]
    log = log_from_arrays(robot, t, slide, np.zeros((len(t), len(robot.actuators))))
    used = []
    for cutoff in (40.0, 30.0):
        plan = plan_motions([log], robot, FilterSettings(cutoff=cutoff), MaskSettings())
        motion = Motion(log, plan[0])
        low, high = motion.usable()[0]
        kinematics = kinematics_along(robot, motion, checked=True)
        used.append(kinematics.states(low, motion.states(low, high)).fine.mean())
    assert 0.5 < used[0] < 1.0
    assert used[1] == pytest.approx(used[0], abs=0.01)  # other edges are cut


def test_no_pose_after_a_jump_is_used_where_the_description_is_doubted(tmp_path) -> None:
    robot = replace(written_robot(tmp_path, SLIDER_CRANK), uncertain={"zero_slide": 1e-3})
    motion = motion_along(robot, 0.28 + 0.02 * np.sin(np.arange(3000) * 6e-3)[:, None])
    found = Survey(jumped_at=[float(motion.log.t[1000])], dead_at=[float(motion.log.t[2000])])
    low, high = motion.usable()[0]
    # More than half of the log is lost with the jump alone: the dead point, which is later, changes nothing.
    assert found.uncertain(motion) == [(1000, high)]
    found = Survey(jumped_at=[float(motion.log.t[2500])], dead_at=[float(motion.log.t[2000])])
    assert found.uncertain(motion) == [(2000, high)]
    often = Survey(jumped_at=[float(motion.log.t[2500])], dead_at=[float(motion.log.t[low + 5])])
    assert often.uncertain(motion) == [(2500, high)]


def test_passages_are_changes_of_the_sign_of_the_determinant() -> None:
    rng = np.random.default_rng(1)
    N = rng.normal(size=(600, 7, 3)).cumsum(axis=0)
    N[:300, :3] = np.eye(3)  # the basis of a tracker: the measured coordinates are the independent ones
    N[100:200, 3:] = 0.01 * N[100:200, 3:]
    side = np.sign(np.linalg.det(N[:, :3]))
    turned = np.sign(np.linalg.det(np.swapaxes(N[1:], 1, 2) @ N[:-1]))
    expected = side[1:] * turned * side[:-1] < 0.0
    assert expected.any()
    np.testing.assert_array_equal(passages(N[:, :3], N), expected)


def test_singular_and_open_poses_are_counted_and_left_out(tmp_path) -> None:
    robot = written_robot(tmp_path, SLIDER_CRANK)
    t = np.linspace(-1.0, 1.0, 2001)
    # The piston reaches its dead centre (0.35 m) at t = 0; for a moment it claims to be beyond it.
    slide = 0.35 - 0.05 * t**2
    slide[1300:1305] = 0.36 + 1e-4 * np.arange(5)  # not one value: that would be a lost sample, and filled
    motion = motion_along(robot, slide[:, None])
    kinematics = kinematics_along(robot, motion)
    told = {notice.code: notice.text for notice in kinematics.notices}
    assert "5 poses (0.25 %" in told["not-assembled"]
    assert "singular and are excluded" in told["singular-poses"]
    low, high = motion.usable()[0]
    states = kinematics.states(low, motion.states(low, high))
    at = np.arange(low, high)
    assert not states.fine[np.isin(at, np.arange(1300, 1305))].any()
    assert not states.fine[np.abs(t[at]) < 1e-4].any()  # crank within 1e-3 rad of the dead centre
    # The false samples count as noise of 0.3 mm: to 0.17 s from the dead centre it decides the branch.
    assert states.fine[np.abs(t[at]) > 0.2].sum() > 1570


def test_a_log_on_another_branch_is_flagged(tmp_path) -> None:
    robot = written_robot(tmp_path, SLIDER_CRANK)
    assembly = assembly_of(robot)
    sensors = sensors_of(robot, ("slide",))
    q = assembly.track(0.27 + 0.01 * np.sin(np.linspace(0, 6, 100))[:, None], sensors)
    mirrored = q * np.array([-1.0, -1.0, 1.0])  # the crank below instead of above
    assert assembly.gaps(mirrored).max() < 1e-12
    both = np.concatenate([q[:50], mirrored[50:]])
    still, fine = np.zeros((100, 3)), np.ones(100, dtype=bool)
    states = States(both, still, still, np.zeros((100, 3, 1)), fine)
    assert np.flatnonzero(_jumps(assembly, 1e-3, states)).tolist() == [49]


def test_a_log_that_does_not_close_is_refused_with_sample_loop_and_gap(tmp_path) -> None:
    robot = written_robot(tmp_path, SLIDER_CRANK)
    with pytest.raises(InputError, match=r"at sample \d+ \(t = .* s\) 'pin' is off by 0\.\d+ m or rad"):
        kinematics_along(robot, motion_along(robot, np.full((500, 1), 0.6)))


def test_too_few_or_dependent_sensors_are_refused_with_what_can_still_move(tmp_path) -> None:
    loose = SLIDER_CRANK.replace(
        "{name: slide,", "{name: turn, kind: revolute, parent: base, child: plate}\n  - {name: slide,"
    )
    loose = loose.replace("kind: prismatic, parent: base", "kind: prismatic, parent: plate")
    robot = written_robot(tmp_path, loose)
    with pytest.raises(
        InputError, match=r"1 measured coordinates do not determine .* 2 degrees of freedom: with them fixed"
    ) as found:
        kinematics_along(robot, motion_along(robot, np.full((500, 1), 0.27)))
    assert "measure" in str(found.value.remedy)


@pytest.mark.parametrize("samples", [1, 2, 3])
def test_the_last_block_of_a_log_may_have_few_samples(tmp_path, samples: int, monkeypatch) -> None:
    monkeypatch.setattr("dynid.projection.survey._BLOCK", 400)
    robot = written_robot(tmp_path, SLIDER_CRANK)
    lost = 12  # at both ends, by the derivatives
    t = np.arange(800 + samples + lost) * 1e-3
    motion = motion_along(robot, 0.25 + 0.05 * np.sin(2 * np.pi * t)[:, None])
    ((low, high),) = motion.usable()
    assert (high - low) % 400 == samples
    kinematics = kinematics_along(robot, motion)
    assert isinstance(kinematics, ClosedKinematics)
    assert kinematics.notices == ()
