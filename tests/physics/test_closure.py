"""Closures against finite differences, over random closed mechanisms with every kind of loop."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dynid.common.errors import InputError
from dynid.exporters.code.loops import plan_for
from dynid.kinematics import assembly
from dynid.kinematics.assembly import Assembly
from dynid.kinematics.closure import Closure, moved
from dynid.kinematics.first_pose import CLOSED
from dynid.kinematics.sensors import sensors_of
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.frame import Frame
from dynid.mechanism.joint import DIRECTIONS, FIXED_BY, JointKind, Loop
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Coupling
from dynid.mechanism.variant import resized
from tests.random_mechanisms import random_frame, random_states, random_tree

KINDS = (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.UNIVERSAL, JointKind.SPHERICAL, JointKind.FREE)


def closed_mechanism(rng: np.random.Generator, n_bodies: int, fixes: list[tuple[str, ...] | str]):
    """A random tree with loops that are closed at a random pose, and that pose."""
    tree = random_tree(rng, n_bodies, kinds=KINDS)
    q, _, _ = random_states(rng, tree, 1)
    motion = body_motion(
        tree_of(tree), q, np.zeros((1, len(tree.coordinates))), np.zeros((1, len(tree.coordinates)))
    )
    loops = []
    for i, fix in enumerate(fixes):
        body_a, body_b = (f"body{k}" for k in rng.choice(n_bodies, 2, replace=False))
        a = random_frame(rng)
        at = {name: Frame(motion.R[0, k], motion.p[0, k]) for k, name in enumerate(tree.bodies)}
        world = at[body_a] @ a
        if fix == "rod":
            b = random_frame(rng)
            length = float(np.linalg.norm((at[body_b] @ b).p - world.p))
            loops.append(Loop(f"loop{i}", (), body_a, a, body_b, b, length))
        else:
            loops.append(Loop(f"loop{i}", tuple(fix), body_a, a, body_b, at[body_b].inverse() @ world))
    start = dict(zip(tree.positions, q[0].tolist(), strict=True))
    return replace(tree, loops=tuple(loops), start=start), q


def assembled(rng: np.random.Generator, n_bodies: int, fixes) -> Assembly:
    """The assembly of a random closed mechanism that can move."""
    robot, _ = closed_mechanism(rng, n_bodies, fixes)
    try:
        return Assembly(robot)
    except InputError as error:
        assume("no degree of freedom" not in str(error))
        raise


subsets = st.lists(st.sampled_from(DIRECTIONS), min_size=1, max_size=6, unique=True).map(tuple)
any_fix = st.one_of(subsets, st.sampled_from(list(FIXED_BY.values())), st.just("rod"))


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), fixes=st.lists(any_fix, min_size=1, max_size=3))
@example(seed=1285, fixes=[("x", "y", "z"), ("z",), ("x", "y", "z")])  # five joints that add their speeds
def test_jacobian_and_rates_equal_finite_differences(seed: int, fixes) -> None:
    rng = np.random.default_rng(seed)
    robot, q = closed_mechanism(rng, 5, fixes)
    closure = Closure(robot)
    # The loops were made where they are closed; rounding of chains of five frames remains.
    assert np.abs(closure.values(q).f).max() < 1e-13
    q = moved(robot, q, 0.3 * rng.normal(size=(1, len(robot.coordinates))))
    values = closure.values(q)
    v = rng.normal(size=(1, len(robot.coordinates)))
    h = 1e-5
    ahead, behind = (closure.values(moved(robot, q, s * v)).f for s in (h, -h))
    size = 1.0 + np.abs(values.A).max() * np.abs(v).max()
    # Central differences: third derivatives times h^2 is 1e-10, rounding over h is 1e-11.
    np.testing.assert_allclose(
        (ahead - behind) / (2 * h), np.einsum("ncv,nv->nc", values.A, v), atol=1e-9 * size**3
    )
    # Rates: along q(t) = q moved by v t the tree moves with ddq = 0 (quaternions turn steadily).
    h = 1e-3
    near, far = (sum(closure.values(moved(robot, q, s * v)).f for s in (k * h, -k * h)) for k in (1, 2))
    second = (16.0 * near - far - 30.0 * values.f) / (12.0 * h**2)
    # Sixth derivatives times h^4 / 90: below 1e-7 for a chain that turns at 20 rad/s. Rounding is 1e-9.
    np.testing.assert_allclose(second, closure.bias(q, v), atol=1e-6 * size**4)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), fixes=st.lists(any_fix, min_size=1, max_size=2))
def test_poses_stay_closed_and_directions_tangent(seed: int, fixes) -> None:
    rng = np.random.default_rng(seed)
    assembly = assembled(rng, 5, fixes)
    q = assembly.walk(rng, 6, reach=0.3)
    assert assembly.gaps(q).max() < CLOSED
    dq, ddq, N = assembly.random_rates(q, rng)
    values = assembly.closure.values(q)
    size = np.abs(values.A).max()
    # A N = 0 and the accelerations keep the loops closed: rounding of factorisations.
    assert np.abs(values.A @ N).max() <= 1e-9 * size
    left = np.einsum("ncv,nv->nc", values.A, ddq) + assembly.closure.bias(q, dq)
    assert np.abs(left).max() <= 1e-9 * max(size, np.abs(ddq).max() * size)


def planar_five_bar(length: float = 0.3):
    """Two cranks and two rods in a plane, closed by a spatial revolute joint."""
    from dynid.mechanism.joint import Joint
    from dynid.mechanism.mechanism import Actuator, Body, Mechanism

    z = np.array([0.0, 0.0, 1.0])

    def joint(name: str, parent: str, child: str, x: float) -> Joint:
        place = Frame(np.eye(3), np.array([x, 0.0, 0.0]))
        return Joint(name, JointKind.REVOLUTE, parent, child, place, (z,))

    joints = (
        joint("m1", "base", "crank1", 0.0),
        joint("e1", "crank1", "rod1", length),
        joint("m2", "base", "crank2", 0.2),
        joint("e2", "crank2", "rod2", length),
    )
    tip = Frame(np.eye(3), np.array([0.4, 0.0, 0.0]))
    return Mechanism(
        "five-bar",
        np.array([0.0, -9.81, 0.0]),
        joints,
        {one.child: Body(one.child) for one in joints},
        (Actuator("m1", {"m1": 1.0}), Actuator("m2", {"m2": 1.0})),
        ("m1", "m2"),
        loops=(Loop("tip", FIXED_BY["revolute"], "rod1", tip, "rod2", tip),),
        start={"m1": 2.2, "e1": -1.3, "m2": 0.9, "e2": 1.3},
    )


def test_a_planar_loop_closed_in_space_is_no_failure() -> None:
    assembly = Assembly(planar_five_bar())
    assert assembly.mobility.dof == 2
    assert assembly.mobility.n_redundant == 3
    assert len(assembly.kept) == 2


def test_measured_joints_give_all_others_on_the_same_branch() -> None:
    robot = planar_five_bar()
    assembly = Assembly(robot)
    picked = np.array([robot.coordinates.index("m1"), robot.coordinates.index("m2")])
    start = assembly.start[[robot.positions.index("m1"), robot.positions.index("m2")]]
    t = np.linspace(0, 2 * np.pi, 200)
    wanted = start + 0.25 * np.column_stack([np.sin(t), np.sin(2 * t + 1)])
    q = assembly.follow(wanted, picked)
    assert assembly.gaps(q).max() < CLOSED
    np.testing.assert_allclose(q[:, picked], wanted, atol=1e-12)  # as many measured as freedoms
    assert np.all(np.sign(q[:, 1]) == np.sign(assembly.start[1]))
    h = t[1] - t[0]
    rates = 0.25 * np.column_stack([np.cos(t), 2 * np.cos(2 * t + 1)])
    second = 0.25 * np.column_stack([-np.sin(t), -4 * np.sin(2 * t + 1)])
    found = assembly.rates(q, rates, second, picked)
    dq, ddq = found.dq, found.ddq
    # Central differences of the poses along t: h^2 of 1e-3 times third derivatives.
    np.testing.assert_allclose((q[2:] - q[:-2]) / (2 * h), dq[1:-1], atol=5e-3)
    np.testing.assert_allclose((dq[2:] - dq[:-2]) / (2 * h), ddq[1:-1], atol=2e-2)


def test_couplings_are_closures_too() -> None:
    robot = planar_five_bar()
    robot = replace(robot, couplings=(Coupling("m2", {"m1": -1.0}, float(2.2 + 0.9)),))
    assembly = Assembly(robot)
    assert assembly.mobility.dof == 1
    q = assembly.walk(np.random.default_rng(0), 5, reach=0.2)
    np.testing.assert_allclose(q[:, 2], -q[:, 0] + 3.1, atol=1e-12)  # rounding


def test_loops_that_cannot_be_assembled_are_refused() -> None:
    robot = planar_five_bar()
    far = Frame(np.eye(3), np.array([5.0, 0.0, 0.0]))
    loop = replace(robot.loops[0], body_b="base", b=far)
    with pytest.raises(InputError, match=r"cannot be assembled: 'tip' stays open by"):
        Assembly(replace(robot, loops=(loop,)))


def test_loops_that_leave_no_mobility_are_refused() -> None:
    robot = planar_five_bar()
    assembly = Assembly(robot)
    motion = body_motion(tree_of(robot), assembly.start[None], np.zeros((1, 4)), np.zeros((1, 4)))
    rod = Frame(motion.R[0, 1], motion.p[0, 1])
    weld = Loop("held", FIXED_BY["weld"], "base", rod, "rod1", Frame(np.eye(3), np.zeros(3)))
    start = dict(zip(robot.positions, assembly.start.tolist(), strict=True))
    with pytest.raises(InputError, match="leave no degree of freedom"):
        Assembly(replace(robot, loops=(*robot.loops, weld), start=start))


@pytest.mark.parametrize("kind", ["weld", "revolute"])
def test_frames_held_half_a_turn_off_are_not_taken_for_closed(kind: str) -> None:
    from dynid.mechanism.joint import Joint
    from dynid.mechanism.mechanism import Body, Mechanism

    # A body that floats, started upside down: the equations of the loop are zero there as well.
    free, spin = (
        Joint(n, k, "base", n + "_body") for n, k in (("pose", JointKind.FREE), ("spin", JointKind.FREE))
    )
    robot = Mechanism(
        "floating",
        np.zeros(3),
        (free, spin),
        {joint.child: Body(joint.child) for joint in (free, spin)},
        (),
        (),
        loops=(
            Loop(
                "held",
                FIXED_BY[kind],
                "base",
                Frame(np.eye(3), np.zeros(3)),
                "pose_body",
                Frame(np.eye(3), np.zeros(3)),
            ),
        ),
        start={"pose_qw": 0.0, "pose_qx": 1.0},
    )
    closure = Closure(robot)
    q = np.zeros((1, len(robot.positions)))
    q[0, robot.positions.index("pose_qx")] = q[0, robot.positions.index("spin_qw")] = 1.0
    assert np.abs(closure.values(q).f).max() < 1e-15  # exact zeros
    assert closure.turned_over(q).all()
    with pytest.raises(InputError, match="'held' closes only after half a turn"):
        Assembly(robot)
    upright = Assembly(replace(robot, start={"pose_qw": 0.8, "pose_qx": 0.6}))
    assert not upright.closure.turned_over(upright.start[None]).any()


def test_assemblies_of_many_robots_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that identifies a thousand robots must not hold a thousand of them."""
    monkeypatch.setattr(assembly, "_MOST_KEPT", 2)
    monkeypatch.setattr(assembly, "_KEPT", {})
    nominal = load_robot("fivebar")
    first = assembly.assembly_of(nominal)
    assert assembly.assembly_of(replace(nominal, gravity=np.zeros(3))) is first
    seen = []
    for length in (0.251, 0.252, 0.253):
        robot = resized(nominal, {"l1": length})
        assert robot is not None
        seen.append(weakref.ref(assembly.assembly_of(robot, near=nominal)))
        assert assembly.assembly_of(nominal) is first
    del robot
    gc.collect()
    assert [one() is None for one in seen] == [True, True, False]


