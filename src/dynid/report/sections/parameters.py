"""What are the parameters, and how well is each known?"""

from __future__ import annotations

from dynid.report.intervals import interval_figure
from dynid.report.page import render
from dynid.report.quality import MEANING, Quality, holds_truth, owner_of, quality
from dynid.report.sections.section import Section
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section:
    """A figure of the relative intervals, the full table, and the most correlated pairs."""
    truth = estimate.truth or {}
    rows = [
        {
            "p": p,
            "owner": owner_of(p.name),
            "quality": quality(p).value,
            "truth": truth.get(p.name),
            "inside": holds_truth(p, truth[p.name]) if p.name in truth else None,
        }
        for p in estimate.parameters
    ]
    found = {row["quality"] for row in rows}
    body = render(
        "parameters.html",
        rows=rows,
        figure=interval_figure(estimate),
        legend=[(kind.value, MEANING[kind]) for kind in Quality if kind.value in found],
        has_prior=any(p.prior is not None for p in estimate.parameters),
        has_truth=bool(truth),
        how=estimate.choices.get("uncertainty", ""),
        pairs=estimate.correlations,
    )
    return Section("parameters", f"Parameters ({len(rows)})", body)
