"""dynid excite: families, limits, journal and resume, refusals, files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from dynid.cli import main
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.excitation.excite import Excitation, excite
from dynid.excitation.files import excitation_files
from dynid.excitation.inputs import noise_of, plan_inputs
from dynid.excitation.optimal.box import Blocks, box_of
from dynid.excitation.optimal.checked import _sigmas, linear_uses
from dynid.excitation.optimal.criteria import CRITERIA, Criterion, criterion_of
from dynid.excitation.optimal.families import FAMILIES, FourierFamily, family_of
from dynid.excitation.optimal.multistart import Journal, run_starts
from dynid.excitation.optimal.starts import Start
from dynid.excitation.plan import make_plan, planned_base
from dynid.excitation.random_motion import random_motion, robot_limits
from dynid.excitation.settings import default_recorder
from dynid.experiment.experiment import Experiment, UncertaintySettings
from dynid.experiment.tasks import ExciteSettings
from dynid.fit import fit_task
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.report.output import claimed_folder, replace_folder
from dynid.simulation.files import write_log
from dynid.simulation.motion import SampledMotion, file_motion
from dynid.simulation.prescribed import inverse_efforts, simulate_log
from dynid.simulation.simulation import simulate
from dynid.simulation.simulation_file import default_simulation
from dynid.unknown import Task

QUICK = ExciteSettings(starts=2, hops=1, period=4.0)
TWO_LINKS = """
name: pair
gravity: [0, -9.81, 0]
joints:
  - {name: shoulder, kind: revolute, parent: base, child: upper}
  - {name: elbow, kind: revolute, parent: upper, child: lower, xyz: [0.5, 0, 0]}
drive: {"*": [Fv, Fs]}
bodies:
  upper: {parameters: [ZZ, MX, MY, M], prior: {M: 4, com: [0.25, 0, 0], ZZ: 0.4}}
  lower: {parameters: [ZZ, MX, MY, M], prior: {M: 2, com: [0.2, 0, 0], ZZ: 0.15}}
limits:
  shoulder: {q: [-2, 1], dq: 3, ddq: 15, jerk: 300, tau: TAU}
  elbow: {q: [-2, 2], dq: 4, ddq: 20}
