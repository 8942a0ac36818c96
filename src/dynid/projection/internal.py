"""Model `internal`: free motion with locked cables, without efforts, N = null space of the cables.

    B^T W_tree chi = 0,      Xi B = 0                      [CableRobot, eqs 20, 21]

Homogeneous: a common factor of all parameters stays unknown, so they are identified per unit mass. With
`nullspace: orthonormal` B is the orthonormal basis nearest to one reference per run, with
`nullspace: free` it is dq / d zeta_f of chosen free coordinates.

Rows without efforts: one mass replaces the measured side.

    W chi = 0      ->      W_rest (chi_rest / m)  +  W_known (1 / m)  =  -W_m        [CableRobot, eqs 21, 22]

The negative column of the reference mass m becomes the measured side. Payloads with values known in
kilograms are combined in one column: its parameter is 1/m, which gives the scale of all parameters
(the general form of eqs 23 and 24).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.batched import pinv
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.jacobian import drawn_along
from dynid.kinematics.locked_motion import AUTO, LockedMotion, locked_motion_of
from dynid.kinematics.sensors import sensors_of
from dynid.mechanism.cable import cable_coordinates
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, effort_unit
from dynid.projection.factor import Factor, factor_rows, merge
from dynid.projection.kinematics import ClosedKinematics
from dynid.projection.model import Model, RowSource, predicted
from dynid.projection.pose_rows import TURNED, MovingRows, turned_notices
from dynid.projection.projection import Directions
from dynid.regressor.layout import ABSENT, Layout
from dynid.regressor.regressor import tree_matrix

_SEED = 20130501
_STATES = 120
# A free coordinate that moves less than a tenth of a unit motion multiplies its noise by ten.
_NEARLY_SINGULAR = 10.0


def internal_directions(mechanism: Mechanism) -> Directions:
    """Rows of the free motion; only motors of joints act in them, cables do no work."""
    motion = locked_motion_of(mechanism)
    reference = motion.reference(motion.samples)[0]
    names, units = _rows(mechanism, motion)
    cables = cable_coordinates(mechanism)
    felt = [float(not set(actuator.on) <= cables) for actuator in mechanism.actuators]

    def moving(N: Float[Array, "n v d"], dq: Float[Array, "n v"]) -> Float[Array, "n v k"]:
        B = motion.basis(N)
        if mechanism.nullspace == "free":
            return motion.along(B, motion.free_indices(mechanism.free or AUTO, motion.samples))
        return motion.aligned(B, reference)

    return Directions(names, units, None, np.tile(felt, (len(names), 1)), moving)


def _rows(mechanism: Mechanism, motion: LockedMotion) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if mechanism.nullspace != "free":
        return tuple(f"free{k + 1}" for k in range(motion.count)), ("N, N m",) * motion.count
    chosen = motion.free_indices(mechanism.free or AUTO, motion.samples)
    names = tuple(mechanism.coordinates[i] for i in chosen)
    return names, tuple(effort_unit(mechanism, name) for name in names)


def is_homogeneous(directions: Directions) -> bool:
    """Whether no effort acts in any row: then the parameters have no scale."""
    return not np.any(directions.effort_map)


class InternalRows(MovingRows):
    """Equations B(q)^T W chi = 0 along one log; every run has a reference of its own."""

    def _prepare(self) -> None:
        super()._prepare()
        mechanism = self.mechanism
        self._free_motion = locked_motion_of(mechanism)
        self._by_free = mechanism.nullspace == "free"
        self._free = self._free_motion.free_indices(mechanism.free or AUTO, self._free_motion.samples)
        names = _rows(mechanism, self._free_motion)[0]
        self._picked = [names.index(name) for name in self.directions.names]
        self._starts, self._references = self._run_references()
        self.choices |= {"free motion": self._words(mechanism)}

    def align_to(self, other: Any) -> None:
        """Take the directions of rows along nearly the same motion: its noise must not rotate them."""
        if isinstance(other, InternalRows):
            self._starts, self._references, self._free = other._starts, other._references, other._free
            if isinstance(self.kinematics, ClosedKinematics) and isinstance(
                other.kinematics, ClosedKinematics
            ):
                self.kinematics.excluded = other.kinematics.excluded

    def tangents(
        self, start: int, N: Float[Array, "n v d"], dq: Float[Array, "n v"]
    ) -> Float[Array, "n v k"]:
        """Directions of the rows at samples of one run, at or after `start`."""
        B = self._free_motion.basis(N)
        if self._by_free:
            return self._free_motion.along(B, self._free)[:, :, self._picked]
        run = int(np.searchsorted(self._starts, start, side="right")) - 1
        return self._free_motion.aligned(B, self._references[max(run, 0)])[:, :, self._picked]

    def _run_references(self) -> tuple[list[int], list[Float[Array, "v k"]]]:
        """Where the runs begin and the reference of each; doubtful choices give notices."""
        free = self._free_motion
        if not isinstance(self.kinematics, ClosedKinematics):
            raise TypeError("a robot with cables is closed")
        excluded = self._exclude(self.kinematics, self._solved_from(self.mechanism))
        tangents = self._kept(self.kinematics)
        bases = free.basis(tangents) if len(tangents) else free.samples
        runs = self.run_tangents()
        chosen = [free.reference(free.basis(N)) for _, N in runs]
        turned = sum(close < TURNED for _, close in chosen)
        self.notices = (*self.kinematics.notices, *excluded, *self._doubts(self.mechanism, bases, turned))
        references = [reference for reference, _ in chosen]
        return [low for low, _ in runs], references or [free.reference(bases)[0]]

    def _solved_from(self, mechanism: Mechanism) -> list[int]:
        """Velocity indices of the measured coordinates from which the pose is solved."""
        measured = sensors_of(mechanism, self.motion.log.position_names).velocity.tolist()
        return [i for i in measured if i not in self._free_motion.cables]

    def _exclude(self, kinematics: ClosedKinematics, solved_from: Sequence[int]) -> list[Notice]:
        """Exclude runs in which the pose cannot be solved: beyond a dead point two branches fit."""
        log, runs = self.motion.log, self.pieces()
        lost = [
            run
            for run, (a, b) in enumerate(runs)
            if np.any((kinematics.doubtful_at >= log.t[a]) & (kinematics.doubtful_at <= log.t[b - 1]))
        ]
        if not lost:
            return []
        names = ", ".join(self._free_motion.mechanism.coordinates[i] for i in solved_from)
        shown = ", ".join(str(run + 1) for run in lost)
        count = f"{len(lost)} of {len(runs)}"
        remark = notice("free-singular", "excluded", names=names, runs=shown, log=log.name, count=count)
        if len(lost) == len(runs):
            raise InputError(remark.text, file=log.file, remedy=remark.remedy)
        kinematics.exclude([runs[run] for run in lost], log)
        return [remark]

    def _kept(self, kinematics: ClosedKinematics) -> Float[Array, "s v d"]:
        """Tangent directions at poses of runs that are used."""
        out = np.zeros(len(kinematics.tangents), dtype=bool)
        for low, high in kinematics.excluded:
            out |= ((kinematics.anchors >= low) & (kinematics.anchors < high))[: len(out)]
        return np.asarray(kinematics.tangents[~out])

    def _doubts(self, mechanism: Mechanism, bases: Float[Array, "n v k"], turned: int) -> list[Notice]:
        notices = list[Notice]()
        # A completely measured pose determines any motion.
        poor = self._singular(bases, self._solved_from(mechanism), "noise and errors of the lengths grow")
        notices += [notice("free-singular", what=cause) for cause in poor]
        poor = self._singular(bases, self._free, "noise grows") if self._by_free else []
        best = ", ".join(mechanism.coordinates[i] for i in self._free_motion.free_indices(AUTO, bases))
        notices += [notice("free-singular", "velocity", what=cause, best=best) for cause in poor]
        return [*notices, *(() if self._by_free else turned_notices(self.motion.log.name, turned))]

    def _singular(self, bases: Float[Array, "n v k"], by: Sequence[int], grows: str) -> list[str]:
        """Texts about coordinates that hardly move with the free motion; empty if there are none."""
        worst = float(self._free_motion.conditions(bases, by).max())
        if worst <= _NEARLY_SINGULAR:
            return []
        names = ", ".join(self._free_motion.mechanism.coordinates[i] for i in by)
        text = f"{names}, nearly singular in log '{self.motion.log.name}': a unit motion moves them by"
        return [f"{text} only {1.0 / worst:.2g}, and their {grows} by a factor of {worst:.2g}"]

    def _words(self, mechanism: Mechanism) -> str:
        if not self._by_free:
            return f"orthonormal null space of the cables, {self._free_motion.count} equations per sample"
        return "by free coordinates " + ", ".join(mechanism.coordinates[i] for i in self._free)


def internal_structure(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    directions: Directions | None,
    *,
    loads: Sequence[tuple[str, ...]] = ((),),
    stretch: float = 1.0,
    rows_per_column: float = 4.0,  # not used: few states are drawn anyway
    seed: int = _SEED,
) -> Factor:
    """Factor of rows at random poses with locked cables; Y is zero.

    Rates and accelerations are drawn along the free motion, as if other forces than gravity moved the
    platform: parameters not identifiable from such motion are not identifiable from any free motion.
    """
    rng = np.random.default_rng(seed)
    motion, assembly = locked_motion_of(mechanism), assembly_of(mechanism)
    n = max(_STATES, -(-4 * len(parameters) // motion.count))
    factors = []
    for mounted in dict.fromkeys(loads):
        q = assembly.walk(rng, n, reach=0.3 * stretch)
        dq, ddq, B = locked_rates(motion, q, rng)
        W = tree_matrix(mechanism, q, dq, ddq, mounted=mounted)
        rows = np.einsum("nvk,nvp->nkp", B, W).reshape(-1, len(parameters))
        factors.append(factor_rows(rows, np.zeros(len(rows))))
    return merge(factors)


def locked_rates(
    motion: LockedMotion, q: Float[Array, "n q"], rng: np.random.Generator
) -> tuple[Float[Array, "n v"], Float[Array, "n v"], Float[Array, "n v k"]]:
    """Random velocities and accelerations at poses while the cables are locked, and B."""
    closure = motion.assembly.closure
    A = closure.values(q).A
    still = np.zeros((len(q), len(motion.cables), A.shape[2]))
    still[:, range(len(motion.cables)), motion.cables] = 1.0
    B = motion.basis(motion.assembly.tangent(A))
    dq = drawn_along(B, B[:, motion.carrying], rng)
    gamma = np.concatenate([closure.bias(q, dq), np.zeros((len(q), len(motion.cables)))], axis=1)
    drift = -np.einsum("nvc,nc->nv", pinv(np.concatenate([A, still], axis=1)), gamma)
    return dq, drift + 3.0 * drawn_along(B, B[:, motion.carrying], rng), B


INTERNAL = Model(
    "internal",
    "free motion on locked cables, no effort; parameters per unit mass",
    internal_directions,
    InternalRows,
    internal_structure,
    case="free_motion",
)


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

    def reframed(self, mechanism: Mechanism) -> NormalisedRows | None:
        """None: the poses change with dimensions."""
        return None

    def under(self, mechanism: Mechanism) -> NormalisedRows:
        """The same rows of a robot that differs only in gravity."""
        return NormalisedRows(self.source.under(mechanism), self.reference)

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Those of the source."""
        return self.source.pieces()

    def predicted(
        self, start: int, stop: int, chi: Float[Array, "p"]
    ) -> tuple[Float[Array, "k n"], Float[Array, "k n"]]:
        """W chi and row weights of samples start .. stop."""
        return predicted(self, start, stop, chi)

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
