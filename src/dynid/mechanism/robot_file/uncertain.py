"""Quantities of a robot file with a standard deviation: symbols, named dimensions, joint zeros.

symbols: {d3: {value: 0.28, sigma: 0.001}}
dimensions: {x_elbow_joint: {value: -0.4253, sigma: 0.0005}, "z_*": {sigma: 0.001}}
zeros: {motor1: {value: 0.002, sigma: 0.005}, motor2: -0.001}
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from dynid.common.entry import Entry
from dynid.common.errors import nearest
from dynid.mechanism.description import ZERO, with_zeros
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.robot_file.scope import Scope

_WILD = "*?["


def given_dimensions(entry: Entry, scope: Scope) -> dict[str, float]:
    """Values of `dimensions:`, which replace those of the description below."""
    sizes = {}
    for name, item in entry.mapping().items():
        value = _fields(item).get("value") if item.is_mapping else item
        if value is None:
            continue
        if any(sign in name for sign in _WILD):
            raise item.error(f"'{name}' stands for several dimensions", "give values by full name")
        sizes[name] = scope.number(value)
    return sizes


def read_zeros(entry: Entry, scope: Scope, robot: Mechanism) -> Mechanism:
    """The robot with the joint zeros of `zeros:`."""
    zeros = {}
    for name, item in entry.mapping().items():
        if name not in robot.measured_positions:
            raise item.error(
                f"'{name}' is not a measured joint" + nearest(name, robot.measured_positions),
                "zeros are those of sensors: name a measured joint",
            )
        value = _fields(item).get("value") if item.is_mapping else item
        zeros[name] = 0.0 if value is None else scope.number(value)
    return with_zeros(robot, zeros)


def read_uncertain(fields: Mapping[str, Entry], scope: Scope) -> dict[str, float]:
    """Standard deviations of symbols, dimensions and zeros, by name, in [m] or [rad]."""
    sigmas: dict[str, float] = {}
    for name, item in fields["symbols"].mapping().items() if "symbols" in fields else ():
        if item.is_mapping and "sigma" in item.mapping():
            sigmas[name] = _sigma(item.mapping()["sigma"], scope)
    for pattern, item in fields["dimensions"].mapping().items() if "dimensions" in fields else ():
        matched = [name for name in scope.geometry if fnmatchcase(name, pattern)]
        if not matched:
            raise item.error(
                f"no dimension '{pattern}'" + nearest(pattern, scope.geometry),
                "dimensions are symbols and bare lengths other than zero: "
                + (", ".join(list(scope.geometry)[:12]) or "there is none"),
            )
        if item.is_mapping and "sigma" in _fields(item):
            sigmas |= dict.fromkeys(matched, _sigma(_fields(item)["sigma"], scope))
    for name, item in fields["zeros"].mapping().items() if "zeros" in fields else ():
        if item.is_mapping and "sigma" in _fields(item):
            sigmas[f"{ZERO}{name}"] = _sigma(_fields(item)["sigma"], scope)
    return sigmas


def _fields(entry: Entry) -> dict[str, Entry]:
    return entry.fields(("value", "sigma"))


def _sigma(entry: Entry, scope: Scope) -> float:
    sigma = scope.number(entry)
    if sigma <= 0.0:
        raise entry.error(f"sigma {sigma:g} is not positive", "give a standard deviation in m or rad")
    return sigma