"""


def pair(tmp_path: Path, tau: str = "60", more: str = "") -> str:
    file = tmp_path / "pair.yaml"
    file.write_text(TWO_LINKS.replace("TAU", tau) + more)
    return str(file)


def other_notices(found: Excitation) -> list[Notice]:
    """Without what the collision check lacks (`tests/test_collision.py`): these robots have no shapes."""
    lacking = ("floor-unchecked", "capsules-assumed", "collisions-unchecked")
    return [message for message in found.notices if message.code not in lacking]


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_linear_and_their_rates_are_derivatives(name: str) -> None:
    family = family_of(name, 6, 3.0)
    t = np.linspace(0.0, 3.0, 4001)
    x = np.random.default_rng(0).normal(size=(family.count, 2))
    values = family.matrices(t) @ x
    motion = family.motion(x)
    for found, signal_ in zip(values, (motion.q(t), motion.dq(t), motion.ddq(t)), strict=False):
        np.testing.assert_allclose(found, signal_, atol=1e-9 * np.abs(found).max())  # rounding
    for order in range(3):
        slope = np.gradient(values[order], t, axis=0)[2:-2]
        # Second-order differences at 4000 points; the jerk of moves jumps where they meet.
        far = np.quantile(np.abs(slope - values[order + 1][2:-2]), 0.99)
        assert far < 2e-3 * np.abs(values[order + 1]).max()
    np.testing.assert_allclose(values[1:3][:, [0, -1]], 0.0, atol=1e-9 * np.abs(values[2]).max())  # at rest


def test_the_guard_of_fourier_series_holds_between_grid_points() -> None:
    family = FourierFamily(5, 10.0, resting=False, per_harmonic=8)
    t, share = family.grid()
    rng = np.random.default_rng(1)
    dense = family.matrices(np.linspace(0.0, 10.0, 5001))
    on_grid = family.matrices(t)
    for _ in range(200):
        x = rng.normal(size=family.count)
        for order in range(1, 4):
            assert np.abs(dense[order] @ x).max() * share <= np.abs(on_grid[order] @ x).max() * (1 + 1e-12)


@pytest.mark.parametrize(("name", "terms", "order"), [("spline", 3, 2), ("spline", 6, 1), ("points", 8, 2)])
def test_no_motion_within_the_grid_of_its_limits_leaves_them_between(
    name: str, terms: int, order: int
) -> None:
    """The motion that leaves them most, by linear programs: not a sample of motions but the worst one."""
    from scipy.optimize import linprog

    family = family_of(name, terms, float(terms))
    t, share = family.grid()
    on_grid = family.matrices(t)[order]
    dense = family.matrices(np.linspace(0.0, 1.5, 31))[order]
    for row in dense:
        sides, bounds = np.vstack([on_grid, -on_grid]), np.full(2 * len(t), share)
        found = linprog(-row, A_ub=sides, b_ub=bounds, bounds=(None, None), method="highs")
        assert -found.fun <= 1.0 + 1e-9  # rounding of the program


def test_every_move_is_held_to_its_jerk_whatever_its_times_round_to() -> None:
    """A move is fastest at its ends, where rounding of the time may name the neighbour instead."""
    for points in range(3, 30):
        family = family_of("points", points, 10.0)
        t, _ = family.grid()
        jerk = family.matrices(t)[3]
        peak = 60.0 / (10.0 / (points - 1)) ** 3
        for move in range(points - 1):
            step = np.zeros(points)
            step[move + 1 :] = 1.0  # only this move goes anywhere
            assert np.abs(jerk @ step).max() == pytest.approx(peak, rel=1e-6)  # rounding of the time


@pytest.mark.parametrize("family", ["spline", "points"])
def test_splines_and_moves_are_improved_too(family: str, tmp_path: Path) -> None:
    """Rates at the ends are zero whatever the coefficients are, and one joint has no limit of jerk."""
    found = excite(pair(tmp_path), QUICK.changed(family=family, hops=0))
    for start in found.starts:
        assert start.value > start.random + 5.0


def test_random_and_drawn_in_motions_keep_the_box() -> None:
    robot = load_robot("ur5")
    blocks = Blocks(FourierFamily(5, 10.0), box_of(robot, robot.measured_positions))
    z = blocks.random(np.random.default_rng(0), 0.9)
    assert blocks.use(z) == pytest.approx(0.9)  # as drawn, up to rounding
    assert blocks.use(blocks.inside(3.0 * z)) <= 1.0
    back = blocks.variables(blocks.coefficients(z))
    np.testing.assert_allclose(back, z, atol=1e-12)  # rounding


@pytest.mark.parametrize("criterion", CRITERIA)
def test_every_criterion_is_improved_within_all_limits(criterion: str, tmp_path: Path) -> None:
    name = pair(tmp_path)
    settings = QUICK.changed(starts=1, criterion=criterion)
    if criterion == "sigma":
        base = planned_base(load_robot(name), settings)
        settings = settings.changed(sigma=(base.names[-3],))
    found = excite(name, settings)
    start = found.starts[found.best]
    improved = start.value - start.random if found.larger_is_better else start.random - start.value
    assert improved > 0.0
    assert min(limit.margin_percent for limit in found.limits) >= 0.0
    kinds = {(limit.name, limit.kind) for limit in found.limits}
    assert {("shoulder", "jerk"), ("shoulder", "effort"), ("elbow", "ddq")} <= kinds


@pytest.mark.parametrize("family", FAMILIES)
def test_limits_hold_on_a_dense_grid_with_exact_efforts(family: str, tmp_path: Path) -> None:
    """Judged by other code than the optimiser's: the series itself, and the simulator's efforts."""
    name = pair(tmp_path, "45")
    found = excite(name, QUICK.changed(family=family))
    robot = load_robot(name)
    t = np.linspace(0.0, found.motion.period, 8001)
    q, dq, ddq = found.motion.q(t), found.motion.dq(t), found.motion.ddq(t)
    for j, joint in enumerate(("shoulder", "elbow")):
        limits = robot.limits[joint]
        assert limits["q"][0] <= q[:, j].min()
        assert q[:, j].max() <= limits["q"][1]
        assert np.abs(dq[:, j]).max() <= limits["dq"]
        assert np.abs(ddq[:, j]).max() <= limits["ddq"]
    assert np.abs(np.gradient(ddq[:, 0], t)).max() <= 300.0 * 1.01  # differences over a kink
    plan = found.plan
    assert plan.efforts is not None
    tau = inverse_efforts(robot, plan.efforts.chi, q, dq, ddq)
    assert np.abs(tau[:, 0]).max() <= 45.0
    assert np.abs(tau[:, 0]).max() > 35.0  # the limit is what stops it


FRICTION = """
{ZZ_upper: 0.4, MX_upper: 1, MY_upper: 0, M_upper: 4, Fv_shoulder: 1, Fs_shoulder: 8,
 ZZ_lower: 0.15, MX_lower: 0.4, MY_lower: 0, M_lower: 2, Fv_elbow: 0.5, Fs_elbow: 3}
