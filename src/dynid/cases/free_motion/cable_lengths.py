"""Locked lengths as unknowns, one set per run: refined together with the parameters on the equations.

    W(l) chi = Y(l)   ->   W chi + D dl = Y,      D = d(W chi - Y) / dl          (Gauss-Newton)

Rows of one run depend only on the lengths of that run. They are eliminated run by run, so the problem does
not grow with the number of runs. D comes from finite differences of the rows with other lengths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.cases.free_motion.log import given_lengths, with_lengths
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.levenberg import Schedule, least_squares
from dynid.common.notices import notice
from dynid.conditioning.rewritten import slope_rows
from dynid.experiment.experiment import Experiment
from dynid.experiment.sections import REFINE
from dynid.mechanism.cable import driven_cables
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.motion import Motion
from dynid.motion.plan import MotionPlan
from dynid.problem import Problem, Progress, prepare, row_groups
from dynid.projection.factor import merge, triangle
from dynid.projection.model import RowSource
from dynid.projection.projection import Group
from dynid.statistics.assemble import MANY, EstimateParts, widened
from dynid.unknown import Settled, Task

STEP = 1e-5  # m: the rows are smooth over far more, and rounding stays at 1e-10 of them
_BELIEF = 1e-3  # of a length: its prior standard deviation
_SCHEDULE = Schedule(damping=0.1, factor=5.0, least=1e-8, steps=15, trials=8, still=0.01)
_LOOSE = 0.1
_ROUNDING = 1e-9


Lengths = Sequence[Float[Array, "s c"]]  # of every log


@dataclass(frozen=True, eq=False)
class _Run:
    """Equations of one run after its lengths are eliminated.

    Attributes:
        length_rows: Triangle with columns lengths, parameters, measured side, shape (c, c + p + 1).
        rest: What is left for the parameters, shape (k, p + 1).
    """

    length_rows: Float[Array, "c q"]
    rest: Float[Array, "k p1"]

    def step(self, chi: Float[Array, "p"]) -> Float[Array, "c"]:
        """Change of the lengths that fits best with these parameters, in [m]."""
        c = len(self.length_rows)
        right = self.length_rows[:, -1] - self.length_rows[:, c:-1] @ chi
        return np.asarray(np.linalg.solve(self.length_rows[:, :c], right))

    def damped(self, damping: float) -> _Run:
        """The same with small steps preferred: `damping` of the squared size of each length's column."""
        c = len(self.length_rows)
        more = np.zeros((c, self.length_rows.shape[1]))
        more[:, :c] = np.diag(np.sqrt(damping) * np.linalg.norm(self.length_rows[:, :c], axis=0))
        below = np.concatenate([np.zeros((len(self.rest), c)), self.rest], axis=1)
        T = triangle(np.concatenate([self.length_rows, below, more]))
        return _Run(T[:c], T[c:, c:])

    @property
    def sigma(self) -> Float[Array, "c"]:
        """Deviation of the lengths if the parameters were known, in [m]."""
        inverse = np.linalg.inv(self.length_rows[:, : len(self.length_rows)])
        return np.asarray(np.linalg.norm(inverse, axis=1))


@dataclass(frozen=True, eq=False)
class RefinedLengths:
    """Logs with refined lengths, and what the doubt about the lengths means for the parameters.

    Attributes:
        logs: With the lengths found, or as they were.
        runs: Equations of all runs.
    """

    logs: tuple[Log, ...]
    runs: tuple[_Run, ...] = ()

    def widened(self, parts: EstimateParts, S: Float[Array, "p v"]) -> EstimateParts:
        """The parameters with the part of their covariance that unknown lengths add.

        Args:
            parts: With the covariance for lengths that are known.
            S: Standard column combination of each parameter.
        """
        c = len(self.runs[0].length_rows)
        free = np.concatenate([run.rest[:, :-1] for run in self.runs]) @ S
        fixed = np.concatenate([free, np.concatenate([run.length_rows[:, c:-1] for run in self.runs]) @ S])
        added = _covariance(free) - _covariance(fixed)
        return widened(parts, 0.5 * (added + added.T), MANY, "locked lengths as unknowns")


def _covariance(rows: Float[Array, "r v"]) -> Float[Array, "v v"]:
    """(W^T W)^-1 of rows of unit noise, columns scaled first."""
    size = np.linalg.norm(rows, axis=0)
    root = np.linalg.pinv(np.linalg.qr(rows / size, mode="r"))
    return np.asarray(root @ root.T / np.outer(size, size))


