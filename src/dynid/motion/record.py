"""Record: a recording before it is cleaned; rows can be selected, columns are already SI."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from dynid.common.arrays import Array


@dataclass(frozen=True, eq=False)
class Record:
    """Raw samples in file order.

    Attributes:
        t: Time in its own unit until the clock is understood, shape (n,).
        q, dq, ddq, tau: As in Log.
        breaks: Where a new run begins, shape (n,); the first sample is always one.
        file: For messages.
        q_ref: As in Log.
    """

    t: Float[Array, "n"]
    q: Float[Array, "n m"]
    dq: Float[Array, "n m"] | None
    ddq: Float[Array, "n m"] | None
    tau: Float[Array, "n a"]
    breaks: Bool[Array, "n"]
    file: str | None = None
    q_ref: Float[Array, "n m"] | None = None

    def rows(self, index: Int[Array, "k"]) -> Record:
        """The samples `index`; a run that loses its first sample begins at the next one kept."""
        runs = np.cumsum(self.breaks)[index]
        breaks = np.ones(len(index), dtype=bool)
        breaks[1:] = runs[1:] != runs[:-1]
        return replace(
            self,
            t=self.t[index],
            q=self.q[index],
            dq=None if self.dq is None else self.dq[index],
            ddq=None if self.ddq is None else self.ddq[index],
            tau=self.tau[index],
            breaks=breaks,
            q_ref=None if self.q_ref is None else self.q_ref[index],
        )

    def signals(self) -> list[Float[Array, "n c"]]:
        """Every two-dimensional array the record has."""
        return [x for x in (self.q, self.dq, self.ddq, self.q_ref, self.tau) if x is not None]
