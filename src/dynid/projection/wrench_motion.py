"""Motion of every body of a table: from its columns; missing quantities from joint angles or poses.

omega = 2 conj(q) dq/dt        alpha = d omega / dt (body axes)        a = d^2 p / dt^2

Positions of joints on the bodies they connect: the points at which wrenches of a table act.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.kinematics.coordinates import coordinate_map
from dynid.kinematics.tree import BodyMotion, body_motion, quaternion_rates, tree_of
from dynid.mechanism.frame import rotation_of
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.body_table import QUANTITIES, SPOKEN, BodyTable
from dynid.motion.differentiate import POINTS, Derivatives, derivatives
from dynid.motion.settings import BODY, COM, PROPER, WORLD, WrenchSettings

_COARSE = 0.01  # difference from a shorter formula above which a derivative gives a warning


@dataclass(frozen=True, eq=False)
class TableMotion:
    """Motion of the bodies at the instants of a table.

    Attributes:
        R: Body axes in the world, shape (n, b, 3, 3), dimensionless.
        omega, alpha: Angular velocity and acceleration, body axes, shape (n, b, 3), in [rad/s], [rad/s^2].
        a: Acceleration of the body's origin, world axes, gravity not subtracted, shape (n, b, 3), in [m/s^2].
        p: The body's origin in the world, shape (n, b, 3), in [m]; None where neither columns nor joint
        angles give it.
        fine: Where all of it is known, shape (n, b).
        choices: Where each quantity is from, in words.
    """

    R: Float[Array, "n b 3 3"]
    omega: Float[Array, "n b 3"]
    alpha: Float[Array, "n b 3"]
    a: Float[Array, "n b 3"]
    p: Float[Array, "n b 3"] | None
    fine: Bool[Array, "n b"]
    choices: dict[str, str] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()


def table_motion(mechanism: Mechanism, table: BodyTable, settings: WrenchSettings) -> TableMotion:
    """Motion of every body: measured where the table has columns, else derived; the choice is reported."""
    return _Motions(mechanism, table, settings).solved()


class _Motions:
    """Finds each quantity in turn; one instance per table."""

    def __init__(self, mechanism: Mechanism, table: BodyTable, settings: WrenchSettings) -> None:
        self.mechanism, self.table, self.settings = mechanism, table, settings
        self.fine = table.present.copy()
        self.choices: dict[str, str] = {}
        self.notices: list[Notice] = []
        self.joints = self._by_joints()

    def solved(self) -> TableMotion:
        """All quantities; refused where one can neither be read nor derived."""
        given = self.table.signals
        R = self._attitudes()
        omega = self._rates("omega", R, self._from_attitudes(1))
        alpha = self._rates("alpha", R, self._alpha_from(omega))
        p = given.get("position")
        if p is None and self.joints is not None:
            p = self.joints.p
        a = self._accelerations(R, omega, alpha)
        for x in (omega, alpha, a):
            self.fine &= np.all(np.isfinite(x), axis=2)
        return TableMotion(R, omega, alpha, a, p, self.fine, self.choices, tuple(self.notices))

    def _by_joints(self) -> BodyMotion | None:
        """Body motion from the joint coordinates of the table, where it has all of them."""
        joints, robot = self.table.joints, self.mechanism
        needed = {"quaternion", "omega", "alpha"} - set(self.table.signals)
        lacking = needed or not {"acceleration", "centroid"} & set(self.table.signals)
        if "q" not in joints or not lacking or robot.is_closed:
            return None
        coordinates = coordinate_map(robot)
        q, dq, ddq = joints["q"], joints.get("dq"), joints.get("ddq")
        inner = np.ones(len(self.table.t), dtype=bool)
        if dq is None:
            dq, ddq, inner = self._differentiated(q, "joint angles", 2)
        elif ddq is None:
            ddq, _, inner = self._differentiated(dq, "joint velocities", 1)
        self.fine &= inner[:, None]
        return body_motion(tree_of(replace(robot, payloads={})), *coordinates.tree_states(q, dq, ddq))

    def _attitudes(self) -> Float[Array, "n b 3 3"]:
        if "quaternion" in self.table.signals:
            self.choices["attitudes"] = "quaternions of the table"
            q = np.where(
                self.table.present[..., None], self.table.signals["quaternion"], [1.0, 0.0, 0.0, 0.0]
            )
            return rotation_of(q)
        if self.joints is None:
            raise self._missing("quaternion")
        self.choices["attitudes"] = "kinematics of the robot at the joint angles of the table"
        return self.joints.R

    def _rates(
        self, quantity: str, R: Float[Array, "n b 3 3"], derived: Callable[[], Float[Array, "n b 3"] | None]
    ) -> Float[Array, "n b 3"]:
        """Angular velocity or acceleration in body axes."""
        given = self.table.signals.get(quantity)
        spoken = SPOKEN[quantity]
        if given is not None:
            self.choices[spoken] = "columns " + " ".join(QUANTITIES[quantity])
            turned = self.settings.axes_of("rates") == BODY
            return given if turned else np.asarray(np.einsum("nbji,nbj->nbi", R, given))
        if self.joints is not None:
            self.choices[spoken] = "kinematics of the robot at the joint coordinates of the table"
            return (self.joints.V if quantity == "omega" else self.joints.dV)[..., 3:]
        computed = derived()
        if computed is None:
            raise self._missing(quantity)
        return computed

    def _from_attitudes(self, order: int) -> Callable[[], Float[Array, "n b 3"] | None]:
        """Angular velocity (1) or acceleration (2) from the quaternions of neighbouring instants."""

        def derived() -> Float[Array, "n b 3"] | None:
            q = self.table.signals.get("quaternion")
            if q is None:
                return None
            spoken = SPOKEN["omega" if order == 1 else "alpha"]
            return self._along(
                q, spoken, "quaternions", order, lambda x, d: quaternion_rates(x, d.first, d.second)[order]
            )

        return derived

    def _alpha_from(self, omega: Float[Array, "n b 3"]) -> Callable[[], Float[Array, "n b 3"] | None]:
        """Angular acceleration from angular velocities where these are measured, else from attitudes."""
        if "omega" not in self.table.signals:
            return self._from_attitudes(2)
        return lambda: self._along(omega, SPOKEN["alpha"], "angular velocities", 1, lambda x, d: d.first)

    def _accelerations(
        self, R: Float[Array, "n b 3 3"], omega: Float[Array, "n b 3"], alpha: Float[Array, "n b 3"]
    ) -> Float[Array, "n b 3"]:
        """Acceleration of the body's origin, world axes, without gravity."""
        spoken, gravity = "accelerations", self.mechanism.gravity
        for quantity in ("acceleration", "centroid"):
            value = self.table.signals.get(quantity)
            if value is None:
                continue
            self.choices[spoken] = "columns " + " ".join(QUANTITIES[quantity])
            if self.settings.axes_of("acceleration") == BODY:
                value = np.einsum("nbij,nbj->nbi", R, value)
            if self.settings.acceleration == PROPER:
                value = value + gravity
            if quantity == "acceleration":
                return value
            c = centres_of_mass(self.mechanism, self.table, self.settings, "accelerations")
            away = np.cross(alpha, c) + np.cross(omega, np.cross(omega, c))
            return np.asarray(value - np.einsum("nbij,nbj->nbi", R, away))
        if self.joints is not None:
            self.choices[spoken] = "kinematics of the robot at the joint coordinates of the table"
            return np.asarray(np.einsum("nbij,nbj->nbi", self.joints.R, self.joints.dV[..., :3]) + gravity)
        if "position" not in self.table.signals:
            raise self._missing("acceleration")
        position = self.table.signals["position"]
        return self._along(position, SPOKEN["acceleration"], "positions", 2, lambda x, d: d.second)

    def _along(
        self,
        x: Float[Array, "n b c"],
        what: str,
        source: str,
        order: int,
        reduce: Callable[[Float[Array, "k c"], Derivatives], Float[Array, "k 3"]],
    ) -> Float[Array, "n b 3"]:
        """A quantity derived along the instants of each body and run; NaN near the ends of a run.

        Args:
            order: Of the derivative that decides how exact it is.
        """
        result = np.full((*x.shape[:2], 3), np.nan)
        rough = []
        for body in np.flatnonzero(self.table.present.any(axis=0)):
            for at in self._runs(self.table.present[:, body]):
                slopes = self._derivatives(x[:, body], at, what, source)
                value = reduce(x[at.ravel(), body], slopes)
                result[at.ravel()[slopes.inner], body] = value[slopes.inner]
                rough.append(slopes.roughness(order))
        self._report(what, source, rough)
        return result

    def _differentiated(
        self, x: Float[Array, "n m"], source: str, order: int
    ) -> tuple[Float[Array, "n m"], Float[Array, "n m"], Bool[Array, "n"]]:
        """First and second rates of joint coordinates, and where they have neighbours on both sides."""
        first, second, inner, rough = np.zeros_like(x), np.zeros_like(x), np.zeros(len(x), dtype=bool), []
        for at in self._runs(np.ones(len(x), dtype=bool)):
            slopes = self._derivatives(x, at, "joint rates", source)
            first[at.ravel()], second[at.ravel()], inner[at.ravel()] = (
                slopes.first,
                slopes.second,
                slopes.inner,
            )
            rough.append(slopes.roughness(order))
        self._report("joint rates", source, rough)
        return first, second, inner

    def _runs(self, present: Bool[Array, "n"]) -> list[Int[Array, "k r"]]:
        """Instants of the runs at which something is present; runs of the same times side by side."""
        alike: dict[bytes, list[Array]] = {}
        order = np.argsort(self.table.runs, kind="stable")
        order = order[present[order]]
        cuts = np.flatnonzero(np.diff(self.table.runs[order])) + 1
        for at in np.split(order, cuts):
            alike.setdefault(self.table.t[at].tobytes(), []).append(at)
        return [np.stack(runs, axis=1) for runs in alike.values()]

    def _derivatives(
        self, x: Float[Array, "n c"], at: Int[Array, "k r"], what: str, source: str
    ) -> Derivatives:
        """Derivatives of several runs, in the order of `at.ravel()`."""
        k, r = at.shape
        slopes = derivatives(self.table.t[at[:, 0]], x[at.ravel()].reshape(k, -1))
        if slopes is None:
            raise InputError(
                f"the {what} must be derived from {source}, which needs {POINTS} time instants of one run;"
                f" there are {k}",
                file=self.table.file,
                remedy=f"add columns of the {what}: then two or three time instants are enough",
            )
        first, second = (rate.reshape(k * r, -1) for rate in (slopes.first, slopes.second))
        return replace(slopes, first=first, second=second, inner=np.repeat(slopes.inner, r))

    def _report(self, what: str, source: str, rough: Sequence[tuple[float, float]]) -> None:
        """Report the source of a quantity, and warn where the instants are too far apart for it."""
        self.choices[what] = f"differentiated from {source} ({POINTS} neighbouring instants)"
        error, size = np.sqrt(np.sum(np.square(rough), axis=0))
        if error > _COARSE * size:
            percent = 100 * error / size
            self.notices.append(notice("derived-coarse", what=what, source=source, percent=percent))

    def _missing(self, quantity: str) -> InputError:
        spoken, columns = SPOKEN[quantity], " ".join(QUANTITIES[quantity])
        return InputError(
            f"the table has no {spoken} ({columns}) and nothing to derive it from",
            file=self.table.file,
            place="header",
            remedy=f"add {columns}, or joint angles q_1.. (of an open robot), or poses x y z qw qx qy qz at"
            f" {POINTS} time instants or more",
        )


