"""The plant in time: MuJoCo's accelerations, integrated by Runge-Kutta with a controller at every stage.

MuJoCo's own `mj_step` holds the efforts during a step; here controller and friction are evaluated at
each of the four stages, so that a held effort costs no order of accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.errors import NoResultError
from dynid.excitation.measured import measured_motion
from dynid.excitation.sensing import Course, Per, Sensing, recorded
from dynid.excitation.series import Trajectory
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.plant.mujoco_model import mujoco_model
from dynid.plant.reference import reference_along
from dynid.plant.settings import DEFAULT_STEP, STIFF, Softness, substeps
from dynid.plant.stepper import Stepper

_BLOCK = 64  # logged samples for which the reference is made at a time


@dataclass(frozen=True, eq=False)
class PlantRun:
    """What the plant did, at the logged times; coordinates in dynid's order.

    Attributes:
        t: Time, shape (n,), in [s].
        q, dq, ddq: All tree coordinates, as MuJoCo has them, shapes (n, n_q), (n, n_v), (n, n_v).
        tau: Efforts that the motors apply, shape (n, a), in [N m] or [N].
        energy: Potential and kinetic, shape (n, 2), in [J].
        gap: Largest opening of the loops, shape (n,), in [m] or [rad].
        width: Speed scale of dry friction by owner, per s: see `Drives`.
        step: Of the integration, in [s].
    """

    t: Float[Array, "n"]
    q: Float[Array, "n q"]
    dq: Float[Array, "n v"]
    ddq: Float[Array, "n v"]
    tau: Float[Array, "n a"]
    energy: Float[Array, "n 2"]
    gap: Float[Array, "n"]
    width: Mapping[str, float]
    step: float


def simulate_mujoco(
    mechanism: Mechanism,
    truth: Float[Array, "p"] | Mapping[str, float],
    motion: Trajectory,
    *,
    rate: float,
    duration: float,
    step: float = DEFAULT_STEP,
    softness: Softness = STIFF,
    bandwidth: float = 10.0,
    encoder_resolution: Per = 0.0,
    torque_sigma: Per = 0.0,
    seed: int = 0,
    velocity: bool = False,
    acceleration: bool = False,
    tau_coloured: float | None = None,
    payloads: tuple[str, ...] = (),
    tension: float = 0.0,
    name: str = "mujoco",
) -> Log:
    """The log of a robot that MuJoCo moves along a motion of its measured coordinates.

    Args:
        mechanism: The robot.
        truth: All standard parameters, in the order of the table or by name, SI.
        motion: Desired, of the measured coordinates; the robot follows it nearly.
        rate: Samples a second, in [Hz].
        duration: In [s]; both ends are sampled.
        step: Longest step of the integration, in [s]; a whole number of them fits into a sample.
        softness: Of the loops.
        bandwidth: Of the controller around the desired motion, in [Hz].
        encoder_resolution: Step of the positions, one or per coordinate, in [rad] or [m]; 0: none.
        torque_sigma: Deviation of the effort noise, one or per actuator, in [N m] or [N].
        seed: Of the noise.
        velocity: Whether the plant's velocities are logged too.
        acceleration: Whether the plant's accelerations are logged too.
        tau_coloured: Correlation of the noise from one sample to the next, 0 to 1; None: white.
        payloads: Mounted during the recording.
        tension: Internal tension of a redundantly actuated closed robot, see `internal_tension`,
            in [N m] or [N].
        name: Of the log.
    """
    run = run_plant(
        mechanism,
        truth,
        motion,
        rate=rate,
        duration=duration,
        step=step,
        softness=softness,
        bandwidth=bandwidth,
        payloads=payloads,
        tension=tension,
    )
    return plant_log(
        mechanism,
        run,
        encoder_resolution=encoder_resolution,
        torque_sigma=torque_sigma,
        seed=seed,
        velocity=velocity,
        acceleration=acceleration,
        tau_coloured=tau_coloured,
        payloads=payloads,
        name=name,
    )


def plant_log(
    mechanism: Mechanism,
    run: PlantRun,
    *,
    encoder_resolution: Per = 0.0,
    torque_sigma: Per = 0.0,
    seed: int = 0,
    velocity: bool = False,
    acceleration: bool = False,
    tau_coloured: float | None = None,
    payloads: tuple[str, ...] = (),
    name: str = "mujoco",
) -> Log:
    """What a recorder writes down of a run; arguments as for `simulate_mujoco`."""
    course = Course(run.t, *measured_motion(mechanism, run.q, run.dq, run.ddq), run.tau)
    sensing = Sensing(
        resolution=encoder_resolution,
        effort_sigma=torque_sigma,
        correlation=tau_coloured,
        velocity=velocity,
        acceleration=acceleration,
    )
    log = recorded(course, sensing, np.random.default_rng(seed)).log(mechanism, payloads, name)
    widths = f"dry friction turns within {max(run.width.values(), default=0.0):.2g} rad/s or m/s of rest"
    told = (
        f"MuJoCo, RK4 steps of {run.step:.3g} s, loops open by at most {run.gap.max():.2g} m or rad; {widths}"
    )
    return replace(log, choices={**log.choices, "plant": told})


def run_plant(
    mechanism: Mechanism,
    truth: Float[Array, "p"] | Mapping[str, float],
    motion: Trajectory,
    *,
    rate: float,
    duration: float,
    step: float = DEFAULT_STEP,
    softness: Softness = STIFF,
    bandwidth: float = 10.0,
    payloads: tuple[str, ...] = (),
    tension: float = 0.0,
) -> PlantRun:
    """All coordinates of the plant along a motion; arguments as for `simulate_mujoco`."""
    n_steps = substeps(rate, step)
    built = mujoco_model(mechanism, truth, payloads=payloads, step=1.0 / (rate * n_steps), softness=softness)
    reference = reference_along(
        mechanism, built.truth, motion, rate=rate, duration=duration, payloads=payloads, tension=tension
    )
    plant = Stepper(built, reference.q, reference.dq)
    plant.follow(reference, 2.0 * np.pi * bandwidth)
    return _recorded(plant, rate, round(duration * rate) + 1, n_steps)


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
    """The plant without motor efforts from a state on: without friction it keeps its energy.

    Args:
        q: All tree positions, on the loops, shape (n_q,).
        dq: All tree velocities, along the loops, shape (n_v,), per s.
        mechanism, truth, rate, duration, step, softness, payloads: As for `simulate_mujoco`.
    """
    n_steps = substeps(rate, step)
    built = mujoco_model(mechanism, truth, payloads=payloads, step=1.0 / (rate * n_steps), softness=softness)
    return _recorded(Stepper(built, q, dq), rate, round(duration * rate) + 1, n_steps)


def _recorded(plant: Stepper, rate: float, n: int, n_steps: int) -> PlantRun:
    """Let the plant run for n samples, `n_steps` steps from each to the next."""
    built, data = plant.built, plant.data
    q, dq = np.empty((n, len(built.at_q))), np.empty((n, len(built.at_v)))
    ddq, tau = np.empty_like(dq), np.empty((n, len(plant.tau)))
    energy, gap = np.empty((n, 2)), np.zeros(n)
    for k in range(n):
        stage = 2 * n_steps * (k % _BLOCK)
        if stage == 0:
            plant.prepare(k / rate, n_steps * _BLOCK)
        plant.evaluate(stage)
        q[k], dq[k], ddq[k] = data.qpos[built.at_q], data.qvel[built.at_v], data.qacc[built.at_v]
        tau[k], energy[k] = plant.tau, data.energy
        gap[k] = np.abs(data.efc_pos).max(initial=0.0)
        if not np.isfinite(energy[k]).all():
            raise NoResultError(
                f"the plant of robot '{built.mechanism.name}' flew apart at {k / rate:.4g} s;"
                " smaller steps may help"
            )
        for i in range(n_steps if k < n - 1 else 0):
            plant.advance(stage + 2 * i)
            if i < n_steps - 1:
                plant.evaluate(stage + 2 * i + 2)
    width = dict(zip(plant.drives.owners, plant.drives.width.tolist(), strict=True))
    return PlantRun(np.arange(n) / rate, q, dq, ddq, tau, energy, gap, width, plant.step)
