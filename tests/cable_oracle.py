"""A rigid platform on cables in plain NumPy and SciPy: an oracle that shares no code with dynid.

World frame throughout: v = (dp, omega), M dv + C v - phi = -Xi^T tau [CableRobot, eqs 8, 9]. The
constraint of locked cables, Xi dv = -dXi v, closes the system; SciPy's DOP853 integrates it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

GRAVITY = np.array([0.0, 0.0, -9.81])


@dataclass(frozen=True)
class CableSet:
    """Entry points D, swivel axes and radii (0: eyelet), attachments A in the platform frame."""

    D: np.ndarray
    A: np.ndarray
    axis: np.ndarray
    radius: np.ndarray


@dataclass(frozen=True)
class Platform:
    """Mass, first moment M s and inertia about the reference point, platform axes."""

    m: float
    ms: np.ndarray
    inertia: np.ndarray


def cable4() -> CableSet:
    """The robot of the paper, Table 1."""
    return CableSet(
        np.array(
            [[0.219, -1.316, 0.527], [2.295, -1.158, 0.521], [2.153, 0.973, 0.56], [0.0532, 0.796, 0.532]]
        ),
        np.array(
            [[-0.144, -0.219, 0.264], [0.115, -0.233, 0.27], [0.142, 0.22, 0.266], [-0.12, 0.236, 0.266]]
        ),
        np.array([[-1.0, 0, 0], [0, -1.0, 0], [1.0, 0, 0], [0, 1.0, 0]]),
        np.full(4, 0.025),
    )


def platform10() -> Platform:
    """10 kg, with every entry of its inertia at work."""
    com = np.array([0.004, -0.006, 0.19])
    specific = np.array([[0.051, 0.0004, -0.0012], [0.0004, 0.069, 0.0009], [-0.0012, 0.0009, 0.037]])
    return Platform(10.0, 10.0 * com, 10.0 * specific)


def rotation(quaternion: np.ndarray) -> np.ndarray:
    """Matrix of a quaternion (w first), normalised."""
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def skew(a: np.ndarray) -> np.ndarray:
    """Matrix of the cross product."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def cable(cables: CableSet, i: int, p: np.ndarray, R: np.ndarray) -> tuple[float, np.ndarray]:
    """Length from D, arc included, and the direction in which the cable leaves its pulley."""
    to = p + R @ cables.A[i] - cables.D[i]
    if cables.radius[i] == 0.0:
        length = float(np.linalg.norm(to))
        return length, to / length
    z = cables.axis[i]
    u = to - (to @ z) * z
    u /= np.linalg.norm(u)
    # In the pulley's plane: at angle phi stands -r cos u + r sin z, the cable leaves along sin u + cos z.
    r, x, h = cables.radius[i], to @ u - cables.radius[i], to @ z
    straight = np.sqrt(x * x + h * h - r * r)
    phi = np.arctan2(x, h) + np.arctan2(r, straight)
    return float(r * phi + straight), np.sin(phi) * u + np.cos(phi) * z


def lengths(cables: CableSet, p: np.ndarray, R: np.ndarray) -> np.ndarray:
    """All cable lengths at a pose, shape (c,), in [m]."""
    return np.array([cable(cables, i, p, R)[0] for i in range(len(cables.D))])


