"""Faults of logs, one test each; the number is the row of the project's fault table."""

import sys
from pathlib import Path

import numpy as np
import pytest

from dynid.common import limits
from dynid.common.errors import InputError
from dynid.motion import reading
from dynid.motion.logs import log_from_arrays, read_log
from dynid.motion.motion import Motion
from dynid.motion.parquet_file import read_parquet
from dynid.motion.plan import plan_motions
from dynid.motion.settings import ColumnMap as Column
from dynid.motion.settings import FilterSettings as Filter
from dynid.motion.settings import MaskSettings as Mask
from tests.arms import arm, motion, recording, write_csv
from tests.built_in import codes

DATA = Path(__file__).parents[2] / "shared" / "data"


def text_log(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return read_log(path, arm(1))


def sampled(t, **keywords):
    q, _, ddq = motion(t)
    return log_from_arrays(arm(), t, q, ddq, **keywords)


def altered(change, seconds=8.0, rate=250.0, velocities=False, **keywords):
    """A log of arrays after `change(t, q, dq, tau)` spoilt them."""
    t = np.arange(round(seconds * rate)) / rate
    q, dq, tau = motion(t)
    change(t, q, dq, tau)
    return log_from_arrays(arm(), t, q, tau, dq=dq if velocities else None, **keywords)


# 19: delimiter, decimal sign, byte-order mark, encoding


@pytest.mark.parametrize(
    ("delimiter", "name"), [(",", "comma"), (";", "semicolon"), ("\t", "tab"), (" ", "space")]
)
def test_19_delimiters_are_sniffed_and_shown(tmp_path, delimiter, name):
    log = read_log(write_csv(tmp_path / "a.csv", recording(), delimiter), arm())
    assert f"delimiter {name}, decimal point, encoding utf-8" in log.choices["format"]


@pytest.mark.parametrize("delimiter", [";", "\t", " "])
def test_19_decimal_commas(tmp_path, delimiter):
    columns = recording()
    log = read_log(write_csv(tmp_path / "a.csv", columns, delimiter, ","), arm())
    assert np.allclose(log.q[:, 0], columns["q_1"], atol=1e-10)  # 12 digits in the file
    assert "decimal comma" in log.choices["format"]


@pytest.mark.parametrize(
    ("encoding", "shown"), [("utf-8-sig", "byte-order mark"), ("latin-1", "latin-1"), ("utf-16", "utf-16")]
)
def test_19_encodings(tmp_path, encoding, shown):
    rows = "\n".join(f"{i / 100},{np.sin(i / 9):.6f},{i % 5},20.5" for i in range(50))
    log = text_log(tmp_path / "a.csv", f"t,q_1,tau_1,température °C\n{rows}\n", encoding)
    assert shown in log.choices["format"]
    assert log.choices["unused columns"] == "température °C"


def test_19_one_column_is_refused(tmp_path):
    with pytest.raises(InputError, match="fewer than 2 columns"):
        text_log(tmp_path / "a.csv", "t|q_1|tau_1\n0|1|2\n1|2|3\n")


def test_19_ambiguous_delimiter_is_refused(tmp_path):
    # Comma and semicolon cut header and rows alike, and half of the cells are numbers each time.
    with pytest.raises(InputError, match="ambiguous"):
        text_log(tmp_path / "a.csv", "t,q_1;tau_1\n1.5,2;3\n2.5,3;4\n")


@pytest.mark.parametrize(("head", "row"), [(",", ","), ("", ","), (",", "")])
def test_19_a_delimiter_at_the_end_of_lines_adds_no_column(tmp_path, head, row):
    rows = "\n".join(f"{i / 100},{i % 5},{i % 3}{row}" for i in range(40))
    log = text_log(tmp_path / "a.csv", f"t,q_1,tau_1{head}\n{rows}\n")
    assert log.q[3, 0] == 3.0
    assert log.tau[4, 0] == 1.0


def test_19_quoted_numbers_with_decimal_commas(tmp_path):
    rows = "\n".join(f'"{i / 100}","{i % 5}.25","{i % 3}.5"'.replace(".", ",") for i in range(40))
    log = text_log(tmp_path / "a.csv", f"t,q_1,tau_1\n{rows}\n")
    assert "delimiter comma, decimal comma" in log.choices["format"]
    assert log.q[3, 0] == 3.25
    assert log.t[7] == 0.07


def test_19_a_header_behind_a_comment_mark(tmp_path):
    rows = "\n".join(f"{i / 100},{i % 5},{i % 3}" for i in range(40))
    log = text_log(tmp_path / "a.csv", f"% exported by MATLAB\n% t,q_1,tau_1\n{rows}\n")
    assert log.q[3, 0] == 3.0


def test_19_blanks_after_commas_are_no_delimiter(tmp_path):
    rows = "\n".join(f"{i / 100}, {i % 5}, {i % 3}" for i in range(40))
    log = text_log(tmp_path / "a.csv", f"t, q_1, tau_1\n{rows}\n")
    assert "delimiter comma" in log.choices["format"]
    assert log.q[3, 0] == 3.0


def test_19_missing_header_is_refused(tmp_path):
    with pytest.raises(InputError, match="not column names"):
        text_log(tmp_path / "a.csv", "0,1,2\n1,2,3\n2,3,4\n")


def test_19_binary_and_empty_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="binary"):
        text_log(tmp_path / "a.csv", "\0\1\2\3")
    with pytest.raises(InputError, match="no header"):
        text_log(tmp_path / "b.csv", "")
    with pytest.raises(InputError, match="no such file"):
        read_log(tmp_path / "none.csv", arm())
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    with pytest.raises(InputError, match="no reader"):
        read_log(tmp_path / "a.xlsx", arm())


