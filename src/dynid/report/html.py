"""`report.html`: one self-contained page without external resources, a list of questions.

To add a section: a function `Estimate -> Section` in `sections/`, a template, and one line in SECTIONS.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dynid.common.catalogue import Severity
from dynid.common.notices import by_severity
from dynid.common.registry import Registry
from dynid.report.csv_file import parameters_csv
from dynid.report.json_file import json_text, result_document
from dynid.report.latex import parameters_tex
from dynid.report.numbers import plural
from dynid.report.page import Section, render, script_json, scripted_page
from dynid.report.quality import certainty, compared, evidence, first_reasons, loads
from dynid.statistics.estimate import Estimate

SECTIONS: Registry[Callable[[Estimate], Section | None]] = Registry(
    "dynid.sections",
    {
        "use": "dynid.report.sections.use:section",
        "found": "dynid.report.sections.found:section",
        "predicts": "dynid.report.sections.predicts:section",
        "unknown": "dynid.report.sections.unknown:section",
        "description": "dynid.report.sections.description:section",
        "log_quality": "dynid.report.sections.log_quality:section",
        "provenance": "dynid.report.sections.provenance:section",
    },
    gives=("dynid.report.page:Section", "types:NoneType"),
)
_MOST_LOGS = 3  # names in the header
_MOST_WARNINGS = 3  # of a result without a verdict, in a notebook
_MOST_JSON = 250_000  # characters: of a larger result the covariance is left out


def report_html(estimate: Estimate) -> str:
    """The report of a result as HTML text, scripts and data inlined."""
    return scripted_page(
        "report.html",
        ("robot.js",),
        estimate=estimate,
        logs=_log_names(estimate),
        sections=[section for make in SECTIONS.values() if (section := make(estimate)) is not None],
        files=script_json(downloads(estimate)),
    )


def _log_names(estimate: Estimate) -> str:
    """`2 simulated logs (run1, run2)`: those it was identified from; empty if not at hand."""
    names = [signals.log for signals in estimate.signals if not signals.validation]
    if not names:
        return ""
    more = ", ..." if len(names) > _MOST_LOGS else ""
    shown = ", ".join(f"'{name}'" for name in names[:_MOST_LOGS])
    noun = "simulated log" if estimate.truth else "log"
    return f"{plural(len(names), noun)} ({shown}{more})"


def notebook_html(estimate: Estimate) -> str:
    """Notebook view of a result: verdict, its first reasons, efforts and parameters, all text escaped."""
    severe = [item for item in estimate.warnings if item.severity is not Severity.NOTE]
    first = first_reasons(estimate)[0] or by_severity(severe)[:_MOST_WARNINGS]
    shown = {item.code for item in first}
    return str(
        render(
            "notebook.html",
            estimate=estimate,
            evidence=evidence(estimate),
            certainty=certainty(estimate),
            loads=loads(estimate),
            warnings=first,
            rest=dict.fromkeys(item.code for item in estimate.warnings if item.code not in shown),
            kind=compared(estimate),
        )
    )


# Files that a page carries inside, for its download buttons: CSV, JSON and a LaTeX table.


def downloads(estimate: Estimate) -> dict[str, dict[str, str]]:
    """Name -> text and type of each file."""
    return {
        "parameters.csv": {"text": parameters_csv(estimate), "type": "text/csv"},
        "result.json": {"text": _json(estimate), "type": "application/json"},
        "parameters.tex": {"text": parameters_tex(estimate), "type": "application/x-tex"},
    }


def _json(estimate: Estimate) -> str:
    document: dict[str, Any] = result_document(estimate)
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    if len(text) > _MOST_JSON:
        del document["covariance"]
        return json_text(document)
    return text
