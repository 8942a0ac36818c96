"""Integration of the energy model: rules against fine integrals, windows, friction per direction."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.interpolate import CubicSpline

from dynid.common.errors import InputError
from dynid.conditioning.lowpass import window_filter
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment, read_experiment
from dynid.experiment.sections import EnergySettings
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.variant import variant
from dynid.problem import prepare
from dynid.projection.quadrature import QUADRATURES
from dynid.simulation.prescribed import simulate_log
from tests.built_in import EXACT, truth_of


def wave(t: np.ndarray) -> np.ndarray:
    return np.sin(2.0 * t) + 0.3 * np.cos(5.0 * t + 1.0) + 0.2 * t


def wave_mean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    def primitive(t):
        return -0.5 * np.cos(2.0 * t) + 0.06 * np.sin(5.0 * t + 1.0) + 0.1 * t**2

    return (primitive(b) - primitive(a)) / (b - a)


@pytest.mark.parametrize("name", QUADRATURES)
def test_rows_are_means_to_the_fourth_order(name: str) -> None:
    rule = QUADRATURES[name]
    errors = []
    for h in (0.1, 0.05):
        t = h * np.arange(round(12 / h))
        found = rule.means(wave(t)[:, None])[:, 0]
        at = t[rule.before : len(t) - rule.after]
        expected = wave_mean(at + h * rule.start, at + h * rule.stop)
        errors.append(np.abs(found - expected).max())
    # h^4 halves sixteenfold; the next order spoils a little of it.
    assert 12.0 < errors[0] / errors[1] < 20.0
    assert errors[1] < 2e-4


@pytest.mark.parametrize("name", QUADRATURES)
def test_straight_lines_are_exact(name: str) -> None:
    rule = QUADRATURES[name]
    x = np.arange(60.0)
    found = rule.means(np.column_stack([np.ones(60), x]))
    middle = x[rule.before : 60 - rule.after] + 0.5 * (rule.start + rule.stop)
    np.testing.assert_allclose(found, np.column_stack([np.ones_like(middle), middle]), rtol=1e-12)
    np.testing.assert_allclose(rule.changes(x[:, None]), 1.0, rtol=1e-14)


def test_the_spline_is_the_cubic_spline_through_all_samples() -> None:
    t = 0.2 * np.arange(120)
    f = wave(t)
    spline = CubicSpline(t, f)
    rule = QUADRATURES["spline"]
    found = rule.means(f[:, None])[:, 0]
    expected = np.diff(spline.antiderivative()(t))[rule.before : len(t) - rule.after] / 0.2
    # SciPy's end conditions, and what the weights leave out, have decayed to 1e-7 after twelve samples.
    np.testing.assert_allclose(found[12:-12], expected[12:-12], atol=1e-7)


@pytest.mark.parametrize("window", [0.08, 0.3, 1.0])
def test_simpson_windows_are_the_composite_rule(window: float) -> None:
    h = 0.04
    t = h * np.arange(200)
    f = wave(t)
    rule = QUADRATURES["simpson"]
    rows = rule.means(f[:, None])[:, 0]
    windows = window_filter(h, window, False, rule)
    pairs = (len(windows.kernel) + 1) // 2
    assert 2 * pairs * h == pytest.approx(window, abs=1.001 * h)  # an even number of steps
    assert windows.decimate == 2 * pairs
    centre = 100
    inside = rows[centre - rule.before - windows.half : centre - rule.before + windows.half + 1]
    expected = simpson(f[centre - pairs : centre + pairs + 1], dx=h) / (2 * pairs * h)
    assert windows.kernel @ inside == pytest.approx(expected, rel=1e-12)


def test_spline_windows_cover_whole_intervals() -> None:
    windows = window_filter(0.01, 0.11, True)
    assert len(windows.kernel) == 11
    assert windows.decimate == 5
    assert windows.kernel.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", QUADRATURES)
@pytest.mark.parametrize("overlap", [False, True])
def test_inflation_is_that_of_white_noise(name: str, overlap: bool) -> None:
    """Variance of a mean of all rows over what independent rows of the same variance would give."""
    rule = QUADRATURES[name]
    windows = window_filter(0.01, 0.2, overlap, rule)
    noise = np.random.default_rng(0).normal(size=(400, 4000))
    rows = rule.means(noise.T)
    outputs = np.lib.stride_tricks.sliding_window_view(rows, len(windows.kernel), axis=0)
    outputs = outputs[:: windows.decimate] @ windows.kernel
    ratio = len(outputs) * outputs.mean(axis=0).var() / outputs.var()
    # 400 draws: 7 %; windows at both ends of the log are seen once.
    assert windows.inflation == pytest.approx(max(1.0, ratio), rel=0.2)


@cache
def evra():
    robot = variant(load_robot("evra"))
    truth = truth_of("evra")
    chi = np.array([truth[parameter.name] for parameter in parameter_table(robot)])
    return robot, chi, random_motion(robot, 3, harmonics=5, frequency=0.1, draws=1)


def balance(rate: float, integration: str):
    """What the true parameters leave open in every row, the rows, and where a motor reverses."""
    robot, chi, motion = evra()
    log = simulate_log(robot, chi, motion, rate=rate, duration=motion.period, velocity=True)
    experiment = Experiment(robot=robot, model="energy", energy={"integration": integration}, **EXACT)
    source = prepare(robot, [log], experiment).sources[0]
    start, stop = source.pieces()[0]
    _, packed, _ = next(iter(source.rows(start, stop, stop - start)))
    W = source.layout.dense(packed, len(chi))[:, 0]
    turning = np.any(log.dq[:-1] * log.dq[1:] < 0, axis=1)[start:stop]
    return W @ chi - packed[-1], packed[-1], turning, (W, log, start)


@pytest.mark.parametrize(("integration", "most"), [("spline", 5e-7), ("simpson", 2e-6)])
def test_energy_balances_at_51_hz_also_where_friction_jumps(integration: str, most: float) -> None:
    """Coulomb friction of both directions jumps inside an interval; both sides err alike."""
    left, Y, turning, _ = balance(51.0, integration)
    assert turning.sum() > 30
    # Fourth order in a step of 20 ms, at harmonics up to 0.5 Hz; measured 1.7e-7 and 6.4e-7.
    assert np.linalg.norm(left) < most * np.linalg.norm(Y)
    rms = [np.sqrt(np.mean(left[where] ** 2)) for where in (turning, ~turning)]
    assert rms[0] < 1.5 * rms[1]


def test_the_spline_is_the_better_rule_on_slow_logs() -> None:
    for rate in (10.0, 20.0, 51.0):
        spline, simpsons = (np.linalg.norm(balance(rate, name)[0]) for name in ("spline", "simpson"))
        assert spline < 0.5 * simpsons


@pytest.mark.parametrize("integration", QUADRATURES)
def test_friction_of_each_direction_is_its_fine_integral(integration: str) -> None:
    """Away from reversals to fourth order; over a reversal both directions together stay exact."""
    robot, _, motion = evra()
    _, _, turning, (W, log, start) = balance(51.0, integration)
    rule = QUADRATURES[integration]
    names = [parameter.name for parameter in parameter_table(robot)]
    column = {symbol: W[:, names.index(f"{symbol}_sx")] for symbol in ("Fv+", "Fv-", "Fs+", "Fs-")}
    joint = robot.measured_positions.index("sx")
    reverses = (log.dq[:-1, joint] * log.dq[1:, joint] < 0)[start : start + len(W)]
    reverses = np.convolve(reverses, np.ones(27), mode="same") > 0  # as far as the spline sees
    fine = np.linspace(0.0, 1.0, 201)
    at = log.t[start : start + len(W)]
    t = at[:, None] + log.dt * (rule.start + rule.span * fine)
    v = motion.dq(t.ravel())[:, joint].reshape(t.shape)
    exact = {
        "Fv+": np.maximum(v, 0) ** 2,
        "Fv-": np.minimum(v, 0) ** 2,
        "Fs+": np.maximum(v, 0),
        "Fs-": -np.minimum(v, 0),
    }
    for symbol, f in exact.items():
        mean = simpson(f, fine, axis=1)
        size = np.abs(mean).max()
        # Fourth order in 20 ms away from reversals; a kink costs a part of the change over one interval.
        np.testing.assert_allclose(column[symbol][~reverses], mean[~reverses], atol=1e-5 * size)
        np.testing.assert_allclose(column[symbol], mean, atol=2e-2 * size)
    difference = column["Fs+"] - column["Fs-"]
    np.testing.assert_allclose(difference, simpson(v, fine, axis=1), atol=1e-5 * np.abs(v).max())
    assert turning.any()


def test_integration_is_chosen_by_name(tmp_path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(
        "robot: evra\nlogs: [a.csv]\nmodel: energy\nenergy: {window: 0.2, integration: simpson}\n"
    )
    assert read_experiment(file).energy == EnergySettings(0.2, integration="simpson")
    file.write_text("robot: evra\nlogs: [a.csv]\nenergy: {integration: simpsons}\n")
    with pytest.raises(InputError, match=r"simpsons.*simpson"):
        read_experiment(file)
    with pytest.raises(InputError, match="did you mean 'spline'"):
        Experiment(robot="evra", energy={"integration": "splines"})
    with pytest.raises(InputError, match="energy has no 'windows'"):
        Experiment(robot="evra", energy={"windows": 0.2})
