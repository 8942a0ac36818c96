"""Which description explains the logs best: corrected descriptions, compared part by part.

With e_c the mean square of the residuals of part c, every effort in units of its residual as described,

    d_c = e_c(as described) - e_c(corrected),       t = mean(d) / (std(d) / sqrt(C)),      p = P(T_(C-1) > t)

Residuals count (n + v) / (n - v) times, n rows and v parameters: what a fit with v parameters leaves on fresh
data, so that parameters which a correction adds do not count as evidence. If the description is right, every
correction leaves more or as much: p is then above one half, or anywhere for a correction whose size was
fitted (a joint zero), which makes the test conservative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.linear import LinearFit
from dynid.statistics.description import DescriptionTest
from dynid.statistics.estimate import ResidualTest
from dynid.validation.hypotheses import Hypothesis

PARTS = 32  # or as many as there are blocks of a quarter of a second: noise is independent beyond that
AS_DESCRIBED = "as described"
SIGNIFICANT, _CERTAIN = 1e-2, 1e-3
_BETTER = 0.9  # of the residual as described: a correction that leaves more is not named first
_MOST_LISTED = 12
# Linear tests that are about the description, and the name of the correction.
_NAMES = {"zero": "zero of '{}'", "gravity": "gravity tilted", "mounting": "mounting of the sensor"}
_Place = tuple[str, int, int]


def comparison_with(before: LinearFit) -> Callable[[Hypothesis, LinearFit], Hypothesis]:
    """A function that gives a correction its fit and compares it with the description as it is.

    Args:
        before: The fit of the description as it is. The blocks of its rows are the parts of the test.
    """
    places = sorted({(one.log, *place) for one in before.data.source.groups for place in one.places})
    count = min(PARTS, len(places))
    parts = {place: k * count // len(places) for k, place in enumerate(places)}
    described, norm, _ = _residuals(before)
    errors = _by_part(before, described, parts)

    def compared(hypothesis: Hypothesis, fit: LinearFit) -> Hypothesis:
        rms, _, percent = _residuals(fit)
        shared = [name for name in described if name in rms and norm[name] > 0.0]
        now, then = (sum((x[name] / norm[name]) ** 2 for name in shared) for x in (rms, described))
        left = float(np.sqrt(now / then)) if then > 0.0 else 1.0
        p = _p_value(errors, _by_part(fit, described, parts))
        return replace(hypothesis, fit=fit, left=left, rms=rms, percent=percent, p=p)

    return compared


def residual_percent(fit: LinearFit) -> float:
    """100 |Y - W chi| / |Y| over all rows."""
    return _residuals(fit)[2]


def _residuals(fit: LinearFit) -> tuple[dict[str, float], dict[str, float], float]:
    """Rms of the residual and of the measured side of each effort, in its unit, and their ratio [%]."""
    sums: dict[str, tuple[float, float, int]] = {}
    for group in fit.data.source.groups:
        own = fit.chi[group.columns]
        left = sum(float(np.sum((block.Y - block.W @ own) ** 2)) for block in group.blocks)
        whole = sum(float(np.sum(block.Y**2)) for block in group.blocks)
        before = sums.get(group.name, (0.0, 0.0, 0))
        sums[group.name] = (before[0] + left, before[1] + whole, before[2] + group.n_rows)
    total = sum(whole for _, whole, _ in sums.values())
    percent = (
        100.0 * float(np.sqrt(sum(left for left, _, _ in sums.values()) / total)) if total > 0.0 else 0.0
    )
    rms = {name: float(np.sqrt(left / max(n, 1))) for name, (left, _, n) in sums.items()}
    return rms, {name: float(np.sqrt(whole / max(n, 1))) for name, (_, whole, n) in sums.items()}, percent


def _by_part(fit: LinearFit, rms: Mapping[str, float], parts: Mapping[_Place, int]) -> Float[Array, "c"]:
    """Mean square of the residuals of every part; NaN for parts without rows."""
    squares, counts = np.zeros(PARTS), np.zeros(PARTS)
    for group in fit.data.source.groups:
        scale = max(rms.get(group.name, 0.0), 1e-300)
        own = fit.chi[group.columns]
        for place, block in zip(group.places, group.blocks, strict=True):
            part = parts.get((group.log, *place))
            if part is not None:
                squares[part] += float(np.sum(((block.Y - block.W @ own) / scale) ** 2))
                counts[part] += block.n_rows
    n, v = float(counts.sum()), fit.data.S.shape[1]
    squares *= (n + v) / (n - v) if n > v else np.inf
    return np.where(counts > 0, squares / np.maximum(counts, 1.0), np.nan)


def _p_value(before: Float[Array, "c"], after: Float[Array, "c"]) -> float:
    """One-sided paired t test over the parts."""
    from scipy.special import stdtr

    gain = before - after
    gain = gain[np.isfinite(gain)]
    if len(gain) < 2:
        return 1.0
    spread = float(np.std(gain, ddof=1)) / np.sqrt(len(gain))
    return float(stdtr(len(gain) - 1, -np.mean(gain) / max(spread, 1e-300)))


def ranked(
    trials: Sequence[Hypothesis],
    described: float,
    tests: Sequence[ResidualTest],
    named: Hypothesis | None = None,
) -> tuple[DescriptionTest, ...]:
    """Significant corrections with the least residual first, then the description, then the others.

    Args:
        trials: Corrections that were fitted.
        described: Residual of the description, in percent.
        tests: Linear tests of the residuals; those of the description are listed too.
        named: The correction that is named as the cause: it is listed first.
    """
    best: list[tuple[float, DescriptionTest]] = []
    other: list[tuple[float, DescriptionTest]] = []
    for one in trials:
        entry = DescriptionTest(one.name, one.percent, one.p)
        first = one is named or one.p < _CERTAIN or (one.p < SIGNIFICANT and one.left < _BETTER)
        first &= one is named or one.left < 1.0
        (best if first else other).append((-1.0 if one is named else one.left, entry))
    tried = {one.code for one in trials}
    for test in tests:
        if test.test not in _NAMES or (test.test == "gravity" and "gravity-off" in tried and not test.warned):
            continue
        left = float(np.sqrt(max(1.0 - test.explains, 0.0)))
        given = test.note.partition(";")[0] if test.note.startswith("gravity [") else ""
        name = given or _NAMES[test.test].format(test.about)
        entry = DescriptionTest(name, described * left, test.p_value)
        same = [(k, listed) for k, listed in other if listed.name.partition(" off by")[0] == entry.name]
        if test.warned and same:  # refitted, and flagged by the linear test
            other = [one for one in other if one not in same]
            best += [(k, replace(listed, p=min(listed.p, entry.p))) for k, listed in same]
        elif not any(entry.name == listed.name.partition(" off by")[0] for _, listed in (*best, *other)):
            (best if test.warned else other).append((left, entry))
    plain = DescriptionTest(AS_DESCRIBED, described, 1.0)
    better = [entry for _, entry in sorted(best, key=lambda item: item[0])]
    rest = [entry for _, entry in sorted(other, key=lambda item: (item[1].p, item[0]))]
    return (*better, plain, *rest)[:_MOST_LISTED]
