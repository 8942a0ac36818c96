"""Result folders: whole or not at all, never over other files, never two runs at once."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dynid.common.errors import InputError
from dynid.report import lock, output
from dynid.report.json_file import read_result
from dynid.report.output import claimed, write_file, write_files, write_results
from tests.fabricated import estimate

_RESULT = {"result.json": '{"schema": "dynid.result/1", "old": true}'}


def _content(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir()}


def test_writes_the_files_and_nothing_else(tmp_path):
    write_results(estimate(), tmp_path / "deep" / "run")
    assert sorted(_content(tmp_path / "deep" / "run")) == [
        "parameters.csv",
        "report.html",
        "result.json",
        "signals.csv",
    ]
    assert os.listdir(tmp_path / "deep") == ["run"]
    assert read_result(tmp_path / "deep" / "run").robot == "serial6"


def test_replaces_an_older_result(tmp_path):
    folder = tmp_path / "run"
    write_files(folder, _RESULT | {"validation.json": "{}"})
    with claimed(folder):
        write_files(folder, {"result.json": "new"})
    assert _content(folder) == {"result.json": "new"}
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize("calls_before_failure", [0, 1, 2])
def test_failure_halfway_leaves_the_old_result(tmp_path, monkeypatch, calls_before_failure):
    folder = tmp_path / "run"
    write_files(folder, _RESULT)
    real, count = output._write_through, iter(range(10))

    def full_disk(file: Path, text: str) -> None:
        if next(count) >= calls_before_failure:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file, text)

    monkeypatch.setattr(output, "_write_through", full_disk)
    with pytest.raises(InputError, match="No space left"):
        write_results(estimate(), folder)
    assert _content(folder) == _RESULT
    assert os.listdir(tmp_path) == ["run"]


def test_failure_of_the_last_rename_brings_the_old_result_back(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    write_files(folder, _RESULT)
    real = Path.rename

    def fails_for_new(self: Path, target: Path) -> Path:
        if ".new-" in self.name:
            raise OSError(errno.EIO, "I/O error")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", fails_for_new)
    with pytest.raises(OSError, match="I/O error"):
        write_files(folder, {"result.json": "new"})
    assert _content(folder) == _RESULT


def test_result_moved_aside_by_a_killed_run_comes_back(tmp_path):
    write_files(tmp_path / ".run.old-abc", _RESULT)
    (tmp_path / ".run.new-abc").mkdir()
    with claimed(tmp_path / "run"):
        assert _content(tmp_path / "run") == _RESULT
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize("names", [("thesis.tex",), ("result.json", "notes.txt"), ("result.json",)])
def test_other_peoples_files_are_refused(tmp_path, names):
    for name in names:
        (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match="not a dynid result"):
        write_results(estimate(), tmp_path)
    assert sorted(_content(tmp_path)) == sorted(names)


def test_what_python_leaves_beside_a_program_is_no_foreign_file(tmp_path):
    """Whoever imports compensation.py from the result's folder may identify again."""
    write_results(estimate(), tmp_path / "run")
    cache = tmp_path / "run" / "__pycache__"
    cache.mkdir()
    (cache / "compensation.cpython-311.pyc").write_bytes(b"")
    write_results(estimate(), tmp_path / "run")
    assert not cache.exists()
    cache.mkdir()
    (cache / "thesis.pyc").write_bytes(b"")
    with pytest.raises(InputError, match="not a dynid result"):
        write_results(estimate(), tmp_path / "run")


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        write_results(estimate(), tmp_path / "run")


def test_full_disk_and_missing_permission_are_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(output.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    with pytest.raises(InputError, match="MB are free"), claimed(tmp_path / "a" / "b"):
        pass
    assert os.listdir(tmp_path) == []
    monkeypatch.setattr(output.os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match="no permission"), claimed(tmp_path / "run"):
        pass


def test_a_run_that_writes_nothing_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="refused"), claimed(tmp_path / "results" / "run"):
        raise ValueError("refused")
    assert os.listdir(tmp_path) == []


