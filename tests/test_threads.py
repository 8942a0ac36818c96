"""Threads and compiled shortcuts do not change a result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.checks import tested_rows
from dynid.common.errors import InputError
from dynid.common.paged import begun, in_order, stoppable
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import load_robot
from dynid.motion.logs import log_from_arrays
from dynid.pipeline import identify_logs
from dynid.problem import prepare
from dynid.projection.model import predicted
from dynid.simulation.demo import built_in_experiment


@pytest.mark.parametrize("name", ["scara", "fivebar"])
def test_a_result_does_not_depend_on_the_number_of_threads(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings chosen, residuals and description tested: all passes over the log are made."""
    demo = built_in_experiment(name)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(os, "cpu_count", lambda count=threads: count)
        logs = [replace(log) for log in demo.logs]
        estimate = identify_logs(demo.mechanism, logs, (), Experiment(robot=name))
        tests = [(test.test, test.about, test.p_value, test.value) for test in estimate.residual_tests]
        values = [(parameter.name, parameter.value, parameter.sigma) for parameter in estimate.parameters]
        found.append((values, estimate.covariance.tobytes(), estimate.tried, tests))
    assert found[0] == found[1] == found[2]


def test_rows_that_were_begun_are_those_of_the_last_estimate() -> None:
    """What other threads have begun is not computed again, and another estimate has rows of its own."""
    demo = built_in_experiment("scara")
    problem = prepare(demo.mechanism, [replace(demo.logs[0])], Experiment(robot="scara"))
    chi = np.random.default_rng(4).normal(size=len(problem.parameters))
    tested_rows.begin_rows(problem, chi)
    groups, suspects, _, count = tested_rows.tested_rows(problem, chi)
    assert tested_rows.tested_rows(problem, chi)[0] is groups
    assert max(column for suspect in suspects for column in suspect.columns) < count
    other = tested_rows.tested_rows(problem, 2.0 * chi)[0]
    # Standard parameters have the same rows; columns of gains are W chi.
    p = len(chi)
    for one, twice in zip(groups, other, strict=True):
        plain = one.columns < p
        a, b = (part.merged.W.T @ part.merged.W for part in (one, twice))
        np.testing.assert_allclose(a[np.ix_(plain, plain)], b[np.ix_(plain, plain)], rtol=1e-9)  # rounding
        gain = np.argmax(one.columns == p + next(s.columns[0] for s in suspects if s.test == "gain"))
        if one.columns[gain] >= p:
            np.testing.assert_allclose(b[gain, gain], 4.0 * a[gain, gain], rtol=1e-9)


COUPLED = """\
joints:
  - {name: a, kind: revolute, parent: base, child: one, mdh: {alpha: pi/2}}
  - {name: b, kind: revolute, parent: one, child: two, mdh: {d: 0.4}}
  - {name: c, kind: revolute, parent: two, child: three, mdh: {d: 0.3}}
couplings: [{joint: c, of: {b: -0.5}}]
measured: [a, b]
actuators: [a, b]
drive: {a: [Ia, Fv, Fs], b: [Ia, Fv, Fl]}
"""


