"""How was it made, and from what?"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynid.report.page import Section, render
from dynid.report.quality import other_choices
from dynid.statistics.estimate import NOT_TESTED, Estimate

_WORDS = {
    "reason": 'its last word (delay, gain, ...) is its name on the page "Warnings" of the documentation',
    "base parameter": "a combination of masses, inertias and drive terms that some motion shows; _R: a sum",
    "residual": "measured minus predicted, with noise; rms: its root mean square",
    "model error": "rms residual without sensor noise, also in % of the peak",
    "peak": "the size that 1 % of the measured values exceed: a short burst does not count",
    "sigma": "standard deviation; the 95 % interval is about ± 2 sigma",
    "p": "probability to see as much by chance, if there is no fault",
    "white": "like noise without memory: no sample depends on the one before",
    "rank": "number of parameters that the logs separate",
    "condition number": "below 100: the motion separates the parameters well; above: some poorly",
    "drive terms": "Ia: rotor inertia, F...: friction, Off: offset; see What did it find?",
    "estimator": "ols, wls: (weighted) least squares; robust: outliers count less; gtls: noise in positions "
    "too; consistent: only physically possible parameters",
}


def section(estimate: Estimate) -> Section:
    """Command line, choices made from the data, options, versions and hashes of the inputs.

    What was not tested is in the section of the description.
    """
    provenance = dict(estimate.provenance)
    inputs = provenance.pop("inputs", [])
    body = render(
        "provenance.html",
        estimate=estimate,
        command=command_line(sys.argv),
        choices={name: text for name, text in other_choices(estimate).items() if name != NOT_TESTED},
        tried=estimate.tried,
        inputs=inputs,
        facts=list(_flat(provenance)),
        words=_WORDS,
    )
    return Section("made", "How was it made?", body, folded=True, note="command, choices, inputs, versions")


def command_line(arguments: list[str]) -> str:
    """The command that wrote this page, from where it was run; empty where another program did.

    Paths are relative, as in the result: the page may be sent to others. A run of a campaign has no command
    of its own: its page is the same whichever process or cluster made it.
    """
    program = Path(arguments[0]) if arguments else Path()
    ours = program.stem == "dynid" or program.parts[-2:] == ("dynid", "__main__.py")
    ours = ours and arguments[1:2] != ["campaign"]
    return shlex.join(["dynid", *map(_as_seen, arguments[1:])]) if ours else ""


def _as_seen(argument: str) -> str:
    option, equals, value = argument.partition("=")
    if equals and option.startswith("-") and os.path.isabs(value):
        return f"{option}={os.path.relpath(value)}"
    return os.path.relpath(argument) if os.path.isabs(argument) else argument


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested facts as (`options.model`, text) pairs; unset ones are omitted."""
    facts: list[tuple[str, str]] = []
    for key, value in tree.items():
        if isinstance(value, Mapping):
            facts += _flat(value, f"{prefix}{key}.")
        elif value is not None and value != [] and value != ():
            several = isinstance(value, list | tuple)
            facts.append((f"{prefix}{key}", ", ".join(map(str, value)) if several else str(value)))
    return facts
