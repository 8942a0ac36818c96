"""The quantities of a description that may be uncertain or unknown, and the robot at other values of them.

| name               | quantity                                                          | unit      |
|--------------------|-------------------------------------------------------------------|-----------|
| `d3`, `x_elbow`    | a named dimension: a symbol, or the name given to a bare length   | [m], [rad] |
| `d3 at elbow1`     | the same at one of its places: a joint, body or loop (in tests only) | [m], [rad] |
| `distance of m1, m2 from base` | equal lengths of like parts, changed together (in tests only) | [m]  |
| `zero_NAME`        | zero of a joint: its position is the logged one plus this         | [rad], [m] |
| `tilt_1`, `tilt_2` | rotation of gravity about the two base axes that are farther from it | [rad]  |

All of them act through the mechanism alone: a zero moves the joint frame, so logs stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.change import Change, in_file
from dynid.common.errors import InputError, nearest
from dynid.mechanism.frame import Frame
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.like_lengths import WORDS, like_lengths

if TYPE_CHECKING:
    from dynid.mechanism.mechanism import Coupling, Mechanism

ZERO = "zero_"
AT = " at "
TILTS = ("tilt_1", "tilt_2")
_SIMPLE = (JointKind.REVOLUTE, JointKind.PRISMATIC)


def at_values(mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
    """The robot with other values of some quantities of its description; all else stays.

    Args:
        mechanism: The robot, also one whose payloads or drive terms an experiment has changed.
        values: Name -> value, see the table of this module; tilts are relative to the robot's gravity.
    """
    values = of_each(mechanism, values)
    sizes = {name: value for name, value in values.items() if name in mechanism.geometry}
    zeros = {name: value for name, value in values.items() if name.startswith(ZERO) and name not in sizes}
    tilt = [values.get(name, 0.0) for name in TILTS]
    for name in values:
        if name not in sizes and name not in zeros and name not in TILTS:
            raise InputError(f"no dimension '{name}'" + nearest(name, mechanism.geometry))
    changed = _resized(mechanism, sizes) if sizes else mechanism
    if zeros:
        changed = with_zeros(
            changed, {**changed.zeros, **{name.removeprefix(ZERO): x for name, x in zeros.items()}}
        )
    return replace(changed, gravity=tilted(changed.gravity, *tilt)) if any(tilt) else changed


def of_each(mechanism: Mechanism, values: Mapping[str, float]) -> dict[str, float]:
    """The same values, with one for each dimension where a length of like parts is given."""
    each: dict[str, float] = {}
    for name, value in values.items():
        group = like_lengths(mechanism).get(name) if name not in mechanism.geometry else None
        names = {name: value} if group is None else group.names
        each |= {x: value if group is None else mechanism.geometry[x] * value / group.length for x in names}
    return each


def current(mechanism: Mechanism, name: str) -> float:
    """Value of a quantity of the description, in [m] or [rad]."""
    symbol = name.partition(AT)[0]
    if symbol in mechanism.geometry:
        return mechanism.geometry[symbol]
    if name in like_lengths(mechanism):
        return like_lengths(mechanism)[name].length
    return 0.0 if name in TILTS else mechanism.zeros.get(name.removeprefix(ZERO), 0.0)


def doubt_of(mechanism: Mechanism) -> float:
    """Largest standard deviation of the dimensions and zeros of a description, in [m] or [rad]; else 0."""
    return max((sigma for name, sigma in mechanism.uncertain.items() if name not in TILTS), default=0.0)


def unknown_change(name: str) -> Change:
    """The key that estimates a dimension with the parameters; empty: it needs a symbol of its own first."""
    return {} if AT in name or name.startswith(WORDS) else {"unknown": {"symbols": [name]}}


def unknown_entry(name: str) -> str:
    """The key that estimates a dimension with the parameters, in words."""
    symbol, _, place = name.partition(AT)
    if name.startswith(WORDS):
        return "describe it by one symbol in a robot file, and list this under `unknown: {symbols: ...}`"
    if place:
        return (
            f"give '{symbol}' at '{place}' a symbol of its own, and list it under `unknown: {{symbols: ...}}`"
        )
    return in_file(unknown_change(name))


def at_places(mechanism: Mechanism, other: Mechanism) -> dict[str, Mechanism]:
    """Place -> the robot that differs from `mechanism` there alone, for a dimension used at several places.

    A wrong length of one leg is no wrong symbol, if all legs are described by it. A place is a joint, a rod
    by its length, or a body by the ends of loops on it; if all of them are on one body, the end of each loop.

    Args:
        mechanism: As described.
        other: The same with another value of one dimension.
    """
    joints = {
        joint.name: (k,)
        for k, (joint, moved) in enumerate(zip(mechanism.joints, other.joints, strict=True))
        if _differs(joint.placement, moved.placement) or _differs(joint.body, moved.body)
    }
    rods, ends = [], []
    for k, (loop, moved) in enumerate(zip(mechanism.loops, other.loops, strict=True)):
        rods += [(loop.name, k, "length")] if loop.length != moved.length else []
        ends += [(loop.body_a, k, "a")] if _differs(loop.a, moved.a) else []
        ends += [(loop.body_b, k, "b")] if _differs(loop.b, moved.b) else []
    if not joints and not rods and len({body for body, *_ in ends}) == 1:
        ends = [(mechanism.loops[k].name, k, end) for _, k, end in ends]
    closures: dict[str, list[tuple[int, str]]] = {}
    for place, k, part in (*rods, *ends):
        closures.setdefault(place, []).append((k, part))
    places = dict.fromkeys((*joints, *closures))
    if len(places) < 2:
        return {}
    return {
        place: _changed_at(mechanism, other, joints.get(place, ()), closures.get(place, ()))
        for place in places
    }


def _changed_at(
    mechanism: Mechanism, other: Mechanism, joints: Sequence[int], closures: Sequence[tuple[int, str]]
) -> Mechanism:
    """The robot with some joints, and some parts of loops, of another one."""
    tree, loops = list(mechanism.joints), list(mechanism.loops)
    for k in joints:
        tree[k] = other.joints[k]
    for k, part in closures:
        loops[k] = replace(loops[k], **{part: getattr(other.loops[k], part)})
    return replace(mechanism, joints=tuple(tree), loops=tuple(loops))


def _differs(frame: Frame, other: Frame) -> bool:
    return bool(np.any(frame.p != other.p) or np.any(frame.R != other.R))


def unit_of(mechanism: Mechanism, name: str) -> str:
    """Unit of a quantity of the description: `m` or `rad`."""
    symbol = name.partition(AT)[0]
    if symbol in mechanism.geometry:
        return "rad" if symbol in mechanism.angles else "m"
    if name in like_lengths(mechanism):
        return "m"
    slides = {joint.name for joint in mechanism.joints if joint.kind is JointKind.PRISMATIC}
    return "m" if name.removeprefix(ZERO) in slides else "rad"


def tilted(gravity: Float[Array, "3"], first: float, second: float) -> Float[Array, "3"]:
    """Gravity turned about the two base axes that are farther from it, in [rad]; its size stays."""
    axes = np.eye(3)[[i for i in range(3) if i != int(np.argmax(np.abs(gravity)))]]
    return np.asarray(_rotation(first * axes[0] + second * axes[1]) @ gravity)


def zero_names(mechanism: Mechanism) -> tuple[str, ...]:
    """Measured coordinates whose zero can be moved: hinges and slides, without cables and their pulleys."""
    virtual = {cable.name for cable in mechanism.cables} | {swivel.name for swivel in mechanism.swivels}
    virtual |= {name for pose in mechanism.poses for name in pose.joints}
    simple = {joint.name for joint in mechanism.joints if joint.kind in _SIMPLE} - virtual
    return tuple(name for name in mechanism.measured_positions if name in simple)


def with_zeros(mechanism: Mechanism, zeros: Mapping[str, float]) -> Mechanism:
    """The robot whose joints are at logged position plus zero.

    The joint frame moves by the zero along its own motion: T(q + z) = T_0 M(z) M(q).

    Args:
        mechanism: With the zeros that it has (`zeros`), which are replaced.
        zeros: Coordinate -> zero, in [rad] or [m].
    """
    shifts = {name: value - mechanism.zeros.get(name, 0.0) for name, value in zeros.items()}
    names = {joint.name for joint in mechanism.joints if joint.kind in _SIMPLE}
    for name in shifts:
        if name not in names:
            raise InputError(
                f"'{name}' has no zero that could be moved" + nearest(name, sorted(names)),
                file=mechanism.file,
                remedy="name a revolute or prismatic joint",
            )
    joints = tuple(_moved(joint, shifts.get(joint.name, 0.0)) for joint in mechanism.joints)
    start = {name: value - shifts.get(name, 0.0) for name, value in mechanism.start.items()}
    couplings = tuple(_offset(coupling, shifts) for coupling in mechanism.couplings)
    rebuild = mechanism.rebuild
    return replace(
        mechanism,
        joints=joints,
        start=start,
        couplings=couplings,
        zeros=dict(zeros),
        rebuild=None if rebuild is None else partial(_rebuilt, rebuild, dict(zeros)),
    )


def _rebuilt(
    rebuild: Callable[[Mapping[str, float]], Mechanism],
    zeros: Mapping[str, float],
    values: Mapping[str, float],
) -> Mechanism:
    """The robot of other dimensions with the same zeros."""
    return with_zeros(rebuild(values), zeros)


def _moved(joint: Joint, shift: float) -> Joint:
    if shift == 0.0:
        return joint
    axis = joint.axes[0]
    if joint.kind is JointKind.PRISMATIC:
        return replace(joint, placement=joint.placement @ Frame(np.eye(3), shift * axis))
    return replace(joint, placement=joint.placement @ Frame(_rotation(shift * axis), np.zeros(3)))


def _offset(coupling: Coupling, shifts: Mapping[str, float]) -> Coupling:
    """The same dependence of the moved joints: a follower's own zero is given by those it follows."""
    more = sum(ratio * shifts.get(name, 0.0) for name, ratio in coupling.of.items())
    return replace(coupling, offset=coupling.offset + more - shifts.get(coupling.joint, 0.0))


def _resized(mechanism: Mechanism, sizes: Mapping[str, float]) -> Mechanism:
    """The robot with other dimensions: only what depends on them is taken from the rebuilt description."""
    if mechanism.rebuild is None:
        return mechanism
    built = mechanism.rebuild({**mechanism.geometry, **sizes})
    payloads = {
        name: replace(payload, frame=built.payloads[name].frame) if name in built.payloads else payload
        for name, payload in mechanism.payloads.items()
    }
    return replace(
        mechanism,
        joints=built.joints,
        loops=built.loops,
        cables=built.cables,
        swivels=built.swivels,
        couplings=built.couplings,
        poses=built.poses,
        start=built.start,
        payloads=payloads,
        geometry=built.geometry,
    )


def _rotation(vector: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """Rotation by a vector, Rodrigues; angle in [rad]."""
    angle = float(np.linalg.norm(vector))
    if angle == 0.0:
        return np.eye(3)
    x, y, z = vector / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K))
