"""`report.html`: one self-contained page without external resources."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from dynid.report.quality import evidence
from dynid.report.sections import SECTIONS
from dynid.report.template import render, source
from dynid.statistics.estimate import Estimate

if TYPE_CHECKING:
    from markupsafe import Markup


def report_html(estimate: Estimate) -> str:
    """The report of a result as HTML text, plotly.js inlined once."""
    sections = [section for make in SECTIONS if (section := make(estimate)) is not None]
    return scripted_page("report.html", (source("figures.js"),), estimate=estimate, sections=sections)


def notebook_html(estimate: Estimate) -> str:
    """Notebook view of a result: verdict, warnings and parameters, all text escaped."""
    return str(render("notebook.html", estimate=estimate, evidence=evidence(estimate)))


def scripted_page(template: str, scripts: tuple[str, ...], **context: Any) -> str:
    """A page with plotly.js and our own scripts inlined; nothing else runs, and nothing is downloaded."""
    from plotly.offline import get_plotlyjs

    everything = (get_plotlyjs(), *scripts)
    page = render(
        template,
        **context,
        style=page_style(),
        scripts=[_verbatim(script) for script in everything],
        policy=_policy(everything),
    )
    return str(page)


def page_style() -> Markup:
    """The style sheet of every page."""
    return _verbatim(source("style.css"))


def static_policy() -> str:
    """Content security policy of a page without scripts."""
    return "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def _policy(scripts: tuple[str, ...]) -> str:
    """Content security policy: only our own scripts run, and nothing is fetched."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def _verbatim(text: str) -> Markup:
    """Our own style sheet and scripts; never used for text of a result."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704
