"""Mechanism: what the robot is; its parts are checked once, when it is built, then it is frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS, LOADED
from dynid.mechanism.frame import Frame, identity_frame
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.shown import line_of, text_of

if TYPE_CHECKING:
    from dynid.common.expression import Expression
    from dynid.common.notices import Notice
    from dynid.mechanism.cable import Cable, Swivel
    from dynid.mechanism.force_sensor import ForceSensor
    from dynid.mechanism.joint import Joint, Loop
    from dynid.mechanism.measured_pose import MeasuredPose
    from dynid.mechanism.mesh_file import MeshShape


BASE = "base"


@dataclass(frozen=True)
class Body:
    """A moving body with its fixed and prior parameter values.

    Attributes:
        parameters: Which of the ten parameters the body has; the others are zero.
        known: Values taken as exact; they move to the right-hand side.
        prior: Values printed beside the estimates; only `consistent` and standard sets use them.
    """

    name: str
    parameters: tuple[str, ...] = SYMBOLS
    known: Mapping[str, float] = field(default_factory=dict)
    prior: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Capsule:
    """All points within a radius of a segment, in the body's frame.

    Attributes:
        start, end: Of the segment, body frame, shape (3,), in [m].
        radius: In [m].
    """

    start: Float[Array, "3"]
    end: Float[Array, "3"]
    radius: float


@dataclass(frozen=True)
class Actuator:
    """A motor: its velocity is the sum of `on[coordinate]` times the coordinate's velocity.

    `turns` says whether it is rotary; None: as the first coordinate it drives.
    """

    name: str
    on: Mapping[str, float]
    turns: bool | None = None


@dataclass(frozen=True)
class Coupling:
    """A linear dependence of coordinates: q_joint = sum(of[c] q_c) + offset (mimic, gears)."""

    joint: str
    of: Mapping[str, float]
    offset: float = 0.0


@dataclass(frozen=True)
class Term:
    """One row of a declared extra column: `expression` in the equation of coordinate `joint`.

    Terms of one name are one column (one parameter) acting in several equations. `unit` is that of the
    parameter; None: the equation's per unit of the expression. `friction` names a drive term of another
    package that was declared in this way.
    """

    name: str
    joint: str
    expression: Expression
    unit: str | None = None
    friction: str = ""


@dataclass(frozen=True, eq=False)
class Payload:
    """One more body, mounted in some logs only, fixed to `body` at `frame`."""

    name: str
    body: str
    frame: Frame = field(default_factory=identity_frame)
    known: Mapping[str, float] = field(default_factory=dict)
    prior: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Tie:
    """Members (bodies or joints) whose parameters are equal, entry by entry."""

    name: str
    groups: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A tree of bodies with its drives: everything the equations need, nothing of the log.

    Attributes:
        gravity: In the base frame, shape (3,), in [m/s^2].
        joints: Parents before children; the child of each is one body.
        bodies: By name; every child of a joint has an entry, in joint order.
        actuators: In the order of tau_1.. of a log.
        measured: Joints, or single position coordinates of them, in the order of q_1.. of a log.
        measured_sigma: Measured position coordinate -> its standard deviation where given,
            in [rad] or [m] (entries of a quaternion: of the attitude, in [rad]): if there are more
            coordinates than degrees of freedom, these weight the least-squares pose.
        poses: Bodies whose pose is measured directly. Their massless chains and welds are among
            `joints`, `bodies` and `loops`, and what is measured of them among `measured`.
        drive: Owner (coordinate or actuator name) -> drive symbols, in the order of DRIVE_SYMBOLS.
        stribeck: Owner of a term Fk -> the speed vs of its exp(-(dq / vs)^2), in [rad/s] or [m/s], where
            it is known.
        capsules: Body (or `base`) -> the space it occupies, for collision-free motions.
        meshes: Body (or `base`) -> collision meshes, which `mesh_capsules.py` puts capsules around.
        loops: Closures of the tree; `couplings` are closures too, but linear.
        cables: Closures too: those without a given length have a coordinate, a massless slide among
            `joints` under the cable's name. `swivels` likewise have a hinge each.
        start: Position coordinates of a pose near which the loops are first closed (others zero).
        known: Further parameters by full name (e.g. Ia_motor1) taken as exact.
        prior: Further parameters by full name, printed beside the estimates as those of bodies are.
        order: Bodies, joints or globs of parameter names considered first for the base set.
        geometry: Named dimensions of the description (symbols, and names given to bare numbers).
        angles: Those of them that are angles; the others are lengths.
        free: Coordinates that describe the free motion with locked cables; empty: chosen.
        nullspace: Directions of that motion: `orthonormal`, or per unit velocity of the `free` coordinates.
        uncertain: Quantities of the description (`dynid.mechanism.description`) -> standard deviation, in [m]
            or [rad], where one is given.
        zeros: Coordinate -> zero that its joint frame contains: position = logged + zero, in [rad] or [m].
        sources: Files of the URDF or MJCF below the description, included ones too.
        rebuild: The same mechanism with other values of `geometry`; None when nothing is named.
        force_sensor: The sensor whose equations are used, see `with_force_sensor`; None: those of the joints.
        mounted_model: Of what is mounted on the robot and identified instead of it; empty: the robot itself.
    """

    name: str
    gravity: Float[Array, "3"]
    joints: tuple[Joint, ...]
    bodies: Mapping[str, Body]
    actuators: tuple[Actuator, ...]
    measured: tuple[str, ...]
    drive: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    couplings: tuple[Coupling, ...] = ()
    loops: tuple[Loop, ...] = ()
    start: Mapping[str, float] = field(default_factory=dict)
    terms: tuple[Term, ...] = ()
    known: Mapping[str, float] = field(default_factory=dict)
    prior: Mapping[str, float] = field(default_factory=dict)
    ties: Mapping[str, Tie] = field(default_factory=dict)
    payloads: Mapping[str, Payload] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    model: str = "inverse"
    geometry: Mapping[str, float] = field(default_factory=dict)
    angles: frozenset[str] = frozenset()
    rebuild: Callable[[Mapping[str, float]], Mechanism] | None = field(default=None, repr=False)
    notices: tuple[Notice, ...] = ()
    file: str | None = None
    sources: tuple[str, ...] = ()
    uncertain: Mapping[str, float] = field(default_factory=dict)
    zeros: Mapping[str, float] = field(default_factory=dict)
    measured_sigma: Mapping[str, float] = field(default_factory=dict)
    poses: tuple[MeasuredPose, ...] = ()
    stribeck: Mapping[str, float] = field(default_factory=dict)
    capsules: Mapping[str, tuple[Capsule, ...]] = field(default_factory=dict)
    meshes: Mapping[str, tuple[MeshShape, ...]] = field(default_factory=dict)
    cables: tuple[Cable, ...] = ()
    swivels: tuple[Swivel, ...] = ()
    free: tuple[str, ...] = ()
    nullspace: str = "orthonormal"
    force_sensor: ForceSensor | None = None
    mounted_model: str = ""

    __repr__ = line_of
    __str__ = text_of

    def __post_init__(self) -> None:
        check_parts(self)

    @cached_property
    def is_closed(self) -> bool:
        """Whether loops or cables close the tree."""
        return bool(self.loops or self.cables)

    @property
    def loaded_bodies(self) -> tuple[str, ...]:
        """What the robot carries: the tool behind a force sensor, and payloads."""
        tools = () if self.force_sensor is None else (self.force_sensor.tool,)
        return (*tools, *self.payloads)

    @cached_property
    def joint_of_body(self) -> dict[str, Joint]:
        """The joint that carries each body."""
        return {joint.child: joint for joint in self.joints}

    @cached_property
    def joint_of_coordinate(self) -> dict[str, Joint]:
        """The joint to which each velocity coordinate belongs."""
        return {name: joint for joint in self.joints for name in joint.coordinates}

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of all velocity coordinates of the tree, in joint order."""
        return tuple(self.joint_of_coordinate)

    @cached_property
    def positions(self) -> tuple[str, ...]:
        """Names of all position coordinates of the tree, in joint order."""
        return tuple(name for joint in self.joints for name in joint.positions)

    @cached_property
    def measured_positions(self) -> tuple[str, ...]:
        """Position names of the measured joints, in the order of q_1.. of a log."""
        joints = {joint.name: joint for joint in self.joints}
        return tuple(
            name
            for measured in self.measured
            for name in (joints[measured].positions if measured in joints else (measured,))
        )

    @cached_property
    def joint_of_position(self) -> dict[str, Joint]:
        """The joint to which each position coordinate belongs."""
        return {name: joint for joint in self.joints for name in joint.positions}

    @cached_property
    def actuator_map(self) -> Float[Array, "a j"]:
        """C with dq_actuator = C dq; its transpose maps efforts to the joints (B = C^T)."""
        index = {name: i for i, name in enumerate(self.coordinates)}
        C = np.zeros((len(self.actuators), len(index)))
        for row, actuator in enumerate(self.actuators):
            for coordinate, ratio in actuator.on.items():
                C[row, index[coordinate]] = ratio
        return C


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
        if (
            set(symbols) & set(LOADED)
            and owner in coordinates
            and not any(owner in a.on for a in robot.actuators)
        ):
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
