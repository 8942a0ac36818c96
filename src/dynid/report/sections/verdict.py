"""Can these parameters be used?"""

from __future__ import annotations

from dynid.report.page import Section, render
from dynid.report.quality import coverage, evidence, first_reasons, loads
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section:
    """The verdict with its evidence, and the key values of the fit."""
    first, others = first_reasons(estimate)
    body = render(
        "verdict.html",
        estimate=estimate,
        verdict=estimate.verdict,
        evidence=evidence(estimate),
        first=first,
        others=others,
        covered=coverage(estimate) if estimate.truth else None,
        loads=loads(estimate),
        filtered="low-pass on rows" in estimate.choices,
    )
    return Section("verdict", "Verdict", body)
