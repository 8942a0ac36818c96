"""Recorded signals of a motion: encoder steps, noise, delays, drive gains, an imperfect clock.

    q_k   = round(q(t_k - delay) + noise)          t_k = k / rate + jitter
    tau_k = tau(t_k - delay) / gain + noise

Used by every simulator: the inverse model along a prescribed motion, dynid's own plant, and MuJoCo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.errors import InputError
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.logs import log_from_arrays

Per = float | Float[Array, "_c"]  # lengths differ: numbers of positions and motors
STAMPS = ("sampled", "nominal")
_MOST_JITTER = 0.45  # of a sampling period: keeps the order of the samples
_MOST_DEVIATION = 0.15  # of a sampling period: three sigma of the jitter stay within the maximum
_FEWEST = 10  # samples that must remain


@dataclass(frozen=True, eq=False)
class Sensing:
    """Imperfections of sensors and recorder.

    Attributes:
        resolution: Encoder resolution of the positions, one or per coordinate, in [rad] or [m]; 0: none.
        position_sigma: Noise of the positions before rounding, in [rad] or [m].
        position_delay: Delay of the positions, in [s].
        effort_sigma: Noise of the efforts as logged, one or per actuator, in [N m], [N] or [A].
        correlation: Of this noise from one sample to the next, 0 to 1; None: white.
        effort_resolution: Step of the efforts as logged, in [N m], [N] or [A]; 0: none.
        effort_delay: Delay of the efforts, in [s].
        gain: True effort per logged unit, one or per actuator: near 1 for a torque that the drive computes
            with a wrong constant, in [N m/A] or [N/A] if currents are logged.
        velocity, acceleration: Whether the exact derivatives are also logged.
        reference: Whether the desired positions are also logged.
        jitter: Standard deviation of the sampling times, in [s].
        stamps: Logged times: `sampled` (actual sampling time) or `nominal` (clock time).
        dropped: Share of lost samples, 0 to 1.
        anywhere: Whether the encoder steps have a random offset (drawn per recording).
    """

    resolution: Per = 0.0
    position_sigma: Per = 0.0
    position_delay: float = 0.0
    effort_sigma: Per = 0.0
    correlation: float | None = None
    effort_resolution: Per = 0.0
    effort_delay: float = 0.0
    gain: Per = 1.0
    velocity: bool = False
    acceleration: bool = False
    reference: bool = False
    jitter: float = 0.0
    stamps: str = "sampled"
    dropped: float = 0.0
    anywhere: bool = False

    def __post_init__(self) -> None:
        sizes = {
            "encoder resolution": self.resolution,
            "position noise": self.position_sigma,
            "position delay": self.position_delay,
            "effort noise": self.effort_sigma,
            "effort resolution": self.effort_resolution,
            "effort delay": self.effort_delay,
            "jitter": self.jitter,
        }
        for label, size in sizes.items():
            least = float(np.min(size, initial=0.0))
            if not np.all(np.isfinite(size)) or least < 0.0:
                raise InputError(f"{label} {least:g} is negative or not finite", remedy="give 0 or more")
        if not np.all(np.isfinite(self.gain)) or np.any(np.asarray(self.gain) == 0.0):
            raise InputError("a gain of zero is not valid", remedy="give N m/A, N/A or a factor near 1")
        if self.correlation is not None and not 0.0 <= self.correlation < 1.0:
            raise InputError(
                f"noise correlation {self.correlation} is not between 0 and 1", remedy="e.g. 0.95"
            )
        if not 0.0 <= self.dropped < 1.0:
            raise InputError(f"dropped share {self.dropped:g} is not valid", remedy="e.g. 0.01")
        if self.stamps not in STAMPS:
            raise InputError(f"stamps '{self.stamps}' are not known", remedy=f"use {' or '.join(STAMPS)}")


@dataclass(frozen=True, eq=False)
class Recording:
    """The columns of a log as written, before any cleaning.

    Attributes:
        t: Logged times, shape (n,), in [s].
        q: Measured positions, shape (n, m), in [rad] or [m].
        tau: Efforts as logged, shape (n, a), in [N m], [N] or [A].
        dq, ddq: Derivatives of q, shape (n, m), per s and per s^2; None if not logged.
        q_ref: Desired positions, shape (n, m), as `q`; None if not logged.
    """

    t: Float[Array, "n"]
    q: Float[Array, "n m"]
    tau: Float[Array, "n a"]
    dq: Float[Array, "n m"] | None = None
    ddq: Float[Array, "n m"] | None = None
    q_ref: Float[Array, "n m"] | None = None

    def columns(self) -> dict[str, Float[Array, "n"]]:
        """By canonical name, in the order of a file."""
        by_name = {"t": self.t}
        signals = {"q": self.q, "dq": self.dq, "ddq": self.ddq, "tau": self.tau, "q_ref": self.q_ref}
        for symbol, values in signals.items():
            if values is not None:
                by_name |= {f"{symbol}_{i + 1}": column for i, column in enumerate(values.T)}
        return by_name

    def log(self, mechanism: Mechanism, payloads: Sequence[str] = (), name: str = "simulated") -> Log:
        """The same as a log that was read."""
        return log_from_arrays(
            mechanism,
            self.t,
            self.q,
            self.tau,
            self.dq,
            self.ddq,
            name=name,
            payloads=payloads,
            q_ref=self.q_ref,
        )


@dataclass(frozen=True, eq=False)
class Course:
    """Measured coordinates and motor efforts at the ticks of a uniform clock.

    Attributes:
        t: Shape (n,), in [s], evenly spaced.
        q, dq, ddq: Measured positions and their exact derivatives, shape (n, m).
        tau: Efforts of the motors, shape (n, a), in [N m] or [N].
        q_ref: Desired positions, shape (n, m); None: the robot follows them exactly.
        noise: Of the encoders when a controller has read them, shape (n, m), NaN elsewhere; None: never.
    """

    t: Float[Array, "n"]
    q: Float[Array, "n m"]
    dq: Float[Array, "n m"]
    ddq: Float[Array, "n m"]
    tau: Float[Array, "n a"]
    q_ref: Float[Array, "n m"] | None = None
    noise: Float[Array, "n m"] | None = None


def recorded(course: Course, sensing: Sensing, rng: np.random.Generator) -> Recording:
    """One recording of a course, with noise, resolution, delays and clock of the sensing."""
    n, a = course.tau.shape
    _check_delays(course, sensing)
    # Efforts first: a recording with only effort noise draws nothing else.
    noise = effort_noise(rng, n, a, sensing.correlation) * np.asarray(sensing.effort_sigma)
    moments = course.t
    if sensing.jitter:
        period = float(course.t[1] - course.t[0])
        if sensing.jitter > _MOST_DEVIATION * period:
            raise InputError(
                f"a jitter of {sensing.jitter:g} s is too large for samples every {period:g} s: it would"
                " change their order",
                remedy=f"give at most {_MOST_DEVIATION * period:.2g} s",
            )
        most = _MOST_JITTER * period
        moments = course.t + np.clip(sensing.jitter * rng.normal(size=n), -most, most)
    q, dq, ddq = _positions(course, moments - sensing.position_delay)
    tau = _efforts(course, moments - sensing.effort_delay) / np.asarray(sensing.gain) + noise
    if np.any(sensing.position_sigma):
        drawn = rng.normal(size=q.shape) * np.asarray(sensing.position_sigma)
        # Positions read by a controller are logged with the same noise: its efforts depend on them.
        read = drawn if course.noise is None else np.where(np.isnan(course.noise), drawn, course.noise)
        q = q + read
    shift = np.zeros(q.shape[1])
    if sensing.anywhere:
        shift = rng.uniform(size=q.shape[1]) * np.asarray(sensing.resolution)
    result = Recording(
        t=moments if sensing.stamps == "sampled" else course.t,
        q=quantised(q - shift, sensing.resolution) + shift,
        tau=quantised(tau, sensing.effort_resolution),
        dq=dq if sensing.velocity else None,
        ddq=ddq if sensing.acceleration else None,
        q_ref=(course.q if course.q_ref is None else course.q_ref) if sensing.reference else None,
    )
    return _kept(result, np.asarray(rng.random(n) >= sensing.dropped)) if sensing.dropped else result


def quantised(q: Float[Array, "n j"], resolution: Per) -> Float[Array, "n j"]:
    """Positions rounded to whole encoder steps; unchanged for a resolution of 0."""
    step = np.broadcast_to(np.asarray(resolution, float), q.shape[1:])
    if np.any(step < 0):
        raise InputError(f"encoder resolution {step.min():g} is negative")
    whole = np.where(step > 0, step, 1.0)
    return np.where(step > 0, np.rint(q / whole) * whole, q)


def effort_noise(
    rng: np.random.Generator, n: int, a: int, correlation: float | None = None
) -> Float[Array, "n a"]:
    """Unit-variance noise: white, or e_k = c e_(k-1) + sqrt(1 - c^2) w_k, stationary from the start."""
    white = rng.normal(size=(n, a))
    if correlation is None:
        return white
    if not 0.0 <= correlation < 1.0:
        raise InputError(f"noise correlation {correlation} is not between 0 and 1", remedy="e.g. 0.95")
    from scipy.signal import lfilter

    white[1:] *= np.sqrt(1.0 - correlation**2)
    return np.asarray(lfilter([1.0], [1.0, -correlation], white, axis=0))


def _check_delays(course: Course, sensing: Sensing) -> None:
    length = float(course.t[-1] - course.t[0])
    for label, delay in (("position", sensing.position_delay), ("effort", sensing.effort_delay)):
        if delay >= length:
            raise InputError(
                f"a {label} delay of {delay:g} s is longer than the log of {length:g} s",
                remedy="give a shorter delay, in seconds, or a longer duration",
            )


def _positions(course: Course, times: Float[Array, "n"]) -> tuple[Array, Array, Array]:
    """Positions and rates between ticks, by quintics through q, dq and ddq; at rest before the start."""
    if np.array_equal(times, course.t):
        return course.q, course.dq, course.ddq
    i, u, h = _places(course, times)
    u = u[:, None]
    ends = [(x[i], x[i + 1]) for x in (course.q, course.dq * h, course.ddq * (h * h))]
    (q0, q1), (v0, v1), (a0, a1) = ends
    # q = q0 + v0 u + a0 u^2 / 2 + c3 u^3 + c4 u^4 + c5 u^5, u from tick to tick.
    d, e, f = q1 - q0 - v0 - 0.5 * a0, v1 - v0 - a0, a1 - a0
    c3, c4, c5 = 10 * d - 4 * e + 0.5 * f, -15 * d + 7 * e - f, 6 * d - 3 * e + 0.5 * f
    q = q0 + u * (v0 + u * (0.5 * a0 + u * (c3 + u * (c4 + u * c5))))
    dq = (v0 + u * (a0 + u * (3 * c3 + u * (4 * c4 + u * 5 * c5)))) / h
    ddq = (a0 + u * (6 * c3 + u * (12 * c4 + u * 20 * c5))) / (h * h)
    return q, dq, ddq


def _efforts(course: Course, times: Float[Array, "n"]) -> Float[Array, "n a"]:
    """Efforts between ticks, linear: dry friction is discontinuous, polynomials would oscillate."""
    if np.array_equal(times, course.t):
        return course.tau
    i, u, _ = _places(course, times)
    return np.asarray(course.tau[i] + u[:, None] * (course.tau[i + 1] - course.tau[i]))


def _places(course: Course, times: Float[Array, "n"]) -> tuple[Array, Float[Array, "n"], float]:
    """The tick before each time, the elapsed part of the step, and the step [s]."""
    h = float(course.t[-1] - course.t[0]) / (len(course.t) - 1)
    steps = np.clip((times - course.t[0]) / h, 0.0, len(course.t) - 1.0)
    i = np.minimum(steps.astype(np.int64), len(course.t) - 2)
    return i, steps - i, h


def _kept(recording: Recording, keep: Bool[Array, "n"]) -> Recording:
    keep[[0, -1]] = True
    if np.count_nonzero(keep) < _FEWEST:
        raise InputError(
            f"only {np.count_nonzero(keep)} of {len(keep)} samples remain, too few for a log",
            remedy="drop fewer samples",
        )
    t, q, tau = (x[keep] for x in (recording.t, recording.q, recording.tau))
    rest = (x if x is None else x[keep] for x in (recording.dq, recording.ddq, recording.q_ref))
    return Recording(t, q, tau, *rest)
