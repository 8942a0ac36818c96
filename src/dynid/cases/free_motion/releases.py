"""Releases: cable lengths, the equilibrium pose on them, and the pose from which the robot is released.

Equilibria are drawn by a random walk in which pose and lengths change together by the smallest step
that restores

    N^T ID(q, 0, 0; chi) = 0,     stable,     tensions within their limits      [CableRobot, section 4]

From there the free coordinates are displaced; the displacement is reduced until the whole motion
satisfies the limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.batched import eigvalsh, pinv
from dynid.common.errors import NoResultError
from dynid.dynamics.free_motion import FreeMotions, LockedCables, free_motions
from dynid.kinematics.closure import moved
from dynid.kinematics.locked_motion import AUTO, locked_motion_of
from dynid.mechanism.cable import held_body
from dynid.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from dynid.cases.free_motion.measured_motion import FreeLimits

Judge = Callable[[FreeMotions, Int[Array, "m"]], Float[Array, "m p p"]]

_NEWTON_STEPS = 7
_LARGEST_STEP = 0.3  # m or rad of one Newton step, and of any coordinate's displacement
_AT_REST = 1e-6  # of the gravity efforts: allowed residual of an equilibrium
_STRIDE = 0.2  # of the mean cable length: standard deviation of a step of the walk; for angles see _TILT
_TILT = 0.15
_WALKERS = 64
_MARGIN = 0.02  # of the range of tensions, at both ends
_MOST_ROUNDS, _VAIN_ROUNDS = 60, 8
_REPAIRS = 4
_SCREENINGS, _FIRST_SWINGS = 2, 0.25
_FINE, _COARSE = 0.1, 0.3  # rad per step: the search uses coarse steps, the result is simulated again
_LEAST_SHRINK, _MOST_SHRINK = 0.25, 0.95
_SPARE = 0.97  # of a limit: target use of a reduced release


@dataclass(frozen=True, eq=False)
class Releases:
    """k releases of a robot on locked cables.

    Attributes:
        lengths: Locked cable lengths, shape (k, c), in [m].
        rest: Equilibrium poses, shape (k, n_q), SI.
        starts: Poses from which it is released at zero velocity, shape (k, n_q), SI.
        by: Displacement of the free coordinates along the tangent at rest, shape (k, f), in [m] or [rad].
    """

    lengths: Float[Array, "k c"]
    rest: Float[Array, "k q"]
    starts: Float[Array, "k q"]
    by: Float[Array, "k f"]

    def __len__(self) -> int:
        return len(self.rest)

    def picked(self, index: Array) -> Releases:
        """Some of them, by index or mask."""
        return Releases(*(field[index] for field in vars(self).values()))

    def joined(self, other: Releases) -> Releases:
        """These, then others."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Releases(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True, eq=False)
class Kept:
    """Releases whose motions satisfy the limits.

    Attributes:
        releases: These.
        judged: Information of their motions, shape (k, p, p).
        tried: Number of releases tried.
        diverged: Number of those discarded because their motion diverged.
    """

    releases: Releases
    judged: Float[Array, "k p p"]
    tried: int
    diverged: int


