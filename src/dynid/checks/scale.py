"""Is the scale of all inertial parameters plausible? Against priors, and against the robot's size.

Efforts in a wrong unit scale every parameter alike, and no residual shows it. Priors tell the factor.
Without them the geometry does, roughly: with R the longest way along the robot,

d = max( M / R^3, MX / R^4, XX / R^5 )

was between 1 and 600 kg/m^3 for all robots looked at (arms 1 to 20, parallel robots up to 600).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dynid.common.notices import Notice
from dynid.mechanism.inertia import SYMBOLS, UNITS
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import BASE, Mechanism
from dynid.statistics.estimate import ParameterEstimate

# Priors from drawings are seldom off by more than this, all of them alike.
_SCALE = 2.0
_SCALE_PRIORS, _SURE_PERCENT = 5, 10.0
# d of no robot that we know, in [kg/m^3].
_LIGHT, _HEAVY = 0.02, 1000.0
_SHORTEST = 0.05  # [m]: below it the geometry says nothing
_POWERS = {"kg": 3, "kg m": 4, "kg m^2": 5}
# Factor by which efforts are too large -> what may have been logged, where N m or N was read.
_UNITS = (
    (1e6, "uA or N um"),
    (1e3, "mA or N mm"),
    (1e2, "N cm"),
    (9.81, "kgf m or kgf"),
    (1e-3, "kN m, or N m and A declared as N mm and mA"),
    (1e-6, "MN, or N m declared twice as N mm"),
)
_NEAR = 1.6


def check_scale(
    parameters: Sequence[ParameterEstimate], mechanism: Mechanism, has_scale: bool = True
) -> Iterable[Notice]:
    """Warn where all inertial parameters are far from their priors, or from what the size allows.

    Args:
        parameters: Of an estimate.
        mechanism: The robot.
        has_scale: False where parameters are per unit mass.
    """
    if not has_scale:
        return ()
    told = tuple(prior_scale(parameters))
    return told or tuple(_size_scale(parameters, mechanism))


def prior_scale(parameters: Iterable[ParameterEstimate]) -> Iterable[Notice]:
    """Inertial parameters that are all larger, or all smaller, than their priors by one factor."""
    ratios = [one.value / one.prior for one in _sure(parameters) if one.prior]
    if len(ratios) < _SCALE_PRIORS:
        return
    middle = float(np.median(ratios))
    if middle > 0.0 and 1.0 / _SCALE <= middle <= _SCALE:
        return
    yield Notice(
        "scale-differs",
        f"inertial parameters are {middle:.3g} times their priors (median of {len(ratios)} well-known ones)"
        + _said(likely_unit(middle)),
        "check drive gains, gear ratios and units of the efforts (columns: {tau_1: {name: ..., unit: ...}}):"
        " without a known mass data do not tell the scale. Runs with a weighed payload find it: gains: all",
    )


def _size_scale(parameters: Iterable[ParameterEstimate], mechanism: Mechanism) -> Iterable[Notice]:
    """Parameters that no robot of this size has."""
    R = reach(mechanism)
    sizes = [abs(one.value) / R ** _POWERS[one.unit] for one in _sure(parameters)] if R > _SHORTEST else []
    if not sizes:
        return
    d = max(sizes)
    if _LIGHT <= d <= _HEAVY:
        return
    heavy = d > _HEAVY
    factor = 1e3 if heavy else 1e-3
    yield Notice(
        "scale-implausible",
        f"a robot {R:.2g} m long with these parameters would be {'heavier' if heavy else 'lighter'} than any"
        f" ({d:.2g} kg/m^3 of its length cubed; robots have 1 to 600)" + _said(likely_unit(factor)),
        "check the unit of the efforts (columns: {tau_1: {name: ..., unit: ...}}), gear ratios and gains:"
        " the fit is as good with any scale",
    )


def _sure(parameters: Iterable[ParameterEstimate]) -> list[ParameterEstimate]:
    """Well-known inertial parameters."""
    return [
        one
        for one in parameters
        if one.unit in UNITS
        and one.name.split("_")[0] in SYMBOLS
        and one.sigma_rel_percent is not None
        and one.sigma_rel_percent < _SURE_PERCENT
    ]


def likely_unit(ratio: float) -> str:
    """What may have been logged where all efforts are `ratio` times too large; empty: no idea."""
    for factor, unit in _UNITS:
        if ratio > 0.0 and 1.0 / _NEAR < ratio / factor < _NEAR:
            return unit
    return ""


def _said(unit: str) -> str:
    return f"; as if the log held {unit}" if unit else ""


def reach(mechanism: Mechanism) -> float:
    """The longest way from the base along the joints, travel of prismatic ones included, in [m]."""
    lengths = {BASE: 0.0}
    for joint in mechanism.joints:
        own = float(np.linalg.norm(joint.placement.p) + np.linalg.norm(joint.body.p))
        if joint.kind is JointKind.PRISMATIC:
            limits = mechanism.limits.get(joint.name, {}).get("q", (0.0, 0.0))
            own += max((abs(x) for x in limits if np.isfinite(x)), default=0.0)
        lengths[joint.child] = lengths.get(joint.parent, 0.0) + own
    return max(lengths.values())
