"""Columns in memory: labels, units, masks, times and odd members of frames, data sets and dictionaries."""

from datetime import UTC, datetime
from inspect import unwrap

import numpy as np
import pandas as pd
import pytest

from dynid.common.errors import InputError
from dynid.motion.in_memory import has_columns
from dynid.motion.logs import log_from_arrays, log_from_columns, read_log
from dynid.prediction.predict import predict_efforts
from tests.arms import arm, recording
from tests.test_predict import exact

NAMES = ("joint1", "joint2")


@pytest.fixture(scope="module")
def robot():
    return arm()


@pytest.fixture(scope="module")
def columns():
    return recording(seconds=1.0)


@pytest.fixture(scope="module")
def plain(robot, columns):
    return log_from_columns(columns, robot)


def stacked(columns, order=(0, 1)):
    """Matrices with a column per joint, in another order."""
    return {kind: np.column_stack([columns[f"{kind}_{k + 1}"] for k in order]) for kind in ("q", "tau")} | {
        "t": columns["t"]
    }


def data_set(columns, labels=None, order=(0, 1)):
    import xarray

    given = stacked(columns, order)
    signals = {kind: (("time", "joint"), given[kind]) for kind in ("q", "tau")}
    return xarray.Dataset(signals, coords={"time": given["t"], **({"joint": labels} if labels else {})})


def same(log, other):
    np.testing.assert_array_equal(log.q, other.q)
    np.testing.assert_array_equal(log.tau, other.tau)
    np.testing.assert_allclose(log.t, other.t, atol=1e-12)  # s: rounding of a difference of dates
    return True


def names_of(robot):
    return [joint.name for joint in robot.joints]


@pytest.mark.parametrize("labels", ["names", "from 0", "from 1", "J1", "floats"])
def test_labels_of_a_data_set_name_its_columns(robot, columns, plain, labels):
    """The columns are exchanged, and so are their labels: numbers from 0 or 1 count too."""
    given = {
        "names": names_of(robot),
        "from 0": [0, 1],
        "from 1": [1, 2],
        "J1": ["J1", "J2"],
        "floats": [1.0, 2.0],
    }[labels]
    assert same(log_from_columns(data_set(columns, given), robot), plain)
    assert same(log_from_columns(data_set(columns, given[::-1], (1, 0)), robot), plain)
    assert same(log_from_columns(data_set(columns, given[::-1], (1, 0)).transpose(), robot), plain)


def test_labels_that_are_no_joints_are_refused(robot, columns, plain):
    with pytest.raises(InputError, match=r"no column for the position .* columns are time, q_a, q_b, tau_a"):
        log_from_columns(data_set(columns, ["a", "b"]), robot)
    assert same(log_from_columns(data_set(columns), robot), plain)  # without labels: their order
    mapped = {"q_1": "q_a", "q_2": "q_b", "tau_1": "tau_a", "tau_2": "tau_b"}
    assert same(log_from_columns(data_set(columns, ["a", "b"]), robot, columns=mapped), plain)
    with pytest.raises(InputError, match="'q_a' occurs 2 times"):
        log_from_columns(data_set(columns, ["a", "a"]), robot)


def test_variables_without_samples_do_not_matter(robot, columns, plain):
    given = data_set(columns, names_of(robot)).assign(g=9.81, mass=("joint", [1.0, 2.0]))
    log = log_from_columns(given, robot)
    assert same(log, plain)
    assert log.choices["unused columns"] == "g (a variable without 'time'), mass (a variable without 'time')"


def test_units_of_a_frame_are_applied(robot, columns, plain):
    frame = pd.DataFrame(columns)
    frame["q_1"], frame["tau_2"] = np.rad2deg(frame.q_1), 1e3 * frame.tau_2
    frame.attrs["units"] = {"t": "s", "q_1": "deg", "tau_2": "mN m", "q_2": "1", "power": "W"}
    for given in (frame, frame.set_index("t")):
        log = log_from_columns(given, robot)
        np.testing.assert_allclose(log.q, plain.q, atol=1e-15)  # rad: degrees and back
        np.testing.assert_allclose(log.tau, plain.tau, atol=1e-15)
        assert "q_1 from 'q_1 [deg]' in deg" in log.choices["columns by their names"]
    scaled = log_from_columns(frame, robot, columns={"q_1": {"unit": "rad"}})  # a given unit counts
    np.testing.assert_array_equal(scaled.q[:, 0], frame.q_1)
    frame.attrs["units"]["q_1"] = "mm"
    with pytest.raises(InputError, match="the unit 'mm' does not fit the position"):
        log_from_columns(frame, robot)


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_units_of_a_frame_are_applied_from_its_file(robot, columns, plain, kind, tmp_path):
    frame = pd.DataFrame({**columns, "t": 1e3 * columns["t"], "q_1": np.rad2deg(columns["q_1"])})
    frame.attrs["units"] = {"t": "ms", "q_1": "deg", "power": "W"}
    file = tmp_path / f"log.{kind}"
    getattr(frame, f"to_{kind}")(file)
    log = read_log(file, robot)
    np.testing.assert_allclose(log.q, plain.q, atol=1e-15)  # rad: degrees and back
    np.testing.assert_allclose(log.t, plain.t, atol=1e-12)  # s: ms and back
    frame.attrs["units"]["q_1"] = "m"
    getattr(frame, f"to_{kind}")(file)
    with pytest.raises(InputError, match="the unit 'm' does not fit the position"):
        read_log(file, robot)


