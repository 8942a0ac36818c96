"""Small vectors and matrices as loops: expressions of arrays take ten times as long to compile."""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import allocating_inner as inner


@inner
def dot(x, y):
    """Scalar product of two rows."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@inner
def add(factor, x, out):
    """Add factor x to the row `out`."""
    for i in range(out.size):
        out[i] += factor * x[i]


@inner
def add_times(factor, A, x, out):
    """Add factor A x to the row `out`."""
    for i in range(A.shape[0]):
        out[i] += factor * dot(A[i], x)


@inner
def add_back(factor, A, x, out):
    """Add factor A^T x to the row `out`."""
    for i in range(A.shape[0]):
        add(factor * x[i], A[i], out)


@inner
def largest(x):
    """Largest size of the numbers in a row; not finite if one of them is not."""
    most = 0.0
    for i in range(x.size):
        most = max(most, abs(x[i])) if np.isfinite(x[i]) else np.inf
    return most


@inner
def solve(A, X):
    """Solve A X = X (n, k) in place by elimination with pivots from the rows; A (n, n) is overwritten."""
    n, k = X.shape
    for c in range(n):
        best = c
        for i in range(c + 1, n):
            if abs(A[i, c]) > abs(A[best, c]):
                best = i
        for j in range(n if best != c else 0):
            A[c, j], A[best, j] = A[best, j], A[c, j]
        for j in range(k if best != c else 0):
            X[c, j], X[best, j] = X[best, j], X[c, j]
        for i in range(c + 1, n):
            factor = -A[i, c] / A[c, c]
            add(factor, A[c], A[i])
            add(factor, X[c], X[i])
    for c in range(n - 1, -1, -1):
        for i in range(c + 1, n):
            add(-A[c, i], X[i], X[c])
        for j in range(k):
            X[c, j] /= A[c, c]
