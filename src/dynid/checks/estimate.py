"""Can the estimate be right? Unexplained efforts, signs, weak parameters, logs used twice.

Parameters are weak if another motion could not be predicted with them. The other motion has the
poses of the logs, with the velocities and accelerations of other times, different ones for every joint: same
ranges, other combinations. With C the covariance of the parameters, the error of effort j along it is

    e_j = sqrt( trace(W_j C W_j^T) ) / |W_j chi|

A pair of parameters whose sum is known counts by what their difference does there, however large each sigma.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.checks.check import Finished
from dynid.checks.plausible_masses import effort_shares
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.common.paged import LONG
from dynid.estimator.estimator import gives_bodies
from dynid.fit import Fit
from dynid.mechanism.drive_terms import ROTOR, is_positive
from dynid.motion.log import Log, runs_by_content
from dynid.motion.motion import Motion
from dynid.problem import row_groups
from dynid.statistics.estimate import Agreement, ParameterEstimate, Validation

_WIDER = 1.6  # times an interval of 95 %: 3.1 sigma, one of a thousand parameters that are zero
_WEAK_PERCENT = 100.0
_RELEVANT = 0.05  # of the rms of an effort: as much as a good prediction may be wrong
_MOST_NAMED = 6
_SAMPLES = 2000  # of every log, along another motion: enough for the size of its efforts
_FEWEST_ROTORS = 2
_SMALL = 0.05  # of what an entry of a body could be: known as well as a value to 5 %


def poor_fit(finished: Finished) -> Iterable[Notice]:
    """A fit that leaves half of the efforts unexplained."""
    return unexplained(finished.fit.parts.fit, finished.validation)


def rotors(finished: Finished) -> Iterable[Notice]:
    """Rotors that seem to have no inertia: efforts sensed on the link side.

    Asked of base parameters that are a rotor's own, before any bound: at least two, and half of
    all, below zero beyond their 95 % interval, and none above zero beyond it. Real bodies then
    fit as well without a rotor: a bound holds it at zero.
    """
    fit = finished.fit
    listed = fit.data.system.parameters
    # A consistent estimate keeps the deviations of the linear one, about other values.
    linear = dict(zip((p.name for p in listed), fit.linear.chi.tolist(), strict=True))
    own = {p.name: p.owner for p in listed if p.symbol in ROTOR and p.name == f"{p.symbol}_{p.owner}"}
    ends = {
        p.name: np.array(p.ci95) + linear[p.name] - p.value
        for p in fit.linear_parts.parameters
        if p.name in own and p.ci95 is not None
    }
    below = [own[name] for name, (_, high) in ends.items() if high < 0.0]
    above = any(low > 0.0 for low, _ in ends.values())
    if not above and len(below) >= max(_FEWEST_ROTORS, (len(own) + 1) // 2):
        yield notice("rotor-not-felt", names=", ".join(below))


def negative(finished: Finished) -> Iterable[Notice]:
    """Friction, rotor inertia and mass cannot be negative; a warning that explains the rotors names them."""
    explained = ROTOR if any(item.code == "rotor-not-felt" for item in finished.notices) else ()
    return _negative(p for p in finished.fit.parts.parameters if p.name.split("_")[0] not in explained)


def weak(finished: Finished) -> Iterable[Notice]:
    """Parameters that the data hardly determine."""
    fit = finished.fit
    other = other_motion(fit)
    if other is not None and max(other[0].values(), default=0.0) <= _RELEVANT:
        return
    names = _unsure(fit.parts.parameters, effort_shares(fit.data.system) if other is None else other[1])
    if not names:
        return
    shown = ", ".join(names[:_MOST_NAMED])
    shown += f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    if gives_bodies(fit.experiment.estimator):
        yield notice("weak-parameters", "consistent", names=shown)
    else:
        yield notice("weak-parameters", names=shown)


def other_motion(fit: Fit) -> tuple[dict[str, float], dict[str, float]] | None:
    """Another motion in the ranges of the logs; None where the logs are no motion of joints.

    Returns:
        Effort -> its error e_j. Parameter -> how much of an effort one unit of it makes there, as of
        `effort_shares`.
    """
    problem = fit.problem
    if not problem.case.is_series or not all(all(plan.scalar) for plan in problem.plans):
        return None
    plans = [replace(plan, velocity="measured") for plan in problem.plans]
    try:
        logs = [_other_rates(source.motion) for source in problem.sources]
        other = problem.on(logs, plans, fit.experiment)
        if problem.load_parameters is not None:
            other = other.with_load_parameters(problem.load_parameters)
        groups = row_groups(other, other.sources)
    except InputError:  # logs that are too short
        return None
    # Gains and servo laws are estimated beside the columns of W.
    column = {parameter.name: k for k, parameter in enumerate(fit.data.system.parameters)}
    listed = [parameter.name for parameter in fit.parts.parameters if parameter.sigma is not None]
    seen = [k for k, name in enumerate(listed) if name in column]
    names = [listed[k] for k in seen]
    S, spread = fit.data.S[:, [column[name] for name in names]], fit.parts.covariance[np.ix_(seen, seen)]
    squares: dict[str, Float[Array, "p2"]] = {}
    for group in groups:
        W = group.factor(len(S)).W
        rows = W @ S
        wrong = np.einsum("ij,jk,ik->", rows, spread, rows)
        sums = np.array([np.sum((W @ fit.chi) ** 2), wrong, *np.sum(rows**2, axis=0)])
        squares[group.name] = squares.get(group.name, np.zeros(len(sums))) + sums
    ratios = {name: np.sqrt(sums[1:] / sums[0]) for name, sums in squares.items() if sums[0] > 0.0}
    if not ratios:
        return None
    shares = np.max([ratio[1:] for ratio in ratios.values()], axis=0, initial=0.0)
    errors = {name: float(ratio[0]) for name, ratio in ratios.items()}
    return errors, dict(zip(names, shares.tolist(), strict=True))


def _other_rates(motion: Motion) -> Log:
    """A log of the same poses; rates of coordinate j of m are those of another time, by j + 1 of m + 1 parts.

    Poses of closed robots cannot be combined freely, but at each of them rates can.
    """
    runs = runs_by_content([replace(motion.log, segments=motion.usable())])
    start, stop = runs[0][1:] if runs else (0, 0)
    # Of a very long log a part is enough: its states would not fit into memory.
    stop = min(stop, start + LONG)
    q, dq, ddq = motion.states(start, stop)
    n, m = q.shape
    count = min(n, max(_SAMPLES, 4 * motion.plan.edge))  # both ends are cut again
    columns, kept = np.arange(m), slice(0, count)
    rows = (np.arange(n)[kept, None] + n * np.arange(1, m + 1) // (m + 1)) % n
    log = motion.log
    return replace(
        log,
        t=log.t[start:stop][kept],
        q=q[kept],
        dq=dq[rows, columns],
        ddq=ddq[rows, columns],
        tau=log.tau[start:stop][kept],
        valid=np.ones(count, bool),
        segments=((0, count),),
        origins={},
        q_ref=None,
        servo=None,
    )


def reused(finished: Finished) -> Iterable[Notice]:
    """Logs that were used for the fit are no independent validation."""
    names = [record.log for record in finished.validation if not record.independent]
    if names:
        yield notice("validation-not-independent", names=", ".join(names))


def unexplained(fit: Agreement, validation: Sequence[Validation]) -> Iterable[Notice]:
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
        and (is_positive(symbol := estimate.name.split("_")[0]) or symbol == "M")
        # A regrouped parameter may be negative.
        and not estimate.grouping
    ]
    if wrong:
        shown = ", ".join(f"{x.name} = {x.value:.3g} {x.unit}".removesuffix(" 1") for x in wrong[:5])
        yield notice("negative-parameter", shown=shown)


def _unsure(parameters: Sequence[ParameterEstimate], shares: Mapping[str, float]) -> list[str]:
    """Parameters whose uncertainty, taken alone, is a relevant part of an effort.

    A parameter that is zero within a narrow interval is well known.
    """
    sizes = _sizes(parameters)
    return [
        estimate.name
        for estimate in parameters
        if estimate.sigma_rel_percent is not None
        and estimate.sigma_rel_percent > _WEAK_PERCENT
        and (estimate.sigma or 0.0) > _SMALL * sizes.get(estimate.name, 0.0)
        and (estimate.sigma or 0.0) * shares.get(estimate.name, np.inf) > _RELEVANT
    ]


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
