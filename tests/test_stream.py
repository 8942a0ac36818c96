"""Streaming: filtered, decimated rows equal the dense computation, whatever the blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.common import paged
from dynid.conditioning import stream as stream_module
from dynid.conditioning.lowpass import row_filter, window_filter
from dynid.conditioning.stream import compared, keep_sum, series, stream
from dynid.projection.factor import Factor, merge
from dynid.projection.quadrature import QUADRATURES
from dynid.regressor.layout import ABSENT, Layout


class RandomRows:
    """Two rows with two and one parameters, made of fixed random signals; some samples masked."""

    dt = 0.01

    def __init__(self, n: int, pieces: list[tuple[int, int]], masked: slice | None = None) -> None:
        rng = np.random.default_rng(1)
        self.layout = Layout(np.array([0, 3, 5]), np.array([0, 2, ABSENT, 1, ABSENT]))
        self.entries = rng.normal(size=(5, n))
        self.weights = np.ones((2, n))
        if masked is not None:
            self.weights[1, masked] = 0.0
        self._pieces = pieces

    def pieces(self) -> list[tuple[int, int]]:
        return self._pieces

    def rows(self, start: int, stop: int, tile: int):
        for at in range(start, stop, tile):
            part = slice(at, min(at + tile, stop))
            yield at, self.entries[:, part].copy(), np.ascontiguousarray(self.weights[:, part])


def dense(source: RandomRows, rows, piece: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Every output by its definition: weighted kernel, rescaled by the weight it caught."""
    start, stop = piece
    count = (stop - start + rows.decimate - 1) // rows.decimate
    first = start + ((stop - start - 1) - (count - 1) * rows.decimate) // 2
    out, caught = np.zeros((5, count)), np.zeros((2, count))
    for k in range(count):
        centre = first + k * rows.decimate
        at = np.arange(max(start, centre - rows.half), min(stop, centre + rows.half + 1))
        h = rows.kernel[at - centre + rows.half]
        for row, (lo, hi) in enumerate(((0, 3), (3, 5))):
            w = h * source.weights[row, at]
            caught[row, k] = w.sum()
            out[lo:hi, k] = source.entries[lo:hi, at] @ w / (w.sum() if abs(w.sum()) > 1e-9 else 1.0)
    return out, caught > 0.5


@pytest.mark.parametrize("decimate", [1, 3, 10])
@pytest.mark.parametrize("masked", [None, slice(300, 340)])
def test_filtered_rows_equal_the_definition(decimate: int, masked: slice | None) -> None:
    source = RandomRows(1000, [(5, 400), (450, 990)], masked)
    rows = row_filter(source.dt, decimate, None if decimate > 1 else 12.0)
    parts = list(series(source, rows))
    found = np.concatenate([entries for _, entries, _ in parts], axis=1)
    valid = np.concatenate([ok for _, _, ok in parts], axis=1)
    expected = [dense(source, rows, piece) for piece in source.pieces()]
    values = np.concatenate([one[0] for one in expected], axis=1)
    ok = np.concatenate([one[1] for one in expected], axis=1)
    np.testing.assert_array_equal(valid, ok)
    where = np.repeat(ok, [3, 2], axis=0)
    # Only the order of summation differs.
    np.testing.assert_allclose(found[where], values[where], atol=1e-12)


@pytest.mark.parametrize("tile", [7, 64, 1000])
@pytest.mark.parametrize("pairs", [6, 22, 50, 98, 250])
def test_half_a_window_is_half_of_it_in_whatever_order_it_was_added(pairs: int, tile: int) -> None:
    class Tiled(RandomRows):
        def rows(self, start: int, stop: int, _: int):
            return super().rows(start, stop, tile)

    source = Tiled(2 * pairs, [(0, 2 * pairs)], slice(0, pairs))
    rows = window_filter(source.dt, 2 * pairs * source.dt, True, QUADRATURES["simpson"])
    valid = np.concatenate([valid for _, _, valid in series(source, replace(rows, decimate=1))], axis=1)
    border = pairs - 1  # of the mask: half of the window around it is valid
    assert valid[0, border]
    assert not valid[1, border]