def Xi(cables: CableSet, p: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Rows (t, a' x t) for v = (dp, omega), world frame [eq. 4]."""
    rows = []
    for i in range(len(cables.D)):
        t = cable(cables, i, p, R)[1]
        rows.append(np.concatenate([t, np.cross(R @ cables.A[i], t)]))
    return np.array(rows)


def Xi_differences(cables: CableSet, p: np.ndarray, R: np.ndarray, h: float = 1e-3) -> np.ndarray:
    """The same from lengths alone: central differences of order six."""
    from scipy.spatial.transform import Rotation

    out = np.zeros((len(cables.D), 6))
    for k in range(6):
        for factor, weight in ((1, 45.0), (2, -9.0), (3, 1.0)):
            for sign in (1, -1):
                step = np.zeros(6)
                step[k] = sign * factor * h
                turned = Rotation.from_rotvec(step[3:]).as_matrix() @ R
                out[:, k] += sign * weight / (60.0 * h) * lengths(cables, p + step[:3], turned)
    return out


def null_space(matrix: np.ndarray) -> np.ndarray:
    """Orthonormal directions that the matrix does not see."""
    _, s, Vt = np.linalg.svd(matrix)
    return Vt[int((s > 1e-10 * s[0]).sum()) :].T


def accelerations(
    cables: CableSet, platform: Platform, p: np.ndarray, R: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Dv and cable tensions of a free motion on locked cables."""
    from scipy.spatial.transform import Rotation

    M, left = _newton_euler(platform, R, v)
    X, h = Xi(cables, p, R), 1e-4
    dX = np.zeros_like(X)
    for factor, weight in ((1, 45.0), (2, -9.0), (3, 1.0)):
        for sign in (1, -1):
            t = sign * factor * h
            turned = Rotation.from_rotvec(t * v[3:]).as_matrix() @ R
            dX += sign * weight / (60.0 * h) * Xi(cables, p + t * v[:3], turned)
    c = len(X)
    matrix = np.block([[M, X.T], [X, np.zeros((c, c))]])
    found = np.linalg.solve(matrix, np.concatenate([-left, -dX @ v]))
    return found[:6], found[6:]


def _newton_euler(platform: Platform, R: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M and C v - phi of eq. 9."""
    ms, inertia, omega = R @ platform.ms, R @ platform.inertia @ R.T, v[3:]
    M = np.block([[platform.m * np.eye(3), -skew(ms)], [skew(ms), inertia]])
    force = np.cross(omega, np.cross(omega, ms)) - platform.m * GRAVITY
    moment = np.cross(omega, inertia @ omega) - np.cross(ms, GRAVITY)
    return M, np.concatenate([force, moment])


def energy(platform: Platform, p: np.ndarray, R: np.ndarray, v: np.ndarray) -> float:
    """Kinetic plus potential, in [J]."""
    M, _ = _newton_euler(platform, R, v)
    return float(0.5 * v @ M @ v - GRAVITY @ (platform.m * p + R @ platform.ms))


def free_motion(
    cables: CableSet, platform: Platform, pose: np.ndarray, v: np.ndarray, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Poses (n, 7), twists (n, 6; world frame) and tensions (n, c) at times t from a state."""
    from scipy.integrate import solve_ivp

    def slope(_: float, state: np.ndarray) -> np.ndarray:
        p, quaternion, v = state[:3], state[3:7], state[7:]
        dv, _ = accelerations(cables, platform, p, rotation(quaternion), v)
        w, (x, y, z), (a, b, c) = quaternion[0], quaternion[1:], v[3:]
        turning = 0.5 * np.array(
            [-x * a - y * b - z * c, w * a + b * z - c * y, w * b + c * x - a * z, w * c + a * y - b * x]
        )
        return np.concatenate([v[:3], turning, dv])

    start = np.concatenate([pose, v])
    found = solve_ivp(slope, (t[0], t[-1]), start, "DOP853", t, rtol=1e-12, atol=1e-13)
    poses, rates = found.y[:7].T, found.y[7:].T
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    pulls = [
        accelerations(cables, platform, pose[:3], rotation(pose[3:]), rate)[1]
        for pose, rate in zip(poses, rates, strict=True)
    ]
    return poses, rates, np.array(pulls)


def equilibrium(
    cables: CableSet, platform: Platform, wanted: np.ndarray, guess: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pose (7) and tensions for given lengths: constraints and wrench balance by SciPy's root finder."""
    from scipy.optimize import root
    from scipy.spatial.transform import Rotation

    c = len(wanted)

    def miss(unknown: np.ndarray) -> np.ndarray:
        p, R = unknown[:3], Rotation.from_rotvec(unknown[3:6]).as_matrix() @ rotation(guess[3:])
        balance = _newton_euler(platform, R, np.zeros(6))[1] + Xi(cables, p, R).T @ unknown[6:]
        return np.concatenate([lengths(cables, p, R) - wanted, balance / platform.m])

    begin = np.concatenate([guess[:3], np.zeros(3), np.full(c, platform.m * 9.81 / c)])
    found = root(miss, begin, tol=1e-13).x
    turn = Rotation.from_rotvec(found[3:6]) * Rotation.from_matrix(rotation(guess[3:]))
    x, y, z, w = turn.as_quat()
    return np.concatenate([found[:3], [w, x, y, z]]), found[6:]
