"""The robot without its load: known from a saved result, but not exactly.

C_l = C(rows) + K C_0 K^T,    K = W_l^+ W_0        (see `prediction.unloaded`)
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dynid.fit import Fit
from dynid.prediction.unloaded import Unloaded, check_loaded, unloaded_model
from dynid.statistics.assemble import EstimateParts, widened
from dynid.statistics.effort_prediction import covariance_root
from dynid.unknown import Settled, Task


def settle_unloaded(task: Task) -> Settled:
    """The robot with the values of its result without load, and what these are not sure of."""
    check_loaded(task.logs, task.experiment)
    model = unloaded_model(task.mechanism, task.experiment)
    known = replace(
        task,
        mechanism=model.robot,
        logs=tuple(model.logs(task.logs)),
        held_out=tuple(model.logs(task.held_out)),
    )
    words = {"robot without load": model.words}
    widen = partial(_widened, model)
    return Settled(known, words, model.notices, widen=widen, known_errors=model.errors)


def _widened(known: Unloaded, parts: EstimateParts, fit: Fit) -> EstimateParts:
    """The parameters with what the result without load is not sure of."""
    root = known.errors.in_estimate(fit.system, fit.data.S, fit.solution.weights)
    wider = widened(parts, root @ root.T, known.errors.dof, "the covariance of the result without load")
    fitted = [k for k, parameter in enumerate(parts.parameters) if parameter.sigma is not None]
    return replace(wider, shared=-root[fitted] @ covariance_root(known.estimate.covariance).T)
