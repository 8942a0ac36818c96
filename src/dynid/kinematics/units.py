"""The unit of length of a description, inferred from its size.

Steps and directions mix angles and lengths. In a robot described in metres a radian and a metre are of
similar size; in millimetres a radian moves bodies by hundreds of units. There, length coordinates are
counted in thousands of units, so that random steps and rounding are the same for both.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Mechanism

_STEP = 1000.0  # m, mm, um: within one of them robots differ by less than this


def coordinate_units(mechanism: Mechanism) -> Float[Array, "v"]:
    """Unit step of each velocity coordinate: 1 rad, and 1 m in the description's own unit."""
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
