"""Parts: what a reader found, before defaults are filled in; and those defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.errors import InputError
from dynid.mechanism.cable import Cable, Swivel
from dynid.mechanism.joint import Joint, JointKind, Loop
from dynid.mechanism.mechanism import BASE, Actuator, Body, Capsule, Coupling, Mechanism

if TYPE_CHECKING:
    from dynid.mechanism.measured_pose import MeasuredPose
    from dynid.mechanism.mesh_file import MeshShape
    from dynid.mechanism.robot_file.scope import Scope

URDF_DRIVE = ("Ia", "Fv", "Fs", "Off")
GRAVITY = (0.0, 0.0, -9.81)


@dataclass
class Parts:
    """Joints (parents first), bodies, couplings, loops and limits of a tree.

    Attributes:
        root: What the source calls the body that is the world here (`base`).
        gravity: In the base frame, in [m/s^2].
        actuators: Those that the source names; without any, defaults apply.
        start: Positions near which the source's loops close.
        prior: Drive parameters of the source by full name.
        capsules, meshes: Body -> capsules around its collision shapes, and its collision meshes.
        measured: Names of the measured joints, in the order of q_1.. of a log.
        measured_sigma: Position coordinate -> standard deviation, in [rad] or [m].
        poses: Measured poses of bodies; their massless joints and their loops are among the others.
        swivels: Encoders of pulleys; their joints are among the others.
    """

    name: str
    joints: list[Joint] = field(default_factory=list)
    bodies: dict[str, Body] = field(default_factory=dict)
    couplings: tuple[Coupling, ...] = ()
    loops: tuple[Loop, ...] = ()
    cables: tuple[Cable, ...] = ()
    limits: dict[str, dict[str, Any]] = field(default_factory=dict)
    root: str = BASE
    gravity: tuple[float, ...] = GRAVITY
    actuators: tuple[Actuator, ...] = ()
    start: dict[str, float] = field(default_factory=dict)
    prior: dict[str, float] = field(default_factory=dict)
    capsules: dict[str, tuple[Capsule, ...]] = field(default_factory=dict)
    meshes: dict[str, tuple[MeshShape, ...]] = field(default_factory=dict)
    measured: tuple[str, ...] = ()
    measured_sigma: dict[str, float] = field(default_factory=dict)
    poses: tuple[MeasuredPose, ...] = ()
    swivels: tuple[Swivel, ...] = ()


def driven_coordinates(joints: Iterable[Joint], couplings: Sequence[Coupling]) -> tuple[str, ...]:
    """Coordinates that have a motor unless the file says otherwise.

    All movable ones, except coupled coordinates and those of free joints: a floating base has no
    motor.
    """
    dependent = {coupling.joint for coupling in couplings}
    return tuple(
        name
        for joint in joints
        if joint.kind is not JointKind.FREE
        for name in joint.coordinates
        if name not in dependent
    )


def coordinate_clash(joints: Iterable[Joint]) -> tuple[str, str, str] | None:
    """A coordinate's name that two joints share, with them: `hip_1` of universal `hip` and joint `hip_1`."""
    owners: dict[str, str] = {}
    for joint in joints:
        for name in dict.fromkeys((*joint.positions, *joint.coordinates)):
            if name in owners:
                return name, owners[name], joint.name
            owners[name] = joint.name
    return None


def source_drive(
    parts: Parts, actuators: Sequence[Actuator], *, from_source: bool = False
) -> dict[str, tuple[str, ...]]:
    """Drive terms of a robot that a URDF or MJCF describes.

    Joints without a motor have those whose value it gives; else they count as light bearings.

    Args:
        from_source: Whether `actuators` are the source's own: then the joints that they drive have the
            terms, once each, as friction and armature belong to joints there.
    """
    if not from_source and not parts.loops:
        return dict.fromkeys(driven_coordinates(parts.joints, parts.couplings), URDF_DRIVE)
    driven = {name for actuator in actuators for name in actuator.on}
    coordinates = [name for joint in parts.joints for name in joint.coordinates]
    motors = [name for name in coordinates if name in driven] if from_source else [a.name for a in actuators]
    drive: dict[str, tuple[str, ...]] = dict.fromkeys(motors, URDF_DRIVE)
    for name in driven_coordinates(parts.joints, parts.couplings):
        given = tuple(symbol for symbol in URDF_DRIVE if parts.prior.get(f"{symbol}_{name}"))
        if name not in driven and given:
            drive[name] = given
    return drive


