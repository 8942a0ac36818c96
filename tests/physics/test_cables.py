"""Cables as closures: lengths, Jacobian and rates against geometry done another way, and against MuJoCo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dynid.dynamics.forward import ForwardDynamics
from dynid.dynamics.freedoms import ClosedFreedoms, position_rates
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.closure import Closure, moved
from dynid.kinematics.locked_motion import cable_jacobian, cable_shapes
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.cable import Cable, Swivel, cable_joint, driven_cables, locked, swivel_joint
from dynid.mechanism.joint import JointKind
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Actuator, Body
from dynid.projection.inverse import inverse_directions
from dynid.regressor.regressor import tree_matrix
from tests.parameter_orders import named_values
from tests.random_mechanisms import random_states, random_tree

KINDS = (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.UNIVERSAL, JointKind.SPHERICAL, JointKind.FREE)


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v)


def on_cables(rng: np.random.Generator, n_bodies: int, radii: list[float], swivels: bool = True):
    """A random tree with cables between any of its bodies and the base, and their swivel encoders."""
    robot = random_tree(rng, n_bodies, kinds=KINDS)
    ends = ["base", *robot.bodies]
    cables, joints = [], []
    for i, radius in enumerate(radii):
        first, second = rng.choice(len(ends), 2, replace=False)
        axis, x = unit(rng.normal(size=3)), unit(rng.normal(size=3))
        D, A = rng.normal(size=(2, 3))
        cables.append(Cable(f"cable{i}", ends[first], D, axis, radius, ends[second], A, x=x))
        joints.append(cable_joint(f"cable{i}"))
    sensors = [Swivel(f"turn{i}", f"cable{i}") for i in range(len(radii))] if swivels else []
    joints += [swivel_joint(one.name) for one in sensors]
    return replace(
        robot,
        joints=(*robot.joints, *joints),
        bodies={**robot.bodies, **{joint.child: Body(joint.child, ()) for joint in joints}},
        cables=tuple(cables),
        swivels=tuple(sensors),
    )


def other_length(cable: Cable, robot, q: np.ndarray) -> tuple[float, np.ndarray, float, float]:
    """Length, direction and swivel angle of one cable at one pose, with vectors in the base frame.

    The tangent point comes from the right angle between CB and BA, the arc from the angle of two radii:
    nothing of it is shared with the formulas in the entry frame. Last: how far from singular, in m.
    """
    still = np.zeros((1, len(robot.coordinates)))
    tree = tree_of(robot)
    motion = body_motion(tree, q[None], still, still)

    def placed(body: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if body == "base":
            return np.eye(3), x
        i = tree.body_names.index(body)
        return motion.R[0, i], motion.p[0, i] + motion.R[0, i] @ x

    R, D = placed(cable.body_from, cable.D)
    A = placed(cable.body_to, cable.A)[1]
    z = R @ cable.axis
    across = (A - D) - z * (z @ (A - D))
    x = R @ cable.x - z * (z @ (R @ cable.x))
    swivel = np.arctan2(np.cross(unit(x), across) @ z, unit(x) @ across)
    if cable.radius == 0.0:
        return np.linalg.norm(A - D), unit(A - D), swivel, np.linalg.norm(across)
    r, u = cable.radius, unit(across)
    C = D + r * u
    reach = np.linalg.norm(A - C)
    if reach < 1.2 * r:
        return 0.0, z, 0.0, 0.0
    normal = np.cross(z, u)  # the cable runs round the pulley about it: normal x (-u) = z
    to = unit(A - C)
    angle = np.arccos(r / reach)
    turn = np.cos(angle) * to + np.sin(angle) * np.cross(normal, to)
    back = np.cos(angle) * to - np.sin(angle) * np.cross(normal, to)
    for radius in (turn, back):
        B = C + r * radius
        if np.cross(normal, radius) @ (A - B) > 0:  # along the cable's way, not against it
            break
    arc = np.arctan2(np.cross(-u, radius) @ normal, -u @ radius) % (2 * np.pi)
    return r * arc + np.linalg.norm(A - B), unit(A - B), swivel, min(np.linalg.norm(across), reach - r)


radii = st.lists(st.sampled_from([0.0, 0.02, 0.1, 0.3]), min_size=1, max_size=4)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), some=radii)
def test_lengths_directions_and_swivels_equal_vector_geometry(seed: int, some: list[float]) -> None:
    rng = np.random.default_rng(seed)
    robot = on_cables(rng, 3, some)
    q = random_states(rng, robot, 1)[0]
    f = Closure(robot).values(q).f[0]
    shapes = list(cable_shapes(robot, q))
    for i, (cable, shape, R, _) in enumerate(shapes):
        length, direction, swivel, clear = other_length(cable, robot, q[0])
        assume(clear > 1e-3)
        own = q[0, robot.positions.index(cable.name)], q[0, robot.positions.index(f"turn{i}")]
        # A few units of rounding of lengths of some metres, amplified by at most 1e3 near the axis.
        assert f[i] + own[0] == pytest.approx(length, abs=1e-11)
        assert shape.length[0] == pytest.approx(length, abs=1e-11)
        np.testing.assert_allclose(R[0] @ shape.direction[0], direction, atol=1e-10)
        off = f[len(shapes) + i] + own[1] - swivel
        assert np.sin(off) == pytest.approx(0.0, abs=1e-11)
        assert np.cos(off) > 0.0


@settings(max_examples=40)
@example(seed=200, some=[0.0] * 4)
@given(seed=st.integers(0, 2**32 - 1), some=radii)
def test_jacobian_and_bias_equal_finite_differences(seed: int, some: list[float]) -> None:
    rng = np.random.default_rng(seed)
    robot = on_cables(rng, 3, some)
    q, dq, _ = random_states(rng, robot, 1)
    for cable in robot.cables:
        # Near the swivel axis and the pulley higher derivatives grow without bound.
        assume(other_length(cable, robot, q[0])[3] > 0.3)
    closure = Closure(robot)
    A = closure.values(q).A[0]

    def slope(step: float) -> np.ndarray:
        up, down = (
            closure.values(moved(robot, np.repeat(q, A.shape[1], axis=0), s * step * np.eye(A.shape[1]))).f
            for s in (1.0, -1.0)
        )
        change = (up - down).T
        turns = change[len(robot.cables) :]
        turns -= 2.0 * np.pi * np.round(turns / (2.0 * np.pi))  # an angle may pass pi in between
        return change / (2.0 * step)

    # Richardson at 1e-3 and 2e-3 leaves the fifth derivative times 1e-12, and rounding 1e-13.
    best = (16 * (4 * slope(5e-4) - slope(1e-3)) / 3 - (4 * slope(1e-3) - slope(2e-3)) / 3) / 15
    np.testing.assert_allclose(A, best, atol=1e-10)
    # The complex step is exact: bias is the derivative of A dq along the motion.
    bent = closure.values(q + 1e-30j * position_rates(robot, q, dq)).A.imag / 1e-30
    np.testing.assert_allclose(
        closure.bias(q, dq), np.einsum("ncv,nv->nc", bent, dq), rtol=1e-10, atol=1e-10 * np.abs(bent).max()
    )
    # And A itself is the derivative of f.
    f = closure.values(q + 1e-30j * position_rates(robot, q, dq)).f.imag / 1e-30
    np.testing.assert_allclose(f[0], A @ dq[0], atol=1e-11)


def test_the_gradient_is_the_cable_direction() -> None:
    # Of a cable from the base: dL/dA is (A - B) / |A - B|, a unit vector; Xi = [t, a' x t] (eq. 4).
    robot = load_robot("cable4")
    assembly = assembly_of(robot)
    q = assembly.walk(np.random.default_rng(3), 30, reach=0.3)
    Xi = cable_jacobian(robot, q)
    R = body_motion(tree_of(robot), q, *np.zeros((2, len(q), 10))).R[:, 0]
    for i, (cable, shape, _, _) in enumerate(cable_shapes(robot, q)):
        t = shape.direction @ cable.entry.R.T
        np.testing.assert_allclose(np.linalg.norm(t, axis=1), 1.0, atol=1e-14)
        np.testing.assert_allclose(Xi[:, i, :3], t, atol=1e-13)
        moment = np.cross(np.broadcast_to(cable.A, t.shape), np.einsum("nij,ni->nj", R, t))
        np.testing.assert_allclose(Xi[:, i, 3:6], moment, atol=1e-13)


def test_rates_along_a_motion_equal_differences_in_time() -> None:
    # A platform that moves and turns along known functions of time; eighth-order differences of step 2e-3
    # of functions at 1 Hz: error below 1e-11 in the first and 1e-9 in the second derivative.
    robot = load_robot("cable4")
    closure = Closure(robot)
    h, k = 2e-3, np.arange(-4, 5)

    def pose(t: np.ndarray) -> np.ndarray:
        angle = 0.3 * np.sin(2 * t)
        axis = unit(np.array([1.0, 2.0, -1.0]))
        turn = np.column_stack([np.cos(angle / 2), np.sin(angle / 2)[:, None] * axis])
        place = np.column_stack([1.1 + 0.1 * np.sin(3 * t), -0.2 + 0.1 * np.cos(2 * t), -0.6 + 0.05 * t])
        return np.column_stack([place, turn, np.zeros((len(t), 4))])

    t0 = 0.37
    angle_rate, angle_second = 0.6 * np.cos(2 * t0), -1.2 * np.sin(2 * t0)
    axis = unit(np.array([1.0, 2.0, -1.0]))
    dq, ddq = np.zeros((2, 1, 10))
    dq[0, :6] = [0.3 * np.cos(3 * t0), -0.2 * np.sin(2 * t0), 0.05, *(angle_rate * axis)]
    ddq[0, :6] = [-0.9 * np.sin(3 * t0), -0.4 * np.cos(2 * t0), 0.0, *(angle_second * axis)]
    L = closure.values(pose(t0 + h * k)).f
    first = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280]) / h
    second = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560]) / h**2
    q = pose(np.array([t0]))
    A = closure.values(q).A[0]
    np.testing.assert_allclose(A @ dq[0], first @ L, atol=1e-10)
    np.testing.assert_allclose(A @ ddq[0] + closure.bias(q, dq)[0], second @ L, atol=1e-9)


def test_locked_cables_leave_six_freedoms_less_their_number() -> None:
    robot = load_robot("cable4")
    held = locked(robot)
    assert assembly_of(robot).dof == 6
    assert assembly_of(held).dof == 2
    assert not held.actuators
    assert not driven_cables(held)
    assert assembly_of(locked(robot, {"cable2": robot.start["cable2"]})).dof == 5
    assembly = assembly_of(held)
    q = assembly.walk(np.random.default_rng(0), 20, reach=0.3)
    values = assembly.closure.values(q)
    N = assembly.tangent(values.A)
    assert np.abs(values.A @ N).max() < 1e-14
    lengths = np.array([robot.start[cable.name] for cable in robot.cables])
    for i, (_, shape, _, _) in enumerate(cable_shapes(held, q)):
        np.testing.assert_allclose(shape.length, lengths[i], atol=1e-12)


def test_forward_dynamics_keeps_locked_lengths_and_balances_tensions() -> None:
    # M dv + C v - phi = -Xi^T tau (eq. 8): the tree lacks what the cables pull, so that it lies
    # in the range of Xi^T; and the lengths' second derivative vanishes.
    robot = locked(load_robot("cable4"))
    chi = named_values(
        robot, {"M_platform": 10.0, "MZ_platform": 1.9, "XX_platform": 0.51, "YY_platform": 0.69}
    )
    dynamics = ForwardDynamics(robot, chi + named_values(robot, {"ZZ_platform": 0.37, "MX_platform": 0.1}))
    assembly = assembly_of(robot)
    rng = np.random.default_rng(4)
    q = assembly.walk(rng, 10, reach=0.3)
    dq, _, _ = assembly.random_rates(q, rng)
    ddq = dynamics.accelerations(q, dq, np.zeros((10, 0))).ddq
    A = assembly.closure.values(q).A
    second = np.einsum("ncv,nv->nc", A, ddq) + assembly.closure.bias(q, dq)
    assert np.abs(second).max() < 1e-11
    left = dynamics.inverse(q, dq, ddq)
    for sample in range(10):
        tension = np.linalg.lstsq(-A[sample].T, left[sample], rcond=None)[0]
        np.testing.assert_allclose(-A[sample].T @ tension, left[sample], atol=1e-10)


def test_eyelets_equal_tendons_of_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    robot = load_robot("cable3")
    sites = "".join(
        f'<site name="D{i}" pos="{" ".join(map(str, cable.D))}"/>' for i, cable in enumerate(robot.cables)
    )
    ends = "".join(
        f'<site name="A{i}" pos="{" ".join(map(str, cable.A))}"/>' for i, cable in enumerate(robot.cables)
    )
    tendons = "".join(
        f'<spatial name="{cable.name}"><site site="D{i}"/><site site="A{i}"/></spatial>'
        for i, cable in enumerate(robot.cables)
    )
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{sites}<body><freejoint/><geom size='0.1'/>{ends}</body></worldbody>"
        f"<tendon>{tendons}</tendon></mujoco>"
    )
    data = mujoco.MjData(model)
    assembly = assembly_of(robot)
    q = assembly.walk(np.random.default_rng(1), 20, reach=0.4)
    Xi = cable_jacobian(robot, q)
    lengths = [shape.length for _, shape, _, _ in cable_shapes(robot, q)]
    for k in range(len(q)):
        data.qpos[:] = q[k, :7]
        mujoco.mj_forward(model, data)
        # Both are sums of a few doubles of some metres.
        np.testing.assert_allclose([one[k] for one in lengths], data.ten_length, atol=1e-13)
        np.testing.assert_allclose(Xi[k, :, :6], np.asarray(data.ten_J).reshape(3, 6), atol=1e-13)


def test_a_cable_on_an_arm_carries_its_weight() -> None:
    # A bar on a hinge, held by a cable from the base: moments of weight and tension about the hinge cancel.
    rng = np.random.default_rng(5)
    arm = random_tree(rng, 1, kinds=(JointKind.REVOLUTE,))
    joint = cable_joint("cable")
    D, A, com, m = np.array([0.2, -0.7, 1.1]), np.array([0.4, 0.1, -0.2]), np.array([0.1, -0.05, 0.2]), 2.0
    robot = replace(
        arm,
        gravity=np.array([0.0, 0.0, -9.81]),
        joints=(*arm.joints, joint),
        bodies={**arm.bodies, joint.child: Body(joint.child, ())},
        cables=(Cable("cable", "base", D, np.array([1.0, 0.0, 0.0]), 0.05, "body0", A),),
        actuators=(Actuator("cable", {"cable": -1.0}),),
    )
    q = random_states(rng, robot, 1)[0]
    chi = named_values(robot, dict(zip(("MX_body0", "MY_body0", "MZ_body0"), m * com, strict=True)))
    chi += named_values(robot, {"M_body0": m})
    still = np.zeros((1, 2))
    assembly = assembly_of(robot)
    N = assembly.tangent(assembly.closure.values(q).A)[0]
    held = N.T @ ForwardDynamics(robot, chi).inverse(q, still, still)[0]
    tension = held / (N.T @ robot.actuator_map.T)[:, 0]  # N^T W chi = N^T B tau
    motion = body_motion(tree_of(robot), q, still, still)
    R, p = motion.R[0, 0], motion.p[0, 0]
    hinge = arm.joints[0]
    axis = hinge.placement.R @ hinge.axes[0]
    t = other_length(replace(robot.cables[0], x=np.array([0.0, 1.0, 0.0])), robot, q[0])[1]
    pull = axis @ np.cross(p + R @ A - hinge.placement.p, -tension[0] * t)
    weight = axis @ np.cross(p + R @ com - hinge.placement.p, m * robot.gravity)
    # Both sides are products of a few doubles of size ten.
    assert pull == pytest.approx(-weight, rel=1e-11)


@pytest.mark.parametrize(("name", "n_rows"), [("cable3", 6), ("cable4", 6), ("cable8", 6)])
def test_tensions_and_motion_tell_all_ten_parameters(name: str, n_rows: int) -> None:
    # Eq. 18 with too few, and with too many cables: any motion under any tensions, the mass included.
    robot = load_robot(name)
    rng = np.random.default_rng(7)
    values = {"M": 8.0, "MX": 0.1, "MY": -0.2, "MZ": 0.4, "XX": 0.3, "YY": 0.4, "ZZ": 0.35, "XY": 0.02}
    chi = named_values(robot, {f"{symbol}_platform": value for symbol, value in values.items()})
    assembly = assembly_of(robot)
    q = assembly.walk(rng, 40, reach=0.1)
    dq, _, N = assembly.random_rates(q, rng)
    tau = rng.uniform(20.0, 100.0, (40, len(robot.cables)))
    ddq = ForwardDynamics(robot, chi).accelerations(q, dq, tau).ddq
    directions = inverse_directions(robot)
    assert len(directions.names) == n_rows
    N = directions.moving(N, dq)
    W = np.einsum("nvk,nvp->nkp", N, tree_matrix(robot, q, dq, ddq)).reshape(-1, 10)
    Y = np.einsum("nvk,nv->nk", N, tau @ robot.actuator_map).reshape(-1)
    if len(robot.cables) <= 6:
        # The first rows are what each cable pulls, the others feel none.
        np.testing.assert_allclose(Y.reshape(40, 6)[:, : len(robot.cables)], tau, rtol=1e-9)
        assert np.abs(Y.reshape(40, 6)[:, len(robot.cables) :]).max() < 1e-9
    found, _, rank, _ = np.linalg.lstsq(W, Y, rcond=None)
    assert rank == 10
    # Condition of some hundreds times rounding of efforts of 100 N.
    np.testing.assert_allclose(found, chi, atol=1e-9)


def test_the_winch_pulls_the_platform_up() -> None:
    # No code of ours tells a sign here: four taut cables above a platform without weight lift it.
    robot = replace(load_robot("cable4"), gravity=np.zeros(3))
    chi = named_values(robot, {"M_platform": 1.0, **{f"{axes}_platform": 1.0 for axes in ("XX", "YY", "ZZ")}})
    q = assembly_of(robot).start[None]
    ddq = ForwardDynamics(robot, chi).accelerations(q, np.zeros((1, 10)), np.full((1, 4), 10.0)).ddq
    assert ddq[0, 2] > 0.0
    assert (ddq[0, 6:] < 0.0).all()  # every cable becomes shorter


def test_a_symmetric_pose_does_not_hide_what_a_cable_feels() -> None:
    # At the start pose of cable3 a cable lies in a plane of symmetry: entries of its Jacobian vanish there.
    robot = locked(load_robot("cable3"))
    assembly = assembly_of(robot)
    freedoms = ClosedFreedoms(robot, assembly.start[None])
    q = assembly.walk(np.random.default_rng(8), 20, reach=0.1)
    A = assembly.closure.values(q).A
    assert np.abs(A @ freedoms.tangent(q)).max() < 1e-12
    gamma = np.random.default_rng(9).normal(size=(20, 3))
    x = freedoms.lifted(q, np.zeros((20, 3)), gamma)
    # Solved by elimination with pivots of a tenth at worst.
    np.testing.assert_allclose(np.einsum("ncv,nv->nc", A, x), -gamma, atol=1e-10)
