"""Output error: parameters whose simulated motion fits the measured one.

Short windows of a log are simulated from their own starting states under the measured efforts. The
starting states are unknowns of each window, eliminated by QR; the parameters are refined by
Levenberg-Marquardt steps with derivatives of the simulation itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.batched import qr, solve
from dynid.common.levenberg import Schedule, least_squares
from dynid.dynamics.forward import ForwardDynamics
from dynid.dynamics.freedoms import Freedoms
from dynid.dynamics.integrate import Projection, Runs, integrate
from dynid.kinematics.closure import moved
from dynid.kinematics.sensors import Sensors
from dynid.mechanism.mechanism import Mechanism
from dynid.projection.factor import triangle

_SCHEDULE = Schedule(damping=1e-3, factor=10.0, least=1e-9, steps=15, trials=6, still=1e-4)


@dataclass(frozen=True, eq=False)
class Windows:
    """Stretches of logs with the same payloads, each with the same number of steps.

    Attributes:
        q, dq: Starting states, all tree coordinates, shapes (n, n_q) and (n, v).
        tau: Efforts at every half step, shape (2 k + 1, n, a).
        measured: Positions of the measured coordinates after each step, shape (k + 1, n, w).
        step: In [s].
        mounted: Payloads on the robot.
        lengths: Of the locked cables of each window, shape (n, c), in [m].
        given: Lengths to which these are held, shape (n, c), in [m].
    """

    q: Float[Array, "n q"]
    dq: Float[Array, "n v"]
    tau: Float[Array, "h n a"]
    measured: Float[Array, "k n w"]
    step: float
    mounted: tuple[str, ...]
    lengths: Float[Array, "n c"]
    given: Float[Array, "n c"]

    def picked(self, rows: Int[Array, "m"] | slice) -> Windows:
        """Some of the windows."""
        return self._each(lambda name, axis: getattr(self, name)[(slice(None),) * axis + (rows,)])

    def joined(self, others: Sequence[Windows]) -> Windows:
        """These windows, and others of the same form behind them."""
        every = (self, *others)
        return self._each(lambda name, axis: np.concatenate([getattr(part, name) for part in every], axis))

    def _each(self, change: Callable[[str, int], Array]) -> Windows:
        """Windows with every array changed, given its name and the axis of the windows."""
        axes = {"q": 0, "dq": 0, "tau": 1, "measured": 1, "lengths": 0, "given": 0}
        arrays: dict[str, Any] = {name: change(name, axis) for name, axis in axes.items()}
        return replace(self, **arrays)


@dataclass(frozen=True, eq=False)
class OutputError:
    """The simulation of a mechanism as a function of its base parameters.

    Attributes:
        S, c: Standard parameters are S chi + c.
        sigma: Deviation of each measured coordinate, shape (m,), in [rad] or [m].
        linear: The linear estimate, shape (b,), SI.
        hold: One over the standard deviation of a prior at the linear estimate, shape (b,): it keeps
            parameters that the windows hardly determine near it.
    """

    mechanism: Mechanism
    freedoms: Freedoms
    sensors: Sensors
    S: Float[Array, "p b"]
    c: Float[Array, "p"]
    sigma: Float[Array, "m"]
    linear: Float[Array, "b"]
    hold: Float[Array, "b"]

    def residual(self, chi: Float[Array, "b"], windows: Windows) -> Float[Array, "n r"]:
        """Measured less simulated positions in deviations, shape (n, (k + 1) m)."""
        return missed(self._run(chi, windows, None).q, windows.measured, self.sensors, self.sigma)

    def slopes(
        self, chi: Float[Array, "b"], windows: Windows
    ) -> tuple[Float[Array, "n r"], Float[Array, "n r s"], Float[Array, "n r b"]]:
        """The residual, and derivatives of the simulation by starting states and by parameters."""
        runs = self._run(chi, windows, self.S)
        N = self.freedoms.tangent(runs.q.reshape(-1, runs.q.shape[2]))
        N = seen_rows(N, self.sensors, self.sigma, runs.q.shape[1])
        by_start, by_parameter = (by_window(N @ slope) for slope in runs.slopes)
        return missed(runs.q, windows.measured, self.sensors, self.sigma), by_start, by_parameter

    def moved(self, windows: Windows, change: Float[Array, "n s"]) -> Windows:
        """Starting states changed by independent positions and velocities."""
        d = self.freedoms.dof
        N = self.freedoms.tangent(windows.q)
        q = moved(self.mechanism, windows.q, np.einsum("nvd,nd->nv", N, change[:, :d]))
        q = self.freedoms.projected(q, windows.dq)[0]
        dy = windows.dq[:, self.freedoms.independent] + change[:, d:]
        return replace(windows, q=q, dq=self.freedoms.lifted(q, dy))

    def _run(self, chi: Float[Array, "b"], windows: Windows, directions: Array | None) -> Runs:
        dynamics = ForwardDynamics(self.mechanism, self.S @ chi + self.c, windows.mounted, self.freedoms)
        return integrated_windows(dynamics, windows, directions)


def integrated_windows(
    dynamics: ForwardDynamics,
    windows: Windows,
    directions: Float[Array, "p s"] | None,
    closures: Int[Array, "r"] | None = None,
    projected: Projection | None = None,
) -> Runs:
    """Windows simulated from their starting states under their efforts; arguments as for `integrate`."""
    half, steps = 0.5 * windows.step, len(windows.measured) - 1

    def efforts(t: float, *_: Array) -> Float[Array, "n a"]:
        return np.asarray(windows.tau[round(t / half)])

    start = windows.q, windows.dq
    return integrate(dynamics, *start, efforts, windows.step, steps, directions, closures, projected)


def seen_rows(
    directions: Float[Array, "m v d"], sensors: Sensors, sigma: Float[Array, "w"], n: int
) -> Float[Array, "k n w d"]:
    """Rows of the measured coordinates in deviations, of all steps of n windows side by side."""
    rows = directions[:, sensors.velocity]
    return np.asarray(rows.reshape(-1, n, *rows.shape[1:]) / sigma[:, None])


def by_window(slopes: Float[Array, "k n w s"]) -> Float[Array, "n r s"]:
    """Derivatives of each window in the order of its residual."""
    return np.moveaxis(slopes, 1, 0).reshape(slopes.shape[1], -1, slopes.shape[3])


def missed(
    poses: Float[Array, "k n q"], measured: Float[Array, "k n w"], sensors: Sensors, sigma: Float[Array, "m"]
) -> Float[Array, "n r"]:
    """Measured less simulated positions in deviations, shape (n, k m)."""
    k, n, n_q = poses.shape
    flat = sensors.miss(poses.reshape(-1, n_q), measured.reshape(k * n, -1))
    return np.moveaxis((flat / sigma).reshape(k, n, -1), 1, 0).reshape(n, -1)


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the refinement ended.

    Attributes:
        chi: Base parameters, shape (b,), SI.
        costs: Sum of squares at the start and after each step that was taken.
        rows: Per window, the derivative by parameters and the residual, starting states eliminated.
    """

    chi: Float[Array, "b"]
    costs: tuple[float, ...]
    rows: Float[Array, "n r b1"]


