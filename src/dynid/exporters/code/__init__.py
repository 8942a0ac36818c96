"""Controller code of a result: C99, and a NumPy module, from one list of expressions.

    tau = (J^T)^+ N^T W(q, dq, ddq) chi + (1 - J J^+) internal

The parameters that are kept are here; `model.py` has the functions as expressions (`graph.py`), and
`c_file.py` and `numpy_file.py` print them.

Parameters of the generated code: the values of an estimate that are kept, and what they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.errors import InputError
from dynid.common.versions import version_of
from dynid.estimator.estimator import gives_bodies
from dynid.experiment.provenance import experiment_of, recorded_loads
from dynid.exporters.code.bodies import Value
from dynid.exporters.code.c_file import CFile
from dynid.exporters.code.compiled import c_efforts, compiler, compiler_version, module_efforts
from dynid.exporters.code.fmu import fmu_efforts, write_fmu
from dynid.exporters.code.model import ControllerModel, controller_model
from dynid.exporters.code.numpy_file import NumpyFile
from dynid.exporters.contract import Exported
from dynid.kinematics.tension import driven_freedoms
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, parameter_table
from dynid.mechanism.variant import variant
from dynid.prediction.predict import refuse_no_robot
from dynid.prediction.result_values import StandardValues, standard_values
from dynid.projection.model import model_named
from dynid.projection.projection import choose_rows
from dynid.statistics.estimate import Estimate


def export_c(estimate: Estimate, mechanism: Mechanism, folder: Path) -> Exported:
    """Write NAME.c and NAME.h."""
    model = _model(estimate, mechanism)
    made = CFile(model, _about(estimate, model))
    header, source = made.texts()
    files = (folder / f"{made.name}.c", folder / f"{made.name}.h")
    _write(files[0], source)
    _write(files[1], header)
    program, count = compiler(), len(model.robot.actuators)
    return Exported(
        files,
        lambda: c_efforts(files[0], made.name, count),  # refused where there is no compiler
        "" if program is None else compiler_version(program),
        _left_out(mechanism, model),
    )


def export_fmu(estimate: Estimate, mechanism: Mechanism, folder: Path) -> Exported:
    """Write NAME.fmu."""
    model = _model(estimate, mechanism)
    made = CFile(model, _about(estimate, model))
    file, program = folder / f"{made.name}.fmu", compiler()
    write_fmu(made, file)
    return Exported(
        (file,),
        lambda: fmu_efforts(file, made.name, len(model.robot.actuators)),
        "" if program is None else f"FMI 3.0, {compiler_version(program)}",
        _left_out(mechanism, model),
    )


def export_numpy(estimate: Estimate, mechanism: Mechanism, folder: Path) -> Exported:
    """Write NAME.py."""
    model = _model(estimate, mechanism)
    made = NumpyFile(model, _about(estimate, model))
    file = folder / f"{made.name}.py"
    _write(file, made.text())
    left_out = _left_out(mechanism, model)
    return Exported((file,), lambda: module_efforts(file), f"NumPy {np.__version__}", left_out)


def _model(estimate: Estimate, mechanism: Mechanism) -> ControllerModel:
    return controller_model(*kept_values(estimate, mechanism))


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="ascii")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=file) from error


def _about(estimate: Estimate, model: ControllerModel) -> list[str]:
    """Lines at the top of a file: what it is, and how far it can be trusted."""
    verdict, fit = estimate.verdict, estimate.fit
    payloads = ", ".join(model.robot.payloads) or "none"
    lost = [term.name for term in model.robot.terms if term.expression.friction]
    made_by = estimate.provenance.get("versions", {}).get("dynid", version_of())
    return [
        f"Controller code of robot {model.robot.name}, from a result of dynid {made_by}.",
        f"Model {estimate.model}, estimator {estimate.estimator}.",
        f"Residual of the fit: {fit.residual_percent:.4g} %.",
        f"Verdict: {verdict.level}. {verdict.headline}",
        f"Payloads mounted: {payloads}.",
        "Dry friction has the sign of the velocity, and is 0 at velocity 0.",
        *([f"Left out: {', '.join(lost)} (functions of other packages)."] if lost else []),
    ]


def _left_out(mechanism: Mechanism, model: ControllerModel) -> tuple[str, ...]:
    """What the code does not hold."""
    robot = model.robot
    notes = []
    for name, expression in {declared.name: declared.expression for declared in robot.terms}.items():
        if expression.friction:
            notes.append(f"term '{name}' calls a function of another package: it is left out")
        elif any(kind == "ddq" for kind, _ in expression.signals):
            notes.append(f"term '{name}' is in the efforts, but not in the mass matrix")
    others = [name for name in mechanism.payloads if name not in robot.payloads]
    return (*notes, *(f"payload '{name}' is not mounted in the code" for name in others))


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
    if gives_bodies(estimate.estimator) and estimate.standard:
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
    refuse_no_robot(estimate, mechanism)
    freedoms, driven = driven_freedoms(mechanism)
    if driven < freedoms:
        raise InputError(
            f"the {len(mechanism.actuators)} actuators of robot '{mechanism.name}' drive {driven} of its"
            f" {freedoms} degrees of freedom: there are no efforts for a prescribed motion",
            file=mechanism.file,
            remedy="controller code can be written for fully actuated robots only",
        )
