"""Calibration with the dynamics: unknown quantities x of the description, found together with chi.

    minimise over x   |r_e(x)|^2  +  |r_s(x)|^2  +  sum ((x - x_0) / s_0)^2

r_e: weighted residuals of the efforts about their best chi (variable projection), r_s: what the sensors of
a closed robot contradict its loops by, or what locked cable lengths change within a run, over its noise, and
the prior of the description: s_0 is its `sigma:`, else 10 mm or 10 mrad. Poses that the last step may have
moved by more than linearly do not count (`ClosedKinematics`). One Gauss-Newton step needs

    D = d(W chi - Y)/dx,   D~ = D - W W^+ D,      dx = H^-1 (D~^T r - S^T r_s / s^2 + P (x_0 - x))
    H = D~^T D~ + S^T S / s^2 + P,                S = d r_s / dx,     P = diag(1 / s_0^2)

The covariance is a jackknife (CR3) over blocks b of the log, repeats of a motion as one block, and over parts
of the sensors. With A the information of (chi, x) together, A_b and g_b information and score of one block:

    C = A^-1 (sum u_b u_b^T + P) A^-1,      u_b = (1 - A_b A^-1)^-1 g_b
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.base.base import BaseSet
from dynid.checks.description_effects import changed_problem
from dynid.common.arrays import Array, Float
from dynid.common.batched import eigh
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.conditioning.rewritten import slope_rows
from dynid.linear_fit import LinearFit, base_of, linear_fit
from dynid.mechanism.description import TILTS, ZERO, at_values, current, unit_of
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.plan import MotionPlan
from dynid.problem import Problem, prepare, row_groups
from dynid.projection.factor import column_sizes, scaled_lstsq
from dynid.projection.projection import Group, System
from dynid.statistics.clusters import duration, repeated, stretches
from dynid.unknown import Task
from dynid.unknowns.sensor_rows import SensorRows, sensor_rows

STEP = 2e-5  # m or rad, of differences: rows change by 1e-4 of it more than linearly
DOUBT = 0.01  # m or rad: standard deviation of a quantity whose description gives none
_DOUBT_TILT = 0.1  # rad
_ROUNDS = 30
_STILL = 0.05  # of sigma: a smaller step changes nothing
_LONGEST = 3.0  # of the usual prior deviation: a longer step leaves the region where it is linear
_HALVINGS = 4
_BLOCKS = 40
_MOST_OF_ONE = 0.9  # of the information about a combination: one block has no more
_SEEN = 0.5  # of the prior deviation: data that leave more than this do not determine a quantity


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Quantities found, in the order of `names`.

    Attributes:
        task: With the robot at the values found.
        given: As described.
        covariance: Shape (k, k), in [m^2], [m rad], [rad^2].
        moved: d x / d u of the quantities u that are uncertain but not searched, shape (k, u).
        unseen: Quantities that these data do not determine -> the combination they do not see, in words.
        dof: Degrees of freedom of the covariance.
    """

    task: Task
    names: tuple[str, ...]
    given: Mapping[str, float]
    covariance: Float[Array, "k k"]
    moved: Float[Array, "k u"]
    unseen: Mapping[str, str]
    dof: float
    converged: bool

    def choices(self, covariance: Float[Array, "q q"]) -> dict[str, str]:
        """What was found, one line each: the difference between the two descriptions.

        Args:
            covariance: With the effect of quantities that are only uncertain, those that were found first.
        """
        lines = {}
        for k, name in enumerate(self.names):
            value, given = current(self.task.mechanism, name), self.given[name]
            sigma = float(np.sqrt(covariance[k, k]))
            if name in TILTS:
                continue
            unit = unit_of(self.task.mechanism, name)
            words = f"{given:.6g} -> {value:.6g} (change {value - given:.3g}, sigma {sigma:.2g} {unit})"
            lines[f"description: {_spoken(name)}"] = words + (
                "; not determined by these data" if name in self.unseen else ""
            )
        if any(name in TILTS for name in self.names):
            g = self.task.mechanism.gravity
            k = self.names.index(TILTS[0])
            sigma = float(np.sqrt(max(covariance[k, k], covariance[k + 1, k + 1])))
            shown = ", ".join(f"{x:.5g}" for x in g)
            lines["description: gravity"] = f"({shown}) m/s^2, direction known to {1e3 * sigma:.2g} mrad"
        return lines

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What these data do not determine, and a search that did not end."""
        remarks = []
        if self.unseen:
            shown = "; ".join(dict.fromkeys(f"{_spoken(name)}{words}" for name, words in self.unseen.items()))
            remarks.append(notice("description-unseen", names=shown))
        if not self.converged:
            remarks.append(notice("description-open"))
        return tuple(remarks)


@dataclass(frozen=True, eq=False)
class _Linearised:
    """All rows about some values x.

    Attributes:
        H: Information of the rows alone (without prior), shape (k, k).
        gradient: Of half the cost, negative, without prior, shape (k,).
        cross: Information between the quantities searched and those only uncertain, shape (k, u).
        efforts, sensors: The rows themselves.
    """

    H: Float[Array, "k k"]
    gradient: Float[Array, "k"]
    cross: Float[Array, "k u"]
    efforts: _Blocks
    sensors: SensorRows | None


def calibrate(task: Task, names: tuple[str, ...], uncertain: tuple[str, ...] = ()) -> Calibrated:
    """Find quantities of the description; the same task always gives the same.

    Args:
        task: Robot as described, logs and settings.
        names: Quantities to find.
        uncertain: Further ones that are not searched, but move what is found.
    """
    prior = _prior(task.mechanism, names)
    sigma0 = np.array([prior[name] for name in names])
    # Sensors may contradict a description that is not right yet by more than one that is.
    doubted = replace(task.mechanism, uncertain={**task.mechanism.uncertain, **prior})
    task = replace(task, mechanism=doubted, prepared=None)
    search = _Search(task, names, uncertain, task.problem.plans, prior)
    x0 = np.array([current(task.mechanism, name) for name in names])
    P = np.diag(1.0 / sigma0**2)
    longest = _LONGEST * np.array([_doubt(name) for name in names])
    x, converged, before = x0.copy(), False, np.inf
    for count in range(_ROUNDS):
        if task.progress:
            task.progress("description of the robot", count / _ROUNDS)
        at = search.linearised(x)
        H = at.H + P
        step = np.linalg.solve(H, at.gradient + P @ (x0 - x))
        step *= min(1.0, 1.0 / max(float(np.max(np.abs(step) / longest)), 1e-300))
        size = float(np.max(np.abs(step) / np.sqrt(np.diag(np.linalg.inv(H)))))
        # Steps shrink at least as fast as the last two did: the next one is size^2 / before.
        last = size**2 < _STILL * before < np.inf
        search.narrow(step)
        after = x if size < _STILL else search.possible(x, step)
        converged = size < _STILL or (last and np.array_equal(after, x + step))
        x, before = after, size
        if converged:
            break
    if converged:
        covariance, moved = _covariance(at, P), -np.linalg.solve(H, at.cross)
        unseen = _unseen(names, covariance, at.H, sigma0)
    else:  # a value and a deviation from nowhere: the description stays, with its own
        x, covariance, moved = x0, np.diag(sigma0**2), np.zeros_like(at.cross)
        unseen = dict.fromkeys(names, " (the search did not end)")
    robot_at_x = at_values(task.mechanism, dict(zip(names, x.tolist(), strict=True)))
    # The prior of what was found has been used: the description keeps only that of the others.
    kept = {name: sigma for name, sigma in robot_at_x.uncertain.items() if name not in names}
    robot_at_x = replace(robot_at_x, uncertain=kept)
    return Calibrated(
        task=replace(task, mechanism=robot_at_x, plans=search.plans, prepared=None),
        names=names,
        given=dict(zip(names, x0.tolist(), strict=True)),
        covariance=covariance,
        moved=moved,
        unseen=unseen,
        dof=float(max(len(set(at.efforts.labels)) - len(names), 2)),
        converged=converged,
    )


def _prior(robot: Mechanism, names: Sequence[str]) -> dict[str, float]:
    """Standard deviation of each quantity before the data, in [m] or [rad]."""
    return {name: robot.uncertain.get(name, _doubt(name)) for name in names}


def _doubt(name: str) -> float:
    """Standard deviation of a quantity whose description gives none, in [m] or [rad]."""
    return _DOUBT_TILT if name in TILTS else DOUBT


@dataclass(eq=False)
class _Search:
    """Linearisations of one task about different values."""

    task: Task
    names: tuple[str, ...]
    uncertain: tuple[str, ...]
    plans: Sequence[MotionPlan]
    doubt: Mapping[str, float]
    base: BaseSet | None = None
    _last: tuple[Float[Array, "k"], tuple[Task, Problem]] | None = None

    def robot(self, x: Float[Array, "k"]) -> Mechanism:
        """The robot at some values, and how far they may be off: poses that this may turn do not count."""
        robot = at_values(self.task.mechanism, dict(zip(self.names, x.tolist(), strict=True)))
        return replace(robot, uncertain={**robot.uncertain, **self.doubt})

    def narrow(self, step: Float[Array, "k"]) -> None:
        """Doubt no quantity by more than the largest step of one."""
        poses = [abs(float(s)) for name, s in zip(self.names, step, strict=True) if name not in TILTS]
        most = max(poses, default=np.inf)
        self.doubt = {name: min(doubt, most) for name, doubt in self.doubt.items()}

    def at(self, x: Float[Array, "k"]) -> tuple[Task, Problem]:
        """Task and problem of the robot at some values; the last ones are kept."""
        if self._last is None or not np.array_equal(self._last[0], x):
            robot = self.robot(x)
            problem = prepare(robot, self.task.logs, self.task.experiment, self.task.problem.plans)
            self._last = x, (replace(self.task, mechanism=robot, prepared=problem), problem)
        return self._last[1]

    def possible(self, x: Float[Array, "k"], step: Float[Array, "k"]) -> Float[Array, "k"]:
        """The values after the step, or after a shorter one where the robot does not close there."""
        for _ in range(_HALVINGS):
            try:
                self.at(x + step)
            except InputError:
                step = 0.5 * step
            else:
                return np.asarray(x + step)
        return x

    def linearised(self, x: Float[Array, "k"]) -> _Linearised:
        """Residuals of efforts and sensors, and their derivatives."""
        task, problem = self.at(x)
        if self.base is None:
            self.base = base_of(problem, task.experiment)
        fit = linear_fit(problem, task.experiment, self.base)
        values = dict(zip(self.names, x.tolist(), strict=True))
        changed = []
        for name in (*self.names, *self.uncertain):
            middle = values.get(name, current(self.task.mechanism, name))
            changed.append(changed_problem(self.task, problem, {**values, name: middle + STEP}))
        sources = [
            slope_rows(
                source, [(other.sources[i], None) for other in changed], [STEP] * len(changed), fit.chi
            )
            for i, source in enumerate(problem.sources)
        ]
        efforts = _effort_blocks(row_groups(problem, sources), fit, len(changed))
        sensors = sensor_rows(problem, changed, STEP)
        return _combined(efforts, sensors, len(self.names))


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Weighted rows of efforts: W, D and residual of every block.

    Attributes:
        labels: Part of the motion that each block belongs to; repeats of a motion are one part.
    """

    W: list[Float[Array, "r p"]]
    D: list[Float[Array, "r k"]]
    rho: list[Float[Array, "r"]]
    labels: list[int]


