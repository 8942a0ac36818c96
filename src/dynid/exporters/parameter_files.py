"""Identified payloads as robot controllers take them: Universal Robots and Franka.

    mass [kg], centre of mass c [m], inertia about the centre of mass [kg m^2], in axes of the carrying body

    URScript    set_target_payload(m, cog, inertia), inertia = [Ixx, Iyy, Izz, Ixy, Ixz, Iyz]
    libfranka   Robot::setLoad(load_mass, F_x_Cload, load_inertia), load_inertia column by column

The carrying body is the flange: its frame must be that of the controller's flange.

ROS 2 parameters: the values of a result as a parameter file of one node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.exporters.code.printing import parameter_names
from dynid.exporters.contract import Described, EffortsOf, Exported, header_lines, named_file
from dynid.exporters.link_tree import at_centre, own_values
from dynid.exporters.states import model_efforts, tree_states
from dynid.mechanism.inertia import SYMBOLS, from_centre_of_mass, in_parent_frame
from dynid.mechanism.mechanism import Mechanism, Payload
from dynid.mechanism.parameters import parameter_table
from dynid.statistics.estimate import Estimate

READ_HERE = "values read back, efforts by dynid's own equations"
_AXES = (
    "axes and origin: they are those of the body that carries the payload; the controller takes those of its"
    " flange"
)


def flange_values(payload: Payload) -> tuple[float, Float[Array, "3"], Float[Array, "3 3"]]:
    """Mass, centre of mass and inertia about it, in axes of the carrying body, SI."""
    mass, com, inertia = at_centre(own_values(payload))
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
        m, c, J = (
            ", ".join(np.format_float_positional(float(x), trim="0") for x in values)  # without exponents
            for values in ([mass], com, tensor)
        )
        lines += [f"def {name}():", f"  set_target_payload({m}, [{c}], [{J}])", "end"]
    file = named_file(folder, mechanism, ".payload.script")
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return _exported(file, mechanism, _script_values)


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
    return _exported(file, mechanism, _load_values)


# Payload after payload: mass, centre of mass, inertia about it.
ReadLoads = Callable[[str], list[tuple[float, Float[Array, "3"], Float[Array, "3 3"]]]]


def _exported(file: Path, mechanism: Mechanism, read: ReadLoads) -> Exported:
    def read_back() -> EffortsOf:
        loads: dict[str, float] = {}
        found = read(file.read_text(encoding="utf-8"))
        for payload, (mass, com, inertia) in zip(mechanism.payloads.values(), found, strict=True):
            place = payload.frame.inverse()
            chi = in_parent_frame(from_centre_of_mass(mass, com, inertia), place.R, place.p)
            loads |= {f"{s}_{payload.name}": x for s, x in zip(SYMBOLS, chi.tolist(), strict=True)}
        return value_efforts(mechanism, {**Described.of(mechanism).values, **loads})

    return Exported((file,), read_back, not_representable=(_AXES,), payloads=tuple(mechanism.payloads))


def _script_values(text: str) -> list[tuple[float, Float[Array, "3"], Float[Array, "3 3"]]]:
    """Arguments of `set_target_payload`, call by call."""
    found = []
    for call in re.findall(r"^  set_target_payload\((.*)\)$", text, re.MULTILINE):
        mass, com, (xx, yy, zz, xy, xz, yz) = json.loads(f"[{call}]")
        found.append((mass, np.array(com), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])))
    return found


def _load_values(text: str) -> list[tuple[float, Float[Array, "3"], Float[Array, "3 3"]]]:
    """Arguments of `setLoad`, payload by payload."""
    return [
        (load["load_mass"], np.array(load["F_x_Cload"]), np.array(load["load_inertia"]).reshape(3, 3).T)
        for load in json.loads(text)["setLoad"].values()
    ]


def _payloads(mechanism: Mechanism) -> list[Payload]:
    if not mechanism.payloads:
        raise InputError(
            "the result has no payload",
            remedy="identify it (`payloads:` of the experiment), and export it with --payload link",
        )
    return list(mechanism.payloads.values())


def export_ros2(estimate: Estimate, mechanism: Mechanism, folder: Path) -> Exported:
    """NAME.ros2.yaml: base parameters, bodies, payloads and drives below `/**: ros__parameters`."""
    described = Described(estimate, mechanism)
    file = named_file(folder, mechanism, ".ros2.yaml")
    base = {parameter.name: parameter.value for parameter in estimate.parameters}
    lines = [f"# {' '.join(line.split())}" for line in header_lines(described)]
    lines += ["/**:", "  ros__parameters:"]
    lines += _listed("joints", [joint.name for joint in mechanism.joints if joint.coordinates])
    lines += _listed("base_names", list(base)) + _listed("base_values", list(base.values()))
    bodies = {name: chi for name in mechanism.bodies if (chi := described.body(name)) is not None}
    loads = {name: own_values(load) for name, load in mechanism.payloads.items()}
    lines += _listed("body_symbols", list(SYMBOLS))
    for kind, tens in (("body", bodies), ("payload", loads)):
        lines += _listed(f"{kind}_names", list(tens))
        lines += _listed(f"{kind}_values", [float(x) for chi in tens.values() for x in chi])
    drive = {p.name: described.values[p.name] for p in described.parameters if p.kind != "inertial"}
    lines += _listed("drive_names", list(drive)) + _listed("drive_values", list(drive.values()))
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return Exported((file,), lambda: _ros2_efforts(file, mechanism), payloads=tuple(mechanism.payloads))


def _listed(name: str, values: list[str] | list[float]) -> list[str]:
    """One parameter. ROS has no empty arrays."""
    return [f"    {name}: {yaml_text(values)}"] if values else []


def _ros2_efforts(file: Path, mechanism: Mechanism) -> EffortsOf:
    """Efforts of bodies, payloads and drives as a parameter file has them."""
    given = read_values(file)["/**"]["ros__parameters"]
    values = dict(zip(given.get("drive_names", ()), given.get("drive_values", ()), strict=True))
    for kind in ("body", "payload"):
        owned = [f"{symbol}_{name}" for name in given.get(f"{kind}_names", ()) for symbol in SYMBOLS]
        values |= dict(zip(owned, given.get(f"{kind}_values", ()), strict=True))
    return value_efforts(mechanism, values)


def value_efforts(mechanism: Mechanism, values: Mapping[str, float], program: str = READ_HERE) -> EffortsOf:
    """Efforts of a robot with standard parameters by name, SI, that `program` has read back."""
    table = parameter_table(mechanism)
    chi = np.array([float(values.get(p.name, 0.0)) for p in table])

    def efforts(q: Any, dq: Any, ddq: Any) -> Any:
        return model_efforts(mechanism, table, chi, tree_states(mechanism, q, dq, ddq))

    efforts.program = program  # type: ignore[attr-defined]
    return efforts


def read_values(file: Path) -> Any:
    """The content of a YAML file of plain values."""
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))


def yaml_text(value: Any) -> str:
    """A tree of names, numbers and lists on one line: JSON, with numbers that YAML 1.1 reads as such too."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))}: {yaml_text(x)}" for key, x in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(yaml_text, value)) + "]"
    if isinstance(value, float):
        digits, mark, power = repr(float(value)).partition("e")
        return f"{digits}{'' if '.' in digits or not mark else '.0'}{mark}{power}"
    return json.dumps(value)
