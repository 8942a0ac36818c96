"""The triangular factors that a run keeps of its logs, and their tree: all logs of a robot in one fit.

    [R_1; R_2] = Q R

R has the inner products of both logs, so the fit of the merged factors is the fit of all logs in one pass. A
run keeps factors over the standard parameters, a few blocks of time for each group of rows, and how the robot
moved. The blocks of a log are merged pairwise once there are many, then neighbouring logs: memory does not
grow with the number of logs, and the blocks that are left are the clusters of the covariance.

A factor serves only if nothing else was taken from the rows: `factors_of` says why it does not.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.base.base import BaseSet
from dynid.base.rank import independent_columns
from dynid.mechanism.parameters import Parameter
from dynid.projection.factor import Factor, merge
from dynid.projection.projection import Group, System

if TYPE_CHECKING:
    from dynid.fit import Fit

FACTORS = "factors"  # folder of a campaign
SCHEMA = "dynid.factors/1"
MOST_BLOCKS = 384  # of all logs
_PARTS = 8  # blocks of a log


@dataclass(frozen=True, eq=False)
class Leaf:
    """The factors of one run.

    Attributes:
        base: Structural base parameters, the same for all runs of a robot.
        groups: Rows over the standard parameters, with at most `_PARTS` blocks.
        estimator, options: Of the run.
    """

    base: BaseSet
    groups: tuple[Group, ...]
    estimator: str
    options: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """A digest of what must be equal in all runs that are merged: parameters, groupings, estimator."""
        base = self.base
        words = repr((self.estimator, sorted(self.options.items()), base.standard, base.indices))
        content = words.encode() + base.S.tobytes() + base.c.tobytes()
        return hashlib.sha256(content).hexdigest()


def factors_of(fit: Fit) -> Leaf | str:
    """The factors of a fit; a text instead: why they do not have all that its estimate needs."""
    from dynid.estimator.estimator import estimator_named

    experiment = fit.experiment
    estimator = estimator_named(experiment.estimator, experiment.estimator_options)
    if estimator.rework is not None or estimator.constraint is not None:
        return f"estimator '{estimator.name}' needs more than factors: use ols or wls"
    if experiment.estimator_options.get("weights") == "trajectory":
        return "each log has weights of its own: use weights: joint"
    if fit.settled:
        return "values were found for this run alone: " + ", ".join(fit.choices)
    if fit.reduced is not None or experiment.refine is not None or fit.standard is not None:
        return "`essential`, `keep`, `refine` and `standard` need all logs in one run"
    if not fit.problem.model.per_sample:
        return f"model '{fit.problem.model.key}' needs all logs in one run"
    groups = _coarse(fit.system.groups, _PARTS)
    return Leaf(fit.measured.base, groups, experiment.estimator, dict(experiment.estimator_options))


def merged(leaves: Iterable[Leaf]) -> System:
    """The equations of all runs: as of one pass, with few blocks."""
    logs: list[tuple[Group, ...]] = []
    waiting: list[tuple[Group, ...]] = []
    standard: tuple[Parameter, ...] = ()
    parts = _PARTS
    together = 1  # logs that are one block
    for number, leaf in enumerate(leaves):
        standard = leaf.base.standard
        renamed = tuple(replace(group, log=f"{number + 1}: {group.log}") for group in leaf.groups)
        for log in dict.fromkeys(group.log for group in renamed):
            waiting.append(_coarse([group for group in renamed if group.log == log], parts))
            if len(waiting) == together:
                logs, waiting = [*logs, _one_log(waiting)], []
            if len(logs) * parts > MOST_BLOCKS and parts > 1:
                parts //= 2
                logs = [_coarse(groups, parts) for groups in logs]
            elif len(logs) * parts > MOST_BLOCKS:
                together *= 2
                logs, waiting = logs[: len(logs) // 2 * 2], logs[len(logs) // 2 * 2 :]
                logs = [_one_log(logs[i : i + 2]) for i in range(0, len(logs), 2)]
    if waiting:
        logs.append(_one_log(waiting))
    return System(standard, tuple(group for groups in logs for group in groups))


def _coarse(groups: Sequence[Group], parts: int) -> tuple[Group, ...]:
    """Groups with at most so many blocks in a log, cut at the same times in all groups of the log."""
    counts: dict[str, int] = {}
    for group in groups:
        counts[group.log] = max(counts.get(group.log, 0), 1 + max(time for _, time in group.places))
    first: dict[tuple[str, int], int] = {}  # run that a new block begins with
    for group in groups:
        for run, time in group.places:
            key = group.log, _part(time, counts[group.log], parts)
            first[key] = min(run, first.get(key, run))
    coarser = []
    for group in groups:
        count = counts[group.log]
        blocks: dict[int, list[Factor]] = {}
        for (_, time), block in zip(group.places, group.blocks, strict=True):
            blocks.setdefault(_part(time, count, parts), []).append(block)
        numbers = sorted(blocks)
        coarser.append(
            replace(
                group,
                blocks=tuple(merge(blocks[number]) for number in numbers),
                times=np.array(numbers, dtype=int),
                runs=np.array([first[group.log, number] for number in numbers], dtype=int),
                seconds=group.seconds * count / min(parts, count),
            )
        )
    return tuple(coarser)


def _part(time: int, count: int, parts: int) -> int:
    return time * min(parts, count) // count


def _one_log(logs: Sequence[tuple[Group, ...]]) -> tuple[Group, ...]:
    """Neighbouring logs as one, each group one block; its motion is that of the first."""
    if len(logs) == 1:
        return logs[0]
    members: dict[str, list[Group]] = {}
    for group in (group for groups in logs for group in groups):
        members.setdefault(group.name, []).append(group)
    lengths = [
        groups[0].seconds * max(1 + max(t for _, t in log_group.places) for log_group in groups)
        for groups in logs
    ]
    like = logs[0][0]
    return tuple(
        replace(
            namesakes[0],
            log=like.log,
            blocks=(merge([block for group in namesakes for block in group.blocks]),),
            times=np.zeros(1, dtype=int),
            runs=np.zeros(1, dtype=int),
            seconds=sum(lengths),
            path=like.path,
        )
        for namesakes in members.values()
    )


_TEXTS = ("name", "log", "unit", "inflation", "seconds", "homogeneous")  # of a group, as in its class


def leaf_file(leaf: Leaf) -> bytes:
    """The content of a file of factors."""
    base = leaf.base
    header: dict[str, Any] = {
        "schema": SCHEMA,
        "estimator": leaf.estimator,
        "options": dict(leaf.options),
        "standard": [asdict(parameter) for parameter in base.standard],
        "indices": list(base.indices),
        "dependent": list(base.dependent),
        "eliminated": list(base.eliminated),
        "tied": {name: list(members) for name, members in base.tied.items()},
        "groups": [{key: getattr(group, key) for key in _TEXTS} for group in leaf.groups],
    }
    paths = {group.log: group.path for group in leaf.groups if group.path is not None}
    header["paths"] = {log: [path[1:] for path in runs] for log, runs in paths.items()}
    arrays: dict[str, Any] = {"S": base.S, "c": base.c, "K": base.K, "G": base.G}
    for i, group in enumerate(leaf.groups):
        arrays[f"columns_{i}"], arrays[f"times_{i}"] = group.columns, group.times
        arrays[f"runs_{i}"] = group.runs
        arrays[f"rows_{i}"] = np.array([(len(block.R), block.n_rows) for block in group.blocks])
        arrays[f"R_{i}"] = np.concatenate([block.R for block in group.blocks])
    for i, runs in enumerate(paths.values()):
        arrays |= {f"path_{i}_{k}": q.astype(np.float32) for k, (q, _, _) in enumerate(runs)}
    text = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    stream = io.BytesIO()
    np.savez_compressed(stream, header=text, **arrays)
    return stream.getvalue()


def read_leaf(file: Path) -> Leaf:
    """The factors that a run has kept."""
    with np.load(file, allow_pickle=False) as arrays:
        header = json.loads(arrays["header"].tobytes())
        paths = {
            log: tuple((arrays[f"path_{i}_{k}"].astype(float), *ends) for k, ends in enumerate(runs))
            for i, (log, runs) in enumerate(header["paths"].items())
        }
        groups = []
        for i, entry in enumerate(header["groups"]):
            heights, n_rows = arrays[f"rows_{i}"].T
            R = np.split(arrays[f"R_{i}"], np.cumsum(heights)[:-1])
            group = Group(
                **entry,
                columns=arrays[f"columns_{i}"],
                blocks=tuple(Factor(*pair) for pair in zip(R, n_rows.tolist(), strict=True)),
                times=arrays[f"times_{i}"],
                runs=arrays[f"runs_{i}"],
                path=paths.get(entry["log"]),
            )
            groups.append(group)
        count = len(header["indices"])
        base = BaseSet(
            tuple(Parameter(**fields) for fields in header["standard"]),
            tuple(header["indices"]),
            arrays["S"],
            arrays["c"],
            arrays["K"],
            arrays["G"],
            tuple(header["dependent"]),
            tuple(header["eliminated"]),
            {name: tuple(members) for name, members in header["tied"].items()},
            independent_columns(np.eye(count), range(count)),
        )
    return Leaf(base, tuple(groups), header["estimator"], header["options"])
