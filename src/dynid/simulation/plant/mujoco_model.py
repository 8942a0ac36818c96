"""A Mechanism with its true parameters as a MuJoCo model.

A MuJoCo body is placed at the moving joint frame, so that every joint has the same positions and
velocities as in dynid (a universal joint is two hinges of one body, a free joint three slides and a
ball). The inertia is expressed in that frame, wherever dynid's body frame is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.errors import InputError, nearest
from dynid.mechanism.frame import Frame, identity_frame
from dynid.mechanism.inertia import SYMBOLS, is_physical, skew, unpack
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import BASE, Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.simulation.plant.equalities import ClosureBuilder, Helper, quaternion
from dynid.simulation.plant.settings import DEFAULT_STEP, STIFF, Softness
from dynid.simulation.prescribed import parameter_vector

TINY = 1e-8  # of the robot's mass and largest inertia: given to massless bodies for the simulation
_PHYSICAL_RTOL = 1e-9


@dataclass(frozen=True, eq=False)
class PlantModel:
    """A compiled model, and the indices of dynid's coordinates in it.

    Attributes:
        mechanism: The robot.
        truth: Every standard parameter by name, SI.
        model: MuJoCo's `MjModel`.
        at_q, at_v: Indices of dynid's positions and velocities in `qpos` and `qvel`.
        mounted: Payloads on the robot.
        invented: Massless bodies that get a tiny inertia (`TINY`) in MuJoCo.
        helpers: Links for loops that have no corresponding MuJoCo equality.
    """

    mechanism: Mechanism
    truth: Mapping[str, float]
    model: Any
    at_q: Int[Array, "q"]
    at_v: Int[Array, "v"]
    mounted: tuple[str, ...]
    invented: tuple[str, ...]
    helpers: tuple[Helper, ...]


def mujoco_model(
    mechanism: Mechanism,
    truth: Float[Array, "p"] | Mapping[str, float],
    *,
    payloads: tuple[str, ...] = (),
    step: float = DEFAULT_STEP,
    softness: Softness = STIFF,
) -> PlantModel:
    """Build and compile the MuJoCo model of a robot.

    Args:
        mechanism: Trees and closed robots; every kind of joint, loop and coupling.
        truth: All standard parameters, in the order of the table or by name, SI.
        payloads: Mounted on the robot.
        step: Of the integration, in [s]: the stiffness of the loops depends on it.
        softness: Of the loops.
    """
    if mechanism.cables:
        raise InputError(
            f"robot '{mechanism.name}' has cables, which the MuJoCo plant does not support",
            file=mechanism.file,
            remedy="use simulate_log, or simulate_free_motions with locked cables",
        )
    mj = _mujoco()
    chi = parameter_vector(mechanism, truth)
    names = [parameter.name for parameter in parameter_table(mechanism)]
    builder = _Builder(mj, mechanism, dict(zip(names, chi.tolist(), strict=True)), payloads)
    spec = builder.spec
    spec.option.timestep = step
    spec.option.integrator = mj.mjtIntegrator.mjINT_RK4
    spec.option.solver = mj.mjtSolver.mjSOL_NEWTON
    spec.option.tolerance = 0.0  # only equalities: a quadratic problem, solved in one or two steps
    spec.option.iterations = 20
    spec.option.jacobian = mj.mjtJacobian.mjJAC_DENSE
    spec.option.gravity = mechanism.gravity
    spec.option.enableflags |= int(mj.mjtEnableBit.mjENBL_ENERGY)
    closures = ClosureBuilder(mj, spec, builder.bodies, softness, step, builder.usual).close(mechanism)
    try:
        model = spec.compile()
    except ValueError as error:
        raise InputError(f"MuJoCo rejects robot '{mechanism.name}': {error}", file=mechanism.file) from error
    at_q, at_v = builder.places(model)
    model.dof_armature[at_v] = [builder.truth.get(f"Ia_{name}", 0.0) for name in mechanism.coordinates]
    _lighten(mj, model, [*builder.light, *closures.light(builder.tiny)])
    for tendon, length in closures.lengths:
        model.tendon_length0[tendon.id] = length  # MuJoCo counts from here, not from zero
    return PlantModel(
        mechanism, builder.truth, model, at_q, at_v, payloads, tuple(builder.invented), closures.helpers
    )


def _mujoco() -> Any:
    try:
        import mujoco
    except ImportError as error:
        raise InputError(
            "the plant needs MuJoCo, which is not installed", remedy="pip install 'dynid[sim]'"
        ) from error
    return mujoco


class _Builder:
    """Bodies, joints, inertias and rotors of a mechanism; one instance per model."""

    def __init__(
        self, mj: Any, mechanism: Mechanism, truth: Mapping[str, float], mounted: tuple[str, ...]
    ) -> None:
        self.mj, self.mechanism, self.truth = mj, mechanism, truth
        self.spec = mj.MjSpec()
        self.spec.modelname = mechanism.name
        self.bodies: dict[str, tuple[Any, Frame]] = {BASE: (self.spec.worldbody, identity_frame())}
        self.joints: list[list[Any]] = []
        self.invented: list[str] = []
        self.light: list[tuple[Any, float, Float[Array, "3"]]] = []
        # Mass [kg] and inertia [kg m^2] of a massless body, and of a typical body of this robot.
        bodies = [principal(self._ten(joint.child)) for joint in mechanism.joints]
        total, largest = sum(solid[0] for solid in bodies), max(float(solid[2][2]) for solid in bodies)
        self.tiny, self.usual = (TINY * total, TINY * largest), (total / len(bodies), largest)
        for joint in mechanism.joints:
            self._add(joint)
        for name in mounted:
            self._mount(name)
        for actuator in mechanism.actuators:
            if actuator.name not in mechanism.coordinates:
                self._rotor(actuator.name, actuator.on)

    def places(self, model: Any) -> tuple[Int[Array, "q"], Int[Array, "v"]]:
        """Indices of dynid's positions and velocities in qpos and qvel: MuJoCo orders depth first."""
        at_q: list[int] = []
        at_v: list[int] = []
        ball = self.mj.mjtJoint.mjJNT_BALL
        for made in self.joints:
            for joint in made:
                q, v = int(model.jnt_qposadr[joint.id]), int(model.jnt_dofadr[joint.id])
                at_q += range(q, q + (4 if joint.type == ball else 1))
                at_v += range(v, v + (3 if joint.type == ball else 1))
        return np.array(at_q, dtype=np.int64), np.array(at_v, dtype=np.int64)

    def _add(self, joint: Joint) -> None:
        parent, frame = self.bodies[joint.parent]
        place = frame @ joint.placement
        body = parent.add_body(name=joint.child, pos=place.p, quat=quaternion(self.mj, place.R))
        self.joints.append([self._joint(body, *primitive) for primitive in _primitives(self.mj, joint)])
        self.bodies[joint.child] = (body, joint.body)
        self._fill(body, joint.child, joint.body, moving=joint.kind is not JointKind.FIXED)

    def _joint(self, body: Any, name: str, kind: Any, axis: Float[Array, "3"]) -> Any:
        return body.add_joint(name=name, type=kind, axis=axis)

    def _mount(self, name: str) -> None:
        """A payload is one more body without a joint."""
        payloads = self.mechanism.payloads
        if name not in payloads:
            raise InputError(f"unknown payload '{name}'" + nearest(name, payloads), file=self.mechanism.file)
        carrier, frame = self.bodies[payloads[name].body]
        place = frame @ payloads[name].frame
        body = carrier.add_body(name=name, pos=place.p, quat=quaternion(self.mj, place.R))
        self._fill(body, name, identity_frame(), moving=False)

    def _rotor(self, name: str, on: Mapping[str, float]) -> None:
        """The rotor of a motor that drives several joints: a fixed tendon with that inertia."""
        tendon = self.spec.add_tendon(name=name, armature=self.truth.get(f"Ia_{name}", 0.0))
        for coordinate, ratio in on.items():
            tendon.wrap_joint(coordinate, ratio)

    def _ten(self, name: str) -> Float[Array, "10"]:
        chi = np.array([self.truth.get(f"{symbol}_{name}", 0.0) for symbol in SYMBOLS])
        if not is_physical(chi, _PHYSICAL_RTOL):
            raise InputError(
                f"the true parameters of '{name}' are not physically consistent",
                file=self.mechanism.file,
                remedy="give all ten parameters of a physically consistent body",
            )
        return chi

    def _fill(self, body: Any, name: str, frame: Frame, *, moving: bool) -> None:
        """Mass and inertia about the centre of mass, in principal axes; a massless moving body gets some.

        Missing values have typical size until the model is compiled: see `_lighten`.
        """
        mass, com, moments, axes = principal(self._ten(name))
        body.ipos, body.iquat = frame.R @ com + frame.p, quaternion(self.mj, frame.R @ axes)
        body.mass, body.inertia, body.explicitinertial = mass, moments, True
        (least_mass, least), (usual_mass, usual) = self.tiny, self.usual
        if moving and (mass < least_mass or moments[0] < least):
            self.invented.append(name)
            self.light.append((body, max(mass, least_mass), np.maximum(moments, least)))
            body.mass = mass if mass >= least_mass else usual_mass
            body.inertia = np.maximum(moments, usual)


