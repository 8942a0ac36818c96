"""The parameters of a result as a table of LaTeX, with the rules of the package booktabs."""

from __future__ import annotations

import re

from dynid.report.numbers import interval_text, percent, sigma_text, value_text
from dynid.statistics.estimate import Estimate

_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}


def parameters_tex(estimate: Estimate) -> str:
    """Value, sigma, 95 % interval and unit of every parameter."""
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{tabular}{lrrrrl}",
        r"\toprule",
        r"parameter & value & $\sigma$ & $\sigma$ [\%] & 95\,\% interval & unit \\",
        r"\midrule",
    ]
    for p in estimate.parameters:
        cells = [value_text(p.value, p.sigma), sigma_text(p.sigma), percent(p.sigma_rel_percent)]
        numbers = " & ".join(f"${_number(cell)}$" if cell != "-" else "--" for cell in cells)
        interval = "--" if p.ci95 is None else f"${_numbers(interval_text(p))}$"
        lines.append(rf"{escaped(p.name)} & {numbers} & {interval} & {unit_tex(p.unit)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def escaped(text: str) -> str:
    """Text in which no character is a command of LaTeX."""
    return "".join(_LATEX.get(character, character) for character in text if character.isprintable())


def unit_tex(unit: str) -> str:
    """A unit with its powers as superscripts: `kg m$^{2}$`."""
    return re.sub(r"\\textasciicircum\{\}(-?[\d.]+)", r"$^{\1}$", escaped(unit))


def _number(cell: str) -> str:
    return _numbers(cell.replace(">", "{>}"))


def _numbers(text: str) -> str:
    """Powers of ten of numbers in a text of mathematics."""
    return re.sub(r"e([+-]?\d+)", lambda power: rf" \cdot 10^{{{int(power[1])}}}", text)
