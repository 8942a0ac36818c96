"""Tests of a fitted table: one mass in all directions, and masses that are positive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.cases.wrench_table.readings import balance_residual
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.motion.settings import BODY, PARENT
from dynid.projection.wrench import WrenchRows
from dynid.statistics.estimate import ResidualTest
from dynid.statistics.uncertainty import student_t95

_AXES = ("x", "y", "z")
_SEEN = 1e-6  # of the acceleration (gravity included): with less along a direction the mass is not testable
_SURE, _MATTERS = 1e-3, 0.01  # three printed figures leave some thousandths
_TILE = 2048
_BALANCED = 0.05  # what a balance may leave of the wrenches to be called one


@dataclass(frozen=True, eq=False)
class DirectionMass:
    """The mass of a body by the forces along one direction of the world [Wrench, eq. 17, Table 2].

    Attributes:
        value: In [kg].
        sigma: By what is left along this direction, in [kg].
        dof: Its degrees of freedom.
    """

    body: str
    axis: str
    value: float
    sigma: float
    dof: int


def direction_masses(sources: Sequence[WrenchRows], chi: Float[Array, "p"]) -> tuple[DirectionMass, ...]:
    """Masses along the world's x, y and z, all other parameters as estimated.

    With e a direction, M_e = sum a_e (F_e - others_e) / sum a_e^2, a the acceleration minus gravity.

    Args:
        sources: Equations of the tables.
        chi: Standard parameters, shape (p,), SI.
    """
    index = {parameter.name: i for i, parameter in enumerate(sources[0].parameters)}
    masses = []
    for name in dict.fromkeys(name.rsplit(" ", 1)[0] for name in sources[0].directions.names):
        mass = index.get(f"M_{name}")
        if mass is not None:
            a, force = (
                np.concatenate(x) for x in zip(*(_forces(s, name, chi, mass) for s in sources), strict=True)
            )
            masses += _along_axes(name, a, force)
    return tuple(masses)


def _forces(
    source: WrenchRows, name: str, chi: Float[Array, "p"], mass: int
) -> tuple[Float[Array, "n 3"], Float[Array, "n 3"]]:
    """Acceleration minus gravity, and the force that the mass alone explains, world axes."""
    body = source.table.bodies.index(name)
    k = [block.body for block in source.blocks].index(body)
    others = chi.copy()
    others[mass] = 0.0
    rows, factors = slice(6 * k, 6 * k + 3), source.layout.coefficients(others)
    accelerations, forces = [np.zeros((0, 3))], [np.zeros((0, 3))]
    for at, packed, weights in source.rows(0, len(source.table.t), _TILE):
        fine = at + np.flatnonzero(weights[6 * k] > 0)
        rest = (packed[source.layout.start[1:] - 1] - source.layout.sums(packed, factors))[rows]
        accelerations.append(source.moved.a[fine, body] - source.mechanism.gravity)
        forces.append(np.einsum("nij,nj->ni", source.moved.R[fine, body], rest.T[fine - at]))
    return np.concatenate(accelerations), np.concatenate(forces)


def _along_axes(name: str, a: Float[Array, "n 3"], force: Float[Array, "n 3"]) -> list[DirectionMass]:
    squares = np.sum(a**2, axis=0)
    masses = []
    for i, axis in enumerate(_AXES):
        if squares[i] <= _SEEN**2 * squares.sum() or len(a) < 2:
            continue
        value = float(a[:, i] @ force[:, i] / squares[i])
        left = force[:, i] - value * a[:, i]
        sigma = float(np.sqrt(left @ left / (len(a) - 1) / squares[i]))
        masses.append(DirectionMass(name, axis, value, sigma, len(a) - 1))
    return masses


def mass_tests(
    masses: Sequence[DirectionMass], values: dict[str, float]
) -> tuple[tuple[ResidualTest, ...], tuple[Notice, ...]]:
    """Whether the masses along all directions agree with the one that was estimated.

    Args:
        masses: Along the directions.
        values: Body -> its mass in [kg].
    """
    from scipy.special import stdtr

    tests, odd = [], []
    for entry in masses:
        half = float(student_t95(entry.dof)) * entry.sigma
        off = entry.value - values[entry.body]
        p = float(2.0 * stdtr(entry.dof, -abs(off) / entry.sigma)) if entry.sigma > 0 else 1.0
        warned = p < _SURE and abs(off) > _MATTERS * abs(values[entry.body])
        ci95 = (entry.value - half, entry.value + half)
        tests.append(
            ResidualTest("mass", f"{entry.body} along {entry.axis}", entry.value, "kg", ci95, p, warned)
        )
        if warned:
            odd.append(
                f"{entry.body} {entry.value:.5g} kg along {entry.axis} instead of {values[entry.body]:.5g}"
            )
    if not odd:
        return tuple(tests), ()
    return tuple(tests), (notice("mass-differs", shown=", ".join(odd[:4])),)


def mass_words(masses: Sequence[DirectionMass], values: dict[str, float]) -> str:
    """How far the masses along the directions are from the one of their body, and where most."""
    off = {mass: 100.0 * abs(mass.value / values[mass.body] - 1.0) for mass in masses if values[mass.body]}
    if not off:
        return "none"
    worst = max(off, key=lambda mass: off[mass])
    text = f"{len(masses)} masses from forces along world x, y, z agree with the estimated masses within"
    return f"{text} {off[worst]:.2g} % ({worst.body} along {worst.axis}); see the residual tests"


def check_signs(sources: Sequence[WrenchRows], masses: dict[str, float]) -> None:
    """Refuse masses that are negative as a rule and balance all the same: the wrenches are the reactions."""
    negative = [name for name, value in masses.items() if value < 0.0]
    if 2 * len(negative) <= len(masses):
        return
    if max(balance_residual(source) or 0.0 for source in sources) > _BALANCED:
        return
    by = sources[0].settings.exerted_by
    other = BODY if by == PARENT else PARENT
    action = "the body exerts on its parent" if by == PARENT else "the parent exerts on the body"
    raise InputError(
        f"the estimated masses of {', '.join(negative[:4])} are negative, e.g. {masses[negative[0]]:.4g} kg:"
        f" the wrenches seem to be those that {action}",
        file=sources[0].table.file,
        place="wrench",
        remedy=f"if this is true, set wrench: {{exerted_by: {other}}}; else check the sign of gravity",
    )
