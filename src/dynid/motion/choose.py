"""Choices from the data where no setting is given: cutoff, source of velocity (checked), speeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from weakref import WeakKeyDictionary, ref

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, doubt, notice
from dynid.common.paged import extremes, ranges
from dynid.motion.differentiate import differentiate
from dynid.motion.filters import LowPass, check_cutoff, low_pass
from dynid.motion.log import Log
from dynid.motion.settings import FilterSettings
from dynid.motion.spectrum import LEAST, Spectrum, cutoff_of, middles, motion_band, spectrum_of_runs

RATIO_TOLERANCE = 0.05
WARN, REFUSE = 0.2, 0.5  # relative rms difference
_LATE = 0.02  # relative rms difference by a delay alone; controllers of good arms have up to 0.014
_ONE_RATE = 0.01  # relative: clocks of logs of one rate differ by less
_EXCITED = 0.05  # of the fastest coordinate; slower coordinates cannot be compared
_STILL = 1e-4  # rad/s or m/s, 20 degrees an hour: a log without motion contains only noise
_HINTS = {
    57.29578: "velocity in degrees, position in radians",
    1 / 57.29578: "position in degrees, velocity in radians",
    1000.0: "velocity in mm/s or time in ms",
    1e-3: "position in mm, or time in units 1000 times shorter",
    9.549297: "velocity in rpm",
    -1.0: "the sign of one of them",
}


def middle_parts(log: Log, x: Float[Array, "n m"]) -> list[Float[Array, "_ m"]]:
    """A signal in the middle of the runs of a log, as many samples as an estimate needs."""
    return [np.asarray(x[part], dtype=float) for part in middles(log.segments, log.dt)]


def spectrum_in(log: Log, x: Float[Array, "n m"]) -> Spectrum:
    """Spectrum of a signal of a log."""
    return spectrum_of_runs(middle_parts(log, x), log.dt)


# Spectra take most of the time of a plan, and logs are planned for several settings. By the first of them,
# then by the signal and the identities of all.
_Known = dict[tuple[str, ...], tuple[list[ref[Log]], Spectrum]]
_KNOWN: WeakKeyDictionary[Log, _Known] = WeakKeyDictionary()


def spectra_of(logs: Sequence[Log], signal: Literal["q", "dq"] = "q") -> list[Spectrum]:
    """Spectra of the positions or measured rates of logs; one for all logs of one sampling rate."""
    return [_spectrum_of(group, signal) for group in by_rate(logs)]


def by_rate(logs: Sequence[Log]) -> list[list[Log]]:
    """Logs of one sampling rate together, in their order."""
    groups: list[list[Log]] = []
    for log in logs:
        near = (group for group in groups if abs(group[0].dt - log.dt) < _ONE_RATE * log.dt)
        group = next(near, None)
        if group is None:
            groups.append([log])
        else:
            group.append(log)
    return groups


def _spectrum_of(logs: Sequence[Log], signal: Literal["q", "dq"]) -> Spectrum:
    known, key = _KNOWN.setdefault(logs[0], {}), (signal, *(str(id(log)) for log in logs))
    if key not in known or [entry() for entry in known[key][0]] != list(logs):
        parts = _middles(logs, signal)
        known[key] = [ref(log) for log in logs], spectrum_of_runs(parts, logs[0].dt)
    return known[key][1]


def _middles(logs: Sequence[Log], signal: Literal["q", "dq"]) -> list[Float[Array, "_ m"]]:
    """A signal in the middle of the runs of all logs, which are laid end to end for this.

    A log that has only fragments beside the others counts too: it may be the only fast one.
    """
    ends = np.cumsum([0, *(len(log.t) for log in logs)]).tolist()
    runs = [(a + end, b + end) for log, end in zip(logs, ends, strict=False) for a, b in log.segments]
    parts: dict[int, list[slice]] = {k: [] for k in range(len(logs))}
    for part in middles(runs, logs[0].dt):
        k = int(np.searchsorted(ends, part.start, side="right")) - 1
        parts[k].append(slice(part.start - ends[k], part.stop - ends[k]))
    for k, log in enumerate(logs):
        if not parts[k] and 2 * max((b - a for a, b in log.segments), default=0) >= LEAST:
            parts[k] = middles(log.segments, log.dt)
    return [np.asarray(getattr(logs[k], signal)[part], float) for k in parts for part in parts[k]]


def position_spectrum(log: Log) -> Spectrum:
    """Spectrum of the positions of a log."""
    return spectra_of([log])[0]


# By the arrays, which excerpts of a log share with it; an entry ends with the first of them.
_EXTENTS: dict[tuple[int, ...], tuple[tuple[ref[Array], ...], tuple[Array, Array]]] = {}


def extents(log: Log) -> tuple[Float[Array, "2 m"], Float[Array, "2 a"]]:
    """Smallest and largest valid value of every position and effort; infinite where there is none."""
    arrays = (log.q, log.tau, log.valid)
    key = tuple(id(x) for x in arrays)
    if key not in _EXTENTS:
        refs = tuple(ref(x, lambda _: _EXTENTS.pop(key, None)) for x in arrays)
        _EXTENTS[key] = refs, (extent(log, log.q), extent(log, log.tau))
    return _EXTENTS[key][1]


def extent(log: Log, x: Float[Array, "n c"]) -> Float[Array, "2 c"]:
    """Smallest and largest valid value of some signals; infinite where there is none."""
    if log.valid.all():
        return np.array(extremes(x)[:2])
    ends = np.array([[np.inf], [-np.inf]]) * np.ones(x.shape[1])
    for a, b in ranges(len(x)):
        valid = log.valid[a:b]
        for k, column in enumerate(x[a:b].T):
            part = np.ascontiguousarray(column)
            use = valid & np.isfinite(part)
            part = part if use.all() else part[use]
            ends[0, k] = np.min(part, initial=ends[0, k])
            ends[1, k] = np.max(part, initial=ends[1, k])
    return ends


def choose_cutoff(
    filter: FilterSettings, logs: Sequence[Log], spectra: Sequence[Spectrum], unit: str = "rad or m"
) -> tuple[float, str]:
    """Cutoff in [Hz] and the reason in words; where kind is none it only sets the decimation."""
    shape = f"{filter.kind}, order {filter.order}, zero phase"
    if filter.cutoff is not None:
        for log in logs:
            check_cutoff(filter.cutoff, log.dt)
        return filter.cutoff, "none" if filter.kind == "none" else f"{filter.cutoff:g} Hz ({shape})"
    cutoff = cutoff_of(spectra, max(log.dt for log in logs))
    if filter.kind == "none":
        return cutoff, "none"
    band = motion_band(spectra)
    sigma = np.median(np.concatenate([s.sigma for s in spectra]))
    why = f"motion bandwidth {band:.3g} Hz, noise of the coordinates {sigma:.1e} {unit} (median)"
    return cutoff, f"{cutoff:g} Hz ({shape}), chosen: {why}"


def cutoff_for_measured(
    filter: FilterSettings, logs: Sequence[Log], spectra: Sequence[Spectrum], cutoff: float, why: str
) -> tuple[float, str]:
    """The cutoff where velocities are measured: frequencies where they are below the noise are not useful.

    The rule of `cutoff_of` on the velocities' own spectrum; a given cutoff is kept.
    """
    if filter.cutoff is not None:
        return cutoff, why
    rate_spectra = spectra_of([log for log in logs if log.dq is not None], "dq")
    sinks = [float(np.median(s.sink[s.moving])) for s in rate_spectra if s.moving.any()]
    band = motion_band(spectra)
    if not sinks or not np.isfinite(band):
        return cutoff, why
    lower = float(f"{max(1.5 * max(sinks), 4.0 * band):.2g}")
    if lower >= cutoff:
        return cutoff, why
    shown = why if filter.kind == "none" else f"{lower:g} Hz" + why[why.index(" (") :]
    return lower, f"{shown}; measured velocities fall below the noise at {max(sinks):.3g} Hz"


def choose_velocity(
    filter: FilterSettings, logs: Sequence[Log], cutoff: float, derivative: str
) -> tuple[str, str, tuple[Notice, ...]]:
    """`measured` or `derived`, the reason in words, and notices of the comparison."""
    without = [log.name for log in logs if log.dq is None]
    if filter.velocity == "measured" and without:
        raise InputError(
            f"velocity: measured is requested, but log '{without[0]}' has no complete set of dq columns",
            place="filter.velocity",
            remedy="map dq_1.. under `columns:`, or use velocity: derived",
        )
    if filter.velocity == "derived":
        return "derived", "derived from positions", ()
    if without:
        return "derived", "derived (no measured velocities)", ()
    notices = [notice for log in logs for notice in _compared(filter, log, cutoff, derivative)]
    if filter.velocity == "auto" and notices:
        return "derived", "derived from positions (measured velocities disagree)", tuple(notices)
    compared = "" if filter.velocity == "measured" else ", consistent with the positions"
    return "measured", f"measured{compared}", tuple(notices)


def noise_and_peak(
    filter: FilterSettings,
    logs: Sequence[Log],
    spectra: Sequence[Spectrum],
    cutoff: float,
    derivative: str,
    velocity: str,
) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
    """Noise (sigma) and peak (99.5 % quantile) of the filtered velocity, per coordinate.

    White position noise of density S gives sigma^2 = (2 pi)^2 S fc^3 / 3 below the cutoff fc;
    a measured velocity with density S gives S fc.

    Returns:
        Two arrays of shape (m,), in [rad/s] or [m/s]; the noise is the largest over the sampling rates.
    """
    noise, speeds = [], []
    for group, of_group in zip(by_rate(logs), spectra, strict=True):
        dt = group[0].dt
        band = 0.5 / dt if filter.kind == "none" else cutoff
        if velocity == "measured" and all(log.dq is not None for log in group):
            noise.append(np.sqrt(spectra_of(group, "dq")[0].floor * band))
            speeds += [np.abs(dq) for log in group if log.dq is not None for dq in middle_parts(log, log.dq)]
        else:
            noise.append(2 * np.pi * np.sqrt(of_group.floor * band**3 / 3))
            speeds += [
                np.abs(differentiate(_low_pass(filter, log, cutoff)(q), log.dt, derivative))
                for log in group
                for q in middle_parts(log, log.q)
            ]
    return np.max(noise, axis=0), np.quantile(np.concatenate(speeds), 0.995, axis=0)


def _compared(filter: FilterSettings, log: Log, cutoff: float, derivative: str) -> list[Notice]:
    if log.dq is None:
        return []
    smooth = _low_pass(filter, log, cutoff)
    return check_velocity(log, smooth, derivative, round(1.0 / (cutoff * log.dt)))


def _without_edges(x: Float[Array, "n m"], edge: int) -> Float[Array, "_ m"]:
    """A signal without what a filter spoils at both ends; a short one as it is."""
    return x[edge : len(x) - edge] if len(x) > 4 * edge else x


def late_velocities(
    filter: FilterSettings, logs: Sequence[Log], cutoff: float, derivative: str
) -> tuple[Notice, ...]:
    """Notices of logs whose measured velocities are late, as by a filter of the controller.

    The delay follows by least squares from measured - v = -delay dv/dt, with the derivative v of the
    positions. It is one if it explains most of the difference.
    """
    found = []
    for log in logs:
        if log.dq is None:
            continue
        smooth, edge = _low_pass(filter, log, cutoff), round(1.0 / (cutoff * log.dt))
        parts = []
        for q, dq in zip(middle_parts(log, log.q), middle_parts(log, log.dq), strict=True):
            derived = differentiate(smooth(q), log.dt, derivative)
            signals = derived, differentiate(derived, log.dt, derivative), derived - smooth(dq)
            parts.append([_without_edges(x, edge) for x in signals])
        speed, rise, off = (np.concatenate(x) for x in zip(*parts, strict=True))
        steep, size, all_off = (np.maximum(np.mean(x**2, axis=0), 1e-60) for x in (rise, speed, off))
        delay = np.mean(off * rise, axis=0) / steep
        moving = size > (_EXCITED * _EXCITED) * np.max(size)
        late = moving & (delay**2 * steep > _LATE**2 * size) & (delay**2 * steep > 0.5 * all_off)
        if np.any(late):
            worst = int(np.argmax(np.where(late, np.abs(delay), 0.0)))
            percent = 100.0 * float(np.sqrt(all_off[worst] / size[worst]))
            when = "later" if delay[worst] > 0.0 else "earlier"
            text = f"{log.position_names[worst]} {percent:.0f} % ({1e3 * abs(delay[worst]):.2g} ms {when})"
            more = int(np.count_nonzero(late)) - 1
            shown = text + (f" and {more} more" if more else "")
            found.append(notice("velocity-differs", log=log.name, shown=shown))
    return tuple(found)


def _low_pass(filter: FilterSettings, log: Log, cutoff: float) -> LowPass:
    # Without a filter the comparison still needs one: raw differences are dominated by noise.
    kind = "butterworth" if filter.kind == "none" else filter.kind
    return low_pass(kind, cutoff, filter.order, log.dt)[0]


def check_velocity(log: Log, smooth: LowPass, derivative: str, edge: int) -> list[Notice]:
    """Compare low-passed measured rates with the derivative of equally low-passed positions.

    Noise of the derivative makes <own, measured> / <own, own> too small, noise of the measured
    rates makes <measured, measured> / <own, measured> too large: the true ratio lies between them.

    Raises:
        InputError: The ratio of an excited coordinate is not 1 within 5 %, or the difference
            exceeds half of the motion.

    Returns:
        A notice for coordinates that differ by more than 20 %.
    """
    if log.dq is None:
        return []
    smoothed = [differentiate(smooth(q), log.dt, derivative) for q in middle_parts(log, log.q)]
    derived = np.concatenate([_without_edges(x, edge) for x in smoothed])
    measured = np.concatenate([_without_edges(smooth(x), edge) for x in middle_parts(log, log.dq)])
    size = np.sqrt(np.mean(derived**2, axis=0))
    other = np.sqrt(np.mean(measured**2, axis=0))
    # A coordinate at rest is not tested: any small number keeps its ratios finite.
    reference = np.maximum(size, 1e-30)
    common = np.mean(derived * measured, axis=0)
    bounds = common / reference**2, other**2 / np.where(common == 0.0, 1e-60, common)
    ratio = np.clip(1.0, np.minimum(*bounds), np.maximum(*bounds))  # of both, the nearest to 1 between them
    difference = np.sqrt(np.mean((measured - derived) ** 2, axis=0)) / reference
    excited = (size > max(_EXCITED * np.max(size), _STILL)) | (other > max(_EXCITED * np.max(other), _STILL))
    doubtful = np.flatnonzero(excited & ((np.abs(ratio - 1.0) > RATIO_TOLERANCE) | (difference > WARN)))
    if len(doubtful) == 0:
        return []
    wrong = [i for i in doubtful if abs(ratio[i] - 1.0) > RATIO_TOLERANCE or difference[i] > REFUSE]
    if wrong:
        return [doubt(_refusal(log, int(i), float(ratio[i]), float(difference[i]))) for i in wrong]
    shown = ", ".join(f"{log.position_names[i]} {100 * difference[i]:.0f} %" for i in doubtful)
    return [notice("velocity-differs", log=log.name, shown=shown)]


def _refusal(log: Log, i: int, ratio: float, difference: float) -> InputError:
    name = log.position_names[i]
    hint = next((text for value, text in _HINTS.items() if abs(ratio / value - 1.0) < 0.1), "")
    return InputError(
        f"measured velocity of '{name}' is {ratio:.4g} times the derivative of its position"
        f" (rms difference {100 * difference:.0f} %)" + (f": it looks like {hint}" if hint else ""),
        file=log.file,
        place=f"column {log.mapping.get(f'dq_{i + 1}', f'dq_{i + 1}')}",
        remedy="give unit or scale under `columns:`; if the positions are right, filter: {velocity: derived}",
    )
