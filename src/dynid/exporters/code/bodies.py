"""Motion and wrenches of bodies as expressions: recursive Newton-Euler over the primitive links of a tree.

    forward     w, dw, a of every link in its own axes, a relative to gravity
    bodies      F = M a + U m,  N = I dw + w x I w + m x a,      U = [dw]x + [w]x [w]x,  m = (MX, MY, MZ)
    backward    forces and moments of the links that a joint carries, along its axis

Links are those of `kinematics.tree`: they turn about or slide along their z.

Friction, rotors, offsets and declared terms of a robot as expressions, in the rows of the tree.

The columns are those of `regressor.kernels`: sign(0) is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dynid.common.expression import Expression
from dynid.exporters.code.graph import (
    Graph,
    Matrix,
    Node,
    Vector,
    about_z,
    apply,
    constants,
    cross,
    dot,
    of_quaternion,
    plus,
    product,
    rotation,
    times,
    transposed,
)
from dynid.kinematics.tree import FIXED, PRISMATIC, REVOLUTE, SPHERICAL, Tree
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS, LOADED, term_column
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import STRIBECK_SPEED

Ten = Mapping[str, Node]  # of one body by symbol; a symbol that is not there is zero


@dataclass(frozen=True, eq=False)
class Motion:
    """Angular velocity and acceleration, and acceleration of the origin minus gravity, in own axes."""

    w: Vector
    dw: Vector
    a: Vector

    @property
    def U(self) -> Matrix:
        """[dw]x + [w]x [w]x: U r is the acceleration of a point r relative to the origin."""
        x, y, z = self.w
        p, q, r = self.dw
        xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
        return ((-(yy + zz), xy - r, xz + q), (xy + r, -(xx + zz), yz - p), (xz - q, yz + p, -(xx + yy)))


@dataclass(frozen=True, eq=False)
class Bodies:
    """Links and bodies of a tree at a symbolic pose.

    Attributes:
        graph: Of all nodes.
        tree: The links.
        turns: Rotation of each link in its parent's axes.
        offsets: Origin of each link in its parent's axes, in [m].
    """

    graph: Graph
    tree: Tree
    turns: tuple[Matrix, ...]
    offsets: tuple[Vector, ...]

    def z(self) -> Vector:
        """The axis of a link in its own axes."""
        zero = self.graph.constant(0.0)
        return zero, zero, self.graph.one

    def motions(self, dq: Vector, ddq: Vector) -> list[Motion]:
        """Motion of every link."""
        graph, tree = self.graph, self.tree
        zero = (graph.constant(0.0),) * 3
        known: dict[int, Motion] = {-1: Motion(zero, zero, times(constants(graph, tree.gravity), -1.0))}
        for i, (parent, kind) in enumerate(zip(tree.parent.tolist(), tree.kind.tolist(), strict=True)):
            before, back, v = known[parent], transposed(self.turns[i]), int(tree.v_start[i])
            w, dw = apply(back, before.w), apply(back, before.dw)
            a = apply(back, plus(before.a, apply(before.U, self.offsets[i])))
            z = self.z()
            if kind == REVOLUTE:
                rate = times(z, dq[v])
                dw = plus(dw, times(z, ddq[v]), cross(w, rate))
                w = plus(w, rate)
            elif kind == PRISMATIC:
                a = plus(a, times(z, ddq[v]), times(cross(w, z), 2.0 * dq[v]))
            elif kind == SPHERICAL:
                rate = dq[v : v + 3]
                dw = plus(dw, ddq[v : v + 3], cross(w, rate))
                w = plus(w, rate)
            known[i] = Motion(w, dw, a)
        return [known[i] for i in range(len(tree.parent))]

    def efforts(self, motions: Sequence[Motion], chi: Mapping[str, Ten]) -> Vector:
        """Efforts of all velocity coordinates, in [N m] or [N].

        Args:
            motions: Of the links.
            chi: Body -> its parameters.
        """
        graph, tree = self.graph, self.tree
        zero: Vector = (graph.constant(0.0),) * 3
        force = [zero] * len(tree.parent)
        moment = [zero] * len(tree.parent)
        for b, name in enumerate(tree.body_names):
            link = int(tree.body_link[b])
            if link < 0 or not chi.get(name):
                continue
            R, p = self.body_place(b)
            F, N = wrench(chi[name], self.body_motion(b, motions[link]))
            F, N = apply(R, F), apply(R, N)
            force[link] = plus(force[link], F)
            moment[link] = plus(moment[link], N, cross(p, F))
        torques: list[Node] = [graph.constant(0.0)] * tree.n_v
        for i in reversed(range(len(tree.parent))):
            parent, kind, v = int(tree.parent[i]), int(tree.kind[i]), int(tree.v_start[i])
            if kind == SPHERICAL:
                torques[v : v + 3] = moment[i]
            elif kind != FIXED:
                torques[v] = (force if kind == PRISMATIC else moment)[i][2]
            if parent >= 0:
                F = apply(self.turns[i], force[i])
                force[parent] = plus(force[parent], F)
                arm = cross(self.offsets[i], F)
                moment[parent] = plus(moment[parent], apply(self.turns[i], moment[i]), arm)
        return tuple(torques)

    def body_place(self, b: int) -> tuple[Matrix, Vector]:
        """Axes and origin of a body in its link."""
        flat = self.tree.body_frame[b]
        return rotation(self.graph, flat[:9].reshape(3, 3)), constants(self.graph, flat[9:])

    def body_motion(self, b: int, link: Motion) -> Motion:
        """Motion of a body in its own axes."""
        R, p = self.body_place(b)
        back = transposed(R)
        moved = plus(link.a, apply(link.U, p))
        return Motion(apply(back, link.w), apply(back, link.dw), apply(back, moved))

    def twists(self, direction: Vector) -> list[tuple[Vector, Vector]]:
        """Linear and angular velocity of every body in its own axes, for velocities of all coordinates."""
        graph, tree = self.graph, self.tree
        zero = (graph.constant(0.0),) * 3
        known: dict[int, tuple[Vector, Vector]] = {-1: (zero, zero)}
        for i, (parent, kind) in enumerate(zip(tree.parent.tolist(), tree.kind.tolist(), strict=True)):
            v, w = known[parent]
            back, at, z = transposed(self.turns[i]), int(tree.v_start[i]), self.z()
            v, w = apply(back, plus(v, cross(w, self.offsets[i]))), apply(back, w)
            if kind == PRISMATIC:
                v = plus(v, times(z, direction[at]))
            elif kind != FIXED:
                w = plus(w, times(z, direction[at]) if kind == REVOLUTE else direction[at : at + 3])
            known[i] = v, w
        of_bodies = []
        for b in range(len(tree.body_names)):
            v, w = known[int(tree.body_link[b])]
            R, p = self.body_place(b)
            back = transposed(R)
            of_bodies.append((apply(back, plus(v, cross(w, p))), apply(back, w)))
        return of_bodies

    def base_axes(self) -> list[tuple[Matrix, Vector]]:
        """Axes and origin of every link in the base frame."""
        known: dict[int, tuple[Matrix, Vector]] = {}
        for i, parent in enumerate(self.tree.parent.tolist()):
            R, p = self.turns[i], self.offsets[i]
            if parent >= 0:
                before, at = known[parent]
                R, p = product(before, R), plus(at, apply(before, p))
            known[i] = R, p
        return [known[i] for i in range(len(known))]


def bodies_at(graph: Graph, tree: Tree, q: Vector) -> Bodies:
    """The links of a tree at symbolic positions; quaternions have unit length."""
    turns, offsets = [], []
    for i, kind in enumerate(tree.kind.tolist()):
        flat, at = tree.placement[i], int(tree.q_start[i])
        R, p = rotation(graph, flat[:9].reshape(3, 3)), constants(graph, flat[9:])
        if kind == REVOLUTE:
            R = product(R, about_z(graph, q[at]))
        elif kind == SPHERICAL:
            R = product(R, of_quaternion(q[at : at + 4]))
        elif kind == PRISMATIC:
            p = plus(p, times(tuple(row[2] for row in R), q[at]))
        turns.append(R)
        offsets.append(p)
    return Bodies(graph, tree, tuple(turns), tuple(offsets))


def unit_wrenches(motion: Motion) -> dict[str, tuple[Vector, Vector]]:
    """Force and moment about the origin per unit of each of the ten parameters, in the body's axes."""
    graph = motion.w[0].graph
    zero = graph.constant(0.0)
    x, y, z = motion.w
    p, q, r = motion.dw
    U = motion.U
    still: Vector = (zero, zero, zero)
    ax, ay, az = motion.a
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    moments: dict[str, Vector] = {
        "XX": (p, xz, -xy),
        "XY": (-U[2][0], U[2][1], xx - yy),
        "XZ": (U[1][0], zz - xx, -U[1][2]),
        "YY": (-yz, q, xy),
        "YZ": (yy - zz, -U[0][1], U[0][2]),
        "ZZ": (yz, -xz, r),
    }
    wrenches = {symbol: (still, couple) for symbol, couple in moments.items()}
    columns = transposed(U)
    wrenches["MX"] = columns[0], (zero, -az, ay)
    wrenches["MY"] = columns[1], (az, zero, -ax)
    wrenches["MZ"] = columns[2], (-ay, ax, zero)
    wrenches["M"] = motion.a, still
    return wrenches


