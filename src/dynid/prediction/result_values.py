"""From a result back to the equations: standard parameters that give the efforts of its base parameters.

    chi_st = c + M x          W chi_st = W_base x,  for any motion

x are the result's values in their order. Each base value is assigned to the parameter it is named after;
the parameters grouped into it are zero, because they are contained in it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.base.base import tying
from dynid.base.structural import structural_base, tie_groups
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.estimator.estimator import gives_bodies
from dynid.estimator.settings import GAIN, GainSettings
from dynid.experiment.experiment import Experiment
from dynid.experiment.provenance import (
    check_robot,
    check_unloaded,
    experiment_of,
    recorded_loads,
    robot_of_result,
)
from dynid.mechanism.description import at_values
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism, Payload
from dynid.mechanism.parameters import Parameter, known_columns
from dynid.motion.log import Log
from dynid.motion.servo import LAW_NAMES, Law
from dynid.prediction.mounted import refuse_unknown_payloads, refuse_unloaded
from dynid.problem import as_asked
from dynid.projection.model import Model
from dynid.projection.projection import Directions
from dynid.statistics.effort_prediction import covariance_root
from dynid.statistics.estimate import Estimate


@dataclass(frozen=True, eq=False)
class StandardValues:
    """The affine map from the values of a result to standard parameters.

    Attributes:
        c: Known values, zero elsewhere, shape (p,), SI.
        M: Ones where a standard parameter takes a value of the result, shape (p, x), dimensionless.
        x: Values of the result, shape (x,), SI.
    """

    c: Float[Array, "p"]
    M: Float[Array, "p x"]
    x: Float[Array, "x"]

    @property
    def chi(self) -> Float[Array, "p"]:
        """Standard parameters, shape (p,), SI."""
        return np.asarray(self.c + self.M @ self.x)


def saved(
    result: str | os.PathLike[str] | Estimate, robot: str | os.PathLike[str] | Mechanism | None = None
) -> tuple[Estimate, Experiment, Mechanism]:
    """A result with the settings and the robot that it was made with.

    Args:
        result: File, folder or estimate.
        robot: Default: the robot of the identification; of a saved result the one named in its provenance,
            which must not have changed.
    """
    from dynid.report.json_file import read_result

    estimate = result if isinstance(result, Estimate) else read_result(os.fspath(result))
    options = {"robot": estimate.robot, **estimate.provenance.get("options", {})}
    file = None if isinstance(result, Estimate) else os.fspath(result)
    experiment = experiment_of(options, file)
    given = robot or estimate.mechanism
    described = load_robot(given or robot_of_result(options, file))
    mechanism = as_found(as_asked(described, experiment), estimate)
    if experiment.unloaded is not None:
        from dynid.prediction.unloaded import unloaded_model

        check_unloaded(estimate.provenance, experiment)
        mechanism = unloaded_model(mechanism, experiment).robot
    if given is None:
        check_robot(estimate.provenance, mechanism)
    return estimate, experiment, mechanism


def as_found(mechanism: Mechanism, estimate: Estimate) -> Mechanism:
    """The robot with the dimensions, zeros and gravity that a result has found."""
    description = estimate.description
    if description is None:
        return mechanism
    robot = at_values(mechanism, description.values)
    robot = replace(robot, uncertain={})
    if description.gravity_sigma is None:
        return robot
    return replace(robot, gravity=np.array(description.gravity))


def standard_values(
    estimate: Estimate,
    robot: Mechanism,
    parameters: Sequence[Parameter],
    experiment: Experiment,
    model: Model,
    directions: Directions | None,
    payloads: Mapping[str, Payload],
) -> StandardValues:
    """Positions of the values of a result among the standard parameters.

    Tied parameters were saved under the first member's name and belong to all members; values of a
    payload that is not mounted are ignored.

    Args:
        robot: With the payloads that are mounted, and no others.
        parameters: Its table.
        experiment: What the result was made with.
        model, directions: Equations of the result; they matter for ties after regrouping only.
        payloads: All that the robot's description knows.
    """
    index = {parameter.name: i for i, parameter in enumerate(parameters)}
    groups = _tied(robot, parameters, experiment, model, directions)
    T, c = tying(parameters, groups, known_columns(robot, parameters))
    members = {i: np.flatnonzero(column) for column in T.T for i in np.flatnonzero(column).tolist()}
    loads = recorded_loads(estimate.provenance)
    refuse_unknown_payloads(estimate, robot)
    if experiment.unloaded is None:  # else the robot without load is known for itself
        refuse_unloaded(loads, payloads, robot.payloads, estimate.robot)
    M = np.zeros((len(parameters), len(estimate.parameters)))
    for k, entry in enumerate(estimate.parameters):
        name = entry.name if entry.name in index else entry.name.removesuffix("_R")
        if name in index:
            M[members[index[name]], k] = 1.0
        elif name.partition("_")[2] not in payloads and name.partition("_")[0] not in (GAIN, *LAW_NAMES):
            raise InputError(
                f"parameter '{entry.name}' of the result is not a parameter of robot '{estimate.robot}' now",
                remedy="use the robot file that the result was made with",
            )
    x = np.array([item.value for item in estimate.parameters], float)
    return StandardValues(_constant(estimate, parameters, c, M, x), M, x)


def standard_root(estimate: Estimate, values: StandardValues) -> Float[Array, "p r"]:
    """A root of the covariance of the standard parameters; removed parameters have none."""
    return np.asarray(values.M[:, fitted_places(estimate)] @ covariance_root(estimate.covariance))


def fitted_places(estimate: Estimate) -> list[int]:
    """Positions of the parameters of its covariance in a result."""
    fitted = [k for k, parameter in enumerate(estimate.parameters) if parameter.sigma is not None]
    if estimate.covariance.shape != (len(fitted), len(fitted)):
        raise InputError(
            f"the result has {len(fitted)} parameters with a sigma, but a covariance of shape"
            f" {estimate.covariance.shape}",
            remedy="identify again to write a new result",
        )
    return fitted


def _constant(
    estimate: Estimate,
    parameters: Sequence[Parameter],
    c: Float[Array, "p"],
    M: Float[Array, "p x"],
    x: Float[Array, "x"],
) -> Float[Array, "p"]:
    """Known values; for a consistent result, the c for which c + M x are the parameters of its bodies.

    The efforts are the same, except for motions that were not in the logs of the result: there the bodies
    follow their prior instead of zero.
    """
    if not gives_bodies(estimate.estimator) or not estimate.standard:
        return c.copy()
    bodies = {str(entry["name"]): float(entry["value"]) for entry in estimate.standard}
    full = np.array([bodies.get(p.name, c[i]) for i, p in enumerate(parameters)])
    return np.asarray(full - M @ x)


def _tied(
    robot: Mechanism,
    parameters: Sequence[Parameter],
    experiment: Experiment,
    model: Model,
    directions: Directions | None,
) -> list[tuple[int, ...]]:
    """Columns that the result's ties made equal; after regrouping only base parameters are tied."""
    before = [tie.name for tie in experiment.ties if tie.apply == "standard"]
    after = [tie.name for tie in experiment.ties if tie.apply == "regrouped"]
    groups = tie_groups(robot, parameters, before)
    if after:
        loads = ((), tuple(robot.payloads))
        base = structural_base(robot, model, parameters, directions, ties=before, loads=loads)
        for group in tie_groups(robot, parameters, after):
            groups.append(tuple(i for i in group if i in base.indices))
    return [group for group in groups if len(group) > 1]


