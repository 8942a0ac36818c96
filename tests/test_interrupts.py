"""Ctrl-C ends a run also where something on the way discards the exception."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynid.common.errors import InputError
from dynid.common.interrupts import check, interruptible
from dynid.report.terminal import ProgressBar

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")


@pytest.fixture(autouse=True)
def listening() -> Iterator[None]:
    """A shell starts background jobs with SIGINT ignored, and processes inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def lost() -> None:
    """An interrupt that is discarded, as destructors and Numba's dispatcher do."""
    with contextlib.suppress(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass


def test_a_lost_interrupt_ends_the_run_at_its_next_stage() -> None:
    reached = []

    def run() -> None:
        with interruptible(), ProgressBar() as progress:
            progress("one", 0.1)
            lost()
            reached.append("lost")
            progress("two", 0.2)
            reached.append("never")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert reached == ["lost"]
    check()  # it is not raised twice


def test_a_lost_interrupt_after_the_last_stage_prevents_that_files_are_written() -> None:
    def run() -> None:
        with interruptible():
            with ProgressBar():
                lost()
            pytest.fail("the run went on")

    with pytest.raises(KeyboardInterrupt):
        run()


def test_an_error_that_a_lost_interrupt_causes_is_no_defect() -> None:
    def run(error: Exception, interrupted: bool) -> None:
        with interruptible():
            if interrupted:
                lost()
            raise error

    with pytest.raises(KeyboardInterrupt):
        run(TypeError("no matching definition for argument types"), True)
    with pytest.raises(InputError):
        run(InputError("without an interrupt errors stay"), False)


def test_the_handler_of_a_program_around_dynid_stays() -> None:
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_a_command_goes_on_when_its_reader_has_left() -> None:
    """As `dynid robots | head` does: no error, and the exit code is that of the command."""
    ends = os.pipe()
    os.close(ends[0])
    with os.fdopen(ends[1], "w") as unread:
        command = [sys.executable, "-m", "dynid", "robots"]
        done = subprocess.run(command, stdout=unread, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_output_that_an_encoding_cannot_write_is_printed_all_the_same(tmp_path: Path) -> None:
    """As in a pipe of Windows, which takes no check mark, and here no name of a body."""
    robot = tmp_path / "arm.yaml"
    joint = "{name: joint1, kind: revolute, parent: base, child: épaule✓}"
    robot.write_text(f"name: arm\njoints: [{joint}]\n", encoding="utf-8")
    command = [sys.executable, "-m", "dynid", "info", str(robot)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?paule?" in done.stdout
