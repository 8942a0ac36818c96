"""Loads of load-dependent friction: the efforts predicted by the parameters, without friction.

    w = W_tree chi  without friction and offsets,     tau_l = (J^T)^+ N^T w + tension,     load = E tau_l

The measured efforts are not used: they contain the friction, and where friction dominates a joint,
sign(s) |tau| equals the measured side. The fit would then give Fl = 1 and zero for every other parameter
of the joint. The tension of redundant actuation, which causes no motion, is taken from the log: it does
not follow from the equations of motion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.batched import pinv
from dynid.kinematics.tension import motor_jacobian, redundancy
from dynid.mechanism.drive_terms import LOADED, ROTOR
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, owners_of, source_loads
from dynid.regressor.layout import tree_regressor

if TYPE_CHECKING:
    from dynid.motion.motion import Motion


# Input: q, dq, ddq and N of some states, and efforts whose tension counts. Output: loads of all sources.
Loads = Callable[..., Float[Array, "n s"]]


def load_model(
    mechanism: Mechanism, parameters: Sequence[Parameter], chi: Float[Array, "p"], mounted: Sequence[str] = ()
) -> Loads:
    """The function from states to loads, for given standard parameters.

    Args:
        mechanism: The robot.
        parameters: One per entry of `chi`.
        chi: Standard parameters that predict the loads, shape (p,), SI.
        mounted: Payloads on the robot.
    """
    kept = np.flatnonzero(loading(mechanism, parameters)).tolist()
    acting = [parameters[i] for i in kept]
    regressor = tree_regressor(mechanism, acting, np.eye(len(mechanism.coordinates)), mounted)
    coefficients = regressor.layout.coefficients(chi[kept])

    def loads(
        q: Float[Array, "n q"],
        dq: Float[Array, "n v"],
        ddq: Float[Array, "n v"],
        N: Float[Array, "*n v d"],
        tau: Float[Array, "n a"] | None = None,
    ) -> Float[Array, "n s"]:
        """Sizes of the loads of all coordinates, then of all actuators.

        Args:
            q: Positions of all tree joints, shape (n, n_q), in [rad, m, -].
            dq, ddq: Their rates, shape (n, n_v).
            N: Tangent directions, shape (n, n_v, d), or (n_v, d) where they are constant.
            tau: Efforts whose internal tension is a load too, shape (n, a), in [N m] or [N].

        Returns:
            Shape (n, v + a), in [N m] or [N].
        """
        JT = np.swapaxes(motor_jacobian(mechanism, N), -1, -2)
        up = pinv(JT)
        # W_tree chi without friction and offsets.
        joints = regressor.predicted(regressor.batch(q, dq, ddq, np.zeros_like(dq)), coefficients)
        if N.ndim == 2:
            efforts = joints.T @ (N @ np.swapaxes(up, -1, -2))
        else:
            efforts = np.einsum("nad,nd->na", up, np.einsum("nvd,vn->nd", N, joints))
        if tau is not None:
            efforts = efforts + tau - np.einsum("...ad,...db,...b->...a", up, JT, tau)
        return source_loads(mechanism, efforts)

    return loads


def simulated_loads(
    mechanism: Mechanism, parameters: Sequence[Parameter], chi: Float[Array, "p"], mounted: Sequence[str] = ()
) -> Callable[..., Float[Array, "n s"] | None]:
    """A function from states, as that of `load_model`, to loads; None where they are not needed."""
    if not owners_of(mechanism, *LOADED):
        return lambda *states: None
    return load_model(mechanism, parameters, chi, mounted)


# Input: first sample, q, dq, ddq and N of consecutive samples. Output: loads of all sources (n, v + a).
Along = Callable[[int, Array, Array, Array, Array], Float[Array, "n s"]]


def load_along(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    motion: Motion,
    load_parameters: Float[Array, "p"] | None,
) -> Along | None:
    """Loads along a log by parameters; None where no friction needs them, or no parameters are given."""
    if load_parameters is None or not owners_of(mechanism, *LOADED):
        return None
    model = load_model(mechanism, parameters, load_parameters, motion.log.payloads)
    strained = redundancy(mechanism) > 0

    def loads(start: int, q: Array, dq: Array, ddq: Array, N: Array) -> Float[Array, "n s"]:
        tau = motion.efforts(start, start + len(q)) if strained else None
        return model(q, dq, ddq, N, tau)

    return loads


def loading(mechanism: Mechanism, parameters: Sequence[Parameter]) -> Bool[Array, "p"]:
    """Which parameters load a joint: bodies, payloads, rotors, and declared terms without velocities."""
    frictional = {
        term.name for term in mechanism.terms if any(kind == "dq" for kind, _ in term.expression.signals)
    }
    return np.array(
        [
            p.kind == "inertial" or p.symbol in ROTOR or (p.kind == "term" and p.name not in frictional)
            for p in parameters
        ],
        dtype=bool,
    )
