"""The tree as flat arrays for the kernels, and body motion in batches.

Every joint becomes one or more primitive links: revolute and prismatic links move about or
along z of their own link frame, spherical ones have a quaternion, fixed ones no coordinate. A
universal joint is two revolute links, a free one three prismatic links and a spherical one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from dynid.common.arrays import Array, Float, Inexact, Int
from dynid.mechanism.frame import Frame, align_z, identity_frame
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import BASE, Mechanism

FIXED, REVOLUTE, PRISMATIC, SPHERICAL = 0, 1, 2, 3
_EYE = np.eye(3)


@dataclass(frozen=True, eq=False)
class Tree:
    """Primitive links of a mechanism, parents first.

    Attributes:
        parent: Index of the parent link, -1 for the base, shape (l,).
        kind: FIXED, REVOLUTE, PRISMATIC or SPHERICAL, shape (l,).
        q_start, v_start: First position and velocity of the link, shape (l,).
        placement: Link frame at zero in the parent link's frame: nine of R by rows, then p,
            shape (l, 12), dimensionless and [m].
        body_link: Link that carries each body, shape (b,).
        body_frame: Body frame in its link's frame, laid out as `placement`, shape (b, 12).
        body_names: Bodies, then payloads.
        gravity: Base frame, shape (3,), in [m/s^2].
    """

    parent: Int[Array, "l"]
    kind: Int[Array, "l"]
    q_start: Int[Array, "l"]
    v_start: Int[Array, "l"]
    placement: Float[Array, "l 12"]
    body_link: Int[Array, "b"]
    body_frame: Float[Array, "b 12"]
    body_names: tuple[str, ...]
    gravity: Float[Array, "3"]
    n_q: int
    n_v: int

    def coordinate_links(self) -> list[tuple[int, int, bool]]:
        """Link, axis (column of its R) and whether it is prismatic, of each velocity coordinate."""
        rows: list[tuple[int, int, bool]] = []
        for link, kind in enumerate(self.kind):
            if kind == SPHERICAL:
                rows += [(link, axis, False) for axis in range(3)]
            elif kind != FIXED:
                rows.append((link, 2, bool(kind == PRISMATIC)))
        return rows

    def ancestors(self, link: int) -> list[int]:
        """The link itself and all links between it and the base, from the link inwards."""
        chain = []
        while link >= 0:
            chain.append(link)
            link = int(self.parent[link])
        return chain


_KNOWN: WeakKeyDictionary[Mechanism, Tree] = WeakKeyDictionary()


def tree_of(mechanism: Mechanism) -> Tree:
    """Flat arrays of a mechanism, computed once; payloads are bodies fixed to their carriers."""
    if mechanism not in _KNOWN:
        _KNOWN[mechanism] = _new_tree(mechanism)
    return _KNOWN[mechanism]


def _new_tree(mechanism: Mechanism) -> Tree:
    builder = _Builder()
    for joint in mechanism.joints:
        builder.add(joint)
    for payload in mechanism.payloads.values():
        link, frame = builder.body_of[payload.body]
        builder.add_body(payload.name, link, frame @ payload.frame)
    return builder.tree(mechanism.gravity)


class _Builder:
    """Collects primitive links; one instance per tree."""

    def __init__(self) -> None:
        self.links: list[tuple[int, int, int, int, Frame]] = []
        self.bodies: list[tuple[str, int, Frame]] = []
        self.body_of: dict[str, tuple[int, Frame]] = {BASE: (-1, identity_frame())}
        self.n_q = 0
        self.n_v = 0

    def add(self, joint: Joint) -> None:
        link, to_body = self.body_of[joint.parent]
        frame = to_body @ joint.placement
        for kind, axis in _primitives(joint):
            aligned = Frame(align_z(axis), np.zeros(3))
            link = self._add_link(link, kind, frame @ aligned)
            frame = aligned.inverse()
        self.add_body(joint.child, link, frame @ joint.body)

    def add_body(self, name: str, link: int, frame: Frame) -> None:
        self.body_of[name] = (link, frame)
        self.bodies.append((name, link, frame))

    def _add_link(self, parent: int, kind: int, frame: Frame) -> int:
        self.links.append((parent, kind, self.n_q, self.n_v, frame))
        self.n_q += {FIXED: 0, SPHERICAL: 4}.get(kind, 1)
        self.n_v += {FIXED: 0, SPHERICAL: 3}.get(kind, 1)
        return len(self.links) - 1

    def tree(self, gravity: Float[Array, "3"]) -> Tree:
        parent, kind, q_start, v_start = (
            np.array([link[k] for link in self.links], dtype=np.int64) for k in range(4)
        )
        return Tree(
            parent=parent,
            kind=kind,
            q_start=q_start,
            v_start=v_start,
            placement=_flat([link[4] for link in self.links]),
            body_link=np.array([body[1] for body in self.bodies], dtype=np.int64),
            body_frame=_flat([body[2] for body in self.bodies]),
            body_names=tuple(body[0] for body in self.bodies),
            gravity=np.asarray(gravity, float),
            n_q=self.n_q,
            n_v=self.n_v,
        )


def _primitives(joint: Joint) -> list[tuple[int, Float[Array, "3"]]]:
    """Primitive links of a joint, each with its axis in the frame before it."""
    if joint.kind is JointKind.FIXED:
        return [(FIXED, _EYE[2])]
    if joint.kind is JointKind.PRISMATIC:
        return [(PRISMATIC, joint.axes[0])]
    if joint.kind is JointKind.SPHERICAL:
        return [(SPHERICAL, _EYE[2])]
    if joint.kind is JointKind.FREE:
        return [*((PRISMATIC, axis) for axis in _EYE), (SPHERICAL, _EYE[2])]
    return [(REVOLUTE, axis) for axis in joint.axes]


def _flat(frames: Sequence[Frame]) -> Float[Array, "f 12"]:
    return np.array([np.concatenate([frame.R.ravel(), frame.p]) for frame in frames]).reshape(-1, 12)


@dataclass(frozen=True, eq=False)
class BodyMotion:
    """Motion of every body, samples first.

    Attributes:
        R: Body axes in the base frame, shape (n, b, 3, 3), dimensionless.
        p: Body origins in the base frame, shape (n, b, 3), in [m].
        V: Twists, body frame, linear first, shape (n, b, 6), in [m/s, rad/s].
        dV: Classical acceleration of the origin minus gravity, then angular acceleration, body
            frame, shape (n, b, 6), in [m/s^2, rad/s^2].
    """

    R: Inexact[Array, "n b 3 3"]
    p: Inexact[Array, "n b 3"]
    V: Inexact[Array, "n b 6"]
    dV: Inexact[Array, "n b 6"]


def body_motion(
    tree: Tree, q: Inexact[Array, "n q"], dq: Inexact[Array, "n v"], ddq: Inexact[Array, "n v"]
) -> BodyMotion:
    """Poses, twists and accelerations of all bodies for a batch of tree states.

    Args:
        q: Positions of all tree joints, shape (n, n_q), in [rad, m, -].
        dq, ddq: Velocities and their rates, shape (n, n_v), in [rad/s, m/s] and per s.
    """
    flat = body_states(tree, q, dq, ddq)
    n, b = flat.shape[:2]
    R = flat[..., :9].reshape(n, b, 3, 3)
    return BodyMotion(R, flat[..., 9:12], flat[..., 12:18], flat[..., 18:24])


def body_poses(
    tree: Tree, q: Inexact[Array, "n q"]
) -> tuple[Inexact[Array, "n b 3 3"], Inexact[Array, "n b 3"]]:
    """Axes R and origins p of all bodies in the base frame, as in `BodyMotion`, of a robot at rest."""
    still = np.zeros((len(q), tree.n_v))
    flat = body_states(tree, q, still, still)
    return flat[..., :9].reshape(*flat.shape[:2], 3, 3), flat[..., 9:12]


def body_states(
    tree: Tree, q: Inexact[Array, "n q"], dq: Inexact[Array, "n v"], ddq: Inexact[Array, "n v"]
) -> Inexact[Array, "n b 24"]:
    """R by rows, p, V and dV of every body in one array, as `body_motion` names them."""
    from dynid.kinematics.kernels import LINK, move_bodies
    from dynid.kinematics.tile import LANES

    kind = np.result_type(np.float64, q, dq, ddq)
    links = (tree.parent, tree.kind, tree.q_start, tree.v_start, tree.placement)
    state = np.empty((tree.parent.size + 1) * LINK * LANES, kind)
    out = np.empty((len(q), tree.body_link.size, LINK), kind)
    move_bodies(
        links,
        tree.body_link,
        tree.body_frame,
        tree.gravity,
        *(np.ascontiguousarray(x, dtype=kind) for x in (q, dq, ddq)),
        state,
        np.empty(LINK * LANES, kind),
        out,
    )
    return out


def tree_rates(
    mechanism: Mechanism,
    q: Inexact[Array, "n q"],
    dq: Inexact[Array, "n q"],
    ddq: Inexact[Array, "n q"],
) -> tuple[Inexact[Array, "n q"], Inexact[Array, "n v"], Inexact[Array, "n v"]]:
    """Tree positions, velocities and accelerations from positions and their time derivatives.

    They differ only for a quaternion: it is normalised, and its derivatives become
    angular velocity and acceleration in the moving frame, omega = 2 conj(q) dq.

    Args:
        q, dq, ddq: Position coordinates of all tree joints and their derivatives, shape (n, n_q).
    """
    if not any(joint.has_quaternion for joint in mechanism.joints):
        return q, dq, ddq
    q = np.array(q, copy=True)
    v_columns, a_columns, start = [], [], 0
    for joint in mechanism.joints:
        stop = start + len(joint.positions)
        if joint.has_quaternion:
            linear = slice(start, stop - 4)
            quaternion, omega, alpha = quaternion_rates(*(x[:, stop - 4 : stop] for x in (q, dq, ddq)))
            q[:, stop - 4 : stop] = quaternion
            v_columns += [dq[:, linear], omega]
            a_columns += [ddq[:, linear], alpha]
        else:
            v_columns.append(dq[:, start:stop])
            a_columns.append(ddq[:, start:stop])
        start = stop
    return q, np.concatenate(v_columns, axis=1), np.concatenate(a_columns, axis=1)


def quaternion_rates(
    q: Inexact[Array, "n 4"], dq: Inexact[Array, "n 4"], ddq: Inexact[Array, "n 4"]
) -> tuple[Inexact[Array, "n 4"], Inexact[Array, "n 3"], Inexact[Array, "n 3"]]:
    """Unit quaternion, angular velocity and acceleration (moving frame) of a raw quaternion.

    With q = s u, |u| = 1: the vector part of conj(q) dq / s^2 is omega / 2 for any ds, and
    that of conj(q) ddq / s^2 is alpha / 2 + (ds/s) omega.
    """
    square = np.sum(q * q, axis=1, keepdims=True)
    omega = 2.0 * _conjugate_product(q, dq) / square
    stretch = np.sum(q * dq, axis=1, keepdims=True) / square
    alpha = 2.0 * _conjugate_product(q, ddq) / square - 2.0 * stretch * omega
    return q / np.sqrt(square), omega, alpha


def times_pure(q: Inexact[Array, "n 4"], v: Inexact[Array, "n 3"]) -> Inexact[Array, "n 4"]:
    """Quaternions times pure quaternions: q (0, omega) / 2 is the time derivative of q."""
    w, x, y, z = q.T
    a, b, c = v.T
    parts = (-x * a - y * b - z * c, w * a + y * c - z * b, w * b + z * a - x * c, w * c + x * b - y * a)
    return np.stack(parts, axis=1)


def _conjugate_product(a: Inexact[Array, "n 4"], b: Inexact[Array, "n 4"]) -> Inexact[Array, "n 3"]:
    """Vector part of conj(a) b."""
    return np.asarray(a[:, :1] * b[:, 1:] - b[:, :1] * a[:, 1:] - np.cross(a[:, 1:], b[:, 1:]))
