"""MJCF: the original file with its inertials and joint values changed, or a new file.

    <inertial>  mass, centre of mass, principal moments and axes (or the full tensor where the file has it)
    <joint>     armature Ia, damping Fv, frictionloss Fs
    <equality>  loops by pairs of sites, couplings by joint; <tendon> rods, cables, motors on several joints

Attributes of default classes stay; a joint that differs from its class gets its own value.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.exporters.actuators import actuator_models
from dynid.exporters.contract import Described, Exported, header_lines, named_file, static_bodies
from dynid.exporters.link_tree import DriveSplit, at_centre, link_tree, rest_sentences, split_drives
from dynid.exporters.mjcf_new import TERMS, generated, inertial_line, principal
from dynid.exporters.readers import Loaded, available, exported, load_dynid, load_mujoco
from dynid.exporters.sidecar import write_sidecar
from dynid.exporters.xml_text import SAME, XmlText, alike, attribute, comment, number, numbers
from dynid.mechanism.frame import quaternion_of
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.joint import unique
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.mjcf.file import ORIENTATIONS, entries, sections
from dynid.mechanism.mjcf.joint import spring_damper
from dynid.mechanism.mjcf.pose import read_rotation
from dynid.mechanism.mjcf.tree import MjcfModel, mjcf_model
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.xml_elements import Element, read_elements
from dynid.statistics.estimate import Estimate

_FRICTION = (
    "friction near rest: MuJoCo's frictionloss is a soft constraint, which gives less than Fs below some"
    " speed (compared here as frictionloss sign(dq))"
)


def export_mjcf(estimate: Estimate, mechanism: Mechanism, folder: Path) -> Exported:
    """NAME.xml, and NAME.xml.yaml with what an MJCF cannot hold."""
    described = Described(estimate, mechanism)
    source = described.source(".xml", ".mjcf")
    file = named_file(folder, mechanism, ".xml")
    links = link_tree(mechanism)
    groups = [link.coordinates for link in links if len(link.coordinates) == 1]
    split = split_drives(mechanism, described.parameters, described.chi, tuple(TERMS), groups)
    missing = rest_sentences(described.parameters, split, "MJCF has no such attribute")
    files: list[Path] = [file]
    ids: dict[str, int] = {}
    held: set[str] = set()
    if source is None:
        text, more, held = generated(described, links, split)
        missing += more
        file.write_text(text, encoding="utf-8")
    else:
        model = mjcf_model(read_elements(source))
        edit = _Edit(described, model, split)
        files += edit.write(file)
        missing += edit.notes
        described.difference(source, file)
        missing += described.rounded_angles()
        names = [joint.name for body in model.bodies for joint in body.joints]
        ids = {name: k for k, name in enumerate(names)}
    missing += _law_sentences(described)
    side = write_sidecar(described, file, generated=source is None, held=held)
    assets = None if source is None else source.parent
    if any("Fs" in terms for terms in split.joints.values()):
        missing.append(_FRICTION + _friction_figure(file, assets))
    load = partial(_load, file, mechanism, ids, assets)
    return exported(files, side, load, mechanism, split, missing)


def _law_sentences(described: Described) -> list[str]:
    """What a PD law has and an actuator of MuJoCo has not."""
    models = [model for model in actuator_models(described) if model.stiffness is not None]
    lost = {
        "delay of the command": [model.motor for model in models if model.delay[0] > 0.0],
        "encoder bias": [model.motor for model in models if model.bias != 0.0],
        "fall of the largest effort with the speed": [m.motor for m in models if m.no_load is not None],
    }
    return [
        f"{what} of {', '.join(motors)}: no attribute of an actuator (`--to actuators` writes the values)"
        for what, motors in lost.items()
        if motors
    ]


def _friction_figure(file: Path, assets: Path | None) -> str:
    """The speeds below which MuJoCo's friction is smaller, if MuJoCo is installed."""
    if not available("mujoco"):
        return ""
    from dynid.exporters.replay import friction_speeds

    speeds = friction_speeds(file, assets)
    if not speeds:
        return ""
    name = max(speeds, key=lambda joint: speeds[joint])
    return f"; full friction above {min(speeds.values()):.2g} to {speeds[name]:.2g} rad/s or m/s ({name})"


