"""dynid's own plant: constrained forward dynamics of any mechanism, integrated by Runge-Kutta.

    N^T ID(q, dq, ddq; chi) = N^T (C^T tau - D^T resist),        A(q) dq = 0

Motors act along C, friction along D; both are evaluated at every stage, unless a controller holds its
efforts from tick to tick. Joints with dry friction stick and slip. After every step the state is projected
onto the loops. Work is integrated by the same stages: energy that comes neither from motors nor from friction
is an error, and is reported.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.dynamics.forward import SINGULAR, ForwardDynamics
from dynid.dynamics.freedoms import ClosedFreedoms, Freedoms, freedoms_of
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS, ROTOR
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.regressor.regressor import energy_row
from dynid.simulation.plant.control import Controller
from dynid.simulation.plant.drives import Drives, body_model, effective_inertia
from dynid.simulation.plant.layout import Linkage, Robot, Samples, State, Steps
from dynid.simulation.plant.reference import Reference
from dynid.simulation.plant.run import PlantRun, check_tracking, unstable
from dynid.simulation.plant.settings import PlantSettings
from dynid.simulation.prescribed import parameter_vector

_BLOCK = 64  # logged samples per block of the reference
_OPEN = 1e-6  # m or rad: loops that were not closed again
_POOR = 100.0  # size of N above which better coordinates are searched


class ForwardPlant:
    """A robot at a state, with motors and friction.

    Args:
        mechanism: The robot.
        truth: Standard parameters by name, SI.
        q, dq: State at the start, feasible, shapes (n_q,) and (n_v,).
        settings: Steps, controller, friction.
        step: Of the integration, in [s].
        mounted: Payloads on the robot.
        freedoms: Of the mechanism, shared by consecutive plants.
        efforts: Largest of the motors, shape (a,), in [N m] or [N], for load-dependent friction.

    Attributes:
        q, dq: The state, shapes (1, n_q) and (1, n_v).
        z: Bristle deflection, shape (e,), in [rad] or [m].
        work: Done on the robot so far, shape (1,), in [J].
        felt: Inertia that each motor feels at the start, the loops closed, shape (a,), in [kg m^2] or [kg].
        freedoms: Current independent coordinates; replaced when they become singular.
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
        efforts: Float[Array, "a"] | None = None,
    ) -> None:
        self.mechanism, self.step = mechanism, step
        self.drives = Drives(mechanism, truth, settings.friction)
        # Friction and offsets act as forces; rotors are part of the masses.
        rubbing = set(DRIVE_SYMBOLS) - set(ROTOR)
        rigid = {name: 0.0 if name.partition("_")[0] in rubbing else x for name, x in truth.items()}
        self.freedoms = freedoms or freedoms_of(mechanism)
        chi = parameter_vector(mechanism, rigid)
        self.dynamics = ForwardDynamics(mechanism, chi, mounted, self.freedoms)
        self._energy_chi = _body_values(mechanism, rigid, mounted)
        self.model = body_model(mechanism, rigid, mounted, self.drives)
        self.q, self.dq = np.array(q, float)[None], np.array(dq, float)[None]
        self.z, self.work = self.drives.at_rest, np.zeros(1)
        self._slip = np.sign(self.drives.D @ self.dq[0]).astype(np.int64)
        self._controller: Controller | None = None
        mobility = self._mobility()
        self.felt = effective_inertia(mobility, mechanism.actuator_map)
        self.drives.set_width(effective_inertia(mobility, self.drives.D), step, efforts)

    @property
    def state(self) -> tuple[Float[Array, "q"], Float[Array, "v"]]:
        """All tree coordinates, shapes (n_q,) and (n_v,)."""
        return self.q[0], self.dq[0]

    def drive(self, controller: Controller) -> Controller:
        """Attach a controller."""
        self._controller = controller
        return controller

    def advance(self, t: float, steps: int, n_steps: int, row: int, out: Samples) -> None:
        """Integrate some steps from time t [s], and fill rows of `out` at the samples, starting at `row`.

        Args:
            n_steps: From sample to sample.
            out: Of all samples.
        """
        from dynid.simulation.plant.run_kernels import run_steps

        control = self._controller or self._idle()
        control.begin(self.q, self.dq, self.step)
        control.load(t + 0.5 * self.step * np.arange(2 * steps + 1))
        at, failed, most = 0, -1, _POOR
        while True:
            ticks = control.ticks(self.step)
            masses = [system.masses for system in (self.model, control.model) if system is not None]
            room = max(len(mass.inertia) for mass in masses)
            plan = Steps(at, steps, n_steps, ticks, row, room, self.step, most)
            state = State(self.q, self.dq, self.z, self._slip, self.work)
            at, condition = run_steps(self._tables(), control.driving, state, plan, out)
            if condition == 0.0:
                return
            if condition > 0.0 and at != failed and isinstance(self.freedoms, ClosedFreedoms):
                # Choose other coordinates when those chosen at the start pose become singular.
                failed, self.freedoms = at, ClosedFreedoms(self.mechanism, self.q)
            elif condition > 0.0 and most < SINGULAR:
                most = SINGULAR  # there are none better
            else:
                raise unstable(t + at * self.step, "the equations of motion have no solution")

    def recorded(self, t: Float[Array, "n"], n_steps: int, reference: Reference | None = None) -> PlantRun:
        """Simulate it at the samples t [s], with `n_steps` steps between samples."""
        robot, n = self.mechanism, len(t)
        q, dq = np.full((n, self.q.shape[1]), np.nan), np.full((n, self.dq.shape[1]), np.nan)
        ddq, tau, work = np.empty_like(dq), np.empty((n, len(robot.actuators))), np.empty(n)
        out = Samples(q, dq, ddq, tau, work)
        # A controller that is too stiff may overflow: this is reported below.
        with np.errstate(over="ignore", invalid="ignore"):
            for first in range(0, max(n - 1, 1), _BLOCK):
                last = min(first + _BLOCK, n - 1)
                lost: InputError | None = None
                try:
                    self.advance(float(t[first]), (last - first) * n_steps, n_steps, first, out)
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
        counted = None if robot.terms else work  # declared columns may contain any force
        return PlantRun(t, q, dq, ddq, tau, self.energies(q, dq), gap, {}, self.step, counted)

    def _tables(self) -> Robot:
        linkage = Linkage(self.freedoms.closure.tables, self.freedoms.plan.tables)
        C, model = np.ascontiguousarray(self.mechanism.actuator_map), self.model
        return Robot(linkage, model.masses, model.terms, self.drives.tables, self.drives.loads, C)

    def _idle(self) -> Controller:
        """Motors without efforts."""
        none = np.zeros(len(self.mechanism.actuators))

        def nothing(times: Float[Array, "n"]) -> tuple[Float[Array, "n a"], Float[Array, "n a"]]:
            return np.zeros((len(times), len(none))), np.zeros((len(times), len(none)))

        return self.drive(Controller(self.mechanism, (none, none), nothing))

    def energies(self, q: Float[Array, "n q"], dq: Float[Array, "n v"]) -> Float[Array, "n 2"]:
        """Potential and kinetic energy of states, shape (n, 2), in [J]."""
        still = np.zeros_like(dq)
        potential = energy_row(self.mechanism, q, still) @ self._energy_chi
        Mv = self.dynamics.inverse(q, still, dq) - self.dynamics.inverse(q, still, still)
        return np.column_stack([potential, 0.5 * np.sum(dq * Mv, axis=1)])

    def _mobility(self) -> Float[Array, "v v"]:
        """Accelerations per unit of force with the loops closed: the inverse inertia along them."""
        N, mass = (x[0] for x in self.dynamics.inertia(self.q))
        if not np.linalg.eigvalsh(mass).min() > 0.0:
            raise InputError(
                f"true parameters of robot '{self.mechanism.name}' give a mass matrix that is not positive",
                file=self.mechanism.file,
                remedy="give physically consistent masses and inertias, or rotor inertias",
            )
        return np.asarray(N @ np.linalg.solve(mass, N.T))


def _body_values(
    mechanism: Mechanism, truth: Mapping[str, float], mounted: tuple[str, ...]
) -> Float[Array, "p"]:
    """Ten parameters of every body and of every payload; of those not mounted zeros."""
    owners = [*(joint.child for joint in mechanism.joints), *mechanism.payloads]
    absent = set(mechanism.payloads) - set(mounted)
    return np.array(
        [0.0 if key in absent else truth.get(f"{symbol}_{key}", 0.0) for key in owners for symbol in SYMBOLS]
    )
