"""The campaign file (`dynid.campaign/1`): which logs of which robots are identified with which settings."""

from __future__ import annotations

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from dynid.campaign.clashes import dated, named_apart
from dynid.campaign.patterns import FIELD, asks_for, expression_of, paths_of
from dynid.common.entry import Entry, plain_entry, root_entry
from dynid.common.errors import InputError, nearest
from dynid.common.settings import Settings, keys_of, read
from dynid.common.strict_yaml import PathLike, read_yaml
from dynid.experiment.experiment import Experiment, experiment_from
from dynid.motion.reading import is_address

SCHEMA = "dynid.campaign/1"
_NAME = re.compile(r"[^A-Za-z0-9._+-]+")
_OF_RUNS = ("robot", "logs", "name", "out")  # keys of an experiment that `settings` cannot have


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
        logs = entries.get("logs")
        if logs is not None and not logs.value:
            raise logs.error("no log is given", "give a path or a pattern, e.g. 'data/{unit}/{date}.parquet'")
        if logs is not None and not logs.is_list:
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
        files: What robot and settings are read from: description, its sources, other logs, a result.
        content: Digest of the content of those that parameters depend on: description, its sources, a result.
        together: Number of runs of its robot, if they get one estimate together; 0: they do not.
        wrong: Why it is set aside without reading its logs; empty if it is not.
    """

    name: str
    unit: str
    date: str
    robot: str
    logs: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""
    files: tuple[str, ...] = ()
    content: str = ""
    together: int = 0
    wrong: str = ""

    @property
    def kind(self) -> str:
        """A digest of robot and settings, also of what is in their files."""
        content = json.dumps([self.robot, self.content, self.settings], sort_keys=True, default=str)
        return sha256(content.encode()).hexdigest()[:16]

    @property
    def individual(self) -> tuple[str, str, str]:
        """What one estimate of all logs belongs to: the robot, settings and description."""
        return self.unit, self.variant, self.robot


def read_campaign(file: PathLike) -> CampaignFile:
    """Read a campaign file; unknown keys are refused with their line."""
    root = root_entry(read_yaml(file), "campaign")
    for key, entry in root.mapping().items():
        if key in keys_of(Experiment) and key not in (*keys_of(CampaignFile), *_OF_RUNS):
            raise entry.error(f"'{key}' is a key of experiments", f"write  settings: {{{key}: ...}}")
    fields = root.fields(("schema", "description", *keys_of(CampaignFile)), required=("runs",))
    if "schema" in fields:
        fields["schema"].choice((SCHEMA,))
    if isinstance(fields["runs"].value, str):
        fields["runs"] = _manifest(Path(file).parent / fields["runs"].text())
    known = {key: fields[key] for key in keys_of(CampaignFile) if key in fields}
    campaign = read(CampaignFile, replace(root, value=known))
    if not campaign.runs:
        raise fields["runs"].error("no run is given", "e.g. runs: [{robot: ur5, logs: 'data/*.parquet'}]")
    return campaign if campaign.name else campaign.changed(name=Path(file).stem)


def _manifest(file: Path) -> Entry:
    """A table of runs (CSV): its columns are keys of `runs`; empty cells are not given."""
    rows: list[Entry] = []
    head = Entry(None, "", 1, file=str(file))
    columns = [key for key in keys_of(RunEntry) if key != "settings"]
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            table = csv.DictReader(stream, strict=True)
            names = table.fieldnames or ()
            if len(set(names)) < len(names):
                raise head.error("two columns have the same name", "rename one")
            if wrong := [name for name in names if name not in columns]:
                text = f"a table of runs has no column '{wrong[0]}'" + nearest(wrong[0], columns)
                raise head.error(text, f"use {', '.join(columns)}, with commas between them")
            for row in table:
                place = replace(head, line=table.line_num)
                if None in row or None in row.values():
                    raise place.error("this row has not as many cells as the first", "one cell per column")
                given = plain_entry({key: cell for key, cell in row.items() if cell}, like=place)
                run: Any = read(RunEntry, given)
                rows.append(replace(place, value=run))
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", file=file, remedy="check the path of the table"
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read: {error}", file=file, remedy="give a CSV file in UTF-8") from error
    return replace(head, value=rows)


def kinds_of(campaign: CampaignFile, file: PathLike) -> dict[tuple[int, str], Run]:
    """Number of an entry and name of settings -> a run without logs that has them.

    Raises:
        InputError: A robot or settings that no run can have.
    """
    home = Path(file).resolve().parent
    known: dict[str, Run] = {}
    kinds: dict[tuple[int, str], Run] = {}
    for number, entry in enumerate(campaign.runs):
        for variant, more in (campaign.variants or {"": {}}).items():
            given = {
                "settings": campaign.settings,
                f"runs[{number}].settings": entry.settings,
                f"variants.{variant}": more,
            }
            settings = {key: value for part in given.values() for key, value in part.items()}
            text = json.dumps([entry.robot, settings], sort_keys=True)
            if text not in known:
                places = {key: f"{place}.{key}" for place, part in given.items() for key in part}
                known[text] = _checked(entry.robot, settings, home, file, places)
            kinds[number, variant] = replace(known[text], variant=variant, together=int(campaign.joined))
    return kinds


def runs_of(
    campaign: CampaignFile,
    file: PathLike,
    folder: PathLike | None = None,
    kinds: Mapping[tuple[int, str], Run] | None = None,
    earlier: Callable[[], Iterable[str]] = tuple,
) -> tuple[Run, ...]:
    """All runs of a campaign, in the order of the file, then of the names of the logs.

    Args:
        campaign: As read.
        file: Its file: robots are relative to it.
        folder: Where the patterns of logs start, and where logs may arrive later; default the folder of the
            file, in which each pattern must have a log, or have had one.
        kinds: As `kinds_of` gives them.
        earlier: Gives logs of earlier results, which may be gone.

    Raises:
        InputError: A robot or settings that no run can have, a pattern without a log, two runs of the same
            name, or dates that cannot be compared. Where logs may arrive, a single file can have such a name
            at any time: its run is set aside.
    """
    home = Path(file).resolve().parent
    start = home if folder is None else Path(folder).resolve()
    may_arrive = folder is not None
    patterns = [pattern for entry in campaign.runs for pattern in entry.logs]
    if may_arrive and all(is_address(pattern) or os.path.isabs(pattern) for pattern in patterns):
        raise InputError(
            f"no pattern starts in the folder that is watched: '{patterns[0]}'",
            file=file,
            place="runs.logs",
            remedy=f"write patterns relative to {start}; of a store, repeat the command without --watch",
        )
    matches = [list(_matches(entry, start, file, may_arrive, earlier)) for entry in campaign.runs]
    planned = [
        _run(campaign.runs[number], like, fields, logs)
        for (number, _), like in (kinds or kinds_of(campaign, file)).items()
        for fields, logs in matches[number]
    ]
    planned = named_apart(dated(planned, file, may_arrive), file, may_arrive)
    if not campaign.joined:
        return tuple(planned)
    counts = Counter(run.individual for run in planned if not run.wrong)
    return tuple(replace(run, together=counts[run.individual]) for run in planned)


def with_robots_apart(
    runs: Sequence[Run], campaign: CampaignFile, kinds: Mapping[tuple[int, str], Run]
) -> tuple[Run, ...]:
    """Robots of different descriptions are different robots, also if their units are the same.

    The name of the description is put before the unit, unless the campaign file shows that no other
    description has this unit. Logs that are there now do not count: names stay when others arrive.
    """
    descriptions = dict.fromkeys(kind.robot for kind in kinds.values())
    stems = Counter(Path(robot).stem for robot in descriptions)
    written: dict[str, set[str]] = {}
    for (number, _), kind in kinds.items():
        entry = campaign.runs[number]
        in_paths = FIELD.search(entry.unit) if entry.unit else any("{unit}" in one for one in entry.logs)
        if not in_paths:
            written.setdefault(entry.unit or Path(entry.robot).stem, set()).add(kind.robot)

    def apart(run: Run) -> str:
        path = Path(run.robot)
        if len(descriptions) == 1 or written.get(run.unit) == {run.robot}:
            return run.unit
        kind = path.stem if stems[path.stem] == 1 else f"{path.parent.name} {path.stem}"
        return kind if run.unit == path.stem else f"{kind} {run.unit}"

    return tuple(replace(run, unit=apart(run)) for run in runs)


def _checked(
    robot: str, settings: Mapping[str, Any], home: Path, file: object, places: Mapping[str, str]
) -> Run:
    """A run without logs: robot and settings can be used, and their paths do not depend on the folder.

    Args:
        robot: As written.
        settings: All of them.
        home: Folder of the file.
        file: The campaign file, for errors.
        places: Key of a setting -> its place in the file.
    """
    from dynid.experiment.file import beside
    from dynid.mechanism.load import builtin_robots, load_robot
    from dynid.problem import as_asked

    if wrong := [key for key in settings if key in _OF_RUNS]:
        remedy = "give robot and logs to the runs; each run has its own name and folder"
        raise InputError(
            f"'{wrong[0]}' is no setting of a campaign", file=file, place=places[wrong[0]], remedy=remedy
        )
    try:
        asked = beside(experiment_from({**settings, "robot": robot, "logs": []}), home)
        mechanism = as_asked(load_robot(asked.robot), asked)
    except InputError as error:
        if error.file is not None:
            raise
        key = re.split(r"[.\[]", error.place or "")[0]
        place = places.get(key, key) + (error.place or "").removeprefix(key)
        raise InputError(error.text, file=file, place=place or None, remedy=error.remedy) from error
    tree = asked.tree()
    paths = {key: tree[key] for key in ("validate", "unloaded") if key in settings}
    read_from = [] if asked.unloaded is None else [str(asked.unloaded.result)]
    if asked.robot not in builtin_robots():
        read_from = [str(asked.robot), *mechanism.sources, *read_from]
    files = (*read_from, *(str(log.file) for log in asked.validate))
    content = _content(read_from)
    return Run("", "", "", str(asked.robot), (), {**settings, **paths}, files=files, content=content)


def _content(files: Sequence[str]) -> str:
    """Digest of the content of files; of a result folder that of its parameters."""
    known = sha256()
    for file in map(Path, files):
        place = file / "result.json" if file.is_dir() else file
        known.update(place.read_bytes() if place.is_file() else b"")
    return known.hexdigest()


def _run(entry: RunEntry, like: Run, fields: Mapping[str, str], logs: tuple[str, ...]) -> Run:
    """A run with its logs; `like` has robot and settings."""
    plain = Path(entry.robot).stem
    unit = _filled(entry.unit, fields) or fields.get("unit", "")
    date = _filled(entry.date, fields) or fields.get("date", "")
    parts = (plain, unit, date, fields.get("run", ""))
    name = _filled(entry.name, fields) or "-".join(part for part in parts if part)
    name = folder_name(f"{name}-{like.variant}" if like.variant else name)
    return replace(like, name=name, unit=unit or plain, date=date, logs=logs)


def folder_name(text: str) -> str:
    """A text as the name of a folder."""
    return _NAME.sub("_", text).strip(".") or "run"


def _filled(text: str, fields: Mapping[str, str]) -> str:
    return FIELD.sub(lambda match: fields.get(match[1], match[0]), text)


def _matches(
    entry: RunEntry, start: Path, file: object, may_arrive: bool, earlier: Callable[[], Iterable[str]]
) -> Iterator[tuple[dict[str, str], tuple[str, ...]]]:
    """The fields of each run, with its logs; without fields all logs are one run."""
    grouped: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for pattern in entry.logs:
        paths = paths_of(pattern, start)
        if not paths and not may_arrive and not any(asks_for(pattern, log) for log in earlier()):
            raise InputError(
                f"no file matches '{pattern}'",
                file=file,
                place="runs.logs",
                remedy="patterns may contain *, **, {unit}, {date}, {run}"
                + ("" if is_address(pattern) else f"; they start at {start}"),
            )
        expression = expression_of(pattern if is_address(pattern) else str(start / pattern))
        for path in paths:
            match = expression.fullmatch(path)
            if match is None and may_arrive:
                continue  # of two fields that must be equal: not a log of this pattern
            if match is None:
                raise InputError(
                    f"'{path}' does not show the fields of '{pattern}'",
                    file=file,
                    place="runs.logs",
                    remedy="a field that occurs twice has one value; write its second place as *",
                )
            fields = tuple(sorted(match.groupdict().items()))
            grouped.setdefault(fields, []).append(path)
    for fields, logs in grouped.items():
        yield dict(fields), tuple(logs)
