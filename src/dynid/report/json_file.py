"""`result.json` (`dynid.result/1`): the result for programs, written and read back."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path, PurePath
from typing import Any, TypeVar

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.catalogue import Severity
from dynid.common.errors import InputError, NoResultError
from dynid.common.notices import SEVERITIES, Notice, severity_of
from dynid.common.strict_json import read_json
from dynid.motion.reading import is_address
from dynid.statistics.correlation import Correlation
from dynid.statistics.estimate import Agreement, Estimate, ParameterEstimate, ResidualTest, Validation
from dynid.statistics.estimate_parts import (
    NOT_JUDGED,
    Candidate,
    Description,
    DescriptionTest,
    Quantity,
    Verdict,
)

SCHEMA = "dynid.result/1"
RESULT_FILE = "result.json"
_OPTIONAL = ("cost_C", "sigma_W")  # of homogeneous systems only
_UNBOUNDED = ("rank_gap", "condition", "condition_scaled")  # null means infinity there
_MOST_NAMED = 6  # results beside one that is not there
_T = TypeVar("_T")


def result_document(estimate: Estimate) -> dict[str, Any]:
    """The content of `result.json`, plain and finite: unbounded or undefined values are null.

    Raises:
        NoResultError: A parameter or a covariance is not finite: that is no result.
    """
    _check_finite(estimate)
    hypotheses = {"hypotheses": [asdict(hypothesis) for hypothesis in estimate.hypotheses]}
    document = {
        "schema": SCHEMA,
        "robot": estimate.robot,
        "model": estimate.model,
        "estimator": estimate.estimator,
        "verdict": _verdict_document(estimate.verdict),
        "parameters": [asdict(p) for p in estimate.parameters],
        "not_identifiable": _reason_list(estimate.not_identifiable),
        "invisible": _reason_list(estimate.invisible),
        "standard": [dict(entry) for entry in estimate.standard],
        "fit": {k: v for k, v in asdict(estimate.fit).items() if v is not None or k not in _OPTIONAL},
        "validation": [asdict(item) for item in estimate.validation],
        "warnings": [_warning(item) for item in estimate.warnings],
        "choices": dict(estimate.choices),
        "choices_tried": [asdict(item) for item in estimate.tried],
        "provenance": dict(estimate.provenance),
        "uncertainty": dict(estimate.uncertainty),
        "correlations": [asdict(pair) for pair in estimate.correlations],
        "residual_tests": [asdict(test) for test in estimate.residual_tests],
        "description": hypotheses,
        "covariance": _covariance_document(estimate),
        "truth": None if estimate.truth is None else dict(estimate.truth),
    }
    if estimate.description is not None:
        document["description"] = {**hypotheses, **description_document(estimate.description)}
    if estimate.history is not None:
        document["changes"] = [
            {"log": change.log, "seconds": change.seconds, "jumped": [asdict(jump) for jump in change.jumped]}
            for change in estimate.history.changes
        ]
    return {key: plain(value) for key, value in document.items()}


def json_text(document: Mapping[str, Any]) -> str:
    """A document as readable UTF-8 text; an error for values that are not finite."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_result(path: str | Path) -> Estimate:
    """The estimate in a `result.json`, or in its folder; signals are not stored there.

    Raises:
        InputError: No such file, not JSON, another schema version, or a key missing or misshapen.
    """
    file = _result_file(Path(path))
    document = read_json(file, "give a result.json or its folder, or run identify again")
    check_schema(document, file)
    try:
        estimate = _estimate(document)
    except (KeyError, TypeError, ValueError) as error:  # msgspec raises a ValueError
        fault = f"key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"this result is not complete: {fault}", file=file, remedy="run identify again"
        ) from error
    return replace(estimate, provenance=absolute_places(estimate.provenance, file.parent))


