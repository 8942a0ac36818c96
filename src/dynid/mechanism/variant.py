"""Variants of a robot: other drive terms or dimensions, mounted payloads, cut loops, a sub-chain.

Friction of other packages, declared as extra columns: tau = ... + F f(s, ds/dt, d2s/dt2).

s is the position of the owner, a coordinate or an actuator, and f a NumPy function (see `FRICTION`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from dynid.common.errors import DynidError, InputError, nearest
from dynid.common.expression import FRICTION, parse
from dynid.mechanism.cable import cable_coordinates, without_cables
from dynid.mechanism.description import AT, at_places, of_each
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS, drive_term
from dynid.mechanism.joint import Loop
from dynid.mechanism.measured_pose import virtual_joints, without_poses
from dynid.mechanism.mechanism import BASE, Coupling, Mechanism, Term
from dynid.mechanism.parameters import effort_unit, speed_map


def variant(
    mechanism: Mechanism,
    *,
    drive: Sequence[str] | None = None,
    payloads: Sequence[str] = (),
    open_loops: bool = False,
    bodies: Sequence[str] | None = None,
) -> Mechanism:
    """The mechanism with other drive terms, with only these payloads, cut open, or a sub-chain."""
    for name in payloads:
        if name not in mechanism.payloads:
            raise InputError(
                f"no payload '{name}' in robot '{mechanism.name}'" + nearest(name, mechanism.payloads),
                remedy="describe it under `payloads:` of the robot file or of the experiment",
            )
    changes: dict[str, object] = {"payloads": {name: mechanism.payloads[name] for name in payloads}}
    if drive is not None:
        changes["drive"] = _drive_everywhere(mechanism, drive)
        if not drive:
            changes["terms"] = ()  # "none" leaves ten parameters a body
    if mechanism.rebuild is not None:
        rebuild = mechanism.rebuild
        changes["rebuild"] = lambda values: variant(
            rebuild(values), drive=drive, payloads=payloads, open_loops=open_loops, bodies=bodies
        )
    if open_loops and mechanism.is_closed:
        mechanism = without_cables(mechanism)
        mechanism = without_poses(mechanism, free_joints(mechanism))
        changes |= {"loops": ()}
    changed = replace(mechanism, **changes)  # type: ignore[arg-type]
    return changed if bodies is None else _sub_chain(changed, bodies)


def with_still_joints(mechanism: Mechanism, positions: Mapping[str, float]) -> Mechanism:
    """The mechanism with joints that stand still at these positions, in [rad] or [m], and are not logged.

    The others keep their order: q_1.. and tau_1.. of a log count them only.
    """
    if not positions:
        return mechanism
    if mechanism.is_closed or any(coupling.joint in positions for coupling in mechanism.couplings):
        name = next(iter(positions))
        raise InputError(
            f"'{name}' is a joint of a closed robot or moves with others, and cannot stand still alone",
            place=f"known.{name}",
            remedy="change the description, or give known values of parameters only",
        )
    still = [Coupling(name, {}, float(value)) for name, value in positions.items()]
    original = mechanism.rebuild
    return replace(
        mechanism,
        couplings=(*mechanism.couplings, *still),
        measured=tuple(name for name in mechanism.measured if name not in positions),
        actuators=tuple(motor for motor in mechanism.actuators if not set(motor.on) <= set(positions)),
        drive={owner: terms for owner, terms in mechanism.drive.items() if owner not in positions},
        rebuild=original and (lambda values: with_still_joints(original(values), positions)),
    )


def resized(mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism | None:
    """The robot with other values of dimensions, of like parts, or of one at a place; None: not possible.

    Only frames change: gravity, payloads and drive terms stay as they are, and entries of `start` that were
    not taken from the file.
    """
    if mechanism.rebuild is None:
        return None
    try:
        now = dict(mechanism.geometry)
        sizes = {name.partition(AT)[0]: value for name, value in of_each(mechanism, values).items()}
        written, other = mechanism.rebuild(now), mechanism.rebuild({**now, **sizes})
    except DynidError:
        return None
    places = [name.partition(AT)[2] for name in values if AT in name]
    if places:
        other = at_places(written, other)[places[0]]
    moved = {k: v for k, v in other.start.items() if mechanism.start.get(k) == written.start.get(k)}
    return replace(
        mechanism,
        joints=other.joints,
        loops=other.loops,
        couplings=other.couplings,
        cables=other.cables,
        swivels=other.swivels,
        start={**mechanism.start, **moved},
        geometry={},
        rebuild=None,
    )


def free_joints(mechanism: Mechanism) -> tuple[str, ...]:
    """All joints that move and are not coupled: what must be measured of an open tree."""
    others = {coupling.joint for coupling in mechanism.couplings} | virtual_joints(mechanism)
    return tuple(joint.name for joint in mechanism.joints if joint.positions and joint.name not in others)


def _drive_everywhere(mechanism: Mechanism, drive: Sequence[str]) -> dict[str, tuple[str, ...]]:
    for symbol in drive:
        if symbol not in DRIVE_SYMBOLS:
            raise InputError(f"unknown drive term '{symbol}'" + nearest(symbol, DRIVE_SYMBOLS))
    ordered = tuple(symbol for symbol in DRIVE_SYMBOLS if symbol in drive)
    return {actuator.name: ordered for actuator in mechanism.actuators} if ordered else {}


def _sub_chain(mechanism: Mechanism, bodies: Sequence[str]) -> Mechanism:
    """Only the joints that carry `bodies`; the parent of each must be the base or another of them."""
    if not bodies:
        raise InputError("no body is named", remedy=f"name some of {', '.join(mechanism.bodies)}")
    for name in bodies:
        if name not in mechanism.bodies:
            raise InputError(
                f"no body '{name}' in robot '{mechanism.name}'" + nearest(name, mechanism.bodies)
            )
    mechanism = without_poses(mechanism, free_joints(mechanism) if mechanism.poses else mechanism.measured)
    wanted = set(bodies)
    loose = [
        cable.name for cable in mechanism.cables if not {cable.body_from, cable.body_to} <= wanted | {BASE}
    ]
    mechanism = without_cables(mechanism, loose)
    wanted |= {carrier.child for carrier in mechanism.joints if carrier.name in cable_coordinates(mechanism)}
    joints = tuple(joint for joint in mechanism.joints if joint.child in wanted)
    for joint in joints:
        if joint.parent != BASE and joint.parent not in wanted:
            raise InputError(
                f"the parent '{joint.parent}' of body '{joint.child}' is not in the sub-chain",
                remedy=f"add '{joint.parent}' to the list of bodies",
            )
    coordinates = {name for joint in joints for name in joint.coordinates}
    actuators = tuple(a for a in mechanism.actuators if set(a.on) <= coordinates)
    held = wanted | {BASE}
    loops = tuple(loop for loop in mechanism.loops if {loop.body_a, loop.body_b} <= held)
    owners = coordinates | {actuator.name for actuator in actuators}
    names = {joint.name for joint in joints}
    positions = {name for joint in joints for name in joint.positions}
    return replace(
        mechanism,
        joints=joints,
        bodies={name: body for name, body in mechanism.bodies.items() if name in wanted},
        actuators=actuators,
        measured=_measured_part(mechanism, names, loops),
        loops=loops,
        start={name: v for name, v in mechanism.start.items() if name in positions},
        drive={owner: symbols for owner, symbols in mechanism.drive.items() if owner in owners},
        couplings=tuple(c for c in mechanism.couplings if c.joint in coordinates),
        terms=tuple(term for term in mechanism.terms if term.joint in coordinates),
        payloads={name: p for name, p in mechanism.payloads.items() if p.body in wanted},
        capsules={name: shapes for name, shapes in mechanism.capsules.items() if name in held},
        meshes={name: shapes for name, shapes in mechanism.meshes.items() if name in held},
    )


def _measured_part(mechanism: Mechanism, joints: Collection[str], loops: Sequence[Loop]) -> tuple[str, ...]:
    """Measured joints of a sub-chain; without the loops that gave the others, all that move."""
    listed = free_joints(mechanism) if mechanism.loops and not loops else mechanism.measured
    return tuple(name for name in listed if name in joints)


def drive_names() -> tuple[str, ...]:
    """Names that `drive:` may contain: own terms, then friction of other packages."""
    return (*DRIVE_SYMBOLS, *FRICTION)


def own_symbols(symbols: Iterable[str]) -> tuple[str, ...]:
    """Those with a compiled column, in the order of DRIVE_SYMBOLS."""
    listed = set(symbols)
    return tuple(symbol for symbol in DRIVE_SYMBOLS if symbol in listed)


def with_friction(mechanism: Mechanism, drive: Mapping[str, Sequence[str]]) -> Mechanism:
    """The robot with the friction of other packages in `drive`, as declared extra columns.

    Args:
        mechanism: The robot; such friction that it has already is removed.
        drive: Coordinate or actuator -> all its drive terms.
    """
    kept = tuple(term for term in mechanism.terms if not term.friction)
    added = [
        term
        for owner, symbols in drive.items()
        for symbol in dict.fromkeys(symbols)
        if symbol not in DRIVE_SYMBOLS
        for term in _friction_terms(mechanism, owner, symbol)
    ]
    terms = (*kept, *added)
    return mechanism if terms == mechanism.terms else replace(mechanism, terms=terms)


def _friction_terms(mechanism: Mechanism, owner: str, symbol: str) -> list[Term]:
    """The column of (s, ds/dt, d2s/dt2) of an owner, in the equation of every coordinate it acts on."""
    ratios = {
        coordinate: float(ratio)
        for coordinate, ratio in zip(mechanism.coordinates, speed_map(mechanism, (owner,))[0], strict=True)
        if ratio != 0.0
    }
    # An angle of a ball joint is not one of its coordinates: such friction depends on speeds only.
    placed = [name for name in ratios if name in mechanism.positions]
    q = " + ".join(f"({ratios[name]!r}) * q({name})" for name in placed) or "0"
    dq = " + ".join(f"({ratio!r}) * dq({coord})" for coord, ratio in ratios.items())
    text = f"{symbol}({q}, {dq}, {dq.replace('* dq(', '* ddq(')})"
    name, known = f"{symbol}_{owner}", drive_term(symbol)
    linear = effort_unit(mechanism, owner) == "N"
    unit = None if known is None else known.units[linear] or None
    return [
        Term(name, coord, parse(f"({ratio!r}) * {text}"), unit, symbol) for coord, ratio in ratios.items()
    ]
