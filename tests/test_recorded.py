"""What a result recorded comes back as it was given; what is misshapen is refused, never half believed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.common.strict_json import read_json
from dynid.experiment.experiment import ColumnMap, experiment_from
from dynid.experiment.provenance import experiment_of, provenance, repeated
from dynid.mechanism.load import load_robot
from dynid.motion.plan import MotionPlan
from dynid.report.json_file import json_text, plain, read_result, result_document
from dynid.robots.truth import read_truth
from tests.arms import recording, write_csv
from tests.fabricated import estimate
from tests.workspace import dynid

ARM = """
schema: dynid.robot/1
name: arm
joints:
  - {name: motor1, kind: revolute, parent: base, child: link1, axis: [0, 0, 1]}
  - {name: motor2, kind: revolute, parent: link1, child: link2, axis: [0, 0, 1]}
drive: {"*": [Ia, Fv]}
"""


def _plan() -> MotionPlan:
    return MotionPlan(
        cutoff=10.0,
        kind="butterworth",
        order=4,
        derivative="spline",
        velocity="derived",
        edge=0,
        dt=0.01,
        decimate=2,
        rows_cutoff=20.0,
        rest_speed=(0.0,),
        rest_window=1,
        reversal_speed=(0.0,),
        reversal_around=0,
        scalar=(True,),
    )


def _recorded(**options):
    experiment = experiment_from({"robot": "serial6", **options})
    kept = provenance(load_robot("serial6"), (), (), experiment, _plan())["options"]
    return experiment, kept


def test_defaults_are_left_out_and_what_was_used_is_kept():
    _, kept = _recorded(out="results", logs=["a.csv"])
    used = {"cutoff": 10.0, "decimate": 2, "derivative": "spline", "velocity": "derived"}
    assert kept == {"robot": "serial6", "model": "inverse", "filter": used, "auto": "off"}
    _, kept = _recorded(estimator="wls", uncertainty="cluster")  # chosen, although the defaults
    assert kept["estimator"] == "wls"
    assert kept["uncertainty"] == {"method": "cluster"}


@pytest.mark.parametrize(
    "options",
    [
        {"internal": {"free": ("x", "y"), "nullspace": "free", "lengths": "estimate"}},
        {"wrench": {"parameters": "principal", "bodies": ("B2",)}},
        {"energy": {"window": 0.2, "overlap": True}},
        {"ties": ("legs",), "efforts": (1, "m6"), "drive": ("Fv", "Fs"), "stribeck": {"joint_1": 0.1}},
        {"gains": {"unknown": ("m1",), "total_mass": {"kg": 5.0, "bodies": ("B1",)}}},
        {
            "model": "wrench",
            "force_sensor": {"body": "B6", "xyz": [0, 0, 0.1], "tool": "gripper", "bias": "segment"},
        },
        {"unloaded": {"result": __file__, "free": ("Off_*",)}, "angles": "zyx"},
        {"uncertainty": {"method": "hac", "bandwidth": 0.2}, "mask": {"speed": 0.1, "around": 3}},
        {"refine": {"window": 0.3}},
        {"standard": {"spread": 2.0, "mass": {"total": 40.0}}},
        {"payloads": {"box": {"body": "B6", "rpy": [0, 0, 0.3], "known": {"M": 2.0, "com": [0.1, 0, 0]}}}},
        {"keep": ("ZZ_*",), "essential": {"ratio": 9}},
        {"cross_validate": 3, "gate": "prior", "columns": {"q_1": "a", "q_2": {"scale": 2.0}}},
    ],
)
def test_options_come_back_as_they_were_given(options):
    experiment, kept = _recorded(**options)
    back = experiment_of(json.loads(json.dumps(plain(kept))))
    for name in options:
        if name not in ("force_sensor", "payloads"):  # hold arrays
            assert getattr(back, name) == getattr(experiment, name)
    assert back.tree() == kept


@pytest.mark.parametrize("options", [{}, {"model": "power", "estimator": "ols"}])
def test_the_recorded_tree_gives_an_equal_experiment(options):
    experiment, kept = _recorded(efforts=(1, 2), **options)
    back = experiment_of(kept)
    assert back == experiment.changed(model=back.model, filter=back.filter, auto="off")
    assert type(back.estimator) is type(experiment.estimator)  # left open stays left open
    again = provenance(load_robot("serial6"), (), (), back, _plan())["options"]
    assert again == kept


def test_results_of_earlier_versions_are_read():
    # They recorded every option, with null for those not given, and the origin of a payload as `p`.
    frame = {"R": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "p": [0, 0, 0.1]}
    old = {
        "robot": "serial6",
        "model": "inverse",
        "estimator": "wls",
        "estimator_options": {},
        "filter": {"cutoff": 10.0, "decimate": 2, "rows": None, "kind": "butterworth", "order": 4},
        "uncertainty": {"method": "cluster", "block": None, "bandwidth": None, "draws": 1000, "seed": 0},
        "mask": {"speed": None, "around": None, "rest": None},
        "efforts": None,
        "columns": {"q_1": {"name": "a", "unit": None, "scale": 1.0, "offset": 0.0}},
        "payloads": {"box": {"body": "B6", **frame, "known": {"M": 2.0}, "prior": {}}},
        "drive": None,
        "essential": None,
        "standard": {"prior": "entropic", "spread": 3.0, "margin": 0.0, "mass": {}, "com": {}},
        "gains": {"unknown": ["m1"], "nominal": {}, "total_mass": {"kg": 5.0, "bodies": None}},
        "refine": None,
        "internal": {"free": ["x"]},
        "unloaded": None,
        "force_sensor": None,
        "drop_bad_rows": False,
    }
    made = experiment_of(old)
    assert made.payloads["box"].frame.p.tolist() == [0.0, 0.0, 0.1]
    assert made.columns == {"q_1": ColumnMap("a")}
    assert made.gains.total_mass.kg == 5.0
    assert (made.drive, made.refine, made.essential) == (None, None, None)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("filter", {"cutoff": "fast"}, "cutoff"),
        ("filter", {"cutof": 3.0}, "cutof"),
        ("filter", 3, "options that cannot be read"),
        ("mask", {"speed": [1]}, "speed"),
        ("columns", {"q_1": {"scale": "two"}}, "columns.q_1.scale"),
        ("columns", [1], "options that cannot be read"),
        ("payloads", {"box": {"known": {}}}, "payloads.box: 'body' is missing"),
        (
            "payloads",
            {"box": {"body": "B6", "R": [1], "p": [0, 0, 0], "known": {}, "prior": {}}},
            "box.R: expected 3",
        ),
        ("ties", [{"name": 3}], "ties.0..name"),
        ("gains", {"motor": 1}, "motor"),
        ("robot", 7, "str"),
        ("model", "wishful", "wishful"),
        ("drive", "Fv", "list"),
        ("force_sensor", {"runs": [1]}, "options that cannot be read"),
        ("drop_bad_rows", "yes", "true or false"),
    ],
)
def test_damaged_options_are_refused_with_file_and_place(name, value, said):
    with pytest.raises(InputError, match=said) as refused:
        experiment_of({name: value}, "result.json")
    assert refused.value.file == "result.json"
    assert refused.value.place == "provenance.options"
    assert "identify again" in str(refused.value)


@pytest.mark.parametrize(
    "damage",
    [
        {"options": "x"},
        {"inputs": {"a": 1}},
        {"inputs": ["log.csv"]},
        {"inputs": [{"file": "a.csv", "payloads": "box"}]},
        {"inputs": [{"file": "a.csv", "sha256": 3}]},
    ],
)
def test_damaged_provenance_is_refused(tmp_path, damage):
    document = json.loads(json_text(result_document(estimate())))
    document["provenance"] |= damage
    file = tmp_path / "result.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError, match="this result is not complete"):
        read_result(file)


@pytest.mark.parametrize("damage", [{"name": "M_B1"}, {"value": 1.0}, {"name": "M_B1", "value": "heavy"}])
def test_a_damaged_standard_set_is_refused(tmp_path, damage):
    document = json.loads(json_text(result_document(estimate())))
    document["standard"] = [damage]
    file = tmp_path / "result.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError, match="this result is not complete"):
        read_result(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not valid JSON"),
        ("[1]", "not an object"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1e400}', "1e400"),
        ('{"a": 1' + "0" * 400 + "}", "too large"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "'c' is given twice"),
        ('{"a": "\udce4"}', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_strict_json(tmp_path, text, said):
    file = tmp_path / "a.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=said) as refused:
        read_json(file, "write it anew")
    assert refused.value.file == str(file)
    assert refused.value.remedy == "write it anew"


def test_a_byte_order_mark_does_no_harm(tmp_path):
    file = tmp_path / "a.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(file, "") == {"a": 1}


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (None, "'parameters' has no names"),
        ([1], "'parameters' has no names"),
        ({"M_upper": "heavy"}, "'heavy' is not a number"),
        ({"M_upper": [1]}, "is not a number"),
        ({"M_upper": True}, "True is not a number"),
    ],
)
def test_damaged_truth_is_refused(tmp_path, parameters, said):
    file = tmp_path / "log.truth.json"
    file.write_text(json.dumps({"schema": "dynid.truth/1", "parameters": parameters}))
    with pytest.raises(InputError, match=said) as refused:
        read_truth(file)
    assert refused.value.file == str(file)


def _written_logs(folder) -> None:
    """Two logs of the two-joint arm, the second with other names of its positions."""
    for name, rename in (("first.csv", {}), ("second.csv", {"q_1": "elbow_in", "q_2": "elbow_out"})):
        columns = recording(seconds=6.0)
        noise = np.random.default_rng(len(name)).standard_normal(len(columns["t"]))
        columns["tau_1"] = columns["tau_1"] + 0.05 * noise
        write_csv(folder / name, {rename.get(key, key): values for key, values in columns.items()})


def test_a_result_is_repeated_with_what_was_chosen(tmp_path):
    _written_logs(tmp_path)
    (tmp_path / "arm.yaml").write_text(ARM)
    (tmp_path / "experiment.yaml").write_text(
        "robot: arm.yaml\nhold_out: 0.2\nlogs:\n  - first.csv\n"
        "  - {file: second.csv, columns: {q_1: elbow_in, q_2: elbow_out}, from: 0.5}\n"
    )
    first, again = tmp_path / "first", tmp_path / "again"
    dynid("identify", str(tmp_path / "experiment.yaml"), "--out", str(first))
    shown = dynid("identify", str(first), "--out", str(again)).output
    assert "parameters are equal" in shown
    before, after = read_result(first), read_result(again)
    assert after.parameters == before.parameters
    assert after.provenance["options"] == before.provenance["options"]
    second = before.provenance["inputs"][-1]
    assert second["columns"] == {"q_1": {"name": "elbow_in"}, "q_2": {"name": "elbow_out"}}
    assert second["from"] == 0.5


def test_a_result_whose_log_has_changed_is_not_repeated(tmp_path):
    _written_logs(tmp_path)
    (tmp_path / "arm.yaml").write_text(ARM)
    logs = ["--log", str(tmp_path / "first.csv")]
    dynid("identify", "--robot", str(tmp_path / "arm.yaml"), *logs, "--out", str(tmp_path / "result"))
    with (tmp_path / "first.csv").open("a") as text:
        text.write("7,0,0,0,0\n")
    refused = dynid("identify", str(tmp_path / "result"))
    assert refused.exit_code == 2
    assert "'first.csv' (identify) has changed" in refused.output


def test_what_was_searched_is_searched_again(tmp_path):
    experiment = experiment_from({"robot": "serial6", "drive": ("Fv", "Fs", "Fk")})
    settled = experiment.changed(stribeck={"J1": 0.2})
    kept = provenance(load_robot("serial6"), (), (), settled, _plan(), experiment)
    assert kept["options"]["stribeck"] == {"J1": 0.2}
    assert kept["searched"] == {"stribeck": None}
    log = {"file": "a.csv", "sha256": "0", "use": "identify", "payloads": []}
    assert repeated({**kept, "inputs": [log]}).stribeck == {}


def test_logs_given_as_arrays_cannot_be_repeated():
    arrays = {"file": "log", "sha256": None, "use": "identify", "payloads": []}
    with pytest.raises(InputError, match="given as arrays"):
        repeated({"options": {"robot": "serial6"}, "inputs": [arrays]})
