"""Samples that carry no information: at rest, and near reversals, where sign(dq) is unknown."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from dynid.common.arrays import Array


def near_reversal(dq: Float[Array, "n m"], speed: Float[Array, "m"], around: int) -> Bool[Array, "n m"]:
    """Per coordinate: slower than `speed`, at a change of sign, or within `around` samples of it.

    With `speed` zero and `around` zero nothing is masked.
    """
    slow = np.abs(dq) < speed
    if around <= 0:
        return np.asarray(slow)
    turns = np.signbit(dq[1:]) != np.signbit(dq[:-1])
    slow[1:] |= turns
    slow[:-1] |= turns
    return widened(slow, around)


def at_rest(dq: Float[Array, "n m"], speed: Float[Array, "m"], window: int) -> Bool[Array, "n"]:
    """Samples inside an interval of `window` or more samples in which every coordinate is slow."""
    slow = np.all(np.abs(dq) < speed, axis=1)[:, None]
    if window <= 1 or not slow.any():
        return np.asarray(slow[:, 0])
    total = np.concatenate([[0], np.cumsum(slow[:, 0])])
    full = np.zeros(len(slow), dtype=bool)
    if len(slow) >= window:
        full[: len(slow) - window + 1] = total[window:] - total[:-window] == window
    marked = np.concatenate([[0], np.cumsum(full)])
    low = np.maximum(np.arange(len(slow)) - window + 1, 0)
    return np.asarray(marked[1:] - marked[low] > 0)


def widened(mask: Bool[Array, "n m"], around: int) -> Bool[Array, "n m"]:
    """`mask` extended by `around` samples on both sides."""
    total = np.concatenate([np.zeros((1, mask.shape[1]), dtype=int), np.cumsum(mask, axis=0)])
    index = np.arange(len(mask))
    low = np.maximum(index - around, 0)
    high = np.minimum(index + around + 1, len(mask))
    return np.asarray(total[high] - total[low] > 0)
