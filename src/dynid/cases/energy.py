"""Windows of energy: rows are integrated over windows instead of being low-passed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynid.case import Case
from dynid.conditioning.lowpass import RowFilter, window_filter
from dynid.experiment.experiment import Experiment
from dynid.motion.plan import MotionPlan
from dynid.projection.quadrature import quadrature_named


class Energy(Case):
    """Model `energy`."""

    def filters(self, plans: Sequence[MotionPlan], experiment: Experiment) -> tuple[RowFilter, ...]:
        """Windows as set, else as long as two kept rows."""
        asked = experiment.energy
        quadrature = quadrature_named(asked.integration)
        return tuple(
            window_filter(plan.dt, asked.window or 2.0 * plan.decimate * plan.dt, asked.overlap, quadrature)
            for plan in plans
        )

    def row_options(self, experiment: Experiment) -> dict[str, Any]:
        """How power is integrated."""
        return {"integration": experiment.energy.integration}


ENERGY = Energy()
