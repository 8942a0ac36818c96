"""Do measured poses contradict the description of the cables? Pulleys, attachments, frames of the pose.

At a measured pose the description gives the length L of each cable. A locked cable keeps its length within a
run, one on a winch with an encoder has the logged length, so that

    rho = L(pose) - l,   less its mean over the run

is noise if the description is right: a constant error of l is not the subject here. A dimension that is off
by s adds z s with z = -dL/ds, and a frame of the measured pose that is displaced by a small motion s adds
dL/dpose s. All suspects compete by forward selection (`fault_selection.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dynid.base.grouping import listed
from dynid.checks.check import Answer, Finished
from dynid.checks.fault_columns import Suspect
from dynid.checks.fault_selection import flagged_suspects
from dynid.checks.residual_texts import confounded, inseparable
from dynid.common.arrays import Array, Float
from dynid.common.change import in_file
from dynid.common.errors import DynidError
from dynid.common.notices import Notice, notice
from dynid.kinematics.locked_motion import cable_shapes
from dynid.mechanism.cable import Cable, cable_coordinates
from dynid.mechanism.description import at_values, unit_of, unknown_change
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.motion.motion import Motion
from dynid.problem import Problem
from dynid.projection.factor import factor_rows
from dynid.projection.projection import Group, System
from dynid.statistics.covariance import block_seconds
from dynid.statistics.estimate import NOT_TESTED, ResidualTest

DIMENSION, FRAME = "cable dimension", "frame"
_STEP = 1e-6  # m or rad: half the distance of differences; lengths are exact to 1e-16
_VISIBLE, _TIMES = 1e-3, 3.3  # m or rad; standard deviations at the level of these tests
_MOST_SAMPLES = 3000  # of all logs: more are averaged
_MOST_CLUSTERS = 64
_LEAST_RUNS = 6  # whose lengths are compared with each other: each is one cluster
# Smaller errors hardly change a parameter; larger ones are no longer linear.
_SIZE, _SIZE_MOST = 5e-4, 0.1  # m or rad
_ROUNDING = 1e-9  # m: of lengths from poses without noise
_SAME = 1e-6  # of a column: a coordinate of one cable that is a named dimension already


@dataclass(frozen=True, eq=False)
class _Part:
    """Samples of one run: measured poses, and what the lengths there miss, in [m].

    Attributes:
        dt: Time between samples, each a mean over so long, in [s].
        compared: Whether its lengths can be compared with those of other runs.
    """

    log: str
    run: int
    dt: float
    q: Float[Array, "n q"]
    missed: Float[Array, "n c"]
    compared: bool

    @property
    def seconds(self) -> float:
        """Its duration."""
        return self.dt * len(self.q)


def poses(finished: Finished) -> Iterator[Answer]:
    """Tests of the dimensions of cables, where poses and the changes of lengths are measured."""
    problem = finished.fit.problem
    robot = problem.mechanism
    if not robot.cables:
        return
    untested = finished.choices.get(NOT_TESTED, "")
    parts, why = _parts(problem)
    if not parts:
        words = f"dimensions of cables by their lengths ({why})"
        yield NOT_TESTED, f"{untested}; {words}" if untested else words
        return
    suspects, columns = _suspects(robot, np.concatenate([part.q for part in parts]))
    flagged, first = _judged(robot, parts, suspects, columns)
    warned = {suspect.columns: suspect for suspect in flagged}
    final = {**first, **warned}
    if flagged:
        notices = [_notice(robot, suspect) for suspect in flagged]
        remedies = dict.fromkeys(remark.remedy for remark in notices)
        symbols = [
            name for remark in notices if remark.change for name in remark.change["unknown"]["symbols"]
        ]
        yield replace(
            notices[0],
            text="; ".join(remark.text for remark in notices),
            remedy="; ".join(remedies),
            change={"unknown": {"symbols": symbols}} if symbols else {},
        )
    for suspect in final.values():
        yield _test(suspect, suspect.columns in warned)
    shown = f"flagged: {', '.join(s.about for s in flagged)}" if flagged else "none flagged"
    yield "cable lengths at the measured poses", f"{len(final)} tests, {shown}{inseparable(first.values())}"
    hidden = [s.about for s in suspects if s.test == DIMENSION and not _seen(first.get(s.columns))]
    if hidden:
        words = f"errors of 1 mm or 1 mrad of {listed(hidden)} (noise of the poses hides them)"
        yield NOT_TESTED, f"{untested}; {words}" if untested else words


def _seen(result: Suspect | None) -> bool:
    """Whether an error of a millimetre or milliradian would be found in at least half of such logs."""
    return result is not None and _TIMES * float(result.sigma[0]) < _VISIBLE


def _parts(problem: Problem) -> tuple[list[_Part], str]:
    """Runs with measured poses, averaged over a few samples each; none: the reason in words."""
    robot = problem.mechanism
    pose = {name for name in robot.positions if name not in cable_coordinates(robot)}
    if robot.loops or robot.couplings:
        return [], "the robot has loops besides its cables"
    sources = [source for source in problem.sources if pose <= set(source.motion.log.position_names)]
    if not sources:
        return [], "the pose is not measured as a whole"
    total = sum(b - a for source in sources for a, b in source.motion.usable())
    mean_of = max(1, -(-total // _MOST_SAMPLES))
    parts: list[_Part] = []
    for source in sources:
        parts += _of_log(problem, source.motion, mean_of)
    measured = any(_measured(problem, source.motion) for source in sources)
    return parts, "the runs are too short" if measured else "the lengths of moving cables are not measured"


def _measured(problem: Problem, motion: Motion) -> bool:
    """Whether lengths are logged, or do not change within a run."""
    logged = {cable.name for cable in problem.mechanism.cables} & set(motion.log.position_names)
    return bool(logged) or problem.case.moves_freely


def _of_log(problem: Problem, motion: Motion, mean_of: int) -> list[_Part]:
    """Runs of one log. Given lengths have one unknown zero for all runs, others one for each run."""
    robot, log = problem.mechanism, motion.log
    logged = [c for c, cable in enumerate(robot.cables) if cable.name in log.position_names]
    if not _measured(problem, motion):
        return []
    pieces = [(run, a, b) for run, (a, b) in enumerate(motion.usable()) if b - a >= mean_of]
    given = log.lengths if len(pieces) >= _LEAST_RUNS else None
    parts = []
    for run, a, b in pieces:
        measured = motion.states(a, b)[0]
        q = np.zeros((len(measured), len(robot.positions)))
        for i, name in enumerate(log.position_names):
            q[:, robot.positions.index(name)] = measured[:, i]
        missed = _lengths(robot, q)
        for c in logged:
            missed[:, c] -= measured[:, log.position_names.index(robot.cables[c].name)]
        if given is not None:
            missed -= given[next(s for s, (low, high) in enumerate(log.segments) if low <= a < high)]
        n = len(q) // mean_of * mean_of
        means = missed[:n].reshape(-1, mean_of, missed.shape[1]).mean(axis=1)
        parts.append(
            _Part(log.name, run, mean_of * log.dt, q[mean_of // 2 : n : mean_of], means, given is not None)
        )
    return parts


def _lengths(robot: Mechanism, q: Float[Array, "n q"]) -> Float[Array, "n c"]:
    """Length of each cable from its entry point to its attachment, in [m]."""
    return np.stack([shape.length for _, shape, _, _ in cable_shapes(robot, q)], axis=1)


def _without_means(parts: Sequence[_Part], values: Sequence[Float[Array, "... n c"]]) -> list[Array]:
    """Values of all runs less their mean: over each run, or over all runs of a log with given lengths."""
    means = [value.mean(axis=-2, keepdims=True) for value in values]
    for log in {part.log for part in parts if part.compared}:
        in_log = [k for k, part in enumerate(parts) if part.log == log]
        together = np.concatenate([values[k] for k in in_log], axis=-2).mean(axis=-2, keepdims=True)
        for k in in_log:
            means[k] = together
    return [value - mean for value, mean in zip(values, means, strict=True)]


def _suspects(robot: Mechanism, q: Float[Array, "n q"]) -> tuple[list[Suspect], Float[Array, "t n c"]]:
    """All suspects with their columns numbered from zero; the columns at all samples."""
    suspects: list[Suspect] = []
    columns: list[Array] = []
    for name, (high, low) in _pairs(robot):
        slope = (_lengths(low, q) - _lengths(high, q)) / (2.0 * _STEP)
        if np.any(slope) and not any(_alike(slope, other) for other in columns):
            unit = unit_of(robot, name) if name in robot.geometry else "m"
            suspects.append(Suspect(DIMENSION, name, (len(columns),), unit))
            columns.append(slope)
    for about, pushes in _frames(robot):
        at = tuple(range(len(columns), len(columns) + len(pushes)))
        suspects.append(Suspect(FRAME, about, at, "m or rad"))
        columns += [
            (_lengths(robot, p(q, _STEP)) - _lengths(robot, p(q, -_STEP))) / (2.0 * _STEP) for p in pushes
        ]
    return suspects, np.array(columns)


def _alike(a: Float[Array, "n c"], b: Float[Array, "n c"]) -> bool:
    return float(np.abs(a - b).max()) < _SAME * float(np.abs(b).max())


def _pairs(robot: Mechanism) -> Iterator[tuple[str, tuple[Mechanism, Mechanism]]]:
    """The robot with each dimension larger and smaller: named ones, then single coordinates of cables."""
    for name, value in robot.geometry.items() if robot.rebuild is not None else ():
        try:
            yield name, (at_values(robot, {name: value + _STEP}), at_values(robot, {name: value - _STEP}))
        except DynidError:
            continue
    for k, cable in enumerate(robot.cables):
        for name, changed in _coordinates(cable):
            if name in robot.geometry:
                continue
            high, low = (
                replace(robot, cables=(*robot.cables[:k], changed(sign * _STEP), *robot.cables[k + 1 :]))
                for sign in (1.0, -1.0)
            )
            yield name, (high, low)


def _coordinates(cable: Cable) -> Iterator[tuple[str, Callable[[float], Cable]]]:
    """Coordinates of both ends of a cable, and its radius: the cable with that much more of it."""
    for axis, e in zip("xyz", np.eye(3), strict=True):
        yield f"from{axis}_{cable.name}", partial(_moved, cable, e, 0.0 * e)
        yield f"to{axis}_{cable.name}", partial(_moved, cable, 0.0 * e, e)
    if cable.radius > 0.0:
        yield f"radius_{cable.name}", lambda s: replace(cable, radius=cable.radius + s)


def _moved(cable: Cable, entry: Float[Array, "3"], end: Float[Array, "3"], s: float) -> Cable:
    return replace(cable, D=cable.D + s * entry, A=cable.A + s * end)


_Push = Callable[[Float[Array, "n q"], float], Float[Array, "n q"]]


def _frames(robot: Mechanism) -> Iterator[tuple[str, list[_Push]]]:
    """Displaced frames of measured free bodies: six small motions in the base, and on the body."""
    for joint in robot.joints:
        if joint.kind is JointKind.FREE:
            at = [robot.positions.index(name) for name in joint.positions]
            for about, on_body in (
                (f"the pose of '{joint.child}' in the base", False),
                (f"the pose on '{joint.child}'", True),
            ):
                yield about, [_displacement(at, i, on_body) for i in range(6)]


def _displacement(at: Sequence[int], i: int, on_body: bool) -> _Push:
    """The i-th small motion (three shifts, three turns) of a free body, along base or body axes."""

    def push(q: Float[Array, "n q"], s: float) -> Float[Array, "n q"]:
        other, e = q.copy(), np.zeros(3)
        e[i % 3] = s
        p, w, v = q[:, at[:3]], q[:, at[3:4]], q[:, at[4:7]]
        if i < 3:
            other[:, at[:3]] = p + (_rotated(w, v, e) if on_body else e)
            return other
        turn = 0.5 * e  # of the quaternion, to first order
        across = np.cross(v, turn) if on_body else np.cross(turn, v)
        other[:, at[3:4]] = w - (v @ turn)[:, None]
        other[:, at[4:7]] = v + w * turn + across
        if not on_body:
            other[:, at[:3]] = p + np.cross(e, p)
        return other

    return push


def _rotated(w: Float[Array, "n 1"], v: Float[Array, "n 3"], e: Float[Array, "3"]) -> Float[Array, "n 3"]:
    """A vector of the body frame in base axes."""
    across = 2.0 * np.cross(v, e)
    return np.asarray(e + w * across + np.cross(v, across))


def _judged(
    robot: Mechanism, parts: Sequence[_Part], suspects: Sequence[Suspect], columns: Float[Array, "t n c"]
) -> tuple[list[Suspect], dict[tuple[int, ...], Suspect]]:
    """Flagged suspects, and the first result of each by its columns."""
    total = sum(part.seconds for part in parts)
    seconds = max(block_seconds(total), total / _MOST_CLUSTERS)
    ends = np.cumsum([len(part.q) for part in parts])[:-1]
    Z = _without_means(parts, np.split(columns, ends, axis=1))
    rho = _without_means(parts, [part.missed for part in parts])
    system = System(
        tuple(Parameter(f"test {i + 1}", "test", "", "", "test") for i in range(len(columns))),
        tuple(_groups(robot, parts, Z, rho, seconds)),
    )
    weights = np.array([1.0 / max(_rms(group), _ROUNDING) for group in system.groups])

    def relevant(suspect: Suspect) -> bool:
        return bool(_SIZE < float(np.max(np.abs(suspect.size))) < _SIZE_MOST)

    return flagged_suspects(system, weights, suspects, len(columns), relevant, seconds)


def _groups(
    robot: Mechanism,
    parts: Sequence[_Part],
    Z: Sequence[Float[Array, "t n c"]],
    rho: Sequence[Float[Array, "n c"]],
    seconds: float,
) -> Iterator[Group]:
    """One group for each cable and log: what its length misses, in blocks of consecutive samples."""
    for log in dict.fromkeys(part.log for part in parts):
        in_log = [k for k, part in enumerate(parts) if part.log == log]
        # The error of a given length is the same in all of a run: then the run is one block.
        counts = [1 if parts[k].compared else max(1, round(parts[k].seconds / seconds)) for k in in_log]
        blocks = [
            (parts[k].run, Z[k][:, rows], rho[k][rows])
            for k, count in zip(in_log, counts, strict=True)
            for rows in np.array_split(np.arange(len(rho[k])), min(count, len(rho[k])))
        ]
        for c, cable in enumerate(robot.cables):
            yield Group(
                cable.name,
                log,
                "m",
                np.arange(len(Z[0])),
                tuple(factor_rows(z[:, :, c].T, y[:, c]) for _, z, y in blocks),
                runs=np.array([run for run, _, _ in blocks]),
                seconds=seconds,
            )


def _rms(group: Group) -> float:
    return float(np.sqrt(sum(float(block.Y @ block.Y) for block in group.blocks) / max(group.n_rows, 1)))


def _test(suspect: Suspect, warned: bool) -> ResidualTest:
    single = suspect.test == DIMENSION
    value = float(suspect.size[0] if single else np.linalg.norm(suspect.size))
    half = suspect.half
    return ResidualTest(
        test=suspect.test,
        about=suspect.about,
        value=value,
        unit=suspect.unit,
        ci95=(value - half, value + half) if single else None,
        p_value=suspect.p_value,
        warned=warned,
        note=confounded(suspect).removeprefix("; "),
        explains=min(suspect.explains, 1.0),
    )


def _notice(robot: Mechanism, suspect: Suspect) -> Notice:
    if suspect.test == FRAME:
        places = dict(zip(suspect.places, suspect.size.tolist(), strict=True))
        shift, turn = (
            float(np.linalg.norm([places.get(i, 0.0) for i in range(first, first + 3)])) for first in (0, 3)
        )
        said = notice("cable-misfit", "frame", about=suspect.about, shift=1e3 * shift, turn=np.rad2deg(turn))
    else:
        named = robot.rebuild is not None and suspect.about in robot.geometry
        change = unknown_change(suspect.about) if named else {}
        find = f", or estimate it with the parameters: {in_file(change)}" if named else ""
        said = notice(
            "cable-misfit",
            name=suspect.about,
            size=1e3 * float(suspect.size[0]),
            half=1e3 * suspect.half,
            unit=f"m{suspect.unit}",
            find=find,
            change=change,
        )
    return replace(said, text=said.text + confounded(suspect))
