"""Where the numbers of a ROS message are: its definition and the bytes of one message give their offsets.

Messages of one topic mostly have the same structure. So one message is walked through, and all messages whose
structural bytes (lengths and texts) are equal are read as one array.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

_SIZES = {
    **dict.fromkeys(("bool", "byte", "char", "uint8"), "u1"),
    **dict(zip(("int8", "int16", "int32", "int64"), ("i1", "i2", "i4", "i8"), strict=True)),
    **dict(zip(("uint16", "uint32", "uint64"), ("u2", "u4", "u8"), strict=True)),
    **dict(zip(("float32", "float64"), ("f4", "f8"), strict=True)),
}
_TIMES = {"time": ("u4", "u4"), "duration": ("i4", "i4")}  # ROS 1
_FIELD = re.compile(
    r"([A-Za-z][\w/]*)(?:<=\d+)?(\[(?:<=)?\d*\])?\s+([A-Za-z]\w*)\s*(?:[^=\s].*)?\Z", re.ASCII
)
_LONGEST = 256  # numbers in one array; longer ones are images, scans and clouds, not signals of joints
_MOST = 4096  # numbers in one message
_DEEPEST = 16
_MOST_LINES = 20_000
Path = tuple[str | int, ...]


class MessageError(ValueError):
    """A message or a definition that is damaged."""


@dataclass(frozen=True)
class Field:
    """A line of a definition: `float64[] position`; `count` is None for a single value, -1 for any number."""

    kind: str
    name: str
    count: int | None


Types = Mapping[str, tuple[Field, ...]]


def parsed(name: str, text: str) -> dict[str, tuple[Field, ...]]:
    """Types of a message definition, with those that it uses, which follow it (`MSG: package/Type`)."""
    if text.count("\n") > _MOST_LINES:
        raise MessageError("the definition is too long")
    types: dict[str, tuple[Field, ...]] = {}
    type_name = _short(name)
    lines: list[str] = []
    for line in [*text.split("\n"), "MSG: end"]:
        line = line.split("#")[0].strip()
        if line.startswith("MSG:"):
            types[type_name] = tuple(_fields(lines, type_name))
            type_name, lines = _short(line[4:].strip()), []
        elif line and not line.startswith("==="):
            lines.append(line)
    return types


def _fields(lines: list[str], type_name: str) -> list[Field]:
    package = type_name.split("/")[0]
    fields = []
    for line in lines:
        if re.match(r"[A-Za-z][\w/<=]*\s+[A-Za-z]\w*\s*=", line):  # a constant
            continue
        match = _FIELD.match(line)
        if match is None:
            raise MessageError(f"'{line[:60]}' is not a field")
        kind, array, name = match.groups()
        count = None if array is None else -1 if array == "[]" or "<=" in array else int(array[1:-1])
        if kind == "Header":
            kind = "std_msgs/Header"
        elif kind not in (*_SIZES, *_TIMES, "string", "wstring"):
            kind = _short(kind if "/" in kind else f"{package}/{kind}")
        fields.append(Field(kind, name, count))
    return fields


def _short(name: str) -> str:
    """`package/Type` of `package/msg/Type`."""
    parts = [part for part in name.replace("::", "/").split("/") if part]
    return f"{parts[0]}/{parts[-1]}" if len(parts) > 1 else name


@dataclass
class Layout:
    """Numbers of one message.

    Attributes:
        numbers: Field -> offset [bytes], type, number of values (None: no array).
        texts: Field -> its texts.
        fixed: Bytes [start, stop) that must be equal in all messages of this layout.
    """

    numbers: dict[Path, tuple[int, str, int | None]] = field(default_factory=dict)
    texts: dict[Path, tuple[str, ...]] = field(default_factory=dict)
    fixed: list[tuple[int, int]] = field(default_factory=list)

    def structure(self) -> np.ndarray:
        """Indices of the fixed bytes."""
        return np.concatenate([np.arange(a, b) for a, b in self.fixed] or [np.zeros(0, int)]).astype(int)


class Walk:
    """Through the bytes of one message.

    Args:
        types: Types by name.
        data: The message.
        encoding: `cdr` (ROS 2: aligned, with a header of four bytes) or `ros1`.
    """

    def __init__(self, types: Types, data: bytes, encoding: str) -> None:
        self.types, self.data, self.layout = types, data, Layout()
        self.aligned = encoding == "cdr"
        self.order, self.at = "<", 0
        if self.aligned:
            if len(data) < 4 or data[0] != 0 or data[1] > 1:
                raise MessageError("unknown encapsulation")
            self.order, self.at = "<" if data[1] else ">", 4
            self.layout.fixed.append((0, 4))

    def walked(self, name: str) -> Layout:
        """The layout of a message of this type."""
        self._message(_short(name), (), 0)
        return self.layout

    def _message(self, kind: str, path: Path, depth: int) -> None:
        if depth > _DEEPEST or kind not in self.types:
            raise MessageError(f"type {kind} is not defined" if depth <= _DEEPEST else "nested too deep")
        if self.aligned and not self.types[kind]:
            self._take(1, 1)  # an empty message has one byte
        for member in self.types[kind]:
            self._field(member, (*path, member.name), depth)

    def _field(self, member: Field, path: Path, depth: int) -> None:
        count = member.count
        if count == -1:
            count = self._length()
        if member.kind in _SIZES:
            self._numbers(path, _SIZES[member.kind], count)
            return
        if count is not None and count > len(self.data) - self.at:
            raise MessageError(f"{count} entries declared")
        if member.kind == "string":
            texts = tuple(
                self._text(hidden=path[-1] == "frame_id") for _ in range(1 if count is None else count)
            )
            self.layout.texts[path] = texts
            return
        for i in range(1 if count is None else count):
            inner = path if count is None else (*path, i)
            if member.kind in _TIMES:
                for part, size in zip(("sec", "nanosec"), _TIMES[member.kind], strict=True):
                    self._numbers((*inner, part), size, None)
            else:
                self._message(member.kind, inner, depth + 1)

    def _numbers(self, path: Path, size: str, count: int | None) -> None:
        width = int(size[1])
        if count == 0:
            return
        start = self._take(width, width * (1 if count is None else count))
        if count is None or count <= _LONGEST:
            self.layout.numbers[path] = start, self.order + size, count
            if len(self.layout.numbers) > _MOST:
                raise MessageError("too many numbers in one message")

    def _length(self) -> int:
        start = self._take(4, 4)
        self.layout.fixed.append((start, start + 4))
        return int.from_bytes(self.data[start : start + 4], "little" if self.order == "<" else "big")

    def _text(self, hidden: bool) -> str:
        """A text; the content of a hidden one does not matter."""
        size = self._length()
        start = self._take(1, size)
        if not hidden:
            self.layout.fixed.append((start, start + size))
        return self.data[start : start + size].rstrip(b"\0").decode("utf-8", errors="replace")

    def _take(self, align: int, size: int) -> int:
        """Offset of the next `size` bytes."""
        if self.aligned:
            self.at += -(self.at - 4) % align
        start = self.at
        if start + size > len(self.data):
            raise MessageError(f"{size} bytes declared at byte {start} of {len(self.data)}")
        self.at += size
        return start


# Definitions for bags that do not store them (sqlite3 bags of ROS 2 before Iron).
COMMON = {
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec",
    "builtin_interfaces/Duration": "int32 sec\nuint32 nanosec",
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "std_msgs/Float64": "float64 data",
    "std_msgs/Float32": "float32 data",
    "std_msgs/MultiArrayDimension": "string label\nuint32 size\nuint32 stride",
    "std_msgs/MultiArrayLayout": "MultiArrayDimension[] dim\nuint32 data_offset",
    "std_msgs/Float64MultiArray": "MultiArrayLayout layout\nfloat64[] data",
    "std_msgs/Float32MultiArray": "MultiArrayLayout layout\nfloat32[] data",
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Point": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "geometry_msgs/Pose": "Point position\nQuaternion orientation",
    "geometry_msgs/PoseStamped": "std_msgs/Header header\nPose pose",
    "geometry_msgs/Twist": "Vector3 linear\nVector3 angular",
    "geometry_msgs/TwistStamped": "std_msgs/Header header\nTwist twist",
    "geometry_msgs/Wrench": "Vector3 force\nVector3 torque",
    "geometry_msgs/WrenchStamped": "std_msgs/Header header\nWrench wrench",
    "sensor_msgs/JointState": "std_msgs/Header header\nstring[] name\nfloat64[] position\n"
    "float64[] velocity\nfloat64[] effort",
    "sensor_msgs/Imu": "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\n"
    "float64[9] orientation_covariance\ngeometry_msgs/Vector3 angular_velocity\n"
    "float64[9] angular_velocity_covariance\ngeometry_msgs/Vector3 linear_acceleration\n"
    "float64[9] linear_acceleration_covariance",
    "trajectory_msgs/JointTrajectoryPoint": "float64[] positions\nfloat64[] velocities\n"
    "float64[] accelerations\nfloat64[] effort\nbuiltin_interfaces/Duration time_from_start",
    "control_msgs/InterfaceValue": "string[] interface_names\nfloat64[] values",
    "control_msgs/DynamicJointState": "std_msgs/Header header\nstring[] joint_names\n"
    "InterfaceValue[] interface_values",
}


def types_for(name: str, text: str) -> dict[str, tuple[Field, ...]]:
    """Types of a definition; without text the common ones, if the name is one of these."""
    common = {key: fields for kind, lines in COMMON.items() for key, fields in parsed(kind, lines).items()}
    if text.strip():
        return {**common, **parsed(name, text)}
    if _short(name) not in common:
        raise MessageError(f"the bag has no definition of {name}")
    return common
