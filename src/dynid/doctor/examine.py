"""`check`: logs read, examined and fitted, with everything that is doubtful in one table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynid.checks.fault_columns import ALL
from dynid.checks.logs import check_logs
from dynid.common.errors import InputError, NoResultError
from dynid.common.forced import forced
from dynid.common.notices import Notice, notice
from dynid.doctor.channels import channels_of, log_notices, recording
from dynid.doctor.diagnosis import Channel, Diagnosis, Finding, finding_of, refusal, worst_first
from dynid.doctor.excitation import excitation_notices, excitation_of
from dynid.experiment.experiment import Experiment, experiment_from
from dynid.mechanism.load import load_robot, reference
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.motion.sources import each_log
from dynid.pipeline import identify_logs
from dynid.problem import LogSource, Progress, as_asked, as_log, prepare
from dynid.statistics.estimate import NOT_TESTED, Estimate

# Of single parameters, and of how they were found: not of the logs.
_OF_PARAMETERS = frozenset(
    {
        "correlated",
        "differs-from-description",
        "few-blocks",
        "generic-prior",
        "not-excited",  # said joint by joint
        "not-white",
        "weak-parameters",
        "description-sensitive",
    }
)
_LIKELY = 0.03  # probability of such a delay without one; a half sample at 500 Hz is mostly below it
_RELEVANT = 0.2  # samples: smaller delays are in every careful recording


def check(
    robot: str | os.PathLike[str] | Mechanism,
    logs: LogSource | Sequence[LogSource],
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Diagnosis:
    """Examine logs of a robot before they are used.

    Args:
        robot: Built-in name, description file, or a mechanism.
        logs: One log or several, as for `identify`.
        progress: Called with a stage and the fraction of it done.
        options: As for `identify`: `columns`, `filter`, `model`, ...

    Raises:
        InputError: The description or an option is invalid. Refused logs are findings.
    """
    mechanism = load_robot(robot)
    experiment = experiment_from({"robot": mechanism, **options})
    several = logs if isinstance(logs, Sequence) and not isinstance(logs, str) else [logs]
    return examine(mechanism, several, experiment, progress)


def check_experiment(experiment: Experiment, progress: Progress | None = None) -> Diagnosis:
    """Examine the logs of an experiment, those to validate on as well."""
    sources = (*experiment.logs, *experiment.validate)
    return examine(load_robot(experiment.robot), sources, experiment, progress)


@dataclass(eq=False)
class _Read:
    """Logs that could be read, and what was found on the way."""

    logs: list[Log] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def examine(
    mechanism: Mechanism,
    sources: Sequence[LogSource],
    experiment: Experiment,
    progress: Progress | None = None,
) -> Diagnosis:
    """The diagnosis of logs: each step goes on after a refusal as far as it can."""
    mechanism = as_asked(mechanism, experiment)
    names = tuple(
        dict.fromkeys([*mechanism.coordinates, *(actuator.name for actuator in mechanism.actuators)])
    )
    asked = experiment.changed(auto="off", force=True, gate=None, cross_validate=None)
    with forced():
        read = _read(mechanism, sources, asked, names)
        plans, failed = _plans(mechanism, read.logs, asked) if read.logs else ((), None)
        estimate, refused = None, failed
        if read.logs and failed is None:
            estimate, refused = _fitted(mechanism, read.logs, asked, progress)
    channels = _channels(mechanism, read.logs, plans)
    findings = [*read.findings, *_of_logs(mechanism, read.logs, plans, channels, names)]
    if refused is not None:
        findings.append(refusal(refused, names))
    findings += [finding_of(one, names) for one in check_logs(read.logs, mechanism)]
    if estimate is None:
        findings += [finding_of(one, names) for one in mechanism.notices]
    else:
        findings += _of_fit(estimate, names, read.logs)
        findings += _of_excitation(estimate, mechanism, channels, names, read.logs, asked)
    padded = plans or (None,) * len(read.logs)
    return Diagnosis(
        robot=mechanism.name,
        findings=worst_first(findings),
        recordings=tuple(recording(log, plan) for log, plan in zip(read.logs, padded, strict=True)),
        channels=tuple(channels),
        tests=() if estimate is None else estimate.residual_tests,
        excitation=None if estimate is None else excitation_of(estimate),
        residual_percent=None if estimate is None else estimate.fit.residual_percent,
        logs=tuple(read.logs),
        plans=tuple(plans),
        estimate=estimate,
    )


def _read(
    mechanism: Mechanism, sources: Sequence[LogSource], experiment: Experiment, names: Sequence[str]
) -> _Read:
    """Every log on its own: one that cannot be read does not hide the others."""
    read = _Read()
    for source in sources:
        try:
            entries = list(each_log([source]))
        except InputError as error:
            read.findings.append(refusal(error, names))
            continue
        for entry in entries:
            try:
                read.logs.append(as_log(entry, mechanism, experiment))
            except InputError as error:
                read.findings.append(refusal(error, names))
    return read


def _plans(
    mechanism: Mechanism, logs: Sequence[Log], experiment: Experiment
) -> tuple[tuple[MotionPlan, ...], InputError | None]:
    """Filters of the logs; the error where there are none."""
    try:
        return prepare(mechanism, logs, experiment).plans, None
    except InputError as error:
        return (), error


def _fitted(
    mechanism: Mechanism, logs: Sequence[Log], experiment: Experiment, progress: Progress | None
) -> tuple[Estimate | None, InputError | None]:
    """The estimate, also one that is no result; the error where there is none."""
    try:
        return identify_logs(mechanism, logs, (), experiment, progress), None
    except NoResultError as error:
        return error.estimate, None if error.estimate is not None else InputError(str(error))
    except InputError as error:
        return None, error


def _of_logs(
    mechanism: Mechanism,
    logs: Sequence[Log],
    plans: Sequence[MotionPlan],
    channels: Sequence[Channel],
    names: Sequence[str],
) -> Iterator[Finding]:
    """What was noticed while each log was read, its limits and rest."""
    for log, plan in zip(logs, plans or (None,) * len(logs), strict=True):
        more = log_notices(log, mechanism, plan, [channel for channel in channels if channel.log == log.name])
        yield from (finding_of(one, names, log.name) for one in (*log.notices, *more))


def _of_fit(estimate: Estimate, names: Sequence[str], read: Sequence[Log]) -> Iterator[Finding]:
    """What a fit of the logs shows of them: delays, gains, zeros, signs, order, contacts, closure."""
    said = {message.text for log in read for message in log.notices}
    for warning in estimate.warnings:
        bare = {warning.text.removeprefix(f"{log.name}: ") for log in read}
        if warning.code not in _OF_PARAMETERS and not said & {warning.text, *bare}:
            yield finding_of(warning, names)
    dt = min(log.dt for log in read)
    yield from (finding_of(message, names) for message in _suspected_delay(estimate, dt))
    untested = estimate.choices.get(NOT_TESTED, "")
    if untested:
        yield finding_of(notice("not-tested", names=untested), ())


def _suspected_delay(estimate: Estimate, dt: float) -> Iterator[Notice]:
    """A common delay that is likely, but not certain enough for a warning of a result.

    Residual tests of a fit ask many questions at once, so each must be nearly certain. Here a single one is
    asked, if nothing else was flagged.
    """
    if any(outcome.warned for outcome in estimate.residual_tests):
        return
    for outcome in estimate.residual_tests:
        if outcome.test != "delay" or outcome.about != ALL or outcome.ci95 is None:
            continue
        if outcome.p_value < _LIKELY and abs(outcome.value) > _RELEVANT * dt:
            low, high = sorted(
                1e3 * abs(end) * (1 if end * outcome.value > 0 else -1) for end in outcome.ci95
            )
            side = "later" if outcome.value > 0 else "earlier"
            size = 1e3 * abs(outcome.value)
            yield notice("delay-suspected", size=size, side=side, low=low, high=high, p=outcome.p_value)


def _of_excitation(
    estimate: Estimate,
    mechanism: Mechanism,
    channels: Sequence[Channel],
    names: Sequence[str],
    logs: Sequence[Log],
    experiment: Experiment,
) -> Iterator[Finding]:
    """What the motion cannot show."""
    files = [Path(log.file).name if log.file else log.name for log in logs]
    robot = reference(mechanism)
    robot = Path(robot).name if os.sep in robot else robot
    notices: list[Notice] = list(
        excitation_notices(excitation_of(estimate), mechanism, channels, robot, files)
    )
    loaded = any("M" in payload.known for payload in mechanism.payloads.values())
    if estimate.residual_tests and experiment.gains is None and not loaded and not experiment.known:
        notices.append(notice("scale-unchecked"))
    yield from (finding_of(message, names) for message in notices)


def _channels(mechanism: Mechanism, logs: Sequence[Log], plans: Sequence[MotionPlan]) -> list[Channel]:
    padded = plans or (None,) * len(logs)
    return [
        channel
        for log, plan in zip(logs, padded, strict=True)
        if not any(joint.has_quaternion for joint in mechanism.joints if joint.name in mechanism.measured)
        for channel in channels_of(log, mechanism, plan)
    ]
