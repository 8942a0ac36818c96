"""Figures of an exciting motion: spectrum, gains, limits, starts, and paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float, spread
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.mechanism import Mechanism
from dynid.report.plots import PALETTE, bars, figure, line, packed, panel

if TYPE_CHECKING:
    from dynid.report.plots import Figure

_POINTS = 800


def spectrum_figure(
    before: Float[Array, "b"], after: Float[Array, "b"], caption: str = "Singular values, unit columns"
) -> Figure:
    """Singular values of the rows."""
    series = [
        line(name, np.arange(1.0, len(values) + 1), np.maximum(values, 1e-16), colour, dots=True)
        for name, values, colour in (("before", before, "grey"), ("after", after, "blue"))
    ]
    plot = panel(series, "", "number", {"title": "singular value", "log": True}, height=280)
    return figure("spectrum", [plot], "singular values before and after", caption)


def gain_figure(names: Sequence[str], before: Float[Array, "b"], after: Float[Array, "b"]) -> Figure:
    """Improvement factor of every parameter, largest first."""
    gain = before / after
    gain = np.where(np.isfinite(gain), gain, np.nanmax(np.where(np.isfinite(gain), gain, 1.0)))
    order = np.argsort(-gain)
    x = {"title": "sigma before / sigma after", "log": True}
    plot = panel(
        [bars("", gain[order].tolist(), "blue", flat=True)], "", x, {"names": [names[i] for i in order]}
    )
    return figure("gains", [plot], "gain of every parameter", "Improvement of each parameter", fixed=True)


def use_figure(names: Sequence[str], left: Float[Array, "l"]) -> Figure:
    """Use of every limit."""
    order = np.argsort(left)
    colours = ["orange" if left[i] < 5.0 else "green" for i in order]
    x = {"title": "use of the limit [%]", "range": [0, 105]}
    plot = panel(
        [bars("", (100.0 - left[order]).tolist(), flat=True, colours=colours)],
        "",
        x,
        {"names": [names[i] for i in order]},
    )
    caption = "Use of the limits; orange: margin below 5 %"
    return figure("uses", [plot], "use of every limit", caption, fixed=True)


def spread_figure(values: Float[Array, "s"], first: Float[Array, "s"] | None = None) -> Figure:
    """Values of all starts, sorted; with those after the first descent, if only the best were searched."""
    order = np.argsort(values if first is None else first)
    place = np.arange(1.0, len(values) + 1)
    series = [line("after the search", place, values[order], "blue", dots=True)]
    if first is not None:
        series.append(line("after the first descent", place, first[order], "grey", dots=True))
    plot = panel(series, "", "start, sorted", "criterion", height=230)
    return figure("spread", [plot], "criterion of all starts", "Spread over the starts")


def joint_figure(
    names: Sequence[str],
    t: Float[Array, "n"],
    rates: Sequence[Float[Array, "n m"]],
    unit: str,
    efforts: tuple[Sequence[str], Float[Array, "n a"]] | None = None,
    effort_unit: str = "N m or N",
) -> Figure:
    """Positions, velocities and accelerations of the measured joints, and efforts, one plot each.

    Args:
        unit, effort_unit: Of positions and efforts, as shown.
        efforts: Names of the motors, and their efforts predicted by the prior model.
    """
    rows = spread(len(t), _POINTS)
    units = unit.split(" or ")
    titles = [
        f"{quantity} [{' or '.join(symbol + per for symbol in units)}]"
        for quantity, per in (("position", ""), ("velocity", "/s"), ("acceleration", "/s²"))
    ]
    signals = [(names, signal) for signal in rates]
    if efforts is not None:
        titles.append(f"effort [{effort_unit}]")
        signals.append(efforts)
    panels = []
    for title, (owners, signal) in zip(titles, signals, strict=True):
        series = []
        for j, name in enumerate(owners):
            at = names.index(name) if name in names else j
            series.append(line(name, "t", packed(signal[rows, j]), PALETTE[at % len(PALETTE)]))
        panels.append(panel(series, title, "time [s]"))
    caption = "Measured joints" + ("" if efforts is None else ", and efforts of the prior model")
    shared = {"t": packed(t[rows])}
    label = "motion of the measured joints"
    return figure("joints", panels, label, caption, columns=2, link="joints", shared=shared)


def path_figure(body: str, p: Float[Array, "n 3"]) -> Figure:
    """Path of the origin of a body, seen along the three axes."""
    rows = spread(len(p), _POINTS)
    panels = [
        panel(
            [line(f"{'xyz'[b]} over {'xyz'[a]}", p[rows, a], p[rows, b], "blue", quiet=True)],
            "",
            f"{'xyz'[a]} [m]",
            f"{'xyz'[b]} [m]",
            height=260,
        )
        for a, b in ((0, 1), (0, 2), (1, 2))
    ]
    return figure("path", panels, f"path of {body}", f"Path of body {body}, base frame", columns=3)


def body_path(mechanism: Mechanism, q: Float[Array, "n q"], body: str) -> Float[Array, "n 3"]:
    """Origin of a body along a motion, base frame, in [m]."""
    tree = tree_of(mechanism)
    still = np.zeros((len(q), tree.n_v))
    return np.asarray(body_motion(tree, q, still, still).p[:, tree.body_names.index(body)])
