"""The campaign file (`dynid.campaign/1`): which logs of which robots are identified with which settings.

Logs in an object store (`s3://bucket/...`): found by patterns, and copied while they are used.
"""

from __future__ import annotations

import contextlib
import glob
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from dynid.common.entry import Entry, plain_entry, root_entry
from dynid.common.errors import InputError
from dynid.common.settings import Settings, keys_of, read
from dynid.common.strict_yaml import PathLike, read_yaml

SCHEMA = "dynid.campaign/1"
_NAME = re.compile(r"[^A-Za-z0-9._+-]+")
_FIELD = re.compile(r"\{(unit|date|run)\}")


class RunEntry(Settings, frozen=True):
    """Logs that are identified alike.

    Attributes:
        robot: Built-in name, or path of a description beside the file.
        logs: Paths or patterns: `*`, `**`, and the fields {unit}, {date} and {run}, which match a part of a
            path without `/`. There is one run for each combination of the fields, with all its logs.
        name: Name of the run; may use the fields. Default: the robot, then the fields.
        unit: The robot as an individual (a serial number); default the field {unit}, else the robot's name.
        date: When it was recorded, for trends: a number, or an ISO date; default the field {date}.
        settings: Keys of an experiment, for these runs.
    """

    _title: ClassVar[str] = "runs"

    robot: str
    logs: tuple[str, ...]
    name: str = ""
    unit: str = ""
    date: str = ""
    settings: Mapping[str, Any] = {}

    @classmethod
    def spelled(cls, entries: dict[str, Entry]) -> dict[str, Entry]:
        """A single log without brackets, and dates as text."""
        if "logs" in entries and not entries["logs"].is_list:
            logs = entries["logs"]
            entries = {**entries, "logs": plain_entry([logs.plain()], like=logs)}
        if "date" in entries:
            entries = {**entries, "date": plain_entry(str(entries["date"].plain()), like=entries["date"])}
        return entries


class CampaignFile(Settings, frozen=True):
    """The keys of a campaign file.

    Attributes:
        runs: What to identify.
        settings: Keys of an experiment, for all runs.
        variants: Name -> further settings; every run is made once with each.
        joined: Whether each robot also gets one estimate from all its runs together.
    """

    _title: ClassVar[str] = "campaign"

    runs: tuple[RunEntry, ...]
    name: str = ""
    settings: Mapping[str, Any] = {}
    variants: Mapping[str, Mapping[str, Any]] = {}
    joined: bool = False


@dataclass(frozen=True)
class Run:
    """One identification of a campaign.

    Attributes:
        name: Unique; the name of its folder.
        unit: The individual robot.
        date: As written; empty if unknown.
        robot: Built-in name or absolute path.
        logs: Absolute paths, or addresses of an object store (`s3://...`).
        settings: Keys of its experiment.
        variant: Name of its settings; empty if there is only one.
    """

    name: str
    unit: str
    date: str
    robot: str
    logs: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""


def read_campaign(file: PathLike) -> CampaignFile:
    """Read a campaign file; unknown keys are refused with their line."""
    root = root_entry(read_yaml(file))
    fields = root.fields(("schema", "description", *keys_of(CampaignFile)), required=("runs",))
    if "schema" in fields:
        fields["schema"].choice((SCHEMA,))
    known = {key: fields[key] for key in keys_of(CampaignFile) if key in fields}
    campaign = read(CampaignFile, replace(root, value=known))
    if not campaign.runs:
        raise fields["runs"].error("no run is given", "e.g. runs: [{robot: ur5, logs: 'data/*.parquet'}]")
    return campaign if campaign.name else campaign.changed(name=Path(file).stem)


def runs_of(campaign: CampaignFile, file: PathLike, folder: PathLike | None = None) -> tuple[Run, ...]:
    """All runs of a campaign, in the order of the file, then of the names of the logs.

    Args:
        campaign: As read.
        file: Its file: robots are relative to it.
        folder: Where the patterns of logs start; default the folder of the file.

    Raises:
        InputError: A pattern without a log, or two runs of the same name.
    """
    home = Path(file).resolve().parent
    start = home if folder is None else Path(folder).resolve()
    variants = campaign.variants or {"": {}}
    planned: list[Run] = []
    for entry in campaign.runs:
        robot = entry.robot
        if "/" in robot or "\\" in robot or Path(robot).suffix:
            robot = str(home / robot)
        for fields, logs in _matches(entry, start, file):
            for variant, settings in variants.items():
                merged = {**campaign.settings, **entry.settings, **settings}
                planned.append(_run(entry, robot, fields, logs, merged, variant))
    _refuse_doubled(planned, file)
    return tuple(planned)