def source_actuators(parts: Parts, refuse: Callable[[str, str], InputError]) -> tuple[Actuator, ...]:
    """The source's own motors, else one on every driven coordinate; with loops they must be listed.

    Args:
        refuse: Makes an error from a text and a remedy.
    """
    if parts.actuators:
        return parts.actuators
    if parts.loops:
        raise refuse(
            "'actuators' is missing: a robot with loops has passive joints, and the file does not name them",
            "list the joints with motors in a robot file, e.g. actuators: [motor1, motor2]",
        )
    return tuple(Actuator(name, {name: 1.0}) for name in driven_coordinates(parts.joints, parts.couplings))


def mechanism_of(
    parts: Parts, scope: Scope, file: str, rebuild: Callable[[Mapping[str, float]], Mechanism]
) -> Mechanism:
    """The mechanism of a URDF or MJCF alone, with defaults for missing values."""
    actuators = source_actuators(
        parts, lambda text, remedy: InputError(text, file=file, place=f"robot '{parts.name}'", remedy=remedy)
    )
    return Mechanism(
        name=parts.name,
        gravity=np.array(parts.gravity),
        joints=tuple(parts.joints),
        bodies=parts.bodies,
        actuators=actuators,
        measured=default_measured(parts.joints, parts.couplings, actuators, closed=bool(parts.loops)),
        drive=source_drive(parts, actuators, from_source=bool(parts.actuators)),
        couplings=parts.couplings,
        loops=parts.loops,
        start=parts.start,
        prior=parts.prior,
        limits=parts.limits,
        capsules=parts.capsules,
        meshes=parts.meshes,
        geometry=scope.geometry,
        angles=scope.angles,
        rebuild=rebuild if scope.geometry else None,
        notices=scope.finish(),
        file=file,
    )


def default_measured(
    joints: Sequence[Joint],
    couplings: Sequence[Coupling],
    actuators: Sequence[Actuator],
    *,
    closed: bool = False,
) -> tuple[str, ...]:
    """The actuated joints in the order of their motors, then other free joints.

    In a tree the position of an unmeasured joint cannot be computed, so passive and free joints count
    as measured too. With loops (`closed`) it follows from the closure, and only actuated joints count.
    """
    owner = {name: joint.name for joint in joints for name in joint.coordinates}
    dependent = {coupling.joint for coupling in couplings}
    actuated = [owner[name] for actuator in actuators for name in actuator.on]
    if closed:
        return tuple(dict.fromkeys(actuated))
    others = [owner[name] for name in owner if name not in dependent]
    return tuple(dict.fromkeys(actuated + others))


def resolve_couplings(
    couplings: Mapping[str, Coupling], refuse: Callable[[str, str], InputError]
) -> tuple[Coupling, ...]:
    """Every dependent coordinate in terms of independent ones; chains are resolved.

    Args:
        couplings: By dependent coordinate.
        refuse: Makes an error from the coordinate's name and a text.
    """
    resolved: dict[str, Coupling] = {}
    waiting = dict(couplings)
    while waiting:
        ready = [
            name for name, coupling in waiting.items() if not any(other in waiting for other in coupling.of)
        ]
        if not ready:
            name = next(iter(waiting))
            raise refuse(name, f"coupled joint '{name}' depends on itself: {_circle(name, waiting)}")
        for name in ready:
            resolved[name] = _substituted(waiting.pop(name), resolved)
    return tuple(resolved[name] for name in couplings)


def _substituted(coupling: Coupling, resolved: Mapping[str, Coupling]) -> Coupling:
    of: dict[str, float] = {}
    offset = coupling.offset
    for name, ratio in coupling.of.items():
        inner = resolved.get(name)
        offset += ratio * inner.offset if inner else 0.0
        for independent, factor in (inner.of if inner else {name: 1.0}).items():
            of[independent] = of.get(independent, 0.0) + ratio * factor
    return Coupling(coupling.joint, of, offset)


def _circle(name: str, waiting: Mapping[str, Coupling]) -> str:
    """`a -> b -> a`, walking along what cannot be resolved."""
    path = [name]
    while path.count(path[-1]) < 2:
        path.append(next(other for other in waiting[path[-1]].of if other in waiting))
    return " -> ".join(path[path.index(path[-1]) :])
