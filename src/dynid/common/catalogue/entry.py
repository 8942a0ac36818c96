"""What one warning is: severity, meaning, and the text that values are filled into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from string import Formatter


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
    """

    severity: Severity
    meaning: str
    template: Template
    variants: Mapping[str, Template] = field(default_factory=dict)


def note(meaning: str, text: str, remedy: str = "", **variants: tuple[str, str]) -> Entry:
    """Good to know; arguments as for `Entry`, with (text, remedy) of each variant by name."""
    return _entry(Severity.NOTE, meaning, text, remedy, variants)


def care(meaning: str, text: str, remedy: str = "", **variants: tuple[str, str]) -> Entry:
    """Check before use; arguments as for `note`."""
    return _entry(Severity.CARE, meaning, text, remedy, variants)


def stop(meaning: str, text: str, remedy: str = "", **variants: tuple[str, str]) -> Entry:
    """Do not use the result; arguments as for `note`."""
    return _entry(Severity.STOP, meaning, text, remedy, variants)


def _entry(
    severity: Severity, meaning: str, text: str, remedy: str, variants: Mapping[str, tuple[str, str]]
) -> Entry:
    others = {name: Template(*wording) for name, wording in variants.items()}
    return Entry(severity, meaning, Template(text, remedy), others)
