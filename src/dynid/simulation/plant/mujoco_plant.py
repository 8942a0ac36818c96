"""MuJoCo plant: MuJoCo's accelerations, integrated by Runge-Kutta with a controller at every stage.

MuJoCo's `mj_step` holds the efforts during a step. Here controller and friction are evaluated at
each of the four stages, which keeps the order of accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import NoResultError
from dynid.excitation.series import Trajectory
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.motion.log import Log
from dynid.simulation.plant.control import Controller
from dynid.simulation.plant.forward_run import seen_by
from dynid.simulation.plant.mujoco_model import mujoco_model
from dynid.simulation.plant.reference import Reference, reference_along
from dynid.simulation.plant.run import PlantRun, joined
from dynid.simulation.plant.settings import DEFAULT_STEP, STIFF, PlantSettings, Softness, substeps
from dynid.simulation.plant.stability import check_bandwidth, check_tracking
from dynid.simulation.plant.stepper import Stepper
from dynid.simulation.prescribed import parameter_vector, payload_phases
from dynid.simulation.sensors import Sensing, recorded

_BLOCK = 64  # logged samples per block of the reference


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
) -> PlantRun:
    """All coordinates of a robot simulated by MuJoCo along a motion of its measured coordinates.

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
    """
    settings = settings or PlantSettings()
    values = dict(zip(_names(mechanism), parameter_vector(mechanism, truth).tolist(), strict=True))
    beliefs = values if believed is None else believed
    reference = reference_along(
        mechanism, beliefs, motion, rate=rate, duration=duration, payloads=payloads, tension=settings.tension
    )
    sight = seen_by(mechanism, settings, encoders, rate, duration, seed)
    n_steps = substeps(rate, settings.step, None if sight is None else 1.0 / sight.period)
    step = 1.0 / (rate * n_steps)
    check_bandwidth(settings.controller, step, sight)
    t = np.arange(round(duration * rate) + 1) / rate
    q, dq = reference.q, reference.dq
    z: Float[Array, "e"] | None = None
    controller: Controller | None = None
    runs = []
    for mounted, rows in payload_phases(t, payloads, changes):
        built = mujoco_model(mechanism, values, payloads=mounted, step=step, softness=settings.softness)
        plant = Stepper(built, q, dq, settings.friction, reference.largest)
        plant.z = plant.z if z is None else z
        if controller is None:
            controller = plant.follow(reference, settings.controller, beliefs, payloads, sight)
        plant.drive(controller)
        times = t[rows.start : rows.stop + 1]
        runs.append(_recorded(plant, rate, times, n_steps, reference))
        q, dq, z = runs[-1].q[-1], runs[-1].dq[-1], plant.z
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
    widths = f"dry friction smoothed below {max(run.width.values(), default=0.0):.2g} rad/s or m/s"
    words = f"RK4 steps of {run.step:.3g} s, loop gap at most {run.gap.max():.2g} m or rad; {widths}"
    return replace(log, choices={**log.choices, "plant": words})


def release(
    mechanism: Mechanism,
    truth: Float[Array, "p"] | Mapping[str, float],
    q: Float[Array, "q"],
    dq: Float[Array, "v"],
    *,
    rate: float,
    duration: float,
    step: float = DEFAULT_STEP,
    softness: Softness = STIFF,
    payloads: tuple[str, ...] = (),
) -> PlantRun:
    """The plant without motor efforts, from a given state: without friction it conserves energy.

    Args:
        q: All tree positions, on the loops, shape (n_q,).
        dq: All tree velocities, along the loops, shape (n_v,), per s.
        step: Longest step, in [s].
        softness: Of the loops.
        mechanism, truth, rate, duration, payloads: As for `run_plant`.
    """
    n_steps = substeps(rate, step)
    built = mujoco_model(mechanism, truth, payloads=payloads, step=1.0 / (rate * n_steps), softness=softness)
    return _recorded(Stepper(built, q, dq), rate, np.arange(round(duration * rate) + 1) / rate, n_steps)


def _recorded(
    plant: Stepper, rate: float, t: Float[Array, "n"], n_steps: int, reference: Reference | None = None
) -> PlantRun:
    """Simulate the plant at the samples t, with `n_steps` steps between samples."""
    built, data, n = plant.built, plant.data, len(t)
    q, dq = np.empty((n, len(built.at_q))), np.empty((n, len(built.at_v)))
    ddq, tau = np.empty_like(dq), np.empty((n, len(plant.tau)))
    energy, gap = np.empty((n, 2)), np.zeros(n)
    for k in range(n):
        stage = 2 * n_steps * (k % _BLOCK)
        if stage == 0:
            plant.prepare(t[k], n_steps * _BLOCK)
        plant.begin(stage, recorded=True)
        q[k], dq[k], ddq[k] = data.qpos[built.at_q], data.qvel[built.at_v], data.qacc[built.at_v]
        tau[k], energy[k] = plant.tau, data.energy
        gap[k] = np.abs(data.efc_pos).max(initial=0.0)
        if reference is not None:
            check_tracking(built.mechanism, reference, t[k : k + 1], q[k : k + 1])
        if not np.isfinite(energy[k]).all():
            raise NoResultError(
                f"the simulation of robot '{built.mechanism.name}' diverged at {k / rate:.4g} s;"
                " smaller steps may help"
            )
        for i in range(n_steps if k < n - 1 else 0):
            plant.begin(stage + 2 * i)
            plant.advance(stage + 2 * i)
    width = dict(zip(plant.drives.owners, plant.drives.width.tolist(), strict=True))
    return PlantRun(t, q, dq, ddq, tau, energy, gap, width, plant.step)


def _names(mechanism: Mechanism) -> list[str]:
    return [parameter.name for parameter in parameter_table(mechanism)]
