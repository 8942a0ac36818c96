"""What a result recorded comes back as it was given; what is misshapen is refused, never half believed."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from dynid.common.errors import InputError
from dynid.common.strict_json import read_json
from dynid.experiment.experiment import Experiment, from_plain
from dynid.experiment.provenance import provenance
from dynid.experiment.recorded import experiment_of
from dynid.mechanism.load import load_robot
from dynid.motion.plan import MotionPlan
from dynid.report.json_file import json_text, plain, read_result, result_document
from dynid.robots.truth import read_truth
from tests.fabricated import estimate

# Not needed to predict with a result: data, names, and what only chooses or judges parameters.
_NOT_KEPT = {"logs", "validate", "cross_validate", "gate", "purpose", "out", "name", "file", "places"}


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
    experiment = Experiment(**from_plain({"robot": "serial6", **options}))
    kept = provenance(load_robot("serial6"), (), (), experiment, _plan())["options"]
    return experiment, kept


def test_every_option_is_recorded():
    _, kept = _recorded()
    assert {one.name for one in fields(Experiment)} - set(kept) == _NOT_KEPT


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
    ],
)
@pytest.mark.parametrize("through_a_file", [True, False])
def test_options_come_back_as_they_were_given(options, through_a_file):
    experiment, kept = _recorded(**options)
    kept = json.loads(json.dumps(plain(kept))) if through_a_file else kept
    back = experiment_of(kept)
    for name in options:
        ours, theirs = getattr(back, name), getattr(experiment, name)
        if name == "force_sensor":  # holds arrays
            assert (ours.body, ours.tool, ours.bias) == (theirs.body, theirs.tool, theirs.bias)
            assert ours.frame.p.tolist() == theirs.frame.p.tolist()
        elif name in ("internal", "wrench"):
            assert {k: list(v) if isinstance(v, list | tuple) else v for k, v in ours.items()} == {
                k: list(v) if isinstance(v, list | tuple) else v for k, v in theirs.items()
            }
        else:
            assert ours == theirs


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("filter", {"cutoff": "fast"}, "cutoff"),
        ("filter", {"cutof": 3.0}, "cutof"),
        ("filter", 3, "options that cannot be read"),
        ("mask", {"speed": [1]}, "speed"),
        ("columns", {"q_1": {"scale": 2.0}}, "name"),
        ("columns", [1], "options that cannot be read"),
        ("payloads", {"box": {"body": "B6"}}, "'known' is missing"),
        ("payloads", {"box": {"body": "B6", "R": [1], "p": [0, 0, 0], "known": {}, "prior": {}}}, "shape"),
        ("ties", [{"name": 3}], "name"),
        ("gains", {"motor": 1}, "motor"),
        ("robot", 7, "str"),
        ("model", "wishful", "wishful"),
        ("drive", "Fv", "array"),
        ("force_sensor", {"runs": [1]}, "options that cannot be read"),
        ("drop_bad_rows", "yes", "bool"),
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
