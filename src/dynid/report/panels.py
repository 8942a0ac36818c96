"""Figures of small panels over time: efforts, residuals, tension, recursive parameters; and bars per run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from dynid.common.arrays import Array
from dynid.estimator.history import History
from dynid.report.numbers import number, unit_text
from dynid.report.page import BLUE, INK, ORANGE, PALE, RED, axis, figure, packed, plot_text
from dynid.statistics.estimate import Fit, Signals, Tension, Validation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup

_MOST_NUMBERS = 150_000  # in all figures together: 5.3 bytes each keep the page below 6 MB
_MOST_POINTS = 1500  # a panel is about 500 pixels wide
_SERIES = 6  # t three times, measured, predicted, residual
_PANEL, _FRAME = 190, 90  # pixels
_COLUMNS = 2
_VECTORS = ("fx", "fy", "fz", "mx", "my", "mz")  # suffixes of names shown side by side: x, y, z
_BREAK = 0.05  # of the longest run: gap between runs whose clock restarts
_FEW = 60  # up to this number of samples, points are drawn too
_HEIGHT = 260  # pixels


def points_per_panel(logs: Sequence[Signals]) -> int:
    """Largest number of samples per panel, to keep the page small."""
    panels = sum(len(signals.names) for signals in logs)
    motors = [signals.tension for signals in logs if signals.tension is not None]
    panels += sum((len(one.names) + int(one.c.shape[1]) + 1) // 2 for one in motors)  # drawn once, not twice
    return max(100, min(_MOST_POINTS, _MOST_NUMBERS // max(1, _SERIES * panels)))


def effort_figure(signals: Signals, anchor: str, most: int) -> Markup:
    """Measured and predicted effort of one log."""
    rows = _thinned(signals.t, most)
    t = packed(_since_start(signals.t)[rows])
    data = []
    for i in range(len(signals.names)):
        measured = line("measured", t, signals.measured[rows, i], i, PALE, 4.0)
        predicted = line("predicted", t, signals.predicted[rows, i], i, RED, 1.2)
        data += [measured, predicted]
    return figure(
        anchor,
        data,
        panels([_title(signals, i) for i in range(len(signals.names))], _columns(signals)),
        f"measured and predicted efforts of log {signals.log}",
        f"Log {signals.log}{_runs(signals.t)}" + _thinning(len(rows), len(signals.t)),
    )


def residual_figure(signals: Signals, anchor: str, most: int) -> Markup:
    """Measured minus predicted effort of one log, with a band of two rms."""
    rows = _thinned(signals.t, most)
    t = packed(_since_start(signals.t)[rows])
    left = signals.measured - signals.predicted
    n_finite = np.maximum(1, np.isfinite(left).sum(axis=0))  # an effort may be masked at all samples
    rms = np.sqrt(np.nansum(np.square(left), axis=0) / n_finite)
    data = [line("residual", t, left[rows, i], i, BLUE, 1.0) for i in range(len(signals.names))]
    titles = [f"{_title(signals, i)}, rms {number(float(rms[i]), 3)}" for i in range(len(signals.names))]
    layout = panels(titles, _columns(signals)) | {
        "shapes": [_band(i, 2.0 * float(r)) for i, r in enumerate(rms)]
    }
    return figure(
        anchor,
        data,
        layout,
        f"residuals of log {signals.log}",
        f"Log {signals.log}{_runs(signals.t)}: measured minus predicted; the band is \N{PLUS-MINUS SIGN}2 rms"
        + _thinning(len(rows), len(signals.t)),
    )


def tension_figure(signals: Signals, motors: Tension, anchor: str, most: int) -> Markup:
    """Measured and rebuilt effort of each motor, then the internal tension, of one log."""
    rows = _thinned(signals.t, most)
    t = packed(_since_start(signals.t)[rows])
    data, titles = [], []
    for i, name in enumerate(motors.names):
        data.append(line("measured", t, motors.measured[rows, i], i, PALE, 4.0))
        data.append(line("rebuilt, tension included", t, motors.rebuilt[rows, i], i, RED, 1.2))
        titles.append(heading_of(name, motors.units[i]))
    several = motors.c.shape[1] > 1
    for k in range(motors.c.shape[1]):
        panel = len(titles)
        tension = line("internal tension c", t, motors.c[rows, k], panel, BLUE, 1.2)
        data.append(tension | {"showlegend": k == 0})
        titles.append(heading_of(f"c {k + 1}" if several else "internal tension c", motors.units[0]))
    use = "not used for the fit" if signals.validation else "used for the fit"
    return figure(
        anchor,
        data,
        panels(titles),
        f"motor efforts and internal tension of log {signals.log}",
        f"Log {signals.log}, {use}" + _thinning(len(rows), len(signals.t)),
    )


def _since_start(t: Float[Array, "n"]) -> Float[Array, "n"]:
    """Time from the first sample; runs whose clock restarts are placed one after another."""
    at = np.flatnonzero(np.isfinite(t))
    if not len(at):
        return t
    steps = np.diff(t[at])
    gap = _BREAK * float(np.ptp(t[at]))
    shown = np.array(t, dtype=float)
    shown[at[1:]] += np.cumsum(np.where(steps < 0.0, gap - steps, 0.0))
    return np.asarray(shown - shown[at[0]])


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


def line(
    name: str, t: dict[str, str], y: Float[Array, "n"], panel: int, colour: str, width: float
) -> dict[str, Any]:
    """One curve of a panel."""
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(y) <= _FEW else "lines",
        "name": name,
        "legendgroup": name,
        "showlegend": panel == 0 and name != "residual",
        "x": t,
        "y": packed(y),
        "xaxis": axis_name("x", panel),
        "yaxis": axis_name("y", panel),
        "line": {"color": colour, "width": width},
    }


def axis_name(letter: str, panel: int) -> str:
    """Name of a panel's axis in plotly.js, which counts from one and omits the first number."""
    return letter if panel == 0 else f"{letter}{panel + 1}"


