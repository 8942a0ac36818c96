"""Efforts with a wrong sign or in the wrong columns: would the same rows fit after correction?

    Y_j = s_j tau_pi(j)          for signs s and an order pi of the efforts

W does not depend on the efforts. One pass over the log gives W and every effort in every row. The residual
for any signs and any order then follows from the triangular factors. The test is done only if the fit is so
poor that such an error is likely. Wrong columns of positions resemble wrong columns of efforts: what leaves
least is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, product

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
from dynid.motion.log import Log
from dynid.motion.position_faults import stuck_positions
from dynid.problem import Problem, row_groups
from dynid.projection.factor import column_sizes, triangle
from dynid.projection.model import PackedRows
from dynid.projection.projection import System

_Factors = list[tuple[int, Array]]  # number of the row, and its triangle over parameters, efforts, known part
_POOR = 0.05  # of the efforts is left over: a wrong sign leaves more
_BETTER = 4.0  # times: nothing but the right answer improves a fit so
_SAME = 2.0  # times: what leaves more than that is worse, not only by noise
_AS_SMALL = 1.05  # times: what leaves up to that is as good
_MOST_PAIRS = 21  # exchanged positions of seven joints
_MOST_FITTED = 32_768  # samples of all logs, for each exchange of positions
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
    """Refuse logs that other signs or another order of efforts or positions explain far better."""
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
    columns, said = _corrected_efforts(problem, motors, best)
    refusal = _refusal(problem, said, columns, (start, least))
    turned = _turned_position(problem, best)
    if turned is not None:
        left = _with_position_turned(problem, turned, experiment)
        refusal = _with_position(refusal, problem, turned, (start, least, left))
    exchange = min(_exchanges(problem, motors, experiment), key=lambda found: found[0], default=None)
    if exchange is not None and exchange[0] * _AS_SMALL < least:
        after, columns, said = exchange
        instead = f"; with the efforts corrected instead {100 * least:.2g} %"
        refusal = _refusal(problem, said, columns, (start, after), instead)
    named = {key: {"name": name, **({"scale": -1} if turned else {})} for key, name, turned in columns}
    return (replace(doubt(refusal), change={"columns": named}),)


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
    return _fitted_without(problem, [log.with_positions(scale) for log in problem.logs], experiment)


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
        # Without the known part: in units of a small effort, that of a large one would make anything fit.
        size = max(float(np.linalg.norm(self.rows[:, self.v : -1] @ np.array(sign))), 1e-300)
        return float(np.linalg.norm(self.left @ np.append(sign, 1))) / size


def _trials(factors: _Factors, order: _Order, v: int) -> Iterator[tuple[float, _Order]]:
    """Residual of one or two efforts with the other sign, or of two exchanged with any signs."""
    placed = _Placed(factors, order.place, v)
    flips = [flip for n in (1, 2) for flip in combinations(range(len(order.sign)), n)]
    for flip in flips:
        sign = _put(order.sign, {i: -order.sign[i] for i in flip})
        yield placed.residual(sign), _Order(order.place, sign)
    for place in order.exchanged():
        placed = _Placed(factors, place, v)
        i, j = (row for row, (a, b) in enumerate(zip(place, order.place, strict=True)) if a != b)
        for a, b in product((1, -1), repeat=2):
            sign = _put(order.sign, {i: a, j: b})
            yield placed.residual(sign), _Order(place, sign)


def _braking(factors: _Factors, order: _Order, v: int, brakes: Sequence[int]) -> _Order:
    """Other signs may fit about as well (all inverted, or that of an axis that others hardly feel): choose by
    friction and rotors that are not negative, else by fewer changes.
    """
    placed, k = _Placed(factors, order.place, v), len(order.place)
    values = np.linalg.lstsq(placed.rows[:, :v], placed.rows[:, v:], rcond=None)[0][list(brakes)]
    least = placed.residual(order.sign)

    def worse(sign: tuple[int, ...]) -> tuple[float, bool, int, float]:
        negative = -float(np.sum(np.minimum(values @ np.append(sign, 1), 0.0)))
        left = placed.residual(sign)
        return round(negative, 2), left > _AS_SMALL * least, sign.count(-1), left

    flips = [flip for n in range(3) for flip in combinations(range(k), n)]
    signs = [_put(order.sign, {i: -order.sign[i] for i in flip}) for flip in flips]
    signs += [tuple(-factor for factor in sign) for sign in signs]
    return replace(
        order, sign=min((s for s in signs if placed.residual(s) <= _SAME * least + 1e-12), key=worse)
    )


_Columns = list[tuple[str, str, bool]]  # signal, its column in the file, and whether its sign is turned


def _exchanges(
    problem: Problem, motors: Sequence[int], experiment: Experiment
) -> Iterator[tuple[float, _Columns, str]]:
    """Two positions exchanged, alone or with the efforts of their motors: what is left over, columns, words.

    Positions that never change fit worse than any other.
    """
    names, logs = problem.logs[0].position_names, [_brief(log, len(problem.logs)) for log in problem.logs]
    stuck, rows = stuck_positions(logs, problem.mechanism), problem.directions.names
    moving = [k for k in range(len(names)) if k not in stuck]
    for i, j in islice(combinations(moving, 2), _MOST_PAIRS):
        order = _put(tuple(range(len(names))), {i: j, j: i})
        turned = [log.with_positions(np.ones(len(names)), order) for log in logs]
        exchanged = f"of '{names[i]}' and '{names[j]}' are exchanged"
        columns = _swapped(problem, "q", i, j)
        yield (
            _fitted_without(problem, turned, experiment),
            columns,
            f"order of the columns: the positions {exchanged}",
        )
        if names[i] in rows and names[j] in rows:
            a, b = (motors[rows.index(names[k])] for k in (i, j))
            both = [
                replace(log, tau=log.tau[:, _put(tuple(range(log.tau.shape[1])), {a: b, b: a})])
                for log in turned
            ]
            left = _fitted_without(problem, both, experiment)
            yield (
                left,
                [*columns, *_swapped(problem, "tau", a, b)],
                f"order of the columns: the positions and efforts {exchanged}",
            )


def _swapped(problem: Problem, symbol: str, i: int, j: int) -> _Columns:
    """Columns of two signals exchanged, with their measured rates."""
    mapping, columns = problem.logs[0].mapping, []
    for kind in (symbol, *(f"{d}{symbol}" for d in ("d", "dd") if f"{d}{symbol}_{i + 1}" in mapping)):
        one, other = f"{kind}_{i + 1}", f"{kind}_{j + 1}"
        columns += [(one, mapping.get(other, other), False), (other, mapping.get(one, one), False)]
    return columns


def _brief(log: Log, of: int) -> Log:
    """The beginning of each run: enough to compare."""
    most = max(_MOST_FITTED // (of * len(log.segments)), 1024)
    return replace(log, segments=tuple((a, min(b, a + most)) for a, b in log.segments))


def _fitted_without(problem: Problem, logs: Sequence[Log], experiment: Experiment) -> float:
    """What is left over of corrected logs, in parts of the efforts; infinite: no fit."""
    try:
        fit = linear_fit(problem.on(logs, problem.plans, experiment), experiment)
    except (DynidError, np.linalg.LinAlgError):
        return np.inf
    return _left_over(fit.data.source, fit.chi)


def _left_over(system: System, chi: Float[Array, "p"]) -> float:
    """Rms over the rows of the fit's residual, in parts of each row's effort."""
    parts = []
    for group in system.groups:
        factor = group.merged
        size = float(np.linalg.norm(factor.Y))
        if size > 0.0:
            parts.append(float(np.linalg.norm(factor.Y - factor.W @ chi[group.columns])) / size)
    return float(np.sqrt(np.mean(np.square(parts)))) if parts else 0.0


def _corrected_efforts(problem: Problem, motors: Sequence[int], best: _Order) -> tuple[_Columns, str]:
    """Columns of the log that give this order, and what is wrong in words."""
    names, log = problem.directions.names, problem.logs[0]
    said, columns = [], []
    for row, (place, sign) in enumerate(zip(best.place, best.sign, strict=True)):
        if place == row and sign > 0:
            continue
        target, column = (_column(problem, motors, index) for index in (row, place))
        other = "" if place == row else f" is in the column of '{names[place]}'"
        turned = " has the opposite sign" if sign < 0 else ""
        said.append(f"the effort of '{names[row]}'" + " and".join(x for x in (other, turned) if x))
        columns.append((target, log.mapping.get(column, column), sign < 0))
    return columns, "; ".join(said)


def _refusal(
    problem: Problem, said: str, columns: _Columns, left: tuple[float, float], instead: str = ""
) -> InputError:
    """What is wrong, with the columns that correct it; parts of the efforts left over before and after."""
    before, after = left
    return InputError(
        f"{said}. As logged, {100 * before:.0f} % of the efforts is unexplained; after correction"
        f" {100 * after:.2g} %{instead}",
        file=problem.logs[0].file,
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
