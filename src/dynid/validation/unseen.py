"""Error of every effort on motion that the fit has not seen, and the noise floor it cannot go below.

Validation logs are the best judges. Without them, contiguous parts of the logs are left out in turn. W and
Y of a part are in its triangular factors, so leaving it out is one more small least-squares problem:

    chi_c = argmin sum_(b not in c) |Y_b - W_b chi|^2        rho_c = Y_c - W_c chi_c

The noise floor is what noise of the measured side leaves behind the row filter h,

    sigma_floor = sigma |h|,     sigma = median |k * Y| / (0.6745 |k|)

with a kernel k that removes the motion: the third difference from sample to sample (white noise), or a band
just above that of the rows, of Y - W chi instead of Y (coloured noise); the latter counts
where it is clearly larger. The median ignores reversals. Noise is a part of what the fit leaves: vibration
above the rows does not make the floor larger than that. Where the estimate comes near that limit it may be
vibration altogether. Then only as much of the residual counts as noise as its autocorrelation r_k supports:
third differences of the rows see the part that has no memory beyond that of the row filter (r_k of h alone),

    sigma_floor^2 <= sigma_rho^2 (1 - 1.5 r_1 + 0.6 r_2 - 0.1 r_3) / (the same of h)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dynid.checks.fault_columns import spread_windows
from dynid.common.arrays import Array, Float
from dynid.conditioning.lowpass import RowFilter, row_filter
from dynid.conditioning.rewritten import windowed
from dynid.conditioning.stream import compared
from dynid.projection.factor import orthonormal_map
from dynid.projection.model import RowSource
from dynid.statistics.clusters import equal_parts
from dynid.statistics.estimate import Validation
from dynid.statistics.estimate_parts import NOT_JUDGED, JointVerdict, Signals, Verdict, model_error, peak_of
from dynid.statistics.prediction import unfiltered
from dynid.validation.likelihood import residuals_of

if TYPE_CHECKING:
    from dynid.fit import Fit

PARTS = 8  # left out in turn
_MOST_SAMPLES = 4096
_DETERMINED = 1e-8  # of the largest singular value of all parts; of their information, which others have
_WINDOW = 16  # times the kernel: noise is taken as equally large for so long
_NORMAL = 0.6745  # median of |x| of a normal x, in parts of its deviation
_DIFFERENCE = np.array([1.0, -3.0, 3.0, -1.0])
_BAND = (1.3, 2.6)  # times the cutoff of the rows
_COLOURED = 1.25  # times white noise: smaller differences are scatter of the two estimates
_AUTOCORRELATION = np.convolve(_DIFFERENCE, _DIFFERENCE[::-1])[3:] * [1.0, 2.0, 2.0, 2.0] / 20.0
_NEAR = 0.9  # of the residual: a floor above may be vibration above the rows
_NO_FLOOR = 0.0, 1.0  # of a row that is not in the fit
_WHOLE = 1.0 - 1e-9  # of a kernel that a gap would let motion through
_PART = 0.25  # of a kernel for residuals, which have little motion


def joint_error(
    name: str, unit: str, error: float, bias: float | None, peak: float, floor: float
) -> JointVerdict:
    """One row of the model on unseen data, not yet judged.

    Args:
        error: Rms of measured minus predicted, in `unit`.
        bias: Mean of the same, in `unit`; None where only sums of squares are known.
        peak: `peak_of` the measured values, in `unit`.
        floor: Noise floor, in `unit`.
    """
    return JointVerdict(name, "", error, unit, model_error(error, floor, peak), floor, bias, peak)


def unseen_errors(fit: Fit, signals: Sequence[Signals], validation: Sequence[Validation]) -> Verdict:
    """Errors of every row, not yet judged.

    On the independent validation logs, else on parts of the logs that are left out in turn.

    Args:
        fit: To all logs.
        signals: Of the logs of the fit, then of the validation logs.
        validation: Of the validation logs, in the same order.
    """
    fitted = [item for item in signals if not item.validation]
    held = [item for item in signals if item.validation]
    fresh = [item for item, judged in zip(held, validation, strict=True) if judged.independent]
    floors = _floors(fit, fitted) if fit.problem.case.is_series else {}
    if fresh:
        names_of = enumerate(fresh[0].names)
        rows = [_of_signals(name, k, fresh, floors.get(name, _NO_FLOOR)) for k, name in names_of]
        names = ", ".join(f"'{item.log}'" for item in fresh)
        judged_on = f"validation log{'s' if len(fresh) > 1 else ''} {names}"
        return replace(NOT_JUDGED, judged_on=judged_on, joints=tuple(rows))
    errors = left_out_errors(fit)
    rows = []
    for name, unit, peak in _peaks(fitted, fit):
        if name in errors:
            floor = _floor(floors.get(name, _NO_FLOOR), errors[name])
            rows.append(joint_error(name, unit, errors[name], None, peak, floor))
    judged_on = f"{PARTS} parts of the logs, each left out of the fit in turn"
    return replace(NOT_JUDGED, judged_on=judged_on, joints=tuple(rows))


def _floors(fit: Fit, fitted: Sequence[Signals]) -> dict[str, tuple[float, float]]:
    """Noise floor of each group of rows in its unit, and the part of any rms error that it may be."""
    rms, _, _ = residuals_of(fit.data.source, fit.chi)
    rows = sum(group.n_rows for group in fit.data.source.groups)
    kept = np.sqrt(max(rows - fit.data.S.shape[1], 1) / max(rows, 1))  # what parameters leave of the noise
    floors = noise_floors(fit.problem.sources, fit.problem.filters, fit.chi)
    limited = {}
    for name, floor in floors.items():
        most = float(rms.get(name, np.inf) / kept)
        part = _memoryless(fit, fitted, name) if floor > _NEAR * most else 1.0
        limited[name] = min(floor, part * most), part
    return limited


def _memoryless(fit: Fit, fitted: Sequence[Signals], name: str) -> float:
    """The part of a residual's rms that may be noise, from its autocorrelation: 1 for filtered noise."""
    filters, groups = fit.problem.filters, fit.problem.directions.group_names
    rows = [k for k, label in enumerate(groups) if label == name]
    squares, weights = 0.0, 0
    for part, rows_filter in zip(fitted, filters, strict=False):
        lags = len(_AUTOCORRELATION)
        if part.memory is None or part.memory.shape[1] < lags or not part.n_rows:
            continue
        h, step = np.convolve(rows_filter.kernel, rows_filter.within), rows_filter.decimate
        shifted = [h[k * step :] @ h[: max(len(h) - k * step, 0)] for k in range(lags)]
        white = float(_AUTOCORRELATION @ shifted) / float(h @ h)
        seen = float(np.mean(part.memory[rows, :lags] @ _AUTOCORRELATION))
        scatter = float(np.linalg.norm(_AUTOCORRELATION[1:])) / np.sqrt(part.n_rows)  # of a finite log
        squares += part.n_rows * min((seen + scatter) / white, 1.0)
        weights += part.n_rows
    return float(np.sqrt(max(squares / weights, 0.0))) if weights else 1.0


