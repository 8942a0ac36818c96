"""The scale that free motion leaves unknown, as `dynid info` shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dynid.base.structural import Loads
from dynid.cases.free_motion.reference_mass import referred
from dynid.cases.free_motion.unit_mass import shown_name, shown_unit
from dynid.common.notices import Notice, notice
from dynid.info import BaseParameter
from dynid.kinematics.locked_motion import locked_motion_of
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter


@dataclass(frozen=True, eq=False)
class FreeScale:
    """What free motion on locked cables leaves unknown: the scale of all parameters.

    Attributes:
        robot: With the reference mass known as one.
        dof: Freedoms with locked cables.
        shown: Name, unit and grouping of a base parameter -> the same per unit mass.
    """

    robot: Mechanism
    dof: int
    shown: Callable[[str, str, str], BaseParameter]
    notices: tuple[Notice, ...]


def free_scale(robot: Mechanism, parameters: Sequence[Parameter], loads: Loads) -> FreeScale:
    """The reference mass of a robot on which no effort acts, and names per unit of it."""
    normalised = referred(robot, parameters, loads)
    reference, by_name = normalised.reference, {parameter.name: parameter for parameter in parameters}

    def shown(name: str, unit: str, grouping: str) -> BaseParameter:
        standard = by_name.get(name) or by_name[name.removesuffix("_R")]
        if reference is None or reference.given:
            return BaseParameter(name, unit, grouping)
        if parameters.index(standard) == reference.scale:
            return BaseParameter(f"1/M_{reference.body}", "1/kg", grouping)
        return BaseParameter(
            shown_name(replace(standard, name=name), reference.body), shown_unit(unit), grouping
        )

    notices: tuple[Notice, ...] = ()
    if reference is not None and not reference.given and reference.scale is None:
        notices = (notice("scale-unknown", mass=f"M_{reference.body}"),)
    return FreeScale(normalised.robot, locked_motion_of(robot).count, shown, normalised.notices + notices)
