"""All coordinates of a robot from the measured ones along a log, tree or closed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.kinematics.assembly import Assembly, assembly_of, singular
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.motion import Motion
from dynid.notices import Notice

OPEN = 1e-8  # m or rad: a pose that leaves more than this open is not assembled
_MOST_LOST = 0.01
_PROBES = 400
# rad or m: encoders, elastic links and rounded geometry stay below, a wrong zero does not.
_MISFIT = 0.02


class TreeKinematics:
    """A tree: coordinates follow from couplings alone."""

    def __init__(self, mechanism: Mechanism, measured: Sequence[str]) -> None:
        self.map = coordinate_map(mechanism, measured)

    def states(self, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array, Array, Array]:
        """All coordinates, tangent basis, and whether each pose is usable."""
        basis = np.broadcast_to(self.map.velocities, (len(q), *self.map.velocities.shape))
        return *self.map.states(q, dq, ddq), basis, np.ones(len(q), dtype=bool)

    def gaps(self, q: Array) -> tuple[Array, list[str]]:
        """Nothing can stay open."""
        return np.zeros(len(q)), [""] * len(q)


class ClosedKinematics:
    """A closed mechanism: every joint from the measured ones through the loops."""

    def __init__(self, mechanism: Mechanism, measured: Sequence[str]) -> None:
        self.assembly: Assembly = assembly_of(mechanism)
        self.picked: Int[Array, "m"] = np.array(
            [_scalar_index(mechanism, name) for name in measured], dtype=np.int64
        )
        self._names = tuple(measured)
        if len(self.picked) < self.assembly.dof:
            raise InputError(
                f"{len(self.picked)} measured joints cannot tell the pose of a robot with"
                f" {self.assembly.dof} degrees of freedom",
                file=mechanism.file,
                remedy="measure more joints, and list them under `measured:`",
            )

    def states(self, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array, Array, Array]:
        """All coordinates, tangent basis, and whether each pose is assembled and regular."""
        pose = self.assembly.track(q, self.picked)
        rates, second, basis = self.assembly.rates(pose, dq, ddq, self.picked)
        fine = (self.assembly.gaps(pose) < OPEN) & ~singular(basis[:, self.picked])
        return pose, rates, second, basis, fine

    def gaps(self, q: Array) -> tuple[Array, list[str]]:
        """What stays open at measured positions, in [m] or [rad], and where.

        More measured joints than freedoms are met in least squares; what is left beyond
        `_MISFIT` counts as open.
        """
        pose = self.assembly.follow(q, self.picked)
        open_by = np.abs(self.assembly.closure.values(pose).f)
        missed = np.abs(self.assembly.scalars(pose)[:, self.picked] - q)
        both = np.concatenate([open_by, np.where(missed > _MISFIT, missed, 0.0)], axis=1)
        labels = [*self.assembly.closure.names, *(self._names[i] for i in range(q.shape[1]))]
        worst = np.argmax(both, axis=1)
        return both[np.arange(len(q)), worst], [labels[i] for i in worst]


def kinematics_of(mechanism: Mechanism, measured: Sequence[str]) -> TreeKinematics | ClosedKinematics:
    """The kinematics of a mechanism whose positions `measured` are logged."""
    return (ClosedKinematics if mechanism.loops else TreeKinematics)(mechanism, measured)


def _scalar_index(mechanism: Mechanism, name: str) -> int:
    if name not in mechanism.coordinates:
        raise InputError(
            f"'{name}' cannot be measured on a closed robot in this version: only scalar joints can",
            file=mechanism.file,
            remedy="measure revolute and prismatic joints",
        )
    return mechanism.coordinates.index(name)


def check_closed(kinematics: TreeKinematics | ClosedKinematics, motion: Motion) -> tuple[Notice, ...]:
    """Refuse a log that the loops do not admit, before the work starts."""
    log = motion.log
    probes = [np.linspace(a, b - 1, min(_PROBES, b - a)).astype(int) for a, b in motion.usable()]
    at = np.unique(np.concatenate(probes)) if probes else np.zeros(0, dtype=int)
    gaps, names = kinematics.gaps(log.q[at])
    lost = ~(gaps < OPEN)
    if lost.any() and lost.mean() > _MOST_LOST:
        first = int(np.flatnonzero(lost)[0])
        raise InputError(
            f"the measured joints do not close the loops: at sample {at[first]} (t ="
            f" {log.t[at[first]]:.4g} s) '{names[first]}' is off by {gaps[first]:.3g} m or rad",
            file=log.file,
            remedy="check joint zeros, units and signs, the loops' frames, and `start:`",
        )
    if not lost.any():
        return ()
    text = f"{100 * lost.mean():.2g} % of the poses of log '{log.name}' do not close and are left out"
    return (Notice("not-assembled", text, "look at the largest motions of the log"),)
