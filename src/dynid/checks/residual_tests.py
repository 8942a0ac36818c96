"""Tests of residuals from the blocks of a fit: outlying runs, bursts, correlation in time.

Runs and bursts use the factors only; the autocorrelation of the residuals needs a second pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.distributions import chi2_tail
from dynid.common.notices import Notice, notice
from dynid.conditioning.lowpass import RowFilter
from dynid.conditioning.stream import compared
from dynid.linear_fit import LinearFit
from dynid.motion.repeats import come_again
from dynid.projection.factor import merge, scaled_lstsq, triangle
from dynid.projection.model import RowSource
from dynid.projection.projection import Group, System
from dynid.statistics.estimate import ResidualTest

# A run whose residual is this many times that of the others is not of the same robot.
_OUTLYING = 2.0
_RUNS = 3
# A quarter of a second this many times the usual residual is a contact, not noise.
_BURST = 8.0
_ABOVE_OTHERS = 3.0
_FAINT = 0.05  # of the rms effort: a burst below changes nothing that matters
_AROUND = 0.3  # [s]: a block of a quarter of a second, and what the filters smear of a burst
_MOST_SHOWN = 4
_LAGS = 10
# Rows are correlated by their filter up to here; further lags are independent of each other.
_STRIDE = 3
_COLOURED = 1e-3
BlockPlace = tuple[str, str, int, int]  # log, effort, run, number
_Burst = tuple[Group, list[tuple[int, int]]]  # of an effort in a log, and runs and numbers of its blocks
# Of the measured side: filters and derivatives leave that much of a log without noise, unevenly.
_UNEVEN = 2e-3
_PERFECT = 1e-6  # of the measured side: residuals of a simulation without noise
# Blocks this many times the usual residual are left out of the fit against which bursts are judged.
_DISTURBED = 3.0
_MOST_DISTURBED = 0.25  # of the blocks of an effort
_ROUNDS = 4
CORRELATED = "correlated in time; the intervals account for it"
_MOST_SAMPLES = 65_536


def outlying_runs(
    system: System, chi: Float[Array, "p"], noise: Callable[[], System] | None = None
) -> Iterator[Notice]:
    """Runs whose residual of one effort is far above that of the other runs, in its unit and in parts of it.

    Noise and what a model lacks may grow with an effort: a fast run beside slow ones is no outlier.

    Args:
        system: Over the standard parameters, with its blocks.
        chi: Standard parameters, shape (p,), SI.
        noise: Of free motion on locked cables: the rows that noise of the positions makes. Its size is
            another one in every run, and residuals are compared in units of it.
    """
    runs = _run_rms(system, chi)
    outlying = _outlying(runs)
    if outlying and noise is not None:
        outlying = _outlying(runs, _run_rms(noise(), chi))
    elif outlying:
        relative = _outlying(runs, _run_rms(system, np.zeros_like(chi)))
        outlying = {place: times for place, times in outlying.items() if place in relative}
    if outlying:
        most = sorted(outlying.items(), key=lambda item: -item[1])[:_MOST_SHOWN]
        shown = ", ".join(f"{place} ({times:.1f} times)" for place, times in most)
        if noise is not None:
            yield notice("outlying-run", "free", shown=shown)
        else:
            yield notice("outlying-run", shown=shown)


_Runs = dict[str, dict[tuple[str, int], tuple[float, float]]]


def _run_rms(system: System, chi: Float[Array, "p"]) -> _Runs:
    """Rms of the residual and number of rows: by effort, then by log and run."""
    by_effort: dict[str, dict[tuple[str, int], tuple[float, float]]] = {}
    for group in system.groups:
        runs = by_effort.setdefault(group.name, {})
        for (run, _), rms, rows in _block_rms(group, chi):
            squares, n = runs.get((group.log, run), (0.0, 0.0))
            runs[group.log, run] = (squares + rows * rms**2, n + rows)
    return {
        name: {key: (float(np.sqrt(s / max(n, 1.0))), n) for key, (s, n) in runs.items()}
        for name, runs in by_effort.items()
    }


def _outlying(by_effort: _Runs, expected: _Runs | None = None) -> dict[str, float]:
    """Runs and efforts far above the others, and how many times; in units of what is expected of each."""
    outlying: dict[str, float] = {}
    for name, runs in by_effort.items():
        if len(runs) < _RUNS:
            continue
        keys, values = list(runs), np.array([rms for rms, _ in runs.values()])
        if expected is not None:
            sizes = [expected.get(name, {}).get(key, (0.0, 0.0))[0] for key in keys]
            values = values / np.maximum(sizes, np.finfo(float).tiny)
        for k, (log, run) in enumerate(keys):
            others = float(np.median(np.delete(values, k)))
            if values[k] > _OUTLYING * others and runs[log, run][1] >= 20:
                several = sum(key[0] == log for key in keys) > 1
                place = f"{log}, run {run + 1}" if several else log
                outlying[f"{place}: {name}"] = float(values[k] / others)
    return outlying


def burst_blocks(system: System, chi: Float[Array, "p"]) -> dict[BlockPlace, float]:
    """Blocks in which an effort is far off: log, effort, run and number -> seconds from the run's beginning.

    What comes again each time with the same motion is no burst.

    Args:
        system: Over the standard parameters, with its blocks.
        chi: Standard parameters, shape (p,), SI.
    """
    by_effort: dict[str, list[_Burst]] = {}
    for group in system.groups:
        blocks = _block_rms(group, chi)
        least = _FAINT * _effort_rms(group)
        for stretch in _disturbed_stretches([rms for _, rms, _ in blocks], least):
            if places := [place for place, _, rows in (blocks[b] for b in stretch) if rows >= 3]:
                by_effort.setdefault(group.name, []).append((group, places))
    return {
        (group.log, group.name, run, number): number * group.seconds - _begins(group)[run]
        for found in by_effort.values()
        for group, places in _once(found)
        for run, number in places
    }


def _once(found: Sequence[_Burst]) -> list[_Burst]:
    """Bursts of one effort without those that come again with the motion: a model lacks something there."""
    paths = {group.log: group.path for group, _ in found if group.path is not None}
    if len(paths) < len({group.log for group, _ in found}):
        return list(found)
    spans = []
    for group, places in found:
        run, first = places[0]
        last = max(number for of_run, number in places if of_run == run)
        start, stop = (number * group.seconds - _begins(group)[run] for number in (first, last + 1))
        spans.append((group.log, run, start, stop))
    return [burst for burst, again in zip(found, come_again(paths, spans), strict=True) if not again]


def _begins(group: Group) -> dict[int, float]:
    """Time from block number 0 to the beginning of each run, in [s].

    Without a path it is that of the first block with rows: later, where the robot stands still at first.
    """
    if group.path is not None:
        return {run: begin for run, (_, _, begin) in enumerate(group.path)}
    return {run: number * group.seconds for run, number in sorted(group.places, reverse=True)}


def _disturbed_stretches(rms: Sequence[float], least: float) -> Iterator[Sequence[int]]:
    """Blocks in a row that are far above the usual residual, and above the large ones of all other blocks.

    What a model lacks is large again and again along a log; a contact is large once, for as long as it lasts.

    Args:
        rms: Residual of each block.
        least: What a burst exceeds, in the same unit.
    """
    values = np.array(rms)
    high = np.flatnonzero(values > max(_BURST * float(np.median(values)), least))
    if len(values) < 8 or not len(high):
        return
    for stretch in np.split(high, np.flatnonzero(np.diff(high) > 1) + 1):
        limit = _ABOVE_OTHERS * float(np.quantile(np.delete(values, stretch), 0.9))
        yield [int(b) for b in stretch if values[b] > limit]


def without_blocks(system: System, left_out: Collection[BlockPlace]) -> System:
    """The system less some blocks of single efforts."""
    groups = []
    for group in system.groups:
        keep = [
            b
            for b, (run, number) in enumerate(group.places)
            if (group.log, group.name, run, number) not in left_out
        ]
        places = np.array([group.places[b] for b in keep], dtype=int).reshape(-1, 2)
        blocks = tuple(group.blocks[b] for b in keep)
        groups.append(replace(group, blocks=blocks, runs=places[:, 0], times=places[:, 1]))
    return replace(system, groups=tuple(group for group in groups if group.blocks))


def beside(system: System, burst: Collection[BlockPlace]) -> System:
    """The system without the blocks of a burst and their neighbours, into which the row filter smears it."""
    near = {(log, name, run, k + d) for log, name, run, k in burst for d in (-1, 0, 1)}
    return without_blocks(system, near) if near else system


def bursts(blocks: Mapping[BlockPlace, float], starts: Mapping[str, Sequence[float]]) -> Iterator[Notice]:
    """Stretches of a fraction of a second in which an effort is far off: contacts, collisions.

    Args:
        blocks: As `burst_blocks` finds them.
        starts: Time at which each run of each log begins, in [s].
    """
    by_time: dict[tuple[str, float], list[str]] = {}
    for (log, name, run, _), after in blocks.items():
        by_time.setdefault((log, starts.get(log, [0.0])[run] + after), []).append(name)
    if by_time:
        places = sorted(by_time)
        shown = [
            f"{f'{log} at t = ' if i == 0 or log != places[i - 1][0] else ''}{t:.2f} s"
            f" ({', '.join(by_time[log, t])})"
            for i, (log, t) in enumerate(places)
        ]
        more = f" and {len(shown) - _MOST_SHOWN} more" if len(shown) > _MOST_SHOWN else ""
        text = ", ".join(shown[:_MOST_SHOWN]) + more
        logs = dict.fromkeys(log for log, _ in places)
        entries = {
            log: {"exclude": _stretches(sorted(t for name, t in by_time if name == log))} for log in logs
        }
        yield notice("burst", times=_BURST, shown=text, change={"logs": entries})


def _stretches(times: Sequence[float]) -> list[list[float]]:
    """Stretches around disturbed blocks that begin at these times, in [s]."""
    first = last = times[0]
    ends = []
    for t in (*times[1:], np.inf):
        if t - last > 2.0 * _AROUND:
            ends.append([round(max(first - _AROUND, 0.0), 2), round(last + 2.0 * _AROUND, 2)])
            first = t
        last = t
    return ends


def undisturbed(fit: LinearFit) -> Float[Array, "p"]:
    """Standard parameters of the blocks without outliers, shape (p,), SI.

    A contact biases the parameters so that the residual is large everywhere, and the burst is hidden.
    Blocks far above the median of their effort are left out, again and again, from the worst fit to a good
    one. A log without such blocks keeps its parameters.
    """
    system, S, chi = fit.data.source, fit.data.S, fit.chi
    left: set[tuple[int, int]] = set()
    for _ in range(_ROUNDS):
        block_rms = [_block_rms(group, chi) for group in system.groups]
        usual = [float(np.median([rms for _, rms, _ in blocks])) for blocks in block_rms]
        out = {
            (g, int(b))
            for g, blocks in enumerate(block_rms)
            for b in np.argsort([-rms for _, rms, _ in blocks])[: int(_MOST_DISTURBED * len(blocks))]
            if blocks[int(b)][1] > _DISTURBED * usual[g]
        }
        if out <= left:
            break
        left |= out
        rows = []
        for g, group in enumerate(system.groups):
            kept = [block for b, block in enumerate(group.blocks) if (g, b) not in left]
            if kept:
                index, R = group.columns, merge(kept).R / usual[g]
                rows.append(np.column_stack([R[:, :-1] @ S[index], R[:, -1] - R[:, :-1] @ chi[index]]))
        stacked = triangle(np.concatenate(rows))
        # Combinations that the kept blocks do not determine keep their values.
        chi = chi + S @ scaled_lstsq(stacked[:, :-1], stacked[:, -1], 1e-8)
    return chi


def usual_residuals(fit: LinearFit) -> dict[str, float]:
    """Rms of the residual of each effort in the median block of a fit without disturbed blocks, its unit."""
    calm, blocks = undisturbed(fit), dict[str, list[float]]()
    for group in fit.data.source.groups:
        blocks.setdefault(group.name, []).extend(rms for _, rms, _ in _block_rms(group, calm))
    return {name: float(np.median(values)) for name, values in blocks.items()}


def _effort_rms(group: Group) -> float:
    measured = np.concatenate([block.Y for block in group.blocks])
    return float(np.sqrt(measured @ measured / max(group.n_rows, 1)))


def _block_rms(group: Group, chi: Float[Array, "p"]) -> list[tuple[tuple[int, int], float, int]]:
    """Place, rms of the residual and number of rows of every block; below the floor all count as equal."""
    chi_group = chi[group.columns]
    stacked = np.concatenate([block.R for block in group.blocks])
    starts = np.cumsum([0, *(len(block.R) for block in group.blocks[:-1])])
    floor = _UNEVEN * _effort_rms(group)
    squares = np.add.reduceat((stacked[:, -1] - stacked[:, :-1] @ chi_group) ** 2, starts)
    rows = [block.n_rows for block in group.blocks]
    rms = np.maximum(np.sqrt(squares / rows), floor)
    return list(zip(group.places, rms.tolist(), rows, strict=True))


def effort_weights(system: System, solved: System, chi: Float[Array, "p"]) -> Float[Array, "g"]:
    """1 over the residual's rms of each effort, whatever weights the estimator gave."""
    squares: dict[str, float] = {}
    rows: dict[str, int] = {}
    for group in solved.groups:
        left, measured = group.squares(chi)
        # Residuals of a perfect simulation are rounding errors: do not divide by them.
        least = max(_PERFECT**2 * measured, np.finfo(float).tiny)
        squares[group.name] = squares.get(group.name, 0.0) + max(left, least)
        rows[group.name] = rows.get(group.name, 0) + group.n_rows
    return np.array([np.sqrt(rows[g.name] / squares[g.name]) for g in system.groups])