@pytest.mark.parametrize("masked", [None, slice(900, 1300)])
def test_a_long_filter_in_two_stages_is_its_kernel_as_straight_lines(monkeypatch, masked) -> None:
    source = RandomRows(6000, [(5, 2900), (3100, 6000)], masked)
    rows = row_filter(source.dt, 10, cutoff=0.2)
    every, _, knots = rows.coarse
    assert every == 10
    values = knots[1:-1]  # padded by one knot on either side
    at = every * (np.arange(len(values)) - len(values) // 2)
    lines = np.interp(np.arange(-rows.half, rows.half + 1), at, values, left=0.0, right=0.0)
    ends = np.maximum(1.0 - (np.abs(np.arange(-rows.half, rows.half + 1)) - at[-1]) / every, 0.0)
    lines = np.where(np.abs(np.arange(-rows.half, rows.half + 1)) > at[-1], values[-1] * ends, lines)
    assert np.abs(lines - rows.kernel).max() < 0.01 * rows.kernel.max()  # 16 lines a period of the cutoff
    monkeypatch.setattr(stream_module, "_MUCH", 0)
    parts = list(series(source, rows))
    pieces = [dense(source, replace(rows, kernel=lines), piece) for piece in source.pieces()]
    values, valid = (np.concatenate(x, axis=1) for x in zip(*pieces, strict=True))
    found, fine = (np.concatenate([part[i] for part in parts], axis=1) for i in (1, 2))
    np.testing.assert_array_equal(fine, valid)
    used = np.repeat(valid, (3, 2), axis=0)
    np.testing.assert_allclose(found[used], values[used], atol=1e-13)  # rounding of sums of 4000 products


def test_rows_of_a_sum_are_the_sum_of_kept_rows() -> None:
    one, other, both = (RandomRows(3000, [(5, 1400), (1500, 3000)], slice(300, 340)) for _ in range(3))
    other.entries = other.entries[:, ::-1].copy()
    both.entries = 3.0 * one.entries - 2.0 * other.entries
    rows = row_filter(one.dt, 10)
    expected, _ = stream(both, rows)
    assert not keep_sum(both, rows, [(3.0, one), (-2.0, other)])  # nothing is kept yet
    for source in (one, other):
        stream(source, rows, keep=True)
    assert keep_sum(both, rows, [(3.0, one), (-2.0, other)])
    both.entries[:] = np.nan  # not read again
    for found, wanted in zip(stream(both, rows)[0], expected, strict=True):
        assert [block[:2] for block in found] == [block[:2] for block in wanted]
        for (_, _, new), (_, _, old) in zip(found, wanted, strict=True):
            np.testing.assert_allclose(new.R.T @ new.R, old.R.T @ old.R, atol=1e-12)  # rounding


def test_triangles_of_many_rows_hold_all_inner_products() -> None:
    """Rows that are merged in parts, at borders of factors and within them."""
    rng = np.random.default_rng(8)
    parts = [rng.normal(size=(n, 40)) for n in (30, 1700, 12, 2100, 400)]
    merged = merge([Factor(rows, len(rows)) for rows in parts])
    every = np.concatenate(parts)
    assert merged.n_rows == len(every)
    assert merged.R.shape == (40, 40)
    np.testing.assert_allclose(merged.R.T @ merged.R, every.T @ every, atol=1e-10)  # rounding of 4242 rows


def test_factors_hold_all_inner_products_of_the_rows() -> None:
    source = RandomRows(3000, [(0, 3000)], slice(100, 150))
    rows = row_filter(source.dt, 5)
    blocks, seconds = stream(source, rows)
    assert seconds == pytest.approx(0.25)
    parts = list(series(source, rows))
    entries = np.concatenate([one for _, one, _ in parts], axis=1)
    valid = np.concatenate([ok for _, _, ok in parts], axis=1)
    for row, (lo, hi) in enumerate(((0, 3), (3, 5))):
        A = entries[lo:hi, valid[row]].T
        factor = merge([factor for _, _, factor in blocks[row]])
        assert factor.n_rows == len(A)
        # R^T R = A^T A up to rounding of sums over 600 rows.
        np.testing.assert_allclose(factor.R.T @ factor.R, A.T @ A, atol=1e-10)


@pytest.mark.parametrize("place", ["memory", "file", "none"])
def test_rows_that_are_kept_give_the_same_factors_and_comparisons(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    source, chi = (
        RandomRows(40_000, [(0, 20_000), (20_500, 40_000)], slice(100, 150)),
        np.array([1.0, 2.0, 3.0]),
    )
    rows = row_filter(source.dt, 10)
    plain, once = stream(source, rows)[0], list(compared(source, rows, chi))
    other = RandomRows(40_000, source.pieces(), slice(100, 150))
    if place != "memory":
        for module in (paged, stream_module):
            monkeypatch.setattr(module, "LARGE", 1)
    if place == "none":
        monkeypatch.setattr(paged, "_place", lambda size: None)
    stream(other, rows, keep=True)
    if place != "none":
        other.entries = None  # nothing is computed again
    for first, again in zip(plain, stream(other, rows, keep=True)[0], strict=True):
        assert [block[:2] for block in first] == [block[:2] for block in again]
        for (*_, x), (*_, y) in zip(first, again, strict=True):
            np.testing.assert_array_equal(x.R, y.R)
    for (at, *values, valid), (at_again, *values_again, valid_again) in zip(
        once, compared(other, rows, chi), strict=True
    ):
        np.testing.assert_array_equal(at, at_again)
        np.testing.assert_array_equal(valid, valid_again)
        # Filtered sums instead of sums of filtered entries: rounding of numbers of order one.
        np.testing.assert_allclose(values, values_again, atol=1e-13)


def test_threads_and_many_blocks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    source = RandomRows(40_000, [(0, 40_000)])
    rows = row_filter(source.dt, 4)
    one, _ = stream(source, rows, threads=1)
    two, _ = stream(source, rows, threads=2)
    for a, b in zip(one, two, strict=True):
        assert [place[:2] for place in a] == [place[:2] for place in b]
        for (*_, x), (*_, y) in zip(a, b, strict=True):
            np.testing.assert_array_equal(x.R, y.R)
    monkeypatch.setattr(stream_module, "MOST_BLOCKS", 16)
    few, seconds = stream(source, rows)
    assert all(len(blocks) <= 16 for blocks in few)
    assert 16 * seconds >= 400.0  # the whole log
    for a, b in zip(one, few, strict=True):
        R, S = (merge([factor for *_, factor in row]).R for row in (a, b))
        # The same rows merged in another order: rounding only.
        np.testing.assert_allclose(R.T @ R, S.T @ S, rtol=1e-11, atol=1e-8)


@pytest.mark.parametrize("most", [384, 12])
def test_blocks_of_one_moment_carry_one_number(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """A row without a valid sample for a while skips the numbers of that while, merged or not."""
    monkeypatch.setattr(stream_module, "MOST_BLOCKS", most)
    source = RandomRows(3000, [(0, 1400), (1500, 3000)], slice(400, 800))
    rows = row_filter(source.dt, 5)
    (whole, masked), seconds = stream(source, rows)
    starts = {number: seconds * number for _, number, _ in whole}
    valid = {number for _, number, _ in masked}
    assert len(whole) <= most
    assert valid < set(starts)
    missing = sorted(starts[number] for number in set(starts) - valid)
    # 4 s to 8 s are masked; blocks that the mask only touches keep rows.
    assert missing[0] >= 4.0 - 1e-9
    assert missing[-1] + seconds <= 8.0 + 1e-9
    assert len(missing) >= 4.0 / seconds - 2
    for one in (whole, masked):
        places = [place[:2] for place in one]
        assert {run for run, _ in places} == {0, 1}
        assert len(set(places)) == len(places) == len(one)


def test_inflation_is_that_of_filtered_white_noise() -> None:
    rng = np.random.default_rng(2)
    for rows in (
        row_filter(0.001, 10),
        row_filter(0.001, 10, 20.0),
        row_filter(0.001, 10, 20.0, butterworth=4),
    ):
        noise = rng.normal(size=400_000)
        filtered = np.convolve(noise, rows.kernel, mode="valid")[:: rows.decimate]
        # Sums over 100 neighbours against independent ones: the ratio of variances is the inflation.
        sums = filtered[: len(filtered) // 100 * 100].reshape(-1, 100).sum(axis=1)
        measured = sums.var() / (100 * filtered.var())
        # 400 sums: their variance is known to 7 %, two of these and the window's edge make 20 %.
        assert measured == pytest.approx(rows.inflation, rel=0.2)


def test_butterworth_rows_have_the_response_of_a_forward_backward_filter() -> None:
    from scipy.signal import butter, sosfiltfilt

    rows = row_filter(0.002, 1, 15.0, butterworth=4)
    x = np.random.default_rng(3).normal(size=3000)
    sections = butter(4, 15.0, fs=500.0, output="sos")
    expected = sosfiltfilt(sections, x)[500:-500]
    found = np.convolve(x, rows.kernel, mode="same")[500:-500]
    # The kernel is cut at 1e-5 of its peak.
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_of_a_long_log_some_parts_all_over_it_are_looked_at() -> None:
    source, short = RandomRows(200_000, [(0, 200_000)]), RandomRows(3000, [(0, 3000)])
    rows, most = row_filter(source.dt, 4), 50_000
    every, some = stream(source, rows)[0], stream(source, rows, most=most)[0]
    seen, whole = (sum(factor.n_rows for *_, factor in blocks[0]) for blocks in (some, every))
    assert whole == 50_000
    assert 4 * seen <= most + stream_module._TASK_SAMPLES
    numbers = {number for _, number, _ in some[0]}
    assert max(numbers) > 0.75 * max(number for _, number, _ in every[0])  # one part in four, to the end
    # A log shorter than a part is looked at as a whole: none is left out.
    assert sum(factor.n_rows for *_, factor in stream(short, rows, most=100)[0][0]) == 750