def _result_file(path: Path) -> Path:
    """The file of a result; anything else is refused with the results beside it."""
    file = path / RESULT_FILE if path.is_dir() else path
    if file.exists() and file.suffix.lower() == ".json":
        return file
    text = f"this folder contains no {RESULT_FILE}" if path.is_dir() else "no such result"
    beside = sorted(found.parent.name for found in path.parent.glob(f"*/{RESULT_FILE}"))
    others = f" (in {path.parent}: {', '.join(beside[:_MOST_NAMED])})" if beside else ""
    raise InputError(
        f"this is not a {RESULT_FILE}" if file.exists() else text,
        file=path,
        remedy=f"give a result.json or its folder{others}, or run identify first",
    )


def plain(value: Any) -> Any:
    """`value` in JSON types; numbers that are not finite become None."""
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(entry) for entry in value]
    return str(value)


def _covariance_document(estimate: Estimate) -> dict[str, Any]:
    names = [p.name for p in estimate.parameters if p.sigma is not None]
    shared = {} if estimate.shared is None else {"unloaded": estimate.shared}
    return {"names": names, "matrix": estimate.covariance, **shared}


def _check_finite(estimate: Estimate) -> None:
    for p in estimate.parameters:
        if not math.isfinite(p.value) or (p.sigma is not None and math.isnan(p.sigma)):
            raise NoResultError(f"parameter '{p.name}' is {p.value} with sigma {p.sigma}: no result to write")
    shared = np.zeros(0) if estimate.shared is None else estimate.shared
    if not (np.all(np.isfinite(estimate.covariance)) and np.all(np.isfinite(shared))):
        raise NoResultError("the covariance of the parameters is not finite: no result to write")


def check_schema(document: Mapping[str, Any], file: Path) -> None:
    """Refuse documents of another schema or version."""
    schema = document.get("schema")
    if schema == SCHEMA:
        return
    match = re.fullmatch(r"dynid\.result/([0-9]+)", schema) if isinstance(schema, str) else None
    if match is None:
        remedy = f"give a file whose schema is '{SCHEMA}'"
    elif int(match[1]) > int(SCHEMA.rpartition("/")[2]):
        remedy = "it was written by a newer dynid: update dynid"
    else:
        remedy = "it was written by an older dynid: run identify again"
    raise InputError(f"schema {schema!r} is not '{SCHEMA}'", file=file, remedy=remedy)


def _estimate(document: Mapping[str, Any]) -> Estimate:
    return Estimate(
        robot=_shaped(document["robot"], str),
        model=_shaped(document["model"], str),
        estimator=_shaped(document["estimator"], str),
        parameters=_shaped(document["parameters"], tuple[ParameterEstimate, ...]),
        not_identifiable=_reasons(document["not_identifiable"]),
        fit=_shaped(_restored(document["fit"]), Agreement),
        covariance=_covariance(document),
        validation=_shaped(_restored(document["validation"]), tuple[Validation, ...]),
        warnings=_shaped(_rated(document["warnings"]), tuple[Notice, ...]),
        choices=_shaped(document.get("choices", {}), dict[str, str]),
        tried=_shaped(document.get("choices_tried", []), tuple[Candidate, ...]),
        provenance=_provenance(document),
        truth=_shaped(document.get("truth"), dict[str, float] | None),
        standard=_standard(document),
        uncertainty=_shaped(document.get("uncertainty", {}), dict[str, Any]),
        correlations=_shaped(document.get("correlations", []), tuple[Correlation, ...]),
        invisible=_reasons(document.get("invisible", [])),
        residual_tests=_shaped(document.get("residual_tests", []), tuple[ResidualTest, ...]),
        hypotheses=_shaped(
            document.get("description", {}).get("hypotheses", []), tuple[DescriptionTest, ...]
        ),
        shared=_shared(document),
        verdict=_shaped(_verdict(document["verdict"]), Verdict) if "verdict" in document else NOT_JUDGED,
        description=description_of(document["description"])
        if "symbols" in document.get("description", {})
        else None,
    )


def _reason_list(reasons: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "reason": reason} for name, reason in reasons.items()]


