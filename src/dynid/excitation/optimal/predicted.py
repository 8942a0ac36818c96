"""What a motion promises: sigma of every base parameter for white noise of the efforts.

Rows of the identification model are D^T W chi = (C D)^T tau, so their noise is (C D)^T Sigma (C D):
correlated where motors share rows, larger where a row is faster. Rows are weighted as the estimator does,
one weight a row, and the covariance is that of the weighted fit whatever its noise (sandwich).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.base.base import BaseSet
from dynid.common.arrays import Array
from dynid.excitation.optimal.paths import Path, RobotStates
from dynid.mechanism.mechanism import Mechanism
from dynid.projection.model import MODELS
from dynid.regressor.regressor import tree_matrix

# Model of a robot -> the one whose sigma is foretold. Windows of `energy` average rows of `power`; how long
# they are is chosen from the spectrum of a log, which nobody has yet.
PROMISED_BY = {"inverse": "inverse", "power": "power", "energy": "power"}


@dataclass(frozen=True, eq=False)
class Promise:
    """What a motion tells.

    Attributes:
        sigma: Deviation of every base parameter, shape (b,), SI; infinite where nothing is told.
        singular: Singular values of the weighted rows, unit columns, largest first, shape (b,).
        condition: Of the weighted rows as they are; condition_scaled: with unit columns.
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
        weight: Recorded samples per sample given.
        model: Of the robot, see PROMISED_BY; others are judged as `inverse`.
        known: Information of data already recorded, shape (b, b).
    """
    robot = path.mechanism
    D = _directions(path, states, PROMISED_BY.get(model, "inverse"))
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
    spread = weight * np.einsum("nkb,nkl,nlc->bc", rows, V, rows)
    return Promise(
        _sigmas(
            stacked / size,
            spread / np.outer(size, size),
            None if known is None else known / np.outer(size, size),
        )
        / size,
        singular,
        float(whole[0] / whole[-1]) if whole[-1] > 0.0 else np.inf,
        float(singular[0] / singular[-1]) if singular[-1] > 0.0 else np.inf,
    )


def _sigmas(
    W: Float[Array, "r b"], spread: Float[Array, "b b"], known: Float[Array, "b b"] | None
) -> Float[Array, "b"]:
    """Deviations from the rows' triangle; data already known count as further rows without surprise."""
    R = np.linalg.qr(W, mode="r")
    if known is not None:
        values, vectors = np.linalg.eigh(known)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        R = np.linalg.qr(np.vstack([R, root]), mode="r")
        spread = spread + known
    s = np.linalg.svd(R, compute_uv=False)
    if not s[-1] > 1e-12 * s[0]:
        return np.full(W.shape[1], np.inf)
    bread = np.linalg.inv(R)
    bread = bread @ bread.T
    return np.asarray(np.sqrt(np.maximum(np.diag(bread @ spread @ bread), 0.0)))


def _directions(path: Path, states: RobotStates, model: str) -> Float[Array, "n v k"]:
    robot: Mechanism = path.mechanism
    directions = MODELS[model].directions(robot)
    if directions.N is not None:
        return np.broadcast_to(directions.N, (len(states.q), *directions.N.shape))
    assert directions.moving is not None  # noqa: S101 (one of the two is given)
    return directions.moving(states.tangent, states.dq)
