"""Checks before an identification: unknown names, and efforts that do not exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice, at_level, doubt, notice
from dynid.motion.choose import extents
from dynid.motion.position_faults import refuse_steps

if TYPE_CHECKING:
    from dynid.experiment.experiment import Experiment
    from dynid.mechanism.mechanism import Mechanism
    from dynid.motion.log import Log
    from dynid.projection.projection import Directions

_MOVED = 0.01  # rad or m: a joint that is held moves less


def log_notices(robot: Mechanism, logs: Sequence[Log], experiment: Experiment) -> tuple[Notice, ...]:
    """Steps of positions, and efforts that logs lack or that never change, are noticed or refused."""
    steps = [notice for log in logs for notice in refuse_steps(log)]
    return (*steps, *_not_logged(robot, logs, experiment), *_refuse_silent(robot, logs, experiment))


def _not_logged(robot: Mechanism, logs: Sequence[Log], experiment: Experiment) -> tuple[Notice, ...]:
    """Efforts without a column in some log: their equations, and parameters only in them, are missing.

    Refused if the log has columns of efforts that belong to no motor: most likely they are the missing ones.
    """
    missing = {
        f"tau_{i + 1} ('{actuator.name}')": [log.name for log in logs if not log.effort_present[i]]
        for i, actuator in enumerate(robot.actuators)
        if not all(log.effort_present[i] for log in logs)
    }
    if not missing or experiment.efforts is not None or robot.mounted_model:
        return ()
    unmatched = next(
        ((log, remark) for log in logs for remark in log.notices if remark.code == "effort-unmatched"), None
    )
    if unmatched is not None:
        log, left = unmatched
        error = InputError(
            f"no column for {', '.join(missing)}, but {left.text}",
            file=log.file,
            remedy=f"{left.remedy}; list the efforts to use under `efforts:` if these motors have none",
        )
        return (doubt(error),)
    lacking = sorted({log for names in missing.values() for log in names})
    where = "the logs have" if len(lacking) == len(logs) else f"{', '.join(lacking)} has"
    first = next(iter(missing)).split(" ")[0]
    return (notice("effort-missing", where=where, names=", ".join(missing), first=first),)


def _refuse_silent(robot: Mechanism, logs: Sequence[Log], experiment: Experiment) -> tuple[Notice, ...]:
    """Constant efforts while the robot moves were not recorded; an error if all are constant.

    Efforts of a PD law are computed: zero at the start if all its gains are unknown.

    Returns:
        A warning where some are constant: it stops the use if their own joints move. Such an effort fits any
        model whose parameters of these joints are zero.
    """
    if any(log.servo is not None for log in logs):
        return ()
    asked = experiment.efforts
    used = [
        (i, name)
        for i, name in enumerate(logs[0].effort_names)
        if (asked is None or i + 1 in asked or name in asked) and any(log.effort_present[i] for log in logs)
    ]
    levels = {i: [_levels(log, i) for log in logs] for i, _ in used}
    still = [(i, name) for i, name in used if len(set().union(*levels[i])) == 1]
    moved = any(np.any(high > low) for low, high in (extents(log)[0] for log in logs))
    if moved and still and len(still) == len(used):
        remark = notice("constant-effort", names=_silent(still, levels))
        raise InputError(remark.text, file=logs[0].file or experiment.file, remedy=remark.remedy)
    dead = [(i, name) for i, name in used if any(_dead(robot, log, i) for log in logs)]
    resting = [pair for pair in still if pair not in dead] if moved else []
    kept = ", ".join(name for pair in used if pair not in dead for name in pair[1:])
    remarks = []
    if dead:
        where = _where(robot, logs, dead)
        shown = _silent(dead, levels) + where
        remarks.append(at_level(notice("constant-effort", "moving", names=shown, kept=kept), "bad"))
    if resting:
        remarks.append(at_level(notice("constant-effort", names=_silent(resting, levels)), "good"))
    return tuple(remarks)


def _silent(still: Sequence[tuple[int, str]], levels: Mapping[int, Sequence[set[float]]]) -> str:
    """Columns with their motors and their constant values."""
    values = {i: next(min(each) for each in levels[i] if len(each) == 1) for i, _ in still}
    return ", ".join(f"tau_{i + 1} ('{name}', always {values[i]:.4g})" for i, name in still)


def _where(robot: Mechanism, logs: Sequence[Log], dead: Sequence[tuple[int, str]]) -> str:
    """The logs with such an effort, if they are not all."""
    named = [log.name for log in logs if any(_dead(robot, log, i) for i, _ in dead)]
    return f" in {', '.join(named)}" if len(named) < len(logs) else ""


def _dead(robot: Mechanism, log: Log, i: int) -> bool:
    """Whether an effort never changes although a joint moves that its motor drives.

    Joints that nobody measures are taken to move with the others.
    """
    if len(_levels(log, i)) != 1:
        return False
    low, high = extents(log)[0]
    moved = [k for k, name in enumerate(log.position_names) if name in robot.actuators[i].on]
    sweep = (high - low)[moved] if moved else high - low
    return bool(np.any(sweep > _MOVED))


def _levels(log: Log, i: int) -> set[float]:
    """Values of one effort: its least and its largest, none where it is absent."""
    low, high = extents(log)[1][:, i].tolist()
    return {low, high} if log.effort_present[i] and low <= high else set()


def refuse_unknown(mechanism: Mechanism, logs: Sequence[Log], experiment: Experiment) -> None:
    """Names that the experiment uses and the robot does not have, with their place in the file."""
    wanted: list[tuple[str, str, Mapping[str, object]]]
    wanted = [("tie", tie.name, mechanism.ties) for tie in experiment.ties]
    wanted += [("payload", name, mechanism.payloads) for log in logs for name in log.payloads]
    for kind, name, valid in wanted:
        if name not in valid:
            also = " or of the experiment" if kind == "payload" else ""
            raise InputError(
                f"no {kind} '{name}' in robot '{mechanism.name}'" + nearest(name, valid),
                remedy=f"describe it under `{kind}s:` of the robot file{also}",
                **experiment.where(kind, name),
            )


def refuse_passive(robot: Mechanism, directions: Directions, experiment: Experiment) -> None:
    """Refuse an effort at a joint without motor."""
    for effort in experiment.efforts or ():
        if effort in robot.coordinates and effort not in directions.names:
            motors = [actuator.name for actuator in robot.actuators]
            if effort not in motors:
                raise InputError(
                    f"effort '{effort}': joint '{effort}' is passive (no motor)",
                    file=experiment.file,
                    place="efforts",
                    remedy=f"the motors are {', '.join(motors)}; a motor on this joint belongs under"
                    " `actuators:` of the robot",
                )


def refuse_single_motors(robot: Mechanism, directions: Directions, experiment: Experiment) -> None:
    """Refuse single efforts if there are more motors than degrees of freedom: no row has one motor."""
    motors = [actuator.name for actuator in robot.actuators]
    spare = len(motors) - len(directions.names)
    shared = np.all(np.count_nonzero(directions.effort_map, axis=1) != 1)
    wanted = [
        choice
        for choice in experiment.efforts or ()
        if isinstance(choice, int) or choice not in directions.names
    ]
    if wanted and shared and spare > 0:
        raise InputError(
            f"effort {wanted[0]}: there is no equation per motor here. {len(motors)} motors drive"
            f" {len(directions.names)} degrees of freedom: the null space of J_a^T has dimension {spare},"
            " and internal tension in it changes the efforts without motion",
            file=experiment.file,
            remedy=f"leave `efforts:` out (equations are J_a^T tau: {', '.join(directions.names)}), or use"
            " model: power",
        )
