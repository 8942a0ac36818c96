"""Closures: loops, rods and couplings as equations f(q) = 0, with exact Jacobian and rates.

    A(q) dq = 0,      A ddq + gamma(q, dq) = 0,      gamma the acceleration of f at ddq = 0

Frames a and b of a loop stand at R_a, p_a and R_b, p_b (base frame); with d = p_b - p_a and the
axes e_i of a, g_k of b, the equations are

    position along i    e_i . d
    one free rotation k  e_i . g_k, e_j . g_k            (both other axes stay normal to it)
    one fixed rotation   e_i . g_j                        (universal: i of a normal to j of b)
    all rotations fixed  (e_j . g_i - e_i . g_j) / 2      (three of them, zero at alignment)
    rod                  (d . d - L^2) / (2 L)
    coupling             q_j - sum ratio q_k - offset
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from dynid.arrays import Array
from dynid.kinematics.equation_kinds import ALONG, LINEAR, NORMAL, ROD
from dynid.kinematics.tree import Tree, tree_of
from dynid.mechanism.frame import Frame
from dynid.mechanism.loop import Loop
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
class _Linear:
    """row . q_scalar = offset, on coordinates that are their own velocity."""

    positions: Float[Array, "q"]
    velocities: Float[Array, "v"]
    offset: float


_Equation = _Along | _Normal | _Rod | _Linear


@dataclass(frozen=True, eq=False)
class ClosureValues:
    """Closure equations of a batch: values f (n, c), Jacobian A (n, c, v)."""

    f: Float[Array, "n c"]
    A: Float[Array, "n c v"]


class Closure:
    """The closure equations of a mechanism, evaluated in batches."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.tree = tree_of(mechanism)
        self.equations = _equations(mechanism)
        self.names = tuple(_names(mechanism))
        self._frames = _frame_tree(self.tree, mechanism)
        self._moving = _frames_and_links(self.tree, self._frames)
        self._tables = _tables(self.tree, self._frames, self.equations)

    @cached_property
    def count(self) -> int:
        """Number of equations, redundant ones included."""
        return len(self.equations)

    def values(self, q: Float[Array, "n q"]) -> ClosureValues:
        """F and A at tree positions."""
        from dynid.kinematics.closure_kernels import closure_values
        from dynid.kinematics.tree import body_states

        still = np.zeros((len(q), self.tree.n_v))
        motion = body_states(self._moving, q, still, still)
        f, A = np.zeros((len(q), self.count)), np.zeros((len(q), self.count, self.tree.n_v))
        closure_values(motion, len(self._frames.body_link), *self._tables, np.ascontiguousarray(q), f, A)
        return ClosureValues(f, A)

    def bias(self, q: Float[Array, "n q"], dq: Float[Array, "n v"]) -> Float[Array, "n c"]:
        """gamma: second time derivative of f at ddq = 0."""
        R, p, V, dV = _motion(self._frames, q, dq, np.zeros_like(dq))
        gamma = np.zeros((len(q), self.count))
        for c, equation in enumerate(self.equations):
            if isinstance(equation, _Linear):
                continue
            a, b = 2 * equation.loop, 2 * equation.loop + 1
            d = p[:, b] - p[:, a]
            d1, d2 = V[:, b, :3] - V[:, a, :3], dV[:, b, :3] - dV[:, a, :3]
            if isinstance(equation, _Along):
                e = R[:, a, :, equation.axis]
                e1, e2 = _axis_rates(e, V[:, a, 3:], dV[:, a, 3:])
                gamma[:, c] = _dot(e, d2) + 2.0 * _dot(e1, d1) + _dot(e2, d)
            elif isinstance(equation, _Rod):
                gamma[:, c] = (_dot(d1, d1) + _dot(d, d2)) / equation.length
            else:
                for weight, i, k in equation.terms:
                    e, g = R[:, a, :, i], R[:, b, :, k]
                    e1, e2 = _axis_rates(e, V[:, a, 3:], dV[:, a, 3:])
                    g1, g2 = _axis_rates(g, V[:, b, 3:], dV[:, b, 3:])
                    gamma[:, c] += weight * (_dot(e2, g) + 2.0 * _dot(e1, g1) + _dot(e, g2))
        return gamma


