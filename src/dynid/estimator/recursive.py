"""Recursive least squares as a square-root information filter, with forgetting.

R_t = triangle of [ sqrt(f) R_(t-1) ; [W Y]_t ],      f = 2^(-seconds / half_life)

Without forgetting R_t is the triangle of all rows: the batch solution, in any order of rows. The
squared last diagonal entry is the residual sum of squares; what an update adds to it is
e^T (I + W P W^T)^-1 e, the whitened innovation, so that the test for a change costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.distributions import f_tail
from dynid.common.errors import InputError, NoResultError
from dynid.estimator.ols import Solved, least_squares
from dynid.estimator.solution import check_factor
from dynid.projection.factor import Factor, triangle

_FEWEST_DOF = 20.0  # before that nothing is known about the size of ordinary innovations
_RATIO = 4.0  # innovations of twice the usual deviation: errors of the model stay below it


@dataclass(frozen=True)
class Innovation:
    """How well an update was predicted.

    Attributes:
        ratio: Mean squared whitened innovation over the residual variance so far; about one.
        p: Probability of a larger ratio if nothing has changed.
        changed: Whether the parameters are no longer those of before.
        seconds: Time since the first update.
    """

    ratio: float
    p: float
    changed: bool
    seconds: float


class RecursiveEstimator:
    """Parameters as the rows come in.

    Rows of groups with different deviations are to be divided by them first.

    Args:
        n_parameters: Columns of W.
        half_life: Seconds after which a row counts half; None: never forgets.
        alarm: Probability below which an innovation is significant.
        consecutive: So many such updates in a row are a change.
        inflation: How many correlated rows are worth one (see `Group.inflation`).
    """

    def __init__(
        self,
        n_parameters: int,
        *,
        half_life: float | None = None,
        alarm: float = 1e-6,
        consecutive: int = 2,
        inflation: float = 1.0,
    ) -> None:
        if half_life is not None and not half_life > 0:
            raise InputError(f"a half-life of {half_life} s is not positive", remedy="give seconds, or None")
        self.half_life, self.alarm, self.consecutive, self.inflation = (
            half_life,
            alarm,
            consecutive,
            inflation,
        )
        self.seconds = 0.0
        self._state = _State(np.zeros((n_parameters + 1, n_parameters + 1)), 0.0)
        self._held: _State | None = None
        self._strange = 0

    @property
    def n_rows(self) -> float:
        """Rows so far, each counted with what is left of it."""
        return self._state.rows

    @property
    def factor(self) -> Factor:
        """The triangle of all rows so far, as they count now."""
        return Factor(self._state.R.copy(), max(1, round(self.n_rows)))

    def solution(self) -> Solved:
        """The estimate now; refused while the rows do not determine it."""
        p = len(self._state.R) - 1
        if self.n_rows < p:
            raise NoResultError(f"{self.n_rows:.0f} rows are not enough to determine {p} parameters")
        return least_squares(self.factor)

    @property
    def chi(self) -> Float[Array, "p"]:
        """The parameters now, shape (p,), SI."""
        return self.solution()[0]

    @property
    def covariance(self) -> Float[Array, "p p"]:
        """C_chi of white noise now, shape (p, p), SI."""
        return self.covariance_of(self.solution()[1])

    def covariance_of(self, root: Float[Array, "p p"]) -> Float[Array, "p p"]:
        """C_chi of white noise for the solution now, where its root is at hand."""
        return np.asarray(self.inflation * self._state.variance * (root @ root.T))

    def update(self, rows: Factor, seconds: float = 0.0) -> Innovation:
        """Take in the rows of the last `seconds`, after forgetting as much of the older ones.

        Args:
            rows: Their factor over all parameters.
            seconds: Time since the last update.
        """
        check_factor(rows, len(self._state.R) - 1, "update")
        kept = 1.0 if self.half_life is None else 2.0 ** (-seconds / self.half_life)
        before = _State(np.sqrt(kept) * self._state.R, kept * self._state.rows)
        self._state = before.with_rows(rows)
        self.seconds += seconds
        # While rows are strange they are held against what was known before the first of them:
        # a state that has learnt from them would find them ordinary.
        known = before if self._held is None else self._held
        innovation = self._judge(known, known.with_rows(rows), rows.n_rows)
        self._held = known if self._strange and not innovation.changed else None
        return innovation

    def forget(self, part: float = 1.0) -> None:
        """Let `part` of all information go, as after a change: new rows then decide quickly."""
        if not 0.0 <= part <= 1.0:
            raise InputError(f"a share {part} of the information cannot be forgotten", remedy="give 0 to 1")
        self._state = _State(np.sqrt(1.0 - part) * self._state.R, (1.0 - part) * self._state.rows)
        self._held, self._strange = None, 0

    def _judge(self, before: _State, after: _State, n: int) -> Innovation:
        if before.dof < _FEWEST_DOF * self.inflation or before.variance <= 0.0:
            return Innovation(1.0, 1.0, False, self.seconds)
        ratio = max(0.0, after.R[-1, -1] ** 2 - before.R[-1, -1] ** 2) / n / before.variance
        freedoms = max(1.0, n / self.inflation), max(1.0, before.dof / self.inflation)
        p = f_tail(*freedoms, ratio)
        self._strange = self._strange + 1 if p < self.alarm and ratio > _RATIO else 0
        changed = self._strange >= self.consecutive
        self._strange = 0 if changed else self._strange
        return Innovation(float(ratio), p, changed, self.seconds)


@dataclass(frozen=True, eq=False)
class _State:
    """Triangle of the rows so far, and how many they still count for."""

    R: Float[Array, "p1 p1"]
    rows: float

    @property
    def dof(self) -> float:
        return self.rows - len(self.R) + 1

    @property
    def variance(self) -> float:
        return float(self.R[-1, -1] ** 2 / self.dof) if self.dof > 0 else 0.0

    def with_rows(self, rows: Factor) -> _State:
        R = np.zeros_like(self.R)
        merged = triangle(np.vstack([self.R, rows.R]))
        R[: len(merged)] = merged
        return _State(R, self.rows + rows.n_rows)
