"""Signals with clocks of their own, brought to one clock; and nested names made flat.

One signal group gives the time base: that of the positions. All others are interpolated linearly onto it,
never beyond their ends and never across a gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Shaped
from dynid.common.errors import InputError
from dynid.motion.spoken import named_members
from dynid.motion.table import Table, as_text, check_names, time_name

_GAP_STEPS = 5.0  # median steps of a signal; across longer gaps nothing is interpolated
_POSITION = re.compile(
    r"(?:^|[/_. ])(?:q|qpos|pos|position|positions|actual_q|joint_pos\w*)(?:_?\d+)?$", re.IGNORECASE
)
_MOST_COLUMNS = 4096  # of one array; more are no signals of joints
_WORTH = 0.5  # a signal group that covers less of the time base does not shorten the log


@dataclass(frozen=True, eq=False)
class Series:
    """Columns with one clock.

    Attributes:
        name: Topic or group.
        t: Time, shape (n,), in the unit of the file; None if there is none.
        columns: Name -> values, each shape (n,).
    """

    name: str
    t: Shaped[Array, "n"] | None
    columns: Mapping[str, Shaped[Array, "n"]]


@dataclass(frozen=True)
class Unread:
    """A variable without numbers.

    Attributes:
        text: Its content, if it is a text.
        words: What it is, if it is no text.
        object_class: MATLAB class of an object whose content is hidden; empty: another reason.
        texts: All texts of a list of them, e.g. the names of the joints.
    """

    text: str = ""
    words: str = ""
    object_class: str = ""
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Merged:
    """Columns of several series on one clock.

    Attributes:
        columns: Name -> values, each shape (n,); NaN where a series has none.
        choices: What was decided, in words.
        outside: Name -> samples before the first and after the last value of its series, each shape (n,).
            A log that uses the column ends there. A series that covers less than half of the time base
            does not shorten a log, and is not listed.
    """

    columns: dict[str, Any]
    choices: dict[str, str]
    outside: dict[str, Bool[Array, "n"]]


def merged(series: Sequence[Series], file: object, time: str = "t", base: Series | None = None) -> Merged:
    """Columns on the time base (`base`, else that of `time_base`), with the time as column `time`."""
    base = base or time_base(series)
    clock = _floats(base.t, file, base.name)
    columns: dict[str, Any] = {time: base.t, **base.columns}
    words: list[str] = []
    outside: dict[str, Bool[Array, "n"]] = {}
    for source in series:
        if source is base:
            continue
        double = next((name for name in source.columns if name in columns), None)
        if double is not None:
            raise InputError(
                f"two signals are called '{double}'", file=file, place=source.name, remedy="rename one"
            )
        times = _floats(source.t, file, source.name)
        if np.array_equal(times, clock, equal_nan=True):
            columns |= source.columns
            continue
        values, inside = _interpolated(clock, times, source, file)
        columns |= values
        covers = float(inside.mean()) if len(inside) else 0.0
        if covers >= _WORTH and covers < 1.0:
            outside |= dict.fromkeys(values, ~inside)
        words.append(
            f"{source.name} ({_rate(times)})"
            + ("" if covers >= _WORTH else f" on {100 * covers:.2g} % of it")
        )
    if not words:
        return Merged(columns, {}, {})
    text = f"{base.name} ({_rate(clock)}); interpolated linearly onto it: {', '.join(words)}"
    return Merged(columns, {"time base": text}, outside)


def time_base(series: Sequence[Series]) -> Series:
    """The series with most positions; without positions, or at a tie, that with most samples."""

    def worth(candidate: Series) -> tuple[int, int]:
        positions = sum(1 for name in candidate.columns if _POSITION.search(name))
        return positions, 0 if candidate.t is None else len(candidate.t)

    return max(series, key=worth)


def _floats(t: Shaped[Array, "n"] | None, file: object, name: str) -> Float[Array, "n"]:
    if t is None or len(t) == 0:
        raise InputError(
            "the signals have different numbers of samples and no time of their own",
            file=file,
            place=name,
            remedy="save a time vector beside each signal, or save all signals at one rate",
        )
    return np.asarray(t, dtype=float)


def _interpolated(
    clock: Float[Array, "n"], times: Float[Array, "k"], source: Series, file: object
) -> tuple[dict[str, Float[Array, "n"]], Bool[Array, "n"]]:
    """Columns of a series on the clock, NaN where it has none; and which samples lie between its ends."""
    good = np.isfinite(times)
    t = times[good]
    steps = np.diff(t)
    typical = float(np.median(np.abs(steps))) if len(steps) else 0.0
    if np.any(steps < -10.0 * typical):
        raise InputError(
            "the clock of this signal jumps back, so that it cannot be brought to the time base",
            file=file,
            place=source.name,
            remedy="split the recording where the clock was reset",
        )
    order = np.argsort(t, kind="stable")
    t = t[order]
    inside = (clock >= t[0]) & (clock <= t[-1]) if len(t) else np.zeros(len(clock), dtype=bool)
    if len(t) == 0:
        return {name: np.full(len(clock), np.nan) for name in source.columns}, inside
    after = np.clip(np.searchsorted(t, clock), 1, max(len(t) - 1, 1))
    exact = np.isin(clock, t)
    wide = (t[np.minimum(after, len(t) - 1)] - t[after - 1] > _GAP_STEPS * typical) & ~exact
    missing = ~inside | wide
    resampled = {}
    for name, values in source.columns.items():
        y = np.interp(clock, t, np.asarray(values, dtype=float)[good][order])
        y[missing] = np.nan
        resampled[name] = y
    return resampled, inside


def _rate(t: Float[Array, "n"]) -> str:
    span = float(t[-1] - t[0]) if len(t) else 0.0
    # Without the unit of time only the count is certain.
    return f"{len(t)} samples" if span == 0.0 else f"{len(t)} samples, step {span / max(len(t) - 1, 1):.4g}"


def table_of_tree(tree: Mapping[str, Any], file: object, kind: str) -> Table:
    """Nested variables as a table: arrays, and groups (mappings or lists) of them.

    Numbered groups with the same variables (`demo_0`, `demo_1`, ..) are runs: each is a segment.
    """
    runs = _runs(tree)
    if not runs:
        return _one_table(tree, file, kind)
    tables = {name: _one_table(run, file, kind) for name, run in runs.items()}
    first, *others = tables.values()
    shared = [name for name in first.columns if all(name in table.columns for table in others)]
    if not shared or any(table.time != first.time for table in others):
        return _one_table(tree, file, kind)
    columns = {name: np.concatenate([table.columns[name] for table in tables.values()]) for name in shared}
    numbers = np.repeat(np.arange(len(tables)), [table.count for table in tables.values()])
    words = f"{', '.join(list(tables)[:5])}{', ..' if len(tables) > 5 else ''}: each is a segment"
    return replace(first, columns={"segment": numbers, **columns}, choices={**first.choices, "runs": words})


def _runs(tree: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The groups of a file that are runs of one experiment, in natural order; empty: it has none."""
    while len(tree) == 1 and isinstance(next(iter(tree.values())), Mapping):
        tree = next(iter(tree.values()))
    groups = {name: node for name, node in tree.items() if isinstance(node, Mapping)}
    alike = {re.sub(r"[0-9]+", "#", name) for name in groups}
    if len(groups) < 2 or len(groups) < len(tree) or len(alike) > 1 or "#" not in alike.pop():
        return {}
    if any(node.keys() != next(iter(groups.values())).keys() for node in groups.values()):
        return {}
    return {
        name: groups[name]
        for name in sorted(groups, key=lambda name: [int(n) for n in re.findall("[0-9]+", name)])
    }


