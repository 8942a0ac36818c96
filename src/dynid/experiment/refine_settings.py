"""How windows of a log are cut for output-error refinement, and what else is unknown in them."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.common.errors import InputError
from dynid.motion.settings import check_choice

HELD_OUT = 4  # every fourth window judges
DAMPINGS = (TURNING, SLIDING, BOTH, NONE) = ("turning", "sliding", "both", "none")
_WINDOW, _FREE_WINDOW = 0.2, 2.5


@dataclass(frozen=True)
class RefineSettings:
    """How windows are cut, and what is unknown in addition to the parameters.

    Attributes:
        window: Length in [s]: long enough to show the effect of the parameters, short enough that a small
            error of the efforts does not make the simulation diverge. None: 0.2 s; 2.5 s for free motion,
            which has no effort errors.
        windows: At most so many, spread over the logs.
        damping: Of free motion: viscous, one coefficient for all coordinates that turn, one for those
            that slide, both, or none.
        lengths: Of free motion: whether the locked lengths of each window are unknowns too, held to
            those given.
    """

    window: float | None = None
    windows: int = 80
    damping: str = TURNING
    lengths: bool = False

    def __post_init__(self) -> None:
        if self.window is not None and not self.window > 0:
            raise InputError(f"refine window {self.window} is not positive", remedy="e.g. window: 0.2")
        if not self.windows >= 2 * HELD_OUT:
            raise InputError(
                f"refine windows: {self.windows} is too few for held-out windows",
                remedy=f"give {2 * HELD_OUT} or more",
            )
        check_choice("refine damping", self.damping, DAMPINGS)

    def seconds(self, free_motion: bool) -> float:
        """Length of a window, in [s]."""
        return self.window or (_FREE_WINDOW if free_motion else _WINDOW)
