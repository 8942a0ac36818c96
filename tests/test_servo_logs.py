"""Servo logs without efforts: PD laws, delay and bias with the dynamics; their exports and replays."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

from dynid.common.errors import InputError
from dynid.experiment.experiment import experiment_from
from dynid.exporters import export
from dynid.exporters.actuators import ActuatorModel, position_actuators
from dynid.exporters.replay import replayed
from dynid.mechanism.load import load_robot
from dynid.motion.log import Log, Servo
from dynid.motion.servo import Law, PdSettings, servo_log, speeds
from dynid.pipeline import identify
from dynid.problem import as_asked, as_logs, prepare
from dynid.report.output import write_results
from dynid.unknowns.saturation import Limits, _limited, masked, without
from tests.servo_robot import JOINTS, Truth, command, leg, plant, servo_run

TRUTH = Truth()
OPEN = {"kp": "unknown", "kd": list(TRUTH.kd), "delay": "unknown", "bias": "unknown", "bodies": "known"}


@pytest.fixture(scope="module")
def leg_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("leg") / "leg.xml"
    file.write_text(leg())
    return file


@pytest.fixture(scope="module")
def runs():
    pytest.importorskip("mujoco")
    return [servo_run(TRUTH, seed, seconds=5.0) for seed in (0, 1)]


@pytest.fixture(scope="module")
def found(leg_file, runs):
    return identify(leg_file, runs, pd=OPEN, drive=["Ia", "Fv", "Fs"], auto="off")


def small_log(q, q_ref, dt=0.01) -> Log:
    n, m = q.shape
    return Log(
        name="small",
        file=None,
        sha256=None,
        t=dt * np.arange(n),
        q=q,
        dq=None,
        ddq=None,
        tau=np.full((n, m), np.nan),
        effort_present=np.zeros(m, bool),
        position_names=tuple(f"j{k}" for k in range(m)),
        effort_names=tuple(f"j{k}" for k in range(m)),
        segments=((0, n),),
        dt=dt,
        valid=np.ones(n, bool),
        q_ref=q_ref,
        servo=Servo(q, np.zeros((n, m)), tuple(range(m)), np.ones(m)),
    )


def test_a_law_gives_its_efforts_and_the_positions_of_the_bodies() -> None:
    t = 0.01 * np.arange(400)
    q, ref = np.sin(t)[:, None], np.cos(t)[:, None]
    law = Law(np.array([20.0]), np.array([0.5]), np.array([0.013]), np.array([0.02]))
    log = law.applied(small_log(q, ref))
    wanted = 20.0 * (np.cos(t - 0.013) - np.sin(t)) - 0.5 * np.cos(t)
    # Inside: cubics through samples err by 0.02 dt^4, central differences by dt^2 / 6.
    assert np.abs(log.tau[5:-5, 0] - wanted[5:-5]).max() < 1e-5
    assert np.allclose(log.q, q - 0.02)
    # The law starts from what the encoders showed, so that applying it twice is applying it once.
    assert np.array_equal(law.applied(log).q, log.q)


def test_settings_take_numbers_lists_and_unknowns() -> None:
    pd = experiment_from({"robot": "ur5", "pd": {"kp": [20, "unknown", "unknown"], "delay": "unknown"}}).pd
    assert pd is not None
    assert pd.unknown("kp", JOINTS) == ("thigh", "calf")
    assert pd.unknown("bias", JOINTS) == ()
    assert pd.open
    assert experiment_from({"robot": "ur5", "pd": pd.tree()}).pd == pd  # as a result records it
    with pytest.raises(InputError, match="3 values for 2 motors"):
        pd.values("kp", ("a", "b"))
    with pytest.raises(InputError, match="neither a number"):
        PdSettings(kp="large")
    with pytest.raises(InputError, match="not valid"):
        PdSettings(kp=-3.0)


def test_a_log_without_commands_is_refused(leg_file) -> None:
    robot = load_robot(leg_file)
    log = replace(small_log(np.zeros((50, 3)), None), servo=None)
    with pytest.raises(InputError, match="no commanded positions"):
        servo_log(log, robot, PdSettings())


def test_everything_is_found_from_positions_alone(found) -> None:
    """Two runs of 5 s; the intervals hold, and errors are small in themselves."""
    true = TRUTH.parameters()
    values = {one.name: one for one in found.parameters}
    names = [f"{s}_{j}" for s in ("Kp", "Delay", "Bias", "Ia", "Fs") for j in JOINTS]
    assert set(names) <= values.keys()
    errors = {n: abs(values[n].value - true[n]) / values[n].sigma for n in names}
    assert max(errors.values()) < 4.5  # 15 values of Student's t with about 10 degrees of freedom
    for name in names:
        # Delay and bias in s and rad; others relative.
        size = {"Delay": 3e-4, "Bias": 4e-3}.get(name.split("_")[0], 0.05 * true[name])
        assert abs(values[name].value - true[name]) < size, name
    assert "Kp_hip" in values
    assert values["Kp_hip"].unit == "N m/rad"


def test_all_gains_of_a_law_may_be_unknown(leg_file, runs) -> None:
    """The default of `pd:`. Its efforts are zero at the start, which is no fault of the log."""
    pd = {"delay": list(TRUTH.delay), "bias": list(TRUTH.bias), "bodies": "known"}
    result = identify(leg_file, runs, pd=pd, drive=["Ia", "Fs"], auto="off")
    values = {one.name: one for one in result.parameters}
    for k, joint in enumerate(JOINTS):
        # Two runs of 5 s: within 5 %, as above. Kd is the sum with the viscous friction.
        assert values[f"Kp_{joint}"].value == pytest.approx(TRUTH.kp[k], rel=0.05)
        assert values[f"Kd_{joint}"].value == pytest.approx(TRUTH.kd[k] + TRUTH.damping[k], rel=0.05)


def test_a_bias_that_free_bodies_absorb_is_reported_not_invented(leg_file, runs) -> None:
    """The frame of the last link may be turned about its axis: its free parameters hold any bias."""
    pd = {"kp": list(TRUTH.kp), "kd": list(TRUTH.kd), "bias": [0.0, 0.0, "unknown"]}
    result = identify(leg_file, runs, pd=pd, drive=["Ia", "Fv", "Fs"], auto="off")
    assert "Bias_calf" not in {one.name for one in result.parameters}
    assert [one.code for one in result.warnings].count("servo-lost") == 1


def test_an_effort_limit_is_found_and_masked() -> None:
    rng = np.random.default_rng(0)
    u = 4.0 * np.sin(np.linspace(0.0, 60.0, 3000))
    got = np.clip(u, -3.0, 3.0) + 0.05 * rng.standard_normal(len(u))
    limit = _limited(u, got, np.ones_like(u))
    assert limit is not None
    # The mean of some 1000 samples with 0.05 N m of noise.
    assert abs(limit.stall - 3.0) < 0.02
    assert not np.isfinite(limit.no_load)
    assert _limited(u, u + 0.05 * rng.standard_normal(len(u)), np.ones_like(u)) is None
    t = 0.01 * np.arange(500)
    law = Law(*(np.array([x]) for x in (20.0, 0.0, 0.0, 0.0)))
    log = small_log(np.zeros((500, 1)), 0.2 * np.sin(3.0 * t)[:, None])
    limits = replace(Limits.none(1), effort=np.array([3.0]))
    over = np.abs(20.0 * 0.2 * np.sin(3.0 * t)) > 3.0
    limited = masked(log, law, limits).servo.limited
    assert limited[over].all()
    assert not limited[np.abs(20.0 * 0.2 * np.sin(3.0 * t)) < 2.0].any()
    assert speeds(log).shape == (500, 1)


def test_a_law_is_found_although_a_motor_is_often_at_its_limit(leg_file) -> None:
    """A fit to all samples has a fifth of kp: the limit is suspected, masked, and then found."""
    truth = replace(TRUTH, limit=(np.inf, 1.5, np.inf))
    runs = [servo_run(truth, seed, seconds=4.0) for seed in (11, 12)]
    pd = {"kp": "unknown", "kd": list(truth.kd), "bodies": "known"}
    pd |= {"delay": list(truth.delay), "bias": list(truth.bias)}
    result = identify(leg_file, runs, pd=pd, drive=["Ia", "Fv", "Fs"], auto="off")
    found = {one.name: one for one in result.parameters}
    assert found["Limit_thigh"].value == pytest.approx(1.5, rel=0.02)
    low, high = found["Kp_thigh"].ci95
    assert low < truth.kp[1] < high
    assert found["Kp_thigh"].value == pytest.approx(truth.kp[1], rel=0.05)


@pytest.mark.parametrize("drive", [["Fv", "Fs"], ["Fv"]])
def test_a_motor_at_its_limit_leaves_the_equations_of_others(leg_file, runs, drive) -> None:
    """With or without dry friction: its samples are not used for a sign, but for an effort."""
    experiment = experiment_from({"robot": str(leg_file), "pd": OPEN, "drive": drive, "auto": "off"})
    robot = as_asked(load_robot(leg_file), experiment)
    (log,) = as_logs(runs[:1], robot, experiment)
    limited = np.zeros((len(log.t), 3), bool)
    limited[600:900, 1] = True
    weights = []
    for one in (log, without(log, limited)):
        (source,) = prepare(robot, [one], experiment).sources
        parts = [w.copy() for _, _, w in source.rows(500, 1000, 500)]
        weights.append(np.concatenate(parts, axis=1))
    assert np.all(weights[1][1, 97:403] == 0.0)
    np.testing.assert_array_equal(weights[1][[0, 2]], weights[0][[0, 2]])
    assert weights[0][1, 97:403].any()


def test_a_limit_that_falls_with_the_speed_is_found_with_its_interval() -> None:
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(12):
        t = np.linspace(0.0, 60.0, 3000)
        u = 6.0 * np.sin(t) + 2.0 * np.sin(2.3 * t + rng.uniform(0.0, 6.0))
        speed = 5.0 * np.sin(t - rng.uniform(0.3, 1.0)) + np.sin(0.7 * t)
        most = np.where(u * speed > 0.0, 4.0 * np.clip(1.0 - np.abs(speed) / 8.0, 0.0, 1.0), 4.0)
        got = np.clip(u, -most, most) + 0.05 * rng.standard_normal(len(u))
        limit = _limited(u, got, speed)
        assert limit is not None
        assert limit.no_load == pytest.approx(8.0, rel=0.02)  # the grid that it starts from has steps of 10 %
        inside.append(abs(limit.no_load - 8.0) < 1.96 * limit.no_load_sigma)
        inside.append(abs(limit.stall - 4.0) < 1.96 * limit.sigma)
    assert np.mean(inside) > 0.8  # of 24; some twenty visits each


def test_laws_of_motors_that_are_at_falling_limits_most_of_the_time(leg_file) -> None:
    """One motor or another is at its limit in 85 % of the samples; a fit to all of them has half of kp."""
    truth = replace(TRUTH, limit=(4.0, 4.0, 4.0), no_load=(7.0, 7.0, 7.0))
    runs = [servo_run(truth, 81100 + k, seconds=8.0) for k in range(4)]
    estimate = identify(leg_file, runs, pd=OPEN, drive=["Ia", "Fv", "Fs"], auto="off")
    true, inside = truth.parameters(), []
    for parameter in estimate.parameters:
        low, high = parameter.ci95
        inside.append(low <= true[parameter.name] <= high)
        if parameter.name.startswith(("Limit", "NoLoad", "Kp")):
            assert parameter.value == pytest.approx(true[parameter.name], rel=0.01), parameter.name
    assert len(inside) == 24
    assert sum(inside) >= 20  # fewer of 24 intervals by chance in 1 of 250 logs


def test_replays_use_the_line_that_an_effort_falls_along(tmp_path) -> None:
    """A plant with such a line is replayed to the noise of its encoders; without the line it is not."""
    pytest.importorskip("mujoco")
    import mujoco

    truth = replace(TRUTH, limit=(4.0, 4.0, 4.0), no_load=(7.0, 7.0, 7.0))
    columns = servo_run(truth, 21, seconds=2.0)
    file = tmp_path / "leg.xml"
    file.write_text(leg())
    robot = load_robot(file)
    experiment = experiment_from({"robot": str(file), "pd": OPEN})
    (log,) = as_logs([columns], robot, experiment)
    law = Law(*(np.array(x) for x in (truth.kp, truth.kd, truth.delay, truth.bias)))
    spec = mujoco.MjSpec.from_string(plant(truth))
    flat = replace(Limits.none(3), effort=np.array(truth.limit))
    line = replace(flat, no_load=np.array(truth.no_load))
    with_line, without = (replayed(spec, None, robot, log, law, limits).means[0] for limits in (line, flat))
    assert with_line < 2e-3  # its steps are longer, and its integrator is another
    assert without > 10.0 * with_line


def test_exports_have_the_law_and_replays_judge_them(found, leg_file, runs, tmp_path) -> None:
    write_results(found, tmp_path / "result")
    held_out = tmp_path / "held_out.csv"
    columns = servo_run(TRUTH, 7, seconds=3.0)
    np.savetxt(
        held_out,
        np.column_stack(list(columns.values())),
        delimiter=",",
        header=",".join(columns),
        comments="",
    )
    done = export(tmp_path / "result", ["mjcf", "actuators"], tmp_path / "out", replay=[held_out])
    document = json.loads((tmp_path / "out" / "export.json").read_text())
    replay = document["files"][0]["certificate"]["replays"][0]
    # The description has no armature, friction, delay or bias.
    assert replay["export_rms"] < 0.2 * replay["description_rms"]
    lost = " ".join(document["not_representable"])
    assert "full friction above" in lost
    assert "delay of the command of hip, thigh, calf" in lost
    assert "encoder bias of hip, thigh, calf" in lost
    made = yaml.safe_load((tmp_path / "out" / "leg.actuators.yaml").read_text())
    isaac = made["isaac_lab"]["DelayedPDActuatorCfg"]
    assert isaac["stiffness"]["hip"] == pytest.approx(20.0, rel=0.02)
    assert isaac["min_delay"] <= 3 <= isaac["max_delay"]
    assert made["mjlab"]["BuiltinPositionActuatorCfg"][1]["frictionloss"] == pytest.approx(0.2, rel=0.05)
    assert "<position" in (tmp_path / "out" / "leg.actuators.xml").read_text()
    assert done.physical


def test_hostile_names_stay_inside_their_attributes() -> None:
    from xml.etree import ElementTree

    model = ActuatorModel('"/><x', "a&<", 1.0, 2.0, 0.1, (0.0, 0.0, 0.0), 0.0, 0.0, 0.0, 0.0, 3.0)
    (line,) = position_actuators([model])
    node = ElementTree.fromstring(line)  # noqa: S314 (written here)
    assert node.get("name") == '"/><x'
    assert node.get("forcerange") == "-3.0 3.0"


def test_commands_are_smooth_at_the_start() -> None:
    assert np.allclose(command(np.zeros(1), 3), command(np.array([1e-9]), 3))


def test_jumps_of_friction_bias_no_inertia(leg_file) -> None:
    """Nearly without noise, errors are those of filter and mask: a tenth of those of a sharp mask (2e-3)."""
    pytest.importorskip("mujoco")
    quiet = [servo_run(replace(TRUTH, encoder=2e-6), seed, seconds=5.0) for seed in (10, 11)]
    estimate = identify(leg_file, quiet, pd=OPEN, drive=["Ia", "Fv", "Fs"], auto="off")
    true = TRUTH.parameters()
    values = {parameter.name: parameter.value for parameter in estimate.parameters}
    inertias = [values[f"Ia_{j}"] / true[f"Ia_{j}"] - 1.0 for j in JOINTS]
    delays = [values[f"Delay_{j}"] - true[f"Delay_{j}"] for j in JOINTS]
    assert np.abs(inertias).max() < 2e-4
    assert np.abs(delays).max() < 4e-6  # s; 1e-5 with speeds from three points


def test_a_delay_that_does_not_stand_still_is_reported_not_invented(leg_file, runs, monkeypatch) -> None:
    monkeypatch.setattr("dynid.unknowns.servo._ROUNDS", 1)  # the delay of 3 ms is one step of many sigmas
    estimate = identify(leg_file, runs, pd={**OPEN, "bias": 0.0}, drive=["Ia", "Fv", "Fs"], auto="off")
    assert not [p.name for p in estimate.parameters if p.name.startswith("Delay")]
    lost = {warning.text for warning in estimate.warnings if warning.code == "servo-lost"}
    assert len(lost) == 1
    assert all(f"Delay_{joint}" in lost.copy().pop() for joint in JOINTS)
