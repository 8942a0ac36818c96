"""A planned motion in 3-D before it runs: the whole run, with limits, floor and distances between bodies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.display.scene import POSES, poses_along, robot_shapes
from dynid.excitation.optimal.paths import RobotStates
from dynid.report.robot_view import motion_view

if TYPE_CHECKING:
    from markupsafe import Markup

    from dynid.excitation.excite import Excitation
    from dynid.excitation.plan import Plan


def run_view(excitation: Excitation) -> Markup | None:
    """The run from rest to rest. Capsules are those that the collision check uses."""
    plan, run = excitation.plan, excitation.run
    t = np.linspace(0.0, run.duration, 2 * POSES)
    states = run.states(t)
    robot = replace(plan.mechanism, capsules=plan.path.mechanism.capsules)
    shapes = robot_shapes(robot)
    ends = np.cumsum([part.duration for part in run.parts])
    drawn = {
        "log": plan.mechanism.name,
        "t": t,
        **poses_along(robot, plan.robot_motion(states)[0]),
        "use": _use(plan, states, shapes["joints"]),
        "phases": [(part.mark, float(end)) for part, end in zip(run.parts, ends, strict=True)],
        "near": [(pair.bodies, pair.which, pair.distance) for pair in plan.check.along(states).values()],
    }
    floor, what = plan.check.floor, "the planned run of"
    return motion_view(shapes, [drawn], what=what, floor=floor.height, assumed=floor.assumed)


def _use(plan: Plan, states: RobotStates, joints: list[dict[str, Any]]) -> dict[str, Float[Array, "n"]]:
    """Used share of the tightest limit of each joint, its drive included, in percent."""
    by_name: dict[str, list[Float[Array, "n"]]] = {}
    rates = states.moved if states.third is None else (*states.moved, states.third)
    for order, values in enumerate(rates):
        low, high = plan.box.low[order], plan.box.high[order]
        for j, name in enumerate(plan.path.names):
            if np.isfinite(high[j] - low[j]) and high[j] > low[j]:
                share = (2.0 * values[:, j] - high[j] - low[j]) / (high[j] - low[j])
                by_name.setdefault(name, []).append(np.abs(share))
    if plan.exact is not None:
        for side, excess in zip(plan.exact.sides, plan.exact.excess(states), strict=True):
            by_name.setdefault(side.name, []).append(1.0 + excess)
    uses = {}
    for joint in joints:
        names = [*joint["efforts"], *joint["coordinates"]]
        shares = [share for name in names for share in by_name.get(name, ())]
        if shares:
            uses[names[0]] = 100.0 * np.max(shares, axis=0)
    return uses
