"""Consistency of the parts of a mechanism: checked once, when it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid.common.errors import InputError, nearest
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS
from dynid.mechanism.mechanism import BASE

if TYPE_CHECKING:
    from dynid.mechanism.mechanism import Mechanism


def check_parts(robot: Mechanism) -> None:
    """Refuse a mechanism with inconsistent parts; unknown names are quoted with the nearest valid one."""
    _check_tree(robot)
    _check_motors(robot)
    _check_drive(robot)
    _check_attached(robot)
    _check_cables(robot)
    if not np.all(np.isfinite(robot.gravity)):
        raise _refuse(robot, f"gravity {robot.gravity} is not finite", "give three numbers in m/s^2")


def _refuse(robot: Mechanism, text: str, remedy: str = "") -> InputError:
    return InputError(text, file=robot.file, place=f"robot '{robot.name}'", remedy=remedy)


def _check_tree(robot: Mechanism) -> None:
    """Every joint and body once, parents first."""
    for kind, listed in (
        ("joint", [joint.name for joint in robot.joints]),
        ("body", [joint.child for joint in robot.joints]),
    ):
        doubled = sorted({name for name in listed if listed.count(name) > 1}) if _repeats(listed) else []
        if doubled:
            text = f"{kind} name '{doubled[0]}' occurs more than once"
            raise _refuse(robot, text, "give unique names")
    seen = {BASE}
    for joint in robot.joints:
        if joint.parent not in seen:
            raise _refuse(
                robot,
                f"joint '{joint.name}' is attached to '{joint.parent}', which no earlier joint has as child"
                + nearest(joint.parent, seen),
                "list parent joints before their children, beginning at 'base'",
            )
        seen.add(joint.child)


def _repeats(names: list[str]) -> bool:
    return len(set(names)) < len(names)


def _check_motors(robot: Mechanism) -> None:
    """Motors on existing coordinates, measured joints that exist."""
    coordinates, names = set(robot.coordinates), [joint.name for joint in robot.joints]
    for actuator in robot.actuators:
        for coordinate in actuator.on:
            if coordinate not in coordinates:
                raise _refuse(
                    robot,
                    f"actuator '{actuator.name}' drives '{coordinate}', which is not a movable coordinate"
                    + nearest(coordinate, robot.coordinates),
                    "name a movable joint",
                )
    for name in robot.measured:
        if name not in names and name not in robot.positions:
            text = f"measured joint '{name}' is not in the mechanism" + nearest(name, names)
            raise _refuse(robot, text, "name a joint")


def _check_drive(robot: Mechanism) -> None:
    """Drive terms and Stribeck speeds of existing joints or motors."""
    coordinates = set(robot.coordinates)
    owners = coordinates | {actuator.name for actuator in robot.actuators}
    for owner, symbols in robot.drive.items():
        if owner not in owners:
            text = f"drive terms for unknown joint or actuator '{owner}'" + nearest(owner, sorted(owners))
            raise _refuse(robot, text)
        for symbol in symbols:
            if symbol not in DRIVE_SYMBOLS:
                text = f"'{owner}' has unknown drive term '{symbol}'" + nearest(symbol, DRIVE_SYMBOLS)
                raise _refuse(robot, text)
        if "Fl" in symbols and owner in coordinates and not any(owner in a.on for a in robot.actuators):
            raise _refuse(
                robot,
                f"'{owner}' has load-dependent friction (Fl), but no actuator acts on it",
                "remove Fl from joints without a motor",
            )
    for owner, speed in robot.stribeck.items():
        if owner not in owners:
            text = f"Stribeck speed of unknown joint or actuator '{owner}'" + nearest(owner, sorted(owners))
            raise _refuse(robot, text)
        if not 0.0 < speed < np.inf:
            text = f"the Stribeck speed {speed:g} of '{owner}' is not positive"
            raise _refuse(robot, text, "e.g. 0.05 rad/s")


def _check_attached(robot: Mechanism) -> None:
    """Terms, payloads and loops on existing joints and bodies."""
    for term in robot.terms:
        if term.joint not in robot.coordinates:
            text = f"term '{term.name}' acts on unknown joint '{term.joint}'"
            raise _refuse(robot, text + nearest(term.joint, robot.coordinates))
    for payload in robot.payloads.values():
        if payload.body not in robot.bodies:
            text = f"payload '{payload.name}' is attached to unknown body '{payload.body}'"
            raise _refuse(robot, text + nearest(payload.body, robot.bodies))
    for loop in robot.loops:
        for body in (loop.body_a, loop.body_b):
            if body != BASE and body not in robot.bodies:
                text = f"loop '{loop.name}' joins unknown body '{body}'" + nearest(body, robot.bodies)
                raise _refuse(robot, text)


def _check_cables(robot: Mechanism) -> None:
    """Cables between existing bodies, each with a length or a coordinate; swivels on pulleys."""
    scalar = {joint.name for joint in robot.joints if joint.coordinates == (joint.name,)}
    named = {cable.name: cable for cable in robot.cables}
    for cable in robot.cables:
        for body in (cable.body_from, cable.body_to):
            if body != BASE and body not in robot.bodies:
                text = f"cable '{cable.name}' ends on unknown body '{body}'" + nearest(body, robot.bodies)
                raise _refuse(robot, text)
        if cable.length is None and cable.name not in scalar:
            raise _refuse(
                robot,
                f"cable '{cable.name}' has neither a length nor a coordinate",
                "give its length, or add the joint that `cable_joint` creates",
            )
    for swivel in robot.swivels:
        owner = named.get(swivel.cable)
        if owner is None or owner.axis is None or swivel.name not in scalar:
            text = f"swivel encoder '{swivel.name}' is not on a pulley that has a swivel coordinate"
            raise _refuse(robot, text)
