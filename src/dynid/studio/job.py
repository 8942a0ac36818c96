"""A task of the worker as the page sees it: its progress, its end, and how it is cancelled."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dynid.common.errors import command_words

_PATIENCE = 5.0  # s between the request to stop and the end by force
_LAST = 2000  # characters of an unexpected failure that are shown


class Job:
    """A worker process that is running or has ended.

    Attributes:
        task: A name in `TASKS` of the worker.
        stage, share: What it does, and how much of it is done, 0 to 1.
        done: What it returned; None while it runs, and after an error.
        error: Why it ended without a result; empty: it did not.
    """

    def __init__(
        self, task: str, experiment: Path, folder: Path, finish: Callable[[dict[str, Any]], None]
    ) -> None:
        """Start it.

        Args:
            task: Name in `TASKS` of the worker.
            experiment: File that says what is asked; removed if the task has no outcome.
            folder: Working directory.
            finish: Called with what the task returned, before the job counts as ended.
        """
        self.task, self.stage, self.share = task, "starting", 0.0
        self.done: dict[str, Any] | None = None
        self.error, self.cancelled = "", False
        self._finish, self._experiment = finish, experiment
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dynid.studio.work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            encoding="utf-8",
        )
        self._errors: list[str] = []
        self._ears = threading.Thread(target=self._drain, daemon=True)
        self._ears.start()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def cancel(self) -> None:
        """Ask it to stop, which removes what it has begun to write; end it by force if it does not."""
        self.cancelled = True
        with contextlib.suppress(OSError):
            self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._thread.join(_PATIENCE)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended within this time."""
        self._thread.join(seconds)
        return not self.running

    def state(self) -> dict[str, Any]:
        """For the page."""
        return {
            "task": self.task,
            "running": self.running,
            "stage": self.stage,
            "share": self.share,
            "seconds": round(time.monotonic() - self._started),
            "error": self.error,
        }

    def _drain(self) -> None:
        """Keep the last lines of standard error, so that the worker never waits for a reader."""
        for line in self._process.stderr or ():
            self._errors.append(line)
            del self._errors[:-50]

    def _follow(self) -> None:
        process, asked = self._process, {"task": self.task, "experiment": str(self._experiment)}
        with contextlib.suppress(OSError):
            assert process.stdin is not None  # noqa: S101 (a pipe, see above)
            process.stdin.write(json.dumps(asked))
            process.stdin.close()
        for line in process.stdout or ():
            with contextlib.suppress(json.JSONDecodeError):
                self._take(json.loads(line))
        process.wait()
        self._ears.join(1.0)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        if self.done is None and not self.error:
            text = "".join(self._errors)[-_LAST:]
            self.error = "cancelled" if self.cancelled else f"the worker stopped unexpectedly\n{text}"
        if self.done is None:
            with contextlib.suppress(OSError):
                self._experiment.unlink(missing_ok=True)

    def _take(self, said: dict[str, Any]) -> None:
        if "done" in said:
            try:
                self._finish(said["done"])
                self.done = said["done"]
            except Exception as error:  # of this thread: only the page can show it
                self.error = command_words(error)
        elif "error" in said:
            self.error = str(said["error"])
        else:
            self.stage, self.share = str(said["stage"]), float(said["share"])
