"""Defaults of free motion for settings not in the experiment: estimator, uncertainty, filters.

Free motion has no measured effort: the noise is in the columns. Its rows are filtered and decimated, not its
coordinates, because a low-pass on them removes harmonics that the products in W need. The estimator is
`gtls`, with standard deviations from a bootstrap over blocks of time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.experiment.experiment import Experiment, LeftOpen, UncertaintySettings
from dynid.motion.choose import longest
from dynid.motion.log import Log
from dynid.motion.settings import FilterSettings
from dynid.motion.spectrum import spectrum

# Low-pass of the rows in bandwidths of the motion: the main oscillations pass, most noise does not.
_ROWS_BANDWIDTHS = 2.0
_ROWS_SHARE = 0.8  # of half the kept rate
# Draws of the noise in W: their own error is a quarter of the variance that products of noise make.
_DRAWS = 4
# Standard deviations: no effort is measured, so only a significant residual is an error of the equations.
_EXCESS = 3.0
_FEWEST = 8.0  # kept rows a second, so that a run of some seconds still has many


def free_motion_defaults(experiment: Experiment) -> Experiment:
    """The experiment with what free motion prefers where the user has chosen nothing."""
    estimator = "gtls" if isinstance(experiment.estimator, LeftOpen) else experiment.estimator
    uncertainty = experiment.uncertainty
    if uncertainty.left_open:
        # Plain total least squares comes with the deviations of its paper.
        uncertainty = UncertaintySettings("classical" if estimator == "tls" else "bootstrap")
    options = dict(experiment.estimator_options)
    if estimator == "gtls":
        options = {"centred": True, "draws": _DRAWS, "excess": _EXCESS, **options}
    return experiment.changed(estimator=estimator, estimator_options=options, uncertainty=uncertainty)


def free_motion_filter(logs: Sequence[Log], asked: FilterSettings) -> FilterSettings:
    """Coordinates as logged unless a cutoff is given; rows thinned to twice the motion's bandwidth."""
    kind = "none" if asked.cutoff is None else asked.kind
    velocity = "derived" if asked.velocity == "auto" else asked.velocity
    decimate = asked.decimate or _decimation(logs)
    return asked.changed(kind=kind, velocity=velocity, decimate=decimate)


def _decimation(logs: Sequence[Log]) -> int:
    found = [spectrum(longest(log, log.q), log.dt) for log in logs]
    bands = [one.motion_bandwidth for one in found if one.moving.any()]
    rate = 1.0 / max(log.dt for log in logs)
    if not bands:
        return 1
    kept = max(_FEWEST, 2.0 * _ROWS_BANDWIDTHS * float(np.max(bands)) / _ROWS_SHARE)
    return max(1, round(rate / kept))
