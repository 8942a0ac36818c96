"""One log in every format gives the same numbers; damaged and hostile files give only input errors."""

from __future__ import annotations

import json
import os
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.motion import reading
from dynid.motion.logs import digest, read_log, read_table
from dynid.motion.ros_table import Topic, ros_table
from dynid.motion.settings import LogEntry
from dynid.motion.sources import each_log, files
from tests.arms import arm, recording
from tests.log_files import (
    DEFINITION,
    JOINTS,
    PLAIN,
    ROS,
    START,
    joint_states,
    multi_arrays,
    stamp,
    store,
    write_mcap,
    write_rosbag2,
)
from tests.matlab_objects import Objects, duration, timetable, write_mat5, write_mat73


@pytest.fixture(scope="module")
def columns():
    # Whole microseconds: formats that store stamps as integers keep these exactly.
    return recording(seconds=2.0, velocities=True)


@pytest.mark.parametrize("kind", PLAIN)
def test_every_format_gives_the_same_log(tmp_path, columns, kind) -> None:
    expected = {**columns}
    log = read_log(PLAIN[kind](tmp_path, columns), arm())
    for j in range(2):
        np.testing.assert_array_equal(log.q[:, j], expected[f"q_{j + 1}"])
        np.testing.assert_array_equal(log.dq[:, j], expected[f"dq_{j + 1}"])
        np.testing.assert_array_equal(log.tau[:, j], expected[f"tau_{j + 1}"])
    np.testing.assert_array_equal(log.t, expected["t"])
    assert log.notices == ()


# NumPy


def test_16_a_header_that_declares_more_than_the_file_is_refused(tmp_path) -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,), }".ljust(117) + b"\n"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 64
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("t.npy", array)
    with pytest.raises(InputError, match="declares 80000000000 bytes"):
        read_table(tmp_path / "a.npz")


def test_16_an_archive_that_grows_beyond_reason_is_not_read(tmp_path, monkeypatch) -> None:
    np.savez_compressed(tmp_path / "a.npz", t=np.zeros(500_000), q_1=np.zeros(500_000))
    monkeypatch.setattr(reading, "SUSPECT", 2**20)
    with pytest.raises(InputError, match="declare 8 MB of numbers"):
        read_table(tmp_path / "a.npz")


def test_15_objects_are_never_loaded(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", t=np.arange(5.0), q=np.array([{}, 1], dtype=object))
    with pytest.raises(InputError, match="Python objects") as caught:
        read_table(tmp_path / "a.npz")
    assert caught.value.place == "array 'q'"
    (tmp_path / "a.pkl").write_bytes(b"\x80\x04N.")
    with pytest.raises(InputError, match="no reader"):
        read_table(tmp_path / "a.pkl")


@pytest.mark.parametrize("name", ["../t.npy", "/t.npy", "a\\..\\..\\t.npy"])
def test_archives_that_leave_their_folder_are_refused(tmp_path, name) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr(name, b"")
    with pytest.raises(InputError, match="leaves the archive"):
        read_table(tmp_path / "a.npz")


def test_an_array_without_names_asks_for_names(tmp_path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((5, 3)))
    with pytest.raises(InputError, match="without column names"):
        read_table(tmp_path / "a.npy")


# MATLAB


def test_simulink_signals_of_different_rates_get_one_clock(tmp_path, columns) -> None:
    from scipy.io import savemat

    t, slow = columns["t"], columns["t"][::5]
    structs = {
        "q": {"Time": t, "Data": np.column_stack([columns["q_1"], columns["q_2"]])},
        "tau": {"Time": slow, "Data": np.column_stack([2.0 * slow, -slow])},
    }
    savemat(tmp_path / "a.mat", {"logsout": structs})
    log = read_log(tmp_path / "a.mat", arm())
    inside = t <= slow[-1]
    np.testing.assert_allclose(log.tau[:, 0], 2.0 * t[inside], atol=1e-12)  # rounding of a line
    assert "rows outside the overlap" in log.choices["overlap"]
    assert len(log.q) == inside.sum() < len(t)


def opaque(name: str, cls: str) -> bytes:
    """An object as MATLAB 7 writes it; its content is in another element."""

    def element(kind: int, data: bytes) -> bytes:
        return kind.to_bytes(4, "little") + len(data).to_bytes(4, "little") + data + b"\0" * (-len(data) % 8)

    flags = element(6, (17).to_bytes(4, "little") + b"\0" * 4)
    return element(14, flags + element(1, name.encode()) + element(1, b"MCOS") + element(1, cls.encode()))


def test_objects_of_matlab_are_refused_with_the_way_out(tmp_path, columns) -> None:
    start = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    (tmp_path / "a.mat").write_bytes(start + opaque("tt", "timetable"))
    with pytest.raises(InputError, match="'tt' is an object of class timetable") as caught:
        read_table(tmp_path / "a.mat")
    assert "table2struct(timetable2table(tt)" in caught.value.remedy
    path = PLAIN["mat"](tmp_path, columns)
    path.write_bytes(path.read_bytes() + opaque("tt", "timetable"))
    table = read_table(path)
    assert table.skipped == ("tt",)
    assert "an object of class timetable" in table.listing()


@pytest.mark.parametrize("write", [write_mat5, write_mat73])
def test_tables_units_dates_and_rates_of_matlab(tmp_path, columns, write) -> None:
    """A table with durations, a timetable with units and dates, one with a rate."""
    if write is write_mat73:
        pytest.importorskip("h5py")
    objects, t = Objects(), columns["t"]
    signals = {"q_1": np.degrees(columns["q_1"]), "q_2": columns["q_2"], "tau_1": columns["tau_1"]}
    table = {
        "data": [duration(objects, t), *signals.values()],
        "varnames": ["t", *signals],
        "props": {"a": "b"},
    }
    today = objects.make("datetime", {"data": 1.7e12 + 0.25j + np.round(1e3 * t, 6)})
    words = np.array([1, 2, 1, 1, 2], np.uint64)
    words = np.append(words, np.frombuffer("Hi\0\0".encode("utf-16-le"), np.uint64)).view(np.uint32)
    rate = {
        "origin": duration(objects, np.zeros(1)),
        "specifiedAsRate": np.ones(1),
        "sampleRate": np.array([250.0]),
    }
    variables = {
        "table": objects.make("table", table),
        "dated": timetable(objects, today, signals, {"q_1": "deg", "tau_1": "N*m"}),
        "rated": timetable(objects, rate, signals, {}),
    }
    read = {
        name: read_table(write(tmp_path / f"{name}.mat", {name: value}, objects))
        for name, value in variables.items()
    }
    np.testing.assert_array_equal(read["table"].columns["t"], t)
    np.testing.assert_array_equal(read["table"].columns["q_1"], signals["q_1"])
    assert [*read["dated"].columns] == ["Time", "q_1 [deg]", "q_2", "tau_1 [N*m]"]
    # Milliseconds since 1970 have 0.2 us as floats; the imaginary part is a constant here.
    np.testing.assert_allclose(read["dated"].columns["Time"], t, atol=2e-7)
    np.testing.assert_allclose(read["rated"].columns["Time"], np.arange(len(t)) / 250.0, rtol=1e-15)


def test_18_an_object_of_matlab_73_is_refused_with_the_way_out(tmp_path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.mat", "w") as file:
        data = file.create_dataset("tt", data=np.zeros((1, 6), np.uint32))
        data.attrs["MATLAB_class"] = np.bytes_(b"timetable")
        data.attrs["MATLAB_object_decode"] = np.int32(3)
    with pytest.raises(InputError, match="'tt' is an object of class timetable"):
        read_table(tmp_path / "a.mat")


def test_16_a_compressed_variable_that_grows_beyond_reason_is_not_read(tmp_path, monkeypatch) -> None:
    from scipy.io import savemat

    savemat(tmp_path / "a.mat", {"t": np.zeros(500_000)}, do_compression=True)
    monkeypatch.setattr(reading, "SUSPECT", 2**20)
    with pytest.raises(InputError, match="MB of numbers"):
        read_table(tmp_path / "a.mat")


# HDF5


def hdf5_with(path: Path, what: str) -> Path:
    import h5py

    with h5py.File(path, "w") as file:
        file["t"] = np.arange(5.0)
        if what == "external link":
            file["q_1"] = h5py.ExternalLink("other.h5", "/q_1")
        elif what == "external storage":
            file.create_dataset("q_1", (5,), float, external=[("/etc/passwd", 0, 40)])
        elif what == "virtual":
            layout = h5py.VirtualLayout((5,), float)
            layout[:] = h5py.VirtualSource("other.h5", "q_1", (5,))
            file.create_virtual_dataset("q_1", layout)
        elif what == "bomb":
            file.create_dataset("q_1", (10**12,), float, chunks=(10**6,))
        elif what == "plugin":
            file.create_dataset("q_1", (5,), float, chunks=(5,), compression=32015, allow_unknown_filter=True)
    return path


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("external link", "link to another file, 'other.h5'"),
        ("external storage", "stored in other files"),
        ("virtual", "stored in other files"),
        ("bomb", "declare 7629395 MB"),
        ("plugin", "the filter 32015 would load a library"),
    ],
)
def test_17_hdf5_never_leaves_its_file(tmp_path, what, said) -> None:
    with pytest.raises(InputError, match=said):
        read_table(hdf5_with(tmp_path / "a.h5", what))


