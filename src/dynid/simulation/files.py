"""Files of a simulated recording: the log as a robot would record it, and the true parameters.

Write a log to CSV or Parquet in the canonical columns: t, q_1.., dq_1.., tau_1.., segment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Shaped
from dynid.common.csv_text import csv_line
from dynid.common.errors import InputError
from dynid.excitation.settings import recording_words
from dynid.mechanism.parameters import effort_unit
from dynid.motion.log import Log
from dynid.report.json_file import json_text, plain
from dynid.report.numbers import number
from dynid.report.output import real_path, write_file
from dynid.robots.truth import SCHEMA
from dynid.simulation.plant.run import PlantRun
from dynid.simulation.simulation import Simulated

ENDINGS = (".csv", ".parquet")


def check_target(path: Path, inputs: Sequence[str | Path | None] = ()) -> Path:
    """Check before the simulation that a file can be written and is not one of the `inputs`."""
    if path.suffix not in ENDINGS:
        raise InputError(
            f"a log ends in {' or '.join(ENDINGS)}, not in '{path.suffix}'", file=path, remedy="rename --out"
        )
    if not path.resolve().parent.is_dir():
        raise InputError("its folder does not exist", file=path, remedy="create it, or choose another")
    if not os.access(path.resolve().parent, os.W_OK | os.X_OK):
        raise InputError("no permission to write in its folder", file=path, remedy="choose another --out")
    if path.resolve() in [Path(source).resolve() for source in inputs if source]:
        raise InputError("would overwrite one of its inputs", file=path, remedy="choose another --out")
    return path


def write_simulated(simulated: Simulated, path: Path) -> tuple[Path, Path]:
    """Write the log and `NAME.truth.json` next to it, each atomically."""
    columns = simulated.recording().columns()
    return write_both(path, lambda part: write_columns(columns, part), truth_document(simulated, path.name))


def write_both(path: Path, write: Callable[[Path], object], document: Mapping[str, Any]) -> tuple[Path, Path]:
    """Write a log with `write`, and the true parameters next to it, each atomically."""
    truth = path.with_name(f"{path.stem}.truth.json")
    target = real_path(path)
    part = target.with_name(f".{target.name}.new{path.suffix}")
    try:
        write(part)
        part.replace(target)
        write_file(truth, json_text(dict(document)))
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}", file=path, remedy="choose another --out"
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return path, truth


def truth_document(simulated: Simulated, log: str) -> dict[str, Any]:
    """The content of `NAME.truth.json` (`dynid.truth/1`): parameters by name, SI, and the settings."""
    settings = simulated.settings
    motors = [actuator.name for actuator in simulated.mechanism.actuators]
    gains = np.broadcast_to(np.asarray(settings.sensing.gain, float), (len(motors),))
    phases = [(0.0, settings.payloads), *settings.changes]
    return {
        "schema": SCHEMA,
        "robot": simulated.mechanism.name,
        "log": log,
        "engine": settings.engine,
        "seed": settings.seed,
        "parameters": plain(dict(simulated.values)),
        "payloads": [{"from": time, "payloads": list(names)} for time, names in phases],
        "gains": dict(zip(motors, gains.tolist(), strict=True)),
        "choices": described(simulated),
    }


def described(simulated: Simulated) -> dict[str, str]:
    """Description of the simulation as text."""
    settings, course, run = simulated.settings, simulated.course, simulated.run
    sizes = np.abs(course.tau).max(axis=0)
    units = [effort_unit(simulated.mechanism, motor.name) for motor in simulated.mechanism.actuators]
    sensing = settings.sensing
    logged = units if np.all(np.asarray(sensing.gain) == 1.0) else ()  # else currents, or scaled torques
    words = {
        "engine": settings.engine,
        "motion": settings.motion.file or f"random ({settings.motion.kind})",
        "log": f"{len(course.t)} samples, {course.t[-1]:g} s at {settings.rate:g} Hz",
        "recording": recording_words(settings.rate, sensing.effort_sigma, units=logged),
        "largest efforts": ", ".join(
            f"{number(float(size), 3)} {unit}" for size, unit in zip(sizes, units, strict=True)
        ),
    }
    if settings.payloads or settings.changes:
        phases = [(0.0, settings.payloads), *settings.changes]
        words["payloads"] = ", ".join(f"{', '.join(names) or 'none'} from {at:g} s" for at, names in phases)
    if run is not None:
        words["steps"] = f"Runge-Kutta, {run.step:.3g} s"
        words["controller"] = _controller(simulated, run)
        words["tracking error"] = f"at most {_away(simulated):.2g} rad or m"
        words["loops open"] = f"at most {run.gap.max(initial=0.0):.2g} m or rad"
        if np.isfinite(run.energy_drift):
            words["energy drift"] = f"{run.energy_drift:.2g} of the largest kinetic energy"
        if run.width:
            words["dry friction"] = f"smoothed below {max(run.width.values()):.2g} rad/s or m/s"
    return words


def _controller(simulated: Simulated, run: PlantRun) -> str:
    """Kind and feedback of the controller."""
    settings = simulated.settings.moving.controller
    if run.sight is None:
        return f"{settings.kind}, feedback of the true state"
    rate, cutoff = 1.0 / run.sight.period, run.sight.cutoff
    return f"{settings.kind}, encoders read at {rate:g} Hz, velocities low-passed at {cutoff:.3g} Hz"


def _away(simulated: Simulated) -> float:
    """Largest distance from the reference; of joints without a motor only where no driven one is measured."""
    course, robot = simulated.course, simulated.mechanism
    if course.q_ref is None:
        return 0.0
    driven = {coordinate for actuator in robot.actuators for coordinate in actuator.on}
    led = [k for k, name in enumerate(robot.measured_positions) if name in driven]
    return float(np.abs(course.q - course.q_ref)[:, led or slice(None)].max())


def write_log(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write the valid samples of a log; the extension .csv or .parquet sets the format."""
    return write_columns(log_columns(log), path)


