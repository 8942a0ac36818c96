"""A regular pose near a singular start pose, at which branches of the motion meet."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.notices import Notice, notice
from dynid.kinematics.closure import Closure, moved
from dynid.kinematics.units import coordinate_units


def straightest(
    closure: Closure, start: Float[Array, "q"], near: Float[Array, "n q"], margin: Float[Array, "n"]
) -> Float[Array, "q"]:
    """Of closed poses near a singular one, the one that the joints reach with the most constant ratios.

    Where a parallelogram is stretched out, that is the parallelogram, not the crossed one. Of several such
    poses, the one farthest from singular ones.

    Args:
        closure: Equations of the loops.
        start: The singular pose.
        near: Regular poses to choose from.
        margin: Their distance from singular poses, see `Assembly.margin`.
    """
    apart = _apart(closure, start, near)
    begin = np.repeat(start[None], len(near), axis=0)
    bent = np.zeros(len(near))
    for part in (-1.0, 0.5):
        way = moved(closure.mechanism, begin, part * apart)
        bent = np.maximum(bent, np.abs(closure.values(way).f).max(axis=1))
    bent /= np.sum((apart / coordinate_units(closure.mechanism)) ** 2, axis=1)
    straight = bent <= 2.0 * bent.min() + 1e-9  # rounding, where a branch is straight
    return np.asarray(near[int(np.argmax(np.where(straight, margin, 0.0)))])


def _apart(closure: Closure, start: Float[Array, "q"], q: Float[Array, "n q"]) -> Float[Array, "n v"]:
    """From one pose to others, in velocity coordinates; attitudes are ignored."""
    robot = closure.mechanism
    away = np.zeros((len(q), closure.tree.n_v))
    for joint in robot.joints:
        if joint.has_quaternion:
            continue
        for name, position in zip(joint.coordinates, joint.positions, strict=True):
            at = robot.positions.index(position)
            away[:, robot.coordinates.index(name)] = q[:, at] - start[at]
    return away


def singular_start(closure: Closure, used: Float[Array, "q"], there: int, beside: int) -> Notice:
    """The notice: the pose used instead, and the rank of the loops at both."""
    robot = closure.mechanism
    shown = ", ".join(f"{name}: {value:.4g}" for name, value in zip(robot.positions, used, strict=True))
    return notice("singular-start", robot=robot.name, there=there, beside=beside, pose=shown)
