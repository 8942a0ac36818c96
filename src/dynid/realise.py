"""From base parameters to consistent bodies: data combined with priors, ties and known values.

chi = T x + c, with each body's pseudo-inertia positive semidefinite (see `estimator.consistent`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dynid.base.base import tying
from dynid.base.structural import tie_groups
from dynid.base.system import BaseSystem
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.estimator.consistent import consistent_program, nearest_consistent
from dynid.estimator.physical import consistent_solution, information_root
from dynid.estimator.rigid_bodies import RigidBody, rigid_bodies
from dynid.estimator.semidefinite import SOLVED
from dynid.estimator.settings import Consistency
from dynid.estimator.solution import CONVERGED, Solution
from dynid.estimator.standard_space import StandardSpace
from dynid.experiment.experiment import Experiment
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.parameters import known_columns
from dynid.problem import Problem
from dynid.statistics.standard import StandardSet, physical_test, standard_set

_LENGTH = 0.3  # [m], converts inertias to masses if there is no prior; only a scale


def realise(
    problem: Problem,
    experiment: Experiment,
    data: BaseSystem,
    linear: Solution,
    constraint: Consistency | None,
    known_root: Float[Array, "v r"] | None = None,
) -> tuple[Solution, StandardSet | None, tuple[Notice, ...]]:
    """Consistent bodies behind a linear solution, as the experiment asks, and the tests every result gets.

    Args:
        linear: Solution over the base parameters.
        constraint: Of the estimator; None for linear ones, which `experiment.standard` may follow.
        known_root: A root of the covariance that known values add to the rows', shape (v, r), SI.

    Returns:
        The linear solution, or the consistent one if the estimator requires it; the full consistent set, if
        requested; and what was noticed.
    """
    options = constraint or experiment.standard
    if problem.case.moves_freely:
        _refuse_per_mass(options, experiment, problem.model.key)
        return linear, None, ()
    space = standard_space(problem, experiment, data, linear, options or Consistency())
    space = space if known_root is None else space.less_sure(known_root)
    if options is None:
        return linear, None, physical_test(space) if linear.status == CONVERGED else ()
    closest = nearest_consistent(space, options)
    # Values known by full name come from a result without load, which reports them already.
    standard = standard_set(space, closest, options, problem.mechanism.known if experiment.unloaded else ())
    if constraint is None:
        return linear, standard, (*physical_test(space), *standard.notices, *_failed(standard))
    solution = consistent_solution(data.blocked(), linear, closest, data.G @ closest.chi)
    if known_root is not None:
        # With uncertain known values a larger residual is normal: no warning.
        kept = tuple(remark for remark in solution.notices if remark.code != "consistency-costs")
        solution = replace(solution, notices=kept)
    standard = replace(standard, is_estimate=closest.status == SOLVED)
    return solution, standard, standard.notices


def consistent_values(
    problem: Problem,
    experiment: Experiment,
    data: BaseSystem,
    linear: Solution,
    options: Consistency,
    space: StandardSpace | None = None,
) -> Float[Array, "p"] | None:
    """Parameters of consistent bodies near a linear solution, shape (p,), SI; None: there are none.

    Args:
        space: Where it is known already, e.g. from a fit to more rows.
    """
    if space is None:
        space = standard_space(problem, experiment, data, linear, options)
    else:
        space = replace(space, U=information_root(data.system, linear), estimate=linear.chi)
    optimum = consistent_program(space, options).solve()
    return np.asarray(space.chi(optimum.x)) if optimum.status == SOLVED else None


def _refuse_per_mass(options: Consistency | None, experiment: Experiment, model: str) -> None:
    if options is not None:
        raise InputError(
            f"model '{model}' gives parameters per unit mass, not those of bodies",
            file=experiment.file,
            remedy="leave out `standard:`, and use another estimator",
        )


def standard_space(
    problem: Problem, experiment: Experiment, data: BaseSystem, linear: Solution, options: Consistency
) -> StandardSpace:
    """Ties, known values, bodies and data of the standard parameters of a problem."""
    before, after = experiment.tie_names(), experiment.tie_names("regrouped")
    known = known_columns(problem.mechanism, problem.parameters)
    T, c = tying(problem.parameters, tie_groups(problem.mechanism, problem.parameters, before), known)
    masses = _estimated_masses(problem, data.G, linear.chi)
    # In a table every body has its own mass; elsewhere a mass includes those grouped into it.
    weighed = masses if problem.model.per_body else {}
    bodies = rigid_bodies(
        problem.mechanism, problem.parameters, options.mass, _mass_scale(problem, data.G, linear.chi), weighed
    )
    # Values known by full name come from a result: they are sums over bodies, not single bodies.
    given = {i for i, parameter in enumerate(problem.parameters) if parameter.name in problem.mechanism.known}
    bodies = tuple(body for body in bodies if not {i for i in body.columns if i >= 0} <= given)
    if problem.mechanism.mounted_model or experiment.unloaded is not None:
        bodies = tuple(_generic(body, masses) if body.prior is None else body for body in bodies)
    E = _regrouped(problem, before, after)
    U = information_root(linear.equations or data.system, linear)
    return StandardSpace(problem.parameters, T, c, bodies, U, data.G, linear.chi, E)


def _estimated_masses(problem: Problem, G: Float[Array, "v p"], chi: Float[Array, "v"]) -> dict[str, float]:
    """Body or payload -> its mass [kg] by the linear estimate, if determined."""
    first = (problem.parameters[int(np.argmax(row != 0))] for row in G)
    return {
        parameter.owner: mass
        for parameter, value in zip(first, chi.tolist(), strict=True)
        if parameter.symbol == "M" and (mass := abs(value)) > 0.0
    }


def _generic(body: RigidBody, masses: Mapping[str, float]) -> RigidBody:
    """A load with a generic prior: a ball of the estimated mass."""
    sized = replace(body, mass=masses.get(body.name, body.mass))
    return replace(sized, prior=sized.ball)


def check_reduction(experiment: Experiment, constraint: Consistency | None) -> None:
    """Refuse base parameters set to zero where bodies must be real."""
    if constraint is not None and (experiment.keep is not None or experiment.essential is not None):
        raise InputError(
            "'essential' and 'keep' set base parameters to zero, which is not physically consistent",
            file=experiment.file,
            remedy="leave them out, or use another estimator with `standard: true`",
        )


def _mass_scale(problem: Problem, G: Float[Array, "v p"], chi: Float[Array, "v"]) -> float:
    """A typical mass [kg] of the estimates: only a scale."""
    inertial = np.array([p.symbol in SYMBOLS and p.kind == "inertial" for p in problem.parameters])
    power = {"kg m^2": 2, "kg m": 1, "kg": 0}
    lengths = np.array([_LENGTH ** power.get(p.unit, 0) for p in problem.parameters])
    kept = np.argmax(G != 0, axis=1)
    sizes = np.abs(chi[inertial[kept]]) / lengths[kept][inertial[kept]]
    return float(np.median(sizes)) if np.any(sizes > 0) else 1.0


def _regrouped(problem: Problem, before: tuple[str, ...], after: tuple[str, ...]) -> Float[Array, "e p"]:
    """Rows E with E chi = 0: base parameters that are equal after regrouping."""
    if not after:
        return np.zeros((0, len(problem.parameters)))
    base = problem.base(before)
    place = {i: k for k, i in enumerate(base.indices)}
    rows = []
    for group in tie_groups(problem.mechanism, problem.parameters, after):
        members = [place[i] for i in group if i in place]
        rows += [base.G[k] - base.G[members[0]] for k in members[1:]]
    return np.array(rows).reshape(len(rows), len(problem.parameters))


def _failed(standard: StandardSet) -> tuple[Notice, ...]:
    if standard.nearest.status == SOLVED:
        return ()
    return (
        notice("not-consistent", "standard", status=standard.nearest.status, reason=standard.nearest.reason),
    )
