"""What one warning is: severity, meaning, the text that values are filled into, and what else depends on it.

All that the code decides by the kind of a warning is data of its entry: its rank among the causes, its
traits, its name as a suspect. A new warning is known to all of them by this entry alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from string import Formatter
from typing import Literal, get_args


class Severity(StrEnum):
    """What a warning means for the use of the result."""

    NOTE = "note"
    CARE = "care"
    STOP = "stop"


MEANING = {
    Severity.NOTE: "good to know",
    Severity.CARE: "check before use",
    Severity.STOP: "do not use the result",
}

# What explains most comes first.
Rank = Literal[
    "unit",  # of positions, or a column that never changes: it explains the size of the values too
    "input",  # units, columns, gravity or branch: the input is not what the description or the file says
    "no result",  # or one that contradicts what is asked
    "declaration",  # a payload, a known value or a frame is not as declared
    "part",  # a scale, one dimension, one part of the logs
    "model",  # a term is missing
    "signal",  # one column, drive or joint is slightly off
    "data",  # what the data cannot show
    "joint error",  # a symptom, joint by joint
    "symptom",
    "use",  # what is asked of the result
    "other",
]
RANKS: tuple[Rank, ...] = get_args(Rank)
Trait = Literal[
    "wrong input",  # as bad as the predictions that it spoils
    "size",  # values too large for a joint: a wrong unit explains them
    "log",  # a fault of a log, although the fit finds it: listed with the logs
    "description",  # one wrong quantity of the description, seen by a linear test: refits decide which
    "linear",  # found by a linear test: a refit that finds the cause replaces it
    "searched",  # its size is searched by refits, where a linear test doubts it
    "resembles",  # what one wrong quantity of the description may resemble: refits decide
    "doubt",  # a reason to fit the logs with other descriptions
    "positions",  # of measured positions: what it leaves is no part of the efforts
    "absorbed",  # a correction whose absence negative masses can absorb
    "parameters",  # of single parameters, and of how they were found: not of the logs
    "impossible",  # the parameters are not physically consistent
    "unknown",  # the data do not determine all parameters
    "samples lost",  # a log may lose samples, a trajectory may not
    "channel",  # a wrong or missing channel of a log: looked at before what a fit suggests
    "motion",  # what the motion does not show, as joints that are not excited
    "last",  # of the description, or what was not tested: after all findings of logs
]


@dataclass(frozen=True)
class Template:
    """Text and remedy, with `str.format` fields."""

    text: str
    remedy: str = ""

    @property
    def fields(self) -> set[str]:
        """Names of the values that are filled in."""
        parts = [*Formatter().parse(self.text), *Formatter().parse(self.remedy)]
        return {name for _, name, _, _ in parts if name}


@dataclass(frozen=True)
class Entry:
    """One code of the catalogue.

    Attributes:
        severity: Of the notices with this code; a small finding may be eased to `care`.
        meaning: One line of Markdown for the reference page, with links relative to `docs/reference`.
        template: Usual wording.
        variants: Other wordings of the same finding, by name.
        rank: Causes come before what they cause; of one rank, the order of the warnings is kept.
        traits: What the verdict, the report and the search for causes ask of it.
        suspect: What a linear test of the residuals suspects, in words.
        corrections: Linear test of the description -> the correction that it suggests, in words.
    """

    severity: Severity
    meaning: str
    template: Template
    variants: Mapping[str, Template] = field(default_factory=dict)
    rank: Rank = "other"
    traits: tuple[Trait, ...] = ()
    suspect: str = ""
    corrections: Mapping[str, str] = field(default_factory=dict)


def _entry(
    severity: Severity,
    meaning: str,
    text: str,
    remedy: str = "",
    *,
    rank: Rank = "other",
    traits: tuple[Trait, ...] = (),
    suspect: str = "",
    corrections: Mapping[str, str] | None = None,
    **variants: tuple[str, str],
) -> Entry:
    """Arguments as for `Entry`, with (text, remedy) of each variant by name."""
    others = {name: Template(*wording) for name, wording in variants.items()}
    return Entry(severity, meaning, Template(text, remedy), others, rank, traits, suspect, corrections or {})


note = partial(_entry, Severity.NOTE)
care = partial(_entry, Severity.CARE)
stop = partial(_entry, Severity.STOP)
