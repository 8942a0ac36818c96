"""From a robot and settings to the optimisation problem of its exciting motion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.base.base import BaseSet
from dynid.base.structural import structural_base
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.excitation.careful import careful_limits
from dynid.excitation.closed import check_start, joint_bounds
from dynid.excitation.collision import CollisionCheck, at_rest, collision_check, with_capsules
from dynid.excitation.floor import floor_height
from dynid.excitation.optimal.box import Blocks, Box, box_of
from dynid.excitation.optimal.criteria import Criterion, criterion_of
from dynid.excitation.optimal.families import Family, family_of
from dynid.excitation.optimal.paths import ClosedPath, Path, RobotStates, TreePath
from dynid.excitation.optimal.problem import Information, Problem
from dynid.excitation.optimal.soft import SoftLimit, SoftLimits
from dynid.excitation.optimal.soft_bodies import Workspace
from dynid.excitation.optimal.soft_joints import EffortLimits, FollowingJoints, Singularity
from dynid.excitation.optimal.starts import Starter, feasible_start
from dynid.excitation.platform_series import guided, led_body
from dynid.experiment.experiment import Experiment
from dynid.experiment.tasks import ExciteSettings
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.variant import variant
from dynid.problem import as_asked
from dynid.projection.model import effort_model

TERMS = {"fourier": 5, "spline": 12, "points": 12}
_REFERENCE_SEED = 20240229
_REFERENCES = 8
_LANES = 64
_SOFT_SPEED = 0.02  # of the largest speed: width over which the friction discontinuity is smoothed
_MOST_CONDITION = 30.0
_STATIC = 400


@dataclass(frozen=True)
class PlanInputs:
    """Inputs of the plan: small and serialisable, so that every process builds the same plan.

    Attributes:
        robot: Built-in name or path; a Mechanism in this process alone.
        noise: Per actuator; rate: sampling rate, in [Hz]; assumed: both as text.
        terms: Its drive terms, where existing data have others than the description.
        chi: All standard parameters, with which efforts are predicted; None: they are not.
        identified: Whether `chi` is from the existing result, not from the description.
        known: Information matrix of existing data, row by row; None: none.
    """

    robot: str | Mechanism
    settings: ExciteSettings
    noise: tuple[float, ...]
    rate: float
    assumed: str
    terms: Experiment
    chi: tuple[float, ...] | None = None
    known: tuple[tuple[float, ...], ...] | None = None
    identified: bool = False


@dataclass(frozen=True, eq=False)
class Plan:
    """An optimisation problem and its parts.

    Attributes:
        mechanism: The robot; the robot of the path may have additional guiding coordinates.
        box: Limits as given; the problem keeps a margin to them.
        exact: Nonlinear limits, without margin and with exact (not smoothed) friction.
        plain: Information with exact friction.
    """

    mechanism: Mechanism
    base: BaseSet
    path: Path
    family: Family
    box: Box
    problem: Problem
    exact: SoftLimits | None
    plain: Information
    efforts: EffortLimits | None
    starter: Starter
    check: CollisionCheck

    def states(self, z: Float[Array, "v"], t: Float[Array, "n"]) -> RobotStates | None:
        """States of the robot of the path at some times of a motion."""
        x, B = self.problem.blocks.coefficients(z), self.family.matrices(t)
        return self.path.states((B[0] @ x, B[1] @ x, B[2] @ x))

    def robot_motion(self, states: RobotStates) -> tuple[Array, Array, Array]:
        """Positions and rates of the robot's own coordinates; guiding coordinates come after them."""
        n_q, n_v = len(self.mechanism.positions), len(self.mechanism.coordinates)
        return states.q[:, :n_q], states.dq[:, :n_v], states.ddq[:, :n_v]


def planned_robot(source: str | Mechanism, payloads: tuple[str, ...], terms: Experiment) -> Mechanism:
    """The robot with only the payloads that are mounted, these drive terms, and limits that can be real."""
    return careful_limits(variant(as_asked(load_robot(source), terms), payloads=payloads))


def planned_base(mechanism: Mechanism, settings: ExciteSettings) -> BaseSet:
    """Base parameters of the robot with the planned ties and payloads."""
    model = effort_model()
    rows = None if mechanism.is_closed else model.directions(mechanism)
    loads = (settings.payloads,)
    return structural_base(
        mechanism, model, parameter_table(mechanism), rows, ties=settings.ties, loads=loads
    )


@dataclass(frozen=True, eq=False)
class _Space:
    """Where the robot may move: its path, family, limits of coordinates, and what it must not touch."""

    robot: Mechanism
    path: Path
    family: Family
    box: Box
    blocks: Blocks
    check: CollisionCheck


