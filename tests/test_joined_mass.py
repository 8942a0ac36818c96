"""Free motion of robots with joints: what acts only together with the reference mass goes into it."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.cases.free_motion.measured_motion import free_limits, simulate_free_motions
from dynid.cases.free_motion.reference_mass import referred
from dynid.cases.free_motion.releases import Releasing
from dynid.experiment.experiment import Experiment
from dynid.info import describe
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.pipeline import identify_logs
from tests.built_in import written_robot

# A platform on four cables with an arm on a hinge.
SWINGARM = """
name: swingarm
joints:
  - {name: pose, kind: free, parent: base, child: platform}
  - {name: hinge, kind: revolute, parent: platform, child: arm, xyz: [0.05, 0, -0.1], axis: [0, 1, 0]}
cables:
  - {name: a, from: {body: base, xyz: [-1, -1, 1.5]}, to: {body: platform, xyz: [-0.2, -0.2, 0.1]}}
  - {name: b, from: {body: base, xyz: [1, -1, 1.5]}, to: {body: platform, xyz: [0.2, -0.2, 0.1]}}
  - {name: c, from: {body: base, xyz: [1, 1, 1.5]}, to: {body: platform, xyz: [0.2, 0.2, 0.12]}}
  - {name: d, from: {body: base, xyz: [-1, 1, 1.5]}, to: {body: platform, xyz: [-0.2, 0.2, 0.1]}}
start: {pose_qw: 1}
measured: [pose, hinge]
model: internal
"""
# A boom and a jib on hinges, held by a stay; a load on two cables.
CRANE = """
name: crane
joints:
  - {name: turn, kind: revolute, parent: base, child: boom, axis: [0, 0, 1]}
  - {name: lift, kind: revolute, parent: boom, child: jib, xyz: [0.2, 0, 0.5], axis: [0, 1, 0]}
  - {name: pose, kind: free, parent: base, child: load}
cables:
  - {name: a, from: {body: jib, xyz: [1.5, 0.1, 0]}, to: {body: load, xyz: [0.1, 0.1, 0.1]}}
  - {name: b, from: {body: jib, xyz: [1.5, -0.1, 0]}, to: {body: load, xyz: [0.1, -0.1, 0.1]}}
  - {name: stay, from: {body: base, xyz: [3, 0, 1.5]}, to: {body: jib, xyz: [1.0, 0, 0.05]}}
start: {turn: 0, lift: 0, pose_x: 1.6, pose_z: -0.6, pose_qw: 1}
measured: [turn, lift, pose]
model: internal
"""
TRUTH = {
    "platform": {
        "M": 5.0,
        "MX": 0.05,
        "MZ": 0.15,
        "XX": 0.08,
        "YY": 0.09,
        "ZZ": 0.07,
        "XY": 0.002,
        "YZ": -0.003,
    },
    "arm": {"M": 1.0, "MX": 0.01, "MZ": -0.2, "XX": 0.05, "YY": 0.051, "ZZ": 0.003, "XZ": 0.001},
}
CHI = {f"{symbol}_{body}": value for body, own in TRUTH.items() for symbol, value in own.items()}


def swings(robot, runs=6, seconds=4.0, rate=100.0):
    """A log of free motions about random poses of rest."""
    rng = np.random.default_rng(4)
    releasing = Releasing(robot, CHI, free_limits(robot, ("a", "b", "c", "d")), seconds, rate)
    drawn = releasing.drawn(rng, releasing.rests(rng, 4 * runs))
    fine = np.flatnonzero(releasing.over(drawn, seconds)[1] <= 1.0)[:runs]
    settings = {"rate": rate, "duration": seconds}
    return simulate_free_motions(robot, CHI, drawn.lengths[fine], drawn.starts[fine], **settings)


def test_an_arm_on_a_hinge_is_found_per_unit_of_both_masses(tmp_path) -> None:
    robot = written_robot(tmp_path, SWINGARM)
    truth = {parameter.name: CHI.get(parameter.name, 0.0) for parameter in parameter_table(robot)}
    found = identify_logs(robot, [swings(robot)], (), Experiment(robot=robot), truth=truth)
    [told] = [one for one in found.warnings if one.code == "mass-joined"]
    assert "per unit of M_platform + M_arm" in told.text
    assert len(found.parameters) == len(found.truth) == 16
    for one in found.parameters:
        # The seven-point formula at 100 Hz on swings below 5 Hz: some 1e-6 of the largest entries.
        assert one.value == pytest.approx(found.truth[one.name], abs=2e-6), one.name
    both = CHI["M_platform"] + CHI["M_arm"]
    # The arm's mass sits at its hinge, x = 0.05 and z = -0.1 of the platform.
    assert found["MX/M_platform"].value == pytest.approx((CHI["MX_platform"] + 0.05 * 1.0) / both, rel=1e-4)
    assert found["MZ/M_platform"].value == pytest.approx((CHI["MZ_platform"] - 0.1 * 1.0) / both, rel=1e-4)
    assert found["MZ_arm/M_platform"].value == pytest.approx(CHI["MZ_arm"] / both, rel=1e-4)


def test_counts_leave_one_scale_out(tmp_path) -> None:
    """As many parameters as independent columns, less one for the scale."""
    assert describe(written_robot(tmp_path, SWINGARM)).n_base == 16
    crane = written_robot(tmp_path, CRANE)
    assert describe(crane).n_base == 17
    joined = referred(crane, parameter_table(crane), [()]).reference.joined
    assert [one.name for one in joined] == ["ZZ_boom", "ZZ_jib"]
    assert referred(load_robot("cable4"), parameter_table(load_robot("cable4")), [()]).reference.joined == ()


def test_known_masses_scale_only_together(tmp_path) -> None:
    """M of the platform alone leaves the sum open; with the arm's mass all of it is known."""
    one = written_robot(tmp_path, SWINGARM + "bodies: {platform: {known: {M: 5}}}\n")
    found = referred(one, parameter_table(one), [()])
    assert not found.reference.given
    both = written_robot(tmp_path, SWINGARM + "bodies: {platform: {known: {M: 5}}, arm: {known: {M: 1}}}\n")
    found = referred(both, parameter_table(both), [()])
    assert found.reference.given
    assert found.reference.mass == pytest.approx(6.0, rel=1e-9)  # shares are found to rounding
