"""Rehearsals: errors of many simulated identifications, compared with their reported sigma.

    rms^2 = mean (chi_hat - chi)^2,    ratio = rms / sqrt(mean sigma^2),    coverage = share of chi in ci95

With N runs the ratio itself is uncertain by about 1/sqrt(2 N).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynid.common.brief import one_line
from dynid.common.notices import Notice, notice

_SURE = 4.0  # standard deviations: with a hundred parameters, random errors reach 3
_WRONG_RATIO = 1.3
_BIASED = 0.5  # of sigma: less is lost in the noise of a single run
_FEWEST = 20  # runs from which a scatter of errors is worth judging
_ZERO = 1e-6  # of sigma: a truth that only rounding keeps from zero
_NAMED = 6


@dataclass(frozen=True)
class Draw:
    """What one run found; of a failed one only the reason.

    Attributes:
        number: Of the run.
        names, units: Of the parameters with a sigma.
        values, sigmas, low, high: Estimates with their 95 % intervals, SI.
        truth: True values; NaN where they are not known.
        failed: Why there is no result; empty: there is one.
    """

    number: int
    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    sigmas: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    truth: tuple[float, ...] = ()
    failed: str = ""


@dataclass(frozen=True)
class RehearsedParameter:
    """Expected accuracy of one parameter.

    Attributes:
        truth: True value, SI.
        bias: Mean error, SI; bias_sigmas: over its own uncertainty.
        rms: Of the errors, SI.
        sigma: Promised, root of the mean square, SI; sigma_rel_percent: of the true value,
            None where that is zero.
        ratio: rms / sigma; 1: sigma is right.
        coverage: Share of 95 % intervals that contain the true value.
        runs: In which it was identified.
    """

    name: str
    unit: str
    truth: float
    bias: float
    bias_sigmas: float
    rms: float
    sigma: float
    sigma_rel_percent: float | None
    ratio: float
    coverage: float
    runs: int


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A rehearsal of an experiment.

    Attributes:
        runs: That gave a result; failed: reasons of the others.
        median_ratio: Over all parameters; ratio_range: 5 and 95 % of them.
        coverage: Of all 95 % intervals.
        plan: What was simulated, in words.
        unseen: Parameters that some runs did not identify, or whose truth nobody knows.
    """

    robot: str
    model: str
    estimator: str
    seed: int
    runs: int
    parameters: tuple[RehearsedParameter, ...]
    median_ratio: float
    ratio_range: tuple[float, float]
    coverage: float
    plan: Mapping[str, str] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    warnings: tuple[Notice, ...] = ()

    __repr__ = one_line

    @property
    def words(self) -> str:
        """The verdict in a sentence."""
        return (
            f"errors are {self.median_ratio:.2f} times the reported sigma (median of"
            f" {len(self.parameters)} parameters, {self.runs} runs), and 95 % intervals contain the true"
            f" value in {100.0 * self.coverage:.1f} % of cases"
        )


def summarise(draws: Sequence[Draw], **about: Any) -> Rehearsal:
    """Statistics of many runs.

    Args:
        draws: One a run.
        about: Fields of `Rehearsal` that do not come from the draws.
    """
    done = [draw for draw in draws if not draw.failed]
    rows: dict[str, list[tuple[float, ...]]] = {}
    units: dict[str, str] = {}
    for draw in done:
        columns = (draw.values, draw.sigmas, draw.low, draw.high, draw.truth)
        for name, unit, *numbers in zip(draw.names, draw.units, *columns, strict=True):
            rows.setdefault(name, []).append(tuple(numbers))
            units[name] = unit
    known = {name: cases for name, cases in rows.items() if not any(math.isnan(row[4]) for row in cases)}
    parameters = tuple(_rehearsed(name, units[name], known[name]) for name in known)
    ratios = np.array([parameter.ratio for parameter in parameters])
    counts = np.array([parameter.runs for parameter in parameters])
    hits = np.array([parameter.coverage for parameter in parameters])
    unseen = [name for name, cases in rows.items() if name not in known or len(cases) < len(done)]
    range_ = (
        (float(np.quantile(ratios, 0.05)), float(np.quantile(ratios, 0.95))) if len(ratios) else (0.0, 0.0)
    )
    return Rehearsal(
        runs=len(done),
        parameters=parameters,
        median_ratio=float(np.median(ratios)) if len(ratios) else float("nan"),
        ratio_range=range_,
        coverage=float(hits @ counts / counts.sum()) if len(ratios) else float("nan"),
        failed=tuple(draw.failed for draw in draws if draw.failed),
        unseen=tuple(unseen),
        **{**about, "warnings": (*about.get("warnings", ()), *judged(parameters))},
    )


def judged(parameters: Sequence[RehearsedParameter]) -> tuple[Notice, ...]:
    """Warnings where errors differ significantly from the reported sigma."""
    warnings = []
    many = [row for row in parameters if row.runs >= _FEWEST]
    loose = [
        row
        for row in many
        if row.ratio > _WRONG_RATIO and (row.ratio - 1.0) * math.sqrt(2.0 * row.runs) > _SURE
    ]
    if loose:
        worst = max(loose, key=lambda row: row.ratio)
        names = _listed(loose)
        warnings.append(notice("sigma-too-small", names=names, worst=worst.name, ratio=worst.ratio))
    off = [
        row
        for row in many
        if abs(row.bias_sigmas) > _SURE and abs(row.bias) > _BIASED * row.sigma and row not in loose
    ]
    if off:
        warnings.append(notice("bias", names=_listed(off), sigmas=_BIASED))
    middle = float(np.median([row.ratio for row in many])) if many else 1.0
    if middle < 1.0 / _WRONG_RATIO:
        warnings.append(notice("sigma-too-large", ratio=middle))
    weak = [row for row in parameters if row.sigma_rel_percent is not None and row.sigma_rel_percent > 100.0]
    if weak:
        warnings.append(notice("weak-parameters", "rehearsed", names=_listed(weak)))
    return tuple(warnings)


def _rehearsed(name: str, unit: str, rows: Sequence[tuple[float, ...]]) -> RehearsedParameter:
    value, sigma, low, high, truth = np.array(rows).T
    error = value - truth
    n = len(rows)
    bias, rms = float(error.mean()), float(np.sqrt(np.mean(error**2)))
    promised = float(np.sqrt(np.mean(sigma**2)))
    scatter = float(error.std(ddof=1)) / math.sqrt(n) if n > 1 else float("inf")
    true = float(truth[0])
    return RehearsedParameter(
        name=name,
        unit=unit,
        truth=true,
        bias=bias,
        bias_sigmas=bias / scatter if scatter > 0.0 else 0.0,
        rms=rms,
        sigma=promised,
        sigma_rel_percent=100.0 * promised / abs(true) if abs(true) > _ZERO * promised else None,
        ratio=rms / promised if promised > 0.0 else float("inf"),
        coverage=float(np.mean((low <= truth) & (truth <= high))),
        runs=n,
    )


def _listed(entries: Sequence[RehearsedParameter]) -> str:
    names = [entry.name for entry in entries]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