def moved(mechanism: Mechanism, q: Float[Array, "n q"], step: Float[Array, "n v"]) -> Float[Array, "n q"]:
    """Positions after a finite step in velocity coordinates; quaternions stay on their sphere."""
    if not any(joint.has_quaternion for joint in mechanism.joints):
        return q + step
    parts, iq, iv = [], 0, 0
    for joint in mechanism.joints:
        nq, nv = len(joint.positions), len(joint.coordinates)
        x, s = q[:, iq : iq + nq], step[:, iv : iv + nv]
        if joint.has_quaternion:
            parts += [x[:, :-4] + s[:, :-3], _turned(x[:, -4:], s[:, -3:])]
        else:
            parts.append(x + s)
        iq, iv = iq + nq, iv + nv
    return np.concatenate(parts, axis=1)


def _turned(q: Float[Array, "n 4"], turn: Float[Array, "n 3"]) -> Float[Array, "n 4"]:
    """Q times the quaternion of a rotation vector in the moving frame."""
    half = 0.5 * np.linalg.norm(turn, axis=1, keepdims=True)
    w, v = np.cos(half), 0.5 * turn * np.sinc(half / np.pi)
    scalar = q[:, :1] * w - np.sum(q[:, 1:] * v, axis=1, keepdims=True)
    vector = q[:, :1] * v + w * q[:, 1:] + _cross(q[:, 1:], v)
    product = np.concatenate([scalar, vector], axis=1)
    return np.asarray(product / np.linalg.norm(product, axis=1, keepdims=True))


def _equations(mechanism: Mechanism) -> tuple[_Equation, ...]:
    found: list[_Equation] = []
    for i, loop in enumerate(mechanism.loops):
        found += _loop_equations(i, loop)
    for coupling in mechanism.couplings:
        on_q, on_v = np.zeros(len(mechanism.positions)), np.zeros(len(mechanism.coordinates))
        for name, ratio in {coupling.joint: -1.0, **coupling.of}.items():
            on_q[mechanism.positions.index(name)] -= ratio
            on_v[mechanism.coordinates.index(name)] -= ratio
        found.append(_Linear(on_q, on_v, coupling.offset))
    return tuple(found)


def _loop_equations(i: int, loop: Loop) -> list[_Equation]:
    if loop.length is not None:
        return [_Rod(i, loop.length)]
    found: list[_Equation] = [_Along(i, _AXES[name]) for name in ("x", "y", "z") if name in loop.fix]
    fixed = [_AXES[name] for name in ("rx", "ry", "rz") if name in loop.fix]
    if len(fixed) == 3:
        for k in range(3):
            j, m = (k + 1) % 3, (k + 2) % 3
            found.append(_Normal(i, ((0.5, m, j), (-0.5, j, m))))
    elif len(fixed) == 2:
        free = ({0, 1, 2} - set(fixed)).pop()
        found += [_Normal(i, ((1.0, axis, free),)) for axis in fixed]
    elif len(fixed) == 1:
        first, second = sorted({0, 1, 2} - set(fixed))
        found.append(_Normal(i, ((1.0, first, second),)))
    return found


def _names(mechanism: Mechanism) -> list[str]:
    """The loop or coupling that each equation belongs to."""
    names = []
    for i, loop in enumerate(mechanism.loops):
        names += [loop.name] * len(_loop_equations(i, loop))
    return names + [f"coupling of {coupling.joint}" for coupling in mechanism.couplings]


def _frame_tree(tree: Tree, mechanism: Mechanism) -> Tree:
    """The tree with the loop frames (a, b of each loop) in place of its bodies, without gravity."""
    where = {
        name: (int(link), frame)
        for name, link, frame in zip(tree.body_names, tree.body_link, tree.body_frame, strict=True)
    }
    where[BASE] = (-1, _flat(Frame(np.eye(3), np.zeros(3))))
    links, frames = [], []
    for loop in mechanism.loops:
        for body, frame in ((loop.body_a, loop.a), (loop.body_b, loop.b)):
            link, flat = where[body]
            links.append(link)
            frames.append(_flat(Frame(flat[:9].reshape(3, 3), flat[9:]) @ frame))
    return _with_bodies(tree, np.array(links, dtype=np.int64), np.array(frames).reshape(-1, 12))


