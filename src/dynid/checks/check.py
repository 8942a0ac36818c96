"""Check: a finished fit in, notices out; some also give residual tests, and choices in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dynid.common.notices import Notice
from dynid.statistics.estimate import ResidualTest, Validation

if TYPE_CHECKING:
    from dynid.fit import Fit

# A warning, a test of residuals, or what the data decided: its name and the decision in words.
Answer = Notice | ResidualTest | tuple[str, str]


@dataclass(frozen=True, eq=False)
class Finished:
    """What a check can read: a finished fit, and the answers of the checks before this one.

    Attributes:
        fit: Parameters and everything they come from.
        validate: Predicts the logs that were not used, once.
    """

    fit: Fit
    validate: Callable[[], tuple[Validation, ...]] = tuple
    notices: tuple[Notice, ...] = ()
    tests: tuple[ResidualTest, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)

    @property
    def validation(self) -> tuple[Validation, ...]:
        """How well logs that were not used are predicted."""
        return self.validate()

    def answered(self, answers: Iterable[Answer]) -> Finished:
        """With the answers of one more check."""
        given = list(answers)
        return replace(
            self,
            notices=(*self.notices, *(answer for answer in given if isinstance(answer, Notice))),
            tests=(*self.tests, *(answer for answer in given if isinstance(answer, ResidualTest))),
            choices={**self.choices, **dict(answer for answer in given if isinstance(answer, tuple))},
        )


Check = Callable[[Finished], Iterable[Answer]]


def run_checks(finished: Finished, checks: Iterable[Check]) -> Finished:
    """Answer all questions in order; a check raises `InputError` where no result would make sense."""
    for check in checks:
        finished = finished.answered(check(finished))
    return finished
