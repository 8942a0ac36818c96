"""From arrays to an estimate: recovery, and the classic mistakes of such programs as tests."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dynid import identify, load_robot
from dynid.common.errors import InputError, NoResultError
from dynid.common.notices import Notice
from dynid.estimator import wls
from dynid.experiment.experiment import Experiment, FilterSettings, MaskSettings
from dynid.mechanism.mechanism import Actuator, Body, Coupling, Payload
from dynid.mechanism.parameters import parameter_table
from dynid.motion.log import named_apart
from dynid.motion.logs import log_from_arrays
from dynid.pipeline import identify_logs
from dynid.problem import build_system, prepare
from dynid.simulation.prescribed import inverse_efforts
from tests.random_mechanisms import MOVING, random_inertias, random_tree

EXACT = Experiment(
    robot="",
    estimator="ols",
    filter=FilterSettings(kind="none", velocity="measured", decimate=1),
    mask=MaskSettings(speed=0.0, rest=0.0),
)
DRIVE = ("Ia", "Fv", "Fs", "Off")


def motion(n_joints: int, seconds: float = 8.0, rate: float = 200.0, seed: int = 0):
    """Smooth positions and their exact rates, sums of sines."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    q, dq, ddq = np.zeros((3, len(t), n_joints))
    for j in range(n_joints):
        for _ in range(4):
            w, a, phase = rng.uniform(1.0, 9.0), rng.uniform(0.1, 0.5), rng.uniform(0, 6)
            q[:, j] += a * np.sin(w * t + phase)
            dq[:, j] += a * w * np.cos(w * t + phase)
            ddq[:, j] -= a * w * w * np.sin(w * t + phase)
    return t, q, dq, ddq


def arm(n: int = 3, drive=DRIVE, seed: int = 4):
    """A chain of revolute joints with random geometry."""
    return random_tree(np.random.default_rng(seed), n, kinds=MOVING[:1], chain=True, drive=drive)


def true_parameters(robot, seed: int = 9) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    table = parameter_table(robot)
    inertias = random_inertias(rng, len(robot.joints) + len(robot.payloads)).tolist()
    values = {}
    for parameter in table:
        values[parameter.name] = inertias.pop(0) if parameter.kind == "inertial" else rng.uniform(0.5, 2.0)
    return values


def exact_log(robot, truth, *, seed: int = 0, payloads=(), name="log"):

    t, q, dq, ddq = motion(len(robot.measured_positions), seed=seed)
    tau = inverse_efforts(robot, truth, q, dq, ddq, tuple(payloads))
    return log_from_arrays(robot, t, q, tau, dq, ddq, name=name, payloads=payloads)


def assert_recovers(robot, logs, truth, experiment=EXACT, rtol=1e-7):
    estimate = identify_logs(robot, logs, (), experiment, truth=truth)
    for parameter in estimate.parameters:
        expected = estimate.truth[parameter.name]
        # Exact data: rounding times the condition number of W (below 1e4 here).
        assert parameter.value == pytest.approx(expected, rel=rtol, abs=rtol), parameter.name
    assert estimate.fit.residual_percent < 1e-7
    return estimate


@pytest.mark.parametrize("estimator", ["ols", "wls"])
def test_exact_data_give_the_truth(estimator: str) -> None:
    robot = arm()
    truth = true_parameters(robot)
    assert_recovers(robot, [exact_log(robot, truth)], truth, EXACT.changed(estimator=estimator))


def test_some_drive_terms_off_keep_columns_and_names_together() -> None:
    robot = arm(4, drive=())
    names = robot.coordinates
    mixed = {names[0]: ("Fs",), names[2]: ("Fv+", "Fv-", "Off"), names[3]: ("Ia", "Fs+", "Fs-")}
    robot = replace(robot, drive=mixed)
    truth = true_parameters(robot)
    estimate = assert_recovers(robot, [exact_log(robot, truth)], truth)
    drives = {p.name.removesuffix("_R") for p in estimate.parameters if "joint" in p.name}
    assert {f"Fs_{names[0]}", f"Fv+_{names[2]}", f"Fv-_{names[2]}", f"Off_{names[2]}"} <= drives
    assert not any(name.endswith(names[1]) for name in drives)


