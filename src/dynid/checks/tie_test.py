"""Do the data accept that tied members are equal? The tied against the free model.

Where blocks of time can be compared, the equalities are tested with the covariance that is reported
(`wald`), which lets the residuals be correlated. Otherwise an F-test, noise taken as white:

F = (|rho_tied|^2 - |rho_free|^2) / (p_free - p_tied)  /  (|rho_free|^2 / dof_free)

Do the data accept linear restrictions? A test with the covariance that is reported.

L chi = 0,    T = (L chi)^T (L C L^T)^-1 (L chi),    T (d - q + 1) / (d q)  ~  F(q, d - q + 1)

(Hotelling) with C the jackknife over blocks and d its degrees of freedom, the least of the q
restrictions. With few blocks L C L^T has no inverse: each restriction is then tested alone by
Student's t, and the smallest probability is multiplied by q (Bonferroni). The restrictions are rotated
so that they are independent of each other under white noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.base.grouping import probability
from dynid.base.system import BaseSystem, base_system
from dynid.checks.check import Answer, Finished
from dynid.common.arrays import Array, Float
from dynid.common.distributions import f_tail, student_tails
from dynid.common.notices import Notice, notice
from dynid.estimator.estimator import estimator_named, solve_weighted
from dynid.estimator.solution import Solution
from dynid.linear_fit import base_of
from dynid.statistics.clusters import Clusters
from dynid.statistics.covariance import blocks_of
from dynid.statistics.sandwich import jackknife
from dynid.statistics.uncertainty import UncertaintySettings

REJECTED = 0.01
_RANK = 1e-6  # of the largest singular value: below it a direction of the tied model is rounding


@dataclass(frozen=True)
class TieTest:
    """Result of the test.

    Attributes:
        F: Ratio of variances; about one where the tie holds.
        n_tied: Parameters that the tie saves.
        dof: Degrees of freedom of the deviations of the free model.
        p: Probability of a larger F if the tie holds.
        by: What the test rests on.
    """

    F: float
    n_tied: int
    dof: float
    p: float
    by: str = ""

    @property
    def words(self) -> str:
        """The test in one line."""
        verdict = "rejected by these data" if self.p < REJECTED else "accepted by these data"
        freedoms = f"{self.n_tied} and {self.dof:.3g} degrees of freedom"
        rests = f" ({self.by})" if self.by else ""
        return f"{verdict}: F = {self.F:.3g} on {freedoms}, p {probability(self.p)}{rests}"

    def notices(self, name: str) -> tuple[Notice, ...]:
        """A warning where the tie does not hold."""
        if self.p >= REJECTED:
            return ()
        return (notice("tie-rejected", name=name, found=self.words),)


def tie_test(
    tied: Solution, data: BaseSystem, free: BaseSystem, settings: UncertaintySettings | None = None
) -> TieTest | None:
    """Test the tied solution against the free model with the same weights; None if nothing was saved.

    Rows that the row filter correlates are worth fewer: the difference of the residuals counts
    along smooth columns, which carry the inflated variance.

    Args:
        tied: The solution whose weights count.
        data: What it solves.
        free: The same rows over the parameters without the tie.
        settings: How deviations are found; None takes the noise as white.
    """
    loose = solve_weighted(free.system, tied.weights)
    saved = len(loose.chi) - len(tied.chi)
    if saved <= 0:
        return None
    clusters = None if settings is None else blocks_of(free.blocked(), loose, settings, free.system)
    if clusters is not None:
        wald = wald_test(
            clusters, loose.chi - _known(data, free), _restrictions(data, free), loose.covariance
        )
        how = "" if wald.joint else "; too few blocks to test all equalities together: worst one shown"
        return TieTest(wald.F, wald.q, wald.dof, wald.p, f"{len(clusters)} blocks{how}")
    from dynid.statistics.comparison import f_test  # few robots have ties

    inflation = max(group.inflation for group in free.system.groups)
    n_rows = sum(group.n_rows for group in free.system.groups)
    norms = tied.residual_norm, loose.residual_norm
    white = f_test(*norms, saved, n_rows, len(loose.chi), inflation, loose.dof)
    if white is None:
        return None
    return TieTest(white.F, saved, white.dof, white.p, "noise assumed white")


def _restrictions(tied: BaseSystem, free: BaseSystem) -> Float[Array, "q v"]:
    """Rows L with L chi_free = 0 where the tie holds: chi_free = T chi_tied, L normal to T."""
    T = free.G @ tied.S
    scale = np.linalg.norm(free.system.factor().W, axis=0)
    U, singular, _ = np.linalg.svd(scale[:, None] * T)
    rank = int(np.sum(singular > _RANK * singular.max(initial=0.0)))
    return np.asarray(U[:, rank:].T * scale)


def _known(tied: BaseSystem, free: BaseSystem) -> Float[Array, "v"]:
    """What known members of a tie make of the free parameters."""
    return np.asarray(free.G @ (tied.base.c - free.base.c))


def ties(finished: Finished) -> list[Answer]:
    """Whether the data accept the ties, in words, and a warning if they do not."""
    fit, experiment = finished.fit, finished.fit.experiment
    if not experiment.ties:
        return []
    # Where its equations were rewritten, the F-test needs the plain weighted solution.
    linear = fit.linear
    solution = linear if linear.equations is None else estimator_named("wls")(fit.measured.system)
    free = experiment.changed(ties=())
    loose = base_system(fit.system, base_of(fit.problem, free))
    result = tie_test(solution, fit.measured, loose, experiment.uncertainty)
    names = ", ".join(f"'{tie.name}'" for tie in experiment.ties)
    if result is None:
        return [notice("tie-idle", name=names), (f"tie {names}", "no effect")]
    return [*result.notices(names), (f"tie {names}", result.words)]


# Freedoms per restriction from which on their covariance is worth inverting.
_ENOUGH = 3.0


@dataclass(frozen=True)
class WaldTest:
    """Result of the test.

    Attributes:
        F: Size of the violation over its expectation from noise; about one if the restrictions hold.
        q: Restrictions.
        dof: Degrees of freedom of the covariance.
        p: Probability of a larger F if the restrictions hold.
        joint: Whether they were tested together; else one by one.
    """

    F: float
    q: int
    dof: float
    p: float
    joint: bool


def wald_test(
    clusters: Clusters, chi: Float[Array, "p"], L: Float[Array, "q p"], white: Float[Array, "p p"]
) -> WaldTest:
    """Test L chi = 0.

    Args:
        clusters: Of the fit that does not know the restrictions.
        chi: Its parameters, shape (p,), SI.
        L: The restrictions, shape (q, p).
        white: Classical covariance of chi, shape (p, p).
    """
    root = np.linalg.cholesky(L @ white @ L.T)
    turned = np.linalg.solve(root, L)
    stats = jackknife(replace(clusters, root=turned @ clusters.root))
    value, q = turned @ chi, len(L)
    dof = float(stats.dof.min())
    if dof >= _ENOUGH * q:
        T = float(value @ np.linalg.solve(stats.covariance, value))
        free = dof - q + 1.0
        F = T * free / (dof * q)
        return WaldTest(F, q, dof, f_tail(q, free, F), True)
    # One block alone cannot give the error of a restriction: white noise is its lower bound.
    variance = np.where(stats.alone, np.maximum(np.diag(stats.covariance), 1.0), np.diag(stats.covariance))
    t = np.abs(value) / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    each = [student_tails(*pair) for pair in zip(stats.dof.tolist(), t.tolist(), strict=True)]
    worst = int(np.argmin(each))
    return WaldTest(float(t[worst] ** 2), q, float(stats.dof[worst]), float(min(1.0, q * each[worst])), False)
