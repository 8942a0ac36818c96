"""Result folders: written atomically, and never over other files."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from dynid.common.errors import DynidError, InputError
from dynid.motion.reading import refuse_address
from dynid.report.lock import locked
from dynid.statistics.estimate import Estimate

OWN_FILES = (
    "result.json",
    "parameters.csv",
    "signals.csv",
    "report.html",
    "history.csv",
    "validation.json",
    "validation_signals.csv",
    "compensation.py",
    "compensation.json",
    "grouping.json",
    "robot.corrected.yaml",
    "robot.corrected.yaml.diff",
    "experiment.corrected.yaml",
)
_NEEDED_SPACE = (
    32 * 2**20
)  # bytes: a report takes up to 1.5 MB; the old one is kept until the new one is complete
_MOST_LOGS = 3  # named of a result that is replaced
_REMEDY = "choose another folder with --out"
PREFIX = ".dynid-"
_LEFTOVER = re.compile(r"\.(?P<name>.+)\.(?P<kind>new|old)-[^-.]*")  # as `write_files` calls them
_NEW, _OUT, _IN = f"{PREFIX}new-", f"{PREFIX}out-", f"{PREFIX}in-"


@dataclass(frozen=True)
class ResultFolder:
    """A folder that was checked and is locked for this run.

    `older` describes the result that is there and will be replaced; empty: none.
    """

    path: Path
    older: str = ""

    def write(self, estimate: Estimate) -> list[str]:
        """Put `result.json`, `parameters.csv`, `report.html` and others there, all or none; their names."""
        files = result_files(estimate, self.path)
        replace_folder(self.path, files)
        return list(files)


def write_results(estimate: Estimate, directory: str | Path) -> None:
    """Write the files of a result into `directory` atomically.

    Raises:
        InputError: The folder contains files that are not a result, cannot be written, or is in use.
    """
    path = Path(directory)
    if path.suffix.lower() in (".json", ".csv", ".html") and not path.exists():
        raise InputError(
            "a result is saved as a folder, not as a file",
            file=path,
            remedy=f"name a folder: '{path.with_suffix('')}' gets result.json and the other files",
        )
    with claimed(directory) as folder:
        folder.write(estimate)


@contextlib.contextmanager
def claimed(directory: str | Path) -> Iterator[ResultFolder]:
    """Check and lock the result folder before the run, so that a long run does not fail at its end."""
    with _claimed(directory, _check_result) as path:
        yield ResultFolder(path, _older(path))


@contextlib.contextmanager
def claimed_folder(directory: str | Path, own_files: Sequence[str]) -> Iterator[Path]:
    """The same for a folder of other files, in which only `own_files` may be; `replace_folder` writes it."""

    def check(path: Path) -> None:
        foreign = sorted(p.name for p in path.iterdir() if p.name not in own_files) if path.exists() else []
        if foreign:
            text = f"folder contains other files: {', '.join(foreign[:3])}"
            raise InputError(text, file=path, remedy=_REMEDY)

    with _claimed(directory, check) as path:
        yield path


def replace_file(file: Path, content: bytes) -> None:
    """Write a file: the old one stays until the new one is complete, also if two processes write it."""
    new = file.with_name(f".{file.name}.new-{uuid.uuid4().hex[:8]}")
    try:
        with new.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def replace_folder(path: Path, files: Mapping[str, str]) -> None:
    """Put `files` into a claimed folder atomically."""
    with _refusing(path):
        write_files(path, files)


@contextlib.contextmanager
def _claimed(directory: str | Path, check: Callable[[Path], None]) -> Iterator[Path]:
    """Check and lock a folder; `check` inspects its content."""
    path = real_path(directory)
    with contextlib.ExitStack() as stack:
        with _refusing(path):
            stack.callback(_remove_empty, _missing_parents(path))
            path.parent.mkdir(parents=True, exist_ok=True)
            _check_place(path)
            stack.enter_context(locked(path.parent / f".{path.name}.lock"))
            _recover(path)
            check(path)
        yield path


def real_path(path: str | Path) -> Path:
    """The target of a path: the target of a link is replaced, the link is kept."""
    refuse_address(Path(path), "write into a folder, and copy it to the store")
    return Path(os.path.realpath(path))


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn file system failures into input errors with a remedy."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}", file=path, remedy=_REMEDY
        ) from error


def _missing_parents(path: Path) -> list[Path]:
    return [parent for parent in path.parents if not parent.exists()]


def _remove_empty(folders: list[Path]) -> None:
    """Remove folders created for a run that wrote nothing; those in use are kept."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def result_files(estimate: Estimate, folder: Path | None = None) -> dict[str, str]:
    """Name -> text of every file of a result; paths in them are relative to `folder`."""
    from dynid.report.corrected import FILE, corrected_experiment
    from dynid.report.csv_file import history_csv, parameters_csv, signals_csv
    from dynid.report.html import report_html
    from dynid.report.json_file import json_text, relative_places, result_document
    from dynid.report.seal import sealed

    if folder is not None:
        estimate = replace(estimate, provenance=relative_places(estimate.provenance, folder))
    corrected = corrected_experiment(estimate)
    others = {
        "parameters.csv": parameters_csv(estimate),
        "signals.csv": signals_csv(estimate.signals),
        "report.html": report_html(estimate),
        **({} if estimate.history is None else {"history.csv": history_csv(estimate.history)}),
        **estimate.files,
        **({FILE: corrected} if corrected else {}),
    }
    return {"result.json": json_text(sealed(result_document(estimate), others)), **others}


