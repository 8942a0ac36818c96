"""dynid from Python: logs in memory, plain options, and a result that behaves as an object should."""

from __future__ import annotations

import html
import pickle
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid import (
    Excitation,
    Experiment,
    MotionChoice,
    build_system,
    check,
    describe,
    excite,
    export,
    identify,
    load_robot,
    log_from_columns,
    prepare,
    read_log,
    run_experiment,
    simulate,
)
from dynid.base.grouping import grouping_text, readable
from dynid.common.catalogue import Severity
from dynid.common.errors import DynidError, InputError
from dynid.common.notices import Notice
from dynid.mechanism.mechanism import Actuator
from dynid.report.csv_file import parameters_csv
from dynid.report.html import report_html
from dynid.report.json_file import result_document
from dynid.robots.truth import Truth
from dynid.statistics.estimate import ParameterEstimate
from tests.fabricated import estimate
from tests.workspace import columns, dynid

FILTER = {"cutoff": 20, "decimate": 4}


@pytest.fixture(scope="module")
def arrays(made):
    return {name: np.array(cells, float) for name, cells in columns(made / "log.csv").items()}


@pytest.fixture(scope="module")
def from_file(made):
    return identify(made / "arm.yaml", made / "log.csv", filter=FILTER)


class Frame:
    """What a data frame of any library has."""

    def __init__(self, columns):
        self._columns = columns

    @property
    def columns(self):
        return list(self._columns)

    def __getitem__(self, name):
        return self._columns[name]


def _stacked(arrays):
    return {"t": arrays["t"]} | {
        key: np.column_stack([arrays[f"{key}_1"], arrays[f"{key}_2"]]) for key in ("q", "tau")
    }


@pytest.mark.parametrize("kind", [dict, Frame, _stacked])
def test_columns_in_memory_give_what_their_file_gives(made, arrays, from_file, kind):
    found = identify(made / "arm.yaml", kind(arrays), filter=FILTER)
    # The same numbers on the same path; a stacked log has no velocities in either form here.
    assert [p.value for p in found.parameters] == [p.value for p in from_file.parameters]


def _seconds(arrays, unit):
    return (arrays["t"] * 1e9).round().astype("int64").astype(unit)


class Lazy(Frame):
    """A lazy frame of polars: nothing can be read before it is collected."""

    def __getitem__(self, name):
        raise TypeError("not subscriptable")

    def collect(self):
        return Frame(self._columns)


class Arrow(Frame):
    """A table of pyarrow: `columns` are the arrays, `column_names` their names."""

    @property
    def columns(self):
        return list(self._columns.values())

    @property
    def column_names(self):
        return list(self._columns)


