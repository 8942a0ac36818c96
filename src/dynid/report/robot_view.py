"""Data of the moving robot: shapes, poses, and a share per joint: of the peak effort, or of its limits."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.report.numbers import unit_text
from dynid.report.page import render, script_json
from dynid.report.panels import since_start
from dynid.report.plots import packed
from dynid.statistics.estimate import Estimate
from dynid.statistics.estimate_parts import Signals, percent_of_peak

if TYPE_CHECKING:
    from markupsafe import Markup

_FULL = 10.0  # percent of the peak effort that are drawn in red
_BEYOND = 200.0  # percent of a limit that are drawn in red: 100 % is half way, amber
_THICK = 0.02  # radius of a link relative to the size of the robot
_DIGITS = 5


def robot_view(estimate: Estimate) -> Markup | None:
    """The canvas with its data; None where the robot or its motion is not known."""
    drawing = estimate.drawing
    drawn = [entry for entry in drawing.get("logs", ()) if len(entry["pose_rows"]) > 1]
    if not drawn or not drawing["robot"]["bodies"]:
        return None
    by_name = {signal.log: signal for signal in estimate.signals if not signal.validation}
    names = _efforts(by_name[drawn[0]["log"]])[0]
    scene = _scene(drawing["robot"], names, np.concatenate([entry["p"].reshape(-1, 3) for entry in drawn]))
    modes = drawing.get("swings", {}).get("modes", [])
    scene |= {
        "ellipsoids": _ellipsoids(drawing["robot"]["bodies"], estimate.bodies),
        "logs": [
            *(_log(entry, by_name[entry["log"]]) for entry in drawn),
            *(_planned(entry, names, {}) for entry in modes),
        ],
    }
    return _canvas(scene, [str(entry["log"]) for entry in (*drawn, *modes)])


def motion_view(
    robot: Mapping[str, Any],
    drawn: Sequence[Mapping[str, Any]],
    *,
    what: str = "log",
    floor: float | None = None,
    assumed: bool = False,
) -> Markup | None:
    """The canvas of a motion alone, before anything is identified; None where the robot has no bodies.

    Args:
        robot: Of `robot_shapes`.
        drawn: Of each motion its name `log`, times `t` (n,) in [s], and the poses of `poses_along`. Optional:
            `use`, in percent of the tightest limit by name of a joint or cable, each (n,); `extra`, numbers
            shown beside the picture as (name, unit, values); `phases`, as (name, end in [s]); `near`, the
            smallest distances as (bodies of each pair, pair at each sample, distance in [m]); a single body
            is near the floor.
        what: Kind of the motions, for the caption.
        floor: Height of the floor above the origin of the base frame, against gravity, in [m]; None: unknown.
        assumed: Whether the height was not given.
    """
    if not robot["bodies"]:
        return None
    places = np.concatenate([entry["p"].reshape(-1, 3) for entry in drawn])
    names = tuple(dict.fromkeys(name for entry in drawn for name in entry.get("use", {})))
    index = {name: i for i, name in enumerate(robot["bodies"])}
    scene = _scene(robot, names, places) | {
        "ellipsoids": [],
        "logs": [_planned(entry, names, index) for entry in drawn],
        "full": _BEYOND,
        "words": ["tightest limit now: ", " % used"],
        "floor": floor,
        "assumed": assumed,
    }
    return _canvas(scene, [str(entry["log"]) for entry in drawn], what)


def _planned(motion: Mapping[str, Any], names: tuple[str, ...], index: Mapping[str, int]) -> dict[str, Any]:
    none = np.full(len(motion["t"]), np.nan)
    return {
        "name": str(motion["log"]),
        "n": len(motion["t"]),
        "t": packed(motion["t"]),
        "p": packed(motion["p"].reshape(-1)),
        "R": packed(motion["R"].reshape(-1)),
        "share": [packed(motion.get("use", {}).get(name, none)) for name in names],
        "extra": [
            {"name": name, "unit": unit, "v": packed(values)}
            for name, unit, values in motion.get("extra", ())
        ],
        "phases": [list(phase) for phase in motion.get("phases", ())],
        "near": [
            {
                "bodies": [[index.get(name, -1) for name in pair] for pair in pairs],
                "names": [" and ".join(pair if len(pair) > 1 else (*pair, "the floor")) for pair in pairs],
                "which": closest.tolist(),
                "v": packed(distance),
            }
            for pairs, closest, distance in motion.get("near", ())
        ],
    }


def _scene(robot: Mapping[str, Any], names: tuple[str, ...], places: Float[Array, "n 3"]) -> dict[str, Any]:
    """Shapes with the efforts that colour them; `places` are origins of bodies, base frame, in [m]."""
    return {
        "bodies": robot["bodies"],
        "links": _rounded(robot["links"]),
        "capsules": _rounded(robot["capsules"]),
        "rods": _rounded(robot["rods"]),
        "cables": [_with_effort(cable, names, [cable["name"]]) for cable in _rounded(robot["cables"])],
        "joints": [
            {key: joint[key] for key in ("name", "body", "at", "axis", "slides")}
            | {"driven": bool(joint["efforts"])}
            | _with_effort({}, names, [*joint["efforts"], *joint["coordinates"]])
            for joint in _rounded(robot["joints"])
        ],
        "thick": _THICK * float(np.linalg.norm(np.ptp(places, axis=0))),
        "tip": robot["tip"],
        "tip_at": [0.0, 0.0, 0.0],
        "up": _rounded(robot["up"]),
        "full": _FULL,
        "words": ["largest residual now, noise included: ", " % of its peak"],
        "floor": None,
        "assumed": False,
    }


_DATA = re.compile(r'<script type="application/json" id="robot-data">(.*?)</script>', re.DOTALL)


def drawn_on(page: str) -> dict[str, Any] | None:
    """The scene that a page draws, for another drawing of the same; None where it draws no robot."""
    found = _DATA.search(page)
    return None if found is None else json.loads(found[1])


def _canvas(scene: Mapping[str, Any], logs: Sequence[str], what: str = "log") -> Markup:
    coloured = any(part["effort"] >= 0 for part in [*scene["joints"], *scene["cables"]])
    return render(
        "robot.html",
        scene=script_json(scene),
        logs=list(logs),
        what=what,
        masses=bool(scene["ellipsoids"]),
        coloured=coloured,
        full=_FULL,
        planned=scene["full"] == _BEYOND,
        near=any(entry["near"] for entry in scene["logs"]),
        still=all(entry["n"] < 2 for entry in scene["logs"]),
        cables=bool(scene["cables"]),
    )


def _with_effort(entry: Mapping[str, Any], names: tuple[str, ...], wanted: list[str]) -> dict[str, Any]:
    places = [names.index(name) for name in wanted if name in names]
    return {**entry, "effort": places[0] if places else -1}


def _rounded(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_rounded(item) for item in tree]
    if isinstance(tree, dict):
        return {key: _rounded(value) for key, value in tree.items()}
    return round(float(tree), _DIGITS) if isinstance(tree, float | np.floating) else tree


def _ellipsoids(names: Sequence[str], bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    index = {name: i for i, name in enumerate(names)}
    return [
        _rounded({"body": index[row["name"]], "c": row["centre"], "axes": row["axes"], "half": row["half"]})
        for row in bodies
        if "half" in row and row["name"] in index
    ]


def _log(drawn: Mapping[str, Any], signals: Signals) -> dict[str, Any]:
    rows = drawn["pose_rows"]
    _, measured, predicted = _efforts(signals)
    residual = percent_of_peak(np.abs(measured - predicted)[rows], measured)
    return {
        "name": str(drawn["log"]),
        "n": len(rows),
        "t": packed(since_start(signals.t)[rows]),
        "p": packed(drawn["p"].reshape(-1)),
        "R": packed(drawn["R"].reshape(-1)),
        "share": [packed(column) for column in residual.T],
        "extra": _tension(signals, rows),
        "phases": [],
        "near": [],
    }


def _efforts(signals: Signals) -> tuple[tuple[str, ...], Float[Array, "n k"], Float[Array, "n k"]]:
    """Names, measured and predicted values of the equations; of redundant robots those of the motors."""
    motors = signals.tension
    if motors is None:
        return signals.names, signals.measured, signals.predicted
    return motors.names, motors.measured, motors.rebuilt


def _tension(signals: Signals, rows: Int[Array, "n"]) -> list[dict[str, Any]]:
    """Internal tension of a redundant robot; of many directions its norm."""
    if signals.tension is None:
        return []
    c: Float[Array, "n z"] = signals.tension.c[rows]
    name = "internal tension" if c.shape[1] == 1 else "internal tension, norm"
    value = c[:, 0] if c.shape[1] == 1 else np.linalg.norm(c, axis=1)
    return [{"name": name, "unit": unit_text(signals.tension.units[0]), "v": packed(value)}]
