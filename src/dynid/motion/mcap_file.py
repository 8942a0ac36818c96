"""Reader of MCAP files: records one after the other, so that an unfinished file gives what it contains.

The format: https://mcap.dev/spec. Every chunk is checked against its checksum; a damaged one is left out, and
the result says what was lost. The index at the end is not used.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.motion.reading import check_size, extra
from dynid.motion.ros_table import Topic, joined_topics, ros_table, unfinished
from dynid.motion.table import Table

_MAGIC = b"\x89MCAP0\r\n"
_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 1, 2, 3, 4, 5, 6, 15
_ENCODINGS = {("ros2msg", "cdr"): "cdr", ("ros1msg", "ros1"): "ros1", ("ros2idl", "cdr"): "cdr"}


class _Cut(ValueError):
    """A record that does not fit into the bytes that are there."""


def read_mcap(path: Path, drop_bad_rows: bool = False) -> Table:
    """Signals of all topics of a file."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            raise InputError("the file is empty", file=path, remedy="record it again")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            content = mcap_topics(mapped, path)
    return ros_table(content.topics, path, "MCAP", content.notices())


def mcap_topics(data: Any, path: Path) -> McapContent:
    """Topics of the bytes of a file."""
    if bytes(data[:8]) != _MAGIC:
        raise InputError("not an MCAP file: its first bytes are others", file=path, remedy="check the file")
    content = McapContent(path, len(data))
    crc = zlib.crc32(_MAGIC)
    try:
        for opcode, start, stop in _records(data, 8, len(data)):
            if opcode == _DATA_END:
                content.data_end(int.from_bytes(data[start : start + 4], "little"), crc)
            if opcode == _FOOTER:
                content.finished = True
                break
            if not content.ended:
                content.record(opcode, bytes(data[start:stop]))
                crc = zlib.crc32(data[start - 9 : stop], crc)
            content.read = stop
    except _Cut:
        pass  # reported as unfinished
    return content


@dataclass(eq=False)
class McapContent:
    """What was read of a file.

    Attributes:
        read: Bytes up to the last whole record.
        finished: Whether the recorder closed the file.
        ended: Whether the section of data has ended.
        lost: Start and end of damaged chunks, in [ns].
    """

    path: Path
    size: int
    read: int = 8
    finished: bool = False
    ended: bool = False
    chunks: int = 0
    loose: int = 0
    inflated: int = 0
    lost: list[tuple[int, int]] = field(default_factory=list)
    schemas: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    channels: dict[int, Topic] = field(default_factory=dict)

    @property
    def topics(self) -> list[Topic]:
        """Topics with messages; channels of one topic and type are joined."""
        return joined_topics(channel for channel in self.channels.values() if channel.messages)

    def notices(self) -> list[Notice]:
        """What was lost."""
        said = []
        if self.lost:
            seconds = sum(max(stop - start, 0) for start, stop in self.lost) / 1e9
            said.append(
                notice("chunks-damaged", count=len(self.lost), total=self.chunks, seconds=min(seconds, 1e9))
            )
        if not self.finished:
            said.append(unfinished(self.channels.values(), self.size - self.read, self.size))
        return said

    def record(self, opcode: int, data: bytes) -> None:
        """Keep what a record says; unknown records are for others."""
        if opcode == _SCHEMA:
            self._schema(data)
        elif opcode == _CHANNEL:
            self._channel(data)
        elif opcode == _MESSAGE:
            self.loose += 1
            self._message(data)
        elif opcode == _CHUNK:
            self._chunk(data)

    def data_end(self, declared: int, crc: int) -> None:
        """Refuse messages outside chunks if the checksum of all data is wrong: which are is unknown."""
        self.ended = True
        if declared and declared != crc and self.loose:
            raise InputError(
                "damaged: the checksum of the messages does not match",
                file=self.path,
                remedy="copy or record it again; record in chunks to lose only the damaged ones",
            )

    def _schema(self, data: bytes) -> None:
        (number,) = _unpacked("<H", data, 0)
        name, at = _text(data, 2)
        encoding, at = _text(data, at)
        self.schemas[number] = (name, encoding, _text(data, at)[0])

    def _channel(self, data: bytes) -> None:
        number, schema = _unpacked("<HH", data, 0)
        topic, at = _text(data, 4)
        encoding, _ = _text(data, at)
        name, kind, text = self.schemas.get(schema, ("no type", "", ""))
        if number not in self.channels:
            known = _ENCODINGS.get((kind, encoding), f"{encoding} with {kind or 'no schema'}")
            self.channels[number] = Topic(topic, name, "" if kind == "ros2idl" else text, known)

    def _message(self, data: bytes) -> None:
        channel, _, time, _ = _unpacked("<HIQQ", data, 0)
        topic = self.channels.get(channel)
        if topic is not None and topic.has_signals and time < 2**63:
            topic.times.append(time)
            topic.messages.append(data[22:])

    def _chunk(self, data: bytes) -> None:
        start, stop, size, crc = _unpacked("<QQQI", data, 0)
        self.chunks += 1
        try:
            compression, at = _text(data, 28)
            (stored,) = _unpacked("<Q", data, at)
            if stored != len(data) - at - 8:
                raise _Cut
            self.inflated += size
            check_size(self.inflated, self.size, self.path, "messages")
            records = decompressed(data[at + 8 :], compression, size, self.path)
            if len(records) != size or (crc and zlib.crc32(records) != crc):
                raise _Cut
            for _ in _records(records, 0, size):
                pass  # all of them are whole before the first one counts
        except _Cut:
            self.lost.append((start, stop))
            return
        loose = self.loose
        for opcode, begin, end in _records(records, 0, size):
            if opcode != _CHUNK:
                self.record(opcode, records[begin:end])
        self.loose = loose


def decompressed(data: bytes, compression: str, size: int, path: Path) -> bytes:
    """Contents of a chunk, at most `size` bytes; `_Cut` if it is damaged."""
    if compression in ("", "none"):
        return data
    with extra("ros", f"chunks compressed by {compression}", path):
        import lz4.frame
        import zstandard
    try:
        if compression == "zstd":
            declared = zstandard.frame_content_size(data)
            if declared > size:
                raise _Cut
            return bytes(zstandard.ZstdDecompressor().decompress(data, max_output_size=max(size, 1)))
        if compression == "lz4":
            return bytes(lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=max(size, 1)))
    except (zstandard.ZstdError, RuntimeError, EOFError, ValueError, MemoryError) as error:
        raise _Cut from error
    raise InputError(
        f"chunks compressed by '{compression[:20]}' are not read", file=path, remedy="use zstd or lz4"
    )


def _records(data: Any, at: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Opcode, start and end of each record."""
    while at < stop:
        if at + 9 > stop:
            raise _Cut
        opcode, size = struct.unpack_from("<BQ", data, at)
        if size > stop - at - 9 or opcode == 0:
            raise _Cut
        yield opcode, at + 9, at + 9 + size
        at += 9 + size


def _unpacked(form: str, data: bytes, at: int) -> tuple[Any, ...]:
    if at + struct.calcsize(form) > len(data):
        raise _Cut
    return struct.unpack_from(form, data, at)


def _text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = _unpacked("<I", data, at)
    if size > len(data) - at - 4:
        raise _Cut
    return data[at + 4 : at + 4 + size].decode("utf-8", errors="replace"), at + 4 + size
