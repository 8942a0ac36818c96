"""Friction, rotors, offsets and declared terms of a robot as expressions, in the rows of the tree.

The columns are those of `regressor.kernels`: sign(0) is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dynid.common.expression import Expression
from dynid.exporters.code.graph import Graph, Node
from dynid.exporters.code.vectors import Vector
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import STRIBECK_SPEED

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
            place = source if symbol == "Fl" else -1
            yield Entry(row, f"{symbol}_{owner}", column * ratio, place)


def _column(graph: Graph, symbol: str, rate: Node, accel: Node, speed: float) -> Node:
    if symbol == "Ia":
        return accel
    if symbol == "Off":
        return graph.one
    if symbol == "Fv":
        return rate
    side = graph.call("sign", rate)
    if symbol in ("Fs", "Fl"):
        return side
    if symbol == "Fr":
        return side * graph.call("sqrt", graph.call("abs", rate))
    if symbol == "Fk":
        share = rate / speed
        return side * graph.call("exp", -(share * share))
    both = rate if symbol.startswith("Fv") else side
    size = graph.call("abs", both)
    return 0.5 * (both + size if symbol.endswith("+") else both - size)


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
