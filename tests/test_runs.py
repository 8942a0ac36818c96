"""Runs of a log: their order means nothing, and all of them choose filters and noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.common.arrays import Array, Float
from dynid.conditioning.lowpass import row_filter
from dynid.conditioning.stream import stream
from dynid.experiment.experiment import Experiment
from dynid.fit import fit_task
from dynid.motion.choose import position_spectrum
from dynid.motion.log import Log, named_apart
from dynid.motion.logs import log_from_arrays
from dynid.motion.plan import plan_motions
from dynid.motion.settings import FilterSettings, MaskSettings
from dynid.motion.spectrum import MOST_SAMPLES, middles, spectrum, spectrum_of_runs
from dynid.pipeline import identify_logs
from dynid.problem import prepare
from dynid.projection.projection import System
from dynid.simulation.demo import built_in_experiment
from dynid.statistics.clusters import Clusters, equal_parts, stretches
from dynid.statistics.sandwich import chosen_lags
from dynid.unknown import Task
from dynid.validation.folds import folds, joined_folds
from dynid.validation.unseen import left_out_errors
from tests.arms import arm, motion
from tests.systems import group, parameters

RATE = 200.0


def runs_of_arm(order: Sequence[int], seconds: Sequence[float], noise: float = 1e-4) -> Log:
    """Runs of one motion each, run k faster by k; the same of each run wherever it is."""
    q, tau, begins, t = [], [], [], []
    for place, k in enumerate(order):
        rng = np.random.default_rng(k)
        times = np.arange(round(RATE * seconds[k])) / RATE
        positions, _, accelerations = motion((1.0 + 0.5 * k) * times + k)
        q.append(positions + noise * rng.standard_normal(positions.shape))
        tau.append(accelerations + 0.1 * rng.standard_normal(positions.shape))
        t.append(times + 100.0 * place)
        begins.append(len(times))
    log = log_from_arrays(arm(), np.arange(sum(begins)) / RATE, np.concatenate(q), np.concatenate(tau))
    ends = np.cumsum(begins)
    segments = tuple((int(end - count), int(end)) for end, count in zip(ends, begins, strict=True))
    return replace(log, t=np.concatenate(t), segments=segments)


def same_runs(log: Log, order: Sequence[int]) -> Log:
    """The log with its runs in another order."""
    spans = [log.segments[k] for k in order]
    rows = np.concatenate([np.arange(*span) for span in spans])
    ends = np.cumsum([stop - start for start, stop in spans])
    segments = tuple((int(e - (b - a)), int(e)) for e, (a, b) in zip(ends, spans, strict=True))
    signals = {
        name: x[rows]
        for name in ("t", "q", "dq", "ddq", "tau", "valid")
        if (x := getattr(log, name)) is not None
    }
    lengths = None if log.lengths is None else log.lengths[list(order)]
    return replace(log, segments=segments, lengths=lengths, origins={}, **signals)


@pytest.mark.parametrize("seconds", [(12.0, 12.0, 12.0), (25.0, 3.0, 9.0)])
def test_the_order_of_runs_changes_no_plan(seconds: tuple[float, ...]) -> None:
    plans = []
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        log = runs_of_arm(order, seconds)
        plans.append(plan_motions([log], arm(), FilterSettings(), MaskSettings())[0])
    for plan in plans[1:]:
        assert (plan.cutoff, plan.decimate, plan.edge) == (plans[0].cutoff, plans[0].decimate, plans[0].edge)
        # Sums over runs in another order.
        assert plan.noise == pytest.approx(plans[0].noise, rel=1e-9)
        assert plan.reversal_speed == pytest.approx(plans[0].reversal_speed, rel=1e-9)


def test_the_fastest_of_equal_runs_is_seen_wherever_it_is() -> None:
    """Most of the power is that of the last run, at twice the speed of the first."""
    log = runs_of_arm((0, 1, 2), (12.0, 12.0, 12.0))
    band = position_spectrum(log).motion_bandwidth
    slow, _, fast = (spectrum(log.q[a:b], log.dt).motion_bandwidth for a, b in log.segments)
    assert slow < 0.8 * fast
    assert band > 0.8 * fast  # not that of the first run, and not much less than that of the fastest


def test_noise_of_unequal_runs_is_the_mean_of_all() -> None:
    """White noise of known size in runs of 2 to 20 seconds, by one estimate over thousands of lines."""
    rng = np.random.default_rng(7)
    runs = [3e-4 * rng.standard_normal((round(RATE * s), 2)) for s in (20.0, 5.0, 2.0, 9.0)]
    assert spectrum_of_runs(runs, 1.0 / RATE).sigma == pytest.approx([3e-4, 3e-4], rel=0.1)


def test_middles_are_parts_of_all_runs_but_fragments() -> None:
    spans = [(0, 4000), (4000, 4100), (4100, 9000), (9000, 9020)]
    parts = middles(spans, 1.0 / RATE)
    assert [(part.start, part.stop) for part in parts] == [(0, 4000), (4100, 9000)]
    long = [(0, 10 * MOST_SAMPLES), (10 * MOST_SAMPLES, 30 * MOST_SAMPLES)]
    first, second = middles(long, 1.0 / RATE)
    assert second.stop - second.start == pytest.approx(2 * (first.stop - first.start), rel=0.01)
    assert first.stop - first.start + second.stop - second.start == pytest.approx(MOST_SAMPLES, rel=0.01)
    assert middles([(0, 20)], 1.0 / RATE) == [slice(0, 20)]


def fitted(log: Log, robot: object, experiment: Experiment) -> tuple[Array, Array, dict[str, float]]:
    fit = fit_task(Task(robot, (log,), experiment))  # type: ignore[arg-type]
    parts = fit.linear_parts.parameters
    sigma = np.array([np.nan if p.sigma is None else p.sigma for p in parts])
    return np.array([p.value for p in parts]), sigma, left_out_errors(fit)


@pytest.mark.parametrize("name", ["scara", "cable3"])
def test_the_order_of_runs_changes_no_result(name: str) -> None:
    """Parameters, deviations and left-out errors: of an arm, and where noise and bootstrap are drawn."""
    demo = built_in_experiment(name)
    log = demo.logs[0]
    if name == "scara":
        log = replace(log, segments=((0, 1400), (1400, 2800), (2800, 4200), (4200, 5000)))
    else:
        log = same_runs(log, (0, 1, 2, 3))
    experiment = Experiment(robot=demo.mechanism)
    chi, sigma, errors = fitted(log, demo.mechanism, experiment)
    other, its_sigma, its_errors = fitted(same_runs(log, (2, 0, 3, 1)), demo.mechanism, experiment)
    # Rounding of sums in another order, times condition numbers up to 1e4.
    assert np.nanmax(np.abs(other - chi) / sigma) < 1e-6
    assert its_sigma == pytest.approx(sigma, rel=1e-6)
    assert its_errors == pytest.approx(errors, rel=1e-6)


def test_folds_deal_out_the_same_runs_in_any_order() -> None:
    def held(log: Log, make: object) -> list[set[float]]:
        parts = make([log], 2)  # type: ignore[operator]
        return [
            {float(x) for one in fold.held_out for a, b in one.segments for x in one.q[a:b, 0]}
            for fold in parts
        ]

    seconds = (12.0, 12.0, 5.0, 12.0)
    for make in (folds, joined_folds):
        first = held(runs_of_arm((0, 1, 2, 3), seconds), make)
        assert held(runs_of_arm((3, 1, 0, 2), seconds), make) == first


def test_blocks_of_a_run_do_not_depend_on_the_runs_before_it() -> None:
    """A log of so many blocks that neighbours are joined: 250 s in blocks of a quarter of a second."""
    found: list[dict[float, list[Float[Array, "k"]]]] = []
    for order in ((0, 1, 2), (2, 0, 1)):
        log = runs_of_arm(order, (101.3, 60.7, 88.9))
        problem = prepare(arm(), [log], Experiment(robot=arm(), filter=FilterSettings(cutoff=10.0)))
        source, rows = problem.sources[0], row_filter(1.0 / RATE, 5)
        blocks, _ = stream(source, rows)
        by_run: dict[float, list[Array]] = {}
        for run, _, factor in blocks[0]:
            start = float(log.q[log.segments[run][0], 0])
            by_run.setdefault(start, []).append(np.linalg.norm(factor.R, axis=0))
        found.append(by_run)
    assert found[0].keys() == found[1].keys()
    for start, norms in found[0].items():
        np.testing.assert_allclose(norms, found[1][start], rtol=1e-9)  # triangles of the same rows


def test_logs_of_one_name_are_not_one_log(tmp_path: Path) -> None:
    """`day1/run.csv` and `day2/run.csv`, or two tables in Python: their blocks are not simultaneous."""
    demo = built_in_experiment("scara")
    whole, experiment = demo.logs[0], Experiment(robot="scara", auto="off")
    halves = [replace(whole, segments=((a, a + 2400),)) for a in (0, 2500)]
    known = identify_logs(
        demo.mechanism, [replace(halves[0], name="a"), replace(halves[1], name="b")], (), experiment
    )
    for files in ((None, None), ("day1/run.csv", "day2/run.csv"), ("run.csv", "run.csv")):
        logs = [replace(log, name="run", file=file) for log, file in zip(halves, files, strict=True)]
        found = identify_logs(demo.mechanism, logs, (), experiment)
        assert found.params == known.params
        assert found.cov.values.tolist() == known.cov.values.tolist()
        assert len({signals.log for signals in found.signals}) == 2
    names = [log.name for log in named_apart([replace(whole, name=name) for name in "aab"])]
    assert names == ["a", "a (2)", "b"]


def test_clusters_and_parts_are_the_same_in_any_order_of_logs() -> None:
    """So repeats of a motion are those of the same run, whichever log is given first."""
    rng = np.random.default_rng(2)
    groups = [
        group(rng.standard_normal((60 * (k + 1), 3)), np.zeros(60 * (k + 1)), log=name, blocks=blocks)
        for k, (name, blocks) in enumerate((("a", 10), ("b", 7), ("c", 10)))
    ]
    known = stretches(System(parameters(3), tuple(groups)), 2.0)
    other = stretches(System(parameters(3), tuple(groups[::-1])), 2.0)
    assert known[0] == other[0]
    assert known[1].tolist() == other[1].tolist()
    assert equal_parts(groups, 4) == equal_parts(groups[::-1], 4)


def test_lags_of_hac_do_not_see_the_next_run() -> None:
    """Pairs of neighbours inside runs are the same in any order of runs."""
    rng = np.random.default_rng(5)
    s = rng.standard_normal((4, 3, 2)) * np.array([1.0, -1.0, 1.0])[:, None]
    s[:, :, 0] += 3.0 * rng.standard_normal((4, 1))
    found = []
    for order in ((0, 1, 2, 3), (2, 0, 3, 1)):
        scores = s[list(order)].reshape(12, 2)
        some = Clusters(
            np.eye(2), np.zeros((12, 2, 2)), scores, np.ones(12, int), np.repeat(np.arange(4), 3), 1.0
        )
        found.append(chosen_lags(some))
    assert found[0] == pytest.approx(found[1], rel=1e-12)
