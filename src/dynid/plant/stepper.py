"""One plant in time: state, forces of controller and friction, and Runge-Kutta steps.

The Python loop over steps is the nature of a plant with a controller; it is kept to a few small
products a stage, and nothing of it is on the way of an identification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.excitation.friction import FrictionLaw
from dynid.mechanism.mechanism import Mechanism
from dynid.plant.control import Controller, followed
from dynid.plant.drives import Drives
from dynid.plant.equalities import place_helper
from dynid.plant.mujoco_model import PlantModel
from dynid.plant.reference import Reference
from dynid.plant.settings import ControllerSettings


class Stepper:
    """A MuJoCo model at a state, with the forces that act on it.

    Attributes:
        data: MuJoCo's `MjData`.
        tau: Efforts of the motors at the last evaluation, shape (a,), in [N m] or [N].
        drives: Friction of the plant.
    """

    def __init__(
        self,
        built: PlantModel,
        q: Float[Array, "q"],
        dq: Float[Array, "v"],
        laws: Mapping[str, FrictionLaw] | None = None,
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
        self.tau = np.zeros(len(self._C))
        self._controller: Controller | None = None
        self._set(q, dq)
        self._mobility = self._constrained_mobility()
        self.drives.set_width(self.felt(self._D), self.step)

    def follow(
        self,
        reference: Reference,
        settings: ControllerSettings,
        believed: Mapping[str, float],
        payloads: tuple[str, ...],
    ) -> None:
        """Let a controller with these beliefs follow a reference."""
        self._controller = followed(
            self.built.mechanism,
            reference,
            settings,
            self.felt(self._C),
            believed,
            payloads,
            self.drives.width,
        )

    def prepare(self, t: float, n_steps: int) -> None:
        """Make the reference for the next `n_steps` steps: the two ends and the middle of each."""
        if self._controller is not None:
            times = t + 0.5 * self.step * np.arange(2 * n_steps + 1)
            self._controller.load(times)

    def evaluate(self, stage: int) -> None:
        """Forces and accelerations of the present state; `stage` counts half steps since `prepare`."""
        data, v = self.data, self.data.qvel
        if self._controller is not None:
            self.tau = self._controller.efforts(stage, data.qpos[self.built.at_q], v[self.built.at_v])
        s = self._D @ v
        z = self.z
        if self.drives.bends and self._elapsed:
            z = self.drives.bent(z, 0.5 * (self._begun + s), self._elapsed)
        force = self.tau @ self._C - self.drives.resist(s, z) @ self._D
        if self.drives.has_terms:
            force[self.built.at_v] -= self.drives.terms(data.qpos[self.built.at_q], v[self.built.at_v])
        data.qfrc_applied[:] = force
        self._mj.mj_forward(self.model, data)

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


def _refuse_accelerations(robot: Mechanism) -> None:
    for term in robot.terms:
        if any(kind == "ddq" for kind, _ in term.expression.signals):
            raise InputError(
                f"term '{term.name}' depends on an acceleration, which MuJoCo cannot apply as a force",
                file=robot.file,
                remedy="describe coupled rotors by a motor on several joints with the drive term Ia, or use"
                " dynid's own engine",
            )
