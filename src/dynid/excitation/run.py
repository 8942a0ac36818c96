"""A whole run of the robot: approach from rest at a safe pose, the exciting motion, and the way back.

A move goes straight in the moved coordinates, all of them together, as between the points of a
`PointToPoint` motion. It begins and ends at rest without a jump of the acceleration, and is never faster than
a part of the limits and of the exciting motion itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.excitation.export import SampledTrajectory
from dynid.excitation.optimal.paths import RobotStates, states_along
from dynid.excitation.plan import Plan, start_pose
from dynid.excitation.random_motion import PointToPoint, moves
from dynid.excitation.series import QUINTIC_PEAKS
from dynid.kinematics.sensors import measured_motion

APPROACH, MOTION, BETWEEN, RETURN = "approach", "motion", "between", "return"
_SHARE = 0.5  # of the limits, and of the peaks of the exciting motion, that a move uses
_SLOWEST = 0.1  # of the limits: coordinates that the exciting motion hardly moves
_LEAST = 1.0  # s
_CHECKED = 201  # samples of a move on which limits are checked
_SLOWER = (1.0, 2.0, 4.0)  # times the shortest duration, tried in turn: efforts fall with speed
_SAME = 1e-9  # rad or m
_FOLLOWED = 200.0  # Hz: least rate at which loops are followed

Rates = Callable[[Float[Array, "n"]], Float[Array, "4 n j"]]


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a run: its mark, its duration in [s], and its motion."""

    mark: str
    duration: float
    rates: Rates


@dataclass(frozen=True, eq=False)
class Run:
    """Approach, exciting motion and return.

    Attributes:
        home: Pose of the moved coordinates at which it begins and ends, shape (j,), in [rad] or [m].
    """

    plan: Plan
    parts: tuple[Part, ...]
    home: Float[Array, "j"]

    @property
    def duration(self) -> float:
        """In [s]."""
        return float(sum(part.duration for part in self.parts))

    def times(self, rate: float) -> Float[Array, "n"]:
        """Samples at a rate [Hz], from the begin to the end."""
        return np.arange(int(np.ceil(self.duration * rate - 1e-6)) + 1) / rate

    def states(self, t: Float[Array, "n"]) -> RobotStates:
        """The whole robot at the times t [s], loops closed."""
        index, begins = self._places(t)
        rates = np.empty((4, len(t), len(self.home)))
        for k, part in enumerate(self.parts):
            at = index == k
            rates[:, at] = part.rates(np.minimum(t[at] - begins[k], part.duration))
        states = states_along(self.plan.path, rates, t)
        if states is None:
            raise InputError("the run violates the loop closure", remedy="give another pose by --home")
        return states

    def sampled(self, rate: float) -> SampledTrajectory:
        """Measured joints at a rate [Hz]; loops are followed at smaller steps, which cannot change branch."""
        t, robot = self.times(rate), self.plan.mechanism
        finer = max(1, int(np.ceil(_FOLLOWED / rate))) if robot.is_closed else 1
        followed = self.states(np.arange((len(t) - 1) * finer + 1) / (rate * finer))
        motion = (x[::finer] for x in self.plan.robot_motion(followed))
        q, dq, ddq = measured_motion(robot, *motion)
        marks = tuple(self.parts[k].mark for k in self._places(t)[0].tolist())
        return SampledTrajectory(robot.measured_positions, t, q, dq, ddq, marks)

    def _places(self, t: Float[Array, "n"]) -> tuple[Int[Array, "n"], Float[Array, "p"]]:
        """Part of every sample, and begin of every part in [s]; a joint sample belongs to the later part."""
        begins = np.concatenate([[0.0], np.cumsum([part.duration for part in self.parts])[:-1]])
        return np.searchsorted(begins, t + 1e-9, side="right") - 1, begins


def run_of(
    plan: Plan, x: Float[Array, "m j"], home: tuple[float, ...], repeats: int, rate: float
) -> tuple[Run, tuple[Notice, ...]]:
    """The run around a motion.

    Args:
        x: Coefficients of the motion.
        home: Pose at which it begins, one value per moved coordinate; empty: the start pose of the
            description (zero where it gives none), else the middle of the ranges, else the motion itself.
        repeats: Periods of the motion.
        rate: Of the recording, in [Hz]: the motion begins on a sample.
    """
    period = plan.family.period
    first, last = (plan.family.matrices(np.array([0.0, period]))[0] @ x)[:]
    peaks = np.abs(plan.family.matrices(np.linspace(0.0, period, 801)) @ x).max(axis=1)
    mover = _Mover(plan, peaks, rate)
    start, way, back, notices = _ways(plan, mover, home, first, last)
    parts = [] if way is None else [Part(APPROACH, way.period, way.rates)]
    between = None if np.abs(last - first).max() < _SAME else mover.move(last, first)
    for k in range(repeats):
        if k and between is not None:
            parts.append(Part(BETWEEN, between.period, between.rates))
        parts.append(Part(MOTION, period, lambda t: plan.family.matrices(t) @ x))
    parts += [] if back is None else [Part(RETURN, back.period, back.rates)]
    return Run(plan, tuple(parts), start), notices


