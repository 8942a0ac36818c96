"""Locked cable lengths along a log: lengths from the poses, and whether the cables were locked.

A pose with given measured coordinates, from many starts: where homotopy from one pose is not reliable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float, Int, spread
from dynid.common.batched import svd
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.kinematics.assembly import Assembly, assembly_of
from dynid.kinematics.closure import moved
from dynid.kinematics.locked_motion import singular_cables
from dynid.kinematics.sensors import Sensors, sensors_of
from dynid.mechanism.cable import driven_cables
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.regressor.regressor import energy_row

if TYPE_CHECKING:
    from dynid.problem import Problem


_MEAN_OF = 100  # poses of a run whose mean length is the locked one
_MOST = 2000  # poses of a run at which lengths are computed
# Of the length: markers and pulleys leave 1e-4, a slack cable or a moving winch far more.
_DOUBTFUL, _REFUSED = 1e-3, 1e-2
_OPEN = 1e-8  # m or rad: a pose that leaves more than this open is none
# A slack cable only ever becomes shorter than its length.
_ONE_SIDED = 3.0


@dataclass(frozen=True, eq=False)
class Spread:
    """Lengths of the cables over the runs of a log.

    Attributes:
        mean, sigma: Of each run and cable, shape (s, c), in [m].
        below, above: Farthest from the median, shape (s, c), in [m].
        worst: Sample farthest from the median, shape (s, c).
        first: Positions of all joints at the beginning of each run, shape (s, n_q).
        notices: Poses at which a cable is singular.
    """

    mean: Float[Array, "s c"]
    sigma: Float[Array, "s c"]
    below: Float[Array, "s c"]
    above: Float[Array, "s c"]
    worst: Int[Array, "s c"]
    first: Float[Array, "s q"]
    notices: tuple[Notice, ...] = ()


def _seen(
    mechanism: Mechanism, wanted: Float[Array, "n w"], positions: Sequence[str]
) -> tuple[Float[Array, "n q"], Float[Array, "n c"]]:
    """Positions of all joints at measured poses, and those of the cables among them."""
    assembly = assembly_of(mechanism)
    q = assembly.follow(np.asarray(wanted, float), sensors_of(mechanism, positions))
    places = [mechanism.positions.index(cable.name) for cable in driven_cables(mechanism)]
    return q, np.asarray(q[:, places])


def estimated(log: Log, mechanism: Mechanism, positions: Sequence[str]) -> Spread:
    """Lengths of every run from the poses of the log, evenly thinned where it is long."""
    columns = [log.position_names.index(name) for name in positions]
    parts: list[tuple[Array, ...]] = []
    notices: list[Notice] = []
    for a, b in log.segments:
        at = np.arange(a, b, max(1, (b - a) // _MOST))
        q, L = _seen(mechanism, log.q[at][:, columns], positions)
        notices += singular_cables(mechanism, q)
        off = L - np.median(L, axis=0)
        worst = at[np.argmax(np.abs(off), axis=0)]
        parts.append((L.mean(axis=0), L.std(axis=0), -off.min(axis=0), off.max(axis=0), worst, q[0]))
    by_cable = {(item.code, item.text.split("'")[1]): item for item in notices}
    means, sigmas, below, above, worst, first = (np.array([part[k] for part in parts]) for k in range(6))
    return Spread(means, sigmas, below, above, worst, first, tuple(by_cable.values()))


def length_changes(problem: Problem, i: int, parts: Sequence[tuple[int, int]]) -> list[Float[Array, "n c"]]:
    """Lengths of the cables at parts of log i less their mean over the run, in [m]."""
    motion, robot = problem.sources[i].motion, problem.mechanism
    changes: list[Array] = [np.zeros(0)] * len(parts)
    for low, high in motion.usable():
        inside = [k for k, (start, _) in enumerate(parts) if low <= start < high]
        if not inside:
            continue
        q = motion.states(low, high)[0]
        thinned = spread(len(q), _MEAN_OF)
        at = [np.arange(*parts[k]) - low for k in inside]
        every, places = np.unique(np.concatenate([thinned, *at]), return_inverse=True)
        lengths = _seen(robot, q[every], motion.log.position_names)[1][places]
        rows = np.split(lengths, np.cumsum([len(thinned), *(len(indices) for indices in at)])[:-1])
        for k, part in zip(inside, rows[1:], strict=True):
            changes[k] = np.asarray(part - rows[0].mean(axis=0))
    return changes


def check_spread(log: Log, spread: Spread, cables: Sequence[str]) -> list[Notice]:
    """Refuse a log whose cables were not locked; warn of one that may have been slack."""
    share = spread.sigma / spread.mean
    run, cable = divmod(int(np.argmax(share)), share.shape[1])
    if share[run, cable] < _DOUBTFUL:
        return []
    slack = spread.below[run, cable] > _ONE_SIDED * spread.above[run, cable]
    loose = notice(
        "cable-slack" if slack else "cable-not-locked",
        cable=cables[cable],
        log=log.name,
        run=run + 1,
        sigma=1e3 * spread.sigma[run, cable],
        most=1e3 * max(spread.below[run, cable], spread.above[run, cable]),
        when=log.t[spread.worst[run, cable]],
    )
    if share[run, cable] > _REFUSED:
        raise InputError(loose.text, file=log.file, remedy=loose.remedy)
    return [loose]


def check_given(log: Log, mechanism: Mechanism, cables: Sequence[str], spread: Spread | None) -> Log:
    """Refuse lengths that change within a run or that no pose satisfies; warn where poses contradict them."""
    columns = [log.position_names.index(name) for name in cables]
    for run, (a, b) in enumerate(log.segments):
        L = log.q[a:b, columns]
        if L.min() <= 0.0:
            i = int(np.argmin(L.min(axis=0)))
            raise InputError(
                f"the locked length of '{cables[i]}' is {L[:, i].min():g} m",
                file=log.file,
                remedy="lengths are in m, from the entry point to the attachment",
            )
        moved = np.ptp(L, axis=0)
        i = int(np.argmax(moved))
        if moved[i] > _DOUBTFUL * np.median(L[:, i]):
            raise InputError(
                f"the locked length of '{cables[i]}' changes by {1e3 * moved[i]:.3g} mm in run {run + 1} of"
                f" log '{log.name}'",
                file=log.file,
                remedy="a locked length is constant within a run: number the runs in a column `segment`",
            )
    if spread is None:
        return replace(log, origins=_fitted(log, mechanism))
    given = np.array([np.median(log.q[a:b, columns], axis=0) for a, b in log.segments])
    off = np.abs(given - spread.mean)
    run, cable = divmod(int(np.argmax(off)), off.shape[1])
    if off[run, cable] < _DOUBTFUL * spread.mean[run, cable]:
        return log
    differs = notice(
        "length-differs",
        cable=cables[cable],
        given=given[run, cable],
        log=log.name,
        run=run + 1,
        found=spread.mean[run, cable],
    )
    return replace(log, notices=(*log.notices, differs))


def _fitted(log: Log, mechanism: Mechanism) -> dict[int, Float[Array, "q"]]:
    """A pose at the beginning of each run; refused where none has its coordinates and lengths.

    Several poses can have the same free coordinates and lengths. The pose with the lowest potential energy
    is used, computed with the prior masses and centres of mass.
    """
    assembly = assembly_of(mechanism)
    sensors = sensors_of(mechanism, log.position_names)
    if sensors.count < assembly.dof:
        return {}  # reported later, with what is missing
    starts = {}
    for run, (a, _) in enumerate(log.segments):
        best = nearest_pose(assembly, sensors, log.q[a], partial(_potential, mechanism))
        miss = float(np.abs(sensors.miss(best[None], log.q[a][None])).max())
        if miss > _OPEN:
            shown = ", ".join(f"{name} {x:.4g}" for name, x in zip(log.position_names, log.q[a], strict=True))
            raise InputError(
                f"no pose has the coordinates and lengths of log '{log.name}', run {run + 1}, at its"
                f" start ({shown}): the nearest pose found differs by {1e3 * miss:.3g} mm",
                file=log.file,
                remedy="check zero and unit of the lengths, the end points of the cables, and `start:`",
            )
        starts[a] = best
    return starts


def _potential(mechanism: Mechanism, q: Float[Array, "n q"]) -> Float[Array, "n"]:
    """Potential energy of poses with prior masses and centres of mass; bodies without any weigh alike."""
    bodies = [mechanism.bodies[joint.child] for joint in mechanism.joints]
    chi = np.zeros((len(bodies) + len(mechanism.payloads), 10))
    for i, body in enumerate(bodies):
        if body.parameters:
            chi[i, 6:9] = [body.prior.get(symbol, 0.0) for symbol in ("MX", "MY", "MZ")]
            chi[i, 9] = body.prior.get("M", 1.0)
    return energy_row(mechanism, q, np.zeros((len(q), len(mechanism.coordinates)))) @ chi.ravel()


_STARTS = 48
_SEED = 20210823
_ROUNDS = 60
_REACH = 0.4  # rad or m: tilts and heights tried around the start pose
_MOST_STEP = 0.3
_CLOSED = 1e-9
_DAMPING = 1e-3


def nearest_pose(
    assembly: Assembly,
    sensors: Sensors,
    wanted: Float[Array, "w"],
    height: Callable[[Float[Array, "n q"]], Float[Array, "n"]],
) -> Float[Array, "q"]:
    """The pose with the measured coordinates; of several, the one with the lowest potential energy.

    Levenberg-Marquardt along the closure, all starts at once: near singular
    coordinates it takes small steps where Newton steps would jump to another branch.

    Args:
        assembly: With the closure; the measured coordinates must determine the pose.
        sensors: What is measured.
        wanted: Their positions, shape (w,).
        height: Potential energy of poses, up to a factor.

    Returns:
        Positions of all joints, shape (n_q,); where no pose matches, the nearest one found.
    """
    rng = np.random.default_rng(_SEED)
    origin = np.repeat(assembly.start[None], _STARTS, axis=0)
    stride = _REACH * assembly.drawn(assembly.tangent(assembly.closure.values(origin).A), rng)
    stride[0] = 0.0
    q = assembly.close(moved(assembly.mechanism, origin, stride), iterations=6)
    many = np.repeat(np.asarray(wanted, float)[None], _STARTS, axis=0)
    damping = np.full(_STARTS, _DAMPING)
    miss = sensors.miss(q, many)
    for _ in range(_ROUNDS):
        N = assembly.tangent(assembly.closure.values(q).A)
        tried = _step(assembly, sensors, q, N, miss, damping)
        left = sensors.miss(tried, many)
        better = np.linalg.norm(left, axis=1) < np.linalg.norm(miss, axis=1)
        q, miss = np.where(better[:, None], tried, q), np.where(better[:, None], left, miss)
        damping = np.clip(np.where(better, damping * 0.2, damping * 5.0), 1e-15, 1e3)
        if np.all(np.abs(miss).max(axis=1) < 1e-13):
            break
    size = np.nan_to_num(np.abs(miss).max(axis=1), nan=np.inf)
    good = np.flatnonzero(size < _CLOSED)
    if not len(good):
        return np.asarray(q[int(np.argmin(size))])
    return np.asarray(q[good[int(np.argmin(height(q[good])))]])


def _step(
    assembly: Assembly,
    sensors: Sensors,
    q: Float[Array, "n q"],
    N: Float[Array, "n v d"],
    miss: Float[Array, "n m"],
    damping: Float[Array, "n"],
) -> Float[Array, "n q"]:
    """One damped step of every start, then back onto the closure."""
    M = N[:, sensors.velocity]
    U, s, Vt = svd(M, full_matrices=False)
    gain = s / (s**2 + damping[:, None])
    x = np.einsum("nkd,nk,nmk,nm->nd", Vt, gain, U, miss, optimize=True)
    step = np.einsum("nvd,nd->nv", N, x)
    size = np.linalg.norm(step, axis=1, keepdims=True)
    step = step * np.minimum(1.0, _MOST_STEP / np.maximum(size, 1e-300))
    return assembly.close(moved(assembly.mechanism, q, step), iterations=4)
