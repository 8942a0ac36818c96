"""Friction beyond the columns of W: the Stribeck curve, and bristles that bend before they slip (LuGre).

    F = g(s) sign(s) + viscous s,      g(s) = coulomb + (breakaway - coulomb) exp(-(|s| / speed)^exponent)
    LuGre:  dz = s - stiffness |s| z / g(s),      F = stiffness z + damping dz + viscous s

s is the velocity of a joint or motor. At constant speed LuGre gives the same curve; around a reversal the
bristles act as springs, so that friction turns over a short way instead of at once. There is no backlash.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.errors import InputError, nearest
from dynid.mechanism.friction import STRIBECK_SPEED, speed_map
from dynid.mechanism.mechanism import Mechanism


@dataclass(frozen=True)
class FrictionLaw:
    """Friction of one joint or motor, on top of what its drive terms have.

    Attributes:
        coulomb: At high speed, in [N m] or [N].
        breakaway: At rest, in [N m] or [N]; None: as `coulomb`.
        speed: At which the Stribeck part has fallen to 1/e, in [rad/s] or [m/s].
        exponent: Of its fall, dimensionless.
        viscous: In [N m s/rad] or [N s/m].
        stiffness: Of the bristles, in [N m/rad] or [N/m]; None: no bristles, friction jumps.
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
                remedy="friction at rest is the larger one",
            )
        if self.stiffness is not None:
            if not self.stiffness > 0.0:
                raise InputError(f"friction: stiffness {self.stiffness:g} is not positive")
            if not max(self.coulomb, self.breakaway or 0.0) > 0.0:
                raise InputError("friction: bristles need coulomb or breakaway friction to slip")


class ExtraFriction:
    """The laws of several owners, in arrays.

    Args:
        mechanism: Whose coordinates and motors rub.
        laws: Owner, or a glob of owners -> law.

    Attributes:
        owners: Names, those with bristles last.
        D: Their velocities are D dq, shape (o, v).
    """

    def __init__(self, mechanism: Mechanism, laws: Mapping[str, FrictionLaw]) -> None:
        chosen = _owners(mechanism, laws)
        self.owners = tuple(sorted(chosen, key=lambda name: chosen[name].stiffness is not None))
        own = [chosen[name] for name in self.owners]
        self.D = speed_map(mechanism, self.owners)
        self._coulomb = np.array([law.coulomb for law in own])
        self._breakaway = np.array([law.coulomb if law.breakaway is None else law.breakaway for law in own])
        self._speed = np.array([law.speed for law in own])
        self._exponent = np.array([law.exponent for law in own])
        self._viscous = np.array([law.viscous for law in own])
        self.bristles = np.array([law.stiffness is not None for law in own], dtype=bool)
        self._stiffness = np.array([law.stiffness or 1.0 for law in own])
        self._damping = np.array([law.damping for law in own])

    @property
    def largest(self) -> Float[Array, "o"]:
        """Of all dry friction that jumps, in [N m] or [N]; none where bristles bend."""
        return np.where(self.bristles, 0.0, self._breakaway)

    def level(self, s: Float[Array, "*n o"]) -> Float[Array, "*n o"]:
        """g(s): friction of a steady motion, without sign, in [N m] or [N]."""
        fall = np.exp(-((np.abs(s) / self._speed) ** self._exponent))
        return np.asarray(self._coulomb + (self._breakaway - self._coulomb) * fall)

    def efforts(
        self, s: Float[Array, "*n o"], sign: Float[Array, "*n o"], z: Float[Array, "*n o"]
    ) -> Float[Array, "*n o"]:
        """Against the motion, in [N m] or [N].

        Args:
            s: Velocities of the owners, per s.
            sign: Of the velocities, -1 to 1: where there are no bristles it may be rounded off.
            z: Bend of the bristles, in [rad] or [m].
        """
        g = self.level(s)
        dz = s - self._stiffness * np.abs(s) / np.maximum(g, 1e-300) * z
        bent = self._stiffness * z + self._damping * dz
        return np.asarray(np.where(self.bristles, bent, g * sign) + self._viscous * s)

    def bent(self, z: Float[Array, "*n o"], s: Float[Array, "*n o"], h: float) -> Float[Array, "*n o"]:
        """Bend of the bristles a time h [s] later at velocities s: exact for constant s."""
        keep, gain = self._decay(s, h)
        return np.asarray(keep * z + gain)

    def along(self, s: Float[Array, "n o"], h: float) -> Float[Array, "n o"]:
        """Efforts along a motion sampled every h [s] that begins with bristles at rest."""
        return self.efforts(s, np.sign(s), self._bends(s, h))

    def _bends(self, s: Float[Array, "n o"], h: float) -> Float[Array, "n o"]:
        """z_(k+1) = keep_k z_k + gain_k: one bidiagonal system per owner."""
        from scipy.linalg import solve_banded

        z = np.zeros_like(s)
        keep, gain = self._decay(0.5 * (s[1:] + s[:-1]), h)
        for k in np.flatnonzero(self.bristles).tolist():
            band = np.ones((2, len(s)))
            band[1, :-1] = -keep[:, k]
            z[:, k] = solve_banded((1, 0), band, np.concatenate([[0.0], gain[:, k]]))
        return z

    def _decay(self, s: Float[Array, "*n o"], h: float) -> tuple[Array, Array]:
        rate = self._stiffness * np.abs(s) / np.maximum(self.level(s), 1e-300)
        part = -np.expm1(-rate * h)
        gain = np.where(rate * h > 1e-12, s * part / np.maximum(rate, 1e-300), s * h)
        return 1.0 - part, np.where(self.bristles, gain, 0.0)


def _owners(mechanism: Mechanism, laws: Mapping[str, FrictionLaw]) -> dict[str, FrictionLaw]:
    motors = [actuator.name for actuator in mechanism.actuators]
    names = list(dict.fromkeys([*mechanism.coordinates, *motors]))
    chosen: dict[str, FrictionLaw] = {}
    for pattern, law in laws.items():
        found = [name for name in names if fnmatchcase(name, pattern)]
        if not found:
            raise InputError(
                f"friction: no joint or motor '{pattern}'" + nearest(pattern, names),
                remedy="name joints or motors, or a glob of them",
            )
        chosen |= dict.fromkeys(found, law)
    return chosen
