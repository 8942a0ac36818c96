"""The identification models: which directions N, which rows along a log, which structural factor."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.motion.motion import Motion
from dynid.projection.constant_rows import TreeRows
from dynid.projection.contract import LogRows, Model
from dynid.projection.energy import EnergyRows, energy_directions
from dynid.projection.internal import InternalRows, internal_directions, internal_structure
from dynid.projection.inverse import inverse_directions
from dynid.projection.pose_rows import MovingRows
from dynid.projection.power import power_directions
from dynid.projection.projection import Directions
from dynid.projection.sensor import SensorRows, sensor_directions, sensor_structure
from dynid.projection.structure import structural_factor
from dynid.projection.wrench import WrenchRows, wrench_directions
from dynid.projection.wrench_structure import wrench_structure


def rows_of(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    directions: Directions,
    motion: Motion,
    load_parameters: Float[Array, "p"] | None = None,
) -> LogRows:
    """Rows along a motion: fast where the directions are constant, else pose by pose.

    Args:
        load_parameters: Parameters that predict the loads of load-dependent friction; None: loads are one.
    """
    kind = TreeRows if directions.N is not None else MovingRows
    return kind(mechanism, parameters, directions, motion, load_parameters)


INVERSE = Model(
    "inverse",
    "one equation per degree of freedom",
    inverse_directions,
    rows_of,
    structural_factor,
    effort_rows=True,
)
POWER = Model(
    "power",
    "one equation per sample, unaffected by internal tension",
    power_directions,
    rows_of,
    structural_factor,
)
ENERGY = Model(
    "energy",
    "power over windows, no acceleration",
    energy_directions,
    EnergyRows,
    structural_factor,
    case="energy",
)
INTERNAL = Model(
    "internal",
    "free motion on locked cables, no effort; parameters per unit mass",
    internal_directions,
    InternalRows,
    internal_structure,
    case="free_motion",
)
WRENCH = Model(
    "wrench",
    "six equations per body, from tables of body motion and joint wrenches",
    wrench_directions,
    WrenchRows,
    wrench_structure,
    case="wrench_table",
    effort_rows=True,
)
# Chosen by a force sensor, not by name: its file key is that of wrenches.
FORCE_SENSOR = Model(
    "force_sensor",
    "six equations per sample, for the load on a force sensor",
    sensor_directions,
    SensorRows,
    sensor_structure,
    case="force_sensor",
    key="wrench",
    effort_rows=True,
)
