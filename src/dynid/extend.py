"""What packages that extend dynid are made of, under one name: `from dynid.extend import Table`.

`docs/howto/extend.md` has an example of each. A module is loaded when one of its names is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynid.case import Case as Case
    from dynid.common.notices import Notice as Notice
    from dynid.estimator.estimator import Estimator as Estimator
    from dynid.estimator.wls import unit_weights as unit_weights
    from dynid.exporters.contract import Exported as Exported
    from dynid.mechanism.drive_terms import DriveTerm as DriveTerm
    from dynid.motion.table import Table as Table
    from dynid.projection.model import Model as Model
    from dynid.projection.model import rows_of as rows_of
    from dynid.projection.power import power_directions as power_directions
    from dynid.projection.structure import structural_factor as structural_factor
    from dynid.report.page import Section as Section
    from dynid.unknown import Settled as Settled
    from dynid.unknown import Unknown as Unknown
    from dynid.validation import Correction as Correction
    from dynid.validation.hypotheses import Hypothesis as Hypothesis

_HOME = {
    "Case": "dynid.case",
    "Correction": "dynid.validation",
    "DriveTerm": "dynid.mechanism.drive_terms",
    "Estimator": "dynid.estimator.estimator",
    "Exported": "dynid.exporters.contract",
    "Hypothesis": "dynid.validation.hypotheses",
    "Model": "dynid.projection.model",
    "Notice": "dynid.common.notices",
    "Section": "dynid.report.page",
    "Settled": "dynid.unknown",
    "Table": "dynid.motion.table",
    "Unknown": "dynid.unknown",
    "power_directions": "dynid.projection.power",
    "rows_of": "dynid.projection.model",
    "structural_factor": "dynid.projection.structure",
    "unit_weights": "dynid.estimator.wls",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dynid.extend' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
