"""The kernels that work with a robot needs, loaded or compiled while it begins."""

from __future__ import annotations

from dynid.common.ahead import prepare
from dynid.mechanism.mechanism import Mechanism

_SWEEP = ("motion.kernels:sweep",)
_DECIMATE = ("conditioning.kernels:decimate",)
_CLOSURE = ("kinematics.closure_kernels:closure_values",)
_TRACKING = ("kinematics.newton_kernels:motion_rates", "kinematics.newton_kernels:march")
_BIAS = ("kinematics.closure_kernels:closure_bias",)
_ROWS = ("kinematics.kernels:move_bodies", "regressor.kernels:fill_rows")
_ENERGY = ("regressor.kernels:energy_rows",)


def prepare_kernels(mechanism: Mechanism, *, tracked: bool = True, logs: bool = False) -> None:
    """Load or compile kernels for the rows of this robot.

    Args:
        mechanism: The robot.
        tracked: Also for the poses of measured coordinates, where the robot has loops.
        logs: Also for signals of logs.
    """
    if mechanism.is_closed or logs:  # a few states of a tree need no kernels
        prepare(kernel_names(mechanism, tracked, logs))


def kernel_names(mechanism: Mechanism, tracked: bool, logs: bool) -> tuple[str, ...]:
    """In the order of their first use."""
    closed = mechanism.is_closed
    return (
        *_SWEEP * logs,
        *_CLOSURE * closed,
        *_TRACKING * (closed and tracked),
        *_BIAS * closed,
        *_ENERGY * (mechanism.model == "energy"),
        *_DECIMATE * logs,
        *_ROWS,
    )
