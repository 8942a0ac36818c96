"""Robust M-estimation: outliers get low weight [Huber 1981, ch. 7].

sum_g w_g^2 W_g^T s_g psi(rho_g / s_g) = 0,     s_g = 1.4826 median |rho_g|

Solved by pseudo-values: Y* = W chi + K s psi(rho / s) / m with m = mean psi' has chi as its
least-squares solution at the fixed point, and its residuals carry the variance of the
estimate, s^2 mean psi^2 / m^2 (K is Huber's correction for p parameters in n rows). A spike is
limited before the row filter could smear it over its neighbours.

Anderson acceleration: a fixed point x = g(x) from the last few steps [Anderson 1965, Walker and Ni 2011].

f_k = g(x_k) - x_k,      x_(k+1) = g(x_k) - sum_i gamma_i (g(x_(i+1)) - g(x_i))

with the gamma that minimise the same combination of the f: a secant method. If plain steps shrink by
only a few percent each (poorly excited columns), it needs a tenth of them. If the step grows, the
history is cleared and plain steps start again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.notices import Notice, notice
from dynid.estimator.rework import Reworked, SecondPass, needed
from dynid.estimator.solution import CONVERGED, RTOL_OF_PASSES, status_after, step_in_sigma
from dynid.estimator.wls import Fitted, Solver, Weighting, fitted, residual_sizes, smallest_sigmas
from dynid.projection.projection import System

_NORMAL_MAD = 1.4826022185056018  # deviation over median |x| of the normal distribution
EFFICIENT = {"huber": 1.345, "tukey": 4.685}  # 95 % efficiency for normal errors
# Bins of |rho| per factor of two, with interpolation inside: the median is accurate to a few
# thousandths for any length of log. They reach from 1e-10 to 1e2 of the measured rms.
_PER_OCTAVE = 128
_OCTAVES = 40
_BELOW = 12.0  # octaves below the smallest deviation
_REPORTED = 0.001
_SETTLED = 10  # passes after which the scale stays as it is

Function = Callable[[Float[Array, "n"]], Float[Array, "n"]]


def huber(k: float) -> tuple[Function, Function]:
    """psi(u) = u up to k, then k: limited influence; and its derivative."""
    return lambda u: np.clip(u, -k, k), lambda u: (np.abs(u) <= k).astype(float)


def tukey(c: float) -> tuple[Function, Function]:
    """psi(u) = u (1 - (u/c)^2)^2 up to c, then 0: gross errors count for nothing; and its derivative."""

    def psi(u: Float[Array, "n"]) -> Float[Array, "n"]:
        inside = 1.0 - np.minimum(np.abs(u) / c, 1.0) ** 2
        return np.asarray(u * inside**2)

    def slope(u: Float[Array, "n"]) -> Float[Array, "n"]:
        square = np.minimum(np.abs(u) / c, 1.0) ** 2
        return np.asarray((1.0 - square) * (1.0 - 5.0 * square))

    return psi, slope


_FUNCTIONS = {"huber": huber, "tukey": tukey}


@dataclass(frozen=True)
class Winsorised:
    """Rework of `robust`: measured sides drawn towards the fit where they do not belong.

    Attributes:
        function: huber or tukey; tukey starts from the huber solution, which is unique.
        tuning: Residuals beyond so many deviations are limited (huber) or dropped (tukey).
        rtol: Largest change of a parameter at the end, in its sigma.
        max_iterations: Passes over the log for each function.
    """

    function: str = "tukey"
    tuning: float = EFFICIENT["tukey"]
    rtol: float = RTOL_OF_PASSES
    max_iterations: int = 60

    def __call__(
        self, system: System, weighting: Weighting, solver: Solver, again: SecondPass | None
    ) -> Reworked:
        """Iterate fit and pseudo-values until the parameters converge."""
        rows = needed(again, "robust", "weighs single samples")
        state = fitted(system, weighting, solver)
        stages = [("huber", EFFICIENT["huber"]), ("tukey", self.tuning)]
        changed, iterations, status, last = system, 0, CONVERGED, _Limits.none(len(system.groups))
        for name, tuning in stages if self.function == "tukey" else [("huber", self.tuning)]:
            changed, state, last, used, status = self._stage(
                rows, system, state, (weighting, solver), _FUNCTIONS[name](tuning)
            )
            iterations += used
        notices = state.notices + last.notices(system)
        if status != CONVERGED:
            notices += (_not_converged(iterations),)
        return Reworked(changed, state.weights, iterations, status, notices)

    def _stage(
        self,
        rows: SecondPass,
        system: System,
        state: Fitted,
        how: tuple[Weighting, Solver],
        functions: tuple[Function, Function],
    ) -> tuple[System, Fitted, _Limits, int, str]:
        floors = smallest_sigmas(state.factors, np.arange(len(state.factors)))
        acceleration, scale = Acceleration(), None
        for iteration in range(1, self.max_iterations + 1):
            sizes = residual_sizes(system, state.factors, state.weights, state.chi)
            limits = _limits(rows, state, floors, functions, scale, sizes)
            # A median moves by jumps, one sample at a time: near the end the parameters would follow it for
            # ever. It has settled by then, and stays (as the scale of MM-estimates does).
            scale = limits.scale if iteration >= _SETTLED else None
            changed = rows.replaced(state.chi, limits.change)
            new = fitted(changed, *how)
            step = step_in_sigma(new.chi, state.chi, new.sigma)
            if step <= self.rtol:
                break
            size = np.where(new.sigma > 0, new.sigma, np.maximum(np.abs(new.chi), 1.0))
            chi = acceleration.next(state.chi, new.chi, size)
            state = replace(new, chi=chi)
        return changed, new, limits, iteration, status_after(step)


@dataclass(frozen=True, eq=False)
class _Limits:
    """Scale of each group, what is done to its residuals, and how many of them are limited.

    Attributes:
        scale: s_g, shape (g,), unit of the group.
        gain: K / m, shape (g,).
        share: Part of the samples whose influence is limited or gone, shape (g,).
    """

    scale: Float[Array, "g"]
    gain: Float[Array, "g"]
    share: Float[Array, "g"]
    psi: Function

    @staticmethod
    def none(g: int) -> _Limits:
        return _Limits(np.ones(g), np.ones(g), np.zeros(g), lambda u: u)

    def change(self, group: int, rho: Float[Array, "n"]) -> Float[Array, "n"]:
        """The residuals of a group's pseudo-values."""
        s = self.scale[group]
        return np.asarray(self.gain[group] * s * self.psi(rho / s))

    def notices(self, system: System) -> tuple[Notice, ...]:
        """Where more samples are out than normal errors would leave there."""
        many = np.flatnonzero(self.share > _REPORTED)
        if not many.size:
            return ()
        shown = ", ".join(f"{system.groups[g].name} {100 * self.share[g]:.2g} %" for g in many[:8])
        return (notice("outliers", shown=shown),)


