"""Residual tests of a finished fit: delay, joint zeros, gravity, other friction, gains, runs, bursts.

A good fit can hide these faults: wrong parameters compensate them, and R2 is still high. Each test checks
whether the residuals contain the effect of one fault.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dynid.base.grouping import listed, probability
from dynid.base.system import BaseSystem, mapped_blocks
from dynid.checks.check import Answer, Finished
from dynid.checks.family_level import CALIBRATED, NOTICEABLE
from dynid.checks.fault_columns import TURNED, Suspect
from dynid.checks.fault_selection import LEAST_CLUSTERS, flagged_suspects
from dynid.checks.residual_tests import (
    CORRELATED,
    BlockPlace,
    beside,
    bursts,
    effort_weights,
    outlying_runs,
    whiteness,
)
from dynid.checks.residual_texts import by_test, confounded, inseparable, suspect_notice
from dynid.checks.second_looks import away_from_reversals, away_from_singular, settled_gains, with_held_out
from dynid.checks.tested_rows import beside_bursts, tested_rows
from dynid.checks.total_mass import weigh
from dynid.checks.turned_gravity import TurnedGravity, find_gravity
from dynid.common.arrays import Array, Float
from dynid.common.notices import Notice, notice
from dynid.linear_fit import LinearFit
from dynid.log_pass import LogPass
from dynid.mechanism.description import current
from dynid.mechanism.parameters import Parameter
from dynid.motion.log import Log
from dynid.problem import Problem, row_groups
from dynid.projection.projection import Group, System
from dynid.statistics.clusters import duration, stretches
from dynid.statistics.covariance import block_seconds
from dynid.statistics.estimate import NOT_TESTED, ResidualTest

# Relevant sizes: smaller faults occur in every careful recording.
_DELAY_SAMPLES = 0.2
_ZERO_RAD, _ZERO_METRES = np.deg2rad(0.2), 5e-4
_SIZE, _SIZE_MOST = 1e-3, 0.5  # m or rad; of the dimension
_TURN_RAD = np.deg2rad(0.5)
_TURNED = {"gravity": 9.81 * _TURN_RAD, "mounting": _TURN_RAD}
_EXPLAINED = 0.1
# Above this the derivative at the logged pose is not valid.
_ZERO_MOST = np.deg2rad(30.0)
_GAIN = 0.02
_MOST_CLUSTERS = 64
# A zero that is doubted at this level is tested again with the validation logs, on clusters of this length.
_DOUBTED, _SHORT_SECONDS = 0.02, 0.5
_CONFIRMED = 0.05  # level at which a flagged delay must show without the reversals
_FREE_UNTESTED = ("gravity (no efforts to compare with)",)


def residuals(finished: Finished) -> list[Answer]:
    """Tests of the residuals of a time series; what is known already is not reported again."""
    fit = finished.fit
    if not fit.problem.case.is_series:
        return []
    answers = check_residuals(fit.as_linear, fit.task.held_out)
    # The wrong attitude of a force sensor may be known.
    known = {item.code for item in fit.notices}
    return [answer for answer in answers if not isinstance(answer, Notice) or answer.code not in known]


def check_residuals(fit: LinearFit, held_out: Sequence[Log] = ()) -> list[Answer]:
    """Test residuals in time; `held_out`: logs of the same robot that were not used for the fit."""
    problem = fit.problem
    # Without an effort nothing could be late, scaled or of the wrong sign.
    free = not problem.case.measures_signals
    # A contact biases the parameters; the other tests are done without it.
    calm, burst = beside_bursts(fit)
    calm_fit = replace(fit, chi=calm) if burst else fit
    asked = _Asked(untested=_FREE_UNTESTED) if free else _suspects(calm_fit, burst, held_out)
    method = fit.experiment.uncertainty.method
    white, coloured = whiteness(problem.sources, problem.filters, fit.chi, method)
    if asked.corrected is not None:
        # Residuals of a wrong gravity vary in time: they are not a burst.
        fit = asked.corrected
        calm, burst = beside_bursts(fit)
    noise = partial(_noise_rows, problem, fit.data) if free else None
    notices = [
        *outlying_runs(beside(fit.data.source, burst), calm if burst else fit.chi, noise),
        *bursts(burst, _starts(problem)),
    ]
    tests = (*asked.tests, *white)
    words = {**_words(tests, asked), **_memory(white)}
    return [*asked.notices, *notices, *coloured, *words.items(), *tests]


@dataclass(frozen=True, eq=False)
class _Asked:
    """Results for the suspects: tests, warnings, what is untested, each suspect, a corrected fit."""

    tests: tuple[ResidualTest, ...] = ()
    notices: tuple[Notice, ...] = ()
    untested: tuple[str, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    corrected: LinearFit | None = None


@dataclass(frozen=True, eq=False)
class _Judged:
    """Flagged suspects as found, the first result of each by its columns, hidden ones; is the log short?"""

    flagged: tuple[Suspect, ...]
    first: Mapping[tuple[int, ...], Suspect]
    hidden: tuple[Suspect, ...]
    untested: tuple[str, ...]
    notices: tuple[Notice, ...]
    short: bool


def _noise_rows(problem: Problem, data: BaseSystem) -> System:
    """Effect of position noise on the rows, over the standard parameters, with blocks."""
    return System(problem.parameters, row_groups(problem, LogPass(problem, data).noise_rows()))


def _suspects(fit: LinearFit, burst: Collection[BlockPlace], held_out: Sequence[Log]) -> _Asked:
    problem, judged = fit.problem, _away_from_singular(fit, _judged(fit, burst))
    if held_out and not burst and not judged.flagged:
        judged = _with_more_data(fit, held_out, judged)
    if not burst:  # other rows have other blocks: a contact could not be left out of them
        judged = _without_sticking(fit, judged)
    turned = _turned_gravity(fit, judged)
    notices = []
    if turned is None and any(suspect.test == "gravity" for suspect in judged.flagged):
        # Something else, which resembles gravity to first order only.
        judged = _judged(fit, burst, without="gravity")
        notices.append(notice("model-misfit", "gravity"))
    flagged = judged.flagged
    if not burst:
        flagged = settled_gains(fit, flagged, lambda corrected: _judged(corrected).first)
    if turned is not None:
        tilt = next(suspect for suspect in flagged if suspect.test == "gravity")
        robot = problem.mechanism
        described, sensor = np.asarray(robot.gravity, float), bool(robot.mounted_model)
        notices.append(turned.notice(described, confounded(tilt), sensor))
        flagged = (tilt, *turned.others)
    warned_of = {suspect.columns: suspect for suspect in flagged}
    final = {**judged.first, **warned_of}
    tests = tuple(_row(suspect, suspect.columns in warned_of) for suspect in final.values())
    if turned is not None:
        tests = tuple(turned.confirmed(row) if row.test == "gravity" else row for row in tests)
    delays = {suspect.about: float(suspect.size[0]) for suspect in flagged if suspect.test == "delay"}
    named = [
        suspect_notice(suspect, problem, delays)
        for suspect in flagged
        if turned is None or suspect.test != "gravity"
    ]
    warned = (*judged.notices, *notices, *named)
    why = "the log is too short" if judged.short else "this motion or the noise hides them"
    untested = [f"{by_test(judged.hidden)} ({why})"] if judged.hidden else []
    corrected = None if turned is None else turned.fit
    return _Asked(tests, warned, (*judged.untested, *untested), tuple(judged.first.values()), corrected)


def _judged(
    fit: LinearFit,
    burst: Collection[BlockPlace] = (),
    without: str = "",
    shortest: float | None = None,
) -> _Judged:
    """Forward selection among the suspects of a fit, without one test, and without the blocks of a burst."""
    problem = fit.problem
    groups, tested, untested, count = tested_rows(problem, fit.chi)
    S, c, seen, notices = _held(fit)
    errors = fit.known_errors
    if errors is not None:
        S = np.hstack([S, errors.over(problem.parameters)])
        seen += tuple(
            Parameter(f"error {i + 1}", "error", "", "", "known") for i in range(errors.root.shape[1])
        )
    system, solved = _tested_system(problem, S, c, seen, groups, count), fit.data.source
    # A very long log is tested on other windows: their blocks have other numbers.
    if burst and [group.places for group in system.groups] == [group.places for group in solved.groups]:
        system, solved = beside(system, burst), beside(solved, burst)
    weights = effort_weights(system, solved, fit.chi)
    suspects = tuple(suspect for suspect in tested if suspect.test != without)
    total = duration(system)
    seconds = max(block_seconds(total) if shortest is None else shortest, total / _MOST_CLUSTERS)
    relevant = _Relevance(problem)
    flagged, first = flagged_suspects(system, weights, suspects, count, relevant, seconds, errors)
    first = {columns: suspect for columns, suspect in first.items() if relevant.testable(suspect)}
    hidden = tuple(suspect for suspect in suspects if suspect.columns not in first)
    short = len(stretches(system, seconds)[1]) < LEAST_CLUSTERS
    return _Judged(tuple(flagged), first, hidden, untested, notices, short)


def _with_more_data(fit: LinearFit, held_out: Sequence[Log], judged: _Judged) -> _Judged:
    """Joint zeros and dimensions tested again with the validation logs, where one of them is doubted.

    Another one may then be the cause: a single log hardly separates them.
    """
    relevant = _Relevance(fit.problem)
    doubted = any(
        suspect.test in CALIBRATED and suspect.p_value < _DOUBTED and relevant(suspect)
        for suspect in judged.first.values()
    )
    other = with_held_out(fit, held_out) if doubted else None
    if other is None:
        return judged
    again = _judged(other, shortest=_SHORT_SECONDS)
    return again if any(suspect.test in CALIBRATED for suspect in again.flagged) else judged


def _away_from_singular(fit: LinearFit, judged: _Judged) -> _Judged:
    """Joint zeros and dimensions that only show away from singular poses; else what was found with them."""
    other = None if judged.flagged else away_from_singular(fit)
    if other is None or beside_bursts(other)[1]:
        return judged
    again = _judged(other)
    return again if any(suspect.test in CALIBRATED for suspect in again.flagged) else judged


def _without_sticking(fit: LinearFit, judged: _Judged) -> _Judged:
    """Flagged delays tested again away from reversals; what is found there, if one of them vanishes."""
    delays = [suspect for suspect in judged.flagged if suspect.test == "delay"]
    other = away_from_reversals(fit) if delays else None
    if other is None:
        return judged
    again = _judged(other)
    for suspect in delays:
        left = again.first.get(suspect.columns)
        if left is not None and (left.p_value > _CONFIRMED or left.size[0] * suspect.size[0] < 0.0):
            return again
    return judged


def _turned_gravity(fit: LinearFit, judged: _Judged) -> TurnedGravity | None:
    """The gravity estimated from the data, if the gravity of the description is flagged."""
    tilt = next((suspect for suspect in judged.flagged if suspect.test == "gravity"), None)
    if tilt is None:
        return None

    def again(turned: LinearFit) -> tuple[list[Suspect], list[Suspect]]:
        judgement = _judged(turned)
        return list(judgement.flagged), list(judgement.first.values())

    return find_gravity(fit, tilt, again)


def _held(
    fit: LinearFit,
) -> tuple[Float[Array, "p v"], Float[Array, "p"], tuple[Parameter, ...], tuple[Notice, ...]]:
    """Standard parameters are S y + c: y those seen, one fewer if a weighed mass checks the efforts."""
    data, gains = fit.data, fit.experiment.gains
    if gains is None or gains.scale is None or not gains.checks_only:
        return data.S, data.base.c, data.system.parameters, ()
    weighed = weigh(fit.problem.mechanism, data, gains.scale)
    chi_0, Z, given = weighed.solved(np.linalg.norm(data.system.factor().W, axis=0))
    seen = tuple(parameter for k, parameter in enumerate(data.system.parameters) if k != given)
    return data.S @ Z, data.base.c + data.S @ chi_0, seen, weighed.notices()


def _tested_system(
    problem: Problem,
    S_fit: Float[Array, "p v"],
    c: Float[Array, "p"],
    seen: tuple[Parameter, ...],
    groups: tuple[Group, ...],
    t: int,
) -> System:
    """The fit's equations with test columns behind its parameters."""
    p, v = len(problem.parameters), S_fit.shape[1]
    tests = tuple(Parameter(f"test {i + 1}", "test", "", "", "test") for i in range(t))
    wide = System((*problem.parameters, *tests), groups)
    S = np.zeros((p + t, v + t))
    S[:p, :v], S[p:, v:] = S_fit, np.eye(t)
    return mapped_blocks(wide, S, np.append(c, np.zeros(t)), (*seen, *tests))


