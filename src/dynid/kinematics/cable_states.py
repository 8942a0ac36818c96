"""Cables of a mechanism at poses: shapes, lines of action and the Jacobian Xi of their lengths."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.notices import Notice, notice
from dynid.kinematics.tree import body_poses, tree_of
from dynid.mechanism.cable import Cable, CableShape, shape_of
from dynid.mechanism.frame import Frame
from dynid.mechanism.mechanism import BASE, Mechanism

_NEAR = 1e-3  # of a cable's length: closer to its swivel axis, a pulley turns too fast to be tracked


def cable_shapes(
    mechanism: Mechanism, q: Float[Array, "n q"]
) -> Iterator[tuple[Cable, CableShape, Float[Array, "n 3 3"], Float[Array, "n 3"]]]:
    """Each cable with its shape in the entry frame, and that frame's R and origin D in the base frame.

    Args:
        q: Positions of all joints, shape (n, n_q).
    """
    tree = tree_of(mechanism)
    R_0, p_0 = body_poses(tree, q)

    def placed(body: str, frame: Frame) -> tuple[Float[Array, "n 3 3"], Float[Array, "n 3"]]:
        if body == BASE:
            return np.broadcast_to(frame.R, (len(q), 3, 3)), np.broadcast_to(frame.p, (len(q), 3))
        i = tree.body_names.index(body)
        return R_0[:, i] @ frame.R, p_0[:, i] + R_0[:, i] @ frame.p

    for cable in mechanism.cables:
        R, D = placed(cable.body_from, cable.entry)
        A = placed(cable.body_to, cable.attachment)[1]
        yield cable, shape_of(cable.radius, np.einsum("nij,ni->nj", R, A - D)), R, D


def cable_jacobian(mechanism: Mechanism, q: Float[Array, "n q"]) -> Float[Array, "n c v"]:
    """Xi: rates of the cables' lengths per unit rate of every coordinate that carries bodies.

    Rows for all cables in file order, zero in the coordinates of the cables themselves; for a free platform
    the first six columns are [CableRobot, eqs 3, 4], moments about the platform's axes.
    """
    from dynid.kinematics.closure import Closure

    closure = Closure(mechanism)
    rows = [closure.names.index(cable.name) for cable in mechanism.cables]
    A = closure.values(q).A[:, rows].copy()
    length_columns = [
        mechanism.coordinates.index(cable.name) for cable in mechanism.cables if cable.length is None
    ]
    A[:, :, length_columns] = 0.0
    return A


def singular_cables(mechanism: Mechanism, q: Float[Array, "n q"]) -> list[Notice]:
    """Notices about cables too close to their swivel axis, or inside their pulley, at some of the poses."""
    notices = []
    for cable, shape, _, _ in cable_shapes(mechanism, q):
        if cable.radius == 0.0:
            continue
        inside = ~np.isfinite(shape.straight)
        near = np.nanmin(shape.off_axis / np.where(inside, 1.0, shape.length))
        if inside.any():
            notices.append(notice("cable-inside", cable=cable.name, count=int(inside.sum()), total=len(q)))
        elif near < _NEAR:
            least = 1e3 * float(shape.off_axis.min())
            notices.append(notice("cable-on-axis", cable=cable.name, off=least))
    return notices
