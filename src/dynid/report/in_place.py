"""Files of a folder that cannot be replaced as a whole: the current folder, or the root of a mounted disk.

The folder itself is kept, its files are replaced in two steps. Names inside it show the progress, so that
the next run can repair a killed one: `.dynid-out-ID` while old files are moved out (then undone),
`.dynid-in-ID` while new files are moved in (then completed). Old and new files are never there together.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

PREFIX = ".dynid-"
_NEW, _OUT, _IN = f"{PREFIX}new-", f"{PREFIX}out-", f"{PREFIX}in-"


def must_stay(path: Path) -> bool:
    """Whether a folder must not be renamed: it is the current folder, or a disk is mounted there."""
    return path.is_dir() and (os.path.ismount(path) or path.samefile(os.curdir))


def staging(path: Path) -> str:
    """Prefix of a folder inside `path` for the new files, on the same disk."""
    return str(path / _NEW)


def exchange_files(path: Path, new: Path, old: Iterable[Path]) -> None:
    """Replace the entries `old` of `path` by the files in `new`; on failure they are not changed."""
    mark = new.name.removeprefix(_NEW)
    aside = path / f"{_OUT}{mark}"
    names = {one.name for one in new.iterdir()}
    aside.mkdir()
    try:
        _move(old, aside)
        aside = aside.rename(path / f"{_IN}{mark}")
        _move(sorted(new.iterdir()), path)
    except OSError:
        for name in names - {one.name for one in new.iterdir()}:  # those that have arrived
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
    return sorted(one for one in path.iterdir() if one.name.startswith(prefix))


def _move(files: Iterable[Path], target: Path) -> None:
    for file in files:
        file.rename(target / file.name)
