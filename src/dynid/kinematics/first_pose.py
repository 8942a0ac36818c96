"""The first closed pose near the start of a description, and a regular pose near a singular one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import solve
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.kinematics.closure import Closure, moved
from dynid.kinematics.coordinates import coordinate_units
from dynid.mechanism.mechanism import Mechanism

CLOSED = 1e-12  # m or rad: residual of a closed loop, a few units of rounding
_SEED = 20131104
_MOST_STEP = 0.5
_ATTEMPTS = 8
_FLOOR = 1e-14  # of the trace of A A^T
_STILL = 1e-10  # rad or m: steps below it that do not become smaller are rounding
_MOST_LOOPS = 24  # for the search of contradicting loops: each costs one more solution


def first_pose(mechanism: Mechanism, closure: Closure) -> Float[Array, "q"]:
    """A closed pose near the description's start, by damped least squares; an error if there is none."""
    closed_pose = _search(mechanism, closure)
    if closed_pose is None:
        raise _not_assembled(mechanism, closure)
    return closed_pose


def _search(mechanism: Mechanism, closure: Closure) -> Float[Array, "q"] | None:
    q = _start(mechanism)
    rng = np.random.default_rng(_SEED)
    for attempt in range(_ATTEMPTS):
        trial = q if attempt == 0 else moved(mechanism, q, 0.3 * rng.normal(size=(1, closure.tree.n_v)))
        pose = damped(closure, mechanism, trial)
        closed = np.abs(closure.values(pose).f).max(initial=0.0) < CLOSED
        if closed and not closure.turned_over(pose).any():
            return np.asarray(pose[0])
    return None


def _start(mechanism: Mechanism) -> Float[Array, "1 q"]:
    """Coordinates as the description gives them, zero elsewhere, identity quaternions."""
    q = np.zeros((1, len(mechanism.positions)))
    for joint in mechanism.joints:
        if joint.has_quaternion:
            q[0, mechanism.positions.index(joint.positions[-4])] = 1.0
    for name, value in mechanism.start.items():
        q[0, mechanism.positions.index(name)] = value
    return q


def _not_assembled(mechanism: Mechanism, closure: Closure) -> InputError:
    """The closure that stays open, or closes only after half a turn, at the best pose found."""
    q = damped(closure, mechanism, _start(mechanism))
    f = np.abs(closure.values(q).f[0])
    worst = int(np.argmax(f))
    name, how = closure.names[worst], f"stays open by {f[worst]:.3g} (m or rad)"
    if f[worst] < CLOSED:
        name = mechanism.loops[int(np.argmax(closure.turned_over(q)[0]))].name
        how = "closes only after half a turn: an axis of its frames has the wrong sign"
    together = contradicting(mechanism)
    why = (
        f"; {_listed(together)} contradict each other: if one of them is removed, the others can be closed"
        if len(together) > 1
        else ""
    )
    return InputError(
        f"the {_closures(mechanism)} of robot '{mechanism.name}' cannot be assembled: '{name}' {how}{why}",
        file=mechanism.file,
        remedy="check frames and lengths, or give a nearer pose under `start:`",
    )


def _closures(mechanism: Mechanism) -> str:
    kinds = [name for name, parts in (("loops", mechanism.loops), ("cables", mechanism.cables)) if parts]
    return " and ".join(kinds) or "closures"


def contradicting(mechanism: Mechanism) -> tuple[str, ...]:
    """Loops that cannot be closed together, although the others can if any one of them is removed.

    Loops are removed one after the other as long as the rest still cannot be closed; all that remain are
    part of the contradiction. One name: this loop cannot be closed at all. Empty: too many loops to test.
    """
    loops = list(mechanism.loops)
    if len(loops) > _MOST_LOOPS:
        return ()
    for loop in mechanism.loops:
        rest = tuple(kept for kept in loops if kept is not loop)
        if not rest:
            break
        fewer = replace(mechanism, loops=rest)
        if _search(fewer, Closure(fewer)) is None:
            loops = list(rest)
    return tuple(loop.name for loop in loops)