def whiteness(
    sources: Sequence[RowSource], filters: Sequence[RowFilter], chi: Float[Array, "p"], method: str
) -> tuple[list[ResidualTest], list[Notice]]:
    """Portmanteau test of every row, against what the row filter makes of white noise.

    Args:
        sources: Rows of every log.
        filters: Their filters.
        chi: Standard parameters, shape (p,), SI.
        method: Of the uncertainty: only the classical one assumes white residuals.
    """
    names = sources[0].directions.names
    sums = np.zeros((len(names), _LAGS + 1))
    pairs = np.zeros((len(names), _LAGS + 1))
    for source, rows in zip(sources, filters, strict=True):
        for rho, valid in _residuals(source, rows, chi):
            for k in range(len(names)):
                r = np.where(valid[k], rho[k], 0.0)
                for lag in range(_LAGS + 1):
                    step = lag * _STRIDE
                    if step < len(r):
                        sums[k, lag] += r[: len(r) - step] @ r[step:]
                        pairs[k, lag] += np.sum(valid[k, : len(r) - step] & valid[k, step:])
    pieces = [source.pieces() for source in sources]
    shares = [sum(b - a for a, b in p) / f.decimate for p, f in zip(pieces, filters, strict=True)]
    each = [_filter_correlation(rows) for rows in filters]
    longest = max(map(len, each))
    expected = np.average([np.pad(x, (0, longest - len(x))) for x in each], axis=0, weights=shares)
    tests = [
        _portmanteau(name, sums[k], pairs[k], expected)
        for k, name in enumerate(names)
        if pairs[k, -1] > 50 and sums[k, 0] > 0
    ]
    coloured = [result for result in tests if result.p_value < _COLOURED]
    if method != "classical":
        # What correlation in time means where the intervals count it.
        return [replace(test, note=CORRELATED) if test.p_value < _COLOURED else test for test in tests], []
    tests = [replace(result, warned=result in coloured) for result in tests]
    if not coloured:
        return tests, []
    return tests, [notice("not-white", names=", ".join(result.about for result in coloured))]


