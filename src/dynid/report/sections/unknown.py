"""What can these data not tell, and why?"""

from __future__ import annotations

from dynid.report.sections.section import Section
from dynid.report.template import render
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section | None:
    """Parameters that are not identifiable; left out when there is none."""
    if not estimate.not_identifiable:
        return None
    body = render("unknown.html", items=estimate.not_identifiable)
    return Section("unknown", f"Not identifiable ({len(estimate.not_identifiable)})", body)
