"""The worker: one task from an experiment file or results, in a process of its own that can be stopped.

`python -m dynid.studio.work` reads one JSON object from standard input and writes lines of JSON:
`{"stage": ..., "share": ...}` while it runs, then `{"done": ...}` or `{"error": ...}`.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from dynid.common.errors import DynidError, InputError, NoResultError
from dynid.common.interrupts import interruptible

_PAUSE = 0.1  # s: the page need not see more steps than this
DESIGN_OPTIONS = {
    "period": "--period",
    "starts": "--starts",
    "floor": "--floor",
    "clearance": "--clearance",
    "home": "--home",
    "search": "--motions",
}
Progress = Callable[[str, float], None]


def checked(experiment: str, progress: Progress) -> dict[str, Any]:
    """As `dynid check EXPERIMENT`: the content of check.json."""
    from dynid.doctor.document import diagnosis_document
    from dynid.doctor.examine import check_experiment
    from dynid.experiment.experiment import read_experiment

    return diagnosis_document(check_experiment(read_experiment(Path(experiment)), progress))


def identified(experiment: str, out: str, progress: Progress) -> dict[str, Any]:
    """As `dynid identify EXPERIMENT --out OUT`; a result that is not reliable is written as well."""
    from dynid.experiment.experiment import read_experiment
    from dynid.pipeline import run_experiment
    from dynid.report.output import claimed

    asked = read_experiment(Path(experiment))
    with claimed(out) as folder:
        try:
            estimate, refusal = run_experiment(asked, progress), ""
        except NoResultError as error:
            if error.estimate is None:
                raise
            estimate, refusal = error.estimate, error.message
        folder.write(estimate)
    return {"result": str(folder.path), "refusal": refusal}


def compared(results: list[str], out: str, progress: Progress) -> dict[str, Any]:
    """As `dynid compare A B --out OUT`."""
    from dynid.report.comparison import FILES, comparison_files
    from dynid.report.output import claimed_folder, replace_folder
    from dynid.validation.targets import compare_targets

    with claimed_folder(out, FILES) as path:
        comparison = compare_targets([Path(result) for result in results], progress=progress)
        replace_folder(path, comparison_files(comparison))
    return {"folder": str(path)}


def exported(result: str, formats: list[str], out: str, progress: Progress) -> dict[str, Any]:
    """As `dynid export RESULT --to FORMAT --out OUT`."""
    from dynid.exporters import export

    progress("export", 0.0)
    made = export(result, formats, out)
    return {
        "folder": str(out),
        "notes": list(made.notes),
        "files": [
            {
                "format": item.format,
                "files": [str(file) for file in item.files],
                "certificate": item.certificate.text,
                "failure": bool(item.certificate.failure),
            }
            for item in made.written
        ],
    }


def designed(
    robot: str,
    settings: dict[str, Any],
    controllers: list[str],
    controller_rate: float | None,
    out: str,
    progress: Progress,
) -> dict[str, Any]:
    """As `dynid excite ROBOT ... --out OUT`."""
    from dynid.common.entry import plain_entry
    from dynid.common.settings import read
    from dynid.excitation.design import designing
    from dynid.excitation.files import motion_words
    from dynid.excitation.settings import ExciteSettings

    asked = read(ExciteSettings, plain_entry(settings))
    with designing(robot, asked, Path(out), controllers, controller_rate) as design:
        motion = design.search(progress=progress)
        files = design.write(motion)
    level, headline = motion_words(motion) if design.motions is None else design.motions.headline()
    return {"folder": out, "files": list(files), "level": level, "headline": headline}


def design_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Settings of `excite`, and the same as words of its command; what is None or empty is the default."""
    settings: dict[str, Any] = {}
    words: list[str] = []
    for key, value in options.items():
        if key not in DESIGN_OPTIONS:
            raise InputError(f"no setting '{key}'", remedy=f"settings: {', '.join(DESIGN_OPTIONS)}")
        if value is None or value == "":
            continue
        settings[key] = [float(part) for part in str(value).split(",")] if key == "home" else value
        words.append(f"{DESIGN_OPTIONS[key]}={value}")
    return settings, words


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "check": checked,
    "identify": identified,
    "compare": compared,
    "export": exported,
    "excite": designed,
}


def main() -> None:
    """Run the task on standard input."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us with it ignored
    # The page cancels by SIGTERM, which ends us at any time before this line too, and nothing is written yet.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    lines, sys.stdout = sys.stdout, sys.stderr  # what others print is not part of the conversation
    asked = json.load(sys.stdin)
    try:
        with interruptible():
            done = TASKS[asked.pop("task")](**asked, progress=_reporting(lines))
        _say(lines, done=done)
    except KeyboardInterrupt:
        _say(lines, error="cancelled: no result was written")
    except (DynidError, OSError, MemoryError) as error:
        _say(lines, error=str(error) or type(error).__name__)


def _reporting(lines: TextIO) -> Progress:
    """Writes progress, at most ten times a second."""
    last = 0.0

    def report(stage: str, share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _PAUSE:
            last = now
            _say(lines, stage=stage, share=float(share))

    return report


def _say(lines: TextIO, **content: Any) -> None:
    lines.write(json.dumps(content) + "\n")
    lines.flush()


if __name__ == "__main__":
    main()
