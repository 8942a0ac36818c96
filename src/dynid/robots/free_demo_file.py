"""Experiments of built-in robots on cables: the reader of their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dynid.common.entry import root_entry
from dynid.common.strict_yaml import read_yaml
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.robot_file.scope import Scope
from dynid.robots.demo_file import positive, truth_of

_KEYS = ("motions", "validation", "rate", "duration", "position_sigma", "angle_sigma", "seed")


@dataclass(frozen=True)
class FreeDemo:
    """The built-in experiment of a robot on locked cables.

    Attributes:
        truth: Every standard parameter by name, SI.
        motions, validation: Free motions for the fit and for validation, each about its own equilibrium.
        rate: Sampling rate, in [Hz].
        duration: Of each motion, in [s].
        position_sigma, angle_sigma: Standard deviations of the pose noise, in [m] and [rad].
        seed: Of releases and noise.
    """

    truth: Mapping[str, float]
    motions: int
    validation: int
    rate: float
    duration: float
    position_sigma: float
    angle_sigma: float
    seed: int


def read_free_demo(file: Path, mechanism: Mechanism) -> FreeDemo | None:
    """The experiment of a robot on locked cables; None if the file is of another kind."""
    root = root_entry(read_yaml(file))
    if "free" not in root.mapping():
        return None
    fields = root.fields(("truth", "free"), required=("truth", "free"))
    scope = Scope()
    free = fields["free"].fields(_KEYS, required=_KEYS)
    return FreeDemo(
        truth=truth_of(fields["truth"], scope, mechanism),
        motions=free["motions"].count(),
        validation=free["validation"].count(),
        rate=positive(free["rate"], scope),
        duration=positive(free["duration"], scope),
        position_sigma=positive(free["position_sigma"], scope),
        angle_sigma=positive(free["angle_sigma"], scope),
        seed=free["seed"].count(0),
    )
