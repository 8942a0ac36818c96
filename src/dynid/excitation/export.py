"""Trajectories for controllers: CSV, YAML (`dynid.trajectory/1`), and ROS 2 JointTrajectory messages.

A CSV has the columns of a log (`t`, `q_NAME`, `dq_NAME`, `ddq_NAME`), so every command that reads a log
or a desired trajectory can read it. `read_trajectory` reads all three formats.

A run in the formats of controllers: CSV, ROS 2 JointTrajectory, URScript, KRL and RAPID.

Each format takes the run at its own rate. URScript sends one `servoj` per sample. KRL and RAPID get lists
of points with the time of each, in degrees or millimetres; controllers interpolate between them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.csv_text import csv_line
from dynid.common.entry import Entry, root_entry
from dynid.common.errors import InputError, nearest
from dynid.common.strict_yaml import BYTE_LIMIT, read_yaml
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from dynid.excitation.run import Run


SCHEMA = "dynid.trajectory/1"
ROS_TYPE = "trajectory_msgs/msg/JointTrajectory"
_NANO = 1_000_000_000
_BUDGET = BYTE_LIMIT // 8  # nodes: capacity of a file of the largest size


@dataclass(frozen=True, eq=False)
class SampledTrajectory:
    """Positions and rates of named joints at given times.

    Attributes:
        names: Of the joints.
        t: Shape (n,), in [s], growing.
        q, dq, ddq: Shape (n, j), in [rad] or [m], per s and per s^2; rates None where not given.
        marks: Of a run, the part to which every sample belongs.
    """

    names: tuple[str, ...]
    t: Float[Array, "n"]
    q: Float[Array, "n j"]
    dq: Float[Array, "n j"] | None = None
    ddq: Float[Array, "n j"] | None = None
    marks: tuple[str, ...] = ()


def trajectory_csv(motion: SampledTrajectory) -> str:
    """Columns `t`, `q_NAME`, `dq_NAME`, `ddq_NAME`; each number with the fewest digits that reproduce it."""
    columns, header = [motion.t[:, None]], ["t"]
    for symbol, values in (("q", motion.q), ("dq", motion.dq), ("ddq", motion.ddq)):
        if values is not None:
            columns.append(values)
            header += [f"{symbol}_{name}" for name in motion.names]
    rows = np.column_stack(columns).tolist()
    return "\n".join([csv_line(header), *(",".join(map(repr, row)) for row in rows), ""])


def trajectory_ros2(motion: SampledTrajectory, lead: float = 0.0) -> str:
    """A `trajectory_msgs/msg/JointTrajectory` as YAML, as accepted by `ros2 topic pub`.

    The header's stamp of zero means "start now".

    Args:
        motion: Its time counts from the first point.
        lead: Time of the first point, in [s]: the controller leads the robot there from where it is.
    """
    lines = [
        f"# {ROS_TYPE}",
        *([f"# The first {lead:g} s lead to the first point: begin at rest near it."] if lead else []),
        "header: {stamp: {sec: 0, nanosec: 0}, frame_id: ''}",
        f"joint_names: {_quoted(motion.names)}",
        "points:",
    ]
    parts = [("positions", motion.q), ("velocities", motion.dq), ("accelerations", motion.ddq)]
    moments = np.rint((motion.t - motion.t[0] + lead) * _NANO).astype(np.int64).tolist()
    for k, moment in enumerate(moments):
        values = [f"{name}: {_numbers(x[k]) if x is not None else '[]'}" for name, x in parts]
        when = f"time_from_start: {{sec: {moment // _NANO}, nanosec: {moment % _NANO}}}"
        lines.append(f"  - {{{', '.join([*values, 'effort: []', when])}}}")
    return "\n".join(lines) + "\n"


def read_trajectory(path: str | os.PathLike[str]) -> SampledTrajectory:
    """A trajectory from either YAML format; unknown entries are rejected."""
    root = root_entry(read_yaml(path, node_budget=_BUDGET))
    if "joint_names" in root.mapping():
        return _read_ros2(root)
    fields = root.fields(("schema", "joints", "points"), required=("joints", "points"))
    if "schema" in fields:
        fields["schema"].choice((SCHEMA,))
    names = fields["joints"].texts()
    points = [item.fields(("t", "q", "dq", "ddq"), ("t", "q")) for item in fields["points"].items()]
    times = np.array([_number(point["t"]) for point in points])
    return _gathered(fields["points"], names, times, points, ("q", "dq", "ddq"))


def _read_ros2(root: Entry) -> SampledTrajectory:
    fields = root.fields(("header", "joint_names", "points"), required=("points",))
    names = fields["joint_names"].texts()
    keys = ("positions", "velocities", "accelerations")
    required = ("positions", "time_from_start")
    items = list(fields["points"].items())
    points = [item.fields((*keys, "effort", "time_from_start"), required) for item in items]
    times = []
    for point in points:
        parts = point["time_from_start"].fields(("sec", "nanosec"), ("sec",))
        nano = parts["nanosec"].count(0) if "nanosec" in parts else 0
        times.append(parts["sec"].count(0) + nano / _NANO)
    return _gathered(fields["points"], names, np.array(times), points, keys)


def _gathered(
    entry: Entry,
    names: tuple[str, ...],
    times: Float[Array, "n"],
    points: Sequence[dict[str, Entry]],
    keys: tuple[str, str, str],
) -> SampledTrajectory:
    """Arrays of all points; a rate given for only some points is rejected."""
    if len(points) < 2:
        raise entry.error(f"a trajectory cannot have {len(points)} points", "give two or more")
    arrays: list[Float[Array, "n j"] | None] = []
    for key in keys:
        given = [point[key] for point in points if key in point and list(point[key].items())]
        if not given:
            arrays.append(None)
            continue
        if len(given) < len(points):
            raise entry.error(f"only {len(given)} of {len(points)} points have '{key}'", "give all or none")
        arrays.append(np.array([row.vector(_number, len(names)) for row in given]))
    q, dq, ddq = arrays
    if q is None:
        raise entry.error(f"no point has '{keys[0]}'", "give the positions")
    motion = SampledTrajectory(names, times, q, dq, ddq)
    _check(motion, entry.file)
    return motion


def _check(motion: SampledTrajectory, file: object) -> None:
    """Reject arrays of different sizes, and times that do not increase."""
    shape = (len(motion.t), len(motion.names))
    for label, values in (("q", motion.q), ("dq", motion.dq), ("ddq", motion.ddq)):
        if values is not None and np.shape(values) != shape:
            raise InputError(f"{label} has shape {np.shape(values)}, expected {shape}", file=file)
        if values is not None and not np.all(np.isfinite(values)):
            raise InputError(f"{label} contains values that are not finite", file=file, remedy="correct them")
    if len(motion.t) < 2 or not np.all(np.diff(motion.t) > 0.0):
        raise InputError("the times of a trajectory must increase", file=file, remedy="sort the points")


def _number(entry: Entry) -> float:
    value = entry.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise entry.error(f"expected a number, found {entry.shown}")
    return float(value)


def _numbers(values: Float[Array, "j"]) -> str:
    """The shortest text that reproduces every number exactly."""
    return f"[{', '.join(repr(float(x)) for x in values)}]"


def _quoted(names: Sequence[str]) -> str:
    return "[" + ", ".join("'" + name.replace("'", "''") + "'" for name in names) + "]"


_AXES = 6
_FASTEST = 1e5  # Hz
_POINTS = 100.0  # Hz: controllers stop or slow down at points of a program that follow each other faster
_LEAD = 10.0  # s to the first point: half a turn at no more than 0.6 rad/s; URScript takes 0.25 rad/s
_UNUSED = "9E+09"  # RAPID: an axis that is not connected


@dataclass(frozen=True)
class Controller:
    """A format of controllers.

    Attributes:
        file: Its name.
        rate: Usual rate, in [Hz]; None: that of the recording.
        axes: Most axes.
        fastest: Highest rate, in [Hz].
        text: Writer; its second argument marks the joints that slide.
    """

    file: str
    rate: float | None
    axes: float
    fastest: float
    text: Callable[[SampledTrajectory, Bool[Array, "m"]], str]


def controller_file(run: Run, format: str, rate: float | None, recorded: float) -> tuple[str, str]:
    """Name and text of the file for a controller.

    Args:
        format: One of CONTROLLERS.
        rate: Of the controller, in [Hz]; None: usual rate of the format, or that of the recording.
        recorded: Rate of the recording, in [Hz].
    """
    check_controllers((format,), rate, run.plan.mechanism)
    target = CONTROLLERS[format]
    sampled = run.sampled(rate or target.rate or recorded)
    return target.file, target.text(sampled, sliding(run.plan.mechanism, sampled.names))


def check_controllers(formats: Sequence[str], rate: float | None, mechanism: Mechanism) -> None:
    """Refuse what cannot be written before a long search: unknown formats, rates, and other robots."""
    if rate is not None and not formats:
        raise InputError(
            f"a controller rate of {rate:g} Hz is given, but no controller format",
            place="controller-rate",
            remedy=f"add --for-controller {'|'.join(CONTROLLERS)}",
        )
    names = mechanism.measured_positions
    slides = bool(sliding(mechanism, names).any())
    for format in formats:
        if format not in CONTROLLERS:
            raise InputError(
                f"no controller format '{format}'" + nearest(format, CONTROLLERS),
                place="for-controller",
                remedy=f"use {', '.join(CONTROLLERS)}",
            )
        most = CONTROLLERS[format].axes
        if len(names) > most or (format == "urscript" and (slides or len(names) < most)):
            scope = "six revolute joints" if format == "urscript" else f"at most {most} axes"
            raise InputError(
                f"{format} is for {scope}; the robot has {len(names)} measured joints"
                + (", some of them slides" if slides else ""),
                file=mechanism.file,
                place="for-controller",
                remedy="use csv or ros2",
            )
        fastest = CONTROLLERS[format].fastest
        if rate is not None and not 0.0 < rate <= fastest:
            raise InputError(
                f"{rate:g} Hz is not a rate for {format}",
                place="controller-rate",
                remedy=f"at most {fastest:g} Hz; without a rate each format has its usual one",
            )


def sliding(mechanism: Mechanism, names: Sequence[str]) -> Bool[Array, "m"]:
    """Which joints slide."""
    kinds = {name: joint.kind for joint in mechanism.joints for name in joint.positions}
    return np.array([kinds.get(name) is JointKind.PRISMATIC for name in names])


def run_csv(run: SampledTrajectory) -> str:
    """Columns of a trajectory, and `part`: approach, motion or return. It can be simulated as it is."""
    lines = trajectory_csv(run).splitlines()
    marks = ("part", *run.marks)
    return "".join(f"{line},{mark}\n" for line, mark in zip(lines, marks, strict=True))


def _csv(run: SampledTrajectory, slides: Bool[Array, "m"]) -> str:
    return run_csv(run)


def _ros2(run: SampledTrajectory, slides: Bool[Array, "m"]) -> str:
    return trajectory_ros2(run, _LEAD)


def _urscript(run: SampledTrajectory, slides: Bool[Array, "m"]) -> str:
    """A program of `servoj` calls, in [rad]; it first moves to the safe pose.

    A controller takes the lines from `def` to `end` as one program and starts it. A call after `end` would be
    a second program, which stops the first.
    """
    step = float(run.t[1] - run.t[0])
    lines = ["def dynid_run():", f"  # joints: {commented(run.names)}"]
    lines.append(f"  movej({_list(run.q[0])}, a=0.5, v=0.25)")
    for k, mark in enumerate(run.marks):
        if k == 0 or mark != run.marks[k - 1]:
            lines.append(f"  # {mark}")
        lines.append(f"  servoj({_list(run.q[k])}, t={step:.9g}, lookahead_time=0.1, gain=300)")
    return "\n".join([*lines, "  stopj(2.0)", "end"]) + "\n"


def _krl(run: SampledTrajectory, slides: Bool[Array, "m"]) -> str:
    """A timed spline of axis positions, slowly to its begin: every point after a share of the whole time."""
    values = _degrees(run.q, slides)
    lines = [
        "DEF dynid_run()",
        f"; axes: {commented(run.names)}",
        "BAS(#INITMOV, 0)",
        "BAS(#VEL_PTP, 10)",
        "BAS(#ACC_PTP, 20)",
        f"PTP {_axes(values[0])}",
        "BAS(#VEL_PTP, 100)",
        "BAS(#ACC_PTP, 100)",
        "PTP_SPLINE",
        "  TIME_BLOCK START",
    ]
    for k in range(1, len(values)):
        if run.marks[k] != run.marks[k - 1] or k == 1:
            lines.append(f"  ; {run.marks[k]}")
        lines += [f"  SPTP {_axes(values[k])}", f"  TIME_BLOCK PART = {100.0 / (len(values) - 1):.9g}"]
    lines.append(f"  TIME_BLOCK END = {float(run.t[-1] - run.t[0]):.9g}")
    return "\n".join([*lines, "ENDSPLINE", "END"]) + "\n"


def _rapid(run: SampledTrajectory, slides: Bool[Array, "m"]) -> str:
    """`MoveAbsJ` to every point within the time of a step."""
    values, step = _degrees(run.q, slides), float(run.t[1] - run.t[0])
    lines = ["MODULE DynidRun", f"  ! axes: {commented(run.names)}", "  PROC dynid_run()"]
    lines.append(f"    MoveAbsJ {_target(values[0])}, v50, fine, tool0;")
    for k in range(1, len(values)):
        if run.marks[k] != run.marks[k - 1] or k == 1:
            lines.append(f"    ! {run.marks[k]}")
        zone = "fine" if k == len(values) - 1 else "z1"
        lines.append(f"    MoveAbsJ {_target(values[k])}, v1000 \\T:={step:.9g}, {zone}, tool0;")
    return "\n".join([*lines, "  ENDPROC", "ENDMODULE"]) + "\n"


CONTROLLERS: dict[str, Controller] = {
    "csv": Controller("controller.csv", None, math.inf, _FASTEST, _csv),
    "ros2": Controller("run.ros2.yaml", 100.0, math.inf, _FASTEST, _ros2),
    "urscript": Controller("run.script", 125.0, _AXES, _FASTEST, _urscript),
    "krl": Controller("dynid_run.src", 10.0, _AXES, _POINTS, _krl),
    "rapid": Controller("DynidRun.mod", 10.0, _AXES, _POINTS, _rapid),
}


def commented(names: Sequence[str]) -> str:
    """Names inside a comment: one line of ASCII, everything else as escapes."""
    return ", ".join(name.encode("unicode_escape").decode("ascii") for name in names)


def _degrees(q: Float[Array, "n m"], slides: Bool[Array, "m"]) -> Float[Array, "n m"]:
    """In [deg] or [mm]."""
    return np.asarray(q * np.where(slides, 1000.0, 180.0 / math.pi))


def _list(values: Float[Array, "m"]) -> str:
    return f"[{', '.join(f'{x:.9f}' for x in values.tolist())}]"


def _axes(values: Float[Array, "m"]) -> str:
    return "{" + ", ".join(f"A{k} {x:.6f}" for k, x in enumerate(values.tolist(), 1)) + "}"


def _target(values: Float[Array, "m"]) -> str:
    robot = [f"{x:.6f}" for x in values.tolist()] + ["0"] * (_AXES - len(values))
    return f"[[{','.join(robot)}],[{','.join([_UNUSED] * _AXES)}]]"
