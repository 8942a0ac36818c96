"""Residual tests of a finished fit: delay, joint zeros, friction left over, gains, runs, bursts.

A good fit does not show these faults: parameters bend until R2 is high. Each test asks whether the
residuals still hold what one fault would leave in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from dynid.base.system import BaseSystem, mapped_blocks
from dynid.base.words import listed
from dynid.checks.fault_columns import ALL, MOST_SAMPLES, Suspect, SuspectRows
from dynid.checks.fault_selection import Verdict, accused
from dynid.checks.residual_tests import bursts, outlying_runs, whiteness
from dynid.checks.total_mass import weigh
from dynid.common.arrays import Array
from dynid.common.notices import Notice
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit
from dynid.mechanism.force_sensor import COMPONENTS
from dynid.mechanism.parameters import Parameter
from dynid.problem import Problem, row_groups
from dynid.projection.projection import System
from dynid.statistics.clusters import duration
from dynid.statistics.covariance import block_seconds
from dynid.statistics.estimate import ResidualTest
from dynid.statistics.uncertainty import student_t95

# What matters: less is within what a careful recording leaves anyway.
_DELAY_SAMPLES = 0.2
_ZERO_RAD, _ZERO_METRES = np.deg2rad(0.5), 5e-4
_EXPLAINED = 0.1
# Beyond this the derivative at the pose logged says nothing.
_ZERO_MOST = np.deg2rad(30.0)
_NOTICEABLE = 3e-3
_PERFECT = 1e-6
_GAIN, _NONSENSE = 0.02, 0.5
_MOST_CLUSTERS = 64


@dataclass(frozen=True, eq=False)
class Tested:
    """Every test, and what must be said about it."""

    tests: tuple[ResidualTest, ...]
    notices: tuple[Notice, ...]
    choices: Mapping[str, str] = field(default_factory=dict)


def residual_checks(fit: Fit) -> Tested:
    """Test the residuals of a fit."""
    problem, data, chi, experiment = fit.problem, fit.data, fit.chi, fit.experiment
    own = problem.case.residual_tests(fit)
    if own is not None:
        return Tested(*own)
    # Without an effort nothing could be late, scaled or of the wrong sign.
    free = not problem.case.has_motors
    tests, notices, untested = ([], [], ()) if free else _suspects(problem, data, chi, experiment)
    told = [
        *outlying_runs(data.source, chi, free),
        *bursts(data.source, chi, _starts(problem)),
    ]
    white, coloured = whiteness(problem.sources, problem.filters, chi, experiment.uncertainty.method)
    found = (*tests, *white)
    return Tested(found, (*notices, *told, *coloured), _words(found, untested))


def _suspects(
    problem: Problem, data: BaseSystem, chi: Float[Array, "p"], experiment: Experiment
) -> tuple[list[ResidualTest], list[Notice], tuple[str, ...]]:
    sources = [
        SuspectRows(
            problem.mechanism,
            source,
            problem.parameters,
            chi,
            rows.decimate,
            MOST_SAMPLES // len(problem.sources),
        )
        for source, rows in zip(problem.sources, problem.filters, strict=True)
    ]
    S, c, seen, told = _held(problem, data, experiment)
    system = _tested_system(problem, S, c, seen, sources)
    weights = _weights(system, data, chi)
    suspects = sources[0].suspects()
    total = duration(system)
    seconds = max(block_seconds(total), total / _MOST_CLUSTERS)
    judge = _Relevance(problem)
    guilty, first = accused(system, weights, suspects, sources[0].n_tests, judge, seconds)
    final = {**first, **{one.suspect: one for one in guilty}}
    blamed = {one.suspect for one in guilty}
    tests = [_row(one, one.suspect in blamed) for one in final.values()]
    shared = any(one.suspect.test == "delay" and one.suspect.about == ALL for one in guilty)
    notices = [*told, *_gathered([_notice(one, problem, shared) for one in guilty])]
    hidden = [f"{one.test} of {one.about}" for one in suspects if one not in first]
    why = "these motions do not tell it from the parameters" if first else "the log is one short stretch"
    untested = [f"{listed(hidden)} ({why})"] if hidden else []
    return tests, notices, (*sources[0].untested(), *untested)


def _held(
    problem: Problem, data: BaseSystem, experiment: Experiment
) -> tuple[Float[Array, "p v"], Float[Array, "p"], tuple[Parameter, ...], tuple[Notice, ...]]:
    """Standard parameters are S y + c: y those seen, or one less where a weighed mass checks the efforts."""
    gains = experiment.gains
    if gains is None or gains.scale is None or not gains.checks_only:
        return data.S, data.base.c, data.system.parameters, ()
    weighed = weigh(problem.mechanism, data, gains.scale)
    chi_0, Z, given = weighed.solved(np.linalg.norm(data.system.factor().W, axis=0))
    seen = tuple(one for k, one in enumerate(data.system.parameters) if k != given)
    return data.S @ Z, data.base.c + data.S @ chi_0, seen, weighed.notices()


def _tested_system(
    problem: Problem,
    own: Float[Array, "p v"],
    c: Float[Array, "p"],
    seen: tuple[Parameter, ...],
    sources: Sequence[SuspectRows],
) -> System:
    """The fit's equations with test columns behind its parameters."""
    p, v, t = len(problem.parameters), own.shape[1], sources[0].n_tests
    tests = tuple(Parameter(f"test {i + 1}", "test", "", "", "test") for i in range(t))
    wide = System((*problem.parameters, *tests), row_groups(problem, sources))
    S = np.zeros((p + t, v + t))
    S[:p, :v], S[p:, v:] = own, np.eye(t)
    return mapped_blocks(wide, S, np.append(c, np.zeros(t)), (*seen, *tests))


