"""What remains unexplained where no cause was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dynid.checks.residual_tests import usual_residuals
from dynid.common.catalogue import CATALOGUE
from dynid.common.notices import Notice, notice
from dynid.fit import Fit
from dynid.statistics.estimate import Estimate
from dynid.statistics.estimate_parts import JointVerdict, model_error
from dynid.validation.likelihood import EXPLAINS

_TIMES = 3.0  # times its noise floor: an effort that is off by more without a cause is a warning
_MISFIT = 2.0  # percent of the peak: a model that leaves more lacks something that matters
# Warnings of the linear tests, and what they would be in words.
_SUSPECTS = {code: entry.suspect for code, entry in CATALOGUE.items() if entry.suspect}


def usual_errors(fit: Fit, notices: Sequence[Notice]) -> Mapping[str, float]:
    """Residual of each effort beside bursts, in its unit; empty without bursts."""
    found = any(note.code == "burst" for note in notices)
    return usual_residuals(fit.as_linear) if found else {}


def misfit_notices(
    estimate: Estimate, notices: Sequence[Notice], usual: Mapping[str, float]
) -> Iterator[Notice]:
    """Residuals larger than the noise without a single cause: what may be missing, with the flagged suspects.

    Logs that are fitted to the noise contradict no model: then they are too few for the unseen motion. Nor do
    logs that are fitted to the noise but for a contact.

    Args:
        estimate: With its errors on unseen data.
        notices: Warnings so far.
        usual: Residual of each effort without its bursts, in its unit; empty: there are none.
    """
    tests = estimate.residual_tests
    rubbing = {hit.about for hit in tests if hit.test == "speed" and hit.warned and hit.value > EXPLAINS}

    def missed(row: JointVerdict) -> bool:
        error = min(row.error_rms, usual.get(row.name, np.inf))  # a contact is not what a model lacks
        large = model_error(error, row.noise_floor, row.peak) > _MISFIT
        return large and error > _TIMES * row.noise_floor and row.name not in rubbing

    rows = [row for row in estimate.verdict.joints if missed(row)]
    if not rows or any(note.code == "model-misfit" for note in notices):
        return
    worst = max(rows, key=lambda row: row.error_percent)
    times = worst.error_rms / max(worst.noise_floor, 1e-6 * worst.error_rms, 1e-300)
    fitted = [group.rms for group in estimate.fit.groups if group.name == worst.name]
    fits = bool(fitted) and max(fitted) < _TIMES * worst.noise_floor
    flagged = [_SUSPECTS[note.code] for note in notices if note.code in _SUSPECTS]
    resembled = f"; the residuals resemble {', or '.join(dict.fromkeys(flagged))}, but none explains them"
    yield notice(
        "not-general" if fits else "model-misfit",
        row=worst.name,
        error=worst.error_rms,
        unit=worst.unit,
        times=times,
        percent=worst.error_percent,
        also=resembled if flagged and not fits else "",
    )
