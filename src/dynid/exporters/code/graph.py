"""Expressions as a graph: equal expressions are one node, zeros and ones vanish, constants are folded.

Nodes are made by arithmetic on other nodes of the same graph, so a program that computes with nodes instead
of numbers leaves behind the list of operations that it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

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
