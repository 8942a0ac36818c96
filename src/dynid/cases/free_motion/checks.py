"""Is a log free motion? Its energy must not grow.

    E / m = h(q, dq) chi / m,        h the energy row of all bodies

Air and cables dissipate energy slowly. A hand or a moving winch adds energy, and the equations of free
motion do not hold there. A rise must be large relative to the kinetic energy and to its own standard
deviation: noise of positions and velocities also adds energy, most in runs with little motion. Inaccurate
parameters make it oscillate between potential and kinetic energy.
"""

from __future__ import annotations

import numpy as np

from dynid.cases.free_motion.unit_mass import reference_of
from dynid.checks.check import Finished
from dynid.common.arrays import Array, Float
from dynid.common.distributions import normal_quantile
from dynid.common.notices import Notice, notice
from dynid.mechanism.inertia import SYMBOLS
from dynid.problem import Problem
from dynid.projection.kinematics import kinematics_along
from dynid.projection.model import RowSource
from dynid.regressor.regressor import energy_row
from dynid.statistics.effort_prediction import covariance_root

_WINDOW = 1.0  # s: about a period of a load on cables of 1 m
_MOST_SAMPLES = 20_000  # of a run: more samples would not improve the test
_GROWTH = 0.1  # of the largest kinetic energy: less does not matter
# False alarms: one log in a thousand. Every pair of windows of every run is looked at, so that the limit of
# a single rise grows with their number.
_FALSE_ALARMS = 1e-3
# Of the largest kinetic energy: so much is no chance, however badly the equations and their covariance fit.
_CLEARLY = 0.5


def energy_grows(finished: Finished) -> tuple[Notice, ...]:
    """Whether the energy of a run increases, which needs an external force."""
    fit = finished.fit
    # A root of the covariance of the standard parameters of the linear fit, before any refinement.
    root = np.asarray(fit.data.S @ covariance_root(fit.solution.covariance))
    return check_free_motion(fit.problem, fit.chi, root)


def check_free_motion(
    problem: Problem, chi: Float[Array, "p"], root: Float[Array, "p r"] | None = None
) -> tuple[Notice, ...]:
    """A warning for every log in which the energy grows.

    Args:
        problem: Mechanism and logs.
        chi: Standard parameters that give the same rows, shape (p,), over the reference mass.
        root: A root of their covariance, shape (p, r); None: they are exact.
    """
    notices = []
    for source in problem.sources:
        growing = [
            (run + 1, growth)
            for run, (start, stop) in enumerate(source.pieces())
            if (growth := _growth(problem, source, chi, root, start, stop)) > _GROWTH
        ]
        if growing:
            notices.append(_notice(source.motion.log.name, growing))
    return tuple(notices)


def _notice(log: str, growing: list[tuple[int, float]]) -> Notice:
    run, most = max(growing, key=lambda pair: pair[1])
    runs = ", ".join(str(number) for number, _ in growing[:8])
    return notice("not-free-motion", log=log, runs=runs, percent=100 * most, run=run)


def _growth(
    problem: Problem,
    source: RowSource,
    chi: Float[Array, "p"],
    root: Float[Array, "p r"] | None,
    start: int,
    stop: int,
) -> float:
    """Largest significant rise of the energy between windows, over the largest kinetic energy of a window.

    The deviation of a window's mean comes from the scatter within windows (velocities by differences have
    noise that alternates, so that its mean is better than that) and from the parameters' covariance.
    """
    stop = min(stop, start + _MOST_SAMPLES)
    states = kinematics_along(problem.mechanism, source.motion).states(
        start, source.motion.states(start, stop)
    )
    use = states.fine
    mounted = source.motion.log.payloads
    values = _bodies(problem, chi, mounted)
    width = max(1, round(_WINDOW / source.dt))
    count = int(np.count_nonzero(use)) // width
    if count < 2:
        return 0.0
    still = np.zeros_like(states.dq[use])
    potential = energy_row(problem.mechanism, states.q[use], still) @ values
    rows = energy_row(problem.mechanism, states.q[use], states.dq[use])[: count * width]
    E = (rows @ values).reshape(count, width)
    V = potential[: count * width].reshape(count, width).mean(axis=1)
    noise = np.var(E, axis=1, ddof=1) / width if width > 1 else np.zeros(count)
    mean = E.mean(axis=1)
    rise = mean[None, :] - mean[:, None]  # from the first index to the second
    variance = noise[None, :] + noise[:, None]
    if root is not None:
        spread = rows.reshape(count, width, -1).mean(axis=1) @ _roots(problem, chi, root, mounted)
        variance = variance + np.sum((spread[None] - spread[:, None]) ** 2, axis=2)
    later = np.triu(np.ones((count, count), dtype=bool), 1)
    moving = float(np.max(np.abs(mean - V)))
    pairs = int(np.count_nonzero(later)) * len(source.pieces())
    limit = -normal_quantile(_FALSE_ALARMS / pairs) * np.sqrt(variance)
    sure = rise[later & (rise > np.minimum(limit, _CLEARLY * moving))]
    return float(sure.max()) / moving if len(sure) and moving > 0.0 else 0.0


def _roots(
    problem: Problem, chi: Float[Array, "p"], root: Float[Array, "p r"], mounted: tuple[str, ...]
) -> Float[Array, "b r"]:
    """The root of the covariance over all bodies; these are linear in the parameters."""
    known = _bodies(problem, chi, mounted)
    columns = [_bodies(problem, chi + column, mounted) - known for column in root.T]
    return np.array(columns).T.reshape(len(known), len(columns))


def _bodies(problem: Problem, chi: Float[Array, "p"], mounted: tuple[str, ...]) -> Float[Array, "b"]:
    """Parameters of all bodies in the order of the energy row; payloads that are not mounted are zero."""
    reference = reference_of(problem)
    values = {parameter.name: float(x) for parameter, x in zip(problem.parameters, chi, strict=True)}
    if reference is not None:
        values[f"M_{reference.body}"] = reference.mass
        scale = 0.0 if reference.scale is None else float(chi[reference.scale])
        values |= {problem.parameters[i].name: known * scale for i, known in reference.loads.items()}
    robot = problem.mechanism
    owners = [joint.child for joint in robot.joints] + list(robot.payloads)
    absent = set(robot.payloads) - set(mounted)
    return np.array(
        [
            0.0 if owner in absent else values.get(f"{symbol}_{owner}", 0.0)
            for owner in owners
            for symbol in SYMBOLS
        ]
    )
