"""Equalities of an MJCF: connect and weld as loops, joint as coupling; others are refused by name.

With X1, X2 the frames of the two bodies, c an anchor, and qpos0 the state in which the model is
written:

    connect   X1 c = X2 c2,  c2 such that it holds at qpos0;  or the origins of two sites
    weld      X1 S = X2 T(c), S = relpose, or such that it holds at qpos0;  or the frames of two sites
    joint     q1 - r1 = a0 + a1 (q2 - r2),  r the reference positions

Actuators of an MJCF: motors on joints or on fixed tendons, with their gear ratios.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid.common.errors import nearest
from dynid.common.notices import Notice, notice
from dynid.mechanism.frame import Frame, last_digit
from dynid.mechanism.joint import FIXED_BY, Joint, JointKind, Loop, unique
from dynid.mechanism.mechanism import BASE, Actuator, Coupling
from dynid.mechanism.mjcf.file import entries, flag, sections
from dynid.mechanism.mjcf.joint import Placer, Tree, effort_limit, read_range
from dynid.mechanism.mjcf.pose import quaternion_matrix, read_point, tidy_frame
from dynid.mechanism.mjcf.tree import WORLD, MjcfModel
from dynid.mechanism.parts import resolve_couplings
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.xml_elements import Element


@dataclass(frozen=True, eq=False)
class Equalities:
    """Loops and couplings of a model."""

    loops: tuple[Loop, ...]
    couplings: tuple[Coupling, ...]


def read_equalities(model: MjcfModel, tree: Tree, placer: Placer, driven: Collection[str]) -> Equalities:
    """All active equalities.

    Args:
        driven: Coordinates with a motor: where both are possible, the other coordinate is the dependent one.
    """
    elements = entries(model.root, "equality")
    flags = [
        flag for option in sections(model.root, "option") for flag in option.children if flag.tag == "flag"
    ]
    if elements and any(flag.attributes.get("equality") == "disable" for flag in flags):
        placer.scope.notices.append(notice("ignored-equality", "all", count=len(elements)))
        return Equalities((), ())
    reader = _Reader(model, tree, placer)
    couplings: list[tuple[Coupling, Element]] = []
    loops: list[Loop] = []
    for i, raw in enumerate(elements):
        element = model.defaults.applied(raw, kind="equality")
        name = element.attributes.get("name", "").strip() or f"{element.tag}{i}"
        line = rod_line(model, element)
        if element.tag in ("tendon", "flex", "flexvert", "flexstrain", "distance") and line is None:
            raise element.error(
                f"equality '{name}' is a <{element.tag}>, which is not supported",
                "use connect, weld, joint, or a tendon of fixed length between two sites; or write it under"
                " 'loops:' or 'couplings:' of a robot file",
            )
        if not flag(element, "active", default=True):
            placer.scope.notices.append(notice("ignored-equality", place=element.place, name=name))
        elif element.tag == "joint":
            couplings.append((reader.coupling(element, name), element))
        elif line is not None:
            loops.append(reader.rod(element, name, line))
        elif element.tag in ("connect", "weld"):
            loops.append(reader.loop(element, name))
    return Equalities(tuple(loops), _resolved(couplings, driven))


def rod_line(model: MjcfModel, equality: Element) -> tuple[str, str] | None:
    """Sites of the straight tendon whose length an equality fixes; None where it does something else."""
    if equality.tag != "tendon" or "tendon2" in equality.attributes:
        return None
    for tendon in entries(model.root, "tendon"):
        if tendon.tag == "spatial" and tendon.attributes.get("name") == equality.attributes.get("tendon1"):
            sites = [part.attributes.get("site", "") for part in tendon.children if part.tag == "site"]
            return (sites[0], sites[1]) if len(sites) == len(tendon.children) == 2 else None
    return None


class _Reader:
    """Reads one equality at a time; names of loops are kept apart from those of joints."""

    def __init__(self, model: MjcfModel, tree: Tree, placer: Placer) -> None:
        self.model, self.tree, self.placer = model, tree, placer
        self.taken = {
            name for joint in tree.joints for name in (joint.name, *joint.positions, *joint.coordinates)
        }
        self.written: set[str] = set()

    def loop(self, element: Element, name: str) -> Loop:
        """A connect or weld."""
        owner = f"equality '{name}'"
        name = self._named(element, name)
        turns = element.tag == "weld" and element.number("torquescale", 1.0, owner) != 0.0
        by_site = any(key in element.attributes for key in ("site1", "site2"))
        if by_site and any(key in element.attributes for key in ("body1", "body2")):
            raise element.error(f"{owner} names bodies and sites", "keep either the bodies or the sites")
        if by_site:
            ends = self._sites(element, owner, (element.text("site1"), element.text("site2")))
        else:
            ends = self._bodies(element, owner, name)
        (body_a, a), (body_b, b) = self._apart(element, owner, ends)
        if not turns:  # a point has no directions of its own: those of the bodies keep the equations simple
            a, b = Frame(np.eye(3), a.p), Frame(np.eye(3), b.p)
        kind = "weld" if turns else "point"
        return Loop(name, FIXED_BY[kind], body_a, tidy_frame(a), body_b, tidy_frame(b))

    def rod(self, element: Element, name: str, line: tuple[str, str]) -> Loop:
        """A tendon between two sites that keeps its length at the reference pose, or another one."""
        owner = f"equality '{name}'"
        name = self._named(element, name)
        (body_a, a), (body_b, b) = self._apart(element, owner, self._sites(element, owner, line))
        far = [(self.tree.poses[body] @ frame).p for body, frame in ((body_a, a), (body_b, b))]
        numbers = element.numbers("polycoef", owner, range(1, 6))
        length = float(np.linalg.norm(far[0] - far[1])) + (numbers[0][0] if numbers else 0.0)
        if length <= 0.0:
            raise element.error(f"{owner} gives a length of {length:g} m", "give a positive length")
        ends = [tidy_frame(Frame(np.eye(3), frame.p)) for frame in (a, b)]
        return Loop(name, (), body_a, ends[0], body_b, ends[1], length)

    def _named(self, element: Element, name: str) -> str:
        """A name of its own for a loop."""
        if name in self.written:
            raise element.error(f"equality '{name}' occurs twice", "rename one of them")
        self.written.add(name)
        name = unique(name, self.taken)
        self.taken.add(name)
        return name

    def _apart(self, element: Element, owner: str, ends: list[tuple[str, Frame]]) -> list[tuple[str, Frame]]:
        """The ends, on two bodies."""
        if ends[0][0] == ends[1][0]:
            raise element.error(f"{owner} joins '{ends[0][0]}' to itself", "an equality joins two bodies")
        return ends

    def _sites(self, element: Element, owner: str, names: tuple[str, str]) -> list[tuple[str, Frame]]:
        ends = []
        for name in names:
            if name not in self.model.sites:
                raise element.error(
                    f"{owner} names site '{name}', which is missing" + nearest(name, self.model.sites),
                    "name a site",
                )
            body, placed = self.model.sites[name]
            if "fromto" in placed.element.attributes:
                raise placed.element.error(
                    f"site '{name}' has fromto, which is not supported", "give pos instead"
                )
            ends.append((body, self.placer.pose(placed, f"site '{name}'", name)))
        return ends

    def _bodies(self, element: Element, owner: str, name: str) -> list[tuple[str, Frame]]:
        first = self._body(element, "body1", owner)
        two = self._body(element, "body2", owner) if "body2" in element.attributes else BASE
        between = self.tree.poses[first].inverse() @ self.tree.poses[two]
        anchor = read_point(element, "anchor", owner, self.placer.scope, name, "a")
        if element.tag == "connect":
            element.text("anchor")
            back = between.inverse()
            return [(first, Frame(np.eye(3), anchor)), (two, Frame(np.eye(3), back.R @ anchor + back.p))]
        at_two = Frame(np.eye(3), anchor)
        given = self._relative(element, owner, name)
        return [(first, given if given is not None else between @ at_two), (two, at_two)]

    def _relative(self, element: Element, owner: str, name: str) -> Frame | None:
        """The `relpose` of a weld: where body 1 has the anchor; None: from qpos0."""
        numbers = element.numbers("relpose", owner, range(7, 8))
        if numbers is None or not any(value for value, _ in numbers[3:]):
            return None
        p = [
            self.placer.scope.bare_length(value, f"r{axis}_{name}")
            for axis, (value, _) in zip("xyz", numbers[:3], strict=True)
        ]
        q = np.array([value for value, _ in numbers[3:]])
        digit = max(last_digit(word) for _, word in numbers[3:])
        return Frame(quaternion_matrix(q, digit, element, owner, self.placer.scope), np.array(p))

    def _body(self, element: Element, key: str, owner: str) -> str:
        written = element.text(key)
        name = self.model.rename.get(written, written)
        if name not in self.tree.poses or name in self.tree.links:
            valid = [WORLD, *(body.name for body in self.model.bodies)]
            raise element.error(
                f"{owner} names body '{written}', which is missing" + nearest(written, valid), "name a body"
            )
        return name

    def coupling(self, element: Element, name: str) -> Coupling:
        """A joint equality; joint2 is missing where joint1 is fixed."""
        owner = f"equality '{name}'"
        dependent = self._joint(element, "joint1", owner)
        numbers = element.numbers("polycoef", owner, range(1, 6))
        a = [value for value, _ in numbers or ()]
        a += [0.0, 1.0, 0.0, 0.0, 0.0][len(a) :]
        offset = a[0] + self.tree.reference[dependent]
        if "joint2" not in element.attributes:
            return Coupling(dependent, {}, offset)
        if any(a[2:]):
            raise element.error(
                f"{owner} is not linear: polycoef has {a[2]:g} {a[3]:g} {a[4]:g} beyond the slope",
                "only linear couplings are supported; describe the mechanism under 'loops:'",
            )
        two = self._joint(element, "joint2", owner)
        if dependent == two:
            raise element.error(f"{owner} couples '{dependent}' to itself", "name two joints")
        of = {two: a[1]} if a[1] != 0.0 else {}
        return Coupling(dependent, of, offset - a[1] * self.tree.reference[two])

    def _joint(self, element: Element, key: str, owner: str) -> str:
        name = element.text(key)
        one_axis = [joint.name for joint in self.tree.joints if joint.axes]
        if name not in one_axis:
            raise element.error(
                f"{owner} names '{name}', which is not a hinge or slide joint" + nearest(name, one_axis),
                "name a joint",
            )
        return name


def _resolved(pairs: list[tuple[Coupling, Element]], driven: Collection[str]) -> tuple[Coupling, ...]:
    """One coupling for each dependent coordinate, chains resolved."""
    couplings: dict[str, Coupling] = {}
    places: dict[str, Element] = {}
    for coupling, element in pairs:
        chosen = _oriented(coupling, couplings, driven)
        if chosen.joint in couplings:
            first = places[chosen.joint].place
            raise element.error(
                f"'{chosen.joint}' is defined by two couplings (first in {first})", "keep one"
            )
        couplings[chosen.joint], places[chosen.joint] = chosen, element
    return resolve_couplings(
        couplings, lambda name, text: places[name].error(text, "remove the cycle of joint equalities")
    )


def _oriented(coupling: Coupling, before: Mapping[str, Coupling], driven: Collection[str]) -> Coupling:
    """The coupling, or its inverse where joint1 has the motor or follows another joint already."""
    if not coupling.of:
        return coupling
    ((other, ratio),) = coupling.of.items()
    wants = coupling.joint in before or (coupling.joint in driven and other not in driven)
    if not wants or other in before:
        return coupling
    return Coupling(other, {coupling.joint: 1.0 / ratio}, -coupling.offset / ratio)


_GEARS = range(1, 7)


@dataclass(eq=False)
class Motors:
    """Motors in file order, and {motor: {tau}} where their force is limited."""

    actuators: list[Actuator] = field(default_factory=list)
    limits: dict[str, dict[str, float]] = field(default_factory=dict)


def read_actuators(model: MjcfModel, joints: Sequence[Joint], scope: Scope) -> Motors:
    """Motors with dq_motor = sum(gear dq_joint): the effort of a log is the force before the gear."""
    motors = Motors()
    coordinates = {name for joint in joints for name in joint.coordinates}
    tendons = _fixed_tendons(model, {joint.name: joint for joint in joints})
    written = {element.attributes.get("name", "").strip() for element in entries(model.root, "actuator")}
    taken: set[str] = set()
    for i, raw in enumerate(entries(model.root, "actuator")):
        element = model.defaults.applied(raw)
        owner = f"actuator '{element.attributes.get('name', i)}'"
        on = _transmission(element, owner, joints, tendons)
        name = element.attributes.get("name", "").strip()
        if name and name in taken:
            raise element.error(f"{owner} occurs twice", "rename one of them")
        name = _name(element, name, on, coordinates, taken | written, scope)
        taken.add(name)
        motors.actuators.append(Actuator(name, on))
        limit = effort_limit(read_range(element, "forcerange", "forcelimited", owner, model))
        motors.limits |= {name: dict(limit)} if limit else {}
    scope.notices += _shared(motors.actuators)
    return motors


def _transmission(
    element: Element, owner: str, joints: Sequence[Joint], tendons: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """Coordinates that a motor drives, with its velocity per unit of theirs."""
    gear = [value for value, _ in element.numbers("gear", owner, _GEARS) or [(1.0, "1")]]
    gear += [0.0] * (6 - len(gear))
    if "joint" in element.attributes or "jointinparent" in element.attributes:
        key = "joint" if "joint" in element.attributes else "jointinparent"
        on = _on_joint(element, key, owner, joints, gear)
    elif "tendon" in element.attributes:
        name = element.text("tendon")
        if name not in tendons:
            raise element.error(
                f"{owner} pulls tendon '{name}', which is not a fixed tendon" + nearest(name, tendons),
                "only motors on joints and on fixed tendons are supported",
            )
        on = {coordinate: gear[0] * coefficient for coordinate, coefficient in tendons[name].items()}
    else:
        raise element.error(
            f"{owner} has an unsupported transmission: it acts on no joint",
            "only motors on joints and on fixed tendons are supported; remove it from a copy of the file",
        )
    on = {name: ratio for name, ratio in on.items() if ratio != 0.0}
    if not on:
        raise element.error(f"{owner} has a gear ratio of zero and drives nothing", "give its gear ratio")
    return on


def _on_joint(
    element: Element, key: str, owner: str, joints: Sequence[Joint], gear: list[float]
) -> dict[str, float]:
    movable = {joint.name: joint for joint in joints if joint.coordinates}
    name = element.text(key)
    if name not in movable:
        raise element.error(
            f"{owner} drives joint '{name}', which is missing" + nearest(name, movable), "name a joint"
        )
    joint = movable[name]
    if key == "jointinparent" and joint.has_quaternion:
        raise element.error(
            f"{owner} drives {joint.kind} joint '{name}' about axes of the parent, which is not supported",
            "use joint= instead",
        )
    # A ball joint rotates about its own three axes; a free joint translates along three, then rotates.
    count = {JointKind.SPHERICAL: 3, JointKind.FREE: 6}.get(joint.kind, 1)
    return dict(zip(joint.coordinates, gear[:count], strict=True))


def _name(
    element: Element,
    name: str,
    on: Mapping[str, float],
    coordinates: set[str],
    taken: set[str],
    scope: Scope,
) -> str:
    """The motor's own name; without a usable one, that of its joint or `motor_joint`."""
    first = next(iter(on))
    if not name:
        plain = on == {first: 1.0} and first not in taken
        return first if plain else unique(f"motor_{first}", taken | coordinates)
    if name not in coordinates or on == {name: 1.0}:
        return name
    other = unique(f"motor_{name}", taken | coordinates)
    scope.notices.append(notice("renamed-actuator", place=element.place, name=name, new=other))
    return other


def _fixed_tendons(model: MjcfModel, joints: Mapping[str, Joint]) -> dict[str, dict[str, float]]:
    """Fixed tendons: coefficient of each joint in their length."""
    coefficients: dict[str, dict[str, float]] = {}
    for tendon in entries(model.root, "tendon"):
        name = tendon.attributes.get("name", "").strip()
        if tendon.tag != "fixed" or not name:
            continue
        coefficients[name] = {}
        for part in tendon.children:
            joint = part.text("joint")
            if joint not in joints or not joints[joint].axes:
                raise part.error(
                    f"tendon '{name}' names '{joint}', which is not a hinge or slide joint"
                    + nearest(joint, joints),
                    "name a joint",
                )
            coefficients[name][joint] = part.number("coef", owner=f"tendon '{name}'")
    return coefficients


def _shared(actuators: Sequence[Actuator]) -> list[Notice]:
    """Motors with the same velocity: usually position and velocity servos of one joint."""
    groups: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for actuator in actuators:
        groups.setdefault(tuple(sorted(actuator.on.items())), []).append(actuator.name)
    several = ["+".join(names) for names in groups.values() if len(names) > 1]
    if not several:
        return []
    return [notice("shared-joint", names=", ".join(several))]
