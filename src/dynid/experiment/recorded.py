"""From the options that a result recorded back to the experiment that they were given with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from dynid.common.errors import InputError
from dynid.estimator.gain_settings import GainSettings, TotalMass
from dynid.experiment.experiment import (
    ColumnMap,
    Experiment,
    FilterSettings,
    MaskSettings,
    TieChoice,
    UncertaintySettings,
    UnloadedModel,
)
from dynid.mechanism.frame import Frame
from dynid.mechanism.mechanism import Payload
from dynid.mechanism.robot_file.force_sensor import sensor_from

T = TypeVar("T")
_PLACE = "provenance.options"
_NAMES = dict[str, Any]
# Options kept as written, and their type; None or absent means the default.
_PLAIN: dict[str, Any] = {
    "robot": str,
    "model": str,
    "estimator": str,
    "estimator_options": _NAMES,
    "efforts": tuple[int | str, ...],
    "drive": tuple[str, ...],
    "stribeck": dict[str, float],
    "standard": _NAMES,
    "refine": _NAMES,
    "hold_out": float,
    "auto": str,
    "angles": str,
    "energy": _NAMES,
    "internal": _NAMES,
    "wrench": _NAMES,
    "drop_bad_rows": bool,
}


def experiment_of(options: Mapping[str, Any], file: object = None) -> Experiment:
    """The experiment whose options a result recorded, without its logs.

    Args:
        options: As `provenance.options` of a result has them; what is misshapen is refused.
        file: The result, for messages.
    """
    try:
        return Experiment(**{"robot": "", "estimator": "wls", "auto": "off", **_given(options)})
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # msgspec's refusal is a ValueError
        what = f"key {error} is missing" if isinstance(error, KeyError) else str(error)
    except InputError as error:
        what = error.text
    raise InputError(
        f"options that cannot be read: {what}",
        file=file,
        place=_PLACE,
        remedy="identify again to write a new result",
    )


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the experiment that the options contain."""
    found = {name: _shaped(options[name], kind) for name, kind in _PLAIN.items() if _has(options, name)}
    for name, kind in (
        ("filter", FilterSettings),
        ("mask", MaskSettings),
        ("uncertainty", UncertaintySettings),
        ("unloaded", UnloadedModel),
    ):
        if _has(options, name):
            found[name] = _settings(kind, options[name])
    if _has(options, "columns"):
        found["columns"] = {name: _settings(ColumnMap, one) for name, one in options["columns"].items()}
    if _has(options, "ties"):
        found["ties"] = tuple(_settings(TieChoice, one) for one in options["ties"])
    if _has(options, "payloads"):
        found["payloads"] = {name: _payload(name, one) for name, one in options["payloads"].items()}
    if _has(options, "gains"):
        found["gains"] = _gains(options["gains"])
    if _has(options, "force_sensor"):
        found["force_sensor"] = sensor_from(options["force_sensor"])
    return found


def _has(options: Mapping[str, Any], name: str) -> bool:
    return options.get(name) is not None


def _shaped(value: Any, kind: type[T] | Any) -> Any:
    import msgspec

    return msgspec.convert(value, kind)


def _settings(kind: type[T], given: Mapping[str, Any]) -> T:
    """Settings of which every name is known."""
    unknown = sorted(set(given) - {one.name for one in fields(kind)})  # type: ignore[arg-type]
    if unknown:
        raise ValueError(f"'{unknown[0]}' is not known")
    made: T = _shaped(given, kind)
    return made


def _gains(given: Mapping[str, Any]) -> GainSettings:
    kinds = {"unknown": tuple[str, ...] | None, "nominal": dict[str, float] | float}
    made = {name: _shaped(one, kinds[name]) if name in kinds else one for name, one in given.items()}
    if _has(made, "total_mass"):
        made["total_mass"] = _settings(TotalMass, made["total_mass"])
    return GainSettings(**made)


def _payload(name: str, document: Mapping[str, Any]) -> Payload:
    known, prior = (_shaped(document[which], dict[str, float]) for which in ("known", "prior"))
    R, p = np.array(document["R"], float), np.array(document["p"], float)
    if R.shape != (3, 3) or p.shape != (3,):
        raise ValueError(f"the frame of payload '{name}' has another shape")
    return Payload(name, _shaped(document["body"], str), Frame(R, p), known, prior)
