"""Output-error refinement of a linear estimate: simulate, compare positions, refine, and validate.

A quarter of the windows is held out. The refined parameters replace the linear ones only if they
predict the held-out windows significantly better; otherwise a warning reports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Float, spread
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.dynamics.freedoms import freedoms_of
from dynid.experiment.sections import HELD_OUT, RefineSettings
from dynid.kinematics.sensors import sensors_of
from dynid.motion.motion import Motion
from dynid.problem import Problem
from dynid.projection.kinematics import kinematics_along
from dynid.refinement.output_error import (
    Minimum,
    OutputError,
    Simulated,
    Windows,
    minimise,
    started,
    window_covariance,
)
from dynid.statistics.assemble import EstimateParts
from dynid.statistics.correlation import strongest
from dynid.statistics.uncertainty import with_uncertainty

_STEPS = 20
_HOLD = 10.0  # deviations of the linear estimate


@dataclass(frozen=True, eq=False)
class Refinement:
    """What the refinement found.

    Attributes:
        chi: Base parameters, refined, or the linear ones where that gained nothing.
        covariance: Of the refined parameters by windows, shape (b, b), SI; None where the linear ones predict
            held-out windows as well, and so are kept.
        windows: How many were fitted.
        before, after: Root mean square of held-out positions missed, in deviations of the fit.
        words: The same in one line.
    """

    chi: Float[Array, "b"]
    covariance: Float[Array, "b b"] | None
    windows: int
    before: float
    after: float
    words: str
    notices: tuple[Notice, ...] = ()


def refine(
    problem: Problem,
    S: Float[Array, "p b"],
    c: Float[Array, "p"],
    chi: Float[Array, "b"],
    covariance: Float[Array, "b b"],
    settings: RefineSettings | None = None,
) -> Refinement:
    """Refine base parameters so that simulated windows of the logs meet the measured positions.

    Args:
        problem: A robot with its logs.
        S, c: Standard parameters are S chi + c.
        chi: The linear estimate to start from, shape (b,), SI.
        covariance: Of the linear estimate, shape (b, b), SI.
        settings: How windows are cut.
    """
    chosen = settings or RefineSettings()
    groups = windows_of(problem, chosen)
    robot = problem.mechanism
    sensors = sensors_of(robot, problem.logs[0].position_names)
    sigma = np.sqrt(np.diag(covariance))
    hold = 1.0 / np.maximum(_HOLD * sigma, 1e-9 * np.maximum(np.abs(chi), sigma.max(initial=1e-9)))
    simulated = OutputError(robot, freedoms_of(robot), sensors, S, c, np.ones(sensors.count), chi, hold)
    groups = [started(simulated, chi, group) for group in groups]
    missed = np.concatenate([simulated.residual(chi, group).reshape(-1, sensors.count) for group in groups])
    simulated = replace(simulated, sigma=np.maximum(np.sqrt(np.mean(missed**2, axis=0)), 1e-12))
    return judged(simulated, groups, chi, covariance)


def judged(
    simulated: Simulated,
    groups: Sequence[Windows],
    chi: Float[Array, "b"],
    covariance: Float[Array, "b b"],
) -> Refinement:
    """Fit three quarters of the windows, and ask the others whether that gained anything."""
    held = [part.picked(slice(HELD_OUT - 1, None, HELD_OUT)) for part in groups]
    used = [part.picked(np.flatnonzero(np.arange(len(part.q)) % HELD_OUT != HELD_OUT - 1)) for part in groups]
    minimum = minimise(simulated, chi, used)
    before, after = (_predicted(simulated, values, held) for values in (chi, minimum.chi))
    gain = np.log(before / after)  # window by window: some are harder than others
    error = float(np.std(gain, ddof=1) / np.sqrt(len(gain)))
    rms = [float(np.sqrt(np.mean(square))) for square in (before, after)]
    # Better window by window, and not bought with one window that is much worse.
    accepted = bool(np.mean(gain) > 2.0 * error and rms[1] <= rms[0])
    return Refinement(
        minimum.chi if accepted else chi,
        window_covariance(simulated, minimum, covariance) if accepted else None,
        sum(len(part.q) for part in used),
        rms[0],
        rms[1],
        _words(rms, len(before), accepted, minimum),
        () if accepted else (notice("refinement-adds-nothing", before=rms[0], after=rms[1]),),
    )


def refined_parts(parts: EstimateParts, refinement: Refinement) -> EstimateParts:
    """Parameters with refined values and deviations by windows, where the refinement was accepted."""
    if refinement.covariance is None:
        return parts
    dof = np.full(len(refinement.chi), float(max(refinement.windows - 1, 1)))
    methods = ("windows",) * len(refinement.chi)
    words = f"spread over {refinement.windows} simulated windows"
    facts = {"method": "windows", "windows": refinement.windows}
    spread = replace(
        parts.spread, covariance=refinement.covariance, dof=dof, methods=methods, words=words, facts=facts
    )
    parameters = with_uncertainty(parts.parameters, refinement.chi, spread)
    names = tuple(parameter.name for parameter in parameters)
    solution = replace(parts.solution, chi=refinement.chi)
    return replace(
        parts,
        parameters=parameters,
        spread=spread,
        correlations=strongest(names, refinement.covariance),
        solution=solution,
    )


def windows_of(problem: Problem, settings: RefineSettings) -> list[Windows]:
    """Windows of all logs, those with the same payloads together."""
    dt, seconds = problem.logs[0].dt, settings.seconds(free_motion=False)
    per_step = max(1, round(seconds / dt / _STEPS))
    per_step += per_step % 2  # half steps fall on samples
    steps = max(4, round(seconds / (dt * per_step)))
    length = steps * per_step + 1
    picked = places_of(problem, length, settings.windows, seconds)
    by_load: dict[tuple[str, ...], list[Windows]] = {}
    for i, start in picked:
        window = _window(problem, i, start, length, per_step)
        if window is not None:
            by_load.setdefault(problem.logs[i].payloads, []).append(window)
    return [first.joined(others) for first, *others in by_load.values()]


def places_of(problem: Problem, length: int, most: int, seconds: float) -> list[tuple[int, int]]:
    """Log and first sample of windows of so many samples, spread over the logs; refused if they are few."""
    places = [
        (i, start)
        for i, source in enumerate(problem.sources)
        for a, b in source.motion.usable()
        for start in range(a, b - length + 1, length)
    ]
    if len(places) < 2 * HELD_OUT:
        raise InputError(
            f"the logs have {len(places)} windows of {seconds:g} s: too few to refine and to validate",
            remedy=f"use shorter windows, e.g. refine: {{window: {0.5 * seconds:g}}}, or longer logs",
        )
    return [places[k] for k in spread(len(places), most)]


def _window(problem: Problem, i: int, start: int, length: int, per_step: int) -> Windows | None:
    """One window; None where its starting pose is singular or a sample is invalid."""
    motion: Motion = problem.sources[i].motion
    log = motion.log
    stop = start + length
    if not log.efforts_known(start, stop):
        return None
    kinematics = kinematics_along(problem.mechanism, motion)
    first = motion.states(start, start + 1)
    states = kinematics.states(start, first)
    if not states.fine.all():
        return None
    smooth, pad = motion.low_pass
    low, high = max(start - pad, 0), min(stop + pad, len(log.t))
    tau = smooth(np.nan_to_num(log.tau[low:high]))[start - low : stop - low]
    return Windows(
        states.q,
        states.dq,
        tau[:: per_step // 2][:, None],
        np.asarray(log.q[start:stop:per_step], dtype=float)[:, None],
        per_step * log.dt,
        log.payloads,
        *np.zeros((2, 1, 0)),
    )


def _predicted(simulated: Simulated, chi: Float[Array, "b"], held: Sequence[Windows]) -> Float[Array, "n"]:
    """Mean square of what each held-out window misses, its starting state fitted."""
    residuals = [simulated.residual(chi, started(simulated, chi, part)) for part in held if len(part.q)]
    return np.concatenate([np.mean(missed**2, axis=1) for missed in residuals])


def _words(rms: list[float], held: int, accepted: bool, minimum: Minimum) -> str:
    steps = len(minimum.costs) - 1
    verdict = "accepted" if accepted else "rejected: no significant improvement"
    return (
        f"output error over windows: held-out position error {rms[0]:.4g} -> {rms[1]:.4g} standard deviations"
        f" ({held} windows, {steps} steps); {verdict}"
    )
