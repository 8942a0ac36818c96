"""What the plant's controller wants: a motion of the motors, and the efforts foreseen for it.

    tau = foreseen + kp (y_d - y) + kd (dy_d - dy),        y = C q

The foreseen efforts come from dynid's inverse model. They make the tracking good and nothing else:
what is logged is the effort applied and the motion that MuJoCo makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.excitation.efforts import closed_efforts, internal_tension
from dynid.excitation.series import Trajectory
from dynid.excitation.simulate import closed_motion, inverse_efforts, parameter_vector
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.friction import DRY
from dynid.mechanism.mechanism import Mechanism

_LEAST_RATE = 250.0  # Hz: the motion is known at these times and smooth between them


@dataclass(frozen=True, eq=False)
class Reference:
    """Where the motors shall be at any time.

    Attributes:
        q, dq: All tree coordinates at the beginning, shapes (n_q,) and (n_v,).
        at: From times, shape (n,), to positions, velocities and foreseen efforts of the motors,
            each of shape (n, a); dry friction is not foreseen here.
    """

    q: Float[Array, "q"]
    dq: Float[Array, "v"]
    at: Callable[[Float[Array, "n"]], tuple[Array, Array, Array]]


def reference_along(
    mechanism: Mechanism,
    truth: Mapping[str, float],
    motion: Trajectory,
    *,
    rate: float,
    duration: float,
    payloads: tuple[str, ...],
    tension: float,
) -> Reference:
    """The reference of a motion of the measured coordinates; arguments as for `simulate_mujoco`."""
    from scipy.interpolate import make_interp_spline

    n = int(np.ceil(duration * max(rate, _LEAST_RATE))) + 6  # a little more than is asked for
    t = np.arange(n + 1) / max(rate, _LEAST_RATE)
    without = {name: 0.0 if name.partition("_")[0] in DRY else value for name, value in truth.items()}
    if mechanism.is_closed:
        _, states = closed_motion(mechanism, motion, t)
        q, dq = states.q, states.dq
        foreseen = closed_efforts(mechanism, parameter_vector(mechanism, without), states, payloads)
        if tension:
            foreseen = foreseen + internal_tension(mechanism, states.N, t, tension)
    else:
        measured = motion.q(t), motion.dq(t), motion.ddq(t)
        q, dq, _ = coordinate_map(mechanism).states(*measured)
        foreseen = inverse_efforts(mechanism, without, *measured, payloads)
    signals = np.concatenate([q @ position_map(mechanism).T, dq @ mechanism.actuator_map.T, foreseen], axis=1)
    spline = make_interp_spline(t, signals, k=5)
    a = len(mechanism.actuators)

    def at(times: Float[Array, "n"]) -> tuple[Array, Array, Array]:
        values = spline(times)
        return values[:, :a], values[:, a : 2 * a], values[:, 2 * a :]

    return Reference(q[0], dq[0], at)


def position_map(mechanism: Mechanism) -> Float[Array, "a q"]:
    """Motor positions from tree positions: the actuator map on scalar coordinates."""
    found = np.zeros((len(mechanism.actuators), len(mechanism.positions)))
    for row, actuator in enumerate(mechanism.actuators):
        for coordinate, ratio in actuator.on.items():
            if coordinate not in mechanism.positions:
                raise InputError(
                    f"actuator '{actuator.name}' drives '{coordinate}', which has no position of its own"
                    " that a controller could follow",
                    file=mechanism.file,
                    remedy="simulate a robot whose motors drive revolute, prismatic or universal joints",
                )
            found[row, mechanism.positions.index(coordinate)] = ratio
    return found
