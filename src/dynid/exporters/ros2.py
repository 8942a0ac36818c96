"""ROS 2 parameters: the values of a result as a parameter file of one node."""

from __future__ import annotations

import json
from pathlib import Path

from dynid.exporters.contract import Exported
from dynid.exporters.described import Described, header_lines, named_file
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.statistics.estimate import Estimate


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
