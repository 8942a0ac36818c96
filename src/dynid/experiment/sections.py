"""Sections of an experiment for one model or kind of problem: windows, free motion, ties, unloaded robot."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

import msgspec

from dynid.common.entry import Entry, plain_entry
from dynid.common.errors import InputError
from dynid.common.settings import Positive, Settings

AUTO = "auto"
ORTHONORMAL: Final = "orthonormal"
FREE: Final = "free"
GIVEN: Final = "given"
ESTIMATE: Final = "estimate"
REFINE: Final = "refine"
MEASURED: Final = "measured"
BY_FREE: Final = "free"
PROJECTED: Final = "projected"
TURNING: Final = "turning"
SLIDING: Final = "sliding"
BOTH: Final = "both"
NONE: Final = "none"
HELD_OUT = 4  # every fourth window judges
_WINDOW, _FREE_WINDOW = 0.2, 2.5


class TieChoice(Settings, frozen=True):
    """A tie of the robot that is used, on standard parameters or after regrouping."""

    _alone: ClassVar[str] = "name"

    name: str
    apply: Literal["standard", "regrouped"] = "standard"


class UnloadedModel(Settings, frozen=True):
    """A saved result of the robot without load: the payload is what is left over.

    Attributes:
        result: Its file or folder.
        free: Names or globs of parameters that are identified again with the payload.
    """

    _title: ClassVar[str] = "unloaded"
    _alone: ClassVar[str] = "result"
    _paths: ClassVar[tuple[str, ...]] = ("result",)

    result: str
    free: tuple[str, ...] = ()


class EnergySettings(Settings, frozen=True):
    """Windows of the model `energy`.

    Attributes:
        window: Length in [s]; None: two kept rows.
        overlap: Whether windows overlap.
        integration: Rule that integrates power.
    """

    of_model: ClassVar[str] = "energy"

    _title: ClassVar[str] = "energy"

    window: Positive | None = None
    overlap: bool = False
    integration: Literal["spline", "simpson"] = "spline"


class InternalSettings(Settings, frozen=True):
    """How free motion on locked cables is described.

    Attributes:
        free: Free coordinates, or ("auto",); empty: those of the robot's description.
        nullspace: `orthonormal`, or per unit velocity of the `free` coordinates, as the paper has it.
        lengths: Locked lengths `given` in the log (l0_1..), `estimate`d once per run from its poses, or
            `refine`d together with the parameters; None: given where the log has them.
        pose: `measured`: all coordinates as measured. `free`: the free ones alone, the others solved from
            the lengths (eq. 44). `projected`: the nearest pose that the lengths allow. None: measured where
            the log gives the full pose, else free.
    """

    of_model: ClassVar[str] = "internal"

    _title: ClassVar[str] = "internal"

    free: tuple[str, ...] = ()
    nullspace: Literal["orthonormal", "free"] = ORTHONORMAL
    lengths: Literal["given", "estimate", "refine"] | None = None
    pose: Literal["measured", "free", "projected"] | None = None

    @classmethod
    def spelled(cls, entries: dict[str, Entry]) -> dict[str, Entry]:
        """`free: auto`, or one coordinate without a list."""
        free = entries.get("free")
        if free is not None and isinstance(free.value, str):
            entries["free"] = plain_entry([free.text()], like=free)
        return entries

    def check(self) -> None:
        """Lengths to refine from a pose that they do not change."""
        if self.lengths == REFINE and self.pose == MEASURED:
            raise InputError(
                "lengths: refine has no effect if the pose is used as measured",
                remedy="pose: free, or pose: projected",
            )


class UnknownDescription(Settings, frozen=True):
    """Quantities of the robot's description that are found together with the parameters.

    Attributes:
        symbols: Named dimensions, names or globs.
        zeros: Measured joints whose zero is unknown, names or globs.
        gravity: `direction`: gravity may point in another direction; its size is known.
        turns: `auto`: whole turns of the encoders of a closed robot are found (always done).
    """

    _title: ClassVar[str] = "unknown"

    symbols: tuple[str, ...] = ()
    zeros: tuple[str, ...] = ()
    gravity: Literal["direction"] | None = None
    turns: Literal["auto"] | None = None

    @classmethod
    def spelled(cls, entries: dict[str, Entry]) -> dict[str, Entry]:
        """One name without a list."""
        for key in ("symbols", "zeros"):
            entry = entries.get(key)
            if entry is not None and isinstance(entry.value, str):
                entries[key] = plain_entry([entry.text()], like=entry)
        return entries


class RefineSettings(Settings, frozen=True):
    """How windows are cut for output error, and what is unknown in addition to the parameters.

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

    _title: ClassVar[str] = "refine"
    _switch: ClassVar[bool] = True

    window: Positive | None = None
    windows: Annotated[int, msgspec.Meta(ge=2 * HELD_OUT)] = 80
    damping: Literal["turning", "sliding", "both", "none"] = TURNING
    lengths: bool = False

    def seconds(self, free_motion: bool) -> float:
        """Length of a window, in [s]."""
        return self.window or (_FREE_WINDOW if free_motion else _WINDOW)
