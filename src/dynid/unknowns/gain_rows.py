"""Drive gains of a problem: rows with a column per motor, their gains, and efforts with gains applied.

The gains are found first, from rows in which every motor's current has its own column. The rest of
the identification then reads efforts with these gains applied; its parameters are the same as
those found together with the gains, and their uncertainty is that of all of them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.base.base import BaseSet
from dynid.base.system import BaseSystem, base_system
from dynid.checks.total_mass import Weighed, weigh
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, NoResultError
from dynid.common.notices import Notice, notice
from dynid.estimator.gain_settings import GAIN, GainSettings
from dynid.estimator.gains import GainSolution, GroupNoise, solve_gains
from dynid.experiment.experiment import Experiment
from dynid.mechanism.parameters import Parameter, effort_unit, known_columns
from dynid.motion.choose import longest
from dynid.motion.log import Log
from dynid.motion.motion import Motion
from dynid.motion.spectrum import spectrum
from dynid.prediction.result_values import nominal_factors
from dynid.problem import Problem, Progress, build_system, row_groups
from dynid.projection.contract import PackedRows, RowSource
from dynid.projection.factor import Factor
from dynid.projection.projection import Group, System
from dynid.regressor.layout import Layout
from dynid.statistics.covariance import ENOUGH_RUNS, covariance_of
from dynid.statistics.sandwich import Spread

# A gain known worse than this is no gain to publish.
_WEAK_PERCENT = 10.0
_ESTIMATORS = ("ols", "wls")


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


def check_gains(experiment: Experiment) -> None:
    """Refuse what the likelihood of gains does not go with."""
    if experiment.estimator not in _ESTIMATORS:
        raise InputError(
            f"gains are estimated by maximum likelihood with one weight per joint, which"
            f" '{experiment.estimator}' does not use",
            file=experiment.file,
            remedy="use estimator: wls; then set the estimated gains under `columns: {tau_1: {scale: ...}}`",
        )
    if experiment.essential is not None or experiment.keep is not None:
        raise InputError(
            "gains and a reduced set of parameters cannot be estimated together",
            file=experiment.file,
            remedy="estimate the gains first, then set them under `columns: {tau_1: {scale: ...}}`",
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
    held = _Held(data, weighed)
    names = gain_parameters(problem, settings, open_motors)
    T = np.zeros((len(motors), len(names)))
    for k, motor in enumerate(open_motors):
        T[motors.index(motor), 0 if settings.common else k] = 1.0
    found = _solve(gain_equations(rows, held, T, names), rows.noise(T))
    spread = covariance_of(found.solution.equations or data.blocked(), found.solution, experiment.uncertainty)
    chi, spread = held.all_of(found.solution.chi, spread)
    factors = nominal_factors(motors, settings)
    nominal = np.array([factors[np.argmax(T[:, k])] if settings.currents else 1.0 for k in range(len(names))])
    if settings.common:
        nominal = np.ones(len(names))
    fixed = 1.0 - T.sum(axis=1)
    notices = (*found.solution.notices, *_judged(names, found, spread))
    chosen = ", ".join(open_motors)
    words = f"{'one common correction' if settings.common else 'one each'} of {chosen}; maximum likelihood"
    if weighed is not None:
        words += f"; reference: {weighed.words}"
        notices = (*notices, *weighed.notices())
    return DriveGains(
        (*data.system.parameters, *names),
        chi,
        spread,
        factors * (T @ found.g + fixed),
        nominal,
        notices,
        {"drive gains": words},
    )


def _solve(system: System, noise: list[GroupNoise]) -> GainSolution:
    try:
        return solve_gains(system, noise)
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


@dataclass(frozen=True, eq=False)
class MotorSystem:
    """Rows with a column for what every motor does in them.

    Attributes:
        system: Over the standard parameters; Y is the sum of the motors' columns.
        motors: The same groups over the motors.
        spreads: Variance that each motor's noise brings to a row of each group, shape (g, a), any scale.
    """

    system: System
    motors: tuple[Group, ...]
    spreads: Float[Array, "g a"]

    def noise(self, T: Float[Array, "a u"]) -> list[GroupNoise]:
        """Noise of the gains' columns in each group; at nominal gains it is one."""
        found = []
        for spread in self.spreads:
            own = spread / spread.sum() if spread.sum() > 0 else spread
            fixed = float(np.sum(own * (1.0 - T.sum(axis=1)))) if spread.sum() > 0 else 1.0
            found.append(GroupNoise(own @ T, fixed))
        return found


