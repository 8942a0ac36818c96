"""Free motion on locked cables: many motions at once, their cable tensions, slack and energy drift.

A robot on locked cables of any length: states, tensions and energies in batches.

    ID(q, dq, ddq; chi) = -Xi^T tension,      L(q) = lengths,      Xi dq = 0        [CableRobot, eqs 5, 8]

Neither Xi nor its rate depends on the cable lengths, so one set of equations is valid for parallel
motions with different lengths; only the projection onto the cables uses the lengths of each motion.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.batched import eigvals, inv, pinv, solve
from dynid.common.errors import InputError, nearest
from dynid.dynamics.forward import ForwardDynamics
from dynid.dynamics.freedoms import ClosedFreedoms, OrthonormalFreedoms, position_rates
from dynid.dynamics.integrate import adams, unit_quaternions
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.closure import moved
from dynid.mechanism.cable import driven_cables, locked
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.regressor.regressor import energy_row

_RUN_AWAY = 1e3  # m, rad or per second: beyond any platform on cables
_BATCH = 20000  # states processed at once after the integration


@dataclass(frozen=True, eq=False)
class FreeMotions:
    """k motions sampled at n common times.

    Attributes:
        t: Times from the start, shape (n,), in [s].
        q, dq, ddq: All coordinates of the locked robot, shapes (n, k, n_q) and (n, k, v), SI.
        tensions: Pull of each cable, shape (n, k, c), in [N] for parameters in SI.
        drift: Largest change of the energy along each motion relative to its largest kinetic energy,
        shape (k,); dissipation counts as drift.
        taut_until: When a cable first stops pulling, in [s]; infinite where none does, shape (k,). Later
        samples are not a motion of the real robot.
        slack: That cable, shape (k,); -1: none.
        cables: Names, in the order of `tensions`.
    """

    t: Float[Array, "n"]
    q: Float[Array, "n k q"]
    dq: Float[Array, "n k v"]
    ddq: Float[Array, "n k v"]
    tensions: Float[Array, "n k c"]
    drift: Float[Array, "k"]
    taut_until: Float[Array, "k"]
    slack: Int[Array, "k"]
    cables: tuple[str, ...]

    @property
    def taut(self) -> Bool[Array, "k"]:
        """Motions during which every cable pulls."""
        return np.isinf(self.taut_until)

    @property
    def diverged(self) -> Bool[Array, "k"]:
        """Motions whose simulation diverged or failed: some of their samples are NaN."""
        return np.asarray(~np.isfinite(self.tensions).all(axis=(0, 2)))

    def refuse_slack(self) -> None:
        """Raise where a cable goes slack, with the time and the cable."""
        if self.taut.all():
            return
        k = int(np.argmin(self.taut_until))
        raise InputError(
            f"cable '{self.cables[int(self.slack[k])]}' goes slack {self.taut_until[k]:.3g} s after the start"
            f" of free motion {k + 1}: from then on the model with locked cables is not valid",
            remedy="release it closer to equilibrium, or choose lengths with more tension",
        )


def free_motions(
    mechanism: Mechanism | LockedCables,
    chi: Values,
    lengths: Float[Array, "k c"],
    starts: Float[Array, "k q"],
    duration: float,
    rate: float,
    velocities: Float[Array, "k v"] | None = None,
    mounted: Sequence[str] = (),
    phase: float = 0.08,
) -> FreeMotions:
    """Motions of a robot released on locked cables, many in parallel.

    Args:
        mechanism: With cables; or `LockedCables` built from it, whose parameters are then used.
        chi: Standard parameters, in the order of the table or by name, SI; values per unit mass are valid
        too, tensions are then per unit mass.
        lengths: Of the cables of each motion, shape (k, c), in [m].
        starts: Poses of the locked robot, shape (k, n_q), [m] and unit quaternion for a free platform;
            moved onto the lengths by the minimum-norm step.
        duration: In [s].
        rate: Samples per second, in [Hz].
        velocities: Of the start, shape (k, v), world x y z in [m/s] and body axes in [rad/s] for a free
            platform; only the part that the cables allow is used. Default: at rest.
        mounted: Payloads on the robot.
        phase: Largest phase of the fastest small oscillation per step, in [rad]: with 0.08 the energy drifts
            by about 1e-9 in 10 s; 0.2 takes half the time and gives 1e-6.
    """
    robot = mechanism if isinstance(mechanism, LockedCables) else LockedCables(mechanism, chi, mounted)
    q, dq = _starts(robot, lengths, starts, velocities)
    n = round(duration * rate) + 1
    states = integrated(robot, robot.dynamics, (q, dq), lengths, n, rate, phase)
    return _motions(robot, states, q.shape[1], np.arange(n) / rate)


def integrated(
    robot: LockedCables,
    dynamics: ForwardDynamics,
    start: tuple[Float[Array, "k q"], Float[Array, "k v"]],
    lengths: Float[Array, "k c"],
    n: int,
    rate: float,
    phase: float = 0.08,
) -> Float[Array, "n k s"]:
    """States (q, dq) of motions from feasible states at n times, without tensions; see `free_motions`.

    Args:
        dynamics: Equations of motion of `robot`, perhaps with other parameters (`robot.changed`).
    """
    n_q = start[0].shape[1]

    def slope(state: Array) -> Array:
        pose, rates = unit_quaternions(robot.robot, state[:, :n_q]), state[:, n_q:]
        none = np.zeros((len(state), len(robot.robot.actuators)))
        ddq = dynamics.accelerations(pose, rates, none).ddq
        return np.concatenate([position_rates(robot.robot, pose, rates), ddq], axis=1)

    def back(state: Array, lengths: Array) -> Array:
        pose = unit_quaternions(robot.robot, state[:, :n_q])
        return np.concatenate(robot.repaired(pose, state[:, n_q:], lengths), axis=1)

    first = np.concatenate(start, axis=1)
    paths = np.full((n, *first.shape), np.nan)
    steps = np.ceil(frequencies(robot, start[0]) / (rate * phase))
    # A diverging motion overflows alone; its samples are not finite, and callers drop it.
    for parts in np.unique(steps[np.isfinite(steps)]).astype(int).tolist():
        group = np.flatnonzero(steps == parts)  # own step size: no motion depends on the others
        every = max(1, parts)
        repair = functools.partial(back, lengths=lengths[group])
        with np.errstate(all="ignore"):
            paths[:, group] = adams(slope, repair, first[group], 1.0 / (rate * every), (n - 1) * every, every)
    return paths


def _starts(
    robot: LockedCables,
    lengths: Float[Array, "k c"],
    starts: Float[Array, "k q"],
    velocities: Float[Array, "k v"] | None,
) -> tuple[Float[Array, "k q"], Float[Array, "k v"]]:
    """States on the cables, or an error with the reason."""
    if lengths.shape != (len(starts), len(robot.cables)):
        raise InputError(
            f"{lengths.shape} lengths do not fit {len(starts)} motions on {len(robot.cables)} cables",
            remedy="give one row of lengths for each starting pose, one column for each cable",
        )
    q, reached = robot.closed(unit_quaternions(robot.robot, np.asarray(starts, dtype=float)), lengths)
    if not reached.all():
        k = int(np.argmin(reached))
        gap = robot.gaps(q[k : k + 1], lengths[k : k + 1])[0]
        raise InputError(
            f"no pose near the start of free motion {k + 1} has its cable lengths: the smallest"
            f" error is {np.abs(gap).max():.3g} m",
            remedy="compare the lengths with those of the starting pose",
        )
    rates = np.zeros((len(q), len(robot.robot.coordinates))) if velocities is None else velocities
    N = robot.assembly.tangent(robot.assembly.closure.values(q).A)
    return q, np.einsum("nvd,nwd,nw->nv", N, N, rates, optimize=True)


def frequencies(robot: LockedCables, q: Float[Array, "k q"]) -> Float[Array, "k"]:
    """Approximate highest angular frequency of small oscillations near each start, in [rad/s]."""
    _, K, _ = robot.still.stiffness(q)
    none = np.zeros((len(q), len(robot.robot.coordinates)))
    mass = robot.still.accelerations(q, none, np.zeros((len(q), len(robot.robot.actuators)))).mass
    return np.asarray(np.sqrt(np.abs(eigvals(solve(mass, K))).max(axis=1)))


def _motions(
    robot: LockedCables, states: Float[Array, "n k s"], n_q: int, t: Float[Array, "n"]
) -> FreeMotions:
    """Accelerations, tensions and energies of integrated states, in batches."""
    n, k, _ = states.shape
    flat = states.reshape(n * k, -1)
    # Long after a cable has gone slack the solution may diverge: those samples are meaningless.
    lost = ~np.all(np.abs(flat) < _RUN_AWAY, axis=1)
    flat = np.where(lost[:, None], np.tile(states[0], (n, 1)), flat)
    ddq, tensions, energy, moving = [], [], [], []
    for i in range(0, len(flat), _BATCH):
        q, dq = flat[i : i + _BATCH, :n_q], flat[i : i + _BATCH, n_q:]
        ddq.append(robot.dynamics.accelerations(q, dq, np.zeros((len(q), len(robot.robot.actuators)))).ddq)
        tensions.append(robot.tensions(q, dq, ddq[-1]))
        energy.append(robot.energy(q, dq))
        moving.append(energy[-1] - robot.energy(q, np.zeros_like(dq)))
    E, T = (np.concatenate(x).reshape(n, k) for x in (energy, moving))
    E[lost.reshape(n, k)] = np.nan
    pulls = np.where(lost[:, None], np.nan, np.concatenate(tensions)).reshape(n, k, -1)
    drift = np.abs(E - E[0]).max(axis=0) / np.maximum(T.max(axis=0), 1e-300)
    when, slack_cable = _first_slack(t, pulls)
    gone = lost.reshape(n, k, 1)
    q, dq = (np.where(gone, np.nan, x) for x in (states[:, :, :n_q], states[:, :, n_q:]))
    second = np.where(gone, np.nan, np.concatenate(ddq).reshape(n, k, -1))
    return FreeMotions(t, q, dq, second, pulls, drift, when, slack_cable, robot.cables)


def _first_slack(
    t: Float[Array, "n"], pulls: Float[Array, "n k c"]
) -> tuple[Float[Array, "k"], Int[Array, "k"]]:
    """Time at which a cable tension first becomes negative (linear interpolation), and the cable."""
    below = ~(pulls >= 0.0)
    when = np.full(pulls.shape[1:], np.inf)
    for k, c in zip(*np.nonzero(below.any(axis=0)), strict=True):
        i = int(np.argmax(below[:, k, c]))
        when[k, c] = t[i]
        if i:
            before, after = pulls[i - 1 : i + 1, k, c]
            when[k, c] = t[i - 1] + (t[i] - t[i - 1]) * before / (before - after)
    first = when.min(axis=1)
    return first, np.where(np.isinf(first), -1, when.argmin(axis=1))


Values = Float[Array, "p"] | Mapping[str, float]
_SEED = 20220104
_POSES, _NEAR = 12, 0.1  # poses around the start at which coordinates are chosen, and their distance from it
_ITERATIONS = 30
_MOST_STEP = 0.3
_POOR = 1e6  # size of an inverse beyond which the reactions are computed from all coordinates
_CLOSED = 1e-11  # m: error of the lengths, a little above rounding


class LockedCables:
    """A robot with locked winches.

    Args:
        mechanism: With cables; those that have a coordinate are locked here.
        chi: Standard parameters, in the order of the mechanism's table or by name (others zero), SI.
            Their common factor changes tensions only: values per unit mass are valid.
        mounted: Payloads on the robot.
    """

    def __init__(self, mechanism: Mechanism, chi: Values, mounted: Sequence[str] = ()) -> None:
        if not mechanism.cables:
            raise InputError(
                f"robot '{mechanism.name}' has no cables, so there is no free motion on locked cables",
                file=mechanism.file,
                remedy="add them under `cables:`",
            )
        self.robot = locked(mechanism) if driven_cables(mechanism) else mechanism
        self.mounted = tuple(mounted)
        self.assembly = assembly_of(self.robot)
        # Near the start pose, but not at it: entries that are zero there by symmetry are not always zero.
        near = self.assembly.walk(np.random.default_rng(_SEED), _POSES, reach=_NEAR)
        self.freedoms = ClosedFreedoms(self.robot, near)
        self.values = by_name(mechanism, chi)
        self.dynamics = self._with(self.values, self.freedoms)
        self.still = self._with(self.values, OrthonormalFreedoms(self.robot, near))
        self.cables = tuple(cable.name for cable in self.robot.cables)
        names = self.assembly.closure.names
        self.rows = np.array([names.index(name) for name in self.cables])
        self._given = np.array([cable.length for cable in self.robot.cables], dtype=float)

    def changed(self, chi: Values) -> ForwardDynamics:
        """The equations of motion with other parameters, on the same cables."""
        return self._with(by_name(self.robot, chi), self.freedoms)

    def _with(self, values: Mapping[str, float], freedoms: ClosedFreedoms) -> ForwardDynamics:
        chi = np.array([values.get(parameter.name, 0.0) for parameter in parameter_table(self.robot)])
        return ForwardDynamics(self.robot, chi, self.mounted, freedoms)

    def lengths(self, q: Float[Array, "n q"]) -> Float[Array, "n c"]:
        """Cable lengths at poses, in [m]."""
        return np.asarray(self.assembly.closure.values(q).f[:, self.rows] + self._given)

    def gaps(self, q: Float[Array, "n q"], lengths: Float[Array, "n c"]) -> Float[Array, "n g"]:
        """Closure equations where each pose has its own cable lengths, in [m] or [rad]."""
        f = self.assembly.closure.values(q).f
        f[:, self.rows] += self._given - lengths
        return f

    def closed(
        self,
        q: Float[Array, "n q"],
        lengths: Float[Array, "n c"] | Float[Array, "c"],
    ) -> tuple[Float[Array, "n q"], Bool[Array, "n"]]:
        """Nearby poses with the given lengths, by minimum-norm steps; and whether each was found."""
        q, lengths = np.array(q), np.broadcast_to(lengths, (len(q), len(self.cables)))
        active = np.arange(len(q))
        for _ in range(_ITERATIONS):
            f = self.gaps(q[active], lengths[active])
            parts = self.assembly.split(self.assembly.closure.values(q[active]).A)
            step = -parts.step(f)
            size = np.linalg.norm(step / self.assembly.units, axis=1, keepdims=True)
            step = step * np.minimum(1.0, _MOST_STEP / np.maximum(size, 1e-300))
            q[active] = moved(self.robot, q[active], step)
            active = active[~(size[:, 0] < 1e-9)]
            if not len(active):
                break
        return q, np.abs(self.gaps(q, lengths)).max(axis=1) < _CLOSED

    def repaired(
        self, q: Float[Array, "n q"], dq: Float[Array, "n v"], lengths: Float[Array, "n c"]
    ) -> tuple[Float[Array, "n q"], Float[Array, "n v"]]:
        """States close to their cables, projected onto them; independent coordinates are fixed."""
        free = self.freedoms
        still = np.zeros((len(q), free.dof))
        q = moved(self.robot, q, free.lifted(q, still, self.gaps(q, lengths)))
        stray = np.einsum("ncv,nv->nc", self.assembly.closure.values(q).A, dq)
        return q, dq + free.lifted(q, still, stray)

    def tensions(
        self, q: Float[Array, "n q"], dq: Float[Array, "n v"], ddq: Float[Array, "n v"]
    ) -> Float[Array, "n c"]:
        """Pull of each cable, in [N] for parameters in SI; negative: it would have to push.

        From ID = A^T lam, with lam the reactions of all closures; where some are redundant, the
        minimum-norm solution. A pulling cable acts against +length: tension = -lam.
        """
        A = self.assembly.closure.values(q).A
        efforts = self.dynamics.inverse(q, dq, ddq)
        dependent = np.setdiff1d(np.arange(A.shape[2]), self.freedoms.independent)
        square = np.swapaxes(A[:, :, dependent], 1, 2)
        lam, poor = np.full(A.shape[:2], np.nan), np.ones(len(A), dtype=bool)
        if square.shape[1] == square.shape[2]:
            lam = solve(square, efforts[:, dependent, None])[:, :, 0]
            poor = ~(np.linalg.norm(inv(square), axis=(1, 2)) < _POOR)
        if poor.any():
            lam[poor] = np.einsum("ncv,nv->nc", pinv(np.swapaxes(A[poor], 1, 2)), efforts[poor])
        return np.asarray(-lam[:, self.rows])

    def energy(self, q: Float[Array, "n q"], dq: Float[Array, "n v"]) -> Float[Array, "n"]:
        """Kinetic plus potential energy, zero at rest in the base origin, in [J] for parameters in SI."""
        owners = [joint.child for joint in self.robot.joints] + list(self.robot.payloads)
        absent = set(self.robot.payloads) - set(self.mounted)
        chi = [
            0.0 if owner in absent else self.values.get(f"{symbol}_{owner}", 0.0)
            for owner in owners
            for symbol in SYMBOLS
        ]
        return np.asarray(energy_row(self.robot, q, dq) @ np.array(chi))


def by_name(mechanism: Mechanism, chi: Values) -> dict[str, float]:
    """Standard parameters by name, from a vector in the order of the table or from names."""
    names = [parameter.name for parameter in parameter_table(mechanism)]
    if isinstance(chi, Mapping):
        for name in chi:
            if name not in names:
                raise InputError(f"unknown parameter '{name}'" + nearest(name, names), file=mechanism.file)
        return dict(chi)
    values = np.asarray(chi, dtype=float)
    if values.shape != (len(names),):
        raise InputError(f"{values.shape} values do not fit {len(names)} standard parameters")
    return dict(zip(names, values.tolist(), strict=True))
