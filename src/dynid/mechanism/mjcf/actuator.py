"""Actuators of an MJCF: motors on joints or on fixed tendons, with their gear ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dynid.common.errors import nearest
from dynid.common.notices import Notice, notice
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import Actuator
from dynid.mechanism.mjcf.file import entries
from dynid.mechanism.mjcf.joint import effort_limit, read_range
from dynid.mechanism.mjcf.tree import MjcfModel, unique
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.xml_elements import Element

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
