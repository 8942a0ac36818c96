"""Lengths of like parts of a closed robot, which are equal by construction: one dimension for all its legs.

A file without symbols gives each leg numbers of its own, but a base radius is wrong in all of them at once. A
part is a frame on a body: where a joint or a loop end is, at p from the origin of the body, or a rod. Parts
are alike if the joints between the base and their bodies are of the same kinds, and if |p| is the same.
They change together by one factor along their own directions:

p_i -> p_i (1 + s / |p|)

Where all legs have the same coordinates on bodies of their own, each coordinate is one length. A tree needs
no groups: each of its legs shows its own length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import DynidError

if TYPE_CHECKING:
    from dynid.mechanism.joint import Loop
    from dynid.mechanism.mechanism import Mechanism

WORDS = ("distance of ", "length of ")  # how a name of like lengths begins, of places and of rods
_EQUAL = 1e-3  # of a length: coordinates of legs that are turned against each other are rounded
_FACTOR = 1.0 + 1e-3  # of a dimension: shows which parts it moves, and that they move along p
_ROUNDING = 1e-9  # [m]: does not move


@dataclass(frozen=True, eq=False)
class Part:
    """A joint or loop end on a body, or a rod.

    Attributes:
        owner: Name of the joint or loop.
        body: On which it is; empty for a rod.
        kinds: Of the joints between the base and the body, or of both ends of a rod.
        p: Its place in the frame of the body, shape (3,), or the length of the rod, shape (1,), in [m].
    """

    owner: str
    body: str
    kinds: tuple[str, ...]
    p: Float[Array, "c"]


@dataclass(frozen=True)
class LikeLengths:
    """Dimensions of like parts, and the length [m] that all parts have."""

    names: tuple[str, ...]
    length: float


# By the identities of joints and loops, which an entry keeps alive: drive terms change no length.
_KNOWN: dict[tuple[int, int], tuple[Mechanism, Mapping[str, LikeLengths]]] = {}
_MOST_KEPT = 8


def like_lengths(mechanism: Mechanism) -> Mapping[str, LikeLengths]:
    """Lengths that several legs have in common, but no symbol, by name; none without loops."""
    if not mechanism.loops or mechanism.rebuild is None:
        return {}
    parts = id(mechanism.joints), id(mechanism.loops)
    known = _KNOWN.pop(parts, None) or (mechanism, dict(_found(mechanism)))
    while len(_KNOWN) >= _MOST_KEPT:
        _KNOWN.pop(next(iter(_KNOWN)), None)
    _KNOWN[parts] = known
    return known[1]


def _found(mechanism: Mechanism) -> Iterator[tuple[str, LikeLengths]]:
    parts = _parts_at(mechanism, ())
    moved = {name: _moved(parts, _parts_at(mechanism, (name,))) for name in mechanism.geometry}
    lengths = {name: at for name, at in moved.items() if name not in mechanism.angles}
    for group in _alike(parts):
        for along, p in _lengths(parts, group):
            names = tuple(
                name for name, at in lengths.items() if any(np.any(at[k] * p[k]) for k in at if k in p)
            )
            # One name alone is tested as it is.
            if len(names) > 1 and _scales(p, _moved(parts, _parts_at(mechanism, names))):
                length = float(np.linalg.norm(p[group[0]]))
                yield _words([parts[k] for k in group]) + along, LikeLengths(names, length)


def _parts_at(mechanism: Mechanism, longer: Sequence[str]) -> list[Part]:
    """Parts of the robot with some dimensions larger by a factor; none where it cannot be built."""
    assert mechanism.rebuild is not None  # noqa: S101 (asked before)
    geometry = mechanism.geometry
    try:
        robot = mechanism.rebuild({**geometry, **{name: _FACTOR * geometry[name] for name in longer}})
    except DynidError:
        return []
    chains: dict[str, tuple[str, ...]] = {}
    parts = []
    for joint in robot.joints:
        above = chains.get(joint.parent, ())
        chains[joint.child] = (*above, joint.kind.value)
        parts.append(Part(joint.name, joint.parent, above, joint.placement.p))
        parts.append(Part(joint.name, joint.child, chains[joint.child], joint.body.inverse().p))
    for loop in robot.loops:
        parts += _of_loop(loop, chains)
    return parts


def _of_loop(loop: Loop, chains: Mapping[str, tuple[str, ...]]) -> Iterator[Part]:
    a, b = chains.get(loop.body_a, ()), chains.get(loop.body_b, ())
    yield Part(loop.name, loop.body_a, a, loop.a.p)
    yield Part(loop.name, loop.body_b, b, loop.b.p)
    if loop.length is not None:
        yield Part(loop.name, "", ("rod", *a, "to", *b), np.array([loop.length]))


def _moved(parts: Sequence[Part], others: Sequence[Part]) -> dict[int, Array]:
    """Number of each part that another robot has elsewhere, and by how much, in [m]."""
    steps = {k: other.p - part.p for k, (part, other) in enumerate(zip(parts, others, strict=False))}
    return {k: step for k, step in steps.items() if np.max(np.abs(step)) > _ROUNDING}


def _alike(parts: Sequence[Part]) -> Iterator[list[int]]:
    """Numbers of parts on like bodies at the same distance from their origins."""
    size = [float(np.linalg.norm(part.p)) for part in parts]
    order = sorted(range(len(parts)), key=lambda k: (bool(parts[k].body), parts[k].kinds, size[k]))
    group: list[int] = []
    for k in order:
        last = group[-1] if group else k
        like = parts[k].kinds == parts[last].kinds and bool(parts[k].body) == bool(parts[last].body)
        if not like or size[k] - size[last] > _EQUAL * size[k]:
            yield from [sorted(group)] if len(group) > 1 else []
            group = []
        group += [k] if size[k] > 0.0 else []
    yield from [sorted(group)] if len(group) > 1 else []


def _lengths(
    parts: Sequence[Part], group: Sequence[int]
) -> Iterator[tuple[str, dict[int, Float[Array, "c"]]]]:
    """What the parts of a group have in common: an axis in words, and the vector along it of each part.

    On bodies of their own these are single coordinates, if all have the same; else the whole of p. On one
    body a coordinate that all have is left out: its change moves them all.
    """
    p = np.array([parts[k].p for k in group])
    sizes = np.abs(p)
    same = np.ptp(sizes, axis=0) <= _EQUAL * np.max(sizes)
    axes = np.flatnonzero(np.max(sizes, axis=0) > _EQUAL * np.max(sizes))
    if len({parts[k].body for k in group}) == 1:
        p = np.where(np.ptp(p, axis=0) > _ROUNDING, p, 0.0) if p.shape[1] > 1 else p
    elif np.all(same) and len(axes) > 1:
        for i in axes:
            yield f" along {'xyz'[i]}", dict(zip(group, p * (np.arange(3) == i), strict=True))
        return
    yield "", dict(zip(group, p, strict=True))


def _scales(p: Mapping[int, Float[Array, "c"]], moved: Mapping[int, Array]) -> bool:
    """Whether all parts of a group move along p by the same factor, and no others."""
    if moved.keys() != p.keys():
        return False
    return all(np.allclose(moved[k], (_FACTOR - 1.0) * x, rtol=0.0, atol=_ROUNDING) for k, x in p.items())


def _words(group: Sequence[Part]) -> str:
    owners = ", ".join(dict.fromkeys(part.owner for part in group))
    bodies = ", ".join(dict.fromkeys(part.body for part in group))
    return f"{WORDS[0]}{owners} from {bodies}" if bodies else f"{WORDS[1]}{owners}"
