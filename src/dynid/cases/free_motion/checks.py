"""Is a log free motion? Its energy must not grow, whatever the parameters per unit mass say besides.

    E / m = h(q, dq) chi / m,        h the energy row of all bodies

Air and cables take energy out slowly; a hand or a winch that moves puts some in, and the equations of
free motion do not hold there.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.cases.free_motion.reference import reference_of
from dynid.common.arrays import Array
from dynid.common.notices import Notice
from dynid.mechanism.inertia import SYMBOLS
from dynid.problem import Problem
from dynid.projection.kinematics import kinematics_along
from dynid.projection.model import RowSource
from dynid.regressor.regressor import energy_row

_WINDOW = 1.0  # s: about a period of what hangs on cables of a metre
_MOST_SAMPLES = 20_000  # of a run: more would not tell more
# Of the largest kinetic energy: noise of velocities and errors of the parameters stay below.
_GROWTH = 0.1


def check_free_motion(problem: Problem, chi: Float[Array, "p"]) -> tuple[Notice, ...]:
    """A warning for every log in which the energy grows.

    Args:
        job: Mechanism and logs.
        chi: Standard parameters that give the same rows, shape (p,), over the reference mass.
    """
    found = []
    for source in problem.sources:
        growing = [
            (run + 1, growth)
            for run, (start, stop) in enumerate(source.pieces())
            if (growth := _growth(problem, source, chi, start, stop)) > _GROWTH
        ]
        if growing:
            found.append(_notice(source.motion.log.name, growing))
    return tuple(found)


def _notice(log: str, growing: list[tuple[int, float]]) -> Notice:
    run, most = max(growing, key=lambda one: one[1])
    runs = ", ".join(str(number) for number, _ in growing[:8])
    text = (
        f"log '{log}' is not free motion in run {runs}: the energy grows by {100 * most:.0f} % of the largest"
    )
    text += f" kinetic energy (run {run}). Something pushes, a winch moves, or a cable is slack"
    return Notice(
        "not-free-motion", text, "cut the log after the platform was let go, or leave these runs out"
    )


def _growth(problem: Problem, source: RowSource, chi: Float[Array, "p"], start: int, stop: int) -> float:
    """Largest rise of the energy between windows, over the largest kinetic energy of a window."""
    stop = min(stop, start + _MOST_SAMPLES)
    states = kinematics_along(problem.mechanism, source.motion).states(
        start, source.motion.states(start, stop)
    )
    use = states.fine
    values = _bodies(problem, chi, source.motion.log.payloads)
    still = np.zeros_like(states.dq[use])
    potential = energy_row(problem.mechanism, states.q[use], still) @ values
    energy = energy_row(problem.mechanism, states.q[use], states.dq[use]) @ values
    width = max(1, round(_WINDOW / source.dt))
    count = len(energy) // width
    if count < 2:
        return 0.0
    E, V = (x[: count * width].reshape(count, width).mean(axis=1) for x in (energy, potential))
    lowest = np.minimum.accumulate(E)
    moving = float(np.max(np.abs(E - V)))
    return float(np.max(E - lowest)) / moving if moving > 0.0 else 0.0


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
