"""Cable robots as dynid sees them beside the same ones of the oracle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.dynamics.free_motion import LockedCables
from dynid.mechanism.cable import Cable, locked
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from tests.cable_oracle import CableSet, Platform, cable4, lengths, platform10, rotation

POSE = np.array([1.18, -0.17, -0.4, 0.998, 0.02, -0.03, 0.05])
POSE[3:] /= np.linalg.norm(POSE[3:])


def parameters(platform: Platform) -> dict[str, float]:
    """The ten of the oracle's platform by dynid's names."""
    J = platform.inertia
    ten = [J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2], *platform.ms, platform.m]
    names = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
    return {f"{name}_platform": float(value) for name, value in zip(names, ten, strict=True)}


def robot_on(cables: CableSet, pose: np.ndarray = POSE) -> Mechanism:
    """A free platform on locked cables, assembled at a pose."""
    robot = load_robot("cable4")
    own = tuple(
        Cable(
            f"cable{i + 1}",
            "base",
            cables.D[i],
            cables.axis[i] if cables.radius[i] else None,
            float(cables.radius[i]),
            "platform",
            cables.A[i],
            float(length),
        )
        for i, length in enumerate(lengths(cables, pose[:3], rotation(pose[3:])))
    )
    start = dict(
        zip(("pose_x", "pose_y", "pose_z", "pose_qw", "pose_qx", "pose_qy", "pose_qz"), pose, strict=True)
    )
    return replace(locked(robot), cables=own, start={k: float(v) for k, v in start.items()})


def paper_robot() -> tuple[CableSet, Platform, LockedCables, np.ndarray]:
    """Oracle and dynid's robot with the lengths of POSE."""
    cables, platform = cable4(), platform10()
    robot = LockedCables(robot_on(cables), parameters(platform))
    return cables, platform, robot, lengths(cables, POSE[:3], rotation(POSE[3:]))
