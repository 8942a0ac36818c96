"""Whether the motion in a table fits the robot and itself: at joints, and from one instant to the next.

Two bodies share the point of the joint between them, so both give its acceleration. Their relative
rotation is about the joint axis. Both can be checked at a single instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.notices import Notice, notice
from dynid.kinematics.tree import quaternion_rates
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import BASE
from dynid.motion.body_table import SPOKEN
from dynid.motion.differentiate import Derivatives, derivatives
from dynid.motion.settings import KINEMATIC
from dynid.projection.wrench import WrenchRows

_HELD = (JointKind.REVOLUTE, JointKind.UNIVERSAL, JointKind.SPHERICAL, JointKind.FIXED)
_ANGLE = np.deg2rad(0.5)  # between a joint's axis seen from its two sides
_MISFIT = 0.01  # of the size of what is compared: printed figures leave far less
_IN_TIME = 0.05  # the same for derivatives, whose own error comes on top
_GRAVITY = 0.1  # of g, by which a constant misfit may differ from gravity
# Factor between what is printed and what is derived -> what it looks like.
_FACTORS = {
    180.0 / np.pi: "degrees",
    np.pi / 180.0: "radians taken for degrees",
    1e3: "millimetres",
    1e-3: "a thousandth of the unit",
    1.0 / 9.80665: "multiples of g",
    -1.0: "the opposite sign",
}


def motion_notices(source: WrenchRows) -> tuple[Notice, ...]:
    """Where the motion of a table contradicts the robot's joints, or itself."""
    notices = [*_at_joints(source), *_in_time(source)]
    by_code: dict[str, Notice] = {}
    for warning in notices:  # one notice per code: a wrong column affects every body
        before = by_code.get(warning.code)
        by_code[warning.code] = (
            warning if before is None else replace(warning, text=f"{before.text}; {warning.text}")
        )
    return tuple(by_code.values())


def _at_joints(source: WrenchRows) -> Iterator[Notice]:
    """Attitudes, rates and accelerations of the two bodies of each joint."""
    for joint in source.mechanism.joints:
        child = source.table.bodies.index(joint.child)
        use = source.moved.fine[:, child].copy()
        if joint.parent != BASE:
            use &= source.moved.fine[:, source.table.bodies.index(joint.parent)]
        if not use.any():
            continue
        yield from _attitudes(source, joint, use)
        yield from _rates(source, joint, use)
        if joint.kind in _HELD:
            yield from _accelerations(source, joint, use)


def _attitudes(source: WrenchRows, joint: Joint, use: Bool[Array, "n"]) -> Iterator[Notice]:
    if joint.kind is not JointKind.REVOLUTE:
        return
    by_child, other = _axes(source, joint, use)
    off = float(np.max(np.arccos(np.clip(np.sum(by_child * other, axis=1), -1.0, 1.0))))
    if off > _ANGLE:
        yield notice(
            "attitude-misfit",
            joint=joint.name,
            parent=joint.parent,
            child=joint.child,
            degrees=np.rad2deg(off),
        )


def _axes(
    source: WrenchRows, joint: Joint, use: Bool[Array, "n"]
) -> tuple[Float[Array, "k 3"], Float[Array, "k 3"]]:
    """A revolute joint's axis in the world, by the child's attitude and by the parent's."""
    child = source.table.bodies.index(joint.child)
    by_child = source.moved.R[use, child] @ (joint.body.R.T @ joint.axes[0])
    in_parent = joint.placement.R @ joint.axes[0]
    if joint.parent == BASE:
        return by_child, np.broadcast_to(in_parent, by_child.shape)
    return by_child, source.moved.R[use, source.table.bodies.index(joint.parent)] @ in_parent


def _rates(source: WrenchRows, joint: Joint, use: Bool[Array, "n"]) -> Iterator[Notice]:
    """Relative angular velocity across the axis of a revolute joint, or of a joint that does not turn."""
    if joint.kind not in (JointKind.REVOLUTE, JointKind.FIXED, JointKind.PRISMATIC):
        return
    child, moved = source.table.bodies.index(joint.child), source.moved
    child_rate = np.einsum("nij,nj->ni", moved.R[use, child], moved.omega[use, child])
    other = np.zeros_like(child_rate)
    if joint.parent != BASE:
        parent = source.table.bodies.index(joint.parent)
        other = np.einsum("nij,nj->ni", moved.R[use, parent], moved.omega[use, parent])
    relative = child_rate - other
    if joint.kind is JointKind.REVOLUTE:
        axis = _axes(source, joint, use)[0]
        relative = relative - np.sum(relative * axis, axis=1, keepdims=True) * axis
    size = _rms(child_rate) + _rms(other)
    if _rms(relative) > _MISFIT * size + _printed(source, "omega", child):
        yield notice(
            "rates-misfit",
            child=joint.child,
            parent=joint.parent,
            joint=joint.name,
            off=_rms(relative),
            size=size,
        )