@runtime_checkable
class Simulated(Protocol):
    """A simulation to be fitted: windows with unknowns of their own."""

    @property
    def linear(self) -> Float[Array, "b"]:
        """The linear estimate, shape (b,), SI."""

    @property
    def hold(self) -> Float[Array, "b"]:
        """One over the distance at which parameters are held to it, shape (b,)."""

    def residual(self, chi: Float[Array, "b"], windows: Windows) -> Float[Array, "n r"]:
        """Measured less simulated, in deviations."""

    def slopes(
        self, chi: Float[Array, "b"], windows: Windows
    ) -> tuple[Float[Array, "n r"], Float[Array, "n r s"], Float[Array, "n r b"]]:
        """The residual, and derivatives of the simulation by each window's own unknowns and by parameters."""

    def moved(self, windows: Windows, change: Float[Array, "n s"]) -> Windows:
        """Windows whose own unknowns are changed."""


def started(problem: Simulated, chi: Float[Array, "b"], windows: Windows, passes: int = 2) -> Windows:
    """The windows with the starting states that fit best for given parameters."""
    for _ in range(passes):
        reduced = _eliminated(*problem.slopes(chi, windows))
        windows = problem.moved(windows, reduced.start(np.zeros(len(chi))))
    return windows


def settled(
    problem: Simulated, chi: Float[Array, "b"], windows: Windows, passes: int
) -> tuple[Float[Array, "b"], Windows]:
    """Gauss-Newton without damping, for few well-determined unknowns; returns the best iterate."""
    best, least = (chi, windows), np.inf
    for _ in range(passes):
        reduced = _eliminated(*problem.slopes(chi, windows))
        cost = float(np.sum(reduced.given[:, :, -1] ** 2))
        if cost < least:
            best, least = (chi, windows), cost
        rows = reduced.rows.reshape(-1, reduced.rows.shape[2])
        change = np.asarray(np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)[0])
        chi, windows = chi + change, problem.moved(windows, reduced.start(change))
    last = float(np.sum(problem.residual(chi, windows) ** 2))
    return (chi, windows) if last < least else best


