"""Reader of OpenSYMORO files (`.par`): modified DH of trees and closed loops, symbols, inertial parameters.

Frames 1 to NL carry the links of the tree. Joints NL + 1 to NJ are cut: frame NJ + k, fixed on another
link, coincides with frame NL + k. Values are arithmetic text, read by our own parser; nothing is evaluated
as a program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.common import limits
from dynid.common.errors import InputError, nearest
from dynid.common.expression import Expression, parse
from dynid.common.strict_number import is_count
from dynid.common.strict_yaml import BYTE_LIMIT, PathLike
from dynid.mechanism.frame import Frame, identity_frame, mdh_frame
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.joint import DIRECTIONS, FIXED_BY, Joint, JointKind, Loop
from dynid.mechanism.mechanism import BASE, Actuator, Body
from dynid.mechanism.parts import Parts
from dynid.mechanism.robot_file.scope import Scope

_COUNTS = ("NL", "NJ", "NF", "Type", "is_floating", "is_mobile")
_GEOMETRY = ("Ant", "Sigma", "B", "d", "R", "gamma", "Alpha", "Mu", "Theta")
_FRICTION = {"IA": "Ia", "FV": "Fv", "FS": "Fs"}
_FORCES = ("FX", "FY", "FZ", "CX", "CY", "CZ")
_BASE_MOTION = ("W0", "WP0", "V0", "VP0")
_MOTION = ("QP", "QDP", "Z", "eta", "k")  # of a state, which a log gives
_KEYS = (*_COUNTS, *_GEOMETRY, *SYMBOLS, *_FRICTION, *_FORCES, *_BASE_MOTION, *_MOTION, "G", "Robotname")
_STATEMENT = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(\{[^{}]*\}|[^\n]*)")
_ROBOT_NAME = re.compile(r"Robotname\s*=\s*'([^'\n]*)'")
_KINDS = {0: JointKind.REVOLUTE, 1: JointKind.PRISMATIC, 2: JointKind.FIXED}
_Z = np.array([0.0, 0.0, 1.0])
FRAME_LIMIT = 1000


@dataclass(frozen=True, eq=False)
class ParModel:
    """A file that was read: its lists as text, with the line of each."""

    file: str
    name: str
    values: Mapping[str, tuple[str, ...]]
    lines: Mapping[str, int]

    def error(self, text: str, key: str, remedy: str) -> InputError:
        """An error at a key."""
        line = f"line {self.lines[key]}, " if key in self.lines else ""
        return InputError(text, file=self.file, place=f"{line}{key}", remedy=remedy)

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number."""
        given = self.values.get(key, () if default is None else (str(default),))
        if len(given) != 1 or not is_count(given[0]):
            raise self.error(f"{key} is not a whole number", key, f"write {key} = 6")
        return int(given[0])

    def wholes(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers, one per frame."""
        texts = self.listed(key)
        for text in texts:
            if not is_count(text) or len(text) > 6:
                raise self.error(f"'{text}' in {key} is not a whole number", key, "correct the list")
        return tuple(map(int, texts))

    def listed(self, key: str, default: str | None = None) -> tuple[str, ...]:
        """One text per frame."""
        frames = self.count("NF")
        if key not in self.values and default is not None:
            return (default,) * frames
        if key not in self.values:
            raise self.error(f"the list {key} is missing", key, f"add {key} = {{...}} with {frames} entries")
        if len(self.values[key]) != frames:
            n_entries = len(self.values[key])
            raise self.error(
                f"{key} has {n_entries} entries, NF is {frames}", key, "give one entry per frame"
            )
        return self.values[key]

    def parsed(self, key: str, text: str) -> Expression:
        """Arithmetic text; SYMORO writes Pi and ** as well."""
        plain = re.sub(r"\bPi\b", "pi", text).replace("**", "^")
        return parse(plain, file=self.file, place=f"line {self.lines.get(key, 0)}, {key}")


def read_par(file: PathLike) -> ParModel:
    """Lists of the file as text; unknown and doubled keys are refused."""
    path = Path(file)
    try:
        if limits.exceeded(path.stat().st_size, BYTE_LIMIT):
            raise InputError(f"the file is larger than {BYTE_LIMIT} bytes", file=path, remedy=limits.REMEDY)
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path, remedy="check the path") from None
    except UnicodeDecodeError:
        raise InputError("this is not text", file=path, remedy="give an OpenSYMORO .par file") from None
    named = _ROBOT_NAME.search(text)
    plain = _without_comments(text).rstrip()
    values: dict[str, tuple[str, ...]] = {}
    lines: dict[str, int] = {}
    model = ParModel(str(path), (named[1].strip() if named else "") or path.stem, values, lines)
    at = 0
    while at < len(plain):
        statement = _STATEMENT.match(plain, at)
        if statement is None:
            line = plain.count("\n", 0, at + len(plain[at:]) - len(plain[at:].lstrip())) + 1
            raise InputError("this is not KEY = value", file=path, place=f"line {line}", remedy="correct it")
        key = statement[1]
        lines.setdefault(key, plain.count("\n", 0, statement.start(1)) + 1)
        if key not in _KEYS or key in values:
            problem = (
                f"'{key}' occurs twice" if key in values else f"unknown key '{key}'" + nearest(key, _KEYS)
            )
            raise model.error(problem, key, "correct the file")
        inner = statement[2].strip().removeprefix("{").removesuffix("}").rstrip(";")
        values[key] = tuple(item.strip().strip("'") for item in inner.split(",")) if inner.strip() else ()
        at = statement.end()
    _check(model)
    return model


def _without_comments(text: str) -> str:
    """Comments `(* ... *)` become their line ends, so that places stay right; one without end is kept."""
    parts, at = [], 0
    while (begin := text.find("(*", at)) >= 0 and (end := text.find("*)", begin + 2)) >= 0:
        parts += [text[at:begin], "\n" * text.count("\n", begin, end)]
        at = end + 2
    return "".join([*parts, text[at:]])


def _check(model: ParModel) -> None:
    """Counts that fit each other, and nothing that changes the dynamics unseen."""
    n_links, n_joints, n_frames = (model.count(key) for key in ("NL", "NJ", "NF"))
    cuts = n_joints - n_links
    if not 0 < n_links <= n_joints <= n_frames or n_frames != n_joints + cuts:
        raise model.error(
            f"NL = {n_links}, NJ = {n_joints}, NF = {n_frames} do not fit",
            "NF",
            "NF is NJ plus one frame per cut joint, NJ - NL",
        )
    if limits.exceeded(n_frames, FRAME_LIMIT):
        raise model.error(f"more than {FRAME_LIMIT} frames", "NF", limits.REMEDY)
    for key in ("is_floating", "is_mobile"):
        if model.values.get(key, ("0",))[:1] not in (("0",), ("False",), ("false",)):
            raise model.error(
                f"{key}: a moving base is not supported", key, "add a free joint in a robot file"
            )
    for key in (*_FORCES, *_BASE_MOTION):
        if any(value not in ("0", "0.0", "") for value in model.values.get(key, ())):
            raise model.error(f"{key} is not zero, which is not supported", key, "set it to zero")


def par_parts(model: ParModel, scope: Scope) -> Parts:
    """Joints, bodies, loops, motors and gravity, with the symbols in `scope`."""
    n_links, n_joints = model.count("NL"), model.count("NJ")
    ant, sigma = model.wholes("Ant"), model.wholes("Sigma")
    mu = model.wholes("Mu")
    for k, (before, kind) in enumerate(zip(ant, sigma, strict=True)):
        if kind not in _KINDS or before > n_links or (k < n_links and before > k):
            key = "Ant" if kind in _KINDS else "Sigma"
            raise model.error(
                f"frame {k + 1}: {key} {before if kind in _KINDS else kind} is not possible",
                key,
                "Sigma is 0, 1 or 2; the antecedent of a link comes before it",
            )
    frames = [_frame(model, scope, k) for k in range(model.count("NF"))]
    parts = Parts(model.name, gravity=_gravity(model, scope))
    for k in range(n_links):
        parts.joints.append(_joint(k, ant[k], _KINDS[sigma[k]], frames[k], f"body{k + 1}"))
        parts.bodies[f"body{k + 1}"] = _body(model, scope, k)
    for k in range(n_links, n_joints):
        _close(model, parts, k, k + n_joints - n_links, ant, _KINDS[sigma[k]], frames, bool(mu[k]))
    driven = [f"joint{k + 1}" for k in range(n_joints) if mu[k] and sigma[k] != 2]
    parts.actuators = tuple(Actuator(name, {name: 1.0}) for name in driven)
    for key, symbol in _FRICTION.items():
        for k, text in enumerate(model.listed(key, "0")[:n_joints]):
            value = _known(model, scope, key, text)
            if value and f"joint{k + 1}" in driven:
                parts.prior[f"{symbol}_joint{k + 1}"] = value
    return parts


def _name(frame: int) -> str:
    return f"body{frame}" if frame else BASE


def _joint(k: int, before: int, kind: JointKind, frame: Frame, child: str) -> Joint:
    axes = () if kind is JointKind.FIXED else (_Z,)
    return Joint(f"joint{k + 1}", kind, _name(before), child, frame, axes)


def _close(
    model: ParModel,
    parts: Parts,
    k: int,
    other: int,
    ant: tuple[int, ...],
    kind: JointKind,
    frames: list[Frame],
    driven: bool,
) -> None:
    """A cut joint as a loop; one with a motor keeps its coordinate, by a massless link that is welded."""
    if kind is JointKind.FIXED or ant[k] == ant[other]:
        raise model.error(
            f"the loop of frames {k + 1} and {other + 1} is not a joint of two links", "Ant", "correct it"
        )
    name, body, end = f"joint{k + 1}", _name(ant[k]), _name(ant[other])
    if driven:
        parts.joints.append(_joint(k, ant[k], kind, frames[k], f"joint{k + 1}_link"))
        parts.bodies[f"joint{k + 1}_link"] = Body(f"joint{k + 1}_link", parameters=())
        loop = Loop(f"closure{k + 1}", DIRECTIONS, f"joint{k + 1}_link", identity_frame(), end, frames[other])
    else:
        loop = Loop(name, FIXED_BY[kind], body, frames[k], end, frames[other])
    parts.loops += (loop,)


def _frame(model: ParModel, scope: Scope, k: int) -> Frame:
    """Modified DH of frame k + 1 at zero of its joint variable."""
    kind = model.wholes("Sigma")[k]
    variable = {0: "Theta", 1: "R"}.get(kind, "") if k < model.count("NJ") else ""
    numbers: dict[str, float] = {}
    for ours, key in (("gamma", "gamma"), ("alpha", "Alpha"), ("theta", "Theta")):
        text = model.listed(key)[k]
        numbers[ours] = scope.written_angle(
            _value(model, scope, key, text, key == variable), text, f"{key}{k + 1}"
        )
    for ours, key in (("b", "B"), ("d", "d"), ("r", "R")):
        text = model.listed(key)[k]
        value = _value(model, scope, key, text, key == variable)
        bare = not model.parsed(key, text).symbols
        numbers[ours] = scope.bare_length(value, f"{ours}_joint{k + 1}") if bare else value
    return mdh_frame(**numbers)


def _value(model: ParModel, scope: Scope, key: str, text: str, is_variable: bool) -> float:
    """A number; where the joint's own variable is written, what is added to it."""
    expression = model.parsed(key, text)
    unknown = sorted(expression.symbols - set(scope.symbols))
    if is_variable and len(unknown) == 1:
        at = [expression.value({**scope.symbols, unknown[0]: x}) for x in (0.0, 1.0, -2.0)]
        if abs(at[1] - at[0] - 1.0) > 1e-12 or abs(at[2] - at[0] + 2.0) > 1e-12:
            raise model.error(
                f"'{text}' is not the joint variable plus a constant", key, "write e.g. th1 + pi/2"
            )
        return at[0]
    if unknown:
        raise model.error(
            f"{', '.join(unknown)} in '{text}' has no value",
            key,
            "give it in a robot file over this one: source: arm.par, symbols: {" + f"{unknown[0]}: 0.4" + "}",
        )
    return expression.value(scope.symbols)


def _known(model: ParModel, scope: Scope, key: str, text: str) -> float | None:
    """A value if it is one; None for a symbol without a value, which is an unknown parameter."""
    expression = model.parsed(key, text or "0")
    return None if expression.symbols - set(scope.symbols) else expression.value(scope.symbols)


def _body(model: ParModel, scope: Scope, k: int) -> Body:
    """Parameters written as 0 do not exist; numbers are priors if the body has all of them."""
    given = [symbol for symbol in SYMBOLS if symbol in model.values]
    if not given:
        return Body(f"body{k + 1}")
    values: dict[str, float | None] = {}
    for symbol in SYMBOLS:
        texts = model.values.get(symbol, ())
        if symbol in model.values and len(texts) < model.count("NL"):
            raise model.error(f"{symbol} has {len(texts)} entries", symbol, "give one entry per link")
        values[symbol] = _known(model, scope, symbol, texts[k]) if texts else 0.0
    used = tuple(symbol for symbol in SYMBOLS if values[symbol] != 0.0)
    known = {symbol: value for symbol in used if (value := values[symbol]) is not None}
    return Body(f"body{k + 1}", parameters=used, prior=known if len(known) == len(used) else {})


def _gravity(model: ParModel, scope: Scope) -> tuple[float, ...]:
    texts = model.values.get("G", ("0", "0", "-9.81"))
    if len(texts) != 3:
        raise model.error(f"G has {len(texts)} entries", "G", "write G = {0, 0, -9.81}")
    return tuple(_value(model, scope, "G", text, is_variable=False) for text in texts)
