"""`rehearsal.json` (`dynid.rehearsal/1`), `rehearsal.csv` and `rehearsal.html`."""

from __future__ import annotations

import io
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from dynid.report.csv_file import RowWriter, harmless
from dynid.report.figures.rehearsal import promise_figure
from dynid.report.html import scripted_page
from dynid.report.json_file import json_text, plain
from dynid.report.output import claimed_folder, replace_folder
from dynid.report.rehearsal_text import TITLES, cells
from dynid.report.template import source
from dynid.statistics.rehearsal import Rehearsal, RehearsedParameter

SCHEMA = "dynid.rehearsal/1"
FILES = ("rehearsal.json", "rehearsal.csv", "rehearsal.html")


def rehearsal_document(found: Rehearsal) -> dict[str, Any]:
    """The content of `rehearsal.json`; undefined values are null."""
    document: dict[str, Any] = plain({"schema": SCHEMA, **asdict(found)})
    return document


def rehearsal_csv(found: Rehearsal) -> str:
    """One row per parameter, full precision, SI."""
    names = [one.name for one in fields(RehearsedParameter)]
    text = io.StringIO()
    writer = RowWriter(text)
    writer.writerow(names)
    for one in found.parameters:
        values = [plain(getattr(one, name)) for name in names]
        writer.writerow([harmless(value) if isinstance(value, str) else value for value in values])
    return text.getvalue()


def rehearsal_html(found: Rehearsal) -> str:
    """One self-contained page with a figure of the actual errors against the reported sigma."""
    return scripted_page(
        "rehearsal.html",
        (source("figures.js"),),
        found=found,
        titles=TITLES,
        rows=[cells(one) for one in found.parameters],
        picture=promise_figure(found),
    )


def rehearsal_files(found: Rehearsal) -> dict[str, str]:
    """Name -> text."""
    texts = (json_text(rehearsal_document(found)), rehearsal_csv(found), rehearsal_html(found))
    return dict(zip(FILES, texts, strict=True))


def write_rehearsal(found: Rehearsal, folder: Path) -> None:
    """Write the three files into `folder` atomically; only an older rehearsal is replaced."""
    with claimed_folder(folder, FILES) as path:
        replace_folder(path, rehearsal_files(found))
