"""Tails and quantiles of the distributions that tests and intervals need, for single numbers.

The same values as `scipy.special`, whose import alone takes longer than a fit.

    I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) / (1 + d_1 / (1 + d_2 / ...))       incomplete beta
    Q(a, x) = x^a e^-x / Gamma(a) / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...))  incomplete gamma
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from math import erfc, exp, inf, isinf, lgamma, log, log1p, nan, pi, sqrt

_ROUNDING = 1e-16
_TINY = 1e-300
_MANY = 2000.0  # degrees of freedom above which four terms of 1/dof give all digits of Student's quantile
_SERIES = 8.0  # degrees of freedom above which the same terms are a good first guess
_SHIFTED = 16.0  # where asymptotic series have all digits


def chi2_tail(dof: float, x: float) -> float:
    """Probability that chi-squared with `dof` degrees of freedom is larger than x."""
    a, x = 0.5 * dof, 0.5 * x
    if x <= 0.0 or isinf(x):
        return float(x <= 0.0)
    size = exp(a * log(x) - x - lgamma(a))
    if x >= a + 1.0:
        return size / _fraction(x + 1.0 - a, ((k * (a - k), x + 2 * k + 1.0 - a) for k in count(1)))
    term = total = 1.0 / a
    k = a
    while term > _ROUNDING * total:
        k += 1.0
        term *= x / k
        total += term
    return 1.0 - size * total


def f_tail(m: float, n: float, x: float) -> float:
    """Probability that Fisher's F with m and n degrees of freedom is larger than x."""
    if isinf(n):
        return chi2_tail(m, m * x)
    if x <= 0.0 or isinf(x):
        return float(x <= 0.0)
    return _beta(0.5 * n, 0.5 * m, m * x / n) if n > 0.0 else nan


def student_tails(dof: float, t: float) -> float:
    """Probability that |Student's t| is larger than |t|."""
    return erfc(abs(t) / sqrt(2.0)) if isinf(dof) else f_tail(1.0, dof, t * t)


@lru_cache  # many parameters have the same degrees of freedom
def student_quantile(dof: float, p: float) -> float:
    """The t that Student's t stays below with probability p >= 0.5."""
    z = normal_quantile(p)
    if not dof > 0.0:
        return nan
    if dof > _MANY or z <= 0.0:
        return z + _beyond_normal(z, dof)
    tails, t = 2.0 * (1.0 - p), z + _beyond_normal(z, dof) if dof > _SERIES else z
    density = 2.0 / sqrt(dof) * exp(-_log_beta(0.5 * dof, 0.5))
    for _ in range(100):  # Newton on log tails over log t, which is straight far out
        seen = student_tails(dof, t)
        slope = t * density * exp(-0.5 * (dof + 1.0) * log1p(t * t / dof)) / seen
        change = log(seen / tails) / slope
        t *= exp(min(change, 30.0))
        if abs(change) < 1e-8:  # its square is below rounding
            break
    return t


def normal_quantile(p: float) -> float:
    """The z that a standard normal variable stays below with probability p."""
    if not 0.0 < p < 1.0:
        return {0.0: -inf, 1.0: inf}.get(p, nan)
    below, side = (p, -1.0) if p < 0.5 else (1.0 - p, 1.0)
    z = sqrt(-2.0 * log(below))
    z = max(z - (2.515517 + 0.802853 * z) / (1.0 + 1.432788 * z + 0.189269 * z * z), 0.0)
    for _ in range(5):  # Newton on the logarithm of the tail
        seen = 0.5 * erfc(z / sqrt(2.0))
        z += log(seen / below) * seen * sqrt(2.0 * pi) * exp(0.5 * z * z)
    return side * z


def digamma(x: float) -> float:
    """Derivative of log Gamma at x > 0."""
    value = 0.0
    while x < _SHIFTED:
        value, x = value - 1.0 / x, x + 1.0
    y = 1.0 / (x * x)
    return value + log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))


def trigamma(x: float) -> float:
    """Derivative of `digamma` at x > 0."""
    value = 0.0
    while x < _SHIFTED:
        value, x = value + 1.0 / (x * x), x + 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * 5 / 66))))
    return value + (1.0 + 0.5 / x + series) / x


def tetragamma(x: float) -> float:
    """Derivative of `trigamma` at x > 0."""
    value = 0.0
    while x < _SHIFTED:
        value, x = value - 2.0 / (x * x * x), x + 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 2 - y * (1 / 6 - y * (1 / 6 - y * (3 / 10 - y * 5 / 6))))
    return value - y * (1.0 + 1.0 / x + series)


def inverse_trigamma(value: float) -> float:
    """X with psi'(x) = value, by Newton on 1/psi', which is nearly straight."""
    x = 0.5 + 1.0 / value
    for _ in range(8):
        slope = trigamma(x)
        x += slope * (1.0 - slope / value) / tetragamma(x)
    return x


def _beta(a: float, b: float, odds: float) -> float:
    """I_x(a, b) of x = 1 / (1 + odds): both x and 1 - x keep all digits."""
    x, other = 1.0 / (1.0 + odds), odds / (1.0 + odds)
    size = exp(-a * log1p(odds) + b * (log(odds) - log1p(odds)) - _log_beta(a, b))
    if x < (a + 1.0) / (a + b + 2.0):
        return size / (a * _fraction(1.0, _beta_terms(a, b, x)))
    return 1.0 - size / (b * _fraction(1.0, _beta_terms(b, a, other)))


def _beta_terms(a: float, b: float, x: float) -> Iterator[tuple[float, float]]:
    for k in count():
        yield -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1)), 1.0
        yield (k + 1) * (b - k - 1) * x / ((a + 2 * k + 1) * (a + 2 * k + 2)), 1.0


def _fraction(start: float, terms: Iterator[tuple[float, float]]) -> float:
    """Start + n_1 / (d_1 + n_2 / (d_2 + ...)) of pairs (n, d), by Lentz's method."""
    value = c = start or _TINY
    d = 0.0
    for above, below in terms:
        d = 1.0 / ((below + above * d) or _TINY)
        c = (below + above / c) or _TINY
        value *= c * d
        if not abs(c * d - 1.0) >= _ROUNDING:  # converged, or not a number
            break
    return value


def _log_beta(a: float, b: float) -> float:
    """Log B(a, b); the logarithms of large Gamma functions would cancel."""
    a, b = max(a, b), min(a, b)
    if a < _SHIFTED:
        return lgamma(a) + lgamma(b) - lgamma(a + b)
    return lgamma(b) - (a - 0.5) * log1p(b / a) - b * log(a + b) + b + _stirling(a) - _stirling(a + b)


def _stirling(x: float) -> float:
    """What Stirling's formula lacks of log Gamma."""
    y = 1.0 / (x * x)
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x


def _beyond_normal(z: float, dof: float) -> float:
    """Student's quantile less the normal one: its expansion in 1/dof [Abramowitz and Stegun, 26.7.5]."""
    y = z * z
    terms = (
        z * (y + 1) / 4,
        z * ((5 * y + 16) * y + 3) / 96,
        z * (((3 * y + 19) * y + 17) * y - 15) / 384,
        z * ((((79 * y + 776) * y + 1482) * y - 1920) * y - 945) / 92160,
    )
    return sum(term / dof ** (k + 1) for k, term in enumerate(terms))
