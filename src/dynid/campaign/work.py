"""One run of a campaign, as a worker makes it: plain data in, plain data out."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.campaign.file import Run
from dynid.campaign.stores import StoreError, local_copies
from dynid.common.engine import TRIES, Died
from dynid.common.errors import DynidError, NoResultError
from dynid.common.versions import version_of

if TYPE_CHECKING:
    from dynid.campaign.factors import Leaf
    from dynid.fit import Fit
    from dynid.statistics.estimate import Estimate


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Attributes:
        verdict: `good`, `care` or `bad`; empty if there is no result.
        headline: The verdict in words.
        reason: Why the run was set aside; empty if it has a result.
        parameters: Name, unit, value and sigma (None: none) of each parameter, SI.
        seconds: Time that it took.
        kind: Runs of a robot with the same kind of factors can be merged (`Leaf.kind`); empty: no factors.
        factors: Digest of the file of factors.
        lengths: Of the stretches of its logs without a break, as the factors see them, in [s].
        apart: Why its factors do not serve for an estimate from all logs of the robot; empty if they do.
        elsewhere: Whether the reason may lie outside the files of the run (memory, a store that does not
            answer, an error in dynid): the next command tries it again.
        version: Of dynid, in the process that made it.
    """

    name: str
    verdict: str = ""
    headline: str = ""
    reason: str = ""
    parameters: tuple[tuple[str, str, float, float | None], ...] = ()
    seconds: float = 0.0
    kind: str = ""
    factors: str = ""
    lengths: tuple[float, ...] = ()
    apart: str = ""
    elsewhere: bool = False
    version: str = ""


@dataclass(frozen=True)
class Made:
    """An outcome with the files of its result, name -> text, and the factors of its log."""

    outcome: Outcome
    files: Mapping[str, str] = field(default_factory=dict)
    factors: bytes = b""


def make(run: Run, folder: str) -> Made:
    """Identify one run; a log that fails is an outcome too, never an exception.

    Args:
        run: What to identify.
        folder: Where its files will be: paths in the result are relative to it.
    """
    from dynid.campaign.factors import factors_of
    from dynid.report.json_file import relative_places

    began = time.monotonic()
    kept: list[Leaf | str] = []
    try:
        keep = (lambda fit: kept.append(factors_of(fit, run.together))) if run.together else None
        estimate, failure = identified(run, keep)
    except Exception as error:  # one broken run must not end a campaign of thousands
        return Made(replace(failed(run, error), seconds=time.monotonic() - began))
    made = _made(run, estimate, failure, folder, time.monotonic() - began)
    return _with_factors(made, kept[0], relative_places(estimate.provenance, Path(folder))) if kept else made


def failed(run: Run, error: BaseException) -> Outcome:
    """The outcome of a run that ended with an error."""
    if isinstance(error, DynidError):
        return Outcome(run.name, reason=error.message, elsewhere=isinstance(error, StoreError))
    if isinstance(error, Died):
        reason = f"its process died {TRIES} times: probably too little memory"
    elif isinstance(error, MemoryError):
        reason = "not enough memory"
    else:
        reason = f"internal error, {type(error).__name__}: {error}"
    return Outcome(run.name, reason=reason, elsewhere=True)


def _with_factors(made: Made, leaf: Leaf | str, provenance: Mapping[str, Any]) -> Made:
    from dynid.campaign.factors import leaf_file
    from dynid.statistics.clusters import lengths

    if isinstance(leaf, str):
        return replace(made, outcome=replace(made.outcome, apart=leaf))
    content = leaf_file(replace(leaf, inputs=tuple(provenance["inputs"])))
    digest = hashlib.sha256(content).hexdigest()
    kept = replace(made.outcome, kind=leaf.kind, factors=digest, lengths=lengths(leaf.system))
    return replace(made, outcome=kept, factors=content)


def identified(run: Run, fitted: Callable[[Fit], None] | None = None) -> tuple[Estimate, str]:
    """The estimate, and why it is not reliable; empty if nothing failed."""
    from dynid.experiment.experiment import experiment_from
    from dynid.pipeline import run_experiment

    with local_copies(run.logs) as logs:
        settings: dict[str, Any] = {"name": run.name, **run.settings, "robot": run.robot, "logs": list(logs)}
        failure = ""
        try:
            estimate = run_experiment(experiment_from(settings), fitted=fitted)
        except NoResultError as error:
            if error.estimate is None:
                raise
            estimate, failure = error.estimate, error.message
    sources = estimate.provenance["inputs"]
    inputs = [{**source, "file": logs.get(source["file"], source["file"])} for source in sources]
    return replace(estimate, provenance={**estimate.provenance, "inputs": inputs}), failure


def _made(run: Run, estimate: Estimate, failure: str, folder: str, seconds: float) -> Made:
    from dynid.report.output import result_files

    parameters = tuple(
        (parameter.name, parameter.unit, parameter.value, parameter.sigma)
        for parameter in estimate.parameters
    )
    verdict = "bad" if failure else estimate.verdict.level
    headline = failure or estimate.verdict.headline
    made_by = version_of()
    outcome = Outcome(run.name, verdict, headline, parameters=parameters, seconds=seconds, version=made_by)
    return Made(outcome, result_files(estimate, Path(folder)))
