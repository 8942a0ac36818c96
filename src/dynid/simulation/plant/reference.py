"""Reference of the plant's controller: a motion of the motors, and its feedforward efforts.

The feedforward efforts come from dynid's inverse model with the parameters of the controller. They only
improve the tracking: the log contains the applied efforts and the resulting motion. Joints without a motor
only start where the motion starts, and then move by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.excitation.efforts import closed_efforts, strain_along
from dynid.excitation.series import Trajectory
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.drive_terms import drive_term
from dynid.mechanism.mechanism import Mechanism
from dynid.simulation.prescribed import closed_motion, inverse_efforts, parameter_vector, tree_tension

_LEAST_RATE = 250.0  # Hz: the motion is known at these times and smooth between them


@dataclass(frozen=True, eq=False)
class Goal:
    """Reference of the motors at some times, each of shape (n, a).

    Attributes:
        y, dy, ddy: Positions and rates, in [rad] or [m], per s and per s^2.
        foreseen: Efforts of the controller's model, without dry friction, in [N m] or [N].
        strain: Internal tension, in [N m] or [N].
    """

    y: Float[Array, "n a"]
    dy: Float[Array, "n a"]
    ddy: Float[Array, "n a"]
    foreseen: Float[Array, "n a"]
    strain: Float[Array, "n a"]


@dataclass(frozen=True, eq=False)
class Reference:
    """Reference of the motors as a function of time.

    Attributes:
        q, dq: All tree coordinates at the beginning, shapes (n_q,) and (n_v,).
        swing: Range of motion of each motor, shape (a,), in [rad] or [m].
        largest: Largest predicted efforts, shape (a,), in [N m] or [N].
        at: From times, shape (n,), to the reference at these times.
    """

    q: Float[Array, "q"]
    dq: Float[Array, "v"]
    swing: Float[Array, "a"]
    largest: Float[Array, "a"]
    at: Callable[[Float[Array, "n"]], Goal]


def reference_along(
    mechanism: Mechanism,
    believed: Mapping[str, float],
    motion: Trajectory,
    *,
    rate: float,
    duration: float,
    payloads: tuple[str, ...],
    tension: float,
) -> Reference:
    """The reference of a motion of the measured coordinates.

    Args:
        mechanism: The robot.
        believed: Standard parameters by name of the controller's model, SI.
        motion: Of the measured coordinates.
        rate, duration: Of the log, in [Hz] and [s].
        payloads: Mounted in the controller's model.
        tension: See `internal_tension`, in [N m] or [N].
    """
    from scipy.interpolate import make_interp_spline

    n = int(np.ceil(duration * max(rate, _LEAST_RATE))) + 6  # slightly longer than requested
    t = np.arange(n + 1) / max(rate, _LEAST_RATE)
    terms = {name: drive_term(name.partition("_")[0]) for name in believed}
    without = {name: 0.0 if (term := terms[name]) and term.dry else x for name, x in believed.items()}
    if mechanism.is_closed:
        _, states = closed_motion(mechanism, motion, t)
        q, dq, ddq = states.q, states.dq, states.ddq
        chi = parameter_vector(mechanism, without)
        foreseen = closed_efforts(mechanism, chi, states, payloads, underactuated=True)
        pull = strain_along(mechanism, states.N, t, tension)
        strain = np.zeros_like(foreseen) if pull is None else pull
    else:
        measured = motion.q(t), motion.dq(t), motion.ddq(t)
        q, dq, ddq = coordinate_map(mechanism).tree_states(*measured)
        foreseen = inverse_efforts(mechanism, without, *measured, payloads, underactuated=True)
        strain = tree_tension(mechanism, t, tension) if tension else np.zeros_like(foreseen)
    C = mechanism.actuator_map
    y = q @ position_map(mechanism).T
    spline = make_interp_spline(t, np.concatenate([y, dq @ C.T, ddq @ C.T, foreseen, strain], axis=1), k=5)

    def at(times: Float[Array, "n"]) -> Goal:
        return Goal(*np.split(spline(times), 5, axis=1))

    largest = np.abs(foreseen + strain).max(axis=0, initial=0.0)
    return Reference(q[0], dq[0], np.ptp(y, axis=0), largest, at)


def position_map(mechanism: Mechanism) -> Float[Array, "a q"]:
    """Motor positions from tree positions: the actuator map on scalar coordinates."""
    ratios = np.zeros((len(mechanism.actuators), len(mechanism.positions)))
    for row, actuator in enumerate(mechanism.actuators):
        for coordinate, ratio in actuator.on.items():
            if coordinate not in mechanism.positions:
                raise InputError(
                    f"actuator '{actuator.name}' drives '{coordinate}', which has no scalar position"
                    " that a controller could follow",
                    file=mechanism.file,
                    remedy="simulate a robot whose motors drive revolute, prismatic or universal joints",
                )
            ratios[row, mechanism.positions.index(coordinate)] = ratio
    return ratios
