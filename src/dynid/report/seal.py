"""Digests that show whether a result is as it was written: of the document, its files and its inputs."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynid.common.strict_json import read_json
from dynid.common.versions import version_of
from dynid.motion.logs import digest
from dynid.motion.reading import is_address
from dynid.report.exports import REPORT, without_exports
from dynid.report.json_file import RESULT_FILE, absolute_places, check_schema

_DIGEST, _FILES = "digest", "files"


@dataclass(frozen=True)
class Verification:
    """Whether a result is intact.

    Attributes:
        file: The result.
        differences: What differs, a sentence each; empty: intact.
        checked: What was compared and is the same.
        unchecked: What cannot be compared: logs that were given as arrays, or are in an object store.
    """

    file: str
    differences: tuple[str, ...]
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]

    @property
    def intact(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def sealed(document: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """The document with digests of the files beside it, and of itself.

    Args:
        document: In JSON types.
        files: Name -> text of the other files of the folder.
    """
    made = {**document, _FILES: {name: _sha256(text) for name, text in files.items()}}
    return {**made, _DIGEST: document_digest(made)}


def document_digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of a document without its own digest, whatever the order of its keys."""
    content = {key: value for key, value in document.items() if key != _DIGEST}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _sha256(text)


def verify(path: str | Path) -> Verification:
    """Compare a result with its digests, its inputs as they are now, and the versions in use.

    Raises:
        InputError: There is no such result, or it cannot be read.
    """
    file = Path(path)
    file = file / RESULT_FILE if file.is_dir() else file
    document = read_json(file, "give a result.json or its folder")
    check_schema(document, file)
    differences: list[str] = []
    checked: list[str] = []
    unchecked: list[str] = []
    for same, text in (*_document(document), *_beside(document, file.parent)):
        (checked if same else differences).append(text)
    recorded = document.get("provenance")
    provenance = absolute_places(recorded if isinstance(recorded, dict) else {}, file.parent)
    inputs = provenance.get("inputs")
    for entry in inputs if isinstance(inputs, list) else []:
        name, before = str(entry.get("file")), entry.get("sha256")
        if not before:
            unchecked.append(f"'{name}' was given as arrays: there is no file to compare")
            continue
        if is_address(name):
            unchecked.append(f"'{name}' is in an object store: it was not compared")
            continue
        same, text = _input(Path(name), str(before), str(entry.get("use")))
        (checked if same else differences).append(text)
    differences += _versions(provenance.get("versions"))
    return Verification(str(file), tuple(differences), tuple(checked), tuple(unchecked))


def _document(document: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    before = document.get(_DIGEST)
    if before is None:
        yield False, "result.json has no digest: it was written by another version or program"
    elif before != document_digest(document):
        yield False, "result.json was changed after it was written: its digest differs"
    else:
        yield True, "result.json is as it was written"


def _beside(document: Mapping[str, Any], folder: Path) -> Iterator[tuple[bool, str]]:
    """Files of the folder: changed ones; a file that was removed is no contradiction."""
    files = document.get(_FILES)
    for name, before in files.items() if isinstance(files, dict) else ():
        place = folder / Path(str(name)).name
        if place.is_file():
            same = _file_digest(place) == before
            yield same, f"{name} {'is as it was written' if same else 'was changed after it was written'}"


def _file_digest(file: Path) -> str:
    """SHA-256 of a file; of a report without the certificates of exports, which are added to it later."""
    if file.name != REPORT:
        return digest(file)
    return _sha256(without_exports(file.read_bytes().decode("utf-8", "replace")))


def _input(file: Path, before: str, use: str) -> tuple[bool, str]:
    if not file.exists():
        return False, f"input '{file.name}' ({use}) is not found at its recorded place"
    if digest(file) != before:
        return False, f"input '{file.name}' ({use}) has changed: its SHA-256 is not {before[:12]}..."
    return True, f"input '{file.name}' ({use}) is unchanged"


def _versions(recorded: object) -> Iterator[str]:
    for name, before in recorded.items() if isinstance(recorded, dict) else ():
        try:
            now = platform.python_version() if name == "python" else version_of(str(name))
        except ImportError:
            now = "not installed"
        if now != before:
            yield f"version of {name}: {now} now, {before} when the result was made"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
