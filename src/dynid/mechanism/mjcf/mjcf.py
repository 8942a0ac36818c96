"""Reader of MJCF files: bodies, joints, inertials as priors, equalities as loops and couplings.

Values missing in a model stay unknown: none is guessed, and no mesh is opened here.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.mechanism.collision_shapes import Shape, joined, mjcf_capsule, of_kind, takes_part_in_contacts
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Body, Capsule
from dynid.mechanism.mesh_file import MeshShape
from dynid.mechanism.mjcf.assets import mesh_assets, mesh_shape
from dynid.mechanism.mjcf.equality import read_actuators, read_equalities, rod_line
from dynid.mechanism.mjcf.file import entries, sections
from dynid.mechanism.mjcf.joint import Placer, Tree, read_limits, read_tree, spring_damper
from dynid.mechanism.mjcf.pose import read_pose
from dynid.mechanism.mjcf.tree import WORLD, MjcfBody, MjcfModel, Placed
from dynid.mechanism.parts import GRAVITY, Parts, coordinate_clash
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.urdf_file import absent_notices, excluded_notice, ten_about_origin
from dynid.mechanism.xml_elements import Element

_PRIORS = {"Ia": "armature", "Fv": "damping", "Fs": "frictionloss"}
_DIAGONAL, _FULL = range(3, 4), range(6, 7)


def mjcf_parts(model: MjcfModel, scope: Scope) -> Parts:
    """Joints, bodies, loops, couplings, motors and limits, with the dimensions in `scope`."""
    scope.notices += model.notices
    placer = Placer(model, scope)
    tree = read_tree(model, placer)
    clash = coordinate_clash(tree.joints)
    if clash:
        raise InputError(
            "coordinate '{}' belongs to joints '{}' and '{}'".format(*clash),
            file=model.file,
            place=f"robot '{model.name}'",
            remedy="rename one of the joints",
        )
    bodies = read_bodies(model, tree, scope)
    motors = read_actuators(model, tree.joints, scope)
    driven = {name for actuator in motors.actuators for name in actuator.on}
    equalities = read_equalities(model, tree, placer, driven)
    limits = read_limits(model, tree)
    for name, values in motors.limits.items():
        limits[name] = {**values, **limits.get(name, {})}
    scope.notices += _unused_values(model, tree)
    meshes = mesh_assets(model.root, model.defaults)
    shapes = joined((body.name, _shape(geom, model, meshes)) for body in model.bodies for geom in body.geoms)
    return Parts(
        name=model.name,
        joints=tree.joints,
        bodies=bodies,
        couplings=equalities.couplings,
        loops=equalities.loops,
        limits=dict(limits),
        root=WORLD,
        gravity=_gravity(model.root),
        actuators=tuple(motors.actuators),
        start=_start(model, tree, scope) if equalities.loops else {},
        prior=_drive_priors(tree),
        capsules=of_kind(shapes, Capsule),
        meshes=of_kind(shapes, MeshShape),
    )


def _shape(geom: Placed, model: MjcfModel, meshes: Mapping[str, Element]) -> Shape | None:
    """The shape of a geom, in the frame of its body; None if it is only seen, or not readable."""
    if not takes_part_in_contacts(geom.element):
        return None
    placer = Placer(model, Scope({}))  # shapes have no named dimensions
    try:
        place = placer.around(geom) if "fromto" in geom.element.attributes else placer.pose(geom, "geom")
    except InputError:
        return None
    return mesh_shape(geom.element, place, meshes) or mjcf_capsule(geom.element, place)


def _drive_priors(tree: Tree) -> dict[str, float]:
    """Armature, damping and friction loss of joints, where they are given, as Ia, Fv and Fs.

    A missing value, which MuJoCo takes as zero, is no information about the robot.
    """
    priors: dict[str, float] = {}
    for joint in tree.joints:
        element = tree.elements.get(joint.name)
        for symbol, key in _PRIORS.items():
            # More than one number is a polynomial, which a single parameter cannot represent.
            owner = f"joint '{joint.name}'"
            numbers = element.numbers(key, owner, range(1, 10)) if element else None
            replaced = key == "damping" and element is not None and spring_damper(element, owner)
            if numbers and len(numbers) == 1 and not replaced:
                priors |= {f"{symbol}_{name}": numbers[0][0] for name in joint.coordinates}
    return priors


def _gravity(root: Element) -> tuple[float, ...]:
    """Gravity of <option>, zero where a flag switches it off, in [m/s^2]."""
    gravity: tuple[float, ...] = GRAVITY
    on = True
    for option in sections(root, "option"):
        numbers = option.numbers("gravity", "<option>")
        gravity = tuple(value for value, _ in numbers) if numbers else gravity
        flags = [element for element in option.children if element.tag == "flag"]
        on = on and not any(element.attributes.get("gravity") == "disable" for element in flags)
    return gravity if on else (0.0, 0.0, 0.0)


def _start(model: MjcfModel, tree: Tree, scope: Scope) -> dict[str, float]:
    """Where the loops are first closed: key frame `home`, else the first one, else qpos0."""
    keys = [key for key in entries(model.root, "keyframe") if "qpos" in key.attributes]
    keys.sort(key=lambda key: key.attributes.get("name") != "home")
    if not keys:
        return tree.reference
    name = keys[0].attributes.get("name", "0")
    owner, count = f"key '{name}'", len(tree.reference)
    numbers = keys[0].numbers("qpos", owner, range(count, count + 1)) or []
    scope.notices.append(notice("start-from-key", place=keys[0].place, key=owner))
    return dict(zip(tree.reference, (value for value, _ in numbers), strict=True))


def _unused_values(model: MjcfModel, tree: Tree) -> list[Notice]:
    """Notices about effects that MuJoCo adds to the efforts and that are not read here."""
    ignored: list[str] = []
    for name, element in tree.elements.items():
        owner = f"joint '{name}'"
        given = ["springdamper"] if spring_damper(element, owner) else ["stiffness"]
        ignored += [
            f"{key} {element.attributes[key]} of {name}" for key in given if _counts(element, key, owner)
        ]
    for element in map(model.defaults.applied, entries(model.root, "actuator")):
        name = element.attributes.get("name", element.tag)
        given = [key for key in ("armature", "damping") if _counts(element, key, f"actuator '{name}'")]
        ignored += [f"{key} {element.attributes[key]} of actuator {name}" for key in given]
    for element in (model.defaults.applied(entry, kind="tendon") for entry in entries(model.root, "tendon")):
        name = element.attributes.get("name", element.tag)
        if _counts(element, "armature", f"tendon '{name}'"):
            ignored.append(f"armature {element.attributes['armature']} of tendon {name}")
    notices = []
    if ignored:
        shown = "; ".join(ignored[:8]) + (f"; and {len(ignored) - 8} more" if len(ignored) > 8 else "")
        notices.append(notice("unused-values", shown=shown))
    carried = [
        body.name for body in model.bodies if _counts(body.placed.element, "gravcomp", f"body '{body.name}'")
    ]
    if carried:
        notices.append(notice("unused-gravcomp", names=", ".join(carried)))
    return notices + _unused_tendons(model)


def _unused_tendons(model: MjcfModel) -> list[Notice]:
    """Tendons that are no rods and that no actuator pulls: springs, dampers and limits are not read."""
    pulled = {element.attributes.get("tendon") for element in entries(model.root, "actuator")}
    rods = [element for element in entries(model.root, "equality") if rod_line(model, element)]
    pulled |= {element.attributes.get("tendon1") for element in rods}
    names = [element.attributes.get("name", "(no name)") for element in entries(model.root, "tendon")]
    idle = [name for name in names if name not in pulled]
    if not idle:
        return []
    return [notice("ignored-tendon", names=", ".join(idle[:8]) + (", ..." if idle[8:] else ""))]


def _counts(element: Element, key: str, owner: str) -> bool:
    """Whether an attribute is present and not zero."""
    numbers = element.numbers(key, owner, range(1, 10))
    return any(value != 0.0 for value, _ in numbers or ())


# Inertials of an MJCF as priors, treated as those of a URDF: what is missing stays unknown.
#
# MuJoCo computes the inertia of a body without <inertial> from its shapes and a density. That is a
# guess, not information about the robot, and is not done here.


def read_bodies(model: MjcfModel, tree: Tree, scope: Scope) -> dict[str, Body]:
    """Every body of the tree in joint order, with its prior; links between joints have no parameters."""
    written = {body.name: body for body in model.bodies}
    frames: list[str] = []
    missing: list[str] = []
    shaped: list[str] = []
    bodies: dict[str, Body] = {}
    for joint in tree.joints:
        name = joint.child
        if name in tree.links:
            bodies[name] = Body(name, parameters=())
            continue
        body = written[name]
        chi, fault = _ten_parameters(body, model, scope)
        if fault:
            scope.notices.append(excluded_notice(body.inertials[0], f"body '{name}'", fault))
        if not body.joints and not fault and _weighs_nothing(body, chi, model):
            bodies[name] = Body(name, parameters=())
            frames.append(name)
            continue
        prior = {} if fault or chi is None else dict(zip(SYMBOLS, map(float, chi), strict=True))
        bodies[name] = Body(name, prior=prior)
        if chi is None:
            (shaped if body.geoms and model.settings.inertiafromgeom != "false" else missing).append(name)
    scope.notices += absent_notices(frames, missing, "body")
    if shaped:
        scope.notices.append(notice("inertia-from-geom", names=", ".join(shaped)))
    if model.settings.total_mass > 0.0:
        scope.notices.append(notice("unscaled-prior", mass=model.settings.total_mass))
    return bodies


def _ten_parameters(body: MjcfBody, model: MjcfModel, scope: Scope) -> tuple[Float[Array, "10"] | None, str]:
    """Ten parameters about the body's origin (None when not given), and why they are impossible."""
    if len(body.inertials) > 1:
        raise body.inertials[1].error(f"a second <inertial> in body '{body.name}'", "keep one")
    if not body.inertials or model.settings.inertiafromgeom == "true":
        return None, ""
    element, owner = body.inertials[0], f"body '{body.name}'"
    mass = element.number("mass", owner=owner)
    place = read_pose(element, owner, model.settings, scope)
    moments = _moments(element, owner)
    return (None, "") if moments is None else ten_about_origin(mass, moments, place)