def _effort_blocks(groups: Sequence[Group], fit: LinearFit, k: int) -> _Blocks:
    """Blocks of all groups over the base parameters, weighted as the fit weighs them."""
    data, solution = fit.data, fit.solution
    p = len(data.S)
    stacked = _Blocks([], [], [], [])
    system = System(data.source.parameters, tuple(groups))
    parts, _, _ = stretches(system, duration(system) / _BLOCKS)
    first = repeated(system, parts)
    weights = {
        (group.log, group.name): float(w)
        for group, w in zip(data.source.groups, solution.weights, strict=True)
    }
    for group in groups:
        weight = weights[group.log, group.name] / solution.sigma_rho
        columns = group.columns
        is_param = columns < p
        slopes = columns[~is_param] - p
        for block, (run, time) in zip(group.blocks, group.places, strict=True):
            W = block.W[:, is_param] @ data.S[columns[is_param]]
            D = np.zeros((len(W), k))
            D[:, slopes] = block.W[:, ~is_param]
            rho = block.Y - block.W[:, is_param] @ data.base.c[columns[is_param]] - W @ solution.chi
            stacked.W.append(weight * W)
            stacked.D.append(weight * D)
            stacked.rho.append(weight * rho)
            part = parts[group.log, run, time]
            stacked.labels.append(part if first is None else int(first[part]))
    return stacked


