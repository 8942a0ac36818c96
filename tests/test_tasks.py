"""Motion, comparison and export in an experiment file: written by the same commands, and read strictly."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dynid.common.errors import InputError
from dynid.experiment.experiment import Experiment, experiment_from, read_experiment
from dynid.experiment.file import is_experiment, load_experiment, write_experiment
from dynid.experiment.tasks import CompareSettings, ExciteSettings, ExportSettings, FreeSetSettings
from tests.workspace import EXPERIMENT, dynid, make_workspace


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return make_workspace(folder)


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    shutil.copytree(made, work)
    monkeypatch.chdir(work)
    return work


def contents(folder: Path) -> dict[str, bytes]:
    """Name -> content of every file below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def write(text: str, name: str = "run.yaml") -> None:
    Path(name).write_text(text, encoding="utf-8")


def test_an_identification_is_followed_by_comparison_and_export(folder: Path) -> None:
    write(EXPERIMENT + "auto: off\ncompare: [result]\nexport: yaml\n")
    done = dynid("identify", "run.yaml")
    assert done.exit_code == 0, done.output
    assert "results/run-export/arm.yaml" in done.output
    compared, exported = (contents(folder / "results" / name) for name in ("run_compare", "run-export"))
    assert b'"label": "run"' in compared["comparison.json"]  # its own result first
    assert {"arm.yaml", "export.json", "export.html"} <= set(exported)
    # The same parts alone, of the result that is there.
    for command in ("compare", "export"):
        again = dynid(command, "run.yaml", "--out", f"again-{command}")
        assert again.exit_code == 0, again.output
    assert contents(folder / "again-compare") == compared
    assert contents(folder / "again-export") == exported


def test_options_override_the_file(folder: Path) -> None:
    shutil.copytree("result", "second")
    write("compare: [result, second]\nexport: {result: result, to: [yaml], not_physical: refuse}\n")
    assert dynid("export", "run.yaml", "--to", "numpy", "--not-physical", "mark").exit_code == 0
    assert (folder / "result-export" / "arm.py").is_file()
    assert not (folder / "result-export" / "arm.yaml").exists()
    done = dynid("compare", "run.yaml", "--log", "other.parquet", "--out", "here")
    assert done.exit_code == 0, done.output
    assert "other.parquet" in (folder / "here" / "comparison.json").read_text(encoding="utf-8")


def test_fits_are_varied_as_the_file_says(folder: Path) -> None:
    write(EXPERIMENT + "auto: off\ncompare: {estimators: [ols, wls], last: 0.25}\n")
    assert dynid("compare", "run.yaml", "--out", "of-file").exit_code == 0
    asked = ("--estimators", "ols,wls", "--last", "0.25")
    (folder / "experiment.yaml").write_text(EXPERIMENT + "auto: off\nname: run\n", encoding="utf-8")
    assert dynid("compare", "experiment.yaml", *asked, "--out", "of-options").exit_code == 0
    assert contents(folder / "of-file") == contents(folder / "of-options")


def test_a_motion_is_that_of_the_command(folder: Path) -> None:
    write("robot: arm.yaml\nexcite: {period: 4, starts: 1, hops: 0, floor: -3, home: [0, pi/8]}\n")
    done = dynid("excite", "run.yaml")
    assert done.exit_code == 0, done.output
    options = ("--period", "4", "--starts", "1", "--hops", "0", "--floor", "-3")
    assert dynid("excite", "arm.yaml", *options, "--home", "0,0.39269908169872414").exit_code == 0
    of_file, of_options = (folder / f"results/{name}_excitation" for name in ("run", "arm"))
    assert contents(of_file) == contents(of_options)
    assert dynid("excite", "run.yaml", "--for-controller", "csv", "--out", "other").exit_code == 0
    assert contents(folder / "other").keys() - contents(of_file).keys() == {"controller.csv"}


