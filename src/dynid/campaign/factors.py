"""The triangular factors that a run keeps of its logs: all logs of a robot in one fit.

    [R_1; R_2] = Q R

R has the inner products of both logs, so the fit of the merged factors is the fit of all logs in one pass. A
run keeps factors over the standard parameters and how the robot moved. Blocks of time are those of which
one pass would make its covariance, each cut into `FINER`: so it is the same too. Their number does not grow
with the number of logs, because one pass over many has long blocks.

A factor serves only if nothing else was taken from the rows: `factors_of` says why it does not.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.base.base import BaseSet
from dynid.base.rank import ColumnRank, independent_columns
from dynid.common.arrays import Array, Bool, Int
from dynid.mechanism.parameters import Parameter
from dynid.projection.factor import Factor, merge, triangle
from dynid.projection.projection import Group, System
from dynid.statistics.clusters import duration, stretches

if TYPE_CHECKING:
    from dynid.fit import Fit

FACTORS = "factors"  # folder of a campaign
PARTS = "merged"  # in it: factors of several runs
SCHEMA = "dynid.factors/2"
FINER = 3


@dataclass(frozen=True, eq=False)
class Leaf:
    """The factors of one run, or of several.

    Attributes:
        base: Structural base parameters, the same for all runs of a robot.
        groups: Rows over the standard parameters, with few blocks.
        estimator, options: Of the run.
        inputs: What the run was made from, as its result records it: paths are relative to its folder.
    """

    base: BaseSet
    groups: tuple[Group, ...]
    estimator: str
    options: Mapping[str, Any]
    inputs: tuple[Mapping[str, Any], ...] = ()

    @property
    def kind(self) -> str:
        """A digest of what must be equal in all runs that are merged: parameters, groupings, estimator."""
        base = self.base
        words = repr((self.estimator, sorted(self.options.items()), base.standard, base.indices))
        content = words.encode() + base.S.tobytes() + base.c.tobytes()
        return hashlib.sha256(content).hexdigest()

    @property
    def system(self) -> System:
        """The equations: as of one pass, with few blocks."""
        return System(self.base.standard, self.groups)


def factors_of(fit: Fit, together: int) -> Leaf | str:
    """The factors of a fit; a text instead: why they do not have all that its estimate needs.

    Args:
        fit: Of a run.
        together: Number of runs that will probably be merged: of the same robot.
    """
    from dynid.estimator.estimator import estimator_named
    from dynid.statistics.covariance import finest_seconds

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
    total = together * duration(fit.system)
    groups = cut(fit.system.groups, finest_seconds(total, experiment.uncertainty))
    return Leaf(fit.measured.base, groups, experiment.estimator, dict(experiment.estimator_options))


def merged(members: Iterable[tuple[str, Leaf]], seconds: float, join: int) -> Leaf:
    """Several leaves as one, in their order.

    Args:
        members: Factors with the name of their run; those that were merged before without.
        seconds: Length of the blocks of one pass over all logs of the robot; 0: blocks stay as they are.
        join: So many members become one block, whatever its length; 0: none.
    """
    parts: list[tuple[Group, ...]] = []
    waiting: list[tuple[Group, ...]] = []
    inputs: dict[str, Mapping[str, Any]] = {}
    for name, leaf in members:
        groups = _named(name, leaf.groups) if name else leaf.groups
        if join:
            waiting.append(groups)
        else:
            parts.append(cut(groups, seconds) if seconds else groups)
        if waiting and len(waiting) == join:
            parts, waiting = [*parts, _one_block(waiting)], []
        inputs |= {str(source): source for source in leaf.inputs}
    if waiting:
        parts.append(_one_block(waiting))
    return replace(
        leaf, groups=tuple(group for part in parts for group in part), inputs=tuple(inputs.values())
    )


def _named(run: str, groups: Sequence[Group]) -> tuple[Group, ...]:
    return tuple(replace(group, log=f"{run}: {group.log}") for group in groups)


def run_of(group: Group) -> str:
    """The run that merged factors come from; of several that are one block the first."""
    return group.log.partition(": ")[0]


def cut(groups: Sequence[Group], seconds: float) -> tuple[Group, ...]:
    """Groups with fewer blocks: those of one pass, each in `FINER` parts."""
    labels, *_ = stretches(System((), tuple(groups)), seconds, FINER)
    lasting = {(group.log, *place): span for group in groups for place, span in group.lasting.items()}
    first: dict[int, int] = {}
    spans: dict[int, int] = {}
    for key, label in labels.items():
        first.setdefault(label, key[2])
        spans[label] = spans.get(label, 0) + lasting[key]
    fewer = []
    for group in groups:
        blocks: dict[tuple[int, int], list[Factor]] = {}
        for place, block in zip(group.places, group.blocks, strict=True):
            blocks.setdefault((place[0], labels[group.log, *place]), []).append(block)
        fewer.append(
            replace(
                group,
                blocks=tuple(merge(members) for members in blocks.values()),
                runs=np.array([run for run, _ in blocks], dtype=int),
                times=np.array([first[label] for _, label in blocks], dtype=int),
                spans=np.array([spans[label] for _, label in blocks], dtype=int),
            )
        )
    return tuple(fewer)


def _one_block(parts: Sequence[tuple[Group, ...]]) -> tuple[Group, ...]:
    """All rows of one name as one block; the motion is that of the first log."""
    groups = tuple(group for part in parts for group in part)
    members: dict[str, list[Group]] = {}
    for group in groups:
        members.setdefault(group.name, []).append(group)
    seconds, like = duration(System((), groups)), groups[0]
    one = np.zeros(1, dtype=int)
    return tuple(
        replace(
            namesakes[0],
            log=like.log,
            blocks=(merge([block for group in namesakes for block in group.blocks]),),
            times=one,
            runs=one,
            spans=None,
            seconds=seconds,
            path=like.path and like.path[:1],
        )
        for namesakes in members.values()
    )


_TEXTS = ("name", "log", "unit", "inflation", "seconds", "homogeneous")  # of a group, as in its class


def leaf_file(leaf: Leaf) -> bytes:
    """The content of a file of factors: triangles without their zeros."""
    base, groups = leaf.base, leaf.groups
    paths = {group.log: group.path for group in groups if group.path is not None}
    header: dict[str, Any] = {
        "schema": SCHEMA,
        "estimator": leaf.estimator,
        "options": dict(leaf.options),
        "inputs": list(leaf.inputs),
        "standard": [asdict(parameter) for parameter in base.standard],
        "indices": list(base.indices),
        "dependent": list(base.dependent),
        "eliminated": list(base.eliminated),
        "left_out": dict(base.left_out),
        "tied": {name: list(members) for name, members in base.tied.items()},
        "groups": [
            {**{key: getattr(group, key) for key in _TEXTS}, "columns": group.columns.tolist()}
            for group in groups
        ],
        "paths": {log: [[*q.shape, *ends] for q, *ends in path] for log, path in paths.items()},
    }
    blocks = [(i, _upper(block)) for i, group in enumerate(groups) for block in group.blocks]
    arrays: dict[str, Any] = {
        "S": base.S,
        "c": base.c,
        "G": base.G,
        "blocks": np.array([(i, len(block.R), block.n_rows) for i, block in blocks]),
        "places": np.concatenate([_places(group) for group in groups]),
        "R": np.concatenate([block.R[_filled(*block.R.shape)] for _, block in blocks]),
        "path": np.concatenate([np.zeros(0), *(q.ravel() for path in paths.values() for q, *_ in path)]),
    }
    arrays["path"] = arrays["path"].astype(np.float32)
    text = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    stream = io.BytesIO()
    np.savez(stream, header=text, **arrays)
    return stream.getvalue()


def _upper(factor: Factor) -> Factor:
    """The same factor, as a triangle if it has as many rows as columns."""
    R = factor.R
    return Factor(triangle(R), factor.n_rows) if len(R) == R.shape[1] and np.tril(R, -1).any() else factor


def _places(group: Group) -> Int[Array, "b 3"]:
    return np.array([(*place, span) for place, span in group.lasting.items()], dtype=int)


@cache
def _filled(rows: int, columns: int) -> Bool[Array, "k p1"]:
    """Where a factor has values: a triangle if it has as many rows as columns."""
    return np.tri(columns, rows, dtype=bool).T if rows == columns else np.ones((rows, columns), dtype=bool)


def read_leaf(content: bytes) -> Leaf:
    """The factors in a file."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file}
    header = json.loads(arrays["header"].tobytes())
    at, paths = 0, {}
    for log, runs in header["paths"].items():
        path = []
        for rows, columns, *ends in runs:
            stop = at + rows * columns
            path.append((arrays["path"][at:stop].astype(float).reshape(rows, columns), *ends))
            at = stop
        paths[log] = tuple(path)
    blocks: list[list[Factor]] = [[] for _ in header["groups"]]
    widths = [len(entry["columns"]) + 1 for entry in header["groups"]]
    at = 0
    for i, rows, n_rows in arrays["blocks"].tolist():
        filled = _filled(rows, widths[i])
        R = np.zeros(filled.shape)
        stop = at + int(np.count_nonzero(filled))
        R[filled] = arrays["R"][at:stop]
        blocks[i].append(Factor(R, n_rows))
        at = stop
    groups, at = [], 0
    for entry, members in zip(header["groups"], blocks, strict=True):
        places = arrays["places"][at : at + len(members)].T
        at += len(members)
        groups.append(
            Group(
                **{**entry, "columns": np.array(entry["columns"], dtype=int)},
                blocks=tuple(members),
                runs=places[0],
                times=places[1],
                spans=places[2],
                path=paths.get(entry["log"]),
            )
        )
    base = BaseSet(
        tuple(Parameter(**fields) for fields in header["standard"]),
        tuple(header["indices"]),
        arrays["S"],
        arrays["c"],
        arrays["G"],
        tuple(header["dependent"]),
        tuple(header["eliminated"]),
        {name: tuple(members) for name, members in header["tied"].items()},
        _full_rank(len(header["indices"])),
        left_out=header.get("left_out", {}),
    )
    return Leaf(base, tuple(groups), header["estimator"], header["options"], tuple(header["inputs"]))


@cache
def _full_rank(count: int) -> ColumnRank:
    return independent_columns(np.eye(count), range(count))
