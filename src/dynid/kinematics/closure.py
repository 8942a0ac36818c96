"""Closures: loops, rods and couplings as equations f(q) = 0, with exact Jacobian and rates.

    A(q) dq = 0,      A ddq + gamma(q, dq) = 0,      gamma the acceleration of f at ddq = 0

Frames a and b of a loop are at R_a, p_a and R_b, p_b (base frame); with d = p_b - p_a and the
axes e_i of a, g_k of b, the equations are

    position along i    e_i . d
    one free rotation k  e_i . g_k, e_j . g_k            (both other axes stay orthogonal to it)
    one fixed rotation   e_i . g_j                        (universal: i of a normal to j of b)
    all rotations fixed  (e_j . g_i - e_i . g_j) / 2      (three of them, zero at alignment)
    rod                  (d . d - L^2) / (2 L)
    cable                L(d) - length, or L(d) - q_c     (L as in `cable_kernels`, d in the axes of a)
    swivel encoder       angle of d about z of a - q_s
    coupling             q_j - sum ratio q_k - offset
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Inexact
from dynid.kinematics.tile import ALONG, CABLE, NORMAL, ROD, SWIVEL
from dynid.kinematics.tree import Tree, tree_of
from dynid.mechanism.frame import Frame
from dynid.mechanism.joint import Loop
from dynid.mechanism.mechanism import BASE, Mechanism

_AXES = {"x": 0, "y": 1, "z": 2, "rx": 0, "ry": 1, "rz": 2}


@dataclass(frozen=True, eq=False)
class _Along:
    """e_axis of a . d = 0."""

    loop: int
    axis: int


@dataclass(frozen=True, eq=False)
class _Normal:
    """Sum of weight * (e_i of a) . (g_k of b) = 0."""

    loop: int
    terms: tuple[tuple[float, int, int], ...]


@dataclass(frozen=True, eq=False)
class _Rod:
    """Distance of the origins is `length`."""

    loop: int
    length: float


@dataclass(frozen=True, eq=False)
class _Cable:
    """Length over a pulley, or its swivel angle, is a constant or a coordinate (position, velocity) alone."""

    loop: int
    kind: int
    radius: float
    length: float
    coordinate: tuple[int, int] | None


@dataclass(frozen=True, eq=False)
class _Linear:
    """Sum of factor * q = offset; terms contain position, velocity (the same scalar) and factor."""

    terms: tuple[tuple[int, int, float], ...]
    offset: float


_Equation = _Along | _Normal | _Rod | _Cable | _Linear
Tables = tuple[tuple[Array, ...], ...]


@dataclass(frozen=True, eq=False)
class ClosureValues:
    """Closure equations of a batch: values f (n, c), Jacobian A (n, c, v)."""

    f: Inexact[Array, "n c"]
    A: Inexact[Array, "n c v"]


class Closure:
    """The closure equations of a mechanism, evaluated in batches."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.tree = tree_of(mechanism)
        self.equations = _equations(mechanism)
        self.names = tuple(_names(mechanism))
        self.tables = tables_of(self.tree, mechanism, self.equations)

    @cached_property
    def count(self) -> int:
        """Number of equations, redundant ones included."""
        return len(self.equations)

    def values(self, q: Inexact[Array, "n q"]) -> ClosureValues:
        """F and A at tree positions; complex positions carry a derivative."""
        from dynid.kinematics.closure_kernels import closure_values

        q = np.ascontiguousarray(q, dtype=np.result_type(np.float64, q))
        f, A = np.zeros((len(q), self.count), q.dtype), np.zeros((len(q), self.count, self.tree.n_v), q.dtype)
        closure_values(*self.tables, q, f, A)
        return ClosureValues(f, A)

    def bias(self, q: Inexact[Array, "n q"], dq: Inexact[Array, "n v"]) -> Inexact[Array, "n c"]:
        """gamma: second time derivative of f at ddq = 0."""
        from dynid.kinematics.closure_kernels import closure_bias

        kind = np.result_type(np.float64, q, dq)
        gamma = np.zeros((len(q), self.count), kind)
        q, dq = (np.ascontiguousarray(x, dtype=kind) for x in (q, dq))
        closure_bias(*self.tables[:3], q, dq, np.zeros_like(dq), np.zeros(3), gamma)
        return gamma

    def turned_over(self, q: Float[Array, "n q"]) -> Bool[Array, "n l"]:
        """Loops with an inverted axis: their equations are also zero after half a turn."""
        from dataclasses import replace

        from dynid.kinematics.tree import body_poses

        links, frames = _loop_frames(self.tree, self.mechanism)
        names = tuple(str(i) for i in range(len(links)))
        placed = np.array(frames).reshape(-1, 12)
        tree = replace(
            self.tree, body_link=np.array(links, dtype=np.int64), body_frame=placed, body_names=names
        )
        R, _ = body_poses(tree, q)
        wrong = np.zeros((len(q), len(self.mechanism.loops)), dtype=bool)
        for i, loop in enumerate(self.mechanism.loops):
            fixed = [_AXES[name] for name in ("rx", "ry", "rz") if name in loop.fix]
            held = {3: [0, 1, 2], 2: [k for k in range(3) if k not in fixed]}.get(len(fixed), [])
            agree = np.einsum("nik,nik->nk", R[:, 2 * i][:, :, held], R[:, 2 * i + 1][:, :, held])
            wrong[:, i] = np.any(agree < 0.0, axis=1)
        return wrong


