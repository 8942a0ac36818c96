"""A series for the pose of a platform; the joints follow from inverse kinematics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import inv, svd
from dynid.common.errors import InputError, nearest
from dynid.excitation.closed import places
from dynid.excitation.series import speed_bound, symmetric_range
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.measured_pose import POSE
from dynid.mechanism.mechanism import Mechanism
from dynid.prediction.posed_robot import posed_robot

_SEED = 20220517
_WALKED = 48
_REACH = 0.3
_MOVES = 1e-6  # of a unit step of the freedoms: rounding
_GENEROUS = 2.0  # times the value allowed by joint limits at usual poses; these limits are enforced too


def guided(mechanism: Mechanism, body: str) -> tuple[Mechanism, tuple[str, ...]]:
    """The robot guided by the pose of a body, and the guiding coordinates with their limits.

    An error if the pose of the body does not determine all degrees of freedom of the robot.
    """
    if not mechanism.is_closed:
        raise InputError(
            f"robot '{mechanism.name}' has no closed loops, so --along does not apply",
            file=mechanism.file,
            remedy="remove --along: the joints are planned directly",
        )
    if body not in mechanism.bodies:
        raise InputError(f"no body '{body}' in robot '{mechanism.name}'" + nearest(body, mechanism.bodies))
    given = _leading(mechanism, body)
    robot = posed_robot(mechanism, body, given)
    names = tuple(f"{body}_{name}" for name in given)
    speeds = _speeds(robot, names)
    limits: dict[str, Any] = dict(robot.limits)
    free = [joint.name for joint in mechanism.joints if joint.child == body and joint.has_quaternion]
    stated = [mechanism.limits.get(name, {}) for name in (body, *free)]
    for name, short, bounds in zip(names, given, speeds, strict=True):
        pose_limits: dict[str, Any] = {}
        for entry in stated:
            if short in entry:
                pose_limits["q"] = symmetric_range(entry[short])
        for key, bound in zip(("dq", "ddq"), bounds, strict=True):
            least = min([bound, *(speed_bound(entry[key]) for entry in stated if key in entry)])
            pose_limits |= {key: least} if least < np.inf else {}
        limits[name] = pose_limits
    return replace(robot, limits=limits, measured=mechanism.measured, model=mechanism.model), names


def led_body(mechanism: Mechanism) -> str:
    """The default guiding body of a closed robot: one whose free joint is measured; empty: none."""
    free = {joint.positions: joint.child for joint in mechanism.joints if joint.has_quaternion}
    measured = set(mechanism.measured_positions)
    bodies = [child for positions, child in free.items() if measured.issuperset(positions)]
    return bodies[0] if mechanism.is_closed and bodies else ""


def _leading(mechanism: Mechanism, body: str) -> tuple[str, ...]:
    """Pose coordinates, one per degree of freedom: those that move most independently."""
    assembly = assembly_of(mechanism)
    q = assembly.walk(np.random.default_rng(_SEED), _WALKED, reach=_REACH)
    N = assembly.tangent(assembly.closure.values(q).A)
    tree = tree_of(mechanism)
    at, columns = tree.body_names.index(body), []
    for i in range(N.shape[2]):
        motion = body_motion(tree, q, np.ascontiguousarray(N[:, :, i]), np.zeros_like(N[:, :, i]))
        R, V = motion.R[:, at], motion.V[:, at]
        parts = [np.einsum("nij,nj->ni", R, V[:, k : k + 3]) for k in (0, 3)]
        columns.append(np.concatenate(parts, axis=1))
    twists = np.stack(columns, axis=2)  # (n, 6, d)
    chosen: list[int] = []
    while len(chosen) < assembly.dof:
        still = np.swapaxes(svd(twists[:, chosen])[2][:, len(chosen) :], 1, 2)
        moves = np.linalg.norm(twists @ still, axis=(0, 2))
        best = int(np.argmax(moves))
        if moves[best] < _MOVES:
            raise InputError(
                f"the pose of '{body}' determines only {len(chosen)} of {assembly.dof} degrees of freedom",
                file=mechanism.file,
                remedy="remove --along: then independent joints are planned",
            )
        chosen.append(best)
    moving = [POSE[i] for i in range(len(POSE)) if np.linalg.norm(twists[:, i]) > _MOVES]
    if len(moving) > assembly.dof:
        raise InputError(
            f"'{body}' moves in {', '.join(moving)}, but the robot has {assembly.dof} degrees of freedom",
            file=mechanism.file,
            remedy="name a body that moves in as many coordinates as the robot has degrees of freedom",
        )
    return tuple(POSE[i] for i in sorted(chosen))


def _speeds(robot: Mechanism, names: tuple[str, ...]) -> list[tuple[float, float]]:
    """Speeds and accelerations of the guiding coordinates allowed by the joint limits at usual poses."""
    assembly = assembly_of(robot)
    q = assembly.walk(np.random.default_rng(_SEED), _WALKED, reach=_REACH)
    N = assembly.tangent(assembly.closure.values(q).A)
    N = N @ inv(N[:, places(robot, names)])
    ratio: Float[Array, "v d"] = np.median(np.abs(N), axis=0)
    speeds = []
    for i in range(len(names)):
        bounds = []
        for kind in ("dq", "ddq"):
            allowed = [
                speed_bound(joint_limits[kind]) / max(ratio[robot.coordinates.index(name), i], _MOVES)
                for name, joint_limits in robot.limits.items()
                if name in robot.coordinates and kind in joint_limits
            ]
            bounds.append(_GENEROUS * min(allowed, default=np.inf))
        speeds.append((float(bounds[0]), float(bounds[1])))
    return speeds