def _limits(
    rows: SecondPass,
    state: Fitted,
    floors: Float[Array, "g"],
    functions: tuple[Function, Function],
    held: Float[Array, "g"] | None,
    sizes: Float[Array, "g"],
) -> _Limits:
    """Scales (unless `held`) and gains at the present residuals, from one pass over the rows.

    Args:
        sizes: Factor on the residuals of each group before they are judged, see `residual_sizes`.
    """
    psi, slope = functions
    counts = np.zeros((len(floors), _PER_OCTAVE * _OCTAVES))
    for part in rows.residuals(state.chi, _histogram(floors)):
        counts += part
    used = np.flatnonzero(counts.any(axis=0))
    counts, n = counts[:, used], counts.sum(axis=1)
    # Raw samples may outnumber the rows of the factor; the parameters take their part of either.
    paid = np.minimum(state.shares() / np.array([group_factor.n_rows for group_factor in state.factors]), 0.5)
    median = sizes * _medians(counts, used, floors)
    scale = np.maximum(_NORMAL_MAD * median / np.sqrt(1.0 - paid), floors)
    scale = scale if held is None else held
    centres = _edges(floors[:, None], used + 0.5)
    u = centres / scale[:, None]
    mean = np.maximum(np.sum(counts * slope(u.ravel()).reshape(u.shape), axis=1) / np.maximum(n, 1.0), 0.2)
    gain = (1.0 + paid * (1.0 - mean) / mean) / mean
    share = np.sum(counts * (u > 5.0), axis=1) / np.maximum(n, 1.0)
    return _Limits(scale, gain, share, psi)


