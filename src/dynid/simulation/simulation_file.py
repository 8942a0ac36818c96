"""Strict reader of simulation settings (`dynid.simulation/1`); built-in robots provide defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.entry import Entry, placed, root_entry
from dynid.common.strict_yaml import PathLike, read_yaml
from dynid.excitation.friction import FrictionLaw
from dynid.excitation.settings import default_recorder
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.robot_file.scope import Scope
from dynid.robots.truth import Truth, built_in_demo, built_in_free
from dynid.simulation.motion import KINDS, MotionChoice
from dynid.simulation.plant.settings import CONTROLLERS, FEEDBACKS, ControllerSettings, PlantSettings
from dynid.simulation.sensors import STAMPS, Sensing
from dynid.simulation.simulation import BELIEFS, ENGINES, STEPS, Simulation

SCHEMA = "dynid.simulation/1"
_KEYS = (
    "schema",
    "engine",
    "rate",
    "duration",
    "seed",
    "step",
    "motion",
    "truth",
    "parameters",
    "payload",
    "changes",
    "tension",
    "friction",
    "controller",
    "encoder",
    "effort",
    "clock",
    "log",
)
_NONE = "none"
_Readers = dict[str, Callable[[Entry], Any]]
# Keys below `encoder:` and `effort:` that have another name in `Sensing`.
_ENCODER = {"sigma": "position_sigma", "delay": "position_delay"}
_EFFORT = {"sigma": "effort_sigma", "resolution": "effort_resolution", "delay": "effort_delay"}


def read_simulation(file: PathLike, mechanism: Mechanism) -> Simulation:
    """Settings of a file for this robot; missing ones are those of `default_simulation`."""
    fields_ = root_entry(read_yaml(file), "simulation").fields(_KEYS)
    if "schema" in fields_:
        fields_["schema"].choice((SCHEMA,))
    return _Reader(Path(file).resolve().parent, mechanism, default_simulation(mechanism)).read(fields_)


def default_simulation(mechanism: Mechanism) -> Simulation:
    """The experiment of a built-in robot, else a random motion; rate and noise of `default_recorder`."""
    recorder = default_recorder(mechanism)
    sensing = Sensing(resolution=recorder.resolution)
    if recorder.effort_sigma:
        sensing = replace(sensing, effort_sigma=np.array(recorder.effort_sigma))
    usual = Simulation(rate=recorder.rate, sensing=sensing)
    free, demo = built_in_free(mechanism), built_in_demo(mechanism)
    if free is not None:
        return replace(usual, duration=free.duration)
    if demo is None:
        return usual
    return replace(
        usual,
        duration=demo.periods / demo.frequency,
        motion=MotionChoice(harmonics=demo.harmonics, frequency=demo.frequency, draws=demo.draws),
        plant=PlantSettings(step=STEPS["dynid"], tension=demo.tension),
    )


def with_flags(settings: Simulation, **flags: Any) -> Simulation:
    """Settings overridden by the command line; a value of None changes nothing.

    Args:
        settings: Of a file, or the default.
        flags: `engine`, `rate`, `duration`, `seed`, `motion` (a file, or `random`), `payloads`, `truth`,
            `feedback` of the controller.
    """
    said = {name: value for name, value in flags.items() if value is not None}
    motion = said.pop("motion", None)
    if motion is not None:
        choice = replace(settings.motion, file=None if motion == "random" else motion)
        # A file has its own duration; the period of the built-in motion does not apply.
        settings = replace(
            settings, motion=choice, duration=settings.duration if choice.file is None else None
        )
    truth = said.pop("truth", None)
    if truth is not None:
        said["truth"] = replace(settings.truth, source=truth)
    feedback = said.pop("feedback", None)
    settings = replace(settings, **said)
    if feedback is not None:
        moving = settings.moving
        controller = replace(moving.controller, feedback=feedback)
        settings = replace(settings, plant=replace(moving, controller=controller))
    if "engine" in said and settings.plant is not None and settings.plant.step in STEPS.values():
        step = STEPS.get(settings.engine, settings.plant.step)
        settings = replace(settings, plant=replace(settings.plant, step=step))
    return settings


class _Reader:
    """Readers of the sections, which share folder, robot and expressions."""

    def __init__(self, folder: Path, mechanism: Mechanism, default: Simulation) -> None:
        self.folder, self.robot, self.default = folder, mechanism, default
        self.scope = Scope()
        self.positions = mechanism.measured_positions
        self.motors = tuple(actuator.name for actuator in mechanism.actuators)

    def read(self, given: dict[str, Entry]) -> Simulation:
        if not given:
            return self.default
        options: dict[str, Any] = {
            "truth": self.truth(given),
            "plant": self.plant(given),
            "sensing": self.sensing(given),
        }
        readers: dict[str, tuple[str, Callable[[Entry], Any]]] = {
            "engine": ("engine", lambda entry: entry.choice(ENGINES)),
            "rate": ("rate", self.scope.positive),
            "duration": ("duration", self.scope.positive),
            "seed": ("seed", _from_zero),
            "motion": ("motion", self.motion),
            "changes": ("changes", self.changes),
            "payload": ("payloads", self.payloads),
        }
        options |= {field: read(given[key]) for key, (field, read) in readers.items() if key in given}
        if "motion" in options and "duration" not in given:
            options["duration"] = None
        if "controller" in given and "model" in given["controller"].mapping():
            options["beliefs"] = given["controller"].mapping()["model"].choice(BELIEFS)
        engine = options.get("engine", self.default.engine)
        if "step" not in given:
            options["plant"] = replace(options["plant"], step=STEPS.get(engine, options["plant"].step))
        place = given.get("changes") or next(iter(given.values()))
        return placed(place, partial(replace, self.default), options)

    def motion(self, entry: Entry) -> MotionChoice:
        """`random`, a file, or settings of a random motion."""
        if not entry.is_mapping:
            text = entry.text()
            return self.default.motion if text == "random" else MotionChoice(str(self.folder / text))
        settings: _Readers = {
            "kind": lambda item: item.choice(KINDS),
            "harmonics": lambda item: item.count(3),
            "frequency": self.scope.positive,
            "draws": Entry.count,
            "points": Entry.count,
            "dwell": self.size,
            "seed": _from_zero,
        }
        return replace(self.default.motion, **entry.read(settings))

    def truth(self, given: dict[str, Entry]) -> Truth:
        source = self.default.truth.source
        if "truth" in given:
            text = given["truth"].text()
            source = text if text in ("demo", "prior") else str(self.folder / text)
        values = {}
        if "parameters" in given:
            values = {name: self.scope.number(item) for name, item in given["parameters"].mapping().items()}
        return Truth(source, values)

    def payloads(self, entry: Entry) -> tuple[str, ...]:
        names = entry.texts() if entry.is_list else (entry.text(),)
        if names == (_NONE,):
            return ()
        for name in names:
            if name not in self.robot.payloads:
                entry.choice(tuple(self.robot.payloads) or (_NONE,))
        return names

    def changes(self, entry: Entry) -> tuple[tuple[float, tuple[str, ...]], ...]:
        readers: _Readers = {"at": self.scope.positive, "payload": self.payloads}
        phases = (item.read(readers, required=readers) for item in entry.items())
        return tuple((phase["at"], phase["payload"]) for phase in phases)

    def plant(self, given: dict[str, Entry]) -> PlantSettings:
        readers: _Readers = {
            "step": self.scope.positive,
            "tension": self.size,
            "friction": lambda entry: {owner: self.law(item) for owner, item in entry.mapping().items()},
            "controller": self.controller,
        }
        return replace(
            self.default.moving, **{key: read(given[key]) for key, read in readers.items() if key in given}
        )

    def law(self, entry: Entry) -> FrictionLaw:
        names = (field.name for field in fields(FrictionLaw))
        return placed(entry, FrictionLaw, entry.read(dict.fromkeys(names, self.scope.number)))

    def controller(self, entry: Entry) -> ControllerSettings:
        settings: _Readers = {
            "kind": lambda item: item.choice(CONTROLLERS),
            **dict.fromkeys(("bandwidth", "damping", "rate", "cutoff"), self.scope.positive),
            "feedback": lambda item: item.choice(FEEDBACKS),
            "model": Entry.text,
        }
        values = entry.read(settings)
        values.pop("model", None)  # of the whole simulation
        return ControllerSettings(**values)

    def sensing(self, given: dict[str, Entry]) -> Sensing:
        switches = dict.fromkeys(("velocity", "acceleration", "reference"), Entry.flag)
        clock: _Readers = {"jitter": self.size, "stamps": lambda x: x.choice(STAMPS), "dropped": self.size}
        readers: _Readers = {
            "encoder": self.encoder,
            "effort": self.effort,
            "clock": lambda entry: entry.read(clock),
            "log": lambda entry: entry.read(switches),
        }
        options = {k: x for key, read in readers.items() if key in given for k, x in read(given[key]).items()}
        place = next((given[name] for name in ("clock", "effort", "encoder", "log") if name in given), None)
        return self.default.sensing if place is None else placed(place, self._sensed, options)

    def _sensed(self, **options: Any) -> Sensing:
        return replace(self.default.sensing, **options)

    def encoder(self, entry: Entry) -> dict[str, Any]:
        """A resolution, or all imperfections of the encoders."""
        each = partial(self.scope.per, names=self.positions, number=self.size)
        if not entry.is_mapping or set(entry.mapping()) <= set(self.positions):
            return {"resolution": each(entry)}
        values = entry.read({"resolution": each, "sigma": each, "delay": self.size})
        return {_ENCODER.get(key, key): value for key, value in values.items()}

    def effort(self, entry: Entry) -> dict[str, Any]:
        """A noise standard deviation, or all imperfections between a motor and its log column."""
        each = partial(self.scope.per, names=self.motors, number=self.size)
        if not entry.is_mapping or set(entry.mapping()) <= set(self.motors):
            return {"effort_sigma": each(entry)}
        gain = partial(self.scope.per, names=self.motors, number=self.scope.number)
        sizes: _Readers = {"sigma": each, "correlation": self.size, "resolution": each, "delay": self.size}
        values = entry.read({**sizes, "gain": gain})
        return {_EFFORT.get(key, key): value for key, value in values.items()}

    def size(self, entry: Entry) -> float:
        value = self.scope.number(entry)
        if not value >= 0.0:
            raise entry.error(f"{value:g} is negative", "give 0 or more")
        return value


def _from_zero(entry: Entry) -> int:
    return entry.count(0)
