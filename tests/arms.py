"""Small mechanisms and synthetic recordings for the tests of the motion stage."""

from __future__ import annotations

import numpy as np

from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import Actuator, Body, Mechanism

Z = np.array([0.0, 0.0, 1.0])


def arm(count: int = 2, prefix: str = "motor") -> Mechanism:
    """A chain of revolute joints motor1, motor2, ..., each measured and driven."""
    joints = tuple(
        Joint(f"{prefix}{i + 1}", JointKind.REVOLUTE, f"link{i}" if i else "base", f"link{i + 1}", axes=(Z,))
        for i in range(count)
    )
    return _mechanism(joints)


def platform() -> Mechanism:
    """One free body, measured, with one force on it."""
    return _mechanism((Joint("pose", JointKind.FREE, "base", "platform"),), on="pose_x")


def motion(t, count: int = 2):
    """q, dq, ddq of `count` smooth coordinates at times t: two sines each, below 1 Hz."""
    parts = []
    for j in range(count):
        w1, w2, phase = 2 * np.pi * 0.3, 2 * np.pi * (0.55 + 0.1 * j), 0.7 * j
        q = 0.8 * np.sin(w1 * t + phase) + 0.3 * np.cos(w2 * t)
        dq = 0.8 * w1 * np.cos(w1 * t + phase) - 0.3 * w2 * np.sin(w2 * t)
        ddq = -0.8 * w1**2 * np.sin(w1 * t + phase) - 0.3 * w2**2 * np.cos(w2 * t)
        parts.append((q, dq, ddq))
    return tuple(np.column_stack(columns) for columns in zip(*parts, strict=True))


def write_csv(path, columns, delimiter=",", decimal=".", header=None):
    """Write columns (name -> values) as text; returns the path as str."""
    rows = [delimiter.join(header or columns)]
    values = np.column_stack(list(columns.values()))
    rows += [delimiter.join(f"{x:.12g}".replace(".", decimal) for x in row) for row in values]
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def recording(seconds: float = 4.0, rate: float = 250.0, count: int = 2, velocities: bool = False):
    """Columns of a clean log of `arm(count)`."""
    t = np.arange(round(seconds * rate)) / rate
    q, dq, ddq = motion(t, count)
    columns = {"t": t}
    columns |= {f"q_{j + 1}": q[:, j] for j in range(count)}
    if velocities:
        columns |= {f"dq_{j + 1}": dq[:, j] for j in range(count)}
    columns |= {f"tau_{j + 1}": 2.0 * ddq[:, j] + 0.5 * dq[:, j] for j in range(count)}
    return columns


def _mechanism(joints, on=None):
    bodies = {joint.child: Body(joint.child) for joint in joints}
    driven = [on] if on else [joint.name for joint in joints]
    return Mechanism(
        name="test",
        gravity=np.array([0.0, 0.0, -9.81]),
        joints=joints,
        bodies=bodies,
        actuators=tuple(Actuator(name, {name: 1.0}) for name in driven),
        measured=tuple(joint.name for joint in joints),
    )
