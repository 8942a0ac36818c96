"""Loops and couplings as MuJoCo's equality constraints.

| loop                     | MuJoCo                                                             |
|--------------------------|--------------------------------------------------------------------|
| point                    | connect of the two origins                                         |
| revolute                 | two connects on the axis: one equation too many, along the axis    |
| weld                     | weld of the two frames                                             |
| rod                      | spatial tendon between the origins, of constant length             |
| any other (prismatic, universal, planar, `fix`) | tiny link on a with the free joints, welded to b   |
| coupling                 | fixed tendon q_j - sum ratio q_k, of constant length               |

A redundant equation (of a revolute loop, or of a planar robot closed in space) does no harm: the
softness distributes the reaction over equal equations, and it does no work in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.frame import Frame
from dynid.mechanism.joint import DIRECTIONS, FIXED_BY, Loop
from dynid.mechanism.mechanism import Mechanism
from dynid.simulation.plant.settings import Softness

_APART = 0.1  # m between the two connects of a revolute loop: the size of a bearing
_EYE = np.eye(3)


@dataclass(frozen=True, eq=False)
class Helper:
    """The tiny link of a loop that has no corresponding MuJoCo equality.

    Attributes:
        link: Its body in the specification.
        sites: Of frame a and frame b.
        slides, turns: Joints along and about axes of the frames, with the axis (0, 1, 2).
        ball: A joint for all rotations, or None.
    """

    link: Any
    sites: tuple[Any, Any]
    slides: tuple[tuple[Any, int], ...]
    turns: tuple[tuple[Any, int], ...]
    ball: Any


@dataclass(frozen=True, eq=False)
class Closures:
    """Elements that close the loops: tendons with their lengths, and helper links."""

    lengths: tuple[tuple[Any, float], ...]
    helpers: tuple[Helper, ...]

    def light(self, tiny: tuple[float, float]) -> list[tuple[Any, float, Float[Array, "3"]]]:
        """Helper links with their mass [kg] and moments of inertia [kg m^2]."""
        return [(helper.link, tiny[0], np.full(3, tiny[1])) for helper in self.helpers]


class ClosureBuilder:
    """Adds the equalities of a mechanism to a specification; one instance per model.

    Args:
        bodies: Specification's body and dynid's body frame in it, by name.
        joints: Name in the specification of each scalar coordinate.
        usual: Mass [kg] and inertia [kg m^2] with which a helper link is compiled.
    """

    def __init__(
        self,
        mj: Any,
        spec: Any,
        bodies: Mapping[str, tuple[Any, Frame]],
        softness: Softness,
        step: float,
        usual: tuple[float, float],
    ) -> None:
        self.mj, self.spec, self.bodies, self.usual = mj, spec, bodies, usual
        self.how = {"solref": softness.solref(step), "solimp": softness.solimp}
        self.lengths: list[tuple[Any, float]] = []
        self.helpers: list[Helper] = []

    def close(self, mechanism: Mechanism) -> Closures:
        """Equalities of all loops and couplings."""
        for loop in mechanism.loops:
            self._loop(loop)
        for coupling in mechanism.couplings:
            tendon = self.spec.add_tendon(name=f"coupling of {coupling.joint}")
            tendon.wrap_joint(coupling.joint, 1.0)
            for other, ratio in coupling.of.items():
                tendon.wrap_joint(other, -ratio)
            self._keep(tendon, coupling.offset)
        return Closures(tuple(self.lengths), tuple(self.helpers))

    def _loop(self, loop: Loop) -> None:
        types = self.mj.mjtEq
        if loop.length is not None:
            tendon = self.spec.add_tendon(name=loop.name)
            tendon.wrap_site(self._site(loop, "a").name)
            tendon.wrap_site(self._site(loop, "b").name)
            self._keep(tendon, loop.length)
        elif loop.fix in (FIXED_BY["point"], FIXED_BY["revolute"]):
            heights = (0.0,) if loop.fix == FIXED_BY["point"] else (-_APART / 2, _APART / 2)
            for height in heights:
                at = height * _EYE[2]
                self._hold(types.mjEQ_CONNECT, self._site(loop, "a", at), self._site(loop, "b", at))
        elif loop.fix == DIRECTIONS:
            self._hold(types.mjEQ_WELD, self._site(loop, "a"), self._site(loop, "b"))
        else:
            self._helper(loop)

    def _site(self, loop: Loop, end: str, at: Float[Array, "3"] | None = None) -> Any:
        """A site at a point of frame a or b of a loop."""
        name, end_frame = (loop.body_a, loop.a) if end == "a" else (loop.body_b, loop.b)
        body, frame = self.bodies[name]
        place = frame @ end_frame
        p = place.p if at is None else place.R @ at + place.p
        count = len(list(self.spec.sites))
        return body.add_site(name=f"{loop.name}.{end}{count}", pos=p, quat=quaternion(self.mj, place.R))

    def _hold(self, kind: Any, first: Any, second: Any) -> None:
        site = self.mj.mjtObj.mjOBJ_SITE
        self.spec.add_equality(type=kind, objtype=site, name1=first.name, name2=second.name, **self.how)

    def _keep(self, tendon: Any, length: float) -> None:
        """Fix the length of a tendon [m or rad]."""
        kind, tendons = self.mj.mjtEq.mjEQ_TENDON, self.mj.mjtObj.mjOBJ_TENDON
        made = self.spec.add_equality(type=kind, objtype=tendons, name1=tendon.name, **self.how)
        made.data[:5] = 0.0
        self.lengths.append((tendon, length))

    def _helper(self, loop: Loop) -> None:
        """A link on a with the degrees of freedom of the loop joint, welded to b."""
        body, frame = self.bodies[loop.body_a]
        place = frame @ loop.a
        link = body.add_body(name=f"{loop.name}.link", pos=place.p, quat=quaternion(self.mj, place.R))
        mass, inertia = self.usual
        link.mass, link.inertia, link.explicitinertial = mass, np.full(3, inertia), True
        kinds = self.mj.mjtJoint

        def joint(kind: Any, axis: int) -> tuple[Any, int]:
            return link.add_joint(name=f"{loop.name}.{kind.name}{axis}", type=kind, axis=_EYE[axis]), axis

        slides = [joint(kinds.mjJNT_SLIDE, i) for i in range(3) if DIRECTIONS[i] not in loop.fix]
        free = [i for i in range(3) if DIRECTIONS[3 + i] not in loop.fix]
        turns = [joint(kinds.mjJNT_HINGE, i) for i in free] if len(free) < 3 else []
        ball = joint(kinds.mjJNT_BALL, 2)[0] if len(free) == 3 else None
        end = link.add_site(name=f"{loop.name}.end")
        b = self._site(loop, "b")
        self._hold(self.mj.mjtEq.mjEQ_WELD, end, b)
        self.helpers.append(Helper(link, (self._site(loop, "a"), b), tuple(slides), tuple(turns), ball))


def quaternion(mj: Any, R: Float[Array, "3 3"]) -> Float[Array, "4"]:
    """Unit quaternion (w first) of a rotation."""
    quat = np.zeros(4)
    mj.mju_mat2Quat(quat, np.ascontiguousarray(R).ravel())
    return quat


def place_helper(model: Any, data: Any, mj: Any, helper: Helper) -> None:
    """Set the joints of a helper link so that it coincides with frame b; the other joints are already set.

    Rotations: R_ab = R_i(alpha) R_j(beta), i before j.
    """
    a, b = (site.id for site in helper.sites)
    R_a, R_b = (data.site_xmat[i].reshape(3, 3) for i in (a, b))
    p = R_a.T @ (data.site_xpos[b] - data.site_xpos[a])
    R = R_a.T @ R_b
    for joint, axis in helper.slides:
        data.qpos[model.jnt_qposadr[joint.id]] = p[axis]
    if helper.ball is not None:
        start = model.jnt_qposadr[helper.ball.id]
        data.qpos[start : start + 4] = quaternion(mj, R)
    for (joint, _), angle in zip(helper.turns, _turn_angles(R, [i for _, i in helper.turns]), strict=True):
        data.qpos[model.jnt_qposadr[joint.id]] = angle


def _turn_angles(R: Float[Array, "3 3"], axes: list[int]) -> list[float]:
    """Angles [rad] about one or two axes, the second turning with the first."""
    if not axes:
        return []
    if len(axes) == 1:
        j, k = (axes[0] + 1) % 3, (axes[0] + 2) % 3
        return [float(np.arctan2(R[k, j], R[j, j]))]
    i, j = axes
    k = 3 - i - j
    sign = 1.0 if (j - i) % 3 == 1 else -1.0  # of i x j = k
    # R_i turns j to cos j + sign sin k; R_j turns i to cos i - sign sin k.
    alpha = np.arctan2(sign * R[k, j], R[j, j])
    beta = np.arctan2(sign * R[i, k], R[i, i])
    return [float(alpha), float(beta)]
