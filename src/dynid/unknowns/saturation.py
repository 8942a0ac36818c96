"""Limited efforts of servos: where the law asks for more than the bodies get, the drive is at its limit.

    effort = sign(u) min(|u|, limit(speed)),    limit(v) = min(stall, stall (1 - |v| / no_load)) if u v > 0

u is the effort of the PD law, and the effort of the bodies is W chi. A limit is taken as found where it
explains the difference of both; the equation of a motor at its limit is masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, effort_unit
from dynid.motion.log import Log
from dynid.motion.motion import widened
from dynid.motion.servo import LIMIT, NO_LOAD, Law, servo_of, speeds
from dynid.problem import Problem
from dynid.projection.model import RowSource
from dynid.statistics.estimate import Estimate
from dynid.statistics.sandwich import Spread
from dynid.statistics.uncertainty import student_t

_CANDIDATES = 60
_SAMPLES = 4000  # of each log
_LEAST_SHARE = 0.002  # of the samples beyond a limit
_BEYOND = 0.05  # of the stall effort above the limit: the law asks for clearly more
_BETTER = 0.7  # of the squares: what the limit must leave at most
_WORTH = 0.9  # of the squares: with more left, no line is tried either
_REFITS = 3  # which samples are at the limit depends on the limit
_CHANCE = 0.001  # that a limit which does not fall is said to fall with the speed
_SAME = 0.01  # of a limit: found again
_NEAR = 0.95  # of the stall effort, less than the limit by the rest: may be limited already
_AROUND = 3  # samples
_INSIDE = 2.0  # periods of the low-pass on coordinates: how far a visit of the limit is felt beyond its ends
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
        by_chi: Derivatives of `effort` and `no_load` by the standard parameters that gave the efforts of the
            bodies, shape (a, 2, p).
    """

    effort: Float[Array, "a"]
    sigma: Float[Array, "a"]
    no_load: Float[Array, "a"]
    share: Float[Array, "a"]
    no_load_sigma: Float[Array, "a"]
    visits: Float[Array, "a"]
    by_chi: Float[Array, "a 2 p"]

    @classmethod
    def none(cls, count: int, n_parameters: int = 0) -> Limits:
        """No limits."""
        zero, infinite = np.zeros(count), np.full(count, np.inf)
        by_chi = np.zeros((count, 2, n_parameters))
        return cls(infinite, zero, infinite.copy(), zero.copy(), zero.copy(), zero.copy(), by_chi)

    @classmethod
    def of(cls, estimate: Estimate, robot: Mechanism) -> Limits:
        """Those of a result, without their uncertainty."""
        found = {parameter.name: parameter.value for parameter in estimate.parameters}
        motors = [actuator.name for actuator in robot.actuators]
        effort, no_load = (
            np.array([found.get(f"{kind}_{motor}", np.inf) for motor in motors]) for kind in (LIMIT, NO_LOAD)
        )
        return replace(cls.none(len(motors)), effort=effort, no_load=no_load)

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
        S: Float[Array, "s v"],
    ) -> tuple[tuple[Parameter, ...], Float[Array, "q"], Spread]:
        """The largest efforts that were reached as further parameters.

        Their errors are those of the visits, and those of the parameters that gave the efforts: J C J^T.

        Args:
            S: Standard parameters over the first of `parameters`.
        """
        added, values, own, J, dof = [], [], [], [], []
        for k, actuator in enumerate(robot.actuators):
            name, unit = actuator.name, effort_unit(robot, actuator.name)
            found = (
                (LIMIT, unit, self.effort[k], self.sigma[k]),
                (NO_LOAD, "rad/s" if unit == "N m" else "m/s", self.no_load[k], self.no_load_sigma[k]),
            )
            for derivative, (symbol, one_unit, value, deviation) in zip(self.by_chi[k], found, strict=True):
                if np.isfinite(value):
                    added.append(Parameter(f"{symbol}_{name}", symbol, name, one_unit, "servo"))
                    values.append(float(value))
                    own.append(float(deviation) ** 2)
                    J.append(np.append(derivative @ S, np.zeros(len(chi) - S.shape[1])))
                    dof.append(max(1.0, float(self.visits[k]) - 1.0))
        C, D = spread.covariance, np.reshape(J, (-1, len(chi)))
        covariance = np.block([[C, C @ D.T], [D @ C, D @ C @ D.T + np.diag(own)]])
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
                speed = f"{self.no_load[k]:.4g} {'rad/s' if unit == 'N m' else 'm/s'}"
                line = f", falling to zero at {speed}" if np.isfinite(self.no_load[k]) else ""
                lines[f"effort limit of {actuator.name}"] = (
                    f"{self.effort[k]:.4g} {unit} (sigma {self.sigma[k]:.2g}){line}:"
                    f" {100 * self.share[k]:.2g} % of the samples, masked in its equation"
                )
        return lines


