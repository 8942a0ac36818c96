"""report.html: self-contained, complete, and deaf to hostile names."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import re
import time
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import Markup
from rich.console import Console

from dynid.common.catalogue import Severity
from dynid.common.notices import Notice, notice
from dynid.report.axes import labelled
from dynid.report.bodies import body_row, far_words
from dynid.report.html import notebook_html, report_html
from dynid.report.latex import escaped, parameters_tex, unit_tex
from dynid.report.numbers import sigma_text
from dynid.report.page import ticked
from dynid.report.panels import since_start
from dynid.report.plots import packed
from dynid.report.quality import Quality, coverage, loads, quality, worst_joint
from dynid.report.sections.description import section as description
from dynid.report.sections.found import drive_table, standard
from dynid.report.sections.provenance import command_line
from dynid.report.sections.use import section
from dynid.report.text import print_summary
from dynid.report.words import explained, in_words, owner_of
from dynid.statistics.estimate import ResidualTest
from dynid.statistics.estimate_parts import DescriptionTest, JointVerdict, Signals
from dynid.statistics.uncertainty import half95
from tests.fabricated import JOINTS, estimate

_HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
_SECTIONS = ["use", "found", "predicts", "unknown", "logs", "made"]


class _Page(HTMLParser):
    """Collects elements, texts of scripts and section anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._in_script = False

    def handle_data(self, data):
        if self._in_script:
            self.scripts[-1] += data
        else:
            self.text.append(data)


