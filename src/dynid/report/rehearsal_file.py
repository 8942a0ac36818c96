"""`rehearsal.json` (`dynid.rehearsal/1`), `rehearsal.csv` and `rehearsal.html`."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from dynid.errors import InputError
from dynid.report.csv_file import harmless
from dynid.report.figures.rehearsal import promise_figure
from dynid.report.html import scripted_page
from dynid.report.json_file import json_text, plain
from dynid.report.output import write_files
from dynid.report.rehearsal_text import TITLES, cells
from dynid.report.template import source
from dynid.statistics.rehearsal import Rehearsal, RehearsedParameter

SCHEMA = "dynid.rehearsal/1"
FILES = ("rehearsal.json", "rehearsal.csv", "rehearsal.html")


def rehearsal_document(found: Rehearsal) -> dict[str, Any]:
    """The content of `rehearsal.json`; figures that are not defined are null."""
    document: dict[str, Any] = plain({"schema": SCHEMA, **asdict(found)})
    return document


def rehearsal_csv(found: Rehearsal) -> str:
    """One row a parameter, full precision, SI."""
    names = [one.name for one in fields(RehearsedParameter)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for one in found.parameters:
        values = [plain(getattr(one, name)) for name in names]
        writer.writerow([harmless(value) if isinstance(value, str) else value for value in values])
    return text.getvalue()


def rehearsal_html(found: Rehearsal) -> str:
    """One self-contained page with a picture of what was promised and what was found."""
    return scripted_page(
        "rehearsal.html",
        (source("figures.js"),),
        found=found,
        titles=TITLES,
        rows=[cells(one) for one in found.parameters],
        picture=promise_figure(found),
    )


def check_folder(folder: Path) -> Path:
    """Refuse, before the work, a folder with files that are not ours."""
    path = folder.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        foreign = [one.name for one in path.iterdir() if one.name not in FILES] if path.is_dir() else []
    except OSError as error:
        raise _cannot(error, path) from error
    if foreign or path.is_file():
        shown = ", ".join(sorted(foreign)[:3]) or "a file of that name"
        raise InputError(f"holds {shown}", file=path, remedy="choose another folder with --out")
    return path


def write_rehearsal(found: Rehearsal, folder: Path) -> None:
    """Write the three files into `folder`, whole or not at all; only an older rehearsal is replaced."""
    path = check_folder(folder)
    texts = (json_text(rehearsal_document(found)), rehearsal_csv(found), rehearsal_html(found))
    try:
        write_files(path, dict(zip(FILES, texts, strict=True)))
    except OSError as error:
        raise _cannot(error, path) from error


def _cannot(error: OSError, path: Path) -> InputError:
    return InputError(
        f"cannot be written: {error.strerror or error}", file=path, remedy="choose another --out"
    )
