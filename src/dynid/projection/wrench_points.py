"""Positions of joints on the bodies they connect: the points at which wrenches of a table act."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.body_table import BodyTable
from dynid.motion.settings import BODY, COM, WORLD, WrenchSettings

if TYPE_CHECKING:
    from dynid.projection.wrench_motion import TableMotion

_SLIDING = (JointKind.PRISMATIC, JointKind.FREE)


@dataclass(frozen=True, eq=False)
class JointPoints:
    """Origin of every body's inner joint frame, in the frames of the bodies on its two sides.

    Attributes:
        inner: In the body's own frame, shape (b, 3), in [m].
        outer: In the frame of the parent body, one array per body, shape (n, 3), in [m].
    """

    inner: Float[Array, "b 3"]
    outer: tuple[Float[Array, "n 3"], ...]


def joint_points(
    mechanism: Mechanism, table: BodyTable, moved: TableMotion, balanced: Sequence[str]
) -> JointPoints:
    """The points for all bodies of a table.

    The joint frame moves with the child: the origin of a prismatic joint moves on the parent, and only the
    positions of both bodies determine how far.

    Args:
        balanced: Bodies whose balance is used: only wrenches on these must be known.
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
    """Origin of a prismatic joint's frame in the parent's frame; NaN where a position is unknown."""
    parent = table.bodies.index(joint.parent)
    if moved.p is None:
        raise InputError(
            f"joint '{joint.name}' is prismatic: without positions the point where its wrench acts on"
            f" '{joint.parent}' is unknown",
            file=table.file,
            place="header",
            remedy="add columns x y z of the bodies' origins, or joint coordinates q_1..; or exclude"
            f" '{joint.parent}': wrench: {{bodies: [...]}}",
        )
    away = moved.p[:, child] + moved.R[:, child] @ inner - moved.p[:, parent]
    return np.asarray(np.einsum("nji,nj->ni", moved.R[:, parent], away))


def centres_of_mass(
    mechanism: Mechanism, table: BodyTable, settings: WrenchSettings, what: str
) -> Float[Array, "b 3"]:
    """Centre of mass of each body in its frame, by the robot's description; in [m].

    Args:
        what: The quantity given at the centre of mass, for the message where that is not known.
    """
    centres = np.zeros((len(table.bodies), 3))
    if settings.parameters == "principal":
        return centres
    used = np.any(table.present, axis=0).tolist()
    for i, body in enumerate(mechanism.bodies.values()):
        values = {**body.prior, **body.known}
        if values.get("M"):
            centres[i] = [values.get(symbol, 0.0) / values["M"] for symbol in ("MX", "MY", "MZ")]
        elif used[i] and body.parameters:
            raise InputError(
                f"{what} of the centre of mass of '{body.name}' are given, but not its position",
                file=mechanism.file,
                place=f"bodies.{body.name}",
                remedy="give them at the body's origin, its prior M and com in the robot file, or"
                " wrench: {parameters: principal}",
            )
    return centres


def levers(
    mechanism: Mechanism,
    table: BodyTable,
    moved: TableMotion,
    inner: Float[Array, "b 3"],
    settings: WrenchSettings,
) -> Float[Array, "n b 3"]:
    """From each body's inner joint to the point that the table's moments are about, world axes, in [m].

    M_joint = M + lever x F.
    """
    if settings.at == WORLD:
        if moved.p is None:
            raise InputError(
                "moments about the world's origin are given, but no positions of the bodies",
                file=table.file,
                place="header",
                remedy="add columns x y z of the bodies' origins, or joint coordinates q_1..",
            )
        return np.asarray(-moved.p - (moved.R @ inner[..., None])[..., 0])
    point = inner
    if settings.at == BODY:
        point = np.zeros_like(inner)
    elif settings.at == COM:
        point = centres_of_mass(mechanism, table, settings, "moments")
    return np.asarray(moved.R @ (point - inner)[..., None])[..., 0]
