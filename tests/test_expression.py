"""The arithmetic of description files."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynid.common.errors import InputError
from dynid.common.expression import parse

SYMBOLS = {"g1": 0.5, "d_2": 3.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2*3", 7),
        ("-2^2", -4),
        ("2^-1", 0.5),
        ("2^3^2", 512),
        ("(1+2)*3", 9),
        ("2-3-4", -5),
        ("8/4/2", 1),
        ("2*-3", -6),
        ("2 - -3", 5),
        ("1e-3*2", 2e-3),
        (".5+5.", 5.5),
        ("pi - g1", math.pi - 0.5),
        ("-g1*d_2^2", -4.5),
        ("atan2(1, -1)", 0.75 * math.pi),
        ("sqrt(abs(-4)) + sign(-2)", 1),
        ("sin(pi/6) + cos(0) + tan(0) + exp(0)", 2.5),
    ],
)
def test_values(text, value):
    # One rounding per operation at most: 1e-15 relative.
    assert parse(text).value(SYMBOLS) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2**3", r"write \^"),
        ("1 2", "operator is missing"),
        ("2(3)", "operator is missing"),
        ("sin 3", "parentheses"),
        ("sin(1, 2)", "takes 1"),
        ("atan2(1)", "takes 2"),
        ("(1", "not closed"),
        ("1)", "without"),
        ("", "value is expected"),
        ("a+", "value is expected"),
        ("*3", "value is missing"),
        ("()", "value is missing"),
        ("--20", "two signs"),
        ("2 - +-3", "two signs"),
        ("\u0661", "not understood"),
        ("\u22121", "not understood"),
        ("1,5", "decimal point|outside a function"),
        ("sine(1)", "did you mean 'sin'"),
        ("__import__('os')", "unknown function"),
        ("g1.real", "not understood"),
        ("q()", "name of a joint"),
        ("g11", "did you mean 'g1'"),
        ("1/0", "not a finite number"),
        ("sqrt(-1)", "not a finite number"),
        ("q(g1)", "a constant is needed"),
        ("1+" * 6000 + "1", "characters"),
    ],
)
def test_refusals(text, said):
    with pytest.raises(InputError, match=said) as caught:
        parse(text, file="robot.yaml", place="line 3").value(SYMBOLS)
    assert caught.value.file == "robot.yaml"
    assert "line 3" in caught.value.place


def test_signals_of_any_joint_name():
    column = parse("k * sign(dq(joint_5) + dq(joint_6)) + ddq( leg-1.hip )")
    assert column.symbols == {"k"}
    assert column.signals == {("dq", "joint_5"), ("dq", "joint_6"), ("ddq", "leg-1.hip")}
    data = {
        ("dq", "joint_5"): np.array([1.0, -3.0, 1.0]),
        ("dq", "joint_6"): np.array([1.0, 1.0, -1.0]),
        ("ddq", "leg-1.hip"): np.array([0.5, 0.5, 0.5]),
    }
    values = column.evaluate({"k": 2.0}, lambda kind, name: data[kind, name])
    np.testing.assert_array_equal(values, [2.5, -1.5, 0.5])
    bound = column.bound({"k": 2.0})
    assert bound.symbols == frozenset()
    np.testing.assert_array_equal(bound.evaluate({}, lambda kind, name: data[kind, name]), values)


def test_names_of_signals_may_have_parentheses():
    for text in ("dq(3rd joint (wrist)) + 1", "(2 * q( a (b) c(d) ))", "q(a) * (1 + dq(b))"):
        found = parse(text).signals
        assert found <= {("dq", "3rd joint (wrist)"), ("q", "a (b) c(d)"), ("q", "a"), ("dq", "b")}
        assert len(found) == text.count("q(")
    with pytest.raises(InputError):
        parse("q(a (b)")


def test_a_column_that_is_not_finite_is_refused():
    with pytest.raises(InputError, match="sample 1"):
        parse("1/q(a)").evaluate({}, lambda kind, name: np.array([1.0, 0.0, 2.0]))


def test_deep_nesting_needs_no_recursion():
    assert parse("(" * 4000 + "1" + ")" * 4000).value({}) == 1.0


@given(
    st.recursive(
        st.integers(0, 9).map(str),
        lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(
            lambda parts: f"({parts[0]}{parts[1]}-{parts[2]})"
        ),
        max_leaves=20,
    )
)
def test_agrees_with_python_on_integers(text):
    # Independent oracle: Python's own grammar, on text that this test made.
    assert parse(text).value({}) == eval(text)  # noqa: S307
