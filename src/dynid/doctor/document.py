"""A diagnosis as a terminal table, as JSON (`dynid.check/1`) and as a page with figures.

Figures of a diagnosis: spectra with the cutoff, delays, and the coverage of the joint space.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.arrays import spread
from dynid.common.audience import for_python
from dynid.doctor.diagnosis import Diagnosis, Finding
from dynid.motion.choose import middle_parts
from dynid.motion.log import Log
from dynid.motion.motion import Motion
from dynid.motion.plan import MotionPlan
from dynid.motion.spectrum import welch
from dynid.report.json_file import json_text, plain
from dynid.report.numbers import number, plural
from dynid.report.output import claimed_folder, replace_folder
from dynid.report.page import scripted_page
from dynid.report.plots import PALETTE, figure, line, packed, panel, points
from dynid.report.terminal import COLOURS, print_titled, standard_console, verbatim

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dynid.report.plots import Figure


SCHEMA = "dynid.check/1"
FILES = ("check.json", "check.html")
_MOST_FIGURES = 6  # logs
_WIDTH = 110  # of a text in Python


def headline(diagnosis: Diagnosis) -> str:
    """The outcome in one sentence."""
    counts = [
        f"{label}: {n}"
        for label, n in (
            ("refused", sum(finding.refused for finding in diagnosis.findings)),
            (
                "stop",
                sum(finding.severity == "stop" and not finding.refused for finding in diagnosis.findings),
            ),
            ("care", sum(finding.severity == "care" for finding in diagnosis.findings)),
            ("note", sum(finding.severity == "note" for finding in diagnosis.findings)),
        )
        if n
    ]
    if diagnosis.refused:
        start = "identify refuses these logs"
    elif diagnosis.worst == "stop":
        start = "no reliable result can be expected from these logs"
    elif diagnosis.worst == "care":
        start = "these logs can be used; check the findings"
    else:
        start = "nothing doubtful was found"
    return f"{start} ({', '.join(counts)})" if counts else start


def print_diagnosis(diagnosis: Diagnosis, console: Console | None = None) -> None:
    """Print the table of findings, the worst first, and what the logs are like."""
    out = console or standard_console()
    out.print(verbatim(f"{diagnosis.robot}: {headline(diagnosis)}", "bold"))
    for recording in diagnosis.recordings:
        clock = recording.clock or f"{recording.rate:.6g} Hz"
        out.print(
            verbatim(
                f"{recording.name}: {recording.samples} samples, {recording.seconds:.4g} s,"
                f" {plural(recording.segments, 'segment')}; {clock}"
            )
        )
    if diagnosis.excitation is not None:
        seen = diagnosis.excitation
        condition = number(seen.condition, 3)
        left = f"; {number(diagnosis.residual_percent, 3)} % of the efforts is not explained"
        out.print(
            verbatim(
                f"{seen.seen} of {seen.base} base parameters excited, condition number {condition}{left}"
            )
        )
    if diagnosis.findings:
        print_titled(out, "", _table(diagnosis.findings))


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """The same as text, with arguments of Python instead of options."""
    from rich.console import Console

    out = io.StringIO()
    print_diagnosis(diagnosis, Console(file=out, width=_WIDTH, no_color=True))
    return for_python("\n".join(line.rstrip() for line in out.getvalue().splitlines()))


def _table(findings: Sequence[Finding]) -> Table:
    """Severity, then code, channel, place and value in one line, and below it the finding and its remedy."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    for row in findings:
        if row.consequence:
            continue
        word = "refused" if row.refused else str(row.severity)
        facts = [part for part in (row.channel, row.place, row.value) if part]
        title = verbatim(row.code, "bold").append(verbatim("".join(f"  |  {fact}" for fact in facts)))
        table.add_row(verbatim(word, f"bold {COLOURS[row.severity]}"), title)
        remedy = f"\n-> {row.remedy}" if row.remedy else ""
        table.add_row("", verbatim(row.text + remedy + "\n"))
    codes = dict.fromkeys(row.code for row in findings if row.consequence)
    if codes:
        table.add_row("", verbatim(f"Likely consequences: {', '.join(codes)} (--out FOLDER shows them)"))
    return table


def diagnosis_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """The content of `check.json`; undefined values are null."""
    document: dict[str, Any] = plain(
        {
            "schema": SCHEMA,
            "robot": diagnosis.robot,
            "headline": headline(diagnosis),
            "refused": diagnosis.refused,
            "findings": [asdict(finding) for finding in diagnosis.findings],
            "logs": [
                asdict(recording) | {"file": Path(recording.file).name} for recording in diagnosis.recordings
            ],
            "channels": [asdict(channel) for channel in diagnosis.channels],
            "residual_tests": [asdict(test) for test in diagnosis.tests],
            "excitation": None if diagnosis.excitation is None else asdict(diagnosis.excitation),
            "residual_percent": diagnosis.residual_percent,
        }
    )
    return document


