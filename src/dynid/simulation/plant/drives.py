"""Friction, offsets and extra terms as forces on the plant's coordinates.

The columns are those of the table of drive terms, plus additional friction laws (`excitation.friction`). The
owner's velocity is s = D dq. dynid's own plant lets owners stick and slip (`stick_kernels`). MuJoCo's plant
and controllers smooth its sign to tanh(s / width), with the smallest width whose friction slope is still
resolved by the integration steps. The load depends in turn on the friction: see `drive_kernels`.

A robot with its parameters, in the form read by the plant's kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.dynamics.forward import Masses, masses_of
from dynid.excitation.friction import ExtraFriction, FrictionLaw
from dynid.mechanism.drive_terms import DRIVE_TERMS, DriveTerm
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import STRIBECK_SPEED, load_map, source_index, speed_map
from dynid.simulation.plant.layout import Friction, Model

_SLOW = 1e-12  # [rad/s] or [m/s]: next to zero
_RATE = 0.5  # per step: largest decay rate from the slope of dry friction; RK4 is stable up to 2.7


class Drives:
    """Drive terms of all owners, and additional friction.

    Args:
        mechanism: Whose drive terms they are.
        truth: Standard parameters by name, SI; those not named are zero.
        laws: Owner or glob -> friction beyond the drive terms.

    Attributes:
        owners: Coordinates and motors that have drive terms, then those with additional friction.
        D: Their velocities are D dq, shape (o, v), dq in dynid's order.
        E: Loads of the owners of drive terms are E tau, shape (m, a).
        share: Fl of the owners of drive terms, shape (m,), dimensionless.
        dry: Size of dry friction, mean of both directions, shape (o,), in [N m] or [N].
        width: Speed scale of smoothed dry friction, shape (o,), per s; set by `set_width`.
    """

    def __init__(
        self, mechanism: Mechanism, truth: Mapping[str, float], laws: Mapping[str, FrictionLaw] | None = None
    ) -> None:
        driven = tuple(mechanism.drive)
        self._laws = ExtraFriction(mechanism, laws or {})
        self.owners = driven + self._laws.owners
        self.D: Float[Array, "o v"] = np.concatenate([speed_map(mechanism, driven), self._laws.D])
        places = [source_index(mechanism, name) for name in driven]
        self.E = load_map(mechanism)[places].reshape(len(driven), len(mechanism.actuators))

        values = np.array([[truth.get(f"{symbol}_{name}", 0.0) for symbol in DRIVE_TERMS] for name in driven])
        values = values.reshape(len(driven), len(DRIVE_TERMS))
        terms = tuple(DRIVE_TERMS.values())
        self.share = values[:, [term.loaded for term in terms]].sum(axis=1)
        self._terms = np.where([term.inertia or term.loaded for term in terms], 0.0, values)
        self._speeds = np.array([mechanism.stribeck.get(name, STRIBECK_SPEED) for name in driven])
        self._jump = self._terms @ [_jump(term) for term in terms]
        dry = self._terms @ [0.0 if term.searched else _jump(term) for term in terms]
        self.dry = np.concatenate([dry, np.zeros(len(self._laws.owners))])
        self.width = np.ones(len(self.owners))
        for name, share in zip(driven, self.share.tolist(), strict=True):
            if not abs(share) < 1.0:
                raise InputError(
                    f"load friction Fl_{name} = {share:g}: a joint with a value of 1 or more is self-locking",
                    file=mechanism.file,
                    remedy="give a share of the load below 1, usually 0.01 to 0.2",
                )

    @property
    def tables(self) -> Friction:
        """In the form read by `drive_kernels`."""
        laws = self._laws
        breakaway = np.concatenate([self._jump, laws.largest])
        jumps = breakaway > 0.0
        jumps[: len(self.share)] |= self.share > 0.0
        tables = (self._terms, self.share, self._speeds, laws.laws, laws.bristles)
        return Friction(self.D, self.width, breakaway, jumps, *tables)

    @property
    def loads(self) -> Float[Array, "m a"] | None:
        """Rows E of the loads E tau; None without load-dependent friction."""
        return np.ascontiguousarray(self.E) if self.loaded else None

    def set_width(
        self, inertia: Float[Array, "o"], step: float, efforts: Float[Array, "a"] | None = None
    ) -> None:
        """Choose the widths.

        Args:
            inertia: Effective inertia of each owner, shape (o,), SI.
            step: Of the integration, in [s].
            efforts: Largest of the motors, shape (a,), in [N m] or [N]: load friction is a share of them.
        """
        jump = np.abs(self._jump)
        if efforts is not None:
            jump = jump + np.abs(self.share) * (np.abs(self.E) @ efforts)
        jumps = np.concatenate([jump, self._laws.largest])
        self.width = np.maximum(jumps * step / (_RATE * inertia), 1e-12)

    @property
    def at_rest(self) -> Float[Array, "e"]:
        """Bristle deflection of a robot that has not moved yet."""
        return np.zeros(len(self._laws.owners))

    @property
    def bends(self) -> bool:
        """Whether any friction law has bristles, and so a state."""
        return bool(self._laws.bristles.any())

    @property
    def loaded(self) -> bool:
        """Whether any friction depends on the load."""
        return bool(self.share.any())

    def bent(self, z: Float[Array, "e"], s: Float[Array, "o"], h: float) -> Float[Array, "e"]:
        """Bristle deflection a time h [s] later at owners' velocities s."""
        return self._laws.bent(z, s[len(self._terms) :], h)

    def smooth_sign(self, s: Float[Array, "o"]) -> Float[Array, "o"]:
        """Signs of the owners' velocities, continuous within a few widths of zero."""
        return np.tanh(s / self.width)

    def resist(self, s: Float[Array, "o"], z: Float[Array, "e"]) -> Float[Array, "o"]:
        """Smoothed efforts against the motion at owners' velocities and deflections, no load friction, SI."""
        from dynid.simulation.plant.drive_kernels import resisting

        out = np.empty(len(s))
        resisting(self.tables, np.ascontiguousarray(s), self.smooth_sign(s), z, out)
        return out


