"""Alarms that must sound, and some that must not: shared motors, gravity, scale, contacts, poor fits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dynid.checks.check import Finished
from dynid.checks.estimate import unexplained
from dynid.checks.plausible_masses import check_scale, placeholder_masses, reach
from dynid.checks.residuals import check_residuals
from dynid.checks.second_looks import away_from_reversals
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.linear_fit import linear_fit
from dynid.mechanism.frame import rpy_matrix
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Payload
from dynid.mechanism.parameters import parameter_table
from dynid.motion.logs import log_from_arrays
from dynid.pipeline import identify_logs
from dynid.problem import as_asked, prepare
from dynid.report.html import report_html
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.estimate import NOT_TESTED, ParameterEstimate, ResidualTest, Validation
from dynid.validation.hypotheses import other_clocks, other_gravity
from tests.built_in import codes, written_robot
from tests.wrist import Setup, wrist_log

# A beam that two motors push, one at each end; the closed loop holds its feet together.
GANTRY = """
schema: dynid.robot/1
name: gantry
joints:
  - {name: xl, kind: prismatic, parent: base, child: beam, axis: [1, 0, 0], xyz: [0, -1, 0]}
  - {name: xr, kind: prismatic, parent: base, child: foot, axis: [1, 0, 0], xyz: [0, 1, 0]}
  - {name: y, kind: prismatic, parent: beam, child: carriage, axis: [0, 1, 0], xyz: [0, 1, 0.5]}
  - {name: z, kind: prismatic, parent: carriage, child: ram, axis: [0, 0, 1]}
loops: [{name: weld, kind: weld, a: {body: beam, xyz: [0, 2, 0]}, b: {body: foot}}]
actuators: [xl, xr, y, z]
measured: [xl, y, z]
drive: {"*": [Fv, Fs, Off]}
limits: {xl: {q: [-1, 1], dq: 2, ddq: 10}, y: {q: [-1, 1], dq: 2, ddq: 10}, z: {q: [-1, 1], dq: 1, ddq: 9}}
"""
MASSES = {"M_beam": 40.0, "M_foot": 5.0, "M_carriage": 15.0, "M_ram": 5.0}
SLIDER_CRANK = """
schema: dynid.robot/1
name: slider-crank
joints:
  - {name: crank, kind: revolute, parent: base, child: disc, axis: [0, 1, 0]}
  - {name: pin, kind: revolute, parent: disc, child: rod, axis: [0, 1, 0], xyz: [0.06, 0, 0]}
  - {name: slide, kind: prismatic, parent: base, child: piston, axis: [1, 0, 0]}
loops: [{name: bolt, kind: revolute, axis: [0, 1, 0], a: {body: rod, xyz: [0.2, 0, 0]}, b: {body: piston}}]
actuators: [crank]
start: {slide: 0.26}
"""
LINEAR_AXIS = """
schema: dynid.robot/1
name: linear axis
joints:
  - {name: rail, kind: prismatic, parent: base, child: sledge, axis: [1, 0, 0]}
  - {name: lift, kind: prismatic, parent: sledge, child: fork, axis: [0, 0, 1], xyz: [0, 0.1, 0.2]}
