"""Windows of energy: rows are integrated over windows instead of being low-passed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynid.case import Case
from dynid.conditioning.lowpass import RowFilter, window_filter
from dynid.experiment.experiment import Experiment
from dynid.motion.plan import MotionPlan
from dynid.projection.quadrature import DEFAULT, quadrature_named


class Energy(Case):
    """Model `energy`."""

    def filters(self, plans: Sequence[MotionPlan], experiment: Experiment) -> tuple[RowFilter, ...]:
        """Windows as set, else as long as two kept rows."""
        quadrature = quadrature_named(_integration(experiment))
        overlap = bool(experiment.energy.get("overlap", False))
        asked = experiment.energy.get("window")
        return tuple(
            window_filter(plan.dt, float(asked or 2.0 * plan.decimate * plan.dt), overlap, quadrature)
            for plan in plans
        )

    def row_options(self, experiment: Experiment) -> dict[str, Any]:
        """How power is integrated."""
        return {"integration": _integration(experiment)}


def _integration(experiment: Experiment) -> str:
    return str(experiment.energy.get("integration", DEFAULT))


ENERGY = Energy()
