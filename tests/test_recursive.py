"""The information filter: the batch answer without forgetting, the new payload soon after a change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.base.structural import structural_base
from dynid.common.errors import InputError, NoResultError
from dynid.estimator.estimator import ESTIMATORS, estimator_named
from dynid.estimator.recursive import RecursiveEstimator
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import load_robot
from dynid.pipeline import identify_logs
from dynid.problem import prepare
from dynid.projection.factor import factor_rows
from dynid.simulation.demo import built_in_experiment
from dynid.simulation.prescribed import inverse_efforts
from tests.contract import noisy_rows
from tests.systems import DensePass, system

CHI_TRUE = np.array([1.0, -0.5, 2.0])


def rows(n=600, seed=0, chi=CHI_TRUE):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, 3)) * [1.0, 30.0, 0.1]
    return W, W @ chi + 0.1 * rng.standard_normal(n)


def test_without_forgetting_it_is_the_batch_answer():
    W, Y = rows()
    filter = RecursiveEstimator(3)
    for part in np.array_split(np.arange(600), 97):
        filter.update(factor_rows(W[part], Y[part]), seconds=0.1)
    batch = ESTIMATORS["ols"](system(W, Y))
    np.testing.assert_allclose(filter.chi, batch.chi, rtol=1e-9)
    np.testing.assert_allclose(filter.covariance, batch.covariance, rtol=1e-9)
    assert filter.seconds == pytest.approx(9.7)


def test_estimator_equals_wls():
    Ws, Ys, _ = noisy_rows()
    again = DensePass(Ws, Ys, blocks=40)
    solution, batch = (ESTIMATORS[name](again.blocked(), again) for name in ("recursive", "wls"))
    np.testing.assert_allclose(solution.chi, batch.chi, rtol=1e-9)
    np.testing.assert_allclose(solution.covariance, batch.covariance, rtol=1e-9)
    assert not solution.notices


def test_forgetting_is_least_squares_with_decaying_weights():
    W, Y = rows()
    again = DensePass([W], [Y], blocks=60)  # blocks of one second
    solution = estimator_named("recursive", {"half_life": 8.0})(again.blocked(), again)
    age = 59 - np.repeat(np.arange(60), 10)
    root = np.sqrt(2.0 ** (-age / 8.0))
    chi = np.linalg.lstsq(W * root[:, None], Y * root, rcond=None)[0]
    np.testing.assert_allclose(solution.chi, chi, rtol=1e-9)
    # Var of sum f W e over (sum f W W)^2, with the noise of 0.1 that was put in.
    A = np.linalg.inv((W * root[:, None] ** 2).T @ W)
    expected = 0.1**2 * A @ ((W * root[:, None] ** 4).T @ W) @ A
    # About 115 rows count, so that sigma is known to 7 %; the classical form takes W as stationary.
    np.testing.assert_allclose(np.sqrt(np.diag(solution.covariance)), np.sqrt(np.diag(expected)), rtol=0.2)
    np.testing.assert_allclose(solution.dof, 2 * 8 / np.log(2) * 10, rtol=0.05)  # rows that are left


def test_a_change_is_found_and_ordinary_noise_is_not():
    W, Y = rows(4000)
    filter = RecursiveEstimator(3, half_life=20.0)
    quiet = [
        filter.update(factor_rows(W[i : i + 10], Y[i : i + 10]), 0.1).changed for i in range(0, 4000, 10)
    ]
    assert not any(quiet)
    heavier = CHI_TRUE + np.array([0.5, 0.0, 0.0])
    W, Y = rows(200, seed=1, chi=heavier)
    found = [filter.update(factor_rows(W[i : i + 10], Y[i : i + 10]), 0.1).changed for i in range(0, 200, 10)]
    assert found.index(True) <= 2
    filter.forget(1.0 - 1e-6)
    for i in range(0, 200, 10):
        filter.update(factor_rows(W[i : i + 10], Y[i : i + 10]), 0.1)
    sigma = np.sqrt(np.diag(filter.covariance))
    assert np.all(np.abs(filter.chi - heavier) < 4 * sigma)


def test_what_it_cannot_do_is_said():
    filter = RecursiveEstimator(3)
    with pytest.raises(NoResultError, match="0 rows are not enough to determine 3"):
        _ = filter.chi
    with pytest.raises(InputError, match="not finite"):
        filter.update(factor_rows(np.full((4, 3), np.nan), np.ones(4)))
    with pytest.raises(InputError, match="half-life"):
        RecursiveEstimator(3, half_life=0.0)
    with pytest.raises(InputError, match="cannot be forgotten"):
        filter.forget(2.0)


def carried(truth, mass, offset):
    """True parameters with a point mass held `offset` [m] along z of the last body."""
    loaded = dict(truth)
    last = [name.removeprefix("M_") for name in truth if name.startswith("M_")][-1]
    loaded[f"M_{last}"] += mass
    loaded[f"MZ_{last}"] += mass * offset
    for symbol in ("XX", "YY"):
        loaded[f"{symbol}_{last}"] += mass * offset**2
    return loaded


def loaded():
    """A log of a UR5, its equations, the samples of its run, and what 1 kg adds to the efforts there."""
    demo = built_in_experiment("ur5", seed=1)
    log, robot = demo.logs[0], load_robot("ur5")
    problem = prepare(robot, (log,), Experiment(robot="ur5"))
    start, stop = problem.sources[0].pieces()[0]
    q, dq, ddq = problem.sources[0].motion.states(start, stop)
    extra = inverse_efforts(robot, carried(demo.truth, 1.0, 0.1), q, dq, ddq)
    return log, problem, start, stop, extra - inverse_efforts(robot, demo.truth, q, dq, ddq)


@pytest.fixture(scope="module")
def stream():
    """Rows of a UR5 that picks up 1 kg in the middle of a motion, over its base parameters."""
    log, problem, start, stop, extra = loaded()
    source = problem.sources[0]
    base = structural_base(problem.mechanism, problem.model, problem.parameters, problem.directions)
    W, Y = [], []
    for _, packed, _ in source.rows(start, stop, 512):
        W.append(source.layout.dense(packed, len(problem.parameters)) @ base.S)
        Y.append(packed[source.layout.start[1:] - 1].T)
    return np.concatenate(W), np.concatenate(Y), extra, log.dt


@pytest.mark.parametrize("part", [0.3, 0.4, 0.6, 0.8])
def test_a_payload_of_one_kilogram_is_found_within_half_a_second(stream, part):
    W, Y, extra, dt = stream
    n = len(W)
    change = round(part * n)
    Y = Y.copy()
    Y[change:] += extra[change:]
    # Deviations of the joints from the motion before, as a controller would know them.
    first = W[:change].reshape(-1, W.shape[2]), Y[:change].reshape(-1)
    chi = np.linalg.lstsq(*first, rcond=None)[0]
    sigma = np.std(Y[:change] - W[:change] @ chi, axis=0)
    filter = RecursiveEstimator(W.shape[2], half_life=10.0)
    step = max(1, round(0.1 / dt))
    alarms = []
    for i in range(0, n - step, step):
        part = slice(i, i + step)
        scaled = W[part] / sigma[:, None], Y[part] / sigma
        factor = factor_rows(scaled[0].reshape(-1, W.shape[2]), scaled[1].reshape(-1))
        if filter.update(factor, step * dt).changed:
            alarms.append((i + step) * dt)
    assert alarms
    assert change * dt < alarms[0] <= change * dt + 0.5


def test_an_experiment_tells_the_change():
    log, _, start, stop, extra = loaded()
    middle = (stop - start) // 2
    tau = log.tau.copy()
    tau[start + middle : stop] += extra[middle:]
    for changed, expected in ((log, False), (replace(log, tau=tau), True)):
        estimate = identify_logs(
            load_robot("ur5"), (changed,), (), Experiment(robot="ur5", estimator="recursive")
        )
        assert ("parameters-changed" in [notice.code for notice in estimate.warnings]) == expected


def payload_picked_up(mass=1.0):
    """A UR5 that picks up a mass in the middle of its log, and the time of that in the rows."""
    demo = built_in_experiment("ur5", seed=1)
    log, robot = demo.logs[0], replace(load_robot("ur5"), rebuild=None)
    problem = prepare(robot, (log,), Experiment(robot="ur5"))
    start, stop = problem.sources[0].pieces()[0]
    q, dq, ddq = problem.sources[0].motion.states(start, stop)
    middle = (stop - start) // 2
    tau = log.tau.copy()
    tau[start + middle : stop] += (
        inverse_efforts(robot, carried(demo.truth, mass, 0.1), q, dq, ddq)
        - inverse_efforts(robot, demo.truth, q, dq, ddq)
    )[middle:]
    return robot, replace(log, tau=tau), middle * log.dt


def test_history_holds_the_estimate_of_all_rows_so_far():
    Ws, Ys, _ = noisy_rows()
    again = DensePass(Ws, Ys, blocks=40)
    history = ESTIMATORS["recursive"](again.blocked(), again).history
    batch = ESTIMATORS["wls"](again.blocked(), again)
    assert history.chi.shape == history.sigma.shape == (40, len(batch.chi))
    np.testing.assert_allclose(history.chi[-1], batch.chi, rtol=1e-9)
    np.testing.assert_allclose(history.sigma[-1] ** 2, np.diag(batch.covariance), rtol=1e-9)
    assert not history.changes
    # White rows: sigma falls with the root of the rows; blocks are alike to a few percent here.
    np.testing.assert_allclose(history.sigma[9] / history.sigma[-1], 2.0, rtol=0.25)


def test_history_tells_when_and_what_changed(tmp_path):
    from dynid.report.json_file import result_document
    from dynid.report.output import result_files

    robot, log, moment = payload_picked_up()
    estimate = identify_logs(
        robot,
        (log,),
        (),
        Experiment(robot="ur5", estimator="recursive", estimator_options={"half_life": 20.0}),
    )
    history = estimate.history
    assert len(history.changes) == 1
    change = history.changes[0]
    # Updates are blocks of 0.26 s.
    assert change.seconds == pytest.approx(moment, abs=0.3)
    jumped = {one.name: one for one in change.jumped}
    # The kilogram acts by the levers of the description: along MX of the forearm (0.392 m), and by the
    # offsets of the wrist (0.095 m each) with what it hangs over.
    forearm = jumped["MX_forearm_link_R"]
    assert forearm.after - forearm.before == pytest.approx(-0.392, abs=3 * forearm.sigma)
    assert {"MY_wrist_1_link_R", "MY_wrist_2_link_R"} <= set(jumped)
    # Friction did not change, and is not flagged.
    assert not any(name.startswith(("Fv", "Fs", "Ia")) for name in jumped)
    assert [p.name for p in estimate.parameters] == list(history.names)
    np.testing.assert_allclose(history.sigma[-1], [p.sigma for p in estimate.parameters], rtol=1e-9)
    files = result_files(estimate)
    table = files["history.csv"].splitlines()
    assert len(table) == 1 + len(history.seconds)
    assert sum(line.split(",")[3] == "1" for line in table[1:]) == 1
    assert "Parameters over time (1 change detected)" in files["report.html"]
    assert result_document(estimate)["changes"][0]["jumped"][0]["name"] == change.jumped[0].name
    assert any("MY_wrist_2" in one.text for one in estimate.warnings if one.code == "parameters-changed")
