"""Limited efforts of servos: where the law asks for more than the bodies get, the drive is at its limit.

    effort = sign(u) min(|u|, limit(speed)),    limit(v) = min(stall, stall (1 - |v| / no_load)) if u v > 0

u is the effort of the PD law, and the effort of the bodies is W chi. A limit is taken as found where it
explains the difference of both; samples at a limit are masked, as the law says nothing there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, effort_unit
from dynid.motion.log import Log
from dynid.motion.motion import widened
from dynid.motion.servo import LIMIT, NO_LOAD, Law, speeds
from dynid.problem import Problem
from dynid.statistics.sandwich import Spread

_CANDIDATES = 60
_SAMPLES = 4000  # of each log
_LEAST_SHARE = 0.005  # of the samples beyond a limit
_BEYOND = 1.05  # times the limit: the law asks for clearly more
_BETTER = 0.7  # of the squares: what the limit must leave at most
_WORTH = 0.9  # of the squares: with more left, no line is tried either
_SAME = 0.01  # of a limit: found again
_NEAR = 0.95  # of the limit: may be limited already
_AROUND = 3  # samples
_TILE = 2048


@dataclass(frozen=True, eq=False)
class Limits:
    """Largest efforts of the motors.

    Attributes:
        effort: Shape (a,), in [N m] or [N]; infinite: no limit was reached.
        sigma: Standard deviation of each, shape (a,).
        no_load: Speed at which the effort of a motor is zero, shape (a,), in [rad/s] or [m/s]; infinite: the
            limit does not depend on the speed.
        share: Of the samples at the limit, shape (a,).
        no_load_sigma: Standard deviation of `no_load`, shape (a,).
        visits: How often the limit was reached, shape (a,): as many errors are independent.
    """

    effort: Float[Array, "a"]
    sigma: Float[Array, "a"]
    no_load: Float[Array, "a"]
    share: Float[Array, "a"]
    no_load_sigma: Float[Array, "a"]
    visits: Float[Array, "a"]

    @classmethod
    def none(cls, count: int) -> Limits:
        """No limits."""
        zero, infinite = np.zeros(count), np.full(count, np.inf)
        return cls(infinite, zero, infinite.copy(), zero.copy(), zero.copy(), zero.copy())

    @property
    def any(self) -> bool:
        """Whether some motor has a limit."""
        return bool(np.isfinite(self.effort).any())

    def at(self, u: Float[Array, "n a"], speed: Float[Array, "n a"]) -> Float[Array, "n a"]:
        """The limit at some speeds, shape (n, a); braking efforts are limited by the stall effort alone."""
        return _limit(self.effort, self.no_load, u, speed)

    def near(self, other: Limits) -> bool:
        """Whether the limits are those of another search, as far as they matter for what is masked."""
        pairs = ((self.effort, other.effort), (self.no_load, other.no_load))
        return all(np.allclose(mine, found, rtol=_SAME) for mine, found in pairs)

    def added(
        self,
        robot: Mechanism,
        parameters: tuple[Parameter, ...],
        chi: Float[Array, "p"],
        spread: Spread,
    ) -> tuple[tuple[Parameter, ...], Float[Array, "q"], Spread]:
        """The largest efforts that were reached as further parameters, independent of the others."""
        added, values, sigma, dof = [], [], [], []
        for k, actuator in enumerate(robot.actuators):
            unit = effort_unit(robot, actuator.name)
            speed = "rad/s" if unit == "N m" else "m/s"
            found = (
                (LIMIT, unit, self.effort[k], self.sigma[k]),
                (NO_LOAD, speed, self.no_load[k], self.no_load_sigma[k]),
            )
            for symbol, one_unit, value, deviation in found:
                if np.isfinite(value):
                    name = actuator.name
                    added.append(Parameter(f"{symbol}_{name}", symbol, name, one_unit, "servo"))
                    values.append(float(value))
                    sigma.append(float(deviation))
                    dof.append(max(1.0, float(self.visits[k]) - 1.0))
        p, more = len(chi), len(added)
        covariance = np.zeros((p + more, p + more))
        covariance[:p, :p] = spread.covariance
        covariance[range(p, p + more), range(p, p + more)] = np.square(sigma)
        wider = replace(
            spread,
            covariance=covariance,
            dof=np.append(spread.dof, dof),
            methods=(*spread.methods, *("visits of the limit" for _ in added)),
        )
        return (*parameters, *added), np.append(chi, values), wider

    def choices(self, robot: Mechanism) -> dict[str, str]:
        """What was found, in words."""
        lines = {}
        for k, actuator in enumerate(robot.actuators):
            if np.isfinite(self.effort[k]):
                unit = effort_unit(robot, actuator.name)
                line = (
                    f", falling to zero at {self.no_load[k]:.4g} {'rad/s' if unit == 'N m' else 'm/s'}"
                    if np.isfinite(self.no_load[k])
                    else ""
                )
                lines[f"effort limit of {actuator.name}"] = (
                    f"{self.effort[k]:.4g} {unit} (sigma {self.sigma[k]:.2g}){line}:"
                    f" {100 * self.share[k]:.2g} % of the samples, which are masked"
                )
        return lines


def masked(log: Log, law: Law, limits: Limits) -> Log:
    """The log without samples at which a motor is at its limit."""
    if not limits.any:
        return log
    near = np.any(beyond(log, law, limits), axis=1, keepdims=True)
    valid = log.valid & ~widened(near, _AROUND)[:, 0]
    return replace(log, valid=valid)


def beyond(log: Log, law: Law, limits: Limits) -> Bool[Array, "n a"]:
    """Samples at which the law asks for about the limit or more."""
    u = law.efforts(log)
    return np.asarray(np.abs(u) > _NEAR * limits.at(u, speeds(log)))


def find_limits(problem: Problem, chi: Float[Array, "p"], law: Law, *, suspected: bool = False) -> Limits:
    """Limits that explain the difference of what laws ask for and bodies get.

    Args:
        problem: Its logs are those of servos.
        chi: Standard parameters, shape (p,), SI.
        law: With all values.
        suspected: Whether to take also a limit that explains a part only, as the law may be wrong.
    """
    u, got, speed = _efforts(problem, chi, law)
    limits = Limits.none(u.shape[1])
    for k in range(u.shape[1]):
        fine = np.isfinite(got[:, k])
        fitted = _limited(u[fine, k], got[fine, k], speed[fine, k], _WORTH if suspected else _BETTER)
        if fitted is not None:
            limits.effort[k], limits.sigma[k], limits.no_load[k] = fitted.stall, fitted.sigma, fitted.no_load
            limits.share[k], limits.no_load_sigma[k] = fitted.share, fitted.no_load_sigma
            limits.visits[k] = fitted.visits
    return limits


def _limit(
    stall: float | Float[Array, "..."],
    no_load: float | Float[Array, "..."],
    u: Float[Array, "..."],
    speed: Float[Array, "..."],
) -> Float[Array, "..."]:
    motoring = u * speed > 0.0
    with np.errstate(invalid="ignore"):
        falling = stall * np.clip(1.0 - np.abs(speed) / no_load, 0.0, 1.0)
    return np.where(motoring & np.isfinite(no_load), falling, stall)


@dataclass(frozen=True)
class _Limit:
    """The limit of one motor, as in `Limits`."""

    stall: float
    sigma: float
    no_load: float
    no_load_sigma: float
    share: float
    visits: int


def _limited(
    u: Float[Array, "n"], got: Float[Array, "n"], speed: Float[Array, "n"], leaves: float = _BETTER
) -> _Limit | None:
    """The limit of one motor; None: there is none that leaves less than this part of the squares."""
    size = np.abs(u)
    if len(u) == 0 or size.max() == 0.0:
        return None
    along = got * np.sign(u)
    most = float(size.max())

    def left(stall: float, no_load: float = np.inf) -> float:
        cut = np.minimum(size, _limit(stall, no_load, u, speed))
        return float(np.sum((along - cut) ** 2))

    grid = np.linspace(0.05, 1.0, _CANDIDATES) * most
    stall = float(grid[np.argmin([left(x) for x in grid])])
    fastest = float(np.abs(speed).max())
    no_load, better = np.inf, left(stall)
    if better > _WORTH * left(most):
        return None
    for line in np.geomspace(1.02, 10.0, 25) * fastest if fastest > 0 else ():
        trial = grid[np.argmin([left(x, line) for x in grid])]
        if left(trial, line) < 0.8 * better:
            better, stall, no_load = left(trial, line), float(trial), float(line)
    limit = _limit(stall, no_load, u, speed)
    over = size > _BEYOND * limit
    share = float(np.mean(over))
    if share < _LEAST_SHARE or better > leaves * left(most):
        return None
    falls = np.isfinite(no_load) & (u[over] * speed[over] > 0.0)
    visit = np.cumsum(np.diff(over.astype(int), prepend=0) == 1)[over]
    return _line(along[over], np.where(falls, np.abs(speed[over]), 0.0), visit, share)


def _line(got: Float[Array, "n"], speed: Float[Array, "n"], visit: Int[Array, "n"], share: float) -> _Limit:
    """Least squares of effort = stall - slope speed at the limit; speed: zero where it does not fall.

    Errors of one visit of the limit may be correlated, those of different visits are not:
    C = (X^T X)^-1 (sum over visits of s s^T) (X^T X)^-1,   s = X^T residual of a visit.
    """
    X = np.column_stack([np.ones(len(got)), -speed])[:, : 2 if speed.any() else 1]
    x = np.linalg.lstsq(X, got, rcond=None)[0]
    sums = np.array([np.bincount(visit, column * (got - X @ x)) for column in X.T])
    count = len(np.unique(visit))
    A = np.linalg.pinv(X.T @ X)
    C = A @ (sums @ sums.T) @ A * (count / (count - 1) if count > 1 else np.inf)
    stall, sigma = float(x[0]), float(np.sqrt(C[0, 0]))
    if len(x) == 1 or x[1] <= 0.0:
        return _Limit(stall, sigma, np.inf, 0.0, share, count)
    no_load = stall / float(x[1])
    slope = np.array([no_load / stall, -no_load / float(x[1])])  # of no_load over stall and slope
    return _Limit(stall, sigma, no_load, float(np.sqrt(slope @ C @ slope)), share, count)


def _efforts(
    problem: Problem, chi: Float[Array, "p"], law: Law
) -> tuple[Float[Array, "n a"], Float[Array, "n a"], Float[Array, "n a"]]:
    """Efforts of the law, of the bodies (NaN where masked) and speeds of the motors at some samples."""
    asked, got, moved = [], [], []
    a = len(problem.mechanism.actuators)
    for source in problem.sources:
        log, layout = source.motion.log, source.layout
        coefficients = layout.coefficients(chi)
        u, v = law.efforts(log), speeds(log)
        total = sum(stop - start for start, stop in source.pieces())
        step = max(1, total // _SAMPLES)
        for start, stop in source.pieces():
            for at, packed, weights in source.rows(start, stop, _TILE):
                sums = np.where(weights > 0, layout.sums(packed, coefficients), np.nan)
                mine = np.full((a, packed.shape[1]), np.nan)
                for k, row in enumerate(source.directions.effort_map):
                    motor = int(np.argmax(row != 0.0))
                    if row[motor] != 0.0:
                        mine[motor] = sums[k] / row[motor]
                span = slice(at, at + packed.shape[1], step)
                asked.append(u[span])
                moved.append(v[span])
                got.append(mine.T[::step].copy())
    return np.concatenate(asked), np.concatenate(got), np.concatenate(moved)
