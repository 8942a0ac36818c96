"""Structural identifiability: the factor of a model's rows at random feasible states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.kinematics.assembly import Assembly, assembly_of
from dynid.kinematics.coordinates import CoordinateMap, coordinate_map
from dynid.mechanism.drive_terms import LOADED
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, owners_of, source_loads
from dynid.projection.factor import Factor, factor_rows, merge
from dynid.projection.projection import Directions
from dynid.regressor.few_states import few_states_matrix
from dynid.regressor.regressor import tree_matrix

_SEED = 20130501
# Rows per column: two are enough for the rank; more raise the weakest columns above the noise.
ROWS_PER_COLUMN = 4.0
_FEWEST_STATES = 40  # so that small robots are seen in all kinds of states
# q, dq, ddq and N, as of `Assembly.random_rates`.
_States = tuple[Float[Array, "n q"], Float[Array, "n v"], Float[Array, "n v"], Float[Array, "n v d"]]
_DRAWN: WeakKeyDictionary[Assembly, dict[tuple[int, int, float, int], list[_States]]] = WeakKeyDictionary()
_ROUNDING = 1e-14  # of the largest entry: a column of that size is zero by design


def structural_factor(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    directions: Directions | None,
    *,
    loads: Sequence[tuple[str, ...]] = ((),),
    stretch: float = 1.0,
    rows_per_column: float = ROWS_PER_COLUMN,
    seed: int = _SEED,
) -> Factor:
    """Factor of rows at random states that couplings and loops allow; Y is zero.

    Args:
        directions: Rows; where they change with the pose, or for None, all tangent directions:
            under generic motion every model has the rank of these.
        loads: Payloads mounted in each kind of run: only runs with and without a payload separate it
        from its carrier.
        stretch: Range of the states: 1 is +-pi rad, +-1 m, and unit standard deviations per second and per
        second squared times three.
    """
    if mechanism.is_closed:
        return _closed_factor(mechanism, parameters, loads, stretch, seed, rows_per_column)
    rng = np.random.default_rng(seed)
    coordinates = coordinate_map(mechanism)
    N = coordinates.velocities if directions is None or directions.N is None else directions.N
    k = N.shape[1]
    fewest = _FEWEST_STATES if rows_per_column >= ROWS_PER_COLUMN else 1
    n = max(fewest, math.ceil(rows_per_column * len(parameters) / max(k, 1)))
    factors = []
    for mounted in dict.fromkeys(loads):
        states = random_states(coordinates, rng, n, stretch)
        W = few_states_matrix(mechanism, parameters, states, mounted, _random_loads(mechanism, n, seed))
        rows = (W if np.array_equal(N, np.eye(len(N))) else N.T @ W).reshape(-1, len(parameters))
        factors.append(factor_rows(rows, np.zeros(len(rows))))
    return merge(factors)


def _closed_factor(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    loads: Sequence[tuple[str, ...]],
    stretch: float,
    seed: int,
    rows_per_column: float,
) -> Factor:
    """Rows N^T W at poses that the loops allow, N orthonormal: no choice of coordinates is needed."""
    assembly = assembly_of(mechanism)
    # Poses cost more than rows here, and twice as many rows as columns are enough for the rank.
    n = math.ceil(min(rows_per_column, 2.0) * len(parameters) / assembly.dof)
    n = max(_FEWEST_STATES, n) if rows_per_column >= ROWS_PER_COLUMN else n
    mounts = tuple(dict.fromkeys(loads))
    factors = []
    drawn = _drawn(assembly, (seed, n, stretch, len(mounts)))
    for mounted, (q, dq, ddq, N) in zip(mounts, drawn, strict=True):
        W = tree_matrix(mechanism, q, dq, ddq, mounted=mounted, load=_random_loads(mechanism, n, seed))
        # Rounding of dimensions changes velocities by 1/margin, accelerations by its square: near singular
        # poses it would look like geometry. Weights of rows change no dependence between columns.
        margin = assembly.margin(q)
        weight = (margin / margin.max()) ** 2
        rows = (np.swapaxes(weight[:, None, None] * N, 1, 2) @ W).reshape(-1, len(parameters))
        size = np.abs(rows).max(axis=0)
        rows[:, size < _ROUNDING * size.max()] = 0.0
        factors.append(factor_rows(rows, np.zeros(len(rows))))
    return merge(factors)


def _drawn(assembly: Assembly, how: tuple[int, int, float, int]) -> list[_States]:
    """Feasible random states by seed, their number, range and number of draws; each is drawn once.

    Those of a robot with other dimensions begin at those of the nominal one.
    """
    known = _DRAWN.setdefault(assembly, {})
    if how not in known:
        seed, n, stretch, draws = how
        rng = np.random.default_rng(seed)
        near = [None] * draws if assembly.near is None else [draw[0] for draw in _drawn(assembly.near, how)]
        poses = (assembly.poses(rng, n, q, stretch) for q in near)
        known[how] = [(q, *assembly.random_rates(q, rng)) for q in poses]
    return known[how]


def _random_loads(mechanism: Mechanism, n: int, seed: int) -> Float[Array, "n s"] | None:
    """Sizes of efforts for load-dependent friction: any motion may have any load.

    Drawn separately from the states, so that those are the same for all drive terms.
    """
    if not owners_of(mechanism, *LOADED):
        return None
    return source_loads(mechanism, np.random.default_rng(seed + 1).normal(size=(n, len(mechanism.actuators))))


def random_states(
    coordinates: CoordinateMap, rng: np.random.Generator, n: int, stretch: float = 1.0
) -> tuple[Float[Array, "n q"], Float[Array, "n v"], Float[Array, "n v"]]:
    """Tree states drawn over the independent coordinates; quaternions cover all attitudes."""
    robot = coordinates.mechanism
    q = np.empty((n, len(robot.positions)))
    at = 0
    for joint in robot.joints:
        stop = at + len(joint.positions)
        q[:, at:stop] = rng.uniform(-1.0, 1.0, (n, stop - at)) * stretch
        if joint.has_quaternion:
            q[:, stop - 4 : stop] = rng.normal(size=(n, 4))
            q[:, stop - 4 : stop] /= np.linalg.norm(q[:, stop - 4 : stop], axis=1, keepdims=True)
        elif joint.positions and joint.is_angle(joint.coordinates[0]):
            q[:, at:stop] *= np.pi
        at = stop
    positions = coordinates.positions
    if robot.couplings:
        # Dependent joints follow: take the drawn values of the measured ones and expand.
        picked = np.argmax(np.abs(positions), axis=0)
        q = q[:, picked] @ positions.T + coordinates.offset
    u = rng.normal(size=(2, n, len(coordinates.independent)))
    dq, ddq = u[0] @ coordinates.velocities.T, 3.0 * u[1] @ coordinates.velocities.T
    return q, dq * stretch, ddq * stretch