def test_units_of_a_matrix_are_those_of_its_columns(robot, columns, plain):
    given = data_set(columns, names_of(robot))
    given["q"] = np.rad2deg(given.q).assign_attrs(units="deg")
    np.testing.assert_allclose(log_from_columns(given, robot).q, plain.q, atol=1e-15)  # rad
    matrices = stacked(columns)
    matrices["q [deg]"] = np.rad2deg(matrices.pop("q"))
    np.testing.assert_allclose(log_from_columns(matrices, robot).q, plain.q, atol=1e-15)  # rad


def dates(t, kind):
    """The same times as dates of several kinds; 4 ms are exact in each."""
    start = pd.Timestamp("2026-03-01 10:00")
    stamps = pd.Series(start + pd.to_timedelta(t, unit="s").round("us"))
    if kind == "zoned":
        return stamps.dt.tz_localize("Europe/Paris")
    if kind == "objects":
        return [datetime.fromtimestamp(1.7e9 + round(1e3 * x) / 1e3, UTC) for x in t]
    return stamps if kind == "plain" else stamps.to_numpy().copy()


@pytest.mark.parametrize("kind", ["plain", "zoned", "numpy", "objects"])
@pytest.mark.parametrize("lost", [None, 0, 100])
def test_dates_are_times_and_lost_ones_are_missing(robot, columns, plain, kind, lost):
    stamps = dates(columns["t"], kind)
    if lost is not None:
        stamps[lost] = None  # NaT, where dates are stored
    log = log_from_columns({**columns, "t": stamps}, robot)
    codes = [remark.code for remark in log.notices]
    assert log.dt == pytest.approx(plain.dt)
    assert codes[:1] == ([] if lost is None else ["time-missing"])
    assert "clock-reset" not in codes
    assert len(log.t) == len(plain.t) - (lost == 0)  # a sample in the middle is filled


@pytest.mark.parametrize("lost", [0, 100])
def test_dates_that_a_file_lacks_are_missing(robot, columns, lost, tmp_path):
    table = pd.DataFrame({**columns, "t": dates(columns["t"], "plain")})
    table.loc[lost, "t"] = pd.NaT
    table.to_parquet(tmp_path / "log.parquet")
    np.savez(tmp_path / "log.npz", **{name: table[name].to_numpy() for name in table})
    for file in ("log.parquet", "log.npz"):
        log = read_log(tmp_path / file, robot)
        assert log.notices[0].code == "time-missing"
        assert log.dt == pytest.approx(0.004)


def test_dates_may_be_given_with_arrays(robot, columns, plain):
    given = stacked(columns)
    log = log_from_arrays(robot, dates(columns["t"], "zoned"), given["q"], given["tau"])
    assert same(log, plain)


@pytest.mark.parametrize("kind", ["masked", "nullable", "whole"])
def test_masked_values_are_missing(robot, columns, kind):
    values = {**columns}
    if kind == "masked":
        values["q_1"] = np.ma.masked_array(columns["q_1"], mask=np.arange(len(columns["t"])) == 100)
    elif kind == "nullable":
        values["q_1"] = pd.Series(columns["q_1"], dtype=object)
        values["q_1"][100] = pd.NA
    else:
        counts = np.rint(1e4 * columns["q_1"]).astype(int)
        values["q_1"] = np.ma.masked_array(counts, mask=np.arange(len(counts)) == 100)
    log = log_from_columns(values, robot)
    assert "not-finite" in [remark.code for remark in log.notices]
    assert not log.valid[100]
    if kind != "nullable":
        q = np.ma.column_stack([values["q_1"], columns["q_2"]])
        log = log_from_arrays(robot, columns["t"], q, stacked(columns)["tau"])
        assert not log.valid[100]


def test_variables_as_matlab_has_them(robot, columns, plain):
    """`scipy.io.loadmat`: a header, vectors as columns or rows, single values, structs."""
    n = len(columns["t"])
    odd = {"__header__": b"MATLAB 5.0", "__version__": "1.0", "__globals__": [], "fs": np.array([[250.0]])}
    odd |= {"note": np.array(["a text"]), "s": np.zeros((1, 1), dtype=[("x", "O")]), "gain": 2.0}
    for vectors in (
        {name: x.reshape(n, 1) for name, x in columns.items()},
        {name: x.reshape(1, n) for name, x in columns.items()},
        {**stacked(columns), "t": columns["t"].reshape(n, 1)},
    ):
        log = log_from_columns({**odd, **vectors}, robot)
        assert same(log, plain)
        assert "fs (one value)" in log.choices["unused columns"]
        assert "__globals__ (an empty array)" in log.choices["unused columns"]


