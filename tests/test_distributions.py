"""Tails and quantiles are those of SciPy; rare routines of LAPACK are those of `scipy.linalg`."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
from scipy import sparse, special

from dynid.common import distributions, lapack
from dynid.estimator.semidefinite import _Sparse

DRAWN = np.random.default_rng(5).uniform(size=(200, 3)).tolist()
# Logarithms of Gamma functions of a thousand degrees of freedom cancel: three digits of rounding.
CLOSE = 1e-12


def scaled(x: float, low: float, high: float) -> float:
    return float(low * (high / low) ** x)


def test_tails_equal_those_of_scipy() -> None:
    for u, v, w in DRAWN:
        m, n, x = scaled(u, 1, 100), scaled(v, 0.5, 1500), scaled(w, 0.01, 50)
        assert distributions.chi2_tail(n, n * x / 5) == pytest.approx(
            special.chdtrc(n, n * x / 5), CLOSE, 1e-300
        )
        assert distributions.f_tail(m, n, x) == pytest.approx(special.fdtrc(m, n, x), CLOSE, 1e-300)
        assert distributions.student_tails(n, -x) == pytest.approx(2.0 * special.stdtr(n, -x), CLOSE)


def test_quantiles_equal_those_of_scipy() -> None:
    for u, v, _ in DRAWN:
        dof, p = scaled(u, 0.5, 1e6), 0.5 + 0.4999 * v
        assert distributions.student_quantile(dof, p) == pytest.approx(special.stdtrit(dof, p), CLOSE)
        assert distributions.normal_quantile(1.0 - p) == pytest.approx(special.ndtri(1.0 - p), CLOSE)
    assert distributions.student_quantile(np.inf, 0.975) == pytest.approx(special.ndtri(0.975), 1e-15)


def test_derivatives_of_log_gamma_equal_those_of_scipy() -> None:
    for u, _, _ in DRAWN:
        x = scaled(u, 0.01, 1e4)
        # Near its zero at 1.46 digamma has rounding of its parts.
        assert distributions.digamma(x) == pytest.approx(special.psi(x), CLOSE, 1e-15)
        assert distributions.trigamma(x) == pytest.approx(special.polygamma(1, x), CLOSE)
        assert distributions.tetragamma(x) == pytest.approx(special.polygamma(2, x), CLOSE)


def test_limits_and_values_without_meaning() -> None:
    assert distributions.chi2_tail(3.0, 0.0) == distributions.f_tail(2.0, 5.0, 0.0) == 1.0
    assert distributions.chi2_tail(3.0, np.inf) == distributions.f_tail(2.0, 5.0, np.inf) == 0.0
    assert distributions.f_tail(2.0, np.inf, 3.0) == pytest.approx(special.chdtrc(2.0, 6.0), CLOSE)
    assert distributions.student_tails(np.inf, 1.96) == pytest.approx(2.0 * special.ndtr(-1.96), CLOSE)
    assert distributions.student_quantile(3.0, 0.5) == pytest.approx(0.0, abs=1e-15)
    assert all(np.isnan(distributions.student_quantile(dof, 0.975)) for dof in (0.0, -1.0, np.nan))
    assert np.isnan(distributions.f_tail(2.0, np.nan, 1.0))
    assert np.isnan(distributions.f_tail(2.0, 5.0, np.nan))
    assert np.isnan(distributions.chi2_tail(2.0, np.nan))


def test_routines_equal_those_of_scipy() -> None:
    rng = np.random.default_rng(1)
    for shape in ((30, 8), (5, 8), (0, 3)):
        A = rng.normal(size=shape)
        for mine, theirs in zip(
            lapack.pivoted_qr(A), scipy.linalg.qr(A, mode="economic", pivoting=True), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
    R, B = np.triu(rng.normal(size=(8, 8))) + 9.0 * np.eye(8), rng.normal(size=(8, 3))
    np.testing.assert_allclose(R @ lapack.solve_upper(R, B), B, atol=1e-13)
    np.testing.assert_allclose(lapack.solve_upper(R, B.T, from_right=True) @ R, B.T, atol=1e-13)
    M = R.T @ R
    for right in (B, B[:, 0]):
        solved = lapack.cholesky_solve(M, right)
        assert solved is not None
        assert solved.shape == right.shape
        np.testing.assert_allclose(M @ solved, right, atol=1e-12)
    assert lapack.cholesky_solve(-M, B) is None
    assert lapack.is_positive(M)
    assert not lapack.is_positive(-M)


def test_sparse_matrices_are_those_of_scipy() -> None:
    rng = np.random.default_rng(2)
    rows, columns = rng.integers(0, 5, 40), rng.integers(0, 7, 40)  # places come several times
    values = rng.normal(size=40)
    mine = _Sparse.of(values, rows, columns, (5, 7))
    theirs = sparse.csc_matrix((values, (rows, columns)), shape=(5, 7))
    np.testing.assert_array_equal(mine.indptr, theirs.indptr)
    np.testing.assert_array_equal(mine.indices, theirs.indices)
    np.testing.assert_allclose(mine.data, theirs.data, rtol=1e-15)
    empty = np.zeros(0, dtype=int)
    assert _Sparse.of(np.zeros(0), empty, empty, (2, 2)).indptr.tolist() == [0, 0, 0]


def test_compiled_modules_load_without_their_package_and_beside_it() -> None:
    code = (
        "import sys; from dynid.common import lapack; lapack.load(); lapack.load_for_solvers();"
        "assert 'scipy.linalg' not in sys.modules, 'package imported';"
        "import scipy.linalg as s; assert s.lapack.dgeqp3 and s.qr([[1.0]])[1].shape == (1, 1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
