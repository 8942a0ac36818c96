"""What are the bodies, entry by entry, and which entries did the data tell?"""

from __future__ import annotations

from dynid.report.quality import owner_of
from dynid.report.sections.section import Section
from dynid.report.template import render
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section | None:
    """The physically consistent standard set; left out where nobody asked for it."""
    if not estimate.standard:
        return None
    rows = [{**entry, "owner": owner_of(str(entry["name"]))} for entry in estimate.standard]
    told = sum(row["from"] == "data" for row in rows)
    body = render("standard.html", rows=rows, told=told)
    return Section("standard", f"Standard parameters ({len(rows)})", body)
