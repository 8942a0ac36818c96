"""Motors of the robot file (actuators, drive terms, couplings), and its smaller parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from dynid.common.entry import Entry
from dynid.common.errors import InputError, nearest
from dynid.common.expression import parse
from dynid.mechanism.drive_terms import SEARCHED
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import Actuator, Coupling, Mechanism, Term, Tie
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.parts import Parts, resolve_couplings
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.variant import drive_names

_LIMIT_KEYS = ("q", "dq", "ddq", "jerk", "tau")
_BODY_KEYS = ("x", "y", "z")


def coordinate_joints(joints: Sequence[Joint]) -> dict[str, Joint]:
    """The joint of every velocity coordinate."""
    return {name: joint for joint in joints for name in joint.coordinates}


def check_coordinate(entry: Entry, name: str, joints: Sequence[Joint]) -> str:
    """`name` if it is a movable coordinate, else an error with the valid names."""
    owners = coordinate_joints(joints)
    if name in owners:
        return name
    joint = next((joint for joint in joints if joint.name == name), None)
    if joint is None:
        return entry.known(name, owners, "joint", "name a movable joint")
    if not joint.coordinates:
        raise entry.error(f"joint '{name}' is fixed", "name a movable joint")
    several = ", ".join(joint.coordinates)
    raise entry.error(f"joint '{name}' has several coordinates", f"name one of {several}")


def read_actuators(entry: Entry, scope: Scope, joints: Sequence[Joint]) -> tuple[Actuator, ...]:
    """`actuators:`, each a coordinate's name or `{name, on: {coordinate: ratio}}`."""
    actuators: dict[str, Actuator] = {}
    for item in entry.items():
        actuator = _geared(item, scope, joints) if item.is_mapping else None
        if actuator is None:
            name = check_coordinate(item, item.text(), joints)
            actuator = Actuator(name, {name: 1.0})
        if actuator.name in actuators:
            raise item.error(f"actuator '{actuator.name}' occurs twice", "list it once")
        actuators[actuator.name] = actuator
    return tuple(actuators.values())


def _geared(entry: Entry, scope: Scope, joints: Sequence[Joint]) -> Actuator:
    fields = entry.fields(("name", "on", "kind"), required=("name", "on"))
    name, on = fields["name"].text(), fields["on"].mapping()
    if not on:
        raise fields["on"].error(f"actuator '{name}' drives nothing", "e.g. on: {joint_1: 100}")
    ratios = {check_coordinate(item, c, joints): scope.number(item) for c, item in on.items()}
    if any(ratio == 0.0 for ratio in ratios.values()):
        raise fields["on"].error(f"actuator '{name}' has a ratio of zero", "remove that joint")
    # Drive terms belong to a coordinate or to a motor: one name for two velocities has no meaning.
    if name in coordinate_joints(joints) and ratios != {name: 1.0}:
        raise fields["name"].error(
            f"motor '{name}' has the name of a joint but a different velocity", f"call it motor_{name}"
        )
    if "kind" not in fields:
        return Actuator(name, ratios)
    turns = fields["kind"].choice((JointKind.REVOLUTE, JointKind.PRISMATIC)) == JointKind.REVOLUTE
    if name in coordinate_joints(joints) and turns != coordinate_joints(joints)[name].is_angle(name):
        raise fields["kind"].error(f"'{name}' is the joint itself", "give the motor its own name and a ratio")
    return Actuator(name, ratios, turns)


