"""What must be known before the numbers are used?"""

from __future__ import annotations

from dynid.report.page import Section, render
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section | None:
    """Every warning with its remedy; omitted if there is none."""
    if not estimate.warnings:
        return None
    body = render("warnings.html", warnings=estimate.warnings)
    return Section("warnings", f"Warnings ({len(estimate.warnings)})", body)
