"""Motion that locked cables allow: tangent directions with dl = 0, orthonormal or by free coordinates.

B = N null(J),    J = dl per unit of N                          [CableRobot, eq. 5]
D = N J^+         minimum motion per unit of each held velocity    (with B^T B = 1, D^T B = 0)
orthonormal: B^T B = 1 over the coordinates of joints            (no choice needed)
free:        B = dq / d zeta_f, free coordinates zeta_f          [CableRobot, eq. 6]

Cables of a mechanism at poses: shapes, lines of action and the Jacobian Xi of their lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import inv, pinv, qr, singular_values, svd
from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice, notice
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.elimination import best_coordinates
from dynid.kinematics.tree import body_poses, tree_of
from dynid.mechanism.cable import Cable, CableShape, cable_coordinates, driven_cables, shape_of
from dynid.mechanism.frame import Frame
from dynid.mechanism.measured_pose import virtual_coordinates
from dynid.mechanism.mechanism import BASE, Mechanism

AUTO = "auto"
_SEED = 20210823
_STATES = 16
_REACH = 0.3
_RANK_RTOL = 1e-7


_KNOWN: WeakKeyDictionary[Mechanism, LockedMotion] = WeakKeyDictionary()


def locked_motion_of(mechanism: Mechanism) -> LockedMotion:
    """The free motion of a mechanism, computed once."""
    if mechanism not in _KNOWN:
        _KNOWN[mechanism] = LockedMotion(mechanism)
    return _KNOWN[mechanism]


class LockedMotion:
    """Tangent directions of a mechanism while some velocities are held at zero.

    Args:
        mechanism: A closed robot.
        held: Rows that give the held velocities, shape (h, v), independent of each other; default: the
            cables that have coordinates.

    Attributes:
        count: Remaining degrees of freedom.
        cables: Velocity indices of the locked cables.
        carrying: Velocity indices of joints that carry bodies: those of cables and sensors follow from them.
    """

    def __init__(self, mechanism: Mechanism, held: Float[Array, "h v"] | None = None) -> None:
        self.mechanism = mechanism
        self.assembly = assembly_of(mechanism)
        names = mechanism.coordinates
        self.cables = [names.index(cable.name) for cable in driven_cables(mechanism)]
        self.held = np.eye(len(names))[self.cables] if held is None else held
        seeming = cable_coordinates(mechanism) | virtual_coordinates(mechanism)
        self.carrying = [i for i, name in enumerate(names) if name not in seeming]
        poses = self.assembly.walk(np.random.default_rng(_SEED), _STATES, reach=_REACH)
        N = self.assembly.tangent(self.assembly.closure.values(poses).A)
        self._rank = _rank(self.held @ N)
        self.count = self.assembly.dof - self._rank
        if self.count == 0:
            raise InputError(
                f"{len(mechanism.cables)} locked cables leave robot '{mechanism.name}' no free motion",
                file=mechanism.file,
                place="model: internal",
                remedy="identify it with model: inverse from measured tensions",
            )
        self.samples = self.basis(N)

    def basis(self, N: Float[Array, "n v d"]) -> Float[Array, "n v k"]:
        """Orthonormal directions (over `carrying`) with dl = 0, from any tangent directions at some poses."""
        N = self._orthonormal(N)
        Vt = svd(self.held @ N)[2] if len(self.held) else None
        return N if Vt is None else np.asarray(N @ np.swapaxes(Vt[:, self._rank :], 1, 2))

    def driven(self, N: Float[Array, "n v d"]) -> Float[Array, "n v h"]:
        """The minimum motion (over `carrying`) per unit of each held velocity, the other held ones zero."""
        N = self._orthonormal(N)
        return np.asarray(N @ pinv(self.held @ N))

    def _orthonormal(self, N: Float[Array, "n v d"]) -> Float[Array, "n v d"]:
        return np.asarray(N @ inv(qr(N[:, self.carrying])[1]))

    def aligned(self, B: Float[Array, "n v k"], reference: Float[Array, "v k"]) -> Float[Array, "n v k"]:
        """The same spaces, each with the basis nearest to one reference: as smooth as the spaces are."""
        left, _, right = svd(np.swapaxes(B[:, self.carrying], 1, 2) @ reference[self.carrying])
        return np.asarray(B @ (left @ right))

    def reference(self, B: Float[Array, "n v k"]) -> tuple[Float[Array, "v k"], float]:
        """Of some bases the one closest to all others, and the cosine of its largest angle to them."""
        body_rows = B[:, self.carrying]
        closeness = singular_values(np.einsum("avk,bvl->abkl", body_rows, body_rows))[..., -1]
        best = int(np.argmax(closeness.min(axis=1)))
        return B[best], float(closeness[best].min())

    def along(self, B: Float[Array, "n v k"], free: Sequence[int]) -> Float[Array, "n v k"]:
        """Directions per unit velocity of the free coordinates."""
        return np.asarray(B @ inv(B[:, list(free)]))

    def conditions(self, B: Float[Array, "n v k"], free: Sequence[int]) -> Float[Array, "n"]:
        """Conditioning of the free coordinates: 1 over their smallest rate for a unit motion."""
        s = singular_values(B[:, list(free)])
        return np.asarray(1.0 / np.maximum(s[:, -1], 1e-300))

    def free_indices(self, free: Sequence[str] | str, B: Float[Array, "n v k"]) -> list[int]:
        """Velocity indices of free coordinates by name; `auto` chooses those that move most at all poses.

        Args:
            free: Names, in full (pose_x) or without the joint where that is clear (x); or `auto`.
            B: Orthonormal directions at the poses of interest.
        """
        robot = self.mechanism
        if free == AUTO or tuple(free) == (AUTO,):
            return best_coordinates(B, self.carrying)
        columns = [robot.coordinates.index(name) for name in free_names(robot, free)]
        if len(columns) != self.count:
            raise InputError(
                f"{len(columns)} free coordinates ({', '.join(free)}) for {self.count} degrees of freedom"
                " with locked cables",
                file=robot.file,
                place="free",
                remedy=f"name {self.count}, or write free: auto",
            )
        return columns


def free_names(mechanism: Mechanism, free: Sequence[str]) -> list[str]:
    """Full names of free coordinates; a short one (x) must match one joint only; sensors are not counted."""
    lengths = {cable.name for cable in mechanism.cables}
    valid = [name for name in mechanism.coordinates if name not in lengths]
    sensors = virtual_coordinates(mechanism)
    full_names = []
    for name in free:
        fits = (
            [name] if name in valid else [candidate for candidate in valid if candidate.endswith(f"_{name}")]
        )
        fits = [fit for fit in fits if fit not in sensors] or fits
        if len(fits) != 1:
            known = {candidate.rsplit("_", 1)[-1] for candidate in valid} | set(valid)
            raise InputError(
                f"free coordinate '{name}' is "
                + (f"{' or '.join(fits)}" if fits else "unknown" + nearest(name, sorted(known))),
                file=mechanism.file,
                place="free",
                remedy=f"use the full names: {', '.join(valid)}; list an angle of an IMU or a marker under"
                " `measured:` first",
            )
        full_names += fits
    return full_names


def _rank(J: Float[Array, "n c d"]) -> int:
    if 0 in J.shape:
        return 0
    s = singular_values(J)
    return int((s > _RANK_RTOL * np.nanmax(s)).sum(axis=1).max())


_NEAR = 1e-3  # of a cable's length: closer to its swivel axis, a pulley turns too fast to be tracked


def cable_shapes(
    mechanism: Mechanism, q: Float[Array, "n q"]
) -> Iterator[tuple[Cable, CableShape, Float[Array, "n 3 3"], Float[Array, "n 3"]]]:
    """Each cable with its shape in the entry frame, and that frame's R and origin D in the base frame.

    Args:
        q: Positions of all joints, shape (n, n_q).
    """
    tree = tree_of(mechanism)
    R_0, p_0 = body_poses(tree, q)

    def placed(body: str, frame: Frame) -> tuple[Float[Array, "n 3 3"], Float[Array, "n 3"]]:
        if body == BASE:
            return np.broadcast_to(frame.R, (len(q), 3, 3)), np.broadcast_to(frame.p, (len(q), 3))
        i = tree.body_names.index(body)
        return R_0[:, i] @ frame.R, p_0[:, i] + R_0[:, i] @ frame.p

    for cable in mechanism.cables:
        R, D = placed(cable.body_from, cable.entry)
        A = placed(cable.body_to, cable.attachment)[1]
        yield cable, shape_of(cable.radius, np.einsum("nij,ni->nj", R, A - D)), R, D


def cable_jacobian(mechanism: Mechanism, q: Float[Array, "n q"]) -> Float[Array, "n c v"]:
    """Xi: rates of the cables' lengths per unit rate of every coordinate that carries bodies.

    Rows for all cables in file order, zero in the coordinates of the cables themselves; for a free platform
    the first six columns are [CableRobot, eqs 3, 4], moments about the platform's axes.
    """
    from dynid.kinematics.closure import Closure

    closure = Closure(mechanism)
    rows = [closure.names.index(cable.name) for cable in mechanism.cables]
    A = closure.values(q).A[:, rows].copy()
    length_columns = [
        mechanism.coordinates.index(cable.name) for cable in mechanism.cables if cable.length is None
    ]
    A[:, :, length_columns] = 0.0
    return A


def singular_cables(mechanism: Mechanism, q: Float[Array, "n q"]) -> list[Notice]:
    """Notices about cables too close to their swivel axis, or inside their pulley, at some of the poses."""
    notices = []
    for cable, shape, _, _ in cable_shapes(mechanism, q):
        if cable.radius == 0.0:
            continue
        inside = ~np.isfinite(shape.straight)
        near = np.nanmin(shape.off_axis / np.where(inside, 1.0, shape.length))
        if inside.any():
            notices.append(notice("cable-inside", cable=cable.name, count=int(inside.sum()), total=len(q)))
        elif near < _NEAR:
            least = 1e3 * float(shape.off_axis.min())
            notices.append(notice("cable-on-axis", cable=cable.name, off=least))
    return notices
