"""Reference rows that judge all candidates: a fixed filter, no mask at reversals.

Noise of the reference must be small: a fit that is biased by noise predicts noisy rows best. So rows are
low-passed at a few bandwidths of the motion, or where positions fall below their noise. Velocities are
those of the rule: the other source must be better even on these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.experiment.experiment import Experiment
from dynid.motion.choose import position_spectrum
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.motion.spectrum import Spectrum

# Of the motion's bandwidth: the zero-phase Butterworth of order 4 leaves the motion unchanged to 1e-6.
_COORDINATES = 8.0
_ROWS = 4.0


def bandwidth(spectra: Sequence[Spectrum]) -> float:
    """Of the fastest log, in [Hz]; NaN where nothing moves."""
    return max((one.motion_bandwidth for one in spectra if one.moving.any()), default=float("nan"))


def spectra_of(logs: Sequence[Log]) -> list[Spectrum]:
    """Of the positions of each log."""
    return [position_spectrum(log) for log in logs]


def reference(experiment: Experiment, spectra: Sequence[Spectrum], plans: Sequence[MotionPlan]) -> Experiment:
    """The experiment whose rows judge: its filter and mask are the same for all candidates.

    Args:
        experiment: As the user gave it; a cutoff and velocities that are given stay.
        spectra: Of the positions of each log.
        plans: Chosen by the rules for single settings.
    """
    band, cutoff = bandwidth(spectra), plans[0].cutoff
    own = experiment.filter
    if cutoff is not None and own.cutoff is None and np.isfinite(band):
        own = own.changed(cutoff=min(cutoff, _COORDINATES * band))
    if own.rows is None and own.cutoff is not None and np.isfinite(band):
        sink = max(float(np.median(one.sink[one.moving])) for one in spectra if one.moving.any())
        # The kept rate is four cutoffs by default: rows below 1.5 cutoffs do not alias.
        own = own.changed(rows=min(_ROWS * band, max(sink, band), 1.5 * own.cutoff))
    own = own.changed(velocity=plans[0].velocity)
    return experiment.changed(filter=own, mask=experiment.mask.changed(speed=0.0))
