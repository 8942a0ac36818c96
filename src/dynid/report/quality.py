"""Quality classes of a parameter, and what the verdict on a result is based on, in words.

R2 is not used: it hardly changes with a delay, a wrong gain or a wrong joint zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dynid.common.catalogue import STAGES, codes_with
from dynid.common.notices import LEVELS, Notice, by_severity, follows, spoils_all
from dynid.projection.model import measured_by
from dynid.report.numbers import interval_text, number, percent, plural, sigma_text, unit_text, value_text
from dynid.report.plots import figure, panel, points
from dynid.statistics.estimate import Estimate, ParameterEstimate, Validation
from dynid.statistics.estimate_parts import JointVerdict, LogError
from dynid.statistics.uncertainty import half95

if TYPE_CHECKING:
    from dynid.report.plots import Figure


class Quality(StrEnum):
    """Class of one parameter, from its relative standard deviation and its 95 % interval."""

    GOOD = "good"
    FAIR = "fair"
    WEAK = "weak"
    ZERO = "zero"
    REMOVED = "removed"


MEANING = {
    Quality.GOOD: "sigma below 5 % of the value",
    Quality.FAIR: "sigma 5 to 20 % of it",
    Quality.WEAK: "sigma above 20 % of it",
    Quality.ZERO: "not distinguishable from zero: the 95 % interval contains it",
    Quality.REMOVED: "removed, set to zero",
}
LABELS = {kind: kind.value for kind in Quality} | {Quality.ZERO: "zero?"}
_GOOD_BELOW, _FAIR_BELOW = 5.0, 20.0
_SEPARATE = 100.0  # condition number, columns scaled: below it the motion separates the parameters well
_FIRST_MOMENT = "MX/M_"
_LOAD = "load "  # prefix of the choices that describe identified loads
_HALF = 50.0  # percent of the residual: a correction that leaves less explains most of it
_FIRST = 3  # reasons that are shown; the others are folded
_BELOW_NOISE = "error below sensor noise"
_PROMISED = 0.95  # expected share of intervals that contain the true value


_PLURAL = {"power": "power", "wrench": "wrenches", "equation": "of each equation"}


def compared(estimate: Estimate) -> str:
    """What is measured and predicted: `effort`, `power`, `reading` of a force sensor, `wrench` of a body.

    Free motion has no efforts: there it is an `equation`.
    """
    if estimate.fit.cost_C is not None:
        return "equation"
    return measured_by(estimate.model, [group.name for group in estimate.fit.groups])


def peaks(estimate: Estimate) -> str:
    """`peak efforts`, or what else errors are given in percent of."""
    kind = compared(estimate)
    return f"peak {_PLURAL.get(kind, f'{kind}s')}"


def unseen(estimate: Estimate) -> str:
    """What the verdict counts: without a validation log, parts of the same logs."""
    fresh = any(prediction.independent for prediction in estimate.validation)
    return "unseen motion" if fresh else "left-out parts of the same logs"


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
    """Identified tools and payloads, each with mass and centre of mass as text; in free motion the body."""
    known = [(name, text) for name, text in estimate.choices.items() if name.startswith(_LOAD)]
    return [*known, *_centres(estimate)]


def _centres(estimate: Estimate) -> list[tuple[str, str]]:
    """Centres of mass of bodies whose first moments are known per kilogram, in mm."""
    known = {p.name: p for p in estimate.parameters if p.sigma}
    lines = []
    for body in [name.removeprefix(_FIRST_MOMENT) for name in known if name.startswith(_FIRST_MOMENT)]:
        parts = [known.get(f"{symbol}/M_{body}") for symbol in ("MX", "MY", "MZ")]
        found = [p for p in parts if p is not None]
        if len(found) < len(parts):
            continue
        halves = [1e3 * float(half95(p.sigma or 0.0, [p])) for p in found]
        values = ", ".join(value_text(1e3 * p.value, half) for p, half in zip(found, halves, strict=True))
        widths = ", ".join(sigma_text(half) for half in halves)
        lines.append((f"body {body}", f"centre of mass ({values}) +- ({widths}) mm in its frame"))
    return lines


def other_choices(estimate: Estimate) -> dict[str, str]:
    """Choices without the loads, which are shown with the verdict."""
    return {name: text for name, text in estimate.choices.items() if not name.startswith(_LOAD)}


def evidence(estimate: Estimate) -> str:
    """The worst joint, and which data the verdict is from."""
    worst = worst_joint(estimate)
    worst = worst if worst and worst.error_percent else None  # no error: none is worst
    parts = [f"{worst_of(estimate)}: {worst.name}, {size_of(worst)}"] if worst else []
    if estimate.verdict.judged_on:
        parts.append(f"judged on {judged_on(estimate)}")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def worst_of(estimate: Estimate) -> str:
    """`worst joint in %`, or what else is predicted; `suspect` where a reason names another."""
    found, kind = worst_joint(estimate), compared(estimate)
    if found is not None and found.error_percent < max(row.error_percent for row in estimate.verdict.joints):
        return "suspect"
    return {"effort": "worst joint in %", "power": "worst error"}.get(kind, f"worst {kind} in %")


def size_of(joint: JointVerdict) -> str:
    """`error 27 N m of a peak of 320 N m`."""
    if not joint.error_percent:
        return _BELOW_NOISE
    unit = unit_text(joint.unit)
    peak = f" of a peak of {number(joint.peak, 3)} {unit}" if joint.peak else ""
    return f"error {number(joint.error, 2)} {unit}".rstrip() + peak.rstrip()


def certainty(estimate: Estimate) -> str:
    """How many parameters are known well, and how well the motion separates them."""
    kept = [p for p in estimate.parameters if p.essential]
    sure = sum(quality(p) in (Quality.GOOD, Quality.FAIR) for p in kept)
    known = f"{sure} of {plural(len(kept), 'parameter')} with sigma below {_FAIR_BELOW:.0f} % of their value"
    return f"{known}; {apart}" if (apart := separation(estimate)) else known


def judged_on(estimate: Estimate) -> str:
    """Which data the verdict is from, and whether they include a validation log."""
    text = estimate.verdict.judged_on
    unvalidated = not any(prediction.independent for prediction in estimate.validation)
    return f"{text} (no validation log)" if text and unvalidated else text or "no log"


def separation(estimate: Estimate) -> str:
    """How well the motion separates the parameters; empty if that is not known."""
    condition = estimate.fit.condition_scaled
    if not 1.0 <= condition < math.inf:
        return ""
    words = f"below {_SEPARATE:.0f} is good"
    if condition >= _SEPARATE:
        words = f"above {_SEPARATE:.0f}: the motion separates some parameters poorly"
    return f"condition number {number(condition, 2)} ({words})"


def error_words(error: LogError, used: bool) -> str:
    """Error of one log that the fit used, or model error of one that validates it, for captions."""
    if not error.worst:
        return "nothing to compare"
    if not error.percent:
        return _BELOW_NOISE
    size = f"{number(error.error, 2)} {unit_text(error.unit)}".rstrip()
    name = "fit error" if used else "model error"
    return f"{name} {percent(error.percent)} % of the peak, {size} ({error.worst})"


def worst_joint(estimate: Estimate) -> JointVerdict | None:
    """The joint to look at first: the largest error in % of its peak.

    Where all are predicted well, and where the input is wrong, errors do not show the fault: then it is the
    first one that a reason names. None where the input is wrong and no reason names one, or without joints.
    """
    verdict = estimate.verdict
    if not verdict.joints:
        return None
    largest = max(verdict.joints, key=lambda joint: (joint.error_percent, joint.error_rms))
    spoiled = bool(verdict.reasons) and spoils_all(verdict.reasons[0])
    if largest.level != "good" and not spoiled:
        return largest
    reasons = first_reasons(estimate)[0]
    named = (joint for reason in reasons for joint in verdict.joints if is_about(reason, joint))
    return next(named, None if spoiled else largest)


def is_about(reason: Notice, joint: JointVerdict) -> bool:
    """Whether a reason names a joint."""
    return f"'{joint.name}'" in reason.text


def weight(joint: JointVerdict) -> tuple[int, float, float]:
    """The worse joint has the larger one: worst level, then largest model error, then largest error."""
    return LEVELS.index(joint.level), joint.error_percent, joint.error_rms


def first_reasons(estimate: Estimate) -> tuple[tuple[Notice, ...], tuple[Notice, ...]]:
    """The reasons to read first, and the others: consequences of the first one, and those beyond three."""
    reasons = estimate.verdict.reasons
    first = [reason for reason in reasons if not is_consequence(estimate, reason)][:_FIRST]
    return tuple(first), tuple(reason for reason in reasons if reason not in first)


def numbered_reasons(estimate: Estimate) -> tuple[tuple[int, Notice], ...]:
    """All reasons with their numbers on the page."""
    first, others = first_reasons(estimate)
    return tuple(enumerate((*first, *others), 1))


def consequences(estimate: Estimate) -> frozenset[str]:
    """Codes of warnings that the first reason of the verdict probably causes."""
    return frozenset(item.code for item in estimate.warnings if is_consequence(estimate, item))


def is_consequence(estimate: Estimate, item: Notice) -> bool:
    """Whether the first reason of the verdict probably causes a finding.

    Poor predictions of joints follow it too, where a correction that warnings name removes most of them.
    """
    reasons, best = estimate.verdict.reasons, estimate.hypotheses[:1]
    if not reasons or follows(item, reasons[0]):
        return bool(reasons)
    explained = any(test.p < 1.0 and test.left(described_residual(estimate)) < _HALF for test in best)
    return explained and item.code == "joint-error" and item.code != reasons[0].code


def described_residual(estimate: Estimate) -> float:
    """Residual of the fit with the description as it is, in percent of the measured values; 0: not known."""
    return next((test.residual_percent for test in estimate.hypotheses if test.p == 1.0), 0.0)


# Sections that say what was noticed about their subject. The trait `log`: found by the fit, but a fault of a
# log, such as clocks, zeros, signs, units, order of columns.
_HOMES = {
    "description": codes_with("description") | frozenset(STAGES["Description"]),
    "logs": codes_with("log").union(
        STAGES["Logs"],
        STAGES["Poses of closed robots and cables"],
        STAGES["Force sensors and multibody tables"],
    ),
}


def findings(estimate: Estimate, home: str) -> tuple[tuple[Notice, ...], tuple[tuple[int, Notice], ...]]:
    """Warnings that a section says, worst first, and the reasons that concern it, with their numbers.

    Each warning is said once: reasons of the verdict with the verdict, others in the section of their subject
    (`description`, `logs`), the rest in section `use`.
    """
    reasons = numbered_reasons(estimate)
    given = {(reason.code, reason.text) for _, reason in reasons}
    left = [warned for warned in estimate.warnings if (warned.code, warned.text) not in given]
    homes = {warned.code: home_of(warned.code) for warned in left}
    concerning = tuple(pair for pair in reasons if pair[1].code in _HOMES.get(home, ()))
    return tuple(by_severity([warned for warned in left if homes[warned.code] == home])), concerning


def home_of(code: str) -> str:
    """The section that says a warning."""
    return next((home for home, codes in _HOMES.items() if code in codes), "use")


def simulated_lines(item: Validation) -> list[str]:
    """Rms distance between simulated and measured free motions, over all runs of a log."""
    lines = []
    for words, prefix in (("with the estimate", ""), ("as described", "prior_")):
        parts = []
        for name, unit in (("position_rms", "mm"), ("angle_rms", "mrad")):
            values = [getattr(run, prefix + name) for run in item.runs]
            known = [value for value in values if value is not None]
            if known:
                mean = (sum(value**2 for value in known) / len(known)) ** 0.5
                parts.append(f"{number(1e3 * mean, 3)} {unit}")
        if parts:
            lines.append(f"{item.log}, simulated {words}: {', '.join(parts)} from the measured motion (rms)")
    return lines


_LIMIT = 100.0  # percent: an interval this wide reaches zero; larger values give no more information
_STYLE = {
    Quality.GOOD: ("blue", "circle"),
    Quality.FAIR: ("orange", "square"),
    Quality.WEAK: ("red", "triangle"),
    Quality.ZERO: ("grey", "cross"),
}


def interval_figure(estimate: Estimate) -> Figure | None:
    """Intervals coloured by quality, with prior and true values; None without parameters."""
    shown = [p for p in estimate.parameters if p.ci95 is not None and p.value != 0.0]
    if not shown:
        return None
    truth = dict(estimate.truth or {})
    bound = _bound(shown, truth)
    series = [_series(kind, shown) for kind in _STYLE if any(quality(p) is kind for p in shown)]
    series += _marks("description", {p.name: p.prior for p in shown}, shown, bound, "bar", "grey")
    series += _marks("truth", truth, shown, bound, "diamond", "ink")
    cross = " Grey cross: not distinguishable from zero." if Quality.ZERO in map(quality, shown) else ""
    x = {"title": "deviation [% of the estimate]", "range": [-1.06 * bound, 1.06 * bound]}
    return figure(
        "parameter-intervals",
        [panel(series, "", x, {"names": [p.name for p in shown]}, row=17)],
        "95 percent interval of every parameter relative to its value",
        "Each bar is the 95 % interval of one parameter, in percent of its estimate. A bar that reaches "
        "\N{MINUS SIGN}100 % contains zero. Bars beyond ±100 % are clipped; "
        f"marks outside the axis are drawn at its edge.{cross}",
        table=False,
        fixed=True,
    )


def _series(kind: Quality, shown: Sequence[ParameterEstimate]) -> dict[str, Any]:
    colour, symbol = _STYLE[kind]
    members = [(i, p) for i, p in enumerate(shown) if quality(p) is kind]
    return points(
        MEANING[kind],
        [0.0] * len(members),
        [float(i) for i, _ in members],
        colour,
        half=[_half_width(p) for _, p in members],
        symbol=symbol,
        tips=[_tip(p) for _, p in members],
    )


def _marks(
    name: str,
    values: Mapping[str, float | None],
    shown: Sequence[ParameterEstimate],
    bound: float,
    symbol: str,
    colour: str,
) -> list[dict[str, Any]]:
    """A series of other values of the same parameters, or none; those outside the axis are at its edge."""
    pairs = [(i, p, value) for i, p in enumerate(shown) if (value := values.get(p.name)) is not None]
    if not pairs:
        return []
    off = [100.0 * (value - p.value) / abs(p.value) for _, p, value in pairs]
    tips = [
        f"{p.name}: {name} {value_text(value, p.sigma)} {unit_text(p.unit)} ({x:+.3g} %)"
        for (_, p, value), x in zip(pairs, off, strict=True)
    ]
    x = [min(bound, max(-bound, offset)) for offset in off]
    places = [float(i) for i, _, _ in pairs]
    return [points(name, x, places, colour, symbol=symbol, open=True, tips=tips)]


def _half_width(parameter: ParameterEstimate) -> float:
    assert parameter.ci95 is not None  # noqa: S101 (only such are shown)
    low, high = parameter.ci95
    return min(_LIMIT, 50.0 * (high - low) / abs(parameter.value))


def _tip(p: ParameterEstimate) -> str:
    value = f"{p.name} = {value_text(p.value, p.sigma)} {unit_text(p.unit)}"
    return f"{value}\nsigma {sigma_text(p.sigma)} ({percent(p.sigma_rel_percent)} %)\n95 % {interval_text(p)}"


def _bound(shown: Sequence[ParameterEstimate], truth: Mapping[str, float]) -> float:
    """Half the width of the axis [%]: contains intervals and true values, up to the limit."""
    off = [100.0 * abs(truth[p.name] / p.value - 1.0) for p in shown if p.name in truth]
    return min(_LIMIT, max([_half_width(p) for p in shown] + off + [0.1]))
