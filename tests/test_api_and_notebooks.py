"""The reference of the public names is current, documents use only these names, and notebooks run."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.api_reference import RETURNED, TOPICS, page

import dynid
import dynid.extend

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SOURCES = sorted((ROOT / "src/dynid").rglob("*.py"))
# Below `dynid` itself: the parts of extensions, and the command line as a function.
PUBLIC_MODULES = ("dynid.extend", "dynid.cli")


def name(path: Path) -> str:
    return path.name


def cells(notebook: Path) -> list[str]:
    document = json.loads(notebook.read_text(encoding="utf-8"))
    assert all(not cell.get("outputs") for cell in document["cells"]), "outputs are not stored"
    return ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]


def test_every_public_name_is_in_one_topic_of_the_reference() -> None:
    named = [one for names in TOPICS.values() for one in names]
    assert sorted(named) == sorted(set(dynid.__all__) - {"__version__"})


def test_every_public_name_has_a_text() -> None:
    for one in dynid.__all__:
        assert one == "__version__" or getattr(dynid, one).__doc__, one


def test_the_reference_of_the_public_names_is_current() -> None:
    """`python -m tools.api_reference > docs/reference/api.md` writes it."""
    assert (ROOT / "docs/reference/api.md").read_text(encoding="utf-8") == page()


_NO_RESULTS = {"Any", "CaseDesign", "CaseSimulated", "Iterator", "Mapping", "None", "Path", "Predicted"}


def test_classes_that_public_functions_return_are_in_the_reference() -> None:
    """Users see their attributes; helpers of annotations and bases of what is listed are no results."""
    listed = {place.split(":")[1] for places in RETURNED.values() for place in places} | set(dynid.__all__)
    for topic in TOPICS.values():
        for one in topic:
            value = getattr(dynid, one)
            if not inspect.isclass(value):
                annotation = inspect.unwrap(value).__annotations__["return"]
                classes = re.findall(r"\b[A-Z][a-z]\w+", re.sub(r"\w+\[Array, .*?\]", "", str(annotation)))
                missing = set(classes) - listed - _NO_RESULTS
                assert not missing, f"{one} returns {missing}"


def test_documents_and_examples_import_public_names_only() -> None:
    for one in [*PAGES, *EXAMPLES]:
        modules = re.findall(r"^\s*(?:from|import) (dynid\.\S+)", one.read_text(encoding="utf-8"), re.M)
        assert not set(modules) - {*PUBLIC_MODULES}, f"{one.name}: {modules}"


def test_docstrings_import_public_names_only() -> None:
    for one in SOURCES:
        shown = re.findall(r"(?:>>>|`)\s*(?:from|import) (dynid\.[\w.]+)", one.read_text(encoding="utf-8"))
        assert not set(shown) - {*PUBLIC_MODULES}, f"{one}: {shown}"


def test_every_part_of_an_extension_is_found_and_shown() -> None:
    text = (ROOT / "docs/howto/extend.md").read_text(encoding="utf-8")
    for one in dynid.extend.__all__:
        assert getattr(dynid.extend, one).__name__ == one
        assert one in text, f"docs/howto/extend.md has no {one}"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name)
def test_notebooks_import_from_the_public_namespace_only(notebook: Path) -> None:
    assert not re.search(r"(?:from|import) dynid\.", "\n".join(cells(notebook)))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name)
def test_a_notebook_runs_from_top_to_bottom(notebook: Path, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(cells(notebook))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("page_of", sorted((ROOT / "docs/tutorials").glob("*.md")), ids=name)
def test_every_tutorial_has_a_picture_and_is_short(page_of: Path) -> None:
    text = page_of.read_text(encoding="utf-8")
    assert re.search(r"!\[[^\]]+\]\(\.\./images/", text)
    assert len(text.split()) < 1500