def minimise(problem: Simulated, chi: Float[Array, "b"], groups: Sequence[Windows]) -> Minimum:
    """Levenberg-Marquardt from a linear estimate; a step that does not gain is not taken."""
    optimum = least_squares((chi, groups), lambda at: _Linearised(problem, *at), _SCHEDULE)
    return Minimum(optimum.point[0], optimum.costs, optimum.linearised.rows)


class _Linearised:
    """All windows about parameters and starting states, which are eliminated."""

    def __init__(self, problem: Simulated, chi: Float[Array, "b"], groups: Sequence[Windows]) -> None:
        self.problem, self.chi, self.groups = problem, chi, groups
        self.cost = _cost(problem, chi, groups)
        self.eliminated = [_eliminated(*problem.slopes(chi, group)) for group in groups]
        self.rows = np.concatenate([reduced.rows for reduced in self.eliminated])
        held = np.column_stack([np.diag(problem.hold), problem.hold * (problem.linear - chi)])
        self.factor = triangle(np.concatenate([self.rows.reshape(-1, self.rows.shape[2]), held]))

    def trial(self, damping: float) -> tuple[tuple[Float[Array, "b"], Sequence[Windows]], float]:
        """Parameters and starting states after a step, and their cost."""
        change = _damped_step(self.factor, damping)
        pairs = zip(self.groups, self.eliminated, strict=True)
        tried = [self.problem.moved(windows, reduced.start(change)) for windows, reduced in pairs]
        chi = self.chi + change
        return (chi, tried), _cost(self.problem, chi, tried)


def _cost(problem: Simulated, chi: Float[Array, "b"], groups: Sequence[Windows]) -> float:
    """Sum of squares; a simulation that runs away costs more than any that does not."""
    with np.errstate(all="ignore"):
        total = float(np.sum((problem.hold * (chi - problem.linear)) ** 2))
        total += sum(float(np.sum(problem.residual(chi, group) ** 2)) for group in groups)
    return total if np.isfinite(total) else np.inf


def _damped_step(factor: Float[Array, "k b1"], damping: float) -> Float[Array, "b"]:
    """Least squares with damping in proportion to the columns."""
    J = factor[:, :-1]
    scale = np.linalg.norm(J, axis=0)
    damped = np.vstack([J, damping * np.diag(np.where(scale > 0, scale, 1.0))])
    side = np.concatenate([factor[:, -1], np.zeros(J.shape[1])])
    return np.asarray(np.linalg.lstsq(damped, side, rcond=None)[0])


@dataclass(frozen=True, eq=False)
class _Eliminated:
    """Rows [J r] of the parameters alone, and what is needed for the starting states."""

    rows: Float[Array, "n r b1"]
    Q: Float[Array, "n r s"]
    R: Float[Array, "n s s"]
    given: Float[Array, "n r b1"]

    def start(self, change: Float[Array, "b"]) -> Float[Array, "n s"]:
        """The change of the starting states that belongs to a change of the parameters."""
        left = self.given[:, :, -1] - self.given[:, :, :-1] @ change
        return np.asarray(solve(self.R, np.einsum("nrs,nr->ns", self.Q, left)[:, :, None])[:, :, 0])


def _eliminated(
    r: Float[Array, "n r"], by_start: Float[Array, "n r s"], by_parameter: Float[Array, "n r b"]
) -> _Eliminated:
    Q, R = qr(by_start)
    rows = np.concatenate([by_parameter, r[:, :, None]], axis=2)
    return _Eliminated(rows - Q @ (np.swapaxes(Q, 1, 2) @ rows), Q, R, rows)


def window_covariance(
    problem: Simulated, minimum: Minimum, linear: Float[Array, "b b"]
) -> Float[Array, "b b"]:
    """Jackknife-type sandwich (CR3) with a window as cluster: errors within a window are not independent.

    With H the leverage of a window on its own fit, its residual counts as (I - H)^-1 r. Parameters that
    the windows do not determine keep the covariance of the linear estimate.
    """
    J, b = minimum.rows[:, :, :-1], minimum.rows.shape[2] - 1
    R = triangle(np.concatenate([J.reshape(-1, b), np.diag(problem.hold)]))
    inverse = np.linalg.pinv(R)
    bread = inverse @ inverse.T
    scores = []
    for window in minimum.rows:
        small = triangle(window)  # the same inner products in no more rows than columns
        slopes, left = small[:, :-1], small[:, -1]
        hat = slopes @ bread @ slopes.T
        scores.append(slopes.T @ np.linalg.solve(np.eye(len(hat)) - (1.0 - 1e-9) * hat, left))
    meat = np.stack(scores)
    kept = bread @ np.diag(problem.hold**2)
    return np.asarray(bread @ (meat.T @ meat) @ bread + kept @ linear @ kept.T)
