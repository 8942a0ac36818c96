"""From the messages of a recording to a table: one column per number, named by topic, joint and quantity.

`/joint_states/elbow/position` is the position of joint `elbow` in a `sensor_msgs/JointState`: joints are
found by their names in every message, whatever their order. Time is the header stamp where there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Bool, Int
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.motion.ros_layout import Layout, MessageError, Types, Walk, types_for
from dynid.motion.ros_layout import Path as Place
from dynid.motion.series import Merged, Series, merged, time_base
from dynid.motion.table import Table

_NAMES = ("name", "names", "joint_names", "joint_name", "interface_names")
_SINGULAR = {
    "positions": "position",
    "velocities": "velocity",
    "accelerations": "acceleration",
    "efforts": "effort",
    "torques": "torque",
}
_UNNAMED = ("value", "values", "data", "interface_values")  # say nothing about what they contain
_NO_SIGNALS = frozenset(
    [
        "Image",
        "CompressedImage",
        "PointCloud2",
        "LaserScan",
        "OccupancyGrid",
        "TFMessage",
        "Marker",
        "MarkerArray",
        "DiagnosticArray",
        "Log",
        "ParameterEvent",
        "CameraInfo",
    ]
)
_EPOCH = 10**17  # ns; later stamps are dates, not durations
_OTHER_CLOCK = 10**9  # ns; header stamps that differ more from the recorder's time are of another clock
_MOST_TEMPLATES = 64  # structures of one topic that are looked for among all its messages


@dataclass(eq=False)
class Topic:
    """Messages of one topic, in the order of the recording.

    Attributes:
        kind: Type of its messages.
        definition: Text of the type; empty: a common type.
        encoding: `cdr` or `ros1`; others are not read.
        times: When each was recorded, in [ns].
        messages: Their bytes.
    """

    name: str
    kind: str
    definition: str
    encoding: str
    times: list[int] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)

    @property
    def has_signals(self) -> bool:
        """Whether its messages may contain signals of joints or loads."""
        return self.kind.split("/")[-1] not in _NO_SIGNALS

    @property
    def is_state(self) -> bool:
        """Whether it has what ROS defines as the measured state of joints."""
        return self.kind.split("/")[-1] == "JointState"


def joined_topics(topics: Iterable[Topic]) -> list[Topic]:
    """One topic for each name and type, the messages of its parts one after the other."""
    whole: dict[tuple[str, str], Topic] = {}
    for topic in topics:
        first = whole.setdefault((topic.name, topic.kind), topic)
        if first is not topic:
            first.times += topic.times
            first.messages += topic.messages
    return list(whole.values())


def unfinished(topics: Iterable[Topic], lost: int, size: int) -> Notice:
    """A recording that ends too early; seconds by the bytes that each of those read took.

    Args:
        topics: What was read.
        lost: Bytes that were not.
        size: Bytes of the file.
    """
    times = [time for topic in topics for time in topic.times]
    span = (max(times) - min(times)) / 1e9 if times else 0.0
    seconds = min(span * lost / max(size - lost, 1), 1e9)
    return notice("recording-unfinished", lost=lost, size=size, messages=len(times), seconds=seconds)


def ros_table(topics: Sequence[Topic], file: object, kind: str, notices: Sequence[Notice]) -> Table:
    """The table of all topics with numbers; those without are listed as skipped."""
    skipped: dict[str, str] = {}
    usable: list[_Decoded] = []
    said = [*notices]
    for topic in topics:
        try:
            decoded = _Decoded(topic)
        except MessageError as error:
            skipped[topic.name] = f"{topic.kind} ({error})"
            continue
        if decoded.damaged:
            said.append(
                notice("messages-damaged", topic=topic.name, count=decoded.damaged, total=len(topic.messages))
            )
        if decoded.columns:
            usable.append(decoded)
        else:
            skipped[topic.name] = f"{topic.kind} without numbers"
    if not usable:
        listed = "; ".join(f"{name}: {text}" for name, text in list(skipped.items())[:10])
        lost = "".join(f"; {lost.text}" for lost in notices)
        raise InputError(
            f"no topic with numbers{f' ({listed})' if listed else ''}{lost}",
            file=file,
            remedy=next((lost.remedy for lost in notices if lost.remedy), "")
            or "record /joint_states or another topic with positions and efforts",
        )
    joined = _on_one_clock(usable, file)
    choices = {"format": kind, **joined.choices}
    others = [decoded for decoded in usable if not decoded.topic.is_state]
    others = others if len(others) < len(usable) else []
    if others:
        names = ", ".join(decoded.topic.name for decoded in others)
        choices["topics searched only for what JointState lacks"] = names
    return Table(
        joined.columns,
        tuple(skipped),
        choices,
        tuple(said),
        texts=skipped,
        time="t",
        outside=joined.outside,
        secondary=frozenset(name for decoded in others for name in decoded.columns),
    )


def _on_one_clock(decoded: Sequence[_Decoded], file: object) -> Merged:
    """Columns of all topics, and how their time was found."""
    stamped = [source for source in decoded if source.stamped]
    offsets = [int(np.median(source.stamps - source.recorded)) for source in stamped]
    # Topics without stamps are placed on the clock of the stamps, if that is not the clock of the recorder.
    shift = offsets[0] if offsets and abs(offsets[0]) > _OTHER_CLOCK else 0
    for source in decoded:
        if not source.stamped:
            source.stamps = source.stamps + shift
    start = min(int(source.stamps.min()) for source in decoded)
    origin = start if abs(start) > _EPOCH else 0
    by_topic = [(source.topic, part) for source in decoded for part in source.series(origin)]
    series = [part for _, part in by_topic]
    base = time_base([part for topic, part in by_topic if topic.is_state] or series)
    joined = merged(series, file, base=base)
    plain = [source.topic.name for source in decoded if not source.stamped]
    words = "header stamps" if stamped else "time of the recorder"
    if plain and stamped:
        words += f"; time of the recorder for {', '.join(plain)}"
        words += f", moved by {shift / 1e9:.6g} s to the clock of the stamps" if shift else ""
    if origin:
        words += f"; origin {origin / 1e9:.6f} s subtracted"
    return replace(joined, choices={"time": f"{words} ({base.name})", **joined.choices})


class _Decoded:
    """Numbers of one topic.

    Attributes:
        stamps: Time of each message, in [ns]; from its header if `stamped`.
        recorded: When the recorder wrote it, in [ns].
        columns: Name -> values, NaN where a message does not have it.
        present: Name -> which messages have it.
        damaged: Number of messages that cannot be decoded.
    """

    def __init__(self, topic: Topic) -> None:
        if topic.encoding not in ("cdr", "ros1"):
            raise MessageError(f"messages are encoded as {topic.encoding or 'nothing known'}")
        self.topic = topic
        self.types: Types = types_for(topic.kind, topic.definition)
        count = len(topic.messages)
        self.columns: dict[str, Any] = {}
        self.present: dict[str, Bool[Array, "n"]] = {}
        self.recorded: Int[Array, "n"] = np.array(topic.times, dtype=np.int64)
        header = np.zeros(count, dtype=np.int64)
        good = np.zeros(count, dtype=bool)
        lengths = np.array([len(message) for message in topic.messages], dtype=np.int64)
        for length in np.unique(lengths):
            self._decode(np.flatnonzero(lengths == length), int(length), header, good)
        self.damaged = int(count - good.sum())
        self.columns = {name: values[good] for name, values in self.columns.items()}
        self.present = {name: mask[good] for name, mask in self.present.items()}
        self.recorded, header = self.recorded[good], header[good]
        # Constant stamps are those of a publisher that does not fill them in.
        self.stamped = bool(len(header) and np.all(header > 0) and (len(header) == 1 or np.ptp(header) > 0))
        self.stamps = header if self.stamped else self.recorded

    def _decode(self, rows: Int[Array, "k"], length: int, header: Array, good: Array) -> None:
        """Messages of one length; those of equal structure together."""
        stack = np.frombuffer(b"".join(self.topic.messages[i] for i in rows), np.uint8).reshape(
            len(rows), length
        )
        todo = np.arange(len(rows))
        for turn in range(len(rows)):
            if len(todo) == 0:
                break
            try:
                layout = Walk(self.types, stack[todo[0]].tobytes(), self.topic.encoding).walked(
                    self.topic.kind
                )
            except MessageError:
                todo = todo[1:]
                continue
            if turn < _MOST_TEMPLATES:
                fixed = layout.structure()
                same = np.all(stack[np.ix_(todo, fixed)] == stack[todo[0], fixed], axis=1)
            else:
                same = np.arange(len(todo)) == 0
            alike = todo[same]
            good[rows[alike]] = True
            self._fill(layout, stack[alike], rows[alike], header)
            todo = todo[~same]

    def _fill(self, layout: Layout, stack: Array, rows: Int[Array, "k"], header: Array) -> None:
        """Numbers of messages with one layout into their columns."""
        read: dict[Place, Any] = {}
        for place, (start, kind, count) in layout.numbers.items():
            width = int(kind[-1]) * (count or 1)
            read[place] = np.ascontiguousarray(stack[:, start : start + width]).view(kind)
        header[rows] = _stamps(read, len(rows))
        for name, values in _named(layout, read, self.topic.name):
            if name not in self.columns:
                self.columns[name] = np.full(len(header), np.nan)
                self.present[name] = np.zeros(len(header), dtype=bool)
            self.columns[name][rows] = values
            self.present[name][rows] = True

    def series(self, origin: int) -> list[Series]:
        """One per set of joints that come together; time in [s] from `origin` [ns]."""
        groups: dict[bytes, list[str]] = {}
        for name, mask in self.present.items():
            groups.setdefault(mask.tobytes(), []).append(name)
        made = []
        for names in groups.values():
            mask = self.present[names[0]]
            label = self.topic.name if len(groups) == 1 else f"{self.topic.name} ({len(names)} columns)"
            # Division is exact for stamps that are decimal fractions of a second; a product with 1e-9 is not.
            t = (self.stamps[mask] - origin) / 1e9
            made.append(Series(label, t, {name: self.columns[name][mask] for name in names}))
        return made


def _stamps(read: dict[Place, Any], count: int) -> Int[Array, "k"]:
    """Header stamps in [ns]; zeros where there are none."""
    for start in (("header", "stamp"), ("stamp",)):
        if (*start, "sec") in read and (*start, "nanosec") in read:
            sec, nano = (read[(*start, part)][:, 0].astype(np.int64) for part in ("sec", "nanosec"))
            return np.asarray(sec * 10**9 + nano)
    return np.zeros(count, dtype=np.int64)


def _named(layout: Layout, read: dict[Place, Any], topic: str) -> list[tuple[str, Any]]:
    """Columns of the numbers: entries of arrays have the names in the message, or numbers from 1."""
    made: dict[str, Any] = {}
    for place, values in read.items():
        if place[0] in ("header", "layout") or "stamp" in place:
            continue
        count = layout.numbers[place][2]
        *before, last = _parts(layout, place)
        labels = None if count is None else _labels(layout, place[:-1], count)
        for k in range(count or 1):
            if labels is not None:
                parts = [*before, labels[k]] if last in _UNNAMED else [*before, labels[k], last]
            else:
                parts = [*before, last if count is None else f"{last}_{k + 1}"]
            made["/".join([topic, *parts])] = values[:, k]
    return list(made.items())


def _parts(layout: Layout, place: Place) -> list[str]:
    """Names of the fields around a number; entries of lists of messages are named as those of arrays."""
    parts: list[str] = []
    for i, part in enumerate(place):
        if isinstance(part, str):
            parts.append(_SINGULAR.get(part, part))
            continue
        size = 1 + max(int(other[i]) for other in layout.numbers if other[:i] == place[:i] and len(other) > i)
        labels = _labels(layout, place[: i - 1], size)
        parts[-1] = labels[part] if labels else f"{parts[-1]}_{part + 1}"
    return parts


def _labels(layout: Layout, around: Place, count: int) -> tuple[str, ...] | None:
    """Unique names of `count` entries in the innermost message around them that has such a list."""
    for depth in range(len(around), -1, -1):
        for name in _NAMES:
            labels = layout.texts.get((*around[:depth], name), ())
            if len(labels) == count == len(set(labels)) and all(labels):
                return labels
    return None