@pytest.mark.parametrize("name", ["dualv", "orthoglide", "stewart"])
def test_poses_and_plans_do_not_depend_on_the_basis_that_a_factorisation_gives(
    name: str, monkeypatch
) -> None:
    """Another CPU rounds otherwise: the directions of a tangent space come turned."""
    robot = load_robot(name)
    usual, split = Assembly(robot), assembly.split
    turn = np.random.default_rng(5)

    def turned(A, kept, rank):
        parts = split(A, kept, rank)
        Q = np.linalg.qr(turn.normal(size=(parts.N.shape[2],) * 2))[0]
        return replace(parts, N=parts.N @ Q)

    monkeypatch.setattr(assembly, "split", turned)
    other = Assembly(robot)
    # Poses to the rounding of closures, choices exactly.
    assert np.allclose(other.samples, usual.samples, atol=1e-9)
    rates = [one.random_rates(one.samples, np.random.default_rng(3))[:2] for one in (usual, other)]
    assert np.allclose(rates[0], rates[1], rtol=1e-6, atol=1e-6)
    sensors = sensors_of(robot, robot.measured_positions)
    plans = [plan_for(one, sensors) for one in (usual, other)]
    assert all(np.array_equal(*pair) for pair in zip(*(plan.tables for plan in plans), strict=True))