def diagnosis_html(diagnosis: Diagnosis) -> str:
    """One self-contained page: findings, channels, spectra, delays, coverage."""
    drawn = list(zip(diagnosis.logs, diagnosis.plans, strict=False))[:_MOST_FIGURES]
    return scripted_page(
        "check.html",
        (),
        found=diagnosis,
        headline=headline(diagnosis),
        level="bad"
        if diagnosis.worst == "stop"
        else diagnosis.worst
        if diagnosis.worst == "care"
        else "good",
        first=[one for one in diagnosis.findings if not one.consequence and one.severity != "note"],
        consequences=[one for one in diagnosis.findings if one.consequence],
        notes=[one for one in diagnosis.findings if not one.consequence and one.severity == "note"],
        spectra=[spectrum_figure(log, plan, f"spectra{i}") for i, (log, plan) in enumerate(drawn)],
        delays=delay_figure(diagnosis),
        coverage=[coverage_figure(log, plan, f"coverage{i}") for i, (log, plan) in enumerate(drawn)],
    )


def write_diagnosis(diagnosis: Diagnosis, folder: Path) -> None:
    """Write `check.json` and `check.html` into `folder` atomically; only an older check is replaced."""
    texts = (json_text(diagnosis_document(diagnosis)), diagnosis_html(diagnosis))
    with claimed_folder(folder, FILES) as path:
        replace_folder(path, dict(zip(FILES, texts, strict=True)))


_POINTS = 1500  # per panel
_SPECTRUM_SECONDS = 4.0  # window of Welch's method
_MOST_PANELS = 24
_SIGMAS = 4.0  # half width of a delay curve
_MOST_COST = 12.0


def spectrum_figure(log: Log, plan: MotionPlan, anchor: str) -> Figure:
    """Power of each velocity over frequency; a line marks the cutoff of the low-pass on coordinates."""
    names = log.position_names[:_MOST_PANELS]
    velocities = [np.diff(q[:, : len(names)], axis=0) / log.dt for q in middle_parts(log, log.q)]
    velocities = [v - v.mean(axis=0) for v in velocities]
    window = min(max(map(len, velocities)), max(64, round(_SPECTRUM_SECONDS / log.dt)))
    f, power = welch(velocities, log.dt, window)
    rows = spread(len(f) - 1, _POINTS) + 1
    panels = []
    for i, name in enumerate(names):
        density = np.log10(np.maximum(power[rows, i], np.finfo(np.float32).tiny))
        series = [line("velocity", packed(f[rows]), packed(density), quiet=True, width=1.2)]
        if plan.cutoff is not None:
            ends = [float(density.min()), float(density.max())]
            series.append(line("cutoff", [plan.cutoff] * 2, ends, "red", dash=True, quiet=True))
        panels.append(panel(series, f"q_{i + 1} {name}", "frequency [Hz]", "log10 of the density"))
    cut = f"; the line marks the cutoff, {plan.cutoff:.3g} Hz" if plan.cutoff is not None else ""
    return figure(
        anchor,
        panels,
        f"spectra of the velocities of log {log.name}",
        f"Log {log.name}: density of the velocity, (rad/s)^2/Hz or (m/s)^2/Hz{cut}. A rise with the square of"
        " the frequency is position noise.",
        columns=3,
        table=False,
    )


def delay_figure(diagnosis: Diagnosis) -> Figure | None:
    """How well each delay of the efforts fits, as the distance from the best in standard deviations."""
    tests = [result for result in diagnosis.tests if result.test == "delay" and result.ci95 is not None]
    if not tests:
        return None
    series = [line("no delay", [0.0, 0.0], [0.0, _MOST_COST], "red", dash=True, quiet=True)]
    for i, result in enumerate(tests):
        assert result.ci95 is not None  # noqa: S101 (chosen above)
        sigma = max((result.ci95[1] - result.ci95[0]) / 4.0, 1e-9)
        delays = result.value + sigma * np.linspace(-_SIGMAS, _SIGMAS, 41)
        curve = ((delays - result.value) / sigma) ** 2
        name = result.about + (" (flagged)" if result.warned else "")
        series.append(line(name, packed(1e3 * delays), packed(curve), PALETTE[i % len(PALETTE)]))
    cost = {"title": "cost [sigma²]", "range": [0.0, _MOST_COST]}
    return figure(
        "delays",
        [panel(series, "", "delay of the effort [ms]; negative: early", cost)],
        "increase of the residual with the delay of each effort",
        "Increase of the cost with the delay of each effort. The minimum of a curve is the delay that best"
        " explains the residuals; below 4 is its 95 % interval.",
    )


def coverage_figure(log: Log, plan: MotionPlan, anchor: str) -> Figure:
    """Positions and velocities that occur, joint by joint."""
    names = log.position_names[:_MOST_PANELS]
    motion = Motion(log, plan)
    pieces = motion.usable()
    total = max(1, sum(b - a for a, b in pieces))
    share = min(1.0, 40.0 * _POINTS / total)
    states = [motion.states(a, a + max(1, int(share * (b - a)))) for a, b in pieces]
    q, dq = (np.concatenate([piece[k] for piece in states]) for k in (0, 1))
    rows = spread(len(q), _POINTS)
    panels = [
        panel(
            [points("states", packed(q[rows, i]), packed(dq[rows, i]), quiet=True, size=1.5)],
            f"q_{i + 1} {name}",
            "position [rad] or [m]",
            "velocity [1/s]",
        )
        for i, name in enumerate(names)
    ]
    return figure(
        anchor,
        panels,
        f"positions and velocities that occur in log {log.name}",
        f"Log {log.name}: velocity (rad/s or m/s) over position of each joint. Empty regions are not tested.",
        columns=3,
        table=False,
    )
