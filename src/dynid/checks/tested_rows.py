"""Rows of a fit with the columns of its suspects, streamed once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from weakref import WeakKeyDictionary

from dynid.checks.check import Finished
from dynid.checks.fault_columns import MOST_SAMPLES, Suspect, suspect_rows
from dynid.checks.pose_columns import STEP
from dynid.checks.residual_tests import BlockPlace, burst_blocks, undisturbed
from dynid.common.arrays import Array, Float, spread
from dynid.common.errors import DynidError
from dynid.common.paged import begun
from dynid.linear_fit import LinearFit
from dynid.mechanism.description import AT, at_places, at_values, current
from dynid.mechanism.like_lengths import like_lengths
from dynid.mechanism.mechanism import Mechanism
from dynid.problem import Problem, row_groups
from dynid.projection.projection import Group

# Dimensions that are tested, and as many at single places; of more, some all over the robot.
_MOST_SIZES = 24

# Rows with test columns behind the standard parameters; what the columns test; what cannot be tested with
# these rows, and why; the number of test columns.
Tested = tuple[tuple[Group, ...], tuple[Suspect, ...], tuple[str, ...], int]
_KNOWN: WeakKeyDictionary[Problem, tuple[bytes, Callable[[], Tested]]] = WeakKeyDictionary()


def tested_rows(problem: Problem, chi: Float[Array, "p"]) -> Tested:
    """Rows of a problem with the columns of all suspects; those of the last estimate are kept.

    Args:
        problem: Mechanism and logs.
        chi: Standard parameters of the estimate, shape (p,), SI.
    """
    begin_rows(problem, chi)
    return _known_rows(problem)


def kept_rows(problem: Problem) -> Tested | None:
    """The same of the last estimate; None where nothing was tested."""
    return _known_rows(problem) if problem in _KNOWN else None


def _known_rows(problem: Problem) -> Tested:
    try:
        return _KNOWN[problem][1]()
    except BaseException:  # begun in vain or interrupted: whoever asks again gets rows of their own
        _KNOWN.pop(problem, None)
        raise


def begin_rows(problem: Problem, chi: Float[Array, "p"]) -> None:
    """Have the same streamed by other threads, unless it is known or begun; this one goes on."""
    if problem in _KNOWN and _KNOWN[problem][0] == chi.tobytes():
        return
    robots = resized_robots(problem.mechanism)
    tested = [
        suspect_rows(problem.mechanism, robots, source, problem.parameters, chi, rows.decimate)
        for source, rows in zip(problem.sources, problem.filters, strict=True)
    ]
    sources, (_, suspects, untested) = [rows for rows, _, _ in tested], tested[0]
    groups = begun(partial(row_groups, problem, sources, most=MOST_SAMPLES // len(sources)))
    count = sources[0].n_added
    _KNOWN[problem] = chi.tobytes(), lambda: (groups.result(), suspects, untested, count)


def begin_tests(finished: Finished) -> None:
    """Have the rows of the tests streamed while other questions are answered."""
    fit = finished.fit
    if not fit.problem.case.is_series or not fit.problem.case.measures_signals:
        return
    calm, burst = beside_bursts(fit.as_linear)
    with suppress(DynidError):  # the tests report it, after the checks before them
        begin_rows(fit.problem, calm if burst else fit.chi)


def beside_bursts(fit: LinearFit) -> tuple[Float[Array, "p"], dict[BlockPlace, float]]:
    """Parameters of the fit without disturbed blocks, shape (p,), SI, and the blocks of a burst."""
    calm = undisturbed(fit)
    return calm, burst_blocks(fit.data.source, calm)


def resized_robots(mechanism: Mechanism) -> dict[str, Mechanism]:
    """Dimension -> the robot in which it is a step larger, everywhere or at one place (`L at arm1`).

    Also lengths that like parts have in common: a radius may be wrong in all legs.
    """
    if mechanism.rebuild is None:
        return {}
    robots: dict[str, Mechanism] = {}
    places: dict[str, Mechanism] = {}
    for name in (*_spread(list(mechanism.geometry)), *_spread(list(like_lengths(mechanism)))):
        try:
            robots[name] = at_values(mechanism, {name: current(mechanism, name) + STEP})
        except DynidError:
            continue
        if name in mechanism.geometry:
            places |= {f"{name}{AT}{place}": x for place, x in at_places(mechanism, robots[name]).items()}
    return {**robots, **{name: places[name] for name in _spread(list(places))}}


def _spread(names: list[str]) -> list[str]:
    """All names; of too many some all over them."""
    return [names[i] for i in spread(len(names), _MOST_SIZES)]
