"""Near dead points of the measured joints: the branch on which the other joints move smoothly.

At a dead point the measured joints are at an extreme, two branches of the closed pose meet, and measured
positions alone do not show which one follows. A robot has inertia: with x the distance from the dead point,
signed by the branch, one polynomial p fits the samples before and after it on the true branch,

    chi^2 = mean of (x_i - p(t_i))^2 / sigma_i^2,      sigma_i = condition number times noise of the sensors

On the other branch x has a kink where the motion passes the dead point, and a step where it turns back before
it. The lengths of both sides and the degree of p that decide are those for which the two chi^2 differ most:
short sides are lost in noise, long ones are no polynomials. Poses at which noise decides are excluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.kinematics.closure import moved
from dynid.kinematics.tracking import same_pose
from dynid.kinematics.tree import PRISMATIC, REVOLUTE

if TYPE_CHECKING:
    from dynid.kinematics.coordinates import Measured, States
    from dynid.projection.kinematics import ClosedKinematics

Span = tuple[int, int]
_SIDES = (4, 8, 16, 32, 64)  # samples before and after, to which a polynomial is fitted
_DEGREES = (1, 2, 3)
# rad or m: branches that meet at a dead point are this near beside it, other assembly modes are not
_NEAR = 0.5
_GUESSES = 8  # steps across the dead point that are tried in each direction
_BEYOND = 1e-3  # rad or m: a sample with a larger closure error is not moved beyond the dead point by noise
_STEP = 1e-4  # rad or m, for a derivative
_APART = 0.02  # s: singular samples closer in time belong to one stretch
_STRIDES = 4.0  # samples: a dead point nearer than this may be stepped over
_SINGULAR = 1e5  # condition number beyond which rounding decides too
_ROUNDING = 1e-12  # rad or m
_ROUNDS = 8
_CACHED = 256  # samples whose directions stay in the cache
_REVERSED = 0.5  # of the velocity: the change between two samples that accelerations do not explain


def pass_dead_points(
    kinematics: ClosedKinematics, dt: float, measured: Measured, states: States
) -> tuple[States, list[Span]]:
    """The motion on the smooth branch, and the stretches (first, end) at dead points, which are excluded.

    A dead point that is stepped over between two samples is an empty stretch: its end is the later sample.

    Args:
        kinematics: Of the robot.
        dt: Time between samples in [s].
        measured: Coordinates with their rates, [rad] or [m].
        states: At the tracked poses.
    """
    gap = max(1, round(_APART / dt))
    noisy, over = (np.zeros(len(states.q), dtype=bool) for _ in range(2))
    dead = list[Span]()
    for _ in range(_ROUNDS):
        # Tracking is lost where noise decides: a step over a dead point shows only when this is mended.
        new = _noisy(kinematics, states, gap) & ~noisy
        noisy |= new
        if not new.any():
            new = _stepped_over(kinematics, dt, states) & ~over
            over |= new
        if not new.any():
            break
        pose, done, dead = _smooth_branch(kinematics, measured[0], states, _joined(noisy, over, gap))
        states = kinematics.judged(pose, done, measured)
    for a, b in dead:
        states.fine[a:b] = False
    return states, dead


def regular_end(kinematics: ClosedKinematics, states: States) -> int:
    """Number of samples of a block up to its last one that is far from dead points."""
    condition, side = _condition(states), _SIDES[-1]
    near = np.convolve(~(condition < kinematics.ambiguous), np.ones(2 * side + 1), mode="same") > 0.0
    regular = np.flatnonzero(~near[side:]) + side
    return int(regular[-1]) + 1 if len(regular) else len(condition)


def _smooth_branch(
    kinematics: ClosedKinematics, wanted: Float[Array, "n w"], states: States, spans: Sequence[Span]
) -> tuple[Float[Array, "n q"], Bool[Array, "n"], list[Span]]:
    """Poses on the smooth branch, whether each was found, and the stretches at which two branches meet."""
    pose, done, dead = states.q.copy(), np.ones(len(wanted), dtype=bool), list[Span]()
    edges = [(0, 0), *spans, (len(wanted), len(wanted))]
    for (_, low), (a, b), (high, _) in zip(edges, edges[1:], edges[2:], strict=False):
        start = None
        if min(a - low, high - b) >= _SIDES[0]:
            start = _continued(kinematics, wanted, pose, states, (low, a, b, high))
        if start is not None:
            dead.append((a, b))
            near = np.zeros(b - a, dtype=bool) if states.gaps is None else ~(states.gaps[a:b] > _BEYOND)
            pose[a:b][near] = start
            pose[b:high], done[b:high] = _march(kinematics, start, wanted[b:high])
        elif dead:
            pose[a:high], done[a:high] = _march(kinematics, pose[a - 1], wanted[a:high])
    return pose, done, dead


def _noisy(kinematics: ClosedKinematics, states: States, gap: int) -> Bool[Array, "n"]:
    """Whether noise decides between two branches at a sample, or moves it beyond the dead point."""
    from dynid.projection.kinematics import OPEN

    condition = _condition(states)
    closed = np.ones(len(condition), dtype=bool) if states.gaps is None else states.gaps < OPEN
    noisy = ~(condition < kinematics.ambiguous)
    adjacent = np.zeros_like(noisy)
    adjacent[1:] |= noisy[:-1]
    adjacent[:-1] |= noisy[1:]
    noisy |= adjacent & ~closed
    for first, end in _joined(noisy, np.zeros_like(noisy), gap):
        limit = _ambiguous(kinematics, states.q[first - 1 if first else min(end, len(noisy) - 1)])
        noisy[first:end] &= ~((condition[first:end] < limit) & closed[first:end])
    return noisy


def _joined(noisy: Bool[Array, "n"], over: Bool[Array, "n"], gap: int) -> list[Span]:
    """Stretches of noisy samples, and empty ones after samples from which a dead point is stepped over."""
    spans = list[Span]()
    for i in np.flatnonzero(noisy | over).tolist():
        first, end = (i if noisy[i] else i + 1), i + 1
        if spans and first - spans[-1][1] < gap:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((first, end))
    return spans


def _ambiguous(kinematics: ClosedKinematics, pose: Float[Array, "q"]) -> float:
    """The condition number beyond which noise decides between the branches near a pose.

    At a distance x from a dead point the smallest singular value of the measured rows of N is k x, and the
    measured coordinate is k x^2 / 2 from its extreme. Both branches fit where this is below 5 sigma.
    """
    assembly = kinematics.assembly
    N, V, _ = _loosest(kinematics, pose)
    steps = np.array([-_STEP, _STEP])[:, None] * (N @ V)
    both_sides = assembly.close(moved(assembly.mechanism, np.repeat(pose[None], 2, axis=0), steps))
    k = np.ptp([_loosest(kinematics, q)[2] for q in both_sides]) / (2.0 * _STEP)
    limit = 1.0 / np.sqrt(10.0 * max(k * kinematics.blur, 1e-300))
    return float(np.clip(np.nan_to_num(limit), kinematics.ambiguous, _SINGULAR))


def _loosest(
    kinematics: ClosedKinematics, pose: Float[Array, "q"]
) -> tuple[Float[Array, "v d"], Float[Array, "d"], float]:
    """Tangent directions N, the combination that moves the measured joints least, and by how much."""
    assembly = kinematics.assembly
    N = assembly.tangent(assembly.closure.values(pose[None]).A)[0]
    _, singular, V = np.linalg.svd(np.nan_to_num(N[kinematics.sensors.velocity]))
    return N, V[-1], float(singular[-1])


def _condition(states: States) -> Float[Array, "n"]:
    return np.zeros(len(states.q)) if states.condition is None else states.condition


def _stepped_over(kinematics: ClosedKinematics, dt: float, states: States) -> Bool[Array, "n"]:
    """Whether a dead point may lie between each sample and the next one.

    A branch that is left at a dead point is tracked back instead: a position or velocity changes, and
    velocities or accelerations at both samples do not explain it.
    """
    reach = _STRIDES * dt * np.abs(states.dq).max(axis=1, initial=0.0) * _condition(states)
    near = ~((reach[1:] < 1.0) & (reach[:-1] < 1.0))
    over = np.zeros(len(reach), dtype=bool)
    at = np.flatnonzero(near)
    places, v = _scalars(kinematics)
    here, then = ((states.q[i][:, places], states.dq[i][:, v], states.ddq[i][:, v]) for i in (at, at + 1))
    speed = _REVERSED * (np.abs(then[1]) + np.abs(here[1]))
    for k in (0, 1):
        change = np.abs(then[k] - here[k] - 0.5 * dt * (then[k + 1] + here[k + 1]))
        over[at] |= ~np.all(change <= speed * dt ** (1 - k), axis=1)
    return over


def _continued(
    kinematics: ClosedKinematics,
    wanted: Float[Array, "n w"],
    pose: Float[Array, "n q"],
    states: States,
    samples: tuple[int, int, int, int],
) -> Float[Array, "q"] | None:
    """The pose after a dead point; None where no two branches meet.

    Args:
        kinematics: Of the robot.
        wanted, pose, states: Of the block; poses are right before the stretch.
        samples: First one usable before the stretch, the stretch, end of those usable after it.
    """
    low, a, b, high = samples
    ahead, done = kinematics.tracker.march_one(pose[a - 1 : a], wanted[b : b + 1])
    other = _other_branch(kinematics, ahead[0], wanted[b]) if done[0] else None
    if other is None:
        return None
    branches = np.stack([ahead[0], other])
    places = _scalars(kinematics)[0]
    apart = (branches[1] - branches[0])[places]
    direction, middle = apart / max(float(np.linalg.norm(apart)), 1e-300), branches.mean(axis=0)[places]
    low, high = max(low, a - _SIDES[-1]), min(high, b + _SIDES[-1])
    marched = [_march(kinematics, branch, wanted[b:high]) for branch in branches]
    ends = [int(np.argmin(np.append(done, False))) for _, done in marched]
    if min(ends) < high - b:  # a branch that ends is not that of the robot
        return np.asarray(branches[int(np.argmax(ends))])
    before = np.repeat(((pose[low:a, places] - middle) @ direction)[:, None], 2, axis=1)
    after = np.stack([(q[:, places] - middle) @ direction for q, _ in marched], axis=1)
    at = np.concatenate([np.arange(low, a), np.arange(b, high)])
    x = np.concatenate([before, after])
    sigma = kinematics.blur * _condition(states)[at]
    return np.asarray(branches[_smoother(at, a - low, x, sigma)])


def _smoother(at: Int[Array, "k"], before: int, x: Float[Array, "k 2"], sigma: Float[Array, "k"]) -> int:
    """The column of x that is nearer to a polynomial; the first `before` samples precede a gap."""
    decided, choice = 0.0, 0
    t = at - 0.5 * (at[before - 1] + at[before])
    for side in _SIDES:
        part = slice(max(0, before - side), before + side)
        w = 1.0 / np.maximum(sigma[part], _ROUNDING)
        powers = (t[part] / np.abs(t[part]).max())[:, None] ** np.arange(_DEGREES[-1] + 1) * w[:, None]
        for degree in _DEGREES:
            Q = np.linalg.qr(powers[:, : degree + 1])[0]
            y = x[part] * w[:, None]
            left = y - Q @ (Q.T @ y)
            chi2 = np.sum(left**2, axis=0) / (len(y) - degree - 1)
            ratio = float(np.log1p(chi2[0]) - np.log1p(chi2[1]))
            if abs(ratio) > decided:
                decided, choice = abs(ratio), int(ratio > 0.0)
    return choice


def _other_branch(
    kinematics: ClosedKinematics, pose: Float[Array, "q"], wanted: Float[Array, "w"]
) -> Float[Array, "q"] | None:
    """The pose beyond the nearest dead point with the same measured positions; None where none is near.

    Steps in the direction that the measured joints see least lead across it, and Newton's method from there
    to the other branch.
    """
    assembly = kinematics.assembly
    N, V, singular = _loosest(kinematics, pose)
    steps = np.geomspace(min(2.0 * singular, 0.1 * _NEAR), _NEAR, _GUESSES)
    steps = np.concatenate([steps, -steps])
    beyond = moved(assembly.mechanism, np.repeat(pose[None], len(steps), axis=0), steps[:, None] * (N @ V))
    poses, done = kinematics.tracker.march_one(beyond, np.repeat(wanted[None], len(steps), axis=0))
    done &= ~same_pose(assembly.closure, poses, np.repeat(pose[None], len(steps), axis=0))
    far = np.abs(poses - pose)[:, _scalars(kinematics)[0]].max(axis=1, initial=0.0)
    far[~done] = np.inf
    nearest = int(np.argmin(far))
    return poses[nearest] if far[nearest] < _NEAR else None


def _march(
    kinematics: ClosedKinematics, start: Float[Array, "q"], wanted: Float[Array, "n w"]
) -> tuple[Float[Array, "n q"], Bool[Array, "n"]]:
    return kinematics.tracker.march(start[None], np.zeros(1, dtype=np.int64), wanted)


def _scalars(kinematics: ClosedKinematics) -> tuple[Int[Array, "s"], Int[Array, "s"]]:
    """Positions and velocities of hinges and slides that are not measured."""
    tree = kinematics.assembly.closure.tree
    scalar = (tree.kind == REVOLUTE) | (tree.kind == PRISMATIC)
    q, v = tree.q_start[scalar], tree.v_start[scalar]
    free = ~np.isin(q, kinematics.sensors.position)
    return q[free], v[free]


def passages(M: Float[Array, "n m d"], N: Float[Array, "n v d"]) -> Bool[Array, "k"]:
    """Whether det M changes its sign after each sample; the basis N may change its orientation too.

    Args:
        M: Rows of N of the measured coordinates.
        N: Tangent directions.
    """
    passed = np.zeros(len(M) - 1, dtype=bool)
    if M.shape[1] != M.shape[2]:
        return passed
    # With M = 1 the singular values of N are at least 1: a smaller change turns nothing over.
    unit = np.all(np.equal(M, np.eye(M.shape[1])), axis=(1, 2))
    steps = (np.diff(N[a : a + _CACHED + 1], axis=0) for a in range(0, len(N) - 1, _CACHED))
    squares = np.concatenate([np.zeros(0), *(np.einsum("nvd,nvd->n", step, step) for step in steps)])
    at = np.flatnonzero(~(unit[1:] & unit[:-1] & (squares < 1.0)))
    after, before = (np.linalg.slogdet(M[i])[0] for i in (at + 1, at))
    turned = np.linalg.slogdet(np.swapaxes(N[at + 1], 1, 2) @ N[at])[0]
    passed[at] = after * turned * before < 0.0
    return passed
