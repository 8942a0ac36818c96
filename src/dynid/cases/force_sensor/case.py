"""A force/torque sensor (`force_sensor:`): its load is identified from its six components.

The robot as the equations of a force sensor see it: geometry, six rigid joints, the tool.

The robot keeps its geometry and loses its masses and drives; behind the body that carries the sensor come
six joints that never move, one per measured component, and the tool: the efforts of these joints are the
components of the wrench.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from dynid.case import Case
from dynid.cases.force_sensor.checks import rotation
from dynid.cases.force_sensor.compensation_export import compensation_files
from dynid.cases.force_sensor.mounting import settle_sensor, settled_sensor, shown_entries, shown_parts
from dynid.checks.check import Check
from dynid.common.errors import InputError, nearest
from dynid.common.expression import parse
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit
from dynid.mechanism.force_sensor import COMPONENTS, IMU, UNITS, ForceSensor, Run, run_bias
from dynid.mechanism.frame import Frame, identity_frame
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import BASE, Actuator, Body, Coupling, Mechanism, Payload, Term
from dynid.motion.log import Log
from dynid.projection.model import Model
from dynid.statistics.assemble import EstimateParts
from dynid.unknown import Unknown


class ForceSensorCase(Case):
    """Model `wrench` of a robot with a force sensor: readings have no drive terms, the load is one body."""

    unknowns: ClassVar[tuple[Unknown, ...]] = (Unknown(settle_sensor, of_equations=True),)
    checks: ClassVar[Mapping[str, Check]] = {"Was the sensor rotated enough?": rotation}
    measures_efforts: ClassVar[bool] = False

    def mount(self, mechanism: Mechanism, experiment: Experiment) -> Mechanism:
        """The robot with the experiment's sensor on it."""
        sensor = experiment.force_sensor
        if sensor is not None and mechanism.force_sensor is not None:
            mechanism = replace(mechanism, force_sensor=sensor)
        elif sensor is not None:
            mechanism = with_force_sensor(mechanism, sensor)
        check_loads(mechanism, experiment.payloads, experiment.file)
        return mechanism

    def robot(self, robot: Mechanism, logs: Sequence[Log], experiment: Experiment) -> Mechanism:
        """One bias per run, if requested."""
        return with_runs(robot, _runs_of(logs))

    def defaults(self, experiment: Experiment, model: Model, mechanism: Mechanism) -> Experiment:
        """As set in the experiment."""
        return experiment

    def finished(self, parts: EstimateParts, fit: Fit) -> EstimateParts:
        """Whole angles instead of corrections."""
        return shown_parts(fit.problem, parts)

    def recorded(
        self, fit: Fit, standard: tuple[Mapping[str, Any], ...]
    ) -> tuple[Experiment, tuple[Mapping[str, Any], ...], dict[str, str]]:
        """Runs of the biases, whole angles, and the program that takes the tool out of the readings."""
        problem, unseen = fit.problem, list(fit.parts.not_identifiable)
        experiment = fit.experiment.changed(force_sensor=settled_sensor(problem, fit.chi))
        return experiment, shown_entries(problem, standard), compensation_files(problem, fit.chi, unseen)


def _runs_of(logs: Sequence[Log]) -> list[Run]:
    """All segments of the logs."""
    return [
        Run(log.name, i + 1, float(log.t[start])) for log in logs for i, (start, _) in enumerate(log.segments)
    ]


FORCE_SENSOR = ForceSensorCase()


_EYE = np.eye(3)


def with_force_sensor(mechanism: Mechanism, sensor: ForceSensor) -> Mechanism:
    """The robot as the sensor's equations see it: geometry, six rigid joints, the tool."""
    _check(mechanism, sensor)
    if sensor.imu is None:
        joints, measured, carrier = mechanism.joints, mechanism.measured, sensor.body
        bodies = {name: Body(name, ()) for name in mechanism.bodies}
        kept: dict[str, Any] = {"couplings": mechanism.couplings}
    else:
        joints, bodies = _signals(IMU, BASE, "imu")
        measured, carrier = IMU, joints[-1].child
        kept = {"couplings": (), "loops": (), "poses": (), "start": {}, "measured_sigma": {}}
        kept |= {"cables": (), "swivels": (), "free": (), "capsules": {}, "meshes": {}}
    rigid, massless = _signals(COMPONENTS, carrier, "sensor", sensor.frame, last=sensor.tool)
    bodies = {**bodies, **massless, sensor.tool: Body(sensor.tool, known=sensor.known, prior=sensor.prior)}
    locks = tuple(Coupling(name, {}) for name in COMPONENTS)
    changes = {
        **kept,
        "joints": (*joints, *rigid),
        "bodies": bodies,
        "measured": measured,
        "couplings": (*kept["couplings"], *locks),
        "actuators": tuple(Actuator(name, {name: 1.0}) for name in COMPONENTS),
        "drive": dict.fromkeys(COMPONENTS, ("Off",)) if sensor.bias == "constant" else {},
        "terms": tuple(Term(name, COMPONENTS[0], parse("0"), "rad") for name in sensor.angles),
        "payloads": {n: p for n, p in mechanism.payloads.items() if p.body == sensor.tool},
        # If the rotation was too small, the tool parameters are reported as lost, not the biases.
        "order": ("Off_*", sensor.tool),
        "force_sensor": sensor,
        "mounted_model": sensor.identified_by,
    }
    plain: dict[str, Any] = {"known": {}, "prior": {}, "ties": {}, "limits": {}, "stribeck": {}}
    return replace(mechanism, **plain, **changes, model="wrench", geometry={}, rebuild=None)


