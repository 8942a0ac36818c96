"""dynid's own plant: constrained forward dynamics of any mechanism, integrated by Runge-Kutta.

    N^T ID(q, dq, ddq; chi) = N^T (C^T tau - D^T resist),        A(q) dq = 0

Motors push along C, friction along D; both are evaluated at every stage. After every step the state is put
back onto the loops. Work is integrated by the same stages, so that what energy does not come from motors and
friction is an error of the integration, and is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.dynamics.forward import ForwardDynamics
from dynid.dynamics.freedoms import Freedoms, freedoms_of
from dynid.dynamics.integrate import advance
from dynid.errors import InputError
from dynid.excitation.series import Trajectory
from dynid.excitation.simulate import parameter_vector, payload_phases
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import DRIVE_SYMBOLS, Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.plant.control import followed
from dynid.plant.drives import Drives
from dynid.plant.reference import Reference, reference_along
from dynid.plant.run import PlantRun, joined
from dynid.plant.settings import PlantSettings, substeps
from dynid.plant.stability import check_bandwidth, check_tracking, unstable
from dynid.regressor.regressor import energy_row

_BLOCK = 64  # logged samples for which the reference is made at a time
_OPEN = 1e-6  # m or rad: loops that were not closed again
_INERTIAL = "Ia"


@runtime_checkable
class MotorEfforts(Protocol):
    """What drives a plant: a `Controller`, or anything like it."""

    def load(self, times: Float[Array, "n"]) -> None:
        """Prepare for the stages at `times` [s]."""

    def efforts(self, stage: int, q: Float[Array, "q"], dq: Float[Array, "v"]) -> Float[Array, "a"]:
        """Of the motors at a stage and a state, in [N m] or [N]."""


class ForwardPlant:
    """A robot at a state, with motors and friction.

    Args:
        mechanism: The robot.
        truth: Standard parameters by name, SI.
        q, dq: State at the start, feasible, shapes (n_q,) and (n_v,).
        settings: Steps, controller, friction.
        step: Of the integration, in [s].
        mounted: Payloads on the robot.
        freedoms: Of the mechanism, shared by plants that follow each other.

    Attributes:
        q, dq: The state, shapes (1, n_q) and (1, n_v).
        work: Done on the robot so far, in [J].
    """

    def __init__(
        self,
        mechanism: Mechanism,
        truth: Mapping[str, float],
        q: Float[Array, "q"],
        dq: Float[Array, "v"],
        settings: PlantSettings,
        step: float,
        mounted: tuple[str, ...] = (),
        freedoms: Freedoms | None = None,
    ) -> None:
        self.mechanism, self.step = mechanism, step
        self.drives = Drives(mechanism, truth, settings.friction)
        # Friction and offsets act as forces (rounded off where they jump); rotors stay among the masses.
        rubbing = set(DRIVE_SYMBOLS) - {_INERTIAL}
        rigid = {name: 0.0 if name.partition("_")[0] in rubbing else x for name, x in truth.items()}
        C = mechanism.actuator_map
        ports = np.concatenate([C, -self.drives.D])
        self._n_motors = len(C)
        self.dynamics = ForwardDynamics(
            mechanism, parameter_vector(mechanism, rigid), mounted, freedoms, ports
        )
        self._energy_chi = _body_values(mechanism, rigid, mounted)
        self.q, self.dq = np.array(q)[None], np.array(dq)[None]
        self.z, self.work = self.drives.at_rest, 0.0
        self._stage, self._begun = 0, np.zeros(len(self.drives.owners))
        self._powers: list[float] = []
        self._controller: MotorEfforts | None = None
        self._mobility = self._mobile()
        self.drives.set_width(self.felt(self.drives.D), step)

    def follow(
        self,
        reference: Reference,
        settings: PlantSettings,
        believed: Mapping[str, float],
        payloads: tuple[str, ...],
    ) -> None:
        """Let a controller with these beliefs follow a reference."""
        felt, width = self.felt(self.mechanism.actuator_map), self.drives.width
        self.drive(followed(self.mechanism, reference, settings.controller, felt, believed, payloads, width))

    def drive(self, controller: MotorEfforts) -> None:
        """Let anything that gives motor efforts drive the robot."""
        self._controller = controller

    def prepare(self, t: float, n_steps: int) -> None:
        """Make the reference for the next `n_steps` steps: the two ends and the middle of each."""
        if self._controller is not None:
            self._controller.load(t + 0.5 * self.step * np.arange(2 * n_steps + 1))

    def felt(self, rows: Float[Array, "o v"]) -> Float[Array, "o"]:
        """Inertia that velocities `rows` dq feel at the start, the others being free, SI."""
        mobile = np.einsum("ov,vw,ow->o", rows, self._mobility, rows)
        return np.asarray(1.0 / np.maximum(mobile, 1e-12 * np.abs(self._mobility).max()))

    def efforts(self, stage: int) -> Float[Array, "e"]:
        """Of motors and friction at the present state; `stage` counts half steps since `prepare`."""
        return self._act(stage, self.q[0], self.dq[0], self.z)

    def accelerations(self, efforts: Float[Array, "e"]) -> Float[Array, "v"]:
        """Of all coordinates at the present state, per s^2."""
        return np.asarray(self.dynamics.accelerations(self.q, self.dq, efforts[None]).ddq[0])

    def advance(self, stage: int) -> None:
        """One step from the present state, which began at `stage`."""
        h = self.step
        self._stage, self._begun, self._powers = stage, self.drives.D @ self.dq[0], []
        self.q, self.dq = advance(self.dynamics, self.q, self.dq, self._during, 0.0, h)
        if self.drives.bends:
            self.z = self.drives.bent(self.z, 0.5 * (self._begun + self.drives.D @ self.dq[0]), h)
        first, second, third, fourth = self._powers
        self.work += h / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)

    def _during(self, t: float, q: Float[Array, "n q"], dq: Float[Array, "n v"]) -> Float[Array, "n e"]:
        """Efforts a time t [s] after the step began; their power is remembered."""
        z = self.z
        if self.drives.bends and t:
            z = self.drives.bent(z, 0.5 * (self._begun + self.drives.D @ dq[0]), t)
        found = self._act(self._stage + round(2.0 * t / self.step), q[0], dq[0], z)
        self._powers.append(float(found @ (self.dynamics.ports @ dq[0])))
        return found[None]

    def energies(self, q: Float[Array, "n q"], dq: Float[Array, "n v"]) -> Float[Array, "n 2"]:
        """Potential and kinetic energy of states, shape (n, 2), in [J]."""
        still = np.zeros_like(dq)
        potential = energy_row(self.mechanism, q, still) @ self._energy_chi
        Mv = self.dynamics.inverse(q, still, dq) - self.dynamics.inverse(q, still, still)
        return np.column_stack([potential, 0.5 * np.sum(dq * Mv, axis=1)])

    def _act(self, stage: int, q: Array, dq: Array, z: Array) -> Float[Array, "e"]:
        tau = np.zeros(self._n_motors)
        if self._controller is not None:
            tau = self._controller.efforts(stage, q, dq)
        return np.concatenate([tau, self.drives.resist(self.drives.D @ dq, z)])

    def _mobile(self) -> Float[Array, "v v"]:
        """Accelerations per unit of force with the loops closed: the inverse inertia along them."""
        found = self.dynamics.accelerations(self.q, self.dq, np.zeros((1, len(self.dynamics.ports))))
        N = found.N[0]
        if not np.linalg.eigvalsh(found.mass[0]).min() > 0.0:
            raise InputError(
                f"the true parameters of robot '{self.mechanism.name}' give an inertia that is not positive",
                file=self.mechanism.file,
                remedy="give masses and inertias that bodies can have, or rotor inertias",
            )
        return np.asarray(N @ np.linalg.solve(found.mass[0], N.T))


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
) -> PlantRun:
    """All coordinates of a robot that dynid's own dynamics move; arguments as for `run_plant`."""
    settings = settings or PlantSettings()
    names = [parameter.name for parameter in parameter_table(mechanism)]
    values = dict(zip(names, parameter_vector(mechanism, truth).tolist(), strict=True))
    beliefs = values if believed is None else believed
    reference = reference_along(
        mechanism, beliefs, motion, rate=rate, duration=duration, payloads=payloads, tension=settings.tension
    )
    n_steps = substeps(rate, settings.step)
    step = 1.0 / (rate * n_steps)
    check_bandwidth(settings.controller, step)
    t = np.arange(round(duration * rate) + 1) / rate
    q, dq, z = reference.q, reference.dq, None
    freedoms = freedoms_of(mechanism)
    runs = []
    for mounted, rows in payload_phases(t, payloads, changes):
        plant = ForwardPlant(mechanism, values, q, dq, settings, step, mounted, freedoms)
        plant.z = plant.z if z is None else z
        plant.follow(reference, settings, beliefs, payloads)
        runs.append(recorded_run(plant, t[rows.start : rows.stop + 1], n_steps, reference))
        q, dq, z = plant.q[0], plant.dq[0], plant.z
    return joined(runs)


