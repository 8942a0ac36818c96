"""Motion: filtered coordinates and their rates, for any range of samples, for logs of any length."""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.errors import InputError
from dynid.common.paged import LARGE
from dynid.motion.differentiate import differentiate, reach
from dynid.motion.filters import LowPass, low_pass
from dynid.motion.log import Log

if TYPE_CHECKING:
    from dynid.motion.plan import MotionPlan

_States = tuple[Float[Array, "n m"], Float[Array, "n m"], Float[Array, "n m"]]


class Motion:
    """A log processed by a plan.

    Only the requested samples, and the neighbours that the filter needs, are processed. Those of a short log
    are processed and kept as a whole: several passes need them.
    """

    def __init__(self, log: Log, plan: MotionPlan) -> None:
        self.log = log
        self.plan = plan
        self._segments: dict[tuple[int, int], _States] = {}
        self._lock = Lock()
        if abs(log.dt - plan.dt) > 0.01 * plan.dt:
            raise InputError(
                f"log '{log.name}' has the time step {log.dt:g} s, but its plan has {plan.dt:g} s",
                remedy="plan logs with different rates separately",
            )
        if plan.velocity == "measured" and log.dq is None:
            raise InputError(
                f"log '{log.name}' has no measured velocities, but the plan needs them",
                remedy="filter: {velocity: derived}",
            )

    @cached_property
    def low_pass(self) -> tuple[LowPass, int]:
        """The filter on coordinates, and its reach in samples."""
        return low_pass(self.plan.kind, self.plan.cutoff, self.plan.order, self.log.dt)

    @property
    def reach(self) -> int:
        """Samples on either side that filter and derivatives need."""
        return self.low_pass[1] + reach(self.plan.derivative)

    def usable(self) -> tuple[tuple[int, int], ...]:
        """Segments without their edges, as ranges [start, stop)."""
        edge = self.plan.edge
        return tuple((a + edge, b - edge) for a, b in self.log.segments if b - a > 2 * edge)

    def states(self, start: int, stop: int) -> _States:
        """Filtered q, dq, ddq of the samples [start, stop), which are inside one segment.

        Returns:
            Three arrays of shape (stop - start, m), SI; equal to those of the whole segment.
        """
        low, high = self._segment(start, stop)
        first, last = max(low, start - self.reach), min(high, stop + self.reach)
        if 3 * self.log.q.nbytes < LARGE:
            first, last = low, high
            with self._lock:
                if (low, high) not in self._segments:
                    self._segments[low, high] = self._whole(low, high)
            q, dq, ddq = self._segments[low, high]
        else:
            q, dq, ddq = self._whole(first, last)
        inner = slice(start - first, stop - first)
        return q[inner], dq[inner], ddq[inner]

    def efforts(self, start: int, stop: int) -> Float[Array, "n a"]:
        """Efforts of the samples [start, stop), low-passed like the coordinates; absent ones are zero.

        Load-dependent friction uses them. The remaining noise of a filtered load is small compared with
        the load, so it has little effect on the regressor.

        Returns:
            In the order of the actuators, shape (stop - start, a), in [N m] or [N].
        """
        low, high = self._segment(start, stop)
        smooth, pad = self.low_pass
        first, last = max(low, start - pad), min(high, stop + pad)
        tau = np.nan_to_num(np.asarray(self.log.tau[first:last], dtype=float))
        return smooth(tau)[start - first : stop - first]

    def weighted(self, start: int, stop: int) -> tuple[_States, Float[Array, "n m"]]:
        """Filtered states, and weights of rows: 0 for invalid, resting or reversing samples, else 1.

        A filter over rows that are cut off sharply lets high frequencies through, and with them the noise of
        derivatives. Weights that rise smoothly keep it a low-pass.

        Args:
            start: First sample of a range inside one segment.
            stop: One past its last sample.

        Returns:
            As `states`; weights per measured coordinate, shape (stop - start, m).
        """
        plan = self.plan
        low, high = self._segment(start, stop)
        before, after = max(low, start - plan.look), min(high, stop + plan.look)
        inner = slice(start - before, stop - before)
        q, dq, ddq = self.states(before, after)
        masked = near_reversal(dq, np.array(plan.reversal_speed), plan.reversal_around)
        masked[:, [not judged for judged in plan.scalar]] = False  # entries of quaternions do not reverse
        masked |= at_rest(dq, np.array(plan.rest_speed), plan.rest_window)[:, None]
        masked |= ~self.log.valid[before:after, None]
        return (q[inner], dq[inner], ddq[inner]), ramped(masked, plan.ramp)[inner]

    def motor_weights(self, start: int, stop: int) -> Float[Array, "n a"] | None:
        """Weights of the motors' efforts, as in `weighted`: 0 where one is at its limit; None: all are 1."""
        servo = self.log.servo
        if servo is None or servo.limited is None:
            return None
        low, high = self._segment(start, stop)
        before, after = max(low, start - self.plan.look), min(high, stop + self.plan.look)
        return ramped(servo.limited[before:after], self.plan.ramp)[start - before : stop - before]

    def _segment(self, start: int, stop: int) -> tuple[int, int]:
        for low, high in self.log.segments:
            if low <= start < stop <= high:
                return low, high
        raise InputError(
            f"samples {start} to {stop} of log '{self.log.name}' are not inside one segment",
            remedy="request ranges inside `usable()`",
        )

    def _whole(self, first: int, last: int) -> _States:
        """Filter and differentiate the samples [first, last) as if they were a segment."""
        log, kind, dt = self.log, self.plan.derivative, self.log.dt
        smooth, _ = self.low_pass
        q = smooth(np.asarray(log.q[first:last], dtype=float))
        if self.plan.velocity == "derived" or log.dq is None:
            return q, differentiate(q, dt, kind), differentiate(q, dt, kind, order=2)
        dq = smooth(np.asarray(log.dq[first:last], dtype=float))
        if log.ddq is None:
            return q, dq, differentiate(dq, dt, kind)
        return q, dq, smooth(np.asarray(log.ddq[first:last], dtype=float))


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


def ramped(mask: Bool[Array, "n m"], ramp: int) -> Float[Array, "n m"]:
    """0 where masked, 1 farther than `ramp` samples from it, half a cosine between."""
    if ramp == 0 or not mask.any():
        return np.where(mask, 0.0, 1.0)
    index = np.arange(len(mask))[:, None]
    before = np.maximum.accumulate(np.where(mask, index, -ramp - 1), axis=0)
    after = np.minimum.accumulate(np.where(mask, index, len(mask) + ramp)[::-1], axis=0)[::-1]
    distance = np.minimum(np.minimum(index - before, after - index), ramp + 1)
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * distance / (ramp + 1)))
