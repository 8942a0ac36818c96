"""A result is as it was written, or what differs is named."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path

import pytest

from dynid.report.exports import without_exports
from dynid.report.seal import document_digest, verify
from tests.workspace import dynid


@pytest.fixture(scope="module")
def made(made: Path) -> Path:
    """With one more result."""
    with chdir(made):
        assert dynid("identify", "experiment.yaml", "--out", "o").exit_code == 0
    return made


def test_a_result_is_intact_where_it_was_moved_to(here: Path) -> None:
    found = verify("o")
    assert found.intact
    assert any("log.csv" in line for line in found.checked)
    assert dynid("verify", "o").exit_code == 0
    assert json.loads(dynid("verify", "o", "--json").output)["intact"] is True


def _edit(document: dict[str, object]) -> None:
    document["parameters"][0]["value"] *= 1.001  # type: ignore[index]


def test_certificates_of_exports_are_in_the_report_of_an_intact_result(here: Path) -> None:
    written = (here / "o" / "report.html").read_text(encoding="utf-8")
    for form in ("numpy", "yaml", "numpy"):
        assert dynid("export", "o", "--to", form, "--out", "exported").exit_code == 0
    report = (here / "o" / "report.html").read_text(encoding="utf-8")
    assert report.count("<b>exported/arm.py</b>: efforts differ from the estimate by ") == 1
    assert report.count("<b>exported/arm.yaml</b>: efforts differ") == 1
    assert verify("o").intact
    assert without_exports(report) == written
    (here / "o" / "report.html").write_text(report.replace("Usable", "Use"), encoding="utf-8")
    assert not verify("o").intact


@pytest.mark.parametrize("change", ["value", "digest", "csv", "log", "robot", "missing", "version"])
def test_55_an_edited_result_and_changed_inputs_are_named(here: Path, change: str) -> None:
    file = Path("o/result.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    said = "its digest differs"
    if change == "value":
        _edit(document)
    elif change == "digest":
        del document["digest"]
        said = "has no digest"
    elif change == "version":
        document["provenance"]["versions"]["numpy"] = "0.1"
        document["digest"] = document_digest(document)
        said = "version of numpy"
    elif change == "csv":
        Path("o/parameters.csv").write_text("name\n", encoding="utf-8")
        said = "parameters.csv was changed"
    elif change == "missing":
        Path("log.csv").unlink()
        said = "input 'log.csv' (identify) is not found"
    else:
        changed = Path("log.csv" if change == "log" else "arm.yaml")
        changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        said = f"input '{changed.name}'"
    file.write_text(json.dumps(document), encoding="utf-8")  # other spacing is no change
    found = dynid("verify", "o")
    assert found.exit_code == 2
    (difference,) = [line for line in found.output.splitlines() if line.startswith("differs")]
    assert said in difference


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    assert dynid("verify", str(tmp_path)).exit_code == 2
    (tmp_path / "result.json").write_text('{"schema": "dynid.result/99"}', encoding="utf-8")
    assert dynid("verify", str(tmp_path)).exit_code == 2
