"""Compiled loops: compilation is logged once; where nothing can be written they run all the same."""

from __future__ import annotations

import errno
import logging
import os
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from numba.core.caching import CacheImpl, FunctionCache

from dynid.commands.shared import logging_to_terminal
from dynid.common import ahead, compiled, compiled_cache
from dynid.common.compiled_arrays import release, view, workspace
from dynid.mechanism.load import load_robot
from dynid.pipeline import identify
from dynid.regressor.kernels_ahead import kernel_names
from dynid.simulation.simulation import simulate


def test_65_without_a_writable_cache_kernels_run_and_it_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    compiled_cache.say_uncached.cache_clear()

    def double(x):
        return 2.0 * x

    kernels = [compiled.kernel(double), compiled.inner(double)]
    assert kernels[0](1.5) == 3.0
    assert [record.getMessage().count("NUMBA_CACHE_DIR") for record in caplog.records] == [1]


def test_a_full_disk_of_the_cache_slows_a_job_and_does_not_end_it(monkeypatch, caplog, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    compiled_cache.say_uncached.cache_clear()
    file = tmp_path / "parts.py"
    file.write_text(PARTS, encoding="utf-8")
    assert runpy.run_path(str(file))["whole"](1.0) is not None
    (said,) = caplog.records
    assert "No space left on device" in said.getMessage()
    assert "NUMBA_CACHE_DIR" in said.getMessage()


def test_the_first_compilation_is_logged_once(caplog):
    compiled._say_compiling.cache_clear()

    def triple(x):
        return 3.0 * x

    with caplog.at_level("INFO", logger="dynid"):
        for _ in range(2):
            # No cache: what is loaded from one is not announced.
            assert njit(triple)(1.5) == 4.5
    assert [record.getMessage() for record in caplog.records] == [compiled.COMPILING]


def test_commands_show_the_log_on_a_terminal_only(monkeypatch, capsys):
    logger = logging.getLogger("dynid")
    for terminal in (False, True):
        monkeypatch.setattr("sys.stderr.isatty", lambda terminal=terminal: terminal)
        with logging_to_terminal():
            logger.info(compiled.COMPILING)
        assert (compiled.COMPILING in capsys.readouterr().err) == terminal
    assert not logger.handlers


def test_a_kernel_is_compiled_again_if_a_kernel_that_it_calls_has_changed(monkeypatch, tmp_path):
    """Compiled code holds that of its callees: after an upgrade it must not be that of the old version."""
    monkeypatch.setattr(compiled_cache, "_ROOT", tmp_path)
    caller, callee, numbers = (tmp_path / f"{name}.py" for name in ("caller", "callee", "numbers"))
    caller.write_text("from dynid.common.compiled import kernel\nfrom dynid.callee import twice\n")
    callee.write_text("from dynid.common.compiled import kernel\nfrom dynid.numbers import TWO\n")
    (tmp_path / "common").mkdir()
    for form in compiled_cache._FORMS:
        (tmp_path / "common" / form).write_text("")
    stamps = set()
    for text in ("TWO = 2", "TWO = 2.0", "TWO = 2"):
        numbers.write_text(text)
        compiled_cache.source_stamp.cache_clear()
        stamps.add(compiled_cache.source_stamp(caller))
    assert len(stamps) == 2
    compiled_cache.source_stamp.cache_clear()


def test_code_kept_by_another_version_of_the_compiling_file_is_not_loaded(tmp_path, monkeypatch):
    """Its form may differ: such code of files that do not import `compiled` ended in a TypeError."""
    monkeypatch.setattr(compiled_cache, "_ROOT", tmp_path)
    plain = tmp_path / "plain.py"
    plain.write_text("def half(x):\n    return 0.5 * x\n")
    (tmp_path / "common").mkdir()
    stamps = set()
    for texts in (("kernels", "whole code"), ("kernels", "parts"), ("fast kernels", "parts")):
        for form, text in zip(compiled_cache._FORMS, texts, strict=True):
            (tmp_path / "common" / form).write_text(text)
        compiled_cache.source_stamp.cache_clear()
        stamps.add(compiled_cache.source_stamp(plain))
    assert len(stamps) == 3
    compiled_cache.source_stamp.cache_clear()


@pytest.mark.parametrize("width", ["tile", "single sample"])
def test_the_cache_of_a_kernel_counts_the_files_that_it_imports(width):
    from dynid.dynamics.kernels import accelerations

    kernel = accelerations if width == "tile" else compiled.for_one_sample(accelerations)
    stamp = compiled_cache.source_stamp(Path(accelerations.py_func.__code__.co_filename))
    assert kernel._cache._cache_file._source_stamp == stamp


def test_products_are_rounded_so_that_results_do_not_depend_on_the_cache(monkeypatch):
    """Fused products differ between a kernel alone and inside another: first and later runs differed."""
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])

    def product(a, b, c):
        return a * b + c

    kernels = [compile_as(product) for compile_as in (compiled.kernel, compiled.inner, compiled.inlined)]
    assert not any(kernel.targetoptions["fastmath"] for kernel in kernels)
    # (1 + e)(1 - e) - 1 = -e^2 if fused; the rounded product is one.
    e = 2.0**-30
    assert kernels[0](1.0 + e, 1.0 - e, -1.0) == 0.0


PARTS = """
from dynid.common.compiled import inner, kernel

@inner
def part(x):
    return x * x + 1.0

@kernel
def whole(x):
    return 3.0 * part(x)
"""