def _combined(efforts: _Blocks, sensors: SensorRows | None, k: int) -> _Linearised:
    """Information, gradient and scores of all rows; the first k quantities are searched."""
    W, D, rho = (np.concatenate(rows) for rows in (efforts.W, efforts.D, efforts.rho))
    bare = D - W @ scaled_lstsq(W, D, None)
    info = bare.T @ bare
    gradient = bare.T @ rho
    if sensors is not None:
        info = info + sensors.information.sum(axis=0)
        gradient = gradient + sensors.gradient
    return _Linearised(info[:k, :k], gradient[:k], info[:k, k:], efforts, sensors)


def _covariance(at: _Linearised, P: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """Of the quantities searched: the jackknife, never below the covariance for white noise."""
    k, p = len(P), at.efforts.W[0].shape[1]
    rows = [np.column_stack([W, D[:, :k]]) for W, D in zip(at.efforts.W, at.efforts.D, strict=True)]
    info = P if at.sensors is None else P + at.sensors.information.sum(axis=0)[:k, :k]
    below = np.column_stack([np.zeros((k, p)), np.linalg.cholesky(info).T])
    every = np.concatenate([*rows, below])
    size = column_sizes(every)
    root = np.linalg.pinv(np.linalg.qr(every / size, mode="r")) / size[:, None]
    _, labels = np.unique(at.efforts.labels, return_inverse=True)
    M = np.zeros((labels.max() + 1, p + k, p + k))
    g = np.zeros(M.shape[:2])
    for X, rho, label in zip(rows, at.efforts.rho, labels, strict=True):
        Z = X @ root
        M[label] += Z.T @ Z
        g[label] += Z.T @ rho
    u = _left_out(M, g)
    u = (u - u.mean(axis=0)) * np.sqrt(len(u) / max(len(u) - 1, 1))
    x = root[p:]
    meat = u.T @ u + x.T @ P @ x
    if at.sensors is not None:
        v = _left_out(x.T @ at.sensors.information[:, :k, :k] @ x, at.sensors.scores[:, :k] @ x)
        meat = meat + v.T @ v
    C = x @ meat @ x.T
    factor = np.sqrt(np.maximum(np.sum(x**2, axis=1), np.diag(C)) / np.diag(C))
    return np.asarray(0.5 * (C + C.T) * np.outer(factor, factor))


def _left_out(M: Float[Array, "n q q"], g: Float[Array, "n q"]) -> Float[Array, "n q"]:
    """(1 - M)^-1 g of each block: the change of the estimate, in roots of its information, without it."""
    values, vectors = eigh(M)
    along = np.einsum("nij,ni->nj", vectors, g) / (1.0 - np.clip(values, 0.0, _MOST_OF_ONE))
    return np.asarray(np.einsum("nij,nj->ni", vectors, along))


def _unseen(
    names: Sequence[str], C: Float[Array, "k k"], H: Float[Array, "k k"], sigma0: Float[Array, "k"]
) -> dict[str, str]:
    """Quantities that keep most of their prior deviation, each with the combination that no row sees.

    H is scaled by the prior deviations: its singular vectors with values below 1 / _SEEN^2 are combinations
    about which the data say less than the prior does.
    """
    values, vectors = np.linalg.eigh(H * np.outer(sigma0, sigma0))
    blind = vectors[:, values < 1.0 / _SEEN**2]
    unseen = {}
    for k, name in enumerate(names):
        if np.sqrt(C[k, k]) < _SEEN * sigma0[k]:
            continue
        others = ""
        if blind.shape[1]:
            mix = blind @ blind[k]
            mix = mix / (np.abs(mix).max() or 1.0)
            mates = [names[i] for i in np.argsort(-np.abs(mix)) if i != k and abs(mix[i]) > 0.2]
            others = f" (acts together with {', '.join(_spoken(key) for key in mates[:4])})" if mates else ""
        unseen[name] = others
    return unseen


def _spoken(name: str) -> str:
    """A quantity in words."""
    if name in TILTS:
        return "direction of gravity"
    return f"zero of {name.removeprefix(ZERO)}" if name.startswith(ZERO) else name
