"""Tree coordinates from the measured ones: order, couplings, quaternions, units of their steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice
from dynid.kinematics.tree import tree_rates
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Mechanism

_STEP = 1000.0  # m, mm, um: within one of them robots differ by less than this


Measured = tuple[Float[Array, "n w"], Float[Array, "n w"], Float[Array, "n w"]]


@dataclass(frozen=True, eq=False)
class States:
    """Motion of all tree coordinates at consecutive samples.

    Attributes:
        q, dq, ddq: Positions (n, n_q), velocities and accelerations (n, v).
        N: A basis of the tangent space, shape (n, v, d).
        fine: Whether the pose is closed and regular, shape (n,).
        condition: See `Rates`, shape (n,); None for a tree.
        gaps: Largest closure error, shape (n,), in [m] or [rad]; None for a tree.
    """

    q: Float[Array, "n q"]
    dq: Float[Array, "n v"]
    ddq: Float[Array, "n v"]
    N: Float[Array, "n v d"]
    fine: Bool[Array, "n"]
    condition: Float[Array, "n"] | None = None
    gaps: Float[Array, "n"] | None = None


@dataclass(frozen=True, eq=False)
class CoordinateMap:
    """The kinematics of a tree: its positions are `positions @ q_measured + offset`; velocities likewise.

    Attributes:
        positions: Shape (n_q, m); a coupled joint's row contains its ratios.
        offset: Shape (n_q,), in [rad, m].
        velocities: G with dq = G u, u the independent velocities, shape (n_v, n_u).
        independent: Names of the independent velocity coordinates.
        notices, choices: None for a tree; closed robots have some.
    """

    mechanism: Mechanism
    positions: Float[Array, "q m"]
    offset: Float[Array, "q"]
    velocities: Float[Array, "v u"]
    independent: tuple[str, ...]
    notices: tuple[Notice, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)

    def states(self, start: int, measured: Measured) -> States:
        """All coordinates from the measured ones of samples start, start + 1, ..."""
        n = len(measured[0])
        basis = np.broadcast_to(self.velocities, (n, *self.velocities.shape))
        return States(*self.tree_states(*measured), basis, np.ones(n, dtype=bool))

    def tree_states(
        self, q: Float[Array, "n m"], dq: Float[Array, "n m"], ddq: Float[Array, "n m"]
    ) -> tuple[Float[Array, "n q"], Float[Array, "n v"], Float[Array, "n v"]]:
        """Tree positions, velocities and accelerations of measured positions and derivatives."""
        G = self.positions.T
        return tree_rates(self.mechanism, q @ G + self.offset, dq @ G, ddq @ G)


def coordinate_map(mechanism: Mechanism, measured: Sequence[str] | None = None) -> CoordinateMap:
    """How every tree coordinate follows from the measured positions.

    Args:
        measured: Position names in the order of the log's columns; default those of
            `mechanism.measured`.
    """
    if mechanism.is_closed:
        raise InputError(
            f"robot '{mechanism.name}' has closed loops: its coordinates depend on the loops, not only"
            " on couplings",
            file=mechanism.file,
            remedy="use the assembly of the robot, or remove 'loops:' to work on the open tree",
        )
    if measured is None:
        measured = mechanism.measured_positions
    full, offset = _expand(mechanism, mechanism.positions)
    columns = [name for name in mechanism.positions if not _is_coupled(mechanism, name)]
    for name in columns:
        if name not in measured:
            raise InputError(
                f"coordinate '{name}' is neither measured nor coupled to a measured one",
                file=mechanism.file,
                place=f"robot '{mechanism.name}'",
                remedy="measure it (add it to `measured` and to the log), or declare a coupling",
            )
    pick = np.zeros((len(columns), len(measured)))
    for i, name in enumerate(columns):
        pick[i, list(measured).index(name)] = 1.0
    velocities, _ = _expand(mechanism, mechanism.coordinates)
    independent = tuple(name for name in mechanism.coordinates if not _is_coupled(mechanism, name))
    return CoordinateMap(mechanism, full @ pick, offset, velocities, independent)


def _is_coupled(mechanism: Mechanism, coordinate: str) -> bool:
    return any(coupling.joint == coordinate for coupling in mechanism.couplings)


def _expand(mechanism: Mechanism, names: Sequence[str]) -> tuple[Float[Array, "c u"], Float[Array, "c"]]:
    """Every coordinate of `names` by the uncoupled ones among them, chains of couplings resolved."""
    index = {name: i for i, name in enumerate(names)}
    direct, offset = np.zeros((len(names), len(names))), np.zeros(len(names))
    free = [name for name in names if not _is_coupled(mechanism, name)]
    for coupling in mechanism.couplings:
        if coupling.joint not in index:
            raise InputError(
                f"coupling of unknown coordinate '{coupling.joint}'" + nearest(coupling.joint, names),
                file=mechanism.file,
            )
        offset[index[coupling.joint]] = coupling.offset
        for other, ratio in coupling.of.items():
            if other not in index:
                raise InputError(
                    f"'{coupling.joint}' is coupled to unknown coordinate '{other}'" + nearest(other, names),
                    file=mechanism.file,
                )
            direct[index[coupling.joint], index[other]] = ratio
    # q = direct q + select u + offset; without cycles `direct` is nilpotent.
    select = np.zeros((len(names), len(free)))
    for column, name in enumerate(free):
        select[index[name], column] = 1.0
    power = direct
    for _ in mechanism.couplings:
        power = power @ direct
    if np.any(power):
        raise InputError(
            "couplings form a cycle: " + ", ".join(c.joint for c in mechanism.couplings),
            file=mechanism.file,
            remedy="define every coupled joint by measured joints",
        )
    solve = np.linalg.inv(np.eye(len(names)) - direct) if mechanism.couplings else np.eye(len(names))
    return solve @ select, solve @ offset


def coordinate_units(mechanism: Mechanism) -> Float[Array, "v"]:
    """Unit step of each velocity coordinate: 1 rad, and 1 m in the description's own unit."""
    unit = _length_unit(mechanism)
    units = np.ones(len(mechanism.coordinates))
    at = 0
    for joint in mechanism.joints:
        lengths = {JointKind.PRISMATIC: 1, JointKind.FREE: 3}.get(joint.kind, 0)
        units[at : at + lengths] = unit
        at += len(joint.coordinates)
    return units


def _length_unit(mechanism: Mechanism) -> float:
    """A power of 1000: 1 between 3 cm and 30 m of the largest length."""
    frames = [frame for joint in mechanism.joints for frame in (joint.placement, joint.body)]
    frames += [frame for loop in mechanism.loops for frame in (loop.a, loop.b)]
    lengths = [math.hypot(*frame.p) for frame in frames]
    lengths += [math.hypot(*x) for cable in mechanism.cables for x in (cable.D, cable.A)]
    lengths += [loop.length for loop in mechanism.loops if loop.length is not None]
    largest = max(lengths, default=0.0)
    if not largest > 0.0:
        return 1.0
    return float(_STEP ** np.round(np.log(largest) / np.log(_STEP)))
