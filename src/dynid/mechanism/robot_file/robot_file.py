"""Reader of the robot file (`dynid.robot/1`), alone or over a URDF, MJCF, SDF or .par; and of these alone.

Quantities of a robot file with a standard deviation: symbols, named dimensions, joint zeros.

symbols: {d3: {value: 0.28, sigma: 0.001}}
dimensions: {x_elbow_joint: {value: -0.4253, sigma: 0.0005}, "z_*": {sigma: 0.001}}
zeros: {motor1: {value: 0.002, sigma: 0.005}, motor2: -0.001}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.entry import Entry, root_entry
from dynid.common.errors import nearest
from dynid.common.strict_yaml import PathLike, read_yaml
from dynid.mechanism.description import ZERO, with_zeros
from dynid.mechanism.mechanism import Actuator, Body, Mechanism
from dynid.mechanism.parts import Parts, default_measured, mechanism_of, source_actuators, source_drive
from dynid.mechanism.robot_file.bodies import read_bodies, read_capsules, read_joints, read_payloads
from dynid.mechanism.robot_file.loops import (
    add_cables,
    can_be_joint,
    cut_loops,
    read_loops,
    start_lengths,
    winches,
)
from dynid.mechanism.robot_file.measured import chain_starts, read_measured
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.robot_file.sections import (
    check_term_names,
    read_actuators,
    read_couplings,
    read_drive,
    read_known,
    read_limits,
    read_order,
    read_start,
    read_stribeck,
    read_terms,
    read_ties,
)
from dynid.mechanism.urdf_file import urdf_parts
from dynid.mechanism.urdf_tree import UrdfModel, urdf_model
from dynid.mechanism.variant import own_symbols, with_friction
from dynid.mechanism.xml_elements import read_elements

if TYPE_CHECKING:
    from dynid.mechanism.mjcf.tree import MjcfModel
    from dynid.mechanism.par_file import ParModel
    from dynid.mechanism.sdf_tree import SdfModel

    Source = UrdfModel | MjcfModel | SdfModel | ParModel

SCHEMA = "dynid.robot/1"
_KEYS = (
    "schema",
    "name",
    "description",
    "source",
    "gravity",
    "symbols",
    "dimensions",
    "zeros",
    "joints",
    "loops",
    "cables",
    "couplings",
    "measured",
    "actuators",
    "drive",
    "stribeck",
    "bodies",
    "known",
    "prior",
    "terms",
    "start",
    "free",
    "ties",
    "payloads",
    "order",
    "limits",
    "capsules",
    "model",
)
SUFFIXES = (".urdf", ".xml", ".mjcf", ".sdf", ".par")


def load_robotfile(file: PathLike) -> Mechanism:
    """The mechanism that a robot file describes; errors are reported with their line."""
    root = root_entry(read_yaml(file), "robot")
    fields = root.fields(_KEYS)
    source = None
    if "source" in fields:
        path = Path(file).parent / fields["source"].text()
        if path.suffix.lower() not in SUFFIXES:
            raise fields["source"].error(
                f"'{path.name}' is not a URDF, MJCF, SDF or .par file",
                "give a .urdf, .xml, .mjcf, .sdf or .par; run xacro first on a .xacro",
            )
        if not path.is_file():
            raise fields["source"].error(f"'{path}' does not exist", "the path is relative to this file")
        source = read_source(path)
    elif "joints" not in fields:
        raise root.error("'joints' is missing", "list the joints, or give 'source: arm.urdf'")
    robot = build(root, source, {})
    return robot if source is None else replace(robot, sources=source_files(source))


def build(root: Entry, source: Source | None, values: Mapping[str, float]) -> Mechanism:
    """The mechanism as a function of what was read and of the values of named dimensions."""
    fields = root.fields(_KEYS)
    if "schema" in fields:
        fields["schema"].choice((SCHEMA,))
    scope = Scope(values)
    if "dimensions" in fields:
        scope.values = {**given_dimensions(fields["dimensions"], scope), **values}
    if "symbols" in fields:
        scope.declare(fields["symbols"])
    parts = _tree(root, fields, scope, source)
    actuators = _actuators(root, fields, scope, parts)
    whole = _with_measured(fields, scope, parts, actuators)
    drive = _drive(fields, parts, actuators, over_source=source is not None)
    robot = Mechanism(
        name=parts.name,
        gravity=_gravity(fields, scope, parts),
        joints=tuple(whole.joints),
        bodies=whole.bodies,
        actuators=actuators,
        measured=whole.measured,
        measured_sigma=whole.measured_sigma,
        poses=whole.poses,
        drive={owner: kept for owner, symbols in drive.items() if (kept := own_symbols(symbols))},
        stribeck=read_stribeck(fields["stribeck"], scope, drive) if "stribeck" in fields else {},
        couplings=parts.couplings,
        loops=whole.loops,
        cables=parts.cables,
        swivels=whole.swivels,
        terms=read_terms(fields["terms"], scope, parts.joints) if "terms" in fields else (),
        payloads=read_payloads(fields["payloads"], scope, parts.bodies) if "payloads" in fields else {},
        limits=read_limits(fields.get("limits"), scope, parts, [a.name for a in actuators]),
        capsules=read_capsules(fields["capsules"], scope, ("base", *parts.bodies))
        if "capsules" in fields
        else parts.capsules,
        meshes={} if "capsules" in fields else parts.meshes,
        start=parts.start,
        prior=parts.prior,
        model=_model(fields["model"]) if "model" in fields else "inverse",
        geometry=scope.geometry,
        angles=scope.angles,
        rebuild=partial(build, root, source) if scope.geometry else None,
        file=root.file,
    )
    robot = with_friction(robot, drive)
    robot = replace(robot, **_named_later(fields, scope, robot), uncertain=read_uncertain(fields, scope))
    robot = replace(robot, notices=scope.finish())
    return read_zeros(fields["zeros"], scope, robot) if "zeros" in fields else robot


def _model(entry: Entry) -> str:
    from dynid.projection.model import model_names  # the registry of models, whose names a robot may have

    return entry.choice(model_names())


def _tree(root: Entry, fields: Mapping[str, Entry], scope: Scope, source: Source | None) -> Parts:
    """Joints, bodies and couplings of the source and of the file together."""
    stem = Path(root.file or "robot").stem
    parts = source_parts(source, scope) if source else Parts(stem)
    parts.name = fields["name"].text() if "name" in fields else parts.name
    if "joints" in fields:
        parts.joints += read_joints(fields["joints"], scope, parts.joints, parts.root)
    for joint in parts.joints:
        parts.bodies.setdefault(joint.child, Body(joint.child))
    if "loops" in fields:
        _close(fields, scope, parts)
    if "cables" in fields:
        add_cables(fields["cables"], scope, parts)
    if "bodies" in fields:
        parts.bodies = read_bodies(fields["bodies"], scope, parts.bodies)
    if "couplings" in fields:
        parts.couplings = read_couplings(fields["couplings"], scope, parts.joints, parts.couplings)
    return parts


def _close(fields: Mapping[str, Entry], scope: Scope, parts: Parts) -> None:
    """Add the loops, and the joints that some of them are."""
    taken = {name for joint in parts.joints for name in (joint.name, *joint.positions, *joint.coordinates)}
    taken |= {loop.name for loop in parts.loops}
    loops = read_loops(fields["loops"], scope, parts.bodies, taken=taken, root=parts.root)
    cut = cut_loops(loops, fields, parts.bodies)
    parts.loops += cut.loops
    parts.joints += cut.joints
    parts.bodies |= {joint.child: Body(joint.child, parameters=()) for joint in cut.joints}


def _actuators(root: Entry, fields: Mapping[str, Entry], scope: Scope, parts: Parts) -> tuple[Actuator, ...]:
    if "actuators" in fields:
        replaced = {motor.name for motor in parts.actuators} - {
            c for j in parts.joints for c in j.coordinates
        }
        parts.limits = {name: bounds for name, bounds in parts.limits.items() if name not in replaced}
        listed = read_actuators(fields["actuators"], scope, parts.joints)
        winch = {motor.name: motor for motor in winches(parts)}
        return tuple(
            winch.get(motor.name, motor) if motor.on == {motor.name: 1.0} else motor for motor in listed
        )
    motors = winches(parts)
    if motors and not parts.actuators:
        return motors
    return source_actuators(parts, root.error)


def _gravity(fields: Mapping[str, Entry], scope: Scope, parts: Parts) -> Any:
    return np.array(fields["gravity"].vector(scope.number) if "gravity" in fields else parts.gravity)


def _with_measured(
    fields: Mapping[str, Entry], scope: Scope, parts: Parts, actuators: tuple[Actuator, ...]
) -> Parts:
    if "measured" in fields:
        return read_measured(fields["measured"], scope, parts)
    closed = bool(parts.loops or parts.cables)
    joints = default_measured(parts.joints, parts.couplings, actuators, closed=closed)
    return replace(parts, measured=joints)


def _drive(
    fields: Mapping[str, Entry], parts: Parts, actuators: tuple[Actuator, ...], over_source: bool
) -> dict[str, tuple[str, ...]]:
    if "drive" not in fields:
        of_source = bool(parts.actuators) and "actuators" not in fields
        return source_drive(parts, actuators, from_source=of_source) if over_source else {}
    coordinates = [name for joint in parts.joints for name in joint.coordinates]
    # A loop that could be a joint is an owner too: `none` switches off what a glob would give it.
    cuts = [loop.name for loop in parts.loops if can_be_joint(loop)]
    owners = dict.fromkeys([*coordinates, *(actuator.name for actuator in actuators), *cuts])
    return read_drive(fields["drive"], tuple(owners))


def _named_later(fields: Mapping[str, Entry], scope: Scope, robot: Mechanism) -> dict[str, Any]:
    """Sections that refer to names of the finished mechanism and its parameters."""
    later: dict[str, Any] = {}
    if "terms" in fields:
        check_term_names(fields["terms"], robot)
    if "ties" in fields:
        later["ties"] = read_ties(fields["ties"], robot)
    if "known" in fields:
        later["known"] = read_known(fields["known"], scope, robot)
    if "prior" in fields:
        later["prior"] = {**robot.prior, **read_known(fields["prior"], scope, robot)}
    if "order" in fields:
        later["order"] = read_order(fields["order"], robot)
    if "start" in fields:
        later["start"] = {**robot.start, **read_start(fields["start"], scope, robot)}
    if robot.poses:
        start = later.get("start", robot.start)
        later["start"] = {**chain_starts(robot, start), **start}
    if robot.cables:
        start = later.get("start", robot.start)
        later["start"] = {**start_lengths(robot, start), **start}
    if "free" in fields:
        valid = {name for joint in robot.joints for name in joint.positions}
        short = {name.rsplit("_", 1)[-1] for name in valid}
        for item in fields["free"].items():
            if item.text() not in short:
                item.known(item.text(), sorted(valid), "coordinate")
        later["free"] = fields["free"].texts()
    return later


def read_source(file: PathLike) -> Source:
    """Read and check the tree of a URDF, MJCF, SDF or .par file."""
    if Path(file).suffix.lower() == ".par":
        from dynid.mechanism.par_file import read_par

        return read_par(file)
    root = read_elements(file)
    if root.tag == "mujoco":
        from dynid.mechanism.mjcf.tree import mjcf_model

        return mjcf_model(root)
    if root.tag == "sdf":
        from dynid.mechanism.sdf_tree import sdf_model

        return sdf_model(root)
    return urdf_model(root)


def source_parts(source: Source, scope: Scope) -> Parts:
    """Content of the source, with its dimensions in `scope`."""
    if isinstance(source, UrdfModel):
        return urdf_parts(source, scope)
    # Few robots have one of the other formats: their readers are loaded with them.
    from dynid.mechanism.mjcf.mjcf import mjcf_parts
    from dynid.mechanism.mjcf.tree import MjcfModel
    from dynid.mechanism.par_file import ParModel, par_parts
    from dynid.mechanism.sdf_file import sdf_parts

    if isinstance(source, MjcfModel):
        return mjcf_parts(source, scope)
    return par_parts(source, scope) if isinstance(source, ParModel) else sdf_parts(source, scope)


def source_files(source: Source) -> tuple[str, ...]:
    """The file of a source, and those that it includes."""
    if isinstance(source, UrdfModel):
        return (source.file,)
    from dynid.mechanism.mjcf.tree import MjcfModel

    inside = (element.file for element in source.root.walk()) if isinstance(source, MjcfModel) else ()
    return tuple(dict.fromkeys([source.file, *inside]))


def build_source(source: Source, values: Mapping[str, float]) -> Mechanism:
    """The mechanism of a source alone, as a function of the values of named dimensions."""
    scope = Scope(values)
    return mechanism_of(source_parts(source, scope), scope, source.file, partial(build_source, source))


def load_source(file: PathLike) -> Mechanism:
    """The mechanism of a URDF, MJCF, SDF or .par file alone."""
    source = read_source(file)
    return replace(build_source(source, {}), sources=source_files(source))


_WILD = "*?["


def given_dimensions(entry: Entry, scope: Scope) -> dict[str, float]:
    """Values of `dimensions:`, which replace those of the description below."""
    sizes = {}
    for name, item in entry.mapping().items():
        value = _fields(item).get("value") if item.is_mapping else item
        if value is None:
            continue
        if any(sign in name for sign in _WILD):
            raise item.error(f"'{name}' stands for several dimensions", "give values by full name")
        sizes[name] = scope.number(value)
    return sizes


def read_zeros(entry: Entry, scope: Scope, robot: Mechanism) -> Mechanism:
    """The robot with the joint zeros of `zeros:`."""
    zeros = {}
    for name, item in entry.mapping().items():
        if name not in robot.measured_positions:
            raise item.error(
                f"'{name}' is not a measured joint" + nearest(name, robot.measured_positions),
                "zeros are those of sensors: name a measured joint",
            )
        value = _fields(item).get("value") if item.is_mapping else item
        zeros[name] = 0.0 if value is None else scope.number(value)
    return with_zeros(robot, zeros)


_SIGMA = "give a standard deviation in m or rad"


def read_uncertain(fields: Mapping[str, Entry], scope: Scope) -> dict[str, float]:
    """Standard deviations of symbols, dimensions and zeros, by name, in [m] or [rad]."""
    sigmas: dict[str, float] = {}
    for name, item in fields["symbols"].mapping().items() if "symbols" in fields else ():
        if item.is_mapping and "sigma" in item.mapping():
            sigmas[name] = scope.positive(item.mapping()["sigma"], "sigma", _SIGMA)
    for pattern, item in fields["dimensions"].mapping().items() if "dimensions" in fields else ():
        matched = [name for name in scope.geometry if fnmatchcase(name, pattern)]
        if not matched:
            raise item.error(
                f"no dimension '{pattern}'" + nearest(pattern, scope.geometry),
                "dimensions are symbols and bare lengths other than zero: "
                + (", ".join(list(scope.geometry)[:12]) or "there is none"),
            )
        if item.is_mapping and "sigma" in _fields(item):
            sigmas |= dict.fromkeys(matched, scope.positive(_fields(item)["sigma"], "sigma", _SIGMA))
    for name, item in fields["zeros"].mapping().items() if "zeros" in fields else ():
        if item.is_mapping and "sigma" in _fields(item):
            sigmas[f"{ZERO}{name}"] = scope.positive(_fields(item)["sigma"], "sigma", _SIGMA)
    return sigmas


def _fields(entry: Entry) -> dict[str, Entry]:
    return entry.fields(("value", "sigma"))
