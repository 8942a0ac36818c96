"""`Estimate.plot`: the plots of the report one by one, each a `Figure`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.errors import InputError
from dynid.report.intervals import interval_figure
from dynid.report.panels import drawn_log, effort_figure, points_per_panel
from dynid.report.plots import Figure
from dynid.report.sections.found import friction_figure
from dynid.report.sections.unknown import correlation_figure

if TYPE_CHECKING:
    from dynid.statistics.estimate import Estimate


@dataclass(frozen=True, eq=False)
class Plots:
    """Plots of a result; a notebook shows them, `save` writes them."""

    estimate: Estimate

    def friction(self, speed: float | None = None) -> Figure:
        """Friction of every drive over its speed, with its 95 % band and the samples of a log.

        Args:
            speed: Largest speed, in [rad/s] or [m/s]; curves without samples. Default: as far as the log
                went; of a result that was read from a file, which holds no speeds, 1 rad/s or 1 m/s.
        """
        stored = not self.estimate.drawing.get("logs")
        drawn = friction_figure(self.estimate, 1.0 if stored and speed is None else speed)
        return _made(drawn, "this result has no friction terms", "add Fv and Fs with `drive:`")

    def efforts(self, log: Any = None) -> Figure:
        """Measured and predicted efforts of one log over time.

        Args:
            log: Name of a log of the result (default: the one predicted worst), or another log: a file, a
                `Log`, a data frame or a mapping of columns, which is predicted.
        """
        estimate, known = self.estimate, self.estimate.signals
        names = [entry.log for entry in known]
        if log is None:
            if not known:
                raise InputError(
                    "a result that was read from a file has no efforts",
                    remedy="name a log: plot.efforts('log.csv')",
                )
            signals = max(known, key=lambda entry: float(np.nan_to_num(entry.error)))
        elif isinstance(log, str) and log in names:
            signals = known[names.index(log)]
        else:
            signals = estimate._predicted(log)[1][0]
        mine = drawn_log(estimate, signals) if any(signals is entry for entry in known) else None
        return effort_figure(signals, "efforts", points_per_panel([signals]), mine)

    def parameters(self) -> Figure:
        """Every parameter with its 95 % interval, in percent of its value."""
        return _made(interval_figure(self.estimate), "no parameter of this result has an interval", "")

    def correlation(self) -> Figure:
        """Correlation of the errors of every pair of parameters."""
        return _made(correlation_figure(self.estimate), "this result has no covariance", "")


def _made(figure: Figure | None, text: str, remedy: str) -> Figure:
    if figure is None:
        raise InputError(text, remedy=remedy or None)
    return figure