def motor_system(problem: Problem, progress: Progress | None = None) -> MotorSystem:
    """Stream the problem; a row with several motors is computed once for each of them."""
    several = np.any(np.count_nonzero(problem.directions.effort_map, axis=1) > 1)
    if not several:
        return motors_of(problem, build_system(problem, progress).groups)
    sources = [SplitRows(problem, source, len(problem.parameters)) for source in problem.sources]
    return motors_of(problem, row_groups(problem, sources, progress))


def motors_of(problem: Problem, groups: Sequence[Group]) -> MotorSystem:
    """Parameters and motors of streamed rows apart; a row of one motor has its side in Y."""
    p, a = len(problem.parameters), len(problem.mechanism.actuators)
    plain, motors, spreads = [], [], []
    felt = dict(zip(problem.directions.names, problem.directions.effort_map, strict=True))
    logs = {log.name: log for log in problem.logs}
    for group in groups:
        own = np.flatnonzero(group.columns < p)
        split = _per_motor(group, felt[group.name], p, a)
        blocks = tuple(Factor(np.column_stack([b.W[:, own], b.Y]), b.n_rows) for b in group.blocks)
        plain.append(replace(group, columns=group.columns[own], blocks=blocks))
        motors.append(split)
        spreads.append(_spread(split, logs[group.log]))
    known = known_columns(problem.mechanism, problem.parameters)
    system = System(problem.parameters, tuple(plain), known)
    return MotorSystem(system, tuple(motors), np.array(spreads))


def _per_motor(group: Group, felt: Float[Array, "a"], p: int, a: int) -> Group:
    """The same blocks over the motors alone: what each does in these rows."""
    at = {int(c) - p: k for k, c in enumerate(group.columns) if c >= p}
    blocks = []
    for block in group.blocks:
        C = np.zeros((len(block.R), a))
        for motor, k in at.items():
            C[:, motor] = block.W[:, k]
        if not at and np.any(felt):
            C[:, int(np.argmax(felt != 0))] = block.Y
        blocks.append(Factor(np.column_stack([C, block.Y]), block.n_rows))
    return replace(group, columns=np.arange(a), blocks=tuple(blocks))


def _spread(group: Group, log: Log) -> Float[Array, "a"]:
    """Variance that noise of each motor brings to a row: noise^2 times the mean square of its lever."""
    sums = np.sum([np.sum(block.W**2, axis=0) for block in group.blocks], axis=0) / group.n_rows
    felt = sums > 0
    if felt.sum() <= 1:
        return np.asarray(felt, dtype=float)
    tau = longest(log, np.nan_to_num(log.tau))
    lever = sums / np.maximum(np.mean(tau**2, axis=0), np.finfo(float).tiny)
    noise = spectrum(tau, log.dt).sigma ** 2
    # A current without any noise at all (a simulation) is taken to have a little.
    return np.asarray(lever * np.maximum(noise, 1e-12 * np.mean(tau**2, axis=0)))


class _Held:
    """Parameters seen, less the one that a weighed mass gives by the others: chi = chi_0 + Z y.

    Attributes:
        S, c: Standard parameters are S y + c, shapes (p, y) and (p,), SI.
        parameters: Those of y.
    """

    def __init__(self, data: BaseSystem, weighed: Weighed | None) -> None:
        v = data.S.shape[1]
        self.chi_0, self.Z, self.parameters = np.zeros(v), np.eye(v), data.system.parameters
        self._given: int | None = None
        if weighed is not None:
            size = np.linalg.norm(data.system.factor().W, axis=0)
            self.chi_0, self.Z, self._given = weighed.solved(size)
            self.parameters = tuple(p for k, p in enumerate(data.system.parameters) if k != self._given)
        self.S, self.c = data.S @ self.Z, data.base.c + data.S @ self.chi_0

    def all_of(self, theta: Float[Array, "t"], spread: Spread) -> tuple[Float[Array, "p"], Spread]:
        """Every parameter seen, then the gains, with their covariance."""
        if self._given is None:
            return theta, spread
        y = self.Z.shape[1]
        u = len(theta) - y
        T = np.zeros((len(self.Z) + u, len(theta)))
        T[: len(self.Z), :y], T[len(self.Z) :, y:] = self.Z, np.eye(u)
        # The one given up is as well known as the worst of those that give it.
        by = np.flatnonzero(self.Z[self._given])
        dof = np.insert(spread.dof, self._given, spread.dof[by].min() if len(by) else spread.dof.max())
        methods = list(spread.methods)
        methods.insert(self._given, methods[by[0]] if len(by) else methods[0])
        chi = T @ theta + np.append(self.chi_0, np.zeros(u))
        covariance = T @ spread.covariance @ T.T
        return chi, replace(spread, covariance=covariance, dof=dof, methods=tuple(methods))


