"""Commands of the documentation run, and its JSON and TOML are valid (C is in `test_export_code.py`).

Commands run where the files that they name have been prepared, with small settings, and end with exit code 0.
Pages with blocks marked `output` are in `test_terminal_blocks.py`, which also compares what is printed.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from tests.test_docs import ROOT, blocks, pages_with, relative, run_python
from tests.test_terminal_blocks import COMMAND, with_output, write_bag
from tests.workspace import columns, dynid, write_columns

# Beginnings of commands, and what is added to them: options that come later count. The longest one applies.
SMALL = {
    "": (),
    "campaign": ("--jobs", "1"),
    "compare": ("--last", "0.25"),
    "compare results": (),
    "compare arm-1_": (),
    "excite": ("--starts", "1", "--hops", "0"),
    "rehearse": ("--runs", "2", "--jobs", "1"),
}
# What does not end by itself or needs a scheduler (test_studio.py, test_campaign.py), or takes seconds and is
# part of the tutorial too (free motions).
ELSEWHERE = ("studio", "--cluster", "--watch", "cable4")
EXPERIMENT = "robot: arm.urdf\nlogs: [run1.csv]\n"
LOADED = "logs: [run1.csv, {file: run2.csv, payload: box}]\npayloads: {box: {body: wrist_3_link}}\n"


def done(*arguments: str) -> None:
    found = dynid(*arguments)
    assert found.exit_code == 0, f"dynid {shlex.join(arguments)}\n{found.output}"


def simulate(seed: int, file: str) -> None:
    done("simulate", "ur5", "--duration", "10", "--rate", "100", "--seed", str(seed), "--out", file)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a URDF, two logs, an experiment and a result."""
    folder = tmp_path_factory.mktemp("made")
    urdf = (files("dynid.robots") / "ur5.urdf").read_text(encoding="utf-8")
    (folder / "arm.urdf").write_text(urdf.replace('name="ur5"', 'name="arm"'), encoding="utf-8")
    (folder / "experiment.yaml").write_text(EXPERIMENT, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        simulate(1, "run1.csv")
        simulate(2, "run2.csv")
        done("identify", "experiment.yaml", "--out", "results/arm")
    return folder


def _fleet(folder: Path) -> None:
    text = blocks(ROOT / "docs/howto/campaign.md", "yaml")[0][1]
    (folder / "fleet.yaml").write_text(text, encoding="utf-8")
    (folder / "data" / "left").mkdir(parents=True)
    simulate(1, "data/left/2026-01.parquet")


def _experiments(folder: Path) -> None:
    for name in ("arm.yaml", "other.yaml"):
        shutil.copy("experiment.yaml", name)
    for month in ("march", "april"):
        shutil.copytree("results/arm", f"results/{month}")
    shutil.copy("run2.csv", "may.csv")


def _designed(folder: Path) -> None:
    """A robot file over the URDF, and a motion for it."""
    (folder / "arm.yaml").write_text("source: arm.urdf\n", encoding="utf-8")
    (folder / "simulation.yaml").write_text(
        "duration: 2\nrate: 200\neffort: {sigma: 0.3}\n", encoding="utf-8"
    )
    done("excite", "arm.yaml", *SMALL["excite"])


def _loaded(folder: Path) -> None:
    """Results that know a payload."""
    for name in ("run3.csv", "run4.csv", "empty.csv", "loaded.csv", "wish.csv"):
        shutil.copy("run2.csv", name)
    for payload, result in (("box", "arm"), ("payload", "robot")):
        text = "robot: arm.urdf\n" + LOADED.replace("box", payload)
        (folder / "loads.yaml").write_text(text, encoding="utf-8")
        done("identify", "loads.yaml", "--out", f"results/{result}")


def _corrected(folder: Path) -> None:
    text = EXPERIMENT.replace("arm.urdf", "../../arm.urdf").replace("run1", "../../run1")
    (folder / "results/arm/experiment.corrected.yaml").write_text(text, encoding="utf-8")


def _bags(folder: Path) -> None:
    for name in ("bag", "runs"):
        write_bag(folder / "run1.csv", name)


def _currents(folder: Path) -> None:
    cells = columns(folder / "run1.csv")
    gain = 11.9  # of the page
    currents = {f"current_{i}": [str(float(x) / gain) for x in cells[f"tau_{i}"]] for i in range(1, 7)}
    write_columns(folder / "run.csv", cells | currents)


def _servo(folder: Path) -> None:
    page = ROOT / "docs/tutorials/sim_to_real.md"
    run_python(page)
    (folder / "leg.yaml").write_text(blocks(page, "yaml")[0][1], encoding="utf-8")
    done("identify", "leg.yaml")


def _studio(folder: Path) -> None:
    """Files as the studio writes them."""
    shutil.copytree("results/arm", "results/other")
    texts = {
        "arm-motion-1": "robot: arm.urdf\nexcite: {period: 5}\n",
        "arm-1": EXPERIMENT,
        "arm-1_arm-2_compare": "compare: [results/arm, results/other]\n",
        "arm-1-export": "export: {result: results/arm, to: yaml}\n",
    }
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


PREPARED: dict[str, Callable[[Path], None]] = {
    "README.md": _fleet,
    "docs/howto/actuators.md": _servo,
    "docs/howto/campaign.md": _fleet,
    "docs/howto/compare.md": _experiments,
    "docs/howto/excite.md": _designed,
    "docs/howto/predict.md": _loaded,
    "docs/howto/rehearse.md": _designed,
    "docs/howto/report.md": _corrected,
    "docs/howto/ros_bags.md": _bags,
    "docs/howto/simulate.md": _designed,
    "docs/howto/validate.md": _loaded,
    "docs/howto/studio.md": _studio,
    "docs/reference/commands.md": _currents,
}


def lines(page: Path) -> list[str]:
    """Of its blocks for a shell, without the comments behind them."""
    return [re.sub(r"\s+#.*", "", line) for _, text in blocks(page, "sh") for line in text.splitlines()]


README = ROOT / "README.md"
IN_README = lines(README)  # the same commands on other pages run there
ALONE = [page for page in pages_with("sh") if page not in with_output() and page.name != "CONTRIBUTING.md"]


@pytest.mark.parametrize("page", ALONE, ids=relative)
def test_commands_run(page: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    PREPARED.get(relative(page), lambda folder: None)(folder)
    for line in lines(page):
        if match := COMMAND.match(line):
            arguments = shlex.split(match[1], comments=True)
            if not set(arguments) & set(ELSEWHERE) and (page == README or line not in IN_README):
                done(*arguments, *SMALL[max(filter(match[1].startswith, SMALL), key=len)])
        elif line.startswith("cc "):
            subprocess.run(shlex.split(line), check=True)


def test_json_and_toml_are_valid() -> None:
    for page in pages_with("json"):
        for _, text in blocks(page, "json"):
            json.loads(f"{{{text}}}")
    for page in pages_with("toml"):
        for _, text in blocks(page, "toml"):
            tomllib.loads(text)