def _load(file: Path, mechanism: Mechanism, ids: Mapping[str, int], assets: Path | None) -> Loaded:
    """By MuJoCo; without it by dynid itself."""
    if available("mujoco"):
        return load_mujoco(file, mechanism, ids, assets)
    return load_dynid(file, mechanism)


class _Edit:
    """Changes of an MJCF and of the files that it includes."""

    def __init__(self, described: Described, model: MjcfModel, split: DriveSplit) -> None:
        self.described, self.model, self.split = described, model, split
        self.notes: list[str] = []
        paths = dict.fromkeys([model.file, *(element.file for element in model.root.walk())])
        self.texts = {path: XmlText.read(Path(path)) for path in paths}
        self._bodies()
        self._joints()
        self._added()
        self._servos()
        self._payloads()
        self._settings()
        self.texts[model.file].header(comment(header_lines(described)))

    def write(self, file: Path) -> list[Path]:
        """Write the model, and beside it the files that it includes; those are returned."""
        file.write_bytes(self.texts[self.model.file].result())
        folder, more = Path(self.model.file).parent.resolve(), []
        for path, text in self.texts.items():
            if path != self.model.file:
                copy = file.parent / Path(path).resolve().relative_to(folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(text.result())
                more.append(copy)
        return more

    def _bodies(self) -> None:
        mechanism, static = self.described.mechanism, static_bodies(self.described.mechanism)
        for body in self.model.bodies:
            if body.name not in mechanism.bodies or body.name in static:
                continue
            chi = self.described.body(body.name)
            if chi is None:
                continue
            if body.inertials:
                self._inertial(body.inertials[0], chi)
            else:
                element = body.placed.element
                self.texts[element.file].insert(element.offset, [inertial_line(chi)], first=True)

    def _inertial(self, element: Element, chi: Float[Array, "10"]) -> None:
        text = self.texts[element.file]
        mass, com, inertia = at_centre(chi)
        owner = "inertial"
        for key, new in (("pos", com), ("mass", np.array([mass]))):
            before = element.numbers(key, owner, range(1, 4))
            if before is None or not alike([x for x, _ in before], new):
                text.set(element.offset, key, numbers(new))
        if "fullinertia" in element.attributes:
            order = (0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)
            new = np.array([inertia[i, j] for i, j in order])
            before = element.numbers("fullinertia", owner, range(6, 7)) or []
            if not alike([x for x, _ in before], new):
                text.set(element.offset, "fullinertia", numbers(new))
            return
        R = read_rotation(element, owner, self.model.settings, Scope({}))
        turned = R.T @ inertia @ R
        moments, axes = np.diag(turned), np.eye(3)
        if np.abs(turned - np.diag(moments)).max() > SAME * np.abs(turned).max():
            moments, axes = principal(turned)
            for key in ORIENTATIONS:
                if key in element.attributes and key != "quat":
                    text.remove(element.offset, key)
            text.set(element.offset, "quat", numbers(quaternion_of(R @ axes)))
        given = element.numbers("diaginertia", owner) or []
        if not given or not alike([x for x, _ in given], moments):
            text.set(element.offset, "diaginertia", numbers(moments))

    def _joints(self) -> None:
        zeroed: dict[str, list[str]] = {}
        springs: list[str] = []
        for body in self.model.bodies:
            for joint in body.joints:
                element = joint.placed.element
                if element.tag == "freejoint":
                    continue
                if spring_damper(element, joint.name):
                    self.texts[element.file].set(element.offset, "springdamper", "0 0")
                    springs.append(joint.name)
                terms = self.split.joints.get(joint.name, {})
                for symbol, key in TERMS.items():
                    value = terms.get(symbol, 0.0)
                    before = element.numbers(key, "joint", range(1, 10))
                    if [x for x, _ in before or [(0.0, "")]] == [value]:
                        continue
                    self.texts[element.file].set(element.offset, key, number(value))
                    if value == 0.0:
                        zeroed.setdefault(key, []).append(joint.name)
        self.notes += [
            f"{key} of {', '.join(names)} is set to 0: the estimate has no such term there"
            for key, names in zeroed.items()
        ]
        if springs:
            self.notes.append(
                f"springdamper of {', '.join(springs)} is set to 0 0: MuJoCo would replace the written"
                " damping by it (give a spring as stiffness)"
            )

    def _added(self) -> None:
        """Inertia and damping of actuators and tendons, which MuJoCo adds to those of the joints."""
        defaults, zeroed = self.model.defaults, []
        for section, kind, keys in (
            ("actuator", None, ("armature", "damping")),
            ("tendon", "tendon", ("armature",)),
        ):
            for element in entries(self.model.root, section):
                applied = defaults.applied(element, kind=kind)
                for key in keys:
                    before = applied.numbers(key, section, range(1, 10)) or []
                    if any(value != 0.0 for value, _ in before):
                        self.texts[element.file].set(element.offset, key, "0")
                        zeroed.append(f"{key} of {section} {applied.attributes.get('name', element.tag)}")
        if zeroed:
            self.notes.append(
                f"set to 0: {', '.join(zeroed)} (the estimate has such terms at its joints and motors, and"
                " MuJoCo adds both)"
            )

    def _servos(self) -> None:
        """PD laws in position actuators that the file has."""
        left = {m.joint: m for m in actuator_models(self.described) if m.stiffness is not None}
        for element in entries(self.model.root, "actuator"):
            law = left.get(element.attributes.get("joint", ""))
            if element.tag != "position" or law is None:
                continue
            del left[law.joint]
            values = {"kp": number(law.stiffness or 0.0), "kv": number(law.damping or 0.0)}
            if law.effort_limit is not None:
                values["forcerange"] = numbers((-law.effort_limit, law.effort_limit))
            for key, value in values.items():
                self.texts[element.file].set(element.offset, key, value)
        if left:
            self.notes.append(
                f"PD law of {', '.join(left)}: the file has no position actuator there (`--to actuators`"
                " writes them)"
            )

    def _payloads(self) -> None:
        written = {body.name: body.placed.element for body in self.model.bodies}
        for payload in self.described.mechanism.payloads.values():
            chi = np.array([payload.prior.get(symbol, 0.0) for symbol in SYMBOLS])
            name = unique(payload.name, written)
            element = written[payload.body]
            place = f'pos="{numbers(payload.frame.p)}" quat="{numbers(quaternion_of(payload.frame.R))}"'
            lines = [f'<body name="{attribute(name)}" {place}>', f"  {inertial_line(chi)}", "</body>"]
            self.texts[element.file].insert(element.offset, lines, first=False)

    def _settings(self) -> None:
        """Settings of the compiler that would change the written values."""
        values = [self.described.body(name) for name in self.described.mechanism.bodies]
        masses = [float(chi[9]) for chi in values if chi is not None]
        for element in sections(self.model.root, "compiler"):
            for key, bad, new in (
                ("inertiafromgeom", element.attributes.get("inertiafromgeom") == "true", "auto"),
                ("settotalmass", element.number("settotalmass", -1.0) > 0.0, "-1"),
                ("boundmass", element.number("boundmass", 0.0) > min(masses, default=0.0), "0"),
                ("boundinertia", element.number("boundinertia", 0.0) > 0.0, "0"),
            ):
                if bad:
                    self.texts[element.file].set(element.offset, key, new)
                    note = f"compiler {key} is set to {new}: it would change the written inertials"
                    self.notes.append(note)
