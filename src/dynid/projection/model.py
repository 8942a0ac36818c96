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
from dynid.mechanism.mechanism import MODEL_NAMES, Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.motion.motion import Motion
from dynid.projection.constant_rows import TreeRows
from dynid.projection.energy import EnergyRows, energy_directions
from dynid.projection.factor import Factor
from dynid.projection.internal import InternalRows, internal_directions, internal_structure
from dynid.projection.inverse import inverse_directions
from dynid.projection.log_rows import LogRows
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

    def under(self, mechanism: Mechanism) -> RowSource:
        """The same rows of a robot that differs only in gravity."""


@dataclass(frozen=True)
class Model:
    """One identification model.

    Attributes:
        directions: All rows the model has for a mechanism.
        rows: The chosen rows along a motion, from mechanism, parameters, directions and motion;
            `load_parameters` predict loads; those of a windowed model also take `integration`.
        structure: The factor of the chosen rows at random feasible states.
        case: What the model needs beyond the plain flow, by its name in `CASES`; empty: nothing.
        key: Its name in files and results.
        effort_rows: Whether the measured side of a row is a logged effort, or a sum of some.
    """

    name: str
    title: str
    directions: Callable[[Mechanism], Directions]
    rows: Callable[..., LogRows]
    structure: Callable[..., Factor] = structural_factor
    case: str = ""
    key: str = ""
    effort_rows: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.key or self.name)


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


MODELS: dict[str, Model] = {
    "inverse": Model(
        "inverse", "one equation per degree of freedom", inverse_directions, rows_of, effort_rows=True
    ),
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
        effort_rows=True,
    ),
    # Chosen by a force sensor, not by name: its file key is that of wrenches.
    "force_sensor": Model(
        "force_sensor",
        "six equations per sample, for the load on a force sensor",
        sensor_directions,
        SensorRows,
        sensor_structure,
        case="force_sensor",
        key="wrench",
        effort_rows=True,
    ),
}


def model_for(mechanism: Mechanism, name: str | None = None, file: str | None = None) -> Model:
    """The model of that name (None: the robot's own), or the one of the robot's force sensor."""
    if mechanism.force_sensor is not None:
        return MODELS["force_sensor"]
    return model_named(name or mechanism.model, file)


def model_named(name: str, file: str | None = None) -> Model:
    """The registered model, or an error with the valid names."""
    if name not in MODEL_NAMES:
        raise InputError(f"unknown model '{name}'", file=file, remedy=f"use one of {', '.join(MODEL_NAMES)}")
    return MODELS[name]
