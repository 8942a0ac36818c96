"""MuJoCo models of mechanisms: every joint, loop, coupling and drive, and what is refused."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from dynid.common.errors import InputError, NoResultError
from dynid.common.expression import parse
from dynid.excitation.random_motion import random_motion
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.joint import FIXED_BY, JointKind
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Actuator, Body, Coupling, Mechanism, Payload, Term
from dynid.mechanism.parameters import parameter_table
from dynid.motion.logs import read_log
from dynid.regressor.regressor import tree_matrix
from dynid.simulation.files import write_log
from dynid.simulation.plant.engines import plant_log, run_plant
from dynid.simulation.plant.mujoco_model import mujoco_model
from dynid.simulation.plant.mujoco_plant import Stepper
from dynid.simulation.plant.settings import DEFAULT_STEP, STIFF, PlantSettings, substeps
from dynid.simulation.prescribed import inverse_efforts, parameter_vector
from dynid.simulation.sensors import Sensing
from tests.physics.test_closure import closed_mechanism
from tests.random_mechanisms import random_frame, random_inertias, random_states, random_tree

mujoco = pytest.importorskip("mujoco")


def truth_of(robot: Mechanism, rng: np.random.Generator, drive: float = 0.3) -> dict[str, float]:
    """Random physical bodies; every drive term and extra column has the value `drive`."""
    values = {parameter.name: drive for parameter in parameter_table(robot)}
    for name in (*robot.bodies, *robot.payloads):
        ten = dict(zip(SYMBOLS, random_inertias(rng, 1).tolist(), strict=True))
        values |= {f"{symbol}_{name}": ten[symbol] for symbol in SYMBOLS if f"{symbol}_{name}" in values}
    return values


def release(robot: Mechanism, truth, q, dq, *, rate: float, duration: float, step: float = DEFAULT_STEP):
    """The plant without motor efforts, from a state on the loops: without friction it conserves energy."""
    n = substeps(rate, step)
    built = mujoco_model(robot, truth, step=1.0 / (rate * n), softness=STIFF)
    return Stepper(built, q, dq).recorded(np.arange(round(duration * rate) + 1) / rate, n)


def planar_arm(rng: np.random.Generator, **changes) -> Mechanism:
    """Two revolute joints anywhere in space."""
    return replace(random_tree(rng, 2, kinds=(JointKind.REVOLUTE,), chain=True), **changes)


def slow_motion(robot: Mechanism):
    limits = {name: {"q": (-0.5, 0.5), "dq": 4.0, "ddq": 40.0} for name in robot.measured_positions}
    return random_motion(replace(robot, limits=limits), 3, frequency=1.0, draws=1)


@pytest.mark.parametrize("seed", range(6))
def test_trees_of_every_joint_kind_have_the_same_dynamics(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 7, drive=("Ia",))
    carrier = "body3"
    robot = replace(robot, payloads={"load": Payload("load", carrier, random_frame(rng))})
    truth = truth_of(robot, rng)
    built = mujoco_model(robot, truth, payloads=("load",))
    q, dq, ddq = random_states(rng, robot, 4)
    expected = tree_matrix(robot, q, dq, ddq, mounted=("load",)) @ parameter_vector(robot, truth)
    data = mujoco.MjData(built.model)
    M = np.zeros((built.model.nv, built.model.nv))
    for i in range(len(q)):
        data.qpos[built.at_q], data.qvel[built.at_v] = q[i], dq[i]
        mujoco.mj_forward(built.model, data)
        mujoco.mj_fullM(built.model, data, M)
        found = M[np.ix_(built.at_v, built.at_v)] @ ddq[i] + data.qfrc_bias[built.at_v]
        # Rounding of chains of up to seven bodies, in both programs.
        np.testing.assert_allclose(found, expected[i], atol=1e-11 * np.abs(expected[i]).max())
    assert not built.invented


LOOPS = [*FIXED_BY.values(), "rod", ("x",), ("z", "rx"), ("x", "y", "z", "rx"), ("x", "ry", "rz")]


@pytest.mark.parametrize("fix", LOOPS, ids=str)
def test_every_kind_of_loop_holds_and_does_no_work(fix) -> None:
    rng = np.random.default_rng(5)
    robot, _ = closed_mechanism(rng, 3, [fix])
    truth = truth_of(robot, rng)
    assembly = assembly_of(robot)
    q = assembly.start
    N = assembly.tangent(assembly.closure.values(q[None]).A)[0]
    run = release(robot, truth, q, N @ rng.normal(size=N.shape[1]), rate=200.0, duration=0.05)
    # Open by (1 - d) a T^2, some 1e-9 m; a rod by a T^2, some 1e-6 m, since MuJoCo does not know how its
    # direction turns. A loop of the wrong kind opens by v t = 0.05 m.
    assert assembly.gaps(run.q).max() < (1e-5 if fix == "rod" else 1e-6)
    N = assembly.tangent(assembly.closure.values(run.q).A)
    tree = tree_matrix(robot, run.q, run.dq, run.ddq) @ parameter_vector(robot, truth)
    left = np.einsum("nvd,nv->nd", N, tree)
    # What moves freely feels no force, and so nothing is held that should be free; a helper link weighs
    # 1e-8 of the robot.
    weight = np.linalg.norm(robot.gravity) * sum(truth[f"M_{name}"] for name in robot.bodies)
    assert np.abs(left).max() < 1e-6 * weight


def test_couplings_of_several_joints_with_an_offset() -> None:
    rng = np.random.default_rng(2)
    tree = random_tree(rng, 3, kinds=(JointKind.REVOLUTE,), chain=True)
    coupling = Coupling("joint2", {"joint0": 0.5, "joint1": -2.0}, 0.3)
    robot = replace(tree, couplings=(coupling,))
    run = release(
        robot, truth_of(robot, rng), np.array([0.2, 0.1, 0.2]), np.zeros(3), rate=200.0, duration=0.1
    )
    held = run.q @ [-0.5, 2.0, 1.0] - 0.3
    assert np.abs(held).max() < 1e-6  # softness, as above
    assert np.abs(run.q - run.q[0]).max() > 1e-3


def test_motors_on_several_joints_friction_of_all_kinds_and_terms() -> None:
    rng = np.random.default_rng(4)
    robot = planar_arm(
        rng,
        actuators=(Actuator("joint0", {"joint0": 1.0}), Actuator("m2", {"joint0": -3.0, "joint1": 5.0})),
        drive={"joint0": ("Fv", "Fs", "Off"), "m2": ("Ia", "Fv+", "Fv-", "Fs+", "Fs-")},
        terms=(Term("stiff", "joint1", parse("sin(q(joint1)) + dq(joint0)^2")),),
    )
    truth = truth_of(robot, rng, 0.02) | {"Fv+_m2": 0.03, "Fs-_m2": 0.01, "stiff": 1.5}
    run = run_plant(
        robot, truth, slow_motion(robot), rate=200.0, duration=1.0, settings=PlantSettings(step=5e-4)
    )
    efforts = inverse_efforts(robot, truth, run.q, run.dq, run.ddq)
    speed = np.stack([run.dq[:, 0], run.dq @ [-3.0, 5.0]], axis=1)
    fast = np.all(np.abs(speed) > 10.0 * np.array([*run.width.values()]), axis=1)
    assert fast.mean() > 0.5
    # tanh(10) is 1 but for 4e-9.
    np.testing.assert_allclose(run.tau[fast], efforts[fast], atol=1e-8 * np.abs(efforts).max())


def test_a_link_without_mass_moves_with_what_holds_it() -> None:
    # A driven or measured loop becomes a joint that carries such a link, welded to the loop's other end.
    rng = np.random.default_rng(1)
    whole, _ = closed_mechanism(rng, 4, [FIXED_BY["weld"]])
    robot = replace(whole, bodies={**whole.bodies, "body3": Body("body3", parameters=())})
    truth = truth_of(robot, rng)
    assert mujoco_model(robot, truth).invented == ("body3",)
    assembly = assembly_of(robot)
    N = assembly.tangent(assembly.closure.values(assembly.start[None]).A)[0]
    v = N @ rng.normal(size=N.shape[1])
    run = release(robot, truth, assembly.start, v, rate=200.0, duration=0.05)
    assert assembly.gaps(run.q).max() < 1e-5  # softness, larger where little mass is held
    N = assembly.tangent(assembly.closure.values(run.q).A)
    tree = tree_matrix(robot, run.q, run.dq, run.ddq) @ parameter_vector(robot, truth)
    weight = np.linalg.norm(robot.gravity) * sum(truth.get(f"M_{name}", 0.0) for name in robot.bodies)
    assert np.abs(np.einsum("nvd,nv->nd", N, tree)).max() < 1e-5 * weight


def test_a_log_can_be_written_read_and_told_apart(tmp_path) -> None:
    robot = planar_arm(np.random.default_rng(0))
    truth = truth_of(robot, np.random.default_rng(0))
    settings = PlantSettings(step=1e-3)
    run = run_plant(robot, truth, slow_motion(robot), rate=100.0, duration=0.5, settings=settings)
    rates = {"velocity": True, "acceleration": True}
    log = plant_log(robot, run, Sensing(**rates), name="arm")
    again = read_log(write_log(log, tmp_path / "arm.csv"), robot)
    for one, other in ((log.q, again.q), (log.dq, again.dq), (log.ddq, again.ddq), (log.tau, again.tau)):
        np.testing.assert_array_equal(one, other)
    assert "RK4 steps" in log.choices["plant"]
    noisy = [plant_log(robot, run, Sensing(effort_sigma=0.1), seed=seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(noisy[0].tau, noisy[1].tau)
    assert 0.05 < np.std(noisy[2].tau - log.tau) < 0.2  # 102 draws of 0.1
    coarse = plant_log(robot, run, Sensing(resolution=1e-3))
    assert np.abs(coarse.q - log.q).max() <= 0.5e-3 + 1e-12


@pytest.mark.parametrize(("rate", "step", "n"), [(500.0, 1e-4, 20), (1000.0, 3e-4, 4), (100.0, 1.0, 1)])
def test_a_whole_number_of_steps_fits_into_a_sample(rate: float, step: float, n: int) -> None:
    assert substeps(rate, step) == n
    with pytest.raises(InputError, match="positive"):
        substeps(-rate, step)


def test_refusals(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    robot = planar_arm(rng)
    truth = truth_of(robot, rng)
    with pytest.raises(InputError, match="unknown payload 'lod'"):
        mujoco_model(robot, truth, payloads=("lod",))
    with pytest.raises(InputError, match="the true parameters of 'body1' are not physically consistent"):
        mujoco_model(robot, truth | {"XX_body1": -1.0})
    with pytest.raises(InputError, match="no parameter 'M_bod1'; did you mean 'M_body1'"):
        mujoco_model(robot, truth | {"M_bod1": 1.0})
    coupled = replace(robot, terms=(Term("Iam", "joint0", parse("ddq(joint1)")),))
    with pytest.raises(InputError, match="'Iam' depends on an acceleration"):
        release(coupled, truth | {"Iam": 1.0}, np.zeros(2), np.zeros(2), rate=100.0, duration=0.1)
    with pytest.raises(NoResultError, match="diverged"):
        release(robot, truth, np.zeros(2), np.full(2, 1e200), rate=10.0, duration=0.3, step=1.0)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(InputError, match=r"pip install 'dynid\[sim\]'"):
        mujoco_model(load_robot("dualv"), np.zeros(112))
