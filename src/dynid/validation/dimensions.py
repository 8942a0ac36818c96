"""Corrections of the dimensions of a description: mm for m, degrees for radians, one length off."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.common.notices import notice
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.variant import resized
from dynid.motion.log import Log
from dynid.validation.hypotheses import Hypothesis

_LARGE = 5.0  # m or rad: no usual dimension in SI units
_UNITS = (("mm", 1e-3), ("degrees", np.pi / 180.0))
MOST_SIZES = 10


def large_dimensions(mechanism: Mechanism) -> list[str]:
    """Named dimensions that are too large for metres and radians."""
    return [name for name, value in mechanism.geometry.items() if abs(value) > _LARGE]


def dimension_units(mechanism: Mechanism, logs: tuple[Log, ...]) -> Iterator[Hypothesis]:
    """Dimensions that are too large for metres and radians, in other units: all of them, then one by one."""
    large = large_dimensions(mechanism)
    if not large:
        return
    groups = [large] if len(large) == 1 else [large, *([name] for name in large[:MOST_SIZES])]
    if len(large) < len(mechanism.geometry):
        groups.append(list(mechanism.geometry))
    for names in groups:
        for unit, factor in _UNITS if set(names) <= set(large) else _UNITS[:1]:
            robot = resized(mechanism, {name: factor * mechanism.geometry[name] for name in names})
            if robot is not None:
                shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
                yield Hypothesis(
                    notice("dimension-unit", names=shown, unit=unit),
                    robot,
                    logs,
                    f"dimension {shown} in {unit}",
                )


def other_size(mechanism: Mechanism, logs: tuple[Log, ...], name: str, value: float) -> Hypothesis | None:
    """One dimension with another value, in [m] or [rad]; None where the robot cannot be built."""
    robot = resized(mechanism, {name: value})
    if robot is None:
        return None
    found = notice("dimension-off", name=name, value=value, described=mechanism.geometry[name])
    return Hypothesis(found, robot, logs, f"dimension {name} = {value:.4g} (length or angle)", fitted=1)
