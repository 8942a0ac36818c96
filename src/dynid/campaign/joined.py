"""One estimate of each robot from all its runs, by their merged factors (see `factors.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.campaign.factors import FACTORS, Leaf, merged, read_leaf
from dynid.campaign.file import Run, folder_name
from dynid.campaign.fleet import number_of
from dynid.campaign.work import Outcome
from dynid.common.arrays import Array, Float
from dynid.common.errors import DynidError

if TYPE_CHECKING:
    from dynid.statistics.estimate import Estimate

JOINED, RUNS = "joined", "runs"


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
    folder: Path, runs: Sequence[Run], outcomes: Sequence[Outcome], new: set[str]
) -> Iterator[Joined]:
    """Every robot with the runs that were merged; its result is written into `folder`.

    Args:
        folder: Of the campaign.
        runs, outcomes: All of them.
        new: Names of runs that were made now: robots without any are not computed again.
    """
    robots: dict[tuple[str, str, str], list[tuple[Run, Outcome]]] = {}
    for run, outcome in zip(runs, outcomes, strict=True):
        robots.setdefault((run.unit, run.variant, run.robot), []).append((run, outcome))
    taken: set[str] = set()
    for (unit, variant, _), members in robots.items():
        name = folder_name("-".join(part for part in (unit, variant) if part))
        while name in taken:
            name += "_"
        taken.add(name)
        members.sort(key=lambda pair: number_of(pair[0].date) or 0.0)
        used, left_out = _usable(members, folder)
        found = Joined(name, unit, variant, tuple(used), left_out)
        if len(used) < 2:
            yield replace(found, reason=f"{len(used)} of its runs can be used")
            continue
        changed = any(run.name in new for run, _ in members)
        if changed or not (folder / JOINED / name / "result.json").is_file():
            found = _written(folder, found)
        yield found


def _usable(members: Sequence[tuple[Run, Outcome]], folder: Path) -> tuple[list[str], dict[str, str]]:
    """Runs whose factors can be merged, and why others cannot."""
    used: list[str] = []
    left_out: dict[str, str] = {}
    first: Leaf | None = None
    for run, outcome in members:
        reason = outcome.reason or outcome.apart or ("its verdict is bad" if outcome.verdict == "bad" else "")
        if not reason:
            leaf = read_leaf(_file(folder, run.name))
            first = first or leaf
            reason = first.refuses(leaf)
        if reason:
            left_out[run.name] = reason
        else:
            used.append(run.name)
    return used, left_out


def _file(folder: Path, run: str) -> Path:
    return folder / FACTORS / f"{run}.npz"


def _written(folder: Path, joined: Joined) -> Joined:
    """Write the result of a robot; where there is none, the reason."""
    from dynid.report.json_file import read_result
    from dynid.report.output import replace_folder, result_files

    target = folder / JOINED / joined.name
    results = [read_result(folder / RUNS / run) for run in joined.runs]
    inputs = {str(one): one for result in results for one in result.provenance["inputs"]}
    try:
        estimate = joined_estimate([_file(folder, run) for run in joined.runs], results[-1], joined.runs)
    except DynidError as error:
        return replace(joined, reason=str(error))
    provenance = {**estimate.provenance, "inputs": list(inputs.values())}
    target.parent.mkdir(exist_ok=True)
    replace_folder(target, result_files(replace(estimate, provenance=provenance), target))
    return joined


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
    from dynid.statistics.verdict import NOT_JUDGED

    first, system = read_leaf(files[0]), merged(map(read_leaf, files))
    seen = base_system(system, first.base)
    solution = estimator_named(first.estimator, first.options).linear(seen.system)
    settings = experiment_of(like.provenance["options"]).uncertainty
    parts = estimate_parameters(seen, solution, settings=settings)
    known = {one.name: one for one in like.parameters}
    parameters = tuple(
        replace(one, grouping=known[one.name].grouping, prior=known[one.name].prior)
        if one.name in known
        else one
        for one in parts.parameters
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
        files={"runs.csv": table_csv(("run", "residual_percent"), zip(names, errors, strict=True))},
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