def test_priors_stand_beside_their_own_body() -> None:
    robot = load_robot("puma560")
    bodies = {
        name: Body(name, prior={f: 10.0 * i + k for k, f in enumerate(Body(name).parameters)})
        for i, name in enumerate(robot.bodies)
    }
    robot = replace(robot, bodies=bodies)
    truth = true_parameters(robot)
    estimate = identify_logs(robot, [exact_log(robot, truth)], (), EXACT)
    standard = {f"{f}_{name}": v for name, body in bodies.items() for f, v in body.prior.items()}
    alone = [p for p in estimate.parameters if not p.grouping and p.name in standard]
    assert {"XY_link_2", "YZ_link_3", "XZ_link_5", "XY_link_6"} <= {p.name for p in alone}
    for parameter in alone:
        assert parameter.prior == standard[parameter.name]


def test_filter_and_decimation_settings_are_used() -> None:
    robot = arm()
    truth = true_parameters(robot)
    log = exact_log(robot, truth)
    noisy = replace(log, tau=log.tau + np.random.default_rng(1).normal(size=log.tau.shape))
    found = {}
    for label, settings in {
        "wide": FilterSettings(cutoff=40, decimate=2),
        "narrow": FilterSettings(cutoff=8, decimate=2),
        "few": FilterSettings(cutoff=40, decimate=8),
        "rows": FilterSettings(cutoff=40, decimate=2, rows=10),
        "derived": FilterSettings(cutoff=40, decimate=2, velocity="derived"),
        "coarse": FilterSettings(cutoff=40, decimate=2, velocity="derived", derivative="central3"),
    }.items():
        found[label] = identify_logs(robot, [noisy], (), EXACT.changed(filter=settings))
    values = {label: tuple(p.value for p in e.parameters) for label, e in found.items()}
    assert len(set(values.values())) == len(values)
    assert found["few"].fit.n_rows < 0.3 * found["wide"].fit.n_rows
    assert found["rows"].fit.residual_percent < 0.8 * found["wide"].fit.residual_percent


def test_every_joint_has_its_acceleration() -> None:
    robot = arm(4, drive=())
    truth = true_parameters(robot)
    log = exact_log(robot, truth)
    derived = replace(log, dq=None, ddq=None)
    settings = FilterSettings(kind="none", decimate=1, velocity="derived")
    source = prepare(robot, [derived], EXACT.changed(filter=settings)).sources[0]
    start, stop = source.pieces()[0]
    ddq = source.motion.states(start, stop)[2]
    # 7-point formula at 200 Hz on sines up to 9 rad/s: (w h)^6 is 1e-8.
    np.testing.assert_allclose(ddq, log.ddq[start:stop], atol=1e-5)


def test_rows_of_a_group_are_those_of_its_joint() -> None:
    robot = arm()
    log = exact_log(robot, true_parameters(robot))
    offsets = np.array([1e3, 2e3, 3e3])
    tau = np.tile(offsets, (len(log.t), 1))
    tau[0] = 0.0  # efforts that never change are refused; the ends of a log are cut
    system = build_system(prepare(robot, [replace(log, tau=tau)], EXACT))
    for group, offset in zip(system.groups, offsets, strict=True):
        norm = np.linalg.norm(group.factor(len(system.parameters)).Y)
        assert norm == pytest.approx(offset * np.sqrt(group.n_rows), rel=1e-12)  # rounding


def test_the_order_of_joints_in_the_file_changes_no_value() -> None:
    robot = random_tree(np.random.default_rng(8), 4, kinds=MOVING[:1], drive=())
    legs = replace(
        robot,
        joints=tuple(replace(joint, parent="base") for joint in robot.joints),
    )
    turned = replace(legs, joints=legs.joints[::-1], measured=legs.measured, actuators=legs.actuators)
    truth = true_parameters(legs)
    log = exact_log(legs, truth)
    one = identify_logs(legs, [log], (), EXACT)
    two = identify_logs(turned, [log], (), EXACT)
    assert {p.name for p in one.parameters} == {p.name for p in two.parameters}
    for parameter in one.parameters:
        assert two[parameter.name].value == pytest.approx(parameter.value, rel=1e-8, abs=1e-9)


def test_coupled_motors_feel_both_joints() -> None:
    robot = arm(3, drive=())
    a, b, c = robot.coordinates
    motors = (Actuator("m1", {a: 50.0}), Actuator("m2", {b: 30.0}), Actuator("m3", {b: 20.0, c: 40.0}))
    robot = replace(robot, actuators=motors, drive={"m3": ("Ia", "Fv", "Fs"), b: ("Fv",)})
    truth = true_parameters(robot)
    estimate = assert_recovers(robot, [exact_log(robot, truth)], truth)
    assert estimate["Fv_m3"].value == pytest.approx(truth["Fv_m3"], rel=1e-6)


