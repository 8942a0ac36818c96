"""Assembly: poses, tangent directions and rates of a mechanism with closures.

The rank of the closure Jacobian is a property of the mechanism: found once near the start pose, used at every
sample. Redundant equations (a planar loop closed in space) are removed once where the others imply them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.batched import singular_values
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.common.paged import in_parts
from dynid.kinematics.closure import Closure, moved
from dynid.kinematics.coordinates import coordinate_units
from dynid.kinematics.elimination import best_coordinates, eliminate
from dynid.kinematics.first_pose import CLOSED, damped, first_pose, singular_start, straightest
from dynid.kinematics.jacobian import (
    Split,
    drawn_along,
    independent_equations,
    least_squares,
    newton_step,
    rank_of,
    split,
)
from dynid.kinematics.sensors import Sensors, sensors_of
from dynid.kinematics.tracking import Rates, Tracker
from dynid.mechanism.mechanism import Mechanism

_SEED = 20131104
_MOST_STEP = 0.5
_STATES = 12
_BESIDE = (0.2, 0.5, 1.0)  # rad or m: distances from a singular start pose at which others are tried
_WALKED = 0.03  # of the start pose's distance to singular poses: minimum along a random walk
_CLEAR = 1e-4  # of the largest singular value: poses within 1e-4 rad of a singular one count as singular
LOST = 1e-9  # of |A| |dq|: where the fixed pivots leave a larger residual, QR is used
_PARTS = 24  # of the way from the start pose to another one
_TILE = 512  # poses whose Jacobians stay in the cache
Measured = Sensors | Int[Array, "m"]
# Robots that differ only in these share an assembly: poses do not depend on them.
_UNMOVED = {"gravity", "drive", "terms", "known", "prior", "ties", "payloads", "order", "stribeck"}
_UNMOVED |= {"notices", "rebuild"}
_MOTION = [item.name for item in fields(Mechanism) if item.name not in _UNMOVED]
_KEPT: dict[tuple[int, ...], Assembly] = {}  # by the identities of `_MOTION`, the last used at the end
_MOST_KEPT = 64  # an identification changes the dimensions of its robot some 25 times


@dataclass(frozen=True)
class Mobility:
    """Mobility under the closures: degrees of freedom, and redundant equations."""

    dof: int
    n_equations: int
    rank: int

    @property
    def n_redundant(self) -> int:
        """Closure equations beyond the rank: over-constraint."""
        return self.n_equations - self.rank


def assembly_of(mechanism: Mechanism, near: Mechanism | None = None) -> Assembly:
    """The assembly of a mechanism, computed once for all drive terms, known values and directions of gravity.

    Poses of `near`, the same robot with other dimensions, are a start for its poses.
    """
    # An assembly keeps these parts alive: no other object has their identities while it is here.
    parts = tuple(id(getattr(mechanism, name)) for name in _MOTION)
    assembled = _KEPT.pop(parts, None)
    if assembled is None:
        beside = assembly_of(near) if near is not None and near.is_closed else None
        assembled = Assembly(mechanism, beside)
        while len(_KEPT) >= _MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)), None)
    _KEPT[parts] = assembled
    return assembled


class Assembly:
    """A closed mechanism at its start pose, with methods to move it."""

    def __init__(self, mechanism: Mechanism, near: Assembly | None = None) -> None:
        self.mechanism, self.near = mechanism, near
        self.closure = Closure(mechanism)
        self.units = coordinate_units(mechanism)
        self.start = first_pose(mechanism, self.closure)
        self.kept = np.arange(self.closure.count)
        self.rank, self.notices = 0, tuple[Notice, ...]()
        alike = None if near is None else self._alike(near)
        states = self._explored(near) if alike is None else alike
        self._like = None if alike is None else near  # what is planned for it is valid here too
        self._walked: Float[Array, "k q"] = states
        self.kept = independent_equations(self.closure.values(states).A, self.rank)
        regular = self._regular(states)
        self.samples = states[regular] if regular.any() else states  # used to plan eliminations
        self._trackers: dict[tuple[float, ...], Tracker | None] = {}
        self.mobility = Mobility(self.closure.tree.n_v - self.rank, self.closure.count, self.rank)
        if self.mobility.dof == 0:
            raise InputError(
                f"the loops of robot '{mechanism.name}' leave no degree of freedom: {self.rank} independent"
                f" closure equations for {self.closure.tree.n_v} coordinates",
                file=mechanism.file,
                remedy="check kinds and frames of the loops; rounded dimensions can lock a planar loop",
            )

    @property
    def dof(self) -> int:
        """Degrees of freedom."""
        return self.mobility.dof

    def split(self, A: Float[Array, "n c v"]) -> Split:
        """A of a batch factorised; orthonormal and of minimum norm in the units of the coordinates."""
        parts = split(A * self.units, self.kept, self.rank)
        return replace(parts, N=self.units[:, None] * parts.N, outer=self.units[:, None] * parts.outer)

    def tangent(self, A: Float[Array, "n c v"]) -> Float[Array, "n v d"]:
        """Directions N with A N = 0, as many as degrees of freedom, orthonormal in the mechanism's units."""
        return self.split(A).N

    def close(
        self,
        q: Float[Array, "n q"],
        wanted: Float[Array, "n w"] | None = None,
        measured: Measured | None = None,
        iterations: int = 12,
    ) -> Float[Array, "n q"]:
        """Newton steps onto the closure, with measured coordinates as close as possible to their values.

        Args:
            q: Poses to begin with, all tree positions, shape (n, n_q).
            wanted: Positions of the measured coordinates; more than degrees of freedom: in least squares.
            measured: Which coordinates; None keeps the independent coordinates.
            iterations: Maximum number.
        """
        sensors = None if measured is None or wanted is None else self.sensors(measured)
        # With more sensors than degrees of freedom convergence is linear, otherwise quadratic.
        arrived = 1e-14 if sensors is not None and sensors.count > self.dof else 1e-9
        q, active = np.array(q), np.arange(len(q))
        for _ in range(iterations):
            values = self.closure.values(q[active])
            miss = None if sensors is None or wanted is None else sensors.miss(q[active], wanted[active])
            step = self._step(values.A, values.f, sensors, miss)
            size = np.linalg.norm(step / self.units, axis=1, keepdims=True)
            step = step * np.minimum(1.0, _MOST_STEP / np.maximum(size, 1e-300))
            q[active] = moved(self.mechanism, q[active], step)
            active = active[~(size[:, 0] < arrived)]
            if not len(active):
                break
        return q

    def _step(
        self, A: Float[Array, "n c v"], f: Float[Array, "n c"], sensors: Sensors | None, miss: Array | None
    ) -> Float[Array, "n v"]:
        """Newton steps onto the closure that change the measured coordinates by `miss`, or are shortest."""
        kept = self.kept
        if len(kept) == self.rank and (sensors is None or sensors.count == self.dof):
            return newton_step(A[:, kept], f[:, kept], self.units, sensors, miss)
        parts = self.split(A)
        step = -parts.step(f)
        if sensors is None or miss is None:
            return step
        along = least_squares(parts.N, miss - step[:, sensors.velocity], sensors)
        return np.asarray(step + np.einsum("nvd,nd->nv", parts.N, along))

    def sensors(self, measured: Measured) -> Sensors:
        """Sensors of scalar coordinates given by their velocity indices."""
        if isinstance(measured, Sensors):
            return measured
        places = {
            name: position
            for joint in self.mechanism.joints
            for name, position in zip(joint.coordinates, joint.positions, strict=False)
        }
        return sensors_of(self.mechanism, [places[self.mechanism.coordinates[i]] for i in measured])

    def follow(
        self,
        wanted: Float[Array, "n w"],
        measured: Measured,
        origin: Float[Array, "q"] | None = None,
    ) -> Float[Array, "n q"]:
        """Poses with given measured coordinates, on the branch of the start pose (or of `origin`).

        By homotopy: the measured coordinates move from the start pose to their values on straight lines.
        """
        sensors = self.sensors(measured)
        tracker = self.tracker(sensors)
        begin = self.start if origin is None else origin
        if tracker is None:
            return self._follow(wanted, sensors, begin)
        q, done = tracker.follow(begin, wanted)
        return self._repaired(q, done, wanted, sensors, begin)

    def track(self, wanted: Float[Array, "n w"], measured: Measured, threads: int = 1) -> Float[Array, "n q"]:
        """Poses along a continuous motion, on the branch of the start pose."""
        sensors = self.sensors(measured)
        tracker = self.tracker(sensors)
        if tracker is None:
            return self._follow(wanted, sensors)
        q, done = tracker.track(self.start, wanted, threads)
        return self._repaired(q, done, wanted, sensors)

    def tracker(self, sensors: Sensors) -> Tracker | None:
        """Compiled Newton for these sensors; None where no fixed elimination exists for them."""
        key = (*sensors.velocity.tolist(), *sensors.column.tolist(), *sensors.weight.tolist())
        if key not in self._trackers:
            self._trackers[key] = self._new_tracker(sensors)
        return self._trackers[key]

    def _new_tracker(self, sensors: Sensors) -> Tracker | None:
        if sensors.count < self.dof or self.dof == 0:
            return None
        like = None if self._like is None else self._like.tracker(sensors)
        tracker = self._planned(sensors, self.samples) if like is None else like.resized(self.closure)
        still = np.zeros((1, sensors.count))
        if tracker is not None and not np.isfinite(tracker.rates(self.start[None], still, still)[1]).all():
            # A pivot may vanish at the start pose, where angles are zero: it must be included.
            tracker = self._planned(sensors, np.vstack([self.samples, self.start]))
        return tracker

    def _planned(self, sensors: Sensors, poses: Float[Array, "n q"]) -> Tracker | None:
        A, independent = self.closure.values(poses).A, sensors.velocity.tolist()
        if sensors.count > self.dof:
            independent = best_coordinates(self.tangent(A), range(self.closure.tree.n_v))
        where = self.closure.tables[4]
        plan = eliminate(A, independent, (where[0], where[1]))
        return None if plan is None else Tracker(self.closure, plan, sensors)

    def _repaired(
        self,
        q: Float[Array, "n q"],
        done: Bool[Array, "n"],
        wanted: Float[Array, "n w"],
        sensors: Sensors,
        begin: Float[Array, "q"] | None = None,
    ) -> Float[Array, "n q"]:
        """Poses at which the compiled steps failed, by the homotopy that factorises at every pose."""
        missed = np.flatnonzero(~done)
        if len(missed):
            q[missed] = self._follow(wanted[missed], sensors, begin)
        return q

    def _follow(
        self,
        wanted: Float[Array, "n w"],
        sensors: Sensors,
        begin: Float[Array, "q"] | None = None,
    ) -> Float[Array, "n q"]:
        begin = self.start if begin is None else begin
        q = np.repeat(begin[None], len(wanted), axis=0)
        origin = sensors.read(begin[None])[0]
        for k in range(1, _PARTS + 1):
            part = sensors.between(origin, wanted, k / _PARTS)
            q = self.close(q, part, sensors, iterations=2 if k < _PARTS else 12)
        return sensors.wound(q, origin, wanted)

    def gaps(self, q: Float[Array, "n q"]) -> Float[Array, "n"]:
        """Largest closure residual of each pose, in [m] or [rad]."""
        residuals = in_parts(lambda part: self.closure.values(q[part]).f, len(q), _TILE)
        return np.concatenate([np.zeros(0), *(np.abs(f).max(axis=1, initial=0.0) for f in residuals)])

    def walk(
        self, rng: np.random.Generator, n: int, reach: float = 1.0, steps: int = 6
    ) -> Float[Array, "n q"]:
        """Poses by random steps along tangent directions from the start pose, closed to rounding.

        Steps that do not close again, or end near a singular pose, are undone: there rounding errors grow
        until they look like motion, and branches meet.
        """
        q = np.repeat(self.start[None], n, axis=0)
        for _ in range(steps):
            stride = reach / steps * 3.0 * self.drawn(self.tangent(self.closure.values(q).A), rng)
            tried = self.close(moved(self.mechanism, q, stride))
            q = np.where(self._usable(tried)[:, None], tried, q)
        return q

    def poses(
        self, rng: np.random.Generator, n: int, near: Float[Array, "n q"] | None, reach: float = 1.0
    ) -> Float[Array, "n q"]:
        """Feasible poses: those of a robot with other dimensions as far as they close, else by `walk`."""
        if near is None:
            return self.walk(rng, n, reach)
        tried = self.close(near)
        tried = tried[self._usable(tried)]
        more = n - len(tried)
        return np.concatenate([tried, self.walk(rng, more, reach)]) if more else tried

    def _usable(self, q: Float[Array, "n q"]) -> Bool[Array, "n"]:
        """Poses that are closed to rounding, and not near a singular one."""
        least = _WALKED * self.margin(self.start[None])[0]
        return np.asarray((self.gaps(q) < CLOSED) & (self.margin(q) > least))

    def rates(
        self,
        q: Float[Array, "n q"],
        rates: Float[Array, "n m"],
        second: Float[Array, "n m"],
        measured: Measured,
    ) -> Rates:
        """Velocities and accelerations of all coordinates from the measured ones, and N."""
        sensors = self.sensors(measured)
        tracker = self.tracker(sensors)
        if tracker is None:
            return self._rates(q, rates, second, sensors)
        dq, ddq, N, condition, left = tracker.rates(q, rates, second)
        missed = np.flatnonzero(~(left < LOST))
        if len(missed):
            again = self._rates(q[missed], rates[missed], second[missed], sensors)
            dq[missed], ddq[missed], N[missed] = again.dq, again.ddq, again.N
            condition[missed] = again.condition
        return Rates(dq, ddq, N, condition)

    def _rates(
        self,
        q: Float[Array, "n q"],
        rates: Float[Array, "n m"],
        second: Float[Array, "n m"],
        sensors: Sensors,
    ) -> Rates:
        parts = self.split(self.closure.values(q).A)
        N = parts.N
        dq = np.einsum("nvd,nd->nv", N, least_squares(N, rates, sensors))
        drift = -parts.step(self.closure.bias(q, dq))
        wanted = second - drift[:, sensors.velocity]
        ddq = drift + np.einsum("nvd,nd->nv", N, least_squares(N, wanted, sensors))
        s = singular_values(N[:, sensors.velocity])
        few = sensors.count < N.shape[2]
        condition = np.full(len(q), np.inf) if few else 1.0 / np.maximum(s[:, -1], 1e-300)
        return Rates(dq, ddq, N, condition)

    def random_rates(
        self, q: Float[Array, "n q"], rng: np.random.Generator
    ) -> tuple[Float[Array, "n v"], Float[Array, "n v"], Float[Array, "n v d"]]:
        """Feasible random velocities and accelerations at closed poses, and N."""
        parts = self.split(self.closure.values(q).A)
        dq = self.drawn(parts.N, rng)
        drift = -parts.step(self.closure.bias(q, dq))
        return dq, drift + 3.0 * self.drawn(parts.N, rng), parts.N

    def drawn(self, N: Float[Array, "n v d"], rng: np.random.Generator) -> Float[Array, "n v"]:
        """Random motion along tangent directions, of size one in the units of the coordinates."""
        return drawn_along(N, N / self.units[:, None], rng)

    def _near(self, q: Float[Array, "q"], size: float) -> Float[Array, "n q"]:
        rng = np.random.default_rng(_SEED)
        spread = size * rng.normal(size=(_STATES, self.closure.tree.n_v))
        tried = damped(
            self.closure, self.mechanism, moved(self.mechanism, np.repeat(q[None], _STATES, 0), spread)
        )
        fine = np.abs(self.closure.values(tried).f).max(axis=1, initial=0.0) < CLOSED
        return tried[fine] if fine.any() else q[None]

    def _alike(self, near: Assembly) -> Float[Array, "n q"] | None:
        """Poses beside those of a robot with other dimensions; None where the loops differ in rank there."""
        self.rank = near.rank
        if near.notices or near.closure.count != self.closure.count or not self._regular(self.start[None])[0]:
            return None
        tried = self.close(near._walked)
        return tried if self._usable(tried).all() and self._rank(tried) == near.rank else None

    def _explored(self, near: Assembly | None) -> Float[Array, "n q"]:
        """Generic poses, after the rank of the loops is found beside the start pose and at them."""
        self.rank = self._rank(self._near(self.start, 0.05))
        self.notices = self._leave_singular_start()
        states = self.poses(np.random.default_rng(_SEED), _STATES, None if near is None else near._walked)
        self.rank = max(self.rank, self._rank(states))
        return states

    def _leave_singular_start(self) -> tuple[Notice, ...]:
        """Start at a regular pose nearby where branches meet at the start pose, and report it."""
        if self.closure.count == 0 or self._regular(self.start[None])[0]:
            return ()
        near = np.concatenate([self._near(self.start, size) for size in _BESIDE])
        near = near[self._regular(near)]
        if not len(near):
            return ()
        start_rank = self._rank(self.start[None])
        self.start = straightest(self.closure, self.start, near, self.margin(near))
        return (singular_start(self.closure, self.start, start_rank, self.rank),)

    def _regular(self, q: Float[Array, "n q"]) -> Bool[Array, "n"]:
        """Whether A has its full rank at poses, and clearly so."""
        return np.asarray(self.margin(q) > _CLEAR)

    def margin(self, q: Float[Array, "n q"]) -> Float[Array, "n"]:
        """Smallest relevant singular value of A over the largest: zero at singular poses."""
        if self.rank == 0:
            return np.ones(len(q))
        s = singular_values(self.closure.values(q).A * self.units)
        return np.asarray(s[:, self.rank - 1] / np.maximum(s[:, 0], 1e-300))

    def _rank(self, q: Float[Array, "n q"]) -> int:
        """Largest rank of A among closed poses."""
        return rank_of(self.closure.values(q).A)
