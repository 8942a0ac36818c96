"""The jackknife on few blocks: what it overstates, and whether intervals hold the truth without that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.statistics.clusters import Clusters
from dynid.statistics.sandwich import calibrated, jackknife, remembered
from dynid.statistics.uncertainty import student_t95

RATE, SECONDS, JOINTS = 25.0, 10.0, 3
BLOCKS = 20


def arm_rows(p=32, seed=4) -> np.ndarray:
    """Rows of three joints, (joints n, p): columns that vary at 0.1 to 0.7 Hz, each in some joints."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(SECONDS * RATE)) / RATE
    columns = []
    for _ in range(p):
        waves = rng.standard_normal((JOINTS, 7)) * (rng.random((JOINTS, 1)) < 0.6)
        phases = rng.uniform(0, 2 * np.pi, 7)
        columns.append(waves @ np.sin(2 * np.pi * 0.1 * np.arange(1, 8)[:, None] * t + phases[:, None]))
    W = np.array(columns).reshape(p, -1).T
    return W[:, np.linalg.norm(W, axis=0) > 0]


def noise(time_constant, draws, seed=0) -> np.ndarray:
    """AR(1) of unit deviation in each joint, (joints n, draws)."""
    from scipy.signal import lfilter

    n = int(SECONDS * RATE)
    c = np.exp(-1.0 / (RATE * time_constant)) if time_constant else 0.0
    w = np.random.default_rng(seed).standard_normal((JOINTS, n + 200, draws))
    e = lfilter([np.sqrt(1 - c * c)], [1.0, -c], w, axis=1)[:, 200:]
    return e.reshape(JOINTS * n, draws)


class Experiment:
    """Clusters of the rows with any noise, and the errors of the fit."""

    def __init__(self, blocks=BLOCKS):
        self.W = arm_rows()
        n = len(self.W) // JOINTS
        self.labels = np.tile(np.arange(n) * blocks // n, JOINTS)
        self.Q, R = np.linalg.qr(self.W)
        self.parts = [np.flatnonzero(self.labels == k) for k in range(blocks)]
        M = np.stack([self.Q[own].T @ self.Q[own] for own in self.parts])
        p = len(R)
        rows = np.bincount(self.labels)
        self.empty = Clusters(
            np.linalg.inv(R), M, np.zeros((blocks, p)), rows, np.zeros(blocks, dtype=int), SECONDS / blocks
        )

    def drawn(self, e):
        """Clusters and the errors of the parameters for each column of e."""
        z = self.Q.T @ e
        rho = e - self.Q @ z
        s = np.stack([self.Q[own].T @ rho[own] for own in self.parts])
        errors = self.empty.root @ z
        for i in range(e.shape[1]):
            yield replace(self.empty, s=s[:, :, i]), errors[:, i]


def test_what_white_noise_makes_of_the_jackknife_by_dense_algebra():
    """What leaving out a block does to the estimate, as a matrix on the rows: its squares add up."""
    data = Experiment()
    W, root = data.W, data.empty.root
    full, expected = np.linalg.pinv(W), np.zeros(len(root))
    for own in data.parts:
        others = np.setdiff1d(np.arange(len(W)), own)
        without = np.zeros_like(full)
        without[:, others] = np.linalg.pinv(W[others])
        expected += np.sum((full - without) ** 2, axis=1)
    expected *= (BLOCKS - 1) / BLOCKS / np.sum(root**2, axis=1)
    # Both by algebra on a well-conditioned problem: rounding only.
    np.testing.assert_allclose(jackknife(data.empty).white, expected, rtol=1e-8)
    assert np.median(expected) > 1.5  # what this file is about


def test_variances_lie_between_those_right_for_white_noise_and_the_jackknife():
    data = Experiment()
    for clusters, _ in data.drawn(noise(0.2, 20)):
        plain = jackknife(clusters)
        found, overstated = calibrated(clusters)
        assert np.all(overstated >= 1.0)
        assert np.all(overstated <= np.maximum(plain.white, 1.0) * (1 + 1e-12))
        np.testing.assert_allclose(
            np.diag(found.covariance) * overstated, np.diag(plain.covariance), rtol=1e-12
        )
        np.testing.assert_array_equal(found.dof, plain.dof)


def test_pairs_of_blocks_show_memory():
    data = Experiment()
    mean = [
        np.mean([remembered(clusters) for clusters, _ in data.drawn(noise(time_constant, 100))])
        for time_constant in (0.0, 0.1, 0.3)
    ]
    # 20 blocks of 32 directions tell g to about a tenth, and it never falls below one.
    assert 1.0 <= mean[0] < 1.15
    assert mean[0] < mean[1] - 0.05
    assert mean[1] < mean[2] - 0.1


def test_too_few_blocks_keep_the_jackknife_and_independent_ones_have_no_memory():
    data = Experiment(blocks=5)
    clusters, _ = next(data.drawn(noise(0.0, 1)))
    assert remembered(clusters) == float("inf")
    np.testing.assert_array_equal(calibrated(clusters)[0].covariance, jackknife(clusters).covariance)
    apart = replace(clusters, runs=np.arange(5))
    assert remembered(apart) == 1.0
    assert remembered(replace(clusters, instants=True)) == 1.0


def test_pairs_end_with_their_run():
    data = Experiment()
    clusters, _ = next(data.drawn(noise(0.0, 1)))
    odd = replace(clusters, runs=np.repeat([0, 1, 2], [7, 7, 6]))
    pairs = np.array([0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6, 6, 7, 8, 8, 9, 9, 10, 10])
    joined = odd.joined(pairs)
    squares = [float(np.sum(one.s**2)) for one in (odd, joined)]
    leverage = [float(np.sum(one.M * (np.eye(one.M.shape[1]) - one.M))) for one in (odd, joined)]
    expected = 2.0 * (squares[1] / leverage[1]) / (squares[0] / leverage[0]) - 1.0
    assert remembered(odd) == pytest.approx(max(1.0, expected), rel=1e-12)


@pytest.mark.parametrize("time_constant", [0.0, 0.02, 0.1, 0.3])
def test_intervals_hold_the_truth_with_more_parameters_than_blocks(time_constant):
    """400 draws of 32 parameters in 20 blocks; the plain jackknife holds more than 98 % of white errors.
    Parameters of a draw err together: half a percent of scatter."""
    data = Experiment()
    held = np.zeros(2)
    draws = 400
    for clusters, error in data.drawn(noise(time_constant, draws, seed=9)):
        for k, found in enumerate((calibrated(clusters)[0], jackknife(clusters))):
            half = student_t95(found.dof) * np.sqrt(np.diag(found.covariance))
            held[k] += np.mean(np.abs(error) <= half) / draws
    low, high = (0.93, 0.97) if time_constant == 0.0 else (0.90, 0.98)
    assert low <= held[0] <= high
    if time_constant == 0.0:
        assert held[1] > 0.98
