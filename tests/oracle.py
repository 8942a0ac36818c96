"""Pinocchio as an independent oracle: the same mechanism, its regressor and inverse dynamics."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.mechanism.inertia import in_parent_frame
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Mechanism
from tests.parameter_orders import from_pinocchio

pin = pytest.importorskip("pinocchio")  # no wheels for Windows


def pinocchio_model(mechanism: Mechanism) -> tuple[pin.Model, dict[str, tuple[int, pin.SE3]]]:
    """The mechanism in Pinocchio, and for each body its joint id and body frame in that joint."""
    model = pin.Model()
    model.gravity.linear = mechanism.gravity
    where = {"base": (0, pin.SE3.Identity())}
    for joint in mechanism.joints:
        parent, to_body = where[joint.parent]
        place = to_body * pin.SE3(joint.placement.R, joint.placement.p)
        body = pin.SE3(joint.body.R, joint.body.p)
        if joint.kind is JointKind.FIXED:
            where[joint.child] = (parent, place * body)
            continue
        for i, primitive in enumerate(_models(joint)):
            parent = model.addJoint(parent, primitive, place, f"{joint.name}.{i}")
            place = pin.SE3.Identity()
        where[joint.child] = (parent, body)
    return model, where


def _models(joint) -> list:
    if joint.kind is JointKind.PRISMATIC:
        return [pin.JointModelPrismaticUnaligned(joint.axes[0])]
    if joint.kind is JointKind.SPHERICAL:
        return [pin.JointModelSpherical()]
    if joint.kind is JointKind.FREE:
        return [pin.JointModelFreeFlyer()]
    return [pin.JointModelRevoluteUnaligned(axis) for axis in joint.axes]


def pinocchio_regressor(mechanism: Mechanism, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """W_tree of the inertial parameters by Pinocchio, shape (n, n_v, 10 b), in our conventions.

    Every body is a separate model computation: one joint carries it, so its ten columns are those
    of its joint, moved to the body frame.
    """
    model, where = pinocchio_model(mechanism)
    data = model.createData()
    n, n_v = dq.shape
    W = np.zeros((n, n_v, 10 * len(mechanism.joints)))
    maps = []
    for joint in mechanism.joints:
        frame = where[joint.child][1]
        columns = [in_parent_frame(e, frame.rotation, frame.translation) for e in np.eye(10)]
        maps.append(np.column_stack(columns))
    for i in range(n):
        q_pin, T, v_pin, a_pin = _pinocchio_state(mechanism, q[i], dq[i], ddq[i])
        R = np.atleast_2d(pin.computeJointTorqueRegressor(model, data, q_pin, v_pin, a_pin))
        for b, joint in enumerate(mechanism.joints):
            at = where[joint.child][0] - 1
            if at >= 0:
                ours = from_pinocchio(R[:, 10 * at : 10 * at + 10])
                W[i, :, 10 * b : 10 * b + 10] = T @ ours @ maps[b]
    return W


def pinocchio_velocity(mechanism: Mechanism, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray):
    """Pinocchio's q, v, a of one state."""
    q_pin, _, v_pin, a_pin = _pinocchio_state(mechanism, q, dq, ddq)
    return q_pin, v_pin, a_pin


def _pinocchio_state(mechanism, q, dq, ddq):
    """Pinocchio's q, v, a of one state, and T that turns its rows into ours."""
    q_pin, v_pin, a_pin = [], [], []
    T = np.eye(len(dq))
    iq = iv = 0
    for joint in mechanism.joints:
        nq, nv = len(joint.positions), len(joint.coordinates)
        x, v, a = q[iq : iq + nq], dq[iv : iv + nv], ddq[iv : iv + nv]
        if joint.kind is JointKind.FREE:
            R = pin.Quaternion(x[3], x[4], x[5], x[6]).toRotationMatrix()
            linear = R.T @ v[:3]
            # Pinocchio's rate of a free joint is that of its components in the moving frame.
            v_pin += [*linear, *v[3:]]
            a_pin += [*(R.T @ a[:3] - np.cross(v[3:], linear)), *a[3:]]
            T[iv : iv + 3, iv : iv + 3] = R
        else:
            v_pin += [*v]
            a_pin += [*a]
        if joint.has_quaternion:
            x = np.concatenate([x[:-4], np.roll(x[-4:], -1)])
        q_pin += [*x]
        iq, iv = iq + nq, iv + nv
    return np.array(q_pin), T, np.array(v_pin), np.array(a_pin)
