"""Files that say elsewhere than in the header what a column is: cells with joint names, parts of stamps.

A message of ROS as text has the names of its joints in cells: `name0` is `elbow_joint`, so `position0` is
that of the elbow, wherever the robot has it. What is found here is the name by which a column is matched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dynid.common.errors import InputError
from dynid.motion.column_words import has_kind, words_of

_NAME_WORDS = ("name", "names")
_LIST_WORDS = (*_NAME_WORDS, "joints", "labels", "order", "motors")
_NUMBERED = re.compile(r"(?P<stem>.*?)(?P<number>[0-9]{1,3})\]?\Z", re.DOTALL)
_LISTED = re.compile(r"[\w/.:-]+")
_NANO = re.compile(r"(?P<stem>(?:.+[._/ ])?)(?P<part>nanosec|nanosecs|nsecs|nsec)\Z")
_WHOLE = {"nanosec": "sec", "nanosecs": "secs", "nsecs": "secs", "nsec": "sec"}


class Named(NamedTuple):
    """Names of joints in cells.

    Attributes:
        cells: Columns with these names, in their order.
        spoken: Column -> its name with that of the joint.
    """

    cells: tuple[str, ...]
    spoken: dict[str, str]


def named_entries(texts: Mapping[str, str], names: Iterable[str]) -> Named | None:
    """Names of numbered columns by the joints that cells of text name; None if none do.

    Args:
        texts: Columns of text, with their first cell.
        names: Columns of numbers.
    """
    for cells, around, labels in _labels(texts):
        families: dict[str, dict[int, str]] = {}
        for name in names:
            parts = _NUMBERED.match(name)
            if parts is not None and _around(parts["stem"]) == around:
                families.setdefault(parts["stem"], {})[int(parts["number"])] = name
        counts = [list(range(first, first + len(labels))) for first in (0, 1)]
        spoken = {
            family[number]: f"{stem}/{label}"
            for stem, family in families.items()
            if sorted(family) in counts
            for number, label in zip(sorted(family), labels, strict=True)
        }
        if spoken:
            return Named(cells, spoken)
    return None


def named_members(lists: Mapping[str, Sequence[str]], names: Iterable[str]) -> dict[str, str]:
    """Names of the columns of matrices (`positions_1`, ..) by the list of joint names in their group.

    Args:
        lists: Lists of texts by name, e.g. `joint_names`.
        names: Columns of numbers.
    """
    spoken: dict[str, str] = {}
    for key, labels in lists.items():
        group, _, last = key.rpartition("/")
        if words_of(last)[-1:] not in [(word,) for word in _LIST_WORDS] or len(set(labels)) < len(labels):
            continue
        families: dict[str, dict[int, str]] = {}
        for name in names:
            parts = _NUMBERED.match(name)
            if parts is not None and name.startswith(f"{group}/" if group else ""):
                families.setdefault(parts["stem"], {})[int(parts["number"])] = name
        for stem, family in families.items():
            if sorted(family) == list(range(1, len(labels) + 1)):
                spoken |= {family[k + 1]: f"{stem}/{label}" for k, label in enumerate(labels)}
    return spoken


def check_constant(text: str, delimiter: str, cells: Sequence[str], file: object, column: str) -> None:
    """Refuse rows in which the cells with joint names, which are neighbours, differ from those of the first.

    Args:
        text: All rows.
        delimiter: Between cells.
        cells: The names in the first row.
        file, column: For messages.
    """
    rows = sum(1 for line in text.split("\n") if line.strip())
    if all(text.count(delimiter.join(f"{q}{cell}{q}" for cell in cells)) != rows for q in ("", '"')):
        raise InputError(
            f"the names in '{column}' change from row to row, and so do the joints of the numbered columns",
            file=file,
            place=f"column '{column}'",
            remedy="give the recording itself (a bag), or write a column for each joint",
        )


def _labels(texts: Mapping[str, str]) -> Iterable[tuple[tuple[str, ...], tuple[str, ...], list[str]]]:
    """Columns with names, the words before theirs, and the names: one cell each, or a list in one cell."""
    families: dict[str, dict[int, str]] = {}
    for column, cell in texts.items():
        parts = _NUMBERED.match(column)
        if parts is not None and words_of(parts["stem"])[-1:] and words_of(parts["stem"])[-1] in _NAME_WORDS:
            families.setdefault(parts["stem"], {})[int(parts["number"])] = column
        elif words_of(column)[-1:] and words_of(column)[-1] in _NAME_WORDS:
            entries = _LISTED.findall(cell)
            if len(entries) > 1 and len(set(entries)) == len(entries):
                yield (column,), _around(column), entries
    for stem, family in families.items():
        columns = tuple(family[k] for k in sorted(family))
        entries = [texts[column] for column in columns]
        if len(entries) > 1 and len(set(entries)) == len(entries):
            yield columns, _around(stem), entries


def _around(stem: str) -> tuple[str, ...]:
    """Words before the last one: what the fields of one message share."""
    return words_of(stem)[:-1]


def with_stamps(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns with `stamp.sec` and `stamp.nanosec` joined to `stamp`, in [ns], unless it never changes.

    So are `sec` and `nanosec`.
    """
    joined: dict[str, Any] = {}
    used: set[str] = set()
    for name in columns:
        parts = _NANO.match(name)
        whole = parts and f"{parts['stem']}{_WHOLE[parts['part']]}"
        stamp = (parts["stem"].rstrip("._/ ") or "stamp") if parts else ""
        if not whole or whole not in columns or stamp in columns:
            continue
        seconds, nano = (np.asarray(columns[part]) for part in (whole, name))
        with np.errstate(invalid="ignore"):
            ns = seconds.astype(np.int64) * 10**9 + nano.astype(np.int64)
        if np.array_equal(ns // 10**9, seconds) and np.array_equal(ns % 10**9, nano) and np.ptp(ns) > 0:
            joined[stamp] = ns
            used |= {whole, name}
    return {**joined, **{name: values for name, values in columns.items() if name not in used}}


def of_data_set(names: Sequence[str]) -> dict[str, str]:
    """Names in a LeRobot data set: `observation.state` are positions, `action` what was asked for."""
    spoken = {}
    for name in names:
        state, action = name.startswith("observation.state"), name.startswith("action")
        kind = "" if has_kind(name) else "position "
        if state or action:
            spoken[name] = f"{'target ' if action else ''}{kind}{name}"
    return spoken
