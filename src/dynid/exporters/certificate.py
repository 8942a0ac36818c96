"""Certificate of an export: it is read back, and its efforts are compared with those of the estimate.

    random_states    max |tau_export - tau_estimate| / max |tau_estimate|      over random states
    logs             100 |tau_logged - tau| / |tau_logged|                     along the logs of the result

Efforts of the estimate are those of its base parameters. Closed robots are compared at closed poses, and
redundant actuation by the least efforts (logs: by J^T tau), as loops and tensions are not part of a model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.errors import InputError
from dynid.experiment.experiment import Experiment
from dynid.experiment.provenance import IDENTIFIED, VALIDATED
from dynid.exporters.contract import EffortsOf, Exported
from dynid.exporters.replay import Replay
from dynid.exporters.states import (
    drawn_states,
    model_efforts,
    model_rows,
    row_matrices,
    tree_states,
)
from dynid.kinematics.coordinates import States
from dynid.kinematics.tension import motor_jacobian
from dynid.mechanism.frame import angles_as_written
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.motion import Motion
from dynid.motion.settings import LogEntry
from dynid.prediction.effort_space import EffortSpace
from dynid.prediction.full_set import FullSet
from dynid.prediction.result_values import with_result_gains
from dynid.problem import as_log, prepare
from dynid.statistics.estimate import Estimate

_STATES, _SEED = 200, 20261116
_SAMPLES = 1000  # of a log
_FAR = 2.0  # times the error of the estimate
_ROUNDED = 1e-3  # percent of the efforts: logs without noise


@dataclass(frozen=True)
class LogFigure:
    """Error of all samples of one log, at reversals too: in percent of the norm of its efforts, with noise.

    The verdict of a result has another quantity, the model error: without noise, in percent of the peak.

    Attributes:
        estimate_percent, export_percent: By the estimate and by the export; None: not compared.
        alone_percent: By the main file without the terms beside it; None: it holds all.
        reason: Why it was not compared.
    """

    log: str
    estimate_percent: float | None = None
    export_percent: float | None = None
    alone_percent: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Certificate:
    """How well the files of an export give the efforts of the estimate.

    Attributes:
        random_states: Largest difference of an effort, relative to the largest effort; None: not read back.
        alone: The same of the main file without the terms beside it; None: it holds all.
        as_written: Difference from the written values in the robot with rounded angles of the description as
            written, which other programs read; None: dynid has made none exact.
        program: What has read the files.
        states: Number of random states.
        lost: How many of them exported code does not reach from the start pose: it has no efforts there.
        failure: Why the files could not be read back.
        replays: Logs simulated by the written model, where that was asked.
    """

    random_states: float | None
    alone: float | None
    program: str
    states: int
    logs: tuple[LogFigure, ...] = ()
    failure: str = ""
    replays: tuple[Replay, ...] = ()
    as_written: float | None = None
    lost: int = 0

    @property
    def far(self) -> list[str]:
        """Logs that the export predicts more than twice as badly as the estimate does."""
        figures = ((log.log, log.estimate_percent, log.export_percent) for log in self.logs)
        return [
            f"{log} ({export:.3g} %, estimate {estimate:.3g} %)"
            for log, estimate, export in figures
            if export is not None and estimate is not None and export > max(_FAR * estimate, _ROUNDED)
        ]

    @property
    def text(self) -> str:
        """In one line, for the header of a file and the page."""
        return self._words([figure for figure in self.logs if figure.export_percent is not None])

    @property
    def brief(self) -> str:
        """For the terminal: of the logs, only the one with the largest error."""
        compared = [figure for figure in self.logs if figure.export_percent is not None]
        return self._words(sorted(compared, key=lambda figure: figure.export_percent or 0.0)[-1:])

    def _words(self, logs: Sequence[LogFigure]) -> str:
        if self.random_states is None:
            return self.failure or "not read back: the exporter has no reader"
        reached = f"{self.states - self.lost} of {self.states}" if self.lost else f"{self.states}"
        parts = [
            f"efforts differ from the estimate by {_share(self.random_states)} of the largest"
            f" effort ({reached} random states, {self.program})"
        ]
        if self.lost:
            parts.append("the code gives NaN at the others: begin at a nearer `pose` there")
        if self.alone is not None and self.alone > 10.0 * max(self.random_states, 1e-12):
            parts.append(f"without the terms of the .yaml file beside it by {_share(self.alone)}")
        if self.as_written is not None:
            off = _share(self.as_written)
            parts.append(f"from the written values with rounded angles as in the description by {off}")
        errors = [
            f"in {figure.log} {figure.export_percent:.3g} % (estimate {figure.estimate_percent:.3g} %)"
            for figure in logs
        ]
        if errors:
            parts.append(f"error of all samples, at reversals too, {', '.join(errors)}")
        return "; ".join([*parts, *(replay.text for replay in self.replays)])

    def document(self) -> dict[str, Any]:
        """As in export.json."""
        return {
            "random_states": self.random_states,
            "random_states_alone": self.alone,
            "random_states_as_written": self.as_written,
            "states": self.states,
            "states_not_reached": self.lost,
            "program": self.program,
            "failure": self.failure,
            "replays": [replay.document() for replay in self.replays],
            "logs": [
                {
                    "log": figure.log,
                    "estimate_percent": figure.estimate_percent,
                    "export_percent": figure.export_percent,
                    "alone_percent": figure.alone_percent,
                    "reason": figure.reason,
                }
                for figure in self.logs
            ],
        }


@dataclass(frozen=True, eq=False)
class Along:
    """States of a log, and its efforts.

    Attributes:
        states: Filtered positions and rates of the measured coordinates, each of shape (n, m).
        tau: As logged, gains applied, shape (n, a); NaN for motors whose efforts were not logged.
        payloads: Mounted.
    """

    log: str
    states: tuple[Float[Array, "n m"], Float[Array, "n m"], Float[Array, "n m"]]
    tau: Float[Array, "n a"]
    payloads: tuple[str, ...]


def _share(part: float) -> str:
    """A part in percent: `0.049 %`; rounding errors of 1e-16 as such."""
    return f"{100.0 * part:.2g} %"


def certify(exported: Exported, full: FullSet, logs: list[Along | LogFigure]) -> Certificate:
    """Read an export back and compare it.

    Args:
        exported: Files that were written.
        full: The set that they hold.
        logs: Of the result, or why they cannot be compared.
    """
    if exported.read_back is None:
        return Certificate(None, None, exported.program, 0)
    full = _carrying(full, exported.payloads)
    try:
        efforts = exported.read_back()
        alone = exported.alone() if exported.alone is not None else None
        states = drawn_states(full.mechanism, _STATES, _SEED)
        program = exported.program or getattr(efforts, "program", "")
        reached = _reached(efforts(*states))
        if not reached.any():
            raise InputError("it gives no finite efforts at any random state")
        q, dq, ddq = states
        states = q[reached], dq[reached], ddq[reached]
        figures = [
            None if function is None or robot is None else _largest(function, robot, states)
            for function, robot in ((efforts, full), (alone, full), (efforts, _as_written(full)))
        ]
        compared = tuple(_log(log, full, efforts, alone) for log in logs)
    except InputError as error:
        return Certificate(None, None, exported.program, 0, (), f"not read back: {error.text}")
    return Certificate(
        figures[0],
        figures[1],
        program,
        len(reached),
        compared,
        as_written=figures[2],
        lost=int(np.sum(~reached)),
    )


def _reached(efforts: Float[Array, "n a"]) -> Bool[Array, "n"]:
    return np.asarray(np.isfinite(efforts).all(axis=1))


def _largest(function: EffortsOf, full: FullSet, states: tuple[Any, Any, Any]) -> float:
    """Largest difference of an effort, and of what no motor balances where that can be asked."""
    whole = tree_states(full.mechanism, *states)
    wanted = model_efforts(full.mechanism, full.parameters, full.reference, whole)
    figure = _difference(function(*states), wanted)
    rows = getattr(function, "rows", None)
    if rows is None:
        return figure
    expected = model_rows(full.mechanism, full.parameters, full.reference, whole)
    return max(figure, _difference(rows(whole), expected))


def _as_written(full: FullSet) -> FullSet | None:
    """The same parameters in the robot with its angles as written; None: dynid has made none exact."""
    robot = full.mechanism
    if robot.file is None or not any(notice.code == "snapped-angle" for notice in robot.notices):
        return None
    with angles_as_written():
        written = load_robot(robot.file)
    if written.geometry != robot.geometry or [j.name for j in written.joints] != [
        j.name for j in robot.joints
    ]:
        return None
    # Other values with the same base parameters have other efforts in this robot: those that the file holds.
    return replace(
        full,
        mechanism=replace(robot, joints=written.joints, loops=written.loops),
        reference=full.chi,
    )


def _difference(predicted: Float[Array, "n a"], wanted: Float[Array, "n a"]) -> float:
    largest = float(np.abs(wanted).max(initial=0.0))
    return float(np.abs(predicted - wanted).max(initial=0.0)) / (largest if largest > 0.0 else 1.0)


def _carrying(full: FullSet, payloads: tuple[str, ...]) -> FullSet:
    """The set with other payloads mounted."""
    if set(payloads) == set(full.mechanism.payloads):
        return full
    gone = set(full.mechanism.payloads) - set(payloads)
    kept = [i for i, p in enumerate(full.parameters) if p.owner not in gone]
    loads = {name: payload for name, payload in full.mechanism.payloads.items() if name in payloads}
    return replace(
        full,
        mechanism=replace(full.mechanism, payloads=loads),
        parameters=tuple(full.parameters[i] for i in kept),
        chi=full.chi[kept],
        reference=full.reference[kept],
    )


# Logs of the result


def logs_of(estimate: Estimate, mechanism: Mechanism, experiment: Experiment) -> list[Along | LogFigure]:
    """States and efforts of the logs that a result names, if their files are there and have not changed."""
    figures: list[Along | LogFigure] = []
    for entry in estimate.provenance.get("inputs", ()):
        if entry.get("use") not in (IDENTIFIED, VALIDATED):
            continue
        name = Path(str(entry["file"])).stem
        try:
            figures.append(_along(entry, name, estimate, mechanism, experiment))
        except InputError as error:
            figures.append(LogFigure(name, reason=error.text))
    return figures


def _along(
    source: Mapping[str, Any], name: str, estimate: Estimate, mechanism: Mechanism, experiment: Experiment
) -> Along | LogFigure:
    path = Path(str(source["file"]))
    if not path.is_file():
        return LogFigure(name, reason="the log was not a file, or is no longer there")
    if source.get("sha256") and hashlib.sha256(path.read_bytes()).hexdigest() != source["sha256"]:
        return LogFigure(name, reason="the file has changed")
    entry = LogEntry(
        str(path),
        start=source.get("from"),
        stop=source.get("to"),
        exclude=tuple(tuple(span) for span in source.get("exclude", ())),
        runs=tuple(source["runs"]) if source.get("runs") else None,
    )
    mechanism = replace(mechanism, payloads={})
    log = with_result_gains([as_log(entry, mechanism, experiment)], estimate, experiment)[0]
    problem = prepare(mechanism, [log], experiment.changed(model=None, essential=None, keep=None, ties=()))
    motion = problem.sources[0].motion
    states, tau = _samples(motion)
    if not np.isfinite(tau).all(axis=0).any():
        return LogFigure(name, reason="no effort was logged throughout")
    return Along(name, states, tau, tuple(source.get("payloads", ())))


def _samples(motion: Motion) -> tuple[tuple[Any, Any, Any], Float[Array, "n a"]]:
    """Some samples of all segments, without their edges."""
    parts, efforts = [], []
    total = sum(stop - start for start, stop in motion.usable())
    step = max(1, -(-total // _SAMPLES))
    for start, stop in motion.usable():
        states = motion.states(start, stop)
        parts.append([array[::step] for array in states[:3]])
        efforts.append(np.asarray(motion.log.tau[start:stop:step], float))
    q, dq, ddq = (np.concatenate([part[k] for part in parts]) for k in range(3))
    return (q, dq, ddq), np.concatenate(efforts)


def _log(along: Along | LogFigure, full: FullSet, efforts: EffortsOf, alone: EffortsOf | None) -> LogFigure:
    if isinstance(along, LogFigure):
        return along
    if set(along.payloads) != set(full.mechanism.payloads):
        return LogFigure(along.log, reason="recorded with another payload than that of the export")
    robot = full.mechanism
    whole = tree_states(robot, *along.states)
    known = model_efforts(robot, full.parameters, full.reference, whole)
    exported = efforts(*along.states)
    reached = _reached(exported)
    if not reached.all():
        reason = f"{np.sum(~reached)} of {len(reached)} samples are not reached from the start pose"
        return LogFigure(along.log, reason=reason)
    figures = [
        _percent(robot, whole, along.tau, tau)
        for tau in (known, exported, None if alone is None else alone(*along.states))
    ]
    return LogFigure(along.log, figures[0], figures[1], figures[2])


def _percent(
    robot: Mechanism, states: States, logged: Float[Array, "n a"], tau: Float[Array, "n a"] | None
) -> float | None:
    """Of the norm of J^T tau, which tensions do not change; of trees that of tau itself. Rows that need an
    effort that was not logged are left out."""
    if tau is None:
        return None
    error, size = logged - tau, logged
    J = motor_jacobian(robot, states.N)
    if J.shape[1] != J.shape[2]:
        error, size = (_felt(J, effort) for effort in (error, size))
    seen = np.isfinite(size).all(axis=0)
    return 100.0 * float(np.linalg.norm(error[:, seen]) / max(float(np.linalg.norm(size[:, seen])), 1e-300))


def _felt(J: Float[Array, "n a d"], tau: Float[Array, "n a"]) -> Float[Array, "n d"]:
    """J^T tau, shape (n, d); NaN where a row needs an effort that was not logged, and only there."""
    return np.asarray(np.where(J != 0.0, J * tau[:, :, None], 0.0).sum(axis=1))


def rows_in_deviations(logs: Sequence[Along | LogFigure], space: EffortSpace) -> Float[Array, "r p"] | None:
    """Rows W of the logs of a result over the deviation of the errors of each; None: there are no logs.

    Times a change of the parameters they give the change of the efforts, in deviations.
    """
    parts = []
    for log in logs:
        if isinstance(log, LogFigure):
            continue
        loads = {name: load for name, load in space.mechanism.payloads.items() if name in log.payloads}
        robot = replace(space.mechanism, payloads=loads)
        states = tree_states(robot, *log.states)
        W = np.concatenate(list(row_matrices(robot, space.parameters, space.values.chi, states)))
        rho = _felt(motor_jacobian(robot, states.N), log.tau) - W @ space.values.chi
        for k in np.flatnonzero(np.isfinite(rho).all(axis=0)):
            deviation = float(np.sqrt(np.mean(rho[:, k] ** 2)))
            parts.append(W[:, k] / (deviation if deviation > 0.0 else 1.0))
    return np.concatenate(parts) if parts else None
