"""The compiled plant: tiles of one sample, declared columns, and coordinates that fail on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.dynamics.forward import masses_of
from dynid.dynamics.freedoms import ClosedFreedoms, freedoms_of
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.elimination import eliminate
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.projection.load import load_model
from dynid.regressor.regressor import tree_matrix
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.plant.control import Controller
from dynid.simulation.plant.forward_plant import ForwardPlant
from dynid.simulation.plant.settings import PlantSettings
from tests.physics.test_forward_random import swinging

TERMS = """
name: wrist
gravity: [0, -9.81, 0]
joints:
  - {name: a, kind: revolute, parent: base, child: upper, mdh: {}}
  - {name: b, kind: revolute, parent: upper, child: lower, mdh: {d: 0.5, alpha: 0.7}}
drive: {"*": [Ia, Fv, Fl]}
terms:
  - {name: coupled, joint: a, expression: "ddq(b)"}
  - {name: coupled, joint: b, expression: "0.3 * ddq(a)"}
  - {name: spring, joint: b, expression: "-(sin(q(b)) - atan2(q(a), 2) ^ 2) / 3"}
  - {name: drag, joint: a, expression: "sign(dq(a)) * abs(dq(a)) ^ 1.5"}
  - {name: drag, joint: b, expression: "exp(-sqrt(abs(dq(b)))) * tan(0.1) * cos(q(a))"}
limits: {a: {q: 1, dq: 3, ddq: 20}, b: {q: 1, dq: 3, ddq: 20}}
"""
FOUR_BAR = """
name: fourbar
gravity: [0, -9.81, 0]
joints:
  - {name: crank, kind: revolute, parent: base, child: crank_bar, mdh: {}}
  - {name: coupling, kind: revolute, parent: crank_bar, child: coupler, mdh: {d: 0.1}}
  - {name: rocker, kind: revolute, parent: base, child: rocker_bar, mdh: {d: 0.35}}
loops:
  - name: pin
    kind: revolute
    axis: [0, 0, 1]
    a: {body: coupler, xyz: [0.3, 0, 0]}
    b: {body: rocker_bar, xyz: [0.25, 0, 0]}
