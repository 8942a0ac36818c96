"""Drive gains of an identification: efforts as logged in, efforts with gains applied out.

The gains are found first, from rows in which every motor's current has its own column. The rest of
the identification then reads efforts with these gains applied; its parameters are the same as
those found together with the gains, and their uncertainty is that of all of them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dynid.base.base import BaseSet
from dynid.base.system import base_system
from dynid.checks.total_mass import weigh
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, NoResultError
from dynid.common.notices import Notice, notice
from dynid.estimator.estimator import estimator_named
from dynid.estimator.gains import GainSolution, solve_gains
from dynid.estimator.settings import GAIN, GainSettings
from dynid.experiment.estimator_choice import rows_without_effort
from dynid.experiment.experiment import Experiment
from dynid.linear_fit import base_of
from dynid.mechanism.parameters import Parameter, effort_unit
from dynid.prediction.result_values import applied, nominal_factors
from dynid.problem import Problem, Progress, prepare
from dynid.projection.model import model_for
from dynid.statistics.assemble import EstimateParts, joined
from dynid.statistics.covariance import ENOUGH_RUNS, covariance_of
from dynid.statistics.sandwich import Spread
from dynid.unknown import Settled, Task
from dynid.unknowns.gain_rows import GainPass, MotorSystem, OpenParameters, motor_system

# A gain known worse than this is no gain to publish.
_WEAK_PERCENT = 10.0
# Estimators that take W as exact, and the one that does not.
_EXACT, _NOISY = ("ols", "wls"), "gtls"


def settle_gains(task: Task) -> Settled:
    """Find the gains that an experiment leaves open, and apply them to its logs."""
    settings, mechanism = task.experiment.gains, task.mechanism
    if settings is None:
        return Settled(task)
    motors = tuple(actuator.name for actuator in mechanism.actuators)
    nominal = nominal_factors(motors, settings)
    if settings.checks_only:
        return Settled(_scaled(task, nominal))
    _check_silent(task)
    check_gains(task.experiment, (*_EXACT, _NOISY))
    problem = prepare(mechanism, _scaled(task, nominal).logs, task.experiment)
    solved = find_gains(problem, base_of(problem, task.experiment), task.experiment, task.progress)
    return Settled(_scaled(task, solved.factors), solved.choices, add_values=partial(_joined, solved))


def _scaled(task: Task, factors: Float[Array, "a"]) -> Task:
    """The task with factors on the efforts of all its logs."""
    logs = tuple(applied(log, factors) for log in task.logs)
    held_out = tuple(applied(log, factors) for log in task.held_out)
    return replace(task, logs=logs, held_out=held_out)


def _joined(gains: DriveGains, parts: EstimateParts) -> EstimateParts:
    """The parameters and the gains, with their joint uncertainty."""
    u = len(gains.nominal)
    scale = np.concatenate([np.ones(len(gains.parameters) - u), gains.nominal])
    spread = replace(gains.spread, covariance=gains.spread.covariance * np.outer(scale, scale))
    names = [parameter.name for parameter in gains.parameters]
    priors = dict(zip(names, scale.tolist(), strict=True))
    return joined(parts, gains.parameters, gains.chi * scale, spread, gains.notices, priors)


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Gains, and the parameters found together with them.

    Attributes:
        parameters: Seen base parameters, then the gains.
        chi: Their values, shape (p + u,), SI; gains in units of the nominal ones.
        spread: Their covariance, gains in units of the nominal ones.
        factors: What the effort column of each motor is multiplied by, shape (a,), effort per logged unit.
        nominal: Nominal value of each gain parameter, shape (u,), in its unit.
    """

    parameters: tuple[Parameter, ...]
    chi: Float[Array, "p"]
    spread: Spread
    factors: Float[Array, "a"]
    nominal: Float[Array, "u"]
    notices: tuple[Notice, ...]
    choices: dict[str, str]


def check_gains(experiment: Experiment, estimators: Sequence[str] = _EXACT) -> None:
    """Refuse what gains cannot be estimated with."""
    if experiment.estimator not in estimators:
        raise InputError(
            f"gains are estimated by maximum likelihood with one weight per joint, which"
            f" '{experiment.estimator}' does not use",
            file=experiment.file,
            remedy=f"use estimator: {' or '.join(reversed(estimators))}; then set the estimated gains under"
            " `columns: {tau_1: {scale: ...}}`",
        )
    if experiment.essential is not None or experiment.keep is not None:
        raise InputError(
            "gains and a reduced set of parameters cannot be estimated together",
            file=experiment.file,
            remedy="estimate the gains first, then set them under `columns: {tau_1: {scale: ...}}`",
        )


