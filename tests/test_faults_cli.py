"""Faults as a user meets them, through the command line: exit code, message, and what is left on the disk."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from dynid.common import limits
from tests.workspace import columns, dynid, write_columns


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def refused(folder: Path, *command: str) -> str:
    """Exit code 2, nothing written; returns the message."""
    before = _files(folder)
    found = dynid(*command)
    assert found.exit_code == 2, found.output
    assert _files(folder) == before
    return found.stderr


def warned(*command: str) -> list[str]:
    """A result is written, with exit code 3 if its verdict is bad; codes of its warnings."""
    found = dynid(*command, "--out", "o")
    document = json.loads(Path("o/result.json").read_text(encoding="utf-8"))
    assert found.exit_code == (3 if document["verdict"]["level"] == "bad" else 0), found.output
    return [one["code"] for one in document["warnings"]]


IDENTIFY = ("identify", "experiment.yaml")
PICKLE = b"\x80\x04cos\nsystem\n(S'touch owned'\ntR."


@pytest.mark.parametrize(
    "name", ["log.npz", "log.npy", "log.h5", "log.mat", "log.mcap", "log.bag", "log.db3"]
)
def test_15_to_18_22_23_a_pickle_is_never_loaded_whatever_its_name(here, name):
    (here / name).write_bytes(PICKLE)
    said = refused(here, "identify", "--robot", "arm.yaml", "--log", name)
    assert name in said


@pytest.mark.parametrize("name", ["log.pkl", "log.xlsx", "log"])
def test_15_formats_that_are_not_read_are_never_opened(here, name):
    (here / name).write_bytes(PICKLE)
    said = refused(here, "identify", "--robot", "arm.yaml", "--log", name)
    assert "no reader for" in said
    assert ".csv" in said


def test_a_result_given_for_a_log_is_called_one(here):
    assert "a result of dynid, not a folder of logs" in refused(
        here, "identify", "--robot", "arm.yaml", "--log", "result"
    )


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("compare", "result", "result/result.json", "--folds", "3"), "'folds' does not apply to finished"),
        (("compare", "result", "result/result.json", "--last", "0.2"), "'last' does not apply to finished"),
        (("compare", "result", "result/result.json", "--robot", "arm.yaml"), "--robot needs --log"),
        (("compare", "experiment.yaml", "--last", "0.2", "--folds", "3"), "'folds' does not apply to 'last'"),
        (("compare", "result", "experiment.yaml"), "is an experiment, other targets are results"),
        (("compare", "log.csv"), "is a log"),
        (("simulate", "arm.yaml", "--instants", "3"), "need --table"),
        (("excite", "arm.yaml", "--motions", "3"), "--motions does not apply to"),
        (("excite", "cable4", "--tie", "legs"), "--tie does not apply to"),
    ],
)
def test_options_that_would_be_ignored_are_refused(here, command, said):
    assert said in refused(here, *command)


def test_39_fewer_rows_than_base_parameters_are_refused(here):
    cells = {name: values[:80] for name, values in columns(here / "log.csv").items()}
    write_columns(here / "log.csv", cells)
    (here / "experiment.yaml").write_text(
        "robot: arm.yaml\nlogs: [log.csv]\nfilter: {cutoff: 20, decimate: 10}\nmask: {speed: 0, around: 0}\n"
    )
    said = refused(here, *IDENTIFY)
    assert "rows" in said
    assert "parameters" in said


def test_39_a_log_of_a_moment_gives_a_result_without_residual_tests(here):
    """All of it within one block: deviations between blocks do not exist."""
    cells = columns(here / "log.csv")
    cells["t"] = [repr(0.01 * float(x)) for x in cells["t"]]
    write_columns(here / "log.csv", cells)
    (here / "experiment.yaml").write_text(
        "robot: arm.yaml\nlogs: [log.csv]\nuncertainty: classical\nfilter: {cutoff: 2000, decimate: 1}\n"
        "mask: {speed: 0, around: 0}\n"
    )
    warned(*IDENTIFY)
    document = json.loads(Path("o/result.json").read_text(encoding="utf-8"))
    assert "the log is too short" in document["choices"]["not tested"]


@pytest.mark.parametrize("level", ["0", "1.5"])
def test_37_efforts_that_were_not_recorded_are_refused(here, level):
    cells = columns(here / "log.csv")
    cells |= {name: [level] * len(cells["t"]) for name in ("tau_1", "tau_2")}
    write_columns(here / "log.csv", cells)
    said = refused(here, *IDENTIFY)
    assert "are constant while the robot moves" in said
    assert "log.csv" in said


def test_37_one_constant_effort_is_reported(here):
    cells = columns(here / "log.csv")
    cells["tau_2"] = ["0"] * len(cells["t"])
    write_columns(here / "log.csv", cells)
    assert "constant-effort" in warned(*IDENTIFY)
    verdict = json.loads(Path("o/result.json").read_text(encoding="utf-8"))["verdict"]
    assert verdict["level"] == "bad"
    assert "tau_2" in verdict["reasons"][0]["text"]
    assert all(joint["level"] == "bad" for joint in verdict["joints"])
    assert dynid("check", "experiment.yaml").exit_code == 3
    (here / "experiment.yaml").write_text(
        (here / "experiment.yaml").read_text() + "efforts: [1]\n", encoding="utf-8"
    )
    assert "constant-effort" not in warned(*IDENTIFY)


def test_37_a_constant_effort_of_a_joint_at_rest_is_no_fault(here):
    """A brake holds it: there is nothing to measure."""
    cells = columns(here / "log.csv")
    cells |= {"q_2": ["0.3"] * len(cells["t"]), "tau_2": ["0"] * len(cells["t"])}
    cells.pop("dq_2", None)
    write_columns(here / "log.csv", cells)
    dynid(*IDENTIFY, "--out", "o")
    warnings = json.loads(Path("o/result.json").read_text(encoding="utf-8"))["warnings"]
    assert [one["severity"] for one in warnings if one["code"] == "constant-effort"] == ["note"]


def _turned(cells: dict[str, list[str]], name: str) -> list[str]:
    return [repr(-float(x)) for x in cells[name]]


@pytest.mark.parametrize("fault", ["one sign", "swapped", "swapped, one sign", "all signs"])
def test_33_signs_and_order_of_efforts_are_refused_with_the_likely_fix(here, fault):
    cells = columns(here / "log.csv")
    one, two = cells["tau_1"], cells["tau_2"]
    if fault == "one sign":
        cells["tau_2"] = _turned(cells, "tau_2")
        fix = "columns: {tau_2: {name: tau_2, scale: -1}}"
    elif fault == "swapped":
        cells |= {"tau_1": two, "tau_2": one}
        fix = "columns: {tau_1: {name: tau_2}, tau_2: {name: tau_1}}"
    elif fault == "swapped, one sign":
        cells |= {"tau_1": two, "tau_2": one}
        cells["tau_1"] = _turned(cells, "tau_1")
        fix = "columns: {tau_1: {name: tau_2}, tau_2: {name: tau_1, scale: -1}}"
    else:
        cells |= {name: _turned(cells, name) for name in ("tau_1", "tau_2")}
        fix = "scale -1"
    write_columns(here / "log.csv", cells)
    said = refused(here, *IDENTIFY)
    assert fix in said
    if fault != "all signs":
        # The fix that is proposed is one.
        text = (here / "experiment.yaml").read_text(encoding="utf-8")
        (here / "experiment.yaml").write_text(text + fix + "\n", encoding="utf-8")
        assert "not-physical" not in warned(*IDENTIFY)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ("identify", "experiment.yaml", "--model", "internal"),
            "locked cables, but 'arm' has no cable",
        ),
        (("identify", "--robot", "arm.yaml", "--log", "nowhere"), "no such file"),
        (("predict", "result", "log.csv", "--body", "fore"), "gives joints, not the pose of 'fore'"),
        (("predict", "result", "log.csv", "--out", "result/result.json"), "overwritten"),
        (("predict", "result", "log.csv", "--out", "log.csv"), "overwritten"),
        (("predict", "result", "log.csv", "--out", "o.parquet"), "written as .csv, not '.parquet'"),
        (
            ("simulate", "arm.yaml", "--motion", "log.csv", "--out", "log.csv"),
            "would overwrite one of its inputs",
        ),
        (("simulate", "arm.yaml", "--truth", "truth.yaml", "--rate", "1e12"), "lower the rate"),
        (("simulate", "arm.yaml", "--out", "nowhere/log.csv"), "its folder does not exist"),
        (("simulate", "cable4", "--engine", "mujoco"), "--engine does not apply to"),
        (("excite", "arm.yaml", "--criterion", "logdet", "--sigma", "M_fore"), "needs the criterion"),
        (("simulate", "arm.yaml", "--rate", "\u0661\u0660\u0660"), "is not a number"),
        (("simulate", "arm.yaml", "--seed", "\uff11"), "is not a whole number"),
        (("info", "large.yaml"), "run `dynid --no-limits ...`"),
        (("info", "arm.yaml", "--drive", ""), "contains no name"),
        (("info", "arm.yaml", "--bodies", ","), "contains no name"),
    ],
)
def test_nonsense_on_the_command_line_is_refused(here, command, said, monkeypatch):
    if "large.yaml" in command:
        monkeypatch.setattr(limits, "exceeded", lambda size, limit: True)
        shutil.copy("arm.yaml", "large.yaml")
    assert said in refused(here, *command)


def test_an_estimator_of_the_command_line_has_its_own_options(here):
    text = (here / "experiment.yaml").read_text(encoding="utf-8")
    (here / "experiment.yaml").write_text(text + "estimator: {name: wls, weights: joint}\n", encoding="utf-8")
    warned(*IDENTIFY, "--estimator", "ols")
    assert json.loads(Path("o/result.json").read_text())["estimator"] == "ols"


def test_51_no_memory_is_told_without_a_traceback(here, monkeypatch):
    def greedy(*_, **__):
        raise MemoryError("29 TiB")

    monkeypatch.setattr("dynid.pipeline.run_experiment", greedy)
    assert "not enough memory: 29 TiB" in refused(here, *IDENTIFY)


_SHORT = ("--starts", "1", "--hops", "0", "--period", "2", "--rate", "50", "--jobs", "1")
WRITERS = {
    "identify": IDENTIFY,
    "compare": ("compare", "result", "result/result.json"),
    "excite": ("excite", "arm.yaml", *_SHORT),
    "rehearse": ("rehearse", "experiment.yaml", "--runs", "2", "--config", "simulation.yaml", "--truth"),
}


def _writer(name: str, *more: str) -> tuple[str, ...]:
    return (*WRITERS[name], *(("truth.yaml",) if name == "rehearse" else ()), *more)


@pytest.mark.parametrize("name", WRITERS)
def test_50_54_folders_are_checked_before_the_work(here, name):
    (here / "mine").mkdir()
    (here / "mine" / "thesis.tex").write_text("do not touch")
    assert "thesis.tex" in refused(here, *_writer(name, "--out", "mine"))
    (here / ".busy.lock").write_text(f"{os.getppid()} {os.uname().nodename}\n")
    assert "is writing here" in refused(here, *_writer(name, "--out", "busy"))


@pytest.mark.parametrize("name", WRITERS)
def test_50_read_only_and_full_disks_are_refused_before_the_work(here, name, monkeypatch):
    # Root may write anywhere, so the answer of the file system is made up.
    monkeypatch.setattr("dynid.report.output.os.access", lambda _, mode, **__: not mode & os.W_OK)
    assert "no permission to write" in refused(here, *_writer(name, "--out", "o"))
    monkeypatch.undo()
    monkeypatch.chdir(here)
    usage = shutil.disk_usage(here)._replace(free=1000)
    monkeypatch.setattr("dynid.report.output.shutil.disk_usage", lambda _: usage)
    assert "are free on the disk" in refused(here, *_writer(name, "--out", "o"))


def test_refused_input_leaves_no_empty_folders(here):
    refused(here, "excite", "arm.yaml", "--criterion", "wishful")
    refused(here, "compare", "result", "nowhere")
    refused(here, "rehearse", "experiment.yaml", "--truth", "nowhere")


def test_paths_with_blanks_and_umlauts_from_another_folder(here, tmp_path, monkeypatch):
    odd = tmp_path / "Prüfstand 1"
    shutil.copytree(here, odd)
    away = tmp_path / "away"
    away.mkdir()
    monkeypatch.chdir(away)
    found = dynid("identify", str(odd / "experiment.yaml"), "--out", "Ergebnis ä")
    assert found.exit_code == 0, found.output
    for command in (
        ("validate", "Ergebnis ä", str(odd / "other.parquet")),
        ("predict", "Ergebnis ä", str(odd / "log.csv"), "--out", "Momente ö.csv"),
        ("info", str(odd / "arm.yaml")),
    ):
        found = dynid(*command)
        assert found.exit_code == 0, found.output
    assert sorted(one.name for one in away.iterdir()) == ["Ergebnis ä", "Momente ö.csv"]


def test_sections_that_contradict_each_other_are_refused_with_their_file(here):
    text = (here / "experiment.yaml").read_text(encoding="utf-8")
    (here / "experiment.yaml").write_text(text + "refine: true\nkeep: ['M*']\n", encoding="utf-8")
    assert "error: experiment.yaml, line 5, keep: refine cannot be combined" in refused(here, *IDENTIFY)


def test_lengths_of_some_cables_alone_are_refused_with_the_log(here):
    (here / "free.csv").write_text("t,x,y,z,qw,qx,qy,qz,l0_1\n0,1,0,0,1,0,0,0,1\n" * 2, encoding="utf-8")
    said = refused(here, "identify", "--robot", "cable4", "--log", "free.csv")
    assert "free.csv" in said


def test_48_a_log_of_the_fit_proves_nothing(here):
    text = (here / "experiment.yaml").read_text(encoding="utf-8")
    (here / "experiment.yaml").write_text(text + "validate: [log.csv]\n", encoding="utf-8")
    assert "validation-not-independent" in warned(*IDENTIFY)
    found = dynid("validate", "o", "log.csv")
    assert found.exit_code == 0
    document = json.loads(Path("o/validation.json").read_text(encoding="utf-8"))
    assert [one["independent"] for one in document["validation"]] == [False]


def test_55_a_robot_file_that_changed_since_is_refused(here):
    file = here / "arm.yaml"
    text = json.loads((here / "result/result.json").read_text(encoding="utf-8"))
    text["provenance"]["options"]["robot"] = str(file)
    (here / "result/result.json").write_text(json.dumps(text), encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8").replace("d2: 0.5", "d2: 0.6"), encoding="utf-8")
    for command in (("validate", "result", "log.csv"), ("predict", "result", "log.csv")):
        assert "has changed since the result was made" in refused(here, *command)


def test_the_robot_of_a_result_that_was_moved_can_be_given(here):
    """The name alone looks like a wrong argument: which file is gone, and the option that replaces it."""
    (here / "arm.yaml").rename(here / "moved.yaml")
    for command in (("validate", "result", "log.csv"), ("predict", "result", "log.csv")):
        said = refused(here, *command)
        assert "the robot file of this result, 'arm.yaml', is not at its recorded place" in said
        assert "--robot FILE" in said
        assert dynid(*command, "--robot", "moved.yaml").exit_code == 0


def test_results_name_no_home_and_move_with_their_inputs(here, tmp_path, monkeypatch):
    assert dynid("identify", "experiment.yaml", "--out", "deep/o").exit_code == 0
    document = json.loads(Path("deep/o/result.json").read_text(encoding="utf-8"))
    assert str(tmp_path) not in json.dumps(document)
    assert str(tmp_path) not in Path("deep/o/report.html").read_text(encoding="utf-8")
    assert [one["file"] for one in document["provenance"]["inputs"]] == ["../../arm.yaml", "../../log.csv"]
    assert document["provenance"]["options"]["robot"] == "../../arm.yaml"
    assert {"inputs", "versions", "platform", "blas", "options", "seed"} <= set(document["provenance"])
    assert all(library.split()[1:] for library in document["provenance"]["blas"])  # a version at least
    moved = tmp_path / "elsewhere"
    shutil.move(here, moved)
    monkeypatch.chdir(tmp_path)
    for command in (
        ("validate", "elsewhere/deep/o", "elsewhere/log.csv"),
        ("predict", "elsewhere/deep/o", "elsewhere/log.csv"),
    ):
        found = dynid(*command)
        assert found.exit_code == 0, found.output


def test_57_58_hostile_names_stay_text(here):
    hostile = "<script>alert(1)</script>"
    for name in ("arm.yaml", "experiment.yaml"):
        text = (here / name).read_text(encoding="utf-8")
        text = text.replace("name: joint_1", f"name: '{hostile}'").replace('"joint_*"', '"*"')
        text = text.replace("joint_1: {q:", f"'{hostile}': {{q:")
        (here / name).write_text(text, encoding="utf-8")
    warned(*IDENTIFY)
    page = Path("o/report.html").read_text(encoding="utf-8")
    assert hostile not in page
    assert "&lt;script&gt;alert(1)" in page or "\\u003cscript" in page


def test_67_names_do_not_steer_the_terminal(here):
    """Escape sequences, line ends and marks of writing direction are shown, not obeyed."""
    for name in ("arm.yaml", "experiment.yaml"):
        text = (here / name).read_text(encoding="utf-8")
        text = text.replace("name: joint_1", 'name: "\\e]0;pwned\\a\u202e"').replace('"joint_*"', '"*"')
        text = text.replace("joint_1: {q:", '"\\e]0;pwned\\a\u202e": {q:').replace(
            "child: upper", 'child: "a\\rb"'
        )
        text = text.replace("parent: upper", 'parent: "a\\rb"').replace("upper:", '"a\\rb":')
        text = text.replace("[[upper, fore]]", '[["a\\rb", fore]]')
        (here / name).write_text(text, encoding="utf-8")
    for command in (
        ("info", "arm.yaml"),
        (*IDENTIFY, "--out", "o"),
        ("info", "arm.yaml", "--tie", "\x1b[2J"),
    ):
        found = dynid(*command)
        assert "\\x1b" in found.output
        assert not set("\x1b\r\u202e\x07") & set(found.output)
    rows = list(csv.reader(io.StringIO(Path("o/parameters.csv").read_bytes().decode(), newline="")))
    assert {len(row) for row in rows} == {11}
    assert any("a\rb" in row[0] for row in rows)


def test_60_no_command_opens_a_connection(here, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a connection was opened")

    for name in ("connect", "connect_ex", "bind"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    warned(*IDENTIFY)
    assert dynid("info", "arm.yaml").exit_code == 0
    assert dynid("predict", "o", "log.csv", "--out", "o.csv").exit_code == 0
    page = Path("o/report.html").read_text(encoding="utf-8")
    assert 'src="http' not in page
    assert "@import" not in page


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "identify arm.yaml",
            "this is a robot file, not an experiment file\n  remedy: dynid identify --robot",
        ),
        (
            "identify log.csv",
            "this is a log, not an experiment file\n  remedy: dynid identify --robot ROBOT --log",
        ),
        ("identify arm.urdf", "this is a robot, not an experiment file"),
        ("identify arm.yaml log.csv", "a robot and its logs: --robot arm.yaml --log log.csv"),
        ("identify --robot arm.yaml log.csv", "a robot and its logs: --robot arm.yaml --log log.csv"),
        ("identify --robot arm.yaml experiment.yaml", "do not combine an experiment file"),
        ("campaign experiment.yaml", "not a campaign file\n  remedy: dynid identify experiment.yaml"),
        ("campaign arm.yaml", "this is a robot file, not a campaign file"),
        ("info experiment.yaml", "this is an experiment file, not a robot file"),
        ("rehearse arm.yaml", "an experiment file has lines as `robot: arm.yaml` and `logs: [run1.csv]`"),
        ("rehearse arm.urdf", "an experiment file has lines as `robot: arm.urdf` and `logs: [LOG]`"),
        ("rehearse fleet.yaml", "not an experiment file\n  remedy: dynid campaign fleet.yaml"),
        ("simulate ur5 --config arm.yaml", "this is a robot file, not a simulation file"),
        ("campaign noise.yaml", "not a campaign file\n  remedy: dynid simulate ROBOT --config noise.yaml"),
    ],
)
def test_a_file_in_the_place_of_another_is_named_with_its_own_use(here, command, said):
    """By its schema, its own keys or its ending: an unknown key would say nothing to its writer."""
    (here / "fleet.yaml").write_text("runs: [{robot: arm.yaml, logs: log.csv}]", encoding="utf-8")
    (here / "noise.yaml").write_text("schema: dynid.simulation/1\nrate: 100", encoding="utf-8")
    assert said in refused(here, *command.split())
