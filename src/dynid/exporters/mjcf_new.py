"""A new MJCF of any mechanism: nested bodies, joints, loops by sites, cables and rods by tendons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.exporters.actuators import servo_lines
from dynid.exporters.contract import Described, header_lines
from dynid.exporters.link_tree import DriveSplit, Link, at_centre, body_offsets
from dynid.exporters.xml_text import SAME, attribute, comment, number, numbers
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.tree import body_poses, tree_of
from dynid.mechanism.frame import Frame, identity_frame, quaternion_of
from dynid.mechanism.joint import FIXED_BY, JointKind, Loop
from dynid.mechanism.mechanism import BASE, Mechanism

_TINY = 1e-12  # kg and, of the mass, kg m^2: MuJoCo refuses moving bodies without mass or inertia
_APART = 0.1  # m between the two points that hold the axis of a revolute loop
# s and damping ratio: MuJoCo takes two time steps instead. With its default of 0.02 s friction is full
# only at some tenths of a rad/s.
_FRICTION = "0.001 1"
TERMS = {"Ia": "armature", "Fv": "damping", "Fs": "frictionloss"}
_TYPES = {JointKind.REVOLUTE: "hinge", JointKind.PRISMATIC: "slide", JointKind.SPHERICAL: "ball"}


def generated(described: Described, links: list[Link], split: DriveSplit) -> tuple[str, list[str], set[str]]:
    """The text of the file, what MJCF cannot hold, and names of the loops and couplings that it has."""
    servos = {} if described.estimate is None else servo_lines(described)
    writer = _Writer(described.mechanism, links, split, servos)
    head = [comment(header_lines(described)), f'<mujoco model="{attribute(described.mechanism.name)}">']
    return "\n".join([*head, *writer.lines(), "</mujoco>", ""]), writer.missing, writer.held


@dataclass
class _Node:
    """A body of MuJoCo: its link, and the links without mass before it whose joints it has too."""

    link: Link
    before: list[Link] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)


class _Writer:
    """Lines of each section."""

    def __init__(
        self, mechanism: Mechanism, links: list[Link], split: DriveSplit, servos: Mapping[str, str]
    ) -> None:
        self.mechanism, self.split, self.servos = mechanism, split, servos
        self.links = {link.name: link for link in links}
        self.joints = {name for link in links for name in link.coordinates}
        self.missing: list[str] = []
        self.held: set[str] = set()
        self.offsets = body_offsets(mechanism)
        self.sites: dict[str, list[str]] = {}
        self.equality: list[str] = []
        self.tendons: list[str] = []
        self.actuators: list[str] = []
        self.place = self._places()
        for loop in mechanism.loops:
            self._loop(loop)
        self._couplings()
        self._cables()
        self._motors()

    def lines(self) -> list[str]:
        """All sections, indented."""
        roots = self._nodes()
        gravity = numbers(self.mechanism.gravity)
        written = [
            '<compiler angle="radian" autolimits="true"/>',
            f'<option gravity="{gravity}"/>',
            f'<default><joint solreffriction="{_FRICTION}"/></default>',
            "<worldbody>",
        ]
        written += [f"  {line}" for line in self.sites.get(BASE, [])]
        for node in roots:
            written += [f"  {line}" for line in self._body(node)]
        written.append("</worldbody>")
        for tag in ("tendon", "equality", "actuator"):
            inside = {"tendon": self.tendons, "equality": self.equality, "actuator": self.actuators}[tag]
            if inside:
                written += [f"<{tag}>", *(f"  {line}" for line in inside), f"</{tag}>"]
        return [f"  {line}" for line in [*written, *self._key(roots)]]

    def _nodes(self) -> list[_Node]:
        """Bodies of MuJoCo; a link without mass and with one child is part of that child."""
        nodes: dict[str, _Node] = {}
        roots: list[_Node] = []
        count = {name: sum(other.parent == name for other in self.links.values()) for name in self.links}
        merged: dict[str, list[Link]] = {}
        for link in self.links.values():
            before = merged.pop(link.parent, [])
            simple = link.kind in (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.FIXED)
            if link.chi is None and simple and count[link.name] == 1 and link.name not in self.sites:
                merged[link.name] = [*before, link]
                continue
            node = nodes[link.name] = _Node(link, before)
            parent = before[0].parent if before else link.parent
            (roots if parent == BASE else nodes[parent].children).append(node)
        return roots

    def _body(self, node: _Node) -> list[str]:
        chain = [*node.before, node.link]
        pose = identity_frame()
        for link in chain:
            pose = pose @ link.placement
        link = node.link
        at_world = np.array_equal(pose.R, np.eye(3)) and not np.any(pose.p)
        as_free = link.kind is JointKind.FREE and len(chain) == 1 and link.parent == BASE and at_world
        place = f'pos="{numbers(pose.p)}" quat="{numbers(quaternion_of(pose.R))}"'
        name = link.name if link.name != "world" else "world_"  # `world` is MuJoCo's own
        lines = [f'<body name="{attribute(name)}" {place}>']
        moves = any(part.kind is not JointKind.FIXED for part in chain)
        if link.chi is not None or moves:
            lines.append(f"  {inertial_line(self._heavy(link, moves))}")
        for k, part in enumerate(chain):
            after = identity_frame()
            for later in chain[k + 1 :]:
                after = after @ later.placement
            lines += [f"  {line}" for line in self._joint(part, after.inverse(), as_free)]
        lines += [f"  {line}" for line in self.sites.get(link.name, [])]
        for child in node.children:
            lines += [f"  {line}" for line in self._body(child)]
        return [*lines, "</body>"]

    def _heavy(self, link: Link, moves: bool) -> Float[Array, "10"]:
        """The ten parameters, not less than what MuJoCo accepts."""
        chi = np.zeros(10) if link.chi is None else link.chi.copy()
        if not moves:
            return chi
        if chi[9] == 0.0:
            chi[9] = _TINY
        if not np.any(at_centre(chi)[2]):
            chi[[0, 3, 5]] += _TINY * chi[9]
            self.missing.append(
                f"link '{link.name}' without inertia: MuJoCo needs some, {_TINY:g} of its mass is written"
            )
        return chi

    def _joint(self, link: Link, at: Frame, as_free: bool) -> list[str]:
        """Joints of one link; `at` is its joint frame in the frame of the body that has them."""
        name = attribute(link.joint)
        if link.kind is JointKind.FIXED:
            return []
        if as_free:
            return [f'<freejoint name="{name}" align="false"/>']
        place = f'pos="{numbers(at.p)}"'
        if link.kind is JointKind.FREE:
            axes = zip("xyz", np.eye(3), strict=True)
            slides = [
                f'<joint name="{name}_{key}" type="slide" axis="{numbers(at.R @ axis)}"/>'
                for key, axis in axes
            ]
            return [*slides, f'<joint name="{name}_ball" type="ball" {place}/>']
        kind = _TYPES[link.kind]
        if kind == "ball":
            return [f'<joint name="{name}" type="ball" {place}/>']
        text = f'<joint name="{name}" type="{kind}" {place} axis="{numbers(at.R @ link.axis)}"'
        limit = self.mechanism.limits.get(link.joint, {}).get("q")
        text += f' range="{numbers(limit)}"' if limit is not None else ""
        terms = self.split.joints.get(link.coordinates[0], {})
        text += "".join(f' {key}="{number(terms[s])}"' for s, key in TERMS.items() if s in terms)
        return [text + "/>"]

    # Loops, couplings, cables

    def _places(self) -> dict[str, Frame]:
        """Poses of all bodies with every joint at zero, in the base frame."""
        robot = self.mechanism
        zero = {f"{joint.name}_qw": 1.0 for joint in robot.joints if joint.has_quaternion}
        q = np.array([[zero.get(name, 0.0) for name in robot.positions]])
        R, p = body_poses(tree_of(robot), q)
        poses = {joint.child: Frame(R[0, k], p[0, k]) for k, joint in enumerate(robot.joints)}
        return {BASE: identity_frame(), **poses}

    def _site(self, name: str, body: str, frame: Frame) -> str:
        place = self.offsets[body] @ frame
        where = f'pos="{numbers(place.p)}" quat="{numbers(quaternion_of(place.R))}"'
        text = f'<site name="{attribute(name)}" {where}/>'
        self.sites.setdefault(body, []).append(text)
        return attribute(name)

    def _loop(self, loop: Loop) -> None:
        joint = self.mechanism.joint_of_body.get(loop.body_a)
        body_a, a, fix = loop.body_a, loop.a, set(loop.fix)
        if body_a not in self.links and joint is not None and body_a != BASE:
            body_a, a, fix = joint.parent, joint.placement, set(FIXED_BY.get(joint.kind.value, ()))
            driven = {name for actuator in self.mechanism.actuators for name in actuator.on}
            if driven & set(joint.coordinates):
                self.missing.append(
                    f"motor of '{joint.name}', which closes a loop (an equality has no motor)"
                )
        if {body_a, loop.body_b} - {*self.links, BASE}:
            self.missing.append(f"loop '{loop.name}' of a link without mass")
            return
        name = attribute(loop.name)
        self.held.add(loop.name)
        if loop.length is not None:
            self._rod(loop)
        elif fix == set(FIXED_BY["point"]) or fix == set(FIXED_BY["revolute"]):
            points = [0.0] if len(fix) == 3 else [0.0, _APART]
            for k, z in enumerate(points):
                step = Frame(np.eye(3), np.array([0.0, 0.0, z]))
                first = self._site(f"{loop.name}_a{k}", body_a, a @ step)
                two = self._site(f"{loop.name}_b{k}", loop.body_b, loop.b @ step)
                more = "" if len(points) == 1 else f"_{k}"
                self.equality.append(f'<connect name="{name}{more}" site1="{first}" site2="{two}"/>')
        elif fix == set(FIXED_BY["weld"]):
            first = self._site(f"{loop.name}_a", body_a, a)
            two = self._site(f"{loop.name}_b", loop.body_b, loop.b)
            self.equality.append(f'<weld name="{name}" site1="{first}" site2="{two}"/>')
        else:
            self.held.discard(loop.name)
            fixed = ", ".join(loop.fix)
            self.missing.append(f"loop '{loop.name}' fixes {fixed} (MJCF has connect and weld)")

    def _rod(self, loop: Loop) -> None:
        """A tendon between two points whose length does not change."""
        ends = [(loop.body_a, loop.a), (loop.body_b, loop.b)]
        name = self._line(loop.name, ends)
        far = [(self.place[body] @ frame).p for body, frame in ends]
        change = float(loop.length or 0.0) - float(np.linalg.norm(far[0] - far[1]))
        poly = f"{number(change)} 0 0 0 0"
        self.equality.append(f'<tendon name="{name}" tendon1="{name}" polycoef="{poly}"/>')

    def _line(self, name: str, ends: list[tuple[str, Frame]]) -> str:
        """A spatial tendon from site to site."""
        sites = [self._site(f"{name}_{k}", body, frame) for k, (body, frame) in enumerate(ends)]
        inner = "".join(f'<site site="{label}"/>' for label in sites)
        self.tendons.append(f'<spatial name="{attribute(name)}">{inner}</spatial>')
        return attribute(name)

    def _couplings(self) -> None:
        for relation in self.mechanism.couplings:
            if len(relation.of) > 1 or relation.joint not in self.joints:
                self.missing.append(f"coupling of '{relation.joint}' with several joints (MJCF couples two)")
                continue
            self.held.add(relation.joint)
            ratio = next(iter(relation.of.values()), 0.0)
            other = "".join(f' joint2="{attribute(name)}"' for name in relation.of)
            poly = f"{number(relation.offset)} {number(ratio)} 0 0 0"
            self.equality.append(f'<joint joint1="{attribute(relation.joint)}"{other} polycoef="{poly}"/>')

    def _cables(self) -> None:
        for cable in self.mechanism.cables:
            ends = [(cable.body_from, cable.entry), (cable.body_to, cable.attachment)]
            self._line(cable.name, ends)
            if cable.radius > 0.0:
                self.missing.append(
                    f"pulley of cable '{cable.name}' (a swivelling pulley; the tendon runs straight from D)"
                )
            if cable.length is not None:
                self.missing.append(f"fixed length {cable.length:g} m of cable '{cable.name}'")

    def _motors(self) -> None:
        cables = {cable.name for cable in self.mechanism.cables}
        for actuator in self.mechanism.actuators:
            name = attribute(actuator.name)
            if len(actuator.on) == 1:
                ((joint, ratio),) = actuator.on.items()
                kind = "tendon" if joint in cables else "joint"
                if actuator.name in self.servos and joint in self.joints:
                    self.actuators.append(self.servos[actuator.name])
                    continue
                if joint in cables | self.joints and self._is_scalar(joint):
                    gear = f' gear="{number(ratio)}"'
                    self.actuators.append(f'<motor name="{name}" {kind}="{attribute(joint)}"{gear}/>')
                    continue
            elif all(joint in self.joints and self._is_scalar(joint) for joint in actuator.on):
                inner = "".join(
                    f'<joint joint="{attribute(joint)}" coef="{number(ratio)}"/>'
                    for joint, ratio in actuator.on.items()
                )
                self.tendons.append(f'<fixed name="{name}">{inner}</fixed>')
                self.actuators.append(f'<motor name="{name}" tendon="{name}"/>')
                continue
            self.missing.append(f"motor '{actuator.name}' (no joint of the file has its coordinate)")

    def _is_scalar(self, coordinate: str) -> bool:
        return self.mechanism.joint_of_coordinate[coordinate].kind not in (
            JointKind.SPHERICAL,
            JointKind.FREE,
        )

    def _key(self, roots: list[_Node]) -> list[str]:
        """The pose in which the loops are closed, as a key frame."""
        if not self.mechanism.is_closed:
            return []
        start = dict(zip(self.mechanism.positions, assembly_of(self.mechanism).start.tolist(), strict=True))
        qpos = [start[name] for link in _walk(roots) for name in self._positions(link)]
        return [f'<keyframe><key name="home" qpos="{numbers(qpos)}"/></keyframe>']

    def _positions(self, link: Link) -> list[str]:
        if link.kind is JointKind.FIXED:
            return []
        if link.kind in (JointKind.FREE, JointKind.SPHERICAL):
            return list(self.mechanism.joint_of_coordinate[link.coordinates[0]].positions)
        return list(link.coordinates)


def _walk(roots: list[_Node]) -> Iterator[Link]:
    for node in roots:
        yield from (*node.before, node.link)
        yield from _walk(node.children)


def inertial_line(chi: Float[Array, "10"]) -> str:
    """An <inertial> with principal moments and axes."""
    mass, com, inertia = at_centre(chi)
    moments, axes = np.diag(inertia), np.eye(3)
    if np.abs(inertia - np.diag(moments)).max() > SAME * np.abs(inertia).max():
        moments, axes = principal(inertia)
    place = f'pos="{numbers(com)}" mass="{number(mass)}"'
    if np.array_equal(axes, np.eye(3)):
        return f'<inertial {place} diaginertia="{numbers(moments)}"/>'
    return f'<inertial {place} diaginertia="{numbers(moments)}" quat="{numbers(quaternion_of(axes))}"/>'


def principal(inertia: Float[Array, "3 3"]) -> tuple[Float[Array, "3"], Float[Array, "3 3"]]:
    """Principal moments and axes, in the order and direction nearest to the present axes."""
    values, axes = np.linalg.eigh(inertia)
    order = _nearest_order(axes)
    values, axes = values[order], axes[:, order]
    axes = axes * np.where(np.diag(axes) < 0.0, -1.0, 1.0)
    if np.linalg.det(axes) < 0.0:
        axes[:, int(np.argmin(np.abs(np.diag(axes))))] *= -1.0
    return values, np.asarray(axes)


def _nearest_order(axes: Float[Array, "3 3"]) -> list[int]:
    def along(order: Iterable[int]) -> float:
        return float(sum(abs(axes[i, k]) for i, k in enumerate(order)))

    return list(max(permutations(range(3)), key=along))
