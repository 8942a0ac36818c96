"""Stribeck speeds: searched outside the linear fit, on few passes over the logs.

    rows:  W chi + sum over owners of Fk_o sign(s_o) exp(-(s_o / vs_o)^2)  =  Y

A pass streams a column for each of several speeds of each owner. One triangle then holds every
combination of them: with the linear part eliminated, a choice of speeds costs a least-squares problem
of as many columns as there are owners. The best speeds are narrowed down by a second pass; a third
one linearises about them, so that the speed has an interval from the same source as all others.

Parameters fitted with fixed speeds would have a sigma that is too small. With D the columns d/dvs of the
rows, d chi / d vs = -W^+ D propagates the covariance of the speeds to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from dynid.base.system import base_system
from dynid.common.arrays import Array
from dynid.common.notices import Notice
from dynid.estimator.estimator import solve_weighted
from dynid.estimator.wls import Weights
from dynid.experiment.experiment import Experiment
from dynid.linear import LinearFit, base_of, linear_fit, speed_bounds, with_mechanism
from dynid.mechanism.expression import parse
from dynid.mechanism.friction import speed_map
from dynid.mechanism.mechanism import Mechanism, Term
from dynid.mechanism.parameters import effort_unit
from dynid.problem import Problem, build_system
from dynid.projection.factor import triangle
from dynid.statistics.assemble import EstimateParts, estimate_parameters
from dynid.statistics.widen import widened, with_sigma

_CANDIDATES = 9
_SWEEPS = 6
_MOST_STEP = 0.25  # of the speed: a linearised step beyond is not to be trusted


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
        text = f"the Stribeck speed of {self.owner} is poorly determined: {self.words}; speeds in the logs:"
        text += f" {least:.3g} to {most:.3g} {self.unit}"
        return (Notice("stribeck-open", text, f"leave Fk of {self.owner} out, or record slow motion"),)


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
        return {one.owner: one.value for one in self.found}

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


def search_speeds(fit: LinearFit, experiment: Experiment, owners: Sequence[str]) -> Speeds:
    """Speeds of least residual, one per owner; the same logs always give the same.

    Args:
        fit: Of the model without the Stribeck terms of these owners.
        experiment: Settings of the problem.
        owners: Coordinates or actuators with a term Fk.
    """
    bounds = speed_bounds(fit.problem, owners)
    grids = [np.geomspace(*bound, _CANDIDATES) for bound in bounds]
    picks = _best(fit, owners, grids)
    for i, (grid, pick) in enumerate(zip(grids, picks, strict=True)):
        near = grid[max(pick - 1, 0)], grid[min(pick + 1, _CANDIDATES - 1)]
        grids[i] = np.geomspace(*near, _CANDIDATES)
    picks = _best(fit, owners, grids)
    found = [float(grid[pick]) for grid, pick in zip(grids, picks, strict=True)]
    return _refined(fit, experiment, owners, found, bounds)


def _best(fit: LinearFit, owners: Sequence[str], grids: Sequence[Float[Array, "g"]]) -> list[int]:
    """Candidate of each owner with the least residual, owner after owner until nothing changes."""
    R, index = _eliminated(fit, owners, grids)
    picks: list[int | None] = [None] * len(owners)

    def residual(i: int, pick: int) -> float:
        chosen = [pick if k == i else other for k, other in enumerate(picks)]
        columns = [index[k, one] for k, one in enumerate(chosen) if one is not None]
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
    return [Term(name, one, parse(f"({ratio!r}) * {text}")) for one, ratio in ratios.items()]


def _refined(
    fit: LinearFit,
    experiment: Experiment,
    owners: Sequence[str],
    speeds: Sequence[float],
    bounds: Sequence[tuple[float, float]],
) -> Speeds:
    """One linearised step from the speeds found, and intervals that count what moves with them."""
    robot = fit.problem.mechanism
    drive = {
        owner: (*symbols, "Fk") if owner in owners else symbols
        for owner, symbols in {**dict.fromkeys(owners, ()), **robot.drive}.items()
    }
    known = {**robot.stribeck, **dict(zip(owners, speeds, strict=True))}
    robot = replace(robot, drive=drive, stribeck=known)
    known_fit = linear_fit(with_mechanism(fit.problem, robot, fit.values), experiment)
    problem = _with_slopes(known_fit.problem, dict(zip(owners, speeds, strict=True)), known_fit.values)
    data = base_system(build_system(problem), base_of(problem, experiment))
    solution = solve_weighted(data.system, Weights(fit.solution.weights))
    parts = estimate_parameters(data, solution, settings=experiment.uncertainty)
    steps = {one.name: one for one in parts.parameters}
    fitted = [one.name for one in parts.parameters if one.sigma is not None]
    place = {i: fitted.index(_name(owner)) for i, owner in enumerate(owners) if _name(owner) in fitted}
    own, there = list(place), list(place.values())
    # Where nothing holds a speed, it may be any that the logs could show.
    covariance = np.diag([(high - low) ** 2 / 12.0 for low, high in bounds])
    covariance[np.ix_(own, own)] = parts.covariance[np.ix_(there, there)]
    found = []
    for owner, speed, bound in zip(owners, speeds, bounds, strict=True):
        unit = "rad/s" if effort_unit(robot, owner) == "N m" else "m/s"
        one = steps.get(_name(owner))
        if one is None or one.ci95 is None or not np.all(np.isfinite(one.ci95)):
            found.append(Speed(owner, unit, speed, 0.0, np.inf, bound))
            continue
        step = float(np.clip(one.value, -_MOST_STEP * speed, _MOST_STEP * speed))
        value = float(np.clip(speed + step, *bound))
        half = 0.5 * (one.ci95[1] - one.ci95[0])
        found.append(Speed(owner, unit, value, max(0.0, value - half), value + half, bound))
    dof = min((float(steps[fitted[at]].dof or 1.0) for at in there), default=1.0)
    return Speeds(tuple(found), covariance, dof)


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
