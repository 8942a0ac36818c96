"""How much 1 mm or 1 mrad of the description moves the parameters, where no standard deviation is given.

    d chi / dx  =  -(W^T W)^-1 W^T D      D = d(W chi - Y)/dx on a part of each log, W^T W of all data

A part of bounded length is enough: the figures are there so that nobody is surprised, not for intervals.

The equations of a problem for a robot with other values of its description: same logs, filters, masks.

Estimates at two values of a quantity x give the total derivative of the estimate,

    d chi / dx  =  (chi(x + h) - chi(x - h)) / 2h

with everything that depends on x: W, Y, weights, and what an estimator does with its rows; only the noise
that an estimator draws for its columns stays that of x. For least squares it is
-(W^T W)^-1 (W^T D - dW^T rho), D = d(W chi - Y)/dx at fixed chi.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.base.system import mapped_blocks
from dynid.checks.tested_rows import kept_rows
from dynid.common.arrays import Array, Float, Int, spread
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.conditioning.rewritten import slope_rows
from dynid.estimator.estimator import estimator_named, solve_weighted
from dynid.fit import Fit
from dynid.kinematics.assembly import assembly_of
from dynid.log_pass import KeptNoise, LogPass, NearPass
from dynid.mechanism.description import TILTS, ZERO, at_values, current, zero_names
from dynid.mechanism.parameters import Parameter
from dynid.motion.log import Log, runs_by_content
from dynid.problem import Problem, build_system, prepare, row_groups
from dynid.projection.factor import column_sizes
from dynid.projection.kinematics import ClosedKinematics, kinematics_along
from dynid.projection.projection import Group, System
from dynid.statistics.essential import restrict
from dynid.statistics.estimate import ParameterEstimate
from dynid.statistics.estimate_parts import FAR, Description
from dynid.unknown import Task

_SAMPLES = 800  # of every log
_LOGS = 4
_QUANTITIES = 12
THOUSANDTH = 1e-3  # m or rad
_SHOWN = 0.2  # of sigma: smaller changes are not listed
_KNOWN_PERCENT = 20.0  # sigma of a parameter that a user may rely on
_MOST_NAMED = 3


def described(fit: Fit) -> Description | None:
    """What a result says about its description: what was counted or found, else the effect of 1 mm, 1 mrad.

    None where it has no dimensions, or where no effect can be computed.
    """
    if fit.description is not None:
        return fit.description
    robot = fit.task.mechanism
    if robot.rebuild is None or not fit.problem.case.is_series or fit.experiment.unloaded is not None:
        return None
    names = (*robot.geometry, *(f"{ZERO}{name}" for name in zero_names(robot)))
    try:
        effects = _effects(fit, _spread(names))
    except InputError:  # a part of a log may be too short, or a changed robot may not close
        return None
    return Description(gravity=tuple(float(x) for x in robot.gravity), per_thousandth=effects)


def sensitive(description: Description | None, parameters: Sequence[ParameterEstimate]) -> Iterator[Notice]:
    """That a thousandth of the description moves well-determined parameters by more than their sigma.

    No residual shows such an error: the parameters absorb it, and their intervals do not contain it.
    """
    effects = {} if description is None else description.per_thousandth
    known = {
        parameter.name
        for parameter in parameters
        if parameter.essential
        and parameter.sigma_rel_percent is not None
        and parameter.sigma_rel_percent < _KNOWN_PERCENT
    }
    largest = {name: next(iter(shifts.items())) for name, shifts in effects.items() if name in known}
    moved = [(name, *effect) for name, effect in largest.items() if abs(effect[1]) > 1.0]
    if moved:
        shown = ", ".join(f"{name} by {_size(x)} sigma ({about})" for name, about, x in moved[:_MOST_NAMED])
        yield notice("description-sensitive", count=len(moved), total=len(known), shown=shown)


def _size(x: float) -> str:
    """Two digits, whole numbers above ten; a linear estimate of more than a hundred is only its size."""
    if abs(x) > FAR:
        return f"more than {FAR:.0f}"
    return f"{abs(x):.2g}" if abs(x) < 10.0 else f"{abs(x):.0f}"


def _spread(names: tuple[str, ...]) -> tuple[str, ...]:
    """At most so many quantities, evenly chosen: every kind and every leg is represented."""
    return tuple(names[i] for i in spread(len(names), _QUANTITIES))


def _effects(fit: Fit, names: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Parameter -> quantity -> change in sigma for a thousandth, the largest first."""
    slopes = known_slopes(fit, names)
    slopes = part_slopes(fit, names) if slopes is None else slopes
    effects: dict[str, dict[str, float]] = {}
    for i, parameter in enumerate(fit.linear_parts.parameters):
        if not parameter.sigma:
            continue
        change = THOUSANDTH * slopes[i] / parameter.sigma
        order = np.argsort(-np.abs(change), kind="stable")
        changes = {names[k]: float(change[k]) for k in order if abs(change[k]) > _SHOWN}
        if changes:
            effects[parameter.name] = changes
    return dict(sorted(effects.items(), key=lambda item: -abs(next(iter(item[1].values())))))


