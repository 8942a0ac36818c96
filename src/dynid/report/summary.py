"""What `Estimate.summary()` returns: the same content as text, HTML and LaTeX."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynid.report.numbers import interval_text, sigma_text, value_text

if TYPE_CHECKING:
    from dynid.statistics.estimate import Estimate

_WIDTH = 110
_ESCAPES = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    mark: "\\" + mark for mark in "&%$#_{}"
}


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
        """As the command line prints it, without colours."""
        from rich.console import Console

        from dynid.report.text import print_summary

        out = io.StringIO()
        print_summary(self.estimate, full=self.full, console=Console(file=out, width=_WIDTH, no_color=True))
        return out.getvalue()

    @property
    def html(self) -> str:
        """As a notebook shows it, all names escaped."""
        from dynid.report.html import notebook_html

        return notebook_html(self.estimate)

    @property
    def latex(self) -> str:
        """The parameters as a `tabular` with the rules of the package booktabs."""
        rows = [
            f"{latex_text(item.name)} & {value_text(item.value, item.sigma)} & {sigma_text(item.sigma)} & "
            f"{interval_text(item)} & {latex_text(item.unit)} \\\\"
            for item in self.estimate.parameters
        ]
        head = "parameter & value & $\\sigma$ & 95\\,\\% interval & unit \\\\"
        lines = ["\\begin{tabular}{lrrrl}", "\\toprule", head, "\\midrule", *rows]
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """The text: this is what an interpreter shows."""
        return self.text

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.html


def latex_text(text: str) -> str:
    """Text with the characters escaped that LaTeX reads as commands."""
    return "".join(_ESCAPES.get(letter, letter) for letter in text if letter.isprintable())
