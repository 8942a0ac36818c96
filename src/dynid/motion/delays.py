"""Columns that are late or early, brought to the time of the others: x(t) = logged(t + delay)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Bool
from dynid.common.errors import InputError
from dynid.motion.clean import MIN_SEGMENT, Cleaned
from dynid.motion.clock import cubic
from dynid.motion.column_words import Slot
from dynid.motion.settings import ColumnMap

_SHIFTED = ("q", "dq", "ddq", "q_ref", "tau")
_WHOLE = 1e-6  # of a step: a delay this close to whole samples is whole


def aligned(
    cleaned: Cleaned, known: Sequence[Slot], chosen: Mapping[str, ColumnMap], quaternions: Sequence[int]
) -> Cleaned:
    """The recording with its delayed columns interpolated by a cubic spline; samples without a value are cut.

    Args:
        cleaned: On a uniform clock.
        known: Every quantity of the robot.
        chosen: Its columns by key, with their delays.
        quaternions: Columns of q at which a quaternion begins.
    """
    late = [slot for slot in known if slot.key in chosen and chosen[slot.key].delay != 0.0]
    if not late:
        return cleaned
    turned = {start + k for start in quaternions for k in range(4)}
    for slot in late:
        if slot.quantity not in _SHIFTED or (slot.quantity != "tau" and slot.index in turned):
            raise InputError(
                f"a delay of {slot.label} is not supported",
                place=f"columns.{slot.key}.delay",
                remedy="give delays of positions, rates, references and efforts of joints",
            )
    delays = {slot: chosen[slot.key].delay for slot in late}
    segments = _within(cleaned, delays.values())
    record = cleaned.record
    signals = {name: getattr(record, name) for name in dict.fromkeys(slot.quantity for slot in late)}
    signals = {name: x.copy() for name, x in signals.items() if x is not None}
    for slot, delay in delays.items():
        for start, stop in cleaned.segments if slot.quantity in signals else ():
            t, x = record.t[start:stop], signals[slot.quantity][start:stop]
            at = np.clip(t + delay, t[0], t[-1])
            x[:, slot.index] = cubic(t, x[:, slot.index, None], at)[:, 0]
    words = ", ".join(f"{slot.key} {1e3 * delay:.4g} ms" for slot, delay in delays.items())
    return replace(
        cleaned,
        record=replace(record, **signals),
        segments=segments,
        valid=_usable(cleaned, segments, {delay / cleaned.dt for delay in delays.values()}),
        choices={**cleaned.choices, "delays removed": f"{words} (cubic spline)"},
    )


def _within(cleaned: Cleaned, delays: Collection[float]) -> tuple[tuple[int, int], ...]:
    """Segments without the samples for which a delayed column has no value."""
    steps = np.array([*delays]) / cleaned.dt
    first = int(np.ceil(max(0.0, -steps.min()) - _WHOLE))
    last = int(np.ceil(max(0.0, steps.max()) - _WHOLE))
    cut = tuple((start + first, stop - last) for start, stop in cleaned.segments)
    kept = tuple((start, stop) for start, stop in cut if stop - start >= MIN_SEGMENT)
    if not kept:
        raise InputError(
            f"no run is longer than the delays ({1e3 * cleaned.dt * np.abs(steps).max():.4g} ms)",
            file=cleaned.record.file,
            place="columns",
            remedy="give delays in s",
        )
    return kept


def _usable(cleaned: Cleaned, segments: Sequence[tuple[int, int]], steps: set[float]) -> Bool[Array, "n"]:
    """Samples that may be used and whose delayed columns are made of such samples."""
    usable = np.zeros(len(cleaned.valid), dtype=bool)
    for start, stop in segments:
        usable[start:stop] = cleaned.valid[start:stop]
        for step in steps:
            for shift in {int(np.floor(step + _WHOLE)), int(np.ceil(step - _WHOLE))}:
                usable[start:stop] &= cleaned.valid[start + shift : stop + shift]
    return usable