def _listed(names: tuple[str, ...]) -> str:
    quoted = [f"'{name}'" for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def damped(closure: Closure, mechanism: Mechanism, q: Float[Array, "n q"]) -> Float[Array, "n q"]:
    """Levenberg-Marquardt onto the closure, damped by |f|^2: redundant equations cause no problem."""
    units, before = coordinate_units(mechanism), np.inf
    for _ in range(200):
        values = closure.values(q)
        size = np.sum(values.f**2, axis=1)
        A = values.A * units
        At = np.swapaxes(A, 1, 2)
        gram = A @ At
        # Redundant equations leave pivots of rounding size: the floor must be above them.
        floor = _FLOOR * np.trace(gram, axis1=1, axis2=2)
        gram += (size + floor)[:, None, None] * np.eye(closure.count)
        step = -(At @ solve(gram, values.f[:, :, None]))[:, :, 0]
        length = np.linalg.norm(step, axis=1, keepdims=True)
        q = moved(mechanism, q, units * step * np.minimum(1.0, _MOST_STEP / np.maximum(length, 1e-300)))
        longest = float(np.max(length, initial=0.0))
        # Steps of rounding size do not become smaller.
        if longest < 1e-15 or (before < _STILL and longest >= before):
            break
        before = longest
    return q


# The unit of length of a description, inferred from its size.
#
# Steps and directions mix angles and lengths. In a robot described in metres a radian and a metre are of
# similar size; in millimetres a radian moves bodies by hundreds of units. There, length coordinates are
# counted in thousands of units, so that random steps and rounding are the same for both.


def straightest(
    closure: Closure, start: Float[Array, "q"], near: Float[Array, "n q"], margin: Float[Array, "n"]
) -> Float[Array, "q"]:
    """Of closed poses near a singular one, the one that the joints reach with the most constant ratios.

    Where a parallelogram is stretched out, that is the parallelogram, not the crossed one. Of several such
    poses, the one farthest from singular ones.

    Args:
        closure: Equations of the loops.
        start: The singular pose.
        near: Regular poses to choose from.
        margin: Their distance from singular poses, see `Assembly.margin`.
    """
    apart = _apart(closure, start, near)
    begin = np.repeat(start[None], len(near), axis=0)
    bent = np.zeros(len(near))
    for part in (-1.0, 0.5):
        way = moved(closure.mechanism, begin, part * apart)
        bent = np.maximum(bent, np.abs(closure.values(way).f).max(axis=1))
    bent /= np.sum((apart / coordinate_units(closure.mechanism)) ** 2, axis=1)
    straight = bent <= 2.0 * bent.min() + 1e-9  # rounding, where a branch is straight
    return np.asarray(near[int(np.argmax(np.where(straight, margin, 0.0)))])


def _apart(closure: Closure, start: Float[Array, "q"], q: Float[Array, "n q"]) -> Float[Array, "n v"]:
    """From one pose to others, in velocity coordinates; attitudes are ignored."""
    robot = closure.mechanism
    away = np.zeros((len(q), closure.tree.n_v))
    for joint in robot.joints:
        if joint.has_quaternion:
            continue
        for name, position in zip(joint.coordinates, joint.positions, strict=True):
            at = robot.positions.index(position)
            away[:, robot.coordinates.index(name)] = q[:, at] - start[at]
    return away


def singular_start(closure: Closure, used: Float[Array, "q"], lost: int, beside: int) -> Notice:
    """The notice: the pose used instead, and the rank of the loops at both."""
    robot = closure.mechanism
    shown = ", ".join(f"{name}: {value:.4g}" for name, value in zip(robot.positions, used, strict=True))
    return notice("singular-start", robot=robot.name, there=lost, beside=beside, pose=shown)
