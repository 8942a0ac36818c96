"""One log in every format gives the same numbers; damaged and hostile files give only input errors."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.motion import reading
from dynid.motion.logs import read_log, read_table
from tests.arms import arm, recording
from tests.log_files import PLAIN


@pytest.fixture(scope="module")
def columns():
    # Whole microseconds: formats that store stamps as integers keep these exactly.
    return recording(seconds=2.0, velocities=True)


def same(log, other) -> None:
    for name in ("t", "q", "dq", "tau"):
        np.testing.assert_array_equal(getattr(log, name), getattr(other, name))


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
    table = read_table(tmp_path / "a.mat")
    inside = t <= slow[-1]
    np.testing.assert_allclose(table.columns["tau_1"], 2.0 * t[inside], atol=1e-12)  # rounding of a line
    assert "rows outside the overlap dropped" in table.choices["time base"]
    assert len(table.columns["q_1"]) == inside.sum() < len(t)


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
    return path


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("external link", "link to another file, 'other.h5'"),
        ("external storage", "stored in other files"),
        ("virtual", "stored in other files"),
        ("bomb", "declare 7629395 MB"),
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


CASES = 200


@pytest.mark.parametrize("kind", [one for one in PLAIN if one != "csv"])
def test_damaged_files_give_only_input_errors(tmp_path, kind) -> None:
    small = {name: values[:60] for name, values in recording(seconds=1.0).items()}
    path = PLAIN[kind](tmp_path, small)
    data = path.read_bytes()
    rng = np.random.default_rng([*kind.encode()])
    refused = 0
    for _ in range(CASES):
        path.write_bytes(damaged(data, rng))
        try:
            read_table(path)
        except InputError:
            refused += 1
    assert refused > CASES // 10
