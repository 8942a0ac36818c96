"""Irregular samples onto a uniform clock, segment by segment, and continuous angles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from dynid.common.arrays import Array
from dynid.common.notices import Notice, notice
from dynid.motion.record import Record

METHOD = "positions and velocities by cubic spline, efforts linearly"


def resample(record: Record, segments: Int[Array, "s 2"], dt: float) -> tuple[Record, Int[Array, "s 2"]]:
    """The segments on uniform clocks of step `dt` [s], each beginning at its first sample.

    Positions and velocities are smooth, so a cubic spline loses nothing below a fifth of the
    sampling rate; efforts have noise that a spline would amplify, so they are interpolated linearly.
    """
    pieces = []
    bounds = []
    begin = 0
    for start, stop in segments:
        t = record.t[start:stop]
        count = int(np.floor((t[-1] - t[0]) / dt + 1e-6)) + 1
        grid = np.minimum(t[0] + dt * np.arange(count), t[-1])
        pieces.append(_piece(record, int(start), int(stop), grid))
        bounds.append((begin, begin + count))
        begin += count
    joined = pieces[0] if len(pieces) == 1 else _joined(pieces)
    breaks = np.zeros(begin, dtype=bool)
    breaks[[start for start, _ in bounds]] = True
    return replace(joined, breaks=breaks), np.array(bounds)


def continuous(
    record: Record, segments: Int[Array, "s 2"], angles: Bool[Array, "m"], quaternions: Sequence[int]
) -> tuple[Record, list[Notice]]:
    """Angles without jumps of a full turn, quaternions without changes of sign.

    A quaternion and its negative are the same attitude, and an angle is the same after a full turn.
    But a filter across such a jump would create false motion.
    """
    if record.q_ref is not None:
        asked, _ = continuous(replace(record, q=record.q_ref, q_ref=None), segments, angles, quaternions)
        record = replace(record, q_ref=asked.q)
    q = record.q
    # Column by column: copies of all positions of a long log need too much memory.
    turned = np.array([bool(a and _turns(q[:, i : i + 1]).any()) for i, a in enumerate(angles)], dtype=bool)
    flips = any(np.any(np.sum(q[1:, w : w + 4] * q[:-1, w : w + 4], axis=1) < 0.0) for w in quaternions)
    if not turned.any() and not flips:
        return record, []
    q = q.copy()
    for start, stop in segments:
        q[start:stop, turned] = _unwrap(q[start:stop, turned])
        for w in quaternions:
            part = q[start:stop, w : w + 4]
            signs = np.where(np.sum(part[1:] * part[:-1], axis=1) < 0.0, -1.0, 1.0)
            part[1:] *= np.cumprod(signs)[:, None]
    notices = []
    if turned.any():
        notices.append(notice("angle-wrapped", count=int(turned.sum())))
    return replace(record, q=q), notices


def _unwrap(q: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Remove steps within 0.3 rad of a full turn; no joint moves so far in one sample."""
    q[1:] -= 2 * np.pi * np.cumsum(np.where(_turns(q), np.sign(np.diff(q, axis=0)), 0.0), axis=0)
    return q


def _turns(q: Float[Array, "n k"]) -> Bool[Array, "n1 k"]:
    """Steps that are a full turn."""
    return np.asarray(np.abs(np.abs(np.diff(q, axis=0)) - 2 * np.pi) < 0.3)


def _piece(record: Record, start: int, stop: int, grid: Float[Array, "k"]) -> Record:
    from scipy.interpolate import make_interp_spline

    t = record.t[start:stop]

    def smooth(x: Float[Array, "n m"] | None) -> Float[Array, "k m"] | None:
        return None if x is None else np.asarray(make_interp_spline(t, x[start:stop], k=3)(grid))

    q = smooth(record.q)
    if q is None:  # never: a record has positions
        raise AssertionError
    tau = np.column_stack(
        [np.interp(grid, t, record.tau[start:stop, i]) for i in range(record.tau.shape[1])]
        or [np.zeros((len(grid), 0))]
    )
    breaks = np.zeros(len(grid), dtype=bool)
    dq, ddq, q_ref = smooth(record.dq), smooth(record.ddq), smooth(record.q_ref)
    return replace(record, t=grid, q=q, dq=dq, ddq=ddq, tau=tau, breaks=breaks, q_ref=q_ref)


def _joined(pieces: list[Record]) -> Record:
    first = pieces[0]
    return replace(
        first,
        t=np.concatenate([piece.t for piece in pieces]),
        q=np.concatenate([piece.q for piece in pieces]),
        dq=None if first.dq is None else np.concatenate([p.dq for p in pieces if p.dq is not None]),
        ddq=None if first.ddq is None else np.concatenate([p.ddq for p in pieces if p.ddq is not None]),
        q_ref=None
        if first.q_ref is None
        else np.concatenate([p.q_ref for p in pieces if p.q_ref is not None]),
        tau=np.concatenate([piece.tau for piece in pieces]),
        breaks=np.concatenate([piece.breaks for piece in pieces]),
    )
