"""Five built-in closed robots: they assemble as described. Counts, truth: `physics/test_closed_robots.py`."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.inertia import is_physical
from dynid.mechanism.load import builtin_robots
from dynid.mechanism.parameters import parameter_table
from tests.built_in import robot_of, truth_of

# Degrees of freedom, closure equations beyond the rank, base parameters. By hand, beside the drive terms:
# rrr3 has three of each leg and four of the platform; delta ZZ, MX, MY of each arm (Ia goes into ZZ) and
# the mass of the platform.
EXPECTED = {
    "delta": (3, 0, 19),
    "fivebar": (2, 3, 17),
    "palletiser": (4, 3, 34),
    "rrr3": (3, 6, 22),
    "stewart": (6, 0, 106),
}
ROBOTS = tuple(EXPECTED)


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_load_with_an_experiment(name: str) -> None:
    robot = robot_of(name)
    assert builtin_robots()[name]
    assert robot.notices == ()
    assert set(robot.limits) >= set(robot.measured)
    table = parameter_table(robot)
    assert list(truth_of(name)) == [parameter.name for parameter in table]
    for body in robot.bodies:
        chi = np.array([truth_of(name)[p.name] for p in table if p.owner == body and p.kind == "inertial"])
        assert chi[-1] > 0 if len(chi) == 1 else is_physical(chi), body


@pytest.mark.parametrize("name", ROBOTS)
def test_mobility(name: str) -> None:
    robot = robot_of(name)
    assembly = assembly_of(robot)
    dof, n_redundant, _ = EXPECTED[name]
    assert assembly.mobility.dof == len(robot.actuators) == dof
    assert assembly.mobility.n_redundant == n_redundant
    given = np.array([robot.start.get(position, 0.0) for position in robot.positions])
    # The start poses are written with six decimals.
    np.testing.assert_allclose(assembly.start, given, rtol=0, atol=2e-6)


def walked(name: str) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Poses, and rotations and origins of the bodies at them."""
    robot = robot_of(name)
    q = assembly_of(robot).walk(np.random.default_rng(4), 20, reach=0.3)
    still = np.zeros((len(q), len(robot.coordinates)))
    motion = body_motion(tree_of(robot), q, still, still)
    names = list(robot.bodies)
    R = {name: motion.R[:, i] for i, name in enumerate(names)}
    return q, R, {name: motion.p[:, i] for i, name in enumerate(names)}


def test_the_platform_of_the_delta_stays_parallel_to_the_base() -> None:
    _, R, p = walked("delta")
    # Closed to 1e-12 m; angles may be some hundred times less well determined.
    np.testing.assert_allclose(R["platform"], np.tile(np.eye(3), (20, 1, 1)), rtol=0, atol=1e-9)
    assert np.ptp(p["platform"], axis=0).min() > 0.05


def test_the_parallelogram_of_the_palletiser() -> None:
    q, R, _ = walked("palletiser")
    at = {name: q[:, i] for i, name in enumerate(robot_of("palletiser").positions)}
    # Closed to 1e-12.
    np.testing.assert_allclose(at["crank"], at["shoulder"] + at["elbow"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(R["tool"][:, 2, 2], 1.0, rtol=0, atol=1e-9)


def test_leg_lengths_of_the_stewart_platform() -> None:
    q, R, p = walked("stewart")
    base = np.radians([-10, 10, 110, 130, -130, -110])
    platform = np.radians([-50, 50, 70, 170, -170, -70])
    B = np.column_stack([0.5 * np.cos(base), 0.5 * np.sin(base), np.full(6, 0.08)])
    P = np.column_stack([0.3 * np.cos(platform), 0.3 * np.sin(platform), np.zeros(6)])
    spans = p["platform"][:, None] + np.einsum("nij,kj->nki", R["platform"], P) - B
    legs = [robot_of("stewart").positions.index(f"leg{i}") for i in range(1, 7)]
    # Closed to 1e-12 m.
    np.testing.assert_allclose(q[:, legs], np.linalg.norm(spans, axis=2), rtol=0, atol=1e-11)
