"""Which of several logs contradicts the others, and corrections of its columns alone.

A fit to all logs also spoils the residuals of good logs if the columns of one are wrong. For a set A of logs,
chi_A their least-squares parameters and rho_j the residual of effort j in A, in parts of that effort,

    log i contradicts the others A      if rho_j(chi of all) is large and rho_j(chi_A) is far smaller

for some effort j, and if the squares of all rho_j together are less than half. A model that leaves the others
unexplained shows no contradiction: few rows of one effort may fit by chance. What the model lacks in log i
alone (friction, contacts) leaves rho_j about as it is. Each fit follows from the triangular factors of the
logs, without a pass over the samples. Of two logs each may contradict the other: then both are corrected in
turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.base.system import base_system
from dynid.common.arrays import Array, Float
from dynid.common.errors import DynidError
from dynid.common.notices import Notice, eased, notice
from dynid.estimator.estimator import estimator_named
from dynid.linear_fit import LinearFit
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.clean import windowed
from dynid.motion.log import Log
from dynid.motion.settings import LogEntry
from dynid.problem import build_system
from dynid.projection.factor import scaled_lstsq, triangle
from dynid.projection.projection import Group
from dynid.statistics.estimate import Estimate
from dynid.validation.likelihood import comparison_with, scaled_plan

if TYPE_CHECKING:
    from dynid.validation.hypotheses import Hypothesis

_POOR = 0.05  # of an effort is left over in the other logs: wrong columns leave more
_BETTER = 4.0  # times less without the log: what a model lacks stays
_EXPLAINED = 0.5  # of the squares that all efforts of the other logs leave over: less remains without the log
_MOST_REMOVED = 3  # logs
_GAIN = 2.0  # times less is left over with a factor of an effort: it is worth a fit
_OF_PEAK = 10.0  # percent: wrong columns leave more


@dataclass(frozen=True)
class Contradiction:
    """Logs that contradict the others.

    Attributes:
        logs: Names of the logs without which the others fit.
        others: Names of the others.
        effort: The effort of the others that they spoil most.
        before, after: Percent of it that are left over in the others, with and without `logs` in the fit.
        mirror: The same with the others as the wrong ones, where these may be; None: it is decided.
    """

    logs: tuple[str, ...]
    others: tuple[str, ...]
    effort: str
    before: float
    after: float
    mirror: Contradiction | None = None


def contradiction_of(fit: LinearFit) -> Contradiction | None:
    """Logs without which the others fit far better; None: there are none.

    Args:
        fit: To all logs.
    """
    logs = _Logs(fit)
    left = logs.names
    for _ in range(min(len(left) // 2, _MOST_REMOVED)):
        rests = [tuple(name for name in left if name != gone) for gone in left]
        left = min(rests, key=lambda names: float(np.sum(np.square(logs.left_over(names, names)))))
        removed = tuple(name for name in logs.names if name not in left)
        found = logs.spoiled(removed, left)
        if found is not None:
            half = 2 * len(removed) == len(logs.names)
            return replace(found, mirror=logs.spoiled(left, removed) if half else None)
    return None


def contradiction_beside_bursts(
    fit: LinearFit,
    logs: tuple[Log, ...],
    notices: Sequence[Notice],
    refitted: Callable[[tuple[Log, ...]], LinearFit | None],
) -> Contradiction | None:
    """Logs that contradict the others, also without the stretches that contacts disturb; else None.

    Args:
        fit: To all logs.
        logs: Of the fit.
        notices: Warnings so far; those of bursts name the stretches.
        refitted: The fit to other logs.
    """
    odd, calm = contradiction_of(fit), _beside_bursts(logs, notices)
    if odd is None or calm == logs:
        return odd
    again = refitted(calm)
    return odd if again is None else contradiction_of(again)


def _beside_bursts(logs: tuple[Log, ...], notices: Sequence[Notice]) -> tuple[Log, ...]:
    """The logs without the stretches that a burst (a contact) disturbs."""
    for remark in notices:
        logs = calm_logs(logs, remark) if remark.code == "burst" else logs
    return logs


def calm_logs(logs: tuple[Log, ...], item: Notice) -> tuple[Log, ...]:
    """The logs without the stretches that a warning names; one that would be left out whole stays."""
    windows = stretches_of(item)

    def calm(log: Log) -> Log:
        try:
            return windowed(log, LogEntry(file=log.name, exclude=windows.get(log.name, ())))
        except DynidError:
            return log

    return tuple(map(calm, logs))


def stretches_of(item: Notice) -> dict[str, tuple[tuple[float, float], ...]]:
    """Log -> stretches that are left out, in [s]."""
    logs = item.change.get("logs", {})
    return {
        name: tuple((start, stop) for start, stop in entry["exclude"])
        for name, entry in logs.items()
        if "exclude" in entry
    }


def corrected_trials(found: Contradiction, before: LinearFit, logs: Sequence[Log]) -> Iterator[Hypothesis]:
    """Corrections of the columns of the contradicting logs alone, fitted together with the others.

    Args:
        found: Which logs.
        before: The fit to all logs as they are.
        logs: All of them, as fitted.
    """
    compared, equations = comparison_with(before), _Logs(before)
    for wrong in (found,) if found.mirror is None else (found, found.mirror):
        chosen = tuple(log for log in logs if log.name in wrong.logs)
        sizes = equations.gains(wrong.logs, wrong.others)
        for trial in _hypotheses(before.problem.mechanism, chosen, sizes):
            fitted = _refitted(before, wrong, trial)
            if fitted is not None:
                yield compared(_named(trial, wrong), fitted)


def unexplained(found: Contradiction) -> Notice:
    """The warning where no correction of columns explains the contradiction."""
    log, effort = _quoted(found.logs), found.effort
    before, after = found.before, found.after
    if found.mirror is None:
        return notice("logs-contradict", log=log, effort=effort, before=before, after=after)
    other = _quoted(found.others)
    return notice(
        "logs-contradict", "undecided", log=log, other=other, effort=effort, before=before, after=after
    )


class _Logs:
    """The equations of each log over the base parameters, every effort in parts of its size."""

    def __init__(self, fit: LinearFit) -> None:
        groups = fit.data.blocked().groups
        self.names = tuple(dict.fromkeys(group.log for group in groups))
        self.efforts = tuple(dict.fromkeys(group.name for group in groups if not group.homogeneous))
        self._v = len(fit.data.system.parameters)
        sizes = {name: _size([g for g in fit.data.source.groups if g.name == name]) for name in self.efforts}
        self._rows = {
            (group.log, group.name): group.factor(self._v).R / sizes[group.name]
            for group in groups
            if sizes.get(group.name, 0.0) > 0.0
        }
        self._triangles = {name: triangle(np.concatenate(self._of([name]))) for name in self.names}
        self._solved: dict[tuple[str, ...], Float[Array, "v"]] = {}

    def left_over(self, fitted: tuple[str, ...], of: Sequence[str]) -> Float[Array, "e"]:
        """Part of each effort in the logs `of` that the parameters of the logs `fitted` leave, shape (e,)."""
        chi = np.append(-self._solution(fitted), 1.0)
        left, whole = np.zeros(len(self.efforts)), np.zeros(len(self.efforts))
        for k, effort in enumerate(self.efforts):
            for R in (self._rows[log, effort] for log in of if (log, effort) in self._rows):
                left[k] += float(np.sum(np.square(R @ chi)))
                whole[k] += float(np.sum(np.square(R[:, -1])))
        return np.sqrt(left / np.where(whole > 0.0, whole, 1.0))

    def gains(self, logs: Sequence[str], others: tuple[str, ...]) -> dict[str, float]:
        """Factor of each effort in some logs to what the parameters of the others predict, where it fits."""
        chi, found = self._solution(others), {}
        for effort in self.efforts:
            rows = [self._rows[log, effort] for log in logs if (log, effort) in self._rows]
            predicted = np.concatenate([np.zeros(0), *(R[:, :-1] @ chi for R in rows)])
            measured = np.concatenate([np.zeros(0), *(R[:, -1] for R in rows)])
            factor = float(predicted @ measured) / max(float(predicted @ predicted), 1e-300)
            off = float(np.linalg.norm(measured - predicted))
            if factor > 0.0 and _GAIN * float(np.linalg.norm(measured - factor * predicted)) < off:
                found[effort] = factor
        return found

    def spoiled(self, logs: tuple[str, ...], others: tuple[str, ...]) -> Contradiction | None:
        """What logs in the fit do to the others; None if it is little."""
        before, after = self.left_over(self.names, others), self.left_over(others, others)
        wrong = (before > _POOR) & (before > _BETTER * after)
        if not np.any(wrong) or np.sum(after**2) > _EXPLAINED * np.sum(before**2):
            return None
        worst = int(np.argmax(np.where(wrong, before, 0.0)))
        with_them, without = (100.0 * float(left[worst]) for left in (before, after))
        return Contradiction(logs, others, self.efforts[worst], with_them, without)

    def _of(self, logs: Sequence[str]) -> list[Array]:
        empty = np.zeros((0, self._v + 1))
        return [empty, *(R for (log, _), R in self._rows.items() if log in logs)]

    def _solution(self, logs: tuple[str, ...]) -> Float[Array, "v"]:
        """Least-squares parameters of these logs, of least norm where they do not determine all."""
        if logs not in self._solved:
            R = np.concatenate([self._triangles[name] for name in logs])
            self._solved[logs] = scaled_lstsq(R[:, :-1], R[:, -1], 1e-10)
        return self._solved[logs]


def _size(groups: Sequence[Group]) -> float:
    """Rms of one effort in all logs, in its unit."""
    squares = sum(float(group.merged.Y @ group.merged.Y) for group in groups)
    return float(np.sqrt(squares / max(sum(group.n_rows for group in groups), 1)))


def _hypotheses(
    mechanism: Mechanism, logs: tuple[Log, ...], factors: Mapping[str, float]
) -> Iterator[Hypothesis]:
    """Corrections of the columns of some logs; `factors`: see `_Logs.gains`."""
    from dynid.validation import columns, hypotheses

    yield from columns.scaled_efforts(mechanism, logs, factors)
    yield from hypotheses.position_units(mechanism, logs)
    yield from columns.effort_signs(mechanism, logs)
    yield from columns.effort_orders(mechanism, logs)
    yield from columns.position_signs(mechanism, logs)
    yield from columns.position_orders(mechanism, logs)


def _refitted(before: LinearFit, wrong: Contradiction, trial: Hypothesis) -> LinearFit | None:
    """All logs with some of them corrected: only these are streamed again; None where there is no fit."""
    plan = scaled_plan(before.problem.plans[0], trial.scale)
    try:
        problem = before.problem.on(trial.logs, [plan] * len(trial.logs), before.experiment)
        new = build_system(problem).groups
        kept = [group for group in before.data.source.groups if group.log not in wrong.logs]
        data = base_system(replace(before.data.source, groups=(*kept, *new)), before.data.base)
        solution = estimator_named("wls")(data.system)
    except (DynidError, np.linalg.LinAlgError):
        return None
    return LinearFit.of(before.problem, before.experiment, data, solution)


def _named(trial: Hypothesis, wrong: Contradiction) -> Hypothesis:
    """The correction as one of these logs alone."""
    columns = trial.notice.change["columns"]
    change = {"logs": {log.name: {"columns": _in_file(log, columns)} for log in trial.logs}}
    said = notice(
        "logs-contradict",
        "explained",
        log=_quoted(wrong.logs),
        other=_quoted(wrong.others),
        effort=wrong.effort,
        before=wrong.before,
        after=wrong.after,
        cause=trial.notice.text,
        change=change,
    )
    return replace(trial, notice=said, name=f"log {_quoted(wrong.logs)}: {trial.name}")


def _in_file(log: Log, columns: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Changes of columns with the names that they have in the file of this log."""
    names = {key: {"name": log.mapping[key]} if log.mapping.get(key, key) != key else {} for key in columns}
    return {key: {**names[key], **change} for key, change in columns.items()}


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def contradiction_notice(estimate: Estimate, odd: Contradiction) -> Notice:
    """Logs that contradict each other without a known cause: no stop where motion is predicted usably."""
    return unexplained(odd) if is_poor(estimate) else eased(unexplained(odd))


def is_poor(estimate: Estimate) -> bool:
    """Whether predictions are so poor that columns may be wrong."""
    return any(row.error_percent > _OF_PEAK for row in estimate.verdict.joints)
