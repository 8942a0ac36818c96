"""Check: a finished fit in, notices out; some also give residual tests, and choices in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dynid.common.notices import Notice
from dynid.statistics.estimate import ResidualTest, Validation

if TYPE_CHECKING:
    from dynid.fit import Fit


@dataclass(frozen=True, eq=False)
class Finished:
    """What a check can read.

    Attributes:
        fit: Parameters and everything they come from.
        validate: Predicts the logs that were not used, once.
        notices: Of the checks before this one.
    """

    fit: Fit
    validate: Callable[[], tuple[Validation, ...]] = tuple
    notices: tuple[Notice, ...] = ()

    @property
    def validation(self) -> tuple[Validation, ...]:
        """How well logs that were not used are predicted."""
        return self.validate()


@dataclass(frozen=True, eq=False)
class Found:
    """What checks found: warnings, what the data decided in words, and tests of residuals."""

    notices: tuple[Notice, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    tests: tuple[ResidualTest, ...] = ()


Check = Callable[[Finished], Found | Iterable[Notice]]


def run_checks(finished: Finished, checks: Iterable[Check]) -> Found:
    """Answer all questions in order; a check raises `InputError` where no result would make sense."""
    notices: tuple[Notice, ...] = ()
    choices: dict[str, str] = {}
    tests: tuple[ResidualTest, ...] = ()
    for check in checks:
        answer = check(replace(finished, notices=(*finished.notices, *notices)))
        found = answer if isinstance(answer, Found) else Found(tuple(answer))
        notices, tests = (*notices, *found.notices), (*tests, *found.tests)
        choices |= found.choices
    return Found(notices, choices, tests)
