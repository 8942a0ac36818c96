"""Inputs of the plan: noise and rate of the recording, the model that predicts efforts, existing data."""

from __future__ import annotations

from dataclasses import replace

from dynid.common.catalogue import CATALOGUE
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.excitation.after import (
    existing,
    identified_values,
    known_information,
    recorded_rate,
    used_terms,
)
from dynid.excitation.careful import limit_notices
from dynid.excitation.efforts import effort_range
from dynid.excitation.plan import PlanInputs, planned_base, planned_robot
from dynid.excitation.settings import RATE, default_recorder, recording_words
from dynid.experiment.tasks import ExciteSettings
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import effort_unit, parameter_table
from dynid.projection.model import MODELS
from dynid.robots.truth import Truth, has_demo, true_values


def plan_inputs(robot: str | Mechanism, settings: ExciteSettings) -> tuple[PlanInputs, tuple[Notice, ...]]:
    """Inputs of the plan: noise, prior model, and information of existing data."""
    settings = settings.suited()
    before = existing(robot, settings)
    terms = used_terms(before)
    mechanism = planned_robot(robot, settings.payloads, terms)
    known, measured_noise = None, None
    if before:
        known, measured_noise = known_information(before, mechanism, planned_base(mechanism, settings))
    values = None if settings.prior else identified_values(before, mechanism)
    chi, notices = _prior(mechanism, settings.prior) if values is None else (values, ())
    notices = (*limit_notices(load_robot(robot)), *notices)
    noise = noise_of(mechanism, settings, measured_noise)
    promised = MODELS[mechanism.model].promised_by
    if promised != mechanism.model:
        more = "; the real sigma will be about twice as large" if promised == "power" else ""
        other = notice("promised-by-another-model", promised=promised, model=mechanism.model, more=more)
        notices = (*notices, other)
    rows = None if known is None else tuple(map(tuple, known.tolist()))
    rate, source = _assumed(mechanism, settings, recorded_rate(before), bool(measured_noise))
    source += ", efforts predicted with the existing result" if values is not None else ""
    units = [effort_unit(mechanism, motor.name) for motor in mechanism.actuators]
    words = recording_words(rate, noise, source, units)
    inputs = PlanInputs(robot, settings.changed(rate=rate), noise, rate, words, terms, chi, rows)
    return replace(inputs, identified=values is not None), notices


def noise_of(
    mechanism: Mechanism, settings: ExciteSettings, measured: dict[str, float] | None = None
) -> tuple[float, ...]:
    """Effort noise of every actuator: as given, as measured before, from `default_recorder`, or one."""
    names = [actuator.name for actuator in mechanism.actuators]
    if not settings.noise:
        usual = default_recorder(mechanism).effort_sigma or (1.0,) * len(names)
        pairs = zip(names, usual, strict=True)
        return tuple((measured or {}).get(name) or value for name, value in pairs)
    given = settings.noise * len(names) if len(settings.noise) == 1 else settings.noise
    if len(given) != len(names):
        raise InputError(
            f"{len(settings.noise)} noise values do not match {len(names)} actuators",
            remedy=f"give one value, or one for each of {', '.join(names)}",
        )
    return tuple(given)


def _assumed(
    mechanism: Mechanism, settings: ExciteSettings, before: float | None, measured: bool
) -> tuple[float, str]:
    """Rate of the recording, and where rate and noise come from; `before`: that of existing data, in [Hz]."""
    usual = default_recorder(mechanism)
    source = usual.source if usual.effort_sigma else "unknown: sigma is proportional to the noise"
    noise = (
        "noise as given"
        if settings.noise
        else "noise of the existing data"
        if measured
        else f"noise: {source}"
    )
    if settings.rate is not None:
        return settings.rate, f"rate as given, {noise}"
    if before is not None:
        return before, "rate and noise of the existing data" if measured else f"rate as before, {noise}"
    return usual.rate, f"rate: {usual.source if usual.rate != RATE else 'usual'}, {noise}"


def _prior(mechanism: Mechanism, file: str) -> tuple[tuple[float, ...] | None, tuple[Notice, ...]]:
    """The model that predicts efforts; with a notice if it is incomplete and efforts are limited."""
    limited = any(effort_range(mechanism, actuator.name) is not None for actuator in mechanism.actuators)
    try:
        values, lacking = true_values(mechanism, Truth(file or "prior"))
    except InputError:
        if file:
            raise
        if has_demo(mechanism):
            values, lacking = true_values(mechanism, Truth("demo"))
        elif not limited:
            return None, ()
        else:
            return None, (notice("efforts-unchecked"),)
    remedy = CATALOGUE["no-drive-values"].variants["planned"].remedy
    notices = tuple(replace(message, remedy=remedy) for message in lacking) if limited else ()
    return tuple(values[parameter.name] for parameter in parameter_table(mechanism)), notices
