"""How a result was obtained: every choice in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dynid.checks.load_text import load_words
from dynid.experiment.estimator_choice import estimator_words
from dynid.problem import Problem

if TYPE_CHECKING:
    from dynid.fit import Fit


def choices_of(fit: Fit, checked: Mapping[str, str], gate: Mapping[str, str]) -> dict[str, str]:
    """Every choice that was made from the data.

    Args:
        fit: Parameters and where they come from.
        checked: What the checks found.
        gate: What cross-validation and gate found.
    """
    return {
        **_flow(fit.problem),
        **estimator_words(fit.experiment, fit.problem.model, fit.problem.mechanism),
        "uncertainty": fit.parts.spread.words,
        **fit.choices,
        **({} if fit.standard is None else fit.standard.choices),
        **checked,
        **gate,
        **({} if fit.refined is None else {"refinement": fit.refined.words}),
        **load_words(fit.parts, fit.problem.loaded_bodies),
    }


def _flow(problem: Problem) -> dict[str, str]:
    """Choices of logs, filters and rows; those that differ between logs carry the log's name."""
    rows = ", ".join(dict.fromkeys(problem.directions.group_names))
    own = problem.model.effort_rows and problem.case.has_motors
    shared = own and np.all(np.count_nonzero(problem.directions.effort_map, axis=1) > 1)
    choices: dict[str, str] = {"equations": f"J_a^T tau along {rows}" if shared else rows}
    for log, plan, source in zip(problem.logs, problem.plans, problem.sources, strict=True):
        for name, text in {**log.choices, **plan.choices, **source.choices}.items():
            if problem.case.hides(name):
                continue
            if choices.setdefault(name, text) != text:
                choices[f"{name} ({log.name})"] = text
    return choices
