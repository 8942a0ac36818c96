"""A first pass over a log of a closed robot: track the branch, and check every pose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.errors import InputError
from dynid.common.notices import Notice, doubt, notice
from dynid.kinematics.assembly import Assembly
from dynid.kinematics.tracking import Tracked
from dynid.kinematics.tree import PRISMATIC, REVOLUTE
from dynid.motion.log import Log
from dynid.motion.motion import Motion
from dynid.motion.position_faults import position_steps, wide_ranges
from dynid.projection.dead_points import Span, pass_dead_points, passages, regular_end
from dynid.projection.misfit import Misfit, beyond

if TYPE_CHECKING:
    from dynid.kinematics.coordinates import States
    from dynid.projection.kinematics import ClosedKinematics

_BLOCK = 16384
_ANCHOR = 256
_THINNED = 16
_FEW_PROBES, _SURELY_LOST = 25, 0.1
_PROBES, _MOST_LOST = 400, 0.01
_SHOWN = 3000
# rad or m between neighbouring samples, beyond what their velocities explain.
_JUMP = 0.05
_APART = 0.02  # s: singular samples closer in time belong to one dead point
_UNUSUAL = 10.0  # of the usual condition number: distinguishes a dead point from a poor choice of sensors
_REMEDY = "check joint zeros, units and signs, the loops' frames, and `start:`"


@dataclass(eq=False)
class Survey:
    """Poses to start from, and the findings of the pass.

    Attributes:
        anchors: Samples whose poses are kept, ascending.
        poses: Their poses, each of shape (n_q,).
        samples: Number of poses checked.
        open_at, singular_at, jumped_at: Times of poses that do not close, of singular ones, and of
            those on another branch than the previous one, in [s].
        largest: Of the closure residuals of poses that close, in [m] or [rad].
        missed_at: Times of poses that close, but contradict redundant sensors, in [s].
        misfit: Errors of redundant sensors; None where there are none. `lost`: the same at excluded poses.
        dead: Samples (first, end) of stretches at dead points, which are excluded.
        dead_at: Times of dead points: singular poses of the measured joints, and passages through one.
        doubtful_at: Times of singular poses, and of those after which the branch is uncertain, in [s].
        loose: Worst condition number, and the coordinate that moves there while the measured ones are fixed.
        shown: Times, closure residuals, distances from singular poses and sensor errors of some samples, one
            row each, for display.
        nearest: Least distance from a singular pose, and its time in [s].
        speeds: Absolute velocities of all coordinates at one sample in `_THINNED`, each shape (n, v).
        tangents: Tangent directions at the anchors, each shape (n, v, d).
        doubts: Refusals of the log that were overridden.
        tracked: Poses of all samples, for later passes.
    """

    anchors: list[int] = field(default_factory=list)
    poses: list[Float[Array, "q"]] = field(default_factory=list)
    samples: int = 0
    open_at: list[float] = field(default_factory=list)
    singular_at: list[float] = field(default_factory=list)
    jumped_at: list[float] = field(default_factory=list)
    largest: float = 0.0
    missed_at: list[float] = field(default_factory=list)
    misfit: Misfit | None = None
    lost: Misfit | None = None
    dead: list[Span] = field(default_factory=list)
    dead_at: list[float] = field(default_factory=list)
    doubtful_at: list[float] = field(default_factory=list)
    loose: tuple[float, str] = (0.0, "")
    shown: list[Float[Array, "k m3"]] = field(default_factory=list)
    nearest: tuple[float, float] = (np.inf, 0.0)
    speeds: list[Float[Array, "n v"]] = field(default_factory=list)
    tangents: list[Float[Array, "n v d"]] = field(default_factory=list)
    doubts: list[Notice] = field(default_factory=list)
    tracked: Tracked = field(default_factory=Tracked)

    def notices(self, log: str) -> tuple[Notice, ...]:
        """Notices about excluded and doubtful poses."""
        remarks = [*self.doubts, *(() if self.misfit is None else self.misfit.notices(log))]
        if left_out := [*self.open_at, *self.missed_at]:
            remarks.append(notice("not-assembled", counted=self._counted(left_out), log=log))
        if self.singular_at:
            remarks.append(notice("singular-poses", counted=self._counted(self.singular_at), log=log))
        if self.dead_at:
            count, first = len(self.dead_at), self.dead_at[0]
            remarks.append(notice("dead-points", log=log, count=count, first=first, joint=self.loose[1]))
        if self.jumped_at:
            remarks.append(self._jumped(log))
        return tuple(remarks)

    @property
    def events(self) -> bool:
        """Whether anything but closed, regular poses on one branch was found."""
        found = self.open_at, self.singular_at, self.jumped_at, self.missed_at, self.dead, self.doubtful_at
        return any((*found, self.doubts))

    def outside(self, spans: Sequence[tuple[float, float]]) -> Survey:
        """What `notices` needs, without findings between some times [s]."""

        def kept(times: Sequence[float]) -> list[float]:
            return [t for t in times if not any(first <= t <= last for first, last in spans)]

        return Survey(
            samples=self.samples,
            open_at=kept(self.open_at),
            singular_at=kept(self.singular_at),
            jumped_at=kept(self.jumped_at),
            missed_at=kept(self.missed_at),
            misfit=self.misfit,
            dead_at=kept(self.dead_at),
            loose=self.loose,
            doubts=self.doubts,
        )

    def uncertain(self, motion: Motion) -> list[Span]:
        """Samples after events that may change the branch; dead points too, unless passed all the time."""
        lost = [*self.jumped_at, *self.open_at]
        for times in ([*lost, *self.dead_at], lost):
            at = np.searchsorted(motion.log.t, times)
            after = [(int(at[a <= at].min(initial=b)), b) for a, b in motion.usable()]
            spans = [(a, b) for a, b in after if a < b]
            if 2 * sum(b - a for a, b in spans) < sum(b - a for a, b in motion.usable()):
                break
        return spans

    def _jumped(self, log: str) -> Notice:
        count, first = len(self.jumped_at), self.jumped_at[0]
        if self.dead_at:
            return notice("assembly-jump", "dead", log=log, count=count, first=first, joint=self.loose[1])
        return notice("assembly-jump", log=log, count=count, first=first)

    def _counted(self, times: list[float]) -> str:
        share = 100.0 * len(times) / max(self.samples, 1)
        return f"{len(times)} poses ({share:.2g} %, the first at t = {min(times):.4g} s)"

    def words(self) -> str:
        """How well the loops close along a log, for the report."""
        text = f"loops closed to {self.largest:.1g} m or rad at {self.samples} poses"
        return text if self.misfit is None else f"{text}; {self.misfit.words()}"

    def nearest_words(self) -> str:
        """How near the log comes to a singular pose of the measured joints, for the report."""
        distance, when = self.nearest
        if not np.isfinite(distance):
            return "not known"
        return (
            f"{distance:.2g} at t = {when:.4g} s (0: the measured joints do not determine the pose; 1: far)"
        )


def survey(kinematics: ClosedKinematics, motion: Motion, checked: bool = False) -> Survey:
    """Track the robot through every usable segment of a log, from the start pose and on one branch.

    Args:
        kinematics: Solver and sensors.
        motion: Along one log.
        checked: The loops are known to close, along nearly the same motion.
    """
    tree = kinematics.assembly.closure.tree
    tally = Survey(tracked=Tracked(len(motion.log.t), len(kinematics.assembly.start), tree.n_v))
    if not checked:
        tally.doubts += _refuse_open(kinematics, motion)
    if kinematics.redundant:
        tally.misfit, tally.lost = kinematics.misfit(), kinematics.misfit()
    for low, high in motion.usable():
        origin, start = kinematics.origin(motion.log, low), low
        while start < high:
            # One sample of overlap, so that a jump between blocks is detected.
            first = max(low, start - 1)
            measured = motion.states(first, min(start + _BLOCK, high))
            pose, done = kinematics.tracker.track(origin, measured[0])
            states = kinematics.judged(pose, done, measured)
            start = min(start + _BLOCK, high)
            if not kinematics.redundant:
                if start < high and (count := regular_end(kinematics, states)) < len(pose):
                    q, dq, ddq = (x[:count] for x in measured)
                    start, measured = first + count, (q, dq, ddq)
                    states = kinematics.judged(pose[:count], done[:count], measured)
                states, dead = pass_dead_points(kinematics, motion.log.dt, measured, states)
                tally.dead += [(first + a, first + b) for a, b in dead]
            origin = _judge(tally, kinematics, motion, first, measured[0], states, origin)
    if not tally.anchors:
        tally.anchors, tally.poses = [0], [kinematics.assembly.start]
    tally.doubts += _refuse_missed(tally, motion)
    return tally


def _judge(
    tally: Survey,
    kinematics: ClosedKinematics,
    motion: Motion,
    first: int,
    wanted: Float[Array, "n w"],
    states: States,
    origin: Float[Array, "q"],
) -> Float[Array, "q"]:
    """Evaluate one block; returns the pose to continue from."""
    from dynid.projection.kinematics import OPEN

    t = motion.log.t[first : first + len(wanted)]
    gaps = kinematics.assembly.gaps(states.q) if states.gaps is None else states.gaps
    closed = gaps < OPEN
    tally.tracked.keep(first, states, gaps)
    tally.samples += len(t)
    tally.open_at += t[~(gaps < kinematics.open)].tolist()
    _judge_sensors(tally, kinematics, t, closed, wanted, states)
    passed = _judge_dead_points(tally, kinematics, motion.log.t, t, closed, gaps, states)
    tally.jumped_at += t[1:][_jumps(kinematics.assembly, motion.log.dt, states)].tolist()
    tally.largest = max(tally.largest, float(gaps[closed].max(initial=0.0)))
    every = max(1, len(motion.log.t) // _SHOWN)
    part = slice((-first) % every, None, every)
    gone = kinematics.sensors.miss(states.q[part], wanted[part])
    distance = _distance(states)
    tally.shown.append(np.column_stack([t[part], gaps[part], distance[part], gone]))
    if len(distance) and distance.min() < tally.nearest[0]:
        tally.nearest = (float(distance.min()), float(t[int(np.argmin(distance))]))
    inside = np.zeros(len(t), dtype=bool)
    begins = [*(b - first for _, b in tally.dead if 0 <= b - first < len(t)), *(passed + 1).tolist()]
    for a, b in tally.dead:
        inside[max(0, a - first) : max(0, b - first)] = True
    at = np.flatnonzero(closed & ~inside)
    if not len(at):
        return origin
    # Tracking starts again after each dead point.
    wished = np.unique([*range(0, at[-1] + 1, _ANCHOR), *(b for b in begins if b <= at[-1])])
    kept = np.unique(at[np.searchsorted(at, wished)])
    tally.anchors += (first + kept).tolist()
    tally.poses += list(states.q[kept])
    tally.tangents.append(states.N[kept])
    tally.speeds.append(np.abs(states.dq[at[::_THINNED]]))
    return np.asarray(states.q[at[-1]])


def _distance(states: States) -> Float[Array, "n"]:
    """1 over the condition number: near a dead point, about the distance from it in [rad] or [m]."""
    if states.condition is None:
        return np.ones(len(states.q))
    return np.asarray(1.0 / np.maximum(np.nan_to_num(states.condition, nan=np.inf), 1.0))


def _judge_sensors(
    tally: Survey,
    kinematics: ClosedKinematics,
    t: Float[Array, "n"],
    closed: Bool[Array, "n"],
    wanted: Float[Array, "n w"],
    states: States,
) -> None:
    """Errors of redundant sensors at the poses that close."""
    if tally.misfit is None or tally.lost is None:
        return
    miss = kinematics.sensors.miss(states.q, wanted)
    lost = closed & beyond(miss, kinematics.most_missed)
    kept = closed & ~lost
    tally.misfit.add(t[kept], wanted[kept], miss[kept], states.N[kept], _THINNED)
    tally.lost.add(t[lost], wanted[lost], miss[lost], states.N[lost])
    tally.missed_at += t[lost].tolist()


def _judge_dead_points(
    tally: Survey,
    kinematics: ClosedKinematics,
    times: Float[Array, "l"],
    t: Float[Array, "n"],
    closed: Bool[Array, "n"],
    gaps: Float[Array, "n"],
    states: States,
) -> Int[Array, "p"]:
    """Singular poses, and passages through one between two samples; those close together are one.

    Returns:
        Samples before a passage.
    """
    condition = np.zeros(len(t)) if states.condition is None else states.condition
    singular = closed & ~(condition < kinematics.singular)
    for a, b in tally.dead:
        singular |= (t >= times[a]) & (t <= times[b - 1])
    tally.singular_at += t[singular].tolist()
    # Noise moves the measured positions beyond a dead point, where no pose has them.
    beyond_it = ~closed & (gaps < kinematics.open)
    tally.singular_at += t[beyond_it].tolist()
    singular = singular | beyond_it
    M = states.N[:, kinematics.sensors.velocity]
    passed = np.append(passages(M, states.N) & closed[1:] & closed[:-1], False)
    last = tally.dead_at[-1] if tally.dead_at else -np.inf
    tally.doubtful_at += t[singular | passed | (closed & ~(condition < kinematics.ambiguous))].tolist()
    for i in np.flatnonzero(singular | passed).tolist():
        if t[i] - last > _APART:
            tally.dead_at.append(float(t[i]))
        last = float(t[i])
        if condition[i] > tally.loose[0]:
            tally.loose = (float(condition[i]), _loosest(kinematics, M[i], states.N[i]))
    return np.flatnonzero(passed)


def _loosest(kinematics: ClosedKinematics, M: Float[Array, "m d"], N: Float[Array, "v d"]) -> str:
    """The coordinate that moves most while the measured ones hardly move."""
    if not np.isfinite(M).all():
        return kinematics.assembly.mechanism.coordinates[0]
    robot = kinematics.assembly.mechanism
    moves = np.abs(N @ np.linalg.svd(M)[2][-1])
    # A motor is easy to equip with an encoder: it is named if it moves nearly as much.
    driven = np.abs(robot.actuator_map).max(axis=0, initial=0.0) > 0.0
    return robot.coordinates[int(np.argmax(np.where(driven, 3.0, 1.0) * moves))]


def _jumps(assembly: Assembly, dt: float, states: States) -> Bool[Array, "m"]:
    """Whether each pose is farther from the previous one than the velocities of both explain."""
    tree = assembly.closure.tree
    scalar = (tree.kind == REVOLUTE) | (tree.kind == PRISMATIC)
    moved = np.diff(states.q[:, tree.q_start[scalar]], axis=0)
    speed = states.dq[:, tree.v_start[scalar]]
    excess = np.abs(moved - 0.5 * dt * (speed[1:] + speed[:-1])).max(axis=1, initial=0.0)
    return np.asarray((excess > _JUMP) & states.fine[1:] & states.fine[:-1])


def _refuse_open(kinematics: ClosedKinematics, motion: Motion) -> list[Notice]:
    """Refuse a log that does not close the loops, before the work starts."""
    log = motion.log
    pieces = motion.usable()
    # Where every run has its own initial pose, each is probed from there.
    alike = [pieces] if not log.origins else [[piece] for piece in pieces]
    alike = alike if pieces else []
    # Poses that do not close are tried again slowly: where a tenth of a few are such, no more are needed.
    for most in (_FEW_PROBES, _PROBES):
        at, gaps, names = _probed(kinematics, log, alike, most)
        lost = np.flatnonzero(~(gaps < kinematics.open))
        if len(lost) > _SURELY_LOST * len(gaps):
            break
    if not len(lost) or len(lost) <= _MOST_LOST * len(gaps):
        return []
    first = int(lost[0])
    text = (
        f"the measured joints do not close the loops: at sample {at[first]} (t = {log.t[at[first]]:.4g} s)"
        f" '{names[first]}' is off by {gaps[first]:.3g} {kinematics.unit(names[first])}, and"
        f" {100 * len(lost) / len(gaps):.2g} % of the samples are off"
    )
    cause = _cause(kinematics, motion, at[lost]) if names[first] in log.position_names else ""
    units = {wide.unit for wide in wide_ranges(log, kinematics.assembly.mechanism)}
    cause = f". Likely cause: positions in {' and '.join(sorted(units))}" if units else cause
    return [doubt(InputError(f"{text}{cause}", file=log.file, remedy=_REMEDY))]


def _probed(
    kinematics: ClosedKinematics, log: Log, alike: Sequence[Sequence[Span]], most: int
) -> tuple[Int[Array, "p"], Float[Array, "p"], list[str]]:
    """Samples spread over the pieces of a log, at most so many of each; closure errors there, and of what."""
    at, gaps, names = [np.zeros(0, dtype=int)], [np.zeros(0)], list[str]()
    for group in alike:
        probes = [np.linspace(a, b - 1, min(most, b - a)).astype(int) for a, b in group]
        at.append(np.unique(np.concatenate(probes)))
        off, of = kinematics.gaps(log.q[at[-1]], kinematics.origin(log, group[0][0]))
        gaps.append(off)
        names += of
    return np.concatenate(at), np.concatenate(gaps), names


def _cause(kinematics: ClosedKinematics, motion: Motion, at: Int[Array, "p"]) -> str:
    """Likely cause of the errors of redundant sensors at some samples."""
    log = motion.log
    pose = kinematics.assembly.follow(
        log.q[at], kinematics.sensors, origin=kinematics.origin(log, int(at[0]))
    )
    N = kinematics.assembly.tangent(kinematics.assembly.closure.values(pose).A)
    misfit = kinematics.misfit()
    misfit.add(log.t[at], log.q[at], kinematics.sensors.miss(pose, log.q[at]), N)
    return f". {_stepped(log) or misfit.cause()}"


def _stepped(log: Log) -> str:
    """Steps of encoders, in words; empty where there are none."""
    return "; ".join(f"Likely cause: {notice.text}" for notice in position_steps(log))


def _refuse_missed(tally: Survey, motion: Motion) -> list[Notice]:
    """Refuse a log in which redundant sensors strongly contradict the loops."""
    lost = tally.lost
    if lost is None or lost.count <= _MOST_LOST * tally.samples:
        return []
    size, sensor, when = lost.worst
    name = lost.names[sensor]
    error = InputError(
        f"the measured joints do not close the loops: '{name}' is off by up to {size:.3g} {lost.units[name]}"
        f" (t = {when:.4g} s), and {100 * lost.count / tally.samples:.2g} % of the samples are off, the first"
        f" at t = {tally.missed_at[0]:.4g} s. {_stepped(motion.log) or lost.cause()}",
        file=motion.log.file,
        remedy=_REMEDY,
    )
    return [doubt(error)]
