"""Writers of one log in every format that is read: name of the format -> function of a folder and columns.

They use the libraries of each format, which the readers mostly do not.
"""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np


def csv_text(columns) -> str:
    """Every digit of the numbers."""
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(repr, row)) for row in rows)]) + "\n"


def grouped(columns):
    """Columns q_1, q_2, .. as one matrix q."""
    names = dict.fromkeys(name.split("_")[0] for name in columns)
    found = {n: np.column_stack([v for k, v in columns.items() if k.split("_")[0] == n]) for n in names}
    return {**found, "t": columns["t"]}


def csv(folder: Path, columns) -> Path:
    path = folder / "a.csv"
    path.write_text(csv_text(columns))
    return path


def csv_gzip(folder: Path, columns) -> Path:
    path = folder / "a.csv.gz"
    path.write_bytes(gzip.compress(csv_text(columns).encode()))
    return path


def csv_xz(folder: Path, columns) -> Path:
    path = folder / "a.csv.xz"
    path.write_bytes(lzma.compress(csv_text(columns).encode()))
    return path


def csv_zstd(folder: Path, columns) -> Path:
    import zstandard

    path = folder / "a.csv.zst"
    path.write_bytes(zstandard.compress(csv_text(columns).encode()))
    return path


def parquet(folder: Path, columns) -> Path:
    from dynid.simulation.write import write_columns

    return write_columns(columns, folder / "a.parquet")


def feather(folder: Path, columns, **options) -> Path:
    import pyarrow as pa
    from pyarrow import feather as written

    written.write_feather(pa.table(dict(columns)), folder / "a.feather", **options)
    return folder / "a.feather"


def arrow_stream(folder: Path, columns) -> Path:
    import pyarrow as pa

    table = pa.table(dict(columns))
    with pa.OSFile(str(folder / "a.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=300)
    return folder / "a.arrow"


def npz(folder: Path, columns) -> Path:
    np.savez(folder / "a.npz", **columns)
    return folder / "a.npz"


def npz_matrices(folder: Path, columns) -> Path:
    np.savez_compressed(folder / "a.npz", **grouped(columns))
    return folder / "a.npz"


def npy(folder: Path, columns) -> Path:
    rows = np.empty(len(columns["t"]), dtype=[(name, float) for name in columns])
    for name, values in columns.items():
        rows[name] = values
    np.save(folder / "a.npy", rows)
    return folder / "a.npy"


def mat(folder: Path, columns) -> Path:
    from scipy.io import savemat

    savemat(folder / "a.mat", grouped(columns))
    return folder / "a.mat"


def mat_compressed(folder: Path, columns) -> Path:
    from scipy.io import savemat

    savemat(folder / "a.mat", columns, do_compression=True, oned_as="column")
    return folder / "a.mat"


def mat_struct(folder: Path, columns) -> Path:
    from scipy.io import savemat

    savemat(folder / "a.mat", {"log": {**grouped(columns), "note": "first run"}, "version": 3.0})
    return folder / "a.mat"


def mat_simulink(folder: Path, columns) -> Path:
    """`logsout` as a struct of time series, with samples along the last axis, as Simulink has them."""
    from scipy.io import savemat

    parts = grouped(columns)
    t = parts.pop("t")
    series = {n: {"Time": t[:, None], "Data": x.T[:, None, :], "Name": n} for n, x in parts.items()}
    savemat(folder / "a.mat", {"logsout": series})
    return folder / "a.mat"


def mat73(folder: Path, columns) -> Path:
    """As MATLAB writes it: transposed, classes as attributes, structs as groups."""
    import h5py

    with h5py.File(folder / "a.mat", "w", userblock_size=512) as file:
        log = file.create_group("log")
        log.attrs["MATLAB_class"] = np.bytes_(b"struct")
        for name, values in grouped(columns).items():
            data = log.create_dataset(name, data=np.atleast_2d(values) if values.ndim == 1 else values.T)
            data.attrs["MATLAB_class"] = np.bytes_(b"double")
        note = log.create_dataset("note", data=np.array([[ord(c)] for c in "run"], dtype=np.uint16))
        note.attrs["MATLAB_class"] = np.bytes_(b"char")
        file.create_group("#refs#").create_dataset("a", data=np.zeros(2))
    start = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    data = (folder / "a.mat").read_bytes()
    (folder / "a.mat").write_bytes(start + data[len(start) :])
    return folder / "a.mat"


def mat73_cells(folder: Path, columns) -> Path:
    """An array of structs: each field is a data set of references."""
    import h5py

    parts = grouped(columns)
    t = parts.pop("t")
    with h5py.File(folder / "a.mat", "w") as file:
        refs = file.create_group("#refs#")
        signals = file.create_group("signals")
        kinds = {"Name": (h5py.ref_dtype, []), "Time": (h5py.ref_dtype, []), "Data": (h5py.ref_dtype, [])}
        for k, (name, values) in enumerate(parts.items()):
            stored = {
                "Name": np.array([[ord(c)] for c in name], np.uint16),
                "Time": t[None],
                "Data": values.T,
            }
            for field, data in stored.items():
                one = refs.create_dataset(f"{field}{k}", data=data)
                one.attrs["MATLAB_class"] = np.bytes_(b"char" if field == "Name" else b"double")
                kinds[field][1].append(one.ref)
        for field, (kind, found) in kinds.items():
            made = signals.create_dataset(field, (len(found), 1), dtype=kind)
            made[:, 0] = found
    return folder / "a.mat"


def hdf5(folder: Path, columns) -> Path:
    import h5py

    with h5py.File(folder / "a.h5", "w") as file:
        for name, values in grouped(columns).items():
            file.create_dataset(f"run/{name}", data=values, compression="gzip" if values.ndim > 1 else None)
        file["run/robot"] = "arm"
    return folder / "a.h5"


def hdf5_flat(folder: Path, columns) -> Path:
    import h5py

    with h5py.File(folder / "a.hdf5", "w") as file:
        for name, values in columns.items():
            file[name] = values
    return folder / "a.hdf5"


_TEXT = (csv, csv_gzip, csv_xz, csv_zstd)
_ARRAYS = (parquet, feather, arrow_stream, npz, npz_matrices, npy, hdf5, hdf5_flat)
_MATLAB = (mat, mat_compressed, mat_struct, mat_simulink, mat73, mat73_cells)
PLAIN = {one.__name__: one for one in (*_TEXT, *_ARRAYS, *_MATLAB)}
