"""Parameters that act only together with the reference mass of a robot on which no effort acts.

The mass of an arm attached to the platform by a hinge acts as a mass of the platform:

    W_c = sum_j K_j W_j,      the reference mass m among the j

Free motion then determines parameters per unit of m + K_m c. An equation with m = 1 and c unknown has the
exact but wrong solution "no mass at the platform": c must be regrouped before the reference is set to one.

The reference mass of a problem of free motion.

The scale that free motion leaves unknown, as `dynid info` shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.base.rank import independent_columns
from dynid.base.structural import Loads
from dynid.cases.free_motion.unit_mass import Normalisation, normalise, per_mass, shown_name, shown_unit
from dynid.common.notices import Notice, notice
from dynid.info import BaseParameter
from dynid.kinematics.locked_motion import locked_motion_of
from dynid.mechanism.cable import held_body
from dynid.mechanism.mechanism import Body, Mechanism, Payload
from dynid.mechanism.parameters import Parameter, considered_order, known_columns
from dynid.projection.internal import Joined, Reference, internal_structure


def referred(
    robot: Mechanism, parameters: Sequence[Parameter], loads: Sequence[tuple[str, ...]]
) -> Normalisation:
    """Choose the reference mass of a robot on which no effort acts, with what acts only together with it.

    Args:
        robot: On locked cables, with the payloads that some log carries.
        parameters: Its table.
        loads: Payloads mounted in each log.
    """
    names = [parameter.name for parameter in parameters]
    mass = f"M_{held_body(robot)}"
    joined = _joined(robot, parameters, loads, names.index(mass)) if mass in names else ()
    if not joined:
        return normalise(robot, parameters, loads)
    known = known_columns(robot, parameters)
    values = [known.get(names.index(name)) for name in (mass, *(member.name for member in joined))]
    gone = {member.name: 0.0 for member in joined}
    robot = _without(robot, {mass, *gone})
    if values[0] and None not in values:
        shares = [1.0, *(member.shares[mass] for member in joined)]
        body = robot.bodies[held_body(robot)]
        whole = sum(share * (value or 0.0) for share, value in zip(shares, values, strict=True))
        body = replace(body, known={**body.known, "M": whole})
        robot = replace(robot, bodies={**robot.bodies, body.name: body})
    normalised = normalise(replace(robot, known={**robot.known, **gone}), parameters, loads)
    reference = None if normalised.reference is None else replace(normalised.reference, joined=joined)
    return replace(normalised, reference=reference, notices=(*normalised.notices, _notice(joined, mass)))


def _joined(
    robot: Mechanism, parameters: Sequence[Parameter], loads: Sequence[tuple[str, ...]], mass: int
) -> tuple[Joined, ...]:
    """Columns that depend on others only together with the reference, which is considered first."""
    W = internal_structure(robot, parameters, None, loads=tuple(loads) or ((),)).W
    others = [i for i in considered_order(robot, parameters) if parameters[i].owner not in robot.payloads]
    rank = independent_columns(W, [mass, *(i for i in others if i != mass)])
    names = [parameters[i].name for i in rank.kept]
    if names[:1] != [parameters[mass].name]:
        return ()  # it acts on nothing
    return tuple(
        Joined(parameters[i].name, {names[k]: float(shares[k]) for k in np.flatnonzero(shares)})
        for i, shares in zip(rank.dependent, rank.K.T, strict=True)
        if shares[0] != 0.0
    )


def _without(robot: Mechanism, names: set[str]) -> Mechanism:
    """The robot that no longer knows some parameters."""

    def left(owner: Body | Payload) -> dict[str, float]:
        return {symbol: x for symbol, x in owner.known.items() if f"{symbol}_{owner.name}" not in names}

    return replace(
        robot,
        bodies={name: replace(body, known=left(body)) for name, body in robot.bodies.items()},
        payloads={name: replace(payload, known=left(payload)) for name, payload in robot.payloads.items()},
        known={name: value for name, value in robot.known.items() if name not in names},
    )


def _notice(joined: Sequence[Joined], mass: str) -> Notice:
    parts = "".join(_term(member.shares[mass], member.name) for member in joined)
    others = ", ".join(dict.fromkeys(name for member in joined for name in member.shares if name != mass))
    return notice(
        "mass-joined",
        names=", ".join(member.name for member in joined),
        act="act" if len(joined) > 1 else "acts",
        mass=mass,
        parts=parts,
        others=f", and {others} contain the rest" if others else "",
    )


def _term(share: float, name: str) -> str:
    times = "" if np.isclose(abs(share), 1.0) else f"{abs(share):.4g} "
    return f" {'+' if share > 0 else '-'} {times}{name}"


def referred_values(
    values: Mapping[str, float], reference: Reference | None, parameters: Sequence[Parameter]
) -> dict[str, float]:
    """Standard values by name over the reference mass, what is joined inside the others.

    Empty where the mass is not among the values.
    """
    return per_mass(_together(values, reference), reference, parameters)


def _together(values: Mapping[str, float], reference: Reference | None) -> dict[str, float]:
    """Values of the same motion with what is joined at zero; those it goes into are unknown where it is."""
    combined = dict(values)
    for joined in () if reference is None else reference.joined:
        value = combined.get(joined.name)
        for name, share in joined.shares.items():
            if name in combined and value is not None:
                combined[name] += share * value
            else:
                combined.pop(name, None)
        combined[joined.name] = 0.0
    return combined


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