def _weights(system: System, data: BaseSystem, chi: Float[Array, "p"]) -> Float[Array, "g"]:
    """1 over the residual's rms of each effort, whatever weights the estimator gave."""
    squares: dict[str, float] = {}
    rows: dict[str, int] = {}
    for group in data.source.groups:
        own = chi[group.columns]
        sums = sum(float(np.sum((block.Y - block.W @ own) ** 2)) for block in group.blocks)
        # Residuals of a perfect simulation are rounding: no reason to divide by them.
        floor = _PERFECT**2 * sum(float(np.sum(block.Y**2)) for block in group.blocks)
        squares[group.name] = squares.get(group.name, 0.0) + max(sums, floor, np.finfo(float).tiny)
        rows[group.name] = rows.get(group.name, 0) + group.n_rows
    return np.array([np.sqrt(rows[g.name] / squares[g.name]) for g in system.groups])


class _Relevance:
    """Whether a verdict is about something that matters for this job."""

    def __init__(self, problem: Problem) -> None:
        self.dt = min(source.dt for source in problem.sources)
        joints = problem.mechanism.joint_of_coordinate
        names = problem.logs[0].position_names
        self.zero = {n: _ZERO_RAD if n in joints and joints[n].is_angle(n) else _ZERO_METRES for n in names}

    def __call__(self, verdict: Verdict) -> bool:
        test, size = verdict.suspect.test, float(np.max(np.abs(verdict.size)))
        if test == "delay":
            return size > _DELAY_SAMPLES * self.dt
        if test == "gain":
            return size > _GAIN
        if test == "zero":
            return bool(self.zero[verdict.suspect.about] < size < _ZERO_MOST)
        return verdict.explains > _EXPLAINED and verdict.share > _NOTICEABLE


def _row(verdict: Verdict, warned: bool) -> ResidualTest:
    one = len(verdict.size) == 1
    half = float(student_t95(np.array([verdict.dof]))[0] * verdict.sigma[0])
    value = float(verdict.size[0])
    return ResidualTest(
        test=verdict.suspect.test,
        about=verdict.suspect.about,
        value=value if one else float(verdict.explains),
        unit=verdict.suspect.unit if one else "1",
        ci95=(value - half, value + half) if one else None,
        p_value=verdict.p_value,
        warned=warned,
    )


def _gathered(notices: Sequence[Notice]) -> list[Notice]:
    """One notice a code, so that a poor model does not bury the rest of the list."""
    found: dict[str, Notice] = {}
    for one in notices:
        before = found.get(one.code)
        found[one.code] = one if before is None else replace(before, text=f"{before.text}; {one.text}")
    return list(found.values())


