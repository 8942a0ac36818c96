"""One plant in time: state, forces of controller and friction, and Runge-Kutta steps.

The Python loop over steps is the nature of a plant with a controller; it is kept to a few small
products a stage, and nothing of it is on the way of an identification.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.plant.control import Controller
from dynid.plant.drives import Drives
from dynid.plant.equalities import place_helper
from dynid.plant.mujoco_model import PlantModel
from dynid.plant.reference import Reference, position_map


class Stepper:
    """A MuJoCo model at a state, with the forces that act on it.

    Attributes:
        data: MuJoCo's `MjData`.
        tau: Efforts of the motors at the last evaluation, shape (a,), in [N m] or [N].
        drives: Friction of the plant.
    """

    def __init__(self, built: PlantModel, q: Float[Array, "q"], dq: Float[Array, "v"]) -> None:
        import mujoco

        self._mj, self.built, self.model = mujoco, built, built.model
        self.data: Any = mujoco.MjData(self.model)
        robot = built.mechanism
        self.step = float(self.model.opt.timestep)
        self._C = self._spread(robot.actuator_map)
        self.drives = Drives(robot, built.truth)
        self._D = self._spread(self.drives.D)
        self.tau = np.zeros(len(self._C))
        self._controller: Controller | None = None
        self._set(q, dq)
        self._mobility = self._constrained_mobility()
        self.drives.set_width(self.felt(self._D), self.step)

    def follow(self, reference: Reference, omega: float) -> None:
        """Let a controller of bandwidth omega [rad/s] follow a reference."""
        Q = np.zeros((len(self._C), self.model.nq))
        Q[:, self.built.at_q] = position_map(self.built.mechanism)
        self._controller = Controller(reference, Q, self._C, self.felt(self._C), omega)

    def prepare(self, t: float, n_steps: int) -> None:
        """Make the reference for the next `n_steps` steps: the two ends and the middle of each."""
        if self._controller is not None:
            times = t + 0.5 * self.step * np.arange(2 * n_steps + 1)
            self._controller.load(times, self.drives, self._D)

    def evaluate(self, stage: int) -> None:
        """Forces and accelerations of the present state; `stage` counts half steps since `prepare`."""
        data, v = self.data, self.data.qvel
        if self._controller is not None:
            self.tau = self._controller.efforts(stage, data.qpos, v)
        force = self.tau @ self._C - self.drives.resist(self._D @ v) @ self._D
        if self.drives.has_terms:
            force[self.built.at_v] -= self.drives.terms(data.qpos[self.built.at_q], v[self.built.at_v])
        data.qfrc_applied[:] = force
        self._mj.mj_forward(self.model, data)

    def advance(self, stage: int) -> None:
        """One Runge-Kutta step from an evaluated state, which began at `stage`."""
        data, h = self.data, self.step
        q, v, a = data.qpos.copy(), data.qvel.copy(), data.qacc.copy()
        sum_v, sum_a, v_k = v.copy(), a.copy(), v
        for weight, part, half in ((2.0, 0.5, 1), (2.0, 0.5, 1), (1.0, 1.0, 2)):
            data.qpos[:] = q
            self._mj.mj_integratePos(self.model, data.qpos, v_k, part * h)
            v_k = v + (part * h) * data.qacc
            data.qvel[:] = v_k
            self.evaluate(stage + half)
            sum_v += weight * v_k
            sum_a += weight * data.qacc
        data.qpos[:] = q
        self._mj.mj_integratePos(self.model, data.qpos, sum_v, h / 6.0)
        data.qvel[:] = v + (h / 6.0) * sum_a

    def felt(self, rows: Float[Array, "o v"]) -> Float[Array, "o"]:
        """Inertia that velocities `rows` dq feel at the start, the others being free, SI."""
        mobile = np.einsum("ov,vw,ow->o", rows, self._mobility, rows)
        return np.asarray(1.0 / np.maximum(mobile, 1e-12 * np.abs(self._mobility).max()))

    def _spread(self, rows: Float[Array, "o v"]) -> Float[Array, "o w"]:
        """Rows over dynid's velocities as rows over MuJoCo's."""
        out = np.zeros((len(rows), self.model.nv))
        out[:, self.built.at_v] = rows
        return out

    def _set(self, q: Float[Array, "q"], dq: Float[Array, "v"]) -> None:
        """Take up a state; helper links are moved so that they fit."""
        mj, data = self._mj, self.data
        data.qpos[self.built.at_q] = q
        mj.mj_kinematics(self.model, data)
        for helper in self.built.helpers:
            place_helper(self.model, data, mj, helper)
        data.qvel[self.built.at_v] = dq
        mj.mj_forward(self.model, data)
        own = np.setdiff1d(np.arange(self.model.nv), self.built.at_v)
        if own.size:
            J = self._equations()
            data.qvel[own] = np.linalg.lstsq(J[:, own], -J @ data.qvel, rcond=None)[0]
            mj.mj_forward(self.model, data)

    def _equations(self) -> Float[Array, "c v"]:
        return np.array(self.data.efc_J).reshape(-1, self.model.nv)[: self.data.nefc]

    def _constrained_mobility(self) -> Float[Array, "v v"]:
        """Accelerations per unit of force with the loops closed: the inverse inertia along them."""
        M = np.zeros((self.model.nv, self.model.nv))
        self._mj.mj_fullM(self.model, self.data, M)
        free = np.linalg.inv(M)
        J = self._equations()
        return np.asarray(free - free @ J.T @ np.linalg.pinv(J @ free @ J.T, rcond=1e-9) @ J @ free)
