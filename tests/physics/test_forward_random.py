"""Forward dynamics of random mechanisms: against MuJoCo's steps, against the inverse, and their energy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynid.dynamics.forward import ForwardDynamics
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.tension import least_norm, motor_jacobian
from dynid.mechanism.joint import FIXED_BY
from dynid.mechanism.load import load_robot
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.plant.control import Controller
from dynid.simulation.plant.forward_plant import ForwardPlant
from dynid.simulation.plant.reference import position_map
from dynid.simulation.plant.settings import PlantSettings
from tests.parameter_orders import named_values
from tests.physics.test_closure import closed_mechanism
from tests.random_mechanisms import random_states, random_tree
from tests.test_plant import truth_of

FEW = settings(max_examples=12, derandomize=True, suppress_health_check=list(HealthCheck))
STEP = 1e-3


@FEW
@given(seed=st.integers(0, 10_000), bodies=st.integers(1, 6))
def test_a_step_of_a_tree_is_that_of_mujoco(seed: int, bodies: int) -> None:
    pytest.importorskip("mujoco")
    from dynid.simulation.plant.mujoco_model import mujoco_model
    from dynid.simulation.plant.mujoco_plant import Stepper

    rng = np.random.default_rng(seed)
    robot = random_tree(rng, bodies, drive=("Ia",))
    if not robot.coordinates:
        return
    truth = truth_of(robot, rng)
    q, dq, _ = random_states(rng, robot, 1)
    built = mujoco_model(robot, truth, step=STEP)
    other = Stepper(built, q[0], dq[0])
    other.evaluate(0)
    dynamics = ForwardDynamics(robot, named_values(robot, truth))
    none = np.zeros((1, len(robot.actuators)))
    found = dynamics.accelerations(q, dq, none).ddq[0]
    expected = np.array(other.data.qacc[built.at_v])
    # Rounding of two programs, times the condition of a mass matrix of bodies with rotors of 0.3 kg m^2.
    np.testing.assert_allclose(found, expected, atol=1e-9 * max(1.0, np.abs(expected).max()))
    plant = ForwardPlant(replace(robot, actuators=()), truth, q[0], dq[0], PlantSettings(), STEP)
    plant.recorded(np.array([0.0, STEP]), 1)
    q1, dq1 = plant.q, plant.dq
    other.advance(0)
    size = max(1.0, np.abs(expected).max())
    # Both are Runge-Kutta of fourth order; quaternions are integrated along other curves: h^5 apart.
    np.testing.assert_allclose(dq1[0], other.data.qvel[built.at_v], atol=1e-8 * size)
    np.testing.assert_allclose(q1[0], other.data.qpos[built.at_q], atol=1e-8 * size)


@FEW
@given(
    seed=st.integers(0, 10_000),
    bodies=st.integers(3, 5),
    fix=st.sampled_from([*FIXED_BY.values(), "rod", ("x",), ("z", "rx")]),
)
def test_inverse_dynamics_inverts_forward_dynamics_through_loops(seed: int, bodies: int, fix) -> None:
    rng = np.random.default_rng(seed)
    robot, _ = closed_mechanism(rng, bodies, [fix])
    assembly = assembly_of(robot)
    if not assembly.dof:
        return
    truth = truth_of(robot, rng)
    q = assembly.walk(rng, 3, reach=0.1)
    dq = assembly.random_rates(q, rng)[0]
    tau = 10.0 * rng.normal(size=(3, len(robot.actuators)))
    dynamics = ForwardDynamics(robot, named_values(robot, truth))
    found = dynamics.accelerations(q, dq, tau)
    efforts = dynamics.inverse(q, dq, found.ddq)
    left = np.einsum("nvd,nv->nd", found.N, efforts - tau @ robot.actuator_map)
    # Rounding of a solve; efforts are those of the whole tree, reactions of the loops among them.
    assert np.abs(left).max() < 1e-9 * np.abs(efforts).max() * max(1.0, np.abs(found.N).max())
    A = assembly.closure.values(q).A
    open_by = np.einsum("ncv,nv->nc", A, found.ddq) + assembly.closure.bias(q, dq)
    assert np.abs(open_by).max() < 1e-9 * max(1.0, np.abs(found.ddq).max())


def springs(robot, plant: ForwardPlant, omega: float) -> Controller:
    """Motors that hold the robot and pull it back: efforts with a potential, so that energy stays."""
    stiffness = omega**2 * plant.felt
    still, N = np.zeros_like(plant.dq), plant.dynamics.freedoms.tangent(plant.q)
    weight = np.einsum("nvd,nv->nd", N, plant.dynamics.inverse(plant.q, still, still))
    hold = least_norm(motor_jacobian(robot, N), weight)[0]
    wanted = hold + stiffness * (position_map(robot) @ plant.q[0])

    def always(times):
        return np.tile(wanted, (len(times), 1)), np.zeros((len(times), len(wanted)))

    return Controller(robot, (stiffness, np.zeros_like(stiffness)), always)


def swinging(name: str, speed: float) -> ForwardPlant:
    """A built-in robot without friction on springs of 3 Hz, pushed."""
    robot = load_robot(name)
    truth = read_demo(demo_file(name), robot).truth
    rubbing = ("Fv", "Fs", "Off", "Fv+", "Fv-", "Fs+", "Fs-")
    smooth = {key: 0.0 if key.partition("_")[0] in rubbing else value for key, value in truth.items()}
    if robot.is_closed:
        assembly = assembly_of(robot)
        q = assembly.start
        N = assembly.tangent(assembly.closure.values(q[None]).A)[0]
        dq = speed * N @ np.ones(N.shape[1])
    else:
        q, dq = np.full(len(robot.positions), 0.3), np.full(len(robot.coordinates), speed)
    plant = ForwardPlant(robot, smooth, q, dq, PlantSettings(), 0.004)
    plant.drive(springs(robot, plant, 6.0 * np.pi))
    return plant
