"""Prediction of logs: efforts rebuilt from parameters, as logged and as filtered rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.conditioning.lowpass import RowFilter, row_filter
from dynid.conditioning.stream import series
from dynid.projection.model import RowSource
from dynid.regressor.layout import ABSENT
from dynid.statistics.estimate import GroupFit, Signals
from dynid.statistics.fit import percent

_PLOT_POINTS = 1500


@dataclass(frozen=True, eq=False)
class Prediction:
    """Sums of squares over the rows of one log, and thinned signals to look at.

    Attributes:
        residual, measured: Per row, sums of squares, shape (k,), unit of the row squared.
        count: Rows used, shape (k,).
        mean: Mean of the measured side, shape (k,).
    """

    residual: Float[Array, "k"]
    measured: Float[Array, "k"]
    mean: Float[Array, "k"]
    count: Float[Array, "k"]
    signals: Signals

    @property
    def percent(self) -> float:
        """100 |Y - W chi| / |Y| over all rows."""
        return percent(float(np.sqrt(self.residual.sum())), float(np.sqrt(self.measured.sum())))

    def groups(self) -> tuple[GroupFit, ...]:
        """The same for each row, with R^2 about the mean."""
        fits = []
        for k, name in enumerate(self.signals.names):
            n = max(self.count[k], 1.0)
            about_mean = max(self.measured[k] - n * self.mean[k] ** 2, 0.0)
            fits.append(
                GroupFit(
                    name=name,
                    rms=float(np.sqrt(self.residual[k] / n)),
                    residual_percent=percent(
                        float(np.sqrt(self.residual[k])), float(np.sqrt(self.measured[k]))
                    ),
                    r2=float(1.0 - self.residual[k] / about_mean) if about_mean > 0 else 0.0,
                    unit=self.signals.units[k],
                    n_rows=int(self.count[k]),
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
    layout, names, units = source.layout, source.directions.names, source.directions.units
    log, k = source.motion.log, len(names)
    weights = np.where(layout.columns == ABSENT, 0.0, chi[np.maximum(layout.columns, 0)])

    def compare(entries: Float[Array, "e n"]) -> Float[Array, "2 k n"]:
        weighted = entries * weights[:, None]
        predicted = np.add.reduceat(weighted, layout.start[:-1], axis=0)
        return np.stack([entries[layout.start[1:] - 1], predicted])

    total = sum(stop - start for start, stop in source.pieces()) // rows.decimate
    thin = max(1, total // _PLOT_POINTS)
    sums = np.zeros((4, k))
    times, shown = [], []
    for at, (measured, predicted), valid in series(source, rows, compare):
        use = valid.astype(float)
        sums += [
            np.sum(use * (measured - predicted) ** 2, axis=1),
            np.sum(use * measured**2, axis=1),
            np.sum(use * measured, axis=1),
            use.sum(axis=1),
        ]
        hidden = np.where(valid, 1.0, np.nan)
        times.append(log.t[at[::thin]])
        shown.append((np.stack([measured, predicted]) * hidden)[:, :, ::thin])
    series_t, series_y = _joined(times, shown, k)
    signals = Signals(log.name, names, units, series_t, series_y[0].T, series_y[1].T, validation)
    return Prediction(sums[0], sums[1], sums[2] / np.maximum(sums[3], 1.0), sums[3], signals)


def unfiltered(dt: float) -> RowFilter:
    """Rows exactly as logged, every sample."""
    return row_filter(dt, 1)


def _joined(times: list[Array], shown: list[Array], k: int) -> tuple[Array, Array]:
    """Pieces in one series; a NaN separates pieces that do not join."""
    if not times:
        return np.zeros(0), np.zeros((2, k, 0))
    step = np.median(np.diff(times[0])) if len(times[0]) > 1 else 0.0
    t_parts, y_parts = [times[0]], [shown[0]]
    for t, y in zip(times[1:], shown[1:], strict=True):
        if len(t) and abs(t[0] - t_parts[-1][-1]) > 3.0 * step:
            t_parts.append(t[:1])
            y_parts.append(np.full((2, k, 1), np.nan))
        t_parts.append(t)
        y_parts.append(y)
    return np.concatenate(t_parts), np.concatenate(y_parts, axis=2)
