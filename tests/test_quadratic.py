"""The interior-point solver of block-limited quadratic programs, against Clarabel."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.excitation.optimal.search import solve_quadratic

RHO = 2.0


def drawn(seed: int, blocks: int, m: int, r: int, s: int):
    rng = np.random.default_rng(seed)
    n = blocks * m
    Q = rng.normal(size=(n, n))
    upper, lower = rng.uniform(0.05, 1.0, (blocks, r)), -rng.uniform(0.05, 1.0, (blocks, r))
    A, b = (rng.normal(size=(s, n)), 0.3 * rng.normal(size=s)) if s else (None, None)
    return (
        Q @ Q.T / n + 0.01 * np.eye(n),
        3.0 * rng.normal(size=n),
        rng.normal(size=(r, m)),
        lower,
        upper,
        A,
        b,
    )


def cost(p, B, g, A, b) -> float:
    price = RHO * np.maximum(A @ p - b, 0.0).sum() if A is not None else 0.0
    return float(0.5 * p @ B @ p + g @ p + price)


def reference(B, g, C, lower, upper, A, b):
    """The same program with one variable more for every row that may be left."""
    import clarabel
    from scipy import sparse

    n, s = len(g), 0 if b is None else len(b)
    K = np.kron(np.eye(len(lower)), C)
    none = np.zeros((len(K), s))
    rows, sides = [np.hstack([K, none]), np.hstack([-K, none])], [upper.ravel(), -lower.ravel()]
    if s:
        rows += [np.hstack([A, -np.eye(s)]), np.hstack([np.zeros((s, n)), -np.eye(s)])]
        sides += [b, np.zeros(s)]
    P = np.zeros((n + s, n + s))
    P[:n, :n] = B
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    side = np.concatenate(sides)
    finite = np.isfinite(side)
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(P)),
        np.concatenate([g, np.full(s, RHO)]),
        sparse.csc_matrix(np.vstack(rows)[finite]),
        side[finite],
        [clarabel.NonnegativeConeT(int(finite.sum()))],
        settings,
    )
    return np.array(solver.solve().x)[:n]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("blocks", "m", "r", "s"), [(1, 2, 6, 0), (3, 4, 20, 0), (2, 5, 30, 7), (4, 3, 12, 25)]
)
def test_the_same_minimum_as_clarabel(seed: int, blocks: int, m: int, r: int, s: int) -> None:
    B, g, C, lower, upper, A, b = drawn(seed, blocks, m, r, s)
    found = solve_quadratic(B, g, C, lower, upper, A, b, RHO, rtol=1e-9)
    best = cost(reference(B, g, C, lower, upper, A, b), B, g, A, b)
    # Both stop at a gap of about 1e-8 of a cost of the order of ten.
    assert cost(found.p, B, g, A, b) == pytest.approx(best, abs=1e-6)
    value = found.p.reshape(blocks, m) @ C.T
    assert np.all(value <= upper + 1e-9)  # iterates are inside; only rounding is allowed
    assert np.all(value >= lower - 1e-9)


def test_no_bound_at_all_gives_the_newton_step() -> None:
    B, g, C, lower, upper, _, _ = drawn(0, 2, 3, 8, 0)
    found = solve_quadratic(B, g, C, np.full_like(lower, -np.inf), np.full_like(upper, np.inf), rtol=1e-10)
    # Far bounds stand for none: what they still push is a millionth of the step.
    np.testing.assert_allclose(found.p, -np.linalg.solve(B, g), rtol=1e-4)


def test_a_start_on_the_boundary_can_leave_it() -> None:
    """Zero slack where the last step ended is the rule in sequential programs."""
    B, g, C, lower, upper, _, _ = drawn(3, 2, 4, 15, 0)
    upper[:, ::2] = 0.0
    found = solve_quadratic(B, g, C, lower, upper, rtol=1e-9)
    best = reference(B, g, C, lower, upper, None, None)
    assert cost(found.p, B, g, None, None) == pytest.approx(cost(best, B, g, None, None), abs=1e-6)


def test_multipliers_prove_optimality() -> None:
    B, g, C, lower, upper, A, b = drawn(5, 3, 4, 20, 6)
    found = solve_quadratic(B, g, C, lower, upper, A, b, RHO, rtol=1e-9)
    left = B @ found.p + g + (found.multipliers @ C).ravel() + A.T @ found.soft_multipliers
    np.testing.assert_allclose(left, 0.0, atol=1e-7 * np.abs(g).max())  # rtol asked for, with room
    assert np.all((found.soft_multipliers >= 0.0) & (found.soft_multipliers <= RHO))


@pytest.mark.parametrize("seed", range(3))
def test_wide_rows_do_not_end_the_search_early(seed: int) -> None:
    """Rows of accelerations are a thousand times as wide as those of positions, as in every design."""
    B, g, C, lower, upper, A, b = drawn(seed, 3, 6, 30, 12)
    wide = np.repeat([1.0, 30.0, 1000.0], 10)
    found = solve_quadratic(B, g, C * wide[:, None], lower * wide, upper * wide, A, b, RHO, rtol=1e-4)
    best = cost(reference(B, g, C, lower, upper, A, b), B, g, A, b)
    # The gap bounds the distance to the minimum: the tolerance itself.
    assert cost(found.p, B, g, A, b) == pytest.approx(best, rel=1e-4)