"""


@pytest.mark.parametrize("family", FAMILIES)
def test_efforts_with_dry_friction_hold_between_samples_without_a_margin(family: str, tmp_path: Path) -> None:
    """Friction jumps where a joint reverses, between the samples of any grid: judged 250 times as densely."""
    prior = tmp_path / "friction.yaml"
    prior.write_text(FRICTION)
    settings = QUICK.changed(starts=1, hops=0, family=family, margin=0.0, prior=str(prior))
    found = excite(pair(tmp_path, "45"), settings)
    assert not other_notices(found)
    assert found.plan.efforts is not None
    t = np.linspace(0.0, 4.0, 250 * len(found.plan.problem.t))
    states = found.motion.q(t), found.motion.dq(t), found.motion.ddq(t)
    tau = inverse_efforts(found.plan.mechanism, found.plan.efforts.chi, *states)[:, 0]
    effort = next(limit for limit in found.limits if limit.kind == "effort")
    assert np.abs(tau).max() <= 45.0
    # The reported effort is reached: between samples it may be overrated by a bend of the signal.
    assert effort.least is not None
    assert effort.most is not None
    assert effort.least <= tau.min() <= effort.least + 0.2
    assert effort.most - 0.2 <= tau.max() <= effort.most


def test_the_bound_between_samples_holds_and_is_near() -> None:
    """A signal with known peaks between its samples, and one that jumps."""
    from dynid.excitation.optimal.soft import peaks

    torn = np.zeros(400, dtype=bool)
    torn[[200, 201]] = True
    phase = np.linspace(0.0, np.pi, 40)[:, None]
    h = np.sin(0.1 * np.arange(400) + phase)
    found = peaks(h - (np.arange(400) > 200), torn)
    # At 63 samples a period the fourth order is 1e-5, and neighbours bend by an eighth of 0.01 at most.
    assert np.all(found >= 1.0 - 1e-5)
    assert np.all(found <= 1.0 + 0.01 / 8.0)


def test_friction_that_nobody_gave_is_reported_where_efforts_are_limited(tmp_path: Path) -> None:
    found = excite(pair(tmp_path), QUICK.changed(starts=1, hops=0))
    assert [message.code for message in other_notices(found)] == ["no-drive-values"]
    (tmp_path / "bad.yaml").write_text("{Fs_shulder: 1}")
    with pytest.raises(InputError, match="no parameter 'Fs_shulder'"):
        excite(pair(tmp_path), QUICK.changed(prior=str(tmp_path / "bad.yaml")))


def test_limits_that_nothing_is_held_to_are_reported(tmp_path: Path) -> None:
    text = TWO_LINKS.replace("TAU", "60").replace("limits:", "limits:\n  singularity: {condition: 30}")
    text = text.replace('drive: {"*": [Fv, Fs]}', "")
    motors = "actuators:\n  - {name: belt, on: {elbow: 2}}\n  - {name: shoulder, on: {shoulder: 1}}\n"
    file = tmp_path / "belt.yaml"
    file.write_text(text + "  belt: {dq: 3, tau: 30}\n" + motors)
    found = excite(str(file), QUICK.changed(starts=1, hops=0))
    (notice,) = other_notices(found)
    assert notice.code == "limits-unused"
    assert notice.text.endswith("singularity.condition")
    # The motor of the belt turns twice as fast as the elbow, and its limit is the tighter one.
    kept = {(limit.name, limit.kind): limit for limit in found.limits}
    assert kept["belt", "dq"].margin_percent >= 0.0
    assert kept["belt", "effort"].margin_percent >= 0.0
    speed = np.abs(found.motion.dq(np.linspace(0.0, 4.0, 4001))[:, found.names.index("elbow")]).max()
    assert 1.2 < speed <= 1.5


def test_sigma_for_another_model_is_reported(tmp_path: Path) -> None:
    _, notices = plan_inputs(pair(tmp_path, more="model: energy\n"), QUICK)
    (warning,) = [message for message in notices if message.code == "promised-by-another-model"]
    assert "'power', not for 'energy'" in warning.text


PLACEHOLDERS = """<robot name="arm"><link name="base"/>{}</robot>"""
PLACEHOLDER = """<link name="l{k}"><inertial><origin xyz="0 0 0.2"/><mass value="3"/><inertia ixx="0.1"
ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.02"/></inertial></link><joint name="j{k}" type="revolute">
<parent link="{parent}"/><child link="l{k}"/><origin xyz="0 0 0.3"/><axis xyz="0 {y} {z}"/>
<limit lower="-7" upper="7" velocity="{speed}" effort="{effort}"/></joint>"""


def placeholder_arm(tmp_path: Path, speed: float, effort: float, width: float = 7) -> str:
    """A URDF of two joints, with the numbers of a converter."""
    links = [
        PLACEHOLDER.format(k=k, parent=f"l{k - 1}" if k else "base", y=k, z=1 - k, speed=speed, effort=effort)
        for k in range(2)
    ]
    file = tmp_path / "arm.urdf"
    file.write_text(
        PLACEHOLDERS.format("".join(links)).replace('"-7"', f'"{-width}"').replace('"7"', f'"{width}"')
    )
    return str(file)


def test_placeholder_limits_are_said_first_and_replaced_by_careful_ones(tmp_path: Path) -> None:
    robot = placeholder_arm(tmp_path, 50, 1e4)
    found = excite(robot, QUICK)
    first = found.notices[0]
    assert first.code == "limits-implausible"
    for given in ("50 rad/s", "-7 to 7 rad", "10000 N m"):
        assert given in first.text
    assert "source: arm.urdf" in first.remedy
    assert "limits:" in first.remedy
    run = found.run.sampled(200.0)
    for motion in (found, run):
        assert np.abs(motion.dq).max() <= 1.0 + 1e-9  # rad/s, as documented
        assert np.abs(motion.ddq).max() <= 2.0 + 1e-9
        assert np.abs(motion.q).max() <= 0.5 * np.pi + 1e-9
    # A torque sensor of this arm: its largest static torque is 3 kg * 9.81 m/s^2 * 0.2 m.
    assert max(found.plan_noise) < 0.01 * 2.0 * 3.0 * 9.81 * 0.2
    assert "effort limits" not in found.assumed


def test_a_joint_that_turns_without_end_moves_half_a_turn_and_it_is_said(tmp_path: Path) -> None:
    file = Path(placeholder_arm(tmp_path, 3, 80, 2))
    text = file.read_text()
    last = text.rindex('type="revolute"')
    file.write_text(text[:last] + text[last:].replace('type="revolute"', 'type="continuous"'))
    found = excite(str(file), QUICK)
    first = found.notices[0]
    assert first.code == "limits-implausible"
    assert "range without end of j1 (-1.57 to 1.57 rad is used)" in first.text
    assert np.abs(found.q[:, 1]).max() <= 0.5 * np.pi + 1e-9
    simulated = robot_limits(load_robot(file))
    assert (simulated.low[1], simulated.high[1]) == pytest.approx((-0.5 * np.pi, 0.5 * np.pi))


def test_a_missing_acceleration_limit_is_assumed_and_said(tmp_path: Path) -> None:
    found = excite(placeholder_arm(tmp_path, 3, 80, 2), QUICK)
    assert "acceleration-assumed" in [message.code for message in found.notices]
    assert "limits-implausible" not in [message.code for message in found.notices]
    assert np.abs(found.ddq).max() <= 6.0 + 1e-9  # 3 rad/s within 0.5 s
    np.testing.assert_allclose(found.plan_noise, 0.8)
    given = pair(tmp_path)  # has accelerations
    assert not [message for message in excite(given, QUICK).notices if message.code == "acceleration-assumed"]


def test_an_effort_limit_that_cannot_be_met_is_named(tmp_path: Path) -> None:
    # An arm near the horizontal: holding it takes several N m at every pose.
    text = TWO_LINKS.replace("TAU", "0.5").replace("q: [-2, 1]", "q: [-0.5, 0.5]")
    file = tmp_path / "weak.yaml"
    file.write_text(text.replace("q: [-2, 2]", "q: [-1, 1]"))
    with pytest.raises(InputError, match=r"effort of 'shoulder' cannot be met: even at rest"):
        excite(str(file), QUICK)


def test_missing_ranges_and_bad_names_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "open.yaml"
    file.write_text(TWO_LINKS.replace("TAU", "60").replace("elbow: {q: [-2, 2], dq: 4, ddq: 20}", ""))
    with pytest.raises(InputError, match="'elbow' has no position limits, so the range"):
        excite(str(file), QUICK)
    with pytest.raises(InputError, match=r"no criterion 'logdte'.*did you mean 'logdet'"):
        Criterion("logdte")
    with pytest.raises(InputError, match="no base parameter 'ZZ_x'"):
        criterion_of("sigma", ("ZZ_x",), ("ZZ_a", "M_b"))
    with pytest.raises(InputError, match="no family of motions"):
        family_of("wavelet", 5, 1.0)


def test_a_condition_number_below_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "round.yaml"
    text = Path(str(load_robot("rrr3").file)).read_text()
    file.write_text(text.replace("limits:", "limits:\n  singularity: {condition: 0.5}"))
    with pytest.raises(InputError, match=r"condition number 0.5 is not a valid limit"):
        excite(str(file), QUICK)


def test_capsules_keep_bodies_apart(tmp_path: Path) -> None:
    more = """
