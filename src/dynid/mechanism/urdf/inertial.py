"""Inertials of a URDF as priors: ten parameters about the link's origin, or none.

A URDF gives the inertia about the centre of mass in a frame of its own. Missing or
impossible values give no prior: this is reported once, and nothing is substituted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynid.common.notices import Notice, notice
from dynid.mechanism.frame import rpy_matrix
from dynid.mechanism.inertia import SYMBOLS, in_parent_frame, pack
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.xml_elements import Element

_ENTRIES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
# Inertias are written with a few digits; a thin rod or plate may violate the triangle inequality by rounding.
_TRIANGLE_RTOL = 1e-6


def read_priors(
    joints: Sequence[Element], links: Mapping[str, Element], scope: Scope
) -> dict[str, dict[str, float] | None]:
    """Prior of every link that a joint carries: ten values, {} when excluded, None when massless.

    None is given only to links on fixed joints without mass: they are frames, not bodies.
    """
    priors: dict[str, dict[str, float] | None] = {}
    frames: list[str] = []
    missing: list[str] = []
    for joint in joints:
        child = joint.child("child")
        name = child.text("link") if child is not None else ""
        fixed = joint.attributes.get("type") == "fixed"
        chi, fault = _ten_parameters(links[name], name)
        if fault:
            scope.notices.append(excluded_notice(links[name], f"link '{name}'", fault))
        if chi is not None and (fault or (fixed and not np.any(chi))):
            priors[name] = {} if fault else None
        elif chi is not None:
            priors[name] = dict(zip(SYMBOLS, (float(x) for x in chi), strict=True))
        else:
            priors[name] = None if fixed else {}
        if priors[name] is None:
            frames.append(name)
        elif chi is None:
            missing.append(name)
    scope.notices += absent_notices(frames, missing, "link")
    return priors


def _ten_parameters(link: Element, name: str) -> tuple[np.ndarray | None, str]:
    """Ten parameters about the link's origin (None when not given), and why they are impossible."""
    inertial = link.child("inertial")
    if inertial is None:
        return None, ""
    owner = f"link '{name}'"
    mass_element, inertia_element = inertial.child("mass"), inertial.child("inertia")
    mass = mass_element.number("value", owner=owner) if mass_element is not None else None
    entries = np.zeros(6)
    if inertia_element is not None:
        for i, entry in enumerate(_ENTRIES):
            default = None if entry in ("ixx", "iyy", "izz") else 0.0
            entries[i] = inertia_element.number(entry, default, owner)
    origin = inertial.child("origin")
    xyz = origin.numbers("xyz", owner) if origin is not None else None
    rpy = origin.numbers("rpy", owner) if origin is not None else None
    if mass is None or inertia_element is None:
        return None, ""
    inertia = np.zeros((3, 3))
    inertia[np.triu_indices(3)] = entries
    inertia = inertia + np.triu(inertia, 1).T
    at_com = pack(mass, np.zeros(3), inertia)
    roll, pitch, yaw = [angle for angle, _ in rpy] if rpy else (0.0, 0.0, 0.0)
    com = np.array([x for x, _ in xyz]) if xyz else np.zeros(3)
    return in_parent_frame(at_com, rpy_matrix((roll, pitch, yaw)), com), inertial_fault(mass, inertia)


def inertial_fault(mass: float, inertia: np.ndarray) -> str:
    """What is wrong with a mass and an inertia about the centre of mass; empty if nothing."""
    moments = np.linalg.eigvalsh(inertia)
    if mass < 0:
        return f"its mass {mass:g} kg is negative"
    if mass == 0 and np.any(inertia):
        return "it has inertia but no mass"
    if moments[0] < -_TRIANGLE_RTOL * abs(moments[-1]):
        return f"its inertia is not positive definite (smallest principal moment {moments[0]:.4g} kg m^2)"
    if moments[0] + moments[1] < (1.0 - _TRIANGLE_RTOL) * moments[2]:
        shown = ", ".join(f"{x:.4g}" for x in moments)
        return f"its principal moments ({shown} kg m^2) violate the triangle inequality"
    return ""


def excluded_notice(element: Element, owner: str, fault: str) -> Notice:
    """The notice about a physically inconsistent inertial."""
    return notice("impossible-prior", place=element.place, owner=owner, fault=fault)


def absent_notices(frames: list[str], missing: list[str], word: str) -> list[Notice]:
    """Notices about links or bodies (`word`) that are frames only, or come without inertial."""
    notices = []
    if frames:
        which = "links on fixed joints" if word == "link" else "bodies without a joint and"
        notices.append(notice("massless-frame", which=which, names=", ".join(frames)))
    if missing:
        which = "links" if word == "link" else "bodies"
        notices.append(notice("missing-inertial", which=which, names=", ".join(missing)))
    return notices
