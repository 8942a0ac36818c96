"""Whether two logs share samples, by their values: a file and a data frame, a part of a log and the whole.

The fingerprint of a log is the smallest hashes of its samples. A part with one sample in k of a log shares
about one in k of them, and so does the whole with the part.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.motion.log import Log

_KEPT = 64
_DIGITS = 9  # decimal places: files round, and readers differ in the last bit
_ENOUGH = 3  # shared hashes: simulated joints at rest may be equal by chance
_BLOCK = 65536  # samples
_LARGEST = 1e15  # as good as infinite: larger numbers have no such decimals
_SEED = 20261118


def fingerprint(log: Log) -> tuple[str, ...]:
    """The smallest hashes of the positions and efforts of its samples, as text."""
    smallest = np.zeros(0, dtype=np.uint64)
    for start in range(0, len(log.q), _BLOCK):
        part = slice(start, start + _BLOCK)
        hashes = _hashes(np.hstack([log.q[part], log.tau[part]]))[log.valid[part]]
        smallest = np.unique(np.concatenate([smallest, hashes]))[:_KEPT]
    return tuple(f"{value:016x}" for value in smallest.tolist())


def shares_samples(one: Collection[str], other: Collection[str]) -> bool:
    """Whether two logs with these fingerprints have samples in common."""
    return len(set(one) & set(other)) >= min(_ENOUGH, len(one), len(other)) > 0


def _hashes(x: Float[Array, "n c"]) -> Array:
    """A hash of each row, shape (n,): multiplied by odd numbers, added and mixed, modulo 2^64."""
    factors = np.random.default_rng(_SEED).integers(0, 2**63, size=x.shape[1], dtype=np.uint64) * 2 + 1
    bounded = np.clip(np.nan_to_num(x), -_LARGEST, _LARGEST)
    rounded = np.round(bounded, _DIGITS) + 0.0  # no negative zero
    rows = np.ascontiguousarray(rounded).view(np.uint64)
    rows = (rows ^ (rows >> np.uint64(29))) * factors
    total = (rows ^ (rows >> np.uint64(32))).sum(axis=1, dtype=np.uint64)
    total = (total ^ (total >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(total ^ (total >> np.uint64(29)))