def _ways(
    plan: Plan,
    mover: _Mover,
    home: tuple[float, ...],
    first: Float[Array, "j"],
    last: Float[Array, "j"],
) -> tuple[Float[Array, "j"], PointToPoint | None, PointToPoint | None, tuple[Notice, ...]]:
    """Pose of rest, the moves from it to the motion and back, and what the user must know about it."""
    middle, missed = 0.5 * (plan.box.low[0] + plan.box.high[0]), ""
    for k, start in enumerate(
        (_given(plan, home),) if home else (start_pose(plan.path, plan.problem.blocks.box), middle)
    ):
        way = mover.move(start, first)
        back = None if way is None else mover.move(last, start)
        missed = missed or mover.missed
        if way is not None and back is not None:
            return start, way, back, (notice("home-moved", missed=missed),) if k else ()
    if home:
        raise InputError(
            f"no move from the pose of --home to the motion and back keeps the limits: {missed}",
            file=plan.mechanism.file,
            place="home",
            remedy="give another pose",
        )
    return first, None, mover.move(last, first), (notice("no-approach", missed=missed),)


class _Mover:
    """Makes moves within all limits; `missed` says which limit the last refused move violates."""

    def __init__(self, plan: Plan, peaks: Float[Array, "4 j"], rate: float) -> None:
        self._plan, self._rate, self.missed = plan, rate, ""
        most = np.minimum(plan.box.high, -plan.box.low)[1:]
        reached = peaks[1:3]
        usual = np.where(np.isfinite(most[:2]), most[:2], reached.max(axis=1, keepdims=True))
        most[:2] = np.minimum(most[:2], np.maximum(reached, _SLOWEST * usual))
        self._most = _SHARE * most

    def move(self, begin: Float[Array, "j"], end: Float[Array, "j"]) -> PointToPoint | None:
        """A move as fast as its limits allow; None if it violates one at any speed."""
        size = np.abs(end - begin)
        shortest = max(
            float(((peak * size / self._most[k]) ** (1.0 / (k + 1))).max())
            for k, peak in enumerate(QUINTIC_PEAKS)
        )
        for slower in _SLOWER:
            duration = np.ceil(max(slower * shortest, _LEAST) * self._rate) / self._rate
            trial = moves(np.array([begin, end]), np.array([duration]))
            self.missed = self._violated(trial)
            if not self.missed:
                return trial
        return None

    def _violated(self, move: PointToPoint) -> str:
        """The limit that a move violates most; empty if none."""
        plan, t = self._plan, np.linspace(0.0, move.period, _CHECKED)
        rates = move.rates(t)
        q = rates[0]
        outside = np.maximum(q - plan.box.high[0], plan.box.low[0] - q).max(axis=0)
        if outside.max() > _SAME:
            return f"position of '{plan.path.names[int(np.argmax(outside))]}'"
        states = states_along(plan.path, rates, t)
        if states is None:
            return "loop closure"
        if plan.exact is None:
            return ""
        excess = plan.exact.excess(states).max(axis=1)
        return plan.exact.sides[int(np.argmax(excess))].text if excess.max() > 0.0 else ""


def check_home(plan: Plan, home: tuple[float, ...]) -> None:
    """Refuse a pose of rest with a wrong number of values, or outside the ranges: before a long search."""
    if not home:
        return
    pose, low, high = _given(plan, home), plan.box.low[0], plan.box.high[0]
    for name, value, least, most in zip(plan.path.names, pose, low, high, strict=True):
        if not least <= value <= most:
            raise InputError(
                f"the pose of --home has '{name}' at {value:g}, outside its range {least:.4g} to {most:.4g}",
                file=plan.mechanism.file,
                place="home",
                remedy="give another pose, in rad or m",
            )


def _given(plan: Plan, home: tuple[float, ...]) -> Float[Array, "j"]:
    if len(home) != len(plan.path.names):
        raise InputError(
            f"{len(home)} values of --home do not match {len(plan.path.names)} moved coordinates",
            place="home",
            remedy=f"give one value for each of {', '.join(plan.path.names)}",
        )
    return np.array(home)