class Releasing:
    """Draws, displaces and simulates releases of one robot.

    Args:
        mechanism: With cables; its `free` coordinates are displaced.
        chi: Standard parameters by name, SI: tensions need the true scale.
        limits: Of the motions.
        duration, rate: Of the evaluated motions, in [s] and [Hz].
        mounted: Payloads on the robot.

    Attributes:
        free: Velocity indices of the free coordinates.
        reference: Reference mass of the parameters: that of the body held by most cables.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        chi: dict[str, float],
        limits: FreeLimits,
        duration: float,
        rate: float,
        mounted: tuple[str, ...] = (),
    ) -> None:
        self.robot = LockedCables(mechanism, chi, mounted)
        self.limits, self.duration, self.rate = limits, duration, rate
        self.motion = locked_motion_of(self.robot.robot)
        self.free = self.motion.free_indices(mechanism.free or AUTO, self.motion.samples)
        self.reference = f"M_{held_body(mechanism)}"
        names = self.robot.assembly.closure.names
        self._cables = np.array([names.index(name) for name in self.robot.cables])
        joints = self.robot.robot.joints
        turns = [joint.is_angle(name) for joint in joints for name in joint.coordinates]
        stride = _STRIDE * float(self.robot.lengths(self.robot.assembly.start[None]).mean())
        self._strides = np.where(turns, _TILT, stride)

    @cached_property
    def swings(self) -> Float[Array, "f"]:
        """Largest displacement of each free coordinate; half a step of the walk without a limit."""
        coordinates, positions = self.robot.robot.coordinates, self.robot.robot.positions
        largest = []
        for i in self.free:
            name = coordinates[i]
            at = positions.index(name) if name in positions else -1
            largest.append(self.limits.swing.get(at, 0.5 * float(self._strides[i])))
        return np.array(largest)

    def rests(self, rng: np.random.Generator, count: int) -> Float[Array, "k q"]:
        """At least `count` stable equilibria within the limits, by a random walk from the start pose."""
        poses = self.robot.assembly.start[None][:0]
        for turn in range(_MOST_ROUNDS):
            if len(poses) >= count:
                return poses
            if turn == _VAIN_ROUNDS and not len(poses):
                break
            near = poses if len(poses) else self.robot.assembly.start[None]
            q = self.settled(self._strayed(rng, near[rng.integers(len(near), size=_WALKERS)]))
            poses = np.concatenate([poses, q[self.fit(q, _MARGIN)]])
        if len(poses):
            return poses
        raise NoResultError(
            "no stable equilibrium near the start pose has all cable tensions within"
            f" {self.limits.tension[:, 0].max():g} to {self.limits.tension[:, 1].min():g} N;"
            " check `limits: {cables: {tension: ...}}`, the mass in `prior:` and `start:`"
        )

    def _strayed(
        self, rng: np.random.Generator, q: Float[Array, "k q"], size: float = 1.0
    ) -> Float[Array, "k q"]:
        steps = size * rng.normal(size=(len(q), len(self._strides))) * self._strides
        # Other loops stay closed: the joints move along the directions they allow.
        return moved(self.robot.robot, q, self._allowed(q, steps))

    def _allowed(self, q: Float[Array, "k q"], step: Float[Array, "k v"]) -> Float[Array, "k v"]:
        A = np.delete(self.robot.assembly.closure.values(q).A, self._cables, axis=1)
        if not A.shape[1]:
            return step
        return np.asarray(step - np.einsum("nvc,ncw,nw->nv", pinv(A), A, step, optimize=True))

    def nearby(
        self, rng: np.random.Generator, rest: Float[Array, "k q"], size: float
    ) -> tuple[Float[Array, "k q"], Bool[Array, "k"]]:
        """Equilibria near others, by random steps of relative size `size`; and which of them are valid."""
        q = self.settled(self._strayed(rng, rest, size))
        return q, self.fit(q)

    def settled(self, q: Float[Array, "k q"]) -> Float[Array, "k q"]:
        """Equilibria near other poses, by minimal steps of pose and lengths; some may not converge."""
        still = self.robot.still
        for _ in range(_NEWTON_STEPS):
            efforts, K, by_length = still.stiffness(q, self._cables)
            along = np.concatenate([still.freedoms.tangent(q), still.responses(q, self._cables)], axis=2)
            y = pinv(np.concatenate([K, by_length], axis=2)) @ efforts[:, :, None]
            step = -(along @ y)[:, :, 0]
            size = np.linalg.norm(step, axis=1, keepdims=True)
            q = moved(self.robot.robot, q, step * np.minimum(1.0, _LARGEST_STEP / np.maximum(size, 1e-300)))
            if size.max(initial=0.0) < 1e-8:
                break
        return q

    def fit(self, q: Float[Array, "k q"], spare: float = 0.0) -> Bool[Array, "k"]:
        """Whether poses are stable equilibria with tensions and positions inside the limits."""
        efforts, K, _ = self.robot.still.stiffness(q)
        still = np.zeros((len(q), len(self.robot.robot.coordinates)))
        weight = np.abs(self.robot.dynamics.inverse(q, still, still)).max(axis=1, initial=1e-300)
        rests = np.abs(efforts).max(axis=1, initial=0.0) < _AT_REST * weight
        symmetric = 0.5 * (K + np.swapaxes(K, 1, 2))
        stable = eigvalsh(symmetric).min(axis=1, initial=np.inf) > 0.0
        allowed = self.limits.allows(q, self.robot.tensions(q, still, still), spare)
        return np.asarray(rests & stable & allowed)

    def displaced(self, rest: Float[Array, "k q"], by: Float[Array, "k f"]) -> Releases:
        """Releases with the free coordinates displaced from rest by about `by`, at constant lengths."""
        N = self.robot.still.freedoms.tangent(rest)
        step = np.einsum("nvf,nf->nv", self.motion.along(N, self.free), by)
        size = np.abs(step).max(axis=1, keepdims=True, initial=1e-300)
        by, step = (x * np.minimum(1.0, _LARGEST_STEP / size) for x in (by, step))
        lengths = self.robot.lengths(rest)
        starts, reached = self.robot.closed(moved(self.robot.robot, rest, step), lengths)
        return Releases(lengths, rest, starts, by).picked(reached)

    def drawn(self, rng: np.random.Generator, rest: Float[Array, "k q"]) -> Releases:
        """Random displacements of up to the largest swing."""
        direction = rng.normal(size=(len(rest), len(self.free)))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return self.displaced(rest, rng.uniform(0.3, 1.0, size=(len(rest), 1)) * direction * self.swings)

    def kept(self, releases: Releases, judge: Judge) -> Kept:
        """The releases whose motions satisfy the limits, and the information of these motions.

        Motions that diverge are discarded. The others are reduced as far as necessary; those that
        still violate the limits after a few attempts are omitted.
        """
        tried = len(releases)
        releases, diverged = self._screened(releases)
        kept, judged = releases.picked(np.zeros(0, dtype=int)), []
        for _ in range(_REPAIRS):
            motions, use = self.over(releases, self.duration, _COARSE)
            fine, lost = use <= 1.0, motions.diverged
            kept = kept.joined(releases.picked(fine))
            judged.append(judge(motions, np.flatnonzero(fine)))
            diverged += int(lost.sum())
            again = ~(fine | lost)
            if not again.any():
                break
            releases = self.smaller(releases.picked(again), use[again])
        return Kept(kept, np.concatenate(judged), tried, diverged)

    def _screened(self, releases: Releases) -> tuple[Releases, int]:
        """Releases that satisfy the limits during the first swings, and how many diverged.

        This is cheap and avoids most later reductions.
        """
        diverged = 0
        for _ in range(_SCREENINGS):
            motions, use = self.over(releases, _FIRST_SWINGS * self.duration, _COARSE)
            whole = ~motions.diverged
            releases, use, diverged = releases.picked(whole), use[whole], diverged + int((~whole).sum())
            if np.all(use <= 1.0):
                break
            releases = self.smaller(releases, use)
        return releases, diverged

    def smaller(self, releases: Releases, use: Float[Array, "k"]) -> Releases:
        """The same releases; those that violate a limit are moved towards rest."""
        shrink = np.where(use > 1.0, np.clip(_SPARE / use, _LEAST_SHRINK, _MOST_SHRINK), 1.0)
        return self.displaced(releases.rest, shrink[:, None] * releases.by)

    def over(
        self, releases: Releases, duration: float, phase: float = _FINE
    ) -> tuple[FreeMotions, Float[Array, "k"]]:
        """Motions of a given duration [s], and the largest used share of a limit of each.

        Args:
            phase: Largest phase of the fastest oscillation per simulation step, in [rad].
        """
        motions = free_motions(
            self.robot,
            self.robot.values,
            releases.lengths,
            releases.starts,
            duration,
            self.rate,
            phase=phase,
        )
        still = np.zeros((len(releases.rest), len(self.robot.robot.coordinates)))
        tensions = self.robot.tensions(releases.rest, still, still)
        return motions, self.limits.use(motions, releases.rest, tensions)
