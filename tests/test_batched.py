"""A NaN or singular matrix in a batch gives NaN; the others give what they give without it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.common import batched

ROOT = Path(__file__).parents[1] / "src" / "dynid"
RAW = {"solve", "inv", "pinv", "svd", "qr", "eigh", "eigvalsh", "eigvals", "eig", "cholesky"}
RAW |= {"matrix_rank"}
# Rule: what has one matrix per sample, body or cluster goes through `batched`, also if only one is given.
# These functions factorise one matrix of a whole fit, design or description: if that fails, there is no
# answer at all, and the function itself says so.
SINGLE = {
    "base:_combinations",
    "base:singular_values",
    "campaign:_expected",
    "cases:__init__",
    "cases:_check_turned_sign",
    "cases:_covariance",
    "cases:_mounting",
    "cases:_peaks",
    "cases:_reason",
    "cases:_sigmas",
    "cases:_singular",
    "cases:dense_fit",
    "cases:nearest_rotation",
    "cases:sigma",
    "cases:step",
    "checks:__init__",
    "checks:_alone",
    "checks:_compared",
    "checks:_estimated",
    "checks:_moderated",
    "checks:_restrictions",
    "checks:_slopes",
    "checks:join",
    "checks:judge",
    "checks:levels",
    "checks:wald_test",
    "choice:_nearest",
    "conditioning:_mix",
    "estimator:_body",
    "estimator:_data",
    "estimator:_differs",
    "estimator:_given",
    "estimator:_inside",
    "estimator:_is_flat",
    "estimator:_positive",
    "estimator:_prior_roots",
    "estimator:_thickened",
    "estimator:_total",
    "estimator:conditions",
    "estimator:data_share",
    "estimator:depth",
    "estimator:determined_alone",
    "estimator:less_sure",
    "estimator:newton",
    "estimator:own_sigmas",
    "estimator:slope",
    "estimator:solved",
    "excitation:_complement",
    "excitation:_information",
    "excitation:_log_determinant",
    "excitation:_named",
    "excitation:_sigmas",
    "excitation:needed_efforts",
    "excitation:promise",
    "excitation:scaled_condition",
    "excitation:smooth",
    "excitation:smooth_value",
    "excitation:value",
    "exporters:principal",
    "kinematics:_expand",
    "kinematics:_fixed",
    "mechanism:_inertial_fault",
    "mechanism:_principal",
    "mechanism:is_physical",
    "motion:_settled",
    "motion:disturbed",
    "prediction:_ellipsoid",
    "prediction:_inside",
    "prediction:_null_space",
    "prediction:nearest_by_efforts",
    "prediction:nearest_set",
    "projection:_loosest",
    "projection:_passive",
    "projection:_smoother",
    "projection:_unmeasured",
    "projection:inverse_directions",
    "projection:orthonormal_map",
    "refinement:window_covariance",
    "simulation:_load",
    "simulation:_mobility",
    "simulation:inverse_efforts",
    "simulation:principal",
    "statistics:_with_columns",
    "statistics:covariance_root",
    "statistics:in_estimate",
    "statistics:restricted",
    "unknowns:_by_visits",
    "unknowns:_covariance",
    "unknowns:_line",
    "unknowns:_unseen",
    "unknowns:calibrate",
    "validation:_solved",
    "validation:payload_mass",
}

WORK: dict[str, Callable[[Any], Any]] = {
    "solve": lambda M: batched.solve(M, np.ones((len(M), 3, 2))),
    "solve_or_nearest": lambda M: batched.solve_or_nearest(M, np.ones((len(M), 3))),
    "inv": batched.inv,
    "pinv": batched.pinv,
    "svd": batched.svd,
    "svd thin": lambda M: batched.svd(M[:, :, :2], full_matrices=False),
    "singular_values": batched.singular_values,
    "qr": batched.qr,
    "qr complete": lambda M: batched.qr(M[:, :, :2], complete=True),
    "eigh": batched.eigh,
    "eigvalsh": batched.eigvalsh,
    "eigvals": batched.eigvals,
    "cholesky": batched.cholesky,
}
NEEDS_REGULAR = {"solve", "inv", "cholesky"}


def several(found: Any) -> tuple[np.ndarray, ...]:
    return found if isinstance(found, tuple) else (found,)


def matrices() -> np.ndarray:
    M = np.random.default_rng(5).normal(size=(9, 3, 3))
    return M @ np.swapaxes(M, 1, 2) + np.eye(3)


@pytest.mark.parametrize("name", WORK)
def test_bad_matrices_give_nan_and_leave_the_others_as_they_are(name: str) -> None:
    M = matrices()
    bad = M.copy()
    bad[1, 0, 0], bad[4], bad[8, 1, 1] = np.nan, 0.0, np.inf
    lost = [1, 4, 8] if name in NEEDS_REGULAR else [1, 8]
    others = [0, 2, 3, 5, 6, 7]
    for found, alone in zip(several(WORK[name](bad)), several(WORK[name](M[others])), strict=True):
        np.testing.assert_array_equal(found[others], alone)
        assert np.isnan(found[lost]).all()
        assert np.isfinite(found[np.setdiff1d(np.arange(9), lost)]).all()


@pytest.mark.parametrize("name", WORK)
def test_a_batch_of_bad_matrices_alone_and_an_empty_one(name: str) -> None:
    shapes = [one.shape[1:] for one in several(WORK[name](matrices()))]
    for found, shape in zip(several(WORK[name](np.full((2, 3, 3), np.nan))), shapes, strict=True):
        assert found.shape == (2, *shape)
        assert np.isnan(found).all()
    assert [one.shape for one in several(WORK[name](np.zeros((0, 3, 3))))] == [(0, *one) for one in shapes]


def test_leading_axes_stay() -> None:
    M = matrices().reshape(3, 3, 3, 3)
    np.testing.assert_array_equal(batched.inv(M), np.linalg.inv(M))
    np.testing.assert_array_equal(batched.inv(M[0, 0]), np.linalg.inv(M[0, 0]))


def test_batches_of_samples_go_through_the_safe_functions() -> None:
    found = set()
    for file in sorted(ROOT.rglob("*.py")):
        place = file.relative_to(ROOT).as_posix()
        # Compiled loops work on single matrices.
        if not place.endswith("kernels.py") and place != "common/batched.py":
            found |= {f"{place.partition('/')[0]}:{name}" for name in raw_calls(file)}
    new = sorted(found - SINGLE)
    assert not new, f"use dynid.common.batched, or list a function of single matrices in SINGLE: {new}"
    assert not SINGLE - found, "listed, but without any factorisation of its own"


def raw_calls(file: Path) -> list[str]:
    """Functions of a file that call np.linalg's factorisations themselves."""
    found: list[str] = []
    text = file.read_text(encoding="utf-8")
    for owner in ast.walk(ast.parse(text)) if "np.linalg" in text else ():
        if not isinstance(owner, ast.FunctionDef):
            continue
        for node in ast.walk(owner):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in RAW
                and ast.unparse(node.value) == "np.linalg"
            ):
                found.append(owner.name)
    return found
