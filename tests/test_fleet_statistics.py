"""What a fleet's tests promise: few false alarms under realistic scatter, and differences that are named."""

import math

import numpy as np
import pytest
from benchmarks.fleet_alarms import alarms, fleet
from benchmarks.fleet_drift import judged

from dynid.campaign.alike import compared
from dynid.campaign.fleet import ALARM, _corrected_p, _factor, fleet_of
from dynid.campaign.page import differences
from dynid.campaign.serial import serial_factors
from dynid.campaign.spread import priors
from dynid.campaign.trend import LEAST, Sample, daily, scatter, series_of


@pytest.mark.parametrize(
    "case", ["five", "one", "day", "day-alone", "two", "heavy", "heavy-exact", "heavy-alone", "ar"]
)
def test_realistic_scatter_raises_no_alarm(case):
    # With one scatter for all robots and logs, half of such fleets or more had alarms. At 5 % in all looks
    # together, and most of that in the first of them, an alarm after eight months has less than 1 %.
    assert alarms(fleet(case, 100, 8, 0.0), 8) == set()


@pytest.mark.parametrize(("case", "robots"), [("day", 5), ("day-alone", 1), ("heavy-exact", 5)])
def test_drifts_are_found_under_realistic_scatter(case, robots):
    # 3 % a month with at most 2 % scatter: after twelve months the slope is 15 of its deviations.
    expected = {(f"r{robot}", "Fv_0") for robot in range(robots)}
    found = alarms(fleet(case, 7, 12, 0.03), 12)
    assert expected <= found
    assert len(found - expected) <= 1  # one alarm in twenty may be false


def test_five_drifts_are_found_by_the_sixth_month_with_at_most_one_false_alarm():
    # 40 of 40 fleets; of the false alarms of a fleet, 0.13 on average, none had two.
    for seed in (3, 16, 21):
        found = judged(seed, 50, 6, 0, (5, 6))
        assert found["found"][1] == 5
        assert found["false_alarms"] <= 1


@pytest.mark.parametrize("true", [0, 5, 100])
def test_one_alarm_in_twenty_is_false_however_many_are_true(true):
    rng = np.random.default_rng(true)
    shares = []
    for _ in range(600):
        z = rng.standard_normal(600)
        z[:true] += 4.5
        p = [math.erfc(abs(value) / math.sqrt(2.0)) for value in z.tolist()]
        alarmed = np.array(_corrected_p(p)) < ALARM
        shares.append(np.count_nonzero(alarmed[true:]) / max(1, np.count_nonzero(alarmed)))
    # Deviation of a share at most 0.22 (no true alarm: it is 0 or 1), so 0.009 of the mean; three of them.
    assert np.mean(shares) < ALARM + 0.027


def test_levels_of_all_looks_together_are_the_level_of_one():
    levels = [1.0 / _factor(days) for days in range(LEAST, 20_000)]
    assert sum(levels) == pytest.approx(1.0, abs=2e-4)  # the rest is 1 / (c n)


def test_noisy_robots_do_not_hide_drifts_of_others():
    samples = [sample for _, sample in fleet("one", 3, 12, 0.03)]
    found = {change.robot for change in fleet_of(samples).changes}
    assert {f"r{robot}" for robot in range(1, 5)} <= found


def _sample(robot, date, value, sigma=0.01, name="M_link"):
    return Sample(robot, date, "", name, "kg", value, sigma)


def test_logs_of_one_day_are_one_value():
    series = daily(series_of([
        _sample("a", "2026-01-01T08:00", 1.0),
        _sample("a", "2026-01-01T18:30", 3.0),
        _sample("a", "2026-01-02", 5.0),
        _sample("b", "2026-01-05", 7.0),
    ]))  # fmt: skip
    assert series.counts.tolist() == [2, 1]
    assert series.dates == (("2026-01-01T08:00", "2026-01-02"), ("2026-01-05",))
    np.testing.assert_allclose(series.y[series.used], [2.0, 5.0, 7.0])
    # The two logs differ by sqrt(2) deviations of 1, not of 0.01: so much is a value of one log uncertain.
    np.testing.assert_allclose(series.sigma[series.used], np.sqrt(2.0) * np.array([np.sqrt(0.5), 1.0, 1.0]))


