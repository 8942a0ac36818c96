"""Simulation: a motion, true parameters and an engine give a course; sensors turn it into a log.

| engine  | method                                                  | use                         |
|---------|---------------------------------------------------------|-----------------------------|
| inverse | efforts of the inverse model along the motion itself    | fast and exact; rehearsals  |
| dynid   | dynid's constrained forward dynamics, with a controller | tracking errors, stick-slip |
| mujoco  | the same in MuJoCo (extra `sim`)                        | independent check           |
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, cast, get_args, get_type_hints

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import single_threaded_blas
from dynid.common.brief import one_line
from dynid.common.errors import InputError, check_choice, nearest
from dynid.common.notices import Notice, notice
from dynid.excitation.case_motions import CaseSimulated, case_motions
from dynid.excitation.efforts import effort_range
from dynid.excitation.friction import ExtraFriction
from dynid.excitation.series import Trajectory
from dynid.excitation.settings import RATE
from dynid.kinematics.tension import driven_freedoms
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import effort_unit
from dynid.motion.log import Log
from dynid.regressor.kernels_ahead import prepare_kernels
from dynid.robots.truth import Truth, believed_values, true_values
from dynid.simulation.motion import MotionChoice, chosen_motion, narrowed_motion
from dynid.simulation.plant.run import PlantRun
from dynid.simulation.plant.settings import ControllerSettings, PlantSettings
from dynid.simulation.prescribed import prescribed_course
from dynid.simulation.sensors import Course, Recording, Sensing, recorded

ENGINES = ("inverse", "dynid", "mujoco")
BELIEFS = ("prior", "truth")
STEPS = {"dynid": 1e-3, "mujoco": 1e-4}  # s: MuJoCo's loops are springs that need short steps
Seed = int | np.random.SeedSequence | None
_FEWEST = 10  # samples of a log
_MOST = 20_000_000  # samples: a few gigabytes
_RECORDER, _CONTROLLER = range(2)  # streams of the seed


@dataclass(frozen=True, eq=False)
class Simulation:
    """Settings of a simulated recording.

    Attributes:
        engine: `inverse`, `dynid` or `mujoco`.
        rate: Sampling rate, in [Hz].
        duration: In [s]; None: one period of the motion, or its end.
        seed: Of motion and noise.
        motion: Desired motion.
        truth: Source of the true parameters, see `true_values`.
        beliefs: Parameters of the controller model: `prior` (if the description has any), or `truth`.
        payloads: Mounted at the beginning.
        changes: Times [s], increasing, and the payloads mounted from then on.
        plant: Steps, controller, friction, tension.
        sensing: Encoders, noise, gains, clock.
    """

    engine: str = "inverse"
    rate: float = RATE
    duration: float | None = None
    seed: int = 0
    motion: MotionChoice = field(default_factory=MotionChoice)
    truth: Truth = field(default_factory=Truth)
    beliefs: str = "prior"
    payloads: tuple[str, ...] = ()
    changes: tuple[tuple[float, tuple[str, ...]], ...] = ()
    plant: PlantSettings | None = None
    sensing: Sensing = field(default_factory=Sensing)

    def __post_init__(self) -> None:
        for label, name, valid in (
            ("engine", self.engine, ENGINES),
            ("controller model", self.beliefs, BELIEFS),
        ):
            check_choice(label, name, valid)
        for label, value in (("rate", self.rate), ("duration", self.duration)):
            if value is not None and not 0.0 < value < float("inf"):
                raise InputError(f"a {label} of {value:g} is not valid", remedy="give a positive number")
        times = [time for time, _ in self.changes]
        if any(b <= a for a, b in zip([0.0, *times], times, strict=False)):
            raise InputError(
                f"payload changes at {', '.join(f'{x:g}' for x in times)} s are not in order",
                remedy="list them in increasing order, after 0 s",
            )

    @property
    def mounted(self) -> tuple[str, ...]:
        """Payloads that are mounted at some time."""
        return (*self.payloads, *(name for _, names in self.changes for name in names))

    @property
    def moving(self) -> PlantSettings:
        """Settings of the plant; the default step depends on the engine."""
        return self.plant or PlantSettings(step=STEPS.get(self.engine, 1e-3))


@dataclass(frozen=True, eq=False)
class Simulated:
    """Result of a simulation, before sensors.

    Attributes:
        mechanism: The robot.
        settings: As requested.
        course: True measured coordinates and efforts.
        values: True standard parameters by name, SI.
        run: All coordinates, if an engine integrated them.
        notices: Warnings.
        motion: The desired motion.
    """

    mechanism: Mechanism
    settings: Simulation
    course: Course
    values: Mapping[str, float]
    run: PlantRun | None = None
    notices: tuple[Notice, ...] = ()
    motion: Trajectory | None = None

    __repr__ = one_line

    @property
    def length(self) -> float:
        """Of the log, in [s]."""
        return float(self.course.t[-1])

    def recording(self, seed: Seed = None, *, anywhere: bool = False) -> Recording:
        """One recording; another seed gives other noise on the same motion.

        Noise read by a controller moves the robot: then another seed also gives another course.

        Args:
            seed: Of the noise; default that of the settings.
            anywhere: Whether the encoder steps have a random offset, as after a restart of the robot.
        """
        noise_seed = _stream(self.settings.seed, _RECORDER) if seed is None else seed
        sensing = replace(self.settings.sensing, anywhere=anywhere or self.settings.sensing.anywhere)
        course = self.course
        if seed is not None and course.noise is not None:
            course = _course(self.mechanism, self.settings, self.values, self.motion, self.length, seed)[0]
        return recorded(course, sensing, np.random.default_rng(noise_seed))

    def log(
        self,
        seed: Seed = None,
        name: str = "simulated",
        mechanism: Mechanism | None = None,
        *,
        anywhere: bool = False,
    ) -> Log:
        """The recording as a log, for this robot or for another description of it."""
        recording = self.recording(seed, anywhere=anywhere)
        return recording.log(mechanism or self.mechanism, self.settings.payloads, name)


def simulate(
    mechanism: str | os.PathLike[str] | Mechanism,
    settings: Simulation | Mapping[str, Any] | None = None,
    motion: Trajectory | None = None,
) -> Simulated | CaseSimulated:
    """Simulate a robot with known true parameters; `log()` of the result is a recording.

    A robot on locked cables is released: as the file of the motion says (`releases.csv`, a log), else at
    random.

    Args:
        mechanism: The robot: a built-in name, a file or a Mechanism.
        settings: Engine, motion, true parameters, sensors; default a random motion without noise. Also as a
            mapping of the fields of `Simulation`, and of their fields: `{"motion": {"file": "run.csv"}}`.
        motion: Of the measured coordinates, instead of that of the settings.
    """
    mechanism = load_robot(mechanism)
    asked = _made("a simulation", Simulation, settings or {})
    motions = case_motions(mechanism) if motion is None else None
    return motions.simulate(mechanism, asked) if motions else simulate_led(mechanism, asked, motion)


def simulate_led(mechanism: Mechanism, settings: Simulation, motion: Trajectory | None = None) -> Simulated:
    """Simulate a robot that motors lead; arguments as for `simulate`."""
    prepare_kernels(mechanism)
    check_payloads(mechanism, settings)
    with single_threaded_blas():
        values, notices = true_values(mechanism, settings.truth, settings.mounted)
        chosen = motion or chosen_motion(mechanism, settings.motion, settings.seed)
        if motion is None:
            notices = (*notices, *narrowed_motion(mechanism, settings.motion))
        t = _times(settings, chosen)
        if settings.engine == "inverse":
            course = _prescribed(mechanism, settings, values, chosen, t)
            notices = (*notices, *_unused(settings), *_beyond(mechanism, course))
            return Simulated(mechanism, settings, course, values, None, notices)
        doubts = believed_values(mechanism, values, settings.beliefs)[1]
        course, run = _course(mechanism, settings, values, chosen, float(t[-1]))
        notices = (*notices, *doubts, *_beyond(mechanism, course))
        freedoms, driven = driven_freedoms(mechanism)
        if driven == freedoms:
            needed = _prescribed(mechanism, settings, values, chosen, course.t)
            notices = (*notices, *_corrections(mechanism, course, needed))
    return Simulated(mechanism, settings, course, values, run, notices, chosen)


def _made(what: str, kind: type[Any], given: Any) -> Any:
    """Settings of a kind, also from a mapping of its fields, at every depth."""
    if isinstance(given, kind):
        return given
    hints = get_type_hints(kind)
    if not isinstance(given, Mapping):
        raise InputError(
            f"{what} cannot be made from {given!r}", remedy=f"give {{name: value}} of {', '.join(hints)}"
        )
    parts = dict(given)
    for name, value in given.items():
        if name not in hints:
            raise InputError(
                f"{what} has no '{name}'{nearest(name, hints)}", remedy=f"use {', '.join(hints)}"
            )
        nested = [part for part in (hints[name], *get_args(hints[name])) if is_dataclass(part)]
        if nested and value is not None:
            parts[name] = _made(f"'{name}' of {what}", cast(Any, nested[0]), value)
    return kind(**parts)


def _unused(settings: Simulation) -> tuple[Notice, ...]:
    """Warn about controller settings that this engine ignores."""
    if settings.plant is None or settings.plant.controller == ControllerSettings():
        return ()
    return (notice("no-controller"),)


def _beyond(mechanism: Mechanism, course: Course) -> tuple[Notice, ...]:
    """Warn about efforts that exceed the limits of motors and cables."""
    cables = {cable.name for cable in mechanism.cables}
    shown = []
    for actuator, tau in zip(mechanism.actuators, course.tau.T, strict=True):
        span = None if actuator.name in cables else effort_range(mechanism, actuator.name)
        k = int(np.argmax(np.abs(tau)))
        if span is not None and not span[0] <= tau[k] <= span[1]:
            unit = effort_unit(mechanism, actuator.name)
            limit = span[1] if tau[k] > 0.0 else span[0]
            shown.append(f"'{actuator.name}' {tau[k]:.3g} {unit}, limit {limit:.3g} {unit}")
    warned = (notice("efforts-beyond-limits", shown="; ".join(shown)),) if shown else ()
    return (*warned, *_loose(mechanism, course))


def _loose(mechanism: Mechanism, course: Course) -> tuple[Notice, ...]:
    """Warn about the cable that exceeds its tension range most, or that would have to push."""
    worst, warnings = 0.0, list[Notice]()
    cables = {cable.name for cable in mechanism.cables}
    for actuator, tau in zip(mechanism.actuators, course.tau.T, strict=True):
        if actuator.name not in cables:
            continue
        low, high = effort_range(mechanism, actuator.name) or (0.0, np.inf)
        for value, beyond in ((tau.min(), low - tau.min()), (tau.max(), tau.max() - high)):
            if beyond > worst:
                worst = float(beyond)
                warnings = [notice("loose-cables", cable=actuator.name, tension=value, low=low, high=high)]
    return tuple(warnings)


def _corrections(mechanism: Mechanism, course: Course, needed: Course) -> Iterator[Notice]:
    """Warn if a controller's corrections are larger than the efforts of its motion.

    Motors of one unit are taken together. A loop that oscillates may follow its reference, within what
    `check_tracking` allows.
    """
    units = np.array([effort_unit(mechanism, actuator.name) for actuator in mechanism.actuators])
    for unit in dict.fromkeys(units.tolist()):
        motors = np.flatnonzero(units == unit)
        off = course.tau[:, motors] - needed.tau[:, motors]
        if np.linalg.norm(off) > np.linalg.norm(needed.tau[:, motors]):
            worst = int(motors[np.argmax(np.abs(off).max(axis=0))])
            yield notice(
                "controller-efforts",
                motor=mechanism.actuators[worst].name,
                applied=np.abs(course.tau[:, worst]).max(),
                needed=np.abs(needed.tau[:, worst]).max(),
                unit=unit,
            )


def _prescribed(
    mechanism: Mechanism,
    settings: Simulation,
    values: Mapping[str, float],
    motion: Trajectory,
    t: Float[Array, "n"],
) -> Course:
    plant = settings.moving
    friction = ExtraFriction(mechanism, plant.friction) if plant.friction else None
    return prescribed_course(
        mechanism, values, motion, t, settings.payloads, plant.tension, friction, settings.changes
    )


def _course(
    mechanism: Mechanism,
    settings: Simulation,
    values: Mapping[str, float],
    motion: Trajectory | None,
    duration: float,
    seed: Seed = None,
) -> tuple[Course, PlantRun]:
    """The course computed by an integrating engine; the seed is that of the encoder noise."""
    from dynid.simulation.plant.engines import run_plant

    chosen = motion or chosen_motion(mechanism, settings.motion, settings.seed)
    believed = believed_values(mechanism, values, settings.beliefs)[0]
    run = run_plant(
        mechanism,
        values,
        chosen,
        rate=settings.rate,
        duration=duration,
        settings=settings.moving,
        payloads=settings.payloads,
        changes=settings.changes,
        believed=believed,
        encoders=settings.sensing,
        seed=_stream(settings.seed if seed is None else seed, _CONTROLLER),
        engine=settings.engine,
    )
    return replace(run.course(mechanism), q_ref=chosen.q(run.t)), run


def _stream(seed: int | np.random.SeedSequence, stream: int) -> np.random.SeedSequence:
    """One of the independent streams of a seed: the same at every call (spawning would give a new one)."""
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, stream))


def _times(settings: Simulation, motion: Trajectory) -> Float[Array, "n"]:
    """Sampling times of the recorder, in [s]."""
    end = float(getattr(motion, "period", 0.0))
    duration = settings.duration or end
    if not duration:
        raise InputError("the motion has no end", remedy="give a duration")
    repeats = bool(getattr(motion, "repeats", True))
    if not repeats and duration > end * (1.0 + 1e-9):
        raise InputError(
            f"a duration of {duration:g} s is longer than the motion of {end:g} s",
            remedy="give a shorter duration, or a longer motion",
        )
    n = round(duration * settings.rate) + 1
    if n < _FEWEST:
        raise InputError(
            f"{duration:g} s at {settings.rate:g} Hz give {n} samples, too few for a log",
            remedy="raise the rate or the duration",
        )
    if n > _MOST:
        raise InputError(
            f"{duration:g} s at {settings.rate:g} Hz give {n:.2g} samples, more than {_MOST:.2g}",
            remedy="lower the rate or the duration",
        )
    late = [time for time, _ in settings.changes if time >= duration]
    if late:
        raise InputError(
            f"a payload changes at {late[0]:g} s, after the end of the log at {duration:g} s",
            remedy="give an earlier time, or a longer duration",
        )
    return np.arange(n) / settings.rate


def check_payloads(mechanism: Mechanism, settings: Simulation) -> None:
    """Refuse payloads that the robot does not have."""
    for name in settings.mounted:
        if name not in mechanism.payloads:
            raise InputError(
                f"robot '{mechanism.name}' has no payload '{name}'" + nearest(name, mechanism.payloads),
                file=mechanism.file,
                remedy="describe it under `payloads:`",
            )
