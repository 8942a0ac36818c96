"""Friction that is linear only once its loads and Stribeck speeds are known: refits around the fit.

    fit without Fl and Fk  ->  loads of the bodies  ->  fit with Fl  ->  loads ...  ->  speeds  ->  loads

Each arrow is a linear fit on one pass over the logs. Loads depend on the masses, which friction hardly
changes: two or three iterations are enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dynid.common.notices import Notice
from dynid.estimator.estimator import estimator_named
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit
from dynid.linear import LinearFit, base_of, linear_fit, vector, with_mechanism
from dynid.mechanism.friction import owners_of
from dynid.mechanism.mechanism import Mechanism
from dynid.problem import Problem
from dynid.realise import consistent_values
from dynid.statistics.assemble import EstimateParts
from dynid.unknown import Settled, Task, at
from dynid.unknowns.stribeck import Speeds, search_speeds

_ROUNDS = 8
_BODY_ROUNDS = 2
_WEAK = 1e4  # real logs of arms have 10 to 2000; above this the data do not determine single masses
_STEP = 2e-3  # of Fl, which is a share of the load: a change below makes no effort visibly different


class Friction:
    """Loads and Stribeck speeds as unknowns of the equations."""

    of_equations = True

    def settle(self, task: Task) -> Settled:
        """Find loads and speeds."""
        return settle_friction(task)


FRICTION = Friction()


def settle_friction(task: Task) -> Settled:
    """Find the loads and Stribeck speeds of friction that is linear only once they are known."""
    problem, experiment = task.problem, task.experiment
    robot = problem.mechanism
    searched = tuple(owner for owner in owners_of(robot, "Fk") if owner not in robot.stribeck)
    loaded = owners_of(robot, "Fl")
    choices: dict[str, str] = {}
    notices: list[Notice] = []
    speeds = None
    plain = _without(robot, {"Fk": searched})
    fit = linear_fit(with_mechanism(problem, _without(plain, {"Fl": loaded}), {}), experiment)
    if loaded and searched:
        fit = _settle_loads(with_mechanism(problem, plain, fit.values), fit.values, experiment)[0]
    if searched:
        speeds = search_speeds(fit, experiment, searched)
        robot = replace(robot, stribeck={**robot.stribeck, **speeds.by_owner})
        experiment = replace(experiment, stribeck={**experiment.stribeck, **speeds.by_owner})
        choices |= {f"Stribeck speed of {one.owner}": one.words for one in speeds.found}
        notices += [notice for one in speeds.found for notice in one.notices]
    problem = with_mechanism(problem, robot, fit.values)
    if loaded:
        last, rounds, step = _settle_loads(problem, fit.values, experiment)
        problem = _of_bodies(problem.with_load_parameters(last.chi), last, experiment)
        choices["loads of friction Fl"] = (
            f"predicted from the parameters; after {rounds} refits Fl changed by {step:.1g} at most"
        )
        if step > _STEP:
            text = f"the loads of friction Fl have not converged: Fl still changes by {step:.2g} per refit"
            notices.append(Notice("loads-open", text, "leave Fl out for joints with small loads"))
        condition = last.solution.condition_scaled
        if condition > _WEAK:
            text = (
                f"loads of friction Fl are predicted by a fit of condition {condition:.1e} (scaled columns):"
            )
            text += " they are inaccurate, and the intervals of Fl do not include this"
            notices.append(Notice("loads-weak", text, "use model: inverse, excite more, or leave Fl out"))
    done = replace(at(task, problem), experiment=experiment)
    return Settled(done, choices, tuple(notices), None if speeds is None else partial(_widened, speeds))


def _widened(speeds: Speeds, parts: EstimateParts, fit: Fit) -> EstimateParts:
    """The parameters with what the search of Stribeck speeds costs."""
    return speeds.widened(parts, fit.problem, fit.data.S, fit.linear_chi)


def _settle_loads(
    problem: Problem, values: Mapping[str, float], experiment: Experiment
) -> tuple[LinearFit, int, float]:
    """Fit and predict loads in turn until load friction converges: the fit, iterations, last step."""
    names = [f"Fl_{owner}" for owner in owners_of(problem.mechanism, "Fl")]
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