def _check_silent(task: Task) -> None:
    """Refuse estimators that take the columns of rows without effort as exact."""
    experiment = task.experiment
    model = model_for(task.mechanism, experiment.model, experiment.file)
    silent = rows_without_effort(experiment, model, task.mechanism)
    if silent and experiment.estimator in _EXACT:
        raise InputError(
            f"gains together with rows in which no effort acts ({', '.join(silent)}) need estimator"
            f" '{_NOISY}': position noise in their columns would bias '{experiment.estimator}'",
            file=experiment.file,
            place="estimator",
            remedy="leave `estimator:` out, or list only rows with efforts under `efforts:`",
        )


def find_gains(
    problem: Problem, base: BaseSet, experiment: Experiment, progress: Progress | None = None
) -> DriveGains:
    """Gains and parameters of a problem whose efforts have nominal gains applied."""
    settings = experiment.gains
    assert settings is not None  # noqa: S101 (asked for by the caller)
    motors = tuple(actuator.name for actuator in problem.mechanism.actuators)
    open_motors = settings.open_motors(motors)
    if settings.scale is None:
        _refuse_no_reference(base, len(open_motors) < len(motors))
    rows = motor_system(problem, progress)
    data = base_system(rows.system, base)
    weighed = None if settings.scale is None else weigh(problem.mechanism, data, settings.scale)
    held = OpenParameters(data, weighed)
    names = gain_parameters(problem, settings, open_motors)
    T = np.zeros((len(motors), len(names)))
    for k, motor in enumerate(open_motors):
        T[motors.index(motor), 0 if settings.common else k] = 1.0
    solved = _solve(GainPass(problem, data, held, T, names), rows, experiment)
    spread = covariance_of(
        solved.solution.equations or data.blocked(), solved.solution, experiment.uncertainty
    )
    chi, spread = held.all_of(solved.solution.chi, spread)
    factors = nominal_factors(motors, settings)
    nominal = np.array([factors[np.argmax(T[:, k])] if settings.currents else 1.0 for k in range(len(names))])
    if settings.common:
        nominal = np.ones(len(names))
    fixed = 1.0 - T.sum(axis=1)
    notices = (*solved.solution.notices, *_judged(names, solved, spread))
    chosen = ", ".join(open_motors)
    by = _NOISY if experiment.estimator == _NOISY else "maximum likelihood"
    words = f"{'one common correction' if settings.common else 'one each'} of {chosen}; {by}"
    if weighed is not None:
        words += f"; reference: {weighed.words}"
        notices = (*notices, *weighed.notices())
    return DriveGains(
        (*data.system.parameters, *names),
        chi,
        spread,
        factors * (T @ solved.g + fixed),
        nominal,
        notices,
        {"drive gains": words},
    )


def _solve(again: GainPass, rows: MotorSystem, experiment: Experiment) -> GainSolution:
    noisy = experiment.estimator == _NOISY
    estimator = estimator_named(_NOISY, experiment.estimator_options) if noisy else None
    try:
        return solve_gains(again.equations(rows), rows.noise(again.T), estimator, again)
    except NoResultError as error:
        raise InputError(str(error), remedy="check the known mass, and which logs have it") from error


def _refuse_no_reference(base: BaseSet, has_fixed: bool) -> None:
    if has_fixed or np.any(base.c != 0.0):
        return
    raise InputError(
        "drive gains need a reference: no mass is known, so the common scale of efforts and parameters is"
        " not identifiable",
        remedy="mount a weighed payload in some logs: payloads: {ballast: {body: ..., known: {M: ...}}}, and"
        " payload: ballast at these logs; weigh the robot: gains: {total_mass: ...}; or remove a motor whose"
        " gain is known from `unknown:`",
    )


def gain_parameters(problem: Problem, settings: GainSettings, motors: Sequence[str]) -> tuple[Parameter, ...]:
    """Names and units of the gains."""
    if settings.common:
        return (Parameter(f"{GAIN}_common", GAIN, "all open motors", "1", GAIN),)
    return tuple(
        Parameter(
            f"{GAIN}_{motor}",
            GAIN,
            motor,
            f"{effort_unit(problem.mechanism, motor)}/A" if settings.currents else "1",
            GAIN,
        )
        for motor in motors
    )


def _judged(names: Sequence[Parameter], solved: GainSolution, spread: Spread) -> Iterator[Notice]:
    sigma = np.sqrt(np.diag(spread.covariance))[-len(names) :]
    weak = [
        f"{parameter.owner} ({100 * s / abs(g):.0f} %)"
        for parameter, g, s in zip(names, solved.g, sigma, strict=True)
        if 100 * s > _WEAK_PERCENT * abs(g)
    ]
    if weak:
        yield notice("gain-weak", names=", ".join(weak))
    motions = spread.facts.get("motions", ENOUGH_RUNS)
    if motions < ENOUGH_RUNS:
        several = f"{motions} different motion{'s' if motions > 1 else ''}"
        yield notice("gain-motions", motions=several, enough=ENOUGH_RUNS)
    wrong = [parameter.owner for parameter, g in zip(names, solved.g, strict=True) if g <= 0]
    if wrong:
        yield notice("gain-sign", names=", ".join(wrong))
