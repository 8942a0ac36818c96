"""What each channel of a log is like: range, resolution, noise floor, bandwidth; and its limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.notices import Notice, notice
from dynid.common.paged import windows
from dynid.doctor.diagnosis import Channel, Recording
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import effort_unit, position_unit
from dynid.motion.choose import extent, extents, position_spectrum, spectra_of, spectrum_in
from dynid.motion.fault_scan import resolution
from dynid.motion.log import Log
from dynid.motion.motion import Motion, at_rest
from dynid.motion.plan import MotionPlan
from dynid.motion.spectrum import Spectrum

_MOST_SAMPLES = 400_000  # for rest and speeds; a longer log is judged by as many at its beginning
# Beyond a limit by so much of it: rounding of limits and overshoot of a controller are no fault.
_OVER = {"q": 0.02, "dq": 0.1, "tau": 0.05}
_RESTING, _ALL = 0.05, 0.9  # share of a log
_STILL = 0.1  # rad/s or m/s, 99.5 % quantile: vibration of a robot at rest is below


def recording(log: Log, plan: MotionPlan | None) -> Recording:
    """Clock, duration and rest of a log."""
    samples = sum(stop - start for start, stop in log.segments)
    return Recording(
        name=log.name,
        file=log.file or "",
        samples=samples,
        segments=len(log.segments),
        rate=1.0 / log.dt,
        seconds=samples * log.dt,
        resting=0.0 if plan is None else _rest(log, plan)[0],
        clock="; ".join(text for key, text in log.choices.items() if key in ("clock", "time unit")),
        mapping=log.mapping,
    )


def channels_of(log: Log, mechanism: Mechanism, plan: MotionPlan | None) -> list[Channel]:
    """All signals of a log, in the order of its columns."""
    units = [position_unit(mechanism, [name]) for name in log.position_names]
    speeds = None if plan is None else _speeds(log, plan)
    channels = _described(log, "q", log.q, log.position_names, units, position_spectrum(log), speeds)
    if log.dq is not None:
        rates = [f"{unit}/s" for unit in units]
        channels += _described(log, "dq", log.dq, log.position_names, rates, spectra_of([log], "dq")[0])
    if log.effort_present.any():
        forces = [effort_unit(mechanism, name) for name in log.effort_names]
        tau = spectrum_in(log, np.nan_to_num(log.tau))
        channels += _described(log, "tau", log.tau, log.effort_names, forces, tau)
    return channels


def _described(
    log: Log,
    label: str,
    values: Float[Array, "n m"],
    owners: tuple[str, ...],
    units: list[str],
    shape: Spectrum,
    speeds: Float[Array, "m"] | None = None,
) -> list[Channel]:
    channels = []
    low, high = extent(log, values)
    sampled = _sampled(log, values)
    for i, owner in enumerate(owners):
        x = sampled[np.isfinite(sampled[:, i]), i]
        if not len(x):
            continue
        channels.append(
            Channel(
                log=log.name,
                name=f"{label}_{i + 1}",
                owner=owner,
                unit=units[i],
                low=float(low[i]),
                high=float(high[i]),
                spread=float(np.std(x)),
                resolution=resolution(x),
                noise=float(shape.sigma[i]),
                bandwidth=float(shape.bandwidth[i]) if shape.moving[i] else None,
                top_speed=None if speeds is None else float(speeds[i]),
            )
        )
    return channels


def _sampled(log: Log, values: Float[Array, "n m"]) -> Float[Array, "k m"]:
    """Valid samples; of a long log windows spread over it, enough for deviations and quantiles."""
    parts = zip(windows(values), windows(log.valid), strict=True)
    return np.concatenate([np.asarray(part[valid], dtype=float) for part, valid in parts])


def log_notices(
    log: Log, mechanism: Mechanism, plan: MotionPlan | None, channels: Sequence[Channel]
) -> Iterator[Notice]:
    """Limits of the description that the log exceeds, and rest.

    Args:
        log: One recording.
        mechanism: Its robot.
        plan: Its filters; None: not known, then speeds are not judged.
        channels: What its channels are like.
    """
    yield from _beyond_limits(log, mechanism, plan)
    if plan is None:
        return
    share, seconds, start, stop = _rest(log, plan)
    slow = [channel for channel in channels if channel.top_speed is not None]
    top = max((channel.top_speed or 0.0 for channel in slow), default=np.inf)
    if share > _ALL:
        yield notice("at-rest", shown=f"at rest for {seconds:.3g} s, {100 * share:.0f} % of it")
    elif top < _STILL:
        yield notice("at-rest", shown=f"no joint moves faster than {top:.2g} rad/s or m/s")
    elif share > _RESTING:
        yield notice("rest", seconds=seconds, percent=100 * share, start=start, stop=stop)


def _beyond_limits(log: Log, mechanism: Mechanism, plan: MotionPlan | None) -> Iterator[Notice]:
    shown = []
    speeds = None if plan is None else _speeds(log, plan)
    for i, name in enumerate(log.position_names):
        limits = mechanism.limits.get(name, {})
        least, most = extents(log)[0][:, i]
        if "q" in limits and least <= most:
            low, high = limits["q"]
            room = _OVER["q"] * (high - low)
            over = max(float(most) - high, low - float(least))
            if over > room:
                shown.append(f"q_{i + 1} ('{name}') by {over:.3g} {position_unit(mechanism, [name])}")
        if "dq" in limits and speeds is not None and speeds[i] > (1 + _OVER["dq"]) * limits["dq"]:
            unit = position_unit(mechanism, [name])
            shown.append(f"speed of '{name}', {speeds[i]:.3g} instead of {limits['dq']:.3g} {unit}/s")
    sampled = np.abs(_sampled(log, log.tau))
    for i, name in enumerate(log.effort_names):
        limit = mechanism.limits.get(name, {}).get("tau")
        x = sampled[np.isfinite(sampled[:, i]), i]
        if limit is not None and len(x) and float(np.quantile(x, 0.999)) > (1 + _OVER["tau"]) * limit:
            unit, largest = effort_unit(mechanism, name), float(np.max(np.abs(extents(log)[1][:, i])))
            shown.append(f"tau_{i + 1} ('{name}'), {largest:.3g} instead of {limit:.3g} {unit}")
    if shown:
        yield notice("limit-exceeded", shown="; ".join(shown))


def _states(log: Log, plan: MotionPlan) -> Iterator[tuple[int, Float[Array, "n m"]]]:
    """First sample and filtered rates of the usable pieces, up to a limit."""
    motion, left = Motion(log, plan), _MOST_SAMPLES
    for start, stop in motion.usable():
        if left <= 0:
            return
        end = min(stop, start + left)
        left -= end - start
        yield start, motion.states(start, end)[1]


def _speeds(log: Log, plan: MotionPlan) -> Float[Array, "m"]:
    """99.5 % quantile of each speed, per second."""
    pieces = [np.abs(dq) for _, dq in _states(log, plan)]
    if not pieces:
        return np.zeros(log.q.shape[1])
    return np.asarray(np.quantile(np.concatenate(pieces), 0.995, axis=0))


def _rest(log: Log, plan: MotionPlan) -> tuple[float, float, float, float]:
    """Share of the samples at rest, their duration, and begin and end of the longest rest, in [s]."""
    still = total = 0
    longest_rest = (0, 0.0, 0.0)
    for start, dq in _states(log, plan):
        resting = at_rest(dq, np.array(plan.rest_speed), plan.rest_window)
        still, total = still + int(resting.sum()), total + len(resting)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], resting.astype(np.int8), [0]])))
        for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            if b - a > longest_rest[0]:
                longest_rest = (b - a, float(log.t[start + a]), float(log.t[start + b - 1]))
    return still / max(total, 1), still * log.dt, longest_rest[1], longest_rest[2]