def part_slopes(fit: Fit, names: tuple[str, ...]) -> Float[Array, "v k"]:
    """Change of each parameter with a thousandth of each quantity, over it, from a part of every log.

    A difference over the whole thousandth: near dead points the derivative is far from it. Poses that do not
    exist at the changed value are left out.

    Returns:
        Shape (v, k), SI.
    """
    problem, task = fit.problem, fit.task
    several = list(zip(task.logs, problem.plans, strict=True))[:_LOGS]
    logs = tuple(_part(log) for log, _ in several)
    short = replace(task, logs=logs, prepared=None)
    part = prepare(task.mechanism, logs, task.experiment, [plan for _, plan in several])
    if problem.load_parameters is not None:
        part = part.with_load_parameters(problem.load_parameters)
    values = {name: current(task.mechanism, name) + THOUSANDTH for name in names}
    changed = [changed_problem(short, part, {name: value}) for name, value in values.items()]
    steps = [THOUSANDTH] * len(names)
    sources = [
        slope_rows(source, [(shifted.sources[i], None) for shifted in changed], steps, fit.chi)
        for i, source in enumerate(part.sources)
    ]
    return _slopes(fit, row_groups(part, sources), np.arange(len(names)))


def known_slopes(fit: Fit, names: Sequence[str]) -> Float[Array, "v k"] | None:
    """The same by the columns of the residual tests, of all logs; None where some quantity has none.

    They are derivatives. None too where a pose comes so near a singular one that a difference is another.
    """
    tested = None if _nears_singular(fit.problem) else kept_rows(fit.problem)
    if tested is None:
        return None
    groups, suspects, _, _ = tested
    prefix = {"zero": ZERO, "dimension": ""}
    columns = {prefix[test.test] + test.about: test.columns[0] for test in suspects if test.test in prefix}
    known = all(name in columns for name in names)
    return _slopes(fit, groups, np.array([columns[name] for name in names])) if known else None


def _nears_singular(problem: Problem) -> bool:
    """Whether a thousandth moves some pose of a closed robot by more than its derivative says."""
    along = (kinematics_along(problem.mechanism, source.motion) for source in problem.sources)
    return problem.mechanism.is_closed and any(
        isinstance(entry, ClosedKinematics) and entry.nears_singular(THOUSANDTH) for entry in along
    )


def _slopes(fit: Fit, groups: Sequence[Group], columns: Int[Array, "k"]) -> Float[Array, "v k"]:
    """-(W^T W)^-1 W^T D, with D at some columns behind the parameters; shape (v, k), SI."""
    weights = {
        (group.log, group.name): (float(w), group.n_rows)
        for group, w in zip(fit.measured.source.groups, fit.linear.weights, strict=True)
    }
    p, S = len(fit.data.S), fit.data.S
    across = np.zeros((S.shape[1], len(columns)))
    for group in groups:
        weight, rows = weights[group.log, group.name]
        more = rows / max(group.n_rows, 1)
        R, named = np.concatenate([block.R for block in group.blocks])[:, :-1], group.columns
        given, at = named < p, np.searchsorted(named, p + columns)
        here = named[np.minimum(at, len(named) - 1)] == p + columns
        across[:, here] += weight**2 * more * S[named[given]].T @ (R[:, given].T @ R[:, at[here]])
    R = fit.measured.system.factor(fit.linear.weights).W
    size = column_sizes(R)
    inverse = np.linalg.pinv((R / size).T @ (R / size), hermitian=True)
    return np.asarray(-(inverse @ (across / size[:, None])) / size[:, None])


