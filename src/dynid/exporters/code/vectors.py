"""Vectors and matrices of nodes: products, rotations, orthogonal triangles, all without zeros."""

from __future__ import annotations

from collections.abc import Sequence

from dynid.common.arrays import Array, Float
from dynid.exporters.code.graph import Graph, Node

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
