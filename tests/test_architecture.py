"""Data moves one way: a folder imports only folders before it; special cases have rooms of their own."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.long_tests import LONG
from tests.workspace import dynid

ROOT = Path(__file__).parents[1] / "src" / "dynid"
# Folders and top-level modules, in the order in which they may import each other.
ORDER = [
    "common",
    "mechanism",
    "motion",
    "kinematics",
    "regressor",
    "dynamics",
    "projection",
    "conditioning",
    "base",
    "estimator",
    "statistics",
    "report",
    "experiment",
    "problem_checks",
    "case",
    "info",
    "problem",
    "linear",
    "log_pass",
    "realise",
    "unknown",
    "refinement",
    "fit",
    "checks",
    "prediction",
    "unknowns",
    "cases",
    "validation",
    "choice",
    "pipeline",
    "payload",
    "robots",
    "excitation",
    "simulation",
    "commands",
    "cli",
]
# Estimates and comparisons print themselves; the reader of robots finds the files of the built-in ones.
EXCEPTIONS = {
    ("statistics/estimate.py", "report"),
    ("statistics/comparison.py", "report"),
    ("mechanism/load.py", "robots"),
}


def imported(file: Path) -> set[str]:
    """Second parts of all `dynid.x` imports that happen at run time, inside functions too."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    skipped = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "dynid" else [f"dynid.{one.name}" for one in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("dynid.")}
    return found


def room(file: Path) -> str:
    """Folder of a file, or the name of a top-level module."""
    first = file.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


FILES = [file for file in sorted(ROOT.rglob("*.py")) if file != ROOT / "__init__.py"]


def test_every_folder_has_its_place() -> None:
    assert {room(file) for file in FILES} == set(ORDER)


@pytest.mark.parametrize("name", ORDER)
def test_a_folder_imports_only_folders_before_it(name: str) -> None:
    allowed = {*ORDER[: ORDER.index(name) + 1], "__version__"}
    for file in FILES:
        if room(file) != name:
            continue
        place = str(file.relative_to(ROOT))
        later = {one for one in imported(file) - allowed if (place, one) not in EXCEPTIONS}
        assert not later, f"{place} imports {sorted(later)}"


def test_models_have_one_list_of_names() -> None:
    from dynid.mechanism.mechanism import MODEL_NAMES
    from dynid.projection.model import MODELS

    assert tuple(MODELS) == MODEL_NAMES


def test_no_file_outgrows_its_idea() -> None:
    sizes = {file: len(file.read_text().splitlines()) for file in ROOT.rglob("*.py")}
    too_long = {str(file.relative_to(ROOT)): n for file, n in sizes.items() if n > 400}
    assert not too_long


def test_cases_are_registered_in_one_line_each() -> None:
    """Nothing outside its folder names a case, but the one line that registers it."""
    for case in ("free_motion", "force_sensor", "wrench_table"):
        lines = [
            line
            for file in FILES
            if room(file) not in ("cases", "excitation", "simulation")
            for line in file.read_text().splitlines()
            if f"dynid.cases.{case}" in line
        ]
        assert len(lines) == 1, lines


@pytest.mark.parametrize("name", ["ur5", "dualv"])
def test_a_plain_robot_needs_no_special_case(name: str, tmp_path: Path) -> None:
    """With `cases/` and `unknowns/` unimportable, trees and closed robots are identified as ever."""
    log = tmp_path / "log.csv"
    assert dynid("simulate", name, "--duration", "2", "--out", str(log)).exit_code == 0
    program = f"""
import sys
class Closed:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("dynid.cases", "dynid.unknowns")):
            raise ImportError(name)
sys.meta_path.insert(0, Closed())
from dynid import identify
estimate = identify("{name}", "log.csv")
assert len(estimate.parameters) > 20
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=300)


def test_long_tests_exist() -> None:
    for name in LONG:
        file, _, test = name.partition("::")
        assert f"def {test.partition('[')[0]}(" in (Path(__file__).parent / file).read_text(), name
