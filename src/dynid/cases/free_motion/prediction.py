"""Prediction of whole free motions: simulated from a fitted starting state, for many runs at once.

Only starting states and a common damping are fitted: few unknowns of long motions. Their derivatives are
finite differences of motions that the fast integrator computes in parallel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.cases.free_motion.output_error import FreeOutputError, FreeWindows
from dynid.common.arrays import Array, Float
from dynid.dynamics.free_motion import integrated
from dynid.refinement.output_error import settled, started

_PHASE = 0.2
_SHIFT = 1e-6  # m, rad, per s: of a difference
_PASSES = 2
_DAMP = 1e-5  # of a damping coefficient, per unit mass


@dataclass(frozen=True, eq=False)
class FastFreeMotion:
    """`FreeOutputError` of known lengths by differences of fast motions (a `Simulated` problem)."""

    simulated: FreeOutputError

    @property
    def linear(self) -> Float[Array, "b"]:
        """Where the unknowns begin."""
        return self.simulated.linear

    @property
    def hold(self) -> Float[Array, "b"]:
        """How they are held to it."""
        return self.simulated.hold

    def residual(self, chi: Float[Array, "b"], windows: FreeWindows) -> Float[Array, "n r"]:
        """Measured less simulated positions in deviations."""
        return self.simulated.missed(self.poses(chi, windows), windows)

    def slopes(
        self, chi: Float[Array, "b"], windows: FreeWindows
    ) -> tuple[Float[Array, "n r"], Float[Array, "n r s"], Float[Array, "n r b"]]:
        """The residual, and derivatives of the simulation by starting states and by the unknowns."""
        n, d = len(windows.q), self.simulated.robot.freedoms.dof
        steps = np.concatenate([np.zeros((1, 2 * d)), _SHIFT * np.eye(2 * d)])
        many = windows.some(np.tile(np.arange(n), 2 * d + 1))
        rows = self.residual(chi, self.moved(many, np.repeat(steps, n, axis=0))).reshape(2 * d + 1, n, -1)
        by_start = np.moveaxis(rows[:1] - rows[1:], 0, 2) / _SHIFT
        changed = [self.residual(chi + _DAMP * unit, windows) for unit in np.eye(len(chi))]
        columns = [(rows[0] - shifted) / _DAMP for shifted in changed]
        none = np.zeros((*rows[0].shape, 0))
        return rows[0], by_start, np.stack(columns, axis=2) if columns else none

    def moved(self, windows: FreeWindows, change: Float[Array, "n s"]) -> FreeWindows:
        """Windows whose starting states are changed."""
        return self.simulated.moved(windows, change)

    def poses(self, chi: Float[Array, "b"], windows: FreeWindows) -> Float[Array, "k n q"]:
        """Simulated poses after every step."""
        robot, n = self.simulated.robot, len(windows.measured)
        dynamics = robot.changed(self.simulated.S @ chi + self.simulated.c)
        start, rate = (windows.q, windows.dq), 1.0 / windows.step
        return integrated(robot, dynamics, start, windows.lengths, n, rate, _PHASE)[
            :, :, : windows.q.shape[1]
        ]


def predicted(simulated: FreeOutputError, windows: FreeWindows) -> Float[Array, "n k m"]:
    """What best simulations of whole runs miss of each measured coordinate, shape (n, k, m), SI.

    Args:
        problem: Its unknowns are damping coefficients only, and begin at zero.
        windows: The runs, with rough starting states.
    """
    zero, count = np.zeros(len(simulated.linear)), simulated.sensors.count
    windows = started(FastFreeMotion(simulated), zero, windows, passes=1)
    missed = FastFreeMotion(simulated).residual(zero, windows).reshape(-1, count)
    sigma = simulated.sigma * np.maximum(np.sqrt(np.mean(missed**2, axis=0)), 1e-12)
    fast = FastFreeMotion(replace(simulated, sigma=sigma))
    chi, windows = settled(fast, zero, windows, _PASSES)
    rows = fast.residual(chi, windows).reshape(len(windows.q), -1, count)
    return np.asarray(rows * sigma)
