"""Friction, offsets and extra terms as forces on the plant's coordinates.

    resist = Fv s + Fs step + Fv+ max(s, 0) + Fv- min(s, 0) + Fs+ (1 + step)/2 - Fs- (1 - step)/2 + Off
             + Fr step sqrt|s| + Fk step exp(-(s / vs)^2)

and what further friction laws add (`excitation.friction`), with the owner's velocity s = D dq and
step = tanh(s / width): sign(s) but for speeds below a few widths. A jump of friction makes no definite
motion between two steps; the width is the narrowest at which the friction's slope still moves the owner
more slowly than the integration steps.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.excitation.friction import ExtraFriction, FrictionLaw
from dynid.mechanism.friction import STRIBECK_SPEED, owners_of, speed_map
from dynid.mechanism.mechanism import Mechanism

_RATE = 0.5  # per step: how fast the slope of dry friction may slow its owner down; RK4 bears 2.7


class Drives:
    """Drive terms of all owners, further friction, and declared extra columns.

    Args:
        mechanism: Whose drive terms they are.
        truth: Standard parameters by name, SI; those not named are zero.
        laws: Owner or glob -> friction beyond the drive terms.

    Attributes:
        owners: Coordinates and motors that have drive terms, then those with further friction.
        D: Their velocities are D dq, shape (o, v), dq in dynid's order.
        dry: Size of dry friction, mean of both directions, shape (o,), in [N m] or [N].
        width: Speed scale of dry friction, shape (o,), per s; set by `set_width`.
    """

    def __init__(
        self, mechanism: Mechanism, truth: Mapping[str, float], laws: Mapping[str, FrictionLaw] | None = None
    ) -> None:
        coordinates = mechanism.coordinates
        own = tuple(mechanism.drive)
        self._laws = ExtraFriction(mechanism, laws or {})
        self.owners = own + self._laws.owners
        self.D: Float[Array, "o v"] = np.concatenate([speed_map(mechanism, own), self._laws.D])

        def of(symbol: str) -> Float[Array, "o"]:
            return np.array([truth.get(f"{symbol}_{name}", 0.0) for name in own])

        self._viscous = of("Fv") + 0.5 * (of("Fv+") + of("Fv-"))
        self._uneven = 0.5 * (of("Fv+") - of("Fv-"))
        self._dry = of("Fs") + 0.5 * (of("Fs+") + of("Fs-"))
        self.dry = np.concatenate([self._dry, np.zeros(len(self._laws.owners))])
        self._root, self._stribeck = of("Fr"), of("Fk")
        self._speed = np.array([mechanism.stribeck.get(name, STRIBECK_SPEED) for name in own])
        self._constant = of("Off") + 0.5 * (of("Fs+") - of("Fs-"))
        self.width = np.ones(len(self.owners))
        self._terms = [
            (coordinates.index(one.joint), truth.get(one.name, 0.0), one.expression)
            for one in mechanism.terms
        ]
        self._places = tuple(
            {name: i for i, name in enumerate(names)} for names in (mechanism.positions, coordinates)
        )
        if owners_of(mechanism, "Fl"):
            raise InputError(
                "friction that grows with the load (Fl) has no force before the efforts are known, which the"
                " plant cannot apply",
                file=mechanism.file,
                remedy="simulate without Fl, or with `simulate_log`",
            )

    def set_width(self, inertia: Float[Array, "o"], step: float) -> None:
        """Choose the widths from the inertia that each owner feels, SI, and the step [s]."""
        jump = np.concatenate([np.abs(self._dry + self._stribeck), self._laws.largest])
        self.width = np.maximum(jump * step / (_RATE * inertia), 1e-12)

    @property
    def at_rest(self) -> Float[Array, "o"]:
        """Bend of the bristles of a robot that has not moved yet."""
        return np.zeros(len(self._laws.owners))

    @property
    def bends(self) -> bool:
        """Whether any friction has bristles, and so a state."""
        return bool(self._laws.bristles.any())

    def bent(self, z: Float[Array, "e"], s: Float[Array, "o"], h: float) -> Float[Array, "e"]:
        """Bend of the bristles a time h [s] later at owners' velocities s."""
        return self._laws.bent(z, s[len(self._dry) :], h)

    def resist(self, s: Float[Array, "o"], z: Float[Array, "e"]) -> Float[Array, "o"]:
        """Efforts against the motion at owners' velocities and bends of the bristles, in [N m] or [N]."""
        step = np.tanh(s / self.width)
        m = len(self._dry)
        own, size = s[:m], np.abs(s[:m])
        dry = self._dry + self._root * np.sqrt(size) + self._stribeck * np.exp(-((own / self._speed) ** 2))
        terms = self._constant + self._viscous * own + self._uneven * size + dry * step[:m]
        return np.concatenate([terms, self._laws.efforts(s[m:], step[m:], z)])

    @property
    def has_terms(self) -> bool:
        """Whether there are declared extra columns."""
        return bool(self._terms)

    def terms(self, q: Float[Array, "q"], dq: Float[Array, "v"]) -> Float[Array, "v"]:
        """Efforts of the extra columns against each coordinate."""
        at_q, at_v = self._places
        values = {"q": q, "dq": dq}

        # A lambda, since a checked function would be compiled anew at every stage of the tests.
        signal = lambda kind, name: values[kind][(at_q if kind == "q" else at_v)[name]]  # noqa: E731
        out = np.zeros(len(dq))
        for row, value, expression in self._terms:
            out[row] += value * float(expression.evaluate({}, signal))
        return out