def _one_table(tree: Mapping[str, Any], file: object, kind: str) -> Table:
    """The table of one run.

    A group with a time vector has its own clock. Columns are called `group/name`; a group that contains
    everything is left out of the names. Matrices of n rows (or columns) become `name_1`, `name_2`, ...
    """
    collected = _Collected()
    collected.walk("", tree, None)
    series = collected.series()
    if not series:
        raise InputError(
            "no numeric signal of at least two samples" + collected.listed(),
            file=file,
            remedy="save vectors of n samples, or matrices of n rows with one column per joint",
        )
    joined, time = _joined(series, file)
    prefix = _common_group(joined.columns)
    columns = {name.removeprefix(prefix): values for name, values in joined.columns.items()}
    outside = {name.removeprefix(prefix): rows for name, rows in joined.outside.items()}
    choices = joined.choices
    check_names(list(columns), file)
    if prefix:
        choices["group"] = prefix.rstrip("/")
    skipped = {
        name.removeprefix(prefix): reason for name, reason in collected.skipped.items() if name not in columns
    }
    lists = {name.removeprefix(prefix): texts for name, texts in collected.texts.items()}
    return Table(
        columns,
        tuple(skipped),
        {"format": kind, **choices},
        texts=skipped,
        time=time.removeprefix(prefix),
        outside=outside,
        spoken=named_members(lists, columns),
    )


def _joined(series: Sequence[Series], file: object) -> tuple[Merged, str]:
    """All series, and the name of the time column (empty: there is none)."""
    base = time_base(series)
    if len(series) == 1 and base.t is None:
        return Merged(dict(base.columns), {}, {}), ""
    return merged([*series], file, base.name), base.name


