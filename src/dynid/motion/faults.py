"""Faults of sensors: spikes, lost samples, flat tops, stuck readings, coarse steps.

Efforts that are spikes, saturated or constant are masked sample by sample (their rows are not used).
Positions are filtered and differentiated: spikes and lost samples become NaN, which `lost.bridged` fills, and
the log is split where positions freeze.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.notices import Notice, at_level, notice
from dynid.common.paged import begun, empty, flags, ranges, windows
from dynid.motion.fault_scan import (
    Facts,
    deviation,
    facts,
    filled,
    flat_tops,
    moving,
    spikes,
    stuck,
    usual_repeats,
)
from dynid.motion.lost import held
from dynid.motion.table import Record

# Smaller parts of the range are left to the noise model: encoder steps at rest, small kinks.
_POSITION_PART, _EFFORT_PART = 2e-3, 2e-2
_STUCK_SECONDS = 0.5
_ABRUPT = 0.1
_NEAR = 4096  # samples before a step in which the last finite value is searched
_COARSE, _SILENT = 0.02, 0.25  # step of a signal relative to its standard deviation
_MOST_SPIKES = 0.1
_FEWEST_HELD = 4  # equal samples in a row of an effort that has fine steps
_Positions = tuple[Float[Array, "n m"], Sequence[Facts]]
_Efforts = tuple[Float[Array, "n a"], Sequence[Facts]]
_Places = Mapping[Facts, Int[Array, "k"]]


@dataclass(frozen=True, eq=False)
class SignalFaults:
    """Faults found in the signals of a record.

    Attributes:
        record: With spikes and lost samples of positions as NaN.
        good: Samples that may stay in a segment, shape (n,).
        usable: Samples whose efforts are used, shape (n,).
    """

    record: Record
    good: Bool[Array, "n"]
    usable: Bool[Array, "n"]
    notices: tuple[Notice, ...]


def signal_faults(
    record: Record, positions: Sequence[str], efforts: Sequence[str], step: float
) -> SignalFaults:
    """Find faults in positions and efforts.

    Args:
        record: In order of time, with bad samples as NaN.
        positions: Names of the columns of q that are plain coordinates; others are empty.
        efforts: Names of the columns of tau.
        step: Median time step in [s].
    """
    n = len(record.t)
    good, usable = flags(n, True), flags(n, True)
    beside = begun(lambda: _search_efforts(record, efforts))
    in_q = facts(record.q, positions)
    moves = moving(record.q, in_q)
    spiked, flat = dict[str, int](), dict[str, float]()
    least = max(8, round(_STUCK_SECONDS / step))
    found = spikes(record.q, in_q, _POSITION_PART, record.breaks, smooth=True)
    jumped = {signal: bad for signal, bad in zip(in_q, found, strict=True) if len(bad)}
    found = held(record, in_q, _POSITION_PART, least)
    found = [np.setdiff1d(at, jumped.get(signal, [])) for signal, at in zip(in_q, found, strict=True)]
    repeated = {signal: bad for signal, bad in zip(in_q, found, strict=True) if len(bad)}
    for bad in (*jumped.values(), *repeated.values()):
        usable[bad] = False
    in_tau, tops, marks = beside.result()
    for signal, at, top in zip(in_tau, marks, tops, strict=True):
        # At standstill dry friction takes any value between its two: a jump there is not a fault.
        bad = at[moves[at]] if any(positions) else at
        usable[bad] = False
        spiked |= {signal.name: len(bad)} if len(bad) else {}
        if top is not None:
            usable[top] = False
            flat[signal.name] = float(np.max(np.abs(record.tau[top, signal.column])))
    hanging = _stuck((record.q, in_q), (record.tau, in_tau), moves, step, least)
    for a, b in ranges(n):
        good[a:b] &= ~hanging.positions[a:b]
        usable[a:b] &= ~hanging.efforts[a:b]
    notices = [*_lost_notices(jumped, repeated, record), *_spike_notices(spiked, n), *_flat_notices(flat)]
    notices += [*hanging.notices, *_coarse_notices(record.tau, in_tau)]
    return SignalFaults(_without(record, [jumped, repeated]), good, usable, tuple(notices))


def _search_efforts(
    record: Record, efforts: Sequence[str]
) -> tuple[list[Facts], list[Bool[Array, "n"] | None], list[Int[Array, "k"]]]:
    """Efforts with a name, where each stays at a limit, and its spikes."""
    in_tau = facts(record.tau, efforts)
    tops = flat_tops(record.tau, in_tau)
    return in_tau, tops, spikes(record.tau, in_tau, _EFFORT_PART, record.breaks)


def _without(record: Record, lost: Sequence[_Places]) -> Record:
    """The record with these positions as NaN."""
    if not any(lost):
        return record
    q = empty(record.q.shape)
    for a, b in ranges(len(q)):
        q[a:b] = record.q[a:b]
    for places in lost:
        for signal, bad in places.items():
            q[bad, signal.column] = np.nan
    return replace(record, q=q)


def _lost_notices(jumped: _Places, repeated: _Places, record: Record) -> list[Notice]:
    notices = []
    if jumped:
        notices.append(notice("position-spikes", shown=_listed(jumped, record)))
    if repeated:
        notices.append(notice("samples-repeated", shown=_listed(repeated, record)))
    return notices


def _listed(lost: _Places, record: Record) -> str:
    """How many samples of each signal, and when the first of them is."""
    return ", ".join(
        f"{one.name} ({len(at)}, first at t = {record.t[at[0]]:.4g} s)" for one, at in lost.items()
    )


def _spike_notices(spiked: dict[str, int], n: int) -> list[Notice]:
    notices = []
    if spiked:
        counts = ", ".join(f"{name} ({count})" for name, count in spiked.items())
        many = max(spiked.values()) > _MOST_SPIKES * n
        doubt = "; they are so many that the signal may be unreliable" if many else ""
        notices.append(notice("effort-spikes", counts=counts, many=doubt))
    return notices


def _flat_notices(flat: dict[str, float]) -> list[Notice]:
    if not flat:
        return []
    shown = ", ".join(f"{name} (at {value:.4g})" for name, value in flat.items())
    return [notice("saturation", shown=shown)]


@dataclass(frozen=True, eq=False)
class _Hanging:
    """Samples at which positions or efforts are frozen, shape (n,) each."""

    positions: Bool[Array, "n"]
    efforts: Bool[Array, "n"]
    notices: list[Notice]


def _stuck(
    positions: _Positions, efforts: _Efforts, moves: Bool[Array, "n"], step: float, least: int
) -> _Hanging:
    """Signals that are constant for `least` samples while the robot moves.

    An effort with fine steps has noise: it repeats no value so often as no other sample of it does.
    """
    masks = [flags(len(moves), False) for _ in range(2)]
    masked: list[str] = []
    resting: list[str] = []
    for kind, (values, known) in enumerate((positions, efforts)):
        for known_facts in known:
            x = values[:, known_facts.column]
            if known_facts.low == known_facts.high or known_facts.level:
                continue
            few = max(_FEWEST_HELD, _FEWEST_HELD * usual_repeats(x)) if kind else least
            still = stuck(x, moves, min(least, few))
            if not still:
                continue
            # A joint may rest while others move: its sensor is frozen if it stops abruptly or then jumps.
            bad = still if kind else _abrupt(x, still)
            for a, b in bad:
                masks[kind][a:b] = True
            longest = max(b - a for a, b in still)
            (masked if bad else resting).append(f"{known_facts.name} ({longest * step:.2g} s)")
    notices = []
    if masked:
        notices.append(notice("stuck-signal", names=", ".join(masked)))
    if resting:
        notices.append(at_level(notice("stuck-signal", "resting", names=", ".join(resting)), "good"))
    return _Hanging(masks[0], masks[1], notices)


def _abrupt(x: Float[Array, "n"], still: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs that are entered or left by a step of a tenth of the signal's usual largest one."""
    steps = np.concatenate([np.abs(np.diff(filled(part))) for part in windows(x)])
    top = float(np.quantile(steps, 0.95))
    return [(a, b) for a, b in still if max(_step_to(x, a), _step_to(x, b)) > _ABRUPT * top]


def _step_to(x: Float[Array, "n"], i: int) -> float:
    """Size of the step that leads to sample i; none leads to the first one and beyond the last one."""
    if not 0 < i < len(x):
        return 0.0
    near = filled(x[max(0, i - _NEAR) : i + 1])
    return float(abs(near[-1] - near[-2]))


def _coarse_notices(tau: Float[Array, "n a"], known: Sequence[Facts]) -> list[Notice]:
    coarse = []
    for known_facts in known:
        x, step = tau[:, known_facts.column], known_facts.level
        size = deviation(x) if step else 0.0
        if size > 0 and step > _COARSE * size and len(np.unique(filled(x[: 1 << 15]))) < 2.0 / _COARSE:
            silent = ": hardly any signal" if step > _SILENT * size else ""
            coarse.append(
                f"{known_facts.name} ({step:.3g}, {100 * step / size:.0f} %"
                f" of its standard deviation{silent})"
            )
    if not coarse:
        return []
    return [notice("coarse-effort", shown=", ".join(coarse))]
