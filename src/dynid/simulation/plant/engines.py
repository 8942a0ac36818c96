"""A robot follows a motion, with payloads that change, simulated by one of two engines.

| engine | plant |
|---|---|
| `dynid` | `forward_plant.py`: constrained forward dynamics of any mechanism |
| `mujoco` | `mujoco_plant.py`: accelerations by MuJoCo, an independent reference |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.registry import loaded
from dynid.dynamics.freedoms import Freedoms, freedoms_of
from dynid.excitation.series import Trajectory
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.motion.log import Log
from dynid.simulation.plant.control import Controller, followed
from dynid.simulation.plant.controller_sensors import sight_of
from dynid.simulation.plant.drives import Drives
from dynid.simulation.plant.reference import Reference, reference_along
from dynid.simulation.plant.run import PlantRun, check_bandwidth, joined
from dynid.simulation.plant.settings import PlantSettings, substeps
from dynid.simulation.prescribed import parameter_vector, payload_phases
from dynid.simulation.sensors import Sensing, recorded

# From robot, true parameters, state, settings, step, payloads, freedoms and largest efforts to its plant.
_PLANTS = {
    "dynid": "dynid.simulation.plant.forward_plant:ForwardPlant",
    "mujoco": "dynid.simulation.plant.mujoco_plant:plant_at",
}


class Plant(Protocol):
    """A robot at a state, with motors and friction.

    Attributes:
        z: Bristle deflection, shape (e,), in [rad] or [m].
        freedoms: Independent coordinates.
        felt: Inertia that each motor feels at the start, shape (a,), in [kg m^2] or [kg].
        drives: Friction of the plant.
    """

    z: Float[Array, "e"]
    freedoms: Freedoms
    felt: Float[Array, "a"]
    drives: Drives

    @property
    def state(self) -> tuple[Float[Array, "q"], Float[Array, "v"]]:
        """All tree coordinates, shapes (n_q,) and (n_v,)."""

    def drive(self, controller: Controller) -> Controller:
        """Attach a controller."""

    def recorded(self, t: Float[Array, "n"], n_steps: int, reference: Reference | None = None) -> PlantRun:
        """Simulate it at the samples t [s], with `n_steps` steps between samples."""


def run_plant(
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
    engine: str = "mujoco",
) -> PlantRun:
    """All coordinates of a robot simulated along a motion of its measured coordinates.

    Args:
        mechanism: The robot.
        truth: All standard parameters, in the order of the table or by name, SI.
        motion: Desired motion of the measured coordinates; the robot follows it approximately.
        rate: Sampling rate, in [Hz].
        duration: In [s]; both ends are sampled.
        settings: Steps, controller, friction, softness of the loops.
        payloads: Mounted at the beginning.
        changes: Times [s], increasing, and the payloads mounted from then on.
        believed: Parameters of the controller's model; default the true ones.
        encoders: Feedback of the controller, if selected in its settings; None: the true state.
        seed: Of the noise of these encoders.
        engine: `mujoco`, or `dynid` for dynid's own dynamics.
    """
    settings = settings or PlantSettings()
    names = [parameter.name for parameter in parameter_table(mechanism)]
    values = dict(zip(names, parameter_vector(mechanism, truth).tolist(), strict=True))
    beliefs = values if believed is None else believed
    reference = reference_along(
        mechanism, beliefs, motion, rate=rate, duration=duration, payloads=payloads, tension=settings.tension
    )
    sight = None
    if encoders is not None and settings.controller.feedback != "truth":
        sight = sight_of(mechanism, settings.controller, encoders, rate, duration, seed)
    n_steps = substeps(rate, settings.step, None if sight is None else 1.0 / sight.period)
    step = 1.0 / (rate * n_steps)
    check_bandwidth(settings.controller, step, sight)
    t = np.arange(round(duration * rate) + 1) / rate
    q, dq, z = reference.q, reference.dq, None
    make, freedoms, largest = loaded(_PLANTS[engine]), freedoms_of(mechanism), reference.largest
    controller: Controller | None = None
    runs: list[PlantRun] = []
    for mounted, rows in payload_phases(t, payloads, changes):
        plant: Plant = make(mechanism, values, q, dq, settings, step, mounted, freedoms, largest)
        plant.z = plant.z if z is None else z
        if controller is None:
            asked, width = settings.controller, plant.drives.width
            controller = followed(mechanism, reference, asked, plant.felt, beliefs, payloads, width, sight)
        plant.drive(controller)
        runs.append(plant.recorded(t[rows.start : rows.stop + 1], n_steps, reference))
        (q, dq), z, freedoms = plant.state, plant.z, plant.freedoms
    return joined(runs, sight)


def plant_log(
    mechanism: Mechanism,
    run: PlantRun,
    sensing: Sensing | None = None,
    *,
    seed: int = 0,
    payloads: tuple[str, ...] = (),
    name: str = "plant",
) -> Log:
    """The recorded log of a run.

    Args:
        mechanism: The robot.
        run: Of any engine.
        sensing: Encoders, noise, clock; default none of it.
        seed: Of the noise.
        payloads: Mounted during the recording.
        name: Of the log.
    """
    recording = recorded(run.course(mechanism), sensing or Sensing(), np.random.default_rng(seed))
    log = recording.log(mechanism, payloads, name)
    widths = f"; dry friction smoothed below {max(run.width.values()):.2g} rad/s or m/s" if run.width else ""
    words = f"RK4 steps of {run.step:.3g} s, loop gap at most {run.gap.max():.2g} m or rad{widths}"
    return replace(log, choices={**log.choices, "plant": words})
