"""Stretches of logs that a warning would leave out are tried, as every other correction is.

Fits with and without these stretches predict the same samples: parts of the logs beside them, which are left
out of both fits in turn. A stretch is left out only if the efforts are then predicted better; otherwise it
stays, and the warning becomes a note without a change: it is not the cause of poor predictions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.common.catalogue import Severity
from dynid.common.errors import DynidError, InputError
from dynid.common.notices import Notice
from dynid.fit import Fit
from dynid.motion.log import Log
from dynid.statistics.estimate import Estimate
from dynid.validation.contradiction import calm_logs, stretches_of
from dynid.validation.crossvalidation import HeldOut, cross_validate
from dynid.validation.folds import fold_of, folds

_GAIN = 0.03  # of the error, mean over the efforts: less is no gain, and would depend on the last digits
_KEPT = (
    "check for a contact or collision there. If the load changed there, use one log for each load (`from:`"
    " and `to:` in its entry) and give its `payload:`"
)


def with_tried_stretches(fit: Fit, estimate: Estimate) -> Estimate:
    """The estimate whose warnings leave out only what predicts better without it."""
    tried = (_tried(fit, item) if stretches_of(item) else item for item in estimate.warnings)
    return replace(estimate, warnings=tuple(tried))


def _tried(fit: Fit, item: Notice) -> Notice:
    try:
        before, after = _errors(fit, calm_logs(tuple(fit.task.logs), item))
    except DynidError as error:
        why = error.text if isinstance(error, InputError) else error
        text = f"{item.text}; to leave it out could not be tried: {why}"
        return replace(item, text=text, remedy=_KEPT, change={})
    parts = {name: after.by_effort[name] / old for name, old in before.by_effort.items() if old > 0.0}
    worst = min(parts, key=lambda name: parts[name], default="")
    if worst and np.mean(list(parts.values())) < 1.0 - _GAIN:
        was, now = before.by_effort[worst], after.by_effort[worst]
        text = f"if it is left out, the rms error of '{worst}' beside it is {now:.2g} %"
        return replace(item, text=f"{item.text}; {text}, else {was:.2g} % (parts left out of the fit)")
    text = f"{item.text}; if it is left out, other parts of the logs are predicted no better"
    return replace(item, text=text, remedy=_KEPT, change={}, severity=Severity.NOTE)


def _errors(fit: Fit, calm: tuple[Log, ...]) -> tuple[HeldOut, HeldOut]:
    """Errors on parts of the calm logs, of fits with the stretches between them and without."""
    task, logs, plain = fit.task, tuple(fit.task.logs), fit.experiment.changed(gains=None, refine=None)
    without = folds(calm)
    with_them = []
    for part in without:
        held = [
            (i, a, b) for i, log in zip(part.held_out_of, part.held_out, strict=True) for a, b in log.segments
        ]
        whole = fold_of(part.name, logs, held)
        with_them.append(replace(part, fitted=whole.fitted, fitted_of=whole.fitted_of))
    plans, progress = fit.problem.plans, task.progress
    before, after = (
        cross_validate(task.mechanism, parts, plain, plans, progress).total for parts in (with_them, without)
    )
    return before, after
