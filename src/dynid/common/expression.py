"""Arithmetic of description files: numbers, names, + - * / ^, a few functions; nothing else.

Text becomes a postfix program by Dijkstra's shunting-yard method: no recursion, no `eval`. The
program runs on a stack, with floats for geometry and with arrays of samples for extra columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Shaped
from dynid.common.errors import InputError, nearest
from dynid.common.registry import Registry
from dynid.common.strict_number import UNSIGNED

LENGTH_LIMIT = 10_000
_MOST_PARSED = 1024  # expressions that are kept: robots with other dimensions have the same
SIGNALS = ("q", "dq", "ddq")

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "atan2": np.arctan2,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "abs": np.abs,
    "sign": np.sign,
}
_OF_ANGLES = ("sin", "cos", "tan")
_ARGUMENTS = {name: 2 if name == "atan2" else 1 for name in _FUNCTIONS}
# Friction of other packages: (q, dq, ddq) of a joint, shape (n,) each, -> the column of its parameter; a
# `DriveTerm` also says what is known of it. Own drive terms: `mechanism.drive_terms`.
FRICTION: Registry[Callable[..., Any]] = Registry(
    "dynid.friction", {}, gives=("numpy:ndarray", "dynid.mechanism.drive_terms:DriveTerm")
)
_STEP = 1e-6  # of central differences, relative: their error is 1e-10 of the column
_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "^": np.power,
    "neg": np.negative,
}
# Unary minus binds weaker than ^ (-2^2 = -4), as on paper; ^ groups from the right.
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "neg": 3, "^": 4}
_TOKEN = re.compile(
    r"\s*(?:(?P<signal>(?:ddq|dq|q)\s*\(\s*(?P<coordinate>[^()]*?(?:\([^()]*\)[^()]*?)*)\s*\))"
    rf"|(?P<number>{UNSIGNED})"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<power>\*\*)|(?P<mark>[-+*/^(),]))"
)

# Instructions: ("number", float), ("symbol", name), ("signal", (kind, coordinate)),
# ("operator", text), ("function", name).
Instruction = tuple[str, Any]


@dataclass(frozen=True)
class Expression:
    """A checked arithmetic text.

    Attributes:
        text: As written.
        program: Its instructions in postfix order.
        file, place: Where it is written, for messages.
    """

    text: str
    program: tuple[Instruction, ...]
    file: str | None = None
    place: str | None = None

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Free names (pi is not one)."""
        return frozenset(operand for kind, operand in self.program if kind == "symbol")

    @cached_property
    def angular(self) -> tuple[frozenset[str], frozenset[str]]:
        """Free names with the unit of the whole, and names that sin, cos or tan takes as angles.

        Factors count as having the unit of the whole: a number without a unit has no other use here.
        """
        inside: set[str] = set()
        stack: list[frozenset[str]] = []
        for kind, operand in self.program:
            if kind not in ("operator", "function"):
                stack.append(frozenset({operand} if kind == "symbol" else ()))
                continue
            n = _arguments(operand) if kind == "function" else 1 if operand == "neg" else 2
            names = frozenset[str]().union(*stack[-n:])
            del stack[-n:]
            inside |= names if operand in _OF_ANGLES else set()
            stack.append(frozenset() if operand in (*_OF_ANGLES, "atan2") else names)
        return stack[0], frozenset(inside)

    @cached_property
    def signals(self) -> frozenset[tuple[str, str]]:
        """Signals used: ("q" | "dq" | "ddq", coordinate)."""
        return frozenset(operand for kind, operand in self.program if kind == "signal")

    @cached_property
    def friction(self) -> frozenset[str]:
        """Functions of other packages that it uses."""
        return frozenset(
            operand for kind, operand in self.program if kind == "function" and operand not in _FUNCTIONS
        )

    @property
    def jumps(self) -> bool:
        """Whether it may jump with the sign of a velocity; a function of another package says so itself."""
        return "sign" in self.text or any(getattr(FRICTION[name], "jumps", True) for name in self.friction)

    def bound(self, symbols: Mapping[str, float]) -> Expression:
        """The same expression with the values of all its symbols inserted."""
        program = tuple(
            ("number", self._symbol(symbols, operand)) if kind == "symbol" else (kind, operand)
            for kind, operand in self.program
        )
        return Expression(self.text, program, self.file, self.place)

    def value(self, symbols: Mapping[str, float]) -> float:
        """Its value; refused when it is not finite or needs a signal."""
        if self.signals:
            used = sorted(f"{kind}({name})" for kind, name in self.signals)[0]
            raise self._error(f"'{self.text}' uses {used}, but a constant is needed here")
        result = float(self._run(symbols, _no_signal))
        if not math.isfinite(result):
            raise self._error(f"'{self.text}' gives {result}, not a finite number")
        return result

    def evaluate(
        self, symbols: Mapping[str, float], signal: Callable[[str, str], Shaped[Array, "n"]]
    ) -> Shaped[Array, "..."]:
        """Its value at every sample.

        Args:
            symbols: Values of the free names.
            signal: Gives q, dq or ddq of a coordinate, shape (n,), in rad or m and per s.

        Returns:
            Shape (n,); shape () when no signal is used. Refused when any value is not finite.
        """
        result = np.asarray(self._run(symbols, signal))
        if not np.all(np.isfinite(result)):
            first = int(np.flatnonzero(~np.isfinite(np.atleast_1d(result)))[0])
            raise self._error(f"'{self.text}' is not finite at sample {first}")
        return result

    def _run(self, symbols: Mapping[str, float], signal: Callable[[str, str], Any]) -> Any:
        stack: list[Any] = []
        with np.errstate(all="ignore"):  # the callers refuse values that are not finite
            for kind, operand in self.program:
                if kind == "number":
                    stack.append(operand)
                elif kind == "symbol":
                    stack.append(self._symbol(symbols, operand))
                elif kind == "signal":
                    stack.append(signal(*operand))
                else:
                    function = _function(operand) if kind == "function" else _OPERATORS[operand]
                    n = _arguments(operand) if kind == "function" else 1 if operand == "neg" else 2
                    arguments = stack[-n:]
                    del stack[-n:]
                    stack.append(function(*arguments))
        return stack[0]

    def _symbol(self, symbols: Mapping[str, float], name: str) -> float:
        if name not in symbols:
            raise self._error(f"'{name}' in '{self.text}' is not a symbol" + nearest(name, symbols))
        return float(symbols[name])

    def _error(self, text: str) -> InputError:
        return InputError(text, file=self.file, place=self.place, remedy="correct the expression")


