"""Readers of ROS bags: folders of rosbag2 (sqlite3 or MCAP inside), single .db3 files, and .bag of ROS 1."""

from __future__ import annotations

import bz2
import sqlite3
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.common.strict_yaml import read_yaml
from dynid.motion.mcap_file import decompressed, mcap_topics
from dynid.motion.reading import check_size, extra, inflated, readable, size_of
from dynid.motion.ros_table import Topic, joined_topics, ros_table, unfinished
from dynid.motion.table import Table

METADATA = "metadata.yaml"
_LONGEST_QUERY = 200  # calls of the progress handler without a row, each after a million steps
_DB3, _MCAP = b"SQLite format 3\0", b"\x89MCAP0\r\n"
_BAG = b"#ROSBAG V2.0\n"
_OP_CHUNK, _OP_CONNECTION, _OP_MESSAGE = 5, 7, 2


def read_rosbag2(folder: Path, drop_bad_rows: bool = False) -> Table:
    """All files of a recording, as its `metadata.yaml` lists them, in one table."""
    files, per_message = _listed(folder)
    topics: list[Topic] = []
    notices: list[Notice] = []
    for file in files:
        recorded, said = _topics(file, per_message)
        topics += recorded
        notices += said
    return ros_table(joined_topics(topics), folder, "rosbag2", notices)


def read_db3(path: Path, drop_bad_rows: bool = False) -> Table:
    """One sqlite3 file of a rosbag2."""
    topics, notices = _topics(path, "")
    return ros_table(topics, path, "rosbag2 (sqlite3)", notices)


def _listed(folder: Path) -> tuple[list[Path], str]:
    """Files of a recording, none of them outside its folder; and how single messages are compressed."""
    try:
        info = read_yaml(folder / METADATA).plain()["rosbag2_bagfile_information"]
        names = [str(name) for name in info["relative_file_paths"]]
        mode, form = str(info.get("compression_mode") or ""), str(info.get("compression_format") or "")
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            "this is not the metadata of a rosbag2",
            file=folder / METADATA,
            remedy="reindex it: ros2 bag reindex FOLDER; or give its .db3 or .mcap file",
        ) from error
    files = []
    for name in names:
        place = PurePosixPath(name)
        file = folder / name
        if place.is_absolute() or ".." in place.parts or folder.resolve() not in file.resolve().parents:
            raise InputError(
                f"'{name}' is outside the folder of the bag", file=folder / METADATA, remedy="move it"
            )
        if not file.is_file():
            raise InputError(
                f"the file '{name}' of the bag is missing", file=folder, remedy="copy the whole folder"
            )
        files.append(file)
    if not files:
        raise InputError(
            "the bag lists no file", file=folder / METADATA, remedy="reindex it: ros2 bag reindex FOLDER"
        )
    return files, form if mode.lower() == "message" else ""


def _topics(file: Path, per_message: str) -> tuple[list[Topic], list[Notice]]:
    """Topics and messages of one file of a bag."""
    with file.open("rb") as stream:
        start = stream.read(16)
    if start[:8] == _MCAP:
        content = mcap_topics(file.read_bytes(), file)
        return content.topics, content.notices()
    if start == _DB3:
        with readable("sqlite3 bag", file):
            return _sqlite(_connected(file), file, per_message)
    if start[:4] == b"\x28\xb5\x2f\xfd":  # a file compressed by zstd as a whole
        with extra("ros", "zstd", file):
            import zstandard
        with readable("zstd file", file), file.open("rb") as stream:
            data = inflated(zstandard.ZstdDecompressor().stream_reader(stream), size_of(file), file)
        if data[:8] == _MCAP:
            content = mcap_topics(data, file)
            return content.topics, content.notices()
        with readable("sqlite3 bag", file):
            connection = sqlite3.connect(":memory:")
            connection.deserialize(data)
            return _sqlite(connection, file, per_message)
    raise InputError("neither a sqlite3 nor an MCAP file", file=file, remedy="check the recording")


def _connected(file: Path) -> sqlite3.Connection:
    """The data base, read only; without its journal only if there is none."""
    fixed = "" if file.with_name(file.name + "-wal").exists() else "&immutable=1"
    return sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro{fixed}", uri=True)


def _sqlite(connection: sqlite3.Connection, file: Path, per_message: str) -> tuple[list[Topic], list[Notice]]:
    """Topics of a data base; rows after a damaged page are lost, and counted as unknown."""
    steps = [0]

    def stop() -> bool:  # a hostile view can compute forever
        steps[0] += 1
        return steps[0] > _LONGEST_QUERY

    connection.set_progress_handler(stop, 1_000_000)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    made = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
    for name in ("topics", "messages"):
        if not str(made.get(name, "")).upper().startswith("CREATE TABLE"):
            raise InputError(f"no table '{name}': this is not a rosbag2", file=file, remedy="check the file")
    texts: dict[str, str] = {}
    if "message_definitions" in made:
        rows = connection.execute(
            "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
        )
        texts = {str(kind): str(text) for kind, encoding, text in rows if encoding == "ros2msg"}
    topics = {
        number: Topic(str(name), str(kind), texts.get(str(kind), ""), str(form))
        for number, name, kind, form in connection.execute(
            "SELECT id, name, type, serialization_format FROM topics"
        )
    }
    stored, total = size_of(file), 0
    notices: list[Notice] = []
    try:
        for number, time, data in connection.execute("SELECT topic_id, timestamp, data FROM messages"):
            steps[0] = 0
            topic = topics.get(number)
            if (
                topic is None
                or not topic.has_signals
                or not isinstance(data, bytes)
                or not isinstance(time, int)
            ):
                continue
            if per_message:
                data = _message_inflated(data, per_message, stored, file)
            total += len(data)
            check_size(total, stored, file, "messages")
            topic.times.append(time)
            topic.messages.append(data)
    except sqlite3.DatabaseError:
        notices.append(unfinished(topics.values(), max(stored - total, 0), stored))
    finally:
        connection.close()
    return [channel for channel in topics.values() if channel.messages], notices