def test_a_list_of_names_beside_matrices_orders_their_columns(robot, columns, plain):
    given = {**stacked(columns, (1, 0)), "joint_names": np.array(names_of(robot)[::-1])}
    assert same(log_from_columns(given, robot), plain)


def test_fields_of_a_structured_array_are_columns(robot, columns, plain):
    records = pd.DataFrame(columns).to_records(index=False)
    assert same(log_from_columns(records, robot), plain)
    assert same(log_from_columns(np.asarray(records).view(np.ndarray), robot), plain)


@pytest.mark.parametrize("given", [np.zeros((100, 5)), [1.0, 2.0], 3.0, None])
def test_what_has_no_columns_is_refused_with_the_remedy(robot, given):
    with pytest.raises(InputError, match=r"a log cannot be made from \w+\n  remedy: .*a data frame"):
        unwrap(log_from_columns)(given, robot)  # types of arguments are not compared
    with pytest.raises(InputError, match="a log cannot be made from ndarray"):
        predict_efforts(exact("scara"), np.zeros((100, 5)))


def test_a_lazy_frame_is_not_asked_for_its_columns(columns):
    """Polars warns about that, and warnings are errors here: so would the comparison of types be."""
    lazy = pytest.importorskip("polars").DataFrame(columns).lazy()
    assert unwrap(has_columns)(lazy)
    assert not unwrap(has_columns)(3.0)


def test_matrices_of_other_names_are_mapped_by_patterns(robot, columns, plain):
    given = stacked(columns)
    named = {"stamp": given["t"], "angles": given["q"], "moments": given["tau"]}
    with pytest.raises(InputError, match=r"'q' is not a quantity .*\n.* q_{i}: x_{i}"):
        log_from_columns(named, robot, columns={"t": "stamp", "q": "angles"})
    mapped = {"t": "stamp", "q_{i}": "angles_{i}", "tau_{i}": "moments_{i}"}
    log = log_from_columns(named, robot, columns=mapped)
    np.testing.assert_array_equal(log.q, plain.q)
    np.testing.assert_array_equal(log.tau, plain.tau)


def test_the_robot_comes_after_the_columns(robot, columns):
    with pytest.raises(InputError, match="the robot comes after the columns"):
        unwrap(log_from_columns)(robot, columns)


def test_columns_may_be_mappings_everywhere(robot, columns, plain, tmp_path):
    table = pd.DataFrame({**columns, "q_1": np.rad2deg(columns["q_1"])})
    table.to_csv(tmp_path / "log.csv", index=False)
    given = {"q_1": {"unit": "deg"}}
    for log in (
        log_from_columns(table, robot, columns=given),
        read_log(tmp_path / "log.csv", robot, columns=given),
    ):
        np.testing.assert_allclose(log.q, plain.q, atol=1e-15)  # rad: degrees and back
    with pytest.raises(InputError, match="did you mean 'unit'"):
        log_from_columns(table, robot, columns={"q_1": {"unt": "deg"}})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"q": None}, r"log: q is missing, expected \(250, 2\)"),
        ({"q": np.zeros((250, 3))}, r"q has shape \(250, 3\), expected \(250, 2\)"),
        ({"t": 3.0}, r"t has shape \(\), expected \(n,\)"),
        ({"tau": np.full((250, 2), "a")}, "tau has no numbers"),
        (
            {"segments": [(0, 150), (100, 250)]},
            r"segment \(100, 250\) begins before another one ends \(150\)",
        ),
        (
            {"segments": [(100, 250), (0, 101)]},
            r"segment \(100, 250\) begins before another one ends \(101\)",
        ),
        ({"segments": []}, "the list of segments is empty"),
        ({"segments": [(0, 300)]}, r"segment \(0, 300\) is outside the 250 samples"),
    ],
)
def test_arrays_of_another_form_are_refused(robot, columns, change, said):
    with pytest.raises(InputError, match=said) as refused:
        log_from_arrays(robot, **{**stacked(columns), **change})
    assert refused.value.remedy


def test_times_may_be_a_column_and_segments_an_array(robot, columns, plain):
    given = stacked(columns)
    assert same(log_from_arrays(robot, given["t"][:, None], given["q"], given["tau"]), plain)
    runs = np.array([(0, 100), (150, 250)])
    log = unwrap(log_from_arrays)(robot, given["t"], given["q"], given["tau"], segments=runs)
    assert [stop - start for start, stop in log.segments] == [100, 100]
