"""Do the residuals contain the signature of a fault?"""

from __future__ import annotations

from dynid.report.page import render
from dynid.report.sections.section import Section
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section | None:
    """The table of residual tests; omitted if none was made."""
    if not estimate.residual_tests:
        return None
    rows = sorted(estimate.residual_tests, key=lambda one: (not one.warned, one.test))
    warned = sum(one.warned for one in rows)
    title = f"Residual tests ({warned} of {len(rows)} flagged)"
    return Section("tests", title, render("tests.html", rows=rows))