def recorded_run(
    plant: ForwardPlant, t: Float[Array, "n"], n_steps: int, reference: Reference | None = None
) -> PlantRun:
    """Let a plant run through the samples at t [s], `n_steps` steps from each to the next."""
    robot, n = plant.mechanism, len(t)
    q, dq = np.empty((n, plant.q.shape[1])), np.empty((n, plant.dq.shape[1]))
    ddq, tau, work = np.empty_like(dq), np.empty((n, len(robot.actuators))), np.empty(n)
    # A controller that is too stiff overflows before anybody looks: that is told below.
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(n):
            stage = 2 * n_steps * (k % _BLOCK)
            if stage == 0:
                plant.prepare(t[k], n_steps * _BLOCK)
            efforts = plant.efforts(stage)
            q[k], dq[k], tau[k], work[k] = plant.q[0], plant.dq[0], efforts[: tau.shape[1]], plant.work
            if reference is not None:
                check_tracking(robot, reference, t[k], q[k])
            try:
                ddq[k] = plant.accelerations(efforts)
                for i in range(n_steps if k < n - 1 else 0):
                    plant.advance(stage + 2 * i)
            except np.linalg.LinAlgError:
                raise unstable(t[k], "the equations of motion have no solution") from None
    gap = assembly_of(robot).gaps(q) if robot.is_closed else np.zeros(n)
    if not gap.max(initial=0.0) < _OPEN:
        raise InputError(
            f"the loops of robot '{robot.name}' opened by {gap.max():.2g} m or rad at"
            f" {t[int(np.argmax(gap))]:.4g} s: the motion runs into a singular pose",
            file=robot.file,
            remedy="choose a motion that stays away from it, or smaller steps",
        )
    width = dict(zip(plant.drives.owners, plant.drives.width.tolist(), strict=True))
    counted = None if robot.terms else work  # declared columns may hold any force
    return PlantRun(t, q, dq, ddq, tau, plant.energies(q, dq), gap, width, plant.step, counted)


def _body_values(
    mechanism: Mechanism, truth: Mapping[str, float], mounted: tuple[str, ...]
) -> Float[Array, "p"]:
    """Ten parameters of every body and of every payload; of those not mounted zeros."""
    owners = [*(joint.child for joint in mechanism.joints), *mechanism.payloads]
    absent = set(mechanism.payloads) - set(mounted)
    return np.array(
        [0.0 if one in absent else truth.get(f"{symbol}_{one}", 0.0) for one in owners for symbol in SYMBOLS]
    )
