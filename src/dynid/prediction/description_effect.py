"""Sigma of predicted efforts of a robot whose description is uncertain.

An error of a dimension moves the parameters and the equations together, and they partly compensate:

    d tau / dx  =  dW/dx chi  +  W d chi / dx

so the part of the parameters' covariance that comes from the description is taken out, and the change of the
whole prediction is added instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.description import at_values, current
from dynid.mechanism.mechanism import Mechanism
from dynid.prediction.result_values import StandardValues
from dynid.statistics.description import Description
from dynid.statistics.effort_prediction import Efforts, covariance_root
from dynid.statistics.estimate import Estimate


def without_description(estimate: Estimate) -> Estimate:
    """The result with the covariance that it would have if its description were exact."""
    description = estimate.description
    if description is None or not description.names:
        return estimate
    fitted = [k for k, parameter in enumerate(estimate.parameters) if parameter.sigma is not None]
    J = _slopes(estimate, description)[fitted]
    return replace(estimate, covariance=estimate.covariance - J @ description.covariance @ J.T)


def with_description(
    found: Efforts,
    estimate: Estimate,
    values: StandardValues,
    robot: Mechanism,
    efforts: Callable[[Mechanism, Float[Array, "p"]], Efforts],
) -> Efforts:
    """The efforts with what the uncertainty of the description adds to their sigma.

    Args:
        found: With the covariance of the parameters alone.
        estimate: The result.
        values: Index of its values among the standard parameters.
        robot: With what is mounted.
        efforts: Efforts along the same trajectory of another robot with other parameters, (p,), SI.
    """
    description = estimate.description
    if description is None or not description.names:
        return found
    J = _slopes(estimate, description)
    middle = np.array([current(robot, name) for name in description.names])
    sigma, power = found.sigma**2, found.sigma_power**2
    for step in covariance_root(description.covariance).T:
        if not np.any(step):
            continue
        both = []
        for sign in (1.0, -1.0):
            moved = dict(zip(description.names, (middle + sign * step).tolist(), strict=True))
            both.append(efforts(at_values(robot, moved), values.chi + sign * values.M @ (J @ step)))
        sigma = sigma + (0.5 * (both[0].tau - both[1].tau)) ** 2
        power = power + (0.5 * (both[0].power - both[1].power)) ** 2
    return replace(found, sigma=np.sqrt(sigma), sigma_power=np.sqrt(power))


def _slopes(estimate: Estimate, description: Description) -> Float[Array, "v k"]:
    """D value / d quantity of every value listed; zero for those that the description does not know."""
    place = {name: i for i, name in enumerate(description.parameters)}
    rows = [
        description.slopes[place[parameter.name]]
        if parameter.name in place
        else np.zeros(len(description.names))
        for parameter in estimate.parameters
    ]
    return np.array(rows).reshape(len(rows), len(description.names))
