"""Levels of the residual tests, so that at most one clean log in twenty has a false alarm.

Any friction that a model lacks resembles a delay, a gain or a gravity: their p values are exact on simulated
robots only, and each is tested at the level of 0.1 %. Joint zeros and dimensions are calibrated (p below 0.1,
0.01 and 0.001 in 10.8, 1.5 and 0.1 % of 1105 tests of 98 clean logs with friction of all kinds). They share
what the others leave of the 5 %: their level a is the largest one, up to 1 %, with

    P( some |z_i| > z(a) ) = 0.05 - 0.001 n_other

for normal z with the correlations of their columns. Only suspects that noise can flag count. Others would be
too small to matter at the size at which they are just significant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.distributions import chi2_tail, normal_quantile

if TYPE_CHECKING:
    from dynid.checks.fault_columns import Suspect

Relevant = Callable[["Suspect"], bool]

_FAMILY, _SIGNIFICANT, _MOST = 0.05, 1e-3, 1e-2
CALIBRATED = ("zero", "dimension")
NOTICEABLE = 3e-3  # of the rms effort, for friction and other parameters that a test frees
_DRAWS = 10_000  # the level is then known within 5 %


def levels(
    suspects: Sequence[Suspect], bases: Sequence[Float[Array, "k _"]], relevant: Relevant
) -> Callable[[Suspect], float]:
    """The level of each test.

    Args:
        suspects: Tested, all of a log.
        bases: Orthonormal columns of each, without what the parameters explain.
        relevant: Whether a result is large enough to matter.
    """
    counted = [pair for pair in zip(suspects, bases, strict=True) if relevant(_just(pair[0]))]
    columns = [basis for suspect, basis in counted if suspect.test in CALIBRATED]
    others = len(counted) - len(columns)
    other = min(_SIGNIFICANT, 0.5 * _FAMILY / max(others, 1))
    if not columns:
        return lambda suspect: other
    every = np.hstack(columns)
    values, vectors = np.linalg.eigh(every.T @ every)
    # The symmetric root does not depend on the signs and order of the vectors.
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    draws = np.random.default_rng(0).standard_normal((_DRAWS, len(root)))
    largest = float(np.quantile(np.abs(draws @ root).max(axis=1), 1.0 - _FAMILY + other * others))
    shared = min(chi2_tail(1.0, largest**2), _MOST)
    return lambda suspect: shared if suspect.test in CALIBRATED else other


def _just(suspect: Suspect) -> Suspect:
    """The same with the size at which it is just significant."""
    c = len(suspect.size)
    # Quantile of chi2_c (Wilson and Hilferty).
    quantile = c * (1.0 - 2.0 / (9.0 * c) - normal_quantile(_SIGNIFICANT) * np.sqrt(2.0 / (9.0 * c))) ** 3
    times = float(np.sqrt(quantile / max(suspect.wald, 1e-12)))
    explains = min(suspect.explains * times**2, 1.0)
    return replace(suspect, size=times * suspect.size, explains=explains, share=times * suspect.share)
