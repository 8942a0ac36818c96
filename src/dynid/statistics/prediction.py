"""Prediction of logs: efforts rebuilt from parameters, as logged and as filtered rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.conditioning.lowpass import RowFilter, row_filter
from dynid.conditioning.stream import compared
from dynid.projection.model import PackedRows, RowSource
from dynid.statistics.assemble import percent
from dynid.statistics.estimate import GroupFit, RunFit
from dynid.statistics.estimate_parts import Signals

_PLOT_POINTS = 1500
_LAGS = 128  # of the autocorrelation
_LEAST_PAIRS = 30


@dataclass(frozen=True, eq=False)
class Prediction:
    """Sums of squares over the rows of one log, and thinned signals to look at.

    Attributes:
        residual, measured: Per row, sums of squares, shape (k,), unit of the row squared.
        count: Rows used, shape (k,).
        mean: Mean of the measured side, shape (k,).
        by_run: Sums of squares of residuals and measured side over all rows, and samples, shape (s, 3).
    """

    residual: Float[Array, "k"]
    measured: Float[Array, "k"]
    mean: Float[Array, "k"]
    count: Float[Array, "k"]
    signals: Signals
    by_run: Float[Array, "s 3"]
    starts: Float[Array, "s"]

    @property
    def percent(self) -> float:
        """100 |Y - W chi| / |Y| over all rows."""
        return percent(float(np.sqrt(self.residual.sum())), float(np.sqrt(self.measured.sum())))

    def runs(self) -> tuple[RunFit, ...]:
        """Every run on its own, eq. (50) of [CableRobot]."""
        return tuple(
            RunFit(
                run=i + 1,
                t=float(start),
                sigma_perp=float(np.sqrt(left / max(n, 1.0))),
                residual_percent=percent(float(np.sqrt(left)), float(np.sqrt(whole))),
                n_samples=int(n),
            )
            for i, (start, (left, whole, n)) in enumerate(zip(self.starts, self.by_run, strict=True))
        )

    def groups(self, names: Sequence[str] | None = None) -> tuple[GroupFit, ...]:
        """The same for each row, with R^2 about the mean.

        Args:
            names: Of the group that each row belongs to; default: a row is a group.
        """
        names = self.signals.names if names is None else names
        fits = []
        for name in dict.fromkeys(names):
            rows = [k for k, label in enumerate(names) if label == name]
            left, whole, n = (float(x[rows].sum()) for x in (self.residual, self.measured, self.count))
            about_mean = max(whole - float(np.sum(self.count[rows] * self.mean[rows] ** 2)), 0.0)
            fits.append(
                GroupFit(
                    name=name,
                    rms=float(np.sqrt(left / max(n, 1.0))),
                    residual_percent=percent(float(np.sqrt(left)), float(np.sqrt(whole)))
                    if whole > 0
                    else float("nan"),
                    r2=1.0 - left / about_mean if about_mean > 0 else float("nan"),
                    unit=self.signals.units[rows[0]],
                    n_rows=int(n),
                )
            )
        return tuple(fits)


def predict_rows(
    source: RowSource,
    rows: RowFilter,
    chi: Float[Array, "p"],
    *,
    validation: bool = False,
) -> Prediction:
    """Compare W chi with Y along a log, in a second pass over it.

    Args:
        chi: Standard parameters that give the same efforts as the estimate, shape (p,), SI.
        rows: The filter of the rows; see `unfiltered` for efforts as logged.
        validation: Marks the signals for the report.
    """
    names, units = source.directions.names, source.directions.units
    log, k = source.motion.log, len(names)
    sums = np.zeros((4, k))
    shown: list[tuple[Array, Array]] = []
    step = plot_step(source, rows)
    firsts = np.array([start for start, _ in source.pieces()], dtype=int)
    by_run = np.zeros((len(firsts), 3))
    memory = np.zeros((2, k, _LAGS))
    for at, measured, predicted, valid in compared(source, rows, chi):
        use = valid.astype(float)
        left, whole = use * (measured - predicted) ** 2, use * measured**2
        run = int(np.searchsorted(firsts, at[0], side="right")) - 1 if len(at) else 0
        by_run[run] += [left.sum(), whole.sum(), np.count_nonzero(valid.any(axis=0))]
        sums += [
            left.sum(axis=1),
            whole.sum(axis=1),
            np.sum(use * measured, axis=1),
            use.sum(axis=1),
        ]
        memory += _lagged(np.where(valid, measured - predicted, 0.0), use)
        hidden = np.where(valid, 1.0, np.nan)
        both = np.concatenate([measured * hidden, predicted * hidden])
        shown.append((log.t[at[::step]], both[:, ::step].copy()))  # a view would keep all of them
    t, y = joined(shown, 2 * k)
    signals = Signals(
        log.name,
        names,
        units,
        t,
        y[:k].T,
        y[k:].T,
        validation,
        memory=_autocorrelation(memory),
        row_dt=source.dt * rows.decimate,
        n_rows=int(sums[3].max(initial=0.0)),
    )
    mean = sums[2] / np.maximum(sums[3], 1.0)
    return Prediction(sums[0], sums[1], mean, sums[3], signals, by_run, log.t[firsts])


def _lagged(residual: Float[Array, "k n"], use: Float[Array, "k n"]) -> Float[Array, "2 k l"]:
    """Sums of products of residuals, and of pairs, at lags 0 .. _LAGS - 1."""
    n = residual.shape[1]
    size = 1 << max(1, 2 * n - 1).bit_length()
    F = np.fft.rfft(np.stack([residual, use]), size)
    sums = np.fft.irfft(np.abs(F) ** 2, size)[:, :, : min(n, _LAGS)]
    return np.pad(sums, ((0, 0), (0, 0), (0, _LAGS - sums.shape[2])))


def _autocorrelation(sums: Float[Array, "2 k l"]) -> Float[Array, "k m"]:
    """Autocorrelation from sums of products and of pairs; lags with few pairs are cut off."""
    products, pairs = sums
    enough = (pairs >= max(_LEAST_PAIRS, 0.1 * float(pairs.max(initial=0.0)))).all(axis=0)
    mean = products / np.maximum(pairs, 1.0)
    known = mean[:, : int(np.argmin(enough)) if not enough.all() else _LAGS]
    size = np.maximum(known[:, :1], np.finfo(float).tiny)
    return np.asarray(known / size)


def unfiltered(dt: float) -> RowFilter:
    """Rows exactly as logged, every sample."""
    return row_filter(dt, 1)


def plot_step(source: PackedRows, rows: RowFilter) -> int:
    """Every which output of a filter is drawn: the same source and filter give the same samples."""
    total = sum(stop - start for start, stop in source.pieces()) // rows.decimate
    return max(1, total // _PLOT_POINTS)


def joined(
    pieces: Sequence[tuple[Float[Array, "_"], Float[Array, "c _"]]], count: int
) -> tuple[Float[Array, "m"], Float[Array, "{count} m"]]:
    """Times and signals of all pieces in one series; a NaN separates pieces that do not join."""
    if not pieces:
        return np.zeros(0), np.zeros((count, 0))
    first = pieces[0][0]
    step = np.median(np.diff(first)) if len(first) > 1 else 0.0
    times, signals = [first], [pieces[0][1]]
    for t, y in pieces[1:]:
        if len(t) and abs(t[0] - times[-1][-1]) > 3.0 * step:
            times.append(t[:1])
            signals.append(np.full((count, 1), np.nan))
        times.append(t)
        signals.append(y)
    return np.concatenate(times), np.concatenate(signals, axis=1)
