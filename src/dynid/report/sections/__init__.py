"""The report as a list of sections, each answering one question about an estimate.

A section is a function `Estimate -> Section | None`; None leaves it out. To add one: a file
here, a template of the same name, and one line in SECTIONS.
"""

from __future__ import annotations

from collections.abc import Callable

from dynid.report.sections import (
    efforts,
    history,
    parameters,
    provenance,
    residuals,
    standard,
    tension,
    tests,
    unknown,
    validation,
    verdict,
    warnings,
)
from dynid.report.sections.section import Section
from dynid.statistics.estimate import Estimate

SECTIONS: tuple[Callable[[Estimate], Section | None], ...] = (
    verdict.section,
    warnings.section,
    parameters.section,
    unknown.section,
    standard.section,
    efforts.section,
    tension.section,
    residuals.section,
    tests.section,
    history.section,
    validation.section,
    provenance.section,
)

__all__ = ["SECTIONS", "Section"]
