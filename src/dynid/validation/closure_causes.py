"""Which dimension explains what redundant encoders miss: a closed robot with more sensors than freedoms.

At each sample the closed pose is nearest to all sensors; r = P W (y - y_closed) is what they contradict,
P the projector on what no motion explains (`projection/misfit.py`). A dimension s that is off changes the
closure residual f by f_s per unit, the closed pose by -A^+ f_s, and what is missed by

    z = P W (A^+ f_s)_measured,      s_hat = -(z r) / (z z),      share = (z r)^2 / ((z z) (r r))

Joint zeros have z = -P W e_j. All candidates compete; p is that of s_hat against its deviation over parts of
the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Float, spread
from dynid.common.batched import qr
from dynid.common.distributions import student_tails
from dynid.common.notices import Notice, notice
from dynid.fit import Fit
from dynid.kinematics.closure import Closure
from dynid.mechanism.description import unit_of
from dynid.mechanism.frame import Frame
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.variant import resized
from dynid.motion.motion import Motion
from dynid.projection.kinematics import ClosedKinematics, kinematics_along
from dynid.statistics.estimate_parts import DescriptionTest

_SAMPLES = 400
_PARTS = 8
_STEP = 1e-6  # m or rad: difference over a dimension; f is exact to 1e-15
_EXPLAINS = 0.5  # of the squared misfit: less is not named
_ALIKE = 0.03  # of the squared misfit: as good as the best
_LEAST = 1e-9  # of the largest column: a dimension that the loops do not feel


@dataclass(frozen=True, eq=False)
class ClosureCause:
    """What explains the contradiction: as a hypothesis, and as a warning (`loop-misfit` names zeros)."""

    test: DescriptionTest
    notices: tuple[Notice, ...]


@dataclass(frozen=True, eq=False)
class _Candidate:
    """One thing that may be off: in words, its unit and size, the share that it explains, and p."""

    name: str
    unit: str
    size: float
    share: float
    p: float


def closure_cause(fit: Fit, notices: Sequence[Notice]) -> ClosureCause | None:
    """The dimension, joint zero or gear ratio that explains a closure misfit; None without one.

    Poses that contradict a dimension of a cable beyond any zero of its length have named it already.
    """
    codes = {note.code for note in notices}
    if "loop-misfit" not in codes or "cable-misfit" in codes:
        return None
    source = fit.problem.sources[0]
    kinematics = kinematics_along(fit.problem.mechanism, source.motion)
    if not isinstance(kinematics, ClosedKinematics) or not kinematics.redundant:
        return None
    ranked = sorted(_candidates(fit.problem.mechanism, kinematics, source.motion), key=lambda c: -c.share)
    if not ranked or ranked[0].share < _EXPLAINS:
        return None
    best = ranked[0]
    beside = [other.name for other in ranked[1:4] if other.share > best.share - _ALIKE]
    left = 100.0 * float(np.sqrt(max(1.0 - best.share, 0.0)))
    unit = best.unit
    if best.name.startswith("zero"):
        named = f"{best.name} off by {best.size:.3g} {unit}"
        return ClosureCause(DescriptionTest(named, left, best.p, of_positions=True), ())
    named = f"{best.name} changed by {best.size:+.3g} {unit}"
    test = DescriptionTest(named, left, best.p, of_positions=True)
    also = f"; as well explained by {' or '.join(beside)}" if beside else ""
    said = notice(
        "dimension-off", "closure", name=best.name, size=best.size, unit=unit, percent=left, beside=also
    )
    return ClosureCause(test, (said,))


def _candidates(mechanism: Mechanism, kinematics: ClosedKinematics, motion: Motion) -> Iterator[_Candidate]:
    at = _samples(motion)
    measured = motion.log.q[at]
    sensors, assembly = kinematics.sensors, kinematics.assembly
    pose = assembly.follow(measured, sensors)
    parts = assembly.split(assembly.closure.values(pose).A)
    M = parts.N[:, sensors.velocity] * sensors.weight[:, None]
    Q = qr(M)[0]

    def seen(x: Float[Array, "n m"]) -> Float[Array, "n m"]:
        x = x * sensors.weight
        return np.asarray(x - np.einsum("nmd,nkd,nk->nm", Q, Q, x))

    r = seen(sensors.miss(pose, measured))
    columns: list[tuple[str, str, Float[Array, "n m"]]] = []
    for j, name in enumerate(kinematics.labels):
        unit = np.zeros_like(r)
        unit[:, j] = 1.0
        columns.append((f"zero of '{name}'", kinematics.unit(name), seen(-unit)))
    for name, described, other in _dimensions(mechanism):
        f = Closure(other).values(pose).f / _STEP
        columns.append((name, described, seen(parts.step(f)[:, sensors.velocity])))
    largest = max(float(np.sum(z**2)) for *_, z in columns)
    for name, described, z in columns:
        if float(np.sum(z**2)) > _LEAST * largest:
            yield _judged(name, described, z, r)


def _judged(name: str, unit: str, z: Float[Array, "n m"], r: Float[Array, "n m"]) -> _Candidate:
    whole, zz, zr = float(np.sum(r**2)), float(np.sum(z**2)), float(np.sum(z * r))
    size = -zr / zz
    left = np.sum(z * (r + size * z), axis=1)
    sums = np.array([float(np.sum(part)) for part in np.array_split(left, _PARTS)])
    sigma = float(np.sqrt(np.sum(sums**2) * _PARTS / (_PARTS - 1))) / zz
    p = student_tails(_PARTS - 1, size / max(sigma, 1e-300))
    return _Candidate(name, unit, size, zr**2 / max(zz * whole, 1e-300), p)


def _samples(motion: Motion) -> Array:
    pieces = motion.usable()
    every = np.concatenate([np.arange(a, b) for a, b in pieces])
    return np.asarray(every[spread(len(every), _SAMPLES)])


def _dimensions(mechanism: Mechanism) -> Iterator[tuple[str, str, Mechanism]]:
    """Each named dimension, and each single length of a joint or loop: unit, and robot one step larger."""
    for name, value in mechanism.geometry.items():
        other = resized(mechanism, {name: value + _STEP})
        if other is not None:
            yield f"dimension {name}", unit_of(mechanism, name), other
    for k, joint in enumerate(mechanism.joints):
        for axis, frame in _longer(joint.placement):
            joints = list(mechanism.joints)
            joints[k] = replace(joint, placement=frame)
            yield f"length {axis} of joint '{joint.name}'", "m", _rebuilt(mechanism, joints=tuple(joints))
    for k, loop in enumerate(mechanism.loops):
        for side in ("a", "b"):
            for axis, frame in _longer(getattr(loop, side)):
                loops = list(mechanism.loops)
                loops[k] = replace(loop, a=frame) if side == "a" else replace(loop, b=frame)
                words = f"length {axis} of loop '{loop.name}' {side}"
                yield words, "m", _rebuilt(mechanism, loops=tuple(loops))


def _rebuilt(mechanism: Mechanism, **changes: object) -> Mechanism:
    return replace(mechanism, geometry={}, rebuild=None, **changes)  # type: ignore[arg-type]


def _longer(frame: Frame) -> Iterator[tuple[str, Frame]]:
    """Frames with one coordinate of their origin a step larger in size, where it is not zero."""
    for i, axis in enumerate("xyz"):
        if abs(frame.p[i]) > _STEP:
            p = np.array(frame.p)
            p[i] += _STEP
            yield axis, replace(frame, p=p)