def masked(log: Log, law: Law, limits: Limits) -> Log:
    """The log without the efforts of motors at their limits; equations of the other motors stay."""
    if not limits.any:
        return log
    u, near = law.efforts(log), (1.0 - _NEAR) * np.where(np.isfinite(limits.effort), limits.effort, 0.0)
    return without(log, np.abs(u) > limits.at(u, speeds(log)) - near)


def without(log: Log, limited: Bool[Array, "n a"]) -> Log:
    """The log without the efforts of these motors at these samples and some around them."""
    return replace(log, servo=replace(servo_of(log), limited=widened(limited, _AROUND)))


def find_limits(problem: Problem, chi: Float[Array, "p"], law: Law, *, suspected: bool = False) -> Limits:
    """Limits that explain the difference of what laws ask for and bodies get.

    Args:
        problem: Its logs are those of servos.
        chi: Standard parameters, shape (p,), SI.
        law: With all values.
        suspected: Whether to take also a limit that explains a part only, as the law may be wrong.
    """
    u, got, speed, inside = _efforts(problem, chi, law)
    limits = Limits.none(u.shape[1], len(chi))
    used = np.zeros((u.shape[1], 2, len(u)))
    leaves = _WORTH if suspected else _BETTER
    for k in range(u.shape[1]):
        fitted = _limited(u[:, k], got[:, k], speed[:, k], leaves, inside)
        if fitted is not None:
            limits.effort[k], limits.sigma[k], limits.no_load[k] = fitted.stall, fitted.sigma, fitted.no_load
            limits.share[k], limits.no_load_sigma[k] = fitted.share, fitted.no_load_sigma
            limits.visits[k] = fitted.visits
            used[k, :, fitted.samples] = fitted.by_effort.T
    if limits.any and not suspected:
        limits.by_chi[:] = _sums_of_rows(problem, used)
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


def _above(u: Float[Array, "n"], v: Float[Array, "n"], limit: tuple[float, float]) -> Bool[Array, "n"]:
    """Where a law asks for clearly more than the limit (stall effort, no-load speed)."""
    return np.asarray(np.abs(u) > _limit(*limit, u, v) + _BEYOND * limit[0])


@dataclass(frozen=True)
class _Limit:
    """The limit of one motor, as in `Limits`.

    Attributes:
        by_effort: Derivatives of `stall` and `no_load` by the efforts of the bodies, shape (2, m).
        samples: Their samples, shape (m,).
    """

    stall: float
    sigma: float
    no_load: float
    no_load_sigma: float
    share: float
    visits: int
    by_effort: Float[Array, "2 m"]
    samples: Int[Array, "m"] = field(default_factory=lambda: np.zeros(0, int))


