"""Model `energy`: the power balance integrated over windows; no acceleration is needed.

    (h(t2) - h(t1)) chi  +  integral of dq^T friction dt  =  integral of dq^T B tau dt

A row is made for every interval between two samples (or pair of intervals, by Simpson's rule), and the
row filter averages over the window: energies telescope, so only the ends of a window matter. Friction
and efforts are integrated by one rule of `quadrature`. Rows are divided by the window's length: mean
power, in watts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.kinematics.coordinates import Measured, States
from dynid.mechanism.drive_terms import ROTOR
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, source_index, speed_map
from dynid.projection.kinematics import ClosedKinematics, kinematics_along
from dynid.projection.load import load_along
from dynid.projection.model import LogRows, Model
from dynid.projection.projection import Directions
from dynid.projection.quadrature import DEFAULT, quadrature_named
from dynid.projection.structure import structural_factor
from dynid.regressor.few_states import drive_column, term_rows
from dynid.regressor.layout import ABSENT, Layout
from dynid.regressor.regressor import energy_entries


def energy_directions(mechanism: Mechanism) -> Directions:
    """The one row of the energy model; every effort acts in it."""
    return Directions(("energy",), ("W",), None, np.ones((1, len(mechanism.actuators))))


class EnergyRows(LogRows):
    """Energy balance over the intervals of one log; its option is `integration`."""

    def _prepare(self) -> None:
        mechanism, parameters, motion = self.mechanism, self.parameters, self.motion
        self.quadrature = quadrature_named(self.options.get("integration", DEFAULT))
        self.kinematics = kinematics_along(mechanism, motion)
        self.notices, self.choices = self.kinematics.notices, dict(self.kinematics.choices)
        self._inertial, self._places = _inertial_columns(mechanism, parameters, motion.log.payloads)
        self._load = load_along(mechanism, parameters, motion, self.load_parameters)
        self._others = [(i, p) for i, p in enumerate(parameters) if p.kind != "inertial"]
        columns = [*self._inertial, *(i for i, _ in self._others), ABSENT]
        self.layout = Layout(np.array([0, len(columns)]), np.array(columns, dtype=np.int64))

    def reframed(self, mechanism: Mechanism) -> EnergyRows | None:
        """The same of a closed robot: its poses are tracked from these; None where loads depend on them."""
        if self._load is not None or not isinstance(self.kinematics, ClosedKinematics):
            return None
        other = copy(self)
        other.mechanism, other.kinematics = mechanism, self.kinematics.near(mechanism)
        return other

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Ranges of rows (each named by a sample of its span) that have all their neighbours."""
        before, after = self.quadrature.before, self.quadrature.after
        return [(a + before, b - after) for a, b in self.motion.usable() if b - a > before + after]

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries (e, n) and row weights (1, n) of consecutive tiles of start .. stop."""
        rule = self.quadrature
        first, last = start - rule.before, stop + rule.after
        measured, known = self.motion.weighted(first, last)
        moved = self._states(first, measured)
        q, dq, ddq = moved.q, moved.dq, moved.ddq
        rotors = self._rotors(dq)
        loads = self._load and self._load(first, q, dq, ddq, moved.N)
        powers = np.column_stack([*self._powers(q, dq, ddq, loads), self._effort_power(dq, first, last)])
        usable = moved.fine & self.motion.log.valid[first:last]
        powers[~usable] = 0.0
        means, order = rule.means(powers), self._order()
        weights = self._weights(known.max(axis=1, initial=0.0), usable)[None]
        for at in range(0, stop - start, tile):
            part = slice(at, min(at + tile, stop - start))
            spanned = slice(at, part.stop + rule.before + rule.after)
            energies = energy_entries(self.mechanism, q[spanned], dq[spanned], self._places)
            stored = np.concatenate([energies, rotors[spanned].T])
            stored[:, ~usable[spanned]] = 0.0
            computed = np.concatenate([rule.changes(stored.T).T / self.dt, means[part].T])
            yield start + at, computed[order], np.ascontiguousarray(weights[:, part])

    def _states(self, first: int, measured: Measured) -> States:
        """States of samples; without loads of friction no tangent directions are needed."""
        closed = self.kinematics if isinstance(self.kinematics, ClosedKinematics) else None
        known = None if closed is None or self._load is not None else closed.kept_states(first, measured)
        return self.kinematics.states(first, measured) if known is None else known

    def _weights(self, moving: Float[Array, "n"], usable: Bool[Array, "n"]) -> Float[Array, "r"]:
        """0 for rows that use an invalid sample, or whose span contains rest."""
        rule, windows = self.quadrature, np.lib.stride_tricks.sliding_window_view
        spanned = moving[rule.before + rule.start : len(moving) - rule.after + rule.stop]
        known = windows(usable, len(rule.weights)).all(axis=1)
        return np.asarray(windows(spanned, rule.span + 1).min(axis=1) * known)

    def _rotors(self, dq: Float[Array, "n v"]) -> Float[Array, "n r"]:
        """Kinetic energy per rotor inertia."""
        energies = [0.5 * self._speed(p.owner, dq) ** 2 for _, p in self._others if p.symbol in ROTOR]
        return np.column_stack(energies) if energies else np.zeros((len(dq), 0))

    def _powers(
        self,
        q: Float[Array, "n q"],
        dq: Float[Array, "n v"],
        ddq: Float[Array, "n v"],
        loads: Float[Array, "n s"] | None,
    ) -> Iterator[Float[Array, "n"]]:
        """Power per friction parameter, offset and declared term."""
        for _, parameter in self._others:
            if parameter.kind == "term":
                yield np.asarray(np.sum(dq * term_rows(self.mechanism, parameter.name, (q, dq, ddq)), axis=1))
            elif parameter.symbol not in ROTOR:
                yield self._drive_power(parameter, dq, loads)

    def _drive_power(
        self, parameter: Parameter, dq: Float[Array, "n v"], loads: Float[Array, "n s"] | None
    ) -> Float[Array, "n"]:
        """Power of a drive term of value one."""
        robot, owner = self.mechanism, parameter.owner
        load = np.ones(len(dq)) if loads is None else loads[:, source_index(robot, owner)]
        speed = self._speed(owner, dq)
        # A term without acceleration: rotors are stored energy.
        return speed * drive_column(parameter.symbol, speed, speed, load, robot.stribeck.get(owner))

    def _effort_power(self, dq: Float[Array, "n v"], first: int, last: int) -> Float[Array, "n"]:
        tau = np.nan_to_num(self.motion.log.tau[first:last])
        return np.asarray(np.sum(tau * (dq @ self.mechanism.actuator_map.T), axis=1))

    def _speed(self, owner: str, dq: Float[Array, "n v"]) -> Float[Array, "n"]:
        """Velocity of a coordinate or an actuator."""
        return np.asarray(dq @ speed_map(self.mechanism, (owner,))[0])

    def _order(self) -> Int[Array, "e"]:
        """Entries as the layout lists them: computed are stored energies first, then powers."""
        n = len(self._inertial)
        rotors = [k for k, (_, p) in enumerate(self._others) if p.symbol in ROTOR]
        powers = [k for k, (_, p) in enumerate(self._others) if p.symbol not in ROTOR]
        at = {k: n + i for i, k in enumerate([*rotors, *powers])}
        return np.array([*range(n), *(at[k] for k in range(len(self._others))), n + len(at)])


def _inertial_columns(
    mechanism: Mechanism, parameters: Sequence[Parameter], mounted: Sequence[str]
) -> tuple[list[int], Int[Array, "i"]]:
    """Inertial parameters that act in a log; and for each column of the energy row its place among them."""
    bodies = [*(joint.child for joint in mechanism.joints), *mechanism.payloads]
    pairs = [
        (i, 10 * bodies.index(p.owner) + SYMBOLS.index(p.symbol))
        for i, p in enumerate(parameters)
        if p.kind == "inertial" and (p.owner not in mechanism.payloads or p.owner in mounted)
    ]
    places = np.full(10 * len(bodies), -1, dtype=np.int64)
    places[[column for _, column in pairs]] = np.arange(len(pairs))
    return [i for i, _ in pairs], places


ENERGY = Model(
    "energy",
    "power over windows, no acceleration",
    energy_directions,
    EnergyRows,
    structural_factor,
    case="energy",
    measures="power",
    # Windows average rows of power; their length is chosen from a log, which does not exist yet.
    promised_by="power",
)
