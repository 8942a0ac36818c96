"""Through dead points of the measured joints: the branch on which the other joints keep their velocities.

At a dead point the measured joints are at an extreme, two branches of the closed pose meet, and measured
positions alone do not tell which one follows. A robot has inertia: with x the joints that are not measured,
lines fitted to x before and after the singular stretch agree on the true branch,

    cost = |x_after - x_before| at its middle + T |v_after - v_before|,      T its length

and on the other branch v changes its sign. The poses inside the stretch are excluded: there noise decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.kinematics.tracking import same_pose
from dynid.kinematics.tree import PRISMATIC, REVOLUTE

if TYPE_CHECKING:
    from dynid.projection.kinematics import ClosedKinematics

Span = tuple[int, int]
_FEWEST, _MOST = 8, 64  # samples of a line
_LENGTHS = 2.0  # of the stretch: the line is as long as this, so that noise of x is averaged
_NEAR = (
    0.5  # rad or m: branches that meet at a dead point are this near beside it, other assembly modes are not
)
_APART = 0.02  # s: singular samples closer in time belong to one stretch


def pass_dead_points(
    kinematics: ClosedKinematics,
    dt: float,
    wanted: Float[Array, "n w"],
    pose: Float[Array, "n q"],
    singular: Bool[Array, "n"],
) -> tuple[Float[Array, "n q"], list[Span]]:
    """Poses on the smooth branch, and the stretches (first, end) at dead points; no others change.

    Args:
        dt: Time between samples in [s].
        wanted: Measured coordinates, [rad] or [m].
        pose: Tracked poses.
        singular: Whether the branch that follows a pose is uncertain.
    """
    passed: list[Span] = []
    spans = _stretches(singular, max(1, round(_APART / dt)))
    ends = [*(b for _, b in spans[1:]), len(wanted)]
    for (a, b), end in zip(spans, ends, strict=True):
        start = None
        if a >= _FEWEST and len(wanted) - b >= _FEWEST:
            start = _continued(kinematics, dt, wanted, pose, (a, b))
        if start is not None:
            middle = (a + b) // 2
            pose[a:middle], pose[middle:b] = pose[a - 1], start
            pose[b:end] = _march(kinematics, start, wanted[b:end])[0]
            passed.append((a, b))
        elif passed:  # on the branch taken before
            pose[a:end] = _march(kinematics, pose[a - 1], wanted[a:end])[0]
    return pose, passed


def _march(
    kinematics: ClosedKinematics, start: Float[Array, "q"], wanted: Float[Array, "n w"]
) -> tuple[Float[Array, "n q"], Bool[Array, "n"]]:
    return kinematics.tracker.march(start[None], np.zeros(1, dtype=np.int64), wanted)


def _continued(
    kinematics: ClosedKinematics, dt: float, wanted: Array, pose: Array, span: Span
) -> Float[Array, "q"] | None:
    """The pose after a dead point; None where no two branches meet in this stretch."""
    a, b = span
    size = int(np.clip(_LENGTHS * (b - a), _FEWEST, _MOST))
    low, high = max(0, a - size), min(len(wanted), b + size)
    places = _scalars(kinematics)
    before = _line(dt, np.arange(low, a), pose[low:a, places])
    ahead = np.repeat(pose[a - 1 : a], 2, axis=0)
    ahead[1, places] = before[0] + before[1] * dt * b
    begin, done = kinematics.tracker.march_one(ahead, np.repeat(wanted[b : b + 1], 2, axis=0))
    if not done.all() or same_pose(kinematics.assembly.closure, begin[:1], begin[1:])[0]:
        return None
    if np.abs(begin[1] - begin[0])[places].max(initial=0.0) > _NEAR:
        return None
    costs = []
    for branch in begin:
        after, fine = _march(kinematics, branch, wanted[b:high])
        x, v = _line(dt, np.arange(b, high), after[:, places])
        T, middle = dt * (b - a), 0.5 * dt * (a + b)
        apart = np.abs(x + v * middle - before[0] - before[1] * middle)
        costs.append(float(np.sum(apart + T * np.abs(v - before[1]))) if fine.all() else np.inf)
    return np.asarray(begin[int(np.argmin(costs))])


def _line(dt: float, samples: Int[Array, "k"], x: Float[Array, "k s"]) -> tuple[Array, Array]:
    """Value at t = 0 and slope of each column."""
    t = dt * samples
    mean = t.mean()
    slope = (t - mean) @ (x - x.mean(axis=0)) / float(np.sum((t - mean) ** 2))
    return x.mean(axis=0) - slope * mean, slope


def _scalars(kinematics: ClosedKinematics) -> Int[Array, "s"]:
    """Positions of hinges and slides that are not measured."""
    tree = kinematics.assembly.closure.tree
    scalar = tree.q_start[(tree.kind == REVOLUTE) | (tree.kind == PRISMATIC)]
    return np.setdiff1d(scalar, kinematics.sensors.position)


def _stretches(singular: Bool[Array, "n"], gap: int) -> list[Span]:
    """First sample and end of each singular stretch, those less than `gap` apart joined."""
    spans: list[Span] = []
    for i in np.flatnonzero(singular).tolist():
        if spans and i - spans[-1][1] < gap:
            spans[-1] = (spans[-1][0], i + 1)
        else:
            spans.append((i, i + 1))
    return spans
