"""Structure of a robot and its identifiable parameters for any motion: `dynid info`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dynid.base.base import BaseSet, base_set
from dynid.base.grouping import Symbols
from dynid.base.rounding import allowing_rounding, rounding_of
from dynid.base.symbols import recover_symbols
from dynid.base.ties import tied_columns
from dynid.case import case_of
from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice, notice
from dynid.common.threads import single_threaded_blas
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.cable import cable_coordinates, without_cables
from dynid.mechanism.loop import DIRECTIONS, Loop
from dynid.mechanism.measured_pose import virtual_joints, without_poses
from dynid.mechanism.mechanism import BASE, DRIVE_SYMBOLS, Body, Mechanism, Payload
from dynid.mechanism.parameters import Parameter, considered_order, parameter_table
from dynid.projection.model import MODELS, Model
from dynid.projection.projection import Directions, choose_rows

# A decision this clear needs no wider states: geometry leaves 1e-3, rounding 1e-13.
_CLEAR_GAP = 1e6
_STRETCHES = (1.0, 2.0, 4.0, 0.5)
# A dense triangle of so many columns takes 70 MB and some seconds; humanoids have a third.
_MOST_PARAMETERS = 3000

Loads = Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class BaseParameter:
    """One base parameter and what is grouped into it."""

    name: str
    unit: str
    grouping: str


@dataclass(frozen=True)
class Info:
    """Counts and base parameters of a mechanism; the fields of `info --json`."""

    name: str
    dof: int
    n_bodies: int
    n_joints: int
    n_actuators: int
    n_closures: int
    n_standard: int
    n_base: int
    base: tuple[BaseParameter, ...]
    eliminated: tuple[str, ...]
    grouped: tuple[str, ...]
    rank_gap: float
    notices: tuple[Notice, ...] = ()


def describe(
    mechanism: Mechanism,
    *,
    drive: Sequence[str] | None = None,
    ties: Sequence[str] = (),
    payloads: Sequence[str] = (),
    open_loops: bool = False,
    bodies: Sequence[str] | None = None,
) -> Info:
    """Degrees of freedom, standard and base parameters, and how they are grouped.

    Args:
        drive: Drive terms of every actuated joint instead of the robot's own.
        ties: Names of the description's ties to apply.
        payloads: Payloads to mount.
        open_loops: Cut the loops: every joint, and a platform joined only by loops, moves freely.
        bodies: A sub-chain alone.
    """
    robot = variant(mechanism, drive=drive, payloads=payloads, open_loops=open_loops, bodies=bodies)
    # Under generic motion all models see the same parameters; `inverse` has the most rows per state. Only
    # free motion, on which no effort acts, does not determine them all.
    parameters = parameter_table(robot)
    loads: Loads = ((), tuple(robot.payloads)) if robot.payloads else ((),)
    own = MODELS.get(robot.model) if robot.cables else None
    scale = None if own is None else case_of(own).free_scale(robot, parameters, loads)
    model = MODELS["inverse"] if own is None or scale is None else own
    robot = robot if scale is None else scale.robot
    with single_threaded_blas():
        base = structural_base(robot, model, parameters, _rows(robot, model), ties=ties, loads=loads)
        symbols = grouping_symbols(robot, model, ties=ties, loads=loads)
    groupings = base.groupings(symbols)
    freedoms, mobility = _mobility(robot)
    freedoms = freedoms if scale is None else scale.dof
    cut = {loop.name for loop in robot.loops}
    virtual = virtual_joints(robot) | cable_coordinates(robot)  # sensors and cables are no bodies
    return Info(
        name=robot.name,
        dof=freedoms,
        n_bodies=sum(joint.name not in cut | virtual for joint in robot.joints),
        n_joints=len(robot.joints) - len(virtual),
        n_actuators=len(robot.actuators),
        n_closures=len(robot.loops) - len(robot.poses) + len(robot.couplings) + len(robot.cables),
        n_standard=len(parameters),
        n_base=len(base.indices),
        base=tuple(
            BaseParameter(name, unit, grouping) if scale is None else scale.shown(name, unit, grouping)
            for name, unit, grouping in zip(base.names, base.units, groupings, strict=True)
        ),
        eliminated=base.eliminated,
        grouped=base.grouped,
        rank_gap=base.rank.gap,
        notices=robot.notices + mobility + base.notices + (() if scale is None else scale.notices),
    )


def _mobility(robot: Mechanism) -> tuple[int, tuple[Notice, ...]]:
    """Degrees of freedom, and over-constraint of the closures."""
    if not robot.is_closed:
        return len(coordinate_map(robot).independent), ()
    assembly = assembly_of(robot)
    found = assembly.mobility
    if not found.n_redundant:
        return found.dof, assembly.notices
    # Sensors are no closures.
    own = found.n_equations - len(DIRECTIONS) * len(robot.poses) - len(robot.swivels)
    constrained = notice("over-constrained", redundant=found.n_redundant, total=own)
    return found.dof, (*assembly.notices, constrained)


def _rows(robot: Mechanism, model: Model, rows: Sequence[str] | None = None) -> Directions | None:
    """Rows of a tree; None for a closed mechanism, of which all tangent directions are taken."""
    return None if robot.is_closed else choose_rows(model.directions(robot), rows)


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
        mechanism = without_poses(mechanism, _free_joints(mechanism))
        changes |= {"loops": ()}
    changed = replace(mechanism, **changes)  # type: ignore[arg-type]
    return changed if bodies is None else _sub_chain(changed, bodies)


def _free_joints(mechanism: Mechanism) -> tuple[str, ...]:
    """All joints that move and are not coupled: what must be measured of an open tree."""
    others = {coupling.joint for coupling in mechanism.couplings} | virtual_joints(mechanism)
    return tuple(joint.name for joint in mechanism.joints if joint.positions and joint.name not in others)


def structural_base(
    mechanism: Mechanism,
    model: Model,
    parameters: Sequence[Parameter],
    directions: Directions | None,
    *,
    ties: Sequence[str] = (),
    loads: Loads = ((),),
) -> BaseSet:
    """Base set at random feasible states, drawn wider until the rank decision is clear.

    Args:
        directions: Rows in use; None for all tangent directions of a closed mechanism.
    """
    if len(parameters) > _MOST_PARAMETERS:
        raise InputError(
            f"robot '{mechanism.name}' has {len(parameters)} parameters; base parameters are computed for at"
            f" most {_MOST_PARAMETERS}",
            file=mechanism.file,
            remedy="use a sub-chain (bodies), or fix joints that do not move",
        )
    known = known_columns(mechanism, parameters)
    groups = tie_groups(mechanism, parameters, ties)
    order = considered_order(mechanism, parameters)
    rounding = rounding_of(mechanism.geometry.values())
    found: list[BaseSet] = []
    for stretch in _STRETCHES:
        factor = model.structure(mechanism, parameters, directions, loads=loads, stretch=stretch)
        again = partial(base_set, parameters, factor, order, known, ties=groups)
        found.append(allowing_rounding(again(), rounding, again))
        if found[-1].rank.gap >= _CLEAR_GAP:
            return found[-1]
    # None is clear: the clearest one is returned, with its own notice when it is undecided.
    return max(found, key=lambda base: (_is_decided(base), base.rank.gap))


def _is_decided(base: BaseSet) -> bool:
    return all(notice.code != "rank-undecided" for notice in base.notices)


def known_columns(mechanism: Mechanism, parameters: Sequence[Parameter]) -> dict[int, float]:
    """Column -> value of everything the description takes as known."""
    index = {parameter.name: i for i, parameter in enumerate(parameters)}
    values: dict[str, float] = dict(mechanism.known)
    owners: list[Body | Payload] = [*mechanism.bodies.values(), *mechanism.payloads.values()]
    for owner in owners:
        values |= {f"{symbol}_{owner.name}": value for symbol, value in owner.known.items()}
    return {index[name]: value for name, value in values.items() if name in index}


def tie_groups(
    mechanism: Mechanism, parameters: Sequence[Parameter], ties: Sequence[str]
) -> list[tuple[int, ...]]:
    """Columns that the named ties make equal."""
    groups: list[tuple[int, ...]] = []
    for name in ties:
        if name not in mechanism.ties:
            raise InputError(
                f"no tie '{name}' in robot '{mechanism.name}'" + nearest(name, mechanism.ties),
                remedy="describe it under `ties:` of the robot file",
            )
        groups += tied_columns(mechanism, mechanism.ties[name], parameters)
    return groups


def grouping_symbols(
    mechanism: Mechanism,
    model: Model,
    *,
    ties: Sequence[str] = (),
    rows: Sequence[str] | None = None,
    loads: Loads = ((),),
) -> Symbols:
    """Named dimensions in the coefficients of the structural grouping, where they match.

    Args:
        rows: Equations in use; None for all of the model.
    """

    def coefficients(robot: Mechanism) -> Mapping[tuple[str, str], float]:
        parameters = parameter_table(robot)
        chosen = _rows(robot, model, rows)
        base = structural_base(robot, model, parameters, chosen, ties=ties, loads=loads)
        return base.coefficients()

    units = {parameter.name: parameter.unit for parameter in parameter_table(mechanism)}
    return recover_symbols(mechanism, coefficients, units=units)


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
    mechanism = without_poses(mechanism, _measured_alone(mechanism))
    wanted = set(bodies)
    loose = [one.name for one in mechanism.cables if not {one.body_from, one.body_to} <= wanted | {BASE}]
    mechanism = without_cables(mechanism, loose)
    wanted |= {one.child for one in mechanism.joints if one.name in cable_coordinates(mechanism)}
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
    )


def _measured_alone(mechanism: Mechanism) -> tuple[str, ...]:
    """Measured joints without pose sensors; if a robot has pose sensors, all joints that move."""
    return _free_joints(mechanism) if mechanism.poses else mechanism.measured


def _measured_part(mechanism: Mechanism, joints: Collection[str], loops: Sequence[Loop]) -> tuple[str, ...]:
    """Measured joints of a sub-chain; without the loops that gave the others, all that move."""
    listed = _free_joints(mechanism) if mechanism.loops and not loops else mechanism.measured
    return tuple(name for name in listed if name in joints)
