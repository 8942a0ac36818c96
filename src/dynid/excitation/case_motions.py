"""CaseMotions: motions that no motor leads, which the case of a robot designs and simulates itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from dynid.case import case_of
from dynid.common.notices import Notice
from dynid.experiment.tasks import ExciteSettings
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.projection.model import MODELS


@runtime_checkable
class CaseDesign(Protocol):
    """The motions that the search of a case found; its own class has more."""

    @property
    def settings(self) -> ExciteSettings:
        """As requested."""

    @property
    def criterion(self) -> float:
        """Of the best start."""

    @property
    def larger_is_better(self) -> bool:
        """Whether more of the criterion is better."""

    @property
    def starts(self) -> tuple[Any, ...]:
        """All starts."""

    @property
    def best(self) -> int:
        """Number of the start that was taken."""

    @property
    def limits(self) -> tuple[Any, ...]:
        """Every limit with its margin, a `LimitUse` each."""

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the files of `dynid excite`."""


@runtime_checkable
class CaseSimulated(Protocol):
    """Simulated motions of a case, before sensors; its own class has more."""

    @property
    def values(self) -> Mapping[str, float]:
        """True standard parameters by name, SI."""

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Warnings."""

    def log(self, seed: Any = None, name: str = "simulated") -> Log:
        """A recording; another seed gives other noise on the same motions."""


@dataclass(frozen=True)
class CaseMotions:
    """How a case designs, simulates and rehearses its motions.

    Attributes:
        subject: What they are, for refusals of the options `unused` of a search, and `unused_engine` of a
            simulation.
        search: As `dynid.excitation.excite.excite_series`.
        file_names: That a search writes; files: its outcome -> name -> text.
        summary: The outcome in sentences; headline: level of severity, and its text.
        simulate: Robot and settings -> what `dynid.simulation.simulation.simulate` gives, in another form.
        write: That, and the path of the log -> the files written; words, noise: what it is, and its sensors.
        rehearse: A rehearser, the number of a log, its entry and a seed -> as `simulate`.
        demo: Robot, its built-in experiment and a seed -> a log to identify from, and one to validate.
    """

    subject: str
    unused: tuple[str, ...]
    unused_engine: tuple[str, ...]
    search: Callable[..., CaseDesign]
    file_names: tuple[str, ...]
    files: Callable[[Any], dict[str, str]]
    summary: Callable[[Any], str]
    headline: Callable[[], tuple[str, str]]
    simulate: Callable[..., CaseSimulated]
    write: Callable[[Any, Path], tuple[Path, Path]]
    words: Callable[[Any], Mapping[str, str]]
    noise: Callable[[Any], Mapping[str, str]]
    rehearse: Callable[..., Any]
    demo: Callable[..., tuple[Log, Log]]


def case_motions(mechanism: Mechanism) -> CaseMotions | None:
    """How motions of a robot are designed and simulated; None: its motors lead it."""
    return case_of(MODELS[mechanism.model]).motions(mechanism)
