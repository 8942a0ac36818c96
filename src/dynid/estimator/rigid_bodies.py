"""Bodies as physical consistency sees them: their ten parameters, a prior, and a scale.

P = [[Sigma, h], [h^T, m]],   Sigma = 1/2 tr(I) 1 - I,   h = m c

P is scaled by congruence, P = m0 diag(L, L, L, 1) P' diag(L, L, L, 1): a body of mass m0 and
size L has a P' of order one, whether it weighs a gram or a ton.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.estimator.settings import TOTAL
from dynid.mechanism.inertia import SYMBOLS, is_physical, pack, pseudo_inertia
from dynid.mechanism.mechanism import Body, Mechanism, Payload
from dynid.mechanism.parameters import Parameter

WHOLE = (0, 1, 2, 3)
_BASIS = np.array([pseudo_inertia(unit) for unit in np.eye(10)])  # P' = sum u_k _BASIS[k]
_FIRST = ("MX", "MY", "MZ")
# A body as thick as a tenth of its size in each direction is the thinnest that an entropic
# distance should accept: rods, plates and point masses of a description are idealised.
_THINNEST = 0.1
_GENERIC_THICKNESS = 0.25  # deviation of the mass about its centre, in sizes; a rod has 0.29
_PRIOR_RTOL = 1e-6  # descriptions carry few digits
_FALLBACK_LENGTH = 0.2  # [m], for a robot without any dimension


@dataclass(frozen=True, eq=False)
class RigidBody:
    """A body or payload with at least one inertial parameter: P' = sum x_i F_i + g over variables x.

    Attributes:
        columns: Standard index of each of the ten; -1 where the body does not have it.
        mass, length: m0 [kg] and L [m] of the scaling.
        prior: Ten parameters of a consistent body, shape (10,), SI; None if no mass is known.
        given: Whether the description gives the prior (else it is a generic body).
        variables: Numbers of the scaled variables that it depends on (see `StandardSpace`).
        u, u0: Scaled ten = u x[variables] + u0, shapes (10, k) and (10,).
        faces: Rows of P' that are not zero by what is known.
    """

    name: str
    columns: tuple[int, ...]
    mass: float
    length: float
    prior: Float[Array, "10"] | None = None
    given: bool = False
    payload: bool = False
    variables: Int[Array, "k"] = field(default_factory=lambda: np.zeros(0, dtype=int))
    u: Float[Array, "10 k"] = field(default_factory=lambda: np.zeros((10, 0)))
    u0: Float[Array, "10"] = field(default_factory=lambda: np.zeros(10))
    faces: tuple[int, ...] = WHOLE

    @property
    def unit(self) -> Float[Array, "10"]:
        """Size of each of the ten for a body of mass m0 and size L, shape (10,), SI."""
        m, L = self.mass, self.length
        return np.array([m * L * L] * 6 + [m * L] * 3 + [m])

    @property
    def ball(self) -> Float[Array, "10"]:
        """A ball of mass m0 and size L about the body origin, shape (10,), SI."""
        return _from_moments(self.mass, np.zeros(3), self.mass * self.length**2 / 3.0 * np.eye(3))

    @cached_property
    def F(self) -> Float[Array, "k f f"]:
        """Coefficients on the faces."""
        return self._on_faces(np.einsum("ik,iab->kab", self.u, _BASIS))

    @cached_property
    def g(self) -> Float[Array, "f f"]:
        """Constant part on the faces."""
        return self._on_faces(np.einsum("i,iab->ab", self.u0, _BASIS))

    @cached_property
    def P0(self) -> Float[Array, "f f"] | None:
        """Scaled prior on the faces."""
        return None if self.prior is None else self._on_faces(pseudo_inertia(self.prior / self.unit))

    @property
    def is_free(self) -> bool:
        """Whether anything about the body is unknown."""
        return bool(self.faces) and len(self.variables) > 0

    def value(self, x: Float[Array, "n"]) -> Float[Array, "f f"]:
        """P' on the faces."""
        return np.asarray(np.einsum("k,kab->ab", x[self.variables], self.F) + self.g)

    def _on_faces(self, matrices: Float[Array, "*k m m"]) -> Float[Array, "*k f f"]:
        faces = list(self.faces)
        return np.asarray(matrices[..., faces, :][..., :, faces])


def rigid_bodies(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    caps: Mapping[str, float],
    fallback_mass: float = 1.0,
    masses: Mapping[str, float] | None = None,
) -> tuple[RigidBody, ...]:
    """Bodies and payloads with parameters, each with its prior or a generic one.

    A generic body is centred between the joints of its link and about as large as their distance. Its
    mass comes from the data; without data it is the mean of the priors (or the mass limits, or the
    masses from the data) of the other bodies.

    Args:
        caps: Largest masses [kg] by name, `total` for all bodies.
        fallback_mass: Scale [kg] if neither prior nor limit gives a mass.
        masses: Masses [kg] of single bodies from the data.
    """
    masses = masses or {}
    table = _columns(parameters)
    owners: list[Body | Payload] = [*mechanism.bodies.values(), *mechanism.payloads.values()]
    owners = [member for member in owners if member.name in table]
    typical = _typical_mass(owners, caps) or (float(np.mean(list(masses.values()))) if masses else None)
    sizes = {member.name: _points(mechanism, member) for member in owners}
    lengths = [float(np.ptp(p, axis=0).max()) for p in sizes.values()]
    usual = float(np.median([x for x in lengths if x > 0] or [_FALLBACK_LENGTH]))
    made = []
    for owner, length in zip(owners, lengths, strict=True):
        size = length if length > 0 else usual
        centre = sizes[owner.name].mean(axis=0)
        if owner.name in masses:  # without first moments its centre of mass is assumed at the origin
            centre = np.where(np.array(table[owner.name][6:9]) < 0, 0.0, centre)
        prior, given = _prior(owner, masses.get(owner.name, typical), centre, size)
        made.append(_scaled(owner, table[owner.name], prior, given, fallback_mass, size))
    return tuple(made)


