"""Errors of values that a fit takes as known, as those of a robot from an earlier result.

They are in the estimate and in the residuals. With the known values chi_0 + e, e = root x and x ~ N(0, I),

    chi = chi(e = 0) - K e,    K = W^+ W_0        rho = rho(e = 0) - (I - W W^+) W_0 e
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.parameters import Parameter
from dynid.projection.projection import System


@dataclass(frozen=True, eq=False)
class KnownErrors:
    """Errors of standard parameters that a fit takes as known.

    Attributes:
        names: Of these parameters.
        root: A root of their covariance, shape (k, u), SI.
        dof: Degrees of freedom of their deviations.
    """

    names: tuple[str, ...]
    root: Float[Array, "k u"]
    dof: float

    def over(self, parameters: Sequence[Parameter]) -> Float[Array, "p u"]:
        """The root over all standard parameters, zero where nothing is known, SI."""
        place = {parameter.name: i for i, parameter in enumerate(parameters)}
        wide = np.zeros((len(parameters), self.root.shape[1]))
        wide[[place[name] for name in self.names]] = self.root
        return wide

    def in_estimate(
        self, system: System, S: Float[Array, "p v"], weights: Float[Array, "g"]
    ) -> Float[Array, "v u"]:
        """A root of K C_0 K^T over the parameters seen, K = W_seen^+ W_known on weighted rows.

        Args:
            system: Over the standard parameters.
            S: Standard column combination of each parameter seen.
            weights: Of the groups of rows.
        """
        factor = system.factor(weights)
        Q, R = np.linalg.qr(factor.W @ S)
        return np.asarray(np.linalg.solve(R, Q.T @ (factor.W @ self.over(system.parameters))))