def _moments(element: Element, owner: str) -> tuple[float, ...] | None:
    """XX XY XZ YY YZ ZZ about the centre of mass in the inertial's axes, in [kg m^2]; None when not given."""
    full = element.numbers("fullinertia", owner, _FULL)
    diagonal = element.numbers("diaginertia", owner, _DIAGONAL)
    if full and diagonal:
        raise element.error(f"{owner} has both diaginertia and fullinertia", "keep one")
    if diagonal:
        xx, yy, zz = (value for value, _ in diagonal)
        return xx, 0.0, 0.0, yy, 0.0, zz
    if not full:
        return None
    xx, yy, zz, xy, xz, yz = (value for value, _ in full)
    return xx, xy, xz, yy, yz, zz


def _weighs_nothing(body: MjcfBody, chi: Float[Array, "10"] | None, model: MjcfModel) -> bool:
    """Whether a body without joint is a frame only: no mass given, and no shape that would have one."""
    if chi is not None:
        return not np.any(chi)
    if body.inertials:
        return False
    return model.settings.inertiafromgeom == "false" or not any(
        _has_mass(geom.element) for geom in body.geoms
    )


def _has_mass(geom: Element) -> bool:
    owner = "geom"
    if geom.attributes.get("type") == "plane":
        return False
    density = geom.number("density", 1000.0, owner)
    return geom.number("mass", density, owner) != 0.0
