"""Was the log good? Every log in one line, and what was noticed about the logs."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.report.page import Section, render
from dynid.report.quality import consequences, error_words, findings
from dynid.statistics.estimate import Estimate
from dynid.statistics.estimate_parts import Signals, Verdict, log_error

_MANY = 12


def section(estimate: Estimate) -> Section:
    """A table of all logs, and the warnings that concern them."""
    warnings, reasons = findings(estimate, "logs")
    rows = [_row(item, estimate.verdict) for item in estimate.signals]
    flagged = sum(test.warned for test in estimate.residual_tests)
    body = render(
        "log_quality.html",
        rows=rows,
        many=len(rows) > _MANY,
        worst=max(rows, key=lambda row: row["error"].percent, default=None),
        words=error_words,
        consequences=consequences(estimate),
        warnings=warnings,
        reasons=reasons,
        flagged=flagged,
        facts=[
            (k, v)
            for k, v in estimate.choices.items()
            if k.partition(" (")[0] in ("clock", "reversals", "rest", "columns")
        ][:8],
    )
    n = len(warnings) + len(reasons)
    note = f"{n} finding{'s' if n > 1 else ''}" if n else "nothing suspicious found"
    return Section("logs", "Was the log good?", body, note=note)


def _row(signals: Signals, verdict: Verdict) -> dict[str, Any]:
    t = signals.t[np.isfinite(signals.t)]
    return {
        "log": signals.log,
        "use": "validation" if signals.validation else "fit",
        "seconds": float(np.sum(np.clip(np.diff(t), 0.0, None))) if len(t) else 0.0,
        "rows": signals.n_rows,
        "error": log_error(signals, verdict),
    }
