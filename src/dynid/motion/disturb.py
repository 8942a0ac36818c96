"""Additional noise like that of the measured positions: its effect on W is that of the noise in the log.

A pose is measured by markers on the body: errors of position and attitude are correlated, with constant
covariance in body axes,

    p' = p + R e_p,     q' = q (1, e_r / 2) / |.|,     cov(e_p, e_r) from sixth differences of the log

whose gain on white noise is 924, and which leave 4e-6 of an oscillation at a fiftieth of the rate.
"""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.mechanism.frame import rotation_of
from dynid.motion.choose import spectrum_in
from dynid.motion.log import Log, runs_by_content

_ORDER, _GAIN = 6, 924.0  # of the differences; sum of their squared coefficients


def disturbed(
    log: Log, given: Float[Array, "m"] | float | None, rng: np.random.Generator, sign: float = 1.0
) -> Float[Array, "n m"]:
    """Positions with added noise of the same size as their own; quaternions stay unit quaternions.

    Args:
        log: Its constant columns (locked lengths) have no noise.
        given: Standard deviation of all positions, of each, or two for poses: positions [m],
            attitudes [rad]. None: from the log.
        rng: Draws the noise.
        sign: Factor on the noise drawn.
    """
    poses = pose_columns(log)
    pair = given is not None and np.size(given) == 2 and bool(poses)
    q = log.q + sign * _sigmas(log, None if pair else given) * drawn(log, rng, log.q.shape[1])
    for start, place in poses:
        if given is None:
            root = np.linalg.cholesky(pose_covariance(log, start, place))
        elif pair:
            root = np.diag(np.repeat(np.asarray(given, dtype=float), 3))
        else:
            turn = 2.0 * float(np.sqrt(np.sum(_sigmas(log, given)[start : start + 4] ** 2) / 3.0))
            root = np.diag(
                [*_sigmas(log, given)[list(place)], *([turn] * 3)] if place else [0.0] * 3 + [turn] * 3
            )
        error = sign * drawn(log, rng, 6) @ root.T
        attitude = log.q[:, start : start + 4]
        q[:, start : start + 4] = _turned(attitude, error[:, 3:])
        if place:
            seen = log.q[:, place]
            q[:, place] = seen + np.einsum("nij,nj->ni", rotation_of(attitude), error[:, :3])
    return q


def drawn(log: Log, rng: np.random.Generator, columns: int) -> Float[Array, "n c"]:
    """White noise of unit variance in every run, the same for a run wherever it is in the log."""
    noise = np.zeros((len(log.q), columns))
    for _, start, stop in runs_by_content([log]):
        noise[start:stop] = rng.standard_normal((stop - start, columns))
    return noise


def pose_columns(log: Log) -> list[tuple[int, list[int]]]:
    """First column of every quaternion, and the columns of the position measured with it (or none)."""
    names = log.position_names
    poses = []
    for i, name in enumerate(names):
        if name == "qw" or name.endswith("_qw"):
            place = [f"{name.removesuffix('qw')}{axis}" for axis in "xyz"]
            poses.append(
                (i, [names.index(coordinate) for coordinate in place] if set(place) <= set(names) else [])
            )
    return poses


def pose_covariance(log: Log, start: int, place: list[int]) -> Float[Array, "6 6"]:
    """Covariance of the noise of a pose, position then attitude, body axes, in [m] and [rad]."""
    parts = []
    for low, high in log.segments:
        if high - low <= _ORDER:
            continue
        middle = slice(low + _ORDER // 2, high - _ORDER // 2)
        q = np.asarray(log.q[middle, start : start + 4], dtype=float)
        turned = 2.0 * _imaginary(q, np.diff(log.q[low:high, start : start + 4], _ORDER, axis=0))
        moved = np.zeros_like(turned)
        if place:
            moved = np.einsum("nij,ni->nj", rotation_of(q), np.diff(log.q[low:high, place], _ORDER, axis=0))
        parts.append(np.concatenate([moved, turned], axis=1))
    if not parts:
        raise InputError(f"log '{log.name}' is too short to estimate its noise", file=log.file)
    errors = np.concatenate(parts)
    covariance = errors.T @ errors / (len(errors) * _GAIN)
    return np.asarray(covariance + np.diag(1e-12 * np.diag(covariance) + 1e-30))


def _sigmas(log: Log, given: Float[Array, "m"] | float | None) -> Float[Array, "m"]:
    """Standard deviation of every measured position, in [m], [rad] or quaternion entries."""
    if given is None:
        return spectrum_in(log, log.q).sigma
    size = np.atleast_1d(np.asarray(given, dtype=float))
    m = log.q.shape[1]
    if size.size not in (1, m):
        raise InputError(
            f"{size.size} standard deviations for {m} measured positions of log '{log.name}'",
            remedy="give one for all, one per position, or two for a pose (metres, radians)",
        )
    moving = np.ptp(log.q[log.valid], axis=0) > 0.0
    return np.where(moving, np.broadcast_to(size, (m,)), 0.0)


def _imaginary(q: Float[Array, "n 4"], d: Float[Array, "n 4"]) -> Float[Array, "n 3"]:
    """Imaginary part of conj(q) d: half the rotation vector of d, in body axes."""
    w, v = q[:, :1], q[:, 1:]
    return np.asarray(w * d[:, 1:] - d[:, :1] * v - np.cross(v, d[:, 1:]))


def _turned(q: Float[Array, "n 4"], delta: Float[Array, "n 3"]) -> Float[Array, "n 4"]:
    """Attitudes rotated by small rotation vectors in body axes, in [rad]."""
    w, v = q[:, :1], q[:, 1:]
    half = 0.5 * delta
    turned = np.concatenate(
        [w - np.sum(v * half, axis=1, keepdims=True), v + w * half + np.cross(v, half)], axis=1
    )
    return np.asarray(turned / np.linalg.norm(turned, axis=1, keepdims=True))