def _floor(limited: tuple[float, float], error: float) -> float:
    """A noise floor that is a part of an rms error: no larger than that."""
    floor, part = limited
    return min(floor, part * error) if part < 1.0 else floor


def _of_signals(name: str, k: int, signals: Sequence[Signals], limited: tuple[float, float]) -> JointVerdict:
    measured = np.concatenate([part.measured[:, k] for part in signals])
    error = measured - np.concatenate([part.predicted[:, k] for part in signals])
    known = np.isfinite(error)
    if not known.any():
        return joint_error(name, signals[0].units[k], 0.0, 0.0, 0.0, limited[0])
    rms = float(np.sqrt(np.mean(error[known] ** 2)))
    peak = peak_of(measured[known])
    floor = _floor(limited, rms)
    return joint_error(name, signals[0].units[k], rms, float(np.mean(error[known])), peak, floor)


def _peaks(signals: Sequence[Signals], fit: Fit) -> Iterator[tuple[str, str, float]]:
    """Name, unit and peak of each group of rows."""
    groups = fit.problem.directions.group_names
    for name in dict.fromkeys(groups):
        rows = [k for k, label in enumerate(groups) if label == name]
        parts = [item.measured[:, rows] for item in signals if item.measured.size]
        peak = peak_of(np.concatenate([part.ravel() for part in parts])) if parts else 0.0
        yield name, fit.problem.directions.units[rows[0]], peak