capsules:
  base: {from: [0.3, -0.9, 0], to: [0.9, -0.9, 0], radius: 0.1}
  lower: {from: [0, 0, 0], to: [0.5, 0, 0], radius: 0.05}
"""
    once = QUICK.changed(starts=1)
    free = excite(pair(tmp_path), once)
    kept = excite(pair(tmp_path, more=more), once)

    def nearest(found) -> float:
        t = np.linspace(0.0, found.motion.period, 2001)
        q = found.motion.q(t)
        elbow = 0.5 * np.column_stack([np.cos(q[:, 0]), np.sin(q[:, 0])])
        tips = [s * np.column_stack([np.cos(q.sum(1)), np.sin(q.sum(1))]) for s in np.linspace(0, 0.5, 26)]
        points = np.stack([elbow + tip for tip in tips], axis=1)
        x = np.clip(points[..., 0], 0.3, 0.9)
        return float(np.hypot(points[..., 0] - x, points[..., 1] + 0.9).min())

    assert nearest(free) < 0.15
    assert nearest(kept) >= 0.15


NOISE = (0.5, 0.2)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The pair, and a log of it with noise that is known."""
    folder = tmp_path_factory.mktemp("recorded")
    name = pair(folder)
    robot = load_robot(name)
    motion = random_motion(robot, 3, frequency=0.1, draws=2)
    truth = yaml.safe_load(FRICTION)
    log = simulate_log(robot, truth, motion, rate=500.0, duration=10.0, torque_sigma=np.array(NOISE), seed=1)
    return name, write_log(log, folder / "log.csv")


