"""Efforts in a wrong unit: told by priors, and by the size of the robot where there are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.base.structural import structural_base
from dynid.checks.plausible_masses import check_scale, likely_unit, reach
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import builtin_robots, load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.pipeline import identify_logs
from dynid.projection.model import MODELS
from dynid.projection.projection import choose_rows
from dynid.simulation.demo import built_in_experiment
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.estimate import ParameterEstimate
from tests.built_in import truth_of

ARMS = ("palletiser", "panda", "puma560", "scara", "ur5", "dualv", "rrr3")


def base_values(name: str):
    """True base parameters of a built-in robot, as an estimate without error would list them."""
    robot = replace(load_robot(name), rebuild=None)
    truth = truth_of(name)
    table, model = parameter_table(robot), MODELS["inverse"]
    rows = None if robot.loops else choose_rows(model.directions(robot), None)
    base = structural_base(robot, model, table, rows)
    chi = base.G @ np.array([truth.get(one.name, 0.0) for one in table])
    return robot, [
        ParameterEstimate(n, u, float(x), abs(0.01 * float(x)), 1.0, None)
        for n, u, x in zip(base.names, base.units, chi, strict=True)
    ]


def scaled(found, factor):
    return [replace(one, value=factor * one.value) for one in found]


@pytest.mark.parametrize("name", ["delta", "evra", "orthoglide", "stewart", "serial6", "fivebar", *ARMS])
def test_true_parameters_of_all_robots_are_plausible(name: str) -> None:
    assert name in builtin_robots()
    robot, found = base_values(name)
    assert list(check_scale(found, robot)) == []
    # Closed robots in kN too. In N mm those whose legs slide, and may be longer than they look, pass.
    for factor, unit in ((1e-3, "kN m"), (1e3, "mA or N mm")) if name in ARMS else ((1e-3, "kN m"),):
        (told,) = check_scale(scaled(found, factor), robot)
        assert told.code == "scale-implausible"
        assert unit in told.text


def test_32_a_log_in_newton_millimetres_is_told_with_its_unit() -> None:
    """R2 does not change; without priors the size of the arm speaks, with them their ratio."""
    demo = built_in_experiment("ur5", seed=2)
    robot = replace(load_robot("ur5"), rebuild=None)
    log = demo.logs[0]
    bare = replace(robot, bodies={n: replace(b, prior={}) for n, b in robot.bodies.items()})
    for own, code in ((bare, "scale-implausible"), (robot, "scale-differs")):
        estimate = identify_logs(own, [replace(log, tau=1e3 * log.tau)], (), Experiment(robot=own))
        (told,) = [one for one in estimate.warnings if one.code.startswith("scale")]
        assert told.code == code
        assert "mA or N mm" in told.text
        right = identify_logs(own, [log], (), Experiment(robot=own))
        assert not [one for one in right.warnings if one.code.startswith("scale")]


GANTRY = """
schema: dynid.robot/1
name: gantry
joints:
  - {name: x, kind: prismatic, parent: base, child: beam, axis: [1, 0, 0]}
  - {name: y, kind: prismatic, parent: beam, child: carriage, axis: [0, 1, 0]}
  - {name: z, kind: prismatic, parent: carriage, child: ram, axis: [0, 0, 1]}
drive: {"*": [Fv, Fs]}
limits: {x: {q: [-2, 2], dq: 2, ddq: 10LIMIT}, y: {q: [-2, 2], dq: 2, ddq: 10}, z: {q: [0, 1], dq: 1, ddq: 9}}
"""


@pytest.mark.parametrize("limit", ["", ", tau: 900"])
def test_efforts_of_a_gantry_are_compared_with_limits_or_not_at_all(tmp_path, limit: str) -> None:
    """Sliding axes of 2 m carry 60 kg or 60 t: without the limit of a drive the log alone has the scale."""
    file = tmp_path / "gantry.yaml"
    file.write_text(GANTRY.replace("LIMIT", limit))
    robot = load_robot(file)
    truth = {
        one.name: {"M": 20.0, "Fv": 5.0, "Fs": 9.0}.get(one.symbol, 0.0) for one in parameter_table(robot)
    }
    motion = random_motion(robot, seed=1, frequency=0.2, draws=3)
    log = simulate_log(robot, truth, motion, rate=200.0, duration=10.0, torque_sigma=1.0, seed=1)
    found = [
        identify_logs(robot, [replace(log, tau=factor * log.tau)], (), Experiment(robot=robot, auto="off"))
        for factor in (1.0, 1e3)
    ]
    codes = [[one.code for one in result.warnings if one.code.startswith("scale")] for result in found]
    levels = [result.verdict.level for result in found]
    alone = ["rests on the logs alone" in result.verdict.headline for result in found]
    if limit:
        assert (codes, levels) == ([["scale-unchecked"], ["scale-implausible"]], ["good", "bad"])
    else:
        assert (codes, levels) == ([["scale-unchecked"], ["scale-unchecked"]], ["good", "good"])
        assert alone == [True, True]


def test_a_light_robot_with_known_masses_is_plausible() -> None:
    """Of a long and thin arm the size suggests another unit; masses of the description confirm the scale."""
    robot, found = base_values("ur5")
    light = [replace(one, value=0.005 * one.value) for one in found]
    assert [one.code for one in check_scale(light, robot)] == ["scale-implausible"]
    known = [replace(one, prior=1.1 * one.value) for one in light]
    assert list(check_scale(known, robot)) == []


def test_a_mass_with_a_wide_interval_is_no_sign_of_too_small_efforts() -> None:
    """After a push, only rotary inertias of the arms stay below 10 %: they alone look like another unit."""
    robot, found = base_values("delta")
    for factor, codes in ((1.0, []), (1e-3, ["scale-implausible"])):
        doubtful = [
            replace(one, sigma=0.12 * abs(one.value), sigma_rel_percent=12.0) if one.unit != "kg m^2" else one
            for one in scaled(found, factor)
        ]
        assert [one.code for one in check_scale(doubtful, robot)] == codes


def test_units_are_guessed_near_their_factor_only() -> None:
    assert likely_unit(1040.0) == "mA or N mm"
    assert likely_unit(9.5).startswith("kgf")
    assert likely_unit(30.0) == likely_unit(-1000.0) == ""


def test_reach_is_the_longest_way_along_the_joints() -> None:
    # d1 + a2 + a3 + d4 + d5 + d6 and offsets of the UR5's URDF, 0.85 m of which is its working radius.
    assert reach(load_robot("ur5")) == pytest.approx(1.11, abs=0.02)