def _accelerations(source: WrenchRows, joint: Joint, use: Bool[Array, "n"]) -> Iterator[Notice]:
    """Acceleration of the joint's point, computed from each of its two bodies."""
    child = source.table.bodies.index(joint.child)
    by_child, size = _point(source, child, source.points.inner[child], use)
    other = np.zeros_like(by_child)
    if joint.parent != BASE:
        parent = source.table.bodies.index(joint.parent)
        other, more = _point(source, parent, source.points.outer[child][use], use)
        size += more
    off, g = by_child - other, source.mechanism.gravity
    if _rms(off) <= _MISFIT * size + _printed(source, "acceleration", child):
        return
    misfit, length = _rms(off), np.linalg.norm(g)
    for sign, how, kind in ((-1.0, "subtracted from", "proper"), (1.0, "added to", KINEMATIC)):
        if length > 0 and _rms(off - sign * g) < _GRAVITY * length:
            yield notice(
                "acceleration-misfit",
                "gravity",
                joint=joint.name,
                child=joint.child,
                parent=joint.parent,
                off=misfit,
                size=size,
                how=how,
                kind=kind,
            )
            return
    yield notice(
        "acceleration-misfit",
        joint=joint.name,
        child=joint.child,
        parent=joint.parent,
        off=misfit,
        size=size,
    )


def _point(
    source: WrenchRows, body: int, point: Float[Array, "*n 3"], use: Bool[Array, "n"]
) -> tuple[Float[Array, "k 3"], float]:
    """Acceleration of a point of a body in the world, and the size of its parts, in [m/s^2]."""
    moved = source.moved
    omega, alpha, a = moved.omega[use, body], moved.alpha[use, body], moved.a[use, body]
    turning = np.cross(alpha, point) + np.cross(omega, np.cross(omega, point))
    total = a + np.einsum("nij,nj->ni", moved.R[use, body], turning)
    return total, _rms(a) + _rms(turning)


def _printed(source: WrenchRows, quantity: str, body: int) -> float:
    """What printing may do to a vector, in its unit."""
    figures = source.table.figures.get(quantity)
    return 0.0 if figures is None else 10.0 * float(np.max(figures[:, body], initial=0.0))


def _in_time(source: WrenchRows) -> Iterator[Notice]:
    """Printed rates and accelerations against derivatives of what they are the rates of."""
    given, moved = source.table.signals, source.moved
    tests: list[tuple[str, str, int, Callable[[Array, Derivatives], Array]]] = []
    values = {"omega": moved.omega, "alpha": moved.alpha, "acceleration": moved.a}
    if "omega" in given and "quaternion" in given:
        tests.append(("omega", "quaternion", 1, lambda x, d: quaternion_rates(x, d.first, d.second)[1]))
    if "alpha" in given and "omega" in given:
        tests.append(("alpha", "omega", 1, lambda x, d: d.first))
    if "acceleration" in given and "position" in given:
        tests.append(("acceleration", "position", 2, lambda x, d: d.second))
    for quantity, base, order, reduce in tests:
        x = moved.omega if base == "omega" else given[base]
        for body, name in enumerate(source.table.bodies):
            misfit = _misfit(source, values[quantity][:, body], x[:, body], body, order, reduce)
            if misfit:
                rate, of = SPOKEN[quantity], SPOKEN[base]
                yield notice("derivative-misfit", rate=rate, body=name, quantity=of, misfit=misfit)


def _misfit(
    source: WrenchRows,
    printed: Float[Array, "n 3"],
    x: Float[Array, "n c"],
    body: int,
    order: int,
    reduce: Callable[[Array, Derivatives], Array],
) -> str:
    """How a printed derivative differs from the one along the instants; empty where it does not."""
    for run in np.unique(source.table.runs):
        at = np.flatnonzero(source.moved.fine[:, body] & (source.table.runs == run))
        slopes = derivatives(source.table.t[at], x[at]) if len(at) else None
        if slopes is None:
            continue
        error, size = slopes.roughness(order)
        if size == 0.0 or error > _IN_TIME * size:
            continue  # instants too far apart, or no motion: not testable
        derived, given = reduce(x[at], slopes)[slopes.inner], printed[at][slopes.inner]
        if _rms(given - derived) > _IN_TIME * max(_rms(given), _rms(derived)) + 5.0 * error:
            ratio = float(np.sum(given * derived) / np.sum(derived**2))
            like = [words for factor, words in _FACTORS.items() if abs(ratio / factor - 1.0) < 0.02]
            return f"{ratio:.3g} times that" + (f", which looks like {like[0]}" if like else "")
    return ""


def _rms(x: Float[Array, "k 3"]) -> float:
    return float(np.sqrt(np.mean(np.sum(x**2, axis=1)))) if len(x) else 0.0
