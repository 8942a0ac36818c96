"""Is the description right: which dimensions and zeros are uncertain, what was found, and what they do."""

from __future__ import annotations

from collections.abc import Mapping

from dynid.report.page import Section, render
from dynid.statistics.description import Description
from dynid.statistics.estimate import Estimate

_MOST = 12


def section(estimate: Estimate) -> Section | None:
    """Quantities with their uncertainty and shares; else the effect of 1 mm and 1 mrad."""
    found = estimate.description
    if found is None or not (found.symbols or found.zeros or found.gravity_sigma or found.per_thousandth):
        return None
    body = render(
        "description.html",
        found=found,
        quantities=[*found.symbols.items(), *((f"zero of {name}", one) for name, one in found.zeros.items())],
        shares=share_lines(found, _MOST),
        effects=effect_lines(found, _MOST),
        corrected="robot.corrected.yaml" in estimate.files,
    )
    return Section("description", "Description of the robot", body)


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
