"""Small free oscillations about an equilibrium: M ddy + K y = 0        [CableRobot, eqs 37 to 39]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.errors import NoResultError
from dynid.dynamics.locked import LockedCables
from dynid.dynamics.statics import Equilibrium, reduced_modes

_SHOWN = 0.1  # of the largest entry of a shape: smaller entries are not listed


@dataclass(frozen=True, eq=False)
class Mode:
    """One undamped oscillation.

    Attributes:
        frequency: In [Hz].
        shape: Velocity ratios of all coordinates of the locked robot, the largest 1, shape
            (v,): world x y z in [m/s], rotation about the body axes in [rad/s] for a free platform.
        words: The same as text.
    """

    frequency: float
    shape: Float[Array, "v"]
    words: str


def modes(robot: LockedCables, equilibrium: Equilibrium) -> tuple[Mode, ...]:
    """The modes of a stable equilibrium, the slowest first."""
    if not equilibrium.stable:
        worst = equilibrium.stiffness[0]
        raise NoResultError(
            "the equilibrium is unstable: a small displacement grows"
            + (f" {np.exp(1.0):.3g}-fold every {1.0 / np.sqrt(-worst):.3g} s" if worst < 0.0 else "")
        )
    q = equilibrium.q[None]
    mu, along = reduced_modes(robot, q)
    shapes = (robot.still.freedoms.tangent(q) @ along)[0].T
    found = []
    for square, shape in zip(mu[0], shapes, strict=True):
        shape = shape / shape[int(np.argmax(np.abs(shape)))]
        frequency = float(np.sqrt(square) / (2.0 * np.pi))
        found.append(Mode(frequency, shape, _words(frequency, shape, robot.robot.coordinates)))
    return tuple(found)


def _words(frequency: float, shape: Float[Array, "v"], names: Sequence[str]) -> str:
    order = [i for i in np.argsort(-np.abs(shape), kind="stable") if abs(shape[i]) >= _SHOWN]
    parts = [f"{names[i]} {shape[i]:+.2f}" for i in order]
    return f"{frequency:.4g} Hz: {', '.join(parts)}"
