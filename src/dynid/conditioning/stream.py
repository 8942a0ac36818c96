"""Blocks of samples pass a model, the row filter and a QR, and give small triangular factors.

W is never stored: a worker processes a few thousand samples at a time and keeps one small factor
per row group and quarter of a second, numbered by time. So rows of the same time can still be
related to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from weakref import WeakKeyDictionary

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.paged import LARGE, in_order, spare
from dynid.conditioning.lowpass import RowFilter
from dynid.conditioning.rewritten import WiderRows, compared_rows, predictor
from dynid.projection.factor import Factor, compact, merge
from dynid.projection.model import PackedRows
from dynid.regressor.layout import ABSENT

# Shorter than the correlation time of most residuals: longer blocks are made by joining neighbours.
BLOCK_SECONDS = 0.25
MOST_BLOCKS = 384
_TASK_SAMPLES = 16384
# Products a sample, or lengths in outputs, from which a filter is worth two stages; decimation needs 20.
_MUCH, _LONG = 60_000, 40
_ROUNDING = 1e-9  # of a sum of weights: half a window is half of it, in whatever order it was added

Progress = Callable[[float], None]

Compared = tuple[Array, Array, Array, Array]
_COMPARED: WeakKeyDictionary[PackedRows, tuple[tuple[RowFilter, bytes], list[Compared]]] = WeakKeyDictionary()
_MOST_COMPARED = 1 << 20  # numbers of a source

_KEPT: WeakKeyDictionary[PackedRows, _Kept] = WeakKeyDictionary()
_FEW_OUTPUTS = 8  # decimation from which many rows are read from a file in less time than computed again


@dataclass(frozen=True, eq=False)
class _Task:
    """Outputs first, first + decimate, ... (`count`) of one piece, from `block` on; `done` before it."""

    piece: tuple[int, int]
    run: int
    block: int
    first: int
    count: int
    done: int


@dataclass(frozen=True, eq=False)
class _Kept:
    """Filtered entries and validity of a source, task after task: a second pass has them already.

    Attributes:
        row_filter: Of these rows.
        numbers: Entries, then validity of every task, in a temporary file if they are many.
        tasks: Outputs before the tasks whose numbers are there.
    """

    row_filter: RowFilter
    numbers: Array
    tasks: set[int] = field(default_factory=set)

    def of(self, source: PackedRows, task: _Task) -> tuple[Float[Array, "e k"], Array]:
        """Filtered entries and validity at the outputs of a task."""
        e, rows = source.layout.n_entries, len(source.layout.start) - 1
        place = self.numbers[(e + rows) * task.done : (e + rows) * (task.done + task.count)]
        place = place.reshape(e + rows, task.count)
        if task.done not in self.tasks:
            place[:e], place[e:] = _filtered_anew(source, self.row_filter, task)
            self.tasks.add(task.done)
        return place[:e], place[e:] > 0.0


# A block: number of the segment of the log that contains it, number of the block in the log (shared by all
# rows), factor over the columns of its row. Blocks without a valid row are missing.
Block = tuple[int, int, Factor]


def stream(
    source: PackedRows,
    row_filter: RowFilter,
    threads: int | None = None,
    progress: Progress | None = None,
    keep: bool = False,
    most: int | None = None,
) -> tuple[list[list[Block]], float]:
    """Factors of every row of a source, in blocks of a fraction of a second, in time order.

    The result does not depend on the number of threads: only the log determines the tasks.

    Args:
        source: Rows of one log.
        row_filter: Low-pass and decimation.
        threads: None: as many as there are cores.
        progress: Called with the fraction done.
        keep: Filtered rows are kept as long as the source: it will be streamed or compared again.
        most: Samples to look at; of more, some parts all over them, one at least. None: all.

    Returns:
        The blocks of each row of the layout, and the length of a block in [s].
    """
    per_block = max(1, round(BLOCK_SECONDS / (source.dt * row_filter.decimate)))
    tasks = list(_tasks(source.pieces(), row_filter, per_block))
    if keep:
        _keep(source, row_filter, sum(task.count for task in tasks))
    if most is not None:
        tasks = tasks[:: max(1, -(-sum(stop - start for start, stop in source.pieces()) // most))]
    first = _first_span(tasks, per_block)
    blocks, span = _streamed(source, row_filter, tasks, per_block, first, threads, progress)
    if span == first > 1:  # so few blocks have a valid row that shorter ones are not too many
        blocks, span = _streamed(source, row_filter, tasks, per_block, 1, threads, progress)
    renumbered = [[(run, number // span, factor) for run, number, factor in row] for row in blocks]
    return renumbered, span * per_block * row_filter.decimate * source.dt


def _keep(source: PackedRows, row_filter: RowFilter, outputs: int) -> None:
    """Make room for the filtered rows of a source, if that is worth it."""
    size = (source.layout.n_entries + len(source.layout.start) - 1) * outputs
    few = size * np.dtype(float).itemsize < LARGE or row_filter.decimate >= _FEW_OUTPUTS
    numbers = spare(size) if few and source not in _KEPT else None
    if numbers is not None:
        _KEPT[source] = _Kept(row_filter, numbers)


def keep_sum(source: PackedRows, row_filter: RowFilter, parts: Sequence[tuple[float, PackedRows]]) -> bool:
    """Keep the filtered rows of a source that is a weighted sum of others, if those are kept.

    Args:
        source: With the layout and the valid samples of the others.
        row_filter: Of all of them.
        parts: Weights, whose sum is one, and the others.

    Returns:
        Whether the rows are kept now.
    """
    kept = [(weight, _kept(other, row_filter)) for weight, other in parts]
    known = [(weight, rows) for weight, rows in kept if rows is not None]
    size = known[0][1].numbers.size if known else 0
    if len(known) < len(kept) or size * np.dtype(float).itemsize >= LARGE:
        return False
    tasks = set.intersection(*(rows.tasks for _, rows in known))
    numbers = sum((weight * rows.numbers for weight, rows in known), np.zeros(size))
    _KEPT[source] = _Kept(row_filter, numbers, tasks)
    return True


def _streamed(
    source: PackedRows,
    row_filter: RowFilter,
    tasks: Sequence[_Task],
    per_block: int,
    span: int,
    threads: int | None,
    progress: Progress | None,
) -> tuple[list[list[Block]], int]:
    """Blocks of every row, and how many of the shortest ones each spans: `span` of them at first."""
    blocks: list[list[Block]] = [[] for _ in range(len(source.layout.start) - 1)]
    begin = span
    done = in_order(lambda task: _condense(source, row_filter, task, per_block, begin), tasks, threads)
    for i, result in enumerate(done):
        # The first block of a task may belong to the last one of the task before.
        pairs = zip(blocks, result, strict=True)
        blocks = [[*old[:-1], *_joined(old[-1:] + new, span)] for old, new in pairs]
        blocks, span = _bounded(blocks, span)
        if progress:
            progress((i + 1) / len(tasks))
    return blocks, span


def _first_span(tasks: Sequence[_Task], per_block: int) -> int:
    """Blocks that are joined at once: a quarter of those joined at the end, if all have valid rows."""
    runs: dict[int, list[int]] = {}
    for task in tasks:
        runs.setdefault(task.run, []).extend((task.block, task.block + -(-task.count // per_block)))
    return max(1, _last_span(np.array([max(x) - min(x) for x in runs.values()], dtype=int)) // 4)


def _last_span(counts: Int[Array, "r"]) -> int:
    """Blocks that are joined at the end in runs with so many blocks, if all have valid rows."""
    span = 1
    while np.sum(-(-counts // span)) > MOST_BLOCKS and np.any(counts > span):
        span *= 2
    return span


def run_begins(source: PackedRows, row_filter: RowFilter) -> list[float]:
    """Length of the blocks of `stream` before each run, in [s]."""
    samples = max(1, round(BLOCK_SECONDS / (source.dt * row_filter.decimate))) * row_filter.decimate
    return [number * samples * source.dt for number in _first_blocks(source.pieces(), samples)]


def _first_blocks(pieces: Sequence[tuple[int, int]], samples: int) -> list[int]:
    """Number of the first block of each run, where a block has so many samples.

    They are joined at multiples of a number from there on: the blocks of a run do not depend on those before.
    """
    counts = np.array([-(-(stop - start) // samples) for start, stop in pieces], dtype=int)
    whole = (span := _last_span(counts)) * -(-counts // span)
    return [int(n) for n in np.cumsum(whole) - whole]


def grouped(blocks: Sequence[list[Block]], names: Sequence[str]) -> list[tuple[int, list[Block]]]:
    """Rows of one group joined block by block; they have the same columns.

    Args:
        blocks: Of each row of a layout.
        names: Group of each row; rows of a group follow each other.

    Returns:
        Number of the group's first row, and its blocks.
    """
    merged = []
    for _, rows in groupby(range(len(names)), key=lambda k: names[k]):
        numbers = list(rows)
        merged.append((numbers[0], _together([blocks[k] for k in numbers])))
    return merged


def _together(rows: Sequence[list[Block]]) -> list[Block]:
    """Blocks of several rows, those of the same time merged."""
    if len(rows) == 1:
        return rows[0]
    moments: dict[tuple[int, int], list[Factor]] = {}
    for row in rows:
        for run, number, factor in row:
            moments.setdefault((run, number), []).append(factor)
    return [(*moment, merge(moments[moment])) for moment in sorted(moments)]


def series(source: PackedRows, row_filter: RowFilter) -> Iterator[tuple[Array, Array, Array]]:
    """A second pass: filtered rows of each task as soon as they exist.

    Yields:
        Sample indices of the outputs (k,), entries (e, k), and validity (rows, k).
    """
    per_block = max(1, round(BLOCK_SECONDS / (source.dt * row_filter.decimate)))

    def filtered(task: _Task) -> tuple[Array, Array, Array]:
        at = task.first + row_filter.decimate * np.arange(task.count)
        return at, *_filtered(source, row_filter, task)

    yield from in_order(filtered, _tasks(source.pieces(), row_filter, per_block))


def compared(source: PackedRows, row_filter: RowFilter, chi: Float[Array, "p"]) -> Iterator[Compared]:
    """A second pass that compares filtered rows with their prediction.

    What it gives of a source is kept, if it is small: signals and tests compare the same rows.

    Args:
        chi: Standard parameters, shape (p,), SI.

    Yields:
        Sample indices of the outputs (k,), measured side, W chi and validity (rows, k).
    """
    how, parts, size = (row_filter, chi.tobytes()), [], 0
    known = _COMPARED.get(source)
    if known is not None and known[0] == how:
        yield from known[1]
        return
    for part in _compared_anew(source, row_filter, chi):
        size += 2 * part[1].size
        if size <= _MOST_COMPARED:
            parts.append(part)
        yield part
    if size <= _MOST_COMPARED:
        _COMPARED[source] = how, parts


def _compared_anew(source: PackedRows, row_filter: RowFilter, chi: Float[Array, "p"]) -> Iterator[Compared]:
    """From rows that are kept, else from the log; the filter is linear."""
    if _kept(source, row_filter):
        compare = predictor(source.layout, chi)
        for at, entries, valid in series(source, row_filter):
            yield at, *compare(entries), valid
        return
    for at, entries, valid in series(compared_rows(source, chi), row_filter):
        yield at, entries[1::2], entries[::2], valid


def _tasks(pieces: Sequence[tuple[int, int]], row_filter: RowFilter, per_block: int) -> Iterator[_Task]:
    """Whole blocks of outputs, about `_TASK_SAMPLES` samples each."""
    step = row_filter.decimate
    most = per_block * max(1, _TASK_SAMPLES // (step * per_block))
    done, first_blocks = 0, _first_blocks(pieces, per_block * step)
    for run, (start, stop) in enumerate(pieces):
        block = first_blocks[run]
        outputs = (stop - start + step - 1) // step
        # Centre the outputs, so that both ends of a segment lose equally many samples.
        offset = start + ((stop - start - 1) - (outputs - 1) * step) // 2
        for at in range(0, outputs, most):
            count = min(most, outputs - at)
            yield _Task((start, stop), run, block, offset + at * step, count, done)
            block += -(-count // per_block)
            done += count


def _condense(
    source: PackedRows, row_filter: RowFilter, task: _Task, per_block: int, span: int
) -> list[list[Block]]:
    """Factors per row of one task, one per `span` blocks that have a valid row there."""
    filtered, valid = _filtered(source, row_filter, task)
    layout, result = source.layout, []
    for row in range(len(layout.start) - 1):
        entries = np.arange(layout.start[row], layout.start[row + 1])
        wanted = entries[(layout.columns[entries] != ABSENT) | (entries == entries[-1])]
        columns = filtered[wanted] if len(wanted) < len(entries) else filtered[entries[0] : entries[-1] + 1]
        rows = np.ascontiguousarray(columns.T)
        factors, number, every = list[Block](), task.block // span, bool(valid[row].all())
        while (at := max(0, (number * span - task.block) * per_block)) < task.count:
            stop = ((number + 1) * span - task.block) * per_block
            part = rows[at:stop] if every else rows[at:stop][valid[row, at:stop]]
            if len(part):
                factors.append((task.run, number * span, Factor(compact(part), len(part))))
            number += 1
        result.append(factors)
    return result


def _filtered(source: PackedRows, row_filter: RowFilter, task: _Task) -> tuple[Float[Array, "e k"], Array]:
    """Filtered entries at the task's outputs, and which of them use enough valid samples.

    A sample with weight 0 is skipped and the kernel rescaled: the same linear map acts on Y and
    on W, so the equations stay exact. The same rule applies at the ends of a segment.
    """
    kept = _kept(source, row_filter)
    if kept is not None:
        return kept.of(source, task)
    alone = source.alone if isinstance(source, WiderRows) else None
    if not isinstance(source, WiderRows) or alone is None or _kept(source.source, row_filter) is None:
        return _filtered_anew(source, row_filter, task)
    entries, valid = _filtered(source.source, row_filter, task)
    more, _ = _filtered_anew(alone, row_filter, task, source.source.layout.n_entries)
    return source.joined(entries, more), valid


def _kept(source: PackedRows, row_filter: RowFilter) -> _Kept | None:
    kept = _KEPT.get(source)
    return None if kept is None or kept.row_filter is not row_filter else kept


def _filtered_anew(
    source: PackedRows, row_filter: RowFilter, task: _Task, entries: int | None = None
) -> tuple[Float[Array, "e k"], Array]:
    """The same from the log; `entries`: of rows beside which these are filtered, in as many stages."""
    from dynid.conditioning.kernels import decimate

    layout, half, step = source.layout, row_filter.half, row_filter.decimate
    last = task.first + (task.count - 1) * step
    start, stop = max(task.piece[0], task.first - half), min(task.piece[1], last + half + 1)
    every, kernel, first, count, knots = step, row_filter.padded, task.first, task.count, 0
    long = len(row_filter.kernel) > min(_LONG, _MUCH / (entries or layout.n_entries)) * step
    if in_stages := long and row_filter.coarse[0] > 1:
        every, kernel, second = row_filter.coarse
        knots = (len(second) - 2 * (step // every)) // 2
        first, count = task.first - knots * every, (task.count - 1) * (step // every) + 2 * knots + 1
    sums, weight = np.zeros((layout.n_entries, count)), np.zeros((len(layout.start) - 1, count))
    for at, packed, weights in source.rows(start, stop, layout.tile):
        for row in np.flatnonzero(~np.all(weights == 1.0, axis=1)):
            packed[layout.start[row] : layout.start[row + 1]] *= weights[row]
        decimate(packed, kernel, at, first, every, sums)
        decimate(weights, kernel, at, first, every, weight)
    if in_stages:
        fine, sums, weight = (sums, weight), *(np.zeros((len(x), task.count)) for x in (sums, weight))
        for values, out in zip(fine, (sums, weight), strict=True):
            decimate(values, second, 0, knots, step // every, out)
    valid = weight > row_filter.support + _ROUNDING
    scale = np.where(valid, 1.0 / np.where(valid, weight, 1.0), 0.0)
    for k in range(len(weight)):
        sums[layout.start[k] : layout.start[k + 1]] *= scale[k]
    return sums, valid


def _bounded(blocks: list[list[Block]], span: int) -> tuple[list[list[Block]], int]:
    """Neighbours merged once there are many, so that memory does not grow; and how many blocks each spans.

    All rows are merged equally, by the number of the block, so that they stay aligned. A block never
    spans two runs, so memory grows only with the number of runs.
    """
    while _count(blocks, span) > MOST_BLOCKS and _count(blocks, 2 * span) < _count(blocks, span):
        span *= 2
        blocks = [_joined(row_blocks, span) for row_blocks in blocks]
    return blocks, span


def _count(blocks: list[list[Block]], span: int) -> int:
    if max(map(len, blocks)) <= MOST_BLOCKS:
        return 0  # not counted: they need not be joined
    return max(len({(run, number // span) for run, number, _ in row_blocks}) for row_blocks in blocks)


def _joined(blocks: list[Block], span: int) -> list[Block]:
    parts = groupby(blocks, key=lambda block: (block[0], block[1] // span))
    return [(run, k * span, merge([factor for _, _, factor in part])) for (run, k), part in parts]
