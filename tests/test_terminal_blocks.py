"""Terminal output printed in the documentation is what its commands print.

A block marked `output` belongs to the commands before it. Its lines occur in their output in this order;
`...` stands for lines, or for the rest of a line. A file that the commands read is a block whose mark names
it: `<!-- robot: arm.yaml -->`. The commands of a page run in a process of its own, with all default settings;
output after Python belongs to the Python before it. A page that records with ROS gets two simulated bags,
`run1` and `run2`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from dynid.mechanism.load import load_robot
from tests.log_files import joint_states, store, write_rosbag2
from tests.test_docs import BLOCK, PAGES, ROOT, relative
from tests.workspace import columns

COMMAND = re.compile(r"(?:\.venv/bin/)?dynid (.*)")
_EXACT = 1e-12  # smaller numbers are rounding, which differs between machines


def with_output() -> list[Path]:
    return [page for page in PAGES if "<!-- output -->" in page.read_text(encoding="utf-8")]


def as_number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def same_word(printed: str, real: str) -> bool:
    """Equal; numbers may differ by one unit of their last digit, which rounding of other machines decides."""
    printed, real = (word.strip("[](),:;%") for word in (printed, real))
    a, b = as_number(printed), as_number(real)
    if a is None or b is None or printed == real:
        return printed == real
    mantissa, _, exponent = printed.partition("e")
    digits = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return abs(a - b) <= 1.01 * 10.0**-digits or max(abs(a), abs(b)) < _EXACT


def same_line(printed: str, real: str) -> bool:
    words, others = printed.split(), real.split()
    if words[-1:] == ["..."]:
        words, others = words[:-1], others[: len(words) - 1]
    return len(words) == len(others) and all(map(same_word, words, others))


def check_output(printed: str, real: str, page: str) -> None:
    lines = iter(real.splitlines())
    for line in printed.splitlines():
        if line.strip() not in ("", "..."):
            assert any(same_line(line, one) for one in lines), f"{page}: not printed: {line}\n\n{real}"


# One process for a page: to load the program takes longer than most commands.
_TERMINAL = """
import json, shlex, sys
from tests.workspace import dynid
for line in sys.stdin:
    found = dynid(*shlex.split(line, comments=True))
    print(json.dumps([found.exit_code, found.stdout, found.stderr]), flush=True)
"""


@pytest.fixture
def printed_by(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """What a command prints in the test's folder."""
    usual = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # pytest sets it
    usual["PYTHONPATH"] = os.pathsep.join([str(ROOT), usual.get("PYTHONPATH", "")])
    usual["OPENBLAS_NUM_THREADS"] = "1"  # as `python -m dynid` does
    pipe = subprocess.PIPE
    arguments = [sys.executable, "-c", _TERMINAL]
    with subprocess.Popen(arguments, cwd=tmp_path, env=usual, stdin=pipe, stdout=pipe, text=True) as terminal:
        assert terminal.stdin is not None
        assert terminal.stdout is not None
        given, answers = terminal.stdin, terminal.stdout

        def printed(command: str) -> str:
            print(command, file=given, flush=True)
            code, output, errors = json.loads(answers.readline())
            assert code == 0, f"dynid {command}\n{output}{errors}"
            return str(output)

        yield printed


def write_bag(log: Path, name: str) -> None:
    """What `ros2 bag record` would leave in the folder of a log of a ur5."""
    names = [joint.name for joint in load_robot("ur5").joints]
    cells = {column: np.array(values, float) for column, values in columns(log).items()}
    states = joint_states(cells, store(), names=names)
    topics = {"/joint_states": ("sensor_msgs/msg/JointState", states)}
    write_rosbag2(log.parent, topics, "MCAP", name=name)


@pytest.mark.parametrize("page", with_output(), ids=relative)
def test_output_is_what_the_commands_print(
    page: Path,
    printed_by: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(str(files("dynid.robots") / "ur5.urdf"), "arm.urdf")
    names: dict[str, object] = {"__name__": "page"}
    real = ""
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["file"]:
            Path(block["file"]).write_text(block["text"], encoding="utf-8")
        elif block["mark"] == "runnable":
            exec(compile(block["text"], relative(page), "exec"), names)  # noqa: S102  (our own pages)
            real = capsys.readouterr().out
        elif block["language"] == "sh":
            if block["text"].startswith("ros2 bag record"):
                for seed in (1, 2):
                    printed_by(f"simulate ur5 --duration 10 --seed {seed} --out run{seed}.csv")
                    write_bag(tmp_path / f"run{seed}.csv", f"run{seed}")
            commands = [match[1] for line in block["text"].splitlines() if (match := COMMAND.match(line))]
            real = "".join(map(printed_by, commands)) or real
        elif block["mark"] == "output":
            check_output(block["text"], real, relative(page))
