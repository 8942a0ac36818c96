"""`parameters.csv`: one row per parameter; `signals.csv`: one row per sample. For spreadsheets.

Parameters and predictions as data frames.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.base.grouping import readable
from dynid.common.arrays import Array, Float
from dynid.common.csv_text import RowWriter
from dynid.estimator.solution import History
from dynid.report.json_file import plain
from dynid.statistics.correlation import pandas
from dynid.statistics.estimate import Estimate
from dynid.statistics.estimate_parts import Signals

if TYPE_CHECKING:
    from dynid.prediction.predict import EffortPrediction


_COLUMNS = (
    "name",
    "unit",
    "value",
    "sigma",
    "sigma_rel_percent",
    "ci95_low",
    "ci95_high",
    "essential",
    "prior",
    "truth",
    "grouping",
)
_RELATION_DIGITS = 6  # of the coefficients of a grouping, which a reader sees; `result.json` has all
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would execute such text


def parameters_csv(estimate: Estimate) -> str:
    """The parameters as CSV text: comma, decimal point, full precision, empty where unknown."""
    truth = estimate.truth or {}
    text = io.StringIO()
    writer = RowWriter(text)
    writer.writerow(_COLUMNS)
    for p in estimate.parameters:
        low, high = p.ci95 or (None, None)
        numbers = [plain(x) for x in (p.value, p.sigma, p.sigma_rel_percent, low, high)]
        essential = "true" if p.essential else "false"
        known = [plain(p.prior), plain(truth.get(p.name))]
        relation = harmless(readable(p.grouping, _RELATION_DIGITS))
        writer.writerow([harmless(p.name), p.unit, *numbers, essential, *known, relation])
    return text.getvalue()


def table_csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Any table as CSV text; text is made harmless, None is empty."""
    text = io.StringIO()
    writer = RowWriter(text)
    writer.writerow([harmless(name) for name in head])
    for row in rows:
        writer.writerow([harmless(cell) if isinstance(cell, str) else plain(cell) for cell in row])
    return text.getvalue()


def signals_csv(signals: Sequence[Signals]) -> str:
    """The signals of all logs as CSV text, SI units; empty where a row was masked.

    Per equation `measured_NAME` and `predicted_NAME`; of redundantly actuated robots also, per motor,
    `tau_NAME`, `tau_rebuilt_NAME` and `tau_min_norm_NAME`, and the internal tension `c_1`, ...; of closed
    robots `closure_residual`, `singularity_distance` (zero at dead points, one far from them) and, where more
    is measured than there are freedoms, `misfit_NAME`.
    """
    tables = [_signal_columns(item) for item in signals]
    names = list(dict.fromkeys(name for table in tables for name in table))
    text = io.StringIO()
    writer = RowWriter(text)
    writer.writerow(["log", "use", "t", *map(harmless, names)])
    for log_signals, table in zip(signals, tables, strict=True):
        head = [harmless(log_signals.log), "validate" if log_signals.validation else "identify"]
        absent = np.full(len(log_signals.t), np.nan)
        columns = [log_signals.t, *(table.get(name, absent) for name in names)]
        for row in np.column_stack(columns).tolist():
            writer.writerow(head + [f"{x:.10g}" if isfinite(x) else "" for x in row])
    return text.getvalue()


def read_signals(file: Path, units: Mapping[str, str]) -> tuple[Signals, ...]:
    """Measured and predicted efforts of `signals.csv`; none where there is no such file, or another one.

    Args:
        file: As `signals_csv` writes it.
        units: Of the equations, by name.
    """
    try:
        head, *rows = csv.reader(io.StringIO(file.read_text(encoding="utf-8"), newline=""))
        if head[:3] != ["log", "use", "t"]:
            return ()
        names = [name for name in units if f"measured_{name}" in head and f"predicted_{name}" in head]
        places = [2, *(head.index(f"{kind}_{name}") for kind in ("measured", "predicted") for name in names)]
        logs: dict[tuple[str, str], list[list[float]]] = {}
        for row in rows:
            values = [float(row[place]) if row[place] else nan for place in places]
            logs.setdefault((row[0], row[1]), []).append(values)
    except (OSError, ValueError, IndexError, csv.Error):
        return ()
    made = []
    for (log, use), found in logs.items() if names else ():
        t, measured, predicted = np.split(np.array(found), [1, 1 + len(names)], axis=1)
        of_names = tuple(units[name] for name in names)
        made.append(Signals(log, tuple(names), of_names, t[:, 0], measured, predicted, use == "validate"))
    return tuple(made)


