"""Closures against independent programs: Pinocchio's constraint Jacobians, MuJoCo's dynamics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynid import load_robot
from dynid.common.errors import InputError
from dynid.kinematics.assembly import Assembly, assembly_of
from dynid.mechanism.joint import FIXED_BY
from dynid.regressor.regressor import tree_matrix
from tests.oracle import pin, pinocchio_model, pinocchio_velocity
from tests.physics.test_closure import closed_mechanism
from tests.random_mechanisms import random_inertias


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kinds=st.lists(st.sampled_from(["point", "weld"]), min_size=1, max_size=2),
)
def test_tangent_directions_keep_pinocchios_constraints(seed: int, kinds: list[str]) -> None:
    rng = np.random.default_rng(seed)
    robot, _ = closed_mechanism(rng, 5, [FIXED_BY[kind] for kind in kinds])
    try:
        assembly = Assembly(robot)
    except InputError as error:
        assume("no degree of freedom" not in str(error))
        raise
    q = assembly.walk(rng, 3, reach=0.2)
    dq, ddq, _ = assembly.random_rates(q, rng)
    model, where = pinocchio_model(robot)
    data = model.createData()
    for i in range(len(q)):
        q_pin, v_pin, a_pin = pinocchio_velocity(robot, q[i], dq[i], ddq[i])
        pin.computeJointJacobians(model, data, q_pin)
        pin.forwardKinematics(model, data, q_pin, v_pin, a_pin)
        rows = []
        for loop, kind in zip(robot.loops, kinds, strict=True):
            one = _end(model, data, where[loop.body_a], loop.a)
            two = _end(model, data, where[loop.body_b], loop.b)
            kept = slice(0, 3) if kind == "point" else slice(0, 6)
            J, rate, second = (a[kept] - b[kept] for a, b in zip(one[1:], two[1:], strict=True))
            # Closed poses, tangent velocities and admissible accelerations: rounding of five frames.
            np.testing.assert_allclose(one[0], two[0], atol=1e-11)
            np.testing.assert_allclose(rate, 0.0, atol=1e-10 * max(1.0, np.abs(v_pin).max()))
            np.testing.assert_allclose(second, 0.0, atol=1e-7 * max(1.0, np.abs(a_pin).max()))
            rows.append(J)
        s = np.linalg.svd(np.concatenate(rows), compute_uv=False)
        # There are as many directions as Pinocchio's Jacobian leaves: none is missing.
        assert int((s > 1e-7 * s[0]).sum()) == assembly.rank


def _end(model, data, place, frame):
    """Position, Jacobian, velocity and classical acceleration of a loop's end, base axes."""
    joint, at = place
    if joint == 0:
        return (at * pin.SE3(frame.R, frame.p)).translation, np.zeros((6, model.nv)), np.zeros(6), np.zeros(6)
    axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    tip = data.oMi[joint] * at * pin.SE3(frame.R, frame.p)
    arm = pin.skew(tip.translation - data.oMi[joint].translation)
    J = pin.getJointJacobian(model, data, joint, axes)
    v = pin.getVelocity(model, data, joint, axes)
    a = pin.getClassicalAcceleration(model, data, joint, axes)
    w = pin.skew(v.angular)
    moved = np.vstack([J[:3] - arm @ J[3:], J[3:]])
    r = tip.translation - data.oMi[joint].translation
    rate = np.concatenate([v.linear + w @ r, v.angular])
    second = np.concatenate([a.linear + np.cross(a.angular, r) + w @ w @ r, a.angular])
    return tip.translation, moved, rate, second