def write_files(path: Path, files: Mapping[str, str]) -> None:
    """Make the folder `path` contain exactly `files`; on failure it is not changed."""
    path = real_path(path)
    stays = must_stay(path)
    old = sorted(path.iterdir()) if stays else []
    staging = staging_prefix(path) if stays else str(path.parent / f".{path.name}.new-")
    new = Path(tempfile.mkdtemp(prefix=Path(staging).name, dir=Path(staging).parent))
    try:
        new.chmod(0o777 & ~_umask())
        with ThreadPoolExecutor(max(1, len(files))) as pool:  # the disk syncs several in the time of one
            list(pool.map(_write_through, [new / name for name in files], files.values()))
        _sync_folder(new)
        if stays:
            exchange_files(path, new, old)
            _sync_folder(path)
        else:
            _exchange(path, new)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def write_file(file: Path, text: str) -> None:
    """Write one file atomically; a link is kept, and its target is written."""
    file = real_path(file)
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    os.close(handle)
    new = Path(name)
    try:
        _write_through(new, text)
        new.chmod(0o666 & ~_umask())
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def _exchange(path: Path, new: Path) -> None:
    old = path.parent / f".{path.name}.old-{new.name.rpartition('-')[2]}"
    if path.exists():
        path.rename(old)
    try:
        new.rename(path)
    except OSError:
        if old.exists():
            old.rename(path)
        raise
    _sync_folder(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def _recover(path: Path) -> None:
    """Clean up after a killed run; a result that was moved aside is restored if its place is empty."""
    recover(path)
    clear_leftovers(path.parent, path.name)


def written_as(name: str) -> str:
    """The name of a file that a killed run left unfinished; of others their own."""
    parts = _LEFTOVER.fullmatch(name)
    return parts["name"] if parts else name


def clear_leftovers(folder: Path, name: str = "") -> None:
    """Clean up after a killed run in a folder of results: of the entry of that name, or of all."""
    for entry in sorted(folder.iterdir()):
        parts = _LEFTOVER.fullmatch(entry.name)
        if parts is None or name not in ("", parts["name"]):
            continue
        if parts["kind"] == "old" and not (folder / parts["name"]).exists():
            entry.rename(folder / parts["name"])
        elif entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _check_place(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise InputError("is a file, not a folder", file=path, remedy=_REMEDY)
    for place in (path.parent, path):
        if place.exists() and not os.access(place, os.W_OK | os.X_OK):
            raise InputError("no permission to write", file=place, remedy=_REMEDY)
    free = shutil.disk_usage(path.parent).free
    if free < _NEEDED_SPACE:
        raise InputError(
            f"only {free / 2**20:.1f} MB are free on the disk, {_NEEDED_SPACE >> 20} MB needed",
            file=path.parent,
            remedy="free some space, or " + _REMEDY,
        )


def _check_result(path: Path) -> None:
    if not path.exists():
        return
    names = sorted(entry.name for entry in path.iterdir())
    foreign = [name for name in names if name not in OWN_FILES and not _is_cache(path / name)]
    if names and (foreign or not _is_result(path)):
        shown = ", ".join((foreign or names)[:3])
        raise InputError(f"contains files that are not a dynid result: {shown}", file=path, remedy=_REMEDY)


def _is_cache(path: Path) -> bool:
    """Whether it is the cache that Python creates when `compensation.py` is imported."""
    return path.name == "__pycache__" and all(
        file.name.startswith("compensation.") for file in path.iterdir()
    )


def _is_result(path: Path) -> bool:
    file = path / "result.json"
    if not file.is_file():
        return (path / "validation.json").is_file()
    with file.open(encoding="utf-8", errors="replace") as stream:
        return '"dynid.result/' in stream.read(200)


def _older(path: Path) -> str:
    """When the result in a folder was written, from which logs, and its verdict; empty without one."""
    file = path / "result.json"
    if not file.is_file():
        return ""
    words = f"result of {datetime.fromtimestamp(file.stat().st_mtime).astimezone():%Y-%m-%d %H:%M}"
    with contextlib.suppress(DynidError):
        from dynid.report.json_file import read_result

        older = read_result(file)
        used = [source for source in older.provenance.get("inputs", ()) if source.get("use") == "identify"]
        names = [Path(str(source.get("file"))).name for source in used]
        more = [f"{len(names) - _MOST_LOGS} more"] if len(names) > _MOST_LOGS else []
        words += f" ({', '.join([older.verdict.level, *names[:_MOST_LOGS], *more])})"
    return words


def _write_through(file: Path, text: str) -> None:
    with file.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def _sync_folder(path: Path) -> None:
    if os.name == "nt":  # folders cannot be opened there
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Files of a folder that cannot be replaced as a whole: the current folder, or the root of a mounted disk.
# The folder itself is kept, its files are replaced in two steps. Names inside it show the progress, so that
# the next run can repair a killed one: `.dynid-out-ID` while old files are moved out (then undone),
# `.dynid-in-ID` while new files are moved in (then completed). Old and new files are never there together.


def must_stay(path: Path) -> bool:
    """Whether a folder must not be renamed: it is the current folder, or a disk is mounted there."""
    return path.is_dir() and (os.path.ismount(path) or path.samefile(os.curdir))


def staging_prefix(path: Path) -> str:
    """Prefix of a folder inside `path` for the new files, on the same disk."""
    return str(path / _NEW)


def exchange_files(path: Path, new: Path, old: Iterable[Path]) -> None:
    """Replace the entries `old` of `path` by the files in `new`; on failure they are not changed."""
    mark = new.name.removeprefix(_NEW)
    aside = path / f"{_OUT}{mark}"
    names = {file.name for file in new.iterdir()}
    aside.mkdir()
    try:
        _move(old, aside)
        aside = aside.rename(path / f"{_IN}{mark}")
        _move(sorted(new.iterdir()), path)
    except OSError:
        for name in names - {file.name for file in new.iterdir()}:  # those that have arrived
            (path / name).unlink()
        _move(sorted(aside.iterdir()), path)
        aside.rmdir()
        raise
    shutil.rmtree(aside, ignore_errors=True)


def recover(path: Path) -> None:
    """Repair the state left by a killed run inside `path`."""
    if not path.is_dir():
        return
    for aside in _entries(path, _OUT):
        _move(sorted(aside.iterdir()), path)
        aside.rmdir()
    for aside in _entries(path, _IN):
        new = path / aside.name.replace(_IN, _NEW, 1)
        if new.is_dir():
            _move(sorted(new.iterdir()), path)
        shutil.rmtree(aside)
    for new in _entries(path, _NEW):
        shutil.rmtree(new)


def _entries(path: Path, prefix: str) -> list[Path]:
    return sorted(entry for entry in path.iterdir() if entry.name.startswith(prefix))


def _move(files: Iterable[Path], target: Path) -> None:
    for file in files:
        file.rename(target / file.name)
