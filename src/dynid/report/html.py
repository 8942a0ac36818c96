"""`report.html`: one self-contained page without external resources."""

from __future__ import annotations

from dynid.report.page import render, scripted_page, source
from dynid.report.quality import verdict
from dynid.report.sections import SECTIONS
from dynid.statistics.estimate import Estimate


def report_html(estimate: Estimate) -> str:
    """The report of a result as HTML text, plotly.js inlined once."""
    sections = [section for make in SECTIONS if (section := make(estimate)) is not None]
    return scripted_page("report.html", (source("figures.js"),), estimate=estimate, sections=sections)


def notebook_html(estimate: Estimate) -> str:
    """Notebook view of a result: verdict, warnings and parameters, all text escaped."""
    return str(render("notebook.html", estimate=estimate, verdict=verdict(estimate)))
