"""Figures of a diagnosis: spectra with the cutoff, delays, and the coverage of the joint space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.doctor.diagnosis import Diagnosis
from dynid.motion.choose import longest
from dynid.motion.log import Log
from dynid.motion.motion import Motion
from dynid.motion.plan import MotionPlan
from dynid.report.page import BLUE, ORANGE, RED, axis, figure, packed, plot_text
from dynid.report.panels import axis_name, panels

if TYPE_CHECKING:
    from markupsafe import Markup

_POINTS = 1500  # per panel
_SPECTRUM_SECONDS = 4.0  # window of Welch's method
_MOST_PANELS = 24
_SIGMAS = 4.0  # half width of a delay curve
_COLOURS = (BLUE, RED, "#009e73", ORANGE, "#cc79a7", "#56b4e9", "#8a6d00", "#1f2933")


def spectrum_figure(log: Log, plan: MotionPlan, anchor: str) -> Markup:
    """Power of each velocity over frequency; a line marks the cutoff of the low-pass on coordinates."""
    from scipy.signal import welch

    names = log.position_names[:_MOST_PANELS]
    q = longest(log, log.q)[:, : len(names)]
    velocity = np.diff(q, axis=0) / log.dt
    window = min(len(velocity), max(64, round(_SPECTRUM_SECONDS / log.dt)))
    f, power = welch(velocity, 1.0 / log.dt, nperseg=window, axis=0)
    rows = _thinned(len(f) - 1) + 1
    layout = _layout([f"q_{i + 1} {name}" for i, name in enumerate(names)], "frequency [Hz]")
    data = []
    for i in range(len(names)):
        density = np.maximum(power[rows, i], np.finfo(np.float32).tiny)
        data.append(_line(f[rows], density, i, BLUE, "velocity"))
        layout[f"xaxis{i + 1}"]["type"] = layout[f"yaxis{i + 1}"]["type"] = "log"
    if plan.cutoff is not None:
        layout["shapes"] = [_vertical(plan.cutoff, i) for i in range(len(names))]
    cut = f"; the line marks the cutoff, {plan.cutoff:.3g} Hz" if plan.cutoff is not None else ""
    return figure(
        anchor,
        data,
        layout,
        f"spectra of the velocities of log {log.name}",
        f"Log {log.name}: density of the velocity, (rad/s)^2/Hz or (m/s)^2/Hz{cut}. A rise with the square of"
        " the frequency is position noise.",
    )


def delay_figure(found: Diagnosis) -> Markup | None:
    """How well each delay of the efforts fits, as the distance from the best in standard deviations."""
    tests = [one for one in found.tests if one.test == "delay" and one.ci95 is not None]
    if not tests:
        return None
    data = []
    for i, one in enumerate(tests):
        assert one.ci95 is not None  # noqa: S101 (chosen above)
        sigma = max((one.ci95[1] - one.ci95[0]) / 4.0, 1e-9)
        delays = one.value + sigma * np.linspace(-_SIGMAS, _SIGMAS, 41)
        curve = ((delays - one.value) / sigma) ** 2
        colour = _COLOURS[i % len(_COLOURS)]
        data.append(_line(1e3 * delays, curve, 0, colour, one.about + (" (flagged)" if one.warned else "")))
    layout = {
        "height": 360,
        "xaxis": axis("delay of the effort [ms]; negative: early"),
        "yaxis": axis("increase of the cost [sigma^2]", range=[0.0, 12.0]),
        "shapes": [_vertical(0.0, 0)],
        "legend": {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
    }
    return figure(
        "delays",
        data,
        layout,
        "increase of the residual with the delay of each effort",
        "The minimum of each curve is the delay that explains the residuals best; below 4 is its 95 %"
        " interval.",
    )


def coverage_figure(log: Log, plan: MotionPlan, anchor: str) -> Markup:
    """Positions and velocities that occur, joint by joint."""
    names = log.position_names[:_MOST_PANELS]
    motion = Motion(log, plan)
    pieces = motion.usable()
    total = max(1, sum(b - a for a, b in pieces))
    share = min(1.0, 40.0 * _POINTS / total)
    states = [motion.states(a, a + max(1, int(share * (b - a)))) for a, b in pieces]
    q, dq = (np.concatenate([one[k] for one in states]) for k in (0, 1))
    rows = _thinned(len(q))
    layout = _layout([f"q_{i + 1} {name}" for i, name in enumerate(names)], "position [rad] or [m]")
    data = []
    for i in range(len(names)):
        data.append(
            {
                "type": "scattergl" if len(names) * len(rows) > 60_000 else "scatter",
                "mode": "markers",
                "x": packed(q[rows, i]),
                "y": packed(dq[rows, i]),
                "xaxis": axis_name("x", i),
                "yaxis": axis_name("y", i),
                "marker": {"color": BLUE, "size": 3, "opacity": 0.5},
                "showlegend": False,
                "hoverinfo": "skip",
            }
        )
    return figure(
        anchor,
        data,
        layout,
        f"positions and velocities that occur in log {log.name}",
        f"Log {log.name}: velocity (rad/s or m/s) over position of each joint. Empty regions are not tested.",
    )


def _layout(titles: list[str], below: str) -> dict[str, Any]:
    """Small panels with axes of their own."""
    layout = panels([plot_text(one) for one in titles], 3)
    for i in range(len(titles)):
        one = layout[f"xaxis{i + 1}"]
        one.pop("matches", None)
        one["title"] = {**one["title"], "text": below if i + 3 >= len(titles) else ""}
    return layout


def _line(x: Any, y: Any, panel: int, colour: str, name: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plot_text(name),
        "x": packed(x),
        "y": packed(y),
        "xaxis": axis_name("x", panel),
        "yaxis": axis_name("y", panel),
        "line": {"color": colour, "width": 1.2},
        "showlegend": name != "velocity",
    }


def _vertical(x: float, panel: int) -> dict[str, Any]:
    """A line over the whole height of a panel."""
    return {
        "type": "line",
        "x0": x,
        "x1": x,
        "y0": 0,
        "y1": 1,
        "xref": axis_name("x", panel),
        "yref": f"{axis_name('y', panel)} domain",
        "line": {"color": RED, "width": 1.2, "dash": "dot"},
    }


def _thinned(count: int) -> Any:
    return np.unique(np.linspace(0, max(0, count - 1), min(count, _POINTS)).astype(int))
