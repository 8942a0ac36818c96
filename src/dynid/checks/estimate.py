"""What a finished estimate must be questioned about: signs, weak parameters, reused logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dynid.common.notices import Notice
from dynid.experiment.experiment import Experiment
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.steps import position_steps
from dynid.motion.window import disjoint
from dynid.statistics.estimate import Estimate, ParameterEstimate, Validation

_POSITIVE = ("Fv", "Fs", "Fr", "Fl", "Ia", "M")
_WEAK_PERCENT = 100.0
_SMALL = 0.05  # of what an entry of a body could be: known as well as a value to 5 %

# Six turns of a joint without limits: a wheel may, an arm in degrees does.
_SWEEP = 12.0 * np.pi


def check_estimate(estimate: Estimate) -> tuple[Notice, ...]:
    """Warnings a reader must see before the numbers."""
    return (
        *_poor_fit(estimate),
        *_negative(estimate.parameters),
        *_weak(
            estimate.parameters,
            "excite them more"
            if estimate.estimator == "consistent"  # not physically consistent with parameters set to zero
            else "excite them more, or use essential parameters",
        ),
        *_reused(estimate.validation),
    )


def check_options(experiment: Experiment, model: str) -> tuple[Notice, ...]:
    """Options of models that are not used: warn, because they have no effect."""
    ignored = [
        name for name in ("energy", "internal", "wrench") if getattr(experiment, name) and name != model
    ]
    if not ignored:
        return ()
    text = f"the options under {', '.join(ignored)} have no effect on model '{model}'"
    return (Notice("option-ignored", text, "remove them, or choose that model"),)


def check_logs(logs: Sequence[Log], mechanism: Mechanism) -> tuple[Notice, ...]:
    """What makes the logs of a fit doubtful before anything is computed."""
    return (
        *_repeated(logs),
        *(notice for log in logs for notice in (*_degrees(log, mechanism), *position_steps(log))),
    )


def _degrees(log: Log, mechanism: Mechanism) -> Iterable[Notice]:
    """Angles that sweep far more than the joint can: most likely they are not in radians."""
    for i, name in enumerate(log.position_names):
        joint = mechanism.joint_of_coordinate.get(name)
        if joint is None or not joint.is_angle(name) or not log.valid.any():
            continue
        sweep = float(np.ptp(log.q[log.valid, i]))
        low, high = mechanism.limits.get(name, {}).get("q", (-np.inf, np.inf))
        room = high - low
        if sweep > (2.0 * np.pi * room if np.isfinite(room) else _SWEEP):
            limits = f", {sweep / room:.0f} times the range of its limits" if np.isfinite(room) else ""
            yield Notice(
                "angles-large",
                f"'{name}' of log '{log.name}' moves over {sweep:.4g} rad"
                f" ({sweep / (2 * np.pi):.3g} turns){limits}",
                f"if the log is in degrees, set the unit: columns: {{q_{i + 1}: {{name: ..., unit: deg}}}}",
            )


def _repeated(logs: Sequence[Log]) -> tuple[Notice, ...]:
    """Logs that hold the same samples: counted twice, they make every sigma too small."""
    repeated = [
        f"{log.name} repeats {first.name}"
        for i, log in enumerate(logs)
        if (first := next((other for other in logs[:i] if same_samples(log, other)), None)) is not None
    ]
    if not repeated:
        return ()
    text = f"{', '.join(repeated)}: the same samples count twice, and every sigma is too small"
    return (Notice("log-repeated", text, "list every log once"),)


def same_samples(a: Log, b: Log) -> bool:
    """Whether two logs contain the same recording, also from different files."""
    if a.q.shape != b.q.shape or a.payloads != b.payloads:
        return False
    if disjoint(a, b):
        return False
    return np.array_equal(a.q, b.q) and np.array_equal(a.tau, b.tau, equal_nan=True)


def _reused(validation: Iterable[Validation]) -> Iterable[Notice]:
    """Logs that were used for the fit are no independent validation."""
    reused = [one.log for one in validation if not one.independent]
    if reused:
        yield Notice(
            "validation-not-independent",
            f"{', '.join(reused)} was also used for identification: its errors are not those of a new motion",
            "validate on a log that was not used",
        )


def _poor_fit(estimate: Estimate) -> Iterable[Notice]:
    """A fit that leaves half of the efforts unexplained, if no validation log is predicted better."""
    fit, unseen = estimate.fit, [one for one in estimate.validation if one.independent]
    if not fit.poor or any(one.residual_percent < fit.residual_percent / 2.0 for one in unseen):
        return
    worst = max(fit.groups, key=lambda group: group.residual_percent, default=None)
    named = "" if worst is None else f"; the worst is '{worst.name}' with {worst.residual_percent:.3g} %"
    yield Notice(
        "poor-fit",
        f"the fit leaves {fit.residual_percent:.3g} % of the measured efforts unexplained{named}",
        "do not use these parameters yet: check position and effort columns, units and signs of that joint,"
        " the branch of its loops, and contacts",
    )


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
        yield Notice(
            "negative-parameter",
            f"{shown}: cannot be negative",
            "look for a wrong sign, a delay between position and effort, or a missing friction term",
        )


def _weak(parameters: Sequence[ParameterEstimate], remedy: str) -> Iterable[Notice]:
    sizes = _sizes(parameters)
    weak = [
        one
        for one in parameters
        if one.sigma_rel_percent is not None
        and one.sigma_rel_percent > _WEAK_PERCENT
        and (one.sigma or 0.0) > _SMALL * sizes.get(one.name, 0.0)
    ]
    if weak:
        names = ", ".join(one.name for one in weak[:6]) + (
            f" and {len(weak) - 6} more" if len(weak) > 6 else ""
        )
        yield Notice(
            "weak-parameters",
            f"statistically indistinguishable from zero (relative sigma over 100 %): {names}",
            remedy,
        )


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
