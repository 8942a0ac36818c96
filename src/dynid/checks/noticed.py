"""What was noticed before the parameters were final, what has no effect, and what a special case asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dynid.checks.check import Answer, Finished
from dynid.checks.logs import check_logs
from dynid.common.notices import Notice, notice
from dynid.motion.log import Log
from dynid.problem import Problem
from dynid.statistics.assemble import EstimateParts


def options(finished: Finished) -> Iterator[Notice]:
    """Options of models that are not used: warn, because they have no effect."""
    experiment, model = finished.fit.experiment, finished.fit.problem.model.key
    given = experiment.tree()
    ignored = [name for name in ("energy", "internal", "wrench") if name in given and name != model]
    if ignored:
        yield notice("option-ignored", names=", ".join(ignored), model=model)


def noticed(finished: Finished) -> tuple[Notice, ...]:
    """Notices of unknowns, of the estimator and of all steps before."""
    fit = finished.fit
    return (
        *fit.notices,
        *fit.physics,
        *(() if fit.refined is None else fit.refined.notices),
        *_on_the_way(fit.problem, fit.task.held_out, fit.parts),
    )


def special_case(finished: Finished) -> Iterator[Answer]:
    """The questions that only this case must be asked."""
    for check in finished.fit.problem.case.checks.values():
        yield from check(finished)


def _on_the_way(problem: Problem, held_out: Sequence[Log], parts: EstimateParts) -> tuple[Notice, ...]:
    """Notices of description, logs and fit; with several logs, each names its log."""
    logs = (*problem.logs, *held_out)
    notices = [*problem.mechanism.notices, *problem.notices, *check_logs(problem.logs, problem.mechanism)]
    for log in logs:
        about = f"{log.name}: " if len(logs) > 1 else ""
        notices += [replace(one, text=about + one.text) for one in log.notices]
    for plan, source in zip(problem.plans, problem.sources, strict=True):
        notices += [*plan.notices, *source.notices]
    return tuple(dict.fromkeys([*notices, *parts.warnings]))
