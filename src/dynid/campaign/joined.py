"""One estimate of each robot from all its runs: their factors are merged as a tree (see `tree.py`).

Tasks read and write the folder of the campaign. Workers of a cluster that do not see it say so, and processes
of this machine merge instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from dynid.campaign.dates import number_of
from dynid.campaign.factors import FACTORS, PARTS, Leaf, leaf_file, merged, read_leaf, run_of
from dynid.campaign.file import Run, folder_name
from dynid.campaign.tree import Node, tree
from dynid.campaign.work import Outcome
from dynid.common.arrays import Array, Float
from dynid.common.engine import Progress, completed
from dynid.common.errors import DynidError
from dynid.report.output import replace_file, result_files, write_files
from dynid.statistics.assemble import percent

if TYPE_CHECKING:
    from dynid.projection.projection import Group
    from dynid.statistics.estimate import Estimate
    from dynid.statistics.uncertainty import UncertaintySettings

JOINED, RUNS = "joined", "runs"
_TABLE = "runs.csv"  # of a result of all logs: each run, its residual, and the digest of its factors
_DAMAGED = f"factors are missing or damaged: delete the folder {FACTORS} and run the same command again"


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


class Merge(NamedTuple):
    """A task: a part, or the estimate of a robot from its root, which is given all leaves."""

    robot: Joined
    node: Node
    leaves: Sequence[tuple[str, str]] = ()


def joined_robots(
    folder: Path,
    runs: Sequence[Run],
    outcomes: Sequence[Outcome],
    jobs: int | None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> tuple[Joined, ...]:
    """Every robot with the runs that were merged; its result is written into `folder`.

    Args:
        folder: Of the campaign.
        runs, outcomes: All of them.
        jobs, cluster: Where factors are merged, as for `completed`.
        progress: Called with a text and the fraction of tasks done.
    """
    robots: dict[tuple[str, str, str], list[tuple[Run, Outcome]]] = {}
    for run, outcome in zip(runs, outcomes, strict=True):
        robots.setdefault(run.individual, []).append((run, outcome))
    robots_joined: dict[str, Joined] = {}
    roots: dict[str, Node] = {}
    for (unit, variant, _), members in robots.items():
        name = folder_name("-".join(part for part in (unit, variant) if part))
        while name in robots_joined:
            name += "_"
        members.sort(key=lambda pair: number_of(pair[0].date) or 0.0)
        used, left_out = _usable([outcome for _, outcome in members])
        few = f"{len(used)} of its runs can be used" if len(used) < 2 else ""
        names = tuple(outcome.name for outcome in used)
        robots_joined[name] = Joined(name, unit, variant, names, left_out, few)
        if not few:
            roots[name] = tree(used, _uncertainty(members[0][0]))
    todo = {
        name: root for name, root in roots.items() if _merged_runs(folder / JOINED / name) != root.leaves()
    }
    for member, files in _results(folder, robots_joined, todo, jobs, cluster, progress):
        if isinstance(files, str):
            robots_joined[member.name] = replace(member, reason=files)
            continue
        (folder / JOINED).mkdir(exist_ok=True)
        write_files(folder / JOINED / member.name, files)
    kept = {Path(part.file).name for root in roots.values() for part in root.parts()}
    for file in (folder / FACTORS / PARTS).glob("*"):
        if file.name not in kept:
            file.unlink()
    return tuple(robots_joined.values())


def _usable(outcomes: Sequence[Outcome]) -> tuple[list[Outcome], dict[str, str]]:
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
    return [outcome for outcome in outcomes if outcome.name not in left_out], left_out


def _uncertainty(run: Run) -> UncertaintySettings:
    from dynid.experiment.experiment import experiment_from

    return experiment_from({**run.settings, "robot": run.robot, "logs": []}).uncertainty


def _merged_runs(folder: Path) -> list[tuple[str, str]]:
    """Runs that a result of all logs was made from, as `Node.leaves`; none if there is no such result."""
    table = folder / _TABLE
    if not (folder / "result.json").is_file() or not table.is_file():
        return []
    rows = [row.split(",") for row in table.read_text(encoding="utf-8").splitlines()[1:]]
    return [(row[0], row[-1]) for row in rows]


def _results(
    folder: Path,
    robots: Mapping[str, Joined],
    roots: Mapping[str, Node],
    jobs: int | None,
    cluster: str | None,
    progress: Progress | None,
) -> Iterator[tuple[Joined, Mapping[str, str] | str]]:
    """Files of the result of each robot, or why there is none."""
    places = folder / FACTORS
    parts = {part.digest: part for root in roots.values() for part in root.parts()}
    there = {digest for digest, part in parts.items() if (places / part.file).is_file()}
    done: set[str] = set()

    def left() -> list[Merge]:
        waiting = ((robots[name], root) for name, root in roots.items() if name not in done)
        return [
            Merge(robot, node, root.leaves() if node.digest == root.digest else ())
            for robot, root in waiting
            for node in root.ready(there)
        ]

    count, total = 0, len(roots) + len(parts) - len(there)
    work = partial(_made, str(folder))
    while tasks := left():
        if cluster is None and (jobs == 1 or len(tasks) == 1):
            results: Iterator[tuple[Merge, Any]] = ((task, work(task)) for task in tasks)
        else:
            results = completed(work, left, jobs, cluster)
        for (robot, node, leaves), files in results:
            if cluster is not None and (files is None or isinstance(files, OSError)):
                cluster = None  # its workers do not see this folder, or cannot write there
                break
            count += 1
            if progress is not None:
                progress(f"factors merged: {count} of {total} tasks", count / total)
            if isinstance(files, OSError):
                raise files
            if isinstance(files, BaseException):
                files = str(files) or type(files).__name__
            there.add(node.digest)
            if robot.name not in done and (leaves or not isinstance(files, Mapping)):
                done.add(robot.name)
                yield robot, _DAMAGED if files is None else files


class _NotHereError(Exception):
    """Factors are not in the folder of the campaign, or not those that were written."""


def _made(folder: str, task: Merge) -> Mapping[str, str] | str | None:
    """Files of the result of a robot, name -> text; a text instead: why there is none.

    Of a part no files: it is written beside the factors. None: these are not here.
    """
    robot, node, leaves = task
    places = Path(folder) / FACTORS
    try:
        leaf = merged(((child.run, _read(places, child)) for child in node.children), node.seconds, node.join)
        if leaves:
            return _result_files(Path(folder), robot, leaf, leaves)
        (places / PARTS).mkdir(exist_ok=True)
        replace_file(places / node.file, leaf_file(leaf))
    except _NotHereError:
        return None
    except DynidError as error:
        return error.message
    return {}


def _read(places: Path, node: Node) -> Leaf:
    try:
        content = (places / node.file).read_bytes()
        if node.run and hashlib.sha256(content).hexdigest() != node.digest:
            raise _NotHereError
        return read_leaf(content)
    except (OSError, BadZipFile) as error:
        raise _NotHereError from error


def _result_files(
    folder: Path, joined: Joined, leaf: Leaf, leaves: Sequence[tuple[str, str]]
) -> Mapping[str, str]:
    """Files of the result of a robot, name -> text."""
    from dynid.report.csv_file import table_csv
    from dynid.report.json_file import absolute_places, read_result

    like = read_result(folder / RUNS / joined.runs[-1])
    estimate, residuals = joined_estimate(leaf, like, len(joined.runs))
    inputs = absolute_places({"inputs": leaf.inputs}, folder / RUNS / joined.runs[-1])["inputs"]
    rows, residual = [], 0.0
    for run, digest in leaves:
        residual = residuals.get(run, residual)  # runs that are one block have one
        rows.append((run, residual, digest))
    table = table_csv(("run", "residual_percent", "factors"), rows)
    provenance = {**estimate.provenance, "inputs": inputs}
    estimate = replace(estimate, provenance=provenance, files={_TABLE: table})
    return result_files(estimate, folder / JOINED / joined.name)


def joined_estimate(leaf: Leaf, like: Estimate, count: int) -> tuple[Estimate, dict[str, float]]:
    """The estimate from all logs together, without signals and not judged; and the residual of each run.

    Args:
        leaf: Factors of all runs, merged.
        like: The result of one of them: robot, options and texts of the groupings.
        count: Of the runs.
    """
    from dynid.base.system import base_system
    from dynid.estimator.estimator import estimator_named
    from dynid.experiment.provenance import experiment_of
    from dynid.statistics.assemble import estimate_parameters
    from dynid.statistics.estimate_parts import NOT_JUDGED

    system = leaf.system
    seen = base_system(system, leaf.base)
    solution = estimator_named(leaf.estimator, leaf.options).linear(seen.system)
    settings = experiment_of(like.provenance["options"]).uncertainty
    parts = estimate_parameters(seen, solution, settings=settings)
    known = {parameter.name: parameter for parameter in like.parameters}
    parameters = tuple(
        replace(parameter, grouping=known[parameter.name].grouping, prior=known[parameter.name].prior)
        if parameter.name in known
        else parameter
        for parameter in parts.parameters
    )
    estimate = replace(
        like,
        parameters=parameters,
        not_identifiable=parts.not_identifiable,
        fit=parts.fit,
        covariance=parts.covariance,
        validation=(),
        warnings=parts.warnings,
        choices={"logs": f"{count} runs; their factors were merged"},
        uncertainty=parts.spread.facts,
        correlations=parts.correlations,
        invisible=parts.invisible,
        residual_tests=(),
        tried=(),
        hypotheses=(),
        verdict=NOT_JUDGED,
        files={},
    )
    chi = np.asarray(seen.S @ solution.chi + seen.base.c)
    return estimate, _percents(system.groups, chi, solution.weights)


def _percents(
    groups: Sequence[Group], chi: Float[Array, "p"], weights: Float[Array, "g"]
) -> dict[str, float]:
    """Weighted residual of each run with the parameters of all, in percent of its measured side."""
    squares: dict[str, list[float]] = {}
    for group, weight in zip(groups, weights.tolist(), strict=True):
        sums = squares.setdefault(run_of(group), [0.0, 0.0])
        for i, square in enumerate(group.squares(chi)):
            sums[i] += weight**2 * square
    return {run: percent(left**0.5, whole**0.5) for run, (left, whole) in squares.items()}