def _notice(verdict: Verdict, problem: Problem, shared: bool) -> Notice:
    suspect, size = verdict.suspect, float(verdict.size[0])
    half = float(student_t95(np.array([verdict.dof]))[0] * verdict.sigma[0])
    if suspect.test == "delay":
        return _delay(suspect, size, half, min(source.dt for source in problem.sources), shared)
    if suspect.test == "gain":
        return _gain(suspect, size, half)
    if suspect.test == "zero":
        joints = problem.mechanism.joint_of_coordinate
        angle = suspect.about in joints and joints[suspect.about].is_angle(suspect.about)
        shown = (
            f"{np.rad2deg(size):.2g} +- {np.rad2deg(half):.2g} degrees"
            if angle
            else f"{1e3 * size:.2g} +- {1e3 * half:.2g} mm"
        )
        return Notice(
            "zero-offset",
            f"the zero of '{suspect.about}' seems off by {shown}: the residuals follow the derivative of the"
            " model with respect to it",
            f"check the joint's calibration; an `offset: {size:.3g}` of its column adds this to its readings",
        )
    percent = 100.0 * (1.0 - np.sqrt(1.0 - min(verdict.explains, 1.0)))
    if suspect.test == "load":
        return Notice(
            "friction-load",
            f"the residual of '{suspect.about}' grows with the load, against the motion: a term |effort|"
            f" sign(v) of {size:.2g} takes {percent:.0f} % off its rms",
            "add the drive term Fl (load-dependent friction) there, and compare on a held-out log",
        )
    return Notice(
        "friction-speed",
        f"the residual of '{suspect.about}' still depends on its speed: better friction terms take"
        f" {percent:.0f} % off its rms",
        "add drive terms there (Fr: sub-linear in speed, Fk: Stribeck), and compare on a held-out log",
    )


def _delay(suspect: Suspect, size: float, half: float, dt: float, shared: bool) -> Notice:
    who = "the efforts come" if suspect.about == ALL else f"the effort of '{suspect.about}' comes"
    late = "later" if size > 0 else "earlier"
    than = "the others" if shared and suspect.about != ALL else "the positions say"
    return Notice(
        "delay",
        f"{who} {1e3 * abs(size):.2g} +- {1e3 * half:.2g} ms ({abs(size) / dt:.2g} samples) {late} than"
        f" {than}",
        "align the columns in time (shift them by that much), or log both from one clock; inertias take up a"
        " delay silently",
    )


def _gain(suspect: Suspect, size: float, half: float) -> Notice:
    shown, large = f"{100 * abs(size):.1f} +- {100 * half:.1f} %", size > 0
    if suspect.about == ALL:
        text = f"a known mass says that all efforts are {shown} too {'large' if large else 'small'}"
    elif abs(size) > _NONSENSE:
        text = f"the effort of '{suspect.about}' does not belong to this model: off by {100 * size:.0f} %"
    else:
        text = (
            f"the effort of '{suspect.about}' is {shown} {'larger' if large else 'smaller'} than known masses"
            " and the parameters that it shares with other efforts allow"
        )
    return Notice(
        "gain",
        text,
        "check its calibration, unit, sign and column, and where the sensor is"
        if suspect.about in COMPONENTS
        else "check the drive gain (gear ratio, torque constant), its sign and its column, and the geometry"
        " of the description; or let gains be found from runs with a weighed payload: gains: all",
    )


def _starts(problem: Problem) -> dict[str, list[float]]:
    """Time at which each run of each log begins, in [s]."""
    return {
        source.motion.log.name: [float(source.motion.log.t[start]) for start, _ in source.pieces()]
        for source in problem.sources
    }


def _words(tests: Sequence[ResidualTest], untested: Sequence[str]) -> dict[str, str]:
    """The tests in words, and what they do not look at."""
    warned = [f"{one.test} of {one.about}" for one in tests if one.warned]
    said = f"accused: {', '.join(warned)}" if warned else "nothing found"
    rest = f"; not tested: {'; '.join(untested)}" if untested else ""
    return {"residual tests": f"{len(tests)} tests, {said}{rest}"}
