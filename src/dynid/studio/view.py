"""The robot of a session as the page draws it: moving along its log, or at rest; simply, or by Viser."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import DynidError, InputError
from dynid.display.scene import POSES, poses_along, robot_shapes, states_at
from dynid.experiment.experiment import Experiment
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.mechanism import BASE, Mechanism
from dynid.mechanism.mesh_file import Mesh
from dynid.motion.log import Log
from dynid.problem import Problem, prepare
from dynid.report.page import scripted_page
from dynid.report.robot_view import drawn_on, motion_view

_RATE, _MOST = 10, 1000  # poses per second, and of a log
_TRIANGLES = 200_000  # of all meshes together


def view_page(mechanism: Mechanism, logs: Sequence[Log], experiment: Experiment) -> str:
    """A page with the robot along its logs; without logs, the robot at its start pose."""
    if logs:
        problem = prepare(mechanism, logs, experiment)
        mechanism, drawn = problem.mechanism, _along(problem)  # without payloads that no log carries
    else:
        drawn = _at_rest(mechanism)
    robot = motion_view(robot_shapes(mechanism), drawn) if drawn else None
    return scripted_page("studio_view.html", ("robot.js",), robot=robot)


def in_webgl(page: str, mechanism: Mechanism | None = None) -> str:
    """The robot of a page drawn by Viser; a page without a robot as it is.

    Args:
        page: With the simple drawing.
        mechanism: Its collision meshes are drawn too if the page shows the same bodies.
    """
    from dynid.studio.viser_page import recording

    scene = drawn_on(page)
    if scene is None or "up" not in scene:  # of an earlier version
        return page
    same = mechanism is not None and {*mechanism.meshes, BASE} <= {*scene["bodies"], BASE}
    meshes = _meshes(mechanism) if mechanism is not None and same else {}
    try:
        return recording(scene, meshes)
    except (AttributeError, LookupError, TypeError, ValueError):  # a report may come from others
        raise InputError(
            "the robot of this page has parts that cannot be drawn", remedy="open the report itself"
        ) from None


def _meshes(mechanism: Mechanism) -> dict[str, list[Mesh]]:
    """Collision meshes that can be read, body by body, as long as a browser can draw them at once."""
    found: dict[str, list[Mesh]] = {}
    room = _TRIANGLES
    for body, shapes in mechanism.meshes.items():
        for shape in shapes:
            with contextlib.suppress(InputError):  # `excite` names it
                mesh = shape.read()
                room -= len(mesh.triangles)
                if room >= 0:
                    found.setdefault(body, []).append(mesh)
    return found


def has_viser() -> bool:
    """Whether the extra `view` is installed; recordings by another version of Viser are not known here."""
    try:
        return version("viser").startswith("1.1.")
    except PackageNotFoundError:
        return False


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
    count = int(np.clip(_RATE * len(usable) * motion.log.dt, POSES, _MOST))
    samples = usable[np.unique(np.linspace(0, len(usable) - 1, min(count, len(usable))).astype(np.int64))]
    states = states_at(problem, motion, samples) if len(samples) > 1 else None
    if states is None:
        return {}
    return {
        "log": motion.log.name,
        "t": motion.log.t[samples],
        **poses_along(problem.mechanism, states.q),
    }


def _at_rest(mechanism: Mechanism) -> list[dict[str, Any]]:
    """The start pose of the description, loops closed; empty if they cannot be closed there."""
    try:
        pose = assembly_of(mechanism).start if mechanism.is_closed else _start(mechanism)
    except DynidError:
        return []
    return [{"log": "at rest", "t": np.zeros(1), **poses_along(mechanism, pose[None])}]


def _start(mechanism: Mechanism) -> Float[Array, "j"]:
    """Coordinates of a tree at its start pose, in [rad] or [m]; without one they are zero, not turned."""
    turned = {name for joint in mechanism.joints if joint.has_quaternion for name in joint.positions}
    usual = {name: float(name in turned and name.endswith("_qw")) for name in mechanism.positions}
    return np.array([mechanism.start.get(name, value) for name, value in usual.items()])
