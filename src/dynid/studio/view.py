"""The robot of a session as the page draws it: moving along its log, or at rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynid.display.scene import POSES, poses_along, robot_shapes, states_at
from dynid.experiment.experiment import Experiment
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.problem import Problem, prepare
from dynid.report.page import scripted_page
from dynid.report.robot_view import motion_view


def view_page(mechanism: Mechanism, logs: Sequence[Log], experiment: Experiment) -> str:
    """A page with the robot along its logs; of a tree without logs, the robot at the zero of its joints."""
    if logs:
        problem = prepare(mechanism, logs, experiment)
        mechanism, drawn = problem.mechanism, _along(problem)  # without payloads that no log carries
    else:
        drawn = _at_rest(mechanism)
    robot = motion_view(robot_shapes(mechanism), drawn) if drawn else None
    return scripted_page("studio_view.html", ("robot.js",), robot=robot)


def _along(problem: Problem) -> list[dict[str, Any]]:
    if not problem.case.is_series or problem.mechanism.mounted_model:
        return []
    drawn = (_log(problem, k) for k in range(len(problem.sources)))
    return [log for log in drawn if log]


def _log(problem: Problem, k: int) -> dict[str, Any]:
    """Poses of one log at samples that are evenly spaced; empty where none is usable."""
    motion = problem.sources[k].motion
    pieces = [np.arange(low, high) for low, high in motion.usable()]
    usable = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)
    samples = usable[np.unique(np.linspace(0, len(usable) - 1, min(POSES, len(usable))).astype(np.int64))]
    states = states_at(problem, motion, samples) if len(samples) > 1 else None
    if states is None:
        return {}
    return {
        "log": motion.log.name,
        "t": motion.log.t[samples],
        **poses_along(problem.mechanism, states.q),
    }


def _at_rest(mechanism: Mechanism) -> list[dict[str, Any]]:
    from dynid.kinematics.tree import tree_of

    if mechanism.is_closed or any(joint.has_quaternion for joint in mechanism.joints):
        return []
    zero = np.zeros((1, tree_of(mechanism).n_q))
    return [{"log": "at rest", "t": np.zeros(1), **poses_along(mechanism, zero)}]
