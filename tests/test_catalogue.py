"""Every warning is in the catalogue once, is given somewhere, and gets exactly the values of its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from dynid.common.catalogue import CATALOGUE, RANKS, STAGES, Severity, Template, Trait, codes_with
from dynid.common.catalogue.__main__ import page
from dynid.common.notices import Notice, by_severity, follows, notice

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src/dynid").rglob("*.py"))


def calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """Place and node of every call of a function in the sources."""
    for file in SOURCES:
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if f"{name}(" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield f"{file.relative_to(ROOT)}:{node.lineno}", node


def strings(node: ast.expr) -> list[str]:
    """A string, or both of `a if ... else b`; none if it is anything else."""
    parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]
    return [one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def given() -> Iterator[tuple[str, str, str, set[str | None]]]:
    """Place, code, variant and names of the values of every notice."""
    for place, node in calls("notice"):
        codes = strings(node.args[0])
        assert codes, f"{place}: the code must be written here"
        variants = [one for argument in node.args[1:] for one in strings(argument)] or [""]
        for code in codes:
            yield place, code, variants[0], {one.arg for one in node.keywords}


def templates() -> dict[tuple[str, str], Template]:
    found = {(code, ""): entry.template for code, entry in CATALOGUE.items()}
    return found | {(c, name): one for c, entry in CATALOGUE.items() for name, one in entry.variants.items()}


def test_every_notice_is_in_the_catalogue_and_gets_the_values_of_its_text() -> None:
    known = templates()
    for place, code, variant, values in given():
        assert (code, variant) in known, f"{place}: '{code}' {variant} is not in the catalogue"
        fields = known[code, variant].fields
        # A change may also be in the words of another value.
        assert values in (fields, fields | {"change"}), f"{place}: values of '{code}' {variant}"


def test_every_entry_of_the_catalogue_is_given_somewhere() -> None:
    used = {(code, variant) for _, code, variant, _ in given()}
    idle = set(templates()) - used
    # `dynid excite` replaces the remedy of a notice by this one.
    assert idle == {("no-drive-values", "planned")}


def test_no_notice_bypasses_the_catalogue() -> None:
    places = [place for place, _ in calls("Notice")]
    assert all(place.startswith("src/dynid/common/notices.py") for place in places)


def test_codes_that_are_asked_for_exist() -> None:
    """`one.code == "gap"` with a code that nobody gives would never be true."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in SOURCES)
    asked = re.findall(r'\.code (?:==|!=) "([a-z-]+)"', text)
    assert asked
    assert set(asked) <= set(CATALOGUE)


# Not kinds of warnings, but these very two: notices of one function that the reader calls.
PAIRS = [
    {"few-blocks", "from-one-block"},
    {"loop-misfit", "singular-start"},
    {"zero-offset", "dimension-off"},
    {"model-misfit", "zero-offset"},
]


def test_kinds_of_warnings_are_listed_in_the_catalogue_only() -> None:
    """A new code is known by its entry alone: no other file has a list of codes to add it to."""
    named = {code for code in CATALOGUE if "-" in code}  # others are words, too
    for file in SOURCES:
        text = file.read_text(encoding="utf-8")
        if "catalogue" in file.parts or len(named.intersection(re.findall(r"[\w-]+", text))) < 2:
            continue
        for node in ast.walk(ast.parse(text)):
            items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
            codes = {item.value for item in items if isinstance(item, ast.Constant)} & named
            place = f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            assert len(codes) < 2 or codes in PAIRS, f"{place}: {sorted(codes)}: a trait of their entries"


def test_every_rank_and_trait_is_used() -> None:
    assert {entry.rank for entry in CATALOGUE.values()} == set(RANKS)
    assert all(codes_with(trait) for trait in get_args(Trait))  # a trait without codes is not needed


def test_an_unknown_code_is_an_error() -> None:
    with pytest.raises(KeyError, match="no-such-code"):
        notice("no-such-code")
    with pytest.raises(KeyError, match="count"):
        notice("samples-filled")


def test_a_remedy_is_written_from_the_change_that_it_proposes() -> None:
    late = notice(
        "delay",
        "confirmed",
        who="it is",
        size=8.0,
        late="later",
        change={"columns": {"tau_2": {"delay": 8e-3}}},
    )
    assert "`columns: {tau_2: {delay: 0.008}}`" in late.remedy
    assert notice("logs-differ").change == {}
    assert hash(late) == hash(replace(late, change={}))


def test_each_code_belongs_to_one_stage() -> None:
    assert sum(map(len, STAGES.values())) == len(CATALOGUE)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in CATALOGUE)


def test_severities_follow_the_consequence() -> None:
    """What makes a result wrong stops its use; what was repaired without harm is a note."""
    stop = {"loop-misfit", "assembly-jump", "gravity-off", "moment-unit", "scale-implausible", "gain-sign"}
    stop |= {"angles-large", "not-physical", "poor-fit", "poor-prediction", "payload-label", "wrong-branch"}
    note = {"snapped-angle", "over-constrained", "normalised-axis", "samples-filled", "angle-wrapped"}
    assert {CATALOGUE[code].severity for code in stop} == {Severity.STOP}
    assert {CATALOGUE[code].severity for code in note} == {Severity.NOTE}


def test_notices_are_listed_by_severity() -> None:
    several = [notice("quaternion-sign", count=1), notice("logs-differ"), Notice("x", "", "", Severity.STOP)]
    assert [one.code for one in by_severity(several)] == ["x", "logs-differ", "quaternion-sign"]


def test_causes_are_listed_before_symptoms_of_the_same_severity() -> None:
    codes = ["joint-error", "not-excited", "zero-offset", "burst", "dead-points", "gravity-off"]
    several = [Notice(code, "", "", Severity.CARE) for code in codes]
    assert [one.code for one in by_severity(several)] == codes[::-1]


def test_a_unit_that_explains_the_logs_is_named_before_the_size_of_their_values() -> None:
    several = [Notice(code, "", "", Severity.STOP) for code in ("angles-large", "position-unit")]
    assert [one.code for one in by_severity(several)] == ["position-unit", "angles-large"]


_SPOILED = {"scale-implausible", "joint-error", "poor-fit", "zero-offset"}


@pytest.mark.parametrize(
    ("cause", "severity", "folded"),
    [
        # Nothing that a fit in degrees shows is worth reading, but what was asked is.
        ("angles-large", Severity.STOP, _SPOILED),
        # A wheel may turn so far: no reason to hide the rest.
        ("angles-large", Severity.CARE, {"poor-fit"}),
        ("position-unit", Severity.STOP, {"angles-large", *_SPOILED}),
        ("delay", Severity.STOP, {"poor-fit"}),
        ("joint-error", Severity.STOP, set()),
        ("weak-parameters", Severity.CARE, set()),
    ],
)
def test_consequences_of_a_cause_are_known(cause: str, severity: Severity, folded: set[str]) -> None:
    others = [
        "angles-large",
        "gravity-off",
        "scale-implausible",
        "zero-offset",
        "joint-error",
        "poor-fit",
        "purpose-not-met",
    ]
    reasons = [Notice(code, "", "", Severity.STOP) for code in others]
    assert {one.code for one in reasons if follows(one, Notice(cause, "", "", severity))} == folded


def test_the_reference_page_is_the_catalogue() -> None:
    text = (ROOT / "docs/reference/warnings.md").read_text(encoding="utf-8")
    assert text == page(), "python -m dynid.common.catalogue > docs/reference/warnings.md"
