"""Expressions as a graph: equal expressions are one node, zeros and ones vanish, constants are folded.

Nodes are made by arithmetic on other nodes of the same graph, so a program that computes with nodes instead
of numbers leaves behind the list of operations that it needs.

Vectors and matrices of nodes: products, rotations, orthogonal triangles, all without zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from dynid.common.arrays import Array, Float

Number = float | int
_UNARY: dict[str, Callable[[float], float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "abs": abs,
    "sign": lambda x: float((x > 0.0) - (x < 0.0)),
    "below": lambda x: float(x < 0.0),
}


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One operation, input or constant.

    Attributes:
        graph: That made it.
        number: Order in which it was made: arguments come before.
        op: `const`, `leaf`, `neg`, `add`, `sub`, `mul`, `div`, `atan2`, `pow`, or a function of one argument.
        arguments: Of the operation.
        value: Of a constant.
        place: Of an input: name of its array, and index.
    """

    graph: Graph
    number: int
    op: str
    arguments: tuple[Node, ...] = ()
    value: float = 0.0
    place: tuple[str, int] = ("", 0)

    def __add__(self, other: Node | Number) -> Node:
        return self.graph.add(self, self.graph.node(other))

    def __sub__(self, other: Node | Number) -> Node:
        return self.graph.add(self, -self.graph.node(other))

    def __mul__(self, other: Node | Number) -> Node:
        return self.graph.mul(self, self.graph.node(other))

    def __truediv__(self, other: Node | Number) -> Node:
        return self.graph.div(self, self.graph.node(other))

    def __neg__(self) -> Node:
        return self.graph.neg(self)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Node | Number) -> Node:
        return self.graph.node(other) - self

    def __rtruediv__(self, other: Node | Number) -> Node:
        return self.graph.node(other) / self

    def sqrt(self) -> Node:
        """Square root, which NumPy's function calls."""
        return self.graph.call("sqrt", self)

    def exp(self) -> Node:
        """Exponential, which NumPy's function calls."""
        return self.graph.call("exp", self)

    @property
    def is_zero(self) -> bool:
        """Whether it is the constant 0."""
        return self.op == "const" and self.value == 0.0


