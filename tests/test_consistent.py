"""The consistent estimate against brute force, and the promises of its solver and options."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from dynid.common.errors import InputError
from dynid.estimator import consistent
from dynid.estimator.estimator import ESTIMATORS, estimator_named
from dynid.estimator.rigid_bodies import RigidBody
from dynid.estimator.semidefinite import Program
from dynid.estimator.settings import Consistency, Ellipsoid, consistency_from
from dynid.estimator.standard_space import StandardSpace
from dynid.mechanism.inertia import SYMBOLS, UNITS, is_physical, pack, pseudo_inertia
from dynid.mechanism.parameters import Parameter
from dynid.statistics.uncertainty import interval95
from tests.systems import system

BALL = np.array([0.05, 0.0, 0.0, 0.05, 0.0, 0.05, 0.2, 0.0, 0.0, 2.0])  # 2 kg, centre 0.1 m off the origin
FLAT = np.array([0.02, 0.01, 0.0, 0.05, 0.0, 0.02, 0.3, 0.1, 0.0, 1.0])  # what no body has


def ten(owner="link", drive=()):
    """Parameters of a body, then drive terms of one joint."""
    body = [Parameter(f"{s}_{owner}", s, owner, u, "inertial") for s, u in zip(SYMBOLS, UNITS, strict=True)]
    return (*body, *(Parameter(f"{s}_joint", s, "joint", "N m", "drive") for s in drive))


def from_pseudo_inertia(P):
    Sigma = P[:3, :3]
    return pack(P[3, 3], P[:3, 3], np.trace(Sigma) * np.eye(3) - Sigma)


def space(prior=None, mass=1.0, length=0.3, given_prior=True, table=None, T=None, c=None, columns=None):
    table = ten() if table is None else table
    p = len(table)
    body = RigidBody(
        "link", columns or tuple(range(10)), mass, length, prior, given_prior and prior is not None
    )
    T, c = np.eye(p) if T is None else T, np.zeros(p) if c is None else c
    return StandardSpace(table, T, c, (body,), *no_data(p))


def no_data(p):
    return np.zeros((0, 0)), np.zeros((0, p)), np.zeros(0)


@dataclass
class Data:
    """What `StandardSpace` knows of the data: |U (G chi - estimate)|^2."""

    U: np.ndarray
    G: np.ndarray
    chi: np.ndarray


def given_data(robot, data):
    return replace(robot, U=data.U, G=data.G, estimate=data.chi)


def nearest_consistent(robot, data, options):
    return consistent.nearest_consistent(given_data(robot, data), options)


def physical_distance(robot, data):
    return consistent.physical_distance(given_data(robot, data))


def data_of(chi, seed=0, rows=40, sigma=0.02):
    """A data term around `chi` with correlated deviations of `sigma` of a common size."""
    rng = np.random.default_rng(seed)
    scale = np.array([0.3] * 6 + [0.5] * 3 + [1.0] + [1.0] * (len(chi) - 10))
    U = np.linalg.qr(rng.standard_normal((rows, len(chi))), mode="r") / (sigma * scale)
    return Data(U, np.eye(len(chi)), np.asarray(chi, float))


# ---------------------------------------------------------------- pseudo-inertia

coordinates = st.floats(-1.0, 1.0).map(lambda x: round(x, 6))
clouds = st.lists(
    st.tuples(coordinates, coordinates, coordinates, st.floats(0.01, 5.0)), min_size=1, max_size=8
)


@given(clouds)
def test_every_cloud_of_masses_has_a_positive_pseudo_inertia(cloud):
    points, masses = np.array([p[:3] for p in cloud]), np.array([p[3] for p in cloud])
    inertia = sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, points, strict=True))
    chi = pack(float(masses.sum()), masses @ points, inertia)
    assert is_physical(chi, 1e-12)  # rounding of sums of eight


@given(st.lists(st.floats(-1.0, 1.0), min_size=16, max_size=16))
@settings(max_examples=50)
def test_every_positive_pseudo_inertia_is_a_cloud_of_masses(entries):
    """P = sum of m [x; 1][x; 1]^T: columns of a root, turned until none is at infinity."""
    L = np.array(entries).reshape(4, 4) + 2.0 * np.eye(4)
    P = L @ L.T
    # A reflection that takes the last row of L to equal entries: every column gets a weight.
    row = np.linalg.norm(L[3]) * np.full(4, 0.5)
    v = L[3] - row
    H = np.eye(4) - 2.0 * np.outer(v, v) / max(v @ v, 1e-300) if v @ v > 1e-24 else np.eye(4)
    columns = L @ H
    masses, points = columns[3] ** 2, (columns[:3] / columns[3]).T
    inertia = sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, points, strict=True))
    chi = pack(float(masses.sum()), masses @ points, inertia)
    assert np.all(masses > 0)
    # Entries are of order ten; 1e-9 is rounding of products and one division.
    np.testing.assert_allclose(pseudo_inertia(chi), P, atol=1e-9 * max(1.0, np.abs(P).max()))


# ---------------------------------------------------------------- against brute force


def brute_force(data, prior):
    """Least objective over P = L L^T: another parametrisation, another method.

    `prior` gives its part of the objective and that part's gradient at P.
    """
    low = np.tril_indices(4)
    units = np.eye(16).reshape(16, 4, 4)
    K = np.array([from_pseudo_inertia(one) for one in units]).T  # chi = K vec(P)

    def objective(x):
        L = np.zeros((4, 4))
        L[low] = x
        P = L @ L.T
        e = data.U @ (K @ P.ravel() - data.chi)
        value, slope = prior(P)
        slope = slope + (K.T @ (data.U.T @ e)).reshape(4, 4)
        return 0.5 * e @ e + value, ((slope + slope.T) @ L)[low]

    best = None
    for start in np.random.default_rng(1).uniform(0.1, 0.6, (3, 10)):
        found = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 3000})
        best = found if best is None or found.fun < best.fun else best
    L = np.zeros((4, 4))
    L[low] = best.x
    return best.fun, K @ (L @ L.T).ravel()


def test_the_nearest_body_is_that_of_brute_force():
    data = data_of(FLAT)
    assert not is_physical(FLAT)
    found = nearest_consistent(space(), data, Consistency())
    least, chi = brute_force(data, lambda P: (0.0, np.zeros((4, 4))))
    assert found.status == "solved"
    assert is_physical(found.chi)
    # Edge of the cone: the search by P = L L^T creeps there, to a millionth of its objective.
    assert 0.5 * found.distance**2 == pytest.approx(least, rel=1e-4)
    np.testing.assert_allclose(found.chi, chi, atol=1e-3)
    assert found.at_edge == ("link",)


@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_the_entropic_estimate_is_that_of_brute_force(spread):
    data, P0 = data_of(FLAT), pseudo_inertia(BALL)
    found = nearest_consistent(space(BALL, 2.0, 0.3), data, Consistency(spread=spread))

    def distance(P):
        ratio = np.linalg.solve(P0, P)
        slope = np.linalg.inv(P0) - np.linalg.inv(P)
        return (np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 4.0) / spread**2, slope / spread**2

    least, chi = brute_force(data, distance)
    total = 0.5 * found.distance**2 + distance(pseudo_inertia(found.chi))[0]
    assert total == pytest.approx(least, rel=1e-6)  # the solver's 1e-8, and that of the search
    np.testing.assert_allclose(found.chi, chi, atol=1e-4)


def test_the_euclidean_estimate_is_that_of_brute_force():
    data, body = data_of(FLAT), space(BALL, 2.0, 0.3).bodies[0]
    found = nearest_consistent(space(BALL, 2.0, 0.3), data, Consistency(prior="euclidean", spread=0.1))
    D = np.diag([1.0 / body.length] * 3 + [1.0])

    def distance(P):
        scaled = D @ (P - pseudo_inertia(BALL)) @ D / body.mass
        return 0.5 * np.sum(scaled**2) / 0.01, D @ scaled @ D / body.mass / 0.01

    least, chi = brute_force(data, distance)
    total = 0.5 * found.distance**2 + distance(pseudo_inertia(found.chi))[0]
    assert total == pytest.approx(least, rel=1e-5)  # as above; it may lie on the edge
    np.testing.assert_allclose(found.chi, chi, atol=1e-3)


@given(st.floats(-1.0, 1.0), st.floats(-0.5, 0.5))
@example(-0.35, 0.5)  # here and below rounding stops all attempts of the solver before 1e-8
@example(0.4, 1e-9)
@example(1.0, -0.05)
@settings(max_examples=10)
def test_the_scaling_of_a_body_does_not_change_the_answer(mass_decades, length_decades):
    data = data_of(FLAT)
    plain = nearest_consistent(space(BALL, 2.0, 0.3), data, Consistency())
    scaled = space(BALL, 2.0 * 10**mass_decades, 0.3 * 10**length_decades)
    found = nearest_consistent(scaled, data, Consistency())
    assert found.status == "solved"
    # 1e-6 where rounding stops the solver, times one decade of bad scale of P; largest of 1500 draws 4e-6.
    np.testing.assert_allclose(found.chi, plain.chi, atol=1e-5)


# ---------------------------------------------------------------- the estimator on a system


def test_a_consistent_linear_solution_stays_as_it_is():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((300, 12))
    chi = np.concatenate([BALL, [0.3, 0.8]])
    one = system(W, W @ chi + 0.001 * rng.standard_normal(300), table=ten(drive=("Fv", "Fs")))
    np.testing.assert_array_equal(ESTIMATORS["consistent"](one).chi, ESTIMATORS["wls"](one).chi)


def test_friction_and_rotors_are_never_negative_and_bodies_are_real():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((300, 13))
    chi = np.concatenate([FLAT, [-0.3, 0.8, -1.0]])
    one = system(W, W @ chi + 0.001 * rng.standard_normal(300), table=ten(drive=("Ia", "Fv", "Off")))
    linear, found = ESTIMATORS["wls"](one), ESTIMATORS["consistent"](one)
    assert found.status == "converged"
    assert linear.chi[10] < 0
    assert found.chi[10] == 0
    assert found.chi[12] < 0  # an offset may have any sign
    assert is_physical(found.chi[:10])
    assert found.residual_norm > linear.residual_norm
    np.testing.assert_array_equal(found.covariance, linear.covariance)


def test_intervals_cover_an_interior_truth_with_a_prior():
    """A prior within its spread and the bounds only help: at least as often as promised."""
    rng = np.random.default_rng(5)
    options, robot = Consistency(), space(BALL, 2.0, 0.3)
    truth = 1.2 * BALL + np.array([0.02, 0.005, 0, 0.01, 0, 0.02, 0.02, 0.03, 0, 0])
    assert is_physical(truth)
    exact = data_of(truth)
    covariance = np.linalg.inv(exact.U.T @ exact.U)
    covered = 0
    for _ in range(200):
        drawn = truth + np.linalg.solve(exact.U, rng.standard_normal(10))
        found = nearest_consistent(robot, replace(exact, chi=drawn), options)
        ci95 = interval95(found.chi, covariance, 10**6)
        covered += int(np.sum((ci95[:, 0] <= truth) & (ci95[:, 1] >= truth)))
    # 2000 intervals tell 95 % to 0.5 %; shrinking and bounds may raise it, never lower it.
    assert covered / 2000 >= 0.935


def test_real_bodies_raise_no_alarm_and_impossible_ones_do():
    from scipy.special import chdtrc

    rng = np.random.default_rng(6)
    exact = data_of(BALL)
    alarms = 0
    for _ in range(200):
        drawn = BALL + np.linalg.solve(exact.U, rng.standard_normal(10))
        distance = physical_distance(space(), replace(exact, chi=drawn))
        alarms += chdtrc(10, distance**2) < 1e-3
    assert alarms <= 1  # one in a thousand is promised
    assert chdtrc(10, physical_distance(space(), data_of(FLAT)) ** 2) < 1e-3


# ---------------------------------------------------------------- bounds, known values, subsets


def test_mass_and_centre_of_mass_stay_in_their_bounds():
    data = data_of(BALL)
    options = Consistency(
        mass={"link": 1.5}, com={"link": Ellipsoid((0.0, 0.0, 0.0), (0.05, 0.05, 0.05))}, spread=100.0
    )
    found = nearest_consistent(space(BALL, 2.0, 0.3), data, options)
    assert found.chi[9] == pytest.approx(1.5, abs=1e-6)  # it would be 2
    com = found.chi[6:9] / found.chi[9]
    assert np.linalg.norm(com) == pytest.approx(0.05, abs=1e-6)  # it would be 0.1
    total = nearest_consistent(space(BALL, 2.0, 0.3), data, Consistency(mass={"total": 1.5}))
    assert total.chi[9] <= 1.5 + 1e-6


def test_a_margin_keeps_bodies_off_the_edge():
    robot = space(BALL, 2.0, 0.3)
    unit = robot.bodies[0].unit
    for prior in ("entropic", "euclidean"):
        found = nearest_consistent(robot, data_of(FLAT), Consistency(prior=prior, margin=0.05, spread=100.0))
        # To the solver's 1e-8, with room for the square root of the eigenvalue's slope.
        assert np.linalg.eigvalsh(pseudo_inertia(found.chi / unit))[0] >= 0.05 - 1e-6


def test_known_values_are_kept_and_a_point_mass_is_a_body():
    """Six zeros known: the pseudo-inertia has no interior, but its mass is free."""
    T, c = np.eye(10)[:, 9:], np.zeros(10)
    data = Data(np.array([[50.0]]), np.eye(10)[9:], np.array([2.5]))
    found = nearest_consistent(space(BALL, 2.0, 0.3, T=T, c=c), data, Consistency(spread=100.0))
    assert found.status == "solved"
    assert found.chi[9] == pytest.approx(2.5, abs=1e-3)  # 1 over 50 deviations, hardly any pull
    np.testing.assert_array_equal(found.chi[:9], 0.0)
    assert found.share[9] > 0.9
    np.testing.assert_array_equal(found.share[:9], 0.0)


def test_a_body_with_some_parameters_may_be_any_body_that_has_them():
    """ZZ, MX and M of a planar link: what counts is ZZ M >= MX^2, the other entries are free."""
    table = tuple(p for p in ten() if p.symbol in ("ZZ", "MX", "M"))
    columns = tuple([-1] * 5 + [0, 1, -1, -1, 2])
    robot = space(None, table=table, columns=columns)
    data = Data(100.0 * np.eye(3), np.eye(3), np.array([0.01, 0.5, 1.0]))  # ZZ M = 0.01 < 0.25
    found = nearest_consistent(robot, data, Consistency(mass={"total": 5.0}))
    assert found.status == "solved"
    ZZ, MX, M = found.chi
    # On the edge, a smallest eigenvalue of 1e-7 away from it.
    np.testing.assert_allclose(ZZ * M, MX**2, rtol=1e-4)
    inside = replace(data, chi=np.array([0.3, 0.5, 1.0]))
    # No bound is active: the estimate itself, to the solver's tolerance.
    np.testing.assert_allclose(
        nearest_consistent(robot, inside, Consistency(mass={"total": 5.0})).chi, inside.chi, atol=1e-6
    )


def test_tied_bodies_are_one_body():
    table = (*ten("left"), *ten("right"))
    T = np.vstack([np.eye(10), np.eye(10)])
    bodies = tuple(
        RigidBody(name, tuple(range(k, k + 10)), 2.0, 0.3, BALL, True)
        for name, k in (("left", 0), ("right", 10))
    )
    once = data_of(FLAT)
    data = Data(once.U, np.hstack([np.eye(10), np.zeros((10, 10))]), once.chi)
    found = nearest_consistent(
        StandardSpace(table, T, np.zeros(20), bodies, *no_data(20)), data, Consistency()
    )
    single = nearest_consistent(space(BALL, 2.0, 0.3), once, Consistency())
    np.testing.assert_array_equal(found.chi[:10], found.chi[10:])
    np.testing.assert_allclose(found.chi[:10], single.chi, atol=1e-7)  # the solver's tolerance


def test_equal_combinations_stay_equal():
    E = np.zeros((1, 10))
    E[0, [0, 3]] = 1.0, -1.0  # XX = YY
    robot = replace(space(BALL, 2.0, 0.3), E=E)
    found = nearest_consistent(robot, data_of(FLAT), Consistency())
    assert found.chi[0] == pytest.approx(found.chi[3], abs=1e-8)


def test_friction_that_no_row_tells_is_zero():
    """Fv without motion, and Fs and Off that act as a sum: the untold part is nothing, not anything."""
    table = ten(drive=("Fv", "Fs", "Off"))
    G = np.zeros((11, 13))
    G[:10, :10] = np.eye(10)
    G[10, 11:] = 1.0
    once = data_of(np.concatenate([BALL, [0.8]]))
    data = Data(once.U, G, once.chi)
    found = nearest_consistent(space(BALL, 2.0, 0.3, table=table), data, Consistency())
    assert found.chi[10] == 0.0
    assert found.share[10] < 1e-6
    # The sum is told, its parts are not: half each, to the solver's accuracy along a faint pull.
    np.testing.assert_allclose(found.chi[11:], 0.4, atol=0.01)


# ---------------------------------------------------------------- what has no answer


def test_what_contradicts_itself_is_called_infeasible():
    """Known: 1 kg, its first moment 1 kg m, and no more inertia than 0.1 kg m^2 about the origin."""
    c = np.zeros(10)
    c[[0, 3, 5, 6, 9]] = 0.1, 0.1, 0.1, 1.0, 1.0
    T = np.eye(10)[:, [1]]
    data = Data(np.array([[10.0]]), np.eye(10)[[1]], np.array([0.0]))
    found = nearest_consistent(space(BALL, 1.0, 0.3, T=T, c=c), data, Consistency())
    assert found.status == "infeasible"
    assert "known values" in found.reason
    assert found.distance == np.inf


def test_masses_that_nothing_holds_are_called_unbounded():
    """Rows that feel only XX - YY: a body can grow for ever."""
    G = np.zeros((1, 10))
    G[0, [0, 3]] = 1.0, -1.0
    data = Data(np.array([[10.0]]), G, np.array([0.1]))
    found = nearest_consistent(space(), data, Consistency())
    assert found.status == "unbounded"
    assert "link" in found.reason
    assert nearest_consistent(space(), data, Consistency(mass={"total": 3.0})).status == "solved"
    assert nearest_consistent(space(BALL, 2.0, 0.3), data, Consistency()).status == "solved"
    full = nearest_consistent(space(), data_of(BALL), Consistency())
    assert full.status == "solved"  # every direction is told: nothing can grow


def test_a_program_says_what_it_found():
    unbounded = Program(1)
    unbounded.minimise(np.array([0]), np.array([-1.0]))
    unbounded.require("nonnegative", np.array([0]), np.eye(1), np.zeros(1))
    assert unbounded.solve().status == "unbounded"
    contradiction = Program(1)
    contradiction.require("nonnegative", np.array([0]), np.array([[1.0], [-1.0]]), np.array([-1.0, 0.0]))
    assert contradiction.solve().status == "infeasible"


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"prior": "entropy"}, "did you mean 'entropic'"),
        ({"spraed": 3}, "did you mean 'spread'"),
        ({"spread": 0}, "not positive"),
        ({"spread": "wide"}, "is not a symbol"),
        ({"margin": 1.5}, "between 0 and 1"),
        ({"mass": -3}, "not positive"),
        ({"mass": {"link": "heavy"}}, "is not a symbol"),
        ({"com": [0, 0, 1]}, "com: expected named entries"),
        ({"com": {"link": {"centre": [0, 0, 0]}}}, "com.link: 'radii' is missing"),
        ({"com": {"link": {"centre": [0, 0, 0], "radii": [1, 0, 1]}}}, r"radii\[1\]: 0 is not positive"),
        ({"com": {"link": {"centre": [0, 0], "radii": [1, 1, 1]}}}, "centre: expected 3 entries, found 2"),
    ],
)
def test_wrong_options_are_refused(options, match):
    with pytest.raises(InputError, match=match):
        estimator_named("consistent", options)


def test_options_as_in_a_file():
    made = consistency_from(
        {"mass": 30, "com": {"link": {"centre": [0, 0, 0.1], "radii": [0.1, 0.1, 0.2]}}, "margin": 0.01}
    )
    assert made == Consistency(
        margin=0.01, mass={"total": 30.0}, com={"link": Ellipsoid((0.0, 0.0, 0.1), (0.1, 0.1, 0.2))}
    )


def test_bounds_on_unknown_bodies_are_refused():
    with pytest.raises(InputError, match="did you mean 'link'"):
        nearest_consistent(space(BALL, 2.0, 0.3), data_of(BALL), Consistency(mass={"lnk": 3.0}))


def test_friction_brakes_at_every_speed_and_load_friction_is_not_negative() -> None:
    """Fk and Fr may be negative alone: their sum with the other friction of the joint may not."""
    names = ("Fs", "Fv", "Fr", "Fl", "Fk")
    table = ten(drive=names)
    n, m = len(table), len(names)
    ball = np.concatenate([BALL, np.zeros(m)])
    robot = space(BALL, 2.0, 0.3, table=table, T=np.eye(n), c=np.zeros(n))

    def nearest(*drive: float) -> np.ndarray:
        chi = ball.copy()
        chi[-m:] = drive
        found = nearest_consistent(robot, Data(100.0 * np.eye(n), np.eye(n), chi), Consistency())
        assert found.status == "solved"
        return np.asarray(found.chi[-m:])

    for drive, expected in (
        ((1.0, 0.5, -0.3, -0.2, -0.4), (1.0, 0.5, -0.3, 0.0, -0.4)),
        ((0.2, 0.5, 0.1, 0.1, -1.0), (0.6, 0.5, 0.1, 0.1, -0.6)),  # nearest point with Fs + Fk = 0
    ):
        # Solved to 1e-8 in scaled variables of order one; the body itself does not feel friction.
        np.testing.assert_allclose(nearest(*drive), expected, atol=1e-5)
    Fs, Fv, Fr, _, _ = nearest(1.0, 0.5, -3.0, 0.0, 0.0)
    v = np.geomspace(1e-4, 1e3, 300)
    curve = Fs + Fr * np.sqrt(v) + Fv * v
    assert Fr < -0.5
    # Zero at one speed of the table; between two of its speeds a little below.
    assert -0.05 < curve.min() < 1e-3


def test_newton_ends_where_rounding_hides_the_decrement():
    """A robot of 81 bodies took 80 steps more at a decrement of 2e-6, and 100 at each decade on the way."""
    from dynid.estimator.analytic_centre import Objective, _minimum

    calls = []

    class Stuck(Objective):
        def newton(self, x):
            calls.append(x)
            return np.zeros_like(x), self.near, 1.0

    for decrement, steps, most in ((2e-6, 100, 2), (3.0, 15, 15)):
        calls.clear()
        stuck = Stuck((), np.zeros((0, 1)), np.zeros(0), np.zeros(1), decrement)
        _minimum(stuck, np.zeros(1), 1e-7, steps)
        assert len(calls) <= most


def test_steps_end_where_the_objective_is_least():
    """Also where the nearest edge is far beyond a step of one, very near, or where there is none."""
    from dynid.estimator.analytic_centre import _best_length

    rng = np.random.default_rng(4)
    for size in (1e-6, 1e-2, 1.0, 1e3, 1e8):
        rate, weight = size * rng.normal(size=12), rng.uniform(0.5, 2.0, 12)
        for rates in (rate, np.abs(rate)):
            slope, curvature = float(weight @ rates) - 0.1 * size, 1e-3 * size**2

            def derivative(t, rates=rates, weight=weight, slope=slope, curvature=curvature):
                return slope + curvature * t - np.sum(weight * rates / (1.0 + t * rates))

            t = _best_length(rates, weight, slope, curvature)
            # Rounding of the derivative moves its root by far less than 1e-6 of it.
            assert derivative(t * (1.0 - 1e-6)) < 0.0 < derivative(t * (1.0 + 1e-6))