def test_parts_have_no_machine_code_and_serve_kernels_of_later_runs(tmp_path):
    """A function that only kernels call is translated inside these; a later run need not read its text."""
    file = tmp_path / "parts.py"
    file.write_text(PARTS, encoding="utf-8")
    results = []
    for _ in range(2):
        names = runpy.run_path(str(file))
        results.append(names["whole"](0.1))
        (compiled_part,) = names["part"].overloads.values()
        assert isinstance(compiled_part.library, compiled_cache.Part)
        for kept in (tmp_path / "__pycache__").glob("parts.whole*"):
            kept.unlink()
    assert sum(names["part"].stats.cache_hits.values()) == 1
    assert results[0] == results[1] == 3.0 * (0.1 * 0.1 + 1.0)


NESTED = """
import sys
import numpy as np
from numba.core.runtime.nrt import rtsys
from dynid.common.compiled import inner, kernel

@inner
def part(x):
    return x * x + 1.0

@kernel
def filled(x):
    for i in range(len(x)):
        x[i] = part(x[i])

@kernel
def outer(x):
    filled(x)
    x[0] += 1.0

x = np.full(3, 2.0)
for name in sys.argv[1].split(","):
    globals()[name](x)
print(*x, sum(filled.stats.cache_hits.values()), int(rtsys._init))
"""


def test_a_kernel_from_the_disk_takes_arrays_and_is_compiled_into_others(tmp_path):
    """Its code is read for them only then; nothing is compiled to load it."""
    file = tmp_path / "nested.py"
    file.write_text(NESTED, encoding="utf-8")

    def printed(names):
        run = [sys.executable, str(file), names]
        return subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()

    assert printed("filled") == ["5.0", "5.0", "5.0", "0", "1"]
    assert printed("filled") == ["5.0", "5.0", "5.0", "1", "0"]
    assert printed("filled,outer") == ["27.0", "26.0", "26.0", "1", "1"]
    assert printed("outer,filled") == ["37.0", "26.0", "26.0", "1", "0"]


def test_processes_that_need_the_same_code_compile_it_once(tmp_path):
    file = tmp_path / "parts.py"
    file.write_text(
        f"{PARTS}\nwhole(0.1)\nprint(sum(sum(k.stats.cache_misses.values()) for k in (part, whole)))\n"
    )
    run = [sys.executable, str(file)]
    running = [subprocess.Popen(run, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sum(int(each.communicate()[0]) for each in running) == 2  # the kernel and its part


HOLDER = """
import runpy, sys
runpy.run_path(sys.argv[1])["whole"]._cache.claim(0.0)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_claim_lasts_until_it_is_released_or_its_process_has_ended(tmp_path):
    file = tmp_path / "parts.py"
    file.write_text(PARTS, encoding="utf-8")
    code = runpy.run_path(str(file))["whole"]._cache
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        assert not code.claim(patience=0.05)
        other.kill()
    assert code.claim(patience=10.0)
    code.release()


def test_a_second_process_compiles_what_is_missing_and_only_that(tmp_path):
    """Its list is what `prepare` gives it; what another process compiles is left out."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "dynid.common.ahead", "motion.kernels:sweep"]
    subprocess.run(command, env=environment, check=True)
    assert [file.name.split("-")[0] for file in tmp_path.rglob("*.nbi")] == ["kernels.sweep"]
    check = (
        "from dynid.common.ahead import load\n"
        "from dynid.motion.kernels import sweep\n"
        "assert load(sweep) and set(sweep.overloads) == {sweep.takes}"
    )
    subprocess.run([sys.executable, "-c", check], env=environment, check=True)


def test_declared_argument_types_are_those_of_calls():
    """Otherwise the second process would compile what nobody calls.

    Other kernels call some of these with complex numbers or with constants; tests of the same process, too.
    """
    robot = replace(load_robot("fivebar"), model="energy")
    log = simulate(robot, {"duration": 1.0, "rate": 200.0}).log()
    identify(robot, log, auto="off")
    names = kernel_names(robot, tracked=True, logs=True)
    assert len(names) == 9
    for name in names:
        kernel = ahead._kernel(name)
        called = {types for types in kernel.overloads if not re.search("complex|Literal", str(types))}
        assert called == {kernel.takes}, name


@pytest.mark.parametrize("number", [float, complex])
def test_a_view_is_the_part_of_an_array_and_workspace_is_no_other_array(monkeypatch, number):
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])

    def doubled(x, start, count, out):
        part, twice = view(x, start, count), workspace(x, count)
        for k in range(count):
            twice[k] = 2.0 * part[k]
            part[k] = 0.0
        for k in range(twice.size):
            out[k] = twice[k]
        release(twice)

    x = np.arange(8).astype(number) + (1j if number is complex else 0.0)
    before, out = x.copy(), np.zeros(3, number)
    compiled.kernel(doubled)(x, 2, 3, out)
    np.testing.assert_array_equal(out, 2.0 * before[2:5])
    np.testing.assert_array_equal(x, [*before[:2], 0.0, 0.0, 0.0, *before[5:]])


def test_other_failures_of_the_cache_are_not_hidden(monkeypatch):
    def broken(self, function):
        raise RuntimeError("something else")

    monkeypatch.setattr(CacheImpl, "__init__", broken)
    with pytest.raises(RuntimeError, match="something else"):
        compiled.kernel(lambda x: x)
