"""Orientations of a table: quaternions of norm 1, their signs continued from one instant to the next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.motion.body_table import BodyTable

# Of a quaternion's length from 1: printing with few figures stays far below, other columns far above.
_LENGTH_OFF, _LENGTH_REFUSED = 1e-3, 0.1


def unit_quaternions(
    table: BodyTable, place: Int[Array, "n b"], path: Path
) -> tuple[BodyTable, tuple[Notice, ...]]:
    """Quaternions of length 1 whose sign does not jump; what is no attitude is refused.

    Args:
        table: As read.
        place: Row of the file, from 0, of each instant and body.
        path: Of the file, for messages.
    """
    if "quaternion" not in table.signals:
        return table, ()
    q = table.signals["quaternion"].copy()
    length = np.linalg.norm(q, axis=2)
    # A printed quaternion misses the length 1 by its last figures at most.
    rounding = 2.0 * np.max(table.figures["quaternion"], axis=2)
    off = np.where(table.present, np.abs(length - 1.0), 0.0)
    notices = []
    worst = np.unravel_index(int(np.argmax(off)), off.shape)
    i, body = int(worst[0]), int(worst[1])
    if off[worst] > _LENGTH_REFUSED:
        raise InputError(
            f"the quaternion of '{table.bodies[body]}' at t = {table.t[i]:g} s has the norm"
            f" {length[worst]:.4g} instead of 1",
            file=path,
            place=f"data row {place[worst] + 1}",
            remedy="check which columns are qw, qx, qy, qz (qw is the scalar) and their scale",
        )
    if off[worst] > max(_LENGTH_OFF, float(rounding[worst])):
        notices.append(notice("quaternion-length", off=off[worst], body=table.bodies[body], t=table.t[i]))
    q /= length[:, :, None]
    flips = _straightened(q, table)
    if flips:
        notices.append(notice("quaternion-sign", count=flips))
    return replace(table, signals={**table.signals, "quaternion": q}), tuple(notices)


def _straightened(q: Float[Array, "n b 4"], table: BodyTable) -> int:
    """Turn the sign of quaternions that point away from the one before, in place; how many jumped."""
    flips = 0
    for body in range(q.shape[1]):
        for run in np.unique(table.runs):
            at = np.flatnonzero(table.present[:, body] & (table.runs == run))
            away = np.sum(q[at[1:], body] * q[at[:-1], body], axis=1) < 0.0
            flips += int(away.sum())
            q[at[1:], body] *= np.where(np.cumsum(away) % 2, -1.0, 1.0)[:, None]
    return flips