_SLIDING = (JointKind.PRISMATIC, JointKind.FREE)


@dataclass(frozen=True, eq=False)
class JointPoints:
    """Origin of every body's inner joint frame, in the frames of the bodies on its two sides.

    Attributes:
        inner: In the body's own frame, shape (b, 3), in [m].
        outer: In the frame of the parent body, one array per body, shape (n, 3), in [m].
    """

    inner: Float[Array, "b 3"]
    outer: tuple[Float[Array, "n 3"], ...]


def joint_points(
    mechanism: Mechanism, table: BodyTable, moved: TableMotion, balanced: Sequence[str]
) -> JointPoints:
    """The points for all bodies of a table.

    The joint frame moves with the child: the origin of a prismatic joint moves on the parent, and only the
    positions of both bodies determine how far.

    Args:
        balanced: Bodies whose balance is used: only wrenches on these must be known.
    """
    n = len(table.t)
    joints = [mechanism.joint_of_body[name] for name in table.bodies]
    inner = np.array([joint.body.inverse().p for joint in joints])
    outer = []
    for i, joint in enumerate(joints):
        if joint.kind in _SLIDING and joint.parent in balanced:
            outer.append(_travelled(joint, i, inner[i], table, moved))
        else:
            outer.append(np.broadcast_to(joint.placement.p, (n, 3)))
    return JointPoints(inner, tuple(outer))