def write_columns(columns: Mapping[str, Shaped[Array, "n"]], path: str | os.PathLike[str]) -> Path:
    """Write columns by name; the extension .csv or .parquet sets the format."""
    target = Path(path)
    if target.suffix == ".csv":
        rows = np.column_stack([np.asarray(column, float) for column in columns.values()])
        # Seventeen digits reproduce every float64 exactly.
        np.savetxt(target, rows, fmt="%.17g", delimiter=",", header=csv_line(columns), comments="")
    elif target.suffix == ".parquet":
        _write_parquet(columns, target)
    else:
        raise InputError(f"'{target.name}' is neither .csv nor .parquet", remedy="choose one of the two")
    return target


def log_columns(log: Log) -> dict[str, Shaped[Array, "n"]]:
    """The samples of all segments by canonical column name; missing efforts are omitted."""
    rows = np.concatenate([np.arange(start, stop) for start, stop in log.segments])
    columns: dict[str, Array] = {"t": log.t[rows]}
    for symbol, signal in (("q", log.q), ("dq", log.dq), ("ddq", log.ddq), ("tau", log.tau)):
        if signal is None:
            continue
        for i in range(signal.shape[1]):
            if symbol != "tau" or log.effort_present[i]:
                columns[f"{symbol}_{i + 1}"] = signal[rows, i]
    if len(log.segments) > 1:
        lengths = [stop - start for start, stop in log.segments]
        columns["segment"] = np.repeat(np.arange(len(lengths)), lengths)
    return columns


def _write_parquet(columns: Mapping[str, Shaped[Array, "n"]], target: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            "writing Parquet needs pyarrow, which is not installed",
            file=target,
            remedy="pip install 'dynid[parquet]', or write .csv",
        ) from error
    pq.write_table(pa.table(dict(columns)), target, write_page_checksum=True)
