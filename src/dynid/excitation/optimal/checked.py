"""Checks of a designed motion: use of every limit, also between the samples, and predicted accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.base.base import BaseSet
from dynid.common.arrays import Array, Float
from dynid.common.batched import eigh
from dynid.excitation.optimal.box import RATES, Box
from dynid.excitation.optimal.families import Family
from dynid.excitation.optimal.paths import Path, RobotStates
from dynid.excitation.optimal.soft import FineMotion, SoftLimits, worst_between
from dynid.excitation.optimal.soft_joints import NEARNESS
from dynid.mechanism.mechanism import Mechanism
from dynid.projection.model import MODELS
from dynid.regressor.regressor import tree_matrix

DENSER = 20  # times the grid on which linear limits are imposed
_SMALLEST = 1e-12  # of the largest singular value: below it a direction is not excited
_HIDDEN = 1e-6  # share of a parameter in directions that are not excited, above which it is unknown


@dataclass(frozen=True)
class LimitUse:
    """One limit and its use by a motion.

    Attributes:
        name: Coordinate, motor, body or pair of bodies.
        kind: q, dq, ddq, jerk, or another limited quantity.
        low, high: The limit, in SI; None if there is none on that side.
        least, most: Reached minimum and maximum, in SI.
        margin_percent: Remaining margin; negative: violated.
    """

    name: str
    kind: str
    low: float | None
    high: float | None
    least: float | None
    most: float | None
    margin_percent: float


def linear_uses(family: Family, box: Box, x: Float[Array, "m j"]) -> list[LimitUse]:
    """Use of every limit of the moved coordinates."""
    uses = []
    t, _ = family.grid()
    # Many times as dense as the grid of its limits.
    dense = np.union1d(np.linspace(0.0, family.period, DENSER * len(t) + 1), t)
    signals = family.matrices(dense) @ x
    for order, kind in enumerate(RATES):
        for j, name in enumerate(box.names):
            low, high = float(box.low[order, j]), float(box.high[order, j])
            if np.isfinite(high):
                least, most = float(signals[order, :, j].min()), float(signals[order, :, j].max())
                margin = 200.0 * min(high - most, least - low) / (high - low)
                uses.append(LimitUse(name, kind, low, high, least, most, margin))
    return uses


def soft_uses(soft: SoftLimits | None, motion: FineMotion) -> list[LimitUse]:
    """Use of every nonlinear limit; the two sides of one limit are one entry."""
    if soft is None:
        return []
    worst = worst_between(soft, motion)
    by_limit: dict[tuple[str, str], LimitUse] = {}
    for side, excess, value in zip(soft.sides, worst.tolist(), soft.reached(worst), strict=True):
        key = side.kind, side.name
        other = by_limit.get(key)
        if other and None in (side.low, side.high) and other.margin_percent <= -100.0 * excess:
            continue  # several shapes of the same bodies: the nearest counts
        least, most = (other.least, other.most) if other else (None, None)
        least, most = (least, value) if side.above else (value, most)
        left = min(-100.0 * excess, other.margin_percent if other else np.inf)
        by_limit[key] = LimitUse(side.name, side.kind, side.low, side.high, least, most, left)
    return list(by_limit.values())


def unkept_limits(mechanism: Mechanism, uses: Sequence[LimitUse]) -> list[str]:
    """Limits of the robot file that were not applied, named as in the file."""
    kept = {(use.name, use.kind) for use in uses}
    kinds = {use.kind for use in uses}
    whole = {"singularity": NEARNESS in kinds, "cables": "tension" in kinds}
    whole |= {
        joint.name: True for joint in mechanism.joints if joint.has_quaternion
    }  # by the body it carries
    missed = []
    for name, joint_limits in mechanism.limits.items():
        for key in joint_limits:
            if not whole.get(name, (name, "effort" if key == "tau" else key) in kept):
                missed.append(f"{name}.{key}")
    return missed


# Predicted accuracy of a motion: sigma of every base parameter for white noise of the efforts.
#
# Rows of the identification model are D^T W chi = (C D)^T tau, so their noise is (C D)^T Sigma (C D):
# correlated if motors share rows, larger for faster rows. Rows are weighted as in the estimator, one
# weight per row, and the covariance is that of the weighted fit for this noise (sandwich).


@dataclass(frozen=True, eq=False)
class Promise:
    """Predicted accuracy of a motion.

    Attributes:
        sigma: Standard deviation of every base parameter, shape (b,), SI; infinite if not determined.
        singular: Singular values of the weighted rows, unit columns, largest first, shape (b,).
        condition: Of the weighted rows, not scaled; condition_scaled: with unit columns.
    """

    sigma: Float[Array, "b"]
    singular: Float[Array, "b"]
    condition: float
    condition_scaled: float


def promise(
    path: Path,
    states: RobotStates,
    base: BaseSet,
    sigma: Float[Array, "a"],
    weight: float,
    *,
    model: str = "inverse",
    mounted: tuple[str, ...] = (),
    known: Float[Array, "b b"] | None = None,
) -> Promise:
    """Sigma and spectrum of a motion.

    Args:
        states: Of the motion at evenly spaced samples.
        sigma: Noise of every motor, shape (a,), in [N m] or [N].
        weight: Recorded samples per given sample.
        model: Of the robot, see `promised_by` of models.
        known: Information of existing data, shape (b, b).
    """
    robot = path.mechanism
    D = _directions(path, states, MODELS[model].promised_by)
    W = tree_matrix(robot, states.q, states.dq, states.ddq, mounted=mounted) @ base.S
    rows = np.einsum("nvk,nvb->nkb", D, W)
    J = np.einsum("av,nvk->nak", robot.actuator_map, D) * sigma[:, None]
    V = np.einsum("nak,nal->nkl", J, J)
    mean = np.einsum("nkk->k", V) / len(V)
    quiet = mean[mean > 0.0].min(initial=np.inf)
    weights = 1.0 / np.sqrt(np.where(mean > 0.0, mean, quiet if np.isfinite(quiet) else 1.0))
    rows, V = rows * weights[:, None], V * np.outer(weights, weights)
    stacked = np.sqrt(weight) * rows.reshape(-1, rows.shape[-1])
    norms = np.linalg.norm(stacked, axis=0)
    size = np.where(norms > 0.0, norms, 1.0)
    singular = np.linalg.svd(stacked / size, compute_uv=False)
    whole = np.linalg.svd(stacked, compute_uv=False)
    root = None if known is None else _root(known / np.outer(size, size))
    return Promise(
        _sigmas(stacked / size, _roots(V), root) / size,
        singular,
        float(whole[0] / whole[-1]) if whole[-1] > 0.0 else np.inf,
        float(singular[0] / singular[-1]) if singular[-1] > 0.0 else np.inf,
    )


def _sigmas(
    W: Float[Array, "r b"], noise: Float[Array, "n k k"], known: Float[Array, "x b"] | None
) -> Float[Array, "b"]:
    """Standard deviations of least squares; infinite for parameters that the rows do not determine.

    With W = U s V^T and noise covariance L L^T of the rows, C = (V s^-1) U^T L L^T U (V s^-1)^T. The
    variances are sums of squares of (V s^-1) (U^T L): nothing is subtracted, so none can become zero.

    Args:
        W: Rows with unit columns, those of one sample consecutive.
        noise: Square roots L of the covariance of the rows of each sample.
        known: Additional rows of unit noise, for existing data.
    """
    n, k, _ = noise.shape
    rows = W if known is None else np.vstack([W, known])
    U, s, Vt = np.linalg.svd(rows, full_matrices=False)
    seen = s > _SMALLEST * s[0]
    noisy = np.einsum("nkb,nkl->nlb", U[: n * k].reshape(n, k, -1), noise).reshape(n * k, -1)
    spread = np.linalg.qr(np.vstack([noisy, U[n * k :]])[:, seen], mode="r")
    sigma = np.linalg.norm(spread @ (Vt[seen] / s[seen, None]), axis=0)
    hidden = np.abs(Vt[~seen]).max(axis=0, initial=0.0) > _HIDDEN
    return np.where(hidden, np.inf, sigma)


def _roots(V: Float[Array, "n k k"]) -> Float[Array, "n k k"]:
    """L with L L^T = V for each sample; V may be singular."""
    values, vectors = eigh(V)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


def _root(G: Float[Array, "b b"]) -> Float[Array, "b b"]:
    """Rows whose sum of squares is G."""
    return np.asarray(np.swapaxes(_roots(G[None])[0], 0, 1))


def _directions(path: Path, states: RobotStates, model: str) -> Float[Array, "n v k"]:
    robot: Mechanism = path.mechanism
    directions = MODELS[model].directions(robot)
    if directions.N is not None:
        return np.broadcast_to(directions.N, (len(states.q), *directions.N.shape))
    assert directions.moving is not None  # noqa: S101 (one of the two is given)
    return directions.moving(states.tangent, states.dq)
