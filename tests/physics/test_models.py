"""Between models: power is velocity times the inverse rows, energy the integral of power."""

from __future__ import annotations

import numpy as np
import pytest

from dynid import load_robot
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.variant import variant
from dynid.problem import prepare
from dynid.simulation.prescribed import parameter_vector, simulate_log
from tests.built_in import EXACT


@pytest.fixture(scope="module", params=["orthoglide", "scara"])
def case(request):
    robot = variant(load_robot(request.param))
    rng = np.random.default_rng(0)
    chi = parameter_vector(robot, rng.uniform(0.5, 1.5, len(parameter_table(robot))))
    motion = random_motion(robot, seed=3, draws=2)
    log = simulate_log(robot, chi, motion, rate=1000.0, duration=2.0, velocity=True)
    return robot, log


def rows(robot, log, model: str, start: int, stop: int):
    source = prepare(robot, [log], Experiment(robot=robot, model=model, **EXACT)).sources[0]
    _, packed, _ = next(iter(source.rows(start, stop, stop - start)))
    p = len(parameter_table(robot))
    W = source.layout.dense(packed, p)
    Y = packed[source.layout.start[1:] - 1].T
    return W, Y, source


def test_power_is_velocity_times_the_inverse_rows(case) -> None:
    robot, log = case
    W, Y, source = rows(robot, log, "inverse", 300, 400)
    P, y, _ = rows(robot, log, "power", 300, 400)
    dq = source.motion.states(300, 400)[1]
    order = [list(robot.measured_positions).index(name) for name in source.directions.names]
    expected = np.einsum("nk,nkp->np", dq[:, order], W)
    # The same products in another order.
    np.testing.assert_allclose(P[:, 0], expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(y[:, 0], np.sum(dq[:, order] * Y, axis=1), atol=1e-9 * np.abs(y).max())


def test_energy_is_the_integral_of_power(case) -> None:
    robot, log = case
    start, stop = 300, 700
    E, e, _ = rows(robot, log, "energy", start, stop)
    P, y, _ = rows(robot, log, "power", start, stop + 1)
    # Mean power of an interval by the trapezoid; columns with |dq| have kinks, others curvature h^2/12.
    smooth = [i for i, p in enumerate(parameter_table(robot)) if p.symbol not in ("Fs", "Fs+", "Fs-")]
    mean = 0.5 * (P[1:, 0] + P[:-1, 0])
    size = np.abs(mean[:, smooth]).max(axis=0) + 1e-6 * np.abs(mean).max()
    np.testing.assert_allclose((E[:, 0, smooth] - mean[:, smooth]) / size, 0.0, atol=2e-3)
    total = np.abs(E[:, 0, smooth].sum(axis=0) - mean[:, smooth].sum(axis=0))
    assert np.all(total <= 1e-3 * np.abs(mean[:, smooth]).sum(axis=0) + 1e-6 * np.abs(mean).max())
    np.testing.assert_allclose(e[:, 0], 0.5 * (y[1:, 0] + y[:-1, 0]), atol=2e-3 * np.abs(y).max())
