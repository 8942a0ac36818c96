"""What `Estimate.summary()` returns: the same content as text, HTML and LaTeX.

`Estimate.plot`: the plots of the report one by one, each a `Figure`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dynid.common.audience import for_python
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.report.panels import drawn_log, effort_figure, points_per_panel
from dynid.report.plots import Figure
from dynid.report.quality import interval_figure
from dynid.report.sections.found import friction_figure
from dynid.report.sections.unknown import correlation_figure
from dynid.statistics.estimate_parts import worst_signals

if TYPE_CHECKING:
    from dynid.statistics.estimate import Estimate


_WIDTH = 110


@dataclass(frozen=True, eq=False)
class Summary:
    """Verdict, fit and parameters of a result; `print` shows the text, a notebook the HTML.

    Attributes:
        full: Whether the text lists every parameter, however many there are.
    """

    estimate: Estimate
    full: bool = False

    @property
    def text(self) -> str:
        """As the command line prints it, without colours, with arguments of Python instead of options."""
        from rich.console import Console

        from dynid.report.text import print_summary

        out = io.StringIO()
        console = Console(file=out, width=_WIDTH, no_color=True)
        print_summary(_for_python(self.estimate), full=self.full, console=console)
        return for_python(out.getvalue())

    @property
    def html(self) -> str:
        """As a notebook shows it, all names escaped."""
        from dynid.report.html import notebook_html

        return notebook_html(self.estimate)

    @property
    def latex(self) -> str:
        """The parameters as a `tabular` with the rules of the package booktabs."""
        from dynid.report.latex import parameters_tex

        return parameters_tex(self.estimate)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """The text: this is what an interpreter shows."""
        return self.text

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.html


@dataclass(frozen=True, eq=False)
class Plots:
    """Plots of a result; a notebook shows them, `save` writes them."""

    estimate: Estimate

    def friction(self, *drives: str, speed: float | None = None) -> Figure:
        """Friction of drives over their speed, with its 95 % band and the samples of a log.

        Args:
            drives: Names or globs of joints and motors, e.g. `"elbow"`; default all.
            speed: Largest speed, in [rad/s] or [m/s]; curves without samples. Default: as far as the log
                went; of a result that was read from a file, which holds no speeds, 1 rad/s or 1 m/s.
        """
        if speed is not None and not 0.0 < speed < float("inf"):
            raise InputError(f"a largest speed of {speed:g} is not valid", remedy="give a number above 0")
        stored = not self.estimate.drawing.get("logs")
        drawn = friction_figure(self.estimate, 1.0 if stored and speed is None else speed, drives)
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
                    "this result has no efforts to show",
                    remedy="name a log: plot.efforts('log.csv')",
                )
            signals = known[worst_signals(known, 1)[0]]
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


def _for_python(estimate: Estimate) -> Estimate:
    """With warnings that name arguments instead of options, before their lines are broken."""

    def worded(notices: Iterable[Notice]) -> tuple[Notice, ...]:
        return tuple(
            replace(item, text=for_python(item.text), remedy=for_python(item.remedy)) for item in notices
        )

    verdict = replace(estimate.verdict, reasons=worded(estimate.verdict.reasons))
    return replace(estimate, warnings=worded(estimate.warnings), verdict=verdict)


def _made(figure: Figure | None, text: str, remedy: str) -> Figure:
    if figure is None:
        raise InputError(text, remedy=remedy or None)
    return figure
