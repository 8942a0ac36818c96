"""Two results per unit mass together: the mass from a known payload, and how well they agree.

    (m + dm) s_L = m s + dm p_L       ->      m (s_L - s) = dm (p_L - s_L)          [CableRobot, eqs 23, 24]

with s and s_L the centres of mass without and with a payload of mass dm at p_L. Each result brings its own
covariance, so that the three equations are weighted by C_r = (m + dm)^2 C_L + m^2 C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.statistics.estimate import Estimate, ParameterEstimate

_ITERATIONS = 50


@dataclass(frozen=True)
class PayloadMass:
    """Mass of a body from its centre of mass without and with a known payload.

    Attributes:
        value, sigma: In [kg].
        misfit: r^T C_r^-1 r at the solution: about 2 where payload and results agree.
    """

    value: float
    sigma: float
    misfit: float


def payload_mass(
    bare: Estimate, loaded: Estimate, mass: float, com: Sequence[float], body: str = "platform"
) -> PayloadMass:
    """The mass of `body`, weighted by the covariances of both results.

    Args:
        bare: Result without the payload.
        loaded: Result with it, of body and payload as one.
        mass: Of the payload, in [kg].
        com: Its centre of mass in the frame of the body, shape (3,), in [m].
        body: Name of the body.
    """
    if not mass > 0:
        raise InputError(f"payload mass {mass} kg is not positive", remedy="give its mass in kg")
    s, C = _centre(bare, body)
    s_L, C_L = _centre(loaded, body)
    p_L = np.asarray(com, dtype=float)
    g, b = s_L - s, mass * (p_L - s_L)
    m = float(g @ b / (g @ g))
    for _ in range(_ITERATIONS):
        root = np.linalg.cholesky((m + mass) ** 2 * C_L + m**2 * C)
        g_w, b_w = np.linalg.solve(root, np.column_stack([g, b])).T
        before, m = m, float(g_w @ b_w / (g_w @ g_w))
        if abs(m - before) <= 1e-12 * abs(m):
            break
    return PayloadMass(m, float(1.0 / np.linalg.norm(g_w)), float(np.sum((m * g_w - b_w) ** 2)))


def _centre(estimate: Estimate, body: str) -> tuple[Float[Array, "3"], Float[Array, "3 3"]]:
    """Centre of mass and its covariance, in [m]."""
    names = [f"{symbol}/M_{body}" for symbol in ("MX", "MY", "MZ")]
    # A payload that is always mounted is grouped into its carrier, which the name may show.
    listed = [one.name.removesuffix("_R") for one in estimate.parameters if one.sigma is not None]
    missing = [name for name in names if name not in listed]
    if missing:
        raise InputError(
            f"the result has no '{missing[0]}' with a standard deviation",
            remedy="identify with model: internal, all three coordinates of the centre of mass",
        )
    at = [listed.index(name) for name in names]
    values = [one.value for one in estimate.parameters if one.sigma is not None]
    return np.array([values[k] for k in at]), estimate.covariance[np.ix_(at, at)]


@dataclass(frozen=True)
class Agreement:
    """One parameter of two results.

    Attributes:
        change_percent: 100 |other - reference| / |reference|, eq. (48).
        sigma_percent: Relative deviation of the reference, eq. (49).
        distance: |other - reference| over the deviation of both together.
    """

    name: str
    unit: str
    reference: float
    other: float
    change_percent: float
    sigma_percent: float
    distance: float


def agreement(reference: Estimate, other: Estimate) -> tuple[Agreement, ...]:
    """Compare two results parameter by parameter, as partial against full pose [CableRobot, eqs 48, 49].

    Args:
        reference: Whose values divide, in the paper the result from free coordinates.
        other: With parameters of the same names; those that only one has are left out.
    """
    theirs = {one.name: one for one in other.parameters if one.essential}
    return tuple(
        _compared(one, theirs[one.name])
        for one in reference.parameters
        if one.essential and one.name in theirs and one.value != 0.0
    )


def _compared(one: ParameterEstimate, other: ParameterEstimate) -> Agreement:
    change = abs(other.value - one.value)
    sigma = float(np.hypot(one.sigma or 0.0, other.sigma or 0.0))
    return Agreement(
        name=one.name,
        unit=one.unit,
        reference=one.value,
        other=other.value,
        change_percent=100.0 * change / abs(one.value),
        sigma_percent=100.0 * (one.sigma or 0.0) / abs(one.value),
        distance=change / sigma if sigma > 0 else float("inf"),
    )