def _title(signals: Signals, i: int) -> str:
    return heading_of(signals.names[i], signals.units[i])


def heading_of(name: str, unit: str) -> str:
    """Title of a panel."""
    return f"<b>{plot_text(name)}</b> [{plot_text(unit_text(unit))}]"


def _band(panel: int, half: float) -> dict[str, Any]:
    return {
        "type": "rect",
        "layer": "below",
        "xref": f"{axis_name('x', panel)} domain",
        "yref": axis_name("y", panel),
        "x0": 0,
        "x1": 1,
        "y0": -half,
        "y1": half,
        "fillcolor": "rgba(0,114,178,0.10)",
        "line": {"width": 0},
    }


def _columns(signals: Signals) -> int:
    """Two panels per row; for wrenches three: x, y and z."""
    whole = len(signals.names) % 3 == 0
    vectors = whole and all(name.rpartition(" ")[2] in _VECTORS for name in signals.names)
    return 3 if vectors else _COLUMNS


def panels(titles: Sequence[str], columns: int = _COLUMNS) -> dict[str, Any]:
    """Layout of small panels in columns, one per title, with the same time axis."""
    n = len(titles)
    columns = min(columns, n)
    rows = -(-n // max(1, columns))
    height = _FRAME + _PANEL * rows
    layout: dict[str, Any] = {
        "height": height,
        "legend": {"orientation": "h", "x": 0, "y": 1 + 24 / (height - 106), "yanchor": "bottom"},
        "annotations": [],
        "margin": {"l": 56, "r": 16, "t": 62, "b": 44},
    }
    for i, title in enumerate(titles):
        row, column = divmod(i, columns)
        across, down = _domain(column, columns, 0.08), _domain(rows - 1 - row, rows, 0.34 / rows)
        is_lowest = i + columns >= n
        x_title = "time since start [s]" if is_lowest else ""
        layout[f"xaxis{i + 1}"] = axis(x_title, domain=across, anchor=axis_name("y", i), matches="x")
        layout[f"yaxis{i + 1}"] = axis(domain=down, anchor=axis_name("x", i), nticks=5)
        layout["annotations"].append(_heading(title, across[0], down[1]))
    del layout["xaxis1"]["matches"]  # the others follow the first
    return layout


def _domain(place: int, count: int, gap: float) -> list[float]:
    width = (1.0 - gap * (count - 1)) / count
    return [place * (width + gap), min(1.0, place * (width + gap) + width)]


def _heading(text: str, x: float, y: float) -> dict[str, Any]:
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12, "color": INK},
    }


def history_figure(history: History, names: Sequence[str], units: Mapping[str, str]) -> Markup:
    """The named parameters over time; a line marks each change."""
    t = packed(history.seconds)
    data: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    for panel, name in enumerate(names):
        k = history.names.index(name)
        chi, half = history.chi[:, k], 2.0 * history.sigma[:, k]
        low, high = _first_seen(chi, half)
        lower = line("2 sigma", t, low, panel, BLUE, 0.0) | {"showlegend": False, "hoverinfo": "skip"}
        upper = line("2 sigma", t, high, panel, BLUE, 0.0)
        data += [lower, upper | {"fill": "tonexty", "fillcolor": "rgba(0,114,178,0.18)"}]
        data.append(line("estimate", t, chi, panel, BLUE, 1.6))
        shapes += [_mark(panel, change.seconds) for change in history.changes]
    titles = [heading_of(name, units.get(name, "")) for name in names]
    return figure(
        "history-parameters",
        data,
        panels(titles) | {"shapes": shapes},
        "parameters over time",
        "Estimate after each update, with a band of two sigma"
        + ("; lines mark detected changes" if history.changes else ""),
    )


def _first_seen(chi: Any, half: Any) -> tuple[Any, Any]:
    """The band, clipped at the beginning, where it is so wide that it would hide the curve."""
    wide = half > 20.0 * np.nanmedian(half) if np.any(np.isfinite(half)) else np.zeros(len(half), bool)
    shown = np.where(wide, np.nan, half)
    return chi - shown, chi + shown


def _mark(panel: int, seconds: float) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": axis_name("x", panel),
        "yref": f"{axis_name('y', panel)} domain",
        "x0": seconds,
        "x1": seconds,
        "y0": 0,
        "y1": 1,
        "line": {"color": RED, "width": 1.2, "dash": "dot"},
    }


def run_figure(validation: Validation, fit: Fit, anchor: str) -> Markup | None:
    """One bar per run; None for robots with motor efforts."""
    if not validation.runs:
        return None
    labels = [str(run.run) for run in validation.runs]
    bars = {
        "type": "bar",
        "name": "sigma_perp",
        "x": labels,
        "y": [run.sigma_perp for run in validation.runs],
        "marker": {"color": BLUE},
    }
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "sigma_perp of the fit",
        "x": labels,
        "y": [fit.sigma_perp] * len(labels),
        "line": {"color": ORANGE},
    }
    layout = {
        "height": _HEIGHT,
        "xaxis": axis("run", type="category"),
        "yaxis": axis("sigma_perp, per unit mass", rangemode="tozero"),
    }
    return figure(
        anchor,
        [bars, line],
        layout,
        f"sigma_perp of the {len(labels)} runs of {validation.log}",
        "Residual of the equations of free motion in each run that was not used for the fit, "
        "sqrt(rho^T rho / n) over its samples; filtered as for the fit. The line is the value of the fit.",
    )
