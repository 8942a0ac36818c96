"""The contract of estimators and their registry.

An estimator combines weights, a solver and, if it needs the rows again, a rework. The rework rewrites
the equations so that the estimate is their weighted least-squares solution. To add an estimator, add
a file and a line in `MAKERS`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, check_choice, nearest
from dynid.common.notices import Notice, notice
from dynid.common.registry import Registry
from dynid.estimator.forgetting import Forgetting
from dynid.estimator.gtls import GeneralisedTotal
from dynid.estimator.iv import Instruments
from dynid.estimator.ols import conditions, least_squares
from dynid.estimator.rework import Rework, SecondPass, Whitened, check_positive
from dynid.estimator.robust import EFFICIENT, Winsorised
from dynid.estimator.settings import Consistency, consistency_from
from dynid.estimator.solution import CONVERGED, Solution, check_system, status_after
from dynid.estimator.tls import PlainTotal
from dynid.estimator.wls import (
    Solver,
    Weighting,
    group_factors,
    group_weights,
    residual_norms,
    unit_weights,
    unsettled,
    weighted,
)
from dynid.projection.factor import Factor
from dynid.projection.projection import System

# Unit columns this near to dependent cost half of the sixteen digits.
_ILL_CONDITIONED = 1e8


@dataclass(frozen=True)
class Estimator:
    """One way to solve a system of full column rank (see `base.system.base_system`).

    Attributes:
        weighting: Chooses the weight of each group of rows.
        solver: Solves one weighted factor.
        rework: Rewrites the equations first; None takes them as they are.
        noisy_columns: Whether the noise is taken to be in W too, of coordinates that are not low-passed.
        needs_time: Whether its rework needs rows along a motion, not single instants.
        constraint: Requires physically consistent bodies; None leaves the parameters free.
    """

    name: str
    title: str
    weighting: Weighting
    solver: Solver = least_squares
    rework: Rework | None = None
    constraint: Consistency | None = None
    noisy_columns: bool = False
    needs_time: bool = False

    def __call__(self, system: System, again: SecondPass | None = None) -> Solution:
        """The linear solution, made physically consistent if the estimator requires it.

        A system on its own knows no priors: see `dynid.realise` for a robot's.
        """
        linear = self.linear(system, again)
        if self.constraint is None:
            return linear
        from dynid.estimator.physical import constrain  # its solver is not needed by the others

        return constrain(system, linear, self.constraint)

    def linear(self, system: System, again: SecondPass | None = None) -> Solution:
        """Weights first, then the solution with these weights.

        Args:
            system: Equations of full column rank.
            again: Gives the rows themselves, for estimators that a triangle does not serve.
        """
        check_system(system)
        if self.rework is None:
            weights, iterations, step = self.weighting(system, group_factors(system), self.solver)
            slow = unsettled(iterations, step)
            return solve_weighted(
                system,
                weights,
                self.solver,
                iterations=iterations,
                status=status_after(step),
                notices=slow,
            )
        reworked = self.rework(system, self.weighting, self.solver, again)
        solution = solve_weighted(
            reworked.system,
            reworked.weights,
            self.solver,
            reworked.spent,
            iterations=reworked.iterations,
            status=reworked.status,
            notices=reworked.notices,
        )
        chi = solution.chi if reworked.chi is None else reworked.chi
        return replace(
            solution,
            chi=chi,
            residual_norms=residual_norms(group_factors(system), chi),
            equations=reworked.system,
            history=reworked.history,
        )


def solve_weighted(
    system: System,
    weights: Float[Array, "g"],
    solver: Solver = least_squares,
    spent: int = 0,
    *,
    iterations: int = 1,
    status: str = CONVERGED,
    notices: tuple[Notice, ...] = (),
) -> Solution:
    """The solution for given weights, with everything needed to judge it.

    Args:
        system: Equations of full column rank.
        weights: Of its groups, shape (g,).
        solver: Of the weighted rows.
        spent: Degrees of freedom used in addition to one for each parameter.
        iterations, status, notices: How the weights were reached.
    """
    factors = group_factors(system)
    factor = weighted(factors, weights)
    chi, root, residual_norm = solver(factor)
    condition, condition_scaled = conditions(factor.W)
    dof = max(1, factor.n_rows - len(chi) - spent)
    sigma_rho = residual_norm / float(np.sqrt(dof))
    if not condition_scaled < _ILL_CONDITIONED:
        digits = np.log10(condition_scaled)
        notices = (*notices, notice("ill-conditioned", condition=condition_scaled, digits=digits))
    return Solution(
        names=tuple(parameter.name for parameter in system.parameters),
        chi=chi,
        covariance=sigma_rho**2 * _inflated(system, factors, weights, root),
        weights=weights,
        sigma_rho=sigma_rho,
        dof=_effective_dof(system, dof),
        rank=len(chi),
        condition=condition,
        condition_scaled=condition_scaled,
        residual_norms=residual_norms(factors, chi),
        residual_norm=residual_norm,
        measured_norm=float(np.linalg.norm(factor.Y)),
        normal_residual=_normal_residual(factor, chi),
        iterations=iterations,
        status=status,
        notices=notices,
    )


def solved_within(system: System, weights: Float[Array, "g"], condition: float) -> Float[Array, "p"] | None:
    """Only the parameters for given weights, shape (p,), SI; None above a condition (unit columns)."""
    factor = weighted(group_factors(system), weights)
    chi, root, _ = least_squares(factor)
    # Norms of Frobenius bound the singular values from above.
    bound = np.sqrt(len(chi)) * np.linalg.norm(root * np.linalg.norm(factor.W, axis=0)[:, None])
    return chi if bound < condition or conditions(factor.W)[1] < condition else None


def _inflated(
    system: System, factors: list[Factor], weights: Float[Array, "g"], root: Float[Array, "p p"]
) -> Float[Array, "p p"]:
    """(W^T W)^-1, each group counted with the correlation its row filter brought."""
    spread = np.zeros_like(root)
    for group, factor, weight in zip(system.groups, factors, weights, strict=True):
        seen = weight * (factor.W @ root)
        spread += group.inflation * (seen.T @ seen)
    return np.asarray(root @ spread @ root.T)


def _effective_dof(system: System, dof: int) -> int:
    """Degrees of freedom of as many independent rows as the correlated ones are worth."""
    lost = sum(group.n_rows * (1.0 - 1.0 / group.inflation) for group in system.groups)
    return max(1, dof - int(lost))


def estimator_named(name: str, options: Mapping[str, Any] | None = None) -> Estimator:
    """The registered estimator, with options of its own, or an error that names what there is."""
    if name not in MAKERS:
        raise InputError(
            f"estimator '{name}' is not known" + nearest(name, MAKERS),
            remedy=f"use one of {', '.join(MAKERS)}",
        )
    if not options:
        return ESTIMATORS[name] if name in ESTIMATORS else MAKERS[name]()
    valid = tuple(inspect.signature(MAKERS[name]).parameters)
    for option in options:
        if option not in valid:
            raise InputError(
                f"estimator '{name}' has no option '{option}'" + nearest(option, valid),
                remedy=f"its options are {', '.join(valid)}" if valid else "it has no options",
            )
    return MAKERS[name](**options)


def gives_bodies(name: str) -> bool:
    """Whether results of an estimator are physically consistent bodies, by its constraint."""
    return name in MAKERS and estimator_named(name).constraint is not None


def _normal_residual(factor: Factor, chi: Float[Array, "p"]) -> float:
    rho = factor.Y - factor.W @ chi
    size = np.linalg.norm(factor.W, axis=0) * np.linalg.norm(factor.Y)
    return float(np.max(np.abs(factor.W.T @ rho) / np.where(size > 0, size, 1.0), initial=0.0))


def _wls(weights: str = "joint") -> Estimator:
    check_choice("wls weights", weights, ("joint", "trajectory", "covariance"))
    if weights == "covariance":
        title = "least squares weighted by the covariance between joints, iterated"
        return Estimator("wls", title, group_weights, rework=Whitened())
    by_log = partial(group_weights, per_log=weights == "trajectory")
    return Estimator("wls", "least squares weighted by row groups, iterated", by_log)


def _robust(function: str = "tukey", tuning: float | None = None) -> Estimator:
    check_choice("robust function", function, tuple(EFFICIENT))
    limit = EFFICIENT[function] if tuning is None else check_positive("robust tuning", tuning)
    title = "robust least squares: outliers get low weight"
    return Estimator("robust", title, group_weights, rework=Winsorised(function, limit))


def _consistent(
    prior: Any = "entropic", spread: Any = 3.0, margin: Any = 0.0, mass: Any = None, com: Any = None
) -> Estimator:
    options = {"prior": prior, "spread": spread, "margin": margin, "mass": mass, "com": com}
    title = "weighted least squares over physically consistent bodies, near their prior"
    return Estimator("consistent", title, group_weights, constraint=consistency_from(options))


def _tls(columns: str = "as_they_are") -> Estimator:
    check_choice("tls columns", columns, ("as_they_are", "unit"))
    unit = columns == "unit"
    title = "total least squares"
    return Estimator("tls", title, unit_weights, rework=PlainTotal(unit))


def _gtls(
    position: float | Sequence[float] | None = None,
    effort: float | None = None,
    covariance: Any = None,
    centred: bool = False,
    draws: int = 1,
    excess: float = 0.0,
) -> Estimator:
    several = position if position is None or isinstance(position, Sequence) else (position,)
    sizes = None if several is None else tuple(check_positive("gtls position", size) for size in several)
    effort = None if effort is None else check_positive("gtls effort", effort)
    deviation = sizes[0] if sizes is not None and len(sizes) == 1 else sizes
    rework = GeneralisedTotal(
        deviation,
        effort,
        None if covariance is None else np.asarray(covariance, float),
        bool(centred),
        max(1, int(check_positive("gtls draws", draws))),
        0.0 if excess == 0.0 else check_positive("gtls excess", excess),
    )
    title = "total least squares with the noise of W propagated"
    return Estimator("gtls", title, group_weights, rework=rework, noisy_columns=True, needs_time=True)


def _iv(instruments: str = "smoothed", cutoff: float = 0.5) -> Estimator:
    check_choice("iv instruments", instruments, ("smoothed", "reference"))
    if check_positive("iv cutoff", cutoff) > 1.0:
        raise InputError(
            f"iv cutoff {cutoff} is not between 0 and 1", remedy="give a fraction of the filter cutoff"
        )
    title = "instrumental variables: no bias from position noise"
    return Estimator("iv", title, group_weights, rework=Instruments(instruments, cutoff), needs_time=True)


def _recursive(half_life: float | None = None) -> Estimator:
    life = None if half_life is None else check_positive("recursive half_life", half_life)
    title = "least squares row by row, with forgetting"
    return Estimator("recursive", title, group_weights, rework=Forgetting(life))


MAKERS: Registry[Callable[..., Estimator]] = Registry(
    "dynid.estimators",
    {
        "ols": lambda: Estimator("ols", "ordinary least squares", unit_weights),
        "wls": _wls,
        "consistent": _consistent,
        "robust": _robust,
        "tls": _tls,
        "gtls": _gtls,
        "iv": _iv,
        "recursive": _recursive,
    },
    gives=("dynid.estimator.estimator:Estimator",),
)
# The own ones with their default options.
ESTIMATORS: dict[str, Estimator] = {name: MAKERS[name]() for name in MAKERS.built_in}
