"""Rows of a problem by folds: one triangle per group of rows and fold, from one pass over the logs.

Leaving a fold out is leaving its triangles out; other drive terms are other columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.paged import together
from dynid.conditioning.lowpass import RowFilter
from dynid.conditioning.rewritten import windowed
from dynid.conditioning.stream import run_begins
from dynid.mechanism.parameters import Parameter, known_columns
from dynid.problem import Problem, row_groups
from dynid.projection.factor import Factor, merge
from dynid.projection.model import PackedRows
from dynid.projection.projection import Group, System

if TYPE_CHECKING:
    from dynid.validation.folds import Fold

BORDER = -1
# Entries of rows that judge fits: squares of some ten seconds per fold do not depend on more. A share of all
# rows from which windows spare little; and the length of a window in those of the row filter.
_MOST_ENTRIES, _WORTH, _WINDOW = 80_000_000, 0.8, 4


def fold_rows(problem: Problem, parts: Sequence[Fold], keep: bool = False, judging: bool = False) -> System:
    """Rows of a problem; the block of number k of a group holds the rows of fold k.

    Blocks on a border between folds belong to none of them. `keep`: see `stream`. Rows that only judge fits
    are those of windows spread over each fold, where all of them would take long.
    """
    groups: list[Group] = []
    # Poses of closed robots take about as long as so many entries.
    poses = 2 * len(problem.mechanism.coordinates) ** 2 if problem.mechanism.is_closed else 0
    entries = sum(
        (source.layout.n_entries + poses) * (stop - start)
        for source in problem.sources
        for start, stop in source.pieces()
    )
    share = _MOST_ENTRIES / max(entries, 1)
    for i, source in enumerate(problem.sources):
        held, rows = _held(parts, i), problem.filters[i]
        alone = replace(problem, plans=(problem.plans[i],), sources=(source,), filters=(rows,))
        used: PackedRows = source
        if judging and share < _WORTH:
            used = windowed(source, _windows(source.pieces(), held, share, rows))
        folded = partial(_folded, _spans(used, held, rows), {})
        groups += together(folded, row_groups(alone, (used,), keep=keep))
    known = known_columns(problem.mechanism, problem.parameters)
    return problem.case.system(problem, tuple(group for group in groups if group.blocks), known)


def _held(parts: Sequence[Fold], i: int) -> list[tuple[int, int, int]]:
    """Held-out ranges of a log: first sample, end, fold."""
    return [
        (start, stop, k)
        for k, fold in enumerate(parts)
        for of, part in zip(fold.held_out_of, fold.held_out, strict=True)
        if of == i
        for start, stop in part.segments
    ]


def _windows(
    pieces: Sequence[tuple[int, int]], held: Sequence[tuple[int, int, int]], share: float, rows: RowFilter
) -> list[tuple[int, int]]:
    """A share of every held-out range, in windows spread over it that are long compared with the filter."""
    windows = []
    for first, last in pieces:
        for start, stop, _ in sorted(held):
            a, b = max(first, start), min(last, stop)
            if a >= b:
                continue
            least = _WINDOW * len(rows.kernel)
            count = max(1, int(share * (b - a) / least))
            size, stride = min(b - a, max(round(share * (b - a) / count), least)), (b - a) / count
            begins = [a + int((k + 0.5) * stride - 0.5 * size) for k in range(count)]
            windows += [(begin, begin + size) for begin in begins]
    return windows


# Of one log: held-out ranges (run, start, stop, fold) in [s]; where blocks of runs begin; lengths of runs.
_Spans = tuple[list[tuple[int, float, float, int]], list[float], list[float]]


def _spans(source: PackedRows, held: Sequence[tuple[int, int, int]], rows: RowFilter) -> _Spans:
    pieces, dt = source.pieces(), source.dt
    spans = []
    for run, (first, last) in enumerate(pieces):
        for start, stop, k in held:
            a, b = max(first, start), min(last, stop)
            if a < b:
                spans.append((run, float(a - first) * dt, float(b - first) * dt, k))
    return spans, run_begins(source, rows), [(last - first) * dt for first, last in pieces]


def _folded(spans_of: _Spans, folds_of: dict[tuple[int, int], tuple[int, ...]], group: Group) -> Group:
    """The group with its blocks merged by fold; `folds_of` are those of blocks of other groups of the log."""
    spans, begins, lengths = spans_of
    by_fold: dict[int, list[Factor]] = {}
    for place, block in zip(group.places, group.blocks, strict=True):
        if place not in folds_of:
            folds_of[place] = _folds_of(place, group.seconds, spans, begins, lengths)
        for k in folds_of[place]:
            by_fold.setdefault(k, []).append(block)
    folds = sorted(k for k in by_fold if k != BORDER)
    blocks = tuple(merge(by_fold[k]) for k in folds)
    return replace(group, blocks=blocks, times=np.array(folds, dtype=int), runs=None)


def _folds_of(
    place: tuple[int, int],
    seconds: float,
    spans: Sequence[tuple[int, float, float, int]],
    begins: Sequence[float],
    lengths: Sequence[float],
) -> tuple[int, ...]:
    """The fold that a block is in; `BORDER` if it is only partly in one."""
    run, number = place
    start = number * seconds - begins[run]
    stop = min(start + seconds, lengths[run])
    start = max(start, 0.0)
    middle, rounding = 0.5 * (start + stop), 1e-6 * seconds
    return tuple(
        k if a <= start + rounding and stop <= b + rounding else BORDER
        for of_run, a, b, k in spans
        if of_run == run and a <= middle < b
    )


def without(system: System, fold: int | None) -> System:
    """The rows of all folds but one, one triangle per group; None: of all."""
    groups = []
    for group in system.groups:
        assert group.times is not None  # noqa: S101 (made by `fold_rows`)
        pairs = zip(group.blocks, group.times.tolist(), strict=True)
        kept = [block for block, k in pairs if k != fold]
        if kept:
            groups.append(replace(group, blocks=(merge(kept),), times=None))
    return replace(system, groups=tuple(groups))


def selected(system: System, problem: Problem) -> System:
    """The columns of a problem among those of all candidates."""
    place = {parameter.name: i for i, parameter in enumerate(problem.parameters)}
    number = np.array([place.get(parameter.name, -1) for parameter in system.parameters])
    groups = []
    for group in system.groups:
        renumbered = number[group.columns]
        kept = np.append(renumbered >= 0, True)
        blocks = tuple(Factor(block.R[:, kept], block.n_rows) for block in group.blocks)
        groups.append(replace(group, columns=renumbered[renumbered >= 0], blocks=blocks))
    return System(problem.parameters, tuple(groups), known_columns(problem.mechanism, problem.parameters))


def squares(
    system: System, parameters: Sequence[Parameter], chi: Float[Array, "p"], fold: int
) -> tuple[Float[Array, "j"], Float[Array, "j"]]:
    """Squares of residuals and of the measured side over the rows of a fold, per effort, its unit squared.

    Args:
        system: Reference rows, with the columns of all candidates.
        parameters: One per entry of `chi`.
        chi: Standard parameters, shape (p,), SI.
    """
    value = {parameter.name: x for parameter, x in zip(parameters, chi.tolist(), strict=True)}
    every = np.array([value.get(parameter.name, 0.0) for parameter in system.parameters])
    efforts = list(dict.fromkeys(group.name for group in system.groups))
    left, size = np.zeros(len(efforts)), np.zeros(len(efforts))
    for group in system.groups:
        assert group.times is not None  # noqa: S101 (made by `fold_rows`)
        j = efforts.index(group.name)
        for block, k in zip(group.blocks, group.times.tolist(), strict=True):
            if k == fold:
                left[j] += np.sum((block.Y - block.W @ every[group.columns]) ** 2)
                size[j] += np.sum(block.Y**2)
    return left, size
