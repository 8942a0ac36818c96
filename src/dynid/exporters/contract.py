"""The contract of an exporter: files written, and the efforts of what they hold, read back.

exporter(estimate, mechanism, folder) -> Exported, or a plain list of files

The priors of the mechanism (`prior_values`) are a full set of parameters with the efforts of the estimate.
`program` may be empty: then `read_back` sets the attribute `program` of the function that it returns. Its
attribute `rows`, if there is one, gives N^T f, what moves the free directions (`states.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dynid.common.arrays import Array, Float
from dynid.mechanism.mechanism import Mechanism
from dynid.statistics.estimate import Estimate

# Positions, velocities and accelerations of the measured coordinates, each of shape (n, m), in SI -> efforts
# of the actuators, shape (n, a), in [N m] or [N].
EffortsOf = Callable[[Float[Array, "n m"], Float[Array, "n m"], Float[Array, "n m"]], Float[Array, "n a"]]


@dataclass(frozen=True)
class Exported:
    """What an exporter wrote.

    Attributes:
        files: Files written, the main file first.
        read_back: Loads or compiles the written files and gives their efforts; None: there are none.
        program: Program that reads them back, with its version.
        not_representable: One sentence for each part of the estimate that the format cannot hold.
        alone: Efforts of the main file without the terms that are written beside it; None: it holds all.
        payloads: Mounted on the robot that the files describe.
    """

    files: tuple[Path, ...]
    read_back: Callable[[], EffortsOf] | None = None
    program: str = ""
    not_representable: tuple[str, ...] = ()
    alone: Callable[[], EffortsOf] | None = None
    payloads: tuple[str, ...] = ()


Exporter = Callable[[Estimate, Mechanism, Path], Exported | Sequence[Path]]