def _reasons(listed: Any) -> dict[str, str]:
    """Names and reasons of a list of parameters that have no value."""
    entries: tuple[dict[str, Any], ...] = _shaped(listed, tuple[dict[str, Any], ...])
    return {_shaped(entry["name"], str): _shaped(entry["reason"], str) for entry in entries}


def _warning(item: Notice) -> dict[str, Any]:
    """A warning as plain values; `change` only where it proposes one."""
    return {key: value for key, value in asdict(item).items() if key != "change" or value}


def _verdict_document(verdict: Verdict) -> dict[str, Any]:
    """A verdict with the level of each reason instead of its severity."""
    reasons = [{**_warning(entry), "level": entry.level} for entry in verdict.reasons]
    for reason in reasons:
        del reason["severity"]
    return {**asdict(verdict), "reasons": reasons}


def _verdict(document: Any) -> Any:
    """A verdict with the severity of each reason instead of its level."""
    reasons = document.get("reasons") if isinstance(document, dict) else None
    if not isinstance(reasons, list) or not all(isinstance(item, dict) for item in reasons):
        return document
    return {
        **document,
        "reasons": [
            {"severity": SEVERITIES.get(str(item.get("level")), Severity.CARE), **item} for item in reasons
        ],
    }


def _rated(warnings: Any) -> Any:
    """Warnings with their severity, that of the catalogue in results that do not contain it."""
    if not isinstance(warnings, list) or not all(isinstance(item, dict) for item in warnings):
        return warnings
    return [{"severity": severity_of(str(item.get("code"))), **item} for item in warnings]