class _Relevance:
    """Whether a fault is large enough to matter for this problem."""

    def __init__(self, problem: Problem) -> None:
        self.mechanism = problem.mechanism
        self.dt = min(source.dt for source in problem.sources)
        joints = problem.mechanism.joint_of_coordinate
        names = problem.logs[0].position_names
        self.zero = {n: _ZERO_RAD if n in joints and joints[n].is_angle(n) else _ZERO_METRES for n in names}

    def testable(self, suspect: Suspect) -> bool:
        """Whether noise leaves room for a size at which the derivative at the logged pose is valid."""
        return suspect.test not in ("zero", "dimension") or bool(suspect.half < self._most(suspect))

    def _most(self, suspect: Suspect) -> float:
        """Largest size of a zero or a dimension for which that derivative is valid."""
        zero = suspect.test == "zero"
        return _ZERO_MOST if zero else _SIZE_MOST * abs(current(self.mechanism, suspect.about))

    def __call__(self, suspect: Suspect) -> bool:
        """Whether its interval contains a size that matters: only what is surely small is dismissed."""
        test, size = suspect.test, float(np.max(np.abs(suspect.beyond)))
        reach = float(np.max(np.abs(suspect.beyond) + suspect.halves))
        if test in ("delay", "gain"):
            return reach > (_GAIN if test == "gain" else _DELAY_SAMPLES * self.dt)
        if test == "zero":
            return bool(self.zero[suspect.about] < reach and size < self._most(suspect))
        if test == "dimension":
            return bool(reach > _SIZE and size < self._most(suspect))
        if test in TURNED:
            return bool(np.linalg.norm(suspect.size) > _TURNED[test])
        return suspect.explains > _EXPLAINED and suspect.share > NOTICEABLE


