"""Sections of an experiment file for one model or kind of problem: windows, free motion, tables, gains."""

from __future__ import annotations

from typing import Any

from dynid.common.entry import Entry, placed
from dynid.estimator.gain_settings import LOGGED, GainSettings, TotalMass
from dynid.experiment.experiment import ENERGY_OPTIONS
from dynid.experiment.internal_settings import AUTO, LENGTHS, NULLSPACES, POSES
from dynid.experiment.refine_settings import DAMPINGS, RefineSettings
from dynid.mechanism.robot_file.scope import Scope
from dynid.motion.wrench_settings import ACCELERATIONS, AXES, DEFAULT_AXES, EXERTED_BY, PARAMETERS, POINTS
from dynid.projection.quadrature import QUADRATURES


def read_refine(entry: Entry, scope: Scope) -> RefineSettings | bool:
    """`true`, or how windows are cut."""
    if not entry.is_mapping:
        return entry.flag()
    fields = entry.fields(("window", "windows", "damping", "lengths"))
    options: dict[str, Any] = {}
    if "window" in fields:
        options["window"] = scope.number(fields["window"])
    if "windows" in fields:
        options["windows"] = int(scope.number(fields["windows"]))
    if "damping" in fields:
        options["damping"] = fields["damping"].choice(DAMPINGS)
    if "lengths" in fields:
        options["lengths"] = fields["lengths"].flag()
    return placed(entry, RefineSettings, options)


def read_gains(entry: Entry, scope: Scope) -> GainSettings:
    """`all`, or which gains are unknown and their nominal values."""
    if not entry.is_mapping:
        entry.choice(("all",))
        return GainSettings()
    fields = entry.fields(("unknown", "common", "nominal", "logged", "total_mass"))
    options: dict[str, Any] = {}
    if "unknown" in fields and fields["unknown"].is_list:
        options["unknown"] = fields["unknown"].texts()
    elif "unknown" in fields and fields["unknown"].choice(("all", "none")) == "none":
        options["unknown"] = ()
    if "common" in fields:
        options["common"] = fields["common"].flag()
    if "nominal" in fields:
        one = fields["nominal"]
        several = one.mapping().items() if one.is_mapping else None
        number = scope.number
        options["nominal"] = number(one) if several is None else {k: number(v) for k, v in several}
    if "logged" in fields:
        options["logged"] = fields["logged"].choice(LOGGED)
    if "total_mass" in fields:
        options["total_mass"] = _total_mass(fields["total_mass"], scope)
    return placed(entry, GainSettings, options)


def _total_mass(entry: Entry, scope: Scope) -> TotalMass:
    """What a scale reads: of all bodies, or of those named."""
    if not entry.is_mapping:
        return placed(entry, TotalMass, {"kg": scope.number(entry)})
    fields = entry.fields(("kg", "bodies"), required=("kg",))
    options: dict[str, Any] = {"kg": scope.number(fields["kg"])}
    if "bodies" in fields:
        options["bodies"] = fields["bodies"].texts()
    return placed(entry, TotalMass, options)


def read_energy(entry: Entry, scope: Scope) -> dict[str, Any]:
    """Windows of the energy model."""
    fields = entry.fields(ENERGY_OPTIONS)
    options: dict[str, Any] = {}
    if "window" in fields:
        options["window"] = scope.number(fields["window"])
        if options["window"] <= 0:
            raise fields["window"].error("the window is not positive", "give seconds")
    if "overlap" in fields:
        options["overlap"] = fields["overlap"].flag()
    if "integration" in fields:
        options["integration"] = fields["integration"].choice(tuple(QUADRATURES))
    return options


def read_internal(entry: Entry) -> dict[str, Any]:
    """Free coordinates, directions and lengths of free motion."""
    fields = entry.fields(("free", "nullspace", "lengths", "pose"))
    options: dict[str, Any] = {}
    if "free" in fields:
        own = fields["free"]
        options["free"] = own.texts() if own.is_list else (own.choice((AUTO,)),)
    for name, valid in (("nullspace", NULLSPACES), ("lengths", LENGTHS), ("pose", POSES)):
        if name in fields:
            options[name] = fields[name].choice(valid)
    return options


def read_wrench(entry: Entry) -> dict[str, Any]:
    """Which bodies and parameters, and how tables are to be read."""
    choices = {
        "parameters": PARAMETERS,
        "acceleration": ACCELERATIONS,
        "exerted_by": EXERTED_BY,
        "at": tuple(POINTS),
    }
    fields = entry.fields((*choices, "bodies", "names", "axes"))
    options: dict[str, Any] = {
        name: fields[name].choice(valid) for name, valid in choices.items() if name in fields
    }
    if "bodies" in fields:
        options["bodies"] = fields["bodies"].texts()
    if "names" in fields:
        options["names"] = {name: one.text() for name, one in fields["names"].mapping().items()}
    if "axes" in fields:
        axes = fields["axes"].fields(tuple(DEFAULT_AXES))
        options["axes"] = {name: one.choice(AXES) for name, one in axes.items()}
    return options