def moved(mechanism: Mechanism, q: Float[Array, "n q"], step: Float[Array, "n v"]) -> Float[Array, "n q"]:
    """Positions after a finite step in velocity coordinates; quaternions keep unit length."""
    if not any(joint.has_quaternion for joint in mechanism.joints):
        return q + step
    at_q, at_v, quaternions = _places(mechanism)
    positions = np.array(q)
    positions[:, at_q] += step[:, at_v]
    for p, v in quaternions:
        positions[:, p : p + 4] = _turned(q[:, p : p + 4], step[:, v : v + 3])
    return positions


_PLACES: WeakKeyDictionary[Mechanism, tuple[list[int], list[int], list[tuple[int, int]]]] = (
    WeakKeyDictionary()
)


def _places(mechanism: Mechanism) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Positions that are integrals of one velocity, those velocities, and where quaternions begin."""
    if mechanism not in _PLACES:
        at_q: list[int] = []
        at_v: list[int] = []
        quaternions: list[tuple[int, int]] = []
        iq = iv = 0
        for joint in mechanism.joints:
            nq, nv = len(joint.positions), len(joint.coordinates)
            plain = nv - 3 if joint.has_quaternion else nv
            at_q += range(iq, iq + plain)
            at_v += range(iv, iv + plain)
            if joint.has_quaternion:
                quaternions.append((iq + plain, iv + plain))
            iq, iv = iq + nq, iv + nv
        _PLACES[mechanism] = at_q, at_v, quaternions
    return _PLACES[mechanism]


def _turned(q: Float[Array, "n 4"], turn: Float[Array, "n 3"]) -> Float[Array, "n 4"]:
    """Q times the quaternion of a rotation vector in the moving frame."""
    half = 0.5 * np.sqrt(np.sum(turn * turn, axis=1))
    c, (x, y, z) = np.cos(half), 0.5 * turn.T * np.sinc(half / np.pi)
    w0, x0, y0, z0 = q.T
    product = np.column_stack(
        [
            w0 * c - x0 * x - y0 * y - z0 * z,
            w0 * x + c * x0 + y0 * z - z0 * y,
            w0 * y + c * y0 + z0 * x - x0 * z,
            w0 * z + c * z0 + x0 * y - y0 * x,
        ]
    )
    return np.asarray(product / np.sqrt(np.sum(product * product, axis=1, keepdims=True)))


def _equations(mechanism: Mechanism) -> tuple[_Equation, ...]:
    equations: list[_Equation] = []
    for i, loop in enumerate(mechanism.loops):
        equations += _loop_equations(i, loop)
    equations += _cable_equations(mechanism)
    for coupling in mechanism.couplings:
        terms = tuple(
            (mechanism.positions.index(name), mechanism.coordinates.index(name), -ratio)
            for name, ratio in {coupling.joint: -1.0, **coupling.of}.items()
        )
        equations.append(_Linear(terms, coupling.offset))
    return tuple(equations)


def _cable_equations(mechanism: Mechanism) -> list[_Equation]:
    """One equation per cable, then one per swivel encoder; they are numbered as loops after the others."""
    equations: list[_Equation] = []
    first = len(mechanism.loops)

    def coordinate(name: str) -> tuple[int, int]:
        return mechanism.positions.index(name), mechanism.coordinates.index(name)

    for i, cable in enumerate(mechanism.cables):
        length_at = coordinate(cable.name) if cable.length is None else None
        equations.append(_Cable(first + i, CABLE, cable.radius, cable.length or 0.0, length_at))
    first += len(mechanism.cables)
    for i, swivel in enumerate(mechanism.swivels):
        equations.append(_Cable(first + i, SWIVEL, 0.0, 0.0, coordinate(swivel.name)))
    return equations


def _loop_equations(i: int, loop: Loop) -> list[_Equation]:
    if loop.length is not None:
        return [_Rod(i, loop.length)]
    equations: list[_Equation] = [_Along(i, _AXES[name]) for name in ("x", "y", "z") if name in loop.fix]
    fixed = [_AXES[name] for name in ("rx", "ry", "rz") if name in loop.fix]
    if len(fixed) == 3:
        for k in range(3):
            j, m = (k + 1) % 3, (k + 2) % 3
            equations.append(_Normal(i, ((0.5, m, j), (-0.5, j, m))))
    elif len(fixed) == 2:
        free = ({0, 1, 2} - set(fixed)).pop()
        equations += [_Normal(i, ((1.0, axis, free),)) for axis in fixed]
    elif len(fixed) == 1:
        first, second = sorted({0, 1, 2} - set(fixed))
        equations.append(_Normal(i, ((1.0, first, second),)))
    return equations


def _names(mechanism: Mechanism) -> list[str]:
    """The loop or coupling that each equation belongs to."""
    names = []
    for i, loop in enumerate(mechanism.loops):
        names += [loop.name] * len(_loop_equations(i, loop))
    names += [cable.name for cable in mechanism.cables] + [swivel.name for swivel in mechanism.swivels]
    return names + [f"coupling of {coupling.joint}" for coupling in mechanism.couplings]


def tables_of(tree: Tree, mechanism: Mechanism, equations: Sequence[_Equation]) -> Tables:
    """The closure as input of the kernels: tree, loops, equations, couplings, and the row and
    column of each Jacobian entry. See `closure_kernels`."""
    loops, loop_entries = _loop_tables(tree, mechanism, equations)
    linear, linear_entries = _linear_tables(equations)
    entries = np.array(loop_entries + linear_entries, dtype=np.int64).reshape(-1, 2)
    where = (np.ascontiguousarray(entries[:, 0]), np.ascontiguousarray(entries[:, 1]))
    links = (tree.parent, tree.kind, tree.q_start, tree.v_start, tree.placement)
    return links, loops, _equation_tables(equations), linear, where


def _loop_tables(
    tree: Tree, mechanism: Mechanism, equations: Sequence[_Equation]
) -> tuple[tuple[Array, ...], list[tuple[int, int]]]:
    """Frames, coordinates, equations and entries of each loop.

    Coordinates that carry both frames cause no relative motion of the frames: they have no entry.
    """
    links, frames = _loop_frames(tree, mechanism)
    rows = tree.coordinate_links()
    of_loop = [
        [c for c, equation in enumerate(equations) if _loop_of(equation) == i] for i in range(len(links) // 2)
    ]
    first_coordinate, first_equation, first_entry, moving = [0], [0], [0], []
    entries: list[tuple[int, int]] = []
    for i, loop_rows in enumerate(of_loop):
        chains = [set(tree.ancestors(links[2 * i + side])) for side in (0, 1)]
        for side, sign in ((1, 1.0), (0, -1.0)):
            for column, (link, axis, slides) in enumerate(rows):
                if link in chains[side] - chains[1 - side]:
                    moving.append((link, axis, slides, sign))
                    entries += [(row, column) for row in loop_rows]
        entries += [
            (row, equation.coordinate[1])
            for row in loop_rows
            if isinstance(equation := equations[row], _Cable) and equation.coordinate
        ]
        first_coordinate.append(len(moving))
        first_equation.append(first_equation[-1] + len(loop_rows))
        first_entry.append(len(entries))
    counts = (first_coordinate, first_equation, first_entry)
    tables: list[Array] = [np.array(links, dtype=np.int64), np.array(frames).reshape(-1, 12)]
    tables += [np.array(x, dtype=np.int64) for x in counts]
    tables += [np.array([mover[k] for mover in moving], dtype=np.int64) for k in (0, 1)]
    tables += [
        np.array([mover[2] for mover in moving], dtype=bool),
        np.array([mover[3] for mover in moving], float),
    ]
    return tuple(tables), entries


def _loop_of(equation: _Equation) -> int:
    return -1 if isinstance(equation, _Linear) else equation.loop


def _loop_frames(tree: Tree, mechanism: Mechanism) -> tuple[list[int], list[Float[Array, "12"]]]:
    """Link and placement of frames a and b of each loop, then of each cable and swivel encoder."""
    where = {
        name: (int(link), Frame(flat[:9].reshape(3, 3), flat[9:]))
        for name, link, flat in zip(tree.body_names, tree.body_link, tree.body_frame, strict=True)
    }
    where[BASE] = (-1, Frame(np.eye(3), np.zeros(3)))
    links, frames = [], []
    for body, frame in _ends(mechanism):
        link, at = where[body]
        placed = at @ frame
        links.append(link)
        frames.append(np.concatenate([placed.R.ravel(), placed.p]))
    return links, frames


def _ends(mechanism: Mechanism) -> list[tuple[str, Frame]]:
    """Body and frame of both ends of loops, cables and the cables of swivel encoders."""
    end_frames = []
    for loop in mechanism.loops:
        end_frames += [(loop.body_a, loop.a), (loop.body_b, loop.b)]
    named = {cable.name: cable for cable in mechanism.cables}
    for cable in (*mechanism.cables, *(named[swivel.cable] for swivel in mechanism.swivels)):
        end_frames += [(cable.body_from, cable.entry), (cable.body_to, cable.attachment)]
    return end_frames


def _equation_tables(equations: Sequence[_Equation]) -> tuple[Array, ...]:
    """Kind, axis, length, terms, radius and own coordinate of the equations, without couplings."""
    closures = [candidate for candidate in equations if not isinstance(candidate, _Linear)]
    kind, axis = np.full(len(closures), NORMAL), np.zeros(len(closures), dtype=np.int64)
    length, first = np.ones(len(closures)), [0]
    radius, position = np.zeros(len(closures)), np.full(len(closures), -1)
    terms: list[tuple[float, int, int]] = []
    for c, equation in enumerate(closures):
        if isinstance(equation, _Along):
            kind[c], axis[c] = ALONG, equation.axis
        elif isinstance(equation, _Rod):
            kind[c], length[c] = ROD, equation.length
        elif isinstance(equation, _Cable):
            kind[c], radius[c], length[c] = equation.kind, equation.radius, equation.length
            position[c] = equation.coordinate[0] if equation.coordinate else -1
        else:
            terms += equation.terms
        first.append(len(terms))
    weights = np.array([weight for weight, _, _ in terms], dtype=float)
    of_a, of_b = (np.array([term[k] for term in terms], dtype=np.int64) for k in (1, 2))
    return kind, axis, length, np.array(first, dtype=np.int64), weights, of_a, of_b, radius, position


def _linear_tables(equations: Sequence[_Equation]) -> tuple[tuple[Array, ...], list[tuple[int, int]]]:
    """First entry, position and coefficient of each entry, offsets; and rows and columns."""
    first, positions, factors, offsets = [0], [], [], []
    entries: list[tuple[int, int]] = []
    for c, equation in enumerate(equations):
        if isinstance(equation, _Linear):
            for position, column, factor in equation.terms:
                positions.append(position)
                factors.append(factor)
                entries.append((c, column))
            offsets.append(equation.offset)
            first.append(len(positions))
    tables = (
        np.array(first, dtype=np.int64),
        np.array(positions, dtype=np.int64),
        np.array(factors, dtype=float),
        np.array(offsets, dtype=float),
    )
    return tables, entries