def _limited(
    u: Float[Array, "n"],
    got: Float[Array, "n"],
    speed: Float[Array, "n"],
    leaves: float = _BETTER,
    inside: int = 0,
) -> _Limit | None:
    """The limit of one motor; None: there is none that leaves less than this part of the squares.

    Args:
        u: What the law asks for, in [N m] or [N].
        got: What the bodies get; NaN where it is not known.
        speed: Of the motor, in [rad/s] or [m/s].
        leaves: Part of the squares.
        inside: Samples left out at each end of a visit of the limit. The noise of u chooses these ends, and
            it is the noise of the accelerations there too.
    """
    fine = np.isfinite(got)
    along = got[fine] * np.sign(u[fine])
    mean_u, mean_got, mean_speed = (_averaged(x, fine, inside)[fine] for x in (u, got, speed))
    limit = _searched(mean_u, mean_got, mean_speed, leaves)
    if limit is None:
        return None
    share, found = float(np.mean(_above(u, speed, limit)[fine])), None
    for _ in range(_REFITS):
        below = ~_above(u, speed, limit)
        over = ~widened(below[:, None], inside)[fine, 0]
        if not over.any():
            return None
        falls = np.where(u * speed > 0.0, np.abs(speed), 0.0)[fine][over]
        visit = np.cumsum(np.diff(over.astype(int), prepend=0) == 1)[over]
        found = _line(along[over], falls, visit, share)
        found = replace(
            found, by_effort=found.by_effort * np.sign(u[fine][over]), samples=np.flatnonzero(fine)[over]
        )
        limit = found.stall, found.no_load
    return found