@pytest.mark.parametrize("name", ["runs.csv", "runs.parquet"])
def test_a_folder_is_called_a_folder(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="a folder, not a file") as caught:
        read_log(tmp_path / name, arm())
    assert caught.value.remedy


def test_a_log_without_time_names_its_columns(tmp_path):
    with pytest.raises(InputError, match="no time column 't'; columns are instant, q_1, tau_1"):
        text_log(tmp_path / "a.csv", "instant,q_1,tau_1\n" + "0,1,2\n" * 20)


@pytest.mark.parametrize("cells", ["{i},nan,1", "{i},1,1"])
def test_useless_samples_are_refused_with_a_remedy(tmp_path, cells):
    rows = 40 if "nan" in cells else 10
    text = "".join(cells.format(i=i / 100) + "\n" for i in range(rows))
    with pytest.raises(InputError, match=r"no finite value|at least 16") as caught:
        text_log(tmp_path / "a.csv", "t,q_1,tau_1\n" + text)
    assert caught.value.remedy


# 20: text, blanks, short and long rows


def bad_row(tmp_path, row):
    lines = ["t,q_1,tau_1"] + [f"{i / 100},{i % 7},{i % 3}" for i in range(100)]
    lines[57] = row
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("0.56,abc,1", "row 58, column 'q_1': 'abc' is not a number"),
        ("0.56,\u0661,1", "row 58, column 'q_1': '\u0661' is not a number"),
        ("0.56,\uff11,1", "row 58, column 'q_1': '\uff11' is not a number"),
        ("0.56,\u22121,1", "row 58, column 'q_1': '\u22121' is not a number"),
        ("0.56,1_0,1", "row 58, column 'q_1': '1_0' is not a number"),
        ("0.56,,1", "row 58, column 'q_1': the cell is empty"),
        ("0.56,1", "row 58, 2 cells: the row has 2 cells, the header 3"),
        ("0.56,1,2,9", "row 58, 4 cells: the row has 4 cells, the header 3"),
    ],
)
def test_20_bad_cells_are_refused_with_row_column_and_text(tmp_path, row, message):
    path = bad_row(tmp_path, row)
    with pytest.raises(InputError, match=message):
        read_log(path, arm(1))
    log = read_log(path, arm(1), drop_bad_rows=True)
    assert "bad-rows-dropped" in codes(log)
    assert "1 rows" in log.notices[0].text


