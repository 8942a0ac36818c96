"""One estimate of each robot from all its runs, by their merged factors (see `factors.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.campaign.factors import FACTORS, Leaf, merged, read_leaf
from dynid.campaign.file import Run, folder_name, number_of
from dynid.campaign.work import Outcome
from dynid.common.arrays import Array, Float
from dynid.common.engine import Progress, completed
from dynid.common.errors import DynidError
from dynid.report.output import result_files, write_files

if TYPE_CHECKING:
    from dynid.statistics.estimate import Estimate

JOINED, RUNS = "joined", "runs"
_TABLE = "runs.csv"  # of a result of all logs: each run, and its residual


@dataclass(frozen=True)
class Joined:
    """One robot with all its logs.

    Attributes:
        name: Of its folder.
        unit, variant: The robot, and its settings.
        runs: Names of the runs whose factors were merged, in the order of their dates.
        left_out: Run -> why its factors were not.
        reason: Why there is no estimate; empty if there is one.
    """

    name: str
    unit: str
    variant: str
    runs: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    def document(self) -> dict[str, Any]:
        """For `summary.json`."""
        place = {"reason": self.reason} if self.reason else {"folder": f"{JOINED}/{self.name}"}
        return {
            "unit": self.unit,
            "variant": self.variant,
            "runs": list(self.runs),
            "left_out": [{"run": run, "reason": reason} for run, reason in self.left_out.items()],
            **place,
        }


def joined_robots(
    folder: Path,
    runs: Sequence[Run],
    outcomes: Sequence[Outcome],
    new: set[str],
    jobs: int | None,
    progress: Progress | None = None,
) -> tuple[Joined, ...]:
    """Every robot with the runs that were merged; its result is written into `folder`.

    Args:
        folder: Of the campaign.
        runs, outcomes: All of them.
        new: Names of runs that were made now: robots without any are not computed again.
        jobs: Processes on this machine: the factors are here.
        progress: Called with a text and the fraction of robots done.
    """
    robots: dict[tuple[str, str, str], list[tuple[Run, Outcome]]] = {}
    for run, outcome in zip(runs, outcomes, strict=True):
        robots.setdefault((run.unit, run.variant, run.robot), []).append((run, outcome))
    robots_joined: dict[str, Joined] = {}
    todo: list[str] = []
    for (unit, variant, _), members in robots.items():
        name = folder_name("-".join(part for part in (unit, variant) if part))
        while name in robots_joined:
            name += "_"
        members.sort(key=lambda pair: number_of(pair[0].date) or 0.0)
        used, left_out = _usable([outcome for _, outcome in members])
        few = f"{len(used)} of its runs can be used" if len(used) < 2 else ""
        robots_joined[name] = Joined(name, unit, variant, tuple(used), left_out, few)
        changed = any(run in new for run in used) or _merged_runs(folder / JOINED / name) != used
        if not few and changed:
            todo.append(name)
    waiting = [robots_joined[name] for name in todo]
    for count, (member, files) in enumerate(_results(str(folder), waiting, jobs), 1):
        if progress is not None:
            progress(f"factors merged: {count} of {len(todo)} robots", count / len(todo))
        if isinstance(files, str):
            robots_joined[member.name] = replace(member, reason=files)
            continue
        (folder / JOINED).mkdir(exist_ok=True)
        write_files(folder / JOINED / member.name, files)
    return tuple(robots_joined.values())


def _merged_runs(folder: Path) -> list[str]:
    """Names of the runs that a result of all logs was made from; none if there is no such result."""
    table = folder / _TABLE
    if not (folder / "result.json").is_file() or not table.is_file():
        return []
    return [row.partition(",")[0] for row in table.read_text(encoding="utf-8").splitlines()[1:]]


def _usable(outcomes: Sequence[Outcome]) -> tuple[list[str], dict[str, str]]:
    """Runs whose factors can be merged, and why others cannot."""
    left_out: dict[str, str] = {}
    for outcome in outcomes:
        if (
            reason := outcome.reason
            or outcome.apart
            or ("its verdict is bad" if outcome.verdict == "bad" else "")
        ):
            left_out[outcome.name] = reason
    kinds = [outcome.kind for outcome in outcomes if outcome.name not in left_out]
    usual = max(kinds, key=kinds.count, default="")  # of equally frequent ones the first
    other = "parameters, known values or estimator are not those of most runs"
    left_out |= {
        outcome.name: other for outcome in outcomes if outcome.name not in left_out and outcome.kind != usual
    }
    return [outcome.name for outcome in outcomes if outcome.name not in left_out], left_out


def _results(
    folder: str, robots: Sequence[Joined], jobs: int | None
) -> Iterator[tuple[Joined, Mapping[str, str] | str]]:
    """Files of the result of each robot, or why there is none."""
    work = partial(_result_files, folder)
    if len(robots) == 1 or jobs == 1:
        yield from ((member, work(member)) for member in robots)
        return
    done: set[str] = set()
    for member, files in completed(work, lambda: [robot for robot in robots if robot.name not in done], jobs):
        done.add(member.name)
        yield member, str(files) or type(files).__name__ if isinstance(files, BaseException) else files


def _result_files(folder: str, joined: Joined) -> Mapping[str, str] | str:
    """Files of the result of a robot, name -> text; a text instead: why there is none."""
    from dynid.report.json_file import read_result

    target = Path(folder) / JOINED / joined.name
    results = [read_result(Path(folder) / RUNS / run) for run in joined.runs]
    inputs = {str(source): source for result in results for source in result.provenance["inputs"]}
    files = [Path(folder) / FACTORS / f"{run}.npz" for run in joined.runs]
    try:
        estimate = joined_estimate(files, results[-1], joined.runs)
    except DynidError as error:
        return error.message
    provenance = {**estimate.provenance, "inputs": list(inputs.values())}
    return result_files(replace(estimate, provenance=provenance), target)


def joined_estimate(files: Sequence[Path], like: Estimate, names: Sequence[str]) -> Estimate:
    """The estimate from all logs together; it has no signals and is not judged.

    Args:
        files: Factors of the runs, in the order of their dates.
        like: The result of one of them: robot, options and texts of the groupings.
        names: Of the runs.
    """
    from dynid.base.system import base_system
    from dynid.estimator.estimator import estimator_named
    from dynid.experiment.provenance import experiment_of
    from dynid.report.csv_file import table_csv
    from dynid.statistics.assemble import estimate_parameters
    from dynid.statistics.estimate_parts import NOT_JUDGED

    first, system = read_leaf(files[0]), merged(map(read_leaf, files))
    seen = base_system(system, first.base)
    solution = estimator_named(first.estimator, first.options).linear(seen.system)
    settings = experiment_of(like.provenance["options"]).uncertainty
    parts = estimate_parameters(seen, solution, settings=settings)
    known = {parameter.name: parameter for parameter in like.parameters}
    parameters = tuple(
        replace(parameter, grouping=known[parameter.name].grouping, prior=known[parameter.name].prior)
        if parameter.name in known
        else parameter
        for parameter in parts.parameters
    )
    chi = np.asarray(seen.S @ solution.chi + seen.base.c)
    weights = dict(zip((group.name for group in system.groups), solution.weights.tolist(), strict=True))
    errors = [_percent(leaf, chi, weights) for leaf in map(read_leaf, files)]
    return replace(
        like,
        parameters=parameters,
        not_identifiable=parts.not_identifiable,
        fit=parts.fit,
        covariance=parts.covariance,
        validation=(),
        warnings=parts.warnings,
        choices={"logs": f"{len(files)} runs; their factors were merged"},
        uncertainty=parts.spread.facts,
        correlations=parts.correlations,
        invisible=parts.invisible,
        residual_tests=(),
        tried=(),
        hypotheses=(),
        verdict=NOT_JUDGED,
        files={_TABLE: table_csv(("run", "residual_percent"), zip(names, errors, strict=True))},
    )


def _percent(leaf: Leaf, chi: Float[Array, "p"], weights: Mapping[str, float]) -> float:
    """Weighted residual of one log with the parameters of all, in percent of its measured side."""
    left = whole = 0.0
    for group in leaf.groups:
        for block in group.blocks:
            rho = block.Y - block.W @ chi[group.columns]
            left += weights[group.name] ** 2 * float(rho @ rho)
            whole += weights[group.name] ** 2 * float(block.Y @ block.Y)
    return 100.0 * float(np.sqrt(left / whole)) if whole > 0.0 else 0.0