@pytest.mark.parametrize(
    "kind",
    [
        lambda arrays: arrays | {"t": _seconds(arrays, "timedelta64[ns]")},
        lambda arrays: {name: values.astype(object) for name, values in arrays.items()},
        Lazy,
        Arrow,
    ],
    ids=["durations", "objects", "lazy", "arrow"],
)
def test_other_tables_in_memory_are_read_as_arrays(made, arrays, kind):
    robot = load_robot(made / "arm.yaml")
    plain, other = log_from_columns(arrays, robot), log_from_columns(kind(arrays), robot)
    # Durations are whole nanoseconds: half of one from the time in the file.
    np.testing.assert_allclose(other.t, plain.t, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(other.q, plain.q)
    np.testing.assert_array_equal(other.tau, plain.tau)


def test_joints_in_rows_are_refused_with_the_shape_that_was_given(made, arrays):
    given = _stacked(arrays)
    count = len(given["t"])
    with pytest.raises(
        InputError, match=rf"'q' has shape \(2, {count}\), but 't' has \({count},\)"
    ) as raised:
        identify(made / "arm.yaml", given | {"q": given["q"].T})
    assert "q.T" in raised.value.remedy


def test_a_table_without_rows_is_refused_as_such(made, arrays):
    with pytest.raises(InputError, match="no samples"):
        identify(made / "arm.yaml", {name: values[:0] for name, values in arrays.items()})


def test_errors_can_be_caught_by_their_public_names():
    import dynid

    with pytest.raises(dynid.InputError, match="did you mean 'scara'"):
        dynid.load_robot("scarra")
    assert issubclass(dynid.InputError, dynid.DynidError)


def test_renamed_columns_are_plain_options(made, arrays, from_file):
    renamed = {"angle" if name == "q_1" else name: values for name, values in arrays.items()}
    renamed["q_2"] = np.rad2deg(renamed["q_2"])
    given = {"q_1": "angle", "q_2": {"unit": "deg"}}
    found = identify(made / "arm.yaml", renamed, columns=given, filter=FILTER)
    assert found.provenance["options"]["columns"]["q_1"]["name"] == "angle"
    # Degrees and back cost one rounding of the positions.
    assert found.parameters[0].value == pytest.approx(from_file.parameters[0].value, rel=1e-6)


def test_columns_are_written_as_on_the_command_line(made, arrays):
    """A unit, scale or offset behind the name; a header that contains the whole text is that column."""
    robot, n = load_robot(made / "arm.yaml"), len(arrays["t"])
    table = {**arrays, "Zeit": 1e3 * arrays["t"], "J1 [deg]": np.rad2deg(arrays["q_1"]), "i*2": np.ones(n)}
    for name in ("t", "q_1", "tau_1"):
        del table[name]
    given = {"t": "Zeit[ms]", "q_1": "J1 [deg]", "tau_1": "i*2"}
    log = log_from_columns(table, robot, columns=given)
    np.testing.assert_allclose(log.t, arrays["t"], atol=1e-12)  # s: ms and back
    np.testing.assert_allclose(log.q[:, 0], arrays["q_1"], atol=1e-12)  # rad: degrees and back
    assert np.all(log.tau[:, 0] == 1.0)
    log = log_from_columns(table, robot, columns={**given, "q_1": "J1[deg]*2 + 0.5"})
    np.testing.assert_allclose(log.q[:, 0], 2.0 * arrays["q_1"] + 0.5, atol=1e-12)


def test_columns_that_are_absent_are_named_at_once(made, arrays):
    with pytest.raises(InputError, match=r"columns 'a' \(for q_1\), 'b' \(for tau_2\) are not in the file"):
        log_from_columns(arrays, load_robot(made / "arm.yaml"), columns={"q_1": "a", "tau_2": "b"})
    with pytest.raises(InputError, match="'p_1', 'p_2' are not quantities"):
        log_from_columns(arrays, load_robot(made / "arm.yaml"), columns={"p_1": "a", "p_2": "b"})


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({}, {"columns": {"q_1": {"nam": "x"}}}, "did you mean 'name'"),
        ({}, {"columns": {"q_1": 3}}, "columns.q_1: expected a string, found '3'"),
        ({}, {"payloads": {"ball": {"bdy": "fore"}}}, "did you mean 'body'"),
        ({"q_2": np.zeros(3)}, {}, r"'q_2' has shape \(3,\)"),
        ({"t": None}, {}, "no time column"),
        ({"tau_1": np.array(["a"] * 801), "tau_2": None}, {}, "no effort column"),
    ],
)
def test_arrays_that_cannot_be_are_refused(made, arrays, change, options, said):
    given = {name: values for name, values in {**arrays, **change}.items() if values is not None}
    if isinstance(change.get("tau_1"), np.ndarray):
        given["tau_1"] = np.array(["a"] * len(given["t"]))
    with pytest.raises(InputError, match=said):
        identify(made / "arm.yaml", given, **options)


def test_a_result_is_a_mapping_of_its_parameters():
    found = estimate()
    first = found.parameters[0].name
    assert first in found
    assert "nobody" not in found
    assert list(found) == [p.name for p in found.parameters]
    assert len(found) == len(found.parameters)
    assert replace(found, parameters=())  # a result without parameters is still one
    with pytest.raises(DynidError, match="no parameter"):
        found["nobody"]
    grouped = next(p for p in found.parameters if p.grouping)
    with pytest.raises(DynidError, match=f"it is part of {grouped.name}"):
        found[grouped.grouping.split(" = ")[1].split()[0]]


