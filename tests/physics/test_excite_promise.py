"""Predicted sigma of a motion against the scatter of fits to simulated noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.base.structural import structural_base
from dynid.excitation.optimal.checked import promise
from dynid.excitation.optimal.paths import ClosedPath, Path, TreePath
from dynid.excitation.random_motion import random_motion
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.projection.model import MODELS
from dynid.regressor.regressor import tree_matrix

SAMPLES, TRIALS = 300, 600


def scatter(path: Path, states, base, sigma, model: str, weights_of_rows: bool):
    """Deviation of least-squares fits to rows with effort noise, by drawing it."""
    robot = path.mechanism
    W = tree_matrix(robot, states.q, states.dq, states.ddq) @ base.S
    if model == "power":
        D = states.dq[:, :, None]
    else:
        C = robot.actuator_map
        N = states.tangent
        D = N @ np.linalg.inv(C @ N) if len(C) == N.shape[2] else N
    rows = np.einsum("nvk,nvb->nkb", D, W)
    CD = np.einsum("av,nvk->nak", robot.actuator_map, D)
    size = np.ones(rows.shape[1])
    if weights_of_rows:
        size = np.sqrt(np.einsum("nak,a->k", CD**2, sigma**2) / len(CD))
    rows = rows / size[:, None]
    stacked = rows.reshape(-1, rows.shape[-1])
    norms = np.linalg.norm(stacked, axis=0)
    fit = np.linalg.pinv(stacked / norms) / norms[:, None]
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(TRIALS):
        noise = rng.normal(size=(len(CD), len(sigma))) * sigma
        errors.append(fit @ (np.einsum("nak,na->nk", CD, noise) / size).ravel())
    return np.std(errors, axis=0)


@pytest.mark.parametrize(
    ("name", "model"), [("scara", "inverse"), ("dualv", "power"), ("fivebar", "inverse")]
)
def test_promised_sigma_is_what_fits_scatter(name: str, model: str) -> None:
    robot = replace(load_robot(name), payloads={})
    t = np.arange(SAMPLES) / SAMPLES * 10.0
    sigma = np.linspace(0.5, 1.5, len(robot.actuators))
    if robot.loops:
        motion = random_motion(robot, 5, draws=3)
        path: Path = ClosedPath(robot, sigma, motion.joints)
        series = motion.series
    else:
        series, path = random_motion(robot, 5), TreePath(robot)
    states = path.states((series.q(t), series.dq(t), series.ddq(t)))
    assert states is not None
    rows = None if robot.loops else MODELS["inverse"].directions(robot)
    base = structural_base(robot, MODELS["inverse"], parameter_table(robot), rows)
    found = promise(path, states, base, sigma, 1.0, model=model)
    seen = scatter(path, states, base, sigma, model, weights_of_rows=True)
    # A deviation from 600 draws is known to 3 %; of some tens of parameters the worst is three times that.
    np.testing.assert_allclose(found.sigma / seen, 1.0, atol=0.12)
    again = promise(path, states, base, sigma, 4.0, model=model)
    np.testing.assert_allclose(again.sigma, 0.5 * found.sigma, rtol=1e-6)  # four times the samples


def test_what_is_known_already_sharpens_the_promise() -> None:
    robot = load_robot("scara")
    t = np.arange(SAMPLES) / SAMPLES * 10.0
    series, path, sigma = random_motion(robot, 5), TreePath(robot), np.ones(4)
    states = path.states((series.q(t), series.dq(t), series.ddq(t)))
    model = MODELS["inverse"]
    base = structural_base(robot, model, parameter_table(robot), model.directions(robot))
    alone = promise(path, states, base, sigma, 1.0)
    W = tree_matrix(robot, states.q, states.dq, states.ddq) @ base.S
    stacked = np.einsum("nvk,nvb->nkb", np.broadcast_to(model.directions(robot).N, (SAMPLES, 4, 4)), W)
    stacked = stacked.reshape(-1, stacked.shape[-1])
    twice = promise(path, states, base, sigma, 1.0, known=stacked.T @ stacked)
    np.testing.assert_allclose(twice.sigma, alone.sigma / np.sqrt(2.0), rtol=1e-4)  # the same data once more
