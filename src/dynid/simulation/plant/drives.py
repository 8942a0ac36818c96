"""Friction, offsets and extra terms as forces on the plant's coordinates.

    resist = Fv s + Fs step + Fv+ max(s, 0) + Fv- min(s, 0) + Fs+ (1 + step)/2 - Fs- (1 - step)/2 + Off
             + Fr step sqrt|s| + Fk step exp(-(s / vs)^2) + Fl step |load|

plus additional friction laws (`excitation.friction`), with the owner's velocity s = D dq and
step = tanh(s / width): sign(s) except for speeds below a few widths. Discontinuous friction has no
well-defined motion between two steps; the width is the smallest for which the friction slope is still
resolved by the integration steps. The load depends in turn on the friction: see `drive_kernels`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.excitation.friction import ExtraFriction, FrictionLaw
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import STRIBECK_SPEED, load_map, source_index, speed_map
from dynid.simulation.plant.layout import DRY, STRIBECK, Friction

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
        width: Speed scale of dry friction, shape (o,), per s; set by `set_width`.
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

        def of(symbol: str) -> Float[Array, "m"]:
            return np.array([truth.get(f"{symbol}_{name}", 0.0) for name in driven])

        self.share = of("Fl")
        dry = of("Fs") + 0.5 * (of("Fs+") + of("Fs-"))
        speed = np.array([mechanism.stribeck.get(name, STRIBECK_SPEED) for name in driven])
        columns = (
            of("Fv") + 0.5 * (of("Fv+") + of("Fv-")),
            0.5 * (of("Fv+") - of("Fv-")),
            dry,
            of("Fr"),
            of("Fk"),
            speed,
            of("Off") + 0.5 * (of("Fs+") - of("Fs-")),
            self.share,
        )
        self._terms = np.column_stack([np.zeros((len(driven), 0)), *columns])
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
        return Friction(self.D, self.width, self._terms, self._laws.laws, self._laws.bristles)

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
        jump = np.abs(self._terms[:, DRY] + self._terms[:, STRIBECK])
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

    def resist(self, s: Float[Array, "o"], z: Float[Array, "e"]) -> Float[Array, "o"]:
        """Efforts against the motion at owners' velocities and deflections, without load friction, SI."""
        from dynid.simulation.plant.drive_kernels import resisting

        out = np.empty(len(s))
        resisting(self.tables, np.ascontiguousarray(s), z, out)
        return out
