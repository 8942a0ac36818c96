"""Efforts of a written model by another program: MuJoCo, Pinocchio; dynid only where neither is installed.

The program gives the efforts f of the tree at given positions, velocities and accelerations. Loops are not
solved by it: f is projected by dynid's own directions N, tau = (J^T)^+ N^T f, as for the estimate. MuJoCo is
asked without contacts, limits, equalities, springs and gravity compensation.

Friction of a joint is damping dq + friction sign(dq), with the numbers that the program has read: the
`frictionloss` of MuJoCo is a constraint, which gives less than this below some speed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.exporters.contract import Described, EffortsOf, Exported
from dynid.exporters.link_tree import DriveSplit
from dynid.exporters.sidecar import rest_values
from dynid.exporters.states import along, balanced, model_rows, tree_states
from dynid.kinematics.coordinates import States
from dynid.mechanism.frame import rotation_of
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import Mechanism
from dynid.regressor.few_states import few_states_matrix


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model in another program.

    Attributes:
        program: Its name and version.
        efforts: Tree states of the mechanism -> efforts of its coordinates, shape (n, v).
    """

    program: str
    efforts: Callable[[States], Float[Array, "n v"]]


def read_back(
    load: Callable[[], Loaded], mechanism: Mechanism, side: Path | None, split: DriveSplit
) -> EffortsOf:
    """Efforts of the motors by a loaded model, with the terms of its robot file where `side` is given."""
    loaded = load()
    rest = None if side is None else _rest(mechanism, side, split)

    def rows(states: States) -> Float[Array, "n d"]:
        modelled = along(states, loaded.efforts(states))
        return modelled if rest is None else modelled + rest(states)

    def efforts(q: Any, dq: Any, ddq: Any) -> Any:
        states = tree_states(mechanism, q, dq, ddq)
        return balanced(mechanism, states, rows(states))

    efforts.program, efforts.rows = loaded.program, rows  # type: ignore[attr-defined]
    return efforts


def exported(
    files: Sequence[Path],
    side: Path,
    load: Callable[[], Loaded],
    mechanism: Mechanism,
    split: DriveSplit,
    missing: Sequence[str],
) -> Exported:
    """A written model that `load` reads back, with the robot file `side` beside it and without."""
    whole, alone = (partial(read_back, load, mechanism, beside, split) for beside in (side, None))
    return Exported((*files, side), whole, "", tuple(missing), alone, tuple(mechanism.payloads))


def _rest(mechanism: Mechanism, side: Path, split: DriveSplit) -> Callable[[States], Float[Array, "n d"]]:
    """What the values of a robot file add to the part that the model holds."""
    described = Described.of(mechanism)
    values = rest_values(side)
    full = np.array([values.get(p.name, x) for p, x in zip(described.parameters, split.held, strict=True)])

    def rows(states: States) -> Float[Array, "n d"]:
        both = [model_rows(mechanism, described.parameters, chi, states) for chi in (full, split.held)]
        return np.asarray(both[0] - both[1])

    return rows


# Pinocchio


def load_pinocchio(file: Path, mechanism: Mechanism) -> Loaded:
    """A URDF in Pinocchio."""
    import pinocchio

    model = pinocchio.buildModelFromUrdf(str(file))
    pairs = zip(model.damping, model.friction, strict=True)
    dofs = [(float(damping), float(friction)) for damping, friction in pairs]
    friction = {
        name: dofs[model.joints[i].idx_v]
        for i, name in enumerate(model.names)
        if i and model.joints[i].nv == 1
    }
    return Loaded(f"Pinocchio {pinocchio.__version__}", pinocchio_efforts(model, mechanism, friction))


def pinocchio_efforts(
    model: Any, mechanism: Mechanism, friction: Mapping[str, tuple[float, float]]
) -> Callable[[States], Float[Array, "n v"]]:
    """Efforts of the coordinates of a mechanism by a Pinocchio model.

    Args:
        friction: Joint -> damping and friction that were read.
    """
    import pinocchio

    model.gravity.linear = np.asarray(mechanism.gravity, float)
    data = model.createData()
    places = _PinocchioPlaces(model, mechanism)
    damping, dry = np.zeros(model.nv), np.zeros(model.nv)
    for name, (viscous, two) in friction.items():
        at = model.joints[model.getJointId(name)].idx_v
        damping[at], dry[at] = viscous, two

    def efforts(states: States) -> Float[Array, "n v"]:
        f = np.zeros_like(states.dq)
        for k in range(len(states.q)):
            q, v, a = places.forward(states.q[k], states.dq[k], states.ddq[k])
            tau = pinocchio.rnea(model, data, q, v, a) + damping * v + dry * np.sign(v)
            f[k] = places.backward(tau, states.q[k])
        return f

    return efforts


