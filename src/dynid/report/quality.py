"""Quality classes of a parameter, and what the verdict on a result is based on, in words.

R2 is not used: it hardly changes with a delay, a wrong gain or a wrong joint zero.
"""

from __future__ import annotations

import math
from enum import StrEnum

from dynid.common.notices import Notice, follows
from dynid.report.numbers import percent, plural
from dynid.statistics.estimate import Estimate, ParameterEstimate


class Quality(StrEnum):
    """Class of one parameter, from its relative standard deviation and its 95 % interval."""

    GOOD = "good"
    FAIR = "fair"
    WEAK = "weak"
    ZERO = "zero"
    REMOVED = "removed"


MEANING = {
    Quality.GOOD: "sigma below 5 %",
    Quality.FAIR: "sigma 5 to 20 %",
    Quality.WEAK: "sigma above 20 %",
    Quality.ZERO: "95 % interval contains zero",
    Quality.REMOVED: "removed, set to zero",
}
_GOOD_BELOW, _FAIR_BELOW = 5.0, 20.0
_LOAD = "load "  # prefix of the choices that describe identified loads
_FIRST = 3  # reasons that are shown; the others are folded
_PROMISED = 0.95  # expected share of intervals that contain the true value


_PLURAL = {"power": "power", "wrench": "wrenches", "equation": "of each equation"}


def compared(estimate: Estimate) -> str:
    """What is measured and predicted: `effort`, `power`, `reading` of a force sensor, `wrench` of a body.

    Free motion has no efforts: there it is an `equation`.
    """
    if estimate.fit.cost_C is not None:
        return "equation"
    if estimate.model == "wrench":
        return "reading" if any(group.name == "fx" for group in estimate.fit.groups) else "wrench"
    return "power" if estimate.model in ("power", "energy") else "effort"


def peaks(estimate: Estimate) -> str:
    """`peak efforts`, or what else errors are given in percent of."""
    kind = compared(estimate)
    return f"peak {_PLURAL.get(kind, f'{kind}s')}"


def quality(parameter: ParameterEstimate) -> Quality:
    """The class of one parameter."""
    if not parameter.essential:
        return Quality.REMOVED
    if parameter.ci95 is None or parameter.ci95[0] <= 0.0 <= parameter.ci95[1]:
        return Quality.ZERO
    sigma = parameter.sigma_rel_percent
    if sigma is None or sigma >= _FAIR_BELOW:
        return Quality.WEAK
    return Quality.GOOD if sigma < _GOOD_BELOW else Quality.FAIR


def owner_of(name: str) -> str:
    """The body or joint in a parameter's name: `ZZ_link2_R` belongs to `link2`."""
    owner = name.partition("_")[2].removesuffix("_R")
    return owner or "extra terms"


def holds_truth(parameter: ParameterEstimate, truth: float) -> bool | None:
    """Whether the 95 % interval contains the true value; None if there is no interval."""
    if parameter.ci95 is None:
        return None
    return parameter.ci95[0] <= truth <= parameter.ci95[1]


def coverage(estimate: Estimate) -> str:
    """How many 95 % intervals contain the true value, and how many are expected to."""
    held, n = _held(estimate)
    # Three standard deviations of a binomial count below the expected number: not explained by chance.
    few = held < _PROMISED * n - 3.0 * math.sqrt(n * _PROMISED * (1.0 - _PROMISED))
    note = "; too few: the intervals are too narrow" if few else ""
    return f"{held} of {n} intervals contain the true value (about {_PROMISED * n:.0f} expected){note}"


def _held(estimate: Estimate) -> tuple[int, int]:
    """Number of intervals that contain the true value, and number of intervals tested."""
    truth = estimate.truth or {}
    held = [holds_truth(p, truth[p.name]) for p in estimate.parameters if p.name in truth]
    marks = [mark for mark in held if mark is not None]
    return sum(marks), len(marks)


def loads(estimate: Estimate) -> list[tuple[str, str]]:
    """Identified tools and payloads, each with mass and centre of mass as text."""
    return [(name, text) for name, text in estimate.choices.items() if name.startswith(_LOAD)]


def other_choices(estimate: Estimate) -> dict[str, str]:
    """Choices without the loads, which are shown with the verdict."""
    return {name: text for name, text in estimate.choices.items() if not name.startswith(_LOAD)}


def evidence(estimate: Estimate) -> str:
    """What the verdict is based on, in one sentence."""
    kept = [p for p in estimate.parameters if p.essential]
    known = sum(quality(p) in (Quality.GOOD, Quality.FAIR) for p in kept)
    text = f"{known} of {plural(len(kept), 'parameter')} with a standard deviation below {_FAIR_BELOW:.0f} %"
    text += f"; residual of the fit {percent(estimate.fit.residual_percent)} %"
    unseen = [check for check in estimate.validation if check.independent]
    if unseen:
        worst = max(unseen, key=lambda item: item.residual_percent)
        text += f", of validation logs {percent(worst.residual_percent)} %"
    if estimate.verdict.judged_on:
        text += f"; judged on {estimate.verdict.judged_on}"
    return text


def first_reasons(estimate: Estimate) -> tuple[tuple[Notice, ...], tuple[Notice, ...]]:
    """The reasons to read first, and the others: consequences of the first one, and those beyond three."""
    reasons = estimate.verdict.reasons
    first = [reason for reason in reasons if not follows(reason, reasons[0])][:_FIRST]
    return tuple(first), tuple(reason for reason in reasons if reason not in first)
