"""Rigid frames from modified DH, xyz/rpy or axis vectors; rotations as quaternions (w, x, y, z), angles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.strict_number import is_number

ROUNDING = 1e-12  # [m], or dimensionless for directions: below any dimension of a description


@dataclass(frozen=True, eq=False)
class Frame:
    """Pose of one frame in another: x_parent = R x + p.

    Attributes:
        R: Rotation, shape (3, 3), dimensionless.
        p: Origin in the parent frame, shape (3,), in [m].
    """

    R: Float[Array, "3 3"]
    p: Float[Array, "3"]

    def __matmul__(self, other: Frame) -> Frame:
        """The frame `other`, given in this frame, seen from this frame's parent."""
        return Frame(self.R @ other.R, self.R @ other.p + self.p)

    def inverse(self) -> Frame:
        """The parent frame seen from this one."""
        return Frame(self.R.T, -self.R.T @ self.p)


def identity_frame() -> Frame:
    """The frame that coincides with its parent."""
    return Frame(np.eye(3), np.zeros(3))


def rotation(axis: int, angle: float) -> Float[Array, "3 3"]:
    """Rotation by `angle` [rad] about coordinate axis 0, 1 or 2; exact at quarter turns."""
    quarter, rest = round(angle / (np.pi / 2)), angle
    c, s = np.cos(rest), np.sin(rest)
    if abs(angle - quarter * np.pi / 2) < 1e-15 * max(1.0, abs(angle)):
        c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarter % 4]
    R = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def rpy_matrix(rpy: tuple[float, float, float]) -> Float[Array, "3 3"]:
    """Rz(yaw) Ry(pitch) Rx(roll), the convention of URDF; angles in [rad]."""
    roll, pitch, yaw = rpy
    return rotation(2, yaw) @ rotation(1, pitch) @ rotation(0, roll)


def mdh_frame(
    *,
    gamma: float = 0.0,
    b: float = 0.0,
    alpha: float = 0.0,
    d: float = 0.0,
    theta: float = 0.0,
    r: float = 0.0,
) -> Frame:
    """Rz(gamma) Tz(b) Rx(alpha) Tx(d) Rz(theta) Tz(r): modified DH of Khalil, trees included.

    Angles in [rad], lengths in [m].
    """
    to_alpha = rotation(2, gamma) @ rotation(0, alpha)
    p = rotation(2, gamma) @ np.array([0.0, 0.0, b]) + to_alpha @ np.array([d, 0.0, 0.0])
    R = to_alpha @ rotation(2, theta)
    return Frame(R, p + R @ np.array([0.0, 0.0, r]))


def dh_frames(
    *, theta: float = 0.0, d: float = 0.0, a: float = 0.0, alpha: float = 0.0
) -> tuple[Frame, Frame]:
    """Classical DH: Rz(theta) Tz(d) before the motion about z, Tx(a) Rx(alpha) after it.

    Angles in [rad], lengths in [m].
    """
    before = Frame(rotation(2, theta), np.array([0.0, 0.0, d]))
    return before, Frame(rotation(0, alpha), np.array([a, 0.0, 0.0]))


def frame_from_axes(
    p: Float[Array, "3"], vectors: dict[int, Float[Array, "3"]], tolerance: float = 1e-3
) -> Frame:
    """Frame at `p` from two of its axes (0, 1, 2), given in the parent frame.

    Both are normalised; the second is made orthogonal to the first, by no more than
    `tolerance` [rad]: a larger error is a mistake in the file, a smaller one is rounding.
    """
    (i, first), (j, second) = sorted(vectors.items())
    first, second = unit_vector(first), unit_vector(second)
    off = float(first @ second)
    if abs(off) > tolerance:
        raise ValueError(
            f"the two axes are {np.degrees(np.arccos(np.clip(off, -1, 1))):.4g} degrees apart, not 90"
        )
    second = unit_vector(second - off * first)
    R = np.zeros((3, 3))
    R[:, i], R[:, j] = first, second
    k = 3 - i - j
    R[:, k] = np.cross(first, second) if (j - i) % 3 == 1 else np.cross(second, first)
    return Frame(R, np.asarray(p, float))


def unit_vector(v: Float[Array, "3"]) -> Float[Array, "3"]:
    """The vector of length 1 in the direction of `v`, which must not be zero.

    Rounding errors of a conversion (6e-17) become zero: they must not influence a structural
    rank.
    """
    length = float(np.linalg.norm(v))
    if not length > 0.0:
        raise ValueError("a zero vector has no direction")
    unit = np.asarray(v, float) / length
    return np.where(np.abs(unit) < ROUNDING, 0.0, unit)


def align_z(axis: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """A rotation whose third column is the unit vector `axis`; exact for coordinate axes."""
    k = int(np.argmax(np.abs(axis)))
    eye = np.eye(3)
    if abs(axis[k]) == 1.0:
        # A cyclic permutation brings z to axis k; a negative axis turns half about the next one.
        R = eye[[(i - k - 1) % 3 for i in range(3)]]
        return R if axis[k] > 0 else R @ np.diag([1.0, -1.0, -1.0])
    x = np.cross(axis, eye[(k + 1) % 3])
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(axis, x), axis])