limits: {rail: {q: [0, 12], dq: 2, ddq: 2}, lift: {q: [0, 1], dq: 1, ddq: 2}}
"""


def checks_of(robot, log):
    experiment = Experiment(robot=robot)
    problem = prepare(robot, [log], experiment)
    fit = linear_fit(problem, experiment)
    return Finished(fit).answered(check_residuals(fit))


@cache
def ur5_log(noise: float = 1.0):
    """The UR5, and ten seconds of it; the noise is that of its demo times a factor."""
    robot = replace(load_robot("ur5"), rebuild=None)
    demo = read_demo(demo_file("ur5"), robot)
    motion = random_motion(robot, seed=7, frequency=0.1, draws=3)
    sigma = noise * np.asarray(demo.torque_sigma)
    log = simulate_log(robot, demo.truth, motion, rate=250.0, duration=10.0, torque_sigma=sigma, seed=1)
    return robot, log


@cache
def gantry_log(folder, seed: int, tension: float = 0.0):
    robot = written_robot(folder, GANTRY)
    truth = {
        one.name: MASSES.get(one.name, 10.0 * one.name.startswith("F")) for one in parameter_table(robot)
    }
    motion = random_motion(robot, seed=seed, frequency=0.1, draws=3)
    return robot, simulate_log(
        robot, truth, motion, rate=400.0, duration=10.0, torque_sigma=1.0, seed=seed + 100, tension=tension
    )


@pytest.mark.parametrize("seed", range(2))
def test_noise_of_a_motor_that_shares_a_row_is_no_gain(tmp_path, seed: int) -> None:
    """Beside the parameters its column holds its own noise alone, which the residuals hold too: s = 100 %."""
    found = checks_of(*gantry_log(tmp_path, seed))
    assert "gain" not in codes(found.notices)
    assert "gain of xl" in found.choices[NOT_TESTED]


def test_a_wrong_gain_of_a_motor_that_shares_a_row_shows_beside_internal_tension(tmp_path) -> None:
    robot, log = gantry_log(tmp_path, 5, 30.0)
    assert "gain" not in codes(checks_of(robot, log).notices)
    tau = log.tau.copy()
    tau[:, 0] *= 1.2
    (told,) = [one for one in checks_of(robot, replace(log, tau=tau)).notices if one.code == "gain"]
    # One motor against the other: which of the two is wrong, no motion of one freedom tells.
    assert "cannot be separated with this motion from gain of x" in told.text


@pytest.mark.parametrize("degrees", [180.0, 10.0, 3.0])
def test_a_wrong_gravity_is_called_so_and_nothing_else(degrees: float) -> None:
    robot, log = ur5_log()
    angle = np.deg2rad(degrees)
    wrong = replace(robot, gravity=9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle)]))
    found = checks_of(wrong, log)
    assert codes(found.notices) == ["gravity-off"]
    text = found.notices[0].text
    assert ("upside down" in text) == (degrees > 90.0)
    turned = float(text.partition("rotated by ")[2].partition(" degrees")[0])
    # Noise of some 0.5 %: a tenth of a degree.
    assert turned == pytest.approx(degrees, abs=0.3)
    one = next(test for test in found.tests if test.test == "gravity")
    assert one.warned
    assert one.unit == "m/s^2"


@pytest.mark.parametrize(("described", "words"), [(5.0, "rotated by 5 degrees"), (180.0, "upside down")])
def test_each_other_gravity_is_tried_once_and_named_by_its_angle(described: float, words: str) -> None:
    robot, log = ur5_log()
    angle, down = np.deg2rad(described), (0.0, 0.0, -9.81)
    wrong = replace(robot, gravity=9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle)]))
    measured = ResidualTest("gravity", "base", 1.0, "m/s^2", None, 0.0, True, vector=down)
    tried = {tuple(one.mechanism.gravity.round(6)): one for one in other_gravity(wrong, (log,), [measured])}
    assert len(tried) == len(list(other_gravity(wrong, (log,), [measured])))
    assert tried[down].notice.text.endswith(f"seems to be {words}")
    assert tried[down].fitted == 0


def test_a_clock_twice_too_fast_is_named_as_such() -> None:
    """Accelerations four times too large need gravity four times as large, and gravity has one size."""
    robot, log = ur5_log()
    fast = log_from_arrays(robot, 0.5 * log.t, log.q, log.tau)
    (found,) = [one for one in checks_of(robot, fast).notices if one.code == "gravity-off"]
    # Noise of the direction and of the size of gravity: some tenths of a percent.
    factor = float(found.text.partition("times were ")[2].partition(" times")[0])
    assert factor == pytest.approx(2.0, rel=0.01)
    assert found.change["columns"]["t"]["scale"] == pytest.approx(factor, rel=5e-3)  # digits shown
    measured = ResidualTest("gravity", "base", 1.0, "m/s^2", None, 0.0, True, vector=(0.0, 0.0, -22.07))
    (tried,) = [one for one in other_gravity(robot, (log,), [measured]) if one.fitted]
    assert "as if times were 1.5 times as long" in tried.notice.text
    # Twice too fast and too slow are tried without a linear test: far off it is not linear.
    given = [one.notice.text for one in other_clocks(robot, (log,))]
    assert [text.partition("times were ")[2][:4].strip() for text in given] == ["2 ti", "0.5"]


def test_a_log_under_the_right_gravity_raises_nothing() -> None:
    found = checks_of(*ur5_log())
    assert codes(found.notices) == []
    assert [one.warned for one in found.tests if one.test == "gravity"] == [False]


@pytest.mark.parametrize(("tilt", "turned"), [(1.7, 0.0), (0.0, 1.5), (0.0, 0.0)])
def test_a_tilted_base_and_a_turned_force_sensor_are_told_apart(tilt: float, turned: float) -> None:
    a = np.deg2rad(tilt)
    setup = Setup(
        gravity=9.81 * np.array([np.sin(a), 0.0, -np.cos(a)]),
        turned=rpy_matrix((np.deg2rad(turned), 0.0, 0.0)),
    )
    found = checks_of(*wrist_log(setup, rate=100.0))
    code = "gravity-off" if tilt else "mounting-off"
    assert codes(found.notices) == ([code] if tilt or turned else [])
    if tilt or turned:
        size = float(found.notices[0].text.partition("rotated by ")[2].partition(" degrees")[0])
        # Forces of 13 N with noise of 0.5 N at 2000 samples.
        assert size == pytest.approx(tilt or turned, abs=0.15)


def without_causes(patch: pytest.MonkeyPatch) -> None:
    """Corrections of the description are not searched: sixty fits for a log that does not fit."""
    patch.setattr("dynid.pipeline.with_causes", lambda fit, estimate: estimate)


@pytest.mark.parametrize("searched", [False, True])
def test_a_long_contact_is_a_burst_and_a_poor_fit(searched: bool, monkeypatch) -> None:
    """It bends the parameters until the residual is large everywhere; the fit without it shows the burst."""
    if not searched:
        without_causes(monkeypatch)
    robot, log = ur5_log()
    tau = log.tau.copy()
    tau[1250:1400, 1] += 8.0 * tau[:, 1].std()
    estimate = identify_logs(robot, [replace(log, tau=tau)], (), Experiment(robot=robot))
    told = {one.code: one.text for one in estimate.warnings}
    assert " 5." in told["burst"]
    assert "'shoulder_lift_joint'" in told["poor-fit"]
    assert {"delay", "gain", "zero-offset", "gravity-off"}.isdisjoint(told)
    # Another motion that is predicted well says that this log is bad, not the model.
    for percent, poor in ((60.0, True), (5.0, False)):
        unseen = Validation("other", True, percent, percent)
        assert ("poor-fit" in codes(unexplained(estimate.fit, (unseen,)))) == poor


@pytest.mark.parametrize("samples", [50, 300, 450])
def test_a_contact_is_a_burst_for_as_long_as_it_lasts(samples: int) -> None:
    """Up to a sixth of the log; its own blocks do not count among those that it is compared with."""
    robot, log = ur5_log()
    tau = log.tau.copy()
    tau[1000 : 1000 + samples, 1] += 8.0 * tau[:, 1].std()
    found = checks_of(robot, replace(log, tau=tau)).notices
    assert codes(found) == ["burst"]
    assert " 4.02 s (shoulder_lift_joint)" in found[0].text


def test_a_run_with_a_contact_is_no_outlying_run() -> None:
    """What the run leaves beside the contact is that of the others: the contact is the cause."""
    robot, log = ur5_log()
    tau = log.tau.copy()
    tau[1200:1250, 1] += 8.0 * tau[:, 1].std()
    runs = ((0, 830), (830, 1660), (1660, len(log.t)))
    assert codes(checks_of(robot, replace(log, tau=tau, segments=runs)).notices) == ["burst"]


def test_the_time_of_a_contact_counts_the_rest_before_the_motion() -> None:
    """Blocks in which the robot stands still have no rows: the time of later ones was too early."""
    robot, log = ur5_log()
    tau, still = log.tau.copy(), 500  # samples: 2 s
    tau[1000:1050, 1] += 8.0 * tau[:, 1].std()
    noise = 0.05 * np.random.default_rng(3).normal(size=(still, tau.shape[1]))
    t = np.arange(len(log.t) + still) * log.dt
    q = np.concatenate([np.repeat(log.q[:1], still, axis=0), log.q])
    late = log_from_arrays(robot, t, q, np.concatenate([tau[:1] + noise, tau]))
    (burst,) = [one for one in checks_of(robot, late).notices if one.code == "burst"]
    moment = float(burst.text.partition("at t = ")[2].partition(" s")[0])
    assert moment == pytest.approx(6.0, abs=0.3)  # a block


@pytest.mark.parametrize("times", [1, 2])
def test_what_comes_again_with_the_motion_is_no_burst(times: int) -> None:
    """The same motion twice: dry friction at a reversal sticks both times, a collision happens once."""
    robot, log = ur5_log()
    n = len(log.t)
    blend = np.linspace(0.0, 1.0, 250)[:, None]  # 1 s from the end of the motion back to its beginning
    back = log.q[-1] + (3 * blend**2 - 2 * blend**3) * (log.q[0] - log.q[-1])
    tau = np.concatenate([log.tau, np.repeat(log.tau[:1], len(back), axis=0), log.tau])
    for k in range(times):
        start = 1000 + k * (n + len(back))
        tau[start : start + 50, 1] += 8.0 * log.tau[:, 1].std()
    t = np.arange(len(tau)) * log.dt
    both = log_from_arrays(robot, t, np.concatenate([log.q, back, log.q]), tau)
    both = replace(both, segments=((0, n), (n + len(back), len(tau))))
    assert ("burst" in codes(checks_of(robot, both).notices)) == (times == 1)


@pytest.mark.parametrize(("size", "expected"), [(4.0, []), (8.0, ["friction-speed"])])
def test_errors_that_come_again_with_the_motion_count_once(size: float, expected: list[str]) -> None:
    """Three times the same motion with friction that the model lacks: a zero seemed to be off."""
    robot, log = ur5_log()
    n, scale = len(log.t), np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])
    dq = np.gradient(log.q, log.dt, axis=0)
    near_rest = size * scale * np.sign(dq) * np.exp(-((dq / 0.08) ** 2))
    noise = [0.5 * scale * np.random.default_rng(5 + k).normal(size=log.tau.shape) for k in range(3)]
    tau = np.concatenate([log.tau + near_rest + part for part in noise])
    three = log_from_arrays(robot, np.arange(3 * n) * log.dt, np.concatenate([log.q] * 3), tau)
    three = replace(three, segments=tuple((k * n, (k + 1) * n) for k in range(3)))
    assert codes(checks_of(robot, three).notices) == expected


@pytest.mark.parametrize(("declared", "unloaded"), [({}, 2), ({"MX": 0.06}, 2), ({"M": 3.0}, 1)])
def test_wrong_known_values_of_a_payload_are_named_and_right_ones_are_not(declared, unloaded: int) -> None:
    """Linear tests see a wrong centre of mass as joint zeros and delays."""
    plain = load_robot("scara")
    demo = read_demo(demo_file("scara"), plain)
    values = {"M": 2.0, "MX": 0.2, "MY": 0.1}
    load = Payload("load", "tool", known=values | declared)
    robot = replace(plain, payloads={"load": load}, rebuild=None)
    inertial = {f"{s}_load": values.get(s, 0.0) for s in SYMBOLS} | {
        "ZZ_load": 0.06,
        "XX_load": 0.03,
        "YY_load": 0.03,
    }
    logs = [
        simulate_log(
            robot,
            dict(demo.truth) | inertial,
            random_motion(plain, seed=k, frequency=0.2, draws=2),
            rate=200.0,
            duration=5.0,
            torque_sigma=demo.torque_sigma,
            seed=k,
            payloads=() if k < unloaded else ("load",),
            name=f"run {k + 1}",
        )
        for k in range(unloaded + 2)
    ]
    estimate = identify_logs(robot, logs, (), Experiment(robot=robot, auto="off"))
    told = [one.text for one in estimate.warnings if one.code == "payload-label"]
    named = "the known values of payload 'load' (M, MX, MY) do not explain the logs that carry it"
    assert [text.partition(":")[0] for text in told] == ([named] if declared else [])
    assert {"delay", "zero-offset", "gain", "model-misfit"}.isdisjoint(codes(estimate.warnings))


@pytest.mark.parametrize(
    "known",
    [{"Ia_elbow_joint": 2.0}, {"Fs_elbow_joint": 4.0}, {"MX_forearm_link": 1.5, "M_forearm_link": 5.0}],
)
def test_wrong_known_values_of_links_and_drives_are_named(known: dict[str, float]) -> None:
    """They looked like a delay, friction that depends on speed, or bodies that cannot be."""
    robot, log = ur5_log()
    experiment = Experiment(robot=robot, known=known, auto="off")
    estimate = identify_logs(as_asked(robot, experiment), [log], (), experiment)
    told = [one.text.partition(" do not")[0] for one in estimate.warnings if one.code == "known-off"]
    assert told == [f"the known values of {', '.join(known)}"]
    assert {"delay", "friction-speed", "model-misfit", "position-unit"}.isdisjoint(codes(estimate.warnings))


def test_a_simulation_without_noise_bursts_nowhere() -> None:
    assert codes(checks_of(*ur5_log(0.0)).notices) == []


def test_placeholder_priors_are_no_evidence_of_a_scale() -> None:
    robot, log = ur5_log()
    one = {
        "M": 1.0,
        "MX": 0.1,
        "MY": 0.1,
        "MZ": 0.1,
        "XX": 1.0,
        "YY": 1.0,
        "ZZ": 1.0,
        "XY": 0,
        "XZ": 0,
        "YZ": 0,
    }
    bodies = {name: replace(body, prior=one) for name, body in robot.bodies.items()}
    dull = replace(robot, bodies=bodies)
    assert placeholder_masses(dull)
    assert not placeholder_masses(robot)
    estimate = identify_logs(dull, [log], (), Experiment(robot=dull))
    assert {"scale-differs", "scale-implausible", "differs-from-description"}.isdisjoint(
        codes(estimate.warnings)
    )


def test_first_moments_far_from_the_description_are_named() -> None:
    robot, log = ur5_log()
    right = identify_logs(robot, [log], (), Experiment(robot=robot))
    assert "differs-from-description" not in codes(right.warnings)
    bodies = dict(robot.bodies)
    for name in ("forearm_link", "wrist_1_link", "wrist_2_link", "wrist_3_link"):
        prior = bodies[name].prior
        third = {symbol: prior[symbol] / 3.0 for symbol in ("M", "MX", "MY", "MZ")}
        bodies[name] = replace(bodies[name], prior={**prior, **third})
    wrong = replace(robot, bodies=bodies)
    estimate = identify_logs(wrong, [log], (), Experiment(robot=wrong))
    (told,) = [one for one in estimate.warnings if one.code == "differs-from-description"]
    assert "MX_forearm_link" in told.text


def sure(name: str, unit: str, value: float) -> ParameterEstimate:
    return ParameterEstimate(name, unit, value, 0.01 * value, 1.0, (0.98 * value, 1.02 * value))


def test_the_size_of_a_slider_crank_is_that_of_its_links(tmp_path) -> None:
    """The rod is in the frame of the loop: without it 1.5 kg had 6 cm to be in."""
    robot = written_robot(tmp_path, SLIDER_CRANK)
    assert reach(robot) == pytest.approx(0.06 + 0.2)
    found = [sure("M_piston", "kg", 1.5), sure("ZZ_disc", "kg m^2", 5e-3)]
    assert not list(check_scale(found, robot))
    assert codes(check_scale([replace(one, value=1e-3 * one.value) for one in found], robot)) == []


def test_the_travel_of_a_prismatic_joint_is_no_link(tmp_path) -> None:
    robot = written_robot(tmp_path, LINEAR_AXIS)
    found = [sure("M_sledge", "kg", 20.0)]
    # 12 m of rail do not make the sledge too light, nor 0.2 m of links too heavy.
    assert not list(check_scale(found, robot))
    (told,) = check_scale([sure("M_sledge", "kg", 20e6)], robot)
    assert "too large" in told.text


def test_correlated_residuals_are_marked_as_a_note(monkeypatch) -> None:
    without_causes(monkeypatch)
    robot, log = ur5_log()
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.standard_normal(log.tau.shape), axis=0)
    slow = walk - walk.mean(axis=0)
    spoiled = replace(log, tau=log.tau + 0.05 * slow / slow.std(axis=0) * log.tau.std(axis=0))
    estimate = identify_logs(robot, [spoiled], (), Experiment(robot=robot))
    assert "not-white" not in codes(estimate.warnings)
    white = [one for one in estimate.residual_tests if one.test == "white"]
    assert all(one.note == "correlated in time; the intervals account for it" for one in white)
    assert not any(one.warned for one in white)
    assert "the intervals account for it" in estimate.choices["correlation of residuals"]
    assert "correlated in time; the intervals account for it" in report_html(estimate)


TABLE = """
schema: dynid.robot/1
name: table
joints:
  - {name: x, kind: prismatic, parent: base, child: bridge, mdh: {alpha: pi/2}}
  - {name: y, kind: prismatic, parent: bridge, child: trolley, mdh: {alpha: pi/2, theta: pi/2}}
  - {name: c, kind: revolute, parent: trolley, child: tool, mdh: {alpha: pi/2}}
