"""Results of residual tests in words: what is off, by how much, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.base.grouping import listed
from dynid.checks.fault_columns import ALL, TURNED, Suspect, delay_change, zero_words
from dynid.common.change import rounded
from dynid.common.notices import Notice, notice
from dynid.mechanism.description import current, unknown_change, unknown_entry
from dynid.mechanism.drive_terms import FRICTION_SETS, LOADED, PLAIN_FRICTION
from dynid.mechanism.force_sensor import COMPONENTS
from dynid.problem import Problem

_NONSENSE = 0.5
# Single terms that follow the speed, to be added to plain friction.
_OVER_SPEED = tuple(x[-1] for x in FRICTION_SETS if len(x) == len(PLAIN_FRICTION) + 1 and x[-1] not in LOADED)


def suspect_notice(suspect: Suspect, problem: Problem, delays: Mapping[str, float]) -> Notice:
    """The warning about one flagged suspect, with those that cannot be separated from it.

    Args:
        delays: Of all efforts that are flagged, in [s].
    """
    said = _plain_notice(suspect, problem, delays)
    return replace(said, text=said.text + confounded(suspect))


def _plain_notice(suspect: Suspect, problem: Problem, delays: Mapping[str, float]) -> Notice:
    size = float(suspect.size[0])
    half = suspect.half
    if suspect.test == "delay":
        return _delay(suspect, size, half, problem, delays)
    if suspect.test == "gain":
        return gain_notice(suspect, size, half, problem.logs[0].effort_names)
    if suspect.test == "zero":
        shown = zero_words(size, suspect.unit, half)
        number = problem.logs[0].position_names.index(suspect.about) + 1
        change = {"columns": {f"q_{number}": {"offset": rounded(size, 3)}}}
        return notice("zero-offset", joint=suspect.about, shown=shown, change=change)
    if suspect.test == "dimension":
        described = current(problem.mechanism, suspect.about)
        return notice(
            "dimension-off",
            "residual",
            name=suspect.about,
            value=described + size,
            described=described,
            half=half,
            entry=unknown_entry(suspect.about),
            change=unknown_change(suspect.about),
            unit=suspect.unit,
        )
    if suspect.test in TURNED:
        return _turned(suspect)
    percent = 100.0 * (1.0 - np.sqrt(1.0 - min(suspect.explains, 1.0)))
    if suspect.test == "load":
        return notice("friction-load", joint=suspect.about, size=size, percent=percent)
    terms = problem.mechanism.drive.get(suspect.about, PLAIN_FRICTION)
    wanted = (*terms, *[symbol for symbol in _OVER_SPEED if symbol not in terms][:1])
    entry = f"`drive: {{{suspect.about}: [{', '.join(wanted)}]}}`"
    return notice("friction-speed", joint=suspect.about, percent=percent, entry=entry)


def _turned(suspect: Suspect) -> Notice:
    """Warning about the mounting of a force sensor; that about gravity needs a fit of its own."""
    return notice("mounting-off", "residual", degrees=np.rad2deg(float(np.linalg.norm(suspect.size))))


def _delay(
    suspect: Suspect, size: float, half: float, problem: Problem, delays: Mapping[str, float]
) -> Notice:
    subject = "the efforts are" if suspect.about == ALL else f"the effort of '{suspect.about}' is"
    return notice(
        "delay",
        who=subject,
        size=1e3 * abs(size),
        half=1e3 * half,
        samples=abs(size) / min(source.dt for source in problem.sources),
        late="later" if size > 0 else "earlier",
        reference="the other efforts" if ALL in delays and suspect.about != ALL else "the positions",
        change=delay_change(delays, problem.logs[0].effort_names),
    )


def gain_notice(suspect: Suspect, size: float, half: float, efforts: Sequence[str] = ()) -> Notice:
    """An effort that is too large or too small, with its 95 % interval."""
    shown, large = f"{100 * abs(size):.1f} +- {100 * half:.1f} %", size > 0
    if suspect.about == ALL:
        text = f"compared with a known mass, all efforts are {shown} too {'large' if large else 'small'}"
    elif abs(size) > _NONSENSE:
        text = f"the effort of '{suspect.about}' does not fit this model: off by {100 * size:.0f} %"
    else:
        text = (
            f"the effort of '{suspect.about}' is {shown} {'larger' if large else 'smaller'} than known masses"
            " and the other efforts suggest"
        )
    if suspect.about in COMPONENTS:
        return notice("gain", "sensor", found=text)
    if suspect.about in efforts and abs(size) <= _NONSENSE:
        number = efforts.index(suspect.about) + 1
        change = {"columns": {f"tau_{number}": {"scale": rounded(1.0 / (1.0 + size), 4)}}}
        return notice("gain", "single", found=text, change=change)
    return notice("gain", found=text)


def confounded(suspect: Suspect) -> str:
    """Suspects that these data do not separate from this one, as the end of a text."""
    alike = [other.words for other in suspect.alike]
    return f"; cannot be separated with this motion from {listed(alike)}" if alike else ""


def inseparable(suspects: Iterable[Suspect]) -> str:
    """Suspects that these data do not separate, in groups."""
    groups: list[dict[tuple[int, ...], Suspect]] = []
    for suspect in suspects:
        joined = {other.columns: other for other in (suspect, *suspect.alike)} if suspect.alike else {}
        apart = []
        for group in groups:
            if joined.keys() & group.keys():
                joined |= group
            else:
                apart.append(group)
        groups = [*apart, joined] if joined else apart
    shown = [by_test(tuple(group.values())) for group in groups]
    return f"; cannot be separated with this motion: {'; '.join(shown)}" if shown else ""


def by_test(suspects: Sequence[Suspect]) -> str:
    """Each test once, with what it is about."""
    tests = dict.fromkeys(suspect.test for suspect in suspects)
    return ", ".join(
        f"{t} of {listed([suspect.about for suspect in suspects if suspect.test == t])}" for t in tests
    )
