"""Sets of free motions: the criterion and the limits by an independent model, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.cases.free_motion.measured_motion import free_limits, reached
from dynid.cases.free_motion.motion_set import FreeSet, Judging, best_free_set
from dynid.cases.free_motion.releases import Releasing
from dynid.common.errors import InputError, NoResultError
from dynid.dynamics.free_motion import LockedCables
from dynid.excitation.optimal.criteria import Criterion
from dynid.experiment.tasks import FreeSetSettings
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import prior_values
from tests.cable_oracle import Platform, Xi, accelerations, cable4, free_motion, rotation, skew

TRUTH = {
    "M_platform": 10.0,
    "MZ_platform": 1.9,
    "XX_platform": 0.51,
    "YY_platform": 0.69,
    "ZZ_platform": 0.37,
}
PLATFORM = Platform(10.0, np.array([0.0, 0.0, 1.9]), np.diag([0.51, 0.69, 0.37]))
SMALL = FreeSetSettings(count=6, samples=25, duration=2.0, whole=2.5, library=20, restarts=2, rounds=1)


def _releasing(robot: Mechanism, settings: FreeSetSettings = SMALL) -> Releasing:
    cables = tuple(cable.name for cable in robot.cables)
    limits = free_limits(robot, cables)
    return Releasing(robot, TRUTH, limits, settings.duration, settings.rate)


@pytest.fixture(scope="module")
def found() -> FreeSet:
    return best_free_set(_releasing(load_robot("cable4")), Criterion("c003"), SMALL, seed=3)


def test_limits_are_kept(found: FreeSet) -> None:
    assert found.motions.tensions.min() >= 20.0
    assert found.motions.tensions.max() <= 200.0
    swings = np.abs(found.motions.q[:, :, :2] - found.releases.rest[:, :2])
    assert swings.max() <= 0.1
    assert found.use.max() <= 1.0


def test_motions_are_those_of_an_independent_simulation(found: FreeSet) -> None:
    poses, _, tensions = free_motion(
        cable4(), PLATFORM, found.releases.starts[0], np.zeros(6), found.motions.t[:31]
    )
    # Both integrate to about 1e-9; a tension is a tenth of a newton per micrometre of wrong curvature.
    np.testing.assert_allclose(found.motions.q[:31, 0, :3], poses[:, :3], atol=1e-7)
    np.testing.assert_allclose(found.motions.tensions[:31, 0], tensions, atol=1e-3)


def test_rest_is_rest(found: FreeSet) -> None:
    for rest in found.releases.rest:
        dv, _ = accelerations(cable4(), PLATFORM, rest[:3], rotation(rest[3:]), np.zeros(6))
        # Newton stops at efforts of a millionth of the weight.
        assert np.abs(dv).max() < 1e-4


def test_cost_of_the_paper(found: FreeSet) -> None:
    """C = (s1 + 1) / s9 of rows in the free coordinates x, y, from the paper's formulas (19) to (22)."""
    motions, rows = found.motions, []
    for k in range(6):
        for n in range(0, 200, 8):
            pose, rates = motions.q[n, k], motions.dq[n, k]
            twist = np.concatenate([rates[:3], rotation(pose[3:]) @ rates[3:]])
            rows.append(_paper_rows(pose, twist))
    s = np.linalg.svd(np.concatenate(rows), compute_uv=False)
    # The model of the test takes its derivatives by differences.
    assert found.value == pytest.approx((s[0] + 1.0) / s[8], rel=1e-6)


def _paper_rows(pose: np.ndarray, twist: np.ndarray) -> np.ndarray:
    R = rotation(pose[3:])
    dv, _ = accelerations(cable4(), PLATFORM, pose[:3], R, twist)
    X = Xi(cable4(), pose[:3], R)
    N = np.zeros((6, 2))
    N[:2] = np.eye(2)
    N[2:] = -np.linalg.solve(X[:, 2:], X[:, :2])
    a, alpha, omega = dv[:3] - [0.0, 0.0, -9.81], dv[3:], twist[3:]
    W = np.zeros((6, 10))
    W[:3, 0] = a
    W[:3, 1:4] = (skew(alpha) + skew(omega) @ skew(omega)) @ R
    W[3:, 1:4] = -skew(a) @ R
    W[3:, 4:] = R @ _inertia_columns(R.T @ alpha) + skew(omega) @ R @ _inertia_columns(R.T @ omega)
    return np.asarray(N.T @ W)


