"""All coordinates of a robot from the measured ones along a log, tree or closed."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from operator import attrgetter, is_
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.errors import InputError
from dynid.kinematics.assembly import LOST, Assembly, assembly_of
from dynid.kinematics.coordinates import CoordinateMap, Measured, States, coordinate_map
from dynid.kinematics.sensors import Sensors, sensors_of
from dynid.kinematics.tracking import Tracked, Tracker
from dynid.mechanism.description import doubt_of
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import position_unit
from dynid.motion.log import Log
from dynid.projection.misfit import Misfit, beyond, linear_within, sensor_noise

if TYPE_CHECKING:
    from dynid.motion.motion import Motion
    from dynid.projection.survey import Survey

OPEN = 1e-8  # m or rad: a pose that leaves more than this open is not assembled
# Condition number of the map from the motion to the measured coordinates: beyond it encoder noise of 1e-5
# rad or m moves unmeasured joints by more than 1e-2. With noise sigma the limit is lower: at a distance x
# from a dead point the measured coordinate is about x^2 / 2 from its extreme, and the condition number is
# 1 / x; where x^2 / 2 < 5 sigma both branches fit. Ordinary robots stay below `_POOR` at all poses, and
# below `_REGULAR` at most of them.
SINGULAR, _POOR, _REGULAR = 1e3, 150.0, 50.0
# rad or m: encoders, elastic links and rounded geometry stay below, a wrong zero does not.
MISFIT = 0.02
# The same where dimensions or zeros are uncertain: millimetres are multiplied near singular poses.
MISFIT_UNCERTAIN = 0.1
_SIGMAS = 5.0  # a sensor with a larger standard deviation may differ by so many of them

_KNOWN: WeakKeyDictionary[Motion, tuple[Mechanism, CoordinateMap | ClosedKinematics]] = WeakKeyDictionary()
_ALONG: WeakKeyDictionary[Log, dict[tuple[object, ...], ClosedKinematics]] = WeakKeyDictionary()
_MOST_KEPT = 8  # of a log: as many as there are filters to compare
_moves = attrgetter("t", "q", "dq", "ddq", "segments", "valid", "origins", "position_names", "name", "file")


class ClosedKinematics:
    """A closed mechanism: every joint from the measured ones through the loops.

    A first pass over the log (`survey`) tracks the branch from the first sample to the last, checks
    every pose, and keeps poses at regular intervals: `states` starts at the nearest of them.

    Attributes:
        speeds: Absolute velocities of all coordinates at some samples of the log, shape (k, v).
        noise: Standard deviation of each measured coordinate, shape (m,), in [rad] or [m].
        blur: The largest of them after the low-pass of the log.
        singular, ambiguous: Condition numbers beyond which a pose is excluded, and beyond which the
            following branch is uncertain.
        open: Closure error above which measured positions contradict the loops, in [m] or [rad].
        doubtful_at: Times of dead points, and of poses after which the branch is uncertain, in [s].
        excluded: Ranges of samples that are not used.
        doubted: Whether a refusal of the log was overridden.
        anchors: Samples whose poses are kept, shape (s,).
        tangents: Tangent directions at the poses kept, shape (s, v, d).
        labels: Names of the measured coordinates.
    """

    def __init__(self, mechanism: Mechanism, motion: Motion, checked: bool = False) -> None:
        from dynid.projection.survey import survey

        self.assembly: Assembly = assembly_of(mechanism)
        self.sensors: Sensors = sensors_of(
            mechanism, motion.log.position_names, _weights(mechanism, motion.log.position_names)
        )
        self.tracker = _tracker(self.assembly, self.sensors, mechanism)
        self.labels = tuple(mechanism.coordinates[i] for i in self.sensors.velocity)
        self._units = {name: position_unit(mechanism, (name,)) for name in self.labels}
        self._has_origins = bool(motion.log.origins)
        self.noise = sensor_noise(mechanism, motion.log, self.sensors)
        self._linear = np.inf  # condition number beyond which a doubted description moves poses not linearly
        self._set_limits(motion)
        most = MISFIT_UNCERTAIN if mechanism.uncertain else MISFIT
        self.most_missed = np.maximum(most, _SIGMAS * self.noise)
        # Beyond a dead point no pose has the measured positions: it misses them by their noise.
        self.open = max(OPEN, _SIGMAS * float(self.noise.max(initial=0.0)))
        tally = survey(self, motion, checked)
        self.doubted = bool(tally.doubts)
        self.doubtful_at = np.array(tally.doubtful_at)
        self.excluded: tuple[tuple[int, int], ...] = ()
        self._tally = tally.outside(())
        self.notices = (*self.assembly.notices, *tally.notices(motion.log.name))
        self.choices = {"closure": tally.words(), "distance to singular poses": tally.nearest_words()}
        self._dead, self._calm = tuple(tally.dead), not tally.events
        self._tracked, self._near = tally.tracked, Tracked()
        self.anchors, self._poses = np.array(tally.anchors), np.array(tally.poses)
        self._shown = np.concatenate(tally.shown) if tally.shown else np.zeros((0, 3 + len(self.labels)))
        self._doubt_near_singular(doubt_of(mechanism), tally, motion)
        none = np.zeros((0, len(mechanism.coordinates), self.assembly.dof))
        self.tangents = np.concatenate([none, *tally.tangents])
        self.speeds = np.concatenate([none[:, :, 0], *tally.speeds])

    def _set_limits(self, motion: Motion) -> None:
        """How near singular poses a motion may come, by the noise that its low-pass leaves."""
        left = 1.0 if motion.plan.cutoff is None else min(1.0, 2.0 * motion.plan.cutoff * motion.log.dt)
        self.blur = float(self.noise.max(initial=0.0)) * np.sqrt(left)
        two_branches = 1.0 / np.sqrt(10.0 * max(self.blur, 1e-300))
        self.singular, self.ambiguous = (float(np.clip(two_branches, x, SINGULAR)) for x in (_POOR, _REGULAR))
        self.singular = min(self.singular, self._linear)

    def _doubt_near_singular(self, doubt: float, tally: Survey, motion: Motion) -> None:
        """Exclude poses that a description off by its doubt does not give linearly, or on their branch."""
        if doubt == 0.0 or self.redundant or not len(self._shown):
            return
        self._linear = linear_within(self._shown[:, 2], doubt)
        self.singular = min(self.singular, self._linear)
        why = f"nearer than {1.0 / self.singular:.2g} excluded, dimensions are known to {doubt:.2g} m or rad"
        self.choices["distance to singular poses"] += f"; {why}"
        self._dead = (*self._dead, *tally.uncertain(motion))

    def nears_singular(self, doubt: float) -> bool:
        """Whether a description off by so much [m, rad] moves some pose by more than its derivative says."""
        x = self._shown[:, 2] if not self.redundant else np.zeros(0)
        return len(x) > 0 and bool(np.min(x) * linear_within(x, doubt) < 1.0)

    def refiltered(self, motion: Motion) -> ClosedKinematics | None:
        """The same along the same log with another filter; None where that needs a survey of its own.

        Poses differ by what the filters leave of the noise: those known are corrected. What was surveyed,
        in words too, is that of the first filter.
        """
        if not self._calm or not self._tracked.count:
            return None
        other = copy(self)
        other._set_limits(motion)
        other._tracked, other._near = Tracked(), self._tracked
        return other

    def near(self, mechanism: Mechanism) -> ClosedKinematics:
        """The same of a robot whose dimensions differ by little: its poses are tracked from these."""
        other = copy(self)
        other.assembly = assembly_of(mechanism, near=self.assembly.mechanism)
        if other.assembly.dof != self.assembly.dof:
            raise InputError(f"with these dimensions '{mechanism.name}' has other freedoms")
        other.tracker = _tracker(other.assembly, self.sensors, mechanism)
        other._tracked, other._near = Tracked(), self._tracked if self._tracked.count else self._near
        return other

    @property
    def redundant(self) -> bool:
        """Whether there are more sensors than degrees of freedom: they can contradict each other."""
        return self.sensors.count > self.assembly.dof

    def exclude(self, ranges: Sequence[tuple[int, int]], log: Log) -> None:
        """Do not use some ranges of samples; what was noticed there no longer matters."""
        self.excluded = tuple(ranges)
        spans = [(float(log.t[first]), float(log.t[end - 1])) for first, end in ranges]
        self.notices = (*self.assembly.notices, *self._tally.outside(spans).notices(log.name))

    def misfit(self) -> Misfit:
        """An empty record of sensor errors."""
        return Misfit(self.sensors, self.labels, self._units, self.noise)

    def unit(self, name: str) -> str:
        """Of a measured coordinate: rad or m; for closures it may be either."""
        return self._units.get(name, "m or rad")

    def states(self, start: int, measured: Measured, rows: Int[Array, "k"] | slice = slice(None)) -> States:
        """All coordinates from the measured ones of samples start, start + 1, ..., or of some of these."""
        wanted = measured[0]
        kept = self.kept_states(start, measured, rows, with_directions=True)
        if kept is not None:
            return kept
        q, dq, ddq = (x[rows] for x in measured)
        known = self._tracked.of(start, start + len(wanted), OPEN)
        if known is not None:
            pose, gaps = (x[rows] for x in known)
            states = self.judged(pose.copy(), np.ones(len(pose), dtype=bool), (q, dq, ddq), gaps)
        else:
            pose, done = self._marched(start, wanted)
            states = self.beside(pose[rows], done[rows], (q, dq, ddq))
        sample = np.arange(start, start + len(wanted))[rows]
        for low, high in (*self._dead, *self.excluded):
            states.fine[(low <= sample) & (sample < high)] = False
        return states

    def kept_states(
        self,
        start: int,
        measured: Measured,
        rows: Int[Array, "k"] | slice = slice(None),
        with_directions: bool = False,
    ) -> States | None:
        """The same where the survey has met no singular or open pose, from its poses and rates; else None.

        They are not to be changed. N has no column unless directions are wanted, which need regular pivots.
        """
        wanted, stop = measured[0], start + len(measured[0])
        known = self._tracked.of(start, stop, OPEN) if self._calm else None
        if known is None or self.excluded:
            return None
        pose, gaps, dq, ddq, condition = (x[rows] for x in (*known, *self._tracked.rates(start, stop)))
        fine = condition < self.singular
        if self.redundant:
            fine &= ~beyond(self.sensors.miss(pose, wanted[rows]), self.most_missed)
        N = np.empty((*dq.shape, 0))
        if with_directions:
            N, left = self.tracker.tangents(pose, dq)
            if not np.all(left < LOST):
                return None
        return States(pose, dq, ddq, N, fine, condition, gaps)

    def _marched(
        self, start: int, wanted: Float[Array, "n w"]
    ) -> tuple[Float[Array, "n q"], Bool[Array, "n"]]:
        """Poses from those of the survey, and whether each converged."""
        close = self._near.of(start, start + len(wanted), np.inf)
        if close is not None:
            return self.tracker.march_one(close[0], wanted)
        at = int(np.searchsorted(self.anchors, start, side="right")) - 1
        stop = int(np.searchsorted(self.anchors, start + len(wanted), side="left"))
        ahead = np.arange(at + 1, max(at + 1, stop))
        begin, _ = self.tracker.follow(self._poses[max(at, 0)], wanted[:1])
        first = np.concatenate([[0], self.anchors[ahead] - start]).astype(np.int64)
        return self.tracker.march(np.concatenate([begin, self._poses[ahead]]), first, wanted)

    def beside(self, pose: Float[Array, "n q"], done: Bool[Array, "n"], measured: Measured) -> States:
        """As `judged`, for poses that steps from closed ones reached.

        Steps that have converged leave none of their equations open. Where these are all equations, closure
        errors need not be computed; redundant ones may contradict them.
        """
        closed = self.assembly.mobility.n_redundant == 0 and bool(done.all())
        return self.judged(pose, done, measured, np.zeros(len(pose)) if closed else None)

    def judged(
        self,
        pose: Float[Array, "n q"],
        done: Bool[Array, "n"],
        measured: Measured,
        gaps: Float[Array, "n"] | None = None,
    ) -> States:
        """Rates at tracked poses, and which poses are usable; failed poses are tried once more.

        Args:
            pose: Of every sample, shape (n, n_q).
            done: Whether each converged, shape (n,).
            measured: Measured positions and their rates.
            gaps: Closure errors of the poses, if known, shape (n,), in [m] or [rad].
        """
        missed = np.flatnonzero(~done)
        if 0 < len(missed) <= _REPAIRED:
            near = pose[int(np.argmax(done))] if self._has_origins and done.any() else None
            pose[missed] = self.assembly.follow(measured[0][missed], self.sensors, origin=near)
        rates = self.assembly.rates(pose, *self.sensors.rates(*measured), self.sensors)
        gaps = self.assembly.gaps(pose) if gaps is None else gaps
        fine = (gaps < OPEN) & (rates.condition < self.singular)
        if self.redundant:
            fine &= ~beyond(self.sensors.miss(pose, measured[0]), self.most_missed)
        return States(pose, rates.dq, rates.ddq, rates.N, fine, rates.condition, gaps)

    def residuals(self, t: Float[Array, "n"]) -> dict[str, Float[Array, "n"]]:
        """Closure errors near some times, in [m] or [rad], and errors of redundant sensors.

        `singularity_distance` is 1 over the condition number of the map from the motion to the measured
        coordinates: about the distance from a dead point in [rad] or [m], zero at it.
        """
        times = self._shown[:, 0]
        if len(times) == 0:
            return {}
        at = np.clip(np.searchsorted(times, t), 0, len(times) - 1)
        near = np.where(np.isfinite(t)[:, None], self._shown[at], np.nan)
        curves = {"closure_residual": near[:, 1], "singularity_distance": near[:, 2]}
        if self.redundant:
            curves |= {f"misfit_{name}": near[:, 3 + i] for i, name in enumerate(self.labels)}
        return curves

    def origin(self, log: Log, sample: int) -> Float[Array, "q"]:
        """The pose from which the loops are tracked to a sample: the last known one, else the start pose."""
        known = [at for at in log.origins if at <= sample]
        return np.asarray(log.origins[max(known)]) if known else self.assembly.start

    def gaps(
        self, wanted: Float[Array, "n w"], origin: Float[Array, "q"] | None = None
    ) -> tuple[Float[Array, "n"], list[str]]:
        """Closure errors at unrelated measured positions, in [m] or [rad], and the closure.

        More measured coordinates than degrees of freedom are met in least squares; an error above
        the allowed one (`MISFIT`) counts as open.
        """
        pose = self.assembly.follow(wanted, self.sensors, origin=origin)
        open_by = np.abs(self.assembly.closure.values(pose).f)
        missed = np.abs(self.sensors.miss(pose, wanted))
        both = np.concatenate([open_by, np.where(missed > self.most_missed, missed, 0.0)], axis=1)
        labels = [*self.assembly.closure.names, *self.labels]
        worst = np.argmax(both, axis=1)
        return both[np.arange(len(wanted)), worst], [labels[i] for i in worst]


_REPAIRED = 256  # poses of a block that get a slower second try; more failures have another cause


def kinematics_along(
    mechanism: Mechanism, motion: Motion, checked: bool = False
) -> CoordinateMap | ClosedKinematics:
    """The kinematics of a mechanism along a log, computed once: several models share it.

    Args:
        mechanism: The robot.
        motion: Along one log.
        checked: The loops are known to close, along nearly the same motion.
    """
    known = _KNOWN.get(motion)
    if known is None or known[0] is not mechanism:
        if mechanism.is_closed:
            known = _KNOWN[motion] = (mechanism, _closed_along(mechanism, motion, checked))
        else:
            known = _KNOWN[motion] = (
                mechanism,
                coordinate_map(mechanism, motion.log.position_names),
            )
    return known[1]


def _closed_along(mechanism: Mechanism, motion: Motion, checked: bool) -> ClosedKinematics:
    """Surveyed once per log and filter: masks, drive terms and gravity do not move the robot."""
    plan, along = motion.plan, _along(motion.log)
    filtered = (plan.kind, plan.cutoff, plan.order, plan.derivative, plan.velocity, plan.edge, plan.dt)
    key = (assembly_of(mechanism), checked, doubt_of(mechanism), *filtered)
    if key not in along:
        # Another filter does not open loops that close.
        earlier = [x for of, x in along.items() if of[0] is key[0] and of[2] == key[2] and not x.doubted]
        other = next((near for near in (x.refiltered(motion) for x in earlier) if near), None)
        while len(along) >= _MOST_KEPT:
            along.pop(next(iter(along)))
        along[key] = (checked and other) or ClosedKinematics(mechanism, motion, checked or bool(earlier))
    return copy(along[key])  # what one model excludes stays its own


def _along(log: Log) -> dict[tuple[object, ...], ClosedKinematics]:
    """What is known along a log: other efforts or payloads do not move the robot otherwise."""
    if log not in _ALONG:
        moves = _moves(log)
        same = (of for other, of in list(_ALONG.items()) if all(map(is_, _moves(other), moves)))
        _ALONG[log] = next(same, {})
    return _ALONG[log]


def _unmeasured(assembly: Assembly, sensors: Sensors) -> list[str]:
    """Coordinates that can move while the measured ones are fixed, the most mobile first."""
    N = assembly.tangent(assembly.closure.values(assembly.samples).A)
    moves = np.zeros(N.shape[1])
    for basis in N:
        s, Vt = np.linalg.svd(basis[sensors.velocity])[1:]
        still = Vt[int((s > 1e-6).sum()) :].T
        moves += np.linalg.norm(basis @ still, axis=1)
    order = np.argsort(-moves, kind="stable")
    return [assembly.mechanism.coordinates[i] for i in order if moves[i] > 1e-6]


def _tracker(assembly: Assembly, sensors: Sensors, mechanism: Mechanism) -> Tracker:
    """The solver for these sensors; refused where they do not determine the pose."""
    missing = assembly.dof - sensors.count
    tracker = None if missing > 0 else assembly.tracker(sensors)
    if tracker is not None:
        return tracker
    free = _unmeasured(assembly, sensors)
    if not free:
        raise InputError(
            f"no fixed choice of equations gives the pose of robot '{mechanism.name}' from"
            f" {', '.join(mechanism.coordinates[i] for i in sensors.velocity)}: poses near the start pose are"
            " singular",
            file=mechanism.file,
            remedy="give a regular pose under `start:`, away from stretched links",
        )
    problem = (
        f"{sensors.count} measured coordinates do not determine the pose of a robot with {assembly.dof}"
        " degrees of freedom"
        if missing > 0
        else "the measured coordinates depend on each other and do not determine the pose"
    )
    raise InputError(
        f"{problem}: with them fixed, {', '.join(free)} can still move",
        file=mechanism.file,
        remedy=f"measure {free[0]} too, and list it under `measured:`",
    )


def _weights(mechanism: Mechanism, positions: tuple[str, ...]) -> list[float] | None:
    """Relative weight of each measured position, from the standard deviations in the description."""
    sigmas = [mechanism.measured_sigma.get(name) for name in positions]
    known = [sigma for sigma in sigmas if sigma is not None]
    if not known:
        return None
    typical = float(np.median(known))
    return [1.0 if sigma is None else typical / sigma for sigma in sigmas]
