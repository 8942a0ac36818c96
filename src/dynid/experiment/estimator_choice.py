"""Settings for rows whose noise is in the columns, where the experiment names none.

Rows without effort, 0 = W chi, contain the noise of the positions and nothing else: all rows of free motion,
and those of `inverse` with fewer motors than degrees of freedom. Least squares is biased towards zero there,
so `gtls` is the default. A low-pass on coordinates removes harmonics that the products in W need, so rows
are filtered and thinned instead. Oscillations repeat, but with other noise: standard deviations come from a
bootstrap over blocks of time, which takes no two of them for repeats of one error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.experiment.experiment import DEFAULT_ESTIMATOR, Experiment, LeftOpen, UncertaintySettings
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import jumping_coordinates
from dynid.motion.log import Log
from dynid.motion.settings import FilterSettings
from dynid.motion.spectrum import middles, spectrum
from dynid.projection.model import Model

# Low-pass of the rows in bandwidths of the motion: the main oscillations pass, most noise does not.
_ROWS_BANDWIDTHS = 2.0
_ROWS_SHARE = 0.8  # of half the kept rate
# Draws of the noise in W: their own error is a quarter of the variance that products of noise make.
_DRAWS = 4
# Standard deviations: no effort is measured, so only a significant residual is an error of the equations.
_EXCESS = 3.0
_FEWEST = 8.0  # kept rows a second, so that a run of some seconds still has many


def with_noisy_columns(experiment: Experiment, model: Model, mechanism: Mechanism) -> Experiment:
    """The experiment with the settings of noisy columns where rows have no effort and none are given."""
    if not rows_without_effort(experiment, model, mechanism):
        return experiment
    return noisy_column_defaults(experiment)


def noisy_column_defaults(experiment: Experiment) -> Experiment:
    """`gtls` with a bootstrap, where the user has chosen nothing."""
    estimator = LeftOpen("gtls") if isinstance(experiment.estimator, LeftOpen) else experiment.estimator
    uncertainty = experiment.uncertainty
    if uncertainty.left_open:
        # Plain total least squares comes with the deviations of its paper.
        uncertainty = UncertaintySettings("classical" if estimator == "tls" else "bootstrap")
    options = dict(experiment.estimator_options)
    if estimator == "gtls":
        options = {"centred": True, "draws": _DRAWS, "excess": _EXCESS, **options}
    return experiment.changed(estimator=estimator, estimator_options=options, uncertainty=uncertainty)


def noisy_column_filter(logs: Sequence[Log], asked: FilterSettings) -> FilterSettings:
    """Coordinates as logged unless a cutoff is given; rows thinned to twice the motion's bandwidth."""
    kind = "none" if asked.cutoff is None else asked.kind
    velocity = "derived" if asked.velocity == "auto" else asked.velocity
    decimate = asked.decimate or _decimation(logs)
    return asked.changed(kind=kind, velocity=velocity, decimate=decimate)


def filter_for(
    logs: Sequence[Log], experiment: Experiment, model: Model, mechanism: Mechanism
) -> FilterSettings:
    """The filter of `noisy_column_filter` where rows have no effort, else the one asked for.

    Friction that jumps with the sign of a velocity needs a velocity that is low-passed.
    """
    if jumping_coordinates(mechanism) or not rows_without_effort(experiment, model, mechanism):
        return experiment.filter
    return noisy_column_filter(logs, experiment.filter)


def _decimation(logs: Sequence[Log]) -> int:
    """Keep one row in so many: for the bandwidth of the median run, which no fast or slow run sets alone."""
    runs = [(log, part) for log in logs for part in middles(log.segments, log.dt)]
    bands = np.array([spectrum(log.q[part], log.dt).motion_bandwidth for log, part in runs])
    rate = 1.0 / max(log.dt for log in logs)
    if np.isnan(bands).all():
        return 1
    band = float(np.nanmedian(bands))
    kept = max(_FEWEST, 2.0 * _ROWS_BANDWIDTHS * band / _ROWS_SHARE)
    return max(1, round(rate / kept))


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


def free_motion_defaults(experiment: Experiment) -> Experiment:
    """The experiment with what free motion prefers where the user has chosen nothing."""
    chosen = noisy_column_defaults(experiment)
    # The usual estimator of this model, so that a report need not explain it.
    return chosen.changed(estimator=str(chosen.estimator))
