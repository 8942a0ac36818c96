"""Can the estimate be right? Unexplained efforts, signs, weak parameters, logs used twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dynid.checks.check import Finished
from dynid.checks.scale import effort_shares
from dynid.common.notices import Notice, notice
from dynid.mechanism.drive_terms import POSITIVE
from dynid.statistics.estimate import Fit, ParameterEstimate, Validation

_WIDER = 1.6  # times an interval of 95 %: 3.1 sigma, one of a thousand parameters that are zero
_POSITIVE = (*POSITIVE, "M")
_WEAK_PERCENT = 100.0
_RELEVANT = 0.05  # of the rms of an effort: as much as a good prediction may be wrong
_SMALL = 0.05  # of what an entry of a body could be: known as well as a value to 5 %


def poor_fit(finished: Finished) -> Iterable[Notice]:
    """A fit that leaves half of the efforts unexplained."""
    return unexplained(finished.fit.parts.fit, finished.validation)


def negative(finished: Finished) -> Iterable[Notice]:
    """Friction, rotor inertia and mass cannot be negative."""
    return _negative(finished.fit.parts.parameters)


def weak(finished: Finished) -> Iterable[Notice]:
    """Parameters that the data hardly determine."""
    fit = finished.fit
    shares = effort_shares(fit.data.system)
    return _weak(fit.parts.parameters, shares, fit.experiment.estimator == "consistent")


def reused(finished: Finished) -> Iterable[Notice]:
    """Logs that were used for the fit are no independent validation."""
    names = [record.log for record in finished.validation if not record.independent]
    if names:
        yield notice("validation-not-independent", names=", ".join(names))


def unexplained(fit: Fit, validation: Sequence[Validation]) -> Iterable[Notice]:
    """A fit that leaves half of the efforts unexplained, if no validation log is predicted better."""
    unseen = [record for record in validation if record.independent]
    if not fit.poor or any(record.residual_percent < fit.residual_percent / 2.0 for record in unseen):
        return
    worst = max(fit.groups, key=lambda group: group.residual_percent, default=None)
    named = "" if worst is None else f"; the worst is '{worst.name}' with {worst.residual_percent:.3g} %"
    yield notice("poor-fit", percent=fit.residual_percent, worst=named)


def _negative(parameters: Iterable[ParameterEstimate]) -> Iterable[Notice]:
    """Friction, rotor inertia and mass cannot be negative: one clearly below zero shows a fault.

    Of some twenty that are zero, one interval of 95 % is below zero by chance: a wider one is asked.
    """
    wrong = [
        estimate
        for estimate in parameters
        if estimate.ci95 is not None
        and estimate.value + _WIDER * (estimate.ci95[1] - estimate.value) < 0
        and estimate.name.split("_")[0] in _POSITIVE
        # A regrouped parameter may be negative.
        and not estimate.grouping
    ]
    if wrong:
        shown = ", ".join(f"{estimate.name} = {estimate.value:.3g} {estimate.unit}" for estimate in wrong[:5])
        yield notice("negative-parameter", shown=shown)


def _weak(
    parameters: Sequence[ParameterEstimate], shares: Mapping[str, float], consistent: bool
) -> Iterable[Notice]:
    """Parameters whose uncertainty is a relevant part of an effort: another motion would be predicted poorly.

    A parameter that is zero within a narrow interval is well known.
    """
    sizes = _sizes(parameters)
    weak = [
        estimate
        for estimate in parameters
        if estimate.sigma_rel_percent is not None
        and estimate.sigma_rel_percent > _WEAK_PERCENT
        and (estimate.sigma or 0.0) > _SMALL * sizes.get(estimate.name, 0.0)
        and (estimate.sigma or 0.0) * shares.get(estimate.name, np.inf) > _RELEVANT
    ]
    if weak:
        names = ", ".join(estimate.name for estimate in weak[:6]) + (
            f" and {len(weak) - 6} more" if len(weak) > 6 else ""
        )
        if consistent:
            yield notice("weak-parameters", "consistent", names=names)
        else:
            yield notice("weak-parameters", names=names)


def _sizes(parameters: Sequence[ParameterEstimate]) -> dict[str, float]:
    """Possible size of first moments and products of inertia of a body, where M is not regrouped.

    A value near zero (centre of mass at the origin, principal axes) is known well if its standard deviation
    is small relative to sqrt(M I) or I, even if it is large relative to the value.
    """
    values = {estimate.name: abs(estimate.value) for estimate in parameters}
    masses = {f"_{name[2:]}": value for name, value in values.items() if name.startswith("M_")}
    # Per unit mass the mass is one: `MX/M_platform`.
    masses |= {name[2:]: 1.0 for name in values if name[:2] in ("XX", "YY", "ZZ") and name[2:5] == "/M_"}
    sizes: dict[str, float] = {}
    for owner, mass in masses.items():
        largest = max(values.get(f"{symbol}{owner}", 0.0) for symbol in ("XX", "YY", "ZZ"))
        sizes |= {f"{symbol}{owner}": largest for symbol in ("XY", "XZ", "YZ")}
        sizes |= {f"{symbol}{owner}": (largest * mass) ** 0.5 for symbol in ("MX", "MY", "MZ")}
    return sizes
