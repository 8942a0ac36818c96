"""Files of a set of free motions: how to release each, the motions as a log, JSON and a report."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.cases.free_motion.measured_motion import reached
from dynid.common.arrays import Array, Float, spread
from dynid.common.csv_text import csv_line
from dynid.common.versions import version_of
from dynid.display.scene import POSES, poses_along, robot_shapes
from dynid.excitation.files import SCHEMA
from dynid.excitation.optimal.figures import (
    gain_figure,
    spectrum_figure,
    spread_figure,
    use_figure,
)
from dynid.mechanism.frame import angles_of, rotation_of
from dynid.report.json_file import json_text, plain
from dynid.report.numbers import number
from dynid.report.page import scripted_page
from dynid.report.plots import PALETTE, figure, line, packed, panel, points
from dynid.report.robot_view import motion_view

if TYPE_CHECKING:
    from markupsafe import Markup

    from dynid.cases.free_motion.excitation import FreeExcitation
    from dynid.report.plots import Figure

FREE_FILES = ("releases.csv", "motions.csv", "excitation.json", "report.html")
_POINTS = 500


def free_files(excitation: FreeExcitation) -> dict[str, str]:
    """Name -> text."""
    texts = (
        _csv(release_columns(excitation), "%.9g"),
        _csv(motion_columns(excitation), "%.12g"),
        json_text(free_document(excitation)),
        report_page(excitation),
    )
    return dict(zip(FREE_FILES, texts, strict=True))


def release_columns(excitation: FreeExcitation) -> dict[str, Float[Array, "k"]]:
    """One row per motion: locked lengths, equilibrium, displacement of the free coordinates, prediction."""
    releases, motions = excitation.found.releases, excitation.found.motions
    columns = {"motion": np.arange(1, len(releases) + 1, dtype=float)}
    columns |= {f"l0_{i + 1}": x for i, x in enumerate(releases.lengths.T)}
    positions = excitation.releasing.robot.robot.positions
    for label, poses in (("rest", releases.rest), ("start", releases.starts)):
        columns |= _pose_columns(label, positions, poses)
    coordinates = excitation.releasing.robot.robot.coordinates
    columns |= {
        f"displace_{coordinates[i]}": x for i, x in zip(excitation.releasing.free, releases.by.T, strict=True)
    }
    least, most = reached(motions.tensions)
    columns |= {f"frequency_{i + 1}": x for i, x in enumerate(excitation.frequencies.T)}
    columns |= {
        "tension_min": least.min(axis=1),
        "tension_max": most.max(axis=1),
        "limit_use": excitation.found.use,
    }
    return columns


def _pose_columns(
    label: str, positions: tuple[str, ...], q: Float[Array, "k q"]
) -> dict[str, Float[Array, "k"]]:
    """Positions by name, a quaternion as roll, pitch and yaw (R = Rx Ry Rz)."""
    columns: dict[str, Array] = {}
    i = 0
    while i < len(positions):
        name = positions[i]
        if name.endswith("_qw"):
            angles = angles_of(rotation_of(q[:, i : i + 4]), "xyz")
            stem = f"{label}_{name.removesuffix('_qw')}"
            columns |= {f"{stem}_{angle}": angles[:, k] for k, angle in enumerate(("roll", "pitch", "yaw"))}
            i += 4
        else:
            columns[f"{label}_{name}"] = q[:, i]
            i += 1
    return columns


def motion_columns(excitation: FreeExcitation) -> dict[str, Float[Array, "n"]]:
    """All motions one after another in the columns of a log, with the predicted tensions."""
    motions, releases = excitation.found.motions, excitation.found.releases
    n, k, _ = motions.q.shape
    step = float(motions.t[1] - motions.t[0])
    columns = {
        "segment": np.repeat(np.arange(1.0, k + 1.0), n),
        "t": np.concatenate([motions.t + i * (motions.t[-1] + step + 1.0) for i in range(k)]),
    }
    flat = np.swapaxes(motions.q, 0, 1).reshape(n * k, -1)
    short = {name: name.rsplit("_", 1)[-1] for name in excitation.releasing.robot.robot.positions}
    unique = len(set(short.values())) == len(short)
    for i, name in enumerate(excitation.releasing.robot.robot.positions):
        columns[short[name] if unique else name] = flat[:, i]
    columns |= {f"l0_{i + 1}": np.repeat(x, n) for i, x in enumerate(releases.lengths.T)}
    pulls = np.swapaxes(motions.tensions, 0, 1).reshape(n * k, -1)
    columns |= {f"tension_{name}": pulls[:, i] for i, name in enumerate(motions.cables)}
    return columns


def _csv(columns: dict[str, Float[Array, "n"]], style: str) -> str:
    text = io.StringIO()
    table = np.column_stack(list(columns.values()))
    np.savetxt(text, table, fmt=style, delimiter=",", header=csv_line(columns), comments="")
    return text.getvalue()


def free_document(designed: FreeExcitation) -> dict[str, Any]:
    """The content of `excitation.json`."""
    spread = designed.spread
    chosen = designed.found
    least, most = reached(chosen.motions.tensions)
    return {
        "schema": SCHEMA,
        "robot": designed.robot.name,
        "criterion": designed.criterion,
        "criterion_name": designed.settings.criterion,
        "larger_is_better": designed.larger_is_better,
        "seed": designed.settings.seed,
        "spread": plain({"best": spread[0], "median": float(np.median(spread)), "worst": spread[-1]}),
        "starts": [
            plain(
                {
                    "number": trial.number,
                    "value": trial.value,
                    "random": trial.first,
                    "worst": trial.worst,
                    "tried": trial.tried,
                    "diverged": trial.diverged,
                }
            )
            for trial in designed.starts
        ],
        "settings": plain(designed.settings.of_search),
        "free": [designed.releasing.robot.robot.coordinates[i] for i in designed.releasing.free],
        "motions": [
            plain(
                {
                    "lengths": chosen.releases.lengths[k],
                    "rest": chosen.releases.rest[k],
                    "start": chosen.releases.starts[k],
                    "displacement": chosen.releases.by[k],
                    "frequencies": designed.frequencies[k],
                    "tension": [least[k].min(), most[k].max()],
                    "energy_drift": chosen.motions.drift[k],
                }
            )
            for k in range(len(chosen.releases))
        ],
        "limits": [plain(asdict(limit)) for limit in designed.limits],
        "parameters": [
            plain({"name": name, "gain": gain})
            for name, gain in zip(designed.names, designed.gain, strict=True)
        ],
        "singular_values": plain({"before": designed.before, "after": designed.after}),
        "versions": {name: version_of(name) for name in ("dynid", "numpy", "scipy", "numba")},
    }


def free_summary(excitation: FreeExcitation) -> str:
    """The result in a few sentences."""
    spread, drift = excitation.spread, float(excitation.found.motions.drift.max())
    tried, diverged = (
        sum(getattr(trial, name) for trial in excitation.starts) for name in ("tried", "diverged")
    )
    dropped = f" {diverged} of {tried} simulated motions diverged and were discarded." if diverged else ""
    return (
        f"{excitation.settings.criterion} {number(excitation.criterion, 4)}"
        f" with {len(excitation.found.releases)} motions"
        f" (best initial random set: {number(excitation.starts[excitation.best].first, 4)})."
        f" {len(spread)} start(s) reach {number(float(spread[0]), 4)} to {number(float(spread[-1]), 4)}."
        f" The median sigma is {number(float(np.median(excitation.gain)), 3)} times smaller than with"
        f" a random set.{dropped}"
        f" Every motion was simulated over {number(excitation.settings.search.whole, 3)} s"
        f" (energy drift below {number(drift, 2)}) and satisfies the limits, also between samples."
    )


def report_page(excitation: FreeExcitation) -> str:
    """One self-contained page."""
    chosen = excitation.found
    level, headline = free_words()
    limits = [f"{limit.name}: {limit.kind}" for limit in excitation.limits]
    releases = release_columns(excitation)
    return scripted_page(
        "free_excitation.html",
        ("robot.js",),
        found=excitation,
        name=excitation.robot.name,
        warnings=(),
        words=free_summary(excitation),
        level=level,
        headline=headline,
        facts=_facts(excitation),
        spectrum=spectrum_figure(excitation.before, excitation.after, "Singular values of W"),
        gains=gain_figure(excitation.names, excitation.gain, np.ones(len(excitation.gain))),
        uses=use_figure(limits, np.array([limit.margin_percent for limit in excitation.limits])),
        spread=spread_figure(excitation.spread),
        tensions=tension_figure(
            chosen.motions.cables, chosen.motions.tensions, excitation.releasing.limits.tension
        ),
        swings=swing_figure(
            chosen.motions.t, chosen.motions.q, chosen.releases.rest, *_shown_positions(excitation)
        ),
        robot=releases_view(excitation),
        header=list(releases),
        rows=np.column_stack(list(releases.values())).tolist(),
    )


def free_words() -> tuple[str, str]:
    """As `motion_words`: only motions that keep the limits are kept in a set."""
    return "good", "All motions keep their limits"


def _facts(excitation: FreeExcitation) -> list[tuple[str, str, str]]:
    """Label, value and remark of what a reader wants to know before the platform is released."""
    least, most = reached(excitation.found.motions.tensions)
    limits = excitation.releasing.limits.tension
    frequencies = excitation.frequencies
    return [
        (
            "motions",
            str(len(excitation.found.releases)),
            f"{number(excitation.settings.search.whole, 3)} s simulated",
        ),
        (
            "lowest tension",
            f"{number(float(least.min()), 3)} N",
            f"limit {number(float(limits[:, 0].max()), 3)} N",
        ),
        (
            "highest tension",
            f"{number(float(most.max()), 3)} N",
            f"limit {number(float(limits[:, 1].min()), 3)} N",
        ),
        (
            "frequencies of small motions",
            f"{number(float(frequencies.min()), 2)} to {number(float(frequencies.max()), 2)} Hz",
            "",
        ),
    ]


def _shown_positions(excitation: FreeExcitation) -> tuple[list[int], list[str]]:
    """Positions plotted in the report: the free coordinates that are positions, else the first two."""
    robot = excitation.releasing.robot.robot
    names = [
        robot.coordinates[i] for i in excitation.releasing.free if robot.coordinates[i] in robot.positions
    ]
    names = names or list(robot.positions[:2])
    return [robot.positions.index(name) for name in names], names


def tension_figure(
    cables: Sequence[str], pulls: Float[Array, "n k c"], limits: Float[Array, "c 2"]
) -> Figure:
    """Range of the tension of every cable in every motion, with the limits as lines."""
    series = []
    k = pulls.shape[1]
    for i, name in enumerate(cables):
        place = np.arange(1, k + 1) + 0.16 * (i - 0.5 * (len(cables) - 1))
        low, high = pulls[:, :, i].min(axis=0), pulls[:, :, i].max(axis=0)
        ends = np.column_stack([low, high, np.full(k, np.nan)]).ravel()
        series.append(line(name, np.repeat(place, 3), ends, PALETTE[i % len(PALETTE)], width=5))
        tips = [f"{name}: {a:.4g} to {b:.4g} N" for a, b in zip(low, high, strict=True)]
        series.append(points("", place, high, PALETTE[i % len(PALETTE)], size=2, tips=tips, quiet=True))
    bounds = {float(x) for x in limits.ravel() if np.isfinite(x)}
    marks = [{"y": y, "colour": "orange", "solid": True} for y in sorted(bounds)]
    plot = panel(series, "", "motion", "tension [N]", marks=marks, height=300)
    return figure("tensions", [plot], "tensions of all motions", "Tensions; orange: the limits", fixed=True)


def swing_figure(
    t: Float[Array, "n"],
    q: Float[Array, "n k q"],
    rest: Float[Array, "k q"],
    positions: Sequence[int],
    names: Sequence[str],
) -> Figure:
    """Displacement of some positions from equilibrium, one line per motion, one plot per position."""
    rows = spread(len(t), _POINTS)
    panels = []
    for at, name in zip(positions, names, strict=True):
        series = [
            line(f"motion {k + 1}", "t", packed(1e3 * (q[rows, k, at] - rest[k, at])), width=1.0, quiet=True)
            for k in range(q.shape[1])
        ]
        panels.append(panel(series, f"{name} [mm]", "time since release [s]", height=150))
    return figure(
        "swings",
        panels,
        "swings of all motions",
        "Displacement from rest, all motions",
        columns=2,
        link="swings",
        shared={"t": packed(t[rows])},
    )


def releases_view(excitation: FreeExcitation) -> Markup | None:
    """Every free motion from its release, with the tensions of its cables."""
    robot, motions = excitation.releasing.robot.robot, excitation.found.motions
    limits = excitation.releasing.limits.tension
    rows = spread(len(motions.t), POSES)
    bounded = [i for i, bounds in enumerate(limits) if np.isfinite(bounds).all()]
    drawn = []
    for k in range(motions.q.shape[1]):
        pull = motions.tensions[rows, k]
        share = np.abs(2.0 * pull - limits.sum(axis=1)) / np.diff(limits, axis=1)[:, 0]
        drawn.append(
            {
                "log": str(k + 1),
                "t": motions.t[rows],
                **poses_along(robot, motions.q[rows, k]),
                "use": {motions.cables[i]: 100.0 * share[:, i] for i in bounded},
                "extra": [
                    ("lowest tension", "N", pull.min(axis=1)),
                    ("highest tension", "N", pull.max(axis=1)),
                ],
            }
        )
    return motion_view(robot_shapes(robot), drawn, what="free motion")
