"""`check`: logs read, examined and fitted, with everything that is doubtful in one table.

What the motion of logs can show, and what not, in words.

A base parameter that a motion does not excite is unseen, although the structure of the robot permits to
identify it. Joint by joint the reason is said: it hardly moves, or only slowly.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dynid.base.grouping import listed
from dynid.checks.fault_columns import ALL
from dynid.checks.logs import check_logs
from dynid.common.catalogue import Severity, codes_with
from dynid.common.errors import InputError, NoResultError
from dynid.common.notices import Notice, forced, notice
from dynid.doctor.channels import channels_of, log_notices, recording
from dynid.doctor.diagnosis import Channel, Diagnosis, Excitation, Finding, finding_of, refusal, worst_first
from dynid.experiment.experiment import Experiment, experiment_from
from dynid.mechanism.drive_terms import DRIVE_TERMS
from dynid.mechanism.load import load_robot, reference
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log, named_apart
from dynid.motion.logs import LogSource
from dynid.motion.plan import MotionPlan
from dynid.motion.settings import LogEntry
from dynid.motion.sources import each_log
from dynid.pipeline import identify_logs
from dynid.problem import Progress, as_asked, as_log, prepare
from dynid.statistics.estimate import NOT_TESTED, Estimate
from dynid.validation.folds import split_hold_out

# Of single parameters, and of how they were found: not of the logs.
_OF_PARAMETERS = codes_with("parameters")
_LIKELY = 0.03  # probability of such a delay without one; a half sample at 500 Hz is mostly below it
_RELEVANT = 0.2  # samples: smaller delays are in every careful recording
_AT_REST = "at-rest"


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
    robot = load_robot(experiment.robot)
    return examine(robot, experiment.logs, experiment, progress, experiment.validate)


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
    validate: Sequence[LogSource] = (),
) -> Diagnosis:
    """The diagnosis of logs: each step goes on after a refusal as far as it can.

    The fit is that of `identify`, with the settings that it chooses, so that both name the same corrections.

    Args:
        mechanism: The robot.
        sources: Logs to fit.
        experiment: Settings.
        progress: Called with a stage and the fraction of it done.
        validate: Logs to predict.
    """
    mechanism = as_asked(mechanism, experiment)
    names = tuple(
        dict.fromkeys([*mechanism.coordinates, *(actuator.name for actuator in mechanism.actuators)])
    )
    asked = experiment.changed(force=True, gate=None, cross_validate=None)
    with forced():
        read, unseen = (_read(mechanism, listed, asked, names) for listed in (sources, validate))
        logs = named_apart([*read.logs, *unseen.logs])
        plans, failed = _plans(mechanism, logs, asked) if logs else ((), None)
        estimate, refused = None, failed
        if read.logs and failed is None:
            count = len(read.logs)
            estimate, refused = _fitted(mechanism, logs[:count], logs[count:], asked, progress)
    channels = _channels(mechanism, logs, plans)
    of_logs = list(_of_logs(mechanism, logs, plans, channels, names))
    at_rest = 0 < len(logs) <= sum(found.code == _AT_REST for found in of_logs)
    if at_rest:
        of_logs = [
            replace(found, severity=Severity.STOP) if found.code == _AT_REST else found for found in of_logs
        ]
    findings = [*read.findings, *unseen.findings, *of_logs]
    if refused is not None:
        findings.append(refusal(refused, names))
    doubts = check_logs(logs, mechanism)
    findings += [finding_of(item, names) for item in doubts]
    if estimate is None:
        findings += [finding_of(item, names) for item in mechanism.notices]
    else:
        # Without motion a fit shows no fault of the input: it explains noise.
        findings += () if at_rest else _of_fit(estimate, names, logs, {item.code for item in doubts})
        findings += _of_excitation(estimate, mechanism, channels, names, logs, asked)
    padded = plans or (None,) * len(logs)
    return Diagnosis(
        robot=mechanism.name,
        findings=worst_first(findings),
        recordings=tuple(recording(log, plan) for log, plan in zip(logs, padded, strict=True)),
        channels=tuple(channels),
        tests=() if estimate is None else estimate.residual_tests,
        excitation=None if estimate is None else excitation_of(estimate),
        residual_percent=None if estimate is None else estimate.fit.residual_percent,
        logs=tuple(logs),
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
    mechanism: Mechanism,
    logs: Sequence[Log],
    unseen: Sequence[Log],
    experiment: Experiment,
    progress: Progress | None,
) -> tuple[Estimate | None, InputError | None]:
    """The estimate, also one that is no result; the error where there is none."""
    try:
        logs, unseen = split_hold_out(logs, unseen, experiment.hold_out)
        return identify_logs(mechanism, logs, unseen, experiment, progress), None
    except NoResultError as error:
        return error.estimate, None if error.estimate is not None else InputError(error.message)
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
        yield from (finding_of(item, names, log.name) for item in (*log.notices, *more))


def _of_fit(
    estimate: Estimate, names: Sequence[str], read: Sequence[Log], known: Collection[str]
) -> Iterator[Finding]:
    """What a fit of the logs shows of them: delays, gains, zeros, signs, order, contacts, closure.

    An estimate gathers all notices of one code: those of codes that are `known` are findings already.
    """
    said = {message.text for log in read for message in log.notices}
    for warning in estimate.warnings:
        bare = {warning.text.removeprefix(f"{log.name}: ") for log in read}
        if warning.code not in {*_OF_PARAMETERS, *known} and not said & {warning.text, *bare}:
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
    files = [_from_here(log.file) for log in logs if log.file]
    entries = [entry for entry in experiment.logs if isinstance(entry, LogEntry)]
    mapped = experiment.columns or experiment.drives or any(entry.columns for entry in entries)
    if mapped or len(files) < len(logs):  # `--after` reads files as they are
        files = ["RESULT"]
    robot = reference(mechanism)
    robot = _from_here(robot) if os.sep in robot else robot
    notices = list(excitation_notices(estimate, mechanism, channels, robot, files))
    loaded = any("M" in payload.known for payload in mechanism.payloads.values())
    said = any(item.code == "scale-unchecked" for item in estimate.warnings)
    if estimate.residual_tests and experiment.gains is None and not (loaded or experiment.known or said):
        notices.append(notice("scale-unchecked"))
    yield from (finding_of(message, names) for message in notices)


def _from_here(file: str) -> str:
    """A path for a command: relative to the current folder where it is inside, quoted where it has blanks."""
    path = Path(file).resolve()
    inside = path.is_relative_to(Path.cwd())
    return shlex.quote(str(path.relative_to(Path.cwd())) if inside else file)


def _channels(mechanism: Mechanism, logs: Sequence[Log], plans: Sequence[MotionPlan]) -> list[Channel]:
    padded = plans or (None,) * len(logs)
    return [
        channel
        for log, plan in zip(logs, padded, strict=True)
        if not any(joint.has_quaternion for joint in mechanism.joints if joint.name in mechanism.measured)
        for channel in channels_of(log, mechanism, plan)
    ]


_LITTLE = 0.1  # of the range or speed that limits permit
_SLOW = {"rad": 0.1, "m": 0.02}  # per second, where no limit is known


def excitation_of(estimate: Estimate) -> Excitation:
    """Counts and names of base parameters that the logs do and do not determine."""
    unseen = tuple(estimate.not_identifiable)
    weak = tuple(
        parameter.name
        for parameter in estimate.parameters
        if parameter.sigma_rel_percent is not None and not parameter.sigma_rel_percent < 100.0
    )
    seen = len(estimate.parameters)
    return Excitation(seen + len(unseen), seen, estimate.fit.condition_scaled, unseen, weak)


def excitation_notices(
    estimate: Estimate, mechanism: Mechanism, channels: Sequence[Channel], robot: str, logs: Sequence[str]
) -> Iterator[Notice]:
    """What stays unknown of each joint and why, and how much a better motion could add.

    Whether a motion excites all parameters enough is judged by the identification alone.
    """
    excited = excitation_of(estimate)
    command = f"dynid excite {robot} {' '.join(f'--after {log}' for log in logs)} --period 20"
    owned = _by_joint(excited.unseen, mechanism)
    for joint, names in owned.items():
        yield notice(
            "joint-unexcited",
            joint=joint,
            motion=_motion(joint, mechanism, channels),
            kinds=_kinds(names),
            names=listed(names),
        )
    if excited.unseen:
        yield notice(
            "excitation", seen=excited.seen, base=excited.base, more=len(excited.unseen), command=command
        )
    if any(item.code == "weak-parameters" for item in estimate.warnings):
        little = [
            f"'{joint}' {text}"
            for joint in mechanism.measured_positions
            if (text := _little(joint, mechanism, channels))
        ]
        yield notice(
            "excitation-poor",
            condition=excited.condition,
            weak=len(excited.weak),
            base=excited.base,
            why=f"; {listed(little)}" if little else "",
            command=command,
        )


def _by_joint(names: Sequence[str], mechanism: Mechanism) -> dict[str, list[str]]:
    """Parameters by the joint that moves their body, or has their drive."""
    by_joint: dict[str, list[str]] = {}
    for name in names:
        owner = name.removesuffix("_R").partition("_")[2]
        joint = mechanism.joint_of_body.get(owner)
        by_joint.setdefault(joint.name if joint is not None else owner, []).append(name)
    return by_joint


def _motion(joint: str, mechanism: Mechanism, channels: Sequence[Channel]) -> str:
    of_joint = [channel for channel in channels if channel.owner == joint and channel.top_speed is not None]
    if not of_joint:
        return "is not measured"
    top = max(channel.top_speed or 0.0 for channel in of_joint)
    swept = max(channel.high - channel.low for channel in of_joint)
    unit = of_joint[0].unit
    if top == 0.0 or swept == 0.0:
        return "never moves"
    little = _little(joint, mechanism, channels)
    return little or f"moves over {swept:.3g} {unit} with up to {top:.3g} {unit}/s, but not in the way needed"


def _little(joint: str, mechanism: Mechanism, channels: Sequence[Channel]) -> str:
    """That a joint moves little or slowly; empty if it moves enough."""
    of_joint = [channel for channel in channels if channel.owner == joint and channel.top_speed is not None]
    if not of_joint:
        return ""
    top, unit = max(channel.top_speed or 0.0 for channel in of_joint), of_joint[0].unit
    swept = max(channel.high - channel.low for channel in of_joint)
    limits: Mapping[str, object] = mechanism.limits.get(joint, {})
    fastest, room = limits.get("dq"), limits.get("q")
    slow = _LITTLE * fastest if isinstance(fastest, float | int) else _SLOW.get(unit, math.inf)
    if top < slow:
        return f"never moves faster than {top:.2g} {unit}/s"
    if isinstance(room, tuple | list) and swept < _LITTLE * (room[1] - room[0]):
        return f"moves over {swept:.2g} {unit} only, {100 * swept / (room[1] - room[0]):.0f} % of its range"
    return ""


def _kinds(names: Sequence[str]) -> str:
    """Which properties of a joint stay unknown."""
    symbols = {name.partition("_")[0].rstrip("+-") for name in names}
    kinds = []
    friction = {s.rstrip("+-") for s, term in DRIVE_TERMS.items() if term.friction}
    offsets = {s for s, term in DRIVE_TERMS.items() if not term.moves}
    if symbols - friction - offsets:
        kinds.append("inertia")
    if symbols & friction:
        kinds.append("friction")
    return " and ".join(kinds) or "offset"