def test_a_report_written_later_has_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that is repeated, or resumed after a kill, is the same; the date is that of the file."""
    first = report_html(estimate())
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 1e6)
    assert datetime.now(UTC).strftime("%Y-%m-%d") not in first
    assert report_html(estimate()) == first


@pytest.fixture(scope="module")
def text() -> str:
    return report_html(estimate())


@pytest.fixture(scope="module")
def page(text) -> _Page:
    return _Page(text)


def test_has_all_sections(page):
    anchors = [attributes["id"] for tag, attributes in page.tags if tag == "section"]
    assert anchors == _SECTIONS


def test_loads_nothing(text, page):
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    styles = "".join(re.findall(r"<style>(.*?)</style>", text, re.DOTALL))
    assert "url(" not in styles
    assert "@import" not in styles
    policies = [a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies[0].startswith("default-src 'none'; script-src 'sha256-")


def test_the_page_is_small(text):
    assert len(text.encode()) < 1.5e6


def test_a_long_run_of_many_efforts_stays_small():
    t = np.linspace(0, 1000, 20_000)
    names = tuple(f"j{i}" for i in range(30))
    wave = np.sin(np.outer(t, np.arange(1, 31)))
    logs = tuple(Signals(f"log{i}", names, ("N m",) * 30, t, wave, wave) for i in range(4))
    assert len(report_html(replace(estimate(), signals=logs)).encode()) < 1.5e6


def test_of_many_logs_all_are_listed_and_three_are_plotted():
    t = np.linspace(0, 10, 50)
    wave = np.sin(np.outer(t, np.arange(1.0, 7.0)))
    units = ("N m",) * 6
    logs = tuple(
        Signals(f"log{i:02}", JOINTS, units, t, wave, wave + 0.001 * i * np.cos(wave)) for i in range(40)
    )
    page = _Page(report_html(replace(estimate(), signals=logs)))
    specs = _specs(page)
    assert [name for name in specs if name.startswith("efforts-")] == [f"efforts-{i}" for i in range(3)]
    words = "".join(page.text)
    assert "log00" in words
    assert all(f"Log 'log{i}'" in words for i in (37, 38, 39))  # the largest errors
    assert "Log 'log36'" not in words
    assert "from 40 simulated logs ('log00', 'log01', 'log02', ...)" in words


def _specs(page: _Page) -> dict[str, dict]:
    """Data of every figure, by the id of the figure."""
    ids = [attributes.get("id") or "" for tag, attributes in page.tags if tag == "script"]
    pairs = zip(ids, page.scripts, strict=True)
    return {name.removesuffix("-spec"): json.loads(text) for name, text in pairs if name.endswith("-spec")}


def _unpacked(series: dict) -> np.ndarray:
    steps = np.frombuffer(base64.b64decode(series["q"]), "<i2").astype(float)
    return np.where(steps == -32768, np.nan, series["o"] + series["s"] * steps)


def test_packed_numbers_are_exact_to_a_fraction_of_a_pixel():
    x = np.array([-3.0, np.nan, 0.1, 7.0])
    found = _unpacked(packed(x))
    assert np.isnan(found[1])
    np.testing.assert_allclose(found[[0, 2, 3]], x[[0, 2, 3]], atol=10.0 / 65534)  # half a step of the range
    np.testing.assert_allclose(_unpacked(packed([5.0, 5.0])), 5.0)
    assert np.isnan(_unpacked(packed([np.nan]))).all()


def test_figures_hold_every_effort_and_parameter(page):
    specs = _specs(page)
    assert {"parameter-intervals", "efforts-0", "efforts-1", "efforts-2", "correlation"} <= set(specs)
    intervals = specs["parameter-intervals"]["panels"][0]
    assert set(intervals["y"]["names"]) == {p.name for p in estimate().parameters if p.essential}
    assert {one["name"] for one in intervals["series"]} >= {"truth", "description"}
    assert len(specs["efforts-0"]["panels"]) == len(JOINTS)


def test_figure_data_are_the_signals(page):
    spec = _specs(page)["efforts-1"]  # the first is that of the validation log
    given = estimate().signals[0]
    shared = {name: _unpacked(one) for name, one in spec["shared"].items()}
    measured = shared["p0"] + shared["r0"]
    # two bytes for each of prediction and residual: a step is 1.5e-5 of the range
    assert abs(measured[0] - given.measured[0, 0]) < 5e-5 * np.nanmax(np.abs(given.measured[:, 0]))
    assert np.isnan(shared["t"]).sum() == 2  # the break between two pieces is kept


def test_plots_and_tables_have_names_for_screen_readers(text, page):
    for tag, attributes in page.tags:
        if tag == "th":
            assert attributes.get("scope") in ("col", "row")
        if attributes.get("class") == "plot":
            assert attributes["aria-label"]
    assert text.count("<table") == text.count("<caption>")


def test_downloads_are_inside_the_page(page):
    ids = [attributes.get("id") for tag, attributes in page.tags if tag == "script"]
    files = json.loads(page.scripts[ids.index("downloads")])
    assert set(files) == {"parameters.csv", "result.json", "parameters.tex"}
    assert json.loads(files["result.json"]["text"])["schema"] == "dynid.result/1"
    assert files["parameters.csv"]["text"].count("\n") == 1 + len(estimate().parameters)
    wanted = {a["data-file"] for tag, a in page.tags if tag == "button" and "data-file" in a}
    assert wanted == set(files)


def test_no_name_is_a_command_in_the_latex_table():
    assert escaped(r"a_b\input{x}%") == r"a\_b\textbackslash{}input\{x\}\%"
    assert unit_tex("kg m^2/s^-1") == "kg m$^{2}$/s$^{-1}$"
    table = parameters_tex(estimate())
    assert estimate().summary().latex == table
    assert table.count(r" \\") == 1 + len(estimate().parameters)


def test_the_command_line_is_shown_only_if_it_was_ours():
    assert command_line(["/usr/bin/dynid", "info", "a b.yaml"]) == "dynid info 'a b.yaml'"
    assert command_line(["/usr/bin/pytest", "secret"]) == ""


def test_the_command_line_does_not_show_where_the_folders_of_the_machine_are():
    """A page is sent to others. The command still works where it was run."""
    log = os.path.join(os.getcwd(), "data", "a.csv")
    shown = command_line(
        ["/usr/bin/dynid", "identify", "--log", log, f"--out={os.path.dirname(log)}", "b.yaml"]
    )
    assert shown == f"dynid identify --log {os.path.join('data', 'a.csv')} --out=data b.yaml"


def test_backticks_become_code():
    reasons = (Notice("burst", "use `estimator: robust` <b>", "odd `tick"),)
    text = report_html(replace(estimate(), verdict=replace(estimate().verdict, reasons=reasons)))
    assert "use <code>estimator: robust</code> &lt;b&gt;" in text
    assert "odd `tick" in text


def test_hostile_names_do_nothing():
    names = (_HOSTILE, *JOINTS[1:])
    whole = estimate(joints=names)
    hostile = replace(
        whole,
        robot=_HOSTILE,
        warnings=(Notice(_HOSTILE, _HOSTILE, _HOSTILE),),
        verdict=replace(whole.verdict, reasons=(Notice(_HOSTILE, _HOSTILE, _HOSTILE),)),
        not_identifiable={_HOSTILE: _HOSTILE},
        choices={_HOSTILE: _HOSTILE},
        provenance={"inputs": [{"file": _HOSTILE, "sha256": _HOSTILE}], "options": {_HOSTILE: _HOSTILE}},
    )
    text = report_html(hostile)
    page = _Page(text)
    assert not any(tag == "img" for tag, _ in page.tags)
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert len(page.scripts) == len(_Page(report_html(estimate())).scripts)
    assert _HOSTILE not in text
    assert any(_HOSTILE in piece for piece in page.text)  # and the reader still sees the name


def test_standard_bodies_stand_one_to_a_row_without_rounding_dust():
    def entry(name, unit, value, source="data"):
        return {"name": name, "unit": unit, "value": value, "from": source, "share": 0.9}

    entries = (
        entry("XX_link1", "kg m^2", 0.25),
        entry("XY_link1", "kg m^2", 1.2e-18, "prior"),
        entry("M_link1", "kg", 2.5),
        entry("Fv_joint1", "N m s/rad", 0.31),
        entry("Spring", "N m", 4.5),
    )
    body = standard(replace(estimate(), standard=entries)).replace("<wbr>", "")
    table, whole = body.split("<details")
    (row,) = [line for line in table.splitlines() if "link1" in line]
    cells = re.findall(r'<td class="n( muted)?">([^<]*)<', row)
    # M MX MY MZ XX YY ZZ XY XZ YZ: grey where the prior speaks or the body has no such entry.
    values = ["2.5", "-", "-", "-", "0.25", "-", "-", "0", "-", "-"]
    assert [shown for _, shown in cells] == values
    assert [bool(grey) for grey, _ in cells] == [value in ("-", "0") for value in values]
    assert re.search(r"Fv_joint1.*0\.31.*N m s/rad", whole)
    assert re.search(r"Spring.*4\.5", whole)
    assert "XY_link1" in whole


def test_drive_terms_stand_with_their_sigma_and_one_unit_a_column():
    whole = estimate()
    drives = drive_table(whole)
    assert drives is not None
    shown = {f"{s}_{owner}": p for owner, row in drives["rows"].items() for s, p in row.items()}
    expected = {p.name: p for p in whole.parameters if p.name[:2] in ("Fv", "Fs", "Ia", "Of")}
    assert shown == {name: p for name, p in expected.items() if not p.grouping}
    assert set(drives["units"]) == set(drives["symbols"]) == set(drives["words"])


def test_a_plus_minus_is_half_of_the_95_percent_interval():
    whole = estimate()
    page = report_html(whole)
    assert "Terms of every drive with 95 % intervals" in page
    term = next(p for p in whole.parameters if p.name.startswith("Fv_") and not p.grouping and p.sigma)
    half = float(half95(term.sigma, [term]))
    assert half > 1.9 * term.sigma
    assert f"&plusmn; {sigma_text(half)}</small>" in page


def test_without_warnings_signals_truth_or_validation():
    bare = replace(
        estimate(truth=False), warnings=(), signals=(), validation=(), not_identifiable={}, choices={}
    )
    page = _Page(report_html(bare))
    anchors = [attributes["id"] for tag, attributes in page.tags if tag == "section"]
    assert anchors == _SECTIONS
    assert "No validation log" in "".join(page.text)
    assert "true value" not in "".join(page.text)


def test_an_effort_masked_throughout_is_drawn_empty():
    signals = estimate().signals[0]
    masked = signals.measured.copy()
    masked[:, 2] = np.nan
    assert "rms 0" in report_html(replace(estimate(), signals=(replace(signals, measured=masked),)))


def test_without_parameters():
    empty = replace(estimate(), parameters=(), covariance=np.zeros((0, 0)), truth=None)
    assert "0 of 0 parameters" in report_html(empty)


def test_one_reason_is_shown_and_the_others_folded():
    whole = estimate()
    more = Notice("burst", "a contact at t = 3 s", "cut it out", Severity.STOP)
    verdict = replace(whole.verdict, level="bad", reasons=(*whole.verdict.reasons, more))
    body = section(replace(whole, verdict=verdict)).body
    shown, folded = str(body).split("<details>")[:2]
    assert shown.count('<li class="') == 1
    assert f"{len(verdict.reasons) - 1} more reasons</summary>" in folded
    assert "a contact" in folded
    assert shown.index('class="verdict bad"') < shown.index("<li")
    assert str(body).count('class="badge light good"') == len(JOINTS)


def test_the_report_tells_when_intervals_promise_too_much():
    whole = estimate()
    assert "too few" not in coverage(whole)
    off = {name: value + 10.0 for name, value in list(whole.truth.items())[:6]}
    assert "too few" in coverage(replace(whole, truth={**whole.truth, **off}))


def test_quality_and_owner():
    by_name = {p.name: p for p in estimate().parameters}
    assert quality(by_name["XY_link6"]) is Quality.REMOVED
    assert quality(by_name["MY_link6"]) is Quality.ZERO
    assert quality(by_name["Fs_joint_5"]) is Quality.GOOD
    assert owner_of("ZZ_link2_R") == "link2"
    assert owner_of("Fs+_leg_3") == "leg_3"
    assert owner_of("MX/M_platform") == "platform"
    assert owner_of("Iam6") == "extra terms"


@pytest.mark.parametrize(
    ("name", "grouping", "text"),
    [
        (
            "XX_link_3_R",
            "XX_link_3 - YY_link_3 + d4^2 M_link_4",
            "inertia of link_3 about x, with parts of link_4",
        ),
        ("XX_link_3_R", "XX_link_3 - YY_link_3", "inertia of link_3 about x, with other entries of it"),
        ("MZ_arm", "", "mass times centre of mass of arm along z"),
        ("Fs+_leg_3", "", "Coulomb friction of leg_3 (forwards)"),
        ("MX/M_platform", "", "mass times centre of mass of platform along x, per kilogram"),
        ("Iam6", "", ""),
    ],
)
def test_names_of_parameters_have_plain_words(name, grouping, text):
    assert in_words(name, f"{name} = {grouping}" if grouping else "") == text


def test_the_words_of_a_parameter_are_behind_its_name_in_a_reason():
    """Cryptic names such as XX_link_3_R had no explanation nearby."""
    whole = estimate()
    name = next(p.name for p in whole.parameters if p.name.startswith("MY_"))
    weak = notice("weak-parameters", names=name)
    verdict = replace(whole.verdict, level="care", reasons=(weak,))
    body = str(section(replace(whole, verdict=verdict)).body)
    assert f'<abbr title="mass times centre of mass of {owner_of(name)} along y">{name}</abbr>' in body
    assert "this name in words" in body
    shown = explained(Markup("<code>M_a</code> &amp; xM_a M_a1 M_a"), {"M_a": 'x"y', "code": "no"})
    mark = '<abbr title="x&#34;y">M_a</abbr>'
    assert shown == f"<code>{mark}</code> &amp; xM_a M_a1 {mark}"


def test_loads_stand_beside_the_verdict_and_not_among_the_choices():
    found = replace(estimate(), choices={"clock": "uniform", "load box": "2.6 +- 0.1 kg"})
    text = report_html(found)
    shown = text[: text.index('id="downloads"')]
    assert shown.index("<b>box:</b> 2.6 ± 0.1 kg") < shown.index('id="parameters"')
    assert "load box" not in shown
    console = Console(width=100, record=True, file=io.StringIO())
    print_summary(found, console=console)
    lines = console.export_text()
    assert "load box: 2.6 +- 0.1 kg" in lines
    assert lines.count("load box") == 1


def test_components_of_wrenches_stand_side_by_side():
    t = np.arange(5.0)
    names = ("B1 fx", "B1 fy", "B1 fz", "B1 mx", "B1 my", "B1 mz")
    values = np.zeros((5, 6))
    signals = Signals("table", names, ("N",) * 3 + ("N m",) * 3, t, values, values)
    text = report_html(replace(estimate(), model="wrench", signals=(signals,)))
    assert "Measured and predicted wrench" in text
    assert "steps at velocity reversals" not in text
    spec = _specs(_Page(text))["efforts-0"]
    assert spec["columns"] == 3
    assert all(one["dots"] for one in spec["panels"][0]["series"])


def test_runs_whose_clock_begins_anew_are_drawn_one_after_the_other():
    t = np.array([5.0, 6.0, 7.0, np.nan, 5.0, 6.0, 7.0])
    # A twentieth of the longest run lies between them.
    np.testing.assert_allclose(since_start(t), [0.0, 1.0, 2.0, np.nan, 2.1, 3.1, 4.1])
    np.testing.assert_allclose(since_start(t[:3]), [0.0, 1.0, 2.0])
    # A clock that starts near zero is that of the messages.
    np.testing.assert_allclose(since_start(t[:3] - 4.5), [0.5, 1.5, 2.5])
    assert np.isnan(since_start(t[3:4])).all()


def test_friction_stays_readable_beside_a_band_that_is_far_wider():
    """Axes follow curve and points, and the caption says that a band is cut."""
    from dynid.report.sections.found import friction_figure

    v = np.linspace(-1.0, 1.0, 20)
    whole = estimate()

    def drawn(half):
        curve = {"owner": "elbow", "unit": "N m", "speed": v, "effort": 2.0 * v, "half": np.full(20, half)}
        return friction_figure(replace(whole, drawing={"logs": [{"log": "a", "friction": [curve]}]}))

    assert "range" not in drawn(0.5).spec["panels"][0]["y"]
    assert drawn(50.0).spec["panels"][0]["y"]["range"] == [-6.0, 6.0]
    assert "hardly known" in drawn(50.0).caption
    assert "hardly known" not in drawn(0.5).caption


def test_a_bad_result_shows_its_reason_first_and_keeps_its_values_folded():
    unit = notice("position-unit", unit="deg", columns='"q_{i}": {unit: deg}', option="q_{i}=NAME_{i}")
    others = [Notice(code, "text", "check gears", Severity.STOP) for code in ("angles-large", "joint-error")]
    verdict = replace(estimate().verdict, level="bad", reasons=(unit, *others))
    page = report_html(replace(estimate(), verdict=verdict, warnings=(unit, *others)))
    top, _, rest = page.partition('id="found"')
    assert "<dt>Not usable for</dt><dd><b>anything yet</b>" in top
    assert "2 probable consequences of reason 1</summary>" in top
    assert "more reason" not in top
    shown = page.partition('id="downloads"')[0]
    assert "check gears" not in shown  # a consequence needs no remedy of its own
    assert "dynid identify . --write-experiment again.yaml writes" in _words(top)
    assert '<details class="question long">' in rest[:80]
    assert "not usable: see the verdict" in rest[:400]


def _words(text: str) -> str:
    """What a reader sees, in one line."""
    return " ".join(" ".join(_Page(text).text).split())


def test_one_worst_joint_is_named():
    """Two "worst" joints were shown, by percentage and by N m, and readers took the wrong one."""
    whole = estimate()
    (first, second), third = whole.verdict.joints[:2], whole.verdict.joints[2]
    small = replace(first, error_percent=6.9, error_rms=0.05, noise_floor=0.03, level="care")
    large = replace(second, error_percent=1.1, error_rms=0.3, noise_floor=0.0)
    other = replace(third, error_percent=0.5, error_rms=9.0, noise_floor=0.0, unit="N")
    page = _judged_page(small, large, other)
    assert f"Worst joint {small.name} : model error 6.9 % of its peak effort (0.04 N m). Reason" in page


def test_where_all_are_predicted_well_the_worst_joint_is_that_of_the_first_reason():
    """A wrong zero of one joint spoils the prediction of another one most."""
    whole = estimate()
    rows = [replace(row, level="good") for row in whole.verdict.joints]
    rows[0] = replace(rows[0], error_percent=2.0)
    named = notice("friction-speed", joint=JOINTS[3], percent=11.0, entry="")

    def shown(*reasons, **first):
        joints = (replace(rows[0], **first), *rows[1:])
        found = worst_joint(replace(whole, verdict=replace(whole.verdict, reasons=reasons, joints=joints)))
        return found and found.name

    assert shown(named) == JOINTS[3]
    assert shown() == JOINTS[0]
    assert shown(named, level="care") == JOINTS[0]
    wrong = notice("position-unit", unit="deg", columns="q", option="q")
    assert shown(wrong) is None  # the input is wrong, and no joint is better than another


def _judged_page(*joints: JointVerdict) -> str:
    whole = estimate()
    return _words(str(section(replace(whole, verdict=replace(whole.verdict, joints=joints))).body))


def test_the_verdict_answers_use_worst_joint_and_data():
    """The residual that papers give is lower on the page: one percentage is enough for the first screen."""
    whole = estimate()
    named = notice("friction-speed", joint=JOINTS[3], percent=11.0, entry="")
    for level, use in (("care", "Usable for"), ("bad", "Not usable for")):
        verdict = replace(whole.verdict, level=level, reasons=(named,))
        body = _words(str(section(replace(whole, verdict=verdict)).body))
        assert "Relative residual" not in body
        order = [body.index(words) for words in (use, "Worst joint", "Reason", "Next step", "Judged on")]
        assert order == sorted(order)
        assert f"{JOINTS[3]} : model error " in body
        assert (
            ("Not tested for simulation" in body) == ("have it judged for that" in body) == (level == "care")
        )


def test_a_usable_result_says_that_it_is_no_rigid_robot():
    whole, found = estimate(), Notice("not-physical", "text")
    told = "no real robot can have these parameters"
    assert told not in str(section(whole).body)
    assert told in str(section(replace(whole, warnings=(*whole.warnings, found))).body)
    bad = replace(whole.verdict, level="bad", reasons=(found,))
    assert told not in str(section(replace(whole, verdict=bad)).body)


def test_every_effort_has_its_peak_beside_its_percentage():
    whole = estimate()
    judged = tuple(replace(row, peak=12.3 + i) for i, row in enumerate(whole.verdict.joints))
    text = _words(str(section(replace(whole, verdict=replace(whole.verdict, joints=judged))).body))
    assert "joint error model error [N m] % of peak peak [N m]" in text
    first, last = ((row.error_rms**2 - row.noise_floor**2) ** 0.5 for row in (judged[0], judged[-1]))
    assert f": model error 1.4 % of its peak effort ({first:.2g} of 12.3 N m)." in text
    assert f"{last:.2g} 1.4 17.3" in text


def test_a_centre_of_mass_per_kilogram_is_shown_in_millimetres_everywhere():
    whole = estimate()
    parts = [
        replace(p, name=f"{symbol}/M_platform", unit="m", value=value, sigma=1e-4, dof=None)
        for p, symbol, value in zip(
            whole.parameters, ("MX", "MY", "MZ"), (0.0016, -0.0025, 0.2), strict=False
        )
    ]
    free = replace(whole, parameters=tuple(parts), truth=None, covariance=np.eye(3) * 1e-8)
    # 1.96 times 0.1 mm.
    shown = "centre of mass (1.60, -2.50, 200.00) +- (0.20, 0.20, 0.20) mm"
    assert dict(loads(free))["body platform"].startswith(shown)
    for text in (report_html(free), notebook_html(free)):
        assert shown.replace("+-", "±") in _words(text)


def test_labels_stand_only_beside_the_axis():
    """As in the page: marks that are given but outside of the range are left out."""
    shown = [text for _, text in labelled({"ticks": [-1, -0.5, 0, 0.5, 1]}, (-0.55, 1.05), 5, 5)]
    assert shown == ["\N{MINUS SIGN}0.5", "0", "0.5", "1"]


def test_a_short_logarithmic_axis_has_labels():
    """From 3 to 4.5 there is neither a decade nor 1, 2 or 5 times one."""
    shown = [text for _, text in labelled({"log": True}, (math.log10(2.95), math.log10(4.4)), 5, 5)]
    assert shown == ["3", "3.5", "4"]


def test_a_zero_has_one_probability_whatever_asks_for_it():
    """That of the test that flags it; what the refit with the correction shows is said in words."""
    whole = replace(
        estimate(),
        residual_tests=(
            ResidualTest("zero", "joint_2", 0.05, "rad", (0.03, 0.07), 1e-9, True),
            ResidualTest("zero", "joint_3", 0.01, "rad", (-0.01, 0.03), 0.31, False),
        ),
        hypotheses=(
            DescriptionTest("as described", 1.0, 1.0),
            DescriptionTest("zero of 'joint_2' corrected by +0.05 rad", 0.98, 0.0029),
        ),
    )
    text = _words(report_html(whole))
    flagged = text.partition("Flagged faults")[2]
    assert "joint_ 2 is the zero of the joint off (correction)? 2.86 degrees 1.72 to 4.01 < 0.0001" in flagged
    assert "joint_ 3 is the zero of the joint off (correction)? 0.573 degrees -0.573 to 1.72 0.31" in flagged
    assert "0.0029" not in flagged
    assert "zero of 'joint_ 2' 98 no better than chance" in flagged


def test_poor_predictions_follow_from_what_a_correction_explains():
    """They need no remedy of their own where the first reason removes most of the residual."""
    late = Notice("delay", "the efforts are late", "remove the delay")
    poor = Notice("joint-error", "text", "check gears")

    def shown(left):
        tests = (
            DescriptionTest("delay of all efforts", 0.01 * left, 1e-9),
            DescriptionTest("as described", 1.0, 1.0),
        )
        verdict = replace(estimate().verdict, level="care", reasons=(late, poor))
        return report_html(replace(estimate(), verdict=verdict, warnings=(late, poor), hypotheses=tests))

    assert "1 probable consequence of reason 1</summary>" in shown(7.0)
    assert "probable consequence" not in shown(80.0)
    assert "check gears" in shown(80.0)


def test_a_changed_robot_file_comes_with_the_command_to_identify_again(monkeypatch):
    pull = notice("gravity-off", "turned", turned="upside down", vector="0, 0, -9.81", described="0, 0, 9.81")
    verdict = replace(estimate().verdict, level="bad", reasons=(pull,))
    whole = replace(estimate(), verdict=verdict, warnings=(pull,))
    monkeypatch.setattr("sys.argv", ["/bin/dynid", "identify", "--robot", "arm.yaml", "--log", "a.csv"])

    def steps(robot):
        options = {**whole.provenance, "options": {"robot": robot}}
        return _words(report_html(replace(whole, provenance=options))).partition("Next step")[2]

    assert "after this change of arm.yaml , identify again" in steps("arm.yaml")
    assert "dynid identify --robot arm.yaml --log a.csv" in steps("arm.yaml")
    assert "which starts with source: arm.urdf" in steps("arm.urdf")  # gravity is a key of robot files
    assert "write a robot file of your own; identify again with it" in steps("ur5")


def test_reasons_are_named_by_their_numbers_and_parameters_as_in_the_reason():
    """The list of weak parameters begins with those of the verdict; remedies count as the page does."""
    whole = estimate()
    zero = [p for p in whole.parameters if p.ci95 is not None and p.ci95[0] < 0.0 < p.ci95[1]]
    named = zero[0].name
    weak = notice("weak-parameters", names=named)
    misfit = notice("model-misfit", "gravity")
    gain = Notice("gain", "text", "Find the effect first (reason model-misfit), then look again")
    verdict = replace(whole.verdict, level="care", reasons=(misfit, gain, weak))
    text = _words(report_html(replace(whole, verdict=verdict, warnings=(misfit, gain, weak))))
    assert "Find the effect first (reason 1), then look again" in text
    listed = text.partition("(reason 3 of the verdict); 95 % intervals, which contain zero:")[2]
    words = in_words(named, zero[0].grouping)
    assert listed.replace("_ ", "_").startswith(f" {named} ({words}): \N{MINUS SIGN}")
    assert "The intervals ignore reason 2 of the verdict" in text


def test_the_correction_that_leaves_least_is_named():
    """One that leaves nearly all of the residual is no cause, however certain it is."""

    def note(*left):
        best = [DescriptionTest(f"gain of joint_{i}", 0.01 * x, 1e-9) for i, x in enumerate(left)]
        tests = (*best, DescriptionTest("as described", 1.0, 1.0))
        return description(replace(estimate(), hypotheses=tests)).note

    assert note(99.7, 96.0) == "no correction explains the logs: the best leaves 96 % of the residual"
    assert note(60.0, 40.0).endswith("most probable cause: gain of joint_1 (leaves 40 % of the residual)")


def test_a_small_correction_has_the_words_of_its_reason_and_worse_ones_are_no_rows():
    """A reason named a correction, and the table said that it explains hardly anything."""
    tests = (
        DescriptionTest("zero of 'joint_2' corrected by -0.145 rad", 0.926, 1e-9),
        DescriptionTest("zero of 'joint_3' corrected by +0.1 rad", 1.02, 1e-9),
        DescriptionTest("as described", 1.0, 1.0),
    )
    text = _words(str(description(replace(estimate(), hypotheses=tests)).body))
    assert "zero of 'joint_ 2' corrected by -0.145 rad 93 rms residual 7.4 % smaller, not by chance" in text
    assert "These explain the logs worse: zero of 'joint_3'." in text


def test_a_section_with_a_finding_is_open():
    sure = replace(estimate(), hypotheses=(DescriptionTest("as described", 1.0, 1.0),))
    assert description(sure).folded
    doubt = Notice("dimension-off", "text", "remedy")
    assert not description(replace(sure, warnings=(doubt,))).folded


def test_what_no_motion_shows_does_not_contradict_what_this_motion_shows():
    sums = {f"M_link{i}": "it has no effect on the efforts used, for any motion" for i in (1, 2)}
    text = _words(report_html(replace(estimate(), not_identifiable={}, invisible=sums)))
    assert "Not shown by this motion" not in text
    assert "2 single values (masses, inertias) act only in such combinations" in text
    assert "M_ link1, M_ link2 it has no effect" in text  # one line for both


@pytest.mark.parametrize(
    ("mass", "sigma", "share", "origin"),
    [
        (2.0, 0.1, 1.0, "measured"),
        (2.0, None, 0.4, "only in combination"),
        (2.0, None, 0.0, "from the description"),
        (3.0, None, 0.0, "only in combination"),  # no measurement, but not the described value either
    ],
)
def test_where_a_mass_comes_from_is_said_in_words(mass, sigma, share, origin):
    body = {"name": "arm", "mass": mass, "mass_sigma": sigma, "mass_share": share, "mass_dof": None}
    body |= {"prior_mass": 2.0, "centre": None, "prior_centre": None, "payload": False}
    assert body_row(body)["origin"] == origin


def test_a_measured_centre_of_mass_has_its_interval_in_millimetres():
    body = {"name": "arm", "mass": 2.0, "mass_sigma": 0.1, "mass_share": 1.0, "mass_dof": None}
    body |= {"prior_mass": 2.0, "centre": [0.1, 0.0, 0.0], "prior_centre": None, "payload": False}
    assert body_row(body)["centre_half"] == body_row({**body, "centre_sigma": None})["centre_half"] == ""
    # 1.96 times 1 and 0.5 mm; the log does not show z
    assert body_row({**body, "centre_sigma": [1e-3, 5e-4, None]})["centre_half"] == "2.0, 0.98, -"


def test_masses_far_from_those_of_the_description_are_commented():
    def row(name, mass, centre, sigma=None):
        body = {"name": name, "mass": mass, "mass_sigma": sigma, "mass_share": 0.5, "mass_dof": None}
        body |= {"prior_mass": 2.0, "centre": centre, "prior_centre": [0.1, 0, 0], "payload": False}
        return body_row(body)

    near = row("base", 2.3, [0.119, 0.0, 0.0])
    assert far_words([near]) == ""
    light, turned = row("fore", 1.0, [0.1, 0.0, 0.0]), row("hand", 2.0, [0.1, 0.03, 0.0])
    assert (light["change"], turned["off"]) == ("-50.0 %", "30 mm off")
    assert far_words([near, light, turned]).startswith("fore and hand (mass by more than 20 %")
    assert "exchanged mass" in far_words([light])
    assert "check the description" not in far_words([light])
    assert "check the description" in far_words([row("fore", 1.0, None, sigma=0.1)])
    # Within its interval a measured mass does not contradict the description.
    assert far_words([row("fore", 1.0, None, sigma=0.9)]) == ""


def test_no_line_ends_within_an_option_of_a_command():
    assert str(ticked("run `dynid identify . --out ../a<b`")) == (
        "run <code>dynid identify . <span>--out</span> ../a&lt;b</code>"
    )


def test_care_without_a_command_says_how_to_use_the_result_as_it_is():
    """Readers found no command on the first screen, and did not know whether they may go on."""
    whole = estimate()
    misfit = notice("model-misfit", "gravity")
    verdict = replace(whole.verdict, level="care", reasons=(misfit,))
    text = _words(str(section(replace(whole, verdict=verdict)).body))
    assert (
        "Or if the error is small enough for your use, write the model as code: dynid export . --to c "
        in (f"{text} ")
    )
    assert text.count("dynid export") == 1
