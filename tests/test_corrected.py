"""The experiment file with the change that the first reason of a result proposes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from dynid.commands.shared import column_of
from dynid.common.change import in_file, in_options, in_python, joined
from dynid.common.notices import Notice, gathered, notice
from dynid.experiment.experiment import experiment_from
from dynid.experiment.file import load_experiment
from dynid.mechanism.load import load_robot
from dynid.report.corrected import (
    _joined_columns,
    change_words,
    corrected_experiment,
    whole_change,
    with_whole_entries,
)
from dynid.report.html import report_html
from dynid.report.json_file import json_text, read_result, result_document
from dynid.report.output import result_files
from dynid.statistics.estimate import Estimate
from dynid.validation.causes import _doubtful
from dynid.validation.hypotheses import drive_terms
from tests.fabricated import estimate

_LATE = notice(
    "delay",
    who="the effort of 'elbow' is",
    size=8.0,
    half=1.0,
    samples=8.0,
    late="later",
    reference="the positions",
    change={"columns": {"tau_2": {"delay": 0.008}}},
)


def _with(*reasons: Notice, **asked: object) -> Estimate:
    """A result with these reasons, from two logs in files."""
    whole = estimate()
    logs = [
        {"file": f"../logs/run{i}.csv", "sha256": "0" * 64, "use": "identify", "payloads": [], "date": "2026"}
        for i in (1, 2)
    ]
    unseen = {**logs[0], "file": "../logs/other.csv", "use": "validate", "payloads": ["tool"]}
    recorded = {**whole.provenance, "inputs": [*logs, unseen], "asked": asked, "options": {"robot": "ur5"}}
    return replace(whole, provenance=recorded, verdict=replace(whole.verdict, reasons=reasons))


def test_a_change_is_shown_as_files_have_it():
    assert in_file({"columns": {"tau_{i}": {"delay": 0.008}}}) == '`columns: {"tau_{i}": {delay: 0.008}}`'
    assert in_file({"drive": ["Ia", "Fv"]}) == "`drive: [Ia, Fv]`"
    logs = {f"run{i}": {"exclude": [[1.0, 1.5]]} for i in range(6)}
    assert in_file({"logs": {"run1": logs["run1"]}}) == "log 'run1' `exclude: [[1, 1.5]]`"
    assert in_file({"logs": logs}).endswith(" and 2 more logs")
    many = [[float(t), t + 0.5] for t in range(6)]
    assert in_file({"exclude": many}) == "`exclude: [[0, 0.5], [1, 1.5], [2, 2.5], [3, 3.5], ...]`"
    assert in_file({}) == ""


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"tau_{i}": {"delay": 0.00498}}, "--column 'tau_{i}=tau_{i} delay 0.00498'"),
        ({"q_1": {"name": "axis", "unit": "deg", "offset": -0.5}}, "--column 'q_1=axis[deg] - 0.5'"),
        ({"tau_1": "b", "tau_2": {"scale": -1}}, "--column 'tau_1=b' --column 'tau_2=tau_2*-1'"),
        ({"tau_1": {"name": "i [mA]", "scale": 2.0}}, ""),  # as an option its unit would count too
        ({f"q_{i}": {"scale": -1} for i in range(6)}, ""),  # too long to paste
    ],
)
def test_a_change_of_columns_is_shown_as_options_that_say_the_same(columns, options):
    change = {"columns": columns}
    assert in_options(change) == options
    given = dict(column_of(text) for text in re.findall(r"--column '([^']*)'", options))
    if options:
        assert given == experiment_from({"robot": "a", "logs": ["a.csv"], **change}).columns
    assert in_options({**change, "drive": ["Fv"]}) == ""


def test_a_remedy_shows_the_whole_entry_where_the_column_has_one_already():
    """12 ms are corrected already and 8 ms are left: the entry to write has 20 ms."""
    given = {"tau_2": {"delay": 0.012}, "q_1": {"name": "q_1", "offset": 0.1}}
    (told,) = with_whole_entries([_LATE], given)
    assert "`columns: {tau_2: {delay: 0.02}}`" in told.remedy
    assert told.change == _LATE.change
    assert with_whole_entries([_LATE], {}) == (_LATE,)
    off = notice("zero-offset", joint="a", shown="x", change={"columns": {"q_1": {"offset": 0.02}}})
    assert "{q_1: {offset: 0.12}}" in with_whole_entries([off], given)[0].remedy
    every = {"columns": {"tau_{i}": {"delay": 0.00836}}}
    assert whole_change(every, {"tau_{i}": {"delay": 0.012}}) == {"columns": {"tau_{i}": {"delay": 0.02036}}}
    turned = {
        "columns": {"q_4": {"scale": -1.0}}
    }  # of a column that was turned by mistake: a plain name is left
    assert whole_change(turned, {"q_4": {"name": "q_4", "scale": -1.0}}) == {"columns": {"q_4": "q_4"}}


def test_a_remedy_that_only_looks_like_a_change_changes_nothing():
    odd = Notice("gain", "text", "correct it: `columns: {tau_1: {scale: 0.5}}`")
    assert corrected_experiment(_with(odd)) == ""


def test_a_change_is_kept_in_the_file_of_a_result(tmp_path: Path):
    whole = _with(_LATE)
    whole = replace(whole, warnings=(_LATE, Notice("gap", "a gap")))
    document = result_document(whole)
    assert ["change" in item for item in document["warnings"]] == [True, False]
    (tmp_path / "result.json").write_text(json_text(document))
    back = read_result(tmp_path / "result.json")
    assert back.warnings == whole.warnings
    assert back.verdict.reasons[0].change == _LATE.change


def test_the_corrected_experiment_can_be_run(tmp_path: Path):
    text = corrected_experiment(
        _with(_LATE, model="inverse", columns={"tau_2": {"name": "m2", "delay": 0.001}})
    )
    (tmp_path / "experiment.corrected.yaml").write_text(text)
    read = load_experiment(tmp_path / "experiment.corrected.yaml")
    assert [Path(log.file).name for log in read.logs] == ["run1.csv", "run2.csv"]
    assert read.validate[0].payloads == ("tool",)
    assert (read.robot, read.model, read.auto) == ("ur5", "inverse", "on")  # settings are chosen again
    assert (read.columns["tau_2"].name, read.columns["tau_2"].delay) == ("m2", pytest.approx(0.009))


def test_a_correction_of_values_comes_after_that_of_the_file(tmp_path: Path):
    gain = Notice("gain", "40 % too large", change={"columns": {"tau_1": {"scale": 0.5, "offset": 1}}})
    given = {"tau_1": {"scale": 4.0, "offset": 10.0}}
    (tmp_path / "a.yaml").write_text(corrected_experiment(_with(gain, columns=given)))
    column = load_experiment(tmp_path / "a.yaml").columns["tau_1"]
    assert (column.scale, column.offset) == (2.0, 6.0)  # 0.5 (4 x + 10) + 1


@pytest.mark.parametrize(
    ("given", "change", "joined"),
    [
        (
            {"tau_{i}": "effort_{name}"},  # the key changes the column of the pattern
            {"tau_1": {"scale": -1}},
            {"tau_{i}": "effort_{name}", "tau_1": {"scale": -1}},
        ),
        (
            {"q_{name}": {"name": "q_{name}", "unit": "deg"}},  # as recorded
            {"q_2": {"offset": 0.1}},
            {"q_{name}": {"unit": "deg"}, "q_2": {"unit": "deg", "offset": 0.1}},
        ),
        (
            {"tau_2": {"name": "m2", "delay": 0.001}},
            {"tau_{i}": {"delay": 0.004}},
            {"tau_2": {"name": "m2", "delay": 0.005}, "tau_{i}": {"delay": 0.004}},
        ),
        (
            {"tau_{i}": "m_{i}"},
            {"tau_{i}": {"delay": 0.004}, "tau_2": {"delay": 0.009}},
            {"tau_{i}": "m_{i}", "tau_{name}": {"delay": 0.004}, "tau_2": {"delay": 0.009}},
        ),
        ({"tau_elbow": "m2"}, {"tau_2": {"scale": -1}}, {"tau_elbow": "m2", "tau_2": {"scale": -1}}),
        ({"tau_elbow": "m2"}, {"tau_{i}": {"delay": 0.004}}, None),  # which of them is it?
    ],
)
def test_patterns_and_single_columns_are_joined(given, change, joined):
    assert _joined_columns(given, change) == joined


_GAIN = Notice("gain", "text", "scale it", change={"columns": {"tau_1": {"scale": 0.5}}})


def test_the_changes_of_all_reasons_that_are_shown_first_are_in_the_file(tmp_path: Path):
    whole = _with(_LATE, _GAIN)
    (tmp_path / "a.yaml").write_text(corrected_experiment(whole))
    columns = load_experiment(tmp_path / "a.yaml").columns
    assert (columns["tau_2"].delay, columns["tau_1"].scale) == (0.008, 0.5)
    page = report_html(whole)
    assert "check on the robot that reasons 1 and 2 are right; then identify" in page
    assert "these corrections in all logs (column tau_2, 8 ms late): <code>dynid identify experiment" in page
    unclear = Notice("model-misfit", "text", "look for missing effects")
    assert corrected_experiment(_with(unclear, _GAIN)) == ""  # the first reason comes first


def test_a_changed_column_is_named_with_its_joint():
    """A reader did not know which joint `tau_2` is, and that the file already has the change."""
    whole = _with(_LATE)
    name = whole.verdict.joints[1].name
    late = replace(_LATE, text=f"the effort of '{name}' is late")
    assert change_words(_with(late)) == f" (column tau_2 = {name}, 8 ms late)"
    assert change_words(_with(_GAIN)) == ""
    page = report_html(_with(late))
    steps = page.partition('<ol class="steps">')[2].partition("</ol>")[0]
    assert "<li>check on the robot that this reason is right; then identify" in steps  # the first step
    assert "remove the delay" not in steps
    assert "remove the delay" in page.partition("What <code>experiment.corrected.yaml</code> changes")[2]


def test_what_a_correction_may_settle_comes_after_it():
    """A reader asked whether to record a new motion before or after the delay is removed."""
    page = report_html(_with(_LATE, Notice("weak-parameters", "text", "record more")))
    again, more = page.index("../corrected</code>"), page.index("if reason 2 remains: record more")
    assert again < more


def test_of_two_changes_of_one_column_only_the_first_is_in_the_file():
    other = Notice("effort-sign", "text", change={"columns": {"tau_2": {"scale": -1}}})
    text = corrected_experiment(_with(_LATE, other, _GAIN))
    assert "-1" not in text
    assert "reason 2" not in text
    assert YAML(typ="safe").load(text)["columns"] == {"tau_2": {"delay": 0.008}, "tau_1": {"scale": 0.5}}


def test_findings_of_one_kind_keep_all_their_changes():
    many = [
        notice("zero-offset", joint=f"j{i}", shown="off", change={"columns": {f"q_{i}": {"offset": 0.1 * i}}})
        for i in (1, 2)
    ]
    (one,) = gathered(many)
    assert one.change == {"columns": {"q_1": {"offset": 0.1}, "q_2": {"offset": 0.2}}}
    assert in_file(one.change) in one.remedy


def test_changes_are_joined_unless_they_contradict_each_other():
    a = {"unknown": {"symbols": ["d1"]}, "logs": {"run1": {"exclude": [[0.0, 1.0]]}}}
    b = {"unknown": {"symbols": ["d2"]}, "logs": {"run1": {"exclude": [[2.0, 3.0]]}}}
    both = {"unknown": {"symbols": ["d1", "d2"]}, "logs": {"run1": {"exclude": [[0.0, 1.0], [2.0, 3.0]]}}}
    assert joined(a, b) == both
    assert joined({"estimator": "robust"}, {"estimator": "consistent"}) is None
    assert joined({"columns": {"q_1": {"scale": -1}}}, {"columns": {"q_1": {"offset": 0.1}}}) is None


def test_settings_that_were_given_are_not_replaced():
    rubs = Notice("friction-missing", "passive joints rub", change={"drive": {"passive1": ["Fv", "Fs"]}})
    assert "passive1" in corrected_experiment(_with(rubs))
    assert corrected_experiment(_with(rubs, drive=["Ia", "Fv"])) == ""
    other = Notice("not-physical", "text", change={"estimator": "consistent"})
    given = {"estimator": "robust", "estimator_options": {"loss": "huber"}}
    text = corrected_experiment(_with(other, **given))
    assert "estimator: consistent" in text
    assert "huber" not in text


def test_a_stretch_is_excluded_in_its_log(tmp_path: Path):
    burst = notice("burst", times=5, shown="run2", change={"logs": {"run2": {"exclude": [[1.0, 1.5]]}}})
    (tmp_path / "a.yaml").write_text(corrected_experiment(_with(burst)))
    first, second = load_experiment(tmp_path / "a.yaml").logs
    assert not first.exclude
    assert [list(stretch) for stretch in second.exclude] == [[1.0, 1.5]]


def test_report_and_folder_have_the_file_and_the_command():
    files = result_files(_with(_LATE))
    assert "dynid identify experiment.corrected.yaml" in files["report.html"]
    assert "delay: 0.008" in files["experiment.corrected.yaml"]
    assert "experiment.corrected.yaml" not in result_files(estimate())


def test_logs_from_python_get_an_argument_instead_of_a_file():
    made = _with(_LATE)
    logs = [{**source, "sha256": None} for source in made.provenance["inputs"]]
    made = replace(made, provenance={**made.provenance, "inputs": logs})
    assert corrected_experiment(made) == ""
    change = in_python(_LATE.change)
    assert change == "columns={'tau_2': {'delay': 0.008}}"
    assert "identify(..., columns=" in report_html(made)


def test_a_delay_beside_a_model_that_misses_something_is_not_offered_as_a_fix():
    assert _LATE.change
    assert _doubtful(_LATE).change == {}
    assert "do not correct this yet" in _doubtful(_LATE).remedy
    other = Notice("joint-error", "text", "check")
    assert _doubtful(other) is other


def test_missing_friction_is_added_to_every_drive():
    robot = load_robot("ur5")
    bare = replace(robot, drive=dict.fromkeys(robot.drive, ("Ia",)))
    (found,) = drive_terms(bare, ())
    assert found.notice.change == {"drive": ["Ia", "Fv", "Fs"]}
    first, *_ = robot.drive
    (found,) = drive_terms(replace(bare, drive={**bare.drive, first: ()}), ())
    assert found.notice.change["drive"][first] == ["Fv", "Fs"]
    assert len(found.notice.change["drive"]) == len(robot.drive)
    assert "drive:" in corrected_experiment(_with(found.notice))


def test_missing_rotor_inertia_is_tried_apart_from_friction():
    robot = load_robot("ur5")
    friction, rotor = drive_terms(replace(robot, drive=dict.fromkeys(robot.drive, ())), ())
    assert (friction.notice.code, rotor.notice.code) == ("friction-missing", "rotor-missing")
    assert rotor.notice.change == {"drive": ["Ia"]}
    (rotor,) = drive_terms(replace(robot, drive=dict.fromkeys(robot.drive, ("Fv", "Fs"))), ())
    assert rotor.notice.change == {"drive": ["Fv", "Fs", "Ia"]}


def test_the_columns_of_one_log_are_corrected_in_its_entry_alone():
    """They replace those for all logs, whose name and scale they keep."""
    odd = replace(_LATE, change={"logs": {"run2": {"columns": {"tau_2": {"scale": -1}}}}})
    text = corrected_experiment(_with(odd, columns={"tau_2": {"name": "effort", "scale": 2.0}}))
    first, second = YAML(typ="safe").load(text)["logs"]
    assert "columns" not in first
    assert second["columns"] == {"tau_2": {"name": "effort", "scale": -2.0}}


def test_a_column_of_all_logs_and_of_one_log_is_changed_once() -> None:
    every = {"columns": {"tau_{i}": {"delay": 0.008}}}
    single = {"logs": {"run1": {"columns": {"tau_1": {"scale": 2}}, "exclude": [[1.0, 2.0]]}}}
    assert joined(every, single) is None
    assert joined({"columns": {"tau_1": {"scale": 0.5}}}, single) is None
    both = joined({"columns": {"q_1": {"offset": 0.1}}}, single)
    assert both is not None
    assert in_file(both) == (
        "`columns: {q_1: {offset: 0.1}}`, log 'run1' `columns: {tau_1: {scale: 2}}, exclude: [[1, 2]]`"
    )
    assert in_python(both) == "columns={'q_1': {'offset': 0.1}}"


def test_the_remedy_of_gathered_notices_names_the_change_of_any() -> None:
    texts = ("the residual rises (a)", "the residual rises (b)")
    change = {"logs": {"run1": {"exclude": [[1.0, 2.0]]}}}
    changes = ({}, change)
    made = [
        Notice("burst", text, f"leave it out: {in_file(one)}" if one else "check", change=one)
        for text, one in zip(texts, changes, strict=True)
    ]
    (item,) = gathered(made)
    assert item.change == change
    assert in_file(change) in item.remedy
