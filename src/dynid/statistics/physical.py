"""Are these base parameters physically consistent? Tested for each result and every estimator."""

from __future__ import annotations

import numpy as np

from dynid.common.notices import Notice, eased, notice
from dynid.estimator.consistent import physical_distance
from dynid.estimator.solution import Solution
from dynid.estimator.standard_space import StandardSpace
from dynid.projection.projection import System
from dynid.statistics.uncertainty import interval95

_UNLIKELY = 1e-3  # significance level
# Sigma, rms: model errors of good real arms give 1 to 3, exchanged payloads and wrong units hundreds.
_IMPOSSIBLE = 10.0
_MOST_PARAMETERS = 1000  # beyond, the test would outlast the identification
_FEWEST_ROTORS = 2


def physical_test(space: StandardSpace) -> tuple[Notice, ...]:
    """A warning if these base parameters are significantly inconsistent physically.

    The distance |U (chi_physical - chi_hat)| squared to the nearest physical set is at most
    chi-squared with as many degrees of freedom as parameters, if the truth is physical.
    """
    from scipy.special import chdtrc

    if not space.bodies or len(space.parameters) > _MOST_PARAMETERS:
        return ()
    distance = physical_distance(space)
    if distance is None or chdtrc(len(space.estimate), distance**2) > _UNLIKELY:
        return ()
    rms = distance / np.sqrt(len(space.estimate))
    remark = notice("not-physical", rms=rms, count=len(space.estimate))
    return (remark if rms > _IMPOSSIBLE else eased(remark),)


def rotor_test(system: System, linear: Solution) -> tuple[Notice, ...]:
    """A warning where rotors seem to have no inertia: efforts sensed on the link side.

    Asked of base parameters that are a rotor's own, before any bound: at least two, and half of
    all, below zero beyond their 95 % interval, and none above zero beyond it. Real bodies then
    fit as well without a rotor: a bound holds it at zero.
    """
    ci95 = interval95(linear.chi, linear.covariance, linear.dof)
    rotors = [i for i, p in enumerate(system.parameters) if p.symbol == "Ia" and p.name == f"Ia_{p.owner}"]
    below = [system.parameters[i].owner for i in rotors if ci95[i, 1] < 0]
    above = any(ci95[i, 0] > 0 for i in rotors)
    if above or len(below) < max(_FEWEST_ROTORS, (len(rotors) + 1) // 2):
        return ()
    return (notice("rotor-not-felt", names=", ".join(below)),)
