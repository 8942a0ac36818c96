"""Pictures of the documentation: `python -m tools.pictures` writes them into `docs/images`.

Plots are those of results (`Estimate.plot`), diagrams are boxes with arrows from left to right.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

from dynid import Estimate, built_in_experiment, identify
from dynid.report.panels import memory_figure
from dynid.report.plots import Figure, bars, figure, line, panel

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
Column = Sequence[tuple[str, str]]  # boxes from top to bottom: heading, and lines separated by |
_WIDE, _GAP, _LINE = 210, 46, 18  # of a box, between columns, per line of text, in pixels

DIAGRAMS: dict[str, tuple[str, Sequence[Column]]] = {
    "commands": (
        "Commands in the order of an experiment",
        (
            (
                ("describe", "info: base parameters|robots: built-in ones"),
                ("plan", "excite: a motion to run|simulate, rehearse: try it"),
            ),
            (
                ("record", "check: is the log good?"),
                ("identify", "identify, campaign|studio: the same on a page"),
            ),
            (
                ("judge", "validate: other logs|compare: several results|verify: inputs unchanged"),
                ("use", "predict: efforts|export: URDF, MJCF, C, ..."),
            ),
        ),
    ),
    "experiment_file": (
        "Keys of an experiment file and the stage that reads them",
        (
            (("robot and logs", "robot, model, logs|columns, payloads"),),
            (("samples", "filter, mask|efforts, angles"),),
            (("equations", "ties, keep, essential|energy, internal, wrench"),),
            (("solution", "estimator, uncertainty|unknown, pd"), ("judgement", "validate, purpose|gate")),
        ),
    ),
    "logs": (
        "From a file to the samples of a fit",
        (
            (("file", "CSV, Parquet, HDF5|MATLAB, NumPy, bags"),),
            (("columns", "names, units, scale|t, q_1.., tau_1.."),),
            (("checks", "clock, gaps, jumps|signs, saturation"),),
            (("motion", "low-pass, derivatives|mask at reversals"),),
        ),
    ),
    "results": (
        "Files of a result, and who reads them",
        (
            (("dynid identify", "writes one folder"),),
            (
                ("result.json", "all numbers"),
                ("parameters.csv", "one row per parameter"),
                ("signals.csv", "measured, predicted"),
                ("report.html", "for people"),
            ),
            (
                ("validate, predict", "export, compare, verify"),
                ("spreadsheets", ""),
                ("plots of your own", ""),
            ),
        ),
    ),
    "robot_file": (
        "Parts of a robot file",
        (
            (("joints", "the tree, parents first|mdh, or xyz and rpy"), ("loops, cables", "close the tree")),
            (("measured", "q_1, q_2, .. of the log"), ("actuators", "tau_1, tau_2, .. of the log")),
            (("drive", "Ia, Fv, Fs, Off, ..|of each motor or joint"), ("bodies", "known and prior values")),
            (("parameters", "standard, then base"),),
        ),
    ),
    "description": (
        "What a description may leave open, and what becomes of it",
        (
            (("description", "lengths, zeros, gravity"),),
            (
                ("nothing known", "effect of 1 mm, 1 mrad|listed in the report"),
                ("sigma: known", "its effect is part of|every sigma and interval"),
                ("unknown:", "found together with|the parameters"),
            ),
            (("parameters", "with honest intervals"), ("robot.corrected.yaml", "where it was found")),
        ),
    ),
}


def diagram(title: str, columns: Sequence[Column]) -> str:
    """Boxes in columns, with an arrow from each column to the next."""
    heights = [[30 + _LINE * len([t for t in body.split("|") if t]) for _, body in one] for one in columns]
    total = max(sum(one) + 20 * (len(one) - 1) for one in heights)
    width = len(columns) * (_WIDE + _GAP) - _GAP + 20
    parts = []
    for k, (column, own) in enumerate(zip(columns, heights, strict=True)):
        x, y = 10 + k * (_WIDE + _GAP), 10 + (total - sum(own) - 20 * (len(own) - 1)) / 2
        if k:
            at, end = 10 + total / 2, x - 6
            parts.append(f'<path d="M{x - _GAP + 6} {at}H{end - 6}" stroke="#37474f" stroke-width="1.6"/>')
            parts.append(f'<path d="M{end} {at}l-9 -4.5v9z" fill="#37474f"/>')
        for (head, body), height in zip(column, own, strict=True):
            box = f'x="{x}" y="{y}" width="{_WIDE}" height="{height}" rx="6"'
            parts.append(f'<rect {box} fill="#e3f2fd" stroke="#37474f"/>')
            for i, text in enumerate([head, *(t for t in body.split("|") if t)]):
                bold = ' font-weight="bold"' if not i else ""
                place = f'x="{x + _WIDE / 2}" y="{y + 20 + _LINE * i}" text-anchor="middle"'
                parts.append(f"<text {place}{bold}>{escape(text)}</text>")
            y += height + 20
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total + 20:.0f}" width="{width}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#102027" role="img" '
        f'aria-label="{escape(title)}"><rect width="100%" height="100%" fill="#ffffff"/>'
    )
    return head + "\n".join(parts) + "</svg>\n"


def coverage() -> Figure:
    """Measured coverage of intervals, as the page on descriptions reports it."""
    names = ["description taken as exact", "sigma: in the robot file", "unknown: in the experiment"]
    series = bars("true values inside", [58.0, 92.0, 94.0], flat=True, colours=["red", "green", "green"])
    axis = {"title": "true values inside their 95 % interval [%]", "range": [0.0, 105.0]}
    one = panel([series], "", axis, {"names": names}, row=26)
    return figure("coverage", [one], "coverage of 95 percent intervals", "")


def motion() -> Figure:
    """One joint of an exciting trajectory: from rest, a period of a Fourier series, back to rest."""
    t = np.linspace(0.0, 10.0, 500)
    wave = sum(np.sin(0.8 * np.pi * k * (t - 1.0) + k**2) / k for k in (1, 2, 3, 4))
    rise = np.clip(np.minimum(t, 10.0 - t) / 1.5, 0.0, 1.0)
    q = 0.55 * wave * rise**3 * (10.0 - 15.0 * rise + 6.0 * rise**2)
    dq = np.gradient(q, t)
    marks = {"marks": [{"x": 1.5, "colour": "grey"}, {"x": 8.5, "colour": "grey"}]}
    limits = [{"y": sign * 1.2, "colour": "red"} for sign in (-1.0, 1.0)]
    panels = [
        panel([line("q", t, q)], "position [rad], limits in red", "time [s]", {"range": [-1.4, 1.4]})
        | {"marks": [*marks["marks"], *limits]},
        panel([line("dq", t, dq, "orange")], "speed [rad/s]", "time [s]", **marks),
    ]
    return figure("motion", panels, "an exciting trajectory of one joint", "", columns=2)


def plots(estimate: Estimate) -> dict[str, Figure]:
    """Pictures of one result."""
    made = {"friction": estimate.plot.friction(), "parameters": estimate.plot.parameters()}
    memory = memory_figure(estimate.signals[0], "memory", {})
    if memory is not None:
        made["residuals"] = memory
    return made


def main() -> None:
    """Write all pictures."""
    for name, (title, columns) in DIAGRAMS.items():
        (IMAGES / f"{name}.svg").write_text(diagram(title, columns), encoding="utf-8")
    demo = built_in_experiment("scara")
    estimate = identify(demo.mechanism, demo.logs, validate=[demo.validation])
    for name, one in {"coverage": coverage(), "excite": motion(), **plots(estimate)}.items():
        one.save(IMAGES / f"{name}.svg")


if __name__ == "__main__":
    main()
