"""The worker: one task of an experiment file, in a process of its own that can be stopped.

`python -m dynid.studio.work` reads one JSON object from standard input, `{"task": ..., "experiment": FILE}`,
and writes lines of JSON: `{"stage": ..., "share": ...}` while it runs, then `{"done": ...}` or
`{"error": ...}`.
Each task is that of `dynid TASK FILE`; what differs is how its outcome is shown.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from dynid.common.errors import DynidError, NoResultError, command_words
from dynid.common.interrupts import interruptible

if TYPE_CHECKING:
    from dynid.experiment.experiment import Experiment

_PAUSE = 0.1  # s: the page need not see more steps than this
Progress = Callable[[str, float], None]


def checked(asked: Experiment, progress: Progress) -> dict[str, Any]:
    """The content of check.json."""
    from dynid.doctor.document import diagnosis_document
    from dynid.doctor.examine import check_experiment

    return diagnosis_document(check_experiment(asked, progress))


def identified(asked: Experiment, progress: Progress) -> dict[str, Any]:
    """The result, reliable or not; and the comparison and export that the file asks for."""
    from dynid.pipeline import run_experiment
    from dynid.tasks import identifying

    with identifying(asked) as folder:
        try:
            estimate, refusal = run_experiment(asked, progress), ""
        except NoResultError as error:
            if error.estimate is None:
                raise
            estimate, refusal = error.estimate, error.message
        folder.write(estimate)
    done = {"result": str(folder.path), "refusal": refusal}
    if refusal:
        return done
    try:
        done |= {} if asked.compare is None else compared(asked, progress)
        done |= {} if asked.export is None else exported(asked, progress)
    except DynidError as error:  # the result is there
        done["refusal"] = error.message
    return done


def compared(asked: Experiment, progress: Progress) -> dict[str, Any]:
    """Where the comparison is, and its answer in words."""
    from dynid.report.comparison_page import difference_text
    from dynid.tasks import compared

    comparison, folder = compared([asked], progress)
    words = [comparison.words] if comparison.recommended else []
    words += [difference_text(comparison)] if comparison.parameters else []
    return {"compared": {"folder": str(folder.resolve()), "words": words}}


def exported(asked: Experiment, progress: Progress) -> dict[str, Any]:
    """Files, each with its certificate."""
    from dynid.tasks import exported

    progress("export", 0.0)
    made = exported(asked)
    files = [
        {
            "format": item.format,
            "files": [str(file) for file in item.files],
            "certificate": item.certificate.text,
            "failure": bool(item.certificate.failure or item.certificate.far),
        }
        for item in made.written
    ]
    return {"exported": {"notes": list(made.notes), "files": files}}


def designed(asked: Experiment, progress: Progress) -> dict[str, Any]:
    """Folder, files and headline of a motion."""
    from dynid.excitation.design import designing
    from dynid.excitation.files import motion_words

    with designing(asked) as design:
        motion = design.search(progress=progress)
        files = design.write(motion)
    level, headline = motion_words(motion) if design.motions is None else design.motions.headline()
    shown = {"folder": str(design.path), "files": list(files), "level": level, "headline": headline}
    return {"motion": shown}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "check": checked,
    "identify": identified,
    "compare": compared,
    "export": exported,
    "excite": designed,
}


def main() -> None:
    """Run the task on standard input."""
    from dynid.experiment.file import load_experiment

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us with it ignored
    # The page cancels by SIGTERM, which ends us at any time before this line too, and nothing is written yet.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    lines, sys.stdout = sys.stdout, sys.stderr  # what others print is not part of the conversation
    asked = json.load(sys.stdin)
    try:
        with interruptible():
            # The command that repeats this: pages show it.
            sys.argv = ["dynid", asked["task"], Path(asked["experiment"]).name]
            experiment = load_experiment(Path(asked["experiment"]), need_logs=False)
            done = TASKS[asked["task"]](experiment, _reporting(lines))
        _say(lines, done=done)
    except KeyboardInterrupt:
        _say(lines, error="cancelled: no result was written")
    except (DynidError, OSError, MemoryError) as error:
        _say(lines, error=command_words(error))


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