def test_data_that_exist_change_what_is_asked_next(recorded, tmp_path: Path) -> None:
    """Known parameters need no more telling: the design with them is another, and its sigma smaller."""
    from dynid.pipeline import identify
    from dynid.report.json_file import json_text, result_document

    name, log = recorded
    (tmp_path / "result.json").write_text(json_text(result_document(identify(name, log))))
    settings = QUICK.changed(starts=1, hops=0, period=3.0)
    alone = excite(name, settings)
    later = excite(name, settings.changed(after=[tmp_path / "result.json"]))
    assert np.all(later.after.sigma <= alone.after.sigma.max())
    assert later.plan_noise != alone.plan_noise  # that of the result
    assert np.median(later.before.sigma / later.after.sigma) < np.median(
        alone.before.sigma / alone.after.sigma
    )


def test_noise_of_earlier_logs_is_that_of_a_sample(recorded) -> None:
    """Rows of an identification are averaged and far quieter than the efforts that were recorded."""
    name, log = recorded
    inputs, _ = plan_inputs(name, QUICK.changed(starts=1, after=[log]))
    # Some hundred rows tell a deviation to 5 %; the edges of the row filter are not known better than 15 %.
    np.testing.assert_allclose(inputs.noise, NOISE, rtol=0.25)
    known = np.array(inputs.known)
    assert np.all(np.linalg.eigvalsh(known / np.sqrt(np.outer(*2 * [np.diag(known)]))) > -1e-9)  # rounding


def test_a_result_gives_rate_values_and_drive_terms_of_the_next_motion(recorded, tmp_path: Path) -> None:
    """What is known of the robot is used: its rate, its friction, and terms that the description lacks."""
    from dynid.pipeline import identify

    name, log = recorded
    terms = ("Ia", "Fv", "Fs", "Off")
    result = identify(name, log, drive=terms, auto="off")
    result.save(tmp_path / "result")
    settings = QUICK.changed(starts=1, after=[tmp_path / "result"])
    inputs, notices = plan_inputs(name, settings)
    assert inputs.rate == 500.0
    assert "rate and noise of the existing data" in inputs.assumed
    assert "efforts predicted with the existing result" in inputs.assumed
    assert "no-drive-values" not in {item.code for item in notices}
    table = parameter_table(make_plan(inputs).mechanism)
    assert {parameter.name.partition("_")[0] for parameter in table} >= set(terms)
    values = dict(zip((parameter.name for parameter in table), inputs.chi, strict=True))
    for parameter in result.parameters:  # those of drives keep their names; sums are in the others
        if parameter.name in values:
            assert values[parameter.name] == pytest.approx(parameter.value, rel=1e-12)  # copied
    assert plan_inputs(name, settings.changed(rate=250.0))[0].rate == 250.0


def test_values_of_a_bad_result_are_not_used(recorded, tmp_path: Path) -> None:
    from dynid.pipeline import identify

    name, log = recorded
    result = identify(name, log)
    bad = replace(result, verdict=replace(result.verdict, level="bad"))
    bad.save(tmp_path / "result")
    inputs, _ = plan_inputs(name, QUICK.changed(starts=1, after=[tmp_path / "result"]))
    assert "existing result" not in inputs.assumed


def test_closed_robots_keep_their_loops_and_all_limits() -> None:
    found = excite("fivebar", QUICK.changed(starts=1, hops=0))
    assert min(limit.margin_percent for limit in found.limits) >= 0.0
    start = found.starts[found.best]
    assert start.value > start.random + 5.0
    robot = found.plan.mechanism
    q = found.motion.q(np.linspace(0.0, 4.0, 500))
    for j, name in enumerate(robot.measured_positions):
        low, high = robot.limits[name]["q"]
        assert low <= q[:, j].min()
        assert q[:, j].max() <= high


