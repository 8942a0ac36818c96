"""Logs in an object store (`s3://bucket/...`): found by patterns, and copied while they are used."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dynid.common.errors import DynidError, InputError
from dynid.motion.reading import is_address


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
        system.invalidate_cache()  # logs that arrived since an earlier look
        return sorted(system.unstrip_protocol(key) for key in system.glob(path))


def remote_stamp(place: str) -> list[str]:
    """Size and version of a log in an object store, as far as the store knows them."""
    with _refusing(place):
        system, path = _fsspec().core.url_to_fs(place)
        known = system.info(path)
    return [str(known[key]) for key in ("size", "ETag", "LastModified", "mtime", "created") if key in known]


@contextlib.contextmanager
def local_copies(places: Sequence[str]) -> Iterator[dict[str, str]]:
    """Path on this machine -> log; copies of remote ones exist during the block, and errors name their log.

    Pipes and devices that a pattern matches are refused: reading them could wait for ever.
    """
    for place in places:
        if os.path.exists(place) and not (os.path.isfile(place) or os.path.isdir(place)):
            raise InputError("is neither a file nor a folder", file=place)
    with tempfile.TemporaryDirectory(prefix="dynid-") as made:
        folder = Path(made).resolve()
        copies = {_fetched(place, folder / str(i)): place for i, place in enumerate(places)}
        try:
            yield copies
        except DynidError as error:
            text = error.message
            for copy, place in copies.items():
                text = text.replace(copy, place)
            error.args = (text,)
            raise


def _fetched(place: str, folder: Path) -> str:
    """The path of a log; a remote one is copied, with its time of change: the date of a log without clock."""
    if not is_address(place):
        return place
    folder.mkdir()
    target = folder / (place.rstrip("/").rpartition("/")[2] or "log")
    with _refusing(place):
        system, path = _fsspec().core.url_to_fs(place)
        with system.open(path, "rb") as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy)
    with contextlib.suppress(Exception):  # stores without it, each with an error of its own
        changed = system.modified(path).timestamp()
        os.utime(target, (changed, changed))
    return str(target)


class StoreError(InputError):
    """An object store does not answer, or has not this log."""


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
        raise StoreError(
            f"cannot be read: {type(error).__name__}: {error}", file=place, remedy="check address and access"
        ) from error
