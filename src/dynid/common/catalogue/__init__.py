"""Every warning that dynid can give, by code: severity, meaning, text, remedy, rank and traits.

To add one: an entry in the file of its stage, a call `notice(code, ...)` with the values of its fields, and
`python -m dynid.common.catalogue > docs/reference/warnings.md`. Sets of codes are derived from the entries.
"""

from __future__ import annotations

from collections.abc import Mapping

from dynid.common.catalogue.description import DESCRIPTION
from dynid.common.catalogue.entry import MEANING, RANKS, Entry, Rank, Severity, Template, Trait
from dynid.common.catalogue.fit import FIT
from dynid.common.catalogue.logs import LOGS
from dynid.common.catalogue.physics import PHYSICS
from dynid.common.catalogue.poses import POSES, SENSORS
from dynid.common.catalogue.residuals import RESIDUALS
from dynid.common.catalogue.use import SIMULATION, VALIDATION

# Stages in the order of processing, as on the reference page.
STAGES: Mapping[str, Mapping[str, Entry]] = {
    "Description": DESCRIPTION,
    "Logs": LOGS,
    "Poses of closed robots and cables": POSES,
    "Fit": FIT,
    "Force sensors and multibody tables": SENSORS,
    "Physical consistency": PHYSICS,
    "Uncertainty and residuals": RESIDUALS,
    "Validation, prediction and comparison": VALIDATION,
    "Simulation and excitation": SIMULATION,
}
CATALOGUE: Mapping[str, Entry] = {code: entry for stage in STAGES.values() for code, entry in stage.items()}


def codes_with(trait: Trait) -> frozenset[str]:
    """All codes with a trait."""
    return frozenset(code for code, entry in CATALOGUE.items() if trait in entry.traits)


__all__ = [
    "CATALOGUE",
    "MEANING",
    "RANKS",
    "STAGES",
    "Entry",
    "Rank",
    "Severity",
    "Template",
    "Trait",
    "codes_with",
]