def _travelled(
    joint: Joint, child: int, inner: Float[Array, "3"], table: BodyTable, moved: TableMotion
) -> Float[Array, "n 3"]:
    """Origin of a prismatic joint's frame in the parent's frame; NaN where a position is unknown."""
    parent = table.bodies.index(joint.parent)
    if moved.p is None:
        raise InputError(
            f"joint '{joint.name}' is prismatic: without positions the point where its wrench acts on"
            f" '{joint.parent}' is unknown",
            file=table.file,
            place="header",
            remedy="add columns x y z of the bodies' origins, or joint coordinates q_1..; or exclude"
            f" '{joint.parent}': wrench: {{bodies: [...]}}",
        )
    away = moved.p[:, child] + moved.R[:, child] @ inner - moved.p[:, parent]
    return np.asarray(np.einsum("nji,nj->ni", moved.R[:, parent], away))


def centres_of_mass(
    mechanism: Mechanism, table: BodyTable, settings: WrenchSettings, what: str
) -> Float[Array, "b 3"]:
    """Centre of mass of each body in its frame, by the robot's description; in [m].

    Args:
        what: The quantity given at the centre of mass, for the message where that is not known.
    """
    centres = np.zeros((len(table.bodies), 3))
    if settings.parameters == "principal":
        return centres
    used = np.any(table.present, axis=0).tolist()
    for i, body in enumerate(mechanism.bodies.values()):
        values = {**body.prior, **body.known}
        if values.get("M"):
            centres[i] = [values.get(symbol, 0.0) / values["M"] for symbol in ("MX", "MY", "MZ")]
        elif used[i] and body.parameters:
            raise InputError(
                f"{what} of the centre of mass of '{body.name}' are given, but not its position",
                file=mechanism.file,
                place=f"bodies.{body.name}",
                remedy="give them at the body's origin, its prior M and com in the robot file, or"
                " wrench: {parameters: principal}",
            )
    return centres


def levers(
    mechanism: Mechanism,
    table: BodyTable,
    moved: TableMotion,
    inner: Float[Array, "b 3"],
    settings: WrenchSettings,
) -> Float[Array, "n b 3"]:
    """From each body's inner joint to the point that the table's moments are about, world axes, in [m].

    M_joint = M + lever x F.
    """
    if settings.at == WORLD:
        if moved.p is None:
            raise InputError(
                "moments about the world's origin are given, but no positions of the bodies",
                file=table.file,
                place="header",
                remedy="add columns x y z of the bodies' origins, or joint coordinates q_1..",
            )
        return np.asarray(-moved.p - (moved.R @ inner[..., None])[..., 0])
    point = inner
    if settings.at == BODY:
        point = np.zeros_like(inner)
    elif settings.at == COM:
        point = centres_of_mass(mechanism, table, settings, "moments")
    return np.asarray(moved.R @ (point - inner)[..., None])[..., 0]