def test_a_result_has_the_methods_of_a_mapping():
    found = estimate()
    first = found.parameters[0]
    assert dict(found.items()) == dict(found) == {p.name: p for p in found.parameters}
    assert list(found.values()) == list(found.parameters)
    assert list(found.keys()) == list(found)
    assert found.get(first.name) is first
    assert found.get("nobody") is None
    with pytest.raises(KeyError, match="no parameter 'nobody'"):
        found["nobody"]
    assert float(first) == first.value
    assert f"{first:.3f}" == f"{first.value:.3f}"
    assert f"{first}" == repr(first)


def test_time_labels_of_frames_need_no_name(made, arrays, from_file):
    pandas = pytest.importorskip("pandas")
    values = {name: column for name, column in arrays.items() if name != "t"}
    since = pandas.to_timedelta(arrays["t"], unit="s")
    date = pandas.Timestamp("2026-03-01 10:00")
    for index in (since, date + since, (date + since).tz_localize("Europe/Paris")):
        frame = pandas.DataFrame(values, index=index)
        assert identify(made / "arm.yaml", frame, filter=FILTER).params == pytest.approx(from_file.params)
    with pytest.raises(InputError, match="t"):  # numbers that label rows are no time
        identify(made / "arm.yaml", pandas.DataFrame(values), filter=FILTER)


def test_units_of_xarray_variables_are_read(made, arrays, from_file):
    class Variable(np.ndarray):
        coords: dict[str, object]
        attrs: dict[str, str]

    def variable(values, unit):
        made_of = values.view(Variable)
        made_of.coords, made_of.attrs = {}, {"units": unit}
        return made_of

    units = {"q_1": "deg", "q_2": "deg", "tau_1": "N m", "tau_2": "N m", "t": "s"}
    data = {n: variable(np.rad2deg(x) if n[0] == "q" else x + 0.0, units[n]) for n, x in arrays.items()}
    assert identify(made / "arm.yaml", data, filter=FILTER).params == pytest.approx(from_file.params)
    data["q_1"] = variable(arrays["q_1"] + 0.0, "furlong")
    with pytest.raises(InputError, match="furlong"):
        identify(made / "arm.yaml", data, filter=FILTER)


def test_predicted_efforts_have_units(arrays, from_file):
    frame = from_file.predict(arrays).to_dataframe()
    units = frame.attrs["units"]
    assert set(units) == {"t", *frame.columns}
    assert units[frame.columns[0]] == "N m"
    assert units["power"] == "W"


def test_a_result_is_saved_as_a_folder(tmp_path):
    with pytest.raises(InputError, match="as a folder, not as a file"):
        estimate().save(tmp_path / "arm.json")
    assert not list(tmp_path.iterdir())
    estimate().save(tmp_path / "arm_1.5")  # a dot alone is no ending of a file
    assert (tmp_path / "arm_1.5" / "result.json").is_file()


def test_a_result_is_shown_in_one_line():
    assert len(repr(estimate())) < 200
    assert "verdict='care', 42 parameters" in repr(estimate())
    assert repr(replace(estimate(), warnings=(Notice("delay", "late"),))).endswith(", warnings: 1)")


def test_what_functions_return_is_shown_in_one_line(made, from_file, tmp_path):
    """Arrays and lists by their size: the fields themselves would fill pages."""
    robot = load_robot(made / "arm.yaml")
    log = read_log(made / "log.csv", made / "arm.yaml")
    shown = [robot, log, describe(made / "arm.yaml"), check(robot, log), export(from_file, "yaml", tmp_path)]
    simulated = simulate(made / "arm.yaml", {"rate": 100.0, "duration": 1.0, "truth": Truth("prior")})
    problem = prepare(robot, [log], Experiment(robot=robot))
    for one in (*shown, simulated, problem, build_system(problem), from_file.plot):
        assert re.fullmatch(rf"{type(one).__name__}\(.*\)", repr(one))
        assert len(repr(one)) < 500, repr(one)
    assert "t: array (801,)" in repr(log)
    assert "care" in str(shown[3]) or "note" in str(shown[3])  # the findings
    parameter = from_file["Fv_joint_1"]
    assert repr(parameter).startswith(
        f"ParameterEstimate(Fv_joint_1 = {parameter.value:.6g} N m s/rad, 95 %: "
    )


