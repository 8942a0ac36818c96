"""Readers: columns, units, clocks, attitudes, and the same path for arrays."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.experiment.experiment import experiment_from
from dynid.motion.gather import quaternion
from dynid.motion.logs import READERS, log_from_arrays, read_log
from dynid.motion.settings import ColumnMap as Column
from dynid.motion.settings import LogEntry as Entry
from dynid.motion.table import Table
from dynid.motion.units import FACTORS, canonical_unit, factor
from tests.arms import arm, motion, platform, recording, write_csv


def write_parquet(path, columns):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)
    return str(path)


def test_csv_and_parquet_give_the_same_log(tmp_path):
    columns = recording(velocities=True)
    first = read_log(write_csv(tmp_path / "a.csv", columns), arm())
    second = read_log(write_parquet(tmp_path / "a.parquet", columns), arm())
    for name in ("t", "q", "dq", "tau"):
        # The CSV was written with 12 digits.
        assert np.allclose(getattr(first, name), getattr(second, name), rtol=1e-10, atol=1e-11)
    assert first.segments == second.segments == ((0, 1000),)
    assert first.dt == pytest.approx(0.004)
    assert first.valid.all()
    assert first.effort_present.all()
    assert first.notices == ()
    assert second.choices["clock"] == "uniform, 250 Hz"


def test_log_keeps_mapping_hash_and_payloads(tmp_path):
    path = write_csv(tmp_path / "run.csv", recording())
    log = read_log(Entry(str(path), ("ballast",)), arm())
    assert log.name == "run"
    assert log.file == path
    assert log.sha256 == hashlib.sha256(Path(path).read_bytes()).hexdigest()
    assert log.payloads == ("ballast",)
    assert log.mapping == {"t": "t", "q_1": "q_1", "q_2": "q_2", "tau_1": "tau_1", "tau_2": "tau_2"}
    assert log.position_names == log.effort_names == ("motor1", "motor2")


@pytest.mark.parametrize("spelling", ["{}_{}", "{}{}", "{}_motor{}", "{}motor{}"])
def test_columns_by_number_or_name_underscore_optional(tmp_path, spelling):
    columns = {
        name if name == "t" else spelling.format(*name.split("_")): x for name, x in recording().items()
    }
    log = read_log(write_csv(tmp_path / "a.csv", columns), arm())
    assert np.allclose(log.q[:, 1], columns[spelling.format("q", 2)], atol=1e-10)  # 12 digits in the file


def test_units_scale_and_offset(tmp_path):
    columns = recording()
    given = {
        "time_ms": 1e3 * columns["t"],
        "axis": np.degrees(columns["q_1"] + 0.5),
        "q_2": columns["q_2"],
        "tau_1": columns["tau_1"] / 1e-3 / 80.0,
        "tau_2": columns["tau_2"],
        "spare": columns["t"],
    }
    mapping = {
        "t": Column("time_ms", "ms"),
        "q_motor1": Column("axis", "deg", offset=-0.5),
        "tau_1": Column("tau_1", "mA", scale=80.0),
    }
    log = read_log(write_csv(tmp_path / "a.csv", given), arm(), columns=mapping)
    # 12 digits in the file.
    assert np.allclose(log.q[:, 0], columns["q_1"], atol=1e-9)
    assert np.allclose(log.tau[:, 0], columns["tau_1"], atol=1e-9)
    assert np.allclose(log.t, columns["t"], atol=1e-9)
    assert log.choices["unused columns"] == "spare"
    assert log.mapping["q_1"] == "axis"


def test_columns_of_one_log_override_those_of_all(tmp_path):
    columns = recording()
    columns["other"] = columns["q_1"] + 1.0
    path = write_csv(tmp_path / "a.csv", columns)
    log = read_log(Entry(str(path), (), {"q_1": Column("other")}), arm(), columns={"q_1": Column("q_2")})
    assert np.allclose(log.q[:, 0], columns["other"], atol=1e-10)  # 12 digits in the file


def test_unit_spellings():
    assert factor("N m") == factor("Nm") == factor("N*m") == 1.0
    assert factor("rpm") == pytest.approx(2 * np.pi / 60)
    assert factor("deg/s") == pytest.approx(np.pi / 180)
    assert factor("mm/s^2") == factor("mm/s2") == 1e-3
    assert factor(None) == 1.0
    assert all(value > 0 for value in FACTORS.values())
    with pytest.raises(InputError, match="did you mean 'deg'"):
        factor("deg.r")


@pytest.mark.parametrize(
    ("unit", "plain"),
    [
        *(
            (text, "rad/s")
            for text in ("rad s-1", "rad.s-1", "rad s^-1", "rad*s**-1", "rad·s⁻¹", "radian s-1")
        ),
        *(("deg s-1", "deg/s"), ("degree second-1", "deg/s"), ("rev min-1", "rpm"), ("min-1", "rpm")),
        *(
            ("m s-1", "m/s"),
            ("m s-2", "m/s^2"),
            ("m.s^-2", "m/s^2"),
            ("m/s²", "m/s^2"),
            ("rad s⁻²", "rad/s^2"),
        ),
        *(
            ("kg m2 s-2", "Nm"),
            ("kg m^2 s^-2", "Nm"),
            ("kg m s-2", "N"),
            ("newton meter", "Nm"),
            ("metres", "m"),
        ),
    ],
)
def test_units_with_powers(unit, plain):
    """As CF writes them in attributes of xarray."""
    assert canonical_unit(unit) == plain


@pytest.mark.parametrize(
    "unit", ["ms-1", "s-1", "Hz", "rad m-1", "kg m2", "N m rad-1", "rad s-3", "millimeter"]
)
def test_unclear_units_are_unknown(unit):
    """`ms-1` is metres per second or per millisecond; `s-1` radians or turns."""
    assert canonical_unit(unit) is None


def test_segment_column_splits_runs(tmp_path):
    columns = recording()
    columns["segment"] = np.where(columns["t"] < 1.6, 1, 2)
    log = read_log(write_csv(tmp_path / "a.csv", columns), arm())
    assert log.segments == ((0, 400), (400, 1000))


def test_free_platform_by_quaternion_or_angles(tmp_path):
    t = np.arange(200) / 100.0
    angles = np.column_stack([0.3 * np.sin(t), 0.2 * np.cos(t), 0.5 * t])
    pose = {"t": t, "x": np.sin(t), "y": t, "z": 0 * t}
    turned = pose | {"roll": angles[:, 0], "pitch": angles[:, 1], "yaw": angles[:, 2]}
    turned |= {"tau_1": t}
    by_angles = read_log(write_csv(tmp_path / "a.csv", turned), platform())
    q = quaternion(angles, "xyz")
    direct = pose | {name: q[:, i] for i, name in enumerate(("qw", "qx", "qy", "qz"))} | {"tau_1": t}
    by_quaternion = read_log(write_csv(tmp_path / "b.csv", direct), platform())
    assert np.allclose(by_angles.q, by_quaternion.q, atol=1e-10)  # 12 digits in the files
    assert by_angles.position_names[3] == "pose_qw"
    other = read_log(tmp_path / "a.csv", platform(), angles="zyx")
    assert np.max(np.abs(other.q - by_angles.q)) > 1e-3


@pytest.mark.parametrize("convention", ["xyz", "zyx"])
def test_quaternions_are_the_product_of_the_three_rotations(convention):
    from scipy.spatial.transform import Rotation

    angles = np.random.default_rng(0).uniform(-1.5, 1.5, (20, 3))
    # Capital letters: rotations about moving axes, i.e. the product in this order.
    ordered = angles if convention == "xyz" else angles[:, ::-1]
    expected = Rotation.from_euler(convention.upper(), ordered).as_matrix()
    found = Rotation.from_quat(np.roll(quaternion(angles, convention), -1, axis=1)).as_matrix()
    assert np.allclose(found, expected, atol=1e-14)  # rounding


def test_quaternion_signs_and_angle_wraps_are_made_continuous():
    t = np.arange(300) / 100.0
    q = np.zeros((300, 7))
    q[:, 3], q[:, 4] = np.cos(2 * t), np.sin(2 * t)
    flipped = q.copy()
    flipped[100:200, 3:] *= -1.0
    log = log_from_arrays(platform(), t, flipped, t[:, None])
    assert np.array_equal(log.q, q)
    angle = np.column_stack([4.0 * t, np.sin(t)])
    wrapped = np.column_stack([(angle[:, 0] + np.pi) % (2 * np.pi) - np.pi, angle[:, 1]])
    log = log_from_arrays(arm(), t, wrapped, angle)
    assert np.allclose(log.q, angle, atol=1e-12)  # rounding of whole turns
    assert [notice.code for notice in log.notices] == ["angle-wrapped"]


def test_arrays_that_need_no_mending_are_not_copied():
    t = np.arange(500) / 100.0
    q, dq, tau = motion(t)
    log = log_from_arrays(arm(), t, q, tau, dq=dq, payloads=["ballast"])
    assert log.q is q
    assert log.tau is tau
    assert log.file is None
    assert log.payloads == ("ballast",)
    with pytest.raises(InputError, match="expected"):
        log_from_arrays(arm(3), t, q, tau)


def test_absent_efforts_are_nan_and_reported(tmp_path):
    columns = recording()
    del columns["tau_2"]
    log = read_log(write_csv(tmp_path / "a.csv", columns), arm())
    assert log.effort_present.tolist() == [True, False]
    assert np.isnan(log.tau[:, 1]).all()
    assert log.segments == ((0, 1000),)
    assert [notice.code for notice in log.notices] == ["effort-absent"]
    free = read_log(
        write_csv(tmp_path / "b.csv", {k: columns[k] for k in ("t", "q_1", "q_2")}), arm(), need_effort=False
    )
    assert not free.effort_present.any()


def test_incomplete_velocities_are_left_out_and_reported(tmp_path):
    columns = recording(velocities=True)
    del columns["dq_2"]
    log = read_log(write_csv(tmp_path / "a.csv", columns), arm())
    assert log.dq is None
    assert [notice.code for notice in log.notices] == ["rates-incomplete"]


def test_text_columns_are_skipped_and_listed(tmp_path):
    lines = ["t,mode,q_1,tau_1"] + [f"{i / 100},auto,{i % 7},{i % 3}" for i in range(60)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines))
    assert read_log(path, arm(1)).choices["unused columns"] == "mode (text)"


def test_integer_nanosecond_stamps_of_an_epoch(tmp_path):
    columns = recording()
    columns["t"] = 1_700_000_000_000_000_000 + np.rint(columns["t"] * 1e9).astype(np.int64)
    log = read_log(write_parquet(tmp_path / "a.parquet", columns), arm())
    assert log.dt == pytest.approx(0.004, rel=1e-9)
    assert log.choices["time unit"].startswith("ns since 1970")
    assert log.t[0] == 0.0


def test_a_reader_is_one_function_and_one_line(tmp_path, monkeypatch):
    columns = recording()
    monkeypatch.setitem(READERS, ".mine", lambda path, drop_bad_rows: Table(columns))
    path = tmp_path / "a.mine"
    path.write_text("")
    assert read_log(path, arm()).q.shape == (1000, 2)


def test_a_long_csv_is_read_whole(tmp_path):
    columns = recording(seconds=200.0)
    path = write_csv(tmp_path / "a.csv", columns)
    log = read_log(path, arm())
    assert len(log.t) == 50_000
    # 12 digits in the file.
    np.testing.assert_allclose(log.q[-1], [columns["q_1"][-1], columns["q_2"][-1]], atol=1e-9)


@pytest.mark.parametrize("delay", [0.003, -0.0101, 0.004])
def test_a_delay_of_a_column_is_removed(tmp_path, delay):
    """x(t) = logged(t + delay), for the columns that have one, on the samples that remain."""
    columns = recording()
    t = columns["t"]
    _, dq, ddq = motion(t - delay)
    columns["tau_1"] = 2.0 * ddq[:, 0] + 0.5 * dq[:, 0]
    path = write_csv(tmp_path / "late.csv", columns)
    log = read_log(path, arm(), columns={"tau_1": Column(delay=delay, name="tau_1")})
    lost = int(np.ceil(abs(delay) / 0.004 - 1e-6))
    assert log.segments == ((lost, 1000) if delay < 0 else (0, 1000 - lost),)
    # A cubic spline of a motion below 1 Hz at 250 Hz; the first and last steps have one cubic less.
    truth = recording()
    np.testing.assert_allclose(log.tau[log.valid, 0], truth["tau_1"][log.valid], atol=1e-5)
    np.testing.assert_allclose(log.tau[log.valid, 1], truth["tau_2"][log.valid], atol=1e-10)
    assert log.valid.sum() == 1000 - lost
    assert log.choices["delays removed"] == f"tau_1 {1e3 * delay:.4g} ms (cubic spline)"


def test_a_delay_does_not_carry_masked_samples_into_others(tmp_path):
    columns = recording()
    columns["tau_1"][500] = np.nan
    path = write_csv(tmp_path / "late.csv", columns)
    log = read_log(path, arm(), columns={"tau_1": Column("tau_1", delay=0.006)})
    # It is filled from its neighbours; neither it nor what it is shifted into is used.
    assert log.segments == ((0, 998),)
    assert np.flatnonzero(~log.valid[:998]).tolist() == [498, 499, 500]


def test_a_delay_of_a_column_with_another_name(tmp_path):
    """An entry without a column's name changes the column that is found by its words, of all motors too."""
    columns = {name.replace("tau_", "effort_motor"): x for name, x in recording().items()}
    path = write_csv(tmp_path / "late.csv", columns)
    experiment = experiment_from({"robot": "a", "logs": [path], "columns": {"tau_{i}": {"delay": 0.004}}})
    for given in (experiment.columns, {"tau_{i}": "tau_{i} delay 0.004"}):
        log = read_log(path, arm(), columns=given)
        assert log.choices["delays removed"] == "tau_1 4 ms, tau_2 4 ms (cubic spline)"
    np.testing.assert_allclose(log.tau[:999, 0], columns["effort_motor1"][1:], rtol=0, atol=1e-9)
    with pytest.raises(InputError, match=r"column 'dq_1' \(for dq_1\) is not in the file"):
        read_log(path, arm(), columns={"dq_1": Column("dq_1", delay=0.004)})


@pytest.mark.parametrize("key", ["tau_2", "tau_{i}"])
def test_a_scale_of_a_column_with_the_name_of_its_motor(tmp_path, key):
    """The same where the column of an effort is called after its motor: remedies name tau_2."""
    owners = {f"tau_{i + 1}": f"tau_{motor.name}" for i, motor in enumerate(arm().actuators)}
    columns = {owners.get(name, name): x for name, x in recording().items()}
    path = write_csv(tmp_path / "turned.csv", columns)
    experiment = experiment_from({"robot": "a", "logs": [path], "columns": {key: {"scale": -1}}})
    log = read_log(path, arm(), columns=experiment.columns)
    np.testing.assert_allclose(log.tau[:, 1], -columns[owners["tau_2"]], rtol=0, atol=1e-9)


def test_a_delay_of_time_or_attitude_is_refused(tmp_path):
    path = write_csv(tmp_path / "a.csv", recording())
    with pytest.raises(InputError, match="delay of time is not supported"):
        read_log(path, arm(), columns={"t": Column("t", delay=0.004)})
    with pytest.raises(InputError, match="no run is longer than the delays"):
        read_log(path, arm(), columns={"tau_1": Column("tau_1", delay=4.0)})
