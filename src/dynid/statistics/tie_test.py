"""Do the data accept that tied members are equal? An F-test of the tied against the free model.

F = (|rho_tied|^2 - |rho_free|^2) / (p_free - p_tied)  /  (|rho_free|^2 / dof_free)
"""

from __future__ import annotations

from dataclasses import dataclass

from dynid.base.system import BaseSystem
from dynid.estimator.estimator import solve_weighted
from dynid.estimator.solution import Solution
from dynid.estimator.wls import Weights
from dynid.notices import Notice
from dynid.statistics.comparison import f_test

REJECTED = 0.01


@dataclass(frozen=True)
class TieTest:
    """Result of the test.

    Attributes:
        F: Ratio of variances; about one where the tie holds.
        n_tied: Parameters that the tie saves.
        dof: Degrees of freedom of the free model, as many as its rows are worth.
        p: Probability of a larger F if the tie holds.
    """

    F: float
    n_tied: int
    dof: int
    p: float

    @property
    def words(self) -> str:
        """The test in one line."""
        verdict = "rejected by these data" if self.p < REJECTED else "accepted by these data"
        freedoms = f"{self.n_tied} and {self.dof} degrees of freedom"
        return f"{verdict}: F = {self.F:.3g} on {freedoms}, p = {self.p:.2g}"

    def notices(self, name: str) -> tuple[Notice, ...]:
        """A warning where the tie does not hold."""
        if self.p >= REJECTED:
            return ()
        return (Notice("tie-rejected", f"tie {name} is {self.words}", "identify without it and compare"),)


def idle_tie(name: str) -> Notice:
    """A tie that saves no base parameter: what its members share is grouped differently in each."""
    return Notice(
        "tie-idle",
        f"tie {name} restricts nothing: no base parameter is saved by it",
        "apply it after regrouping, e.g. ties: [{name: ..., apply: regrouped}], if that is what is meant",
    )


def tie_test(tied: Solution, free: BaseSystem) -> TieTest | None:
    """Test the tied solution against the free model with the same weights; None if nothing was saved.

    Rows that the row filter correlates are worth fewer: the difference of the residuals counts
    along smooth columns, which carry the inflated variance.
    """
    loose = solve_weighted(free.system, Weights(tied.weights))
    saved = len(loose.chi) - len(tied.chi)
    inflation = max(group.inflation for group in free.system.groups)
    n_rows = sum(group.n_rows for group in free.system.groups)
    norms = tied.residual_norm, loose.residual_norm
    found = f_test(*norms, saved, n_rows, len(loose.chi), inflation, loose.dof)
    return None if found is None else TieTest(found.F, saved, found.dof, found.p)
