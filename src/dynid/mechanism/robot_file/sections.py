"""Smaller parts of the robot file: terms, ties, known values, order, limits, start pose."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from dynid.common.entry import Entry
from dynid.common.errors import nearest
from dynid.common.expression import parse
from dynid.mechanism.joint import Joint
from dynid.mechanism.mechanism import Mechanism, Term, Tie
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.parts import Parts
from dynid.mechanism.robot_file.drives import check_coordinate, coordinate_joints
from dynid.mechanism.robot_file.scope import Scope

_LIMIT_KEYS = ("q", "dq", "ddq", "jerk", "tau")
_BODY_KEYS = ("x", "y", "z")


def read_terms(entry: Entry, scope: Scope, joints: Sequence[Joint]) -> tuple[Term, ...]:
    """`terms:`; the values of symbols are put into the expressions, only signals stay free."""
    positions = {name for joint in joints for name in joint.positions}
    coordinates = coordinate_joints(joints)
    terms = []
    for item in entry.items():
        fields = item.fields(("name", "joint", "expression"), required=("name", "joint", "expression"))
        joint = check_coordinate(fields["joint"], fields["joint"].text(), joints)
        where = fields["expression"]
        expression = parse(where.node.text, file=entry.document.file, place=where.place).bound(scope.symbols)
        for kind, name in sorted(expression.signals):
            if name not in coordinates and not (kind == "q" and name in positions):
                raise where.error(f"{kind}({name}): unknown joint '{name}'" + nearest(name, coordinates))
        terms.append(Term(fields["name"].text(), joint, expression))
    return tuple(terms)


def check_term_names(entry: Entry, robot: Mechanism) -> None:
    """Refuse a term whose name is that of another parameter: one name, one column."""
    others = {parameter.name for parameter in parameter_table(robot) if parameter.kind != "term"}
    for item in entry.items():
        name = item.mapping()["name"]
        if name.text() in others:
            raise name.error(
                f"'{name.text()}' is already the name of a parameter", "choose another name for the term"
            )


def read_ties(entry: Entry, robot: Mechanism) -> dict[str, Tie]:
    """`ties:`, lists of bodies or joints whose parameters are equal, entry by entry."""
    bodies, joints = set(robot.bodies), {joint.name for joint in robot.joints}
    ties = {}
    for name, item in entry.mapping().items():
        groups = []
        for group in item.items():
            members = group.texts()
            for member, place in zip(members, group.items(), strict=True):
                if member not in bodies | joints:
                    raise place.error(
                        f"unknown body or joint '{member}'" + nearest(member, sorted(bodies | joints))
                    )
            if len(members) < 2:
                raise group.error("a tie needs two members or more", "e.g. [[leg1, leg2, leg3]]")
            if not (set(members) <= bodies or set(members) <= joints):
                raise group.error("a tie joins bodies with bodies or joints with joints", "split the list")
            groups.append(members)
        ties[name] = Tie(name, tuple(groups))
    return ties


def read_known(entry: Entry, scope: Scope, robot: Mechanism) -> dict[str, float]:
    """`known:`, values of parameters by full name (e.g. Ia_motor1) that are taken as exact."""
    names = [parameter.name for parameter in parameter_table(robot)]
    values = {}
    for name, item in entry.mapping().items():
        if name not in names:
            raise item.error(f"unknown parameter '{name}'" + nearest(name, names), "see 'dynid info'")
        values[name] = scope.number(item)
    return values


def read_order(entry: Entry, robot: Mechanism) -> tuple[str, ...]:
    """`order:`, bodies, joints or globs of parameter names; each must match something."""
    parameters = [parameter.name for parameter in parameter_table(robot)]
    owners = {*robot.bodies, *robot.payloads, *(joint.name for joint in robot.joints)}
    owners |= {actuator.name for actuator in robot.actuators}
    names = entry.texts()
    for name, item in zip(names, entry.items(), strict=True):
        if name not in owners and not any(fnmatchcase(parameter, name) for parameter in parameters):
            raise item.error(
                f"'{name}' matches no body, joint or parameter" + nearest(name, [*owners, *parameters])
            )
    return names


def read_limits(
    entry: Entry | None, scope: Scope, parts: Parts, actuators: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """`limits:` over those of the source: {coordinate: {q: (low, high), dq, ddq, jerk, tau}}.

    A free joint takes its own coordinates instead (`pose: {x: 0.1}`), a body where its origin may be
    (`platform: {x: [-0.1, 0.1]}`), `cables` or a single cable takes `tension`, and `singularity` the
    largest `condition`.
    """
    limits = {name: dict(values) for name, values in parts.limits.items()}
    if entry is None:
        return limits
    valid = dict.fromkeys(parts.bodies, _BODY_KEYS) | _limit_keys(parts, actuators)
    for name, item in entry.mapping().items():
        if name not in valid:
            raise item.error(f"unknown joint '{name}'" + nearest(name, valid), "name a movable joint")
        own = limits.setdefault(name, {})
        own |= {key: _limit(value, scope) for key, value in item.fields(valid[name]).items()}
    return limits


def _limit_keys(parts: Parts, actuators: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Valid names under `limits:` and, for each, its valid keys."""
    keys: dict[str, tuple[str, ...]] = {"cables": ("tension",), "singularity": ("condition",)}
    for joint in parts.joints:
        keys |= dict.fromkeys(joint.coordinates, _LIMIT_KEYS)
        if joint.has_quaternion:
            own = tuple(name[len(joint.name) + 1 :] for name in joint.positions)
            keys[joint.name] = (*own, "roll", "pitch", "yaw", "dq", "ddq")
    keys |= dict.fromkeys(actuators, _LIMIT_KEYS)
    return keys | {cable.name: (*_LIMIT_KEYS, "tension") for cable in parts.cables}


def _limit(entry: Entry, scope: Scope) -> float | tuple[float, float]:
    """A positive bound, or `[low, high]`; one number for q applies in both directions."""
    if not entry.is_list:
        bound = scope.number(entry)
        if bound <= 0:
            raise entry.error(f"the limit {bound:g} is not positive", "give a positive bound or [low, high]")
        return (-bound, bound) if entry.path.endswith(".q") else bound
    low, high = entry.vector(scope.number, 2)
    if low >= high:
        raise entry.error(f"limits [{low:g}, {high:g}] are swapped or empty", "give [low, high]")
    return low, high


def read_start(entry: Entry, scope: Scope, robot: Mechanism) -> dict[str, float]:
    """`start:`, positions near which loops are first closed."""
    positions = robot.positions
    values = {}
    for name, item in entry.mapping().items():
        if name not in positions:
            raise item.error(
                f"unknown coordinate '{name}'" + nearest(name, positions), "name a joint that moves"
            )
        values[name] = scope.number(item)
    return values
