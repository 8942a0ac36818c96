"""Whether the motion in a table fits the robot and itself: at joints, and from one instant to the next.

Two bodies share the point of the joint between them, so both give its acceleration. Their relative
rotation is about the joint axis. Both can be checked at a single instant.

Tests of a fitted table: one mass in all directions, and masses that are positive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.cases.wrench_table.readings import balance_residual
from dynid.common.arrays import Array, Bool, Float
from dynid.common.distributions import student_tails
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.kinematics.tree import quaternion_rates
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import BASE
from dynid.motion.body_table import SPOKEN
from dynid.motion.differentiate import Derivatives, derivatives
from dynid.motion.settings import BODY, KINEMATIC, PARENT
from dynid.projection.wrench import WrenchRows
from dynid.statistics.estimate import ResidualTest
from dynid.statistics.uncertainty import student_t95

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
    length = np.linalg.norm(g)
    rest = _rms(off)
    for sign, how, kind in ((-1.0, "subtracted from", "proper"), (1.0, "added to", KINEMATIC)):
        if length > 0 and _rms(off - sign * g) < _GRAVITY * length:
            yield notice(
                "acceleration-misfit",
                "gravity",
                joint=joint.name,
                child=joint.child,
                parent=joint.parent,
                off=rest,
                size=size,
                how=how,
                kind=kind,
            )
            return
    yield notice(
        "acceleration-misfit", joint=joint.name, child=joint.child, parent=joint.parent, off=rest, size=size
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


_AXES = ("x", "y", "z")
_SEEN = 1e-6  # of the acceleration (gravity included): with less along a direction the mass is not testable
_SURE, _MATTERS = 1e-3, 0.01  # three printed figures leave some thousandths
_TILE = 2048
_BALANCED = 0.05  # what a balance may leave of the wrenches to be called one


@dataclass(frozen=True, eq=False)
class DirectionMass:
    """The mass of a body by the forces along one direction of the world [Wrench, eq. 17, Table 2].

    Attributes:
        value: In [kg].
        sigma: By what is left along this direction, in [kg].
        dof: Its degrees of freedom.
    """

    body: str
    axis: str
    value: float
    sigma: float
    dof: int


def direction_masses(sources: Sequence[WrenchRows], chi: Float[Array, "p"]) -> tuple[DirectionMass, ...]:
    """Masses along the world's x, y and z, all other parameters as estimated.

    With e a direction, M_e = sum a_e (F_e - others_e) / sum a_e^2, a the acceleration minus gravity.

    Args:
        sources: Equations of the tables.
        chi: Standard parameters, shape (p,), SI.
    """
    index = {parameter.name: i for i, parameter in enumerate(sources[0].parameters)}
    masses = []
    for name in dict.fromkeys(name.rsplit(" ", 1)[0] for name in sources[0].directions.names):
        mass = index.get(f"M_{name}")
        if mass is not None:
            a, force = (
                np.concatenate(x) for x in zip(*(_forces(s, name, chi, mass) for s in sources), strict=True)
            )
            masses += _along_axes(name, a, force)
    return tuple(masses)


def _forces(
    source: WrenchRows, name: str, chi: Float[Array, "p"], mass: int
) -> tuple[Float[Array, "n 3"], Float[Array, "n 3"]]:
    """Acceleration minus gravity, and the force that the mass alone explains, world axes."""
    body = source.table.bodies.index(name)
    k = [block.body for block in source.blocks].index(body)
    others = chi.copy()
    others[mass] = 0.0
    rows, factors = slice(6 * k, 6 * k + 3), source.layout.coefficients(others)
    accelerations, forces = [np.zeros((0, 3))], [np.zeros((0, 3))]
    for at, packed, weights in source.rows(0, len(source.table.t), _TILE):
        fine = at + np.flatnonzero(weights[6 * k] > 0)
        rest = (packed[source.layout.start[1:] - 1] - source.layout.sums(packed, factors))[rows]
        accelerations.append(source.moved.a[fine, body] - source.mechanism.gravity)
        forces.append(np.einsum("nij,nj->ni", source.moved.R[fine, body], rest.T[fine - at]))
    return np.concatenate(accelerations), np.concatenate(forces)


def _along_axes(name: str, a: Float[Array, "n 3"], force: Float[Array, "n 3"]) -> list[DirectionMass]:
    squares = np.sum(a**2, axis=0)
    masses = []
    for i, axis in enumerate(_AXES):
        if squares[i] <= _SEEN**2 * squares.sum() or len(a) < 2:
            continue
        value = float(a[:, i] @ force[:, i] / squares[i])
        left = force[:, i] - value * a[:, i]
        sigma = float(np.sqrt(left @ left / (len(a) - 1) / squares[i]))
        masses.append(DirectionMass(name, axis, value, sigma, len(a) - 1))
    return masses


def mass_tests(
    masses: Sequence[DirectionMass], values: dict[str, float]
) -> tuple[tuple[ResidualTest, ...], tuple[Notice, ...]]:
    """Whether the masses along all directions agree with the one that was estimated.

    Args:
        masses: Along the directions.
        values: Body -> its mass in [kg].
    """
    tests, odd = [], []
    for entry in masses:
        half = float(student_t95(entry.dof)) * entry.sigma
        off = entry.value - values[entry.body]
        p = student_tails(entry.dof, off / entry.sigma) if entry.sigma > 0 else 1.0
        warned = p < _SURE and abs(off) > _MATTERS * abs(values[entry.body])
        ci95 = (entry.value - half, entry.value + half)
        tests.append(
            ResidualTest("mass", f"{entry.body} along {entry.axis}", entry.value, "kg", ci95, p, warned)
        )
        if warned:
            odd.append(
                f"{entry.body} {entry.value:.5g} kg along {entry.axis} instead of {values[entry.body]:.5g}"
            )
    if not odd:
        return tuple(tests), ()
    return tuple(tests), (notice("mass-differs", shown=", ".join(odd[:4])),)


def mass_words(masses: Sequence[DirectionMass], values: dict[str, float]) -> str:
    """How far the masses along the directions are from the one of their body, and where most."""
    off = {mass: 100.0 * abs(mass.value / values[mass.body] - 1.0) for mass in masses if values[mass.body]}
    if not off:
        return "none"
    worst = max(off, key=lambda mass: off[mass])
    text = f"{len(masses)} masses from forces along world x, y, z agree with the estimated masses within"
    return f"{text} {off[worst]:.2g} % ({worst.body} along {worst.axis}); see the residual tests"


def check_signs(sources: Sequence[WrenchRows], masses: dict[str, float]) -> None:
    """Refuse masses that are negative as a rule and balance all the same: the wrenches are the reactions."""
    negative = [name for name, value in masses.items() if value < 0.0]
    if 2 * len(negative) <= len(masses):
        return
    if max(balance_residual(source) or 0.0 for source in sources) > _BALANCED:
        return
    by = sources[0].settings.exerted_by
    other = BODY if by == PARENT else PARENT
    action = "the body exerts on its parent" if by == PARENT else "the parent exerts on the body"
    raise InputError(
        f"the estimated masses of {', '.join(negative[:4])} are negative, e.g. {masses[negative[0]]:.4g} kg:"
        f" the wrenches seem to be those that {action}",
        file=sources[0].table.file,
        place="wrench",
        remedy=f"if this is true, set wrench: {{exerted_by: {other}}}; else check the sign of gravity",
    )
