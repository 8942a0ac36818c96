"""Closures as expressions: values f, Jacobian A, bias gamma, and the solution of A x = b by a fixed plan.

    A_d x_d = -gamma - A_i x_i       dependent coordinates from independent ones
    N^T w = w_i - A_i^T A_d^-T w_d    efforts along the freedoms: one transposed solution, no N

Equations are those of `kinematics.closure`, their order and pivots those of `kinematics.elimination`.

Length of a cable over its pulley, and angle of a swivel encoder, as expressions.

The equations are those of `kinematics.cable_kernels`. The gradient needs no angle: atan2 is used only where
the length itself is needed, which is where it is measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.common.errors import InputError
from dynid.exporters.code.bodies import Bodies
from dynid.exporters.code.graph import (
    Graph,
    Matrix,
    Node,
    Vector,
    apply,
    constants,
    cross,
    dot,
    minus,
    plus,
    product,
    rotation,
    times,
    transposed,
)
from dynid.kinematics.assembly import Assembly
from dynid.kinematics.closure import Closure
from dynid.kinematics.elimination import Elimination, best_coordinates, eliminate
from dynid.kinematics.sensors import Sensors
from dynid.kinematics.tile import ALONG, CABLE, INVERT, NORMAL, ROD, SCALE
from dynid.kinematics.tree import FIXED, PRISMATIC, REVOLUTE, SPHERICAL, Tree


@dataclass(frozen=True, eq=False)
class _Carried:
    """Velocity, angular velocity, and accelerations at ddq = 0 of a link or frame, base axes."""

    v: Vector
    w: Vector
    dw: Vector
    a: Vector

    def at(self, r: Vector) -> _Carried:
        """The same body at a point r away."""
        swept = cross(self.w, r)
        turning = plus(cross(self.dw, r), cross(self.w, swept))
        return _Carried(plus(self.v, swept), self.w, self.dw, plus(self.a, turning))


class Loops:
    """Closure equations at a symbolic pose.

    Args:
        closure: The equations.
        bodies: Links at the pose.
        q: Positions of the tree.
    """

    def __init__(self, closure: Closure, bodies: Bodies, q: Vector) -> None:
        self.graph, self.bodies, self.q = bodies.graph, bodies, q
        _, self.loops, self.equations, self.linear, self.where = closure.tables
        self.links = bodies.base_axes()
        self.frames = [self._frame(k) for k in range(len(self.loops[0]))]

    def _frame(self, k: int) -> tuple[Matrix, Vector]:
        """Axes and origin of an end of a loop, base frame."""
        link, flat = int(self.loops[0][k]), self.loops[1][k]
        R, p = rotation(self.graph, flat[:9].reshape(3, 3)), constants(self.graph, flat[9:])
        if link < 0:
            return R, p
        axes, at = self.links[link]
        return product(axes, R), plus(at, apply(axes, p))

    def _shape(self, c: int, x: Vector) -> Length | Angle:
        """The cable or swivel encoder of an equation, its attachment at x in the entry frame."""
        kind, radius = int(self.equations[0][c]), float(self.equations[7][c])
        return Length(self.graph, radius, x) if kind == CABLE else Angle(self.graph, x)

    def _terms(self, c: int) -> list[tuple[float, int, int]]:
        first, weights, of_a, of_b = self.equations[3:7]
        return [(float(weights[k]), int(of_a[k]), int(of_b[k])) for k in range(first[c], first[c + 1])]

    def _loop_of(self, c: int) -> int:
        return int(np.searchsorted(self.loops[3], c, side="right")) - 1

    @cached_property
    def f(self) -> Vector:
        """Values of all equations, in [m] or [rad]."""
        values = [self._value(c) for c in range(len(self.equations[0]))]
        first, positions, factors, offsets = self.linear
        for k in range(len(offsets)):
            part = range(first[k], first[k + 1])
            total = self.graph.sum(self.q[int(positions[e])] * float(factors[e]) for e in part)
            values.append(total - float(offsets[k]))
        return tuple(values)

    def _value(self, c: int) -> Node:
        (Ra, pa), (Rb, pb) = self._ends(c)
        kind, length = int(self.equations[0][c]), float(self.equations[2][c])
        d = minus(pb, pa)
        a, b = transposed(Ra), transposed(Rb)
        if kind == ALONG:
            return dot(a[int(self.equations[1][c])], d)
        if kind == NORMAL:
            return self.graph.sum(dot(a[i], b[k]) * weight for weight, i, k in self._terms(c))
        if kind == ROD:
            return (dot(d, d) - length * length) / (2.0 * length)
        coordinate = int(self.equations[8][c])
        given = self.graph.constant(length) if coordinate < 0 else self.q[coordinate]
        return self._shape(c, apply(a, d)).beyond(given)

    def _ends(self, c: int) -> list[tuple[Matrix, Vector]]:
        i = self._loop_of(c)
        return self.frames[2 * i : 2 * i + 2]

    @cached_property
    def entries(self) -> Vector:
        """Entries of A in the order of `where`."""
        values: list[Node] = []
        _, _, first_coordinate, first_equation, _, links, axes, slides, signs = self.loops
        for i in range(len(first_coordinate) - 1):
            rows = range(first_equation[i], first_equation[i + 1])
            p_b = self.frames[2 * i + 1][1]
            gradients = [self._gradient(c) for c in rows]
            for j in range(first_coordinate[i], first_coordinate[i + 1]):
                R, p = self.links[int(links[j])]
                z = times(tuple(row[int(axes[j])] for row in R), float(signs[j]))
                v, w = (z, None) if slides[j] else (cross(z, minus(p_b, p)), z)
                for force, moment in gradients:
                    turned = self.graph.constant(0.0) if w is None else dot(moment, w)
                    values.append(dot(force, v) + turned)
            values += [-self.graph.one for c in rows if self.equations[8][c] >= 0]
        return (*values, *constants(self.graph, self.linear[2]))

    def _gradient(self, c: int) -> tuple[Vector, Vector]:
        """Change of an equation per unit of relative velocity at b, and of relative angular velocity."""
        (Ra, pa), (Rb, pb) = self._ends(c)
        kind = int(self.equations[0][c])
        a, b, d = transposed(Ra), transposed(Rb), minus(pb, pa)
        zero = (self.graph.constant(0.0),) * 3
        if kind == ALONG:
            return a[int(self.equations[1][c])], zero
        if kind == NORMAL:  # e . (w x g) = w . (g x e)
            return zero, plus(zero, *(times(cross(b[k], a[i]), weight) for weight, i, k in self._terms(c)))
        if kind == ROD:
            return times(d, 1.0 / float(self.equations[2][c])), zero
        return apply(Ra, self._shape(c, apply(a, d)).gradient), zero

    def bias(self, dq: Vector) -> Vector:
        """gamma: second time derivatives of all equations at ddq = 0."""
        carried = self._carried(dq)
        ends = []
        for k, link in enumerate(self.loops[0].tolist()):
            still = (self.graph.constant(0.0),) * 3
            rest = _Carried(still, still, still, still)
            at = self.links[link][1] if link >= 0 else still
            ends.append(carried[link].at(minus(self.frames[k][1], at)) if link >= 0 else rest)
        values = [self._bias(c, ends) for c in range(len(self.equations[0]))]
        return (*values, *(self.graph.constant(0.0),) * len(self.linear[3]))

    def _bias(self, c: int, ends: Sequence[_Carried]) -> Node:
        i = self._loop_of(c)
        (Ra, pa), (Rb, pb) = self._ends(c)
        first, other = ends[2 * i], ends[2 * i + 1]
        kind = int(self.equations[0][c])
        a, b, d = transposed(Ra), transposed(Rb), minus(pb, pa)
        if kind == NORMAL:
            w, dw = minus(other.w, first.w), minus(other.dw, first.dw)
            return self.graph.sum(
                weight
                * dot(
                    a[e],
                    minus(
                        plus(cross(dw, b[k]), cross(w, cross(other.w, b[k]))), cross(first.w, cross(w, b[k]))
                    ),
                )
                for weight, e, k in self._terms(c)
            )
        rate, second = minus(other.v, first.v), minus(other.a, first.a)
        if kind == ROD:
            return (dot(rate, rate) + dot(d, second)) / float(self.equations[2][c])
        # Relative to the axes of a.
        swept = cross(first.w, d)
        slow = minus(rate, swept)
        turning = plus(cross(first.dw, d), cross(first.w, swept), times(cross(first.w, slow), 2.0))
        second = minus(second, turning)
        if kind == ALONG:
            return dot(a[int(self.equations[1][c])], second)
        return self._shape(c, apply(a, d)).bias(apply(a, slow), apply(a, second))

    def _carried(self, dq: Vector) -> dict[int, _Carried]:
        tree = self.bodies.tree
        zero = (self.graph.constant(0.0),) * 3
        known: dict[int, _Carried] = {-1: _Carried(zero, zero, zero, zero)}
        for i, (parent, kind) in enumerate(zip(tree.parent.tolist(), tree.kind.tolist(), strict=True)):
            R, p = self.links[i]
            before = self.links[parent][1] if parent >= 0 else zero
            moved, v = known[parent].at(minus(p, before)), int(tree.v_start[i])
            z = tuple(row[2] for row in R)
            if kind == PRISMATIC:
                rate = times(z, dq[v])
                extra = times(cross(moved.w, rate), 2.0)
                moved = _Carried(plus(moved.v, rate), moved.w, moved.dw, plus(moved.a, extra))
            elif kind != FIXED:
                rate = times(z, dq[v]) if kind == REVOLUTE else apply(R, dq[v : v + 3])
                moved = _Carried(moved.v, plus(moved.w, rate), plus(moved.dw, cross(moved.w, rate)), moved.a)
            known[i] = moved
        return known


class Solution:
    """Dependent coordinates by the operations of a plan, at a symbolic pose.

    Args:
        plan: Pivots and order.
        loops: Equations at the pose.
        n_v: Number of velocity coordinates.
    """

    def __init__(self, plan: Elimination, loops: Loops, n_v: int) -> None:
        self.plan, self.loops, self.n_v = plan, loops, n_v
        self.graph = loops.graph
        self.slots = [self.graph.constant(0.0)] * plan.n_slots
        for slot, entry in plan.load.tolist():
            self.slots[slot] = loops.entries[entry]
        for op, target, a, b in plan.factor.tolist():
            if op == INVERT:
                self.slots[target] = 1.0 / self.slots[target]
            elif op == SCALE:
                self.slots[target] = self.slots[target] * self.slots[a]
            else:
                self.slots[target] = self.slots[target] - self.slots[a] * self.slots[b]

    def rates(self, given: Vector, bias: Vector | None = None) -> Vector:
        """All velocities (or accelerations) x with A x = -bias and given independent ones."""
        zero = self.graph.constant(0.0)
        side = [zero if bias is None else -bias[row] for row in self.plan.rows.tolist()]
        for i, k, entry in self.plan.given.tolist():
            side[i] = side[i] - self.loops.entries[entry] * given[k]
        for op, i, slot, p in self.plan.solve.tolist():
            side[i] = side[i] * self.slots[slot] if op == SCALE else side[i] - self.slots[slot] * side[p]
        x = [zero] * self.n_v
        for k, v in enumerate(self.plan.independent.tolist()):
            x[v] = given[k]
        for i, v in enumerate(self.plan.dependent.tolist()):
            x[v] = side[i]
        return tuple(x)

    def along(self, efforts: Vector) -> Vector:
        """N^T w: efforts of all coordinates along the independent ones."""
        side = [efforts[v] for v in self.plan.dependent.tolist()]
        for op, i, slot, p in reversed(self.plan.solve.tolist()):
            if op == SCALE:
                side[i] = side[i] * self.slots[slot]
            else:
                side[p] = side[p] - self.slots[slot] * side[i]
        reduced = [efforts[v] for v in self.plan.independent.tolist()]
        for i, k, entry in self.plan.given.tolist():
            reduced[k] = reduced[k] - self.loops.entries[entry] * side[i]
        return tuple(reduced)


def plan_for(assembly: Assembly, sensors: Sensors) -> Elimination:
    """Which coordinates are independent, and how the others follow from them; refused where none is fixed."""
    independent = sensors.velocity.tolist()
    where = assembly.closure.tables[4]
    for poses in (np.vstack([assembly.samples, assembly.start]), assembly.samples):
        A = assembly.closure.values(poses).A
        if sensors.count > assembly.dof:
            independent = best_coordinates(assembly.tangent(A), range(assembly.closure.tree.n_v))
        plan = None if sensors.count < assembly.dof else eliminate(A, independent, (where[0], where[1]))
        if plan is not None:
            return plan
    robot = assembly.mechanism
    raise InputError(
        f"no fixed choice of equations gives the pose of robot '{robot.name}' from its measured coordinates",
        file=robot.file,
        remedy="give a regular pose under `start:`, or measure more coordinates",
    )


def spherical_places(tree: Tree) -> list[tuple[int, int]]:
    """First position and first velocity of every quaternion."""
    return [
        (int(q), int(v))
        for q, v, kind in zip(tree.q_start, tree.v_start, tree.kind, strict=True)
        if kind == SPHERICAL
    ]


def empty(graph: Graph, n: int) -> Vector:
    """N zeros."""
    return (graph.constant(0.0),) * n


@dataclass(frozen=True, eq=False)
class Length:
    """A cable with its attachment at x, in the axes of its entry frame."""

    graph: Graph
    radius: float
    x: Vector

    @cached_property
    def _pulley(self) -> tuple[Node, Node, Node, Node]:
        """Rho, s, and unscaled sine and cosine of the wrap angle."""
        x, y, z = self.x
        rho = self.graph.call("sqrt", x * x + y * y)
        v = rho - self.radius
        s = self.graph.call("sqrt", v * v + z * z - self.radius * self.radius)
        return rho, s, self.radius * z + s * v, s * z - self.radius * v

    @cached_property
    def _turn(self) -> tuple[Node, Node]:
        """Sine and cosine of the wrap angle."""
        _, _, sine, cosine = self._pulley
        inverse = 1.0 / self.graph.call("sqrt", sine * sine + cosine * cosine)
        return sine * inverse, cosine * inverse

    def beyond(self, given: Node) -> Node:
        """Length minus a given one, in [m]."""
        if self.radius == 0.0:
            return self.graph.call("sqrt", dot(self.x, self.x)) - given
        _, s, sine, cosine = self._pulley
        psi = self.graph.atan2(sine, cosine)
        psi = psi + 2.0 * math.pi * self.graph.call("below", psi + 1e-9)
        return self.radius * psi + s - given

    @cached_property
    def gradient(self) -> Vector:
        """Per unit of x."""
        x, y, z = self.x
        if self.radius == 0.0:
            inverse = 1.0 / self.graph.call("sqrt", dot(self.x, self.x))
            return x * inverse, y * inverse, z * inverse
        sine, cosine = self._turn
        across = sine / self._pulley[0]
        return across * x, across * y, cosine

    def bias(self, rate: Vector, second: Vector) -> Node:
        """Second time derivative for first and second derivatives of x."""
        flat = rate[0] * rate[0] + rate[1] * rate[1]
        if self.radius == 0.0:
            along = dot(self.gradient, rate)
            whole = flat + rate[2] * rate[2] - along * along
            return dot(self.gradient, second) + whole / self.graph.call("sqrt", dot(self.x, self.x))
        rho, s, _, _ = self._pulley
        sine, cosine = self._turn
        out = (self.x[0] * rate[0] + self.x[1] * rate[1]) / rho
        away = (self.x[0] * second[0] + self.x[1] * second[1] + flat - out * out) / rho
        turn = (cosine * out - sine * rate[2]) / s
        return sine * away + cosine * second[2] + s * turn * turn


@dataclass(frozen=True, eq=False)
class Angle:
    """The direction of x about z."""

    graph: Graph
    x: Vector

    def beyond(self, given: Node) -> Node:
        """Angle minus a given one, within half a turn, in [rad]."""
        c, s = self.graph.call("cos", given), self.graph.call("sin", given)
        x, y, _ = self.x
        return self.graph.atan2(y * c - x * s, x * c + y * s)

    @cached_property
    def gradient(self) -> Vector:
        """Per unit of x."""
        x, y, _ = self.x
        inverse = 1.0 / (x * x + y * y)
        return -(y * inverse), x * inverse, self.graph.constant(0.0)

    def bias(self, rate: Vector, second: Vector) -> Node:
        """Second time derivative for first and second derivatives of x."""
        x, y, _ = self.x
        inverse = 1.0 / (x * x + y * y)
        turn = (x * rate[1] - y * rate[0]) * inverse
        stretch = (x * rate[0] + y * rate[1]) * inverse
        return (x * second[1] - y * second[0]) * inverse - 2.0 * (turn * stretch)