def test_20_a_column_in_the_digits_of_another_script_is_no_text_column(tmp_path):
    rows = [f"{i / 100},{i % 7},\u0661.{i % 3}" for i in range(100)]
    with pytest.raises(InputError, match="row 2, column 'tau_1': '\u0661\\.0' is not a number"):
        text_log(tmp_path / "a.csv", "t,q_1,tau_1\n" + "\n".join(rows) + "\n")


# 21: duplicate and unmatched columns


def test_21_duplicate_header_is_refused(tmp_path):
    columns = recording(count=1)
    path = write_csv(tmp_path / "a.csv", columns, header=["t", "q_1", "q_1"])
    with pytest.raises(InputError, match="'q_1' occurs 2 times"):
        read_log(path, arm(1))


def test_21_two_columns_for_one_joint_are_refused_unless_mapped(tmp_path):
    columns = recording()
    columns["q_motor1"] = columns["q_1"] + 1.0
    path = write_csv(tmp_path / "a.csv", columns)
    with pytest.raises(InputError, match="'q_1' and 'q_motor1' both match the position of 'motor1'"):
        read_log(path, arm())
    log = read_log(path, arm(), columns={"q_1": Column("q_motor1")})
    assert log.mapping["q_1"] == "q_motor1"


def test_21_unmatched_joints_efforts_and_time_are_refused(tmp_path):
    columns = recording()
    for lost, message in (("q_2", "position of 'motor2'"), ("t", "no time column")):
        path = write_csv(tmp_path / "a.csv", {k: v for k, v in columns.items() if k != lost})
        with pytest.raises(InputError, match=message):
            read_log(path, arm())
    path = write_csv(tmp_path / "a.csv", {k: v for k, v in columns.items() if not k.startswith("tau")})
    with pytest.raises(InputError, match="no effort column"):
        read_log(path, arm())


def test_21_wrong_mapping_is_refused_with_the_nearest_name(tmp_path):
    path = write_csv(tmp_path / "a.csv", recording())
    with pytest.raises(InputError, match="'q_l' is not a quantity"):
        read_log(path, arm(), columns={"q_l": Column("q_1")})
    with pytest.raises(InputError, match="did you mean 'tau_"):
        read_log(path, arm(), columns={"q_1": Column("tau_l")})
    with pytest.raises(InputError, match="use the same column"):
        read_log(path, arm(), columns={"q_1": Column("q_2"), "q_2": Column("q_2")})


# 24: NaN and infinite samples


def test_24_bad_samples_are_bridged_or_split_the_log_and_never_reach_the_states():
    def spoil(t, q, dq, tau):
        q[500, 1] = np.nan
        tau[900:903, 0] = np.inf
        q[1400:1600, 0] = np.nan  # 0.8 s: no motion of the arm is known for so long

    log = altered(spoil)
    assert log.segments == ((0, 1400), (1600, 2000))
    assert np.array_equal(np.flatnonzero(~log.valid), [500, 900, 901, 902, *range(1400, 1600)])
    assert codes(log) == ["not-finite"]
    assert "204 samples" in log.notices[0].text
    np.testing.assert_allclose(log.q[500], altered(lambda *_: None).q[500], atol=1e-6)  # a smooth motion
    mover = Motion(log, plan_motions([log], arm(), Filter(cutoff=10.0), Mask())[0])
    edge = mover.plan.edge
    assert edge >= 25  # at least a period of the cutoff: nothing near the bad samples is used
    for start, stop in mover.usable():
        assert all(np.isfinite(x).all() for x in mover.states(start, stop))
        assert not (1400 - edge < start < 1600 + edge)


