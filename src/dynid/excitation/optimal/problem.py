"""One optimisation: a criterion of the information along a family of motions, as a function of z."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.excitation.optimal.box import Blocks
from dynid.excitation.optimal.criteria import Criterion
from dynid.excitation.optimal.information import Information, Tape
from dynid.excitation.optimal.paths import RobotStates, states_along
from dynid.excitation.optimal.soft import SoftLimits


@dataclass(frozen=True, eq=False)
class Point:
    """A trial motion.

    Attributes:
        z: Variables.
        value: Minimised value; infinite if the motion is not feasible.
        excess: Excess of the soft limits, satisfied if h <= 0, shape (s, n).
        G: Information. tape: intermediate results for its gradient.
    """

    z: Float[Array, "v"]
    value: float
    excess: Float[Array, "s n"]
    G: Float[Array, "b b"] | None = None
    tape: Tape | None = None

    @property
    def violation(self) -> float:
        """Sum of the violations of soft limits."""
        return float(np.maximum(self.excess, 0.0).sum())


class Problem:
    """A criterion as a function of the scaled variables of a family.

    Args:
        blocks: Family and linear limits.
        information: Of its motions.
        criterion: Of the information.
        samples: Number of design samples in one period.
        soft: Nonlinear limits: efforts, poses, distances.
    """

    def __init__(
        self,
        blocks: Blocks,
        information: Information,
        criterion: Criterion,
        samples: int,
        soft: SoftLimits | None = None,
    ) -> None:
        self.blocks, self.information, self.criterion = blocks, information, criterion
        self.soft = soft
        self.t = np.arange(samples) / samples * blocks.family.period
        self.B = np.ascontiguousarray(blocks.family.matrices(self.t))

    @property
    def linear(self) -> bool:
        """Whether every motion within the linear limits is feasible."""
        return self.soft is None and not self.information.path.mechanism.is_closed

    def narrowed(self, share: float) -> Problem:
        """The same with soft limits narrowed by a share."""
        soft = None if self.soft is None else self.soft.narrowed(share)
        return Problem(self.blocks, self.information, self.criterion, len(self.t), soft)

    def states(self, z: Float[Array, "v"]) -> RobotStates | None:
        """The robot along the motion; None if it cannot follow without a jump."""
        return states_along(self.information.path, self.B @ self.blocks.coefficients(z), self.t)

    def evaluate(self, z: Float[Array, "v"]) -> Point:
        """Value and soft limits at z."""
        states = self.states(z)
        if states is None:
            return Point(z, np.inf, np.zeros((0, 0)))
        G, tape = self.information.gram_of(states)
        excess = np.zeros((0, len(self.t))) if self.soft is None else self.soft.excess(tape.states)
        return Point(z, self.criterion.smooth_value(G), excess, G, tape)

    def gradient(self, point: Point) -> Float[Array, "v"]:
        """Gradient of the value with respect to z."""
        if point.tape is None or point.G is None:
            raise ValueError("an infeasible motion has no gradient")
        y, dy, ddy = self.information.back(point.tape, self.criterion.smooth(point.G)[1])
        return self.blocks.slope(self.B[0].T @ y + self.B[1].T @ dy + self.B[2].T @ ddy)

    def soft_rows(self, point: Point, near: float) -> tuple[Float[Array, "r v"], Float[Array, "r"]]:
        """Rows A and bounds b of the linearised soft limits closer than `near`: A p <= b."""
        if self.soft is None or point.tape is None:
            return np.zeros((0, len(point.z))), np.zeros(0)
        limit, sample = np.nonzero(point.excess > -near)
        rows = np.zeros((len(limit), len(point.z)))
        if len(limit):
            needed = np.any(point.excess > -near, axis=1)
            slopes = self.soft.slopes(point.tape.states, np.asarray(needed))
            for order in range(len(self.B)):
                moved = slopes[order][limit, sample]  # (r, j)
                block = moved[:, :, None] * self.B[order][sample][:, None, :]
                scaled = block * self.blocks.spread * self.blocks.size[:, None]
                rows += scaled.reshape(len(limit), -1)
        return rows, -point.excess[limit, sample]