@pytest.mark.parametrize(
    ("text", "said", "place"),
    [
        ("robot: r\nlogs: [a]\nexport: {too: [urdf]}", "did you mean 'to'", "line 3, export.too"),
        ("robot: r\nlogs: [a]\nexport: []", "no format", "line 3, export"),
        ("robot: r\nlogs: [a]\nexport: {result: b}", "'to' is missing", "line 3"),
        ("robot: r\nlogs: [a]\nexport: {result: b, to: c}", "its own result", "line 3, export.result"),
        ("robot: r\nlogs: [a]\nexport: {to: c, payload: both}", "not known", "line 3"),
        ("robot: r\nlogs: [a]\ncompare: {result: [b]}", "did you mean 'results'", "line 3, compare.result"),
        ("robot: r\nlogs: [a]\ncompare: {results: [b], folds: 3}", "finished results", "line 3"),
        ("robot: r\nlogs: [a]\ncompare: {logs: [b]}", "finished results", "line 3"),
        ("robot: r\nlogs: [a]\ncompare: {folds: 3, last: 0.2}", "single split", "line 3"),
        ("robot: r\nlogs: [a]\nexcite: {periods: 3}", "did you mean 'period'", "line 3, excite.periods"),
        ("robot: r\nlogs: [a]\nexcite: {margin: 0.7}", "not valid", "line 3, excite.margin"),
        ("robot: r\nlogs: [a]\nexcite:", "has no value", "line 3"),
        ("robot: r\nexcite: {period: 3}", "'logs' is missing", "line 1"),
    ],
)
def test_refusals_name_the_line(tmp_path: Path, text: str, said: str, place: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said) as caught:
        read_experiment(file)
    assert place in (caught.value.place or "")


def test_what_is_asked_for_later_is_refused_before_the_identification(folder: Path) -> None:
    for more, said in (("export: urdff", "did you mean 'urdf'"), ("compare: [gone]", "gone")):
        write(EXPERIMENT + more + "\n")
        refused = dynid("identify", "run.yaml")
        assert refused.exit_code == 2
        assert said in refused.output
    assert not (folder / "results").exists()


def test_commands_say_what_a_file_lacks(folder: Path) -> None:
    write("robot: arm.yaml\nexcite: {period: 4}\n")
    assert "name the formats" in dynid("export", "run.yaml").output
    assert "nothing to compare" in dynid("compare", "run.yaml").output
    write("export: yaml\n")
    lost = dynid("export", "run.yaml")  # it has no result of its own
    assert lost.exit_code == 2
    assert "results/run" in lost.output
    write("period: 4\n", "wrong.yaml")
    assert not is_experiment("wrong.yaml")
    assert not is_experiment("arm.yaml")
    assert is_experiment("run.yaml")


def test_who_only_identifies_refuses_the_rest() -> None:
    for key, value in (("export", ["urdf"]), ("compare", ["a"]), ("excite", {})):
        with pytest.raises(InputError, match=f"'{key}' belongs to an experiment file"):
            experiment_from({"robot": "ur5", key: value})


def test_a_file_is_written_as_it_is_read(tmp_path: Path) -> None:
    """From another folder: paths go with the file, built-in robots stay names."""
    excite = ExciteSettings(
        period=4.0, after=("b/log.csv", "c"), prior="p.yaml", search=FreeSetSettings(count=7), out="d"
    )
    compare = CompareSettings(results=("b", "c"), logs=("b/x.csv",), speeds=(0.1,), out="e")
    export = ExportSettings(to=("urdf", "mjcf"), result="b/result.json", replay=("b/x.csv",), out="f")
    whole = Experiment(robot="ur5", excite=excite, compare=compare, export=export, name="here", out="g")
    home = tmp_path / "a"
    home.mkdir()
    write_experiment(whole.moved(lambda path: str(home / path)), [], home / "here.yaml")
    text = (home / "here.yaml").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    home.rename(tmp_path / "moved")
    read = load_experiment(tmp_path / "moved" / "here.yaml", need_logs=False)
    expected = whole.moved(lambda path: str(tmp_path / "moved" / path))
    assert read.tree() == expected.tree()
    assert read.robot == "ur5"
