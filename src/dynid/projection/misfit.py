"""More sensors than degrees of freedom: how much they contradict the loops, and what explains it.

At each sample the closed pose is nearest to all sensors in least squares. The weighted residual is

    r = P (y - y_closed),      P = I - Q Q^T,      Q an orthonormal basis of W N_measured

An error of sensor j that is c times x gives r = P e_j w_j c x: x = 1 for its zero, x = y_j for its scale (a
wrong gear ratio). As P is a projector, the c of least squares over many samples, and the fraction of |r|^2
that it explains, are

    c_j = sum r_j x / (w_j sum P_jj x^2),        share_j = (sum r_j x)^2 / (sum P_jj x^2 sum |r|^2)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.batched import qr
from dynid.common.catalogue import Severity
from dynid.common.notices import Notice, notice
from dynid.kinematics.sensors import Sensors
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.choose import position_spectrum
from dynid.motion.log import Log

_NOISE = 5.0  # standard deviations of the noise; from noise alone the RMS misfit of a log stays below one
# rad or m: error of dimensions with four digits. Smaller errors hardly change a parameter.
_ROUNDED = 1e-4
_FAR = 10.0  # times the limit: 1e-3 rad or m, and 50 standard deviations of the noise, are no rounding
# Fraction of the squared misfit that identifies a zero; smaller differences of this fraction are a tie.
_EXPLAINS, _ALIKE = 0.8, 0.05
_LEAST_SAMPLES = 64  # of a segment from which noise is estimated
_USUAL = 0.3  # of the usual distance from a singular pose, squared: poses beyond it always stay
_LARGEST_RATIO = 0.5  # of a position: a gear ratio off by more is another mechanism


@dataclass(eq=False)
class Misfit:
    """Differences of one robot's sensors from the closed pose along a log.

    Attributes:
        sensors: What is measured; `names` and `units` of each, in the same order.
        noise: Standard deviation of each, in [rad] or [m].
        squares: Sum of squared differences, shape (m,), over `count` samples.
        worst: Largest difference, its sensor, and its time in [s].
    """

    sensors: Sensors
    names: Sequence[str]
    units: Mapping[str, str]
    noise: Float[Array, "m"]
    count: int = 0
    squares: Float[Array, "m"] = field(init=False)
    worst: tuple[float, int, float] = (0.0, 0, 0.0)
    _sums: Float[Array, "2 m"] = field(init=False)
    _gains: Float[Array, "2 m"] = field(init=False)
    _total: float = 0.0

    def __post_init__(self) -> None:
        self.squares = np.zeros(self.sensors.count)
        self._sums, self._gains = (np.zeros((2, self.sensors.count)) for _ in range(2))

    def add(
        self,
        t: Float[Array, "n"],
        wanted: Float[Array, "n w"],
        miss: Float[Array, "n m"],
        N: Float[Array, "n v d"],
        every: int = 1,
    ) -> None:
        """Add samples: times, positions, sensor differences, and tangent directions at the closed poses."""
        self.count += len(t)
        self.squares += np.sum(miss**2, axis=0)
        size = np.abs(miss)
        if size.size and size.max() > self.worst[0]:
            row, sensor = np.unravel_index(int(np.argmax(size)), size.shape)
            self.worst = (float(size[row, sensor]), int(sensor), float(t[row]))
        M = N[::every, self.sensors.velocity] * self.sensors.weight[:, None]
        usable = np.isfinite(M).all(axis=(1, 2))
        Q = qr(M[usable])[0]
        r = miss[::every][usable] * self.sensors.weight
        redundancy = 1.0 - np.sum(Q**2, axis=2)
        for k, x in enumerate((np.ones_like(r), self._values(wanted[::every][usable]))):
            self._sums[k] += np.sum(r * x, axis=0)
            self._gains[k] += np.sum(redundancy * x**2, axis=0)
        self._total += float(np.sum(r**2))

    def _values(self, wanted: Float[Array, "n w"]) -> Float[Array, "n m"]:
        """What each sensor reads; zero for rotations, which have no scale."""
        values = np.asarray(wanted[:, self.sensors.column], dtype=float)
        for _, _, j in self.sensors.quaternions.tolist():
            values[:, j : j + 3] = 0.0
        return values

    @property
    def rms(self) -> Float[Array, "m"]:
        """RMS difference of each sensor over all samples, in [rad] or [m]."""
        return np.asarray(np.sqrt(self.squares / max(self.count, 1)))

    def words(self) -> str:
        """How well the sensors agree, for the report."""
        rms = self.rms
        name, worst = self.names[int(np.argmax(rms))], self.worst
        return (
            "more measured joints than degrees of freedom: they differ from the closed pose by"
            f" {rms.max():.2g} RMS ({name}), at most {worst[0]:.2g} (t = {worst[2]:.4g} s)"
        )

    def notices(self, log: str) -> tuple[Notice, ...]:
        """A warning where the sensors disagree by more than their noise."""
        rms = self.rms
        excess = rms / np.maximum(_NOISE * self.noise, _ROUNDED)
        i = int(np.argmax(excess))
        if excess[i] <= 1.0:
            return ()
        unit, (worst, sensor, when) = self.units[self.names[i]], self.worst
        remark = notice(
            "loop-misfit",
            log=log,
            joint=self.names[i],
            rms=rms[i],
            unit=unit,
            noise=f", encoder noise {self.noise[i]:.1g} {unit}" if self.noise[i] > 1e-9 else "",
            worst=worst,
            where=self.names[sensor],
            when=when,
            cause=self.cause(),
        )
        return (remark if excess[i] > _FAR else replace(remark, severity=Severity.CARE),)

    def _in_words(self, kind: int, sensor: int, size: float) -> str:
        name = self.names[sensor]
        if kind == 0:
            return f"the zero of '{name}' (off by {size:+.3g} {self.units[name]})"
        return f"the gear ratio of '{name}' (positions {1.0 / (1.0 - size):.4g} times as large)"

    def cause(self) -> str:
        """The joint zero or gear ratio that explains the misfit, where one does."""
        gains = np.where(self._gains > 1e-9 * max(self.count, 1), self._gains, np.inf)
        share = self._sums**2 / (gains * max(self._total, np.finfo(float).tiny))
        size = self._sums / (gains * self.sensors.weight)
        share[1, np.abs(size[1]) > _LARGEST_RATIO] = 0.0
        best = float(share.max(initial=0.0))
        if not _EXPLAINS < best < 1.0 / _EXPLAINS:  # above one: too large for the linear model
            return "No single joint zero or gear ratio explains it: check dimensions and all joint zeros"
        alike = [divmod(int(i), share.shape[1]) for i in np.argsort(-share, axis=None)]
        alike = [(kind, i) for kind, i in alike if share[kind, i] > best - _ALIKE]
        causes = [self._in_words(kind, i, float(size[kind, i])) for kind, i in alike]
        return f"Likely cause: {' or '.join(causes)}, which explains {100 * best:.0f} % of it"


def beyond(miss: Float[Array, "n m"], most: Float[Array, "m"]) -> Bool[Array, "n"]:
    """Samples at which some sensor differs from the closed pose by more than is allowed."""
    return np.asarray((np.abs(miss) > most).any(axis=1))


def linear_within(distances: Float[Array, "n"], doubt: float) -> float:
    """Largest condition number at which poses change linearly with a description off by `doubt` [m, rad].

    At a distance x from a singular pose, in units of the usual one, the measured coordinates are x^2 / 2 from
    their extreme. Where that is 15 doubts, three change a pose linearly to 5 %. Poses of about the usual
    distance stay, whatever the doubt.

    Args:
        distances: 1 over the condition number of some poses, shape (n,).
        doubt: Size of the error.
    """
    return 1.0 / float(np.median(distances) * np.sqrt(min(30.0 * doubt, _USUAL)))


def sensor_noise(mechanism: Mechanism, log: Log, sensors: Sensors) -> Float[Array, "m"]:
    """Standard deviation of each measured coordinate, in [rad] or [m]: as given, else from the spectrum."""
    start, stop = max(log.segments, key=lambda span: span[1] - span[0], default=(0, 0))
    seen = np.zeros(log.q.shape[1])
    if stop - start >= _LEAST_SAMPLES:
        seen = position_spectrum(log).sigma
    given = mechanism.measured_sigma
    known = [given.get(name, level) for name, level in zip(log.position_names, seen.tolist(), strict=True)]
    noise = np.array(known, dtype=float)[sensors.column]
    for _, c, j in sensors.quaternions.tolist():
        whole = 2.0 * float(np.sqrt(np.sum(seen[c : c + 4] ** 2) / 3.0))  # entries are half angles
        noise[j : j + 3] = given.get(log.position_names[c], whole)
    return noise