def settle_lengths(task: Task) -> Settled:
    """The logs with refined lengths, with `lengths: refine`, and what the doubt about the lengths costs."""
    if task.experiment.internal.lengths != REFINE:
        return Settled(task)
    solution = refined_lengths(task.mechanism, task.logs, task.experiment, task.progress)
    return Settled(
        replace(task, logs=solution.logs), widen=lambda parts, fit: solution.widened(parts, fit.data.S)
    )


def refined_lengths(
    mechanism: Mechanism, logs: Sequence[Log], experiment: Experiment, progress: Progress | None = None
) -> RefinedLengths:
    """The logs with refined lengths.

    Args:
        mechanism: The robot.
        logs: As `free_motion_log` made them.
        experiment: Settings.
        progress: Called with a stage and the fraction of it done.
    """
    cables = [cable.name for cable in driven_cables(mechanism)]
    first = [given_lengths(log, cables) for log in logs]
    search = _Search(mechanism, logs, experiment, first)
    solution = least_squares(
        search.point(first, None),
        search.linearised,
        _SCHEDULE,
        progress and (lambda done: progress("locked lengths", done)),
    )
    at, runs = solution.point, solution.linearised.runs
    refined = (
        _refined(with_lengths(log, mechanism, solved), solved - given, own_runs, solution.gain)
        for log, solved, given, own_runs in zip(logs, at.lengths, first, runs, strict=True)
    )
    return RefinedLengths(tuple(refined), tuple(run for own_runs in runs for run in own_runs.values()))


@dataclass(frozen=True, eq=False)
class _Point:
    """The equations with some lengths.

    Attributes:
        lengths: Of every log, each shape (s, c), in [m].
        groups: Rows of the problem with these lengths.
    """

    problem: Problem
    lengths: list[Float[Array, "s c"]]
    groups: tuple[Group, ...]

    def sizes(self) -> dict[tuple[str, str], float]:
        """Deviation of one row of each group about the best parameters."""
        p = len(self.problem.parameters)
        factors = [group.factor(p) for group in self.groups]
        chi = _solved(np.concatenate([block.R for block in factors]))
        return {
            (group.log, group.name): _deviation(block.W @ chi - block.Y, block.Y, block.n_rows)
            for group, block in zip(self.groups, factors, strict=True)
        }

    def cost(self, sizes: Mapping[tuple[str, str], float], first: Lengths) -> float:
        """Squared errors of the rows about the best parameters, and of the lengths about the belief."""
        p = len(self.problem.parameters)
        rows = np.concatenate([g.factor(p).R / sizes[g.log, g.name] for g in self.groups])
        error = rows[:, :-1] @ _solved(rows) - rows[:, -1]
        off = [(current - at) / (_BELIEF * at) for current, at in zip(self.lengths, first, strict=True)]
        return float(error @ error + sum(np.sum(part**2) for part in off))


@dataclass(frozen=True, eq=False)
class _Search:
    """Levenberg-Marquardt over the lengths, the parameters eliminated.

    Plain Gauss-Newton steps leave the region in which poses exist: nearly singular free coordinates multiply
    lengths by a hundred.
    """

    mechanism: Mechanism
    logs: Sequence[Log]
    experiment: Experiment
    first: Lengths

    def point(self, lengths: Lengths, plans: Sequence[MotionPlan] | None) -> _Point:
        """The equations with these lengths."""
        moved = [
            with_lengths(log, self.mechanism, log_lengths)
            for log, log_lengths in zip(self.logs, lengths, strict=True)
        ]
        problem = prepare(self.mechanism, moved, self.experiment, plans)
        return _Point(
            problem, [np.array(log_lengths) for log_lengths in lengths], row_groups(problem, problem.sources)
        )

    def linearised(self, at: _Point) -> _Linearised:
        """Equations of all runs of all logs about the lengths at hand."""
        problem, sizes = at.problem, at.sizes()
        p = len(problem.parameters)
        chi = _solved(np.concatenate([group.factor(p).R for group in at.groups]))
        logs = zip(at.lengths, self.first, strict=True)
        runs = [
            _runs_of(problem, i, chi, sizes, log_lengths, first)
            for i, (log_lengths, first) in enumerate(logs)
        ]
        return _Linearised(self, at, runs, sizes, at.cost(sizes, self.first))

    def tried(self, lengths: Lengths, at: _Point) -> _Point | None:
        try:
            return self.point(lengths, at.problem.plans)
        except InputError:  # no pose has these lengths
            return None


