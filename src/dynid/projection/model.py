"""The contract of identification models and their registry.

A model is a choice of tangent directions N and a way to compute the rows N^T W chi = N^T B tau:
along a log, and at random states for structural identifiability. To add a model, write one file and a
line in `MODELS`; everything after `System` stays unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.common.registry import Registry
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.motion.motion import Motion
from dynid.projection.constant_rows import TreeRows
from dynid.projection.energy import EnergyRows, energy_directions
from dynid.projection.factor import Factor
from dynid.projection.internal import InternalRows, internal_directions, internal_structure
from dynid.projection.inverse import inverse_directions
from dynid.projection.pose_rows import MovingRows
from dynid.projection.power import power_directions
from dynid.projection.projection import Directions
from dynid.projection.sensor import SensorRows, sensor_directions, sensor_structure
from dynid.projection.structure import structural_factor
from dynid.projection.wrench import WrenchRows, wrench_directions
from dynid.projection.wrench_structure import wrench_structure
from dynid.regressor.layout import Layout


@runtime_checkable
class PackedRows(Protocol):
    """Rows computed for any range of samples on demand: the interface that filtering needs."""

    layout: Layout
    dt: float

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Ranges of samples over which rows may be filtered, never across."""

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """First sample, packed entries (e, n) and row weights (k, n) of consecutive tiles.

        Entries and weights may be overwritten by the caller and by the next tile.
        """


@runtime_checkable
class RowSource(PackedRows, Protocol):
    """Rows of one log by one model: the additional interface for prediction."""

    directions: Directions
    motion: Motion
    notices: tuple[Notice, ...]
    choices: dict[str, str]


@dataclass(frozen=True)
class Model:
    """One identification model.

    Attributes:
        directions: All rows the model has for a mechanism.
        rows: The chosen rows along a motion, from mechanism, parameters, directions and motion;
            `load_parameters` predict loads; those of a windowed model also take `integration`.
        structure: The factor of the chosen rows at random feasible states.
        case: What the model needs beyond the plain flow, by its name in `CASES`; empty: nothing.
    """

    name: str
    title: str
    directions: Callable[[Mechanism], Directions]
    rows: Callable[..., RowSource]
    structure: Callable[..., Factor] = structural_factor
    case: str = ""


def rows_of(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    directions: Directions,
    motion: Motion,
    load_parameters: Float[Array, "p"] | None = None,
) -> RowSource:
    """Rows along a motion: fast where the directions are constant, else pose by pose.

    Args:
        load_parameters: Parameters that predict the loads of load-dependent friction; None: loads are one.
    """
    kind = TreeRows if directions.N is not None else MovingRows
    return kind(mechanism, parameters, directions, motion, load_parameters)


MODELS: Registry[Model] = Registry(
    "dynid.models",
    {
        "inverse": Model("inverse", "one equation per degree of freedom", inverse_directions, rows_of),
        "power": Model(
            "power", "one equation per sample, unaffected by internal tension", power_directions, rows_of
        ),
        "energy": Model(
            "energy", "power over windows, no acceleration", energy_directions, EnergyRows, case="energy"
        ),
        "internal": Model(
            "internal",
            "free motion on locked cables, no effort; parameters per unit mass",
            internal_directions,
            InternalRows,
            internal_structure,
            case="free_motion",
        ),
        "wrench": Model(
            "wrench",
            "six equations per body, from tables of body motion and joint wrenches",
            wrench_directions,
            WrenchRows,
            wrench_structure,
            case="wrench_table",
        ),
    },
    gives=("dynid.projection.model:Model",),
)


SENSOR = Model(
    "wrench",
    "six equations per sample, for the load on a force sensor",
    sensor_directions,
    SensorRows,
    sensor_structure,
    case="force_sensor",
)


def model_for(mechanism: Mechanism, name: str | None = None, file: str | None = None) -> Model:
    """The model of that name (None: the robot's own), or the one of the robot's force sensor."""
    if mechanism.force_sensor is not None:
        return SENSOR
    return model_named(name or mechanism.model, file)


def model_named(name: str, file: str | None = None) -> Model:
    """The registered model, or an error with the valid names."""
    if name not in MODELS:
        raise InputError(f"unknown model '{name}'", file=file, remedy=f"use one of {', '.join(MODELS)}")
    return MODELS[name]
