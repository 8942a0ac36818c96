"""How did a recursive estimate vary over time, and when did something change?"""

from __future__ import annotations

import numpy as np

from dynid.estimator.history import History
from dynid.report.page import render
from dynid.report.panels import history_figure
from dynid.report.sections.section import Section
from dynid.statistics.estimate import Estimate

_PANELS = 12
_LISTED = 8


def section(estimate: Estimate) -> Section | None:
    """Changes with the affected parameters, and the parameters that vary most; only recursive estimates."""
    history = estimate.history
    if history is None or not np.any(np.isfinite(history.chi)):
        return None
    units = {one.name: one.unit for one in estimate.parameters}
    names = shown_names(history)
    body = render(
        "history.html",
        changes=history.changes,
        units=units,
        most=_LISTED,
        half_life=history.half_life,
        figure=history_figure(history, names, units),
        shown=len(names),
        total=len(history.names),
    )
    n = len(history.changes)
    said = "no change detected" if not n else f"{n} change{'s' if n > 1 else ''} detected"
    return Section("history", f"Parameters over time ({said})", body)


def shown_names(history: History) -> list[str]:
    """Parameters for the figure: those that changed abruptly, then those that vary most relative to sigma."""
    jumped = [one.name for change in history.changes for one in change.jumped]
    finite = np.isfinite(history.chi).all(axis=1)
    late = history.chi[finite][int(finite.sum()) // 4 :]
    sigma = np.where(history.sigma[-1] > 0, history.sigma[-1], np.inf)
    moved = np.ptp(late, axis=0) / sigma if len(late) else np.zeros(len(history.names))
    others = [history.names[k] for k in np.argsort(-moved, kind="stable")]
    return list(dict.fromkeys([*jumped, *others]))[:_PANELS]
