"""How was this result made, and from what?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.page import Section, render
from dynid.report.quality import other_choices
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section:
    """Choices made from the data, options, versions and hashes of the inputs."""
    provenance = dict(estimate.provenance)
    inputs = provenance.pop("inputs", [])
    facts = list(_flat(provenance))
    choices, tried = other_choices(estimate), estimate.tried
    body = render("provenance.html", choices=choices, tried=tried, inputs=inputs, facts=facts)
    return Section("provenance", "Choices and provenance", body)


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested facts as (`options.model`, text) pairs; unset ones are omitted."""
    facts: list[tuple[str, str]] = []
    for key, value in tree.items():
        if isinstance(value, Mapping):
            facts += _flat(value, f"{prefix}{key}.")
        elif value is not None and value != [] and value != ():
            facts.append((f"{prefix}{key}", str(value)))
    return facts
