"""Defaults of free motion for settings not in the experiment: those of rows whose noise is in the columns."""

from __future__ import annotations

from dynid.experiment.estimator_choice import noisy_column_defaults
from dynid.experiment.experiment import Experiment


def free_motion_defaults(experiment: Experiment) -> Experiment:
    """The experiment with what free motion prefers where the user has chosen nothing."""
    chosen = noisy_column_defaults(experiment)
    # The usual estimator of this model, so that a report need not explain it.
    return chosen.changed(estimator=str(chosen.estimator))
