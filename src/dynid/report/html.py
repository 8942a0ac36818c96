"""`report.html`: one self-contained page without external resources, a list of sections.

To add a section: a function `Estimate -> Section | None` in `sections/`, a template of the same name, and one
line in SECTIONS.
"""

from __future__ import annotations

from collections.abc import Callable

from dynid.report.page import Section, render, scripted_page, source
from dynid.report.quality import evidence
from dynid.report.sections import description, provenance, warnings
from dynid.report.sections import verdict as verdict_section
from dynid.report.sections.efforts import (
    efforts_section,
    residuals_section,
    tension_section,
    tests_section,
    validation_section,
)
from dynid.report.sections.parameters import (
    history_section,
    parameters_section,
    standard_section,
    unknown_section,
)
from dynid.statistics.estimate import Estimate

SECTIONS: tuple[Callable[[Estimate], Section | None], ...] = (
    verdict_section.section,
    warnings.section,
    parameters_section,
    unknown_section,
    standard_section,
    description.section,
    efforts_section,
    tension_section,
    residuals_section,
    tests_section,
    history_section,
    validation_section,
    provenance.section,
)


def report_html(estimate: Estimate) -> str:
    """The report of a result as HTML text, plotly.js inlined once."""
    sections = [section for make in SECTIONS if (section := make(estimate)) is not None]
    return scripted_page("report.html", (source("figures.js"),), estimate=estimate, sections=sections)


def notebook_html(estimate: Estimate) -> str:
    """Notebook view of a result: verdict, warnings and parameters, all text escaped."""
    return str(render("notebook.html", estimate=estimate, evidence=evidence(estimate)))