def test_24_a_log_of_bad_samples_only_is_refused():
    def spoil(t, q, dq, tau):
        q[np.arange(len(t)) % 220 > 14, 0] = np.nan  # 15 samples remain between such holes

    with pytest.raises(InputError, match="consecutive valid samples"):
        altered(spoil)


# 25: gaps


def test_25_gaps_split_according_to_the_cutoff():
    t = np.arange(2000) / 250.0
    t[1000:] += 4 * 0.004  # a gap of 5 steps, 20 ms
    assert len(sampled(t, cutoff=5.0).segments) == 1  # 0.25 / 5 Hz = 50 ms
    split = sampled(t, cutoff=50.0)  # 5 ms
    assert split.segments == ((0, 1000), (1000, 2000))
    assert codes(split) == ["gap"]


def test_25_without_a_cutoff_five_steps_or_what_the_data_choose():
    t = np.arange(2000) / 250.0
    t[1000:] += 0.5  # far beyond everything
    assert len(sampled(t).segments) == 2
    t = np.arange(2000) / 250.0
    t[1000:] += 4.4 * 0.004  # 5.4 steps: the data choose about 10 Hz, 0.25 / 10 Hz = 25 ms
    assert len(sampled(t).segments) == 1
    t = np.arange(100) / 250.0
    t[50:] += 7 * 0.004  # too short to choose from
    assert len(sampled(t).segments) == 2


def test_25_short_gaps_are_filled_and_reported():
    full = np.arange(2000) / 250.0
    keep = np.ones(2000, dtype=bool)
    keep[[500, 900, 901]] = False
    log = sampled(full[keep])
    assert "3 lost samples filled" in log.choices["clock"]
    assert codes(log) == ["samples-filled"]
    q = motion(full)[0]
    # A cubic over 12 ms of a 0.6 Hz motion: (2 pi 0.6 x 0.012)^4 / 100.
    assert np.allclose(log.q, q, atol=1e-6)


# 26 to 28: order, doubles, jumps


def test_26_a_few_samples_out_of_order_are_sorted_and_flagged():
    def spoil(t, q, dq, tau):
        for x in (t, q, tau):
            x[[100, 101]] = x[[101, 100]]

    log = altered(spoil)
    assert codes(log) == ["time-unsorted"]
    assert np.all(np.diff(log.t) > 0)
    assert np.array_equal(log.q, motion(log.t)[0])


def test_26_many_samples_out_of_order_are_refused():
    def spoil(t, q, dq, tau):
        t[::20], t[1::20] = t[1::20].copy(), t[::20].copy()

    with pytest.raises(InputError, match="out of order"):
        altered(spoil)


def test_27_equal_doubles_are_dropped_conflicting_ones_refused():
    t = np.arange(1000) / 250.0
    index = np.sort(np.append(np.arange(1000), [300, 600]))
    q, _, tau = motion(t)
    log = log_from_arrays(arm(), t[index], q[index], tau[index])
    assert codes(log) == ["time-doubled"]
    assert np.array_equal(log.q, q)
    other = q[index].copy()
    other[301] += 0.1
    with pytest.raises(InputError, match="twice with different values"):
        log_from_arrays(arm(), t[index], other, tau[index])


def test_28_clock_reset_and_jump_split_with_a_warning():
    t = np.arange(2000) / 250.0
    t[1200:] -= t[1200]
    log = sampled(t)
    assert log.segments == ((0, 1200), (1200, 2000))
    assert codes(log) == ["clock-reset"]
    t = np.arange(2000) / 250.0
    t[1200:] += 3600.0
    log = sampled(t, cutoff=0.01)  # a quarter period of 25 s would bridge anything: a jump still splits
    assert log.segments == ((0, 1200), (1200, 2000))
    assert "clock jumps" in log.notices[0].text


# 29: jitter