def _message_inflated(data: bytes, form: str, stored: int, file: Path) -> bytes:
    """One compressed message, or nothing if it is damaged (it is then counted as such)."""
    try:
        return decompressed(data, form, min(200 * len(data) + 1000, stored * 200), file)
    except ValueError:
        return b""


def read_bag(path: Path, drop_bad_rows: bool = False) -> Table:
    """A bag of ROS 1, format 2.0."""
    data = path.read_bytes()
    if not data.startswith(_BAG):
        raise InputError(
            "not a ROS bag of format 2.0", file=path, remedy="convert it: rosbag fix, or rosbags-convert"
        )
    bag = _Bag(path, len(data))
    whole = True
    try:
        for header, body in _bag_records(memoryview(data), len(_BAG)):
            bag.read += len(body)
            bag.record(header, body)
    except (ValueError, KeyError, IndexError, struct.error):
        whole = False
    topics = [connection for connection in bag.connections.values() if connection.messages]
    notices = []
    if bag.damaged:
        notices.append(notice("chunks-damaged", count=bag.damaged, total=bag.chunks, seconds=0.0))
    if not whole:
        notices.append(unfinished(topics, max(len(data) - bag.read, 0), len(data)))
    parts = Counter((topic.name, topic.kind) for topic in topics)
    joined = joined_topics(topics)
    for topic in joined:
        if parts[topic.name, topic.kind] == 1:
            continue
        order = sorted(range(len(topic.times)), key=topic.times.__getitem__)
        topic.times = [topic.times[i] for i in order]
        topic.messages = [topic.messages[i] for i in order]
    return ros_table(joined, path, "ROS 1 bag", notices)


class _Bag:
    """Connections of a bag, with their messages."""

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        self.chunks = self.damaged = self.read = self.inflated = 0
        self.connections: dict[int, Topic] = {}

    def record(self, header: dict[bytes, bytes], body: memoryview) -> None:
        """One record, or all of a chunk."""
        op = header.get(b"op", b"\0")[0]
        if op == _OP_CHUNK:
            self._chunk(header, body)
        elif op == _OP_CONNECTION:
            number = int.from_bytes(header[b"conn"], "little")
            fields = _fields(body)
            text = fields.get(b"message_definition", b"").decode("utf-8", errors="replace")
            kind = fields.get(b"type", b"").decode("utf-8", errors="replace")
            topic = header[b"topic"].decode("utf-8", errors="replace")
            self.connections.setdefault(number, Topic(topic, kind, text, "ros1"))
        elif op == _OP_MESSAGE:
            topic_of = self.connections.get(int.from_bytes(header[b"conn"], "little"))
            if topic_of is not None and topic_of.has_signals:
                sec, nano = struct.unpack("<II", header[b"time"])
                topic_of.times.append(sec * 10**9 + nano)
                topic_of.messages.append(bytes(body))

    def _chunk(self, header: dict[bytes, bytes], body: memoryview) -> None:
        self.chunks += 1
        size = int.from_bytes(header.get(b"size", b""), "little")
        self.inflated += size
        check_size(self.inflated, self.size, self.path, "messages")
        form = header.get(b"compression", b"none").decode("latin-1")
        try:
            if form == "bz2":
                records = bz2.BZ2Decompressor().decompress(bytes(body), max(size, 1))
            else:
                records = decompressed(bytes(body), form, size, self.path)
            if len(records) != size:
                raise ValueError("the chunk has another size")
            for header_block, _ in _blocks(
                memoryview(records), 0
            ):  # all are whole before the first one counts
                if not header_block:
                    raise ValueError("a record without a header")
            for inner, data in _bag_records(memoryview(records), 0):
                if inner.get(b"op", b"\0")[0] != _OP_CHUNK:
                    self.record(inner, data)
        except (ValueError, OSError, KeyError, IndexError, struct.error):
            self.damaged += 1


def _bag_records(data: memoryview, at: int) -> Iterator[tuple[dict[bytes, bytes], memoryview]]:
    """Fields of the header, and data, of each record."""
    return ((_fields(header), body) for header, body in _blocks(data, at))


def _blocks(data: memoryview, at: int) -> Iterator[tuple[memoryview, memoryview]]:
    """Header and data of each record."""
    while at < len(data):
        header, at = _block(data, at)
        body, at = _block(data, at)
        yield header, body


def _block(data: memoryview, at: int) -> tuple[memoryview, int]:
    if at + 4 > len(data):
        raise ValueError("the bag ends inside a record")
    size = int.from_bytes(data[at : at + 4], "little")
    if size > len(data) - at - 4:
        raise ValueError("the bag ends inside a record")
    return data[at + 4 : at + 4 + size], at + 4 + size


def _fields(header: memoryview) -> dict[bytes, bytes]:
    """`name=value` pairs of a header."""
    fields: dict[bytes, bytes] = {}
    at = 0
    while at < len(header):
        block, at = _block(header, at)
        name, mark, value = bytes(block).partition(b"=")
        if not mark:
            raise ValueError("a header field has no value")
        fields[name] = value
    return fields
