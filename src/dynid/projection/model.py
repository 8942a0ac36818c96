"""The registry of identification models (`contract.py` has their contract).

To add a model, write one file that ends in its `Model`, and a line in `MODELS`; everything after `System`
stays unchanged. A model is loaded when it is used.
"""

from __future__ import annotations

from dynid.common.errors import InputError
from dynid.common.registry import Registry
from dynid.mechanism.mechanism import MODEL_NAMES, Mechanism, model_names
from dynid.projection.contract import Model

MODELS: Registry[Model] = Registry(
    "dynid.models",
    {
        "inverse": "dynid.projection.inverse:INVERSE",
        "power": "dynid.projection.power:POWER",
        "energy": "dynid.projection.energy:ENERGY",
        "internal": "dynid.projection.internal:INTERNAL",
        "wrench": "dynid.projection.wrench:WRENCH",
        "force_sensor": "dynid.projection.sensor:FORCE_SENSOR",
    },
    gives=("dynid.projection.contract:Model",),
)


def model_for(mechanism: Mechanism, name: str | None = None, file: str | None = None) -> Model:
    """The model of that name (None: the robot's own), or the one of the robot's force sensor."""
    if mechanism.force_sensor is not None:
        return MODELS["force_sensor"]
    return model_named(name or mechanism.model, file)


def model_named(name: str, file: str | None = None) -> Model:
    """The registered model, or an error with the valid names."""
    if name not in MODEL_NAMES and name not in model_names():
        raise InputError(
            f"unknown model '{name}'", file=file, remedy=f"use one of {', '.join(model_names())}"
        )
    return MODELS[name]
