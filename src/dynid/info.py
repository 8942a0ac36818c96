"""Structure of a robot and its identifiable parameters for any motion: `dynid info`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dynid.base.structural import Loads, grouping_symbols, structural_base, structural_rows
from dynid.common.batched import single_threaded_blas
from dynid.common.brief import one_line
from dynid.common.notices import Notice, notice
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.cable import cable_coordinates
from dynid.mechanism.joint import DIRECTIONS
from dynid.mechanism.load import load_robot
from dynid.mechanism.measured_pose import virtual_joints
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.variant import variant
from dynid.projection.model import MODELS, effort_model
from dynid.regressor.kernels_ahead import prepare_kernels


@dataclass(frozen=True)
class BaseParameter:
    """One base parameter and what is grouped into it."""

    name: str
    unit: str
    grouping: str


@dataclass(frozen=True)
class Info:
    """Counts and base parameters of a mechanism; the fields of `info --json`."""

    name: str
    dof: int
    n_bodies: int
    n_joints: int
    n_actuators: int
    n_closures: int
    n_standard: int
    n_base: int
    base: tuple[BaseParameter, ...]
    eliminated: tuple[str, ...]
    grouped: tuple[str, ...]
    rank_gap: float
    notices: tuple[Notice, ...] = ()

    __repr__ = one_line


def describe(
    mechanism: str | os.PathLike[str] | Mechanism,
    *,
    drive: Sequence[str] | None = None,
    ties: Sequence[str] = (),
    payloads: Sequence[str] = (),
    open_loops: bool = False,
    bodies: Sequence[str] | None = None,
) -> Info:
    """Degrees of freedom, standard and base parameters, and how they are grouped.

    Args:
        mechanism: The robot: a built-in name, a file or a Mechanism.
        drive: Drive terms of every actuated joint instead of the robot's own.
        ties: Names of the description's ties to apply.
        payloads: Payloads to mount.
        open_loops: Cut the loops: every joint, and a platform joined only by loops, moves freely.
        bodies: A sub-chain alone.
    """
    robot = variant(
        load_robot(mechanism), drive=drive, payloads=payloads, open_loops=open_loops, bodies=bodies
    )
    prepare_kernels(robot, tracked=False)
    # Under generic motion all models see the same parameters; `inverse` has the most rows per state. Only
    # free motion, on which no effort acts, does not determine them all.
    parameters = parameter_table(robot)
    loads: Loads = ((), tuple(robot.payloads)) if robot.payloads else ((),)
    cable_model = MODELS.get(robot.model) if robot.cables else None
    scale: Any = None  # how parameters are shown that have none
    if cable_model is not None:
        from dynid.case import case_of  # with all settings of experiments: slow, and trees do not need it

        scale = case_of(cable_model).free_scale(robot, parameters, loads)
    model = effort_model() if cable_model is None or scale is None else cable_model
    robot = robot if scale is None else scale.robot
    with single_threaded_blas():
        base = structural_base(
            robot, model, parameters, structural_rows(robot, model), ties=ties, loads=loads
        )
        symbols = grouping_symbols(robot, model, ties=ties, loads=loads, base=base)
    groupings = base.groupings(symbols)
    freedoms, mobility = _mobility(robot)
    freedoms = freedoms if scale is None else scale.dof
    cut = {loop.name for loop in robot.loops}
    virtual = virtual_joints(robot) | cable_coordinates(robot)  # sensors and cables are no bodies
    return Info(
        name=robot.name,
        dof=freedoms,
        n_bodies=sum(joint.name not in cut | virtual for joint in robot.joints),
        n_joints=len(robot.joints) - len(virtual),
        n_actuators=len(robot.actuators),
        n_closures=len(robot.loops) - len(robot.poses) + len(robot.couplings) + len(robot.cables),
        n_standard=len(parameters),
        n_base=len(base.indices),
        base=tuple(
            BaseParameter(name, unit, grouping) if scale is None else scale.shown(name, unit, grouping)
            for name, unit, grouping in zip(base.names, base.units, groupings, strict=True)
        ),
        eliminated=base.eliminated,
        grouped=base.grouped,
        rank_gap=base.rank.gap,
        notices=robot.notices + mobility + base.notices + (() if scale is None else scale.notices),
    )


def _mobility(robot: Mechanism) -> tuple[int, tuple[Notice, ...]]:
    """Degrees of freedom, and over-constraint of the closures."""
    if not robot.is_closed:
        return len(coordinate_map(robot).independent), ()
    assembly = assembly_of(robot)
    analysis = assembly.mobility
    if not analysis.n_redundant:
        return analysis.dof, assembly.notices
    # Sensors are no closures.
    n_closure = analysis.n_equations - len(DIRECTIONS) * len(robot.poses) - len(robot.swivels)
    constrained = notice("over-constrained", redundant=analysis.n_redundant, total=n_closure)
    return analysis.dof, (*assembly.notices, constrained)
