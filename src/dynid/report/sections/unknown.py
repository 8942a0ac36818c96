"""What do these data not determine, and why?"""

from __future__ import annotations

from dynid.report.page import render
from dynid.report.sections.section import Section
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section | None:
    """Parameters not determined by these data or by any motion; omitted if there is none."""
    if not estimate.not_identifiable and not estimate.invisible:
        return None
    body = render("unknown.html", items=estimate.not_identifiable, invisible=estimate.invisible)
    return Section("unknown", f"Not identifiable ({len(estimate.not_identifiable)})", body)
