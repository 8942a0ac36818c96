"""Noise floor and bandwidth of every coordinate, estimated from the data.

The power spectrum of the differences (velocity: no leakage from slow drifts) is estimated by
Welch's method. White position noise of density S_n [unit^2/Hz] appears in it as S_n |1 - z|^2/dt^2, so
its level at high frequencies gives S_n. Per coordinate

- sink: the frequency where the spectrum, smoothed over 0.5 Hz, falls to 4 S_n and stays there for at
least the spacing of the harmonics of a periodic motion;
- bandwidth: the frequency below which 99.9 % of the velocity power above the noise is found;
- core: the same for 99 %.

All runs count, by their duration: none is typical of the others, and their order means nothing. How motion is
cut into runs and logs hardly matters: frequencies are those of the whole duration, and the mean velocity that
is left out is that of all runs. The mean of a short run is motion. A short run blurs every frequency upwards;
its spectrum is moved down by as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float

MOST_SAMPLES = 32_768
_WINDOW = 8.0  # s: resolution 0.125 Hz
LEAST = 64  # samples of a window: spectra of fewer say nothing about noise
_SMOOTHING = 0.5  # Hz
# Times the resolution of a run: 0.5 % of the power of a line is farther above it, behind the Hann window.
# With 1.6 (0.1 %) bandwidths of runs of some seconds were too low, which no choice of settings can mend.
_BLUR = 1.4
_FLOOR_BAND = (0.3, 0.48)  # of the sampling rate
_BANDWIDTHS = 15.0
_OVER_FLOOR = 4.0  # a periodogram of pure noise, smoothed over a few bins, seldom reaches this
_FAR_OVER_FLOOR = 16.0  # and never this: a line of the motion


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Noise and bandwidth per coordinate.

    Attributes:
        floor: One-sided density of the position noise, shape (m,), in [unit^2/Hz].
        sigma: Standard deviation of the position noise, shape (m,), in [rad] or [m].
        sink, bandwidth, core: Frequencies of the module's text, shape (m,), in [Hz].
        moving: Coordinates that move, shape (m,).
    """

    floor: Float[Array, "m"]
    sigma: Float[Array, "m"]
    sink: Float[Array, "m"]
    bandwidth: Float[Array, "m"]
    core: Float[Array, "m"]
    moving: Bool[Array, "m"]

    @property
    def motion_bandwidth(self) -> float:
        """Bandwidth of the motion as a whole, in [Hz].

        The median coordinate's 99.9 % (one vibrating joint does not decide), but never less
        than half of any coordinate's 99 % (one fast joint is not cut off).
        """
        if not self.moving.any():
            return float("nan")
        return float(max(np.median(self.bandwidth[self.moving]), 0.5 * np.max(self.core[self.moving])))

    @property
    def motion_core(self) -> float:
        """Frequency below which 99 % of the motion of the fastest coordinate is, in [Hz]."""
        return float(np.max(self.core[self.moving], initial=0.0))


def middles(segments: Sequence[tuple[int, int]], dt: float) -> list[slice]:
    """Middle parts of the runs that an estimate of a log needs: about `MOST_SAMPLES` samples in all.

    Every run gives a part of its length, but at least a window. Fragments are left out: runs shorter than
    half a window, or than half of the usual length (half of all samples are in runs as long as that).
    """
    lengths = np.array([stop - start for start, stop in segments])
    falling = np.sort(lengths)[::-1]
    usual = int(falling[np.searchsorted(np.cumsum(falling), 0.5 * falling.sum())])
    window = min(usual, max(LEAST, round(_WINDOW / dt)) + 1)
    used = [span for span, length in zip(segments, lengths.tolist(), strict=True) if 2 * length >= window]
    share = MOST_SAMPLES / sum(stop - start for start, stop in used)
    parts = []
    for start, stop in used:
        spare = max(0, stop - start - max(int(share * (stop - start)), window)) // 2
        parts.append(slice(start + spare, stop - spare))
    return parts


def spectrum(q: Float[Array, "n m"], dt: float) -> Spectrum:
    """Estimate noise and bandwidth of one run, from at most about `MOST_SAMPLES` samples in its middle."""
    return spectrum_of_runs([q[middles([(0, len(q))], dt)[0]]], dt)


def spectrum_of_runs(runs: Sequence[Float[Array, "_ m"]], dt: float) -> Spectrum:
    """Estimate noise and bandwidth of all runs together."""
    velocities = [np.diff(np.asarray(q, dtype=float), axis=0) / dt for q in runs]
    n = sum(map(len, velocities))
    mean = np.sum([v.sum(axis=0) for v in velocities], axis=0) / n
    window = min(n, max(LEAST, round(_WINDOW / dt)))
    blurred: dict[int, list[Float[Array, "_ m"]]] = {}
    for v in velocities:
        blurred.setdefault(max(0, round(_BLUR * (window / len(v) - 1.0))), []).append(v - mean)
    shares = {bins: sum(map(len, some)) / n for bins, some in blurred.items()}
    powers = {bins: shares[bins] * welch(some, dt, window)[1][1:] for bins, some in blurred.items()}
    f, power = np.fft.rfftfreq(window, dt)[1:], np.sum(list(powers.values()), axis=0)
    m = power.shape[1]
    gain = (2.0 / dt * np.sin(np.pi * f * dt))[:, None] ** 2  # |1 - z|^2 / dt^2
    density = power / gain
    band = (f > _FLOOR_BAND[0] / dt) & (f < _FLOOR_BAND[1] / dt)
    floor = np.median(density[band], axis=0) if band.any() else np.zeros(m)
    sink = _sinks(f, density, floor, power)
    moved = np.arange(len(f))[:, None] <= sink
    excess = np.zeros_like(power)
    for bins, part in powers.items():
        above = np.where(moved, np.maximum(part - 3.0 * shares[bins] * floor * gain, 0.0), 0.0)
        excess[0] += above[:bins].sum(axis=0)
        excess[: len(f) - bins] += above[bins:]
    total = np.cumsum(excess, axis=0)
    speed = np.sqrt(total[-1] * (f[1] - f[0] if len(f) > 1 else 1.0))
    return Spectrum(
        floor=floor,
        sigma=np.sqrt(floor * 0.5 / dt),
        sink=f[sink],
        bandwidth=_holding(f, total, 0.999),
        core=_holding(f, total, 0.99),
        moving=(total[-1] > 0.0) & (speed > 0.02 * np.max(speed, initial=0.0)),
    )


