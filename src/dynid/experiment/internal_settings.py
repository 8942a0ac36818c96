"""Settings of the model `internal`: free coordinates, null space, lengths, and what of the pose is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dynid.common.errors import InputError, nearest
from dynid.motion.settings import check_choice

AUTO = "auto"
NULLSPACES = (ORTHONORMAL, FREE) = ("orthonormal", "free")
LENGTHS = (GIVEN, ESTIMATE, REFINE) = ("given", "estimate", "refine")
POSES = (MEASURED, BY_FREE, PROJECTED) = ("measured", "free", "projected")


@dataclass(frozen=True)
class InternalSettings:
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

    free: tuple[str, ...] = ()
    nullspace: str = ORTHONORMAL
    lengths: str | None = None
    pose: str | None = None

    def __post_init__(self) -> None:
        check_choice("internal nullspace", self.nullspace, NULLSPACES)
        if self.lengths is not None:
            check_choice("internal lengths", self.lengths, LENGTHS)
        if self.pose is not None:
            check_choice("internal pose", self.pose, POSES)
        if self.lengths == REFINE and self.pose == MEASURED:
            raise InputError(
                "lengths: refine has no effect if the pose is used as measured",
                place="internal",
                remedy="pose: free, or pose: projected",
            )


def internal_settings(options: Mapping[str, Any] | InternalSettings) -> InternalSettings:
    """Settings from the mapping of an experiment; unknown names are refused."""
    if isinstance(options, InternalSettings):
        return options
    names = [one.name for one in fields(InternalSettings)]
    for name in options:
        if name not in names:
            raise InputError(f"internal: unknown option '{name}'" + nearest(name, names), place="internal")
    made = dict(options)
    if "free" in made:
        made["free"] = (made["free"],) if isinstance(made["free"], str) else tuple(made["free"])
    return InternalSettings(**made)