@dataclass(eq=False)
class Graph:
    """Makes nodes, each once."""

    _known: dict[tuple[object, ...], Node] = field(default_factory=dict)

    def constant(self, value: Number) -> Node:
        """A number; -0 is 0."""
        return self._node("const", value=float(value) + 0.0)

    def leaf(self, array: str, index: int) -> Node:
        """An input: one number of an array."""
        return self._node("leaf", place=(array, index))

    def node(self, value: Node | Number) -> Node:
        """The node itself, or a constant."""
        return value if isinstance(value, Node) else self.constant(value)

    def neg(self, a: Node) -> Node:
        """-a."""
        if a.op == "const":
            return self.constant(-a.value)
        if a.op == "neg":
            return a.arguments[0]
        return self._node("neg", (a,))

    def add(self, a: Node, b: Node) -> Node:
        """A + b; differences are stored with their earlier argument first, negated if need be."""
        if a.op == b.op == "const":
            return self.constant(a.value + b.value)
        if a.is_zero or b.is_zero:
            return b if a.is_zero else a
        if a.op == "neg" and b.op == "neg":
            return self.neg(self.add(a.arguments[0], b.arguments[0]))
        if a.op == "neg":
            a, b = b, a
        if b.op == "neg":
            return self._difference(a, b.arguments[0])
        return self._node("add", tuple(sorted((a, b), key=_number)))

    def _difference(self, a: Node, b: Node) -> Node:
        if a is b:
            return self.constant(0.0)
        swapped = self._known.get(_key("sub", (b, a)))
        return self._node("neg", (swapped,)) if swapped is not None else self._node("sub", (a, b))

    def mul(self, a: Node, b: Node) -> Node:
        """A b; signs go outside, constants of nested products are multiplied."""
        if a.op == b.op == "const":
            return self.constant(a.value * b.value)
        if b.op == "const":
            a, b = b, a
        if a.op == "const":
            if a.value in (0.0, 1.0):
                return b if a.value else a
            if a.value < 0.0:
                return self.neg(self.mul(self.constant(-a.value), b))
            if b.op == "mul" and b.arguments[0].op == "const":
                return self.mul(self.constant(a.value * b.arguments[0].value), b.arguments[1])
        if a.op == "neg":
            return self.neg(self.mul(a.arguments[0], b))
        if b.op == "neg":
            return self.neg(self.mul(a, b.arguments[0]))
        if a.op == "const":
            return self._node("mul", (a, b))
        return self._node("mul", tuple(sorted((a, b), key=_number)))

    def div(self, a: Node, b: Node) -> Node:
        """A / b."""
        if b.op == "const" and b.value != 0.0:
            return self.mul(a, self.constant(1.0 / b.value))
        if a.is_zero:
            return a
        if a.op == "neg":
            return self.neg(self.div(a.arguments[0], b))
        if b.op == "neg":
            return self.neg(self.div(a, b.arguments[0]))
        return self._node("div", (a, b))

    @property
    def one(self) -> Node:
        """The constant 1."""
        return self.constant(1.0)

    def call(self, name: str, a: Node) -> Node:
        """A function of one argument; signs of odd functions go outside, of even ones vanish."""
        if a.op == "const":
            return self.constant(_UNARY[name](a.value))
        if a.op == "neg" and name in ("sin", "tan", "sign"):
            return self.neg(self.call(name, a.arguments[0]))
        if a.op == "neg" and name in ("cos", "abs"):
            return self.call(name, a.arguments[0])
        return self._node(name, (a,))

    def atan2(self, y: Node, x: Node) -> Node:
        """Angle of (x, y)."""
        if x.op == y.op == "const":
            return self.constant(math.atan2(y.value, x.value))
        return self._node("atan2", (y, x))

    def power(self, a: Node, b: Node) -> Node:
        """A to the power b; small whole exponents by multiplication."""
        if a.op == b.op == "const":
            return self.constant(a.value**b.value)
        if b.op == "const" and b.value in (0.0, 1.0, 2.0, 3.0, 4.0):
            product = self.one
            for _ in range(int(b.value)):
                product = product * a
            return product
        return self._node("pow", (a, b))

    def sum(self, nodes: Iterable[Node]) -> Node:
        """Their sum; 0 of none."""
        total = self.constant(0.0)
        for node in nodes:
            total = total + node
        return total

    def _node(
        self, op: str, arguments: tuple[Node, ...] = (), value: float = 0.0, place: tuple[str, int] = ("", 0)
    ) -> Node:
        key = _key(op, arguments, value, place)
        node = self._known.get(key)
        if node is None:
            node = self._known[key] = Node(self, len(self._known), op, arguments, value, place)
        return node


def _number(node: Node) -> int:
    return node.number


def _key(
    op: str, arguments: tuple[Node, ...], value: float = 0.0, place: tuple[str, int] = ("", 0)
) -> tuple[object, ...]:
    return (op, *(node.number for node in arguments), value, place)


def reached(outputs: Sequence[Node]) -> list[Node]:
    """All nodes that some outputs need, arguments first."""
    by_number: dict[int, Node] = {}
    waiting = list(outputs)
    while waiting:
        node = waiting.pop()
        if node.number not in by_number:
            by_number[node.number] = node
            waiting += node.arguments
    return [by_number[number] for number in sorted(by_number)]


Vector = tuple[Node, ...]
Matrix = tuple[Vector, ...]  # rows
_ROUNDING = 1e-15  # of an entry of a rotation: turns by 90 degrees are exact


def dot(a: Sequence[Node], b: Sequence[Node]) -> Node:
    """Scalar product."""
    return a[0].graph.sum(x * y for x, y in zip(a, b, strict=True))