def _run(
    entry: RunEntry,
    robot: str,
    fields: Mapping[str, str],
    logs: tuple[str, ...],
    settings: Mapping[str, Any],
    variant: str,
) -> Run:
    plain = Path(entry.robot).stem
    unit = _filled(entry.unit, fields) or fields.get("unit", plain)
    date = _filled(entry.date, fields) or fields.get("date", "")
    name = _filled(entry.name, fields) or "-".join(
        [plain, *(fields[key] for key in ("unit", "date", "run") if key in fields)]
    )
    name = folder_name(f"{name}-{variant}" if variant else name)
    return Run(name, unit, date, robot, logs, settings, variant)


def folder_name(text: str) -> str:
    """A text as the name of a folder."""
    return _NAME.sub("_", text).strip(".") or "run"


def _filled(text: str, fields: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda match: fields.get(match[1], match[0]), text)


def _matches(entry: RunEntry, start: Path, file: object) -> Iterator[tuple[dict[str, str], tuple[str, ...]]]:
    """The fields of each run, with its logs; without fields all logs are one run."""
    grouped: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for pattern in entry.logs:
        paths = _paths(pattern, start)
        if not paths:
            raise InputError(
                f"no file matches '{pattern}'",
                file=file,
                place="runs.logs",
                remedy=f"patterns start at {start}; they may contain *, **, {{unit}}, {{date}}, {{run}}",
            )
        expression = _expression(pattern if "://" in pattern else str(start / pattern))
        for path in paths:
            match = expression.fullmatch(path)
            fields = tuple(sorted(match.groupdict().items())) if match else ()
            grouped.setdefault(fields, []).append(path)
    for fields, logs in grouped.items():
        yield dict(fields), tuple(logs)


def _paths(pattern: str, start: Path) -> list[str]:
    wanted = _FIELD.sub("*", pattern)
    if "://" in pattern:
        from dynid.campaign.file import remote_paths

        return remote_paths(wanted)
    place = str(start / wanted)
    if not glob.has_magic(wanted):
        return [place] if Path(place).exists() else []
    return sorted(glob.glob(place, recursive=True))


def _expression(pattern: str) -> re.Pattern[str]:
    """A regular expression that reads the fields of a path."""
    parts: list[str] = []
    seen: set[str] = set()
    for piece in re.split(r"(\{(?:unit|date|run)\}|\*\*/?|\*|\?)", pattern):
        field_match = _FIELD.fullmatch(piece)
        if field_match and field_match[1] not in seen:
            seen.add(field_match[1])
            parts.append(f"(?P<{field_match[1]}>[^/]+?)")
        elif field_match:
            parts.append(f"(?P={field_match[1]})")
        else:
            parts.append(
                {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece))
            )
    return re.compile("".join(parts))


def _refuse_doubled(runs: list[Run], file: object) -> None:
    seen: dict[str, Run] = {}
    for run in runs:
        if run.name in seen:
            raise InputError(
                f"two runs are called '{run.name}': {seen[run.name].logs[0]} and {run.logs[0]}",
                file=file,
                place="runs",
                remedy="give `name:` with the fields {unit}, {date} or {run}",
            )
        seen[run.name] = run


def _fsspec() -> Any:
    try:
        import fsspec
    except ImportError:
        raise InputError(
            "addresses such as s3:// need the package fsspec", remedy="pip install 'dynid[cluster]'"
        ) from None
    return fsspec


def remote_paths(pattern: str) -> list[str]:
    """Addresses that match a pattern of an object store."""
    with _refusing(pattern):
        system, path = _fsspec().core.url_to_fs(pattern)
        return sorted(system.unstrip_protocol(key) for key in system.glob(path))


def remote_stamp(place: str) -> list[str]:
    """Size and version of a log in an object store, as far as the store knows them."""
    with _refusing(place):
        system, path = _fsspec().core.url_to_fs(place)
        known = system.info(path)
    return [str(known[key]) for key in ("size", "ETag", "LastModified", "mtime", "created") if key in known]


@contextlib.contextmanager
def local_copies(places: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Paths of the logs on this machine; copies of remote ones exist during the block."""
    if not any("://" in place for place in places):
        yield tuple(places)
        return
    with tempfile.TemporaryDirectory(prefix="dynid-") as folder:
        yield tuple(_fetched(place, Path(folder) / str(i)) for i, place in enumerate(places))


def _fetched(place: str, folder: Path) -> str:
    if "://" not in place:
        return place
    folder.mkdir()
    target = folder / (place.rstrip("/").rpartition("/")[2] or "log")
    with _refusing(place), _fsspec().open(place, "rb") as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy)
    return str(target)


@contextlib.contextmanager
def _refusing(place: str) -> Iterator[None]:
    """Turn failures of the store into input errors that name the address."""
    try:
        yield
    except InputError:
        raise
    except ImportError as error:  # fsspec has a package for each store
        raise InputError(f"cannot be read: {error}", file=place, remedy="install the package") from error
    except Exception as error:  # each store has error classes of its own
        raise InputError(
            f"cannot be read: {type(error).__name__}: {error}", file=place, remedy="check address and access"
        ) from error
