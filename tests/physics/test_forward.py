"""Forward dynamics: against the inverse, and derivatives against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.forward import ForwardDynamics
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.closure import moved
from dynid.mechanism.load import load_robot
from tests.built_in import truth_of
from tests.parameter_orders import named_values

ROBOTS = ("serial6", "fivebar", "dualv", "orthoglide", "delta", "stewart", "palletiser")


def states_of(name: str, n: int = 6, seed: int = 0):
    """A robot with its true parameters, feasible states and efforts."""
    robot = load_robot(name)
    truth = truth_of(name)
    dynamics = ForwardDynamics(robot, named_values(robot, truth))
    rng = np.random.default_rng(seed)
    if robot.loops:
        assembly = assembly_of(robot)
        q = assembly.walk(rng, n, reach=0.2)
        dq = assembly.random_rates(q, rng)[0]
    else:
        q, dq = rng.uniform(-1, 1, (n, len(robot.positions))), rng.normal(size=(n, len(robot.coordinates)))
    tau = 10.0 * rng.normal(size=(n, len(robot.actuators)))
    return robot, dynamics, q, dq, tau


@pytest.mark.parametrize("name", ROBOTS)
def test_accelerations_satisfy_the_equations_of_motion(name: str) -> None:
    robot, dynamics, q, dq, tau = states_of(name)
    found = dynamics.accelerations(q, dq, tau)
    left = dynamics.inverse(q, dq, found.ddq) - tau @ robot.actuator_map
    scale = np.abs(dynamics.inverse(q, dq, found.ddq)).max()
    # Only reactions of the loops are left, which do no work along N: rounding of a solve.
    assert np.abs(np.einsum("nvd,nv->nd", found.N, left)).max() < 1e-10 * scale
    if robot.loops:
        assembly = assembly_of(robot)
        open_by = np.einsum("ncv,nv->nc", assembly.closure.values(q).A, found.ddq) + assembly.closure.bias(
            q, dq
        )
        assert np.abs(open_by).max() < 1e-10 * np.abs(found.ddq).max()  # rounding of the elimination
    np.testing.assert_allclose(found.mass, np.swapaxes(found.mass, 1, 2), rtol=1e-9, atol=1e-12 * scale)
    assert np.linalg.eigvalsh(found.mass).min() > 0.0


@pytest.mark.parametrize("name", ROBOTS)
def test_slopes_equal_finite_differences(name: str) -> None:
    robot, dynamics, q, dq, tau = states_of(name)
    free = dynamics.freedoms
    found = dynamics.accelerations(q, dq, tau)
    slopes = dynamics.slopes(q, dq, tau, found)
    own = free.independent

    def ddy(q_new, dq_new, chi=None):
        one = dynamics if chi is None else ForwardDynamics(robot, chi, freedoms=free)
        return one.accelerations(q_new, dq_new, tau).ddq[:, own]

    def moved_along(step, k):
        near = moved(robot, q, step * found.N[:, :, k])
        if robot.loops:
            # The smallest step back onto the loops is even in the step: the difference does not feel it.
            near = assembly_of(robot).close(near)
        return ddy(near, free.lifted(near, dy))

    def slope(function):
        """Central differences of two steps, extrapolated: near singular poses third derivatives are large."""
        wide, narrow = ((function(h) - function(-h)) / (2.0 * h) for h in (1e-5, 5e-6))
        return (4.0 * narrow - wide) / 3.0

    dy = dq[:, own]
    size = np.abs(slopes.by_position).max() + np.abs(found.ddq).max()
    for k in range(free.dof):
        # Fifth derivatives times h^4 of 1e-20, rounding over h of 1e-10.
        by_position = slope(lambda h, k=k: moved_along(h, k))
        np.testing.assert_allclose(by_position, slopes.by_position[:, :, k], atol=2e-6 * size)
        unit = np.eye(free.dof)[k]
        by_velocity = slope(lambda h, unit=unit: ddy(q, free.lifted(q, dy + h * unit)))
        np.testing.assert_allclose(by_velocity, slopes.by_velocity[:, :, k], atol=2e-6 * size)
    rng = np.random.default_rng(2)
    change = rng.normal(size=len(dynamics.chi)) * 1e-3
    ends = [ddy(q, dq, dynamics.chi + sign * change) for sign in (1.0, -1.0)]
    expected = 2.0 * slopes.by_parameter @ change
    # Accelerations bend with parameters: third order in changes of a thousandth.
    np.testing.assert_allclose(ends[0] - ends[1], expected, atol=1e-2 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["serial6", "fivebar", "stewart"])
def test_energy_stays_where_nobody_works(name: str) -> None:
    from dynid.dynamics.integrate import integrate
    from dynid.regressor.regressor import energy_row

    robot = load_robot(name)
    truth = truth_of(name)
    inertial = {key: value for key, value in truth.items() if key[:2] not in ("Fv", "Fs", "Of", "Ia")}
    chi = named_values(robot, inertial)
    dynamics = ForwardDynamics(robot, chi)
    _, _, q, dq, tau = states_of(name, 3)
    drift = {}
    for steps in (40, 80):
        runs = integrate(dynamics, q, 0.3 * dq, lambda *_: 0.0 * tau, 0.1 / steps, steps)
        before, after = (
            energy_row(robot, runs.q[k], runs.dq[k]) @ _energy_columns(robot, chi) for k in (0, -1)
        )
        still = np.zeros_like(dq)
        Mv = dynamics.inverse(q, still, runs.dq[0]) - dynamics.inverse(q, still, still)
        kinetic = 0.5 * np.sum(runs.dq[0] * Mv, axis=1)
        drift[steps] = np.abs((after - before) / kinetic).max()
    # Fourth order: half the step leaves a sixteenth of the error, or rounding.
    assert drift[80] < max(drift[40] / 8.0, 1e-12)
    assert drift[80] < 1e-6


def _energy_columns(robot, chi):
    from dynid.mechanism.inertia import SYMBOLS
    from dynid.mechanism.parameters import parameter_table

    value = {p.name: chi[i] for i, p in enumerate(parameter_table(robot))}
    bodies = [*(joint.child for joint in robot.joints), *robot.payloads]
    return np.array([value.get(f"{symbol}_{body}", 0.0) for body in bodies for symbol in SYMBOLS])


@pytest.mark.parametrize("name", ["serial6", "dualv", "stewart"])
def test_integrated_derivatives_equal_differences_of_runs(name: str) -> None:
    from dynid.dynamics.integrate import integrate

    robot, dynamics, q, dq, tau = states_of(name, 2)
    dq, tau = 0.3 * dq, 0.1 * tau
    rng = np.random.default_rng(4)
    # Friction that jumps has no derivative at a reversal; viscous friction stays.
    smooth = np.array([0.0 if p.symbol.startswith("Fs") else 1.0 for p in _table(robot)])
    dynamics = ForwardDynamics(robot, dynamics.chi * smooth, freedoms=dynamics.freedoms)
    directions = (dynamics.chi * rng.normal(size=len(dynamics.chi)))[:, None]
    runs = integrate(dynamics, q, dq, lambda *_: tau, 2e-3, 8, directions)
    own, free = dynamics.freedoms.independent, dynamics.freedoms
    h = 1e-5
    ends = []
    for sign in (1.0, -1.0):
        other = ForwardDynamics(robot, dynamics.chi + sign * h * directions[:, 0], freedoms=free)
        ends.append(integrate(other, q, dq, lambda *_: tau, 2e-3, 8).q[-1])
    slope = _apart(robot, ends)[:, own] / (2 * h)
    size = np.abs(slope).max()
    # Central differences of runs: h^2 and rounding over h, both about 1e-9 of the effect.
    np.testing.assert_allclose(runs.by_parameter[-1, :, :, 0], slope, atol=1e-5 * size)
    ends = []
    for sign in (1.0, -1.0):
        pushed = free.lifted(q, dq[:, own] + sign * h * np.eye(free.dof)[0])
        ends.append(integrate(dynamics, q, pushed, lambda *_: tau, 2e-3, 8).q[-1])
    slope = _apart(robot, ends)[:, own] / (2 * h)
    np.testing.assert_allclose(runs.by_start[-1, :, :, free.dof], slope, atol=1e-5 * np.abs(slope).max())


def _table(robot):
    from dynid.mechanism.parameters import parameter_table

    return parameter_table(robot)


def _apart(robot, ends):
    """From the second pose to the first, in velocity coordinates."""
    from dynid.kinematics.sensors import sensors_of

    sensors = sensors_of(robot, robot.positions)
    apart = np.zeros((len(ends[0]), len(robot.coordinates)))
    apart[:, sensors.velocity] = sensors.miss(ends[1], sensors.read(ends[0]))
    return apart