def test_dualv_obeys_mujocos_equations() -> None:
    """N^T W chi = N^T B tau with MuJoCo's own accelerations and constraint forces, whatever its softness."""
    mujoco = pytest.importorskip("mujoco")
    robot = load_robot("dualv")
    assembly = assembly_of(robot)
    rng = np.random.default_rng(0)
    chi = random_inertias(rng, len(robot.joints))
    model = mujoco.MjModel.from_xml_string(_mjcf(robot, chi))
    data = mujoco.MjData(model)
    q = assembly.walk(rng, 20, reach=0.3)
    dq, _, N = assembly.random_rates(q, rng)
    places = [model.joint(joint.name).qposadr[0] for joint in robot.joints]
    tau = np.zeros((len(q), len(robot.coordinates)))
    motors = [robot.coordinates.index(actuator.name) for actuator in robot.actuators]
    tau[:, motors] = 5.0 * rng.normal(size=(len(q), len(motors)))
    ddq = np.zeros_like(dq)
    for i in range(len(q)):
        data.qpos[places], data.qvel[places], data.qfrc_applied[places] = q[i], dq[i], tau[i]
        mujoco.mj_forward(model, data)
        ddq[i] = data.qacc[places]
    bodies = {joint.child: chi[10 * k : 10 * k + 10] for k, joint in enumerate(robot.joints)}
    columns = np.concatenate([bodies[joint.child] for joint in robot.joints])
    W = tree_matrix(robot, q, dq, ddq)
    inertial = [i for i, p in enumerate(_table(robot)) if p.kind == "inertial" and p.owner in bodies]
    left = np.einsum("nvd,nv->nd", N, W[:, :, inertial] @ columns)
    right = np.einsum("nvd,nv->nd", N, tau)
    # MuJoCo's constraint solver stops at a relative 1e-8; its inertias are stored as principal ones.
    np.testing.assert_allclose(left, right, atol=1e-6 * np.abs(W[:, :, inertial] @ columns).max())


def _table(robot):
    from dynid.mechanism.parameters import parameter_table

    return parameter_table(robot)


def _mjcf(robot, chi) -> str:
    """The tree of a planar robot, its loops as `connect` constraints."""
    from dynid.mechanism.inertia import in_parent_frame, skew, unpack

    def numbers(values) -> str:
        return " ".join(repr(float(v)) for v in values)

    children: dict[str, list[int]] = {}
    for i, joint in enumerate(robot.joints):
        children.setdefault(joint.parent, []).append(i)

    def body(i: int) -> str:
        joint = robot.joints[i]
        # MuJoCo's body frame is the moving joint frame: parameters and children go through `body`.
        mass, moment, inertia = unpack(in_parent_frame(chi[10 * i : 10 * i + 10], joint.body.R, joint.body.p))
        com = moment / mass
        central = inertia + mass * skew(com) @ skew(com)
        full = central[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        parent = next((j.body for j in robot.joints if j.child == joint.parent), None)
        place = joint.placement if parent is None else parent @ joint.placement
        quaternion = np.roll(pin.Quaternion(place.R).coeffs(), 1)
        inner = "".join(body(k) for k in children.get(joint.child, ()))
        ends = [(f"{loop.name}_a", loop.a) for loop in robot.loops if loop.body_a == joint.child]
        ends += [(f"{loop.name}_b", loop.b) for loop in robot.loops if loop.body_b == joint.child]
        inner += "".join(f'<site name="{n}" pos="{numbers((joint.body @ at).p)}"/>' for n, at in ends)
        return (
            f'<body name="{joint.child}" pos="{numbers(place.p)}" quat="{numbers(quaternion)}">'
            f'<joint name="{joint.name}" type="hinge" axis="{numbers(joint.axes[0])}"/>'
            f'<inertial mass="{mass!r}" pos="{numbers(com)}" fullinertia="{numbers(full)}"/>{inner}</body>'
        )

    ties = "".join(f'<connect site1="{loop.name}_a" site2="{loop.name}_b"/>' for loop in robot.loops)
    tree = "".join(body(i) for i in children["base"])
    return (
        f'<mujoco><option gravity="{numbers(robot.gravity)}" tolerance="1e-14" iterations="500"/>'
        f"<worldbody>{tree}</worldbody><equality>{ties}</equality></mujoco>"
    )
