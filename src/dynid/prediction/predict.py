"""Efforts for a desired trajectory with identified parameters: the last stage, for controllers.

result + trajectory -> standard values that give the same efforts -> motion of all joints -> efforts,
power, and their sigma from the covariance of the estimate.

Sigma of predicted efforts of a robot whose description is uncertain.

An error of a dimension moves the parameters and the equations together, and they partly compensate:

    d tau / dx  =  dW/dx chi  +  W d chi / dx

so the part of the parameters' covariance that comes from the description is taken out, and the change of the
whole prediction is added instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import single_threaded_blas
from dynid.common.entry import plain_entry
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.common.settings import read
from dynid.experiment.experiment import ColumnMap, Experiment, LogEntry
from dynid.kinematics.tension import redundancy
from dynid.mechanism.description import at_values, current
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, effort_unit, parameter_table
from dynid.mechanism.variant import variant
from dynid.motion.motion import Motion
from dynid.prediction.mounted import mounted as mounted_payloads
from dynid.prediction.result_values import StandardValues, saved, standard_root, standard_values
from dynid.prediction.trajectory import PoseTrajectory, TrajectorySource, desired_motion
from dynid.prediction.unloaded import unloaded_model
from dynid.projection.model import model_named
from dynid.projection.projection import choose_rows
from dynid.statistics.effort_prediction import Efforts, covariance_root, efforts_along
from dynid.statistics.estimate import Estimate
from dynid.statistics.estimate_parts import Description

__all__ = ["EffortPrediction", "PoseTrajectory", "predict_efforts"]

_LEAST_SHARE = 0.01  # of the samples: every motion begins and ends at rest


@dataclass(frozen=True, eq=False)
class EffortPrediction:
    """Efforts that a robot will need along a desired trajectory.

    sigma is that of the prediction's mean: what the covariance of the estimate makes of it. Noise of the
    efforts and model errors are not included. It is infinite where a parameter acts that nothing is known of,
    such as friction of a joint whose effort was not logged.

    Attributes:
        names, units: Of the actuators.
        t: Shape (n,), in [s].
        tau, sigma: Shape (n, a), in `units`; redundant actuation: least efforts plus `c` along Z.
        power, sigma_power: Mechanical power of all actuators, shape (n,), in [W].
        c: Requested internal tension, shape (n, z), in the unit of the motors.
        notices: What to know before trusting the numbers.
    """

    robot: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    t: Float[Array, "n"]
    tau: Float[Array, "n a"]
    sigma: Float[Array, "n a"]
    power: Float[Array, "n"]
    sigma_power: Float[Array, "n"]
    c: Float[Array, "n z"]
    notices: tuple[Notice, ...] = ()

    def __repr__(self) -> str:
        """One line, with the codes of the warnings: they decide whether the numbers are of use."""
        warnings = "".join(f", warning: {item.code}" for item in self.notices)
        return (
            f"EffortPrediction(robot={self.robot!r}, {len(self.t)} samples, efforts={self.names}{warnings})"
        )

    def to_dataframe(self) -> Any:
        """As a pandas data frame: a row per sample, with `t` as index."""
        from dynid.report.csv_file import effort_frame

        return effort_frame(self)


def predict_efforts(
    result: str | os.PathLike[str] | Estimate,
    trajectory: TrajectorySource,
    *,
    robot: str | os.PathLike[str] | Mechanism | None = None,
    payloads: Sequence[str] | None = None,
    tension: float | Sequence[float] | Float[Array, "n z"] = 0.0,
    body: str | None = None,
    columns: Mapping[str, ColumnMap | str | Mapping[str, Any]] | None = None,
) -> EffortPrediction:
    """Efforts and power for a desired trajectory, with the identified (base) parameters.

    Args:
        result: `result.json`, its folder, or an estimate.
        trajectory: A file with columns as in logs (`t`, `q_1`.. or names; `dq`, `ddq` where known), or
            with the pose of a body (`x y z roll pitch yaw`, or a part of them, or a quaternion); a `Log`
            (see `log_from_arrays`) or a `PoseTrajectory`; a data frame or mapping with such columns.
        robot: Default: the robot named in the result's provenance.
        payloads: Mounted on it; the result must know them. Empty: none; default: what every log of the fit
            carried.
        tension: Internal tension of a redundantly actuated robot, constant or per sample and direction,
            in [N m] or [N]; default 0, the least efforts.
        body: Whose pose the file gives; default `platform`.
        columns: Signal -> column of the trajectory, as of `identify`. Default: those of the result's logs
            where the trajectory has them, with their units and zeros, and its `drives`.
    """
    named = (
        None
        if columns is None
        else read(LogEntry, plain_entry({"file": "trajectory", "columns": columns})).columns
    )
    estimate, experiment, mechanism = saved(result, robot)
    refuse_no_robot(estimate, mechanism)
    loads, assumed = mounted_payloads(estimate, mechanism, payloads)
    mounted = variant(mechanism, payloads=loads)
    with single_threaded_blas():
        parameters = parameter_table(mounted)
        unknown = [i for name, i in _open(estimate, parameters) if _is_alone(name, estimate)]

        def along(
            robot: Mechanism, chi: Float[Array, "p"], root: Float[Array, "p r"]
        ) -> tuple[Motion, Efforts]:
            guided, motion = desired_motion(
                trajectory,
                robot,
                payloads=loads,
                body=body,
                angles=experiment.angles,
                columns=named,
                recorded=experiment,
            )
            added = _tension(mounted, tension, len(motion.log.t))
            return motion, efforts_along(guided, parameters, motion, chi, root, added, unknown)

        model = model_named(estimate.model)
        rows = None if mounted.is_closed else choose_rows(model.directions(mounted), experiment.efforts)
        values = standard_values(estimate, mounted, parameters, experiment, model, rows, mechanism.payloads)
        motion, forecast = along(
            mounted, values.chi, _root(estimate, experiment, mechanism, values, parameters)
        )
        if estimate.description is not None and estimate.description.names:
            none = np.zeros((len(values.chi), 0))
            forecast = with_description(
                forecast, estimate, values, mounted, lambda robot, chi: along(robot, chi, none)[1]
            )
    names = tuple(actuator.name for actuator in mounted.actuators)
    used = np.concatenate([np.arange(start, stop) for start, stop in motion.usable()])
    return EffortPrediction(
        robot=mounted.name,
        names=names,
        units=tuple(effort_unit(mounted, name) for name in names),
        t=motion.log.t[used],
        tau=forecast.tau[used],
        sigma=forecast.sigma[used],
        power=forecast.power[used],
        sigma_power=forecast.sigma_power[used],
        c=forecast.c[used],
        notices=(
            *assumed,
            *motion.log.notices,
            *_unknown(estimate, parameters, forecast),
            *_standing(forecast),
        ),
    )


def _root(
    estimate: Estimate,
    experiment: Experiment,
    mechanism: Mechanism,
    values: StandardValues,
    parameters: Sequence[Parameter],
) -> Float[Array, "p r"]:
    """A root of the covariance of all that is predicted with: of a payload by difference, the robot's too."""
    if experiment.unloaded is None:
        return standard_root(without_description(estimate), values)
    return unloaded_model(mechanism, experiment).loaded_root(estimate, values, parameters)