def _space(robot: Mechanism, settings: ExciteSettings, noise: Float[Array, "a"]) -> _Space:
    names = None
    along = settings.along or led_body(robot)
    if along:
        robot, names = guided(robot, along)
    shaped = with_capsules(robot, settings)
    robot = shaped.robot
    path: Path = ClosedPath(robot, noise, names) if robot.is_closed else TreePath(robot)
    family = family_of(settings.family, _terms(settings), settings.period)
    box, rest = _box(robot, path)
    blocks = Blocks(family, box.narrowed(settings.margin), rest)
    given = len(settings.home) == len(path.names)
    start = np.array(settings.home) if given else start_pose(path, blocks.box)
    floor = floor_height(path, settings, at_rest(path, start[None]))
    check = collision_check(path, settings, shaped, box.low[0], box.high[0], floor)
    return _Space(robot, path, family, box, blocks, check)


def _terms(settings: ExciteSettings) -> int:
    return settings.terms if settings.terms is not None else TERMS.get(settings.family, 5)


def assumed_floor(inputs: PlanInputs) -> float | None:
    """Height of the floor that a plan assumes, in [m]; None if it assumes none."""
    robot = planned_robot(inputs.robot, inputs.settings.payloads, inputs.terms)
    floor = _space(robot, inputs.settings, np.array(inputs.noise)).check.floor
    return floor.height if floor.assumed else None


def make_plan(inputs: PlanInputs) -> Plan:
    """Build the problem; the same inputs give the same plan in every process."""
    settings = inputs.settings
    mechanism = planned_robot(inputs.robot, settings.payloads, inputs.terms)
    base = planned_base(mechanism, settings)
    noise = np.array(inputs.noise)
    space = _space(mechanism, settings, noise)
    path, family, check = space.path, space.family, space.check
    samples = _samples(base, path, _terms(settings))
    chi = None if inputs.chi is None else np.array(inputs.chi)
    gentle = _soft(path, check, chi, settings, settings.margin, None)
    blocks = _resting(path, space.blocks, gentle, space.robot)
    first = Problem(
        blocks,
        Information(path, base, noise, mounted=settings.payloads),
        Criterion("logdet"),
        samples,
        gentle,
    )
    scale, softness = _reference(first)
    known = None if inputs.known is None else np.array(inputs.known)
    common: dict[str, Any] = {
        "scale": scale,
        "weight": inputs.rate * settings.period * settings.repeats / samples,
        "known": known,
        "mounted": settings.payloads,
    }
    information = Information(path, base, noise, softness=softness, **common)
    criterion = criterion_of(settings.criterion or "", settings.sigma, base.names)
    soft = _soft(path, check, chi, settings, settings.margin, softness)
    exact = _soft(path, check, chi, settings, 0.0, None)
    problem = Problem(blocks, information, criterion, samples, soft)
    plain = Information(path, base, noise, **common)
    efforts = None if chi is None else EffortLimits(path, chi, mounted=settings.payloads)
    starter = Starter(problem, plain, exact, settings.hops, settings.seed, settings.starts)
    return Plan(mechanism, base, path, family, space.box, problem, exact, plain, efforts, starter, check)


def start_pose(path: Path, box: Box) -> Float[Array, "j"]:
    """The start pose of the description, inside the limits; zero where it gives none."""
    robot = path.mechanism
    if robot.is_closed:
        return np.asarray(assembly_of(robot).start[[robot.positions.index(name) for name in path.names]])
    pose = np.array([robot.start.get(name, 0.0) for name in path.names])
    return np.asarray(np.clip(pose, box.low[0], box.high[0]))


def make_starter(inputs: PlanInputs) -> Starter:
    """The starter that a worker process runs."""
    return make_plan(inputs).starter


def _box(robot: Mechanism, path: Path) -> tuple[Box, Float[Array, "j"] | None]:
    """Limits of the moved coordinates, and the rest pose of a closed robot: its start pose."""
    if not robot.is_closed:
        return box_of(robot, path.names), None
    check_start(robot)
    # Joints without limits move no farther than a random walk through the workspace.
    bounds = joint_bounds(robot, path.names)
    none = np.full(len(path.names), np.inf)
    for j, name in enumerate(path.names):
        if "jerk" in robot.limits.get(name, {}):
            none[j] = float(robot.limits[name]["jerk"])
    high = np.array([bounds.high, bounds.dq, bounds.ddq, none])
    low = np.array([bounds.low, -bounds.dq, -bounds.ddq, -none])
    start = assembly_of(robot).start
    return Box(path.names, low, high), start[[robot.positions.index(name) for name in path.names]]