def check_loads(mechanism: Mechanism, payloads: Mapping[str, Payload], file: str | None) -> None:
    """Refuse payloads that a force sensor does not measure; without a sensor any body can carry them.

    Args:
        payloads: That the experiment puts on the robot.
        file: Of the experiment.
    """
    sensor = mechanism.force_sensor
    for name, payload in payloads.items() if sensor is not None else ():
        if sensor is not None and payload.body != sensor.tool:
            raise InputError(
                f"payload '{name}' is on body '{payload.body}', but the force sensor measures the load on"
                f" '{sensor.tool}'",
                file=file,
                place=f"payloads.{name}.body",
                remedy=f"set  body: {sensor.tool}  and give its frame in the axes of the sensor",
            )


def with_runs(mechanism: Mechanism, runs: Sequence[Run]) -> Mechanism:
    """One bias per run and component, if requested; a saved result has its runs already.

    Args:
        runs: Segments of the logs to identify from.
    """
    sensor = mechanism.force_sensor
    if sensor is None or sensor.bias != "segment":
        return mechanism
    chosen = sensor.runs or tuple(runs)
    terms = [term for term in mechanism.terms if not term.name.startswith("Off_")]
    for run in chosen:
        terms += [
            Term(run_bias(name, run), name, parse("1"), unit)
            for name, unit in zip(COMPONENTS, UNITS, strict=True)
        ]
    return replace(mechanism, terms=tuple(terms), force_sensor=replace(sensor, runs=chosen))


def _signals(
    names: Sequence[str], parent: str, prefix: str, frame: Frame | None = None, last: str = ""
) -> tuple[tuple[Joint, ...], dict[str, Body]]:
    """A chain of slides and hinges along x, y, z under these names, with massless bodies between."""
    children = [f"{prefix}_{name}" for name in names[:-1]] + [last or f"{prefix}_{names[-1]}"]
    places = [frame or identity_frame(), *(identity_frame() for _ in names[1:])]
    hinged = names is COMPONENTS
    joints = tuple(
        Joint(
            name,
            JointKind.REVOLUTE if hinged and i >= 3 else JointKind.PRISMATIC,
            before,
            child,
            places[i],
            (_EYE[i % 3],),
        )
        for i, (name, (before, child)) in enumerate(zip(names, pairwise([parent, *children]), strict=True))
    )
    return joints, {child: Body(child, ()) for child in children}


def _check(mechanism: Mechanism, sensor: ForceSensor) -> None:
    """Refuse a sensor on no body, and names that are taken."""
    if sensor.imu is None and sensor.body != BASE and sensor.body not in mechanism.bodies:
        raise InputError(
            f"the force sensor is on unknown body '{sensor.body}'" + nearest(sensor.body, mechanism.bodies),
            file=mechanism.file,
            place="force_sensor.body",
            remedy="name the body on which the sensor is mounted",
        )
    if sensor.gravity == "estimate" and not np.any(mechanism.gravity):
        raise InputError(
            f"robot '{mechanism.name}' has no gravity, so its direction cannot be estimated",
            file=mechanism.file,
            place="force_sensor.gravity",
            remedy="give its magnitude in the robot file: gravity: [0, 0, -9.81]",
        )
    taken = {*mechanism.bodies, *mechanism.payloads, BASE}
    if sensor.tool in taken:
        raise InputError(
            f"'{sensor.tool}' is already a body of robot '{mechanism.name}'",
            place="force_sensor.tool",
            remedy="give the tool on the sensor another name",
        )
    clash = set(COMPONENTS) & {joint.name for joint in mechanism.joints}
    if clash and sensor.imu is None:
        raise InputError(
            f"robot '{mechanism.name}' has a joint '{min(clash)}', which is the name of a component of the"
            " sensor",
            file=mechanism.file,
            remedy="rename that joint",
        )