def left_out_errors(fit: Fit) -> dict[str, float]:
    """Rms of every group of rows, predicted by a fit of the other parts, in the unit of the rows.

    Combinations that the other parts do not determine keep the values of the whole fit. U are the rows in
    coordinates in which those of all parts are orthonormal: normal equations of most of them lose few digits.
    """
    parts = _parts(fit)
    products = {part: np.sum([U.T @ U for _, _, U in rows], axis=0) for part, rows in parts.items()}
    squares: dict[str, float] = {}
    for part, members in parts.items():
        others = [product for other, product in products.items() if other != part]
        move = _solved(np.sum(others, axis=0)) if others else np.zeros(len(products[part]) - 1)
        for name, weight, U in members:
            error = (U[:, -1] - U[:, :-1] @ move) / weight
            squares[name] = squares.get(name, 0.0) + float(error @ error)
    counts: dict[str, int] = {}
    for group in fit.data.source.groups:
        counts[group.name] = counts.get(group.name, 0) + group.n_rows
    return {name: float(np.sqrt(total / max(counts[name], 1))) for name, total in squares.items()}


def _parts(fit: Fit) -> dict[int, list[tuple[str, float, Float[Array, "r v1"]]]]:
    """Of each part: group, weight, and weighted rows [W S root, Y - W chi] of its blocks."""
    data, chi = fit.data, fit.chi
    S = data.S if fit.reduced is None else data.S[:, list(fit.reduced.kept)]
    groups = data.source.groups
    squares = [group.squares(chi)[0] / max(group.n_rows, 1) for group in groups]
    weights = np.array([1.0 / np.sqrt(square) if square > 0.0 else 1.0 for square in squares])
    S = S @ orthonormal_map(data.source.factor(weights).W @ S, _DETERMINED)
    labels = equal_parts(groups, PARTS)
    by_part: dict[int, list[tuple[str, float, Array]]] = {}
    for group, weight in zip(groups, weights.tolist(), strict=True):
        R, parts = group.stretches(labels)
        error = R[:, -1] - R[:, :-1] @ chi[group.columns]
        rows = weight * np.column_stack([R[:, :-1] @ S[group.columns], error])
        for part, at, _ in parts:
            by_part.setdefault(part, []).append((group.name, weight, rows[at]))
    return by_part


def _solved(product: Float[Array, "u1 u1"]) -> Float[Array, "u"]:
    """Least-squares change of the parameters, from [U Y]^T [U Y]."""
    values, vectors = np.linalg.eigh(product[:-1, :-1])
    kept = vectors[:, values > _DETERMINED]
    return np.asarray(kept @ ((kept.T @ product[:-1, -1]) / values[values > _DETERMINED]))


def noise_floors(
    sources: Sequence[RowSource], filters: Sequence[RowFilter], chi: Float[Array, "p"]
) -> dict[str, float]:
    """Noise floor of each group of rows behind the row filter, in the unit of the rows.

    Args:
        sources: Rows of every log.
        filters: Their filters.
        chi: Standard parameters of the estimate, shape (p,), SI.
    """
    levels: dict[str, list[float]] = {}
    for source, rows in zip(sources, filters, strict=True):
        passed = float(np.linalg.norm(np.convolve(rows.kernel, rows.within)))
        measured, residual, used = _as_logged(source, chi)
        white, band = _density(measured, used, _DIFFERENCE, _WHOLE), _above(rows, source.dt)
        # A model that is wrong may leave anything: never more than the measured side itself has there.
        coloured = np.minimum(*(_density(signal, used, band, _PART) for signal in (measured, residual)))
        sigmas = np.where(coloured > _COLOURED * white, coloured, white).tolist()
        for name, sigma in zip(source.directions.group_names, sigmas, strict=True):
            levels.setdefault(name, []).append(sigma * passed)
    return {name: float(np.sqrt(np.mean(np.square(values)))) for name, values in levels.items()}