def history_csv(history: History) -> str:
    """Parameters over time as CSV text: one row per update, `NAME` and `sigma_NAME` in SI, empty if unknown.

    `changed` is 1 at the first update after a change; `innovation` is the squared innovation over the
    variance so far.
    """
    text = io.StringIO()
    writer = RowWriter(text)
    columns = [label for name in history.names for label in (name, f"sigma_{name}")]
    writer.writerow(["log", "seconds", "innovation", "changed", *map(harmless, columns)])
    starts = [change.seconds for change in history.changes]
    before = 0.0
    for k, end in enumerate(history.seconds.tolist()):
        changed = any(before <= start < end for start in starts)
        values = np.column_stack([history.chi[k], history.sigma[k]]).ravel().tolist()
        head = [harmless(history.logs[k]), _cell(end), _cell(float(history.ratio[k])), int(changed)]
        writer.writerow([*head, *map(_cell, values)])
        before = end
    return text.getvalue()


def _signal_columns(signals: Signals) -> dict[str, Float[Array, "n"]]:
    """Columns of one log by name."""
    columns: dict[str, Float[Array, "n"]] = {}
    for i, name in enumerate(signals.names):
        columns[f"measured_{name}"] = signals.measured[:, i]
        columns[f"predicted_{name}"] = signals.predicted[:, i]
    if signals.tension is not None:
        motors = signals.tension
        sets = {"tau": motors.measured, "tau_rebuilt": motors.rebuilt, "tau_min_norm": motors.min_norm}
        for label, values in sets.items():
            columns |= {f"{label}_{name}": values[:, i] for i, name in enumerate(motors.names)}
        columns |= {f"c_{i + 1}": motors.c[:, i] for i in range(motors.c.shape[1])}
    return columns | dict(signals.closure)


def _cell(x: float) -> str:
    """Ten digits: more than any sensor, and small enough to open."""
    return f"{x:.10g}" if isfinite(x) else ""


def harmless(text: str) -> str:
    """Text that no spreadsheet interprets as a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def parameter_frame(estimate: Estimate, grouping: bool = False) -> Any:
    """One row per parameter, with its name as index; SI units.

    Columns without content (`prior`, `essential`) are left out, and grouping relations unless they are asked
    for: pandas would hide sigma and interval to show them.
    """
    rows = [
        {
            "value": entry.value,
            "sigma": entry.sigma,
            "low95": None if entry.ci95 is None else entry.ci95[0],
            "high95": None if entry.ci95 is None else entry.ci95[1],
            "unit": entry.unit,
            "prior": entry.prior,
            "essential": entry.essential,
            "grouping": entry.grouping,
        }
        for entry in estimate.parameters
    ]
    index = pandas().Index([entry.name for entry in estimate.parameters], name="parameter")
    frame = pandas().DataFrame(rows, index=index)
    if not rows:
        return frame
    frame = frame.astype(dict.fromkeys(["value", "sigma", "low95", "high95", "prior"], float))
    empty = {
        "prior": frame["prior"].isna().all(),
        "essential": frame["essential"].all(),
        "grouping": not grouping,
    }
    return frame.drop(columns=[name for name, left_out in empty.items() if left_out])


def effort_frame(prediction: EffortPrediction) -> Any:
    """One row per sample, with `t` as index: efforts by motor, their sigma, and the power.

    Units are in `.attrs["units"]`, by column; `t` is in s.
    """
    columns = {"t": prediction.t}
    for k, name in enumerate(prediction.names):
        columns[f"tau_{name}"] = prediction.tau[:, k]
        columns[f"sigma_{name}"] = prediction.sigma[:, k]
    columns["power"] = prediction.power
    frame = pandas().DataFrame(columns).set_index("t")
    of_motors = zip(prediction.names, prediction.units, strict=True)
    efforts = {f"{kind}_{name}": unit for name, unit in of_motors for kind in ("tau", "sigma")}
    frame.attrs["units"] = {"t": "s", **efforts, "power": "W"}
    return frame
