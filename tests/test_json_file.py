"""result.json: what is written comes back, and nothing else is believed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.common.errors import InputError, NoResultError
from dynid.report.csv_file import parameters_csv
from dynid.report.json_file import json_text, read_result, result_document
from tests.fabricated import estimate

_KEYS = [
    "robot",
    "model",
    "estimator",
    "parameters",
    "not_identifiable",
    "standard",
    "fit",
    "validation",
    "warnings",
    "verdict",
    "provenance",
]
_PARAMETER_KEYS = [
    "name",
    "unit",
    "value",
    "sigma",
    "sigma_rel_percent",
    "ci95",
    "essential",
    "grouping",
    "prior",
]
_FIT_KEYS = [
    "n_rows",
    "n_parameters",
    "rank",
    "rank_gap",
    "condition",
    "condition_scaled",
    "sigma_rho",
    "residual_percent",
    "groups",
]


def _written(tmp_path: Path, change: dict | None = None) -> Path:
    file = tmp_path / "result.json"
    file.write_text(json_text(result_document(estimate()) | (change or {})), encoding="utf-8")
    return file


def test_document_has_the_keys_of_the_format():
    document = result_document(estimate())
    assert document["schema"] == "dynid.result/1"
    assert set(_KEYS) <= set(document)
    assert set(_PARAMETER_KEYS) <= set(document["parameters"][0])
    assert set(_FIT_KEYS) <= set(document["fit"])
    assert {"log", "independent", "residual_percent", "effort_percent", "groups"} <= set(
        document["validation"][0]
    )
    assert document["warnings"][0].keys() == {"code", "text", "remedy", "severity"}


def test_round_trip(tmp_path):
    before = estimate()
    after = read_result(_written(tmp_path))
    for field in ("robot", "model", "parameters", "not_identifiable", "fit", "validation", "warnings"):
        assert getattr(after, field) == getattr(before, field), field
    assert after.truth == before.truth
    assert after.choices == before.choices
    np.testing.assert_array_equal(after.covariance, before.covariance)  # JSON keeps every digit
    assert read_result(tmp_path).robot == "serial6"


def test_warnings_without_a_severity_get_that_of_the_catalogue(tmp_path):
    document = result_document(estimate())
    document["warnings"] = [
        {"code": code, "text": "", "remedy": ""} for code in ("gravity-off", "unheard-of")
    ]
    (tmp_path / "result.json").write_text(json.dumps(document))
    assert [one.severity for one in read_result(tmp_path).warnings] == ["stop", "care"]
    document["warnings"][0]["severity"] = "fatal"
    (tmp_path / "result.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="severity"):
        read_result(tmp_path)


def test_removed_parameter_stays_listed():
    removed = next(p for p in result_document(estimate())["parameters"] if not p["essential"])
    assert (removed["value"], removed["sigma"], removed["ci95"]) == (0.0, None, None)


def test_unbounded_figures_are_null_and_come_back(tmp_path):
    fit = replace(estimate().fit, rank_gap=math.inf, residual_percent=math.nan)
    document = result_document(replace(estimate(), fit=fit))
    assert document["fit"]["rank_gap"] is None
    after = read_result(_written(tmp_path, {"fit": document["fit"]}))
    assert after.fit.rank_gap == math.inf
    assert math.isnan(after.fit.residual_percent)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_parameters_that_are_not_finite_are_refused(bad):
    whole = estimate()
    broken = (replace(whole.parameters[0], value=bad), *whole.parameters[1:])
    with pytest.raises(NoResultError, match="ZZ_link1_R"):
        result_document(replace(whole, parameters=broken))


def test_covariance_that_is_not_finite_is_refused():
    with pytest.raises(NoResultError, match="covariance"):
        result_document(replace(estimate(), covariance=np.full((41, 41), np.nan)))


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ("dynid.result/2", "newer"),
        ("dynid.result/0", "older"),
        ("other/1", "schema"),
        (None, "schema"),
        (7, "7"),
    ],
)
def test_other_schema_is_refused(tmp_path, schema, hint):
    with pytest.raises(InputError, match=hint):
        read_result(_written(tmp_path, {"schema": schema}))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("{", "not valid JSON"),
        ("[1]", "not an object"),
        ('{"schema": "dynid.result/1"}', "'robot' is missing"),
        ('{"schema": "dynid.result/1", "robot": NaN}', "NaN"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_broken_files_are_refused(tmp_path, text, hint):
    file = tmp_path / "result.json"
    file.write_text(text)
    with pytest.raises(InputError, match=hint):
        read_result(file)


def test_misshapen_entries_are_refused_with_their_place(tmp_path):
    document = json.loads(json_text(result_document(estimate())))
    document["parameters"][3]["value"] = "heavy"
    with pytest.raises(InputError, match=r"\[3\]\.value"):
        read_result(_written(tmp_path, document))
    with pytest.raises(InputError, match="covariance"):
        read_result(_written(tmp_path, {"covariance": {"names": ["a"], "matrix": [[1.0, 2.0]]}}))


def test_what_is_no_result_is_refused_with_the_results_beside_it(tmp_path):
    (tmp_path / "arm").mkdir()
    (tmp_path / "arm" / "result.json").write_text("{}")
    (tmp_path / "hollow").mkdir()
    (tmp_path / "log.csv").write_text("t,q_1\n")
    for name, text in (("none.json", "no such"), ("hollow", "contains no result"), ("log.csv", "is not a")):
        with pytest.raises(InputError, match=text) as caught:
            read_result(tmp_path / name)
        assert f"(in {tmp_path}: arm)" in caught.value.remedy


def test_provenance_of_any_type_becomes_plain():
    odd = {"path": Path("a/b"), "n": np.int64(3), "x": np.array([1.0, np.inf]), "set": ("a",)}
    written = result_document(replace(estimate(), provenance=odd))["provenance"]
    assert written == {"path": "a/b", "n": 3, "x": [1.0, None], "set": ["a"]}


def test_csv_has_a_row_a_parameter_and_no_formula():
    whole = estimate()
    hostile = replace(whole.parameters[0], name="=cmd()")
    rows = parameters_csv(replace(whole, parameters=(hostile, *whole.parameters[1:]))).splitlines()
    assert len(rows) == 1 + len(whole.parameters)
    assert rows[0].startswith("name,unit,value,sigma,sigma_rel_percent,ci95_low,ci95_high,essential,prior")
    assert rows[1].startswith("'=cmd()")
    assert float(rows[2].split(",")[2]) == whole.parameters[1].value