drive: {"*": [Fv, Fs]}
limits: {x: {q: 1, dq: 1, ddq: 3}, y: {q: 0.8, dq: 1, ddq: 4}, c: {q: 3, dq: 5, ddq: 30}}
"""


def test_the_sign_of_an_effort_of_a_table_is_named(tmp_path) -> None:
    """Its axes hardly depend on each other: the log is fitted with negative masses."""
    file = tmp_path / "table.yaml"
    file.write_text(TABLE)
    robot = load_robot(file)
    truth = {parameter.name: 0.0 for parameter in parameter_table(robot)}
    truth |= {
        "M_bridge": 40.0,
        "M_trolley": 25.0,
        "M_tool": 8.0,
        "MX_tool": 0.2,
        "ZZ_tool": 0.1,
        "XX_tool": 0.1,
    }
    truth |= {"YY_tool": 0.1, "Fv_x": 9.0, "Fs_x": 20.0, "Fv_y": 5.0, "Fs_y": 9.0, "Fv_c": 0.1, "Fs_c": 0.2}
    motion = random_motion(robot, seed=2, draws=3)
    log = simulate_log(
        robot, truth, motion, rate=200.0, duration=10.0, torque_sigma=np.array([1.0, 1.0, 0.02]), seed=3
    )
    right = identify_logs(robot, [log], (), Experiment(robot=robot, auto="off"))
    assert right.verdict.level == "good"
    turned = replace(log, tau=log.tau * [1.0, -1.0, 1.0])
    verdict = identify_logs(robot, [turned], (), Experiment(robot=robot, auto="off")).verdict
    assert verdict.level == "bad"
    assert verdict.reasons[0].code == "effort-sign"
    assert "'y'" in verdict.reasons[0].text


def _sticking(seed: int, seconds: float = 30.0) -> tuple[np.ndarray, np.ndarray]:
    """Position and effort of a pendulum under feedback that sticks at its reversals, at 500 Hz."""
    rng, dt, inertia = np.random.default_rng(seed), 1e-3, 0.02 + 1.5 * 0.2**2
    t = np.arange(round(seconds / dt)) * dt
    w, A = 0.2 * np.pi * np.arange(1, 6), rng.normal(size=(2, 5)) / np.arange(1, 6)
    goal = 0.6 * (np.sin(np.outer(t, w)) @ A[0] + (np.cos(np.outer(t, w)) - 1.0) @ A[1])
    speed = np.gradient(goal, dt)
    q = v = 0.0
    out = np.zeros((len(t), 2))
    for k in range(len(t)):
        u = 60.0 * (goal[k] - q) + 3.0 * (speed[k] - v)
        out[k] = q, u
        free = v + dt * (u + 1.5 * 0.2 * 9.81 * np.cos(q) - 0.1 * v) / inertia
        v = float(np.sign(free) * max(abs(free) - dt * 0.3 / inertia, 0.0))
        q += dt * v
    out = out[::2]
    return out[:, 0] + 1e-5 * rng.normal(size=len(out)), out[:, 1] + 0.01 * rng.normal(size=len(out))


def test_a_joint_that_sticks_at_its_reversals_is_not_called_late(tmp_path) -> None:
    """Its effort turns before it moves: 2.6 ms early by all rows, p = 6e-8. A real delay is still found."""
    file = tmp_path / "pendulum.urdf"
    file.write_text(
        '<robot name="pendulum"><link name="base"/><link name="arm"><inertial><origin xyz="0.2 0 0"/>'
        '<mass value="1.5"/><inertia ixx="0.001" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>'
        '</link><joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>'
        '<limit lower="-3" upper="3" effort="20" velocity="5"/><dynamics friction="0.3" damping="0.1"/>'
        "</joint></robot>"
    )
    robot = load_robot(file)
    q, tau = _sticking(2)
    for late in (0, 5):
        n = len(q) - late
        log = log_from_arrays(robot, 2e-3 * np.arange(n), q[late:, None], tau[:n, None])
        found = codes(identify_logs(robot, [log]).warnings)
        assert ("delay" in found) == bool(late), found


def test_a_doubted_delay_is_tested_on_rows_that_slide() -> None:
    """Friction that grows over some milliradians of presliding lags too: slow rows cannot show a delay."""
    robot, log = ur5_log()
    experiment = Experiment(robot=robot)
    problem = prepare(robot, [log], experiment)
    fit = away_from_reversals(linear_fit(problem, experiment))
    assert fit is not None
    (plan,), (slow,) = problem.plans, fit.problem.plans
    peak = np.abs(np.gradient(log.q, log.dt, axis=0)).max(axis=0)
    # A mask of 5 % of the peak speed, five times; the peak of the filtered speed is a little lower.
    assert np.array(slow.reversal_speed) / peak == pytest.approx(np.full(6, 0.25), abs=0.05)
    assert slow.reversal_around >= plan.reversal_around
