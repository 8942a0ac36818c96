"""How a result was obtained: every choice in words, and every warning, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dynid.base.system import base_system
from dynid.checks.estimate import check_logs, check_options
from dynid.checks.load_text import load_words
from dynid.checks.tie_test import idle_tie, tie_test
from dynid.estimator.estimator import estimator_named
from dynid.experiment.experiment import estimator_words
from dynid.linear import base_of

if TYPE_CHECKING:
    from dynid.checks.residuals import Tested
    from dynid.common.notices import Notice
    from dynid.fit import Fit
    from dynid.motion.log import Log
    from dynid.problem import Problem
    from dynid.statistics.assemble import EstimateParts


def choices_of(fit: Fit, ties: Mapping[str, str], gate: Mapping[str, str], tested: Tested) -> dict[str, str]:
    """Every choice that was made from the data.

    Args:
        fit: Parameters and where they come from.
        ties: Whether the data accept them.
        gate: What cross-validation and gate found.
        tested: Residual tests.
    """
    return {
        **_flow(fit.problem),
        **estimator_words(fit.experiment, fit.problem.model, fit.problem.mechanism),
        "uncertainty": fit.parts.spread.words,
        **fit.choices,
        **ties,
        **fit.real.choices,
        **gate,
        **tested.choices,
        **({} if fit.refined is None else {"refinement": fit.refined.words}),
        **load_words(fit.parts, fit.problem.loaded_bodies),
    }


def warnings_of(fit: Fit, ties: Sequence[Notice], tested: Tested) -> tuple[Notice, ...]:
    """All notices until the parameters are final; their values are checked later."""
    problem, parts = fit.problem, fit.parts
    known = {one.code for one in fit.notices}  # a force sensor's attitude may be known to be wrong already
    return (
        *check_options(fit.experiment, problem.model.key),
        *ties,
        *fit.notices,
        *fit.real.notices,
        *(() if fit.refined is None else fit.refined.notices),
        *_on_the_way(problem, fit.task.held_out, parts),
        *(one for one in tested.notices if one.code not in known),
        *problem.case.notices(fit),
    )


def tested_ties(fit: Fit) -> tuple[dict[str, str], tuple[Notice, ...]]:
    """Whether the data accept the ties, in words, and a warning if they do not."""
    experiment = fit.experiment
    if not experiment.ties:
        return {}, ()
    # Where its equations were rewritten, the F-test needs the plain weighted solution.
    linear = fit.linear
    solution = linear if linear.equations is None else estimator_named("wls")(fit.seen.system)
    free = replace(experiment, ties=())
    loose = base_system(fit.system, base_of(fit.problem, free))
    found = tie_test(solution, fit.seen, loose, experiment.uncertainty)
    names = ", ".join(f"'{tie.name}'" for tie in experiment.ties)
    if found is None:
        return {f"tie {names}": "no effect"}, (idle_tie(names),)
    return {f"tie {names}": found.words}, found.notices(names)


def _flow(problem: Problem) -> dict[str, str]:
    """Choices of logs, filters and rows; those that differ between logs carry the log's name."""
    rows = ", ".join(dict.fromkeys(problem.directions.group_names))
    own = problem.model.effort_rows and problem.case.has_motors
    shared = own and np.all(np.count_nonzero(problem.directions.effort_map, axis=1) > 1)
    choices: dict[str, str] = {"equations": f"J_a^T tau along {rows}" if shared else rows}
    for log, plan, source in zip(problem.logs, problem.plans, problem.sources, strict=True):
        for name, text in {**log.choices, **plan.choices, **source.choices}.items():
            if problem.case.hides(name):
                continue
            if choices.setdefault(name, text) != text:
                choices[f"{name} ({log.name})"] = text
    return choices


def _on_the_way(problem: Problem, held_out: Sequence[Log], parts: EstimateParts) -> tuple[Notice, ...]:
    """Notices of description, logs and fit; with several logs, each names its log."""
    logs = (*problem.logs, *held_out)
    notices = [*problem.mechanism.notices, *problem.notices, *check_logs(problem.logs, problem.mechanism)]
    for log in logs:
        about = f"{log.name}: " if len(logs) > 1 else ""
        notices += [replace(notice, text=about + notice.text) for notice in log.notices]
    for plan, source in zip(problem.plans, problem.sources, strict=True):
        notices += [*plan.notices, *source.notices]
    return tuple(dict.fromkeys([*notices, *parts.warnings]))