def test_a_mechanism_prints_its_joints():
    """What a wrong `parent:` or a forgotten motor looks like; one line is enough for the interpreter."""
    robot = load_robot("stewart")
    assert repr(robot) == (
        "Mechanism('stewart': 19 movable joints, 6 loops, 6 motors, 6 measured, model inverse)"
    )
    lines = str(robot).splitlines()
    assert len(lines) == 2 + len(robot.joints) + 1
    assert "leg1   prismatic  cylinder1  rod1       yes       Fv Fs Off" in lines
    assert lines[-1] == "loops: ball1, ball2, ball3, ball4, ball5, ball6"
    geared = replace(
        load_robot("scara"), actuators=(Actuator("m1", {"shoulder": 50.0}),), drive={"m1": ("Fv",)}
    )
    assert str(geared).splitlines()[-1] == "motors: m1 (Fv)"


def test_a_check_is_shown_escaped_in_a_notebook(made):
    found = check(made / "arm.yaml", made / "log.csv")
    assert found._repr_html_() == f"<pre>{html.escape(str(found))}</pre>"
    assert not [line for line in str(found).splitlines() if line != line.rstrip()]


def test_an_exciting_motion_is_designed_for_a_mechanism_and_a_path(made):
    """As everywhere; other processes and a journal need what a file says."""
    quick = {"starts": 1, "hops": 0, "period": 2.0}
    robot = load_robot("scara")
    found = excite(robot, quick)
    assert isinstance(found, Excitation)
    assert repr(found).startswith("Excitation('scara': 4 coordinates, 2 s, logdet ")
    assert "begins and ends at rest" in str(found)
    assert found.criterion == excite("scara", quick).criterion
    file = Path(str(robot.file))
    assert excite(file, quick).criterion == found.criterion
    with pytest.raises(InputError, match="need a robot given by a file"):
        excite(robot, quick, jobs=2)


def test_settings_of_a_simulation_are_a_mapping_too():
    with pytest.raises(InputError, match="no 'duratoin'; did you mean 'duration'"):
        simulate("scara", {"duratoin": 1.0})
    found = simulate("scara", {"duration": 0.1, "motion": {"frequency": 0.5, "draws": 1}})
    assert found.settings.motion == MotionChoice(frequency=0.5, draws=1)
    with pytest.raises(InputError, match="'motion' of a simulation has no 'frequncy'; did you mean 'freq"):
        simulate("scara", {"motion": {"frequncy": 0.5}})
    with pytest.raises(InputError, match="'motion' of a simulation cannot be made"):
        simulate("scara", {"motion": "run.csv"})


def test_a_robot_on_locked_cables_is_released_as_a_file_says(tmp_path):
    """As `dynid simulate --motion releases.csv`; without a file at random."""
    excite("cable4", {"starts": 1, "search": 2}).save(tmp_path)
    short = {"duration": 0.5, "rate": 50.0}
    log = simulate("cable4", {**short, "motion": {"file": str(tmp_path / "releases.csv")}}).log()
    assert len(log.segments) == 2
    assert len(simulate("cable4", short).log().segments) == 12


def test_an_experiment_is_run_from_its_file(made, from_file):
    (made / "short.yaml").write_text("robot: arm.yaml\nlogs: [log.csv]\nfilter: {cutoff: 20, decimate: 4}\n")
    assert run_experiment(made / "short.yaml").params == from_file.params


def test_a_word_of_a_list_given_as_a_flag_is_refused_with_the_list(made):
    with pytest.raises(InputError) as refused:
        identify(made / "arm.yaml", made / "log.csv", auto=False)
    assert refused.value.remedy == "use one of on, off"


def test_a_notebook_shows_verdict_warnings_and_table_escaped():
    hostile = (Notice("delay", "<script>alert(1)</script>", "a & b"),)
    whole = estimate()
    found = replace(whole, warnings=hostile, verdict=replace(whole.verdict, reasons=hostile))
    page = found._repr_html_()
    assert "Usable with care" in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert found.parameters[0].name in page


