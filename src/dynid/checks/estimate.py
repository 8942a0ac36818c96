"""What a finished estimate must be questioned about: signs, weak parameters, reused logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dynid.common.notices import Notice, eased, notice
from dynid.experiment.experiment import Experiment
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.ranges import wide_ranges
from dynid.motion.steps import position_steps
from dynid.statistics.estimate import Estimate, ParameterEstimate, Validation

_POSITIVE = ("Fv", "Fs", "Fr", "Fl", "Ia", "M")
_WEAK_PERCENT = 100.0
_RELEVANT = 0.05  # of the rms of an effort: as much as a good prediction may be wrong
_SMALL = 0.05  # of what an entry of a body could be: known as well as a value to 5 %


def check_estimate(estimate: Estimate, shares: Mapping[str, float] | None = None) -> tuple[Notice, ...]:
    """Warnings a reader must see before the numbers.

    Args:
        estimate: The result.
        shares: How much of an effort one unit of each parameter makes, see `effort_shares`.
    """
    return (
        *_poor_fit(estimate),
        *_negative(estimate.parameters),
        *_weak(estimate.parameters, shares or {}, estimate.estimator == "consistent"),
        *_reused(estimate.validation),
    )


def check_options(experiment: Experiment, model: str) -> tuple[Notice, ...]:
    """Options of models that are not used: warn, because they have no effect."""
    ignored = [
        name for name in ("energy", "internal", "wrench") if getattr(experiment, name) and name != model
    ]
    if not ignored:
        return ()
    return (notice("option-ignored", names=", ".join(ignored), model=model),)


def check_logs(logs: Sequence[Log], mechanism: Mechanism) -> tuple[Notice, ...]:
    """What makes the logs of a fit doubtful before anything is computed."""
    return (
        *_repeated(logs),
        *(notice for log in logs for notice in (*_units(log, mechanism), *position_steps(log))),
    )


def _units(log: Log, mechanism: Mechanism) -> Iterable[Notice]:
    """Positions that sweep far more than the joint can: most likely they are not in radians or metres."""
    for one in wide_ranges(log, mechanism):
        times, number = one.sweep / one.room, one.column + 1
        if not one.angle:
            yield notice(
                "lengths-large", name=one.name, log=log.name, sweep=one.sweep, times=times, number=number
            )
            continue
        bounded = bool(np.isfinite(one.room))
        limits = f", {times:.0f} times the range of its limits" if bounded else ""
        found = notice(
            "angles-large",
            name=one.name,
            log=log.name,
            sweep=one.sweep,
            turns=one.sweep / (2 * np.pi),
            limits=limits,
            number=number,
        )
        yield found if bounded else eased(found)  # a wheel may turn so far


def _repeated(logs: Sequence[Log]) -> tuple[Notice, ...]:
    """Logs that hold the same samples: counted twice, they make every sigma too small."""
    repeated = [
        f"{log.name} repeats {first.name}"
        for i, log in enumerate(logs)
        if (first := next((other for other in logs[:i] if same_samples(log, other)), None)) is not None
    ]
    if not repeated:
        return ()
    return (notice("log-repeated", shown=", ".join(repeated)),)


def same_samples(a: Log, b: Log) -> bool:
    """Whether two logs contain the same recording, also from different files."""
    if a.q.shape != b.q.shape or a.payloads != b.payloads:
        return False
    return np.array_equal(a.q, b.q) and np.array_equal(a.tau, b.tau, equal_nan=True)


def _reused(validation: Iterable[Validation]) -> Iterable[Notice]:
    """Logs that were used for the fit are no independent validation."""
    reused = [one.log for one in validation if not one.independent]
    if reused:
        yield notice("validation-not-independent", names=", ".join(reused))


def _poor_fit(estimate: Estimate) -> Iterable[Notice]:
    """A fit that leaves half of the efforts unexplained, if no validation log is predicted better."""
    fit, unseen = estimate.fit, [one for one in estimate.validation if one.independent]
    if not fit.poor or any(one.residual_percent < fit.residual_percent / 2.0 for one in unseen):
        return
    worst = max(fit.groups, key=lambda group: group.residual_percent, default=None)
    named = "" if worst is None else f"; the worst is '{worst.name}' with {worst.residual_percent:.3g} %"
    yield notice("poor-fit", percent=fit.residual_percent, worst=named)


def _negative(parameters: Iterable[ParameterEstimate]) -> Iterable[Notice]:
    """Friction, rotor inertia and mass cannot be negative: an interval below zero shows a fault."""
    wrong = [
        one
        for one in parameters
        if one.ci95 is not None
        and one.ci95[1] < 0
        and one.name.split("_")[0].rstrip("+-") in _POSITIVE
        # A regrouped parameter may be negative.
        and not one.grouping
    ]
    if wrong:
        shown = ", ".join(f"{one.name} = {one.value:.3g} {one.unit}" for one in wrong[:5])
        yield notice("negative-parameter", shown=shown)


def _weak(
    parameters: Sequence[ParameterEstimate], shares: Mapping[str, float], consistent: bool
) -> Iterable[Notice]:
    """Parameters whose uncertainty is a relevant part of an effort: another motion would be predicted poorly.

    A parameter that is zero within a narrow interval is well known.
    """
    sizes = _sizes(parameters)
    weak = [
        one
        for one in parameters
        if one.sigma_rel_percent is not None
        and one.sigma_rel_percent > _WEAK_PERCENT
        and (one.sigma or 0.0) > _SMALL * sizes.get(one.name, 0.0)
        and (one.sigma or 0.0) * shares.get(one.name, np.inf) > _RELEVANT
    ]
    if weak:
        names = ", ".join(one.name for one in weak[:6]) + (
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
    values = {one.name: abs(one.value) for one in parameters}
    masses = {f"_{name[2:]}": value for name, value in values.items() if name.startswith("M_")}
    # Per unit mass the mass is one: `MX/M_platform`.
    masses |= {name[2:]: 1.0 for name in values if name[:2] in ("XX", "YY", "ZZ") and name[2:5] == "/M_"}
    sizes: dict[str, float] = {}
    for owner, mass in masses.items():
        largest = max(values.get(f"{symbol}{owner}", 0.0) for symbol in ("XX", "YY", "ZZ"))
        sizes |= {f"{symbol}{owner}": largest for symbol in ("XY", "XZ", "YZ")}
        sizes |= {f"{symbol}{owner}": (largest * mass) ** 0.5 for symbol in ("MX", "MY", "MZ")}
    return sizes
