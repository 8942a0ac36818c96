"""The robot as simple shapes in the frames of its bodies, and these frames along a log.

Motion of all joints at the samples of a log that are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.paged import in_order, ranges, release
from dynid.kinematics.coordinates import CoordinateMap, States
from dynid.kinematics.tree import body_poses, tree_of
from dynid.mechanism.cable import cable_coordinates, held_body
from dynid.mechanism.frame import quaternion_of
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import BASE, Mechanism
from dynid.motion.motion import Motion
from dynid.problem import Problem
from dynid.projection.kinematics import kinematics_along
from dynid.statistics.estimate_parts import Signals

POSES = 200  # of an animation
_VISIBLE = 1e-6  # m: shorter links are not drawn


def robot_shapes(mechanism: Mechanism, described_ends: bool = False) -> dict[str, Any]:
    """Links, capsules, cables and joints; a body is its number in the tree, the base -1.

    Args:
        described_ends: Links without another point end at the centre of mass that the description gives.
    """
    tree = tree_of(mechanism)
    index = {name: i for i, name in enumerate(tree.body_names)} | {BASE: -1}
    # Bodies of joints that only carry the length of a cable.
    massless = {joint.child for joint in mechanism.joints if joint.name in cable_coordinates(mechanism)}
    points: dict[int, list[Any]] = {}

    def add(body: str, place: Float[Array, "3"]) -> None:
        if body not in massless:
            points.setdefault(index[body], []).append(np.asarray(place, float))

    for joint in mechanism.joints:
        if joint.kind != JointKind.FREE and joint.child not in massless:
            add(joint.parent, joint.placement.p)
            add(joint.child, -joint.body.R.T @ joint.body.p)
    for loop in mechanism.loops:
        add(loop.body_a, loop.a.p)
        add(loop.body_b, loop.b.p)
    for cable in mechanism.cables:
        add(cable.body_to, cable.A)
        if cable.body_from != BASE:
            add(cable.body_from, cable.D)
    for name, body in mechanism.bodies.items() if described_ends else ():
        mass = body.prior.get("M", 0.0)
        if mass > 0.0 and name not in mechanism.capsules and len(points.get(index[name], [])) < 2:
            add(name, np.array([body.prior.get(symbol, 0.0) for symbol in ("MX", "MY", "MZ")]) / mass)
    return {
        "bodies": list(tree.body_names),
        "links": _links(points),
        "capsules": [
            {"body": index[body], "a": list(capsule.start), "b": list(capsule.end), "r": capsule.radius}
            for body, several in mechanism.capsules.items()
            for capsule in several
        ],
        "rods": _rods(mechanism, index, massless),
        "cables": [
            {"name": wire.name, "from": index[wire.body_from], "a": list(wire.D), "to": index[wire.body_to]}
            | {"b": list(wire.A), "r": wire.radius, "axis": None if wire.axis is None else list(wire.axis)}
            for wire in mechanism.cables
        ],
        "joints": [*_joints(mechanism, index, massless), *_closures(mechanism, index)],
        "tip": index[tip_of(mechanism)],
        "up": upwards(mechanism).tolist(),
    }


def upwards(mechanism: Mechanism) -> Float[Array, "3"]:
    """Unit vector opposite to gravity, base frame; z without gravity."""
    size = float(np.linalg.norm(mechanism.gravity))
    return np.asarray(0.0 - mechanism.gravity / size) if size > 0.0 else np.array([0.0, 0.0, 1.0])


def links_length(shapes: Mapping[str, Any]) -> float:
    """Of all links of `robot_shapes` together, in [m]."""
    return sum(float(np.linalg.norm(np.subtract(link["b"], link["a"]))) for link in shapes["links"])


def tip_of(mechanism: Mechanism) -> str:
    """The body whose path is shown: the platform, else the body held by cables, else the last of the tree."""
    return "platform" if "platform" in mechanism.bodies else held_body(mechanism)


def _rods(mechanism: Mechanism, index: dict[str, int], massless: set[str]) -> list[dict[str, Any]]:
    """Lines between two bodies: rigid rods of loops, and the travel of slides."""
    ends = [
        (loop.body_a, loop.a.p, loop.body_b, loop.b.p) for loop in mechanism.loops if loop.length is not None
    ]
    ends += [
        (joint.parent, joint.placement.p, joint.child, -joint.body.R.T @ joint.body.p)
        for joint in mechanism.joints
        if joint.kind == JointKind.PRISMATIC and joint.child not in massless
    ]
    return [{"from": index[a], "a": list(p), "to": index[b], "b": list(q)} for a, p, b, q in ends]


def _links(points: dict[int, list[Any]]) -> list[dict[str, Any]]:
    """Lines from the first point of a body (its joint) to all others; a plate for three and more."""
    links: list[dict[str, Any]] = []
    for body, places in points.items():
        unlike = [places[0]]
        unlike += [p for p in places[1:] if min(np.linalg.norm(p - o) for o in unlike) > _VISIBLE]
        if body < 0:
            continue
        if len(unlike) > 2 and len(places) > 3:
            centre = np.mean(unlike, axis=0)
            links += [{"body": body, "a": centre.tolist(), "b": p.tolist()} for p in unlike]
        else:
            links += [{"body": body, "a": unlike[0].tolist(), "b": p.tolist()} for p in unlike[1:]]
    return links


def _joints(mechanism: Mechanism, index: dict[str, int], massless: set[str]) -> list[dict[str, Any]]:
    """Joints that move, at their place in the parent, with the effort that drives them."""
    driven = {name: actuator.name for actuator in mechanism.actuators for name in actuator.on}
    return [
        {
            "name": joint.name,
            "body": index[joint.parent],
            "at": list(joint.placement.p),
            "axis": list(joint.placement.R @ joint.axes[0]) if joint.axes else None,
            "slides": joint.kind == JointKind.PRISMATIC,
            "efforts": sorted({driven[name] for name in joint.coordinates if name in driven}),
            "coordinates": list(joint.coordinates),
        }
        for joint in mechanism.joints
        if joint.kind not in (JointKind.FIXED, JointKind.FREE) and joint.child not in massless
    ]


def _closures(mechanism: Mechanism, index: dict[str, int]) -> list[dict[str, Any]]:
    """Joints that close loops, as joints without an effort."""
    ends = [(loop.name, loop.body_a, loop.a.p) for loop in mechanism.loops]
    ends += [(loop.name, loop.body_b, loop.b.p) for loop in mechanism.loops if loop.length is not None]
    empty: dict[str, Any] = {"axis": None, "slides": False, "efforts": [], "coordinates": []}
    return [{"name": name, "body": index[body], "at": list(at), **empty} for name, body, at in ends]


def poses_along(mechanism: Mechanism, q: Float[Array, "n q"]) -> dict[str, Any]:
    """Origins [m] and quaternions of all bodies in the base frame at some poses.

    Returns:
        `p` of shape (n, b, 3) and `R` of shape (n, b, 4).
    """
    tree = tree_of(mechanism)
    R, p = body_poses(tree, q)
    return {"p": np.asarray(p), "R": np.asarray(quaternion_of(R))}


_BLOCK = 16384  # samples that are processed at a time
_MOST = 500  # samples drawn of a log


def drawn_rows(signals: Signals) -> Int[Array, "m"]:
    """Places in the signals of a log that are drawn: evenly spaced, without breaks between pieces."""
    rows = np.flatnonzero(np.isfinite(signals.t) & np.isfinite(signals.predicted).any(axis=1))
    return rows[:: max(1, -(-len(rows) // _MOST))]


def samples_at(motion: Motion, t: Float[Array, "m"]) -> Int[Array, "m"]:
    """Samples of a log at these times; empty where they cannot be assigned.

    A clock that restarts in each run divides log and times into the same number of pieces.
    """
    times, none = motion.log.t, np.zeros(0, dtype=np.int64)
    if len(times) < 2 or not len(t):
        return none
    recorded, asked = _pieces(times), _pieces(t)
    if len(recorded) > 1 and len(recorded) != len(asked):
        return none
    samples = []
    for (a, b), (c, d) in zip(recorded if len(recorded) > 1 else [(0, len(times))], asked, strict=True):
        # Range by range: a search in the whole clock would touch most of its pages.
        wanted = t[c:d] - 0.5 * motion.log.dt
        places = a + sum(np.searchsorted(times[a + i : a + j], wanted) for i, j in ranges(b - a))
        samples.append(np.clip(places, a, b - 1))
    return np.concatenate(samples).astype(np.int64)


def _pieces(t: Float[Array, "n"]) -> list[tuple[int, int]]:
    """Ranges in which times increase."""
    breaks: list[int] = []
    for a, b in ranges(len(t)):
        breaks += (a + 1 + np.flatnonzero(np.diff(t[a : b + 1]) <= 0.0)).tolist()
    return list(zip([0, *breaks], [*breaks, len(t)], strict=True))


def states_at(problem: Problem, motion: Motion, samples: Int[Array, "m"]) -> States | None:
    """Motion of all joints at increasing samples of a log; None where none of them is usable.

    The states have as many samples as those that lie inside the usable pieces.
    """
    kinematics = kinematics_along(problem.mechanism, motion)
    blocks = [
        (start, samples[(samples >= start) & (samples < min(high, start + _BLOCK))])
        for low, high in motion.usable()
        for start in range(low, high, _BLOCK)
    ]
    if isinstance(kinematics, CoordinateMap):
        # Between samples that are far apart nothing is filtered.
        near = [part for _, wanted in blocks for part in _groups(wanted, 2 * motion.reach)]
        parts = list(in_order(partial(_tree_states, kinematics, motion), near))
    else:
        parts = []
        for start, wanted in blocks:
            if len(wanted):
                states = motion.states(start, int(wanted[-1]) + 1)
                parts.append(kinematics.states(start, states, wanted - start))
                release()
    return _joined(parts) if parts else None


def _groups(samples: Int[Array, "m"], apart: int) -> list[Int[Array, "k"]]:
    """Increasing samples, divided where they are farther apart."""
    return np.split(samples, 1 + np.flatnonzero(np.diff(samples) > apart)) if len(samples) else []


def _tree_states(kinematics: CoordinateMap, motion: Motion, samples: Int[Array, "m"]) -> States:
    """Motion of the joints of a tree at increasing samples, which are near each other."""
    first, last = int(samples[0]), int(samples[-1])
    measured = tuple(x[samples - first] for x in motion.states(first, last + 1))
    return kinematics.states(first, measured)


def inside(motion: Motion, samples: Int[Array, "m"]) -> Int[Array, "k"]:
    """Places of the samples inside the usable pieces: those that `states_at` gives."""
    kept = np.zeros(len(samples), dtype=bool)
    for low, high in motion.usable():
        kept |= (samples >= low) & (samples < high)
    return np.flatnonzero(kept)


def _joined(parts: list[States]) -> States:
    if len(parts) == 1:
        return parts[0]
    columns = zip(*((part.q, part.dq, part.ddq, part.N, part.fine) for part in parts), strict=True)
    return States(*(np.concatenate(column) for column in columns))
