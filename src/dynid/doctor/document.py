"""A diagnosis as a terminal table, as JSON (`dynid.check/1`) and as a page with figures."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.doctor.diagnosis import Diagnosis
from dynid.doctor.figures import coverage_figure, delay_figure, spectrum_figure
from dynid.report.json_file import json_text, plain
from dynid.report.numbers import number, plural
from dynid.report.output import claimed_folder, replace_folder
from dynid.report.page import scripted_page
from dynid.report.terminal import COLOURS, plain_table, print_titled, standard_console, verbatim

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "dynid.check/1"
FILES = ("check.json", "check.html")
_MOST_FIGURES = 6  # logs
_WIDTHS = (8, 14, 13, 11, None)  # of the table, in characters; None: the rest


def headline(found: Diagnosis) -> str:
    """The outcome in one sentence."""
    counts = [
        f"{label}: {n}"
        for label, n in (
            ("refused", sum(finding.refused for finding in found.findings)),
            ("stop", sum(finding.severity == "stop" and not finding.refused for finding in found.findings)),
            ("care", sum(finding.severity == "care" for finding in found.findings)),
            ("note", sum(finding.severity == "note" for finding in found.findings)),
        )
        if n
    ]
    if found.refused:
        start = "identify refuses these logs"
    elif found.worst == "stop":
        start = "no reliable result can be expected from these logs"
    elif found.worst == "care":
        start = "these logs can be used; check the findings"
    else:
        start = "nothing doubtful was found"
    return f"{start} ({', '.join(counts)})" if counts else start


def print_diagnosis(found: Diagnosis, console: Console | None = None) -> None:
    """Print the table of findings, the worst first, and what the logs are like."""
    out = console or standard_console()
    out.print(verbatim(f"{found.robot}: {headline(found)}", "bold"))
    for recording in found.recordings:
        clock = recording.clock or f"{recording.rate:.6g} Hz"
        out.print(
            verbatim(
                f"{recording.name}: {recording.samples} samples, {recording.seconds:.4g} s,"
                f" {plural(recording.segments, 'segment')}; {clock}"
            )
        )
    if found.excitation is not None:
        seen = found.excitation
        condition = number(seen.condition, 3)
        left = f"; {number(found.residual_percent, 3)} % of the efforts is not explained"
        out.print(
            verbatim(
                f"{seen.seen} of {seen.base} base parameters excited, condition number {condition}{left}"
            )
        )
    titles = ("severity", "channel", "place", "value", "finding and remedy")
    table = plain_table(*titles, left=titles)
    for column, width in zip(table.columns, _WIDTHS, strict=True):
        column.width, column.overflow = width, "fold"
    for row in found.findings:
        style = f"bold {COLOURS[row.severity]}"
        word = "refused" if row.refused else str(row.severity)
        text = f"{row.code}: {row.text}" + (f"\n-> {row.remedy}" if row.remedy else "")
        table.add_row(verbatim(word, style), *map(verbatim, (row.channel, row.place, row.value, text)))
        table.add_section()
    if found.findings:
        print_titled(out, "", table)


def diagnosis_document(found: Diagnosis) -> dict[str, Any]:
    """The content of `check.json`; undefined values are null."""
    document: dict[str, Any] = plain(
        {
            "schema": SCHEMA,
            "robot": found.robot,
            "headline": headline(found),
            "refused": found.refused,
            "findings": [asdict(finding) for finding in found.findings],
            "logs": [
                asdict(recording) | {"file": Path(recording.file).name} for recording in found.recordings
            ],
            "channels": [asdict(channel) for channel in found.channels],
            "residual_tests": [asdict(test) for test in found.tests],
            "excitation": None if found.excitation is None else asdict(found.excitation),
            "residual_percent": found.residual_percent,
        }
    )
    return document


def diagnosis_html(found: Diagnosis) -> str:
    """One self-contained page: findings, channels, spectra, delays, coverage."""
    drawn = list(zip(found.logs, found.plans, strict=False))[:_MOST_FIGURES]
    return scripted_page(
        "check.html",
        (),
        found=found,
        headline=headline(found),
        level="bad" if found.worst == "stop" else found.worst if found.worst == "care" else "good",
        spectra=[spectrum_figure(log, plan, f"spectra{i}") for i, (log, plan) in enumerate(drawn)],
        delays=delay_figure(found),
        coverage=[coverage_figure(log, plan, f"coverage{i}") for i, (log, plan) in enumerate(drawn)],
    )


def write_diagnosis(found: Diagnosis, folder: Path) -> None:
    """Write `check.json` and `check.html` into `folder` atomically; only an older check is replaced."""
    texts = (json_text(diagnosis_document(found)), diagnosis_html(found))
    with claimed_folder(folder, FILES) as path:
        replace_folder(path, dict(zip(FILES, texts, strict=True)))