def _frames_and_links(tree: Tree, frames: Tree) -> Tree:
    """The tree with the loop frames, then its own link frames, in place of its bodies."""
    links = np.arange(len(tree.parent), dtype=np.int64)
    identity = np.tile(_flat(Frame(np.eye(3), np.zeros(3))), (len(links), 1))
    return _with_bodies(
        tree,
        np.concatenate([frames.body_link, links]),
        np.concatenate([frames.body_frame, identity]),
    )


def _tables(tree: Tree, frames: Tree, equations: Sequence[_Equation]) -> tuple[tuple[Array, ...], ...]:
    """The equations as the kernel reads them: see `closure_kernels.closure_values`."""
    n_q, n_v, count = tree.n_q, tree.n_v, len(equations)
    kind, loop, axis = np.zeros((3, count), dtype=np.int64)
    length, offset = np.ones(count), np.zeros(count)
    on_q, on_v = np.zeros((count, n_q)), np.zeros((count, n_v))
    start, terms = [0], []
    for c, equation in enumerate(equations):
        if isinstance(equation, _Linear):
            kind[c], offset[c] = LINEAR, equation.offset
            on_q[c], on_v[c] = equation.positions, equation.velocities
        elif isinstance(equation, _Along):
            kind[c], loop[c], axis[c] = ALONG, equation.loop, equation.axis
        elif isinstance(equation, _Rod):
            kind[c], loop[c], length[c] = ROD, equation.loop, equation.length
        else:
            kind[c], loop[c] = NORMAL, equation.loop
            terms += list(equation.terms)
        start.append(len(terms))
    weights = np.array([weight for weight, _, _ in terms], dtype=float)
    of_a, of_b = (np.array([term[k] for term in terms], dtype=np.int64) for k in (1, 2))
    rows = tree.coordinate_links()
    chains = [set(tree.ancestors(int(at))) for at in frames.body_link]
    listed = [[r for r, (link, _, _) in enumerate(rows) if link in chain] for chain in chains]
    ancestors = np.array([r for one in listed for r in one], dtype=np.int64)
    bounds = np.concatenate([[0], np.cumsum([len(one) for one in listed])]).astype(np.int64)
    links, axes = (np.array([row[k] for row in rows], dtype=np.int64) for k in (0, 1))
    slides = np.array([row[2] for row in rows], dtype=bool)
    return (
        (kind, loop, axis, length),
        (np.array(start, dtype=np.int64), weights, of_a, of_b),
        (on_q, on_v, offset),
        (bounds, ancestors),
        (links, axes, slides),
    )


def _with_bodies(tree: Tree, links: Int[Array, "b"], frames: Float[Array, "b 12"]) -> Tree:
    from dataclasses import replace

    names = tuple(str(i) for i in range(len(links)))
    return replace(tree, body_link=links, body_frame=frames, body_names=names, gravity=np.zeros(3))


def _flat(frame: Frame) -> Float[Array, "12"]:
    return np.concatenate([frame.R.ravel(), frame.p])


def _motion(
    tree: Tree, q: Float[Array, "n q"], dq: Float[Array, "n v"], ddq: Float[Array, "n v"]
) -> tuple[Array, Array, Array, Array]:
    """R, p, V, dV of the tree's bodies with rates in base axes."""
    from dynid.kinematics.tree import body_motion

    motion = body_motion(tree, q, dq, ddq)
    turn = np.einsum  # rates come in body axes
    V, dV = (
        np.concatenate(
            [turn("nbij,nbj->nbi", motion.R, x[..., :3]), turn("nbij,nbj->nbi", motion.R, x[..., 3:])],
            axis=-1,
        )
        for x in (motion.V, motion.dV)
    )
    return motion.R, motion.p, V, dV


def _axis_rates(
    e: Float[Array, "n 3"], omega: Float[Array, "n 3"], alpha: Float[Array, "n 3"]
) -> tuple[Float[Array, "n 3"], Float[Array, "n 3"]]:
    """First and second time derivative of an axis fixed to a frame."""
    first = _cross(omega, e)
    return first, _cross(alpha, e) + _cross(omega, first)


def _cross(a: Float[Array, "n 3"], b: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
    """A x b; NumPy's own spends most of its time on arguments it does not get here."""
    out = np.empty_like(b)
    out[:, 0] = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    out[:, 1] = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    out[:, 2] = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return out


def _dot(a: Float[Array, "n 3"], b: Float[Array, "n 3"]) -> Float[Array, "n"]:
    return np.asarray(np.sum(a * b, axis=1))
