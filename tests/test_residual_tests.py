"""Residual tests: faults that a good fit hides are named, clean logs are left in peace.

The rates over many runs are in `benchmarks/silent_errors.py`; here a few seeded runs of each fault.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.checks.check import Finished
from dynid.checks.fault_columns import ALL, Suspect, delay_change, suspect_rows
from dynid.checks.residual_tests import (
    _filter_correlation,
    _portmanteau,
    burst_blocks,
    bursts,
    outlying_runs,
)
from dynid.checks.residual_texts import gain_notice
from dynid.checks.residuals import _Relevance, check_residuals
from dynid.checks.second_looks import settled_gains
from dynid.common.change import in_file
from dynid.conditioning.lowpass import row_filter
from dynid.experiment.experiment import Experiment, experiment_from
from dynid.linear_fit import linear_fit
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import Parameter
from dynid.motion.logs import log_from_columns
from dynid.problem import prepare
from dynid.projection.projection import System
from dynid.report.json_file import json_text, read_result, result_document
from dynid.simulation.simulation import simulate
from dynid.simulation.simulation_file import default_simulation
from dynid.statistics.estimate import NOT_TESTED
from tests.built_in import codes
from tests.systems import group, parameters

FILE = Path(__file__).parents[1] / "benchmarks" / "silent_errors.py"
SPEC = importlib.util.spec_from_file_location("silent_errors", FILE)
silent = importlib.util.module_from_spec(SPEC)
sys.modules["silent_errors"] = silent
SPEC.loader.exec_module(silent)


def job_of(fault: str, seed: int, victim: int, loaded: bool = False):
    robot, logs = silent.clean_logs(seed, loaded)
    rng = np.random.default_rng([seed, 5])
    logs = [silent.spoiled(log, fault, victim, rng) for log in logs]
    experiment = Experiment(robot=robot)
    problem = prepare(robot, logs, experiment)
    return problem, linear_fit(problem, experiment), experiment


def checks_of(fault: str, seed: int, victim: int = 1, loaded: bool = False):
    _, fit, _ = job_of(fault, seed, victim, loaded)
    return Finished(fit).answered(check_residuals(fit))


def test_31_the_remedy_of_a_delay_removes_it() -> None:
    """The key that the warning gives, applied to the same columns: nothing is found any more."""
    robot, logs = silent.clean_logs(0, False)
    rng = np.random.default_rng([0, 5])
    logs = [silent.spoiled(log, "delay", 1, rng) for log in logs]
    (found,) = checks_of("delay", 0).notices
    assert in_file(found.change) in found.remedy
    corrected = experiment_from({"robot": robot, "logs": ["a"], **found.change}).columns
    logs = [
        log_from_columns({"t": log.t, "q": log.q, "tau": log.tau}, robot, columns=corrected) for log in logs
    ]
    experiment = Experiment(robot=robot)
    problem = prepare(robot, logs, experiment)
    fit = linear_fit(problem, experiment)
    assert codes(Finished(fit).answered(check_residuals(fit))) == []


def test_the_key_of_several_delays_has_all_of_them() -> None:
    """The delay of one effort is relative to the others: the key has its sum with the common one."""
    assert delay_change({ALL: 0.002, "elbow": -0.0005}, ("base", "elbow")) == {
        "columns": {"tau_{i}": {"delay": 0.002}, "tau_2": {"delay": 0.0015}}
    }
    assert delay_change({"elbow": 0.001}, ("elbow",)) == {"columns": {"tau_1": {"delay": 0.001}}}


@pytest.mark.parametrize("seed", range(4))
def test_clean_logs_raise_nothing(seed: int) -> None:
    found = checks_of("none", seed, loaded=True)
    assert codes(found) == []
    assert not any(test.warned for test in found.tests)


@pytest.mark.parametrize("seed", range(2))
def test_31_a_delay_of_one_sample_is_found_with_its_size(seed: int) -> None:
    found = checks_of("delay", seed)
    assert codes(found) == ["delay"]
    suspect = next(t for t in found.tests if t.test == "delay" and t.about == "all efforts")
    # A first-order term of a shift, with noise: within a third of the sample.
    assert suspect.value == pytest.approx(1e-3, rel=0.3)
    assert suspect.warned
    assert suspect.ci95[0] > 0


@pytest.mark.parametrize("victim", [1, 3])
def test_35_a_joint_zero_off_by_five_degrees_names_the_joint(victim: int) -> None:
    found = checks_of("zero", 1, victim)
    assert "zero-offset" in codes(found)
    name = ("shoulder1", "shoulder2", "shoulder3", "elbow", "wrist1", "wrist2")[victim]
    assert f"'{name}'" in next(n.text for n in found.notices if n.code == "zero-offset")
    suspect = next(t for t in found.tests if t.test == "zero" and t.about == name)
    # Linearised about parameters that are spoiled themselves: a third.
    assert suspect.value == pytest.approx(np.deg2rad(5.0), rel=0.35)


@pytest.mark.parametrize("victim", [0, 4])
def test_34_a_gain_off_by_ten_percent_names_the_motor(victim: int) -> None:
    found = checks_of("gain", 2, victim, loaded=True)
    # What a wrong gain leaves is uneven in time: a burst may be reported beside it, no other suspect.
    assert set(codes(found)) - {"burst"} == {"gain"}
    suspect = next(t for t in found.tests if t.test == "gain" and t.warned)
    assert suspect.about == ("shoulder1", "shoulder2", "shoulder3", "elbow", "wrist1", "wrist2")[victim]
    # Parameters have given way to the wrong effort, until it is corrected and tested again.
    assert suspect.value == pytest.approx(0.1, rel=0.05)
    assert suspect.ci95[0] < 0.1 < suspect.ci95[1]
    (gain,) = [item for item in found.notices if item.code == "gain"]
    assert f"`columns: {{tau_{victim + 1}: {{scale: {1.0 / (1.0 + suspect.value):.4g}}}}}`" in gain.remedy


def test_all_gains_wrong_alike_show_beside_a_known_mass_only() -> None:
    for loaded in (True, False):
        robot, logs = silent.clean_logs(3, True)
        logs = logs if loaded else logs[:1]
        rng = np.random.default_rng(9)
        logs = [replace(silent.spoiled(log, "none", 0, rng), tau=1.15 * log.tau) for log in logs]
        experiment = Experiment(robot=robot)
        problem = prepare(robot, logs, experiment)
        fit = linear_fit(problem, experiment)
        found = Finished(fit).answered(check_residuals(fit))
        assert [test.about for test in found.tests if test.test == "gain" and test.warned] == (
            ["all efforts"] if loaded else []
        )


def test_a_zero_hidden_by_noise_is_not_testable() -> None:
    """An interval wider than any zero that the derivative is valid for is no answer: no number is shown."""
    robot, logs = silent.clean_logs(3, False)
    rng = np.random.default_rng(4)
    logs = [replace(log, tau=log.tau + 2e3 * rng.standard_normal(log.tau.shape)) for log in logs]
    experiment = Experiment(robot=robot)
    problem = prepare(robot, logs, experiment)
    fit = linear_fit(problem, experiment)
    found = Finished(fit).answered(check_residuals(fit))
    zeros = {test.about: test for test in found.tests if test.test == "zero"}
    assert all(np.ptp(test.ci95) < np.deg2rad(60.0) for test in zeros.values())
    assert len(zeros) < len(logs[0].position_names) - 2  # two are never testable on this arm
    assert "zero of" in found.choices[NOT_TESTED]
    assert "noise hides them" in found.choices[NOT_TESTED]


def test_friction_left_over_is_named() -> None:
    robot, logs = silent.clean_logs(4, False)
    log = silent.spoiled(logs[0], "none", 0, np.random.default_rng(3))
    v = np.gradient(log.q[:, 3], log.dt)
    slow = np.convolve(v, np.ones(21) / 21, mode="same")
    tau = log.tau.copy()
    tau[:, 3] += 1.5 * np.sqrt(np.abs(slow)) * np.sign(slow)
    experiment = Experiment(robot=robot)
    problem = prepare(robot, [replace(log, tau=tau)], experiment)
    fit = linear_fit(problem, experiment)
    found = Finished(fit).answered(check_residuals(fit))
    assert codes(found) == ["friction-speed"]
    assert "'elbow'" in found.notices[0].text


def test_test_columns_are_the_derivatives_they_claim_to_be() -> None:
    """Against differences of rows of shifted logs."""
    problem, fit, _ = job_of("none", 0, 0)
    source = problem.sources[0]
    rows, suspects, _ = suspect_rows(problem.mechanism, {}, source, problem.parameters, fit.chi, 1)
    start, stop = source.pieces()[0][0], source.pieces()[0][0] + 900
    p = len(problem.parameters)
    blocks = list(rows.rows(start, stop, 256))
    packed = np.concatenate([block for _, block, _ in blocks], axis=1)
    W = rows.layout.dense(packed, p + rows.n_added)
    predicted = W[:, :, :p] @ fit.chi
    names = [s for s in suspects if s.test == "delay" and s.about != "all efforts"]
    for k, suspect in enumerate(names):
        slope = np.gradient(predicted[:, k], source.dt)
        # Tiles must not show: the same central difference over the whole range.
        np.testing.assert_allclose(
            W[1:-1, k, p + suspect.columns[0]], -slope[1:-1], atol=1e-8 * np.abs(slope).max()
        )
    zero = next(s for s in suspects if s.test == "zero" and s.about == "elbow")
    step = 1e-5
    moved = []
    for sign in (-1.0, 1.0):
        log = source.motion.log
        q = log.q.copy()
        q[:, 3] += sign * step
        other = problem.rows_along(type(source.motion)(replace(log, q=q), source.motion.plan))
        dense = [
            other.layout.dense(block.copy(), p) @ fit.chi for _, block, _ in other.rows(start, stop, 256)
        ]
        moved.append(np.concatenate(dense))
    slope = (moved[1] - moved[0]) / (2 * step)
    found = W[:, :, p + zero.columns[0]]
    # Central differences of steps 1e-4 and 1e-5 of smooth functions.
    np.testing.assert_allclose(found, slope, atol=1e-5 * np.abs(slope).max())


def test_verdicts_cover_the_truth() -> None:
    """Intervals of the delay at an innocent and a flagged shift hold it about 95 times in 100."""
    held = []
    for seed in range(6):
        found = checks_of("none", 20 + seed)
        held += [t.ci95[0] <= 0.0 <= t.ci95[1] for t in found.tests if t.test in ("delay", "gain", "zero")]
    # Some 110 intervals that are not independent: 95 % +- 4 %.
    assert np.mean(held) > 0.87


def test_outlying_runs_and_bursts_are_named() -> None:
    rng = np.random.default_rng(0)
    chi = np.array([1.0, 2.0])
    groups = []
    for run in range(4):
        W = rng.standard_normal((400, 2))
        Y = W @ chi + 0.1 * rng.standard_normal(400) * (4.0 if run == 2 else 1.0)
        if run == 1:
            Y[200:210] += 5.0
        groups.append(group(W, Y, log=f"run{run}", blocks=40))
    system = System(parameters(2), tuple(groups))
    messages = list(outlying_runs(system, chi))
    assert [message.code for message in messages] == ["outlying-run"]
    assert "run2: joint_1" in messages[0].text
    burst = list(bursts(burst_blocks(system, chi), {f"run{i}": [100.0] for i in range(4)}))
    assert [message.code for message in burst] == ["burst"]
    # Block 20 of one second each, in a run that begins at 100 s.
    assert "run1 at t = 120.00 s" in burst[0].text
    assert "exclude: [[119.7, 120.6]]" in burst[0].remedy
    assert burst[0].change == {"logs": {"run1": {"exclude": [[119.7, 120.6]]}}}
    quiet = System(parameters(2), tuple(groups[:1] + groups[3:]))
    assert not list(outlying_runs(quiet, chi))
    assert not burst_blocks(quiet, chi)
    alike = System(parameters(2), tuple(replace(run, log=f"run{i}") for i, run in enumerate(groups[:1] * 4)))
    assert "hand on the platform" in next(outlying_runs(system, chi, lambda: alike)).remedy
    # Runs that differ as the noise of their positions does are no outliers.
    assert not list(outlying_runs(system, chi, lambda: system))


def test_a_fast_run_beside_slow_ones_is_no_outlier() -> None:
    """Efforts five times as large, and noise that grows with them: a weight, not a fault."""
    rng = np.random.default_rng(2)
    chi = np.array([1.0, 2.0])
    groups = []
    for run in range(4):
        size = 5.0 if run == 2 else 1.0
        W = size * rng.standard_normal((400, 2))
        Y = W @ chi + 0.05 * size * rng.standard_normal(400)
        groups.append(group(W, Y, log=f"run{run}", blocks=40))
    assert not list(outlying_runs(System(parameters(2), tuple(groups)), chi))


def test_rounding_of_a_perfect_simulation_accuses_no_run() -> None:
    rng = np.random.default_rng(1)
    chi = np.array([1.0, 2.0])
    groups = []
    for run in range(4):
        W = rng.standard_normal((400, 2))
        # 1e-9 and 1e-8 of the measured side: a formula of differentiation, no fault.
        Y = W @ chi + (1e-8 if run == 2 else 1e-9) * rng.standard_normal(400)
        Y[:10] += 1e-7
        groups.append(group(W, Y, log=f"run{run}", blocks=40))
    system = System(parameters(2), tuple(groups))
    assert not list(outlying_runs(system, chi))
    assert not burst_blocks(system, chi)


@pytest.mark.parametrize(("colour", "low", "high"), [(0.0, 0.0, 0.1), (0.995, 0.9, 1.0)])
def test_the_portmanteau_knows_the_row_filter(colour: float, low: float, high: float) -> None:
    """White noise through the row filter is not called coloured; slow noise is."""
    rows = row_filter(1e-3, 10)
    expected = _filter_correlation(rows)
    wrong = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(40_000)
        if colour:
            from scipy.signal import lfilter

            x = lfilter([1.0], [1.0, -colour], x)
        r = np.convolve(x, rows.kernel, mode="valid")[::10]
        lags = 3 * np.arange(11)
        sums = np.array([r[: len(r) - lag] @ r[lag:] for lag in lags])
        pairs = np.array([float(len(r) - lag) for lag in lags])
        wrong.append(_portmanteau("x", sums, pairs, expected).p_value < 0.01)
    assert low <= np.mean(wrong) <= high


def test_tests_are_part_of_the_result_file(tmp_path) -> None:
    from dynid.pipeline import identify_logs

    robot, logs = silent.clean_logs(1, True)
    logs = [silent.spoiled(log, "delay", 0, np.random.default_rng(i)) for i, log in enumerate(logs)]
    estimate = identify_logs(robot, logs, (), Experiment(robot=robot))
    assert "delay" in [notice.code for notice in estimate.warnings]
    file = tmp_path / "result.json"
    file.write_text(json_text(result_document(estimate)))
    assert read_result(file).residual_tests == estimate.residual_tests
    assert {"delay", "gain", "zero", "gravity", "speed", "load", "white"} == {
        t.test for t in estimate.residual_tests
    }


def test_parameters_of_tests_have_no_unit_trouble() -> None:
    """A system without any test column left (all hidden) is judged without complaint."""
    from dynid.checks.fault_columns import Suspect
    from dynid.checks.fault_selection import flagged_suspects

    rng = np.random.default_rng(1)
    W = rng.standard_normal((300, 2))
    hidden = W @ np.array([1.0, -1.0])
    Y = W @ np.array([1.0, 2.0]) + 0.1 * rng.standard_normal(300)
    names = (*parameters(2), Parameter("t", "test", "", "", "test"))
    system = System(names, (group(np.column_stack([W, hidden]), Y, blocks=30),))
    flagged, first = flagged_suspects(
        system, np.ones(1), [Suspect("gain", "x", (0,), "1")], 1, lambda _: True, 1.0
    )
    assert flagged == []
    assert first == {}


def test_a_gain_and_a_load_that_cannot_be_separated_are_named_beside_each_other() -> None:
    """|W chi| sign(v) is the effort itself where the joint turns one way under load; elsewhere it is not."""
    from dynid.checks.fault_selection import flagged_suspects
    from dynid.checks.residual_texts import confounded, inseparable

    rng = np.random.default_rng(2)
    W = rng.standard_normal((300, 2))
    effort, turning = rng.standard_normal(300), np.sign(rng.standard_normal(300))
    Y = W @ np.array([1.0, 2.0]) + 0.1 * effort + 0.1 * rng.standard_normal(300)
    names = (*parameters(2), *(Parameter(f"t{k}", "test", "", "", "test") for k in range(2)))
    for sign, alike in ((np.ones(300), True), (turning, False)):
        system = System(names, (group(np.column_stack([W, effort, effort * sign]), Y, blocks=30),))
        suspects = [Suspect("gain", "x", (0,), "1"), Suspect("load", "x", (1,), "1")]
        _, first = flagged_suspects(system, np.ones(1), suspects, 2, lambda _: True, 1.0)
        gain, load = first[(0,)], first[(1,)]
        assert bool(confounded(gain)) == bool(confounded(load)) == alike
        words = inseparable(first.values())
        assert all((text in words) == alike for text in ("cannot be separated", "gain of x", "load of x"))


@pytest.mark.parametrize(("factor", "reported"), [(1.0, False), (1.4, False), (0.01, True), (-1.0, True)])
def test_34_a_scale_far_from_the_priors_is_reported(factor: float, reported: bool) -> None:
    """Current logged, gain not applied: R2 does not change, the masses do."""
    from dynid.checks.plausible_masses import prior_scale
    from dynid.statistics.estimate import ParameterEstimate

    rng = np.random.default_rng(0)
    found = []
    for k in range(8):
        prior = float(rng.uniform(0.5, 5.0))
        value = factor * prior * float(rng.uniform(0.8, 1.2))
        found.append(
            ParameterEstimate(f"M_link{k}", "kg", value, 0.01 * abs(value), 1.0, (0.0, 1.0), prior=prior)
        )
    assert [message.code for message in prior_scale(found)] == (["scale-differs"] if reported else [])


def test_a_gain_that_is_too_small_is_called_so() -> None:
    single, both = Suspect("gain", "elbow", (0,), "1"), Suspect("gain", ALL, (0,), "1")
    assert "is 12.1 +- 3.0 % smaller than known masses" in gain_notice(single, -0.121, 0.03).text
    assert "is 12.1 +- 3.0 % larger than known masses" in gain_notice(single, 0.121, 0.03).text
    assert gain_notice(both, -0.05, 0.01).text.endswith("all efforts are 5.0 +- 1.0 % too small")
    assert "off by -200 %" in gain_notice(single, -2.0, 0.1).text  # a wrong sign


@pytest.mark.parametrize(("sigma", "matters"), [(1e-4, True), (1e-6, False)])
def test_only_a_fault_that_is_surely_small_is_dismissed(sigma: float, matters: bool) -> None:
    """0.98 mm: an interval that contains 1 mm does not show that the fault is smaller than what matters."""
    robot = load_robot("fivebar")
    log = simulate(robot, replace(default_simulation(robot), rate=100.0, duration=2.0)).log(0, "five", robot)
    relevant = _Relevance(prepare(robot, [log], Experiment(robot=robot)))
    size = Suspect("dimension", "a", (0,), "m", size=np.array([-9.8e-4]), sigma=np.array([sigma]), dof=20.0)
    assert relevant(size) is matters


@pytest.mark.parametrize(("sizes", "kept"), [((0.08, 0.015), 1), ((0.08, 0.05), 2), ((0.015,), 1)])
def test_a_gain_that_may_be_one_is_not_flagged_beside_one_that_cannot(sizes, kept) -> None:
    """The other one explains what it explained alone. Half of a 95 % interval is 0.021; one alone stays."""
    robot = load_robot("scara")
    log = simulate(robot, replace(default_simulation(robot), rate=100.0, duration=2.0)).log(0, "a", robot)
    experiment = Experiment(robot=robot)
    gains = [
        Suspect("gain", log.effort_names[k], (k,), "1", size=np.array([x]), sigma=np.full(1, 0.01), dof=20.0)
        for k, x in enumerate(sizes)
    ]
    left = {gain.columns: replace(gain, size=np.zeros(1)) for gain in gains}
    fit = linear_fit(prepare(robot, [log], experiment), experiment)
    found = settled_gains(fit, gains, lambda _: left)
    assert [suspect.about for suspect in found] == list(log.effort_names[:kept])


def _test_columns(order: Sequence[int], spill: float = 0.0) -> dict[str, Suspect]:
    """Results of three test columns in some order; the last one is of the first of two efforts alone."""
    from dynid.checks.fault_selection import flagged_suspects

    rng = np.random.default_rng(4)
    W, Z = rng.standard_normal((2, 400, 3)), rng.standard_normal((2, 400, 3))
    Z[1, :, 2] = 0.0
    Y = W @ [1.0, 2.0, 3.0] + 0.3 * Z @ [1.0, 0.5, 1.0] + rng.standard_normal((2, 400))
    Z[1, :, 2] = spill * rng.standard_normal(400)
    groups = tuple(
        group(np.column_stack([W[k], Z[k][:, order]]), Y[k], name=f"joint_{k + 1}", blocks=20) for k in (0, 1)
    )
    suspects = [Suspect("gain", f"z{column}", (place,), "1") for place, column in enumerate(order)]
    _, first = flagged_suspects(System(parameters(6), groups), np.ones(2), suspects, 3, lambda _: False, 0.25)
    return {suspect.about: suspect for suspect in first.values()}


def test_the_order_of_test_columns_changes_no_result() -> None:
    """A triangle has zeros below each column, which say nothing about the equation."""
    known, other = _test_columns((0, 1, 2)), _test_columns((2, 1, 0))
    for name, suspect in known.items():
        for value in ("size", "sigma", "explains", "gain", "share", "p_value"):
            # Rounding of sums of 800 rows.
            assert getattr(other[name], value) == pytest.approx(getattr(suspect, value), rel=1e-9), value


@pytest.mark.parametrize("spill", [1e-17, 1e-12, 1e-9])
def test_rounding_of_a_column_makes_no_equation_its_own(spill: float) -> None:
    """Differences of poses leave rounding where a column has nothing: these rows stay out of its results."""
    known, rounded = _test_columns((0, 1, 2))["z2"], _test_columns((0, 1, 2), spill)["z2"]
    assert rounded.explains == pytest.approx(known.explains, rel=1e-6)  # a few spills
    assert rounded.share == pytest.approx(known.share, rel=1e-6)
    # Its part of the residual squares of the first effort: 0.3^2 of 0.3^2 (1 + 0.5^2 + 1) + 1, to a fifth,
    # as 400 rows show it.
    assert known.explains == pytest.approx(0.09 / (0.09 * 2.25 + 1.0), rel=0.3)