def test_coupled_joints_follow_and_load_their_leader() -> None:
    robot = arm(3, drive=("Fv",))
    a, b, c = robot.coordinates
    robot = replace(
        robot,
        couplings=(Coupling(c, {b: -0.5}, 0.2),),
        actuators=tuple(Actuator(name, {name: 1.0}) for name in (a, b)),
        measured=(a, b),
    )
    truth = true_parameters(robot)
    assert_recovers(robot, [exact_log(robot, truth)], truth)


def test_a_passive_joint_gives_an_equation_without_effort() -> None:
    """A pendulum hangs free on a driven joint: its own row, right side zero, still informs."""
    robot = arm(2, drive=())
    a, b = robot.coordinates
    driven = replace(robot, actuators=(Actuator(a, {a: 1.0}),), drive={b: ("Fv",)}, measured=(a, b))
    truth = true_parameters(driven)
    t, q, dq, ddq = motion(2)
    full = replace(driven, actuators=(Actuator(a, {a: 1.0}), Actuator(b, {b: 1.0})))
    tau = inverse_efforts(full, truth, q, dq, ddq)
    # A motion the passive joint would not make by itself leaves an effort there: its row says so.
    log = log_from_arrays(driven, t, q, tau[:, :1], dq, ddq)
    estimate = identify_logs(driven, [log], (), EXACT)
    assert [group.name for group in estimate.fit.groups] == [a, b]
    # It has no measured side to be a part of, and a residual all the same.
    assert np.isnan(estimate.fit.groups[1].residual_percent)
    assert estimate.fit.groups[1].rms > 0.0


def test_payload_is_told_apart_by_a_loaded_and_an_unloaded_log() -> None:
    robot = arm(3)
    last = robot.joints[-1].child
    robot = replace(robot, payloads={"load": Payload("load", last)})
    truth = true_parameters(robot)
    logs = [
        exact_log(robot, truth, name="empty"),
        exact_log(robot, truth, seed=1, payloads=("load",), name="loaded"),
    ]
    estimate = assert_recovers(robot, logs, truth)
    assert any(p.name.startswith("M") and p.name.endswith("load") for p in estimate.parameters)


def test_known_values_move_to_the_right_side() -> None:
    robot = arm(3)
    truth = true_parameters(robot)
    body, joint = robot.joints[-1].child, robot.coordinates[0]
    free = identify_logs(robot, [exact_log(robot, truth)], (), EXACT)
    known = {symbol: truth[f"{symbol}_{body}"] for symbol in ("MX", "MY", "MZ")}
    robot = replace(
        robot,
        bodies={**robot.bodies, body: Body(body, known=known)},
        known={f"Fv_{joint}": truth[f"Fv_{joint}"]},
    )
    estimate = assert_recovers(robot, [exact_log(robot, truth)], truth)
    assert len(estimate.parameters) < len(free.parameters)
    assert f"Fv_{joint}" not in {p.name for p in estimate.parameters}


def test_a_joint_that_stands_still_is_named_not_numbered() -> None:
    robot = arm(3)
    truth = true_parameters(robot)
    t, q, dq, ddq = motion(3)
    q[:, 2], dq[:, 2], ddq[:, 2] = 0.3, 0.0, 0.0
    tau = inverse_efforts(robot, truth, q, dq, ddq)
    log = log_from_arrays(robot, t, q, tau, dq, ddq)
    estimate = identify_logs(robot, [log], (), EXACT)
    unseen = estimate.not_identifiable
    assert f"Fv_{robot.coordinates[2]}" in unseen
    assert "does not move" in unseen[f"Fv_{robot.coordinates[2]}"]
    assert not set(unseen) & {p.name for p in estimate.parameters}
    assert "not-excited" in {notice.code for notice in estimate.warnings}


def test_a_log_predicted_after_use_is_marked(tmp_path) -> None:
    from dynid.simulation.files import write_log

    robot = arm(2)
    write_log(exact_log(robot, true_parameters(robot)), tmp_path / "a.csv")
    estimate = identify(robot, tmp_path / "a.csv", validate=[tmp_path / "a.csv"])
    assert not estimate.validation[0].independent
    assert "validation-not-independent" in {notice.code for notice in estimate.warnings}


def test_a_saved_result_predicts_like_the_estimate(tmp_path) -> None:
    from dynid.pipeline import validate_result
    from dynid.report.output import write_results
    from dynid.simulation.files import write_log

    robot = load_robot("scara")
    logs = []
    for seed in (0, 1):
        t, q, dq, ddq = motion(4, seed=seed)
        q[:, 2], dq[:, 2], ddq[:, 2] = 0.05 * q[:, 2], 0.05 * dq[:, 2], 0.05 * ddq[:, 2]
        tau = inverse_efforts(robot, true_parameters(robot), q, dq, ddq)
        logs.append(tmp_path / f"{seed}.csv")
        write_log(log_from_arrays(robot, t, q, tau), logs[-1])
    estimate = identify("scara", logs[0], validate=[logs[1]])
    write_results(estimate, tmp_path / "out")
    (later,), _ = validate_result(tmp_path / "out", [logs[1]])
    assert later.independent
    assert later.effort_percent == pytest.approx(estimate.validation[0].effort_percent, rel=1e-6)


