"""Friction beyond the columns of W: the Stribeck curve, and bristle dynamics (LuGre).

    F = g(s) sign(s) + viscous s,      g(s) = coulomb + (breakaway - coulomb) exp(-(|s| / speed)^exponent)
    LuGre:  dz = s - stiffness |s| z / g(s),      F = stiffness z + damping dz + viscous s

s is the velocity of a joint or motor. At constant speed LuGre gives the same curve. At a reversal the
bristles act as springs, so friction changes sign over a short distance instead of at once. There is no
backlash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import STRIBECK_SPEED, speed_map


@dataclass(frozen=True)
class FrictionLaw:
    """Friction of one joint or motor, in addition to its drive terms.

    Attributes:
        coulomb: At high speed, in [N m] or [N].
        breakaway: At rest, in [N m] or [N]; None: as `coulomb`.
        speed: At which the Stribeck part has decreased to 1/e, in [rad/s] or [m/s].
        exponent: Of this decrease, dimensionless.
        viscous: In [N m s/rad] or [N s/m].
        stiffness: Of the bristles, in [N m/rad] or [N/m]; None: no bristles, discontinuous friction.
        damping: Of the bristles, in [N m s/rad] or [N s/m].
    """

    coulomb: float = 0.0
    breakaway: float | None = None
    speed: float = STRIBECK_SPEED
    exponent: float = 2.0
    viscous: float = 0.0
    stiffness: float | None = None
    damping: float = 0.0

    def __post_init__(self) -> None:
        for name in ("coulomb", "viscous", "damping"):
            size = getattr(self, name)
            if not size >= 0.0:
                raise InputError(f"friction: {name} {size:g} is negative", remedy="give 0 or more")
        for name in ("speed", "exponent"):
            size = getattr(self, name)
            if not size > 0.0:
                raise InputError(f"friction: {name} {size:g} is not positive", remedy="give more than 0")
        if self.breakaway is not None and not self.breakaway >= self.coulomb:
            raise InputError(
                f"friction: breakaway {self.breakaway:g} is less than coulomb {self.coulomb:g}",
                remedy="breakaway friction must be at least the Coulomb friction",
            )
        if self.stiffness is None and self.damping:
            raise InputError(
                f"friction: damping {self.damping:g} is given without stiffness",
                remedy="also give `stiffness`, or use `viscous` for friction proportional to speed",
            )
        if self.stiffness is not None:
            if not self.stiffness > 0.0:
                raise InputError(f"friction: stiffness {self.stiffness:g} is not positive")
            if not max(self.coulomb, self.breakaway or 0.0) > 0.0:
                raise InputError("friction: stiffness needs coulomb or breakaway friction")

    @property
    def numbers(self) -> tuple[float, ...]:
        """In the form used by the kernels."""
        breakaway = self.coulomb if self.breakaway is None else self.breakaway
        shape = (self.coulomb, breakaway, self.speed, self.exponent, self.viscous)
        return (*shape, self.stiffness or 1.0, self.damping)


class ExtraFriction:
    """The friction laws of several owners, in arrays.

    Args:
        mechanism: Robot with these coordinates and motors.
        laws: Owner, or a glob of owners -> law.

    Attributes:
        owners: Names, those with bristles last.
        D: Their velocities are D dq, shape (o, v).
    """

    def __init__(self, mechanism: Mechanism, laws: Mapping[str, FrictionLaw]) -> None:
        chosen = _owners(mechanism, laws)
        self.owners = tuple(sorted(chosen, key=lambda name: chosen[name].stiffness is not None))
        ordered = [chosen[name] for name in self.owners]
        self.D = speed_map(mechanism, self.owners)
        self.bristles = np.array([law.stiffness is not None for law in ordered], dtype=bool)
        self.laws = np.array([law.numbers for law in ordered]).reshape(-1, 7)

    @property
    def largest(self) -> Float[Array, "o"]:
        """Largest discontinuous dry friction, in [N m] or [N]; zero with bristles."""
        return np.where(self.bristles, 0.0, self.laws[:, 1])

    def level(self, s: Float[Array, "*n o"]) -> Float[Array, "*n o"]:
        """g(s): friction of a steady motion, without sign, in [N m] or [N]."""
        from dynid.excitation.friction_kernels import levels

        return self._each(s, lambda rates, out: levels(self.laws, rates, out))

    def efforts(
        self, s: Float[Array, "*n o"], sign: Float[Array, "*n o"], z: Float[Array, "*n o"]
    ) -> Float[Array, "*n o"]:
        """Against the motion, in [N m] or [N].

        Args:
            s: Velocities of the owners, per s.
            sign: Of the velocities, -1 to 1; may be smoothed for laws without bristles.
            z: Deflection of the bristles, in [rad] or [m].
        """
        from dynid.excitation.friction_kernels import friction_efforts

        given = (np.atleast_2d(np.asarray(x, float)) for x in (sign, z))
        return self._each(
            s, lambda rates, out: friction_efforts(self.laws, self.bristles, rates, *given, out)
        )

    def bent(self, z: Float[Array, "*n o"], s: Float[Array, "*n o"], h: float) -> Float[Array, "*n o"]:
        """Deflection of the bristles a time h [s] later at velocities s: exact for constant s."""
        from dynid.excitation.friction_kernels import next_bends

        given = np.atleast_2d(np.asarray(z, float))
        return self._each(s, lambda rates, out: next_bends(self.laws, self.bristles, given, rates, h, out))

    def along(self, s: Float[Array, "n o"], h: float) -> Float[Array, "n o"]:
        """Efforts along a motion sampled every h [s] that starts with undeflected bristles."""
        from dynid.excitation.friction_kernels import bends_along

        z = self._each(s, lambda rates, out: bends_along(self.laws, self.bristles, rates, h, out))
        return self.efforts(s, np.sign(s), z)

    def _each(self, s: Float[Array, "*n o"], fill: Callable[[Array, Array], None]) -> Float[Array, "*n o"]:
        rates = np.ascontiguousarray(np.atleast_2d(s), dtype=float)
        out = np.empty_like(rates)
        fill(rates, out)
        return out.reshape(np.shape(s))


def _owners(mechanism: Mechanism, laws: Mapping[str, FrictionLaw]) -> dict[str, FrictionLaw]:
    motors = [actuator.name for actuator in mechanism.actuators]
    names = list(dict.fromkeys([*mechanism.coordinates, *motors]))
    chosen: dict[str, FrictionLaw] = {}
    for pattern, law in laws.items():
        matches = [name for name in names if fnmatchcase(name, pattern)]
        if not matches:
            raise InputError(
                f"friction: no joint or motor '{pattern}'" + nearest(pattern, names),
                remedy="name joints or motors, or a glob of them",
            )
        chosen |= dict.fromkeys(matches, law)
    return chosen
