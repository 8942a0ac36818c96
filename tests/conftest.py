"""Draws are the same in every run; shapes of the first calls of every function are checked."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.long_tests import LONG
from tests.typechecker import sample_checks

SOURCES = Path(__file__).parents[1] / "src" / "dynid"
DIVIDED = ("tests/test_terminal_blocks.py", "tests/test_api_and_notebooks.py::test_a_notebook")

sample_checks()

# No deadline and no check of the speed of draws: both fail on a busy machine.
_ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", _ANY_SPEED, derandomize=True)
settings.register_profile("search", _ANY_SPEED)  # pytest --hypothesis-profile=search: new draws, failures remembered
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Compile all kernels once before the workers start: each of them would compile them again."""
    first = not hasattr(config, "workerinput") and getattr(config.option, "numprocesses", None)
    if first and not any((SOURCES / "regressor" / "__pycache__").glob("kernels.fill_rows*.nbc")):
        subprocess.run([sys.executable, "-c", "import dynid.cli; dynid.cli.main(['warm'])"], check=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Whole files to each worker: what the tests of a file share is made once.

    Files of long tests that share nothing are divided: one of them, the last to begin, would run alone.
    """
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if nodeid.startswith(DIVIDED) else str(super()._split_scope(nodeid))

    return Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Modules and tests stay to the end: looking for garbage among them would cost seconds of each worker."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the list, by name or by name and parameter."""
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        if name in LONG or name.partition("[")[0] in LONG:
            item.add_marker(pytest.mark.long)


@pytest.fixture(autouse=True, scope="module")
def _rules_only(request: pytest.FixtureRequest) -> Iterator[None]:
    """Settings that tests leave open are those of the rules (`auto: off`), but in modules marked `auto`.

    A test of one stage must not depend on a comparison of settings, and would pay three times the time.
    """
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("auto") is None:
            # Not before `sample_checks`: all calls of what it imports would be checked.
            from dynid.choice.choose import Chosen

            patch.setattr("dynid.pipeline.choose", Chosen)
        if request.node.name.rpartition("/")[2] != "test_uncertain_description.py":
            patch.setattr("dynid.pipeline.described", lambda fit: fit.description)
        if request.node.name.rpartition("/")[2] not in CAUSES:
            patch.setattr("dynid.pipeline.with_causes", lambda fit, estimate: estimate)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one valid file of every kind, as it is in `tests/workspace.py`."""
    from tests.workspace import make_workspace

    return make_workspace(tmp_path_factory.mktemp("made"))


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it at another place, as the working directory."""
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def load(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    """Text -> the mechanism of a file with it, called ROBOT_FILE in the module, else a robot file."""
    from dynid.mechanism.load import load_robot

    def write_and_load(text: str, name: str = getattr(request.module, "ROBOT_FILE", "robot.yaml")) -> Any:
        (tmp_path / name).write_text(text)
        return load_robot(tmp_path / name)

    return write_and_load


@pytest.fixture(scope="module")
def no_symbols() -> Iterator[None]:
    """Dimensions in groupings take half of the time or more, and are tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("info", "pipeline"):
            patch.setattr(f"dynid.{module}.grouping_symbols", lambda *_, **__: {})
        yield


# Modules in which likely causes are searched: up to sixty fits for a log that does not fit.
CAUSES = {
    "test_alarms.py",
    "test_contradiction.py",
    "test_description.py",
    "test_description_power.py",
    "test_effort_order.py",
    "test_faults_cli.py",
    "test_faults_signals.py",
    "test_one_ranking.py",
    "test_pose_columns.py",
    "test_python_use.py",
    "test_residual_tests.py",
    "test_verdict.py",
}
