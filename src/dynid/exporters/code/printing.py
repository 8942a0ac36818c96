"""Expressions as statements: one temporary for each expression that is used more than once.

Names and texts of a robot as parts of programs: whatever they contain, they break nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword

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


_WIDTH = 110  # of a line of written code


def wrapped(items: Iterable[str], indent: str = "    ") -> list[str]:
    """Items separated by commas, in lines."""
    lines, line = [], indent
    for item in items:
        if len(line) + len(item) + 2 > _WIDTH and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += f"{item}, "
    return [*lines, line.rstrip()] if line.strip() else lines


_SIGNS = {"+": "_plus", "-": "_minus"}
_ODD = re.compile(r"[^A-Za-z0-9_]")
# A comment keeps what cannot end it: no star, backslash, quote, question mark (trigraphs), line end.
_LOUD = re.compile(r"[^A-Za-z0-9 _.,:;=+%()\[\]<>^/&|#$~{}-]")
_LONGEST = 24  # of a robot's name: all function names stay below the 63 characters that C99 compares
# A line of every file; what is behind the colon is replaced by the figure once the file was read back.
CERTIFICATE = "certificate: CERTIFICATE-OF-DYNID"
_TAKEN = ("math", "numpy")  # files that the code itself includes or imports


def identifier(name: str) -> str:
    """A valid identifier of C and Python for any name."""
    text = _ODD.sub("_", name)[:_LONGEST].strip("_")
    if not text:
        return "robot"
    if not text[0].isalpha() or iskeyword(text) or text in _TAKEN:
        return f"robot_{text}"
    return text


def parameter_names(names: Iterable[str]) -> list[str]:
    """Unique identifiers of parameters: `Fv+_sx` becomes `Fv_plus_sx`."""
    taken: list[str] = []
    for name in names:
        symbol, _, owner = name.partition("_")
        for sign, word in _SIGNS.items():
            symbol = symbol.replace(sign, word)
        text = _ODD.sub("_", f"{symbol}_{owner}" if owner else symbol)[:48]
        unique, k = text, 2
        while unique in taken:
            unique, k = f"{text}_{k}", k + 1
        taken.append(unique)
    return taken


def comment(text: str) -> str:
    """Text for a comment or docstring, on one line."""
    return _LOUD.sub("_", text)