def test_a_notebook_shows_the_reasons_of_the_verdict_first():
    """The same ones in the same order as the report; other warnings by their codes."""
    whole = estimate()
    reasons = tuple(Notice(code, f"text of `{code}`", "remedy") for code in ("delay", "gain"))
    warned = (Notice("clock-jitter", "text"), *reasons[::-1])
    found = replace(whole, verdict=replace(whole.verdict, reasons=reasons), warnings=warned)
    page = found._repr_html_()
    assert page.index("text of <code>delay</code>") < page.index("text of <code>gain</code>")
    assert "also noted: clock-jitter (the steps of the clock vary much)<" in page
    assert "model error, % of peak" in page


def test_a_notebook_shows_notes_by_their_codes_only():
    whole = estimate()
    note = Notice("massless-frame", "text of the note", severity=Severity.NOTE)
    good = replace(whole, verdict=replace(whole.verdict, level="good", reasons=()), warnings=(note,))
    assert "text of the note" not in good._repr_html_()
    assert "also noted: massless-frame" in good._repr_html_()


def test_a_verdict_is_one_line_with_its_reasons():
    reasons = (Notice("delay", "text"), Notice("gain", "text"))
    shown = repr(replace(estimate().verdict, level="care", headline="Usable with care", reasons=reasons))
    assert shown == "Verdict('care': Usable with care; reasons: delay, gain)"


def test_a_wide_table_of_drives_is_printed_in_parts():
    """No column is cut, and every part names its drives."""
    whole = estimate()
    terms = ("Ia", "Fv", "Fs", "Fv+", "Fv-", "Fs+", "Fs-", "Off", "Fr", "Fl", "Fk")
    interval = (1.1, 1.3)
    drive = [ParameterEstimate(f"{term}_motor", "N m s/rad", 1.2, 0.1, 8.0, interval) for term in terms]
    text = str(replace(whole, parameters=(*whole.parameters, *drive)).summary())
    lines = [line for line in text.splitlines() if line.startswith("drive")]
    assert len(lines) > 1
    assert all(f" {term} " in f"{' '.join(lines)} " for term in terms)
    assert text.count("\nmotor ") == len(lines)


def test_relations_have_all_digits_for_programs_and_few_for_people():
    coefficients = {"ZZ_a": 1.0, "M_b": 0.123456789012345, "M_c": -2.0, "M_link1.23456": 1.5e-7 / 3}
    exact = grouping_text(coefficients, {("ZZ_a", "M_c"): "-0.98765 (d3, r4)"})
    # 1.5e-7 / 3 is no decimal fraction: its last digit is that of the division.
    tiny = repr(1.5e-7 / 3)
    assert exact == f"ZZ_a_R = ZZ_a + 0.123456789012345 M_b - 0.98765 (d3, r4) M_c + {tiny} M_link1.23456"
    assert readable(exact) == "ZZ_a_R = ZZ_a + 0.123 M_b - 0.988 (d3, r4) M_c + 5e-08 M_link1.23456"


def test_result_files_for_people_round_relations_and_json_does_not():
    found = estimate()
    exact = "ZZ_a_R = ZZ_a + 0.02327299999999998 M_b - l1^2 M_c"
    first = replace(found.parameters[0], name="ZZ_a_R", grouping=exact)
    found = replace(found, parameters=(first, *found.parameters[1:]))
    assert result_document(found)["parameters"][0]["grouping"] == exact
    assert "ZZ_a_R = ZZ_a + 0.023273 M_b - l1^2 M_c" in parameters_csv(found)  # six digits
    page = report_html(found).partition('id="downloads"')[0]  # behind it is the JSON, for its button
    assert "0.0233 M_b" in page
    for text in (parameters_csv(found), page):
        assert "0.02327299999999998" not in text


def test_info_prints_three_digits_where_its_json_has_all():
    shown, document = dynid("info", "serial6").stdout, dynid("info", "serial6", "--json").stdout
    numbers = [float(one) for one in re.findall(r"([0-9.]+) ZZ_B4", document)]
    # Structural factors are exact to 1e-12; their last digits depend on the machine.
    assert min(abs(one - 0.964714184898) for one in numbers) < 1e-12
    assert "0.965 ZZ_B4" in shown


def _xarray(arrays):
    import xarray

    signals = {key: ("t", x) for key, x in arrays.items() if key != "t"}
    return xarray.Dataset(signals, coords={"t": arrays["t"]})


def _pandas(arrays):
    import pandas

    return pandas.DataFrame(arrays).set_index("t")