def _histogram(floors: Float[Array, "g"]) -> Callable[..., Float[Array, "g b"]]:
    """Counts of |rho| in bins of constant ratio, per group."""

    def reduce(
        rho: Float[Array, "k n"], valid: Bool[Array, "k n"], groups: Int[Array, "k"]
    ) -> Float[Array, "g b"]:
        counts = np.zeros((len(floors), _PER_OCTAVE * _OCTAVES))
        for row, use, g in zip(rho, valid, groups, strict=True):
            if g >= 0:
                size = np.abs(row[use]) / floors[g]
                bins = np.floor(_PER_OCTAVE * (np.log2(np.maximum(size, 2.0**-_BELOW)) + _BELOW))
                counts[g] += np.bincount(
                    np.minimum(bins, counts.shape[1] - 1).astype(int), minlength=counts.shape[1]
                )
        return counts

    return reduce


def _edges(floors: Float[Array, "g 1"], bins: Float[Array, "*b"]) -> Float[Array, "g b"]:
    """|rho| at positions between bins; the inverse of `_histogram`'s numbering."""
    return np.asarray(floors * 2.0 ** (bins / _PER_OCTAVE - _BELOW))


def _medians(
    counts: Float[Array, "g b"], bins: Int[Array, "b"], floors: Float[Array, "g"]
) -> Float[Array, "g"]:
    """Median of |rho| of each group, interpolated inside its bin."""
    below = np.cumsum(counts, axis=1)
    half = 0.5 * below[:, -1:]
    at = np.argmax(below >= half, axis=1)[:, None]
    inside = np.take_along_axis(counts, at, axis=1)
    part = 1.0 - (np.take_along_axis(below, at, axis=1) - half) / np.maximum(inside, 1.0)
    return _edges(floors[:, None], bins[at] + part)[:, 0]


def _not_converged(passes: int) -> Notice:
    return notice("robust-not-converged", passes=passes)


_DEPTH = 8
_GROWTH = 3.0  # a step so much larger than the smallest so far is no progress
_RTOL = 1e-8  # of the largest singular value: differences of differences are rounding


class Acceleration:
    """Proposes the next point of a fixed-point iteration."""

    def __init__(self) -> None:
        self._points: list[Array] = []
        self._steps: list[Array] = []

    def next(self, x: Float[Array, "p"], g: Float[Array, "p"], scale: Float[Array, "p"]) -> Float[Array, "p"]:
        """The point to try after x, which the iteration maps to g.

        Args:
            scale: What counts as one of each entry (its deviation), shape (p,).
        """
        step = (g - x) / scale
        size = float(np.linalg.norm(step))
        if self._steps and size > _GROWTH * min(float(np.linalg.norm(earlier)) for earlier in self._steps):
            self._points, self._steps = [], []
        self._points = [*self._points[-_DEPTH:], g]
        self._steps = [*self._steps[-_DEPTH:], step]
        if len(self._steps) < 2:
            return g
        F = np.diff(np.array(self._steps), axis=0).T
        G = np.diff(np.array(self._points), axis=0).T
        gamma = np.linalg.lstsq(F, step, rcond=_RTOL)[0]
        return np.asarray(g - G @ gamma)
