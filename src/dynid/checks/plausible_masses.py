"""Are inertial parameters plausible? Against priors, limits of the efforts, and the robot's size.

Efforts in a wrong unit scale all parameters by the same factor, and the residual does not show it. Priors
give the factor. Efforts far beyond the limits of most drives are in another unit. Without both the geometry
gives the scale roughly: with R the longest path along the robot,

d = max( M / R^3, MX / R^4, XX / R^5 )

is between 0.4 and 44 kg/m^3 for all built-in robots, serial and closed. The travel of a prismatic joint is
not a link: R is between the path without travel and the path with it. A warning needs both to be implausible.
Where none of these would see a factor of 1000 (sliding joints without limits have no length), the result
says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.checks.check import Finished
from dynid.common.notices import Notice, eased, notice
from dynid.mechanism.inertia import SYMBOLS, UNITS
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import BASE, Mechanism
from dynid.motion.choose import extents
from dynid.motion.log import Log
from dynid.projection.projection import System
from dynid.statistics.estimate import ParameterEstimate
from dynid.statistics.uncertainty import half95

# Priors from drawings are seldom off by more than this, all of them alike.
_SCALE = 2.0
_UNIT = 5.0
_SCALE_PRIORS, _SURE_PERCENT = 5, 10.0
# So many bodies of one round mass or drives of one limit (one significant digit) are a placeholder.
_SAME_VALUES = 3
# A parameter differs from the description by a factor of 2, by 5 sigma, and by a noticeable effort.
_DIFFERS_SIGMA, _DIFFERS_EFFORT = 5.0, 0.05
_MOST_SHOWN = 5
# d of no robot that we know, in [kg/m^3]: seven times beyond the built-in ones.
_LIGHT, _HEAVY = 0.05, 300.0
# Parts of a small mechanism are about as thick as they are long; solid steel is the end of it.
_SMALL, _STEEL = 0.5, 8000.0  # [m], [kg/m^3]
_SHORTEST = 0.05  # [m]: below this the geometry gives no information
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
# The size of a robot shows that efforts are too small, not by how much: 10 to 1000 times are usual.
_OF_MOTORS = (
    "A or in N m of the motors (torque constants and gear ratios are missing), in kN m, or in N m and A"
    " declared as N mm and mA"
)


def scale(finished: Finished) -> Iterable[Notice]:
    """Warn where inertial parameters are far from their priors, or from what limits and size allow."""
    fit = finished.fit
    robot = fit.problem.mechanism
    known = any(item.code == "gravity-off" for item in finished.notices)  # which biases the parameters
    seen = None if known else fit.data.system
    if fit.problem.case.moves_freely:
        return ()
    limits = effort_limits(robot, fit.problem.logs)
    notices = tuple(check_scale(fit.parts.parameters, robot, seen=seen, limits=limits))
    weighed = any("M" in payload.known for payload in robot.payloads.values())
    checked = notices or weighed or fit.experiment.known or fit.experiment.gains
    if checked or not fit.problem.case.measures_signals:
        return notices
    return (notice("scale-unchecked", "size"),) if rests_on_logs(fit.parts.parameters, robot, limits) else ()


def effort_limits(mechanism: Mechanism, logs: Sequence[Log]) -> list[float]:
    """Largest effort over its limit, for every effort with one; none where all limits are one round value."""
    limits = [mechanism.limits.get(name, {}).get("tau") for name in logs[0].effort_names]
    given = [limit for limit in limits if limit]
    if not given or _is_placeholder(given):
        return []
    largest = np.max([np.max(np.abs(extents(log)[1]), axis=0) for log in logs], axis=0)
    ratios = [float(x) / limit for x, limit in zip(largest, limits, strict=True) if limit]
    return [ratio for ratio in ratios if np.isfinite(ratio)]


def rests_on_logs(
    parameters: Sequence[ParameterEstimate], mechanism: Mechanism, limits: Sequence[float] = ()
) -> bool:
    """Whether efforts 1000 times larger or smaller would be plausible too."""
    if not _sure(parameters):
        return False
    for factor in (1e-3, 1e3):
        other = [_scaled(parameter, factor) for parameter in parameters]
        if not any(check_scale(other, mechanism, limits=[factor * ratio for ratio in limits])):
            return True
    return False


def _scaled(parameter: ParameterEstimate, factor: float) -> ParameterEstimate:
    """As it would be if all efforts were larger by a factor."""
    sigma = None if parameter.sigma is None else factor * parameter.sigma
    return replace(parameter, value=factor * parameter.value, sigma=sigma)


def check_scale(
    parameters: Sequence[ParameterEstimate],
    mechanism: Mechanism,
    seen: System | None = None,
    limits: Sequence[float] = (),
) -> Iterable[Notice]:
    """Warn where inertial parameters are far from their priors, or from what limits and size allow.

    Args:
        parameters: Of an estimate.
        mechanism: The robot.
        seen: The equations over these parameters; None: single parameters are not compared with priors.
        limits: Largest effort over its limit, where there are limits.
    """
    believed = not placeholder_masses(mechanism)
    notices = (prior_scale(parameters) if believed else ()) or _limit_scale(limits)
    # Known masses are better than a size: a light robot is no other unit.
    if not notices and not (believed and len(_prior_ratios(parameters)) >= _SCALE_PRIORS):
        notices = tuple(_size_scale(parameters, mechanism))
    if notices or not believed or seen is None:
        return notices
    return tuple(differing(parameters, effort_shares(seen)))


def placeholder_masses(mechanism: Mechanism) -> bool:
    """Whether all bodies have one round mass as prior (1 kg a link), which nobody measured."""
    return _is_placeholder([body.prior["M"] for body in mechanism.bodies.values() if body.prior.get("M")])


def _is_placeholder(values: Sequence[float]) -> bool:
    """Whether several values are one and the same, with one significant digit."""
    same = len(values) >= _SAME_VALUES and max(values) == min(values)
    return same and float(f"{values[0]:.0e}") == values[0]


def _limit_scale(ratios: Sequence[float]) -> tuple[Notice, ...]:
    """Efforts that most drives of the description could not give."""
    if not ratios or (middle := float(np.median(ratios))) <= _UNIT:
        return ()
    return (notice("scale-implausible", "limits", times=middle, unit=_said(likely_unit(1e3))),)


def _prior_ratios(parameters: Iterable[ParameterEstimate]) -> list[float]:
    """Values over their priors, of well-known inertial parameters."""
    return [parameter.value / parameter.prior for parameter in _sure(parameters) if parameter.prior]


def prior_scale(parameters: Iterable[ParameterEstimate]) -> tuple[Notice, ...]:
    """Inertial parameters that are all larger, or all smaller, than their priors by one factor."""
    ratios = _prior_ratios(parameters)
    if len(ratios) < _SCALE_PRIORS:
        return ()
    middle = float(np.median(ratios))
    if middle > 0.0 and 1.0 / _SCALE <= middle <= _SCALE:
        return ()
    warning = notice("scale-differs", factor=middle, count=len(ratios), unit=_said(likely_unit(middle)))
    # Drawings may be wrong by a factor of some; a unit is wrong by more.
    return (eased(warning) if 1.0 / _UNIT < middle < _UNIT else warning,)


def effort_shares(seen: System) -> dict[str, float]:
    """How much of an effort one unit of each parameter makes: the largest |W_j| / |Y| of all efforts."""
    shares = np.zeros(len(seen.parameters))
    for group in seen.groups:
        squares = sum(np.sum(block.W**2, axis=0) for block in group.blocks)
        measured = sum(float(np.sum(block.Y**2)) for block in group.blocks)
        if measured > 0.0:
            ratios = np.sqrt(squares / measured)
            shares[group.columns] = np.maximum(shares[group.columns], ratios)
    return {unknown.name: float(share) for unknown, share in zip(seen.parameters, shares, strict=True)}


def differing(parameters: Iterable[ParameterEstimate], shares: Mapping[str, float]) -> Iterable[Notice]:
    """Well-known inertial parameters that are far from their own priors, where this changes an effort."""
    outliers = []
    for parameter in _sure(parameters):
        if parameter.prior is None or parameter.sigma is None:
            continue
        off, size = abs(parameter.value - parameter.prior), max(abs(parameter.value), abs(parameter.prior))
        effort = off * shares.get(parameter.name, 0.0)
        if (
            off > max((1.0 - 1.0 / _SCALE) * size, _DIFFERS_SIGMA * parameter.sigma)
            and effort > _DIFFERS_EFFORT
        ):
            outliers.append((effort, parameter))
    if not outliers:
        return
    outliers.sort(key=lambda item: -item[0])
    shown = ", ".join(
        f"{parameter.name} = {parameter.value:.3g} +- {half95(parameter.sigma or 0.0, [parameter]):.1g}"
        f" {parameter.unit}"
        f" (description {parameter.prior:.3g})"
        for _, parameter in outliers[:_MOST_SHOWN]
    )
    more = f" and {len(outliers) - _MOST_SHOWN} more" if len(outliers) > _MOST_SHOWN else ""
    yield notice("differs-from-description", shown=shown, more=more, percent=100 * outliers[0][0])


def _size_scale(parameters: Iterable[ParameterEstimate], mechanism: Mechanism) -> Iterable[Notice]:
    """Parameters that no robot of this size has: one is surely too large, or none is large enough."""
    parameters = list(parameters)
    sure = _sure(parameters)
    short, long = reach(mechanism), reach(mechanism, travel=True)
    if not sure or short <= _SHORTEST:
        return
    # The smallest density that the size allows, and the largest: of any parameter that is surely so large.
    lowest = max(abs(parameter.value) / long ** _POWERS[parameter.unit] for parameter in sure)
    highest = max(
        (abs(parameter.value) if parameter in sure else _least(parameter)) / short ** _POWERS[parameter.unit]
        for parameter in _inertial(parameters)
    )
    heavy = lowest > min(_HEAVY * max(1.0, (_SMALL / long) ** 2), _STEEL)
    if not heavy and highest >= _LIGHT:
        return
    d, R = (lowest, long) if heavy else (highest, short)
    yield notice(
        "scale-implausible",
        size="large" if heavy else "small",
        reach=R,
        density=d,
        unit=_said(likely_unit(1e3) if heavy else _OF_MOTORS),
    )


def _inertial(parameters: Iterable[ParameterEstimate]) -> list[ParameterEstimate]:
    """Inertial parameters."""
    return [one for one in parameters if one.unit in UNITS and one.name.split("_")[0] in SYMBOLS]


def _sure(parameters: Iterable[ParameterEstimate]) -> list[ParameterEstimate]:
    """Well-known inertial parameters."""
    percents = ((one, one.sigma_rel_percent) for one in _inertial(parameters))
    return [one for one, percent in percents if percent is not None and percent < _SURE_PERCENT]


def _least(parameter: ParameterEstimate) -> float:
    """Smallest size of a parameter in its 95 % interval; 0 where that holds both signs."""
    half = np.inf if parameter.sigma is None else float(half95(parameter.sigma, [parameter]))
    return max(0.0, abs(parameter.value) - half)


def likely_unit(ratio: float) -> str:
    """What may have been logged where all efforts are `ratio` times too large; empty: no idea."""
    for factor, unit in _UNITS:
        if ratio > 0.0 and 1.0 / _NEAR < ratio / factor < _NEAR:
            return unit
    return ""


def _said(unit: str) -> str:
    return f"; the log may be in {unit}" if unit else ""


def reach(mechanism: Mechanism, travel: bool = False) -> float:
    """The longest way from the base along the links, to joints, closures and ends of rods, in [m].

    Args:
        travel: Whether prismatic joints count with their whole travel (infinite without limits); else
            with their value at the start pose, zero where there is none.
    """
    ways = {BASE: 0.0}
    for joint in mechanism.joints:
        stretch = float(np.linalg.norm(joint.placement.p) + np.linalg.norm(joint.body.p))
        if joint.kind is JointKind.PRISMATIC:
            stretch += _travel(mechanism, joint.name) if travel else abs(mechanism.start.get(joint.name, 0.0))
        ways[joint.child] = ways.get(joint.parent, 0.0) + stretch
    over = [
        ways[body] + float(np.linalg.norm(frame.p)) + (loop.length or 0.0)
        for loop in mechanism.loops
        for body, frame in ((loop.body_a, loop.a), (loop.body_b, loop.b))
    ]
    return max([*ways.values(), *over])


def _travel(mechanism: Mechanism, joint: str) -> float:
    """How far a prismatic joint may be from its zero; a closed robot's follows from its start pose."""
    start = abs(mechanism.start.get(joint, 0.0))
    if "q" not in mechanism.limits.get(joint, {}):
        return start if mechanism.is_closed else np.inf
    return max(start, *(abs(float(x)) for x in mechanism.limits[joint]["q"]))
