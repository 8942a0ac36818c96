"""Expressions as statements: one temporary for each expression that is used more than once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dynid.exporters.code.graph import Node, reached

_DEEPEST = 6  # of an expression in one statement
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_ALWAYS = ("sin", "cos", "sqrt", "div", "exp", "atan2")  # of which a reader wants to see the value


@dataclass(frozen=True, eq=False)
class Language:
    """How a language writes inputs and functions.

    Attributes:
        leaf: Of array and index.
        call: Function name of an operation -> its call with the arguments' texts.
    """

    leaf: Callable[[str, int], str]
    call: Callable[[str, Sequence[str]], str]


@dataclass(frozen=True, eq=False)
class Statements:
    """A straight-line function in text.

    Attributes:
        temporaries: Name and expression, in order.
        outputs: Array -> expressions.
        arrays: Input arrays that are used.
        operations: Kinds of operations that are used.
    """

    temporaries: list[tuple[str, str]]
    outputs: Mapping[str, list[str]]
    arrays: frozenset[str]
    operations: frozenset[str]


def statements(outputs: Mapping[str, Sequence[Node]], language: Language) -> Statements:
    """The statements that compute some outputs."""
    wanted = [output for several in outputs.values() for output in several]
    nodes = reached(wanted)
    uses: dict[int, int] = {}
    for used in [*(argument for node in nodes for argument in node.arguments), *wanted]:
        uses[used.number] = uses.get(used.number, 0) + 1
    text: dict[int, tuple[str, bool]] = {}  # expression, and whether it can be an operand as it is
    depth: dict[int, int] = {}
    temporaries: list[tuple[str, str]] = []
    for node in nodes:
        made, atomic = _expression(node, text, language)
        depth[node.number] = 1 + max((depth[child.number] for child in node.arguments), default=0)
        inner = node.op not in ("const", "leaf", "neg")
        shared = uses[node.number] > 1 or depth[node.number] > _DEEPEST or node.op in _ALWAYS
        if inner and shared:
            name = f"t{len(temporaries)}"
            temporaries.append((name, made))
            made, atomic, depth[node.number] = name, True, 0
        text[node.number] = made, atomic
    return Statements(
        temporaries,
        {name: [text[output.number][0] for output in several] for name, several in outputs.items()},
        frozenset(vertex.place[0] for vertex in nodes if vertex.op == "leaf"),
        frozenset(vertex.op for vertex in nodes),
    )


def _expression(node: Node, text: Mapping[int, tuple[str, bool]], language: Language) -> tuple[str, bool]:
    if node.op == "const":
        return repr(node.value), node.value >= 0.0
    if node.op == "leaf":
        return language.leaf(*node.place), True
    known = [text[argument.number] for argument in node.arguments]
    operands = [made if atomic else f"({made})" for made, atomic in known]
    if node.op == "neg":
        return f"-{operands[0]}", False
    if node.op in _INFIX:
        # Sums of products need no brackets: a product binds stronger.
        if node.op in ("add", "sub"):
            operands = [
                made if argument.op in ("mul", "div") else operand
                for argument, (made, _), operand in zip(node.arguments, known, operands, strict=True)
            ]
        return f"{operands[0]} {_INFIX[node.op]} {operands[1]}", False
    return language.call(node.op, [made for made, _ in known]), True


def wrapped(items: Iterable[str], width: int = 110, indent: str = "    ") -> list[str]:
    """Items separated by commas, in lines."""
    lines, line = [], indent
    for item in items:
        if len(line) + len(item) + 2 > width and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += f"{item}, "
    return [*lines, line.rstrip()] if line.strip() else lines
