"""Finished results side by side: figures, parameters, and predictions of the same logs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.distributions import student_tails
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.experiment.experiment import LogEntry
from dynid.experiment.provenance import date_of, experiment_of, recorded_loads
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.logs import LogSource
from dynid.report.json_file import read_result
from dynid.statistics.assemble import percent
from dynid.statistics.comparison import Comparison, Line, ParameterLine, recommend
from dynid.statistics.estimate import Estimate, ParameterEstimate, Validation
from dynid.statistics.estimate_parts import NOT_JUDGED
from dynid.statistics.uncertainty import half95
from dynid.validation.held_out import validate_result
from dynid.validation.quantities import Table, common_quantities, why_unlike

_ITERATIONS = 50
_DEEPEST = 3  # folders in the name of a result


def compare_results(
    results: Sequence[str | os.PathLike[str] | Estimate],
    logs: Sequence[LogSource] = (),
    robot: str | os.PathLike[str] | Mechanism | None = None,
    payloads: Sequence[str] | None = None,
    speeds: Sequence[float] = (),
) -> Comparison:
    """Put results side by side: how well they fit and predict, and where their parameters differ.

    Args:
        results: Files, folders or estimates.
        logs: Predicted by each of them; default: their stored validations.
        robot: Instead of the robots named in the results.
        payloads: Mounted in these logs; empty: none; default: see `validate_result`.
        speeds: At which friction is compared if the parameters differ, in [rad/s] or [m/s].
    """
    if len(results) < 2:
        raise InputError("only one result is given", remedy="give two or more to compare")
    read = [item if isinstance(item, Estimate) else read_result(os.fspath(item)) for item in results]
    labels = _labels(results, read)
    lines, notices = [], []
    for label, estimate in zip(labels, read, strict=True):
        checked = estimate.validation
        if logs:
            checked = validate_result(estimate, logs, robot, payloads)[0]
        reused = [check.log for check in checked if not check.independent]
        if reused:
            names = ", ".join(reused)
            notices.append(notice("validation-not-independent", "compared", label=label, names=names))
        lines.append(_line(label, estimate, checked))
    apart = _apart(read, own=not logs)
    lines, notices = lines if apart else _changed(lines), notices + apart
    chosen, words = ("", "") if notices else recommend(lines)
    if notices:
        words = "the errors cannot be ranked: see the warnings"
    elif not chosen:
        words = "no result has been validated on other logs: give some with --log"
    how = f"predicting {', '.join(map(_log_name, logs))}" if logs else "validations stored in the results"
    derived = _lines_of(common_quantities(read, speeds))
    parameters = (*side_by_side(read), *mass_by_payload(read), *derived)
    notices += why_unlike(read)
    robots = ", ".join(dict.fromkeys(estimate.robot for estimate in read))
    return Comparison(f"{robots}: results", how, tuple(lines), chosen, words, parameters, tuple(notices))


def _changed(lines: list[Line]) -> list[Line]:
    """With the change of their error against the first line."""
    first = lines[0]
    return [
        replace(line, change_percent=100.0 * (line.error / first.error - 1.0))
        if line is not first and line.error is not None and first.error
        else line
        for line in lines
    ]


def _apart(estimates: Sequence[Estimate], own: bool) -> list[Notice]:
    """Why stored errors of results cannot be compared: different robots, or different logs."""
    robots = list(dict.fromkeys(estimate.robot for estimate in estimates))
    if own and len(robots) > 1:
        return [notice("robots-differ", names=", ".join(robots))]
    if own and len({tuple(check.log for check in estimate.validation) for estimate in estimates}) > 1:
        return [notice("logs-differ")]
    return []


def side_by_side(results: Sequence[Estimate]) -> tuple[ParameterLine, ...]:
    """Every parameter of any of the estimates, in the order of their first mention."""
    return _lines_of([{entry.name: entry for entry in estimate.parameters} for estimate in results])


def _lines_of(listed: Sequence[Table]) -> tuple[ParameterLine, ...]:
    """Every name of any of the tables, in the order of their first mention."""
    names = dict.fromkeys(name for table in listed for name in table)
    lines = []
    for name in names:
        entries = [table.get(name) for table in listed]
        known = [entry for entry in entries if entry is not None and entry.sigma]
        pairs = list(combinations(known, 2))
        differences = [_distance(a, b) for a, b in pairs]
        chances = [_chance(z, a, b) for z, (a, b) in zip(differences, pairs, strict=True)]
        unit = next(entry.unit for entry in entries if entry is not None)
        values = tuple(None if entry is None else entry.value for entry in entries)
        sigmas = tuple(None if entry is None else entry.sigma for entry in entries)
        halves = tuple(
            None if entry is None or entry.sigma is None else float(half95(entry.sigma, [entry]))
            for entry in entries
        )
        p = min(1.0, len(pairs) * min(chances)) if pairs else None
        lines.append(ParameterLine(name, unit, values, sigmas, max(differences, default=None), p, halves))
    return tuple(lines)


def _chance(z: float, first: ParameterEstimate, other: ParameterEstimate) -> float:
    """Probability of a larger difference, in its own deviation, of two independent estimates of one value.

    Degrees of freedom by Welch and Satterthwaite. Their formula takes the ratio of both variances as known.
    The level of one test among many needs a margin: either variance may be twice as large, and the sum counts
    at most twice the degrees of freedom of the less well known one.
    """
    variances = np.array([first.sigma or 0.0, other.sigma or 0.0]) ** 2
    freedoms = np.array([np.inf if entry.dof is None else entry.dof for entry in (first, other)])
    doubled = variances * (1.0 + np.eye(2))
    shares = doubled / doubled.sum(axis=1, keepdims=True)
    slack = float((shares**2 / freedoms).sum(axis=1).max())
    return student_tails(min(1.0 / slack if slack else np.inf, 2.0 * float(freedoms.min())), z)


def mass_by_payload(estimates: Sequence[Estimate]) -> tuple[ParameterLine, ...]:
    """The mass itself, of two results per unit mass: one bare, one whose every log carries a known payload.

    Nothing without such a pair. The line is in the column of the loaded result.
    """
    loads = [{name for load in recorded_loads(item.provenance) for name in load} for item in estimates]
    loaded = [i for i, names in enumerate(loads) if len(names) == 1]
    if len(estimates) != 2 or len(loaded) != 1 or any(loads[1 - loaded[0]]):
        return ()
    estimate, bare, [name] = estimates[loaded[0]], estimates[1 - loaded[0]], loads[loaded[0]]
    payload = experiment_of(estimate.provenance.get("options", {}), name).payloads.get(name)
    if payload is None or not {"M", "MX", "MY", "MZ"} <= set(payload.known) or not payload.known["M"]:
        return ()
    names = set.intersection(*({p.name.removesuffix("_R") for p in item.parameters} for item in estimates))
    if not {f"{symbol}/M_{payload.body}" for symbol in ("MX", "MY", "MZ")} <= names:
        return ()
    mass = payload.known["M"]
    offset = np.array([payload.known[symbol] for symbol in ("MX", "MY", "MZ")]) / mass
    com = payload.frame.R @ offset + payload.frame.p
    weighed = payload_mass(bare, estimate, mass, com.tolist(), payload.body)
    values = tuple(weighed.value if i == loaded[0] else None for i in range(2))
    sigmas = tuple(weighed.sigma if i == loaded[0] else None for i in range(2))
    return (ParameterLine(f"M_{payload.body}", "kg", values, sigmas, None),)


def _line(label: str, estimate: Estimate, checked: Sequence[Validation]) -> Line:
    drive = experiment_of(estimate.provenance.get("options", {}), label).drive
    simulated = _simulated(checked)
    return Line(
        label,
        estimate.model,
        estimate.estimator,
        " ".join(drive) if drive else "",
        date=date_of(estimate.provenance),
        verdict="" if estimate.verdict == NOT_JUDGED else estimate.verdict.level,
        model_percent=max((check.error.percent for check in checked if check.error.worst), default=None),
        n_parameters=estimate.fit.n_parameters,
        fit_percent=estimate.fit.residual_percent,
        held_out_percent=simulated,
        effort_percent=_pooled(checked) if simulated is None else None,
        by_effort={
            group.name: group.residual_percent
            for check in checked[:1]
            for group in check.groups
            if not np.isnan(group.residual_percent)
        },
        folds=tuple(
            check.effort_percent if simulated is None else _simulated([check]) or 0.0 for check in checked
        ),
    )


def _simulated(checked: Sequence[Validation]) -> float | None:
    """What simulations miss of the motion of all runs, in %; None where nothing was simulated."""
    parts = []
    for kind in ("position_rms", "angle_rms"):
        pairs = [(getattr(run, kind), getattr(run, f"motion_{kind}")) for val in checked for run in val.runs]
        known = [(missed, moved) for missed, moved in pairs if missed is not None and moved]
        if known:
            parts.append(sum(missed**2 for missed, _ in known) / sum(moved**2 for _, moved in known))
    return 100.0 * float(np.sqrt(np.mean(parts))) if parts else None


def _pooled(checked: Sequence[Validation]) -> float | None:
    """Error over all logs: sums of squares, as the groups of each hold them."""
    groups = [group for val in checked for group in val.groups]
    if not groups:
        return None
    residual = sum(group.rms**2 * group.n_rows for group in groups)
    # Rows without effort have no percentage, and those met exactly show no size.
    sized = [group for group in groups if group.residual_percent > 0.0]
    measured = sum((100.0 * group.rms / group.residual_percent) ** 2 * group.n_rows for group in sized)
    return percent(float(np.sqrt(residual)), float(np.sqrt(measured)))


def _log_name(source: LogSource) -> str:
    if isinstance(source, Log):
        return source.name
    if isinstance(source, LogEntry):
        return Path(source.file).name
    return Path(source).name if isinstance(source, str | os.PathLike) else "log"


def _labels(results: Sequence[object], estimates: Sequence[Estimate]) -> list[str]:
    """Names of the folders, with the folders above them if they are the same; else with a number."""
    names = []
    for result, estimate in zip(results, estimates, strict=True):
        if isinstance(result, Estimate):
            names.append(f"{estimate.model}, {estimate.estimator}")
            continue
        path = Path(os.fspath(result)).absolute()  # type: ignore[call-overload]
        folder = path.parent if path.name == "result.json" else path
        names.append(folder.as_posix())
    for depth in range(1, _DEEPEST + 1):
        short = ["/".join(name.split("/")[-depth:]) for name in names]
        if len(set(short)) == len(set(names)) or depth == _DEEPEST:
            names = short
            break
    return [name if names.count(name) == 1 else f"{name} ({i + 1})" for i, name in enumerate(names)]


# Two results per unit mass together: the mass from a known payload, and how well they agree.
#
#     (m + dm) s_L = m s + dm p_L       ->      m (s_L - s) = dm (p_L - s_L)          [CableRobot, eqs 23, 24]
#
# with s and s_L the centres of mass without and with a payload of mass dm at p_L. Each result brings its own
# covariance, so that the three equations are weighted by C_r = (m + dm)^2 C_L + m^2 C.


@dataclass(frozen=True)
class PayloadMass:
    """Mass of a body from its centre of mass without and with a known payload.

    Attributes:
        value, sigma: In [kg].
        misfit: r^T C_r^-1 r at the solution: about 2 where payload and results agree.
    """

    value: float
    sigma: float
    misfit: float


def payload_mass(
    bare: Estimate, loaded: Estimate, mass: float, com: Sequence[float], body: str = "platform"
) -> PayloadMass:
    """The mass of `body`, weighted by the covariances of both results.

    Args:
        bare: Result without the payload.
        loaded: Result with it, of body and payload as one.
        mass: Of the payload, in [kg].
        com: Its centre of mass in the frame of the body, shape (3,), in [m].
        body: Name of the body.
    """
    if not mass > 0:
        raise InputError(f"payload mass {mass} kg is not positive", remedy="give its mass in kg")
    s, C = _centre(bare, body)
    s_L, C_L = _centre(loaded, body)
    p_L = np.asarray(com, dtype=float)
    g, b = s_L - s, mass * (p_L - s_L)
    m = float(g @ b / (g @ g))
    for _ in range(_ITERATIONS):
        root = np.linalg.cholesky((m + mass) ** 2 * C_L + m**2 * C)
        g_w, b_w = np.linalg.solve(root, np.column_stack([g, b])).T
        before, m = m, float(g_w @ b_w / (g_w @ g_w))
        if abs(m - before) <= 1e-12 * abs(m):
            break
    return PayloadMass(m, float(1.0 / np.linalg.norm(g_w)), float(np.sum((m * g_w - b_w) ** 2)))


def _centre(estimate: Estimate, body: str) -> tuple[Float[Array, "3"], Float[Array, "3 3"]]:
    """Centre of mass and its covariance, in [m]."""
    names = [f"{symbol}/M_{body}" for symbol in ("MX", "MY", "MZ")]
    # A payload that is always mounted is grouped into its carrier, which the name may show.
    listed = [entry.name.removesuffix("_R") for entry in estimate.parameters if entry.sigma is not None]
    missing = [name for name in names if name not in listed]
    if missing:
        raise InputError(
            f"the result has no '{missing[0]}' with a standard deviation",
            remedy="identify with model: internal, all three coordinates of the centre of mass",
        )
    at = [listed.index(name) for name in names]
    values = [entry.value for entry in estimate.parameters if entry.sigma is not None]
    return np.array([values[k] for k in at]), estimate.covariance[np.ix_(at, at)]


@dataclass(frozen=True)
class Agreement:
    """One parameter of two results.

    Attributes:
        change_percent: 100 |other - reference| / |reference|, eq. (48).
        sigma_percent: Relative deviation of the reference, eq. (49).
        distance: |other - reference| over the deviation of both together.
    """

    name: str
    unit: str
    reference: float
    other: float
    change_percent: float
    sigma_percent: float
    distance: float


def agreement(reference: Estimate, other: Estimate) -> tuple[Agreement, ...]:
    """Compare two results parameter by parameter, as partial against full pose [CableRobot, eqs 48, 49].

    Args:
        reference: Whose values divide, in the paper the result from free coordinates.
        other: With parameters of the same names; those that only one has are left out.
    """
    theirs = {entry.name: entry for entry in other.parameters if entry.essential}
    return tuple(
        _compared(entry, theirs[entry.name])
        for entry in reference.parameters
        if entry.essential and entry.name in theirs and entry.value != 0.0
    )


def _compared(first: ParameterEstimate, other: ParameterEstimate) -> Agreement:
    change = abs(other.value - first.value)
    return Agreement(
        name=first.name,
        unit=first.unit,
        reference=first.value,
        other=other.value,
        change_percent=100.0 * change / abs(first.value),
        sigma_percent=100.0 * (first.sigma or 0.0) / abs(first.value),
        distance=_distance(first, other),
    )


def _distance(first: ParameterEstimate, other: ParameterEstimate) -> float:
    """Difference of two values in its standard deviation, dimensionless; a value may be zero."""
    sigma = float(np.hypot(first.sigma or 0.0, other.sigma or 0.0))
    return abs(other.value - first.value) / sigma if sigma > 0 else float("inf")