def plain_bodies(parameters: Sequence[Parameter], chi: Float[Array, "p"]) -> tuple[RigidBody, ...]:
    """Bodies of a table of parameters alone: no prior, scales from a first estimate `chi`."""
    made = []
    for name, columns in _columns(parameters).items():
        values = np.array([abs(chi[i]) if i >= 0 else 0.0 for i in columns])
        mass = float(values[9]) or float(values.max()) or 1.0
        second = 0.5 * float(values[0] + values[3] + values[5])
        made.append(RigidBody(name, columns, mass, float(np.sqrt(second / mass)) or _FALLBACK_LENGTH))
    return tuple(made)


def _columns(parameters: Sequence[Parameter]) -> dict[str, tuple[int, ...]]:
    """Owner -> index of each of the ten, of parameters that are not regrouped."""
    index = {
        (p.owner, p.symbol): i
        for i, p in enumerate(parameters)
        if p.kind == "inertial" and p.name == f"{p.symbol}_{p.owner}" and p.symbol in SYMBOLS
    }
    owners = dict.fromkeys(owner for owner, _ in index)
    return {owner: tuple(index.get((owner, symbol), -1) for symbol in SYMBOLS) for owner in owners}


def _believed(owner: Body | Payload) -> dict[str, float]:
    return {**owner.prior, **owner.known}


def _typical_mass(owners: Sequence[Body | Payload], caps: Mapping[str, float]) -> float | None:
    """Mean mass of the priors; without any, that of the limits; None if no mass is given."""
    masses = [m for owner in owners if (m := _believed(owner).get("M", 0.0)) > 0]
    if masses:
        return float(np.mean(masses))
    if TOTAL in caps:
        return caps[TOTAL] / max(1, sum(isinstance(owner, Body) for owner in owners))
    return float(np.mean(list(caps.values()))) if caps else None


def _points(mechanism: Mechanism, owner: Body | Payload) -> Float[Array, "n 3"]:
    """Joints of a body in its own frame: to its parent and to its children."""
    if isinstance(owner, Payload):
        return np.zeros((1, 3))
    inner = mechanism.joint_of_body[owner.name].body.inverse().p
    outer = [joint.placement.p for joint in mechanism.joints if joint.parent == owner.name]
    for loop in mechanism.loops:
        ends = ((loop.body_a, loop.a), (loop.body_b, loop.b))
        outer += [frame.p for body, frame in ends if body == owner.name]
    for cable in mechanism.cables:
        points = ((cable.body_from, cable.D), (cable.body_to, cable.A))
        outer += [point for body, point in points if body == owner.name]
    return np.array([inner, *outer])


def _prior(
    owner: Body | Payload, typical: float | None, centre: Float[Array, "3"], size: float
) -> tuple[Float[Array, "10"] | None, bool]:
    """Ten parameters of a consistent body that is not flat, and whether they come from a prior."""
    believed = _believed(owner)
    mass = believed.get("M", 0.0)
    given = mass > 0 and bool(owner.prior)
    if not mass > 0:
        if typical is None:
            return None, False
        mass = typical
    moment = mass * centre
    if all(symbol in believed for symbol in _FIRST):
        moment = np.array([believed[symbol] for symbol in _FIRST])
    about = (_GENERIC_THICKNESS * size) ** 2 * mass * np.eye(3)
    if believed.get("M", 0.0) > 0 and all(symbol in believed for symbol in SYMBOLS):
        chi = np.array([believed[symbol] for symbol in SYMBOLS])
        if is_physical(chi, _PRIOR_RTOL):
            about = pseudo_inertia(chi)[:3, :3] - np.outer(moment, moment) / mass
    return _from_moments(mass, moment, _thickened(about, mass, size)), given


def _thickened(about: Float[Array, "3 3"], mass: float, size: float) -> Float[Array, "3 3"]:
    """Second moments about the centre of mass, none below a hundredth of the body's mean square size."""
    values, axes = np.linalg.eigh(about)
    mean = max(float(values.mean()), 0.0) or mass * (_THINNEST * size) ** 2
    return np.asarray(axes @ np.diag(np.maximum(values, _THINNEST**2 * mean)) @ axes.T)


def _from_moments(
    mass: float, moment: Float[Array, "3"], about_centre: Float[Array, "3 3"]
) -> Float[Array, "10"]:
    Sigma = about_centre + np.outer(moment, moment) / mass
    return pack(mass, moment, np.trace(Sigma) * np.eye(3) - Sigma)


def _scaled(
    owner: Body | Payload,
    columns: tuple[int, ...],
    prior: Float[Array, "10"] | None,
    given: bool,
    fallback_mass: float,
    size: float,
) -> RigidBody:
    mass, length = fallback_mass, size
    if prior is not None:
        mass = float(prior[9])
        length = float(np.sqrt(np.trace(pseudo_inertia(prior)[:3, :3]) / mass))
    return RigidBody(owner.name, columns, mass, length, prior, given, isinstance(owner, Payload))
