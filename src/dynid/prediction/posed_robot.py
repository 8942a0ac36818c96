"""A robot whose pose is prescribed: a chain of joints that guides one of its bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.coordinates import coordinate_map
from dynid.kinematics.tree import body_poses, tree_of
from dynid.mechanism.frame import (
    ROUNDING,
    Frame,
    angles_of,
    identity_frame,
    rotation,
    rotation_of,
    snap_angle,
)
from dynid.mechanism.joint import DIRECTIONS, Joint, JointKind, Loop
from dynid.mechanism.measured_pose import ANGLE_ORDERS, POSE
from dynid.mechanism.mechanism import BASE, Body, Mechanism
from dynid.motion.gather import CONVENTIONS

QUATERNION = ("qw", "qx", "qy", "qz")
_AXIS = {"x": 0, "y": 1, "z": 2, "roll": 0, "pitch": 1, "yaw": 2}


def posed_robot(mechanism: Mechanism, body: str, given: Sequence[str], angles: str = "xyz") -> Mechanism:
    """The same robot and parameters, its `measured` coordinates those of the pose of `body`.

    Args:
        body: Whose frame is guided.
        given: Which of `POSE` are given; they must move the robot in all its freedoms.
        angles: R = Rx Ry Rz for `xyz`, Rz Ry Rx for `zyx`.
    """
    if body not in mechanism.bodies:
        raise InputError(
            f"no body '{body}' in robot '{mechanism.name}'" + nearest(body, mechanism.bodies),
            file=mechanism.file,
            remedy="name the body whose pose the trajectory gives (--body)",
        )
    if angles not in ANGLE_ORDERS:
        raise InputError(f"unknown angle convention '{angles}'" + nearest(angles, CONVENTIONS))
    start, pose = _start(mechanism, body, angles)
    joints, tail = _chain(mechanism, body, given, pose, angles)
    guided = Loop(f"{body} pose", DIRECTIONS, joints[-1].child, tail, body, identity_frame())
    at_start = {f"{body}_{name}": pose[name] for name in given}
    robot = replace(
        mechanism,
        joints=(*mechanism.joints, *joints),
        bodies={**mechanism.bodies, **{joint.child: Body(joint.child, ()) for joint in joints}},
        loops=(*mechanism.loops, guided),
        measured=tuple(f"{body}_{name}" for name in POSE if name in given),
        start={**start, **at_start},
        rebuild=None,
    )
    _check_freedoms(mechanism, robot, body, given)
    return robot


def pose_angles(pose: Mapping[str, Float[Array, "n"]], angles: str = "xyz") -> dict[str, Float[Array, "n"]]:
    """The coordinates of a pose in the order of `POSE`, quaternions turned into continuous angles."""
    coords = {name: np.asarray(values, float) for name, values in pose.items() if name in POSE}
    quaternion = [name for name in QUATERNION if name in pose]
    if quaternion and len(quaternion) < len(QUATERNION):
        raise InputError(
            f"a quaternion needs {', '.join(QUATERNION)}; given are {', '.join(quaternion)}",
            remedy="give all four, or roll, pitch and yaw",
        )
    if quaternion:
        R = rotation_of(np.column_stack([np.asarray(pose[name], float) for name in QUATERNION]))
        for name, turn in zip(ANGLE_ORDERS["xyz"], np.unwrap(angles_of(R, angles), axis=0).T, strict=True):
            coords[name] = turn
    return {name: coords[name] for name in POSE if name in coords}


def _start(mechanism: Mechanism, body: str, angles: str) -> tuple[dict[str, float], dict[str, float]]:
    """Start positions of all tree joints, and the pose of the body there."""
    if mechanism.is_closed:
        q = assembly_of(mechanism).start
    else:
        unturned = {f"{joint.name}_qw": 1.0 for joint in mechanism.joints if joint.has_quaternion}
        known = {**unturned, **mechanism.start}
        q = np.array([known.get(name, 0.0) for name in mechanism.positions])
    R, p = body_poses(tree_of(mechanism), q[None])
    index = [joint.child for joint in mechanism.joints].index(body)
    turns = [snap_angle(float(turn)) for turn in angles_of(R[0, index][None], angles)[0]]
    # The start pose is closed to rounding; what is not given must not tilt a plane by as much.
    origin = np.where(np.abs(p[0, index]) < ROUNDING, 0.0, p[0, index])
    pose = dict(zip(POSE, [*origin.tolist(), *turns], strict=True))
    return dict(zip(mechanism.positions, q.tolist(), strict=True)), pose


def _chain(
    mechanism: Mechanism, body: str, given: Sequence[str], pose: Mapping[str, float], angles: str
) -> tuple[list[Joint], Frame]:
    """Joints of the given coordinates, and what is fixed behind the last of them."""
    joints: list[Joint] = []
    fixed, parent = identity_frame(), BASE
    for name in (*POSE[:3], *ANGLE_ORDERS[angles]):
        axis = np.eye(3)[_AXIS[name]]
        slides = name in POSE[:3]
        if name not in given:
            step = Frame(np.eye(3), axis * pose[name]) if slides else None
            fixed = fixed @ (step or Frame(rotation(_AXIS[name], pose[name]), np.zeros(3)))
            continue
        label = f"{body}_{name}"
        if any(label in (other.name, other.child) for other in mechanism.joints):
            raise InputError(f"the robot already has a joint or body '{label}'", file=mechanism.file)
        kind = JointKind.PRISMATIC if slides else JointKind.REVOLUTE
        joints.append(Joint(label, kind, parent, label, fixed, (axis,)))
        fixed, parent = identity_frame(), label
    if not joints:
        raise InputError(f"no coordinate of the pose of '{body}' is given", remedy=f"give {', '.join(POSE)}")
    return joints, fixed


def _check_freedoms(mechanism: Mechanism, robot: Mechanism, body: str, given: Sequence[str]) -> None:
    """The guide must neither lock the robot nor leave part of it free."""
    loops = mechanism.is_closed
    freedoms = assembly_of(mechanism).dof if loops else len(coordinate_map(mechanism).independent)
    left = assembly_of(robot).dof
    if left < freedoms:
        raise InputError(
            f"{', '.join(given)} of '{body}' do not determine the motion: the robot has {freedoms} degrees of"
            f" freedom, and {left} with the other coordinates of the pose held constant",
            file=mechanism.file,
            remedy=f"give more of {', '.join(POSE)}",
        )
