"""The studio in a real browser: motion, columns, doctor, identify, compare, export; skipped without one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dynid.studio.server import Studio
from dynid.studio.session import Session
from dynid.studio.view import has_viser
from tests import test_report_browser
from tests.test_tasks import contents
from tests.workspace import ARM, SIMULATION, TRUTH, columns, dynid, write_columns

_SCRIPT = Path(__file__).with_name("studio_browser.js")
pytestmark = test_report_browser.pytestmark


def test_the_studio_is_used_in_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("arm", ARM), ("truth", TRUTH), ("simulation", SIMULATION)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    simulate = ("simulate", "arm.yaml", "--truth", "truth.yaml", "--config", "simulation.yaml")
    assert dynid(*simulate, "--out", "log.csv").exit_code == 0
    cells = columns(tmp_path / "log.csv")
    odd = {"time": cells["t"], "J1_pos": cells["q_1"], "J2_pos": cells["q_2"]}
    write_columns(tmp_path / "odd.csv", {**odd, "a [Nm]": cells["tau_1"], "b": cells["tau_2"]})
    studio = Studio(Session(tmp_path))
    threading.Thread(target=studio.serve_forever, daemon=True).start()
    try:
        picture = [os.environ["STUDIO_PICTURE"]] if "STUDIO_PICTURE" in os.environ else []
        command = ["node", str(_SCRIPT), studio.address, *picture]
        found = subprocess.run(command, capture_output=True, check=False, timeout=900, text=True)
    finally:
        studio.shutdown()
        studio.close()
    assert found.returncode == 0, found.stderr  # the step that was waited for in vain
    seen = json.loads(found.stdout)
    assert seen["errors"] == []
    assert seen["elsewhere"] == []
    assert seen["motion"].startswith("arm-motion-1: The motion keeps its limits")
    assert seen["planned"]
    assert "tightest limit now" in seen["distances"]
    assert "the floor" in seen["distances"]
    assert "effort" in seen["refusal"]
    assert ["tau_1", "a [Nm]", "Nm"] in seen["columns"]  # dragged, with its unit
    assert ["tau_2", "b", ""] in seen["columns"]  # picked
    assert ["q_2", "J2_pos", ""] in seen["columns"]
    assert seen["robot"]
    assert seen["drawnBy"].startswith("Simple drawing")
    if has_viser():
        assert min(seen["viser"].values()) > 20  # colours: solid parts have shades, an empty page has none
        assert seen["viserBy"].startswith("Drawn by Viser")
        assert "no WebGL" in seen["without"]
    else:
        assert "dynid[view]" in seen["drawnBy"]
    assert seen["unread"] == ["odd.csv", True]
    assert seen["typed"] == "-3"
    assert seen["inView"]  # progress and Cancel, wherever the page is scrolled to
    assert seen["doctor"]
    assert seen["result"].startswith("arm-1: ")
    assert seen["outcome"] == "#results"
    assert "arm" in seen["report"]
    assert seen["pair"] == ["0", "1"]  # not one result with itself
    assert "arm-1_arm-2_compare" in seen["compared"]
    assert "efforts differ from the estimate" in seen["exported"]
    assert all(needed <= int(width) for width, needed in seen["widths"].items())
    assert not seen.get("axe"), seen["axe"]  # serious findings; not sought without axe-core
    assert seen["commands"] == [
        "dynid excite arm-motion-1.yaml",
        "dynid identify arm-1.yaml",
        "dynid identify arm-2.yaml",
        "dynid compare arm-1_arm-2_compare.yaml",
        "dynid export arm-2-export.yaml",
    ]
    assert seen["again"] == {"period": "4", "floor": "-3", "starts": "1"}  # the file of the motion is opened
    assert seen["formats"] == ["yaml"]
    assert seen["tabs"] == ["wls", True]

    made = contents(tmp_path / "results")
    shutil.move(tmp_path / "results", tmp_path / "of-studio")
    for command in seen["commands"]:
        again = [sys.executable, "-m", *command.split()]
        subprocess.run(again, cwd=tmp_path, check=True, capture_output=True, timeout=600)
    assert contents(tmp_path / "results") == made
