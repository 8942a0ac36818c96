"""Figures of an exciting motion: spectrum, gains, limits, starts, paths and an animation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.display.scene import tip_of
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.cable import cable_coordinates
from dynid.mechanism.mechanism import BASE, Body, Mechanism
from dynid.report.plots import PALETTE, bars, figure, line, packed, panel

if TYPE_CHECKING:
    from dynid.report.plots import Figure

_FRAMES = 160
_POINTS = 800


def spectrum_figure(
    before: Float[Array, "b"], after: Float[Array, "b"], caption: str = "Singular values, unit columns"
) -> Figure:
    """Singular values of the rows."""
    series = [
        line(name, np.arange(1.0, len(values) + 1), np.maximum(values, 1e-16), colour, dots=True)
        for name, values, colour in (("before", before, "grey"), ("after", after, "blue"))
    ]
    one = panel(series, "", "number", {"title": "singular value", "log": True}, height=280)
    return figure("spectrum", [one], "singular values before and after", caption)


def gain_figure(names: Sequence[str], before: Float[Array, "b"], after: Float[Array, "b"]) -> Figure:
    """Improvement factor of every parameter, largest first."""
    gain = before / after
    gain = np.where(np.isfinite(gain), gain, np.nanmax(np.where(np.isfinite(gain), gain, 1.0)))
    order = np.argsort(-gain)
    x = {"title": "sigma before / sigma after", "log": True}
    one = panel(
        [bars("", gain[order].tolist(), "blue", flat=True)], "", x, {"names": [names[i] for i in order]}
    )
    return figure("gains", [one], "gain of every parameter", "Improvement of each parameter", fixed=True)


def use_figure(names: Sequence[str], left: Float[Array, "l"]) -> Figure:
    """Use of every limit."""
    order = np.argsort(left)
    colours = ["orange" if left[i] < 5.0 else "green" for i in order]
    x = {"title": "use of the limit [%]", "range": [0, 105]}
    one = panel(
        [bars("", (100.0 - left[order]).tolist(), flat=True, colours=colours)],
        "",
        x,
        {"names": [names[i] for i in order]},
    )
    caption = "Use of the limits; orange: margin below 5 %"
    return figure("uses", [one], "use of every limit", caption, fixed=True)


def spread_figure(values: Float[Array, "s"]) -> Figure:
    """Values of all starts, sorted."""
    series = [line("start", np.arange(1.0, len(values) + 1), np.sort(values), "blue", dots=True)]
    one = panel(series, "", "start, sorted", "criterion", height=230)
    return figure("spread", [one], "criterion of all starts", "Spread over the starts")


def joint_figure(
    names: Sequence[str],
    t: Float[Array, "n"],
    rates: Sequence[Float[Array, "n m"]],
    unit: str,
    efforts: tuple[Sequence[str], Float[Array, "n a"]] | None = None,
) -> Figure:
    """Positions, velocities and accelerations of the measured joints, and efforts, one plot each.

    Args:
        unit: Of the positions, as shown.
        efforts: Names of the motors, and their efforts predicted by the prior model.
    """
    rows = np.linspace(0, len(t) - 1, min(_POINTS, len(t))).astype(int)
    units = unit.split(" or ")
    titles = [
        f"{what} [{' or '.join(one + per for one in units)}]"
        for what, per in (("position", ""), ("velocity", "/s"), ("acceleration", "/s²"))
    ]
    signals = [(names, signal) for signal in rates]
    if efforts is not None:
        titles.append("effort [N m or N]")
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
    rows = np.linspace(0, len(p) - 1, min(_POINTS, len(p))).astype(int)
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


def animation_of(
    mechanism: Mechanism, q: Float[Array, "n q"], period: float, frames_shown: int = _FRAMES, runs: int = 1
) -> dict[str, Any]:
    """Points of the bodies in some frames, and which of them are connected.

    Args:
        runs: Number of consecutive motions of equal length: their paths are not connected.
    """
    rows = np.linspace(0, len(q) - 1, min(frames_shown, len(q))).astype(int)
    tree, poses = tree_of(mechanism), q[rows]
    still = np.zeros((len(poses), tree.n_v))
    motion = body_motion(tree, poses, still, still)
    index = {name: i + 1 for i, name in enumerate(tree.body_names)} | {BASE: 0}
    massless = {joint.child for joint in mechanism.joints if joint.name in cable_coordinates(mechanism)}
    points = [
        np.zeros((len(poses), 3)),
        *(motion.p[:, i] * (name not in massless) for i, name in enumerate(tree.body_names)),
    ]
    edges: list[list[int]] = []
    ground: list[list[int]] = []

    def point(body: str, place: Float[Array, "3"]) -> int:
        """A point of a body, connected to its frame."""
        i = index[body] - 1
        points.append(np.tile(place, (len(poses), 1)) if i < 0 else motion.p[:, i] + motion.R[:, i] @ place)
        (ground if i < 0 else edges).append([index[body], len(points) - 1])
        return len(points) - 1

    for joint in mechanism.joints:
        if joint.kind != "free" and joint.child not in massless:
            begin = point(BASE, joint.placement.p) if joint.parent == BASE else index[joint.parent]
            edges.append([begin, index[joint.child]])
    for loop in mechanism.loops:
        point(loop.body_a, loop.a.p)
        point(loop.body_b, loop.b.p)
    for cable in mechanism.cables:
        edges.append([point(cable.body_from, cable.D), point(cable.body_to, cable.A)])
    for body, capsules in mechanism.capsules.items():
        for one in capsules:
            (ground if body == BASE else edges).append([point(body, one.start), point(body, one.end)])
    for body in _bare(mechanism):
        point(body, 2.0 * _centre(mechanism.bodies[body]))
    frames = np.round(np.stack(points, axis=1), 4)
    return {
        "period": period,
        "frames": frames.tolist(),
        "edges": edges,
        "ground": ground,
        "run": -(-len(poses) // runs),
        "tip": index[tip_of(mechanism)],
    }


def _bare(mechanism: Mechanism) -> list[str]:
    """Bodies of which only the frame is known, if they have a centre of mass."""
    joined = {joint.parent for joint in mechanism.joints} | set(mechanism.capsules)
    joined |= {body for loop in mechanism.loops for body in (loop.body_a, loop.body_b)}
    joined |= {body for cable in mechanism.cables for body in (cable.body_from, cable.body_to)}
    return [name for name, body in mechanism.bodies.items() if name not in joined and _centre(body).any()]


def _centre(body: Body) -> Float[Array, "3"]:
    """Centre of mass of the description, body frame, in [m]; zero if unknown."""
    values = {**body.prior, **body.known}
    mass = float(values.get("M", 0.0))
    return (
        np.array([values.get(name, 0.0) for name in ("MX", "MY", "MZ")]) / mass if mass > 0 else np.zeros(3)
    )


def body_path(mechanism: Mechanism, q: Float[Array, "n q"], body: str) -> Float[Array, "n 3"]:
    """Origin of a body along a motion, base frame, in [m]."""
    tree = tree_of(mechanism)
    still = np.zeros((len(q), tree.n_v))
    return np.asarray(body_motion(tree, q, still, still).p[:, tree.body_names.index(body)])
