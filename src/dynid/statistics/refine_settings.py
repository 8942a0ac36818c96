"""How windows of a log are cut for output-error refinement."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.errors import InputError

HELD_OUT = 4  # every fourth window judges


@dataclass(frozen=True)
class RefineSettings:
    """How windows are cut.

    Attributes:
        window: Length in [s]: long enough to feel the parameters, short enough that a small error of
            the efforts does not carry the simulation away.
        windows: At most so many, spread over the logs.
    """

    window: float = 0.2
    windows: int = 80

    def __post_init__(self) -> None:
        if not self.window > 0:
            raise InputError(f"refine window {self.window} is not positive", remedy="e.g. window: 0.2")
        if not self.windows >= 2 * HELD_OUT:
            raise InputError(
                f"refine windows {self.windows} are too few to hold any out",
                remedy=f"give {2 * HELD_OUT} or more",
            )
