"""Where a result comes from: inputs by hash, versions, options; and back to the experiment."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dynid.common.entry import plain_entry
from dynid.common.errors import InputError
from dynid.common.settings import keys_of, read
from dynid.common.versions import version_of
from dynid.experiment.experiment import TASKS, Experiment, LogEntry, UnloadedModel, experiment_from
from dynid.mechanism.load import builtin_robots, reference
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.fingerprint import fingerprint
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan

ROBOT, IDENTIFIED, VALIDATED, UNLOADED = "robot", "identify", "validate", "unloaded"
# Recorded as inputs, of the folder of the result, or done besides.
_NOT_OPTIONS = ("logs", "validate", "out", "name", *TASKS)
_CLOCK = (946684800.0, 4102444800.0)  # s since 1970: the years 2000 to 2100
_PACKAGES = ("dynid", "numpy", "scipy", "numba")


def provenance(
    mechanism: Mechanism,
    logs: Sequence[Log],
    validate: Sequence[Log],
    experiment: Experiment,
    plan: MotionPlan,
    settled: Experiment | None = None,
    asked: Experiment | None = None,
) -> dict[str, Any]:
    """Inputs with their hashes, versions, platform, BLAS, and the options as they were used.

    Args:
        mechanism: The robot.
        logs: That it was identified from.
        validate: That it was validated on.
        experiment: With everything that was searched.
        plan: Filter of the first log.
        settled: The same before anything was searched, for `repeated`; None: nothing was.
        asked: The experiment as it was given, before settings were chosen; None: not at hand.
    """
    options = _options(mechanism, experiment, plan)
    before = options if settled is None else _options(mechanism, settled, plan)
    searched = {key: before.get(key) for key in {**options, **before} if options.get(key) != before.get(key)}
    return {
        "inputs": [
            *_robot_input(mechanism),
            *_unloaded_input(experiment),
            *(
                {
                    "file": log.file or log.name,
                    "sha256": log.sha256,
                    "use": use,
                    "payloads": list(log.payloads),
                    **({"rate": float(f"{1.0 / log.dt:.6g}")} if log.dt > 0.0 else {}),
                    **_recorded(log),
                    **({"samples": list(fingerprint(log))} if use == IDENTIFIED else {}),
                    **log.entry,
                }
                for use, group in ((IDENTIFIED, logs), (VALIDATED, validate))
                for log in group
            ),
        ],
        "versions": {
            "python": platform.python_version(),
            **{package: version_of(package) for package in _PACKAGES},
        },
        "platform": platform.platform(),
        "blas": _blas(),
        "options": options,
        **({"searched": searched} if searched else {}),
        **({} if asked is None else {"asked": _given(asked)}),
        "seed": None,
    }


def _blas() -> list[str]:
    """Libraries of linear algebra of this process, with the processor they were chosen for."""
    from threadpoolctl import threadpool_info

    libraries = [library for library in threadpool_info() if library.get("user_api") == "blas"]
    keys = ("internal_api", "version", "architecture")
    return sorted({" ".join(str(library[key]) for key in keys if library.get(key)) for library in libraries})


def _recorded(log: Log) -> dict[str, str]:
    """When a log was recorded: by its clock if it counts from 1970, else when its file was last written."""
    start = float(log.t[0]) if len(log.t) else 0.0
    if not _CLOCK[0] < start < _CLOCK[1]:
        path = Path(log.file) if log.file else None
        if path is None or not path.exists():
            return {}
        start = path.stat().st_mtime
    return {"date": datetime.fromtimestamp(start, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}


def date_of(recorded: Mapping[str, Any]) -> str:
    """Date of a result, ISO 8601: as its experiment gives it, else of its first log; empty: not known."""
    given = recorded.get("options", {}).get("date", "")
    inputs = recorded.get("inputs", ())
    dates = sorted(
        str(source["date"]) for source in inputs if source.get("use") == IDENTIFIED and "date" in source
    )
    return str(given or (dates[0] if dates else ""))


def _options(mechanism: Mechanism, experiment: Experiment, plan: MotionPlan) -> dict[str, Any]:
    """The settings as they were used, as a plain tree; logs are among the inputs."""
    used = experiment.filter.changed(
        cutoff=plan.cutoff,
        decimate=plan.decimate,
        derivative=plan.derivative,
        velocity=plan.velocity,
        kind=plan.kind,
    )
    unloaded = experiment.unloaded
    if unloaded is not None:  # a path that is found from any folder, as that of the robot is
        unloaded = unloaded.changed(result=str(Path(unloaded.result).resolve()))
    tree = experiment.changed(
        robot=reference(mechanism),
        model=experiment.model or mechanism.model,
        filter=used,
        unloaded=unloaded,
        auto="off",  # what was chosen is among these options: the same again needs no choice
    ).tree()
    return _without(tree, *_NOT_OPTIONS)


def _given(experiment: Experiment) -> dict[str, Any]:
    """The options of an experiment as it was given, without the robot."""
    return _without(experiment.changed(robot="").tree(), *_NOT_OPTIONS, "robot")


def _without(tree: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name not in names}


def experiment_of(options: Mapping[str, Any], file: object = None) -> Experiment:
    """The experiment whose options a result recorded, without its logs.

    Args:
        options: As `provenance.options` of a result has them; what is misshapen is refused.
        file: The result, for messages.
    """
    try:
        return experiment_from({"robot": "unknown", "auto": "off", **options})
    except InputError as error:
        where = f"{error.place}: " if error.place else ""
        raise InputError(
            f"options that cannot be read: {where}{error.text}",
            file=file,
            place="provenance.options",
            remedy="identify again to write a new result",
        ) from None


def repeated(recorded: Mapping[str, Any], file: object = None) -> Experiment:
    """The experiment that a result was made by, with its logs and all that was chosen.

    Args:
        recorded: `provenance` of a result, with absolute paths.
        file: The result, for messages.
    """
    options = {**recorded.get("options", {}), **recorded.get("searched", {})}
    experiment = experiment_of({key: value for key, value in options.items() if value is not None}, file)
    inputs = [entry for entry in recorded.get("inputs", ()) if entry.get("use") in (IDENTIFIED, VALIDATED)]
    if not inputs or not all(entry.get("sha256") for entry in inputs):
        raise InputError(
            "this result cannot be repeated: its logs were given as arrays, not as files",
            file=file,
            remedy="identify again with the arrays",
        )
    logs, unseen = (
        [_entry(given) for given in inputs if given["use"] == use] for use in (IDENTIFIED, VALIDATED)
    )
    if experiment.hold_out is not None:  # parts of the logs that are fitted are held out again
        unseen = [entry for entry in unseen if entry not in logs]
    return experiment.changed(logs=tuple(logs), validate=tuple(unseen))


def _entry(recorded: Mapping[str, Any]) -> LogEntry:
    """A log as the experiment gave it."""
    keys = {key: value for key, value in recorded.items() if key in keys_of(LogEntry)}
    return read(LogEntry, plain_entry({**keys, "payload": list(recorded.get("payloads", ()))}))


def _robot_input(mechanism: Mechanism) -> list[dict[str, Any]]:
    """The files of the robot, including those it refers to; a built-in robot is given by the version."""
    file = reference(mechanism)
    if file in builtin_robots() or not Path(file).is_file():
        return []
    paths = dict.fromkeys([file, *(str(Path(source).resolve()) for source in mechanism.sources)])
    return [
        {"file": path, "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest(), "use": ROBOT}
        for path in paths
        if Path(path).is_file()
    ]


def _unloaded_input(experiment: Experiment) -> list[dict[str, Any]]:
    """The result from which the robot without load is known."""
    if experiment.unloaded is None:
        return []
    file = _unloaded_file(experiment.unloaded)
    if not file.is_file():
        raise InputError(
            "the result without load, from which the payload was computed, is not found",
            file=file,
            remedy="restore it at this path, or identify the payload again",
        )
    return [{"file": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "use": UNLOADED}]


def _unloaded_file(unloaded: UnloadedModel) -> Path:
    file = Path(unloaded.result)
    return file / "result.json" if file.is_dir() else file


def unloaded_logs(experiment: Experiment) -> set[str | None]:
    """Hashes of the logs that the robot without load is known from: they prove nothing of its payload's."""
    if experiment.unloaded is None:
        return set()
    document = json.loads(_unloaded_file(experiment.unloaded).read_text(encoding="utf-8"))
    inputs = document.get("provenance", {}).get("inputs", ())
    return {entry.get("sha256") for entry in inputs if entry.get("use") == IDENTIFIED} - {None}


