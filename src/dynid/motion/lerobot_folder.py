"""Reader of LeRobot data sets: a folder with meta/info.json and Parquet files, in which signals are lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.errors import InputError
from dynid.common.strict_json import read_json
from dynid.motion.parquet_file import parquet_columns
from dynid.motion.table import Table, check_names

INFO = "meta/info.json"
_MOST_FILES = 100_000


def read_lerobot(folder: Path, drop_bad_rows: bool = False) -> Table:
    """All episodes, each its own segment; entries of lists have the names that the data set gives them."""
    info = read_json(folder / INFO, "download the data set again")
    features, fps = _described(info, folder)
    files = sorted((folder / "data").glob("chunk-*/*.parquet"))[:_MOST_FILES]
    if not files:
        raise InputError("no data/chunk-*/*.parquet", file=folder, remedy="download the data of the data set")
    parts = [parquet_columns(file) for file in files]
    names = list(parts[0])
    for file, part in zip(files, parts, strict=True):
        if list(part) != names:
            raise InputError("other columns than the first file", file=file, remedy="convert it again")
    columns: dict[str, Any] = {}
    for name in names:
        columns |= _expanded(name, [part[name] for part in parts], features.get(name), files)
    for needed in ("episode_index", "frame_index"):
        if needed not in columns:
            raise InputError(
                f"no column '{needed}'", file=files[0], remedy="check that it is a LeRobot data set"
            )
    check_names(list(columns), folder)
    # Stamps are stored with seven digits, and the frames are numbered.
    columns = {"t": columns["frame_index"] / fps, "segment": columns["episode_index"], **columns}
    episodes = len(np.unique(columns["segment"]))
    choices = {"format": f"LeRobot, {episodes} episodes", "time": f"frame_index at {fps:g} Hz"}
    return Table(columns, (), choices)


def _described(info: Any, folder: Path) -> tuple[dict[str, Any], float]:
    """Features by name, and frames per second."""
    features = info.get("features") if isinstance(info, dict) else None
    fps = info.get("fps") if isinstance(info, dict) else None
    if not isinstance(features, dict) or not isinstance(fps, int | float) or not 0.0 < fps < 1e6:
        raise InputError(
            "no features or fps", file=folder / INFO, remedy="check that it is a LeRobot data set"
        )
    return features, float(fps)


def _expanded(name: str, parts: list[Any], feature: Any, files: list[Path]) -> dict[str, Any]:
    """A column, or one per entry of its lists."""
    widths = {part.shape[1] if part.ndim == 2 else 0 for part in parts}
    if len(widths) > 1:
        raise InputError(
            f"the lists of '{name}' have different lengths", file=files[0], remedy="convert it again"
        )
    values = np.concatenate(parts)
    if values.ndim == 1:
        return {name: values}
    labels = _labels(feature.get("names") if isinstance(feature, dict) else None)
    if len(labels) != values.shape[1] or len(set(labels)) != len(labels):
        return {f"{name}_{k + 1}": values[:, k] for k in range(values.shape[1])}
    return {f"{name}/{label}": values[:, k] for k, label in enumerate(labels)}


def _labels(names: Any) -> list[str]:
    """Names of the entries: a list, or a list in a mapping (`{motors: [..]}`)."""
    if isinstance(names, dict):
        names = [label for group in names.values() for label in (group if isinstance(group, list) else [])]
    return [str(label) for label in names] if isinstance(names, list) else []
