"""Output-error refinement of free motion: windows of oscillations, damping, and lengths if requested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.cases.free_motion.output_error import FreeOutputError, free_windows
from dynid.cases.free_motion.unit_mass import reference_of
from dynid.common.arrays import Array, Float
from dynid.common.errors import NoResultError
from dynid.common.notices import notice
from dynid.dynamics.free_motion import LockedCables
from dynid.experiment.sections import BOTH, NONE, SLIDING, TURNING, RefineSettings
from dynid.mechanism.cable import locked
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.problem import Problem
from dynid.refinement.joints import Refinement, judged
from dynid.refinement.output_error import Windows, minimise, started

_HOLD = 10.0  # deviations of the linear estimate
_LENGTH_RTOL = 1e-3  # of a cable: how far a locked length may be from what is given


@dataclass(frozen=True, eq=False)
class DampedRobot:
    """A robot on locked cables with viscous terms, and its parameters as functions of the unknowns.

    Attributes:
        robot: On locked cables.
        S, c: Its standard parameters are S (chi, damping) + c.
        kinds: What each damping coefficient acts on, in words with its unit.
    """

    robot: LockedCables
    S: Float[Array, "p u"]
    c: Float[Array, "p"]
    kinds: tuple[str, ...]


def damped_robot(
    problem: Problem, S: Float[Array, "p b"], c: Float[Array, "p"], chi: Float[Array, "b"], damping: str
) -> DampedRobot:
    """The robot of a free-motion problem; viscous terms per unit mass join its parameters.

    Args:
        S, c: Standard parameters of the problem are S chi + c; known loads count in the reference mass.
        chi: Parameters at which the robot is judged, shape (b,), SI.
        damping: See `RefineSettings`.
    """
    plain = locked(problem.mechanism)
    turning, sliding = _coordinates(plain)
    groups = {
        TURNING: [("turning, N m s/rad per kg", turning)],
        SLIDING: [("sliding, N s/m per kg", sliding)],
        BOTH: [("turning, N m s/rad per kg", turning), ("sliding, N s/m per kg", sliding)],
        NONE: [],
    }[damping]
    groups = [(words, names) for words, names in groups if names]
    drive = dict(plain.drive)
    for _, names in groups:
        drive |= {name: tuple(dict.fromkeys((*drive.get(name, ()), "Fv"))) for name in names}
    robot = replace(plain, drive=drive)
    index = {parameter.name: i for i, parameter in enumerate(problem.parameters)}
    table = [parameter.name for parameter in parameter_table(robot)]
    rows, constants = np.zeros((len(table), S.shape[1] + len(groups))), np.zeros(len(table))
    S, c = _scaled(problem, S, c)
    for row, name in enumerate(table):
        if name in index:
            rows[row, : S.shape[1]], constants[row] = S[index[name]], c[index[name]]
    for k, (_, names) in enumerate(groups):
        rows[[table.index(f"Fv_{name}") for name in names], S.shape[1] + k] = 1.0
    on = LockedCables(robot, rows[:, : len(chi)] @ chi + constants)
    return DampedRobot(on, rows, constants, tuple(words for words, _ in groups))


def _coordinates(robot: Mechanism) -> tuple[list[str], list[str]]:
    """Coordinates that turn and that slide, of joints that carry a body with parameters."""
    massive = [joint for joint in robot.joints if robot.bodies[joint.child].parameters]
    named = [(joint, name) for joint in massive for name in joint.coordinates]
    turning = [name for joint, name in named if joint.is_angle(name)]
    return turning, [name for _, name in named if name not in turning]


def _scaled(problem: Problem, S: Float[Array, "p b"], c: Float[Array, "p"]) -> tuple[Array, Array]:
    """Payloads known in kilograms in units of the reference mass: their values times 1/m."""
    reference = reference_of(problem)
    if reference.scale is None:
        return S, c
    S, c, scale = np.array(S), np.array(c), reference.scale
    inverse, constant = S[scale].copy(), float(c[scale])
    for column, value in reference.loads.items():
        S[column], c[column] = value * inverse, value * constant
    return S, c


def refine_free(
    problem: Problem,
    S: Float[Array, "p b"],
    c: Float[Array, "p"],
    chi: Float[Array, "b"],
    covariance: Float[Array, "b b"],
    settings: RefineSettings,
) -> Refinement:
    """Refine parameters per unit mass so that simulated free motions meet the measured ones.

    Damping is fitted to the linear estimate too before both are compared on the held-out windows, so
    that only better parameters count as a gain.

    Args:
        problem, S, c, chi, covariance: As for `refinement.refine`.
        settings: How windows are cut, and what else is unknown.
    """
    try:
        with np.errstate(all="ignore"):
            return _refined(problem, S, c, chi, covariance, settings)
    except (NoResultError, np.linalg.LinAlgError) as error:
        failed = notice("refinement-failed", error=error)
        return Refinement(chi, None, 0, np.nan, np.nan, "not possible: " + failed.text, (failed,))


def _refined(
    problem: Problem,
    S: Float[Array, "p b"],
    c: Float[Array, "p"],
    chi: Float[Array, "b"],
    covariance: Float[Array, "b b"],
    settings: RefineSettings,
) -> Refinement:
    damped = damped_robot(problem, S, c, chi, settings.damping)
    b, extra = len(chi), len(damped.kinds)
    start = np.concatenate([chi, np.zeros(extra)])
    sensors, groups = free_windows(problem, damped.robot, settings)
    sigma = np.sqrt(np.diag(covariance))
    hold = 1.0 / np.maximum(_HOLD * sigma, 1e-9 * np.maximum(np.abs(chi), sigma.max(initial=1e-9)))
    loose = _LENGTH_RTOL * float(np.mean(groups[0].given)) if settings.lengths else None
    simulated = FreeOutputError(
        damped.robot,
        sensors,
        damped.S,
        damped.c,
        np.ones(sensors.count),
        start,
        np.concatenate([hold, np.zeros(extra)]),
        loose,
    )
    groups = [started(simulated, start, group) for group in groups]
    simulated = replace(simulated, sigma=_deviations(simulated, start, groups))
    start, groups = _with_damping(simulated, start, groups, b)
    simulated = replace(simulated, sigma=_deviations(simulated, start, groups), linear=start)
    wide = np.zeros((b + extra, b + extra))
    wide[:b, :b] = covariance
    refined = judged(simulated, groups, start, wide)
    coefficients = tuple(refined.chi[b:].tolist())
    damping = ", ".join(
        f"{value:.3g} ({kind})" for value, kind in zip(coefficients, damped.kinds, strict=True)
    )
    return replace(
        refined,
        chi=refined.chi[:b],
        covariance=None if refined.covariance is None else refined.covariance[:b, :b],
        words=refined.words + (f"; damping {damping}" if damping else ""),
    )


def _with_damping(
    simulated: FreeOutputError, start: Float[Array, "u"], groups: Sequence[Windows], b: int
) -> tuple[Float[Array, "u"], list[Windows]]:
    """The linear estimate with the damping that suits it, and starting states that suit both."""
    if len(start) > b:
        constant = simulated.S[:, :b] @ start[:b] + simulated.c
        none = np.zeros(len(start) - b)
        alone = replace(simulated, S=simulated.S[:, b:], c=constant, linear=none, hold=none)
        start = np.concatenate([start[:b], minimise(alone, none, groups).chi])
    return start, [started(simulated, start, group, passes=1) for group in groups]


def _deviations(
    simulated: FreeOutputError, chi: Float[Array, "u"], groups: Sequence[Windows]
) -> Float[Array, "m"]:
    """Root mean square of what the simulation misses, per measured coordinate."""
    missed = []
    for group in groups:
        rows = simulated.residual(chi, group)[:, : len(group.measured) * simulated.sensors.count]
        missed.append(rows.reshape(-1, simulated.sensors.count) * simulated.sigma)
    return np.asarray(np.maximum(np.sqrt(np.mean(np.concatenate(missed) ** 2, axis=0)), 1e-12))
