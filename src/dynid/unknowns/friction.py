"""Friction that is linear only once its loads and Stribeck speeds are known: refits around the fit.

    fit without Fl and Fk  ->  loads of the bodies  ->  fit with Fl  ->  loads ...  ->  speeds  ->  loads

Each arrow is a linear fit on one pass over the logs. Loads depend on the masses, which friction hardly
changes: two or three iterations are enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dynid.base.system import base_system
from dynid.common.arrays import Array, Float
from dynid.common.expression import parse
from dynid.common.notices import Notice, notice
from dynid.estimator.estimator import estimator_named, solve_weighted
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit
from dynid.linear_fit import LinearFit, base_of, linear_fit, speed_bounds, vector, with_mechanism
from dynid.mechanism.drive_terms import LOADED, SEARCHED
from dynid.mechanism.mechanism import Mechanism, Term
from dynid.mechanism.parameters import effort_unit, owners_of, speed_map
from dynid.problem import Problem, build_system
from dynid.projection.factor import triangle
from dynid.realise import consistent_values
from dynid.statistics.assemble import EstimateParts, estimate_parameters, widened, with_sigma
from dynid.unknown import Settled, Task

_ROUNDS = 8
_BODY_ROUNDS = 2
_WEAK = 1e4  # real logs of arms have 10 to 2000; above this the data do not determine single masses
_STEP = 2e-3  # of Fl, which is a share of the load: a change below makes no effort visibly different
_CANDIDATES = 9
_SWEEPS = 6
_MOST_STEP = 0.25  # of the speed: a linearised step beyond is not to be trusted


def settle_friction(task: Task) -> Settled:
    """Find the loads and Stribeck speeds of friction that is linear only once they are known."""
    problem, experiment = task.problem, task.experiment
    robot = problem.mechanism
    searched = tuple(owner for owner in owners_of(robot, *SEARCHED) if owner not in robot.stribeck)
    loaded = owners_of(robot, *LOADED)
    choices: dict[str, str] = {}
    notices: list[Notice] = []
    speeds = None
    plain = _without(robot, dict.fromkeys(SEARCHED, searched))
    fit = linear_fit(with_mechanism(problem, _without(plain, dict.fromkeys(LOADED, loaded)), {}), experiment)
    if loaded and searched:
        fit = _settle_loads(with_mechanism(problem, plain, fit.values), fit.values, experiment)[0]
    if searched:
        speeds = search_speeds(fit, searched)
        robot = replace(robot, stribeck={**robot.stribeck, **speeds.by_owner})
        experiment = experiment.changed(stribeck={**experiment.stribeck, **speeds.by_owner})
        choices |= {f"Stribeck speed of {entry.owner}": entry.words for entry in speeds.found}
        notices += [remark for entry in speeds.found for remark in entry.notices]
    problem = with_mechanism(problem, robot, fit.values)
    if loaded:
        last, rounds, step = _settle_loads(problem, fit.values, experiment)
        problem = _of_bodies(problem.with_load_parameters(last.chi), last, experiment)
        choices["loads of friction Fl"] = (
            f"predicted from the parameters; after {rounds} refits Fl changed by {step:.1g} at most"
        )
        if step > _STEP:
            notices.append(notice("loads-open", step=step))
        condition = last.solution.condition_scaled
        if condition > _WEAK:
            notices.append(notice("loads-weak", condition=condition))
    done = replace(task, prepared=problem, experiment=experiment)
    return Settled(done, choices, tuple(notices), None if speeds is None else partial(_widened, speeds))


def _widened(speeds: Speeds, parts: EstimateParts, fit: Fit) -> EstimateParts:
    """The parameters with what the search of Stribeck speeds costs."""
    return speeds.widened(parts, fit.problem, fit.data.S, fit.linear_chi)


def _settle_loads(
    problem: Problem, values: Mapping[str, float], experiment: Experiment
) -> tuple[LinearFit, int, float]:
    """Fit and predict loads in turn until load friction converges: the fit, iterations, last step."""
    names = [parameter.name for parameter in problem.parameters if parameter.symbol in LOADED]
    rounds, step = 0, np.inf
    base = base_of(problem, experiment)  # loads do not change what can be seen
    while rounds < _ROUNDS and step > _STEP:
        fit = linear_fit(problem.with_load_parameters(vector(problem.parameters, values)), experiment, base)
        step = max(abs(fit.values[name] - values.get(name, 0.0)) for name in names)
        rounds, values = rounds + 1, fit.values
    return fit, rounds, step


def _of_bodies(problem: Problem, fit: LinearFit, experiment: Experiment) -> Problem:
    """Loads as the result will predict them: of a consistent estimate by its bodies, not by sums of them.

    A weight that acts like an offset (a vertical slider) is in the bodies of a consistent set, but in no
    base parameter that loads a joint.
    """
    constraint = estimator_named(experiment.estimator, experiment.estimator_options).constraint
    if constraint is None:
        return problem
    for rest in reversed(range(_BODY_ROUNDS)):
        chi = consistent_values(problem, experiment, fit.data, fit.solution, constraint)
        if chi is None:
            break  # the estimate itself will say why
        problem = problem.with_load_parameters(chi)
        fit = linear_fit(problem, experiment, fit.data.base) if rest else fit
    return problem


def _without(robot: Mechanism, terms: Mapping[str, Sequence[str]]) -> Mechanism:
    """The robot without some drive terms of some owners."""
    drive = {
        owner: tuple(symbol for symbol in symbols if owner not in terms.get(symbol, ()))
        for owner, symbols in robot.drive.items()
    }
    return replace(robot, drive={owner: symbols for owner, symbols in drive.items() if symbols})


# Stribeck speeds: searched outside the linear fit, on few passes over the logs.
#
#     rows:  W chi + sum over owners of Fk_o sign(s_o) exp(-(s_o / vs_o)^2)  =  Y
#
# A pass streams a column for each of several speeds of each owner. One triangle then holds every
# combination of them: with the linear part eliminated, a choice of speeds costs a least-squares problem
# of as many columns as there are owners. The best speeds are narrowed down by a second pass; a third
# one linearises about them, so that the speed has an interval from the same source as all others.
#
# Parameters fitted with fixed speeds would have a sigma that is too small. With D the columns d/dvs of the
# rows, d chi / d vs = -W^+ D propagates the covariance of the speeds to them.


@dataclass(frozen=True)
class Speed:
    """A Stribeck speed.

    Attributes:
        value, low, high: The speed and its 95 % interval, in `unit`.
        bounds: Speeds that these logs could show.
    """

    owner: str
    unit: str
    value: float
    low: float
    high: float
    bounds: tuple[float, float]

    @property
    def words(self) -> str:
        """The speed in one line."""
        return f"{self.value:.3g} {self.unit} (95 %: {self.low:.3g} to {self.high:.3g}), searched"

    @property
    def notices(self) -> tuple[Notice, ...]:
        """A warning where the data do not hold the speed."""
        least, most = self.bounds
        inside = least * 1.05 < self.value < most / 1.05 and self.low > 0.0
        if inside and self.high - self.low < 2.0 * self.value:
            return ()
        return (
            notice(
                "stribeck-open", owner=self.owner, found=self.words, least=least, most=most, unit=self.unit
            ),
        )


@dataclass(frozen=True, eq=False)
class Speeds:
    """All speeds that were searched, and how well they are known together.

    Attributes:
        covariance: Shape (o, o), squares of their units; dof: its degrees of freedom.
    """

    found: tuple[Speed, ...]
    covariance: Float[Array, "o o"]
    dof: float

    @property
    def by_owner(self) -> dict[str, float]:
        """Owner -> speed."""
        return {entry.owner: entry.value for entry in self.found}

    def widened(
        self, parts: EstimateParts, problem: Problem, S: Float[Array, "p v"], chi: Float[Array, "p"]
    ) -> EstimateParts:
        """Parameters with what the doubt about the speeds adds to theirs.

        Args:
            parts: Fitted with the speeds as if they were known.
            problem: With these speeds.
            S: Standard column combination of each parameter.
            chi: Standard parameters that give the same efforts, SI.
        """
        kept = with_sigma(parts)
        names = [parameter.name for parameter in problem.parameters]
        larger = _with_slopes(problem, self.by_owner, dict(zip(names, chi.tolist(), strict=True)))
        place = {parameter.name: i for i, parameter in enumerate(larger.parameters)}
        R = build_system(larger).factor(parts.solution.weights).R
        W = R[:, [place[name] for name in names]] @ S[:, kept]
        D = R[:, [place[_name(owner)] for owner in self.by_owner]]
        slopes = np.zeros((len(parts.parameters), len(self.found)))
        slopes[kept] = -np.linalg.lstsq(W, D, rcond=None)[0]
        return widened(parts, slopes @ self.covariance @ slopes.T, self.dof, "Stribeck speeds as unknowns")


def search_speeds(fit: LinearFit, owners: Sequence[str]) -> Speeds:
    """Speeds of least residual, one per owner; the same logs always give the same.

    Args:
        fit: Of the model without the Stribeck terms of these owners.
        owners: Coordinates or actuators with a term Fk.
    """
    bounds = speed_bounds(fit.problem, owners)
    grids = [np.geomspace(*bound, _CANDIDATES) for bound in bounds]
    picks = _best(fit, owners, grids)
    for i, (grid, pick) in enumerate(zip(grids, picks, strict=True)):
        near = grid[max(pick - 1, 0)], grid[min(pick + 1, _CANDIDATES - 1)]
        grids[i] = np.geomspace(*near, _CANDIDATES)
    picks = _best(fit, owners, grids)
    chosen = [float(grid[pick]) for grid, pick in zip(grids, picks, strict=True)]
    return _refined(fit, owners, chosen, bounds)


def _best(fit: LinearFit, owners: Sequence[str], grids: Sequence[Float[Array, "g"]]) -> list[int]:
    """Candidate of each owner with the least residual, owner after owner until nothing changes."""
    R, index = _eliminated(fit, owners, grids)
    picks: list[int | None] = [None] * len(owners)

    def residual(i: int, pick: int) -> float:
        chosen = [pick if k == i else other for k, other in enumerate(picks)]
        columns = [index[k, choice] for k, choice in enumerate(chosen) if choice is not None]
        x = np.linalg.lstsq(R[:, columns], R[:, -1], rcond=None)[0]
        return float(np.linalg.norm(R[:, -1] - R[:, columns] @ x))

    for _ in range(_SWEEPS):
        before = list(picks)
        for i in range(len(owners)):
            picks[i] = int(np.argmin([residual(i, pick) for pick in range(_CANDIDATES)]))
        if picks == before:
            break
    return [pick or 0 for pick in picks]


def _eliminated(
    fit: LinearFit, owners: Sequence[str], grids: Sequence[Float[Array, "g"]]
) -> tuple[Float[Array, "k c"], dict[tuple[int, int], int]]:
    """Weighted candidate columns and Y less what the linear part explains of them."""
    robot, terms, names = fit.problem.mechanism, [], {}
    for i, (owner, grid) in enumerate(zip(owners, grids, strict=True)):
        for k, speed in enumerate(grid):
            names[i, k] = f"{owner} at {speed:.17g}"
            terms += _terms(robot, owner, names[i, k], "exp(-(({s}) / {v})^2)", float(speed))
    problem = with_mechanism(fit.problem, replace(robot, terms=(*robot.terms, *terms)), fit.values)
    place = {parameter.name: i for i, parameter in enumerate(problem.parameters)}
    linear = [place[parameter.name] for parameter in fit.problem.parameters]
    R = build_system(problem).factor(fit.solution.weights).R
    S, c = fit.data.S, fit.data.base.c
    candidates = [place[name] for name in names.values()]
    rows = np.column_stack([R[:, linear] @ S, R[:, candidates], R[:, -1] - R[:, linear] @ c])
    left = triangle(rows)[S.shape[1] :, S.shape[1] :]
    return left, {key: i for i, key in enumerate(names)}


def _terms(robot: Mechanism, owner: str, name: str, shape: str, speed: float) -> list[Term]:
    """Columns sign(s) shape(s, v) of an owner, in the equation of every coordinate it acts on."""
    ratios = {
        coordinate: float(ratio)
        for coordinate, ratio in zip(robot.coordinates, speed_map(robot, (owner,))[0], strict=True)
        if ratio != 0.0
    }
    s = " + ".join(f"({ratio!r}) * dq({coordinate})" for coordinate, ratio in ratios.items())
    text = f"sign({s}) * " + shape.format(s=s, v=repr(speed))
    return [Term(name, coord, parse(f"({ratio!r}) * {text}")) for coord, ratio in ratios.items()]


def _refined(
    fit: LinearFit,
    owners: Sequence[str],
    speeds: Sequence[float],
    bounds: Sequence[tuple[float, float]],
) -> Speeds:
    """One linearised step from the speeds found, and intervals that count what moves with them."""
    robot, experiment = fit.problem.mechanism, fit.experiment
    drive = {
        owner: (*symbols, *SEARCHED) if owner in owners else symbols
        for owner, symbols in {**dict.fromkeys(owners, ()), **robot.drive}.items()
    }
    known = {**robot.stribeck, **dict(zip(owners, speeds, strict=True))}
    robot = replace(robot, drive=drive, stribeck=known)
    known_fit = linear_fit(with_mechanism(fit.problem, robot, fit.values), experiment)
    problem = _with_slopes(known_fit.problem, dict(zip(owners, speeds, strict=True)), known_fit.values)
    data = base_system(build_system(problem), base_of(problem, experiment))
    solution = solve_weighted(data.system, fit.solution.weights)
    parts = estimate_parameters(data, solution, settings=experiment.uncertainty)
    steps = {entry.name: entry for entry in parts.parameters}
    fitted = [entry.name for entry in parts.parameters if entry.sigma is not None]
    place = {i: fitted.index(_name(owner)) for i, owner in enumerate(owners) if _name(owner) in fitted}
    kept, fitted_at = list(place), list(place.values())
    # Where nothing holds a speed, it may be any that the logs could show.
    covariance = np.diag([(high - low) ** 2 / 12.0 for low, high in bounds])
    covariance[np.ix_(kept, kept)] = parts.covariance[np.ix_(fitted_at, fitted_at)]
    results = []
    for owner, speed, bound in zip(owners, speeds, bounds, strict=True):
        unit = "rad/s" if effort_unit(robot, owner) == "N m" else "m/s"
        estimate = steps.get(_name(owner))
        if estimate is None or estimate.ci95 is None or not np.all(np.isfinite(estimate.ci95)):
            results.append(Speed(owner, unit, speed, 0.0, np.inf, bound))
            continue
        step = float(np.clip(estimate.value, -_MOST_STEP * speed, _MOST_STEP * speed))
        value = float(np.clip(speed + step, *bound))
        half = 0.5 * (estimate.ci95[1] - estimate.ci95[0])
        results.append(Speed(owner, unit, value, max(0.0, value - half), value + half, bound))
    dof = min((float(steps[fitted[at]].dof or 1.0) for at in fitted_at), default=1.0)
    return Speeds(tuple(results), covariance, dof)


def _with_slopes(problem: Problem, speeds: Mapping[str, float], values: Mapping[str, float]) -> Problem:
    """The problem with a column d/dvs for each speed: Fk sign(s) exp(-(s / vs)^2) 2 s^2 / vs^3.

    Args:
        problem: With the terms Fk.
        speeds: By owner, in [rad/s] or [m/s].
        values: Standard parameters by name, Fk among them.
    """
    robot, terms = problem.mechanism, []
    for owner, speed in speeds.items():
        shape = f"exp(-(({{s}}) / {{v}})^2) * 2 * ({{s}})^2 / {{v}}^3 * ({values[f'Fk_{owner}']!r})"
        terms += _terms(robot, owner, _name(owner), shape, speed)
    return with_mechanism(problem, replace(robot, terms=(*robot.terms, *terms)), values)


def _name(owner: str) -> str:
    return f"vs of {owner}"
