"""Free oscillations of cable4 for tests: simulated once, seen with or without noise."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dynid.dynamics.free_motion import LockedCables, free_motions
from dynid.mechanism.frame import rotation_of
from dynid.mechanism.load import load_robot
from dynid.motion.disturb import _turned
from dynid.motion.logs import log_from_arrays

# Per unit mass; products of inertia ten times those of the paper, so that they can be seen at all.
TRUTH = {
    "M_platform": 1.0,
    "MX_platform": 0.0016,
    "MY_platform": -0.0025,
    "MZ_platform": 0.2,
    "XX_platform": 0.0563,
    "YY_platform": 0.0627,
    "ZZ_platform": 0.0322,
    "XY_platform": 4.8e-4,
    "XZ_platform": -2.5e-4,
    "YZ_platform": 3.4e-4,
}
# Poses some centimetres beside an equilibrium, from which the platform is let go.
STARTS = np.array(
    [
        [1.250713, 0.244578, -0.738776, 0.982732, 0.172232, -0.063551, -0.023148],
        [1.239596, -0.603925, -0.358922, 0.988853, -0.148687, 0.000015, -0.007915],
        [1.785856, 0.059631, -0.489730, 0.994921, 0.043225, -0.090737, -0.005458],
        [1.239859, -0.149805, -0.339490, 0.994574, -0.072606, -0.043105, 0.060763],
        [0.568310, 0.039939, -0.364267, 0.970612, 0.181925, 0.141352, 0.069529],
        [1.756711, -0.462464, -0.508629, 0.998550, -0.001965, -0.040040, 0.035923],
        [0.629141, 0.140086, -0.685907, 0.954895, 0.084247, 0.265720, 0.102328],
        [0.992322, -0.200571, -0.565690, 0.989959, -0.119328, 0.074224, -0.015238],
    ]
)
# The reference point and four corners of the platform.
MARKERS = np.array([[0, 0, 0], [0.2, 0.2, 0.25], [-0.2, 0.2, 0.25], [0.2, -0.2, 0.25], [-0.2, -0.2, 0.25]])
RATE = 100.0


@lru_cache(maxsize=8)
def oscillations(runs=8, duration=5.0, rate=RATE):
    """Poses of free motions, shape (runs, n, 7)."""
    return simulated(load_robot("cable4"), TRUTH, STARTS[:runs], duration, rate)


def simulated(robot, chi, starts, duration=5.0, rate=RATE, mounted=()):
    """Poses of free motions of any cable robot, let go at rest, shape (runs, n, 7)."""
    starts = starts.copy()
    starts[:, 3:] /= np.linalg.norm(starts[:, 3:], axis=1, keepdims=True)
    cables = LockedCables(robot, chi, mounted)
    lengths = np.array([cables.lengths(start[None])[0] for start in starts])
    found = free_motions(cables, chi, lengths, starts, duration, rate)
    assert found.taut.all()
    return found.q.transpose(1, 0, 2)


def as_log(robot, q, sigma=0.0, seed=0, payloads=(), name="free", rate=RATE):
    """A log of several runs, each seen by markers of deviation `sigma` [m]."""
    rng = np.random.default_rng(seed)
    runs, n, _ = q.shape
    seen = [seen_by_markers(one, MARKERS, sigma, rng) if sigma else one for one in q]
    t = np.concatenate([np.arange(n) / rate + 100.0 * i for i in range(runs)])
    segments = [(i * n, (i + 1) * n) for i in range(runs)]
    return log_from_arrays(
        robot, t, np.concatenate(seen), None, name=name, segments=segments, payloads=payloads
    )


def seen_by_markers(q, markers, sigma, rng):
    """Poses as a camera system finds them from noisy markers, by least squares over the markers.

    Args:
        q: True poses x y z qw qx qy qz, shape (n, 7), in [m] and unit quaternions.
        markers: In the frame of the body, not on one line, shape (k, 3), in [m].
        sigma: Standard deviation of every coordinate of a marker, in [m].
        rng: Draws the noise.
    """
    x, y, z = markers.T
    none = np.zeros(len(x))
    turned = np.stack([[none, z, -y], [-z, none, x], [y, -x, none]]).transpose(2, 0, 1)
    sight = np.concatenate([np.broadcast_to(np.eye(3), (len(x), 3, 3)), turned], axis=2).reshape(-1, 6)
    error = sigma * rng.standard_normal((len(q), 3 * len(x))) @ np.linalg.pinv(sight).T
    place = q[:, :3] + np.einsum("nij,nj->ni", rotation_of(q[:, 3:]), error[:, :3])
    return np.concatenate([place, _turned(q[:, 3:], error[:, 3:])], axis=1)
