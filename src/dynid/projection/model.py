"""Identification models: the contract of a model, and the registry.

To add a model, write one file that ends in its `Model`, and a line in `MODELS`; everything after `System`
stays unchanged. A model is loaded when it is used.

A model is a choice of tangent directions N and a way to compute the rows N^T W chi = N^T B tau: along a log,
and at random states for structural identifiability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.common.registry import Registry
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.projection.factor import Factor
from dynid.projection.projection import Directions
from dynid.regressor.layout import Layout

if TYPE_CHECKING:
    from dynid.motion.motion import Motion


MODELS: Registry[Model] = Registry(
    "dynid.models",
    {
        "inverse": "dynid.projection.inverse:INVERSE",
        "power": "dynid.projection.power:POWER",
        "energy": "dynid.projection.energy:ENERGY",
        "internal": "dynid.projection.internal:INTERNAL",
        "wrench": "dynid.projection.wrench:WRENCH",
        "force_sensor": "dynid.projection.sensor:FORCE_SENSOR",
    },
    gives=("dynid.projection.model:Model",),
)
# Models of what is mounted on a robot -> their name in files and results, which a plain model has too.
MOUNTED = {"force_sensor": "wrench"}


def model_names() -> tuple[str, ...]:
    """Valid names of models in files: own ones, then those of other packages."""
    return tuple(name for name in MODELS if name not in MOUNTED)


def model_for(mechanism: Mechanism, name: str | None = None, file: str | None = None) -> Model:
    """The model of that name (None: the robot's own), or the one of what is mounted on the robot."""
    if mechanism.mounted_model:
        return MODELS[mechanism.mounted_model]
    return model_named(name or mechanism.model, file)


def model_named(name: str, file: str | None = None) -> Model:
    """The registered model, or an error with the valid names."""
    if name in MOUNTED or name not in MODELS:
        raise InputError(
            f"unknown model '{name}'", file=file, remedy=f"use one of {', '.join(model_names())}"
        )
    return MODELS[name]


def effort_model() -> Model:
    """The model whose rows are single efforts: what other models find is compared with efforts by it."""
    return MODELS["inverse"]


def measured_by(key: str, rows: Sequence[str]) -> str:
    """What the rows of a result are compared with, in one word.

    Args:
        key: Of its model; models of what is mounted share it with others, and have rows of other names.
        rows: Names of its groups of rows.
    """
    mounted = [MODELS[name] for name, shared in MOUNTED.items() if shared == key]
    model = next((model for model in mounted if set(rows) & set(model.row_names)), None)
    if model is None and key in MODELS:
        model = MODELS[key]
    return "effort" if model is None else model.measures


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

    def predicted(
        self, start: int, stop: int, chi: Float[Array, "p"]
    ) -> tuple[Float[Array, "k n"], Float[Array, "k n"]]:
        """W chi and row weights of samples start .. stop."""

    def under(self, mechanism: Mechanism) -> RowSource:
        """The same rows of a robot that differs only in gravity."""

    def reframed(self, mechanism: Mechanism) -> RowSource | None:
        """The same rows of a robot with slightly other dimensions or zeros; None where that takes more."""


def predicted(
    source: PackedRows, start: int, stop: int, chi: Float[Array, "p"]
) -> tuple[Float[Array, "k n"], Float[Array, "k n"]]:
    """W chi and row weights of samples start .. stop, from the entries of W."""
    coefficients = source.layout.coefficients(chi)
    tiles = source.rows(start, stop, source.layout.tile)
    parts = [(source.layout.sums(packed, coefficients), weights) for _, packed, weights in tiles]
    W_chi, weights = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    return W_chi, weights


class LogRows:
    """Rows of one log by one model (a `RowSource`); a model prepares what it needs besides.

    Args:
        mechanism: The robot.
        parameters: Standard parameters, one per column.
        directions: Requested rows, with the efforts that act in them.
        motion: Filtered coordinates and efforts of the log.
        load_parameters: Standard parameters that predict the loads of load-dependent friction, or about which
            unknown angles of a sensor are linearised, shape (p,), SI; None: loads are one.
        options: Of the model, from `row_options` of its case.
    """

    layout: Layout

    def __init__(
        self,
        mechanism: Mechanism,
        parameters: Sequence[Parameter],
        directions: Directions,
        motion: Motion,
        load_parameters: Float[Array, "p"] | None = None,
        **options: Any,
    ) -> None:
        self.mechanism, self.parameters, self.directions = mechanism, tuple(parameters), directions
        self.motion, self.dt = motion, motion.log.dt
        self.load_parameters, self.options = load_parameters, options
        self.notices: tuple[Notice, ...] = ()
        self.choices: dict[str, str] = {}
        self._prepare()

    def _prepare(self) -> None:
        """What the rows need before the first is computed, the layout among it."""
        raise NotImplementedError

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Ranges of samples over which rows may be filtered."""
        return self.motion.usable()

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries (e, n) and row weights (k, n) of consecutive tiles of start .. stop."""
        raise NotImplementedError

    def predicted(
        self, start: int, stop: int, chi: Float[Array, "p"]
    ) -> tuple[Float[Array, "k n"], Float[Array, "k n"]]:
        """W chi and row weights of samples start .. stop."""
        return predicted(self, start, stop, chi)

    def with_known_efforts(self, start: int, weights: Float[Array, "n k"]) -> Float[Array, "n k"]:
        """Row weights from sample `start` on, without rows of motors whose effort is not known there."""
        motors = self.motion.motor_weights(start, start + len(weights))
        if motors is not None:
            for row, acts in enumerate(self.directions.effort_map != 0):
                weights[:, row] = np.minimum(weights[:, row], motors[:, acts].min(axis=1, initial=1.0))
        return weights

    def reframed(self, mechanism: Mechanism) -> RowSource | None:
        """The same rows of a robot with slightly other dimensions or zeros; None where that takes more."""
        return None

    def align_to(self, other: Any) -> None:
        """Take the directions of rows along nearly the same motion, where they are chosen by the motion."""

    def under(self, mechanism: Mechanism) -> LogRows:
        """The same rows of a robot that differs only in gravity."""
        return type(self)(
            mechanism, self.parameters, self.directions, self.motion, self.load_parameters, **self.options
        )


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
        row_names: All names that its rows may have, if they are the same for every robot.
        measures: What its rows are compared with, in one word: `effort`, `power`, `wrench`, `reading`.
        effort_rows: Whether the measured side of a row is a logged effort, or a sum of some.
        per_body: Whether every row is of one body alone, so that its mass is found for itself.
        per_sample: Whether a row is linear in the accelerations of one sample, so that it has parts: gravity,
            inertia, Coriolis, friction.
        promised_by: The model whose sigma is predicted for a motion that is not recorded yet.
    """

    name: str
    title: str
    directions: Callable[[Mechanism], Directions]
    rows: Callable[..., LogRows]
    structure: Callable[..., Factor]
    case: str = ""
    key: str = ""
    row_names: tuple[str, ...] = ()
    measures: str = "effort"
    effort_rows: bool = False
    per_body: bool = False
    per_sample: bool = False
    promised_by: str = "inverse"

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
    from dynid.projection.constant_rows import TreeRows  # without a log none of them is needed
    from dynid.projection.pose_rows import MovingRows

    kind = TreeRows if directions.N is not None else MovingRows
    return kind(mechanism, parameters, directions, motion, load_parameters)
