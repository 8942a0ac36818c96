"""The tree of factors of a robot: which runs are merged by which task, and into how many blocks.

The leaves are the runs in the order of their dates. `_WIDTH` neighbours are merged by one task, these parts
again, until so few are left that one task merges them and estimates. A robot with few runs is one task. A
part is named by a digest of all that it is made from: after an interruption it is not made again, and a run
that is added changes only the parts that contain it.

Blocks are those of one pass. Where one pass would have more than `MOST_RUNS`, a block is one whole run, or
neighbouring runs together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence, Set
from typing import NamedTuple

from dynid.campaign.factors import PARTS, SCHEMA
from dynid.campaign.work import Outcome
from dynid.statistics.covariance import finest_seconds
from dynid.statistics.uncertainty import UncertaintySettings

MOST_RUNS = 1024
_WIDTH = 128  # factors that one task merges: half a second of work for a robot with six joints


class Node(NamedTuple):
    """Factors of neighbouring runs.

    Attributes:
        digest: Of the file of a run, or of what the part is made from.
        run: Its name; empty for a part.
        children: Of a part.
        seconds, join: How they are merged (`merged`).
    """

    digest: str
    run: str = ""
    children: tuple[Node, ...] = ()
    seconds: float = 0.0
    join: int = 0

    @property
    def file(self) -> str:
        """Its place in the folder of factors."""
        return f"{self.run}.npz" if self.run else f"{PARTS}/{self.digest}.npz"

    def leaves(self) -> list[tuple[str, str]]:
        """Runs with the digests of their factors."""
        return [pair for child in self.children for pair in child.leaves()] or [(self.run, self.digest)]

    def parts(self) -> list[Node]:
        """All nodes below that are no runs."""
        below = [child for child in self.children if not child.run]
        return below + [part for child in below for part in child.parts()]

    def ready(self, there: Set[str]) -> list[Node]:
        """What can be merged now if this is not there: itself, or what it needs; without grandchildren.

        Args:
            there: Digests of parts.
        """
        missing = [child for child in self.children if not child.run and child.digest not in there]
        alone = tuple(child._replace(children=()) for child in self.children)
        return [part for child in missing for part in child.ready(there)] or [self._replace(children=alone)]


def tree(outcomes: Sequence[Outcome], settings: UncertaintySettings) -> Node:
    """The tree over the factors of a robot's runs, in this order."""
    lengths = [outcome.lengths for outcome in outcomes]
    seconds = finest_seconds(sum(map(sum, lengths)), settings)
    join = 0
    if sum(map(len, lengths)) > MOST_RUNS:  # one pass would have a block of each
        join = 1
        while join * MOST_RUNS < len(outcomes):
            join *= 2
    level = [Node(outcome.factors, outcome.name) for outcome in outcomes]
    # Not `seconds`: it changes with every run that is added, the number of blocks of a run seldom does.
    made = [[0 if join else round(length / seconds) for length in run] for run in lengths]
    while True:
        above = []
        for i in range(0, len(level), _WIDTH):
            children, now = tuple(level[i : i + _WIDTH]), min(join, _WIDTH)
            content = [SCHEMA, now, made[i : i + _WIDTH], [(node.run, node.digest) for node in children]]
            digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
            above.append(Node(digest[:32], "", children, seconds, now))
        if len(above) == 1:
            return above[0]
        level, made, seconds = above, [], 0.0
        join = join // _WIDTH if join > _WIDTH else 0
