"""Other assemblies of a closed robot at a measured pose: where the log may be on another branch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dynid.checks.plausible_masses import reach as span
from dynid.common.arrays import Array, Float
from dynid.common.errors import DynidError
from dynid.common.notices import notice
from dynid.kinematics.assembly import Assembly, assembly_of
from dynid.kinematics.closure import moved
from dynid.kinematics.sensors import sensors_of
from dynid.kinematics.tracking import same_pose
from dynid.kinematics.tree import body_poses
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.statistics.estimate import ResidualTest
from dynid.validation.hypotheses import Hypothesis

_SEED = 20131104
_DRAWS = 160
_ITERATIONS = 40
_CLOSED = 1e-9  # m or rad
_AGREES = 0.02  # m or rad: redundant sensors may contradict a pose by so much
_APART = 0.05  # rad or m: joints that differ by more are named
_APART_METRES = 1e-3
MOST = 6
_MOST_FLIPPED = 12


def branch_hypotheses(
    mechanism: Mechanism, logs: tuple[Log, ...], _: Sequence[ResidualTest] = ()
) -> Iterator[Hypothesis]:
    """All logs on another branch; then one log that is on another branch than those before it."""
    if not mechanism.is_closed or mechanism.cables or any(log.origins for log in logs):
        return
    for pose, joints in _others(mechanism, logs[0]):
        start = dict(zip(mechanism.positions, pose.tolist(), strict=True))
        yield Hypothesis(
            notice("wrong-branch", names=_shown(joints)),
            replace(mechanism, start=start),
            logs,
            f"branch: {_shown(joints)}",
        )
    for i, log in enumerate(logs[1:], start=1):
        for pose, joints in _others(mechanism, log)[: MOST // 2]:
            elsewhere = replace(log, origins={log.segments[0][0]: pose})
            yield Hypothesis(
                notice("wrong-branch", "log", log=log.name, names=_shown(joints)),
                mechanism,
                tuple(elsewhere if k == i else other for k, other in enumerate(logs)),
                f"branch of log '{log.name}': {_shown(joints)}",
            )


def flipped_starts(mechanism: Mechanism, logs: tuple[Log, ...]) -> Iterator[Hypothesis]:
    """Joints that are not measured, bent the other way at the start: one after the other, and all."""
    measured = set(logs[0].position_names)
    turning = {joint.name for joint in mechanism.joints if joint.kind is JointKind.REVOLUTE}
    bent = [
        name for name, value in mechanism.start.items() if name not in measured and value and name in turning
    ]
    choices = [(name,) for name in bent[:_MOST_FLIPPED]] + ([tuple(bent)] if len(bent) > 1 else [])
    for flipped in choices:
        start = {name: -value if name in flipped else value for name, value in mechanism.start.items()}
        yield Hypothesis(
            notice("wrong-branch", names=_shown(list(flipped))),
            replace(mechanism, start=start),
            logs,
            f"another branch: {_shown(list(flipped))} bent the other way",
        )


def _shown(joints: list[str]) -> str:
    return ", ".join(joints[:4]) + (", ..." if len(joints) > 4 else "")


def _others(mechanism: Mechanism, log: Log) -> list[tuple[Float[Array, "q"], list[str]]]:
    """Other closed poses at the first sample of a log, the nearest first, and the joints that differ."""
    try:
        assembly = assembly_of(mechanism)
        current, others = other_poses(assembly, log)
    except (DynidError, np.linalg.LinAlgError):
        return []
    names = np.array(mechanism.positions)
    return [(pose, names[np.abs(pose - current) > _APART].tolist()) for pose in others]


def other_poses(assembly: Assembly, log: Log) -> tuple[Float[Array, "q"], list[Float[Array, "q"]]]:
    """The pose at the first sample, and others with the same measured coordinates.

    Newton from random values of the joints that are not measured: few branches of a robot are missed, but
    none is certain to be found. Those in which the fewest coordinates differ come first, then the nearest: a
    platform on the other side of its legs comes before those that are twisted between them.
    """
    mechanism = assembly.mechanism
    sensors = sensors_of(mechanism, log.position_names)
    wanted = np.repeat(log.q[log.segments[0][0]][None], _DRAWS, axis=0)
    current = assembly.follow(wanted[:1], sensors)
    rng = np.random.default_rng(_SEED)
    size = span(mechanism)
    slides = [member.kind in (JointKind.PRISMATIC, JointKind.FREE) for member in mechanism.joints]
    reach = [
        size if slide and not joint.is_angle(name) else np.pi
        for joint, slide in zip(mechanism.joints, slides, strict=True)
        for name in joint.coordinates
    ]
    step = rng.uniform(-1.0, 1.0, (_DRAWS, len(reach))) * np.array(reach)
    # Random attitudes seldom lead back to the present one: half of the draws displace platforms only.
    attitude = [
        joint.kind is JointKind.FREE and joint.is_angle(name)
        for joint in mechanism.joints
        for name in joint.coordinates
    ]
    step[::2, attitude] = 0.0
    step[:, sensors.velocity] = 0.0
    poses = assembly.close(
        moved(mechanism, np.repeat(current, _DRAWS, axis=0), step), wanted, sensors, _ITERATIONS
    )
    fine = np.isfinite(poses).all(axis=1) & (assembly.gaps(poses) < _CLOSED)
    fine &= np.abs(sensors.miss(poses, wanted)).max(axis=1) < (
        _AGREES if sensors.count > assembly.dof else _CLOSED
    )
    fine &= ~assembly.closure.turned_over(poses).any(axis=1)
    distinct: list[Float[Array, "q"]] = []
    for pose in _wound(assembly, current[0], poses[fine]):
        known = np.array([current[0], *distinct])
        if not same_pose(assembly.closure, known, np.repeat(pose[None], len(known), axis=0)).any():
            distinct.append(pose)
    away = [np.abs(pose - current[0]) for pose in distinct]
    order = sorted(range(len(away)), key=lambda k: (np.count_nonzero(away[k] > _APART), away[k].max()))
    distinct = [distinct[k] for k in order]
    return current[0], _elsewhere(assembly, current[0], distinct)[:MOST]


def _elsewhere(
    assembly: Assembly, current: Float[Array, "q"], poses: list[Float[Array, "q"]]
) -> list[Float[Array, "q"]]:
    """Poses whose joints and loops are at other places than those of `current` and of all before them.

    A link that is turned about the line between its joints has other angles, but its parameters absorb it.
    """
    if not poses:
        return []
    mechanism = assembly.mechanism
    R, p = body_poses(assembly.closure.tree, np.array([current, *poses]))
    index = {name: k for k, name in enumerate(mechanism.bodies)}
    ends = [(loop.body_a, loop.a.p) for loop in mechanism.loops] + [
        (loop.body_b, loop.b.p) for loop in mechanism.loops
    ]
    points = [p[:, index[body]] + R[:, index[body]] @ at for body, at in ends if body in index]
    places = np.stack([*p.transpose(1, 0, 2), *points], axis=1)
    distinct, seen = [], [places[0]]
    for pose, place in zip(poses, places[1:], strict=True):
        if min(float(np.abs(place - other).max()) for other in seen) > _APART_METRES:
            distinct.append(pose)
            seen.append(place)
    return distinct


def _wound(assembly: Assembly, current: Float[Array, "q"], poses: Float[Array, "n q"]) -> Float[Array, "n q"]:
    """Poses whose hinges are within half a turn of those of another one."""
    from dynid.kinematics.sensors import turning_positions

    hinges = turning_positions(assembly.mechanism)
    turn = 2.0 * np.pi
    poses[:, hinges] -= turn * np.round((poses[:, hinges] - current[hinges]) / turn)
    return poses