def robot_of_result(options: Mapping[str, Any], result: str | None) -> str:
    """The robot that the options of a result name; a file that is gone is refused with the way to replace it.

    Args:
        options: As `provenance.options` of the result has them, with paths from here.
        result: Its file or folder; None: an estimate in memory.
    """
    named = str(options["robot"])
    if Path(named).suffix and not Path(named).exists():
        raise InputError(
            f"the robot file of this result, '{Path(named).name}', is not at its recorded place",
            file=result,
            remedy="move it back, or give the file with --robot FILE",
        )
    return named


def check_robot(recorded: Mapping[str, Any], mechanism: Mechanism) -> None:
    """Refuse a robot file that has changed since a result was made with it."""
    before = {entry.get("sha256") for entry in recorded.get("inputs", ()) if entry.get("use") == ROBOT}
    now = {entry["sha256"] for entry in _robot_input(mechanism)}
    if before - now:
        raise InputError(
            "the robot file (or its URDF or MJCF) has changed since the result was made",
            file=mechanism.file,
            remedy="identify again, or give the file with --robot to use it anyway",
        )


def check_unloaded(recorded: Mapping[str, Any], experiment: Experiment) -> None:
    """Refuse a result without load that has changed since a payload was found with it."""
    before = {entry.get("sha256") for entry in recorded.get("inputs", ()) if entry.get("use") == UNLOADED}
    for now in _unloaded_input(experiment):
        if before and now["sha256"] not in before:
            raise InputError(
                "the result without load has changed since the payload was identified",
                file=now["file"],
                remedy="identify the payload again",
            )


def recorded_loads(recorded: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Payloads mounted in each log that a result was identified from; none if not recorded."""
    inputs = recorded.get("inputs", ())
    return [
        tuple(entry["payloads"]) for entry in inputs if entry.get("use") == IDENTIFIED and "payloads" in entry
    ]
