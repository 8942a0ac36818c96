"""A result in the formats of other programs.

An exporter (`contract.py`) writes into an existing folder and returns what it wrote. To add one: a file here,
and one line in EXPORTERS. `full_set` makes a full set of parameters of the base parameters first; every
export is read back and compared with the estimate (`certificate.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.batched import single_threaded_blas
from dynid.common.brief import one_line
from dynid.common.errors import InputError, nearest
from dynid.common.registry import Registry
from dynid.experiment.experiment import Experiment
from dynid.exporters.actuators import law_of
from dynid.exporters.certificate import (
    Along,
    Certificate,
    LogFigure,
    certify,
    logs_of,
    rows_in_deviations,
)
from dynid.exporters.contract import Exported, Exporter, fill_certificate
from dynid.exporters.replay import Replay
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.settings import LogEntry
from dynid.prediction.full_set import FullSet, NotPhysical, PayloadUse, full_set
from dynid.prediction.result_values import saved
from dynid.problem import as_log
from dynid.report.exports import add_exports
from dynid.report.page import scripted_page
from dynid.statistics.estimate import Estimate
from dynid.statistics.estimate_parts import level_of, worst

EXPORTERS: Registry[Exporter] = Registry(
    "dynid.exporters",
    {
        "urdf": "dynid.exporters.urdf:export_urdf",
        "mjcf": "dynid.exporters.mjcf:export_mjcf",
        "sdf": "dynid.exporters.sdf:export_sdf",
        "yaml": "dynid.exporters.sidecar:export_yaml",
        "ros2": "dynid.exporters.parameter_files:export_ros2",
        "actuators": "dynid.exporters.actuators:export_actuators",
        "ur": "dynid.exporters.parameter_files:export_ur",
        "franka": "dynid.exporters.parameter_files:export_franka",
        "c": "dynid.exporters.code:export_c",
        "fmu": "dynid.exporters.code:export_fmu",
        "numpy": "dynid.exporters.code:export_numpy",
    },
    gives=("dynid.exporters.contract:Exported", "builtins:list", "builtins:tuple"),
)
FULL = ("urdf", "mjcf", "sdf", "yaml", "ros2", "actuators", "ur", "franka")  # write values for every body
PAYLOADS = ("ur", "franka")  # write payloads alone
SUMMARY, PAGE = "export.json", "export.html"
_SAME = 1e-6  # relative: rounding of a solver


@dataclass(frozen=True)
class Written:
    """One export.

    Attributes:
        files: The main file first.
        not_representable: What the format cannot hold.
        moved: Whether its bodies and drives are only near the estimate, because none have its efforts.
    """

    format: str
    files: tuple[Path, ...]
    certificate: Certificate
    not_representable: tuple[str, ...]
    moved: bool = False


@dataclass(frozen=True)
class Export:
    """All that `dynid export` wrote.

    Attributes:
        summary: The file export.json; export.html beside it is the same as a page.
        notes: About the set of parameters, one sentence each.
    """

    written: tuple[Written, ...]
    summary: Path
    physical: bool
    notes: tuple[str, ...]

    __repr__ = one_line


def export(
    result: str | os.PathLike[str] | Estimate,
    to: str | Sequence[str],
    out: str | os.PathLike[str],
    robot: str | os.PathLike[str] | Mechanism | None = None,
    *,
    not_physical: NotPhysical = "noise",
    payload: PayloadUse = "link",
    replay: Sequence[str | os.PathLike[str]] = (),
) -> Export:
    """Write a result in one or several formats, read each back, and compare it with the estimate.

    Args:
        result: An estimate, a result.json or its folder.
        to: One format or several: `urdf`, `mjcf`, `sdf`, `yaml`, `ros2`, `actuators`, `ur`, `franka`, `c`,
            `fmu`, `numpy`, or those of installed packages.
        out: Folder, made if it does not exist; files of the same names are replaced.
        robot: Instead of the robot of the result.
        not_physical: What to do if no physically consistent robot has the base parameters (`full_set`).
        payload: Identified payloads as links of their own, merged into their carriers, or left out.
        replay: Logs that the written MJCF is to be simulated with, beside the description.
    """
    formats, folder = [to] if isinstance(to, str) else list(to), Path(out)
    check_formats(formats, replay)
    estimate, experiment, mechanism = saved(result, robot)
    exporters = {name: EXPORTERS[name] for name in dict.fromkeys(formats)}
    with single_threaded_blas(), _staged(folder) as staging:
        # Formats of base parameters need no real bodies.
        strict = any(name in FULL for name in exporters)
        logs = logs_of(estimate, mechanism, experiment)
        rows = partial(rows_in_deviations, logs)
        full = full_set(estimate, experiment, mechanism, not_physical if strict else "ignore", payload, rows)
        _refuse_open_loads(exporters, full)
        choices = {**full.estimate.choices, "export": " ".join(full.notes)}
        full = replace(full, estimate=replace(full.estimate, choices=choices))
        judge = _judge(full, experiment, mechanism, replay) if replay else None
        written = [_written(name, make, full, logs, staging, judge) for name, make in exporters.items()]
        _summarise(full, written, staging, result)
        _move(staging, folder)
    if not isinstance(result, Estimate):
        source = Path(result)
        certificates = {
            f"{folder.resolve().name}/{output.files[0].name}": output.certificate.text for output in written
        }
        add_exports(source if source.is_dir() else source.parent, certificates)
    placed = tuple(
        replace(output, files=tuple(folder / file.relative_to(staging) for file in output.files))
        for output in written
    )
    return Export(placed, folder / SUMMARY, full.physical, full.notes)


def check_formats(formats: Sequence[str], replay: Sequence[object] = ()) -> None:
    """Refuse unknown formats, and logs to replay without an MJCF."""
    for name in formats:
        if name not in EXPORTERS:
            raise InputError(
                f"unknown format '{name}'" + nearest(name, EXPORTERS),
                remedy=f"formats: {', '.join(EXPORTERS)}",
            )
    if replay and "mjcf" not in formats:
        raise InputError("only an MJCF is simulated", place="--replay", remedy="add --to mjcf")


def _refuse_open_loads(formats: Collection[str], full: FullSet) -> None:
    """Refuse to give a controller the mass of a payload that nothing determines."""
    asked = [name for name in PAYLOADS if name in formats]
    if asked and full.open_loads:
        raise InputError(
            f"the logs determine the mass of payload {', '.join(full.open_loads)} only in a sum with other"
            f" bodies, and the description does not give it: there is no value for {', '.join(asked)}",
            remedy="identify from a log without payload as well, or give the result without load (unloaded)",
        )


Judge = Callable[[Path], tuple[Replay, ...]]


def _judge(
    full: FullSet, experiment: Experiment, mechanism: Mechanism, files: Sequence[str | os.PathLike[str]]
) -> Judge:
    """Simulates logs with a written MJCF and with the description."""
    from dynid.exporters.readers import spec_for
    from dynid.exporters.replay import described_spec, replayed
    from dynid.unknowns.saturation import Limits

    law, limits = law_of(full.estimate, mechanism), Limits.of(full.estimate, mechanism)
    plain = replace(mechanism, payloads={})
    described = described_spec(full.estimate, plain)
    logs = [as_log(LogEntry(os.fspath(file)), plain, experiment) for file in files]
    source = Path(mechanism.sources[0]).parent if mechanism.sources else None

    def judge(file: Path) -> tuple[Replay, ...]:
        spec = spec_for(file, source)
        return tuple(replayed(spec, described, plain, log, law, limits) for log in logs)

    return judge


def _written(
    name: str,
    exporter: Exporter,
    full: FullSet,
    logs: list[Along | LogFigure],
    folder: Path,
    judge: Judge | None,
) -> Written:
    made = exporter(full.estimate, full.mechanism, folder)
    if not isinstance(made, Exported):
        made = Exported(tuple(Path(file) for file in made))
    certificate = certify(made, full, logs)
    if judge is not None and name == "mjcf":
        certificate = replace(certificate, replays=judge(made.files[0]))
    differences = [file.with_name(f"{file.name}.diff") for file in made.files]
    files = (*made.files, *(file for file in differences if file.is_file()))
    for file in files:
        fill_certificate(file, certificate.text)
    moved = name in FULL and not np.allclose(full.chi, full.reference, rtol=_SAME, atol=0.0)
    return Written(name, files, certificate, made.not_representable, moved)


def _document(full: FullSet, written: Sequence[Written]) -> dict[str, Any]:
    """export.json."""
    lost = dict.fromkeys(
        f"{output.format}: {text}" for output in written for text in output.not_representable
    )
    return {
        "schema": "dynid.export/1",
        "robot": full.estimate.robot,
        "physical": full.physical,
        "notes": list(full.notes),
        "files": [
            {
                "file": output.files[0].name,
                "format": output.format,
                "also": [file.name for file in output.files[1:]],
                "certificate": output.certificate.document(),
            }
            for output in written
        ],
        "not_representable": list(lost),
    }


def _summarise(full: FullSet, written: Sequence[Written], folder: Path, result: object) -> None:
    """Write export.json, and the same as a page."""
    document = _document(full, written)
    text = json.dumps(document, indent=2, allow_nan=False)
    (folder / SUMMARY).write_text(f"{text}\n", encoding="utf-8")
    files = [
        {**entry, "text": output.certificate.text}
        for entry, output in zip(document["files"], written, strict=True)
    ]
    logs = [figure for output in written for figure in output.certificate.logs]
    level, headline = _judged(written)
    page = scripted_page(
        "export.html",
        (),
        found={**document, "files": files},
        level=level,
        headline=headline,
        compared=[
            entry
            for entry in files
            if any(figure["export_percent"] is not None for figure in entry["certificate"]["logs"])
        ],
        reasons=list(dict.fromkeys(figure.reason for figure in logs if figure.reason)),
        result="" if isinstance(result, Estimate) else os.fspath(result),  # type: ignore[call-overload]
    )
    (folder / PAGE).write_text(page, encoding="utf-8")


def _judged(written: Sequence[Written]) -> tuple[str, str]:
    """Level and headline of the page."""
    failed = [output.files[0].name for output in written if output.certificate.failure]
    far = [output.files[0].name for output in written if output.certificate.far]
    if failed or far:
        words = [f"Could not be read back: {', '.join(failed)}"] if failed else []
        words += [f"Predicts a log more than twice as badly as the estimate: {', '.join(far)}"] if far else []
        return "bad", ". ".join(words)
    sizes = [output.certificate.random_states for output in written]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes) or not known:
        return "care", "Not every file could be compared with the estimate"
    level = level_of(100.0 * max(known), "")
    if any(output.certificate.lost for output in written):
        level = worst([level, "care"])
    head = {"good": "Usable", "care": "Use with care", "bad": "Do not use"}[level]
    return level, f"{head}: efforts differ from the estimate by up to {100.0 * max(known):.2g} %"


@contextmanager
def _staged(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder`, removed at the end: what fails leaves nothing behind."""
    try:
        folder = folder.resolve()
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}.new-", dir=folder.parent))
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _move(staging: Path, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(entry for entry in staging.rglob("*") if entry.is_file()):
            target = folder / file.relative_to(staging)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> InputError:
    text = f"cannot be written: {error.strerror or error}"
    return InputError(text, file=folder, remedy="choose another --out")
