"""What the motion of logs can show, and what not, in words.

A base parameter that a motion does not excite is unseen, although the structure of the robot permits to
identify it. Joint by joint the reason is said: it hardly moves, or only slowly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from dynid.base.words import listed
from dynid.common.notices import Notice, notice
from dynid.doctor.diagnosis import Channel, Excitation
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.statistics.estimate import Estimate

_OFFSETS = ("Ia", "Off")  # drive terms that are not friction
# Condition number of the scaled regressor (each column divided by its norm). Exciting motions reach 10 to 50.
_POOR = 300.0
_LITTLE = 0.1  # of the range or speed that limits permit
_SLOW = {"rad": 0.1, "m": 0.02}  # per second, where no limit is known


def excitation_of(estimate: Estimate) -> Excitation:
    """Counts and names of base parameters that the logs do and do not determine."""
    unseen = tuple(estimate.not_identifiable)
    weak = tuple(
        parameter.name
        for parameter in estimate.parameters
        if parameter.sigma_rel_percent is not None and not parameter.sigma_rel_percent < 100.0
    )
    seen = len(estimate.parameters)
    return Excitation(seen + len(unseen), seen, estimate.fit.condition_scaled, unseen, weak)


def excitation_notices(
    found: Excitation, mechanism: Mechanism, channels: Sequence[Channel], robot: str, logs: Sequence[str]
) -> Iterator[Notice]:
    """What stays unknown of each joint and why, and how much a better motion could add."""
    command = f"dynid excite {robot} {' '.join(f'--after {log}' for log in logs)} --period 20"
    owned = _by_joint(found.unseen, mechanism)
    for joint, names in owned.items():
        yield notice(
            "joint-unexcited",
            joint=joint,
            motion=_motion(joint, mechanism, channels),
            kinds=_kinds(names),
            count=len(names),
            names=listed(names),
        )
    if found.unseen:
        yield notice("excitation", seen=found.seen, base=found.base, more=len(found.unseen), command=command)
    if math.isfinite(found.condition) and found.condition > _POOR:
        little = [
            f"'{joint}' {text}"
            for joint in mechanism.measured_positions
            if (text := _little(joint, mechanism, channels))
        ]
        yield notice(
            "excitation-poor",
            condition=found.condition,
            weak=len(found.weak),
            base=found.base,
            why=f"; {', '.join(little)}" if little else "",
            command=command,
        )


def _by_joint(names: Sequence[str], mechanism: Mechanism) -> dict[str, list[str]]:
    """Parameters by the joint that moves their body, or has their drive."""
    by_joint: dict[str, list[str]] = {}
    for name in names:
        owner = name.removesuffix("_R").partition("_")[2]
        joint = mechanism.joint_of_body.get(owner)
        by_joint.setdefault(joint.name if joint is not None else owner, []).append(name)
    return by_joint


def _motion(joint: str, mechanism: Mechanism, channels: Sequence[Channel]) -> str:
    of_joint = [channel for channel in channels if channel.owner == joint and channel.top_speed is not None]
    if not of_joint:
        return "is not measured"
    top = max(channel.top_speed or 0.0 for channel in of_joint)
    swept = max(channel.high - channel.low for channel in of_joint)
    unit = of_joint[0].unit
    if top == 0.0 or swept == 0.0:
        return "never moves"
    little = _little(joint, mechanism, channels)
    return little or f"moves over {swept:.3g} {unit} with up to {top:.3g} {unit}/s, but not in the way needed"


def _little(joint: str, mechanism: Mechanism, channels: Sequence[Channel]) -> str:
    """That a joint moves little or slowly; empty if it moves enough."""
    of_joint = [channel for channel in channels if channel.owner == joint and channel.top_speed is not None]
    if not of_joint:
        return ""
    top, unit = max(channel.top_speed or 0.0 for channel in of_joint), of_joint[0].unit
    swept = max(channel.high - channel.low for channel in of_joint)
    limits: Mapping[str, object] = mechanism.limits.get(joint, {})
    fastest, room = limits.get("dq"), limits.get("q")
    slow = _LITTLE * fastest if isinstance(fastest, float | int) else _SLOW.get(unit, math.inf)
    if top < slow:
        return f"never moves faster than {top:.2g} {unit}/s"
    if isinstance(room, tuple | list) and swept < _LITTLE * (room[1] - room[0]):
        return f"moves over {swept:.2g} {unit} only, {100 * swept / (room[1] - room[0]):.0f} % of its range"
    return ""


def _kinds(names: Sequence[str]) -> str:
    """Which properties of a joint stay unknown."""
    symbols = {name.partition("_")[0].rstrip("+-") for name in names}
    kinds = []
    friction = {symbol.rstrip("+-") for symbol in DRIVE_SYMBOLS} - set(_OFFSETS)
    if symbols - friction - {"Off"}:
        kinds.append("inertia")
    if symbols & friction:
        kinds.append("friction")
    return " and ".join(kinds) or "offset"