@pytest.mark.parametrize(("jitter", "warned"), [(0.1, []), (0.45, ["clock-jitter"])])
def test_29_jitter_is_resampled_and_stated(jitter, warned):
    rng = np.random.default_rng(5)
    t = np.arange(4000) / 500.0 + jitter / 500.0 * rng.uniform(-1, 1, 4000)
    log = sampled(t)
    assert codes(log) == warned
    assert "resampled to the mean step" in log.choices["clock"]
    assert "cubic spline" in log.choices["clock"]
    assert np.allclose(np.diff(log.t), log.dt, rtol=1e-6)  # rounding of t
    # A cubic at 2 ms of a motion below 1 Hz: far below any encoder.
    assert np.allclose(log.q, motion(log.t)[0], atol=1e-7)


def test_29_rounded_time_stamps_are_no_jitter():
    t = np.round(np.arange(3000) / 240.0, 3)  # 4.1667 ms written as 4 and 5 ms: not a fifth of a step
    assert "resampled" in sampled(t).choices["clock"]
    t = np.round(np.arange(3000) / 240.0, 4)
    log = sampled(t)
    assert log.choices["clock"].startswith("uniform, 240")
    single = (np.arange(3000) / 250.0).astype(np.float32).astype(float)
    assert sampled(single).choices["clock"] == "uniform, 250 Hz"


def test_29_panda_with_its_jitter_works_with_defaults():
    file = DATA / "panda_gaz" / "ident.parquet"
    if not file.exists():
        pytest.skip("the real logs are not beside the project")
    log = read_log(file, arm(7))
    assert len(log.segments) == 1
    # Its recorder repeats whole rows, e.g. three from t = 4.505 s at 1 rad/s.
    assert codes(log) == ["samples-repeated", "clock-jitter"]
    assert log.dt == pytest.approx(1.016e-3, rel=1e-3)


# 30: unit of time


@pytest.mark.parametrize(("unit", "factor"), [("ms", 1e3), ("us", 1e6), ("ns", 1e9)])
@pytest.mark.parametrize("rate", [100.0, 1000.0])
def test_30_time_unit_is_inferred_and_reported(tmp_path, unit, factor, rate):
    columns = recording(rate=rate)
    columns["t"] = (columns["t"] + 0.5) * factor  # 0, 1, 2, ... would be a row number
    log = read_log(write_csv(tmp_path / "a.csv", columns), arm())
    assert log.dt == pytest.approx(1 / rate, rel=1e-6)
    assert log.choices["time unit"].startswith(f"{unit}, inferred from the median step")


@pytest.mark.parametrize("first", [0, 1])
def test_30_a_row_number_is_not_taken_as_time_unless_its_unit_is_given(tmp_path, first):
    columns = recording(rate=1000.0)
    columns["t"] = first + np.arange(len(columns["t"]))
    path = write_csv(tmp_path / "a.csv", columns)
    with pytest.raises(InputError, match="column 't' counts the rows") as caught:
        read_log(path, arm())
    assert "unit: ms" in caught.value.remedy
    log = read_log(path, arm(), columns={"t": Column("t", unit="ms")})
    assert log.dt == pytest.approx(1e-3)


def test_30_seconds_need_no_word(tmp_path):
    assert "time unit" not in read_log(write_csv(tmp_path / "a.csv", recording()), arm()).choices


def test_30_impossible_rates_are_refused(tmp_path):
    columns = recording()
    columns["t"] = np.arange(1000) * 5.0
    path = write_csv(tmp_path / "a.csv", columns)
    with pytest.raises(InputError, match=r"0\.2 samples per second"):
        read_log(path, arm(), columns={"t": Column("t", "s")})
    columns["t"] = np.arange(1000) * 1e-6
    with pytest.raises(InputError, match="outside 1 Hz to 100 kHz"):
        read_log(write_csv(tmp_path / "b.csv", columns), arm())
    with pytest.raises(InputError, match="never increases"):
        sampled(np.zeros(100))


# 32 and 36: velocities against positions


