"""The tree that pages draw: shapes of the robot, and what is drawn of the logs that are predicted worst.

Efforts split into gravity, inertia, Coriolis and friction, and friction over speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float, Int, spread
from dynid.conditioning.rewritten import predictor
from dynid.display.scene import POSES, drawn_rows, inside, poses_along, robot_shapes, samples_at, states_at
from dynid.fit import Fit
from dynid.kinematics.coordinates import States
from dynid.mechanism.drive_terms import LOADED
from dynid.mechanism.parameters import effort_unit, owners_of, speed_map
from dynid.problem import Problem
from dynid.regressor.layout import tree_regressor
from dynid.statistics.estimate_parts import Signals, worst_signals
from dynid.statistics.friction import friction_columns, friction_curve


def drawing_of(
    fit: Fit, fitted: Sequence[Signals], held: Problem | None = None, unseen: Sequence[Signals] = ()
) -> dict[str, Any]:
    """Shapes of the robot, its worst logs along their motion, and parts of the efforts of others.

    Args:
        fitted: Of the logs of the fit, in the order of its problem.
        held: Logs that were not used.
        unseen: Of these logs, in their order.
    """
    problem = fit.problem
    if not problem.case.is_series:
        return {}
    sensor = bool(problem.mechanism.mounted_model)
    drawing: dict[str, Any] = {"robot": robot_shapes(problem.mechanism, described_ends=True)}
    logs = [_log(fit, problem, fitted[k], k, poses_only=sensor) for k in worst_signals(fitted)]
    pairs = [] if held is None or sensor else [(held, k) for k in worst_signals(unseen)]
    others = [_split(fit, signals_part, unseen[k], k) for signals_part, k in pairs]
    drawing["logs"] = [entry for entry in logs if entry]
    drawing["unseen"] = [entry for entry in others if entry]
    simulated = problem.case.simulated
    return drawing if simulated is None else drawing | simulated.drawn(fit)


def _log(fit: Fit, problem: Problem, signals: Signals, k: int, poses_only: bool = False) -> dict[str, Any]:
    """Poses of the k-th log, and unless `poses_only` parts of efforts and friction; empty: not drawable."""
    sampled = _states(problem, signals, k)
    if sampled is None:
        return {}
    rows, states = sampled
    picked = spread(len(rows), POSES)
    return {
        "log": signals.log,
        "rows": rows,
        "pose_rows": rows[picked],
        **poses_along(problem.mechanism, states.q[picked]),
        "friction": [] if poses_only else friction_curves(fit, states, signals, rows),
        "terms": {} if poses_only else _terms(fit, problem, signals, k, rows, states),
    }


def _split(fit: Fit, problem: Problem, signals: Signals, k: int) -> dict[str, Any]:
    """Parts of the efforts of the k-th log; empty where they are not known."""
    sampled = _states(problem, signals, k)
    terms = {} if sampled is None else _terms(fit, problem, signals, k, *sampled)
    return {"log": signals.log, "rows": sampled[0], "terms": terms} if sampled and terms else {}


def _states(problem: Problem, signals: Signals, k: int) -> tuple[Int[Array, "m"], States] | None:
    """Samples drawn of the k-th log, as places in its signals, and the motion of all joints there."""
    motion = problem.sources[k].motion
    rows = drawn_rows(signals)
    samples = samples_at(motion, signals.t[rows])
    if not len(samples):
        return None
    kept = inside(motion, samples)
    states = states_at(problem, motion, samples[kept])
    return None if states is None else (rows[kept], states)


def _terms(
    fit: Fit, problem: Problem, signals: Signals, k: int, rows: Int[Array, "m"], states: States
) -> dict[str, Any]:
    payloads = problem.sources[k].motion.log.payloads
    terms: dict[str, Any] = effort_terms(problem, fit.chi, states, payloads)
    if terms and "friction" not in terms:
        terms["friction"] = signals.predicted[rows] - sum(terms.values())
    return terms


_CLOUD = 400  # points of a data cloud


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
    loaded = bool(owners_of(problem.mechanism, *LOADED))
    if not problem.model.per_sample or directions.along is not None:
        return {}
    rigid = np.array(
        [parameter.drive_term is None or parameter.drive_term.inertia for parameter in problem.parameters]
    )
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
    values = dict(zip((parameter.name for parameter in problem.parameters), fit.chi.tolist(), strict=True))
    residual = signals.measured[rows] - signals.predicted[rows]
    separate = {
        parameter.name for parameter in fit.parts.parameters
    }  # an offset may act only in a sum with gravity
    curves = []
    resisting: dict[str, list[str]] = {owner: [] for owner in mechanism.drive}
    for parameter in problem.parameters:
        term = parameter.drive_term
        if term is not None and term.curve and parameter.name in separate:
            resisting.setdefault(parameter.owner, []).append(parameter.symbol)
    for owner, symbols in resisting.items():
        if not symbols:
            continue
        speed = states.dq @ speed_map(mechanism, [owner])[0]
        reach = float(np.abs(speed).max(initial=0.0))
        if reach <= 0.0:
            continue
        scale = mechanism.stribeck.get(owner)
        chi = np.array([values[f"{s}_{owner}"] for s in symbols])
        curve: dict[str, Any] = {"owner": owner, "unit": effort_unit(mechanism, owner)}
        terms = [p for p in fit.parts.parameters if p.name in {f"{s}_{owner}" for s in symbols}]
        curve |= friction_curve(symbols, chi, _covariance(fit, owner, symbols), reach, scale, terms)
        row = _row_of(problem, owner)
        if row is not None:
            thinned = np.arange(0, len(speed), max(1, -(-len(speed) // _CLOUD)))
            cloud = friction_columns(symbols, speed, scale) @ chi + residual[:, row]
            curve |= {"at": speed[thinned], "points": cloud[thinned]}
        curves.append(curve)
    return curves


def _covariance(fit: Fit, owner: str, symbols: list[str]) -> Float[Array, "s s"]:
    """Of the terms of one drive; zero where a term has no sigma."""
    known = [parameter.name for parameter in fit.parts.parameters if parameter.sigma is not None]
    names = [f"{symbol}_{owner}" for symbol in symbols]
    at = [k for k, name in enumerate(names) if name in known]
    places = [known.index(names[k]) for k in at]
    C = np.zeros((len(names), len(names)))
    C[np.ix_(at, at)] = fit.parts.covariance[np.ix_(places, places)]
    return C


def _row_of(problem: Problem, owner: str) -> int | None:
    """The equation whose measured effort drives only this owner; None: there is none."""
    if not (problem.model.effort_rows and problem.model.per_sample):
        return None
    for actuator in problem.mechanism.actuators:
        drives = actuator.name == owner or list(actuator.on.items()) == [(owner, 1.0)]
        names = [name for name in (actuator.name, *actuator.on) if name in problem.directions.names]
        if drives and names:
            return problem.directions.names.index(names[0])
    return None