def _jump(term: DriveTerm) -> float:
    """Half of the step of its column where the speed changes sign."""
    v = np.array([-_SLOW, _SLOW])
    down, up = term.column(v, np.zeros(2), np.ones(2), 1.0).tolist() if term.dry else (0.0, 0.0)
    return 0.5 * (up - down)


# Instructions of `term_kernels`, in the order of their codes.
_CODES = ("number", "q", "dq", "ddq", "neg", "+", "-", "*", "/", "^")
_FUNCTIONS = ("sin", "cos", "tan", "atan2", "sqrt", "exp", "abs", "sign")


@dataclass(frozen=True, eq=False)
class BodyModel:
    """Bodies, rotors, declared columns and friction of a robot with given parameters.

    Attributes:
        masses: Bodies and rotors.
        terms: Declared columns, see `term_kernels`; None without any.
        drives: Friction.
    """

    masses: Masses
    terms: tuple[Array, ...] | None
    drives: Drives

    @property
    def tables(self) -> Model:
        """Model of a controller, in the form read by `control_kernels`."""
        return Model(self.masses, self.terms, self.drives.tables)


def body_model(
    mechanism: Mechanism, values: Mapping[str, float], mounted: tuple[str, ...], drives: Drives
) -> BodyModel:
    """The model of a robot.

    Args:
        mechanism: The robot.
        values: Standard parameters by name, SI; those not named are zero.
        mounted: Payloads on the robot.
        drives: Its friction.
    """
    masses = masses_of(mechanism, values, mounted)
    return BodyModel(masses, term_tables(mechanism, values), drives)


def term_tables(mechanism: Mechanism, values: Mapping[str, float]) -> tuple[Array, ...] | None:
    """Declared extra columns, see `term_kernels`; None without any."""
    if not mechanism.terms:
        return None
    codes = {name: i for i, name in enumerate((*_CODES, *_FUNCTIONS))}
    places = {"q": mechanism.positions, "dq": mechanism.coordinates, "ddq": mechanism.coordinates}
    first, code, argument = [0], [], []
    for term in mechanism.terms:
        if term.expression.friction:
            raise InputError(
                f"'{term.name}' is friction of another package, which forward simulation cannot compute",
                remedy="use engine `inverse`",
            )
        for kind, operand in term.expression.program:
            if kind == "signal":
                code.append(codes[operand[0]])
                argument.append(float(places[operand[0]].index(operand[1])))
            else:
                code.append(codes["number" if kind == "number" else operand])
                argument.append(float(operand) if kind == "number" else 0.0)
        first.append(len(code))
    reads = [any(kind == "dq" for kind, _ in term.expression.signals) for term in mechanism.terms]
    rows = [mechanism.coordinates.index(term.joint) for term in mechanism.terms]
    return (
        np.array(first, dtype=np.int64),
        np.array(code, dtype=np.int64),
        np.array(argument, dtype=float),
        np.array(rows, dtype=np.int64),
        np.array([values.get(term.name, 0.0) for term in mechanism.terms], dtype=float),
        np.array(reads, dtype=bool),
    )


def effective_inertia(mobility: Float[Array, "w w"], rows: Float[Array, "o w"]) -> Float[Array, "o"]:
    """Inertia that the velocities `rows` dq have at the start, the others being free, SI.

    Args:
        mobility: Accelerations per unit of force with the loops closed, shape (w, w).
    """
    mobile = np.einsum("ov,vw,ow->o", rows, mobility, rows)
    return np.asarray(1.0 / np.maximum(mobile, 1e-12 * np.abs(mobility).max()))
