"""The estimator `recursive`: blocks of the logs in time order through the information filter.

Recorder: keeps the history of a recursive estimate, and finds what jumped at its changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.base.rank import independent_columns
from dynid.common.arrays import Array, Float
from dynid.common.errors import NoResultError
from dynid.common.notices import Notice, notice
from dynid.estimator.ols import least_squares
from dynid.estimator.recursive import RecursiveEstimator
from dynid.estimator.rework import Reworked, SecondPass
from dynid.estimator.solution import ChangeFound, History, Jump, surest_first
from dynid.estimator.wls import Solver, Weighting, fitted
from dynid.projection.factor import Factor, merge, triangle
from dynid.projection.projection import System

# A block's number: log, run, number in the log.
_Place = tuple[str, int, int]


@dataclass(frozen=True)
class Forgetting:
    """Rework of `recursive`: rows count half after every half-life, seen from the end.

    Attributes:
        half_life: In [s] of rows in use; None: never forgets, and gives the batch answer.
    """

    half_life: float | None = None

    def __call__(
        self, system: System, weighting: Weighting, solver: Solver, again: SecondPass | None
    ) -> Reworked:
        """Run through the blocks; the weights of the groups are those of the whole log."""
        rows = system if again is None else again.blocked()
        state = fitted(system, weighting, solver)
        p = len(system.parameters)
        inflation = max(group.inflation for group in system.groups)
        filter = RecursiveEstimator(p, half_life=self.half_life, inflation=inflation)
        recorder = Recorder([parameter.name for parameter in system.parameters], filter)
        for place, seconds, factor in in_time_order(rows, state.weights):
            recorder.update(place[0], factor, seconds)
        history = recorder.history()
        notices = state.notices + _changed(history.changes)
        counted = rows if self.half_life is None else self._aged(rows, filter.seconds)
        reached = state.iterations, state.status, notices
        return Reworked(counted, state.weights, *reached, chi=filter.chi, history=history)

    def _aged(self, rows: System, total: float) -> System:
        """The equations as they count at the end; the inflation keeps the variance honest.

        Weights f_i count as (sum f)^2 / sum f^2 rows, and (W^T f W)^-1 is too large by sum f / sum f^2.
        """
        ends, at = {}, 0.0
        for place, seconds in _places(rows):
            at += seconds
            ends[place] = at
        groups = []
        for group in rows.groups:
            age = np.array([total - ends[group.log, *place] for place in group.places])
            left = 2.0 ** (-age / self._life)
            n = np.array([block.n_rows for block in group.blocks])
            worth = np.sum(left**2 * n) / np.sum(left * n)
            # Whole rows that add up to what is left of all: some blocks of few old rows count none.
            whole = np.diff(np.rint(np.cumsum(left * n)), prepend=0.0).astype(int)
            blocks = tuple(
                Factor(np.sqrt(f) * block.R, count)
                for f, block, count in zip(left, group.blocks, whole.tolist(), strict=True)
            )
            groups.append(replace(group, blocks=blocks, inflation=group.inflation * worth))
        return replace(rows, groups=tuple(groups))

    @property
    def _life(self) -> float:
        return np.inf if self.half_life is None else self.half_life


def in_time_order(rows: System, weights: Float[Array, "g"]) -> list[tuple[_Place, float, Factor]]:
    """Weighted rows of all groups block by block: place, length in [s], factor over all parameters."""
    p = len(rows.parameters)
    parts: dict[_Place, list[Factor]] = {place: [] for place, _ in _places(rows)}
    for group, weight in zip(rows.groups, weights, strict=True):
        for place, block in zip(group.places, group.blocks, strict=True):
            R = np.zeros((len(block.R), p + 1))
            R[:, [*group.columns, p]] = weight * block.R
            parts[group.log, *place].append(Factor(R, block.n_rows))
    return [(place, seconds, merge(parts[place])) for place, seconds in _places(rows)]


def _places(rows: System) -> list[tuple[_Place, float]]:
    """All blocks in the order of logs and of time, with their length in [s]."""
    order = {log: i for i, log in enumerate(dict.fromkeys(group.log for group in rows.groups))}
    lengths = {(group.log, *place): group.seconds for group in rows.groups for place in group.places}
    return sorted(lengths.items(), key=lambda item: (order[item[0][0]], *item[0][1:]))


def _changed(changes: Sequence[ChangeFound]) -> tuple[Notice, ...]:
    if not changes:
        return ()
    first = changes[0]
    more = f", and {len(changes) - 1} more times" if len(changes) > 1 else ""
    most = ", ".join(f"{jump.name} ({jump.before:.3g} to {jump.after:.3g})" for jump in first.jumped[:3])
    return (
        notice(
            "parameters-changed",
            seconds=first.seconds,
            log=first.log,
            more=more,
            largest=f"; largest change: {most}" if most else "",
        ),
    )


_LEFT = 1e-6  # of what was known before a change: new rows then decide
_TELLS = 1e-3  # a column with a smaller part orthogonal to the others has no separate jump
_ENOUGH = 1.5  # rows per parameter from which on a fit leaves residuals worth comparing


class Recorder:
    """Takes part in the updates of a filter and keeps their history.

    Args:
        names: Of the parameters.
        filter: Whose state is recorded.
    """

    def __init__(self, names: Sequence[str], filter: RecursiveEstimator) -> None:
        self.names, self.filter = tuple(names), filter
        # A separate filter detects changes: it restarts after each, so that a change is found once.
        self._watch = RecursiveEstimator(len(names), half_life=filter.half_life, inflation=filter.inflation)
        self._logs: list[str] = []
        self._seconds: list[float] = []
        self._chi: list[Array] = []
        self._sigma: list[Array] = []
        self._ratio: list[float] = []
        self._rows: list[Factor] = []
        self._starts: list[int] = []

    def update(self, log: str, factor: Factor, seconds: float) -> None:
        """One update of the filter, recorded."""
        self.filter.update(factor, seconds)
        verdict = self._watch.update(factor, seconds)
        if verdict.changed:
            self._starts.append(len(self._rows) - self._watch.consecutive + 1)
            self._watch.forget(1.0 - _LEFT)
        chi, sigma = _state(self.filter)
        self._logs.append(log)
        self._seconds.append(self.filter.seconds)
        self._chi.append(chi)
        self._sigma.append(sigma)
        self._ratio.append(verdict.ratio)
        self._rows.append(factor)

    def history(self) -> History:
        """Everything recorded, with the moment of each change and what jumped there."""
        starts = self._moments()
        edges = [0, *starts, len(self._rows)]
        changes = []
        for before, start, end in zip(edges[:-2], starts, edges[2:], strict=True):
            jumps = _jumps(self.names, self._rows[before:start], self._rows[start:end], self.filter.inflation)
            changes.append(ChangeFound(self._logs[start], self._seconds[start - 1], jumps))
        return History(
            self.names,
            tuple(self._logs),
            np.array(self._seconds),
            np.array(self._chi),
            np.array(self._sigma),
            np.array(self._ratio),
            self.filter.half_life,
            tuple(changes),
        )

    def _moments(self) -> list[int]:
        """First update after each change: an alarm is delayed, and the delay is found from earlier data."""
        moments, before = [], 0
        for k, alarm in enumerate(self._starts):
            end = self._starts[k + 1] if k + 1 < len(self._starts) else len(self._rows)
            start = before + _best_split(self._rows[before:end], alarm - before)
            moments.append(start)
            before = start
        return moments


def _best_split(rows: Sequence[Factor], alarm: int) -> int:
    """Number of the first update after a change: where two fits leave the least residuals.

    Args:
        rows: Updates from the change before to the one after.
        alarm: Number of the one that raised the alarm; taken where the rows are too few to look back.
    """
    p = rows[0].W.shape[1]
    n = np.array([factor.n_rows for factor in rows])
    before, after = np.cumsum(n), np.cumsum(n[::-1])[::-1]
    sums = _growing(rows)[:-1] + _growing(rows[::-1])[::-1][1:]
    enough = (before[:-1] > _ENOUGH * p) & (after[1:] > _ENOUGH * p)
    # Alarms come late, never early.
    enough &= np.arange(1, len(rows)) <= max(alarm, 1)
    return int(np.argmin(np.where(enough, sums, np.inf))) + 1 if np.any(enough) else alarm


def _growing(rows: Sequence[Factor]) -> Float[Array, "n"]:
    """Residual sum of squares of the first rows, of the first two updates, and so on."""
    R = np.zeros((0, rows[0].R.shape[1]))
    sums = []
    for factor in rows:
        R = triangle(np.vstack([R, factor.R]))
        sums.append(float(R[-1, -1] ** 2) if len(R) == R.shape[1] else 0.0)
    return np.array(sums)


def _state(filter: RecursiveEstimator) -> tuple[Float[Array, "p"], Float[Array, "p"]]:
    """Parameters and deviations now; NaN while they are not determined."""
    try:
        chi, root, _ = filter.solution()
    except NoResultError:
        p = filter.factor.W.shape[1]
        return np.full(p, np.nan), np.full(p, np.nan)
    return chi, np.sqrt(np.diag(filter.covariance_of(root)))


def _jumps(
    names: Sequence[str], before: Sequence[Factor], after: Sequence[Factor], inflation: float
) -> tuple[Jump, ...]:
    """What changed between two stretches: rows [W, 0] before and [W, W] after, over (chi, jump).

    Jumps that are not separable from others (a joint that moved in one direction only) count as zero.
    """
    first, second = merge(before), merge(after)
    p = len(names)
    rows = np.zeros((len(first.R) + len(second.R), 2 * p + 1))
    rows[: len(first.R), :p], rows[: len(first.R), -1] = first.W, first.Y
    rows[len(first.R) :, :p] = rows[len(first.R) :, p:-1] = second.W
    rows[len(first.R) :, -1] = second.Y
    kept = list(independent_columns(rows[:, :-1], range(2 * p), rtol=_TELLS).kept)
    dof = first.n_rows + second.n_rows - len(kept)
    if dof <= 0:
        return ()
    chi, root, residual_norm = least_squares(Factor(rows[:, [*kept, -1]], first.n_rows + second.n_rows))
    sigma = np.sqrt(inflation * residual_norm**2 / dof * np.sum(root**2, axis=1))
    value = dict(zip(kept, chi.tolist(), strict=True))
    jumps = [
        Jump(names[k - p], value.get(k - p, 0.0), value.get(k - p, 0.0) + value[k], float(s))
        for k, s in zip(kept, sigma, strict=True)
        if k >= p
    ]
    return surest_first(jumps)
