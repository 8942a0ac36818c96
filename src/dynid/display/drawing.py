"""The tree that pages draw: shapes of the robot, and what is drawn of the logs that are predicted worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynid.display.bodies import drawn_bodies
from dynid.display.samples import drawn_rows, inside, samples_at, states_at
from dynid.display.scene import poses_along, robot_shapes
from dynid.display.terms import effort_terms, friction_curves
from dynid.fit import Fit
from dynid.problem import Problem
from dynid.statistics.signals import Signals, worst_signals

POSES = 200  # of the animation


def drawing_of(fit: Fit, signals: Sequence[Signals]) -> dict[str, Any]:
    """Shapes and bodies of the robot, and the worst log of the fit along its motion.

    Args:
        signals: Of all logs, those of the fit first, in the order of the problem.
    """
    problem = fit.problem
    if not problem.case.is_series or problem.mechanism.force_sensor is not None:
        return {}
    bodies = drawn_bodies(fit)
    drawing: dict[str, Any] = {"robot": robot_shapes(problem.mechanism, bodies), "bodies": bodies}
    fitted = [one for one in signals if not one.validation]
    shown = worst_signals(fitted)
    drawing["logs"] = [_log(fit, problem, fitted, k) for k in shown]
    drawing["logs"] = [one for one in drawing["logs"] if one]
    return drawing


def _log(fit: Fit, problem: Problem, fitted: Sequence[Signals], k: int) -> dict[str, Any]:
    """Poses, parts of the efforts and friction of one log; empty where they cannot be drawn."""
    signals, motion = fitted[k], problem.sources[k].motion
    rows = drawn_rows(signals)
    samples = samples_at(motion, signals.t[rows])
    if not len(samples):
        return {}
    kept = inside(motion, samples)
    rows, samples = rows[kept], samples[kept]
    states = states_at(problem, motion, samples)
    if states is None:
        return {}
    some = np.unique(np.linspace(0, len(rows) - 1, min(POSES, len(rows))).astype(int))
    drawn: dict[str, Any] = {
        "log": signals.log,
        "rows": rows,
        "pose_rows": rows[some],
        **poses_along(problem.mechanism, states.q[some]),
        "friction": friction_curves(fit, states, signals, rows),
    }
    terms = effort_terms(problem, fit.chi, states, motion.log.payloads)
    if terms and "friction" not in terms:
        terms["friction"] = signals.predicted[rows] - sum(terms.values())
    return drawn | {"terms": terms}
