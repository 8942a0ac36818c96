"""Whether two logs share samples, by their values: a file and a data frame, a part of a log and the whole.

The fingerprint of a log is the smallest hashes of its samples. Up to the smaller of their largest hashes, two
fingerprints are complete: there, the share of common hashes is that of common samples.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.paged import ranges
from dynid.motion.log import Log

RECORDED = 256  # hashes in a result: parts from about 1.5 % of a log are found again
_KEPT = 4096  # in memory: parts from 0.1 % of a log
_DIGITS = 9  # decimal places: files round, and readers differ in the last bit
_ENOUGH = 3  # shared hashes: simulated joints at rest may be equal by chance
_SHARE = 0.05  # of the shorter log: coarse positions and efforts repeat at rest
_LARGEST = 1e15  # as good as infinite: larger numbers have no such decimals
_SEED = 20261118


def fingerprint(log: Log, kept: int = _KEPT) -> tuple[str, ...]:
    """The smallest hashes of the positions and efforts of the samples that a log may use, as text.

    Args:
        log: Its samples outside segments do not count: they may be held out.
        kept: How many hashes.
    """
    smallest = np.zeros(0, dtype=np.uint64)
    for start, stop in log.segments:
        for a, b in ranges(stop - start, cached=True):
            part = slice(start + a, start + b)
            hashes = _hashes(np.hstack([log.q[part], log.tau[part]]))[log.valid[part]]
            if len(smallest) == kept:  # of later samples few are smaller
                hashes = hashes[hashes < smallest[-1]]
            if len(hashes):
                smallest = np.unique(np.concatenate([smallest, hashes]))[:kept]
    return tuple(f"{value:016x}" for value in smallest.tolist())


def shares_samples(first: Collection[str], second: Collection[str]) -> bool:
    """Whether two logs with these fingerprints have samples in common: 5 % of the shorter one or more."""
    if not first or not second:
        return False
    complete = min(max(first), max(second))
    counts = [sum(value <= complete for value in values) for values in (first, second)]
    least = max(min(_ENOUGH, len(first), len(second)), _SHARE * min(counts))
    return len(set(first) & set(second)) >= least


def comparable(one: Collection[str], other: Collection[str]) -> bool:
    """Whether `shares_samples` finds the first log if it is a part of the second: few hashes show nothing."""
    if not one or not other:
        return False
    return sum(value <= max(other) for value in one) >= min(_ENOUGH, len(one), len(other))


def _hashes(x: Float[Array, "n c"]) -> Array:
    """A hash of each row, shape (n,): multiplied by odd numbers, added and mixed, modulo 2^64.

    Args:
        x: Rows, which are overwritten.
    """
    factors = np.random.default_rng(_SEED).integers(0, 2**63, size=x.shape[1], dtype=np.uint64) * 2 + 1
    x[np.isnan(x)] = 0.0
    np.clip(x, -_LARGEST, _LARGEST, out=x)
    np.round(x, _DIGITS, out=x)
    x += 0.0  # no negative zero
    rows = x.view(np.uint64)
    rows = (rows ^ (rows >> np.uint64(29))) * factors
    total = (rows ^ (rows >> np.uint64(32))).sum(axis=1, dtype=np.uint64)
    total = (total ^ (total >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(total ^ (total >> np.uint64(29)))
