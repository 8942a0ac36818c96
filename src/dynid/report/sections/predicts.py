"""Does it predict? Measured and predicted efforts with their parts, residuals, and internal tension."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.report.numbers import number, unit_text
from dynid.report.page import Section, render
from dynid.report.panels import (
    drawn_log,
    effort_figure,
    memory_figure,
    points_per_panel,
    residual_figure,
    run_figure,
    tension_figure,
)
from dynid.report.quality import compared, error_words, simulated_lines
from dynid.report.quality import unseen as counted
from dynid.statistics.estimate import Estimate, ResidualTest
from dynid.statistics.estimate_parts import Signals, Tension, log_error, worst_signals

if TYPE_CHECKING:
    from markupsafe import Markup

    from dynid.report.plots import Figure

# Test -> its question, and factor and unit of its value where the test has none.
_QUESTIONS = {
    "delay": ("is the effort late?", 1.0, ""),
    "dimension": ("is a dimension of the description off?", 1.0, ""),
    "cable dimension": ("is a dimension of the cables off?", 1.0, ""),
    "frame": ("is the frame of the poses off?", 1.0, ""),
    "gain": ("is the effort scaled wrongly?", 100.0, "% of the effort"),
    "gravity": ("is gravity off?", 1.0, ""),
    "load": ("does friction grow with the load?", 100.0, "% of the load"),
    "mass": ("which mass does this axis show?", 1.0, ""),
    "mounting": ("is the sensor mounted differently?", 1.0, ""),
    "speed": ("is friction wrong at some speeds?", 100.0, "% of the squared residual"),
    "white": ("is the residual correlated in time?", 1.0, "correlation"),
    "zero": ("is the zero of the joint off (correction)?", 1.0, ""),
}
_SHOWN = {"s": (1e3, "ms"), "m": (1e3, "mm"), "rad": (math.degrees(1.0), "degrees")}  # as warnings say it
_MEASURED = {"power": "measured power", "wrench": "measured wrenches", "equation": "load of 1 kg"}
_WORST = 3  # logs of each use that are plotted
_NOT_WHITE = 0.01  # probability of the test below which residuals count as correlated
_MEMORIES = 4  # efforts of which spectra are shown, the most correlated ones


def section(estimate: Estimate) -> Section:
    """Validation, the curves of the logs predicted worst, their residuals, and the tension."""
    used = [entry for entry in estimate.signals if not entry.validation]
    unseen = [entry for entry in estimate.signals if entry.validation]
    shown = [*_worst(unseen), *_worst(used)]
    most = points_per_panel(shown)
    flagged = not_white(estimate)
    curves = [_curves(estimate, entry, i, most, flagged) for i, entry in enumerate(shown)]
    kind = "free" if estimate.fit.cost_C is not None else estimate.model
    body = render(
        "predicts.html",
        validations=[
            (item, error_words(item.error, not item.independent)) for item in estimate.validation[:_WORST]
        ],
        left=max(0, len(estimate.validation) - _WORST),
        simulated=simulated_lines,
        fit=estimate.fit,
        measured=_MEASURED.get(compared(estimate), f"measured {compared(estimate)}s"),
        all_validations=estimate.validation,
        runs=_runs(estimate),
        curves=curves,
        hidden=(len(used) + len(unseen)) - len(shown),
        total=len(used) + len(unseen),
        kind=kind,
        what=compared(estimate),
        counted=counted(estimate),
        flagged=flagged,
        memory=_memory(used, flagged),
        tension=tension_part(estimate, most),
        bad=estimate.verdict.level == "bad",
        warned=[_asked(check) for check in estimate.residual_tests if check.warned],
        left_out=max(0, len(flagged) - _MEMORIES),
        others=[
            _asked(check)
            for check in sorted(estimate.residual_tests, key=lambda check: check.test)
            if not check.warned
        ],
        tried=bool(estimate.hypotheses),
    )
    return Section("predicts", "Does it predict?", body)


def _asked(check: ResidualTest) -> dict[str, Any]:
    """One residual test in words, in units that are read easily."""
    question, times, unit = _QUESTIONS.get(check.test, (check.test, 1.0, ""))
    if not unit:
        times, unit = _SHOWN.get(check.unit, (1.0, check.unit))
    return {
        "question": question,
        "about": check.about,
        "value": times * check.value,
        "ci95": check.ci95 and [times * end for end in check.ci95],
        "unit": unit,
        "digits": 8 if check.test == "mass" else 3,
        "p": check.p_value,
        "remark": check.note,
    }


def _worst(signals: Sequence[Signals]) -> list[Signals]:
    return [signals[k] for k in worst_signals(signals, _WORST)]


def _curves(
    estimate: Estimate, signals: Signals, i: int, most: int, flagged: Mapping[str, str]
) -> dict[str, Any]:
    anchor = f"efforts-{i}"
    remarks = {} if signals.validation else flagged
    return {
        "log": signals.log,
        "validation": signals.validation,
        "error": error_words(log_error(signals, estimate.verdict), not signals.validation),
        "efforts": effort_figure(signals, anchor, most, drawn_log(estimate, signals)),
        "residuals": residual_figure(signals, f"residuals-{i}", anchor, remarks),
    }


def _runs(estimate: Estimate) -> list[Figure]:
    figures = [run_figure(item, estimate.fit, f"runs-{i}") for i, item in enumerate(estimate.validation)]
    return [drawn for drawn in figures if drawn is not None]


def not_white(estimate: Estimate) -> dict[str, str]:
    """Effort -> remark, where the residuals are correlated in time, the strongest correlation first."""
    tests = [item for item in estimate.residual_tests if item.test == "white" and item.p_value < _NOT_WHITE]
    return {item.about: "correlated" for item in sorted(tests, key=lambda item: -abs(item.value))}


def _memory(used: Sequence[Signals], flagged: Mapping[str, str]) -> Figure | None:
    """Spectra of the worst log: of the efforts that are not white, or of the first ones if all are."""
    if not used:
        return None
    worst = used[worst_signals(used, 1)[0]]
    coloured = [worst.names.index(name) for name in flagged if name in worst.names]
    keep = (coloured or list(range(len(worst.names))))[:_MEMORIES]
    if worst.memory is None:
        return None
    excerpt = Signals(
        worst.log,
        tuple(worst.names[i] for i in keep),
        tuple(worst.units[i] for i in keep),
        worst.t,
        worst.measured[:, keep],
        worst.predicted[:, keep],
        memory=worst.memory[keep],
        row_dt=worst.row_dt,
        n_rows=worst.n_rows,
    )
    return memory_figure(excerpt, "memory", flagged)


@dataclass(frozen=True)
class TensionSummary:
    """Tension and rebuilt efforts of one log in numbers.

    Attributes:
        means, lows, highs: Mean, and the range of nine tenths of the samples, per direction.
        share_percent: 100 |Z c| / |tau|: how much of the motor efforts only strains the robot.
        off_percent: 100 |tau - rebuilt| / |tau|.
    """

    log: str
    unit: str
    means: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    share_percent: float
    off_percent: float


def tension_part(estimate: Estimate, most: int) -> Markup | None:
    """Measured and rebuilt motor efforts and the tension; only for redundant robots."""
    pairs = [(item, item.tension) for item in estimate.signals if item.tension is not None]
    pairs = [(item, motors) for item, motors in pairs if np.isfinite(motors.c).any()]
    if not pairs:
        return None
    figures = [
        (item.log, tension_figure(item, motors, f"tension-{i}", most))
        for i, (item, motors) in enumerate(pairs[:_WORST])
    ]
    summaries = [tension_summary(item.log, motors) for item, motors in pairs]
    return render("tension.html", summaries=summaries, figures=figures)


def without_tension(estimate: Estimate) -> str:
    """What single motors of a redundant robot may be predicted for; empty for other robots.

    The error is that of the logs that the fit did not use, if there are any.
    """
    pairs = [(item.validation, item.tension) for item in estimate.signals if item.tension is not None]
    unseen_logs = any(validation for validation, _ in pairs)
    errors: dict[tuple[str, str], float] = {}
    for validation, motors in pairs:
        off = motors.measured - motors.rebuilt
        off = off[np.isfinite(off).all(axis=1)]
        if validation == unseen_logs and len(off):
            rms = np.sqrt(np.mean(off**2, axis=0)).tolist()
            for key, value in zip(zip(motors.names, motors.units, strict=True), rms, strict=True):
                errors[key] = max(value, errors.get(key, 0.0))
    if not errors or estimate.verdict.level == "bad":
        return ""
    (name, unit), worst = max(errors.items(), key=lambda item: item[1])
    return (
        "Single motor efforts only where the internal tension is measured or commanded: no model predicts it."
        f" With the measured one, their rms error is up to {number(worst, 2)} {unit_text(unit)} ({name},"
        " noise included)"
    )


def tension_summary(log: str, motors: Tension) -> TensionSummary:
    """The numbers of one log, over the samples that are not masked."""
    used = np.isfinite(motors.rebuilt).all(axis=1)
    measured, rebuilt, c = motors.measured[used], motors.rebuilt[used], motors.c[used]
    size = max(float(np.linalg.norm(measured)), np.finfo(float).tiny)
    low, high = np.percentile(c, [5.0, 95.0], axis=0)
    return TensionSummary(
        log,
        motors.units[0],
        tuple(c.mean(axis=0).tolist()),
        tuple(low.tolist()),
        tuple(high.tolist()),
        100.0 * float(np.linalg.norm(c)) / size,
        100.0 * float(np.linalg.norm(measured - rebuilt)) / size,
    )
