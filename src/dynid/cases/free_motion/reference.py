"""The reference mass of a problem of free motion."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from dynid.problem import Problem
from dynid.projection.internal import Reference


def reference_of(problem: Problem) -> Reference:
    """The mass on the measured side; problems with efforts have none."""
    reference: Reference | None = getattr(problem.case, "reference", None)
    if reference is None:
        raise TypeError("a problem with efforts has no reference mass")
    return reference


def with_reference(problem: Problem, reference: Reference) -> Problem:
    """The same logs with another measured side; no rows yet."""
    return replace(problem, case=replace(cast(Any, problem.case), reference=reference), sources=())
