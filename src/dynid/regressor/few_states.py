"""W_tree at a few states, as the equation says, without compiled code: what `dynid info` needs of a tree.

    W_tree = sum over bodies of J_b^T W_body        drive terms: S^T column(S dq)

Loading or compiling the kernels takes longer than this for a hundred states; for logs they are a hundred
times faster. A test compares both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.kinematics.tree import PRISMATIC, REVOLUTE, SPHERICAL, Tree, tree_of
from dynid.mechanism.drive_terms import drive_term
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import STRIBECK_SPEED, Parameter, source_index, speed_map
from dynid.regressor.wrench import body_kernel, skew


@dataclass(frozen=True, eq=False)
class _Link:
    """Motion of a frame, base axes: R, origin p, angular rates w and dw, acceleration a minus gravity."""

    R: Float[Array, "n 3 3"]
    p: Float[Array, "n 3"]
    w: Float[Array, "n 3"]
    dw: Float[Array, "n 3"]
    a: Float[Array, "n 3"]

    @cached_property
    def turning(self) -> Float[Array, "n 3 3"]:
        """Acceleration of a point per distance from the origin."""
        W = skew(self.w)
        return np.asarray(skew(self.dw) + W @ W)

    def carried(self, R: Float[Array, "n 3 3"], d: Float[Array, "n 3"]) -> _Link:
        """A frame with axes R that moves with this one at a distance d, base axes."""
        a = self.a + _turned(self.turning, d)
        return _Link(R, self.p + d, self.w, self.dw, a)

    def fixed(self, frame: Float[Array, "12"]) -> _Link:
        """The frame fixed to this one, as of `Tree.placement`."""
        return self.carried(self.R @ frame[:9].reshape(3, 3), self.R @ frame[9:])


def few_states_matrix(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    states: tuple[Float[Array, "n q"], Float[Array, "n v"], Float[Array, "n v"]],
    mounted: Sequence[str] = (),
    load: Float[Array, "n s"] | None = None,
) -> Float[Array, "n v p"]:
    """W_tree of all coordinates.

    Args:
        states: q, dq, ddq of the tree, in [rad, m, -] and per s.
        mounted: Payloads that are on the robot; columns of the others are zero.
        load: As of `TreeRegressor.batch`; None: one.
    """
    dq, ddq = states[1:]
    index = {parameter.name: i for i, parameter in enumerate(parameters)}
    W = np.zeros((*dq.shape, len(parameters)))
    tree = tree_of(mechanism)
    links = _links(tree, *states)
    for b, body in enumerate(tree.body_names):
        kept = [k for k, symbol in enumerate(SYMBOLS) if f"{symbol}_{body}" in index]
        if kept and (body not in mechanism.payloads or body in mounted):
            moved_by, rows = _body_rows(tree, links, b)
            columns = [index[f"{SYMBOLS[k]}_{body}"] for k in kept]
            W[:, np.array(moved_by, dtype=int)[:, None], columns] = rows[:, :, kept]
    drives = [i for i, item in enumerate(parameters) if item.kind == "drive"]
    maps = speed_map(mechanism, [parameters[i].owner for i in drives])
    for i, S in zip(drives, maps, strict=True):
        symbol, owner = parameters[i].symbol, parameters[i].owner
        size = np.ones(len(dq)) if load is None else load[:, source_index(mechanism, owner)]
        column = drive_column(symbol, dq @ S, ddq @ S, size, mechanism.stribeck.get(owner))
        rows = np.flatnonzero(S)
        W[:, rows, i] = column[:, None] * S[rows]
    for i, entry in enumerate(parameters):
        if entry.kind == "term":
            W[:, :, i] = term_rows(mechanism, entry.name, states)
    return W


def drive_column(
    symbol: str,
    speed: Float[Array, "n"],
    acceleration: Float[Array, "n"],
    load: Float[Array, "n"],
    scale: float | None = None,
) -> Float[Array, "n"]:
    """Effort of a drive term of value one, at its owner.

    Args:
        speed, acceleration: Of the owner, in [rad/s] or [m/s], and per s.
        load: To which load-dependent friction is proportional, in [N m] or [N].
        scale: Stribeck speed; None: `STRIBECK_SPEED`.
    """
    term = drive_term(symbol)
    if term is None:
        raise KeyError(symbol)
    return np.asarray(term.column(speed, acceleration, load, scale or STRIBECK_SPEED))


def term_rows(
    mechanism: Mechanism,
    name: str,
    states: tuple[Float[Array, "n q"], Float[Array, "n v"], Float[Array, "n v"]],
) -> Float[Array, "n v"]:
    """The column of a declared term in the rows of all coordinates."""
    names = {"q": mechanism.positions, "dq": mechanism.coordinates, "ddq": mechanism.coordinates}
    signals = dict(zip(names, states, strict=True))

    def signal(kind: str, coordinate: str) -> Float[Array, "n"]:
        return signals[kind][:, names[kind].index(coordinate)]

    rows = np.zeros_like(states[1])
    for term in mechanism.terms:
        if term.name == name:
            rows[:, mechanism.coordinates.index(term.joint)] += term.expression.evaluate({}, signal)
    return rows


def _body_rows(tree: Tree, links: dict[int, _Link], b: int) -> tuple[list[int], Float[Array, "n c 10"]]:
    """The coordinates that move a body, and its ten columns in their rows: J_b^T W_body."""
    body = links[int(tree.body_link[b])].fixed(tree.body_frame[b])
    chain = set(tree.ancestors(int(tree.body_link[b])))
    rows = [(v, *joint) for v, joint in enumerate(tree.coordinate_links()) if joint[0] in chain]
    if not rows:
        return [], np.zeros((len(body.p), 0, 10))
    axes = np.stack([links[link].R[:, :, axis] for _, link, axis, _ in rows], axis=1)
    arms = np.stack([links[link].p for _, link, _, _ in rows], axis=1) - body.p[:, None]
    slides = np.array([slides for _, _, _, slides in rows])[:, None]
    levers = np.squeeze(skew(arms) @ axes[..., None], 3)  # axis x (p_body - p_joint)
    twists = np.concatenate(
        [np.where(slides, axes, levers) @ body.R, np.where(slides, 0.0, axes) @ body.R], axis=2
    )
    w, dw, a = (np.squeeze(x[:, None] @ body.R, 1) for x in (body.w, body.dw, body.a))
    return [row[0] for row in rows], np.asarray(twists @ body_kernel(w, dw, a))


def _links(
    tree: Tree, q: Float[Array, "n q"], dq: Float[Array, "n v"], ddq: Float[Array, "n v"]
) -> dict[int, _Link]:
    """Motion of every link; -1 is the base."""
    zero, still = np.zeros((len(q), 3)), np.broadcast_to(np.eye(3), (len(q), 3, 3))
    links = {-1: _Link(still, zero, zero, zero, zero - tree.gravity)}
    for i, (parent, kind) in enumerate(zip(tree.parent.tolist(), tree.kind.tolist(), strict=True)):
        link, at, v = links[parent].fixed(tree.placement[i]), int(tree.q_start[i]), int(tree.v_start[i])
        if kind == PRISMATIC:
            link = _slid(link, q[:, [at]], dq[:, [v]], ddq[:, [v]])
        elif kind == REVOLUTE:
            axis = link.R[:, :, 2]
            link = _spun(link, _about_z(q[:, at]), axis * dq[:, [v]], axis * ddq[:, [v]])
        elif kind == SPHERICAL:
            turn = _rotation(q[:, at : at + 4])
            rates = (_turned(link.R @ turn, x[:, v : v + 3]) for x in (dq, ddq))
            link = _spun(link, turn, *rates)
        links[i] = link
    return links


def _spun(
    link: _Link, turn: Float[Array, "n 3 3"], rate: Float[Array, "n 3"], accel: Float[Array, "n 3"]
) -> _Link:
    """A link turned in its own frame, with angular rates relative to its parent in base axes."""
    dw = link.dw + accel + _turned(skew(link.w), rate)
    return _Link(link.R @ turn, link.p, link.w + rate, dw, link.a)


def _slid(
    link: _Link, travel: Float[Array, "n 1"], rate: Float[Array, "n 1"], accel: Float[Array, "n 1"]
) -> _Link:
    """A link moved along its z."""
    z = link.R[:, :, 2]
    moved = link.carried(link.R, z * travel)
    a = moved.a + z * accel + 2.0 * _turned(skew(link.w), z * rate)
    return _Link(moved.R, moved.p, moved.w, moved.dw, a)


def _about_z(angle: Float[Array, "n"]) -> Float[Array, "n 3 3"]:
    R = np.zeros((len(angle), 3, 3))
    R[:, 0, 0] = R[:, 1, 1] = np.cos(angle)
    R[:, 1, 0] = np.sin(angle)
    R[:, 0, 1] = -R[:, 1, 0]
    R[:, 2, 2] = 1.0
    return R


def _rotation(quaternion: Float[Array, "n 4"]) -> Float[Array, "n 3 3"]:
    """Rotation matrices of unit quaternions, scalar first."""
    S = skew(quaternion[:, 1:])
    return np.asarray(np.eye(3) + 2.0 * (quaternion[:, :1, None] * S + S @ S))


def _turned(M: Float[Array, "n 3 3"], v: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
    """M v, sample by sample."""
    return np.asarray(np.squeeze(M @ v[:, :, None], 2))