class _PinocchioPlaces:
    """Coordinates of a mechanism in those of a Pinocchio model, joint by joint."""

    def __init__(self, model: Any, mechanism: Mechanism) -> None:
        self.model = model
        self.n_v = len(mechanism.coordinates)
        q_at = v_at = 0
        names = {name: i for i, name in enumerate(model.names)}
        self.entries: list[tuple[str, int, int, Any, JointKind]] = []
        for joint in mechanism.joints:
            for name, kind, nq, nv in _pieces(joint):
                # An SDF has no name for the joint of a free link.
                name = name if name in names else f"free {joint.child}"
                if name in names:
                    self.entries.append((name, q_at, v_at, model.joints[names[name]], kind))
                q_at, v_at = q_at + nq, v_at + nv
        missing = [model.names[i] for i in range(1, model.njoints) if model.joints[i].nv]
        missing = [name for name in missing if name not in {entry[0] for entry in self.entries}]
        if missing:
            raise InputError(f"Pinocchio read joints that the robot does not have: {', '.join(missing)}")

    def forward(self, q: Any, dq: Any, ddq: Any) -> tuple[Any, Any, Any]:
        model = self.model
        out = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        for _, at, v, joint, kind in self.entries:
            i, j = joint.idx_q, joint.idx_v
            if kind is JointKind.FREE:
                R = rotation_of(q[at + 3 : at + 7])
                out[0][i : i + 7] = [*q[at : at + 3], *q[at + 4 : at + 7], q[at + 3]]
                w, linear = dq[v + 3 : v + 6], R.T @ dq[v : v + 3]
                out[1][j : j + 6] = [*linear, *w]
                out[2][j : j + 6] = [*(R.T @ ddq[v : v + 3] - np.cross(w, linear)), *ddq[v + 3 : v + 6]]
            elif kind is JointKind.SPHERICAL:
                out[0][i : i + 4] = [*q[at + 1 : at + 4], q[at]]
                out[1][j : j + 3], out[2][j : j + 3] = dq[v : v + 3], ddq[v : v + 3]
            else:
                # A continuous joint is (cos, sin).
                out[0][i : i + joint.nq] = (np.cos(q[at]), np.sin(q[at])) if joint.nq == 2 else q[at]
                out[1][j], out[2][j] = dq[v], ddq[v]
        return out

    def backward(self, tau: Any, q: Any) -> Any:
        f = np.zeros(self.n_v)
        for _, at, v, joint, kind in self.entries:
            j = joint.idx_v
            if kind is JointKind.FREE:
                f[v : v + 3] = rotation_of(q[at + 3 : at + 7]) @ tau[j : j + 3]
                f[v + 3 : v + 6] = tau[j + 3 : j + 6]
            else:
                f[v : v + joint.nv] = tau[j : j + joint.nv]
        return f


def _pieces(joint: Joint) -> list[tuple[str, JointKind, int, int]]:
    """Name, kind, positions and velocities of a joint as other formats have it."""
    if joint.kind is JointKind.UNIVERSAL:
        return [(name, JointKind.REVOLUTE, 1, 1) for name in joint.coordinates]
    return [(joint.name, joint.kind, len(joint.positions), len(joint.coordinates))]


# MuJoCo


def load_mujoco(
    file: Path, mechanism: Mechanism, ids: Mapping[str, int] | None = None, assets: Path | None = None
) -> Loaded:
    """An MJCF in MuJoCo.

    Args:
        ids: Joint of the mechanism -> number of the joint in the file; default by name.
        assets: Folder of meshes and textures; default that of the file.
    """
    import mujoco

    model = compiled(file, assets)
    flags = mujoco.mjtDisableBit
    for flag in (flags.mjDSBL_CONSTRAINT, flags.mjDSBL_ACTUATION):
        model.opt.disableflags |= int(flag)
    for key in ("jnt_stiffness", "tendon_stiffness", "tendon_damping", "body_gravcomp"):
        getattr(model, key)[:] = 0.0
    model.opt.density = model.opt.viscosity = 0.0
    model.opt.integrator = int(mujoco.mjtIntegrator.mjINT_EULER)
    data = mujoco.MjData(model)
    places = _mujoco_places(model, mechanism, ids or {})
    start = model.qpos0.copy()

    def efforts(states: States) -> Float[Array, "n v"]:
        f = np.zeros_like(states.dq)
        for k in range(len(states.q)):
            data.qpos[:], data.qvel[:], data.qacc[:] = start, 0.0, 0.0
            for at, v, i, j, nq, nv in places:
                data.qpos[i : i + nq] = states.q[k, at : at + nq]
                data.qvel[j : j + nv], data.qacc[j : j + nv] = (
                    states.dq[k, v : v + nv],
                    states.ddq[k, v : v + nv],
                )
            mujoco.mj_inverse(model, data)
            tau = data.qfrc_inverse + model.dof_frictionloss * np.sign(data.qvel)
            for _, v, _, j, _, nv in places:
                f[k, v : v + nv] = tau[j : j + nv]
        return f

    return Loaded(f"MuJoCo {mujoco.__version__}", efforts)


