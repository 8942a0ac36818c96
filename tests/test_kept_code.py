"""Compiled methods of dataclasses on disk: made once, used by the next process, never required."""

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import dataclasses, sys
sys.pycache_prefix = {folder!r}
made = []
def counted(text, *rest, **options):
    made.append(text)
    return compile(text, *rest, **options)
from dynid.common import kept_code
kept_code.compile = counted
kept_code.keep_dataclass_code()

@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    {second}: float = 3.0

assert Point(1.0) == Point(1.0, 3.0) != Point(2.0), Point(1.0)
assert repr(Point(1.0)) == "Point(x=1.0, {second}=3.0)", repr(Point(1.0))
try:
    Point(1.0).x = 2.0
except dataclasses.FrozenInstanceError:
    print(len(made))
"""


def _compiled(folder, *flags, second="y"):
    """Number of texts that a process compiles for a class."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = [sys.executable, *flags, "-c", _PROGRAM.format(folder=str(folder), second=second)]
    done = subprocess.run(run, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_the_second_process_compiles_nothing(tmp_path):
    assert _compiled(tmp_path) > 0
    assert _compiled(tmp_path) == 0
    assert len(list(tmp_path.rglob("*.kept*"))) == 1


def test_a_class_that_changes_is_compiled_again(tmp_path):
    _compiled(tmp_path)
    assert _compiled(tmp_path, second="z") > 0
    assert _compiled(tmp_path) == _compiled(tmp_path, second="z") == 0


@pytest.mark.parametrize("damage", [lambda x: b"", lambda x: x[:-100], lambda x: x[:200] + b"?" + x[201:]])
def test_a_damaged_file_is_written_again(tmp_path, damage):
    first = _compiled(tmp_path)
    (file,) = tmp_path.rglob("*.kept")
    file.write_bytes(damage(file.read_bytes()))
    assert _compiled(tmp_path) == first
    assert _compiled(tmp_path) == 0


def test_without_byte_code_on_disk_nothing_is_kept(tmp_path):
    first = _compiled(tmp_path, "-B")
    assert _compiled(tmp_path, "-B") == first
    assert not list(tmp_path.rglob("*.kept"))