def _samples(base: BaseSet, path: Path, terms: int) -> int:
    """Samples of the design: many more rows than parameters, and a well sampled series."""
    wanted = max(200, 24 * terms, -(-4 * len(base.indices) // max(1, len(path.rows))))
    return -(-wanted // _LANES) * _LANES


def _soft(
    path: Path,
    check: CollisionCheck,
    chi: Float[Array, "p"] | None,
    settings: ExciteSettings,
    margin: float,
    softness: Float[Array, "s"] | None,
) -> SoftLimits | None:
    """All nonlinear limits of this robot."""
    active: list[SoftLimit] = []
    joints, workspace = FollowingJoints(path), Workspace(path)
    active += [limit for limit in (joints, workspace, *check.limits) if limit]
    if chi is not None:
        efforts = EffortLimits(path, chi, settings.payloads, softness)
        active += [efforts] if efforts else []
    if isinstance(path, ClosedPath):
        active.append(Singularity(path, _most_condition(path.mechanism)))
    return SoftLimits(tuple(active), margin) if active else None


def _most_condition(robot: Mechanism) -> float:
    """The largest allowed condition number of poses."""
    most = robot.limits.get("singularity", {}).get("condition", _MOST_CONDITION)
    if isinstance(most, tuple) or most <= 1.0:
        raise InputError(
            f"condition number {most} is not a valid limit",
            file=robot.file,
            place="limits.singularity.condition",
            remedy="give a number above 1, e.g. 30",
        )
    return float(most)


def _resting(path: Path, blocks: Blocks, soft: SoftLimits | None, robot: Mechanism) -> Blocks:
    """A pose at which the robot can rest within all limits; an error if there is none."""
    rest = blocks.coefficients(blocks.rest)
    pose = (blocks.family.matrices(np.zeros(1))[0] @ rest)[0]
    if soft is None:
        return blocks
    poses = pose[None]
    if not robot.is_closed:
        rng = np.random.default_rng(_REFERENCE_SEED)
        low, high = blocks.box.low[0], blocks.box.high[0]
        poses = np.concatenate([poses, rng.uniform(low, high, (_STATIC, len(low)))])
    still = np.zeros_like(poses)
    at_rest = path.states((poses, still, still))
    states = None if at_rest is None else replace(at_rest, third=still)
    if states is None:
        raise InputError(
            "the start pose does not close the loops", file=robot.file, remedy="correct `start:`"
        )
    excess = soft.excess(states)
    worst = excess.max(axis=0)
    if worst[0] < 0.0:
        return blocks
    best = int(np.argmin(worst))
    if worst[best] >= 0.0:
        limit = int(np.argmax(excess[:, best]))
        side = soft.sides[limit]
        raise InputError(
            f"the limit on {side.text} cannot be met: even at rest, the best of"
            f" {len(poses)} poses exceeds it by {100 * worst[best]:.3g} %"
            f" (including a margin of {100 * soft.spare:.3g} %)",
            file=robot.file,
            place="limits",
            remedy="widen this limit, or correct the start pose, the prior model or the capsules"
            + ("; --clearance or --no-collisions" if side.kind in ("distance", "height") else ""),
        )
    return Blocks(blocks.family, blocks.box, poses[best])


def _reference(problem: Problem) -> tuple[Float[Array, "b"], Float[Array, "s"]]:
    """Norm of every column, and largest speeds, over some feasible random motions."""
    rng = np.random.default_rng(_REFERENCE_SEED)
    information = problem.information
    robot = information.path.mechanism
    squares, speeds = np.zeros(len(information.scale)), np.zeros(sum(robot.actuator_map.shape))
    count = 0
    for _ in range(_REFERENCES):
        states = problem.states(feasible_start(problem, rng))
        if states is None:
            continue
        count += 1
        squares += np.sum(information.rows_of(states) ** 2, axis=0)
        rates = np.hstack([states.dq, states.dq @ robot.actuator_map.T])
        speeds = np.maximum(speeds, np.abs(rates).max(axis=0))
    if not count:
        raise InputError(
            f"no motion of robot '{robot.name}' was found that satisfies loop closure and limits",
            file=robot.file,
            remedy="check `start:` and `limits:`: the start pose must be inside the limits and not singular",
        )
    scale = np.sqrt(squares / count)
    return np.where(scale > 0.0, scale, 1.0), _SOFT_SPEED * speeds
