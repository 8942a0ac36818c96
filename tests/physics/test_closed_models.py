"""Between models of closed robots: one null space, passive friction in all, counts that do not move."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.info import describe
from dynid.kinematics.assembly import Assembly, assembly_of
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.joint import JointKind
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.variant import variant
from dynid.pipeline import identify_logs
from dynid.regressor.regressor import energy_row, tree_matrix
from dynid.simulation.prescribed import simulate_log
from tests.built_in import EXACT
from tests.physics.test_closure import any_fix, assembled, closed_mechanism

pytestmark = pytest.mark.usefixtures("no_symbols")

OLS = {**EXACT, "estimator": "ols"}


def rows_of_three_models(robot: Mechanism, assembly: Assembly, n: int, seed: int):
    """Inertial columns at random feasible states: N^T W, dq^T W, and differences of energy."""
    rng = np.random.default_rng(seed)
    q = assembly.walk(rng, n)
    dq, ddq, N = assembly.random_rates(q, rng)
    table = parameter_table(robot)
    columns = [i for i, parameter in enumerate(table) if parameter.kind == "inertial"]
    W = tree_matrix(robot, q, dq, ddq)[:, :, columns]
    inverse = np.einsum("nvd,nvp->ndp", N, W).reshape(-1, len(columns))
    bodies = [joint.child for joint in robot.joints]
    place = [10 * bodies.index(table[i].owner) + SYMBOLS.index(table[i].symbol) for i in columns]
    h = energy_row(robot, q, dq)[:, place]
    return inverse, np.einsum("nv,nvp->np", dq, W), h[1:] - h[0]


def null_space(W: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, float]:
    """Null space of W with columns divided by `scale`, and the gap in singular values that decides it."""
    s, Vt = np.linalg.svd(W / scale, full_matrices=False)[1:]
    s = np.append(s / s[0], 1e-17)
    rank = int(np.argmax(s < 1e-9))
    return Vt[rank:].T, float(s[rank - 1] / s[rank])


def assert_same_null_space(
    robot: Mechanism, assembly: Assembly, n: int, seed: int, reach: float = 1.0
) -> int:
    """Returns the rank; 0 where the singular values of one model leave it open."""
    systems = rows_of_three_models(robot, assembly, n, seed)
    norms = np.linalg.norm(systems[0], axis=0)
    scale = np.where(norms > 1e-9 * norms.max(), norms, norms.max())
    spaces = []
    for W in systems:
        Z, gap = null_space(W, scale)
        if gap < 1e3:
            return 0
        spaces.append(Z)
    for Z in spaces[1:]:
        assert Z.shape == spaces[0].shape
        # Angles between the spaces: rounding of closed loops times the condition of the rows.
        cosines = np.linalg.svd(spaces[0].T @ Z, compute_uv=False)
        assert cosines.min(initial=1.0) > 1.0 - 1e-6
    return len(scale) - spaces[0].shape[1]


@pytest.mark.parametrize(
    ("name", "rank"),
    [("dualv", 16), ("orthoglide", None), ("evra", 90), ("delta", None), ("palletiser", None)],
)
def test_the_three_models_have_one_null_space(name: str, rank: int | None) -> None:
    robot = variant(load_robot(name), drive=())
    # One row a state in power and energy: five states a column lift the weakest ones out of rounding.
    n = 5 * len(parameter_table(robot))
    found = assert_same_null_space(robot, assembly_of(robot), n, 1)
    assert found == describe(load_robot(name), drive=()).n_base
    assert rank in (None, found)


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1), fixes=st.lists(any_fix, min_size=1, max_size=2))
def test_the_three_models_have_one_null_space_on_random_mechanisms(seed: int, fixes) -> None:
    rng = np.random.default_rng(seed)
    assembly = assembled(rng, 4, fixes)
    # A random mechanism may be too near to another one to be decided.
    assume(assert_same_null_space(assembly.mechanism, assembly, 200, seed) > 0)


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1), fixes=st.lists(any_fix, min_size=1, max_size=2))
def test_power_is_velocity_times_inverse_rows_and_the_rate_of_energy(seed: int, fixes) -> None:
    """At any feasible state of a random closed mechanism, whatever the parameters."""
    rng = np.random.default_rng(seed)
    assembly = assembled(rng, 4, fixes)
    robot = assembly.mechanism
    q = assembly.walk(rng, 8, reach=0.3)
    dq, ddq, N = assembly.random_rates(q, rng)
    W = tree_matrix(robot, q, dq, ddq)
    power = np.einsum("nv,nvp->np", dq, W)
    u = np.einsum("nvd,nv->nd", np.linalg.qr(N)[0], dq)
    inverse = np.einsum("nvd,nvp->ndp", np.linalg.qr(N)[0], W)
    size = np.abs(power).max()
    # dq lies in the span of N: the same products in another order.
    np.testing.assert_allclose(np.einsum("nd,ndp->np", u, inverse), power, atol=1e-9 * size)
    from dynid.kinematics.closure import moved

    h = 1e-4
    ends = [
        energy_row(robot, moved(robot, q, s * h * dq + 0.5 * h**2 * ddq), dq + s * h * ddq) for s in (1, -1)
    ]
    # Central differences over 1e-4 s: third derivatives times 1e-9, rounding 1e-12 of the energies.
    rate = (ends[0] - ends[1]) / (2 * h)
    largest = max(size, np.abs(ends[0]).max())
    bound = 1e-5 * largest * (1 + np.abs(dq).max() + np.abs(ddq).max()) ** 2
    np.testing.assert_allclose(rate, power, atol=bound)


FRICTION = """
gravity: [0, -9.81, 0]
joints:
  - {name: left, kind: revolute, parent: base, child: left_inner}
  - {name: left_elbow, kind: revolute, parent: left_inner, child: left_outer, mdh: {d: 0.3}}
  - {name: right, kind: revolute, parent: base, child: right_inner, xyz: [0.2, 0, 0]}
  - {name: right_elbow, kind: revolute, parent: right_inner, child: right_outer, mdh: {d: 0.3}}