def applied(log: Log, factors: Float[Array, "a"]) -> Log:
    """The log with its effort columns multiplied by drive gains."""
    return replace(log, tau=log.tau * factors)


def nominal_factors(motors: tuple[str, ...], settings: GainSettings) -> Float[Array, "a"]:
    """What logged efforts are multiplied by before anything is found."""
    return np.array(settings.nominal_of(motors))


def with_result_gains(logs: Sequence[Log], estimate: Estimate, experiment: Experiment) -> list[Log]:
    """Logs of a result whose gains were found: its gains applied to the efforts as logged."""
    if experiment.pd is not None:
        values = {parameter.name: parameter.value for parameter in estimate.parameters}
        return [Law.of(experiment.pd, log.effort_names, values).applied(log) for log in logs]
    settings = experiment.gains
    if settings is None:
        return list(logs)
    gain_of = {
        parameter.name: parameter.value
        for parameter in estimate.parameters
        if parameter.name.startswith(f"{GAIN}_")
    }
    scaled = []
    for log in logs:
        factors = nominal_factors(log.effort_names, settings)
        for k, motor in enumerate(log.effort_names):
            gain = gain_of.get(f"{GAIN}_{motor}")
            if gain is not None:
                factors[k] = gain
            elif settings.common and motor in settings.open_motors(log.effort_names):
                factors[k] *= gain_of[f"{GAIN}_common"]
        scaled.append(applied(log, factors))
    return scaled