measured: [crank]
actuators: [crank]
drive: {crank: [Fv]}
start: {crank: 1.0, coupling: -0.5, rocker: 1.6}
"""


def test_one_sample_alone_is_one_of_many() -> None:
    from dynid.common.compiled import for_one_sample
    from dynid.dynamics.kernels import accelerations

    robot = load_robot("dualv")
    free, masses = freedoms_of(robot), masses_of(robot, read_demo(demo_file("dualv"), robot).truth, ())
    assembly, rng = assembly_of(robot), np.random.default_rng(0)
    q = assembly.walk(rng, 5, reach=0.2)
    dq, side = assembly.random_rates(q, rng)[0], rng.normal(size=(5, len(robot.coordinates)))
    tables = (free.closure.tables, free.plan.tables, masses)
    found = []
    for kernel in (accelerations, for_one_sample(accelerations)):
        v, d = dq.shape[1], free.dof
        out = np.empty((5, v)), np.empty((5, v, d)), np.empty((5, d, d)), np.empty(5)
        kernel(*tables, q, dq, side, *out)
        found.append(out)
    for many, one in zip(*found, strict=True):
        # The same operations; sines by another sum, and products fused or not: some roundings apart.
        np.testing.assert_allclose(one, many, rtol=1e-11, atol=1e-11 * np.abs(many).max())


def test_elimination_solves_what_numpy_solves() -> None:
    from numba import njit

    from dynid.simulation.plant.small_kernels import solve

    run, rng = njit(lambda A, X: solve(A, X)), np.random.default_rng(3)
    for n in range(1, 9):
        A, X = rng.normal(size=(n, n)), rng.normal(size=(n, 3))
        A[0, 0] = 0.0 if n > 1 else 2.0  # no pivot without an exchange of rows
        solved = X.copy()
        run(A.copy(), solved)
        # Backward stable: errors are about rounding times the condition, at most 1e3 here.
        np.testing.assert_allclose(A @ solved, X, atol=1e-11)


def test_declared_columns_act_as_the_regressor_says(tmp_path: Path) -> None:
    file = tmp_path / "wrist.yaml"
    file.write_text(TERMS, encoding="utf-8")
    robot = load_robot(str(file))
    size = {"XX": 0.3, "YY": 0.3, "ZZ": 0.3, "MX": 0.5, "M": 3.0, "Ia": 0.2, "Fv": 0.4, "Fl": 0.1}
    named = {"coupled": 0.1, "spring": 2.0, "drag": 0.3}
    table = parameter_table(robot)
    chi = np.array([named.get(p.name, size.get(p.symbol, 0.0)) for p in table])
    start = np.array([0.3, -0.4]), np.array([0.7, -0.9])
    none = np.zeros(2)

    def pushed(times):
        return np.column_stack([2.0 + np.sin(9 * times), np.cos(7 * times)]), np.zeros((len(times), 2))

    values = dict(zip((p.name for p in table), chi.tolist(), strict=True))
    plant = ForwardPlant(robot, values, *start, PlantSettings(), 5e-4)
    plant.drive(Controller(robot, (none, none), pushed))
    run = plant.recorded(np.arange(41) / 100.0, 20)
    load = load_model(robot, table, chi)(run.q, run.dq, run.ddq, np.eye(2), None)
    tree = tree_matrix(robot, run.q, run.dq, run.ddq, load=load) @ chi
    sliding = (np.abs(run.dq) > 1e-6).all(axis=1)
    assert sliding.sum() > 20
    # Rounding of the iteration for the load, and of a solve of two equations.
    np.testing.assert_allclose(tree[sliding], run.tau[sliding], atol=1e-11 * np.abs(tree).max())


def test_coordinates_are_changed_where_they_fail(tmp_path: Path) -> None:
    """A rocker stands still at its dead points: as the coordinate of a turning crank it fails there."""
    file = tmp_path / "fourbar.yaml"
    file.write_text(FOUR_BAR, encoding="utf-8")
    robot = load_robot(str(file))
    size = {"ZZ": 0.02, "MX": 0.05, "M": 0.5, "Fv": 0.005}
    values = {p.name: size.get(p.symbol, 0.0) for p in parameter_table(robot)}
    assembly = assembly_of(robot)
    q = assembly.start
    N = assembly.tangent(assembly.closure.values(q[None]).A)[0]
    dq = 20.0 * N[:, 0] / N[0, 0]  # rad/s of the crank, whose turns the friction slows down
    runs = []
    for own in (None, "rocker"):
        free = ClosedFreedoms(robot)
        if own is not None:
            at = robot.coordinates.index(own)
            where = free.closure.tables[4]
            A = free.closure.values(assembly.samples).A
            plan = eliminate(A, [at], (where[0], where[1]))
            assert plan is not None
            free.plan, free.independent = plan, np.array([at])
        plant = ForwardPlant(robot, values, q, dq, PlantSettings(), 5e-4, freedoms=free)
        runs.append(plant.recorded(np.arange(151) / 100.0, 20))
        if own is not None:
            assert plant.freedoms is not free
    first, second = runs
    assert np.ptp(first.q[:, 0]) > 2.0 * np.pi
    assert max(run.gap.max() for run in runs) < 1e-12
    # Where the rocker barely moves, its rounding is magnified a hundred times before it is replaced.
    np.testing.assert_allclose(second.q, first.q, atol=1e-8)
    assert second.energy_drift < 1e-7


@pytest.mark.parametrize(
    ("name", "step", "most"), [("ur5", 1e-3, 1e-7), ("evra", 1e-3, 1e-7), ("fivebar", 5e-3, 5e-5)]
)
def test_energy_stays_on_springs(name: str, step: float, most: float) -> None:
    """One second; `benchmarks/energy_drift.py` has ten seconds of all robots."""
    plant = swinging(name, 0.3)
    plant.step = step
    run = plant.recorded(np.arange(11) / 10.0, round(0.1 / step))
    assert np.ptp(run.q, axis=0).max() > 0.02  # it swings
    # Runge-Kutta: (omega h)^4 / 120 for each of 19 radians at omega h = 0.019 (2e-8), or 0.1 (8e-5).
    assert run.energy_drift < most
    assert run.gap.max() < 1e-10  # loops are put back after every step