def test_weights_that_do_not_settle_are_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = arm(2)
    log = exact_log(robot, true_parameters(robot))
    noisy = replace(log, tau=log.tau + np.random.default_rng(1).normal(size=log.tau.shape))
    # One round has no step to compare: it cannot have arrived.
    estimators = {"wls": replace(estimators_wls(), weighting=partial(wls.group_weights, max_iterations=1))}
    monkeypatch.setattr("dynid.estimator.estimator.ESTIMATORS", estimators)
    with pytest.raises(NoResultError, match="not converged") as caught:
        identify_logs(robot, [noisy], (), EXACT.changed(estimator="wls"))
    assert caught.value.estimate is not None
    assert caught.value.exit_code == 3


def estimators_wls():
    from dynid.estimator.estimator import ESTIMATORS

    return ESTIMATORS["wls"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "wrench"}, "model 'wrench' needs a table"),
        ({"efforts": (7,)}, "effort number 7 does not exist"),
        ({"efforts": ("joint0x",)}, "did you mean 'joint0'"),
        ({"keep": ("nothing",)}, "no base parameter"),
    ],
)
def test_what_cannot_be_done_is_refused(changes: dict, message: str) -> None:
    robot = arm(2)
    log = exact_log(robot, true_parameters(robot))
    with pytest.raises(InputError, match=message):
        identify_logs(robot, [log], (), EXACT.changed(**changes))


def test_too_few_rows_are_refused() -> None:
    robot = arm(3)
    log = exact_log(robot, true_parameters(robot))
    few = EXACT.changed(filter=FilterSettings(kind="none", velocity="measured", decimate=400))
    with pytest.raises(InputError, match="rows cannot determine"):
        identify_logs(robot, [log], (), few)


def test_essential_parameters_stay_listed_with_their_note() -> None:
    robot = arm(3)
    truth = true_parameters(robot)
    truth = {name: 0.0 if name.startswith("Off") else value for name, value in truth.items()}
    log = exact_log(robot, truth)
    noisy = replace(log, tau=log.tau + 2.0 * np.random.default_rng(1).normal(size=log.tau.shape))
    estimate = identify_logs(robot, [noisy], (), EXACT.changed(essential={"sigma_percent": 20.0}))
    removed = [p for p in estimate.parameters if not p.essential]
    assert removed
    assert all(p.value == 0.0 and p.sigma is None and p.ci95 is None for p in removed)
    assert "essential-bias" in {notice.code for notice in estimate.warnings}


def test_effort_given_by_number_and_by_name_is_refused() -> None:
    robot = arm()
    log = exact_log(robot, true_parameters(robot))
    name = robot.actuators[1].name
    with pytest.raises(InputError, match="twice"):
        identify_logs(robot, [log], (), EXACT.changed(efforts=(2, name)))


def test_log_given_twice_is_reported() -> None:
    """Its rows count double, so that every sigma promises too much."""
    robot = arm()
    log = exact_log(robot, true_parameters(robot))
    once = identify_logs(robot, [log], (), EXACT)
    again = identify_logs(robot, [log, replace(log, name="copy")], (), EXACT)
    assert not any(notice.code == "log-repeated" for notice in once.warnings)
    (notice,) = [notice for notice in again.warnings if notice.code == "log-repeated"]
    assert "copy" in notice.text
    here = [replace(log, name="run", file="run.csv") for _ in range(2)]
    assert [one.name for one in named_apart(here)] == ["run", "run (2)"]


def test_notices_of_held_out_logs_reach_the_result() -> None:
    robot = arm()
    truth = true_parameters(robot)
    told = Notice("gap", "1 gap longer than 10 ms", "check the recorder")
    unseen = replace(exact_log(robot, truth, seed=1, name="unseen"), notices=(told,))
    estimate = identify_logs(robot, [exact_log(robot, truth)], [unseen], EXACT)
    (notice,) = [notice for notice in estimate.warnings if notice.code == "gap"]
    assert notice.text == "unseen: 1 gap longer than 10 ms"


