"""Data moves one way: a stage imports only stages before it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "dynid"
BASICS = {"arrays", "errors", "notices", "compiled", "threads", "strict_yaml", "strict_json", "entry"}
STAGES = [
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
    "excitation",
    "plant",
]


def imported(file: Path) -> set[str]:
    """Second parts of all `dynid.x` imports that happen at run time."""
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
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("dynid.")}
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_imports_only_stages_before_it(stage: str) -> None:
    allowed = BASICS | set(STAGES[: STAGES.index(stage) + 1])
    for file in sorted((ROOT / stage).rglob("*.py")):
        later = imported(file) - allowed
        # Estimates and comparisons print themselves, and the reader finds the built-in robots' files.
        later -= {"report"} if file.name in ("estimate.py", "comparison.py") else set()
        later -= {"robots"} if file.name == "load.py" else set()
        assert not later, f"{file.relative_to(ROOT)} imports {sorted(later)}"


def test_models_have_one_list_of_names() -> None:
    from dynid.mechanism.mechanism import MODEL_NAMES
    from dynid.projection.model import MODELS

    assert tuple(MODELS) == MODEL_NAMES


def test_no_file_outgrows_its_idea() -> None:
    sizes = {file: len(file.read_text().splitlines()) for file in ROOT.rglob("*.py")}
    too_long = {str(file.relative_to(ROOT)): n for file, n in sizes.items() if n > 400}
    assert not too_long
