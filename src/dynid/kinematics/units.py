"""The unit of length a description is written in, as far as its size tells.

Steps and directions mix angles and lengths. In a robot of metres a radian and a metre are of one
size; in one drawn in millimetres a radian moves things by hundreds. Coordinates that are lengths are
counted in thousands of units there, so that all that is random or rounded is the same for both.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Mechanism

_STEP = 1000.0  # m, mm, um: within one of them robots differ by less than this


def coordinate_units(mechanism: Mechanism) -> Float[Array, "v"]:
    """What counts as one of each velocity coordinate: 1 rad, and 1 m in the description's own unit."""
    unit = _length_unit(mechanism)
    units = np.ones(len(mechanism.coordinates))
    at = 0
    for joint in mechanism.joints:
        lengths = {JointKind.PRISMATIC: 1, JointKind.FREE: 3}.get(joint.kind, 0)
        units[at : at + lengths] = unit
        at += len(joint.coordinates)
    return units


def _length_unit(mechanism: Mechanism) -> float:
    """A power of 1000: 1 between 3 cm and 30 m of the largest length."""
    frames = [frame for joint in mechanism.joints for frame in (joint.placement, joint.body)]
    frames += [frame for loop in mechanism.loops for frame in (loop.a, loop.b)]
    lengths = [float(np.linalg.norm(frame.p)) for frame in frames]
    lengths += [float(np.linalg.norm(x)) for cable in mechanism.cables for x in (cable.D, cable.A)]
    lengths += [loop.length for loop in mechanism.loops if loop.length is not None]
    largest = max(lengths, default=0.0)
    if not largest > 0.0:
        return 1.0
    return float(_STEP ** np.round(np.log(largest) / np.log(_STEP)))
