"""Parameters of the generated code: the values of an estimate that are kept, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynid.common.errors import InputError
from dynid.experiment.provenance import experiment_of, recorded_loads
from dynid.exporters.code.drives import Value
from dynid.kinematics.tension import driven_freedoms
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, parameter_table
from dynid.mechanism.variant import variant
from dynid.prediction.predict import refuse_per_mass
from dynid.prediction.result_values import StandardValues, standard_values
from dynid.projection.model import model_named
from dynid.projection.projection import choose_rows
from dynid.statistics.estimate import Estimate


def kept_values(estimate: Estimate, mechanism: Mechanism) -> tuple[Mechanism, tuple[Value, ...]]:
    """The robot as it was identified, and the parameters whose values are not zero by choice.

    Payloads that all logs have carried are mounted: what is not known of them is part of their carrier.
    """
    _refuse(estimate, mechanism)
    loads = recorded_loads(estimate.provenance)
    always = set.intersection(*(set(load) for load in loads)) if loads else set()
    robot = variant(mechanism, payloads=tuple(name for name in mechanism.payloads if name in always))
    parameters = parameter_table(robot)
    options: dict[str, Any] = {"robot": estimate.robot, **estimate.provenance.get("options", {})}
    experiment = experiment_of(options)
    model = model_named(estimate.model)
    rows = None if robot.is_closed else choose_rows(model.directions(robot), experiment.efforts)
    made = standard_values(estimate, robot, parameters, experiment, model, rows, mechanism.payloads)
    if estimate.estimator == "consistent" and estimate.standard:
        values = _bodies(made, parameters)
    else:
        values = _base(estimate, made, parameters)
    lost = {term.name for term in robot.terms if term.expression.friction}  # no code can be written for them
    values = tuple(entry for entry in values if not lost.issuperset(entry.standard))
    for entry in values:
        if not abs(entry.value) < float("inf"):
            raise InputError(f"parameter '{entry.name}' is {entry.value}: no code can be written")
    return robot, values


def _base(estimate: Estimate, made: StandardValues, parameters: Sequence[Parameter]) -> tuple[Value, ...]:
    """Essential values of the result, then known ones."""
    kept = []
    for k, parameter in enumerate(estimate.parameters):
        members = tuple(parameters[i].name for i in made.M[:, k].nonzero()[0].tolist())
        if members and parameter.essential:
            kept.append(Value(parameter.name, parameter.unit, parameter.value, members))
    for i, value in enumerate(made.c.tolist()):
        if value != 0.0:
            standard = parameters[i]
            kept.append(Value(f"{standard.name}_known", standard.unit, value, (standard.name,)))
    return tuple(kept)


def _bodies(made: StandardValues, parameters: Sequence[Parameter]) -> tuple[Value, ...]:
    """Standard parameters of a physically consistent result."""
    return tuple(
        Value(parameter.name, parameter.unit, value, (parameter.name,))
        for parameter, value in zip(parameters, made.chi.tolist(), strict=True)
        if value != 0.0
    )


def _refuse(estimate: Estimate, mechanism: Mechanism) -> None:
    """Refuse results that give no efforts of actuators."""
    if mechanism.force_sensor is not None:
        raise InputError(
            "a result of a force sensor contains the load on the sensor, not the efforts of the robot",
            remedy="use its compensation.py to predict the readings of the sensor",
        )
    refuse_per_mass(estimate)
    freedoms, driven = driven_freedoms(mechanism)
    if driven < freedoms:
        raise InputError(
            f"the {len(mechanism.actuators)} actuators of robot '{mechanism.name}' drive {driven} of its"
            f" {freedoms} degrees of freedom: there are no efforts for a prescribed motion",
            file=mechanism.file,
            remedy="controller code can be written for fully actuated robots only",
        )
