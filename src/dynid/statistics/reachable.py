"""Whether a robot can follow a desired motion: all loops close in every pose, and no pose is singular."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.batched import singular_values
from dynid.common.errors import InputError
from dynid.kinematics.coordinates import States
from dynid.kinematics.tension import motor_jacobian
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.motion import Motion
from dynid.projection.kinematics import MISFIT, OPEN, ClosedKinematics, kinematics_along

_BLOCK = 4096
_SINGULAR = 1e6  # condition number of J above which efforts are not reliable


def reachable_states(mechanism: Mechanism, motion: Motion) -> Iterator[tuple[int, States]]:
    """States of consecutive blocks, each pose reachable and no singular one on the way."""
    try:
        kinematics = kinematics_along(mechanism, motion)
    except InputError as error:
        raise InputError(
            f"the trajectory leaves the workspace of the robot: {error.text}",
            file=motion.log.file,
            remedy="move less there, or check units, signs and zeros of the columns, and `start:`",
        ) from error
    for low, high in motion.usable():
        last: States | None = None
        for start in range(low, high, _BLOCK):
            measured = motion.states(start, min(start + _BLOCK, high))
            states = kinematics.states(start, measured)
            if isinstance(kinematics, ClosedKinematics):
                _refuse_unreachable(kinematics, motion, start, states)
            _refuse_singular(mechanism, motion, start, states, last)
            last = _final(states)
            yield start, states
    for notice in kinematics.notices:
        if notice.code in ("loop-misfit", "singular-start"):
            continue
        raise InputError(notice.text, file=motion.log.file, remedy=notice.remedy)


def _final(states: States) -> States:
    return States(states.q[-1:], states.dq[-1:], states.ddq[-1:], states.N[-1:], states.fine[-1:])


def _refuse_unreachable(kinematics: ClosedKinematics, motion: Motion, start: int, states: States) -> None:
    wanted = motion.log.q[start : start + len(states.q)]
    missed = np.abs(kinematics.sensors.miss(states.q, wanted)).max(axis=1, initial=0.0) > MISFIT
    lost = np.flatnonzero(~states.fine | missed)
    if not len(lost):
        return
    i = start + int(lost[0])
    gaps, names = kinematics.gaps(motion.log.q[i : i + 1])
    if gaps[0] > OPEN and names[0] in motion.log.position_names:
        unit = kinematics.unit(names[0])
        text = f"'{names[0]}' differs by {gaps[0]:.3g} {unit} from the value given by the other coordinates"
    elif gaps[0] > OPEN:
        text = f"'{names[0]}' does not close: gap {gaps[0]:.3g} m or rad"
    else:
        text = "the pose is singular: the given coordinates do not determine it"
    raise _refusal(motion, i, f"the trajectory leaves the workspace of the robot: {text}")


def _refuse_singular(
    mechanism: Mechanism, motion: Motion, start: int, states: States, last: States | None
) -> None:
    """Where the motors lose hold of a freedom, at a sample or between two."""
    N = states.N if last is None else np.concatenate([last.N, states.N])
    first = start if last is None else start - 1
    J = motor_jacobian(mechanism, N)
    s = singular_values(J)
    bad = np.flatnonzero(~(s[:, -1] * _SINGULAR >= s[:, 0]))
    if len(bad):
        text = (
            f"singular: condition number {s[bad[0], 0] / max(s[bad[0], -1], 1e-300):.2g} of the motors' hold"
        )
        raise _refusal(motion, first + int(bad[0]), f"the pose is {text} on the robot")
    crossed = _crossings(J, N)
    if len(crossed):
        text = (
            "between this sample and the next the trajectory crosses a singular pose, where the motors lose"
        )
        raise _refusal(motion, first + int(crossed[0]), f"{text} hold of the robot")


def _crossings(J: Float[Array, "n a d"], N: Float[Array, "n v d"]) -> Int[Array, "k"]:
    """Samples after which det J changes its sign; the basis N may change its orientation too."""
    if J.shape[1] != J.shape[2] or len(J) < 2:
        return np.zeros(0, dtype=np.int64)
    side = np.linalg.slogdet(J)[0]
    turned = np.linalg.slogdet(np.swapaxes(N[1:], 1, 2) @ N[:-1])[0]
    return np.flatnonzero(side[1:] * turned * side[:-1] < 0.0)


def _refusal(motion: Motion, sample: int, text: str) -> InputError:
    log = motion.log
    return InputError(
        text,
        file=log.file,
        place=f"sample {sample} (t = {log.t[sample]:.6g} s)",
        remedy="move less there, or check units, signs and zeros of the columns",
    )
