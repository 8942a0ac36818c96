"""Many starts in processes or on a cluster; each finished start is written to the journal immediately."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from dynid.common.batched import single_threaded_blas
from dynid.common.engine import TRIES, Died, Progress, completed
from dynid.common.errors import InputError, NoResultError
from dynid.excitation.optimal.starts import Start

Make = Callable[..., Any]  # something with `run(number, *more)`
Task = tuple[Any, ...]  # arguments of `run`, the number first
Then = Callable[[Mapping[int, Any]], Sequence[Task]]
_STARTERS: dict[str, Any] = {}  # of a worker: the one of the last call of `run_starts` that it works for
_BUILDING = threading.Lock()
SCHEMA = "dynid.journal/1"


def run_starts(
    make: Make,
    arguments: Sequence[Any],
    count: int,
    journal: Journal,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
    starter: Any | None = None,
    label: str = "start",
    then: Then | None = None,
) -> tuple[Any, ...]:
    """Run all starts that are not yet in the journal.

    Args:
        make: Builds the starter from the arguments, once in every worker; importable by its name.
        arguments: Small and serialisable: they are sent with every task.
        count: Total number of starts.
        jobs: Number of processes; 1: runs in this process.
        cluster: Address of a Dask scheduler instead.
        starter: Already built, for this process.
        label: Name of one start in the progress display.
        then: Tasks that follow from the entries of the journal once all starts are done; it is asked again
            until it returns none. They count as half of the work.
    """

    def tasks() -> Sequence[Task]:
        missing = [(number,) for number in range(count) if number not in journal.done]
        return missing or (() if then is None else then(journal.done))

    def report() -> None:
        done = sum(number < count for number in journal.done)
        if progress is None:
            return
        if then is None or done < count:
            progress(f"{label} {done} of {count}", (1.0 if then is None else 0.5) * done / count)
            return
        further = len(journal.done) - count
        whole = further + len(then(journal.done))
        progress(f"best {label}s: {further} of {whole}", 0.5 + 0.5 * further / max(whole, 1))

    report()
    for entry in _run(make, arguments, tasks, jobs, cluster, starter):
        journal.add(entry)
        report()
    return tuple(journal.done[number] for number in range(count))


def _run(
    make: Make,
    arguments: Sequence[Any],
    tasks: Callable[[], Sequence[Task]],
    jobs: int,
    cluster: str | None,
    starter: Any | None,
) -> Iterator[Any]:
    """Entries in the order of completion; the tasks still to be done are asked for after each round."""
    waiting = tasks()
    if cluster is None and (jobs <= 1 or len(waiting) <= 1):
        local = starter
        while waiting := tasks():
            local = local or make(*arguments)
            for task in waiting:
                yield local.run(*task)
        return
    work = partial(_run_task, uuid.uuid4().hex, make, tuple(arguments))
    for task, entry in completed(work, tasks, min(jobs, len(waiting)), cluster):
        if isinstance(entry, Died):
            raise NoResultError(
                f"worker processes were killed {TRIES} times, the last time in number {task[0]}:"
                " probably too little memory. Try --jobs 1; finished starts are kept"
            )
        if isinstance(entry, BaseException):
            raise entry
        yield entry


def _run_task(call: str, make: Make, arguments: tuple[Any, ...], task: Task) -> Any:
    """One task in a worker, which builds the starter of a call once."""
    with single_threaded_blas():
        with _BUILDING:
            if call not in _STARTERS:
                _STARTERS.clear()
                _STARTERS[call] = make(*arguments)
            starter = _STARTERS[call]
        return starter.run(*task)


# The journal of an optimisation: one line per start, so that an interrupted run can continue.
#
# The first line contains the settings; an incomplete last line is ignored.


def _start(document: Mapping[str, Any]) -> Start:
    return Start(**{**document, "z": tuple(document["z"])})


class Journal:
    """Finished starts, stored on disk line by line.

    Args:
        file: Path; None keeps them only in memory.
        asked: Identifies the run: robot, settings, versions. Finished work of another run is not overwritten.
        revive: Makes an entry from the content of its line.
    """

    def __init__(
        self, file: Path | None, asked: Mapping[str, Any], revive: Callable[[Mapping[str, Any]], Any] = _start
    ) -> None:
        self.file = file
        self.done: dict[int, Any] = {}
        self._revive = revive
        self._asked = json.loads(json.dumps({"schema": SCHEMA, **asked}))
        if file is not None and file.exists():
            self._read(file)

    def add(self, start: Any) -> None:
        """Store an entry, a dataclass with a `number`; it is on disk when this returns."""
        self.done[start.number] = start
        if self.file is None:
            return
        if not self.file.exists():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._append(self.file, self._asked)
        self._append(self.file, asdict(start))

    def remove(self) -> None:
        """Delete the file: the run is finished and its result is written elsewhere."""
        if self.file is not None:
            self.file.unlink(missing_ok=True)

    @contextmanager
    def without_result(self) -> Iterator[None]:
        """Around what follows the starts: if it is refused, they lead to nothing, and the file is deleted."""
        try:
            yield
        except InputError:
            self.remove()
            raise

    def _append(self, file: Path, document: Mapping[str, Any]) -> None:
        line = (json.dumps(document) + "\n").encode()
        with file.open("a+b") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(size - 1, 0))
            if stream.read(1) not in (b"", b"\n"):
                line = b"\n" + line  # after an incomplete line
            stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())

    def _read(self, file: Path) -> None:
        documents = []
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                documents.append(json.loads(line))
            except ValueError:
                continue
        if not documents:
            return
        if documents[0] != self._asked:
            if len(documents) == 1:  # nothing was finished
                file.unlink()
                return
            count = len(documents) - 1
            raise InputError(
                f"holds {count} finished part{'s' * (count != 1)} of another run that was interrupted:"
                f" {_difference(documents[0], self._asked)}",
                file=file,
                remedy="to continue that run, repeat it with its own options; to begin anew, delete this"
                " file; to keep it, choose another --out",
            )
        for document in documents[1:]:
            try:
                entry = self._revive(document)
            except (AttributeError, KeyError, TypeError, ValueError):
                continue  # a damaged line: this entry is computed again
            self.done[entry.number] = entry


# Keys of a journal that say nothing to a reader.
_HASHED = {
    "inputs": "the description of the robot, or the data that it was based on, are not the same",
    "dynid": "it is of another version of dynid",
    "schema": "it is of another version of dynid",
}


def _difference(recorded: Any, asked: Mapping[str, Any]) -> str:
    """The first option that differs, in words."""
    if not isinstance(recorded, dict):
        return "it has another format"
    for key, value in asked.items():
        if recorded.get(key) != value:
            return _HASHED.get(key, f"{key} is {_value(recorded.get(key))} there and {_value(value)} here")
    return "it has other options"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "not given"
    return "not given" if value in (None, "") else str(value)
