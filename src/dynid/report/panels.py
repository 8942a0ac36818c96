"""Figures over time: efforts with their parts, residuals, tension, recursive parameters; and bars per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.estimator.solution import History
from dynid.report.numbers import number, unit_text
from dynid.report.plots import band, bars, figure, line, packed, panel, stack
from dynid.statistics.estimate import Agreement, Estimate, Validation
from dynid.statistics.estimate_parts import SINGULARITY_DISTANCE, Signals, Tension

if TYPE_CHECKING:
    from dynid.report.plots import Figure

_MOST_NUMBERS = 300_000  # in all figures together: 2.7 bytes each keep the page below 1.5 MB
_MOST_POINTS = 1500  # a panel is about 500 pixels wide
_PAIRED = 4  # efforts that are shown two in a row
_BREAK = 0.05  # of the longest run: gap between runs whose clock restarts
_FEW = 60  # up to this number of samples, points are drawn too
_TIME = "time [s]"
_PARTS = (("gravity", "blue"), ("inertia", "orange"), ("Coriolis", "purple"), ("friction", "green"))


def points_per_panel(logs: Sequence[Signals]) -> int:
    """Largest number of samples per panel, to keep the page small."""
    numbers = sum(2 * len(signals.names) + 1 for signals in logs)
    motors = [signals.tension for signals in logs if signals.tension is not None]
    numbers += sum(2 * len(part.names) + int(part.c.shape[1]) for part in motors)
    return max(100, min(_MOST_POINTS, _MOST_NUMBERS // max(1, numbers)))


def effort_figure(
    signals: Signals, anchor: str, most: int, drawn: Mapping[str, Any] | None = None, link: str = ""
) -> Figure:
    """Measured and predicted effort of one log, with the parts of the prediction where they are known.

    Args:
        drawn: What `dynid.display` gives of this log.
        link: Figures with the same time axis.
    """
    rows = _thinned(signals.t, most)
    t = since_start(signals.t)
    shared = {"t": packed(t[rows])}
    terms = (drawn or {}).get("terms") or {}
    if terms:
        shared["s"] = packed(t[drawn["rows"]])  # type: ignore[index]
    panels = []
    few = {"dots": True} if len(rows) <= _FEW else {}
    for i in range(len(signals.names)):
        shared[f"p{i}"] = packed(signals.predicted[rows, i])
        shared[f"r{i}"] = packed((signals.measured - signals.predicted)[rows, i])
        series = [
            line(
                "measured", "t", f"p{i}+r{i}", "ink" if terms else "pale", width=1.4 if terms else 4.0, **few
            ),
            line("predicted", "t", f"p{i}", "red", width=1.4, dash=bool(terms), **few),
        ]
        if terms:
            parts = [(name, packed(terms[name][:, i]), colour) for name, colour in _PARTS if name in terms]
            series.insert(0, stack("s", parts))
        panels.append(panel(series, _title(signals, i), _TIME))
    areas = (
        " Coloured areas: the parts of the prediction. Their sum is the predicted effort; areas below zero"
        " count as negative."
        if terms
        else ""
    )
    return figure(
        anchor,
        panels,
        f"measured and predicted efforts of log '{signals.log}'",
        f"Log '{signals.log}'{_runs(signals.t)}{_thinning(len(rows), len(signals.t))}.{areas}",
        columns=_columns(signals),
        link=link or anchor,
        shared=shared,
    )


def drawn_log(estimate: Estimate, signals: Signals) -> Mapping[str, Any] | None:
    """What `dynid.display` gives of a log of a result; None: nothing."""
    drawn = estimate.drawing.get("unseen" if signals.validation else "logs", ())
    return next((entry for entry in drawn if entry["log"] == signals.log), None)


def residual_figure(
    signals: Signals, anchor: str, shared_by: str, flagged: Mapping[str, str], link: str = ""
) -> Figure:
    """Measured minus predicted effort of one log, with a band of two rms.

    Args:
        shared_by: Anchor of the effort figure of the same log, whose series are used.
        flagged: Effort -> remark, where the residuals are not white.
    """
    left = signals.measured - signals.predicted
    n_finite = np.maximum(1, np.isfinite(left).sum(axis=0))  # an effort may be masked at all samples
    rms = np.sqrt(np.nansum(np.square(left), axis=0) / n_finite)
    panels = []
    for i, name in enumerate(signals.names):
        half = 2.0 * float(rms[i])
        badge = {"badge": flagged[name], "level": "care"} if name in flagged else {}
        panels.append(
            panel(
                [line("residual", "t", f"r{i}", "blue", width=1.0)],
                f"{_title(signals, i)}, rms {number(float(rms[i]), 3)}",
                _TIME,
                marks=[{"band": [-half, half], "colour": "blue"}],
                height=150,
                **badge,
            )
        )
    return figure(
        anchor,
        panels,
        f"residuals of log '{signals.log}'",
        f"Log '{signals.log}'{_runs(signals.t)}: measured minus predicted. The band is ±2 rms.",
        columns=_columns(signals),
        link=link or shared_by,
        borrows=f"{shared_by}-spec",
    )


def memory_figure(signals: Signals, anchor: str, flagged: Mapping[str, str]) -> Figure | None:
    """Spectrum and autocorrelation of the residuals of each effort; None where they are not known."""
    if signals.memory is None or signals.memory.shape[1] < 8:
        return None
    lags = signals.memory.shape[1]
    half = 2.0 / np.sqrt(max(1, signals.n_rows))
    u = np.arange(lags) / lags
    taper = np.where(u < 0.5, 1.0 - 6.0 * u**2 + 6.0 * u**3, 2.0 * (1.0 - u) ** 3)  # Parzen's
    at = np.arange(lags) * signals.row_dt
    frequency = np.linspace(0.0, 0.5 / signals.row_dt, lags)
    kernel = np.cos(2.0 * np.pi * np.outer(frequency, at))
    kernel[:, 1:] *= 2.0
    lowest = min(-0.6, float(np.nanmin(signals.memory)) - 0.05)
    panels = []
    for i, name in enumerate(signals.names):
        density = np.maximum(kernel @ (taper * signals.memory[i]), 1e-2)
        badge = {"badge": flagged[name], "level": "care"} if name in flagged else {}
        panels.append(
            panel(
                [line("autocorrelation", at, signals.memory[i], "blue", width=1.2)],
                f"{name}: autocorrelation",
                "lag [s]",
                {"range": [lowest, 1.05], "ticks": [-1, -0.5, 0, 0.5, 1]},
                marks=[{"band": [-half, half], "colour": "grey"}],
                height=135,
                **badge,
            )
        )
        panels.append(
            panel(
                [line("spectrum", frequency, density, "purple", width=1.2)],
                f"{name}: spectrum, white = 1",
                "frequency [Hz]",
                {"log": True},
                marks=[{"y": 0.0, "colour": "grey"}],
                height=135,
            )
        )
    return figure(
        anchor,
        panels,
        f"autocorrelation and spectrum of the residuals of log '{signals.log}'",
        f"Log '{signals.log}'. White noise has an autocorrelation inside the grey band at all lags but the "
        "first, and a flat spectrum near 1. A peak shows the frequency of a vibration that the model lacks. "
        "The row filter alone can lower the right end of a spectrum.",
        columns=4 if len(signals.names) > 2 else 2,
    )


def tension_figure(signals: Signals, motors: Tension, anchor: str, most: int) -> Figure:
    """Measured and rebuilt effort of each motor, then the internal tension, of one log."""
    rows = _thinned(signals.t, most)
    panels = []
    for i, name in enumerate(motors.names):
        series = [
            line("measured", "t", packed(motors.measured[rows, i]), "pale", width=4.0),
            line("rebuilt, tension included", "t", packed(motors.rebuilt[rows, i]), "red", width=1.2),
        ]
        panels.append(panel(series, heading_of(name, motors.units[i]), _TIME))
    several = motors.c.shape[1] > 1
    for k in range(motors.c.shape[1]):
        title = heading_of(f"c {k + 1}" if several else "internal tension c", motors.units[0])
        panels.append(panel([line("internal tension c", "t", packed(motors.c[rows, k]))], title, _TIME))
    use = "not used for the fit" if signals.validation else "used for the fit"
    return figure(
        anchor,
        panels,
        f"motor efforts and internal tension of log '{signals.log}'",
        f"Log '{signals.log}', {use}{_thinning(len(rows), len(signals.t))}",
        columns=2,
        link=anchor,
        shared={"t": packed(since_start(signals.t)[rows])},
    )


def singularity_figure(signals: Signals, anchor: str, most: int) -> Figure:
    """Distance from singular poses along one log."""
    rows = _thinned(signals.t, most)
    t, distance = since_start(signals.t)[rows], signals.closure[SINGULARITY_DISTANCE][rows]
    name = "distance from singular poses"
    return figure(
        anchor,
        [panel([line(name, packed(t), packed(distance))], heading_of(name, "1"), _TIME)],
        f"{name} of log '{signals.log}'",
        f"Log '{signals.log}'{_thinning(len(rows), len(signals.t))}",
    )


def since_start(t: Float[Array, "n"]) -> Float[Array, "n"]:
    """Time of a clock that starts near zero, as messages give it; of others, from the first sample on.

    Runs whose clock restarts are placed one after another.
    """
    at = np.flatnonzero(np.isfinite(t))
    if not len(at):
        return t
    steps = np.diff(t[at])
    gap = _BREAK * float(np.ptp(t[at]))
    shown = np.array(t, dtype=float)
    shown[at[1:]] += np.cumsum(np.where(steps < 0.0, gap - steps, 0.0))
    first = float(shown[at[0]])
    return shown if 0.0 <= first < np.ptp(shown[at]) else np.asarray(shown - first)


def _runs(t: Float[Array, "n"]) -> str:
    anew = np.any(np.diff(t[np.isfinite(t)]) < 0.0)
    return ", runs in sequence" if anew else ""


def _thinned(t: Float[Array, "n"], most: int) -> Int[Array, "m"]:
    """Every k-th sample, and every break between segments."""
    step = max(1, -(-len(t) // most))
    kept = np.zeros(len(t), dtype=bool)
    kept[::step] = True
    return np.flatnonzero(kept | np.isnan(t))


def _thinning(shown: int, given: int) -> str:
    return f" ({shown} of {given} samples shown)" if shown < given else ""


def _title(signals: Signals, i: int) -> str:
    return heading_of(signals.names[i], signals.units[i])


def heading_of(name: str, unit: str) -> str:
    """Title of a panel."""
    shown = unit_text(unit)
    return f"{name} [{shown}]" if shown else name


def _columns(signals: Signals) -> int:
    """Two panels per row; three for many efforts, and for wrenches: x, y and z."""
    return 3 if len(signals.names) > _PAIRED else 2


def history_figure(history: History, names: Sequence[str], units: Mapping[str, str]) -> Figure:
    """The named parameters over time; a line marks each change."""
    panels = []
    marks = [{"x": change.seconds, "colour": "red"} for change in history.changes]
    for name in names:
        k = history.names.index(name)
        chi, half = history.chi[:, k], 2.0 * history.sigma[:, k]
        low, high = _first_seen(chi, half)
        series = [
            band("2 sigma", "t", packed(low), packed(high)),
            line("estimate", "t", packed(chi), width=1.6),
        ]
        panels.append(panel(series, heading_of(name, units.get(name, "")), "time [s]", marks=marks))
    return figure(
        "history-parameters",
        panels,
        "parameters over time",
        "Estimate after each update, with a band of two sigma"
        + ("; lines mark detected changes" if history.changes else ""),
        columns=2,
        link="history",
        shared={"t": packed(history.seconds)},
    )


def _first_seen(chi: Any, half: Any) -> tuple[Any, Any]:
    """The band, clipped at the beginning, where it is so wide that it would hide the curve."""
    wide = half > 20.0 * np.nanmedian(half) if np.any(np.isfinite(half)) else np.zeros(len(half), bool)
    shown = np.where(wide, np.nan, half)
    return chi - shown, chi + shown


def run_figure(validation: Validation, fit: Agreement, anchor: str) -> Figure | None:
    """One bar per run; None for robots with motor efforts."""
    if not validation.runs:
        return None
    labels = [str(run.run) for run in validation.runs]
    return figure(
        anchor,
        [
            panel(
                [bars("rms residual", [run.sigma_perp for run in validation.runs])],
                "",
                {"title": "run", "names": labels},
                "rms residual [N, N m per kg]",
                marks=[{"y": fit.sigma_perp, "colour": "orange"}],
                height=230,
            )
        ],
        f"rms residual of the {len(labels)} runs of {validation.log}",
        "Rms residual of the equations of free motion, in each run that the fit did not use. "
        "The line is the value of the fit.",
        fixed=True,
    )