_Parts = list[Float[Array, "k _"]]  # of different lengths


def _as_logged(source: RowSource, chi: Float[Array, "p"]) -> tuple[_Parts, _Parts, _Parts]:
    """The measured side of every row, its residual, and 1 where it is used, not filtered, in some windows.

    Rows that the mask excludes are zero.
    """
    some = windowed(source, spread_windows(source.pieces(), _MOST_SAMPLES))
    every = compared(some, unfiltered(source.dt), chi)
    triples = [(Y, Y - W_chi, np.asarray(valid, float)) for _, Y, W_chi, valid in every]
    measured, residual, used = zip(*triples, strict=True) if triples else ((), (), ())
    return list(measured), list(residual), list(used)


def _above(rows: RowFilter, dt: float) -> Float[Array, "h"]:
    """A band just above that of the rows: there is little motion, and noise is about as dense as below."""
    if rows.cutoff is None or _BAND[1] * rows.cutoff * dt >= 0.5:
        return _DIFFERENCE
    low, high = (row_filter(dt, 1, times * rows.cutoff).kernel for times in _BAND)
    band = -low
    more = (len(low) - len(high)) // 2
    band[more : more + len(high)] += high
    return band


def _density(parts: _Parts, used: _Parts, kernel: Float[Array, "h"], least: float) -> Float[Array, "k"]:
    """Deviation of white noise with the same density as the signals have in the band of a kernel.

    Args:
        used: 1 for samples that count; the others are zero in `parts`.
        least: Of the squared kernel: an output that uses less is left out, others are scaled to the whole.
    """
    sizes = []
    for signal, mask in zip(parts, used, strict=True):
        if signal.shape[1] < len(kernel):
            continue
        share = _along(mask, kernel**2) / float(kernel @ kernel)
        seen = share >= least
        sizes.append(
            np.where(seen, np.abs(_along(signal, kernel)), np.nan) / np.sqrt(np.where(seen, share, 1.0))
        )
    if not sizes:
        return np.zeros(len(parts[0]) if parts else 0)
    size = np.concatenate(sizes, axis=1)
    return np.asarray(_level(size, _WINDOW * len(kernel)) / (_NORMAL * np.linalg.norm(kernel)))


def _level(size: Float[Array, "k n"], width: int) -> Float[Array, "k"]:
    """Rms over windows of the median of each; 0 without a value.

    Noise of a row with directions that change (power: noise of a motor times its speed) changes its size with
    them: one median of all would be that of slow motion.
    """
    windows = np.array_split(size, max(1, size.shape[1] // width), axis=1)
    counts = np.stack([np.count_nonzero(~np.isnan(window), axis=1) for window in windows], axis=1)
    counts[2 * counts < counts.max(axis=1, keepdims=True)] = 0  # too few for a median
    medians = np.zeros(counts.shape)
    for i, window in enumerate(windows):
        ordered, last = np.sort(window, axis=1), counts[:, i, None] - 1  # NaN behind all values
        middle = np.take_along_axis(ordered, np.hstack([last // 2, (last + 1) // 2]), axis=1)
        medians[:, i] = np.where(last[:, 0] >= 0, middle.mean(axis=1), 0.0)
    return np.asarray(np.sqrt(np.sum(counts * medians**2, axis=1) / np.maximum(counts.sum(axis=1), 1)))


def _along(rows: Float[Array, "k _"], kernel: Float[Array, "h"]) -> Float[Array, "k _"]:
    return np.stack([np.convolve(row, kernel, mode="valid") for row in rows])
