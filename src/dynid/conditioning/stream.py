"""Blocks of samples go through a model, the row filter and a QR into small triangles.

W is never held: a worker sees a few thousand samples at a time, and what remains of them is
one triangle per row group and second.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.conditioning.lowpass import RowFilter
from dynid.projection.factor import Factor, merge, triangle
from dynid.projection.model import PackedRows
from dynid.regressor.layout import ABSENT

BLOCK_SECONDS = 1.0
MOST_BLOCKS = 384
_TASK_SAMPLES = 16384
_TILE_BYTES = 1 << 20

Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class _Task:
    """Outputs first, first + decimate, ... (count of them) inside one piece."""

    piece: tuple[int, int]
    first: int
    count: int


def stream(
    source: PackedRows, row_filter: RowFilter, threads: int | None = None, progress: Progress | None = None
) -> list[list[Factor]]:
    """Factors of every row of a source, in blocks of about a second, in time order.

    The answer does not depend on the number of threads: tasks are cut by the log alone.

    Returns:
        One list of factors per row of the layout; the columns are those of the row's entries.
    """
    per_block = max(1, round(BLOCK_SECONDS / (source.dt * row_filter.decimate)))
    tasks = list(_tasks(source.pieces(), row_filter, per_block))
    blocks: list[list[Factor]] = [[] for _ in range(len(source.layout.start) - 1)]
    threads = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        done = pool.map(lambda task: _condense(source, row_filter, task, per_block), tasks)
        for i, result in enumerate(done):
            for row, factors in enumerate(result):
                blocks[row] = _bounded(blocks[row] + factors)
            if progress:
                progress((i + 1) / len(tasks))
    return blocks


def series(
    source: PackedRows, row_filter: RowFilter, reduce: Callable[[Array], Array]
) -> Iterator[tuple[Array, Array, Array]]:
    """A second pass: filtered rows of each task reduced (by `reduce`) as soon as they exist.

    Yields:
        Sample indices of the outputs (k,), `reduce(entries (e, k))`, and validity (rows, k).
    """
    per_block = max(1, round(BLOCK_SECONDS / (source.dt * row_filter.decimate)))
    for task in _tasks(source.pieces(), row_filter, per_block):
        filtered, valid = _filtered(source, row_filter, task)
        yield task.first + row_filter.decimate * np.arange(task.count), reduce(filtered), valid


def _tasks(pieces: Sequence[tuple[int, int]], row_filter: RowFilter, per_block: int) -> Iterator[_Task]:
    """Whole blocks of outputs, about `_TASK_SAMPLES` samples each."""
    step = row_filter.decimate
    most = per_block * max(1, _TASK_SAMPLES // (step * per_block))
    for start, stop in pieces:
        outputs = (stop - start + step - 1) // step
        # Centre the outputs, so that both ends of a piece lose alike.
        offset = start + ((stop - start - 1) - (outputs - 1) * step) // 2
        for at in range(0, outputs, most):
            yield _Task((start, stop), offset + at * step, min(most, outputs - at))


def _condense(source: PackedRows, row_filter: RowFilter, task: _Task, per_block: int) -> list[list[Factor]]:
    """Factors per row of one task, one per block."""
    filtered, valid = _filtered(source, row_filter, task)
    layout, result = source.layout, []
    for row in range(len(layout.start) - 1):
        entries = np.arange(layout.start[row], layout.start[row + 1])
        wanted = entries[(layout.columns[entries] != ABSENT) | (entries == entries[-1])]
        factors = []
        for at in range(0, task.count, per_block):
            use = np.flatnonzero(valid[row, at : at + per_block]) + at
            if use.size:
                rows = filtered[np.ix_(wanted, use)].T
                factors.append(Factor(triangle(rows), use.size))
        result.append(factors)
    return result


def _filtered(source: PackedRows, row_filter: RowFilter, task: _Task) -> tuple[Float[Array, "e k"], Array]:
    """Filtered entries at the task's outputs, and which of them rest on enough samples.

    A sample with weight 0 is left out and the kernel rescaled: the same linear map acts on Y and
    on W, so the equations stay exact. The same rule serves the ends of a piece.
    """
    from dynid.conditioning.kernels import decimate

    layout, half, step = source.layout, row_filter.half, row_filter.decimate
    last = task.first + (task.count - 1) * step
    start, stop = max(task.piece[0], task.first - half), min(task.piece[1], last + half + 1)
    sums = np.zeros((layout.n_entries, task.count))
    weight = np.zeros((len(layout.start) - 1, task.count))
    tile = max(256, _TILE_BYTES // (8 * layout.n_entries) // 64 * 64)
    for at, packed, weights in source.rows(start, stop, tile):
        for row in np.flatnonzero(~np.all(weights == 1.0, axis=1)):
            packed[layout.start[row] : layout.start[row + 1]] *= weights[row]
        decimate(packed, row_filter.kernel, at, task.first, step, sums)
        decimate(weights, row_filter.kernel, at, task.first, step, weight)
    valid = weight > 0.5
    scale = np.where(valid, 1.0 / np.where(valid, weight, 1.0), 0.0)
    for k in range(len(weight)):
        sums[layout.start[k] : layout.start[k + 1]] *= scale[k]
    return sums, valid


def _bounded(factors: list[Factor]) -> list[Factor]:
    """Neighbours merged in pairs once there are many: memory does not grow with the log."""
    while len(factors) > MOST_BLOCKS:
        factors = [merge(factors[i : i + 2]) for i in range(0, len(factors), 2)]
    return factors
