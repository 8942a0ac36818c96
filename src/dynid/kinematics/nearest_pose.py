"""A pose with given measured coordinates, from many starts: where homotopy from one pose is not reliable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import svd
from dynid.kinematics.assembly import Assembly
from dynid.kinematics.closure import moved
from dynid.kinematics.sensors import Sensors

_STARTS = 48
_SEED = 20210823
_ROUNDS = 60
_REACH = 0.4  # rad or m: tilts and heights tried around the start pose
_MOST_STEP = 0.3
_CLOSED = 1e-9
_DAMPING = 1e-3


def nearest_pose(
    assembly: Assembly,
    sensors: Sensors,
    wanted: Float[Array, "w"],
    height: Callable[[Float[Array, "n q"]], Float[Array, "n"]],
    starts: int = _STARTS,
) -> Float[Array, "q"]:
    """The pose with the measured coordinates; of several, the one with the lowest potential energy.

    Levenberg-Marquardt along the closure, all starts at once: near singular
    coordinates it takes small steps where Newton steps would jump to another branch.

    Args:
        assembly: With the closure; the measured coordinates must determine the pose.
        sensors: What is measured.
        wanted: Their positions, shape (w,).
        height: Potential energy of poses, up to a factor.
        starts: Poses to begin with.

    Returns:
        Positions of all joints, shape (n_q,); where no pose matches, the nearest one found.
    """
    rng = np.random.default_rng(_SEED)
    origin = np.repeat(assembly.start[None], starts, axis=0)
    N = assembly.tangent(assembly.closure.values(origin[:1]).A)
    spread = _REACH * rng.normal(size=(starts, N.shape[2]))
    spread[0] = 0.0
    q = assembly.close(moved(assembly.mechanism, origin, spread @ N[0].T), iterations=6)
    many = np.repeat(np.asarray(wanted, float)[None], starts, axis=0)
    damping = np.full(starts, _DAMPING)
    miss = sensors.miss(q, many)
    for _ in range(_ROUNDS):
        N = assembly.tangent(assembly.closure.values(q).A)
        tried = _step(assembly, sensors, q, N, miss, damping)
        left = sensors.miss(tried, many)
        better = np.linalg.norm(left, axis=1) < np.linalg.norm(miss, axis=1)
        q, miss = np.where(better[:, None], tried, q), np.where(better[:, None], left, miss)
        damping = np.clip(np.where(better, damping * 0.2, damping * 5.0), 1e-15, 1e3)
        if np.all(np.abs(miss).max(axis=1) < 1e-13):
            break
    size = np.nan_to_num(np.abs(miss).max(axis=1), nan=np.inf)
    good = np.flatnonzero(size < _CLOSED)
    if not len(good):
        return np.asarray(q[int(np.argmin(size))])
    return np.asarray(q[good[int(np.argmin(height(q[good])))]])


def _step(
    assembly: Assembly,
    sensors: Sensors,
    q: Float[Array, "n q"],
    N: Float[Array, "n v d"],
    miss: Float[Array, "n m"],
    damping: Float[Array, "n"],
) -> Float[Array, "n q"]:
    """One damped step of every start, then back onto the closure."""
    M = N[:, sensors.velocity]
    U, s, Vt = svd(M, full_matrices=False)
    gain = s / (s**2 + damping[:, None])
    x = np.einsum("nkd,nk,nmk,nm->nd", Vt, gain, U, miss, optimize=True)
    step = np.einsum("nvd,nd->nv", N, x)
    size = np.linalg.norm(step, axis=1, keepdims=True)
    step = step * np.minimum(1.0, _MOST_STEP / np.maximum(size, 1e-300))
    return assembly.close(moved(assembly.mechanism, q, step), iterations=4)
