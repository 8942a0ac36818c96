"""What don't we know? Parameters without a value, weak ones, combinations, and a motion that would help."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.report.numbers import number, percent, unit_text
from dynid.report.page import Section, render
from dynid.report.plots import figure, packed, panel
from dynid.report.quality import (
    Quality,
    certainty,
    compared,
    numbered_reasons,
    quality,
)
from dynid.report.words import in_words, meanings, owner_of
from dynid.statistics.estimate import Estimate, ParameterEstimate

if TYPE_CHECKING:
    from dynid.report.plots import Figure

_MAPPED = 60  # parameters of the map
_LISTED = 10
WEAK = "weak-parameters"
_PAIRS = 5  # the map shows all
_CLOSE = 0.9  # correlation above which two parameters are known mainly as a sum


def section(estimate: Estimate) -> Section:
    """Not identifiable, weak, correlated; then how to learn more."""
    weak = [p for p in estimate.parameters if quality(p) is Quality.WEAK]
    zero = [p for p in estimate.parameters if quality(p) is Quality.ZERO]
    reason, relevant = _relevant(estimate, zero)
    pairs = [pair for pair in estimate.correlations if abs(pair.value) >= _CLOSE]
    unknown = len(estimate.not_identifiable)
    body = render(
        "unknown.html",
        bad=estimate.verdict.level == "bad",
        reasons=_by_reason(estimate.not_identifiable),
        n_reasons=unknown,
        invisible={_sums(reason): names for reason, names in _by_reason(estimate.invisible).items()},
        n_invisible=len(estimate.invisible),
        weak=[_weak(p) for p in sorted(weak, key=_uncertainty)[:_LISTED]],
        n_weak=len(weak),
        n_poor=len(weak) + len(zero),
        n_all=sum(p.essential for p in estimate.parameters),
        zero=[_zero(p) for p in zero if p not in relevant],
        reason=reason,
        relevant=[_zero(p) for p in relevant],
        pairs=pairs[:_PAIRS],
        n_pairs=len(pairs),
        close=_CLOSE,
        map=correlation_figure(estimate),
        moves=_moves(estimate, [*weak, *zero]),
        robot=named_robot(estimate),
        free=compared(estimate) == "equation",
        sensor=compared(estimate) == "reading",
        certainty=certainty(estimate),
        names=meanings(estimate.parameters),
    )
    shown = f"{unknown} not shown by this motion; " if unknown else ""
    note = f"{shown}{len(weak)} weak, {len(zero)} not distinguishable from zero"
    bad = estimate.verdict.level == "bad"
    return Section("unknown", "What don't we know?", body, folded=bad, note=note, unprinted=bad)


def _by_reason(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Reason -> the names that share it."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return names


def _sums(reason: str) -> str:
    """Only the sums of a reason that repeats the name beside it; another reason as it is."""
    found = re.search(
        r" cannot be identified separately: only the sums? (.*) (?:is|are) identifiable$", reason
    )
    return found[1] if found else reason


def named_robot(estimate: Estimate) -> str:
    """The robot as a command names it: its file beside the result, or a built-in one."""
    return str(estimate.provenance.get("options", {}).get("robot", estimate.robot))


def _uncertainty(p: ParameterEstimate) -> float:
    return -(p.sigma_rel_percent or float("inf"))


def _named(p: ParameterEstimate) -> str:
    words = in_words(p.name, p.grouping)
    return f"{p.name} ({words})" if words else p.name


def _weak(p: ParameterEstimate) -> str:
    return f"{_named(p)}: sigma {percent(p.sigma_rel_percent)} % of its value"


def _relevant(estimate: Estimate, zero: Sequence[ParameterEstimate]) -> tuple[str, list[ParameterEstimate]]:
    """The warning about parameters that matter for other motion, as the page names it, and those in it."""
    for warned in estimate.warnings:
        if warned.code == WEAK:
            number = next((k for k, reason in numbered_reasons(estimate) if reason.code == WEAK), None)
            words = warned.text.replace(",", " ").split()
            named = f"reason {number} of the verdict" if number else f"warning {WEAK}"
            return named, [p for p in zero if p.name in words]
    return "", []


def _zero(p: ParameterEstimate) -> str:
    if p.ci95 is None:
        return f"{_named(p)}: no interval"
    low, high = (number(end, 2).replace("-", "\N{MINUS SIGN}") for end in p.ci95)
    return f"{_named(p)}: {low} to {high} {unit_text(p.unit)}".rstrip()


def _moves(estimate: Estimate, poor: list[ParameterEstimate]) -> list[tuple[str, int]]:
    """Bodies and joints with the most parameters that are not known well, and how many."""
    names = [p.name for p in poor] + list(estimate.not_identifiable)
    count: dict[str, int] = {}
    for name in names:
        count[owner_of(name)] = count.get(owner_of(name), 0) + 1
    return sorted(count.items(), key=lambda item: -item[1])[:4]


def correlation_figure(estimate: Estimate) -> Figure | None:
    """Correlation of every pair of parameters; of many, those with the strongest."""
    names = [p.name for p in estimate.parameters if p.sigma is not None]
    C = np.asarray(estimate.covariance)
    if len(names) < 2 or C.shape != (len(names), len(names)):
        return None
    sigma = np.sqrt(np.maximum(np.diag(C), np.finfo(float).tiny))
    R = C / np.outer(sigma, sigma)
    np.fill_diagonal(R, 0.0)
    order = np.sort(np.argsort(-np.abs(R).max(axis=0), kind="stable")[:_MAPPED])
    shown = [names[k] for k in order]
    R = R[np.ix_(order, order)]
    axis: dict[str, Any] = {"names": shown}
    series = {"kind": "heat", "values": packed(R.ravel())}
    left = f" The {_MAPPED} of {len(names)} with the strongest correlations." if len(names) > _MAPPED else ""
    return figure(
        "correlation",
        [panel([series], "", axis, axis, square=True)],
        "correlation of every pair of parameters",
        "Correlation of the errors of two parameters: orange +1, blue \N{MINUS SIGN}1, plain 0. A strong "
        f"colour means that the data fix a combination of the two better than each alone.{left}",
        table=False,
        fixed=True,
    )
