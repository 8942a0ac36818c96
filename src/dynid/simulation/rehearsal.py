"""Rehearse an experiment before the robot runs: simulate it many times, identify each run, compare.

plan (trajectory, log, or random) -> one course per log -> N recordings -> N identifications ->
comparison of the reported sigma with the actual errors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.case import with_defaults
from dynid.common.batched import single_threaded_blas
from dynid.common.errors import DynidError, InputError
from dynid.common.notices import Notice, notice
from dynid.estimator.settings import GAIN
from dynid.excitation.case_motions import case_motions
from dynid.excitation.series import Trajectory
from dynid.experiment.experiment import Experiment, LogEntry
from dynid.fit import Fit, fit_task
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import effort_units
from dynid.motion.log import Log
from dynid.motion.logs import read_log
from dynid.problem import Progress, as_asked
from dynid.simulation.motion import SampledMotion, chosen_motion, file_motion, log_motion
from dynid.simulation.simulation import Simulation, simulate_led
from dynid.statistics.estimate import ParameterEstimate
from dynid.statistics.rehearsal import Draw, Rehearsal, summarise
from dynid.unknown import Task

RANDOM, EXCITE = "random", "excite"
_STARTS, _HOPS = 2, 2  # of a motion that is designed during the rehearsal


@dataclass(frozen=True, eq=False)
class RehearsalPlan:
    """Inputs of a rehearsal; small and serialisable, so that every process builds the same.

    Attributes:
        experiment: Robot, model, filter, estimator, and the planned logs.
        simulation: Engine, true parameters, sensors.
        motion: Trajectory or log that all logs follow, `random`, or `excite` (exciting trajectory);
            None: that of each log, random if its file does not exist.
        seed: Of motions and noise.
    """

    experiment: Experiment
    simulation: Simulation
    motion: str | None = None
    seed: int = 0


class Rehearser:
    """One course per log, and the requested number of recordings and identifications."""

    def __init__(self, plan: RehearsalPlan) -> None:
        self.plan = plan
        robot = load_robot(plan.experiment.robot)
        extra = {**robot.payloads, **plan.experiment.payloads}
        self.true_robot = replace(robot, payloads=extra) if plan.experiment.payloads else robot
        self.robot = as_asked(robot, plan.experiment)
        self.motions = case_motions(self.true_robot)
        self.words: dict[str, str] = {}
        self.notices: list[Notice] = []
        entries = plan.experiment.logs or (LogEntry(RANDOM),)
        seeds = np.random.SeedSequence(plan.seed).spawn(len(entries) + 1)
        self._noise = seeds[-1]
        self.simulated = tuple(
            self._simulated(k, _entry(entry), int(seeds[k].generate_state(1)[0]))
            for k, entry in enumerate(entries)
        )

    def logs(self, number: int) -> list[Log]:
        """The logs of run `number`: the same in every process and in any order."""
        seeds = np.random.SeedSequence(self._noise.entropy, spawn_key=(*self._noise.spawn_key, number))
        pairs = zip(self.simulated, seeds.spawn(len(self.simulated)), strict=True)
        name = f"run {number + 1}, log"
        return [
            source.log(seed, f"{name} {k + 1}", self.robot, anywhere=True)
            for k, (source, seed) in enumerate(pairs)
        ]

    def run(self, number: int) -> Draw:
        """Record and identify run `number`."""
        with single_threaded_blas():
            try:
                fit = fit_task(Task(self.robot, tuple(self.logs(number)), self.plan.experiment))
            except (DynidError, np.linalg.LinAlgError) as error:
                return Draw(number, failed=str(error) or type(error).__name__)
        return self.draw(number, fit.parts.parameters, fit)

    def _simulated(self, k: int, entry: LogEntry, seed: int) -> Any:
        """The course of one log, simulated once: runs differ only in noise."""
        if self.motions is not None:
            return self.motions.rehearse(self, k, entry, seed)
        _refuse_silence(self.plan.simulation)
        motion, settings, words = self._motion(entry, seed)
        if self.plan.motion is None and entry.file != RANDOM and not Path(entry.file).exists():
            self.notices.append(notice("random-instead", file=entry.file, log=f"log {k + 1}"))
        settings = replace(settings, payloads=tuple(entry.payloads) or settings.payloads)
        self.words[f"log {k + 1}"] = words
        return simulate_led(self.true_robot, settings, motion)

    def _motion(self, entry: LogEntry, seed: int) -> tuple[Trajectory, Simulation, str]:
        settings, asked = self.plan.simulation, self.plan.motion
        source = asked or (entry.file if Path(entry.file).exists() else RANDOM)
        if source == EXCITE:
            return self._planned(entry, seed)
        if source == RANDOM:
            # If the named file does not exist, its duration is unknown: the period of the motion is used.
            motion = chosen_motion(self.true_robot, replace(settings.motion, file=None), seed)
            return motion, settings, f"random motion (seed {seed})"
        path = Path(source)
        whole = replace(settings, duration=None)
        if path.suffix.lower() in (".yaml", ".yml"):
            return file_motion(self.true_robot, source), whole, f"trajectory {path.name}"
        columns = self.plan.experiment.columns if asked is None else {}
        given = entry.changed(file=source) if asked is None else LogEntry(source)
        log = read_log(
            given, self.true_robot, columns=columns, angles=self.plan.experiment.angles, need_effort=False
        )
        if not log.effort_present.any():
            return file_motion(self.true_robot, source), whole, f"trajectory {path.name}"
        recorded = log_motion(self.true_robot, log)
        return recorded, replace(whole, rate=1.0 / log.dt), f"motion of log {path.name}"

    def _planned(self, entry: LogEntry, seed: int) -> tuple[Trajectory, Simulation, str]:
        """The motion that a short search of `dynid excite` finds for this robot."""
        from dynid.excitation.excite import excite_series
        from dynid.experiment.tasks import ExciteSettings

        robot, settings = self.plan.experiment.robot, self.plan.simulation
        if isinstance(robot, Mechanism):
            raise InputError("--motion excite needs a robot file", remedy="name the robot's file")
        asked = ExciteSettings(
            period=settings.duration or ExciteSettings().period,
            starts=_STARTS,
            hops=_HOPS,
            seed=seed,
            rate=settings.rate,
            noise=_noise(settings, len(self.true_robot.actuators)),
            payloads=tuple(entry.payloads) or settings.payloads,
            ties=tuple(tie.name for tie in self.plan.experiment.ties),
        )
        series = excite_series(robot, asked)
        words = f"motion of dynid excite (log det {series.criterion:.4g}, seed {seed})"
        return SampledMotion(series.t, series.q), replace(settings, duration=None), words

    def draw(self, number: int, parameters: Sequence[ParameterEstimate], fit: Fit) -> Draw:
        """The estimates of a run, with the true values."""
        fitted = [entry for entry in parameters if entry.sigma is not None and entry.ci95 is not None]
        known = {**fit.true_values(self.simulated[0].values), **self._gains()}
        return Draw(
            number,
            tuple(entry.name for entry in fitted),
            tuple(entry.unit for entry in fitted),
            tuple(entry.value for entry in fitted),
            tuple(float(entry.sigma or 0.0) for entry in fitted),
            tuple(entry.ci95[0] if entry.ci95 else 0.0 for entry in fitted),
            tuple(entry.ci95[1] if entry.ci95 else 0.0 for entry in fitted),
            tuple(known.get(entry.name, float("nan")) for entry in fitted),
        )

    def _gains(self) -> dict[str, float]:
        motors = [actuator.name for actuator in self.robot.actuators]
        gains = np.broadcast_to(np.asarray(self.plan.simulation.sensing.gain, float), (len(motors),))
        return {f"{GAIN}_{motor}": float(gain) for motor, gain in zip(motors, gains, strict=True)}


def rehearse(
    plan: RehearsalPlan,
    runs: int = 50,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    journal: Path | None = None,
    progress: Progress | None = None,
) -> Rehearsal:
    """Simulate and identify an experiment many times.

    Args:
        plan: Experiment, simulation, motion, seed.
        runs: Number of runs.
        jobs: Parallel processes; the robot must then be a name or a path.
        cluster: Address of a Dask scheduler instead; its workers read the same files.
        journal: File of finished runs; an interrupted rehearsal continues from there.
        progress: Called with the stage and the fraction completed.
    """
    from dynid.excitation.optimal.multistart import Journal, run_starts

    if runs < 2:
        raise InputError(f"{runs} runs are too few", remedy="give 2 or more, better 50")
    if (jobs > 1 or cluster) and isinstance(plan.experiment.robot, Mechanism):
        raise InputError("several jobs need a robot given by a file", remedy="name the robot's file")
    book = Journal(journal, _asked(plan), _revived)
    rehearser = Rehearser(plan)
    draws = run_starts(
        Rehearser,
        (plan,),
        runs,
        book,
        jobs=jobs,
        cluster=cluster,
        progress=progress,
        starter=rehearser,
        label="run",
    )
    about = _about(plan, rehearser)
    summary = summarise(draws, **about)
    book.remove()
    if not summary.runs:
        raise InputError(
            f"none of {runs} runs gave a result: {summary.failed[0]}", remedy="correct the experiment first"
        )
    return summary


def _about(plan: RehearsalPlan, rehearser: Rehearser) -> dict[str, Any]:
    experiment = plan.experiment
    sensing = plan.simulation.sensing
    words = {
        "engine": plan.simulation.engine,
        **rehearser.words,
        "rate": ", ".join(dict.fromkeys(f"{source.settings.rate:g} Hz" for source in rehearser.simulated)),
        "length": ", ".join(dict.fromkeys(f"{source.length:g} s" for source in rehearser.simulated)),
    }
    if rehearser.motions is not None:
        words |= rehearser.motions.noise(rehearser.simulated[0])
    else:
        words["effort noise"] = f"{_range(sensing.effort_sigma)} {effort_units(rehearser.robot)}"
        words["encoder steps"] = f"{_range(sensing.resolution)} rad or m"
    simulated = (found for source in rehearser.simulated for found in source.notices)
    notices = tuple(dict.fromkeys((*rehearser.notices, *simulated)))
    return {
        "robot": rehearser.robot.name,
        "model": experiment.model or rehearser.robot.model,
        "estimator": with_defaults(rehearser.robot, experiment).estimator,
        "seed": plan.seed,
        "plan": words,
        "warnings": notices,
    }


def _noise(settings: Simulation, motors: int) -> tuple[float, ...]:
    """Effort noise of the simulated sensors, for a search; empty if a motor has none."""
    sigma = np.broadcast_to(np.asarray(settings.sensing.effort_sigma, dtype=float), (motors,))
    return tuple(sigma.tolist()) if np.all(sigma > 0.0) else ()


def _range(values: Any) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _refuse_silence(simulation: Simulation) -> None:
    sensing = simulation.sensing
    if not (np.any(sensing.effort_sigma) or np.any(sensing.position_sigma) or np.any(sensing.resolution)):
        raise InputError(
            "the simulated sensors have neither noise nor a finite resolution: all runs would be equal",
            remedy="give a simulation file (--config) with  effort: {sigma: ...}  and"
            "  encoder: {resolution: ...}",
        )


def _asked(plan: RehearsalPlan) -> dict[str, Any]:
    """Identifies a rehearsal: only the same one may continue from a journal."""
    from dynid.common.versions import version_of

    robot = plan.experiment.robot
    return {
        "what": "rehearsal",
        "version": version_of(),
        "robot": robot.name if isinstance(robot, Mechanism) else os.fspath(robot),
        "experiment": _digest(plan.experiment.file),
        "options": repr({name: value for name, value in plan.experiment.tree().items() if name != "robot"}),
        "simulation": _plain(plan.simulation),
        "motion": [_digest(plan.motion), *(_digest(_entry(log).file) for log in plan.experiment.logs)],
        "seed": plan.seed,
    }


def _digest(file: str | None) -> str:
    """Hash of the content of a file; the name itself if there is no such file."""
    import hashlib

    path = Path(file or "")
    if not file or not path.is_file():
        return file or ""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _plain(value: Any) -> str:
    """Settings as text that is the same for the same settings."""
    return repr(_listed(asdict(value)))


def _listed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _listed(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_listed(item) for item in value]
    return value


def _revived(document: Mapping[str, Any]) -> Draw:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in document.items()
    }
    return Draw(**fields)


def _entry(entry: LogEntry | str | os.PathLike[str]) -> LogEntry:
    return entry if isinstance(entry, LogEntry) else LogEntry(os.fspath(entry))