def _averaged(x: Float[Array, "n"], fine: Bool[Array, "n"], width: int) -> Float[Array, "n"]:
    """Moving mean over the samples that are known, applied twice: accelerations have noise of high frequency,
    which hides a limit that is reached now and then."""
    ones = np.ones(2 * (width // 2) + 1)
    for _ in range(2):
        count = np.maximum(np.convolve(fine, ones, "same"), 1.0)
        x = np.convolve(np.where(fine, x, 0.0), ones, "same") / count
    return x


def _searched(
    u: Float[Array, "n"], got: Float[Array, "n"], speed: Float[Array, "n"], leaves: float
) -> tuple[float, float] | None:
    """Stall effort and no-load speed on a grid; None: no limit explains enough."""
    size, along = np.abs(u), got * np.sign(u)
    most = float(size.max(initial=0.0))
    if most == 0.0:
        return None

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
    share = np.mean(_above(u, speed, (stall, no_load)))
    return None if share < _LEAST_SHARE or better > leaves * left(most) else (stall, no_load)


def _line(got: Float[Array, "n"], speed: Float[Array, "n"], visit: Int[Array, "n"], share: float) -> _Limit:
    """Least squares of effort = stall - slope speed at the limit; speed: zero where it does not fall.

    Errors of one visit of the limit may be correlated, those of different visits are not:
    C = (X^T X)^-1 (sum over visits of s s^T) (X^T X)^-1,   s = X^T residual of a visit.
    A slope that is not clearly above zero is none.
    """
    X, count = np.column_stack([np.ones(len(got)), -speed]), len(np.unique(visit))
    clear = float(student_t(max(1, count - 2), 1.0 - 2.0 * _CHANCE))
    if np.ptp(speed) > 0.0 and count > 2:
        x, C = _by_visits(X, got, visit)
        if x[1] > clear * np.sqrt(C[1, 1]):
            no_load = float(x[0] / x[1])
            slope = np.array([no_load / x[0], -no_load / x[1]])  # of no_load over stall and slope
            by_effort = np.vstack([[1.0, 0.0], slope]) @ np.linalg.pinv(X)
            sigma, no_load_sigma = np.sqrt(C[0, 0]), np.sqrt(slope @ C @ slope)
            return _Limit(float(x[0]), float(sigma), no_load, float(no_load_sigma), share, count, by_effort)
    x, C = _by_visits(X[:, :1], got, visit)
    by_effort = np.vstack([np.full(len(got), 1.0 / len(got)), np.zeros(len(got))])
    return _Limit(float(x[0]), float(np.sqrt(C[0, 0])), np.inf, 0.0, share, count, by_effort)


def _by_visits(
    X: Float[Array, "n r"], got: Float[Array, "n"], visit: Int[Array, "n"]
) -> tuple[Float[Array, "r"], Float[Array, "r r"]]:
    """Least squares, and the covariance with errors that may be correlated within a visit."""
    A = np.linalg.pinv(X)
    x = A @ got
    rho, count = got - X @ x, len(np.unique(visit))
    if count < 2:  # nothing shows how visits differ: the errors of all samples may be the same
        felt = A.sum(axis=1) * np.sqrt(np.mean(rho**2))
        return x, np.outer(felt, felt)
    sums = np.array([np.bincount(visit, row * rho) for row in A])
    return x, sums @ sums.T * count / (count - 1)


def _efforts(
    problem: Problem, chi: Float[Array, "p"], law: Law
) -> tuple[Float[Array, "n a"], Float[Array, "n a"], Float[Array, "n a"], int]:
    """Efforts of the law, of the bodies (NaN where masked) and speeds of the motors at some samples; and how
    many of these are felt at the ends of a visit of the limit."""
    asked, got, moved, inside = [], [], [], 0
    a = len(problem.mechanism.actuators)
    for source in problem.sources:
        log, layout = source.motion.log, source.layout
        coefficients = layout.coefficients(chi)
        u, v = law.efforts(log), speeds(log)
        cutoff, step = source.motion.plan.cutoff, _stride(source)
        inside = max(inside, int(np.ceil(_INSIDE / (cutoff * source.dt * step))) if cutoff else _AROUND)
        for span, packed, weights in _tiles(source):
            sums = np.where(weights > 0, layout.sums(packed, coefficients), np.nan)
            mine = np.full((a, packed.shape[1]), np.nan)
            for k, motor, ratio in _motor_rows(source):
                mine[motor] = sums[k] / ratio
            asked.append(u[span])
            moved.append(v[span])
            got.append(mine.T)
    return np.concatenate(asked), np.concatenate(got), np.concatenate(moved), inside


def _sums_of_rows(problem: Problem, used: Float[Array, "a 2 n"]) -> Float[Array, "a 2 p"]:
    """Rows W of the motors at the samples of `_efforts`, summed with these weights."""
    total, done = np.zeros((*used.shape[:2], len(problem.parameters) + 1)), 0
    for source in problem.sources:
        layout = source.layout
        for _, packed, _ in _tiles(source):
            part = used[:, :, done : done + packed.shape[1]]
            done += packed.shape[1]
            for k, motor, ratio in _motor_rows(source):
                entries = slice(layout.start[k], layout.start[k + 1])
                for i in range(2):  # absent columns are the last one, which is cut off
                    np.add.at(
                        total[motor, i], layout.columns[entries], packed[entries] @ part[motor, i] / ratio
                    )
    return total[:, :, :-1]


def _stride(source: RowSource) -> int:
    return max(1, sum(stop - start for start, stop in source.pieces()) // _SAMPLES)


def _tiles(source: RowSource) -> Iterator[tuple[slice, Float[Array, "e n"], Float[Array, "k n"]]]:
    """Some samples of a log: where they are, their packed rows and weights."""
    step = _stride(source)
    for start, stop in source.pieces():
        for at, packed, weights in source.rows(start, stop, _TILE):
            yield slice(at, at + packed.shape[1], step), packed[:, ::step].copy(), weights[:, ::step].copy()


def _motor_rows(source: RowSource) -> Iterator[tuple[int, int, float]]:
    """Each row that has a motor, its motor, and what the motor adds to it per unit of effort."""
    for k, row in enumerate(source.directions.effort_map):
        motor = int(np.argmax(row != 0.0))
        if row[motor] != 0.0:
            yield k, motor, float(row[motor])
