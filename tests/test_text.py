"""The terminal summary: warnings first, no wall of numbers, readable at 80 columns."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from dynid.common.notices import Notice, notice
from dynid.report.numbers import number, percent, sigma_text, value_text
from dynid.report.terminal import fitting
from dynid.report.text import print_summary, print_validation
from dynid.statistics.estimate_parts import Candidate
from tests.fabricated import estimate


def _printed(width: int, whole=None, **options) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    print_summary(whole or estimate(), console=console, **options)
    return console.export_text()


def test_the_verdict_comes_first_with_three_reasons_and_their_remedies():
    text = _printed(100)
    assert text.splitlines()[0].startswith("serial6: Usable with care")
    assert text.splitlines()[1].startswith("1. delay: tau of joint_2 lags")
    assert text.index("remedy: mount a known payload") < text.index("Unseen motion")
    full = _printed(100, full=True)
    assert full.index("Unseen motion") < full.index("Fit") < full.index("not identifiable   reason")


def test_the_summary_fits_a_screen_and_names_what_it_leaves_out():
    text = _printed(100)
    assert len(text.splitlines()) <= 40
    assert "Not identifiable: " in text
    assert text.splitlines()[-1] == "All parameters and choices: report.html, parameters.csv, or --full"


def test_settings_are_one_line_unless_asked():
    tried = (Candidate(4.0, friction="Fv Fs", held_out_percent=2.0, chosen=True), Candidate(8.0))
    whole = replace(estimate(), tried=tried)
    assert "Settings: low-pass 4 Hz, drive terms Fv Fs, estimator wls" in _printed(200, whole)
    assert "left-out error" in _printed(100, whole, full=True)


def test_further_reasons_are_named_and_printed_on_request():
    whole = estimate()
    more = Notice("burst", "a contact at t = 3 s", "cut it out")
    verdict = replace(whole.verdict, reasons=(*whole.verdict.reasons, more))
    whole = replace(whole, verdict=verdict)
    short = _printed(100, whole)
    assert "also noted, see report.html: burst" in short
    assert "a contact" not in short
    assert "4. burst: a contact at t = 3 s" in _printed(100, whole, full=True)


LONG = ("shoulder_pan_joint", "shoulder_lift_joint", "wrist_1_joint")


@pytest.mark.parametrize("width", [100, 120])
def test_names_are_not_broken_while_a_column_can_be_left_out(width):
    text = _printed(width, estimate(joints=LONG), full=True)
    for parameter in estimate(joints=LONG).parameters:
        assert any(line.startswith(f"{parameter.name} ") for line in text.splitlines()), parameter.name


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("truth", [False, True])
def test_every_line_fits_and_nothing_is_cut(width, full, truth):
    text = _printed(width, estimate(truth=truth), full=full)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_many_parameters_are_summed_up_unless_asked():
    short, full = _printed(100), _printed(100, full=True)
    assert "joint_1" in short.partition("Fv [N m s/rad]   Fs [N m]")[2]
    assert "XY_link2_R" not in short
    whole = estimate()
    bodies = tuple(replace(p, name=f"XX_body{i}") for i, p in enumerate(whole.parameters))
    assert "42 parameters by owner" in _printed(100, replace(whole, parameters=bodies, truth=None))
    assert all(p.name in full for p in estimate().parameters)


def test_few_parameters_are_listed():
    whole = estimate()
    few = replace(whole, parameters=whole.parameters[:30])
    assert all(p.name in _printed(100, few) for p in few.parameters)


def test_truth_is_marked():
    text = _printed(100, full=True)
    line = next(line for line in text.splitlines() if line.startswith("XX_link2_R"))
    assert line.rstrip().endswith("\N{MULTIPLICATION X}")
    assert "39 of 41 intervals contain the true value (about 39 expected)" in text
    assert "true value" not in _printed(100, estimate(truth=False))


def test_names_are_no_markup():
    reasons = (Notice("x", "[bold]joint[/bold] [link=http://a]b[/link]"),)
    whole = replace(estimate(), verdict=replace(estimate().verdict, reasons=reasons))
    assert "[bold]joint[/bold] [link=http://a]b[/link]" in _printed(100, whole)


def test_parameters_of_a_wrong_input_are_shown_only_if_asked_for():
    unit = notice("position-unit", unit="deg", columns='"q_{i}": {unit: deg}', option="q_{i}=NAME_{i}")
    wrong = replace(estimate(), verdict=replace(estimate().verdict, level="bad", reasons=(unit,)))
    assert "the input is wrong (--full shows them)" in _printed(100, wrong)
    assert "XY_link2_R" not in _printed(100, wrong)
    assert "XY_link2_R" in _printed(100, wrong, full=True)


def test_many_groups_show_the_worst():
    whole = estimate()
    groups = tuple(replace(g, name=f"{g.name}_{i}") for i in range(5) for g in whole.fit.groups)
    text = _printed(100, replace(whole, fit=replace(whole.fit, groups=groups)), full=True)
    assert "the 10 worst of 30" in text


def test_validation_says_when_it_is_not_independent(capsys):
    print_validation((replace(estimate().validation[0], independent=False),))
    assert "also used for the fit" in capsys.readouterr().out


def test_summary_of_the_estimate_is_a_text():
    assert "Usable with care" in str(estimate().summary())
    assert "XY_link2_R" in repr(estimate().summary(full=True))


@pytest.mark.parametrize(
    ("value", "sigma", "shown"),
    [
        (1.23456, 0.0123, "1.235"),
        (-1234.5, 20.0, "-1234"),
        (3.21e-9, 1.0e-10, "3.21e-09"),
        (0.5, None, "0.5"),
        (0.0, 0.02, "0.000"),
        (-5e-20, 0.0009, "0.00000"),
        (2.5e7, 1e5, "2.500e+07"),
        (0.1235, 2e-18, "0.12350000"),  # exact data: what the parameter is called must stay visible
        (3.99999621e-4, 6.4e-11, "4.00000e-04"),
        (0.0, 8.5e-9, "0"),
    ],
)
def test_values_have_the_digits_their_sigma_supports(value, sigma, shown):
    assert value_text(value, sigma) == shown


def test_percent_and_sigma():
    assert [percent(x) for x in (None, 0.0, 0.1, 3.0, 32.4, 2e5)] == ["-", "0", "0.10", "3.0", "32", ">999"]
    assert [percent(x) for x in (9.94, 9.96, 10.4, 12.0)] == ["9.9", "10.0", "10.4", "12.0"]  # near a limit
    assert sigma_text(0.003) == "0.0030"
    assert sigma_text(None) == "-"


def test_large_numbers_are_plain():
    assert [number(x, 2) for x in (928.0, 137.2, 0.0512, 99_999.0)] == ["930", "140", "0.051", "100000"]
    assert number(2.34e7, 3) == "2.34e+07"


def test_columns_that_a_table_has_no_room_for_are_left_out_in_their_order():
    columns = {"fit": ["a long name"], "BIC": ["1234"], "F": ["1.0"], "held-out %": ["0.69"]}
    assert list(fitting(columns, ("BIC", "F"), 80)) == list(columns)
    assert list(fitting(columns, ("BIC", "F"), 32)) == ["fit", "F", "held-out %"]
    assert list(fitting(columns, ("BIC", "F"), 10)) == ["fit", "held-out %"]
