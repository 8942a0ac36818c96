"""How a mechanism shows itself: one line in an interpreter, a table of its joints by `print`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynid.mechanism.joint import Joint
    from dynid.mechanism.mechanism import Mechanism

_TITLES = ("joint", "kind", "parent", "child", "measured", "drive terms")
_LONGEST = 60  # characters of a list of names


def line_of(robot: Mechanism) -> str:
    """Name and sizes: `Mechanism('scara': 4 movable joints, 4 motors, 4 measured, model inverse)`."""
    return f"Mechanism({robot.name!r}: {_sizes(robot)})"


def text_of(robot: Mechanism) -> str:
    """Name, sizes and file, then one row for each joint; what lies beside the tree by its names."""
    rows = [_TITLES, *(_row(robot, joint) for joint in robot.joints)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    names = {
        "motors": [] if _plain(robot) else [_motor(robot, motor.name) for motor in robot.actuators],
        "loops": [loop.name for loop in robot.loops],
        "cables": [cable.name for cable in robot.cables],
        "poses measured": [pose.name for pose in robot.poses],
        "payloads": list(robot.payloads),
    }
    more = [f"{what}: {_few(listed)}" for what, listed in names.items() if listed]
    head = f"{robot.name}: {_sizes(robot)}" + (f" ({robot.file})" if robot.file else "")
    return "\n".join([head, *table, *more])


def _sizes(robot: Mechanism) -> str:
    movable = sum(bool(joint.coordinates) for joint in robot.joints)
    counts = [
        (movable, "movable joint"),
        (len(robot.loops), "loop"),
        (len(robot.cables), "cable"),
        (len(robot.actuators), "motor"),
    ]
    parts = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
    return ", ".join([*parts, f"{len(robot.measured)} measured", f"model {robot.model}"])


def _row(robot: Mechanism, joint: Joint) -> tuple[str, ...]:
    symbols = dict.fromkeys(symbol for name in joint.coordinates for symbol in robot.drive.get(name, ()))
    is_measured = joint.name in robot.measured or any(name in robot.measured for name in joint.positions)
    measured = "yes" if is_measured else ""
    return joint.name, joint.kind.value, joint.parent, joint.child, measured, " ".join(symbols)


def _motor(robot: Mechanism, name: str) -> str:
    terms = " ".join(robot.drive.get(name, ()))
    return f"{name} ({terms})" if terms else name


def _plain(robot: Mechanism) -> bool:
    """Whether every motor has the name of the joint that it drives."""
    return all(motor.name in motor.on for motor in robot.actuators)


def _few(names: Sequence[str]) -> str:
    text = ", ".join(names)
    return text if len(text) <= _LONGEST else f"{', '.join(names[:3])}, .. {names[-1]} ({len(names)})"
