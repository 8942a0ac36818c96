"""The contract of an exporter: files written, and the efforts of what they hold, read back.

exporter(estimate, mechanism, folder) -> Exported, or a plain list of files
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float

from dynid.common.arrays import Array
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
    """

    files: tuple[Path, ...]
    read_back: Callable[[], EffortsOf] | None = None
    program: str = ""
    not_representable: tuple[str, ...] = ()


Exporter = Callable[[Estimate, Mechanism, Path], Exported | Sequence[Path]]