def _inertia_columns(v: np.ndarray) -> np.ndarray:
    x, y, z = v
    return np.array([[x, 0, 0, y, z, 0], [0, y, 0, x, 0, z], [0, 0, z, 0, x, y]])


def test_search_improves_on_random_sets(found: FreeSet) -> None:
    assert found.value < 0.7 * found.first  # the exchange gains far more, whatever the seed


def test_same_seed_same_set(found: FreeSet) -> None:
    again = best_free_set(_releasing(load_robot("cable4")), Criterion("c003"), SMALL, seed=3)
    np.testing.assert_array_equal(again.releases.starts, found.releases.starts)


def test_impossible_tensions_are_refused_with_the_limit() -> None:
    robot = load_robot("cable4")
    robot = replace(robot, limits={**robot.limits, "cables": {"tension": (150.0, 200.0)}})
    with pytest.raises(NoResultError, match="150 to 200 N"):
        _releasing(robot).rests(np.random.default_rng(0), 1)


def test_a_cable_that_should_push_is_refused() -> None:
    robot = load_robot("cable4")
    robot = replace(robot, limits={"cables": {"tension": (-5.0, 200.0)}})
    with pytest.raises(InputError, match=", -5 to 200 N, is not valid"):
        free_limits(robot, ("cable1",))


def test_three_eyelets_too() -> None:
    robot = load_robot("cable3")
    settings = SMALL.changed(library=8, count=4, nullspace="orthonormal")
    releasing = Releasing(
        robot, prior_values(robot), free_limits(robot, tuple(c.name for c in robot.cables)), 2.0, 100.0
    )
    found = best_free_set(releasing, Criterion("condition"), settings, seed=1)
    assert found.use.max() <= 1.0
    assert np.isfinite(found.value)


def _with_one_that_diverges(monkeypatch: pytest.MonkeyPatch, bad: np.ndarray) -> None:
    """Let the motion on the lengths `bad` run away, as another processor's rounding may."""
    repaired = LockedCables.repaired

    def away(self, q, dq, lengths):
        q, dq = repaired(self, q, dq, lengths)
        lost = np.all(lengths == bad, axis=1)
        return q, np.where(lost[:, None], 1e200, dq)

    monkeypatch.setattr(LockedCables, "repaired", away)


def test_a_motion_that_diverges_leaves_the_others_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    releasing = _releasing(load_robot("cable4"))
    rng = np.random.default_rng(11)
    releases = releasing.drawn(rng, releasing.rests(rng, 5)[:5])
    others = np.array([0, 1, 3, 4])
    alone, use_alone = releasing.over(releases.picked(others), 0.5)
    judging = Judging(releasing, Criterion("c003"), SMALL)
    kept_alone = releasing.kept(releases.picked(others), judging.information)
    _with_one_that_diverges(monkeypatch, releases.lengths[2])
    motions, use = releasing.over(releases, 0.5)
    assert motions.diverged.tolist() == [False, False, True, False, False]
    # A few units of rounding: products of a batch are summed in another order in a smaller one.
    np.testing.assert_allclose(motions.q[:, others], alone.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(motions.tensions[:, others], alone.tensions, rtol=1e-13)
    np.testing.assert_allclose(use[others], use_alone, rtol=1e-13)
    assert use[2] == np.inf
    kept = releasing.kept(releases, judging.information)
    assert (kept.tried, kept.diverged, kept_alone.diverged) == (5, 1, 0)
    np.testing.assert_array_equal(kept.releases.starts, kept_alone.releases.starts)
    np.testing.assert_array_equal(kept.judged, kept_alone.judged)


def test_limits_hold_between_samples() -> None:
    """A dip of 0.34 N between two samples counts, at twelve samples a period."""
    t = np.arange(37) / 12.0
    for frequency in (0.2, 0.5, 1.0):
        pulls = 30.0 - 10.0 * np.cos(2.0 * np.pi * frequency * (t - t[18] - 0.5 * t[1]))
        least, most = reached(pulls[:, None])
        assert least[0] <= 20.0 < pulls.min()
        # The bend counts by a tenth more than a parabola needs.
        assert least[0] > 20.0 - 0.1 * (pulls.min() - 20.0)
        assert most[0] >= pulls.max()