def test_32_velocity_in_degrees_is_refused_with_the_likely_cause():
    def spoil(t, q, dq, tau):
        dq[:, 1] = np.degrees(dq[:, 1])

    log = altered(spoil, velocities=True)
    with pytest.raises(InputError, match="velocity in degrees"):
        plan_motions([log], arm(), Filter(), Mask())[0]
    assert plan_motions([log], arm(), Filter(velocity="derived"), Mask())[0].velocity == "derived"


def test_32_a_coordinate_that_hardly_moves_is_not_judged():
    def spoil(t, q, dq, tau):
        rng = np.random.default_rng(2)
        q[:, 1] = 1e-6 * rng.standard_normal(len(t))
        dq[:, 1] = 1e-4 * rng.standard_normal(len(t))

    assert plan_motions([altered(spoil, velocities=True)], arm(), Filter(), Mask())[0].velocity == "measured"


def test_32_noise_is_not_taken_for_a_wrong_unit():
    def spoil(t, q, dq, tau):
        # Slow ripple in the positions only: the derivative is 25 % larger than the true velocity.
        q += 0.1 * np.sin(2 * np.pi * 1.2 * t)[:, None]

    log = altered(spoil, velocities=True)
    plan = plan_motions([log], arm(), Filter(cutoff=10.0), Mask())[0]
    assert plan.velocity == "derived"
    assert [notice.code for notice in plan.notices] == ["velocity-differs"]


def test_36_inconsistent_velocity_warns_then_refuses():
    def late(samples):
        def spoil(t, q, dq, tau):
            wave = 2 * np.pi * 0.3
            extra = samples * np.cos(3.1 * wave * t)  # motion that the positions do not show
            dq += extra[:, None]

        return altered(spoil, velocities=True)

    consistent = plan_motions([late(0.0)], arm(), Filter(cutoff=10.0), Mask())[0]
    assert consistent.velocity == "measured"
    assert consistent.notices == ()
    plan = plan_motions([late(0.45)], arm(), Filter(cutoff=10.0), Mask())[0]
    assert plan.velocity == "derived"
    assert [notice.code for notice in plan.notices] == ["velocity-differs"]
    asked = plan_motions([late(0.45)], arm(), Filter(cutoff=10.0, velocity="measured"), Mask())[0]
    assert asked.velocity == "measured"
    assert asked.notices
    with pytest.raises(InputError, match="rms difference"):
        plan_motions([late(1.5)], arm(), Filter(cutoff=10.0), Mask())[0]


# Parquet


def test_64_bit_rot_of_parquet_is_refused_with_its_column(tmp_path):
    """Any bit of the pages, which the footer follows."""
    from dynid.simulation.files import write_columns

    rng, n = np.random.default_rng(3), 400
    names = ("t", "q_1", "tau_1")
    columns = {name: rng.normal(size=n) if name != "t" else np.arange(n) / 100 for name in names}
    path = write_columns(columns, tmp_path / "a.parquet")
    data = path.read_bytes()
    pages = len(data) - int.from_bytes(data[-8:-4], "little") - 8
    refused = []
    for at in rng.integers(4, pages, 60):
        path.write_bytes(data[:at] + bytes([data[at] ^ (1 << rng.integers(8))]) + data[at + 1 :])
        try:
            found = dict(read_parquet(path).columns)
        except InputError as error:
            refused.append(error.place)
            continue
        # Headers of pages have no checksum; statistics in them are not read.
        assert all(np.array_equal(found[name], values) for name, values in columns.items())
    assert len(refused) > 50
    assert set(refused) == {f"column '{name}'" for name in names}


