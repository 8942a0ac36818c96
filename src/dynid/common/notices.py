"""Messages to the user that do not stop the work: the `warnings` of a result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dynid.common.catalogue import CATALOGUE, Severity

_ORDER = (Severity.NOTE, Severity.CARE, Severity.STOP)
LEVELS = ("good", "care", "bad")  # of a result with warnings of these severities
SEVERITIES = dict(zip(LEVELS, _ORDER, strict=True))


@dataclass(frozen=True)
class Notice:
    """One warning: a stable code, what was found (with values), what to do about it, and its severity."""

    code: str
    text: str
    remedy: str = ""
    severity: Severity = Severity.CARE

    @property
    def level(self) -> str:
        """What it makes of a result: `good`, `care` or `bad`."""
        return LEVELS[_ORDER.index(self.severity)]


def notice(code: str, variant: str = "", /, **values: object) -> Notice:
    """The warning with this code of the catalogue.

    Args:
        code: Of the catalogue.
        variant: Name of another wording of the same finding.
        values: Of the fields of text and remedy.
    """
    entry = CATALOGUE[code]
    template = entry.variants[variant] if variant else entry.template
    return Notice(code, template.text.format(**values), template.remedy.format(**values), entry.severity)


def eased(one: Notice) -> Notice:
    """The same finding where it is too small to stop the use of a result."""
    return replace(one, severity=min(one.severity, Severity.CARE, key=_ORDER.index))


def at_level(one: Notice, level: str) -> Notice:
    """The same finding with the severity that makes a result `good`, `care` or `bad`."""
    return replace(one, severity=SEVERITIES[level])


def by_severity(notices: Iterable[Notice]) -> list[Notice]:
    """The most severe first, otherwise in their order."""
    return sorted(notices, key=lambda one: -_ORDER.index(one.severity))


def severity_of(code: str) -> Severity:
    """The severity of a code; of one that is not in the catalogue (another version wrote it), care."""
    return CATALOGUE[code].severity if code in CATALOGUE else Severity.CARE
