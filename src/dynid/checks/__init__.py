"""The checks of a finished fit as a list of questions, in the order in which they are answered.

A check is a function `Finished -> notices`; tests of residuals, and choices as pairs (name, words), may be
among them. To add one: a function in a file here, and one line in CHECKS. What only a special case must be
asked is listed by that case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynid.common.registry import Registry

if TYPE_CHECKING:
    from dynid.checks.check import Check

CHECKS: Registry[Check] = Registry(
    "dynid.checks",
    {
        "Are efforts in the wrong columns, or with the wrong sign?": "dynid.checks.effort_order:misplaced",
        "Do all efforts have the wrong sign?": "dynid.checks.effort_order:reversed_signs",
        "Are there options without effect?": "dynid.checks.logs:options",
        "Do the data accept the ties?": "dynid.checks.tie_test:ties",
        "What was noticed while the parameters were found?": "dynid.checks.logs:noticed",
        "Do the residuals contain a known fault?": "dynid.checks.residuals:residuals",
        "Do measured poses contradict the cables?": "dynid.checks.cable_dimensions:poses",
        "What must be asked of this special case?": "dynid.checks.logs:special_case",
        "Does the model explain the efforts?": "dynid.checks.estimate:poor_fit",
        "Do the efforts contain rotor inertia?": "dynid.checks.estimate:rotors",
        "Are parameters negative that cannot be?": "dynid.checks.estimate:negative",
        "Which parameters are indistinguishable from zero?": "dynid.checks.estimate:weak",
        "Was a validation log used for the fit?": "dynid.checks.estimate:reused",
        "Is the scale of the parameters plausible?": "dynid.checks.plausible_masses:scale",
    },
    gives=("builtins:list", "builtins:tuple"),
)

__all__ = ["CHECKS"]
