"""How a result was obtained: every choice in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.experiment.estimator_choice import estimator_words
from dynid.problem import Problem
from dynid.report.numbers import sigma_text, value_text
from dynid.statistics.assemble import EstimateParts

if TYPE_CHECKING:
    from dynid.fit import Fit

_FIRST = ("MX", "MY", "MZ")


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
    has_efforts = problem.model.effort_rows and problem.case.has_motors
    shared = has_efforts and np.all(np.count_nonzero(problem.directions.effort_map, axis=1) > 1)
    choices: dict[str, str] = {"equations": f"J_a^T tau along {rows}" if shared else rows}
    for log, plan, source in zip(problem.logs, problem.plans, problem.sources, strict=True):
        for name, text in {**log.choices, **plan.choices, **source.choices}.items():
            if problem.case.hides(name):
                continue
            if choices.setdefault(name, text) != text:
                choices[f"{name} ({log.name})"] = text
    return choices


# Mass and centre of mass of a load as text, with standard deviations from the joint covariance.


def load_words(parts: EstimateParts, bodies: Sequence[str]) -> dict[str, str]:
    """`load box` -> `2.6002 +- 0.0013 kg, centre of mass (12.0, -8.0, 63.0) +- (0.1, 0.1, 0.2) mm ..`.

    c = h / M, sigma_c = |dh / M - c dM / M|: h and M err together.

    Args:
        parts: Parameters and their covariance.
        bodies: Tools and payloads; those whose mass or first moments are regrouped are left out.
    """
    fitted = [parameter for parameter in parts.parameters if parameter.sigma is not None]
    place: Mapping[str, int] = {parameter.name: k for k, parameter in enumerate(fitted)}
    texts = {}
    for body in bodies:
        mass = place.get(f"M_{body}")
        if mass is None or fitted[mass].value <= 0:
            continue
        kg, sigma = fitted[mass].value, fitted[mass].sigma
        text = f"{value_text(kg, sigma)} +- {sigma_text(sigma)} kg"
        moments = [place.get(f"{symbol}_{body}") for symbol in _FIRST]
        if None not in moments:
            rows = np.zeros((3, len(fitted)))
            centre = np.array([fitted[k].value for k in moments if k is not None]) / kg
            for i, k in enumerate(moments):
                rows[i, k], rows[i, mass] = 1.0 / kg, -centre[i] / kg
            spread = 1e3 * np.sqrt(np.einsum("ip,pq,iq->i", rows, parts.covariance, rows))
            text += f", centre of mass ({_listed(1e3 * centre)}) +- ({_listed(spread)}) mm in its frame"
        texts[f"load {body}"] = text
    return texts


def _listed(values: Float[Array, "3"]) -> str:
    return ", ".join(f"{x:.2f}" for x in values)
