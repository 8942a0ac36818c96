"""Simulated wrench tables: the output of a multibody program for a robot with known parameters.

From the tips to the base, with own = W_body chi_true about the body's origin,

    F = F_own + sum over children F_c        M = M_own + moments of F about the joint + sum over children M_c

`dynid simulate --table`: the output table of a multibody program, for a robot with known parameters.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float, Shaped
from dynid.common.csv_text import RowWriter
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.excitation.series import Trajectory
from dynid.kinematics.coordinates import coordinate_map
from dynid.kinematics.tree import BodyMotion, body_motion, tree_of
from dynid.mechanism.frame import quaternion_of
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import BASE, Mechanism
from dynid.motion.body_table import QUANTITIES, BodyTable, TableLog, table_log
from dynid.regressor.wrench import wrench_regressor
from dynid.report.json_file import plain
from dynid.robots.truth import SCHEMA, true_values
from dynid.simulation.files import write_both
from dynid.simulation.motion import chosen_motion
from dynid.simulation.simulation import Simulation, check_payloads

_ALWAYS = ("quaternion", "omega", "alpha", "acceleration", "force", "moment")


@dataclass(frozen=True, eq=False)
class UniformAcceleration:
    """A `Trajectory` from rest with constant accelerations: q = q_0 + ddq t^2 / 2.

    Attributes:
        start: q_0, shape (j,), in [rad] or [m].
        rate: ddq, shape (j,), in [rad/s^2] or [m/s^2].
    """

    start: Float[Array, "j"]
    rate: Float[Array, "j"]

    def q(self, t: Float[Array, "n"]) -> Float[Array, "n j"]:
        """Positions, shape (n, j), in [rad] or [m]."""
        return np.asarray(self.start + 0.5 * np.square(t)[:, None] * self.rate)

    def dq(self, t: Float[Array, "n"]) -> Float[Array, "n j"]:
        """Their rates, per s."""
        return np.asarray(t)[:, None] * self.rate

    def ddq(self, t: Float[Array, "n"]) -> Float[Array, "n j"]:
        """Their second rates, per s^2."""
        return np.broadcast_to(self.rate, (len(t), len(self.rate)))


def wrench_table(
    mechanism: Mechanism,
    truth: Mapping[str, float],
    motion: Trajectory,
    instants: Float[Array, "n"],
    digits: int | None = None,
    *,
    payloads: Sequence[str] = (),
    positions: bool = False,
    name: str = "simulated",
) -> TableLog:
    """The output table of a multibody program for a tree along a motion of its measured coordinates.

    Args:
        mechanism: The robot; closed loops are rejected: their reactions appear in no inner joint.
        truth: Inertial parameters by name, SI; those not named are zero.
        motion: Of the measured coordinates.
        instants: Times of the rows, shape (n,), in [s].
        digits: Significant digits of every number; None: full precision.
        payloads: Mounted on the robot.
        positions: Also print x y z of the body origins.
    """
    if mechanism.is_closed:
        raise InputError(
            f"robot '{mechanism.name}' has closed loops: the wrenches at its inner joints are not determined"
            " by the motion alone",
            file=mechanism.file,
            remedy="simulate an open tree",
        )
    t = np.asarray(instants, float)
    robot = replace(mechanism, payloads={load: mechanism.payloads[load] for load in payloads})
    states = coordinate_map(robot).tree_states(motion.q(t), motion.dq(t), motion.ddq(t))
    moved = body_motion(tree_of(robot), *states)
    force, moment = _joint_wrenches(robot, moved, truth)
    bodies = len(robot.bodies)
    R = moved.R[:, :bodies]
    signals = {
        "quaternion": _continued(quaternion_of(R)),
        "position": moved.p[:, :bodies],
        "omega": moved.V[:, :bodies, 3:],
        "alpha": moved.dV[:, :bodies, 3:],
        "acceleration": np.einsum("nbij,nbj->nbi", R, moved.dV[:, :bodies, :3]) + robot.gravity,
        "force": force,
        "moment": moment,
    }
    kept = [*_ALWAYS, *(["position"] if positions else [])]
    printed = {name: rounded(x, digits) for name, x in signals.items() if name in kept}
    figures = {name: _figures(x, digits) for name, x in printed.items()}
    present = np.ones((len(t), bodies), dtype=bool)
    runs = np.zeros(len(t), dtype=int)
    table = BodyTable(t, runs, tuple(robot.bodies), present, printed, figures)
    return table_log(table, name, payloads=tuple(payloads))


def _continued(q: Float[Array, "n b 4"]) -> Float[Array, "n b 4"]:
    """The same attitudes, with continuous signs of the quaternions."""
    away = np.sum(q[1:] * q[:-1], axis=2) < 0.0
    sign = np.where(np.cumsum(away, axis=0) % 2, -1.0, 1.0)
    return np.concatenate([q[:1], sign[..., None] * q[1:]])


def _joint_wrenches(
    robot: Mechanism, moved: BodyMotion, truth: Mapping[str, float]
) -> tuple[Float[Array, "n b 3"], Float[Array, "n b 3"]]:
    """Force and moment that the parent of each body exerts at its inner joint, world axes."""
    names = [*robot.bodies, *robot.payloads]
    chi = np.array([[truth.get(f"{symbol}_{body}", 0.0) for symbol in SYMBOLS] for body in names])
    wrench = np.einsum("nbij,bj->nbi", wrench_regressor(moved.V[..., 3:], moved.dV), chi)
    force = np.einsum("nbij,nbj->nbi", moved.R, wrench[..., :3])
    about = np.einsum("nbij,nbj->nbi", moved.R, wrench[..., 3:])
    for i, payload in enumerate(robot.payloads.values(), start=len(robot.bodies)):
        carrier = names.index(payload.body)
        about[:, carrier] += about[:, i] + np.cross(moved.p[:, i] - moved.p[:, carrier], force[:, i])
        force[:, carrier] += force[:, i]
    force, about = force[:, : len(robot.bodies)], about[:, : len(robot.bodies)]
    moment = np.zeros_like(about)
    for joint in reversed(robot.joints):
        i = names.index(joint.child)
        arm = moved.R[:, i] @ joint.body.inverse().p
        moment[:, i] = about[:, i] - np.cross(arm, force[:, i])
        if joint.parent != BASE:
            k = names.index(joint.parent)
            force[:, k] += force[:, i]
            about[:, k] += moment[:, i] + np.cross(moved.p[:, i] + arm - moved.p[:, k], force[:, i])
    return force, moment


def rounded(x: Float[Array, "*n"], digits: int | None) -> Float[Array, "*n"]:
    """Numbers as printed with `digits` significant digits."""
    if digits is None:
        return np.asarray(x)
    size = np.floor(np.log10(np.where(x == 0.0, 1.0, np.abs(x))))
    places = digits - 1.0 - size
    # Dividing by a power of ten gives the float nearest to the printed number; its inverse is not exact.
    up, down = 10.0 ** np.maximum(places, 0.0), 10.0 ** np.maximum(-places, 0.0)
    return np.asarray(np.rint(x / down * up) / up * down)


def _figures(x: Float[Array, "*n"], digits: int | None) -> Float[Array, "*n"]:
    """Unit of the last digit of each number."""
    size = np.floor(np.log10(np.where(x == 0.0, 1.0, np.abs(x))))
    return np.where(x == 0.0, 0.0, 10.0 ** (size - (digits or 16) + 1.0))


def table_columns(log: TableLog) -> dict[str, Shaped[Array, "r"]]:
    """Columns of a table, one row per instant and body: t, body (names), and the other available ones."""
    table = log.rows
    n, b = table.present.shape
    columns: dict[str, Array] = {"t": np.repeat(table.t, b), "body": np.tile(np.array(table.bodies), n)}
    for quantity, names in QUANTITIES.items():
        if quantity in table.signals:
            for i, column in enumerate(names):
                columns[column] = table.signals[quantity][:, :, i].ravel()
    used = table.present.ravel()
    return {column: values[used] for column, values in columns.items()}


def write_wrench_table(log: TableLog, path: str | os.PathLike[str], digits: int | None = None) -> Path:
    """Write a table as CSV with `digits` significant digits (None: all)."""
    target = Path(path)
    if target.suffix != ".csv":
        raise InputError(f"'{target.name}' is not a .csv file", remedy="tables of bodies are written as CSV")
    columns = table_columns(log)
    figures = digits or 17
    rows = (
        [cell if isinstance(cell, str) else f"{cell:.{figures}g}" for cell in row]
        for row in zip(*(column.tolist() for column in columns.values()), strict=True)
    )
    text = io.StringIO()
    writer = RowWriter(text)
    writer.writerow(columns)
    writer.writerows(rows)
    target.write_text(text.getvalue(), encoding="utf-8")
    return target


@dataclass(frozen=True, eq=False)
class SimulatedTable:
    """A table and its true parameters.

    Attributes:
        log: One row per body and instant.
        digits: Significant digits of its numbers.
        values: True standard parameters by name, SI.
        choices: Description of the simulation as text.
    """

    log: TableLog
    digits: int
    values: Mapping[str, float]
    choices: Mapping[str, str]
    notices: tuple[Notice, ...] = ()


def simulate_table(mechanism: Mechanism, settings: Simulation, instants: int, digits: int) -> SimulatedTable:
    """Body motion and joint wrenches at instants in the middle of equal parts of a motion.

    Args:
        mechanism: An open tree.
        settings: Motion, true parameters, payloads and duration; sensors are ignored.
        instants: Number of instants.
        digits: Printed significant digits.
    """
    if settings.engine != "inverse":
        raise InputError(
            f"engine '{settings.engine}' is not available for tables: their bodies follow the motion exactly",
            remedy="remove --engine",
        )
    check_payloads(mechanism, settings)
    values, notices = true_values(mechanism, settings.truth, settings.payloads, wrenches=True)
    motion = chosen_motion(mechanism, settings.motion, settings.seed)
    duration = settings.duration or float(getattr(motion, "period", 1.0))
    t = duration * (np.arange(instants) + 0.5) / instants
    log = wrench_table(
        mechanism, values, motion, t, digits, payloads=settings.payloads, positions=True, name=mechanism.name
    )
    choices = {
        "table": f"{instants} instants of {duration:.4g} s, {len(mechanism.bodies)} bodies, {digits} digits",
        "motion": settings.motion.file or f"random ({settings.motion.kind}), seed {settings.seed}",
        "payloads": ", ".join(settings.payloads) or "none",
    }
    return SimulatedTable(log, digits, values, choices, notices)


def write_table(simulated: SimulatedTable, robot: str, path: Path) -> tuple[Path, Path]:
    """Write the table and `NAME.truth.json` next to it."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "robot": robot,
        "log": path.name,
        "engine": "inverse",
        "parameters": plain(dict(simulated.values)),
        "choices": dict(simulated.choices),
    }
    return write_both(path, lambda part: write_wrench_table(simulated.log, part, simulated.digits), document)