def _residuals(source: RowSource, rows: RowFilter, chi: Float[Array, "p"]) -> Iterator[tuple[Array, Array]]:
    seen = 0
    for at, measured, predicted, valid in compared(source, rows, chi):
        yield measured - predicted, valid
        seen += len(at) * rows.decimate
        if seen > _MOST_SAMPLES:
            return


def _filter_correlation(rows: RowFilter) -> Float[Array, "l"]:
    """Correlation of rows 0, 1, ... apart when the noise before the filter is white."""
    whole = np.convolve(rows.kernel, rows.within)
    full = np.correlate(whole, whole, mode="full")
    correlation = full[len(whole) - 1 :: rows.decimate] / full[len(whole) - 1]
    padded = np.zeros(max(4 * _LAGS * _STRIDE, len(correlation)))
    padded[: len(correlation)] = correlation
    return padded


def _portmanteau(
    name: str, sums: Float[Array, "l"], pairs: Float[Array, "l"], rho: Float[Array, "m"]
) -> ResidualTest:
    """Sum of squared correlations at lags 3, 6, .. over Bartlett's variance of each."""
    far = np.arange(1, _LAGS + 1) * _STRIDE
    r = (sums[1:] / np.maximum(pairs[1:], 1.0)) / (sums[0] / max(pairs[0], 1.0))
    wide = np.concatenate([rho[:0:-1], rho])  # symmetric, middle at len(rho) - 1
    variance = float(np.sum(wide**2))  # far lags: sum of squared correlations
    z = (r - rho[far]) * np.sqrt(pairs[1:] / variance)
    return ResidualTest(
        "white", name, float(r[0] - rho[far[0]]), "1", None, chi2_tail(_LAGS, float(np.sum(z**2))), False
    )