def test_a_series_in_the_pose_of_the_platform_keeps_the_limits_of_all_joints() -> None:
    found = excite("rrr3", QUICK.changed(starts=1, hops=0, terms=3, along="platform"))
    assert found.moved == ("platform_x", "platform_y", "platform_yaw")
    assert found.names == ("motor1", "motor2", "motor3")
    assert min(limit.margin_percent for limit in found.limits) >= 0.0
    robot = load_robot("rrr3")
    for j, name in enumerate(found.names):
        low, high = robot.limits[name]["q"]
        assert low <= found.q[:, j].min()
        assert found.q[:, j].max() <= high
        assert np.abs(found.dq[:, j]).max() <= robot.limits[name]["dq"]
    with pytest.raises(InputError, match="'distal1' moves in x, y, yaw"):
        excite("fivebar", QUICK.changed(along="distal1"))
    with pytest.raises(InputError, match="has no closed loops"):
        excite("scara", QUICK.changed(along="quill"))


def test_a_redundant_cable_robot_is_led_by_its_platform_and_stays_taut(tmp_path: Path) -> None:
    found = excite("cable8", QUICK.changed(starts=1, hops=0, terms=3))
    assert found.moved == tuple(f"platform_{name}" for name in ("x", "y", "z", "roll", "pitch", "yaw"))
    assert not other_notices(found)
    pulls = [limit for limit in found.limits if limit.kind == "tension"]
    assert len(pulls) == 8
    assert min(limit.margin_percent for limit in found.limits) >= 0.0
    assert all(limit.least is not None and limit.least >= 20.0 for limit in pulls)
    np.testing.assert_allclose(np.linalg.norm(found.q[:, 3:7], axis=1), 1.0, atol=1e-12)  # rounding
    assert np.abs(found.q[:, :3]).max() <= 0.3
    start = found.starts[0]
    assert start.value > start.random + 5.0
    with claimed_folder(tmp_path / "out", ()) as path:
        replace_folder(path, excitation_files(found))
    again = file_motion(load_robot("cable8"), str(tmp_path / "out" / "trajectory.csv"))
    np.testing.assert_allclose(again.q(found.t[::50]), found.q[::50], atol=1e-9)  # of the interpolation


def test_the_same_seed_gives_the_same_motion_in_any_number_of_processes(tmp_path: Path) -> None:
    name = pair(tmp_path)
    settings = QUICK.changed(starts=3, hops=1)
    serial, parallel = excite(name, settings, jobs=1), excite(name, settings, jobs=2)
    assert [start.z for start in serial.starts] == [start.z for start in parallel.starts]
    # The worst start after the first descents is not searched; every motion that was is at least as good.
    dropped = [start for start in serial.starts if start.dropped]
    assert [start.first for start in dropped] == [min(start.first for start in serial.starts)]
    assert np.isnan(dropped[0].value)
    assert serial.criterion == max(start.value for start in serial.starts if not start.dropped)


def test_the_journal_survives_a_torn_line_and_refuses_another_job(tmp_path: Path) -> None:
    file = tmp_path / "x.journal.jsonl"
    journal = Journal(file, {"seed": 1})
    start = Start(0, (0.1, 1 / 3), 1.0, 0.5, 0.1, 10, -0.1)
    journal.add(start)
    with file.open("a") as stream:
        stream.write('{"number": 1, "z": [0.2, 0.')
    again = Journal(file, {"seed": 1})
    assert {number: asdict(finished) for number, finished in again.done.items()} == {0: asdict(start)}
    again.add(replace(start, number=1))
    assert set(Journal(file, {"seed": 1}).done) == {0, 1}
    with pytest.raises(InputError, match="seed is 1 there and 2 here"):
        Journal(file, {"seed": 2})


