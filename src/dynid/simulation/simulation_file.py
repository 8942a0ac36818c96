"""Strict reader of simulation settings (`dynid.simulation/1`); built-in robots provide defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
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
        options: dict[str, Any] = {
            "truth": self.truth(given),
            "plant": self.plant(given),
            "sensing": self.sensing(given),
        }
        readers: dict[str, Callable[[Entry], Any]] = {
            "engine": lambda entry: entry.choice(ENGINES),
            "rate": self.positive,
            "duration": self.positive,
            "seed": lambda entry: entry.count(0),
            "motion": self.motion,
            "changes": self.changes,
        }
        options |= {name: read(given[name]) for name, read in readers.items() if name in given}
        if "payload" in given:
            options["payloads"] = self.payloads(given["payload"])
        if "motion" in options and "duration" not in given:
            options["duration"] = None
        if "controller" in given and "model" in given["controller"].mapping():
            options["beliefs"] = given["controller"].mapping()["model"].choice(BELIEFS)
        engine = options.get("engine", self.default.engine)
        if "step" not in given:
            options["plant"] = replace(options["plant"], step=STEPS.get(engine, options["plant"].step))
        place = given.get("changes") or next(iter(given.values()), None)
        return replace(self.default, **options) if place is None else placed(place, self._made, options)

    def _made(self, **options: Any) -> Simulation:
        return replace(self.default, **options)

    def motion(self, entry: Entry) -> MotionChoice:
        """`random`, a file, or settings of a random motion."""
        if not entry.is_mapping:
            text = entry.text()
            return self.default.motion if text == "random" else MotionChoice(str(self.folder / text))
        names = ("kind", "harmonics", "frequency", "draws", "points", "dwell", "seed")
        given = entry.fields(names)
        counts: dict[str, Any] = {}
        counts |= {name: given[name].count() for name in ("draws", "points") if name in given}
        counts |= {"harmonics": given["harmonics"].count(3)} if "harmonics" in given else {}
        counts |= {"seed": given["seed"].count(0)} if "seed" in given else {}
        numbers: dict[str, Any] = {}
        if "frequency" in given:
            numbers["frequency"] = self.positive(given["frequency"])
        if "dwell" in given:
            numbers["dwell"] = self.size(given["dwell"])
        if "kind" in given:
            numbers["kind"] = given["kind"].choice(KINDS)
        return replace(self.default.motion, **counts, **numbers)

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
        phases = []
        for item in entry.items():
            given = item.fields(("at", "payload"), required=("at", "payload"))
            phases.append((self.positive(given["at"]), self.payloads(given["payload"])))
        return tuple(phases)

    def plant(self, given: dict[str, Entry]) -> PlantSettings:
        options: dict[str, Any] = {}
        if "step" in given:
            options["step"] = self.positive(given["step"])
        if "tension" in given:
            options["tension"] = self.size(given["tension"])
        if "friction" in given:
            options["friction"] = {
                owner: self.law(item) for owner, item in given["friction"].mapping().items()
            }
        if "controller" in given:
            options["controller"] = self.controller(given["controller"])
        return replace(self.default.moving, **options)

    def law(self, entry: Entry) -> FrictionLaw:
        names = tuple(field.name for field in fields(FrictionLaw))
        values = {name: self.scope.number(item) for name, item in entry.fields(names).items()}
        return placed(entry, FrictionLaw, values)

    def controller(self, entry: Entry) -> ControllerSettings:
        numbers = ("bandwidth", "damping", "rate", "cutoff")
        given = entry.fields(("kind", *numbers, "feedback", "model"))
        options: dict[str, Any] = {name: self.positive(given[name]) for name in numbers if name in given}
        if "kind" in given:
            options["kind"] = given["kind"].choice(CONTROLLERS)
        if "feedback" in given:
            options["feedback"] = given["feedback"].choice(FEEDBACKS)
        return ControllerSettings(**options)

    def sensing(self, given: dict[str, Entry]) -> Sensing:
        options: dict[str, Any] = {}
        if "encoder" in given:
            options |= self.encoder(given["encoder"])
        if "effort" in given:
            options |= self.effort(given["effort"])
        if "clock" in given:
            parts = given["clock"].fields(("jitter", "stamps", "dropped"))
            options |= {name: self.size(parts[name]) for name in ("jitter", "dropped") if name in parts}
            options |= {"stamps": parts["stamps"].choice(STAMPS)} if "stamps" in parts else {}
        if "log" in given:
            parts = given["log"].fields(("velocity", "acceleration", "reference"))
            options |= {name: switch.flag() for name, switch in parts.items()}
        place = next((given[name] for name in ("clock", "effort", "encoder") if name in given), None)
        if place is None:
            return replace(self.default.sensing, **options)
        return placed(place, self._sensed, options)

    def _sensed(self, **options: Any) -> Sensing:
        return replace(self.default.sensing, **options)

    def encoder(self, entry: Entry) -> dict[str, Any]:
        """A resolution, or all imperfections of the encoders."""
        if not entry.is_mapping or set(entry.mapping()) <= set(self.positions):
            return {"resolution": self.per(entry, self.positions)}
        given = entry.fields(("resolution", "sigma", "delay"))
        options: dict[str, Any] = {}
        for name, target in (("resolution", "resolution"), ("sigma", "position_sigma")):
            if name in given:
                options[target] = self.per(given[name], self.positions)
        if "delay" in given:
            options["position_delay"] = self.size(given["delay"])
        return options

    def effort(self, entry: Entry) -> dict[str, Any]:
        """A noise standard deviation, or all imperfections between a motor and its log column."""
        if not entry.is_mapping or set(entry.mapping()) <= set(self.motors):
            return {"effort_sigma": self.per(entry, self.motors)}
        given = entry.fields(("sigma", "correlation", "resolution", "delay", "gain"))
        options: dict[str, Any] = {}
        for name, target in (("sigma", "effort_sigma"), ("resolution", "effort_resolution")):
            if name in given:
                options[target] = self.per(given[name], self.motors)
        if "gain" in given:
            options["gain"] = self.per(given["gain"], self.motors, signed=True)
        if "correlation" in given:
            options["correlation"] = self.size(given["correlation"])
        if "delay" in given:
            options["effort_delay"] = self.size(given["delay"])
        return options

    def per(self, entry: Entry, names: Sequence[str], signed: bool = False) -> float | Float[Array, "c"]:
        """One number for all, or one for each of `names`: by name, or a list in their order."""
        number = self.scope.number if signed else self.size
        if entry.is_list:
            return np.array(entry.vector(number, len(names)))
        if not entry.is_mapping:
            return number(entry)
        given = entry.fields(names, required=names)
        return np.array([number(given[name]) for name in names])

    def positive(self, entry: Entry) -> float:
        value = self.scope.number(entry)
        if not value > 0.0:
            raise entry.error(f"{value:g} is not positive", "give a positive number")
        return value

    def size(self, entry: Entry) -> float:
        value = self.scope.number(entry)
        if not value >= 0.0:
            raise entry.error(f"{value:g} is negative", "give 0 or more")
        return value
