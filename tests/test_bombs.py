"""Small files that declare or contain far more than they should: refused before memory is allocated."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest

from dynid.common import limits
from dynid.common.errors import InputError
from dynid.motion.logs import read_table, text_column
from tests.log_files import DEFINITION, feather


def varint(value: int) -> bytes:
    """Groups of seven bits, as Thrift has them."""
    groups = [value >> k & 127 for k in range(0, max(value.bit_length(), 1), 7)]
    return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])


def parquet_page(folder: Path) -> Path:
    """The header of the only page declares 2 GB; no checksum covers it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "a.parquet"
    pq.write_table(
        pa.table({"t": np.arange(1000) / 100.0}), path, use_dictionary=False, write_statistics=False
    )
    data = path.read_bytes()
    assert data[4:7] == b"\x15\x00\x15"  # kind of page 0, then its size in memory
    end = next(k for k in range(7, 20) if data[k] < 128) + 1
    path.write_bytes(data[:7] + varint(2 * (2**31 - 1)) + data[end:])
    return path


def parquet_list(folder: Path) -> Path:
    """Two lists of 5 million equal numbers each, which a run length of a few bytes represents."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    lists = pa.ListArray.from_arrays(pa.array([0, 5 * 10**6, 10**7], pa.int32()), np.zeros(10**7, np.int8))
    pq.write_table(pa.table({"t": [0.0, 1.0], "q": lists}), folder / "b.parquet")
    return folder / "b.parquet"


def arrow_buffer(folder: Path) -> Path:
    """A compressed buffer declares 8 GB."""
    path = feather(folder, {"t": np.arange(1000) / 100.0}, compression="zstd")
    data = path.read_bytes()
    at = data.index(struct.pack("<q", 8000) + b"\x28\xb5\x2f\xfd")
    path.write_bytes(data[:at] + struct.pack("<q", 8 * 10**9) + data[at + 8 :])
    return path


def arrow_stream_buffer(folder: Path) -> Path:
    """The same in a stream, in its second batch."""
    import pyarrow as pa

    path, table = folder / "a.arrow", pa.table({"t": np.arange(2000) / 100.0})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=1000)
    data = path.read_bytes()
    at = data.rindex(struct.pack("<q", 8000) + b"\x28\xb5\x2f\xfd")
    path.write_bytes(data[:at] + struct.pack("<q", 8 * 10**9) + data[at + 8 :])
    return path


def hdf5_chunk(folder: Path) -> Path:
    """Five numbers in a compressed chunk of 2 GB."""
    import h5py

    with h5py.File(folder / "a.h5", "w") as file:
        file["t"] = np.arange(5.0)
        chunked = file.create_dataset(
            "q_1", (5,), float, chunks=(2**28,), maxshape=(None,), compression="gzip"
        )
        chunked.id.write_direct_chunk((0,), zlib.compress(bytes(1 << 20)))
    return folder / "a.h5"


def mcap_chunk(folder: Path) -> Path:
    """A chunk that declares 4 GB."""
    return write_chunk(folder / "a.mcap", b"", declared=2**32)


def write_chunk(path: Path, records: bytes, declared: int | None = None) -> Path:
    """An MCAP file of one chunk."""
    import zstandard

    packed = zstandard.compress(records)
    size = len(records) if declared is None else declared
    chunk = struct.pack("<QQQI", 0, 1, size, zlib.crc32(records)) + text("zstd")
    chunk += struct.pack("<Q", len(packed)) + packed
    path.write_bytes(b"\x89MCAP0\r\n" + record(1, text("ros2") + text("")) + record(6, chunk))
    return path


def record(opcode: int, data: bytes) -> bytes:
    return struct.pack("<BQ", opcode, len(data)) + data


def text(words: str) -> bytes:
    return struct.pack("<I", len(words)) + words.encode()


BOMBS = (parquet_page, parquet_list, arrow_buffer, arrow_stream_buffer, hdf5_chunk, mcap_chunk)


@pytest.mark.parametrize("made", BOMBS)
def test_16_declared_sizes_are_refused_before_they_are_allocated(tmp_path, made) -> None:
    import pyarrow as pa

    path = made(tmp_path)
    before, largest = pa.total_allocated_bytes(), pa.default_memory_pool().max_memory()
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"\d+ bytes declare \d+ MB of (numbers|messages)") as caught:
            read_table(path)
        assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)
    assert limits.REMEDY in caught.value.remedy
    assert pa.total_allocated_bytes() <= before + 2**20
    assert pa.default_memory_pool().max_memory() == largest


def test_16_equal_texts_of_a_parquet_column_are_one_text_in_memory(tmp_path) -> None:
    """A dictionary has each text once: 2000 texts of 1 MB are 7 kB in the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    texts = pa.DictionaryArray.from_arrays([0, 1, None, 0] * 500, ["x" * 10**6, "y"])
    pq.write_table(pa.table({"segment": texts}), path)
    found = text_column(path, "segment")
    assert [found[k][:2] for k in range(4)] == ["xx", "y", "No", "xx"]
    assert len(set(map(id, found))) == 3


def test_16_a_chunk_of_tiny_records_takes_no_more_memory_than_its_bytes(tmp_path) -> None:
    schema = struct.pack("<H", 1) + text("sensor_msgs/msg/JointState") + text("ros2msg") + text(DEFINITION)
    records = record(3, schema) + record(127, b"") * 20_000
    path = write_chunk(tmp_path / "a.mcap", records)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="no topic with numbers"):
            read_table(path)
        assert tracemalloc.get_traced_memory()[1] < 3 * len(records)
    finally:
        tracemalloc.stop()
