"""Efforts with a wrong sign or in the wrong columns: would the same rows fit after correction?

    Y_j = s_j tau_pi(j)          for signs s and an order pi of the efforts

W does not depend on the efforts. One pass over the log gives W and every effort in every row. The residual
for any signs and any order then follows from the triangular factors. The test is done only if the fit is so
poor that such an error is likely.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from dynid.base.system import BaseSystem, mapped_blocks
from dynid.checks.check import Finished
from dynid.checks.fault_columns import MOST_SAMPLES, spread_windows
from dynid.common.arrays import Array, Float
from dynid.common.errors import DynidError, InputError
from dynid.common.notices import Notice, doubt
from dynid.conditioning.rewritten import Tiles, WiderRows, windowed
from dynid.experiment.experiment import Experiment
from dynid.linear_fit import linear_fit
from dynid.mechanism.drive_terms import is_positive
from dynid.mechanism.parameters import Parameter
from dynid.problem import Problem, row_groups
from dynid.projection.factor import column_sizes, triangle
from dynid.projection.model import PackedRows
from dynid.projection.projection import System

_Factors = list[tuple[int, Array]]  # number of the row, and its triangle over parameters, efforts, known part
_POOR = 0.05  # of the efforts is left over: a wrong sign leaves more
_BETTER = 4.0  # times: nothing but the right answer improves a fit so
_SAME = 2.0  # times: what leaves more than that is worse, not only by noise
_ENOUGH = 3  # parameters that cannot be negative
_POSITIVE = ("ZZ", "M")  # and drive terms that brake


@dataclass(frozen=True)
class _Order:
    """Which effort is the measured side of each row, and its sign."""

    place: tuple[int, ...]
    sign: tuple[int, ...]

    def exchanged(self) -> Iterator[tuple[int, ...]]:
        """Places with two efforts exchanged."""
        for i, j in combinations(range(len(self.place)), 2):
            yield _put(self.place, {i: self.place[j], j: self.place[i]})


def _put(values: tuple[int, ...], new: dict[int, int]) -> tuple[int, ...]:
    return tuple(new.get(i, value) for i, value in enumerate(values))


def misplaced(finished: Finished) -> tuple[Notice, ...]:
    """Refuse logs that other signs or another order of the efforts explain far better."""
    problem, data, experiment = finished.fit.problem, finished.fit.measured, finished.fit.experiment
    felt = problem.directions.effort_map
    if experiment.gains is not None or not problem.case.measures_signals:
        return ()
    if not problem.model.effort_rows or not np.all(np.count_nonzero(felt, axis=1) == 1):
        return ()  # rows with several motors have no single effort
    if _left_over(data.source, finished.fit.chi) < _POOR:
        return ()
    k, v = len(problem.directions.names), len(data.system.parameters)
    factors = _factors(problem, data)
    best = _Order(tuple(range(k)), (1,) * k)
    start = least = _Placed(factors, best.place, v).residual(best.sign)
    while True:
        value, tried = min(_trials(factors, best, v), key=lambda trial: trial[0])
        if value > 0.5 * least:
            break
        least, best = value, tried
    if least * _BETTER >= start:
        return ()
    brakes = [i for i, parameter in enumerate(data.system.parameters) if parameter.positive]
    motors = [int(np.flatnonzero(row)[0]) for row in felt]
    best = _braking(factors, best, v, brakes)
    refusal = _refusal(problem, motors, best, start, least)
    turned = _turned_position(problem, best)
    if turned is not None:
        left = _with_position_turned(problem, turned, experiment)
        refusal = _with_position(refusal, problem, turned, (start, least, left))
    return (doubt(refusal),)


def reversed_signs(finished: Finished) -> tuple[Notice, ...]:
    """Refuse logs in which friction drives, and rotors and inertias are negative: every sign is wrong."""
    sure = [
        parameter
        for parameter in finished.fit.parts.parameters
        if parameter.ci95 is not None
        and (is_positive(symbol := parameter.name.split("_")[0]) or symbol in _POSITIVE)
        and (parameter.ci95[0] > 0 or parameter.ci95[1] < 0)
    ]
    brakes = [parameter for parameter in sure if is_positive(parameter.name.split("_")[0])]
    if not brakes or len(sure) < _ENOUGH or any(parameter.value > 0 for parameter in sure):
        return ()
    shown = ", ".join(f"{parameter.name} = {parameter.value:.3g} {parameter.unit}" for parameter in sure[:4])
    error = InputError(
        f"inertias are negative and friction adds energy instead of dissipating it ({shown}): the signs of"
        " efforts and positions are opposite",
        file=finished.fit.problem.logs[0].file,
        remedy="give all efforts the scale -1: --column 'tau_{i}=NAME_{i}*-1'; in an experiment file, "
        'columns: {"tau_{i}": {scale: -1}}',
    )
    return (doubt(error),)


def _turned_position(problem: Problem, order: _Order) -> int | None:
    """The measured position of the only effort that has the other sign: it may be the one that is wrong."""
    turned = [row for row, sign in enumerate(order.sign) if sign < 0]
    if len(turned) != 1 or list(order.place) != sorted(order.place):
        return None
    names, name = problem.logs[0].position_names, problem.directions.names[turned[0]]
    return names.index(name) if name in names else None


def _with_position_turned(problem: Problem, number: int, experiment: Experiment) -> float:
    """What is left over with the other sign of a position, in parts of the efforts; infinite: no fit."""
    scale = np.ones(len(problem.logs[0].position_names))
    scale[number] = -1.0
    try:
        logs = [log.with_positions(scale) for log in problem.logs]
        fit = linear_fit(problem.on(logs, problem.plans, experiment), experiment)
    except DynidError:
        return np.inf
    return _left_over(fit.data.source, fit.chi)


def _with_efforts(source: PackedRows, p: int, most: int) -> PackedRows:
    """Rows [W, every effort, Y]; of a long log some windows all over it."""
    ends = source.layout.start[1:] - 1

    def tiles(start: int, stop: int, tile: int) -> Tiles:
        for at, packed, weights in source.rows(start, stop, tile):
            yield at, packed, weights, np.tile(np.nan_to_num(packed[ends]), (len(ends), 1))

    columns = list(range(p, p + len(ends)))
    return windowed(WiderRows(source, [columns] * len(ends), tiles), spread_windows(source.pieces(), most))


def _factors(problem: Problem, data: BaseSystem) -> _Factors:
    """Number of the row and its triangular factor over parameters seen and all efforts."""
    p, v, k = len(problem.parameters), data.S.shape[1], len(problem.directions.names)
    extra = tuple(Parameter(f"effort {i + 1}", "effort", "", "", "effort") for i in range(k))
    most = MOST_SAMPLES // len(problem.sources)
    groups = row_groups(problem, [_with_efforts(source, p, most) for source in problem.sources])
    S = np.zeros((p + k, v + k))
    S[:p, :v], S[p:, v:] = data.S, np.eye(k)
    system = mapped_blocks(
        System((*problem.parameters, *extra), groups),
        S,
        np.append(data.base.c, np.zeros(k)),
        (*data.system.parameters, *extra),
    )
    by_row: dict[int, list[Array]] = {}
    for group in system.groups:
        whole = group.merged.R
        R = np.zeros((len(whole), v + k + 1))
        R[:, [*group.columns, v + k]] = whole
        # The known part of the measured side stays with the row for every choice of effort.
        row = problem.directions.group_names.index(group.name)
        R[:, -1] -= R[:, v + row]
        by_row.setdefault(row, []).append(R)
    return [(row, triangle(np.concatenate(logs))) for row, logs in by_row.items()]


class _Placed:
    """Least squares with one place for every effort, for any signs.

    With E_j the effort of row j, in parts of its size, K the known part, and all in the units of their rows,

    ||(I - Q Q^T) (sum_j s_j E_j + K)||^2        is a quadratic form of the signs: one factorisation for all
    """

    def __init__(self, factors: _Factors, place: Sequence[int], v: int) -> None:
        self.place, self.v = tuple(place), v
        k = len(place)
        parts = []
        for row, R in factors:
            size = float(np.linalg.norm(R[:, v + place[row]]))
            efforts = np.zeros((len(R), k + 1))
            efforts[:, row], efforts[:, -1] = R[:, v + place[row]], R[:, -1]
            parts.append(np.column_stack([R[:, :v], efforts]) / (size if size > 0.0 else 1.0))
        stacked = np.concatenate(parts)
        self.rows = stacked / np.append(column_sizes(stacked[:, :v]), np.ones(k + 1))
        self.left = triangle(self.rows)[v:, v:] if len(self.rows) > v else np.zeros((1, k + 1))

    def residual(self, sign: Sequence[int]) -> float:
        """Norm of what is left over, in parts of the efforts; zero with fewer rows than parameters."""
        y = self.rows[:, self.v :] @ np.append(sign, 1)
        size = max(float(np.linalg.norm(y)), 1e-300)
        return float(np.linalg.norm(self.left @ np.append(sign, 1))) / size


def _trials(factors: _Factors, order: _Order, v: int) -> Iterator[tuple[float, _Order]]:
    """Residual of one effort with the other sign, or of two exchanged with any signs."""
    placed = _Placed(factors, order.place, v)
    for i, current in enumerate(order.sign):
        sign = _put(order.sign, {i: -current})
        yield placed.residual(sign), _Order(order.place, sign)
    for place in order.exchanged():
        placed = _Placed(factors, place, v)
        i, j = (row for row, (a, b) in enumerate(zip(place, order.place, strict=True)) if a != b)
        for a, b in product((1, -1), repeat=2):
            sign = _put(order.sign, {i: a, j: b})
            yield placed.residual(sign), _Order(place, sign)


def _braking(factors: _Factors, order: _Order, v: int, brakes: Sequence[int]) -> _Order:
    """All signs inverted fit equally well: choose by dissipative friction, else by fewer changes."""
    rows = _Placed(factors, order.place, v).rows
    y = rows[:, v:] @ np.append(order.sign, 1)
    work = float(np.sum(np.linalg.lstsq(rows[:, :v], y, rcond=None)[0][list(brakes)]))
    turned = work < 0.0 if brakes else sum(order.sign) < 0
    return replace(order, sign=tuple(-value for value in order.sign)) if turned else order


def _left_over(system: System, chi: Float[Array, "p"]) -> float:
    """Rms over the rows of the fit's residual, in parts of each row's effort."""
    parts = []
    for group in system.groups:
        factor = group.merged
        size = float(np.linalg.norm(factor.Y))
        if size > 0.0:
            parts.append(float(np.linalg.norm(factor.Y - factor.W @ chi[group.columns])) / size)
    return float(np.sqrt(np.mean(np.square(parts)))) if parts else 0.0


def _refusal(
    problem: Problem, motors: Sequence[int], best: _Order, before: float, after: float
) -> InputError:
    """In words of the columns of the log."""
    names, log = problem.directions.names, problem.logs[0]
    said, columns = [], []
    for row, (place, sign) in enumerate(zip(best.place, best.sign, strict=True)):
        if place == row and sign > 0:
            continue
        target, column = (_column(problem, motors, index) for index in (row, place))
        other = "" if place == row else f" is in the column of '{names[place]}'"
        turned = " has the opposite sign" if sign < 0 else ""
        said.append(f"the effort of '{names[row]}'" + " and".join(x for x in (other, turned) if x))
        name = log.mapping.get(column, column)
        columns.append((target, name, sign < 0))
    return InputError(
        f"signs or order of the efforts: {'; '.join(said)}. As logged, {100 * before:.0f} % of the efforts"
        f" is unexplained; after correction {100 * after:.2g} %",
        file=log.file,
        remedy=_mapped(*columns),
    )


def _mapped(*columns: tuple[str, str, bool]) -> str:
    """Options, and the same for an experiment file.

    Args:
        columns: Signal, its column, and whether its sign is turned.
    """
    options = " ".join(f"--column '{key}={name}{'*-1' if turned else ''}'" for key, name, turned in columns)
    entries = ", ".join(
        f"{key}: {{name: {name}{', scale: -1' if turned else ''}}}" for key, name, turned in columns
    )
    return f"give {options}; in an experiment file, columns: {{{entries}}}"


def _with_position(
    refusal: InputError, problem: Problem, number: int, left: tuple[float, float, float]
) -> InputError:
    """The refusal of an effort's sign, or of that of its position if it leaves less; both if both may be.

    Args:
        refusal: Of the effort.
        number: Of the position.
        left: Over as logged, with the other sign of the effort and of the position, in parts of the efforts.
    """
    log, column = problem.logs[0], f"q_{number + 1}"
    before, effort, position = left
    entry = _mapped((column, log.mapping.get(column, column), True))
    if position >= _SAME * effort:
        return refusal
    if position >= effort:
        found = f"{refusal.text}; with the other sign of its position instead {100 * position:.2g} %"
        return InputError(found, file=log.file, remedy=f"{refusal.remedy}; or, for the position, {entry}")
    also = f"; with the other sign of its effort instead {100 * effort:.2g} %"
    return InputError(
        f"signs: the position of '{log.position_names[number]}' has the opposite sign. As logged,"
        f" {100 * before:.0f} % of the efforts is unexplained; after correction {100 * position:.2g} %"
        + (also if effort < _SAME * position else ""),
        file=log.file,
        remedy=entry + (f"; or, for the effort, {refusal.remedy}" if effort < _SAME * position else ""),
    )


def _column(problem: Problem, motors: Sequence[int], row: int) -> str:
    """What the effort of a row is called in a log."""
    return problem.directions.names[row] if problem.mechanism.mounted_model else f"tau_{motors[row] + 1}"