def gain_equations(
    rows: MotorSystem, data: _Held, T: Float[Array, "a u"], names: tuple[Parameter, ...]
) -> System:
    """W chi - C g = -w over the parameters to find and the gains, block by block."""
    v, u = data.S.shape[1], T.shape[1]
    fixed = 1.0 - T.sum(axis=1)
    groups = []
    for plain, motors in zip(rows.system.groups, rows.motors, strict=True):
        own = data.S[plain.columns]
        seen = np.flatnonzero(np.any(own != 0, axis=0))
        c = data.c[plain.columns]
        blocks = []
        for block, side in zip(plain.blocks, motors.blocks, strict=True):
            known = -block.W @ c + side.W @ fixed
            R = np.column_stack([block.W @ own[:, seen], -side.W @ T, known])
            blocks.append(Factor(R, block.n_rows))
        columns = np.concatenate([seen, v + np.arange(u)])
        groups.append(replace(plain, columns=columns, blocks=tuple(blocks)))
    return System((*data.parameters, *names), tuple(groups))


def _judged(names: Sequence[Parameter], found: GainSolution, spread: Spread) -> Iterator[Notice]:
    sigma = np.sqrt(np.diag(spread.covariance))[-len(names) :]
    weak = [
        f"{one.owner} ({100 * s / abs(g):.0f} %)"
        for one, g, s in zip(names, found.g, sigma, strict=True)
        if 100 * s > _WEAK_PERCENT * abs(g)
    ]
    if weak:
        yield notice("gain-weak", names=", ".join(weak))
    motions = spread.facts.get("motions", ENOUGH_RUNS)
    if motions < ENOUGH_RUNS:
        several = f"{motions} different motion{'s' if motions > 1 else ''}"
        yield notice("gain-motions", motions=several, enough=ENOUGH_RUNS)
    wrong = [one.owner for one, g in zip(names, found.g, strict=True) if g <= 0]
    if wrong:
        yield notice("gain-sign", names=", ".join(wrong))


class SplitRows:
    """Rows with one further column per motor: what its effort does in them.

    Args:
        source: The rows; each motor's column is computed from a log in which only it acts.
        n_parameters: Columns of motors are numbered from here on.
    """

    def __init__(self, problem: Problem, source: RowSource, n_parameters: int) -> None:
        self.source, self.dt = source, source.dt
        log, inner = source.motion.log, source.layout
        self._motors = np.flatnonzero(np.any(source.directions.effort_map != 0, axis=0))
        self._alone: list[PackedRows] = []
        for motor in self._motors[:-1]:  # the last one is what is left of the sum
            tau = np.zeros_like(log.tau)
            tau[:, motor] = log.tau[:, motor]
            motion = Motion(replace(log, tau=tau), source.motion.plan)
            self._alone.append(problem.rows_along(motion))
        columns, starts, take = [], [0], []
        size = len(self._motors)
        for k, (start, stop) in enumerate(zip(inner.start[:-1], inner.start[1:], strict=True)):
            take += [*range(start, stop - 1), *(inner.n_entries + k * size + np.arange(size)), stop - 1]
            columns += [*inner.columns[start : stop - 1], *(n_parameters + self._motors), -1]
            starts.append(len(columns))
        self.layout = Layout(np.array(starts), np.array(columns))
        self._take, self._ends = np.array(take), inner.start[1:] - 1

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Those of the source."""
        return self.source.pieces()

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Entries with the motors' columns before each measured side."""
        streams = [self.source.rows(start, stop, tile), *(one.rows(start, stop, tile) for one in self._alone)]
        for (at, packed, weights), *others in zip(*streams, strict=True):
            sides = [other[self._ends] for _, other, _ in others]
            sides.append(packed[self._ends] - sum(sides))
            extra = np.stack(sides, axis=1).reshape(-1, packed.shape[1])
            yield at, np.concatenate([packed, extra])[self._take], weights
