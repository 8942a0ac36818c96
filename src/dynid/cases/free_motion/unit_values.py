"""From a result per unit mass back to the equations of a robot on which no effort acts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.cases.free_motion.reference import reference_of, with_reference
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import known_columns
from dynid.problem import Problem
from dynid.projection.internal import Reference
from dynid.statistics.estimate import Estimate


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
    plain = with_reference(problem, Reference(body, reference.column))
    sources = tuple(plain.rows_along(source.motion, source) for source in problem.sources)
    return replace(plain, sources=sources), chi