def _row(suspect: Suspect, warned: bool) -> ResidualTest:
    single = len(suspect.size) == 1
    half = suspect.half
    turned = suspect.test in TURNED
    value = float(np.linalg.norm(suspect.size)) if turned else float(suspect.size[0])
    return ResidualTest(
        test=suspect.test,
        about=suspect.about,
        value=value if single or turned else float(suspect.explains),
        unit=suspect.unit if single or turned else "1",
        ci95=(value - half, value + half) if single and not turned else None,
        p_value=suspect.p_value,
        warned=warned,
        note=confounded(suspect).removeprefix("; "),
        explains=min(suspect.explains, 1.0),
    )


def _starts(problem: Problem) -> dict[str, list[float]]:
    """Time at which each run of each log begins, in [s]."""
    return {
        source.motion.log.name: [float(source.motion.log.t[start]) for start, _ in source.pieces()]
        for source in problem.sources
    }


def _words(tests: Sequence[ResidualTest], asked: _Asked) -> dict[str, str]:
    """Summary of the tests: what is not separable and what is not tested. Refits decide what is flagged."""
    words = {"residual tests": f"{len(tests)} tests{inseparable(asked.suspects)}"}
    return {**words, NOT_TESTED: "; ".join(asked.untested)} if asked.untested else words


def _memory(white: Sequence[ResidualTest]) -> dict[str, str]:
    """Residuals that are correlated in time, and the consequence."""
    coloured = [test for test in white if test.note == CORRELATED]
    if not coloured:
        return {}
    least = min(test.p_value for test in coloured)
    names = listed([test.about for test in coloured])
    return {
        "correlation of residuals": f"{names} (p {probability(least)}): the model misses an effect, or"
        " the noise is coloured; the intervals account for it"
    }
