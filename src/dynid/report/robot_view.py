"""Data of the moving robot: shapes, poses along logs, and the residual of every effort in % of its peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.report.numbers import unit_text
from dynid.report.page import render, script_json
from dynid.report.plots import packed
from dynid.statistics.estimate import Estimate
from dynid.statistics.signals import Signals

if TYPE_CHECKING:
    from markupsafe import Markup

_FULL = 10.0  # percent of the peak effort that are drawn in red
_THICK = 0.02  # radius of a link relative to the size of the robot
_DIGITS = 5


def robot_view(estimate: Estimate) -> Markup | None:
    """The canvas with its data; None where the robot or its motion is not known."""
    drawing = estimate.drawing
    drawn = [one for one in drawing.get("logs", ()) if len(one["pose_rows"]) > 1]
    if not drawn or not drawing["robot"]["bodies"]:
        return None
    by_name = {one.log: one for one in estimate.signals if not one.validation}
    names = _efforts(by_name[drawn[0]["log"]])[0]
    scene = _scene(drawing["robot"], names, np.concatenate([one["p"].reshape(-1, 3) for one in drawn]))
    scene |= {
        "ellipsoids": _ellipsoids(drawing),
        "logs": [_log(one, by_name[one["log"]]) for one in drawn],
    }
    return _canvas(scene, [one["log"] for one in drawn])


def motion_view(robot: Mapping[str, Any], drawn: Sequence[Mapping[str, Any]]) -> Markup | None:
    """The canvas of a motion alone, before anything is identified; None where the robot has no bodies.

    Args:
        robot: Of `robot_shapes`.
        drawn: Of each log its name `log`, times `t` (n,) in [s], and the poses of `poses_along`.
    """
    if not robot["bodies"]:
        return None
    places = np.concatenate([one["p"].reshape(-1, 3) for one in drawn])
    empty: dict[str, Any] = {"residual": [], "extra": []}
    scene = _scene(robot, (), places) | {
        "ellipsoids": [],
        "logs": [
            {"n": len(one["t"]), "t": packed(one["t"]), "p": packed(one["p"].reshape(-1))}
            | {"R": packed(one["R"].reshape(-1)), **empty}
            for one in drawn
        ],
    }
    return _canvas(scene, [str(one["log"]) for one in drawn])


def _scene(robot: Mapping[str, Any], names: tuple[str, ...], places: Float[Array, "n 3"]) -> dict[str, Any]:
    """Shapes with the efforts that colour them; `places` are origins of bodies, base frame, in [m]."""
    return {
        "bodies": robot["bodies"],
        "links": _rounded(robot["links"]),
        "capsules": _rounded(robot["capsules"]),
        "rods": _rounded(robot["rods"]),
        "cables": [_with_effort(one, names, [one["name"]]) for one in _rounded(robot["cables"])],
        "joints": [
            {"name": one["name"], "body": one["body"], "at": one["at"]}
            | _with_effort({}, names, [*one["efforts"], *one["coordinates"]])
            for one in _rounded(robot["joints"])
        ],
        "thick": _THICK * float(np.linalg.norm(np.ptp(places, axis=0))),
        "tip": robot["tip"],
        "tip_at": [0.0, 0.0, 0.0],
        "full": _FULL,
    }


def _canvas(scene: Mapping[str, Any], logs: Sequence[str]) -> Markup:
    coloured = any(one["effort"] >= 0 for one in [*scene["joints"], *scene["cables"]])
    return render(
        "robot.html",
        scene=script_json(scene),
        logs=list(logs),
        masses=bool(scene["ellipsoids"]),
        coloured=coloured,
        full=_FULL,
        cables=bool(scene["cables"]),
    )


def _with_effort(entry: Mapping[str, Any], names: tuple[str, ...], own: list[str]) -> dict[str, Any]:
    found = [names.index(name) for name in own if name in names]
    return {**entry, "effort": found[0] if found else -1}


def _rounded(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_rounded(one) for one in tree]
    if isinstance(tree, dict):
        return {key: _rounded(one) for key, one in tree.items()}
    return round(float(tree), _DIGITS) if isinstance(tree, float | np.floating) else tree


def _ellipsoids(drawing: Mapping[str, Any]) -> list[dict[str, Any]]:
    index = {name: i for i, name in enumerate(drawing["robot"]["bodies"])}
    return [
        _rounded({"body": index[one["name"]], "c": one["centre"], "axes": one["axes"], "half": one["half"]})
        for one in drawing["bodies"]
        if "half" in one and one["name"] in index
    ]


def _log(drawn: Mapping[str, Any], signals: Signals) -> dict[str, Any]:
    rows = drawn["pose_rows"]
    _, measured, predicted = _efforts(signals)
    peak = np.nanmax(np.abs(measured), axis=0, initial=np.finfo(float).tiny)
    residual = 100.0 * np.abs(measured - predicted)[rows] / peak
    return {
        "n": len(rows),
        "t": packed(signals.t[rows]),
        "p": packed(drawn["p"].reshape(-1)),
        "R": packed(drawn["R"].reshape(-1)),
        "residual": [packed(column) for column in residual.T],
        "extra": _tension(signals, rows),
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