def motion_band(spectra: Sequence[Spectrum]) -> float:
    """Bandwidth of the fastest, in [Hz]; NaN where nothing moves."""
    return max((s.motion_bandwidth for s in spectra if s.moving.any()), default=float("nan"))


def core_band(spectra: Sequence[Spectrum]) -> float:
    """As `motion_band`, for 99 % of the motion; NaN where nothing moves."""
    return max((s.motion_core for s in spectra if s.moving.any()), default=float("nan"))


def welch(
    runs: Sequence[Float[Array, "_ m"]], dt: float, window: int
) -> tuple[Float[Array, "k"], Float[Array, "k m"]]:
    """Frequencies in [Hz], and the one-sided power density of every column, shape (k, m), in [unit^2/Hz].

    Welch's method: mean over stretches of `window` samples that overlap by half, each weighted by a Hann
    window. A shorter run is one stretch, which counts by its length.
    """
    power, total = np.zeros((window // 2 + 1, runs[0].shape[1])), 0
    for x in runs:
        size = min(window, len(x))
        taper = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(size) / size)[:, None]
        weight = size * dt / float(np.sum(taper**2))
        for start in range(0, len(x) - size + 1, size - size // 2):
            lines = np.fft.rfft(taper * x[start : start + size], n=window, axis=0)
            power += weight * np.abs(lines) ** 2
            total += size
    power /= total
    power[1 : len(power) - (window + 1) % 2] *= 2.0  # the negative frequencies
    return np.fft.rfftfreq(window, dt), power


def cutoff_of(spectra: Sequence[Spectrum], dt: float) -> float:
    """Fifteen times the bandwidth of the motion, within what noise and sampling allow, in [Hz].

    Acceleration and reversals reach far beyond the band that contains the velocity's power, and
    the zero-phase Butterworth of order 4 attenuates by 0.4 % at half its cutoff. On real arms held-out
    prediction was best between ten and twenty times; with simulated white noise it matters little.
    There is no benefit beyond 1.5 times the frequency at which the spectrum of the median coordinate
    falls below the noise (but at least four bandwidths pass: a clean run of full periods falls at once),
    nor beyond 0.2 of the sampling rate, where central formulas fail.
    """
    band = motion_band(spectra)
    if not np.isfinite(band):
        return 0.1 / dt
    sink = max(float(np.median(s.sink[s.moving])) for s in spectra if s.moving.any())
    cutoff = min(_BANDWIDTHS * band, max(1.5 * sink, 4.0 * band), 0.2 / dt)
    return float(f"{cutoff:.2g}")


def _sinks(
    f: Float[Array, "k"], density: Float[Array, "k m"], floor: Float[Array, "m"], power: Float[Array, "k m"]
) -> Array:
    """Index of the first frequency beyond the peak from which the smoothed density stays on the floor.

    A clean run of full periods also has only the noise floor below its peak and between its harmonics. Their
    spacing is at most the fundamental, which is no higher than the largest line of the positions. So the
    density must stay down over that range. Lines far above the motion (vibration) are ignored. The
    peak is that of the velocity, where it is far above the noise: differences of a noisy position are
    largest at high frequencies.
    """
    width = max(1, round(_SMOOTHING / (f[1] - f[0]))) if len(f) > 1 else 1
    # Direct sums: densities span twenty decades, and running sums would lose the small ones.
    smooth = np.column_stack([np.convolve(x, np.full(width, 1.0 / width), mode="same") for x in density.T])
    places = np.arange(len(f))[:, None]
    peak = np.argmax(np.where(smooth >= _FAR_OVER_FLOOR * floor, power, 0.0), axis=0)
    above = np.cumsum(np.pad(smooth >= _OVER_FLOOR * floor, ((1, 0), (0, 0))), axis=0)
    ahead = np.minimum(places + np.argmax(density, axis=0) + 2, len(f))
    stays = np.take_along_axis(above, ahead, axis=0) == above[:-1]
    under = stays & (places > peak)
    return np.where(under.any(axis=0), np.argmax(under, axis=0), len(f) - 1)


def _holding(f: Float[Array, "k"], total: Float[Array, "k m"], share: float) -> Float[Array, "m"]:
    """Frequency below which `share` of the power is found."""
    reached = total >= share * total[-1]
    return np.asarray(f[np.argmax(reached, axis=0)])
