"""Servo laws: kp, kd, delay and encoder bias of logs without efforts, found together with the dynamics.

Every fit has a column for each unknown (`servo_rows.py`); delay and bias are stepped until they stand still.
kp is found as a drive gain is: by maximum likelihood, the noise being in the position error e.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dynid.base.rank import independent_columns
from dynid.base.system import BaseSystem, base_system
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, NoResultError
from dynid.common.notices import Notice, notice
from dynid.estimator.estimator import estimator_named
from dynid.estimator.gains import GroupNoise, solve_gains
from dynid.estimator.solution import Solution
from dynid.estimator.wls import group_factors
from dynid.linear_fit import base_of
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, effort_unit
from dynid.motion.log import Log
from dynid.motion.servo import QUANTITIES, Law, PdSettings, damping_owner
from dynid.problem import Problem, prepare
from dynid.projection.factor import Factor
from dynid.projection.projection import System
from dynid.statistics.assemble import EstimateParts, joined
from dynid.statistics.covariance import covariance_of
from dynid.statistics.sandwich import Spread
from dynid.unknown import Settled, Task
from dynid.unknowns.drive_gains import check_gains
from dynid.unknowns.saturation import Limits, find_limits, masked, without
from dynid.unknowns.servo_rows import Column, ServoSystem, servo_system, with_filters

_ROUNDS = 12
_CALM = 0.4  # of the samples: those with the smallest position errors
_LIMIT_ROUNDS = 6  # searches of limits: of masks, then laws, in turn
_SUSPECTING = 2  # of these with limits that explain a part only
_STILL = 0.02  # of sigma: steps below change nothing
_ROUNDING = 1e-7  # of the efforts per rad: no bias can be seen by less
_DEPENDENT = 1e-6  # of a column's norm left by the others: not identifiable
_MOST_DELAY, _MOST_BIAS = 0.01, 0.1  # s, rad or m: of one step
_WEAK_PERCENT = 20.0


def settle_law(task: Task) -> Settled:
    """Find what an experiment leaves open of its PD laws, and apply them to all logs."""
    settings = task.experiment.pd
    if settings is None or not settings.open:
        return Settled(task)
    check_gains(task.experiment)
    task = replace(task, experiment=with_filters(task))
    servo = find_law(task, settings)
    done = replace(
        task,
        logs=tuple(masked(servo.law.applied(log), servo.law, servo.limits) for log in task.logs),
        held_out=tuple(masked(servo.law.applied(log), servo.law, servo.limits) for log in task.held_out),
    )
    return Settled(done, servo.choices, add_values=partial(_joined, servo))


@dataclass(frozen=True, eq=False)
class FoundLaw:
    """A law, and all parameters found together with it.

    Attributes:
        parameters: Base parameters, then those of the law.
        chi: Their values, shape (p,), SI; of the law itself, not of its last step.
        spread: Their covariance.
        limits: Where efforts are limited.
    """

    law: Law
    parameters: tuple[Parameter, ...]
    chi: Float[Array, "p"]
    spread: Spread
    limits: Limits
    choices: dict[str, str]
    notices: tuple[Notice, ...]


def _joined(servo: FoundLaw, parts: EstimateParts) -> EstimateParts:
    """The parameters and the law, with their joint uncertainty."""
    return joined(parts, servo.parameters, servo.chi, servo.spread, servo.notices)


def find_law(task: Task, settings: PdSettings) -> FoundLaw:
    """Everything that is unknown of the PD laws of a task, with the dynamics."""
    robot = damped_robot(task.mechanism, settings)
    law, fit, limits = _with_limits(task, robot, settings)
    spread = covariance_of(fit.solution.equations or fit.system, fit.solution, task.experiment.uncertainty)
    chi = fit.values(law)
    motors = names_of(robot)
    renamed = {f"Fv_{damping_owner(task.mechanism, m)}": m for m in settings.unknown("kd", motors)}
    parameters = tuple(
        replace(item, name=f"Kd_{renamed[item.name]}", symbol="Kd", owner=renamed[item.name], kind="servo")
        if item.name in renamed
        else item
        for item in fit.system.parameters
    )
    by_name = {item.name: value for item, value in zip(parameters, chi.tolist(), strict=True)}
    law = Law.of(settings, motors, by_name)
    if limits.any:
        parameters, chi, spread = limits.added(robot, parameters, chi, spread, fit.data.S)
    notices = (*fit.solution.notices, *_judged(fit, parameters, chi, spread))
    choices = {"servo law": _words(settings, motors), **limits.choices(robot)}
    return FoundLaw(law, parameters, chi, spread, limits, choices, notices)


def _with_limits(task: Task, robot: Mechanism, settings: PdSettings) -> tuple[Law, _Fit, Limits]:
    """Law, its fit and the limits of the efforts.

    A law that was fitted to samples at a limit is wrong. So where a limit is suspected, a law is fitted to
    small position errors first, which ask for small efforts. Limits are then judged, with all samples, by the
    law that the samples below them give.
    """
    none, start = Limits.none(len(robot.actuators)), Law.of(settings, names_of(robot))
    plain, plain_fit = _iterated(task, robot, settings, start, none)
    limits = find_limits(plain_fit.problem, plain_fit.chi_standard, plain, suspected=True)
    if limits.any:
        law, fit = _iterated(replace(task, logs=_calm(task.logs, start)), robot, settings, start, none)
        limits = _limits(task, robot, law, fit, suspected=True)
    for turn in range(_LIMIT_ROUNDS):
        if not limits.any:
            return plain, plain_fit, none
        law, fit = _iterated(task, robot, settings, law, limits)
        suspected = turn + 1 < _SUSPECTING  # the limit of one motor shows only after others are masked
        before, limits = limits, _limits(task, robot, law, fit, suspected)
        if not suspected and limits.near(before):
            break
    return law, fit, limits


def _calm(logs: Sequence[Log], law: Law) -> tuple[Log, ...]:
    """The logs without the efforts of a motor where its position error is large."""
    errors = [np.abs(law.error(log)) for log in logs]
    most = np.quantile(np.concatenate(errors), _CALM, axis=0)
    return tuple(without(log, error > most) for log, error in zip(logs, errors, strict=True))


def _limits(task: Task, robot: Mechanism, law: Law, fit: _Fit, suspected: bool) -> Limits:
    """Limits from all samples, by a law that was fitted to some."""
    every = prepare(robot, [law.applied(log) for log in task.logs], task.experiment, task.plans)
    return find_limits(every, fit.chi_standard, law, suspected=suspected)


def names_of(robot: Mechanism) -> tuple[str, ...]:
    """Names of the motors."""
    return tuple(actuator.name for actuator in robot.actuators)


def damped_robot(robot: Mechanism, settings: PdSettings) -> Mechanism:
    """The robot with a viscous column for each motor whose kd is unknown."""
    motors = names_of(robot)
    drive = dict(robot.drive)
    for motor in settings.unknown("kd", motors):
        owner = damping_owner(robot, motor)
        drive[owner] = (*drive.get(owner, ()), "Fv")
    return replace(robot, drive=drive)


@dataclass(frozen=True, eq=False)
class _Fit:
    """One linearised fit.

    Attributes:
        system: Over base parameters, then steps of delay and bias, then kp.
        columns: Of the law, in that order.
        lost: Those that the logs do not determine.
    """

    problem: Problem
    data: BaseSystem
    system: System
    solution: Solution
    columns: tuple[Column, ...]
    lost: tuple[Column, ...]

    @property
    def chi_standard(self) -> Float[Array, "p"]:
        """Standard parameters with the same rows, shape (p,), SI."""
        v = self.data.S.shape[1]
        return np.asarray(self.data.S @ self.solution.chi[:v] + self.data.base.c)

    def of(self, kind: str, count: int) -> Float[Array, "a"]:
        """What was found for each motor, zero where there is no column."""
        v, values = self.data.S.shape[1], np.zeros(count)
        for k, entry in enumerate(self.columns):
            if entry.kind == kind:
                values[entry.motor] = self.solution.chi[v + k]
        return values

    def values(self, law: Law) -> Float[Array, "p"]:
        """Base parameters and values of the law, in the order of the system, shape (p,), SI."""
        chi, v = self.solution.chi.copy(), self.data.S.shape[1]
        for k, column in enumerate(self.columns):
            chi[v + k] = getattr(law, column.kind)[column.motor]
        return chi


def _iterated(
    task: Task,
    robot: Mechanism,
    settings: PdSettings,
    law: Law,
    limits: Limits,
    lost: frozenset[Column] = frozenset(),
) -> tuple[Law, _Fit]:
    """Fits until delay and bias stand still; the first one has no bias, which needs parameters.

    What still moves by more than its sigma at the end runs away, as a delay does in slow motion, where
    viscous friction imitates it: it is `lost`, and the others are found without it.
    """
    motors, start = names_of(robot), law
    wanted = {key: settings.unknown(key, motors) for key in ("delay", "bias", "kp")}
    every = [Column(key, motors.index(m)) for key in wanted for m in wanted[key]]
    every = [column for column in every if column not in lost]
    columns = [entry for entry in every if entry.kind == "kp"]
    if columns:  # kp alone first: the column of a delay has kp in it
        fit = _fit(task, robot, law, limits, columns, None)
        law, every_chi = law.changed(kp=_kp(law, fit)), fit.chi_standard
    else:
        fit = _fit(task, robot, law, limits, [], None)
        every_chi = fit.chi_standard
    nonlinear = [entry for entry in every if entry.kind != "kp"]
    for _ in range(_ROUNDS if nonlinear else 0):
        fit = _fit(task, robot, law, limits, every, every_chi)
        sigma = np.sqrt(np.diag(fit.solution.covariance))[fit.data.S.shape[1] :]
        delay = np.clip(fit.of("delay", len(motors)), -_MOST_DELAY, _MOST_DELAY)
        bias = np.clip(fit.of("bias", len(motors)), -_MOST_BIAS, _MOST_BIAS)
        law = law.changed(kp=_kp(law, fit), delay=law.delay + delay, bias=law.bias + bias)
        every_chi = fit.chi_standard
        steps = [abs({"delay": delay, "bias": bias}.get(c.kind, 0.0 * bias)[c.motor]) for c in fit.columns]
        if np.all(np.array(steps) <= _STILL * sigma):
            break
    else:
        moving = (
            [c for c, step, s in zip(fit.columns, steps, sigma, strict=True) if step > s] if nonlinear else []
        )
        if moving:
            return _iterated(task, robot, settings, start, limits, lost | frozenset(moving))
    return law, replace(fit, lost=(*fit.lost, *sorted(lost, key=lambda column: (column.kind, column.motor))))


def _kp(law: Law, fit: _Fit) -> Float[Array, "a"]:
    fitted = fit.of("kp", len(law.kp))
    return np.where(fitted != 0.0, fitted, law.kp)


def _fit(
    task: Task,
    robot: Mechanism,
    law: Law,
    limits: Limits,
    columns: Sequence[Column],
    chi: Float[Array, "p"] | None,
) -> _Fit:
    """One fit about the present law."""
    open_kp = np.array([any(c.kind == "kp" and c.motor == a for c in columns) for a in range(len(law.kp))])
    # The bodies' positions, and the efforts that need no unknown kp.
    known = law.changed(kp=np.where(open_kp, 0.0, law.kp))
    logs = [known.applied(masked(log, law, limits)) for log in task.logs]
    problem = prepare(robot, logs, task.experiment, task.plans)
    if np.any(np.count_nonzero(problem.directions.effort_map, axis=1) > 1):
        raise InputError(
            "a PD law with unknowns needs equations of one motor each, which this robot or model has not",
            remedy="use model: inverse; of redundantly actuated robots, log efforts",
        )
    chi = np.zeros(len(problem.parameters)) if chi is None else chi
    rows = servo_system(problem, law, columns, chi, task.progress)
    data = base_system(rows.plain, base_of(problem, task.experiment))
    kept, lost = _determined(rows, data, columns, robot)
    system = _equations(rows, data, kept, columns, robot)
    gains = sum(columns[k].kind == "kp" for k in kept)
    try:
        solution = (
            solve_gains(system, _noise(problem, system, [columns[k] for k in kept])).solution
            if gains
            else estimator_named("wls")(system)
        )
    except NoResultError as error:
        raise InputError(
            f"kp is not identifiable: {error}",
            remedy="give one kp, known bodies (pd: {bodies: known}), or a weighed payload in some logs",
        ) from error
    return _Fit(problem, data, system, solution, tuple(columns[k] for k in kept), lost)


def _determined(
    rows: ServoSystem, data: BaseSystem, columns: Sequence[Column], robot: Mechanism
) -> tuple[list[int], tuple[Column, ...]]:
    """Delays and biases that are no combination of other columns, then all kp; and those that are lost."""
    order = [k for k, column in enumerate(columns) if column.kind != "kp"]
    gains = [k for k, column in enumerate(columns) if column.kind == "kp"]
    if not order:
        return gains, ()
    factors = group_factors(_equations(rows, data, order, columns, robot))
    W = np.concatenate([factor.W for factor in factors])
    v = data.S.shape[1]
    # A bias that moves no effort (a vertical axis) leaves rounding of the difference of two regressors.
    floor = np.zeros(W.shape[1])
    floor[v:] = _ROUNDING * np.linalg.norm([np.linalg.norm(group.Y) for group in factors])
    rank = independent_columns(W, range(W.shape[1]), rtol=_DEPENDENT, floor=floor)
    gone = {k - v for k in (*rank.dependent, *rank.zero) if k >= v}
    kept = [k for i, k in enumerate(order) if i not in gone]
    return [*kept, *gains], tuple(columns[order[i]] for i in sorted(gone))


def _equations(
    rows: ServoSystem, data: BaseSystem, kept: Sequence[int], columns: Sequence[Column], robot: Mechanism
) -> System:
    """W chi - C x = known efforts - W c over base parameters and the kept columns of the law."""
    v, place = data.S.shape[1], {k: i for i, k in enumerate(kept)}
    groups = []
    for plain, side in zip(rows.plain.groups, rows.sides, strict=True):
        part = data.S[plain.columns]
        seen = np.flatnonzero(np.any(part != 0, axis=0))
        c = data.base.c[plain.columns]
        mine = [i for i, number in enumerate(side.columns.tolist()) if number in place]
        blocks = []
        for block, law in zip(plain.blocks, side.blocks, strict=True):
            R = np.column_stack([block.W @ part[:, seen], -law.W[:, mine], block.Y - block.W @ c])
            blocks.append(Factor(R, block.n_rows))
        more = [v + place[int(side.columns[i])] for i in mine]
        groups.append(replace(plain, columns=np.array([*seen, *more], int), blocks=tuple(blocks)))
    names = [_parameter(columns[k], robot) for k in kept]
    return System((*data.system.parameters, *names), tuple(groups))


def _parameter(column: Column, robot: Mechanism) -> Parameter:
    """Name and unit of an unknown of the law."""
    motor = robot.actuators[column.motor].name
    effort = effort_unit(robot, motor)
    position = "rad" if effort == "N m" else "m"
    units = {"kp": f"{effort}/{position}", "delay": "s", "bias": position}
    symbol = QUANTITIES[column.kind]
    return Parameter(f"{symbol}_{motor}", symbol, motor, units[column.kind], "servo")


def _noise(problem: Problem, system: System, columns: Sequence[Column]) -> list[GroupNoise]:
    """Noise of a row is that of the position error of its motor."""
    gains = [column.motor for column in columns if column.kind == "kp"]
    felt = dict(zip(problem.directions.names, problem.directions.effort_map != 0.0, strict=True))
    noises = []
    for group in system.groups:
        D = felt[group.name][gains].astype(float)
        noises.append(GroupNoise(D, 0.0 if D.any() else 1.0))
    return noises


def _judged(
    fit: _Fit, parameters: Sequence[Parameter], chi: Float[Array, "p"], spread: Spread
) -> Iterator[Notice]:
    """What the logs determine badly, or not at all."""
    robot = fit.problem.mechanism
    if fit.lost:
        names = ", ".join(_parameter(column, robot).name for column in fit.lost)
        yield notice("servo-lost", names=names)
    sigma = np.sqrt(np.diag(spread.covariance))
    weak = [
        f"{parameter.name} ({100 * s / abs(x):.0f} %)"
        for parameter, x, s in zip(parameters, chi, sigma, strict=True)
        if parameter.symbol in ("Kp", "Kd") and 100 * s > _WEAK_PERCENT * abs(x)
    ]
    if weak:
        yield notice("servo-weak", names=", ".join(weak))


def _words(settings: PdSettings, motors: Sequence[str]) -> str:
    """What was found, in one line."""
    parts = []
    for key in QUANTITIES:
        names = settings.unknown(key, motors)
        if names:
            parts.append(f"{key} of {'all motors' if len(names) == len(motors) else ', '.join(names)}")
    more = "; kd includes viscous friction" if settings.unknown("kd", motors) else ""
    bodies = "; bodies as described" if settings.bodies == "known" else ""
    return f"estimated with the dynamics: {', '.join(parts)}{more}{bodies}"
