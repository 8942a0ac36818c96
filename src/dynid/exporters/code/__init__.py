"""Controller code of a result: C99, and a NumPy module, from one list of expressions.

    tau = (J^T)^+ N^T W(q, dq, ddq) chi + (1 - J J^+) internal

`values.py` has the parameters that are kept, `model.py` the functions as expressions (`graph.py`), and
`c_file.py` and `numpy_file.py` print them.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np

from dynid.common.errors import InputError
from dynid.exporters.code.c_file import CFile
from dynid.exporters.code.compiled import c_efforts, compiler, compiler_version, module_efforts
from dynid.exporters.code.fmu import fmu_efforts, write_fmu
from dynid.exporters.code.model import ControllerModel, controller_model
from dynid.exporters.code.numpy_file import NumpyFile
from dynid.exporters.code.values import kept_values
from dynid.exporters.contract import Exported
from dynid.mechanism.mechanism import Mechanism
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
    made_by = estimate.provenance.get("versions", {}).get("dynid", version("dynid"))
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
    for name, expression in {one.name: one.expression for one in robot.terms}.items():
        if expression.friction:
            notes.append(f"term '{name}' calls a function of another package: it is left out")
        elif any(kind == "ddq" for kind, _ in expression.signals):
            notes.append(f"term '{name}' is in the efforts, but not in the mass matrix")
    others = [name for name in mechanism.payloads if name not in robot.payloads]
    return (*notes, *(f"payload '{name}' is not mounted in the code" for name in others))