def _polars(arrays):
    import polars

    return polars.DataFrame(arrays)


@pytest.mark.parametrize("made_frame", [_pandas, _polars, _xarray])
def test_frames_of_other_libraries_are_logs(made, arrays, from_file, made_frame):
    estimate = identify(made / "arm.yaml", made_frame(arrays), filter=FILTER)
    assert estimate.params == from_file.params


def test_a_result_has_what_users_of_statistics_know(made, arrays, from_file):
    names = list(from_file)
    assert from_file.params[names[0]] == from_file[names[0]].value
    assert from_file.cov.names == tuple(one.name for one in from_file.parameters if one.sigma is not None)
    first = from_file.cov.names[0]
    assert from_file.cov[first, first] == pytest.approx(from_file[first].sigma ** 2, rel=1e-12)
    assert np.asarray(from_file.cov).shape == 2 * (len(from_file.cov.names),)
    assert from_file.cov.correlation[first, first] == pytest.approx(1.0)
    assert from_file.conf_int()[first] == from_file[first].ci95
    narrow, wide = from_file.conf_int(0.5)[first], from_file.conf_int(0.99)[first]
    assert wide[0] < from_file[first].ci95[0] < narrow[0] < narrow[1] < from_file[first].ci95[1] < wide[1]
    with pytest.raises(InputError, match=r"between 0\.5 and 1"):
        from_file.conf_int(95)
    with pytest.raises(InputError, match=r"0\.05 is not between 0\.5 and 1"):
        from_file.conf_int(0.05)  # the alpha of other libraries would give a very narrow interval
    with pytest.raises(DynidError, match="did you mean"):
        from_file.cov[first, first + "x"]
    with pytest.raises(DynidError, match="an entry has two"):
        from_file.cov[first]
    assert dict(from_file)[first] is from_file[first]
    noise = 1e-3 * np.random.default_rng(0).standard_normal((len(arrays["t"]), 2))
    shown = repr(from_file.predict({"t": arrays["t"], "q": _stacked(arrays)["q"] + noise}))
    assert "efforts=('joint_1', 'joint_2')" in shown
    assert "warning: rough-trajectory" in shown
    frame = from_file.to_dataframe()
    assert list(frame.index) == names
    assert frame.loc[first, "sigma"] == from_file[first].sigma
    assert list(frame)[:5] == ["value", "sigma", "low95", "high95", "unit"]
    assert "grouping" not in frame
    assert list(from_file.to_dataframe(grouping=True))[-1] == "grouping"
    text = from_file.summary()
    assert first in text.text
    assert str(text) == text.text
    assert first.replace("_", r"\_") in text.latex
    assert first in text.html


def test_a_result_predicts_and_validates_columns_in_memory(made, arrays, from_file):
    found = from_file.predict(arrays).to_dataframe()
    assert found.index.name == "t"
    assert len(found) == len(arrays["t"])
    checked = from_file.validate([arrays])
    assert checked[0].effort_percent == pytest.approx(from_file.validate(made / "log.csv")[0].effort_percent)


def test_other_logs_may_have_other_columns(arrays, from_file, made):
    """As `predict`; without them those of the identification are expected."""
    renamed = {name.replace("q_", "axis").replace("tau_", "motor"): x for name, x in arrays.items()}
    names = {"q_{i}": "axis{i}", "tau_{i}": "motor{i}"}
    expected = from_file.validate(arrays)[0].effort_percent
    assert from_file.validate(renamed, columns=names)[0].effort_percent == expected
    mapped = identify(made / "arm.yaml", renamed, filter=FILTER, columns=names)
    with pytest.raises(InputError, match=r"give another one, e\.g\. columns={'q_{i}': 'NAME_{i}'}"):
        mapped.validate(arrays)
    assert mapped.validate(arrays, columns={})[0].effort_percent == pytest.approx(expected)


def test_data_of_the_fit_are_not_independent_in_any_form(made, arrays, from_file):
    by_arrays = identify(made / "arm.yaml", arrays, filter=FILTER)
    part = {name: values[100:900] for name, values in arrays.items()}
    for result in (by_arrays, from_file):
        for log in (arrays, made / "log.csv", part):
            assert not result.validate(log)[0].independent
    other = {name: values.copy() for name, values in arrays.items()}
    for name in other:
        if name.startswith("tau"):
            other[name] += 1e-3 * np.random.default_rng(0).normal(size=len(other[name]))
    assert by_arrays.validate(other)[0].independent


