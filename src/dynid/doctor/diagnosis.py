"""Diagnosis: findings about logs, their channels, delays and excitation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape

from dynid.common.catalogue import Severity, codes_with
from dynid.common.errors import InputError
from dynid.common.notices import Notice, cause_rank, follows, refusal_text, spoils_all
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.statistics.estimate import Estimate, ResidualTest

_ORDER = (Severity.STOP, Severity.CARE, Severity.NOTE)
_COLUMN = re.compile(r"(?<![\w'])(?:dq|ddq|q|tau)_\w+")
_QUOTED = re.compile(r"'([^']+)'")
# A number with its unit, a share, or a count of something: the figure that a finding is about.
_NUMBER = r"[+-]?\d[\d.]*(?:e[+-]?\d+)?"
_FIGURE = re.compile(
    rf"condition number [\w ]*?(?P<plain>{_NUMBER})|{_NUMBER}(?: \+- {_NUMBER})?(?: ?%| times\b"
    r"| (?:samples|gaps|rows|poses|lost|turns|rad/s|m/s|rad|ms|us|s|Hz|N m|N|m|kg m\^2|kg m"
    r"|kg|degrees|of \d+)(?!\w))"
)
_TIME = re.compile(r"t = (-?[\d.]+(?:e[+-]?\d+)?) s")
_MOST_NAMES = 4
_VAGUE, _TESTED = "model-misfit", "zero-offset"  # that something is wrong; one of the findings that say what
_FIRST_OF_FIT = "scale-implausible"  # of the causes that need a fit
_OF_CHANNELS, _OF_MOTION, _LAST = codes_with("channel"), codes_with("motion"), codes_with("last")


@dataclass(frozen=True)
class Finding:
    """One line of the table.

    Attributes:
        severity: `stop`, `care` or `note`.
        code: Of the catalogue of warnings; `refused` for input that cannot be used.
        channel: Columns, joints or efforts concerned; empty: the whole log.
        place: Log, and time, row or column in it.
        value: The figure of the finding, with its unit.
        refused: Whether `identify` refuses the logs because of it.
        consequence: Whether it is likely a consequence of an earlier finding: it needs no remedy of its own.
    """

    severity: Severity
    code: str
    channel: str
    place: str
    value: str
    text: str
    remedy: str
    refused: bool = False
    consequence: bool = False


@dataclass(frozen=True)
class Channel:
    """What one signal of one log is like.

    Attributes:
        name: Column of the log: `q_1`, `dq_1`, `tau_1`.
        owner: Joint or actuator.
        low, high: Smallest and largest value, in `unit`.
        spread: Standard deviation, in `unit`.
        resolution: Smallest step between values, in `unit`; 0: finer than can be seen.
        noise: Standard deviation of white noise, from the high end of the spectrum, in `unit`.
        bandwidth: Frequency below which 99.9 % of the power of the rate is found, in [Hz]; None: at rest.
        top_speed: Of positions, 99.5 % quantile of the speed, per second; None for other signals.
    """

    log: str
    name: str
    owner: str
    unit: str
    low: float
    high: float
    spread: float
    resolution: float
    noise: float
    bandwidth: float | None
    top_speed: float | None = None


@dataclass(frozen=True)
class Recording:
    """One log: its clock and its use.

    Attributes:
        rate: Samples per second on the uniform clock.
        seconds: Duration of all segments together.
        resting: Share of the samples at which no joint moves.
        clock: What was decided about the clock, in words.
        mapping: Signal -> column of the file.
    """

    name: str
    file: str
    samples: int
    segments: int
    rate: float
    seconds: float
    resting: float
    clock: str
    mapping: Mapping[str, str]


@dataclass(frozen=True)
class Excitation:
    """What the logs can show.

    Attributes:
        base: Base parameters of the robot.
        seen: Those that these logs determine.
        condition: Condition number of the scaled regressor.
        unseen: Base parameters that these logs do not determine.
        weak: Determined, but with a sigma above their value.
    """

    base: int
    seen: int
    condition: float
    unseen: tuple[str, ...]
    weak: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the doctor found; the worst first.

    Attributes:
        residual_percent: Of the efforts, not explained by the model; None: no fit.
        tests: Residual tests: delay, gain, zero and others, each with interval and probability.
        excitation: None where there is no fit.
        logs, plans, estimate: What the figures are drawn from; not part of the document.
    """

    robot: str
    findings: tuple[Finding, ...]
    recordings: tuple[Recording, ...] = ()
    channels: tuple[Channel, ...] = ()
    tests: tuple[ResidualTest, ...] = ()
    excitation: Excitation | None = None
    residual_percent: float | None = None
    logs: tuple[Log, ...] = field(default=(), repr=False)
    plans: tuple[MotionPlan, ...] = field(default=(), repr=False)
    estimate: Estimate | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        """One line; `print` shows the findings."""
        from dynid.doctor.document import headline

        return f"Diagnosis({self.robot}: {headline(self)})"

    def __str__(self) -> str:
        """What `dynid check` prints."""
        from dynid.doctor.document import diagnosis_text

        return diagnosis_text(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the same text, all names escaped."""
        return f"<pre>{escape(str(self))}</pre>"

    @property
    def refused(self) -> bool:
        """Whether `identify` refuses these logs."""
        return any(finding.refused for finding in self.findings)

    @property
    def worst(self) -> Severity | None:
        """Severity of the worst finding; None without findings."""
        return min((finding.severity for finding in self.findings), key=_ORDER.index, default=None)

    def codes(self) -> tuple[str, ...]:
        """Codes of all findings."""
        return tuple(finding.code for finding in self.findings)


def finding_of(message: Notice, names: Sequence[str], log: str = "") -> Finding:
    """A notice as a line of the table.

    Args:
        message: With its text.
        names: Joints and efforts that texts may name.
        log: That it belongs to; empty: all.
    """
    if message.code == "forced":  # by the diagnosis itself, not by the user
        return _line(message.severity, "refused", refusal_text(message), message.remedy, names, (log,), True)
    return _line(message.severity, message.code, message.text, message.remedy, names, (log,), False)


def refusal(error: InputError, names: Sequence[str] = ()) -> Finding:
    """An error as a line of the table."""
    places = ((error.file or "").rpartition("/")[2], error.place or "")
    return _line(Severity.STOP, "refused", error.text, error.remedy or "", names, places, True)


def _line(
    severity: Severity,
    code: str,
    text: str,
    remedy: str,
    names: Sequence[str],
    places: Sequence[str],
    refused: bool,
) -> Finding:
    time = _TIME.search(text)
    place = ", ".join(part for part in (*places, f"t = {time[1]} s" if time else "") if part)
    figure = _FIGURE.search(_TIME.sub("", text))
    value = (figure["plain"] or figure[0]) if figure else ""
    return Finding(severity, code, _channels(text, names), place, value, text, remedy, refused)


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once: refusals, then by severity, causes before what they cause; consequences last.

    Wrong units, columns, gravity or branches come even before a refusal, which they may have caused.
    Channels that are silent or wrong come before what a fit of the log suggests. A delay, zero or gain that
    was found comes before samples that were repaired, even if it does not explain everything.
    """
    once = list(dict.fromkeys(findings))
    causes = [entry for entry in once if entry.severity is not Severity.NOTE]
    marked = [replace(entry, consequence=any(_follows(entry, cause) for cause in causes)) for entry in once]

    def place(entry: Finding) -> tuple[int, bool, bool, int, float, bool]:
        vague = entry.code == _VAGUE
        first = 0 if spoils_all(entry) else 1 if entry.refused else 2
        is_note = entry.severity is Severity.NOTE
        rank = _rank(_TESTED if vague else entry.code)
        return first, is_note, entry.consequence, _ORDER.index(entry.severity), rank, vague

    return tuple(sorted(marked, key=place))


def _rank(code: str) -> float:
    """Place among the causes: wrong channels before what a fit suggests, repaired samples after it."""
    if code in _OF_CHANNELS:
        return cause_rank(_FIRST_OF_FIT) - 0.5
    if code in _OF_MOTION:
        return cause_rank("not-excited")
    listed = cause_rank(code) < cause_rank("")
    return cause_rank(code) if listed or code in _LAST else cause_rank(_TESTED) + 0.5


def _follows(entry: Finding, cause: Finding) -> bool:
    """Whether an entry is likely a consequence of another one; a refused log spoils every test of a fit."""
    if cause.refused:
        return not entry.refused and cause_rank(_FIRST_OF_FIT) <= cause_rank(entry.code) < cause_rank("")
    return follows(entry, cause)


def _channels(text: str, names: Sequence[str]) -> str:
    """Columns and joints that a text names, each once."""
    known = set(names)
    named = [*_COLUMN.findall(text), *(quoted for quoted in _QUOTED.findall(text) if quoted in known)]
    if not named:
        words = set(re.findall(r"[\w.-]+", text))
        named = [name for name in names if name in words]
    unique = list(dict.fromkeys(named))
    more = f" and {len(unique) - _MOST_NAMES} more" if len(unique) > _MOST_NAMES else ""
    return ", ".join(unique[:_MOST_NAMES]) + more