loops:
  - name: tip
    kind: revolute
    a: {body: left_outer, xyz: [0.4, 0, 0]}
    b: {body: right_outer, xyz: [0.4, 0, 0]}
measured: [left, right]
actuators: [left, right]
drive: {left: [Fv, Fs], right: [Fv, Fs], left_elbow: [Fv, Fs], tip: [Fv+, Fv-, Fs+, Fs-]}
limits: {left: {q: [1.4, 3.2]}, right: {q: [-0.2, 1.6]}}
start: {left: 2.4, left_elbow: -1.4, right: 0.7, right_elbow: 1.4}
"""
PASSIVE = {"Fv_left_elbow": 0.21, "Fs_left_elbow": 0.13, "Fs_left": 0.4}
PASSIVE |= {"Fv+_tip": 0.11, "Fv-_tip": 0.16, "Fs+_tip": 0.07, "Fs-_tip": 0.05}


@cache
def rubbing_log(folder: str):
    robot = load_robot(Path(folder) / "rubbing.yaml")
    names = [parameter.name for parameter in parameter_table(robot)]
    rng = np.random.default_rng(5)
    truth = {name: float(x) for name, x in zip(names, rng.uniform(0.1, 0.5, len(names)), strict=True)}
    truth |= PASSIVE
    motion = random_motion(robot, 2, frequency=0.5, draws=2)
    log = simulate_log(robot, truth, motion, rate=1000.0, duration=motion.period, velocity=True)
    return robot, truth, replace(log, ddq=motion.ddq(log.t))


@pytest.fixture(scope="module")
def rubbing(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rubbing")
    (folder / "rubbing.yaml").write_text(FRICTION)
    return rubbing_log(str(folder))


@pytest.mark.parametrize("model", ["inverse", "power", "energy"])
def test_friction_of_passive_and_cut_joints_is_found_by_every_model(rubbing, model: str) -> None:
    robot, truth, log = rubbing
    options = {"energy": {"window": 0.005}} if model == "energy" else {}
    experiment = Experiment(robot=robot, model=model, **OLS, **options)
    estimate = identify_logs(robot, [log], (), experiment, truth=truth)
    assert not estimate.not_identifiable
    values = {parameter.name: parameter.value for parameter in estimate.parameters}
    for name, value in PASSIVE.items():
        # Exact rows by inverse and power; windows of 5 ms integrate to about 1e-9 beside reversals.
        assert values[name] == pytest.approx(value, rel=1e-5), name


def test_every_model_names_the_same_parameters(rubbing) -> None:
    robot, _, log = rubbing
    names = {
        model: [
            one.name
            for one in identify_logs(robot, [log], (), Experiment(robot=robot, model=model, **OLS)).parameters
        ]
        for model in ("inverse", "power", "energy")
    }
    assert names["inverse"] == names["power"] == names["energy"]


def in_millimetres(name: str) -> str:
    """The built-in robot with every length a thousand times larger."""
    text = (files("dynid.robots") / f"{name}.yaml").read_text()
    text = re.sub(r"(?m)^gravity: \[(.*)\]", lambda m: "gravity: [" + _times(m[1]) + "]", text)
    if name == "dualv":
        text = text.replace("d1: 0.41, d2: 0.28, d3: 0.28", "d1: 410, d2: 280, d3: 280")
        return text.replace("bx: 0.105, by: 0.055", "bx: 105, by: 55")
    if name == "orthoglide":
        text = text.replace("D4: 0.31025, b7: 0.08", "D4: 310.25, b7: 80")
        return re.sub(r"(?ms)^limits:.*?(?=^ties:)", "", text)
    text = text.replace("0.6*", "600*").replace("0.4*", "400*").replace("bz: 0.1", "bz: 100")
    text = text.replace("pose_z: 0.87", "pose_z: 870").replace("0.851218", "851.218")
    return re.sub(r"(?ms)^limits:.*?(?=^ties:)", "", text)


def _times(numbers: str) -> str:
    return ", ".join(str(1000 * float(x)) for x in numbers.split(","))


@pytest.mark.parametrize("name", ["dualv", "orthoglide", "evra"])
def test_counts_do_not_depend_on_units(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.yaml"
    file.write_text(in_millimetres(name))
    metres, millimetres = describe(load_robot(name)), describe(load_robot(file))
    assert (millimetres.dof, millimetres.n_base) == (metres.dof, metres.n_base)
    assert [one.name for one in millimetres.base] == [one.name for one in metres.base]


@pytest.mark.parametrize("name", ["dualv", "orthoglide", "evra", "delta", "palletiser"])
@pytest.mark.parametrize("seed", [1, 2])
def test_counts_do_not_depend_on_the_order_of_joints(name: str, seed: int) -> None:
    robot = load_robot(name)
    rng = np.random.default_rng(seed)
    left, done, order = list(robot.joints), {"base"}, []
    while left:
        ready = [joint for joint in left if joint.parent in done]
        joint = ready[rng.integers(len(ready))]
        left.remove(joint)
        done.add(joint.child)
        order.append(joint)
    assert [one.name for one in order] != [one.name for one in robot.joints]
    shuffled, plain = describe(replace(robot, joints=tuple(order))), describe(robot)
    assert (shuffled.dof, shuffled.n_base, shuffled.n_standard) == (plain.dof, plain.n_base, plain.n_standard)


def test_kinds_of_the_random_mechanisms_are_all_met() -> None:
    """The tests above mean something only if their mechanisms have quaternions too."""
    kinds = set()
    for seed in range(20):
        robot, _ = closed_mechanism(np.random.default_rng(seed), 4, ["rod"])
        kinds |= {joint.kind for joint in robot.joints}
    assert {JointKind.SPHERICAL, JointKind.FREE, JointKind.PRISMATIC} <= kinds


def test_coordinates_that_move_at_every_pose_are_chosen_beside_those_that_are_held() -> None:
    """Against brute force: no other choice of the next coordinate moves more at its worst pose."""
    from dynid.kinematics.elimination import best_coordinates

    rng = np.random.default_rng(5)
    N = np.linalg.qr(rng.standard_normal((6, 7, 3)))[0]
    held = rng.standard_normal((1, 7))
    chosen = best_coordinates(N, range(7), held=held)
    assert len(chosen) == 2
    assert len(best_coordinates(N, range(7))) == 3

    def moves(coordinate: int, still: np.ndarray) -> float:
        """The least that a coordinate moves, over the poses, while rows of `still` stand."""
        sizes = []
        for one in N:
            free = np.linalg.svd(still @ one)[2][len(still) :].T
            sizes.append(np.linalg.norm((one @ free)[coordinate]))
        return min(sizes)

    first = [moves(i, held) for i in range(7)]
    assert chosen[0] == int(np.argmax(first))
    both = np.vstack([held, np.eye(7)[chosen[0]]])
    assert chosen[1] == int(np.argmax([moves(i, both) for i in range(7)]))
