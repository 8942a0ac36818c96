"""Which payloads are mounted in what is predicted: those that are named, else those of every log of the fit.

A payload that some logs of the fit carried has parameters of its own, and is predicted with or without. One
that all of them carried is part of the parameters of its carrier: it cannot be taken off, unless all ten of
its parameters are known, or the robot without it is known from another result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.experiment.provenance import recorded_loads
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism, Payload
from dynid.statistics.estimate import Estimate

NONE = "none"  # how one says that nothing is mounted


def mounted(
    estimate: Estimate, mechanism: Mechanism, payloads: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[Notice, ...]]:
    """Names of the payloads that are mounted, and what was assumed of them where none are named.

    Args:
        estimate: The result to predict with.
        mechanism: Its robot, with all payloads that are described.
        payloads: As named by the user; empty, or `none`: nothing is mounted; None: not said.
    """
    if payloads is not None:
        return _named(mechanism, payloads), ()
    known = payloads_of(estimate, mechanism)
    always = always_carried(recorded_loads(estimate.provenance))
    usual = tuple(name for name in known if name in always)
    if usual:
        return usual, (notice("payload-assumed", names=", ".join(usual)),)
    if known:
        return (), (notice("payload-assumed", "without", names=", ".join(known), first=known[0]),)
    return (), ()


def _named(mechanism: Mechanism, payloads: Sequence[str]) -> tuple[str, ...]:
    """The payloads without the word for none."""
    if NONE not in payloads or NONE in mechanism.payloads:
        return tuple(payloads)
    if len(payloads) > 1:
        raise InputError(
            f"'{NONE}' means no payload, but others are named: {', '.join(payloads)}",
            remedy=f"give the names, or '{NONE}' alone",
        )
    return ()


def payloads_of(estimate: Estimate, mechanism: Mechanism) -> tuple[str, ...]:
    """Payloads that a result can predict with: those that it has found, and those that are known."""
    loads = recorded_loads(estimate.provenance)
    return tuple(
        name for name, payload in mechanism.payloads.items() if _knows(estimate, name, payload, loads)
    )


def _knows(estimate: Estimate, name: str, payload: Payload, loads: Sequence[Sequence[str]]) -> bool:
    names = [parameter.name.removesuffix("_R") for parameter in estimate.parameters]
    found = any(parameter.endswith(f"_{name}") for parameter in names)
    # Inside its carrier's parameters, if it was always mounted.
    return found or any(name in load for load in loads) or len(payload.known) == len(SYMBOLS)


def always_carried(loads: Sequence[Sequence[str]]) -> set[str]:
    """Payloads that every log of the fit has carried: they cannot be distinguished from their carriers."""
    return set.intersection(*(set(load) for load in loads)) if loads else set()


def refuse_unloaded(
    loads: Sequence[Sequence[str]], payloads: Mapping[str, Payload], mounted: Collection[str], place: str
) -> None:
    """Refuse to predict without a payload that every log of the fit has carried.

    What was not known of it is inside the parameters of its carrier, and cannot be taken off again.

    Args:
        loads: Payloads of each log that was identified from.
        payloads: All that the description knows.
        mounted: In what is to be predicted.
        place: What that is, for the message.
    """
    for name in sorted(always_carried(loads) - set(mounted)):
        if name in payloads and len(payloads[name].known) == len(SYMBOLS):
            continue
        raise InputError(
            f"payload '{name}' was mounted in every log of the fit: its mass is part of the parameters of its"
            " carrier, so efforts without it cannot be predicted",
            place=place,
            remedy=f"mount it here too (payload: {name}), or identify from a log without it as well",
        )


def refuse_unknown_payloads(estimate: Estimate, robot: Mechanism) -> None:
    """Refuse a mounted payload of which the result knows nothing."""
    known = payloads_of(estimate, robot)
    for name in robot.payloads:
        if name not in known:
            raise InputError(
                f"payload '{name}' is mounted, but it is not in the result",
                remedy="identify from a log with this payload first",
            )