def test_plain_numbers_are_days_only_if_they_are_equal():
    numbers = daily(series_of([_sample("a", text, 1.0) for text in ("1", "1", "1.5", "2")]))
    assert numbers.t[0].tolist() == [1.0, 1.5, 2.0]
    assert daily(series_of([_sample("a", "", float(k)) for k in range(3)])).counts.tolist() == [3]


def _prior(case, months=12):
    groups: dict[str, list[Sample]] = {}
    for _, sample in fleet(case, 5, months, 0.0):
        groups.setdefault(sample.parameter, []).append(sample)
    every = [daily(series_of(members)) for members in groups.values()]
    extras = [scatter(series) for series in every]
    return every, extras, priors(every, extras, [series.robots for series in every])


def test_others_say_much_of_a_robot_if_all_are_alike_and_little_if_not():
    every, extras, alike = _prior("equal")
    assert min(float(np.median(prior.freedom)) for prior in alike) > 30.0
    noisy = _prior("one")[2]
    # (5^2 + 1) / (1 + 1) = 13 times the variance of others; eleven parameters know it to about 20 %.
    assert all(7.0 < prior.variance[0] / np.median(prior.variance[1:]) < 20.0 for prior in noisy)
    # Of one parameter of one robot nobody else says anything.
    (single,) = priors([every[0].rows(np.arange(50) == 0)], extras[:1], [("r0",)])
    assert single.freedom.tolist() == [0.0]


def test_a_slope_through_correlated_days_is_known_worse():
    every, extras, _ = _prior("equal")
    assert max(float(factor.max()) for factor in serial_factors(every, extras)) < 1.3
    every, extras, _ = _prior("ar-exact")
    # Of twelve days with rho = 0.5 the exact factor is 2.9; a part of the scatter is white.
    means = [float(factor.mean()) for factor in serial_factors(every, extras)]
    assert np.mean(means) == pytest.approx(2.7, abs=0.5)


def _masses(masses, months=6, seed=1):
    rng = np.random.default_rng(seed)
    return [
        _sample(f"r{k}", f"2026-{month + 1:02d}", mass * (1.0 + 0.01 * rng.standard_normal()), 0.01 * mass)
        for k, mass in enumerate(masses)
        for month in range(months)
    ]


@pytest.mark.parametrize(
    ("masses", "apart", "words"),
    [
        ([1.0] * 12, [], "No difference between robots is significant (1 parameter tested)."),
        ([1.0] * 25 + [4.0] * 25, [], "No single robot stands apart from the rest."),
        ([2.0] * 3 + [1.0] * 9, ["r0", "r1", "r2"], "Apart from most others: r"),
        ([4.0, 1.0, 1.0, 1.0], [], "Which robot is unusual is tested from 5 robots on."),
        ([4.0, 1.0], [], "Robots differ in 1 of 1 parameters (p < 0.0001), most in M_link"),
    ],
)
def test_robots_that_differ_are_never_called_equal(masses, apart, words):
    (entry,) = pooled = fleet_of(_masses(masses)).pooled
    assert sorted(name for name, _ in entry.unlike) == apart
    assert entry.p is not None
    assert (entry.p < ALARM) == (len(set(masses)) > 1)
    assert words in differences(pooled)
    if entry.p < ALARM:
        assert (
            f"their standard deviation is {100.0 * entry.between / entry.mean:.2g} % of the mean"
            in differences(pooled)
        )


def test_differences_of_robots_with_one_day_are_not_tested():
    (entry,) = pooled = fleet_of(_masses([4.0] + [1.0] * 7, months=1)).pooled
    assert (entry.p, entry.unlike) == (None, ())
    assert "not tested" in differences(pooled)


def test_equal_robots_are_called_different_as_rarely_as_promised():
    rng = np.random.default_rng(2)
    p = []
    for _ in range(200):  # robots with four days each, whose scatter differs and is known from these days
        scale = rng.uniform(0.5, 3.0, 8)
        days = scale[:, None] * rng.standard_normal((8, 4))
        p.append(compared(days.mean(axis=1), days.var(axis=1, ddof=1) / 4.0, np.full(8, 3.0)))
    # Welch's test is within a few percent of its level for so few days: 5 % +- 3 deviations of 1.6 %.
    assert np.mean([one.p < 0.05 for one in p]) < 0.12
    assert np.mean([min(one.apart) < 0.05 / 8.0 for one in p]) < 0.085
