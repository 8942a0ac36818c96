"""Rows without efforts: one mass replaces the measured side.

    W chi = 0      ->      W_rest (chi_rest / m)  +  W_known (1 / m)  =  -W_m        [CableRobot, eqs 21, 22]

The negative column of the reference mass m becomes the measured side. Payloads with values known in
kilograms are combined in one column: its parameter is 1/m, which gives the scale of all parameters
(the general form of eqs 23 and 24).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dynid.common.arrays import Array, Int
from dynid.mechanism.mechanism import Mechanism
from dynid.projection.contract import RowSource
from dynid.projection.projection import Directions
from dynid.regressor.layout import ABSENT, Layout


@dataclass(frozen=True)
class Joined:
    """A parameter that acts only together with the reference mass.

    Attributes:
        name: Of the parameter; it is set to zero.
        shares: Standard name -> what one unit of it adds there, the reference mass among them.
    """

    name: str
    shares: Mapping[str, float]


@dataclass(frozen=True)
class Reference:
    """The mass that is set to one, and the values known in kilograms.

    Attributes:
        body: Whose mass it is.
        column: Of that mass among the standard parameters.
        mass: Its value in [kg] where the description gives it; 1 otherwise.
        given: Whether the description gives it: parameters are then no longer per unit mass.
        scale: Column of the parameter 1 / mass; None where nothing known in kilograms is mounted.
        loads: Column of a payload's parameter -> its known value, SI, all payloads together.
        joined: Parameters that act only together with the mass, e.g. a mass on a hinge.
    """

    body: str
    column: int
    mass: float = 1.0
    given: bool = False
    scale: int | None = None
    loads: Mapping[int, float] = field(default_factory=dict)
    joined: tuple[Joined, ...] = ()


def per_mass_rows(directions: Directions, reference: Reference | None) -> Directions:
    """The rows with their units divided by the reference mass."""
    if reference is None or reference.given:
        return directions
    return replace(directions, units=tuple(f"{unit} per kg" for unit in directions.units))


class NormalisedRows:
    """Rows of a source with the reference mass on the measured side (a `RowSource`).

    Args:
        source: Rows whose measured side is zero.
        reference: The mass that moves there, and joined parameters.
    """

    def __init__(self, source: RowSource, reference: Reference) -> None:
        self.source, self.reference = source, reference
        self.directions, self.motion, self.dt = source.directions, source.motion, source.dt
        self.notices, self.choices = source.notices, source.choices
        inner = source.layout
        columns: list[int] = []
        starts = [0]
        self._kept: list[Int[Array, "u"]] = []
        for start, stop in zip(inner.start[:-1], inner.start[1:], strict=True):
            entries = np.arange(start, stop - 1)
            named = inner.columns[entries]
            joined = {reference.column, *reference.loads, ABSENT}
            kept = entries[[int(column) not in joined for column in named]]
            self._kept.append(kept)
            scale = [] if reference.scale is None else [reference.scale]
            columns += [*inner.columns[kept].tolist(), *scale, ABSENT]
            starts.append(len(columns))
        self.layout = Layout(np.array(starts, dtype=np.int64), np.array(columns, dtype=np.int64))
        self._masses = _weights(inner, {reference.column: reference.mass})
        self._loads = _weights(inner, reference.loads)

    def under(self, mechanism: Mechanism) -> NormalisedRows:
        """The same rows of a robot that differs only in gravity."""
        return NormalisedRows(self.source.under(mechanism), self.reference)

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Those of the source."""
        return self.source.pieces()

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries with the mass column, negative, as the measured side."""
        inner = self.source.layout
        ends = inner.start[1:] - 1
        for at, packed, weights in self.source.rows(start, stop, tile):
            out = np.empty((self.layout.n_entries, packed.shape[1]))
            mass = inner.sums(packed, self._masses)
            loads = inner.sums(packed, self._loads)
            for k, kept in enumerate(self._kept):
                first, last = int(self.layout.start[k]), int(self.layout.start[k + 1]) - 1
                out[first : first + len(kept)] = packed[kept]
                if self.reference.scale is not None:
                    out[last - 1] = loads[k]
                out[last] = packed[ends[k]] - mass[k]
            yield at, out, weights


def _weights(layout: Layout, values: Mapping[int, float]) -> Array:
    """Coefficient of each entry of a layout in a sum of some columns."""
    return np.array([values.get(int(column), 0.0) for column in layout.columns])
