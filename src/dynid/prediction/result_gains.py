"""Drive gains applied to efforts as logged: nominal gains, or those of a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.estimator.gain_settings import GAIN, GainSettings
from dynid.experiment.experiment import Experiment
from dynid.motion.log import Log
from dynid.statistics.estimate import Estimate


def applied(log: Log, factors: Float[Array, "a"]) -> Log:
    """The log with its effort columns multiplied by drive gains."""
    return replace(log, tau=log.tau * factors)


def nominal_factors(motors: tuple[str, ...], settings: GainSettings) -> Float[Array, "a"]:
    """What logged efforts are multiplied by before anything is found."""
    return np.array(settings.nominal_of(motors))


def with_result_gains(logs: Sequence[Log], estimate: Estimate, experiment: Experiment) -> list[Log]:
    """Logs of a result whose gains were found: its gains applied to the efforts as logged."""
    settings = experiment.gains
    if settings is None:
        return list(logs)
    found = {one.name: one.value for one in estimate.parameters if one.name.startswith(f"{GAIN}_")}
    scaled = []
    for log in logs:
        factors = nominal_factors(log.effort_names, settings)
        for k, motor in enumerate(log.effort_names):
            own = found.get(f"{GAIN}_{motor}")
            if own is not None:
                factors[k] = own
            elif settings.common and motor in settings.open_motors(log.effort_names):
                factors[k] *= found[f"{GAIN}_common"]
        scaled.append(applied(log, factors))
    return scaled
