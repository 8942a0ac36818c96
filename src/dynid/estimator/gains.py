"""Drive gains by maximum likelihood: the noise is in the currents, not in the model.

W chi - C g = -w            C: contribution of each motor's current to the rows, w: the known part

For the row of one motor i = (W chi + w) / g + noise, so the residual is in amperes. In
general the columns C carry noise with the Gram matrix n D (per row of a group), and what is
minimised over chi, g and the deviations s_k of the groups is

sum_k  n_k log s_k^2  +  |r_k|^2 / (s_k^2 d_k),    r = -w - W chi + C g,    d_k = g^T D_k g + f_k

Least squares with w on the right assumes exact C and underestimates every gain. The minimum is where
r is orthogonal to W and to C_hat = C - r (D g)^T / d, the currents with their noise taken out: so
the estimate is the least-squares solution of rows [W, -C_hat], and everything computed from rows
(jackknives over blocks) uses these. Only triangular factors are needed.

Rows in which no effort acts, 0 = W chi, have all their noise in W. Their likelihood would grow without bound
as chi -> 0, so they are solved by `gtls`, with the noise of the currents in the columns C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.base.rank import independent_columns
from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.errors import NoResultError
from dynid.estimator.estimator import Estimator, solve_weighted
from dynid.estimator.gtls import GeneralisedTotal
from dynid.estimator.ols import Solved, least_squares
from dynid.estimator.rework import SecondPass
from dynid.estimator.solution import RTOL, Solution, check_system, status_after, step_in_sigma
from dynid.estimator.wls import group_factors, group_weights, smallest_sigmas, weighted
from dynid.projection.factor import Factor, triangle
from dynid.projection.projection import System

# A direction that is left with less than this part of its norm is rounding.
_DEPENDENT = 1e-7
_ITERATIONS = 200
_LARGEST_FACTOR = 3.0  # of a gain in one step
# Gains above this (or below its inverse) times the nominal ones are not used as start: not determined.
_SMALLEST = 1e-6


@dataclass(frozen=True, eq=False)
class GroupNoise:
    """Noise of the current columns in the rows of one group, relative to that at nominal gains.

    Attributes:
        D: Variance that each gain's column brings to a row, shape (u,), dimensionless.
        f: Variance that does not depend on the gains: of motors whose gain is known, and of rows
            without motors.
    """

    D: Float[Array, "u"]
    f: float = 0.0

    def size(self, g: Float[Array, "u"]) -> float:
        """D = g^T D g + f."""
        return float(np.sum(self.D * g**2) + self.f)


@dataclass(frozen=True, eq=False)
class GainSolution:
    """Parameters and gains together.

    Attributes:
        solution: Over all columns of the system, gains last; its `equations` are rows [W, -C_hat].
        g: The gains, shape (u,), in units of the nominal ones.
    """

    solution: Solution
    g: Float[Array, "u"]


def solve_gains(
    system: System,
    noise: Sequence[GroupNoise],
    estimator: Estimator | None = None,
    again: SecondPass | None = None,
) -> GainSolution:
    """Parameters and gains by maximum likelihood, or by `gtls` where W is noisy too.

    Args:
        system: W chi - C g = -w with its blocks; the last u parameters are the gains.
        noise: Of each group, with u entries each.
        estimator: `gtls` with its options; None: W is exact.
        again: The rows behind the system, for `gtls`.

    Raises:
        NoResultError: A gain, or the common scale, is not identifiable from these rows.
    """
    check_system(system)
    u = len(noise[0].D)
    problem = _Problem(system, tuple(noise), group_factors(system), _shared(system), u)
    _check_identifiable(problem)
    theta = min(problem.starts(), key=problem.cost)
    _check_separate(problem, theta)
    if estimator is not None:
        solution = _total_solution(problem, estimator, again, theta)
        return GainSolution(solution, solution.chi[-u:])
    theta, iterations, status = _descend(problem, theta)
    equations = problem.equations(theta)
    solution = solve_weighted(equations, problem.weights(theta), iterations=iterations, status=status)
    return GainSolution(replace(solution, chi=theta, equations=equations), theta[-u:])


def _total_solution(
    problem: _Problem, estimator: Estimator, again: SecondPass | None, theta: Float[Array, "p"]
) -> Solution:
    """`gtls` over parameters and gains, from the weights at a start."""
    if not isinstance(estimator.rework, GeneralisedTotal):
        raise TypeError(f"'{estimator.name}' does not take noise of W into account")
    exact = np.zeros(len(theta) - problem.u)
    measured = tuple(
        np.concatenate([exact, 0.0 * variances.D, [0.0]] if silent else [exact, variances.D, [variances.f]])
        for variances, silent in zip(problem.noise, problem.silent, strict=True)
    )
    rework = replace(estimator.rework, measured=measured)
    weights = problem.weights(theta)
    return replace(estimator, rework=rework, weighting=lambda *_: (weights, 1, 0.0)).linear(
        problem.system, again
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    system: System
    noise: tuple[GroupNoise, ...]
    factors: list[Factor]
    shared: Int[Array, "g"]
    u: int

    def squares(self, theta: Float[Array, "p"]) -> Float[Array, "g"]:
        """|r_k|^2 / d_k of every group."""
        sums = [float(np.sum((factor.Y - factor.W @ theta) ** 2)) for factor in self.factors]
        return np.array(sums) / self.sizes(theta)

    def sizes(self, theta: Float[Array, "p"]) -> Float[Array, "g"]:
        return np.array([group_noise.size(theta[-self.u :]) for group_noise in self.noise])

    def sigmas(self, theta: Float[Array, "p"]) -> Float[Array, "g"]:
        """s_k, shared by the groups of one name; n_k is the denominator of maximum likelihood."""
        rows = np.bincount(self.shared, [factor.n_rows for factor in self.factors])
        pooled = np.sqrt(np.bincount(self.shared, self.squares(theta)) / rows)[self.shared]
        return np.maximum(pooled, self._floor)

    @cached_property
    def _floor(self) -> Float[Array, "g"]:
        sides = [
            Factor(np.column_stack([factor.W, _torques(factor, self.u)]), factor.n_rows)
            for factor in self.factors
        ]
        return smallest_sigmas(sides, self.shared)

    @property
    def silent(self) -> Bool[Array, "g"]:
        """Whether no effort acts in a group."""
        return np.array([group.homogeneous for group in self.system.groups])

    def cost(self, theta: Float[Array, "p"]) -> float:
        """-2 log of the likelihood of rows with efforts, with the best deviations put in."""
        rows = np.array([factor.n_rows for factor in self.factors]) * ~self.silent
        return float(np.sum(rows * np.log(self.sigmas(theta) ** 2)))

    def weights(self, theta: Float[Array, "p"]) -> Float[Array, "g"]:
        return np.asarray(1.0 / (self.sigmas(theta) * np.sqrt(self.sizes(theta))))

    def equations(self, theta: Float[Array, "p"]) -> System:
        """Rows [W, -C_hat] and the measured side that makes theta their solution at the minimum."""
        groups = []
        for group, noise, size in zip(self.system.groups, self.noise, self.sizes(theta), strict=True):
            M = _cleaned(theta, noise.D * theta[-self.u :] / size)
            entries = np.append(group.columns, len(theta))
            # Taking the noise out of a column fills it with all columns of the group.
            columns = np.flatnonzero(np.any(M[entries][:, :-1] != 0, axis=0))
            part = M[np.ix_(entries, np.append(columns, len(theta)))]
            groups.append(replace(group, columns=columns, blocks=group.multiplied(part)))
        return replace(self.system, groups=tuple(groups))

    def step(self, theta: Float[Array, "p"]) -> Solved:
        """Where the linearised likelihood has its minimum."""
        cleaned = []
        for factor, noise, size in zip(self.factors, self.noise, self.sizes(theta), strict=True):
            cleaned.append(
                Factor(factor.R @ _cleaned(theta, noise.D * theta[-self.u :] / size), factor.n_rows)
            )
        return least_squares(weighted(cleaned, self.weights(theta)))

    def starts(self) -> list[Float[Array, "p"]]:
        """Two starts: total least squares of all rows at once, and the nominal gains."""
        ones = np.ones(self.u)
        sigma = self.own_sigmas
        nominal = np.append(self._dynamics(ones, sigma), ones)
        solved = self._total(sigma)
        return [nominal] if solved is None else [solved, nominal]

    @cached_property
    def own_sigmas(self) -> Float[Array, "g"]:
        """Residual of each group's currents after its own parameters: the noise, for any gains.

        Of rows without effort the residual of `wls` at the nominal gains.
        """
        squares = []
        for factor in self.factors:
            side = _torques(factor, self.u)
            clean = np.column_stack([factor.W[:, : -self.u], factor.Y])
            Q = np.linalg.svd(clean[:, np.any(clean != 0, axis=0)], full_matrices=False)
            kept = Q[0][:, Q[1] > _DEPENDENT * Q[1].max(initial=0.0)]
            squares.append(float(np.sum((side - kept @ (kept.T @ side)) ** 2)))
        rows = np.bincount(self.shared, [factor.n_rows for factor in self.factors])
        sigma = np.sqrt(np.bincount(self.shared, squares) / rows)[self.shared]
        if self.silent.any():
            ones = np.ones(self.u)
            nominal = [self._at_gains(factor, ones) for factor in self.factors]
            sigma = np.where(self.silent, 1.0 / group_weights(self.system, nominal, least_squares)[0], sigma)
        return np.maximum(sigma, self._floor)

    def _at_gains(self, factor: Factor, g: Float[Array, "u"]) -> Factor:
        """Rows over the parameters alone, with given gains on the measured side."""
        W, C = factor.W[:, : -self.u], factor.W[:, -self.u :]
        return Factor(np.column_stack([W, factor.Y - C @ g]), factor.n_rows)

    def _dynamics(self, g: Float[Array, "u"], sigma: Float[Array, "g"]) -> Float[Array, "c"]:
        """Parameters for given gains."""
        parts = [self._at_gains(factor, g) for factor in self.factors]
        return least_squares(weighted(parts, 1.0 / sigma))[0]

    def _total(self, sigma: Float[Array, "g"]) -> Float[Array, "p"] | None:
        """Min |W x + w m - C y|^2 / (y^T D y): closed form for any gains; scaled by 1 / m."""
        whole = weighted(self.factors, 1.0 / sigma)
        rows = np.array([factor.n_rows for factor in self.factors])
        D = np.sum([n * group_noise.D for n, group_noise in zip(rows, self.noise, strict=True)], axis=0)
        f = sum(
            n * group_noise.f
            for n, group_noise in zip(rows, self.noise, strict=True)
            if np.any(group_noise.D)
        )
        if np.any(D <= 0):
            return None
        W, C, w = whole.W[:, : -self.u], whole.W[:, -self.u :], whole.Y[:, None]
        exact, noisy, sizes = ([W], [w, C], np.append(f, D)) if f > 0 else ([W, w], [C], D)
        clean = np.column_stack(exact)
        R = triangle(np.column_stack([clean, *noisy]))
        left = R[clean.shape[1] :, clean.shape[1] :] / np.sqrt(sizes)
        y = np.linalg.svd(left)[2][-1] / np.sqrt(sizes)
        m = -y[0] if f > 0 else least_squares(Factor(np.column_stack([clean, -C @ y]), 1))[0][-1] * -1.0
        g = y[-self.u :] / m if m else np.full(self.u, np.nan)
        sane = np.all(np.isfinite(g)) and np.all((np.abs(g) > _SMALLEST) & (np.abs(g) < 1.0 / _SMALLEST))
        return np.append(self._dynamics(g, sigma), g) if sane else None


def _descend(problem: _Problem, theta: Float[Array, "p"]) -> tuple[Float[Array, "p"], int, str]:
    """Gauss-Newton with the step halved until the likelihood grows and no gain jumps."""
    cost = problem.cost(theta)
    for iteration in range(1, _ITERATIONS + 1):  # noqa: B007
        best, root, _ = problem.step(theta)
        # Rows over their own deviation have a deviation of one.
        step = step_in_sigma(best, theta, np.linalg.norm(root, axis=1))
        move, part = best - theta, _part(theta[-problem.u :], best[-problem.u :])
        while (new := problem.cost(theta + part * move)) > cost and part > 1e-6:
            part *= 0.5
        if part <= 1e-6:
            break
        theta, cost = theta + part * move, new
        if step <= RTOL:
            break
    return theta, iteration, status_after(step)


def _part(g: Float[Array, "u"], wanted: Float[Array, "u"]) -> float:
    """Part of a step that changes no gain by more than a factor: from beyond zero there is no way back.

    Args:
        g: Gains, shape (u,).
        wanted: Where the step leads, shape (u,).
    """
    ratio = wanted / g - 1.0
    room = np.where(ratio > 0, _LARGEST_FACTOR - 1.0, 1.0 - 1.0 / _LARGEST_FACTOR)
    return float(np.min(room / np.maximum(np.abs(ratio), room)))


def _cleaned(theta: Float[Array, "p"], share: Float[Array, "u"]) -> Float[Array, "p1 p1"]:
    """Map of the columns [W, -C, -w] to [W, -C_hat, Y]: each current less its share of r.

    Args:
        theta: Parameters and gains.
        share: D g / d of the group.
    """
    p, u = len(theta), len(share)
    r = np.append(-theta, 1.0)
    M = np.eye(p + 1)
    M[:, p - u : p] += np.outer(r, share)
    M[:, p] = M[:, :p] @ theta + r
    return M


def _shared(system: System) -> Int[Array, "g"]:
    """Number of the deviation that each group has: by name, as its current comes from one sensor."""
    number = {name: i for i, name in enumerate(dict.fromkeys(group.name for group in system.groups))}
    return np.array([number[group.name] for group in system.groups])


def _torques(factor: Factor, u: int) -> Float[Array, "k"]:
    """What the currents do at nominal gains."""
    return np.asarray(-factor.W[:, -u:].sum(axis=1) + factor.Y)


def _check_identifiable(problem: _Problem) -> None:
    """Refuse gains that are not identifiable: w must not be a combination of columns of W and C."""
    whole = weighted(problem.factors, 1.0 / problem.own_sigmas)
    p = len(problem.system.parameters)
    W, w = whole.W[:, : p - problem.u], whole.Y
    left = w - W @ np.linalg.lstsq(W, w, rcond=None)[0]
    if np.linalg.norm(left) <= 1e-6 * max(np.linalg.norm(w), np.finfo(float).tiny):
        raise NoResultError(
            "the scale of the drive gains is not identifiable: the unknown parameters can compensate the"
            " known ones. Give a known mass that is mounted in some logs and not in others"
            " (payloads: {ballast: {body: ..., known: {M: ...}}}), with a known position on the body"
        )


def _check_separate(problem: _Problem, theta: Float[Array, "p"]) -> None:
    """Refuse a gain whose current, noise taken out, other columns explain."""
    whole = weighted(group_factors(problem.equations(theta)), problem.weights(theta))
    p = len(theta)
    rank = independent_columns(whole.W, range(p), rtol=_DEPENDENT)
    lost = [problem.system.parameters[k].owner for k in (*rank.dependent, *rank.zero) if k >= p - problem.u]
    if lost:
        raise NoResultError(
            f"the drive gain of {', '.join(lost)} is not identifiable from these logs: its current depends"
            " only on parameters that act in no other equation. Move the joints that carry the known mass,"
            " or leave these motors out of `gains: {unknown: [...]}`"
        )
