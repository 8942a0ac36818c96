"""The tree that pages draw: shapes of the robot, and what is drawn of the logs that are predicted worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Int
from dynid.display.samples import drawn_rows, inside, samples_at, states_at
from dynid.display.scene import POSES, poses_along, robot_shapes
from dynid.display.terms import effort_terms, friction_curves
from dynid.fit import Fit
from dynid.kinematics.coordinates import States
from dynid.problem import Problem
from dynid.statistics.signals import Signals, worst_signals


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
    sensor = problem.mechanism.force_sensor is not None
    drawing: dict[str, Any] = {"robot": robot_shapes(problem.mechanism, described_ends=True)}
    logs = [_log(fit, problem, fitted[k], k, alone=sensor) for k in worst_signals(fitted)]
    pairs = [] if held is None or sensor else [(held, k) for k in worst_signals(unseen)]
    others = [_split(fit, one, unseen[k], k) for one, k in pairs]
    drawing["logs"] = [one for one in logs if one]
    drawing["unseen"] = [one for one in others if one]
    return drawing | problem.case.drawn(fit)


def _log(fit: Fit, problem: Problem, signals: Signals, k: int, alone: bool = False) -> dict[str, Any]:
    """Poses of the k-th log, unless `alone` also parts of efforts and friction; empty: cannot be drawn."""
    found = _states(problem, signals, k)
    if found is None:
        return {}
    rows, states = found
    some = np.unique(np.linspace(0, len(rows) - 1, min(POSES, len(rows))).astype(int))
    return {
        "log": signals.log,
        "rows": rows,
        "pose_rows": rows[some],
        **poses_along(problem.mechanism, states.q[some]),
        "friction": [] if alone else friction_curves(fit, states, signals, rows),
        "terms": {} if alone else _terms(fit, problem, signals, k, rows, states),
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