def _lighten(mj: Any, model: Any, bodies: list[tuple[Any, float, Float[Array, "3"]]]) -> None:
    """Set the tiny inertias of massless bodies, but keep the scale of every equality.

    MuJoCo softens an equality in proportion to the mobility of its free bodies; the mobility of a
    massless body is so large that its loops would not hold.
    """
    mj.mj_setConst(model, mj.MjData(model))
    scales = [np.array(x) for x in (model.body_invweight0, model.dof_invweight0, model.tendon_invweight0)]
    for body, mass, moments in bodies:
        model.body_mass[body.id], model.body_inertia[body.id] = mass, moments
    mj.mj_setConst(model, mj.MjData(model))
    model.body_invweight0[:], model.dof_invweight0[:], model.tendon_invweight0[:] = scales


def principal(
    chi: Float[Array, "10"],
) -> tuple[float, Float[Array, "3"], Float[Array, "3"], Float[Array, "3 3"]]:
    """Mass, centre of mass, principal moments about it in increasing order, and their axes (columns)."""
    mass, moment, inertia = unpack(chi)
    com = moment / mass if mass > 0.0 else np.zeros(3)
    moments, axes = np.linalg.eigh(inertia + mass * skew(com) @ skew(com))
    moments = np.maximum(moments, 0.0)
    moments[2] = min(moments[2], moments[0] + moments[1])  # of a flat or thin body: rounding
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return mass, com, moments, axes


def _primitives(mj: Any, joint: Joint) -> list[tuple[str, Any, Float[Array, "3"]]]:
    """Name, type and axis of the MuJoCo joints of a joint, in the order of its positions."""
    kinds, eye = mj.mjtJoint, np.eye(3)
    ball = (joint.name, kinds.mjJNT_BALL, eye[2])
    if joint.kind is JointKind.FIXED:
        return []
    if joint.kind is JointKind.SPHERICAL:
        return [ball]
    if joint.kind is JointKind.FREE:
        slides = zip(joint.coordinates[:3], eye, strict=True)
        return [*((name, kinds.mjJNT_SLIDE, axis) for name, axis in slides), ball]
    kind = kinds.mjJNT_SLIDE if joint.kind is JointKind.PRISMATIC else kinds.mjJNT_HINGE
    return [(name, kind, axis) for name, axis in zip(joint.coordinates, joint.axes, strict=True)]
