"""Parameters per unit mass: the reference of a robot on which no effort acts, and its names.

Free motion determines chi / m (`internal`). The reference is the mass of the body that most cables hold.
With a payload known in kilograms in some of the logs m itself is identified, through the parameter 1/m.

From a result per unit mass back to the equations of a robot on which no effort acts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from dynid.base.system import BaseSystem
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.estimator.tls import homogeneous_fit
from dynid.mechanism.cable import held_body
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, known_columns
from dynid.problem import Problem
from dynid.projection.internal import Reference
from dynid.projection.projection import System
from dynid.statistics.assemble import EstimateParts
from dynid.statistics.estimate import Estimate, ParameterEstimate
from dynid.statistics.uncertainty import student_t95

_UNITS = {"kg": "1", "kg m": "m", "kg m^2": "m^2"}


@dataclass(frozen=True, eq=False)
class Normalisation:
    """A robot whose reference mass is one.

    Attributes:
        robot: With the reference known as one, and what was known in kilograms no longer known.
        reference: None where efforts act and nothing needs a reference.
    """

    robot: Mechanism
    reference: Reference | None
    notices: tuple[Notice, ...] = ()


def normalise(
    robot: Mechanism, parameters: Sequence[Parameter], loads: Sequence[tuple[str, ...]]
) -> Normalisation:
    """Choose the reference mass of a robot on which no effort acts.

    Args:
        robot: With the payloads that some log carries.
        parameters: Its table.
        loads: Payloads mounted in each log.
    """
    body = held_body(robot)
    index = {parameter.name: i for i, parameter in enumerate(parameters)}
    column = index.get(f"M_{body}")
    if column is None:
        raise InputError(
            f"body '{body}' has no mass parameter, so parameters per unit mass are not defined",
            file=robot.file,
            remedy="add M to `parameters:` of the body",
        )
    held = robot.bodies[body]
    if held.known.get("M"):
        return Normalisation(robot, Reference(body, column, mass=float(held.known["M"]), given=True))
    always = set.intersection(*(set(load) for load in loads)) if loads else set()
    robot, notices = _joined_always(robot, always)
    known = {i: value for i, value in known_columns(robot, parameters).items() if value and i != column}
    scale = min(known, default=None)
    carries = "" if scale is None else parameters[scale].name
    cleared = _cleared(robot, {parameters[i].name for i in known}, carries)
    bodies = {
        **cleared.bodies,
        body: replace(cleared.bodies[body], known={**cleared.bodies[body].known, "M": 1.0}),
    }
    return Normalisation(
        replace(cleared, bodies=bodies), Reference(body, column, scale=scale, loads=known), notices
    )


def _joined_always(robot: Mechanism, always: set[str]) -> tuple[Mechanism, tuple[Notice, ...]]:
    """Payloads of every log are part of the reference: their mass cannot be separated from it."""
    mounted = [name for name in robot.payloads if name in always]
    if not mounted:
        return robot, ()
    payloads = {
        name: replace(load, known={"M": 0.0}) if name in always else load
        for name, load in robot.payloads.items()
    }
    return replace(robot, payloads=payloads), (notice("payload-always", names=", ".join(mounted)),)


def _cleared(robot: Mechanism, names: set[str], scale: str) -> Mechanism:
    """What is known in kilograms is known no more: it acts through the column of 1/m."""

    def left(owner: str, known: Mapping[str, float]) -> dict[str, float]:
        return {
            symbol: 0.0 if f"{symbol}_{owner}" in names else value
            for symbol, value in known.items()
            if f"{symbol}_{owner}" != scale
        }

    return replace(
        robot,
        bodies={name: replace(body, known=left(name, body.known)) for name, body in robot.bodies.items()},
        payloads={
            name: replace(payload, known=left(name, payload.known))
            for name, payload in robot.payloads.items()
        },
        known={k: 0.0 if k in names else v for k, v in robot.known.items() if k != scale},
    )


def shown_name(parameter: Parameter, body: str) -> str:
    """Name of a parameter per unit mass of a body; `parameter.name` may carry the `_R` of grouped ones."""
    if parameter.owner == body and parameter.kind == "inertial":
        return f"{parameter.symbol}/M" + parameter.name.removeprefix(parameter.symbol)
    return f"{parameter.name}/M_{body}"


def shown_unit(unit: str) -> str:
    """Unit of a parameter per unit mass."""
    return _UNITS.get(unit, f"{unit}/kg")


def named(data: BaseSystem, reference: Reference | None) -> BaseSystem:
    """The same equations with parameters named per unit mass, as `MX/M_platform` in [m]."""
    if reference is None or reference.given:
        return data
    shown = []
    for i, parameter in zip(data.indices, data.system.parameters, strict=True):
        if i == reference.scale:
            name, unit = f"1/M_{reference.body}", "1/kg"
        else:
            name, unit = shown_name(parameter, reference.body), shown_unit(parameter.unit)
        shown.append(replace(parameter, name=name, unit=unit))
    return replace(data, system=replace(data.system, parameters=tuple(shown)))


def per_mass(
    values: Mapping[str, float], reference: Reference | None, parameters: Sequence[Parameter]
) -> dict[str, float]:
    """Standard values by name, divided by the reference mass; empty where that is not among them."""
    if reference is None:
        return dict(values)
    mass = values.get(f"M_{reference.body}")
    if not mass:
        return {}
    mass = mass / reference.mass
    scaled = {name: value / mass for name, value in values.items()}
    if reference.scale is not None:
        scaled[parameters[reference.scale].name] = 1.0 / mass
    return scaled


def with_mass(parts: EstimateParts, reference: Reference | None, system: System) -> EstimateParts:
    """Figures of a homogeneous system, and the reference mass itself in the place of 1/m.

    Args:
        parts: Of the estimate.
        reference: None where efforts act: nothing changes.
        system: Equations over the parameters seen, as the data gave them.
    """
    if reference is None:
        return parts
    figures = homogeneous_fit(system)
    parts = replace(parts, fit=replace(parts.fit, cost_C=figures.cost_C, sigma_W=figures.sigma_W))
    if reference.scale is None:
        return parts
    name = f"1/M_{reference.body}"
    listed = list(parts.parameters)
    at = next((k for k, parameter in enumerate(listed) if parameter.name == name), None)
    if at is None or listed[at].sigma is None or listed[at].value == 0.0:
        return parts
    inverse_mass = listed[at]
    listed[at] = _inverse(inverse_mass, f"M_{reference.body}")
    place = [k for k, p in enumerate(parts.parameters) if p.sigma is not None].index(at)
    factor = np.ones(len(parts.spread.covariance))
    factor[place] = -1.0 / inverse_mass.value**2
    spread = replace(parts.spread, covariance=parts.spread.covariance * np.outer(factor, factor))
    return replace(parts, parameters=tuple(listed), spread=spread)


def _inverse(inverse_mass: ParameterEstimate, name: str) -> ParameterEstimate:
    """The mass from 1/m, to first order."""
    mass = 1.0 / inverse_mass.value
    sigma = (inverse_mass.sigma or 0.0) * mass**2
    half = float(student_t95(np.array([inverse_mass.dof or 1.0]))[0]) * sigma
    return replace(
        inverse_mass,
        name=name,
        unit="kg",
        value=mass,
        sigma=sigma,
        sigma_rel_percent=100.0 * sigma / abs(mass),
        ci95=(mass - half, mass + half),
        prior=None if not inverse_mass.prior else 1.0 / inverse_mass.prior,
    )


def shown_values(values: Mapping[str, float], reference: Reference | None) -> dict[str, float]:
    """Values by the names that a result lists: the mass itself for 1/m."""
    if reference is None or reference.scale is None:
        return dict(values)
    inverse = f"1/M_{reference.body}"
    return {
        name if name != inverse else f"M_{reference.body}": value if name != inverse else 1.0 / value
        for name, value in values.items()
    }


def standard_name(shown: str, body: str) -> str:
    """`MX_platform` from `MX/M_platform`, `XX_tool` from `XX_tool/M_platform`; others as they are."""
    plain = shown.removesuffix("_R")
    head, slash, tail = plain.rpartition(f"/M_{body}")
    if not slash or tail:
        return plain
    head = head.removesuffix("_R")
    return head if "_" in head else f"{head}_{body}"


def unit_values(estimate: Estimate, body: str) -> tuple[dict[str, float], float | None]:
    """Standard parameters by name where the mass of `body` is one, and that mass if the result knows it."""
    mass = next((parameter.value for parameter in estimate.parameters if parameter.name == f"M_{body}"), None)
    values = {
        standard_name(parameter.name, body): parameter.value
        for parameter in estimate.parameters
        if parameter.name != f"M_{body}"
    }
    return {**values, f"M_{body}": 1.0}, mass


def predicting(
    problem: Problem, estimate: Estimate, mechanism: Mechanism
) -> tuple[Problem, Float[Array, "p"]]:
    """The same logs with every column on its own, and the result's values for them.

    Args:
        problem: Of the logs to predict.
        estimate: Per unit mass.
        mechanism: The robot as described, with what is known of payloads in kilograms.

    Returns:
        The problem, and standard parameters over the reference mass, shape (p,).
    """
    reference = reference_of(problem)
    body = reference.body
    values, mass = unit_values(estimate, body)
    names = [parameter.name for parameter in problem.parameters]
    chi = np.array([values.get(name, 0.0) for name in names])
    for i, known in known_columns(mechanism, problem.parameters).items():
        if names[i] in values or not known:
            continue
        if mass is None:
            raise InputError(
                f"'{names[i]}' is known as {known:g}, but the result gives parameters per unit mass",
                remedy="identify from logs with and without this payload: they determine the mass too",
            )
        chi[i] = known / mass
    case = replace(cast(Any, problem.case), reference=Reference(body, reference.column))
    plain = replace(problem, case=case, sources=())  # no rows yet
    sources = tuple(plain.rows_along(source.motion, source) for source in problem.sources)
    return replace(plain, sources=sources), chi


def reference_of(problem: Problem) -> Reference:
    """The mass on the measured side; problems with efforts have none."""
    reference: Reference | None = getattr(problem.case, "reference", None)
    if reference is None:
        raise TypeError("a problem with efforts has no reference mass")
    return reference
