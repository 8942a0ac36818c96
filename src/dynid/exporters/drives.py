"""Drive terms that a joint of another format can hold, and the rest.

A motor on one joint with velocity s = r dq acts there as Ia r^2, Fv r^2 and Fs |r|. Friction that depends on
the direction is held by its mean. The rest (offsets, differences between the directions, Stribeck and load
terms, motors on several joints, declared terms) is written beside the file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter

# Symbol -> the term that holds it in other formats, with the power of the gear ratio.
_HELD = {"Ia": ("Ia", 2), "Fv": ("Fv", 2), "Fs": ("Fs", 1)}
_PAIRS = {"Fv": ("Fv+", "Fv-"), "Fs": ("Fs+", "Fs-")}
_WORDS = {
    "Ia": "rotor inertia",
    "Off": "offset of the effort",
    "Fr": "friction with the square root of the speed",
    "Fl": "friction that grows with the load",
    "Fk": "Stribeck friction",
    "Fv": "viscous friction",
    "Fs": "Coulomb friction",
}


@dataclass(frozen=True, eq=False)
class DriveSplit:
    """What joints of another format hold of the drive terms.

    Attributes:
        joints: Coordinate -> {Ia, Fv, Fs}, SI.
        held: Standard parameters of the held part, bodies included, shape (p,), SI.
        rest: Names of the parameters that are not held, or only in part.
    """

    joints: Mapping[str, Mapping[str, float]]
    held: Float[Array, "p"]
    rest: tuple[str, ...]


@dataclass
class _Splitting:
    held: Float[Array, "p"]
    joints: dict[str, dict[str, float]] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)


def split_drives(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    chi: Float[Array, "p"],
    holds: Collection[str],
    groups: Sequence[Sequence[str]],
) -> DriveSplit:
    """Drive terms divided between the joints of a format and what is left.

    Args:
        holds: Which of Ia, Fv, Fs a joint has.
        groups: Coordinates of the joints that have them; a joint of several coordinates has one value.
    """
    index = {p.name: i for i, p in enumerate(parameters)}
    splitting = _Splitting(np.where([p.kind == "inertial" for p in parameters], chi, 0.0))
    place = {name: tuple(group) for group in groups for name in group}
    done: set[str] = set()
    for owner in dict.fromkeys(p.owner for p in parameters if p.kind == "drive"):
        on = _single(mechanism, owner)
        for symbol in holds:
            names = _owned(owner, symbol, index)
            if not names or on is None or len(place.get(on[0], ())) != 1:
                continue
            values = [float(chi[index[name]]) for name in names]
            mean = float(np.mean(values))
            splitting.held[[index[name] for name in names]] = mean
            if max(values) - min(values) <= 1e-12 * abs(mean):
                done |= set(names)
            terms = splitting.joints.setdefault(on[0], {})
            terms[symbol] = terms.get(symbol, 0.0) + mean * abs(on[1]) ** _HELD[symbol][1]
    others = [p.name for p in parameters if p.kind != "inertial" and p.name not in done]
    rest = tuple(name for name in others if chi[index[name]] != 0.0)
    return DriveSplit(splitting.joints, splitting.held, rest)


def rest_sentences(
    mechanism: Mechanism, parameters: Sequence[Parameter], split: DriveSplit, where: str
) -> list[str]:
    """What a format does not hold, one sentence for each kind of term."""
    kinds: dict[str, list[str]] = {}
    table = {p.name: p for p in parameters}
    for name in split.rest:
        parameter = table[name]
        plain = parameter.symbol.rstrip("+-")
        held = parameter.symbol != plain and plain in split.joints.get(parameter.owner, {})
        words = _WORDS.get(plain, "declared term") if parameter.kind == "drive" else "declared term"
        kinds.setdefault(f"difference of {words} between the directions" if held else words, []).append(name)
    return [f"{words}: {', '.join(names)} ({where})" for words, names in kinds.items()]


def _single(mechanism: Mechanism, owner: str) -> tuple[str, float] | None:
    """The only coordinate that an owner of drive terms moves with, and its ratio."""
    if owner in mechanism.coordinates:
        return owner, 1.0
    on = next(actuator.on for actuator in mechanism.actuators if actuator.name == owner)
    return next(iter(on.items())) if len(on) == 1 else None


def _owned(owner: str, symbol: str, index: Mapping[str, int]) -> list[str]:
    """The parameter itself, or the pair of both directions."""
    single = f"{symbol}_{owner}"
    if single in index:
        return [single]
    pair = [f"{s}_{owner}" for s in _PAIRS.get(symbol, ())]
    return pair if pair and all(name in index for name in pair) else []
