"""`report.html`: one self-contained page without external resources, a list of questions.

To add a section: a function `Estimate -> Section` in `sections/`, a template, and one line in SECTIONS.
"""

from __future__ import annotations

from collections.abc import Callable

from dynid.report.downloads import downloads
from dynid.report.page import Section, render, script_json, scripted_page
from dynid.report.quality import evidence
from dynid.report.sections import description, found, log_quality, predicts, provenance, unknown, use
from dynid.statistics.estimate import Estimate

SECTIONS: tuple[Callable[[Estimate], Section | None], ...] = (
    use.section,
    found.section,
    predicts.section,
    unknown.section,
    description.section,
    log_quality.section,
    provenance.section,
)


def report_html(estimate: Estimate) -> str:
    """The report of a result as HTML text, scripts and data inlined."""
    return scripted_page(
        "report.html",
        ("robot.js",),
        estimate=estimate,
        sections=[section for make in SECTIONS if (section := make(estimate)) is not None],
        files=script_json(downloads(estimate)),
    )


def notebook_html(estimate: Estimate) -> str:
    """Notebook view of a result: verdict, warnings and parameters, all text escaped."""
    return str(render("notebook.html", estimate=estimate, evidence=evidence(estimate)))
