"""Writers of one log in every format that is read: name of the format -> function of a folder and columns.

They use the libraries of each format, which the readers mostly do not.
"""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np

from tests.matlab_objects import Objects, dataset, duration, timetable, write_mat5, write_mat73


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
    from dynid.simulation.files import write_columns

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


def mat_timetable(folder: Path, columns) -> Path:
    objects = Objects()
    signals = {name: values for name, values in columns.items() if name != "t"}
    return write_mat5(
        folder / "a.mat", {"tt": timetable(objects, duration(objects, columns["t"]), signals, {})}, objects
    )


def mat73_timetable(folder: Path, columns) -> Path:
    objects, parts = Objects(), grouped(columns)
    times = duration(objects, parts.pop("t"))
    return write_mat73(folder / "a.mat", {"tt": timetable(objects, times, parts, {})}, objects)


def mat_dataset(folder: Path, columns) -> Path:
    objects, parts = Objects(), grouped(columns)
    return write_mat5(folder / "a.mat", {"logsout": dataset(objects, parts.pop("t"), parts)}, objects)


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
_MATLAB = (
    mat,
    mat_compressed,
    mat_struct,
    mat_simulink,
    mat73,
    mat73_cells,
    mat_timetable,
    mat73_timetable,
    mat_dataset,
)
PLAIN = {one.__name__: one for one in (*_TEXT, *_ARRAYS, *_MATLAB)}


# Recordings of ROS


JOINTS = ("motor1", "motor2")
START = 1_700_000_000 * 10**9  # ns, a date


def stamp(t: float, start: int = START) -> int:
    """Nanoseconds of a time in seconds."""
    return start + round(t * 1e9)


def store(version: str = "ROS2_HUMBLE"):
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores[version])


def joint_states(columns, types, start: int = START, order=None, names=JOINTS):
    """`sensor_msgs/JointState` messages with their time; `order(i)` gives the joints of message i."""
    made = types.types
    more = {"seq": 0} if "seq" in made["std_msgs/msg/Header"].__dataclass_fields__ else {}
    for i, t in enumerate(columns["t"]):
        ns = stamp(t, start)
        joints = range(len(names)) if order is None else order(i)
        header = made["std_msgs/msg/Header"](
            stamp=made["builtin_interfaces/msg/Time"](sec=ns // 10**9, nanosec=ns % 10**9),
            frame_id="b" * (i % 3),
            **more,
        )
        numbers = [
            np.array([columns[f"{n}_{j + 1}"][i] for j in joints if f"{n}_{j + 1}" in columns])
            for n in ("q", "dq", "tau")
        ]
        yield ns, made["sensor_msgs/msg/JointState"](header, [names[j] for j in joints], *numbers)


def multi_arrays(t, values, types, start: int = START):
    """`std_msgs/Float64MultiArray` messages, which have no stamps."""
    made = types.types
    for one, row in zip(t, values, strict=True):
        layout = made["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
        yield stamp(one, start), made["std_msgs/msg/Float64MultiArray"](layout, np.asarray(row, float))


def write_rosbag2(folder: Path, topics, storage: str, types=None, name: str = "bag") -> Path:
    """Topics: name -> (type, messages with their time)."""
    from rosbags.rosbag2 import StoragePlugin, Writer

    types = types or store()
    with Writer(folder / name, version=9, storage_plugin=StoragePlugin[storage]) as writer:
        for topic, (kind, messages) in topics.items():
            connection = writer.add_connection(topic, kind, typestore=types)
            for ns, message in messages:
                writer.write(connection, ns, types.serialize_cdr(message, kind))
    return folder / name


def with_rates(columns):
    """Columns with velocities, which JointState has."""
    return (
        columns if "dq_1" in columns else {**columns, **{f"dq_{j + 1}": 0 * columns["t"] for j in range(2)}}
    )


def rosbag2_sqlite(folder: Path, columns) -> Path:
    states = joint_states(with_rates(columns), store())
    return write_rosbag2(folder, {"/joint_states": ("sensor_msgs/msg/JointState", states)}, "SQLITE3")


def rosbag2_mcap(folder: Path, columns) -> Path:
    states = joint_states(with_rates(columns), store())
    return write_rosbag2(folder, {"/joint_states": ("sensor_msgs/msg/JointState", states)}, "MCAP")


def ros1(folder: Path, columns) -> Path:
    from rosbags.rosbag1 import Writer

    types = store("ROS1_NOETIC")
    writer = Writer(folder / "a.bag")
    writer.set_compression(Writer.CompressionFormat.LZ4)
    with writer:
        kind = "sensor_msgs/msg/JointState"
        connection = writer.add_connection("/joint_states", kind, typestore=types)
        for ns, message in joint_states(with_rates(columns), types):
            writer.write(connection, ns, types.serialize_ros1(message, kind))
    return folder / "a.bag"


DEFINITION = (
    "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n"
)
DEFINITION += f"{'=' * 80}\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n"
DEFINITION += f"{'=' * 80}\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"


def write_mcap(path: Path, columns, compression: str = "ZSTD", **options) -> Path:
    """By the library of the format, with its own encoder of messages."""
    from mcap.writer import CompressionType
    from mcap_ros2.writer import Writer

    options = {"chunk_size": 4000, **options}
    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType[compression], **options)
        schema = writer.register_msgdef("sensor_msgs/msg/JointState", DEFINITION)
        for i, t in enumerate(columns["t"]):
            ns = stamp(t)
            numbers = [[columns[f"{n}_{j + 1}"][i] for j in range(2)] for n in ("q", "dq", "tau")]
            message = dict(zip(("position", "velocity", "effort"), numbers, strict=True))
            header = {"stamp": {"sec": ns // 10**9, "nanosec": ns % 10**9}, "frame_id": ""}
            message |= {"header": header, "name": list(JOINTS)}
            writer.write_message("/joint_states", schema, message, log_time=ns + 12345, publish_time=ns)
        writer.finish()
    return path


def mcap(folder: Path, columns) -> Path:
    return write_mcap(folder / "a.mcap", with_rates(columns))


def mcap_lz4(folder: Path, columns) -> Path:
    return write_mcap(folder / "a.mcap", with_rates(columns), "LZ4")


ROS = {one.__name__: one for one in (mcap, mcap_lz4, rosbag2_sqlite, rosbag2_mcap, ros1)}