def wrench(ten: Ten, motion: Motion) -> tuple[Vector, Vector]:
    """Force and moment about the origin of a body, in its axes, in [N] and [N m]."""
    units = unit_wrenches(motion)
    zero: Vector = (motion.w[0].graph.constant(0.0),) * 3
    force, moment = zero, zero
    for symbol in SYMBOLS:
        if symbol in ten:
            F, N = units[symbol]
            force, moment = plus(force, times(F, ten[symbol])), plus(moment, times(N, ten[symbol]))
    return force, moment


def momentum(ten: Ten, graph: Graph, v: Vector, w: Vector) -> tuple[Vector, Vector]:
    """Linear and angular momentum (about the origin) of a body, in its axes."""
    zero = graph.constant(0.0)
    get = {symbol: ten.get(symbol, zero) for symbol in SYMBOLS}
    m = (get["MX"], get["MY"], get["MZ"])
    inertia = (
        (get["XX"], get["XY"], get["XZ"]),
        (get["XY"], get["YY"], get["YZ"]),
        (get["XZ"], get["YZ"], get["ZZ"]),
    )
    return plus(times(v, get["M"]), cross(w, m)), plus(apply(inertia, w), cross(m, v))


def power(twist: tuple[Vector, Vector], force: Vector, moment: Vector) -> Node:
    """Of a wrench along a twist."""
    return dot(twist[0], force) + dot(twist[1], moment)


