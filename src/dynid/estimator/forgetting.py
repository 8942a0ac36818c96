"""The estimator `recursive`: blocks of the logs in time order through the information filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.notices import Notice, notice
from dynid.estimator.history import ChangeFound
from dynid.estimator.recorder import Recorder
from dynid.estimator.recursive import RecursiveEstimator
from dynid.estimator.rework import Reworked, SecondPass
from dynid.estimator.wls import Solver, Weighting, fitted
from dynid.projection.factor import Factor, merge
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
