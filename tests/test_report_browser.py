"""Pages in a real browser: no error, no request, everything drawn, readable on a phone and by screen readers.

Needs Chromium (`CHROMIUM`, default `/usr/bin/chromium`), Node.js and the npm package `playwright-core`; with
`axe-core` accessibility is checked too. `NODE_PATH` names the folder of the packages. Skipped without them.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dynid.experiment.file import load_experiment
from dynid.pipeline import identify, run_experiment
from dynid.report.comparison import comparison_html
from dynid.report.html import report_html
from dynid.simulation.demo import built_in_experiment, run_demo
from dynid.statistics.estimate import Estimate
from dynid.validation.results import compare_results
from tests.fabricated import JOINTS, estimate

_SCRIPT = Path(__file__).with_name("report_browser.js")
ROOT = Path(__file__).parents[1]
_CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def _ready() -> bool:
    node = shutil.which("node")
    if node is None or not Path(_CHROMIUM).exists():
        return False
    asked = subprocess.run(
        [node, "-e", "require.resolve('playwright-core')"],
        cwd=_SCRIPT.parent,
        capture_output=True,
        check=False,
    )
    return asked.returncode == 0


pytestmark = pytest.mark.skipif(not _ready(), reason="needs Chromium, Node.js and playwright-core")


def _seen(folder: Path, pages: dict[str, str]) -> dict[str, dict]:
    files = []
    for name, text in pages.items():
        files.append(str(folder / f"{name}.html"))
        Path(files[-1]).write_text(text, encoding="utf-8")
    command = ["node", str(_SCRIPT), *files]
    found = subprocess.run(command, capture_output=True, check=True, timeout=600, text=True)
    return {Path(one["file"]).stem: one for one in json.loads(found.stdout)}


def _check(one: dict) -> None:
    assert one["errors"] == []
    assert one["requests"] == []
    assert 0 < one["first"] <= 900  # pixels: the height of the first screen
    assert one["plots"]
    assert min(one["plots"]) >= 1
    for width, (needed, _) in one["widths"].items():
        assert needed <= int(width), f"scrolls sideways at {width} px"
    assert one["stacked"]  # drive terms are one below the other on a phone
    assert all(1 < columns <= 12 for columns in one["numbers"])  # of one panel, or of all if they fit
    assert one["theme"]
    assert one["folds"]
    assert one["zoom"] is not False
    assert one["robot"] is not False
    assert one["pdf"] > 20_000  # bytes: an empty page has about 1000
    assert not one["axe"]


def test_pages_work_in_a_browser(tmp_path):
    simulated = built_in_experiment("scara", seed=0)
    found = identify(simulated.mechanism, simulated.logs[0], validate=simulated.validation, auto="off")
    whole = estimate()
    logs = tuple(replace(whole.signals[0], log=f"log {i}") for i in range(40))
    bad = replace(whole.verdict, level="bad", headline="Do not use these parameters yet")
    long = replace(whole, robot="a_robot_with_a_name_that_fills_more_than_one_line_of_a_phone_" * 3)
    pages = {
        "scara": report_html(found),
        "fabricated": report_html(whole),
        "many": report_html(replace(whole, signals=logs)),
        "bad": report_html(replace(long, verdict=bad)),
        "comparison": comparison_html(compare_results([whole, whole, found])),
    }
    seen = _seen(tmp_path, pages)
    for one in seen.values():
        _check(one)
    assert len(seen["comparison"]["plots"]) >= 2
    assert seen["scara"]["robot"] is True
    assert np.isfinite(seen["scara"]["seconds"])
    assert len(seen["many"]["plots"]) <= len(seen["fabricated"]["plots"]) + 8  # three logs, not forty
    assert len(JOINTS) in seen["fabricated"]["plots"]


_REAL = ROOT.parent / "shared" / "data"


def _force_sensor() -> Estimate:
    example = importlib.import_module("sensor_panda")
    return identify("panda", example.simulate(), force_sensor=example.SENSOR)


def _real(name: str) -> Estimate:
    if not (_REAL / name).exists():
        pytest.skip("real logs are not available")
    return run_experiment(load_experiment(ROOT / "examples" / "real" / f"{name}.yaml"))


def _many_logs() -> Estimate:
    demos = [built_in_experiment("ur5", seed=seed) for seed in range(20)]
    logs = [replace(log, name=f"run {i}, {log.name}") for i, demo in enumerate(demos) for log in demo.logs]
    return identify(demos[0].mechanism, logs, validate=[demos[0].validation], auto="off")


RESULTS = {
    **{name: partial(run_demo, name) for name in ("ur5", "panda", "dualv", "orthoglide", "evra", "cable4")},
    "force sensor": _force_sensor,
    "40 logs": _many_logs,
    **{name: partial(_real, name) for name in ("panda_gaz", "staubli_tx40", "kuka_kr300")},
}


@pytest.mark.parametrize("name", RESULTS)
def test_reports_of_all_kinds_of_robots_work_in_a_browser(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    (one,) = _seen(tmp_path, {"report": report_html(RESULTS[name]())}).values()
    _check(one)
    assert one["robot"] is True
    assert one["seconds"] < 2.0
