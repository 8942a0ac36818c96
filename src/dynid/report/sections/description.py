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
    found = estimate.description or Description()
    quantities = [*found.symbols.items(), *((f"zero of {name}", one) for name, one in found.zeros.items())]
    if not (figures or estimate.hypotheses or quantities or found.gravity_sigma or found.per_thousandth):
        return None
    body = render(
        "description.html",
        found=found,
        quantities=quantities,
        shares=share_lines(found, _MOST),
        effects=effect_lines(found, _MOST),
        corrected="robot.corrected.yaml" in estimate.files,
        rows=estimate.hypotheses,
        figures=figures,
    )
    return Section("description", "Is the description right?", body, folded=True)


def _figures(estimate: Estimate) -> list[Figure]:
    """Of the logs that come nearest to a singular pose."""
    nearest = []
    for one in estimate.signals:
        distance = one.closure.get(SINGULARITY_DISTANCE, np.zeros(0))
        if np.isfinite(distance).any():
            nearest.append((float(np.nanmin(distance)), one))
    nearest.sort(key=lambda pair: pair[0])
    shown = [one for _, one in nearest[:_WORST]]
    most = points_per_panel(shown)
    return [singularity_figure(one, f"singular-{i}", most) for i, one in enumerate(shown)]


def share_lines(found: Description, most: int) -> list[str]:
    """`80 % of the variance of M_payload is d3`, the largest shares first."""
    ordered = sorted(found.shares.items(), key=lambda item: -next(iter(item[1].values())))
    return [f"{_parts(own)} of the variance of {name}" for name, own in ordered[:most]]


def _parts(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{spoken(name)} {100.0 * share:.0f} %" for name, share in list(shares.items())[:4])


def effect_lines(found: Description, most: int) -> list[str]:
    """`M_payload: d3 +7.5 sigma, zero of motor1 -2.1 sigma`, the largest effects first."""
    lines = []
    for name, own in list(found.per_thousandth.items())[:most]:
        parts = ", ".join(f"{spoken(one)} {change:+.2g} sigma" for one, change in list(own.items())[:4])
        lines.append(f"{name}: {parts}")
    return lines


def spoken(name: str) -> str:
    """A quantity of the description in words."""
    if name.startswith("tilt_"):
        return "direction of gravity"
    return f"zero of {name.removeprefix('zero_')}" if name.startswith("zero_") else name
