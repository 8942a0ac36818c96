"""Can these parameters be used?"""

from __future__ import annotations

from dynid.report.page import Section, render
from dynid.report.quality import coverage, loads, verdict
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section:
    """The verdict with its evidence, and the key values of the fit."""
    covered = coverage(estimate) if estimate.truth else None
    body = render(
        "verdict.html",
        estimate=estimate,
        verdict=verdict(estimate),
        covered=covered,
        loads=loads(estimate),
        filtered="low-pass on rows" in estimate.choices,
    )
    return Section("verdict", "Verdict", body)
