"""Drive terms that all runs of a kind of robot share.

Each log alone may favour other friction terms. Their parameters could not be compared: `Fv` beside `Fr` is
another quantity than `Fv` alone, and a trend over time would show the change of terms. So a few logs of each
kind of robot are asked, by held-out error as in an identification of their own. The most frequent terms are
those of all runs; of two equally frequent sets the smaller. The folder of the campaign keeps them: logs that
arrive later are identified with the same terms.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dynid.campaign.file import Run
from dynid.campaign.work import identified
from dynid.common.engine import Progress, completed
from dynid.common.errors import DynidError, InputError
from dynid.report.output import replace_file

FILE = "settings.json"
_ASKED = 5  # logs of a kind of robot whose choices are counted
_JOINED = {"estimator": "wls"}  # others need more than the factors of their logs


class Shared(NamedTuple):
    """Settings that all runs of a kind of robot share.

    Attributes:
        robot, variant: The kind: name of the description, and of the settings if there are several.
        settings: Keys of an experiment.
        favoured_by, asked: Number of logs that favour them, of those that were asked.
    """

    robot: str
    variant: str
    settings: Mapping[str, Any]
    favoured_by: int
    asked: int

    @property
    def words(self) -> str:
        """In a line, for people."""
        drive = self.settings.get("drive", ())
        if isinstance(drive, Mapping):
            drive = [f"{owner}: {' '.join(terms)};" for owner, terms in drive.items()]
        name = " ".join(part for part in (self.robot, self.variant) if part)
        terms = " ".join(drive) or "those of the description"
        votes = f"favoured by {self.favoured_by} of {self.asked} logs"
        return f"drive terms of all runs of {name}: {terms} ({votes})"


def shared_settings(
    runs: Sequence[Run],
    folder: Path,
    jobs: int | None,
    cluster: str | None,
    progress: Progress | None = None,
) -> tuple[tuple[Run, ...], tuple[Shared, ...]]:
    """The runs with the settings that all of their kind share, and these; new ones are written.

    Args:
        runs: All runs of a campaign.
        folder: Of the campaign, with the choices of an earlier call.
        jobs, cluster: Where choices are computed, as for `completed`.
        progress: Called with a text and the fraction of logs that were asked.
    """
    runs = _prepared(runs)
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        if not run.wrong:
            kinds.setdefault(_kind(run), []).append(run)
    file = folder / FILE
    known = _read(file)
    new = {kind: _spread(kinds[kind]) for kind in kinds if kind not in known and _open(kinds[kind])}
    votes = _votes([run for members in new.values() for run in members], jobs, cluster, progress)
    for kind, members in new.items():
        cast = [votes[run.name] for run in members if run.name in votes]
        if cast:  # none: no log could be read, others may arrive
            known[kind] = _counted(members[0], cast)
    if new:
        text = json.dumps({kind: shared._asdict() for kind, shared in known.items()}, indent=2)
        replace_file(file, text.encode())
    return _decided(runs, known), tuple(known[kind] for kind in kinds if kind in known)


def decided(runs: Iterable[Run], folder: Path) -> tuple[Run, ...]:
    """The runs with the settings that earlier calls have decided."""
    return _decided(_prepared(runs), _read(folder / FILE))


def _prepared(runs: Iterable[Run]) -> list[Run]:
    return [_with(run, _JOINED) if run.together else run for run in runs]


def _decided(runs: Iterable[Run], known: Mapping[str, Shared]) -> tuple[Run, ...]:
    return tuple(_with(run, known[_kind(run)].settings) if _kind(run) in known else run for run in runs)


def _read(file: Path) -> dict[str, Shared]:
    if not file.is_file():
        return {}
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
        return {kind: Shared(**entry) for kind, entry in entries.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"cannot be read: {error}", file=file, remedy="delete it: the drive terms are then chosen again"
        ) from None


def _kind(run: Run) -> str:
    """What runs have in common that are compared with each other."""
    return f"{run.variant} {run.kind}".strip()


def _open(runs: Sequence[Run]) -> bool:
    """Whether there is something to share, and to choose."""
    given = runs[0].settings
    return len(runs) > 1 and given.get("auto") != "off" and "drive" not in given


def _spread(runs: Sequence[Run]) -> list[Run]:
    """At most `_ASKED` of them, evenly over their order."""
    count = min(_ASKED, len(runs))
    return [runs[i * len(runs) // count] for i in range(count)]


def _with(run: Run, settings: Mapping[str, Any]) -> Run:
    """The run with further settings; its own have precedence."""
    return replace(run, settings={**settings, **run.settings})


def _votes(
    runs: Sequence[Run], jobs: int | None, cluster: str | None, progress: Progress | None
) -> dict[str, dict[str, Any]]:
    """Name of a run -> the settings that its logs favour; runs that fail are missing."""
    votes: dict[str, Any] = {}

    def left() -> list[Run]:
        return [run for run in runs if run.name not in votes]

    for run, vote in completed(favoured_settings, left, jobs, cluster):
        votes[run.name] = vote
        if progress is not None:
            progress(f"drive terms: {len(votes)} of {len(runs)} logs asked", len(votes) / len(runs))
    return {name: vote for name, vote in votes.items() if isinstance(vote, dict)}


def _counted(run: Run, votes: Sequence[Mapping[str, Any]]) -> Shared:
    counts = Counter(json.dumps(vote, sort_keys=True) for vote in votes)
    text = min(counts, key=lambda text: (-counts[text], len(text), text))
    return Shared(Path(run.robot).stem, run.variant, json.loads(text), counts[text], len(votes))


def favoured_settings(run: Run) -> dict[str, Any] | None:
    """The drive terms that the logs of a run favour, as in an experiment file; None: they have no vote.

    A log has none if it fails, if its result is bad (a part of it may be broken, and the fleet does not use
    this result either), or if it is too short to choose. Terms of the description are written out: otherwise
    each run could still choose others.
    """
    from dynid.experiment.experiment import experiment_from
    from dynid.mechanism.load import load_robot
    from dynid.problem import as_asked

    try:
        estimate, failure = identified(run)
        asked = experiment_from({**run.settings, "robot": run.robot, "logs": []})
        robot = as_asked(load_robot(asked.robot), asked)
    except DynidError:  # the run itself will be set aside with this reason
        return None
    too_short = any(warning.code == "nothing-chosen" for warning in estimate.warnings)
    if failure or too_short or estimate.verdict.level == "bad":
        return None
    own = {owner: list(terms) for owner, terms in robot.drive.items()}
    drive = estimate.provenance["options"].get("drive", own)
    return {"drive": drive} if drive else {}
