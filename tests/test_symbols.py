from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from dynid.base.grouping import readable
from dynid.base.symbols import MAX_EVALUATIONS, recover_symbols
from dynid.common.errors import InputError

GEOMETRY = {"d3": 0.225, "r3": 0.05, "d4": -0.0203, "r4": 0.431, "a": 0.6, "turn": np.pi / 2}


def robot(geometry):
    """All that recover_symbols reads of a mechanism."""
    return SimpleNamespace(geometry=dict(geometry), rebuild=robot)


def recover(formula, geometry=GEOMETRY, units=None):
    """Text for one coefficient, and how often it was computed."""
    calls = []

    def coefficients(mechanism):
        calls.append(1)
        return {("A", "B"): formula(SimpleNamespace(**mechanism.geometry))}

    return recover_symbols(robot(geometry), coefficients, units=units).get(("A", "B")), len(calls)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (lambda g: 1.0, "1"),
        (lambda g: -1.0, "-1"),
        (lambda g: 0.5, "1/2"),
        (lambda g: 32.0, "32"),
        (lambda g: g.d4**2, "d4^2"),
        (lambda g: 2 * g.r3, "2 r3"),
        (lambda g: -g.d4 * g.r4, "-d4 r4"),
        (lambda g: g.d3**2 / g.r4, "d3^2/r4"),
        (lambda g: g.d3**2 + g.r4**2, "d3^2 + r4^2"),
        (lambda g: g.d3**2 + g.r4**2 - 2 * g.d3 * g.r3, "d3^2 + r4^2 - 2 d3 r3"),
        (lambda g: g.r3 - g.r4, "r3 - r4"),
        (lambda g: g.r4**2 - g.d3**2, "r4^2 - d3^2"),
        (lambda g: g.d3 / 2, "d3/2"),
        (lambda g: (g.d3**2 + g.r4**2) / g.d4, "d3^2/d4 + r4^2/d4"),
        (lambda g: 1 - g.d3 / g.d4, "1 - d3/d4"),
        (lambda g: np.cos(g.a), "cos(a)"),
        (lambda g: -g.d3 * np.sin(g.a), "-d3 sin(a)"),
    ],
)
def test_recovers_formulas(formula, text):
    found, calls = recover(formula)
    assert found == text
    assert calls <= MAX_EVALUATIONS


def test_units_restrict_the_formulas():
    units = {"A": "kg m^2", "B": "kg"}
    assert recover(lambda g: g.d3**2 + g.r4**2, units=units)[0] == "d3^2 + r4^2"
    assert recover(lambda g: g.d3 + g.r4, units=units)[0] == "0.656 (d3, r4)"


def test_what_no_formula_explains_keeps_its_number_and_names_its_causes():
    found = recover(lambda g: np.exp(g.d3 * g.r4))[0]
    number, causes = found.split(" ", 1)  # all digits for programs, three for people
    assert causes == "(d3, r4)"
    assert float(number) == pytest.approx(np.exp(0.225 * 0.431), rel=1e-12)  # rounding
    assert readable(found) == "1.1 (d3, r4)"
    assert recover(lambda g: 0.123456789)[0] is None


def test_rounding_in_the_coefficients_does_no_harm():
    rng = np.random.default_rng(0)

    def noisy(g):
        return (g.d3**2 + g.r4**2) * (1 + 1e-12 * rng.standard_normal())

    assert recover(noisy)[0] == "d3^2 + r4^2"


def test_many_dimensions_stay_within_the_budget():
    rng = np.random.default_rng(7)
    geometry = {f"x{i}": float(value) for i, value in enumerate(rng.uniform(0.1, 0.5, 60))}
    found, calls = recover(lambda g: g.x7**2 + g.x41**2, geometry)
    assert found == "x7^2 + x41^2"
    assert calls <= MAX_EVALUATIONS


def test_a_dimension_that_changes_the_groupings_is_left_alone():
    def coefficients(mechanism):
        g = mechanism.geometry
        if g["a"] != GEOMETRY["a"]:
            return {("A", "C"): 1.0}
        if g["r3"] != GEOMETRY["r3"]:
            raise InputError("this geometry cannot be closed")
        return {("A", "B"): g["d3"] ** 2}

    assert recover_symbols(robot(GEOMETRY), coefficients) == {("A", "B"): "d3^2"}


def test_nothing_named_nothing_recovered():
    assert recover_symbols(SimpleNamespace(geometry={}, rebuild=None), lambda _: {("A", "B"): 1.0}) == {}
