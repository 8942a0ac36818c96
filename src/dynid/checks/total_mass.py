"""A weighed robot: the mass on the scale as a sum of identified parameters.

m = e^T chi_standard,    e one at the masses of the bodies weighed

With chi = G chi_standard the sum is determined by a row a if e = G^T a. The remainder, r = e - G^T a,
must belong to parameters with a known or a prior value: then a^T chi = m - r^T prior. The row with
the least weight on priors is used (a small linear program), so that the data determine as much as
possible of the mass. The equation gives one parameter as a function of the others,

chi = chi_0 + Z y,

and so fixes the scale, which is unknown if the gains of the efforts are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.base.grouping import listed
from dynid.base.system import BaseSystem
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice, notice
from dynid.estimator.settings import TotalMass
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import known_columns, prior_values

# Coefficients below this are rounding of the grouping relations.
_ROUNDING = 1e-6
# A parameter without a value is used last: this much heavier than the whole robot.
_UNKNOWN = 1e3


@dataclass(frozen=True, eq=False)
class Weighed:
    """The equation a^T chi = mass over the parameters seen.

    Attributes:
        a: Shape (v,), kg per unit of the parameter.
        mass: What the data have to make up, in [kg].
        total: What the scale read, in [kg].
        priors: Parameter -> kg given by its prior value.
    """

    a: Float[Array, "v"]
    mass: float
    total: float
    priors: Mapping[str, float]

    def solved(self, size: Float[Array, "v"]) -> tuple[Float[Array, "v"], Float[Array, "v w"], int]:
        """(chi_0, Z, j): chi = chi_0 + Z y, where y holds all parameters but number j.

        Args:
            size: Norms of the columns: the parameter that weighs most per unit column is the one given up.
        """
        j = int(np.argmax(np.abs(self.a) / size))
        Z = np.delete(np.eye(len(self.a)), j, axis=1)
        Z[j] = -np.delete(self.a, j) / self.a[j]
        chi_0 = np.zeros(len(self.a))
        chi_0[j] = self.mass / self.a[j]
        return chi_0, Z, j

    @property
    def words(self) -> str:
        """What serves as the reference."""
        rest = f", {self.total - self.mass:.4g} kg of it taken from priors" if self.priors else ""
        return f"total mass {self.total:.6g} kg{rest}"

    def notices(self) -> tuple[Notice, ...]:
        """What rests on priors, and how hard an error of theirs would hit."""
        share = sum(abs(value) for value in self.priors.values())
        if share < _ROUNDING * self.total:
            return ()
        largest = sorted(self.priors, key=lambda name: -abs(self.priors[name]))
        shown = listed([f"{name} ({self.priors[name]:.3g} kg)" for name in largest])
        return (
            notice(
                "mass-prior",
                total=self.total,
                priors=self.total - self.mass,
                names=shown,
                percent=share / abs(self.mass),
            ),
        )


def weigh(mechanism: Mechanism, data: BaseSystem, scale: TotalMass) -> Weighed:
    """The weighed mass as an equation over the parameters seen.

    Raises:
        InputError: These parameters and the priors do not determine the sum; names those missing.
    """
    if data.base.G.shape[0] and _regrouped(data):
        raise InputError(
            "total_mass: with ties applied after regrouping, the masses of bodies are not sums of the"
            " estimated parameters",
            remedy="apply the ties on standard parameters, or leave them out",
        )
    bodies = _bodies(mechanism, scale)
    standard = data.base.standard
    known = known_columns(mechanism, standard)
    place = {parameter.name: i for i, parameter in enumerate(standard)}
    e = np.zeros(len(standard))
    given = 0.0
    for body in bodies:
        i = place.get(f"M_{body}")
        if i is not None and i in known:
            given += known[i]
        elif i is not None:
            e[i] = 1.0
    priors = prior_values(mechanism)
    for first, members in data.base.tied.items():
        for name in members:
            if name != first:
                e[place[first]] += e[place[name]]
                e[place[name]] = 0.0
    value = np.array([priors.get(parameter.name, np.nan) for parameter in standard])
    a = _row(data.G, e, value, scale.kg)
    rest = e - data.G.T @ a
    used = np.flatnonzero(np.abs(rest) > _ROUNDING)
    missing = [standard[i].name for i in used if np.isnan(value[i])]
    if missing or not np.any(np.abs(a) > _ROUNDING):
        raise _cannot(missing, bodies, bool(np.any(np.abs(a) > _ROUNDING)))
    shares = {standard[i].name: float(rest[i] * value[i]) for i in used if value[i] != 0.0}
    mass = scale.kg - given - sum(shares.values())
    if mass <= 0.0:
        raise InputError(
            f"total_mass: known masses and priors ({scale.kg - mass:.4g} kg) must be less than the weighed"
            f" {scale.kg:.4g} kg",
            remedy="check the priors, and which bodies were weighed (bodies: [...])",
        )
    return Weighed(a, mass, scale.kg, shares)


def _regrouped(data: BaseSystem) -> bool:
    """Whether base parameters were tied after regrouping: one column then contains several kept ones."""
    tied = {name for members in data.base.tied.values() for name in members}
    return len(data.base.indices) < data.base.rank.rank and bool(tied)


def _bodies(mechanism: Mechanism, scale: TotalMass) -> Sequence[str]:
    owners = [*mechanism.bodies, *mechanism.payloads]
    for name in scale.bodies or ():
        if name not in owners:
            raise InputError(f"total_mass: no body '{name}'" + nearest(name, owners))
    return tuple(mechanism.bodies) if scale.bodies is None else scale.bodies


def _row(
    G: Float[Array, "v p"], e: Float[Array, "p"], value: Float[Array, "p"], kg: float
) -> Float[Array, "v"]:
    """The row a with the least sum of |e - G^T a| times what each parameter weighs."""
    from scipy.optimize import linprog

    weight = np.where(np.isnan(value), _UNKNOWN * kg, np.maximum(np.abs(value), 1e-9 * kg))
    acting = np.any(G != 0, axis=0) | (e != 0)
    Gt, target, cost = G.T[acting], e[acting], weight[acting] / kg
    v, p = G.shape[0], int(acting.sum())
    eye = np.eye(p)
    both = np.block([[-Gt, -eye], [Gt, -eye]])
    optimum = linprog(
        np.concatenate([np.zeros(v), cost]),
        A_ub=both,
        b_ub=np.concatenate([-target, target]),
        bounds=[(None, None)] * v + [(0, None)] * p,
        method="highs",
    )
    if optimum.x is None:  # it has a feasible point (a = 0): this is a failure of the solver alone
        raise InputError("total_mass: the sum could not be formed", remedy="use a weighed payload")
    # The corner found, to full accuracy: rows without a rest hold exactly.
    exact = optimum.x[v:] <= _ROUNDING
    a = np.linalg.lstsq(Gt[exact], target[exact], rcond=None)[0]
    return np.asarray(np.where(np.abs(a) > 1e-12, a, 0.0))


def _cannot(missing: Sequence[str], bodies: Sequence[str], partly: bool) -> InputError:
    """Why the weighed mass cannot serve.

    Args:
        missing: Parameters that would have to be known.
        partly: Whether the data would then determine the rest.
    """
    order = {symbol: k for k, symbol in enumerate(reversed(SYMBOLS))}
    names = sorted(missing, key=lambda name: order.get(name.split("_")[0], len(order)))
    if not missing:
        why = f"the mass of {listed(bodies)} has no effect on the efforts"
    elif partly:
        why = (
            f"not identifiable from the efforts: {listed(names, 8)} (carried by the base, or regrouped into"
            " other parameters)"
        )
    else:
        why = f"the masses of {listed(bodies)} act only in sums with other parameters"
    return InputError(
        f"total_mass: the mass of these bodies is not a sum of identifiable parameters, so it cannot set the"
        f" scale; {why}",
        remedy="give the missing values as `known:` or `prior:` of the bodies (CAD), weigh other bodies"
        " (total_mass: {kg: ..., bodies: [...]}), or use a weighed payload",
    )
