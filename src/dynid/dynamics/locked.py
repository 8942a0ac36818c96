"""A robot on locked cables of any length: states, tensions and energies in batches.

    ID(q, dq, ddq; chi) = -Xi^T tension,      L(q) = lengths,      Xi dq = 0        [CableRobot, eqs 5, 8]

Neither Xi nor its rate depends on the cable lengths, so one set of equations is valid for parallel
motions with different lengths; only the projection onto the cables uses the lengths of each motion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.batched import inv, pinv, solve
from dynid.common.errors import InputError, nearest
from dynid.dynamics.forward import ForwardDynamics
from dynid.dynamics.freedoms import ClosedFreedoms, OrthonormalFreedoms
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.closure import moved
from dynid.mechanism.cable import driven_cables, locked
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.regressor.regressor import energy_row

Values = Float[Array, "p"] | Mapping[str, float]
_SEED = 20220104
_POSES, _NEAR = 12, 0.1  # poses around the start at which coordinates are chosen, and their distance from it
_MOST_STEP = 0.3
_POOR = 1e6  # size of an inverse beyond which the reactions are computed from all coordinates
_CLOSED = 1e-11  # m: error of the lengths, a little above rounding


class LockedCables:
    """A robot with locked winches.

    Args:
        mechanism: With cables; those that have a coordinate are locked here.
        chi: Standard parameters, in the order of the mechanism's table or by name (others zero), SI.
            Their common factor changes tensions only: values per unit mass are valid.
        mounted: Payloads on the robot.
    """

    def __init__(self, mechanism: Mechanism, chi: Values, mounted: Sequence[str] = ()) -> None:
        if not mechanism.cables:
            raise InputError(
                f"robot '{mechanism.name}' has no cables, so there is no free motion on locked cables",
                file=mechanism.file,
                remedy="add them under `cables:`",
            )
        self.robot = locked(mechanism) if driven_cables(mechanism) else mechanism
        self.mounted = tuple(mounted)
        self.assembly = assembly_of(self.robot)
        # Near the start pose, but not at it: entries that are zero there by symmetry are not always zero.
        near = self.assembly.walk(np.random.default_rng(_SEED), _POSES, reach=_NEAR)
        self.freedoms = ClosedFreedoms(self.robot, near)
        self.values = by_name(mechanism, chi)
        self.dynamics = self._with(self.values, self.freedoms)
        self.still = self._with(self.values, OrthonormalFreedoms(self.robot, near))
        self.cables = tuple(cable.name for cable in self.robot.cables)
        names = self.assembly.closure.names
        self.rows = np.array([names.index(name) for name in self.cables])
        self._given = np.array([cable.length for cable in self.robot.cables], dtype=float)

    def changed(self, chi: Values) -> ForwardDynamics:
        """The equations of motion with other parameters, on the same cables."""
        return self._with(by_name(self.robot, chi), self.freedoms)

    def _with(self, values: Mapping[str, float], freedoms: ClosedFreedoms) -> ForwardDynamics:
        chi = np.array([values.get(parameter.name, 0.0) for parameter in parameter_table(self.robot)])
        return ForwardDynamics(self.robot, chi, self.mounted, freedoms)

    def lengths(self, q: Float[Array, "n q"]) -> Float[Array, "n c"]:
        """Cable lengths at poses, in [m]."""
        return np.asarray(self.assembly.closure.values(q).f[:, self.rows] + self._given)

    def gaps(self, q: Float[Array, "n q"], lengths: Float[Array, "n c"]) -> Float[Array, "n g"]:
        """Closure equations where each pose has its own cable lengths, in [m] or [rad]."""
        f = self.assembly.closure.values(q).f
        f[:, self.rows] += self._given - lengths
        return f

    def closed(
        self,
        q: Float[Array, "n q"],
        lengths: Float[Array, "n c"] | Float[Array, "c"],
        iterations: int = 30,
    ) -> tuple[Float[Array, "n q"], Bool[Array, "n"]]:
        """Nearby poses with the given lengths, by minimum-norm steps; and whether each was found."""
        q, lengths = np.array(q), np.broadcast_to(lengths, (len(q), len(self.cables)))
        active = np.arange(len(q))
        for _ in range(iterations):
            f = self.gaps(q[active], lengths[active])
            parts = self.assembly.split(self.assembly.closure.values(q[active]).A)
            step = -parts.step(f)
            size = np.linalg.norm(step / self.assembly.units, axis=1, keepdims=True)
            step = step * np.minimum(1.0, _MOST_STEP / np.maximum(size, 1e-300))
            q[active] = moved(self.robot, q[active], step)
            active = active[~(size[:, 0] < 1e-9)]
            if not len(active):
                break
        return q, np.abs(self.gaps(q, lengths)).max(axis=1) < _CLOSED

    def repaired(
        self, q: Float[Array, "n q"], dq: Float[Array, "n v"], lengths: Float[Array, "n c"]
    ) -> tuple[Float[Array, "n q"], Float[Array, "n v"]]:
        """States close to their cables, projected onto them; independent coordinates are fixed."""
        free = self.freedoms
        still = np.zeros((len(q), free.dof))
        q = moved(self.robot, q, free.lifted(q, still, self.gaps(q, lengths)))
        stray = np.einsum("ncv,nv->nc", self.assembly.closure.values(q).A, dq)
        return q, dq + free.lifted(q, still, stray)

    def tensions(
        self, q: Float[Array, "n q"], dq: Float[Array, "n v"], ddq: Float[Array, "n v"]
    ) -> Float[Array, "n c"]:
        """Pull of each cable, in [N] for parameters in SI; negative: it would have to push.

        From ID = A^T lam, with lam the reactions of all closures; where some are redundant, the
        minimum-norm solution. A pulling cable acts against +length: tension = -lam.
        """
        A = self.assembly.closure.values(q).A
        efforts = self.dynamics.inverse(q, dq, ddq)
        dependent = np.setdiff1d(np.arange(A.shape[2]), self.freedoms.independent)
        square = np.swapaxes(A[:, :, dependent], 1, 2)
        lam, poor = np.full(A.shape[:2], np.nan), np.ones(len(A), dtype=bool)
        if square.shape[1] == square.shape[2]:
            lam = solve(square, efforts[:, dependent, None])[:, :, 0]
            poor = ~(np.linalg.norm(inv(square), axis=(1, 2)) < _POOR)
        if poor.any():
            lam[poor] = np.einsum("ncv,nv->nc", pinv(np.swapaxes(A[poor], 1, 2)), efforts[poor])
        return np.asarray(-lam[:, self.rows])

    def energy(self, q: Float[Array, "n q"], dq: Float[Array, "n v"]) -> Float[Array, "n"]:
        """Kinetic plus potential energy, zero at rest in the base origin, in [J] for parameters in SI."""
        owners = [joint.child for joint in self.robot.joints] + list(self.robot.payloads)
        absent = set(self.robot.payloads) - set(self.mounted)
        chi = [
            0.0 if owner in absent else self.values.get(f"{symbol}_{owner}", 0.0)
            for owner in owners
            for symbol in SYMBOLS
        ]
        return np.asarray(energy_row(self.robot, q, dq) @ np.array(chi))


def by_name(mechanism: Mechanism, chi: Values) -> dict[str, float]:
    """Standard parameters by name, from a vector in the order of the table or from names."""
    names = [parameter.name for parameter in parameter_table(mechanism)]
    if isinstance(chi, Mapping):
        for name in chi:
            if name not in names:
                raise InputError(f"unknown parameter '{name}'" + nearest(name, names), file=mechanism.file)
        return dict(chi)
    values = np.asarray(chi, dtype=float)
    if values.shape != (len(names),):
        raise InputError(f"{values.shape} values do not fit {len(names)} standard parameters")
    return dict(zip(names, values.tolist(), strict=True))