def cross(a: Vector, b: Vector) -> Vector:
    """Vector product."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def plus(*several: Vector) -> Vector:
    """Sum."""
    return tuple(components[0].graph.sum(components) for components in zip(*several, strict=True))


def minus(a: Vector, b: Vector) -> Vector:
    """Difference."""
    return tuple(x - y for x, y in zip(a, b, strict=True))


def times(a: Vector, factor: Node | float) -> Vector:
    """Vector times a number."""
    return tuple(x * factor for x in a)


def apply(M: Matrix, v: Sequence[Node]) -> Vector:
    """M v."""
    return tuple(dot(row, v) for row in M)


def transposed(M: Sequence[Sequence[Node]]) -> Matrix:
    """Rows and columns exchanged."""
    return tuple(zip(*M, strict=True))


def product(A: Matrix, B: Matrix) -> Matrix:
    """A B."""
    columns = transposed(B)
    return tuple(tuple(dot(row, column) for column in columns) for row in A)


def constants(graph: Graph, values: Float[Array, "n"]) -> Vector:
    """Numbers as nodes."""
    return tuple(graph.constant(x) for x in values.tolist())


def rotation(graph: Graph, R: Float[Array, "3 3"]) -> Matrix:
    """A constant rotation; rounding errors of turns by 90 degrees become 0 and 1."""
    return tuple(tuple(graph.constant(_exact(x)) for x in row) for row in R.tolist())


def _exact(x: float) -> float:
    near = float(round(x))
    return near if abs(x - near) < _ROUNDING else x


def about_z(graph: Graph, angle: Node) -> Matrix:
    """Rotation about z."""
    c, s = graph.call("cos", angle), graph.call("sin", angle)
    zero = graph.constant(0.0)
    return ((c, -s, zero), (s, c, zero), (zero, zero, graph.one))


def of_quaternion(q: Vector) -> Matrix:
    """Rotation of a unit quaternion, scalar first."""
    w, x, y, z = q
    X, Y, Z = 2.0 * x, 2.0 * y, 2.0 * z
    return (
        (1.0 - (y * Y + z * Z), x * Y - w * Z, x * Z + w * Y),
        (x * Y + w * Z, 1.0 - (x * X + z * Z), y * Z - w * X),
        (x * Z - w * Y, y * Z + w * X, 1.0 - (x * X + y * Y)),
    )


def unit(q: Vector) -> Vector:
    """A vector of length one."""
    return times(q, 1.0 / q[0].graph.call("sqrt", dot(q, q)))


def quaternion_rates(q: Vector, dq: Vector, ddq: Vector) -> tuple[Vector, Vector, Vector]:
    """Unit quaternion, angular velocity and acceleration (moving frame) of a raw quaternion.

    The same equations as `kinematics.tree.quaternion_rates`.
    """
    inverse = 1.0 / dot(q, q)
    omega = times(_conjugate_product(q, dq), 2.0 * inverse)
    stretch = dot(q, dq) * inverse
    alpha = minus(times(_conjugate_product(q, ddq), 2.0 * inverse), times(omega, 2.0 * stretch))
    return unit(q), omega, alpha


def _conjugate_product(a: Vector, b: Vector) -> Vector:
    """Vector part of conj(a) b."""
    whole = minus(times(b[1:], a[0]), times(a[1:], b[0]))
    return minus(whole, cross(a[1:], b[1:]))


def turned(q: Vector, turn: Vector) -> Vector:
    """A unit quaternion after a small rotation vector in the moving frame, to second order."""
    w, x, y, z = q
    a, b, c = times(turn, 0.5)
    rate = (-(x * a + y * b + z * c), w * a + y * c - z * b, w * b + z * a - x * c, w * c + x * b - y * a)
    return unit(plus(q, rate))


def orthogonal(J: Matrix) -> tuple[Matrix, Matrix]:
    """Q and R of J = Q R by modified Gram-Schmidt, columns of Q orthonormal; J has full column rank.

    Returns:
        Columns of Q, and rows of the upper triangle R.
    """
    graph = J[0][0].graph
    columns = list(transposed(J))
    n = len(columns)
    R = [[graph.constant(0.0)] * n for _ in range(n)]
    for k in range(n):
        square = dot(columns[k], columns[k])
        R[k][k] = graph.call("sqrt", square)
        columns[k] = times(columns[k], 1.0 / R[k][k])
        for j in range(k + 1, n):
            R[k][j] = dot(columns[k], columns[j])
            columns[j] = minus(columns[j], times(columns[k], R[k][j]))
    return tuple(columns), tuple(tuple(row) for row in R)


def back_substituted(R: Matrix, b: Vector) -> Vector:
    """X with R x = b, R an upper triangle."""
    x = list(b)
    for k in reversed(range(len(x))):
        x[k] = (x[k] - x[k].graph.sum(R[k][j] * x[j] for j in range(k + 1, len(x)))) / R[k][k]
    return tuple(x)


def forward_substituted(R: Matrix, b: Vector) -> Vector:
    """X with R^T x = b, R an upper triangle."""
    x = list(b)
    for k in range(len(x)):
        x[k] = (x[k] - x[k].graph.sum(R[j][k] * x[j] for j in range(k))) / R[k][k]
    return tuple(x)
