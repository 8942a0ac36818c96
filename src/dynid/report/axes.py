"""Numbers of a plot's axes: series unpacked, ranges that hold them, and round numbers along them.

On a logarithmic axis all numbers are decades.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float

Tree = Mapping[str, Any]


def unpacked(series: Tree, x: Tree, y: Tree, shared: Tree) -> dict[str, Any]:
    """A series with its numbers as arrays.

    Args:
        x, y: Its axes.
        shared: Series that panels share, by name.
    """

    def along(axis: Tree, values: Any) -> Float[Array, "n"]:
        v = _numbers(values, shared)
        if not axis.get("log"):
            return v
        return np.asarray(np.log10(v, out=np.full_like(v, np.nan), where=v > 0.0))

    decoded = dict(series)
    for key in ("x", "y", "low", "high", "half", "values"):
        if key in series:
            decoded[key] = along(x if key in ("x", "half") else y, series[key])
    if "parts" in series:
        decoded["parts"] = [{**part, "y": _numbers(part["y"], shared)} for part in series["parts"]]
    return decoded


def _numbers(values: Any, shared: Tree) -> Float[Array, "n"]:
    """A list, a packed series, or the name of one that panels share ("a+b": their sum)."""
    if isinstance(values, str):
        return np.asarray(np.sum([_numbers(shared[key], shared) for key in values.split("+")], axis=0))
    if isinstance(values, Mapping):
        steps = np.frombuffer(base64.b64decode(values["q"]), "<i2").astype(float)
        return np.where(steps < -32767.0, np.nan, values["o"] + values["s"] * steps)
    return np.array([np.nan if x is None else x for x in values], dtype=float)


def range_x(axis: Tree, series: Sequence[Tree]) -> tuple[float, float]:
    """Left and right end of a panel."""
    if "range" in axis:
        return float(axis["range"][0]), float(axis["range"][1])
    if "names" in axis:
        return -0.6, len(axis["names"]) - 0.4
    seen = [v for curve in series if "x" in curve for v in curve["x"][np.isfinite(curve["x"])]]
    seen += [0.0 for curve in series if curve["kind"] == "bars" and curve.get("flat")]
    low, high = (min(seen), max(seen)) if seen else (0.0, 0.0)
    if not high > low:
        return low - 1.0, low + 1.0
    pad = 0.0 if axis.get("tight") else 0.03 * (high - low)
    return float(low - pad), float(high + pad)


def range_y(
    axis: Tree, series: Sequence[Tree], rx: tuple[float, float], marks: Sequence[Tree]
) -> tuple[float, float]:
    """Lower and upper end of a panel, for what lies between its left and right end."""
    if "range" in axis:
        return float(axis["range"][0]), float(axis["range"][1])
    if "names" in axis:
        return len(axis["names"]) - 0.4, -0.6
    seen = [np.asarray(mark["band"], float) for mark in marks if "band" in mark]
    for curve in (candidate for candidate in series if "x" in candidate):
        inside = (curve["x"] >= rx[0]) & (curve["x"] <= rx[1])
        if curve["kind"] == "stack":
            parts = np.nan_to_num(np.array([part["y"] for part in curve["parts"]]))[:, inside]
            seen += [np.maximum(parts, 0.0).sum(axis=0), np.minimum(parts, 0.0).sum(axis=0)]
        else:
            seen += [curve[key][inside] for key in ("low", "high", "y") if key in curve]
            seen += [np.zeros(1)] if curve["kind"] == "bars" else []
    values = np.concatenate([np.zeros(0), *seen])
    values = values[np.isfinite(values)]
    if not len(values):
        return -1.0, 1.0
    low, high = float(values.min()), float(values.max())
    pad = 0.07 * (high - low) or 0.5 * (abs(low) or 1.0)
    return low - pad, high + pad


def labelled(axis: Tree, limits: tuple[float, float], most: float, decades: int) -> list[tuple[float, str]]:
    """Places and labels along an axis."""
    if "names" in axis:
        return [(float(k), str(name)) for k, name in enumerate(axis["names"])]
    if axis.get("log"):
        return [(v, number_text(10.0**v)) for v in _decades(*limits, decades)]
    given = [v for v in axis.get("ticks", ()) if min(limits) <= v <= max(limits)]
    return [(v, number_text(v)) for v in given or ticks(*limits, max(2, round(most)))]


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers in a range, about `most` of them."""
    span = (high - low) or 1.0
    raw = span / max(1, most)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(k for k in (1, 2, 5, 10) if k * power >= raw * (1 - 1e-12)) * power
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [float(f"{k * step:.12g}") for k in range(first, last + 1)]
    return ticks(low, high, most + 2) if len(values) < 3 and most < 12 else values


def _decades(low: float, high: float, most: int) -> list[float]:
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if last - first < 1:
        fine = [k + math.log10(m) for k in range(math.floor(low), math.floor(high) + 1) for m in (1, 2, 5)]
        found = [v for v in fine if low <= v <= high]
        return (
            found if len(found) > 1 else [math.log10(v) for v in ticks(10.0**low, 10.0**high, 3) if v > 0.0]
        )
    return [float(k) for k in range(first, last + 1, max(1, math.ceil((last - first) / most)))]


def number_text(x: float, digits: int = 4) -> str:
    """A number beside an axis."""
    if x == 0.0:
        return "0"
    shown = f"{x:.{digits}g}"
    if "e" in shown:
        mantissa, _, power = shown.partition("e")
        shown = f"{float(shown):.0f}" if 1.0 <= abs(x) < 1e6 else f"{mantissa}e{int(power)}"
    return shown.replace("-", "\N{MINUS SIGN}")
