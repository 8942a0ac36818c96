"""Identified payloads as robot controllers take them: Universal Robots and Franka.

    mass [kg], centre of mass c [m], inertia about the centre of mass [kg m^2], in axes of the carrying body

    URScript    set_target_payload(m, cog, inertia), inertia = [Ixx, Iyy, Izz, Ixy, Ixz, Iyz]
    libfranka   Robot::setLoad(load_mass, F_x_Cload, load_inertia), load_inertia column by column

The carrying body is the flange: its frame must be that of the controller's flange.

ROS 2 parameters: the values of a result as a parameter file of one node.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.exporters.code.printing import parameter_names
from dynid.exporters.contract import Described, Exported, header_lines, named_file
from dynid.exporters.link_tree import at_centre
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism, Payload
from dynid.statistics.estimate import Estimate

_AXES = (
    "axes and origin: they are those of the body that carries the payload; the controller takes those of its"
    " flange"
)


def flange_values(payload: Payload) -> tuple[float, Float[Array, "3"], Float[Array, "3 3"]]:
    """Mass, centre of mass and inertia about it, in axes of the carrying body, SI."""
    chi = np.array([payload.prior.get(symbol, payload.known.get(symbol, 0.0)) for symbol in SYMBOLS])
    mass, com, inertia = at_centre(chi)
    R = payload.frame.R
    return float(mass), np.asarray(payload.frame.p + R @ com), np.asarray(R @ inertia @ R.T)


def export_ur(estimate: Estimate, mechanism: Mechanism, folder: Path) -> Exported:
    """NAME.payload.script: one URScript function for each payload, with `set_target_payload`."""
    lines = [f"# {' '.join(line.split())}" for line in header_lines(Described(estimate, mechanism))]
    payloads = _payloads(mechanism)
    names = parameter_names(f"payload_{load.name}" for load in payloads)
    for name, payload in zip(names, payloads, strict=True):
        mass, com, inertia = flange_values(payload)
        tensor = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        m, c, J = (", ".join(map(_decimal, values)) for values in ([mass], com, tensor))
        lines += [f"def {name}():", f"  set_target_payload({m}, [{c}], [{J}])", "end"]
    file = named_file(folder, mechanism, ".payload.script")
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return Exported((file,), not_representable=(_AXES,), payloads=tuple(mechanism.payloads))


def export_franka(estimate: Estimate, mechanism: Mechanism, folder: Path) -> Exported:
    """NAME.payload.json: arguments of `setLoad` of libfranka for each payload (inertia column by column)."""
    loads = {}
    for payload in _payloads(mechanism):
        mass, com, inertia = flange_values(payload)
        loads[payload.name] = {
            "load_mass": mass,
            "F_x_Cload": com.tolist(),
            "load_inertia": inertia.T.ravel().tolist(),
        }
    file = named_file(folder, mechanism, ".payload.json")
    document = {"about": header_lines(Described(estimate, mechanism)), "setLoad": loads}
    file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return Exported((file,), not_representable=(_AXES,), payloads=tuple(mechanism.payloads))


def _decimal(value: float) -> str:
    """A number without exponent."""
    return np.format_float_positional(float(value), trim="0")


def _payloads(mechanism: Mechanism) -> list[Payload]:
    if not mechanism.payloads:
        raise InputError(
            "the result has no payload",
            remedy="identify one: dynid payload, or `payloads:` in the experiment; --payload link",
        )
    return list(mechanism.payloads.values())


def export_ros2(estimate: Estimate, mechanism: Mechanism, folder: Path) -> Exported:
    """NAME.ros2.yaml: base parameters, bodies and drives below `/**: ros__parameters`."""
    described = Described(estimate, mechanism)
    file = named_file(folder, mechanism, ".ros2.yaml")
    base = {parameter.name: parameter.value for parameter in estimate.parameters}
    lines = [f"# {' '.join(line.split())}" for line in header_lines(described)]
    lines += ["/**:", "  ros__parameters:"]
    lines += _listed("joints", [joint.name for joint in mechanism.joints if joint.coordinates])
    lines += _listed("base_names", list(base)) + _listed("base_values", list(base.values()))
    bodies = {}
    for name in mechanism.bodies:
        chi = described.body(name)
        if chi is not None:
            bodies[name] = [float(x) for x in chi]
    lines += _listed("body_symbols", list(SYMBOLS)) + _listed("body_names", list(bodies))
    lines += _listed("body_values", [x for values in bodies.values() for x in values])
    drive = {p.name: float(x) for p, x in zip(described.parameters, described.chi, strict=True)}
    drive = {p.name: drive[p.name] for p in described.parameters if p.kind != "inertial"}
    lines += _listed("drive_names", list(drive)) + _listed("drive_values", list(drive.values()))
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return Exported((file,), payloads=tuple(mechanism.payloads))


def _listed(name: str, values: list[str] | list[float]) -> list[str]:
    """One parameter; JSON of strings and numbers is YAML too. ROS has no empty arrays."""
    return [f"    {name}: {json.dumps(values)}"] if values else []
