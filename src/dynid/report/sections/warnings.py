"""What must be known before the numbers are used?"""

from __future__ import annotations

from dynid.common.notices import by_severity
from dynid.report.page import Section, render
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section | None:
    """Every warning with its severity and remedy, folded, the most severe first; omitted if there is none."""
    if not estimate.warnings:
        return None
    body = render("warnings.html", warnings=by_severity(estimate.warnings), folded=True)
    return Section("warnings", f"All warnings ({len(estimate.warnings)})", body)