def _arguments(name: str) -> int:
    return _ARGUMENTS.get(name, len(SIGNALS))


def _function(name: str) -> Callable[..., Any]:
    return _FUNCTIONS[name] if name in _FUNCTIONS else partial(_column, FRICTION[name])


def _column(function: Callable[..., Any], *given: Any) -> Shaped[Array, "..."]:
    """Friction of another package; along a complex step, its slope by central differences."""
    parts = np.broadcast_arrays(*given)
    real = [np.array(part.real, float) for part in parts]
    value = np.asarray(function(*real), float)
    if not any(map(np.iscomplexobj, parts)):
        return value
    slope = np.zeros_like(value)
    for i, part in enumerate(parts):
        step = _STEP * np.maximum(1.0, np.abs(real[i]))
        ends = [function(*real[:i], real[i] + side * step, *real[i + 1 :]) for side in (1.0, -1.0)]
        slope += part.imag * (ends[0] - ends[1]) / (2.0 * step)
    return np.asarray(value + 1j * slope)


@lru_cache(_MOST_PARSED)
def parse(text: str, *, file: str | None = None, place: str | None = None) -> Expression:
    """Check an arithmetic expression and compile it for evaluation."""
    return Expression(text, _Parser(text, file, place).run(), file, place)


def _no_signal(kind: str, coordinate: str) -> float:
    raise AssertionError(f"{kind}({coordinate})")  # callers refuse it earlier