def test_17_soft_links_and_cycles_are_read_once(tmp_path) -> None:
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["run/t"] = np.arange(5.0)
        file["run/alias"] = h5py.SoftLink("/run/t")
        file["run/nowhere"] = h5py.SoftLink("/no/such")
    assert list(read_table(tmp_path / "a.h5").columns) == ["t"]
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["run/t"] = np.arange(5.0)
        file["run/again"] = file["run"]
    with pytest.raises(InputError, match="nested deeper"):
        read_table(tmp_path / "b.h5")


@pytest.mark.parametrize(
    ("ending", "module", "extra"),
    [("h5", "h5py", "hdf5"), ("feather", "pyarrow", "parquet"), ("csv.zst", "zstandard", "ros")],
)
def test_a_missing_package_names_its_extra(tmp_path, monkeypatch, ending, module, extra) -> None:
    (tmp_path / f"a.{ending}").write_bytes(b"x" * 100)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"pip install 'dynid\[{extra}\]'"):
        read_table(tmp_path / f"a.{ending}")


# Compressed CSV


def test_16_a_text_that_grows_beyond_reason_is_not_read(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(reading, "SUSPECT", 2**17)
    big = {"t": np.zeros(50_000), "q_1": np.zeros(50_000)}
    for kind in ("csv_gzip", "csv_xz", "csv_zstd"):
        with pytest.raises(InputError, match=r"declare \d MB of text"):
            read_table(PLAIN[kind](tmp_path, big))


# CSV as other programs write it


def wild(times, columns, delimiter=",", names=("t", "q_1", "q_2", "tau_1", "tau_2")) -> str:
    rows = zip(times, *(columns[n].tolist() for n in ("q_1", "q_2", "tau_1", "tau_2")), strict=True)
    return "\n".join([delimiter.join(names), *(delimiter.join(map(str, row)) for row in rows)]) + "\n"


def iso(ns: int) -> str:
    return f"{np.datetime64(ns // 1000, 'us')}"


TIMES = {
    "matlab seconds": lambda t: f"{t:.3f} sec",
    "milliseconds": lambda t: f"{1000 * t:.0f} ms",
    "matlab clock": lambda t: f"00:00:{t:06.3f}",
    "iso": lambda t: iso(stamp(t)),
    "iso with zone": lambda t: iso(stamp(t)).replace("T", " ") + "+02:00",
    "epoch s": lambda t: f"{stamp(t) / 1e9:.6f}",
    "epoch ms": lambda t: stamp(t) // 10**6,
    "epoch us": lambda t: stamp(t) // 10**3,
    "epoch ns": lambda t: stamp(t),
}


@pytest.mark.parametrize("kind", TIMES)
def test_times_as_other_programs_write_them(tmp_path, columns, kind) -> None:
    (tmp_path / "a.csv").write_text(wild(map(TIMES[kind], columns["t"]), columns))
    log = read_log(tmp_path / "a.csv", arm())
    # An epoch in seconds has a resolution of 2e-7 s as a float.
    np.testing.assert_allclose(log.t, columns["t"], atol=3e-7 if kind == "epoch s" else 1e-15)
    np.testing.assert_array_equal(log.q[:, 0], columns["q_1"])
    words = log.choices["time unit" if "epoch" in kind else "times in 't'"]
    expected = {"epoch": f"{kind.split()[-1]} since 1970", "iso": "dates of ISO 8601"}
    assert words.startswith(expected.get(kind.split()[0], "durations"))


def test_stamps_in_nanoseconds_keep_every_digit(tmp_path, columns) -> None:
    """Stamps of today have 19 digits; as floats they would be multiples of 256 ns."""
    first = 1_763_391_000_123_456_789
    stamps = [first + 4_000_003 * i for i in range(len(columns["t"]))]
    (tmp_path / "a.csv").write_text(wild(stamps, columns))
    assert read_table(tmp_path / "a.csv").columns["t"].tolist() == stamps


def test_numbers_of_rows_without_a_name_and_a_line_of_units(tmp_path, columns) -> None:
    """As pandas writes its index, and as measuring programs write units below the names."""
    lines = wild(columns["t"], columns).splitlines()
    (tmp_path / "a.csv").write_text(
        "\n".join([f",{lines[0]}", *(f"{i},{x}" for i, x in enumerate(lines[1:]))])
    )
    (tmp_path / "b.csv").write_text("\n".join([lines[0], "s,[deg],deg,-,-", *lines[1:]]))
    (tmp_path / "c.csv").write_text("\n".join([lines[0], "s,x,deg,Nm,Nm", *lines[1:]]))
    plain = read_log(tmp_path / "a.csv", arm())
    np.testing.assert_array_equal(plain.q[:, 0], columns["q_1"])
    assert plain.mapping["t"] == "t"
    other = read_log(tmp_path / "b.csv", arm())
    np.testing.assert_allclose(other.q, np.deg2rad(plain.q), rtol=1e-15)
    np.testing.assert_array_equal(other.tau, plain.tau)
    with pytest.raises(InputError, match=r"row 2, column 't'"):
        read_log(tmp_path / "c.csv", arm())


def test_30_slow_epoch_stamps_keep_their_unit(tmp_path) -> None:
    """100 ms between samples: by the step alone the unit would be microseconds."""
    t = np.arange(300) / 10.0
    columns = recording(seconds=30.0, rate=10.0)
    (tmp_path / "a.csv").write_text(wild([stamp(one) // 10**6 for one in t], columns))
    log = read_log(tmp_path / "a.csv", arm())
    np.testing.assert_allclose(log.t, t, atol=1e-12)  # rounding
    counter = (1.5e9 + np.arange(300) * 4000).astype(int)  # microseconds of a controller, after 25 minutes
    (tmp_path / "b.csv").write_text(wild(counter, columns))
    log = read_log(tmp_path / "b.csv", arm())
    assert log.choices["time unit"].startswith("us, inferred from the median step")


@pytest.mark.parametrize(
    ("time", "delimiter"),
    [
        ("__time", ","),
        ("%time", ","),
        ("timestamp", " "),
        ("Time [s]", ";"),
        ("time", " "),
        ("X_Value", "\t"),
    ],
)
def test_time_columns_of_other_programs(tmp_path, columns, time, delimiter) -> None:
    names = (time, "q_1", "q_2", "tau_1", "tau_2")
    (tmp_path / "a.csv").write_text(wild(columns["t"], columns, delimiter, names))
    log = read_log(tmp_path / "a.csv", arm())
    np.testing.assert_array_equal(log.t, columns["t"])
    assert log.mapping["t"] == time
    other = read_log(tmp_path / "a.csv", arm(), columns={"t": time})
    np.testing.assert_array_equal(log.t, other.t)


@pytest.mark.parametrize(
    "time", ["Time (ms)", "t [ms]", "timestamp [ms]", "Stamp (ms)", "time_ms", "Elapsed (ms)"]
)
def test_the_unit_of_time_in_a_header_is_used(tmp_path, columns, time) -> None:
    """At 2000 Hz nothing else shows it: steps of 0.5 are as usual in seconds as in milliseconds."""
    fast = {**columns, "t": 0.5 * np.arange(len(columns["t"]))}
    (tmp_path / "a.csv").write_text(wild(fast["t"], fast, ",", (time, "q_1", "q_2", "tau_1", "tau_2")))
    np.testing.assert_allclose(np.diff(read_log(tmp_path / "a.csv", arm()).t), 5e-4, rtol=1e-9)  # rounding


def test_plotjuggler_leaves_cells_blank_where_a_signal_has_no_sample(tmp_path, columns) -> None:
    rows = ["__time,/js/q_1,/tau_1"]
    for i, (t, q) in enumerate(zip(columns["t"].tolist(), columns["q_1"].tolist(), strict=True)):
        rows.append(f"{t},{q},{2 * t if i % 5 == 0 else ''}")
    (tmp_path / "a.csv").write_text("\n".join(rows))
    log = read_log(tmp_path / "a.csv", arm(1))
    np.testing.assert_array_equal(log.q[:, 0], columns["q_1"][: len(log.t)])
    np.testing.assert_allclose(log.tau[:, 0], 2 * log.t, atol=1e-12)  # rounding of a line
    assert log.choices["overlap"].startswith("4 rows outside the overlap")


def test_29_signals_that_are_not_used_do_not_shorten_a_log(tmp_path, columns) -> None:
    """A camera that starts late and stops early, in the same file."""
    rows = ["__time,q_1,q_2,tau_1,tau_2,camera"]
    numbers = [columns[name].tolist() for name in ("t", "q_1", "q_2", "tau_1", "tau_2")]
    count = len(columns["t"])
    for i, cells in enumerate(zip(*numbers, strict=True)):
        seen = 0.3 * count < i < 0.95 * count and i % 3 == 0
        rows.append(",".join(map(str, cells)) + (",7" if seen else ","))
    (tmp_path / "a.csv").write_text("\n".join(rows))
    log = read_log(tmp_path / "a.csv", arm())
    np.testing.assert_array_equal(log.t, columns["t"])
    assert not log.notices
    assert "overlap" not in log.choices


def test_text_columns_are_shown_with_their_first_cell(tmp_path, columns) -> None:
    (tmp_path / "a.csv").write_text(wild((f"tick {i}" for i in range(len(columns["t"]))), columns))
    with pytest.raises(InputError, match="column 't' is text: 'tick 0'"):
        read_log(tmp_path / "a.csv", arm())


@pytest.mark.parametrize("cell", ["٠٫٥", "１.５", "−0.5", "0.5\u200b"])
def test_67_digits_of_other_scripts_are_refused_with_their_place(tmp_path, columns, cell) -> None:
    lines = wild(columns["t"], columns).split("\n")
    cells = lines[300].split(",")
    lines[300] = ",".join([*cells[:2], cell, *cells[3:]])
    (tmp_path / "a.csv").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match="is not a number") as caught:
        read_log(tmp_path / "a.csv", arm())
    assert caught.value.place == "row 301, column 'q_2'"


def test_a_time_that_is_no_time_is_refused_with_its_place(tmp_path, columns) -> None:
    lines = wild((f"{t:.3f} sec" for t in columns["t"]), columns).split("\n")
    lines[200] = "soon" + lines[200][lines[200].index(",") :]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    with pytest.raises(InputError, match="'soon' is not a number") as caught:
        read_log(tmp_path / "a.csv", arm())
    assert caught.value.place == "row 201, column 't'"


def test_numbers_of_text_are_the_nearest_floats(tmp_path) -> None:
    """Any number of digits, any exponent, as float() reads them; halves between two floats too."""
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**64, 1000, dtype=np.uint64).view(float)
    floats = np.concatenate([bits[np.isfinite(bits)], rng.normal(size=1000), rng.normal(size=1000) * 1e-12])
    cells = [form % x for x in floats for form in ("%.17g", "%.9g", "%.18e", "%.6f", "%.20f")]
    cells += ["9007199254740993", "1e23", "-0", ".5", "5.", "+1E+05", "1e-400", "1e400", "nan", "-NaN", "inf"]
    cells += ["0.000000000000000000000000012345678901234567", "18446744073709551615", "18446744073709551616"]
    cells += [
        "4.9e-324",
        "2.2250738585072011e-308",
        "1.7976931348623157e308",
        '"0.25"',
        "123456789012345678901e-21",
    ]
    (tmp_path / "a.csv").write_text("t,q_1\n" + "".join(f"{i}, {cell} \r\n" for i, cell in enumerate(cells)))
    read = read_table(tmp_path / "a.csv").columns["q_1"]
    expected = np.array([float(cell.strip('"')) for cell in cells])
    np.testing.assert_array_equal(read, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(read)[number], np.signbit(expected)[number])


@pytest.mark.parametrize("cell", ["0x10", "1_0", "1e", "1.2.3", "--1", "e5", "", "1 2", "n", "12a", "\u0663"])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_cells_that_are_no_numbers_are_named(tmp_path, cell, delimiter) -> None:
    rows = [delimiter.join(["0.5", "1.5", "2.5"])] * 60
    rows[50] = delimiter.join(["0.5", cell, "2.5"])
    header = delimiter.join(["t", "q_1", "q_2"])
    (tmp_path / "a.csv").write_text("\n".join([header, *rows]), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_table(tmp_path / "a.csv")
    assert caught.value.place == "row 52, column 'q_1'"


@pytest.mark.parametrize("marks", [",.", ";,", "\t.", " .", "  \t ."])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", " \n"])
def test_delimiters_decimal_signs_and_ends_of_lines(tmp_path, columns, marks, end) -> None:
    delimiter, decimal = marks[:-1], marks[-1]
    values = np.column_stack(list(columns.values()))
    rows = [delimiter.join(map(repr, row)).replace(".", decimal) for row in values.tolist()]
    (tmp_path / "a.csv").write_text(end.join([delimiter.join(columns), *rows]))
    read = read_table(tmp_path / "a.csv").columns
    assert list(read) == list(columns)
    for name, expected in columns.items():
        np.testing.assert_array_equal(read[name], expected)


@pytest.mark.parametrize("kind", ["npz", "hdf5", "hdf5_texts", "mat", "mat73"])
def test_a_list_of_joint_names_orders_the_columns_of_matrices(tmp_path, columns, kind) -> None:
    """The matrices have the joints in another order than the robot; by number they would be exchanged."""
    names = [JOINTS[1], JOINTS[0]]
    parts = {"timestamps": columns["t"]}
    for key, quantity in (("q", "positions"), ("dq", "velocities"), ("tau", "torques")):
        parts[quantity] = np.column_stack([columns[f"{key}_2"], columns[f"{key}_1"]])
    if kind == "npz":
        path = tmp_path / "a.npz"
        np.savez(path, joint_names=np.array(names), **parts)
    elif kind.startswith("hdf5"):
        h5py = pytest.importorskip("h5py")
        path = tmp_path / "a.h5"
        with h5py.File(path, "w") as file:
            for name, values in {
                "joint_names": names if "texts" in kind else np.array(names, "S"),
                **parts,
            }.items():
                file[f"run/{name}"] = values
    else:
        path = tmp_path / "a.mat"
        if kind == "mat73":
            pytest.importorskip("h5py")
        write = write_mat5 if kind == "mat" else write_mat73
        write(path, {"log": {"joint_names": names, **parts}}, Objects())
    log = read_log(path, arm())
    for key in ("q", "dq", "tau"):
        for j in range(2):
            np.testing.assert_array_equal(getattr(log, key)[:, j], columns[f"{key}_{j + 1}"])


@pytest.mark.parametrize(("names", "order"), [(("motor2", "motor1"), (1, 0)), (("left", "right"), (0, 1))])
def test_names_of_the_robots_joints_come_before_canonical_numbers(tmp_path, columns, names, order) -> None:
    """Names that the robot does not have order nothing."""
    parts = {key: np.column_stack([columns[f"{key}_{j + 1}"] for j in order]) for key in ("q", "dq", "tau")}
    np.savez(tmp_path / "a.npz", joint_names=np.array(names), t=columns["t"], **parts)
    log = read_log(tmp_path / "a.npz", arm())
    for key in ("q", "dq", "tau"):
        np.testing.assert_array_equal(getattr(log, key)[:, 1], columns[f"{key}_2"])


def test_lists_in_a_parquet_file_are_columns(tmp_path, columns) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = {"timestamp": columns["t"]}
    for key, quantity in (("q", "joint_position"), ("tau", "joint_torque")):
        rows[quantity] = np.column_stack([columns[f"{key}_1"], columns[f"{key}_2"]]).tolist()
    parquet.write_table(pa.table(rows), tmp_path / "a.parquet")
    log = read_log(tmp_path / "a.parquet", arm())
    np.testing.assert_array_equal(log.q[:, 1], columns["q_2"])
    np.testing.assert_array_equal(log.tau[:, 0], columns["tau_1"])


# Recordings of ROS

STATE = "sensor_msgs/msg/JointState"
# The names of joints are matched elsewhere; here the columns are given.
STATES = {
    f"{key}_{j + 1}": f"/joint_states/{name}/{quantity}"
    for j, name in enumerate(JOINTS)
    for key, quantity in (("q", "position"), ("dq", "velocity"), ("tau", "effort"))
}


@pytest.mark.parametrize("kind", ROS)
def test_every_recording_gives_the_same_log(tmp_path, columns, kind) -> None:
    log = read_log(ROS[kind](tmp_path, columns), arm(), columns=STATES)
    expected = read_log(PLAIN["csv"](tmp_path, columns), arm())
    for name in ("t", "q", "dq", "tau"):
        np.testing.assert_array_equal(getattr(log, name), getattr(expected, name))
    assert log.notices == ()
    assert "header stamps; origin 1700000000.000000 s subtracted" in log.choices["time"]


@pytest.mark.parametrize("storage", ["SQLITE3", "MCAP"])
def test_joints_in_changing_order_are_found_by_name(tmp_path, columns, storage) -> None:
    types, rng = store(), np.random.default_rng(1)
    states = joint_states(columns, types, order=lambda i: rng.permutation(2))
    bag = write_rosbag2(tmp_path, {"/joint_states": (STATE, states)}, storage)
    log = read_log(bag, arm(), columns=STATES)
    np.testing.assert_array_equal(log.q, np.column_stack([columns["q_1"], columns["q_2"]]))
    np.testing.assert_array_equal(log.tau, np.column_stack([columns["tau_1"], columns["tau_2"]]))


def test_29_messages_with_a_part_of_the_joints_are_brought_together(tmp_path, columns) -> None:
    """Two publishers on one topic: each joint has its own clock, and the first one is the time base."""
    states = joint_states(columns, store(), order=lambda i: [i % 2])
    path = write_rosbag2(tmp_path, {"/joint_states": (STATE, states)}, "MCAP")
    log = read_log(path, arm(), columns=STATES)
    t = columns["t"][::2]
    inside = t >= columns["t"][1]
    np.testing.assert_array_equal(log.t, t[inside])
    np.testing.assert_array_equal(log.q[:, 0], columns["q_1"][::2][inside])
    between = np.interp(t[inside], columns["t"][1::2], columns["q_2"][1::2])
    np.testing.assert_array_equal(log.q[:, 1], between)
    assert log.choices["overlap"].startswith("1 rows outside the overlap")


def test_29_topics_at_100_and_500_hz_share_the_clock_of_the_positions(tmp_path) -> None:
    fast = recording(seconds=2.0, rate=500.0, velocities=True)
    slow = np.arange(5, 195) / 100.0
    types = store()
    topics = {
        "/torques": ("std_msgs/msg/Float64MultiArray", multi_arrays(slow, np.c_[3 * slow, -slow], types)),
        "/joint_states": (STATE, joint_states(fast, types)),
    }
    mapped = {"tau_{i}": "/torques/data_{i}"}
    log = read_log(write_rosbag2(tmp_path, topics, "SQLITE3"), arm(), columns=mapped)
    keep = (fast["t"] >= slow[0]) & (fast["t"] <= slow[-1])
    np.testing.assert_array_equal(log.q[:, 0], fast["q_1"][keep])
    np.testing.assert_allclose(np.diff(log.t), 0.002, atol=1e-12)  # rounding of t
    np.testing.assert_allclose(log.tau[:, 0], 3 * fast["t"][keep], atol=1e-12)
    assert log.choices["time base"].startswith("/joint_states (1000 samples")
    assert log.choices["overlap"].startswith(f"{int((~keep).sum())} rows outside the overlap")
    assert "time of the recorder for /torques" in log.choices["time"]


def test_29_nothing_is_interpolated_across_a_gap_or_beyond_the_ends(tmp_path) -> None:
    fast = recording(seconds=2.0, rate=500.0, velocities=True)
    slow = np.r_[np.arange(0, 40), np.arange(80, 201)] / 100.0
    types = store()
    topics = {
        "/torques": ("std_msgs/msg/Float64MultiArray", multi_arrays(slow, np.c_[slow, slow], types)),
        "/short": ("std_msgs/msg/Float64MultiArray", multi_arrays(slow[:20], slow[:20, None], types)),
        "/joint_states": (STATE, joint_states(fast, types)),
    }
    table = read_table(write_rosbag2(tmp_path, topics, "MCAP"))
    t, tau = table.columns["t"], table.columns["/torques/data_1"]
    # Stamps are whole nanoseconds from a date: differences of floats have rounding of 1e-12 s.
    lost = (t > 0.39 + 1e-9) & (t < 0.8 - 1e-9)
    np.testing.assert_array_equal(np.isnan(tau), lost)
    assert len(t) == len(fast["t"])  # a topic that covers a tenth does not shorten the log
    np.testing.assert_array_equal(np.isnan(table.columns["/short/data_1"]), t > 0.19 + 1e-9)
    assert "% of it" in table.choices["time base"]


def test_topics_without_stamps_are_moved_to_the_clock_of_the_stamps(tmp_path, columns) -> None:
    """Simulated time in the headers, time of day in the recorder."""
    types = store()
    states = [(ns + START, message) for ns, message in joint_states(columns, types, start=10**9)]
    values = np.c_[columns["tau_1"]]
    recorded = multi_arrays(columns["t"] + 1.0, values, types)
    topics = {"/joint_states": (STATE, states), "/tau": ("std_msgs/msg/Float64MultiArray", recorded)}
    table = read_table(write_rosbag2(tmp_path, topics, "MCAP"))
    np.testing.assert_array_equal(table.columns["/tau/data_1"], columns["tau_1"])
    assert table.columns["t"][0] == 1.0
    assert "moved by -1.7e+09 s" in table.choices["time"]


def test_other_messages_become_columns_of_their_fields(tmp_path, columns) -> None:
    types = store()
    made = types.types
    few = columns["t"][:30]

    def header(t):
        time = made["builtin_interfaces/msg/Time"](sec=stamp(t) // 10**9, nanosec=stamp(t) % 10**9)
        return made["std_msgs/msg/Header"](time, "tool")

    def vector(*x):
        return made["geometry_msgs/msg/Vector3"](*x)

    def point(x):
        duration = made["builtin_interfaces/msg/Duration"](0, 0)
        empty = np.zeros(0)
        return made["trajectory_msgs/msg/JointTrajectoryPoint"](
            np.array([x, 2 * x]), empty, empty, empty, duration
        )

    wrench = [
        (
            stamp(t),
            made["geometry_msgs/msg/WrenchStamped"](
                header(t), made["geometry_msgs/msg/Wrench"](vector(t, 2, 3), vector(4, 5, 6))
            ),
        )
        for t in few
    ]
    pose = [
        (
            stamp(t),
            made["geometry_msgs/msg/PoseStamped"](
                header(t),
                made["geometry_msgs/msg/Pose"](
                    made["geometry_msgs/msg/Point"](t, 0, 0), made["geometry_msgs/msg/Quaternion"](0, 0, 0, 1)
                ),
            ),
        )
        for t in few
    ]
    definition = (
        "std_msgs/Header header\nstring[] joint_names\ntrajectory_msgs/JointTrajectoryPoint desired\n"
    )
    definition += (
        "trajectory_msgs/JointTrajectoryPoint actual\nfloat64 DEFAULT=1.5  # a constant\nfloat64 gain\n"
    )
    from rosbags.typesys import get_types_from_msg

    kind = "control_msgs/msg/JointTrajectoryControllerState"
    types.register(get_types_from_msg(definition, kind))
    state = [(stamp(t), types.types[kind](header(t), ["a", "b"], point(t), point(-t), 7.0)) for t in few]
    topics = {
        "/ft": ("geometry_msgs/msg/WrenchStamped", wrench),
        "/pose": ("geometry_msgs/msg/PoseStamped", pose),
        "/controller/state": (kind, state),
    }
    table = read_table(write_rosbag2(tmp_path, topics, "MCAP", types))
    for name, values in {
        "/ft/wrench/force/x": few,
        "/ft/wrench/torque/z": 6.0 + 0 * few,
        "/pose/pose/position/x": few,
        "/pose/pose/orientation/w": 1.0 + 0 * few,
        "/controller/state/actual/b/position": -2 * few,
        "/controller/state/desired/a/position": few,
        "/controller/state/gain": 7.0 + 0 * few,
    }.items():
        np.testing.assert_array_equal(table.columns[name], values, err_msg=name)


def test_topics_that_cannot_be_decoded_are_listed(tmp_path, columns) -> None:
    import sqlite3

    bag = ROS["rosbag2_sqlite"](tmp_path, columns)
    (file,) = bag.glob("*.db3")
    with sqlite3.connect(file) as base:
        names = [row[1] for row in base.execute("PRAGMA table_info(topics)")]
        values = {"id": 9, "name": "/mine", "type": "mine/msg/Odd", "serialization_format": "cdr"}
        row = [values.get(name, "") for name in names]
        base.execute(f"INSERT INTO topics VALUES ({','.join('?' * len(row))})", row)  # noqa: S608
        base.execute("INSERT INTO messages (topic_id, timestamp, data) VALUES (9, 5, x'00010000')")
    table = read_table(file)
    assert table.skipped == ("/mine",)
    assert "no definition of mine/msg/Odd" in table.listing()


# 22, 23: recordings that are not whole


def test_22_an_unfinished_mcap_file_gives_what_it_contains(tmp_path, columns) -> None:
    path = ROS["mcap"](tmp_path, columns)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    table = read_table(path)
    count = len(table.columns["t"])
    assert 50 < count < len(columns["t"])
    np.testing.assert_array_equal(table.columns[STATES["q_2"]], columns["q_2"][:count])
    assert [one.code for one in table.notices] == ["recording-unfinished"]
    assert f"{count} messages were read" in table.notices[0].text
    path.write_bytes(data[:1000])  # the first chunk is cut too
    with pytest.raises(InputError, match=r"no topic with numbers; the recording is not finished") as caught:
        read_table(path)
    assert "mcap recover" in caught.value.remedy
    # Half of the file is read, except the chunk that is cut.
    seconds = float(re.search(r"about ([\d.]+) s", table.notices[0].text)[1])
    assert 0.0 < seconds < columns["t"][-1] - columns["t"][count - 1]


@pytest.mark.parametrize("kind", ["mcap", "mcap_lz4", "rosbag2_mcap"])
def test_23_a_damaged_chunk_is_left_out_and_reported(tmp_path, columns, kind) -> None:
    path = ROS[kind](tmp_path, columns) if kind != "rosbag2_mcap" else None
    if path is None:
        path = write_mcap(tmp_path / "a.mcap", columns, "NONE")
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)
    table = read_table(path)
    assert [one.code for one in table.notices] == ["chunks-damaged"]
    kept = np.isin(columns["t"], table.columns["t"])
    assert 0 < (~kept).sum() < 100
    np.testing.assert_array_equal(table.columns[STATES["q_1"]], columns["q_1"][kept])
    log = read_log(path, arm(), columns=STATES)
    assert {"chunks-damaged", "gap"} <= {one.code for one in log.notices}


def test_23_damaged_messages_outside_chunks_are_refused(tmp_path) -> None:
    from mcap.writer import Writer

    with (tmp_path / "a.mcap").open("wb") as file:
        writer = Writer(file, use_chunking=False, enable_data_crcs=True)
        writer.start()
        schema = writer.register_schema("std_msgs/msg/Float64", "ros2msg", b"float64 data")
        channel = writer.register_channel("/x", "cdr", schema)
        for i in range(20):
            writer.add_message(channel, i, b"\0\1\0\0" + np.float64(i).tobytes(), i)
        writer.finish()
    data = (tmp_path / "a.mcap").read_bytes()
    assert list(read_table(tmp_path / "a.mcap").columns["/x/data"]) == list(range(20))
    at = data.index(np.float64(7).tobytes())
    (tmp_path / "a.mcap").write_bytes(data[:at] + b"\1" + data[at + 1 :])
    with pytest.raises(InputError, match="checksum of the messages"):
        read_table(tmp_path / "a.mcap")


def test_a_bag_never_leaves_its_folder(tmp_path, columns) -> None:
    bag = ROS["rosbag2_sqlite"](tmp_path, columns)
    text = (bag / "metadata.yaml").read_text()
    (name,) = (one.name for one in bag.glob("*.db3"))
    for other in ("../bag/" + name, "/etc/passwd"):
        (bag / "metadata.yaml").write_text(text.replace(name, other))
        with pytest.raises(InputError, match="outside the folder"):
            read_table(bag)
    (bag / "metadata.yaml").write_text(text)
    (bag / name).rename(bag / "other.db3")
    with pytest.raises(InputError, match="is missing"):
        read_table(bag)
    (bag / "metadata.yaml").write_text("a: 1")
    with pytest.raises(InputError, match="not the metadata"):
        read_table(bag)


def test_a_hostile_data_base_does_not_compute_forever(tmp_path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "a.db3") as base:
        base.execute("CREATE TABLE topics (id, name, type, serialization_format)")
        base.execute(
            "CREATE VIEW messages AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
            " SELECT i AS topic_id, i AS timestamp, i AS data FROM n"
        )
    with pytest.raises(InputError, match="no table 'messages'"):
        read_table(tmp_path / "a.db3")


# Damage


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """A file cut off, with wrong bits, with bytes lost or doubled, or with large numbers at some place."""
    kind, at = rng.integers(6), int(rng.integers(len(data)))
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + data[at + int(rng.integers(1, 50)) :]
    if kind == 2:
        return data[:at] + data[max(0, at - 64) :]
    if kind == 3:
        return data[:at] + rng.choice([b"\xff" * 8, b"\0" * 8, b"\x7f" * 4]) + data[at + 8 :]
    changed = bytearray(data)
    for i in rng.integers(len(data), size=int(rng.integers(1, 12))):
        changed[i] ^= 1 << int(rng.integers(8))
    if kind == 4:  # most structure is at the ends
        changed[int(rng.integers(min(400, len(data))))] = int(rng.integers(256))
        changed[-1 - int(rng.integers(min(400, len(data))))] = int(rng.integers(256))
    return bytes(changed)


CASES = int(os.environ.get("FUZZ_CASES", "40"))  # of each kind


# One per reader and way of compression.
FUZZED = "csv_gzip csv_xz csv_zstd parquet feather npz npy hdf5 mat mat_compressed mat73_cells"
FUZZED += " mat_timetable mat73_timetable mcap ros1 rosbag2_sqlite"


@pytest.mark.parametrize("kind", FUZZED.split())
def test_damaged_files_give_only_input_errors(tmp_path, kind) -> None:
    small = {name: values[:60] for name, values in recording(seconds=1.0).items()}
    path = {**PLAIN, **ROS}[kind](tmp_path, small)
    file = next(one for one in path.iterdir() if one.suffix != ".yaml") if path.is_dir() else path
    data = file.read_bytes()
    rng = np.random.default_rng([*kind.encode()])
    refused = 0
    for _ in range(CASES):
        file.write_bytes(damaged(data, rng))
        try:
            lengths = {len(values) for values in read_table(path).columns.values()}
        except InputError:
            refused += 1
            continue
        assert len(lengths) == 1
    assert refused > CASES // 20


def test_damaged_messages_and_definitions_are_counted_or_refused(tmp_path, columns) -> None:
    """Behind the checksum of a chunk: bytes and definitions of messages are not trusted either."""
    types = store()
    states = [
        types.serialize_cdr(one, STATE)
        for _, one in joint_states({k: v[:8] for k, v in columns.items()}, types)
    ]
    rng = np.random.default_rng(4)
    counted = refused = 0
    for i in range(300):
        text = DEFINITION.encode() if i % 2 else damaged(DEFINITION.encode(), rng)
        topic = Topic("/x", STATE, text.decode("latin-1"), "cdr" if i % 3 else "ros1")
        topic.messages = [damaged(bytes(one), rng) if k % 3 else bytes(one) for k, one in enumerate(states)]
        topic.times = list(range(len(states)))
        try:
            table = ros_table([topic], "x", "MCAP", ())
        except InputError:
            refused += 1
            continue
        counted += [one.code for one in table.notices] == ["messages-damaged"]
    assert counted > 50
    assert refused > 50


# LeRobot


def lerobot(folder: Path, columns, episodes: int = 2, version: str = "episode") -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = {"observation.state": ["motor1.pos", "motor2.pos"], "action": {"motors": ["motor1", "motor2"]}}
    features = {name: {"dtype": "float32", "shape": [2], "names": labels} for name, labels in names.items()}
    (folder / "meta").mkdir(parents=True)
    (folder / "meta" / "info.json").write_text(
        json.dumps({"codebase_version": "v2.1", "fps": 250, "features": features})
    )
    (folder / "data" / "chunk-000").mkdir(parents=True)
    count = len(columns["t"])
    made = []
    for k in range(episodes):
        lists = {
            "observation.state": np.column_stack([columns["q_1"], columns["q_2"]]),
            "action": np.column_stack([columns["tau_1"], columns["tau_2"]]),
        }
        kind = pa.list_(pa.float64()) if version == "episode" else pa.list_(pa.float64(), 2)
        made.append(
            pa.table(
                {name: pa.array(list(values), kind) for name, values in lists.items()}
                | {
                    "timestamp": (columns["t"]).astype(np.float32),
                    "frame_index": np.arange(count),
                    "episode_index": np.full(count, k),
                }
            )
        )
    for k, table in enumerate(made if version == "episode" else [pa.concat_tables(made)]):
        pq.write_table(table, folder / "data" / "chunk-000" / f"{version}_{k:06d}.parquet")
    return folder


@pytest.mark.parametrize("version", ["episode", "file"])
def test_lerobot_episodes_are_segments(tmp_path, columns, version) -> None:
    folder = lerobot(tmp_path / "set", columns, version=version)
    mapping = {f"q_{j}": f"observation.state/motor{j}.pos" for j in (1, 2)}
    log = read_log(folder, arm(), columns={**mapping, **{f"tau_{j}": f"action/motor{j}" for j in (1, 2)}})
    n = len(columns["t"])
    assert log.segments == ((0, n), (n, 2 * n))
    np.testing.assert_array_equal(log.q[n:, 1], columns["q_2"])
    np.testing.assert_array_equal(log.tau[:n, 0], columns["tau_1"])
    assert log.dt == pytest.approx(0.004, rel=1e-12)
    assert log.choices["format"] == "LeRobot, 2 episodes"
    assert log.name == "set"
    (folder / "meta" / "info.json").write_text("{}")
    with pytest.raises(InputError, match="no features or fps"):
        read_table(folder)


# Folders and patterns


def test_folders_and_patterns_mean_all_their_logs_in_natural_order(tmp_path, columns) -> None:
    for name in ("run10.csv", "run2.csv", "run1.csv"):
        (tmp_path / name).write_text("x")
    (tmp_path / "notes.txt").write_text("read me")
    lerobot(tmp_path / "set", columns, 1)
    expected = [str(tmp_path / name) for name in ("run1.csv", "run2.csv", "run10.csv")]
    assert files(str(tmp_path / "run*.csv")) == expected
    assert files(str(tmp_path)) == [*expected, str(tmp_path / "set")]
    assert files(str(tmp_path / "set")) == [str(tmp_path / "set")]
    assert files("none.csv") == ["none.csv"]
    entry = LogEntry(str(tmp_path / "run[12].csv"), ("ballast",), start=1.0)
    several = list(each_log([entry, "a.csv", columns]))
    assert [one.file for one in several[:2]] == expected[:2]
    assert all(one.payloads == ("ballast",) and one.start == 1.0 for one in several[:2])
    assert several[2:] == ["a.csv", columns]


def test_66_a_result_inside_the_folder_of_the_logs_is_no_log(tmp_path) -> None:
    for name in ("run1.csv", "day2/run2.csv", "out/signals.csv", "out/result.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    logs = [str(tmp_path / "day2/run2.csv"), str(tmp_path / "run1.csv")]
    assert files(str(tmp_path / "**/*.csv")) == logs
    assert files(str(tmp_path)) == logs[1:]
    assert files(str(tmp_path / "out/signals.csv")) == [str(tmp_path / "out/signals.csv")]


def test_a_pattern_without_logs_shows_the_folder(tmp_path) -> None:
    (tmp_path / "a.mcap").write_text("")
    with pytest.raises(InputError, match=r"nothing matches '\*.bag'; the folder '.*' contains a.mcap"):
        files(str(tmp_path / "*.bag"))
    with pytest.raises(InputError, match="there is no folder"):
        files(str(tmp_path / "none" / "*.bag"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no log in this folder; the folder '.*' contains nothing"):
        files(str(tmp_path / "empty"))


def test_an_experiment_takes_patterns_and_a_command_takes_lists(tmp_path, columns, monkeypatch) -> None:
    from click.testing import CliRunner

    from dynid import cli, pipeline
    from dynid.experiment.experiment import read_experiment

    (tmp_path / "e.yaml").write_text("robot: ur5\nlogs: ['runs/*.csv', {file: more, payload: ballast}]\n")
    for name in ("runs/b2.csv", "runs/b10.csv", "more/c.npz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    logs = list(each_log(read_experiment(tmp_path / "e.yaml").logs))
    assert [Path(one.file).name for one in logs] == ["b2.csv", "b10.csv", "c.npz"]
    assert logs[2].payloads == ("ballast",)
    asked = []
    monkeypatch.setattr(pipeline, "run_experiment", lambda problem, *_: asked.append(problem) or 1 / 0)
    arguments = [
        "identify",
        "--robot",
        "ur5",
        "--log",
        "a.csv",
        "b.csv",
        "--validate=c.csv",
        "d.csv",
        "--model",
        "power",
    ]
    CliRunner().invoke(cli.main, [*arguments, "--out", str(tmp_path / "o")])
    assert [one.file for one in asked[0].logs] == ["a.csv", "b.csv"]
    assert [one.file for one in asked[0].validate] == ["c.csv", "d.csv"]
    assert asked[0].model == "power"


def test_a_folder_is_identified_by_the_hash_of_its_files(tmp_path, columns) -> None:
    bag = ROS["rosbag2_mcap"](tmp_path, columns)
    before = digest(bag)
    assert digest(bag) == before
    (bag / "more.txt").write_text("x")
    assert digest(bag) != before
