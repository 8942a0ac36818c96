"""MuJoCo plant: MuJoCo's accelerations, integrated by Runge-Kutta with a controller at every stage.

MuJoCo's `mj_step` holds the efforts during a step. Here controller and friction are evaluated at each of the
four stages, which keeps the order of accuracy. A controller needs a Python loop over steps; identification
does not use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, NoResultError
from dynid.dynamics.freedoms import Freedoms, freedoms_of
from dynid.excitation.friction import FrictionLaw
from dynid.mechanism.mechanism import Mechanism
from dynid.simulation.plant.control import Controller
from dynid.simulation.plant.drives import Drives, effective_inertia, term_tables
from dynid.simulation.plant.equalities import place_helper
from dynid.simulation.plant.mujoco_model import PlantModel, mujoco_model
from dynid.simulation.plant.reference import Reference
from dynid.simulation.plant.run import PlantRun, check_tracking
from dynid.simulation.plant.settings import PlantSettings

_BLOCK = 64  # logged samples per block of the reference


def plant_at(
    mechanism: Mechanism,
    truth: Mapping[str, float],
    q: Float[Array, "q"],
    dq: Float[Array, "v"],
    settings: PlantSettings,
    step: float,
    mounted: tuple[str, ...] = (),
    freedoms: Freedoms | None = None,
    efforts: Float[Array, "a"] | None = None,
) -> Stepper:
    """The plant of a robot at a state; arguments as for `ForwardPlant`."""
    built = mujoco_model(mechanism, truth, payloads=mounted, step=step, softness=settings.softness)
    return Stepper(built, q, dq, settings.friction, efforts, freedoms)


_RANK_RTOL = 1e-9  # of the largest singular value of the equations: redundant ones


class Stepper:
    """A MuJoCo model at a state, with the forces that act on it.

    Attributes:
        data: MuJoCo's `MjData`.
        tau: Efforts of the motors at the last evaluation, shape (a,), in [N m] or [N].
        drives: Friction of the plant.
        felt: Inertia that each motor feels at the start, the loops closed, shape (a,), in [kg m^2] or [kg].
        freedoms: Independent coordinates, as the controller needs them.
    """

    def __init__(
        self,
        built: PlantModel,
        q: Float[Array, "q"],
        dq: Float[Array, "v"],
        laws: Mapping[str, FrictionLaw] | None = None,
        efforts: Float[Array, "a"] | None = None,
        freedoms: Freedoms | None = None,
    ) -> None:
        import mujoco

        self._mj, self.built, self.model = mujoco, built, built.model
        self.data: Any = mujoco.MjData(self.model)
        robot = built.mechanism
        self.step = float(self.model.opt.timestep)
        self._C = self._spread(robot.actuator_map)
        _refuse_accelerations(robot)
        self.drives = Drives(robot, built.truth, laws)
        self.z = self.drives.at_rest
        self._elapsed, self._begun = 0.0, np.zeros(len(self.drives.owners))
        self._D = self._spread(self.drives.D)
        self._terms = term_tables(robot, built.truth)
        self.tau = np.zeros(len(self._C))
        self._controller: Controller | None = None
        self._set(q, dq)
        mobility = self._mobility()
        self.felt = effective_inertia(mobility, self._C)
        self.drives.set_width(effective_inertia(mobility, self._D), self.step, efforts)
        self._rubbing = self.drives.tables._replace(D=self._D)
        self._loads = self.drives.loads
        self.freedoms = freedoms or freedoms_of(robot)

    def drive(self, controller: Controller) -> Controller:
        """Attach a controller."""
        self._controller = controller
        q, dq = self.state
        controller.begin(q[None], dq[None], self.step)
        return controller

    @property
    def state(self) -> tuple[Float[Array, "q"], Float[Array, "v"]]:
        """All tree coordinates in dynid's order, shapes (n_q,) and (n_v,)."""
        return np.array(self.data.qpos[self.built.at_q]), np.array(self.data.qvel[self.built.at_v])

    def recorded(self, t: Float[Array, "n"], n_steps: int, reference: Reference | None = None) -> PlantRun:
        """Simulate it at the samples t [s], with `n_steps` steps between samples."""
        built, data, n = self.built, self.data, len(t)
        q, dq = np.empty((n, len(built.at_q))), np.empty((n, len(built.at_v)))
        ddq, tau = np.empty_like(dq), np.empty((n, len(self.tau)))
        energy, gap = np.empty((n, 2)), np.zeros(n)
        for k in range(n):
            stage = 2 * n_steps * (k % _BLOCK)
            if stage == 0:
                self.prepare(t[k], n_steps * _BLOCK)
            self.begin(stage, recorded=True)
            q[k], dq[k], ddq[k] = data.qpos[built.at_q], data.qvel[built.at_v], data.qacc[built.at_v]
            tau[k], energy[k] = self.tau, data.energy
            gap[k] = np.abs(data.efc_pos).max(initial=0.0)
            if reference is not None:
                check_tracking(built.mechanism, reference, t[k : k + 1], q[k : k + 1])
            if not np.isfinite(energy[k]).all():
                raise NoResultError(
                    f"the simulation of robot '{built.mechanism.name}' diverged at {t[k]:.4g} s;"
                    " smaller steps may help"
                )
            for i in range(n_steps if k < n - 1 else 0):
                self.begin(stage + 2 * i)
                self.advance(stage + 2 * i)
        width = dict(zip(self.drives.owners, self.drives.width.tolist(), strict=True))
        return PlantRun(t, q, dq, ddq, tau, energy, gap, width, self.step)

    def prepare(self, t: float, n_steps: int) -> None:
        """Compute the reference for the next `n_steps` steps: both ends and the middle of each."""
        if self._controller is not None:
            times = t + 0.5 * self.step * np.arange(2 * n_steps + 1)
            self._controller.load(times)

    def begin(self, stage: int, recorded: bool = False) -> None:
        """Evaluate the state at the start of a step. With `recorded`, the accelerations are those of the
        recorded efforts: at a tick, the mean of the previous and the new ones."""
        control = self._controller
        fresh = control is not None and control.tick(self.freedoms, stage, self.step)
        if recorded and fresh and control is not None and control.memory is not None:
            self.evaluate(stage, control.memory.held.mean(axis=0))
            return
        self.evaluate(stage)

    def evaluate(self, stage: int, tau: Float[Array, "a"] | None = None) -> None:
        """Forces and accelerations of the present state; `stage` counts half steps since `prepare`."""
        data, v = self.data, self.data.qvel
        if tau is not None:
            self.tau = tau
        elif self._controller is not None:
            self.tau = self._controller.efforts(self.freedoms, stage, *self.state)
        s = self._D @ v
        z = self.z
        if self.drives.bends and self._elapsed:
            z = self.drives.bent(z, 0.5 * (self._begun + s), self._elapsed)
        resist = self.drives.resist(s, z)
        force = self.tau @ self._C - resist @ self._D
        if self.drives.loaded:
            self._load(force, s, resist)
        if self._terms is not None:
            force -= self._declared(rubbing=False)
        data.qfrc_applied[:] = force
        self._mj.mj_forward(self.model, data)

    def _load(self, force: Float[Array, "w"], s: Float[Array, "o"], resist: Float[Array, "o"]) -> None:
        """Subtract load friction from the forces, from the generalised forces without loop reactions."""
        from dynid.simulation.plant.drive_kernels import load_friction

        self._mj.mj_fwdPosition(self.model, self.data)
        J = self._equations()
        _, sizes, Vt = np.linalg.svd(J, full_matrices=True)
        rank = int((sizes > _RANK_RTOL * sizes.max(initial=0.0)).sum())
        wearing = self._declared(rubbing=True) if self._terms is not None else np.zeros_like(force)
        side = force - wearing
        N = np.ascontiguousarray(Vt[rank:].T)
        sign, most = self.drives.smooth_sign(s), np.zeros_like(resist)
        load_friction(self._rubbing, self._loads, self._C, N, self.tau, side, sign, resist, most)
        force[:] = side + wearing

    def _declared(self, *, rubbing: bool) -> Float[Array, "w"]:
        """Efforts of the declared columns against each coordinate; rubbing: only velocity-dependent ones."""
        from dynid.simulation.plant.drive_kernels import declared

        q, dq = self.state
        efforts = np.zeros(len(dq))
        declared(self._terms, q, dq, rubbing, efforts)
        out = np.zeros(self.model.nv)
        out[self.built.at_v] = efforts
        return out

    def advance(self, stage: int) -> None:
        """One Runge-Kutta step from an evaluated state, which began at `stage`."""
        data, h = self.data, self.step
        q, v, a = data.qpos.copy(), data.qvel.copy(), data.qacc.copy()
        sum_v, sum_a, v_k = v.copy(), a.copy(), v
        self._begun = self._D @ v
        for weight, part, half in ((2.0, 0.5, 1), (2.0, 0.5, 1), (1.0, 1.0, 2)):
            data.qpos[:] = q
            self._mj.mj_integratePos(self.model, data.qpos, v_k, part * h)
            v_k = v + (part * h) * data.qacc
            data.qvel[:] = v_k
            self._elapsed = part * h
            self.evaluate(stage + half)
            sum_v += weight * v_k
            sum_a += weight * data.qacc
        data.qpos[:] = q
        self._mj.mj_integratePos(self.model, data.qpos, sum_v, h / 6.0)
        data.qvel[:] = v + (h / 6.0) * sum_a
        self._elapsed = 0.0
        if self.drives.bends:
            self.z = self.drives.bent(self.z, 0.5 * (self._begun + self._D @ data.qvel), h)
        if self._controller is not None:
            self._controller.remember(*self.state, h)

    def _spread(self, rows: Float[Array, "o v"]) -> Float[Array, "o w"]:
        """Rows over dynid's velocities as rows over MuJoCo's."""
        out = np.zeros((len(rows), self.model.nv))
        out[:, self.built.at_v] = rows
        return out

    def _set(self, q: Float[Array, "q"], dq: Float[Array, "v"]) -> None:
        """Set a state; helper links are moved to match."""
        mj, data = self._mj, self.data
        data.qpos[self.built.at_q] = q
        mj.mj_kinematics(self.model, data)
        for helper in self.built.helpers:
            place_helper(self.model, data, mj, helper)
        data.qvel[self.built.at_v] = dq
        mj.mj_forward(self.model, data)
        dependent = np.setdiff1d(np.arange(self.model.nv), self.built.at_v)
        if dependent.size:
            J = self._equations()
            data.qvel[dependent] = np.linalg.lstsq(J[:, dependent], -J @ data.qvel, rcond=None)[0]
            mj.mj_forward(self.model, data)

    def _equations(self) -> Float[Array, "c v"]:
        return np.array(self.data.efc_J).reshape(-1, self.model.nv)[: self.data.nefc]

    def _mobility(self) -> Float[Array, "v v"]:
        """Accelerations per unit of force with the loops closed: the inverse inertia along them."""
        M = np.zeros((self.model.nv, self.model.nv))
        self._mj.mj_fullM(self.model, self.data, M)
        free = np.linalg.inv(M)
        J = self._equations()
        return np.asarray(free - free @ J.T @ np.linalg.pinv(J @ free @ J.T, rcond=1e-9) @ J @ free)


def _refuse_accelerations(robot: Mechanism) -> None:
    for term in robot.terms:
        if any(kind == "ddq" for kind, _ in term.expression.signals):
            raise InputError(
                f"term '{term.name}' depends on an acceleration, which MuJoCo cannot apply as a force",
                file=robot.file,
                remedy="describe coupled rotors by a motor on several joints with the drive term Ia, or use"
                " dynid's own engine",
            )