class _Parser:
    """One pass over the text: operands go to the output, operators wait for weaker ones."""

    def __init__(self, text: str, file: str | None, place: str | None) -> None:
        self.text, self.file, self.place = text, file, place
        self.output: list[Instruction] = []
        # What waits: operators, "(" of a group, or (function, arguments seen) for a call.
        self.waiting: list[str | list[Any]] = []
        self.expects_operand = True
        self.after_sign = False

    def run(self) -> tuple[Instruction, ...]:
        if len(self.text) > LENGTH_LIMIT:
            raise self.refuse(f"the expression has {len(self.text)} characters", LENGTH_LIMIT)
        at, end = 0, len(self.text.rstrip())
        while at < end:
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise self.unexpected(at)
            start = match.end() - len(match.group().lstrip())
            self.take(match, start)
            at = match.end()
        if self.expects_operand:
            raise self.refuse(f"'{self.text}' ends where a value is expected", end)
        while self.waiting:
            top = self.waiting.pop()
            if not isinstance(top, str) or top == "(":
                raise self.refuse(f"'(' is not closed in '{self.text}'", end)
            self.output.append(("operator", top))
        return tuple(self.output)

    def take(self, match: re.Match[str], start: int) -> None:
        if match["power"]:
            raise self.refuse(f"'**' in '{self.text}'", start, "write ^ for a power")
        if match["mark"]:
            self.mark(match["mark"], start)
            return
        if not self.expects_operand:
            raise self.refuse(f"an operator is missing before '{match.group().strip()}'", start)
        if match["signal"]:
            kind = match["signal"].split("(")[0].strip()
            if not match["coordinate"]:
                raise self.refuse(f"{kind}() needs the name of a joint", start)
            self.operand("signal", (kind, match["coordinate"]))
        elif match["number"]:
            self.operand("number", float(match["number"]))
        else:
            self.name(match, start)

    def name(self, match: re.Match[str], start: int) -> None:
        name = match["name"]
        if self.text[match.end() :].lstrip().startswith("("):
            if name not in _FUNCTIONS and name not in FRICTION:
                known = (*_FUNCTIONS, *FRICTION, *SIGNALS)
                raise self.refuse(f"unknown function '{name}'" + nearest(name, known), start)
            self.waiting.append([name, 1])
            self.after_sign = False
        elif name in _FUNCTIONS:
            raise self.refuse(f"function '{name}' needs its argument in parentheses", start)
        elif name == "pi":
            self.operand("number", math.pi)
        else:
            self.operand("symbol", name)

    def operand(self, kind: str, what: Any) -> None:
        self.output.append((kind, what))
        self.expects_operand = self.after_sign = False

    def mark(self, mark: str, start: int) -> None:
        after_sign, self.after_sign = self.after_sign, False
        if mark == "(":
            if not self.expects_operand:
                raise self.refuse("an operator is missing before '('", start)
            self.waiting.append("(")
        elif mark in "),":
            self.end_argument(mark, start)
        elif self.expects_operand:
            if mark not in "+-":
                raise self.refuse(f"a value is missing before '{mark}'", start)
            if after_sign:  # `--20` is more often a typing error than 20
                raise self.refuse(f"two signs before a value in '{self.text}'", start, "write one sign")
            self.after_sign = True
            if mark == "-":
                self.waiting.append("neg")
        else:
            self.flush(_PRECEDENCE[mark] + (mark == "^"))
            self.waiting.append(mark)
            self.expects_operand = True

    def flush(self, least: int) -> None:
        """Move waiting operators that bind at least as strongly to the output."""
        while self.waiting:
            top = self.waiting[-1]
            if not isinstance(top, str) or top == "(" or _PRECEDENCE[top] < least:
                return
            self.output.append(("operator", top))
            self.waiting.pop()

    def end_argument(self, mark: str, start: int) -> None:
        if self.expects_operand:
            raise self.refuse(f"a value is missing before '{mark}'", start)
        self.flush(0)
        if not self.waiting:
            raise self.refuse(f"'{mark}' without '('" if mark == ")" else "',' outside a function", start)
        call = self.waiting[-2] if len(self.waiting) > 1 else None
        if mark == ",":
            if not isinstance(call, list):
                raise self.refuse("',' outside a function", start, "write numbers with a decimal point")
            call[1] += 1
            self.expects_operand = True
            return
        self.waiting.pop()
        if isinstance(call, list):
            self.waiting.pop()
            self.call(call[0], call[1], start)

    def call(self, name: str, given: int, start: int) -> None:
        if given != _arguments(name):
            raise self.refuse(f"'{name}' takes {_arguments(name)} argument(s), not {given}", start)
        self.output.append(("function", name))

    def unexpected(self, at: int) -> InputError:
        at += len(self.text[at:]) - len(self.text[at:].lstrip())
        return self.refuse(f"'{self.text[at]}' is not understood in '{self.text}'", at)

    def refuse(self, text: str, at: int, remedy: str = "") -> InputError:
        place = ", ".join(part for part in (self.place, f"character {at + 1} of the expression") if part)
        allowed = "use numbers, symbols, pi, + - * / ^, parentheses and " + ", ".join(_FUNCTIONS)
        return InputError(text, file=self.file, place=place, remedy=remedy or allowed)
