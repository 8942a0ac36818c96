"""Python of the documentation that needs files or names: it runs where these have been prepared.

A block marked `prepared` runs alone, in the folder and with the names that `PREPARED` makes for its page.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid import Estimate, Log, built_in_experiment, identify
from dynid.simulation.files import log_columns, write_columns
from tests.test_docs import PAGES, ROOT, blocks, pages_with, relative

Names = dict[str, Any]


@cache
def ur5() -> tuple[Estimate, Log]:
    demo = built_in_experiment("ur5", seed=0)
    return identify(demo.mechanism, demo.logs[0], auto="off"), demo.logs[0]


def _nothing(folder: Path) -> Names:
    return {}


def _log(folder: Path) -> Names:
    write_columns(log_columns(ur5()[1]), folder / "run.csv")
    return {}


def _module(folder: Path) -> Names:
    dynid.export(ur5()[0], "numpy", folder)
    (folder / "ur5.py").rename(folder / "arm.py")
    return {}


class _Cycles:
    """True for some cycles of a controller."""

    left = 3

    def __bool__(self) -> bool:
        self.left -= 1
        return self.left >= 0


def _controller(folder: Path) -> Names:
    result, log = ur5()
    result.save(folder / "results" / "ur5")
    return {"running": _Cycles(), "q": log.q[100], "tau": log.tau[100]}


def _loaded(folder: Path) -> Names:
    result, log = ur5()
    result.save(folder / "results" / "ur5")
    write_columns(log_columns(log), folder / "loaded.csv")
    return {}


def _sensor(folder: Path) -> Names:
    sys.path.insert(0, str(ROOT / "examples"))
    example = importlib.import_module("sensor_panda")
    log = example.simulate()
    found = identify("panda", log, force_sensor=example.SENSOR, auto="off")
    for name in ("compensation.py", "compensation.json"):
        (folder / name).write_text(found.files[name], encoding="utf-8")
    rest = np.zeros(7).tolist()
    return {"measured": log.tau[0].tolist(), "q": log.q[0].tolist(), "dq": rest, "ddq": rest}


def _real_log(folder: Path) -> Names:
    """Two of the twelve runs: the page is about the calls, `test_real_logs.py` about the numbers."""
    log = Path("shared", "data", "cdpr_grab4", "ident12.parquet")
    if not (ROOT.parent / log).exists():
        pytest.skip("real logs are not available")
    import pyarrow.parquet as parquet

    (folder / "examples").symlink_to(ROOT / "examples")
    (folder.parent / log).parent.mkdir(parents=True)
    parquet.write_table(parquet.read_table(ROOT.parent / log).slice(0, 2 * 1001), folder.parent / log)
    return {}


PREPARED: dict[str, Callable[[Path], Names]] = {
    "docs/howto/check.md": _log,
    "docs/howto/controller_code.md": _module,
    "docs/howto/extend.md": _nothing,
    "docs/howto/force_torque.md": _sensor,
    "docs/howto/online.md": _controller,
    "docs/howto/payload.md": _loaded,
    "docs/models/internal.md": _real_log,
}


@pytest.mark.parametrize("page", pages_with("python", "prepared"), ids=relative)
def test_prepared_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    given = PREPARED[relative(page)](folder)
    for mark, text in blocks(page, "python"):
        if mark == "prepared":
            exec(compile(text, relative(page), "exec"), {"__name__": "page", **given})  # noqa: S102


def test_every_python_block_runs_somewhere() -> None:
    for page in PAGES:
        marks = {mark for mark, _ in blocks(page, "python")}
        assert marks <= {"runnable", "prepared"}, relative(page)
