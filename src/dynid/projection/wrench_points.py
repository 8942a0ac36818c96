"""Where joints stand on the bodies they join: the points at which wrenches of a table act."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.body_table import BodyTable
from dynid.projection.wrench_motion import TableMotion

_SLIDING = (JointKind.PRISMATIC, JointKind.FREE)


@dataclass(frozen=True, eq=False)
class JointPoints:
    """Origin of every body's inner joint frame, seen from the bodies on its two sides.

    Attributes:
        inner: In the body's own frame, shape (b, 3), in [m].
        outer: In the frame of the parent body, one array a body, shape (n, 3), in [m].
    """

    inner: Float[Array, "b 3"]
    outer: tuple[Float[Array, "n 3"], ...]


def joint_points(
    mechanism: Mechanism, table: BodyTable, moved: TableMotion, balanced: Sequence[str]
) -> JointPoints:
    """The points for all bodies of a table.

    The joint frame moves with the child: where a joint slides, its origin travels on the parent, and only
    the positions of both bodies tell how far.

    Args:
        balanced: Bodies whose balance is used: only what acts on these must be known.
    """
    n = len(table.t)
    joints = [mechanism.joint_of_body[name] for name in table.bodies]
    inner = np.array([joint.body.inverse().p for joint in joints])
    outer = []
    for i, joint in enumerate(joints):
        if joint.kind in _SLIDING and joint.parent in balanced:
            outer.append(_travelled(joint, i, inner[i], table, moved))
        else:
            outer.append(np.broadcast_to(joint.placement.p, (n, 3)))
    return JointPoints(inner, tuple(outer))


def _travelled(
    joint: Joint, child: int, inner: Float[Array, "3"], table: BodyTable, moved: TableMotion
) -> Float[Array, "n 3"]:
    """Origin of a sliding joint's frame in the parent's frame; NaN where a position is unknown."""
    parent = table.bodies.index(joint.parent)
    if moved.p is None:
        raise InputError(
            f"joint '{joint.name}' slides, and without positions the place where its wrench acts on"
            f" '{joint.parent}' is not known",
            file=table.file,
            place="header",
            remedy="print x y z of the bodies' origins, or joint coordinates q_1..; or leave"
            f" '{joint.parent}' out: wrench: {{bodies: [...]}}",
        )
    away = moved.p[:, child] + moved.R[:, child] @ inner - moved.p[:, parent]
    return np.asarray(np.einsum("nji,nj->ni", moved.R[:, parent], away))
