"""A first pass over a log of a closed robot: follow the branch, and judge every pose."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.kinematics.assembly import Assembly
from dynid.kinematics.tree import PRISMATIC, REVOLUTE
from dynid.motion.motion import Motion

if TYPE_CHECKING:
    from dynid.projection.kinematics import ClosedKinematics, States

_BLOCK = 16384
_ANCHOR = 256
_THINNED = 16
_PROBES = 400
_MOST_LOST = 0.01
_SHOWN = 3000
# rad or m between neighbouring samples, beyond what their velocities explain.
_JUMP = 0.05


@dataclass(eq=False)
class Survey:
    """Poses to begin at, and what was found on the way.

    Attributes:
        anchors: Samples whose poses are kept, ascending.
        poses: Their poses, each of shape (n_q,).
        samples: Poses judged.
        open_at, singular_at, jumped_at: Times of poses that do not close, of singular ones, and of
            those that lie on another branch than the one before, in [s].
        largest: Of the closure residuals of poses that close, in [m] or [rad].
        misfit: Sum of squares of what the measured coordinates miss, shape (m,).
        worst: Largest miss, in [rad] or [m], and its time in [s].
        shown: Times, closure residuals and misses of some samples, a row each, to look at.
        speeds: Absolute velocities of all coordinates at one sample in `_THINNED`, each shape (n, v).
        tangents: Tangent directions at the anchors, each shape (n, v, d).
    """

    anchors: list[int] = field(default_factory=list)
    poses: list[Float[Array, "q"]] = field(default_factory=list)
    samples: int = 0
    open_at: list[float] = field(default_factory=list)
    singular_at: list[float] = field(default_factory=list)
    jumped_at: list[float] = field(default_factory=list)
    largest: float = 0.0
    misfit: float | Float[Array, "m"] = 0.0
    worst: tuple[float, float] = (0.0, 0.0)
    shown: list[Float[Array, "k m2"]] = field(default_factory=list)
    speeds: list[Float[Array, "n v"]] = field(default_factory=list)
    tangents: list[Float[Array, "n v d"]] = field(default_factory=list)


def survey(kinematics: ClosedKinematics, motion: Motion) -> Survey:
    """Follow the robot through every usable piece of a log, from the start pose and on one branch."""
    _refuse_open(kinematics, motion)
    found = Survey()
    for low, high in motion.usable():
        origin = kinematics.origin(motion.log, low)
        # One sample of overlap, so that a jump between blocks is seen.
        for start in range(low, high, _BLOCK):
            first = max(low, start - 1)
            measured = motion.states(first, min(start + _BLOCK, high))
            pose, done = kinematics.tracker.track(origin, measured[0])
            states = kinematics.judged(pose, done, measured)
            origin = _judge(found, kinematics, motion, first, measured[0], states, origin)
    if not found.anchors:
        found.anchors, found.poses = [0], [kinematics.assembly.start]
    return found


def _judge(
    found: Survey,
    kinematics: ClosedKinematics,
    motion: Motion,
    first: int,
    wanted: Float[Array, "n w"],
    states: States,
    origin: Float[Array, "q"],
) -> Float[Array, "q"]:
    """Count what a block holds; returns the pose to go on from."""
    from dynid.projection.kinematics import OPEN

    t = motion.log.t[first : first + len(wanted)]
    gaps = kinematics.assembly.gaps(states.q)
    closed = gaps < OPEN
    found.samples += len(t)
    found.open_at += t[~closed].tolist()
    found.singular_at += t[closed & ~states.fine].tolist()
    found.jumped_at += t[1:][_jumps(kinematics.assembly, motion.log.dt, states)].tolist()
    found.largest = max(found.largest, float(gaps[closed].max(initial=0.0)))
    every = max(1, len(motion.log.t) // _SHOWN)
    part = slice((-first) % every, None, every)
    gone = kinematics.sensors.miss(states.q[part], wanted[part])
    found.shown.append(np.column_stack([t[part], gaps[part], gone]))
    miss = np.abs(kinematics.sensors.miss(states.q[closed], wanted[closed]))
    found.misfit = found.misfit + np.sum(miss**2, axis=0)
    if miss.size and miss.max() > found.worst[0]:
        found.worst = (float(miss.max()), float(t[closed][np.argmax(miss.max(axis=1))]))
    at = np.flatnonzero(closed)
    if not len(at):
        return origin
    kept = np.unique(at[np.searchsorted(at, np.arange(0, at[-1] + 1, _ANCHOR))])
    found.anchors += (first + kept).tolist()
    found.poses += list(states.q[kept])
    found.tangents.append(states.N[kept])
    found.speeds.append(np.abs(states.dq[at[::_THINNED]]))
    return np.asarray(states.q[at[-1]])


def _jumps(assembly: Assembly, dt: float, states: States) -> Bool[Array, "m"]:
    """Whether each pose lies farther from the one before than the velocities of both explain."""
    tree = assembly.closure.tree
    scalar = (tree.kind == REVOLUTE) | (tree.kind == PRISMATIC)
    moved = np.diff(states.q[:, tree.q_start[scalar]], axis=0)
    speed = states.dq[:, tree.v_start[scalar]]
    excess = np.abs(moved - 0.5 * dt * (speed[1:] + speed[:-1])).max(axis=1, initial=0.0)
    return np.asarray((excess > _JUMP) & states.fine[1:] & states.fine[:-1])


def _refuse_open(kinematics: ClosedKinematics, motion: Motion) -> None:
    """Refuse a log that the loops do not admit, before the work starts."""
    from dynid.projection.kinematics import OPEN

    log = motion.log
    pieces = motion.usable()
    # Where every run has a pose of its own to begin at, each is probed from there.
    alike = [pieces] if not log.origins else [[piece] for piece in pieces]
    found: list[tuple[Int[Array, "p"], Float[Array, "p"], list[str]]] = []
    for some in alike if pieces else []:
        probes = [np.linspace(a, b - 1, min(_PROBES, b - a)).astype(int) for a, b in some]
        at = np.unique(np.concatenate(probes))
        found.append((at, *kinematics.gaps(log.q[at], kinematics.origin(log, some[0][0]))))
    at = np.concatenate([one[0] for one in found]) if found else np.zeros(0, dtype=int)
    gaps = np.concatenate([one[1] for one in found]) if found else np.zeros(0)
    names = [name for one in found for name in one[2]]
    lost = ~(gaps < OPEN)
    if lost.any() and lost.mean() > _MOST_LOST:
        first = int(np.flatnonzero(lost)[0])
        raise InputError(
            f"the measured joints do not close the loops: at sample {at[first]} (t ="
            f" {log.t[at[first]]:.4g} s) '{names[first]}' is off by {gaps[first]:.3g}"
            f" {kinematics.unit(names[first])}",
            file=log.file,
            remedy="check joint zeros, units and signs, the loops' frames, and `start:`",
        )


def notices_of(found: Survey, log: str) -> tuple[Notice, ...]:
    """What was left out, and what to doubt."""
    told = []
    if found.open_at:
        text = f"{_counted(found.open_at, found)} of log '{log}' do not close and are left out"
        told.append(Notice("not-assembled", text, "look at the largest motions of the log"))
    if found.singular_at:
        text = f"{_counted(found.singular_at, found)} of log '{log}' are singular and left out"
        remedy = "keep the motion away from poses at which the measured joints do not move the robot"
        told.append(Notice("singular-poses", text, remedy))
    if found.jumped_at:
        text = f"log '{log}' changes its assembly mode {len(found.jumped_at)} times, first at t = "
        text += f"{found.jumped_at[0]:.4g} s: neighbouring poses lie on different branches"
        remedy = "check `start:`, split the log there, or measure one joint more"
        told.append(Notice("assembly-jump", text, remedy))
    return tuple(told)


def _counted(times: list[float], found: Survey) -> str:
    share = 100.0 * len(times) / max(found.samples, 1)
    return f"{len(times)} poses ({share:.2g} %, the first at t = {times[0]:.4g} s)"


def words_of(found: Survey, names: tuple[str, ...], redundant: bool) -> str:
    """How well the loops close along a log, for the report."""
    text = f"loops closed to {found.largest:.1g} m or rad at {found.samples} poses"
    if not redundant:
        return text
    rms = np.sqrt(np.asarray(found.misfit) / max(found.samples - len(found.open_at), 1))
    worst = int(np.argmax(rms))
    return (
        f"{text}; more joints measured than freedoms: they miss the closed pose by"
        f" {rms[worst]:.2g} rms ({names[worst]}), {found.worst[0]:.2g} at most (t = {found.worst[1]:.4g} s)"
    )
