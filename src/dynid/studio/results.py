"""Results and motions of the page, and their files that may be shown: no path comes from an address."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from dynid.common.errors import InputError
from dynid.experiment.experiment import Experiment
from dynid.experiment.file import is_result
from dynid.report.json_file import plain, read_result

_TYPES = {
    "report.html": "text/html; charset=utf-8",
    "comparison.html": "text/html; charset=utf-8",
    "result.json": "application/json",
    "parameters.csv": "text/csv; charset=utf-8",
    "signals.csv": "text/csv; charset=utf-8",
}


class Results:
    """Folders of results in the order in which they were added, of comparisons and of designed motions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: list[Path] = []
        self._texts: list[dict[str, Any]] = []
        self._compared: list[dict[str, Any]] = []
        self._motions: list[dict[str, Any]] = []

    def add(self, path: Path, refusal: str = "") -> Path:
        """Read a result, a folder or its result.json; one that is listed already is read again. Its folder.

        Args:
            path: Of the result.
            refusal: Why it is no reliable result.
        """
        estimate = read_result(path)
        folder = (path if path.is_dir() else path.parent).resolve()
        text = {
            "name": folder.name,
            "path": str(folder),
            "robot": estimate.robot,
            "level": estimate.verdict.level,
            "headline": estimate.verdict.headline,
            "refusal": refusal,
            "report": (folder / "report.html").is_file(),
            "residual": estimate.fit.residual_percent,
            "parameters": [
                {
                    "name": parameter.name,
                    "value": parameter.value,
                    "sigma": parameter.sigma,
                    "percent": parameter.sigma_rel_percent,
                    "unit": parameter.unit,
                }
                for parameter in estimate.parameters
            ],
        }
        with self._lock:
            if folder in self._folders:
                self._texts[self._folders.index(folder)] = plain(text)
            else:
                self._folders.append(folder)
                self._texts.append(plain(text))
        return folder

    def opened(self, asked: Experiment) -> Experiment:
        """An opened file, with the results that it names in the list; folders to write are chosen anew."""

        def listed(path: str) -> str:
            return str(self.add(Path(path)))

        excite, compare, export = asked.excite, asked.compare, asked.export
        if excite is not None:
            after = tuple(listed(path) if is_result(Path(path)) else path for path in excite.after)
            excite = excite.changed(out=None, after=after)
        if compare is not None:
            compare = compare.changed(out=None, results=tuple(map(listed, compare.results)))
        if export is not None:
            export = export.changed(out=None, result=export.result and listed(export.result))
        return asked.changed(out=None, excite=excite, compare=compare, export=export)

    def compared(self, comparison: dict[str, Any]) -> None:
        """Add a comparison: its `folder`, and its answer in `words`."""
        with self._lock:
            self._compared.append({**comparison, "name": Path(comparison["folder"]).name})

    def designed(self, motion: dict[str, Any]) -> None:
        """Add a motion: its `folder`, and what the page says about it."""
        with self._lock:
            self._motions.append({**motion, "name": Path(motion["folder"]).name})

    def path(self, index: int) -> Path:
        """Folder of a result of the list."""
        with self._lock:
            if not 0 <= int(index) < len(self._folders):
                raise InputError(
                    f"there is no result number {int(index) + 1}", remedy="choose one of the list"
                )
            return self._folders[int(index)]

    def state(self) -> dict[str, Any]:
        """For the page."""
        with self._lock:
            compared, motions = list(self._compared), list(self._motions)
            return {"list": list(self._texts), "compared": compared, "motions": motions}

    def file(self, kind: str, index: str, name: str) -> tuple[bytes, str] | None:
        """Content and type of a file of a `result`, of a comparison (`compared`) or of a `motion`; or None.

        Args:
            kind, index, name: Parts of an address; only known names and numbers of the lists are valid.
        """
        with self._lock:
            made = {"compared": self._compared, "motion": self._motions}
            lists = {key: [Path(one["folder"]) for one in several] for key, several in made.items()}
            lists["result"] = self._folders
            folders = lists.get(kind, [])
            if not (index.isascii() and index.isdecimal() and len(index) < 6) or name not in _TYPES:
                return None
            folder = folders[int(index)] if int(index) < len(folders) else None
        if folder is None or not (folder / name).is_file():
            return None
        return (folder / name).read_bytes(), _TYPES[name]