def test_the_covariance_of_a_result_cannot_be_changed(from_file):
    for matrix in (from_file.covariance, replace(from_file).covariance):
        with pytest.raises(ValueError, match="read-only"):
            matrix[0, 0] = 0.0


def test_a_result_is_equal_to_its_copies(made, from_file, tmp_path):
    from_file.save(tmp_path / "saved")
    again = type(from_file).load(tmp_path / "saved")
    assert again == from_file
    assert hash(again) == hash(from_file)
    assert pickle.loads(pickle.dumps(from_file)) == from_file  # noqa: S301
    assert replace(from_file, model="power") != from_file
    assert from_file != 1


def elements(picture: str) -> list[str]:
    """Kinds of the elements of a picture, which is well-formed XML."""
    from defusedxml.ElementTree import fromstring

    return [one.tag.rpartition("}")[2] for one in fromstring(picture).iter()]


def test_a_result_plots_itself(made, from_file, tmp_path):
    """Each plot is a picture in a notebook, and a file of either kind."""
    plot = from_file.plot
    for name in ("friction", "efforts", "parameters", "correlation"):
        figure = getattr(plot, name)()
        assert "svg" in elements(figure.svg)
        assert figure.svg in figure._repr_html_()
        figure.save(tmp_path / f"{name}.svg")
        assert "svg" in elements((tmp_path / f"{name}.svg").read_text(encoding="utf-8"))
        figure.save(tmp_path / f"{name}.html")
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        assert page.startswith("<!doctype html>")
        assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
        assert name[:6] in repr(figure) or name == "parameters"
    with pytest.raises(InputError, match=r"as \.svg or \.html, not as .\.png"):
        figure.save(tmp_path / "x.png")
    with pytest.raises(InputError, match="cannot be written"):
        figure.save(tmp_path / "none" / "x.svg")


def test_friction_of_single_drives_is_plotted(from_file):
    every = [one["title"] for one in from_file.plot.friction().spec["panels"]]
    owner = every[1].partition(" ")[0]
    assert [one["title"] for one in from_file.plot.friction(owner).spec["panels"]] == every[1:2]
    assert [one["title"] for one in from_file.plot.friction("*", speed=2.0).spec["panels"]] == every
    with pytest.raises(InputError, match=f"no drive '{owner}x' .*did you mean '{owner}'"):
        from_file.plot.friction(f"{owner}x")
    for speed in (-1.0, 0.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="largest speed"):
            from_file.plot.friction(speed=speed)


def test_efforts_of_other_logs_are_plotted(made, arrays, from_file, tmp_path):
    own = from_file.plot.efforts(from_file.signals[0].log)
    assert own.spec == from_file.plot.efforts().spec
    assert "stack" in {one["kind"] for one in own.spec["panels"][0]["series"]}  # gravity, inertia, ...
    other = from_file.plot.efforts(arrays)
    assert len(other.spec["panels"]) == len(own.spec["panels"])
    bare = replace(from_file, signals=(), drawing={})  # as read from a file
    assert len(bare.plot.efforts(made / "log.csv").spec["panels"]) == len(own.spec["panels"])
    with pytest.raises(InputError, match="name a log"):
        bare.plot.efforts()
    from_file.save(tmp_path / "saved")
    loaded = type(from_file).load(tmp_path / "saved")
    assert [one["title"] for one in loaded.plot.efforts().spec["panels"]] == [
        one["title"] for one in own.spec["panels"]
    ]
    for stored, first in zip(loaded.signals, from_file.signals, strict=True):
        assert (stored.log, stored.names, stored.units) == (first.log, first.names, first.units)
        for kind in ("t", "measured", "predicted"):  # ten digits in the file
            np.testing.assert_allclose(getattr(stored, kind), getattr(first, kind), rtol=1e-9)
    loaded.save(tmp_path / "again")
    csv = [(tmp_path / name / "signals.csv").read_text(encoding="utf-8") for name in ("saved", "again")]
    assert csv[0] == csv[1]
    for text in (
        "",
        "a,b\n1,2\n",
        "log,use,t\n" + 200_000 * "x",
        csv[0][:-9] + "x\n",
        "log,use,t,measured_joint_1,predicted_joint_1\nlog,identify\n",
    ):
        (tmp_path / "saved" / "signals.csv").write_text(text, encoding="utf-8")
        assert type(from_file).load(tmp_path / "saved").signals == ()
    stored, drawn = bare.plot.friction(speed=2.0), from_file.plot.friction()
    assert len(stored.spec["panels"]) == len(drawn.spec["panels"])
    assert "points" not in {one["kind"] for one in stored.spec["panels"][0]["series"]}
    assert len(from_file.plot.friction(speed=2.0).spec["panels"]) == len(drawn.spec["panels"])
    frictionless = tuple(one for one in bare.parameters if not one.name.startswith("F"))
    with pytest.raises(InputError, match="no friction"):
        replace(bare, parameters=frictionless).plot.friction()