def test_16_a_parquet_file_that_grows_beyond_reason_is_not_read(tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, n = tmp_path / "a.parquet", 200_000
    zeros = np.zeros(n)
    pq.write_table(pa.table({"t": zeros, "q_1": zeros, "text": ["x"] * n}), path)
    monkeypatch.setattr(reading, "SUSPECT", 2**20)
    with pytest.raises(InputError, match="declare 3 MB of numbers") as caught:
        read_parquet(path)
    assert "--no-limits" in caught.value.remedy
    with limits.lifted():
        table = read_parquet(path)
    assert len(table.columns["t"]) == n
    assert table.skipped == ("text",)


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'dynid\[parquet\]'"):
        read_log(path, arm())


def test_broken_parquet_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 this is no parquet file PAR1")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_log(path, arm())


def test_parquet_with_names_that_are_no_text_is_refused(tmp_path):
    from dynid.simulation.files import write_columns

    path = write_columns({"t": np.arange(20) / 100, "elbow": np.zeros(20)}, tmp_path / "a.parquet")
    path.write_bytes(path.read_bytes().replace(b"elbow", b"elb\xb1w"))
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_log(path, arm())


def test_19_old_line_ends(tmp_path):
    columns = recording()
    path = write_csv(tmp_path / "a.csv", columns)
    data = (tmp_path / "a.csv").read_bytes()
    for end in (b"\r", b"\r\n"):
        (tmp_path / "a.csv").write_bytes(data.replace(b"\n", end))
        log = read_log(path, arm())
        assert len(log.t) == len(columns["t"])
        assert log.t[0] == 0.0


@pytest.mark.parametrize(
    "remark",
    ["# recorded by me, in the lab; twice\n", "# a, b\n#\n# c\n", "# dots \x85 and \x0c feeds\n"],
)
def test_19_remarks_above_the_header(tmp_path, remark):
    """Marks inside a remark, and characters Python takes for line ends, must not move the header."""
    columns = recording()
    path = write_csv(tmp_path / "a.csv", columns)
    text = (tmp_path / "a.csv").read_text()
    for header in (text, "# " + text):
        (tmp_path / "a.csv").write_bytes((remark + header).encode("latin-1"))
        log = read_log(path, arm())
        assert len(log.t) == len(columns["t"])
        assert log.t[0] == 0.0


def test_24_absurdly_large_values_count_as_missing(tmp_path):
    columns = recording()
    columns["tau_2"][700] = 1.7e308
    columns["q_1"][300] = -1e200
    log = read_log(write_csv(tmp_path / "a.csv", columns), arm())
    assert codes(log) == ["not-finite"]
    assert np.array_equal(np.flatnonzero(~log.valid), [300, 700])
    assert np.abs(log.q).max() < 10.0


def test_20_a_lone_quote_is_refused_with_its_place(tmp_path):
    path = write_csv(tmp_path / "a.csv", recording())
    lines = (tmp_path / "a.csv").read_text().splitlines()
    lines[300] += '"'
    (tmp_path / "a.csv").write_text("\n".join(lines))
    with pytest.raises(InputError, match="is not a number") as caught:
        read_log(path, arm())
    assert caught.value.place == "row 301, column 'tau_2'"


def test_21_runs_named_by_text_are_not_silently_joined(tmp_path):
    path = write_csv(tmp_path / "a.csv", recording())
    header, *rows = (tmp_path / "a.csv").read_text().splitlines()
    half = len(rows) // 2
    named = [f"{row},{'first' if i < half else 'second'}" for i, row in enumerate(rows)]
    (tmp_path / "a.csv").write_text("\n".join([f"{header},segment", *named]))
    with pytest.raises(InputError, match="contains text"):
        read_log(path, arm())


def test_36_a_log_at_rest_is_not_judged():
    """Rounding against zero, or noise against noise, says nothing about units."""
    rng = np.random.default_rng(3)
    t = np.arange(2000) / 250.0
    still = np.full((len(t), 2), 0.3)
    for noise in (0.0, 1e-6):
        q = still + noise * rng.normal(size=still.shape)
        dq = noise * rng.normal(size=still.shape)
        log = log_from_arrays(arm(), t, q, np.ones_like(q), dq)
        assert not plan_motions([log], arm(), Filter(cutoff=10.0), Mask())[0].notices