def _common_group(names: Iterable[str]) -> str:
    """`group/` that all names begin with; empty if there is none."""
    parts = [name.split("/")[:-1] for name in names]
    shared = 0
    while all(len(path) > shared and path[shared] == parts[0][shared] for path in parts):
        shared += 1
    return "".join(f"{part}/" for part in parts[0][:shared])


class _Collected:
    """Leaves of a tree, by the clock that they belong to."""

    def __init__(self) -> None:
        self.clocks: dict[str, Shaped[Array, "n"]] = {}
        self.leaves: list[tuple[str, str | None, Any]] = []
        self.skipped: dict[str, str] = {}
        self.texts: dict[str, tuple[str, ...]] = {}

    def walk(self, name: str, node: Any, clock: str | None) -> None:
        """Collect what is below `node`."""
        if isinstance(node, Mapping):
            vectors = [key for key, x in node.items() if isinstance(x, np.ndarray) and _is_vector(x)]
            time_key = time_name(vectors) or None
            if time_key is not None:
                clock = _joined_name(name, time_key)
                self.clocks[clock] = np.ravel(node[time_key])
            for key, value in node.items():
                if key != time_key:
                    # Simulink: a time series is a group of Time and Data.
                    inner = (
                        name
                        if time_key is not None and name and key in ("Data", "values")
                        else _joined_name(name, key)
                    )
                    self.walk(inner, value, clock)
        elif isinstance(node, list):
            if node and all(isinstance(value, Unread) and value.text for value in node):
                self.texts[name] = tuple(value.text for value in node)
            for key, value in _labelled(node):
                self.walk(f"{name}_{key}" if key.isdigit() else _joined_name(name, key), value, clock)
        elif isinstance(node, Unread):
            self.skipped[name] = node.words or as_text(node.text)
            if node.texts:
                self.texts[name] = node.texts
        elif node.dtype.kind in "biuf" and node.size > 1:
            self.leaves.append((name, clock, node))
        elif node.dtype.kind == "c":
            self.skipped[name] = "complex"
        elif node.size:
            self.skipped[name] = f"one value: {node.ravel()[0]}"

    def series(self) -> list[Series]:
        """One per clock; leaves without a clock get the one of their length, if only one has it."""
        lengths = {clock: len(t) for clock, t in self.clocks.items()}
        groups: dict[str | None, dict[str, Any]] = {clock: {} for clock in self.clocks}
        alone = _usual_length([x for _, _, x in self.leaves]) if not self.clocks else 0
        for name, clock, values in self.leaves:
            same = [key for key, n in lengths.items() if n in values.shape]
            owner = clock if clock is not None else same[0] if len(same) == 1 else None
            columns = _columns(name, values, alone if owner is None else lengths[owner])
            if (owner is None and self.clocks) or not columns:
                self.skipped[name] = f"an array of shape {values.shape}"
            else:
                groups.setdefault(owner, {}).update(columns)
        return [
            Series(clock or "", self.clocks.get(clock or ""), columns)
            for clock, columns in groups.items()
            if columns or len(groups) == 1
        ]

    def listed(self) -> str:
        """What was found instead."""
        shown = [f"'{name}' is {words}" for name, words in list(self.skipped.items())[:8]]
        return f" ({'; '.join(shown)})" if shown else ""


def _is_vector(x: Any) -> bool:
    return x.dtype.kind in "iuf" and x.size > 1 and x.size == max(x.shape)


def _labelled(node: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Entries of a list with their label, or their number from 1."""
    for number, entry in enumerate(node, start=1):
        label = ""
        if isinstance(entry, Mapping):
            labels = [
                entry[key].text for key in ("Name", "name", "label") if isinstance(entry.get(key), Unread)
            ]
            label = next((word.strip() for word in labels if word.strip()), "")
        yield label or str(number), entry


def _joined_name(group: str, name: str) -> str:
    return f"{group}/{name}" if group else name


def _usual_length(arrays: Sequence[Any]) -> int:
    """The most frequent length; the longest of equally frequent ones."""
    counts: dict[int, int] = {}
    for array in arrays:
        n = max(array.shape)
        counts[n] = counts.get(n, 0) + 1
    return max(counts, key=lambda n: (counts[n], n)) if counts else 0


def _columns(name: str, values: Any, n: int) -> dict[str, Shaped[Array, "n"]]:
    """An array with one axis of length n as columns; empty if it has no such axis."""
    shape = [size for size in values.shape if size != 1]
    x = values.reshape(shape)
    if shape == [n]:
        return {name: x}
    axes = [axis for axis, size in enumerate(shape) if size == n]
    if not axes or n < 2 or x.size > n * _MOST_COLUMNS:
        return {}
    x = np.moveaxis(x, axes[0], 0).reshape(n, -1)
    return {f"{name}_{k + 1}": np.ascontiguousarray(x[:, k]) for k in range(x.shape[1])}
