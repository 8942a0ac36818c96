"""MotionPlan: how logs are filtered, differentiated and masked; missing settings are chosen from the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.mechanism.measured_pose import virtual_joints
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import position_unit
from dynid.motion.choose import (
    choose_cutoff,
    choose_velocity,
    cutoff_for_measured,
    noise_and_peak,
    spectra_of,
)
from dynid.motion.differentiate import STENCILS
from dynid.motion.filters import check_cutoff, samples
from dynid.motion.log import Log
from dynid.motion.settings import FilterSettings, MaskSettings

_DEFAULT_DERIVATIVE = "central7"
_ROWS_PER_CUTOFF = 4.0  # kept rows per second, relative to the cutoff
_ROWS_SHARE = 0.8  # of half the kept rate: the low-pass of W and Y
_REST_SECONDS = 0.1
# Multiple of the velocity noise (sigma) and fraction of the peak speed, whichever is larger; never
# more than the last fraction: a noisy velocity must not mask the whole log.
_REVERSAL = (4.0, 0.05, 0.1)
_REST = (6.0, 0.005, 0.1)
_STANDSTILL = 1e-6  # rad/s or m/s: one turn in ten weeks; filters change a constant position by 1e-13


@dataclass(frozen=True)
class MotionPlan:
    """Everything `Motion` needs besides the log.

    Attributes:
        cutoff: Low-pass on coordinates, in [Hz]; None without filter.
        kind: butterworth, fir or none.
        order: Of one pass.
        derivative: Formula, see `differentiate`.
        velocity: measured or derived.
        edge: Samples cut at both ends of every segment.
        dt: Nominal step, in [s].
        decimate: One row in so many is kept.
        rows_cutoff: Low-pass on W and Y, in [Hz].
        rest_speed: Per measured coordinate, in [rad/s] or [m/s]: a sample at which all are slower,
            for `rest_window` samples or longer, is at rest.
        reversal_speed: Per measured coordinate: its row is dropped when it is slower.
        reversal_around: Number of samples dropped on both sides of it.
        scalar: Which coordinates have reversals (entries of quaternions and measured poses have none).
        choices: What was chosen, in words with numbers and units.
        noise: Standard deviation of filtered velocities, per measured coordinate, in [rad/s] or [m/s].
        mask_speed: Speed below which any joint is near a reversal, where it was given, in [rad/s] or [m/s].
        ramp: Samples over which weights rise beside masked samples.
    """

    cutoff: float | None
    kind: str
    order: int
    derivative: str
    velocity: str
    edge: int
    dt: float
    decimate: int
    rows_cutoff: float
    rest_speed: tuple[float, ...]
    rest_window: int
    reversal_speed: tuple[float, ...]
    reversal_around: int
    scalar: tuple[bool, ...]
    choices: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    noise: tuple[float, ...] = ()
    mask_speed: float | None = None
    ramp: int = 0

    @classmethod
    def as_it_is(cls, log: Log) -> MotionPlan:
        """No filter, no mask, no edges: every instant unchanged, with its rates where it has them."""
        none = (0.0,) * log.q.shape[1]
        return cls(
            cutoff=None,
            kind="none",
            order=1,
            derivative="spline",
            velocity="derived" if log.dq is None else "measured",
            edge=0,
            dt=log.dt,
            decimate=1,
            rows_cutoff=0.5 / log.dt,
            rest_speed=none,
            rest_window=1,
            reversal_speed=none,
            reversal_around=0,
            scalar=(True,) * log.q.shape[1],
        )

    @property
    def look(self) -> int:
        """Samples on either side that decide whether a sample is masked."""
        return max(self.reversal_around + 1, self.rest_window) + self.ramp


@dataclass(frozen=True, eq=False)
class _Common:
    """Choices that all logs of a problem share."""

    cutoff: float
    derivative: str
    velocity: str
    noise: Float[Array, "m"]
    peak: Float[Array, "m"]
    scalar: tuple[bool, ...]
    words: Mapping[str, str]
    notices: tuple[Notice, ...]
    unit: str  # of speeds


def plan_motions(
    logs: Sequence[Log], mechanism: Mechanism, filter: FilterSettings, mask: MaskSettings
) -> tuple[MotionPlan, ...]:
    """A plan per log, with one cutoff and one source of velocity for all of them.

    Rules for missing settings:

    - cutoff: see `cutoff_of`, over the spectrum of all logs together;
    - derivative: 7-point, since the low-pass has removed the noise that longer formulas would amplify;
    - velocity: measured if every log has it and it agrees with the positions;
    - edge: 2 / cutoff seconds at order 4 where accelerations come from positions, 1 / cutoff where
      from velocities, and the derivative's neighbours. The odd extension continues value and slope
      but inverts the curvature; the acceleration error is 3 % after one period and 0.3 % after
      two periods (measured), and the slowest pole's time constant grows with the order;
    - decimation: about 4 samples per period of the cutoff; W and Y are low-passed at 0.8 of half
      that rate (1.6 cutoffs), which keeps the products of coordinates in W complete;
    - reversals: slower than 4 sigma of the velocity's noise, or 5 % of the peak speed: there
      the sign of dq is not known, and friction is not yet the Coulomb term of a sliding joint;
    - rest: all coordinates slower than 6 sigma or 0.5 % of the peak for 0.1 s.
    """
    if not logs:
        raise InputError("no logs to plan for")
    spectra = spectra_of(logs)
    unit = position_unit(mechanism, logs[0].position_names)
    cutoff, why = choose_cutoff(filter, logs, spectra, unit)
    derivative = filter.derivative or _DEFAULT_DERIVATIVE
    velocity, source, notices = choose_velocity(filter, logs, cutoff, derivative)
    if velocity == "measured":
        cutoff, why = cutoff_for_measured(filter, logs, spectra, cutoff, why)
    if mask.speed is None or mask.rest is None:
        noise, peak = noise_and_peak(filter, logs, spectra, cutoff, derivative, velocity)
    else:
        noise = peak = np.zeros(logs[0].q.shape[1])
    words = {
        "low-pass on coordinates": why,
        "derivative": derivative + ("" if filter.derivative else ", chosen"),
        "velocity": source,
    }
    speed = " or ".join(f"{single}/s" for single in unit.split(" or "))
    common = _Common(cutoff, derivative, velocity, noise, peak, _scalar(mechanism), words, notices, speed)
    return tuple(_plan_one(log, filter, mask, common) for log in logs)


def _plan_one(log: Log, filter: FilterSettings, mask: MaskSettings, common: _Common) -> MotionPlan:
    fs = 1.0 / log.dt
    decimate = filter.decimate or max(1, round(fs / (_ROWS_PER_CUTOFF * common.cutoff)))
    rows = filter.rows or _ROWS_SHARE * fs / (2 * decimate)
    check_cutoff(rows, log.dt, "filter.rows")
    edge = _edge(log, filter, common)
    reversal = reversal_speeds(mask.speed, common.noise, common.peak)
    rest = _rest_speeds(mask.rest, common)
    # A given speed is used for single samples; a speed chosen from noise needs a longer interval.
    rest_window = 1 if mask.rest is not None else max(1, round(_REST_SECONDS * fs))
    around = mask.around or 0
    chosen = ", chosen from noise and peak speed"
    choices = {
        **common.words,
        "edges": f"{edge} samples ({edge * log.dt:.3g} s) cut at both ends of every segment",
        "decimation": f"one sample in {decimate} ({fs / decimate:.4g} Hz)"
        + ("" if filter.decimate else ", chosen: about 4 per period of the low-pass on coordinates"),
        "low-pass on equations": f"{rows:.4g} Hz, of both sides alike, before decimation"
        + ("" if filter.rows else " (0.8 of half the kept rate)"),
        "reversals": f"rows dropped below {_shown(reversal)} {common.unit}"
        + (f" and {around} samples around" if around else "")
        + (f", weights rise over {mask.ramp} samples" if mask.ramp else "")
        + (chosen if mask.speed is None else "")
        if np.any(reversal) or around
        else "no rows dropped",
        "rest": f"samples dropped where all coordinates stay below {_shown(rest)} {common.unit}"
        + (f" for {_REST_SECONDS} s{chosen}" if mask.rest is None else ""),
    }
    return MotionPlan(
        cutoff=None if filter.kind == "none" else common.cutoff,
        kind=filter.kind,
        order=filter.order,
        derivative=common.derivative,
        velocity=common.velocity,
        edge=edge,
        dt=log.dt,
        decimate=decimate,
        rows_cutoff=rows,
        rest_speed=tuple(map(float, rest)),
        rest_window=rest_window,
        reversal_speed=tuple(map(float, reversal)),
        reversal_around=around,
        scalar=common.scalar,
        choices=choices,
        notices=common.notices,
        noise=tuple(map(float, common.noise)),
        mask_speed=mask.speed,
        ramp=mask.ramp or 0,
    )


def _edge(log: Log, filter: FilterSettings, common: _Common) -> int:
    """Samples to cut at the ends of segments; refused when nothing would be left."""
    neighbours = 3 if common.derivative == "spline" else 2 * len(STENCILS[common.derivative])
    periods = 0.25 * filter.order * (1.0 if common.velocity == "measured" else 2.0)
    settle = 0 if filter.kind == "none" else samples(periods / common.cutoff, log.dt)
    edge = settle + neighbours
    size = max(stop - start for start, stop in log.segments)
    if size <= 2 * edge:
        raise InputError(
            f"the longest segment of log '{log.name}' has {size} samples, and {edge} are cut at each end",
            file=log.file,
            remedy="raise filter.cutoff, or use longer runs",
        )
    return edge


def reversal_speeds(
    given: float | None, noise: Float[Array, "m"], peak: Float[Array, "m"]
) -> Float[Array, "m"]:
    """Speeds below which coordinates are near a reversal, in [rad/s] or [m/s].

    Args:
        given: One speed for all; None: chosen from the data.
        noise: Standard deviation of the velocity's noise, shape (m,).
        peak: Peak speed, shape (m,).
    """
    return _threshold(given, noise, peak, *_REVERSAL)


def _rest_speeds(given: float | None, common: _Common) -> Float[Array, "m"]:
    """The same for rest, at which all coordinates must be slow at once."""
    speeds = _threshold(given, common.noise, common.peak, *_REST)
    if given is None:
        # For a coordinate that contains only noise (height, measured by a camera above a planar robot)
        # the peak is meaningless; the other coordinates detect rest.
        visible = common.peak > _REST[0] * common.noise
        if visible.any():
            speeds = np.where(visible, speeds, np.maximum(_REST[0] * common.noise, _STANDSTILL))
    return speeds


def _threshold(
    given: float | None,
    noise: Float[Array, "m"],
    peak: Float[Array, "m"],
    sigmas: float,
    share: float,
    most: float,
) -> Float[Array, "m"]:
    if given is not None:
        return np.full(len(noise), float(given))
    chosen = np.clip(sigmas * noise, share * peak, most * peak)
    # A joint that never moves (a brake, a constant encoder) has no sign of velocity at all.
    return np.maximum(chosen, _STANDSTILL)


def _shown(speeds: Float[Array, "m"]) -> str:
    low, high = float(np.min(speeds, initial=np.inf)), float(np.max(speeds, initial=0.0))
    return f"{high:.2g}" if low >= 0.99 * high else f"{low:.2g} to {high:.2g}"


def _scalar(mechanism: Mechanism) -> tuple[bool, ...]:
    """Measured positions of joints with friction; pose sensors have none."""
    virtual = virtual_joints(mechanism)
    owners = (mechanism.joint_of_position[name] for name in mechanism.measured_positions)
    return tuple(not joint.has_quaternion and joint.name not in virtual for joint in owners)
