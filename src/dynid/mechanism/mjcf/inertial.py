"""Inertials of an MJCF as priors, treated as those of a URDF: what is missing stays unknown.

MuJoCo computes the inertia of a body without <inertial> from its shapes and a density. That is a
guess, not information about the robot, and is not done here.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.notices import Notice, notice
from dynid.mechanism.inertia import SYMBOLS, in_parent_frame, pack
from dynid.mechanism.mechanism import Body
from dynid.mechanism.mjcf.joint import Tree
from dynid.mechanism.mjcf.pose import read_pose
from dynid.mechanism.mjcf.tree import MjcfBody, MjcfModel
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.urdf.inertial import absent_notices, excluded_notice, inertial_fault
from dynid.mechanism.xml_elements import Element

_DIAGONAL, _FULL = range(3, 4), range(6, 7)


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
    scope.notices += [*absent_notices(frames, missing, "body"), *_shape_notices(shaped)]
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
    inertia = _tensor(element, owner)
    if inertia is None:
        return None, ""
    return in_parent_frame(pack(mass, np.zeros(3), inertia), place.R, place.p), inertial_fault(mass, inertia)


def _tensor(element: Element, owner: str) -> Float[Array, "3 3"] | None:
    """Inertia about the centre of mass in the inertial's axes, in [kg m^2]; None when not given."""
    full = element.numbers("fullinertia", owner, _FULL)
    diagonal = element.numbers("diaginertia", owner, _DIAGONAL)
    if full and diagonal:
        raise element.error(f"{owner} has both diaginertia and fullinertia", "keep one")
    if diagonal:
        return np.diag([value for value, _ in diagonal])
    if not full:
        return None
    xx, yy, zz, xy, xz, yz = (value for value, _ in full)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _weighs_nothing(body: MjcfBody, chi: Float[Array, "10"] | None, model: MjcfModel) -> bool:
    """Whether a body without joint is a frame only: no mass given, and no shape that would have one."""
    if chi is not None:
        return not np.any(chi)
    if body.inertials:
        return False
    return model.settings.inertiafromgeom == "false" or not any(_has_mass(geom) for geom in body.geoms)


def _has_mass(geom: Element) -> bool:
    owner = "geom"
    if geom.attributes.get("type") == "plane":
        return False
    density = geom.number("density", 1000.0, owner)
    return geom.number("mass", density, owner) != 0.0


def _shape_notices(shaped: list[str]) -> list[Notice]:
    if not shaped:
        return []
    return [notice("inertia-from-geom", names=", ".join(shaped))]
