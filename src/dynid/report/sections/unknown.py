"""What can these data not tell, and why?"""

from __future__ import annotations

from dynid.report.sections.section import Section
from dynid.report.template import render
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section | None:
    """Parameters that these data or any motion leave open; left out when there is none."""
    if not estimate.not_identifiable and not estimate.invisible:
        return None
    body = render("unknown.html", items=estimate.not_identifiable, invisible=estimate.invisible)
    return Section("unknown", f"Not identifiable ({len(estimate.not_identifiable)})", body)