def read_drive(entry: Entry, owners: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """`drive:`, names or globs to lists of terms; a name overrides a glob, a later glob an earlier one."""
    if is_none(entry):
        return {}
    drive: dict[str, tuple[str, ...]] = {}
    exact: dict[str, tuple[str, ...]] = {}
    for pattern, item in entry.mapping().items():
        terms = _terms(item)
        if pattern in owners:
            exact[pattern] = terms
            continue
        matched = [owner for owner in owners if fnmatchcase(owner, pattern)]
        if not matched:
            raise item.error(
                f"'{pattern}' matches no joint and no actuator" + nearest(pattern, owners),
                "name a movable joint",
            )
        drive |= dict.fromkeys(matched, terms)
    drive |= exact
    return {owner: drive[owner] for owner in owners if drive.get(owner)}


def read_stribeck(entry: Entry, scope: Scope, drive: Mapping[str, tuple[str, ...]]) -> dict[str, float]:
    """`stribeck:`, names or globs to the speeds of their terms Fk, in [rad/s] or [m/s]."""
    owners = [owner for owner, symbols in drive.items() if set(symbols) & set(SEARCHED)]
    speeds: dict[str, float] = {}
    for pattern, item in entry.mapping().items():
        matched = [owner for owner in owners if fnmatchcase(owner, pattern)]
        if not matched:
            text = f"'{pattern}' matches no joint and no actuator with a drive term Fk"
            raise item.error(text + (nearest(pattern, owners) if owners else ""), "add Fk under `drive:`")
        speed = scope.positive(item, "the Stribeck speed", "give rad/s or m/s, e.g. 0.05")
        speeds |= dict.fromkeys(matched, speed)
    return speeds


def _terms(entry: Entry) -> tuple[str, ...]:
    if is_none(entry):
        return ()
    names = drive_names()
    listed = [item.choice(names) for item in entry.items()]
    return tuple(symbol for symbol in names if symbol in listed)


def is_none(entry: Entry) -> bool:
    """Whether drive terms are switched off here: `none` or nothing."""
    return entry.value is None or entry.value == "none"


def read_couplings(
    entry: Entry, scope: Scope, joints: Sequence[Joint], source: Sequence[Coupling]
) -> tuple[Coupling, ...]:
    """`couplings:` of the file and those of its source, chains resolved."""
    couplings = {coupling.joint: coupling for coupling in source}
    places: dict[str, Entry] = {}
    for item in entry.items():
        fields = item.fields(("joint", "of", "offset"), required=("joint", "of"))
        name = _simple(fields["joint"], fields["joint"].text(), joints)
        if name in couplings:
            raise fields["joint"].error(f"'{name}' is defined by two couplings", "keep one")
        of = {_simple(e, c, joints): scope.number(e) for c, e in fields["of"].mapping().items()}
        offset = scope.number(fields["offset"]) if "offset" in fields else 0.0
        couplings[name], places[name] = Coupling(name, of, offset), item

    def refuse(name: str, text: str) -> InputError:
        return places.get(name, entry).error(text, "remove the cycle of couplings")

    return resolve_couplings(couplings, refuse)


def _simple(entry: Entry, name: str, joints: Sequence[Joint]) -> str:
    """A coordinate that is a single number, not part of a quaternion or a free pose."""
    check_coordinate(entry, name, joints)
    kind = coordinate_joints(joints)[name].kind
    if kind in (JointKind.SPHERICAL, JointKind.FREE):
        raise entry.error(f"'{name}' belongs to a {kind} joint and cannot be coupled", "couple single axes")
    return name


def read_terms(entry: Entry, scope: Scope, joints: Sequence[Joint]) -> tuple[Term, ...]:
    """`terms:`; the values of symbols are put into the expressions, only signals stay free."""
    positions = {name for joint in joints for name in joint.positions}
    coordinates = coordinate_joints(joints)
    terms = []
    for item in entry.items():
        fields = item.fields(("name", "joint", "expression"), required=("name", "joint", "expression"))
        joint = check_coordinate(fields["joint"], fields["joint"].text(), joints)
        where = fields["expression"]
        expression = parse(where.written, file=entry.file, place=where.place).bound(scope.symbols)
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
                place.known(member, sorted(bodies | joints), "body or joint")
            if len(members) < 2:
                raise group.error("a tie needs two members or more", "e.g. [[leg1, leg2, leg3]]")
            if not (set(members) <= bodies or set(members) <= joints):
                raise group.error("a tie joins bodies with bodies or joints with joints", "split the list")
            groups.append(members)
        ties[name] = Tie(name, tuple(groups))
    return ties


def read_known(entry: Entry, scope: Scope, robot: Mechanism) -> dict[str, float]:
    """`known:` or `prior:`, values of parameters by full name (e.g. Ia_motor1)."""
    names = [parameter.name for parameter in parameter_table(robot)]
    values = {}
    for name, item in entry.mapping().items():
        values[item.known(name, names, "parameter", "see 'dynid info'")] = scope.number(item)
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
    largest `condition`. A glob stands for all joints and actuators that it matches; a name overrides it.
    """
    limits = {name: dict(values) for name, values in parts.limits.items()}
    if entry is None:
        return limits
    valid = dict.fromkeys(parts.bodies, _BODY_KEYS) | _limit_keys(parts, actuators)
    moving = [name for name, keys in valid.items() if keys == _LIMIT_KEYS]
    for pattern, item in sorted(entry.mapping().items(), key=lambda given: given[0] in valid):
        names = [pattern] if pattern in valid else [name for name in moving if fnmatchcase(name, pattern)]
        if not names:
            raise item.error(f"unknown joint '{pattern}'" + nearest(pattern, valid), "name a movable joint")
        given = {key: _limit(value, scope) for key, value in item.fields(valid[names[0]]).items()}
        for name in names:
            limits.setdefault(name, {}).update(given)
    return limits


def _limit_keys(parts: Parts, actuators: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Valid names under `limits:` and, for each, its valid keys."""
    keys: dict[str, tuple[str, ...]] = {"cables": ("tension",), "singularity": ("condition",)}
    for joint in parts.joints:
        keys |= dict.fromkeys(joint.coordinates, _LIMIT_KEYS)
        if joint.has_quaternion:
            suffixes = tuple(name[len(joint.name) + 1 :] for name in joint.positions)
            keys[joint.name] = (*suffixes, "roll", "pitch", "yaw", "dq", "ddq")
    keys |= dict.fromkeys(actuators, _LIMIT_KEYS)
    return keys | {cable.name: (*_LIMIT_KEYS, "tension") for cable in parts.cables}


def _limit(entry: Entry, scope: Scope) -> float | tuple[float, float]:
    """A positive bound, or `[low, high]`; one number for q applies in both directions."""
    if not entry.is_list:
        bound = scope.positive(entry, "the limit", "give a positive bound or [low, high]")
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
        item.known(name, positions, "coordinate", "name a joint that moves")
        values[name] = scope.number(item)
    return values