def test_options_of_another_model_are_reported() -> None:
    robot = arm()
    log = exact_log(robot, true_parameters(robot))
    estimate = identify_logs(robot, [log], (), EXACT.changed(energy={"window": 0.1}))
    assert [notice.code for notice in estimate.warnings if "energy" in notice.text] == ["option-ignored"]


def test_one_log_to_validate_needs_no_list() -> None:
    robot = arm()
    truth = true_parameters(robot)
    unseen = exact_log(robot, truth, seed=1, name="unseen")
    estimate = identify(robot, exact_log(robot, truth), validate=unseen)
    assert [one.log for one in estimate.validation] == ["unseen"]


def test_power_of_a_tree_finds_what_the_inverse_model_finds() -> None:
    robot = arm(3)
    truth = true_parameters(robot)
    logs = [exact_log(robot, truth, seed=seed) for seed in (0, 1)]
    estimate = assert_recovers(robot, logs, truth, EXACT.changed(model="power"), rtol=1e-6)
    assert [group.name for group in estimate.fit.groups] == ["power"]
    inverse = identify_logs(robot, logs, (), EXACT)
    assert [p.name for p in estimate.parameters] == [p.name for p in inverse.parameters]


def test_a_power_result_is_judged_on_efforts() -> None:
    robot = arm(2)
    truth = true_parameters(robot)
    logs = [exact_log(robot, truth, seed=seed) for seed in (0, 1, 2)]
    estimate = identify_logs(robot, logs[:2], logs[2:], EXACT.changed(model="power"))
    assert [group.name for group in estimate.validation[0].groups] == list(robot.coordinates)
    assert estimate.validation[0].effort_percent < 1e-5  # exact data, rounding times condition


@pytest.mark.parametrize("overlap", [False, True])
def test_energy_needs_no_acceleration(overlap: bool) -> None:
    """The log has positions and velocities only; windows of 50 ms at 1 kHz."""
    robot = replace(arm(3), drive=dict.fromkeys(arm(3).coordinates, ("Ia", "Fv+", "Fv-", "Fs", "Off")))
    truth = true_parameters(robot)
    logs = []
    for seed in (0, 1, 2):
        t, q, dq, ddq = motion(3, rate=1000.0, seed=seed)
        tau = inverse_efforts(robot, truth, q, dq, ddq)
        logs.append(log_from_arrays(robot, t, q, tau, dq, name=f"log {seed}"))
    experiment = EXACT.changed(model="energy", energy={"window": 0.05, "overlap": overlap})
    estimate = identify_logs(robot, logs, (), experiment, truth=truth)
    assert estimate.fit.n_parameters == len(identify_logs(robot, logs, (), EXACT).parameters)
    # Integrals by cubics lose a little at reversals, where |dq| has a kink: h^2 of a sample.
    assert estimate.fit.residual_percent < 0.01
    for parameter in estimate.parameters:
        expected = estimate.truth[parameter.name]
        assert parameter.value == pytest.approx(expected, rel=0.01, abs=0.01), parameter.name
    width = 50 if not overlap else 25
    assert estimate.fit.n_rows == pytest.approx(3 * 8000 / width, rel=0.06)


def test_one_row_per_motor_of_a_redundant_robot_is_refused() -> None:
    """Two motors on one joint: the null space is named."""
    robot = arm(1, drive=())
    joint = robot.coordinates[0]
    robot = replace(robot, actuators=(Actuator("left", {joint: 1.0}), Actuator("right", {joint: -2.0})))
    truth = true_parameters(robot)
    log = exact_log(robot, truth)
    assert_recovers(robot, [log], truth)
    for efforts in (("left",), (1,)):
        with pytest.raises(InputError, match=r"null space of J_a\^T has dimension 1"):
            identify_logs(robot, [log], (), EXACT.changed(efforts=efforts))


def test_angles_in_degrees_are_suspected() -> None:
    from dynid.checks.logs import check_logs

    robot = arm()
    log = exact_log(robot, true_parameters(robot))
    assert check_logs([log], robot) == ()
    degrees = replace(log, q=np.degrees(log.q))
    (suspected,) = check_logs([degrees, replace(degrees, name="again", q=degrees.q + 0.1)], robot)
    assert suspected.code == "angles-large"
    assert f"{2 * log.q.shape[1] - 1} more ranges are too large" in suspected.text
    assert "unit: deg" in suspected.remedy
    assert all(f"q_{k + 1}" in suspected.remedy for k in range(log.q.shape[1]))
    limited = replace(robot, limits={log.position_names[0]: {"q": (-0.1, 0.1)}})
    (one,) = check_logs([log], limited)
    assert "times the range of its limits" in one.text
