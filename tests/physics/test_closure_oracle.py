"""Closures against Pinocchio's constraint Jacobians."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.mechanism.joint import FIXED_BY
from tests.oracle import pin, pinocchio_model, pinocchio_velocity
from tests.physics.test_closure import assembled


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    kinds=st.lists(st.sampled_from(["point", "weld"]), min_size=1, max_size=2),
)
def test_tangent_directions_keep_pinocchios_constraints(seed: int, kinds: list[str]) -> None:
    rng = np.random.default_rng(seed)
    assembly = assembled(rng, 5, [FIXED_BY[kind] for kind in kinds])
    robot = assembly.mechanism
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
