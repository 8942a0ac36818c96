"""The noise of measured positions, drawn once more: what it does to W is what it did to the log.

Entries of a quaternion are not noisy on their own: the attitude is, by a small turn delta,

    q' = q (1, delta / 2) / |.|          delta ~ sigma_angle,   sigma_angle = 2 sqrt(sum_i sigma_i^2 / 3)
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.motion.choose import longest
from dynid.motion.log import Log
from dynid.motion.spectrum import spectrum


def position_sigmas(log: Log, given: Float[Array, "m"] | float | None) -> Float[Array, "m"]:
    """Deviation of every measured position, in [m], [rad] or quaternion entries.

    Args:
        log: Whose columns that stand still (locked lengths) have no noise.
        given: One for all, one a position, or for poses two: positions [m], attitudes [rad]. None: from the
            spectrum of each.
    """
    own = spectrum(longest(log, log.q), log.dt).sigma
    if given is None:
        return own
    size = np.atleast_1d(np.asarray(given, dtype=float))
    starts = quaternions(log)
    m = log.q.shape[1]
    if size.shape == (2,) and m != 2 and starts:
        turned = np.zeros(m, dtype=bool)
        for start in starts:
            turned[start : start + 4] = True
        wanted = np.where(turned, 0.25 * np.sqrt(3.0) * size[1], size[0])
    elif size.size in (1, m):
        wanted = np.broadcast_to(size, (m,))
    else:
        raise InputError(
            f"{size.size} deviations for {m} measured positions of log '{log.name}'",
            remedy="give one for all, one a position, or for a pose two: metres and radians",
        )
    return np.where(np.ptp(log.q[log.valid], axis=0) > 0.0, wanted, 0.0)


def disturbed(log: Log, sigma: Float[Array, "m"], rng: np.random.Generator) -> Float[Array, "n m"]:
    """Positions with noise of these deviations added; attitudes stay attitudes."""
    q = log.q + sigma * rng.standard_normal(log.q.shape)
    for start in quaternions(log):
        part = slice(start, start + 4)
        angle = 2.0 * float(np.sqrt(np.sum(sigma[part] ** 2) / 3.0))
        q[:, part] = _turned(log.q[:, part], angle * rng.standard_normal((len(q), 3)))
    return q


def quaternions(log: Log) -> list[int]:
    """First column of every quaternion."""
    return [i for i, name in enumerate(log.position_names) if name == "qw" or name.endswith("_qw")]


def _turned(q: Float[Array, "n 4"], delta: Float[Array, "n 3"]) -> Float[Array, "n 4"]:
    """Attitudes turned by small rotation vectors in body axes, in [rad]."""
    w, v = q[:, :1], q[:, 1:]
    half = 0.5 * delta
    turned = np.concatenate(
        [w - np.sum(v * half, axis=1, keepdims=True), v + w * half + np.cross(v, half)], axis=1
    )
    return np.asarray(turned / np.linalg.norm(turned, axis=1, keepdims=True))