def _part(log: Log) -> Log:
    """The middle of the longest run of a log."""
    _, a, b = runs_by_content([log])[0]
    start = max(a, (a + b - _SAMPLES) // 2)
    return replace(log, segments=((start, min(b, start + _SAMPLES)),))


STEP = 1e-5  # m or rad, of rows: they are smooth over far more, and rounding stays at 1e-9 of them
# Of estimates: their weights are iterated to a part in a thousand, which a shorter step would multiply.
_ESTIMATE_STEP = 5e-4


def changed_problem(task: Task, problem: Problem, values: Mapping[str, float]) -> Problem:
    """The problem of the robot at other values; refused where its loops do not close there.

    By other frames of the rows where these are enough, of a closed robot with poses beside those at hand: no
    pose is then on another branch.

    Args:
        task: Robot, logs and settings at the values at hand.
        problem: Its problem, with the plans and loads that stay.
        values: Quantity -> value, see `dynid.mechanism.description`.
    """
    if problem.mechanism.rebuild is not None:
        tilts = {name: value for name, value in values.items() if name in TILTS}
        robot = at_values(problem.mechanism, {name: x for name, x in values.items() if name not in TILTS})
        if tilts:  # they are relative to the gravity of the task
            robot = replace(robot, gravity=at_values(task.mechanism, tilts).gravity)
        rows = [row for source in problem.sources if (row := source.reframed(robot)) is not None]
        if len(rows) == len(problem.sources):
            return replace(problem, mechanism=robot, sources=tuple(rows))
    robot = at_values(task.mechanism, values)
    if robot.is_closed:
        assembly_of(robot, near=task.mechanism)
    other = prepare(robot, task.logs, task.experiment, problem.plans, aligned_to=problem)
    if problem.load_parameters is None:
        return other
    other = other.with_load_parameters(problem.load_parameters)
    if other.directions.moving is None:
        return other
    # Directions that a motion chooses itself must be those of the problem, not another basis.
    pairs = zip(other.sources, problem.sources, strict=True)
    return replace(other, sources=tuple(other.rows_along(source.motion, near) for source, near in pairs))


def estimate_slopes(fit: Fit, names: Sequence[str]) -> tuple[Float[Array, "v k"], tuple[str, ...]]:
    """Total derivative of every parameter listed with respect to quantities of the description.

    Args:
        fit: The estimate.
        names: Quantities.

    Returns:
        Slopes, shape (v, k), SI, zero for parameters that were removed; and quantities at whose changed
        values the robot cannot be built or does not close, whose slopes are zero.
    """
    slopes = np.zeros((len(fit.data.system.parameters), len(names)))
    noise = KeptNoise(LogPass(fit.problem, fit.measured))
    failed = []
    for k, name in enumerate(names):
        middle = current(fit.task.mechanism, name)
        try:
            high, low = (
                _estimate_at(fit, {name: middle + sign * _ESTIMATE_STEP}, noise) for sign in (1.0, -1.0)
            )
        except InputError:
            failed.append(name)
            continue
        slopes[:, k] = (high - low) / (2.0 * _ESTIMATE_STEP)
    return slopes, tuple(failed)


def slope_system(fit: Fit, names: Sequence[str]) -> System:
    """The equations of a fit with the columns D = d(W chi - Y)/dx of quantities, and their blocks."""
    problem, data, k = fit.problem, fit.measured, len(names)
    changed = [
        changed_problem(fit.task, problem, {name: current(fit.task.mechanism, name) + STEP}) for name in names
    ]
    sources = [
        slope_rows(source, [(shifted.sources[i], None) for shifted in changed], [STEP] * k, fit.linear_chi)
        for i, source in enumerate(problem.sources)
    ]
    p, v = data.S.shape
    S, c = np.zeros((p + k, v + k)), np.concatenate([data.base.c, np.zeros(k)])
    S[:p, :v], S[p:, v:] = data.S, np.eye(k)
    added = tuple(Parameter(name, name, name, "", "description") for name in names)
    wider = System((*data.source.parameters, *added), row_groups(problem, sources))
    return mapped_blocks(wider, S, c, (*data.system.parameters, *added))


def _estimate_at(fit: Fit, values: Mapping[str, float], noise: KeptNoise) -> Float[Array, "v"]:
    """The estimate of the parameters listed for the robot at other values, by the estimator of the fit."""
    problem = changed_problem(fit.task, fit.problem, values)
    seen = fit.measured.of(build_system(problem))
    experiment = fit.experiment
    estimator = estimator_named(experiment.estimator, experiment.estimator_options)
    linear = estimator.linear(seen.system, NearPass(problem, seen, noise) if estimator.rework else None)
    if fit.reduced is None:
        return linear.chi
    equations = seen if linear.equations is None else seen.with_equations(linear.equations)
    kept = list(fit.reduced.kept)
    chi = np.zeros(len(linear.chi))
    chi[kept] = solve_weighted(restrict(equations.system, kept), linear.weights).chi
    return chi
