"""Corrections of columns of a log: signs, units of efforts, and columns of two joints exchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np

from dynid.common.change import rounded
from dynid.common.notices import notice
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import effort_unit
from dynid.motion.choose import extents
from dynid.motion.log import Log
from dynid.motion.position_faults import stuck_positions
from dynid.validation.hypotheses import Hypothesis, Tests

_MOST_PAIRS = 21  # exchanged positions of seven joints
_FAR = 30.0  # times the usual peak of the others: the unit of one effort may be another
_UNITS = {1e-3: ("Nmm", "mN"), 1e3: ("kNm", "kN")}  # of torques and forces


def effort_signs(mechanism: Mechanism, logs: tuple[Log, ...], _: Tests = ()) -> Iterator[Hypothesis]:
    """One effort with the other sign.

    Where a wrong sign spoils the fit it is refused before: here several motors act in one equation, or an
    axis is almost independent of the others.
    """
    for i, actuator in enumerate(mechanism.actuators):
        sign = np.ones(len(mechanism.actuators))
        sign[i] = -1.0
        yield Hypothesis(
            notice("effort-sign", effort=actuator.name, change={"columns": {f"tau_{i + 1}": {"scale": -1}}}),
            mechanism,
            tuple(replace(log, tau=log.tau * sign) for log in logs),
            f"sign of the effort of '{actuator.name}'",
        )


def effort_units(mechanism: Mechanism, logs: tuple[Log, ...], _: Tests = ()) -> Iterator[Hypothesis]:
    """Torques or forces in another unit, on a robot with both, and single efforts far from all others.

    One unit wrong for all changes no fit.
    """
    yield from _single_units(mechanism, logs)
    angle = [effort_unit(mechanism, actuator.name) != "N" for actuator in mechanism.actuators]
    for kind, what in ((True, "rotary"), (False, "sliding")):
        chosen = [i for i, is_angle in enumerate(angle) if is_angle is kind]
        if not 0 < len(chosen) < len(angle):
            continue
        for factor, units in _UNITS.items():
            scale, unit = np.ones(len(angle)), units[0 if kind else 1]
            scale[chosen] = factor
            change = {"columns": {f"tau_{i + 1}": {"unit": unit} for i in chosen}}
            yield Hypothesis(
                notice("scale-implausible", "part", what=what, unit=unit, change=change),
                mechanism,
                tuple(replace(log, tau=log.tau * scale) for log in logs),
                f"efforts of {what} joints in {unit}",
                gains={mechanism.actuators[i].name: factor for i in chosen},
            )


def _single_units(mechanism: Mechanism, logs: tuple[Log, ...]) -> Iterator[Hypothesis]:
    """One effort in N mm or kN m beside others in N m."""
    names = [actuator.name for actuator in mechanism.actuators]
    peaks = np.max([np.abs(extents(log)[1]).max(axis=0) for log in logs], axis=0, initial=0.0)
    linear = np.array([effort_unit(mechanism, name) == "N" for name in names])
    for i, name in enumerate(names):
        others = [k for k in range(len(names)) if k != i and linear[k] == linear[i]]
        usual = float(np.median(peaks[others])) if others else 0.0
        if not 0.0 < usual < np.inf or not 0.0 < peaks[i] < np.inf:
            continue
        if max(peaks[i] / usual, usual / peaks[i]) < _FAR:
            continue
        factor = 1e-3 if peaks[i] > usual else 1e3
        unit, scale = _UNITS[factor][int(linear[i])], np.ones(len(names))
        scale[i] = factor
        yield Hypothesis(
            notice(
                "scale-implausible",
                "single",
                effort=name,
                unit=unit,
                change={"columns": {f"tau_{i + 1}": {"unit": unit}}},
            ),
            mechanism,
            tuple(replace(log, tau=log.tau * scale) for log in logs),
            f"effort of '{name}' in {unit}",
            gains={name: factor},
        )


def effort_orders(mechanism: Mechanism, logs: tuple[Log, ...], _: Tests = ()) -> Iterator[Hypothesis]:
    """Pairs of efforts that are exchanged.

    Where all logs have the same order, it is refused before: these are for one log beside others.
    """
    names = [actuator.name for actuator in mechanism.actuators]
    for i, j in list(combinations(range(len(names)), 2))[:_MOST_PAIRS]:
        order = _exchanged(len(names), i, j)
        exchanged = tuple(replace(log, tau=log.tau[:, order]) for log in logs)
        yield _exchange(mechanism, exchanged, names[i], names[j], "efforts", {"tau": (i, j)})


def scaled_efforts(
    mechanism: Mechanism, logs: tuple[Log, ...], factors: Mapping[str, float]
) -> Iterator[Hypothesis]:
    """One effort that is too large or too small by a factor, and all of them by their median factor.

    Args:
        mechanism: The description.
        logs: To correct.
        factors: Name of an effort -> how many times too large it is.
    """
    places = {actuator.name: i for i, actuator in enumerate(mechanism.actuators)}
    known = {places[name]: factor for name, factor in factors.items() if name in places}
    sets = [(f"of '{mechanism.actuators[i].name}'", {i: factor}) for i, factor in known.items()]
    if len(known) > 1:
        sets.append(("of every motor", dict.fromkeys(places.values(), float(np.median([*known.values()])))))
    for who, chosen in sets:
        scale = np.ones(len(places))
        scale[list(chosen)] = [1.0 / factor for factor in chosen.values()]
        columns = {f"tau_{i + 1}": {"scale": rounded(scale[i], 4)} for i in chosen}
        times = next(iter(chosen.values()))
        yield Hypothesis(
            notice("gain", "times", who=who, times=times, change={"columns": columns}),
            mechanism,
            tuple(replace(log, tau=log.tau * scale) for log in logs),
            f"factor of the effort {who}",
            fitted=1,
            gains={mechanism.actuators[i].name: float(scale[i]) for i in chosen},
        )


def position_signs(mechanism: Mechanism, logs: tuple[Log, ...], _: Tests = ()) -> Iterator[Hypothesis]:
    """Measured positions that count the other way, alone or together with the effort of their motor."""
    names, motors = logs[0].position_names, _own_motors(mechanism)
    for i, name in enumerate(names):
        scale = np.ones(len(names))
        scale[i] = -1.0
        turned = tuple(log.with_positions(scale) for log in logs)
        columns = {f"{symbol}_{i + 1}": {"scale": -1} for symbol in ("q", *_rates(logs[0], i))}
        yield Hypothesis(
            notice("position-order", joint=name, change={"columns": columns}),
            mechanism,
            turned,
            f"sign of the position of '{name}'",
        )
        if name in motors:
            sign = np.where(np.arange(len(mechanism.actuators)) == motors[name], -1.0, 1.0)
            both = {**columns, f"tau_{motors[name] + 1}": {"scale": -1}}
            yield Hypothesis(
                notice("position-order", "axis", joint=name, change={"columns": both}),
                mechanism,
                tuple(replace(log, tau=log.tau * sign) for log in turned),
                f"signs of position and effort of '{name}'",
            )


def position_orders(mechanism: Mechanism, logs: tuple[Log, ...], _: Tests = ()) -> Iterator[Hypothesis]:
    """Pairs of measured positions that are exchanged, alone or together with the efforts of their motors."""
    names, motors = logs[0].position_names, _own_motors(mechanism)
    stuck = stuck_positions(logs, mechanism)  # a position of any other joint fits better than none
    moving = [k for k in range(len(names)) if k not in stuck]
    for i, j in list(combinations(moving, 2))[:_MOST_PAIRS]:
        order = _exchanged(len(names), i, j)
        turned = tuple(log.with_positions(np.ones(len(names)), order) for log in logs)
        yield _exchange(mechanism, turned, names[i], names[j], "positions", {"q": (i, j)})
        if names[i] in motors and names[j] in motors:
            k, m = motors[names[i]], motors[names[j]]
            efforts = _exchanged(len(mechanism.actuators), k, m)
            both = tuple(replace(log, tau=log.tau[:, efforts]) for log in turned)
            columns = {"q": (i, j), "tau": (k, m)}
            yield _exchange(mechanism, both, names[i], names[j], "positions and efforts", columns)


def _own_motors(mechanism: Mechanism) -> dict[str, int]:
    """Joint -> number of its motor from 0, of motors that drive one joint only."""
    alone = [(k, actuator) for k, actuator in enumerate(mechanism.actuators) if len(actuator.on) == 1]
    return {name: k for k, actuator in alone for name in actuator.on}


def _exchange(
    mechanism: Mechanism,
    logs: tuple[Log, ...],
    joint: str,
    other: str,
    columns: str,
    places: Mapping[str, tuple[int, int]],
) -> Hypothesis:
    """Logs with columns of two joints exchanged.

    Args:
        mechanism: The description.
        logs: Corrected.
        joint, other: Whose columns.
        columns: Which, in words.
        places: Numbers of the two columns from 0, by their symbol.
    """
    mapping = logs[0].mapping
    pairs = dict(places)
    if "q" in places:
        pairs |= dict.fromkeys(_rates(logs[0], places["q"][0]), places["q"])
    keys = [(f"{symbol}_{i + 1}", f"{symbol}_{j + 1}") for symbol, (i, j) in pairs.items()]
    names = {key: {"name": mapping.get(x, x)} for a, b in keys for key, x in ((a, b), (b, a))}
    change = {"columns": names}
    return Hypothesis(
        notice("position-order", "exchanged", columns=columns, joint=joint, other=other, change=change),
        mechanism,
        logs,
        f"{columns} of '{joint}' and '{other}' exchanged",
        gains=_sizes(mechanism, logs, *places["tau"]) if "tau" in places else {},
    )


def _sizes(mechanism: Mechanism, logs: tuple[Log, ...], i: int, j: int) -> dict[str, float]:
    """Effort -> its size over that which it had before two were exchanged.

    A small effort in the place of a large one leaves little there, and explains nothing.
    """
    squares = [sum(float(np.nansum(log.tau[:, k] ** 2)) for log in logs) for k in (i, j)]
    if min(squares) <= 0.0:
        return {}
    times = float(np.sqrt(squares[0] / squares[1]))
    return {mechanism.actuators[i].name: times, mechanism.actuators[j].name: 1.0 / times}


def _rates(log: Log, i: int) -> list[str]:
    """Symbols of the measured rates of a position: they contradict a correction of the position alone."""
    return [symbol for symbol in ("dq", "ddq") if f"{symbol}_{i + 1}" in log.mapping]


def _exchanged(n: int, i: int, j: int) -> list[int]:
    """Numbers from 0 to n - 1 with two of them exchanged."""
    order = list(range(n))
    order[i], order[j] = j, i
    return order
