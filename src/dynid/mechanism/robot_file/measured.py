"""`measured:` of the robot file: joints, poses of bodies, pulleys, and the standard deviation of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.common.entry import Entry
from dynid.common.errors import nearest
from dynid.mechanism.cable import Swivel, swivel_joint
from dynid.mechanism.frame import Frame, angles_of, identity_frame, quaternion_of, rotation_of
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.measured_pose import ANGLE_ORDERS, POSE, TURNS, MeasuredPose, chain_of
from dynid.mechanism.mechanism import BASE, Body, Mechanism
from dynid.mechanism.mjcf.pose import axis_rotation
from dynid.mechanism.parts import Parts, coordinate_clash
from dynid.mechanism.robot_file.bodies import FRAME_KEYS, read_frame
from dynid.mechanism.robot_file.scope import Scope

_JOINT_KEYS = ("joint", "sigma")
_POSE_KEYS = ("pose", "name", "of", "angles", "sigma", *FRAME_KEYS)
_SWIVEL_KEYS = ("swivel", "name", "sigma")
_DEFAULT_NAME = "pose"


def measured_joints(entry: Entry) -> Iterator[tuple[str, Entry]]:
    """Every joint that `measured:` names, with its place."""
    for item in entry.items():
        if not item.is_mapping:
            yield item.text(), item
        elif "joint" in item.mapping():
            joint = item.mapping()["joint"]
            yield joint.text(), joint


def read_measured(entry: Entry, scope: Scope, parts: Parts) -> Parts:
    """The parts with what `measured:` adds.

    Its items are a joint's name, `{joint, sigma}`, `{pose, name, xyz, rpy, of, angles, sigma}`, or
    `{swivel, name, sigma}`.
    """
    whole = replace(parts, joints=[*parts.joints], bodies={**parts.bodies}, measured_sigma={})
    places: dict[str, Entry] = {}
    for item in entry.items():
        fields = _fields(item)
        if "pose" in fields:
            names = _add_pose(whole, item, fields, scope, parts)
        elif "swivel" in fields:
            names = _add_swivel(whole, item, fields, parts)
        else:
            names = (_joint(fields["joint"], parts.joints, parts.bodies),)
        for name in names:
            if name in places:
                raise item.error(f"'{name}' is listed twice", "list it once")
            places[name] = item
        sensed = sorted(
            (member for member in whole.joints if member.name in names),
            key=lambda member: names.index(member.name),
        )
        if "sigma" in fields:
            whole.measured_sigma |= _sigmas(fields["sigma"], scope, sensed)
        whole.measured += names
    _check_all_or_none(whole, places)
    return whole


def _fields(item: Entry) -> Mapping[str, Entry]:
    """Keys of an item; a bare name is a joint."""
    if not item.is_mapping:
        return {"joint": item}
    given = item.mapping()
    kinds = {"joint": _JOINT_KEYS, "pose": _POSE_KEYS, "swivel": _SWIVEL_KEYS}
    named = [kind for kind in kinds if kind in given]
    if len(named) != 1:
        raise item.error(
            "an item of 'measured' is a joint, the pose of a body, or the swivel angle of a cable's pulley",
            "write a joint's name, {joint: motor1, sigma: 1e-4}, {pose: platform} or {swivel: cable1}",
        )
    return item.fields(kinds[named[0]])


def _joint(entry: Entry, joints: Sequence[Joint], bodies: Collection[str]) -> str:
    name = entry.text()
    movable = [joint.name for joint in joints if joint.coordinates]
    if any(joint.name == name and not joint.coordinates for joint in joints):
        raise entry.error(f"joint '{name}' is fixed and cannot be measured", "name a movable joint")
    remedy = f"to measure the pose of this body: {{pose: {name}}}" if name in bodies else ""
    return entry.known(name, movable, "joint", remedy or "name a movable joint")


def _add_pose(
    whole: Parts, item: Entry, fields: Mapping[str, Entry], scope: Scope, parts: Parts
) -> tuple[str, ...]:
    """Read one measured pose with its chain; returns its measured joints."""
    body = fields["pose"].known(fields["pose"].text(), sorted(parts.bodies), "body", "name a body")
    name = fields["name"].text() if "name" in fields else _DEFAULT_NAME
    of = _coordinates(fields.get("of"))
    angles = fields["angles"].choice(ANGLE_ORDERS) if "angles" in fields else "xyz"
    pose = MeasuredPose(name, body, read_frame(fields, scope), of, angles)
    if "angles" in fields and not pose.has_single_angles:
        raise fields["angles"].error(
            "'angles' is only used where one or two angles are measured",
            "remove it; for a full attitude, 'angles' of the experiment states the convention",
        )
    pose, chain, weld = chain_of(pose, BASE, {BASE, *whole.bodies})
    taken = {*(loop.name for loop in parts.loops), *(other.name for other in whole.poses)}
    _check_names(item, pose, chain, whole.joints, taken)
    _add_joints(whole, chain)
    whole.loops += (weld,)
    whole.poses += (pose,)
    return pose.measured


def _add_joints(whole: Parts, joints: Iterable[Joint]) -> None:
    """Add massless joints."""
    for joint in joints:
        whole.joints.append(joint)
        whole.bodies[joint.child] = Body(joint.child, parameters=())


def _add_swivel(whole: Parts, item: Entry, fields: Mapping[str, Entry], parts: Parts) -> tuple[str, ...]:
    """Read the encoder of a pulley about its swivel axis, with its joint; returns that joint."""
    wanted = fields["swivel"].text()
    cable = next((candidate for candidate in parts.cables if candidate.name == wanted), None)
    if cable is None:
        names = [candidate.name for candidate in parts.cables]
        raise fields["swivel"].error(f"unknown cable '{wanted}'" + nearest(wanted, names), "name a cable")
    if cable.axis is None:
        raise fields["swivel"].error(f"cable '{wanted}' has no swivelling pulley", "give it a `pulley:`")
    if cable.x is None:
        raise fields["swivel"].error(
            f"the zero of the swivel angle of '{wanted}' is not defined",
            "give the direction from the swivel axis: pulley: {radius: ..., axis: ..., x: [1, 0, 0]}",
        )
    name = fields["name"].text() if "name" in fields else f"swivel_{wanted}"
    taken = {used_name for joint in whole.joints for used_name in (joint.name, *joint.positions)}
    if name in taken | {loop.name for loop in parts.loops}:
        raise item.error(
            f"the swivel encoder needs the name '{name}', which is taken", "give it another name"
        )
    _add_joints(whole, [swivel_joint(name, set(whole.bodies))])
    whole.swivels += (Swivel(name, wanted),)
    return (name,)


def _check_names(
    item: Entry, pose: MeasuredPose, chain: Sequence[Joint], joints: Sequence[Joint], loops: Collection[str]
) -> None:
    """A measured pose needs unique names, also for its columns."""
    free_joint = next(
        (joint for joint in joints if joint.child == pose.body and joint.kind is JointKind.FREE), None
    )
    taken = {joint.name for joint in joints} & {pose.name, *(joint.name for joint in chain)}
    clash = sorted(taken) or sorted({pose.name} & set(loops))
    clash = clash or [doubled[0] for doubled in [coordinate_clash([*joints, *chain])] if doubled]
    if clash:
        remedy = "give it another name, e.g. name: camera"
        if free_joint is not None:
            remedy += f"; to measure the free joint of '{pose.body}' itself, list {free_joint.name}"
        raise item.error(
            f"the measured pose '{pose.name}' needs the name '{clash[0]}', which is taken", remedy
        )


def _coordinates(entry: Entry | None) -> tuple[str, ...]:
    """`of:`, in the order of POSE; without it all."""
    if entry is None:
        return POSE
    for item in entry.items():
        item.choice(POSE)
    listed = entry.texts()
    if not listed:
        raise entry.error("no quantity of the pose is measured", "e.g. of: [x, y, yaw]")
    return tuple(name for name in POSE if name in listed)


def _sigmas(entry: Entry, scope: Scope, joints: Sequence[Joint]) -> dict[str, float]:
    """Standard deviations by position coordinate.

    One number where all coordinates have one unit; else `[metres, radians]`, or one per coordinate
    in their order; an attitude counts as one.
    """
    quantities = [quantity for joint in joints for quantity in _quantities(joint)]
    units = dict.fromkeys(unit for unit, _ in quantities)
    what, remedy = "the standard deviation", "give it in rad or m, e.g. 1e-4"
    listed = entry.items() if entry.is_list else [entry]
    values = [scope.positive(item, what, remedy) for item in listed]
    if len(values) == 1 and len(units) == 1 and not entry.is_list:
        values *= len(quantities)
    elif entry.is_list and len(values) == 2 and len(quantities) != 2 and len(units) == 2:
        by_unit = dict(zip(("m", "rad"), values, strict=True))
        values = [by_unit[unit] for unit, _ in quantities]
    if len(values) != len(quantities):
        shown = ", ".join(names[0].removesuffix("_qw") for _, names in quantities)
        raise entry.error(
            f"{len(values)} standard deviations for {len(quantities)} quantities ({shown})",
            "give one per quantity in this order"
            + (", or [metres, radians]" if len(units) == 2 else ", or one for all"),
        )
    return {name: sigma for sigma, (_, names) in zip(values, quantities, strict=True) for name in names}


def _quantities(joint: Joint) -> list[tuple[str, tuple[str, ...]]]:
    """Unit and position coordinates of what a joint measures; a quaternion is one attitude."""
    scalar = joint.positions[:-4] if joint.has_quaternion else joint.positions
    attitude = [joint.positions[-4:]] if joint.has_quaternion else []
    scalars: list[tuple[str, tuple[str, ...]]] = [("rad" if joint.is_angle(n) else "m", (n,)) for n in scalar]
    return [*scalars, *(("rad", names) for names in attitude)]


def _check_all_or_none(whole: Parts, places: Mapping[str, Entry]) -> None:
    """Weights are relative: either all coordinates have a standard deviation or none."""
    without = [
        joint.name
        for joint in whole.joints
        if joint.name in places and not any(name in whole.measured_sigma for name in joint.positions)
    ]
    if whole.measured_sigma and without:
        raise places[without[0]].error(
            f"'{without[0]}' has no standard deviation, but others do",
            "give 'sigma' for all measured quantities, or for none",
        )


# Positions of the chain of a measured pose at the start pose.
#
# A weld is also closed when it is rotated by half a revolution, so the chain must start close to the
# body: it starts where the tree of the description places the body.


def chain_starts(mechanism: Mechanism, start: Mapping[str, float]) -> dict[str, float]:
    """Positions of the chains of all measured poses, from those of the other joints.

    Args:
        start: Position coordinates of the start pose; those not named are zero.
    """
    positions: dict[str, float] = {}
    for pose in mechanism.poses:
        seen = body_frame(mechanism, pose.body, start) @ pose.frame
        positions |= _positions(mechanism, pose, seen)
    return positions


def body_frame(mechanism: Mechanism, body: str, start: Mapping[str, float]) -> Frame:
    """Frame of a body in the base frame at position coordinates, those not named being zero."""
    frame = identity_frame()
    while body != BASE:
        joint = mechanism.joint_of_body[body]
        frame = joint.placement @ _moved(joint, start) @ joint.body @ frame
        body = joint.parent
    return frame


def _positions(mechanism: Mechanism, pose: MeasuredPose, seen: Frame) -> dict[str, float]:
    """Position coordinates of a chain whose end is at `seen`."""
    values = {f"{pose.name}_{name}": float(value) for name, value in zip(POSE[:3], seen.p, strict=True)}
    quaternion = zip(("qw", "qx", "qy", "qz"), quaternion_of(seen.R), strict=True)
    values |= {f"{pose.name}_{name}": float(value) for name, value in quaternion}
    turns = zip(TURNS, angles_of(seen.R, pose.angles).tolist(), strict=True)
    values |= {f"{pose.name}_{name}": value for name, value in turns}
    names = {n for joint in mechanism.joints if joint.name in pose.joints for n in joint.positions}
    return {name: value for name, value in values.items() if name in names}


def _moved(joint: Joint, start: Mapping[str, float]) -> Frame:
    """Moving joint frame in the joint frame at zero."""
    values = [start.get(name, 0.0) for name in joint.positions]
    frame = identity_frame()
    if joint.kind is JointKind.PRISMATIC:
        return Frame(frame.R, joint.axes[0] * values[0])
    for axis, angle in zip(joint.axes, values, strict=False):
        frame = frame @ Frame(axis_rotation(axis, angle), np.zeros(3))
    if joint.has_quaternion:
        quaternion = np.array(values[-4:])
        R = rotation_of(quaternion) if quaternion.any() else np.eye(3)
        frame = Frame(R, np.array(values[:3]) if joint.kind is JointKind.FREE else np.zeros(3))
    return frame
