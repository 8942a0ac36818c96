"""Efforts split into gravity, inertia, Coriolis and friction, and friction over speed."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.conditioning.rewritten import predictor
from dynid.fit import Fit
from dynid.kinematics.coordinates import States
from dynid.mechanism.parameters import effort_unit, owners_of, speed_map
from dynid.problem import Problem
from dynid.regressor.few_states import drive_column
from dynid.regressor.layout import tree_regressor
from dynid.statistics.signals import Signals

_GRID = 81  # points of a friction curve
_CLOUD = 400  # points of a data cloud
_SPLIT = ("inverse", "power")  # models whose rows are linear in the accelerations of one sample
_RESISTING = ("Fv", "Fs", "Fv+", "Fv-", "Fs+", "Fs-", "Off", "Fr", "Fk")


def effort_terms(
    problem: Problem, chi: Float[Array, "p"], states: States, payloads: tuple[str, ...]
) -> dict[str, Float[Array, "n k"]]:
    """Parts of the predicted efforts (or power) at each sample; empty for models over windows or tables.

    Args:
        chi: Standard parameters, shape (p,), SI.
        states: Motion of all joints.
        payloads: Mounted ones.
    """
    directions = problem.directions
    loaded = bool(owners_of(problem.mechanism, "Fl"))
    if problem.model.key not in _SPLIT or directions.along is not None:
        return {}
    rigid = np.array([one.kind != "drive" or one.symbol == "Ia" for one in problem.parameters])
    body, drive = np.where(rigid, chi, 0.0), np.where(rigid, 0.0, chi)
    still = np.zeros_like(states.dq)
    gravity = _rows(problem, body, states, still, still, payloads)
    inertia = _rows(problem, body, states, still, states.ddq, payloads) - gravity
    coriolis = _rows(problem, body, states, states.dq, states.ddq, payloads) - gravity - inertia
    parts = {"gravity": gravity, "inertia": inertia, "Coriolis": coriolis}
    if not loaded:  # its load is not known here: friction is then the rest of the predicted effort
        parts["friction"] = _rows(problem, drive, states, states.dq, states.ddq, payloads)
    return parts


def _rows(
    problem: Problem,
    chi: Float[Array, "p"],
    states: States,
    dq: Float[Array, "n v"],
    ddq: Float[Array, "n v"],
    payloads: tuple[str, ...],
) -> Float[Array, "n k"]:
    """W chi at these states."""
    directions, n = problem.directions, len(states.q)
    if directions.N is not None:
        tree = tree_regressor(problem.mechanism, problem.parameters, directions.N, payloads)
        packed = np.empty((tree.layout.n_entries, n))
        tree.fill(tree.batch(states.q, dq, ddq, np.zeros((n, len(directions.names)))), 0, packed)
        return np.asarray(predictor(tree.layout, chi)(packed)[1].T)
    from dynid.regressor.moving import MovingRegressor

    assert directions.moving is not None  # noqa: S101 (one of the two)
    moving = MovingRegressor(problem.mechanism, problem.parameters, len(directions.names), payloads)
    packed = np.empty((moving.layout.n_entries, n))
    N = directions.moving(states.N, states.dq)
    batch = moving.batch(states.q, dq, ddq)
    moving.fill(batch, 0, N, np.zeros((n, len(directions.names))), packed)
    return np.asarray(predictor(moving.layout, chi)(packed)[1].T)


def friction_curves(
    fit: Fit, states: States, signals: Signals, rows: Int[Array, "n"]
) -> list[dict[str, Any]]:
    """Friction of every drive over its speed, with a 95 % band, and the measured points.

    A point is the friction of the model at its speed plus the residual of the effort.

    Args:
        states: Motion of all joints at the samples drawn.
        signals: Of the same log.
        rows: Places of these samples in the signals.
    """
    problem, mechanism = fit.problem, fit.problem.mechanism
    values = dict(zip((one.name for one in problem.parameters), fit.chi.tolist(), strict=True))
    residual = signals.measured[rows] - signals.predicted[rows]
    alone = {one.name for one in fit.parts.parameters}  # an offset may act only in a sum with gravity
    curves = []
    for owner in mechanism.drive:
        symbols = [
            s for s in mechanism.drive[owner] if s in _RESISTING and f"{s}_{owner}" in alone & set(values)
        ]
        if not symbols:
            continue
        speed = states.dq @ speed_map(mechanism, [owner])[0]
        reach = float(np.abs(speed).max(initial=0.0))
        if reach <= 0.0:
            continue
        columns = _columns(fit, owner, symbols)
        grid = _grid(reach)
        A, chi = columns(grid), np.array([values[f"{s}_{owner}"] for s in symbols])
        half = _half_width(fit, [f"{s}_{owner}" for s in symbols], A)
        curve: dict[str, Any] = {"owner": owner, "unit": effort_unit(mechanism, owner)}
        curve |= {"terms": symbols, "speed": grid, "effort": A @ chi, "half": half}
        row = _row_of(problem, owner)
        if row is not None:
            some = np.arange(0, len(speed), max(1, -(-len(speed) // _CLOUD)))
            curve |= {"at": speed[some], "points": (columns(speed) @ chi + residual[:, row])[some]}
        curves.append(curve)
    return curves


def _grid(reach: float) -> Float[Array, "g"]:
    """Speeds of a curve, with a break at zero, where dry friction jumps."""
    positive = np.linspace(1e-6 * reach, reach, _GRID // 2)
    return np.concatenate([-positive[::-1], [np.nan], positive])


def _columns(fit: Fit, owner: str, symbols: list[str]) -> Any:
    scale = fit.problem.mechanism.stribeck.get(owner)

    def columns(v: Float[Array, "n"]) -> Float[Array, "n s"]:
        rest = np.zeros_like(v)
        return np.column_stack([drive_column(symbol, v, rest, rest, scale) for symbol in symbols])

    return columns


def _half_width(fit: Fit, names: list[str], A: Float[Array, "n s"]) -> Float[Array, "n"]:
    """Half of the 95 % interval of a curve, from the covariance of the parameters."""
    known = [one.name for one in fit.parts.parameters if one.sigma is not None]
    at = [k for k, name in enumerate(names) if name in known]
    places = [known.index(names[k]) for k in at]
    C = fit.parts.covariance[np.ix_(places, places)]
    some = A[:, at]
    return np.asarray(1.96 * np.sqrt(np.maximum(np.einsum("ns,st,nt->n", some, C, some), 0.0)))


def _row_of(problem: Problem, owner: str) -> int | None:
    """The equation whose measured effort drives only this owner; None: there is none."""
    if problem.model.key != "inverse":
        return None
    for actuator in problem.mechanism.actuators:
        drives = actuator.name == owner or list(actuator.on.items()) == [(owner, 1.0)]
        names = [name for name in (actuator.name, *actuator.on) if name in problem.directions.names]
        if drives and names:
            return problem.directions.names.index(names[0])
    return None