@pytest.mark.parametrize("name", ["scara", "coupled"])
def test_sums_without_entries_are_those_of_the_entries(name: str, tmp_path: Path) -> None:
    """W chi in one call, of selected rows and of rows that a coupling combines, with loads of friction."""
    (tmp_path / "coupled.yaml").write_text(COUPLED)
    robot = load_robot(tmp_path / "coupled.yaml") if name == "coupled" else load_robot(name)
    t = 1e-3 * np.arange(3000)[:, None]
    q = np.sin(t * np.arange(3.0, 3.0 + len(robot.measured)))
    tau = np.random.default_rng(5).normal(size=(len(t), len(robot.actuators)))
    problem = prepare(robot, [log_from_arrays(robot, t[:, 0], q, tau)], Experiment(robot=robot))
    chi = np.random.default_rng(6).normal(size=len(problem.parameters))
    source = problem.with_load_parameters(chi).sources[0]
    start, stop = source.pieces()[0][0], source.pieces()[0][0] + 1001  # not a whole number of tiles
    found, weights = source.predicted(start, stop, chi)
    expected, same = predicted(source, start, stop, chi)
    np.testing.assert_array_equal(weights, same)
    # Another order of summation.
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["dualv", "stewart"])
def test_sums_of_a_closed_robot_without_entries_are_those_of_the_entries(name: str) -> None:
    """N(q)^T W chi from forces of the tree, over parts of different length, with loads of friction."""
    demo = built_in_experiment(name)
    robot = replace(demo.mechanism, drive=dict.fromkeys(demo.mechanism.drive, ("Fv", "Fs", "Fl")))
    problem = prepare(robot, [replace(demo.logs[0])], Experiment(robot=robot))
    chi = np.random.default_rng(6).normal(size=len(problem.parameters))
    source = problem.with_load_parameters(chi).sources[0]
    first, last = source.pieces()[0]
    start, stop = first + 3, min(first + 1501, last)
    found, weights = source.predicted(start, stop, chi)
    expected, same = predicted(source, start, stop, chi)
    np.testing.assert_array_equal(weights, same)
    # Another order of summation.
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_closed_output_is_no_error(closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m dynid robots {closed}', sys.executable], capture_output=True, timeout=60
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def _ran(program: str, *, interrupted: bool = False) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own; `interrupted`: Ctrl-C once it has printed a line."""
    code = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n" + program
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-u", "-c", code], text=True, **pipes) as process:
        first = process.stdout.readline() if interrupted and process.stdout else ""
        if interrupted:
            # Python loses a signal that comes in the moment in which its main thread begins to wait.
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, first + out, err)


def test_an_error_stops_what_was_begun() -> None:
    """Also where the process goes on, as that of a notebook."""
    done = []

    def task(k: int) -> None:
        time.sleep(0.001)
        done.append(k)

    def work() -> None:
        for _ in in_order(task, range(20_000), 1):
            pass

    begun_work = []

    def fail() -> None:
        with stoppable():
            begun_work.append(begun(work))
            raise InputError("no such row")

    with pytest.raises(InputError):
        fail()
    with pytest.raises(CancelledError):
        begun_work[0].result()
    assert len(done) < 20_000


# A thread works on ten thousand tasks of ten milliseconds: more than a minute, if nobody stops it.
_LONG_WORK = """
import time
from dynid.common.paged import begun, in_order, stoppable
def work():
    for _ in in_order(lambda task: time.sleep(0.01), range(10_000), 1):
        pass
"""


def test_a_program_that_fails_ends_with_its_error_alone() -> None:
    ran = _ran(_LONG_WORK + "with stoppable():\n    begun(work)\n    raise SystemExit('the error')\n")
    assert (ran.returncode, ran.stderr) == (1, "the error\n")


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupt_stops_what_was_begun() -> None:
    program = "with stoppable():\n    future = begun(work)\n    print('working')\n    future.result()\n"
    ran = _ran(_LONG_WORK + program, interrupted=True)
    assert ran.stderr.count("Traceback") == 1
    assert ran.stderr.endswith("KeyboardInterrupt\n")


def test_the_end_of_a_program_stops_what_was_begun() -> None:
    ran = _ran(_LONG_WORK + "begun(work)\ntime.sleep(0.05)\n")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_an_error_in_a_thread_reaches_who_asks_for_its_result() -> None:
    def work() -> None:
        raise InputError("no such row")

    future = begun(work)
    for _ in range(2):
        with pytest.raises(InputError, match="no such row"):
            future.result()


def test_rows_that_were_stopped_are_begun_again() -> None:
    demo = built_in_experiment("scara")
    problem = prepare(demo.mechanism, [replace(demo.logs[0])], Experiment(robot="scara"))
    chi = np.zeros(len(problem.parameters))

    def failing(*_: object, **__: object) -> None:
        raise InputError("no room")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tested_rows, "row_groups", failing)
        with pytest.raises(InputError, match="no room"):
            tested_rows.tested_rows(problem, chi)
    assert tested_rows.tested_rows(problem, chi)[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_forked_process_has_the_result_of_what_was_begun() -> None:
    """Threads do not survive a fork: a child that waits for one would wait for ever."""
    program = """
import os, time
from dynid.common.paged import begun, in_order, stoppable
def work():
    time.sleep(0.2)
    return 42
future = begun(work)
child = os.fork()
if child == 0:
    os._exit(future.result(timeout=5))
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert _ran(program).returncode == 42