def _standard(document: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    entries: tuple[dict[str, Any], ...] = _shaped(document.get("standard", []), tuple[dict[str, Any], ...])
    for entry in entries:
        _shaped(entry["name"], str)
        _shaped(entry["value"], float)
    return entries


def _provenance(document: Mapping[str, Any]) -> dict[str, Any]:
    """Check the expected structure: inputs are a list of named entries, options have names."""
    record: dict[str, Any] = _shaped(document["provenance"], dict[str, Any])
    _shaped(record.get("inputs", []), list[dict[str, Any]])
    _shaped(record.get("options", {}), dict[str, Any])
    for entry in record.get("inputs", []):
        _shaped(entry.get("payloads", []), list[str])
        _shaped(entry.get("sha256"), str | None)
        _shaped(entry.get("file"), str | None)
    return record


def _shaped(value: Any, kind: type[_T] | Any) -> _T | Any:
    import msgspec

    return msgspec.convert(value, kind)


def _restored(value: Any) -> Any:
    """Convert null back to infinity or NaN."""
    if isinstance(value, list):
        return [_restored(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    absent = {
        key: math.inf if key in _UNBOUNDED else math.nan for key, entry in value.items() if entry is None
    }
    return {key: _restored(entry) for key, entry in value.items()} | absent


def _covariance(document: Mapping[str, Any]) -> Float[Array, "p p"]:
    stored = document.get("covariance") or {"names": [], "matrix": []}
    matrix = np.array(_shaped(stored["matrix"], list[list[float]]), dtype=float)
    n = len(stored["names"])
    if matrix.size != n * n:
        raise ValueError(f"covariance has {matrix.size} entries for {n} parameters")
    return matrix.reshape(n, n)


def _shared(document: Mapping[str, Any]) -> Float[Array, "p u"] | None:
    """Covariance with the parameters of a result without load, if there is one."""
    stored = document.get("covariance") or {}
    if "unloaded" not in stored:
        return None
    n = len(stored["names"])
    matrix = np.array(_shaped(stored["unloaded"], list[list[float]]), dtype=float)
    return matrix.reshape(n, matrix.size // n if n else 0)


# Paths in a result are relative to its folder in files, absolute in memory: a result folder may be sent to
# others. It contains no home directory, and can be moved with its inputs.


def relative_place(file: str, folder: Path) -> str:
    """A path as seen from `folder`; one that shares only the root with it stays absolute, as addresses do."""
    path = file if is_address(file) else os.path.abspath(file)
    return PurePath(os.path.relpath(path, folder)).as_posix() if _share(path, str(folder)) else path


def relative_places(provenance: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A provenance for `folder/result.json`."""

    def relative(file: str) -> str:
        return relative_place(file, folder)

    return _changed(provenance, relative, lambda name: relative(name) if os.path.isabs(name) else name)


def absolute_places(provenance: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The provenance in a file of `folder`, with absolute paths."""
    home = folder.resolve()

    def absolute(file: str) -> str:
        return file if is_address(file) else os.path.normpath(home / file)

    # The name of a built-in robot, or of one without a file, is not a path.
    return _changed(provenance, absolute, lambda name: absolute(name) if (home / name).is_file() else name)


def _share(first: str, other: str) -> bool:
    try:
        common = os.path.commonpath([first, other])
    except ValueError:  # two drives
        return False
    return common != PurePath(common).anchor


def _changed(
    provenance: Mapping[str, Any], path: Callable[[str], str], robot: Callable[[str], str]
) -> dict[str, Any]:
    """The provenance with every file path changed."""
    made = dict(provenance)
    if "inputs" in made:
        made["inputs"] = [
            {**entry, "file": path(entry["file"])} if entry.get("sha256") and entry.get("file") else entry
            for entry in made["inputs"]
        ]
    options = dict(made.get("options") or {})
    if isinstance(options.get("robot"), str):
        options["robot"] = robot(options["robot"])
    unloaded = options.get("unloaded")
    if isinstance(unloaded, Mapping) and isinstance(unloaded.get("result"), str):
        options["unloaded"] = {**unloaded, "result": path(unloaded["result"])}
    return made | ({"options": options} if options else {})


# `description` of a `result.json`: dimensions, zeros and gravity that a result assumes or has found.


def description_document(description: Description) -> dict[str, Any]:
    """As plain values; matrices only where they have entries."""
    document: dict[str, Any] = {
        "symbols": {name: asdict(quantity) for name, quantity in description.symbols.items()},
        "zeros": {name: asdict(quantity) for name, quantity in description.zeros.items()},
        "gravity": list(description.gravity),
        "gravity_sigma": description.gravity_sigma,
        "shares": {name: dict(parts) for name, parts in description.shares.items()},
        "per_thousandth": {name: dict(parts) for name, parts in description.per_thousandth.items()},
    }
    if description.names:
        document["sensitivity"] = {
            "quantities": list(description.names),
            "parameters": list(description.parameters),
            "slopes": description.slopes.tolist(),
            "covariance": description.covariance.tolist(),
        }
    return document


def description_of(document: Mapping[str, Any]) -> Description:
    """Read back; what is misshapen is refused by the caller."""
    import msgspec

    def shaped(key: str, kind: Any, missing: Any) -> Any:
        return msgspec.convert(document.get(key, missing), kind)

    stored = shaped("sensitivity", dict[str, Any], {})
    names = msgspec.convert(stored.get("quantities", []), tuple[str, ...])
    parameters = msgspec.convert(stored.get("parameters", []), tuple[str, ...])
    slopes = msgspec.convert(stored.get("slopes", []), list[list[float]])
    covariance = msgspec.convert(stored.get("covariance", []), list[list[float]])
    return Description(
        symbols=shaped("symbols", dict[str, Quantity], {}),
        zeros=shaped("zeros", dict[str, Quantity], {}),
        gravity=shaped("gravity", tuple[float, ...], []),
        gravity_sigma=shaped("gravity_sigma", float | None, None),
        names=names,
        parameters=parameters,
        slopes=np.array(slopes, dtype=float).reshape(len(parameters), len(names)),
        covariance=np.array(covariance, dtype=float).reshape(len(names), len(names)),
        shares=shaped("shares", dict[str, dict[str, float]], {}),
        per_thousandth=shaped("per_thousandth", dict[str, dict[str, float]], {}),
    )
