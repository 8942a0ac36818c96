"""Capsules: the space that a body occupies, for collision-free motions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.entry import Entry
from dynid.common.errors import nearest
from dynid.mechanism.robot_file.scope import Scope

_KEYS = ("from", "to", "radius")


@dataclass(frozen=True, eq=False)
class Capsule:
    """All points within a radius of a segment, in the body's frame.

    Attributes:
        start, end: Of the segment, body frame, shape (3,), in [m].
        radius: In [m].
    """

    start: Float[Array, "3"]
    end: Float[Array, "3"]
    radius: float


def read_capsules(entry: Entry, scope: Scope, bodies: tuple[str, ...]) -> dict[str, tuple[Capsule, ...]]:
    """`capsules: {BODY: {from: [..], to: [..], radius: r}}`, or a list of them; `base` may have some too."""
    found = {}
    for name, item in entry.mapping().items():
        if name not in bodies:
            raise item.error(f"unknown body '{name}'" + nearest(name, bodies), "name a body, or `base`")
        listed = item.items() if item.is_list else [item]
        found[name] = tuple(_capsule(one, scope) for one in listed)
    return found


def _capsule(entry: Entry, scope: Scope) -> Capsule:
    fields = entry.fields(_KEYS)
    for key in _KEYS:
        if key not in fields:
            raise entry.error(f"'{key}' is missing", "give from: [x, y, z], to: [x, y, z] and radius")
    radius = scope.number(fields["radius"])
    if radius <= 0.0:
        raise fields["radius"].error(f"the radius {radius:g} is not positive", "give it in m")
    ends = [np.array(fields[key].vector(scope.number)) for key in ("from", "to")]
    return Capsule(ends[0], ends[1], float(radius))