def compiled(file: Path, assets: Path | None) -> Any:
    """The compiled model; meshes that are not there are left out, as they have no dynamics of their own."""
    return spec_for(file, assets).compile()


def spec_for(file: Path, assets: Path | None) -> Any:
    """A specification that compiles (MjSpec), without meshes if they are not there."""
    import mujoco

    try:
        spec = mujoco.MjSpec.from_file(str(file))
        if assets is not None:
            spec.modelfiledir = str(assets)
        spec.compile()
        return spec
    except (ValueError, mujoco.FatalError) as error:
        if "rror opening file" not in str(error) and "esource" not in str(error):
            raise InputError(
                f"MuJoCo does not load it: {' '.join(str(error).split())}",
                file=file,
                remedy="see the message",
            ) from error
    spec = mujoco.MjSpec.from_file(str(file))
    for kind in ("geoms", "sensors", "skins", "meshes", "textures", "materials", "hfields"):
        for element in list(getattr(spec, kind, ())):
            if kind != "geoms" or element.type == mujoco.mjtGeom.mjGEOM_MESH:
                spec.delete(element)
    for geom in spec.geoms:
        geom.material = ""
    try:
        spec.compile()
    except ValueError as error:
        text = f"MuJoCo does not load it: {' '.join(str(error).split())}"
        raise InputError(text, file=file, remedy="see the message") from error
    return spec


def _mujoco_places(
    model: Any, mechanism: Mechanism, ids: Mapping[str, int]
) -> list[tuple[int, int, int, int, int, int]]:
    """First position and velocity of each joint, here and there, and their numbers."""
    listed = []
    q_at = v_at = 0
    for joint in mechanism.joints:
        for name, kind, nq, nv in _pieces(joint):
            for part, qs, vs in _mujoco_parts(model, name, kind, ids):
                if part >= 0:
                    places = int(model.jnt_qposadr[part]), int(model.jnt_dofadr[part])
                    listed.append((q_at + qs.start, v_at + vs.start, *places, len(qs), len(vs)))
            q_at, v_at = q_at + nq, v_at + nv
    return listed


def _mujoco_parts(
    model: Any, name: str, kind: JointKind, ids: Mapping[str, int]
) -> list[tuple[int, range, range]]:
    """Joints of MuJoCo that make one joint: a free one may be three slides and a ball."""
    import mujoco

    def number_of(joint: str) -> int:
        return ids.get(joint, -1) if ids else mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint)

    counts = {JointKind.FREE: (7, 6), JointKind.SPHERICAL: (4, 3), JointKind.FIXED: (0, 0)}
    nq, nv = counts.get(kind, (1, 1))
    if kind is JointKind.FREE and number_of(name) < 0:
        slides = [(number_of(f"{name}_{x}"), range(k, k + 1), range(k, k + 1)) for k, x in enumerate("xyz")]
        return [*slides, (number_of(f"{name}_ball"), range(3, 7), range(3, 6))]
    return [(number_of(name), range(nq), range(nv))] if nv else []


def load_dynid(file: Path, mechanism: Mechanism) -> Loaded:
    """A URDF or MJCF by dynid's own reader, with friction, where no other program is installed."""
    from dynid.mechanism.load import load_robot

    robot = load_robot(file)
    if file.suffix == ".urdf":  # it holds no gravity
        robot = replace(robot, gravity=mechanism.gravity)
    described = Described.of(robot)
    at = {name: i for i, name in enumerate(robot.coordinates)}
    common = [(i, at[name]) for i, name in enumerate(mechanism.coordinates) if name in at]
    places = {name: i for i, name in enumerate(robot.positions)}
    positions = [(i, places[name]) for i, name in enumerate(mechanism.positions) if name in places]

    def efforts(states: States) -> Float[Array, "n v"]:
        n = len(states.q)
        q, dq, ddq = np.zeros((n, len(places))), np.zeros((n, len(at))), np.zeros((n, len(at)))
        for ours, theirs in positions:
            q[:, theirs] = states.q[:, ours]
        for ours, theirs in common:
            dq[:, theirs], ddq[:, theirs] = states.dq[:, ours], states.ddq[:, ours]
        all_of_tree = few_states_matrix(robot, described.parameters, (q, dq, ddq)) @ described.chi
        f = np.zeros_like(states.dq)
        for ours, theirs in common:
            f[:, ours] = all_of_tree[:, theirs]
        return f

    return Loaded("dynid's own reader; install Pinocchio or MuJoCo for another one", efforts)


def available(*programs: str) -> str | None:
    """The first of some packages that can be imported."""
    from importlib.util import find_spec

    return next((package for package in programs if find_spec(package) is not None), None)