def test_a_refused_run_leaves_nothing_that_blocks_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pose of rest is checked before the search; a refusal after the search deletes its starts."""

    def refused(*_: object) -> None:
        raise InputError("no move")

    robot, journal = pair(tmp_path), tmp_path / "q.journal.jsonl"
    quick = QUICK.changed(starts=1, hops=0)
    for home, words in (((0.0,) * 3, "3 values of"), ((0.0, 9.0), "outside its range")):
        with pytest.raises(InputError, match=words):
            excite(robot, quick.changed(home=home), journal=journal)
        assert not journal.exists()
    with monkeypatch.context() as late:
        late.setattr("dynid.excitation.excite.run_of", refused)
        with pytest.raises(InputError, match="no move"):
            excite(robot, quick, journal=journal)
    assert not journal.exists()
    journal.write_text(json.dumps({"schema": "dynid.journal/1", "robot": "another"}) + "\n")
    excite(robot, quick, journal=journal)  # nothing was finished there


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_progress_grows_until_the_best_starts_are_searched() -> None:
    said: list[tuple[str, float]] = []
    starter = SimpleNamespace(run=lambda number: SimpleNamespace(number=number))
    run_starts(
        SimpleNamespace,
        (),
        4,
        Journal(None, {}),
        starter=starter,
        then=lambda done: [(number,) for number in (4, 5) if number not in done],
        progress=lambda stage, share: said.append((stage, share)),
    )
    shares = [share for _, share in said]
    assert shares == sorted(shares)
    assert said[0] == ("start 0 of 4", 0.0)
    assert said[-2:] == [("best starts: 1 of 2", 0.75), ("best starts: 2 of 2", 1.0)]


def test_killed_and_resumed_gives_the_identical_result(tmp_path: Path) -> None:
    name = pair(tmp_path)
    start = [sys.executable, "-c", "from dynid.cli import main; main()"]
    # Hops make a start long enough to be interrupted before the last one, also where this test has to wait.
    command = [*start, "excite", name, "--starts", "50", "--hops", "8", "--harmonics", "3", "--period", "4"]
    whole, part = tmp_path / "whole", tmp_path / "part"
    journal = tmp_path / "part.journal.jsonl"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    common = {"cwd": tmp_path, "env": environment}
    alone = [*command, "--jobs", "1", "--out", str(part)]
    with subprocess.Popen(alone, **common) as run:
        _wait_for(journal, 4, run)
        run.kill()
    done = len(journal.read_text().splitlines()) - 1
    assert 4 <= done < 50
    # As a background job of a shell these tests ignore SIGINT, and their processes would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupted = subprocess.Popen(alone, stderr=subprocess.PIPE, text=True, **common)
    signal.signal(signal.SIGINT, before)
    with interrupted as run:
        _wait_for(journal, done + 6, run)
        run.send_signal(signal.SIGSTOP)  # it cannot end before the interrupt, however slow this machine is
        assert len(journal.read_text().splitlines()) - 1 < 50
        run.send_signal(signal.SIGINT)
        run.send_signal(signal.SIGCONT)
        error = run.communicate()[1]
    assert run.returncode == 130
    assert "run the same command again to continue" in error
    for out in (part, whole):
        subprocess.run(
            [*command, "--jobs", "2", "--out", str(out)], check=True, capture_output=True, **common
        )
    documents = [json.loads((out / "excitation.json").read_text()) for out in (part, whole)]
    assert documents[0] == documents[1]
    assert (part / "trajectory.csv").read_text() == (whole / "trajectory.csv").read_text()
    assert not journal.exists()


def _wait_for(journal: Path, lines: int, run: subprocess.Popen) -> None:
    while run.poll() is None:
        if journal.exists() and len(journal.read_text().splitlines()) > lines:
            return
        time.sleep(0.02)
    raise AssertionError("the run ended before its journal grew")


def test_a_motion_is_saved_from_python_as_by_the_command(tmp_path: Path) -> None:
    """Settings of files are refused where nothing is written."""
    for given in ({"out": "o"}, {"controllers": ["ros2"]}, {"controller_rate": 100.0}):
        with pytest.raises(InputError, match=r"excite\(\.\.\.\)\.save"):
            excite(pair(tmp_path), given)
    shared = ["--starts", "1", "--hops", "0", "--period", "4", "--for-controller", "csv", "--out"]
    done = CliRunner().invoke(main, ["excite", pair(tmp_path), *shared, str(tmp_path / "command")])
    assert done.exit_code == 0, done.output
    found = excite(pair(tmp_path), {"starts": 1, "hops": 0, "period": 4})
    with pytest.raises(InputError, match="no controller format 'cvs'"):
        found.save(tmp_path / "python", controllers=["cvs"])
    found.save(tmp_path / "python", controllers=["csv"])
    texts = [
        {file.name: file.read_text() for file in (tmp_path / name).iterdir()}
        for name in ("command", "python")
    ]
    assert texts[0] == texts[1]


def test_files_and_text_of_the_command(tmp_path: Path) -> None:
    out = tmp_path / "motion"
    arguments = ["excite", pair(tmp_path), "--starts", "2", "--hops", "0", "--period", "4", "--out", str(out)]
    done = CliRunner().invoke(main, [*arguments, "--noise", "0.5,0.2", "--rate", "200"])
    assert done.exit_code == 0, done.output
    assert "2 starts: values from" in done.output
    document = json.loads((out / "excitation.json").read_text())
    assert document["criterion_name"] == "logdet"
    assert document["noise"] == {"shoulder": 0.5, "elbow": 0.2}
    assert document["spread"]["best"] == document["criterion"]
    assert all(limit["margin_percent"] >= 0.0 for limit in document["limits"])
    assert {"name", "unit", "sigma_before", "sigma_after", "gain"} == set(document["parameters"][0])
    page = (out / "report.html").read_text()
    assert "http://" not in page.split("<main>")[1].split("</main>")[0]
    assert 'id="robot-data"' in page
    log = np.genfromtxt(out / "trajectory.csv", delimiter=",", names=True)
    assert log.dtype.names[:3] == ("t", "q_shoulder", "q_elbow")
    assert len(log) == 801
    times = [line.split(",")[0] for line in (out / "trajectory.csv").read_text().splitlines()[1:]]
    assert [float(time) for time in times] == (np.arange(801) / 200).tolist()  # exact,
    assert max(map(len, times)) <= len("0.005")  # and as short as possible
    assert all(line == line.rstrip() for line in done.output.splitlines())
    with pytest.raises(InputError, match=r"trajectory\.csv"):
        file_motion(load_robot(pair(tmp_path)), str(out / "coefficients.yaml"))
    from dynid.excitation.export import read_trajectory

    again = read_trajectory(out / "run.ros2.yaml")
    assert again.names == ("shoulder", "elbow")
    np.testing.assert_array_equal(again.dq[[0, -1]], 0.0)  # with approach and return: a run begins at rest
    refused = CliRunner().invoke(main, ["excite", pair(tmp_path), "--noise", "1,2,3", "--out", str(out)])
    assert refused.exit_code == 2
    assert "3 noise values do not match 2 actuators" in refused.output


@pytest.mark.parametrize("name", ["fivebar", "dualv", "orthoglide"])
def test_promise_simulation_and_rehearsal_assume_the_same_noise_and_rate(name: str) -> None:
    robot, (inputs, _) = load_robot(name), plan_inputs(name, ExciteSettings())
    simulated = default_simulation(robot)
    np.testing.assert_array_equal(inputs.noise, simulated.sensing.effort_sigma)
    assert inputs.rate == simulated.rate
    assert f"{inputs.rate:g} Hz" in inputs.assumed
    assert f"built-in experiment of '{name}'" in inputs.assumed
    assert noise_of(robot, ExciteSettings(noise=(0.3,))) == (0.3,) * len(robot.actuators)


def test_noise_comes_from_limits_where_nobody_gives_it() -> None:
    robot = replace(load_robot("dualv"), file=None)  # no built-in robot: without an experiment of its own
    assert noise_of(robot, ExciteSettings()) == pytest.approx([1.27] * 4)
    np.testing.assert_allclose(default_simulation(robot).sensing.effort_sigma, [1.27] * 4)
    assert default_recorder(replace(robot, limits={})).effort_sigma == ()


def test_promised_sigma_of_a_badly_conditioned_motion_is_not_zero() -> None:
    """Singular values over eleven decades: what is promised is that of the exact pseudo-inverse."""
    rng = np.random.default_rng(3)
    U, V = (np.linalg.qr(rng.normal(size=(n, 8)))[0] for n in (60, 8))
    s = np.logspace(0.0, -11.0, 8)
    noise = np.broadcast_to(2.0 * np.eye(3), (20, 3, 3))
    exact = 2.0 * np.linalg.norm(V / s, axis=1)
    # Rounding of W moves a singular value of 1e-11 by some 1e-5 of itself.
    np.testing.assert_allclose(_sigmas(U * s @ V.T, noise, None), exact, rtol=1e-3)
    unseen = np.column_stack([U[:, :7], np.zeros(60)])
    assert np.isinf(_sigmas(unseen, noise, None)).tolist() == [False] * 7 + [True]


@pytest.mark.parametrize("name", ["dualv", "orthoglide"])
def test_the_outcome_of_a_rehearsal_is_what_the_motion_promises(name: str) -> None:
    found = excite(name, ExciteSettings(starts=1, hops=0, period=2.0))
    promised = dict(zip(found.base_names, found.after.sigma, strict=True))
    settings = replace(default_simulation(found.plan.mechanism), duration=None)
    course = simulate(load_robot(name), settings, SampledMotion(found.t, found.q))
    experiment = Experiment(robot=name, uncertainty=UncertaintySettings("classical"))
    fit = fit_task(Task(load_robot(name), (course.log(3),), experiment))
    ratios = [entry.sigma / promised[entry.name] for entry in fit.parts.parameters if entry.name in promised]
    assert len(ratios) > 0.8 * len(promised)
    # Rehearsals warn from 1.3 on. The edges that filters lose count here: the log is only 2 s long.
    assert 1 / 1.3 < np.median(ratios) < 1.3


def test_linear_uses_tell_what_is_left() -> None:
    robot = load_robot("scara")
    family, box = FourierFamily(4, 2.0), box_of(robot, robot.measured_positions)
    blocks = Blocks(family, box)
    x = blocks.coefficients(blocks.random(np.random.default_rng(3), 0.5))
    for use in linear_uses(family, box, x):
        assert use.low is not None
        assert use.high is not None
        assert 0.0 < use.margin_percent <= 100.0
