"""Robot files: the one beside a URDF, MJCF or SDF with what these cannot hold, and the `yaml` export.

The original robot file is kept where there is one: only `source`, `prior` and the priors of bodies and
payloads change. Else a robot file over the written model is made.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.errors import InputError
from dynid.exporters.contract import Described, EffortsOf, Exported, header_lines, named_file
from dynid.exporters.link_tree import body_offsets
from dynid.exporters.parameter_files import read_values, value_efforts
from dynid.mechanism.cable import Cable
from dynid.mechanism.frame import Frame
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.joint import FIXED_BY, Loop
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.robot_file.robot_file import SCHEMA
from dynid.statistics.estimate import Estimate

_YAML = (".yaml", ".yml")
_OVER_SOURCE = ("schema", "joints", "symbols", "description")


def export_yaml(estimate: Estimate, mechanism: Mechanism, folder: Path) -> Exported:
    """NAME.yaml: the robot file with the identified values as priors."""
    described = Described(estimate, mechanism)
    file = named_file(folder, mechanism, ".yaml")
    document = _original(mechanism)
    files = [file]
    if mechanism.sources:
        document["source"], more = _source_beside(mechanism, file)
        files += more
    _fill(document, described)
    _write(file, document, described)
    return Exported(tuple(files), lambda: _read_back(file), payloads=tuple(mechanism.payloads))


def _read_back(file: Path) -> EffortsOf:
    """Efforts of the robot file, by dynid itself: no other program reads it."""
    robot = load_robot(file)
    program = "dynid's own reader (no other program reads robot files)"
    return value_efforts(robot, Described.of(robot).values, program)


def write_sidecar(described: Described, model: Path, *, generated: bool, held: Collection[str] = ()) -> Path:
    """MODEL.yaml, a robot file over a written model: loops, motors, drive terms and all their values.

    Args:
        generated: Whether the model is a new file: its link frames are those of the joints then.
        held: Loops and couplings that the new model has itself.
    """
    mechanism = described.mechanism
    document = _over(mechanism, held) if generated else _original(mechanism)
    document["source"] = model.name
    for key in () if not generated else _OVER_SOURCE:
        document.pop(key, None)
    for body in document.get("bodies") or {}:
        document["bodies"][body].pop("prior", None)
    document["prior"] = _rest(described)
    if mechanism.drive:
        document["drive"] = {owner: list(symbols) for owner, symbols in mechanism.drive.items()}
    document.pop("payloads", None)  # they are links of the model
    file = model.with_name(f"{model.name}.yaml")
    _write(file, document, described)
    return file


def rest_values(file: Path) -> dict[str, float]:
    """Values of drive terms in a written robot file, by full name."""
    prior = (read_values(file) or {}).get("prior") or {}
    return {str(name): float(value) for name, value in prior.items()}


def _rest(described: Described) -> dict[str, float]:
    pairs = zip(described.parameters, described.chi.tolist(), strict=True)
    return {p.name: value for p, value in pairs if p.kind != "inertial"}


def _original(mechanism: Mechanism) -> Any:
    """The robot file as it is written, comments included; of a URDF or MJCF alone an empty one."""
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap

    path = Path(mechanism.file or "")
    if path.suffix.lower() in _YAML and path.is_file():
        return YAML().load(path.read_text(encoding="utf-8"))
    if not mechanism.sources:
        raise InputError(f"robot '{mechanism.name}' has no file to write again", remedy="save a robot file")
    return CommentedMap(schema=SCHEMA, name=mechanism.name)


def _source_beside(mechanism: Mechanism, file: Path) -> tuple[str, list[Path]]:
    """The source for a robot file: a URDF is copied beside it, other files stay where they are."""
    source = Path(mechanism.sources[0])
    if source.suffix.lower() == ".urdf":
        copy = file.with_name(f"{file.stem}.source.urdf")
        shutil.copyfile(source, copy)
        return copy.name, [copy]
    return os.path.relpath(source, file.parent), []


def _fill(document: Any, described: Described) -> None:
    """All values as priors."""
    mechanism = described.mechanism
    bodies = document.setdefault("bodies", {}) or {}
    document["bodies"] = bodies
    for name, body in mechanism.bodies.items():
        if body.prior:
            bodies.setdefault(name, {})
            bodies[name]["prior"] = _plain(body.prior)
    document["prior"] = _rest(described)
    if mechanism.drive:
        document["drive"] = {owner: list(symbols) for owner, symbols in mechanism.drive.items()}
    if mechanism.stribeck:
        document["stribeck"] = _plain(mechanism.stribeck)
    if mechanism.payloads:
        document["payloads"] = {}
        for name, payload in mechanism.payloads.items():
            document["payloads"][name] = {"body": payload.body, **_frame(payload.frame)}
            document["payloads"][name]["prior"] = _plain(payload.prior)
    else:
        document.pop("payloads", None)


def _over(mechanism: Mechanism, held: Collection[str]) -> dict[str, Any]:
    """A robot file over a new model: its frames are those of the links."""
    document: dict[str, Any] = {"schema": SCHEMA, "name": mechanism.name}
    document["gravity"] = [float(x) for x in mechanism.gravity]
    offsets = body_offsets(mechanism)
    sections = {
        "loops": [_loop(mechanism, loop, offsets) for loop in mechanism.loops if loop.name not in held],
        "cables": [_cable(wire, offsets) for wire in mechanism.cables if wire.name not in held],
        "couplings": [
            {"joint": coupling.joint, "of": _plain(coupling.of), "offset": float(coupling.offset)}
            for coupling in mechanism.couplings
            if coupling.joint not in held
        ],
    }
    document |= {key: listed for key, listed in sections.items() if listed}
    document["measured"] = list(mechanism.measured)
    document["actuators"] = [
        actuator.name
        if actuator.on == {actuator.name: 1.0} or actuator.name in {cable.name for cable in mechanism.cables}
        else {"name": actuator.name, "on": _plain(actuator.on)}
        for actuator in mechanism.actuators
    ]
    if mechanism.stribeck:
        document["stribeck"] = _plain(mechanism.stribeck)
    if mechanism.terms:
        document["terms"] = [
            {"name": term.name, "joint": term.joint, "expression": term.expression.text}
            for term in mechanism.terms
        ]
    if mechanism.start:
        document["start"] = _plain(mechanism.start)
    document["model"] = mechanism.model
    return document


def _loop(mechanism: Mechanism, loop: Loop, offsets: Mapping[str, Frame]) -> dict[str, Any]:
    """A loop between link frames; one that is a joint too is written as that joint."""
    joint = mechanism.joint_of_body.get(loop.body_a)
    body_a, a, fix = loop.body_a, loop.a, loop.fix
    if joint is not None and joint.name == loop.name:
        body_a, a, fix = joint.parent, joint.placement, FIXED_BY[joint.kind.value]
    ends = {
        key: {"body": body, **_frame(offsets[body] @ frame)}
        for key, body, frame in (("a", body_a, a), ("b", loop.body_b, loop.b))
    }
    if loop.length is not None:
        return {"name": loop.name, "kind": "rod", "length": float(loop.length), **ends}
    kind = next((name for name, fixed in FIXED_BY.items() if set(fixed) == set(fix)), None)
    how: dict[str, Any] = {"fix": list(fix)} if kind is None else {"kind": kind}
    return {"name": loop.name, **how, **ends}


def _cable(cable: Cable, offsets: Mapping[str, Frame]) -> dict[str, Any]:
    """A cable between link frames."""
    start, end = offsets[cable.body_from], offsets[cable.body_to]
    made: dict[str, Any] = {
        "name": cable.name,
        "from": {"body": cable.body_from, "xyz": [float(x) for x in start.R @ cable.D + start.p]},
        "to": {"body": cable.body_to, "xyz": [float(x) for x in end.R @ cable.A + end.p]},
    }
    if cable.axis is not None and cable.radius > 0.0:
        axis = [float(x) for x in start.R @ cable.axis]
        made["pulley"] = {"radius": float(cable.radius), "axis": axis}
    return made if cable.length is None else {**made, "length": float(cable.length)}


def _frame(frame: Frame) -> dict[str, Any]:
    """Origin and two axes of a frame."""
    made: dict[str, Any] = {"xyz": [float(x) for x in frame.p]}
    if not np.array_equal(frame.R, np.eye(3)):
        made |= {"x": [float(x) for x in frame.R[:, 0]], "y": [float(x) for x in frame.R[:, 1]]}
    return made


def _plain(values: Mapping[str, float]) -> dict[str, float]:
    order = [s for s in SYMBOLS if s in values] or list(values)
    return {name: float(values[name]) for name in order}


def _write(file: Path, document: Any, described: Described) -> None:
    from ruamel.yaml import YAML
    from ruamel.yaml.emitter import Emitter

    class OneLineNames(Emitter):
        """Names with blanks stay on one line: a key on two lines is no YAML."""

        def write_plain(self, text: Any, split: Any = True) -> None:
            width, self.best_width = self.best_width, self.best_width if split else len(text) + 4096
            super().write_plain(text, split)
            self.best_width = width

    yaml = YAML()
    yaml.Emitter = OneLineNames
    yaml.default_flow_style = None
    yaml.width = 110
    out = io.StringIO()
    yaml.dump(document, out)
    printable = ("".join(c if c.isprintable() else " " for c in line) for line in header_lines(described))
    header = "".join(f"# {line}\n" for line in printable)
    file.write_text(header + out.getvalue(), encoding="utf-8")
