"""Messages to the user that do not stop the work: the `warnings` of a result.

Refusals that a user may override: doubts about data that can still be computed with.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from dynid.common.catalogue import CATALOGUE, RANKS, STAGES, Severity, codes_with
from dynid.common.change import Change, in_remedy, joined
from dynid.common.errors import InputError

_ORDER = (Severity.NOTE, Severity.CARE, Severity.STOP)
LEVELS = ("good", "care", "bad")  # of a result with warnings of these severities
SEVERITIES = dict(zip(LEVELS, _ORDER, strict=True))
_RANK = {code: RANKS.index(entry.rank) for code, entry in CATALOGUE.items()}
_UNIT, _INPUT, _DECLARATION, _USE = map(RANKS.index, ("unit", "input", "declaration", "use"))
_SIZES = codes_with("size")
SYMPTOMS = frozenset(code for code, entry in CATALOGUE.items() if entry.rank in ("joint error", "symptom"))
_ASKED = "purpose-not-met"  # by the user: never a mere consequence


@dataclass(frozen=True)
class Notice:
    """One warning: a stable code, what was found (with values), what to do about it, and its severity.

    `change` is what the remedy would change in the experiment, where the finding gives its numbers.
    """

    code: str
    text: str
    remedy: str = ""
    severity: Severity = Severity.CARE
    change: Change = field(default_factory=dict, hash=False)

    @property
    def level(self) -> str:
        """What it makes of a result: `good`, `care` or `bad`."""
        return LEVELS[_ORDER.index(self.severity)]


def notice(code: str, variant: str = "", /, *, change: Change | None = None, **values: object) -> Notice:
    """The warning with this code of the catalogue.

    Args:
        code: Of the catalogue.
        variant: Name of another wording of the same finding.
        change: What the remedy would change in the experiment: `{change}` of its template.
        values: Of the other fields of text and remedy.
    """
    entry, change = CATALOGUE[code], change or {}
    template = entry.variants[variant] if variant else entry.template
    remedy = template.remedy.format(change=in_remedy(change), **values)
    return Notice(code, template.text.format(**values), remedy, entry.severity, change)


def eased(item: Notice) -> Notice:
    """The same finding where it is too small to stop the use of a result."""
    return replace(item, severity=min(item.severity, Severity.CARE, key=_ORDER.index))


def at_level(item: Notice, level: str) -> Notice:
    """The same finding with the severity that makes a result `good`, `care` or `bad`."""
    return replace(item, severity=SEVERITIES[level])


def cause_rank(code: str) -> int:
    """Where a code stands among the others: causes before what they cause."""
    return _RANK.get(code, len(RANKS) - 1)


def by_severity(notices: Iterable[Notice]) -> list[Notice]:
    """The most severe first; of one severity causes before symptoms, otherwise in their order."""
    return sorted(notices, key=lambda finding: (-_ORDER.index(finding.severity), cause_rank(finding.code)))


@runtime_checkable
class Coded(Protocol):
    """A notice, or what was made of one."""

    @property
    def code(self) -> str:
        """Of the catalogue."""

    @property
    def severity(self) -> Severity:
        """How bad it is."""


def spoils_all(cause: Coded) -> bool:
    """Whether a fit says nothing about anything else: units, columns, gravity or branch are wrong."""
    return cause.severity is Severity.STOP and cause_rank(cause.code) <= _INPUT


def follows(follower: Coded, cause: Coded) -> bool:
    """Whether a finding is likely a consequence of another one, so that it needs no remedy of its own."""
    if follower.code in (cause.code, _ASKED) or follower.code in STAGES["Description"]:
        return False  # the description is read before any log
    if spoils_all(cause) or (cause.severity is Severity.STOP and cause.code == "no-result"):
        same = _RANK[cause.code] == _UNIT and follower.code in _SIZES
        return cause_rank(follower.code) > _DECLARATION or same
    caused = SYMPTOMS - {"joint-error"}
    return cause.code not in SYMPTOMS and cause_rank(cause.code) < _USE and follower.code in caused


def gathered(notices: Iterable[Notice]) -> list[Notice]:
    """One notice per code, with texts and changes of all, the worst first: no notice hides another."""
    by_code: dict[str, list[Notice]] = {}
    for item in notices:
        by_code.setdefault(item.code, []).append(item)
    ordered = [by_severity(same) for same in by_code.values()]
    return [_one(same) for same in ordered]


def _one(same: Sequence[Notice]) -> Notice:
    """Notices of one code as one; of two that change the same column, the first counts."""
    first, change = same[0], same[0].change
    for item in same[1:]:
        change = joined(change, item.change) or change
    shown = next((item for item in same if item.change), first)
    remedy = shown.remedy.replace(in_remedy(shown.change), in_remedy(change)) if change else first.remedy
    return replace(first, text=_joined([item.text for item in same]), remedy=remedy, change=change)


def _joined(texts: Iterable[str]) -> str:
    """Texts about several joints as one: what differs from the first one in name and numbers is listed."""
    first, *others = dict.fromkeys(texts)
    alike = [_difference(first, other) for other in others]
    listed = [pair for pair in alike if pair is not None]
    full = [text for text, pair in zip(others, alike, strict=True) if pair is None]
    names = ", ".join(f"{name} ({value})" if value else name for name, value in listed)
    return "; ".join([first, *([f"likewise {names}"] if names else []), *full])


def _difference(first: str, other: str) -> tuple[str, str] | None:
    """Name in quotes and figure of a text that differs from another in these only; None: in more."""
    a, b = first.split(" "), other.split(" ")
    places = [i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
    if len(a) != len(b) or not places or not b[places[0]].startswith("'"):
        return None
    if not all(any(letter.isdigit() for letter in b[i]) for i in places[1:]):
        return None
    # A figure has its unit behind it; what is in brackets repeats it in another one.
    figure = " ".join(b[places[1] : places[-1] + 2]) if places[1:] else ""
    return b[places[0]], figure.partition(" (")[0].rstrip(",;:")


def severity_of(code: str) -> Severity:
    """The severity of a code; of one that is not in the catalogue (another version wrote it), care."""
    return CATALOGUE[code].severity if code in CATALOGUE else Severity.CARE


_FORCED: ContextVar[bool] = ContextVar("refusals overridden", default=False)


def doubt(error: InputError) -> Notice:
    """Refuse the input; where refusals are overridden, return the refusal as a notice instead.

    Only for input that can be used although it is most likely wrong: a swapped column, a wrong unit.
    """
    if not _FORCED.get():
        raise error
    where = ", ".join(part for part in (error.file and _short(error.file), error.place) if part)
    text = f"{where}: {error.text}" if where else error.text
    return replace(notice("forced", text=text), remedy=error.remedy or "")


def refusal_text(finding: Notice) -> str:
    """The refusal in a notice of `doubt`, without the words that it was overridden."""
    return finding.text.removesuffix(notice("forced", text="").text)


@contextlib.contextmanager
def forced(force: bool = True) -> Iterator[None]:
    """Override refusals of doubtful input in this block; they become notices."""
    token = _FORCED.set(force or _FORCED.get())
    try:
        yield
    finally:
        _FORCED.reset(token)


def _short(file: str) -> str:
    """The name of a file without its folders: notices are stored in results, which are sent to others."""
    return file.replace("\\", "/").rpartition("/")[2] or file
