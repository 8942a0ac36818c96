"""Is the description right? Its uncertainty, corrections that were tried, distance from singular poses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid.common.catalogue import Severity
from dynid.report.numbers import percent
from dynid.report.page import Section, render
from dynid.report.panels import points_per_panel, singularity_figure
from dynid.report.quality import consequences, described_residual, findings
from dynid.statistics.estimate import NOT_TESTED, Estimate
from dynid.statistics.estimate_parts import FAR, SINGULARITY_DISTANCE, Description, DescriptionTest

if TYPE_CHECKING:
    from dynid.report.plots import Figure

_MOST = 12
_WORST = 3  # logs that are plotted
_MOST_OF_IT = 90.0  # percent: a correction that leaves as much of the residual explains nothing
_HALF = 50.0  # percent: one that leaves less explains most
_WORSE = "explains the logs worse"
_CHANCE = 0.001  # probability above which chance explains what a correction removes


def section(estimate: Estimate) -> Section | None:
    """Omitted where nothing is uncertain, nothing was tried, and no pose can be singular."""
    figures = _figures(estimate)
    facts = estimate.description or Description()
    quantities = [*facts.symbols.items(), *((f"zero of {name}", item) for name, item in facts.zeros.items())]
    warnings, reasons = findings(estimate, "description")
    untested = estimate.choices.get(NOT_TESTED, "")
    shown = figures or estimate.hypotheses or quantities or facts.gravity_sigma or facts.per_thousandth
    if not (shown or warnings or reasons or untested):
        return None
    rows = _corrections(estimate)
    body = render(
        "description.html",
        found=facts,
        quantities=quantities,
        shares=share_lines(facts, _MOST),
        effects=effect_lines(facts, _MOST),
        difference=estimate.files.get("robot.corrected.yaml.diff", ""),
        rows=[row for row in rows if row[2] != _WORSE],
        worse=[row[0] for row in rows if row[2] == _WORSE],
        described=described_residual(estimate),
        corrected=any(test.p < 1.0 for test in estimate.hypotheses[:1]),  # 1: as described
        untested=untested,
        figures=figures,
        consequences=consequences(estimate),
        warnings=warnings,
        reasons=reasons,
    )
    n = sum(warned.severity is not Severity.NOTE for warned in warnings) + len(reasons)
    note = f"{n} finding{'s' if n > 1 else ''}" if n else _conclusion(estimate)
    return Section("description", "Is the description right?", body, folded=not n, note=note)


def _corrections(estimate: Estimate) -> list[tuple[str, DescriptionTest, str]]:
    """Name, figures and meaning of each; a size only of the first, as verdict and residual tests give it.

    Those that warnings name are before the description as it is, the one that leaves least first.
    """
    tests, described = estimate.hypotheses, described_residual(estimate)
    named = [(test.subject if i else test.name, test) for i, test in enumerate(tests)]
    n = next((i for i, test in enumerate(tests) if test.p == 1.0), 0)
    ordered = [*sorted(named[:n], key=lambda pair: pair[1].left(described)), *named[n:]]
    return [
        (name, test, "" if k == n else _meaning(test, test.left(described)))
        for k, (name, test) in enumerate(ordered)
    ]


def _meaning(test: DescriptionTest, left: float) -> str:
    """What a correction shows that leaves so many percent of the residual."""
    if left > 100.5:  # shown as more than all of it
        return _WORSE
    if test.p > _CHANCE:
        return "no better than chance"
    if left > _MOST_OF_IT:
        return f"rms residual {percent(100.0 - left)} % smaller, not by chance"
    return "explains most of it" if left < _HALF else "explains a part of it"


def _conclusion(estimate: Estimate) -> str:
    """What the corrections that were tried show, where no finding concerns the description."""
    name, best, _ = next(iter(_corrections(estimate)), ("", None, ""))
    if best is not None and best.p < 1.0:
        left = best.left(described_residual(estimate))
        if left > _MOST_OF_IT:
            return f"no correction explains the logs: the best leaves {percent(left)} % of the residual"
        rest = f"leaves {percent(left)} % of the residual"
        return f"no fault of its own; most probable cause: {name} ({rest})"
    return "no fault found" if estimate.hypotheses else "nothing was tested"


def _figures(estimate: Estimate) -> list[Figure]:
    """Of the logs that come nearest to a singular pose."""
    nearest = []
    for record in estimate.signals:
        distance = record.closure.get(SINGULARITY_DISTANCE, np.zeros(0))
        if np.isfinite(distance).any():
            nearest.append((float(np.nanmin(distance)), record))
    nearest.sort(key=lambda pair: pair[0])
    shown = [item for _, item in nearest[:_WORST]]
    most = points_per_panel(shown)
    return [singularity_figure(item, f"singular-{i}", most) for i, item in enumerate(shown)]


def share_lines(description: Description, most: int) -> list[str]:
    """`80 % of the variance of M_payload is d3`, the largest shares first."""
    ordered = sorted(description.shares.items(), key=lambda item: -next(iter(item[1].values())))
    lines = []
    for name, shares in ordered[:most]:
        parts: dict[str, float] = {}
        for key, share in shares.items():  # both rotations of gravity are one quantity in words
            parts[spoken(key)] = parts.get(spoken(key), 0.0) + share
        (first, share), *others = list(parts.items())[:4]
        beside = "".join(f", {100.0 * part:.0f} % {key}" for key, part in others)
        lines.append(f"{100.0 * share:.0f} % of the variance of {name} is {first}{beside}")
    return lines


def effect_lines(description: Description, most: int) -> list[str]:
    """`M_payload: d3 +7.5 sigma, zero of motor1 -2.1 sigma`, the largest effects first."""
    lines = []
    for name, shifts in list(description.per_thousandth.items())[:most]:
        parts = ", ".join(f"{spoken(key)} {_sigmas(change)}" for key, change in list(shifts.items())[:4])
        lines.append(f"{name}: {parts}")
    return lines


def _sigmas(change: float) -> str:
    if abs(change) > FAR:
        return f"{'below -' if change < 0.0 else 'above +'}{FAR:.0f} sigma"
    return f"{change:+.{1 if abs(change) < 10.0 else 0}f} sigma"


def spoken(name: str) -> str:
    """A quantity of the description in words."""
    if name.startswith("tilt_"):
        return "direction of gravity"
    return f"zero of {name.removeprefix('zero_')}" if name.startswith("zero_") else name
