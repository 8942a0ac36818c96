"""The covariance of an estimate by the chosen method, and a description of the method.

`Solution.covariance` stays the classical one: valid if the errors of the rows are white. The other
methods do not assume white errors; they use clusters of time that contain all groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.estimator.solution import Solution
from dynid.projection.projection import System
from dynid.statistics.clusters import MOST_CLUSTERS, Clusters, clusters_of, duration
from dynid.statistics.sandwich import (
    Spread,
    autocorrelated,
    calibrated,
    chosen_lags,
    jackknife,
    moving_blocks,
    with_full_rank,
)
from dynid.statistics.uncertainty import UncertaintySettings

# Residuals of real logs remember for a fraction of a second: blocks of a second hold that.
BLOCK_SECONDS = 1.0
# A short log is cut finer, down to half a second, until it has so many blocks: with fewer the
# deviations themselves are hardly known.
_WANTED_BLOCKS = 16
_SHORTEST_SECONDS = 0.5
# Errors of the model that come again with a motion last as long as its oscillations, which may be seconds. A
# few long blocks with Student's t are safe (Ibragimov and Mueller 2010), for intervals a tenth wider.
_LONG_BLOCKS = 9
# Runs from which their spread is a second opinion worth having.
ENOUGH_RUNS = 4
# Below this number of degrees of freedom the 95 % quantile is more than twice the normal one.
_FEW_FREEDOMS = 2.0
# The warning is given for relative sigmas between these limits, in percent.
_SURE_PERCENT, _WEAK_PERCENT = 3.0, 100.0


@dataclass(frozen=True, eq=False)
class CountedErrors:
    """Equations with further columns D, [W D] [chi; x] = Y: what is known of x is counted apart.

    Attributes:
        system: Over the parameters of the estimate, then the quantities x; with its blocks in time order.
        sigma: Prior deviations of x, shape (k,), SI.
    """

    system: System
    sigma: Float[Array, "k"]


def covariance_of(
    system: System,
    solution: Solution,
    settings: UncertaintySettings | None = None,
    whole: System | None = None,
    counted: CountedErrors | None = None,
) -> Spread:
    """The covariance of `solution` by the method of `settings`.

    Args:
        system: What was solved, with its blocks in time order.
        solution: Of any estimator: a weighted least-squares solution of these equations, or of
            those it carries along.
        settings: Default the jackknife over blocks of about a second, longer where errors come again with a
            motion.
        whole: The same equations with few blocks, which saves merging many again.
        counted: Columns whose part of the residuals is counted elsewhere; not for rewritten equations.
    """
    settings = settings or UncertaintySettings()
    system = solution.equations or system
    if settings.method == "classical":
        return _classical(system, solution)

    def cut(seconds: float) -> Clusters:
        if counted is None or solution.equations is not None:
            return clusters_of(system, solution.chi, solution.weights, seconds, whole)
        doubt = counted.sigma / solution.sigma_rho
        return clusters_of(counted.system, solution.chi, solution.weights, seconds, doubt=doubt)

    if settings.method == "leave-one-out":
        return _by_runs(solution, cut(np.inf))
    clusters = cut(settings.block or block_seconds(duration(system)))
    if len(clusters) < 2:
        return _one_block(system, solution, settings)
    different = len(clusters.distinct())
    if settings.block is None and different > _LONG_BLOCKS and clusters.recurring:
        clusters = cut(clusters.seconds * different / _LONG_BLOCKS)
    short = cut(0.0) if settings.method in _SHORT else clusters
    spread = _SPREADS[settings.method](solution, clusters, short, settings)
    spread = _full_rank(spread, solution, spread.facts.get("different_blocks", len(clusters)))
    return _with_few(spread, solution, _blocks(clusters))


def blocks_of(
    system: System, solution: Solution, settings: UncertaintySettings, whole: System | None = None
) -> Clusters | None:
    """The blocks behind the deviations reported; None where there are none to compare, or nobody asks.

    Repeats of a motion are one block, unless few blocks would be left.

    Args:
        system: What was solved, with its blocks in time order.
        whole: The same equations with few blocks, which saves merging many again.
    """
    if settings.method == "classical":
        return None
    system = solution.equations or system
    seconds = settings.block or block_seconds(duration(system))
    seconds = np.inf if settings.method == "leave-one-out" else seconds
    clusters = clusters_of(system, solution.chi, solution.weights, seconds, whole)
    distinct = clusters.distinct()
    clusters = distinct if len(distinct) >= _WANTED_BLOCKS else clusters
    return clusters if len(clusters) > 1 else None


def _with_few(spread: Spread, solution: Solution, parts: str) -> Spread:
    few = few_blocks(solution, spread.covariance, spread.dof, parts)
    return replace(spread, notices=spread.notices + few)


def _full_rank(spread: Spread, solution: Solution, blocks: int) -> Spread:
    """Correlations that few blocks leave open are drawn towards the classical ones."""
    covariance, weight = with_full_rank(spread.covariance, solution.covariance, blocks - 1.0)
    if weight == 0.0:
        return spread
    words = f"; correlations {100 * weight:.0f} % classical (fewer blocks than parameters)"
    facts = {**spread.facts, "classical_correlations": weight}
    return replace(spread, covariance=covariance, words=spread.words + words, facts=facts)


def block_seconds(total: float) -> float:
    """Length of the blocks for a log of `total` [s]: a second, less for a short log."""
    return float(np.clip(total / _WANTED_BLOCKS, _SHORTEST_SECONDS, BLOCK_SECONDS))


def finest_seconds(total: float, settings: UncertaintySettings) -> float:
    """Length of the shortest blocks in [s] that a method looks at in logs of `total` [s]."""
    if settings.method in ("classical", "leave-one-out"):
        return float("inf")
    wanted = 0.0 if settings.method in _SHORT else settings.block or block_seconds(total)
    return max(wanted, total / MOST_CLUSTERS)


def _classical(system: System, solution: Solution) -> Spread:
    inflation = max(group.inflation for group in system.groups)
    correlated = f"the row filter correlates neighbouring rows: variances times {inflation:.3g}"
    counted = correlated if inflation > 1.0 else "rows assumed independent"
    p = len(solution.chi)
    return Spread(
        solution.covariance,
        np.full(p, float(solution.dof)),
        ("classical",) * p,
        f"classical (white noise); {counted}",
        {"method": "classical", "inflation": inflation},
    )


def _one_block(system: System, solution: Solution, settings: UncertaintySettings) -> Spread:
    return replace(_classical(system, solution), notices=(notice("one-block", method=settings.method),))


def _cluster(
    solution: Solution, clusters: Clusters, short: Clusters, settings: UncertaintySettings
) -> Spread:
    result, overstated = calibrated(clusters)
    blocks = _with_classical(result, solution)
    words = f"cluster: jackknife (CR3) over {_blocks(clusters)} of all rows together"
    words += _overstated_words(overstated)
    facts = {"method": "cluster", "blocks": len(clusters), "block_seconds": clusters.seconds}
    distinct, motions, base = clusters.distinct(), clusters.by_motion(), blocks
    facts |= {"runs": clusters.n_runs, "motions": len(motions), "overstated": float(np.median(overstated))}
    longer = [(clusters.by_run(), blocks, "runs", "leave_one_out")]
    if ENOUGH_RUNS <= len(distinct) < len(clusters) and clusters.recurring:
        base = _with_classical(_instead(blocks, calibrated(distinct)[0]), solution)
        longer.append((motions, base, "motions", "motions"))
        words += f"; repeats of a motion joined: {len(distinct)} different blocks"
        facts["different_blocks"] = len(distinct)
    result, by_run = base, np.zeros(len(solution.chi), dtype=bool)
    for parts, inside, label, key in longer:
        if len(parts) < ENOUGH_RUNS:
            continue
        result, larger = _larger(result, base, inside, calibrated(parts)[0])
        by_run |= larger
        words += f"; the leave-one-out spread of {len(parts)} {label} where it is larger"
        words += f" ({np.sum(larger)} of {len(larger)} parameters)"
        facts[f"{key}_larger"] = int(np.sum(larger))
    methods = ["leave-one-out" if larger else "cluster" for larger in by_run]
    return _described(replace(result, alone=blocks.alone), solution, methods, words, facts)


def _hac(solution: Solution, clusters: Clusters, short: Clusters, settings: UncertaintySettings) -> Spread:
    wanted = settings.bandwidth
    lags = chosen_lags(short) if wanted is None else wanted / short.seconds
    spread = _with_classical(autocorrelated(short, lags), solution)
    reach = f"{(lags + 1.0) * short.seconds:.2g} s" + ("" if wanted else ", chosen from the residuals")
    words = f"hac: Bartlett weights over {_blocks(short)}, reach {reach}"
    facts = {"method": "hac", "blocks": len(short), "block_seconds": short.seconds}
    facts["bandwidth_seconds"] = (lags + 1.0) * short.seconds
    return _described(spread, solution, ["hac"] * len(solution.chi), words, facts)


def _bootstrap(
    solution: Solution, clusters: Clusters, short: Clusters, settings: UncertaintySettings
) -> Spread:
    width = max(1, round(clusters.seconds / short.seconds))
    covariance, fitted = moving_blocks(short, width, settings.draws, settings.seed)
    if fitted < settings.draws / 2:
        raise InputError(
            f"uncertainty: only {fitted} of {settings.draws} bootstrap draws determine all parameters:"
            " some are determined by a few blocks of the log only",
            remedy="use uncertainty: cluster, shorter blocks, or a longer log",
        )
    spread = _with_classical(replace(jackknife(clusters), covariance=covariance), solution)
    words = f"bootstrap: {fitted} draws of moving blocks of {clusters.seconds:.2g} s, seed {settings.seed}"
    facts = {"method": "bootstrap", "blocks": len(clusters), "block_seconds": clusters.seconds}
    facts |= {"draws": fitted, "seed": settings.seed}
    return _described(spread, solution, ["bootstrap"] * len(solution.chi), words, facts)


_Found = Callable[[Solution, Clusters, Clusters, UncertaintySettings], Spread]
_SPREADS: dict[str, _Found] = {"cluster": _cluster, "hac": _hac, "bootstrap": _bootstrap}
# Methods that look inside blocks.
_SHORT = ("hac", "bootstrap")


def _by_runs(solution: Solution, clusters: Clusters) -> Spread:
    n = len(clusters)
    if n < 2:
        raise InputError(
            "uncertainty: leave-one-out needs several runs, and there is one",
            remedy="give several logs, or a `segment` column; or use uncertainty: cluster",
        )
    less, overstated = calibrated(clusters)
    deviations = _with_classical(less, solution)
    words = f"leave-one-out: jackknife over {n} runs" + _overstated_words(overstated)
    facts = {"method": "leave-one-out", "runs": n, "overstated": float(np.median(overstated))}
    spread = _described(deviations, solution, ["leave-one-out"] * len(solution.chi), words, facts, "run")
    return _full_rank(_with_few(spread, solution, f"{n} runs"), solution, n)


def _described(
    spread: Spread,
    solution: Solution,
    methods: Sequence[str],
    words: str,
    facts: dict[str, Any],
    part: str = "block of time",
) -> Spread:
    """The covariance with how it was found, and which parameters one cluster alone determines."""
    words += f"; Student's t with {spread.dof.min():.3g} to {spread.dof.max():.3g} degrees of freedom"
    names = _named(solution.names, spread.alone)
    notices = (notice("from-one-block", part=part, names=names),) if np.any(spread.alone) else ()
    return replace(spread, methods=tuple(methods), words=words, facts=facts, notices=notices)


def _with_classical(spread: Spread, solution: Solution) -> Spread:
    """At least the classical standard deviation if only one cluster determines a parameter."""
    if not np.any(spread.alone):
        return spread
    variance = np.diag(spread.covariance)
    wanted = np.where(spread.alone, np.maximum(variance, np.diag(solution.covariance)), variance)
    return replace(spread, covariance=_scaled(spread.covariance, variance, wanted))


def _instead(blocks: Spread, distinct: Spread) -> Spread:
    """The larger of the deviations from different blocks and from all blocks, with its freedoms.

    Errors that come again with a motion can only add variance. A smaller variance of a few different blocks
    is chance: with four of them and white noise, one deviation in ten is below half the scatter of the
    estimates.
    """
    block_var, other = np.diag(blocks.covariance), np.diag(distinct.covariance)
    smaller = other < block_var
    covariance = _scaled(distinct.covariance, other, np.where(smaller, block_var, other))
    dof = np.where(smaller & ~distinct.alone, blocks.dof, distinct.dof)
    return replace(distinct, covariance=covariance, dof=dof, alone=blocks.alone)


def _larger(so_far: Spread, base: Spread, inside: Spread, longer: Spread) -> tuple[Spread, Bool[Array, "p"]]:
    """The larger deviation with its freedoms, and where that is the one of longer clusters.

    Errors that come again with a motion, and errors that last through a run, add up, less what both count
    (Cameron, Gelbach and Miller 2011): V = V_longer + V_base - V_inside.

    Args:
        so_far: The largest deviations so far.
        base: Of blocks, with repeats of a motion as one.
        inside: Of the blocks of which the longer clusters are made.
        longer: Of runs, or of motions.
    """
    before, length = np.diag(so_far.covariance), np.diag(longer.covariance)
    rest = np.diag(base.covariance) - np.diag(inside.covariance)
    larger = (length + rest > before) & ~longer.alone
    # Welch and Satterthwaite: a sum of two variances that are each known only so well.
    slack = length**2 / longer.dof + rest**2 / base.dof
    dof = np.divide((length + rest) ** 2, slack, out=np.ones_like(slack), where=slack > 0)
    covariance = _scaled(so_far.covariance, before, np.where(larger, length + rest, before))
    return replace(
        so_far, covariance=covariance, dof=np.where(larger, np.maximum(dof, 1.0), so_far.dof)
    ), larger


def _scaled(
    covariance: Float[Array, "p p"], variance: Float[Array, "p"], wanted: Float[Array, "p"]
) -> Float[Array, "p p"]:
    """The covariance with other deviations and the same correlations."""
    factor = np.sqrt(np.divide(wanted, variance, out=np.ones_like(variance), where=variance > 0))
    scaled = covariance * np.outer(factor, factor)
    np.fill_diagonal(scaled, wanted)
    return np.asarray(scaled)


def _blocks(clusters: Clusters) -> str:
    if clusters.instants:
        return f"{len(clusters)} {'instants' if clusters.single else 'groups of instants'}"
    return f"{len(clusters)} blocks of {clusters.seconds:.2g} s"


def _overstated_words(overstated: Float[Array, "p"]) -> str:
    """By what the variances were divided, where that is worth a word."""
    middle = float(np.median(overstated))
    return f"; variances divided by {middle:.2g} (median) for small-sample bias" if middle > 1.05 else ""


# Warnings about standard deviations estimated from few blocks of time.


def _named(names: Sequence[str], chosen: Bool[Array, "p"]) -> str:
    listed = [name for name, flag in zip(names, chosen, strict=True) if flag]
    return ", ".join(listed[:6]) + (f" and {len(listed) - 6} more" if len(listed) > 6 else "")


def few_blocks(
    solution: Solution, covariance: Float[Array, "p p"], dof: Float[Array, "p"], parts: str
) -> tuple[Notice, ...]:
    """Standard deviations that are themselves uncertain, where that matters.

    Well-determined parameters are left out, and so are those indistinguishable from zero (see
    `weak-parameters`): an error of their sigma does not matter.

    Args:
        solution: The estimate.
        covariance: C_chi, shape (p, p), SI.
        dof: Degrees of freedom of each standard deviation, shape (p,).
        parts: The blocks or runs used, in words.
    """
    sigma = np.sqrt(np.diag(covariance))
    size = np.abs(solution.chi)
    relative = 100.0 * np.divide(sigma, size, out=np.full(len(size), np.inf), where=size > 1e-200)
    few = (dof < _FEW_FREEDOMS) & (relative > _SURE_PERCENT) & (relative < _WEAK_PERCENT)
    if not np.any(few):
        return ()
    return (notice("few-blocks", names=_named(solution.names, few), parts=parts),)
