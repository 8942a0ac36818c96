"""Runs that cannot be in one campaign: two of one name, or dates of a robot without a common order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from dynid.campaign.dates import form_of
from dynid.common.errors import InputError

if TYPE_CHECKING:
    from dynid.campaign.file import Run


def named_apart(runs: Sequence[Run], file: object, may_arrive: bool) -> list[Run]:
    """No two runs have one name: it is that of a folder."""
    seen: dict[str, Run] = {}
    for run in runs:
        first = seen.setdefault(run.name, run)
        if first is run:
            continue
        wrong = f"two runs are called '{run.name}': {first.logs[0]} and {run.logs[0]}"
        remedy = "give `name:` with the fields {unit}, {date} or {run}"
        if not may_arrive:
            raise InputError(wrong, file=file, place="runs", remedy=remedy)
        mark = sha256(run.logs[0].encode()).hexdigest()[:8]
        wrong = f"{run.logs[0]}: another run is called '{run.name}'"  # whose log `summary.json` has
        other = replace(run, name=f"{run.name}-{mark}", wrong=f"{wrong}; {remedy}")
        seen[other.name] = other
    return list(seen.values())


def dated(runs: Sequence[Run], file: object, may_arrive: bool) -> list[Run]:
    """Dates of a robot are all dates, all numbers, or all missing: others have no common order.

    One name that shows no date is the fault of that file, and its run is set aside. If none shows a date, the
    pattern is wrong. Of dates that cannot be compared, those of most runs of the robot count.
    """
    forms: dict[tuple[str, str], Counter[str]] = {}
    first: dict[tuple[str, str, str], str] = {}
    for run in runs:
        forms.setdefault((run.unit, run.robot), Counter())[form_of(run.date)] += 1
        first.setdefault((run.unit, run.robot, form_of(run.date)), run.date)
    forms_there = {form_of(run.date) for run in runs} - {"none"}
    found: list[Run] = []
    for run in runs:
        form, known = form_of(run.date), forms[run.unit, run.robot]
        usual = max((one for one in known if one != "other"), key=known.__getitem__, default="other")
        if form == "other":
            wrong = f"'{run.date}' of {run.logs[0]} is not a date"
            remedy = "write 2026-03-15, 2026-03 or a number; {run} is for parts of a path that are no date"
        elif form == usual:
            found.append(run)
            continue
        else:
            other = first[run.unit, run.robot, usual]
            wrong = f"dates of '{run.unit}' cannot be compared: '{other}' and '{run.date}'"
            remedy = "give all runs of a robot dates, all of them numbers, or none a date"
        if not may_arrive and (form != "other" or forms_there == {"other"}):
            raise InputError(wrong, file=file, place="runs.date", remedy=remedy)
        found.append(replace(run, wrong=f"{wrong}; {remedy}"))
    return found
