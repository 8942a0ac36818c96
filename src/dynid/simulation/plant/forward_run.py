"""Runs of dynid's own plant: a robot follows a motion, with payloads that change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.dynamics.freedoms import freedoms_of
from dynid.excitation.series import Trajectory
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.simulation.plant.control import Controller
from dynid.simulation.plant.controller_sensors import Sight, sight_of
from dynid.simulation.plant.forward_plant import ForwardPlant
from dynid.simulation.plant.layout import Samples
from dynid.simulation.plant.reference import Reference, reference_along
from dynid.simulation.plant.run import PlantRun, joined
from dynid.simulation.plant.settings import PlantSettings, substeps
from dynid.simulation.plant.stability import check_bandwidth, check_tracking, unstable
from dynid.simulation.prescribed import parameter_vector, payload_phases
from dynid.simulation.sensors import Sensing

_BLOCK = 64  # logged samples per block of the reference
_OPEN = 1e-6  # m or rad: loops that were not closed again


def run_forward(
    mechanism: Mechanism,
    truth: Float[Array, "p"] | Mapping[str, float],
    motion: Trajectory,
    *,
    rate: float,
    duration: float,
    settings: PlantSettings | None = None,
    payloads: tuple[str, ...] = (),
    changes: Sequence[tuple[float, tuple[str, ...]]] = (),
    believed: Mapping[str, float] | None = None,
    encoders: Sensing | None = None,
    seed: int | np.random.SeedSequence = 0,
) -> PlantRun:
    """All coordinates of a robot simulated by dynid's own dynamics; arguments as for `run_plant`."""
    settings = settings or PlantSettings()
    names = [parameter.name for parameter in parameter_table(mechanism)]
    values = dict(zip(names, parameter_vector(mechanism, truth).tolist(), strict=True))
    beliefs = values if believed is None else believed
    reference = reference_along(
        mechanism, beliefs, motion, rate=rate, duration=duration, payloads=payloads, tension=settings.tension
    )
    sight = seen_by(mechanism, settings, encoders, rate, duration, seed)
    n_steps = substeps(rate, settings.step, None if sight is None else 1.0 / sight.period)
    step = 1.0 / (rate * n_steps)
    check_bandwidth(settings.controller, step, sight)
    t = np.arange(round(duration * rate) + 1) / rate
    q, dq, z = reference.q, reference.dq, None
    freedoms = freedoms_of(mechanism)
    controller: Controller | None = None
    runs = []
    for mounted, rows in payload_phases(t, payloads, changes):
        plant = ForwardPlant(mechanism, values, q, dq, settings, step, mounted, freedoms, reference.largest)
        plant.z = plant.z if z is None else z
        if controller is None:
            controller = plant.follow(reference, settings, beliefs, payloads, sight)
        plant.drive(controller)
        runs.append(recorded_run(plant, t[rows.start : rows.stop + 1], n_steps, reference))
        q, dq, z, freedoms = plant.q[0], plant.dq[0], plant.z, plant.freedoms
    return joined(runs, sight)


def seen_by(
    mechanism: Mechanism,
    settings: PlantSettings,
    encoders: Sensing | None,
    rate: float,
    duration: float,
    seed: int | np.random.SeedSequence,
) -> Sight | None:
    """The encoders of the controller; None if it knows the true state."""
    if encoders is None or settings.controller.feedback == "truth":
        return None
    return sight_of(mechanism, settings.controller, encoders, rate, duration, seed)


def recorded_run(
    plant: ForwardPlant, t: Float[Array, "n"], n_steps: int, reference: Reference | None = None
) -> PlantRun:
    """Simulate a plant at the samples t [s], with `n_steps` steps between samples."""
    robot, n = plant.mechanism, len(t)
    q, dq = np.full((n, plant.q.shape[1]), np.nan), np.full((n, plant.dq.shape[1]), np.nan)
    ddq, tau, work = np.empty_like(dq), np.empty((n, len(robot.actuators))), np.empty(n)
    out = Samples(q, dq, ddq, tau, work)
    # A controller that is too stiff may overflow: this is reported below.
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, max(n - 1, 1), _BLOCK):
            last = min(first + _BLOCK, n - 1)
            lost: InputError | None = None
            try:
                plant.advance(float(t[first]), (last - first) * n_steps, n_steps, first, out)
            except np.linalg.LinAlgError:
                lost = unstable(float(t[first]), "the equations of motion have no solution")
            except InputError as error:
                lost = error
            if reference is not None:
                known = slice(first, last + 1)
                check_tracking(robot, reference, t[known], q[known], lost is not None)
            if lost is not None:
                raise lost
    gap = assembly_of(robot).gaps(q) if robot.is_closed else np.zeros(n)
    if not gap.max(initial=0.0) < _OPEN:
        raise InputError(
            f"the loops of robot '{robot.name}' opened by {gap.max():.2g} m or rad at"
            f" {t[int(np.argmax(gap))]:.4g} s: the motion reaches a singular pose",
            file=robot.file,
            remedy="choose a motion that stays away from it, or smaller steps",
        )
    width = dict(zip(plant.drives.owners, plant.drives.width.tolist(), strict=True))
    counted = None if robot.terms else work  # declared columns may contain any force
    return PlantRun(t, q, dq, ddq, tau, plant.energies(q, dq), gap, width, plant.step, counted)
