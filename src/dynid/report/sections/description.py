"""Is the description right? Its uncertainty, corrections that were tried, distance from singular poses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dynid.report.page import Section, render
from dynid.report.panels import points_per_panel, singularity_figure
from dynid.statistics.description import Description
from dynid.statistics.estimate import Estimate
from dynid.statistics.signals import SINGULARITY_DISTANCE

if TYPE_CHECKING:
    from dynid.report.plots import Figure

_MOST = 12
_WORST = 3  # logs that are plotted


def section(estimate: Estimate) -> Section | None:
    """Omitted where nothing is uncertain, nothing was tried, and no pose can be singular."""
    figures = _figures(estimate)
    facts = estimate.description or Description()
    quantities = [*facts.symbols.items(), *((f"zero of {name}", item) for name, item in facts.zeros.items())]
    if not (figures or estimate.hypotheses or quantities or facts.gravity_sigma or facts.per_thousandth):
        return None
    body = render(
        "description.html",
        found=facts,
        quantities=quantities,
        shares=share_lines(facts, _MOST),
        effects=effect_lines(facts, _MOST),
        corrected="robot.corrected.yaml" in estimate.files,
        rows=estimate.hypotheses,
        figures=figures,
    )
    return Section("description", "Is the description right?", body, folded=True)


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


def share_lines(found: Description, most: int) -> list[str]:
    """`80 % of the variance of M_payload is d3`, the largest shares first."""
    ordered = sorted(found.shares.items(), key=lambda item: -next(iter(item[1].values())))
    return [f"{_parts(parts)} of the variance of {name}" for name, parts in ordered[:most]]


def _parts(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{spoken(name)} {100.0 * share:.0f} %" for name, share in list(shares.items())[:4])


def effect_lines(found: Description, most: int) -> list[str]:
    """`M_payload: d3 +7.5 sigma, zero of motor1 -2.1 sigma`, the largest effects first."""
    lines = []
    for name, shifts in list(found.per_thousandth.items())[:most]:
        parts = ", ".join(f"{spoken(key)} {change:+.2g} sigma" for key, change in list(shifts.items())[:4])
        lines.append(f"{name}: {parts}")
    return lines


def spoken(name: str) -> str:
    """A quantity of the description in words."""
    if name.startswith("tilt_"):
        return "direction of gravity"
    return f"zero of {name.removeprefix('zero_')}" if name.startswith("zero_") else name
