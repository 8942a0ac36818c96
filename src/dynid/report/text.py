"""The terminal summary of a result: the verdict with its reasons first, then the numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dynid.common.catalogue import Severity
from dynid.common.notices import spoils_all
from dynid.report.numbers import (
    interval_text,
    number,
    percent,
    plural,
    sigma_text,
    unit_text,
    value_text,
)
from dynid.report.quality import (
    Quality,
    certainty,
    compared,
    coverage,
    evidence,
    first_reasons,
    holds_truth,
    loads,
    other_choices,
    peaks,
    quality,
    simulated_lines,
    unseen,
    weight,
)
from dynid.report.sections.found import drive_table
from dynid.report.sections.predicts import without_tension
from dynid.report.terminal import fitting, standard_console
from dynid.report.terminal import plain_table as _table
from dynid.report.terminal import print_titled as _titled
from dynid.report.terminal import print_warnings as _print_warnings
from dynid.report.terminal import verbatim as _text
from dynid.report.words import owner_of
from dynid.statistics.estimate import Estimate, GroupFit, ParameterEstimate, Validation

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dynid.prediction.predict import EffortPrediction

_MOST_ROWS = 40  # more parameters than this are summarised per owner, with the worst ones
_MOST_GROUPS = 16
_WORST_ROWS = 10
_MOST_SHARES = 5
_MOST_NAMES = 12
_COLOURS = {
    Quality.GOOD: "",
    Quality.FAIR: "",
    Quality.WEAK: "yellow",
    Quality.ZERO: "yellow",
    Quality.REMOVED: "dim",
}
_MASKS = {"reversals": "rows at reversals dropped", "none": "rows at reversals kept"}
_LEVELS = {"good": "bold green", "care": "bold yellow", "bad": "bold red"}


def print_summary(estimate: Estimate, *, full: bool = False, console: Console | None = None) -> None:
    """Print the summary, about one screen; `full` prints everything, every parameter too."""
    out = console or standard_console()
    print_verdict(out, estimate, full=full)
    if full:
        _print_fit(out, estimate)
    if full or _beyond_the_verdict(estimate.validation):
        _print_unseen(out, estimate)
    wrong_input = bool(estimate.verdict.reasons) and spoils_all(estimate.verdict.reasons[0])
    if wrong_input and not full:
        out.print(_text("The parameters are not shown: the input is wrong (--full shows them)", "dim"))
    elif full or len(estimate.parameters) <= _MOST_ROWS:
        _titled(out, "Parameters", _parameter_table(estimate, estimate.parameters, out.width))
    else:
        _print_digest(out, estimate)
    if estimate.truth:
        out.print(_text(coverage(estimate)))
    out.print(_text(certainty(estimate)))
    _print_description(out, estimate)
    if full:
        _print_unknown(out, estimate)
        _print_choices(out, estimate)
    else:
        _print_rest(out, estimate)


def print_validation(
    validations: Sequence[Validation],
    *,
    console: Console | None = None,
    warnings: bool = False,
) -> None:
    """Print how well other logs are predicted.

    Args:
        warnings: Whether to print the warnings about these logs first.
    """
    out = console or standard_console()
    if warnings:
        notices = [replace(note, text=f"{v.log}: {note.text}") for v in validations for note in v.warnings]
        _print_warnings(out, notices)
    heads = ("log", "independent", "model error %", "largest in", "model error", "unit")
    table = _table(*heads, left=("log", "largest in", "unit"))
    for item in validations:
        found = item.error
        cells = [item.log, "yes" if item.independent else "NO"]
        cells += [percent(found.percent), found.worst or "-", number(found.error, 2), found.unit]
        table.add_row(*map(_text, cells))
    _titled(out, "Validation; model error: rms without sensor noise, % of the peak", table)
    for item in validations:
        if item.runs:
            each = ", ".join(f"{run.run}: {number(run.sigma_perp, 3)}" for run in item.runs)
            out.print(_text(f"{item.log}, rms residual of each run, per kg: {each}"))
            for line in simulated_lines(item):
                out.print(_text(line))
    if not all(item.independent for item in validations):
        out.print(_text("NO: this log was also used for the fit, it does not validate the result", "yellow"))


def print_prediction(prediction: EffortPrediction, *, console: Console | None = None) -> None:
    """Print warnings, then peak, rms and uncertainty of the predicted efforts."""
    import numpy as np

    out = console or standard_console()
    _print_warnings(out, prediction.notices)
    rows = [
        (name, unit, prediction.tau[:, i], prediction.sigma[:, i])
        for i, (name, unit) in enumerate(zip(prediction.names, prediction.units, strict=True))
    ]
    rows.append(("power", "W", prediction.power, prediction.sigma_power))
    table = _table("effort", "unit", "peak", "rms", "sigma, median", "sigma, largest")
    for name, unit, values, sigma in rows:
        rms = float(np.sqrt(np.mean(values**2)))
        figures = (float(np.abs(values).max()), rms, float(np.median(sigma)), float(sigma.max()))
        table.add_row(*map(_text, (name, unit_text(unit), *(number(x, 3) for x in figures))))
    _titled(out, f"Efforts of {prediction.robot} at {len(prediction.t)} samples", table)


def print_verdict(out: Console, estimate: Estimate, *, full: bool = False) -> None:
    """Print the verdict with its first reasons and their remedies; `full`: all reasons."""
    judged = estimate.verdict
    out.print(_text(f"{estimate.robot}: ", "bold") + _text(judged.headline, _LEVELS[judged.level]))
    first, others = first_reasons(estimate)
    for i, reason in enumerate((*first, *(others if full else ()))):
        head = _text(f"{i + 1}. {reason.code}: ", _LEVELS[reason.level])
        out.print(head + _text(reason.text))
        if reason.remedy:
            out.print(_text(f"   remedy: {reason.remedy}", "cyan"))
    noted = [warning.code for warning in estimate.warnings if warning.severity is Severity.NOTE]
    rest = [*(() if full else (other.code for other in others)), *noted]
    if rest:
        out.print(_text(f"also noted, see report.html: {', '.join(dict.fromkeys(rest))}", "dim"))
    out.print(_text(evidence(estimate)))
    motors = without_tension(estimate)
    if motors:
        out.print(_text(motors))
    for name, text in loads(estimate):
        out.print(_text(f"{name}: ", "bold") + _text(text))
    _print_joints(out, estimate)


def _print_joints(out: Console, estimate: Estimate) -> None:
    """Efforts on unseen motion, the worst ones if there are many."""
    joints = estimate.verdict.joints
    if not joints:
        return
    shown = joints
    if len(joints) > _MOST_GROUPS:
        shown = tuple(sorted(joints, key=weight, reverse=True)[:_WORST_ROWS])
    kind = compared(estimate)
    columns = {
        kind: [row.name for row in shown],
        "level": [row.level for row in shown],
        "model error %": [percent(row.error_percent) for row in shown],
        "model error": [number(row.error, 2) for row in shown],
        "peak": [number(row.peak, 3) if row.peak else "-" for row in shown],
        "rms error": [number(row.error_rms, 3) for row in shown],
        "noise in it": [number(row.noise, 2) for row in shown],
        "unit": [row.unit for row in shown],
    }
    kept = fitting(columns, ("noise in it", "peak"), out.width)
    table = _table(*kept, left=(kind, "level", "unit"))
    for row, *cells in zip(shown, *kept.values(), strict=True):
        style = {row.level: _LEVELS[row.level]}
        table.add_row(*(_text(cell, style.get(cell, "")) for cell in cells))
    what = unseen(estimate).capitalize()
    _titled(out, f"{what}; model error: rms without sensor noise, % of the {peaks(estimate)}", table)


def _print_fit(out: Console, estimate: Estimate) -> None:
    fit = estimate.fit
    out.print(
        _text(
            f"model {estimate.model}, estimator {estimate.estimator}: {fit.n_rows} filtered values, "
            f"{plural(fit.n_parameters, 'parameter')}, rank {fit.rank} (gap {number(fit.rank_gap, 2)}), "
            f"condition {number(fit.condition, 3)} raw, {number(fit.condition_scaled, 3)} scaled, "
            f"sigma_rho {number(fit.sigma_rho, 3)}"
            + ("" if fit.cost_C is None else f", C {number(fit.cost_C, 3)}, sigma_W {number(fit.sigma_W, 3)}")
        )
    )
    kind = compared(estimate)
    shown = sorted(fit.groups, key=_percent_off, reverse=True)[:_WORST_ROWS]
    if len(fit.groups) > _MOST_GROUPS:
        _titled(out, f"Fit: the {_WORST_ROWS} worst of {len(fit.groups)}", _group_table(shown, kind))
    else:
        _titled(out, "Fit: rms of the residuals", _group_table(fit.groups, kind))


def _beyond_the_verdict(validations: Sequence[Validation]) -> bool:
    """Whether validation says more than the errors of the verdict: several logs, simulated runs, a doubt."""
    return len(validations) > 1 or any(item.runs or not item.independent for item in validations)


def _print_unseen(out: Console, estimate: Estimate) -> None:
    if estimate.validation:
        print_validation(estimate.validation, console=out)


def _percent_off(group: GroupFit) -> float:
    """Residual in percent; -1 if it is undefined, so that it sorts last."""
    return group.residual_percent if math.isfinite(group.residual_percent) else -1.0


def _group_table(groups: Sequence[GroupFit], kind: str) -> Table:
    table = _table(kind, "rms", "unit", left=(kind, "unit"))
    for group in groups:
        table.add_row(*map(_text, (group.name, number(group.rms, 3), group.unit)))
    return table


def _parameter_table(estimate: Estimate, shown: Sequence[ParameterEstimate], width: int) -> Table:
    """As many columns as fit without breaking a name."""
    columns = {title: [cell(p) for p in shown] for title, cell in _columns(estimate).items()}
    kept = fitting(columns, ("prior", "sigma"), width)  # sigma is in percent too
    table = _table(*kept, left=("name", "unit"))
    for p, *cells in zip(shown, *kept.values(), strict=True):
        table.add_row(*(_text(cell, _COLOURS[quality(p)]) for cell in cells))
    return table


def _columns(estimate: Estimate) -> dict[str, Callable[[ParameterEstimate], str]]:
    """Title -> cell function, of the columns that have content."""
    truth = estimate.truth or {}
    columns: dict[str, Callable[[ParameterEstimate], str]] = {
        "name": lambda p: p.name,
        "value": lambda p: value_text(p.value, p.sigma),
        "sigma": lambda p: sigma_text(p.sigma),
        "sigma %": lambda p: percent(p.sigma_rel_percent) if p.essential else "removed",
        "95 % interval": interval_text,
        "unit": lambda p: "" if p.unit == "1" else p.unit,
    }
    if any(p.prior is not None for p in estimate.parameters):
        columns["prior"] = lambda p: "-" if p.prior is None else value_text(p.prior, p.sigma)
    if truth:
        columns["truth"] = lambda p: _truth_cell(p, truth.get(p.name))
    return columns


def _truth_cell(parameter: ParameterEstimate, truth: float | None) -> str:
    if truth is None:
        return "-"
    inside = holds_truth(parameter, truth)
    mark = " " if inside is None else "\N{CHECK MARK}" if inside else "\N{MULTIPLICATION X}"
    return f"{value_text(truth, parameter.sigma)} {mark}"


def _print_digest(out: Console, estimate: Estimate) -> None:
    """Values of the drives; without drives, how well the parameters of each body are known."""
    drives = drive_table(estimate)
    if drives is None:
        _print_owners(out, estimate)
        return
    rows = drives["rows"]
    columns = {
        _with_unit(symbol, drives): [_drive_cell(symbol, row, drives) for row in rows.values()]
        for symbol in drives["symbols"]
    }
    title = "Drives"
    while columns:  # as many tables as the width needs
        part = fitting({"drive": list(rows), **columns}, [*columns][:0:-1], out.width)
        table = _table(*part, left=("drive",))
        for cells in zip(*part.values(), strict=True):
            table.add_row(*map(_text, cells))
        _titled(out, title, table)
        columns = {name: cells for name, cells in columns.items() if name not in part}
        title = ""


def _print_owners(out: Console, estimate: Estimate) -> None:
    owners: dict[str, list[ParameterEstimate]] = {}
    for p in estimate.parameters:
        owners.setdefault(owner_of(p.name), []).append(p)
    table = _table("owner", "parameters", "sigma < 20 %", "most uncertain", left=("owner", "most uncertain"))
    for owner, members in owners.items():
        known = sum(quality(p) in (Quality.GOOD, Quality.FAIR) for p in members)
        worst = max(members, key=_badness)
        last = f"{worst.name} {percent(worst.sigma_rel_percent)} %"
        table.add_row(*map(_text, (owner, str(len(members)), str(known), last)))
    _titled(out, f"{len(estimate.parameters)} parameters by owner", table)


def _with_unit(symbol: str, drives: Mapping[str, Any]) -> str:
    unit = drives["units"][symbol]
    return f"{symbol} [{unit_text(unit)}]" if unit not in ("", "1") else symbol


def _drive_cell(symbol: str, row: Mapping[str, ParameterEstimate], drives: Mapping[str, Any]) -> str:
    """Value of a term; its unit where the drives differ; empty without this term."""
    if symbol not in row:
        return ""
    unit = "" if drives["units"][symbol] else f" {unit_text(row[symbol].unit)}"
    return value_text(row[symbol].value, row[symbol].sigma) + unit


def _badness(parameter: ParameterEstimate) -> float:
    return parameter.sigma_rel_percent or 0.0


def _print_rest(out: Console, estimate: Estimate) -> None:
    """In a line each: the settings, what is not identifiable, and where the rest is."""
    chosen = next((trial for trial in estimate.tried if trial.chosen), None)
    if chosen is not None:
        parts = [_MASKS[chosen.mask], f"estimator {chosen.estimator}"]
        parts += [f"drive terms {chosen.friction}"] if chosen.friction else []
        parts += [f"low-pass {chosen.cutoff:g} Hz"] if chosen.cutoff is not None else []
        why = f"the best of {len(estimate.tried)} on parts left out of the fit, or the simplest close to it"
        out.print(_text(f"Settings: {', '.join(reversed(parts))}; {why}"))
    unknown = list(estimate.not_identifiable)
    if unknown:
        more = f" and {len(unknown) - _MOST_NAMES} more" if len(unknown) > _MOST_NAMES else ""
        out.print(_text(f"Not identifiable: {', '.join(unknown[:_MOST_NAMES])}{more}"))
    out.print(_text("All parameters and choices: report.html, parameters.csv, or --full", "dim"))


def _print_unknown(out: Console, estimate: Estimate) -> None:
    if estimate.not_identifiable:
        table = _table("not identifiable", "reason", left=("not identifiable", "reason"))
        for name, reason in estimate.not_identifiable.items():
            table.add_row(_text(name), _text(reason))
        _titled(out, "", table)


def _print_description(out: Console, estimate: Estimate) -> None:
    """What uncertain or unknown quantities of the description mean for the parameters."""
    from dynid.report.sections.description import share_lines

    lines = [] if estimate.description is None else share_lines(estimate.description, _MOST_SHARES)
    if lines:
        _titled(out, "Share of the description in the variance", _text("\n".join(lines)))


def _print_choices(out: Console, estimate: Estimate) -> None:
    if estimate.choices:
        table = _table("choice", "value", left=("choice", "value"))
        for name, value in other_choices(estimate).items():
            table.add_row(_text(name), _text(value))
        _titled(out, "Choices made for this result", table)
    if estimate.tried:
        _print_tried(out, estimate)


def _print_tried(out: Console, estimate: Estimate) -> None:
    """Settings that were chosen by their error on left-out parts; the chosen line is marked and first."""
    heads = ("coordinates [Hz]", "mask", "velocity", "friction", "estimator", "left-out error [%]", "")
    table = _table(*heads, left=heads[1:5])
    for trial in sorted(estimate.tried, key=lambda trial: not trial.chosen):
        error = "failed" if trial.held_out_percent is None else f"{trial.held_out_percent:.3g}"
        cutoff = "none" if trial.cutoff is None else f"{trial.cutoff:g}"
        cells = (cutoff, trial.mask, trial.velocity, trial.friction or "none", trial.estimator, error)
        table.add_row(*map(_text, (*cells, "chosen" if trial.chosen else "")))
    _titled(
        out,
        "Settings chosen by their error on parts left out of the fit (relative to the rms effort);"
        " coordinates: their low-pass",
        table,
    )