def _tension(
    robot: Mechanism, tension: float | Sequence[float] | Float[Array, "n z"], n: int
) -> Float[Array, "n z"] | None:
    """The tension of every sample and direction; refused where there is no such direction."""
    asked = np.asarray(tension, float)
    if not np.any(asked):
        return None
    z = redundancy(robot)
    if z == 0:
        raise InputError(
            f"robot '{robot.name}' has no redundant actuators: no internal tension is possible",
            file=robot.file,
            remedy="leave the tension out",
        )
    if asked.shape not in ((), (z,), (n, z)):
        raise InputError(f"a tension of shape {asked.shape} does not fit {n} samples and {z} directions")
    return np.broadcast_to(asked, (n, z))


def _open(estimate: Estimate, parameters: Sequence[Parameter]) -> list[tuple[str, int]]:
    """Names and columns of the parameters that the data of a result did not determine."""
    index = {parameter.name: i for i, parameter in enumerate(parameters)}
    asked = [(name, index.get(name.removesuffix("_R"))) for name in estimate.not_identifiable]
    return [(name, i) for name, i in asked if i is not None]


def _is_alone(name: str, estimate: Estimate) -> bool:
    """Whether nothing is known of a parameter, not even a sum with others."""
    return not any(name.removesuffix("_R") in entry.grouping.split() for entry in estimate.parameters)


