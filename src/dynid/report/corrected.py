"""The experiment of a result with the changes that its first reasons propose, as a file that can be run.

A warning carries the change that it proposes: `Notice.change`. Those of the reasons that the report shows
first are applied, if the first of them proposes one. The others are smaller, but not its consequences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from io import StringIO
from pathlib import PurePath
from typing import Any

from dynid.common.change import Change, in_file, in_remedy, joined
from dynid.common.notices import Notice
from dynid.report.quality import first_reasons
from dynid.statistics.estimate import Estimate

FILE = "experiment.corrected.yaml"
_NOT_OF_ENTRY = (
    "sha256",
    "use",
    "payloads",
    "date",
    "rate",
    "samples",
)  # recorded of a log in addition to its entry
_SIGNAL = re.compile(r"(q_ref|ddq|dq|tau|q)(_|(?=\d))")
_NUMBERED = re.compile(r"[a-z_]+_\d+")
_TEXT = """\
# The experiment of the result in this folder, with the change of
{changes}
# Check on the robot that it is right, then run:  dynid identify {file}
"""


def corrected_experiment(estimate: Estimate) -> str:
    """The file; empty if the first reason proposes no change, or if the logs were not files.

    Paths are those of `estimate.provenance`: relative to the folder of the result where it is written.
    """
    experiment, (change, numbers) = _experiment(estimate.provenance), proposed_change(estimate)
    if experiment is None or not change:
        return ""
    _apply(change, experiment)
    reasons = first_reasons(estimate)[0]
    lines = [
        f"#   reason {k} ({reasons[k - 1].code}): {in_file(reasons[k - 1].change).replace('`', '')}"
        for k in numbers
    ]
    head = _TEXT.format(changes="\n".join(lines), file=FILE)
    return head + _yaml({**experiment, "name": f"{estimate.robot}-corrected"})


def proposed_change(estimate: Estimate) -> tuple[Change, tuple[int, ...]]:
    """What the first reasons would change in the experiment, and the numbers of these reasons.

    Empty if the first one changes nothing. A reason that cannot be joined with those before it, or with the
    experiment, is left out: its remedy is still among the steps.
    """
    experiment = _experiment(estimate.provenance)
    change: Change = {}
    numbers: list[int] = []
    for k, reason in enumerate(first_reasons(estimate)[0], 1):
        more = joined(change, reason.change) if reason.change else None
        if more and (experiment is None or _apply(more, deepcopy(experiment))):
            change, numbers = more, [*numbers, k]
        elif k == 1:
            break
    return change, tuple(numbers)


def change_words(estimate: Estimate) -> str:
    """What the first reasons change, with joints of columns: ` (column tau_2 = elbow, 10.4 ms late)`."""
    reasons = first_reasons(estimate)[0]
    told = []
    for k in proposed_change(estimate)[1]:
        columns = reasons[k - 1].change.get("columns", {})
        rows = estimate.verdict.joints
        owners = [row.name for row in rows if f"'{row.name}'" in reasons[k - 1].text]
        for key, column in columns.items():
            owner = f" = {owners[0]}" if len(columns) == len(owners) == 1 else ""
            delay = 0.0 if isinstance(column, str) else 1e3 * column.get("delay", 0.0)
            size = f", {abs(delay):.3g} ms {'late' if delay > 0.0 else 'early'}" if delay else ""
            if not isinstance(column, str) and column.get("scale") == -1:
                size += ", sign reversed"
            name = f"all columns {key.removesuffix('_{i}')}" if key.endswith("_{i}") else f"column {key}"
            told += [f"{name}{owner}{size}"] if owner or size else []
        if any("exclude" in entry for entry in reasons[k - 1].change.get("logs", {}).values()):
            told.append("these parts left out")
    return f" ({'; '.join(told)})" if told else ""


def whole_change(change: Change, columns: Mapping[str, Any]) -> Change:
    """A change with the whole entries of its columns: what it adds, and what is given already.

    Args:
        change: Of a warning, about logs as they were read.
        columns: `columns:` with which they were read, as a tree.
    """
    given = {key: _without_own_name(key, column) for key, column in columns.items()}
    made = _joined_columns(columns, change["columns"]) if columns and "columns" in change else None
    if made is None:
        return change
    return {
        **change,
        "columns": {key: entry or key for key, entry in made.items() if entry != given.get(key)},
    }


def with_whole_entries(notices: Iterable[Notice], columns: Mapping[str, Any]) -> tuple[Notice, ...]:
    """Notices whose remedies show entries of columns as they must be written. Changes stay."""

    def corrected(item: Notice) -> Notice:
        shown, whole = in_remedy(item.change), in_remedy(whole_change(item.change, columns))
        return replace(item, remedy=item.remedy.replace(shown, whole)) if shown else item

    return tuple(corrected(item) for item in notices)


def _experiment(recorded: Mapping[str, Any]) -> dict[str, Any] | None:
    """The experiment as it was asked for, as the tree of its file; None if its logs were not files."""
    if "asked" not in recorded:
        return None
    logs: dict[str, list[dict[str, Any]]] = {"identify": [], "validate": []}
    for item in recorded.get("inputs", ()):
        if item.get("use") not in logs:
            continue
        if not item.get("sha256"):
            return None
        entry = {key: value for key, value in item.items() if key not in _NOT_OF_ENTRY}
        mounted = {"payload": list(item["payloads"])} if item.get("payloads") else {}
        logs[item["use"]].append({**entry, **mounted})
    asked, options = dict(recorded["asked"]), recorded["options"]
    unseen = [entry for entry in logs["validate"] if "hold_out" not in asked or entry not in logs["identify"]]
    if "unloaded" in asked:
        asked["unloaded"] = options["unloaded"]  # with the path as recorded
    return {
        "schema": "dynid.experiment/1",
        "robot": options["robot"],
        "logs": logs["identify"],
        **({"validate": unseen} if unseen else {}),
        **asked,
    }


def _apply(change: Mapping[str, Any], experiment: dict[str, Any]) -> bool:
    """Change the tree of an experiment in place; False (and a tree of no use) if it is not certain how."""
    entries = [*experiment["logs"], *experiment.get("validate", ())]
    for name, keys in change.get("logs", {}).items():
        paths = [PurePath(entry["file"]) for entry in entries]
        names = [{path.stem, f"{path.parent.name}/{path.stem}"} for path in paths]
        named = [entry for entry, known in zip(entries, names, strict=True) if name in known]
        if len(named) != 1 or (set(keys) - {"columns"}) & set(named[0]):
            return False
        columns = _of_entry(experiment, named[0], keys.get("columns", {}))
        if columns is None:
            return False
        named[0].update({**keys, **columns})
    if "columns" in change:
        parts = [experiment, *(entry for entry in entries if "columns" in entry)]
        joined = [_joined_columns(part.get("columns", {}), change["columns"]) for part in parts]
        for part, columns in zip(parts, joined, strict=True):
            if columns is None:
                return False
            part["columns"] = columns
    others = {key: value for key, value in change.items() if key not in ("logs", "columns")}
    if any(key in experiment for key in others if key != "estimator"):
        return False
    if "estimator" in others:
        experiment.pop("estimator_options", None)  # of another estimator
    experiment.update(others)
    return True


def _of_entry(
    experiment: Mapping[str, Any], entry: Mapping[str, Any], change: Mapping[str, Any]
) -> dict[str, Any] | None:
    """`columns` of the entry of one log, which replace those for all logs; None: cannot be joined."""
    if not change:
        return {}
    joined = _joined_columns({**experiment.get("columns", {}), **entry.get("columns", {})}, change)
    return None if joined is None else {"columns": joined}


def _joined_columns(given: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any] | None:
    """Columns with a correction of their values; None where it is not clear whose a given column is.

    A key without a name changes the column that another key or a pattern names.
    """
    given = {key: _without_own_name(key, column) for key, column in given.items()}
    made = dict(given)
    for key, value in change.items():
        pattern = next((other for other in given if "{" in other and _symbol(other) == _symbol(key)), None)
        same = [other for other in given if "{" not in other and _symbol(other) == _symbol(key) != ""]
        spelled = [other for other in same if not _NUMBERED.fullmatch(other)]
        bare = [other for other in given if _is_bare(other)]
        if ("{" in key and (spelled or bare)) or ("name" in value and spelled):
            return None
        if "{" in key:
            alone = not any("{" not in other and _symbol(other) == _symbol(key) for other in change)
            if pattern is None or alone or not _name(given[pattern]):
                made[pattern or key] = _joined(given.get(pattern or key, {}), value)
            else:  # a key of the change counts instead of its pattern, but changes a pattern with a name
                made[f"{_symbol(key)}_{{{'name' if pattern.endswith('{i}') else 'i'}}}"] = dict(value)
            made |= {other: _joined(given[other], value) for other in same if other not in change}
        elif key in given or pattern is None or _name(given[pattern]):
            made[key] = _joined(given.get(key, {}), value)
        else:  # a key has priority over a pattern, which names no column
            made[key] = _joined(given[pattern], value)
    return made


def _symbol(key: str) -> str:
    """`tau` of `tau_2`, `tau_elbow` and `tau_{i}`; empty for other keys."""
    found = _SIGNAL.match(key)
    return found[1] if found else ""


def _is_bare(key: str) -> bool:
    """Whether a key may be the name of a joint alone."""
    return not _symbol(key) and key not in ("t", "time", "segment")


def _without_own_name(key: str, column: Any) -> Any:
    """A column as it was given: one without a name is recorded with that of its key."""
    if _name(column) != key or isinstance(column, str):
        return column
    return {field: value for field, value in column.items() if field != "name"}


def _name(column: Any) -> str:
    return column if isinstance(column, str) else str(column.get("name", ""))


def _joined(given: Any, change: Any) -> dict[str, Any]:
    """One column, corrected: x' = s x + o of a value that is already scaled and shifted."""
    old: dict[str, Any] = {"name": given} if isinstance(given, str) else dict(given)
    new: dict[str, Any] = {"name": change} if isinstance(change, str) else dict(change)
    scale, offset, delay = new.pop("scale", 1.0), new.pop("offset", 0.0), new.pop("delay", 0.0)
    numbers = {
        "scale": scale * old.pop("scale", 1.0),
        "offset": scale * old.pop("offset", 0.0) + offset,
        "delay": delay + old.pop("delay", 0.0),
    }
    usual = {"scale": 1.0, "offset": 0.0, "delay": 0.0}
    return {**old, **new, **{key: value for key, value in numbers.items() if value != usual[key]}}


def _yaml(tree: Mapping[str, Any]) -> str:
    from ruamel.yaml import YAML

    writer, stream = YAML(), StringIO()
    writer.width = 110
    writer.dump(dict(tree), stream)
    return stream.getvalue()
