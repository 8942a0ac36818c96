"""Are the logs of a fit doubtful before anything is computed? Units, steps of a position, logs used twice.

What was noticed before the parameters were final, what has no effect, and what a special case asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dynid.checks.check import Answer, Finished
from dynid.common.notices import Notice, eased, notice
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.clean import disjoint
from dynid.motion.log import Log
from dynid.motion.position_faults import WideRange, position_steps, wide_ranges
from dynid.problem import Problem
from dynid.statistics.assemble import EstimateParts


def check_logs(logs: Sequence[Log], mechanism: Mechanism) -> tuple[Notice, ...]:
    """What makes the logs of a fit doubtful before anything is computed."""
    return (
        *_repeated(logs),
        *_units(logs, mechanism),
        *(warning for log in logs for warning in position_steps(log)),
    )


def _units(logs: Sequence[Log], mechanism: Mechanism) -> Iterator[Notice]:
    """Positions that sweep far more than the joint can: most likely they are not in radians or metres."""
    wide = [(span, log) for log in logs for span in wide_ranges(log, mechanism)]
    for angle, bounded in ((True, True), (True, False), (False, True)):
        alike = [
            (span, log)
            for span, log in wide
            if (span.angle, bool(np.isfinite(span.room))) == (angle, bounded)
        ]
        if alike:
            shown, columns, number, name = _shown(alike)
            warning = notice(
                "angles-large" if angle else "lengths-large",
                shown=shown,
                columns=columns,
                number=number,
                name=name,
            )
            yield warning if bounded else eased(warning)  # a wheel may turn so far


def _shown(wide: Sequence[tuple[WideRange, Log]]) -> tuple[str, str, int, str]:
    """The widest range with its log, the columns of all ranges, number and name of the first column."""
    widest, log = max(wide, key=lambda pair: (pair[0].sweep / pair[0].room, pair[0].sweep))
    size = f"{widest.sweep:.4g} rad ({widest.sweep / (2 * np.pi):.3g} turns)"
    size = size if widest.angle else f"{widest.sweep:.4g} m"
    times = f", {widest.sweep / widest.room:.0f} times the range of its limits"
    limits = times if widest.bounded else ""
    more = f"; {len(wide) - 1} more ranges are too large" if len(wide) > 1 else ""
    numbers = sorted({span.column + 1 for span, _ in wide})
    columns = ", ".join(f"q_{number}" for number in numbers)
    kind = "joint angles" if widest.angle else "positions"
    return (
        f"{kind} are too large: '{widest.name}' of log '{log.name}' moves over {size}{limits}{more}",
        columns,
        numbers[0],
        log.mapping.get(f"q_{numbers[0]}", "NAME"),
    )


def _repeated(logs: Sequence[Log]) -> tuple[Notice, ...]:
    """Logs that hold the same samples: counted twice, they make every sigma too small."""
    repeated = [
        f"{log.name} repeats {first.name}"
        for i, log in enumerate(logs)
        if (first := next((other for other in logs[:i] if same_samples(log, other)), None)) is not None
    ]
    if not repeated:
        return ()
    return (notice("log-repeated", shown=", ".join(repeated)),)


def same_samples(a: Log, b: Log) -> bool:
    """Whether two logs contain the same recording, also from different files."""
    if a.q.shape != b.q.shape or a.payloads != b.payloads:
        return False
    if disjoint(a, b):
        return False
    return np.array_equal(a.q, b.q) and np.array_equal(a.tau, b.tau, equal_nan=True)


def options(finished: Finished) -> Iterator[Notice]:
    """Options of models that are not used: warn, because they have no effect."""
    experiment, model = finished.fit.experiment, finished.fit.problem.model.key
    of_models = {
        name: getattr(getattr(experiment, name, None), "of_model", model) for name in experiment.tree()
    }
    ignored = [name for name, of_model in of_models.items() if of_model != model]
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
        notices += [replace(item, text=about + item.text) for item in log.notices]
    for plan, source in zip(problem.plans, problem.sources, strict=True):
        notices += [*plan.notices, *source.notices]
    return tuple(dict.fromkeys([*notices, *parts.warnings]))
