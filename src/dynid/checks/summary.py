"""What a result tells of how it came about: every choice in words, and every warning, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.base.system import base_system
from dynid.cases.force_sensor.rotation import check_rotation
from dynid.cases.free_motion.checks import check_free_motion
from dynid.checks.estimate import check_logs, check_options
from dynid.checks.load_text import load_words
from dynid.checks.residuals import Tested
from dynid.checks.tie_test import idle_tie, tie_test
from dynid.common.notices import Notice
from dynid.estimator.estimator import estimator_named
from dynid.experiment.experiment import Experiment
from dynid.fitted import Fitted
from dynid.linear import base_of
from dynid.motion.log import Log
from dynid.problem import Problem
from dynid.solve import Solved
from dynid.statistics.assemble import EstimateParts


def choices_of(
    fit: Fitted, ties: Mapping[str, str], gate: Mapping[str, str], tested: Tested
) -> dict[str, str]:
    """Every choice that was made from the data.

    Args:
        fit: Parameters and where they come from.
        ties: Whether the data accept them.
        gate: What cross-validation and gate found.
        tested: Residual tests.
    """
    settled, real = fit.solved.settled, fit.solved.real
    return {
        **_flow(fit.problem),
        "uncertainty": fit.parts.spread.words,
        **fit.stage.choices,
        **settled.choices,
        **ties,
        **real.choices,
        **gate,
        **tested.choices,
        **({} if fit.refined is None else {"refinement": fit.refined.words}),
        **({} if fit.unloaded is None else {"robot without load": fit.unloaded.words}),
        **load_words(fit.parts, fit.problem.loaded_bodies),
    }


def warnings_of(fit: Fitted, ties: Sequence[Notice], tested: Tested) -> tuple[Notice, ...]:
    """Everything noticed until the parameters stood; what they look like is asked later."""
    problem, parts = fit.problem, fit.parts
    return (
        *check_options(fit.experiment, problem.model.name),
        *ties,
        *(() if fit.unloaded is None else fit.unloaded.notices),
        *fit.solved.settled.notices,
        *fit.solved.real.notices,
        *(() if fit.refined is None else fit.refined.notices),
        *_on_the_way(problem, fit.held_out, parts),
        *tested.notices,
        *check_free_motion(problem, fit.chi),
        *check_rotation(problem, parts.parameters, [one.name for one in parts.not_identifiable]),
    )


def tested_ties(solved: Solved, experiment: Experiment) -> tuple[dict[str, str], tuple[Notice, ...]]:
    """Whether the data accept the ties, in words, and a warning if they do not."""
    if not experiment.ties:
        return {}, ()
    # Where its equations were rewritten, the F-test needs the plain weighted solution.
    linear = solved.linear
    solution = linear if linear.equations is None else estimator_named("wls")(solved.seen.system)
    free = replace(experiment, ties=())
    loose = base_system(solved.system, base_of(solved.problem, free))
    found = tie_test(solution, solved.seen, loose, experiment.uncertainty)
    names = ", ".join(f"'{tie.name}'" for tie in experiment.ties)
    if found is None:
        return {f"tie {names}": "restricts nothing"}, (idle_tie(names),)
    return {f"tie {names}": found.words}, found.notices(names)


def _flow(problem: Problem) -> dict[str, str]:
    """Choices of logs, filters and rows; those that differ between logs carry the log's name."""
    rows = ", ".join(dict.fromkeys(problem.directions.group_names))
    shared = problem.model.name == "inverse" and np.all(
        np.count_nonzero(problem.directions.effort_map, axis=1) > 1
    )
    choices: dict[str, str] = {"equations": f"J_a^T tau along {rows}" if shared else rows}
    for log, plan, source in zip(problem.logs, problem.plans, problem.sources, strict=True):
        for name, text in {**log.choices, **plan.choices, **source.choices}.items():
            if (problem.model.direct or problem.reference is not None) and name in ("reversals", "rest"):
                continue  # there is no friction whose sign would matter
            if choices.setdefault(name, text) != text:
                choices[f"{name} ({log.name})"] = text
    return choices


def _on_the_way(problem: Problem, held_out: Sequence[Log], parts: EstimateParts) -> tuple[Notice, ...]:
    """Notices of description, logs and fit; with several logs, each says which one it is about."""
    logs = (*problem.logs, *held_out)
    told = [*problem.mechanism.notices, *problem.notices, *check_logs(problem.logs, problem.mechanism)]
    for log in logs:
        about = f"{log.name}: " if len(logs) > 1 else ""
        told += [replace(notice, text=about + notice.text) for notice in log.notices]
    for plan, source in zip(problem.plans, problem.sources, strict=True):
        told += [*plan.notices, *source.notices]
    return tuple(dict.fromkeys([*told, *parts.warnings]))