@dataclass(frozen=True, eq=False)
class _Linearised:
    """All runs about some lengths.

    Attributes:
        sizes: Deviation of one row of each group, at these lengths.
    """

    search: _Search
    at: _Point
    runs: list[dict[int, _Run]]
    sizes: Mapping[tuple[str, str], float]
    cost: float

    def trial(self, damping: float) -> tuple[_Point, float]:
        """The point after a damped step of all lengths, and its cost."""
        held = [{place: run.damped(damping) for place, run in log_runs.items()} for log_runs in self.runs]
        chi = _solved(np.concatenate([run.rest for log_runs in held for run in log_runs.values()]))
        tried = [np.array(log_lengths) for log_lengths in self.at.lengths]
        for log_lengths, log_runs in zip(tried, held, strict=True):
            for place, run in log_runs.items():
                log_lengths[place] += run.step(chi)
        point = self.search.tried(tried, self.at)
        return (self.at, np.inf) if point is None else (point, point.cost(self.sizes, self.search.first))


def _runs_of(
    problem: Problem,
    i: int,
    chi: Float[Array, "p"],
    sizes: Mapping[tuple[str, str], float],
    lengths: Float[Array, "s c"],
    first: Float[Array, "s c"],
) -> dict[int, _Run]:
    """Equations of the runs of one log, by the number of the segment."""
    source, plan = problem.sources[i], problem.plans[i]
    log, c = source.motion.log, lengths.shape[1]
    changed: list[tuple[RowSource, None]] = []
    for step in STEP * np.eye(c):
        motion = Motion(with_lengths(log, problem.mechanism, lengths + step), plan)
        changed.append((problem.rows_along(motion, aligned_to=source), None))
    alone = replace(problem, sources=(source,), filters=(problem.filters[i],))
    groups = row_groups(alone, [slope_rows(source, changed, [STEP] * c, chi)])
    by_segment = {}
    for piece, (low, _) in enumerate(source.pieces()):
        place = next(k for k, (a, b) in enumerate(log.segments) if a <= low < b)
        parts = [_block(group, piece, len(chi), c) / sizes[group.log, group.name] for group in groups]
        belief = np.zeros((c, c + len(chi) + 1))
        belief[:, :c] = np.diag(1.0 / (_BELIEF * first[place]))
        belief[:, -1] = (first[place] - lengths[place]) / (_BELIEF * first[place])
        T = triangle(np.concatenate([*parts, belief]))
        by_segment[place] = _Run(T[:c], T[c:, c:])
    return by_segment


def _block(group: Group, piece: int, p: int, c: int) -> Float[Array, "k q"]:
    """Rows of one piece of a log: columns of the lengths, of all parameters, measured side."""
    piece_blocks = [block for block, (run, _) in zip(group.blocks, group.places, strict=True) if run == piece]
    if not piece_blocks:
        return np.zeros((0, c + p + 1))
    factor = merge(piece_blocks)
    rows = np.zeros((len(factor.R), p + c + 1))
    rows[:, group.columns], rows[:, -1] = factor.W, factor.Y
    return rows[:, [*range(p, p + c), *range(p), p + c]]


def _solved(rows: Float[Array, "r p1"]) -> Float[Array, "p"]:
    """Least squares; columns that are zero get zero."""
    return np.asarray(np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)[0])


def _deviation(error: Float[Array, "r"], measured: Float[Array, "r"], n: int) -> float:
    """Of one row; never less than rounding of the measured side."""
    return float(max(np.linalg.norm(error), _ROUNDING * np.linalg.norm(measured)) / np.sqrt(max(n, 1)))


def _refined(log: Log, shift: Float[Array, "s c"], runs: Mapping[int, _Run], gain: float) -> Log:
    """The log with what was done to its lengths, and how sure it is."""
    sigma = 1e3 * max((float(run.sigma.max()) for run in runs.values()), default=0.0)
    words = f"refined with the parameters, by up to {1e3 * np.abs(shift).max():.2g} mm; sigma up to"
    words += f" {sigma:.2g} mm with the parameters known"
    notices = log.notices
    if gain > _LOOSE:
        notices = (*notices, notice("lengths-not-converged", log=log.name, percent=100.0 * gain))
    return replace(log, notices=notices, choices={**log.choices, "locked lengths": words})