def test_pictures_escape_hostile_names():
    whole = estimate(
        joints=(
            "a<b&c>",
            '"quoted"',
            "</svg><script>",
            *("abc"),
        )
    )
    for figure in (whole.plot.parameters(), whole.plot.efforts(), whole.plot.correlation()):
        assert "script" not in elements(figure.svg)
        assert "<script>" not in figure._repr_html_()


def test_pictures_show_the_values(tmp_path):
    """Places of points are affine in their values, up to a tenth of a pixel."""
    from dynid.report.plots import figure, line, panel, points

    x = np.linspace(-2.0, 3.0, 40)
    made = figure("f", [panel([line("a", x, 2.0 * x), points("b", x, 1.0 - x)])], "two lines", "")
    d = re.search(r'<path d="(M[^"]*)"', made.svg)[1]
    places = np.array([one.split() for one in re.split("[ML]", d)[1:]], float)
    marks = np.array(re.findall(r'cx="([-0-9.]+)" cy="([-0-9.]+)"', made.svg), float)
    for own, y in ((places, 2.0 * x), (marks, 1.0 - x)):
        for pixels, values in ((own[:, 0], x), (own[:, 1], y)):
            fit = np.polyval(np.polyfit(values, pixels, 1), values)
            assert np.abs(pixels - fit).max() < 0.1  # pixels are rounded to 0.05
    up = np.polyfit(2.0 * x, places[:, 1], 1)
    assert np.allclose(up, np.polyfit(1.0 - x, marks[:, 1], 1), rtol=0.01)


def test_a_result_in_memory_is_exported(made, from_file, tmp_path):
    import dynid

    done = dynid.export(from_file, to="numpy", out=tmp_path / "code")
    from_file.save(tmp_path / "saved")
    again = dynid.export(str(tmp_path / "saved"), to=["numpy"], out=str(tmp_path / "again"))
    assert [one.format for one in done.written] == ["numpy"]
    assert not done.written[0].certificate.failure
    texts = [one.written[0].files[0].read_text(encoding="utf-8") for one in (done, again)]
    assert texts[0] == texts[1]
    with pytest.raises(InputError, match="unknown format 'numpi'"):
        dynid.export(from_file, to="numpi", out=tmp_path / "none")


def test_efforts_of_validation_logs_are_split(made, arrays):
    """Gravity, inertia, Coriolis and friction add up to the predicted effort."""
    found = identify(made / "arm.yaml", made / "log.csv", validate=[arrays], filter=FILTER)
    [drawn], unseen = found.drawing["unseen"], found.signals[-1]
    assert unseen.validation
    predicted = unseen.predicted[drawn["rows"]]
    off = sum(drawn["terms"].values()) - predicted  # NaN at masked samples
    # Parts are at samples as logged, predictions behind the row filter: a few percent of the norm apart.
    assert np.nansum(off**2) < 0.05**2 * np.nansum(predicted**2)
    series = found.plot.efforts(unseen.log).spec["panels"][0]["series"]
    [parts] = [one["parts"] for one in series if one["kind"] == "stack"]
    assert [part["name"] for part in parts] == ["gravity", "inertia", "Coriolis", "friction"]
