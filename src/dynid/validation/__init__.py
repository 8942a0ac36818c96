"""Errors on samples that were not fitted, their causes, the verdict, and comparisons of ways to fit.

To add a test of the description: a function that yields `Hypothesis` objects (`hypotheses.py` has the class
and most of them), and one line in CORRECTIONS of `__init__.py`. Each is fitted to the logs and ranked
(`causes.py`, `ranking.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynid.common.registry import Registry

if TYPE_CHECKING:
    from dynid.mechanism.mechanism import Mechanism
    from dynid.motion.log import Log
    from dynid.statistics.estimate import ResidualTest
    from dynid.validation.hypotheses import Hypothesis

    # Description, logs and linear tests of the residuals in; out: descriptions or logs without one fault.
    Hypotheses = Callable[[Mechanism, tuple[Log, ...], Sequence[ResidualTest]], Iterable[Hypothesis]]


@dataclass(frozen=True)
class Correction:
    """One kind of fault of a description or its logs, and when it is tried.

    Attributes:
        hypotheses: The function, or where it is: "module:attribute".
        poor: Only where predictions are so poor that columns may be wrong.
        impossible: Also where the parameters are not physical: a gantry fits with any sign of an effort.
        exact: Only where known values are exact, not estimates of the robot without its load.
    """

    hypotheses: str | Hypotheses
    poor: bool = False
    impossible: bool = False
    exact: bool = False


# Cheap ones first; those of one code follow each other.
CORRECTIONS: Registry[Correction] = Registry(
    "dynid.corrections",
    {
        # Only where positions sweep far: seldom, and then decisive.
        "position units": Correction("dynid.validation.hypotheses:position_units"),
        "effort units": Correction("dynid.validation.columns:effort_units", poor=True, impossible=True),
        "delays": Correction("dynid.validation.hypotheses:delays"),
        "gains": Correction("dynid.validation.hypotheses:gains"),
        "drive terms": Correction("dynid.validation.hypotheses:drive_terms"),
        "passive friction": Correction("dynid.validation.hypotheses:passive_friction"),
        "dimension units": Correction("dynid.validation.dimensions:dimension_units"),
        "gravity": Correction("dynid.validation.hypotheses:other_gravity"),
        "clocks": Correction("dynid.validation.hypotheses:other_clocks"),
        "known values": Correction("dynid.validation.hypotheses:known_values", exact=True),
        "payload labels": Correction("dynid.validation.hypotheses:payload_labels"),
        "branches": Correction("dynid.validation.branches:branch_hypotheses"),
        "effort signs": Correction("dynid.validation.columns:effort_signs", poor=True, impossible=True),
        "position signs": Correction("dynid.validation.columns:position_signs"),
        "position orders": Correction("dynid.validation.columns:position_orders", poor=True),
    },
    gives=("dynid.validation:Correction",),
)

__all__ = ["CORRECTIONS", "Correction"]
