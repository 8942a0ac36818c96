"""The estimator if the experiment names none.

If some rows have no effort (`inverse` with fewer motors than degrees of freedom), their noise is in the
columns. Least squares is then biased towards zero, so `gtls` is the default.
"""

from __future__ import annotations

from dynid.experiment.experiment import DEFAULT_ESTIMATOR, Experiment, LeftOpen
from dynid.mechanism.mechanism import Mechanism
from dynid.projection.contract import Model


def with_noisy_columns(experiment: Experiment, model: Model, mechanism: Mechanism) -> Experiment:
    """The experiment with `gtls` where rows have no effort; gains have a likelihood of their own."""
    if not isinstance(experiment.estimator, LeftOpen) or experiment.gains is not None:
        return experiment
    if not rows_without_effort(experiment, model, mechanism):
        return experiment
    return experiment.changed(estimator=LeftOpen("gtls"))


def rows_without_effort(experiment: Experiment, model: Model, mechanism: Mechanism) -> tuple[str, ...]:
    """Names of the rows in use in which no effort acts, if efforts act in others."""
    directions = model.directions(mechanism)
    asked = experiment.efforts
    return tuple(
        name
        for k, (name, homogeneous) in enumerate(zip(directions.names, directions.homogeneous, strict=True))
        if homogeneous and (asked is None or name in asked or k + 1 in asked)
    )


def estimator_words(experiment: Experiment, model: Model, mechanism: Mechanism) -> dict[str, str]:
    """Why an estimator was chosen, where nobody did and it is not the usual one."""
    if not isinstance(experiment.estimator, LeftOpen) or experiment.estimator == DEFAULT_ESTIMATOR:
        return {}
    rows = ", ".join(rows_without_effort(experiment, model, mechanism))
    why = f"no effort acts in {rows}, so position noise would bias least squares towards zero"
    return {"estimator": f"{experiment.estimator}, chosen: {why}"}