def _unknown(estimate: Estimate, parameters: Sequence[Parameter], forecast: Efforts) -> list[Notice]:
    """Parameters that act in this trajectory but were not determined by the data, or were set to zero."""
    notices = []
    felt = [(name, i) for name, i in _open(estimate, parameters) if forecast.felt[i] > 0.0]
    if felt:
        shown = ", ".join(
            f"{name} (up to {forecast.felt[i]:.3g} N m or N per {parameters[i].unit})" for name, i in felt[:4]
        ) + (f" and {len(felt) - 4} more" if len(felt) > 4 else "")
        notices.append(notice("not-identified", shown=shown))
    removed = [entry.name for entry in estimate.parameters if not entry.essential]
    if removed:
        shown = ", ".join(removed[:4]) + (f" and {len(removed) - 4} more" if len(removed) > 4 else "")
        notices.append(notice("essential-bias", "predicted", names=shown))
    return notices


def _standing(forecast: Efforts) -> list[Notice]:
    """Joints with dry friction that are at rest for some time."""
    names = [
        f"{owner} ({100 * share:.0f} % of the time)"
        for owner, share in forecast.standing.items()
        if share > _LEAST_SHARE
    ]
    if not names:
        return []
    return [notice("friction-at-rest", names=", ".join(names))]


def refuse_no_robot(estimate: Estimate, mechanism: Mechanism) -> None:
    """Refuse results that contain no efforts of the robot: of a load on it, or per unit mass."""
    if mechanism.mounted_model:
        raise InputError(
            "a result of a force sensor contains the load on the sensor, not the efforts of the robot",
            remedy="use its compensation.py to predict the readings of the sensor",
        )
    _refuse_per_mass(estimate)


def _refuse_per_mass(estimate: Estimate) -> None:
    """Refuse efforts from a result per unit mass: free motion shows ratios of parameters, no force.

    A result with a known mass names its parameters as any other, and serves.
    """
    shown = next((parameter.name for parameter in estimate.parameters if "/M_" in parameter.name), None)
    if shown is None:
        return
    body = shown.partition("/M_")[2].removesuffix("_R")
    mass = next((parameter for parameter in estimate.parameters if parameter.name == f"M_{body}"), None)
    text = f"the result gives parameters per unit mass of '{body}' ({shown}), but efforts need kilograms"
    known = "..." if mass is None else f"{mass.value:.6g}"
    remedy = f"identify again with bodies: {{{body}: {{known: {{M: {known}}}}}}} in the robot file"
    raise InputError(text, remedy=remedy)


def without_description(estimate: Estimate) -> Estimate:
    """The result with the covariance that it would have if its description were exact."""
    description = estimate.description
    if description is None or not description.names:
        return estimate
    fitted = [k for k, parameter in enumerate(estimate.parameters) if parameter.sigma is not None]
    J = _slopes(estimate, description)[fitted]
    return replace(estimate, covariance=estimate.covariance - J @ description.covariance @ J.T)


def with_description(
    predicted_efforts: Efforts,
    estimate: Estimate,
    values: StandardValues,
    robot: Mechanism,
    efforts: Callable[[Mechanism, Float[Array, "p"]], Efforts],
) -> Efforts:
    """The efforts with what the uncertainty of the description adds to their sigma.

    Args:
        predicted_efforts: With the covariance of the parameters alone.
        estimate: The result.
        values: Index of its values among the standard parameters.
        robot: With what is mounted.
        efforts: Efforts along the same trajectory of another robot with other parameters, (p,), SI.
    """
    description = estimate.description
    if description is None or not description.names:
        return predicted_efforts
    J = _slopes(estimate, description)
    middle = np.array([current(robot, name) for name in description.names])
    sigma, power = predicted_efforts.sigma**2, predicted_efforts.sigma_power**2
    for step in covariance_root(description.covariance).T:
        if not np.any(step):
            continue
        both = []
        for sign in (1.0, -1.0):
            moved = dict(zip(description.names, (middle + sign * step).tolist(), strict=True))
            both.append(efforts(at_values(robot, moved), values.chi + sign * values.M @ (J @ step)))
        sigma = sigma + (0.5 * (both[0].tau - both[1].tau)) ** 2
        power = power + (0.5 * (both[0].power - both[1].power)) ** 2
    return replace(predicted_efforts, sigma=np.sqrt(sigma), sigma_power=np.sqrt(power))


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
