"""A run in the formats of controllers: CSV, ROS 2 JointTrajectory, URScript, KRL and RAPID.

Each format takes the run at its own rate. URScript sends one `servoj` per sample. KRL and RAPID get lists
of points with the time of each, in degrees or millimetres; controllers interpolate between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.errors import InputError, nearest
from dynid.excitation.export import SampledTrajectory, trajectory_csv, trajectory_ros2
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from dynid.excitation.run import Run, SampledRun

_AXES = 6
_FASTEST = 1e5  # Hz
_UNUSED = "9E+09"  # RAPID: an axis that is not connected


@dataclass(frozen=True)
class Controller:
    """A format of controllers.

    Attributes:
        file: Its name.
        rate: Usual rate, in [Hz]; None: that of the recording.
        axes: Most axes.
        text: Writer; its second argument marks the joints that slide.
    """

    file: str
    rate: float | None
    axes: float
    text: Callable[[SampledRun, Bool[Array, "m"]], str]


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
    if rate is not None and not 0.0 < rate <= _FASTEST:
        raise InputError(
            f"{rate:g} Hz is not the rate of a controller", place="controller-rate", remedy="e.g. 125"
        )


def sliding(mechanism: Mechanism, names: Sequence[str]) -> Bool[Array, "m"]:
    """Which joints slide."""
    kinds = {name: joint.kind for joint in mechanism.joints for name in joint.positions}
    return np.array([kinds.get(name) is JointKind.PRISMATIC for name in names])


def run_csv(run: SampledRun) -> str:
    """Columns of a log, and `segment` with the mark of the part: the run can be read as a log."""
    motion = SampledTrajectory(run.names, run.t, run.q, run.dq, run.ddq)
    lines = trajectory_csv(motion).splitlines()
    marks = ("segment", *run.marks)
    return "".join(f"{line},{mark}\n" for line, mark in zip(lines, marks, strict=True))


def _csv(run: SampledRun, slides: Bool[Array, "m"]) -> str:
    return run_csv(run)


def _ros2(run: SampledRun, slides: Bool[Array, "m"]) -> str:
    return trajectory_ros2(SampledTrajectory(run.names, run.t, run.q, run.dq, run.ddq))


def _urscript(run: SampledRun, slides: Bool[Array, "m"]) -> str:
    """A program of `servoj` calls, in [rad]; it first moves to the safe pose."""
    step = float(run.t[1] - run.t[0])
    lines = ["def dynid_run():", f"  # joints: {commented(run.names)}"]
    lines.append(f"  movej({_list(run.q[0])}, a=0.5, v=0.25)")
    for k, mark in enumerate(run.marks):
        if k == 0 or mark != run.marks[k - 1]:
            lines.append(f"  # {mark}")
        lines.append(f"  servoj({_list(run.q[k])}, t={step:.9g}, lookahead_time=0.1, gain=300)")
    return "\n".join([*lines, "  stopj(2.0)", "end", "dynid_run()"]) + "\n"


def _krl(run: SampledRun, slides: Bool[Array, "m"]) -> str:
    """A timed spline of axis positions: every point at its time after the begin."""
    values, step = _degrees(run.q, slides), float(run.t[1] - run.t[0])
    lines = [
        "DEF dynid_run()",
        f"; axes: {commented(run.names)}",
        f"PTP {_axes(values[0])}",
        "PTP_SPLINE",
        "  TIME_BLOCK START",
    ]
    for k in range(1, len(values)):
        if run.marks[k] != run.marks[k - 1] or k == 1:
            lines.append(f"  ; {run.marks[k]}")
        lines += [f"  SPTP {_axes(values[k])}", f"  TIME_BLOCK PART = {step:.9g}"]
    lines[-1] = f"  TIME_BLOCK END = {float(run.t[-1] - run.t[0]):.9g}"
    return "\n".join([*lines, "ENDSPLINE", "END"]) + "\n"


def _rapid(run: SampledRun, slides: Bool[Array, "m"]) -> str:
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
    "csv": Controller("controller.csv", None, math.inf, _csv),
    "ros2": Controller("run.ros2.yaml", 100.0, math.inf, _ros2),
    "urscript": Controller("run.script", 125.0, _AXES, _urscript),
    "krl": Controller("dynid_run.src", 10.0, _AXES, _krl),
    "rapid": Controller("DynidRun.mod", 10.0, _AXES, _rapid),
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