_FUNCTIONS = ("sin", "cos", "tan", "sqrt", "exp", "abs", "sign")


@dataclass(frozen=True)
class Value:
    """One parameter: a column of the regressor.

    Attributes:
        name: As in the result.
        value: SI.
        standard: Standard parameters that have this value; several where parameters are tied.
    """

    name: str
    unit: str
    value: float
    standard: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Entry:
    """One number of the regressor of the tree.

    Attributes:
        row: Velocity coordinate.
        parameter: Full name.
        column: What the parameter is multiplied by.
        source: Place of the owner among the sources of loads, for friction that grows with the load; else -1.
    """

    row: int
    parameter: str
    column: Node
    source: int = -1


def drive_entries(robot: Mechanism, graph: Graph, dq: Vector, ddq: Vector) -> Iterator[Entry]:
    """Entries of all drive terms; those of load-dependent friction per unit of load."""
    for row, coordinate in enumerate(robot.coordinates):
        yield from _of_owner(robot, graph, coordinate, [(row, 1.0)], dq[row], ddq[row], row)
    for i, actuator in enumerate(robot.actuators):
        if actuator.name in robot.coordinates:
            continue
        ratios = [(row, float(x)) for row, x in enumerate(robot.actuator_map[i]) if x != 0.0]
        rate, accel = (graph.sum(x[row] * ratio for row, ratio in ratios) for x in (dq, ddq))
        source = len(robot.coordinates) + i
        yield from _of_owner(robot, graph, actuator.name, ratios, rate, accel, source)


def _of_owner(
    robot: Mechanism,
    graph: Graph,
    owner: str,
    rows: list[tuple[int, float]],
    rate: Node,
    accel: Node,
    source: int,
) -> Iterator[Entry]:
    for symbol in robot.drive.get(owner, ()):
        column = _column(graph, symbol, rate, accel, robot.stribeck.get(owner, STRIBECK_SPEED))
        for row, ratio in rows:
            place = source if symbol in LOADED else -1
            yield Entry(row, f"{symbol}_{owner}", column * ratio, place)


def _column(graph: Graph, symbol: str, rate: Node, accel: Node, speed: float) -> Node:
    """The column of the table of drive terms, per unit of load."""
    sign = graph.call("sign", rate)
    size = graph.call("abs", sign)
    signs = (sign, sign, 0.5 * (sign + size), 0.5 * (sign - size))
    return graph.node(term_column(DRIVE_SYMBOLS.index(symbol), rate, accel, signs, 1.0, speed))


def term_entries(robot: Mechanism, graph: Graph, q: Vector, dq: Vector, ddq: Vector) -> Iterator[Entry]:
    """Entries of declared terms; those that call functions of other packages are left out."""
    signals = {
        **{("q", name): q[i] for i, name in enumerate(robot.positions)},
        **{("dq", name): dq[i] for i, name in enumerate(robot.coordinates)},
        **{("ddq", name): ddq[i] for i, name in enumerate(robot.coordinates)},
    }
    for term in robot.terms:
        if not term.expression.friction:
            row = robot.coordinates.index(term.joint)
            yield Entry(row, term.name, _value(graph, term.expression, signals))


def _value(graph: Graph, expression: Expression, signals: dict[tuple[str, str], Node]) -> Node:
    """The expression, by its postfix program."""
    stack: list[Node] = []
    for kind, operand in expression.program:
        if kind == "number":
            stack.append(graph.constant(operand))
        elif kind == "signal":
            stack.append(signals[operand])
        elif kind == "function" and operand in _FUNCTIONS:
            stack.append(graph.call(operand, stack.pop()))
        elif operand == "neg":
            stack.append(-stack.pop())
        else:
            b, a = stack.pop(), stack.pop()
            stack.append(_binary(graph, operand, a, b))
    return stack[0]


def _binary(graph: Graph, operator: str, a: Node, b: Node) -> Node:
    if operator == "atan2":
        return graph.atan2(a, b)
    if operator == "^":
        return graph.power(a, b)
    if operator == "/":
        return a / b
    if operator == "*":
        return a * b
    return a + b if operator == "+" else a - b
