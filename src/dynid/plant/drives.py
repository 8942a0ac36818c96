"""Friction, offsets and extra terms as forces on the plant's coordinates.

    resist = Fv s + Fs step + Fv+ max(s, 0) + Fv- min(s, 0) + Fs+ (1 + step)/2 - Fs- (1 - step)/2 + Off
             + Fr step sqrt|s| + Fk step exp(-(s / vs)^2)

with the owner's velocity s = D dq and step = tanh(s / width): sign(s) but for speeds below a few
widths. A jump of friction makes no definite motion between two steps; the width is the narrowest
at which the friction's slope still moves the owner more slowly than the integration steps.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.mechanism.friction import STRIBECK_SPEED, owners_of
from dynid.mechanism.mechanism import Mechanism

_RATE = 0.5  # per step: how fast the slope of dry friction may slow its owner down; RK4 bears 2.7


class Drives:
    """Drive terms of all owners, and declared extra columns.

    Attributes:
        owners: Coordinates and motors that have drive terms.
        D: Their velocities are D dq, shape (o, v), dq in dynid's order.
        dry: Size of dry friction, mean of both directions, shape (o,), in [N m] or [N].
        width: Speed scale of dry friction, shape (o,), per s; set by `set_width`.
    """

    def __init__(self, mechanism: Mechanism, truth: Mapping[str, float]) -> None:
        coordinates = mechanism.coordinates
        rows = dict(zip(coordinates, np.eye(len(coordinates)), strict=True))
        motors = [one.name for one in mechanism.actuators]
        rows = {**dict(zip(motors, mechanism.actuator_map, strict=True)), **rows}
        self.owners = tuple(mechanism.drive)
        self.D: Float[Array, "o v"] = np.array([rows[name] for name in self.owners]).reshape(
            -1, len(coordinates)
        )

        def of(symbol: str) -> Float[Array, "o"]:
            return np.array([truth.get(f"{symbol}_{name}", 0.0) for name in self.owners])

        self._viscous = of("Fv") + 0.5 * (of("Fv+") + of("Fv-"))
        self._uneven = 0.5 * (of("Fv+") - of("Fv-"))
        self.dry = of("Fs") + 0.5 * (of("Fs+") + of("Fs-"))
        self._root, self._stribeck = of("Fr"), of("Fk")
        self._speed = np.array([mechanism.stribeck.get(name, STRIBECK_SPEED) for name in self.owners])
        self._constant = of("Off") + 0.5 * (of("Fs+") - of("Fs-"))
        self.width = np.ones(len(self.owners))
        self._terms = [
            (coordinates.index(one.joint), truth[one.name], one.expression) for one in mechanism.terms
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
        for term in mechanism.terms:
            if any(kind == "ddq" for kind, _ in term.expression.signals):
                raise InputError(
                    f"term '{term.name}' depends on an acceleration, which the plant cannot apply as a force",
                    file=mechanism.file,
                    remedy="describe coupled rotors by a motor on several joints with the drive term Ia",
                )

    def set_width(self, inertia: Float[Array, "o"], step: float) -> None:
        """Choose the widths from the inertia that each owner feels, SI, and the step [s]."""
        self.width = np.maximum(np.abs(self.dry + self._stribeck) * step / (_RATE * inertia), 1e-12)

    def resist(self, s: Float[Array, "o"]) -> Float[Array, "o"]:
        """Efforts against the motion at owners' velocities, in [N m] or [N]."""
        step, size = np.tanh(s / self.width), np.abs(s)
        dry = self.dry + self._root * np.sqrt(size) + self._stribeck * np.exp(-((s / self._speed) ** 2))
        return np.asarray(self._constant + self._viscous * s + self._uneven * size + dry * step)

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