SNAP_RANGE = 2e-4  # [rad]
_SILENT = 1e-9
_AS_WRITTEN: ContextVar[bool] = ContextVar("angles as written", default=False)


@contextmanager
def angles_as_written() -> Iterator[None]:
    """Read rounded angles of descriptions as other programs do, in this block: no angle is snapped."""
    token = _AS_WRITTEN.set(True)
    try:
        yield
    finally:
        _AS_WRITTEN.reset(token)


def is_snapping() -> bool:
    """Whether rounded angles become exact."""
    return not _AS_WRITTEN.get()


def snap_angle(angle: float, text: str | None = None) -> float:
    """The multiple of pi/12 that `angle` [rad] rounds, else `angle` itself.

    A rounded right angle (1.5708) would create base parameters that are zero by design. But a
    factory calibration contains angles that are close to such multiples and are meant. The
    digits distinguish the two: 1.5708 and 1.570796 are pi/2 rounded (or truncated) at their last
    digit, 1.57071 is not. So an angle changes only by less than one unit of its last written
    digit and SNAP_RANGE, or by less than 1e-9 rad, which is rounding. Small angles such as
    0.0001 are not rounded zeros: zero is written exactly.

    Args:
        angle: In [rad].
        text: The number as written in the file; None when it was computed.
    """
    if not is_snapping():
        return angle
    k = round(angle / (np.pi / 12))
    common = int(np.gcd(k, 12))
    target = (k // common) * np.pi / (12 // common)  # reduced, so that pi/2 is exactly pi/2
    change = abs(angle - target)
    if change < _SILENT:
        return float(target)
    if k == 0 or text is None or change > SNAP_RANGE or change >= last_digit(text):
        return angle
    return float(target)


def is_noticeable(angle: float, snapped: float) -> bool:
    """Whether snapping changed an angle [rad] by enough to report it."""
    return abs(angle - snapped) > _SILENT


def looks_rounded(angle: float, text: str) -> bool:
    """Whether an angle that stays as written (1.57, 3.14) is a coarsely rounded multiple of pi/12."""
    change = abs(angle - round(angle / (np.pi / 12)) * np.pi / 12)
    return abs(angle) > 0.2 and SNAP_RANGE < change < 10 * SNAP_RANGE and change < last_digit(text)


def last_digit(text: str) -> float:
    """One unit of the last digit written: 1e-4 for 1.5708; 0 when the text is not a plain number."""
    number, _, exponent = text.strip().lstrip("+-").lower().partition("e")
    decimals = number.partition(".")[2]
    if not is_number(text.strip()):
        return 0.0
    # Zeros that pad a number carry no precision: 1.57080000 is 1.5708 printed with eight decimals.
    return float(10.0 ** (int(exponent or 0) - len(decimals.rstrip("0"))))


def rotation_of(quaternion: Float[Array, "*n 4"]) -> Float[Array, "*n 3 3"]:
    """Rotation matrices of quaternions of any nonzero length."""
    unit = quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)
    w, x, y, z = np.moveaxis(unit, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def quaternion_of(R: Float[Array, "*n 3 3"]) -> Float[Array, "*n 4"]:
    """Unit quaternions of rotations, w not negative.

    Every entry of 4 q q^T is known; the row with the largest diagonal entry is q up to its length.
    """
    wx, wy, wz = (R[..., j, i] - R[..., i, j] for i, j in ((1, 2), (2, 0), (0, 1)))
    xy, xz, yz = (R[..., i, j] + R[..., j, i] for i, j in ((0, 1), (0, 2), (1, 2)))
    t = np.trace(R, axis1=-2, axis2=-1)
    xx, yy, zz = (1.0 - t + 2.0 * R[..., i, i] for i in range(3))
    rows = np.array([[1.0 + t, wx, wy, wz], [wx, xx, xy, xz], [wy, xy, yy, yz], [wz, xz, yz, zz]])
    largest = np.argmax(np.diagonal(rows, axis1=0, axis2=1), axis=-1)
    q = np.take_along_axis(np.moveaxis(rows, (0, 1), (-2, -1)), largest[..., None, None], axis=-2)[..., 0, :]
    sign = np.where(q[..., :1] >= 0.0, 1.0, -1.0)
    return np.asarray(q / np.linalg.norm(q, axis=-1, keepdims=True) * sign)


def angles_of(R: Float[Array, "*n 3 3"], angles: str) -> Float[Array, "*n 3"]:
    """Roll, pitch, yaw [rad] of R = Rx Ry Rz (`xyz`) or Rz Ry Rx (`zyx`), pitch within a quarter turn."""
    # Rz Ry Rx with angles (r, p, y) is the transpose of Rx Ry Rz with (-r, -p, -y).
    sign, M = (1.0, R) if angles == "xyz" else (-1.0, np.swapaxes(R, -1, -2))
    turns = (
        np.arctan2(-M[..., 1, 2], M[..., 2, 2]),
        np.arcsin(np.clip(M[..., 0, 2], -1.0, 1.0)),
        np.arctan2(-M[..., 0, 1], M[..., 0, 0]),
    )
    return np.asarray(sign * np.stack(turns, axis=-1))