def test_two_runs_in_one_folder_are_refused(tmp_path):
    with claimed(tmp_path / "run"), pytest.raises(InputError, match=f"process {os.getpid()}"):
        write_results(estimate(), tmp_path / "run")
    with claimed(tmp_path / "run"):
        pass


def test_lock_of_a_dead_process_is_taken_over(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / ".run.lock").write_text(f"{gone.pid} {socket.gethostname()}\n")
    with claimed(tmp_path / "run"):
        pass
    assert os.listdir(tmp_path) == []


def test_lock_of_another_host_is_respected(tmp_path):
    (tmp_path / ".run.lock").write_text("1 elsewhere\n")
    with pytest.raises(InputError, match="elsewhere"), claimed(tmp_path / "run"):
        pass


@pytest.mark.parametrize("content", ["", "\n"])
def test_an_empty_lock_is_of_a_killed_run(tmp_path, monkeypatch, content):
    monkeypatch.setattr(lock, "_WRITTEN_AFTER", 0.01)
    (tmp_path / ".run.lock").write_text(content)
    with claimed(tmp_path / "run"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_process_number_that_cannot_be_is_stale(tmp_path):
    (tmp_path / ".run.lock").write_text(f"{10**30} {socket.gethostname()}\n")
    with claimed(tmp_path / "run"):
        pass


def test_a_link_stays_and_its_target_gets_the_result(tmp_path):
    """Written twice: the second run meets what the first one left."""
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real" / "run")  # its target does not exist yet
    for _ in range(2):
        write_results(estimate(), link)
        assert link.is_symlink()
        assert "result.json" in os.listdir(tmp_path / "real" / "run")
        assert sorted(os.listdir(tmp_path)) == ["link", "real"]
        assert os.listdir(tmp_path / "real") == ["run"]


def test_a_file_given_as_a_link_stays_a_link(tmp_path):
    (tmp_path / "link.csv").symlink_to("real.csv")
    write_file(tmp_path / "link.csv", "new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


@pytest.fixture
def current(tmp_path, monkeypatch):
    """The folder that the process stands in."""
    folder = tmp_path / "run"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_the_current_folder_stays_and_gets_the_result(tmp_path, current):
    for _ in range(2):
        write_results(estimate(), ".")
        assert Path.cwd() == current
        assert sorted(os.listdir(".")) == ["parameters.csv", "report.html", "result.json", "signals.csv"]
        assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize("failing", range(4))
def test_failure_in_the_current_folder_leaves_the_old_files(current, monkeypatch, failing):
    old = _RESULT | {"validation.json": "{}"}
    write_files(current, old)
    real, count = Path.rename, iter(range(100))

    def fails_once(self: Path, target: Path) -> Path:
        if next(count) == failing:
            raise OSError(errno.EIO, "I/O error")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", fails_once)
    with pytest.raises(OSError, match="I/O error"):
        write_files(current, {"result.json": "new", "history.csv": "new"})
    assert _content(current) == old


@pytest.mark.parametrize("killed", range(6))
def test_the_next_run_puts_right_what_a_kill_left_in_the_current_folder(current, monkeypatch, killed):
    old, new = _RESULT | {"validation.json": "{}"}, _RESULT | {"history.csv": "new"}
    write_files(current, old)
    real, count = Path.rename, iter(range(100))

    def kills(self: Path, target: Path) -> Path:
        if next(count) == killed:
            raise KeyboardInterrupt
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", kills)
        patch.setattr(output.shutil, "rmtree", lambda *a, **k: None)  # a killed process does not tidy up
        if killed < 5:
            with pytest.raises(KeyboardInterrupt):
                write_files(current, new)
        else:
            write_files(current, new)
    with claimed("."):
        assert _content(current) == (old if killed < 3 else new)


def test_single_file_is_replaced_whole(tmp_path, monkeypatch):
    file = tmp_path / "validation.json"
    write_file(file, "old")
    write_file(file, "new")
    assert file.read_text() == "new"
    monkeypatch.setattr(output.os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_file(file, "newer")
    assert _content(tmp_path) == {"validation.json": "new"}
